"""Numbers that users give, sizes of memory as they write them (512MB, 2GB, 1.5GiB), free memory, and threads."""

from __future__ import annotations

import math
import os
import re
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import cache, partial
from numbers import Integral, Real
from pathlib import Path
from threading import Lock
from typing import Any

import numpy as np
from joblib import cpu_count, effective_n_jobs
from sklearn.utils import check_random_state
from threadpoolctl import ThreadpoolController

UNITS = {"": 1, "B": 1, "KB": 10**3, "MB": 10**6, "GB": 10**9, "TB": 10**12} | {
    "KIB": 2**10, "MIB": 2**20, "GIB": 2**30, "TIB": 2**40,
}  # fmt: skip


def draw_seeds(random_state: Any, size: int) -> np.ndarray:
    """Draw `size` seeds."""
    if isinstance(random_state, Integral):  # RandomState's set-up takes longer than a small fit
        return np.random.SeedSequence(int(random_state)).generate_state(size)
    return check_random_state(random_state).randint(np.iinfo(np.int32).max, size=size)


def is_real(value: Any, above: float = -math.inf, most: float = math.inf) -> bool:
    """Return whether a value is a real number, but no boolean, that is larger than `above` and at most `most`."""
    try:
        return isinstance(value, Real) and not isinstance(value, bool) and above < float(value) <= most
    except OverflowError:  # an integer beyond float64
        return False


is_finite = partial(is_real, most=sys.float_info.max)


def is_whole(value: Any, least: float = -math.inf) -> bool:
    """Return whether a value is an integer of at least `least` and not a boolean."""
    return isinstance(value, Integral) and not isinstance(value, bool) and int(value) >= least


def parse_bytes(size: Any) -> int:
    """Return a size in bytes.

    Parameters
    ----------
    size : str, number or None
        Such as 2e9, "2000000000", "512MB" or "1.5 GiB". MB is 1,000,000 bytes, MiB 2^20. None: half of free memory.

    Raises
    ------
    ValueError
        If it is no size, or not positive.
    """
    found = 0.0 if size is not None else 0.5 * available_memory()
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
    needed = 8.0 * vectors * width
    # to read the free memory takes as long as a small fit
    if needed > 2**20 and (shortage := memory_shortage(needed)):
        raise ValueError(
            f"a weight for each of {width} features takes {shortage}: number the features without gaps, or hash them "
            "(sklearn.feature_extraction.FeatureHasher)."
        )


def memory_shortage(needed: float) -> str:
    """Return the sizes of needed and free memory as text where `needed` bytes are not free, otherwise ""."""
    free = available_memory()
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


# threads


def jobs(n_jobs: int | None, parts: int | None = None) -> int:
    """Return the number of threads for `parts` parts of the work: n_jobs as in joblib, at most one for each processor.

    Processors are limited by the process's affinity and by a container's share; more threads would wait for each other.
    """
    if n_jobs == 1 or (n_jobs is None and parts == 1):
        return 1
    # None stands for the setting of joblib's parallel_config
    wanted = min(effective_n_jobs(n_jobs), cpu_count())  # pyright: ignore[reportArgumentType]
    return wanted if parts is None else max(1, min(wanted, parts))


_BLAS_LOCK = Lock()
# an entry for each block inside `one_thread`: of the first one the limit that it set, if any
_LIMITS: list[Any] = []


@cache
def _blas() -> ThreadpoolController:
    return ThreadpoolController().select(user_api="blas")


@contextmanager
def one_thread() -> Iterator[None]:
    """Let BLAS have one thread within the block, in all threads of Python.

    Threads of BLAS wait for each other by spinning, which on shared cores takes more time than it saves; and the
    rounding of sums would depend on their number. The setting belongs to the process: with several fits at the same
    time it is made by the first, and restored by the last that ends.
    """
    with _BLAS_LOCK:
        changes = not _LIMITS and any(library.num_threads != 1 for library in _blas().lib_controllers)
        _LIMITS.append(_blas().limit(limits=1) if changes else None)
    try:
        yield
    finally:
        with _BLAS_LOCK:
            if (limit := _LIMITS.pop()) is not None:
                limit.restore_original_limits()
