"""Other solvers on hard problems. Each is given the problems that it can state, without tricks.

LinearSVC regularises the intercept, or has none: it is given the problems without intercept. SVC always has an
intercept and no squared losses. Solvers of quadratic programs are given linear problems with p = 1, 2 and inf and
kernels; Clarabel also has the power cones of p = 1.5 and 3.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.svm import SVC, LinearSVC

from ..measure import timed
from .answers import Answer
from .problems import HardProblem
from .quadratic import Point, Program, by_clarabel, clarabel, kernel_matrix, optional, stated

highspy, piqp = map(optional, ("highspy", "piqp"))
SVM_TOLERANCES = (1e-9, 1e-6, 1e-3)  # smaller ones are lost in the rounding of gradients
# Most iterations of solvers that return their last point there: about what 10 s allow on most problems.
PASSES, PAIRS = 300_000, 3_000_000
Part = Callable[[HardProblem, np.ndarray, np.ndarray, float], Point]


@dataclass(frozen=True)
class Peer:
    """A solver: its name, the problems that it can state, and its function for one binary problem.

    `tolerances` are tried from the tightest to the loosest, until an answer is within 1e-9 of the optimum.
    """

    name: str
    applies: Callable[[HardProblem], bool]
    part: Part
    tolerances: tuple[float, ...] = (1e-12, 1e-9, 1e-6)
    package: Any = np

    def solve(self, problem: HardProblem, tol: float) -> Answer:
        """Solve all binary problems of a problem."""
        parts = problem.parts()
        seconds, points = timed(lambda: [self.part(problem, X, signs, tol) for X, signs in parts])
        return Answer(points, seconds, "returned")


def _plain(problem: HardProblem) -> bool:
    return problem.kernel is None and problem.p == 2 and problem.power == 2


def _sparse_weights(problem: HardProblem) -> bool:
    """Whether the penalty is |w|_1, which liblinear has with squared losses."""
    return problem.p == np.inf and problem.power == 1 and problem.loss == "squared_hinge"


def _for_linear_svc(problem: HardProblem) -> bool:
    if problem.hard or problem.intercept or problem.kernel:
        return False
    return _plain(problem) or _sparse_weights(problem)


def _linear_svc(problem: HardProblem, X: np.ndarray, signs: np.ndarray, tol: float) -> Point:
    model = LinearSVC(
        penalty="l1" if problem.power == 1 else "l2", loss=problem.loss, C=problem.C, tol=tol,
        dual=problem.loss == "hinge", fit_intercept=False, max_iter=PASSES, random_state=0,
    )  # fmt: skip
    return model.fit(X, signs).coef_[0], 0.0


def _for_svc(problem: HardProblem) -> bool:
    squared = problem.loss == "squared_hinge"
    return problem.intercept and not squared and problem.p == 2 and problem.power == 2


def _svc(problem: HardProblem, X: np.ndarray, signs: np.ndarray, tol: float) -> Point:
    rows = X @ X.T if not problem.kernel else kernel_matrix(problem, X)
    model = SVC(kernel="precomputed", C=problem.C, tol=tol, max_iter=PAIRS).fit(rows, signs)
    coefficients = np.zeros(len(X))
    coefficients[model.support_] = model.dual_coef_[0]
    return coefficients if problem.kernel else coefficients @ X, float(model.intercept_[0])


def _quadratic(problem: HardProblem) -> bool:
    return problem.p in (1, 2, np.inf)


def _with(solver: Callable[[Program, HardProblem, float], tuple[np.ndarray, np.ndarray]]) -> Part:
    """Return the function of a solver that returns x and the multipliers of the equations."""

    def part(problem: HardProblem, X: np.ndarray, signs: np.ndarray, tol: float) -> Point:
        program = stated(problem, X, signs)
        return program.read(*solver(program, problem, tol))

    return part


def _highs(program: Program, problem: HardProblem, tol: float) -> tuple[np.ndarray, np.ndarray]:
    """Solve with HiGHS; its smallest tolerance is 1e-10."""
    model = highspy.HighsModel()
    lp = model.lp_
    matrix = sp.vstack([program.A, program.G], format="csc")
    lp.num_col_, lp.num_row_ = program.q.size, matrix.shape[0]
    lp.col_cost_, lp.col_lower_, lp.col_upper_ = program.q, program.low, program.high
    lp.row_lower_ = np.append(program.b, np.full(program.h.size, -np.inf))
    lp.row_upper_ = np.append(program.b, program.h)
    lp.a_matrix_.num_col_, lp.a_matrix_.num_row_ = program.q.size, matrix.shape[0]
    lp.a_matrix_.format_ = highspy.MatrixFormat.kColwise
    lp.a_matrix_.start_, lp.a_matrix_.index_ = matrix.indptr, matrix.indices
    lp.a_matrix_.value_ = matrix.data
    lower = sp.tril(program.P, format="csc")
    lower.eliminate_zeros()
    if lower.nnz:
        model.hessian_.dim_ = program.q.size
        model.hessian_.format_ = highspy.HessianFormat.kTriangular
        model.hessian_.start_, model.hessian_.index_ = lower.indptr, lower.indices
        model.hessian_.value_ = lower.data
    solver = highspy.Highs()
    solver.silent()
    solver.setOptionValue("threads", 1)
    for name in ("primal_feasibility_tolerance", "dual_feasibility_tolerance"):
        solver.setOptionValue(name, max(tol, 1e-10))
    solver.setOptionValue(
        "qp_regularization_value", min(tol, 1e-7)
    )  # 1e-7 by default: it changes the optimum
    solver.passModel(model)
    solver.run()
    found = solver.getSolution()
    return np.array(found.col_value), -np.array(found.row_dual[: program.b.size])


def _piqp(program: Program, problem: HardProblem, tol: float) -> tuple[np.ndarray, np.ndarray]:
    solver = piqp.SparseSolver()
    settings = solver.settings
    settings.verbose, settings.max_iter = False, 10_000
    settings.eps_abs = settings.eps_rel = settings.eps_duality_gap_abs = settings.eps_duality_gap_rel = tol
    lower = np.full(program.h.size, -np.inf)
    solver.setup(
        program.P, program.q, program.A, program.b, program.G, lower, program.h, program.low, program.high
    )
    solver.solve()
    return np.array(solver.result.x), np.array(solver.result.y)


PEERS = (
    Peer("LinearSVC", _for_linear_svc, _linear_svc, SVM_TOLERANCES),
    Peer("SVC", _for_svc, _svc, SVM_TOLERANCES),
    Peer("Clarabel", lambda problem: True, _with(by_clarabel), package=clarabel),
    Peer("HiGHS", _quadratic, _with(_highs), (1e-10,), package=highspy),
    Peer("PIQP", _quadratic, _with(_piqp), package=piqp),
)
