"""The Newton iteration that the PUMMA paper prints for its sub-problem at p > 2 (section 4.2), for experiments."""

from __future__ import annotations

from .jit import compiled
from .p_norm import line_derivatives, nearest_on_segment, norm_elsewhere

# Both equations have to hold to this relative error within so many steps, else the iteration has failed: as in the
# table of docs/measurements/reproduction.md.
CLOSE, MAX_STEPS = 1e-9, 100


@compiled()
def nearest_by_printed_newton(h, i, j):
    """Return the k in [0, 1] for which (1 - k) theta + k z has least p-norm, z the mean of patterns i and j; p > 2.

    Case (i) of the paper is k = 1. In case (ii) w is the image of r = a z + b theta under the link, with w.z = 1 and
    w.theta = 1, and k = a / (a + b); the paper's (alpha, beta) are multiples of (a, b), and its start (0, 1) is
    (0, 1 / |theta|^2). If the iteration fails, k is found by `nearest_on_segment`.
    """
    vector = h.space.vector
    z = vector.scratch
    own2, cross, square = vector.set_mean(h, i, j)
    k, _ = line_derivatives(vector, z, norm_elsewhere(vector, z), 1.0, 1.0)
    k = 1.0 if k + square - cross <= 0.0 else printed_share(vector, z, own2, cross, square)
    if not (k >= 0.0 and k <= 1.0):
        k = nearest_on_segment(vector, z, own2, cross, square)
    z.clear()
    return k


@compiled()
def printed_share(vector, z, own2, cross, square):
    """Return k by the printed iteration; -1 if it fails. The parameters are those of `nearest_on_segment`.

    The printed matrix has sums over one index: it uses the diagonal of the Jacobian of the link only, which is
    (p - 1) diag(u^(p-2)) - (p - 2) g g' with u = |r| / |r|_p and g = sign(r) u^(p-1).
    """
    p = vector.p
    a, b = 0.0, 1.0 / (vector.norm2() + own2)
    for _ in range(MAX_STEPS):
        top = total = 0.0
        for m in range(vector.theta.size):
            top = max(top, abs(a * z.w[m] + b * vector.theta[m]))
        if not (top > 0.0 and top < 1e300):
            return -1.0
        for m in range(vector.theta.size):
            total += (abs(a * z.w[m] + b * vector.theta[m]) / top) ** p
        size = top * total ** (1.0 / p)
        first, second = a * square + b * cross - 1.0, a * cross + b * own2 - 1.0
        zz, zt, tt = square, cross, own2
        for m in range(vector.theta.size):
            t = vector.theta[m]
            r = a * z.w[m] + b * t
            u = abs(r) / size
            power = u ** (p - 2.0)
            g = power * r / size
            first += size * g * z.w[m]
            second += size * g * t
            diagonal = (p - 1.0) * power - (p - 2.0) * g * g
            zz += diagonal * z.w[m] * z.w[m]
            zt += diagonal * z.w[m] * t
            tt += diagonal * t * t
        if abs(first) <= CLOSE and abs(second) <= CLOSE:
            return a / (a + b)
        determinant = zz * tt - zt * zt
        if not abs(determinant) > 0.0:
            return -1.0
        a -= (tt * first - zt * second) / determinant
        b -= (zz * second - zt * first) / determinant
    return -1.0
