"""The state of an algorithm between two rounds: its rule and the engine's state, and the evaluation of its iterates.

Scores, w and dual variables here are in the engine's units, in which a margin of one is a score of `unit`. Bounds are
in the units of the task. An evaluation scores all rows at one w and computes the bounds there
(`Run.evaluate_iterate`). On rows of a kernel w is kept as its scores, and kernel rows are computed for steps.
"""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cache, cached_property
from typing import Any, ClassVar, NamedTuple
from weakref import proxy

import numpy as np

from ..algorithms.base import Algorithm, Bias, Facts
from ..algorithms.normalised.patterns import NormalisedProducts, NormalisedRows
from ..algorithms.online.perceptron import Perceptron
from ..algorithms.programs import Decomposition
from ..data.rows import KernelPatterns, Patterns
from ..engine.state import BIAS, CONSTANT2, FACTOR, NORM2, STOPPED, TIME, TINY, Unscaled, Weight, refresh
from ..engine.sweep import repeat, score_rows
from ..numerics.progress import OutOfTime
from ..numerics.sums import Plain, norm
from ..solvers.decomposition import DualPoint, add_rows
from ..solvers.iterate import Point
from .best import DECREASE, Best, GramBest, Primal, dual_point, primal_point
from .report import Task

# The constants were chosen on the data sets of benchmarks.before_after.

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


class Iterate(NamedTuple):
    """The last evaluated iterate; arrays have an entry for each row of positive weight, in the order of the data.

    Attributes
    ----------
    own : (ndarray of shape (d,) or None, float, ndarray of shape (n,))
        w (None with a kernel), intercept and dual variables in the algorithm's own scale.
    primal : Primal
        At the scale of the objective.
    z : ndarray of shape (n,)
        Scores of the rows without the intercept, at this scale.
    length : float
        |w| at this scale, with an augmented intercept.
    """

    own: tuple[np.ndarray | None, float, np.ndarray]
    primal: Primal
    z: np.ndarray
    length: float


@dataclass
class Progress:
    """The best points of an algorithm, and the counts of a fit, which later algorithms continue.

    Attributes
    ----------
    best : Best
    presentations, steps : int
        Number of row visits so far, and of visits that changed w.
    converged : bool
        Whether the algorithm has ended by its own criterion.
    finite : bool
        Whether all entries of the engine's w are finite.
    """

    best: Any
    presentations: int = 0
    steps: int = 0
    converged: bool = False
    finite: bool = True


class Run(Progress, ABC):
    """The state of an algorithm between two rounds: on rows of data (`LinearRun`) or on rows of a kernel (`GramRun`).

    Parameters
    ----------
    task : Task
    algorithm : Algorithm or Decomposition
    tol : float
        Certified relative gap at which the fit ends.
    rng : Generator
        Draws the orders of presentation.
    interrupted : callable
        Returns whether to stop; called between compiled calls.

    Attributes
    ----------
    patterns : Patterns or KernelPatterns
        The rows of positive weight.
    h : Weight
        The engine's state: w, dual variables, rows. Created at its first use.
    iterate : Iterate or None
        The last one that was evaluated.
    evaluations, evaluating : int, float
        Their number, and the processor time that they took.
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
    iterate: Iterate | None = None
    evaluations, evaluating = 0, 0.0

    def __init__(
        self,
        task: Task,
        algorithm: Algorithm | Decomposition,
        tol: float,
        rng: np.random.Generator,
        interrupted: Callable[[], bool],
    ) -> None:
        patterns, used, best = self._parts(task)
        super().__init__(best)
        self.task, self.problem, self.patterns, self._used = task, task.problem, patterns, used
        self.y, self.weights, self.n = task.y[used], task.weights[used], patterns.n
        self.algorithm: Any = algorithm
        self.tol, self.rng, self.interrupted = tol, rng, interrupted
        self.scores, self.moved = np.empty(self.n), np.empty(self.n, np.uint32)
        self._idle, problem = 0, self.problem
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
        )
        self.plan = plan = algorithm.plan(facts)
        self.rule, self._next_rules, self.settings = plan.rule, list(plan.then), plan.settings
        self.unit = 1.0 if plan.unit is None else plan.unit
        self._fixed_unit = plan.unit is not None
        # the weight of the loss in the engine's problem, relative to C; at `power=1` it becomes |w|, and begins at the
        # |w| of a pattern of mean length that has the score one
        self.multiplier = 1.0
        if self.problem.first_power:
            self.multiplier = max(float(patterns.squares(problem.p).mean()), TINY) ** -0.5

    @staticmethod
    @abstractmethod
    def _parts(task: Task) -> tuple[Any, Any, Best]:
        """Return the rows of positive weight, their places in the task, and what is proved: nothing."""

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
            problem = replace(problem, C=self.multiplier * problem.C, power=2)
        h = self.patterns.engine_state(
            problem, self.y, self.weights, self.unit, self.rho, scale, self.algorithm.bias is Bias.OWN,
            self.algorithm.motion,
        )  # fmt: skip
        if self.shifts and self.problem.p != 2:
            h.number[CONSTANT2] = P_NORM_SHIFT_STEP * float(self.patterns.squares(self.problem.p).mean())
            h = h._replace(
                square=h.square + h.number[CONSTANT2]
            )  # the score of a row of zeros is not constant
        return h

    @abstractmethod
    def _bounds(self) -> None:
        """Compute the bounds at the current w and dual variables, from the scores of all rows, and keep better ones."""

    @abstractmethod
    def length2(self) -> float:
        """Return |w|^2 without slack coordinates, constant coordinate included."""

    def _max_squared_norm(self) -> float:
        """Return R^2, the largest squared norm of a pattern, constant and slack coordinate included."""
        problem, p, square, constant2 = self.problem, self.problem.p, self.patterns.square, self.rho**2
        if p != 2:  # the p-norms of the patterns include the constant coordinate
            square, constant2 = self.patterns.squares(p, self.rho), 0.0
        return float((square + problem.delta2(self.weights)).max()) + constant2

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

    def _margin_lower_bound(self) -> float:
        """Return a lower bound of the largest directional margin.

        It is the margin of the w of a short Perceptron run, or the margin 1 / sqrt(sum 1 / delta_i^2) that the slack
        coordinates of a soft margin attain at w = 0, whichever is larger; 0 if neither is positive.
        """
        problem, delta2 = self.problem, self.problem.delta2(self.weights)
        at_zero = float(np.sum(1.0 / delta2)) ** -0.5 if delta2.all() else 0.0
        h = self.patterns.engine_state(problem, self.y, self.weights, 1.0, self.rho, Unscaled)
        rule = Perceptron().plan(Facts(problem, self.radius2, self.tol)).rule
        # a longer run gives a larger bound, with which the rules that use it take fewer steps
        passes = max(20, 30_000_000 // max(self.patterns.entries, self.n))
        self.repeated(rule, h, self.all_rows, self.scores, self.moved, passes)
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
        """Whether the intercept stays, or oscillates within the accuracy of the rule: 50 times without a better gap."""
        return not self.shifts or self._shift() == 0.0 or self._idle >= 50

    def evaluate_iterate(self) -> None:
        """Score all rows at the current w, compute the bounds, and move the intercept if it is to be (`shifts`)."""
        began = time.process_time()
        if not isinstance(self.h.scale, Unscaled):
            refresh(self.h)
        score_rows(self.h, self.all_rows, self.scores)
        self.presentations += self.n
        self.evaluations += 1
        self.finite = bool(np.isfinite(self.h.space.vector.w).all())
        last = self.best.gap
        self._bounds()
        self._idle = 0 if self.best.gap < DECREASE * last else self._idle + 1
        if self.shifts:
            step = self._shift()
            self.h.number[BIAS] += step
            self.scores += self.y * step
        self.evaluating += time.process_time() - began

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

    def repeated(
        self, rule: Any, h: Any, order: np.ndarray, scores: np.ndarray, moved: np.ndarray, passes: int
    ) -> tuple[int, int, int]:
        """Sweep these rows until none makes a step, without a check of the deadline.

        Returns
        -------
        steps, sweeps, made : int
            Steps of the last sweep, number of sweeps, and steps of all sweeps.
        """
        sweeps = made = 0
        while True:
            steps, new_sweeps, new_steps = repeat(rule, h, order, scores, moved, passes - sweeps)
            sweeps, made = sweeps + new_sweeps, made + new_steps
            if not self.load_missing_rows(h, order):
                return steps, sweeps, made

    def load_missing_rows(self, h: Any, order: np.ndarray) -> bool:
        """Load the kernel row for which a sweep has stopped, and those of a rule's pair.

        Return whether to resume the sweep: False if it has not stopped, or after an interrupt. On rows of data no sweep
        stops.
        """
        if not h.number[STOPPED]:
            return False
        if self.interrupted():
            h.number[STOPPED] = 0.0
            return False
        needed = [order[int(h.number[STOPPED]) - 1], *(h.row_of[h.pair] if h.row_of.size else ())]
        self.patterns.fetch(np.unique(h.ids[needed]))
        return True


class LinearRun(Run):
    """The state of a solver on rows of data."""

    patterns: Patterns
    best: Best

    @staticmethod
    def _parts(task: Task) -> tuple[Patterns, slice, Best]:
        best = Best(task.problem, Primal(np.zeros(task.rows.d), 0.0), np.zeros(task.rows.n))
        return task.rows, slice(None), best

    def point(self) -> Point:
        """Return the best points by the bounds of the algorithm."""
        return Point(*self.best.primal, self.best.alpha)

    def begin_at_duals(self) -> None:
        """Set the engine to the dual variables with which the task begins, if the algorithm can begin there.

        A convergent algorithm begins at their best multiple, since they may have been computed for another C; their sum
        is then the step count. Other algorithms begin at w = 0.
        """
        start = self.task.start
        if start is None or not self.algorithm.convergent:
            return
        h, unit = self.h, self.unit
        self._set_duals(np.clip(start * unit, 0.0, h.cap))
        if not self.problem.hard and h.alpha.any():
            length2 = self.length2() + self._rest2 * float(h.alpha @ self.y) ** 2
            times = self.problem.best_dual(h.alpha / unit, length2**0.5 / unit, self.weights)[0]
            h.alpha[:] = np.minimum(h.alpha * times, h.cap)
            h.space.vector.rescale(times)
        h.number[BIAS] = self._rest2 * float(h.alpha @ self.y)
        if self.problem.p != 2:
            h.number[BIAS] = self._shift()
            refresh(h)
        h.number[TIME] = h.alpha.sum()

    def _set_multiplier(self, k: float) -> None:
        """Make k C the weight of the loss in the engine's problem, which has the squared norm.

        For k = |w| this problem and the one with `power=1` have the same solution w: the gradient of |w|^2 / 2 is |w|
        times that of |w|.
        """
        h, ratio = self.h, k / self.multiplier
        h.cap[:] *= ratio
        if self.problem.loss == "squared_hinge":
            delta2 = h.slack.delta2
            h.square[:] += delta2 / ratio - delta2
            delta2 /= ratio
        self.multiplier = k
        alpha = np.minimum(h.alpha, h.cap)
        if not np.array_equal(alpha, h.alpha):
            self._set_duals(alpha)
            refresh(h)

    @property
    def _rest2(self) -> float:
        """Return the square of an augmented constant coordinate less that of the engine's; 0 for other intercepts."""
        return self.problem.rho**2 - self.rho**2 if self.problem.rho else 0.0

    def _set_duals(self, alpha: np.ndarray) -> None:
        vector, c = self.h.space.vector, alpha * self.y
        self.h.alpha[:] = alpha
        total = vector.w if self.problem.p == 2 else vector.theta
        total[: self.patterns.d] = Plain.combine(self.patterns.X, c)
        if self.rho:
            total[-1] = self.rho * c.sum()
        if self.problem.p != 2:
            vector.rescale(1.0)

    def normalised_patterns(self) -> NormalisedRows:
        """Return the rows divided by their lengths, with the constant coordinate."""
        return NormalisedRows(self.patterns.X, self.y, self.rho)

    def evaluate(
        self,
        w: np.ndarray,
        b: float,
        alpha: np.ndarray,
        z: np.ndarray | None = None,
        v: np.ndarray | None = None,
        own: Any = None,
    ) -> None:
        """Compute the bounds of a primal and a dual point, in any norm, and keep each point whose bound is better.

        The primal point gets its best intercept.

        Parameters
        ----------
        w : ndarray of shape (d,)
        b : float
        alpha : ndarray of shape (n,), non-negative
            In the units of the task.
        z, v : ndarray of shape (n,), ndarray of shape (d,) or (d + 1,), default=None
            w.x_i of every row, and sum alpha_i y_i x_i with the constant coordinate, where they are known.
        own : (ndarray of shape (d,), float, ndarray of shape (n,)), default=None
            The point in the algorithm's own scale, if it is another one.
        """
        w, alpha = np.asarray(w, float), np.asarray(alpha, float)  # of rows in float32
        problem, own = self.problem, own or (w, b, alpha)
        alpha, proved, size = dual_point(self.task, alpha, v)
        length = norm(problem.weights(w, b), problem.q)
        z = Plain.scores(self.patterns.X, w) if z is None else z
        if not self._fixed_unit and size > 0.0 and length > 0.0:
            # the rule does not fix the length of w: set it to the length of the dual point's w
            ratio = size / length
            w, b, z, length = w * ratio, b * ratio, z * ratio, size
        self.iterate = Iterate(own, Primal(w, b), z, length)
        w, b, attained = primal_point(self.task, w, b, z)
        self.best.keep(Primal(w, b), attained, alpha, proved)

    def _bounds(self) -> None:
        """Evaluate the engine's w and dual variables; w.x_i is computed from the scores of the rows."""
        h, unit = self.h, self.unit
        full = h.space.vector.w if self.problem.p == 2 else h.number[FACTOR] * h.space.vector.w
        w, b = (full[:-1], self.rho * float(full[-1])) if self.rho else (full, 0.0)
        b += float(h.number[BIAS])
        z = (self.y * (self.scores - h.slack.extended_score(0.0, h.ids, h.scale)) - b) / unit
        v = h.space.vector.w / unit if self.problem.p == 2 and h.space.vector.is_combination() else None
        if v is not None and self._rest2:
            v[-1] *= self.problem.rho / self.rho
        dual = np.array(h.scale.to_dual(h.alpha))
        alpha = dual / unit
        if self.problem.first_power:  # |v| <= 1
            alpha, v = alpha / self.multiplier, None
        self.evaluate(w / unit, b / unit, alpha, z, v, (w.copy(), b, dual))
        if self.problem.first_power:
            # at w = 0 the next value would be 0
            self._set_multiplier(max(self.length2() ** 0.5 / unit, 0.01 * self.multiplier))

    def length2(self) -> float:
        return float(self.h.space.vector.norm2())


class GramRun(Run):
    """The state of a solver between two rounds on a kernel problem, where w is represented by its scores.

    The engine's vector has n + 1 entries: the scores of all rows of the task, and the constant coordinate of w. The
    `KernelRows` of the task may be used by other solvers between two rounds, but not during one.
    """

    patterns: KernelPatterns
    best: GramBest
    # A row visit reads one number; an evaluation visits all rows and may compute kernel rows. A smaller value costs
    # more evaluations, a larger one delays the end. Chosen on the data sets of benchmarks.before_after.
    passes_per_evaluation: ClassVar[int] = 50

    @staticmethod
    def _parts(task: Task) -> tuple[KernelPatterns, np.ndarray, GramBest]:
        used = np.flatnonzero(task.weights > 0.0)
        best = GramBest(task.problem, task.y, task.weights, task.rows.diagonal)
        return KernelPatterns(task.rows, used), used, best

    def evaluate(self, primal: DualPoint, dual: DualPoint) -> None:
        """Compute the bounds of a primal and a dual point of the rows used, and keep each if it is better."""
        b = self.rho**2 * float(primal.alpha @ self.y)
        primal, dual = (DualPoint(*map(self._on_all_rows, point)) for point in (primal, dual))
        self._keep(primal, b, dual, (None, b, primal.alpha[self._used]))

    def normalised_patterns(self) -> NormalisedProducts:
        """Return the patterns divided by their lengths, with the constant coordinate."""
        used = self.patterns.used
        return NormalisedProducts(
            lambda c: self._product(c, self.interrupted)[used], self.patterns.square, self.y, self.rho
        )

    # bounds

    def _on_all_rows(self, alpha: np.ndarray) -> np.ndarray:
        """Return the dual variables of all rows of the task, 0 for rows of weight 0."""
        out = np.zeros(self.task.y.size)
        out[self._used] = alpha
        return out

    def _bounds(self) -> None:
        """Compute the bounds at the current scores and dual variables, and keep better ones.

        If the rule does not fix the unit of a soft margin, it is set to |w|^2 / sum alpha, slack coordinates included:
        alpha / unit is then the multiple of alpha with the largest dual objective.
        """
        h = self.h
        if not (self.problem.hard or self._fixed_unit) and h.alpha.any():
            length2 = self.length2() + float(self.problem.delta2(self.weights) @ (h.alpha * h.alpha))
            self.unit = length2 / float(h.alpha.sum())
        alpha, scores = h.alpha / self.unit, h.space.vector.w[:-1] / self.unit
        b, own = (
            float(h.number[BIAS]) + self.rho * float(h.space.vector.w[-1]),
            np.array(h.scale.to_dual(h.alpha)),
        )
        primal = DualPoint(self._on_all_rows(alpha), scores)
        self._keep(primal, b / self.unit, self._feasible(alpha, scores), (None, b, own))

    def _keep(self, primal: DualPoint, b: float, dual: DualPoint, own: Any) -> None:
        """Evaluate w = sum alpha_i y_i phi(x_i) with its intercept, and dual variables; all are of all rows."""
        c, z = (primal.alpha * self.task.y)[self._used], primal.scores[self._used]
        length = self.problem.norm2(max(float(c @ z), 0.0), b) ** 0.5
        self.iterate = Iterate(own, Primal(c, b), z, length)
        self.best.evaluate(primal, dual)

    def _feasible(self, alpha: np.ndarray, scores: np.ndarray) -> DualPoint:
        """Return dual variables of all rows, within their caps and balanced for a free intercept, and their scores.

        `alpha`, of the rows used, and `scores`, of all rows, are in the units of the task.
        """
        feasible = np.minimum(alpha, self.problem.caps(self.weights))
        if self.problem.free:
            feasible = self.problem.balanced(self.y, feasible)
        if feasible is None:
            return DualPoint(np.zeros_like(scores), np.zeros_like(scores))
        return DualPoint(self._on_all_rows(feasible), scores - self._product((alpha - feasible) * self.y))

    def length2(self) -> float:
        """Return |w|^2 = sum alpha_i y_i f_i plus the square of the constant coordinate."""
        w = self.h.space.vector.w
        return max(float((self.h.alpha * self.y) @ w[self.patterns.used]), 0.0) + float(w[-1]) ** 2

    # rows of the kernel

    def _product(self, c: np.ndarray, interrupted: Callable[[], bool] = lambda: False) -> np.ndarray:
        """Return sum_i c_i k(x_i, x_j) over the rows i used, for every row j of the task.

        OutOfTime is raised if the stop check, called between blocks of rows, is true.
        """
        patterns, out = self.patterns, np.zeros(self.patterns.rows.n)
        nonzero, size = np.flatnonzero(c), max(1, patterns.rows.capacity // 2)
        for first in range(0, nonzero.size, size):
            if first and interrupted():
                raise OutOfTime
            block = nonzero[first : first + size]
            add_rows(patterns.rows.rows, patterns.fetch(block), c[block], out)
        return out


def starting_point(task: Task, w: np.ndarray, b: float) -> Point:
    """Return the point of a warm start from (w, b): the result of a fit that stops before its first round."""
    w, b, _ = primal_point(task, w, b)
    return Point(w, b, np.ones(task.y.size) if task.start is None else task.start)


def point_of_class_means(task: Task) -> Point:
    """Return a point for a fit that ends without one: dual variables alike in each class, and their w."""
    problem, weights = task.problem, task.weights
    alpha = np.ones(task.y.size) if problem.hard else weights
    if problem.free:
        balanced = problem.balanced(task.y, alpha)
        alpha = alpha if balanced is None else balanced
    alpha, _, length = dual_point(task, alpha)
    w = Plain.combine(task.rows.X, alpha * task.y)
    w *= length / (norm(w, problem.q) or 1.0)
    return Point(*primal_point(task, w, problem.rho**2 * float(alpha @ task.y))[:2], alpha)
