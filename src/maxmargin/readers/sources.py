"""The files of a data set, which is read block by block: their formats, and the columns that they agree on."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from ..numerics.fault import Fault
from .arrays import array_shape, stream_arrays
from .blocks import Block, read_ahead
from .columnar import columns_of_file, stream_columnar
from .delimited import header, label_fault, refuse_row_as_header
from .delimited_stream import stream_delimited
from .files import ARROW, DELIMITED, Digest, check_file, data_errors, kind_of, open_data, sample
from .svmlight import checked_lines, text_rows, texts
from .table import DataError, Expected, columns, listed

CHANGED = "the file was changed while it was read; read it again."
_TEXT = "svmlight text"
_COLUMNAR = {".parquet": "Parquet", **dict.fromkeys(ARROW, "Arrow")}
_FORMATS = _COLUMNAR | {".npy": ".npy"} | dict.fromkeys(DELIMITED, "CSV")


@dataclass
class Source:
    """Files of one format that are one data set.

    Attributes
    ----------
    files, label_files : list of Path
    format : str
    features, label : list of str, str or None
        The columns, in the order of the first file.
    width : int or None
        Number of features; None where only the rows of svmlight text say it.
    dtype : dtype
    expected : Expected
    """

    files: list[Path]
    label_files: list[Path]
    format: str
    features: list[str] | None
    label: str | None
    width: int | None
    dtype: Any
    expected: Expected

    @property
    def is_text(self) -> bool:
        """Whether the files are svmlight text."""
        return self.format == _TEXT

    def blocks(self, k: int, size: int, digest: Digest, of_labels: Digest | None) -> Iterator[Block]:
        """Read a file block by block; digests are complete at its end.

        Raises
        ------
        DataError
            At the first fault of the file.
        """
        path = self.files[k]
        features: Any = self.features
        label: Any = self.label
        with data_errors(path):
            if self.is_text:
                with closing(read_ahead(texts(path, size, digest))) as parts:
                    for rows, _, _ in text_rows(parts, None, None):
                        yield Block(rows, rows.labels, slice(None), rows.rounded)
            elif of_labels is not None:
                yield from stream_arrays(path, self.label_files[k], size, digest, of_labels)
            elif self.format == "CSV":
                delimiter, names, _ = header(path, self.expected)
                yield from stream_delimited(path, delimiter, names, features, label, size, digest)
            else:
                single = self.dtype == np.float32
                yield from stream_columnar(path, self.format, features, label, single, size, digest)

    def check_indices(self, first: int, highest: int) -> int | None:
        """Return the width that was given; raise DataError at the first index of svmlight text beyond it."""
        if self.width is not None and highest - first >= self.width:
            for path in self.files:
                with data_errors(path), open_data(path) as lines:
                    for _ in checked_lines(lines, 0, self.width, first):
                        pass
            raise DataError(f"{self.files[0]}: {CHANGED}")
        return self.width

    def check_classes(
        self, labels: np.ndarray | list[str], classes: np.ndarray, numbers: np.ndarray, records: list[Any]
    ) -> None:
        """Raise DataError where a label given as text is NaN or infinite, or the header of a table seems to be a row.

        Parameters
        ----------
        labels : list of str or ndarray
            In the order of their numbers.
        classes : ndarray
        numbers : ndarray of shape (n,)
            The number of the label of each row.
        records : list of dict
            Of the files, with their numbers of rows.
        """
        if not isinstance(labels, list):
            return
        label: Any = self.label
        if self.format == "CSV":
            with data_errors(self.files[0]):
                refuse_row_as_header(self.features or [], label, labels, self.expected)
        if classes.dtype.kind != "f" or np.isfinite(classes).all():
            return
        wrong = [k for k, text in enumerate(labels) if not np.isfinite(float(text))]
        row = int(np.flatnonzero(np.isin(numbers, wrong))[0])
        text = labels[numbers[row]]
        k = 0
        while row >= records[k]["rows"]:
            row, k = row - records[k]["rows"], k + 1
        path = self.files[k]
        with data_errors(path):
            if self.format == "CSV":
                raise label_fault(path, header(path, self.expected)[0], row, label, text)
            raise Fault(f"the label of row {row + 1} (counted from 1) is {text}; leave the row out.")


def opened(
    sources: Sequence[Path],
    labels: Sequence[Path],
    label: str | None,
    use: Sequence[str],
    drop: Sequence[str],
    n_features: int | None,
) -> Source:
    """Look at the beginning of each file, and return what all of them agree on.

    Raises
    ------
    DataError
        If a file is missing, or its format or columns are not those of the first.
    """
    files = [file for path in sources for file in _files(path)]
    source = Source(files, [*labels], "", None, None, n_features, np.dtype(float), Expected())
    if not files:
        raise DataError("no file is named; name at least one.")
    kinds: list[Any] = []
    for path in files:
        with data_errors(path):
            check_file(path)
            kind = kind_of(path)
            if kind == ".npz":
                raise Fault("an .npz file cannot be read block by block; save X and y as .npy files.")
            form = _FORMATS.get(kind, _TEXT)
            if path is not files[0] and form != source.format:
                raise Fault(f"this is {form}, and {files[0]} is {source.format}; read files of one format.")
            source.format = form
            if form == _TEXT:
                sample(path)  # raises where it is no text
            elif form == ".npy":
                kinds.append(_check_array(path, source))
            else:
                source.expected = Expected(label=label or source.label, use=use, drop=drop)
                kinds.append(_check_columns(path, source))
    if len(labels) != (len(files) if source.format == ".npy" else 0):
        raise DataError(
            f"{files[0]}: name one .npy file of labels for each .npy file of rows, and none otherwise."
        )
    for path in labels:
        with data_errors(path):
            check_file(path)
    if source.format in (*_COLUMNAR.values(), ".npy"):
        source.dtype = np.result_type(*kinds)
    if n_features is not None and source.width != n_features:
        raise DataError(f"{files[0]}: the file has {source.width} features, and n_features is {n_features}.")
    return source


def _files(path: Path) -> list[Path]:
    """Return a file, or the Parquet files of a folder in the order of their names."""
    if not path.is_dir():
        return [path]
    hidden = ("_", ".")  # of other programs, which keep notes in such files
    found = sorted(file for file in path.rglob("*.parquet") if not file.name.startswith(hidden))
    if not found:
        raise DataError(f"{path}: there are no .parquet files in this folder; name a file.")
    return found


def _check_array(path: Path, source: Source) -> Any:
    """Return the type of the rows of a .npy file, whose width has to be that of the first file."""
    shape, kind, _ = array_shape(path)
    if len(shape) != 2 or not shape[1]:
        raise Fault(f"X must have two dimensions, rows and features; its shape is {shape}: reshape it.")
    if source.width is not None and shape[1] != source.width:
        raise Fault(f"there are {shape[1]} columns, and not {source.width}; all files need the same columns.")
    source.width = shape[1]
    return kind if kind == np.float32 else np.float64


def _check_columns(path: Path, source: Source) -> Any:
    """Return the type of the features of a table, whose columns have to be those of the first file."""
    kind: Any = np.float64
    if source.format == "CSV":
        features, label = columns(header(path, source.expected)[1], source.expected)
    else:
        features, label, single = columns_of_file(path, source.expected, source.format)
        kind = np.float32 if single else np.float64
    if source.features is None:
        source.features, source.label = features, label
        source.width = len(features)
    strange = {*features} ^ {*source.features}
    if strange:
        name = min(strange)
        where = f"is not a column of {source.files[0]}" if name in features else "is missing"
        raise Fault(f"the column {name!r} {where}; all files need the same columns ({listed(features)}).")
    return kind
