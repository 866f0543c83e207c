"""Data files: svmlight text, CSV, .npz, Parquet and Arrow; errors name the place, the fault and the remedy."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from ..numerics.progress import announce
from .arrays import read_npz
from .columnar import read_arrow, read_parquet
from .delimited import read_delimited
from .files import ARROW, DELIMITED, OTHER_THAN_TEXT, check_file, data_errors, ending
from .layout import TABLE, DataNotice, delimiter_of, kind_of_file
from .svmlight import read_svmlight
from .table import DataError, Expected, Table

__all__ = ["DataError", "DataNotice", "Expected", "Table", "delimiter_of", "names_columns", "read"]

_READERS = {
    ".npz": read_npz,
    ".parquet": read_parquet,
    **dict.fromkeys(ARROW, read_arrow),
    **dict.fromkeys(DELIMITED, read_delimited),
}


def read(path: str | os.PathLike[str], n_features: int | None = None, **requirements: Any) -> Table:
    """Read a data set in the format that the end of its name says.

    ``.csv`` and ``.tsv`` are text tables, and a feature that is True or False in all rows is 1 and 0; ``.npz`` holds
    ``X`` and ``y``, or the CSR arrays ``data``, ``indices``, ``indptr``, ``shape`` and ``y``; ``.parquet``, and
    ``.arrow``, ``.feather`` and ``.ipc`` (Arrow's files and streams) need pyarrow; every other name is svmlight text.
    ``.data``, and every text whose `header` or `delimiter` is given, is a table unless its first row is svmlight text.
    Text may be compressed (``.gz``, ``.bz2``, ``.xz``).

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
        kind = kind_of_file(path, expected)
        announce(f"reading {path.name}")
        return _READERS.get(kind, read_svmlight)(path, expected)


def names_columns(
    path: str | os.PathLike[str], header: bool | None = None, delimiter: str | None = None
) -> bool:
    """Return whether the columns of this kind of file, or of the files of a folder, have names.

    `header` and `delimiter` are those of `Expected`.
    """
    path = Path(path)
    if path.is_dir() or ending(path) in (*DELIMITED, ".parquet", *ARROW):
        return True
    if ending(path) in OTHER_THAN_TEXT or not path.is_file() or not path.stat().st_size:
        return False
    with data_errors(path):
        return kind_of_file(path, Expected(header=header, delimiter=delimiter)) == TABLE
