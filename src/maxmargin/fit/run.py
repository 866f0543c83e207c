"""One binary problem under way: the engine's state, and the bounds that can be read off it.

Everything here is in the engine's units, in which a margin of one is a score of `unit`; bounds are not.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from functools import cache, cached_property
from typing import Any, ClassVar

import numpy as np

from ..algorithms import Algorithm, Bias, Facts, Perceptron
from ..data.rows import Patterns, Room
from ..data.task import Task
from ..engine.order import Source, shuffled
from ..engine.state import BIAS, FACTOR, NORM2, TIME, Fixed, Motion, Weight, settle
from ..engine.sweep import batches, begin, excess, look, narrow, repeat, restore, unsettled
from ..numerics.norms import norm
from ..numerics.sums import Plain as Sums
from ..problem.intercept import best_intercept, best_multiple_and_intercept
from ..problem.problem import Problem, alike, best_multiple
from .extrapolation import DEPTH, Extrapolation
from .line_search import intercept
from .values import dual_point, primal_point

# passes, or entries, of the Perceptron run that bounds the margin from below
SHORT, MANY = 20, 30_000_000
TURNS = 3  # length and intercept in turn
# share of the gap of a pair of points that halves of two pairs leave: more is no reason to part them
APART = 0.9
TO_AND_FRO = 50  # looks without a better bound
AT_ONCE = 1e7  # entries, of which passes are made between two looks at the clock


class State(ABC):
    """A solver between two rounds: what a schedule may ask for, however the patterns are known.

    Parameters
    ----------
    problem : Problem
    patterns : Patterns or KernelPatterns
    y : ndarray of shape (n,), entries -1.0 and 1.0
    weights : ndarray of shape (n,), positive
    algorithm : Algorithm
    tol : float
        Certified relative gap that is asked for.
    rng : Generator or Draws
        Orders of presentation.
    interrupted : callable
        Is it time to stop? Asked between compiled calls.

    Attributes
    ----------
    h : Weight
        The engine's state: w, dual weights, rows. Made when it is first asked for: batch solvers need none.
    lower, upper, gap : float
        The best bounds so far.
    presentations, steps : int
        Rows presented so far, and rows that made a step.
    shifts : bool
        Does every look move a free intercept?
    per_look : int
        Passes that cost as much as a look does.
    """

    per_look: ClassVar[int] = 1

    def __init__(
        self,
        problem: Problem,
        patterns: Any,
        y: np.ndarray,
        weights: np.ndarray,
        algorithm: Algorithm,
        tol: float,
        rng: Source,
        interrupted: Callable[[], bool],
        point: tuple[np.ndarray, float] | None = None,
    ) -> None:
        self.problem, self.patterns, self.y, self.weights = problem, patterns, y, weights
        self.algorithm, self.tol, self.rng, self.interrupted = algorithm, tol, rng, interrupted
        self.n = patterns.n
        self.scores, self.moved = np.empty(self.n), np.empty(self.n, np.uint32)
        self.presentations = self.steps = 0
        self.lower, self.upper, self.gap = -np.inf, np.inf, np.inf
        self.converged, self._idle = False, 0
        self.begun = False
        self.rho = self._constant()
        self._radius2 = self._largest()
        losses = 0.0 if problem.hard else problem.C * float(weights.sum())  # at w = 0
        facts = Facts(
            problem,
            self._radius2,
            tol,
            cache(self._floor),
            self.n,
            losses,
            length2=patterns.longest2,
            d=patterns.d,
            point=point,
        )
        self._plan = plan = algorithm.plan(facts)
        self.rule, self._then, self.pace = plan.rule, list(plan.then), plan.pace
        self.unit = 1.0 if plan.unit is None else plan.unit
        self._fixed_unit = plan.unit is not None
        self.shifts = problem.free and algorithm.bias is Bias.SHIFT

    @cached_property
    def line(self) -> np.ndarray:
        """All rows as they come."""
        return np.arange(self.n, dtype=np.uint32)

    @cached_property
    def h(self) -> Weight:
        return self._weight(None if self.shifts else self.algorithm.scale, self.algorithm.bias is Bias.OWN)

    @property
    def finite(self) -> bool:
        """Is the engine's w, if there is one, made of numbers?"""
        return "h" not in vars(self) or bool(np.isfinite(self.h.space.vector.w).all())

    @abstractmethod
    def _weight(self, scale: Any, holds: bool) -> Weight:
        """The engine's state at w = 0."""

    @abstractmethod
    def _bounds(self) -> None:
        """Take bounds from the scores of all rows at one w."""

    @abstractmethod
    def _length2(self) -> float:
        """|w|^2, own coordinates left aside."""

    def _largest(self) -> float:
        """The largest squared norm of a pattern, constant and own coordinate included."""
        problem, weights, p = self.problem, self.weights, self.problem.p
        square, more = self.patterns.square, self.rho**2
        if p != 2:
            square, more = self.patterns.squares(p, self.rho), 0.0
        if not alike(weights):
            return float((square + problem.delta2(weights)).max()) + more
        return float(square.max() + problem.delta2(weights[:1])[0]) + more

    def _constant(self) -> float:
        """The constant coordinate of every pattern."""
        bias = self.algorithm.bias
        square = self.patterns.squares(self.problem.p)
        if not self.problem.free:
            return self.problem.rho
        if bias is Bias.OWN:
            return 0.0
        # a step of the free intercept; or such that the directional margin is at least 1 / sqrt(2) of the margin
        scale = float(square.mean() if bias is Bias.SHIFT else square.max())
        return scale**0.5 if scale > 0.0 else 1.0

    def _floor(self) -> float:
        """A lower bound of the largest directional margin: that of a short Perceptron run, or of w = 0 extended."""
        problem, delta2 = self.problem, self.problem.delta2(self.weights)
        own = float(np.sum(1.0 / delta2)) ** -0.5 if delta2.all() else 0.0
        h = self.patterns.weight(problem, self.y, self.weights, 1.0, self.rho, Fixed)
        rule = Perceptron().plan(Facts(problem, self._radius2, self.tol)).rule
        # as much work as so many entries are, whatever the length of a row
        self._sweeps(rule, h, self.line, max(SHORT, MANY // max(self.patterns.entries, self.n)))
        look(h, self.line, self.scores)
        settle(h)
        length2 = float(h.number[NORM2])
        return max(float(self.scores.min()) / length2**0.5, own) if length2 > 0.0 else own

    # what a schedule may ask for

    def room(self) -> Room:
        """Memory for packed rows."""
        return self.patterns.room()

    def sweep(self, h: Any, order: np.ndarray) -> int:
        """Present these rows once; scores and moved rows are kept."""
        return self._present(h, order, 1)

    def at_once(self, size: int) -> int:
        """Passes over so many rows that take moments: between them it is asked whether it is time to stop."""
        return max(1, int(AT_ONCE * self.n / max(size * self.patterns.entries, 1)))

    def repeat(self, h: Any, rows: np.ndarray, passes: int) -> None:
        """Present these rows of h again and again, until all are right."""
        self._present(h, rows, passes)

    def begin(self) -> None:
        """The first weight of a rule that begins with patterns."""
        if hasattr(self.rule, "start"):
            self._open(self.order())

    def order(self) -> np.ndarray:
        """All rows, in the order of a full pass."""
        return shuffled(self.n, self.rng) if self.algorithm.shuffle else self.line

    def passes(self, most: int) -> int:
        """Full passes, until one makes no step; the steps of the last."""
        if self.algorithm.shuffle:
            steps = self.sweep(self.h, self.order())
            while most > 1 and steps and not self.interrupted():
                steps, most = self.sweep(self.h, self.order()), most - 1
            return steps
        return self._present(self.h, self.line, most)

    def narrow(self, h: Any, rows: np.ndarray, passes: int) -> None:
        """Present these rows of h, then those among them that made a step, until none does."""
        size, most, more = rows.size, self.at_once(rows.size), True
        while more:
            size, seen, made, sweeps = narrow(self.rule, h, rows, size, self.scores, min(passes, most))
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
        """No pattern asks for an update: the next rule takes over, or there is none, and this is the end."""
        if self._then:
            self.rule = self._then.pop(0)
        elif self.settled:
            self.converged = True

    @property
    def settled(self) -> bool:
        """Does the intercept stay where it is, or go to and fro by the width of the rule's own accuracy?"""
        return not self.shifts or self.h.space.vector.w[-1] == 0.0 or self._idle >= TO_AND_FRO

    def look(self) -> None:
        """Score every row at one w, and improve the bounds."""
        if self.algorithm.scale is not Fixed:
            settle(self.h)
        look(self.h, self.patterns.order, self.scores)
        self.presentations += self.n
        last = self.gap
        self._bounds()
        self._idle = 0 if self.gap < 0.999 * last else self._idle + 1
        if self.shifts:
            self._move_intercept()

    def open_rows(self, near: float) -> np.ndarray:
        """Rows whose dual weight may still move, judged by the last look."""
        low, high = self.unit * (1.0 - near), self.unit * (1.0 + near)
        return self.moved[: unsettled(self.h, self.scores, low, high, self.moved)]

    def partial_gap(self, h: Any, order: np.ndarray) -> float:
        """The relative gap as the last sweep saw it, on the rows of h that it presented."""
        if self.problem.hard:
            length, total = self._length2() ** 0.5, float(self.h.alpha.sum())
            if not (length > 0.0 and total > 0.0):
                return np.inf
            return self.problem.gap(float(self.scores[: order.size].min()) / length, length / total)
        more = excess(h, order, self.scores, self.unit) / self.unit / self.unit
        return self.problem.gap(self.lower, self.lower + more)

    # how the engine is called

    def _present(self, h: Any, order: np.ndarray, passes: int) -> int:
        """Sweep these rows until all are right; the steps of the last sweep."""
        most = self.at_once(order.size)
        while True:
            steps, sweeps, made = self._sweeps(self.rule, h, order, min(passes, most))
            self.presentations += order.size * sweeps
            self.steps += made
            passes -= sweeps
            if min(steps, sweeps, passes) <= 0 or self.interrupted():
                return steps

    def _sweeps(self, rule: Any, h: Any, order: np.ndarray, passes: int) -> tuple[int, int, int]:
        """Steps of the last sweep, sweeps, and steps of all of them."""
        sweeps = made = 0
        while True:
            steps, more, new = repeat(rule, h, order, self.scores, self.moved, passes - sweeps)
            sweeps, made = sweeps + more, made + new
            if not self._served(rule, h, order):
                return steps, sweeps, made

    def _open(self, order: np.ndarray) -> None:
        """The first weight of a rule that begins with patterns."""
        begin(self.rule, self.h, order)

    def _served(self, rule: Any, h: Any, order: np.ndarray) -> bool:
        """Has a sweep of these rows halted for something that is at hand now? Rows of data always are."""
        return False

    def _move_intercept(self) -> None:
        """A proximal-point step in b: the bias coordinate of the augmented problem becomes a shift of all margins."""
        step = self.rho * self.h.space.vector.w[-1]
        self.h.number[BIAS] += step
        self.scores += self.y * step


class Run(State):
    """The same on rows of data.

    Parameters
    ----------
    task : Task
        The problem and its patterns, merged and scaled where that is done.
    algorithm : Algorithm
    tol : float
    rng : Generator or Draws
    interrupted : callable

    Attributes
    ----------
    w, b, alpha : the points that prove the bounds.
    heard : (ndarray of shape (d,), float, ndarray of shape (n,)) or None
        A point (w, b, alpha) of which a solver says that it is near enough; no bounds of it have been computed.
    """

    patterns: Patterns

    def __init__(
        self,
        task: Task,
        algorithm: Algorithm,
        tol: float,
        rng: Source,
        interrupted: Callable[[], bool],
    ) -> None:
        self.task = task
        problem, patterns = task.problem, task.patterns
        # is w the sum of the patterns by their dual weights, in its own norm?
        self._euclidean = problem.euclidean and algorithm.motion is not Motion.FLEXIBLE
        super().__init__(
            problem, patterns, task.y, task.weights, algorithm, tol, rng, interrupted, task.point
        )
        plan = self._plan
        self._extrapolation = Extrapolation() if plan.real else None
        self.w, self.b, self.alpha = np.zeros(patterns.d), 0.0, np.broadcast_to(0.0, self.n)
        self.heard: tuple[np.ndarray, float, np.ndarray] | None = None
        if task.start is not None and algorithm.convergent:
            self._begin_at(task.start)
        elif task.start is not None and plan.clock is not None:
            self._restore(task.start, 1.0)
            self.h.number[TIME] = plan.clock(self.h.scale.real(self.h.alpha), np.sqrt(self.h.square))
            if task.point is not None:
                self.value(*task.point, task.start)
        elif task.point is not None and algorithm.motion is Motion.SUBGRADIENT:
            self.begun = self._begin_with(*task.point, task.start)

    def _weight(self, scale: Any, holds: bool) -> Weight:
        return self.patterns.weight(
            self.problem,
            self.y,
            self.weights,
            self.unit,
            self.rho,
            scale,
            holds=holds,
            motion=self.algorithm.motion,
        )

    def look_for_zero_rows(self) -> None:
        """Hard margin without intercept: a row of zeros alone proves that there is no separator."""
        empty = self.patterns.square == 0.0
        if self.problem.hard and self.problem.intercept == "none" and empty.any():
            self.upper, self.alpha = 0.0, np.where(empty, 1.0, 0.0)

    def count_start(self) -> None:
        """The point to begin with counts as one that was found, whoever stops how early."""
        task = self.task
        if task.point is not None:
            w, b = task.point
        elif task.start is not None and self.problem.euclidean:
            c = task.start * self.y
            w, b = Sums.combine(self.patterns.X, c), self.problem.rho**2 * float(c.sum())
        else:
            return
        self.value(w, b, np.ones(self.n) if task.start is None else task.start)

    def repeat(self, h: Any, rows: np.ndarray, passes: int) -> None:
        """Present these rows of h again and again, until all are right; with an extrapolation where that may help."""
        extrapolate = self._extrapolation
        if extrapolate is not None and extrapolate.due(rows.size):
            passes -= DEPTH
        else:
            extrapolate = None
        steps = self._present(h, rows, passes)
        if extrapolate is not None and steps:
            extrapolate(self, h, rows)

    def stand(self, w: np.ndarray, alpha: np.ndarray) -> None:
        """Go to a point found elsewhere: dual weights, and the w that they make, constant coordinate included."""
        self.h.alpha[:] = np.minimum(alpha, self.h.cap)
        self.h.space.vector.w[:] = w
        self.steps += 1

    def offer(self, w: np.ndarray, b: float, upper: float) -> None:
        """A point, constant coordinate included, at which the objective is known to be `upper`."""
        if self.problem.rho:
            w, b = w[:-1], self.problem.rho * float(w[-1])
        self._improve(w, b, upper)
        self.gap = self.problem.gap(self.lower, self.upper)

    def value(self, w: np.ndarray, b: float, alpha: np.ndarray) -> None:
        """A primal and a dual point, in any norm: each is kept where it is better than all before."""
        alpha, dual, size = dual_point(self.task, alpha)
        length = norm(self.problem.weights(w, b), self.problem.q)
        if not self._fixed_unit and size > 0.0 and length > 0.0:  # only the direction of w is known so far
            w, b = w * (size / length), b * (size / length)
        w, b, primal = primal_point(self.task, w, b)
        lower, upper = (primal, dual) if self.problem.hard else (dual, primal)
        if primal > self.lower if self.problem.hard else primal < self.upper:
            self.w, self.b = w, b
        if dual < self.upper if self.problem.hard else dual > self.lower:
            self.alpha = alpha
        # in this order: where numbers overflowed, what was known stands
        self.lower, self.upper = max(self.lower, lower), min(self.upper, upper)
        self.gap = self.problem.gap(self.lower, self.upper)

    def handed_to(self, algorithm: Algorithm) -> Run:
        """Another algorithm's run of the same task, which begins with the best points of this one."""
        other = Run(self.task, algorithm, self.tol, self.rng, self.interrupted)
        other.w, other.b, other.alpha = self.w, self.b, self.alpha
        other.lower, other.upper, other.gap = self.lower, self.upper, self.gap
        other.presentations, other.steps = self.presentations, self.steps
        return other

    def adopt(
        self, w: np.ndarray, b: float, alpha: np.ndarray, lower: float, upper: float, rounding: float
    ) -> None:
        """Take over points found elsewhere where they prove more, or as much but for rounding."""
        gap = self.problem.gap(lower, upper)
        joined = self.problem.gap(max(lower, self.lower), min(upper, self.upper))
        # a pair of points belongs together, unless halves of two prove more
        whole = gap <= max(self.gap, rounding) and (gap <= rounding or joined > APART * gap)
        primal_better = lower > self.lower if self.problem.hard else upper < self.upper
        dual_better = upper < self.upper if self.problem.hard else lower > self.lower
        if whole or primal_better:
            self.w, self.b = w, b
        if whole or dual_better:
            self.alpha = alpha
        if whole:
            self.lower, self.upper = lower, upper
        else:
            self.lower, self.upper = max(lower, self.lower), min(upper, self.upper)
        self.gap = self.problem.gap(self.lower, self.upper)

    def _bounds(self) -> None:
        if not self._euclidean:
            alpha = np.asarray(self.h.scale.real(self.h.alpha))
            self.value(*self._point(), alpha)
        elif self.problem.hard:
            self._hard_bounds()
        else:
            self._soft_bounds()
        self.gap = self.problem.gap(self.lower, self.upper)

    def _length2(self) -> float:
        return float(self.h.space.vector.measure())

    def _begin_at(self, alpha: np.ndarray) -> None:
        """Begin with these dual weights, cut at their caps, or their best multiple: they may be of another C."""
        h = self.h
        h.alpha[:] = np.clip(alpha * self.unit, 0.0, h.cap)
        c = h.alpha * self.y
        w = h.space.vector.w
        w[: self.patterns.d] = Sums.combine(self.patterns.X, c)
        if self.rho:
            w[-1] = self.rho * c.sum()
        if not self.problem.hard and h.alpha.any():
            times = self.problem.multiple(h.alpha / self.unit, float(w @ w) / self.unit**2, self.weights)
            h.alpha[:] = np.minimum(h.alpha * times, h.cap)
            w *= times

    def _restore(self, alpha: np.ndarray, length: float) -> None:
        """Begin at the w that is the sum of the patterns by a multiple of these dual weights, as long as this."""
        top = float(alpha.max())
        if top > 0.0:
            restore(self.h, alpha / top, length)

    def _begin_with(self, w: np.ndarray, b: float, alpha: np.ndarray | None) -> bool:
        """Begin with this direction, as long as the Perceptron's w is at its end, R^2 / margin, if it has a margin.

        What rows lack is put into their own coordinates. The dual weights (None: all the same) give a bound to begin
        with; where w is the sum that they make, it is taken of them.
        """
        problem, h = self.problem, self.h
        w, b, _ = primal_point(self.task, w, b)
        margins = self.y * (Sums.scores(self.patterns.X, w) + b)
        least = float(margins.min())
        if problem.hard and not least > 0.0:
            return False
        lack = np.maximum(1.0 - margins, 0.0)
        length = norm(problem.weights(w, b), problem.q)
        delta2 = problem.delta2(self.weights)
        own = np.divide(lack, delta2, out=np.zeros(self.n), where=delta2 > 0.0)
        length = float(np.hypot(length, float(own @ (delta2 * own)) ** 0.5))
        if not 0.0 < length < np.inf:
            return False
        scale = self._radius2  # times a margin of 1 / length, where the least margin is 1, it is |w|^2
        if h.space.vector.combines():
            if alpha is None or not alpha.any():
                return False
            self._restore(alpha, scale * length)
        else:
            h.space.vector.w[: self.patterns.d] = w * scale
            if self.rho:
                h.space.vector.w[-1] = b / self.rho * scale
            h.slack.take(own * scale)
            settle(h)
        if not self.rho:
            h.number[BIAS] = b * scale
        self.value(w, b, np.ones(self.n) if alpha is None else alpha)
        return True

    def _point(self) -> tuple[np.ndarray, float]:
        """w without its constant coordinate, and the bias, in the engine's units."""
        h, bias = self.h, float(self.h.number[BIAS])
        full = h.space.vector.w if self.problem.p == 2 else h.number[FACTOR] * h.space.vector.w
        if self.rho:
            return full[:-1], bias + self.rho * full[-1]
        return full, bias

    def _soft_bounds(self) -> None:
        problem, h = self.problem, self.h
        w, bias = self._point()
        a = h.alpha
        if not self._fixed_unit:
            length2 = float(w @ w) + float(problem.delta2(self.weights) @ (a * a))
            length2 += (bias / self.rho) ** 2 if self.rho else 0.0
            self.unit = length2 / float(a.sum()) if a.any() else 1.0
        unit, over = self.unit, bool((a > h.cap).any())
        w, bias, a = w / unit, bias / unit, a / unit
        square, z = float(w @ w), np.empty(0)
        if problem.free or not self._fixed_unit:
            m = self.scores / unit
            if problem.loss == "squared_hinge":
                m = m - h.slack.delta2 * a
            z = self.y * m - bias
        dual = -np.inf if over or problem.free else problem.dual(problem.norm2(square, bias), a, self.weights)
        if not self._fixed_unit:  # the best length of the primal point is another than that of the dual one
            self._improve(*self._lengthened(w, bias, z))
        elif problem.free:
            b = intercept(problem, z, self.y, self.weights)
            self._improve(w, b, problem.primal(0.5 * square, self.y * (z + b), self.weights))
        elif over:
            norm2 = problem.norm2(square, bias)
            self._improve(w, bias, problem.primal(0.5 * norm2, self.scores / unit, self.weights))
        else:
            # sum alpha_i m_i = |w|^2, so that what the patterns add to primal - dual is known one by one
            self._improve(w, bias, dual + excess(h, self.line, self.scores, unit) / unit / unit)
        if over:
            a, square, z = self._capped(a)
            dual = problem.dual(square, a, self.weights)
        lower = self._balanced(square, z, a) if problem.free else self._best(dual, float(a.sum()))
        if lower > self.lower:
            self.lower, self.alpha = lower, a

    def _improve(self, w: np.ndarray, b: float, upper: float) -> None:
        """Keep a primal point that is better than all before."""
        if upper < self.upper:
            self.upper, self.w, self.b = upper, w, b

    def _lengthened(self, w: np.ndarray, bias: float, z: np.ndarray) -> tuple[np.ndarray, float, float]:
        """The best multiple of (w, bias) of scores z = w.x, the best intercept where it is free, and the objective."""
        problem, square = self.problem, float(w @ w)
        if problem.free:
            bias = intercept(problem, z, self.y, self.weights)
        t, bias = best_multiple_and_intercept(problem, square, z, bias, self.y, self.weights, TURNS)
        w, z, square = t * w, t * z, t * t * square
        return w, bias, problem.primal(0.5 * problem.norm2(square, bias), self.y * (z + bias), self.weights)

    def _capped(self, a: np.ndarray) -> tuple[np.ndarray, float, np.ndarray]:
        """Dual weights cut at their caps, with |w|^2 and the scores w.x of the w that they make."""
        a = np.minimum(a, self.problem.caps(self.weights))
        w = Sums.combine(self.patterns.X, a * self.y)
        constant = self.problem.rho * float(a @ self.y)
        return a, float(w @ w) + constant * constant, Sums.scores(self.patterns.X, w)

    def _balanced(self, square: float, z: np.ndarray, a: np.ndarray) -> float:
        """The dual value once the heavier class is scaled down to the other's total."""
        scaled = self.problem.balanced(self.y, a)
        if scaled is None:
            return -np.inf
        cut = (a - scaled) * self.y
        linear = square - 2.0 * float(cut @ z)
        # |sum of what is cut|^2 by the triangle inequality first: most often enough
        size = float(np.abs(cut) @ np.sqrt(self.patterns.square))
        value = self.problem.dual(linear + size * size, scaled, self.weights)
        if 0.5 * size * size > 0.1 * self.tol * abs(value):
            exact = Sums.combine(self.patterns.X, cut)
            value = self.problem.dual(linear + float(exact @ exact), scaled, self.weights)
        return self._best(value, float(scaled.sum()))

    def _best(self, value: float, total: float) -> float:
        """The dual value of the best t <= 1 times dual weights of this value and this sum."""
        quadratic = 2.0 * (total - value)
        t = best_multiple(total, quadratic, 1.0)
        return t * total - 0.5 * t * t * quadratic

    def _hard_bounds(self) -> None:
        problem, (w, bias) = self.problem, self._point()
        s, a = self.scores, self.h.alpha
        if problem.free:
            z = self.y * s - bias
            b = best_intercept(problem, z, self.y, self.weights)
            smallest = float((self.y * (z + b)).min())
            length2 = float(w @ w)
            upper, balanced = np.inf, problem.balanced(self.y, a)
            if balanced is not None:
                v = Sums.combine(self.patterns.X, self.y * balanced)
                upper = float(v @ v) ** 0.5 / float(balanced.sum())
        else:
            b, smallest = bias, float(s.min())
            length2, total = problem.norm2(float(w @ w), bias), float(a.sum())
            upper = length2**0.5 / total if total > 0.0 else np.inf
        lower = smallest / length2**0.5 if length2 > 0.0 else -np.inf
        if lower > self.lower:
            # canonical scale: the smallest margin is one
            scale = smallest if smallest > 0.0 else 1.0
            self.lower, self.w, self.b = lower, w / scale, b / scale
        if upper < self.upper:
            self.upper, self.alpha = upper, a / self.unit
