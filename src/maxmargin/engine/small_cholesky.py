"""Cholesky factors of small matrices, and sums of products of rows: LAPACK's wrappers take longer than these loops."""

from __future__ import annotations

import numpy as np

from .jit import compiled

# Shares of the diagonal that are added, one after the other, until there is a factor. Larger ones change the solution
# more, and corrections by residuals converge more slowly: with steps of 100 in place of 10 polynomials of degree 4 of
# three columns of breast cancer (C = 1e3) are not certified. Beyond the last, too few digits are left, and solvers end.
RIDGES = 0.0, 1e-15, 1e-14, 1e-13, 1e-12, 1e-11, 1e-10


@compiled()
def add_row_products(sign, rows, weights, places, columns, matrix):
    """Add sign * sum weights_i b_i b_i' over the rows at `places` to a matrix, on its diagonal and below.

    Rows are scaled and transposed, as many at a time as `columns`, of shape (size, any), holds: columns are then
    multiplied two by two.
    """
    size, room = columns.shape
    for first in range(0, places.size, room):
        count = min(room, places.size - first)
        for k in range(count):
            row, root = rows[places[first + k]], np.sqrt(weights[places[first + k]])
            for j in range(size):
                columns[j, k] = root * row[j]
        for i in range(0, size, 2):
            h = min(i + 1, size - 1)  # the last one twice, where their number is odd
            for j in range(0, i + 1, 2):
                k = min(j + 1, size - 1)
                p, q, r, s = four_products(columns[i], columns[h], columns[j], columns[k], count)
                p, q = matrix[i, j] + sign * p, matrix[i, k] + sign * q
                r, s = matrix[h, j] + sign * r, matrix[h, k] + sign * s
                matrix[i, j], matrix[i, k], matrix[h, j], matrix[h, k] = p, q, r, s


@compiled(fastmath={"reassoc", "contract"})
def four_products(a, b, c, d, count):
    """Return a.c, a.d, b.c and b.d of the first `count` entries."""
    p = q = r = s = 0.0
    for k in range(count):
        p += a[k] * c[k]
        q += a[k] * d[k]
        r += b[k] * c[k]
        s += b[k] * d[k]
    return p, q, r, s


@compiled()
def factor(matrix, root, inverse):
    """Factor a symmetric matrix given on and above its diagonal, with the first of `RIDGES` that gives a factor.

    Rows and columns are scaled to a diagonal of ones. Returns whether there is a factor.
    """
    for i in range(root.size):
        if not (matrix[i, i] > 0.0 and matrix[i, i] < np.inf):
            return False
        root[i] = 1.0 / np.sqrt(matrix[i, i])
    for ridge in RIDGES:
        if factor_scaled(matrix, root, ridge, inverse):
            return True
    return False


@compiled(fastmath={"reassoc", "contract"})
def factor_scaled(matrix, root, ridge, inverse):
    """Set Cholesky's factor of (root matrix root + ridge I) below the diagonal, and `inverse` to 1 / its diagonal.

    The matrix, on and above the diagonal, stays. Returns False where a pivot is not positive. Two rows are computed at
    once, two entries of each.
    """
    for i in range(0, root.size, 2):
        h = min(i + 1, root.size - 1)  # the same twice, where it is the last one
        row, next_row = matrix[i], matrix[h]
        for j in range(0, i, 2):
            other, next_other = matrix[j], matrix[j + 1]
            p, q, r, s = four_products(row, next_row, other, next_other, j)
            p = (other[i] * root[i] * root[j] - p) * inverse[j]
            r = (other[h] * root[h] * root[j] - r) * inverse[j]
            q = (next_other[i] * root[i] * root[j + 1] - q - p * next_other[j]) * inverse[j + 1]
            s = (next_other[h] * root[h] * root[j + 1] - s - r * next_other[j]) * inverse[j + 1]
            row[j], row[j + 1], next_row[j], next_row[j + 1] = p, q, r, s
        square, both, _, next_square = four_products(row, next_row, row, next_row, i)
        pivot = 1.0 + ridge - square
        if not pivot > 0.0:
            return False
        inverse[i] = 1.0 / np.sqrt(pivot)
        if h > i:
            last = (row[h] * root[h] * root[i] - both) * inverse[i]
            next_row[i] = last
            pivot = 1.0 + ridge - next_square - last * last
            if not pivot > 0.0:
                return False
            inverse[h] = 1.0 / np.sqrt(pivot)
    return True


@compiled(fastmath={"reassoc", "contract"})
def solve_factored(matrix, root, inverse, right, out):
    """Solve with the factor that `factor` left in a matrix."""
    for i in range(root.size):
        row = matrix[i]
        value = root[i] * right[i]
        for k in range(i):
            value -= row[k] * out[k]
        out[i] = value * inverse[i]
    for i in range(root.size - 1, -1, -1):
        value = out[i] * inverse[i]
        row = matrix[i]
        for k in range(i):
            out[k] -= value * row[k]
        out[i] = value * root[i]
