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
        for i in range(0, size, 2):
            h = min(i + 1, size - 1)  # the last one twice, where their number is odd
            for j in range(0, i + 1, 2):
                k = min(j + 1, size - 1)
                p, q, r, s = four(turned[i], turned[h], turned[j], turned[k], count)
                p += matrix[i, j]
                q += matrix[i, k]
                r += matrix[h, j]
                s += matrix[h, k]
                matrix[i, j], matrix[i, k], matrix[h, j], matrix[h, k] = p, q, r, s
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
    those of the factor. False where one is not positive.
    """
    for i in range(root.size):
        if not (0.0 < matrix[i, i] and matrix[i, i] < np.inf):
            return False
        root[i] = 1.0 / np.sqrt(matrix[i, i])
        row = matrix[i]
        for j in range(i):
            other = matrix[j]
            value = other[i] * root[i] * root[j]
            for k in range(j):
                value -= row[k] * other[k]
            row[j] = value * inverse[j]
        pivot = 1.0 + ridge
        for k in range(i):
            pivot -= row[k] * row[k]
        if not pivot > 0.0:
            return False
        inverse[i] = 1.0 / np.sqrt(pivot)
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
