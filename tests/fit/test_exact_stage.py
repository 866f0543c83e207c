"""The exact step of small problems: coordinates, settled points, interruption, data shared by classes."""

from __future__ import annotations

import time
from itertools import pairwise

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.datasets import load_breast_cancer
from sklearn.preprocessing import PolynomialFeatures

import maxmargin.fit.attempt
import maxmargin.fit.certifier
import maxmargin.fit.exact
import maxmargin.fit.presolve
import maxmargin.fit.small_dense
from maxmargin import MaxMarginClassifier, Problem, Status, verify
from maxmargin.algorithms.batch.active_set import candidates
from maxmargin.algorithms.batch.quadratic_program import SharedRows, SpanBasis, quadratic
from maxmargin.certificates.rows import certify
from maxmargin.certificates.sample import Sample
from maxmargin.data.rows import Patterns
from maxmargin.fit.presolve import distinct_rows
from maxmargin.problem.intercept import best_intercept

SLOW = pytest.mark.slow


def wide(n: int, d: int, seed: int = 0, alike: float = 1.0):
    """Rows with more columns than rows; the last is the first plus `alike` times another."""
    rng = np.random.default_rng(seed)
    A = rng.normal(size=(n, d))
    A[-1] = A[0] + alike * A[-1]
    return A


class TestBasis:
    @pytest.mark.parametrize("alike", [1.0, 1e-2, 1e-6, 0.0])
    def test_coordinates_preserve_products(self, alike):
        """Products of rows with each other and with combinations of rows, in coordinates of an orthonormal basis."""
        A = wide(20, 900, alike=alike)
        basis = SpanBasis(A)
        size = np.linalg.norm(A) ** 2
        assert np.abs(basis.coefficients @ basis.coefficients.T - A @ A.T).max() <= 1e-14 * size
        a = np.random.default_rng(1).exponential(size=20)
        w = basis.expand(basis.coefficients.T @ a)
        assert np.abs(w - A.T @ a).max() <= 1e-13 * np.linalg.norm(A) * a.sum()
        assert np.abs(A @ w - basis.coefficients @ (basis.coefficients.T @ a)).max() <= 1e-13 * size * a.sum()

    @pytest.mark.parametrize(
        ("C", "loss", "intercept", "alike"),
        [
            (0.01, "hinge", {}, 1.0),
            (1.0, "hinge", {"intercept": "augmented"}, 1e-6),
            (np.inf, "hinge", {"fit_intercept": False}, 1.0),
            (0.01, "squared_hinge", {"fit_intercept": False}, 1e-6),
            (1.0, "squared_hinge", {}, 1.0),
            (np.inf, "hinge", {}, 1e-6),
        ],
    )
    def test_wide_rows_are_certified_to_rounding(self, C, loss, intercept, alike):
        X = wide(24, 800, alike=alike)
        y = np.where(np.arange(24) % 3 == 0, 1, -1)
        y[-1] = y[0]
        model = MaxMarginClassifier(C, loss=loss, tol=1e-9, **intercept).fit(X, y)
        assert model.status_ is Status.CERTIFIED
        assert [report.stage for report in model.history_] == ["exact"]


def certified_gaps(problem, X, y, points):
    """Pairs (settled, certified gap) of each point."""
    qp = quadratic(problem, X, y, np.ones(y.size))
    sample = Sample(X, y, np.ones(y.size))
    for point in points(qp):
        w, b = qp.primal(point.w)
        b = best_intercept(problem, X @ w, y, sample.weights) if problem.free else b
        yield point.settled, certify(problem, sample, w, b, qp.dual(point.a)).gap


def noisy(n: int, d: int, seed: int = 0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d))
    return X, np.where(X @ rng.normal(size=d) + rng.normal(size=n) > 0.0, 1.0, -1.0)


class TestWideRows:
    def test_equal_rows_are_merged(self):
        X, y = wide(20, 900), np.where(np.arange(20) % 2, -1.0, 1.0)
        X[4] = X[2]
        found = distinct_rows(Patterns(X), y, np.ones(20))
        assert found.patterns.n == 19
        assert sorted(found.merged.weights) == [1.0] * 18 + [2.0]

    @pytest.mark.parametrize(
        ("mean", "share", "C"),
        [(0.5, 1.0, 1.0), (2.0, 1.0, np.inf), (1e3, 1.0, 1.0), (1e5, 0.1, np.inf), (1e5, 1.0, 1.0)],
    )
    def test_far_columns_of_wide_rows_are_centred_and_certified(self, mean, share, C):
        """Columns are centred only if products lose digits otherwise; the optimum is certified in either case."""
        X, y = wide(30, 900), np.where(np.arange(30) % 2, -1.0, 1.0)
        X[:, : int(share * 900)] += mean
        problem = Problem("hinge", C)
        shared = SharedRows(problem, X)
        quadratic(problem, shared, y, np.ones(30))
        spread = np.sum((X - X.mean(axis=0)) ** 2) / np.sum(X**2)
        assert (shared.shift != 0.0).any() == (spread < 0.1)
        np.testing.assert_array_equal(shared.X, X - shared.shift)
        centred = X - shared.shift
        scale = np.sum(centred**2)
        assert np.abs(shared.products(lambda: False) - centred @ centred.T).max() <= 1e-14 * scale
        model = MaxMarginClassifier(C, loss="hinge", tol=1e-7).fit(X, y)
        assert model.status_ is Status.CERTIFIED
        assert verify(model, X, y).gap <= 1e-7


class TestPolynomialsOfRawColumns:
    """Columns of magnitudes 28 to 1e11 that are nearly linearly dependent."""

    @pytest.mark.parametrize(
        ("columns", "degree", "C", "loss"),
        [(3, 4, 1.0, "hinge"), pytest.param(3, 4, 1e3, "hinge", marks=SLOW), (4, 3, 1e3, "hinge")],
    )
    def test_degrees_three_and_four_are_certified(self, columns, degree, C, loss):
        X, y = load_breast_cancer(return_X_y=True)
        Z = PolynomialFeatures(degree, include_bias=False).fit_transform(X[:, :columns])
        model = MaxMarginClassifier(C, loss=loss, random_state=0).fit(Z, y)
        assert model.status_ is Status.CERTIFIED
        assert verify(model, Z, y).gap <= 1e-3


class TestCandidates:
    @pytest.mark.parametrize(("C", "intercept"), [(1e-3, "free"), (1.0, "augmented"), (1e3, "none")])
    @pytest.mark.parametrize("loss", ["hinge", "squared_hinge"])
    def test_first_settled_point_is_the_optimum(self, loss, C, intercept):
        """The optimality conditions hold to rounding."""
        X, y = noisy(300, 7)
        problem = Problem(loss, C, intercept=intercept)
        settled, gap = next(found for found in certified_gaps(problem, X, y, candidates) if found[0])
        assert settled
        assert gap <= 1e-11

    @pytest.mark.parametrize(
        ("loss", "patience"),
        # A call takes several steps, and several proximal problems, per poll: both methods end soon after these.
        [("hinge", 0), ("hinge", 3), ("squared_hinge", 0), ("squared_hinge", 2)],
    )
    def test_interrupt_stops_the_search(self, loss, patience):
        """One unsettled point is yielded."""
        X, y = noisy(400, 10)
        polls = iter([False] * patience)
        problem = Problem(loss, 1.0)
        found = list(
            certified_gaps(problem, X, y, lambda qp: candidates(qp, None, lambda: next(polls, True)))
        )
        assert len(found) == 1
        assert not found[0][0]

    def test_expired_time_is_reported_as_max_time(self):
        """For a problem whose optimality conditions no float64 point satisfies."""
        X, y = noisy(1200, 200)
        begin = time.perf_counter()
        model = MaxMarginClassifier(1e20, loss="hinge", max_time=0.05).fit(X, y)
        assert model.status_ is Status.MAX_TIME
        assert time.perf_counter() - begin < 5.0  # includes compilation
        assert np.isfinite(model.coef_).all()


class TestTolerance:
    """Many rows end with the first point that proves the tolerance, few rows with the optimum."""

    @pytest.mark.parametrize(
        ("intercept", "C", "tol", "far"),
        [
            ("free", 1e-3, 1e-2, 0.0),
            ("augmented", 1.0, 1e-5, 1e5),
            ("free", 100.0, 1e-5, 1e5),
            ("free", 1.0, 1e-5, 0.0),
        ],
    )
    @pytest.mark.parametrize("loss", ["hinge", "squared_hinge"])
    def test_points_reported_as_near_are_within_tolerance(self, loss, C, intercept, tol, far):
        """Up to the cost of balancing the classes; no point is settled before the first such point."""
        X, y = noisy(3000, 6)
        X[:, 2] += far
        problem = Problem(loss, C, intercept=intercept)
        qp = quadratic(problem, X, y, np.ones(y.size))
        sample = Sample(X, y, np.ones(y.size))
        point = next(point for point in candidates(qp, enough=tol) if point.near or point.settled)
        assert point.near
        w, b = qp.primal(point.w, point.beta)
        assert certify(problem, sample, w, b, qp.dual(point.a)).gap <= 1.1 * tol

    @pytest.mark.parametrize("loss", ["hinge", "squared_hinge"])
    def test_sufficient_warm_start_is_not_solved_again(self, loss, monkeypatch):
        """A warm start within the tolerance takes one certificate and no step."""
        X, y = noisy(3000, 6)
        model = MaxMarginClassifier(1.0, loss=loss, warm_start=True).fit(X, y)
        first = model.certificate_
        monkeypatch.setattr(maxmargin.fit.exact, "candidates", None)
        assert model.fit(X, y).status_ is Status.CERTIFIED
        assert model.certificate_.gap <= first.gap * (1.0 + 1e-6)
        assert verify(model, X, y).gap <= 1e-3


class TestClasses:
    @pytest.mark.parametrize(("store", "loss"), [(np.asarray, "hinge"), (sp.csr_matrix, "squared_hinge")])
    def test_multiclass_fits_equal_one_versus_rest_fits(self, loss, store):
        """With repeated rows, rows of several classes, weights, and rows of weight zero."""
        rng = np.random.default_rng(5)
        X = rng.integers(-2, 3, size=(240, 4)).astype(float)
        y = rng.integers(0, 4, 240)
        weights = rng.integers(0, 3, 240) / 2.0
        assert np.unique(X, axis=0).shape[0] < 220
        model = MaxMarginClassifier(0.7, loss=loss).fit(store(X), y, weights)
        for k in range(4):
            alone = MaxMarginClassifier(0.7, loss=loss).fit(store(X), y == k, weights)
            np.testing.assert_allclose(model.coef_[k], alone.coef_[0], rtol=1e-9, atol=1e-12)
            np.testing.assert_allclose(model.intercept_[k], alone.intercept_[0], rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize(
    ("seed", "tol"),
    [
        *(pytest.param(seed, 1e-8, marks=SLOW if seed >= 10 else ()) for seed in range(40)),
        (114, 1e-6),
        (188, 1e-6),
        (318, 1e-6),
    ],
)
def test_rows_with_columns_of_unequal_scale_are_certified(seed, tol):
    """Narrow and wide rows, repeated and contradictory rows, columns that differ by twelve orders of magnitude."""
    rng = np.random.default_rng([7, seed])
    n, d = int(rng.integers(10, 60)), int(rng.choice([5, 30, 600]))
    X = rng.normal(size=(n, d)) * 10.0 ** rng.uniform(-6.0, 6.0, d)
    X[: n // 4] = X[-(n // 4) :]
    y = np.where(rng.random(n) < 0.5, -1.0, 1.0)
    y[:2] = 1.0, -1.0
    model = MaxMarginClassifier(
        10.0 ** rng.uniform(-3.0, 3.0),
        loss=("hinge", "squared_hinge")[seed % 2],
        fit_intercept=bool(seed // 2 % 2),
        tol=tol,
    )
    assert model.fit(X, y, rng.integers(1, 4, n) / 2.0).status_ is Status.CERTIFIED


@pytest.fixture(scope="module")
def columns_of_powers():
    """Inseparable rows with columns of scale 1 to 1e9; in the first units tried, another problem is solved."""
    rng = np.random.default_rng(2)
    Z = rng.normal(size=(60, 2))
    X = np.column_stack([Z, 1e9 * (Z + 0.1 * rng.normal(size=(60, 2)))])
    return X, Z[:, 0] + 0.5 * rng.normal(size=60) > 0.0


class TestReports:
    @pytest.mark.parametrize("loss", ["hinge", "squared_hinge"])
    def test_bounds_hold_for_the_unscaled_problem_and_are_monotone(self, columns_of_powers, loss):
        X, y = columns_of_powers
        model = MaxMarginClassifier(1e3, loss=loss, random_state=0).fit(X, y)
        proved, history = verify(model, X, y), model.history_
        for report in history:
            assert report.lower <= proved.upper * (1.0 + 1e-9)
            assert report.upper >= proved.lower * (1.0 - 1e-9)
        for name, sign in (("lower", 1), ("upper", -1), ("gap", -1), ("presentations", 1), ("steps", 1)):
            values = [getattr(report, name) for report in history]
            assert all(sign * after >= sign * before for before, after in pairwise(values)), name


class TestEarlyStops:
    """A fit that is stopped before or within the exact step still has a model."""

    @pytest.mark.parametrize("loss", ["hinge", "squared_hinge"])
    def test_without_a_point_one_pass_over_the_rows_is_made(self, loss):
        X, y = noisy(5000, 6)
        model = MaxMarginClassifier(loss=loss, max_time=1e-9, random_state=0).fit(X, y)
        assert model.status_ is Status.MAX_TIME
        assert [report.stage for report in model.history_] == ["exact", "dcd"]
        assert model.certificate_.gap < 100.0
        assert model.score(X, y) > 0.75
        verify(model, X, y)

    @pytest.mark.parametrize(("n", "loss"), [(1500, "hinge"), (1500, "squared_hinge"), (5000, "hinge")])
    def test_warm_start_is_kept(self, n, loss):
        X, y = noisy(n, 6)
        model = MaxMarginClassifier(loss=loss, warm_start=True, random_state=0).fit(X, y)
        best = model.certificate_.gap
        model.set_params(max_time=1e-9).fit(X, y)
        assert model.status_ is Status.CERTIFIED
        assert model.certificate_.gap <= best + 1e-10
