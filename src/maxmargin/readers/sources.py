"""The files of a data set: the columns that they agree on, and their rows block by block, or as arrays."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from functools import partial
from glob import glob
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

from ..numerics.files import Fault, faults_of, place_of
from ..numerics.progress import READING_STOPPED, ReadingStoppedError
from ..numerics.sizes import parse_bytes, size_text
from .archives import open_npz
from .columnar import open_table
from .files import ARROW, DELIMITED, check_file, data_errors, ending, kind_of
from .svmlight import TEXT, in_columns, svmlight_blocks
from .table import LABEL_NAMES, Classes, DataError, Expected, Layout, Table, TooLargeError, listed

ARROW_DATA = Path("Arrow data")  # in messages, in place of a file
# Bytes of text, or of numbers, that are read at a time: the allocator reuses memory of this size.
READ_BYTES = 1 << 20
CSR = ("data", "indices", "indptr")  # the arrays of sparse rows


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
        blocks: Any = ((X, numbers) for _, X, numbers in self.rows(classes))
        if self.layout.format == TEXT:
            assert self.expected.n_features is not None
            blocks = in_columns(blocks, self.expected.n_features, self.expected.first_index)
        with faults_of(self.files[0], DataError):
            for X, numbers, *_ in blocks:
                yield X, numbers

    def collected(
        self, folder: Path | None = None, interrupted: Callable[[], bool] = bool
    ) -> tuple[dict[str, np.ndarray], np.ndarray, dict[str, Any]]:
        """Return all rows as arrays in memory, or in files of a folder; the classes; and what `table` needs besides."""
        classes, counts, highest, lowest = Classes(), [0] * len(self.files), -1, 1
        most = parse_bytes(None)  # the parts are copied to one array in the end
        growing, entries = _Growing(folder, all(layout.float32 for layout in self.layouts)), 0
        for k, X, numbers in self.rows(classes, interrupted):
            counts[k] += X.shape[0]
            highest = max(highest, X.shape[1] - 1)
            if folder is None and growing.nbytes > most:
                raise TooLargeError(
                    f"{self.files[k]}: half of the free memory, {size_text(most)}, is too little; name the memory "
                    "to use with memory, use sparse data, or fewer rows."
                )
            if numbers is not None:
                growing.append("codes", numbers)
            if not sp.issparse(X):
                growing.append("X", X)
                continue
            lowest = min(lowest, int(X.indices.min(initial=1)))
            growing.append("indptr", X.indptr[bool(entries) :].astype(np.int64) + entries)
            entries += X.nnz
            growing.append("data", X.data)
            growing.append("indices", X.indices)
        arrays, first = growing.arrays(), None
        with faults_of(self.files[0], DataError):
            names, places = classes.sorted()
        if "codes" in arrays:
            _replace(arrays["codes"], lambda codes: places[codes])
        if self.layout.format == TEXT:
            first = int(lowest > 0) if self.expected.first_index is None else self.expected.first_index
            if first:
                _replace(arrays["indices"], lambda indices: indices - first)
        width = self.layout.width or max(highest + 1 - (first or 0), 1)
        return arrays, names, {"rows": counts, "first_index": first, "width": width}

    def table(self, arrays: dict[str, np.ndarray], classes: np.ndarray, facts: dict[str, Any]) -> Table:
        """Return the rows of `collected`."""
        layout, width, first = self.layout, facts["width"], facts["first_index"]
        wanted = self.expected.n_features or width
        if wanted < width:
            raise DataError(
                f"{self.files[0]}: the index {width - 1 + (first or 0)} is beyond the {wanted} features (indices count "
                f"from {first})."
            )
        if "X" in arrays:
            X: Any = arrays["X"].reshape(-1, width)
        else:  # the constructor would read, and may copy, all arrays
            X = sp.csr_matrix((0, wanted))
            X.data, X.indices, X.indptr = (arrays[name] for name in CSR)
            X._shape = X.indptr.size - 1, wanted
            X.has_sorted_indices = X.has_canonical_format = layout.format == TEXT
        files = tuple(zip(self.files, facts["rows"], strict=True))
        self._say_label()
        return Table(
            X, arrays.get("codes"), classes, layout.features, layout.label, first, layout.remembered, files
        )

    def _say_label(self) -> None:
        """Warn of a label column that nobody has named."""
        name, expected = self.layout.label, self.expected
        if name is None or expected.label is not None or expected.for_model or name.lower() in LABEL_NAMES:
            return
        warnings.warn(
            f"{self.files[0]}: the last column, {name!r}, is taken for the labels; name it as y (--label).",
            UserWarning,
            stacklevel=4,
        )

    def stamps(self) -> list[tuple[str, int, int]]:
        """Return path, size and time of each file, by which changes are noticed."""
        files = [path for path in self.files if path is not ARROW_DATA]
        return [(str(path.absolute()), path.stat().st_size, path.stat().st_mtime_ns) for path in files]


def loaded(X: Any) -> Any:
    """Return the rows of memory maps as a matrix in memory."""
    if not sp.issparse(X):
        return np.array(X)
    return sp.csr_matrix((X.data[:], X.indices[:], X.indptr[:]), X.shape)


class _Growing:
    """Arrays that grow by parts: in memory, or in files of a folder whose names are theirs."""

    def __init__(self, folder: Path | None, float32: bool) -> None:
        self.folder, self.parts, self.nbytes = folder, dict[str, list[np.ndarray]](), 0
        self.kinds: dict[str, Any] = {
            "X": np.float32 if float32 else np.float64,
            "codes": np.uint32, "data": np.float64, "indices": np.int32, "indptr": np.int64,
        }  # fmt: skip

    def append(self, name: str, part: np.ndarray) -> None:
        """Add a part to an array."""
        self.nbytes += part.nbytes
        if self.folder is None:
            self.parts.setdefault(name, []).append(part)
            return
        with open(self.folder / name, "ab") as file:
            file.write(np.ascontiguousarray(part, self.kinds[name]).data.cast("B") if part.size else b"")

    def arrays(self) -> dict[str, np.ndarray]:
        """Return all arrays."""
        if self.folder is None:
            return {name: np.concatenate(parts) for name, parts in self.parts.items()}
        return mapped(self.folder, {path.name: self.kinds[path.name] for path in self.folder.iterdir()}, "r+")


def mapped(folder: Path, kinds: dict[str, Any], mode: Any = "r") -> dict[str, np.ndarray]:
    """Return the arrays in files of a folder, of these types, mapped into memory; an empty file cannot be mapped."""
    return {
        name: np.memmap(folder / name, kind, mode) if (folder / name).stat().st_size else np.zeros(0, kind)
        for name, kind in kinds.items()
    }


def _replace(entries: np.ndarray, function: Callable[[np.ndarray], Any]) -> None:
    """Replace the entries of an array by a function of them, 4 MB at a time."""
    for start in range(0, entries.size, 1 << 20):
        part = slice(start, start + (1 << 20))
        entries[part] = function(entries[part])


def opened_stream(data: Any, expected: Expected) -> Source:
    """Return the columns of Arrow data, whose rows are not read yet; raise DataError where they are no numbers."""
    with data_errors(ARROW_DATA):
        import pyarrow as pa

        # in a reader of its own Ctrl-C stays a KeyboardInterrupt
        known = place_of(data) == "files" or isinstance(data, pa.RecordBatchReader)
        reader = data if known else pa.RecordBatchReader.from_stream(data)
        return Source([ARROW_DATA], [open_table(reader, "", expected)], expected)


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
    if first.features is None and (asked.label or asked.use or asked.drop):
        raise DataError(
            f"{files[0]}: the columns of this kind of file have no names; leave out --label, --columns and --drop."
        )
    if expected.n_features not in (None, first.width or expected.n_features):
        raise DataError(f"{files[0]}: the file has {first.width} features, and not {expected.n_features}.")
    return Source(files, layouts, asked)


def _layout(path: Path, expected: Expected) -> Layout:
    """Look at the beginning of a file."""
    kind = kind_of(path, expected.header is not None or expected.delimiter is not None)
    if kind == ".npz":
        return open_npz(path, expected)
    if kind:
        return open_table(path, kind, expected)
    return Layout(TEXT, partial(svmlight_blocks, path, expected))


def _require_agreement(layout: Layout, first: Layout, file: Path) -> None:
    """Raise Fault where the columns of a file are not those of the first."""
    facts, texts = list[Any](), list[str]()
    for one in (layout, first):
        names = sorted(one.features or ())
        facts.append((one.format, one.width, one.label, names))
        texts.append(f"{one.format} with the features {listed(names)} and the label {one.label!r}")
    if facts[0] != facts[1]:
        raise Fault(
            f"this is {texts[0]}, and {file} is {texts[1]}; files need one format and the same columns."
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
