"""Data files: svmlight text, CSV, .npz, Parquet and Arrow; errors name the place, the fault and the remedy."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path
from typing import Any

from scipy.sparse import issparse

from .columnar import delimiter_of
from .sources import loaded, opened
from .table import DataError, Expected, Table

__all__ = ["DataError", "Expected", "Table", "delimiter_of", "read"]


def read(path: str | os.PathLike[str], n_features: int | None = None, **requirements: Any) -> Table:
    """Read a data set in the format that the end of its name says.

    ``.csv``, ``.tsv`` and ``.data`` are text tables, and so is text whose `header` or `delimiter` is given; True and
    False are 1 and 0 there. ``.npz`` holds ``X`` and ``y``, or the CSR arrays ``data``, ``indices``, ``indptr``,
    ``shape`` and ``y``; ``.parquet``, and ``.arrow``, ``.feather`` and ``.ipc`` (Arrow's files and streams) need
    pyarrow; every other name is svmlight text. Text may be compressed (``.gz``, ``.bz2``, ``.xz``).

    Indices of svmlight text count from 1, as in LIBSVM, unless the file holds an index 0: then all of it
    counts from 0 (the rule of scikit-learn's ``zero_based="auto"``). `Table.first_index` says which it was.
    A file cut in the middle of an entry is refused; a cut that leaves a shorter number cannot be noticed.

    Parameters
    ----------
    path : str or path-like
    n_features, **requirements
        `n_features`, `label`, `features`, `first_index`, `use`, `drop`, `header` and `delimiter` of `Expected`.

    Returns
    -------
    Table

    Raises
    ------
    DataError
        If the file cannot be read; the message says which line is wrong, and what to do.
    """
    source = opened([Path(path)], Expected(n_features, **requirements))
    table = source.table(*source.collected())
    return replace(table, X=loaded(table.X)) if issparse(table.X) else table
