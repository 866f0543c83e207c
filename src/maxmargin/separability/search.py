"""The search for a separator of two classes, or for the proof that there is none, in any feature space.

By Gordan's theorem exactly one of two things exists: (w, b) with y_i (w.phi(x_i) + b) > 0 for all i, or weights
alpha >= 0, not all zero, with sum alpha_i y_i (phi(x_i), 1) = 0. Floating point finds candidates for both, and no
verdict is given before one is proved: a separator by its margin, rounded outwards, weights by a sum of the rows in
rational numbers. The steps are

1. trivial certificates: one or two rows that contradict each other (`linear.trivial_certificate`);
2. kernels: a separator by floating-point methods that take little time;
3. floating-point candidates (`candidates`), and Wolfe's algorithm in exact arithmetic from their rows
   (`nearest_point`), which decides every problem that it can represent;
4. kernels: a separator by floating-point methods that take longer.

`linear.LinearSearch` and `kernel.KernelSearch` take these steps; here is what they share.

References
----------
P. Gordan, "Ueber die Aufloesung linearer Gleichungen mit reellen Coefficienten", Mathematische Annalen 6, 1873.
"""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from ..certificates.certificate import Certificate
from ..certificates.verdicts import Inseparable, Separable, Undecided, Verdict
from ..fit.deadline import Deadline
from ..kernels.functions import Kernel
from ..numerics.rational import BeyondReachError, ExactRows
from ..problem.problem import Problem
from ..problem.status import Status
from .candidates import candidates, starting_rows
from .nearest_point import as_floats, nearest_points

TRIVIAL = "looking for rows that contradict each other"  # the method of trivial certificates


@dataclass(frozen=True, eq=False)
class SeparationTask:
    """Two classes of rows, and the hard margin that separates them or does not.

    Attributes
    ----------
    problem : Problem
        The hard margin, with a free intercept or none.
    X : ndarray or CSR matrix of shape (n, d), no zeros stored
    y : ndarray of shape (n,), entries -1.0 and 1.0
    classes : tuple
        The labels of the negative and of the positive side.
    tol : float
        Relative width of the interval around the largest margin; inf for the verdict alone.
    deadline : Deadline
    """

    problem: Problem
    X: Any
    y: np.ndarray
    classes: tuple[Any, Any]
    tol: float
    deadline: Deadline


def fit_task(
    problem: Problem, X: Any, y: np.ndarray, classes: tuple[Any, Any], deadline: Deadline
) -> SeparationTask:
    """Return the task of a hard-margin fit: the verdict alone.

    An augmented intercept can separate the same classes as a free one, which is simpler to decide.
    """
    free = replace(problem, intercept="none" if problem.intercept == "none" else "free")
    return SeparationTask(free, without_zeros(X), y, classes, np.inf, deadline)


def without_zeros(X: Any) -> Any:
    """Return sparse rows without stored zeros, in a copy where there are any; dense rows as they are."""
    if sp.issparse(X) and (X.data == 0.0).any():
        X = X.copy()
        X.eliminate_zeros()
    return X


class ExactDirection(NamedTuple):
    """A separator in exact arithmetic: the direction, in the integer units of `rows`, and the method."""

    rows: ExactRows
    direction: list[int]
    method: str


class SeparatorSearch(ABC):
    """The search on one task.

    Parameters
    ----------
    task : SeparationTask
    kernel : Kernel
    features : int
        Columns of the data.

    Attributes
    ----------
    distinct : ndarray of int
        The rows that exact arithmetic works on.
    alpha : ndarray, one entry a row of `distinct`
        The last dual weights in floating point.
    method : str
        The last method in floating point.
    """

    prefix = ""  # of the method of a candidate

    def __init__(self, task: SeparationTask, kernel: Kernel, features: int) -> None:
        self.task, self.kernel, self.features = task, kernel, features
        self.problem, self.X, self.y = task.problem, task.X, task.y
        self.deadline, self.tol = task.deadline, task.tol
        self.distinct = np.arange(self.y.size)
        self.alpha = np.ones(self.y.size)
        self.method = "nothing"

    @abstractmethod
    def verdict(self) -> Verdict:
        """Search in the order of the module's docstring, and return the verdict."""

    @abstractmethod
    def exact_rows(self) -> ExactRows:
        """Return the rows y_i (phi(x_i), 1) as integers, or raise BeyondReachError."""

    @abstractmethod
    def proved_separator(self, rows: ExactRows, w: np.ndarray, method: str) -> Separable | None:
        """Return the verdict on weights of the scaled columns of `rows` if float64 arithmetic proves its margin."""

    def verdict_of_fit(self, rows: np.ndarray, n: int) -> Verdict:
        """Return the verdict for a fit in which these rows, of n, take part: a proof about them is one about all."""
        with np.errstate(over="ignore", under="ignore", invalid="ignore", divide="ignore"):
            verdict = self.verdict()
        if isinstance(verdict, Inseparable):
            return replace(verdict, support=rows[verdict.support], rows=n)
        if isinstance(verdict, Undecided):
            certificate = verdict.certificate
            fingerprint = replace(certificate.fingerprint, rows=n)
            certificate = replace(certificate, support=rows[certificate.support], fingerprint=fingerprint)
            return replace(verdict, certificate=certificate)
        return verdict

    def decide_exactly(self) -> Inseparable | Separable | ExactDirection | str:
        """Run Wolfe's algorithm in exact arithmetic from the rows of floating-point candidates.

        Returns
        -------
        The verdict; a separator that no float64 arithmetic proves; or, where it was time to stop, or the rows have no
        exact representation, or the proof would be too large, the reason (empty where `deadline` has it).
        """
        try:
            rows = self.exact_rows()
            for candidate in candidates(rows, self.deadline):
                self.alpha, self.method = candidate.alpha, self.prefix + candidate.method
                separator = self.proved_separator(rows, candidate.w, self.method)
                if separator is not None:
                    return separator
            method = f"{self.method} and Wolfe's algorithm in exact arithmetic"
            direction: list[int] = []
            start = starting_rows(self.alpha, rows.width)
            for corral in nearest_points(rows, start, self.deadline.interrupted):
                direction = corral.direction
                if not any(direction):
                    weights = corral.convex_weights
                    return self.inseparable({int(self.distinct[i]): weights[i] for i in weights}, method)
                w = as_floats(direction)
                margins = rows.y * (rows.scaled @ w[: rows.d] + (w[-1] if rows.bias else 0.0))
                if float(margins.min()) > 0.0:  # others are left to the next corrals
                    separator = self.proved_separator(rows, w[: rows.d], method)
                    if separator is not None:
                        return separator
            return ExactDirection(rows, direction, method)
        except TimeoutError:
            return ""
        except BeyondReachError as error:
            return str(error)

    def inseparable(self, weights: dict[int, Fraction], method: str) -> Inseparable:
        """Return the verdict on weights with sum weights_i y_i (phi(x_i), 1) = 0."""
        support = np.array(sorted(weights), dtype=np.int64)
        exact = tuple(weights[i] for i in support.tolist())
        return Inseparable(support=support, weights=exact, rows=self.y.size, **self.common(method))

    def undecided(self, reason: str, certificate: Certificate) -> Undecided:
        """Return the open verdict, with the certificate of w = 0; `deadline` may have another reason."""
        status = self.deadline.status()
        if status is not None:
            reason = "Ctrl-C interrupted the search" if status is Status.INTERRUPTED else "max_time went by"
        return Undecided(reason=reason, **self.bounded(0.0, certificate, self.method))

    def bounded(self, lower: float, certificate: Certificate, method: str) -> dict[str, Any]:
        """Return the fields of a verdict with the bounds of the largest margin, `lower` and that of the certificate.

        Rounding may put the upper bound below the lower one, and overflow may make it NaN.
        """
        upper = np.inf if np.isnan(certificate.upper) else max(certificate.upper, lower)
        return {"lo": lower, "hi": upper, "certificate": certificate} | self.common(method)

    def common(self, method: str) -> dict[str, Any]:
        """Return the fields that all verdicts share."""
        return {
            "p": self.problem.p,
            "bias": self.problem.free,
            "classes": self.task.classes,
            "features": self.features,
            "method": method,
            "seconds": time.perf_counter() - self.deadline.began,
            "kernel": self.kernel,
        }
