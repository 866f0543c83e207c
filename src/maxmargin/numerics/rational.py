"""Exact linear algebra on float64 data: integers, after multiplication by a power of two for each column.

The one operation is to find a null vector of a matrix; it decides linear and affine dependence of rows, and least
squares. Elimination modulo a prime finds independent columns. p-adic lifting finds the solution digit by digit, with
long integers in the residual only. The product with the matrix is computed exactly before a result is returned: a prime
that divides a relevant minor costs time, never correctness.

References
----------
J. D. Dixon, "Exact solution of linear equations using p-adic expansions", Numerische Mathematik 40, 1982;
P. S. Wang, "A p-adic algorithm for univariate partial fractions", SYMSAC 1981 (rational reconstruction).
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Hashable
from fractions import Fraction
from functools import cached_property
from typing import Any

import numpy as np
import scipy.sparse as sp

from .stop_check import require_time

# The largest primes below 2^26: a sum of 2^11 products of two residues fits 64 bits.
PRIMES = 67108859, 67108837, 67108819, 67108777
MAX_COLUMNS = 2048  # terms of such a sum
LIMB = 24  # bits of a digit of the matrix: 2^11 products with numbers below 2^26 fit 63 bits
# Digits before the first rational reconstruction, and the growth of their number until the next: a reconstruction costs
# about as much as a few digits. With a smaller growth there are more of them, with a larger one more unneeded digits.
FIRST_DIGITS, GROWTH = 8, 1.5
NUMBERS_PER_CHECK = 1 << 20  # numbers that are converted between two stop checks: a tenth of a second


class BeyondReachError(ArithmeticError):
    """The exact solution has more rows than this module supports."""


def null_vector(matrix: list[list[int]], interrupted: Callable[[], bool] = lambda: False) -> list[int] | None:
    """Return integers z, not all zero, with matrix z = 0; None if the columns are independent.

    Parameters
    ----------
    matrix : list of m lists of k integers
        Of any size.
    interrupted : callable
        Returns whether to stop.

    Returns
    -------
    z : list of k integers, or None
        Its non-zero entries belong to columns of which all but the last are independent. Both results are proved:
        columns that are independent modulo a prime are independent, and matrix z = 0 is computed.

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
    whole = np.array(matrix, dtype=object).reshape(-1, k)
    for prime in PRIMES:
        rows, columns, free = _pivots((whole % prime).astype(np.int64), prime)
        if free is None:
            return None
        block, target = whole[np.ix_(rows, columns)], -whole[rows, free]
        found = _solve(block, target, prime, interrupted)
        z = [0] * k
        z[free] = found[1]
        for place, value in zip(columns, found[0], strict=True):
            z[place] = value
        used = [*columns, free]
        if not (whole[:, used] @ np.array([z[place] for place in used], dtype=object)).any():
            return z
    raise ArithmeticError(f"none of {len(PRIMES)} primes keeps the rank of the matrix")


def _pivots(M: np.ndarray, prime: int) -> tuple[list[int], list[int], int | None]:
    """Return rows and columns of a regular block modulo the prime, and the first column that depends on them.

    By Gaussian elimination of one column after the other; the last result is None if all columns are independent.
    """
    M, order = M.copy(), np.arange(M.shape[0])
    columns: list[int] = []
    for place in range(M.shape[1]):
        at = len(columns)
        other = np.flatnonzero(M[at:, place])
        if not other.size:
            return order[:at].tolist(), columns, place
        swap = [at, at + int(other[0])]
        M[swap], order[swap] = M[swap[::-1]], order[swap[::-1]]
        M[at] = M[at] * pow(int(M[at, place]), -1, prime) % prime
        M[at + 1 :] = (M[at + 1 :] - M[at + 1 :, place : place + 1] * M[at]) % prime
        columns.append(place)
    return order[: len(columns)].tolist(), columns, None


def _inverse(B: np.ndarray, prime: int) -> np.ndarray:
    """Return the inverse of a matrix that is regular modulo the prime, by Gauss-Jordan elimination."""
    k = B.shape[0]
    M = np.hstack([B, np.eye(k, dtype=np.int64)])
    for at in range(k):
        swap = [at, at + int(np.flatnonzero(M[at:, at])[0])]
        M[swap] = M[swap[::-1]]
        M[at] = M[at] * pow(int(M[at, at]), -1, prime) % prime
        factor = M[:, at].copy()
        factor[at] = 0
        M = (M - factor[:, None] * M[at]) % prime
    return M[:, k:]


def _limbs(B: Any) -> np.ndarray:
    """Return the digits of the entries as matrices, stacked vertically: B = sum_l 2^(24 l) limbs[l]."""
    max_bits = max((abs(int(v)).bit_length() for v in B.flat), default=1)
    sign, size = np.where(B < 0, -1, 1).astype(np.int64), abs(B)
    parts = [
        ((size >> (LIMB * part)) & ((1 << LIMB) - 1)).astype(np.int64) * sign
        for part in range(max(-(-max_bits // LIMB), 1))
    ]
    return np.vstack(parts)


def _solve(
    B: np.ndarray, c: np.ndarray, prime: int, interrupted: Callable[[], bool]
) -> tuple[list[int], int]:
    """Return z and t > 0 with B z = t c, for a block that is regular modulo the prime (Dixon's lifting).

    With R = c at first, each step takes the digit B^-1 R modulo the prime and sets R = (R - B digit) / prime: the
    digits are those of B^-1 c in base prime.
    """
    k = B.shape[0]
    if not k:
        return [], 1
    inverse, limbs = _inverse((B % prime).astype(np.int64), prime), _limbs(B)
    count = limbs.shape[0] // k
    # Hadamard's bound of numerators and denominators, in bits, and the digits that determine numbers within it
    rows = [sum(int(v) ** 2 for v in row) + int(t) ** 2 for row, t in zip(B, c, strict=True)]
    bits = sum(max(size.bit_length(), 1) for size in rows) / 2.0
    max_digits = math.ceil((2.0 * bits + 2.0) / math.log2(prime)) + 1
    residual, solution, power = c.copy(), np.zeros(k, dtype=object), 1
    digits, attempt = 0, FIRST_DIGITS
    while True:
        digit = inverse @ (residual % prime).astype(np.int64) % prime
        product = (limbs @ digit).reshape(count, k)
        subtracted = product[count - 1].astype(object)  # B digit, from its limbs by Horner's rule
        for part in range(count - 2, -1, -1):
            subtracted = (subtracted << LIMB) + product[part]
        residual = (residual - subtracted) // prime
        solution = solution + digit.astype(object) * power
        power *= prime
        digits += 1
        if digits < attempt and digits < max_digits:
            continue
        require_time(interrupted)
        found = _fractions(solution.tolist(), power)
        if found is not None and not (B @ np.array(found[0], dtype=object) - found[1] * c).any():
            return found
        if digits >= max_digits + 2:
            raise ArithmeticError("no solution below Hadamard's bound")
        attempt = math.ceil(digits * GROWTH)


def _fractions(residues: list[int], modulus: int) -> tuple[list[int], int] | None:
    """Return small numerators, and one denominator, of fractions that equal `residues` modulo `modulus`.

    Small means at most sqrt(modulus / 2), which makes them unique; None if there are none.
    """
    bound = math.isqrt(modulus // 2)
    common = 1
    for residue in residues:
        value = residue * common % modulus
        if min(value, modulus - value) > bound:
            below = _denominator(value, modulus, bound)
            if below is None or common * below > bound:
                return None
            common *= below
    values = [residue * common % modulus for residue in residues]
    values = [value - modulus if value > bound else value for value in values]
    return (values, common) if all(abs(value) <= bound for value in values) else None


def _denominator(value: int, modulus: int, bound: int) -> int | None:
    """Return the least t with |t value| <= bound modulo `modulus`, if t <= bound (Wang's reconstruction)."""
    # Euclid's algorithm: new = t value modulo `modulus` at every step
    old, new, last_t, t = modulus, value, 0, 1
    while new > bound:
        quotient = old // new
        old, new = new, old - quotient * new
        last_t, t = t, last_t - quotient * t
    return abs(t) if 0 < abs(t) <= bound else None


class ExactRows(ABC):
    """Rows y_i (phi(x_i), 1) of integers, each computed at its first use; the last column only with a bias.

    Attributes
    ----------
    n, d, width : int
        Rows, coordinates of phi, and coordinates of a row.
    y : ndarray of shape (n,), entries -1.0 and 1.0
    bias : bool
        Whether rows end with the constant coordinate.
    bits : int
        The largest number of bits of an entry; the constant coordinate is 2^bits.
    inexact : float
        Error bound of the entries of `scaled`, in units of the last digit.
    interrupted : callable
        Whether to stop; called before the integers of a row are computed, and OutOfTime is raised then.
    """

    inexact: float
    interrupted: Callable[[], bool] = staticmethod(lambda: False)

    def __init__(self, n: int, d: int, y: np.ndarray, bias: bool, bits: int) -> None:
        self.n, self.d, self.y, self.bias, self.bits = n, d, y, bias, bits
        self.width = d + int(bias)
        self._rows: dict[int, tuple[list[int], list[int]]] = {}

    @cached_property
    @abstractmethod
    def scaled(self) -> Any:
        """phi(x_i) in float64, divided by 2^bits: entries are at most 1 in absolute value."""

    @abstractmethod
    def coordinates(self, i: int) -> tuple[list[int], list[int]]:
        """Return places and integer values of the non-zero coordinates of phi(x_i)."""

    @abstractmethod
    def column(self, k: int) -> tuple[Hashable, int]:
        """Return the name of coordinate k of phi, and the exponent of two that makes its entries integers."""

    def row(self, i: int) -> tuple[list[int], list[int]]:
        """Return places and values of the entries of row i, computed at the first call."""
        if i not in self._rows:
            require_time(self.interrupted)
            places, values = self.coordinates(i)
            if self.bias:
                places, values = [*places, self.d], [*values, 1 << self.bits]
            self._rows[i] = places, [int(self.y[i]) * value for value in values]
        return self._rows[i]

    def separator(self, direction: list[int]) -> tuple[dict[Hashable, Fraction], Fraction]:
        """Return the weights of the coordinates of phi, by name, and the intercept that a direction stands for."""
        weights = {}
        for k in range(self.d):
            name, exponent = self.column(k)
            weights[name] = direction[k] * Fraction(2) ** exponent
        return weights, Fraction(direction[-1] << self.bits if self.bias else 0)

    def block(self, rows: list[int]) -> list[list[int]]:
        """Return the transpose of these rows, without the coordinates in which all of them are zero."""
        places = sorted({place for i in rows for place in self.row(i)[0]})
        at = {place: line for line, place in enumerate(places)}
        found = [[0] * len(rows) for _ in places]
        for column, i in enumerate(rows):
            for place, value in zip(*self.row(i), strict=True):
                found[at[place]][column] = value
        return found

    def combine(self, rows: list[int], weights: list[int]) -> list[int]:
        """Return the sum of these rows times their weights: `width` integers."""
        total = [0] * self.width
        for i, weight in zip(rows, weights, strict=True):
            if weight:
                for place, value in zip(*self.row(i), strict=True):
                    total[place] += weight * value
        return total

    def product(self, i: int, direction: list[int]) -> int:
        """Return the inner product of row i with a vector of integers."""
        return sum(value * direction[place] for place, value in zip(*self.row(i), strict=True))


class IntegerRows(ExactRows):
    """Rows y_i (x_i, 1) as integers: the float64 numbers times one power of two for each column.

    The largest entries of all columns then have about the same size. Null vectors do not change.

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
    exponents : ndarray of shape (d,)
        Integer entries are those of X times 2^exponents.
    """

    inexact = 0.0

    def __init__(
        self, X: Any, y: np.ndarray, bias: bool, interrupted: Callable[[], bool] = lambda: False
    ) -> None:
        self._X, (n, d), self.interrupted = X, X.shape, interrupted
        top, least = np.full(d, -(2**62)), np.full(d, 2**62)
        step = max(NUMBERS_PER_CHECK * n // max(X.nnz if sp.issparse(X) else X.size, 1), 1)
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
        super().__init__(n, d, y, bias, int((top - least)[some].max(initial=1)))
        self.exponents = np.where(some, self.bits - top, 0)

    @cached_property
    def scaled(self) -> Any:
        """The columns of X in float64, each divided by a power of two: entries are at most 1 in absolute value."""
        powers = self.exponents - self.bits
        if not sp.issparse(self._X):
            return np.ldexp(np.asarray(self._X, dtype=float), powers)
        scaled = self._X.astype(float)
        scaled.data = np.ldexp(scaled.data, powers[scaled.indices])
        return scaled

    def coordinates(self, i: int) -> tuple[list[int], list[int]]:
        """Return places and values of the integer entries of x_i."""
        places, values = row_entries(self._X, i)
        whole = []
        for value, exponent in zip(values, self.exponents[places].tolist(), strict=True):
            above, below = value.as_integer_ratio()
            shift = exponent - below.bit_length() + 1
            whole.append(above << shift if shift >= 0 else above >> -shift)
        return places, whole

    def column(self, k: int) -> tuple[Hashable, int]:
        return k, int(self.exponents[k])


def row_entries(X: Any, i: int) -> tuple[list[int], list[float]]:
    """Return the columns and the values of the non-zero (where sparse, stored) entries of row i."""
    if sp.issparse(X):
        part = slice(X.indptr[i], X.indptr[i + 1])
        return X.indices[part].tolist(), X.data[part].tolist()
    at = np.flatnonzero(X[i]).tolist()
    return at, X[i][at].tolist()
