"""Compiled parts of the semismooth Newton iteration, and the whole iteration for small dense rows.

Notation is that of `semismooth`. Vectors are rows of a few arrays, as every argument adds to the time of a call:
`data` of shape (7, n) holds Y to CHANGE, `vectors` of shape (8, size) holds Z to INVERSE, and `values` of shape (13,)
holds the scalars STEEPNESS to STATUS. `marks` of shape (2, n) holds the active set, and the rows in M.
"""

from __future__ import annotations

import numpy as np

from ...engine.jit import compiled
from ...engine.row_products import add_combined, combine, scores, scores_in_cache
from ...engine.small_cholesky import add_row_products, factor, solve_factored

# y_i, c_i, near_i; at the current z: s_i, share_i, y_i alpha_i; and the last decrease of s_i (see `move`)
Y, COSTS, NEAR, SLACK, SHARE, SIGNED, CHANGE = range(7)
# z, the diagonal of R, g, v, the Newton direction dz; the largest values of the diagonal of M since it was last
# computed from all rows; two vectors of the Cholesky factor (see `small_cholesky.factor`)
Z, REGULAR, GRADIENT, DUAL_SUM, DIRECTION, LARGEST, ROOT, INVERSE = range(8)
# max |g_j|; the gap, and that before the last step; sum alpha_i, sum c_i share_i^2, sum c_i max(0, s_i); g'Rg, z'Rz and
# v'Rv; the number of active rows; evaluations since the active set changed; max |g_j| at the first iterate of the
# iteration; and GOES_ON, ENDED or FAILED
STEEPNESS, GAP, LAST_GAP, TOTAL, SQUARE, LOSS, GRADIENT2, NORM2, DUAL_NORM2 = range(9)
COUNT, UNCHANGED, FIRST, STATUS = range(9, 13)
GOES_ON, ENDED, FAILED = 0.0, 1.0, 2.0

# Curvature of f in a free intercept, as a share of sigma sum c_i, that replaces 0 where no row is active. Smaller, the
# direction is longer and the line search shortens it.
FREE_CURVATURE = 1e-2
# Largest number of rows that enter or leave, as a share of the active rows, for which M is updated: an update by k rows
# costs as much as k rows of a new matrix and adds rounding errors, and two small products take longer than one.
MAX_CHANGED = 0.5
# Active rows x columns^2 up to which M is always computed from all active rows: one product takes less time than two.
# Chosen on the data sets of docs/regimes.md.
SMALL_PRODUCT = 100_000
# Share of the largest value of a diagonal entry of M below which subtractions have cancelled three digits of it: M is
# then computed from all active rows.
MIN_DIAGONAL = 1e-3
MAX_LINE_STEPS = 50  # steps of a line search: 2 to 6 are usual, and bisection alone needs about 50
TINY = 1e-300  # smallest divisor: avoids a division by 0 and is below every quantity that matters


@compiled(fastmath={"reassoc", "contract"})
def clip_part(sigma, upper, frozen, y, costs, near, slack, shares, signed, active):
    """Compute shares, y alpha and the active set of a block of rows from their slacks; overwrite the last three arrays.

    share_i = near_i + sigma s_i, clipped to [0, upper]. Where `frozen` is true, the active set is kept and the shares
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
        unclipped = near[k] + sigma * slack[k]
        inside = unclipped > 0.0 and unclipped < upper
        share = min(max(unclipped, 0.0), upper)
        if frozen:
            inside = active[k]
            share = unclipped if inside else share
        changed += np.int64(inside != active[k])
        count += np.int64(inside)
        active[k], shares[k] = inside, share
        alpha = costs[k] * share
        signed[k] = y[k] * alpha
        total += alpha
        balance += y[k] * alpha
        square += alpha * share
        loss += costs[k] * max(slack[k], 0.0)
    return total, balance, square, loss, count, changed


@compiled()
def clip_shares(sigma, upper, frozen, data, active, values):
    """Compute shares, y alpha and the active set of all rows from the slacks, and their sums; see `clip_part`."""
    total, _, square, loss, count, changed = clip_part(
        sigma, upper, frozen, data[Y], data[COSTS], data[NEAR], data[SLACK], data[SHARE], data[SIGNED], active
    )
    values[TOTAL], values[SQUARE], values[LOSS], values[COUNT] = total, square, loss, count
    if not frozen:
        values[UNCHANGED] = 0.0 if changed > 0 else values[UNCHANGED] + 1.0


@compiled()
def evaluate_rows(X, w, b, sigma, upper, data, active, places, sums, values):
    """Compute slacks at (w, b), shares and sums over rows in one pass; return sum alpha_i y_i.

    Rows are read in blocks that stay in the cache, of the size of the workspace `places`. sums[0] is set to
    sum alpha_i y_i x_i; sums[1] is workspace.
    """
    y, costs, near = data[Y], data[COSTS], data[NEAR]
    slack, shares, signed = data[SLACK], data[SHARE], data[SIGNED]
    sums[0] = 0.0
    values[TOTAL] = values[SQUARE] = values[LOSS] = values[COUNT] = balance = 0.0
    for first in range(0, y.size, places.size):
        last = min(first + places.size, y.size)
        s, c = slack[first:last], signed[first:last]
        scores(X[first:last], w, s)
        slacks(s, y[first:last], b, s)
        total, uneven, square, loss, count, _ = clip_part(
            sigma, upper, False, y[first:last], costs[first:last], near[first:last], s, shares[first:last], c,
            active[first:last],
        )  # fmt: skip
        values[TOTAL] += total
        values[SQUARE] += square
        values[LOSS] += loss
        values[COUNT] += count
        balance += uneven
        add_combined(X[first:last], c, places, sums[1], sums[0])
    return balance


@compiled()
def measure(sigma, upper, free, vectors, values):
    """Compute the gradient g = R z - v, and the gap.

    Without an upper bound of the shares, the dual objective is that of the best multiple of alpha,
    max_t t total - t^2 curvature / 2 = total^2 / (2 curvature) with curvature = v'Rv + sum c_i share_i^2 / sigma. The
    difference to the primal objective is g'Rg / 2, computed as such, without cancellation. With an upper bound, the gap
    is that of the hinge, primal - dual.
    """
    z, regular, gradient, v = vectors[Z], vectors[REGULAR], vectors[GRADIENT], vectors[DUAL_SUM]
    largest = gradient2 = norm2 = dual_norm2 = 0.0
    for j in range(z.size):
        g = regular[j] * z[j] - v[j]
        gradient[j] = g
        if largest == largest and not abs(g) <= largest:  # a NaN is kept to the end
            largest = abs(g)
        gradient2 += regular[j] * g * g
        norm2 += regular[j] * z[j] * z[j]
        dual_norm2 += regular[j] * v[j] * v[j]
    values[STEEPNESS], values[GRADIENT2] = largest, gradient2
    values[NORM2], values[DUAL_NORM2] = norm2, dual_norm2
    values[LAST_GAP], values[GAP] = values[GAP], np.inf
    total, uneven = values[TOTAL], abs(v[z.size - 1]) if free else 0.0
    if upper < np.inf:
        dual = total - 0.5 * dual_norm2
        # v[-1] = sum y_i alpha_i must be 0 with a free intercept: scaling one class down costs about |v[-1]|
        if dual > 0.0:
            values[GAP] = (abs(0.5 * norm2 + values[LOSS] - dual) + uneven) / dual
        return
    curvature = dual_norm2 + values[SQUARE] / sigma
    if curvature > 0.0 and total > 0.0:
        uneven /= total
        values[GAP] = gradient2 * curvature / (total * total) + uneven * uneven


@compiled()
def set_status(rules, values):
    """Set STATUS to ENDED where one of the stopping rules (`semismooth.Rules`) holds, else to GOES_ON."""
    _, solved, slope_rounding, rounding, nearly_rounding, same_active_set = rules
    gap, unchanged = values[GAP], values[UNCHANGED]
    solved = values[STEEPNESS] <= max(solved * values[FIRST], slope_rounding * values[TOTAL])
    optimal = unchanged > 1.0 and gap <= rounding  # the slacks have been computed from z one step before
    no_progress = 0.5 * values[LAST_GAP] <= gap and gap < np.inf
    stuck = no_progress and (gap <= nearly_rounding or unchanged > same_active_set)
    values[STATUS] = ENDED if solved or optimal or stuck else GOES_ON


@compiled()
def move(sigma, upper, tolerance, data, vectors):
    """Move z and the slacks to the minimum of f along dz; return the step length t, 0 where f does not decrease.

    `data[CHANGE]` holds the scores b_i.dz, and is set to the decrease of the slacks, t y_i b_i.dz. The line search ends
    where the slope is at most the share `tolerance` of that at z.
    """
    z, regular, gradient, dz = vectors[Z], vectors[REGULAR], vectors[GRADIENT], vectors[DIRECTION]
    slope = first = second = 0.0
    for j in range(z.size):
        slope += gradient[j] * dz[j]
        first += regular[j] * dz[j] * z[j]
        second += regular[j] * dz[j] * dz[j]
    if not slope < 0.0:
        return 0.0
    y, slack, change = data[Y], data[SLACK], data[CHANGE]
    for k in range(y.size):
        change[k] *= y[k]
    t = line_minimum(sigma, upper, data, first, second, -tolerance * slope)
    if not t > 0.0:
        return 0.0
    for j in range(z.size):
        z[j] += t * dz[j]
    for k in range(y.size):
        change[k] *= t
        slack[k] -= change[k]
    return t


@compiled()
def line_minimum(sigma, upper, data, slope, curvature, tolerance):
    """Return the t > 0 that minimises slope t + curvature t^2 / 2 + sum c_i phi_i(s_i - t change_i), from t = 1.

    Newton's method on the derivative, which is piecewise linear and increasing, safeguarded by a bracket: a step that
    leaves the bracket is replaced by bisection. Ends with one more step after a derivative of at most `tolerance`.
    """
    low, high = 0.0, np.inf
    t = 1.0
    for _ in range(MAX_LINE_STEPS):
        first, second = derivatives(sigma, upper, data[COSTS], data[NEAR], data[SLACK], data[CHANGE], t)
        first, second = slope + curvature * t - first, curvature + sigma * second
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
def derivatives(sigma, upper, costs, near, slack, change, t):
    """Return sum c_i change_i share_i(s_i - t change_i), and sum c_i change_i^2 over the rows that are active there."""
    first = second = 0.0
    for k in range(slack.size):
        share = near[k] + sigma * (slack[k] - t * change[k])
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
def accept_shares(sigma, data, vectors):
    """Set near = share; return max |share_i - near_i| / sigma, a change of slacks, and 1 + |z|_1."""
    near, share, z = data[NEAR], data[SHARE], vectors[Z]
    moved, length = 0.0, 1.0
    for k in range(near.size):
        moved = max(moved, abs(share[k] - near[k]))
        near[k] = share[k]
    for j in range(z.size):
        length += abs(z[j])
    return moved / sigma, length


@compiled()
def set_slack(rows, data, vectors):
    """Compute slacks from z, without the rounding errors that have accumulated from step to step."""
    scores_in_cache(rows, vectors[Z], data[SLACK])
    slacks(data[SLACK], data[Y], 0.0, data[SLACK])


@compiled()
def evaluate(rows, sigma, upper, free, frozen, refresh, data, active, places, vectors, values):
    """Compute shares, gradient and gap from z and its slacks, as `SemismoothNewton.evaluate` does."""
    clip_shares(sigma, upper, frozen, data, active, values)
    if refresh and values[UNCHANGED] == 1.0:
        set_slack(rows, data, vectors)
        clip_shares(sigma, upper, frozen, data, active, values)
        values[UNCHANGED] = min(values[UNCHANGED], 1.0)  # both calls of `clip_shares` count as one evaluation
    combine(rows, data[SIGNED], places[0], vectors[DUAL_SUM])
    measure(sigma, upper, free, vectors, values)


@compiled()
def take_step(rows, sigma, upper, free, line_search, data, marks, places, vectors, values, matrices, columns):
    """Move z to the minimum of f along the Newton direction; return the step length, 0 where f does not decrease."""
    update_hessian(rows, data[COSTS], marks, places, vectors[LARGEST], matrices[0], columns)
    set_direction(sigma, free, data[COSTS], values[COUNT], matrices, vectors)
    scores_in_cache(rows, vectors[DIRECTION], data[CHANGE])
    return move(sigma, upper, line_search, data, vectors)


@compiled()
def minimise(
    rows,
    sigma,
    upper,
    free,
    begin,
    frozen,
    steps,
    goal,
    rules,
    data,
    marks,
    places,
    vectors,
    values,
    matrices,
    columns,
):
    """Take Newton steps on small dense rows, as `SemismoothNewton.advance` does; return their number."""
    active, refresh = marks[0], upper == np.inf
    if begin:
        if frozen:
            evaluate(rows, sigma, upper, free, True, False, data, active, places, vectors, values)
            take_step(
                rows, sigma, upper, free, rules[0], data, marks, places, vectors, values, matrices, columns
            )
        evaluate(rows, sigma, upper, free, False, False, data, active, places, vectors, values)
        values[FIRST] = values[STEEPNESS]
        set_status(rules, values)
    for taken in range(steps):
        if values[GAP] <= goal or values[STATUS] != GOES_ON:
            return taken
        t = take_step(
            rows, sigma, upper, free, rules[0], data, marks, places, vectors, values, matrices, columns
        )
        if not t > 0.0:
            values[STATUS] = FAILED
            return taken
        evaluate(rows, sigma, upper, free, False, refresh, data, active, places, vectors, values)
        set_status(rules, values)
    return steps


@compiled()
def update_hessian(rows, costs, marks, places, largest, matrix, columns):
    """Update M from the rows marks[1] to the active rows marks[0], as `ActiveHessian` does.

    Rows that enter are added and rows that leave are subtracted, or M is computed from all active rows.
    """
    active, before, entering, leaving = marks[0], marks[1], places[0], places[1]
    entered = left = count = 0
    for k in range(active.size):
        count += np.int64(active[k])
        if active[k] != before[k]:
            if active[k]:
                entering[entered] = k
                entered += 1
            else:
                leaving[left] = k
                left += 1
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
            if active[k]:
                entering[found] = k
                found += 1
        matrix[:] = 0.0
        add_row_products(1.0, rows, costs, entering[:count], columns, matrix)
        for i in range(largest.size):
            largest[i] = matrix[i, i]
    for k in range(active.size):
        before[k] = active[k]


@compiled()
def set_direction(sigma, free, costs, count, matrices, vectors):
    """Set the Newton direction -(R + sigma M)^-1 g; where this matrix is singular up to rounding, -g over its diagonal.

    M is given on and below its diagonal in matrices[0]; matrices[1] receives the factor.
    """
    matrix, factored = matrices[0], matrices[1]
    regular, gradient, dz = vectors[REGULAR], vectors[GRADIENT], vectors[DIRECTION]
    root, inverse = vectors[ROOT], vectors[INVERSE]
    size = dz.size
    for i in range(size):
        for j in range(i + 1):
            factored[j, i] = sigma * matrix[i, j]
        factored[i, i] += regular[i]
    if free and count == 0.0:
        total = 0.0
        for k in range(costs.size):
            total += costs[k]
        factored[size - 1, size - 1] += FREE_CURVATURE * sigma * total
    if factor(factored, root, inverse):
        solve_factored(factored, root, inverse, gradient, dz)
        for j in range(size):
            dz[j] = -dz[j]
    else:
        for j in range(size):
            dz[j] = -gradient[j] / max(factored[j, j], TINY)
