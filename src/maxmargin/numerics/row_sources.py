"""Where rows are, by their type, for which no other package is imported: on a cluster, in files, in memory maps."""

from __future__ import annotations

import os
from typing import Any


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
