"""The penalty of an interior-point method: its linear model, for every p.

The penalty is |w|_q^2 / 2 or |w|_q (`power` 2 or 1), and v = sum alpha_i y_i x_i is its subgradient at the optimum. An
iterate has complementarity pairs, two arrays `first` and `second` of positive numbers whose products are the barrier
parameter mu on the central path. Linearised at an iterate, with numbers u that are eliminated last::

    dw = scaling * dv + right u + base          left' dv + corner u = side

* `SmoothNorm`, 1 < p < inf: v = f'(o) with f = |.|_q^2 / 2; w = o for power 2, and w = lam o with lam = |w|_q for
  power 1. There sigma = (1 - |v|_p^2) / 2 is the slack of |v|_p <= 1, and the pair is (lam, sigma).
* `MaximumNorm`, p = 1: |w_j| <= t; the pairs are t - w_j and t + w_j with their multipliers, whose difference is v_j
  and whose sum over all j is t, or 1 for power 1.
* `SumNorm`, p = inf: |v_j| <= k, where k = |w|_1, or 1 for power 1; the pairs are k - v_j and k + v_j with their
  multipliers, whose difference is w_j.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import NamedTuple

import numpy as np

from ...numerics.norms import norm
from ...problem.problem import Problem, dual_exponent
from ...solvers.linear_systems import TINY

# Relative difference of two gradients above which their secant replaces the tangent: below it the digits of the
# difference cancel.
MIN_SECANT_DIFFERENCE = 1e-4
# Largest slope for p < 2, where the usual ones are about 1: it is infinite where w_j and v_j are 0. On six data sets
# with p in {1.1, 1.2, 1.5}, 216 fits took 3,804 steps with 1e4, 4,162 with 1e3 and 4,208 with 1e6.
MAX_SLOPE = 1e4
# Start: |w_j| and |v_j| are at most INSIDE_SHARE of their bounds, and multipliers at least MIN_SHARE of their mean, so
# that the first iterate is not near the boundary.
INSIDE_SHARE, MIN_SHARE = 0.9, 0.5


class Linear(NamedTuple):
    """The linear model of a penalty: `scaling` of shape (d,), `right` and `left` of shape (d, k), `corner` (k, k)."""

    scaling: np.ndarray
    right: np.ndarray
    left: np.ndarray
    corner: np.ndarray


class Step(NamedTuple):
    """Changes of the complementarity pairs, and of the other variable of the penalty."""

    first: np.ndarray
    second: np.ndarray
    variable: np.ndarray | float


def penalty(problem: Problem, v: np.ndarray, size: float) -> Penalty:
    """Return the penalty of a problem at its first iterate.

    Parameters
    ----------
    problem : Problem
    v : ndarray of shape (d,)
        sum alpha_i y_i x_i of the first dual variables.
    size : float
        A first |w|_q for power 1.
    """
    if problem.p == 1.0:
        return MaximumNorm(problem.first_power, v, size)
    if np.isinf(problem.p):
        return SumNorm(problem.first_power, v, size)
    return SmoothNorm(problem.first_power, problem.p, v, size)


def gradient(v: np.ndarray, p: float) -> np.ndarray:
    """Return the gradient of |v|_p^2 / 2, which is sign(v_j) (|v_j| / |v|_p)^(p-1) |v|_p."""
    length = norm(v, p)
    return np.sign(v) * (np.abs(v) / max(length, TINY)) ** (p - 1.0) * length


class Penalty(ABC):
    """The penalty at an iterate, as the module's docstring defines it.

    `linearise` is called first at an iterate; `step` follows `sides` with the same target.

    Attributes
    ----------
    first, second : ndarray of shape (m,), positive
        The complementarity pairs.
    w : ndarray of shape (d,)
    """

    first: np.ndarray
    second: np.ndarray

    @property
    @abstractmethod
    def w(self) -> np.ndarray: ...

    @abstractmethod
    def linearise(self, v: np.ndarray) -> Linear:
        """Return the linear model at the iterate, v being sum alpha_i y_i x_i."""

    def gap(self) -> float:
        """Return the duality gap f(o) + f*(v) - o.v of a smooth penalty; 0 where w is a function of v."""
        return 0.0

    @abstractmethod
    def sides(self, target: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return `base` and `side` of the linear model; `target` are the products of the pairs to reach."""

    @abstractmethod
    def step(self, dv: np.ndarray, u: np.ndarray, target: np.ndarray) -> Step:
        """Return the step to a change dv and the eliminated numbers u."""

    def second_change(self, first: np.ndarray, target: np.ndarray) -> np.ndarray:
        """Return the change of `second` that leads to the products `target`, to first order, with one of `first`."""
        return (target - self.second * first) / self.first - self.second

    def move(self, t: float, step: Step, v: np.ndarray) -> None:
        """Move by t times a step; v is that of the new dual variables."""
        self.first, self.second = self.first + t * step.first, self.second + t * step.second


class SmoothNorm(Penalty):
    """The penalty for 1 < p < inf; the other variable is o.

    For p >= 2, o is the gradient of f* = |v|_p^2 / 2 at every iterate. For p < 2 that gradient has infinite slopes at
    0, and o is a variable of its own. There the slope of a coordinate is that of the secant from (v_j, f*'(v)_j) to
    (f'(o)_j, o_j): Newton's method then converges also from o_j = 0, where the tangent overshoots by an unbounded
    factor.
    """

    def __init__(self, first_power: bool, p: float, v: np.ndarray, size: float) -> None:
        self.first_power, self.p, self.o = first_power, p, gradient(v, p)
        slack = max(0.5 * (1.0 - norm(v, p) * norm(v, p)), 0.0) or 1.0
        self.first, self.second = np.array([size, slack])[:, None] if first_power else np.zeros((2, 0))

    @property
    def w(self) -> np.ndarray:
        return self.length * self.o

    @property
    def length(self) -> float:
        """The number lam with w = lam o."""
        return float(self.first[0]) if self.first_power else 1.0

    def linearise(self, v: np.ndarray) -> Linear:
        """Return the model.

        The second derivative of f* is (p-1) diag(s_j^(p-2)) - (p-2) g g', with s = |v| / |v|_p and g the gradient
        divided by |v|_p. The matrix of rank one is eliminated by u = g'(dv - residual).
        """
        p, length = self.p, self.length
        self.v, self.length_v, gradient_v = v, max(norm(v, p), TINY), gradient(v, p)
        if p >= 2.0:
            self.residual, self.g = np.zeros(v.size), gradient_v / self.length_v
            self.slopes = (p - 1.0) * (np.abs(v) / self.length_v) ** (p - 2.0)
        else:
            at_o, length_o = gradient(self.o, dual_exponent(p)), max(norm(self.o, dual_exponent(p)), TINY)
            self.residual, self.g = at_o - v, self.o / length_o
            self.slopes = _secants(at_o / length_o, self.g, v / self.length_v, gradient_v / self.length_v, p)
        self.scaling = length * self.slopes
        right, left, corner = [(2.0 - p) * length * self.g], [self.g], [-1.0]
        if self.first_power:  # the row of sigma = (1 - |v|_p^2) / 2
            right, left, corner = (
                [*right, self.o],
                [*left, gradient_v],
                [*corner, -float(self.second[0]) / length],
            )
        return Linear(self.scaling, np.column_stack(right), np.column_stack(left), np.diag(corner))

    def sides(self, target: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        side = [float(self.g @ self.residual)]
        if self.first_power:
            side.append(0.5 * (1.0 - self.length_v * self.length_v) - float(target[0]) / self.length)
        return -self.scaling * self.residual, np.array(side)

    def gap(self) -> float:
        if self.p >= 2.0:
            return 0.0
        length_o = norm(self.o, dual_exponent(self.p))
        return self.length * max(
            0.5 * (length_o * length_o + self.length_v * self.length_v) - float(self.o @ self.v), 0.0
        )

    def step(self, dv: np.ndarray, u: np.ndarray, target: np.ndarray) -> Step:
        change = u[1:]  # of lam, for power 1
        do = self.slopes * (dv - self.residual) + ((2.0 - self.p) * u[0]) * self.g
        return Step(change, self.second_change(change, target), do)

    def move(self, t: float, step: Step, v: np.ndarray) -> None:
        super().move(t, step, v)
        self.o = gradient(v, self.p) if self.p >= 2.0 else self.o + t * step.variable


def _secants(x: np.ndarray, at_x: np.ndarray, z: np.ndarray, at_z: np.ndarray, p: float) -> np.ndarray:
    """Return the slopes (at_x - at_z) / (x - z) of sign(x) |x|^(p-1), or of tangents for nearly equal x and z."""
    largest = np.maximum(np.maximum(np.abs(x), np.abs(z)), TINY)
    far = np.abs(x - z) > MIN_SECANT_DIFFERENCE * largest
    slopes = np.where(far, (at_x - at_z) / np.where(far, x - z, 1.0), (p - 1.0) * largest ** (p - 2.0))
    return np.minimum(slopes, MAX_SLOPE)


class MaximumNorm(Penalty):
    """The penalty for p = 1; the other variable is the bound t of |w_j|."""

    def __init__(self, first_power: bool, v: np.ndarray, size: float) -> None:
        self.first_power, self.d = first_power, v.size
        mean = float(np.abs(v).mean()) or 1.0
        self.second = np.maximum(np.concatenate([v, -v]), 0.0) + MIN_SHARE * mean
        self.t = size if first_power else float(self.second.sum())
        w = INSIDE_SHARE * self.t * v / (np.abs(v) + mean)
        self.first = np.concatenate([self.t - w, self.t + w])

    @property
    def w(self) -> np.ndarray:
        return 0.5 * (self.first[self.d :] - self.first[: self.d])

    def linearise(self, v: np.ndarray) -> Linear:
        d, ratios = self.d, self.second / self.first
        self.v, self.scaling = v, 1.0 / (ratios[:d] + ratios[d:])
        self.difference = ratios[:d] - ratios[d:]
        right = (self.scaling * self.difference)[:, None]
        # sum h - k^2 / h, with h the sum of the ratios and k their difference, without cancellation
        curvature = float((4.0 * ratios[:d] * ratios[d:] * self.scaling).sum()) + (
            0.0 if self.first_power else 1.0
        )
        return Linear(self.scaling, right, right, np.array([[-curvature]]))

    def sides(self, target: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        d, reached = self.d, target / self.first
        self.residual = reached[:d] - reached[d:] - self.v
        slope = (1.0 if self.first_power else self.t) - float(reached.sum())
        slope += float(self.difference @ (self.scaling * self.residual))
        return -self.scaling * self.residual, np.array([slope])

    def step(self, dv: np.ndarray, u: np.ndarray, target: np.ndarray) -> Step:
        dt = float(u[0])
        dw = self.scaling * (dv - self.residual + self.difference * dt)
        first = np.concatenate([dt - dw, dt + dw])
        return Step(first, self.second_change(first, target), dt)

    def move(self, t: float, step: Step, v: np.ndarray) -> None:
        super().move(t, step, v)
        self.t += t * step.variable


class SumNorm(Penalty):
    """The penalty for p = inf; the other variable is the bound k of |v_j|, which is 1 for power 1."""

    def __init__(self, first_power: bool, v: np.ndarray, size: float) -> None:
        self.first_power, self.d = first_power, v.size
        largest = float(np.abs(v).max(initial=0.0)) or 1.0
        self.k = 1.0 if first_power else 1.5 * largest
        shape = INSIDE_SHARE * v / largest
        total = size if first_power else self.k
        self.second = np.concatenate([1.0 + shape, 1.0 - shape]) * (0.5 * total / v.size)
        self.first = np.concatenate([self.k - v, self.k + v])

    @property
    def w(self) -> np.ndarray:
        return self.second[: self.d] - self.second[self.d :]

    def linearise(self, v: np.ndarray) -> Linear:
        d, ratios = self.d, self.second / self.first
        self.scaling, self.difference = ratios[:d] + ratios[d:], ratios[:d] - ratios[d:]
        right = self.difference[:, None]
        if self.first_power:
            return Linear(self.scaling, right[:, :0], right[:, :0], np.zeros((0, 0)))
        return Linear(self.scaling, right, right, np.array([[1.0 + float(self.scaling.sum())]]))  # u = -dk

    def sides(self, target: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        d, reached = self.d, target / self.first
        side = np.zeros(0) if self.first_power else np.array([self.k - float(reached.sum())])
        return reached[:d] - reached[d:] - self.w, side

    def step(self, dv: np.ndarray, u: np.ndarray, target: np.ndarray) -> Step:
        dk = 0.0 if self.first_power else -float(u[0])
        first = np.concatenate([dk - dv, dk + dv])
        return Step(first, self.second_change(first, target), dk)

    def move(self, t: float, step: Step, v: np.ndarray) -> None:
        super().move(t, step, v)
        self.k += t * step.variable
