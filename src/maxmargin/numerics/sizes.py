"""Numbers that users give, sizes of memory as they write them (512MB, 2GB, 1.5GiB), and the memory that is free."""

from __future__ import annotations

import math
import os
import re
import sys
from contextlib import suppress
from numbers import Integral, Real
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.utils import check_random_state

UNITS = {"": 1, "B": 1, "KB": 10**3, "MB": 10**6, "GB": 10**9, "TB": 10**12} | {
    "KIB": 2**10, "MIB": 2**20, "GIB": 2**30, "TIB": 2**40,
}  # fmt: skip


def draw_seeds(random_state: Any, size: int) -> np.ndarray:
    """Draw `size` seeds."""
    if isinstance(random_state, Integral):  # RandomState's set-up takes longer than a small fit
        return np.random.SeedSequence(int(random_state)).generate_state(size)
    return check_random_state(random_state).randint(np.iinfo(np.int32).max, size=size)


def is_real(value: Any) -> bool:
    """Return whether a value is a real number that float64 holds, or inf; booleans, numbers in Python, are not."""
    try:
        return isinstance(value, Real) and not isinstance(value, bool) and float(value) == float(value)
    except OverflowError:
        return False


def is_finite(value: Any) -> bool:
    """Return whether a value is a finite real number and not a boolean."""
    return is_real(value) and abs(float(value)) < math.inf


def is_positive_finite(value: Any) -> bool:
    """Return whether a value is a positive, finite real number and not a boolean."""
    return is_finite(value) and value > 0.0


def is_whole(value: Any, least: float = -math.inf) -> bool:
    """Return whether a value is an integer of at least `least` and not a boolean."""
    return isinstance(value, Integral) and not isinstance(value, bool) and int(value) >= least


def parse_bytes(size: Any) -> int:
    """Return a size in bytes.

    Parameters
    ----------
    size : str or number
        Such as 2e9, "2000000000", "512MB" or "1.5 GiB". MB is 1,000,000 bytes, MiB 2^20.

    Raises
    ------
    ValueError
        If it is no size, or not positive.
    """
    found = 0.0
    if isinstance(size, Real) and not isinstance(size, bool):
        found = float(max(0.0, min(size, 2.0**63)))  # an integer may be beyond float64
    elif isinstance(size, str) and (
        match := re.fullmatch(r"\s*([0-9.]+(?:[eE][0-9]+)?)\s*([A-Za-z]*)\s*", size)
    ):
        number, unit = match.groups()
        if unit.upper() in UNITS and number.count(".") <= 1 and number != ".":
            found = float(number) * UNITS[unit.upper()]
    if not 1.0 <= found < 2.0**63:
        raise ValueError(f"a size is a number of bytes, or a text such as '512MB' or '2GiB'; got {size!r}.")
    return int(found)


def require_weight_memory(vectors: int, width: int) -> None:
    """Raise ValueError where dense vectors with a float64 number for every feature exceed the free memory.

    Sparse rows take memory for their entries alone; one large index makes the weights of a model large.
    """
    if shortage := memory_shortage(8.0 * vectors * width):
        raise ValueError(
            f"a weight for each of {width} features takes {shortage}: number the features without gaps, or hash them "
            "(sklearn.feature_extraction.FeatureHasher)."
        )


def memory_shortage(needed: float) -> str:
    """Return the sizes of needed and free memory as text where `needed` bytes are not free, otherwise ""."""
    free = available_memory() if needed > 2**20 else math.inf  # to read it takes as long as a small fit
    return f"about {size_text(needed)} of memory, and {size_text(free)} are free" if needed > free else ""


def available_memory() -> float:
    """Return the bytes that can be allocated without swapping, within the limit of a container."""
    limits = [float(sys.maxsize)]
    with suppress(AttributeError, ValueError, OSError):
        limits.append(float(os.sysconf("SC_PHYS_PAGES")) * os.sysconf("SC_PAGE_SIZE"))
    with suppress(OSError, TypeError):  # of Linux; SC_AVPHYS_PAGES would leave out the page cache
        found: Any = re.search(r"^MemAvailable: +(\d+) kB", Path("/proc/meminfo").read_text(), re.MULTILINE)
        limits.append(1024.0 * float(found[1]))
    for limit in ("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes"):
        with suppress(OSError, ValueError):  # no container, or the word "max"
            limits.append(float(Path(limit).read_text()))
    return min(limits)


def size_text(number: float) -> str:
    """Return a number of bytes in a unit of three digits or fewer."""
    for unit in ("bytes", "kB", "MB", "GB"):
        if number < 1000.0:
            return f"{number:.3g} {unit}"
        number /= 1000.0
    return f"{number:.3g} TB"
