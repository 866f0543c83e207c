"""Products of columns over a few rows, and the factor of such a matrix: LAPACK's wrappers take longer than it does."""

from __future__ import annotations

import numpy as np

from .jit import compiled


@compiled()
def products(rows, share, some, turned, matrix):
    """Matrix = the sum of share b b' over these rows b.

    Rows are scaled and turned into columns, so many at a time as there is room for in `turned`, of shape (size, any):
    two columns are then multiplied with two at once, below the diagonal only.
    """
    size, room = turned.shape
    matrix[:] = 0.0
    for first in range(0, some.size, room):
        count = min(room, some.size - first)
        turn(rows, share, some[first : first + count], turned)
        add_products(turned, size, count, matrix)
    mirror(size, matrix)


@compiled()
def add_products(rows, size, count, matrix):
    """Matrix += the products of so many rows, of their first entries: on its diagonal and below."""
    for i in range(0, size, 2):
        h = min(i + 1, size - 1)  # the last one twice, where their number is odd
        for j in range(0, i + 1, 2):
            k = min(j + 1, size - 1)
            p, q, r, s = four(rows[i], rows[h], rows[j], rows[k], count)
            p += matrix[i, j]
            q += matrix[i, k]
            r += matrix[h, j]
            s += matrix[h, k]
            matrix[i, j], matrix[i, k], matrix[h, j], matrix[h, k] = p, q, r, s


@compiled()
def mirror(size, matrix):
    """What is below the diagonal is above it too."""
    for i in range(size):
        for j in range(i):
            matrix[j, i] = matrix[i, j]


@compiled()
def turn(rows, share, some, turned):
    """Columns = share^1/2 b of these rows b."""
    for k in range(some.size):
        row, root = rows[some[k]], np.sqrt(share[some[k]])
        for j in range(row.size):
            turned[j, k] = root * row[j]


@compiled(fastmath={"reassoc", "contract"})
def four(a, b, c, d, count):
    """The products of a and b with c and d, of so many entries."""
    p = q = r = s = 0.0
    for k in range(count):
        p += a[k] * c[k]
        q += a[k] * d[k]
        r += b[k] * c[k]
        s += b[k] * d[k]
    return p, q, r, s


@compiled(fastmath={"reassoc", "contract"})
def triangular(matrix, root, ridge, inverse):
    """Cholesky's factor of root matrix root, with ones and the ridge on its diagonal: below that of the matrix itself.

    What is on and above the diagonal stays. `root` gets 1 over the root of each entry of the diagonal, `inverse` 1 over
    those of the factor. False where one is not positive. Two rows are found at once, two entries of each.
    """
    for i in range(root.size):
        if not (matrix[i, i] > 0.0 and matrix[i, i] < np.inf):
            return False
        root[i] = 1.0 / np.sqrt(matrix[i, i])
    for i in range(0, root.size, 2):
        h = min(i + 1, root.size - 1)  # the same twice, where it is the last one
        row, next_row = matrix[i], matrix[h]
        for j in range(0, i, 2):
            other, next_other = matrix[j], matrix[j + 1]
            p, q, r, s = four(row, next_row, other, next_other, j)
            p = (other[i] * root[i] * root[j] - p) * inverse[j]
            r = (other[h] * root[h] * root[j] - r) * inverse[j]
            q = (next_other[i] * root[i] * root[j + 1] - q - p * next_other[j]) * inverse[j + 1]
            s = (next_other[h] * root[h] * root[j + 1] - s - r * next_other[j]) * inverse[j + 1]
            row[j], row[j + 1], next_row[j], next_row[j + 1] = p, q, r, s
        square, both, _, next_square = four(row, next_row, row, next_row, i)
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
def substitute(matrix, root, inverse, right, out):
    """What the matrix that was factored takes to `right`."""
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
