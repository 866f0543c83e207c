"""Semismooth Newton steps for soft margins at p = 2 with losses that are piecewise quadratic in the slacks.

With rows b_i (`centred_rows`), labels y_i and slacks s_i = 1 - y_i b_i.z the problem is ::

    minimise f(z) = 1/2 z'Rz + sum c_i phi_i(s_i),    phi_i'(s) = share_i(s) = min(max(prox_i + sigma s, 0), upper)

where R is the diagonal matrix with a 1 for every weight and a 0 for a free intercept. prox = 0 and upper = inf is the
squared hinge with costs sigma c_i / 2; upper = 1 is the hinge, smoothed by a proximal term of centre prox_i. The dual
variables are alpha_i = c_i share_i. Rows are active where 0 < prox_i + sigma s_i < upper. With v = sum alpha_i y_i b_i
and the active set A, the gradient is g = Rz - v, and a generalised Hessian is H = R + sigma M, M = sum_A c_i b_i b_i'.
A Newton step solves H dz = -g and moves z to the minimum of f along dz.

The proximal-point method on the dual of the hinge maximises, with alpha_i = c_i share_i, dual(alpha) - sum c_i
(share_i - prox_i)^2 / (2 sigma), where prox_i are the last shares: share_i = prox_i + sigma (1 - margin_i), clipped to
[0, 1]. A step costs n d + k d^2 operations with k active rows. sigma grows fast while more rows are active than at the
optimum, and once the active set is that of the optimum.

References
----------
R. T. Rockafellar, "Augmented Lagrangians and applications of the proximal point algorithm in convex programming",
Math. Oper. Res. 1, 1976; X. Li, D. Sun, K.-C. Toh, "A highly efficient semismooth Newton augmented Lagrangian method
for solving Lasso problems", SIAM J. Optim. 28, 2018.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from ...engine.jit import writable
from ...problem.problem import Problem
from ...solvers.iterate import Reached
from ...solvers.linear_systems import factor
from ...solvers.rows import CentredRows, SmallDenseRows, centred_rows
from . import semismooth_steps as core
from .semismooth_steps import CONVERGED, FAILED, GOES_ON, SIGMA, TAKEN, next_problem, solve_problems

# Columns up to which steps on small dense rows are compiled: with more, BLAS and LAPACK are faster. Chosen on the data
# sets of benchmarks.before_after.
MAX_COMPILED = 100
# Rows x columns^2 x steps of one call of compiled code: about a tenth of a second between two checks of the deadline. A
# smaller number makes more calls, a larger one meets deadlines later. A round value; not tuned.
FLOPS_PER_CALL = 200_000_000
# Rows x columns^2 above which the first matrix M, of all rows, is computed by BLAS and shared by the classes; for
# smaller ones the compiled loop takes less time than the call. Chosen on the data sets of benchmarks.before_after.
LARGE_PRODUCT = 85_000
# Rows that are transposed together for products: 50 kB at 100 columns, which stay in the cache. A round value;
# not tuned.
TRANSPOSED_ROWS = 64


class Rules(NamedTuple):
    """Stopping rules of an iteration and of its line searches; -1 or inf switches a rule off.

    Attributes
    ----------
    line_search_slope : float
        A line search ends where the absolute slope is at most this share of that at its start.
    gradient_share, gradient_rounding : float
        The iteration ends where max |g_j| is at most `gradient_share` times that of its first iterate, or at most
        `gradient_rounding` times sum alpha_i.
    rounding_gap : float
        It ends at a gap of at most this, after two evaluations that left the active set unchanged.
    stalled_gap : float
        It ends at a gap of at most this that the last step did not halve.
    max_unchanged : float
        It ends at any gap that the last step did not halve, after more than so many evaluations that left the active
        set unchanged.
    """

    line_search_slope: float
    gradient_share: float = -1.0
    gradient_rounding: float = -1.0
    rounding_gap: float = -1.0
    stalled_gap: float = -1.0
    max_unchanged: float = np.inf


class SemismoothNewton:
    """The current iterate z with its slacks, dual variables and gradient, and Newton steps from it.

    Parameters
    ----------
    rows : CentredRows
    y : ndarray of shape (n,), entries -1.0 and 1.0
    costs : ndarray of shape (n,), positive
        c_i, in the unit of `rows`.
    upper : float
        The largest share: 1 for the hinge, inf for the squared hinge.
    interrupted : callable
        Whether to stop; called during products and factorisations of large matrices.
    settings : Settings of `newton` or of `proximal_point`
        Its `rules` end the iteration.

    Attributes
    ----------
    prox : ndarray of shape (n,)
        The centres of the proximal terms, which are shares; 0 for the squared hinge.
    sigma : float
        The weight of the slacks: the proximal parameter, or a factor of all costs for the squared hinge.
    z : ndarray of shape (size,)
        The iterate, in the coordinates of `rows`; the last one is the intercept where there is one.
    slack : ndarray of shape (n,)
        Updated by the change of every step, so that dual variables become exact even where a slack is smaller than the
        rounding error of a margin. Without an upper bound of the shares, slacks are computed from z once after a step
        that leaves the active set unchanged, if another step follows.
    active : ndarray of bool of shape (n,)
    gradient, dual_sum : ndarray of shape (size,)
        g and v.
    values : ndarray
        The scalars that `semismooth_steps` lists.
    """

    def __init__(
        self,
        rows: CentredRows,
        y: np.ndarray,
        costs: np.ndarray,
        upper: float,
        interrupted: Callable[[], bool],
        settings: Any,
    ) -> None:
        n, size = y.size, rows.size
        self.rows, self.upper, self.interrupted, self.settings = rows, upper, interrupted, settings
        self.free, self.sigma = rows.problem.free, 1.0
        data, vectors, values = np.empty((6, n)), np.zeros((8, size)), np.zeros(13)
        limits = np.array(settings.rules)
        self.data, self.vectors, self.values, self._limits = data, vectors, values, limits
        data[core.Y], data[core.COSTS], data[core.PROX], vectors[core.REGULAR] = y, costs, 0.0, rows.regular
        # views of the arrays that compiled code reads and writes
        self.y, self.costs, self.prox, self.slack = data[: core.SIGNED]
        self.z, self.regular, self.gradient, self.dual_sum = vectors[: core.DIRECTION]
        marks = np.zeros((2, n), bool)  # the active set, and the rows in M of compiled steps
        self.active = marks[0]
        self._begins = self._frozen = False
        self._hessian, self._max_steps = ActiveHessian(rows, costs), 1
        self._small: core.Arrays | None = None
        if isinstance(rows, SmallDenseRows) and size <= MAX_COMPILED:
            matrices, columns = np.zeros((2, size, size)), np.empty((size, min(n, TRANSPOSED_ROWS)))
            indices = np.empty((2, n), np.uint32)
            arrays = rows.rows, data, vectors, values, limits, marks, indices, matrices, columns
            self._small = core.Arrays(*arrays)
            self._max_steps = max(1, FLOPS_PER_CALL // (n * size * size))
            if n * size * size > LARGE_PRODUCT:
                matrices[0], marks[1] = rows.product_of_all(costs), True

    @property
    def gap(self) -> float:
        """The relative duality gap."""
        return float(self.values[core.GAP])

    @property
    def status(self) -> float:
        """One of GOES_ON, ENDED and FAILED; for the proximal-point method also CONVERGED."""
        return float(self.values[core.STATUS])

    def alpha(self) -> np.ndarray:
        """Return the dual variables in the problem's own units."""
        alpha = self.y * self.data[core.SIGNED]
        alpha /= self.rows.unit**2
        return alpha

    def set_slack(self) -> None:
        """Compute slacks from z, without the rounding errors that have accumulated from step to step."""
        if self._small is None:
            core.slacks(self.rows.scores(self.z), self.y, 0.0, self.slack)
        else:
            core.set_slack(self._small.rows, self.data, self.vectors)

    def go_to(self, z: np.ndarray) -> None:
        """Begin an iteration at z: compute slacks, alpha, gradient and gap, in one pass over large dense rows."""
        self.z[:], self._begins, self._frozen = z, False, False
        if self._small is not None:
            # the function that takes steps on small rows also evaluates: `evaluate_rows` need not be compiled for them
            self.set_slack()
            self.begin()
            self.advance(0)
        elif sp.issparse(self.rows.X):
            self.set_slack()
            self.evaluate()
        else:
            X, w, b = self.rows.stored(self.z)
            sums, indices = np.empty((2, w.size)), np.empty(min(self.rows.chunk, self.y.size), np.uint32)
            balance = core.evaluate_rows(
                writable(X), w, b, self.sigma, self.upper, self.data, self.active, indices, sums, self.values
            )
            self.dual_sum[:] = self.rows.centred_sum(sums[0], balance)
            core.set_gradient_and_gap(self.sigma, self.upper, self.free, self.vectors, self.values)
        self.values[core.FIRST_GRADIENT] = self.values[core.MAX_GRADIENT]
        self.values[core.UNCHANGED], self.values[core.LAST_GAP] = 0.0, np.inf
        core.set_status(self._limits, self.values)

    def inverse_hessian(self) -> np.ndarray | None:
        """Return H^-1 for the active set, or None where H is singular up to rounding."""
        solve = factor(self._hessian.regularised(self.active, self.sigma))
        return None if solve is None else solve(np.eye(self.z.size))

    def begin(self, frozen: bool = False) -> None:
        """Let the next call of `advance` begin an iteration at z with these slacks.

        Where `frozen` is true, a step with the present active set and unclipped shares of its rows comes first. It is
        not counted.
        """
        self._begins, self._frozen = True, frozen

    def advance(self, steps: int, goal: float = -1.0) -> int:
        """Take steps until the gap is at most `goal`, `Rules` end the iteration, or the limit of one call is reached.

        Parameters
        ----------
        steps : int
            Largest number of steps.
        goal : float
            The gap at which to stop; -1 to ignore the gap.

        Returns
        -------
        steps : int
            Number of steps taken.
        """
        begins, self._begins = self._begins, False
        if self._small is not None:  # the iteration below, compiled
            most, frozen = min(steps, self._max_steps), self._frozen
            return core.minimise(self._small, self.sigma, self.upper, self.free, begins, frozen, most, goal)
        if begins:
            if self._frozen:
                self.evaluate(frozen=True)
                self.take_step()
            self.evaluate()
            self.values[core.FIRST_GRADIENT] = self.values[core.MAX_GRADIENT]
            core.set_status(self._limits, self.values)
        if not steps or self.gap <= goal or self.status != core.GOES_ON:
            return 0
        if self.upper == np.inf and self.values[core.UNCHANGED] == 1.0:
            # near the end rounding errors of the slacks count
            self.set_slack()
            self.values[core.UNCHANGED] = 0.0  # this evaluation and that before count as one
            self.evaluate()
        if not self.take_step() > 0.0:
            self.values[core.STATUS] = core.FAILED
            return 0
        self.evaluate()
        core.set_status(self._limits, self.values)
        return 1

    def evaluate(self, frozen: bool = False) -> None:
        """Compute dual variables, gradient and gap from z and its slacks.

        Where `frozen` is true, the active set is kept, and the shares of its rows are not clipped (`clip_part`).
        """
        core.clip_shares(self.sigma, self.upper, frozen, self.data, self.active, self.values)
        self.dual_sum[:] = self.rows.combine(self.data[core.SIGNED])
        core.set_gradient_and_gap(self.sigma, self.upper, self.free, self.vectors, self.values)

    def take_step(self) -> float:
        """Move z to the minimum of f along the direction; return the step length, 0 where f does not decrease."""
        self.vectors[core.DIRECTION] = self.direction()
        self.data[core.CHANGE] = self.rows.scores(self.vectors[core.DIRECTION])
        tolerance = self._limits[core.LINE_SEARCH_SLOPE]
        return core.move(self.sigma, self.upper, tolerance, self.data, self.vectors)

    def direction(self) -> np.ndarray:
        """Return the Newton direction -H^-1 g; where H is singular up to rounding, -g divided by the diagonal of H."""
        hessian = self._hessian.regularised(self.active, self.sigma)
        if self.free and not self.active.any():  # R and M are 0 in the intercept
            hessian[-1, -1] += core.FREE_CURVATURE * self.sigma * float(self.costs.sum())
        solve = factor(hessian)
        if solve is None:
            return -self.gradient / np.maximum(np.diag(hessian), core.TINY)
        return -solve(self.gradient)


class ActiveHessian:
    """The matrix M = sum_A c_i b_i b_i' over the active set A, updated as rows enter and leave.

    Parameters
    ----------
    rows : CentredRows
    costs : ndarray of shape (n,)
    """

    def __init__(self, rows: CentredRows, costs: np.ndarray) -> None:
        self.rows, self.costs = rows, costs
        self._active: np.ndarray | None = None
        # M, computed by the first call of `regularised`, which steps on wide rows never make
        self._matrix = np.zeros((0, 0))
        # the largest value that each diagonal entry has had since M was last computed from all active rows
        self._largest = np.zeros(rows.size)

    def regularised(self, active: np.ndarray, sigma: float = 1.0) -> np.ndarray:
        """Return R + sigma M for these active rows.

        Parameters
        ----------
        active : ndarray of bool of shape (n,)
        sigma : float, default=1.0
        """
        self._update(active)
        self._active = active.copy()
        return self.rows.regularised(sigma * self._matrix)

    def _update(self, active: np.ndarray) -> None:
        """Add rows that enter to M and subtract rows that leave, or compute M from all active rows.

        The latter where M is small, where many rows changed, or where the subtraction cancels digits of the diagonal.
        """
        rows, before = active.nonzero()[0], self._active
        if before is not None and np.array_equal(active, before):
            return
        if before is not None and rows.size * self.rows.size**2 > core.SMALL_PRODUCT:
            changed = active != before
            entering, leaving = (changed & active).nonzero()[0], (changed & before).nonzero()[0]
            if entering.size + leaving.size <= core.MAX_CHANGED * rows.size:
                self._matrix += self._sum(entering)
                np.maximum(self._largest, self._matrix.diagonal(), out=self._largest)
                self._matrix -= self._sum(leaving)
                if (self._matrix.diagonal() >= core.MIN_DIAGONAL * self._largest).all():
                    return
        self._matrix = self._sum(rows)
        self._largest = self._matrix.diagonal().copy()

    def _sum(self, rows: np.ndarray) -> np.ndarray:
        """Return the sum of c_i b_i b_i' over these rows."""
        return self.rows.all_products(self.costs, rows)


# A more exact solution of a problem takes steps that do not save any in the next one; the next Newton step corrects the
# error of a line search. Chosen on the data sets of benchmarks.before_after.
RULES = Rules(line_search_slope=0.05, gradient_share=0.1, gradient_rounding=1e-14)


class Settings(NamedTuple):
    """Numerical settings of the proximal-point method, which compiled code reads too.

    Values without a measurement were chosen on the data sets of benchmarks.before_after, and not tuned further.
    """

    max_steps: int = 200  # Newton steps over all problems; 15 to 60 are usual
    # The first sigma, or less where the caps are large: sigma sum c_i, about sum alpha_i at slacks of one, is at most
    # `max_first_sum`. A larger sigma takes more steps for the first problem, a smaller one more problems.
    first_sigma: float = 0.25
    max_first_sum: float = 1e4
    # Growth of sigma from problem to problem: `fast_growth` while more than `many_active` rows for each column are
    # active (the optimum has about one) or the last problem took at most `easy_steps` steps; otherwise `growth`. It is
    # multiplied by `fast_growth` while all rows are active. After a problem of more than `long_steps` steps, its square
    # root is used. With a smaller growth there are more problems, with a larger one each takes more steps.
    fast_growth: float = 7.0
    growth: float = 2.0
    many_active: float = 4.0
    easy_steps: int = 2
    long_steps: int = 4
    # The largest sigma where the caps sum to one or more; it is larger in proportion where they sum to less.
    max_sigma: float = 1e5
    # The active set counts as that of the optimum after a problem that ends at a gap of at most `known_set_gap` with
    # the active set of its last Hessian. Then sigma grows by `known_set_growth`, times `more_growth` for each such
    # problem in a row before; its limit is `beyond_max_sigma` times the usual one. If the active set is right, larger
    # numbers save problems; if not, they cost steps.
    known_set_gap: float = 1e-5
    known_set_growth: float = 30.0
    more_growth: float = 10.0
    beyond_max_sigma: float = 1e4
    rules: Rules = RULES
    # The solution of a problem is yielded, to be certified, when its gap is at most `first_report_gap`, then when it is
    # at most `report_share` times that of the last one yielded. Smaller values save certificates, and passes of sifting
    # over all rows, and end later at `tol`.
    first_report_gap: float = 1e-4
    report_share: float = 0.1
    # The iteration ends, at a gap of at most `end_gap`, when a problem changed the slacks by at most `min_change` times
    # (1 + |z|_1), or by at most `min_stalled_change` times that and by more than half of the last change; or when
    # `max_idle` problems in a row did not reduce the gap. Smaller changes and a larger `max_idle` take steps that
    # change rounding errors only.
    end_gap: float = 1e-9
    min_change: float = 1e-15
    min_stalled_change: float = 1e-12
    max_idle: int = 3


SETTINGS = Settings()


class Start(NamedTuple):
    """A warm start: (w, b), the dual variables as shares of their caps, of shape (n,), and the first sigma."""

    w: np.ndarray
    b: float
    shares: np.ndarray
    sigma: float


def proximal_points(
    problem: Problem,
    X: Any,
    y: np.ndarray,
    weights: np.ndarray,
    interrupted: Callable[[], bool] = lambda: False,
    tol: float = 0.0,
    start: Start | None = None,
    settings: Settings = SETTINGS,
) -> Iterator[Reached]:
    """Yield iterates for the hinge at p = 2 that converge to the optimum.

    Parameters
    ----------
    problem : Problem
    X : ndarray or CSR matrix of shape (n, d), or CentredRows of it
    y : ndarray of shape (n,), entries -1.0 and 1.0
    weights : ndarray of shape (n,), positive
        Sample weights.
    interrupted : callable
        Whether to stop; called before and during every step.
    tol : float, default=0
        A relative gap; the first iterate within it is yielded at once.
    start : Start, default=None
        None: w = 0, and a sigma at which all rows are active.
    settings : Settings
    """
    rows = centred_rows(problem, X)
    caps = problem.caps(weights) * rows.unit**2
    if not caps.min() > 0.0:  # underflow, in units as large as these
        return
    state = _State(rows, y, caps, 1.0, interrupted, settings)
    state.start_from(start)
    # gap of the last point yielded, at first such that a gap of `first_report_gap` is reported; the active set of the
    # last problem within that gap; whether a point within `tol` has been yielded
    yielded, active, near, steps = settings.first_report_gap / settings.report_share, None, False, 0
    while steps < settings.max_steps and state.status != FAILED:
        stop, gap = interrupted(), state.gap
        within = not near and 0.0 < gap <= tol
        if within:
            near, yielded = True, min(gap, yielded)
            yield state.iterate(tol)
        if stop or state.status != GOES_ON:
            report = gap <= settings.report_share * yielded
            if gap <= settings.first_report_gap:
                # the active set of the last problem again: likely that of the optimum
                report |= active is not None and np.array_equal(active, state.active)
                active = state.active.copy()
            end = stop or state.next_problem()
            if end or (report and not within):
                yielded = min(gap, yielded)
                yield state.iterate(tol)
            if end:
                return
        steps += max(1, state.solve(settings.max_steps - steps, -1.0 if near else tol))
    yield state.iterate(tol)


class _State(SemismoothNewton):
    """The iterate of the current proximal problem."""

    def start_from(self, start: Start | None) -> None:
        """Begin at a warm start, or at w = 0 with balanced dual variables."""
        if start is None:
            self.prox[:], self.sigma = first_shares(self.rows.problem, self.y, self.costs, self.settings)
            self.slack[:] = 1.0
        else:
            self.prox[:], self.sigma = start.shares, start.sigma
            self.z[:] = self.rows.coordinates(start.w, start.b)
            self.set_slack()
        max_sigma = self.settings.max_sigma * max(1.0, 1.0 / float(self.costs.sum()))
        # the entries SIGMA to TAKEN
        progress = [self.sigma, max_sigma, self.settings.known_set_growth, np.inf, np.inf, 0.0, 0.0]
        self._progress = np.array(progress)
        self.begin()
        self.advance(0)

    def iterate(self, tol: float) -> Reached:
        """Return the point in the problem's own units."""
        return Reached(*self.rows.primal(self.z), self.alpha(), self.gap, tol > 0.0 and self.gap <= tol)

    def solve(self, max_steps: int, goal: float) -> int:
        """Take steps on the current problem, at most `max_steps`, to the gap `goal`; return their number.

        On small dense rows, go on to the next problem while the gap is too large to be reported.
        """
        if self._small is None:
            taken = self.advance(max_steps, goal or -1.0)
            self._progress[TAKEN] += taken
            return taken
        task = self._small, self.settings, self._progress, self.free, self._begins, self._frozen
        self._begins = False
        taken = solve_problems(*task, min(max_steps, self._max_steps), goal or -1.0)
        self.sigma = float(self._progress[SIGMA])
        return taken

    def next_problem(self) -> bool:
        """Set prox to the present shares, increase sigma and begin the next problem; return whether there is none.

        The slacks of active rows are small but not zero. Times a larger sigma they would clip most of these shares, and
        the rows would become active again one by one. The first step therefore leaves their shares unclipped.
        """
        if self.status != CONVERGED:
            next_problem(self.settings, self._progress, self.data, self.vectors, self.values)
            if self.gap <= self.settings.known_set_gap:
                self.set_slack()
            self.sigma = float(self._progress[SIGMA])
            self.begin(frozen=not self.active.all())
        return self.status == CONVERGED


def first_shares(
    problem: Problem, y: np.ndarray, caps: np.ndarray, settings: Settings = SETTINGS
) -> tuple[np.ndarray, float]:
    """Return shares of the caps for a start at w = 0, and the first sigma.

    All slacks are 1 there. The shares are 2 sigma, reduced in the heavier class where the intercept is free, so that
    sum y_i c_i share_i = 0.
    """
    total, signed = float(caps.sum()), float(caps @ y)
    sigma = min(settings.first_sigma, settings.max_first_sum / total)
    positive, negative = total + signed, total - signed
    if not (problem.free and positive > 0.0 and negative > 0.0):
        return np.full(y.size, 2.0 * sigma), sigma
    heavier = np.where(y > 0.0, min(1.0, negative / positive), min(1.0, positive / negative))
    return 2.0 * sigma * heavier, sigma
