"""Exact solvers behind the frame of the incremental algorithms: a round is one point of theirs, and its bounds."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

import numpy as np

from ..problem.problem import Problem
from .base import Algorithm, Bias, Facts, Plan
from .batch.barrier import path_points
from .batch.chunks import blocks_of
from .batch.column_generation import column_points
from .batch.generation import linear_points
from .batch.iterate import Reached
from .batch.newton import newton_points
from .batch.sifting import by_proximal_points, narrowed_points

if TYPE_CHECKING:
    from ..fit.run import Run


def path_or_proof(
    problem: Problem, X: Any, y: np.ndarray, weights: np.ndarray, interrupted: Callable[[], bool]
) -> Iterator[tuple[np.ndarray, float, np.ndarray]]:
    """The points of the path; where no separator is found, those of a linear program, whose dual weights cancel.

    Numbers end before a path whose optimum is 0 does, and dual weights that cancel do so in every norm. Soft margins at
    p = inf need few columns.
    """
    if problem.p == np.inf and not problem.hard:
        yield from column_points(problem, X, y, weights, interrupted)
        return
    w, b = np.zeros(X.shape[1]), 0.0
    for w, b, alpha in path_points(problem, X, y, weights, interrupted):
        yield w, b, alpha
    if problem.hard and not interrupted() and not float((y * (X @ w + b)).min()) > 0.0:
        yield from linear_points(replace(problem, p=np.inf), X, y, weights, interrupted)


def _made(self: Points | CandidPoints, run: Run) -> Iterator[Any]:
    """The points."""
    return self.of(run.problem, run.patterns.X, run.y, run.weights, run.interrupted)


class Points(NamedTuple):
    """Makes better and better points (w, b, alpha) of a problem."""

    of: Callable[..., Iterator[tuple[np.ndarray, float, np.ndarray]]]

    made = _made

    @staticmethod
    def show(run: Run, point: tuple[np.ndarray, float, np.ndarray]) -> None:
        """What the point is worth costs two passes over the rows."""
        run.evaluate(*point)


def _hear(run: Run, point: Reached) -> None:
    """What is near enough is proved by passes over the rows that need not be made twice."""
    if point.near:
        run.candidate = point[:3]
    else:
        run.evaluate(*point[:3])


class CandidPoints(NamedTuple):
    """Makes points that tell whether they are near enough."""

    of: Callable[..., Iterator[Reached]]

    made, show = _made, staticmethod(_hear)


class NewtonPoints(NamedTuple):
    """Those of Newton's method, to a gap, from (w, b) if there is a point to begin with."""

    tol: float
    start: tuple[np.ndarray, float] | None

    def made(self, run: Run) -> Iterator[Reached]:
        """The points, of blocks that all classes share."""
        patterns, problem = run.patterns, run.problem
        square = float(patterns.square.sum())
        blocks = patterns.shared(("chunks", problem), lambda: blocks_of(problem, patterns.X, square=square))
        return newton_points(run.problem, blocks, run.y, run.weights, run.interrupted, self.tol, self.start)

    show = staticmethod(_hear)


@dataclass(frozen=True)
class Program(Algorithm):
    """What they have in common: no rule that sees patterns one by one, and no order of them."""

    schedule: str = "points"

    schedules: ClassVar[tuple[str, ...]] = ("points",)
    bias: ClassVar[Bias] = Bias.OWN
    kernelised: ClassVar[bool] = False
    points: ClassVar[Any] = None

    def plan(self, facts: Facts) -> Plan:
        return Plan(rule=Points(type(self).points), unit=1.0)


@dataclass(frozen=True)
class CandidProgram(Program):
    """Of solvers that are told which gap is asked for, and say which of their points are as near."""

    def plan(self, facts: Facts) -> Plan:
        return Plan(rule=CandidPoints(partial(type(self).points, tol=facts.tol)), unit=1.0)


@dataclass(frozen=True)
class LinearProgram(Program):
    """The exact linear programs of p = 1 and p = inf, by HiGHS on the rows and columns that matter.

    Model: the hard margin is the largest g with y_i (w.x_i + b) >= g and |w|_q <= 1; the hinge with the norm to the
    first power the least |w|_q + sum C s_i xi_i with y_i (w.x_i + b) >= 1 - xi_i.
    Turn: the program of some rows and columns is solved; rows that are violated, and columns whose share of
    sum alpha_i y_i x_i exceeds the bound, join until none is left. Every round is certified on all of them.
    Guarantee: ends with the optimum, up to HiGHS's tolerances.

    References
    ----------
    J. P. Pedroso, N. Murata, "Support vector machines with different norms", Pattern Recognition Letters 22, 2001;
    P. S. Bradley, O. L. Mangasarian, "Massive data discrimination via linear support vector machines", OMS 13, 2000.
    """

    name: ClassVar[str] = "lp"
    points: ClassVar[Any] = staticmethod(linear_points)

    def refuses(self, problem: Problem) -> str | None:
        if problem.p not in (1.0, np.inf):
            return "p=1 or p=inf"
        if not problem.hard and (problem.loss != "hinge" or problem.power != 1):
            return 'C=inf, or loss="hinge" with norm_power=1'
        return None


@dataclass(frozen=True)
class BarrierPath(Program):
    """A path of smooth problems to the optimum, by Newton's method: every p, both losses, both powers of the norm.

    Model: the cone |w|_q <= t is built of power cones, one a coordinate, each with a self-concordant barrier.
    Turn: Newton's method goes to a point of the central path nearer to the optimum, whose dual weights are certified
    with it. For small problems: a step costs n d min(n, d), and there are 30 to 100 of them, whatever p, C and the
    scales are. Soft margins at p = inf may have any number of columns: those join that the dual weights ask for, some
    times as many as w has in the end.
    Guarantee: a point of the path is about nu / tau from the optimum, nu being the number of barriers and tau what
    each round multiplies; so the path ends with the optimum, to nearly the last digits. The number of steps is
    measured, not proved.

    References
    ----------
    Y. Nesterov, A. Nemirovskii, "Interior-point polynomial algorithms in convex programming", SIAM, 1994;
    R. Chares, "Cones and interior-point algorithms for structured convex optimization involving powers and
    exponentials", thesis, Louvain, 2009.
    """

    name: ClassVar[str] = "barrier"
    points: ClassVar[Any] = staticmethod(path_or_proof)

    def refuses(self, problem: Problem) -> str | None:
        return None


@dataclass(frozen=True)
class InteriorPoint(CandidProgram):
    """A primal-dual path to the optimum of a soft margin at p = 2, for many patterns of few features.

    Turn: a step of Mehrotra's predictor-corrector on the dual, which costs n d^2; there are 10 to 50 of them, whatever
    C, the sample weights and the scales of the features are. With the hinge, n are the rows near the margin, which
    solutions on growing samples tell from the rest. No copy of more than a part of the rows is made.
    Guarantee: every point is certified on all rows, so that what it ends with is proved; that it takes few steps is
    measured, for no theorem says so of predictor-corrector methods.

    References
    ----------
    S. Mehrotra, "On the implementation of a primal-dual interior point method", SIAM J. Optim. 2, 1992;
    M. C. Ferris, T. S. Munson, "Interior-point methods for massive support vector machines", SIAM J. Optim. 13, 2002.
    """

    name: ClassVar[str] = "interior-point"
    points: ClassVar[Any] = staticmethod(narrowed_points)

    def refuses(self, problem: Problem) -> str | None:
        if problem.hard:
            return "a finite C"
        return None if problem.euclidean else "p=2 with norm_power=2"


@dataclass(frozen=True)
class ProximalPoint(CandidProgram):
    """Proximal points on the dual of the hinge at p = 2, for many patterns of few features.

    Turn: with dual weights held near to the last ones the hinge is smooth; Newton's method on it passes twice over the
    rows a step, and asks for products of columns over the few patterns alone that are next to their kink. There are 20
    to 60 steps as a rule, fewer digits of which are rounding than at an interior point. Of many rows those near the
    margin are solved for, as `InteriorPoint` does, which goes on where this ends too early and is taken at once where
    there are fewer rows than a quarter of the columns' square.
    Guarantee: every point is certified on all rows. The method converges for every sigma, the faster the larger it is
    (Rockafellar, theorem 2); the number of steps is measured.

    References
    ----------
    R. T. Rockafellar, "Augmented Lagrangians and applications of the proximal point algorithm in convex programming",
    Math. Oper. Res. 1, 1976;
    X. Li, D. Sun, K.-C. Toh, "A highly efficient semismooth Newton augmented Lagrangian method for solving Lasso
    problems", SIAM J. Optim. 28, 2018.
    """

    name: ClassVar[str] = "proximal-point"
    points: ClassVar[Any] = staticmethod(partial(narrowed_points, solver=by_proximal_points))

    def refuses(self, problem: Problem) -> str | None:
        if problem.hard:
            return "a finite C"
        if problem.loss != "hinge":
            return 'loss="hinge"'
        return None if problem.euclidean else "p=2 with norm_power=2"


@dataclass(frozen=True)
class Newton(Program):
    """Newton's method for the squared hinge at p = 2: few steps, each of all the patterns that cost something.

    Turn: the gradient is piecewise linear; a step goes to where it would vanish if the costly patterns stayed the same,
    and along that line to the least loss. A step costs n d^2, or the squares of the non-zeros of sparse rows; beyond
    1000 columns, passes of conjugate gradients. Of many rows a sample is solved first.
    Guarantee: ends with the optimum, as there are finitely many sets of costly patterns.

    References
    ----------
    O. L. Mangasarian, "A finite Newton method for classification problems", OMS 17, 2002;
    S. S. Keerthi, D. DeCoste, "A modified finite Newton method for fast solution of large scale linear SVMs", JMLR 6,
    2005.
    """

    name: ClassVar[str] = "newton"

    def plan(self, facts: Facts) -> Plan:
        return Plan(rule=NewtonPoints(facts.tol, facts.point), unit=1.0)

    def refuses(self, problem: Problem) -> str | None:
        if problem.hard:
            return "a finite C"
        if problem.loss != "squared_hinge":
            return 'loss="squared_hinge"'
        return None if problem.euclidean else "p=2 with norm_power=2"


@dataclass(frozen=True)
class NoSeparator(Program):
    """For classes that are known not to be separable: dual weights that cancel prove it in every norm.

    Parameters
    ----------
    alpha : ndarray of shape (n,)
        Dual weights with sum alpha_i y_i x_i = 0.
    """

    alpha: Any = field(default=None, kw_only=True, compare=False, repr=False)

    name: ClassVar[str] = "no-separator"

    def refuses(self, problem: Problem) -> str | None:
        return None if problem.hard else "C=inf"

    def plan(self, facts: Facts) -> Plan:
        point = (np.zeros(facts.d), 0.0, self.alpha)
        return Plan(rule=Points(lambda *task: iter((point,))), unit=1.0)
