"""Fits of partitioned rows: bounds of the same problem, wherever the rows are, and whatever happens between passes."""

from __future__ import annotations

import warnings
from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse as sp
from effort import examples, thorough
from hypothesis import given, settings
from hypothesis import strategies as st

from maxmargin import MaxMarginClassifier, load, save, verify
from maxmargin.certificates.certificate import CertificateError
from maxmargin.certificates.verification import verify_verdicts
from maxmargin.data.partitions import ArrayPartitions, Partition
from maxmargin.estimators.partitioned import encode_labels, fit_partitions, weights_of_classes
from maxmargin.fit.deadline import Deadline
from maxmargin.fit.partitioned.bounds import dual_side, objective_side
from maxmargin.fit.partitioned.coordinates import Coordinates
from maxmargin.fit.partitioned.sums import Block

LOSSES = ("hinge", "squared_hinge")


def partitioned_fit(model, X, y, weights=None, blocks=3):
    """Fit a model to rows that are read in about so many blocks, of which its memory holds a part."""
    classes = np.unique(y if weights is None else y[weights > 0.0])
    codes, totals = encode_labels(y, weights, classes)
    problem = model._problem()
    factors = weights_of_classes(model, problem, classes, totals)
    row_bytes = 12.0 * X.nnz / X.shape[0] + 8.0 if sp.issparse(X) else 8.0 * X.shape[1]
    size = int(row_bytes * -(-X.shape[0] // blocks))
    partitions = ArrayPartitions(X, codes, weights, factors, block_bytes=max(size, 1))
    model.n_features_in_ = X.shape[1]
    fit_partitions(model, problem, partitions, classes, factors, Deadline(model.max_time))
    return model


def bracket(model, other):
    """Return whether each lower bound is below the upper bound of the other model of the same problem."""
    pairs = zip(model.certificate_.certificates, other.certificate_.certificates, strict=True)
    return all(a.lower <= b.upper * (1 + 1e-12) and b.lower <= a.upper * (1 + 1e-12) for a, b in pairs)


@st.composite
def problems(draw):
    """Return rows, labels, weights, parameters of a classifier, and a number of blocks."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    n, d, k = draw(st.integers(12, 150)), draw(st.integers(1, 6)), draw(st.integers(2, 3))
    X = rng.normal(size=(n, d)) * 10.0 ** rng.integers(-2, 3, d)
    scores = X @ rng.normal(size=(d, k)) / np.abs(X).max() + draw(st.sampled_from((0.1, 1.0))) * rng.normal(
        size=(n, k)
    )
    y = np.argmax(scores, axis=1)
    y[:k] = np.arange(k)
    if draw(st.booleans()):  # rows of one class in each block
        order = np.argsort(y, kind="stable")
        X, y = X[order], y[order]
    weights = rng.choice([0.0, 0.5, 1.0, 3.0], size=n) if draw(st.booleans()) else None
    if weights is not None:
        for label in range(k):
            weights[np.flatnonzero(y == label)[0]] = 1.0
    parameters = {
        "loss": draw(st.sampled_from(LOSSES)), "C": draw(st.sampled_from((0.01, 1.0, 100.0))),
        "intercept": draw(st.sampled_from(("free", "augmented"))), "fit_intercept": draw(st.booleans()),
        "class_weight": draw(st.sampled_from((None, "balanced"))), "tol": 1e-4, "random_state": 0,
        "p": draw(st.sampled_from((2, 2, 2, 1, np.inf, 3))),
    }  # fmt: skip
    X = sp.csr_matrix(X) if draw(st.booleans()) else X
    return X, y, weights, parameters, draw(st.integers(1, 7))


@thorough
@settings(max_examples=examples(25, 200))
@given(problem=problems(), share=st.sampled_from((0.3, 1.0)))
def test_bounds_are_those_of_the_same_problem_in_memory(problem, share):
    X, y, weights, parameters, blocks = problem
    memory = share * 60.0 * X.shape[0] * (X.shape[1] + 1)
    found = partitioned_fit(
        MaxMarginClassifier(memory=memory, max_iter=30, **parameters), X, y, weights, blocks
    )
    whole = MaxMarginClassifier(**parameters).fit(X, y, weights)
    assert bracket(found, whole)
    proved = verify(found, X, y, weights)
    assert found.certificate_.gap <= 1e-4 or found.status_ in ("STALLED", "MAX_ITER")
    for claim, recomputed in zip(found.certificate_.certificates, proved.certificates, strict=True):
        assert recomputed.upper == pytest.approx(claim.upper, rel=1e-9)


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("C", [0.01, 1.0, 100.0])
def test_few_passes_certify_a_small_gap(loss, C):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(30_000, 10))
    y = np.where(X @ rng.normal(size=10) + 2.0 * rng.normal(size=30_000) > 0.0, "yes", "no")
    order = np.argsort(y, kind="stable")
    for rows in (slice(None), order):
        model = MaxMarginClassifier(C=C, loss=loss, tol=1e-4, memory=1e6, random_state=0)
        model.fit(X[rows], y[rows])
        assert model.status_ == "CERTIFIED"
        assert model.n_iter_ <= 8


@pytest.mark.parametrize("weight", [1e-6, 1e6])
def test_rows_near_the_margin_are_gathered_by_their_number(weight):
    """Weights of all rows, and a C divided by them, are the same problem and take the same passes."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(30_000, 10))
    y = np.where(X @ rng.normal(size=10) + 2.0 * rng.normal(size=30_000) > 0.0, "yes", "no")
    model = MaxMarginClassifier(C=1.0 / weight, loss="hinge", tol=1e-4, memory=1e6, random_state=0)
    model.fit(X, y, np.full(30_000, weight))
    assert model.status_ == "CERTIFIED"
    assert model.n_iter_ <= 8


def lower_bound_of_one_row(C, alpha):
    """Return the bound of one dual variable of a row x = 1 without an intercept; the optimum is C / (1 + 2 C)."""
    coordinates = Coordinates(
        MaxMarginClassifier(C=C, loss="squared_hinge", fit_intercept=False)._problem(), 1
    )
    block, y, z = Block(coordinates, Partition(np.ones((1, 1)), np.array([1]))), np.ones(1), np.array([2 / 3])
    sums = block.bound_sums(y, z, z, block.dual_totals(y, np.array([alpha])))
    found = dual_side(coordinates, sums)
    return -np.inf if found is None else found[0].bound


@pytest.mark.parametrize(
    ("C", "alpha"),
    [(1.0, 0.7), (1.0, 6.732655185893089e-15), (1.0, 1.0576799439787914e-15), (1.0, 3e-100),
     (3e-308, 6e-308), (1e-307, 1e-307), (1e-306, 1e-306)],
)  # fmt: skip
def test_small_dual_variables_prove_no_more_than_the_optimum(C, alpha):
    """The best multiple of alpha attains the optimum."""
    optimum = C / (1.0 + 2.0 * C)
    assert optimum * (1 - 1e-10) <= lower_bound_of_one_row(C, alpha) <= optimum


@pytest.mark.parametrize("alpha", [3.2e-162, 5.3e-162, 1e-161, 1e-155, 1e-152, 1e-120])
@pytest.mark.parametrize("C", [1e-40, 1.0, 1e40])
def test_squares_that_underflow_prove_no_more_than_the_optimum(C, alpha):
    """The best multiple of alpha is large: it multiplies the part of alpha^2 / (4 C) that underflows."""
    optimum = C / (1.0 + 2.0 * C)
    for one in alpha * C**0.5 * np.linspace(0.5, 1.0, 20):
        assert lower_bound_of_one_row(C, one) <= optimum


def test_dual_variables_that_cannot_be_balanced_prove_nothing():
    """The factor of the heavier class has a few digits. Rows of zeros: the optimum is 4 C s t / (s + t) < 4e-17."""
    problem = MaxMarginClassifier(C=1e290, loss="squared_hinge")._problem()
    coordinates, y, z = Coordinates(problem, 1), np.array([-1.0, 1.0]), np.array([0.0, -1.0])
    block = Block(coordinates, Partition(np.zeros((2, 1)), np.array([0, 1]), np.array([1e10, 1e-307])))
    for alpha in np.linspace(1.5e200, 1.6e200, 20):
        sums = block.bound_sums(y, z, y * z[1], block.dual_totals(y, np.array([alpha, 7.8e-118])))
        found = dual_side(coordinates, sums)
        assert found is None or found[0].bound <= 4e-17


def test_the_bound_of_a_point_whose_margins_are_not_numbers_is_infinite():
    coordinates = Coordinates(MaxMarginClassifier(loss="squared_hinge")._problem(), 2)
    block, y = Block(coordinates, Partition(np.full((1, 2), 1e200), np.array([1]))), np.ones(1)
    z = np.array([1e200, -1e200, 0.0])
    with np.errstate(over="ignore", invalid="ignore"):
        sums = block.bound_sums(y, z, coordinates.scores(block.X, z), None)
        assert objective_side(coordinates, sums, z).bound == np.inf


@pytest.mark.parametrize("loss", LOSSES)
def test_costs_that_have_lost_digits_are_refused(loss, tmp_path):
    """In each source of rows, as in memory; a certificate of such costs is not verified."""
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(4_000, 2)), np.arange(4_000) % 2
    np.save(tmp_path / "X.npy", X)
    np.save(tmp_path / "y.npy", y)
    files = str(tmp_path / "X.npy"), str(tmp_path / "y.npy")
    model = MaxMarginClassifier(C=1e-310, loss=loss, memory=100_000, max_iter=3)
    with pytest.raises(ValueError, match="lost its digits: raise C"):
        model.fit(*files)
    model.set_params(C=1.0, class_weight={0: 1e-310, 1: 1.0})
    with pytest.raises(ValueError, match="lost its digits: raise C"):
        model.fit(*files)
    model.set_params(C=1e-3, class_weight=None).fit(*files)
    model.certificate_ = replace(
        model.certificate_, problem=replace(model.certificate_.problem, C=1e-310), lower=0.0, upper=1.0
    )
    with pytest.raises(CertificateError, match=r"row 0 .*lost its digits: raise C"):
        verify(model, *files)


@pytest.mark.parametrize(
    "parameters",
    [{"C": np.inf}, {"C": np.inf, "p": 1}, {"loss": "hinge"}, {"loss": "squared_hinge"}, {"p": np.inf}],
)
@pytest.mark.parametrize("storage", [np.asarray, sp.csr_matrix])
@pytest.mark.filterwarnings("ignore:overflow", "ignore:invalid value", "ignore:divide by zero")
def test_a_huge_entry_is_refused_in_the_sample_or_not(parameters, storage):
    """The sample has a few hundred of 4000 rows, whichever the seed."""
    X, y = np.repeat([[-1.0], [1.0]], 2_000, axis=0) * np.ones(8), np.repeat([0, 1], 2_000)
    X[-1] = 1.7e308
    for seed in range(2):
        model = MaxMarginClassifier(memory=60_000, max_iter=3, random_state=seed, **parameters)
        with pytest.raises(ValueError, match="and its square is beyond float64 numbers: scale the features"):
            model.fit(storage(X), y)


def test_memory_maps_give_the_model_of_the_array(tmp_path):
    rng = np.random.default_rng(1)
    X = rng.normal(size=(60_000, 6)).astype(np.float32)
    y = (X @ rng.normal(size=6) + rng.normal(size=60_000) > 0.0).astype(int)
    np.save(tmp_path / "X.npy", X)
    mapped = np.load(tmp_path / "X.npy", mmap_mode="r")
    parameters = {"loss": "hinge", "memory": "300KB", "random_state": 3}
    models = [MaxMarginClassifier(**parameters).fit(rows, y) for rows in (X, mapped)]
    parts = [MaxMarginClassifier(**parameters).fit(rows[1000:], y[1000:]) for rows in (X, mapped)]
    for one, other in (models, parts):
        np.testing.assert_array_equal(one.coef_, other.coef_)
        assert one.certificate_.lower == other.certificate_.lower


@pytest.mark.parametrize("kind", ["i1", "u2", "i8", "?", "f2"])
def test_whole_numbers_booleans_and_half_precision_are_converted_by_block(tmp_path, kind):
    rng = np.random.default_rng(4)
    X = np.round(8.0 * rng.random(size=(20_000, 6))).astype(kind)
    y = (X.astype(float) @ rng.normal(size=6) + rng.normal(size=20_000) > 0.0).astype(int)
    np.save(tmp_path / "X.npy", X)
    parameters = {"loss": "hinge", "memory": "300KB", "random_state": 3}
    mapped = np.load(tmp_path / "X.npy", mmap_mode="r")
    found = MaxMarginClassifier(**parameters).fit(mapped, y)
    expected = MaxMarginClassifier(**parameters).fit(X.astype(float), y)
    np.testing.assert_array_equal(found.coef_, expected.coef_)
    assert found.history_[0].stage == "partitioned-newton"
    assert verify(found, mapped, y).gap == verify(expected, X.astype(float), y).gap
    if kind != "f2":  # SciPy has no sparse matrices of half precision
        assert bracket(MaxMarginClassifier(**parameters).fit(sp.csr_matrix(X), y), found)


def test_types_without_an_exact_float64_are_refused():
    X = np.ones((20_000, 3), np.int64)
    X[15_000, 1] = 2**53 + 1
    y = np.arange(20_000) % 2
    with pytest.raises(ValueError, match="which no float64 is"):
        MaxMarginClassifier(C=np.inf, memory="100KB").fit(X, y)
    with pytest.raises(ValueError, match="must be a matrix of real numbers"):
        MaxMarginClassifier(memory="100KB").fit(X.astype(complex), y)


def test_repeated_entries_of_sparse_rows_are_added(tmp_path):
    rng = np.random.default_rng(9)
    X = rng.normal(size=(4_000, 3))
    y = X @ rng.normal(size=3) + rng.normal(size=4_000) > 0.0
    halves = sp.csr_matrix(
        (np.repeat(0.5 * X.ravel(), 2), np.repeat(np.tile([2, 0, 1], 4_000), 2), 6 * np.arange(4_001)),
        (4_000, 3),
    )
    parameters = {"loss": "hinge", "memory": "40KB", "random_state": 0, "tol": 1e-4}
    model = MaxMarginClassifier(**parameters).fit(halves, y)
    ordinary = MaxMarginClassifier(**parameters).fit(X[:, [1, 2, 0]], y)
    np.testing.assert_allclose(model.coef_, ordinary.coef_, rtol=0.1)
    assert bracket(model, ordinary)
    assert verify(model, halves, y).gap <= 1e-4


def test_a_model_file_keeps_the_points_that_imply_dual_variables(tmp_path):
    rng = np.random.default_rng(2)
    X = rng.normal(size=(5_000, 4))
    y = np.argmax(X @ rng.normal(size=(4, 3)) + rng.normal(size=(5_000, 3)), axis=1)
    model = MaxMarginClassifier(loss="hinge", memory="100KB", tol=1e-3, random_state=0).fit(X, y)
    save(model, tmp_path / "model")
    again = load(tmp_path / "model")
    assert verify(again, X, y).gap == verify(model, X, y).gap <= 1e-3
    # another factor is another claim: its dual variables exceed their caps, and are clipped
    claim = again.certificate_[0]
    object.__setattr__(claim.implied, "plus", 0.5 * claim.implied.plus)
    with pytest.raises(CertificateError, match="lower bound fails"):
        verify(again, X, y)
    with pytest.raises(CertificateError, match="two points"):
        _ = claim.alpha


@pytest.mark.parametrize("p", [1, 2, 3, np.inf])
def test_hard_margins_need_only_the_rows_of_the_smallest_margins(p):
    rng = np.random.default_rng(3)
    X = rng.normal(size=(10_000, 5))
    scores = X @ rng.normal(size=5)
    X, y = X[np.abs(scores) > 0.3], (scores > 0.0)[np.abs(scores) > 0.3]
    parameters = {"C": np.inf, "p": p, "tol": 1e-3, "random_state": 0}
    found = MaxMarginClassifier(memory="100KB", **parameters).fit(X, y)
    assert found.status_ == "CERTIFIED"
    assert bracket(found, MaxMarginClassifier(**parameters).fit(X, y))
    assert verify(found, X, y).gap <= 1e-3
    y[[7, 70]] = ~y[[7, 70]]
    found = MaxMarginClassifier(memory="100KB", **parameters).fit(X, y)
    assert found.status_ == "INSEPARABLE"
    assert found.verdict_.rows == y.size
    verify_verdicts(found, X, y)


def test_a_class_without_losses_stays_in_memory_in_every_norm():
    """Without an intercept no row of the far class has a dual variable; 1 / |w|_q is reported, q = 3 for p = 1.5."""
    rng, n, reports = np.random.default_rng(0), 4000, []
    X = np.vstack([rng.normal([50.0, 0.0, 0.0], size=(n, 3)), rng.normal([-1.0, 0.0, 0.0], size=(n, 3))])
    found = MaxMarginClassifier(
        C=1.0, p=1.5, fit_intercept=False, memory=20_000, random_state=0, callback=reports.append
    )
    found.fit(X, np.repeat([1, 0], n))
    assert 0.0 < found.certificate_.lower <= found.certificate_.upper
    assert reports[-1].margin == pytest.approx(1.0 / np.linalg.norm(found.coef_[0], 3))


@pytest.mark.parametrize("max_iter", [1, 2, 3, 4])
def test_a_checkpoint_is_deleted_with_the_pass_that_certifies(tmp_path, max_iter):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(6000, 3))
    y = X @ [1.0, 2.0, 3.0] + rng.normal(size=6000) > 0.0
    path = tmp_path / "checkpoint"
    found = MaxMarginClassifier(memory="60KB", tol=1e-2, max_iter=max_iter, checkpoint=path, random_state=0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of fits that end before they are certified
        found.fit(X, y)
    assert path.exists() == (found.status_ != "CERTIFIED")


def test_callbacks_hear_progress_and_end_a_fit_with_valid_bounds():
    rng = np.random.default_rng(4)
    X = rng.normal(size=(20_000, 5))
    y = X @ rng.normal(size=5) + rng.normal(size=20_000) > 0.0
    for last in (1, 2):
        model = MaxMarginClassifier(
            loss="hinge", memory="200KB", tol=1e-9, random_state=0, callback=lambda r, k=last: r.round >= k
        ).fit(X, y)
        assert model.status_ == "INTERRUPTED"
        assert len(model.history_) == last
        assert verify(model, X, y).upper < np.inf
    model = MaxMarginClassifier(memory="200KB", max_time=1e-6).fit(X, y)
    assert model.status_ == "MAX_TIME"
    assert model.certificate_.proves_nothing
    assert verify(model, X, y).upper < np.inf  # that of w = 0


def test_many_classes_share_the_passes():
    X, y = np.random.default_rng(0).normal(size=(1_500, 2)), np.arange(1_500) % 30
    model = MaxMarginClassifier(memory="30KB", class_weight="balanced", random_state=0).fit(X, y)
    assert model.history_[0].stage == "partitioned-newton"
    np.testing.assert_array_equal(model.class_weight_, 1.0)
    assert verify(model, X, y).gap <= 1e-3


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
    with pytest.raises(ValueError, match="least weight of a row"):
        MaxMarginClassifier(memory="60KB").fit(X, y, np.where(np.arange(2_000) < 3, 1.0, 5e-324))


def test_every_sparse_format_is_read():
    X = sp.random(2_000, 20, 0.3, "csr", random_state=0)
    y = np.arange(2_000) % 2
    model = MaxMarginClassifier(memory="100KB", random_state=0)
    expected = model.fit(X, y).coef_
    for name in ("csc", "coo", "lil", "dok", "bsr"):
        np.testing.assert_array_equal(model.fit(X.asformat(name), y).coef_, expected)


def test_an_entry_that_is_not_finite_is_named():
    rng = np.random.default_rng(5)
    X, y = rng.normal(size=(3_000, 3)), np.arange(3_000) % 2
    for value, remedy in ((np.nan, "fill it in"), (np.inf, "correct it")):
        X[1234, 1] = value
        with pytest.raises(ValueError, match=rf"row 1234 \(counted from 0\): column 1 is {value}; {remedy}"):
            MaxMarginClassifier(memory="20KB", random_state=0).fit(X, y)


def test_rows_that_change_between_passes_are_noticed(tmp_path):
    rng = np.random.default_rng(6)
    np.save(tmp_path / "X.npy", rng.normal(size=(3_000, 3)))
    X, y = np.load(tmp_path / "X.npy", mmap_mode="r+"), np.arange(3_000) % 2

    def change(report):
        X[2_000:] += 1.0
        X.flush()

    model = MaxMarginClassifier(memory="20KB", tol=1e-9, random_state=0, callback=change)
    with pytest.raises(ValueError, match="the rows changed while they were read"):
        model.fit(X, y)
    assert not hasattr(model, "coef_")


def test_parameters_that_partitioned_fits_do_not_know_are_refused():
    X, y = np.arange(400.0).reshape(200, 2), np.arange(200) % 2
    for parameters, words in (
        ({"algorithm": "mpu"}, "choose the algorithm themselves"),
        ({"point": "last"}, "return the best point"),
        ({"warm_start": True}, "start from a sample"),
        ({"memory": "much"}, "'512MB'"),
    ):
        with pytest.raises(ValueError, match=words):
            MaxMarginClassifier(**({"memory": 1000} | parameters)).fit(X, y)
    # rows that fit are solved in memory
    assert MaxMarginClassifier(memory="1GB", algorithm="mpu").fit(X, y).history_[0].stage == "mpu"
