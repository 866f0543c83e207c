"""Exact linear algebra on float64 data: integers, after multiplication by a power of two for each column.

The one operation is to find a null vector of a matrix; it decides linear and affine dependence of rows, and least
squares.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import flint
import numpy as np
import scipy.sparse as sp

from .progress import require_time
from .sums import EPS, row_norms

MAX_COLUMNS = 600  # rows of a proof: elimination of more takes over some seconds, and cannot be interrupted


class BeyondReachError(ArithmeticError):
    """The exact solution has more rows than this module supports."""


def null_vector(matrix: list[list[int]], interrupted: Callable[[], bool] = lambda: False) -> list[int] | None:
    """Return integers z, not all zero, with matrix z = 0; None if the columns are independent.

    Parameters
    ----------
    matrix : list of m lists of k integers
        Of any size.
    interrupted : callable
        Returns whether to stop before the elimination.

    Returns
    -------
    z : list of k integers, or None
        Its non-zero entries belong to columns of which all but the last are independent.

    Raises
    ------
    OutOfTime
        If `interrupted` returns True.
    BeyondReachError
        If there are more than `MAX_COLUMNS` columns.
    """
    k = len(matrix[0])
    if k > MAX_COLUMNS:
        raise BeyondReachError(f"a proof may take over {MAX_COLUMNS} rows, too many for exact arithmetic")
    require_time(interrupted)
    used = min(k, len(matrix) + 1)  # so many columns are dependent
    reduced, unit, rank = flint.fmpz_mat([line[:used] for line in matrix]).rref()
    if rank == k:
        return None
    free = next((j for j in range(rank) if not reduced[j, j]), rank)  # the first column without a pivot
    z = [*(int(reduced[i, free]) for i in range(free)), -int(unit)]
    common = math.gcd(*z)
    return [*(value // common for value in z), *([0] * (k - free - 1))]


class IntegerRows:
    """Rows y_i (x_i, 1) as integers, (y_i x_ij 2^exponents_j, y_i 2^bits): one power of two for each column.

    The largest entries of all columns then have about the same size. Null vectors do not change. The integers of a row
    are computed at its first use.

    Parameters
    ----------
    X : ndarray or CSR matrix of shape (n, d)
        Finite numbers, in canonical format where sparse.
    y : ndarray of shape (n,), entries -1.0 and 1.0
    bias : bool
        Whether rows end with the constant coordinate.
    interrupted : callable
        Whether to stop; OutOfTime is raised then.

    Attributes
    ----------
    n, d, width : int
        Rows, columns of X, and coordinates of a row.
    bits : int
        The largest number of bits of an entry; the constant coordinate is 2^bits.
    exponents : ndarray of shape (d,)
        Integer entries are those of X times 2^exponents.
    scaled : ndarray or CSR matrix of shape (n, d)
        The columns of X in float64, each divided by a power of two: entries are at most 1 in absolute value.
    """

    def __init__(
        self, X: Any, y: np.ndarray, bias: bool, interrupted: Callable[[], bool] = lambda: False
    ) -> None:
        self._X, (n, d), self.interrupted = X, X.shape, interrupted
        top, least = np.full(d, -(2**62)), np.full(d, 2**62)
        # 2^20 numbers between two stop checks: a tenth of a second
        step = max((1 << 20) * n // max(X.nnz if sp.issparse(X) else X.size, 1), 1)
        for begin in range(0, n, step):
            require_time(interrupted)
            rows = X[begin : begin + step]
            values = np.asarray(rows.data if sp.issparse(X) else rows, dtype=float).ravel()
            columns = rows.indices if sp.issparse(X) else np.tile(np.arange(d), rows.shape[0])
            # a number is whole * 2^(exponent - 53), with an integer `whole` of at most 53 bits
            mantissa, exponent = np.frexp(values)
            whole = (mantissa * 2.0**53).astype(np.int64)
            used = whole != 0
            whole, exponent, columns = whole[used], exponent[used].astype(np.int64), columns[used]
            lowest = np.frexp((whole & -whole).astype(float))[1] - 1  # trailing zeros of the mantissa
            np.maximum.at(top, columns, exponent)
            np.minimum.at(least, columns, exponent - 53 + lowest)
        some = top > -(2**62)  # columns with an entry other than 0
        self.n, self.d, self.y, self.bias = n, d, y, bias
        self.bits, self.width = int((top - least)[some].max(initial=1)), d + int(bias)
        self._rows: dict[int, tuple[list[int], list[int]]] = {}
        self.exponents = np.where(some, self.bits - top, 0)
        powers, self.scaled = self.exponents - self.bits, X.astype(float)
        if sp.issparse(X):
            self.scaled.data = np.ldexp(self.scaled.data, powers[X.indices])
        else:
            np.ldexp(self.scaled, powers, out=self.scaled)

    def row(self, i: int) -> tuple[list[int], list[int]]:
        """Return places and values of the entries of row i, computed at the first call."""
        if i not in self._rows:
            require_time(self.interrupted)
            places, values = row_entries(self._X, i)
            whole = []
            for value, exponent in zip(values, self.exponents[places].tolist(), strict=True):
                numerator, denominator = value.as_integer_ratio()
                shift = exponent - denominator.bit_length() + 1
                whole.append(numerator << shift if shift >= 0 else numerator >> -shift)
            if self.bias:
                places, whole = [*places, self.d], [*whole, 1 << self.bits]
            self._rows[i] = places, [int(self.y[i]) * value for value in whole]
        return self._rows[i]

    def block(self, rows: list[int]) -> tuple[list[int], list[list[int]]]:
        """Return the coordinates in which these rows are not all zero, and the matrix whose columns the rows are."""
        places = sorted({place for i in rows for place in self.row(i)[0]})
        at = {place: line for line, place in enumerate(places)}
        found = [[0] * len(rows) for _ in places]
        for column, i in enumerate(rows):
            for place, value in zip(*self.row(i), strict=True):
                found[at[place]][column] = value
        return places, found

    def product(self, i: int, direction: list[int]) -> int:
        """Return the inner product of row i with a vector of integers."""
        return sum(value * direction[place] for place, value in zip(*self.row(i), strict=True))


def row_entries(X: Any, i: int) -> tuple[list[int], list[float]]:
    """Return the columns and the values of the entries of row i that are not 0."""
    if sp.issparse(X):
        part = slice(X.indptr[i], X.indptr[i + 1])
        columns, values = X.indices[part], X.data[part]
    else:
        columns, values = np.arange(X.shape[1]), X[i]
    used = values != 0.0
    return columns[used].tolist(), values[used].tolist()


# the ball around the origin inside the convex hull of the rows of a proof that there is no separator


@np.errstate(over="ignore", under="ignore", invalid="ignore", divide="ignore")
def inner_radius(
    rows: Any, signs: np.ndarray, weights: tuple[Fraction, ...], q: float, bias: bool
) -> tuple[float, float]:
    """Return the radius of a ball around the origin inside the hull of a proof's rows; 0.0 if none is found.

    For z in the ball, some lambda in the simplex, balanced where there is a bias, has sum lambda_k y_k x_k = z. Hence
    for all w and b, some row has a margin of at most -radius |w|_q. With the weights alpha of the origin,
    lambda = alpha + G z, G being the first columns of the inverse of the matrix of the rows, their signs and ones; it
    stays positive for |z|_p < alpha_k / |G_k|_q. The radius is rounded downwards; none is given below the smallest
    normal number.

    Parameters
    ----------
    rows : ndarray or CSR matrix of shape (k, d)
        Those of the certificate; a ball is found where they are one more than there are coordinates, and not too many.
    signs : ndarray of shape (k,), entries -1.0 and 1.0
    weights : tuple of Fraction
    q : float
        1/p + 1/q = 1, where the radius is measured in the p-norm.
    bias : bool

    Returns
    -------
    radius : float
    rounding : float
        The amount by which the radius may be larger when it is computed on another machine.
    """
    k, d = rows.shape
    if k != d + 1 + int(bias) or k > 400:  # the inverse then takes some hundredths of a second
        return 0.0, 0.0
    # columns divided by powers of two near their largest entries, which is exact
    rows = rows.toarray() if sp.issparse(rows) else np.asarray(rows)
    rows = rows.astype(float) * signs[:, None]
    size = np.abs(rows).max(axis=0)
    if not np.isfinite(1.0 / size).all():
        return 0.0, 0.0
    unit = 2.0 ** np.round(np.log2(size))
    extra = [signs, np.ones(k)] if bias else [np.ones(k)]
    M = np.column_stack([rows / unit, *extra]).T
    try:
        inverse = np.linalg.inv(M)
    except np.linalg.LinAlgError:
        return 0.0, 0.0
    # M^-1 = (I - S)^-1 inverse with S = I - inverse M, so that |M^-1 - inverse| <= |S| / (1 - |S|) max |inverse|
    rounding = (k + 4.0) * EPS * float((np.abs(inverse) @ np.abs(M)).sum(axis=1).max())
    off = float(np.abs(np.eye(k) - inverse @ M).sum(axis=1).max()) + rounding
    if not off < 0.01:  # 1.02 > 1 / (1 - 0.01)
        return 0.0, 0.0
    G = inverse[:, :d] / unit
    lengths = row_norms(np.vstack([G, np.abs(G).max(axis=0)]), q)
    if not 1e-280 < lengths[-1] < np.inf:  # of smaller ones the error may underflow
        return 0.0, 0.0
    error = 1.02 * off * float(lengths[-1])
    lengths = lengths[:-1] + error
    # weights may be below all float64 numbers: their quotients are rational, and the least is rounded once
    pairs = zip(weights, lengths.tolist(), strict=True)
    least = min(weight / Fraction(length) for weight, length in pairs)
    radius = float(min(least, Fraction(sys.float_info.max))) * (1.0 - 1e-12 * (d + 4.0))
    if radius < sys.float_info.min:  # rounded to fewer digits
        return 0.0, 0.0
    # A length from another inverse is at least that of the exact one, so that it is smaller by 2 error at most:
    # 1 / (1 - 2 e) <= 1 + 4 e up to e = 1/4. Where e is larger, at most twice the radius is accepted. 1e-9 is more than
    # the rounding of norms and quotients.
    return radius, radius * (min(4.0 * error / float(lengths.min()), 1.0) + 1e-9)
