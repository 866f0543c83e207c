"""Data files: svmlight text, CSV, .npz, Parquet and Arrow; errors name the place, the fault and the remedy."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import numpy as np

from ..numerics.files import faults_of
from ..numerics.progress import announce
from .arrays import read_npz
from .delimited import delimiter_of
from .files import ARROW, TABLE, check_file, data_errors, kind_of, require_memory
from .sources import Source, opened
from .svmlight import PART, read_svmlight
from .table import Classes, DataError, Expected, Table

__all__ = ["DataError", "Expected", "Table", "delimiter_of", "names_columns", "read"]


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
    path = Path(path)
    expected = Expected(n_features, **requirements)
    with data_errors(path):
        check_file(path)
        kind = kind_of(path, expected.header is not None or expected.delimiter is not None)
        announce(f"reading {path.name}")
        if kind == ".npz":
            return read_npz(path, expected)
        if kind not in (TABLE, ".npy", ".parquet", *ARROW):
            return read_svmlight(path, expected)
    return _table(opened([path], [], expected, None))


def _table(source: Source) -> Table:
    """Return all rows of a text table, or of one that is stored by columns."""
    path, classes, parts, numbers = source.files[0], Classes(), list[np.ndarray](), list[np.ndarray]()
    with data_errors(path):
        require_memory(source.bytes_needed())
    for _, X, codes in source.rows(classes, PART):
        parts.append(X)
        if codes is not None:
            numbers.append(codes)
    y = None
    if numbers:
        with faults_of(path, DataError):
            labels, places = classes.sorted()
        y = labels[places[np.concatenate(numbers)]]
    return Table(np.concatenate(parts), y, source.features, source.label, layout=source.layout)


def names_columns(
    path: str | os.PathLike[str], header: bool | None = None, delimiter: str | None = None
) -> bool:
    """Return whether the columns of this kind of file, or of the files of a folder, have names.

    `header` and `delimiter` are those of `Expected`.
    """
    path = Path(path)
    if path.is_dir():
        return True
    if not path.is_file():
        return False
    with data_errors(path):
        return kind_of(path, header is not None or delimiter is not None) in (TABLE, ".parquet", *ARROW)
