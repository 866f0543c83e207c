"""Cutting planes: rounds equal those of naive versions, the model is minimised exactly, and theorems hold."""

from __future__ import annotations

import clarabel
import numpy as np
import pytest
import scipy.sparse as sp
from problems import conditioned

from maxmargin import MaxMarginClassifier, Problem, Status, verify
from maxmargin.algorithms.batch.cutting_plane import CuttingPlane
from maxmargin.data.rows import Patterns
from maxmargin.data.task import Task
from maxmargin.fit.run import Run
from maxmargin.fit.schedules import SCHEDULES


def rounds(problem, X, y, s, max_rounds, **options):
    """Yield the run after each round, until the algorithm ends."""
    task = Task(problem, Patterns(X), y, s)
    run = Run(task, CuttingPlane(**options), 1e-9, np.random.default_rng(0), lambda: False)
    for k, _ in enumerate(SCHEDULES["planes"](run), 1):
        yield run
        if run.converged or k == max_rounds:
            return


def model_minimum_by_clarabel(heights, slopes):
    """The minimiser of 1/2 |w|^2 + xi over xi >= 0, xi >= h_p - g_p.w."""
    d = slopes.shape[1]
    options = clarabel.DefaultSettings()
    options.verbose = False
    P, q = sp.csc_matrix(np.diag(np.append(np.ones(d), 0.0))), np.append(np.zeros(d), 1.0)
    G = sp.csc_matrix(np.hstack([-slopes, -np.ones((len(slopes), 1))]))
    cones = [clarabel.NonnegativeConeT(len(heights))]
    return np.asarray(clarabel.DefaultSolver(P, q, G, -heights, cones, options).solve().x)[:d]


def naive_rounds(X, y, caps, ocas, mu):
    """SVMperf and OCAS without intercept, with the model solved by Clarabel and a line search on grids."""

    def objective(w):
        return 0.5 * w @ w + caps @ np.maximum(1.0 - y * (X @ w), 0.0)

    heights, slopes = [0.0], [np.zeros(X.shape[1])]
    w = best = np.zeros(X.shape[1])
    while True:
        point = w
        if ocas:
            low, high = 0.0, 4.0
            for _ in range(60):  # a convex function: its minimum lies next to the best of any five points
                grid = np.linspace(low, high, 5)
                j = int(np.argmin([objective(best + k * (w - best)) for k in grid]))
                low, high = grid[max(j - 1, 0)], grid[min(j + 1, 4)]
            best = best + 0.5 * (low + high) * (w - best)
            point = best + mu * (w - best)
        yield w, best if ocas else w
        violated = y * (X @ point) < 1.0
        heights.append(caps[violated].sum())
        slopes.append((caps * y)[violated] @ X[violated])
        w = model_minimum_by_clarabel(np.array(heights), np.array(slopes))


@pytest.mark.parametrize("variant", ["ocas", "svmperf"])
def test_rounds_equal_those_of_a_naive_implementation(variant):
    """Clarabel solves the model to 1e-8, which is 3e-5 of its minimiser, and little more of the objective there."""
    problem = Problem("hinge", 0.05, intercept="none")
    X, y, s = conditioned("plain", 40, 4, 1)
    reference = naive_rounds(X, y, problem.caps(s), variant == "ocas", 0.1)
    best, last = np.inf, (-np.inf, np.inf)
    for run, (w, point) in zip(rounds(problem, X, y, s, 7, variant=variant), reference, strict=False):
        assert run.h.space.vector.w == pytest.approx(w, abs=3e-5 * max(1.0, np.abs(w).max()))
        best = min(best, problem.primal(0.5 * (point @ point), y * (X @ point), s))
        assert run.best.upper == pytest.approx(best, rel=1e-7) or (
            variant == "svmperf" and run.best.upper < best
        )
        assert last[0] <= run.best.lower <= run.best.upper <= last[1]
        last = run.best.lower, run.best.upper


@pytest.mark.parametrize("C", [0.01, 0.3])
@pytest.mark.parametrize("eps", [0.1, 0.01])
def test_number_of_rounds_is_below_the_theoretical_bound(C, eps):
    """At most log2(1 / (4 R^2 C n)) + 16 R^2 C n / eps rounds, each term rounded up and at least 0."""
    for n in (50, 800):
        X, y, _ = conditioned("plain", n, 4, 0)
        problem, R2 = Problem("hinge", C / n, intercept="none"), (X * X).sum(axis=1).max()
        *_, (count, run) = enumerate(rounds(problem, X, y, np.ones(n), 10**4, variant="svmperf", eps=eps), 1)
        assert run.converged
        assert count <= max(np.ceil(np.log2(1.0 / (4.0 * R2 * C))), 0.0) + np.ceil(16.0 * R2 * C / eps)
        assert run.best.upper - run.best.lower <= eps * C


def test_eps_ends_the_fit_and_warm_starts_keep_the_dual_weights(rules_alone):
    X, y, _ = conditioned("plain", 100, 4, 2)
    model = MaxMarginClassifier(loss="hinge", tol=1e-9, algorithm=CuttingPlane(eps=0.01)).fit(X, y)
    assert model.status_ is Status.CONVERGED
    assert model.certificate_.upper - model.certificate_.lower <= 0.01 * 100
    model.set_params(tol=1e-4, warm_start=True, algorithm=CuttingPlane(), random_state=0)
    first, bound = model.fit(X, y).n_iter_, model.certificate_.lower
    assert model.fit(X, y).history_[0].lower == pytest.approx(bound, rel=1e-12, abs=0.0)  # 100 eps
    assert model.n_iter_ < first


@pytest.mark.parametrize("variant", ["ocas", "svmperf"])
def test_rounding_errors_do_not_count_as_convergence(variant, rules_alone):
    """Columns of very different size hide planes in rounding, and so does a tolerance below the precision."""
    X, y, _ = conditioned("plain", 100, 4, 0)
    model = MaxMarginClassifier(loss="hinge", tol=1e-15, algorithm=CuttingPlane(variant), max_iter=200)
    assert model.fit(X, y).certificate_.gap < 1e-9
    X *= [1e-5, 1.0, 1e5, 1.0]
    model = MaxMarginClassifier(loss="hinge", algorithm=CuttingPlane(variant), random_state=0).fit(X, y)
    assert model.status_ in (Status.CERTIFIED, Status.MAX_ITER)
    verify(model, X, y)
