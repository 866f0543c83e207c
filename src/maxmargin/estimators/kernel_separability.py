"""Separability of one task of a kernel fit with a hard margin."""

from __future__ import annotations

from dataclasses import replace
from functools import cached_property
from typing import Any

import numpy as np
import scipy.sparse as sp

from ..certificates.expansions import KernelPoint, KernelProblem
from ..certificates.gram import KernelSample
from ..certificates.separators import KernelSeparator, LinearSeparator
from ..certificates.verdicts import Inseparable, Separable, Verdict
from ..fit.deadline import Deadline
from ..fit.lockstep import KernelSolution
from ..kernels.functions import Kernel
from ..numerics.sparse_columns import may_be_dense, without_empty_columns
from ..problem.problem import Problem
from ..problem.status import Status
from ..separability.kernel import kernel_trivial_certificate, kernel_verdict
from ..separability.search import fit_task

# Operations of the least-squares problem that writes a hyperplane as a combination of rows: a second or two. Beyond
# them the separator is kept as a verdict, and not as a model.
MAX_LEAST_SQUARES = 4e9


class KernelSeparability:
    """The verdict on whether the classes of one task are separable, sought when it is first needed.

    Parameters
    ----------
    kernel : Kernel
    problem : Problem
        A hard margin.
    X : ndarray or CSR matrix of shape (n, d)
    y : ndarray of shape (n,), entries -1.0 and 1.0
    weights : ndarray of shape (n,)
        0 for rows that take no part in the task.
    sides : tuple of two labels
        Names of the negative and of the positive side.
    deadline : Deadline
        Of the whole fit.
    """

    def __init__(
        self,
        kernel: Kernel,
        problem: Problem,
        X: Any,
        y: np.ndarray,
        weights: np.ndarray,
        sides: tuple[Any, Any],
        deadline: Deadline,
    ) -> None:
        self.kernel, self.problem, self.X, self.y, self.weights = kernel, problem, X, y, weights
        self.sides, self.deadline = sides, deadline
        self.rows = np.flatnonzero(weights > 0.0)

    @cached_property
    def verdict(self) -> Verdict:
        """The verdict of `separate` on the rows of the task."""
        X, y = self._own_rows()
        task = fit_task(self.problem, X, y, self.sides, self.deadline)
        return kernel_verdict(self.kernel, task, self.rows, self.y.size)

    def is_contradictory(self) -> bool:
        """Return whether a few rows prove by themselves that there is no separator."""
        return kernel_trivial_certificate(self.kernel, self.problem, *self._own_rows()) is not None

    def is_inseparable(self) -> bool:
        """Return whether there is a proof that no separator exists."""
        return isinstance(self.verdict, Inseparable)

    def is_better(self, found: KernelSolution) -> bool:
        """Return whether the verdict was needed during the fit, and its separator proves more than this solution."""
        if "verdict" not in vars(self):
            return False
        return isinstance(self.verdict, Separable) and not found.bounds.lower >= self.verdict.lo > 0.0

    def combine(self, found: KernelSolution, tol: float) -> tuple[KernelSolution, Verdict | None]:
        """Combine a solution with the verdict, which is returned where the model does not show it.

        The verdict's separator is an incumbent: the better of both is kept, with its certificate. The model does not
        show the proof that there is no separator, an undecided verdict, and a separator for which no float64
        coefficients of rows are known: a polynomial, or a hyperplane in rational numbers.
        """
        verdict = self.verdict
        if isinstance(verdict, Inseparable):
            alpha = np.zeros(self.y.size)
            alpha[verdict.support] = verdict.alpha
            return self._certified(found.point._replace(alpha=alpha), found, Status.INSEPARABLE), verdict
        separator = self._separator(verdict)
        if separator is not None:
            better = self._best_dual(separator, found)
            if better.bounds.lower > max(found.bounds.lower, 0.0):
                certified = self.problem.gap(better.bounds.lower, better.bounds.upper) <= tol
                return replace(better, status=Status.CERTIFIED if certified else better.status), None
        if found.bounds.lower > 0.0:
            return found, None
        return replace(found, status=self.deadline.status() or Status.UNDECIDED), verdict

    def _own_rows(self) -> tuple[Any, np.ndarray]:
        """Rows and labels of the task."""
        return self.kernel.part(self.X, self.rows), self.y[self.rows]

    def _best_dual(self, separator: KernelPoint, found: KernelSolution) -> KernelSolution:
        """Return the separator with the dual variables, its own or those of the fit, that prove more."""
        status = Status.STALLED if found.status in (Status.UNDECIDED, Status.NOT_FINITE) else found.status
        points = [
            self._certified(separator._replace(alpha=alpha), found, status)
            for alpha in (found.point.alpha, separator.alpha)
        ]
        return min(points, key=lambda point: point.bounds.upper)

    def _certified(self, point: KernelPoint, found: KernelSolution, status: Status) -> KernelSolution:
        """Certify a point on the data of the task."""
        sample = KernelSample(self.kernel, self.X)
        bounds = KernelProblem(self.problem, sample, self.y, self.weights).bounds(point)
        return replace(found, point=bounds.point, bounds=bounds.bounds, status=status)

    def _separator(self, verdict: Verdict) -> KernelPoint | None:
        """Return the separator of a verdict as a point; None where no float64 coefficients of rows are known."""
        if isinstance(verdict, KernelSeparator):
            coefficients = verdict.coefficients
        elif isinstance(verdict, LinearSeparator):
            coefficients = _as_combination(self.X[self.rows], verdict.w)
        else:
            return None
        if coefficients is None:
            return None
        c, alpha = np.zeros(self.y.size), np.zeros(self.y.size)
        c[self.rows] = coefficients
        alpha[self.rows[verdict.certificate.support]] = verdict.certificate.dual
        return KernelPoint(alpha, c, verdict.b)


def _as_combination(X: Any, w: np.ndarray) -> np.ndarray | None:
    """Return the coefficients c with X'c nearest to w, by least squares; None of data that are too large for them.

    The part of w that is orthogonal to all rows does not change their scores.
    """
    X, columns = without_empty_columns(X)
    w, (n, d) = columns.restrict(w), X.shape
    if n * d * min(n, d) > MAX_LEAST_SQUARES:
        return None
    if not may_be_dense(X):  # normal equations, with n rows and columns
        X, w = (X @ X.T).astype(float), X @ w
    dense = np.asarray(X.toarray() if sp.issparse(X) else X, dtype=float)
    try:
        return np.linalg.lstsq(dense.T, w)[0]
    except np.linalg.LinAlgError:
        return None
