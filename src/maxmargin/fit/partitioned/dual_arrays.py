"""The dual variables of all rows: in memory, or in a temporary file where they would take too much of it."""

from __future__ import annotations

import mmap
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryFile
from typing import Any

import numpy as np

# Largest part of the memory for the dual variables of all rows, half of what `cached_loops.ROWS_SHARE` leaves; larger
# arrays are in a temporary file.
DUAL_SHARE = 0.1
# Numbers that are written to the temporary file at a time.
CHUNK = 1 << 20


@contextmanager
def dual_arrays(n: int, memory: float, folder: Any = None) -> Iterator[np.ndarray]:
    """Yield a zero array of shape (3, n): in memory, or in a temporary file, which is deleted afterwards.

    Parameters
    ----------
    n : int
        Rows.
    memory : float
        Bytes that the fit may use; the file is used where the array takes more than the part DUAL_SHARE.
    folder : str or path-like, default=None
        The folder of the file, which is created; None for the folder of temporary files of the system.

    Raises
    ------
    OSError
        If the disk is full: the file is written as a whole.
    """
    if 24.0 * n <= DUAL_SHARE * memory:
        yield np.zeros((3, n))
        return
    if folder is not None:
        Path(folder).mkdir(parents=True, exist_ok=True)
    with TemporaryFile(dir=folder) as file:
        for first in range(0, 3 * n, CHUNK):
            file.write(bytes(8 * min(CHUNK, 3 * n - first)))
        file.flush()
        yield np.ndarray((3, n), np.float64, mmap.mmap(file.fileno(), 24 * n))


def release_pages(array: np.ndarray) -> None:
    """Take the pages of an array in a file out of the memory of the process; they are mapped again when they are used.

    Changes are kept. Without this the whole file counts as memory after a pass, until the system needs it.
    """
    if isinstance(array.base, mmap.mmap) and hasattr(mmap, "MADV_DONTNEED"):  # not on Windows
        array.base.madvise(mmap.MADV_DONTNEED)
