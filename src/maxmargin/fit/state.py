"""The state of a solver between two rounds: the engine's state, its rule, and the best points by its own bounds.

Scores, w and dual variables here are in the engine's units, in which a margin of one is a score of `unit`. Bounds are
in the units of the task. An evaluation scores all rows at one w and computes the bounds there
(`State.evaluate_iterate`).
"""

from __future__ import annotations

import sys
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import replace
from functools import cache, cached_property
from typing import TYPE_CHECKING, Any, ClassVar, Self
from weakref import proxy

import numpy as np

from ..algorithms.base import Algorithm, Bias, Facts
from ..algorithms.online.perceptron import Perceptron
from ..data.rows import Patterns
from ..engine.state import BIAS, CONSTANT2, NORM2, TIME, TINY, Motion, Unscaled, Weight, refresh
from ..engine.sweep import (
    batches,
    begin,
    objective_gap,
    repeat,
    score_rows,
    shrinking_sweeps,
    shuffled,
    strides,
)
from ..problem.problem import alike
from .best import DECREASE

if TYPE_CHECKING:
    from ..algorithms.normalised.patterns import NormalisedPatterns
    from ..algorithms.programs import Decomposition
    from ..data.rows import PackedRows


# Entries visited between two checks of the deadline: fewer cost more calls, more delay an interrupt.
ENTRIES_PER_CALL = 1e7
# Least time of a row visit, relative to an entry at about 1 ns: its numbers come from several places of memory (0.1 to
# 0.2 us on 1,000,000 x 5).
VISIT_COST = 100
# Time of a column in a step that computes powers of all of w, relative to an entry at p = 2: about 50 ns and 1 ns.
POWER_COST = 50
# Largest number of row visits between two evaluations, unless one pass or one evaluation costs more. More visits delay
# the end of a fit; fewer cost more evaluations.
MAX_VISITS = 50_000
# The same for visits of long rows, or with powers: entries that cost as much, at about 1 ns each 0.3 s. A round value,
# not tuned: fits on 7,000 and 20,000 columns take as long as without this limit.
MAX_ENTRIES = 3e8


# The constants were chosen on the data sets of benchmarks.before_after.

# Length of the Perceptron run that gives a lower bound of the margin: PERCEPTRON_PASSES passes, or the number of passes
# that visits PERCEPTRON_ENTRIES entries, whichever is larger. A longer run gives a larger bound, with which the rules
# that use it take fewer steps.
PERCEPTRON_PASSES, PERCEPTRON_ENTRIES = 20, 30_000_000
# Number of evaluations in a row without a smaller gap after which an intercept that still moves counts as converged:
# it then oscillates within the accuracy of the rule. More evaluations delay the end of the fit, fewer may end it too
# early.
MAX_IDLE_SHIFTS = 50
# Square of the constant coordinate of an intercept that evaluations move (a proximal-point method), in units of the
# mean of |x|^2 + 1 / (4 C s), s the mean sample weight. With a larger one, steps of single rows move the intercept back
# and forth, and steps in w follow it; with a smaller one, the intercept needs more evaluations. The second term, a part
# of the slack coordinate of the squared hinge, belongs to small C, where steps are small against margins. Chosen on
# adult, web, pcmac, reuters and generated text, C from 0.01 to 100: 0.03 to 0.05 take the fewest
# passes, 0.1 up to 1.4 times as many, 1 up to 3 times as many.
SHIFT_STEP = 0.05
# The same for kernels, in units of |x|^2: 0.05 takes steps that depend on the rows of the kernel that are cached.
KERNEL_SHIFT_STEP = 0.1
# The same for p other than 2, in units of |x|^2, where the constant coordinate is no part of the norm. Passes until a
# certificate of 1e-3 on text (hinge, C = 1, p = 3): 161 with 0.05, 108 with 0.02, 47 with 0.01, 47 with 0.005.
P_NORM_SHIFT_STEP = 0.01
# Smallest factor by which the weight of the loss changes from one evaluation to the next, for `power=1`: at w = 0 its
# next value would be 0. A round value, not tuned.
MIN_GROWTH = 1e-2


class State(ABC):
    """The state of a solver between two rounds: on rows of data (`Run`) or on rows of a kernel (`GramRun`).

    Parameters
    ----------
    task : Task or GramTask
    patterns : Patterns or KernelPatterns
        The rows of positive weight.
    used : slice or ndarray of int
        The places of these rows in the task.
    algorithm : Algorithm or Decomposition
    tol : float
        Certified relative gap at which the fit ends.
    rng : Generator
        Draws the orders of presentation.
    interrupted : callable
        Returns whether to stop; called between compiled calls.

    Attributes
    ----------
    h : Weight
        The engine's state: w, dual variables, rows. Created at its first use: batch solvers need none.
    best : Best
        The best points so far, and their bounds; created by the subclass.
    presentations, steps : int
        Number of row visits so far, and of visits that changed w.
    converged : bool
        Whether the algorithm has ended by its own criterion.
    rho : float
        The constant coordinate of every pattern in the engine (`_constant`).
    shifts : bool
        Whether every evaluation moves the intercept (`_shift`).
    passes_per_evaluation : int
        Number of passes that cost as much as one evaluation.
    every_epoch : bool
        Whether each pass over all rows ends with an evaluation, as in a run of an algorithm by itself.
    """

    passes_per_evaluation: ClassVar[int] = 1
    every_epoch = False
    best: Any  # a Best, of the class that belongs to the subclass

    def __init__(
        self,
        task: Any,
        patterns: Any,
        used: Any,
        algorithm: Algorithm | Decomposition,
        tol: float,
        rng: np.random.Generator,
        interrupted: Callable[[], bool],
    ) -> None:
        self.task, self.problem, self.patterns, self._used = task, task.problem, patterns, used
        self.y, self.weights, self.n = task.y[used], task.weights[used], patterns.n
        self.algorithm: Any = algorithm
        self.tol, self.rng, self.interrupted = tol, rng, interrupted
        self.scores, self.moved = np.empty(self.n), np.empty(self.n, np.uint32)
        self.presentations = self.steps = self._idle = 0
        self.converged = False
        problem = self.problem
        # not an augmented intercept of a kernel: evaluations depend on the rows of the kernel that are cached
        centred = isinstance(patterns, Patterns) and algorithm.schedule == "gap" and self.algorithm.centres
        centred = centred and problem.rho > 0.0 and problem.euclidean and not problem.hard
        self.shifts = algorithm.bias is Bias.SHIFT and (problem.free or centred)
        self.rho = self._constant()
        self.radius2 = self._max_squared_norm()
        state = proxy(self)  # no cycle: a cycle keeps the kernel rows until the garbage collector runs
        self.facts = facts = Facts(
            problem,
            self.radius2,
            tol,
            cache(lambda: state._margin_lower_bound()),
            self.n,
            losses=0.0 if problem.hard else problem.C * float(self.weights.sum()),
            length2=patterns.longest2,
            d=patterns.d,
            point=getattr(task, "point", None),
        )
        self.plan = plan = algorithm.plan(facts)
        self.rule, self._next_rules, self.pace = plan.rule, list(plan.then), plan.pace
        self.unit = 1.0 if plan.unit is None else plan.unit
        self._fixed_unit = plan.unit is not None
        # the weight of the loss in the engine's problem, relative to C; at `power=1` it becomes |w|, and begins at the
        # |w| of a pattern of mean length that has the score one
        self._multiplier = 1.0
        if self.problem.first_power:
            self._multiplier = max(float(patterns.squares(problem.p).mean()), TINY) ** -0.5

    @cached_property
    def all_rows(self) -> np.ndarray:
        """The numbers of all rows, in the order of the data."""
        return np.arange(self.n, dtype=np.uint32)

    @cached_property
    def h(self) -> Weight:
        """The engine's state, created at w = 0."""
        scale = None if self.shifts else self.algorithm.scale
        problem = self.problem
        if self.problem.first_power:
            problem = replace(problem, C=self._multiplier * problem.C, power=2)
        h = self.patterns.weight(
            problem, self.y, self.weights, self.unit, self.rho, scale, self.algorithm.bias is Bias.OWN,
            self.algorithm.motion,
        )  # fmt: skip
        if self.shifts and self.problem.p != 2:
            h.number[CONSTANT2] = P_NORM_SHIFT_STEP * float(self.patterns.squares(self.problem.p).mean())
            h = h._replace(
                square=h.square + h.number[CONSTANT2]
            )  # the score of a row of zeros is not constant
        return h

    def _set_multiplier(self, k: float) -> None:
        """Make k C the weight of the loss in the engine's problem, which has the squared norm.

        For k = |w| this problem and the one with `power=1` have the same solution w: the gradient of |w|^2 / 2 is |w|
        times that of |w|.
        """
        h, ratio = self.h, k / self._multiplier
        h.cap[:] *= ratio
        if self.problem.loss == "squared_hinge":
            delta2 = h.slack.delta2
            h.square[:] += delta2 / ratio - delta2
            delta2 /= ratio
        self._multiplier = k
        alpha = np.minimum(h.alpha, h.cap)
        if not np.array_equal(alpha, h.alpha):
            self._set_duals(alpha)
            refresh(h)

    @property
    def finite(self) -> bool:
        """Whether all entries of the engine's w are finite; true if there is no engine state."""
        return "h" not in vars(self) or bool(np.isfinite(self.h.space.vector.w).all())

    def with_algorithm(self, algorithm: Any) -> Self:
        """Return the state of another algorithm on the same task, with the best points and the counts of this one."""
        other = type(self)(self.task, algorithm, self.tol, self.rng, self.interrupted)  # pyright: ignore
        other.best = self.best
        other.presentations, other.steps = self.presentations, self.steps
        return other

    # the starting point

    def _begin_at_duals(self, start: np.ndarray) -> None:
        """Set the engine to dual variables of the task, if the algorithm can begin there.

        A convergent algorithm begins at their best multiple, since they may have been computed for another C; their sum
        is then the step count. Other algorithms begin at w = 0.
        """
        if not self.algorithm.convergent:
            return
        h, start, unit = self.h, start[self._used], self.unit
        self._set_duals(np.clip(start * unit, 0.0, h.cap))
        if not self.problem.hard and h.alpha.any():
            length2 = self._length2() + self._rest2 * float(h.alpha @ self.y) ** 2
            times = self.problem.multiple(h.alpha / unit, length2 / unit**2, self.weights)
            h.alpha[:] = np.minimum(h.alpha * times, h.cap)
            h.space.vector.rescale(times)
        h.number[BIAS] = self._rest2 * float(h.alpha @ self.y)
        if self.problem.p != 2:
            h.number[BIAS] = self._shift()
            refresh(h)
        h.number[TIME] = h.alpha.sum()

    def _on_all_rows(self, alpha: np.ndarray) -> np.ndarray:
        """Return the dual variables of all rows of the task, 0 for rows of weight 0."""
        out = np.zeros(self.task.y.size)
        out[self._used] = alpha
        return out

    @abstractmethod
    def _set_duals(self, alpha: np.ndarray) -> None:
        """Set dual variables, in the engine's units, and the sum of patterns sum alpha_i y_i x_i from them."""

    @abstractmethod
    def _bounds(self) -> None:
        """Compute the bounds at the current w and dual variables, from the scores of all rows, and keep better ones."""

    @abstractmethod
    def take(self, point: Any) -> None:
        """Evaluate a point of a batch solver, keep its better parts, and count a visit of all rows."""

    @abstractmethod
    def normalised_patterns(self) -> NormalisedPatterns:
        """Return the patterns divided by their lengths, constant coordinate included; ValueError if one has none."""

    @abstractmethod
    def _length2(self) -> float:
        """Return |w|^2 without slack coordinates, constant coordinate included."""

    def _max_squared_norm(self) -> float:
        """Return R^2, the largest squared norm of a pattern, constant and slack coordinate included."""
        problem, weights, p = self.problem, self.weights, self.problem.p
        square, constant2 = self.patterns.square, self.rho**2
        if p != 2:  # the p-norms of the patterns include the constant coordinate
            square, constant2 = self.patterns.squares(p, self.rho), 0.0
        if not alike(weights):
            return float((square + problem.delta2(weights)).max()) + constant2
        return float(square.max() + problem.delta2(weights[:1])[0]) + constant2

    def _constant(self) -> float:
        """Return the constant coordinate rho of every pattern in the engine.

        It is the problem's if evaluations do not move the intercept and it is not free. It is 0 if the algorithm
        computes the intercept itself, or if it is shifted for p other than 2 (`CONSTANT2` in the engine's numbers). Its
        square is that of `SHIFT_STEP` if evaluations move the intercept, at most the problem's; or else the largest
        squared norm of the patterns, with which the directional margin is at least 1 / sqrt(2) of the margin.
        """
        problem, bias = self.problem, self.algorithm.bias
        if not (problem.free or self.shifts):
            return problem.rho
        if bias is Bias.OWN or (bias is Bias.SHIFT and problem.p != 2):
            return 0.0
        square = self.patterns.squares(problem.p)
        scale = float(square.mean() if self.shifts else square.max())
        linear = isinstance(self.patterns, Patterns)
        if self.shifts and linear and problem.euclidean and not problem.hard:
            scale += 1.0 / (4.0 * problem.C * float(self.weights.mean()))
        if self.shifts:
            scale *= SHIFT_STEP if linear else KERNEL_SHIFT_STEP
        rho = scale**0.5 if scale > 0.0 else 1.0
        return rho if problem.free else min(rho, problem.rho)

    @property
    def _rest2(self) -> float:
        """Return the square of an augmented constant coordinate less that of the engine's; 0 for other intercepts."""
        return self.problem.rho**2 - self.rho**2 if self.problem.rho else 0.0

    def _margin_lower_bound(self) -> float:
        """Return a lower bound of the largest directional margin.

        It is the margin of the w of a short Perceptron run, or the margin 1 / sqrt(sum 1 / delta_i^2) that the slack
        coordinates of a soft margin attain at w = 0, whichever is larger; 0 if neither is positive.
        """
        problem, delta2 = self.problem, self.problem.delta2(self.weights)
        at_zero = float(np.sum(1.0 / delta2)) ** -0.5 if delta2.all() else 0.0
        h = self.patterns.weight(problem, self.y, self.weights, 1.0, self.rho, Unscaled)
        rule = Perceptron().plan(Facts(problem, self.radius2, self.tol)).rule
        passes = max(PERCEPTRON_PASSES, PERCEPTRON_ENTRIES // max(self.patterns.entries, self.n))
        self._sweeps(rule, h, self.all_rows, passes)
        score_rows(h, self.all_rows, self.scores)
        refresh(h)
        length2 = float(h.number[NORM2])
        return max(float(self.scores.min()) / length2**0.5, at_zero) if length2 > 0.0 else at_zero

    # for schedules

    def take_next_rule(self) -> None:
        """Take the next rule of the plan after a pass without a step; after the last rule the run has converged."""
        if self._next_rules:
            self.rule = self._next_rules.pop(0)
        elif self.intercept_converged:
            self.converged = True

    @property
    def intercept_converged(self) -> bool:
        """Whether the intercept has converged: it does not move, or moves only within the accuracy of the rule."""
        return not self.shifts or self._shift() == 0.0 or self._idle >= MAX_IDLE_SHIFTS

    def evaluate_iterate(self) -> None:
        """Score all rows at the current w, compute the bounds, and move the intercept if it is to be (`shifts`)."""
        if not isinstance(self.h.scale, Unscaled):
            refresh(self.h)
        score_rows(self.h, self.all_rows, self.scores)
        self.presentations += self.n
        last = self.best.gap
        self._bounds()
        self._idle = 0 if self.best.gap < DECREASE * last else self._idle + 1
        if self.problem.first_power:
            self._set_multiplier(max(self._length2() ** 0.5 / self.unit, MIN_GROWTH * self._multiplier))
        if self.shifts:
            step = self._shift()
            self.h.number[BIAS] += step
            self.scores += self.y * step

    def _shift(self) -> float:
        """Return the step of the bias in an evaluation, a proximal-point step in the intercept.

        The engine minimises the objective at b = bias + rho w_0 with the penalty w_0^2 / 2 of its constant coordinate
        rho. A free intercept has no penalty: b becomes the next bias, until w_0 = 0. An augmented one, of the constant
        coordinate r, has the penalty b^2 / (2 r^2), which with (b - c)^2 (1 / rho^2 - 1 / r^2) / 2 is that of the
        engine for the bias c (1 - rho^2 / r^2), up to a constant: the next centre c is b.
        """
        h, r = self.h, self.problem.rho
        if self.problem.p != 2:
            return float(h.number[CONSTANT2] * (h.alpha @ self.y))
        step = float(self.rho * h.space.vector.w[-1])
        return step - (self.rho / r) ** 2 * (float(h.number[BIAS]) + step) if r else step

    def active_rows(self, band: float) -> np.ndarray:
        """Return the rows whose dual variable may still change, by the scores of the last evaluation.

        A row is left out if alpha = 0 and its score is at least unit (1 + band), or if alpha is at its cap and its
        score is at most unit (1 - band).
        """
        low, high = self.unit * (1.0 - band), self.unit * (1.0 + band)
        s, a = self.scores[: self.n], self.h.alpha
        movable = ((s < high) | (a > 0.0)) & ((s > low) | (a < self.h.cap))
        return np.flatnonzero(movable).astype(np.uint32)

    def partial_gap(self, h: Any, order: np.ndarray) -> float:
        """Return an estimate of the relative gap from the rows `order` of h, with their scores in the last sweep.

        Soft: best lower bound plus the terms of these rows in primal minus dual objective. Hard: smallest score / |w|
        against |w| / sum alpha.
        """
        if self.problem.hard:
            length, total = self._length2() ** 0.5, float(self.h.alpha.sum())
            if not (length > 0.0 and total > 0.0):
                return np.inf
            return self.problem.gap(float(self.scores[: order.size].min()) / length, length / total)
        difference = objective_gap(h, order, self.scores, self.unit) / self.unit / self.unit
        lower = self.best.lower
        if self.problem.first_power:
            # of the engine's problem: sum alpha - |v|^2 / 2, where sum alpha / |v| is the bound
            lower = self._multiplier * (lower - 0.5 * self._multiplier)
        return self.problem.gap(lower, lower + difference)

    # the presentation of rows to the rule

    def begin(self) -> None:
        """Set the first w of a rule that is initialised with patterns; other rules begin at w = 0."""
        if hasattr(self.rule, "start"):
            self._set_first_w(self.order())

    def order(self, block: int = 1) -> np.ndarray:
        """Return the rows in the order of a full pass: random if the algorithm shuffles, else that of the data.

        A random order permutes blocks of `block` successive rows.
        """
        return shuffled(self.n, self.rng, block) if self.algorithm.shuffle else self.all_rows

    def reordered(self, rows: np.ndarray, by_stride: bool = False) -> np.ndarray:
        """Return these rows in random order if the algorithm shuffles, by a random stride with `by_stride`."""
        if not self.algorithm.shuffle:
            return rows
        return rows[(strides if by_stride else shuffled)(rows.size, self.rng)]

    @property
    def max_visits(self) -> int:
        """The largest number of row visits between two evaluations (`passes_per_evaluation`)."""
        visits = min(MAX_VISITS, int(MAX_ENTRIES / self.visit_cost))
        return max(visits, self.passes_per_evaluation * self.n)

    @property
    def visit_cost(self) -> float:
        """Entries that cost as much as a row visit: those of a long row, or in other norms the powers of a step."""
        if self.problem.euclidean and self.algorithm.motion is not Motion.FLEXIBLE:
            return max(self.patterns.entries / self.n, VISIT_COST)
        return POWER_COST * self.patterns.d  # as if every visit made a step

    def passes_per_call(self, size: int) -> int:
        """Return the number of passes over `size` rows that cost as much as `ENTRIES_PER_CALL` entries."""
        return max(1, int(ENTRIES_PER_CALL / max(size * self.visit_cost, 1.0)))

    @property
    def rows_per_call(self) -> int:
        """The number of rows that are presented between two checks of the deadline, of a pass over many."""
        return max(1, int(ENTRIES_PER_CALL / self.visit_cost))

    def sweep(self, h: Any, order: np.ndarray) -> int:
        """Present these rows of h once; return the number of steps.

        The score of row order[k] is written to `scores[k]`, and the rows that made a step to `moved[:steps]`.
        """
        return self._present(h, order, 1)

    def repeat(self, h: Any, rows: np.ndarray, passes: int) -> None:
        """Sweep these rows of h until none makes a step, at most `passes` times."""
        self._present(h, rows, passes)

    def full_passes(self, most: int) -> int:
        """Make full passes until one makes no step, at most `most`; return the number of steps in the last."""
        if not self.algorithm.shuffle:
            return self._present(self.h, self.all_rows, most)
        steps = self.sweep(self.h, self.order())
        while most > 1 and steps and not self.interrupted():
            steps, most = self.sweep(self.h, self.order()), most - 1
        return steps

    def sweep_and_narrow(self, memory: PackedRows, max_visits: int, passes: int = sys.maxsize) -> int:
        """Make a full pass, then sweep the rows that made a step until none does; return the steps of the full pass.

        Each sweep after the full pass visits the rows that made a step in the sweep before.

        Parameters
        ----------
        memory : PackedRows
            Memory for the rows that made a step.
        max_visits : int
            Largest number of row visits after the full pass.
        passes : int
            Largest number of sweeps after the full pass.
        """
        steps = self.sweep(self.h, self.order())
        if steps and not self.interrupted():
            active, rows = memory.gather(self.h, self.moved[:steps].copy())
            self.shrinking_sweeps(active, rows, max(1, min(passes, max_visits // steps)))
        return steps

    def shrinking_sweeps(self, h: Any, rows: np.ndarray, passes: int) -> None:
        """Sweep these rows of h, each time only the rows that made a step in the sweep before, until none does.

        `passes` is the largest number of sweeps. The order of `rows` is overwritten.
        """
        while rows.size > self.rows_per_call:
            steps, passes = self._pass_by_parts(h, rows, self.rows_per_call), passes - 1
            if min(steps, passes) <= 0 or self.interrupted():
                return
            rows = self.moved[:steps].copy()
        size, passes_per_call, goes_on = rows.size, self.passes_per_call(rows.size), True
        while goes_on:
            size, presented, made, sweeps = shrinking_sweeps(
                self.rule, h, rows, size, self.scores, min(passes, passes_per_call)
            )
            self.presentations += presented
            self.steps += made
            passes -= sweeps
            resumes = self._load_missing_rows(self.rule, h, rows[:size])
            goes_on = resumes or (size > 0 and min(passes, sweeps) > 0 and not self.interrupted())

    def batches(self, count: int, size: int) -> None:
        """Present `count` mini-batches of `size` rows each, drawn with replacement."""
        rows = self.rng.integers(self.n, size=count * size, dtype=np.uint32)
        scores = np.empty(size)
        steps = batches(self.rule, self.h, rows, scores)
        while self._load_missing_rows(self.rule, self.h, rows):
            steps = batches(self.rule, self.h, rows, scores)
        self.steps += steps
        self.presentations += rows.size

    # calls of compiled sweeps

    def _present(self, h: Any, order: np.ndarray, passes: int) -> int:
        """Sweep these rows until none makes a step, at most `passes` times; return the steps of the last sweep."""
        passes_per_call, rows_per_call = self.passes_per_call(order.size), self.rows_per_call
        while order.size > rows_per_call:
            steps, passes = self._pass_by_parts(h, order, rows_per_call), passes - 1
            if min(steps, passes) <= 0 or self.interrupted():
                return steps
        while True:
            steps, sweeps, made = self._sweeps(self.rule, h, order, min(passes, passes_per_call))
            self.presentations += order.size * sweeps
            self.steps += made
            passes -= sweeps
            if min(steps, sweeps, passes) <= 0 or self.interrupted():
                return steps

    def _pass_by_parts(self, h: Any, order: np.ndarray, size: int) -> int:
        """Present these rows once, by parts of `size` rows; return the number of steps, at least 1 if interrupted."""
        steps = 0
        for first in range(0, order.size, size):
            if first and self.interrupted():
                return max(steps, 1)  # rows that were not presented may make a step
            part = slice(first, first + size)
            made, _, _ = repeat(self.rule, h, order[part], self.scores[part], self.moved[steps:], 1)
            steps += made
            self.presentations += order[part].size
            self.steps += made
        return steps

    def _sweeps(self, rule: Any, h: Any, order: np.ndarray, passes: int) -> tuple[int, int, int]:
        """Sweep these rows until none makes a step, without a check of the deadline.

        Returns
        -------
        steps, sweeps, made : int
            Steps of the last sweep, number of sweeps, and steps of all sweeps.
        """
        sweeps = made = 0
        while True:
            steps, new_sweeps, new_steps = repeat(rule, h, order, self.scores, self.moved, passes - sweeps)
            sweeps, made = sweeps + new_sweeps, made + new_steps
            if not self._load_missing_rows(rule, h, order):
                return steps, sweeps, made

    def _set_first_w(self, order: np.ndarray) -> None:
        """Initialise w with the first patterns in this order, for a rule that does not begin at w = 0."""
        begin(self.rule, self.h, order)

    def _load_missing_rows(self, rule: Any, h: Any, order: np.ndarray) -> bool:
        """Load the kernel rows for which a sweep has stopped; return whether to resume it.

        On rows of data no sweep stops (`GramRun._load_missing_rows`).
        """
        return False
