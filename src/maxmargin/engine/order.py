"""Orders of presentation: random permutations and strides, from one random number each."""

from __future__ import annotations

from math import gcd
from typing import Any, Protocol

import numpy as np

from .jit import compiled

# Shifts of Marsaglia's xorshift64, whose period is 2^64 - 1.
LEFT1, RIGHT, LEFT2 = np.uint64(13), np.uint64(7), np.uint64(17)
HALF, LOW = np.uint64(32), np.uint64(0xFFFFFFFF)  # the upper half of a word, and a mask of the lower one


@compiled()
def _shuffle(seed, out):
    """Write a random permutation to out: the inside-out Fisher-Yates shuffle on xorshift numbers."""
    x = seed
    for j in range(out.size):
        x ^= x << LEFT1
        x ^= x >> RIGHT
        x ^= x << LEFT2
        i = ((x & LOW) * np.uint64(j + 1)) >> HALF
        out[j] = out[i]
        out[i] = np.uint32(j)


@compiled()
def _stride(start, step, out):
    """Write (start + j step) mod size to out[j]."""
    k = start
    for j in range(out.size):
        out[j] = np.uint32(k)
        k += step
        if k >= out.size:
            k -= out.size


@compiled()
def _spread(blocks, size, out):
    """Write the rows of each block in turn; the last block may be shorter."""
    n = 0
    for k in range(blocks.size):
        first = np.int64(blocks[k]) * size
        for i in range(first, min(first + size, out.size)):
            out[n] = np.uint32(i)
            n += 1


class Source(Protocol):
    """A generator of whole numbers."""

    def integers(self, *bounds: Any, **how: Any) -> Any:
        """Return random integers, as `Generator.integers`."""
        ...


def shuffled(n: int, rng: Source, block: int = 1) -> np.ndarray:
    """Return a random permutation of range(n), or of its blocks of `block` neighbours."""
    blocks = np.zeros(-(-n // block), np.uint32)
    with np.errstate(over="ignore"):  # the generator wraps around, also where it is interpreted
        _shuffle(np.uint64(rng.integers(1, 2**63)), blocks)
    if block == 1:
        return blocks
    out = np.empty(n, np.uint32)
    _spread(blocks, block, out)
    return out


def strides(n: int, rng: Source) -> np.ndarray:
    """Return range(n) from a random start by a random stride: enough for rows that already stand in random order."""
    out = np.empty(n, np.uint32)
    step = int(rng.integers(1, max(n, 2)))
    while gcd(step, n) != 1:
        step = step + 1 if step + 1 < n else 1
    _stride(int(rng.integers(max(n, 1))), step, out)
    return out
