"""Trivial infeasibility certificates (one or two rows), and the ball inside the hull of a certificate's rows."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
import scipy.sparse as sp

from ..data.duplicates import merge
from ..numerics.norms import norm, row_norms
from ..problem.problem import Problem

# Rows of a certificate whose ball is computed: the inverse takes O(k^3), some hundredths of a second at 400.
MAX_BALL_ROWS = 400
# Relative error of the inverse above which no ball is given: the radius allows for it with a factor of 1.02, an upper
# bound of 1 / (1 - 0.01). A looser limit would need a larger factor, a tighter one gives fewer balls.
MAX_INVERSE_ERROR = 0.01


def trivial_certificate(X: Any, y: np.ndarray, bias: bool) -> tuple[dict[int, Fraction] | None, np.ndarray]:
    """Return weights of one or two rows that prove by themselves that there is no separator; and the distinct rows.

    Parameters
    ----------
    X : ndarray or CSR matrix of shape (n, d), no zeros stored
    y : ndarray of shape (n,), entries -1.0 and 1.0
    bias : bool
        With a bias, equal rows of both classes are a proof; without one, rows y_i x_i that point in opposite
        directions, or a row of zeros.

    Returns
    -------
    weights : dict of row to Fraction, or None
        Of sum one, exact.
    distinct : ndarray of int
        The first of each set of equal rows.
    """
    groups, distinct = _equal_rows(X)
    if bias:
        pairs = _of_both_signs(groups, y)
        return (dict.fromkeys(pairs[0], Fraction(1, 2)) if pairs else None), distinct
    firsts = _first_entries(X)
    zeros = np.flatnonzero(firsts == 0.0)
    if zeros.size:
        return {int(zeros[0]): Fraction(1)}, distinct
    # Parallel rows have equal quotients by their first entries, also after rounding; the few other rows with equal
    # rounded quotients are sorted out in rational numbers.
    groups, _ = _equal_rows(_divided(X, firsts))
    for pair in _of_both_signs(groups, y * np.sign(firsts)):
        one, two = (Fraction(float(firsts[i])) for i in pair)
        if _parallel(X, pair, one, two):
            one, two = abs(one), abs(two)  # two y_i x_i = -one y_j x_j
            weights = two / (one + two), one / (one + two)
            return dict(zip(pair, weights, strict=True)), distinct
    return None, distinct


def _equal_rows(X: Any) -> tuple[np.ndarray, np.ndarray]:
    """Return the set of equal rows that each row belongs to, and the first row of each set."""
    ones = np.ones(X.shape[0])
    groups = merge(X, ones, ones).groups
    return groups, np.sort(np.unique(groups, return_index=True)[1])


def _of_both_signs(groups: np.ndarray, signs: np.ndarray) -> list[tuple[int, int]]:
    """Return the first row of either sign of each set that has both, in the order of the later of the two rows."""
    size = int(groups.max()) + 1
    found = []
    for sign in (1.0, -1.0):
        first = np.full(size, signs.size)
        rows = np.flatnonzero(signs == sign)
        np.minimum.at(first, groups[rows], rows)
        found.append(first)
    both = np.flatnonzero(np.maximum(*found) < signs.size)
    pairs = [(int(min(a, b)), int(max(a, b))) for a, b in zip(found[0][both], found[1][both], strict=True)]
    return sorted(pairs, key=lambda pair: pair[::-1])


def _first_entries(X: Any) -> np.ndarray:
    """Return the first entry of each row that is not zero; 0.0 where there is none."""
    if sp.issparse(X):
        used = np.diff(X.indptr) > 0
        firsts = np.zeros(X.shape[0])
        firsts[used] = X.data[X.indptr[:-1][used]]
        return firsts
    return np.asarray(X[np.arange(X.shape[0]), np.argmax(X != 0.0, axis=1)], dtype=float)


def _divided(X: Any, by: np.ndarray) -> Any:
    """Return the rows, each divided by its number."""
    with np.errstate(over="ignore"):
        if not sp.issparse(X):
            return X / by[:, None]
        data = X.data / np.repeat(by, np.diff(X.indptr))
        return sp.csr_matrix((data, X.indices, X.indptr), shape=X.shape)


def _parallel(X: Any, pair: tuple[int, int], one: Fraction, two: Fraction) -> bool:
    """Return whether the first row times `two` is the second times `one`, exactly."""
    first, second = (X[i].toarray().ravel() if sp.issparse(X) else X[i] for i in pair)
    return all(
        Fraction(a) * two == Fraction(b) * one
        for a, b in zip(first.tolist(), second.tolist(), strict=True)
        if a or b
    )


def inner_radius(
    X: Any, y: np.ndarray, support: np.ndarray, weights: tuple[Fraction, ...], problem: Problem
) -> float:
    """Return the radius of a ball around the origin inside the hull of a certificate's rows; 0.0 if none is found.

    For z in the ball, some lambda in the simplex, balanced where there is a bias, has sum lambda_k y_k x_k = z. Hence
    for all w and b, some row has a margin of at most -radius |w|_q. With the weights alpha of the origin,
    lambda = alpha + G z, G being the first columns of the inverse of the matrix of the rows, their signs and ones; it
    stays positive for |z|_p < alpha_k / |G_k|_q. The radius is rounded downwards.

    Parameters
    ----------
    X : ndarray or CSR matrix of shape (n, d)
    y : ndarray of shape (n,), entries -1.0 and 1.0
    support : ndarray of int
        The rows; a ball is found where they are one more than there are coordinates, and not too many.
    weights : tuple of Fraction
    problem : Problem
        Its p is the norm of the radius.

    Returns
    -------
    radius : float
    """
    k, d = support.size, X.shape[1]
    if k != d + 1 + int(problem.free) or k > MAX_BALL_ROWS:
        return 0.0
    rows = X[support].toarray() if sp.issparse(X) else np.asarray(X[support])
    rows = rows.astype(float) * y[support, None]
    size = np.abs(rows).max(axis=0)
    if not np.isfinite(1.0 / size).all():
        return 0.0
    unit = 2.0 ** np.round(np.log2(size))
    extra = [y[support], np.ones(k)] if problem.free else [np.ones(k)]
    M = np.column_stack([rows / unit, *extra]).T
    try:
        inverse = np.linalg.inv(M)
    except np.linalg.LinAlgError:
        return 0.0
    # M^-1 = (I - S)^-1 inverse with S = I - inverse M, so that |M^-1 - inverse| <= |S| / (1 - |S|) max |inverse|
    rounding = (k + 4.0) * np.finfo(float).eps * float((np.abs(inverse) @ np.abs(M)).sum(axis=1).max())
    off = float(np.abs(np.eye(k) - inverse @ M).sum(axis=1).max()) + rounding
    if not off < MAX_INVERSE_ERROR:
        return 0.0
    G = inverse[:, :d] / unit
    lengths = row_norms(G, problem.q) + 1.02 * off * norm(np.abs(G).max(axis=0), problem.q)
    radius = min(float(weight) / length for weight, length in zip(weights, lengths, strict=True))
    return radius * (1.0 - 1e-12 * (d + 4.0))
