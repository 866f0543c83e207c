"""The search for a kernel's function between two classes, or for the proof that there is none.

In turn

1. rows that contradict each other: equal rows of both classes; of a matrix, whatever contradicts in its rows;
2. decomposition, a working set at a time, until the margin of its function is proved, the errors of all kernel values
   counted in;
3. of few rows, the exact step of the hard margin: the optimality conditions on the support;
4. of polynomials of few monomials, Wolfe's algorithm in exact arithmetic: its combination is zero in every monomial,
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

from ..algorithms.batch.decomposition import SET, decomposed_points
from ..algorithms.batch.kernel_rows import KernelRows
from ..certificates.certificate import Certificate
from ..certificates.expansions import KernelPoint, all_bounds, attained
from ..certificates.feature_map import exact_rows
from ..certificates.gram import KernelSample
from ..certificates.sample import Sample, fingerprint
from ..certificates.separators import KernelSeparator, PolynomialSeparator
from ..certificates.verdicts import Inseparable, Undecided, Verdict
from ..fit.deadline import Watch
from ..fit.kernel_solve import BETTER, FEW_ROWS, IDLE, finish
from ..fit.kernel_task import KernelPoints
from ..kernels.functions import Kernel, Linear, Polynomial, Precomputed
from ..numerics.rational import BeyondReachError, ExactRows
from ..numerics.sparse_columns import without_empty_columns
from ..problem.problem import Problem
from ..problem.status import Status
from .candidates import candidates as proposals, starting_rows as start
from .infeasibility import contradiction
from .linear import above, among, linear_verdict, on_all_columns, without_zeros
from .nearest_point import nearest_points

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
        X, columns = without_empty_columns(X)
        return on_all_columns(linear_verdict(problem, X, y, classes, watch, rows, n, columns), columns)
    free = replace(problem, intercept="none" if problem.intercept == "none" else "free")
    with np.errstate(over="ignore", under="ignore", invalid="ignore", divide="ignore"):
        return among(KernelSearch(kernel, free, X, y, classes, np.inf, watch).verdict(), rows, n)


def contradicting(kernel: Kernel, problem: Problem, X: Any, y: np.ndarray) -> dict[int, Fraction] | None:
    """Rows that prove by themselves that no function of the kernel separates the classes, with their weights.

    Parameters
    ----------
    kernel : Kernel
    problem : Problem
        The hard margin; an augmented intercept can separate what a free one can.
    X : ndarray or CSR matrix of shape (n, d)
    y : ndarray of shape (n,), entries -1.0 and 1.0
    """
    X, bias = without_zeros(X), problem.intercept != "none"
    if isinstance(kernel, Linear | Precomputed):
        return contradiction(X, y, bias)[0]
    weights, _ = contradiction(X, y, True)
    if weights is None and not bias and isinstance(kernel, Polynomial) and kernel.coef0 == 0.0:
        lonely, _ = contradiction(X, y, False)
        if lonely is not None and len(lonely) == 1:  # a row of zeros, which is zero to the kernel
            return lonely
    return weights


def usual_sets(n: int) -> int:
    """Working sets after which a separator of n rows is not looked for any longer, where no time is given for it."""
    return min(int(WORK / (50.0 * n * min(n, SET))), MOST) + 10


class KernelSearch:
    """One question on its way to an answer; without a margin, so many `more` working sets than usual are solved."""

    def __init__(
        self, kernel: Kernel, problem: Problem, X: Any, y: np.ndarray, classes: tuple[Any, Any], tol: float,
        watch: Watch, more: float = 0,
    ) -> None:  # fmt: skip
        self.kernel, self.problem, self.y, self.classes, self.tol, self.watch, self.more = (
            kernel, problem, y, classes, tol, watch, more,
        )  # fmt: skip
        self.done = 0
        self.X = X.astype(np.float64, copy=False)
        self.ones = np.ones(y.size)

    def verdict(self) -> Verdict:
        """The answer."""
        weights = contradicting(self.kernel, self.problem, self.X, self.y)
        if weights is not None:
            return self._inseparable(weights, "looking for rows that contradict each other")
        self._begin()
        if self._function(sets=1):
            return self._separable()
        exact, beyond = None, ""
        try:
            exact = self._exactly(exact_rows(self.kernel, self.X, self.y, self.problem.free))
        except TimeoutError:
            pass  # the watch knows why
        except BeyondReachError as error:
            beyond = str(error)
        if isinstance(exact, Inseparable):
            return exact
        if self._function(usual_sets(self.y.size)) or self._finished():
            return self._separable()
        if exact is None and self.more and self._function(self.more):
            return self._separable()
        if exact is not None:
            return self._told_exactly(exact)
        status = self.watch.status()
        if status is not None:
            return self._undecided("Ctrl-C was heard" if status is Status.INTERRUPTED else "max_time went by")
        return self._undecided(f"{self.ended}, and {beyond}")

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

    def _function(self, sets: float) -> bool:
        """Is there, after so many more working sets, a function whose margin is proved?"""
        self.ended = "float64 kernel values lead decomposition no further"
        nearest, idle = np.inf, 0
        for done, point in enumerate(self.points, 1):
            self.found.value(point.alpha, point.scores)
            self.done += 1
            apart = self.found.upper - max(self.found.lower, 0.0)
            nearest, idle = (nearest, idle + 1) if apart > BETTER * nearest else (apart, 0)
            if idle >= IDLE:
                break
            if self.found.lower > 0.0:
                if self.found.gap <= NEARLY * self.tol and self._attained() > 0.0:
                    return True
                if done >= sets + usual_sets(self.y.size):
                    self.ended = self._given_up()
                    break
            elif self.found.upper <= NONE * self.longest:
                self.ended = "all margins are so small that float64 kernel values cannot tell them from zero"
                break
            elif done >= sets:
                self.ended = self._given_up()
                break
        return self._attained() > 0.0

    def _given_up(self) -> str:
        return (
            f"no margin was proved in {self.done} working sets, after which the search was given up: max_time has it "
            "go on for so many seconds"
        )

    def _finished(self) -> bool:
        """Is there, of few rows, a function by the exact step whose margin is proved?"""
        if self.y.size > FEW_ROWS or self.watch.interrupted():
            return False
        finish(self.found, self.problem, self.y, self.ones, self.sample)
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
        if self.found.gap > NEARLY * self.tol:
            self._finished()
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
