"""The norm of the interior-point method, for every p: complementarity pairs, and their linear model.

The penalty f is |w|_q^2 / 2 or |w|_q (`power` 2 or 1), and v = sum alpha_i y_i x_i is a subgradient of it at the
optimum. Each coordinate has a bound B_j of |w_j|, and two pairs, (B_j - w_j, z+_j) and (B_j + w_j, z-_j), whose
products are the barrier parameter mu on the central path. The difference z+ - z- is v, and the sum zeta = z+ + z- is
the gradient of f at B; at p = inf that is zeta_j = k for every j, with k = sum B_j, or 1 for power 1. All of these
numbers are positive. The gradient is a power, and of zeta and B the one is taken as a function of the other for which
the exponent is at most one: positive numbers with such powers meet the scaled Lipschitz condition, which bounds the
number of steps of interior points for every p.

References
----------
F. A. Potra, Y. Ye, "Interior-point methods for nonlinear complementarity problems", JOTA 88, 1996 (the condition).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ..numerics.sums import norm
from ..problem.problem import Problem, dual_exponent


class Linear(NamedTuple):
    """The linear model dw = scaling * dv + right u + base, left'dv + corner u = side; u is eliminated last.

    The arrays `scaling`, `right` and `left` have the shape (d,); the sides depend on the target (`Penalty.sides`).
    """

    scaling: np.ndarray
    right: np.ndarray
    left: np.ndarray
    corner: float


class Relation(NamedTuple):
    """The linear model dzeta = K dB - eta u - shift, border'dB + corner u = side of the gradient of f.

    For finite p, `corner` is corner + border'(eta / K) in place of corner.
    """

    K: np.ndarray
    eta: np.ndarray
    border: np.ndarray
    corner: float
    side: float
    shift: np.ndarray


class Penalty:
    """The pairs of all coordinates at an iterate; `linearise` comes first, then `sides` and `step` of one target.

    Parameters
    ----------
    problem : Problem
    d : int
        Number of coordinates.
    mu : float
        The products of the first pairs.

    Attributes
    ----------
    w : ndarray of shape (d,)
    first, second : ndarray of shape (2 d,), positive
        The slacks B - w and B + w, and the multipliers z+ and z-.
    """

    def __init__(self, problem: Problem, d: int, mu: float) -> None:
        # at p = 1 zeta does not determine B: with the exponent 1 + 1e-9 in its place |w|_q differs from the largest
        # |w_j| by a factor of at most 1 + 1e-9 log d
        self.p, self.first_power = max(problem.p, 1.0 + 1e-9), problem.first_power
        self.q = dual_exponent(self.p)
        # w = 0, and B and zeta are equal for all coordinates: |zeta|_p = 1, or zeta = f'(B) with B = share zeta
        share = d ** (2.0 / self.p - 1.0)
        zeta = d ** -(1.0 / self.p) if self.first_power else (2.0 * mu / share) ** 0.5
        self.first, self.second = np.full(2 * d, 2.0 * mu / zeta), np.full(2 * d, 0.5 * zeta)

    @property
    def w(self) -> np.ndarray:
        d = self.first.size // 2
        return 0.5 * (self.first[d:] - self.first[:d])

    def linearise(self, v: np.ndarray) -> Linear:
        """Return the linear model at the iterate, v being sum alpha_i y_i x_i.

        With the ratios r = z / (B -+ w), their sum h and difference k, the pairs give dw = (dv + residual + k dB) / h;
        with the relation of zeta and B, M dB = rest + (k / h) dv + eta u, where M = K + 4 r+ r- / h.
        """
        d, r = v.size, self.second / self.first
        self.v, self.h, self.k = v, r[:d] + r[d:], r[:d] - r[d:]
        relation = self.relation(0.5 * (self.first[:d] + self.first[d:]), self.second[:d] + self.second[d:])
        curvature, self.ratio = 4.0 * r[:d] * r[d:] / self.h, self.k / self.h
        self.M, self.eta = relation.K + curvature, relation.eta
        self.border, self.side = relation.border / self.M, relation.side
        self.known = relation.shift - self.second[:d] - self.second[d:]
        # border'(eta / M), which cancels against border'(eta / K)
        product = self.eta if np.isinf(self.p) else -self.eta * (curvature / relation.K)
        return Linear(
            1.0 / self.h + self.ratio * self.ratio / self.M,
            self.eta * self.ratio / self.M,
            self.border * self.ratio,
            relation.corner + float(self.border @ product),
        )

    def relation(self, B: np.ndarray, zeta: np.ndarray) -> Relation:
        """Return the linear model of zeta, the gradient of f at B."""
        p, q = self.p, self.q
        if np.isinf(p):  # zeta = k
            zeros, ones = np.zeros(B.size), np.ones(B.size)
            if self.first_power:
                return Relation(zeros, zeros, zeros, -1.0, 0.0, zeta - 1.0)
            k = float(zeta.mean())
            return Relation(zeros, -ones, ones, -1.0, k - float(B.sum()), zeta - k)
        length, size = norm(B, q), norm(zeta, p)
        if p >= 2.0:  # zeta as a function of B, with the exponent q - 1
            x = B / length
            K, g = (q - 1.0) * x ** (q - 2.0), x ** (q - 1.0)
            if self.first_power:
                return Relation(K / length, (q - 1.0) / length * g, g, 0.0, 0.0, zeta - g)
            return Relation(K, (q - 2.0) * g, g, -1.0 / (q - 1.0), 0.0, zeta - length * g)
        x = zeta / size  # B as a function of zeta, with the exponent p - 1
        K, g = (q - 1.0) * x ** (2.0 - p), x ** (p - 1.0)
        if self.first_power:  # B = u g, and |zeta|_p = 1
            K = K * (size / length)
            return Relation(K, K * g, K * g, 0.0, 1.0 - size - float((K * g) @ B), -K * B)
        e = B - size * g
        return Relation(K, (q - 2.0) * x, x, -1.0 / (q - 1.0), 0.0, (q - 2.0) * float(x @ e) * x - K * e)

    def sides(self, target: np.ndarray) -> tuple[np.ndarray, float]:
        """Return `base` and `side` of the linear model; `target` are the products of the pairs to reach."""
        d, reached = self.v.size, target / self.first
        self.residual = self.v - reached[:d] + reached[d:]
        self.rest = reached[:d] + reached[d:] + self.known + self.ratio * self.residual
        base = (self.residual + self.k * self.rest / self.M) / self.h
        return base, self.side - float(self.border @ self.rest)

    def step(self, dv: np.ndarray, u: float, target: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return the changes of `first` and `second` for the changes dv and the number u."""
        dB = (self.rest + self.ratio * dv + self.eta * u) / self.M
        dw = (dv + self.residual + self.k * dB) / self.h
        first = np.concatenate([dB - dw, dB + dw])
        return first, (target - self.second * first) / self.first - self.second
