"""Sums of weighted products of rows and Cholesky factors, for matrices so small that calls of LAPACK take longer."""

from __future__ import annotations

import numpy as np

from .jit import compiled

# Ridges added to the diagonal of ones, tried in this order until the Cholesky factor exists. A larger ridge changes the
# solution more, so that iterative refinement converges more slowly: with steps of 100 in place of 10 the polynomials of
# degree 4 of three columns of breast cancer (C = 1e3) are not certified. Beyond the last one too few digits are left.
RIDGES = 0.0, 1e-15, 1e-14, 1e-13, 1e-12, 1e-11, 1e-10


@compiled()
def add_row_products(sign, rows, weights, places, columns, matrix):
    """Add sign * sum_i weights_i b_i b_i' over the rows at `places` to the lower triangle and diagonal of a matrix.

    Parameters
    ----------
    sign : float
        1 or -1.
    rows : ndarray of shape (n, size)
    weights : ndarray of shape (n,)
    places : ndarray of int
    columns : ndarray of shape (size, block)
        Workspace: sqrt(weights_i) b_i of a block of rows, transposed. Each product of two pairs of its rows gives four
        entries of the sum.
    matrix : ndarray of shape (size, size)
        Single entries above the diagonal, in the blocks of 2 x 2 on it, are changed as well.
    """
    size, block = columns.shape
    for first in range(0, places.size, block):
        count = min(block, places.size - first)
        for k in range(count):
            row, root = rows[places[first + k]], np.sqrt(weights[places[first + k]])
            for j in range(size):
                columns[j, k] = root * row[j]
        for i in range(0, size, 2):
            h = min(i + 1, size - 1)  # h = i for the last row of an odd number
            for j in range(0, i + 1, 2):
                k = min(j + 1, size - 1)
                p, q, r, s = four_products(columns[i], columns[h], columns[j], columns[k], count)
                p, q = matrix[i, j] + sign * p, matrix[i, k] + sign * q
                r, s = matrix[h, j] + sign * r, matrix[h, k] + sign * s
                matrix[i, j], matrix[i, k], matrix[h, j], matrix[h, k] = p, q, r, s


@compiled(fastmath={"reassoc", "contract"})
def four_products(a, b, c, d, count):
    """Return the inner products a.c, a.d, b.c and b.d of the first `count` entries."""
    p = q = r = s = 0.0
    for k in range(count):
        p += a[k] * c[k]
        q += a[k] * d[k]
        r += b[k] * c[k]
        s += b[k] * d[k]
    return p, q, r, s


@compiled()
def factor(matrix, scale, inverse):
    """Compute the Cholesky factor of a symmetric positive definite matrix, in place; return whether it exists.

    Rows and columns are scaled to a diagonal of ones, to which the first of `RIDGES` is added that gives a factor.

    Parameters
    ----------
    matrix : ndarray of shape (n, n)
        Given on and above its diagonal, which stay; the factor L is written below it.
    scale : ndarray of shape (n,)
        Set to the factor of each row and column, 1 / sqrt(diagonal).
    inverse : ndarray of shape (n,)
        Set to 1 / the diagonal of L.
    """
    for i in range(scale.size):
        if not (matrix[i, i] > 0.0 and matrix[i, i] < np.inf):
            return False
        scale[i] = 1.0 / np.sqrt(matrix[i, i])
    for ridge in RIDGES:
        if factor_scaled(matrix, scale, ridge, inverse):
            return True
    return False


@compiled(fastmath={"reassoc", "contract"})
def factor_scaled(matrix, scale, ridge, inverse):
    """Compute the factor L of D M D + ridge I with D = diag(scale); return False where a pivot is not positive.

    M, L, `scale` and `inverse` are stored as in `factor`. Two rows of L are computed at once, two entries of each:
    L_ij = ((D M D)_ij - sum_{k < j} L_ik L_jk) / L_jj.
    """
    for i in range(0, scale.size, 2):
        h = min(i + 1, scale.size - 1)  # h = i for the last row of an odd number
        row, next_row = matrix[i], matrix[h]
        for j in range(0, i, 2):
            other, next_other = matrix[j], matrix[j + 1]
            p, q, r, s = four_products(row, next_row, other, next_other, j)
            p = (other[i] * scale[i] * scale[j] - p) * inverse[j]
            r = (other[h] * scale[h] * scale[j] - r) * inverse[j]
            q = (next_other[i] * scale[i] * scale[j + 1] - q - p * next_other[j]) * inverse[j + 1]
            s = (next_other[h] * scale[h] * scale[j + 1] - s - r * next_other[j]) * inverse[j + 1]
            row[j], row[j + 1], next_row[j], next_row[j + 1] = p, q, r, s
        # the pivots of both rows: L_ii^2 = (D M D)_ii + ridge - sum_{k < i} L_ik^2
        square, both, _, next_square = four_products(row, next_row, row, next_row, i)
        pivot = 1.0 + ridge - square
        if not pivot > 0.0:
            return False
        inverse[i] = 1.0 / np.sqrt(pivot)
        if h > i:
            last = (row[h] * scale[h] * scale[i] - both) * inverse[i]
            next_row[i] = last
            pivot = 1.0 + ridge - next_square - last * last
            if not pivot > 0.0:
                return False
            inverse[h] = 1.0 / np.sqrt(pivot)
    return True


@compiled(fastmath={"reassoc", "contract"})
def solve_factored(matrix, scale, inverse, right, out):
    """Set `out` to the solution of M out = right, from the outputs L, scale and inverse of `factor`."""
    for i in range(scale.size):  # L u = D right
        row = matrix[i]
        value = scale[i] * right[i]
        for k in range(i):
            value -= row[k] * out[k]
        out[i] = value * inverse[i]
    for i in range(scale.size - 1, -1, -1):  # L' v = u, out = D v
        value = out[i] * inverse[i]
        row = matrix[i]
        for k in range(i):
            out[k] -= value * row[k]
        out[i] = value * scale[i]
