"""Which rows, in what order, how often: plain Python over what the sweeps saw.

A schedule is a generator: each step of it is one round and ends with `run.score_rows()`, the bounds at one fixed w,
so that nothing is ever certified on an active set.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from enum import Enum
from typing import TYPE_CHECKING, Any

import numpy as np

from ..algorithms.batch.cutting_plane import CLOSE, Hinge, Model
from ..engine.order import shuffled, strides
from ..engine.state import BIAS, FACTOR, reset_step_counts
from ..problem.intercept import best_intercept

if TYPE_CHECKING:
    from .gram_run import GramRun
    from .run import Run
    from .state import State


class Step(Enum):
    """What a stage of a fit has just done."""

    ITERATE = "made an iterate"
    WAIT = "expects rows of the kernel, which other problems on the same rows may need too"
    END = "has no further iterate"


# Of a `State`; those of batch solvers, of a `Run` or a `GramRun`. None is an iterate.
Schedule = Callable[[Any], Iterator[Step | None]]

NEAR = 0.03  # rows farther from the margin than this share of it, and at their bound, rest for a round
MOVING = 0.3  # the same in units of the gap, up to one: while w moves far, more rows come near
RATIO = 0.2  # an active set is left when its own gap is this share of the gap of all
PASSES = 128  # most passes between two looks where each has an order of its own, which is dear on few rows
BETWEEN = 50_000  # most rows presented between two looks, unless these are dear or one pass has more
FEW = 5000  # fewest rows presented in mini-batches between two looks
AGAIN = 100  # most passes over those that made a step, where a margin may be out of reach
LEAP, HOPELESS = 0.25, 0.5  # where the next margin lies between the bounds, and where one is given up
TRIPLE = 3.0  # the most that a margin is raised by
AS_GOOD = 1e-6  # a gap at which a batch solver that stops has come as near as numbers do
# Working sets without bounds that are nearer than this share of the last distance: as near as float64 comes.
IDLE, BETTER = 200, 0.999
INNER, CORE = 30, 10  # most sweeps of the active set, and of the rows that just moved


def plain(run: State) -> Iterator[None]:
    """Full passes; the end is one without a step. Looks, each as dear as a pass, come at doubling distances."""
    between = 1
    run.begin()
    while True:
        steps = run.passes(between)
        run.score_rows()
        if steps == 0:
            run.advance()
        yield
        between = _more(between, run)


def active_set(run: State) -> Iterator[None]:
    """The PUMMA paper, section 5.1: a full pass, then passes over those that made a step until none of them does."""
    room, between, most = run.patterns.room(), 1, _most_between(run)
    run.begin()
    while True:
        steps, before = 0, run.presentations
        for _ in range(between):
            steps = run.sweep(run.h, run.order())
            if steps == 0 or run.interrupted():
                break
            active, rows = room.gather(run.h, run.moved[:steps].copy())
            run.shrinking_sweeps(active, rows, max(1, most // steps))
            if run.presentations - before > most:  # sets that do not empty are long, however few their rows
                break
        run.score_rows()
        if steps == 0:
            run.advance()
        yield
        between = _more(between, run)


def increments(run: State) -> Iterator[None]:
    """IMA: the rule at rising margins, each begun where the last one ended, in the rounds of `active_set`."""
    pace, room, most = run.pace, run.patterns.room(), _most_between(run)

    def raised(low: float, high: float) -> float:
        """The next margin, above the one that was reached."""
        if pace.increment is not None:
            return max(low, 0.0) * (1.0 + pace.increment)
        return low + LEAP * (min(high, TRIPLE * low) - low) if low > 0.0 else 0.0

    margin, eta, successes, second = 0.0, 1.0, 0, 0
    if run.begun:
        run.score_rows()
        margin = raised(*_margins(run))
    while True:
        run.rule = run.rule._replace(gamma=margin, eta=eta)
        reset_step_counts(run.h)
        spent, between = run.steps + pace.most(margin, eta, _start2(run)), 1
        while True:
            reached, until = False, run.presentations + between * run.n
            while not reached and run.presentations < until and run.steps < spent and not run.interrupted():
                steps = run.sweep(run.h, run.order())
                reached = steps == 0
                if steps:
                    active, rows = room.gather(run.h, run.moved[:steps].copy())
                    run.shrinking_sweeps(active, rows, max(1, min(AGAIN, (most if between > 1 else run.n) // steps)))
            run.score_rows()
            low, high = _margins(run)
            proved = pace.accuracy is not None and low >= (1.0 - pace.accuracy) * high
            run.converged = proved or (run.steps >= spent and not reached)
            idle = pace.increment is None and 0.0 < low < margin and margin > low + HOPELESS * (high - low)
            yield
            if reached or run.converged or idle:
                break
            between = max(1, min(2 * between, most // run.n))
        if run.converged:  # nothing else is going to be tried
            continue
        middle = _to_the_middle(run)
        if reached:
            successes += 1
            second = run.steps if successes == 3 else second
            eta = (second / run.steps) ** 0.5 if successes >= 3 else 1.0
        margin = raised(low if pace.increment is None else middle, high)


def _start2(run: State) -> float:
    """The squared Euclidean length of (w, own coordinates, b / c)."""
    h, b = run.h, float(run.h.number[BIAS])
    if run.problem.p == 2:
        square = h.norm2()
    else:
        w = h.number[FACTOR] * h.space.vector.w
        square = float(w @ w) + h.slack.norm2()
    return square + (b * b / run.rule.lift if run.rule.lift else 0.0)


def _margins(run: State) -> tuple[float, float]:
    """The best bounds so far on the largest margin, own coordinates included: J = 1 / (2 Gamma^2)."""
    if run.problem.hard:
        return run.lower, run.upper
    low = (2.0 * run.upper) ** -0.5 if run.upper > 0.0 else np.inf
    return low, (2.0 * run.lower) ** -0.5 if run.lower > 0.0 else np.inf


def _to_the_middle(run: State) -> float:
    """Both classes get the same smallest score, where the rule learns the bias; the margin at the last look."""
    least = [float(run.scores[side].min()) for side in (run.y > 0.0, run.y < 0.0) if side.any()]
    size = run.h.norm2() ** 0.5
    if not size > 0.0:
        return 0.0
    if len(least) < 2 or not run.rule.lift:
        return min(least) / size
    run.h.add_to_bias(0.5 * (least[1] - least[0]))
    return 0.5 * (least[0] + least[1]) / size


def _most_between(run: State) -> int:
    """Most rows presented between two looks."""
    return max(BETWEEN, run.per_look * run.n)


def _more(between: int, run: State) -> int:
    """Twice as many passes until the next look, as long as they are short, and looks are not steps themselves."""
    most = _most_between(run) // run.n
    most = min(most, PASSES) if run.algorithm.shuffle else most
    return 1 if run.shifts else max(1, min(2 * between, most))


def gap_driven(run: State) -> Iterator[None]:
    """Look at all; pack, in random order, what may still move; sweep it until its own gap is a fifth."""
    first, second = run.patterns.room(), run.patterns.room()
    run.sweep(run.h, shuffled(run.n, run.rng, run.patterns.side_by_side))
    while True:
        run.score_rows()
        yield
        rows = run.open_rows(max(NEAR, MOVING * min(run.gap, 1.0)))
        if rows.size == 0:
            run.sweep(run.h, shuffled(run.n, run.rng))
            continue
        rows = rows[shuffled(rows.size, run.rng)]
        active, places = first.gather(run.h, rows)
        goal = max(RATIO * run.gap, 0.7 * run.tol)
        for _ in range(INNER):
            order = places[strides(rows.size, run.rng)]
            steps = run.sweep(active, order)
            if steps == 0 and run.sweep(run.h, shuffled(run.n, run.rng)) == 0:
                run.converged = run.settled  # every row is right: nothing would ever change
            if steps == 0 or run.interrupted() or run.partial_gap(active, order) < goal:
                break
            packed, moved = second.gather(active, run.moved[:steps].copy())
            run.repeat(packed, moved, CORE)
            if run.interrupted():
                break


def two_level(run: State) -> Iterator[None]:
    """The MPU paper: all rows; Nep1 times {those near the margin or in use; Nep2 times those that moved}."""
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
    """Hsieh et al., section 3.2: drop what stays at its bound by more than the last sweep's violations."""
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
    """Mini-batches of rows drawn with replacement; a look after as many rows as there are, or a few thousand."""
    size, left = run.pace
    while True:
        count = int(min(max(1, max(run.n, FEW) // size), left))
        run.batches(count, size)
        left -= count
        run.score_rows()
        run.converged = left <= 0
        yield


def planes(run: Run) -> Iterator[None]:
    """Look where the model is least; raise the model by a plane that touches the loss nearby."""

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
        else:  # the model is the loss there; where the bounds do not say so, its least point is not yet found
            run.converged = run.gap <= CLOSE
        run.converged = run.converged or run.upper - run.lower <= near
        yield
        run.move_to(*model.least())


def points(run: Run) -> Iterator[None]:
    """A batch solver's points, as good as they come; the last one is its best. What is known counts as the first.

    Where dual coordinate descent makes one in a single pass, there is none once it is time to stop.
    """
    task = run.task
    if task.start is not None and task.point is not None:
        run.evaluate(*task.point, task.start)
        run.presentations += run.n
        yield
    replaceable = run.problem.euclidean
    if replaceable and run.interrupted():
        return
    for point in run.rule.made(run):
        if replaceable and not run.problem.hard and not point[0].any() and run.interrupted():
            return
        run.rule.show(run, point)
        run.presentations += run.n
        yield
    run.converged = run.gap <= AS_GOOD and not run.interrupted()
    yield


def working_sets(run: GramRun) -> Iterator[Step | None]:
    """Yield after every working set; end without a violation of optimality, or after many that improve no bound."""
    task, tracker, idle, nearest = run.task, run.tracker, 0, np.inf
    before = np.zeros(task.y.size) if task.start is None else task.start
    for point in run.rule(task.problem, task.rows, task.y, task.weights, run.interrupted, task.start):
        if point is None:
            yield Step.WAIT
            continue
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
