"""Published bounds on the numbers of updates and on margins hold, and published numbers of updates are reproduced."""

from __future__ import annotations

import doctest
from collections.abc import Callable
from inspect import isfunction
from typing import NamedTuple

import numpy as np
import pytest
from effort import examples, interpreted, thorough
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from naive import inverse_link, p_norm
from oracle import optimum

import maxmargin as mm
from maxmargin import MaxMarginClassifier, Problem, Status
from maxmargin.algorithms import ALGORITHMS, FMP, IMA, MPU, PUMMA, Bias, Facts, bounds

seeds = st.integers(0, 2**20)
sampled = st.sampled_from
MARGIN = 0.5  # the largest margin of planted patterns
ROUNDED = 1.0 - 1e-10  # thousands of updates, each with a few roundings
INTERCEPTS = {"none": {"fit_intercept": False}, "free": {}}


def planted(seed: int, n: int, d: int, p: float, b: float = 0.0):
    """(X, y, u): the largest p-margin is exactly MARGIN, that of (u, b), |u|_q = 1; where b = 0 also without a bias.

    theta and u are a dual pair: |theta|_p = 1, u.theta = 1. Four patterns y_k = MARGIN theta +- t, u.t = 0, two of each
    class, have the mean MARGIN theta, which bounds every margin by MARGIN; all others are farther along u.
    """
    rng = np.random.default_rng(seed)
    theta = rng.normal(size=d)
    if p == np.inf:  # the largest entries of theta, where u is not 0
        theta = np.sign(theta) * np.where(np.arange(d) < max(1, d // 2), 1.0, rng.random(d))
        u = np.where(np.abs(theta) == 1.0, theta * rng.random(d), 0.0)
        u /= np.abs(u).sum()
    elif p == 1.0:  # theta is 0 where u is not largest
        theta = np.where(np.arange(d) < max(1, d // 2), theta, 0.0)
        u = np.where(theta != 0.0, np.sign(theta), rng.uniform(-1.0, 1.0, d))
        theta = theta / np.abs(theta).sum()
    else:
        theta = theta / p_norm(theta, p)
        u = inverse_link(theta, p)
    t = rng.normal(size=(n, d))
    t -= np.outer(t @ u, theta)
    t[:4] = t[0] * np.array([1.0, -1.0, 1.0, -1.0])[:, None]
    far = np.where(np.arange(n) < 4, MARGIN, MARGIN * (1.0 + rng.exponential(size=n)))
    y = np.where(rng.random(n) < 0.5, 1.0, -1.0)
    y[:4] = 1.0, 1.0, -1.0, -1.0
    return y[:, None] * (t + np.outer(far, theta)) - b * theta, y, u


def lengths(X, p: float) -> np.ndarray:
    """The p-norm of every row."""
    return np.array([p_norm(x, p) for x in X])


def ran(algorithm, X, y, C=np.inf, p=2.0, intercept="none", **options):
    """A run to the end of the algorithm itself."""
    run = algorithm.run(
        X, y, C, p=p, intercept=intercept, max_epochs=np.inf, record=None, random_state=0, **options
    )
    assert run.status is Status.CONVERGED
    return run


def reached(run, X, y, p: float = 2.0) -> np.ndarray:
    """The margins of the patterns."""
    return y * (X @ run.w + run.b) / p_norm(run.w, {1.0: np.inf, np.inf: 1.0}.get(p) or p / (p - 1.0))


# numbers of updates and margins


class Claim(NamedTuple):
    """Bounds of a theorem for patterns of norm at most 1, whose largest margin is g."""

    most: float  # updates
    least: float  # the margin at the end, as a share of the largest


def rate(g: float, share: float) -> float:
    """A share of CRAMMA's largest rate."""
    return share * 0.5 * ((1.0 + 8.0 * g) ** 0.5 - 1.0)


def micra_claim(g: float, beta: float, eta: float, powers: tuple[float, float]) -> Claim:
    most = bounds.micra_updates(1.0, g, beta, eta, *powers)
    return Claim(most - 1.0, (beta / g / most ** powers[0]))


class Theorem(NamedTuple):
    """A theorem: its algorithm and its claim, as functions of g, p and the drawn parameters."""

    draws: tuple[tuple, ...]
    algorithm: Callable[..., object]
    claim: Callable[..., Claim]
    norms: tuple[float, ...] = (2.0,)


LINKED, EXPONENTS = (2.0, 2.5, 6.8), (1.0, 1.5, 2.0, 3.0, np.inf)
THEOREMS = {
    "perceptron": Theorem(
        ((0.0, 0.3, 1.0, 5.0, 30.0),),
        lambda g, b: mm.algorithms.Perceptron(b=b),
        lambda g, p, b: Claim(bounds.perceptron_updates(1.0, g, b), bounds.perceptron_fraction(b)),
    ),
    "local-perceptron": Theorem(
        ((0.0, 0.3, 5.0),),
        lambda g, b: mm.algorithms.LocalPerceptron(b=b),
        lambda g, p, b: Claim(bounds.perceptron_updates(1.0, g, b), 0.0),
    ),
    "alma": Theorem(
        ((0.2, 0.5, 0.8), (False, True)),
        lambda g, alpha, normalise: mm.algorithms.ALMA(alpha=alpha, normalise=normalise),
        lambda g, p, alpha, _: Claim(bounds.alma_updates(1.0, g, alpha, p), 1.0 - alpha),
        LINKED,
    ),
    "cramma": Theorem(
        ((1.0, 2.0, 5.0), (0.03, 0.2, 0.6), (0.5, 0.7, 1.0, 2.0)),
        lambda g, beta, share, epsilon: mm.algorithms.CRAMMA(beta=beta, eta=rate(g, share), epsilon=epsilon),
        lambda g, p, beta, share, epsilon: Claim(
            bounds.cramma_updates(1.0, g, beta, rate(g, share), epsilon) - 1.0,
            bounds.cramma_fraction(1.0, g, beta, rate(g, share), epsilon),
        ),
    ),
    "micra": Theorem(
        ((0.5, 1.0, 2.0), (0.1, 0.5, 2.0), ((0.5, 0.5), (0.5, 0.2), (1.0, 0.5), (1.0, 0.9), (2.0, 0.3))),
        lambda g, beta, eta, powers: mm.algorithms.MICRA(
            beta=beta, eta=eta, epsilon=powers[0], zeta=powers[1]
        ),
        lambda g, p, *drawn: micra_claim(g, *drawn),
    ),
    "fixed-margin": Theorem(
        ((0.1, 0.5),),
        lambda g, share: mm.algorithms.FixedDirectionalMargin(beta=share * g, eta=0.5 * g),
        lambda g, p, share: Claim(bounds.fixed_margin_updates(1.0, g, share * g, 0.5 * g), share),
    ),
    "romma": Theorem(
        ((None,),),
        lambda g, _: mm.algorithms.ROMMA(),
        lambda g, p, _: Claim(bounds.romma_updates(1.0, g), 0.0),
    ),
    "aggressive-romma": Theorem(
        ((1.0, 0.5, 0.1),),
        lambda g, delta: mm.algorithms.AggressiveROMMA(delta=delta, halving=False),
        lambda g, p, delta: Claim(bounds.romma_updates(1.0, g, delta), 1.0 - delta),
    ),
    "pumma": Theorem(  # theorem 3; the paper prints 2 for 4
        ((1.0, 0.4, 0.1),),
        lambda g, delta: mm.algorithms.PUMMA(delta=delta, halving=False),
        lambda g, p, delta: Claim(bounds.pumma_updates(1.0, g, delta, p), 1.0 - delta),
        LINKED,
    ),
}


@interpreted
@thorough
@pytest.mark.parametrize(
    ("name", "p"), [(name, p) for name, theorem in THEOREMS.items() for p in theorem.norms]
)
@settings(max_examples=examples(8, 100))
@given(seed=seeds, n=st.integers(4, 20), d=st.integers(2, 8))
def test_updates_and_margin_satisfy_the_theorem(name, p, seed, n, d):
    theorem, rng = THEOREMS[name], np.random.default_rng(seed)
    own = ALGORITHMS[name].bias is Bias.OWN
    X, y, _ = planted(seed, n, d, p, rng.choice([0.0, 1.5]) if own else 0.0)
    R = lengths(X, p).max()
    drawn = [options[rng.integers(len(options))] for options in theorem.draws]
    claim = theorem.claim(MARGIN / R, p, *drawn)
    assume(claim.most < 1e5)
    algorithm = theorem.algorithm(MARGIN / R, *drawn)
    run = ran(algorithm, X, y, p=p, intercept="free" if own else "none")
    assert run.n_updates <= claim.most
    assert np.isclose(run.bound, claim.most) or run.bound > claim.most  # of a smaller margin than the largest
    margins = reached(run, X, y, p)
    if getattr(algorithm, "normalise", False):  # normalised patterns have at least the margin MARGIN / R
        margins *= R / lengths(X, p)
    assert margins.min() >= claim.least * MARGIN * ROUNDED
    assert margins.min() > 0.0
    assert run.lower <= MARGIN / ROUNDED
    assert run.upper >= MARGIN * ROUNDED


@interpreted
@thorough
@pytest.mark.parametrize("p", EXPONENTS)
@settings(max_examples=examples(10, 60))
@given(seeds, st.integers(4, 20), st.integers(2, 8), sampled((0.0, 0.3, 0.7)), st.booleans())
def test_fmp_satisfies_its_bound(p, seed, n, d, share, free):
    """After the updates of the bound the margin exceeds gamma."""
    b = 1.5 * free
    X, y, u = planted(seed, n, d, p, b)
    gamma, R2 = share * MARGIN, lengths(X, 2.0).max()
    most = bounds.fmp_updates(R2, MARGIN, gamma, p, d, R2 * free, float(np.linalg.norm(u)), b)
    assert most <= bounds.fmp_updates(R2, MARGIN, gamma, p, d, R2 * free) / ROUNDED  # without u and b
    assume(most < 1e5)
    run = ran(FMP(gamma=gamma / lengths(X, p).max()), X, y, p=p, intercept="free" if free else "none")
    assert run.n_updates <= most / ROUNDED
    assert reached(run, X, y, p).min() >= gamma * ROUNDED


@interpreted
@pytest.mark.parametrize(("p", "delta"), [(2.0, 0.5), (2.0, 0.05), (4.0, 0.2)])
def test_pumma_satisfies_its_soft_bound(p, delta):
    """Updates, and an objective of at most (1 - delta)^-2 times the optimum."""
    for seed in range(3):
        rng = np.random.default_rng(seed)
        X, y = rng.normal(size=(20, 4)), np.where(np.arange(20) % 2 == 0, 1.0, -1.0)
        C = 10.0 ** rng.uniform(-1, 2)
        run = ran(PUMMA(delta=delta, halving=False), X, y, C, p, "free")
        assert run.n_updates <= bounds.pumma_soft_updates(lengths(X, p).max(), run.upper, C, delta, p)
        assert run.upper <= (1.0 - delta) ** -2 * run.lower / ROUNDED


@interpreted
@thorough
@settings(max_examples=examples(12, 60))
@given(seeds, st.integers(4, 20), st.integers(2, 6), sampled((0.5, 0.2, 0.05)), sampled((1.25, 2.0)))
def test_mpu_satisfies_theorem_1(seed, n, d, delta, delta_b):
    """Hard margin: the bound (10) on single updates, and the fraction of the margin before the run (11)."""
    X, y, _ = planted(seed, n, d, 2.0)
    R2, algorithm = lengths(X, 2.0).max() ** 2, MPU(delta, delta_b, schedule="plain")
    b, db = algorithm.plan(Facts(Problem("hinge", np.inf, intercept="none"), R2, 0.1)).rule
    run = ran(algorithm, X, y, loss="hinge")
    assert run.parameters["t_plus"] + run.parameters["t_minus"] <= bounds.mpu_updates(
        R2**0.5, MARGIN, b / R2, db / R2
    )
    margin = reached(run, X, y).min()
    assert margin > MARGIN * bounds.mpu_fraction(b / R2, db / R2) * ROUNDED
    assert margin >= (1.0 - run.parameters["after_run_accuracy"]) * MARGIN * ROUNDED  # (12)


@interpreted
@thorough
@settings(max_examples=examples(10, 60))
@given(seeds, st.integers(3, 20), st.integers(1, 6), sampled((0.3, 0.05, 0.01)), sampled((0.1, 3.0)))
def test_mpu_satisfies_theorem_2(seed, n, d, delta, C):
    """1-norm soft margin: the bound (22) on updates, the accuracy before the run (23) and after it (24)."""
    rng = np.random.default_rng(seed)
    y = np.where(np.arange(n) % 2 == 0, 1.0, -1.0)
    X = np.rint(2.0 * rng.normal(size=(n, d)) + 0.6 * y[:, None])
    R2 = float((X * X).sum(axis=1).max())
    assume(R2 > 0.0)
    problem, algorithm = Problem("hinge", C, intercept="none"), MPU(delta, schedule="plain")
    plan = algorithm.plan(Facts(problem, R2, 0.1))
    b, db = plan.rule
    exact = optimum(problem, X, y, np.ones(n))
    run = ran(algorithm, X, y, C, loss="hinge")
    made = run.parameters["t_plus"] + run.parameters["t_minus"]
    assert made <= bounds.mpu_soft_updates(n, C * b, b / R2, db / R2) / ROUNDED
    upper = run.objective
    assert upper / float(exact.lower) - 1.0 <= run.parameters["after_run_accuracy"] + 1e-9
    assert upper / float(exact.lower) - 1.0 <= bounds.mpu_accuracy(b, db) + 1e-9 <= delta + 2e-9


@interpreted
@settings(max_examples=20)
@given(st.floats(-4, 4), st.floats(-5, -1), sampled([1.5, 3.0, 10.0]), st.floats(0.1, 100.0))
def test_parameters_follow_from_the_accuracy(c, digits, delta_b, R2):
    """MPU: 2 (delta_b / b) / (1 - delta_b / b) <= delta, and the cap I = C b is an integer. PUMMA: (1 - delta)^-2."""
    C, delta = 10.0**c, 10.0**digits
    facts = [Facts(Problem("hinge", cost, intercept="none"), R2, 0.1) for cost in (C, np.inf)]
    soft, hard = (MPU(delta=delta, delta_b=delta_b).plan(one) for one in facts)
    b, db = soft.rule
    assert soft.unit == b
    assert db == delta_b * R2
    assert bounds.mpu_accuracy(b, db) <= delta * (1.0 + 1e-12)
    assert abs(C * b - np.rint(C * b)) <= 1e-12 * C * b
    b, db = hard.rule
    assert bounds.mpu_fraction(b / R2, db / R2) >= (1.0 - delta) * (1.0 - 1e-12)
    # at a margin of 1 - delta of the largest extended one, the ratio of the objectives is (1 - delta)^-2
    for cls in (mm.algorithms.AggressiveROMMA, PUMMA):
        rule = cls(halving=False).plan(Facts(Problem("squared_hinge", C), R2, tol=delta)).rule
        assert 0.8 * delta < (1.0 - rule.delta) ** -2 - 1.0 <= delta


@interpreted
@pytest.mark.parametrize(("p", "free"), list(zip(EXPONENTS, (True, False, True, False, True), strict=True)))
def test_ima_margin_is_within_alpha_of_the_optimum(p, free):
    X, y, _ = planted(1, 20, 6, p)
    algorithms = [(IMA(alpha=0.1), 0.9)] + [(IMA(increment=0.02, budget=200), 0.6)] * (p == 3.0)
    for algorithm, share in algorithms:
        model = MaxMarginClassifier(np.inf, p=p, algorithm=algorithm, tol=1e-9, random_state=0)
        last = model.set_params(**INTERCEPTS["free" if free else "none"]).fit(X, y).history_[-1]
        assert model.status_ is Status.CONVERGED
        assert share * MARGIN <= last.lower <= MARGIN / ROUNDED
        assert last.upper >= MARGIN * ROUNDED


# the formulas


def test_bound_of_micra_is_the_sum_of_its_terms():
    assert bounds.micra_updates(1.0, 0.1, 5.0, 0.1) < np.inf
    assert bounds.micra_updates(1.0, 0.1, 1.0, 0.9, zeta=0.0) == np.inf  # a constant rate that is too large
    steps = [bounds.micra_updates(1.0, margin, 0.5, 0.3, 0.5, 0.5) for margin in (0.4, 0.2, 0.1, 0.05)]
    assert steps == sorted(steps)


@pytest.mark.parametrize("none", [0.0, -0.5, np.nan])
def test_there_is_no_bound_without_a_positive_margin(none):
    for bound, parameters in (
        (bounds.perceptron_updates, {"radius": 1.0}),
        (bounds.alma_updates, {"radius": 1.0, "alpha": 0.5}),
        (bounds.cramma_updates, {"radius": 1.0, "beta": 1.0, "eta": 0.05}),
        (bounds.micra_updates, {"radius": 1.0, "beta": 0.5, "eta": 0.5}),
        (bounds.fixed_margin_updates, {"radius": 1.0, "beta": 0.05, "eta": 0.05}),
        (bounds.romma_updates, {"radius": 1.0}),
        (bounds.pumma_updates, {"radius": 1.0, "delta": 0.5}),
        (bounds.mpu_updates, {"radius": 1.0, "b": 9.5}),
        (bounds.fmp_updates, {"radius": 1.0}),
        (bounds.normalised_perceptron_steps, {}),
        (bounds.smoothed_perceptron_steps, {"n": 50}),
        (bounds.smoothed_primal_dual_steps, {"n": 50}),
        (bounds.iterated_smoothed_primal_dual_steps, {"n": 50}),
    ):
        assert bound(margin=none, **parameters) == np.inf
    assert bounds.cramma_fraction(1.0, none, 1.0, 0.05) == bounds.mpu_fraction_after(0.5, none, 1.0) == 0.0


def test_parameters_that_bounds_divide_by_are_positive():
    for bound, parameters, name in (
        (bounds.alma_updates, {"radius": 1.0, "margin": 0.1, "alpha": 0.5}, "alpha"),
        (bounds.cramma_updates, {"radius": 1.0, "margin": 0.1, "beta": 1.0, "eta": 0.05}, "eta"),
        (bounds.micra_updates, {"radius": 1.0, "margin": 0.1, "beta": 0.5, "eta": 0.5}, "radius"),
        (bounds.pumma_soft_updates, {"radius": 1.0, "objective": 2.0, "C": 0.5, "delta": 0.5}, "delta"),
        (bounds.mpu_fraction, {"b": 1.0}, "b"),
        (bounds.fmp_updates, {"radius": 1.0, "margin": 0.1, "p": 2.0}, "p"),
    ):
        with pytest.raises(ValueError, match=f"{name} must be a positive number"):
            bound(**parameters | {name: 0.0})


def test_examples_of_bounds_are_true():
    public = [
        name for name, one in vars(bounds).items() if isfunction(one) and one.__module__ == bounds.__name__
    ]
    public = [name for name in public if not name.startswith("_")]
    assert doctest.testmod(bounds) == (0, len(public))
