"""Products of columns over a few rows, and the factor of such a matrix: LAPACK's wrappers take longer than it does."""

from __future__ import annotations

import numpy as np

from .jit import compiled


@compiled(fastmath={"reassoc", "contract"})
def products(rows, share, some, matrix):
    """Matrix = the sum of share b b' over these rows b."""
    size = rows.shape[1]
    matrix[:] = 0.0
    whole = some.size - some.size % 4
    for k in range(0, whole, 4):
        h, i, j, l = some[k], some[k + 1], some[k + 2], some[k + 3]
        b, c, d, e = rows[h], rows[i], rows[j], rows[l]
        for column in range(size):
            p, q = share[h] * b[column], share[i] * c[column]
            r, s = share[j] * d[column], share[l] * e[column]
            made = matrix[column]
            for other in range(size):
                made[other] += (p * b[other] + q * c[other]) + (r * d[other] + s * e[other])
    for k in range(whole, some.size):
        i = some[k]
        b = rows[i]
        for column in range(size):
            p = share[i] * b[column]
            made = matrix[column]
            for other in range(size):
                made[other] += p * b[other]


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
