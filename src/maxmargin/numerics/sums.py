"""Sums over dense and CSR data of any float type in two arithmetics, with bounds of their rounding errors.

`Plain` and `Compensated` have the same methods, so that a bound is one formula for both. `Plain` sums are as fast as
BLAS. `Compensated` sums take ten to thirty times as long, and are as accurate as if they had been carried in a multiple
of the working precision: products are split without error, and high-order parts, whose sums are exact in any order, are
extracted (Rump, Ogita, Oishi, "Accurate floating-point summation", 2008).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from itertools import chain
from typing import Any

import numpy as np
import scipy.sparse as sp

from .norms import MIN_SQUARES
from .norms import norm as any_norm
from .norms import row_norms as any_row_norms
from .stop_check import require_time

# eps = 2^-52, and the smallest positive float64 number, which bounds the error of an operation that underflows.
EPS, SMALLEST_FLOAT = float(np.finfo(float).eps), float(np.finfo(float).smallest_subnormal)
# Absolute value above which numbers are split in smaller units, since the factor 2^27 of the splitting may overflow: a
# smaller limit would cost a multiplication for numbers that do not need it.
LARGE = 1e290
# Entries that are converted, or taken into compensated sums, at a time: temporaries of 2 MiB stay in the second cache.
# A larger block is read from memory several times, a smaller one takes more calls of NumPy.
_BLOCK = 1 << 18
# The same for the sum of a vector by extraction (`_exact_sums`), whose three temporaries of 128 KiB stay in that cache:
# 1,000,000 numbers take 5 ms, and 55 ms in one block.
_VECTOR_BLOCK = 1 << 14
# Terms of a plain sum before it is added to other sums: the error bound of a long sum grows with this number and with
# the number of parts, not with the length. A smaller one would take more calls of BLAS, a larger one loses digits.
TERMS = 1 << 10
# Columns, and entries in main memory, from which NumPy multiplies rows one by one faster than BLAS does: 0.4 to 0.8
# times the time, as measured. With fewer of either, BLAS is up to five times as fast. From so many columns on, rows are
# squared one by one: 0.3 times the time at 2,000 columns, 1.6 times at 3.
LONG_ROWS, IN_MEMORY = 40, 3_000_000


def row_blocks(X: Any) -> Iterator[tuple[slice, Any]]:
    """Yield rows of a dense or CSR matrix in float64, a block at a time, without a copy of the whole."""
    n, d = X.shape
    if X.dtype == np.float64:
        yield slice(0, n), X
        return
    step = max(1, n * _BLOCK // max(X.nnz if sp.issparse(X) else n * d, 1))
    for start in range(0, n, step):
        rows = slice(start, min(start + step, n))
        yield rows, X[rows].astype(np.float64)


def row_squares(X: Any) -> np.ndarray:
    """Return |x_i|^2 of every row of a dense or CSR matrix, in float64: shape (n,)."""
    out = np.zeros(X.shape[0])
    with np.errstate(over="ignore"):
        for rows, block in row_blocks(X):
            if not sp.issparse(block):
                if block.shape[1] < LONG_ROWS:
                    np.einsum("ij,ij->i", block, block, out=out[rows])
                else:
                    np.vecdot(block, block, out=out[rows])
                continue
            starts = block.indptr[:-1]
            filled = starts < block.indptr[1:]
            out[rows][filled] = np.add.reduceat(block.data * block.data, starts[filled])
    return out


class Plain:
    """Ordinary float64 sums; long ones of dense rows in parts."""

    @staticmethod
    def error(result: Any, size: Any, terms: float) -> Any:
        """Return a bound of the error of a sum of `terms` terms; `size` is the sum of their absolute values."""
        return (terms + 4.0) * EPS * size

    @staticmethod
    def terms(X: Any, terms: int, axis: int) -> int:
        """Return the largest number of successive additions in a sum of so many terms, for the bound `error`.

        `terms` is the number of non-zero terms of a sum over rows (axis 0) or columns (axis 1) of X.
        """
        if sp.issparse(X) or X.dtype != np.float64:
            return terms
        return successive_additions(terms, X.shape[axis])

    @staticmethod
    def scores(X: Any, w: np.ndarray, b: float = 0.0) -> np.ndarray:
        """Return X w + b: shape (n,)."""
        out = np.empty(X.shape[0])
        for rows, block in row_blocks(X):
            if sp.issparse(block):
                out[rows] = block @ w
                continue
            one_by_one = w.size >= LONG_ROWS and block.size >= IN_MEMORY and block.flags.c_contiguous
            multiply = np.vecdot if one_by_one else np.matmul
            multiply(block[:, :TERMS], w[:TERMS], out=out[rows])
            for start in range(TERMS, w.size, TERMS):
                out[rows] += block[:, start : start + TERMS] @ w[start : start + TERMS]
        out += b
        return out

    @staticmethod
    def combine(X: Any, c: np.ndarray) -> np.ndarray:
        """Return X^T c: shape (d,)."""
        out = np.zeros(X.shape[1])
        for rows, block in row_blocks(X):
            if sp.issparse(block):
                out += block.T @ c[rows]
                continue
            factors, whole = c[rows], len(block) - len(block) % TERMS
            if whole:  # parts of TERMS rows are a stack of matrices, which NumPy multiplies in one call
                stack = block[:whole].reshape(whole // TERMS, TERMS, out.size)
                out += (factors[:whole].reshape(-1, 1, TERMS) @ stack).sum(axis=(0, 1))
            out += factors[whole:] @ block[whole:]
        return out

    @staticmethod
    def total(v: np.ndarray) -> float:
        """Return the sum of the entries of v: the sum of the sums of its parts."""
        whole = v.size - v.size % TERMS
        sums = v[:whole].reshape(-1, TERMS).sum(axis=1)
        return float(sums.sum() + v[whole:].sum())

    @staticmethod
    def square(v: np.ndarray, p: float = 2.0) -> float:
        """Return |v|_p^2."""
        square = float(v @ v) if p == 2.0 else 0.0
        if MIN_SQUARES < square < np.inf:
            return square
        size = any_norm(v, p)
        return size * size

    # |v|_p, also where powers would over- or underflow
    norm = staticmethod(any_norm)

    @staticmethod
    def row_norms(X: Any, squares: np.ndarray | None = None) -> np.ndarray:
        """Return |x_i| of every row, also where squares over- or underflow; `squares` are |x_i|^2 if known."""
        squares = row_squares(X) if squares is None else squares
        norms, ordinary = np.sqrt(squares), (squares > MIN_SQUARES) & (squares < np.inf)
        if not ordinary.all():
            norms[~ordinary] = any_row_norms(X[~ordinary], 2.0)
        return norms


def exact_dot(a: np.ndarray, b: np.ndarray) -> float:
    """Return sum_k a_k b_k, rounded once: zero only if the exact sum is zero, or if errors of products underflow."""
    return Compensated.total(np.concatenate(_two_product(a, b)))


def successive_additions(terms: int, size: int) -> int:
    """Return the largest number of successive additions in a sum in parts of `size` terms, `terms` of them not 0."""
    return min(terms, TERMS + -(-size // TERMS))


class Compensated:
    """Sums as if carried in a multiple of the working precision."""

    # Seconds of a certificate for each stored entry, as measured, to judge whether a deadline leaves time for it: a
    # larger figure would omit sums that would have ended in time, a smaller one starts sums that are cut short.
    SECONDS = 12e-8

    @staticmethod
    def error(result: Any, size: Any, terms: float) -> Any:
        """Return a bound of the error of a sum of `terms` terms; `size` is the sum of their absolute values.

        Rounding errors of the products, and remainders of two extractions, are added up in ordinary arithmetic: they
        are of order eps^2 and eps^3 of the largest of the sums that are taken together.
        """
        return 2.0 * EPS * np.abs(result) + 8.0 * (terms + 8.0) * EPS * EPS * np.max(size, initial=0.0)

    @staticmethod
    def terms(X: Any, terms: int, axis: int) -> int:
        """Return the number of terms of a sum, as it is used in `error`."""
        return terms

    @staticmethod
    def scores(X: Any, w: np.ndarray, b: float = 0.0) -> np.ndarray:
        """Return X w + b, in which w.x and b may cancel: shape (n,)."""
        out = np.empty(X.shape[0])
        for rows, block in _small_blocks(X):
            if sp.issparse(block):
                lines, columns, values = _entries(block)
                terms = _exact_terms(values, w[columns], _by_group(lines, block.shape[0]))
            else:
                terms = _exact_terms(np.asarray(block, float), w, lambda products: products.sum(axis=1))
            out[rows] = _rounded_once(np.full(block.shape[0], b), *terms)
        return out

    @staticmethod
    def combine(X: Any, c: np.ndarray) -> np.ndarray:
        """Return X^T c: shape (d,)."""
        parts: list[np.ndarray] = []
        for rows, block in _small_blocks(X):
            if sp.issparse(block):
                lines, columns, values = _entries(block)
                parts += _exact_terms(values, c[rows][lines], _by_group(columns, X.shape[1]))
            else:
                factors = c[rows][:, None]
                parts += _exact_terms(
                    np.asarray(block, float), factors, lambda products: products.sum(axis=0)
                )
        return _rounded_once(np.zeros(X.shape[1]), *parts)

    @staticmethod
    def total(v: np.ndarray) -> float:
        """Return the sum of the entries of v, rounded once; infinite or NaN where plain sums are."""
        try:
            blocks = (v[first : first + _VECTOR_BLOCK] for first in range(0, v.size, _VECTOR_BLOCK))
            return math.fsum(v.tolist() if v.size <= TERMS else chain.from_iterable(map(_exact_sums, blocks)))
        except (OverflowError, ValueError):  # a partial sum overflows, or infinite terms cancel
            return float(np.sum(v))

    @staticmethod
    def square(v: np.ndarray) -> float:
        """Return |v|_2^2."""
        square, scale = _scaled_square(v)
        return square * scale * scale

    @staticmethod
    def norm(v: np.ndarray, p: float = 2.0) -> float:
        """Return |v|_p, also where powers would over- or underflow; compensated at p = 2 only."""
        if p != 2.0:
            return any_norm(v, p)
        square, scale = _scaled_square(v)
        return math.sqrt(square) * scale


Arithmetic = type[Plain] | type[Compensated]


def powers_error(p: float, terms: int) -> float:
    """Return a bound of the relative error of a p-norm that its powers add to the error of the sum.

    Each power is off by a few units of the last digit, and by p times the rounding of its base; the root divides
    relative errors by p, and so it does with the rounding of the sum of `terms` powers.
    """
    return 0.0 if p == 2.0 or np.isinf(p) else (terms / p + 16.0) * EPS


def _scaled_square(v: np.ndarray) -> tuple[float, float]:
    """Return s and a power of two t with |v|_2^2 = s t^2; t is near the largest entry, and division rounds nothing."""
    top = float(np.abs(v).max(initial=0.0))
    if top == 0.0 or not np.isfinite(top):
        return top, 1.0
    scale = float(2.0 ** np.floor(np.log2(top)))  # the squares of v may overflow where |v| does not
    v = v / scale
    return float(_rounded_once(*_exact_terms(v, v, np.sum))), scale


_interrupted: ContextVar[Callable[[], bool]] = ContextVar("interrupted", default=lambda: False)


@contextmanager
def cut_short_if(interrupted: Callable[[], bool]) -> Iterator[None]:
    """Make compensated sums over rows end with OutOfTime once `interrupted` returns True.

    They take many times as long as any other pass over the data. It is called before every block of rows.
    """
    before = _interrupted.set(interrupted)
    try:
        yield
    finally:
        _interrupted.reset(before)


def _small_blocks(X: Any) -> Iterator[tuple[slice, Any]]:
    """Yield rows a block at a time; raise OutOfTime where the sums over them are cut short."""
    n, d = X.shape
    interrupted = _interrupted.get()
    # dense rows need a dozen temporary arrays as large as a block: an eighth of the entries
    step = n * _BLOCK // max(X.nnz, 1) if sp.issparse(X) else _BLOCK // 8 // max(d, 1)
    step = max(1, min(step, n))
    for start in range(0, n, step):
        require_time(interrupted)
        rows = slice(start, min(start + step, n))
        yield rows, X[rows]


def _entries(block: Any) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return row, column and value of every stored entry."""
    lines = np.repeat(np.arange(block.shape[0]), np.diff(block.indptr))
    return lines, np.asarray(block.indices), np.asarray(block.data, dtype=float)


def _by_group(groups: np.ndarray, size: int) -> Callable[[np.ndarray], np.ndarray]:
    """Return a function of v: the sum of v over each of `size` groups, v_k being in group groups[k]."""
    return lambda v: np.bincount(groups, weights=v, minlength=size)


def _exact_terms(a: np.ndarray, b: np.ndarray, add: Callable[[np.ndarray], Any]) -> tuple[Any, Any, Any]:
    """Return three terms that add up to `add(a b)`: two sums of high-order parts, which are exact in any order.

    The third is the ordinary sum of the remainders of the products and of their rounding errors.
    """
    rest, error = _two_product(a, b)
    sums, top, bits = [], np.abs(rest).max(initial=0.0), np.ceil(np.log2(rest.size + 2.0))
    ordinary = top < LARGE  # parts of larger numbers may overflow: their rest counts as 0 then
    for _ in range(2):
        part = rest
        if 0.0 < top < np.inf:
            # part: multiples of ulp(sigma), fewer than 2^53 of them in any partial sum; `top` bounds the new rest, at
            # most half of ulp(sigma)
            sigma = 2.0 ** min(np.ceil(np.log2(top)) + bits, 1023.0)
            part, top = sigma + rest, 2.0**-53 * sigma
            part -= sigma
        sums.append(add(part))
        rest = rest - part if ordinary or np.isfinite(part).all() else np.zeros_like(rest)
    rest += error
    return sums[0], sums[1], add(rest)


def _exact_sums(v: np.ndarray) -> list[float]:
    """Return a few numbers that have exactly the sum of v: sums of high-order parts, until no remainder is left."""
    top, bits, sums = max(v.max(), -v.min()), np.ceil(np.log2(v.size + 2.0)), []
    if not top < LARGE:  # parts may overflow
        return v.tolist()
    while top > 0.0:
        sigma = 2.0 ** (np.ceil(np.log2(top)) + bits)  # as in `_exact_terms`
        part = sigma + v
        part -= sigma
        sums.append(float(part.sum()))
        v = v - part
        top = max(v.max(), -v.min())
    return sums


def _rounded_once(*terms: Any) -> Any:
    """Return the sum of the terms, which may cancel: rounding errors of the additions are kept (Knuth's two-sum)."""
    total, lost = terms[0], 0.0
    for term in terms[1:]:
        new = total + term
        back = new - total
        lost = lost + ((total - (new - back)) + (term - back))
        total = new
    return total + lost


def _two_product(a: np.ndarray, b: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return (product, error) with a b = product + error, exactly where nothing over- or underflows (Dekker)."""
    product = a * b
    a1, b1 = _upper_half(a), _upper_half(b)
    a2, b2 = a - a1, b - b1
    error = a1 * b1 - product
    for left, right in ((a1, b2), (a2, b1), (a2, b2)):  # added in place: twice as fast as with new arrays
        error += left * right
    return product, error


def _upper_half(a: np.ndarray) -> np.ndarray:
    """Return a rounded to its upper 26 bits (Veltkamp's splitting)."""
    if LARGE < np.abs(a).max(initial=0.0) < np.inf:
        return _upper_half(a * 2.0**-30) * 2.0**30
    t = 134217729.0 * a  # 2^27 + 1
    return t - (t - a)
