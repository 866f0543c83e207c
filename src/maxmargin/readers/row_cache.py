"""Rows of files of any size, read once and kept on disk in row-major order."""

from __future__ import annotations

import json
import os
import shutil
import tempfile
import weakref
from bisect import bisect_right
from collections.abc import Callable, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field
from hashlib import sha256
from itertools import accumulate
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

from ..numerics.files import (
    delete_left_over,
    faults_of,
    folder_of_this_process,
    temporary_name,
)
from ..numerics.progress import announce
from ..numerics.sizes import size_text
from .files import Paths, paths_of
from .sources import Source, opened, opened_stream
from .svmlight import columns_of
from .table import Classes, DataError, Expected

SUFFIX = ".maxmargin-cache"
# bytes of text, or of numbers, that are read at a time: less costs calls, more costs memory, of which there are a few
# blocks at any time
BLOCK_BYTES = 1 << 20
# A solver in memory needs so many times the bytes of the rows: these, and what it keeps beside them.
IN_MEMORY_COPIES = 2.0
CSR = ("data", "indices", "indptr")  # the arrays of sparse rows
_HEADER = "header.json"
_ROWS = 1 << 20  # codes that are rewritten at a time: 4 MB
_LONGEST = 150  # bytes of the name of a source within that of its cache


@dataclass(frozen=True)
class StoredRows:
    """Rows on disk, mapped into memory.

    Attributes
    ----------
    X : ndarray or CSR matrix of shape (n, d)
        A read-only memory map, or a CSR matrix of three, whose indices are sorted.
    codes : ndarray of shape (n,)
        The class of each row, as its place in `classes`; a read-only memory map.
    classes : ndarray
        Sorted, as `numpy.unique` returns them.
    feature_names : list of str or None
    label_name : str or None
    first_index : {0, 1} or None
        The first index of svmlight text.
    files : tuple of (Path, int)
        The files in their order, and the number of rows of each.
    layout : dict
        As of `Table`.
    """

    X: Any
    codes: np.ndarray
    classes: np.ndarray
    feature_names: list[str] | None
    label_name: str | None
    first_index: int | None
    files: tuple[tuple[Path, int], ...]
    layout: dict[str, Any] = field(default_factory=dict)

    def place(self, row: int) -> tuple[Path, int]:
        """Return the file of a row and its number in this file, both counted from 0."""
        ends = list(accumulate(count for _, count in self.files))
        k = bisect_right(ends, row)
        return self.files[k][0], row - (ends[k - 1] if k else 0)


def open_rows(
    source: Paths,
    *,
    cache_dir: str | os.PathLike[str] | None = None,
    label: str | None = None,
    use: Sequence[str] = (),
    drop: Sequence[str] = (),
    header: bool | None = None,
    delimiter: str | None = None,
    n_features: int | None = None,
    labels: Paths | None = None,
    block_bytes: int = BLOCK_BYTES,
    interrupted: Callable[[], bool] = bool,
) -> StoredRows:
    """Open rows of any number; the first time, they are read block by block and written to a cache.

    The cache is a folder whose name ends in ``.maxmargin-cache``. Its name depends on the paths, sizes and times of the
    files and on the options: where one of them changes, another cache takes its place.

    Parameters
    ----------
    source : path-like or sequence of path-like; or Arrow data
        Svmlight text, CSV, Parquet, Arrow or .npy files, or folders of tables. Several are one data set. Arrow data
        are a ``pyarrow.dataset.Dataset``, or an object with ``__arrow_c_stream__``, such as a table or a data frame:
        they are read each time, and their cache is deleted with the result.
    cache_dir : path-like, default=None
        The folder of the cache; by default that of the first source, and a temporary one for Arrow data.
    label, use, drop, header, delimiter
        Columns and layout of text tables, as in `Expected`.
    n_features : int, default=None
        Number of columns of svmlight text; by default the largest index says it.
    labels : path-like or sequence of path-like, default=None
        The .npy files of the labels, if the rows are in .npy files.
    block_bytes : int, default=1048576
        Bytes of text or of numbers that are read at a time.
    interrupted : callable, default=bool
        Whether to stop; called between blocks in the thread of the caller. By default never.

    Returns
    -------
    StoredRows

    Raises
    ------
    ReadingStoppedError
        If `interrupted` before all rows were read; no cache is left then.
    DataError
        If a file cannot be read, or the cache not be written.
    """
    expected = Expected(label=label, use=use, drop=drop, header=header, delimiter=delimiter)
    if not isinstance(source, str | os.PathLike | list | tuple):
        return _open_stream(opened_stream(source, expected), cache_dir, block_bytes, interrupted)
    sources, label_sources = paths_of(source), paths_of(labels or ())
    found = opened(sources, label_sources, expected, n_features)
    folder = _cache_place(sources[0], found, (label, use, drop, header, delimiter, n_features), cache_dir)
    try:
        return _stored(folder)
    except (OSError, ValueError, KeyError):  # there is none, or it is damaged
        _write(folder, found, block_bytes, interrupted)
        return _stored(folder)


def _cache_place(
    first: Path, source: Source, options: tuple[Any, ...], cache_dir: str | os.PathLike[str] | None
) -> Path:
    """Return the folder of a cache; the first part of the digest is that of the paths, the second of all else."""
    stamps = source.stamps()
    name = os.fsencode(first.name)[:_LONGEST].decode(errors="ignore")
    facts = [path for path, *_ in stamps], (stamps, options)
    parts = [sha256(repr(one).encode()).hexdigest()[:10] for one in facts]
    return Path(cache_dir or first.absolute().parent) / f"{name}-{'-'.join(parts)}{SUFFIX}"


def _open_stream(
    source: Source, cache_dir: str | os.PathLike[str] | None, size: int, interrupted: Callable[[], bool]
) -> StoredRows:
    """Return the rows of Arrow data in a cache that is deleted with them."""
    place = folder_of_this_process(Path(cache_dir or tempfile.gettempdir()), "rows")
    try:
        folder = place / f"arrow{SUFFIX}"
        _write(folder, source, size, interrupted)
        stored = _stored(folder)
    except BaseException:
        shutil.rmtree(place, ignore_errors=True)
        raise
    weakref.finalize(stored, shutil.rmtree, place, ignore_errors=True)
    return stored


def bytes_of(X: Any) -> float:
    """Return the bytes of a matrix in memory, where numbers other than float32 and float64 are float64."""
    item = 4.0 if X.dtype == np.float32 else 8.0
    return X.nnz * (item + 4.0) + 8.0 * X.shape[0] if sp.issparse(X) else float(X.size * item)


def loaded(X: Any) -> Any:
    """Return the rows of memory maps as a matrix in memory."""
    if not sp.issparse(X):
        return np.array(X)
    return sp.csr_matrix((X.data[:], X.indices[:], X.indptr[:]), X.shape)


def _stored(folder: Path) -> StoredRows:
    """Return the rows of a cache."""
    header = json.loads((folder / _HEADER).read_text(encoding="utf-8"))
    maps = {name: _mapped(folder / name, *shape) for name, shape in header["arrays"].items()}
    X = maps["X"] if "X" in maps else _csr([maps[name] for name in CSR], header["n_features"])
    classes = np.load(folder / "classes.npy")
    files = tuple((Path(path), count) for path, count in header["files"])
    return StoredRows(X, maps["codes"], classes, files=files, **header["facts"])


def _mapped(path: Path, kind: str, shape: list[int]) -> np.ndarray:
    """Return the array of a file, mapped into memory if it has entries."""
    if not all(shape):  # an empty file cannot be mapped
        return np.zeros(shape, kind)
    return np.memmap(path, kind, "r", shape=tuple(shape))


def _csr(arrays: list[np.ndarray], width: int) -> Any:
    """Return a CSR matrix on these arrays; the constructor would read, and may copy, all of them."""
    data, indices, indptr = arrays
    X = sp.csr_matrix((0, width), dtype=data.dtype)
    X.data, X.indices, X.indptr, X._shape = data, indices, indptr, (indptr.size - 1, width)
    X.has_sorted_indices = X.has_canonical_format = True
    return X


def _write(folder: Path, source: Source, size: int, interrupted: Callable[[], bool]) -> None:
    """Write a cache to a temporary folder and put it in its place; older ones of the same files are deleted."""
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        delete_left_over(folder.parent)
        temporary = temporary_name(folder)
        temporary.mkdir()
        try:
            _Writer(source, interrupted).write(temporary, size)
            shutil.rmtree(folder, ignore_errors=True)  # a damaged one
            try:
                os.replace(temporary, folder)
            except OSError:
                if not folder.is_dir():  # else another process has written the same
                    raise
        finally:
            shutil.rmtree(temporary, ignore_errors=True)
        begin = folder.name[: -len(SUFFIX)].rpartition("-")[0]
        for other in folder.parent.glob(f"*{SUFFIX}"):
            if other.name.rpartition("-")[0].rpartition("-")[0] == begin and other != folder:
                shutil.rmtree(other, ignore_errors=True)
    except OSError as error:
        free = size_text(shutil.disk_usage(folder.parent).free) if folder.parent.is_dir() else "no bytes"
        raise DataError(
            f"{folder}: the cache cannot be written: {error.strerror} ({free} are free); make room, or name another "
            "folder with cache_dir."
        ) from None


class _Writer:
    """The arrays of a cache while they are written."""

    def __init__(self, source: Source, interrupted: Callable[[], bool]) -> None:
        self._source, self._interrupted, self._classes = source, interrupted, Classes()
        self._arrays: dict[str, _Growing] = {}
        self._lowest, self._highest = np.iinfo(np.int32).max, -1  # indices of svmlight text

    def write(self, folder: Path, size: int) -> None:
        """Read the source and write all files."""
        source, counts = self._source, [0] * len(self._source.files)
        first, width = None, source.width
        with ExitStack() as stack:
            kinds: dict[str, Any] = {"X": source.dtype, "codes": np.uint32}
            if source.is_text:
                kinds = dict(zip(CSR, (np.float64, np.int32, np.int64), strict=True)) | {"codes": np.uint32}
            for name, kind in kinds.items():
                tail = [source.width] if name == "X" else []
                self._arrays[name] = stack.enter_context(_Growing(folder / name, kind, tail))
            if source.is_text:
                self._arrays["indptr"].append(np.zeros(1, np.int64))
            announce("writing the cache")
            for k, X, numbers in source.rows(self._classes, size, self._interrupted):
                assert numbers is not None
                self._arrays["codes"].append(numbers)
                self._append(X)
                counts[k] += numbers.size
        with faults_of(source.files[0], DataError):
            classes, places = self._classes.sorted()
            if source.is_text:
                first, width = columns_of(self._lowest, self._highest, width, None)
        self._rewrite(folder / "codes", lambda numbers: places[numbers])
        if first == 0:  # they were written as if the first index were 1
            self._rewrite(folder / "indices", lambda indices: indices + 1)
        np.save(folder / "classes.npy", classes, allow_pickle=False)
        header = {
            "arrays": {name: (array.kind.str, array.shape) for name, array in self._arrays.items()},
            "files": list(zip(map(str, source.files), counts, strict=True)),
            "n_features": width,
            "facts": {
                "feature_names": source.features,
                "label_name": source.label,
                "first_index": first,
                "layout": source.layout,
            },
        }
        (folder / _HEADER).write_text(json.dumps(header), encoding="utf-8")

    def _append(self, rows: Any) -> None:
        """Write the features of some rows."""
        if not self._source.is_text:
            self._arrays["X"].append(rows)
            return
        self._lowest, self._highest = min(self._lowest, rows.lowest), max(self._highest, rows.highest)
        self._arrays["indptr"].append(rows.indptr[1:] + self._arrays["data"].length)
        self._arrays["indices"].append(np.subtract(rows.indices, 1, out=rows.indices))
        self._arrays["data"].append(rows.values)

    def _rewrite(self, path: Path, function: Callable[[np.ndarray], Any]) -> None:
        """Replace the entries of an array by a function of them, in parts."""
        array = self._arrays[path.name]
        if array.length:
            entries = np.memmap(path, array.kind, "r+", shape=(array.length,))
            for start in range(0, array.length, _ROWS):
                entries[start : start + _ROWS] = function(entries[start : start + _ROWS])
            entries.flush()


class _Growing:
    """A file of numbers that rows are added to."""

    def __init__(self, path: Path, kind: Any, tail: Sequence[Any]) -> None:
        self.kind, self._tail, self.length = np.dtype(kind), tail, 0
        self._file = open(path, "xb")  # noqa: SIM115  closed by __exit__

    @property
    def shape(self) -> list[int]:
        """The shape of the array."""
        return [self.length, *self._tail]

    def __enter__(self) -> _Growing:
        return self

    def __exit__(self, *error: object) -> None:
        with self._file:
            self._file.flush()
            with suppress(OSError):
                os.fsync(self._file.fileno())

    def append(self, rows: np.ndarray) -> None:
        """Write rows at the end."""
        self._file.write(np.ascontiguousarray(rows, self.kind).data.cast("B") if rows.size else b"")
        self.length += len(rows)
