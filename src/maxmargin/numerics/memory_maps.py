"""The files of memory maps: whether the name of a file still stands for the one that is mapped."""

from __future__ import annotations

import os
from mmap import mmap
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np

# device and number of the file of each map
_FILES: WeakKeyDictionary[mmap, tuple[int, int]] = WeakKeyDictionary()


def identity(status: os.stat_result) -> tuple[int, int]:
    """Return device and number of a file or a folder, which another one of the same name does not have."""
    return status.st_dev, status.st_ino


def is_file_of(array: np.memmap, status: os.stat_result) -> bool:
    """Return whether a file is the one of a memory map; the first call for a map takes the given file for its own.

    The rows of a map stay what they are when another process puts another file in its place, as caches of rows are
    written; a new map by the name of the file would have other rows.

    Parameters
    ----------
    array : memmap
        A whole one: a part of another one has no file of its own.
    status : os.stat_result
        Of the file that has the name now.
    """
    base: Any = array.base
    return _FILES.setdefault(base, identity(status)) == identity(status)
