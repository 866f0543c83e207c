"""Compiled parts of the semismooth Newton iteration, and the whole iteration for small dense rows.

Arrays hold one vector in each of their rows: `data` of shape (7, n) has Y to CHANGE, `vectors` of shape (8, size) has Z
to INVERSE, and `values` of shape (13,) has STEEPNESS to STATUS. A call takes longer the more arguments it has.
"""

from __future__ import annotations

import numpy as np

from ...engine.jit import compiled
from ...engine.row_products import add_combined, combine, scores, scores_in_cache
from ...engine.small_cholesky import add_row_products, factor, solve_factored

# labels, costs, and for the current z: near_i, s_i, share_i, y_i alpha_i; and what a step took from the slacks
Y, COSTS, NEAR, SLACK, SHARE, SIGNED, CHANGE = range(7)
# z, R, g, sum alpha_i y_i b_i, the Newton direction; the largest diagonal of M so far; two vectors of the factor
Z, REGULAR, GRADIENT, MADE, DIRECTION, LARGEST, ROOT, INVERSE = range(8)
# max |g_j|; the gap, and that before the last step; sum alpha_i, sum c_i share_i^2, sum c_i max(0, s_i); g'Rg, z'Rz and
# v'Rv; active rows; evaluations since the active set changed; max |g_j| at the first iterate; and one of these states
STEEPNESS, GAP, LAST_GAP, TOTAL, SQUARE, LOSS, GRADIENT2, NORM2, MADE2, COUNT, UNCHANGED, FIRST, STATUS = (
    range(13)
)
GOES_ON, ENDED, FAILED = 0.0, 1.0, 2.0

# What the curvature of a free intercept is, as a share of sigma sum c_i, where no active row gives it any.
FREE_CURVATURE = 1e-2
# Share of the active rows that may have changed for an update of the Hessian: an update by k rows costs as much as k
# rows of a new one and loses digits, and two small products take longer than one.
MAX_CHANGED = 0.5
# Active rows x columns^2 up to which M is always computed anew: one product takes less than two updates.
SMALL_PRODUCT = 100_000
# Share of the largest value that an entry of the diagonal has had, below which subtraction has cancelled three digits.
MIN_DIAGONAL = 1e-3
MAX_LINE_STEPS = 50  # of a line search: 2 to 6 are usual, and bisection alone ends within 50
TINY = 1e-300  # the smallest divisor: avoids a division by 0 and is below every number that counts


@compiled(fastmath={"reassoc", "contract"})
def clip_part(sigma, upper, frozen, y, costs, near, slack, shares, signed, active):
    """Compute shares, y alpha and the active set of some rows from their slacks.

    Where it is `frozen`, the active set is kept, and the shares of its rows are not clipped.

    Returns
    -------
    total, balance, square, loss : float
        sum alpha_i, sum y_i alpha_i, sum c_i share_i^2 and sum c_i max(0, s_i).
    count, changed : int
        Active rows, and rows that entered or left the active set.
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
    """Compute shares, y alpha, the active set and sums over all rows from the slacks, as `clip_part` does."""
    total, _, square, loss, count, changed = clip_part(
        sigma, upper, frozen, data[Y], data[COSTS], data[NEAR], data[SLACK], data[SHARE], data[SIGNED], active
    )
    values[TOTAL], values[SQUARE], values[LOSS], values[COUNT] = total, square, loss, count
    if not frozen:
        values[UNCHANGED] = 0.0 if changed > 0 else values[UNCHANGED] + 1.0


@compiled()
def evaluate_rows(X, w, b, sigma, upper, data, active, places, sums, values):
    """Compute slacks at (w, b), shares and sums over rows, which pass once, in parts that stay in cache.

    `places` has the size of a part. sums[0] becomes sum alpha_i y_i x_i; sums[1] is workspace. Returns
    sum alpha_i y_i.
    """
    y, costs, near, slack, shares, signed = data[0], data[1], data[2], data[3], data[4], data[5]
    sums[0] = 0.0
    values[TOTAL] = values[SQUARE] = values[LOSS] = values[COUNT] = balance = 0.0
    for first in range(0, y.size, places.size):
        last = min(first + places.size, y.size)
        rest, c = slack[first:last], signed[first:last]
        scores(X[first:last], w, rest)
        slacks(rest, y[first:last], b, rest)
        total, uneven, square, loss, count, _ = clip_part(
            sigma, upper, False, y[first:last], costs[first:last], near[first:last], rest, shares[first:last], c,
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

    Without an upper bound, the dual bound is that of the best multiple of alpha, max_t t total - t^2 (v'Rv + square) /
    2, and half the squared gradient is the gap, which keeps digits; else the gap is that of the hinge.
    """
    z, regular, gradient, made = vectors[Z], vectors[REGULAR], vectors[GRADIENT], vectors[MADE]
    largest = gradient2 = norm2 = made2 = 0.0
    for j in range(z.size):
        g = regular[j] * z[j] - made[j]
        gradient[j] = g
        if largest == largest and not abs(g) <= largest:  # NaN stays
            largest = abs(g)
        gradient2 += regular[j] * g * g
        norm2 += regular[j] * z[j] * z[j]
        made2 += regular[j] * made[j] * made[j]
    values[STEEPNESS], values[GRADIENT2], values[NORM2], values[MADE2] = largest, gradient2, norm2, made2
    values[LAST_GAP], values[GAP] = values[GAP], np.inf
    total, uneven = values[TOTAL], abs(made[z.size - 1]) if free else 0.0
    if upper < np.inf:
        dual = total - 0.5 * made2
        if dual > 0.0:  # dual variables that do not balance lose about as much when they are balanced
            values[GAP] = (abs(0.5 * norm2 + values[LOSS] - dual) + uneven) / dual
        return
    curvature = made2 + values[SQUARE] / sigma
    if curvature > 0.0 and total > 0.0:
        uneven /= total
        values[GAP] = gradient2 * curvature / (total * total) + uneven * uneven


@compiled()
def set_status(rules, values):
    """Set whether the iteration ends: at a small gradient, at the optimum to rounding, or where z gets no nearer."""
    _, solved, slope_rounding, rounding, nearly_rounding, same_active_set = rules
    gap, unchanged = values[GAP], values[UNCHANGED]
    solved = values[STEEPNESS] <= max(solved * values[FIRST], slope_rounding * values[TOTAL])
    optimal = unchanged > 1.0 and gap <= rounding  # a step after slacks were computed anew
    no_progress = 0.5 * values[LAST_GAP] <= gap and gap < np.inf
    stuck = no_progress and (gap <= nearly_rounding or unchanged > same_active_set)
    values[STATUS] = ENDED if solved or optimal or stuck else GOES_ON


@compiled()
def move(sigma, upper, tolerance, data, vectors):
    """Move z and the slacks to the minimum of f along the direction; return the length, 0 where f does not fall.

    `data[CHANGE]` holds the scores of the direction, and then what the slacks lose. The line search ends at a share
    `tolerance` of the slope at z.
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

    Newton's method on the derivative, which is piecewise linear and increases, with a bracket: steps that leave it
    are replaced by bisection. A derivative of at most `tolerance` is followed by one more step.
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
    """Return sum c_i change_i share_i at t, and sum c_i change_i^2 over the active rows."""
    first = second = 0.0
    for k in range(slack.size):
        share = near[k] + sigma * (slack[k] - t * change[k])
        pull = costs[k] * change[k]
        first += pull * min(max(share, 0.0), upper)
        second += pull * change[k] if share > 0.0 and share < upper else 0.0
    return first, second


@compiled()
def slacks(scores, y, b, slack):
    """Set slack = 1 - y (score + b)."""
    for k in range(y.size):
        slack[k] = 1.0 - y[k] * (scores[k] + b)


@compiled()
def predict(sigma, data, marks):
    """Set what y alpha becomes by a step within the active set, in the place of `change`, and keep this set."""
    y, costs, signed, change, active, before = data[0], data[1], data[5], data[6], marks[0], marks[1]
    for k in range(y.size):
        before[k] = active[k]
        change[k] = signed[k] - (y[k] * costs[k] * sigma * change[k] if active[k] else 0.0)


@compiled()
def mispredicted(data, marks, places):
    """Set the places of the rows that were clipped otherwise than `predict` says; return how many."""
    signed, predicted, active, before = data[SIGNED], data[CHANGE], marks[0], marks[1]
    count = 0
    for k in range(signed.size):
        if signed[k] != predicted[k] and not (active[k] and before[k]):
            places[count] = k
            count += 1
    return count


@compiled()
def accept_shares(sigma, data, vectors):
    """Set near = share; return how far shares have moved, as a change of slacks, and 1 + |z|_1."""
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
    """Compute slacks from z, without the rounding that steps have added up."""
    scores_in_cache(rows, vectors[Z], data[SLACK])
    slacks(data[SLACK], data[Y], 0.0, data[SLACK])


@compiled()
def evaluate(rows, sigma, upper, free, frozen, refresh, data, active, places, vectors, values):
    """Compute shares, gradient and gap from z and its slacks; where it is to `refresh`, see `SemismoothNewton`."""
    clip_shares(sigma, upper, frozen, data, active, values)
    if refresh and values[UNCHANGED] == 1.0:
        set_slack(rows, data, vectors)
        clip_shares(sigma, upper, frozen, data, active, values)
        values[UNCHANGED] = min(values[UNCHANGED], 1.0)
    combine(rows, data[SIGNED], places[0], vectors[MADE])
    measure(sigma, upper, free, vectors, values)


@compiled()
def take_step(rows, sigma, upper, free, line_search, data, marks, places, vectors, values, matrices, columns):
    """Go to the minimum along the Newton direction; return the length, 0 where it leads nowhere."""
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
    """Take Newton steps on small dense rows as `SemismoothNewton.advance` says; return how many."""
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
    """Make M that of the active rows, marks[0], from that of the rows marks[1]: by those that changed, or anew."""
    active, inside, entering, leaving = marks[0], marks[1], places[0], places[1]
    came = left = count = 0
    for k in range(active.size):
        count += np.int64(active[k])
        if active[k] != inside[k]:
            if active[k]:
                entering[came] = k
                came += 1
            else:
                leaving[left] = k
                left += 1
    if came + left == 0:
        return
    anew = came + left > MAX_CHANGED * count or count * largest.size**2 <= SMALL_PRODUCT
    if not anew:
        add_row_products(1.0, rows, costs, entering[:came], columns, matrix)
        for i in range(largest.size):
            largest[i] = max(largest[i], matrix[i, i])
        add_row_products(-1.0, rows, costs, leaving[:left], columns, matrix)
        for i in range(largest.size):
            anew |= not matrix[i, i] >= MIN_DIAGONAL * largest[i]
    if anew:
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
        inside[k] = active[k]


@compiled()
def set_direction(sigma, free, costs, count, matrices, vectors):
    """Set the direction -(R + sigma M)^-1 g; where this matrix has lost its digits, -g divided by its diagonal."""
    matrix, factored = matrices[0], matrices[1]
    regular, gradient, dz, root, inverse = vectors[1], vectors[2], vectors[4], vectors[6], vectors[7]
    size = dz.size
    for i in range(size):
        for j in range(i + 1):
            factored[j, i] = sigma * matrix[i, j]
        factored[i, i] += regular[i]
    if free and count == 0.0:
        whole = 0.0
        for k in range(costs.size):
            whole += costs[k]
        factored[size - 1, size - 1] += FREE_CURVATURE * sigma * whole
    if factor(factored, root, inverse):
        solve_factored(factored, root, inverse, gradient, dz)
        for j in range(size):
            dz[j] = -dz[j]
    else:
        for j in range(size):
            dz[j] = -gradient[j] / max(factored[j, j], TINY)
