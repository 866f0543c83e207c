"""Exact feature maps: the rational vectors whose weighted sum is zero in a proof that there is no separator.

Whether classes are separable depends on the linear span of the functions k(x_j, .) on the rows, not on the lengths of
their images. The image of a row x is therefore chosen as follows.

* Linear kernel: the row itself.
* (gamma x.z + coef0)^degree: the monomials of x, of degree `degree` for coef0 = 0, of all degrees up to it else.
* Precomputed kernel matrix: the row of the matrix, since functions sum c_j k(x_j, .) are combinations of its columns.
* Any other kernel: one coordinate for each distinct row, which is 1 there; equal rows have equal images.

Floating-point numbers are rational, and so are their monomials.
"""

from __future__ import annotations

from collections.abc import Hashable
from functools import cached_property
from itertools import combinations_with_replacement
from math import comb, inf, prod
from typing import Any

import numpy as np
import scipy.sparse as sp

from ..kernels.functions import Kernel, Linear, Polynomial, Precomputed
from ..numerics.rational import BeyondReachError, ExactRows, IntegerRows, row_entries

# Number of monomials of a row, and of rows of a kernel matrix, up to which exact arithmetic is tried: it then takes
# seconds. Larger values decide more data sets, in a time that grows fast with either number.
MAX_MONOMIALS, MAX_MATRIX_ROWS = 300, 150

Ratio = tuple[int, int]  # numerator and denominator


def dimension(kernel: Kernel, features: int) -> float:
    """Return the number of coordinates of an image; inf where each distinct row has a coordinate of its own.

    `features` is the number d of columns of the data. Polynomial kernels of more than MAX_MONOMIALS monomials, or with
    a negative coef0 or a gamma that is not positive, count as any other kernel.
    """
    if isinstance(kernel, Linear | Precomputed):
        return features
    if isinstance(kernel, Polynomial) and kernel.gamma > 0.0 and kernel.coef0 >= 0.0:
        # monomials of degree m in k variables, the constant being one more variable where coef0 > 0: (k + m - 1 over m)
        count = comb(features + (kernel.coef0 > 0.0) + kernel.degree - 1, kernel.degree)
        return count if count <= MAX_MONOMIALS else inf
    return inf


def image(kernel: Kernel, X: Any, i: int) -> tuple[list[Hashable], list[Ratio]]:
    """Return the coordinates and the values of the non-zero entries of the image of row i.

    Parameters
    ----------
    kernel : Kernel
    X : ndarray or CSR matrix of shape (n, d)
    i : int

    Returns
    -------
    names : list
        Names of the coordinates: column numbers, tuples of column numbers for monomials (d stands for the constant), or
        the entries of the row itself.
    ratios : list of (int, int)
        Values as numerators and denominators; these are powers of two.
    """
    at, values = row_entries(X, i)
    ratios = [value.as_integer_ratio() for value in values]
    if isinstance(kernel, Linear | Precomputed):
        return list(at), ratios
    if dimension(kernel, X.shape[1]) == inf:
        return [(*at, *values)], [(1, 1)]
    assert isinstance(kernel, Polynomial)
    if kernel.coef0 > 0.0:  # the constant 1 as one more entry, in column d
        at, ratios = [*at, X.shape[1]], [*ratios, (1, 1)]
    chosen = list(combinations_with_replacement(range(len(at)), kernel.degree))
    return (
        [tuple(at[j] for j in some) for some in chosen],
        [(prod(ratios[j][0] for j in some), prod(ratios[j][1] for j in some)) for some in chosen],
    )


def exact_rows(kernel: Kernel, X: Any, y: np.ndarray, bias: bool) -> ExactRows:
    """Return the images of all rows as integers.

    Parameters
    ----------
    kernel : Kernel
    X : ndarray or CSR matrix of shape (n, d)
    y : ndarray of shape (n,), entries -1.0 and 1.0
    bias : bool
        Whether the separator may have an intercept.

    Raises
    ------
    BeyondReachError
        If the kernel has no finite feature map here, or images have too many coordinates; the message states which.
    """
    n, d = X.shape
    if isinstance(kernel, Precomputed) and n > MAX_MATRIX_ROWS:
        raise BeyondReachError(f"the matrix has over {MAX_MATRIX_ROWS} rows, too many for exact arithmetic")
    if isinstance(kernel, Linear | Precomputed):
        return IntegerRows(X, y, bias)
    if not isinstance(kernel, Polynomial):
        raise BeyondReachError(f"for the {kernel.name} kernel only equal rows of both classes are a proof")
    if dimension(kernel, d) == inf:
        raise BeyondReachError(f"a row has more than {MAX_MONOMIALS} monomials, too many for exact sums")
    return MonomialRows(X, y, kernel.degree, kernel.coef0 > 0.0, bias)


class MonomialRows(ExactRows):
    """Monomials of rows as integers, each multiplied by a power of two that makes all of about the same size.

    Parameters
    ----------
    X : ndarray or CSR matrix of shape (n, d)
        Finite numbers, in canonical format where sparse.
    y : ndarray of shape (n,), entries -1.0 and 1.0
    degree : int
    lower : bool
        Whether the monomials of lower degrees are included. One of them is the constant, which serves as the bias.
    bias : bool
        Whether the separator may have an intercept.
    """

    def __init__(self, X: Any, y: np.ndarray, degree: int, lower: bool, bias: bool) -> None:
        self._base = IntegerRows(X.toarray() if sp.issparse(X) else X, np.ones(y.size), lower)
        self._chosen = list(combinations_with_replacement(range(self._base.width), degree))
        super().__init__(y.size, len(self._chosen), y, bias and not lower, degree * self._base.bits)
        # units of the last place by which a product of `degree` rounded entries may be off
        self.inexact = 2.0 * degree

    @cached_property
    def scaled(self) -> np.ndarray:
        """The monomials in float64, of shape (n, d), as products of the scaled entries."""
        base = self._base.scaled
        if self._base.bias:
            base = np.hstack([base, np.ones((self.n, 1))])
        return np.column_stack([base[:, list(some)].prod(axis=1) for some in self._chosen])

    def coordinates(self, i: int) -> tuple[list[int], list[int]]:
        """Return places and values of the non-zero monomials of x_i."""
        entry = dict(zip(*self._base.row(i), strict=True))
        places = [k for k, some in enumerate(self._chosen) if all(j in entry for j in some)]
        return places, [prod(entry[j] for j in self._chosen[k]) for k in places]

    def column(self, k: int) -> tuple[Hashable, int]:
        """Return the tuple of the columns of monomial k, and the exponent of its power of two."""
        some = self._chosen[k]
        exponents = [*self._base.exponents.tolist(), self._base.bits]
        return tuple(some), sum(exponents[j] for j in some)
