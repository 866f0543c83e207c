"""Kernel forms of the rules: steps of naive versions on explicit features, and bounds on the exact optimum."""

from __future__ import annotations

from collections import OrderedDict
from itertools import pairwise, product

import numpy as np
import pytest
from effort import interpreted
from naive import replay
from oracle import optimum
from presenting import BUSY, ONE_BY_ONE, bias, dual, reflected
from problems import rings

from maxmargin import Problem
from maxmargin.algorithms import ALGORITHMS, MPU, PUMMA, Bias, DualCoordinateDescent, Pegasos
from maxmargin.data.task import GramTask
from maxmargin.fit.run import GramRun
from maxmargin.fit.schedules import SCHEDULES
from maxmargin.kernels.functions import Gaussian, Polynomial
from maxmargin.problem.intercept import best_intercept

KERNELISED = [name for name in ALGORITHMS if ALGORITHMS[name].kernelised]
PROBLEMS = [
    Problem(loss, C, intercept=intercept, intercept_scaling=0.7)
    for (loss, C), intercept in product(
        [("hinge", np.inf), ("hinge", 3.0), ("squared_hinge", 3.0)], ("none", "augmented", "free")
    )
]
SOLVED = [(name, p) for name in KERNELISED for p in PROBLEMS if ALGORITHMS[name]().refuses(p) is None]
TOL = 0.02
ROUNDING = 1e-11  # of features and of scores by hundreds of updates, n eps each: 24 eps 300 = 2e-12
FAST = {  # parameters with which rules end soon
    "alma": {"alpha": 0.5},
    "cramma": {"beta": 1.3, "eta": 0.05},
    "micra": {"beta": 1.3, "eta": 0.5},
    "fixed-margin": {"beta": 0.01, "eta": 0.05},
    "romma": {"schedule": "plain"},
    "aggressive-romma": {"schedule": "plain"},
    "fmp": {"schedule": "plain", "gamma": 0.01},
}
SMOOTH = Polynomial(0.5, 2, 1.0)


class FewKernelRows:
    """Rows of a kernel matrix in the interface of `KernelRows`, with space for a few; other rows are NaN."""

    def __init__(self, K, most=None):
        self.K, self.n = K, len(K)
        self.capacity = self.n if most is None else most
        self.diagonal = np.diagonal(K).copy()
        self.rows = np.full((self.capacity, self.n), np.nan, K.dtype)
        self.computed = 0
        self._slots = OrderedDict()

    def slots(self, requested):
        assert np.unique(requested).size == requested.size <= self.capacity
        for i in requested.tolist():
            if i in self._slots:
                self._slots.move_to_end(i)
        for i in requested.tolist():
            if i not in self._slots:
                used = len(self._slots)
                self._slots[i] = used if used < self.capacity else self._slots.popitem(last=False)[1]
                self.rows[self._slots[i]] = self.K[i]
                self.computed += 1
        return np.array([self._slots[i] for i in requested.tolist()], dtype=np.intp)


def features(K):
    """Rows whose inner products are K."""
    values, vectors = np.linalg.eigh(K)
    return vectors * np.sqrt(np.maximum(values, 0.0))


def started_run(problem, rows, y, weights, algorithm, tol=TOL, start=None, interrupted=lambda: False):
    task = GramTask(problem, rows, y, weights, start)
    return GramRun(task, algorithm, tol, np.random.default_rng(0), interrupted)


def rounds(run, most=300, between=lambda: None):
    """Run the rounds of its schedule until its bounds are near or it has converged."""
    for k, _ in enumerate(SCHEDULES[run.algorithm.schedule](run), 1):
        between()
        if run.best.gap <= run.tol or run.converged or k == most:
            return run
    raise AssertionError("the schedule does not end")


def compare(name, problem):
    """Compare steps with the naive version on features, for any number of cached rows; some rows have weight 0.

    Data with a decision within 1e-9 of its threshold are skipped. A free intercept that is set from outside is
    constant between two updates of it. A hundred updates of 20 rows: 2000 eps = 4e-13.
    """
    steps = compared = 0
    for seed in range(6):
        rng = np.random.default_rng(seed)
        X, y, _ = rings(20, seed)
        weights = 10.0 ** rng.uniform(-1, 1, 20) * (rng.random(20) < 0.8)
        K = (Gaussian(0.4), SMOOTH)[seed % 2].block(X, X)
        used = np.flatnonzero(weights)
        orders = [rng.permutation(used.size).astype(np.uint32) for _ in range(4)]
        delta2 = problem.delta2(weights[used])
        for most in (4, None):
            run = started_run(
                problem, FewKernelRows(K, most), y, weights, ALGORITHMS[name](**BUSY.get(name, {}))
            )
            Y = reflected(features(K)[used], y[used], run.rho, delta2 if delta2.any() else None)
            expected = replay(name, Y, y[used], np.concatenate(orders), run.h.cap, run.rule)
            if expected.nearest <= 1e-9 or any(a[-1] == b[0] for a, b in pairwise(orders)):
                continue
            compared += 1
            if hasattr(run.rule, "start"):
                run._set_first_w(orders[0])
            moved = []
            for order in orders:
                count = run.sweep(run.h, order)
                moved += run.moved[:count].tolist()
            assert moved == expected.moved
            assert run.steps == len(moved)
            steps += len(moved)
            assert dual(run.h) == pytest.approx(expected.dual, rel=0, abs=1e-12 * expected.dual.max())
            assert bias(run.h) == pytest.approx(expected.bias, rel=1e-12, abs=1e-12)
            c = dual(run.h) * y[used]
            w = run.h.number[0] * run.h.space.vector.w
            assert w[:-1] == pytest.approx(K[:, used] @ c, rel=0, abs=1e-12 * np.abs(c).sum() * K.max())
            assert w[-1] == pytest.approx(run.rho * c.sum(), rel=0, abs=1e-12 * np.abs(c).sum())
    assert compared >= 4
    assert steps >= 4 * compared


@interpreted
@pytest.mark.parametrize(
    ("name", "problem"),
    [
        (name, p)
        for name, p in SOLVED
        if name in ONE_BY_ONE and p.free <= (ALGORITHMS[name].bias is not Bias.COORDINATE)
    ],
    ids=str,
)
def test_trajectory_equals_the_naive_one_on_features(name, problem):
    compare(name, problem)


@pytest.mark.parametrize(("name", "problem"), [("dcd", PROBLEMS[4])], ids=str)
def test_compiled_trajectory_equals_the_naive_one_on_features(name, problem):
    compare(name, problem)


def fingerprint(run):
    batch = run.algorithm.schedule == "points"
    alpha = run.best.alpha[run.patterns.used] if batch else run.h.alpha
    return run.steps, run.presentations, alpha.tolist(), run.best.upper


@interpreted
@pytest.mark.parametrize("name", KERNELISED)
def test_cached_rows_do_not_change_results(name):
    """Bit for bit, but for the lower bound: all kernel rows cached, a few, or a few shared between rounds."""
    X, y, weights = rings(15 if name == "pegasos" else 50, 1)
    options = {"k": 7} if name == "pegasos" else FAST.get(name, {})
    K, algorithm = Gaussian(0.4).block(X, X), ALGORITHMS[name](**options)
    problem = next(PROBLEMS[k] for k in (5, 8, 2) if algorithm.refuses(PROBLEMS[k]) is None)
    weights[::7], most_rounds = 0.0, {"pegasos": 1, "normalised-perceptron": 6}.get(name, 3)
    results, lower = [], np.inf
    for most, shared in ((None, False), (4, False), (11, True)):
        rows = FewKernelRows(K, most)
        run = started_run(problem, rows, y, weights, algorithm)
        rounds(
            run, most_rounds, (lambda rows=rows: rows.slots(np.array([3, 1, 4]))) if shared else lambda: None
        )
        assert rows.computed <= run.n if most is None else rows.computed > 4
        results.append(fingerprint(run))
        # with few rows dual variables are not balanced, at a lower bound: the product takes more rows than are kept
        assert run.best.lower <= lower
        lower = run.best.lower if most is None else lower
    assert results[0] == results[1] == results[2]
    # leaving out rows of weight 0 changes nothing
    used = np.flatnonzero(weights)
    run = started_run(problem, FewKernelRows(K[np.ix_(used, used)]), y[used], weights[used], algorithm)
    steps, presentations, alpha, _ = fingerprint(rounds(run, most_rounds))
    assert (steps, presentations) == results[0][:2]
    # batch algorithms divide dual variables by their sum, which is rounded in another order
    assert alpha == pytest.approx(
        results[0][2], rel=1e-12 if algorithm.schedule == "points" else 0.0, abs=0.0
    )


CERTIFYING = ("dcd", "mpu", "aggressive-romma", "pumma", "ima", "pegasos")
OTHER_SCHEDULES = [
    MPU(schedule="two-level"),
    MPU(schedule="plain"),
    DualCoordinateDescent(schedule="shrinking"),
]
FIRST = {name: k % 3 for k, name in enumerate(KERNELISED)}  # the problem of each that is in the fast suite
BRACKETED = [
    *(
        pytest.param(
            ALGORITHMS[name](**FAST.get(name, {})), p, marks=() if k == FIRST[name] else pytest.mark.slow
        )
        for name in KERNELISED
        for k, p in enumerate(p for other, p in SOLVED if other == name)
    ),
    *((algorithm, PROBLEMS[5]) for algorithm in OTHER_SCHEDULES),
]


@interpreted
@pytest.mark.parametrize(("algorithm", "problem"), BRACKETED, ids=str)
def test_bounds_bracket_the_optimum(algorithm, problem):
    """With few cached rows and rows of weight 0; bounds are those of the primal and dual points of the run."""
    X, y, weights = rings(24, 0, noise=0.0)
    weights[::6] = 0.0
    K = SMOOTH.block(X, X)
    exact = optimum(problem, features(K), y, weights)
    # the features have the error n eps |K|, divided by the square of the margin
    low, high = float(exact.lower) * (1.0 - 1e-9), float(exact.upper) * (1.0 + 1e-9)
    rows = FewKernelRows(K, None if algorithm.name == "pegasos" else 6)  # which draws rows one by one
    run = rounds(started_run(problem, rows, y, weights, algorithm))
    assert run.best.lower <= high
    assert low <= run.best.upper
    if algorithm.name in CERTIFYING:
        assert run.best.gap <= TOL
    else:
        assert run.converged
    points, problem = run.best, run.problem
    c, b = points.primal
    z, length2 = K @ c, problem.norm2(float(c @ K @ c), b)
    used = weights > 0.0
    if problem.free:
        assert b == pytest.approx(
            best_intercept(problem, z[used], y[used], weights[used]), rel=ROUNDING, abs=ROUNDING
        )
    alpha = points.alpha
    assert (alpha <= problem.caps(weights) * (1.0 + 1e-12)).all()
    v2 = float((alpha * y) @ K @ (alpha * y)) + (problem.rho * float(alpha @ y)) ** 2
    if problem.free:
        assert abs(alpha @ y) <= 1e-9 * alpha.sum()
    if problem.hard:
        assert float((y * (z + b))[used].min()) / length2**0.5 == pytest.approx(run.best.lower, rel=ROUNDING)
        assert v2**0.5 / alpha.sum() == pytest.approx(run.best.upper, rel=TOL)  # balanced since
    else:
        y, z, alpha, weights = y[used], z[used], alpha[used], weights[used]
        assert problem.primal(0.5 * length2, y * (z + b), weights) == pytest.approx(
            run.best.upper, rel=ROUNDING
        )
        assert problem.dual(v2, alpha, weights) == pytest.approx(run.best.lower, rel=TOL)


@interpreted
@pytest.mark.parametrize(
    ("algorithm", "problem"),
    [(DualCoordinateDescent(), PROBLEMS[2]), (MPU(), PROBLEMS[5]), (MPU(), PROBLEMS[8])],
)
def test_warm_start_from_dual_weights_keeps_their_bound(algorithm, problem):
    """The intercept is computed again, but the bound of the dual weights holds."""
    X, y, weights = rings(40, 0, noise=0.0)
    weights[5] = 0.0
    rows = FewKernelRows(SMOOTH.block(X, X), 5)
    first = rounds(started_run(problem, rows, y, weights, algorithm))
    warm = started_run(problem, rows, y, weights, algorithm, start=first.best.alpha)
    warm.evaluate_iterate()
    assert warm.steps == 0
    if problem.hard:
        assert warm.best.upper <= first.best.upper * (1.0 + 1e-9)
    else:
        assert warm.best.lower >= first.best.lower * (1.0 - 1e-9)
    assert rounds(warm).best.gap <= TOL


@interpreted
@pytest.mark.parametrize(
    "algorithm", [PUMMA(delta=0.01), DualCoordinateDescent(), Pegasos(), ALGORITHMS["ima"]()]
)
def test_interrupt_within_a_sweep_is_not_convergence(algorithm):
    """A sweep that is interrupted before a kernel row is abandoned and proves nothing."""
    X, y, weights = rings(40, 5)
    polls = []

    def interrupted():
        polls.append(None)
        return len(polls) > 20

    problem = next(p for p in (PROBLEMS[5], PROBLEMS[8]) if algorithm.refuses(p) is None)
    rows = FewKernelRows(Gaussian(0.4).block(X, X), 4)
    run = started_run(problem, rows, y, weights, algorithm, interrupted=interrupted)
    for _ in SCHEDULES[algorithm.schedule](run):
        if len(polls) > 20:
            break
    assert len(polls) > 20
    assert not run.converged
    assert run.best.lower <= run.best.upper
