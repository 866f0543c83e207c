"""Where rows are, by their type, for which no other package is imported: on a cluster, in files, in memory maps."""

from __future__ import annotations

import os
from mmap import mmap
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np

# device and number of the file of each map
_FILES: WeakKeyDictionary[mmap, tuple[int, int]] = WeakKeyDictionary()


def cluster_of(rows: Any) -> str | None:
    """Return "dask" or "spark" for rows that are a collection of its; None for others."""
    package = type(rows).__module__.split(".", 1)[0]
    return {"dask": "dask", "dask_expr": "dask", "pyspark": "spark"}.get(package)


def are_paths(X: Any) -> bool:
    """Return whether X is the path of a file, or a list of paths."""
    names = X if isinstance(X, list | tuple) and X else [X]
    return all(isinstance(name, str | os.PathLike) for name in names)


def names_files(X: Any) -> bool:
    """Return whether X is the path of a file, a list of paths, or a data set of pyarrow."""
    return are_paths(X) or type(X).__module__ == "pyarrow._dataset"


def has_labelled_rows(X: Any, y: Any) -> bool:
    """Return whether X names files, or is an Arrow table, stream or data frame that has to hold the labels as well."""
    return names_files(X) or (y is None and hasattr(X, "__arrow_c_stream__"))


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
