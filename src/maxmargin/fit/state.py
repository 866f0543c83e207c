"""The state of a solver between two rounds: the engine's state, its rule, and the tracker of the best points.

Everything here is in the engine's units, in which a margin of one is a score of `unit`; bounds are not.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from functools import cache, cached_property
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np

from ..algorithms.base import Algorithm, Bias, Facts
from ..algorithms.online.perceptron import Perceptron
from ..engine.order import Source, shuffled
from ..engine.state import BIAS, NORM2, Unscaled, Weight, refresh
from ..engine.sweep import batches, begin, movable_rows, objective_gap, repeat, score_rows, shrinking_sweeps
from ..problem.problem import alike

if TYPE_CHECKING:
    from ..algorithms.batch.decomposition import Decomposition

# Passes, or entries, of the Perceptron run that bounds the margin from below; the larger of both. More give a tighter
# bound, which spares the rules that ask for it steps.
SHORT, MANY = 20, 30_000_000
# Looks without a better bound, after which an intercept that still moves does so by the rule's own accuracy.
TO_AND_FRO = 50
# Share of the gap that a look has to leave at most to count as a better one: less is rounding of the bounds.
BETTER = 0.999
# Entries of the passes between two checks of the clock: fewer cost more calls, more delay an interrupt.
AT_ONCE = 1e7


class State(ABC):
    """A solver between two rounds, as a schedule sees it: on rows of data (`Run`) or of a kernel (`GramRun`).

    Parameters
    ----------
    task : Task or GramTask
    patterns : Patterns or KernelPatterns
        The rows that take part.
    used : slice or ndarray of int
        Which rows of the task these are.
    algorithm : Algorithm or Decomposition
    tol : float
        Certified relative gap that is asked for.
    rng : Generator or LazyGenerator
        Orders of presentation.
    interrupted : callable
        Returns whether to stop; called between compiled calls.

    Attributes
    ----------
    h : Weight
        The engine's state: w, dual variables, rows. Made when it is first used: batch solvers need none.
    best : Tracker
        The best points so far, and their bounds; made by the subclass.
    presentations, steps : int
        Rows presented so far, and rows that made a step.
    shifts : bool
        Whether every look moves a free intercept.
    per_look : int
        Passes that cost as much as a look does.
    """

    per_look: ClassVar[int] = 1
    best: Any  # a Tracker, of the kind of the subclass

    def __init__(
        self,
        task: Any,
        patterns: Any,
        used: Any,
        algorithm: Algorithm | Decomposition,
        tol: float,
        rng: Source,
        interrupted: Callable[[], bool],
    ) -> None:
        self.task, self.problem, self.patterns = task, task.problem, patterns
        self.y, self.weights, self.n = task.y[used], task.weights[used], patterns.n
        self.algorithm: Any = algorithm
        self.tol, self.rng, self.interrupted = tol, rng, interrupted
        self.scores, self.moved = np.empty(self.n), np.empty(self.n, np.uint32)
        self.presentations = self.steps = self._idle = 0
        self.converged = self.begun = False
        problem = self.problem
        self.rho = self._constant()
        self.radius2 = self._largest()
        facts = Facts(
            problem,
            self.radius2,
            tol,
            cache(self._floor),
            self.n,
            losses=0.0 if problem.hard else problem.C * float(self.weights.sum()),
            length2=patterns.longest2,
            d=patterns.d,
            point=getattr(task, "point", None),
        )
        self._plan = plan = algorithm.plan(facts)
        self.rule, self._then, self.pace = plan.rule, list(plan.then), plan.pace
        self.unit = 1.0 if plan.unit is None else plan.unit
        self._fixed_unit = plan.unit is not None
        self.shifts = problem.free and algorithm.bias is Bias.SHIFT

    @cached_property
    def line(self) -> np.ndarray:
        """All rows in the order of the data."""
        return np.arange(self.n, dtype=np.uint32)

    @cached_property
    def h(self) -> Weight:
        """The engine's state, at w = 0 when it is made."""
        scale = None if self.shifts else self.algorithm.scale
        return self.patterns.weight(
            self.problem, self.y, self.weights, self.unit, self.rho, scale, self.algorithm.bias is Bias.OWN,
            self.algorithm.motion,
        )  # fmt: skip

    @property
    def finite(self) -> bool:
        """Whether the engine's w, if there is one, is finite."""
        return "h" not in vars(self) or bool(np.isfinite(self.h.space.vector.w).all())

    def handed_to(self, algorithm: Any) -> Self:
        """Return the run of another algorithm on the same task, with the best points and the counts of this one."""
        other = type(self)(self.task, algorithm, self.tol, self.rng, self.interrupted)  # pyright: ignore
        other.best = self.best
        other.presentations, other.steps = self.presentations, self.steps
        return other

    @abstractmethod
    def _bounds(self) -> None:
        """Evaluate the points that the scores of all rows at one w give."""

    @abstractmethod
    def _length2(self) -> float:
        """Return |w|^2 without own coordinates."""

    def _largest(self) -> float:
        """Return the largest squared norm of a pattern, constant and own coordinate included."""
        problem, weights, p = self.problem, self.weights, self.problem.p
        square, more = self.patterns.square, self.rho**2
        if p != 2:
            square, more = self.patterns.squares(p, self.rho), 0.0
        if not alike(weights):
            return float((square + problem.delta2(weights)).max()) + more
        return float(square.max() + problem.delta2(weights[:1])[0]) + more

    def _constant(self) -> float:
        """Return the constant coordinate of every pattern."""
        bias = self.algorithm.bias
        if not self.problem.free:
            return self.problem.rho
        if bias is Bias.OWN:
            return 0.0
        # a step of the free intercept; or such that the directional margin is at least 1 / sqrt(2) of the margin
        square = self.patterns.squares(self.problem.p)
        scale = float(square.mean() if bias is Bias.SHIFT else square.max())
        return scale**0.5 if scale > 0.0 else 1.0

    def _floor(self) -> float:
        """Return a lower bound of the largest directional margin: of a short Perceptron run, or of w = 0 extended."""
        problem, delta2 = self.problem, self.problem.delta2(self.weights)
        own = float(np.sum(1.0 / delta2)) ** -0.5 if delta2.all() else 0.0
        h = self.patterns.weight(problem, self.y, self.weights, 1.0, self.rho, Unscaled)
        rule = Perceptron().plan(Facts(problem, self.radius2, self.tol)).rule
        # the work of MANY entries, whatever the length of a row
        self._sweeps(rule, h, self.line, max(SHORT, MANY // max(self.patterns.entries, self.n)))
        score_rows(h, self.line, self.scores)
        refresh(h)
        length2 = float(h.number[NORM2])
        return max(float(self.scores.min()) / length2**0.5, own) if length2 > 0.0 else own

    # for schedules

    def begin(self) -> None:
        """Set the first w of a rule that begins with patterns."""
        if hasattr(self.rule, "start"):
            self._open(self.order())

    def order(self) -> np.ndarray:
        """Return all rows in the order of a full pass."""
        return shuffled(self.n, self.rng) if self.algorithm.shuffle else self.line

    def at_once(self, size: int) -> int:
        """Return the passes over so many rows that are made between two checks for an interrupt."""
        return max(1, int(AT_ONCE * self.n / max(size * self.patterns.entries, 1)))

    def sweep(self, h: Any, order: np.ndarray) -> int:
        """Present these rows once; the scores and the rows that moved are kept in `scores` and `moved`."""
        return self._present(h, order, 1)

    def repeat(self, h: Any, rows: np.ndarray, passes: int) -> None:
        """Present these rows of h until none makes a step, `passes` times at most."""
        self._present(h, rows, passes)

    def passes(self, most: int) -> int:
        """Make full passes until one makes no step; return the steps of the last."""
        if not self.algorithm.shuffle:
            return self._present(self.h, self.line, most)
        steps = self.sweep(self.h, self.order())
        while most > 1 and steps and not self.interrupted():
            steps, most = self.sweep(self.h, self.order()), most - 1
        return steps

    def shrinking_sweeps(self, h: Any, rows: np.ndarray, passes: int) -> None:
        """Present these rows of h, then those among them that made a step, until none does."""
        size, most, more = rows.size, self.at_once(rows.size), True
        while more:
            size, seen, made, sweeps = shrinking_sweeps(
                self.rule, h, rows, size, self.scores, min(passes, most)
            )
            self.presentations += seen
            self.steps += made
            passes -= sweeps
            more = self._served(self.rule, h, rows[:size])
            more = more or (size > 0 and min(passes, sweeps) > 0 and not self.interrupted())

    def batches(self, count: int, size: int) -> None:
        """Present this many mini-batches, drawn with replacement."""
        rows = self.rng.integers(self.n, size=count * size, dtype=np.uint32)
        scores = np.empty(size)
        steps = batches(self.rule, self.h, rows, scores)
        while self._served(self.rule, self.h, rows):
            steps = batches(self.rule, self.h, rows, scores)
        self.steps += steps
        self.presentations += rows.size

    def advance(self) -> None:
        """Go on to the next rule, as no row made a step; without one the run has converged."""
        if self._then:
            self.rule = self._then.pop(0)
        elif self.settled:
            self.converged = True

    @property
    def settled(self) -> bool:
        """Whether the intercept stays where it is, but for the accuracy of the rule."""
        return not self.shifts or self.h.space.vector.w[-1] == 0.0 or self._idle >= TO_AND_FRO

    def score_rows(self) -> None:
        """Score every row at one w, and evaluate the points that this gives."""
        if self.algorithm.scale is not Unscaled:
            refresh(self.h)
        score_rows(self.h, self.line, self.scores)
        self.presentations += self.n
        last = self.best.gap
        self._bounds()
        self._idle = 0 if self.best.gap < BETTER * last else self._idle + 1
        if self.shifts:
            # a proximal-point step in b: the bias coordinate of the augmented problem becomes a shift of all scores
            step = self.rho * self.h.space.vector.w[-1]
            self.h.number[BIAS] += step
            self.scores += self.y * step

    def open_rows(self, near: float) -> np.ndarray:
        """Return the rows whose dual variable may still move, judged by the last look."""
        low, high = self.unit * (1.0 - near), self.unit * (1.0 + near)
        return self.moved[: movable_rows(self.h, self.scores, low, high, self.moved)]

    def partial_gap(self, h: Any, order: np.ndarray) -> float:
        """Return the relative gap on the rows of h that the last sweep presented, by the scores it saw."""
        if self.problem.hard:
            length, total = self._length2() ** 0.5, float(self.h.alpha.sum())
            if not (length > 0.0 and total > 0.0):
                return np.inf
            return self.problem.gap(float(self.scores[: order.size].min()) / length, length / total)
        more = objective_gap(h, order, self.scores, self.unit) / self.unit / self.unit
        return self.problem.gap(self.best.lower, self.best.lower + more)

    # calls of the engine

    def _present(self, h: Any, order: np.ndarray, passes: int) -> int:
        """Sweep these rows until none makes a step; return the steps of the last sweep."""
        most = self.at_once(order.size)
        while True:
            steps, sweeps, made = self._sweeps(self.rule, h, order, min(passes, most))
            self.presentations += order.size * sweeps
            self.steps += made
            passes -= sweeps
            if min(steps, sweeps, passes) <= 0 or self.interrupted():
                return steps

    def _sweeps(self, rule: Any, h: Any, order: np.ndarray, passes: int) -> tuple[int, int, int]:
        """Sweep; return the steps of the last sweep, the number of sweeps, and the steps of all of them."""
        sweeps = made = 0
        while True:
            steps, more, new = repeat(rule, h, order, self.scores, self.moved, passes - sweeps)
            sweeps, made = sweeps + more, made + new
            if not self._served(rule, h, order):
                return steps, sweeps, made

    def _open(self, order: np.ndarray) -> None:
        """Set the first w of a rule that begins with patterns."""
        begin(self.rule, self.h, order)

    def _served(self, rule: Any, h: Any, order: np.ndarray) -> bool:
        """Fetch the kernel rows for which a sweep has stopped; return whether to resume it. Rows of data never miss."""
        return False
