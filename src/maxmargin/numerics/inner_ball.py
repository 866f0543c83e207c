"""The ball around the origin inside the convex hull of the rows of a proof that there is no separator."""

from __future__ import annotations

import sys
from fractions import Fraction
from typing import Any

import numpy as np
import scipy.sparse as sp

from .sums import EPS, norm, row_norms

# Rows of a certificate whose ball is computed: the inverse takes O(k^3), some hundredths of a second at 400.
MAX_BALL_ROWS = 400
# Relative error of the inverse above which no ball is given: the radius allows for it with a factor of 1.02, an upper
# bound of 1 / (1 - 0.01). A looser limit would need a larger factor, a tighter one gives fewer balls.
MAX_INVERSE_ERROR = 0.01
# Relative rounding of a radius beside that of the inverse: more than that of norms and quotients, whose terms are at
# most `MAX_BALL_ROWS`, on any machine; a larger value would accept larger claims than the data give.
RADIUS_ROUNDING = 1e-9


@np.errstate(over="ignore", under="ignore", invalid="ignore", divide="ignore")
def inner_radius(
    rows: Any, signs: np.ndarray, weights: tuple[Fraction, ...], q: float, bias: bool
) -> tuple[float, float]:
    """Return the radius of a ball around the origin inside the hull of a certificate's rows; 0.0 if none is found.

    For z in the ball, some lambda in the simplex, balanced where there is a bias, has sum lambda_k y_k x_k = z. Hence
    for all w and b, some row has a margin of at most -radius |w|_q. With the weights alpha of the origin,
    lambda = alpha + G z, G being the first columns of the inverse of the matrix of the rows, their signs and ones; it
    stays positive for |z|_p < alpha_k / |G_k|_q. The radius is rounded downwards; none is given below the smallest
    normal number.

    Parameters
    ----------
    rows : ndarray or CSR matrix of shape (k, d)
        Those of the certificate; a ball is found where they are one more than there are coordinates, and not too many.
    signs : ndarray of shape (k,), entries -1.0 and 1.0
    weights : tuple of Fraction
    q : float
        1/p + 1/q = 1, where the radius is measured in the p-norm.
    bias : bool

    Returns
    -------
    radius : float
    rounding : float
        The amount by which the radius may be larger when it is computed on another machine.
    """
    k, d = rows.shape
    if k != d + 1 + int(bias) or k > MAX_BALL_ROWS:
        return 0.0, 0.0
    # columns divided by powers of two near their largest entries, which is exact
    rows = rows.toarray() if sp.issparse(rows) else np.asarray(rows)
    rows = rows.astype(float) * signs[:, None]
    size = np.abs(rows).max(axis=0)
    if not np.isfinite(1.0 / size).all():
        return 0.0, 0.0
    unit = 2.0 ** np.round(np.log2(size))
    extra = [signs, np.ones(k)] if bias else [np.ones(k)]
    M = np.column_stack([rows / unit, *extra]).T
    try:
        inverse = np.linalg.inv(M)
    except np.linalg.LinAlgError:
        return 0.0, 0.0
    # M^-1 = (I - S)^-1 inverse with S = I - inverse M, so that |M^-1 - inverse| <= |S| / (1 - |S|) max |inverse|
    rounding = (k + 4.0) * EPS * float((np.abs(inverse) @ np.abs(M)).sum(axis=1).max())
    off = float(np.abs(np.eye(k) - inverse @ M).sum(axis=1).max()) + rounding
    if not off < MAX_INVERSE_ERROR:
        return 0.0, 0.0
    # G times the smallest unit, a power of two: no quotient overflows, and those that underflow are far below `error`
    least = float(unit.min())
    G = inverse[:, :d] * (least / unit)
    error = 1.02 * off * norm(np.abs(G).max(axis=0), q)
    lengths = row_norms(G, q) + error
    if not np.isfinite(lengths).all():
        return 0.0, 0.0
    # weights may be below all float64 numbers: their quotients are rational, and the least is rounded once
    pairs = zip(weights, lengths.tolist(), strict=True)
    exact = Fraction(least) * min(weight / Fraction(length) for weight, length in pairs)
    radius = float(min(exact, Fraction(sys.float_info.max))) * (1.0 - 1e-12 * (d + 4.0))
    if radius < sys.float_info.min:  # rounded to fewer digits
        return 0.0, 0.0
    # A length from another inverse is at least that of the exact one, so that it is smaller by 2 error at most:
    # 1 / (1 - 2 e) <= 1 + 4 e up to e = 1/4. Where e is larger, at most twice the radius is accepted.
    return radius, radius * (min(4.0 * error / float(lengths.min()), 1.0) + RADIUS_ROUNDING)
