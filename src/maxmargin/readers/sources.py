"""The files of a data set, which is read block by block: their formats, the columns that they agree on, their rows."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from ..numerics.files import Fault, faults_of, names_files
from ..numerics.progress import READING_STOPPED, ReadingStoppedError
from .arrays import mapped_array, stream_arrays
from .columnar import bytes_needed, columns_of_file, columns_of_schema, stream_arrow, stream_columnar
from .delimited import TextTable, stream_delimited, text_table
from .files import ARROW, CHANGED, DELIMITED, TABLE, Paths, check_file, data_errors, ending, kind_of, paths_of
from .svmlight import PART, stream_svmlight, text_rows, texts
from .table import Block, Classes, DataError, Expected, listed

ARROW_DATA = Path("Arrow data")  # in messages, in place of a file
_TEXT = "svmlight text"
_COLUMNAR = {".parquet": "Parquet", **dict.fromkeys(ARROW, "Arrow")}
_FORMATS = _COLUMNAR | {".npy": ".npy", TABLE: "CSV"}


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
    data : pyarrow.dataset.Dataset, pyarrow.RecordBatchReader or None
        Arrow data in place of files; a reader can be read once.
    tables : dict
        The layout of each text table.
    """

    files: list[Path]
    label_files: list[Path]
    format: str
    features: Any
    label: str | None
    width: int | None
    dtype: Any
    expected: Expected
    data: Any = None
    tables: dict[Path, TextTable] = field(default_factory=dict, init=False)

    @property
    def layout(self) -> dict[str, Any]:
        """What a model has to know of the layout of text tables: `TextTable.remembered` of the first."""
        return self.tables[self.files[0]].remembered(self.expected) if self.tables else {}

    @property
    def is_text(self) -> bool:
        """Whether the files are svmlight text."""
        return self.format == _TEXT

    @property
    def has_labels(self) -> bool:
        """Whether the files have labels, which those for a model need not have."""
        return self.is_text or self.label is not None or bool(self.label_files)

    def blocks(self, k: int, size: int) -> Generator[Block, None, None]:
        """Read a file block by block; raise DataError at its first fault.

        Indices of svmlight text for a model are those of its columns, and as in the text otherwise.
        """
        path, single = self.files[k], self.dtype == np.float32
        with data_errors(path):
            if self.data is not None:
                yield from stream_arrow(self.data, self.features, self.label, single, size)
            elif self.is_text and self.expected.first_index is not None:
                for rows in stream_svmlight(path, self.width, size, self.expected.first_index):
                    yield Block(rows.X, rows.y)
            elif self.is_text:
                with closing(texts(path, size)) as parts:
                    for rows in text_rows(parts, self.width, None):
                        yield Block(rows, rows.labels)
            elif self.format == ".npy":
                yield from stream_arrays(path, self.label_files[k] if self.label_files else None, size)
            elif self.format == "CSV":
                yield from stream_delimited(self.tables[path], size)
            else:
                yield from stream_columnar(path, self.format, self.features, self.label, single, size)

    def rows(
        self, classes: Classes, size: int, interrupted: Callable[[], bool] = bool
    ) -> Iterator[tuple[int, Any, np.ndarray | None]]:
        """Yield the rows of all files once, in blocks: the number of the file, X, and that of each label, or None.

        Raises
        ------
        DataError
            At the first fault of a file, and if there are no rows.
        ReadingStoppedError
            If `interrupted`.
        """
        stamps, found = self.stamps(), 0
        for k, path in enumerate(self.files):
            before = 0
            with closing(self.blocks(k, size)) as blocks:
                for block in blocks:
                    if interrupted():
                        raise ReadingStoppedError(f"{path}: {READING_STOPPED}")
                    with faults_of(path, DataError):
                        numbers = None if block.labels is None else classes.numbered(block, before)
                    before += block.X.shape[0] if numbers is None else numbers.size
                    yield k, block.X, numbers
            found += before
        if self.stamps() != stamps:
            raise DataError(f"{self.files[0]}: {CHANGED}")
        if not found:
            raise DataError(f"{self.files[0]}: the file holds no rows.")

    def bytes_needed(self) -> float:
        """Return an estimate of the bytes that the tables of one file take in memory."""
        path = self.files[0]
        if self.format == "CSV":
            return self.tables[path].needed
        return bytes_needed(path, self.format, self.width or 1)

    def stamps(self) -> list[tuple[str, int, int]]:
        """Return path, size and time of each file, by which changes are noticed."""
        files = [] if self.data is not None else [*self.files, *self.label_files]
        return [(str(path.absolute()), path.stat().st_size, path.stat().st_mtime_ns) for path in files]


def opened_stream(data: Any, expected: Expected) -> Source:
    """Return the columns of Arrow data, whose rows are not read yet; raise DataError where they are no numbers."""
    with data_errors(ARROW_DATA):
        import pyarrow as pa

        # in a reader of its own Ctrl-C stays a KeyboardInterrupt
        known = names_files(data) or isinstance(data, pa.RecordBatchReader)
        reader = data if known else pa.RecordBatchReader.from_stream(data)
        features, label, single = columns_of_schema(reader.schema, expected)
    kind = np.dtype(np.float32 if single else np.float64)
    return Source([ARROW_DATA], [], "Arrow", features, label, len(features), kind, expected, reader)


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
    kinds: list[Any] = []
    table = expected.header is not None or expected.delimiter is not None
    for path in files:
        with data_errors(path):
            check_file(path)
            kind = kind_of(path, table)
            if kind == ".npz":
                raise Fault("an .npz file cannot be read block by block; save X and y as .npy files.")
            form = _FORMATS.get(kind, _TEXT)
            if path is not files[0] and form != source.format:
                raise Fault(f"this is {form}, and {files[0]} is {source.format}; read files of one format.")
            source.format = form
            if form == ".npy":
                kinds.append(_check_array(path, source))
            elif form != _TEXT:
                source.expected = replace(expected, label=expected.label or source.label)
                kinds.append(_check_columns(path, source))
    if len(labels) != (len(files) if source.format == ".npy" else 0) and (labels or not expected.for_model):
        raise DataError(
            f"{files[0]}: name one .npy file of labels for each .npy file of rows, and none otherwise."
        )
    for path in labels:
        check_file(path)
    if kinds:
        source.dtype = np.result_type(*kinds)
    if n_features is not None and source.width != n_features:
        raise DataError(f"{files[0]}: the file has {source.width} features, and not {n_features}.")
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
    X = mapped_array(path)
    if X.ndim != 2:
        raise Fault(f"X must have two dimensions, rows and features; its shape is {X.shape}: reshape it.")
    if source.width not in (None, X.shape[1]):
        raise Fault(
            f"there are {X.shape[1]} columns, and not {source.width}; all files need the same columns."
        )
    source.width = X.shape[1]
    return X.dtype if X.dtype == np.float32 else np.float64


def _check_columns(path: Path, source: Source) -> Any:
    """Return the type of the features of a table, whose columns have to be those of the first file."""
    kind, table = np.float64, None
    if source.format == "CSV":
        table = text_table(path, source.expected)
        features, label = table.features, table.label
    else:
        features, label, single = columns_of_file(path, source.expected, source.format)
        kind = np.float32 if single else np.float64
    if source.features is None:
        source.features, source.label = features, label
        source.width = len(features)
    if label != source.label or {*features} != {*source.features}:
        raise Fault(
            f"the columns are {listed(features)} with the label {label!r}, and those of {source.files[0]} are "
            f"{listed(source.features)} with the label {source.label!r}; all files need the same columns."
        )
    if table is not None:
        source.tables[path] = replace(table, features=source.features)
    return kind


class RowsForModel:
    """The rows of files in the columns of a model, and the labels of those that have any.

    Parameters
    ----------
    paths : path-like or sequence of path-like
        Files as of `row_cache.open_rows`, or a data set of pyarrow.
    expected : Expected
        Of the model.

    Attributes
    ----------
    features : list of str or None
    label : str or None
        The columns, if they have names.
    has_labels : bool

    Raises
    ------
    DataError
        If a file cannot be read, or does not fit the model.
    """

    def __init__(self, paths: Paths, expected: Expected) -> None:
        self._source = opened(paths_of(paths), (), expected, expected.n_features)
        self._classes = Classes()
        self.features, self.label = self._source.features, self._source.label
        self.has_labels = self._source.has_labels
        if self._source.is_text and expected.first_index is None:
            first = _first_index(self._source.files)
            self._source.expected = replace(self._source.expected, first_index=first)

    def blocks(self) -> Iterator[tuple[Any, np.ndarray | None]]:
        """Yield the rows once, as arrays or CSR matrices, with the number of the label of each, or None."""
        for _, X, numbers in self._source.rows(self._classes, PART):
            yield X, numbers

    def labels(self) -> np.ndarray:
        """Return the label of each number, when all blocks have been read; raise DataError at NaN or infinity."""
        with faults_of(self._source.files[0], DataError):
            classes, places = self._classes.sorted()
        return classes[places]


def _first_index(files: list[Path]) -> int:
    """Return the first index of svmlight text, 0 or 1, by the rule of `readers.read`: all of it is read."""
    for path in files:
        with data_errors(path):
            if any(rows.lowest == 0 for rows in text_rows(texts(path, PART), None, None)):
                return 0
    return 1
