"""Bounds before the run: the largest number of updates, and the accuracy, that the theorems of the papers prove.

Each bound of updates is a function of R, the largest norm of a pattern, of a margin gamma that some w attains in the
space of the algorithm (with the constant and the slack coordinates of the patterns, if it has any), and of the
parameters of the algorithm. R and gamma are in the same unit; thresholds b and widths delta_b are in units of R^2, beta
and gamma of a rule in units of R, as for the classes. A smaller gamma than the largest margin gives a larger, valid
bound. inf: the theorem gives no bound, as for a margin or length of 0. Equations are those of the cited papers.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from math import ceil, expm1, floor, inf, log, log1p, sqrt
from typing import Any

import numpy as np
from scipy.optimize import brentq


def _over(number: float, margin: float) -> float:
    """Return number / margin; inf unless the margin is positive."""
    return number / margin if margin > 0.0 else inf


def _require_positive(**numbers: float) -> None:
    """Raise ValueError unless each number is positive."""
    for name, value in numbers.items():
        if not value > 0.0:
            raise ValueError(f"{name} must be a positive number; got {value!r}.")


def perceptron_updates(radius: float, margin: float, b: float = 1.0) -> float:
    """Return (1 + 2 b) (R / gamma)^2, the bound of `Perceptron` and `LocalPerceptron` on updates (Novikoff).

    Examples
    --------
    >>> perceptron_updates(radius=2.0, margin=0.5, b=1.0)
    48.0
    """
    return (1.0 + 2.0 * b) * _over(radius, margin) ** 2


def perceptron_fraction(b: float) -> float:
    """Return b / (1 + 2 b), the fraction of the largest margin that the Perceptron with margin exceeds at its end.

    Examples
    --------
    >>> perceptron_fraction(b=2.0)
    0.4
    """
    return b / (1.0 + 2.0 * b)


def alma_updates(radius: float, margin: float, alpha: float, p: float = 2.0) -> float:
    """Return 2 (p - 1) (R / gamma)^2 (2 / alpha - 1)^2 + 8 / alpha - 4, the bound of ALMA_p on updates.

    It is the bound on corrections of Gentile (2001) for separable patterns, with B = sqrt(8) / alpha and C = sqrt(2).
    The margin at the end is at least 1 - alpha of the largest.

    Examples
    --------
    >>> alma_updates(radius=1.0, margin=0.5, alpha=0.5, p=3.0)
    156.0
    """
    _require_positive(alpha=alpha)
    return 2.0 * (p - 1.0) * _over(radius, margin) ** 2 * (2.0 / alpha - 1.0) ** 2 + 8.0 / alpha - 4.0


def cramma_updates(radius: float, margin: float, beta: float, eta: float, epsilon: float = 0.5) -> float:
    """Return t_b = t_0 (1 + tau_b), the bound of CRAMMA^epsilon on the counter t (Theorem 1).

    t_0 = (beta R / gamma)^(1 / epsilon), and tau_b is the root of equation (19). t counts the first pattern: there are
    at most t_b - 1 updates. inf unless eta < (sqrt(1 + 8 gamma / R) - 1) / 2.

    Examples
    --------
    >>> round(cramma_updates(radius=1.0, margin=0.1, beta=1.0, eta=0.05), 1)
    978.6
    """
    return (1.0 + _tau(radius, margin, beta, eta, epsilon)) * _over(beta * radius, margin) ** (1.0 / epsilon)


def cramma_fraction(radius: float, margin: float, beta: float, eta: float, epsilon: float = 0.5) -> float:
    """Return f_b = (1 + tau_b)^-epsilon, the fraction of gamma that CRAMMA^epsilon attains at its end (Theorem 1).

    Examples
    --------
    >>> round(cramma_fraction(radius=1.0, margin=0.1, beta=1.0, eta=0.05), 3)
    0.32
    """
    return (1.0 + _tau(radius, margin, beta, eta, epsilon)) ** -epsilon


def _tau(radius: float, margin: float, beta: float, eta: float, epsilon: float) -> float:
    """Return tau_b, the largest root of equation (19) of the CRAMMA paper; inf if eta is too large."""
    _require_positive(radius=radius, beta=beta, eta=eta, epsilon=epsilon)
    g = margin / radius
    chi, omega = 1.0 - _over(0.5 * eta * (1.0 + eta), g), eta * (1.0 + eta) * g
    if chi <= 0.0:
        return inf
    right = beta ** (-1.0 / epsilon) * g ** (1.0 / epsilon - 1.0) * (1.0 + omega) / eta

    def excess(tau: float) -> float:
        power = log1p(tau) if epsilon == 1.0 else expm1((1.0 - epsilon) * log1p(tau)) / (1.0 - epsilon)
        return chi * tau - (1.0 + eta) * power - right

    low = ((1.0 + eta) / chi) ** (1.0 / epsilon) - 1.0  # the least value of the excess, which is negative
    return _root(excess, low, max(2.0 * low, 1.0))


def _root(increasing: Callable[[float], float], low: float, high: float) -> float:
    """Return the root above `low` of a function that increases there from a negative value; inf above 1e30."""
    while increasing(high) <= 0.0:
        high *= 2.0
        if high > 1e30:  # no run makes as many updates
            return inf
    return float(brentq(increasing, low, high, xtol=1e-12, rtol=1e-14))  # pyright: ignore


def micra_updates(
    radius: float, margin: float, beta: float, eta: float, epsilon: float = 0.5, zeta: float = 0.5
) -> float:
    """Return the bound t_b of MICRA^{epsilon, zeta} on the counter t, which counts the first pattern.

    By the sum of inequality (9) of the CRAMMA paper over all updates from t_0 on, with eta_i = eta / i^zeta,
    1 >= sum over i from [t_0] + 1 to t of eta_i (gamma / R - eta_i / 2 - eta_i^2 / 2 - (1 + eta_i) beta / i^epsilon).
    The sum grows beyond every bound if 0 < zeta <= 1. The margin at the end is at least (t_0 / t_b)^epsilon gamma.

    Examples
    --------
    >>> micra_updates(radius=1.0, margin=0.1, beta=0.5, eta=0.5)
    823.0
    """
    _require_positive(radius=radius, epsilon=epsilon)
    if not margin > 0.0:
        return inf
    g, first = margin / radius, floor((beta * radius / margin) ** (1.0 / epsilon))

    def total(t: np.ndarray) -> np.ndarray:
        rate = eta * t**-zeta
        return np.cumsum(rate * (g - 0.5 * rate - 0.5 * rate**2 - (1.0 + rate) * beta * t**-epsilon))

    # these terms are summed one by one, and integrals bound the others: with more terms the bound is sharper
    i = first + np.arange(1.0, 100_001.0)
    sums = total(i)
    if sums[-1] > 1.0:
        return float(i[np.flatnonzero(sums <= 1.0).max(initial=0)]) + 1.0
    last = float(i[-1])

    def excess(t: float) -> float:
        # the sum from `last` + 1 to t: integrals bound the terms, which decrease, from below and above
        integral = partial(_power_integral, low=last, high=t)
        above = 0.5 * eta**2 * (integral(2.0 * zeta) + eta * integral(3.0 * zeta))
        above += eta * beta * (integral(zeta + epsilon) + eta * integral(2.0 * zeta + epsilon))
        return float(sums[-1]) + eta * g * _power_integral(zeta, last + 1.0, t + 1.0) - above - 1.0

    return _root(excess, last, 2.0 * last) + 1.0


def _power_integral(exponent: float, low: float, high: float) -> float:
    """Return the integral of t^-exponent from `low` to `high`."""
    power, ratio = 1.0 - exponent, log(high / low)
    return ratio if power == 0.0 else low**power * expm1(power * ratio) / power


def fixed_margin_updates(radius: float, margin: float, beta: float, eta: float) -> float:
    """Return the bound on the updates of the fixed directional margin beta R, beta R < gamma (derived in this library).

    With g = gamma / R, the cosine of u and of the w of this margin is at least g at the start, and grows with each
    update by the factor (1 + eta g) / sqrt(1 + 2 eta beta + eta^2) until it is 1; inf if the factor is at most 1.

    Examples
    --------
    >>> round(fixed_margin_updates(radius=1.0, margin=0.1, beta=0.05, eta=0.05), 1)
    1839.8
    """
    _require_positive(radius=radius)
    g = margin / radius
    growth = log1p(eta * g) - 0.5 * log1p(2.0 * eta * beta + eta * eta)
    return -log(g) / growth if growth > 0.0 else inf


def romma_updates(radius: float, margin: float, delta: float = 1.0) -> float:
    """Return (R / (delta gamma))^2, the bound of aggressive ROMMA on updates; with delta = 1 of plain ROMMA's mistakes.

    The bound of plain ROMMA is the mistake bound of Li and Long (2002). The bound of aggressive ROMMA is derived here:
    each update adds at least delta^2 / R^2 to |w|^2, which weak duality bounds by 1 / gamma^2. The margin of aggressive
    ROMMA at the end is at least 1 - delta of the largest.

    Examples
    --------
    >>> romma_updates(radius=1.0, margin=0.5, delta=0.5)
    16.0
    """
    return _over(radius, delta * margin) ** 2


def pumma_updates(radius: float, margin: float, delta: float, p: float = 2.0) -> float:
    """Return 4 (p - 1) (R / (delta gamma))^2, the bound of PUMMA_p on updates, hard margin (Theorem 3, corrected).

    The paper prints 2 in place of 4: its lemma gives 4, since |x+ - x-|_p <= 2 R. The margin at the end is at least
    1 - delta of the largest.

    Examples
    --------
    >>> pumma_updates(radius=1.0, margin=0.5, delta=0.5, p=3.0)
    128.0
    """
    return 4.0 * (p - 1.0) * romma_updates(radius, margin, delta)


def pumma_soft_updates(radius: float, objective: float, C: float, delta: float, p: float = 2.0) -> float:
    """Return (4 (p - 1) R^2 + 1 / C) 2 J / delta^2, the bound of PUMMA_p on updates, 2-norm soft margin (corrected).

    J is the objective |w|_q^2 / 2 + C sum xi_i^2 of any (w, b); R has no slack coordinates. The objective at the end is
    at most (1 - delta)^-2 times the least one.

    Examples
    --------
    >>> pumma_soft_updates(radius=1.0, objective=2.0, C=0.5, delta=0.5)
    96.0
    """
    _require_positive(C=C, delta=delta)
    return (4.0 * (p - 1.0) * radius**2 + 1.0 / C) * 2.0 * objective / delta**2


def mpu_updates(radius: float, margin: float, b: float, delta_b: float = 3.0) -> float:
    """Return the bound of MPU on single updates, hard margin: equation (10).

    (1 + 2 b) (R / gamma)^2 (1 + (1 + 2 b) / (4 (delta_b - 1))), with delta_b > 1.

    Examples
    --------
    >>> mpu_updates(radius=1.0, margin=0.5, b=9.5, delta_b=3.0)
    280.0
    """
    return perceptron_updates(radius, margin, b) * (1.0 + (1.0 + 2.0 * b) / (4.0 * (delta_b - 1.0)))


def mpu_fraction(b: float, delta_b: float = 3.0) -> float:
    """Return 1 / (1 + min(delta_b, 1 + b) / b), the fraction of the largest margin that MPU exceeds: equation (11).

    Examples
    --------
    >>> mpu_fraction(b=297.0, delta_b=3.0)
    0.99
    """
    _require_positive(b=b)
    return 1.0 / (1.0 + min(delta_b, 1.0 + b) / b)


def mpu_fraction_after(margin: float, length: float, count: float) -> float:
    """Return the fraction of the largest margin that an a of MPU is proved to have after the run: equation (12).

    `margin` is the smallest a.y_k / |a|, and `length` is |a|, of which 0 gives the fraction 0. `count` is t+ - t-, the
    sum of the I_k: |a| / count is an upper bound of every margin.

    Examples
    --------
    >>> mpu_fraction_after(margin=0.45, length=50.0, count=100.0)
    0.9
    """
    return margin * count / length if length > 0.0 else 0.0


def mpu_soft_updates(n: int, cap: float, b: float, delta_b: float = 3.0) -> float:
    """Return n I (2 b + delta_b) / (delta_b - 1), the bound of MPU on updates, 1-norm soft margin: equation (22).

    `cap` is I, the largest number of updates of one of the n patterns.

    Examples
    --------
    >>> mpu_soft_updates(n=10, cap=4, b=100.0, delta_b=3.0)
    4060.0
    """
    return n * cap * (2.0 * b + delta_b) / (delta_b - 1.0)


def mpu_accuracy(b: float, delta_b: float = 3.0) -> float:
    """Return 2 (delta_b / b) / (1 - delta_b / b), above (J - J_opt) / J_opt at the end of MPU: equation (23).

    Examples
    --------
    >>> mpu_accuracy(b=300.0, delta_b=100.0)
    1.0
    """
    return 2.0 * delta_b / (b - delta_b) if b > delta_b else inf


def mpu_accuracy_after(square: float, shortfall: float, count: float, b: float, cap: float) -> float:
    """Return the proved (J - J_opt) / J_opt of an a of MPU, 1-norm soft margin, at any time: equation (24).

    `square` is |a|^2, `shortfall` the sum of max(b - a.y_k, 0), `count` is t+ - t-, the sum of the I_k, b the threshold
    in the units of a.y_k, and `cap` is I.

    Examples
    --------
    >>> mpu_accuracy_after(square=100.0, shortfall=25.0, count=20.0, b=5.0, cap=1.0)
    0.5
    """
    dual = b * count - 0.5 * square
    return (0.5 * square + cap * shortfall) / dual - 1.0 if dual > 0.0 else inf


def fmp_updates(
    radius: float,
    margin: float,
    gamma: float = 0.0,
    p: float = 2.0,
    d: int = 1,
    constant: float = 0.0,
    length: float | None = None,
    intercept: float | None = None,
) -> float:
    """Return the bound on the updates of FMP_p at a target gamma below the margin (derived in this library).

    ((R_2 + gamma G)^2 + c^2) (|u|_2^2 + b^2 / c^2) / (gamma* - gamma)^2 with the margin gamma* and the largest
    2-norm of a subgradient of |w|_q, G = d^max(0, 1/2 - 1/p). Without an intercept c = 0, and b / c is left out.

    Parameters
    ----------
    radius : float
        R_2, the largest 2-norm of a pattern.
    margin : float
        gamma*, the p-margin of some (u, b), |u|_q = 1.
    gamma : float, default=0
        In the unit of the margin.
    p : float in [1, inf], default=2
    d : int, default=1
        Number of features; without effect at p = 2.
    constant : float, default=0
        The constant c of the intercept.
    length : float, default=None
        |u|_2; None for its largest value, d^max(0, 1/p - 1/2).
    intercept : float, default=None
        b; None for R_2 |u|_2, which no intercept of a separator exceeds.

    Examples
    --------
    >>> fmp_updates(radius=1.0, margin=0.5), fmp_updates(radius=1.0, margin=0.5, constant=1.0)
    (4.0, 16.0)
    """
    _require_positive(p=p)
    if not margin > gamma:
        return inf
    size = float(d) ** max(0.0, 1.0 / p - 0.5) if length is None else length
    shift = radius * size if intercept is None else intercept
    per_update = (radius + gamma * float(d) ** max(0.0, 0.5 - 1.0 / p)) ** 2 + constant**2
    return per_update * (size**2 + ((shift / constant) ** 2 if constant else 0.0)) / (margin - gamma) ** 2


def normalised_perceptron_steps(margin: float) -> float:
    """Return 1 / rho^2, the bound of the normalised Perceptron on the steps to a separator, |y_k| = 1.

    Examples
    --------
    >>> normalised_perceptron_steps(margin=0.5)
    4.0
    """
    return _over(1.0, margin) ** 2


def smoothed_perceptron_steps(margin: float, n: int) -> float:
    """Return 2 sqrt(2 log n) / rho, the bound of the smoothed Perceptron on the steps to a separator, |y_k| = 1.

    Where there is none, `margin` stands for the length |p|_G that the dual variables p are to have.

    Examples
    --------
    >>> round(smoothed_perceptron_steps(margin=0.1, n=1000), 1)
    74.3
    """
    return _over(2.0 * sqrt(2.0 * log(n)), margin)


def von_neumann_steps(length: float) -> float:
    """Return 1 / eps^2, the bound of von Neumann's algorithm on the steps to dual variables p with |p|_G <= eps.

    Examples
    --------
    >>> von_neumann_steps(length=0.5)
    4.0
    """
    return _over(1.0, length) ** 2


def smoothed_primal_dual_steps(
    margin: float, n: int, length: float | None = None, centre: float = 1.0
) -> float:
    """Return the bound of the smoothed primal-dual algorithm (SNKPVN) on its steps, |y_k| = 1.

    2 sqrt(2 n) / rho to a separator. Where there is none, 2 sqrt(2 n) min(1, |q|_G / |rho|) / eps to dual variables p
    with |p|_G < eps = `length`; `margin` is |rho|, and `centre` is |q|_G.

    Examples
    --------
    >>> smoothed_primal_dual_steps(margin=0.1, n=50), smoothed_primal_dual_steps(margin=0.5, n=50, length=0.25)
    (200.0, 80.0)
    """
    if length is None:
        return _over(2.0 * sqrt(2.0 * n), margin)
    return _over(2.0 * sqrt(2.0 * n) * min(1.0, _over(centre, margin)), length)


def iterated_smoothed_primal_dual_steps(
    margin: float, n: int, length: float | None = None, centre: float = 1.0, gamma: float = 2.0
) -> float:
    """Return the bound of the iterated smoothed primal-dual algorithm (ISNKPVN) on its steps, |y_k| = 1.

    1 + log(|q|_G / rho) / log(gamma) rounds of at most 2 sqrt(2 n) / rho steps to a separator. Where there is none,
    log(|q|_G / eps) / log(gamma) rounds of at most 2 gamma sqrt(2 n) / |rho| steps to dual variables p with
    |p|_G < eps = `length`; `margin` is |rho|. `centre` is |q|_G, with q the centre of the first round. The start of a
    round counts as a step.

    Examples
    --------
    >>> iterated_smoothed_primal_dual_steps(0.1, 50), iterated_smoothed_primal_dual_steps(0.5, 50, 0.25)
    (800.0, 160.0)
    """
    if length is not None and centre <= length:
        return 0.0
    if not (margin > 0.0 and (length is None or length > 0.0)):
        return inf
    steps = smoothed_primal_dual_steps(margin, n)
    if length is None:  # no margin is above |q|_G
        return float(floor(1.0 + log(max(centre / margin, 1.0)) / log(gamma)) * ceil(steps))
    return float(ceil(log(centre / length) / log(gamma)) * ceil(gamma * steps))


# The bound on updates by the name of the algorithm; arguments are the algorithm, its rule, R, a margin, and p.
UPDATES: dict[str, Callable[[Any, Any, float, float, float], float]] = {
    "perceptron": lambda a, rule, R, g, p: perceptron_updates(R, g, a.b),
    "local-perceptron": lambda a, rule, R, g, p: perceptron_updates(R, g, a.b),
    "alma": lambda a, rule, R, g, p: inf if a.normalise or a.B else alma_updates(R, g, a.alpha, p),
    "cramma": lambda a, rule, R, g, p: cramma_updates(R, g, rule.beta, rule.eta, rule.epsilon) - 1.0,
    "micra": lambda a, rule, R, g, p: micra_updates(R, g, rule.beta, rule.eta, rule.epsilon, rule.zeta) - 1.0,
    "fixed-margin": lambda a, rule, R, g, p: fixed_margin_updates(R, g, rule.beta, rule.eta),
    "romma": lambda a, rule, R, g, p: romma_updates(R, g),
    "aggressive-romma": lambda a, rule, R, g, p: romma_updates(R, g, rule.delta),
    "pumma": lambda a, rule, R, g, p: pumma_updates(R, g, rule.delta, p),
}
