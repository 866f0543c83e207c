"""OnlineMarginClassifier: batches of any size, counts, bounds, hashing and refusals."""

from __future__ import annotations

import gc
import os
import pickle
import signal
import tracemalloc
from functools import cache

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from effort import COMPILED, interpreted
from oracle import optimum
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.feature_extraction import FeatureHasher
from sklearn.utils.estimator_checks import parametrize_with_checks

from maxmargin import (
    ALMA,
    CRAMMA,
    MICRA,
    PUMMA,
    ROMMA,
    AggressiveROMMA,
    FixedDirectionalMargin,
    OnlineMarginClassifier,
    Perceptron,
    Problem,
    load,
    save,
)
from maxmargin.algorithms import ALGORITHMS as REGISTERED
from maxmargin.algorithms.online.local_perceptron import LocalPerceptron
from maxmargin.fit.streaming import VISITS_PER_REFRESH, Stream

ALGORITHMS = [
    LocalPerceptron(),
    Perceptron(b=0.3),
    ALMA(alpha=0.5),
    ALMA(alpha=0.5, normalise=True),
    CRAMMA(eta=0.1),
    MICRA(eta=0.3),
    FixedDirectionalMargin(beta=0.2, eta=0.1),
    FixedDirectionalMargin(beta=1.0, eta=20.0),  # the scale of w is folded in at times
    ROMMA(),
    AggressiveROMMA(delta=0.2),
    PUMMA(delta=0.2),
]
# Float32 rows and each trail need one more compilation of every rule: two rules are tested, the others are slow tests.
USUAL = (ALGORITHMS[2], ALGORITHMS[-1])
SINGLE = [
    rule if rule in USUAL or not COMPILED else pytest.param(rule, marks=pytest.mark.slow)
    for rule in ALGORITHMS
]
TRAILS = ["average", "vote", "last"]


def names(rule):
    return repr(rule)


def clouds(n=200, d=5, seed=0, gap=0.7, classes=2):
    rng = np.random.default_rng(seed)
    y = rng.integers(0, classes, n)
    y[:classes] = np.arange(classes)
    return rng.normal(size=(n, d)) + gap * np.eye(max(d, classes))[y][:, :d] * 2.0, y


@cache
def optimum_of_float32(C, intercept):
    X, y = clouds(n=60)
    problem = Problem("squared_hinge", C, intercept="free" if intercept else "none")
    return optimum(problem, X.astype(np.float32).astype(float), np.where(y == 1, 1.0, -1.0), np.ones(60))


def batches(model, X, y, size):
    for k in range(0, len(y), size):
        model.partial_fit(X[k : k + size], y[k : k + size], classes=np.unique(y))
    return model


def state_vector(model):
    """All public numbers of a model as one array."""
    parts = (model.coef_, model.intercept_, *model.bounds_, model.mistakes_, model.updates_, [model.n_seen_])
    return np.concatenate([np.ravel(part) for part in parts])


@parametrize_with_checks([OnlineMarginClassifier()])
def test_scikit_learn_checks_pass(estimator, check):
    """Every check, with no expected failure; checks of sample weights do not apply."""
    check(estimator)


@pytest.mark.slow
@parametrize_with_checks(
    [
        OnlineMarginClassifier("pumma", C=1.0),
        OnlineMarginClassifier("romma", trail="vote"),
        OnlineMarginClassifier("alma", trail="last", max_iter=1),
        OnlineMarginClassifier("aggressive-romma", C=10.0, shuffle=False),
        OnlineMarginClassifier(CRAMMA(eta=0.1)),
        OnlineMarginClassifier(MICRA(eta=0.3)),
    ]
)
def test_scikit_learn_checks_pass_with_other_parameters(estimator, check):
    check(estimator)


class TestStreams:
    @interpreted
    @pytest.mark.parametrize(
        ("rule", "trail"),
        [
            pytest.param(
                rule,
                trail,
                marks=() if trail == "average" or rule in USUAL or not COMPILED else pytest.mark.slow,
                id=f"{rule}-{trail}",
            )
            for rule in ALGORITHMS
            for trail in TRAILS
        ],
    )
    def test_batches_of_any_size_equal_one_pass_bit_for_bit(self, rule, trail):
        X, y = clouds()
        for data in (X, sp.csr_matrix(np.where(np.abs(X) > 0.5, X, 0.0))):
            model = OnlineMarginClassifier(rule, C=2.0, trail=trail, max_iter=1, shuffle=False, n_voters=4)
            whole = state_vector(clone(model).fit(data, y))
            assert np.isfinite(whole).all()
            for size in (1, 7, 1000):
                assert np.array_equal(state_vector(batches(clone(model), data, y, size)), whole)

    def test_batches_of_binary_rows_equal_one_pass(self):
        X, y = clouds()
        X = np.where(X > 0.5, 1.0, 0.0)
        X[13, 2] = 0.5
        X = sp.csr_matrix(X)
        model = OnlineMarginClassifier(max_iter=1, shuffle=False)
        assert np.array_equal(
            state_vector(batches(clone(model), X, y, 10)), state_vector(clone(model).fit(X, y))
        )

    def test_batches_across_a_refresh_equal_one_pass(self):
        X, y = clouds(n=VISITS_PER_REFRESH + 5000, d=2)
        model = OnlineMarginClassifier(AggressiveROMMA(delta=0.3), C=1.0, max_iter=1, shuffle=False)
        whole = state_vector(clone(model).fit(X, y))
        assert np.array_equal(state_vector(batches(clone(model), X, y, 999)), whole)

    @interpreted
    @pytest.mark.parametrize("rule", ALGORITHMS, ids=names)
    def test_dense_sparse_and_mixed_batches_agree(self, rule):
        X, y = clouds(n=60)
        model = OnlineMarginClassifier(rule, C=2.0)
        dense = batches(clone(model), X, y, 7)
        sparse = batches(clone(model), sp.csr_matrix(X), y, 7)
        mixed = clone(model)
        for k in range(0, 60, 7):
            rows = slice(k, k + 7)
            mixed.partial_fit(sp.csr_array(X[rows]) if k % 2 else X[rows], y[rows], classes=[0, 1])
        np.testing.assert_allclose(state_vector(sparse), state_vector(dense), rtol=1e-9)
        np.testing.assert_allclose(state_vector(mixed), state_vector(dense), rtol=1e-9)

    def test_multiclass_model_equals_one_against_rest_models(self):
        X, y = clouds(classes=4)
        labels = np.array(["a", "b", "c", "d"])[y]
        model = batches(OnlineMarginClassifier(), X, labels, 30)
        assert model.coef_.shape == (4, 5)
        for k, name in enumerate(model.classes_):
            one = batches(OnlineMarginClassifier(), X, labels == name, 30)
            assert np.array_equal(one.coef_[0], model.coef_[k])
            assert one.bounds_.upper[0] == model.bounds_.upper[k]
            assert one.mistakes_[0] == model.mistakes_[k]
        assert model.score(X, labels) > 0.6

    def test_float32_batches_and_lists_agree(self):
        X, y = clouds(n=40)
        X = X.astype(np.float32)
        whole = batches(OnlineMarginClassifier(), X, y, 40)
        small = batches(OnlineMarginClassifier(), X, y, 3)
        assert np.array_equal(state_vector(whole), state_vector(small))
        rows = OnlineMarginClassifier()
        for row, label in zip(X.astype(float).tolist(), y.tolist(), strict=True):
            rows.partial_fit([row], [label], classes=[0, 1])
        np.testing.assert_allclose(state_vector(rows), state_vector(whole), rtol=1e-5)

    @interpreted
    @pytest.mark.parametrize("C", [np.inf, 2.0])
    @pytest.mark.parametrize("rule", SINGLE, ids=names)
    def test_float32_rows_give_the_results_of_float64(self, rule, C):
        """Soft and hard margins, with and without intercept, dense and CSR."""
        X, y = clouds(n=60)
        X = X.astype(np.float32)
        for intercept in (True,) if rule.name == "pumma" else (True, False):
            model = OnlineMarginClassifier(rule, C=C, fit_intercept=intercept, intercept_scaling=0.7)
            truth = state_vector(batches(clone(model), X.astype(float), y, 7))
            for data in (X, sp.csr_matrix(X)):
                found = batches(clone(model), data, y, 7)
                np.testing.assert_allclose(state_vector(found), truth, rtol=1e-5, atol=1e-6)
                assert found.coef_.dtype == np.float64
                assert np.array_equal(found.updates_, batches(clone(model), X.astype(float), y, 7).updates_)
                best = optimum_of_float32(C, intercept)
                assert found.bounds_.upper[0] >= best.lower
                assert found.bounds_.lower[0] <= best.upper

    @pytest.mark.parametrize("trail", TRAILS)
    def test_memory_does_not_grow(self, trail):
        X, y = clouds(n=3000, d=20)
        model = OnlineMarginClassifier(PUMMA(delta=0.5), C=1.0, trail=trail, n_voters=5)
        batches(model, X, y, 100)
        size = len(pickle.dumps(model))
        tracemalloc.start()
        held = []
        for _ in range(4):
            for _ in range(3):  # 1.4 MB of rows
                batches(model, X, y, 100)
            gc.collect()
            held.append(tracemalloc.get_traced_memory()[0])
        tracemalloc.stop()
        assert len(pickle.dumps(model)) == size
        # a cache of Python or Numba may grow once; a stream that keeps its rows grows in each round
        assert min(np.diff(held)) < 100_000
        assert sum(a.nbytes for a in model._streams[0].arrays.values()) < 8 * (10 * 21 + 60)

    def test_pickled_stream_continues_identically(self):
        X, y = clouds()
        for rule in ALGORITHMS:
            model = OnlineMarginClassifier(rule, C=1.0)
            half = pickle.loads(pickle.dumps(batches(clone(model), X[:90], y[:90], 10)))
            assert np.array_equal(
                state_vector(batches(half, X[90:], y[90:], 10)), state_vector(batches(model, X, y, 10))
            )

    def test_fit_makes_max_iter_passes_and_may_stop_early(self):
        X, y = clouds()
        model = OnlineMarginClassifier("romma", max_iter=3, random_state=0).fit(X, y)
        assert model.n_iter_ == 3
        assert model.n_seen_ == 600
        again = OnlineMarginClassifier("romma", max_iter=3, random_state=0).fit(sp.csr_matrix(X), y)
        np.testing.assert_allclose(again.coef_, model.coef_, rtol=1e-9)
        easy = OnlineMarginClassifier("romma", max_iter=100).fit(*clouds(gap=20.0))
        assert easy.n_iter_ < 100

    def test_fit_restarts_and_partial_fit_continues(self):
        X, y = clouds()
        model = OnlineMarginClassifier(max_iter=1, shuffle=False).fit(X[::-1], y[::-1])
        assert np.array_equal(
            state_vector(model.fit(X[:50], y[:50])), state_vector(clone(model).fit(X[:50], y[:50]))
        )
        assert np.array_equal(
            state_vector(model.partial_fit(X[50:], y[50:])), state_vector(clone(model).fit(X, y))
        )

    @pytest.mark.parametrize("intercept", [True, False])
    def test_bounds_hold_for_rows_after_several_passes(self, intercept):
        """Rows of `fit` count once for all passes; rows of `partial_fit` count each time."""
        rng = np.random.default_rng(0)
        X, extra = rng.normal(size=(10, 2)), rng.normal(size=(200, 2))
        y, more = np.where(X[:, 0] > 0, 1, -1), rng.choice([-1, 1], 200)
        model = OnlineMarginClassifier("perceptron", C=1.0, max_iter=2, fit_intercept=intercept)
        model.fit(X, y).partial_fit(extra, more)
        problem = Problem("squared_hinge", 1.0, intercept="free" if intercept else "none")
        truth = optimum(problem, np.vstack([X, extra]), np.append(y, more).astype(float), np.ones(210))
        assert model.bounds_.lower[0] <= truth.upper
        assert model.bounds_.upper[0] >= truth.lower

    def test_rows_sorted_by_class_equal_one_pass(self):
        X, y = clouds()
        order = np.argsort(y, kind="stable")
        for rule in ALGORITHMS:
            model = OnlineMarginClassifier(rule, C=1.0)
            whole = state_vector(batches(clone(model), X[order], y[order], 200))
            assert np.array_equal(state_vector(batches(clone(model), X[order], y[order], 6)), whole)
            assert np.isfinite(whole).all()

    def test_zero_rows_give_finite_weights(self):
        X, y = clouds()
        X[:20] = 0.0
        for rule in ALGORITHMS[:-1]:
            model = OnlineMarginClassifier(rule, fit_intercept=False)
            assert np.isfinite(batches(clone(model), X, y, 7).coef_).all()
            assert not batches(clone(model), X[:20], y[:20], 7).coef_.any()


class TestCounts:
    def test_perceptron_equals_a_manual_computation(self):
        """The threshold depends on the longest pattern so far; weights are averaged over all rows."""
        X, y = clouds(seed=3)
        signs = np.where(y == 1, 1.0, -1.0)
        rho, b = 0.5, 0.3
        P = np.column_stack([X, np.full(len(y), rho)])
        w, total, radius2, mistakes, updates = np.zeros(6), np.zeros(6), 0.0, 0, 0
        for x, s in zip(P, signs, strict=True):
            radius2 = max(radius2, float(x @ x))
            mistakes += s * (w @ x) <= 0.0
            if s * (w @ x) <= b * radius2:
                w, updates = w + s * x, updates + 1
            total += w
        model = batches(OnlineMarginClassifier(Perceptron(b=b), intercept_scaling=rho), X, y, 9)
        np.testing.assert_allclose(model.coef_[0], total[:-1] / len(y))
        np.testing.assert_allclose(model.intercept_[0], rho * total[-1] / len(y))
        assert (model.mistakes_[0], model.updates_[0], model.n_seen_) == (mistakes, updates, len(y))
        assert model.bounds_.lower[0] == -np.inf

    def test_given_radius_is_used_from_the_first_row(self):
        X, y = clouds()
        radius = float(np.sqrt((X**2).sum(axis=1).max() + 1.0))
        whole = OnlineMarginClassifier(
            Perceptron(b=0.3), radius=radius * (1 + 1e-12), trail="last", intercept_scaling=1.0
        )
        batches(whole, X, y, 11)
        P = np.column_stack([X, np.ones(len(y))])
        w = np.zeros(6)
        for x, s in zip(P, np.where(y == 1, 1.0, -1.0), strict=True):
            w = w + s * x if s * (w @ x) <= 0.3 * radius**2 else w
        np.testing.assert_allclose(whole.coef_[0], w[:-1])

    def test_rows_presented_at_zero_weight_are_mistakes(self):
        """PUMMA on sorted rows waits for the second class; until then w = 0 and every row is a mistake."""
        X, y = clouds(n=200)
        order = np.argsort(y, kind="stable")
        negatives = int(np.sum(y == 0))
        for size in (1, 13, 200):
            model = batches(OnlineMarginClassifier(PUMMA(delta=0.2), C=1.0), X[order], y[order], size)
            assert model.mistakes_[0] >= negatives + 1
            waiting = OnlineMarginClassifier("pumma", C=1.0)
            for k in range(0, negatives, size):
                rows = order[k : min(k + size, negatives)]
                waiting.partial_fit(X[rows], y[rows], classes=[0, 1])
            assert (waiting.mistakes_[0], waiting.updates_[0], waiting.n_seen_) == (negatives, 0, negatives)
            zeros = np.vstack([np.zeros((20, 5)), X[:20]])
            for rule in (ROMMA(), AggressiveROMMA(delta=0.2), CRAMMA(eta=0.1), MICRA(eta=0.3), Perceptron()):
                model = OnlineMarginClassifier(rule, fit_intercept=False)
                for k in range(0, 21, size):
                    model.partial_fit(zeros[k : min(k + size, 21)], y[k : min(k + size, 21)], classes=[0, 1])
                assert model.mistakes_[0] == 21

    @pytest.mark.parametrize("rule", ALGORITHMS, ids=names)
    def test_average_trail_is_the_mean_of_all_weights(self, rule):
        X, y = clouds(n=150)
        last = OnlineMarginClassifier(rule, C=1.5, trail="last")
        mean = OnlineMarginClassifier(rule, C=1.5)
        coef, intercept = np.zeros(5), 0.0
        for k in range(len(y)):
            batches_of_one = (X[k : k + 1], y[k : k + 1])
            last.partial_fit(*batches_of_one, classes=[0, 1])
            mean.partial_fit(*batches_of_one, classes=[0, 1])
            coef, intercept = coef + last.coef_[0], intercept + last.intercept_[0]
            np.testing.assert_allclose(mean.coef_[0], coef / (k + 1), rtol=1e-8, atol=1e-10)
            np.testing.assert_allclose(mean.intercept_[0], intercept / (k + 1), rtol=1e-8, atol=1e-10)

    @pytest.mark.parametrize("rule", [Perceptron(b=0.0), ROMMA(), PUMMA(delta=0.5)], ids=names)
    def test_voters_are_the_longest_surviving_weights(self, rule):
        X, y = clouds(n=150, gap=1.5)
        last = OnlineMarginClassifier(rule, C=1.5, trail="last")
        vote = OnlineMarginClassifier(rule, C=1.5, trail="vote", n_voters=4)
        survivals = []  # (weight, bias, presentations)
        for k in range(len(y)):
            before = last.updates_[0] if k else 0
            last.partial_fit(X[k : k + 1], y[k : k + 1], classes=[0, 1])
            if last.updates_[0] > before:
                survivals.append([last.coef_[0], last.intercept_[0], 0])
            if survivals:
                survivals[-1][2] += 1
        batches(vote, X, y, 7)
        past = sorted(survivals[:-1], key=lambda one: -one[2])[:3]
        votes = vote._streams[0].voters()[2]
        assert votes.size <= 4
        assert sorted(votes) == sorted([one[2] for one in past] + [survivals[-1][2]])
        if len({one[2] for one in survivals}) == len(survivals):  # ties may be broken differently
            score = sum(c * np.sign(X @ w + b) for w, b, c in [*past, survivals[-1]])
            np.testing.assert_allclose(
                vote.decision_function(X), score / sum(c for *_, c in [*past, survivals[-1]])
            )
        assert np.abs(vote.decision_function(X)).max() <= 1.0


class TestBounds:
    @pytest.mark.parametrize("C", [np.inf, 0.3, 10.0])
    @pytest.mark.parametrize("rule", ALGORITHMS, ids=names)
    def test_bounds_hold_for_all_presented_rows(self, rule, C):
        free_rules = (True,) if rule.name == "pumma" else (True, False)
        for seed in range(4):
            X, y = clouds(n=30, d=3, seed=seed, gap=0.2 + seed)
            X = X * 10.0 ** (seed - 2)
            for free in free_rules:
                model = OnlineMarginClassifier(rule, C=C, fit_intercept=free, trail="last")
                problem = Problem("squared_hinge", C, intercept="free" if free else "none")
                for end in (9, 30):
                    batches(model, X[model.n_seen_ if hasattr(model, "classes_") else 0 : end],
                            y[model.n_seen_ if hasattr(model, "classes_") else 0 : end], 4)  # fmt: skip
                    signs = np.where(y[:end] == 1, 1.0, -1.0)
                    truth = optimum(problem, X[:end], signs, np.ones(end))
                    assert model.bounds_.upper[0] >= truth.lower
                    assert model.bounds_.lower[0] <= truth.upper

    def test_bounds_hold_over_several_passes(self):
        X, y = clouds(n=30, d=3)
        truth = optimum(Problem("squared_hinge", 1.0), X, np.where(y == 1, 1.0, -1.0), np.ones(30))
        for rule in (*ALGORITHMS[:1], *ALGORITHMS[-3:]):
            model = OnlineMarginClassifier(rule, C=1.0, max_iter=20).fit(X, y)
            assert model.bounds_.lower[0] <= truth.upper
            assert model.bounds_.upper[0] >= truth.lower

    def test_upper_bound_is_near_the_optimum_after_convergence(self):
        X, y = clouds(n=200, d=3, gap=3.0)
        truth = optimum(Problem("squared_hinge", np.inf), X, np.where(y == 1, 1.0, -1.0), np.ones(200))
        model = OnlineMarginClassifier(PUMMA(delta=0.01), max_iter=1000).fit(X, y)
        assert float(truth.lower) <= model.bounds_.upper[0] <= 1.02 * float(truth.upper)

    def test_bounds_are_trivial_for_rows_of_one_class(self):
        X, y = clouds()
        one = y == 1
        for rule in ALGORITHMS:
            model = OnlineMarginClassifier(rule).partial_fit(X[one], y[one], classes=[0, 1])
            assert (model.bounds_.lower[0], model.bounds_.upper[0]) == (-np.inf, np.inf)
            model = OnlineMarginClassifier(rule, C=1.0).partial_fit(X[one], y[one], classes=[0, 1])
            assert (model.bounds_.lower[0], model.bounds_.upper[0]) == (0.0, 0.0)


class TestHashing:
    ROWS = [{"a": 1.0, "b": 2.5}, {"c": -1.0}, {"a": 0.5, "d": 3.0}, {}, {"long name": 1.0}] * 8
    Y = np.array([1, 0, 1, 0, 1] * 8)

    @pytest.mark.parametrize("hasher", [64, FeatureHasher(64), FeatureHasher(64, alternate_sign=False)])
    def test_hashed_fit_equals_a_fit_on_transformed_rows(self, hasher):
        rows = (FeatureHasher(hasher) if isinstance(hasher, int) else hasher).transform(self.ROWS)
        hashed = OnlineMarginClassifier(hasher=hasher)
        wide = OnlineMarginClassifier()
        for k in range(0, 40, 6):
            hashed.partial_fit(self.ROWS[k : k + 6], self.Y[k : k + 6], classes=[0, 1])
            wide.partial_fit(rows[k : k + 6], self.Y[k : k + 6], classes=[0, 1])
        assert np.array_equal(state_vector(hashed), state_vector(wide))
        assert np.array_equal(hashed.predict(self.ROWS), wide.predict(rows))
        assert hashed.coef_.shape == (1, 64)

    @pytest.mark.parametrize("kind", ["pair", "string"])
    def test_pairs_and_strings_equal_a_fit_on_transformed_rows(self, kind):
        rows = [[(name, v) for name, v in row.items()] if kind == "pair" else list(row) for row in self.ROWS]
        hasher = FeatureHasher(32, input_type=kind)
        model = OnlineMarginClassifier(hasher=hasher, max_iter=2, random_state=0).fit(rows, self.Y)
        wide = OnlineMarginClassifier(max_iter=2, random_state=0).fit(hasher.transform(rows), self.Y)
        assert np.array_equal(state_vector(model), state_vector(wide))

    def test_sparse_columns_are_hashed_by_their_number(self):
        rng = np.random.default_rng(0)
        narrow = sp.random(20, 10, 0.4, format="csr", random_state=0)
        broad = sp.random(20, 10_000, 0.001, format="csr", random_state=1)
        y = rng.integers(0, 2, 20)
        y[:2] = 0, 1
        hashed, named = OnlineMarginClassifier(hasher=16), OnlineMarginClassifier(hasher=16)
        for X in (narrow, broad):
            rows = [{str(j): v for j, v in zip(row.indices, row.data, strict=True)} for row in X]
            hashed.partial_fit(X, y, classes=[0, 1])
            named.partial_fit(rows, y, classes=[0, 1])
            np.testing.assert_allclose(hashed.decision_function(X), named.decision_function(rows))
        np.testing.assert_allclose(state_vector(hashed), state_vector(named))


class TestRefusals:
    @pytest.mark.parametrize(
        ("algorithm", "message"),
        [
            ("mpu", "'mpu' cannot learn from a stream, which brings a pattern only once: it takes back what"),
            ("dcd", "'dcd' cannot learn from a stream, .*: it moves the dual weight of a pattern a little"),
            pytest.param(
                "pegasos",
                "'pegasos' cannot learn from a stream, .*: it draws patterns at random",
                marks=pytest.mark.skipif("pegasos" not in REGISTERED, reason="there is no Pegasos"),
            ),
            ("cutting-plane", "'cutting-plane' cannot learn from a stream, .*: every plane is made of all"),
            ("lp", "'lp' cannot learn from a stream, .*: a linear program is one of all patterns"),
            ("fixed-margin", "fixed-margin without beta takes a share of a margin"),
            (
                "cramma",
                r"cramma without eta .* no theorem covers .*: give a rate, CRAMMA\(eta=0.1\) for instance",
            ),
            ("micra", r"micra without eta .* which a stream has not, .*: give a rate, MICRA\(eta=0.3\) for"),
            (
                FixedDirectionalMargin(beta=0.1),
                r"fixed-margin without eta takes its rate .*\(beta=0.01, eta=0.1\)",
            ),
            ("smo", "algorithm must be 'auto', one of 'perceptron', "),
            (3, r"algorithm must be a name or a rule object such as ALMA\(\); got 3"),
        ],
    )
    def test_rules_that_need_repeated_patterns_are_refused(self, algorithm, message):
        X, y = clouds()
        for learn in (OnlineMarginClassifier(algorithm).fit, OnlineMarginClassifier(algorithm).partial_fit):
            with pytest.raises(ValueError, match=message):
                learn(X, y, **({"classes": [0, 1]} if learn.__name__ == "partial_fit" else {}))

    @pytest.mark.parametrize(
        ("parameters", "message"),
        [
            ({"C": 0.0}, "C must be a positive number, or inf"),
            ({"trail": "mean"}, 'trail must be "average", "vote" or "last"; got \'mean\''),
            ({"n_voters": 1}, "n_voters must be a whole number of at least 2; got 1"),
            ({"max_iter": 0}, "max_iter must be a whole number of at least 1; got 0"),
            ({"intercept_scaling": 0.0}, "intercept_scaling must be a positive, finite number"),
            ({"radius": -1.0}, "radius must be a positive, finite number, or None; got -1"),
            ({"hasher": "x"}, "hasher must be a FeatureHasher, a positive number of columns, or None"),
            ({"algorithm": "pumma", "fit_intercept": False}, "'pumma' needs fit_intercept=True"),
        ],
    )
    def test_invalid_parameters_are_refused(self, parameters, message):
        with pytest.raises(ValueError, match=message):
            OnlineMarginClassifier(**parameters).fit(*clouds())

    def test_classes_must_be_given_once_and_not_change(self):
        X, y = clouds()
        model = OnlineMarginClassifier()
        with pytest.raises(ValueError, match="classes must be passed on the first call to partial_fit"):
            model.partial_fit(X, y)
        with pytest.raises(ValueError, match="y holds 1, which is none of the classes announced: \\[0, 2\\]"):
            model.partial_fit(X, y, classes=[0, 2])
        with pytest.raises(ValueError, match="at least 2 classes; got 1 class"):
            model.partial_fit(X, y, classes=[0])
        model.partial_fit(X, y, classes=[0, 1])
        with pytest.raises(ValueError, match="is not the same as on the first call"):
            model.partial_fit(X, y, classes=[0, 2])
        with pytest.raises(ValueError, match="y holds 5, which is none of the classes"):
            model.partial_fit(X, np.full(len(y), 5))
        assert model.n_seen_ == len(y)

    def test_classes_may_be_a_column(self):
        X, y = clouds()
        model = OnlineMarginClassifier().partial_fit(X, y, classes=np.array([[1], [0]]))
        assert model.classes_.tolist() == [0, 1]

    def test_rows_that_are_not_finite_are_refused_without_effect(self):
        X, y = clouds()
        for data in (X, sp.csr_matrix(X)):
            model = batches(OnlineMarginClassifier(), data, y, 50)
            bad = data.copy()
            bad[3, 0] = np.nan
            before = state_vector(model)
            with pytest.raises(ValueError, match="NaN"):
                model.partial_fit(bad, y)
            with pytest.raises(ValueError, match="overflow"):
                model.partial_fit(data * 1e200, y)
            assert np.array_equal(state_vector(model), before)

    @pytest.mark.parametrize("bad", ["overflow", "nan", "classes", "parameter", "columns"])
    def test_failed_calls_leave_the_model_unchanged(self, bad):
        X, y = clouds()

        def fail(model, learn):
            rows, labels = X, y
            if bad == "overflow":
                rows = X * 1e200
            elif bad == "nan":
                rows = np.where(X > 1.0, np.nan, X)
            elif bad == "classes":
                labels = np.full(len(y), 0 if learn == "fit" else 7)
            elif bad == "columns":
                rows, labels = X[:, :3], y[:-1]
            elif bad == "parameter":
                model.set_params(C=-1.0)
            with pytest.raises(ValueError):  # noqa: PT011 the messages are tested elsewhere
                getattr(model, learn)(rows, labels, **({"classes": [0, 1]} if learn == "partial_fit" else {}))
            model.set_params(C=np.inf)

        for learn in ("fit", "partial_fit"):
            fresh = OnlineMarginClassifier()
            before = dict(vars(fresh))
            fail(fresh, learn)
            assert vars(fresh) == before
            with pytest.raises(NotFittedError):
                fresh.predict(X)
            fresh.partial_fit(
                X[:, :2], np.where(y == 1, "b", "a"), classes=["a", "b"]
            )  # other data than in the failed call
            model = batches(OnlineMarginClassifier(), X, y, 50)
            kept, attributes = state_vector(model), dict(vars(model))
            fail(model, learn)
            assert np.array_equal(state_vector(model), kept)
            assert vars(model).keys() == attributes.keys()
            assert all(vars(model)[name] is value for name, value in attributes.items() if name[-1] == "_")
            assert np.array_equal(state_vector(model.partial_fit(X, y)), state_vector(batches(batches(
                OnlineMarginClassifier(), X, y, 50), X, y, 200)))  # fmt: skip

    def test_ctrl_c_takes_effect_after_all_classes_were_updated(self, monkeypatch):
        X, y = clouds(classes=3)
        model = batches(OnlineMarginClassifier(), X[:100], y[:100], 10)
        whole = batches(OnlineMarginClassifier(), X, y, 10)
        original, calls = Stream.present, []

        def present(self, *arguments):
            calls.append(1)
            if len(calls) == 2:
                os.kill(os.getpid(), signal.SIGINT)
            original(self, *arguments)

        monkeypatch.setattr(Stream, "present", present)
        with pytest.raises(KeyboardInterrupt):
            model.partial_fit(X[100:], y[100:])
        assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
        assert np.array_equal(state_vector(model), state_vector(whole))

    def test_sample_weights_are_refused(self):
        X, y = clouds()
        for learn in (OnlineMarginClassifier().fit, OnlineMarginClassifier().partial_fit):
            assert "sample_weight" in learn.__doc__
            with pytest.raises(TypeError, match="sample_weight"):
                learn(X, y, sample_weight=np.ones(len(y)))


class TestBegin:
    def test_begin_prepares_partial_fit(self):
        X, y = clouds()
        model = OnlineMarginClassifier()
        model.begin(np.array([1, 0]), 5)
        assert (model.n_seen_, model.n_features_in_, model.classes_.tolist()) == (0, 5, [0, 1])
        assert model.predict(X).shape == y.shape
        assert np.array_equal(
            state_vector(model.partial_fit(X, y)), state_vector(batches(OnlineMarginClassifier(), X, y, 200))
        )
        model.begin([0, 1], 3)
        with pytest.raises(ValueError, match=r"5 features, but .* is expecting 3"):
            model.partial_fit(X, y)
        assert np.isfinite(state_vector(model.partial_fit(X[:, :3], y))).sum() > 4
        hashed = OnlineMarginClassifier(hasher=16)
        hashed.begin(["a", "b"], 16)
        assert hashed.partial_fit([{"x": 1.0}], ["a"]).n_seen_ == 1

    def test_invalid_arguments_of_begin_are_refused(self):
        for arguments, message in (
            (([0], 5), "at least 2 classes; got 1 class"),
            (([0, 1], 0), "width must be a positive number of columns; got 0"),
            (([0, 1], 2.5), "width must be a positive number of columns; got 2.5"),
        ):
            model = OnlineMarginClassifier()
            with pytest.raises(ValueError, match=message):
                model.begin(*arguments)
            assert "_streams" not in vars(model)
        with pytest.raises(ValueError, match="the hasher makes 16 columns, not 5"):
            OnlineMarginClassifier(hasher=16).begin([0, 1], 5)


class TestModelFiles:
    @pytest.mark.parametrize("trail", TRAILS)
    @pytest.mark.parametrize("rule", ["auto", LocalPerceptron(b=0.5), PUMMA(delta=0.2)])
    def test_loaded_stream_continues_identically(self, rule, trail, tmp_path):
        X, y = clouds(classes=3)
        model = OnlineMarginClassifier(rule, C=1.0, trail=trail, n_voters=4)
        batches(model, X[:90], y[:90], 10)
        save(model, tmp_path / "m")
        again = load(tmp_path / "m")
        assert repr(again) == repr(model)
        assert np.array_equal(state_vector(again), state_vector(model))
        assert np.array_equal(again.predict(X), model.predict(X))
        assert np.array_equal(
            state_vector(batches(again, X[90:], y[90:], 7)), state_vector(batches(model, X[90:], y[90:], 10))
        )

    def test_class_names_and_hashers_survive_model_files(self, tmp_path):
        rows, y = TestHashing.ROWS, np.where(TestHashing.Y > 0, "yes", "no")
        for hasher in (64, FeatureHasher(32, dtype=np.float32)):
            model = OnlineMarginClassifier(hasher=hasher).partial_fit(rows, y, classes=["no", "yes"])
            save(model, tmp_path / "m")
            again = load(tmp_path / "m")
            assert np.array_equal(again.predict(rows), model.predict(rows))
            assert repr(again.hasher) == repr(model.hasher)
            assert np.array_equal(
                state_vector(again.partial_fit(rows, y)), state_vector(model.partial_fit(rows, y))
            )


def test_invalid_rows_for_a_hasher_are_refused():
    model = OnlineMarginClassifier(hasher=16).fit([{"a": 1.0}, {"b": 1.0}], ["x", "y"])
    for rows in ([{"a": np.nan}], [{"a": np.inf}], sp.csr_matrix([[np.nan]])):
        with pytest.raises(ValueError, match="Rows hold NaN or infinity: leave these features out"):
            model.predict(rows)
    with pytest.raises(ValueError, match="a CSR matrix of any width: give scipy"):
        OnlineMarginClassifier(hasher=16).fit(np.eye(2), [0, 1])


@pytest.mark.parametrize(
    ("hasher", "rows", "remedy"),
    [
        (16, pd.DataFrame({"a": [1.0, 2.0]}), r'each a dict .*: give X.to_dict\("records"\) of this table'),
        (16, {"a": 1.0}, r"for one row, give \[X\]"),
        (16, "a b", r"for one row, give \[X\]"),
        (16, [[1.0, 2.0], [3.0, 4.0]], r"a list of rows, each a dict .*: these rows are something else \("),
        (16, [{"a": 1.0}, None], "these rows are something else"),
        (16, [{"a": [1.0]}, {"a": [2.0]}], "these rows are something else"),
        (16, [], r"these rows are something else \(Cannot vectorize empty sequence\)"),
        (16, 3, "these rows are something else"),
        (FeatureHasher(16, input_type="pair"), [{"a": 1.0}, {"b": 2.0}], "a list of pairs, .*: these rows are"),
        (FeatureHasher(16, input_type="string"), ["a", "b"], r"a list of words, \['tall', 'red'\].*: these rows are"),
        (FeatureHasher(16, input_type="string"), [], r"these rows are something else \(there is no row\)"),
        (16, np.eye(2), r"or a CSR matrix of any width: give scipy.sparse.csr_matrix\(X\)"),
    ],
)  # fmt: skip
def test_rows_of_wrong_type_for_a_hasher_are_refused_with_the_remedy(hasher, rows, remedy):
    for learn in ("fit", "partial_fit", "predict"):
        model = OnlineMarginClassifier(hasher=hasher)
        if learn == "predict":
            model.begin([0, 1], 16)
        arguments = {"fit": (rows, [0, 1]), "partial_fit": (rows, [0, 1], [0, 1]), "predict": (rows,)}[learn]
        with pytest.raises(ValueError, match=remedy):
            getattr(model, learn)(*arguments)


def test_matrix_without_entries_equals_empty_rows():
    """Rows without entries need no hashing."""
    some, nothing = sp.csr_matrix([[1.0, 0.0], [0.0, 1.0]]), sp.csr_matrix((3, 7))
    model = OnlineMarginClassifier(hasher=16).partial_fit(nothing, [0, 1, 0], classes=[0, 1])
    model.partial_fit(some, [0, 1]).partial_fit(nothing, [1, 1, 0])
    named = OnlineMarginClassifier(hasher=16).partial_fit([{}] * 3, [0, 1, 0], classes=[0, 1])
    named.partial_fit([{"0": 1.0}, {"1": 1.0}], [0, 1]).partial_fit([{}] * 3, [1, 1, 0])
    np.testing.assert_allclose(state_vector(model), state_vector(named))
    assert model.predict(nothing).tolist() == named.predict([{}] * 3).tolist()
    assert OnlineMarginClassifier(hasher=16).fit(nothing, [0, 1, 0]).predict(nothing).shape == (3,)


@pytest.mark.parametrize(
    ("name", "value"), [("C", 1.0), ("algorithm", "alma"), ("intercept_scaling", 1.0), ("trail", "last")]
)
def test_parameters_of_a_stream_cannot_change_after_its_start(name, value):
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(40, 3)), np.arange(40) % 2
    clf = OnlineMarginClassifier().partial_fit(X, y, classes=[0, 1])
    before = clf.coef_.copy()
    clf.set_params(**{name: value})
    with pytest.raises(ValueError, match=f"{name} was .* when this stream began.*fit"):
        clf.partial_fit(X, y)
    np.testing.assert_array_equal(clf.coef_, before)
    clf.fit(X, y)  # restarts
    clf.partial_fit(X, y)
