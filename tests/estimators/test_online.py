"""OnlineMarginClassifier: batches of any size, counts, bounds and refusals."""

from __future__ import annotations

import pickle
from contextlib import nullcontext
from functools import cache

import numpy as np
import pytest
import scipy.sparse as sp
from effort import interpreted
from oracle import optimum
from sklearn.base import clone
from sklearn.feature_extraction import FeatureHasher
from sklearn.pipeline import make_pipeline

import maxmargin as mm
from maxmargin import OnlineMarginClassifier, Problem
from maxmargin.algorithms import ALMA, PUMMA, ROMMA, FixedDirectionalMargin, Perceptron

ROUNDING = 1e-12  # 200 updates, of sums of five terms: 1000 eps = 2e-13, times 5 for the order of additions
RULES = [
    mm.algorithms.LocalPerceptron(),
    Perceptron(b=0.3),
    ALMA(alpha=0.5),
    ALMA(alpha=0.5, normalise=True),
    mm.algorithms.CRAMMA(eta=0.1),
    mm.algorithms.MICRA(eta=0.3),
    FixedDirectionalMargin(beta=0.2, eta=0.1),
    FixedDirectionalMargin(beta=1.0, eta=20.0),  # the scale of w is folded in at times
    ROMMA(),
    mm.algorithms.AggressiveROMMA(delta=0.2),
    PUMMA(delta=0.2),
]
each_rule = pytest.mark.parametrize("rule", RULES, ids=repr)


def clouds(n=200, d=5, seed=0, gap=0.7, classes=2):
    rng = np.random.default_rng(seed)
    y = rng.integers(0, classes, n)
    y[:classes] = np.arange(classes)
    return rng.normal(size=(n, d)) + gap * np.eye(max(d, classes))[y][:, :d] * 2.0, y


@cache
def cached_optimum(rows, labels, C, free):
    problem = Problem("squared_hinge", C, intercept="free" if free else "none")
    y = np.array(labels)
    return optimum(problem, np.array(rows).reshape(y.size, -1), y, np.ones(y.size))


def best(X, y, C, free):
    """Return bounds of the optimum in rational numbers."""
    return cached_optimum(tuple(X.ravel().tolist()), tuple(y.tolist()), C, free)


def batches(model, X, y, size, classes=None):
    classes = np.unique(y) if classes is None else classes
    for k in range(0, len(y), size):
        model.partial_fit(X[k : k + size], y[k : k + size], classes=classes)
    return model


def state_vector(model):
    """All public numbers of a model as one array."""
    parts = (model.coef_, model.intercept_, *model.bounds_, model.mistakes_, model.updates_, [model.n_seen_])
    return np.concatenate([np.ravel(part) for part in parts])


@interpreted
class TestStreams:
    @each_rule
    def test_batches_of_any_size_and_storage_equal_one_pass(self, rule):
        """The first rows are of one class, and all but one of the binary rows hold zeros and ones only."""
        X, y = clouds(36)
        X = np.where(np.abs(X) > 0.5, X, 0.0)
        y[:9] = 0
        binary = (X > 0.5).astype(float)
        binary[13, 2] = 0.5
        model = OnlineMarginClassifier(rule, C=2.0, max_iter=1, shuffle=False)
        for data in (X, sp.csr_matrix(X), sp.csr_matrix(binary)):
            whole = state_vector(clone(model).fit(data, y))
            assert np.isfinite(whole).all()
            for size in (1, 7):
                assert np.array_equal(state_vector(batches(clone(model), data, y, size)), whole)
        mixed, dense = clone(model), state_vector(batches(clone(model), X, y, 36))
        for k in range(0, 36, 7):
            rows = slice(k, k + 7)
            mixed.partial_fit(sp.csr_array(X[rows]) if k % 2 else X[rows], y[rows], classes=[0, 1])
        np.testing.assert_allclose(state_vector(mixed), dense, rtol=ROUNDING)

    def test_multiclass_model_equals_one_against_rest_models(self):
        X, y = clouds(60, classes=4)
        labels = np.array(["a", "b", "c", "d"])[y]
        model = batches(OnlineMarginClassifier(), X, labels, 30)
        assert model.coef_.shape == (4, 5)
        for k, name in enumerate(model.classes_):
            one = batches(OnlineMarginClassifier(), X, labels == name, 30)
            assert np.array_equal(one.coef_[0], model.coef_[k])
            assert one.bounds_.upper[0] == model.bounds_.upper[k]
            assert one.mistakes_[0] == model.mistakes_[k]
        assert model.score(X, labels) > 0.6

    @pytest.mark.parametrize("rule", [RULES[2], RULES[-1]], ids=repr)
    @pytest.mark.parametrize("C", [np.inf, 2.0])
    def test_float32_rows_give_the_results_of_float64(self, rule, C):
        X, y = clouds(40)
        X = X.astype(np.float32)
        model = OnlineMarginClassifier(rule, C=C, intercept_scaling=0.7)
        truth = batches(clone(model), X.astype(float), y, 7)
        for data in (X, sp.csr_matrix(X)):
            found = batches(clone(model), data, y, 7)
            # float32 has 24 binary digits: 40 sums of relative error 2^-24 = 6e-8
            np.testing.assert_allclose(state_vector(found), state_vector(truth), rtol=1e-5, atol=1e-6)
            assert found.coef_.dtype == np.float64
            assert np.array_equal(found.updates_, truth.updates_)

    @pytest.mark.parametrize(
        "rule", ["auto", mm.algorithms.LocalPerceptron(b=0.5), PUMMA(delta=0.2)], ids=repr
    )
    def test_pickled_and_saved_streams_continue_identically_in_constant_memory(self, rule, tmp_path):
        X, y = clouds(40, classes=3)
        model = batches(OnlineMarginClassifier(rule, C=1.0), X[:25], y[:25], 10)
        mm.save(model, tmp_path / "m")
        pickled = pickle.dumps(model)
        copies = [pickle.loads(pickled), mm.load(tmp_path / "m")]
        for again in copies:
            assert repr(again) == repr(model)
            assert np.array_equal(state_vector(again), state_vector(model))
            assert np.array_equal(again.predict(X), model.predict(X))
        assert len(pickle.dumps(batches(model, X[25:], y[25:], 10))) == len(pickled)
        for again in copies:
            assert np.array_equal(state_vector(batches(again, X[25:], y[25:], 7)), state_vector(model))

    def test_fit_makes_max_iter_passes_and_may_stop_early(self):
        X, y = clouds()
        model = OnlineMarginClassifier(max_iter=3, random_state=0).fit(X, y)
        assert (model.n_iter_, model.n_seen_) == (3, 600)
        again = OnlineMarginClassifier(max_iter=3, random_state=0).fit(sp.csr_matrix(X), y)
        np.testing.assert_allclose(again.coef_, model.coef_, rtol=ROUNDING)
        easy = OnlineMarginClassifier(max_iter=100).fit(*clouds(gap=20.0))
        assert easy.n_seen_ == 200 * easy.n_iter_ < 200 * 100


def test_batches_across_a_refresh_equal_one_pass():
    X, y = clouds(n=70_000, d=2)  # |w|^2 is recomputed after 2^16 rows
    model = OnlineMarginClassifier(C=1.0, max_iter=1, shuffle=False)
    whole = state_vector(clone(model).fit(X, y))
    assert np.array_equal(state_vector(batches(clone(model), X, y, 9999)), whole)


@interpreted
def test_given_radius_is_used_from_the_first_row():
    """`radius` is more than the length of every pattern; streams without it are compared in test_streams."""
    X, y = clouds(seed=3)
    P = np.column_stack([X, np.full(len(y), 0.5)])
    w, total, updates = np.zeros(6), np.zeros(6), 0
    for x, s in zip(P, np.where(y == 1, 1.0, -1.0), strict=True):
        if s * (w @ x) <= 0.3 * 5.0**2:
            w, updates = w + s * x, updates + 1
        total += w / len(y)
    model = OnlineMarginClassifier(Perceptron(b=0.3), intercept_scaling=0.5, radius=5.0)
    batches(model, X, y, 9)
    np.testing.assert_allclose([*model.coef_[0], *model.intercept_], [*total[:-1], 0.5 * total[-1]], ROUNDING)
    assert model.updates_[0] == updates


@interpreted
class TestBounds:
    @pytest.mark.parametrize("C", [np.inf, 0.3])
    @each_rule
    def test_bounds_hold_for_all_presented_rows(self, rule, C):
        """Rows of `fit` count once for all passes; rows of `partial_fit` count each time."""
        for seed, free in ((1, True), (2, rule.name == "pumma")):
            X, y = clouds(30, 3, seed, gap=seed - 0.8)
            X = X * 10.0 ** (seed - 2)
            signs = np.where(y == 1, 1.0, -1.0)
            model = OnlineMarginClassifier(rule, C=C, fit_intercept=free, max_iter=3)
            model.fit(X[:9], y[:9])
            for end in (9, 30):
                truth = best(X[:end], signs[:end], C, free)
                (lower,), (upper,) = model.bounds_
                assert lower <= truth.upper
                assert upper >= truth.lower
                if np.isfinite(C):  # the objective at w = 0 with the best intercept
                    total = signs[:end].sum() if free else 0.0
                    assert upper == pytest.approx(C * (end - total**2 / end), rel=ROUNDING, abs=0.0)
                batches(model, X[9:], y[9:], 4)

    def test_bounds_are_near_the_optimum_after_convergence(self):
        X, y = clouds(n=40, d=3, gap=3.0)
        truth = best(X, np.where(y == 1, 1.0, -1.0), np.inf, True)
        model = OnlineMarginClassifier(PUMMA(delta=0.01), max_iter=1000, random_state=0).fit(X, y)
        assert float(truth.lower) <= model.bounds_.upper[0] <= 1.02 * float(truth.upper)


def test_hashed_features_are_learnt_in_a_pipeline():
    rows = [{"a": 1.0, "b": 2.5}, {"c": -1.0}, {"a": 0.5, "d": 3.0}, {}, {"long name": 1.0}] * 8
    y = np.array([1, 0, 1, 0, 1] * 8)
    model = make_pipeline(FeatureHasher(64), OnlineMarginClassifier(random_state=0)).fit(rows, y)
    assert model.score(rows, y) > 0.7


@interpreted
class TestRefusals:
    def test_classes_must_be_given_once_and_not_change(self):
        X, y = clouds(60)
        model = OnlineMarginClassifier()
        for classes, labels, words in (
            (None, y, "classes must be"),
            ([0, 2], y, r"is 1, not one of.*\[0, 2\]"),
            ([0], y, "one class"),
            ([[1], [0]], y, ""),
            ([0, 2], y, "not the same"),
            (None, y + 5, "is [56], not one of"),
        ):
            with pytest.raises(ValueError, match=words) if words else nullcontext():
                model.partial_fit(X, labels, classes=classes)
        assert (model.classes_.tolist(), model.n_seen_) == ([0, 1], 60)

    @pytest.mark.parametrize("learn", ["fit", "partial_fit"])
    @pytest.mark.parametrize("bad", ["large", "sparse nan", "classes", "C", "columns"])
    def test_failed_calls_leave_the_model_unchanged(self, learn, bad):
        X, y = clouds(60)
        missing = np.where(X > 1.0, np.nan, X)
        rows = {"large": X * 1e200, "sparse nan": sp.csr_matrix(missing), "columns": X[:, :3]}
        labels = {"classes": np.zeros(60) if learn == "fit" else y + 7, "columns": y[1:]}
        arguments = [rows.get(bad, X), labels.get(bad, y), *([[0, 1]] if learn == "partial_fit" else [])]

        def fail(model):
            model.set_params(C=-1.0 if bad == "C" else np.inf)
            with pytest.raises(ValueError):  # noqa: PT011 the messages are tested elsewhere
                getattr(model, learn)(*arguments)
            return model.set_params(C=np.inf)

        fresh = OnlineMarginClassifier()
        before = dict(vars(fresh))
        assert vars(fail(fresh)) == before
        model, twin = (batches(OnlineMarginClassifier(), X, y, 50) for _ in range(2))
        assert np.array_equal(state_vector(fail(model)), state_vector(twin))
        assert np.array_equal(state_vector(model.partial_fit(X, y)), state_vector(twin.partial_fit(X, y)))

    @pytest.mark.parametrize(
        ("name", "value"), [("C", 1.0), ("algorithm", "alma"), ("intercept_scaling", 1.0)]
    )
    def test_parameters_of_a_stream_cannot_change_after_its_start(self, name, value):
        X, y = clouds(40)
        model = batches(OnlineMarginClassifier(), X, y, 40)
        model.set_params(**{name: value})
        with pytest.raises(ValueError, match=f"{name} was .*fit"):
            model.partial_fit(X, y)
        model.set_params(shuffle=False, max_iter=1).fit(X, y)  # it restarts
        whole = state_vector(clone(model).fit(np.vstack([X, X]), np.append(y, y)))
        assert np.array_equal(state_vector(model.partial_fit(X, y)), whole)
