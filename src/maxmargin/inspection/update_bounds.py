"""The bound before the run of each algorithm of a comparison, from the largest margin that is certified."""

from __future__ import annotations

from collections.abc import Callable
from math import inf, nan, sqrt
from typing import Any

import numpy as np

from ..algorithms import bounds
from ..algorithms.base import Algorithm, Facts
from ..algorithms.batch.accelerated import END_SHARE
from ..certificates.certificate import Certificate
from ..data.rows import Patterns
from ..data.task import Task
from ..estimators.linear import linear_algorithm
from ..estimators.validation import encode_targets
from ..fit.run import Run
from ..numerics.norms import norm
from ..problem.problem import Problem


def bounds_of_models(
    models: dict[str, Any], X: Any, y: np.ndarray, sample_weight: Any
) -> dict[str, list[float]]:
    """Return the bound of the updates of each binary problem of each fitted model; NaN where there is none.

    The margin in the bounds is that of the model with the best certified margin or objective of the binary problem.

    Parameters
    ----------
    models : dict of str to MaxMarginClassifier
        Fitted to the same problem and data.
    X : ndarray or CSR matrix of shape (n, d)
    y : ndarray of shape (n,)
    sample_weight : array-like of shape (n,) or None

    Returns
    -------
    bounds : dict of str to list of float
    """
    first = next(iter(models.values()))
    problem = first.certificate_.certificates[0].problem
    targets = encode_targets(problem, first.class_weight, X, y, sample_weight)
    kept = slice(None) if targets.selected is None else targets.selected
    patterns, several = Patterns(X[kept]), targets.classes.size > 2
    found: dict[str, list[float]] = {name: [] for name in models}
    for k in range(len(first.coef_)):
        signs = np.where(targets.y == targets.classes[k if several else 1], 1.0, -1.0)
        task = Task(problem, patterns, signs[kept], targets.weights[kept])
        parts = {name: model.certificate_.certificates[k] for name, model in models.items()}
        best = min(parts, key=lambda name: -parts[name].lower if problem.hard else parts[name].upper)
        w, b = models[best].coef_[k], float(models[best].intercept_[k])
        for name, model in models.items():
            algorithm, bound = linear_algorithm(model.algorithm), np.nan
            if algorithm is not None and algorithm.name in _BOUNDS:
                with np.errstate(over="ignore", invalid="ignore"):
                    run = Run(task, algorithm, model.tol, np.random.default_rng(0), bool)
                    margin = directional_margin(parts[best], w, b, run.rho)
                    bound = most_updates(algorithm, run.facts, margin)
            found[name].append(bound)
    return found


def directional_margin(certified: Certificate, w: np.ndarray, b: float, rho: float) -> float:
    """Return the margin of a certified (w, b) where patterns have the constant coordinate rho and slack coordinates.

    Soft: 1 / sqrt(2 J), J being the objective with the weight b / rho of the constant coordinate in the norm.
    """
    problem: Problem = certified.problem
    own = norm(problem.weights(w, b), problem.q)
    full = norm(np.append(w, b / rho) if rho else w, problem.q)
    if problem.hard:
        return certified.lower * own / full if full > 0.0 else 0.0
    return float(2.0 * certified.upper - own * own + full * full) ** -0.5


def most_updates(algorithm: Algorithm, facts: Facts, margin: float) -> float:
    """Return the bound of the updates of a run before it begins; NaN where there is none.

    Updates are counted as in `Report.steps`: several updates of MPU by one pattern at once are one.

    Parameters
    ----------
    algorithm : Algorithm
    facts : Facts
        The problem, with the radius in the space of the algorithm.
    margin : float
        A margin that some w attains in this space.

    Returns
    -------
    updates : float
        NaN also if the margin is not positive.
    """
    bound = _BOUNDS.get(algorithm.name)
    if bound is None or not margin > 0.0:
        return nan
    try:
        return bound(algorithm, facts, margin)
    except OverflowError:  # the square of R / gamma is no float64 number
        return inf


def _alma(algorithm: Any, facts: Facts, margin: float) -> float:
    """Return the bound of ALMA for the constants B and C of its theorem."""
    if algorithm.B is not None or sqrt(2.0) != algorithm.C:
        return nan
    return bounds.alma_updates(facts.R, margin, algorithm.alpha, facts.problem.p)


def _mpu(algorithm: Any, facts: Facts, margin: float) -> float:
    """Return (10), or (22) with the hinge; the theorems have neither a free intercept nor sample weights."""
    problem, rule, R2 = facts.problem, algorithm.plan(facts).rule, facts.R**2
    if problem.free:
        return nan
    if problem.hard or problem.loss == "squared_hinge":
        return bounds.mpu_updates(facts.R, margin, rule.b / R2, rule.db / R2)
    if facts.losses != problem.C * facts.n:
        return nan
    return bounds.mpu_soft_updates(facts.n, problem.C * rule.b, rule.b / R2, rule.db / R2)


def _fmp(algorithm: Any, facts: Facts, margin: float) -> float:
    """Return the bound of FMP; of a soft margin only at p = 2, where slack coordinates are like others.

    The constant coordinate of an augmented intercept is one of the features.
    """
    problem, rule = facts.problem, algorithm.plan(facts).rule
    p, rho = problem.p, problem.rho
    if p == 2.0 or facts.length2 is None:
        square = facts.radius2 if problem.hard or p == 2.0 else nan
    else:
        square = facts.length2 + rho**2 if problem.hard else nan
    d = facts.d + (1 if rho else 0)
    return bounds.fmp_updates(sqrt(square), margin, rule.gamma, p, d, sqrt(rule.constant2))


def _accelerated(algorithm: Any, facts: Facts, margin: float) -> float:
    """Return the bound at p < inf, with the gap at which the iterates end."""
    p = facts.problem.p
    return bounds.accelerated_steps(facts.R, margin, END_SHARE * facts.tol, facts.n, p) if p < inf else nan


def _last_rule(algorithm: Algorithm, facts: Facts) -> Any:
    """Return the last rule of a plan: of several, that of the smallest delta, whose bound covers all updates."""
    plan = algorithm.plan(facts)
    return [plan.rule, *plan.then][-1]


def _cramma(algorithm: Any, facts: Facts, margin: float) -> float:
    """Return t_b - 1: t counts the first pattern, which is no update."""
    rule = algorithm.plan(facts).rule
    return bounds.cramma_updates(facts.R, margin, rule.beta, rule.eta, rule.epsilon) - 1.0


def _micra(algorithm: Any, facts: Facts, margin: float) -> float:
    """Return t_b - 1: t counts the first pattern, which is no update."""
    rule = algorithm.plan(facts).rule
    return bounds.micra_updates(facts.R, margin, rule.beta, rule.eta, rule.epsilon, rule.zeta) - 1.0


def _fixed_margin(algorithm: Algorithm, facts: Facts, margin: float) -> float:
    rule = algorithm.plan(facts).rule
    return bounds.fixed_margin_updates(facts.R, margin, rule.beta, rule.eta)


def _normalised(bound: Callable[[Any, float, int], float]) -> Callable[..., float]:
    """Return the bound of the steps to the first separator, from a function of the algorithm, rho and n.

    The divided patterns have a margin of at least gamma / R. There is no bound with an `accuracy` below 1, with which
    the algorithm goes on after the first separator.
    """
    return lambda one, facts, margin: bound(one, margin / facts.R, facts.n) if one.accuracy == 1.0 else nan


_BOUNDS: dict[str, Callable[..., float]] = {
    "perceptron": lambda one, facts, margin: bounds.perceptron_updates(facts.R, margin, one.b),
    "local-perceptron": lambda one, facts, margin: bounds.perceptron_updates(facts.R, margin, one.b),
    "alma": _alma,
    "cramma": _cramma,
    "micra": _micra,
    "fixed-margin": _fixed_margin,
    "romma": lambda one, facts, margin: bounds.romma_updates(facts.R, margin),
    "aggressive-romma": lambda one, facts, margin: bounds.romma_updates(
        facts.R, margin, _last_rule(one, facts).delta
    ),
    "pumma": lambda one, facts, margin: bounds.pumma_updates(
        facts.R, margin, _last_rule(one, facts).delta, facts.problem.p
    ),
    "mpu": _mpu,
    "fmp": _fmp,
    "accelerated": _accelerated,
    "normalised-perceptron": _normalised(lambda one, rho, n: bounds.normalised_perceptron_steps(rho)),
    "von-neumann": _normalised(lambda one, rho, n: bounds.normalised_perceptron_steps(rho)),
    "smoothed-perceptron": _normalised(lambda one, rho, n: bounds.smoothed_perceptron_steps(rho, n)),
    "smoothed-primal-dual": _normalised(lambda one, rho, n: bounds.smoothed_primal_dual_steps(rho, n)),
    "iterated-smoothed-primal-dual": _normalised(
        lambda one, rho, n: bounds.iterated_smoothed_primal_dual_steps(rho, n, gamma=one.gamma)
    ),
}
