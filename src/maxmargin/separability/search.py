"""The search for a separator of two classes, or for the proof that there is none, in any feature space.

By Gordan's theorem exactly one of two things exists: (w, b) with y_i (w.phi(x_i) + b) > 0 for all i, or weights
alpha >= 0, not all zero, with sum alpha_i y_i (phi(x_i), 1) = 0. Floating point finds candidates for both, and no
verdict is given before one is proved: a separator by its margin, rounded outwards, weights by a sum of the rows in
rational numbers. The steps are

1. trivial certificates: one or two rows that contradict each other (`trivial_certificate`);
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
from ..data.duplicates import merge
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


def trivial_certificate(X: Any, y: np.ndarray, bias: bool) -> tuple[dict[int, Fraction] | None, np.ndarray]:
    """Return weights of one or two rows that prove by themselves that there is no separator; and the distinct rows.

    Parameters
    ----------
    X : ndarray or CSR matrix of shape (n, d), no zeros stored
    y : ndarray of shape (n,), entries -1.0 and 1.0
    bias : bool
        With a bias, equal rows of both classes are a proof; without one, rows y_i x_i that point in opposite
        directions, or a row of zeros.

    Returns
    -------
    weights : dict of row to Fraction, or None
        Of sum one, exact.
    distinct : ndarray of int
        The first of each set of equal rows.
    """
    groups, distinct = _equal_rows(X)
    if bias:
        pairs = _of_both_signs(groups, y)
        return (dict.fromkeys(pairs[0], Fraction(1, 2)) if pairs else None), distinct
    firsts = _first_entries(X)
    zeros = np.flatnonzero(firsts == 0.0)
    if zeros.size:
        return {int(zeros[0]): Fraction(1)}, distinct
    # Parallel rows have equal quotients by their first entries, also after rounding; the few other rows with equal
    # rounded quotients are sorted out in rational numbers.
    groups, _ = _equal_rows(_divided(X, firsts))
    for pair in _of_both_signs(groups, y * np.sign(firsts)):
        one, two = (Fraction(float(firsts[i])) for i in pair)
        if _parallel(X, pair, one, two):
            one, two = abs(one), abs(two)  # two y_i x_i = -one y_j x_j
            weights = two / (one + two), one / (one + two)
            return dict(zip(pair, weights, strict=True)), distinct
    return None, distinct


def _equal_rows(X: Any) -> tuple[np.ndarray, np.ndarray]:
    """Return the set of equal rows that each row belongs to, and the first row of each set."""
    ones = np.ones(X.shape[0])
    groups = merge(X, ones, ones).groups
    return groups, np.sort(np.unique(groups, return_index=True)[1])


def _of_both_signs(groups: np.ndarray, signs: np.ndarray) -> list[tuple[int, int]]:
    """Return the first row of either sign of each set that has both, in the order of the later of the two rows."""
    size = int(groups.max()) + 1
    found = []
    for sign in (1.0, -1.0):
        first = np.full(size, signs.size)
        rows = np.flatnonzero(signs == sign)
        np.minimum.at(first, groups[rows], rows)
        found.append(first)
    both = np.flatnonzero(np.maximum(*found) < signs.size)
    pairs = [(int(min(a, b)), int(max(a, b))) for a, b in zip(found[0][both], found[1][both], strict=True)]
    return sorted(pairs, key=lambda pair: pair[::-1])


def _first_entries(X: Any) -> np.ndarray:
    """Return the first entry of each row that is not zero; 0.0 where there is none."""
    if sp.issparse(X):
        used = np.diff(X.indptr) > 0
        firsts = np.zeros(X.shape[0])
        firsts[used] = X.data[X.indptr[:-1][used]]
        return firsts
    return np.asarray(X[np.arange(X.shape[0]), np.argmax(X != 0.0, axis=1)], dtype=float)


def _divided(X: Any, by: np.ndarray) -> Any:
    """Return the rows, each divided by its number."""
    with np.errstate(over="ignore"):
        if not sp.issparse(X):
            return X / by[:, None]
        data = X.data / np.repeat(by, np.diff(X.indptr))
        return sp.csr_matrix((data, X.indices, X.indptr), shape=X.shape)


def _parallel(X: Any, pair: tuple[int, int], one: Fraction, two: Fraction) -> bool:
    """Return whether the first row times `two` is the second times `one`, exactly."""
    first, second = (X[i].toarray().ravel() if sp.issparse(X) else X[i] for i in pair)
    return all(
        Fraction(a) * two == Fraction(b) * one
        for a, b in zip(first.tolist(), second.tolist(), strict=True)
        if a or b
    )
