"""Schedules: the rows that an algorithm visits, their order, and the number of visits.

A schedule is a generator of rounds. A round of an online algorithm ends with an evaluation (`Run.evaluate_iterate`)
of all rows at one fixed w, which gives the bounds: none are computed on an active set. An evaluation costs as much as
one pass over the rows (with kernels more: `Run.passes_per_evaluation`).
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

import numpy as np

from ..engine.state import BIAS, FACTOR, Motion, reset_step_counts
from ..engine.sweep import batches, begin, objective_gap, shrinking_sweeps, shuffled, strides
from ..solvers.decomposition import decomposed_points
from .best import DECREASE

if TYPE_CHECKING:
    from ..data.rows import PackedRows
    from .report import Task
    from .runs import Progress, Run


# Entries visited between two checks of the deadline: fewer cost more calls, more delay an interrupt.
ENTRIES_PER_CALL = 1e7
# Largest number of row visits between two evaluations, unless one pass or one evaluation costs more. More visits delay
# the end of a fit; fewer cost more evaluations.
MAX_VISITS = 50_000
# Sweeps of an active or working set between evaluations, at most: they find their rows in the cache, but ignore others.
MAX_ACTIVE_SWEEPS = 30
# Largest gap at which a batch solver that ends by itself has converged. At a larger gap rounding has stopped it, and
# another algorithm may reach a smaller one.
CONVERGED_GAP = 1e-6
# These constants, and the literals below, were chosen on the data sets of benchmarks.before_after.

# The argument is a `Run`: a `LinearRun` or a `GramRun`. Schedules of batch solvers take one of these kinds only.
Schedule = Callable[[Any], Iterator[None]]


def increments(run: Run) -> Iterator[None]:
    """IMA: run its rule at a sequence of increasing target margins, with the rounds of the schedule "active".

    The rule for each target starts at the w of the target before. A target ends in one of three ways: no row violates
    it (reached); it is given up, as it is beyond the middle of the bounds; the budget of steps is spent, which ends the
    algorithm. It also ends when the bounds prove its accuracy. After the third target that is reached, the step length
    eta falls with the inverse square root of the number of steps.
    """
    settings, memory, most_visits = run.settings, run.patterns.packed_memory(), max_visits(run)
    margin, eta, successes, third = 0.0, 1.0, 0, 0
    while True:
        run.rule = run.rule._replace(gamma=margin, eta=eta)
        reset_step_counts(run.h)
        # after `limit` the budget is spent, or margins clearly above the target are ruled out (`max_updates`)
        limit, between = run.steps + settings.max_updates(margin, eta, _squared_length(run)), 1
        while True:
            reached, until = False, run.presentations + between * run.n
            while not reached and run.presentations < until and run.steps < limit and not run.interrupted():
                visits = most_visits if between > 1 else run.n
                # sweeps end by themselves only where some w reaches the target margin
                reached = sweep_and_narrow(run, memory, visits, 100) == 0
            run.evaluate_iterate()
            low, high = _margin_bounds(run)
            proved = settings.accuracy is not None and low >= (1.0 - settings.accuracy) * high
            run.converged = proved or (run.steps >= limit and not reached)
            failed = settings.increment is None and 0.0 < low < margin
            failed = failed and margin > low + 0.5 * (high - low)
            yield
            if reached or run.converged or failed:
                break
            between = max(1, min(2 * between, most_visits // run.n))
        if run.converged:  # no larger margin is tried
            continue
        smaller, balanced = _balance_classes(run)
        if reached:
            successes += 1
            third = run.steps if successes == 3 else third  # steps until the third success
            eta = (third / run.steps) ** 0.5 if successes >= 3 else 1.0
        margin = _next_margin(settings, low if settings.increment is None else balanced, high)
        if settings.from_larger:
            margin = max(balanced, _next_margin(settings, smaller, high))


def _next_margin(settings: Any, low: float, high: float) -> float:
    """Return the next target margin of IMA.

    Parameters
    ----------
    settings : Increments
        With an increment the target is (1 + increment) * low, as in the paper; otherwise it lies between the bounds.
    low, high : float
        A margin that was attained, and an upper bound of every margin.
    """
    if settings.increment is not None:
        return max(low, 0.0) * (1.0 + settings.increment)
    # a larger share of the way takes fewer targets, of which more are out of reach
    return low + 0.25 * (min(high, 3.0 * low) - low) if low > 0.0 else 0.0


def _squared_length(run: Run) -> float:
    """Return |w|_2^2 + (squares of the slack coordinates) + b^2 / c^2, where c^2 is the `constant2` of the rule."""
    h, b = run.h, float(run.h.number[BIAS])
    if run.problem.p == 2:
        square = h.norm2()
    else:
        w = h.number[FACTOR] * h.space.vector.w
        square = float(w @ w) + h.slack.norm2()
    return square + (b * b / run.rule.constant2 if run.rule.constant2 else 0.0)


def _margin_bounds(run: Run) -> tuple[float, float]:
    """Return the best lower and upper bound so far of the largest margin Gamma, slack coordinates included.

    For a soft margin they follow from the bounds of the optimal objective J = 1 / (2 Gamma^2).
    """
    best = run.best
    if run.problem.hard:
        return best.lower, best.upper
    # Gamma = (2 J)^(-1/2): the upper bound of J gives the lower bound of Gamma
    low, high = ((2.0 * value) ** -0.5 if value > 0.0 else np.inf for value in (best.upper, best.lower))
    return low, high


def _balance_classes(run: Run) -> tuple[float, float]:
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


def passes(run: Run) -> Iterator[None]:
    """Make full passes until one makes no step, then go on with the next rule.

    With the schedule "active" each is followed by passes over the rows that made a step in it, until none makes one:
    the active set of the PUMMA paper, section 5.1. The number of full passes between two evaluations doubles, up to
    `MAX_VISITS`.
    """
    memory, most_visits = run.patterns.packed_memory(), max_visits(run)
    narrow, steps, count = run.algorithm.schedule == "active", 0, 1
    set_first_w(run)
    while True:
        before = run.presentations
        for _ in range(count):
            steps = sweep_and_narrow(run, memory, most_visits if narrow else 0)
            # an active set of few rows that does not become empty may take more visits than full passes
            if steps == 0 or run.interrupted() or run.presentations - before > most_visits:
                break
        run.evaluate_iterate()
        if steps == 0:
            run.take_next_rule()
        yield
        # an evaluation that shifts the intercept is a step of the algorithm: one pass is followed by one evaluation
        max_passes = most_visits // run.n
        # with few rows the random order of a pass costs more than the visits themselves
        max_passes = min(max_passes, 128) if run.algorithm.shuffle else max_passes
        count = 1 if run.shifts or run.every_epoch else max(1, min(2 * count, max_passes))


def gap_driven(run: Run) -> Iterator[None]:
    """Alternate evaluations of all rows and sweeps of an active set, until the gap on the active set is small.

    The active set holds the rows whose dual variables may still change, by the scores of the evaluation. It is copied
    into contiguous memory in random order (if the algorithm shuffles). After each of its sweeps, the rows that made a
    step are swept again.
    """
    first, second = run.patterns.packed_memory(), run.patterns.packed_memory()
    sweep(run, run.h, full_order(run, run.patterns.side_by_side))
    while True:
        run.evaluate_iterate()
        yield
        # more rows while w moves far; others, that are left out, may start to violate the condition
        rows = active_rows(run, max(0.03, 0.3 * min(run.best.gap, 1.0)))
        if rows.size == 0:
            sweep(run, run.h, full_order(run))
            continue
        rows = reordered(run, rows)
        active, places = first.gather(run.h, rows)
        # smaller shares spend sweeps on rows that the next set may lack, larger ones evaluations
        goal = max(0.2 * run.best.gap, 0.7 * run.tol)
        for _ in range(MAX_ACTIVE_SWEEPS):
            order = reordered(run, places, by_stride=True)
            steps = sweep(run, active, order)
            if steps == 0 and sweep(run, run.h, full_order(run)) == 0:  # no row violates the rule
                run.converged = run.intercept_converged
            if steps == 0 or run.interrupted() or partial_gap(run, active, order) < goal:
                break
            packed, moved = second.gather(active, run.moved[:steps].copy())
            sweep(run, packed, moved, 10)
            if run.interrupted():
                break


def two_level(run: Run) -> Iterator[None]:
    """The two-level schedule of the MPU paper.

    A round is a pass over all rows, then at most Nep1 passes over the first-level set: the rows whose score was at most
    c_bar times the margin, or whose dual variable is positive. Each of these is followed by at most Nep2 passes over
    the second-level set: the rows that moved and have a positive dual variable.
    """
    band, max_first, max_second = run.settings  # c_bar - 1, Nep1, Nep2
    first, second = run.patterns.packed_memory(), run.patterns.packed_memory()
    while True:
        order = full_order(run)
        steps = sweep(run, run.h, order)
        scores = run.scores[: run.n]
        rows = order[(scores <= run.unit * (1.0 + band)) | (run.h.alpha[order] > 0.0)]
        run.evaluate_iterate()
        if steps == 0:
            run.converged = run.intercept_converged
        yield
        active, places = first.gather(run.h, rows)
        for _ in range(max_first):
            steps = sweep(run, active, places)
            second_level = run.moved[:steps]
            second_level = second_level[run.h.alpha[active.ids[second_level]] > 0.0]
            if second_level.size == 0 or run.interrupted():
                break
            packed, moved = second.gather(active, second_level)
            sweep(run, packed, moved, max_second)
        if run.interrupted():
            run.evaluate_iterate()
            yield


def shrinking(run: Run) -> Iterator[None]:
    """Make passes with the shrinking of Hsieh et al. (2008), section 3.2.

    The gradient of row i is G_i = s_i / unit - 1. A row at alpha_i = 0 leaves the working set if G_i exceeds the
    largest projected gradient of the sweep before, a row at its cap if G_i is below the smallest. When the projected
    gradients of the set differ by at most eps, all rows come back and eps is halved. With the eps of the algorithm, eps
    is constant, and the algorithm ends when they differ by at most eps and no row is left out.
    """
    eps = 1.0 if run.settings is None else run.settings
    rows, high, low = run.all_rows, np.inf, -np.inf
    passes, cap = 0, run.h.cap
    while True:
        passes += 1
        order = reordered(run, rows)
        before = run.h.alpha[order]
        sweep(run, run.h, order)
        G = run.scores[: order.size] / run.unit - 1.0
        at_zero, at_cap = before == 0.0, before >= cap[order]
        out = (at_zero & (high < G)) | (at_cap & (low > G))
        # the projected gradient: at a bound only the part of G along which alpha can change
        P = np.where(at_zero, np.minimum(G, 0.0), np.where(at_cap, np.maximum(G, 0.0), G))[~out]
        rows = order[~out]
        if rows.size == 0 or P.max() - P.min() <= eps:
            run.evaluate_iterate()
            run.converged = run.settings is not None and rows.size == run.n and run.intercept_converged
            yield
            eps = 0.5 * eps if run.settings is None else eps
            rows, high, low, passes = run.all_rows, np.inf, -np.inf, 0
        else:
            high = P.max() if P.max() > 0.0 else np.inf
            low = P.min() if P.min() < 0.0 else -np.inf
            if passes >= MAX_ACTIVE_SWEEPS or run.interrupted():  # the round ends above eps
                run.evaluate_iterate()
                yield
                passes = 0


def mini_batches(run: Run) -> Iterator[None]:
    """Present mini-batches of rows drawn with replacement, with an evaluation after n rows, but at least 5000.

    With fewer rows evaluations would cost more than steps. The algorithm ends after the number of mini-batches in its
    settings.
    """
    (size, remaining), steps = run.settings, 0
    scores = np.empty(size)
    while True:
        count = int(min(max(1, max(run.n, 5000) // size), remaining))
        rows, resumes = run.rng.integers(run.n, size=count * size, dtype=np.uint32), True
        while resumes:
            steps = batches(run.rule, run.h, rows, scores)
            resumes = run.load_missing_rows(run.h, rows)
        run.steps += steps
        run.presentations += rows.size
        remaining -= count
        run.evaluate_iterate()
        run.converged = remaining <= 0
        yield


def points(run: Any) -> Iterator[None]:
    """Evaluate the iterates of a batch solver, one in each round. After the deadline no solver is started."""
    for point in () if run.interrupted() else run.rule(run):
        run.evaluate(*point[:3])
        run.presentations += run.n
        yield


def working_sets(run: Progress, task: Task, interrupted: Callable[[], bool]) -> Iterator[None]:
    """Evaluate the iterate of decomposition after every working set; end after 200 in a row without better bounds.

    Bounds of kernel problems may stay constant for many sets. The solver ends by itself when it finds no violation of
    the optimality conditions.
    """
    best, idle, nearest, before = run.best, 0, np.inf, 0.0
    for point in decomposed_points(task.problem, task.rows, task.y, task.weights, interrupted):
        best.evaluate(point)
        apart = best.upper - (max(best.lower, 0.0) if task.problem.hard else best.lower)
        # bounds cross by rounding, which further working sets do not reduce
        idle = idle + 1 if apart > DECREASE * nearest or apart <= 0.0 else 0
        nearest = apart if idle == 0 else nearest
        run.presentations += task.y.size
        run.steps += int(np.count_nonzero(point.alpha != before))
        before = point.alpha
        yield
        if idle >= 200:
            return


# the presentation of rows to the rule


def active_rows(run: Run, band: float) -> np.ndarray:
    """Return the rows whose dual variable may still change, by the scores of the last evaluation.

    A row is left out if alpha = 0 and its score is at least unit (1 + band), or if alpha is at its cap and its
    score is at most unit (1 - band).
    """
    low, high = run.unit * (1.0 - band), run.unit * (1.0 + band)
    s, a = run.scores[: run.n], run.h.alpha
    movable = ((s < high) | (a > 0.0)) & ((s > low) | (a < run.h.cap))
    return np.flatnonzero(movable).astype(np.uint32)


def partial_gap(run: Run, h: Any, order: np.ndarray) -> float:
    """Return an estimate of the relative gap from the rows `order` of h, with their scores in the last sweep.

    Soft: best lower bound plus the terms of these rows in primal minus dual objective. Hard: smallest score / |w|
    against |w| / sum alpha.
    """
    if run.problem.hard:
        length, total = run.length2() ** 0.5, float(run.h.alpha.sum())
        if not (length > 0.0 and total > 0.0):
            return np.inf
        return run.problem.gap(float(run.scores[: order.size].min()) / length, length / total)
    difference = objective_gap(h, order, run.scores, run.unit) / run.unit / run.unit
    lower = run.best.lower
    if run.problem.first_power:
        # of the engine's problem: sum alpha - |v|^2 / 2, where sum alpha / |v| is the bound
        lower = run.multiplier * (lower - 0.5 * run.multiplier)
    return run.problem.gap(lower, lower + difference)


def set_first_w(run: Run) -> None:
    """Set the first w of a rule that is initialised with patterns; other rules begin at w = 0.

    These patterns are, in the order of presentation, the first of each class and the first that is not zero.
    """
    if hasattr(run.rule, "start"):
        order = full_order(run)
        sides = run.y[order] > 0.0, run.y[order] < 0.0, run.h.square[order] > 0.0
        run.patterns.fetch(np.unique(np.concatenate([order[side][:1] for side in sides])))
        begin(run.rule, run.h, order)


def full_order(run: Run, block: int = 1) -> np.ndarray:
    """Return the rows in the order of a full pass: random if the algorithm shuffles, else that of the data.

    A random order permutes blocks of `block` successive rows.
    """
    return shuffled(run.n, run.rng, block) if run.algorithm.shuffle else run.all_rows


def reordered(run: Run, rows: np.ndarray, by_stride: bool = False) -> np.ndarray:
    """Return these rows in random order if the algorithm shuffles, by a random stride with `by_stride`."""
    if not run.algorithm.shuffle:
        return rows
    return rows[(strides if by_stride else shuffled)(rows.size, run.rng)]


def max_visits(run: Run) -> int:
    """The largest number of row visits between two evaluations (`passes_per_evaluation`)."""
    # of long rows, or with powers, those that take 0.3 s at about 1 ns an entry; not tuned
    visits = min(MAX_VISITS, int(3e8 / visit_cost(run)))
    return max(visits, run.passes_per_evaluation * run.n)


def visit_cost(run: Run) -> float:
    """Entries that cost as much as a row visit: those of a long row, or in other norms the powers of a step."""
    if run.problem.euclidean and run.algorithm.motion is not Motion.FLEXIBLE:
        # at least 100, as its numbers come from several places of memory: 0.1 to 0.2 us on 1,000,000 x 5
        return max(run.patterns.entries / run.n, 100)
    return 50 * run.patterns.d  # as if every visit made a step, with a power for every column


def visits_per_call(run: Run) -> int:
    """The number of row visits between two checks of the deadline (`ENTRIES_PER_CALL`)."""
    return max(1, int(ENTRIES_PER_CALL / visit_cost(run)))


def sweep(run: Run, h: Any, order: np.ndarray, passes: int = 1) -> int:
    """Sweep these rows of h until none makes a step, at most `passes` times; return the steps of the last sweep.

    The score of row order[k] is written to `scores[k]`, and the rows that made a step to `moved[:steps]`. An
    interrupted sweep returns at least 1, since rows that were not presented may make a step.
    """
    size = visits_per_call(run)
    while True:
        steps = sweeps = 0
        for first in range(0, order.size, size):
            if first and run.interrupted():
                return max(steps, 1)
            part, most = slice(first, first + size), min(passes, max(1, size // order.size))
            scores, moved = run.scores[part], run.moved[steps:]
            last, sweeps, made = run.repeated(run.rule, h, order[part], scores, moved, most)
            run.presentations += order[part].size * sweeps
            run.steps += made
            steps += last
        passes -= sweeps
        if min(steps, sweeps, passes) <= 0 or run.interrupted():
            return steps


def sweep_and_narrow(run: Run, memory: PackedRows, most_visits: int, passes: int = sys.maxsize) -> int:
    """Make a full pass, then sweep the rows that made a step until none does; return the steps of the full pass.

    Each sweep after the full pass visits the rows that made a step in the sweep before.

    Parameters
    ----------
    memory : PackedRows
        Memory for the rows that made a step.
    most_visits : int
        Largest number of row visits after the full pass; 0 for the full pass alone.
    passes : int
        Largest number of sweeps after the full pass.
    """
    steps = size = sweep(run, run.h, full_order(run))
    if not (steps and most_visits) or run.interrupted():
        return steps
    h, rows = memory.gather(run.h, run.moved[:steps].copy())
    passes, visits, goes_on = max(1, min(passes, most_visits // steps)), visits_per_call(run), True
    while goes_on:
        if size > visits:
            size, sweeps, resumes = sweep(run, h, rows[:size]), 1, False
            rows = run.moved[:size].copy()
        else:
            size, presented, made, sweeps = shrinking_sweeps(
                run.rule, h, rows, size, run.scores, min(passes, visits // size)
            )
            run.presentations += presented
            run.steps += made
            resumes = run.load_missing_rows(h, rows[:size])
        passes -= sweeps
        goes_on = resumes or (min(size, passes, sweeps) > 0 and not run.interrupted())
    return steps


SCHEDULES: dict[str, Schedule] = {
    "plain": passes,
    "active": passes,
    "increments": increments,
    "gap": gap_driven,
    "two-level": two_level,
    "shrinking": shrinking,
    "mini-batches": mini_batches,
    "points": points,
    "working-sets": lambda run: working_sets(run, run.task, run.interrupted),
}
