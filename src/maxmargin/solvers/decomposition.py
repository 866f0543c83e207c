"""Decomposition of kernel problems: one working set after another, each solved by sequential minimal optimisation.

The dual is solved in the form ::

    minimise 1/2 a'Qa - sum a,    0 <= a <= cap,    and y'a = const where there is a free intercept

with Q_ij = y_i y_j k(x_i, x_j) and the gradient g = Q a - 1. The squared hinge adds delta_i^2 to the diagonal of the
kernel matrix, an augmented intercept rho^2 to each of its entries.

The rows that violate the optimality conditions most form the working set. Sequential minimal optimisation solves its
subproblem on a small submatrix of the kernel matrix (32 MB at most), by steps in pairs of dual variables that keep y'a.
Without a free intercept y'a is not fixed: an auxiliary row of zeros without bounds then belongs to every subproblem,
and a pair with it is a step in one dual variable. The gradient of all rows is then updated with whole kernel rows. Rows
between their bounds stay in the next working set.

References
----------
T. Joachims, "Making large-scale SVM learning practical", 1998; Z. Wen et al., "ThunderSVM", JMLR 19, 2018;
R.-E. Fan, P.-H. Chen, C.-J. Lin, "Working set selection using second order information for training support vector
machines", JMLR 6, 2005 (the steps within a working set; rising and falling rows are its I_up and I_low);
S. Fine, K. Scheinberg, "Efficient SVM training using low-rank kernel representations", JMLR 2, 2001 (the factor).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from ..engine.jit import compiled
from ..kernels.functions import BLOCK, Kernel
from ..numerics.sums import EPS

if TYPE_CHECKING:
    from ..problem.problem import Problem


class KernelRows:
    """Cache of the rows k(x_i, .) of the kernel matrix of one data matrix.

    The kernel does not depend on the labels, so one cache serves all classes of a problem.

    Parameters
    ----------
    kernel : Kernel
    X : ndarray or CSR matrix of shape (n, d)
        Float32 or float64; kernel rows and the diagonal have the same precision.
    megabytes : float
        Budget of the cached rows. Two blocks are cached even where they exceed it.

    Attributes
    ----------
    n : int
        Rows of the data matrix.
    diagonal : ndarray of shape (n,)
    capacity : int
        Rows that can be cached at the same time.
    rows : ndarray of shape (capacity, n)
        The cached rows, in the slots that `slots` returns.
    computed : int
        Rows computed so far.
    """

    def __init__(self, kernel: Kernel, X: Any, megabytes: float) -> None:
        self.kernel, self.X, self._megabytes = kernel, kernel.prepared(X), megabytes
        self.n = X.shape[0]
        self.diagonal = kernel.diagonal(self.X)
        row_bytes = self.n * self.diagonal.dtype.itemsize
        self.capacity = int(min(self.n, max(2 * BLOCK, megabytes * 2**20 // max(row_bytes, 1))))
        # the system assigns the memory as rows are written, not before
        self.rows = np.empty((self.capacity, self.n), self.diagonal.dtype)
        self.computed = 0
        self._slot_of_row = np.full(self.n, -1, np.intp)  # -1: not cached
        self._row_in_slot = np.full(self.capacity, -1, np.intp)  # -1: empty
        self._last_request = np.zeros(self.capacity, np.intp)  # of the row in each slot
        self._request = 0  # number of the current request

    def slots(self, wanted: np.ndarray) -> np.ndarray:
        """Compute the rows of the kernel that are not cached; return the slots of all wanted rows in `rows`.

        They are stored in unused slots or, if they do not suffice, over least recently used rows. No row is replaced
        while memory is unused: the first write to a page of memory takes longer than the next ones, but only once; a
        row that is replaced may have to be computed again and again.

        Parameters
        ----------
        wanted : ndarray of int
            Distinct row numbers, at most `capacity`. All of these rows stay cached until the next call.
        """
        self._request += 1
        found = self._slot_of_row[wanted]
        self._last_request[found[found >= 0]] = self._request
        missing = wanted[found < 0]
        for first in range(0, missing.size, BLOCK):
            some = missing[first : first + BLOCK]
            if self.computed + some.size <= self.capacity:
                slots = np.arange(self.computed, self.computed + some.size)
            else:
                # unused slots have the oldest request (0), so none of the rows of this request is replaced
                slots = np.argsort(self._last_request, kind="stable")[: some.size]
                replaced = self._row_in_slot[slots]
                self._slot_of_row[replaced[replaced >= 0]] = self._row_in_slot[slots] = -1
            for columns, tile in self.kernel.tiles(self.X[some], self.X):
                self.rows[slots, columns] = tile
            self._slot_of_row[some], self._row_in_slot[slots] = slots, some
            self._last_request[slots] = self._request
            self.computed += some.size
        found = self._slot_of_row[wanted]
        # NumPy would take the slot -1 as the last slot, without an error
        assert found.min(initial=0) >= 0, "all wanted rows are cached at the same time"
        return found

    def submatrix(self, wanted: np.ndarray) -> np.ndarray:
        """Return k(x_i, x_j) for all pairs i, j of wanted rows, in float64.

        Entries of cached rows are copied. Of rows that are not cached only these entries are computed.
        """
        found = self._slot_of_row[wanted]
        cached, missing = np.flatnonzero(found >= 0), np.flatnonzero(found < 0)
        self._request += 1
        self._last_request[found[cached]] = self._request
        out = np.empty((wanted.size, wanted.size))
        for k, slot in zip(cached, found[cached], strict=True):  # half of the time of indexing with `np.ix_`
            out[k] = self.rows[slot].take(wanted)
        if missing.size:
            part = self.kernel.part(self.X, wanted[missing])
            # by symmetry, whole rows at a time: a quarter of the time of indexing with `np.ix_`; the columns of missing
            # rows, which `out` does not hold yet, are set next
            rows = out.T[missing]
            rows[:, missing] = self.kernel.block(part, part)
            out[missing] = rows
        return out

    def product(self, c: np.ndarray) -> np.ndarray:
        """Return sum_i c_i k(x_i, x_j) for every row j, c of shape (n,) or (m, n).

        Rows that are not cached are computed where c_i is not 0, and not added to the cache.
        """
        cached = self._slot_of_row >= 0
        out = self.kernel.product(self.X, np.where(cached, 0.0, c))
        for c_i, out_i in zip(np.atleast_2d(c), np.atleast_2d(out), strict=True):
            used = np.flatnonzero(cached & (c_i != 0.0))
            for first in range(0, used.size, BLOCK):  # sums of partial sums have a smaller rounding error
                some, part = used[first : first + BLOCK], np.zeros(self.n)
                add_rows(self.rows, self._slot_of_row[some], c_i[some], part)
                out_i += part
        return out

    @cached_property
    def factor(self) -> np.ndarray | None:
        """Z of shape (n, r) with K = Z Z' up to rounding; None where r is above 128, or n / 4.

        Cholesky's method on blocks of 16 pivots P, the rows with the largest diagonal entries of S = K - Z Z'. With the
        eigenvalues and vectors S_PP = V D V' each adds the columns S_P V D^(-1/2) to Z.
        """
        rest, Z = self.diagonal.astype(float), np.zeros((self.n, 0))
        rounding = self.n * EPS * float(rest.max(initial=0.0))
        for _ in range(max(min(self.n // 4, 128), 32) // 16 + 1):
            pivots = np.argsort(rest)[-16:]
            pivots = pivots[rest[pivots] > rounding]
            if not pivots.size:
                return Z
            S = self.kernel.block(self.X[pivots], self.X).T - Z @ Z[pivots].T
            values, vectors = np.linalg.eigh(S[pivots])
            kept = values > rounding
            new = S @ (vectors[:, kept] / np.sqrt(values[kept]))
            Z, rest = np.hstack([Z, new]), rest - (new * new).sum(axis=1)
        return None


@compiled()
def add_rows(rows, slots, c, out):
    """Add sum_k c_k rows[slots[k]] to `out`, for every column in the order of k."""
    for first in range(0, out.size, 4096):  # 32 kB of sums stay in the first-level cache
        part = out[first : first + 4096]
        for k in range(slots.size):
            row = rows[slots[k]][first : first + 4096]
            for j in range(part.size):
                part[j] += c[k] * row[j]


# Rows of a working set: a larger one needs fewer updates of the whole gradient, but more steps, on a larger submatrix.
SET_SIZE = 2048
# Rows of each class, about, in the first working set: at a = 0 all entries of the gradient are equal. With more, the
# first set takes longer; with fewer, the second set starts from a rougher gradient.
FIRST_ROWS = 64
FEW_ROWS = 2 * FIRST_ROWS  # these are one working set; of a soft margin it is solved to the optimum


class DualPoint(NamedTuple):
    """Dual variables, and the scores sum_j alpha_j y_j k(x_j, x_i) of all rows (rho^2 and delta_i^2 left out)."""

    alpha: np.ndarray
    scores: np.ndarray


def decomposed_points(
    problem: Problem,
    rows: KernelRows,
    y: np.ndarray,
    weights: np.ndarray,
    interrupted: Callable[[], bool] = lambda: False,
) -> Iterator[DualPoint]:
    """Yield the iterates of a kernel problem, one after every working set.

    Parameters
    ----------
    problem : Problem
        p = 2. With a hard margin, the dual variables grow to those of the canonical form, and without bound where
        there is no separator.
    rows : KernelRows
    y : ndarray of shape (n,), entries -1.0 and 1.0
        Both classes occur where the intercept is free.
    weights : ndarray of shape (n,)
        Sample weights. Dual variables and scores of rows of weight 0 are 0.
    interrupted : callable
        Whether to stop; called before every working set.

    Yields
    ------
    DualPoint
        One point after every working set. Ends when no pair of rows violates the optimality conditions beyond rounding.
    """
    caps, delta2, constant = problem.caps(weights), problem.delta2(weights), problem.rho**2
    alpha, scores = np.zeros((2, rows.n))
    chosen, size = np.zeros(0, np.intp), min(SET_SIZE, rows.capacity)
    while not interrupted():
        gradient = y * scores + delta2 * alpha + constant * y * float(alpha @ y) - 1.0
        chosen, violation = working_set(problem, y, caps, alpha, gradient, chosen, size)
        if chosen.size == 0 or violation <= 1e-13 * float(np.abs(gradient).max()):  # rounding of the gradient
            return
        # a more exact solution of the subproblem is changed by the next sets
        goal, steps = 0.01 * violation, 50 * chosen.size
        if rows.n <= FEW_ROWS and not problem.hard:
            chosen, goal, steps = np.flatnonzero(weights > 0.0), 1e-10, 20_000
        elif chosen.size > FEW_ROWS and not alpha.any():
            classes = np.flatnonzero(y > 0.0), np.flatnonzero(y < 0.0)  # of each, evenly spaced rows
            chosen = np.sort(np.concatenate([some[:: max(1, some.size // FIRST_ROWS)] for some in classes]))
        small = rows.submatrix(chosen) + constant
        small.flat[:: chosen.size + 1] += delta2[chosen]
        vectors = np.array([y[chosen], caps[chosen], alpha[chosen], gradient[chosen]])
        if not problem.free:
            small = np.pad(small, (0, 1))
            # the first value of the auxiliary dual variable: no step reaches its bounds, which are 0 and inf
            vectors = np.column_stack([vectors, [1.0, np.inf, 1e300, 0.0]])
        # a subproblem is not interrupted; with fewer steps more sets are needed
        if solve_by_pairs(small, *vectors, goal, steps, np.empty((6, len(small)))) == 0:
            return
        part = vectors[2, : chosen.size]
        del small  # 32 MB, not needed while the point is evaluated
        moved = part != alpha[chosen]  # whole kernel rows are needed only for these
        change = ((part - alpha[chosen]) * y[chosen])[moved]
        alpha[chosen] = part
        add_rows(rows.rows, rows.slots(chosen[moved]), change, scores)
        if problem.hard:
            multiple = _hard_margin_multiple(y, alpha, scores, constant)
            alpha, scores = multiple * alpha, multiple * scores
        yield DualPoint(alpha.copy(), scores.copy())


def _hard_margin_multiple(y: np.ndarray, alpha: np.ndarray, scores: np.ndarray, constant: float) -> float:
    """Return the t that maximises the dual objective at t alpha, without caps; 1 where t is at most 2.

    Where the dual variables are far too short, single steps lengthen them slowly. The maximum of
    t sum alpha - t^2 square / 2 is at t = sum alpha / square. Where there is no separator, the square may cancel to
    0, and the objective grows with t without bound; t is at most 1e6, so that numbers stay finite for many sets.
    """
    total, balance = float(alpha.sum()), float(alpha @ y)
    square = float((alpha * y) @ scores) + constant * balance * balance
    best = total / square if square > 1e-6 * total else 1e6
    return best if best > 2.0 else 1.0  # a smaller multiple gains less than the next working set does


def working_set(
    problem: Problem,
    y: np.ndarray,
    caps: np.ndarray,
    alpha: np.ndarray,
    gradient: np.ndarray,
    last_set: np.ndarray,
    size: int,
) -> tuple[np.ndarray, float]:
    """Select the next working set.

    Rows that violate the optimality conditions most enter first. Rows of the last working set that are between their
    bounds fill the remaining places.

    Parameters
    ----------
    problem : Problem
    y, caps, alpha, gradient : ndarray of shape (n,)
    last_set : ndarray of int
        The last working set; without any row in it, half of the new set may be rising rows and half falling ones.
    size : int
        Largest number of rows.

    Returns
    -------
    chosen : ndarray of int
        The rows of the set, sorted.
    violation : float
        The largest violation over all pairs of rows, the auxiliary row included: the largest -y g of a row whose
        y alpha may increase, minus the smallest -y g of a row whose y alpha may decrease.
    """
    ascent, high, low = -y * gradient, alpha < caps, alpha > 0.0
    rising = np.where(np.where(y > 0.0, high, low), ascent, -np.inf)  # rows whose y alpha may increase
    falling = np.where(np.where(y > 0.0, low, high), -ascent, -np.inf)  # rows whose y alpha may decrease
    inside = high & low
    free = int(np.count_nonzero(inside))
    entering = size
    if last_set.size:  # with more, rows between their bounds would have to leave the set
        entering = max(2, min(size // 4, max(128, free // 2)))
    # Rising rows are selected above the intercept, which -y g equals at the optimum for all rows between their bounds,
    # and falling rows below it. It is 0, as -y g of the auxiliary row is, or else estimated.
    auxiliary = -np.inf if problem.free else 0.0
    top, bottom = float(rising.max(initial=auxiliary)), -float(falling.max(initial=auxiliary))
    intercept = 0.0
    if problem.free:
        intercept = float(ascent[inside].mean()) if free else 0.5 * (top + bottom)
        intercept = min(max(intercept, bottom), top)
    chosen = np.zeros(y.size, dtype=bool)
    for values, least in ((rising, intercept), (falling, -intercept)):
        places = np.flatnonzero(values >= least)
        chosen[places[np.argsort(-values[places], kind="stable")[: entering // 2]]] = (
            True  # of equal ones the first
        )
    staying = last_set[inside[last_set] & ~chosen[last_set]]
    chosen[staying[: max(size - np.count_nonzero(chosen), 0)]] = True
    return np.flatnonzero(chosen), top - bottom


@compiled()
def set_movable(k, y, cap, alpha, rising, falling):
    """Set rising[k] to 0 where y alpha of row k may increase, else -inf; falling[k] likewise for a decrease."""
    high, low = alpha[k] < cap[k], alpha[k] > 0.0
    up, down = (high, low) if y[k] > 0.0 else (low, high)
    rising[k] = 0.0 if up else -np.inf
    falling[k] = 0.0 if down else -np.inf


@compiled()
def solve_by_pairs(small, y, cap, alpha, gradient, goal, max_steps, workspace):
    """Solve the subproblem with sum y alpha fixed, by steps in two dual variables (sequential minimal optimisation).

    Of each pair, i has the largest -y g of the rows that may rise, and j the largest gain b^2 / (2 a) of the rows that
    may fall, with b = -y_i g_i + y_j g_j and a = K_ii + K_jj - 2 K_ij (Fan, Chen, Lin, second-order selection).

    Parameters
    ----------
    small : ndarray of shape (m, m)
        The kernel matrix of the working set, with the constants of the problem.
    y, cap : ndarray of shape (m,)
    alpha, gradient : ndarray of shape (m,)
        Overwritten with those of the solution.
    goal : float
        Ends when no pair violates the optimality conditions by more.
    max_steps : int
        The limit on the number of steps.
    workspace : ndarray of shape (6, m)

    Returns
    -------
    steps : int
        The number of steps taken.
    """
    n = y.size
    # indexed, not unpacked: the compiler then knows that the vectors are contiguous
    ascent, rising, falling, diagonal = workspace[0], workspace[1], workspace[2], workspace[3]
    value, gains = workspace[4], workspace[5]
    longest = 0.0
    for k in range(n):
        ascent[k] = -y[k] * gradient[k]
        diagonal[k] = small[k, k]
        longest = max(longest, diagonal[k])
        set_movable(k, y, cap, alpha, rising, falling)
        value[k] = ascent[k] + rising[k]
    # A positive lower bound of curvatures: steps are finite without curvature and without caps. The difference
    # K_ii + K_jj - 2 K_ij is rounding below some tens of roundings of the largest entry of the diagonal.
    least = 1e-14 * (longest if longest > 0.0 else 1.0)
    step = 0
    while step < max_steps:
        i = np.argmax(value)  # the largest -y g of the rows that may rise
        if value[i] == -np.inf:
            break
        best, row_i = value[i], small[i]
        curvature = diagonal[i]
        for k in range(n):  # gain of row i with each row k that may fall
            b = falling[k] - ascent[k] + best
            b = b if b > 0.0 else 0.0
            a = curvature + diagonal[k] - 2.0 * row_i[k]
            a = a if a > least else least
            gains[k] = b * b / a
        j = np.argmax(gains)
        if not gains[j] > 0.0:
            break
        if best - ascent[j] <= goal:  # otherwise the largest violation exceeds the goal, too
            violation = 0.0
            for k in range(n):
                violation = max(violation, falling[k] - ascent[k] + best)
            if violation <= goal:
                break
        a = max(curvature + diagonal[j] - 2.0 * row_i[j], least)
        t = (best - ascent[j]) / a
        # y_i alpha_i increases and y_j alpha_j decreases by t, or less where one of them reaches its bound; the
        # variable that reaches it is set to the bound exactly
        room_i = cap[i] - alpha[i] if y[i] > 0.0 else alpha[i]
        room_j = alpha[j] if y[j] > 0.0 else cap[j] - alpha[j]
        if t >= min(room_i, room_j):
            t = min(room_i, room_j)
            if room_i <= room_j:
                alpha[i] = cap[i] if y[i] > 0.0 else 0.0
                alpha[j] = min(max(alpha[j] - y[j] * t, 0.0), cap[j])
            else:
                alpha[j] = 0.0 if y[j] > 0.0 else cap[j]
                alpha[i] = min(max(alpha[i] + y[i] * t, 0.0), cap[i])
        else:
            alpha[i] += y[i] * t
            alpha[j] -= y[j] * t
        set_movable(i, y, cap, alpha, rising, falling)
        set_movable(j, y, cap, alpha, rising, falling)
        row_j = small[j]
        for k in range(n):
            ascent[k] -= t * (row_i[k] - row_j[k])
            value[k] = ascent[k] + rising[k]
        step += 1
    for k in range(n):
        gradient[k] = -y[k] * ascent[k]
    return step
