"""The search for a hyperplane between two classes, or for the proof that there is none.

By Gordan's theorem one of two things exists: (w, b) with y_i (w.x_i + b) > 0 for all i, or weights alpha >= 0, not
all zero, with sum alpha_i y_i (x_i, 1) = 0. Floating point finds candidates of either, and nothing is said before one
is proved: a separator by its margin, rounded outwards, weights by adding the rows up in rational numbers. In turn

1. rows that contradict each other (equal rows of both classes; through the origin, zeros and opposite rows);
2. what floating point proposes (`proposals`);
3. Wolfe's algorithm in exact arithmetic, from the rows that these name: it decides whatever is left.
"""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from ..certificates.certificate import Certificate
from ..certificates.rows import certify
from ..certificates.sample import Sample
from ..certificates.separators import LinearSeparator, attained, attained_exactly
from ..certificates.verdicts import Inseparable, Undecided, Verdict
from ..data.rows import Patterns
from ..data.task import Task
from ..fit.deadline import Watch
from ..fit.driver import solve
from ..fit.policy import Choice, choose
from ..fit.report import Stopping
from ..numerics.rational import BeyondReachError, IntegerRows
from ..numerics.sparse_columns import Columns
from ..numerics.sums import Compensated
from ..problem.intercept import best_intercept
from ..problem.problem import Problem
from ..problem.status import Status
from .candidates import candidates as proposals, starting_rows as start
from .infeasibility import contradiction, inner_radius
from .nearest_point import floats, nearest_points

ROUNDS = 200  # of the fit that tells the margin
STAGES = {"exact": "the optimality conditions on the support"}  # what reports call a stage, in words


def linear_verdict(
    problem: Problem,
    X: Any,
    y: np.ndarray,
    classes: tuple[Any, Any],
    watch: Watch,
    rows: np.ndarray,
    n: int,
    columns: Columns | None = None,
) -> Verdict:
    """The verdict alone, for a fit of a hard margin; weights of it are those of the columns of X.

    Parameters
    ----------
    problem : Problem
        The hard margin; an augmented intercept can separate what a free one can.
    X : ndarray or CSR matrix of shape (m, d)
    y : ndarray of shape (m,), entries -1.0 and 1.0
    classes : tuple
        The labels of the negative and of the positive side.
    watch : Watch
    rows : ndarray of int of shape (m,)
        Which of the n rows of the data these are: a proof about some rows is one about all.
    n : int
    columns : Columns, default=None
        Which columns of the data these are; None: all of them.
    """
    free = replace(problem, intercept="none" if problem.intercept == "none" else "free")
    with np.errstate(over="ignore", under="ignore", invalid="ignore", divide="ignore"):
        verdict = LinearSearch(free, without_zeros(X), y, classes, np.inf, watch, columns).verdict()
    return among(verdict, rows, n)


def among(verdict: Verdict, rows: np.ndarray, n: int) -> Verdict:
    """What a verdict about some rows says of all n."""
    if rows.size == n:
        return verdict
    if isinstance(verdict, Inseparable):
        return replace(verdict, support=rows[verdict.support], rows=n)
    if isinstance(verdict, Undecided):
        some = verdict.certificate
        mark = replace(some.fingerprint, rows=n)
        return replace(verdict, certificate=replace(some, support=rows[some.support], fingerprint=mark))
    return verdict


def on_all_columns(verdict: Verdict, columns: Columns) -> Verdict:
    """The verdict about data on some columns, as one about the whole data: other columns have no entries."""
    if columns.all or not isinstance(verdict, LinearSeparator):
        return verdict
    exact = verdict.exact
    if exact is not None:
        weights = np.full(columns.count, Fraction(0), dtype=object)
        weights[columns.places] = exact[:-1]
        exact = (*weights.tolist(), exact[-1])
    return replace(verdict, w=columns.restore(verdict.w), exact=exact)


def without_zeros(X: Any) -> Any:
    """Rows with no zero stored; the caller's stay as they are."""
    if sp.issparse(X) and (X.data == 0.0).any():
        X = X.copy()
        X.eliminate_zeros()
    return X


class Separator(NamedTuple):
    """(w, b), and what its margin is at least."""

    w: np.ndarray
    b: float
    lower: float


class LinearSearch:
    """One question on its way to an answer.

    With `columns`, X is the data on these columns alone, and so are the weights of a separator (`on_all_columns`); all
    else is said of the whole data.
    """

    def __init__(
        self,
        problem: Problem,
        X: Any,
        y: np.ndarray,
        classes: tuple[Any, Any],
        tol: float,
        watch: Watch,
        columns: Columns | None = None,
    ) -> None:
        self.columns = Columns(X.shape[1]) if columns is None else columns
        self.problem, self.X, self.y, self.classes, self.tol, self.watch = problem, X, y, classes, tol, watch
        self.method = "nothing"

    def verdict(self) -> Verdict:
        """The answer."""
        weights, self.distinct = contradiction(self.X, self.y, self.problem.free)
        if weights is not None:
            return self._inseparable(weights, "looking for rows that contradict each other")
        rows = IntegerRows(self.X[self.distinct], self.y[self.distinct], self.problem.free)
        self.alpha = np.ones(rows.n)
        for candidate in proposals(rows, self.watch):
            self.alpha, self.method = candidate.alpha, candidate.method
            proved = self._proved(rows, candidate.w)
            if proved is not None:
                return self._separable(proved, self.method)
        try:
            return self._exactly(rows)
        except TimeoutError:
            reason = "Ctrl-C was heard" if self.watch.status() is Status.INTERRUPTED else "max_time went by"
        except BeyondReachError as error:
            reason = str(error)
        return self._undecided(reason)

    def _exactly(self, rows: IntegerRows) -> Verdict:
        """Wolfe's algorithm in exact arithmetic, from the rows of the dual weights so far."""
        method = f"{self.method} and Wolfe's algorithm in exact arithmetic"
        direction: list[int] = []
        for corral in nearest_points(rows, start(self.alpha, rows.width), self.watch.interrupted):
            if corral.zero:
                weights = {int(self.distinct[i]): share for i, share in corral.shares.items()}
                return self._inseparable(weights, method)
            w = floats(corral.direction)
            scores = rows.y * (rows.scaled @ w[: rows.d] + (w[-1] if rows.bias else 0.0))
            proved = self._proved(rows, w[: rows.d]) if scores.min() > 0.0 else None
            if proved is not None:
                return self._separable(proved, method)
            direction = corral.direction
        return self._beyond_floats(rows, direction, method)

    def _proved(self, rows: IntegerRows, w: np.ndarray) -> Separator | None:
        """Weights on scaled columns with their best intercept, if they separate."""
        w = _unscaled(w, rows)
        b = 0.0
        if self.problem.free:
            b = best_intercept(self.problem, Compensated.scores(self.X, w), self.y, np.ones(self.y.size))
        lower = attained(self.X, self.y, w, b, self.problem.q)
        return Separator(w, b, lower) if lower > 0.0 else None

    @cached_property
    def sample(self) -> Sample:
        """The data as certificates see them."""
        return Sample(self.X, self.y, np.ones(self.y.size), columns=self.columns)

    def _whole(self, alpha: np.ndarray) -> np.ndarray:
        """Dual weights of all rows."""
        whole = np.zeros(self.y.size)
        whole[self.distinct] = alpha
        return whole

    def _separable(self, best: Separator, method: str) -> LinearSeparator:
        """The verdict, with an interval as narrow as is asked for and can be had."""
        found = certify(self.problem, self.sample, best.w, best.b, self._whole(self.alpha))
        if not best.lower >= (1.0 - self.tol) * found.upper and not self.watch.interrupted():
            other = self._margin()
            if other is not None:
                w, b, certificate, stage = other
                lower = attained(self.X, self.y, w, b, self.problem.q)
                best = Separator(w, b, lower) if lower > best.lower else best
                found = min(certificate, found, key=lambda one: one.upper)
                method = f"{method}, the margin by {stage}"
        return self._told(best, found, method)

    def _told(
        self, best: Separator, found: Certificate, method: str, exact: tuple[Fraction, ...] | None = None
    ) -> LinearSeparator:
        return LinearSeparator(
            w=best.w, b=best.b, exact=exact, lo=best.lower, hi=above(found.upper, best.lower), p=self.problem.p,
            bias=self.problem.free, classes=self.classes, method=method, seconds=self.watch.seconds(),
            certificate=found,
        )  # fmt: skip

    def _margin(self) -> tuple[np.ndarray, float, Certificate, str] | None:
        """What the fit of a hard margin finds, in this norm."""
        task = Task(self.problem, Patterns(self.X), self.y, np.ones(self.y.size))
        algorithm, reason = choose(self.problem, task.patterns, self.y, self.watch.check)
        stopping = Stopping(self.tol, ROUNDS, self.watch)
        try:
            found = solve(task, Choice(algorithm, reason), stopping, np.random.default_rng(0), self.sample)
        except ValueError:  # numbers whose squares leave float64: the verdict stands, and its bounds
            return None
        stage = found.history[-1].stage if found.history else algorithm.name
        return found.w, found.b, found.certificate, STAGES.get(stage, stage)

    def _beyond_floats(self, rows: IntegerRows, direction: list[int], method: str) -> LinearSeparator:
        """A separator that takes more digits than float64 has."""
        powers = [Fraction(2) ** int(exponent) for exponent in rows.exponents]
        w = [value * power for value, power in zip(direction, powers, strict=False)]
        b = Fraction(direction[-1] << rows.bits) if rows.bias else Fraction(0)
        unit = max(abs(value) for value in w)
        exact = (*(value / unit for value in w), b / unit)
        near = np.array([float(value) for value in exact])
        best = Separator(near[:-1], float(near[-1]), attained_exactly(self.X, self.y, exact, self.problem.q))
        found = certify(self.problem, self.sample, best.w, best.b, self._whole(self.alpha))
        return self._told(best, found, method, exact)

    def _inseparable(self, weights: dict[int, Fraction], method: str) -> Inseparable:
        support = np.array(sorted(weights), dtype=np.int64)
        exact = tuple(weights[i] for i in support.tolist())
        radius = (
            0.0  # a ball has as many dimensions as the data have columns, also where these have no entries
        )
        if self.columns.all:
            radius = inner_radius(self.X, self.y, support, exact, self.problem)
        return Inseparable(
            support, exact, self.problem.free, self.classes, self.columns.count, self.y.size, method,
            self.watch.seconds(), radius, self.problem.p,
        )  # fmt: skip

    def _undecided(self, reason: str) -> Undecided:
        alpha = self._whole(self.alpha)
        found = certify(self.problem, self.sample, np.zeros(self.X.shape[1]), 0.0, alpha)
        return Undecided(
            0.0, above(found.upper, 0.0), found, self.problem.p, self.problem.free, self.classes,
            self.columns.count, reason, self.method, self.watch.seconds(),
        )  # fmt: skip


def _unscaled(w: np.ndarray, rows: IntegerRows) -> np.ndarray:
    """Weights on the columns as they are, the largest about one; those that are nothing beside it are zero."""
    mantissa, exponent = np.frexp(w)
    exponent = exponent + rows.exponents - rows.bits
    top = int(exponent[mantissa != 0.0].max(initial=-(2**31)))
    return np.ldexp(mantissa, np.clip(exponent - top, -1100, 0).astype(np.int32))


def above(upper: float, lower: float) -> float:
    """An upper bound as a number: rounding may have it fall below the lower one, and overflow leave none."""
    return np.inf if np.isnan(upper) else max(upper, lower)
