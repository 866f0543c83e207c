"""What one pass over the rows computes for a binary problem, block by block.

At a point z: the objective, with a bound of its rounding error; slope and curvature of the smoothed losses; the rows
nearest to the margin. For the dual variables that the last two points imply: the sums that their bound consists of.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, Generic, TypeVar

import numpy as np
import scipy.sparse as sp

from ...certificates.bounds import Length, norm_interval
from ...certificates.certificate import Fingerprint
from ...certificates.dual_variables import implied, slopes
from ...certificates.sample import factors_at, row_projections
from ...data.door import LARGEST
from ...data.partitions import Gathered, M, Partition, check_finite, check_least_cost, signs_of
from ...numerics.sums import SMALLEST_FLOAT, Plain
from ...problem.problem import Problem

# Points between the last two ones at which a pass evaluates the objective, as shares of the way: a step that is too
# long costs no pass of its own. More points take more time for each row.
STEP_SHARES = np.array([0.0625, 0.125, 0.25, 0.5, 0.75])
# Bytes of a block of rows, as a matrix of float64 with all columns: temporaries of this size stay in the caches.
BLOCK_BYTES = 1 << 21
# The least distance unit of a row, as a share of the mean one (`Query.metric`): without it, rows whose scores are known
# exactly are never gathered, and rows of tiny entries fill the memory.
MIN_UNIT = 0.1

Q = TypeVar("Q")


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

    def length(self, z: np.ndarray) -> Length:
        """Return |w| in the dual norm, with the weight of an augmented intercept, and an interval that holds it."""
        return norm_interval(self.problem.weights(*self.point(z)), self.problem.q)

    def scores(self, X: Any, z: np.ndarray) -> np.ndarray:
        """Return w.x_i + b of rows: shape (n,)."""
        return Plain.scores(X, *self.point(z))

    def combine(self, X: Any, c: np.ndarray) -> np.ndarray:
        """Return sum c_i x_i of rows with their constant coordinate: shape (size,)."""
        found = Plain.combine(X, c)
        return np.append(found, self.constant * Plain.total(c)) if self.constant else found

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
        Width of the smoothing of the hinge, as of `dual_variables.slopes`.
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
    metric : ndarray of shape (size, size) or None
        A matrix L^-T with K = LL': the distance of a row from the margin is |1 - m_i| / |L^-1 x_i|, since a row whose
        score is uncertain may change sides from farther away. None: all units are equal.
    unit : float
        The mean of |L^-1 x_i|, by which these are divided.
    nearest : int
        Rows to gather, at most.
    reach : float
        Distance up to which rows are gathered.
    farthest : float
        |1 - m_i| beyond which no row is gathered: `reach` times the largest |L^-1 x_i| / `unit` in the sample.
    bounds_only : bool, default=False
        Whether slope and curvature are left out, as 0.
    """

    positive: int
    z: np.ndarray
    width: float
    curved_width: float
    last: Linearisation | None
    metric: np.ndarray | None
    unit: float
    nearest: int
    reach: float
    farthest: float
    bounds_only: bool = False


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


@dataclass(frozen=True, eq=False)
class DualTotals:
    """Sums over dual variables, the first row for positive and the second one for negative labels.

    Attributes
    ----------
    alpha, gains_lost, spread : ndarray of shape (2,)
        sum alpha_i; sum alpha_i^2 / (4 C s_i) of the squared hinge, 0 of the hinge; sum alpha_i |x_i| without the
        constant coordinate.
    v : ndarray of shape (2, size)
        sum alpha_i y_i x_i, with the constant coordinate.
    """

    alpha: np.ndarray
    gains_lost: np.ndarray
    spread: np.ndarray
    v: np.ndarray

    def merge(self, other: DualTotals) -> DualTotals:
        """Return the sums over the rows of both."""
        return DualTotals(
            self.alpha + other.alpha,
            self.gains_lost + other.gains_lost,
            self.spread + other.spread,
            self.v + other.v,
        )


@dataclass(frozen=True, eq=False)
class RowSums:
    """Sums over rows from which the fingerprint follows, and the objective at a point.

    Attributes
    ----------
    rows, positives : int
    checksum, scale : float
        Sums of the fingerprint (`Sample.fingerprint`).
    losses, worst : float
        Losses of the margins as computed, and of the margins minus their error bounds; 0 for a hard margin.
    terms, blocks : int
        Successive additions within a block, at most, and blocks that were added up.
    longest : float
        The largest |x_i|, without the constant coordinate.
    """

    rows: int
    positives: int
    checksum: float
    scale: float
    losses: float
    worst: float
    terms: int
    blocks: int
    longest: float

    def merge(self, other: RowSums) -> RowSums:
        """Return the sums over the rows of both."""
        return RowSums(
            self.rows + other.rows,
            self.positives + other.positives,
            self.checksum + other.checksum,
            self.scale + other.scale,
            self.losses + other.losses,
            self.worst + other.worst,
            max(self.terms, other.terms),
            self.blocks + other.blocks,
            max(self.longest, other.longest),
        )

    @property
    def additions(self) -> int:
        """The number of successive additions in each sum, at most, for error bounds."""
        return self.terms + self.blocks

    def fingerprint(self, columns: int) -> Fingerprint:
        """Return the fingerprint of the rows."""
        return Fingerprint(self.rows, columns, self.positives, self.checksum, self.scale)


@dataclass(frozen=True, eq=False)
class BoundSums(RowSums):
    """Sums over rows from which a lower and an upper bound follow.

    Attributes
    ----------
    dual : DualTotals or None
        Sums over dual variables.
    """

    dual: DualTotals | None

    def merge(self, other: BoundSums) -> BoundSums:  # pyright: ignore[reportIncompatibleMethodOverride]
        """Return the sums over the rows of both."""
        return BoundSums(
            **vars(super().merge(other)),
            dual=None if self.dual is None or other.dual is None else self.dual.merge(other.dual),
        )


@dataclass(frozen=True, eq=False)
class Sums(BoundSums):
    """Sums over rows for one `Query`.

    Attributes
    ----------
    on_step : ndarray of shape (5,)
        Losses at STEP_SHARES of the last step; 0 without one.
    slope : ndarray of shape (size,)
        sum -phi'(m_i) y_i x_i, phi being the smoothed loss of a row of the margin m_i.
    curvature : ndarray of shape (size, size)
        sum phi''(m_i) x_i x_i'.
    near : Near
    """

    on_step: np.ndarray
    slope: np.ndarray
    curvature: np.ndarray
    near: Near

    def merge(self, other: Sums) -> Sums:  # pyright: ignore[reportIncompatibleMethodOverride]
        """Return the sums over the rows of both; `dual` is that of the dual variables that the last step implies."""
        return Sums(
            **vars(super().merge(other)),
            on_step=self.on_step + other.on_step,
            slope=self.slope + other.slope,
            curvature=self.curvature + other.curvature,
            near=self.near.merge(other.near),
        )


@dataclass(frozen=True, eq=False)
class PassResult(Generic[M]):
    """The results of a pass for several binary problems."""

    parts: tuple[M, ...]

    def merge(self, other: PassResult[M]) -> PassResult[M]:
        """Return the results for the rows of both."""
        return PassResult(tuple(one.merge(two) for one, two in zip(self.parts, other.parts, strict=True)))


def results_by_block(
    coordinates: Coordinates, queries: tuple[Q, ...], compute: Callable[[Block, Q], M], partition: Partition
) -> PassResult[M]:
    """Return what `compute` returns for each query, merged over the blocks of a partition.

    An empty partition is one block of no rows.
    """
    rows = max(BLOCK_BYTES // (8 * max(coordinates.size, 1)), 1)
    found: PassResult[M] | None = None
    for part in partition.blocks(rows) if partition.size else [partition]:
        block = Block(coordinates, part)
        results = PassResult(tuple(compute(block, query) for query in queries))
        found = results if found is None else found.merge(results)
    assert found is not None
    return found


def pass_sums(coordinates: Coordinates, queries: tuple[Query, ...], partition: Partition) -> PassResult[Sums]:
    """Return the sums that the queries ask for, over the rows of a partition."""
    found = results_by_block(coordinates, queries, Block.sums, partition)
    # a partition returns no more rows than are asked for
    return PassResult(tuple(replace(part, near=part.near.pruned()) for part in found.parts))


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
    width : int
        The largest number of stored entries of a row.
    """

    def __init__(self, coordinates: Coordinates, block: Partition | Gathered) -> None:
        X = block.X
        self.coordinates, self.block = coordinates, block
        self.X = X if sp.issparse(X) else np.ascontiguousarray(X, dtype=float)
        self.norms = Plain.row_norms(self.X)
        self.weights = np.ones(block.size) if block.weights is None else block.weights
        self.weights = np.where(block.codes >= 0, self.weights, 0.0)
        check_least_cost(coordinates.problem, block, self.weights)
        d = X.shape[1]
        self.products = row_projections(self.X, np.arange(1.0, d + 1.0)) * factors_at(block.numbers)
        self.products *= 1.0 + self.weights
        if not (self.norms.max(initial=0.0) <= LARGEST and np.isfinite(self.products.sum())):
            check_finite(block)
        self.width = int(np.diff(X.indptr).max(initial=0)) if sp.issparse(X) else d

    def sums(self, query: Query) -> Sums:
        """Return the sums for one binary problem."""
        problem = self.coordinates.problem
        y = signs_of(self.block, query.positive)
        margins = y * self.coordinates.scores(self.X, query.z)
        slope, curvature = slopes(problem, margins, self.weights, query.width)
        if query.bounds_only:
            slope, curvature = np.zeros((2, y.size))
        elif query.curved_width != query.width:
            curvature = slopes(problem, margins, self.weights, query.curved_width)[1]
        on_step, dual = np.zeros(STEP_SHARES.size), None
        if query.last is not None:
            before = y * self.coordinates.scores(self.X, query.last.z)
            for k, share in enumerate(STEP_SHARES):
                on_step[k] = problem.losses(before + share * (margins - before), self.weights).sum()
            dual = self._dual(query.last, y, before, margins)
        return Sums(
            **vars(self.bound_sums(y, query.z, margins, dual)),
            on_step=on_step,
            slope=self.coordinates.combine(self.X, slope * y),
            curvature=self.coordinates.products(self.X, curvature),
            near=self._near(query, margins),
        )

    def row_sums(self, y: np.ndarray, margins: np.ndarray, worst: np.ndarray) -> RowSums:
        """Return the sums for labels y, margins, and the margins minus their error bounds, each of shape (n,)."""
        problem = self.coordinates.problem
        losses, worst_losses = (
            0.0 if problem.hard else Plain.total(problem.losses(each, self.weights))
            for each in (margins, worst)
        )
        if not problem.hard:  # losses may underflow
            worst_losses += SMALLEST_FLOAT * np.count_nonzero((worst < 1.0) & (self.weights > 0.0))
        return RowSums(
            self.block.size, int(np.count_nonzero(y > 0.0)), float(self.products @ (3.0 + y)),
            float(np.abs(self.products) @ (3.0 + y)), losses, worst_losses,
            Plain.terms(self.X, self.block.size, 0), 1, float(self.norms.max(initial=0.0)),
        )  # fmt: skip

    def bound_sums(
        self, y: np.ndarray, z: np.ndarray, margins: np.ndarray, dual: DualTotals | None
    ) -> BoundSums:
        """Return the sums for bounds of the point z, where the rows have these margins, and of dual variables."""
        found = self.row_sums(y, margins, margins - self.errors(z, margins))
        return BoundSums(**vars(found), dual=dual)

    def errors(self, z: np.ndarray, margins: np.ndarray, by_terms: bool = False) -> np.ndarray:
        """Return bounds of the rounding errors of margins, of shape (n,).

        The absolute values of the terms of a score sum to at most |x_i| |w| + |b| (Cauchy and Schwarz). With `by_terms`
        the sum is computed, which is much smaller where columns differ in size. The factor 1.01 covers the rounding of
        either.
        """
        w, b = self.coordinates.point(z)
        size = Plain.scores(abs(self.X), np.abs(w)) if by_terms else self.norms * Plain.norm(w)
        errors = Plain.error(1.01 * size + abs(b), Plain.terms(self.X, self.width, 1) + 1)
        return errors + (self.width + 2) * SMALLEST_FLOAT

    def _dual(
        self, last: Linearisation, y: np.ndarray, before: np.ndarray, margins: np.ndarray
    ) -> DualTotals:
        """Return the sums over the dual variables that the last step implies.

        The margins at its beginning are `before`, those at its end `margins`: shape (n,).
        """
        problem, first = self.coordinates.problem, self.block.numbers[0] if y.size else 0
        alpha = np.zeros(y.size)
        if not last.others_zero:
            alpha = implied(problem, before, margins, self.weights, last.width)
        begin, end = np.searchsorted(last.numbers, [first, first + y.size])
        places = last.numbers[begin:end] - first
        alpha[places] = problem.capped(last.alpha[begin:end], self.weights[places])
        return self.dual_totals(y, alpha)

    def dual_totals(self, y: np.ndarray, alpha: np.ndarray) -> DualTotals:
        """Return the sums over dual variables: shape (n,)."""
        problem = self.coordinates.problem
        sides = np.stack([alpha * (y > 0.0), alpha * (y < 0.0)])
        signs = np.array([1.0, -1.0])
        return DualTotals(
            np.array([Plain.total(side) for side in sides]),
            # not alpha - gains, which cancels where alpha is small: `dual_side` may multiply alpha by a large factor
            np.array([Plain.total(problem.gains_lost(side, self.weights)) for side in sides]),
            sides @ self.norms,
            np.stack(
                [s * self.coordinates.combine(self.X, side) for s, side in zip(signs, sides, strict=True)]
            ),
        )

    def _near(self, query: Query, margins: np.ndarray) -> Near:
        """Return the rows within reach of the margin, by the distance of `Query.metric`."""
        assert isinstance(self.block, Partition)
        distances = np.abs(1.0 - margins)
        places = np.flatnonzero((distances <= query.farthest) & (self.weights > 0.0))
        distances = distances[places]
        if query.metric is not None:  # for few rows: a length costs columns^2 multiplications
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
