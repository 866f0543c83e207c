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
from .batch.centred_rows import centred_rows
from .batch.generation import column_points, linear_points
from .batch.iterate import Reached
from .batch.newton import newton_points
from .batch.sifting import by_proximal_points, sifted_points

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


class Points(NamedTuple):
    """The rule of a batch solver.

    Attributes
    ----------
    made : callable
        Yields better and better points of a run: (w, b, alpha), or `Reached` by solvers that know which gap is asked
        for.
    """

    made: Callable[[Run], Iterator[Any]]

    @staticmethod
    def show(run: Run, point: Any) -> None:
        """Take the bounds of a point, which costs two passes over the rows; of one that is near enough, certify it."""
        w, b, alpha = point[:3]
        if isinstance(point, Reached) and point.near:
            run.candidate = w, b, alpha
        else:
            run.evaluate(w, b, alpha)


def _plan(solver: Callable[..., Iterator[Any]], **options: Any) -> Plan:
    """Return the plan of a solver that takes rows as they are stored."""

    def made(run: Run) -> Iterator[Any]:
        return solver(run.problem, run.patterns.X, run.y, run.weights, run.interrupted, **options)

    return Plan(rule=Points(made), unit=1.0)


@dataclass(frozen=True)
class Program(Algorithm):
    """Common part of the batch solvers: no rule that sees patterns one by one, and no order of them."""

    schedule: str = "points"

    schedules: ClassVar[tuple[str, ...]] = ("points",)
    bias: ClassVar[Bias] = Bias.OWN
    kernelised: ClassVar[bool] = False
    points: ClassVar[Any] = None

    def plan(self, facts: Facts) -> Plan:
        return _plan(type(self).points)


@dataclass(frozen=True)
class SoftProgram(Program):
    """Common part of the solvers of soft margins at p = 2, which end at the gap that is asked for."""

    loss: ClassVar[str | None] = None  # the only one; None: both

    def plan(self, facts: Facts) -> Plan:
        return _plan(type(self).points, tol=facts.tol)

    def refuses(self, problem: Problem) -> str | None:
        if problem.hard:
            return "a finite C"
        if self.loss not in (None, problem.loss):
            return f'loss="{self.loss}"'
        return None if problem.euclidean else "p=2 with norm_power=2"


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
class InteriorPoint(SoftProgram):
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
    points: ClassVar[Any] = staticmethod(sifted_points)


@dataclass(frozen=True)
class ProximalPoint(SoftProgram):
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
    loss: ClassVar[str | None] = "hinge"
    points: ClassVar[Any] = staticmethod(partial(sifted_points, solver=by_proximal_points))


@dataclass(frozen=True)
class Newton(SoftProgram):
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
    loss: ClassVar[str | None] = "squared_hinge"

    def plan(self, facts: Facts) -> Plan:
        def made(run: Run) -> Iterator[Reached]:
            patterns, problem = run.patterns, run.problem  # all classes share the blocks
            square = float(patterns.square.sum())
            blocks = patterns.shared(
                ("centred rows", problem), lambda: centred_rows(problem, patterns.X, square=square)
            )
            return newton_points(problem, blocks, run.y, run.weights, run.interrupted, facts.tol, facts.point)

        return Plan(rule=Points(made), unit=1.0)


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
        return Plan(rule=Points(lambda run: iter((point,))), unit=1.0)
