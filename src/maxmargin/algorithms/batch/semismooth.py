"""Semismooth Newton steps for soft margins at p = 2 with losses that are piecewise quadratic in the slacks.

With rows b_i (`centred_rows`), labels y_i and slacks s_i = 1 - y_i b_i.z the problem is ::

    minimise f(z) = 1/2 z'Rz + sum c_i phi_i(s_i),    phi_i'(s) = share_i(s) = min(max(near_i + sigma s, 0), upper)

where R has a 1 for every weight and a 0 for a free intercept. near = 0 and upper = inf is the squared hinge with costs
sigma c_i / 2; upper = 1 is the hinge, smoothed about near_i. alpha_i = c_i share_i are dual variables. Rows are active
where 0 < share < upper. With the active set A the gradient is g = Rz - sum alpha_i y_i b_i, a Hessian
H = R + sigma sum_A c_i b_i b_i'; a step solves H dz = -g and goes to the minimum of f along dz.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
import scipy.sparse as sp

from ...engine.jit import writable
from .centred_rows import CentredRows, SmallDenseRows
from .cholesky import factor
from .semismooth_steps import (
    CHANGE,
    COSTS,
    DIRECTION,
    FAILED,
    FIRST,
    FREE_CURVATURE,
    GAP,
    GOES_ON,
    LAST_GAP,
    MAX_CHANGED,
    MIN_DIAGONAL,
    NEAR,
    REGULAR,
    SIGNED,
    SMALL_PRODUCT,
    STATUS,
    STEEPNESS,
    TINY,
    UNCHANGED,
    Y,
    clip_shares,
    evaluate_rows,
    measure,
    minimise,
    mispredicted,
    move,
    predict,
    set_status,
    slacks,
)

# Columns of dense rows whose steps are compiled: beyond, BLAS is faster.
MAX_COMPILED = 100
# Rows x columns^2 that one call into compiled code may take in all its steps: a tenth of a second between two looks
# at the deadline.
FLOPS_A_CALL = 200_000_000
# Rows x columns^2 from which on the first matrix, of all rows, is computed by BLAS and shared by classes.
LARGE_PRODUCT = 85_000
TRANSPOSED = 64  # rows that are transposed together for products: 50 kB of 100 columns, which stay in cache
# v is updated from step to step while the gap is larger than this, below which its digits count, and while no more
# than this share of the rows changed.
MIN_UPDATE_GAP, MAX_UPDATED = 1e-6, 1.0 / 3.0


class Rules(NamedTuple):
    """When an iteration ends.

    Attributes
    ----------
    line_search : float
        Share of the slope at its start at which a line search ends.
    solved, slope_rounding : float
        Share of the first gradient, and share of sum alpha_i, at which the gradient max |g_j| is small enough.
    rounding, nearly_rounding : float
        A gap that is rounding, once a step left the active set as it is; a gap at which z is the optimum where the last
        step did not halve it.
    same_active_set : float
        Evaluations with one active set after which a step that does not halve the gap is the last.
    """

    line_search: float
    solved: float = -1.0
    slope_rounding: float = -1.0
    rounding: float = -1.0
    nearly_rounding: float = -1.0
    same_active_set: float = np.inf


class SemismoothNewton:
    """A point z with its slacks, shares and gradient, and the Newton steps from it.

    Parameters
    ----------
    rows : CentredRows
    y : ndarray of shape (n,), entries -1.0 and 1.0
    costs : ndarray of shape (n,), positive
        c_i, in the unit of the rows.
    upper : float
        The largest share.
    interrupted : callable
        Whether to stop; asked within products and factors of large matrices.
    rules : Rules

    Attributes
    ----------
    near, sigma : ndarray of shape (n,), float
    z : ndarray of shape (size,)
    slack : ndarray of shape (n,)
        Updated by what steps add to slacks: dual variables become exact even where a slack is less than the rounding of
        a margin. Without an upper bound they are computed anew as soon as a step leaves the active set as it is.
    share : ndarray of shape (n,)
    active : ndarray of bool of shape (n,)
    gradient, made : ndarray of shape (size,)
        g, and v = sum alpha_i y_i b_i.
    solves : bool
        Whether the last direction solves H dz = -g.
    values : ndarray
        The numbers that `semismooth_steps` lists.
    """

    def __init__(
        self,
        rows: CentredRows,
        y: np.ndarray,
        costs: np.ndarray,
        upper: float,
        interrupted: Callable[[], bool],
        rules: Rules,
    ) -> None:
        n, size = y.size, rows.size
        self.rows, self.upper, self.interrupted, self.rules = rows, upper, interrupted, rules
        self.free, self.sigma = rows.problem.free, 1.0
        self.data, self.vectors, self.values = np.empty((7, n)), np.zeros((8, size)), np.zeros(13)
        self.data[Y], self.data[COSTS], self.data[NEAR], self.vectors[REGULAR] = y, costs, 0.0, rows.regular
        self.y, self.costs, self.near, self.slack, self.share = self.data[:SIGNED]
        self.z, self.regular, self.gradient, self.made = self.vectors[:DIRECTION]
        self._marks = np.zeros((2, n), bool)
        self.active = self._marks[0]
        self._begins = self._frozen = self.solves = False
        self._hessian, self._steps = ActiveHessian(rows, costs, interrupted), 1
        self._small = rows if isinstance(rows, SmallDenseRows) and size <= MAX_COMPILED else None
        if self._small is not None:
            self._places = np.empty((2, n), np.uint32)
            self._matrices, self._columns = np.zeros((2, size, size)), np.empty((size, min(n, TRANSPOSED)))
            self._steps = max(1, FLOPS_A_CALL // (n * size * size))
            if n * size * size > LARGE_PRODUCT:
                self._matrices[0], self._marks[1] = self._small.product_of_all(costs), True

    @property
    def gap(self) -> float:
        """The relative duality gap."""
        return float(self.values[GAP])

    @property
    def status(self) -> float:
        """One of GOES_ON, ENDED and FAILED."""
        return float(self.values[STATUS])

    def alpha(self) -> np.ndarray:
        """Return the dual variables in the problem's own units."""
        return self.costs * self.share / self.rows.unit**2

    def set_slack(self) -> None:
        """Compute slacks from z, without the rounding that steps have added up."""
        slacks(self.rows.scores(self.z), self.y, 0.0, self.slack)

    def go_to(self, z: np.ndarray) -> None:
        """Begin an iteration at z: compute slacks, shares, gradient and gap there, of dense rows in one pass."""
        self.z[:], self._begins, self._frozen = z, False, False
        if sp.issparse(self.rows.X):
            self.set_slack()
            self.evaluate()
        else:
            X, w, b = self.rows.stored(self.z)
            sums, places = np.empty((2, w.size)), np.empty(min(self.rows.step, self.y.size), np.uint32)
            balance = evaluate_rows(
                writable(X), w, b, self.sigma, self.upper, self.data, self.active, places, sums, self.values
            )
            self.made[:] = self.rows.centred(sums[0], np.asarray(balance))
            measure(self.sigma, self.upper, self.free, self.vectors, self.values)
        self.values[FIRST], self.values[UNCHANGED] = self.values[STEEPNESS], 0.0
        self.values[LAST_GAP] = np.inf
        set_status(self.rules, self.values)

    def inverse_hessian(self) -> np.ndarray | None:
        """Return H^-1 for the active set, or None where H has lost its digits."""
        solve = factor(self._hessian.regularised(self.active, self.sigma), self.interrupted)
        return None if solve is None else solve(np.eye(self.z.size))

    def begin(self, frozen: bool = False) -> None:
        """Let the next call of `advance` begin an iteration at z with these slacks.

        Where it is `frozen`, it first takes a step that keeps the active set and does not clip the shares of its rows.
        """
        self._begins, self._frozen = True, frozen

    def advance(self, steps: int, goal: float = -1.0) -> int:
        """Take steps until the gap is `goal`, until `rules` end the iteration, or as many as one call may take.

        Parameters
        ----------
        steps : int
            At most so many.
        goal : float
            A gap; -1 for none.

        Returns
        -------
        steps : int
            How many were taken.
        """
        begins, self._begins = self._begins, False
        if self._small is not None:
            return minimise(
                self._small.rows, self.sigma, self.upper, self.free, begins, self._frozen, min(steps, self._steps),
                goal, self.rules, self.data, self._marks, self._places, self.vectors, self.values, self._matrices,
                self._columns,
            )  # fmt: skip
        if begins:
            if self._frozen:
                self.evaluate(frozen=True)
                self.take_step()
            self.evaluate()
            self.values[FIRST] = self.values[STEEPNESS]
            set_status(self.rules, self.values)
        if not steps or self.gap <= goal or self.status != GOES_ON:
            return 0
        t = self.take_step()
        if not t > 0.0:
            self.values[STATUS] = FAILED
            return 0
        self.evaluate(t, refresh=self.upper == np.inf)
        set_status(self.rules, self.values)
        return 1

    def evaluate(self, t: float = 0.0, frozen: bool = False, refresh: bool = False) -> None:
        """Compute shares, gradient and gap from z and its slacks.

        Parameters
        ----------
        t : float
            The length of the Newton step that has led to z, in whose course v is updated; 0 for none.
        frozen : bool
            Whether to keep the active set and not to clip the shares of its rows.
        refresh : bool
            Whether to compute slacks anew if the active set is, for the first time, that before the step.
        """
        updates = t > 0.0 and self.gap > MIN_UPDATE_GAP and self.solves
        if updates:
            predict(self.sigma, self.data, self._marks)
        self._clip(frozen)
        if refresh and self.values[UNCHANGED] == 1.0:  # next to the end: the last digits count
            self.set_slack()
            self._clip(frozen)
            self.values[UNCHANGED] = min(self.values[UNCHANGED], 1.0)
            updates = False
        if not (updates and self._update_made(t)):
            self.made[:] = self.rows.combine(self.data[SIGNED])
        measure(self.sigma, self.upper, self.free, self.vectors, self.values)

    def _clip(self, frozen: bool) -> None:
        clip_shares(self.sigma, self.upper, frozen, self.data, self.active, self.values)

    def _update_made(self, t: float) -> bool:
        """Update v by the Newton step, and by the rows that are clipped otherwise; False where these are too many.

        As H dz = -g, a step t changes v by t (g + R dz) = -t sigma sum_A c_i b_i b_i'dz, while shares are linear.
        """
        places = np.empty(self.y.size, np.uint32)
        changed = places[: mispredicted(self.data, self._marks, places)]
        if changed.size > MAX_UPDATED * self.y.size:
            return False
        self.made += t * (self.gradient + self.regular * self.vectors[DIRECTION])
        if changed.size:
            self.made += self.rows.combine_some(
                self.data[SIGNED, changed] - self.data[CHANGE, changed], changed
            )
        return True

    def take_step(self) -> float:
        """Go to the minimum along the direction; return the length, 0 where it leads nowhere."""
        self.vectors[DIRECTION] = self.direction()
        self.data[CHANGE] = self.rows.scores(self.vectors[DIRECTION])
        return move(self.sigma, self.upper, self.rules.line_search, self.data, self.vectors)

    def direction(self) -> np.ndarray:
        """Return -H^-1 g; where H has lost its digits, -g divided by its diagonal."""
        hessian = self._hessian.regularised(self.active, self.sigma)
        if self.free and not self.active.any():
            hessian[-1, -1] += FREE_CURVATURE * self.sigma * float(self.costs.sum())
        solve = factor(hessian, self.interrupted)
        self.solves = solve is not None and bool(self.active.any())
        return -self.gradient / np.maximum(np.diag(hessian), TINY) if solve is None else -solve(self.gradient)


class ActiveHessian:
    """M = sum_{i in A} c_i b_i b_i' over the active rows A, updated as rows enter and leave the active set.

    Parameters
    ----------
    rows : CentredRows
    costs : ndarray of shape (n,)
    interrupted : callable
        Whether to stop; asked between chunks of rows.
    """

    def __init__(self, rows: CentredRows, costs: np.ndarray, interrupted: Callable[[], bool]) -> None:
        self.rows, self.costs, self.interrupted = rows, costs, interrupted
        self._active: np.ndarray | None = None
        self._matrix = np.zeros((rows.size, rows.size))
        self._largest = np.zeros(rows.size)  # of each entry of the diagonal since M was made anew

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
        """Add the rows that enter to M and subtract those that leave, or compute M anew."""
        rows, before = active.nonzero()[0], self._active
        if before is not None and np.array_equal(active, before):
            return
        if before is not None and rows.size * self.rows.size**2 > SMALL_PRODUCT:
            changed = active != before
            entering, leaving = (changed & active).nonzero()[0], (changed & before).nonzero()[0]
            if entering.size + leaving.size <= MAX_CHANGED * rows.size:
                self._matrix += self._sum(entering)
                np.maximum(self._largest, self._matrix.diagonal(), out=self._largest)
                self._matrix -= self._sum(leaving)
                if (self._matrix.diagonal() >= MIN_DIAGONAL * self._largest).all():
                    return
        self._matrix = self._sum(rows)
        self._largest = self._matrix.diagonal().copy()

    def _sum(self, rows: np.ndarray) -> np.ndarray:
        """Return the sum of c_i b_i b_i' over these rows."""
        return self.rows.all_products(self.costs, rows, self.interrupted)
