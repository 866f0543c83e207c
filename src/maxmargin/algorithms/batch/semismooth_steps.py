"""Compiled parts of the semismooth Newton iteration, and the whole iteration for small dense rows.

Notation is that of `semismooth`. Vectors are rows of a few arrays, as every argument adds to the time of a call:
`data` of shape (6, n) holds the vectors Y to CHANGE, with an entry for each row; `vectors` of shape (8, size) holds the
vectors Z to INVERSE, with an entry for each column; `values` of shape (13,) holds the scalars MAX_GRADIENT to STATUS.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ...engine.jit import compiled
from ...engine.row_products import add_combined, combine, scores, scores_in_cache
from ...engine.small_cholesky import add_row_products, factor, solve_factored

# y_i, c_i, prox_i; at the current z: s_i, y_i alpha_i; and the last decrease of s_i (see `move`). Shares are
# alpha_i / c_i and not stored, as every array of the size of the data adds to the time of a fit.
Y, COSTS, PROX, SLACK, SIGNED, CHANGE = range(6)
# z, the diagonal of R, g, v, the Newton direction dz; the largest values of the diagonal of M since it was last
# computed from all rows; two vectors of the Cholesky factor (see `small_cholesky.factor`)
Z, REGULAR, GRADIENT, DUAL_SUM, DIRECTION, LARGEST, ROOT, INVERSE = range(8)
# max |g_j|; the gap, and that one evaluation before; sum alpha_i, sum c_i share_i^2, sum c_i max(0, s_i); g'Rg, z'Rz
# and v'Rv; the number of active rows; evaluations since the active set changed; max |g_j| at the first iterate of the
# iteration; and GOES_ON, ENDED, FAILED, or, after the last proximal problem, CONVERGED
MAX_GRADIENT, GAP, LAST_GAP, ALPHA_SUM, SQUARES, HINGE, GRADIENT2, NORM2, DUAL_NORM2 = range(9)
N_ACTIVE, UNCHANGED, FIRST_GRADIENT, STATUS = range(9, 13)
GOES_ON, ENDED, FAILED, CONVERGED = 0.0, 1.0, 2.0, 3.0
# Of an iteration over proximal problems, in an array `progress`: sigma, and its limit; its growth if the active set is
# known; the change of the slacks by the last problem; the least gap, and problems since; steps of the current problem
SIGMA, MAX_SIGMA, KNOWN_GROWTH, SLACK_CHANGE, LEAST_GAP, IDLE, TAKEN = range(7)
# The fields of `semismooth.Rules`. Compiled code reads them from an array `limits`: a tuple would make calls slower.
LINE_SEARCH_SLOPE, GRADIENT_SHARE, GRADIENT_ROUNDING, ROUNDING_GAP, STALLED_GAP, MAX_UNCHANGED = range(6)

# Curvature of f in a free intercept, as a share of sigma sum c_i, that replaces 0 where no row is active. With a
# smaller one the direction is longer and the line search shortens it. A round value; not tuned.
FREE_CURVATURE = 1e-2
# Largest number of rows that enter or leave, as a share of the active rows, for which M is updated: an update by k rows
# costs as much as k rows of a new matrix and adds rounding errors. A round value; not tuned.
MAX_CHANGED = 0.5
# Active rows x columns^2 up to which M is always computed from all active rows: one product takes less time than two.
# Chosen on the data sets of benchmarks.before_after.
SMALL_PRODUCT = 100_000
# Share of the largest value of a diagonal entry of M below which subtractions have cancelled three digits of it: M is
# then computed from all active rows. A larger share computes M more often. A round value; not tuned.
MIN_DIAGONAL = 1e-3
MAX_LINE_STEPS = 50  # steps of a line search: 2 to 6 are usual, and bisection alone needs about 50
TINY = 1e-300  # smallest divisor: avoids a division by 0 and is below every quantity that matters


class Arrays(NamedTuple):
    """The arrays of an iteration on small dense rows, as one argument of compiled code.

    Attributes
    ----------
    rows : ndarray of shape (n, size)
        The vectors b_i.
    data, vectors, values, limits : ndarray of shapes (6, n), (8, size), (13,) and (6,)
        Vectors and scalars at the indices Y to CHANGE, Z to INVERSE, MAX_GRADIENT to STATUS, and LINE_SEARCH_SLOPE to
        MAX_UNCHANGED.
    marks : ndarray of bool of shape (2, n)
        The active set, and the rows in M.
    matrices : ndarray of shape (2, size, size)
        M on and below its diagonal, and the factor of R + sigma M.
    indices, columns : ndarray of uint32 of shape (2, n), and ndarray of shape (size, m)
        Workspace for indices of rows, and for m transposed rows.
    """

    rows: np.ndarray
    data: np.ndarray
    vectors: np.ndarray
    values: np.ndarray
    limits: np.ndarray
    marks: np.ndarray
    indices: np.ndarray
    matrices: np.ndarray
    columns: np.ndarray


@compiled(fastmath={"reassoc", "contract"})
def clip_part(sigma, upper, frozen, y, costs, prox, slack, signed, active):
    """Compute y alpha and the active set of a block of rows from their slacks; overwrite the last two arrays.

    share_i = prox_i + sigma s_i, clipped to [0, upper]. Where `frozen` is true, the active set is kept and the shares
    of its rows are not clipped.

    Returns
    -------
    total, balance, square, loss : float
        sum alpha_i, sum y_i alpha_i, sum c_i share_i^2 and sum c_i max(0, s_i).
    count, changed : int
        Number of active rows, and of rows that entered or left the active set.
    """
    total = balance = square = loss = 0.0
    changed = count = 0
    for k in range(y.size):
        unclipped = prox[k] + sigma * slack[k]
        inside = unclipped > 0.0 and unclipped < upper
        share = min(max(unclipped, 0.0), upper)
        if frozen:
            inside = active[k]
            share = unclipped if inside else share
        changed += np.int64(inside != active[k])
        count += np.int64(inside)
        active[k] = inside
        alpha = costs[k] * share
        signed[k] = y[k] * alpha
        total += alpha
        balance += y[k] * alpha
        square += alpha * share
        loss += costs[k] * max(slack[k], 0.0)
    return total, balance, square, loss, count, changed


@compiled()
def clip_shares(sigma, upper, frozen, data, active, values):
    """Compute y alpha and the active set of all rows from the slacks, and their sums; see `clip_part`."""
    total, _, square, loss, count, changed = clip_part(
        sigma, upper, frozen, data[Y], data[COSTS], data[PROX], data[SLACK], data[SIGNED], active
    )
    values[ALPHA_SUM], values[SQUARES], values[HINGE], values[N_ACTIVE] = total, square, loss, count
    if not frozen:
        values[UNCHANGED] = 0.0 if changed > 0 else values[UNCHANGED] + 1.0


@compiled()
def evaluate_rows(X, w, b, sigma, upper, data, active, indices, sums, values):
    """Compute slacks at (w, b), y alpha and sums over rows in one pass; return sum alpha_i y_i.

    Rows are read in blocks that stay in the cache, of the size of the workspace `indices`. sums[0] is set to
    sum alpha_i y_i x_i; sums[1] and `indices` are workspace.
    """
    y, costs, prox = data[Y], data[COSTS], data[PROX]
    slack, signed = data[SLACK], data[SIGNED]
    sums[0] = 0.0
    values[ALPHA_SUM] = values[SQUARES] = values[HINGE] = values[N_ACTIVE] = balance = 0.0
    for first in range(0, y.size, indices.size):
        last = min(first + indices.size, y.size)
        s, c = slack[first:last], signed[first:last]
        scores(X[first:last], w, s)
        slacks(s, y[first:last], b, s)
        total, uneven, square, loss, count, _ = clip_part(
            sigma, upper, False, y[first:last], costs[first:last], prox[first:last], s, c, active[first:last]
        )
        values[ALPHA_SUM] += total
        values[SQUARES] += square
        values[HINGE] += loss
        values[N_ACTIVE] += count
        balance += uneven
        add_combined(X[first:last], c, indices, sums[1], sums[0])
    return balance


@compiled()
def set_gradient_and_gap(sigma, upper, free, vectors, values):
    """Compute the gradient g = Rz - v, and the gap relative to the dual objective.

    Without an upper bound of the shares (squared hinge), primal - dual at alpha is g'Rg / 2, computed as such, without
    cancellation. It is divided by the dual objective of the best multiple of alpha, max_t t total - t^2 curvature / 2 =
    total^2 / (2 curvature), with total = sum alpha_i and curvature = v'Rv + sum c_i share_i^2 / sigma. With an upper
    bound (hinge), dual = total - v'Rv / 2 and primal = z'Rz / 2 + sum c_i max(0, s_i).
    """
    z, regular, gradient, v = vectors[Z], vectors[REGULAR], vectors[GRADIENT], vectors[DUAL_SUM]
    largest = gradient2 = norm2 = dual_norm2 = 0.0
    for j in range(z.size):
        g = regular[j] * z[j] - v[j]
        gradient[j] = g
        if largest == largest and not abs(g) <= largest:  # once `largest` is NaN it stays NaN
            largest = abs(g)
        gradient2 += regular[j] * g * g
        norm2 += regular[j] * z[j] * z[j]
        dual_norm2 += regular[j] * v[j] * v[j]
    values[MAX_GRADIENT], values[GRADIENT2] = largest, gradient2
    values[NORM2], values[DUAL_NORM2] = norm2, dual_norm2
    values[LAST_GAP], values[GAP] = values[GAP], np.inf
    total, uneven = values[ALPHA_SUM], abs(v[z.size - 1]) if free else 0.0
    if upper < np.inf:
        dual = total - 0.5 * dual_norm2
        # v[-1] = sum y_i alpha_i must be 0 with a free intercept: scaling one class down costs about |v[-1]|
        if dual > 0.0:
            values[GAP] = (abs(0.5 * norm2 + values[HINGE] - dual) + uneven) / dual
        return
    curvature = dual_norm2 + values[SQUARES] / sigma
    if curvature > 0.0 and total > 0.0:
        uneven /= total  # as a share of sum alpha_i; its square is added, as in the squared gradient
        values[GAP] = gradient2 * curvature / (total * total) + uneven * uneven


@compiled()
def set_status(limits, values):
    """Set STATUS to ENDED where one of the stopping rules holds, else to GOES_ON; `limits` are their `Rules`."""
    gap, unchanged = values[GAP], values[UNCHANGED]
    share, rounding = limits[GRADIENT_SHARE], limits[GRADIENT_ROUNDING]
    solved = values[MAX_GRADIENT] <= max(share * values[FIRST_GRADIENT], rounding * values[ALPHA_SUM])
    # the slacks of this active set have been computed from z one step before
    optimal = unchanged > 1.0 and gap <= limits[ROUNDING_GAP]
    no_progress = 0.5 * values[LAST_GAP] <= gap and gap < np.inf
    stuck = no_progress and (gap <= limits[STALLED_GAP] or unchanged > limits[MAX_UNCHANGED])
    values[STATUS] = ENDED if solved or optimal or stuck else GOES_ON


@compiled()
def move(sigma, upper, tolerance, data, vectors):
    """Move z and the slacks to the minimum of f along dz; return the step length t, 0 where f does not decrease.

    `data[CHANGE]` holds the scores b_i.dz, and is set to the decrease of the slacks, t y_i b_i.dz. The line search ends
    where the absolute slope is at most the share `tolerance` of that at z.
    """
    z, regular, gradient, dz = vectors[Z], vectors[REGULAR], vectors[GRADIENT], vectors[DIRECTION]
    # 1/2 (z + t dz)'R(z + t dz) = 1/2 z'Rz + linear t + quadratic t^2 / 2
    slope = linear = quadratic = 0.0
    for j in range(z.size):
        slope += gradient[j] * dz[j]
        linear += regular[j] * dz[j] * z[j]
        quadratic += regular[j] * dz[j] * dz[j]
    if not slope < 0.0:
        return 0.0
    y, slack, change = data[Y], data[SLACK], data[CHANGE]
    for k in range(y.size):
        change[k] *= y[k]
    t = line_minimum(sigma, upper, data, linear, quadratic, -tolerance * slope)
    if not t > 0.0:
        return 0.0
    for j in range(z.size):
        z[j] += t * dz[j]
    for k in range(y.size):
        change[k] *= t
        slack[k] -= change[k]
    return t


@compiled()
def line_minimum(sigma, upper, data, linear, quadratic, tolerance):
    """Return the t > 0 that minimises linear t + quadratic t^2 / 2 + sum c_i phi_i(s_i - t change_i).

    Newton's method from t = 1 on the derivative, which is piecewise linear and increasing; bisection replaces a step
    that leaves the bracket. After an absolute derivative of at most `tolerance`, one more step is taken.
    """
    low, high, t = 0.0, np.inf, 1.0
    for _ in range(MAX_LINE_STEPS):
        first, second = derivatives(sigma, upper, data[COSTS], data[PROX], data[SLACK], data[CHANGE], t)
        first, second = linear + quadratic * t - first, quadratic + sigma * second
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


@compiled(fastmath={"reassoc", "contract"})
def derivatives(sigma, upper, costs, prox, slack, change, t):
    """Return sum c_i change_i share_i(s_i - t change_i), and sum c_i change_i^2 over the rows that are active there."""
    first = second = 0.0
    for k in range(slack.size):
        share = prox[k] + sigma * (slack[k] - t * change[k])
        weighted = costs[k] * change[k]
        first += weighted * min(max(share, 0.0), upper)
        second += weighted * change[k] if share > 0.0 and share < upper else 0.0
    return first, second


@compiled()
def slacks(scores, y, b, slack):
    """Set slack_i = 1 - y_i (score_i + b)."""
    for k in range(y.size):
        slack[k] = 1.0 - y[k] * (scores[k] + b)


@compiled()
def set_slack(rows, data, vectors):
    """Compute slacks from z, without the rounding errors that have accumulated from step to step."""
    scores_in_cache(rows, vectors[Z], data[SLACK])
    slacks(data[SLACK], data[Y], 0.0, data[SLACK])


@compiled()
def evaluate(state, sigma, upper, free, frozen):
    """Compute y alpha, gradient and gap from z and its slacks, as `SemismoothNewton.evaluate` does."""
    clip_shares(sigma, upper, frozen, state.data, state.marks[0], state.values)
    combine(state.rows, state.data[SIGNED], state.indices[0], state.vectors[DUAL_SUM])
    set_gradient_and_gap(sigma, upper, free, state.vectors, state.values)


@compiled()
def take_step(state, sigma, upper, free):
    """Move z to the minimum of f along the Newton direction; return the step length, 0 where f does not decrease."""
    rows, data, vectors, matrices = state.rows, state.data, state.vectors, state.matrices
    costs = data[COSTS]
    update_hessian(rows, costs, state.marks, state.indices, vectors[LARGEST], matrices[0], state.columns)
    set_direction(sigma, free, costs, state.values[N_ACTIVE], matrices, vectors)
    scores_in_cache(rows, vectors[DIRECTION], data[CHANGE])
    return move(sigma, upper, state.limits[LINE_SEARCH_SLOPE], data, vectors)


@compiled()
def minimise(state, sigma, upper, free, begin, frozen, steps, goal):
    """Take Newton steps on small dense rows, as `SemismoothNewton.advance` does; return their number."""
    values = state.values
    never = steps < 0  # False, but no constant: `evaluate` would be compiled once for each constant argument
    if begin:
        if frozen:
            evaluate(state, sigma, upper, free, frozen)
            take_step(state, sigma, upper, free)
        evaluate(state, sigma, upper, free, never)
        values[FIRST_GRADIENT] = values[MAX_GRADIENT]
        set_status(state.limits, values)
    for taken in range(steps):
        if values[GAP] <= goal or values[STATUS] != GOES_ON:
            return taken
        if upper == np.inf and values[UNCHANGED] == 1.0:  # near the end rounding errors of the slacks count
            set_slack(state.rows, state.data, state.vectors)
            values[UNCHANGED] = 0.0  # this evaluation and that before count as one
            evaluate(state, sigma, upper, free, never)
        if not take_step(state, sigma, upper, free) > 0.0:
            values[STATUS] = FAILED
            return taken
        evaluate(state, sigma, upper, free, never)
        set_status(state.limits, values)
    return steps


@compiled()
def update_hessian(rows, costs, marks, indices, largest, matrix, columns):
    """Update M from the rows marks[1] to the active rows marks[0], as `ActiveHessian` does; then set marks[1] to these.

    Rows that enter are added and rows that leave are subtracted, or M is computed from all active rows. `indices` and
    `columns` are workspace; `largest` holds the largest value of each diagonal entry since M was last recomputed.
    """
    active, before, entering, leaving = marks[0], marks[1], indices[0], indices[1]
    entered = left = count = 0
    for k in range(active.size):
        count += np.int64(active[k])
        # without a branch: overwritten by the next row where this one does not enter, or leave
        entering[entered] = leaving[left] = k
        entered += np.int64(active[k] > before[k])
        left += np.int64(active[k] < before[k])
        before[k] = active[k]
    if entered + left == 0:
        return
    recompute = entered + left > MAX_CHANGED * count or count * largest.size**2 <= SMALL_PRODUCT
    if not recompute:
        add_row_products(1.0, rows, costs, entering[:entered], columns, matrix)
        for i in range(largest.size):
            largest[i] = max(largest[i], matrix[i, i])
        add_row_products(-1.0, rows, costs, leaving[:left], columns, matrix)
        for i in range(largest.size):
            recompute |= not matrix[i, i] >= MIN_DIAGONAL * largest[i]
    if recompute:
        found = 0
        for k in range(active.size):
            entering[found] = k
            found += np.int64(active[k])
        matrix[:] = 0.0
        add_row_products(1.0, rows, costs, entering[:count], columns, matrix)
        for i in range(largest.size):
            largest[i] = matrix[i, i]


@compiled()
def set_direction(sigma, free, costs, count, matrices, vectors):
    """Set the Newton direction -(R + sigma M)^-1 g; where this matrix is singular up to rounding, -g over its diagonal.

    M is given on and below its diagonal in matrices[0]; matrices[1] receives the factor.
    """
    matrix, factored = matrices[0], matrices[1]
    regular, gradient, dz = vectors[REGULAR], vectors[GRADIENT], vectors[DIRECTION]
    root, inverse, size = vectors[ROOT], vectors[INVERSE], dz.size
    for i in range(size):
        for j in range(i + 1):
            factored[j, i] = sigma * matrix[i, j]
        factored[i, i] += regular[i]
    if free and count == 0.0:  # R and M are 0 in the intercept
        for k in range(costs.size):
            factored[size - 1, size - 1] += FREE_CURVATURE * sigma * costs[k]
    if factor(factored, root, inverse):
        solve_factored(factored, root, inverse, gradient, dz)
        for j in range(size):
            dz[j] = -dz[j]
    else:
        for j in range(size):
            dz[j] = -gradient[j] / max(factored[j, j], TINY)


@compiled()
def next_problem(settings, progress, data, vectors, values):
    """Set prox = share and increase sigma, for the next proximal problem; set STATUS to CONVERGED after the last one.

    `settings` are those of `proximal_point`; `progress` is updated, SLACK_CHANGE is max |share_i - prox_i| / sigma.
    """
    prox, slack, z, sigma, last = data[PROX], data[SLACK], vectors[Z], progress[SIGMA], progress[SLACK_CHANGE]
    change, length = 0.0, 1.0
    for k in range(prox.size):
        share = min(max(prox[k] + sigma * slack[k], 0.0), 1.0)
        change = max(change, abs(share - prox[k]))
        prox[k] = share
    change /= sigma
    for j in range(z.size):
        length += abs(z[j])
    progress[SLACK_CHANGE], progress[IDLE] = change, progress[IDLE] + 1.0
    if values[GAP] < progress[LEAST_GAP]:
        progress[LEAST_GAP], progress[IDLE] = values[GAP], 0.0
    still = change <= settings.min_stalled_change * length and change > 0.5 * last
    still = still or change <= settings.min_change * length
    still = still and values[MAX_GRADIENT] <= settings.rules.gradient_rounding * values[ALPHA_SUM]
    if progress[LEAST_GAP] <= settings.end_gap and (still or progress[IDLE] >= settings.max_idle):
        values[STATUS] = CONVERGED
    active, taken, growth, limit = values[N_ACTIVE], progress[TAKEN], settings.growth, progress[MAX_SIGMA]
    if values[GAP] <= settings.known_set_gap and values[UNCHANGED] > 0.0:
        growth, limit = progress[KNOWN_GROWTH], settings.beyond_max_sigma * limit
        progress[KNOWN_GROWTH] *= settings.more_growth
    else:
        progress[KNOWN_GROWTH] = settings.known_set_growth
        if active > settings.many_active * z.size or taken <= settings.easy_steps:
            growth = settings.fast_growth
        if active == prox.size:  # no share is clipped yet: f is quadratic
            growth *= settings.fast_growth
        growth = growth if taken <= settings.long_steps else growth**0.5
    progress[SIGMA], progress[TAKEN] = max(sigma, min(growth * sigma, limit)), 0.0


@compiled()
def solve_problems(state, settings, progress, free, begin, frozen, steps, goal):
    """Solve proximal problems on small dense rows, until one may be reported; return the number of steps.

    A problem without a step counts as one for the limit `steps`. Other arguments are as in `minimise`, `next_problem`.
    """
    values, taken = state.values, 0
    while True:
        more = minimise(state, progress[SIGMA], 1.0, free, begin, frozen, steps, goal)
        taken, progress[TAKEN] = taken + more, progress[TAKEN] + more
        steps -= max(1, more)
        if values[STATUS] != ENDED or values[GAP] <= max(goal, settings.first_report_gap) or steps <= 0:
            return taken
        next_problem(settings, progress, state.data, state.vectors, values)
        if values[STATUS] == CONVERGED:
            return taken
        if values[GAP] <= settings.known_set_gap:
            set_slack(state.rows, state.data, state.vectors)
        begin, frozen = steps > 0, values[N_ACTIVE] < state.data.shape[1]  # no constant, see `minimise`
