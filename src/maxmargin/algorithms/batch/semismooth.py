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

import numpy as np

from ...engine.jit import compiled
from .centred_rows import CentredRows
from .cholesky import factor

# Share of the active rows that may have changed for an update of the Hessian: an update by k rows costs as much as k
# rows of a new one and loses digits, and two small products take longer than one.
MAX_CHANGED = 0.5
# Active rows x columns^2 up to which M is always computed anew: one product takes less than two updates.
SMALL_PRODUCT = 100_000
# Share of the largest value that an entry of the diagonal has had, below which subtraction has cancelled three digits.
MIN_DIAGONAL = 1e-3
# What the curvature of a free intercept is, as a share of sigma sum c_i, where no active row gives it any.
FREE_CURVATURE = 1e-2
MAX_LINE_STEPS = 50  # of a line search: 2 to 6 are usual, and bisection alone ends within 50


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

    Attributes
    ----------
    z : ndarray of shape (size,)
    slack : ndarray of shape (n,)
        Updated by what steps add to slacks: dual variables become exact even where a slack is less than the rounding of
        a margin.
    share : ndarray of shape (n,)
    active : ndarray of bool of shape (n,)
    unchanged : int
        Steps since the active set changed.
    gradient, made : ndarray of shape (size,)
        g, and v = sum alpha_i y_i b_i.
    steepness, gradient2, norm2, made2 : float
        max |g_j|, and the squared norms g'Rg, z'Rz and v'Rv.
    """

    def __init__(
        self,
        rows: CentredRows,
        y: np.ndarray,
        costs: np.ndarray,
        upper: float,
        interrupted: Callable[[], bool],
    ) -> None:
        self.rows, self.y, self.costs, self.upper, self.interrupted = rows, y, costs, upper, interrupted
        self.regular, self.free = rows.regular, rows.problem.free
        self.near, self.sigma = np.zeros(y.size), 1.0
        self.active, self.unchanged = np.zeros(y.size, bool), 0
        self._hessian = ActiveHessian(rows, costs, interrupted)

    def alpha(self) -> np.ndarray:
        """Return the dual variables in the problem's own units."""
        return self.costs * self.share / self.rows.unit**2

    def set_slack(self) -> None:
        """Compute slacks from z, without the rounding that steps have added up."""
        self.slack = 1.0 - self.y * self.rows.scores(self.z)

    def set_shares(self, frozen: bool = False) -> None:
        """Compute shares and the active set from the slacks.

        Where it is `frozen`, the active set is kept, and the shares of its rows are not clipped.
        """
        (self.share, self._signed), active = np.empty((2, self.y.size)), np.empty(self.y.size, bool)
        changed = clip_shares(
            self.near, self.sigma, self.upper, self.slack, self.costs, self.y, frozen, self.active,
            self.share, self._signed, active,
        )  # fmt: skip
        if not frozen:
            self.unchanged = 0 if changed else self.unchanged + 1
            self.active = active if changed else self.active

    def set_gradient(self) -> None:
        """Compute the gradient from the shares: one pass over the rows."""
        self.made = self.rows.combine(self._signed)
        self.gradient = np.empty(self.z.size)
        self.steepness, self.gradient2, self.norm2, self.made2 = subtract(
            self.regular, self.z, self.made, self.gradient
        )

    def direction(self) -> np.ndarray | None:
        """Return -H^-1 g; None where H is numerically singular."""
        solve = factor(self.hessian(), self.interrupted)
        return None if solve is None else -solve(self.gradient)

    def hessian(self) -> np.ndarray:
        """Return H of the active set."""
        hessian = self._hessian.regularised(self.active, self.sigma)
        if self.free and not self.active.any():
            hessian[-1, -1] += FREE_CURVATURE * self.sigma * float(self.costs.sum())
        return hessian

    def move(self, tolerance: float) -> float:
        """Move z and the slacks along the Newton direction to the minimum of f; return the length, 0 where none falls.

        Parameters
        ----------
        tolerance : float
            Share of the slope at z at which the line search ends.
        """
        dz = self.direction()
        slope = 0.0 if dz is None else float(self.gradient @ dz)
        if dz is None or not slope < 0.0:
            return 0.0
        change, regular = self.y * self.rows.scores(dz), self.regular * dz
        t = line_minimum(
            self.near, self.sigma, self.upper, self.slack, change, self.costs, float(regular @ self.z),
            float(regular @ dz), -tolerance * slope,
        )  # fmt: skip
        self.z = self.z + t * dz
        change *= t
        self.slack = self.slack - change
        return t


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
            Kept, and not to be changed by the caller.
        sigma : float, default=1.0
        """
        if active is not self._active:
            self._update(active)
            self._active = active
        return self.rows.regularised(sigma * self._matrix)

    def _update(self, active: np.ndarray) -> None:
        """Add the rows that enter to M and subtract those that leave, or compute M anew."""
        rows, before = active.nonzero()[0], self._active
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


@compiled()
def clip_shares(near, sigma, upper, slack, costs, y, frozen, before, share, signed, active):
    """Set shares, y alpha and which rows are active; return whether the active set is another than `before`."""
    changed = False
    for k in range(slack.size):
        unclipped = near[k] + sigma * slack[k]
        active[k] = unclipped > 0.0 and unclipped < upper
        share[k] = unclipped if frozen and before[k] else min(max(unclipped, 0.0), upper)
        signed[k] = y[k] * costs[k] * share[k]
        changed |= active[k] != before[k]
    return changed


@compiled()
def subtract(regular, z, made, gradient):
    """Set gradient = R z - made; return its largest entry, and g'Rg, z'Rz and made'R made."""
    largest = gradient2 = norm2 = made2 = 0.0
    for j in range(z.size):
        g = regular[j] * z[j] - made[j]
        gradient[j] = g
        if largest == largest and not abs(g) <= largest:  # NaN stays
            largest = abs(g)
        gradient2 += regular[j] * g * g
        norm2 += regular[j] * z[j] * z[j]
        made2 += regular[j] * made[j] * made[j]
    return largest, gradient2, norm2, made2


@compiled(fastmath={"reassoc", "contract"})
def line_minimum(near, sigma, upper, slack, change, costs, slope, curvature, tolerance):
    """Return the t > 0 that minimises slope t + curvature t^2 / 2 + sum c_i phi_i(s_i - t change_i), from t = 1.

    Newton's method on the derivative, which is piecewise linear and increases, with a bracket: steps that leave it
    are replaced by bisection. A derivative of at most `tolerance` is followed by one more step.
    """
    low, high = 0.0, np.inf
    t = 1.0
    for _ in range(MAX_LINE_STEPS):
        first, second = slope + curvature * t, 0.0
        for k in range(slack.size):
            share = near[k] + sigma * (slack[k] - t * change[k])
            pull = costs[k] * change[k]
            first -= pull * min(max(share, 0.0), upper)
            second += pull * change[k] if share > 0.0 and share < upper else 0.0
        second = curvature + sigma * second
        if first < 0.0:
            low = t
        else:
            high = t
        new = t - first / second if second > 0.0 else np.inf
        inside = low < new and new < high
        if abs(first) <= tolerance:
            return new if inside else t
        if not inside:
            new = 0.5 * (low + high) if high < np.inf else 2.0 * t
        if not (abs(new) < np.inf and new != t):
            return t
        t = new
    return t
