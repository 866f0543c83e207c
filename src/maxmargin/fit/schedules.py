"""Schedules: the rows that an algorithm visits, their order, and the number of visits.

A schedule is a generator of rounds. A round of an online algorithm ends with an evaluation (`State.evaluate_iterate`)
of all rows at one fixed w, which gives the bounds: none are computed on an active set. An evaluation costs as much as
one pass over the rows (with kernels more: `State.passes_per_evaluation`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

import numpy as np

from ..engine.state import BIAS, FACTOR, reset_step_counts
from .best import DECREASE

if TYPE_CHECKING:
    from .run import GramRun
    from .state import State


# The constants were chosen on the data sets of benchmarks.before_after.

# Largest number of sweeps of the rows that made a step, which end by themselves only where some w reaches
# the target margin. More delay the next full pass, fewer make more full passes.
MAX_IMA_SWEEPS = 100
# From the bounds [low, high] of the largest margin: the next target margin is
# low + TARGET_SHARE * (min(high, MAX_TARGET_FACTOR * low) - low), and a target above low + GIVE_UP_SHARE * (high - low)
# is given up. A larger TARGET_SHARE takes fewer targets, of which more are out of reach. The paper's targets, constant
# multiples of the margin, reach the optimum with more targets.
TARGET_SHARE, GIVE_UP_SHARE, MAX_TARGET_FACTOR = 0.25, 0.5, 3.0


def increments(run: State) -> Iterator[None]:
    """IMA: run its rule at a sequence of increasing target margins, with the rounds of `active_set`.

    The rule for each target starts at the w of the target before. A target ends in one of three ways: no row violates
    it (reached); it is given up (`GIVE_UP_SHARE`); the budget of steps is spent, which ends the algorithm. It also ends
    when the bounds prove its accuracy. After the third target that is reached, the step length eta falls with the
    inverse square root of the number of steps.
    """
    pace, memory, max_visits = run.pace, run.patterns.packed_memory(), run.max_visits
    margin, eta, successes, third = 0.0, 1.0, 0, 0
    while True:
        run.rule = run.rule._replace(gamma=margin, eta=eta)
        reset_step_counts(run.h)
        # after `limit` the budget is spent, or margins clearly above the target are ruled out (`max_updates`)
        limit, between = run.steps + pace.max_updates(margin, eta, _squared_length(run)), 1
        while True:
            reached, until = False, run.presentations + between * run.n
            while not reached and run.presentations < until and run.steps < limit and not run.interrupted():
                visits = max_visits if between > 1 else run.n
                reached = run.sweep_and_narrow(memory, visits, MAX_IMA_SWEEPS) == 0
            run.evaluate_iterate()
            low, high = _margin_bounds(run)
            proved = pace.accuracy is not None and low >= (1.0 - pace.accuracy) * high
            run.converged = proved or (run.steps >= limit and not reached)
            failed = pace.increment is None and 0.0 < low < margin
            failed = failed and margin > low + GIVE_UP_SHARE * (high - low)
            yield
            if reached or run.converged or failed:
                break
            between = max(1, min(2 * between, max_visits // run.n))
        if run.converged:  # no larger margin is tried
            continue
        smaller, balanced = _balance_classes(run)
        if reached:
            successes += 1
            third = run.steps if successes == 3 else third  # steps until the third success
            eta = (third / run.steps) ** 0.5 if successes >= 3 else 1.0
        margin = _next_margin(pace, low if pace.increment is None else balanced, high)
        if pace.from_larger:
            margin = max(balanced, _next_margin(pace, smaller, high))


def _next_margin(pace: Any, low: float, high: float) -> float:
    """Return the next target margin of IMA.

    Parameters
    ----------
    pace : Increments
        With an increment the target is (1 + increment) * low; otherwise it lies between the bounds (`TARGET_SHARE`).
    low, high : float
        A margin that was attained, and an upper bound of every margin.
    """
    if pace.increment is not None:
        return max(low, 0.0) * (1.0 + pace.increment)
    return low + TARGET_SHARE * (min(high, MAX_TARGET_FACTOR * low) - low) if low > 0.0 else 0.0


def _squared_length(run: State) -> float:
    """Return |w|_2^2 + (squares of the slack coordinates) + b^2 / c^2, where c^2 is the `constant2` of the rule."""
    h, b = run.h, float(run.h.number[BIAS])
    if run.problem.p == 2:
        square = h.norm2()
    else:
        w = h.number[FACTOR] * h.space.vector.w
        square = float(w @ w) + h.slack.norm2()
    return square + (b * b / run.rule.constant2 if run.rule.constant2 else 0.0)


def _margin_bounds(run: State) -> tuple[float, float]:
    """Return the best lower and upper bound so far of the largest margin Gamma, slack coordinates included.

    For a soft margin they follow from the bounds of the optimal objective J = 1 / (2 Gamma^2).
    """
    best = run.best
    if run.problem.hard:
        return best.lower, best.upper
    # Gamma = (2 J)^(-1/2): the upper bound of J gives the lower bound of Gamma
    low, high = ((2.0 * value) ** -0.5 if value > 0.0 else np.inf for value in (best.upper, best.lower))
    return low, high


def _balance_classes(run: State) -> tuple[float, float]:
    """Shift the bias so that both classes have the same smallest score; return the margins of w before and after.

    The bias stays as it is where the rule has none, or where the rows are of one class. The scores y_i (w.x_i + b) are
    those of the last evaluation: a shift by t adds t to the scores of the positive class, and -t to the others.
    """
    least = [float(run.scores[side].min()) for side in (run.y > 0.0, run.y < 0.0) if side.any()]
    length = run.h.norm2() ** 0.5
    if not length > 0.0:
        return 0.0, 0.0
    smaller = min(least) / length
    if len(least) < 2 or not run.rule.constant2:
        return smaller, smaller
    # the smallest scores are least[0] + t and least[1] - t after a shift by t: equal at half of their difference
    run.h.add_to_bias(0.5 * (least[1] - least[0]))
    return smaller, 0.5 * (least[0] + least[1]) / length


# The argument is a `State`: a `Run` or a `GramRun`. Schedules of batch solvers take one of these kinds only.
Schedule = Callable[[Any], Iterator[None]]
# The constants without another source were chosen on the data sets of benchmarks.before_after.

# `gap_driven`: a row whose dual variable is at a bound is left out of the active set if its score s is on the side of
# the optimality condition, at a distance |s / unit - 1| above max(MIN_BAND, BAND_PER_GAP * min(gap, 1)). The second
# term takes in more rows while w moves far. A larger active set has longer sweeps; a smaller one leaves out rows that
# start to violate the condition.
MIN_BAND, BAND_PER_GAP = 0.03, 0.3
# `gap_driven`: sweeps of an active set end when the gap on its rows is below ACTIVE_GAP_SHARE * (gap on all rows) or
# ACTIVE_TOL_SHARE * `tol`. Smaller shares spend sweeps on rows that the next set may lack, larger ones evaluations.
ACTIVE_GAP_SHARE, ACTIVE_TOL_SHARE = 0.2, 0.7
# `gap_driven`: largest number of sweeps of the active set (in `shrinking`: of the working set) between evaluations,
# and, after each, of sweeps of the rows that made a step. They find their rows in the cache, but ignore other rows.
MAX_ACTIVE_SWEEPS, MAX_MOVED_SWEEPS = 30, 10
# `gap_driven` on data that are larger than the last cache (`Patterns.large`), if more than the share LARGE_MANY of the
# rows makes a step in the first sweep (mnist 0.05, text 0.7 to 0.97): further sweeps of all rows before the first
# evaluation; the largest share of the rows that are swept again after a step, since repeated sweeps in one order gain
# less than sweeps in new orders; passes of an active set between evaluations, which with the sweeps of moved rows and
# the evaluation itself are less than 5. Chosen on text of 1,000,000 rows.
LARGE_MANY, LARGE_FIRST_SWEEPS, LARGE_MOVED_SHARE, LARGE_PASSES = 0.3, 2, 0.05, 3.4
# Largest number of passes between two evaluations of a shuffled algorithm: with few rows the random order of a pass
# costs more than the visits themselves.
MAX_SHUFFLED_PASSES = 128
# `mini_batches`: smallest number of rows between two evaluations: with fewer, evaluations would cost more than steps.
MIN_BATCH_ROWS = 5000
# Decomposition ends after so many working sets in a row without a smaller upper - lower (`DECREASE`): bounds of kernel
# problems may stay constant for many sets. More delay the end, fewer may end the fit too early.
MAX_IDLE_SETS = 200


def plain(run: State) -> Iterator[None]:
    """Make full passes until one makes no step."""
    return _visit_and_evaluate(run, run.full_passes)


def active_set(run: State) -> Iterator[None]:
    """Make full passes, each followed by passes over the rows that made a step in it, until a full pass makes none.

    This is the active set of the PUMMA paper, section 5.1.
    """
    memory, max_visits = run.patterns.packed_memory(), run.max_visits

    def visit(passes: int) -> int:
        """Make at most so many full passes, each with its active set; return the steps of the last full pass."""
        steps, before = 0, run.presentations
        for _ in range(passes):
            steps = run.sweep_and_narrow(memory, max_visits)
            # an active set of few rows that does not become empty may take more visits than full passes
            if steps == 0 or run.interrupted() or run.presentations - before > max_visits:
                break
        return steps

    return _visit_and_evaluate(run, visit)


def _visit_and_evaluate(run: State, visit: Callable[[int], int]) -> Iterator[None]:
    """Alternate visits and evaluations, and go on to the next rule when no row makes a step.

    The number of full passes between two evaluations doubles, up to `MAX_SHUFFLED_PASSES` and `MAX_VISITS`.

    Parameters
    ----------
    run : State
    visit : callable
        Takes the largest number of full passes, and returns the number of steps in the last of them.
    """
    passes = 1
    run.begin()
    while True:
        steps = visit(passes)
        run.evaluate_iterate()
        if steps == 0:
            run.take_next_rule()
        yield
        # an evaluation that shifts the intercept is a step of the algorithm: one pass is followed by one evaluation
        max_passes = run.max_visits // run.n
        max_passes = min(max_passes, MAX_SHUFFLED_PASSES) if run.algorithm.shuffle else max_passes
        passes = 1 if run.shifts or run.every_epoch else max(1, min(2 * passes, max_passes))


def gap_driven(run: State) -> Iterator[None]:
    """Alternate evaluations of all rows and sweeps of an active set, until the gap on the active set is small.

    The active set holds the rows whose dual variables may still change, by the scores of the evaluation. It is copied
    into contiguous memory in random order (if the algorithm shuffles). After each of its sweeps, the rows that made a
    step are swept again; where many rows of large data move, only if they are few.
    """
    first, second = run.patterns.packed_memory(), run.patterns.packed_memory()
    most_moved = most_visits = np.inf
    steps = run.sweep(run.h, run.order(run.patterns.side_by_side))
    if run.patterns.large and steps > LARGE_MANY * run.n:
        most_moved, most_visits = LARGE_MOVED_SHARE * run.n, LARGE_PASSES * run.n
        for _ in range(LARGE_FIRST_SWEEPS):
            if not run.interrupted():
                run.sweep(run.h, run.order(run.patterns.side_by_side))
    while True:
        run.evaluate_iterate()
        yield
        end = run.presentations + most_visits
        rows = run.active_rows(max(MIN_BAND, BAND_PER_GAP * min(run.best.gap, 1.0)))
        if rows.size == 0:
            run.sweep(run.h, run.order())
            continue
        rows = run.reordered(rows)
        active, places = first.gather(run.h, rows)
        goal = max(ACTIVE_GAP_SHARE * run.best.gap, ACTIVE_TOL_SHARE * run.tol)
        for _ in range(MAX_ACTIVE_SWEEPS):
            order = run.reordered(places, by_stride=True)
            steps = run.sweep(active, order)
            if steps == 0 and run.sweep(run.h, run.order()) == 0:  # no row violates the rule
                run.converged = run.intercept_converged
            if steps == 0 or run.interrupted() or run.partial_gap(active, order) < goal:
                break
            if steps <= most_moved:
                packed, moved = second.gather(active, run.moved[:steps].copy())
                run.repeat(packed, moved, MAX_MOVED_SWEEPS)
            if run.interrupted() or run.presentations + rows.size > end:
                break


def two_level(run: State) -> Iterator[None]:
    """The two-level schedule of the MPU paper.

    A round is a pass over all rows, then at most Nep1 passes over the first-level set: the rows whose score was at most
    c_bar times the margin, or whose dual variable is positive. Each of these is followed by at most Nep2 passes over
    the second-level set: the rows that moved and have a positive dual variable.
    """
    band, max_first, max_second = run.pace  # c_bar - 1, Nep1, Nep2
    first, second = run.patterns.packed_memory(), run.patterns.packed_memory()
    while True:
        order = run.order()
        steps = run.sweep(run.h, order)
        scores = run.scores[: run.n]
        rows = order[(scores <= run.unit * (1.0 + band)) | (run.h.alpha[order] > 0.0)]
        run.evaluate_iterate()
        if steps == 0:
            run.converged = run.intercept_converged
        yield
        active, places = first.gather(run.h, rows)
        for _ in range(max_first):
            steps = run.sweep(active, places)
            second_level = run.moved[:steps]
            second_level = second_level[run.h.alpha[active.ids[second_level]] > 0.0]
            if second_level.size == 0 or run.interrupted():
                break
            packed, moved = second.gather(active, second_level)
            run.repeat(packed, moved, max_second)
        if run.interrupted():
            run.evaluate_iterate()
            yield


def shrinking(run: State) -> Iterator[None]:
    """Make passes with the shrinking of Hsieh et al. (2008), section 3.2.

    The gradient of row i is G_i = s_i / unit - 1. A row at alpha_i = 0 leaves the working set if G_i exceeds the
    largest projected gradient of the sweep before, a row at its cap if G_i is below the smallest. When the projected
    gradients of the set differ by at most eps, all rows come back and eps is halved. With the eps of the algorithm, eps
    is constant, and the algorithm ends when they differ by at most eps and no row is left out.
    """
    eps = 1.0 if run.pace is None else run.pace
    rows, high, low = run.all_rows, np.inf, -np.inf
    passes, cap = 0, run.h.cap
    while True:
        passes += 1
        order = run.reordered(rows)
        before = run.h.alpha[order]
        run.sweep(run.h, order)
        G = run.scores[: order.size] / run.unit - 1.0
        at_zero, at_cap = before == 0.0, before >= cap[order]
        out = (at_zero & (high < G)) | (at_cap & (low > G))
        # the projected gradient: at a bound only the part of G along which alpha can change
        P = np.where(at_zero, np.minimum(G, 0.0), np.where(at_cap, np.maximum(G, 0.0), G))[~out]
        rows = order[~out]
        if rows.size == 0 or P.max() - P.min() <= eps:
            run.evaluate_iterate()
            run.converged = run.pace is not None and rows.size == run.n and run.intercept_converged
            yield
            eps = 0.5 * eps if run.pace is None else eps
            rows, high, low, passes = run.all_rows, np.inf, -np.inf, 0
        else:
            high = P.max() if P.max() > 0.0 else np.inf
            low = P.min() if P.min() < 0.0 else -np.inf
            if passes >= MAX_ACTIVE_SWEEPS or run.interrupted():  # the round ends above eps
                run.evaluate_iterate()
                yield
                passes = 0


def mini_batches(run: State) -> Iterator[None]:
    """Present mini-batches of rows drawn with replacement, with an evaluation after max(n, MIN_BATCH_ROWS) rows.

    The algorithm ends after the number of mini-batches in its pace.
    """
    size, remaining = run.pace
    while True:
        count = int(min(max(1, max(run.n, MIN_BATCH_ROWS) // size), remaining))
        run.batches(count, size)
        remaining -= count
        run.evaluate_iterate()
        run.converged = remaining <= 0
        yield


def points(run: State) -> Iterator[None]:
    """Take the iterates of a batch solver, one in each round.

    After the deadline no solver is started.
    """
    if run.interrupted():
        return
    for point in run.rule(run):
        run.take(point)
        yield


def working_sets(run: GramRun) -> Iterator[None]:
    """Evaluate the iterate of decomposition after every working set; end after `MAX_IDLE_SETS` without better bounds.

    The solver ends by itself when it finds no violation of the optimality conditions.
    """
    task, best, idle, nearest, before = run.task, run.best, 0, np.inf, 0.0
    for point in run.rule(task.problem, task.rows, task.y, task.weights, run.interrupted):
        best.evaluate(point.alpha, point.scores)
        apart = best.upper - (max(best.lower, 0.0) if task.problem.hard else best.lower)
        # bounds cross by rounding, which further working sets do not reduce
        idle = idle + 1 if apart > DECREASE * nearest or apart <= 0.0 else 0
        nearest = apart if idle == 0 else nearest
        run.presentations += task.y.size
        run.steps += int(np.count_nonzero(point.alpha != before))
        before = point.alpha
        yield
        if idle >= MAX_IDLE_SETS:
            return


SCHEDULES: dict[str, Schedule] = {
    "plain": plain,
    "active": active_set,
    "increments": increments,
    "gap": gap_driven,
    "two-level": two_level,
    "shrinking": shrinking,
    "mini-batches": mini_batches,
    "points": points,
    "working-sets": working_sets,
}
