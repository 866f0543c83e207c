"""Fits of rows larger than memory: bounds of the same problem, whatever the storage, and whatever happens in passes."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse as sp
from effort import examples, thorough
from hypothesis import given, settings
from hypothesis import strategies as st
from tables import stored

from maxmargin import CertificateError, MaxMarginClassifier, load, save, verify

LOSSES = ("hinge", "squared_hinge")
NEWTON, LOOPS = "partitioned-newton", "cached-loops"


def bracket(model, other):
    """Return whether each lower bound is below the upper bound of the other model of the same problem."""
    pairs = zip(model.certificate_.certificates, other.certificate_.certificates, strict=True)
    return all(a.lower <= b.upper * (1 + 1e-12) and b.lower <= a.upper * (1 + 1e-12) for a, b in pairs)


def normal(n=20_000, d=5, seed=0, noise=1.0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d))
    return X, (X @ rng.normal(size=d) + noise * rng.normal(size=n) > 0.0).astype(int)


def text(n=240, d=60, classes=2, seed=0):
    """Return sparse rows with noisy labels, and weights of which some are 0."""
    rng = np.random.default_rng(seed)
    X = sp.random(n, d, 0.1, "csr", rng=rng, data_rvs=rng.standard_normal)
    scores = X @ rng.standard_normal((d, classes)) + 0.7 * rng.standard_normal((n, classes))
    weights = rng.integers(0, 4, n) * rng.uniform(0.5, 1.5, n)
    return sp.csr_matrix(X), (scores + np.arange(classes)).argmax(axis=1), weights


@st.composite
def problems(draw):
    """Return rows, labels, weights and parameters of a classifier."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    n, d, k = draw(st.integers(60, 150)), draw(st.integers(1, 6)), draw(st.integers(2, 3))
    X = rng.normal(size=(n, d)) * 10.0 ** rng.integers(-2, 3, d)
    noise = draw(st.sampled_from((0.1, 1.0))) * rng.normal(size=(n, k))
    y = np.argmax(X @ rng.normal(size=(d, k)) / np.abs(X).max() + noise, axis=1)
    y[:k] = np.arange(k)
    if draw(st.booleans()):
        order = np.argsort(y, kind="stable")
        X, y = X[order], y[order]
    weights = rng.choice([0.0, 0.5, 1.0, 3.0], size=n) if draw(st.booleans()) else None
    if weights is not None:
        for label in range(k):
            weights[np.flatnonzero(y == label)[0]] = 1.0
    parameters = {
        "loss": draw(st.sampled_from(LOSSES)), "C": draw(st.sampled_from((0.01, 1.0, 100.0))),
        "intercept_scaling": draw(st.sampled_from((None, 1.0))), "fit_intercept": draw(st.booleans()),
        "class_weight": draw(st.sampled_from((None, "balanced"))), "tol": 1e-4, "random_state": 0,
    }  # fmt: skip
    return sp.csr_matrix(X) if draw(st.booleans()) else X, y, weights, parameters


@thorough
@settings(max_examples=examples(4, 200))
@given(problem=problems(), share=st.sampled_from((0.1, 0.15)))
def test_bounds_are_those_of_the_same_problem_in_memory(problem, share):
    X, y, weights, parameters = problem
    memory = share * 60.0 * X.shape[0] * (X.shape[1] + 1)
    found = MaxMarginClassifier(memory=memory, max_iter=4, **parameters).fit(X, y, weights)
    assert found.history_[0].stage in (NEWTON, LOOPS)
    assert bracket(found, MaxMarginClassifier(**parameters).fit(X, y, weights))
    proved = verify(found, X, y, weights)
    assert found.certificate_.gap <= 1e-4 or found.status_ in ("STALLED", "MAX_ITER")
    for claim, recomputed in zip(found.certificate_.certificates, proved.certificates, strict=True):
        assert recomputed.upper == pytest.approx(claim.upper, rel=1e-9)


@pytest.mark.parametrize(("loss", "C"), [("hinge", 0.01), ("hinge", 100.0), ("squared_hinge", 1.0)])
def test_few_passes_certify_a_small_gap(loss, C):
    X, y = normal(30_000, 10, noise=2.0)
    for rows in (slice(None), np.argsort(y, kind="stable")):
        model = MaxMarginClassifier(C=C, loss=loss, tol=1e-4, memory=1e6, random_state=0)
        model.fit(X[rows], y[rows])
        assert model.status_ == "CERTIFIED"
        assert model.n_iter_ == len(model.history_) <= 8
        assert model.history_[-1].presentations == model.n_iter_ * 30_000


@pytest.mark.parametrize("weight", [1e-6, 1e6])
def test_rows_near_the_margin_are_gathered_by_their_number(weight):
    """Weights of all rows, and a C divided by them, are the same problem and take the same passes."""
    X, y = normal(30_000, 10, noise=2.0)
    model = MaxMarginClassifier(C=1.0 / weight, loss="hinge", tol=1e-4, memory=1e6, random_state=0)
    model.fit(X, y, np.full(30_000, weight))
    assert model.status_ == "CERTIFIED"
    assert model.n_iter_ <= 8


@pytest.mark.parametrize(("loss", "classes", "C"), [("hinge", 2, 3.0), ("squared_hinge", 3, 0.1)])
def test_sparse_rows_of_many_columns_are_certified(loss, classes, C, tmp_path):
    """Also with blocks of one class, and with dual variables in a temporary file."""
    X, y, weights = text(classes=classes)
    parameters = {"loss": loss, "C": C, "tol": 1e-4, "random_state": 0, "cache_dir": tmp_path}
    passes = []
    for rows in (slice(None), np.argsort(y, kind="stable")):
        found = MaxMarginClassifier(memory="30KB", **parameters).fit(X[rows], y[rows], weights[rows])
        assert found.status_ == "CERTIFIED"
        assert {report.stage for report in found.history_} == {LOOPS}
        passes.append(found.n_iter_)
        assert bracket(found, MaxMarginClassifier(**parameters).fit(X, y, weights))
        proved = verify(found, X[rows], y[rows], weights[rows])
        assert max(part.gap for part in proved.certificates) <= 1.01e-4
    assert max(passes) < 100
    assert passes[1] <= 2 * passes[0]
    assert not list(tmp_path.iterdir())


def test_cached_loops_take_over_where_newton_stalls():
    """Of rows of whole numbers more have the same margin than fit in memory."""
    rng = np.random.default_rng(3)
    X, y = np.round(rng.normal(size=(2_000, 4))), rng.normal(size=2_000)
    model = MaxMarginClassifier(loss="hinge", tol=1e-10, memory="20KB", max_iter=60, random_state=0)
    model.fit(X, X[:, 0] + 3.0 * y > 0.0)
    stages = [report.stage for report in model.history_]
    assert (stages[0], stages[-1]) == (NEWTON, LOOPS)
    assert [report.round for report in model.history_] == list(range(1, len(stages) + 1))
    assert model.certificate_.gap <= min(report.gap for report in model.history_)
    assert verify(model, X, X[:, 0] + 3.0 * y > 0.0).gap <= 1e-6


@pytest.mark.parametrize("rows", [normal(3_000, 3), text(600, 60, 3)[:2]], ids=["dense", "sparse"])
def test_stopped_fits_keep_bounds_that_hold(rows):
    X, y = rows
    parameters = {"loss": "hinge", "memory": "20KB", "tol": 1e-9, "random_state": 0}
    exact = MaxMarginClassifier(loss="hinge", tol=1e-6).fit(X, y)
    for last in (1, 2):
        model = MaxMarginClassifier(**parameters, callback=lambda r, k=last: r.round >= k).fit(X, y)
        assert model.status_ == "INTERRUPTED"
        assert len({report.round for report in model.history_}) == last
        assert bracket(model, exact)
        verify(model, X, y)
    model = MaxMarginClassifier(memory="20KB", max_time=1e-6).fit(X, y)
    assert model.status_ == "MAX_TIME"
    assert all(part.proves_nothing for part in model.certificate_.certificates)
    assert np.isfinite(model.coef_).all()


def test_many_classes_are_solved_one_after_another():
    X, y = np.random.default_rng(0).normal(size=(1_500, 2)), np.arange(1_500) % 30
    model = MaxMarginClassifier(memory="30KB", class_weight="balanced", random_state=0).fit(X, y)
    assert model.history_[0].stage == NEWTON
    np.testing.assert_array_equal(model.class_weight_, 1.0)
    assert verify(model, X, y).gap <= 1e-3


def test_memory_maps_and_files_give_the_model_of_the_array(tmp_path):
    X, y = normal(300_000, 6)
    X = X.astype(np.float32)
    np.save(tmp_path / "X.npy", X)
    mapped, files = np.load(tmp_path / "X.npy", mmap_mode="r"), stored(tmp_path / "a.parquet", X, y)
    model = MaxMarginClassifier(loss="hinge", memory="300KB", random_state=3, cache_dir=tmp_path)
    expected = model.fit(X, y).coef_
    assert model.status_ == "CERTIFIED"
    np.testing.assert_array_equal(model.fit(mapped, y).coef_, expected)
    np.testing.assert_array_equal(model.fit(*files).coef_, expected)
    assert verify(model, *files).gap <= 1e-3
    part = model.fit(X[1000:], y[1000:]).coef_
    np.testing.assert_array_equal(model.fit(mapped[1000:], y[1000:]).coef_, part)
    (tmp_path / "X.npy").unlink()  # the map stays
    np.testing.assert_array_equal(model.fit(mapped[1000:], y[1000:]).coef_, part)


@pytest.mark.parametrize("kind", ["i1", "?", "f2"])
def test_whole_numbers_booleans_and_half_precision_are_converted_by_block(tmp_path, kind):
    rng = np.random.default_rng(4)
    X = np.round(8.0 * rng.random(size=(20_000, 6))).astype(kind)
    y = (X.astype(float) @ rng.normal(size=6) + rng.normal(size=20_000) > 0.0).astype(int)
    np.save(tmp_path / "X.npy", X)
    mapped = np.load(tmp_path / "X.npy", mmap_mode="r")
    found, expected = (
        MaxMarginClassifier(loss="hinge", memory="300KB", random_state=3).fit(rows, y)
        for rows in (mapped, X.astype(float))
    )
    np.testing.assert_array_equal(found.coef_, expected.coef_)
    assert verify(found, mapped, y).gap == verify(expected, X.astype(float), y).gap


def test_every_sparse_format_and_repeated_entries_are_read():
    rng = np.random.default_rng(9)
    X = rng.normal(size=(4_000, 3))
    y = X @ rng.normal(size=3) + rng.normal(size=4_000) > 0.0
    halves = sp.csr_matrix(
        (np.repeat(0.5 * X.ravel(), 2), np.repeat(np.tile([2, 0, 1], 4_000), 2), 6 * np.arange(4_001)),
        (4_000, 3),
    )
    model = MaxMarginClassifier(loss="hinge", memory="40KB", random_state=0, tol=1e-4)
    plain = sp.csr_matrix(X[:, [1, 2, 0]])
    expected = model.fit(plain, y).coef_
    for rows in (halves, *(plain.asformat(name) for name in ("csc", "coo", "lil"))):
        np.testing.assert_allclose(model.fit(rows, y).coef_, expected, rtol=1e-9)
        assert verify(model, rows, y).gap <= 1e-4


def test_a_model_file_keeps_the_points_that_imply_dual_variables(tmp_path):
    X, y = normal(5_000, 4)
    model = MaxMarginClassifier(loss="hinge", memory="100KB", tol=1e-3, random_state=0).fit(X, y)
    save(model, tmp_path / "model")
    again = load(tmp_path / "model")
    assert verify(again, X, y).gap == verify(model, X, y).gap <= 1e-3
    # another factor is another claim: its dual variables exceed their caps, and are clipped
    claim = again.certificate_
    again.certificate_ = replace(claim, implied=replace(claim.implied, plus=0.5 * claim.implied.plus))
    with pytest.raises(CertificateError, match="lower bound fails"):
        verify(again, X, y)
    with pytest.raises(CertificateError, match="two points"):
        _ = claim.alpha


# what is refused


@pytest.mark.parametrize("parameters", [{"C": np.inf}, {"p": 1}, {"p": "log"}, {"norm_power": 1}], ids=str)
def test_problems_that_passes_do_not_solve_are_refused_with_the_remedy(parameters):
    X, y = normal(200)
    model = MaxMarginClassifier(memory=1000, **parameters)
    with pytest.raises(ValueError, match="a finite C, or fit a sample"):
        model.fit(X, y)
    model.set_params(memory="1GB", max_iter=1).fit(X, y)  # rows that fit are solved in memory


def test_parameters_that_partitioned_fits_do_not_know_are_refused():
    X, y = np.arange(400.0).reshape(200, 2), np.arange(200) % 2
    for parameters, words in (
        ({"algorithm": "mpu"}, "choose algorithm"),
        ({"warm_start": True}, "warm_start=False"),
        ({"memory": "much"}, "'512MB'"),
        ({"class_weight": {0: 0.0}}, "raise the zero weights"),
    ):
        with pytest.raises(ValueError, match=words):
            MaxMarginClassifier(**({"memory": 1000} | parameters)).fit(X, y)
    with pytest.raises(ValueError, match="2 classes"):
        MaxMarginClassifier(memory=1000).fit(X, np.zeros(200))
    for data, words in (
        (("a.csv", "y", np.ones(200)), "no sample weights"),
        (("a.csv", y), "in a column of them"),
    ):
        with pytest.raises(ValueError, match=words):
            MaxMarginClassifier().fit(*data)


@pytest.mark.parametrize("loss", LOSSES)
def test_costs_that_have_lost_digits_are_refused(loss, tmp_path):
    """In each source of rows, as in memory; a certificate of such costs is not verified."""
    X, y = normal(4_000, 2)
    files = stored(tmp_path / "a.parquet", X, y)
    model = MaxMarginClassifier(C=1e-110, loss=loss, memory=100_000, max_iter=3)
    with pytest.raises(ValueError, match=r"C times .*: (change|raise) C"):
        model.fit(*files)
    model.set_params(C=1.0, class_weight={0: 1e-110, 1: 1.0})
    with pytest.raises(ValueError, match=r"C times .*: (change|raise) C"):
        model.fit(*files)
    model.set_params(C=1e-3, class_weight=None).fit(*files)
    model.certificate_ = replace(
        model.certificate_, problem=replace(model.certificate_.problem, C=1e-110), lower=0.0, upper=1.0
    )
    with pytest.raises(CertificateError, match=r"row 0 .*C times .*: (change|raise) C"):
        verify(model, *files)


def test_rows_that_cannot_be_read_are_refused():
    X = sp.random(2_000, 20, 0.3, "csr", random_state=0)
    y = np.arange(2_000) % 2
    for index in (20, -1):  # outside of the matrix
        damaged = sp.csr_matrix(X, copy=True)
        damaged.indices[7] = index
        with pytest.raises(ValueError, match="damaged sparse matrix"):
            MaxMarginClassifier(memory="60KB").fit(damaged, y)
    with pytest.raises(ValueError, match="memory is too small for 20 columns"):
        MaxMarginClassifier(memory="1KB").fit(X, y)
    with pytest.raises(ValueError, match="C times its weight is"):
        MaxMarginClassifier(memory="60KB").fit(X, y, np.where(np.arange(2_000) < 3, 1.0, 5e-324))
    with pytest.raises(ValueError, match="must be a matrix of real numbers"):
        MaxMarginClassifier(memory="10KB").fit(X.toarray().astype(complex), y)
    rows = X.toarray()
    for value, remedy in ((np.nan, "fill it in"), (np.inf, "correct it")):
        rows[1234, 1] = value
        with pytest.raises(ValueError, match=rf"row 1234 \(counted from 0\): column 1 is {value}; {remedy}"):
            MaxMarginClassifier(memory="20KB", random_state=0).fit(rows, y)


def test_rows_that_change_between_passes_are_noticed(tmp_path):
    np.save(tmp_path / "X.npy", normal(3_000, 3)[0])
    X, y = np.load(tmp_path / "X.npy", mmap_mode="r+"), np.arange(3_000) % 2

    def change(report):
        X[2_000:] += 1.0
        X.flush()

    model = MaxMarginClassifier(memory="20KB", tol=1e-9, random_state=0, callback=change)
    with pytest.raises(ValueError, match="the rows changed while they were read"):
        model.fit(X, y)
    assert not hasattr(model, "coef_")


@pytest.mark.parametrize("parameters", [{"p": np.inf}, {"p": 1, "norm_power": 1}, {"C": np.inf}], ids=str)
@pytest.mark.parametrize("classes", [2, 3])
def test_models_of_other_problems_are_verified_on_files(parameters, classes, tmp_path):
    X = np.random.default_rng(0).normal(size=(300, 6))
    y = X[:, :classes].argmax(axis=1)
    if "C" in parameters:  # separable
        X = X + 9.0 * np.eye(6)[y]
    found = MaxMarginClassifier(tol=1e-4, **parameters).fit(X, y)
    files = stored(tmp_path / "a.parquet", X, y)
    there, here = verify(found, *files), verify(found, X, y)
    for one, other in zip(here.certificates, there.certificates, strict=True):
        np.testing.assert_allclose([one.lower, one.upper], [other.lower, other.upper], rtol=1e-9)
    claim = found.certificate_
    if classes == 2:
        for name, factor in (("lower", 1.001), ("upper", 0.999)):
            found.certificate_ = replace(claim, **{name: getattr(claim, name) * factor})
            with pytest.raises(CertificateError, match=f"the {name} bound fails"):
                verify(found, *files)
    stored(files[0], X + 1e-3, y)
    found.certificate_ = claim
    with pytest.raises(CertificateError, match="other data"):
        verify(found, *files)


def test_proofs_that_there_is_no_separator_are_verified_on_files(tmp_path):
    X, y = normal(500, 3)
    files = stored(tmp_path / "a.parquet", X, y)
    found = MaxMarginClassifier(C=np.inf, memory="1GB").fit(*files)
    assert found.status_ == "INSEPARABLE"
    verify(found, *files)
    weights = (2 * found.verdict_.weights[0], *found.verdict_.weights[1:])
    found.verdict_ = replace(found.verdict_, weights=weights)
    with pytest.raises(CertificateError, match="the proof fails"):
        verify(found, *files)
