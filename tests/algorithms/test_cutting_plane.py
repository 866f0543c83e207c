"""Cutting planes: planes lie below the loss, the model is minimised exactly, and the bounds meet at the optimum."""

from __future__ import annotations

import clarabel
import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from oracle import optimum
from problems import cases
from sklearn.datasets import load_svmlight_file

from maxmargin import MaxMarginClassifier, Problem, Status, verify
from maxmargin.algorithms.batch.cutting_plane import CuttingPlane, Hinge, Model, proximal_step_on_simplex
from maxmargin.data.rows import Patterns
from maxmargin.data.task import Task
from maxmargin.fit.run import Run
from maxmargin.fit.schedules import SCHEDULES

INTERCEPTS = ("none", "augmented", "free")


def cloud(seed, n=40, d=4):
    rng = np.random.default_rng(seed)
    y = np.where(rng.random(n) < 0.6, 1.0, -1.0)
    y[:2] = 1.0, -1.0
    return rng.normal(size=(n, d)) + 0.4 * y[:, None], y, 10.0 ** rng.uniform(-1, 1, n)


def hinge_loss(problem, X, y, s):
    return Hinge(problem, X, y, s)


def point_at(loss, w):
    """The point with this w; its last entry is the weight of the constant coordinate, if there is one."""
    d = loss.X.shape[1]
    return loss.at(w, loss.X @ w[:d] + (loss.problem.rho * w[d] if loss.problem.rho else 0.0))


def cutting_plane_run(problem, X, y, s, **options):
    return Run(
        Task(problem, Patterns(X), y, s),
        CuttingPlane(**options),
        1e-9,
        np.random.default_rng(0),
        lambda: False,
    )


def rounds(run, max_rounds):
    """Yield the run after each round, until the algorithm ends."""
    for count, _ in enumerate(SCHEDULES["planes"](run), 1):
        yield run
        if run.converged or count == max_rounds:
            return


@pytest.mark.parametrize("intercept", INTERCEPTS)
def test_planes_support_the_loss_from_below(intercept):
    problem = Problem("hinge", 0.7, intercept=intercept, intercept_scaling=1.5)
    for seed in range(10):
        X, y, s = cloud(seed)
        loss, rng = hinge_loss(problem, X, y, s), np.random.default_rng(seed)
        d = X.shape[1] + (1 if problem.rho else 0)
        point = point_at(loss, rng.normal(size=d))
        plane = loss.plane(point)

        def risk(point, loss=loss):
            return loss.value(point) - 0.5 * point.w @ point.w

        assert plane.height - plane.slope @ point.w == pytest.approx(risk(point), rel=1e-12)
        for _ in range(50):
            other = point_at(loss, rng.normal(size=d) * 10.0 ** rng.uniform(-2, 2))
            assert plane.height - plane.slope @ other.w <= risk(other) * (1.0 + 1e-12) + 1e-12
        theta = plane.theta(len(y))
        assert (theta >= 0.0).all()
        assert (theta <= 1.0).all()
        if problem.free:
            assert (loss.caps * theta) @ y == pytest.approx(0.0, abs=1e-12 * loss.caps.sum())


@pytest.mark.parametrize("intercept", INTERCEPTS)
def test_line_search_is_exact(intercept):
    """No other point of the ray has a smaller objective; the intercept is interpolated along the ray."""
    problem = Problem("hinge", 0.3, intercept=intercept)
    inside = 0
    for seed in range(30):
        X, y, s = cloud(seed)
        loss, rng = hinge_loss(problem, X, y, s), np.random.default_rng(seed)
        d = X.shape[1] + (1 if problem.rho else 0)
        one, two = point_at(loss, 0.3 * rng.normal(size=d)), point_at(loss, rng.normal(size=d))

        def value(k, one=one, two=two, loss=loss):
            parts = (a + k * (b - a) for a, b in zip(one, two, strict=True))
            return loss.value(type(one)(*parts))

        k = loss.line_search(one, two)
        assert k >= 0.0
        inside += k > 0.0
        for other in (
            *np.linspace(0.0, 3.0, 61),
            *(k + 10.0 ** np.linspace(-8, 0, 9)),
            *(k * np.linspace(0.9, 1, 9)),
        ):
            assert value(k) <= value(other) * (1.0 + 1e-12)
    assert inside > 5


def test_model_minimum_has_no_duality_gap():
    """The weights lie on the simplex; linearly dependent planes are included."""
    for seed in range(40):
        rng = np.random.default_rng(seed)
        count, d = int(rng.integers(1, 30)), int(rng.integers(1, 12))
        slopes = np.vstack([np.zeros(d), rng.normal(size=(count, d)) * 10.0 ** rng.uniform(-2, 2)])
        slopes[-1] = slopes[rng.integers(1, count + 1, 3)].mean(axis=0)
        heights = np.append(0.0, rng.uniform(0.1, 3.0, count))
        a = np.zeros(count + 1)
        a[0] = 1.0
        for _ in range(4):
            a = proximal_step_on_simplex(slopes @ slopes.T, heights, a)
        assert (a >= 0.0).all()
        assert a.sum() == pytest.approx(1.0, rel=1e-12)
        w = a @ slopes
        planes = heights - slopes @ w
        dual, primal = heights @ a - 0.5 * w @ w, 0.5 * w @ w + planes.max()
        assert primal - dual <= 1e-9 * primal


def model_minimum_by_clarabel(heights, slopes):
    """The minimiser of 1/2 |w|^2 + xi over xi >= 0, xi >= h_p - g_p.w."""
    d = slopes.shape[1]
    settings = clarabel.DefaultSettings()
    settings.verbose = False
    G = np.hstack([-slopes, -np.ones((len(slopes), 1))])
    solution = clarabel.DefaultSolver(
        sp.csc_matrix(np.diag(np.append(np.ones(d), 0.0))), np.append(np.zeros(d), 1.0), sp.csc_matrix(G),
        -heights, [clarabel.NonnegativeConeT(len(heights))], settings,
    ).solve()  # fmt: skip
    return np.asarray(solution.x)[:d]


def naive_rounds(problem, X, y, s, variant, mu, count):
    """SVMperf and OCAS without intercept, with the model solved by Clarabel and a line search on grids."""
    caps = problem.caps(s)

    def objective(w):
        return 0.5 * w @ w + caps @ np.maximum(1.0 - y * (X @ w), 0.0)

    heights, slopes = [0.0], [np.zeros(X.shape[1])]
    w = best = np.zeros(X.shape[1])
    for _ in range(count):
        point = w
        if variant == "ocas":
            low, high = 0.0, 4.0
            for _ in range(60):  # a convex function: its minimum lies next to the best of any five points
                grid = np.linspace(low, high, 5)
                j = int(np.argmin([objective(best + k * (w - best)) for k in grid]))
                low, high = grid[max(j - 1, 0)], grid[min(j + 1, 4)]
            best = best + 0.5 * (low + high) * (w - best)
            point = best + mu * (w - best)
        yield w, best
        violated = y * (X @ point) < 1.0
        heights.append(caps[violated].sum())
        slopes.append((caps * y)[violated] @ X[violated])
        w = model_minimum_by_clarabel(np.array(heights), np.array(slopes))


@pytest.mark.parametrize("variant", ["ocas", "svmperf"])
def test_rounds_equal_those_of_a_naive_implementation(variant):
    problem = Problem("hinge", 0.05, intercept="none")
    for seed in range(3):
        X, y, s = cloud(seed)
        reference = naive_rounds(problem, X, y, s, variant, 0.1, 7)
        best = np.inf
        for run, (w, w_best) in zip(
            rounds(cutting_plane_run(problem, X, y, s, variant=variant), 7), reference, strict=False
        ):
            assert run.h.space.vector.w == pytest.approx(w, abs=3e-5 * max(1.0, np.abs(w).max()))
            point = w_best if variant == "ocas" else w
            best = min(best, problem.primal(0.5 * (point @ point), y * (X @ point), s))
            assert run.best.upper <= best * (1.0 + 1e-5)
            if variant == "ocas":
                assert run.best.upper == pytest.approx(best, rel=1e-5)


@given(cases(loss="hinge"))
@settings(max_examples=30)
def test_bounds_contain_the_exact_optimum(case):
    exact = optimum(case.problem, case.X, case.y, case.weights)
    positive = case.weights > 0.0
    X, y, s = case.X[positive], case.y[positive], case.weights[positive]
    lower, upper = float(exact.lower), float(exact.upper)
    for variant in ("ocas", "svmperf"):
        for run in rounds(cutting_plane_run(case.problem, X, y, s, variant=variant), 60):
            assert (run.h.alpha >= 0.0).all()
            assert (run.h.alpha <= run.h.cap).all()
            assert run.best.lower <= upper + 1e-9 * float(case.problem.caps(s).sum())
            assert run.best.upper >= lower - 1e-9 * float(case.problem.caps(s).sum())


@pytest.mark.parametrize("variant", ["ocas", "svmperf"])
@pytest.mark.parametrize("intercept", INTERCEPTS)
@pytest.mark.parametrize("store", [np.asarray, sp.csr_matrix])
def test_fit_ends_at_the_optimum(variant, intercept, store, rules_alone):
    for seed in range(3):
        X, y, s = cloud(seed)
        problem = Problem("hinge", 0.5, intercept=intercept)
        exact = optimum(problem, X, y, s)
        model = MaxMarginClassifier(
            0.5, loss="hinge", tol=1e-8, fit_intercept=intercept != "none",
            intercept="augmented" if intercept == "augmented" else "free",
            algorithm=CuttingPlane(variant), random_state=0,
        ).fit(store(X), y, s)  # fmt: skip
        assert model.status_ is Status.CERTIFIED
        certificate = verify(model, store(X), y, sample_weight=s)
        assert certificate.lower <= float(exact.upper)
        assert certificate.upper >= float(exact.lower)
        assert certificate.gap <= 1e-8


def test_best_bounds_are_monotone():
    X, y, s = cloud(3, 200)
    upper = [run.best.upper for run in rounds(cutting_plane_run(Problem("hinge", 1.0), X, y, s), 40)]
    lower = [run.best.lower for run in rounds(cutting_plane_run(Problem("hinge", 1.0), X, y, s), 40)]
    assert (np.diff(upper) <= 0.0).all()
    assert (np.diff(lower) >= 0.0).all()


@pytest.mark.parametrize("C", [0.01, 0.3])
@pytest.mark.parametrize("eps", [0.1, 0.01])
def test_number_of_rounds_is_below_the_theoretical_bound(C, eps):
    """At most log2(1 / (4 R^2 C n)) + 16 R^2 C n / eps rounds, each term rounded up and at least 0."""
    for n in (50, 800):
        X, y, _ = cloud(n, n)
        problem = Problem("hinge", C / n, intercept="none")
        run = cutting_plane_run(problem, X, y, np.ones(n), variant="svmperf", eps=eps)
        count = sum(1 for _ in rounds(run, 10**4))
        R2 = (X * X).sum(axis=1).max()
        assert run.converged
        assert count <= max(np.ceil(np.log2(1.0 / (4.0 * R2 * C))), 0.0) + np.ceil(16.0 * R2 * C / eps)
        assert run.best.upper - run.best.lower <= eps * C


def test_planes_without_weight_are_dropped():
    problem = Problem("hinge", 1.0, intercept="none")
    X, y, s = cloud(5, 300)
    loss = hinge_loss(problem, X, y, s)
    model, w = Model(loss, X.shape[1], idle=2), np.zeros(X.shape[1])
    for _ in range(40):
        plane = loss.plane(point_at(loss, w))
        if not model.is_below(plane, w):
            break
        model.add(plane)
        w, alpha = model.minimise()
        assert w == pytest.approx((y * alpha) @ X, rel=1e-9, abs=1e-9)
        assert np.array_equal(model._gram, model._gram.T)
        assert model._gram == pytest.approx(model._slopes @ model._slopes.T, rel=1e-9, abs=1e-9)
    assert model.added > len(model.planes)
    fit = MaxMarginClassifier(loss="hinge", algorithm=CuttingPlane(idle=1), tol=1e-6, random_state=0).fit(
        X, y, s
    )
    assert fit.status_ is Status.CERTIFIED


def test_adult_takes_about_eighty_planes(data_folder):
    X, y = load_svmlight_file(str(data_folder / "adult" / "a9a.gz"), n_features=123)
    model = MaxMarginClassifier(loss="hinge", fit_intercept=False, algorithm=CuttingPlane()).fit(X, y)
    assert model.status_ is Status.CERTIFIED
    assert 70 <= model.n_iter_ <= 90
    assert model.certificate_.lower <= 11433.81 <= model.certificate_.upper


def test_eps_is_a_stopping_criterion(rules_alone):
    X, y, _ = cloud(1, 100)
    model = MaxMarginClassifier(loss="hinge", tol=1e-9, algorithm=CuttingPlane(eps=0.01)).fit(X, y)
    assert model.status_ is Status.CONVERGED
    assert model.certificate_.upper - model.certificate_.lower <= 0.01 * 100


def test_warm_start_uses_the_previous_dual_weights(rules_alone):
    X, y, _ = cloud(2, 100)
    model = MaxMarginClassifier(
        loss="hinge", tol=1e-4, warm_start=True, algorithm=CuttingPlane(), random_state=0
    )
    first = model.fit(X, y).n_iter_
    assert model.fit(X, y).history_[0].lower == pytest.approx(model.certificate_.lower, rel=1e-6)
    assert model.n_iter_ < first


@pytest.mark.parametrize("variant", ["ocas", "svmperf"])
@pytest.mark.parametrize("spread", [1e5, pytest.param(1e6, marks=pytest.mark.slow)])
def test_rounding_errors_do_not_count_as_convergence(variant, spread, rules_alone):
    """Columns of very different size hide planes in rounding: the status is certified or out of rounds."""
    for seed in range(3):
        rng = np.random.default_rng(seed)
        X = rng.normal(size=(100, 4))
        y = X[:, 0] + 0.5 * rng.normal(size=100) > 0.0
        X *= [1.0 / spread, 1.0, spread, 1.0]
        model = MaxMarginClassifier(loss="hinge", algorithm=CuttingPlane(variant), random_state=0)
        model.fit(X, y)
        assert model.status_ in (Status.CERTIFIED, Status.MAX_ITER)
        assert model.status_ is Status.CERTIFIED or spread > 1e5
        verify(model, X, y)
    # a tolerance below the precision of float64: the gap is still small
    X, y, _ = cloud(0)
    model = MaxMarginClassifier(loss="hinge", tol=1e-15, algorithm=CuttingPlane(variant), max_iter=200)
    assert model.fit(X, y).certificate_.gap < 1e-9


def test_unsupported_problems_are_refused():
    for C, loss in ((np.inf, "hinge"), (1.0, "squared_hinge")):
        model = MaxMarginClassifier(C, loss=loss, algorithm=CuttingPlane())
        with pytest.raises(
            ValueError, match=r"does not solve .*: use loss=\"hinge\" with a finite C, or another"
        ):
            model.fit([[0.0], [1.0]], [0, 1])


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"variant": "perf"}, "variant must be 'ocas' or 'svmperf'; got 'perf'."),
        ({"eps": 0.0}, "eps must be a positive number or None; got 0.0."),
        ({"mu": 0.0}, "mu must lie above 0 and be at most 1; got 0.0."),
        ({"idle": 0}, "idle must be a whole number of turns, at least 1; got 0."),
    ],
)
def test_invalid_parameters_are_refused(options, message):
    with pytest.raises(ValueError, match="must") as error:
        CuttingPlane(**options)
    assert str(error.value) == message


@pytest.mark.parametrize("scale", [1e-100, 1e60, 1e120])
def test_data_of_extreme_scales_are_certified(scale):
    X, y = np.random.default_rng(0).normal(size=(12, 3)), np.arange(12) % 2
    model = MaxMarginClassifier(loss="hinge", algorithm="cutting-plane", random_state=0).fit(scale * X, y)
    assert model.status_ is Status.CERTIFIED
    verify(model, scale * X, y)
