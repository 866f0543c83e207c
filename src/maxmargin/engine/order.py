"""Orders of presentation: random permutations and random strides, each from one or two numbers of a generator."""

from __future__ import annotations

from math import gcd

import numpy as np

from .jit import compiled

# Shifts of Marsaglia's xorshift64, whose period is 2^64 - 1.
LEFT1, RIGHT, LEFT2 = np.uint64(13), np.uint64(7), np.uint64(17)
# Bits of half a word, and the mask of its lower half.
HALF_WORD, LOW_MASK = np.uint64(32), np.uint64(0xFFFFFFFF)


@compiled()
def _shuffle(seed, out):
    """Write a random permutation to out, by the inside-out Fisher-Yates shuffle with xorshift64 numbers."""
    x = seed
    for j in range(out.size):
        x ^= x << LEFT1
        x ^= x >> RIGHT
        x ^= x << LEFT2
        i = ((x & LOW_MASK) * np.uint64(j + 1)) >> HALF_WORD  # uniform on 0 .. j, up to 2^-32
        out[j] = out[i]
        out[i] = np.uint32(j)


@compiled()
def _stride(start, step, out):
    """Write (start + j step) mod out.size to out[j]; start and step are less than out.size."""
    k = start
    for j in range(out.size):
        out[j] = np.uint32(k)
        k += step
        if k >= out.size:
            k -= out.size


def shuffled(n: int, rng: np.random.Generator, block: int = 1) -> np.ndarray:
    """Return a random permutation of range(n): shape (n,), uint32.

    With `block` above 1, successive numbers stay together in blocks of this size, and the blocks are permuted.
    """
    blocks = np.zeros(-(-n // block), np.uint32)
    with np.errstate(over="ignore"):  # xorshift overflows by design; without compilation NumPy would warn
        _shuffle(np.uint64(rng.integers(1, 2**63)), blocks)
    if block == 1:
        return blocks
    rows = (blocks[:, None] * np.uint32(block) + np.arange(block, dtype=np.uint32)).ravel()
    return rows[rows < n]  # the block of the largest number may be shorter


def strides(n: int, rng: np.random.Generator) -> np.ndarray:
    """Return the numbers 0 .. n - 1 from a random start by a random stride that has no common divisor with n.

    Shape (n,), uint32. It is faster than a permutation, and sufficient for rows that already are in random order.
    """
    out = np.empty(n, np.uint32)
    step = int(rng.integers(1, max(n, 2)))
    while gcd(step, n) != 1:
        step = step + 1 if step + 1 < n else 1
    _stride(int(rng.integers(max(n, 1))), step, out)
    return out
