"""Passes over partitioned rows: what one computes for a binary problem, and the loop over passes.

At a point z: the objective, with a bound of its rounding error; slope and curvature of the smoothed losses; the rows
nearest to the margin. For the dual variables that the last two points imply: the sums that their bound consists of.
"""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import reduce
from typing import Any, ClassVar, NamedTuple

import numpy as np
import scipy.sparse as sp

from ...certificates.certificate import Certificate, Fingerprint
from ...certificates.row_pass import (
    DualSums,
    PointSums,
    Side,
    bound_of_point,
    dual_sums,
    implied,
    point_sums,
    score_errors,
    slopes,
)
from ...certificates.sample import row_projections
from ...data.door import LARGEST, check_longest
from ...data.partitions import Gathered, Partition, Partitions, check_finite, check_least_cost, signs_of
from ...numerics.sums import Plain, row_norms
from ...problem.problem import Problem, Status
from ..best import Best
from ..report import Report, Solution, Stopping, status_at_end

# Seconds between reports within a pass: a callback ends a fit within a second, and is called rarely beside the blocks.
PROGRESS_SECONDS = 0.5
# Points between the last two ones at which a pass evaluates the objective, as shares of the way: a step that is too
# long costs no pass of its own. More points take more time for each row.
STEP_SHARES = np.array([0.0625, 0.125, 0.25, 0.5, 0.75])
# Bytes of a block of rows, as a matrix of float64 with all columns: temporaries of this size stay in the caches.
BLOCK_BYTES = 1 << 21
# The least distance unit of a row, as a share of the mean one (`Query.metric`): without it, rows whose scores are known
# exactly are never gathered, and rows of tiny entries fill the memory.
MIN_UNIT = 0.1


@dataclass(frozen=True)
class Coordinates:
    """The vector z = (w, weight of the constant coordinate), the last entry only where there is an intercept.

    Every row has the constant coordinate `constant`: 1 for a free intercept, its scaling for an augmented one, 0 for
    none. R, the matrix of the penalty 1/2 z'Rz, is diagonal: 1 for each weight, 0 for a free intercept.

    Attributes
    ----------
    problem : Problem
    d : int
        Columns of the rows.
    """

    problem: Problem
    d: int

    @property
    def constant(self) -> float:
        """The constant coordinate of every row; 0 where there is no intercept."""
        return 1.0 if self.problem.free else self.problem.rho

    @property
    def size(self) -> int:
        """The number of entries of z."""
        return self.d + (self.constant > 0.0)

    @property
    def regular(self) -> np.ndarray:
        """The diagonal of R, of shape (size,)."""
        found = np.ones(self.size)
        found[self.d :] = 0.0 if self.problem.free else 1.0
        return found

    def vector(self, w: np.ndarray, b: float) -> np.ndarray:
        """Return z of a weight vector and an intercept."""
        return np.append(w, b / self.constant) if self.constant else np.array(w, dtype=float)

    def point(self, z: np.ndarray) -> tuple[np.ndarray, float]:
        """Return the weight vector and the intercept of z."""
        return z[: self.d].copy(), self.constant * float(z[-1]) if self.constant else 0.0

    def bound(self, sums: Sums, z: np.ndarray) -> Side:
        """Return the bound that z proves by the sums of a pass."""
        return bound_of_point(self.problem, sums.point, *self.point(z))

    def scores(self, X: Any, z: np.ndarray) -> np.ndarray:
        """Return w.x_i + b of rows: shape (n,)."""
        return Plain.scores(X, *self.point(z))

    def combine(self, X: Any, c: np.ndarray) -> np.ndarray:
        """Return sum c_i x_i of rows with their constant coordinate: shape (size,)."""
        found = Plain.combine(X, c)
        return np.append(found, self.constant * float(np.sum(c))) if self.constant else found

    def extended(self, X: Any) -> np.ndarray:
        """Return rows as a dense matrix with the constant coordinate: shape (n, size)."""
        dense = X if isinstance(X, np.ndarray) else X.toarray()
        dense = np.asarray(dense, dtype=float)
        if not self.constant:
            return dense
        return np.column_stack([dense, np.full(dense.shape[0], self.constant)])

    def products(self, X: Any, c: np.ndarray) -> np.ndarray:
        """Return sum c_i x_i x_i' of rows with their constant coordinate, c being non-negative: (size, size)."""
        used = np.flatnonzero(c > 0.0)
        rows = self.extended(X[used]) * np.sqrt(c[used])[:, None]
        return rows.T @ rows


@dataclass(frozen=True, eq=False)
class Linearisation:
    """The step from a point, with the dual variables that it implies.

    Attributes
    ----------
    z : ndarray of shape (size,)
        The point before the step.
    width : float
        Width of the smoothing of the hinge, as of `row_pass.slopes`.
    numbers : ndarray of int64 of shape (k,), ascending
        Rows whose dual variables are given one by one.
    alpha : ndarray of shape (k,)
        These dual variables.
    others_zero : bool, default=False
        Whether the dual variables of all other rows are 0, instead of those that the step implies.
    """

    z: np.ndarray
    width: float
    numbers: np.ndarray
    alpha: np.ndarray
    others_zero: bool = False


@dataclass(frozen=True, eq=False)
class Query:
    """What a pass has to compute for one binary problem.

    Attributes
    ----------
    positive : int
        The class against the rest.
    z : ndarray of shape (size,)
    width : float
        Width of the smoothed hinge whose slope and curvature are summed.
    curved_width : float
        Width of the smoothing for the curvature; larger than `width` where the slope is that of the hinge itself.
    last : Linearisation or None
        The step that led to z.
    metric : ndarray of shape (size, size)
        A matrix L^-T with K = LL': the distance of a row from the margin is |1 - m_i| / |L^-1 x_i|, since a row whose
        score is uncertain may change sides from farther away.
    unit : float
        The mean of |L^-1 x_i|, by which these are divided.
    nearest : int
        Rows to gather, at most.
    reach : float
        Distance up to which rows are gathered.
    farthest : float
        |1 - m_i| beyond which no row is gathered: `reach` times the largest |L^-1 x_i| / `unit` in the sample.
    """

    positive: int
    z: np.ndarray
    width: float
    curved_width: float
    last: Linearisation | None
    metric: np.ndarray
    unit: float
    nearest: int
    reach: float
    farthest: float


@dataclass(frozen=True, eq=False)
class Evaluation:
    """A point whose bound a pass computes for one binary problem, in any norm.

    Attributes
    ----------
    positive : int
        The class against the rest.
    z : ndarray of shape (size,)
    nearest : int
        Rows to gather, at most.
    reach : float
        Margin below which rows are gathered, with their margins as distances.
    by_terms : bool, default=False
        Whether the error of each score is bounded by its own terms, as of `row_pass.score_errors`.
    dual : (Linearisation, ndarray of shape (size,)), default=None
        The step that implies dual variables whose sums are computed too, and its end.
    """

    positive: int
    z: np.ndarray
    nearest: int
    reach: float
    by_terms: bool = False
    dual: tuple[Linearisation, np.ndarray] | None = None


@dataclass(frozen=True, eq=False)
class Near:
    """The rows nearest to the margin, with their distances and margins as computed in the pass, of shape (k,).

    Sums over the other rows are differences, for which the margins must be the same: other rounding may put a row at
    the margin on its other side. There are at most `nearest` rows after `pruned`, and twice as many after `merge`.
    """

    rows: Gathered
    distances: np.ndarray
    margins: np.ndarray
    nearest: int

    def merge(self, other: Near) -> Near:
        """Return the rows of both that are nearest."""
        rows, distances = self.rows.merge(other.rows), np.append(self.distances, other.distances)
        return Near(rows, distances, np.append(self.margins, other.margins), self.nearest).pruned(2)

    def pruned(self, excess: int = 1) -> Near:
        """Drop the farthest rows if there are more than `excess` times `nearest`; of equal distances the first stay."""
        if self.distances.size <= excess * self.nearest:
            return self
        kept = np.sort(np.argsort(self.distances, kind="stable")[: self.nearest])
        return Near(self.rows.some(kept), self.distances[kept], self.margins[kept], self.nearest)


class StepSums(NamedTuple):
    """Sums over rows for a step of Newton's method.

    Attributes
    ----------
    on_step : ndarray of shape (5,)
        Losses at STEP_SHARES of the last step; 0 without one.
    slope : ndarray of shape (size,)
        sum -phi'(m_i) y_i x_i, phi being the smoothed loss of a row of the margin m_i.
    curvature : ndarray of shape (size, size)
        sum phi''(m_i) x_i x_i'.
    """

    on_step: np.ndarray
    slope: np.ndarray
    curvature: np.ndarray

    def merge(self, other: StepSums) -> StepSums:
        """Return the sums over the rows of both."""
        return StepSums(*(a + b for a, b in zip(self, other, strict=True)))


@dataclass(frozen=True, eq=False)
class Sums:
    """What a pass computes over rows for one binary problem.

    Attributes
    ----------
    data : Fingerprint
    longest : float
        The largest |x_i|, without the constant coordinate.
    point : PointSums
        Of the point z.
    dual : DualSums or None
        Of dual variables: those that the last step implies, or those of a certificate.
    near : Near or None
        The rows nearest to the margin.
    step : StepSums or None
    """

    data: Fingerprint
    longest: float
    point: PointSums
    dual: DualSums | None = None
    near: Near | None = None
    step: StepSums | None = None

    def merge(self, other: Sums) -> Sums:
        """Return the results for the rows of both."""
        return Sums(
            self.data.merge(other.data),
            max(self.longest, other.longest),
            self.point.merge(other.point),
            None if self.dual is None or other.dual is None else self.dual.merge(other.dual),
            None if self.near is None or other.near is None else self.near.merge(other.near),
            None if self.step is None or other.step is None else self.step.merge(other.step),
        )


class PassSums(tuple[Sums, ...]):
    """The sums of a pass, one of each binary problem."""

    def merge(self, other: PassSums) -> PassSums:
        """Return the sums over the rows of both."""
        return PassSums(one.merge(two) for one, two in zip(self, other, strict=True))


def pass_sums(
    coordinates: Coordinates, queries: tuple[Query | Evaluation, ...], partition: Partition
) -> PassSums:
    """Return the sums that the queries ask for, over the rows of a partition."""
    rows = max(BLOCK_BYTES // (8 * max(coordinates.size, 1)), 1)
    # an empty partition is one block of no rows
    parts = partition.blocks(rows) if partition.size else [partition]
    blocks = (Block(coordinates, part) for part in parts)
    found = reduce(PassSums.merge, (PassSums(block.sums(query) for query in queries) for block in blocks))
    # a partition returns no more rows than are asked for
    return PassSums(replace(part, near=part.near.pruned() if part.near else None) for part in found)


class Block:
    """Some rows, with what all binary problems compute of them alike.

    Attributes
    ----------
    X : ndarray or CSR matrix of shape (n, d)
        Contiguous float64 if dense.
    norms : ndarray of shape (n,)
        |x_i| without the constant coordinate.
    weights : ndarray of shape (n,)
        0 for rows of no class.
    products : ndarray of shape (n,)
        The terms of the fingerprint without their factor for the label, 3 + y_i.
    """

    def __init__(self, coordinates: Coordinates, block: Partition | Gathered) -> None:
        X = block.X
        self.coordinates, self.block = coordinates, block
        self.X = X if sp.issparse(X) else np.ascontiguousarray(X, dtype=float)
        self.norms = row_norms(self.X)
        self.weights = np.ones(block.size) if block.weights is None else block.weights
        self.weights = np.where(block.codes >= 0, self.weights, 0.0)
        check_least_cost(coordinates.problem, block, self.weights)
        d = X.shape[1]
        self.products = row_projections(self.X, self.weights, np.arange(1.0, d + 1.0), block.numbers)
        if not (self.norms.max(initial=0.0) <= LARGEST and np.isfinite(self.products.sum())):
            check_finite(block)

    def sums(self, query: Query | Evaluation) -> Sums:
        """Return the sums for one binary problem."""
        y = signs_of(self.block, query.positive)
        margins = y * self.coordinates.scores(self.X, query.z)
        if isinstance(query, Evaluation):
            return self._evaluated(query, y, margins)
        return self._for_step(query, y, margins)

    def _for_step(self, query: Query, y: np.ndarray, margins: np.ndarray) -> Sums:
        """Return the sums for a step of Newton's method."""
        problem = self.coordinates.problem
        slope, curvature = slopes(problem, margins, self.weights, query.width)
        if query.curved_width != query.width:
            curvature = slopes(problem, margins, self.weights, query.curved_width)[1]
        on_step, dual = np.zeros(STEP_SHARES.size), None
        if query.last is not None:
            before = y * self.coordinates.scores(self.X, query.last.z)
            for k, share in enumerate(STEP_SHARES):
                on_step[k] = problem.losses(before + share * (margins - before), self.weights).sum()
            dual = self.dual_sums(y, self._implied(query.last, before, margins))
        step = StepSums(
            on_step,
            self.coordinates.combine(self.X, slope * y),
            self.coordinates.products(self.X, curvature),
        )
        return replace(
            self.bound_sums(y, query.z, margins), dual=dual, near=self._near(query, margins), step=step
        )

    def _evaluated(self, query: Evaluation, y: np.ndarray, margins: np.ndarray) -> Sums:
        """Return the sums of a point, and those of dual variables if the query has them."""
        places = np.flatnonzero((margins < query.reach) & (self.weights > 0.0))
        assert isinstance(self.block, Partition)
        least, dual = margins[places], None
        near = Near(Gathered.take(self.block, places), least, least, query.nearest).pruned()
        if query.dual is not None:
            step, end = query.dual
            before, after = (y * self.coordinates.scores(self.X, z) for z in (step.z, end))
            dual = self.dual_sums(y, self._implied(step, before, after))
        return replace(self.bound_sums(y, query.z, margins, query.by_terms), dual=dual, near=near)

    def bound_sums(self, y: np.ndarray, z: np.ndarray, margins: np.ndarray, by_terms: bool = False) -> Sums:
        """Return the sums for labels y and the point z, where the rows have these margins: shape (n,) each."""
        errors = score_errors(self.X, *self.coordinates.point(z), self.norms, by_terms)
        sums = (float(terms @ (3.0 + y)) for terms in (self.products, np.abs(self.products)))
        return Sums(
            Fingerprint(y.size, self.coordinates.d, int(np.count_nonzero(y > 0.0)), *sums),
            float(self.norms.max(initial=0.0)),
            point_sums(self.coordinates.problem, margins, errors, self.weights),
        )

    def dual_sums(self, y: np.ndarray, alpha: np.ndarray) -> DualSums:
        """Return the sums for labels y and dual variables within their caps: shape (n,) each."""
        return dual_sums(self.coordinates.problem, self.X, y, self.weights, alpha, self.norms)

    def _implied(self, last: Linearisation, before: np.ndarray, margins: np.ndarray) -> np.ndarray:
        """Return the dual variables that the last step implies, shape (n,).

        The margins at its beginning are `before`, those at its end `margins`: shape (n,).
        """
        problem, first = self.coordinates.problem, self.block.numbers[0] if margins.size else 0
        alpha = np.zeros(margins.size)
        if not last.others_zero:
            alpha = implied(problem, before, margins, self.weights, last.width)
        begin, end = np.searchsorted(last.numbers, [first, first + margins.size])
        places = last.numbers[begin:end] - first
        alpha[places] = problem.capped(last.alpha[begin:end], self.weights[places])
        return alpha

    def _near(self, query: Query, margins: np.ndarray) -> Near:
        """Return the rows within reach of the margin, by the distance of `Query.metric`."""
        assert isinstance(self.block, Partition)
        distances = np.abs(1.0 - margins)
        places = np.flatnonzero((distances <= query.farthest) & (self.weights > 0.0))
        distances = distances[places]
        # of few rows: a length costs columns^2 multiplications
        lengths = row_lengths(self.coordinates, self.X[places], query.metric) / query.unit
        distances /= np.maximum(lengths, MIN_UNIT)
        near = distances <= query.reach
        places, distances = places[near], distances[near]
        return Near(Gathered.take(self.block, places), distances, margins[places], query.nearest).pruned()


def row_lengths(coordinates: Coordinates, X: Any, metric: np.ndarray) -> np.ndarray:
    """Return |L^-1 x_i| of rows with their constant coordinate, `metric` being L^-T: shape (n,)."""
    d = coordinates.d
    scores = np.asarray(X @ metric[:d])
    if coordinates.constant:
        scores = scores + coordinates.constant * metric[-1]
    return np.sqrt(np.einsum("ij,ij->i", scores, scores))


def empty_certificate(problem: Problem, shape: tuple[int, int]) -> Certificate:
    """Return the certificate of a fit that was stopped before its first pass: it proves nothing."""
    nothing = Fingerprint(*shape, 0, 0.0, 0.0)
    return Certificate(problem, -np.inf, np.inf, np.zeros(0, np.int64), np.zeros(0), nothing)


@dataclass(frozen=True, eq=False)
class PartitionedFit:
    """What a fit of partitioned rows solves, the memory it may use, and what ends it.

    Attributes
    ----------
    partitions : Partitions
        Codes of classes from 0.
    problem : Problem
    classes : sequence
        The labels of the classes: one binary problem for two classes, else one for each.
    stopping : Stopping
        `max_iter` is the largest number of passes for each problem.
    memory : float
        Bytes.
    seed : int, default=0
        That of samples, and of the order of blocks and rows.
    folder : str or path-like, default=None
        The folder of temporary files; None for that of the system.
    why : str, default=""
        The reason for which the method was chosen.
    problems : sequence of int, default=None
        The numbers of the binary problems to solve; None for all.
    """

    partitions: Partitions
    problem: Problem
    classes: Sequence[Any]
    stopping: Stopping
    memory: float
    seed: int = 0
    folder: Any = None
    why: str = ""
    problems: Sequence[int] | None = None

    @property
    def positives(self) -> list[int]:
        """The class against the rest of each binary problem."""
        found = [1] if len(self.classes) == 2 else list(range(len(self.classes)))
        return found if self.problems is None else [found[k] for k in self.problems]


class PassRun:
    """What is proved of one binary problem, and its reports.

    Parameters
    ----------
    coordinates : Coordinates
    positive : int
        The class against the rest.
    label : object
        Of the reports.

    Attributes
    ----------
    best : Best
        The best point, and in place of dual variables what `certificate` makes them of.
    history : list of Report
    fingerprint : Fingerprint or None
        That of the rows in the last pass.
    idle : int
        Passes since the last progress.
    steps : int
        Visits of rows that changed w.
    """

    def __init__(self, coordinates: Coordinates, positive: int, label: Any) -> None:
        self.coordinates, self.problem = coordinates, coordinates.problem
        self.positive, self.label = positive, label
        self.best: Best = Best(self.problem, coordinates.d, 0)
        self.history: list[Report] = []
        self.fingerprint: Fingerprint | None = None
        self.idle = self.steps = 0

    def check_rows(self, sums: Sums) -> None:
        """Store the fingerprint of the rows of a pass; raise an error if it differs from that of the last pass.

        Rows beyond the domain are refused.
        """
        check_longest(sums.longest)
        difference = None if self.fingerprint is None else self.fingerprint.difference(sums.data)
        if difference is not None:
            raise ValueError(
                f"the rows changed while they were read: {difference}. Fit again when the data are complete."
            )
        self.fingerprint = sums.data

    def certificate(self, shape: tuple[int, int]) -> Certificate:
        """Return the certificate of the best bounds."""
        return empty_certificate(self.problem, shape)

    def solution(self, shape: tuple[int, int], stopping: Stopping) -> Solution:
        """Return the best point, whose status is that of the end of the passes if the gap exceeds `tol`."""
        rounds = len(self.history)
        end = Status.CERTIFIED if self.best.gap <= stopping.tol else status_at_end(stopping, rounds)
        return Solution(*self.best.primal, np.zeros(0), end, rounds, self.history, self.certificate(shape))


class PassDriver(ABC):
    """A method for partitioned rows: the binary problems of a fit, and the passes that improve their bounds.

    Parameters
    ----------
    fit : PartitionedFit

    Attributes
    ----------
    stage, method : str
        The name of the method, and a description of it, in reports.
    max_idle : int
        Passes without progress after which a problem has stalled.
    stopping : Stopping
        That of the present passes.
    labels : list
        The label of each binary problem in the reports.
    runs : list
        The iterations of the binary problems that have begun.
    """

    stage: ClassVar[str]
    method: ClassVar[str]
    max_idle: ClassVar[int] = 8

    def __init__(self, fit: PartitionedFit) -> None:
        self.fit, self.partitions, self.stopping = fit, fit.partitions, fit.stopping
        self.coordinates = Coordinates(fit.problem, fit.partitions.shape[1])
        self.labels: list[Any] = [None] if len(fit.classes) == 2 else [fit.classes[k] for k in fit.positives]
        self.runs: list[Any] = []
        self._reported = 0.0  # seconds of the last report
        self._current: Any = None  # the run of the reports within a pass

    @abstractmethod
    def solve(self) -> list[Solution]:
        """Return the solutions of all problems; ValueError if the rows differ from pass to pass."""

    @abstractmethod
    def advance(self, runs: list[Any]) -> bool:
        """Make a pass for these problems, and `report` each; return False if it was stopped."""

    def make_passes(self, runs: Sequence[Any]) -> None:
        """Make passes for problems until no bound gets better, or another criterion ends them."""
        stopping = self.stopping
        while found := [run for run in runs if run.best.gap > stopping.tol and run.idle < self.max_idle]:
            if stopping.deadline.interrupted() or len(found[0].history) >= stopping.max_iter:
                return
            self._current, self._reported, self.partitions.rows_done = found[0], self._seconds(), 0
            if not self.advance(found):
                return

    def interrupted(self) -> bool:
        """Return whether to stop; twice a second, pass a report of the pass so far to the callback."""
        if self._seconds() - self._reported > PROGRESS_SECONDS and self._current is not None:
            self._call_back(self._report_of(self._current, len(self._current.history)))
        return self.stopping.deadline.interrupted()

    def report(self, run: PassRun) -> None:
        """Append the report of a problem after a pass to its history, and pass it to the callback."""
        run.history.append(self._report_of(run, len(run.history) + 1))
        self._call_back(run.history[-1])

    def _call_back(self, report: Report) -> None:
        """Pass a report of a problem to the callback."""
        self._reported = report.seconds
        self.stopping.on_report(report, self.stopping.deadline)

    def _seconds(self) -> float:
        """Return the seconds since the fit began."""
        return time.perf_counter() - self.stopping.deadline.began

    def _report_of(self, run: PassRun, passes: int) -> Report:
        """Return the report of a problem after so many passes, and the rows of the next that are done."""
        best, rows = run.best, self.partitions
        reason = f"{self.method} ({self.fit.why})" if self.fit.why else self.method
        visits = rows.passes * rows.shape[0] + rows.rows_done
        return Report(
            passes, self._seconds(), best.lower, best.upper, best.gap, visits, run.steps, self.stage, run.label,
            best.margin(), reason,
        )  # fmt: skip
