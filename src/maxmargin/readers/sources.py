"""The files of a data set, which is read block by block: their formats, and the columns that they agree on."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from ..numerics.fault import Fault
from ..numerics.labels import bad_label
from .arrays import array_shape, stream_arrays
from .blocks import Block, Classes, read_ahead
from .cache_folder import file_record
from .columnar import columns_of_file, stream_columnar
from .delimited import TextTable, label_fault, refuse_row_as_header
from .delimited_stream import stream_delimited
from .files import ARROW, DELIMITED, Digest, check_file, data_errors, ending, open_data, sample
from .layout import Layout, kind_of_file, layout_of
from .svmlight import checked_lines, stream_svmlight, text_rows, texts
from .table import DataError, Expected, listed

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
    layouts : dict
        The layout of each text table.
    """

    files: list[Path]
    label_files: list[Path]
    format: str
    features: list[str] | None
    label: str | None
    width: int | None
    dtype: Any
    expected: Expected
    layouts: dict[Path, Layout] = field(default_factory=dict, init=False)

    @property
    def layout(self) -> dict[str, Any]:
        """What a model has to know of the layout of text tables: `Layout.remembered` of the first."""
        return self.layouts[self.files[0]].remembered(self.expected) if self.layouts else {}

    @property
    def is_text(self) -> bool:
        """Whether the files are svmlight text."""
        return self.format == _TEXT

    @property
    def has_labels(self) -> bool:
        """Whether the files have labels, which those for a model need not have."""
        return self.is_text or self.label is not None or bool(self.label_files)

    def blocks(
        self, k: int, size: int, digest: Digest | None = None, of_labels: Digest | None = None
    ) -> Iterator[Block]:
        """Read a file block by block; digests are complete at its end.

        Indices of svmlight text for a model are those of its columns, and as in the text otherwise.

        Raises
        ------
        DataError
            At the first fault of the file.
        """
        path = self.files[k]
        features: Any = self.features
        label = self.label
        with data_errors(path):
            if self.is_text and self.expected.first_index is not None:
                for rows in stream_svmlight(path, self.width, size, self.expected.first_index):
                    yield Block(rows.X, rows.y, slice(None), rows.rounded)
            elif self.is_text:
                with closing(read_ahead(texts(path, size, digest))) as parts:
                    for rows, _, _ in text_rows(parts, None, None):
                        yield Block(rows, rows.labels, slice(None), rows.rounded)
            elif self.format == ".npy":
                labels = self.label_files[k] if self.label_files else None
                yield from stream_arrays(path, labels, size, digest, of_labels)
            elif self.format == "CSV":
                yield from stream_delimited(self._table(path), size, digest)
            else:
                single = self.dtype == np.float32
                yield from stream_columnar(path, self.format, features, label, single, size, digest)

    def _table(self, path: Path) -> TextTable:
        """Return the text table of a file."""
        return TextTable(path, self.layouts[path], self.features or [], self.label)

    def record(self, path: Path) -> dict[str, Any]:
        """Return path, size, inode and times of a file."""
        return file_record(path)

    def check_indices(self, first: int, highest: int) -> int | None:
        """Return the width that was given; raise DataError at the first index of svmlight text beyond it."""
        if self.width is not None and highest - first >= self.width:
            for path in self.files:
                with data_errors(path), open_data(path) as lines:
                    for _ in checked_lines(lines, 0, self.width, first):
                        pass
            raise DataError(f"{self.files[0]}: {CHANGED}")
        return self.width

    def check_classes(self, found: Classes, classes: np.ndarray, records: list[Any]) -> None:
        """Raise DataError where a label given as text is NaN or infinite, or the header of a table seems to be a row.

        Parameters
        ----------
        found : Classes
            The labels of all rows.
        classes : ndarray
            As of `Classes.sorted`.
        records : list of dict
            Of the files, with their numbers of rows.
        """
        labels = found.labels
        if not isinstance(labels, list):
            return
        if self.format == "CSV":
            with data_errors(self.files[0]):
                refuse_row_as_header(self._table(self.files[0]), labels, self.expected)
        if bad_label(classes) is None:
            return
        row, text = min(
            (found.first_rows[k], text) for k, text in enumerate(labels) if not np.isfinite(float(text))
        )
        k = 0
        while row >= records[k]["rows"]:
            row, k = row - records[k]["rows"], k + 1
        path = self.files[k]
        with data_errors(path):
            if self.format == "CSV":
                raise label_fault(self._table(path), row, text)
            raise Fault(f"the label of row {row + 1} (counted from 1) is {text}; leave the row out.")


def opened(
    sources: Sequence[Path], labels: Sequence[Path], expected: Expected, n_features: int | None
) -> Source:
    """Look at the beginning of each file, and return what all of them agree on.

    Parameters
    ----------
    sources, labels : sequence of Path
        Files of rows, or folders of them; .npy files of labels, which rows for a model need not have.
    expected : Expected
    n_features : int or None
        The number of features, if it is known.

    Raises
    ------
    DataError
        If a file is missing, or its format or columns are not those of the first.
    """
    files = [file for path in sources for file in _files(path)]
    source = Source(files, [*labels], "", None, None, n_features, np.dtype(float), expected)
    if not files:
        raise DataError("no file is named; name at least one.")
    kinds: list[Any] = []
    for path in files:
        with data_errors(path):
            check_file(path)
            kind = kind_of_file(path, expected)
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
                source.expected = replace(expected, label=expected.label or source.label)
                kinds.append(_check_columns(path, source))
    if len(labels) != (len(files) if source.format == ".npy" else 0) and (labels or not expected.for_model):
        raise DataError(
            f"{files[0]}: name one .npy file of labels for each .npy file of rows, and none otherwise."
        )
    for path in labels:
        with data_errors(path):
            check_file(path)
    if source.format in (*_COLUMNAR.values(), ".npy"):
        source.dtype = np.result_type(*kinds)
    if n_features is not None and source.width != n_features:
        asked = "the model has" if expected.for_model else "n_features is"
        raise DataError(f"{files[0]}: the file has {source.width} features, and {asked} {n_features}.")
    return source


def _files(path: Path) -> list[Path]:
    """Return a file, or the Parquet, Arrow or text tables of a folder, of one kind, in the order of their names.

    Of several kinds the first of these is taken: notes beside a table are often .csv files.
    """
    if not path.is_dir():
        return [path]
    hidden = ("_", ".")  # of other programs, which keep notes in such files
    files = sorted(file for file in path.rglob("*") if file.is_file() and not file.name.startswith(hidden))
    for kinds in ((".parquet",), ARROW, DELIMITED):
        if found := [file for file in files if ending(file) in kinds]:
            return found
    raise DataError(f"{path}: there are no .parquet, .arrow or .csv files in this folder; name a file.")


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
        layout = source.layouts[path] = layout_of(path, source.expected)
        features, label = layout.columns(source.expected)
        layout.announce(path)
    else:
        features, label, single = columns_of_file(path, source.expected, source.format)
        kind = np.float32 if single else np.float64
    if source.features is None:
        source.features, source.label = features, label
        source.width = len(features)
    if label != source.label:
        raise Fault(
            f"the label column is {label!r}, and not {source.label!r}; all files need the same columns."
        )
    strange = {*features} ^ {*source.features}
    if strange:
        name = min(strange)
        where = f"is not a column of {source.files[0]}" if name in features else "is missing"
        raise Fault(f"the column {name!r} {where}; all files need the same columns ({listed(features)}).")
    return kind
