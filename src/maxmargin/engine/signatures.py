"""Numbers that tell rows apart: the bits of their entries, mixed and added modulo 2^64."""

from __future__ import annotations

import numpy as np

from .jit import compiled

ONES = np.uint64(2**63 - 1)  # all but the sign


@compiled()
def dense(bits, multipliers, out):
    """out_i = sum_j mixed(bits_ij) multipliers_j"""
    for i in range(bits.shape[0]):
        row = bits[i]
        total = np.uint64(0)
        for j in range(row.size):
            total += mixed(row[j]) * multipliers[j]
        out[i] = total


@compiled()
def sparse(indptr, indices, bits, multipliers, out):
    """The same of rows without their zeros: zero bits add nothing."""
    for i in range(out.size):
        total = np.uint64(0)
        for k in range(indptr[i], indptr[i + 1]):
            total += mixed(bits[k]) * multipliers[indices[k]]
        out[i] = total


@compiled()
def odd(multipliers):
    """Odd numbers without a pattern, each from its place."""
    for j in range(multipliers.size):
        multipliers[j] = mixed(mixed(np.uint64(j + 1))) | np.uint64(1)


@compiled()
def mixed(bits):
    """Bits spread over the whole word; zero, of either sign, becomes zero."""
    bits = bits & ONES if bits & ONES == np.uint64(0) else bits
    bits = (bits ^ (bits >> np.uint64(31))) * np.uint64(0x9E3779B97F4A7C15)
    return bits ^ (bits >> np.uint64(29))
