"""Batch solvers with the interface `Algorithm` of the online ones; a fit certifies every iterate of the solver."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from ..engine.state import Unscaled
from ..problem.problem import Problem
from ..solvers.decomposition import decomposed_points
from ..solvers.generation import column_points, linear_points
from ..solvers.interior_point import interior_points
from ..solvers.iterate import Reached
from ..solvers.l1 import l1_points
from ..solvers.semismooth import semismooth_points
from .base import Algorithm, Bias, Facts, Plan

if TYPE_CHECKING:
    from ..fit.report import Task


def interior_points_of_any_norm(
    problem: Problem,
    X: Any,
    y: np.ndarray,
    weights: np.ndarray,
    interrupted: Callable[[], bool],
    tol: float = 0.0,
) -> Iterator[Any]:
    """Yield the iterates of interior points for any problem; a soft one at p = inf by column generation.

    The iterates of a hard margin that end without a separator are followed by those of a linear program: where the
    largest margin is 0, rounding ends the steps. Those of the linear program at p = inf then have
    sum alpha_i y_i x_i = 0, which proves in every norm that there is no separator.
    """
    points: Any = partial(interior_points, tol=tol)
    if problem.p == np.inf and not problem.hard:
        points = partial(column_points, points)
    w, b = np.zeros(X.shape[1]), 0.0  # where there is no iterate
    for w, b, alpha in points(problem, X, y, weights, interrupted):
        yield w, b, alpha
    # the last point does not separate the classes: the largest margin may be 0
    if problem.hard and not interrupted() and not float((y * (X @ w + b)).min()) > 0.0:
        yield from linear_points(replace(problem, p=np.inf), X, y, weights, interrupted)


@dataclass(frozen=True)
class Program(Algorithm):
    """Common part of the batch solvers, which use all patterns at once: their order is of no effect."""

    schedule: str = "points"

    schedules: ClassVar[tuple[str, ...]] = ("points",)
    bias: ClassVar[Bias] = Bias.OWN
    kernelised: ClassVar[bool] = False
    points: ClassVar[Any]

    def plan(self, facts: Facts) -> Plan:
        return Plan(rule=lambda run: self.iterates(run.task, run.tol, run.interrupted), unit=1.0)

    def iterates(self, task: Task, tol: float, interrupted: Callable[[], bool]) -> Iterator[Any]:
        """Yield the iterates of the solver, (w, b, alpha) or `Reached`, up to a gap of `tol`; rows are as stored."""
        return type(self).points(task.problem, task.rows.X, task.y, task.weights, interrupted, tol)


@dataclass(frozen=True)
class SoftProgram(Program):
    """Common part of the solvers of soft margins with one loss, by default at p = 2, which end at a given gap."""

    loss: ClassVar[str]

    def refuses(self, problem: Problem) -> str | None:
        if problem.hard:
            return "a finite C"
        return self.other_norm(problem) if problem.loss == self.loss else f'loss="{self.loss}"'

    def other_norm(self, problem: Problem) -> str | None:
        return None if problem.euclidean else "p=2 with norm_power=2"


class SemismoothNewton(SoftProgram):
    """Common part of the entries to `solvers.semismooth`, one for each loss."""

    def iterates(self, task: Task, tol: float, interrupted: Callable[[], bool]) -> Iterator[Reached]:
        problem, rows = task.problem, task.rows.centred(task.problem)
        return semismooth_points(problem, rows, task.y, task.weights, interrupted, tol, task.point)


@dataclass(frozen=True)
class LinearProgram(Program):
    """The linear programs of p = 1 and p = inf, solved by HiGHS with row and column generation.

    Model: for the hard margin, maximise g subject to y_i (w.x_i + b) >= g and |w|_q <= 1; for the hinge with
    norm_power=1, minimise |w|_q + sum C s_i xi_i subject to y_i (w.x_i + b) >= 1 - xi_i and xi_i >= 0.
    Iteration: a restricted program of some rows and columns is solved. Violated rows, and columns whose entry of
    sum alpha_i y_i x_i exceeds the dual bound, enter until there are none. Bounds are computed over all rows and
    columns.
    Guarantee: ends with the optimum, up to HiGHS's tolerances.

    References
    ----------
    J. P. Pedroso, N. Murata, "Support vector machines with different norms", Pattern Recognition Letters 22, 2001;
    P. S. Bradley, O. L. Mangasarian, "Massive data discrimination via linear support vector machines", OMS 13, 2000.
    """

    name: ClassVar[str] = "lp"

    def iterates(self, task: Task, tol: float, interrupted: Callable[[], bool]) -> Iterator[Any]:
        return linear_points(task.problem, task.rows.X, task.y, task.weights, interrupted)

    def refuses(self, problem: Problem) -> str | None:
        if problem.p not in (1.0, np.inf):
            return "p=1 or p=inf"
        if not problem.hard and (problem.loss != "hinge" or problem.power != 1):
            return 'C=inf, or loss="hinge" with norm_power=1'
        return None


@dataclass(frozen=True)
class InteriorPoint(Program):
    """Primal-dual interior-point methods: every p, both losses, both powers of the norm and the hard margin.

    Iteration: a step of Mehrotra's predictor-corrector method, which costs n d min(n, d). Each |w_j| has a bound, and
    the vector of the bounds takes the place of w in the norm, so that all powers are those of positive numbers. There
    are 5 to 20 steps as a rule, whatever p, C, the sample weights and the scales of the features are. Soft margins at
    p = inf may have any number of columns: columns enter by their dual violation, a few times as many as have a weight
    at the optimum.
    Guarantee: every point is certified on all rows, so that its gap is proved. The number of steps is measured: there
    is no such theorem for predictor-corrector methods.

    References
    ----------
    S. Mehrotra, "On the implementation of a primal-dual interior point method", SIAM J. Optim. 2, 1992;
    M. C. Ferris, T. S. Munson, "Interior-point methods for massive support vector machines", SIAM J. Optim. 13, 2002;
    F. A. Potra, Y. Ye, "Interior-point methods for nonlinear complementarity problems", JOTA 88, 1996.
    """

    name: ClassVar[str] = "interior-point"
    points: ClassVar[Any] = staticmethod(interior_points_of_any_norm)

    def refuses(self, problem: Problem) -> str | None:
        return None


@dataclass(frozen=True)
class ProximalPoint(SemismoothNewton):
    """The proximal-point method on the dual of the hinge at p = 2, for many patterns of few features.

    Iteration: a quadratic term keeps the dual variables near the last ones, which smooths the hinge. A step of Newton's
    method on the smooth problem passes twice over the rows, and needs products of columns only over the active rows,
    whose margins are next to the breakpoint of the hinge. There are 20 to 60 steps as a rule, with less rounding than
    at an interior point. With many rows, a sample is solved first.
    Guarantee: every point is certified on all rows. The method converges for every weight of the quadratic term, the
    faster the smaller it is (Rockafellar, theorem 2); the number of steps is measured.

    References
    ----------
    R. T. Rockafellar, "Augmented Lagrangians and applications of the proximal point algorithm in convex programming",
    Math. Oper. Res. 1, 1976;
    X. Li, D. Sun, K.-C. Toh, "A highly efficient semismooth Newton augmented Lagrangian method for solving Lasso
    problems", SIAM J. Optim. 28, 2018.
    """

    name: ClassVar[str] = "proximal-point"
    loss: ClassVar[str] = "hinge"


@dataclass(frozen=True)
class Newton(SemismoothNewton):
    """Newton's method for the squared hinge at p = 2: few steps, each with the Hessian of the active rows.

    Iteration: the gradient is piecewise linear. The Newton direction leads to the point where it would vanish if the
    active set, the rows of margin less than one, stayed the same; an exact line search minimises the objective along
    it. A step costs n d^2, or the squares of the numbers of entries of sparse rows; beyond 1000 columns, it takes
    passes of conjugate gradients. With many rows, a sample is solved first.
    Guarantee: ends at the optimum, as there are finitely many active sets.

    References
    ----------
    O. L. Mangasarian, "A finite Newton method for classification problems", OMS 17, 2002;
    S. S. Keerthi, D. DeCoste, "A modified finite Newton method for fast solution of large scale linear SVMs", JMLR 6,
    2005.
    """

    name: ClassVar[str] = "newton"
    loss: ClassVar[str] = "squared_hinge"


@dataclass(frozen=True)
class ProximalNewton(SoftProgram):
    """A proximal Newton method for the squared hinge at p = inf, where w is sparse; its zeros are exact.

    Iteration: the losses are replaced by their quadratic model at w, which coordinate descent with soft thresholds and
    Newton steps minimise over the non-zero weights and the columns of the largest |v_j|, v = sum alpha_i y_i x_i. The
    costs grow to C in stages. A step passes three times over the rows, and multiplies k columns of the rows of margin
    less than one for a working set of k columns. There are 5 to 30 steps as a rule, 100 to 200 for large C on text.
    Guarantee: every step decreases the objective, and every point is certified. The number of steps is measured.

    References
    ----------
    G.-X. Yuan, K.-W. Chang, C.-J. Hsieh, C.-J. Lin, "A comparison of optimization methods and software for large-scale
    L1-regularized linear classification", JMLR 11, 2010;
    J. D. Lee, Y. Sun, M. A. Saunders, "Proximal Newton-type methods for minimizing composite functions", SIAM J. Optim.
    24, 2014.
    """

    name: ClassVar[str] = "proximal-newton"
    loss: ClassVar[str] = "squared_hinge"
    points: ClassVar[Any] = staticmethod(l1_points)

    def other_norm(self, problem: Problem) -> str | None:
        return None if problem.p == np.inf else "p=inf"


@dataclass(frozen=True)
class Decomposition:
    """Working sets of the rows that violate optimality most, each solved by sequential minimal optimisation.

    It solves every kernel problem and uses patterns only through the kernel. Its attributes are those of `Algorithm`.
    """

    name: ClassVar[str] = "decomposition"
    words: ClassVar[str] = "decomposition"  # in messages
    schedule: ClassVar[str] = "working-sets"
    convergent: ClassVar[bool] = True
    shuffle: ClassVar[bool] = True  # no order of the rows is kept, so that equal rows may be merged
    bias: ClassVar[Bias] = Bias.OWN
    scale: ClassVar[Any] = Unscaled
    decides: ClassVar[bool] = False

    def refuses(self, problem: Problem) -> str | None:
        """Return None: no kernel problem is refused."""
        return None

    def for_rows(self, n: int, totals: Callable[[np.ndarray], np.ndarray]) -> Decomposition:
        """Return the same object: it has no parameters of rows."""
        return self

    def plan(self, facts: Facts) -> Plan:
        """Return the plan, the same for every problem: the solver `decomposed_points` takes the place of a rule."""
        return Plan(rule=decomposed_points, unit=1.0)
