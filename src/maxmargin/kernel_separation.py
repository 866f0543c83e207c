"""The search for a kernel's function between two classes, or for the proof that there is none.

In turn

1. rows that contradict each other: equal rows of both classes; of a matrix, whatever contradicts in its rows;
2. decomposition, a working set at a time, until the margin of its function is proved, the errors of all kernel values
   counted in;
3. of polynomials of few monomials, Wolfe's algorithm in exact arithmetic: its combination is zero in every monomial,
   or it separates; of small matrices, whether some combination of rows is zero. For kernels with a feature for every
   row (the Gaussian) nothing else is a proof that there is no separator: there is one, though its margin may be smaller
   than float64 kernel values can tell.

Decomposition finds separators faster than the (smoothed) kernel Perceptrons and the primal-dual pair, which ask for
products with the whole matrix: docs/separation.md has the measurements.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from fractions import Fraction
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from .batch.decomposition import SET, decomposed_points
from .batch.kernel_rows import KernelRows
from .batch.nearest_point import nearest_points
from .certificates import Certificate, Sample, fingerprint
from .contradictions import contradiction
from .images import exact_rows
from .kernel_certificates import KernelPoint, KernelSample, all_bounds, attained
from .kernel_task import KernelPoints
from .kernel_verdicts import KernelSeparator, PolynomialSeparator
from .kernels import Kernel, Linear, Polynomial, Precomputed
from .linear_separation import above, among, linear_verdict
from .problems import Problem
from .proposals import proposals, start
from .rational import BeyondReachError, ExactRows
from .status import Status
from .verdicts import Inseparable, Undecided, Verdict
from .watch import Watch

MEGABYTES = 200.0  # of kernel rows that are kept
WORK = 2e9  # entries of working sets, times 50, after which a separator is not looked for any longer
MOST = 300  # working sets, where they are small
NONE = 1e-7  # a bound of all margins, in units of the longest row, below which float64 kernel values tell nothing
NEARLY = 0.9  # the interval is rounded outwards, and still within `tol`
METHOD = "decomposition"


def kernel_verdict(
    kernel: Kernel,
    problem: Problem,
    X: Any,
    y: np.ndarray,
    classes: tuple[Any, Any],
    watch: Watch,
    rows: np.ndarray,
    n: int,
) -> Verdict:
    """As `linear_verdict`, of any kernel."""
    if isinstance(kernel, Linear):
        return linear_verdict(problem, X, y, classes, watch, rows, n)
    free = replace(problem, intercept="none" if problem.intercept == "none" else "free")
    with np.errstate(over="ignore", under="ignore", invalid="ignore", divide="ignore"):
        return among(KernelSearch(kernel, free, X, y, classes, np.inf, watch).verdict(), rows, n)


class KernelSearch:
    """One question on its way to an answer."""

    def __init__(
        self, kernel: Kernel, problem: Problem, X: Any, y: np.ndarray, classes: tuple[Any, Any], tol: float,
        watch: Watch,
    ) -> None:  # fmt: skip
        self.kernel, self.problem, self.y, self.classes, self.tol, self.watch = (
            kernel, problem, y, classes, tol, watch,
        )  # fmt: skip
        self.X = X.astype(np.float64, copy=False)
        self.ones = np.ones(y.size)

    def verdict(self) -> Verdict:
        """The answer."""
        weights = self._contradiction()
        if weights is not None:
            return self._inseparable(weights, "looking for rows that contradict each other")
        self._begin()
        if self._function(sets=1):
            return self._separable()
        exact, reason = None, ""
        try:
            exact = self._exactly(exact_rows(self.kernel, self.X, self.y, self.problem.free))
        except TimeoutError:
            pass  # the watch knows why
        except BeyondReachError as error:
            reason = f"no margin was found that float64 kernel values can tell, and {error}"
        if isinstance(exact, Inseparable):
            return exact
        if self._function(sets=self._patience()):
            return self._separable()
        if exact is not None:
            return self._told_exactly(exact)
        status = self.watch.status()
        if status is not None:
            reason = "Ctrl-C was heard" if status is Status.INTERRUPTED else "max_time went by"
        return self._undecided(reason)

    # what contradicts

    def _contradiction(self) -> dict[int, Fraction] | None:
        """Rows that prove by themselves that there is no separator, with their weights."""
        free = self.problem.free
        if isinstance(self.kernel, Precomputed):
            return contradiction(self.X, self.y, free)[0]
        weights, _ = contradiction(self.X, self.y, True)
        if weights is None and not free and isinstance(self.kernel, Polynomial) and self.kernel.coef0 == 0.0:
            lonely, _ = contradiction(self.X, self.y, False)
            if lonely is not None and len(lonely) == 1:  # a row of zeros, which is zero to the kernel
                return lonely
        return weights

    # in float64

    @cached_property
    def sample(self) -> KernelSample:
        """The rows, made ready once for all proofs."""
        return KernelSample(self.kernel, self.X)

    def _begin(self) -> None:
        rows = KernelRows(self.kernel, self.X, MEGABYTES)
        self.longest = float(rows.diagonal.max(initial=0.0)) ** 0.5
        self.found = KernelPoints(self.problem, self.y, self.ones, rows.diagonal)
        self.points: Iterator[Any] = decomposed_points(
            self.problem, rows, self.y, self.ones, self.watch.interrupted
        )

    def _patience(self) -> int:
        return min(int(WORK / (50.0 * self.y.size * min(self.y.size, SET))), MOST) + 10

    def _function(self, sets: int) -> bool:
        """Is there, after so many more working sets, a function whose margin is proved?"""
        for done, point in enumerate(self.points, 1):
            self.found.value(point.alpha, point.scores)
            if self.found.lower > 0.0:
                if self.found.gap <= NEARLY * self.tol and self._attained() > 0.0:
                    return True
                if done >= sets + self._patience():
                    break
            elif done >= sets or self.found.upper <= NONE * self.longest:
                break
        return self._attained() > 0.0

    def _attained(self) -> float:
        c, b = self.found.primal
        return attained(self.problem, self.sample, self.y, c, b) if c.any() else -np.inf

    def _certificate(self, lower: float) -> Certificate:
        """What the dual weights prove."""
        point = KernelPoint(self.found.alpha, self.found.alpha * self.y, 0.0)
        found = all_bounds([self.problem], self.sample, [self.y], [self.ones], [point])[0]
        upper = above(found.bounds.upper, lower)
        alpha = found.point.alpha
        support = np.flatnonzero(alpha).astype(np.int64)
        mark = fingerprint(Sample(self.X, self.y, self.ones))
        return Certificate(self.problem, lower, upper, support, alpha[support], mark, self.kernel)

    def _separable(self) -> KernelSeparator:
        c, b = self.found.primal
        lower = self._attained()
        certificate = self._certificate(lower)
        return KernelSeparator(
            kernel=self.kernel, coefficients=c, b=b, lo=lower, hi=certificate.upper, p=2.0,
            bias=self.problem.free, classes=self.classes, method=METHOD, seconds=self.watch.seconds(),
            certificate=certificate,
        )  # fmt: skip

    # exactly

    def _exactly(self, rows: ExactRows) -> Inseparable | Exact:
        """The proof that there is no separator, or one in rational numbers."""
        alpha = self.found.alpha if self.found.alpha.any() else self.ones
        method = METHOD
        for proposal in proposals(rows, self.watch):
            alpha, method = proposal.alpha, f"{METHOD}, {proposal.method}"
        method = f"{method} and Wolfe's algorithm in exact arithmetic"
        direction: list[int] = []
        for corral in nearest_points(rows, start(alpha, rows.width), self.watch.interrupted):
            if corral.zero:
                return self._inseparable(corral.shares, method)
            direction = corral.direction
        if isinstance(self.kernel, Precomputed):
            raise BeyondReachError("what separates the rows of the matrix may be the rounding of its entries")
        weights = {}
        for k in range(rows.d):
            place, power = rows.column(k)
            weights[place] = Fraction(direction[k]) * Fraction(2) ** power
        return Exact(weights, Fraction(direction[-1] << rows.bits if rows.bias else 0), method)

    def _told_exactly(self, exact: Exact) -> PolynomialSeparator:
        certificate = self._certificate(0.0)
        return PolynomialSeparator(
            kernel=self.kernel, weights=exact.weights, b=exact.b, lo=0.0, hi=certificate.upper, p=2.0,
            bias=self.problem.free, classes=self.classes, method=exact.method, seconds=self.watch.seconds(),
            certificate=certificate,
        )  # fmt: skip

    def _inseparable(self, weights: dict[int, Fraction], method: str) -> Inseparable:
        support = np.array(sorted(weights), dtype=np.int64)
        return Inseparable(
            support, tuple(weights[i] for i in support.tolist()), self.problem.free, self.classes,
            self.X.shape[1], self.y.size, method, self.watch.seconds(), kernel=self.kernel,
        )  # fmt: skip

    def _undecided(self, reason: str) -> Undecided:
        certificate = self._certificate(0.0)
        return Undecided(
            0.0, certificate.upper, certificate, 2.0, self.problem.free, self.classes, self.X.shape[1], reason,
            METHOD, self.watch.seconds(), self.kernel,
        )  # fmt: skip


class Exact(NamedTuple):
    """A separator in rational numbers: weights of monomials, and b."""

    weights: dict[Any, Fraction]
    b: Fraction
    method: str
