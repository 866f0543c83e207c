"""Kernel forms of the rules: steps of naive versions on explicit features, and bounds on the exact optimum."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from effort import interpreted
from naive import BUSY, replay
from oracle import optimum
from problems import rings

from maxmargin import KernelMaxMarginClassifier, Problem, Status
from maxmargin.algorithms import ALGORITHMS, MPU, Bias, DualCoordinateDescent, Facts

KERNELISED = [name for name in ALGORITHMS if ALGORITHMS[name].kernelised]
PROBLEMS = [
    Problem(loss, C, intercept=intercept, intercept_scaling=0.7)
    for (loss, C), intercept in product(
        [("hinge", np.inf), ("hinge", 3.0), ("squared_hinge", 3.0)], ("none", "augmented", "free")
    )
]
SOLVED = [(name, p) for name in KERNELISED for p in PROBLEMS if ALGORITHMS[name]().refuses(p) is None]
POLYNOMIAL = {"kernel": "poly", "gamma": 0.5, "degree": 2, "coef0": 1.0}
FAST = {  # parameters with which rules end soon
    "alma": {"alpha": 0.5},
    "cramma": {"beta": 1.3, "eta": 0.05},
    "micra": {"beta": 1.3, "eta": 0.5},
    "fixed-margin": {"beta": 0.01, "eta": 0.05},
    "romma": {"schedule": "plain"},
    "aggressive-romma": {"schedule": "plain"},
    "fmp": {"schedule": "plain", "gamma": 0.01},
}
IN_ORDER = [name for name in KERNELISED if "plain" in ALGORITHMS[name].schedules and name != "dcd"]


def classifier(problem: Problem, algorithm, **options):
    """A kernel classifier for this problem."""
    intercept: dict = {"fit_intercept": problem.intercept != "none"}
    if problem.intercept == "augmented":
        intercept["intercept_scaling"] = problem.intercept_scaling
    return KernelMaxMarginClassifier(
        problem.C,
        loss=problem.loss,
        algorithm=algorithm,
        random_state=0,
        **POLYNOMIAL,
        **intercept,
        **options,
    )


def kernel_matrix(X):
    return (0.5 * X @ X.T + 1.0) ** 2


def features(K):
    """Rows whose inner products are K."""
    values, vectors = np.linalg.eigh(K)
    return vectors * np.sqrt(np.maximum(values, 0.0))


@interpreted
@pytest.mark.parametrize(
    ("name", "problem"),
    [
        (name, p)
        for name, p in SOLVED
        if name in IN_ORDER and p.free == (ALGORITHMS[name].bias is Bias.OWN) and p.intercept != "augmented"
    ],
    ids=str,
)
def test_passes_in_order_equal_the_naive_ones_on_features(name, problem):
    """Data with a decision near its threshold are skipped."""
    compared = 0
    for seed in range(3):
        X, y, _ = rings(20, seed, noise=0.0)
        K, delta2 = kernel_matrix(X), problem.delta2(np.ones(20))
        algorithm = ALGORITHMS[name](schedule="plain", shuffle=False, **BUSY.get(name, {}))
        run = algorithm.run(
            K,
            y,
            problem.C,
            kernel="precomputed",
            loss=problem.loss,
            intercept=problem.intercept,
            max_epochs=60,
        )
        facts = Facts(problem, (K.diagonal() + delta2).max(), 1e-9, n=20, length2=K.diagonal().max(), d=20)
        plan = algorithm.plan(facts)
        Y = y[:, None] * features(K)
        Y = np.column_stack([Y, np.diag(np.sqrt(delta2))]) if delta2.any() else Y
        order, caps = (
            np.tile(np.arange(20), round(run.n_epochs)),
            problem.caps(np.ones(20)) * (plan.unit or 1.0),
        )
        expected = replay(name, Y, y, order, caps, plan.rule)
        if expected.nearest <= 1e-9:
            continue
        compared += 1
        assert run.n_updates == len(expected.moved)
        np.testing.assert_allclose(
            run.alpha, expected.dual, rtol=0, atol=1e-9 * np.linalg.norm(expected.dual)
        )
    assert compared >= 2


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
    """With few cached rows and rows of weight 0."""
    X, y, weights = rings(24, 0, noise=0.0)
    weights[::6] = 0.0
    exact = optimum(problem, features(kernel_matrix(X)), y, weights)
    # the features have the error n eps |K|, divided by the square of the margin
    low, high = float(exact.lower) * (1.0 - 1e-9), float(exact.upper) * (1.0 + 1e-9)
    model = classifier(problem, algorithm, tol=0.02, cache_size=0.001).fit(X, y, weights)
    assert model.certificate_.lower <= high
    assert low <= model.certificate_.upper
    if algorithm.name in CERTIFYING:
        assert model.status_ is Status.CERTIFIED
        assert model.certificate_.gap <= 0.02
    else:
        assert model.status_ in (Status.CONVERGED, Status.CERTIFIED)
    assert not set(model.support_) & set(np.flatnonzero(weights == 0.0))


@interpreted
@pytest.mark.parametrize("name", KERNELISED)
def test_cached_rows_do_not_change_results(name):
    """Bit for bit: all kernel rows cached, or a few."""
    X, y, weights = rings(15 if name == "pegasos" else 50, 1)
    options = {"k": 7} if name == "pegasos" else FAST.get(name, {})
    algorithm = ALGORITHMS[name](**options)
    problem = next(PROBLEMS[k] for k in (5, 8, 2) if algorithm.refuses(PROBLEMS[k]) is None)
    weights[::7] = 0.0
    runs = []
    for cache_size in (200.0, 0.003):
        model = classifier(problem, algorithm, max_iter=3, tol=1e-6, cache_size=cache_size)
        last = model.fit(X, y, weights).history_[-1]
        runs.append((last.steps, last.presentations, model.support_.tolist(), model.dual_coef_.tolist()))
    assert runs[0] == runs[1]
