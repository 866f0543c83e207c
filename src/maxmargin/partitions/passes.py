"""Passes over partitioned rows: the sums and the rows that a query asks for of a binary problem.

At a point z: the objective, with a bound of its rounding error, and the rows nearest to the margin. For dual variables:
the sums that their bound consists of.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import reduce
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from ..certificates.certificate import Certificate, Fingerprint, row_projections
from ..certificates.row_pass import (
    DualSums,
    PointSums,
    Side,
    dual_sums,
    implied,
    norm_interval,
    point_sums,
    primal_side,
    score_errors,
)
from ..data.door import LARGEST
from ..numerics.sums import Plain, row_norms
from ..problem.problem import Problem
from .blocks import Rows, check_finite, check_row_costs


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
        length = norm_interval(self.problem.weights(*self.point(z)), self.problem.q)
        return primal_side(self.problem, sums.point, length)

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
    numbers : ndarray of int64 of shape (k,), ascending
        Rows whose dual variables are given one by one.
    alpha : ndarray of shape (k,)
        These dual variables.
    others_zero : bool, default=False
        Whether the dual variables of all other rows are 0, instead of those that the step implies.
    """

    z: np.ndarray
    numbers: np.ndarray
    alpha: np.ndarray
    others_zero: bool = False


@dataclass(frozen=True, eq=False)
class Near:
    """The rows nearest to the margin, with their distances and margins as computed in the pass, of shape (k,).

    Sums over the other rows are differences, for which the margins must be the same: other rounding may put a row at
    the margin on its other side. There are at most `nearest` rows after `pruned`, and twice as many after `merge`.
    """

    rows: Rows
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
    slope : ndarray of shape (size,)
        sum -phi'(m_i) y_i x_i, phi being the loss of a row of the margin m_i.
    curvature : ndarray of shape (size, size)
        sum phi''(m_i) x_i x_i', phi being a smoothed hinge for the hinge.
    """

    slope: np.ndarray
    curvature: np.ndarray

    def merge(self, other: StepSums) -> StepSums:
        """Return the sums over the rows of both."""
        return StepSums(*(a + b for a, b in zip(self, other, strict=True)))


class Sums(NamedTuple):
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
        data, point = self.data.merge(other.data), self.point.merge(other.point)
        parts: Any = zip(self[3:], other[3:], strict=True)
        return Sums(
            data, max(self.longest, other.longest), point, *(one and one.merge(two) for one, two in parts)
        )


# Returns the sums over the rows of a block that a binary problem needs.
Query = Callable[["Block"], Sums]


def pass_sums(coordinates: Coordinates, query: Query, rows: Rows) -> Sums:
    """Return the sums that a query asks for, over the rows of a partition."""
    # of 2 MB as a matrix of float64 with all columns: temporaries of this size stay in the caches
    parts = rows.blocks(max((1 << 18) // max(coordinates.size, 1), 1))
    found = reduce(Sums.merge, (query(Block(coordinates, part)) for part in parts))
    # a partition returns no more rows than are asked for
    return found._replace(near=found.near and found.near.pruned())


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
    rows : Rows
    products : ndarray of shape (n,)
        The terms of the fingerprint without their factor for the label, 3 + y_i.
    """

    def __init__(self, coordinates: Coordinates, rows: Rows) -> None:
        X = rows.X
        self.coordinates, self.rows = coordinates, rows
        self.X = X if sp.issparse(X) else np.ascontiguousarray(X, dtype=float)
        self.norms = row_norms(self.X)
        self.weights = np.where(rows.codes >= 0, rows.weights, 0.0)
        check_row_costs(coordinates.problem, rows, self.weights)
        d = X.shape[1]
        self.products = row_projections(self.X, self.weights, np.arange(1.0, d + 1.0), rows.numbers)
        if not (self.norms.max(initial=0.0) <= LARGEST and np.isfinite(self.products.sum())):
            check_finite(rows)

    def margins(self, y: np.ndarray, z: np.ndarray) -> np.ndarray:
        """Return y_i (w.x_i + b) of the rows: shape (n,)."""
        return y * self.coordinates.scores(self.X, z)

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

    def implied_sums(
        self, y: np.ndarray, last: Linearisation, before: np.ndarray, margins: np.ndarray
    ) -> DualSums:
        """Return the sums for the dual variables that a step implies.

        The margins at its beginning are `before`, those at its end `margins`: shape (n,).
        """
        problem, first = self.coordinates.problem, self.rows.numbers[0] if margins.size else 0
        alpha = np.zeros(margins.size)
        if not last.others_zero:
            alpha = implied(problem, before, margins, self.weights)
        begin, end = np.searchsorted(last.numbers, [first, first + margins.size])
        places = last.numbers[begin:end] - first
        alpha[places] = problem.capped(last.alpha[begin:end], self.weights[places])
        return self.dual_sums(y, alpha)

    def near(self, places: np.ndarray, distances: np.ndarray, margins: np.ndarray, nearest: int) -> Near:
        """Return the nearest of the rows at these places, with their distances: shape (k,)."""
        return Near(self.rows.some(places), distances, margins[places], nearest).pruned()


def empty_certificate(problem: Problem, shape: tuple[int, int]) -> Certificate:
    """Return the certificate of a fit that was stopped before its first pass: it proves nothing."""
    nothing = Fingerprint(*shape, 0, 0.0, 0.0)
    return Certificate(problem, -np.inf, np.inf, np.zeros(0, np.int64), np.zeros(0), nothing)
