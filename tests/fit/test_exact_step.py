"""The exact step of small problems: coordinates, settled points, interruption, data shared by classes."""

from __future__ import annotations

import time
from itertools import pairwise
from unittest.mock import Mock

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
from maxmargin import DualCoordinateDescent, MaxMarginClassifier, Problem, Status, verify
from maxmargin.algorithms.batch import active_set, newton
from maxmargin.algorithms.batch import quadratic_program as programs
from maxmargin.algorithms.batch.active_set import candidates
from maxmargin.algorithms.batch.iterate import Reached
from maxmargin.algorithms.batch.quadratic_program import OutOfTime, SharedRows, SpanBasis, quadratic
from maxmargin.certificates.rows import certify
from maxmargin.certificates.sample import Sample
from maxmargin.data.rows import Patterns
from maxmargin.data.task import Task
from maxmargin.fit.presolve import distinct_rows
from maxmargin.fit.run import Run
from maxmargin.fit.tracker import Primal
from maxmargin.numerics.sums import Compensated
from maxmargin.problem.intercept import best_intercept


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
        ("alike", "orthogonal"), [(1.0, False), (1e-2, False), (1e-6, True), (0.0, True)]
    )
    def test_nearly_collinear_rows_are_orthogonalised(self, alike, orthogonal):
        assert (SpanBasis(wide(20, 900, alike=alike)).orthogonal is not None) is orthogonal

    @pytest.mark.parametrize("alike", [1.0, 1e-6])
    @pytest.mark.parametrize("intercept", [{}, {"intercept": "augmented"}, {"fit_intercept": False}])
    @pytest.mark.parametrize("loss", ["hinge", "squared_hinge"])
    @pytest.mark.parametrize("C", [0.01, 1.0, np.inf])
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


class TestIndependentRows:
    """Linearly independent rows: most dual weights are free, and the active set takes a few small systems."""

    @pytest.mark.parametrize("intercept", [{}, {"intercept": "augmented"}, {"fit_intercept": False}])
    @pytest.mark.parametrize(
        ("loss", "C"), [("hinge", 2e-3), ("hinge", 1e-2), ("hinge", 10.0), ("hinge", np.inf)]
    )
    def test_independent_rows_need_no_interior_point(self, loss, C, intercept, monkeypatch):
        monkeypatch.setattr(
            active_set, "interior_point", lambda *task: pytest.fail("interior points are not needed")
        )
        monkeypatch.setattr(
            active_set._ActiveSetSearch,
            "follow_solver",
            lambda *task: pytest.fail("the solver is not needed"),
        )
        X = wide(24, 800) + np.linspace(0.0, 1.0, 24)[:, None]
        y = np.arange(24) % 2
        model = MaxMarginClassifier(C, loss=loss, tol=1e-9, **intercept).fit(X, y)
        assert verify(model, X, y).gap <= 1e-9

    @pytest.mark.parametrize("C", [1e-3, 1.0, np.inf])
    def test_active_sets_equal_those_of_the_optimum(self, C):
        """Patterns of weight zero, of weight below the cap, and at the cap."""
        X, y = wide(30, 900, seed=3) + 0.3, np.where(np.arange(30) % 3, -1.0, 1.0)
        qp = quadratic(Problem("hinge", C), X, y, np.ones(30))
        point = next(candidates(qp))
        assert point.settled
        capped = point.a >= qp.c
        free = (point.a > 0.0) & ~capped
        model = MaxMarginClassifier(C, loss="hinge", tol=1e-11).fit(X, y)
        alpha = np.zeros(30)
        alpha[model.certificate_.support] = model.certificate_.dual
        assert np.array_equal(free | capped, alpha > 0.0)
        assert np.array_equal(capped, alpha >= (1.0 - 1e-9) * C)
        assert free.any()
        assert (C > 1e-3) or capped.any()

    @pytest.mark.parametrize("C", [1e-3, 1.0, 100.0])
    def test_linearly_dependent_rows_are_certified(self, C):
        X, y = wide(24, 800), np.arange(24) % 2
        X[5], X[8] = X[1] + X[2], X[3]
        model = MaxMarginClassifier(C, loss="hinge", tol=1e-9).fit(X, y)
        assert verify(model, X, y).gap <= 1e-9

    def test_interrupt_yields_the_starting_point(self):
        qp = quadratic(
            Problem("hinge", 1.0), wide(24, 800), np.where(np.arange(24) % 2, -1.0, 1.0), np.ones(24)
        )
        (point,) = candidates(qp, None, lambda: True)
        assert not point.settled
        assert not point.a.any()

    def test_classes_share_the_products(self, monkeypatch):
        made = Mock(wraps=programs._products)
        monkeypatch.setattr(programs, "_products", made)
        X, y = wide(30, 900), np.arange(30) % 3
        model = MaxMarginClassifier(loss="hinge", tol=1e-9).fit(X, y)
        assert verify(model, X, y).gap <= 1e-9
        assert made.call_count == 1

    def test_rows_are_rescaled_without_compensated_sums(self, monkeypatch):
        """C times the rounding of margins far exceeds |w|^2; margins are scaled above their rounding."""
        X, y = 1e4 * wide(30, 900), np.arange(30) % 2
        with monkeypatch.context() as patched:
            patched.setattr(
                Compensated, "scores", lambda *task: pytest.fail("compensated sums are not needed")
            )
            model = MaxMarginClassifier(100.0, loss="hinge").fit(X, y)
        assert 0.5 * np.sum(model.coef_**2) < 1e-8
        assert verify(model, X, y).gap <= 1e-8


class TestWideRows:
    def test_distinct_rows_are_not_copied(self):
        X, y = wide(20, 900), np.where(np.arange(20) % 2, -1.0, 1.0)
        patterns = Patterns(X)
        assert distinct_rows(patterns, y, np.ones(20)).patterns is patterns

    def test_equal_rows_are_merged(self):
        X, y = wide(20, 900), np.where(np.arange(20) % 2, -1.0, 1.0)
        X[4] = X[2]
        found = distinct_rows(Patterns(X), y, np.ones(20))
        assert found.patterns.n == 19
        assert sorted(found.merged.weights) == [1.0] * 18 + [2.0]

    @pytest.mark.parametrize("n", [1, 2, 5, 40])
    def test_shift_is_the_mean_of_far_columns(self, n):
        """The mean of every column whose spread is at most a tenth of its size; zero for the others."""
        rng = np.random.default_rng(n)
        X = rng.normal(size=(n, 90)) * 10.0 ** rng.uniform(-3, 1, 90) + rng.normal(size=90)
        X[:, :3] = [0.0, 1.0, -7.0]
        mean = X.mean(axis=0)
        far = np.abs(X - mean).max(axis=0) <= 0.1 * np.abs(X).max(axis=0)
        assert far.any()
        shift = SharedRows(Problem("hinge", 1.0), X).shift
        assert shift == pytest.approx(np.where(far, mean, 0.0), rel=1e-13)

    def test_centring_avoids_overflow_of_products(self):
        X, y = wide(30, 900), np.where(np.arange(30) % 2, -1.0, 1.0)
        shared = SharedRows(Problem("hinge", np.inf), 1e151 * X + 1e153)
        with np.errstate(over="ignore", invalid="ignore"):
            quadratic(shared.problem, shared, y, np.ones(30))
        assert shared.shift.all()
        assert np.isfinite(shared.products(lambda: False)).all()

    @pytest.mark.parametrize(("mean", "share"), [(0.5, 1.0), (2.0, 1.0), (1e3, 1.0), (1e5, 0.1), (1e5, 1.0)])
    @pytest.mark.parametrize("C", [1.0, np.inf])
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

    def test_centring_twice_changes_nothing(self):
        """As when two threads centre the same rows: entries of 0.1 leave rounding errors."""
        X = wide(30, 900) + 1e3
        X[:, 0] = 0.1
        shared = SharedRows(Problem("hinge", 1.0), X)
        shared.products(lambda: False)
        shift = shared.shift.copy()
        shared._products = None
        shared._centre()
        np.testing.assert_array_equal(shared.shift, shift)
        assert shift[0] == pytest.approx(0.1)


class TestPolynomialsOfRawColumns:
    """Columns of magnitudes 28 to 1e11 that are nearly linearly dependent."""

    @pytest.mark.parametrize(
        ("columns", "degree", "C", "loss"),
        [(3, 4, 1.0, "hinge"), (3, 4, 1e3, "hinge"), (4, 3, 1e3, "hinge"), (6, 3, 1.0, "hinge")],
    )
    def test_degrees_three_and_four_are_certified(self, columns, degree, C, loss):
        X, y = load_breast_cancer(return_X_y=True)
        Z = PolynomialFeatures(degree, include_bias=False).fit_transform(X[:, :columns])
        model = MaxMarginClassifier(C, loss=loss, random_state=0).fit(Z, y)
        assert model.status_ is Status.CERTIFIED
        assert verify(model, Z, y).gap <= 1e-3

    @pytest.mark.parametrize(("C", "loss"), [(1e-3, "hinge"), (1.0, "squared_hinge")])
    def test_degree_five_reports_a_status_that_agrees_with_the_gap(self, C, loss):
        """Products of these columns lose all digits in some directions: the fit may end above its tolerance."""
        X, y = load_breast_cancer(return_X_y=True)
        Z = PolynomialFeatures(5, include_bias=False).fit_transform(X[:, :3])
        model = MaxMarginClassifier(C, loss=loss, random_state=0).fit(Z, y)
        certificate = verify(model, Z, y)
        assert 0.0 < certificate.lower <= certificate.upper < np.inf
        assert model.status_ is (Status.CERTIFIED if certificate.gap <= 1e-3 else Status.STALLED)


class TestCandidates:
    @pytest.mark.parametrize("intercept", ["free", "augmented", "none"])
    @pytest.mark.parametrize("C", [1e-3, 1.0, 1e3])
    @pytest.mark.parametrize("loss", ["hinge", "squared_hinge"])
    def test_first_settled_point_is_the_optimum(self, loss, C, intercept):
        """The optimality conditions hold to rounding."""
        X, y = noisy(300, 7)
        problem = Problem(loss, C, intercept=intercept)
        settled, gap = next(found for found in certified_gaps(problem, X, y, candidates) if found[0])
        assert settled
        assert gap <= 1e-11

    @pytest.mark.parametrize("C", [1e-3, 1.0, 1e3])
    def test_final_newton_point_is_settled_without_another_system(self, C, monkeypatch):
        monkeypatch.setattr(
            active_set._ActiveSetSearch, "settle", lambda *task: pytest.fail("no further system is needed")
        )
        X, y = noisy(300, 7)
        settled, gap = next(certified_gaps(Problem("squared_hinge", C), X, y, candidates))
        assert settled
        assert gap <= 1e-11

    @pytest.mark.parametrize(
        ("loss", "patience"),
        # A call takes several steps, and several proximal problems, per poll: both methods end soon after these.
        [
            *(("hinge", polls) for polls in (0, 1, 3)),
            *(("squared_hinge", polls) for polls in (0, 1, 2)),
        ],
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

    def test_interrupt_stops_hard_margins(self):
        X, y = noisy(60, 100)
        polls = iter([False] * 3)
        problem = Problem("hinge", np.inf)
        found = list(
            certified_gaps(problem, X, y, lambda qp: candidates(qp, None, lambda: next(polls, True)))
        )
        assert len(found) == 1

    def test_expired_time_is_reported_as_max_time(self):
        """For a problem whose optimality conditions no float64 point satisfies."""
        X, y = noisy(1200, 200)
        begin = time.perf_counter()
        model = MaxMarginClassifier(1e20, loss="hinge", max_time=0.05).fit(X, y)
        assert model.status_ is Status.MAX_TIME
        assert time.perf_counter() - begin < 5.0  # includes compilation
        assert np.isfinite(model.coef_).all()

    def test_extreme_costs_take_a_bounded_number_of_steps(self, monkeypatch):
        """Stages whose steps make no progress are not repeated."""
        steps, advance = [], newton._State.advance

        def recorded_steps(state, *task):
            taken = advance(state, *task)
            steps.extend([1] * max(1, taken))
            return taken

        monkeypatch.setattr(newton._State, "advance", recorded_steps)
        rng = np.random.default_rng(0)
        X = rng.normal(size=(500, 10))
        model = MaxMarginClassifier(1e300, loss="squared_hinge").fit(X, X @ rng.normal(size=10) > 0.0)
        assert model.status_ is Status.CERTIFIED
        assert len(steps) < 2000

    def test_one_certificate_is_computed(self, monkeypatch):
        """The certificate that ends the exact step is the one of the model."""
        made = []
        monkeypatch.setattr(
            maxmargin.fit.certifier, "certify", lambda *task: made.append(certify(*task)) or made[-1]
        )
        X, y = noisy(200, 5)
        model = MaxMarginClassifier(1.0).fit(X, y)
        assert model.certificate_ in made
        assert len(made) == 1


class TestTolerance:
    """Many rows end with the first point that proves the tolerance, few rows with the optimum."""

    @pytest.mark.parametrize("intercept", ["free", "augmented"])
    @pytest.mark.parametrize("C", [1e-3, 1.0, 100.0])
    @pytest.mark.parametrize("loss", ["hinge", "squared_hinge"])
    @pytest.mark.parametrize("tol", [1e-2, 1e-5])
    @pytest.mark.parametrize("far", [0.0, 1e5])
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
    def test_early_stopping_depends_on_the_number_of_distinct_rows(self, loss, monkeypatch):
        recorded_tols = []

        def recorded(qp, start, interrupted, enough):
            recorded_tols.append(enough)
            return candidates(qp, start, interrupted, enough)

        monkeypatch.setattr(maxmargin.fit.exact, "candidates", recorded)
        monkeypatch.setattr(maxmargin.fit.small_dense, "MAX_COLUMNS", 0)  # disables the small dense stage
        X, y = noisy(2100, 4)
        many = MaxMarginClassifier(10.0, loss=loss).fit(X, y)
        X[100:200], y[100:200] = X[:100], y[:100]
        few = MaxMarginClassifier(10.0, loss=loss).fit(X, y)
        assert recorded_tols == [pytest.approx(1e-3, rel=0.01), 0.0]
        assert many.status_ is few.status_ is Status.CERTIFIED
        assert few.certificate_.gap <= 1e-8

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

    @pytest.mark.parametrize("loss", ["hinge", "squared_hinge"])
    def test_false_claims_do_not_end_the_fit(self, loss, monkeypatch):
        """The certificate decides; later claims are evaluated again."""
        name = "sifted_points" if loss == "hinge" else "newton_points"
        original, claims = getattr(active_set, name), []

        def overclaiming(problem, X, y, *task):
            claims.append("false")
            yield Reached(np.ones(6), 0.0, np.full(y.size, 1e-9), 0.0, True)
            for point in original(problem, X, y, *task):
                claims.append("true")
                yield point

        monkeypatch.setattr(active_set, name, overclaiming)
        monkeypatch.setattr(maxmargin.fit.small_dense, "MAX_COLUMNS", 0)  # disables the small dense stage
        X, y = noisy(3000, 6)
        model = MaxMarginClassifier(1.0, loss=loss).fit(X, y)
        assert model.status_ is Status.CERTIFIED
        assert verify(model, X, y).gap <= 1e-3
        assert claims[:2] == ["false", "true"]


class TestClasses:
    @pytest.mark.parametrize("store", [np.asarray, sp.csr_matrix])
    @pytest.mark.parametrize("loss", ["hinge", "squared_hinge"])
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

    def test_distinct_rows_are_computed_once(self, monkeypatch):
        merges, original = [], maxmargin.fit.presolve.merge
        monkeypatch.setattr(
            maxmargin.fit.presolve, "merge", lambda *task: merges.append(1) or original(*task)
        )
        monkeypatch.setattr(maxmargin.fit.small_dense, "MAX_COLUMNS", 0)  # disables the small dense stage
        X, _ = noisy(120, 3)
        MaxMarginClassifier().fit(X, np.arange(120) % 5)
        assert len(merges) == 2  # once by class, once for rows of two classes


@pytest.mark.parametrize(
    ("seed", "tol"), [*((seed, 1e-8) for seed in range(40)), (114, 1e-6), (188, 1e-6), (318, 1e-6)]
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


def test_best_bounds_of_two_pairs_are_combined():
    """The lower bound of one pair and the upper bound of the other."""
    X, y = noisy(30, 3)
    task = Task(Problem("hinge", 1.0), Patterns(X), y, np.ones(30))
    run = Run(task, DualCoordinateDescent(), 1e-9, np.random.default_rng(0), lambda: False)
    (w, v), (alpha, beta) = ([np.full(size, k) for k in (1.0, 2.0)] for size in (3, 30))
    run.best.adopt(Primal(w, 0.0), alpha, 1.0, 1.5, 0.0)
    run.best.adopt(Primal(v, 1.0), beta, 0.9, 1.001, 0.0)
    assert run.best.primal.w is v
    assert run.best.primal.b == 1.0
    assert run.best.alpha is alpha
    assert (run.best.lower, run.best.upper) == (1.0, 1.001)
    run.best.adopt(
        Primal(w, 0.0), beta, 0.9999, 1.0009, 1e-2
    )  # no worse up to rounding: the pair replaces both
    assert run.best.primal.w is w
    assert run.best.alpha is beta


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

    def test_callback_stops_at_a_proved_gap(self):
        """The gap of the rescaled problem is 3e-8 after one round."""
        X, y = load_breast_cancer(return_X_y=True)
        Z = PolynomialFeatures(4, include_bias=False).fit_transform(X[:, :3])
        stop = MaxMarginClassifier(
            1.0, loss="hinge", callback=lambda report: report.gap < 1e3, random_state=0
        )
        stop.fit(Z, y)
        gaps = [report.gap for report in stop.history_]
        assert stop.certificate_.gap <= gaps[-1] < 1e3
        assert min(gaps[:-1]) >= 1e3


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

    def test_warm_start_with_another_cost_is_kept(self):
        X, y = noisy(1500, 6)
        model = MaxMarginClassifier(1.0, loss="hinge", warm_start=True).fit(X, y)
        model.set_params(C=1.5, max_time=1e-9).fit(X, y)
        assert model.status_ is Status.MAX_TIME
        assert model.certificate_.gap < 0.01

    def test_no_stage_follows_an_interrupt(self, monkeypatch):
        """The rule that started the fit does not resume either."""

        def stop_deadline(run, X, certifier, exact, enough):
            certifier.deadline.stopped.set()

        monkeypatch.setattr(maxmargin.fit.attempt, "finish", stop_deadline)
        rng = np.random.default_rng(0)
        X, y = rng.normal(size=(300, 3)), np.where(rng.random(300) < 0.5, 1.0, -1.0)
        X[:, 0] += 4.0 * y
        model = MaxMarginClassifier(np.inf, tol=1e-12, random_state=0).fit(X, y)
        assert model.status_ is Status.INTERRUPTED
        assert model.history_[-1].stage == "exact"

    def test_interrupt_stops_between_products_of_wide_rows(self, monkeypatch):
        """A basis that is interrupted raises `OutOfTime`."""
        monkeypatch.setattr(programs, "MULTIPLICATIONS_PER_CHECK", 24 * 24 * 100)
        A = wide(24, 1000)
        shared = SpanBasis(A).coefficients
        assert np.abs(shared @ shared.T - A @ A.T).max() <= 1e-12 * np.linalg.norm(A) ** 2
        polls = iter([False] * 5)
        with pytest.raises(OutOfTime):
            SpanBasis(A, lambda: next(polls, True))
        y = np.where(np.arange(24) % 3 == 0, 1.0, -1.0)
        model = MaxMarginClassifier(loss="hinge", max_time=1e-9, random_state=0).fit(A, y)
        assert model.status_ is Status.MAX_TIME
        assert model.coef_.any()
        verify(model, A, y)

    def test_digits_that_exceed_the_remaining_time_are_skipped(self, monkeypatch):
        """The certificate is then computed to `tol`, and the model is the same."""
        requested_gaps = []

        def recorded(problem, sample, w, b, alpha, gap, affords):
            requested_gaps.append(gap)
            return certify(problem, sample, w, b, alpha, gap, affords)

        X, y = noisy(200, 5)
        best = MaxMarginClassifier(1.0, loss="hinge").fit(X, y)
        monkeypatch.setattr(maxmargin.fit.certifier, "certify", recorded)
        monkeypatch.setattr(Compensated, "SECONDS", 1.0)
        model = MaxMarginClassifier(1.0, loss="hinge", max_time=60.0).fit(X, y)
        assert requested_gaps == [1e-3]
        assert model.status_ is Status.CERTIFIED
        np.testing.assert_allclose(model.coef_, best.coef_, rtol=1e-12)

    @pytest.mark.parametrize("sizes", [(1.0, 1e150), (1e150, 1e-150)])
    def test_warm_start_of_other_scales_gives_finite_bounds(self, sizes):
        """A warm start that overflows is discarded without a warning."""
        X, y = noisy(60, 4)
        model = MaxMarginClassifier(loss="hinge", warm_start=True)
        for size in sizes:
            model.fit(size * X, y)
        assert model.status_ is Status.CERTIFIED
        lower = [report.lower for report in model.history_]
        assert np.isfinite(lower).all()
        assert (np.diff(lower) >= 0.0).all()
