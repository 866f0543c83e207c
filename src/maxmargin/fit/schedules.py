"""Schedules: which rows an algorithm visits, in what order, how often.

A schedule is a generator: each step of it is one round and ends with `run.score_rows()`, the bounds at one fixed w,
so that nothing is ever certified on an active set.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

import numpy as np

from ..algorithms.batch.cutting_plane import CLOSE, Hinge, Model
from ..data.rows import PackedRows
from ..engine.order import shuffled, strides
from ..engine.state import BIAS, FACTOR, reset_step_counts
from ..problem.intercept import best_intercept

if TYPE_CHECKING:
    from .gram_run import GramRun
    from .run import Run
    from .state import State


# Of a `State`; schedules of batch solvers, of a `Run` or a `GramRun`.
Schedule = Callable[[Any], Iterator[None]]

# Gap-driven schedule. Rows at a bound of their dual variable rest for a round where their score is farther from the
# margin than NEAR of it, or than MOVING times the gap (up to one): while w moves far, more rows come near. More rows
# cost longer sweeps, fewer have to be found by the next look.
NEAR, MOVING = 0.03, 0.3
# An active set is left when its own gap is RATIO of the gap of all, or ENOUGH of `tol`: a smaller gap would be spent on
# rows that the next look may replace.
RATIO, ENOUGH = 0.2, 0.7
# Most sweeps of the active set between two looks, and of the rows that just moved: their scores are in the cache, but
# the other rows change meanwhile.
INNER, CORE = 30, 10
# Most passes between two looks where each has an order of its own, which is dear on few rows.
PASSES = 128
# Most rows presented between two looks, unless these are dear or one pass has more: a look costs a pass.
BETWEEN = 50_000
# Fewest rows presented in mini-batches between two looks.
FEW = 5000
# Most passes over the rows that made a step, where a margin may be out of reach.
AGAIN = 100
# IMA: where the next margin lies between the bounds, where one is given up, and the most that a margin is raised by.
# The paper raises it by a constant share; steps between the bounds reach the optimum in fewer margins.
LEAP, HOPELESS, TRIPLE = 0.25, 0.5, 3.0
# A gap at which a batch solver that stops has come as near as float64 does.
AS_GOOD = 1e-6
# Working sets without bounds that are nearer than BETTER of the last distance, after which decomposition has come as
# near as float64 does. Bounds of kernel problems may rest for many working sets.
IDLE, BETTER = 200, 0.999


def plain(run: State) -> Iterator[None]:
    """Full passes until one makes no step."""
    return _looks(run, run.passes)


def active_set(run: State) -> Iterator[None]:
    """The PUMMA paper, section 5.1: a full pass, then passes over those that made a step until none of them does."""
    room, most = run.patterns.room(), _most_between(run)

    def visit(passes: int) -> int:
        steps, before = 0, run.presentations
        for _ in range(passes):
            steps = _sweep_and_narrow(run, room, most)
            # sets that do not empty are long, however few their rows
            if steps == 0 or run.interrupted() or run.presentations - before > most:
                break
        return steps

    return _looks(run, visit)


def _looks(run: State, visit: Callable[[int], int]) -> Iterator[None]:
    """Visit rows until none makes a step. Looks, each as dear as a pass, come at doubling distances.

    Parameters
    ----------
    run : State
    visit : callable
        Makes so many full passes at most; returns the steps of the last.
    """
    passes = 1
    run.begin()
    while True:
        steps = visit(passes)
        run.score_rows()
        if steps == 0:
            run.advance()
        yield
        # twice as many passes, where they are short and looks are not steps themselves
        most = _most_between(run) // run.n
        most = min(most, PASSES) if run.algorithm.shuffle else most
        passes = 1 if run.shifts else max(1, min(2 * passes, most))


def increments(run: State) -> Iterator[None]:
    """IMA: the rule at rising margins, each begun where the last one ended, in the rounds of `active_set`."""
    pace, room, most = run.pace, run.patterns.room(), _most_between(run)
    margin, eta, successes, third = 0.0, 1.0, 0, 0
    if run.begun:
        run.score_rows()
        margin = _raised(pace, *_margins(run))
    while True:
        run.rule = run.rule._replace(gamma=margin, eta=eta)
        reset_step_counts(run.h)
        spent, between = run.steps + pace.most(margin, eta, _start2(run)), 1
        while True:
            reached, until = False, run.presentations + between * run.n
            while not reached and run.presentations < until and run.steps < spent and not run.interrupted():
                visits = most if between > 1 else run.n
                reached = _sweep_and_narrow(run, room, visits, AGAIN) == 0
            run.score_rows()
            low, high = _margins(run)
            proved = pace.accuracy is not None and low >= (1.0 - pace.accuracy) * high
            run.converged = proved or (run.steps >= spent and not reached)
            idle = pace.increment is None and 0.0 < low < margin and margin > low + HOPELESS * (high - low)
            yield
            if reached or run.converged or idle:
                break
            between = max(1, min(2 * between, most // run.n))
        if run.converged:  # no larger margin is tried
            continue
        balanced = _balance_classes(run)
        if reached:
            successes += 1
            third = run.steps if successes == 3 else third
            eta = (third / run.steps) ** 0.5 if successes >= 3 else 1.0
        margin = _raised(pace, low if pace.increment is None else balanced, high)


def _sweep_and_narrow(run: State, room: PackedRows, most: int, passes: int = sys.maxsize) -> int:
    """Make a full pass, then present the rows that made a step until none does; return the steps of the full pass.

    Parameters
    ----------
    run : State
    room : PackedRows
        Memory for the rows that made a step.
    most : int
        Row visits after the full pass.
    passes : int
        Passes over the rows that made a step.
    """
    steps = run.sweep(run.h, run.order())
    if steps and not run.interrupted():
        active, rows = room.gather(run.h, run.moved[:steps].copy())
        run.shrinking_sweeps(active, rows, max(1, min(passes, most // steps)))
    return steps


def _raised(pace: Any, low: float, high: float) -> float:
    """Return the margin that IMA tries next, above `low`, which was reached; `high` bounds all margins."""
    if pace.increment is not None:
        return max(low, 0.0) * (1.0 + pace.increment)
    return low + LEAP * (min(high, TRIPLE * low) - low) if low > 0.0 else 0.0


def _start2(run: State) -> float:
    """Return the squared Euclidean length of (w, own coordinates, b / c)."""
    h, b = run.h, float(run.h.number[BIAS])
    if run.problem.p == 2:
        square = h.norm2()
    else:
        w = h.number[FACTOR] * h.space.vector.w
        square = float(w @ w) + h.slack.norm2()
    return square + (b * b / run.rule.lift if run.rule.lift else 0.0)


def _margins(run: State) -> tuple[float, float]:
    """Return the best bounds so far on the largest margin, own coordinates included: J = 1 / (2 Gamma^2)."""
    best = run.best
    if run.problem.hard:
        return best.lower, best.upper
    low, high = ((2.0 * value) ** -0.5 if value > 0.0 else np.inf for value in (best.upper, best.lower))
    return low, high


def _balance_classes(run: State) -> float:
    """Shift the bias so that both classes have the same smallest score, where the rule learns it; return the margin."""
    least = [float(run.scores[side].min()) for side in (run.y > 0.0, run.y < 0.0) if side.any()]
    size = run.h.norm2() ** 0.5
    if not size > 0.0:
        return 0.0
    if len(least) < 2 or not run.rule.lift:
        return min(least) / size
    run.h.add_to_bias(0.5 * (least[1] - least[0]))
    return 0.5 * (least[0] + least[1]) / size


def _most_between(run: State) -> int:
    """Return the most rows presented between two looks."""
    return max(BETWEEN, run.per_look * run.n)


def gap_driven(run: State) -> Iterator[None]:
    """Look at all rows; pack, in random order, those that may still move; sweep these until their own gap is small."""
    first, second = run.patterns.room(), run.patterns.room()
    run.sweep(run.h, shuffled(run.n, run.rng, run.patterns.side_by_side))
    while True:
        run.score_rows()
        yield
        rows = run.open_rows(max(NEAR, MOVING * min(run.best.gap, 1.0)))
        if rows.size == 0:
            run.sweep(run.h, shuffled(run.n, run.rng))
            continue
        rows = rows[shuffled(rows.size, run.rng)]
        active, places = first.gather(run.h, rows)
        goal = max(RATIO * run.best.gap, ENOUGH * run.tol)
        for _ in range(INNER):
            order = places[strides(rows.size, run.rng)]
            steps = run.sweep(active, order)
            if steps == 0 and run.sweep(run.h, shuffled(run.n, run.rng)) == 0:
                run.converged = run.settled  # no row violates the rule: another pass changes nothing
            if steps == 0 or run.interrupted() or run.partial_gap(active, order) < goal:
                break
            packed, moved = second.gather(active, run.moved[:steps].copy())
            run.repeat(packed, moved, CORE)
            if run.interrupted():
                break


def two_level(run: State) -> Iterator[None]:
    """The MPU paper: all rows; Nep1 times {rows near the margin or with dual variables; Nep2 times rows that moved}."""
    near, inner, core = run.pace
    first, second = run.patterns.room(), run.patterns.room()
    while True:
        order = shuffled(run.n, run.rng)
        steps = run.sweep(run.h, order)
        seen = run.scores[: run.n]
        rows = order[(seen <= run.unit * (1.0 + near)) | (run.h.alpha[order] > 0.0)]
        run.score_rows()
        if steps == 0:
            run.converged = run.settled
        yield
        active, places = first.gather(run.h, rows)
        for _ in range(inner):
            steps = run.sweep(active, places)
            some = run.moved[:steps]
            some = some[run.h.alpha[active.ids[some]] > 0.0]
            if some.size == 0 or run.interrupted():
                break
            packed, moved = second.gather(active, some)
            run.repeat(packed, moved, core)
        if run.interrupted():
            run.score_rows()
            yield


def shrinking(run: State) -> Iterator[None]:
    """Hsieh et al., section 3.2: leave out rows that stay at their bound by more than the last sweep's violations."""
    rows, high, low, eps = run.line, np.inf, -np.inf, 1.0
    cap = run.h.cap
    passes = 0
    while True:
        passes += 1
        order = rows[shuffled(rows.size, run.rng)]
        before = run.h.alpha[order]
        run.sweep(run.h, order)
        G = run.scores[: order.size] / run.unit - 1.0
        at_zero, at_cap = before == 0.0, before >= cap[order]
        out = (at_zero & (high < G)) | (at_cap & (low > G))
        P = np.where(at_zero, np.minimum(G, 0.0), np.where(at_cap, np.maximum(G, 0.0), G))[~out]
        rows = order[~out]
        if rows.size == 0 or P.max() - P.min() <= eps:
            run.score_rows()
            yield
            rows, high, low, eps, passes = run.line, np.inf, -np.inf, 0.5 * eps, 0
        else:
            high = P.max() if P.max() > 0.0 else np.inf
            low = P.min() if P.min() < 0.0 else -np.inf
            if passes >= INNER or run.interrupted():  # a round ends, whether or not it comes to eps
                run.score_rows()
                yield
                passes = 0


def mini_batches(run: State) -> Iterator[None]:
    """Mini-batches of rows drawn with replacement; a look after as many rows as there are, and FEW at least."""
    size, left = run.pace
    while True:
        count = int(min(max(1, max(run.n, FEW) // size), left))
        run.batches(count, size)
        left -= count
        run.score_rows()
        run.converged = left <= 0
        yield


def planes(run: Run) -> Iterator[None]:
    """Cutting planes: a look at the minimiser of the model, which a plane that touches the loss nearby then raises."""

    def intercept(z: np.ndarray) -> float:
        return best_intercept(run.problem, z, run.y, run.weights)

    near, idle = run.pace
    loss = Hinge(run.problem, run.patterns.X, run.y, run.weights, intercept)
    model = Model(loss, run.h.space.vector.w.size, idle)
    best = None
    while True:
        run.score_rows()
        new = loss.at(run.h.space.vector.w.copy(), run.y * run.scores)
        best = run.rule.better(loss, new if best is None else best, new)
        run.offer(best.w, best.b, loss.value(best))
        for place in (run.rule.touch(loss, best, new), new):
            plane = loss.plane(place)
            run.presentations += run.n
            if model.rises(plane, new.w):
                model.add(plane)
                break
        else:  # the model is the loss there; where the bounds do not agree, its minimiser is not yet found
            run.converged = run.best.gap <= CLOSE
        run.converged = run.converged or run.best.upper - run.best.lower <= near
        yield
        run.move_to(*model.least())


def points(run: Run) -> Iterator[None]:
    """Iterates of a batch solver; the last one is its best. A point to begin with is the first.

    Where a single pass of dual coordinate descent makes a model, no iterate is evaluated after the deadline.
    """
    task = run.task
    if task.start is not None and task.point is not None:
        run.evaluate(*task.point, task.start)
        run.presentations += run.n
        yield
    replaceable = run.problem.euclidean
    if replaceable and run.interrupted():
        return
    for point in run.rule.iterates(run):
        if replaceable and not run.problem.hard and not point[0].any() and run.interrupted():
            return
        run.rule.evaluate(run, point)
        run.presentations += run.n
        yield
    run.converged = run.best.gap <= AS_GOOD and not run.interrupted()
    yield


def working_sets(run: GramRun) -> Iterator[None]:
    """Yield after every working set; end without a violation of optimality, or after many that improve no bound."""
    task, tracker, idle, nearest = run.task, run.best, 0, np.inf
    before = np.zeros(task.y.size) if task.start is None else task.start
    for point in run.rule(task.problem, task.rows, task.y, task.weights, run.interrupted, task.start):
        tracker.evaluate(point.alpha, point.scores)
        apart = tracker.upper - (max(tracker.lower, 0.0) if task.problem.hard else tracker.lower)
        # bounds that cross are rounding, of which more sets bring no less
        idle = idle + 1 if apart > BETTER * nearest or apart <= 0.0 else 0
        nearest = apart if idle == 0 else nearest
        run.presentations += task.y.size
        run.steps += int(np.count_nonzero(point.alpha != before))
        before = point.alpha
        yield
        if idle >= IDLE:
            return


SCHEDULES: dict[str, Schedule] = {
    "plain": plain,
    "active": active_set,
    "increments": increments,
    "gap": gap_driven,
    "two-level": two_level,
    "shrinking": shrinking,
    "mini-batches": mini_batches,
    "planes": planes,
    "points": points,
    "working-sets": working_sets,
}
