"""Data files: svmlight text, CSV, .npz and Parquet, each with a clear sentence for what it cannot read."""

from __future__ import annotations

import os
from pathlib import Path

from .arrays import read_npz
from .delimited import read_delimited
from .files import COMPRESSED, look, plain_sentences
from .parquet import read_parquet
from .svmlight import read_svmlight
from .table import DataError, Expected, Table

__all__ = ["DataError", "Expected", "Table", "names_columns", "read"]


def read(
    path: str | os.PathLike[str],
    n_features: int | None = None,
    *,
    label: str | None = None,
    features: list[str] | None = None,
    first_index: int | None = None,
) -> Table:
    """Read a data set; the end of the name says how.

    ``.csv`` and ``.tsv`` have a header; ``.npz`` holds ``X`` and ``y``, or the CSR arrays ``data``,
    ``indices``, ``indptr``, ``shape`` and ``y``; ``.parquet`` needs pyarrow; every other name is svmlight
    text. Text may be compressed (``.gz``, ``.bz2``, ``.xz``).

    Indices of svmlight text count from 1, as in LIBSVM, unless the file holds an index 0: then all of it
    counts from 0 (the rule of scikit-learn's ``zero_based="auto"``). `Table.first_index` says which it was.
    A file cut in the middle of an entry is refused; a cut that leaves a shorter number cannot be noticed.

    Parameters
    ----------
    path : str or path-like
    n_features : int, default=None
        How many features the model knows. A sparse file may then hold fewer columns, and a table need not
        have labels; more columns are an error.
    label : str, default=None
        The label column of a CSV or Parquet file. None takes a column named label, target, class or y, else
        the last.
    features : list of str, default=None
        The feature columns that the model knows; a CSV or Parquet file may hold others, in any order.
    first_index : {0, 1}, default=None
        From what svmlight indices count; None finds out.

    Returns
    -------
    Table

    Raises
    ------
    DataError
        If the file cannot be read; the message says which line is wrong, and what to do.
    """
    path = Path(path)
    expected = Expected(n_features, label, features, first_index)
    with plain_sentences(path):
        look(path)
        if not path.is_file():
            raise DataError(
                f"{path}: a pipe or device can be read only once; write the data to a file first."
            )
        kind, compressed = _kind(path)
        if kind in (".npz", ".parquet") and compressed:
            raise DataError(f"{path}: a {kind} file is read as it is; decompress it first.")
        if kind == ".npz":
            return read_npz(path, expected)
        if kind == ".parquet":
            return read_parquet(path, expected)
        if kind in (".csv", ".tsv"):
            return read_delimited(path, expected)
        return read_svmlight(path, expected)


def names_columns(path: str | os.PathLike[str]) -> bool:
    """Have the columns of this kind of file names?"""
    return _kind(Path(path))[0] in (".csv", ".tsv", ".parquet")


def _kind(path: Path) -> tuple[str, bool]:
    """The end of the name that says what the file holds, and whether that is compressed."""
    compressed = path.suffix.lower() in COMPRESSED
    return (path.with_suffix("") if compressed else path).suffix.lower(), compressed
