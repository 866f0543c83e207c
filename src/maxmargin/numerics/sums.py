"""Sums over dense and CSR data of any float type, with bounds of their rounding errors, and norms of every scale."""

from __future__ import annotations

import math
from collections.abc import Iterator
from itertools import pairwise
from typing import Any

import numpy as np
import scipy.sparse as sp

EPS = float(np.finfo(float).eps)  # 2^-52
# More than the errors of 1e20 operations that underflow, each at most 5e-324
TINY = 1e-300
# Smaller sums of squares may have lost digits: terms of 1e-16 of the sum are subnormal.
MIN_SQUARES = 1e-290
# Entries that are converted at a time: temporaries of 2 MiB stay in the second cache.
# A larger block is read from memory several times, a smaller one takes more calls of NumPy.
_BLOCK = 1 << 18
# Columns, and entries in main memory, from which NumPy multiplies rows one by one faster than BLAS does: 0.4 to 0.8
# times the time, as measured. With fewer of either, BLAS is up to five times as fast. From so many columns on, rows are
# squared one by one: 0.3 times the time at 2,000 columns, 1.6 times at 3.
LONG_ROWS, IN_MEMORY = 40, 3_000_000


def row_blocks(X: Any, in_cache: bool = False) -> Iterator[tuple[slice, Any]]:
    """Yield rows of a dense or CSR matrix in float64, a block at a time, without a copy of the whole.

    Rows in float64 are one block, unless blocks of dense rows that stay in the cache are asked for.
    """
    n, d = X.shape
    if X.dtype == np.float64 and (sp.issparse(X) or not in_cache or n * d <= _BLOCK):
        yield slice(0, n), X
        return
    step = max(1, n * _BLOCK // max(X.nnz if sp.issparse(X) else n * d, 1))
    for start in range(0, max(n, 1), step):
        rows = slice(start, min(start + step, n))
        yield rows, X[rows].astype(np.float64, copy=False)


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
    """Ordinary float64 sums."""

    @staticmethod
    def error(size: Any, terms: float) -> Any:
        """Return a bound of the error of a sum of `terms` terms; `size` is the sum of their absolute values.

        A sum of k products in any order is off by at most k u / (1 - k u) times its size, u = eps / 2: 0.51 k eps is
        more for every number of rows. 4 eps has room for eight more roundings, those of the caller.
        """
        return (0.51 * terms + 4.0) * EPS * size + TINY

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
            multiply(block, w, out=out[rows])
        out += b
        return out

    @staticmethod
    def combine(X: Any, c: np.ndarray) -> np.ndarray:
        """Return X^T c: shape (d,)."""
        out = np.zeros(X.shape[1])
        for rows, block in row_blocks(X):
            out += block.T @ c[rows] if sp.issparse(block) else c[rows] @ block
        return out


def exact_total(v: np.ndarray) -> float:
    """Return the sum of the entries of v, rounded once; infinite or NaN where plain sums are."""
    try:
        return math.fsum(v[v != 0.0].tolist())
    except (OverflowError, ValueError):  # a partial sum overflows, or infinite terms cancel
        return float(np.sum(v))


def exact_products(M: Any, c: np.ndarray, b: float = 0.0) -> np.ndarray:
    """Return M c + b of a dense or CSR matrix, every entry rounded once: shape (n,).

    Products are split into two float64 numbers without error and added by `math.fsum`, 0.15 us for each entry.
    """
    out, c = np.empty(M.shape[0]), np.asarray(c, float)
    step = max(1, _BLOCK // max(M.shape[1], 1))
    for start in range(0, M.shape[0], step):
        block = M[start : start + step]
        if sp.issparse(block):
            high, low = _two_products(block.data.astype(float), c[block.indices])
            parts = [slice(*ends) for ends in pairwise(block.indptr)]
        else:
            high, low = _two_products(np.asarray(block, float), c)
            parts = range(len(high))
        try:
            out[start : start + step] = [math.fsum([*high[k].tolist(), *low[k].tolist(), b]) for k in parts]
        except (OverflowError, ValueError):  # a partial sum overflows: nothing is known of this block
            out[start : start + step] = math.nan
    return out


def _two_products(a: np.ndarray, c: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return (h, l) with h + l = a c exactly, but for underflow (Dekker, 1971)."""

    def halves(x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        t = (2.0**27 + 1.0) * x
        high = t - (t - x)
        return high, x - high

    h, (a1, a2), (c1, c2) = a * c, halves(a), halves(c)
    return h, a2 * c2 - (((h - a1 * c1) - a2 * c1) - a1 * c2)


# norms


def norm(x: np.ndarray, r: float = 2.0) -> float:
    """Return |x|_r.

    Parameters
    ----------
    x : ndarray of shape (d,)
    r : float in [1, inf], default=2
    """
    if r == 2.0:
        with np.errstate(over="ignore"):
            square = float(x.dot(x))
        if MIN_SQUARES < square < np.inf:
            return math.sqrt(square)
    top = float(np.abs(x).max(initial=0.0))
    if np.isinf(r) or not (np.isfinite(top) and top > 0.0):
        return top
    if r == 1.0:
        return float(np.sum(np.abs(x) / top)) * top
    return float(np.sum((np.abs(x) / top) ** r)) ** (1.0 / r) * top


@np.errstate(over="ignore", under="ignore")
def row_norms(X: Any, r: float = 2.0, squares: np.ndarray | None = None) -> np.ndarray:
    """Return |x_i|_r of every row of a dense or CSR matrix; inf where it is beyond float64 numbers.

    Parameters
    ----------
    X : ndarray or CSR matrix of shape (n, d)
    r : float in [1, inf], default=2
    squares : ndarray of shape (n,), default=None
        |x_i|_2^2 where these are known.

    Returns
    -------
    norms : ndarray of shape (n,)
    """
    if r == 2.0:
        squares = row_squares(X) if squares is None else squares
        norms, ordinary = np.sqrt(squares), (squares > MIN_SQUARES) & (squares < np.inf)
        if not ordinary.all():
            norms[~ordinary] = _scaled_norms(X[~ordinary], r)
        return norms
    step = max(1, _BLOCK // max(X.shape[1], 1))
    if sp.issparse(X) or step >= len(X):
        return _scaled_norms(X, r)
    return np.concatenate([_scaled_norms(X[i : i + step], r) for i in range(0, len(X), step)])


def _scaled_norms(X: Any, r: float) -> np.ndarray:
    """Return |x_i|_r of every row, whose entries are divided by the largest of them: no power over- or underflows."""
    n, sparse = X.shape[0], sp.issparse(X)
    size = np.abs(np.asarray(X.data if sparse else X, dtype=float))
    lines = np.repeat(np.arange(n), np.diff(X.indptr)) if sparse else np.arange(n)[:, None]  # of the entries
    if sparse:
        top = np.zeros(n)
        np.maximum.at(top, lines, size)
    else:
        top = size.max(axis=1, initial=0.0)
    if np.isinf(r):
        return top
    safe = np.where((top > 0.0) & np.isfinite(top), top, 1.0)
    powers = (size / safe[lines]) ** r
    sums = np.bincount(lines, weights=powers, minlength=n) if sparse else powers.sum(axis=1)
    return sums ** (1.0 / r) * safe
