"""The exact step of small problems: its coordinates, what settles it on the way, how it stops, what classes share."""

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
    """Rows of more columns than rows; the last differs from the first by this share of itself."""
    rng = np.random.default_rng(seed)
    A = rng.normal(size=(n, d))
    A[-1] = A[0] + alike * A[-1]
    return A


class TestBasis:
    @pytest.mark.parametrize("alike", [1.0, 1e-2, 1e-6, 0.0])
    def test_products_are_those_of_the_rows(self, alike):
        """Coordinates in an orthonormal basis: the same products among rows, and with what is made of coordinates."""
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
    def test_rows_nearly_alike_have_all_their_digits(self, alike, orthogonal):
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


def certificates(problem, X, y, points):
    """(settled, certified gap) of each."""
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
    """Independent rows: most are free, and the others are told from there in a few small systems."""

    @pytest.mark.parametrize("intercept", [{}, {"intercept": "augmented"}, {"fit_intercept": False}])
    @pytest.mark.parametrize(
        ("loss", "C"), [("hinge", 2e-3), ("hinge", 1e-2), ("hinge", 10.0), ("hinge", np.inf)]
    )
    def test_nothing_else_is_needed(self, loss, C, intercept, monkeypatch):
        monkeypatch.setattr(active_set, "interior_point", lambda *task: pytest.fail("no need"))
        monkeypatch.setattr(
            active_set._ActiveSetSearch, "follow_solver", lambda *task: pytest.fail("no need")
        )
        X = wide(24, 800) + np.linspace(0.0, 1.0, 24)[:, None]
        y = np.arange(24) % 2
        model = MaxMarginClassifier(C, loss=loss, tol=1e-9, **intercept).fit(X, y)
        assert verify(model, X, y).gap <= 1e-9

    @pytest.mark.parametrize("C", [1e-3, 1.0, np.inf])
    def test_its_sets_are_those_of_the_optimum(self, C):
        """Of every pattern: margin above one and weight 0, one and between, below and at the cap."""
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
    def test_rows_that_depend_on_each_other_are_certified_without_it(self, C):
        X, y = wide(24, 800), np.arange(24) % 2
        X[5], X[8] = X[1] + X[2], X[3]
        model = MaxMarginClassifier(C, loss="hinge", tol=1e-9).fit(X, y)
        assert verify(model, X, y).gap <= 1e-9

    def test_it_stops_when_it_is_told_to(self):
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

    def test_tight_margins_need_no_more_digits(self, monkeypatch):
        """C times the rounding of margins is far more than |w|^2: they are made larger than their rounding."""
        X, y = 1e4 * wide(30, 900), np.arange(30) % 2
        with monkeypatch.context() as patched:
            patched.setattr(Compensated, "scores", lambda *task: pytest.fail("no need"))
            model = MaxMarginClassifier(100.0, loss="hinge").fit(X, y)
        assert 0.5 * np.sum(model.coef_**2) < 1e-8
        assert verify(model, X, y).gap <= 1e-8


class TestWideRows:
    def test_rows_of_different_lengths_stay_where_they_are(self):
        X, y = wide(20, 900), np.where(np.arange(20) % 2, -1.0, 1.0)
        patterns = Patterns(X)
        assert distinct_rows(patterns, y, np.ones(20)).patterns is patterns

    def test_twins_are_merged(self):
        X, y = wide(20, 900), np.where(np.arange(20) % 2, -1.0, 1.0)
        X[4] = X[2]
        found = distinct_rows(Patterns(X), y, np.ones(20))
        assert found.patterns.n == 19
        assert sorted(found.merged.weights) == [1.0] * 18 + [2.0]

    @pytest.mark.parametrize("n", [1, 2, 5, 40])
    def test_columns_far_off_are_found(self, n):
        """The mean of every column whose spread is a tenth of its size at most, and of no other."""
        rng = np.random.default_rng(n)
        X = rng.normal(size=(n, 90)) * 10.0 ** rng.uniform(-3, 1, 90) + rng.normal(size=90)
        X[:, :3] = [0.0, 1.0, -7.0]
        mean = X.mean(axis=0)
        far = np.abs(X - mean).max(axis=0) <= 0.1 * np.abs(X).max(axis=0)
        assert far.any()
        shift = SharedRows(Problem("hinge", 1.0), X).shift
        assert shift == pytest.approx(np.where(far, mean, 0.0), rel=1e-13)

    def test_far_off_columns_whose_products_overflow(self):
        X, y = wide(30, 900), np.where(np.arange(30) % 2, -1.0, 1.0)
        whole = SharedRows(Problem("hinge", np.inf), 1e151 * X + 1e153)
        with np.errstate(over="ignore", invalid="ignore"):
            quadratic(whole.problem, whole, y, np.ones(30))
        assert whole.shift.all()
        assert np.isfinite(whole.products(lambda: False)).all()

    @pytest.mark.parametrize(("mean", "share"), [(0.5, 1.0), (2.0, 1.0), (1e3, 1.0), (1e5, 0.1), (1e5, 1.0)])
    @pytest.mark.parametrize("C", [1.0, np.inf])
    def test_far_off_columns_of_wide_rows(self, mean, share, C):
        """They are looked for only where products lose digits to them; the optimum is the same either way."""
        X, y = wide(30, 900), np.where(np.arange(30) % 2, -1.0, 1.0)
        X[:, : int(share * 900)] += mean
        problem = Problem("hinge", C)
        whole = SharedRows(problem, X)
        quadratic(problem, whole, y, np.ones(30))
        spread = np.sum((X - X.mean(axis=0)) ** 2) / np.sum(X**2)
        assert (whole.shift != 0.0).any() == (spread < 0.1)
        np.testing.assert_array_equal(whole.X, X - whole.shift)
        centred = X - whole.shift
        scale = np.sum(centred**2)
        assert np.abs(whole.products(lambda: False) - centred @ centred.T).max() <= 1e-14 * scale
        model = MaxMarginClassifier(C, loss="hinge", tol=1e-7).fit(X, y)
        assert model.status_ is Status.CERTIFIED
        assert verify(model, X, y).gap <= 1e-7

    def test_two_threads_centre_the_same_rows(self):
        """What one has centred, another that began before it centres no further: entries of 0.1 leave rounding."""
        X = wide(30, 900) + 1e3
        X[:, 0] = 0.1
        whole = SharedRows(Problem("hinge", 1.0), X)
        whole.products(lambda: False)
        shift = whole.shift.copy()
        whole._products = None
        whole._centre()
        np.testing.assert_array_equal(whole.shift, shift)
        assert shift[0] == pytest.approx(0.1)


class TestPolynomialsOfRawColumns:
    """Columns of sizes from 28 to 1e11 that nearly depend on each other."""

    @pytest.mark.parametrize(
        ("columns", "degree", "C", "loss"),
        [(3, 4, 1.0, "hinge"), (3, 4, 1e3, "hinge"), (4, 3, 1e3, "hinge"), (6, 3, 1.0, "hinge")],
    )
    def test_of_degree_four_they_are_certified(self, columns, degree, C, loss):
        X, y = load_breast_cancer(return_X_y=True)
        Z = PolynomialFeatures(degree, include_bias=False).fit_transform(X[:, :columns])
        model = MaxMarginClassifier(C, loss=loss, random_state=0).fit(Z, y)
        assert model.status_ is Status.CERTIFIED
        assert verify(model, Z, y).gap <= 1e-3

    @pytest.mark.parametrize(("C", "loss"), [(1e-3, "hinge"), (1.0, "squared_hinge")])
    def test_of_degree_five_the_status_agrees_with_the_gap(self, C, loss):
        """Products of these columns have lost all digits of some directions: the fit may end above its tolerance."""
        X, y = load_breast_cancer(return_X_y=True)
        Z = PolynomialFeatures(5, include_bias=False).fit_transform(X[:, :3])
        model = MaxMarginClassifier(C, loss=loss, random_state=0).fit(Z, y)
        certificate = verify(model, Z, y)
        assert 0.0 < certificate.lower <= certificate.upper < np.inf
        assert model.status_ is (Status.CERTIFIED if certificate.gap <= 1e-3 else Status.STALLED)


class TestOnTheWay:
    @pytest.mark.parametrize("intercept", ["free", "augmented", "none"])
    @pytest.mark.parametrize("C", [1e-3, 1.0, 1e3])
    @pytest.mark.parametrize("loss", ["hinge", "squared_hinge"])
    def test_what_is_settled_first_is_the_optimum(self, loss, C, intercept):
        """However early: the conditions hold to rounding."""
        X, y = noisy(300, 7)
        problem = Problem(loss, C, intercept=intercept)
        settled, gap = next(found for found in certificates(problem, X, y, candidates) if found[0])
        assert settled
        assert gap <= 1e-11

    @pytest.mark.parametrize("C", [1e-3, 1.0, 1e3])
    def test_the_end_of_newton_is_settled_without_another_system(self, C, monkeypatch):
        monkeypatch.setattr(
            active_set._ActiveSetSearch, "settle", lambda *task: pytest.fail("it is solved already")
        )
        X, y = noisy(300, 7)
        settled, gap = next(certificates(Problem("squared_hinge", C), X, y, candidates))
        assert settled
        assert gap <= 1e-11

    @pytest.mark.parametrize(
        ("loss", "patience"),
        # Newton's method has ended before it is asked for the fourth time: several steps are taken in one call
        [
            *(("hinge", asked) for asked in (0, 1, 3, 6)),
            *(("squared_hinge", asked) for asked in (0, 1, 2)),
        ],
    )
    def test_it_stops_when_it_is_told_to(self, loss, patience):
        """With the point that was reached, and no other."""
        X, y = noisy(400, 10)
        asked = iter([False] * patience)
        problem = Problem(loss, 1.0)
        found = list(certificates(problem, X, y, lambda qp: candidates(qp, None, lambda: next(asked, True))))
        assert len(found) == 1
        assert not found[0][0]

    def test_hard_margins_stop_too(self):
        X, y = noisy(60, 100)
        asked = iter([False] * 3)
        problem = Problem("hinge", np.inf)
        found = list(certificates(problem, X, y, lambda qp: candidates(qp, None, lambda: next(asked, True))))
        assert len(found) == 1

    def test_time_that_runs_out_there_is_said(self):
        """Of a problem whose conditions no float64 meets: the status tells why it ended."""
        X, y = noisy(1200, 200)
        begin = time.perf_counter()
        model = MaxMarginClassifier(1e20, loss="hinge", max_time=0.05).fit(X, y)
        assert model.status_ is Status.MAX_TIME
        assert time.perf_counter() - begin < 5.0  # compiling included
        assert np.isfinite(model.coef_).all()

    def test_costs_beyond_all_digits_end_soon(self, monkeypatch):
        """Stages in which steps lead nowhere are not followed by hundreds of others."""
        steps, advance = [], newton._State.advance

        def counted(state, *task):
            taken = advance(state, *task)
            steps.extend([1] * max(1, taken))
            return taken

        monkeypatch.setattr(newton._State, "advance", counted)
        rng = np.random.default_rng(0)
        X = rng.normal(size=(500, 10))
        model = MaxMarginClassifier(1e300, loss="squared_hinge").fit(X, X @ rng.normal(size=10) > 0.0)
        assert model.status_ is Status.CERTIFIED
        assert len(steps) < 2000

    def test_one_certificate_is_enough(self, monkeypatch):
        """The one that the step was judged by is the user's."""
        made = []
        monkeypatch.setattr(
            maxmargin.fit.certifier, "certify", lambda *task: made.append(certify(*task)) or made[-1]
        )
        X, y = noisy(200, 5)
        model = MaxMarginClassifier(1.0).fit(X, y)
        assert model.certificate_ in made
        assert len(made) == 1


class TestNearEnough:
    """Many rows end with the first point that proves what was asked for, few with the optimum."""

    @pytest.mark.parametrize("intercept", ["free", "augmented"])
    @pytest.mark.parametrize("C", [1e-3, 1.0, 100.0])
    @pytest.mark.parametrize("loss", ["hinge", "squared_hinge"])
    @pytest.mark.parametrize("tol", [1e-2, 1e-5])
    @pytest.mark.parametrize("far", [0.0, 1e5])
    def test_points_that_say_so_are(self, loss, C, intercept, tol, far):
        """But for what evening the classes out costs; and nothing is settled before the first of them."""
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
    def test_rows_that_differ_are_counted(self, loss, monkeypatch):
        asked = []

        def noted(qp, start, interrupted, enough):
            asked.append(enough)
            return candidates(qp, start, interrupted, enough)

        monkeypatch.setattr(maxmargin.fit.exact, "candidates", noted)
        monkeypatch.setattr(maxmargin.fit.small_dense, "MAX_COLUMNS", 0)  # step by step
        X, y = noisy(2100, 4)
        many = MaxMarginClassifier(10.0, loss=loss).fit(X, y)
        X[100:200], y[100:200] = X[:100], y[:100]
        few = MaxMarginClassifier(10.0, loss=loss).fit(X, y)
        assert asked == [pytest.approx(1e-3, rel=0.01), 0.0]
        assert many.status_ is few.status_ is Status.CERTIFIED
        assert few.certificate_.gap <= 1e-8

    @pytest.mark.parametrize("loss", ["hinge", "squared_hinge"])
    def test_what_is_known_already_is_not_solved_again(self, loss, monkeypatch):
        """A warm start that proves as much: one certificate, no step."""
        X, y = noisy(3000, 6)
        model = MaxMarginClassifier(1.0, loss=loss, warm_start=True).fit(X, y)
        first = model.certificate_
        monkeypatch.setattr(maxmargin.fit.exact, "candidates", None)
        assert model.fit(X, y).status_ is Status.CERTIFIED
        assert model.certificate_.gap <= first.gap * (1.0 + 1e-6)
        assert verify(model, X, y).gap <= 1e-3

    @pytest.mark.parametrize("loss", ["hinge", "squared_hinge"])
    def test_one_that_only_says_so_is_not_the_end(self, loss, monkeypatch):
        """Its certificate decides; what is said later counts again."""
        name = "sifted_points" if loss == "hinge" else "newton_points"
        usual, claims = getattr(active_set, name), []

        def boasting(problem, X, y, *task):
            claims.append("false")
            yield Reached(np.ones(6), 0.0, np.full(y.size, 1e-9), 0.0, True)
            for point in usual(problem, X, y, *task):
                claims.append("true")
                yield point

        monkeypatch.setattr(active_set, name, boasting)
        monkeypatch.setattr(maxmargin.fit.small_dense, "MAX_COLUMNS", 0)  # step by step
        X, y = noisy(3000, 6)
        model = MaxMarginClassifier(1.0, loss=loss).fit(X, y)
        assert model.status_ is Status.CERTIFIED
        assert verify(model, X, y).gap <= 1e-3
        assert claims[:2] == ["false", "true"]


class TestClasses:
    @pytest.mark.parametrize("store", [np.asarray, sp.csr_matrix])
    @pytest.mark.parametrize("loss", ["hinge", "squared_hinge"])
    def test_what_they_share_is_the_same_for_each(self, loss, store):
        """Copies, rows of several classes, weights, rows left out: as each class alone against the rest."""
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

    def test_distinct_rows_are_looked_for_once(self, monkeypatch):
        seen, usual = [], maxmargin.fit.presolve.merge
        monkeypatch.setattr(maxmargin.fit.presolve, "merge", lambda *task: seen.append(1) or usual(*task))
        monkeypatch.setattr(maxmargin.fit.small_dense, "MAX_COLUMNS", 0)  # step by step
        X, _ = noisy(120, 3)
        MaxMarginClassifier().fit(X, np.arange(120) % 5)
        assert len(seen) == 2  # told apart by class, and looked at whether any is of two classes


@pytest.mark.parametrize(
    ("seed", "tol"), [*((seed, 1e-8) for seed in range(40)), (114, 1e-6), (188, 1e-6), (318, 1e-6)]
)
def test_rows_of_unequal_columns_are_certified(seed, tol):
    """Wide or not, with copies and contradictions, columns whose sizes are twelve orders apart."""
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


def test_the_best_halves_of_two_pairs_are_kept():
    """A lower bound that one pair proves, and an upper one that the other does."""
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
    run.best.adopt(Primal(w, 0.0), beta, 0.9999, 1.0009, 1e-2)  # no worse but for rounding: together
    assert run.best.primal.w is w
    assert run.best.alpha is beta


@pytest.fixture(scope="module")
def powers():
    """Columns from 1 to 1e9 that do not separate: in the units that are tried first another problem is solved."""
    rng = np.random.default_rng(2)
    Z = rng.normal(size=(60, 2))
    X = np.column_stack([Z, 1e9 * (Z + 0.1 * rng.normal(size=(60, 2)))])
    return X, Z[:, 0] + 0.5 * rng.normal(size=60) > 0.0


class TestReports:
    @pytest.mark.parametrize("loss", ["hinge", "squared_hinge"])
    def test_bounds_are_those_of_the_users_problem_and_get_no_worse(self, powers, loss):
        X, y = powers
        model = MaxMarginClassifier(1e3, loss=loss, random_state=0).fit(X, y)
        proved, history = verify(model, X, y), model.history_
        for report in history:
            assert report.lower <= proved.upper * (1.0 + 1e-9)
            assert report.upper >= proved.lower * (1.0 - 1e-9)
        for name, sign in (("lower", 1), ("upper", -1), ("gap", -1), ("presentations", 1), ("steps", 1)):
            values = [getattr(report, name) for report in history]
            assert all(sign * after >= sign * before for before, after in pairwise(values)), name

    def test_a_callback_stops_at_a_gap_that_is_proved(self):
        """Another problem's gap is 3e-8 after one round."""
        X, y = load_breast_cancer(return_X_y=True)
        Z = PolynomialFeatures(4, include_bias=False).fit_transform(X[:, :3])
        stop = MaxMarginClassifier(
            1.0, loss="hinge", callback=lambda report: report.gap < 1e3, random_state=0
        )
        stop.fit(Z, y)
        gaps = [report.gap for report in stop.history_]
        assert stop.certificate_.gap <= gaps[-1] < 1e3
        assert min(gaps[:-1]) >= 1e3


class TestStopped:
    """A fit that is stopped within the exact step, or before it, has a model all the same."""

    @pytest.mark.parametrize("loss", ["hinge", "squared_hinge"])
    def test_where_nothing_was_found_a_pass_over_the_rows_is_made(self, loss):
        X, y = noisy(5000, 6)
        model = MaxMarginClassifier(loss=loss, max_time=1e-9, random_state=0).fit(X, y)
        assert model.status_ is Status.MAX_TIME
        assert [report.stage for report in model.history_] == ["exact", "dcd"]
        assert model.certificate_.gap < 100.0
        assert model.score(X, y) > 0.75
        verify(model, X, y)

    @pytest.mark.parametrize(("n", "loss"), [(1500, "hinge"), (1500, "squared_hinge"), (5000, "hinge")])
    def test_the_model_to_begin_with_is_kept(self, n, loss):
        X, y = noisy(n, 6)
        model = MaxMarginClassifier(loss=loss, warm_start=True, random_state=0).fit(X, y)
        best = model.certificate_.gap
        model.set_params(max_time=1e-9).fit(X, y)
        assert model.status_ is Status.CERTIFIED
        assert model.certificate_.gap <= best + 1e-10

    def test_of_another_cost(self):
        X, y = noisy(1500, 6)
        model = MaxMarginClassifier(1.0, loss="hinge", warm_start=True).fit(X, y)
        model.set_params(C=1.5, max_time=1e-9).fit(X, y)
        assert model.status_ is Status.MAX_TIME
        assert model.certificate_.gap < 0.01

    def test_nobody_takes_over(self, monkeypatch):
        """Not the rule either that began."""

        def cut_off(run, X, certifier, exact, enough):
            certifier.deadline.stopped.set()

        monkeypatch.setattr(maxmargin.fit.attempt, "finish", cut_off)
        rng = np.random.default_rng(0)
        X, y = rng.normal(size=(300, 3)), np.where(rng.random(300) < 0.5, 1.0, -1.0)
        X[:, 0] += 4.0 * y
        model = MaxMarginClassifier(np.inf, tol=1e-12, random_state=0).fit(X, y)
        assert model.status_ is Status.INTERRUPTED
        assert model.history_[-1].stage == "exact"

    def test_wide_rows_are_left_between_products(self, monkeypatch):
        """And what was made of their columns so far is no basis."""
        monkeypatch.setattr(programs, "MULTIPLICATIONS", 24 * 24 * 100)
        A = wide(24, 1000)
        whole = SpanBasis(A).coefficients
        assert np.abs(whole @ whole.T - A @ A.T).max() <= 1e-12 * np.linalg.norm(A) ** 2
        asked = iter([False] * 5)
        with pytest.raises(OutOfTime):
            SpanBasis(A, lambda: next(asked, True))
        y = np.where(np.arange(24) % 3 == 0, 1.0, -1.0)
        model = MaxMarginClassifier(loss="hinge", max_time=1e-9, random_state=0).fit(A, y)
        assert model.status_ is Status.MAX_TIME
        assert model.coef_.any()
        verify(model, A, y)

    def test_digits_that_take_longer_than_is_left_are_done_without(self, monkeypatch):
        """The certificate is then one of `tol`, and the model the same."""
        asked = []

        def noted(problem, sample, w, b, alpha, gap, affords):
            asked.append(gap)
            return certify(problem, sample, w, b, alpha, gap, affords)

        X, y = noisy(200, 5)
        best = MaxMarginClassifier(1.0, loss="hinge").fit(X, y)
        monkeypatch.setattr(maxmargin.fit.certifier, "certify", noted)
        monkeypatch.setattr(Compensated, "SECONDS", 1.0)
        model = MaxMarginClassifier(1.0, loss="hinge", max_time=60.0).fit(X, y)
        assert asked == [1e-3]
        assert model.status_ is Status.CERTIFIED
        np.testing.assert_allclose(model.coef_, best.coef_, rtol=1e-12)

    @pytest.mark.parametrize("sizes", [(1.0, 1e150), (1e150, 1e-150)])
    def test_a_model_of_other_scales_does_no_harm(self, sizes):
        """Numbers that overflow where the last fit's are begun with are no point, and no warning."""
        X, y = noisy(60, 4)
        model = MaxMarginClassifier(loss="hinge", warm_start=True)
        for size in sizes:
            model.fit(size * X, y)
        assert model.status_ is Status.CERTIFIED
        lower = [report.lower for report in model.history_]
        assert np.isfinite(lower).all()
        assert (np.diff(lower) >= 0.0).all()
