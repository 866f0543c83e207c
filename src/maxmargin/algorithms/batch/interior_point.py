"""Mehrotra's predictor-corrector method for the dual of a problem at p = 2.

    minimise 1/2 |A'a|^2 + 1/2 a'Da - q'a   subject to   E a = e,  0 <= a <= c

The rows of A are the signed rows y_i x_i, and a the dual variables. Under the hinge D = 0 and q = 1, and c are the
caps; under the squared hinge D_i = 1 / (2 C s_i). With
B = [A, E'] and z = (w, beta), w = A'a a variable of its own and beta the multipliers of the equations, a step solves::

    T da + B dz = r          T = D + u / a + v / (c - a),  u and v the multipliers of a >= 0 and a <= c
    R dz - B'da = s          R = 1 for every coordinate of w, 0 for every multiplier

Eliminating da leaves (R + B'T^-1 B) dz = B'T^-1 r + s, a system whose size is the number of columns of B. `System`
hides how the rows are stored. Usually 10 to 50 steps are enough, whatever C and the sample weights
are; about 100 where columns differ by six orders of magnitude and almost no label is noise.

References
----------
S. Mehrotra, "On the implementation of a primal-dual interior point method", SIAM J. Optim. 2, 1992;
M. C. Ferris, T. S. Munson, "Interior-point methods for massive support vector machines", SIAM J. Optim. 13, 2002.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from ...solvers.linear_systems import factor


@dataclass(frozen=True)
class Settings:
    """Numerical settings of the interior-point method. Values without another source are round ones, and not tuned."""

    max_steps: int = 400  # 15 to 30 are usual; nearly dependent columns of very different scales take more
    # Largest fraction of the distance to the boundary that a step goes: nearer to 1 is faster and less well centred.
    boundary_share: float = 0.995
    # The target of mu is mu (mu_p / mu)^power, mu_p being that after the predictor step; Mehrotra (1992) takes 3.
    centring_power: int = 3
    min_step_length: float = 1e-10  # up to this length the iterations end, as rounding prevents progress


SETTINGS = Settings()

# the function from the right-hand sides (r, s) to the solution (da, dz)
Solve = Callable[[np.ndarray, np.ndarray], tuple[np.ndarray, np.ndarray]]


class System(ABC):
    """One dual program, with its products B z and B'a and the solution of its linear systems.

    Attributes
    ----------
    D, q, c : ndarray of shape (n,)
        As in the module's docstring.
    e : ndarray of shape (size,)
        0 for each coordinate of w, then the right-hand sides of the equations; `size` is the length of z.
    regular : ndarray of shape (size,)
        The diagonal of R; systems with another R define `penalised`.
    """

    D: np.ndarray
    q: np.ndarray
    c: np.ndarray
    e: np.ndarray
    regular: np.ndarray

    @abstractmethod
    def scores(self, z: np.ndarray) -> np.ndarray:
        """Return B z, of shape (n,)."""

    @abstractmethod
    def combine(self, a: np.ndarray) -> np.ndarray:
        """Return B'a, of shape (size,)."""

    def penalised(self, z: np.ndarray) -> np.ndarray:
        """Return R z, of shape (size,)."""
        return self.regular * z

    @abstractmethod
    def matrix(self, weights: np.ndarray) -> np.ndarray:
        """Return R + B' diag(weights) B, of shape (size, size)."""

    def start(self) -> np.ndarray:
        """Return the first dual variables, of shape (n,): half of the caps, or 1 / (2 D), or 1.

        1 / (2 D) is optimal for a slack of one half.
        """
        uncapped = 0.5 / np.where(self.D > 0.0, self.D, 0.5)
        return np.where(np.isfinite(self.c), 0.5 * self.c, uncapped)

    def solver(self, T: np.ndarray) -> Solve | None:
        """Return the solver of the Newton system; None if the factor fails.

        It takes the right-hand sides (r, s), of shapes (n,) and (size,), to the steps (da, dz) of the dual variables
        and of z.

        Parameters
        ----------
        T : ndarray of shape (n,), positive
            As in the module's docstring.
        """
        solve_columns = factor(self.matrix(1.0 / T))
        if solve_columns is None:
            return None

        def solve(r: np.ndarray, s: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
            z = solve_columns(self.combine(r / T) + s)
            return (r - self.scores(z)) / T, z

        return solve


class Iterate(NamedTuple):
    """An iterate whose dual variables lie strictly between their bounds, or a step.

    Attributes
    ----------
    x, s : ndarray of shape (k, n)
        Distances of the dual variables from their bounds, and the multipliers of these: x = (a, c - a), s = (u, v).
        c - a is stored, since the difference would lose its last digits. k is 1 where no dual variable has a cap. Where
        only some have one, the entries of the others are 1 in place of c - a, and 0 in v.
    z : ndarray of shape (size,)
        w, which equals A'a at convergence only (caps of 1e16 are possible), and the multipliers beta.
    """

    x: np.ndarray
    s: np.ndarray
    z: np.ndarray

    @property
    def a(self) -> np.ndarray:
        """The dual variables, of shape (n,)."""
        return self.x[0]

    @property
    def complementarity(self) -> float:
        """The sum a'u + (c - a)'v, which is 0 at the optimum."""
        return float(np.vdot(self.x, self.s))

    def moved(self, t: float, step: Iterate) -> Iterate:
        """Return the point self + t step."""
        return Iterate(self.x + t * step.x, self.s + t * step.s, self.z + t * step.z)

    def step_length(self, step: Iterate, share: float) -> float:
        """Return the largest t <= 1 with which t step goes at most this share of the way to where x or s is 0."""
        with np.errstate(all="ignore"):  # 0 / 0 where there is no cap
            rate = max(np.fmax.reduce(-dx / x, axis=None) for dx, x in zip(step[:2], self[:2], strict=True))
        return min(1.0, share / max(float(rate), share))


@dataclass(frozen=True)
class Residuals:
    """An iterate with its products by B and the residuals of the optimality conditions.

    Attributes
    ----------
    scores, combined : ndarray of shape (n,) and (size,)
        B z and B'a.
    gradient : ndarray of shape (n,)
        Residual of the Lagrangian's gradient, B z + D a - q - u + v.
    stationarity : ndarray of shape (size,)
        Residuals R z - B'a + e of w = A'a and of E a = e.
    """

    point: Iterate
    scores: np.ndarray
    combined: np.ndarray
    gradient: np.ndarray
    stationarity: np.ndarray


def iterates(
    system: System, interrupted: Callable[[], bool] = lambda: False, settings: Settings = SETTINGS
) -> Iterator[Residuals]:
    """Yield the start and the iterate after every step, until steps are too short or the stop check is true.

    Parameters
    ----------
    system : System
    interrupted : callable
        Returns whether to stop; called before every step.
    settings : Settings
    """
    capped, a = np.isfinite(system.c), system.start()
    # dx / da: 1 for a, -1 for c - a, 0 where there is no cap
    signs = np.stack([np.ones(a.size), -1.0 * capped] if capped.any() else [np.ones(a.size)])
    x = np.stack([a, np.where(capped, system.c - a, 1.0)][: len(signs)])
    # both products x s of a row are a
    point = Iterate(x, np.abs(signs) * a / x, np.zeros(system.regular.size))
    count = np.count_nonzero(signs)  # of the products x s, whose mean is mu
    for _ in range(settings.max_steps):
        current = _residuals(system, point, signs)
        yield current
        if interrupted() or not 0.0 < point.complementarity < np.inf:
            return
        x, s, _ = point
        solve = system.solver(system.D + (s / x).sum(axis=0))
        if solve is None:
            return
        predictor = _step(current, signs, -x * s, solve)
        length = point.step_length(predictor, settings.boundary_share)
        predicted = point.moved(length, predictor).complementarity / count  # mu after the predictor step
        if not np.isfinite(predicted):
            return
        mu = point.complementarity / count
        target = mu * max(predicted / mu, 0.0) ** settings.centring_power
        # corrector: x s = target, with the second-order term dx ds of the predictor
        step = _step(current, signs, target * np.abs(signs) - x * s - predictor.x * predictor.s, solve)
        length = point.step_length(step, settings.boundary_share)
        if not length > settings.min_step_length:
            return
        point = point.moved(length, step)


def _step(current: Residuals, signs: np.ndarray, change: np.ndarray, solve: Solve) -> Iterate:
    """Return the step that, linearised, makes all residuals 0 and changes the products x s by `change`.

    ds = (change - s dx) / x with dx = signs da, for arrays of shape (k, n).
    """
    x, s, _ = current.point
    da, dz = solve((signs * change / x).sum(axis=0) - current.gradient, -current.stationarity)
    dx = signs * da
    return Iterate(dx, (change - s * dx) / x, dz)


def _residuals(system: System, point: Iterate, signs: np.ndarray) -> Residuals:
    """Return the products and the residuals at a point; `signs` is dx / da, of shape (k, n)."""
    x, s, z = point
    scores, combined = system.scores(z), system.combine(x[0])
    gradient = scores + system.D * x[0] - system.q - (signs * s).sum(axis=0)
    return Residuals(point, scores, combined, gradient, system.penalised(z) - combined + system.e)
