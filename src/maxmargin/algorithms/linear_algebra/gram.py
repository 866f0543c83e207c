"""Gram matrices of dense and sparse rows, with a stop check between their parts."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import pairwise
from typing import Any

import numpy as np

from ...engine.jit import compiled
from ...numerics.stop_check import require_time

# Multiplications of a product of matrices between two stop checks: some hundredths of a second.
MULTIPLICATIONS_PER_CHECK = 2e8
# Numbers that are read or written in order between two stop checks: about a tenth of a second.
NUMBERS_PER_CHECK = 1e7
# Products that are added to scattered entries between two stop checks: some hundredths of a second.
SCATTERED_PER_CHECK = 1e6


def gram(B: np.ndarray, interrupted: Callable[[], bool]) -> np.ndarray:
    """Return B'B, of shape (k, k), for B of shape (n, k); the stop check is called between blocks of rows.

    Raises
    ------
    OutOfTime
        If the stop check is true.
    """
    step = max(int(MULTIPLICATIONS_PER_CHECK / max(B.shape[1], 1) ** 2), 1)
    if len(B) <= step:
        return B.T @ B
    products = np.zeros((B.shape[1], B.shape[1]))
    for first in range(0, len(B), step):
        require_time(interrupted)
        products += B[first : first + step].T @ B[first : first + step]
    return products


def sparse_gram(X: Any, weights: np.ndarray, rows: np.ndarray, interrupted: Callable[[], bool]) -> np.ndarray:
    """Return sum c_k (x_k, 1)(x_k, 1)' over these rows of a CSR matrix.

    Parameters
    ----------
    X : CSR matrix of shape (n, d)
        In canonical format: sorted entries, each once.
    weights : ndarray of shape (k,)
        The c_k.
    rows : ndarray of int of shape (k,)
    interrupted : callable
        Whether to stop.

    Returns
    -------
    ndarray of shape (d + 1, d + 1)

    Raises
    ------
    OutOfTime
        If the stop check is true.
    """
    found = np.empty((X.shape[1] + 1, X.shape[1] + 1))
    for part in parts_of(found, interrupted):  # memory that is used for the first time takes long
        found[part] = 0.0
    indptr, indices = unsigned(X.indptr), unsigned(X.indices)
    # parts of about SCATTERED_PER_CHECK products of entries, or of one row
    products = np.cumsum((1.0 + np.diff(X.indptr)[rows]) ** 2)
    ends = np.searchsorted(products, np.arange(0.0, products[-1], SCATTERED_PER_CHECK)) if rows.size else []
    for first, last in pairwise([*np.unique(ends), rows.size]):
        require_time(interrupted)
        some = slice(first, last)
        add_sparse_products(indptr, indices, X.data, unsigned(rows[some]), weights[some], found)
    for part in parts_of(found, interrupted):  # the upper triangle
        found[part, part] += np.tril(found[part, part], -1).T
        found[part, part.stop :] = found[part.stop :, part].T
    require_time(interrupted)
    return found


def parts_of(matrix: np.ndarray, interrupted: Callable[[], bool]) -> Iterator[slice]:
    """Yield the slices of the rows of parts of a matrix, until the stop check, called before each, is true."""
    step = max(int(NUMBERS_PER_CHECK / max(matrix.shape[1], 1)), 1)
    for first in range(0, len(matrix), step):
        if interrupted():
            return
        yield slice(first, min(first + step, len(matrix)))


@compiled()
def add_sparse_products(indptr, indices, data, rows, c, matrix):
    """Add sum c_k (x_k, 1)(x_k, 1)' over these rows of a CSR matrix, with sorted indices, to the lower triangle."""
    last = matrix.shape[0] - 1
    for k in range(rows.size):
        i, weight = rows[k], c[k]
        begin, end = np.uint64(indptr[i]), np.uint64(indptr[i + 1])
        for j in range(begin, end):
            place, value = indices[j], weight * data[j]
            for other in range(begin, j + np.uint64(1)):
                matrix[place, indices[other]] += value * data[other]
            matrix[last, place] += value
        matrix[last, last] += weight


def unsigned(a: np.ndarray) -> np.ndarray:
    """Return a view of indices as unsigned integers: compiled loops then do not test for negative indices."""
    return a.view(f"u{a.dtype.itemsize}")
