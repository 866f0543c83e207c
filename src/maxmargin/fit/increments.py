"""The schedule of IMA: its rule at a sequence of increasing target margins."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np

from ..engine.state import BIAS, FACTOR, reset_step_counts

if TYPE_CHECKING:
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
    if run.starts_at_point:
        run.evaluate_iterate()
        margin = _next_margin(pace, *_margin_bounds(run))
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
