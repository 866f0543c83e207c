"""Mehrotra's predictor-corrector method for the dual of a problem at p = 2.

    minimise 1/2 |A'a|^2 + 1/2 a'Da - q'a   subject to   E a = e,  0 <= a <= c

With B = [A, E'] and z = (w, beta), w = A'a a variable of its own and beta the multipliers of the equations, a step
solves::

    T da + B dz = r          T = D + u / a + v / (c - a),  u and v the multipliers of a >= 0 and a <= c
    R dz - B'da = s          R = 1 for every coordinate of w, 0 for every multiplier

Eliminating da leaves (R + B'T^-1 B) dz = B'T^-1 r + s, a system of the size of the columns. What depends on how rows
are stored is behind `System`: `DenseSystem` holds a small quadratic program, hard margins included, and `RowSystem` the
soft margin of many rows, which are passed over some at a time. There are 10 to 50 steps as a rule, whatever C and the
sample weights are; about 100 where columns differ by six orders of magnitude and hardly any label is noise.

References
----------
S. Mehrotra, "On the implementation of a primal-dual interior point method", SIAM J. Optim. 2, 1992;
M. C. Ferris, T. S. Munson, "Interior-point methods for massive support vector machines", SIAM J. Optim. 13, 2002.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from ...problem.problem import Problem
from .centred_rows import centred_rows
from .cholesky import factor
from .iterate import Reached

if TYPE_CHECKING:
    from .quadratic_program import Quadratic

# Steps at most. 15 to 30 are usual; nearly dependent columns of very different scales take more.
MAX_STEPS = 400
# Share of the way to the boundary that a step goes: nearer to 1 is faster near the end, and less well centred.
BACK = 0.995
# Power of the share of the complementarity that the predictor leaves: mu is reduced by it (Mehrotra, 1992, takes 3).
POWER = 3
# A step length that leads nowhere: rounding has the last word then.
SHORT = 1e-10
# Small programs: relative complementarity and gradient at which float64 has no more digits.
CLOSE, FLAT = 1e-13, 1e-12
# Small programs: an error that has grown by this factor over the least (or over 1e-9) does not come back.
WORSE = 1e6
# Small programs: corrections of each solution of the linear system, at most: they end where the residual no longer
# halves. Free rows have tiny T, and products of nearly dependent columns lose digits. Each costs n d, beside n d^2 of
# the factor. With 5 of them 190 of the 192 fits of docs/harsh.md are certified; with 2, 3 or 10 as many or fewer.
REFINEMENTS = 5
# A margin, and a squared margin, that is zero where the longest row has length one.
NOTHING, TINY = 1e-15, 1e-30
# Many rows: a point is yielded when its gap has fallen to this share of the last one's: certifying it costs two passes
# over the rows, half of a step where columns are few, and near the end a step often divides the gap by five.
FEWER = 0.1
# Many rows: a gap that is rounding; and one below which the gap falls at every step, so that a tenfold one means that
# digits are lost.
ROUNDING, SHARP, LOST = 1e-13, 1e-5, 10.0

Solve = Callable[[np.ndarray, np.ndarray], tuple[np.ndarray, np.ndarray]]


class System(ABC):
    """One dual program, and how its linear systems are solved.

    Attributes
    ----------
    D, q, c, lengths : ndarray of shape (n,)
        As in the module's docstring; the lengths of rows that are far longer than most, 1 of the others.
    e : ndarray of shape (size,)
        Right-hand sides of the equations in the places of their multipliers; 0 in those of w.
    regular : ndarray of shape (size,)
        The diagonal of R.
    """

    D: np.ndarray
    q: np.ndarray
    c: np.ndarray
    lengths: np.ndarray
    e: np.ndarray
    regular: np.ndarray

    @abstractmethod
    def scores(self, z: np.ndarray) -> np.ndarray:
        """B z, of shape (n,)."""

    @abstractmethod
    def combine(self, a: np.ndarray) -> np.ndarray:
        """B'a, of shape (size,)."""

    @abstractmethod
    def matrix(self, share: np.ndarray) -> np.ndarray:
        """R + B' diag(share) B, of shape (size, size)."""

    def start(self) -> np.ndarray:
        """Half of each cap, or dual variables for which slacks of one half are optimal."""
        uncapped = 0.5 / np.where(self.D > 0.0, self.D, 0.5)
        return np.where(np.isfinite(self.c), 0.5 * self.c, uncapped) / self.lengths

    def solver(self, T: np.ndarray, interrupted: Callable[[], bool]) -> Solve | None:
        """Return the function that solves for (da, dz); None where digits are lost, or it is time to stop."""
        matrix = self.matrix(1.0 / T)
        if interrupted():
            return None
        solved = factor(matrix, interrupted)
        if solved is None:
            return None

        def solve(r: np.ndarray, s: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
            z = solved(self.combine(r / T) + s)
            return (r - self.scores(z)) / T, z

        return solve


class Iterate(NamedTuple):
    """A point inside the bounds.

    Attributes
    ----------
    x, s : ndarray of shape (k, n)
        Distances of the dual variables from their bounds, and the multipliers of these: x = (a, c - a), s = (u, v).
        k is 1 where no dual variable has a cap. c - a is kept apart, since the difference would lose its last digits.
        Of a single dual variable without a cap it is 1, and v is 0.
    z : ndarray of shape (size,)
        w, which equals A'a at the end only (so that caps of 1e16 are no obstacle), and the multipliers beta.
    """

    x: np.ndarray
    s: np.ndarray
    z: np.ndarray

    @property
    def a(self) -> np.ndarray:
        """The dual variables."""
        return self.x[0]

    @property
    def complementarity(self) -> float:
        """a'u + (c - a)'v, which is 0 at the optimum."""
        return float(np.vdot(self.x, self.s))

    def moved(self, t: float, step: Iterate) -> Iterate:
        """Return the point t steps on."""
        return Iterate(self.x + t * step.x, self.s + t * step.s, self.z + t * step.z)

    def longest(self, step: Iterate) -> float:
        """Return the longest multiple of the step, at most one, that stays `BACK` of the way from the boundary."""
        with np.errstate(all="ignore"):  # 0 / 0 where there is no cap
            rate = max(np.fmax.reduce(-dx / x, axis=None) for dx, x in zip(step[:2], self[:2], strict=True))
        return min(1.0, BACK / max(float(rate), BACK))


@dataclass(frozen=True)
class Residuals:
    """An iterate with its products and the residuals of the optimality conditions.

    Attributes
    ----------
    scores : ndarray of shape (n,)
        B z.
    made : ndarray of shape (size,)
        B'a.
    gradient : ndarray of shape (n,)
        Residual of the Lagrangian's gradient, B z + D a - q - u + v.
    apart : ndarray of shape (size,)
        Residuals of w = A'a and of E a = e.
    """

    point: Iterate
    scores: np.ndarray
    made: np.ndarray
    gradient: np.ndarray
    apart: np.ndarray


def iterates(system: System, interrupted: Callable[[], bool] = lambda: False) -> Iterator[Residuals]:
    """Yield the start and the iterate after every step, until steps are too short or it is time to stop.

    Parameters
    ----------
    system : System
    interrupted : callable
        Returns whether to stop; asked before every step, and within products and factors of large matrices.
    """
    capped = np.isfinite(system.c)
    a, u = system.start(), system.lengths
    # how x moves with a: a itself, and c - a where there is a cap
    signs = np.stack([np.ones(a.size), -1.0 * capped] if capped.any() else [np.ones(a.size)])
    x = np.stack([a, np.where(capped, system.c - a, 1.0)][: len(signs)])
    point = Iterate(x, np.abs(signs) * a * u / x, np.zeros(system.regular.size))  # all products are equal
    pairs = np.count_nonzero(signs)
    for _ in range(MAX_STEPS):
        look = _residuals(system, point, signs)
        yield look
        if interrupted() or not 0.0 < point.complementarity < np.inf:
            return
        x, s, _ = point
        solve = system.solver(system.D + (s / x).sum(axis=0), interrupted)
        if solve is None:
            return
        predictor = _step(look, signs, -x * s, solve)
        left = point.moved(point.longest(predictor), predictor).complementarity / pairs
        if not np.isfinite(left):
            return
        mu = point.complementarity / pairs
        target = mu * max(left / mu, 0.0) ** POWER
        step = _step(look, signs, target * np.abs(signs) - x * s - predictor.x * predictor.s, solve)
        t = point.longest(step)
        if not t > SHORT:
            return
        point = point.moved(t, step)


def _step(look: Residuals, signs: np.ndarray, change: np.ndarray, solve: Solve) -> Iterate:
    """Return Newton's step from an iterate: residuals to 0, and the products x s changed by `change`, linearised."""
    x, s, _ = look.point
    da, dz = solve((signs * change / x).sum(axis=0) - look.gradient, -look.apart)
    dx = signs * da
    return Iterate(dx, (change - s * dx) / x, dz)


def _residuals(system: System, point: Iterate, signs: np.ndarray) -> Residuals:
    """Return the residuals at a point."""
    x, s, z = point
    scores, made = system.scores(z), system.combine(x[0])
    gradient = scores + system.D * x[0] - system.q - (signs * s).sum(axis=0)
    apart = system.regular * z - made + system.e
    return Residuals(point, scores, made, gradient, apart)


class DenseSystem(System):
    """A small quadratic program; solutions are corrected by their residuals.

    Parameters
    ----------
    qp : Quadratic
    """

    def __init__(self, qp: Quadratic) -> None:
        self.qp, self.D, self.q, self.c, self.lengths = qp, qp.D, qp.q, qp.c, qp.lengths
        d, equations = qp.shape[1], len(qp.e)
        self._B = np.hstack([qp.A, qp.E.T]) if equations else qp.A
        self.regular, self.e = np.repeat([1.0, 0.0], [d, equations]), np.append(np.zeros(d), qp.e)

    def scores(self, z: np.ndarray) -> np.ndarray:
        return self._B @ z

    def combine(self, a: np.ndarray) -> np.ndarray:
        return self._B.T @ a

    def matrix(self, share: np.ndarray) -> np.ndarray:
        weighted = self._B * np.sqrt(share)[:, None]
        return weighted.T @ weighted + np.diag(self.regular)

    def start(self) -> np.ndarray:
        qp = self.qp
        if not qp.problem.hard:
            return super().start()
        return qp.E.T @ (qp.e / (qp.E @ (1.0 / qp.lengths))) / qp.lengths  # on the equations

    def solver(self, T: np.ndarray, interrupted: Callable[[], bool]) -> Solve | None:
        rough = super().solver(T, interrupted)
        if rough is None:
            return None

        def solve(r: np.ndarray, s: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
            a, z = rough(r, s)
            before = np.inf
            for _ in range(REFINEMENTS):
                left = r - self.scores(z) - T * a, s - self.regular * z + self.combine(a)
                size = float(np.abs(left[0]).sum() + np.abs(left[1]).sum())
                if not size <= 0.5 * before:
                    break
                da, dz = rough(*left)
                a, z, before = a + da, z + dz, size
            return a, z

        return solve


def interior_point(qp: Quadratic, interrupted: Callable[[], bool] = lambda: False) -> Iterate:
    """Return the best iterate of a small program: 1e-10 from the optimum where numbers and time allow.

    Parameters
    ----------
    qp : Quadratic
    interrupted : callable
        Returns whether to stop; asked before every step.
    """
    best, least = None, np.inf
    for look in iterates(DenseSystem(qp), interrupted):
        error, done = _error(qp, look)
        if best is None or error < least:
            best, least = look.point, error
        if done or not error <= WORSE * max(least, 1e-9):
            break
    assert best is not None
    return best


def _error(qp: Quadratic, look: Residuals) -> tuple[float, bool]:
    """Return how far an iterate is from optimal, relative, and whether float64 has no more digits of it.

    In units of a margin of one: of the hard margin, with dual variables of sum one, that is |w|^2.
    """
    d, point = qp.shape[1], look.point
    w, apart = look.made[:d], float(np.abs(look.apart[:d]).max(initial=0.0))
    broken, gradient = float(np.abs(look.apart[d:]).max(initial=0.0)), np.abs(look.gradient)
    one = max(float(w @ w), TINY) if qp.problem.hard else 1.0
    products = point.complementarity / (one + abs(float(qp.q @ point.a)))
    slope = float((gradient / qp.lengths).max()) / one
    done = products <= CLOSE and slope < FLAT
    if qp.problem.hard:  # the bound itself: where it tends to zero, so does the unit of everything else
        error = float(np.sqrt(w @ w)) + broken + float(gradient.max()) + apart
        return error, done or error < NOTHING
    equations = broken / (1.0 + float(point.a.max())) + apart / (1.0 + float(np.abs(w).max(initial=0.0)))
    return products + slope + equations, done


class RowSystem(System):
    """The soft margin of many rows, in the units of their blocks: no copy of all rows is made.

    Parameters
    ----------
    problem : Problem
    X : ndarray or CSR matrix of shape (n, d), or CentredRows
    y, weights : ndarray of shape (n,)
    interrupted : callable
    """

    def __init__(
        self,
        problem: Problem,
        X: Any,
        y: np.ndarray,
        weights: np.ndarray,
        interrupted: Callable[[], bool] = lambda: False,
    ) -> None:
        self.blocks, self.y, self.interrupted = centred_rows(problem, X), y, interrupted
        self.unit2 = self.blocks.unit**2
        self.D, self.c = problem.delta2(weights) / self.unit2, problem.caps(weights) * self.unit2
        self.q, self.lengths = np.ones(y.size), self.blocks.lengths
        self.regular, self.e = self.blocks.regular, np.zeros(self.blocks.size)

    def scores(self, z: np.ndarray) -> np.ndarray:
        return self.y * self.blocks.scores(z)

    def combine(self, a: np.ndarray) -> np.ndarray:
        return self.blocks.combine(self.y * a)

    def matrix(self, share: np.ndarray) -> np.ndarray:
        rows = np.arange(share.size, dtype=np.uint32)
        return self.blocks.regularised(self.blocks.all_products(share, rows, self.interrupted))

    def reached(self, look: Residuals, tol: float) -> Reached:
        """Return the point of an iterate in the problem's own units; its gap is inf where it proves nothing."""
        a, D = look.point.a, self.D
        slack = np.maximum(1.0 - look.scores, 0.0)
        loss = 0.5 * float(slack @ (slack / D)) if D.any() else float(self.c @ slack)
        dual = float(a.sum()) - 0.5 * float(a @ (D * a))
        gap = self.blocks.gap(look.point.z, look.made, loss, dual)
        return Reached(*self.blocks.primal(look.point.z), a / self.unit2, gap, tol > 0.0 and gap <= tol)


def interior_points(
    problem: Problem,
    X: Any,
    y: np.ndarray,
    weights: np.ndarray,
    interrupted: Callable[[], bool] = lambda: False,
    tol: float = 0.0,
) -> Iterator[Reached]:
    """Yield points (w, b, alpha) of a soft margin at p = 2, nearer and nearer to the optimum.

    Parameters
    ----------
    problem : Problem
    X : ndarray or CSR matrix of shape (n, d), or CentredRows
        The work of a step is n d^2.
    y : ndarray of shape (n,), entries -1.0 and 1.0
    weights : ndarray of shape (n,), positive
        Sample weights.
    interrupted : callable
        Returns whether to stop; asked before every step, and within products and factors of large matrices.
    tol : float, default=0
        A gap that is asked for: the first point within it is yielded.
    """
    system = RowSystem(problem, X, y, weights, interrupted)
    shown, least, pending = 1.0, np.inf, None
    for look in iterates(system, interrupted):
        point = pending = system.reached(look, tol)
        if point.gap > LOST * least and least < SHARP:
            return
        least = min(point.gap, least)
        if point.gap <= max(FEWER * shown, ROUNDING) or point.gap <= tol < shown:
            shown, pending = point.gap, None
            yield point
            if point.gap <= ROUNDING:
                return
    if pending is not None:
        yield pending
