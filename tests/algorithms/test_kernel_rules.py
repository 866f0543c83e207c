"""Kernel forms of the algorithms: steps of naive implementations on explicit features, bounds on the exact optimum."""

from __future__ import annotations

from collections import OrderedDict
from itertools import pairwise, product

import numpy as np
import pytest
from effort import selected
from naive import replay
from oracle import optimum
from presenting import BUSY, ONE_BY_ONE, bias, dual, reflected
from problems import rings

from maxmargin import Problem
from maxmargin.algorithms import (
    ALGORITHMS,
    ALMA,
    MPU,
    PUMMA,
    AggressiveROMMA,
    Bias,
    DualCoordinateDescent,
    Pegasos,
)
from maxmargin.algorithms.batch.kernel_rows import KernelRows
from maxmargin.algorithms.online.halving import accuracies
from maxmargin.data.rows import Patterns
from maxmargin.data.task import GramTask, Task
from maxmargin.fit.gram_run import GramRun
from maxmargin.fit.run import Run
from maxmargin.fit.schedules import SCHEDULES
from maxmargin.kernels.functions import Gaussian, Linear, Polynomial
from maxmargin.problem.intercept import best_intercept

KERNELISED = [name for name in ALGORITHMS if ALGORITHMS[name].kernelised]
PROBLEMS = [
    Problem(loss, C, intercept=intercept, intercept_scaling=0.7)
    for (loss, C), intercept in product(
        [("hinge", np.inf), ("hinge", 3.0), ("squared_hinge", 3.0)], ("none", "augmented", "free")
    )
]
SOLVED = [(name, p) for name in KERNELISED for p in PROBLEMS if ALGORITHMS[name]().refuses(p) is None]
SOLVED_BY = {name: [p for other, p in SOLVED if other == name] for name in KERNELISED}
TOL = 0.02


def compiled_once(name: str, problem: Problem, *_) -> bool:
    """Return whether `make test` compiles this algorithm for this problem: for most algorithms one problem, in turn."""
    position = KERNELISED.index(name) % len(SOLVED_BY[name])
    return problem == SOLVED_BY[name][position] or name in ("perceptron", "mpu", "dcd", "pumma")


PLAIN_SCHEDULE = {
    name: {"schedule": "plain"} for name in ("romma", "aggressive-romma", "fmp")
}  # compiled once for all tests


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


def case_id(value):
    return f"{value.loss}-{value.C:g}-{value.intercept}" if isinstance(value, Problem) else str(value)


def features(K):
    """Rows whose inner products are K."""
    values, vectors = np.linalg.eigh(K)
    return vectors * np.sqrt(np.maximum(values, 0.0))


def started_run(problem, rows, y, weights, algorithm, tol=TOL, seed=0, start=None, interrupted=lambda: False):
    task = GramTask(problem, rows, y, weights, start)
    return GramRun(task, algorithm, tol, np.random.default_rng(seed), interrupted)


def rounds(run, most=300, between=lambda: None):
    """Run the rounds of its schedule until its bounds are near or it has converged."""
    for k, _ in enumerate(SCHEDULES[run.algorithm.schedule](run), 1):
        between()
        if run.best.gap <= run.tol or run.converged or k == most:
            return run
    raise AssertionError("the schedule does not end")


# steps


@pytest.mark.parametrize("most", [4, None])
@pytest.mark.parametrize(
    ("name", "problem"),
    selected(
        [
            (name, p)
            for name, p in SOLVED
            if name in ONE_BY_ONE and p.free <= (ALGORITHMS[name].bias is not Bias.COORDINATE)
        ],
        compiled_once,
    ),
    ids=case_id,
)
def test_trajectory_equals_the_naive_one_on_features(name, problem, most):
    """The same rows are updated in the same order, for any number of cached rows; rows of weight 0 are ignored.

    As in `test_rules.py`, data with a decision within 1e-9 of its threshold are skipped. A free intercept
    that is set from outside is constant between two updates of it.
    """
    steps = compared = 0
    for seed in range(8):
        rng = np.random.default_rng(seed)
        X, y, _ = rings(30, seed)
        weights = 10.0 ** rng.uniform(-1, 1, 30)
        weights[rng.random(30) < 0.2] = 0.0
        kernel = (Gaussian(0.4), Polynomial(0.5, 2, 1.0))[seed % 2]
        K = kernel.block(X, X)
        run = started_run(problem, FewKernelRows(K, most), y, weights, ALGORITHMS[name](**BUSY.get(name, {})))
        used = np.flatnonzero(weights)
        orders = [rng.permutation(used.size).astype(np.uint32) for _ in range(4)]
        delta2 = problem.delta2(weights[used])
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
        assert dual(run.h) == pytest.approx(expected.dual, rel=0, abs=1e-11 * expected.dual.max())
        assert bias(run.h) == pytest.approx(expected.bias, rel=1e-11, abs=1e-11)
        c = dual(run.h) * y[used]
        w = run.h.number[0] * run.h.space.vector.w
        assert w[:-1] == pytest.approx(K[:, used] @ c, rel=0, abs=1e-11 * np.abs(c).sum() * K.max())
        assert w[-1] == pytest.approx(run.rho * c.sum(), rel=0, abs=1e-11 * np.abs(c).sum())
    assert compared >= 3
    assert steps >= 5 * compared


def fingerprint(run):
    return run.steps, run.presentations, run.h.alpha.tolist(), run.best.lower, run.best.upper


@pytest.mark.parametrize("name", KERNELISED)
@pytest.mark.parametrize("loss", ["hinge", "squared_hinge"])
def test_cached_rows_do_not_change_results(name, loss):
    """Bit for bit: all kernel rows cached, a few, or a few shared with other users between rounds."""
    X, y, weights = rings(50, 1)
    K = Gaussian(0.4).block(X, X)
    problem = Problem(loss, 3.0, intercept="free")
    options = {"k": 7} if name == "pegasos" else {**BUSY.get(name, {}), **PLAIN_SCHEDULE.get(name, {})}
    if ALGORITHMS[name]().refuses(problem) is not None:
        return
    weights[::7] = 0.0
    results = []
    for most, shared in ((None, False), (4, False), (11, True)):
        rows = FewKernelRows(K, most)
        run = started_run(problem, rows, y, weights, ALGORITHMS[name](**options))
        rounds(run, 3, (lambda rows=rows: rows.slots(np.array([3, 1, 4]))) if shared else lambda: None)
        assert rows.computed <= run.n if most is None else rows.computed > 4
        results.append(fingerprint(run))
    assert results[0] == results[1] == results[2]
    # leaving out rows of weight 0 changes nothing
    used = np.flatnonzero(weights)
    run = started_run(
        problem, FewKernelRows(K[np.ix_(used, used)]), y[used], weights[used], ALGORITHMS[name](**options)
    )
    assert fingerprint(rounds(run, 3))[:3] == results[0][:3]


@pytest.mark.parametrize(
    ("name", "problem"),
    selected(
        [
            (name, p)
            for name, p in SOLVED
            if (p.free and name != "dcd" and (name != "mpu" or p.loss == "hinge"))
            or name in ("perceptron", "alma")
        ],
        compiled_once,
    ),
    ids=case_id,
)
def test_linear_kernel_equals_the_linear_algorithm(name, problem):
    """The same orders and steps; rows longer than their number, so that most algorithms score by look-up in both.

    Bounds are at least as near, since the best length is computed for every primal point.
    """
    rng = np.random.default_rng(3)
    n, d = 24, 60
    y = np.where(np.arange(n) % 3 == 0, 1.0, -1.0)
    X = rng.normal(size=(n, d)) + 0.4 * y[:, None]
    # schedules that leave a set of rows by its gap need equal bounds
    schedule = {"schedule": "plain"} if name in ("mpu", *PLAIN_SCHEDULE) else {}
    algorithm = ALGORITHMS[name](**BUSY.get(name, {}), **schedule)
    linear = Run(
        Task(problem, Patterns(X), y, np.ones(n)), algorithm, 1e-6, np.random.default_rng(0), lambda: False
    )
    kernel = started_run(problem, KernelRows(Linear(), X, 1.0), y, np.ones(n), algorithm, 1e-6)
    for run in (linear, kernel):
        rounds(run, 6)
    assert kernel.steps == linear.steps > 0
    assert kernel.presentations == linear.presentations
    assert kernel.converged == linear.converged
    assert dual(kernel.h) == pytest.approx(dual(linear.h), rel=0, abs=1e-9 * dual(linear.h).max())
    assert kernel.best.gap <= linear.best.gap * (1.0 + 1e-3)


# final bounds


FAST_OPTIONS = {
    "alma": {"alpha": 0.5},
    "cramma": {"beta": 1.3, "eta": 0.05},
    "micra": {"beta": 1.3, "eta": 0.5},
    "fixed-margin": {"beta": 0.01, "eta": 0.05},
    **PLAIN_SCHEDULE,
    "fmp": {"schedule": "plain", "gamma": 0.01},
}
CERTIFYING = ("dcd", "mpu", "aggressive-romma", "pumma", "ima", "pegasos")


@pytest.mark.parametrize(("name", "problem"), selected(SOLVED, compiled_once), ids=case_id)
def test_bounds_bracket_the_optimum(name, problem):
    X, y, weights = rings(40, 0, noise=0.0)
    kernel = Polynomial(0.5, 2, 1.0)
    K = kernel.block(X, X)
    exact = optimum(problem, features(K), y, weights)
    low, high = float(exact.lower) * (1.0 - 1e-9), float(exact.upper) * (1.0 + 1e-9)
    run = rounds(
        started_run(
            problem, KernelRows(kernel, X, 1.0), y, weights, ALGORITHMS[name](**FAST_OPTIONS.get(name, {}))
        )
    )
    assert run.best.lower <= high
    assert low <= run.best.upper
    if name in CERTIFYING:
        assert run.best.gap <= TOL
    else:
        assert run.converged
    # the bounds are those of the primal and dual points of the run
    points, problem = run.best, run.problem
    c, b = points.primal
    z, length2 = K @ c, problem.norm2(float(c @ K @ c), b)
    if problem.free:
        assert b == pytest.approx(best_intercept(problem, z, y, weights), rel=1e-6, abs=1e-9)
    alpha = points.alpha
    assert (alpha <= problem.caps(weights) * (1.0 + 1e-12)).all()
    v2 = float((alpha * y) @ K @ (alpha * y)) + (problem.rho * float(alpha @ y)) ** 2
    if problem.free:
        assert abs(alpha @ y) <= 1e-9 * alpha.sum()
    if problem.hard:
        assert float((y * (z + b)).min()) / length2**0.5 == pytest.approx(run.best.lower, rel=1e-8)
        assert v2**0.5 / alpha.sum() == pytest.approx(run.best.upper, rel=0.02)
    else:
        assert problem.primal(0.5 * length2, y * (z + b), weights) == pytest.approx(run.best.upper, rel=1e-8)
        assert problem.dual(v2, alpha, weights) == pytest.approx(run.best.lower, rel=0.02)


@pytest.mark.parametrize(
    "algorithm",
    [MPU(schedule="two-level"), MPU(schedule="plain"), DualCoordinateDescent(schedule="shrinking")],
    ids=lambda algorithm: f"{algorithm.name}, {algorithm.schedule}",
)
def test_other_schedules_with_few_cached_rows_bracket_the_optimum(algorithm):
    X, y, weights = rings(40, 0, noise=0.0)
    weights[::6] = 0.0
    K = Polynomial(0.5, 2, 1.0).block(X, X)
    problem = Problem("hinge", 3.0)
    exact = optimum(problem, features(K), y, weights)
    run = rounds(started_run(problem, FewKernelRows(K, 6), y, weights, algorithm))
    assert run.best.gap <= TOL
    assert run.best.lower <= float(exact.upper) * (1.0 + 1e-9)
    assert float(exact.lower) * (1.0 - 1e-9) <= run.best.upper


def extended(problem, K, y, weights):
    """R^2 and a lower bound of the largest extended margin Gamma: 1 / (2 Gamma^2) is the optimal objective."""
    exact = optimum(problem, features(K), y, weights)
    gamma = float(exact.lower) if problem.hard else (2.0 * float(exact.upper)) ** -0.5
    return float((np.diagonal(K) + problem.delta2(weights)).max()) + problem.rho**2, gamma


@pytest.mark.parametrize("C", [np.inf, 0.5])
@pytest.mark.parametrize(
    ("algorithm", "fraction", "most"),
    [
        (ALGORITHMS["perceptron"](b=2.0), 2.0 / 5.0, lambda ratio: 5.0 * ratio),
        (ALGORITHMS["romma"](schedule="plain"), 0.0, lambda ratio: ratio),
        (AggressiveROMMA(delta=0.3, halving=False, schedule="plain"), 0.7, lambda ratio: ratio / 0.09),
        (PUMMA(delta=0.3, halving=False), 0.7, lambda ratio: 4.0 * ratio / 0.09),
        (ALMA(alpha=0.5), 0.5, lambda ratio: 2.0 * ratio * 9.0 + 12.0),
    ],
    ids=lambda value: getattr(value, "name", ""),
)
def test_kernel_forms_satisfy_their_theorems(algorithm, fraction, most, C):
    """At most the number of updates of the theorem, and at least its fraction of the largest margin."""
    for seed in range(3):
        X, y, _ = rings(40, seed, noise=0.0)
        weights = np.ones(40)
        kernel = Polynomial(0.5, 2, 1.0)
        K = kernel.block(X, X)
        intercept = "free" if algorithm.bias is Bias.OWN else "augmented"
        problem = Problem("squared_hinge", C, intercept=intercept)
        R2, gamma = extended(problem, K, y, weights)
        run = rounds(started_run(problem, KernelRows(kernel, X, 1.0), y, weights, algorithm, 1e-9), 10**4)
        assert run.converged
        assert run.steps <= most(R2 / gamma**2)
        achieved = run.best.lower if problem.hard else (2.0 * run.best.upper) ** -0.5
        assert achieved >= fraction * gamma * (1.0 - 1e-9)
        assert achieved > 0.0


@pytest.mark.parametrize(
    "problem", [p for p in PROBLEMS if p.free and (p.hard or p.loss == "squared_hinge")], ids=case_id
)
def test_halving_ends_at_the_accuracy_with_fewer_updates(problem):
    """Section 5.2: delta is halved after a full pass without updates, down to the given accuracy."""
    X, y, weights = rings(60, 2, noise=0.0)
    kernel = Polynomial(0.5, 2, 1.0)
    steps = {}
    for halving in (True, False):
        algorithm = PUMMA(delta=0.05, halving=halving)
        run = started_run(problem, KernelRows(kernel, X, 1.0), y, weights, algorithm, 1e-9)
        deltas, advance = [run.rule.delta], run.take_next_rule

        def recorded(run=run, deltas=deltas, advance=advance):
            assert run.sweep(run.h, run.all_rows) == 0
            advance()
            deltas.append(run.rule.delta)

        run.take_next_rule = recorded
        rounds(run)
        assert run.converged
        assert deltas == [*accuracies(0.05, halving), 0.05]
        fraction = (
            run.best.lower / run.best.upper if problem.hard else (run.best.lower / run.best.upper) ** 0.5
        )
        assert fraction >= 0.95
        steps[halving] = run.steps
    assert steps[True] < steps[False]


def test_single_precision_rows_agree_with_double():
    """Rows in float32, sums in float64: bounds agree to the digits of float32."""
    X, y, weights = rings(60, 4)
    problem = Problem("squared_hinge", 2.0)
    wide, narrow = (
        rounds(
            started_run(
                problem,
                KernelRows(Gaussian(0.4), X.astype(kind), 1.0),
                y,
                weights,
                ALGORITHMS["perceptron"](),
            )
        )
        for kind in (np.float64, np.float32)
    )
    assert narrow.h.space.K.dtype == np.float32
    assert narrow.h.space.vector.w.dtype == np.float64
    assert narrow.converged
    assert narrow.best.lower == pytest.approx(wide.best.lower, rel=1e-5)
    assert narrow.best.upper == pytest.approx(wide.best.upper, rel=1e-5)


# warm starts, interruption, degenerate rows


@pytest.mark.parametrize("problem", [p for p in PROBLEMS if p.free], ids=case_id)
@pytest.mark.parametrize("algorithm", [DualCoordinateDescent(), MPU()], ids=lambda a: a.name)
def test_warm_start_from_dual_weights_keeps_their_bound(algorithm, problem):
    X, y, weights = rings(40, 0, noise=0.0)
    weights[5] = 0.0
    rows = FewKernelRows(Polynomial(0.5, 2, 1.0).block(X, X), 5)
    first = rounds(started_run(problem, rows, y, weights, algorithm))
    warm = started_run(problem, rows, y, weights, algorithm, start=first.best.alpha)
    warm.evaluate_iterate()
    assert warm.steps == 0
    # the intercept is recomputed, but the bound of the dual weights holds
    if problem.hard:
        assert warm.best.upper <= first.best.upper * (1.0 + 1e-9)
    else:
        assert warm.best.lower >= first.best.lower * (1.0 - 1e-9)
    assert rounds(warm).best.gap <= TOL


def test_alma_warm_start_takes_fewer_steps():
    X, y, weights = rings(40, 0, noise=0.0)
    problem = Problem("hinge", np.inf, intercept="augmented")
    kernel = Polynomial(0.5, 2, 1.0)
    first = rounds(started_run(problem, KernelRows(kernel, X, 1.0), y, weights, ALMA(alpha=0.5)))
    warm = started_run(
        problem, KernelRows(kernel, X, 1.0), y, weights, ALMA(alpha=0.5), start=first.best.alpha
    )
    assert warm.h.norm2() == pytest.approx(1.0, rel=1e-12)
    rounds(warm)
    assert warm.converged
    assert warm.steps < first.steps
    assert warm.best.lower >= 0.5 * warm.best.upper * 0.5


def test_interrupt_within_a_sweep_is_not_convergence():
    """A sweep that is interrupted before a kernel row is abandoned and proves nothing."""
    X, y, weights = rings(40, 5)
    for algorithm in (PUMMA(delta=0.01), DualCoordinateDescent(), Pegasos(), ALGORITHMS["ima"]()):
        polls = []

        def interrupted(polls=polls):
            polls.append(None)
            return len(polls) > 20

        problem = Problem("squared_hinge" if algorithm.name in ("pumma", "ima") else "hinge", 1.0)
        run = started_run(
            problem,
            FewKernelRows(Gaussian(0.4).block(X, X), 4),
            y,
            weights,
            algorithm,
            interrupted=interrupted,
        )
        for _ in SCHEDULES[algorithm.schedule](run):
            if len(polls) > 20:
                break
        assert len(polls) > 20
        assert not run.converged
        assert run.best.lower <= run.best.upper


def test_a_pattern_of_length_zero_has_no_margin():
    X, y, weights = rings(10, 6)
    X[3] = 0.0
    problem = Problem("hinge", np.inf, intercept="none")
    run = started_run(problem, KernelRows(Linear(), X, 1.0), y, weights, DualCoordinateDescent())
    run.look_for_zero_rows()
    assert run.best.upper == 0.0
    assert run.best.alpha.nonzero()[0].tolist() == [3]


def test_algorithms_without_a_kernel_form_name_an_alternative():
    without = {"cutting-plane", "flexible-ima", "lp", "barrier", "interior-point", "proximal-point", "newton"}
    assert set(ALGORITHMS) - set(KERNELISED) == without
    for name in ALGORITHMS:
        refusal = ALGORITHMS[name]().refuses_kernels()
        assert (refusal is None) == (name not in without)
        assert refusal is None or ('algorithm="' in refusal and name not in refusal)
