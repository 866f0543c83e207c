"""The files of a data set: the columns that they agree on, their rows block by block, or all rows in memory."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from glob import glob
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

from ..numerics.files import Fault, faults_of, place_of
from ..numerics.progress import READING_STOPPED, ReadingStoppedError
from .arrays import open_npz
from .columnar import open_columnar
from .delimited import open_table
from .files import ARROW, DELIMITED, check_file, data_errors, ending, kind_of, require_memory
from .svmlight import TEXT, in_columns, open_svmlight
from .table import LABEL_NAMES, Classes, DataError, Expected, Layout, Table, listed

ARROW_DATA = Path("Arrow data")  # in messages, in place of a file
# Bytes of text, or of numbers, that are read at a time: the allocator reuses memory of this size; in parts of 4 MB, 42
# MB of text took 21 ms to be read, not 3.5 ms, and in parts of 64 kB all of it took a tenth longer.
READ_BYTES = 1 << 20


@dataclass(frozen=True)
class Source:
    """Files of one format that are one data set; or Arrow data, whose only file is ARROW_DATA.

    Attributes
    ----------
    files : list of Path
    layouts : list of Layout
        Of the files.
    expected : Expected
    """

    files: list[Path]
    layouts: list[Layout]
    expected: Expected

    @property
    def layout(self) -> Layout:
        """The layout of the first file, with whose columns the others agree."""
        return self.layouts[0]

    @property
    def kind(self) -> Any:
        """The type of dense rows."""
        return np.float32 if all(layout.float32 for layout in self.layouts) else np.float64

    def rows(
        self, classes: Classes, interrupted: Callable[[], bool] = bool
    ) -> Generator[tuple[int, Any, np.ndarray | None], None, None]:
        """Yield all rows once, in blocks of about READ_BYTES: the number of the file, X, and label numbers or None.

        Raises
        ------
        DataError
            At the first fault of a file, and if there are no rows.
        ReadingStoppedError
            If `interrupted`.
        """
        stamps, found = self.stamps(), 0
        for k, (path, layout) in enumerate(zip(self.files, self.layouts, strict=True)):
            before = 0
            with data_errors(path), closing(layout.blocks(self.layout.features, READ_BYTES)) as blocks:
                for X, labels in blocks:
                    if interrupted():
                        raise ReadingStoppedError(f"{path}: {READING_STOPPED}")
                    numbers = None if labels is None else classes.numbered(labels, before)
                    before += X.shape[0]
                    yield k, X, numbers
            found += before
        if self.stamps() != stamps:
            raise DataError(f"{self.files[0]}: the file was changed while it was read; read it again.")
        if not found:
            raise DataError(f"{self.files[0]}: the file holds no rows.")

    def rows_for_model(self, classes: Classes) -> Iterator[tuple[Any, np.ndarray | None]]:
        """Yield the rows once in the columns of a model, and the number of the label of each, or None."""
        first = self.expected.first_index
        if self.layout.format == TEXT and first is None:  # all of the text tells
            with closing(self.rows(Classes())) as blocks:
                first = 0 if any(X.indices.min(initial=1) == 0 for _, X, _ in blocks) else 1
        for k, X, numbers in self.rows(classes):
            with faults_of(self.files[k], DataError):
                yield self.in_columns(X, first)[0], numbers

    def in_columns(self, X: Any, first: int | None) -> tuple[Any, int | None]:
        """Return rows in the columns of the data set, and the first index of svmlight text; None: X holds all rows."""
        width = self.expected.n_features
        if self.layout.format == TEXT:
            first = int(X.indices.min(initial=1) > 0) if first is None else first
            return in_columns(X, first, width), first
        if width is not None and sp.issparse(X) and X.shape[1] < width:
            X.resize(X.shape[0], width)
        if width is not None and X.shape[1] != width:
            raise Fault(
                f"there must be {width} features, and X has {X.shape[1]}; give the features of the fit."
            )
        return X, None

    def table(self) -> Table:
        """Return all rows in memory."""
        path, layout, classes = self.files[0], self.layout, Classes()
        with faults_of(path, DataError):
            require_memory(sum(one.needed for one in self.layouts))
        parts, numbers = list[Any](), list[np.ndarray]()
        for _, X, codes in self.rows(classes):
            parts.append(X)
            if codes is not None:
                numbers.append(codes)
        with faults_of(path, DataError):
            if sp.issparse(parts[0]):
                width = max(part.shape[1] for part in parts)
                for part in parts:
                    part.resize(part.shape[0], width)
                X = sp.csr_matrix(sp.vstack(parts, "csr"))
            else:
                X = np.concatenate(parts)
            X, first = self.in_columns(X, self.expected.first_index)
            labels, places = classes.sorted()
        y = labels[places[np.concatenate(numbers)]] if numbers else None
        self.say_label()
        return Table(X, y, layout.features, layout.label, first, layout.remembered)

    def say_label(self) -> None:
        """Warn of a label column that nobody has named."""
        name = self.layout.label
        unsaid = name is not None and self.expected.label is None and name.lower() not in LABEL_NAMES
        if unsaid and not self.expected.for_model:
            warnings.warn(
                f"{self.files[0]}: the last column, {name!r}, is taken for the labels; name the label column as y "
                "(--label).",
                UserWarning,
                stacklevel=4,
            )

    def stamps(self) -> list[tuple[str, int, int]]:
        """Return path, size and time of each file, by which changes are noticed."""
        files = [path for path in self.files if path is not ARROW_DATA]
        return [(str(path.absolute()), path.stat().st_size, path.stat().st_mtime_ns) for path in files]


def opened_stream(data: Any, expected: Expected) -> Source:
    """Return the columns of Arrow data, whose rows are not read yet; raise DataError where they are no numbers."""
    with data_errors(ARROW_DATA):
        import pyarrow as pa

        # in a reader of its own Ctrl-C stays a KeyboardInterrupt
        known = place_of(data) == "files" or isinstance(data, pa.RecordBatchReader)
        reader = data if known else pa.RecordBatchReader.from_stream(data)
        return Source([ARROW_DATA], [open_columnar(reader, expected)], expected)


def opened(sources: Sequence[Path], expected: Expected) -> Source:
    """Look at the beginning of each file, and return what all of them agree on.

    Parameters
    ----------
    sources : sequence of Path
        Files, patterns of files such as ``data/*.csv``, or folders.
    expected : Expected

    Raises
    ------
    DataError
        If a file is missing, or its format or columns are not those of the first.
    """
    files = [file for path in sources for file in _files(path)]
    layouts, asked = list[Layout](), expected
    for path in files:
        with data_errors(path):
            check_file(path)
            layout = _layout(path, expected)
            layouts.append(layout)
            _require_agreement(layout, layouts[0], files[0])
        expected = replace(expected, label=expected.label or layout.label)
    first = layouts[0]
    if first.features is None:
        for option, value in (("--label", asked.label), ("--columns", asked.use), ("--drop", asked.drop)):
            if value:
                raise DataError(
                    f"{files[0]}: {option} names a column of a .csv, .parquet or .arrow file, and the columns of this "
                    f"kind of file have no names; leave {option} out."
                )
    if expected.n_features not in (None, first.width or expected.n_features):
        raise DataError(f"{files[0]}: the file has {first.width} features, and not {expected.n_features}.")
    return Source(files, layouts, asked)


def _layout(path: Path, expected: Expected) -> Layout:
    """Look at the beginning of a file."""
    kind = kind_of(path, expected.header is not None or expected.delimiter is not None)
    if kind == ".npz":
        return open_npz(path)
    if kind == ".csv":
        return open_table(path, expected)
    return open_columnar(path, expected) if kind in (".parquet", *ARROW) else open_svmlight(path, expected)


def _require_agreement(layout: Layout, first: Layout, file: Path) -> None:
    """Raise Fault where the columns of a file are not those of the first."""
    if layout.format != first.format:
        raise Fault(f"this is {layout.format}, and {file} is {first.format}; read files of one format.")
    if layout.width != first.width:
        raise Fault(
            f"there are {layout.width} features, and not {first.width}; all files need the same columns."
        )
    if layout.label != first.label or {*(layout.features or ())} != {*(first.features or ())}:
        raise Fault(
            f"the columns are {listed(layout.features or [])} with the label {layout.label!r}, and those of {file} are "
            f"{listed(first.features or [])} with the label {first.label!r}; all files need the same columns."
        )


def _files(path: Path) -> list[Path]:
    """Return a file, those of a pattern, or the tables of one kind of a folder, in the order of their names.

    Of Parquet, Arrow and text tables the first kind is taken: notes beside a table are often .csv files.
    """
    if not path.exists() and (found := sorted(glob(str(path), recursive=True))):
        return [file for one in found for file in _files(Path(one))]
    if not path.is_dir():
        return [path]
    hidden = ("_", ".")  # of other programs, which keep notes in such files
    files = sorted(file for file in path.rglob("*") if file.is_file() and not file.name.startswith(hidden))
    for kinds in ((".parquet",), ARROW, DELIMITED):
        if found := [file for file in files if ending(file) in kinds]:
            return found
    raise DataError(f"{path}: there are no .parquet, .arrow or .csv files in this folder; name a file.")
