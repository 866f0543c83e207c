"""Mehrotra's predictor-corrector method for the dual of a problem at p = 2.

    minimise 1/2 |A'a|^2 + 1/2 a'Da - q'a   subject to   E a = e,  0 <= a <= c

The rows of A are the signed rows y_i x_i, and a the dual variables; `quadratic_program` defines the other arrays. With
B = [A, E'] and z = (w, beta), w = A'a a variable of its own and beta the multipliers of the equations, a step solves::

    T da + B dz = r          T = D + u / a + v / (c - a),  u and v the multipliers of a >= 0 and a <= c
    R dz - B'da = s          R = 1 for every coordinate of w, 0 for every multiplier

Eliminating da leaves (R + B'T^-1 B) dz = B'T^-1 r + s, a system whose size is the number of columns of B. `System`
hides how the rows are stored: `DenseSystem` holds a small program, hard margins included, and `RowSystem` the soft
margin of many rows, which it processes in blocks. Usually 10 to 50 steps are enough, whatever C and the sample weights
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
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from ...problem.problem import Problem
from ...solvers.iterate import Reached
from ...solvers.linear_systems import factor
from ...solvers.rows import centred_rows

if TYPE_CHECKING:
    from .quadratic_program import Quadratic

MIN_SQUARE = 1e-30  # least squared margin that is a divisor, where the longest row has length one


@dataclass(frozen=True)
class Settings:
    """Numerical settings of the interior-point method. Values without another source are round ones, and not tuned."""

    max_steps: int = 400  # 15 to 30 are usual; nearly dependent columns of very different scales take more
    # Largest fraction of the distance to the boundary that a step goes: nearer to 1 is faster and less well centred.
    boundary_share: float = 0.995
    # The target of mu is mu (mu_p / mu)^power, mu_p being that after the predictor step; Mehrotra (1992) takes 3.
    centring_power: int = 3
    min_step_length: float = 1e-10  # up to this length the iterations end, as rounding prevents progress
    # Small programs. Relative complementarity and gradient at which float64 has no more digits, and a hard margin that
    # counts as zero where the longest row has length one.
    complementarity_rounding: float = 1e-13
    gradient_rounding: float = 1e-12
    margin_rounding: float = 1e-15
    # The iterations end when the error exceeds max(least error, small_error) by this factor: it does not fall again.
    max_error_growth: float = 1e6
    small_error: float = 1e-9
    # Steps of iterative refinement of each linear system, at most: they end where the residual no longer halves. Free
    # rows have tiny T, and products of nearly dependent columns lose digits. Each costs n d, where the factor costs
    # n d^2. With 5 of them 190 of 192 fits of faulty data are certified; with 2, 3 or 10 as many or
    # fewer.
    max_refinements: int = 5
    # Many rows. A point is yielded when its gap is at most this fraction of that of the last yielded one. Its
    # certificate costs two passes over the rows, half of a step where there are only some columns, and near the optimum
    # a step often divides the gap by five.
    report_share: float = 0.1
    gap_rounding: float = 1e-13  # a gap up to this is rounding
    # Below `monotone_gap` the gap falls at every step, so that a gap above `max_gap_growth` times the least one means
    # that digits are lost: the iterations end.
    monotone_gap: float = 1e-5
    max_gap_growth: float = 10.0


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


class DenseSystem(System):
    """A small quadratic program, whose linear systems are solved with iterative refinement.

    Parameters
    ----------
    qp : Quadratic
    max_refinements : int
    """

    def __init__(self, qp: Quadratic, max_refinements: int) -> None:
        self.qp, self.max_refinements = qp, max_refinements
        self.D, self.q, self.c = qp.D, qp.q, qp.c
        d, equations = qp.shape[1], len(qp.e)
        self._B = np.hstack([qp.A, qp.E.T]) if equations else qp.A
        self.regular, self.e = np.repeat([1.0, 0.0], [d, equations]), np.append(np.zeros(d), qp.e)

    def scores(self, z: np.ndarray) -> np.ndarray:
        return self._B @ z

    def combine(self, a: np.ndarray) -> np.ndarray:
        return self._B.T @ a

    def matrix(self, weights: np.ndarray) -> np.ndarray:
        weighted = self._B * np.sqrt(weights)[:, None]
        return weighted.T @ weighted + np.diag(self.regular)

    def start(self) -> np.ndarray:
        qp = self.qp
        if not qp.problem.hard:
            return super().start()
        return qp.E.T @ (qp.e / qp.E.sum(axis=1))  # meets E a = e

    def solver(self, T: np.ndarray) -> Solve | None:
        solve_once = super().solver(T)
        if solve_once is None:
            return None

        def solve(r: np.ndarray, s: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
            a, z = solve_once(r, s)
            last_size = np.inf
            for _ in range(self.max_refinements):
                residuals = r - self.scores(z) - T * a, s - self.regular * z + self.combine(a)
                size = float(np.abs(residuals[0]).sum() + np.abs(residuals[1]).sum())
                if not size <= 0.5 * last_size:
                    break
                da, dz = solve_once(*residuals)
                a, z, last_size = a + da, z + dz, size
            return a, z

        return solve


def interior_point(qp: Quadratic, interrupted: Callable[[], bool], settings: Settings = SETTINGS) -> Iterate:
    """Return the iterate of least error of a small program: about 1e-10, unless rounding or the deadline prevents it.

    Parameters
    ----------
    qp : Quadratic
    interrupted : callable
        Returns whether to stop; called before every step.
    settings : Settings
    """
    best, least = None, np.inf
    for current in iterates(DenseSystem(qp, settings.max_refinements), interrupted, settings):
        error, done = _error(qp, current, settings)
        if best is None or error < least:
            best, least = current.point, error
        if done or not error <= settings.max_error_growth * max(least, settings.small_error):
            break
    assert best is not None
    return best


def _error(qp: Quadratic, current: Residuals, settings: Settings) -> tuple[float, bool]:
    """Return the error of an iterate, and whether float64 has no more digits of it.

    For a soft margin the error is the sum of the relative complementarity, the gradient, and the relative residuals of
    E a = e and w = A'a. For a hard margin it is |A'a| plus the residuals. `unit` is the margin a_i.w of a support
    vector: 1 for a soft margin, and |w|^2 for a hard one, whose dual variables have sum one.
    """
    d, point = qp.shape[1], current.point
    w, w_error = current.combined[:d], float(np.abs(current.stationarity[:d]).max(initial=0.0))
    e_error, gradient = float(np.abs(current.stationarity[d:]).max(initial=0.0)), np.abs(current.gradient)
    unit = max(float(w @ w), MIN_SQUARE) if qp.problem.hard else 1.0
    complementarity = point.complementarity / (unit + abs(float(qp.q @ point.a)))
    max_gradient = float(gradient.max()) / unit
    done = complementarity <= settings.complementarity_rounding and max_gradient < settings.gradient_rounding
    # |A'a| is an upper bound of the margin; an error relative to `unit` would not fall for inseparable classes
    if qp.problem.hard:
        error = float(np.sqrt(w @ w)) + e_error + float(gradient.max()) + w_error
        return error, done or error < settings.margin_rounding
    equations = e_error / (1.0 + float(point.a.max())) + w_error / (1.0 + float(np.abs(w).max(initial=0.0)))
    return complementarity + max_gradient + equations, done


class RowSystem(System):
    """The soft margin of many rows, processed in blocks and in the units of `CentredRows`, without a copy of all rows.

    Parameters are those of `interior_points`.
    """

    def __init__(self, problem: Problem, X: Any, y: np.ndarray, weights: np.ndarray) -> None:
        self.blocks, self.y = centred_rows(problem, X), y
        self.unit2 = self.blocks.unit**2
        self.D, self.c = problem.delta2(weights) / self.unit2, problem.caps(weights) * self.unit2
        self.q = np.ones(y.size)
        self.regular, self.e = self.blocks.regular, np.zeros(self.blocks.size)

    def scores(self, z: np.ndarray) -> np.ndarray:
        return self.y * self.blocks.scores(z)

    def combine(self, a: np.ndarray) -> np.ndarray:
        return self.blocks.combine(self.y * a)

    def matrix(self, weights: np.ndarray) -> np.ndarray:
        rows = np.arange(weights.size, dtype=np.uint32)
        return self.blocks.regularised(self.blocks.all_products(weights, rows))

    def reached(self, current: Residuals, tol: float) -> Reached:
        """Return an iterate in the problem's own units, with its gap: inf where the dual objective is not positive."""
        a, D, z, v = current.point.a, self.D, current.point.z, current.combined
        slack = np.maximum(1.0 - current.scores, 0.0)
        # sum C s_i slack_i^2 under the squared hinge, D_i being 1 / (2 C s_i); sum c_i slack_i under the hinge
        loss = 0.5 * float(slack @ (slack / D)) if D.any() else float(self.c @ slack)
        primal = 0.5 * float((self.regular * z) @ z) + loss
        dual = float(a.sum()) - 0.5 * float(a @ (D * a)) - 0.5 * float((self.regular * v) @ v)
        # with a free intercept, v[-1] = sum y_i alpha_i must be 0: scaling one class down costs about |v[-1]|
        imbalance = abs(float(v[-1])) if self.blocks.problem.free else 0.0
        gap = (abs(primal - dual) + imbalance) / dual if dual > 0.0 else np.inf
        return Reached(*self.blocks.primal(z), a / self.unit2, gap, tol > 0.0 and gap <= tol)


def interior_points(
    problem: Problem,
    X: Any,
    y: np.ndarray,
    weights: np.ndarray,
    interrupted: Callable[[], bool] = lambda: False,
    tol: float = 0.0,
    settings: Settings = SETTINGS,
) -> Iterator[Reached]:
    """Yield points (w, b, alpha) of a soft margin at p = 2 that converge to the optimum.

    Parameters
    ----------
    problem : Problem
    X : ndarray or CSR matrix of shape (n, d), or CentredRows
        A step costs n d^2.
    y : ndarray of shape (n,), entries -1.0 and 1.0
    weights : ndarray of shape (n,), positive
        Sample weights.
    interrupted : callable
        Returns whether to stop; called before every step.
    tol : float, default=0
        Gap at which the caller stops: the first point within it is yielded.
    settings : Settings
    """
    system = RowSystem(problem, X, y, weights)
    # the gap of the last yielded point, the least gap, and the last point if it has not been yielded
    reported, least, pending = 1.0, np.inf, None
    for current in iterates(system, interrupted, settings):
        point = pending = system.reached(current, tol)
        if point.gap > settings.max_gap_growth * least and least < settings.monotone_gap:
            return
        least = min(point.gap, least)
        goal = max(settings.report_share * reported, settings.gap_rounding)
        if point.gap <= goal or point.gap <= tol < reported:
            reported, pending = point.gap, None
            yield point
            if point.gap <= settings.gap_rounding:
                return
    if pending is not None:
        yield pending
