"""Rows of files of any size, read once and kept on disk in row-major order."""

from __future__ import annotations

import json
import os
import shutil
import tempfile
import weakref
from bisect import bisect_right
from collections.abc import Callable
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field, replace
from hashlib import sha256
from itertools import accumulate
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp
from platformdirs import user_cache_path

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
from .svmlight import TEXT
from .table import Classes, DataError, Expected

SUFFIX = ".maxmargin-cache"
# A solver in memory needs so many times the bytes of the rows: these, and what it keeps beside them.
IN_MEMORY_COPIES = 2.0
CSR = ("data", "indices", "indptr")  # the arrays of sparse rows
_HEADER = "header.json"


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
    remembered : dict
        As of `Table`.
    written : Path or None
        The folder, where this call wrote it and it stays.
    """

    X: Any
    codes: np.ndarray
    classes: np.ndarray
    feature_names: list[str] | None
    label_name: str | None
    first_index: int | None
    files: tuple[tuple[Path, int], ...]
    remembered: dict[str, Any] = field(default_factory=dict)
    written: Path | None = None

    def label(self, row: int) -> Any:
        """Return the label of a row."""
        return self.classes[self.codes[row]]

    def place(self, row: int) -> tuple[Path, int]:
        """Return the file of a row and its number in this file, both counted from 0."""
        ends = list(accumulate(count for _, count in self.files))
        k = bisect_right(ends, row)
        return self.files[k][0], row - (ends[k - 1] if k else 0)


def open_rows(
    source: Paths,
    *,
    cache_dir: str | os.PathLike[str] | None = None,
    interrupted: Callable[[], bool] = bool,
    **requirements: Any,
) -> StoredRows:
    """Open rows of any number; the first time, they are read block by block and written to a cache.

    The cache is a folder whose name ends in ``.maxmargin-cache``. Its name depends on the paths, sizes and times of the
    files and on the columns that are read: where one of them changes, another cache takes its place.

    Parameters
    ----------
    source : path-like or sequence of path-like; or Arrow data
        Svmlight text, CSV, Parquet or Arrow files, patterns, or folders of tables. Several are one data set. Arrow data
        are a ``pyarrow.dataset.Dataset``, or an object with ``__arrow_c_stream__``, such as a table or a data frame:
        they are read each time, and their cache is deleted with the result.
    cache_dir : path-like, default=None
        The folder of the cache; by default that of the user, and a temporary one for Arrow data. It is never beside the
        data: other programs read all that a folder of tables holds.
    interrupted : callable, default=bool
        Whether to stop; called between blocks in the thread of the caller. By default never.
    **requirements
        Of `Expected`; but for `n_features`, the number of columns of svmlight text, they select the columns that the
        cache holds.

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
    expected = Expected(**requirements)
    if not isinstance(source, str | os.PathLike | list | tuple):
        found = opened_stream(source, expected)
        place = folder_of_this_process(Path(cache_dir or tempfile.gettempdir()), "rows")
        try:
            folder = place / f"arrow{SUFFIX}"
            _write(folder, found, interrupted)
            stored = _stored(folder, found)
        except BaseException:
            shutil.rmtree(place, ignore_errors=True)
            raise
        found.say_label()
        weakref.finalize(stored, shutil.rmtree, place, ignore_errors=True)
        return stored
    sources = paths_of(source)
    found = opened(sources, expected)
    first, layout = sources[0], found.layout
    if layout.format == ".npz":
        raise DataError(
            f"{first}: an .npz file cannot be read block by block; fit np.load(rows, mmap_mode='r') of a .npy file."
        )
    if not layout.has_labels:
        raise DataError(f"{first}: the file has no labels; add a label to each row.")
    stamps = found.stamps()
    name = os.fsencode(first.name)[:150].decode(errors="ignore")  # of 255 bytes that names have
    # the first part of the digest is that of the paths, the second of all else
    facts = [path for path, *_ in stamps], (stamps, layout.features, layout.label, layout.remembered)
    parts = [sha256(repr(one).encode()).hexdigest()[:10] for one in facts]
    folder = Path(cache_dir or user_cache_path("maxmargin")) / f"{name}-{'-'.join(parts)}{SUFFIX}"
    try:
        stored = _stored(folder, found)
    except (OSError, ValueError, KeyError) as error:  # there is none, or it is damaged
        if isinstance(error, DataError):
            raise
        _write(folder, found, interrupted)
        stored = replace(_stored(folder, found), written=folder)
    found.say_label()
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


def _stored(folder: Path, source: Source) -> StoredRows:
    """Return the rows of a cache of a source."""
    header = json.loads((folder / _HEADER).read_text(encoding="utf-8"))
    maps = {}
    for name, (kind, *shape) in header["arrays"].items():
        # an empty file cannot be mapped
        found = (
            np.memmap(folder / name, kind, "r", shape=tuple(shape)) if all(shape) else np.zeros(shape, kind)
        )
        maps[name] = found
    layout, first, width = source.layout, header["first_index"], header["width"]
    if "X" not in maps:
        wanted = source.expected.n_features or width
        if wanted < width:
            raise DataError(
                f"{source.files[0]}: the index {width - 1 + first} is beyond the {wanted} features (indices count from "
                f"{first})."
            )
        # the constructor would read, and may copy, all arrays
        X: Any = sp.csr_matrix((0, wanted))
        X.data, X.indices, X.indptr = (maps[name] for name in CSR)
        X._shape = X.indptr.size - 1, wanted
        X.has_sorted_indices = X.has_canonical_format = True
    else:
        X = maps["X"]
    files = tuple(zip(source.files, header["rows"], strict=True))
    classes = np.load(folder / "classes.npy")
    return StoredRows(
        X, maps["codes"], classes, layout.features, layout.label, first, files, layout.remembered
    )


def _write(folder: Path, source: Source, interrupted: Callable[[], bool]) -> None:
    """Write a cache to a temporary folder and put it in its place; older ones of the same files are deleted."""
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        delete_left_over(folder.parent)
        temporary = temporary_name(folder)
        temporary.mkdir()
        try:
            _write_arrays(temporary, source, interrupted)
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


def _write_arrays(folder: Path, source: Source, interrupted: Callable[[], bool]) -> None:
    """Read all rows, and write them as arrays."""
    kinds = {"codes": np.uint32, "X": source.kind}
    if source.layout.format == TEXT:
        kinds = {"codes": np.uint32, "data": np.float64, "indices": np.int32, "indptr": np.int64}
    classes, rows, lengths = Classes(), [0] * len(source.files), dict.fromkeys(kinds, 0)
    lowest, highest = 1, -1  # indices of svmlight text
    with ExitStack() as stack:
        files = {name: stack.enter_context(open(folder / name, "xb")) for name in kinds}

        def append(name: str, array: np.ndarray) -> None:
            lengths[name] += len(array)
            files[name].write(np.ascontiguousarray(array, kinds[name]).data.cast("B") if array.size else b"")

        if "indptr" in kinds:
            append("indptr", np.zeros(1))
        announce("writing the cache")
        for k, X, numbers in source.rows(classes, interrupted=interrupted):
            assert numbers is not None
            rows[k] += numbers.size
            append("codes", numbers)
            if "X" in kinds:
                append("X", X)
                continue
            append("indptr", X.indptr[1:] + np.int64(lengths["data"]))
            append("data", X.data)
            append("indices", X.indices)
            lowest, highest = min(lowest, int(X.indices.min(initial=1))), max(highest, X.shape[1] - 1)
        for file in files.values():
            file.flush()
            with suppress(OSError):
                os.fsync(file.fileno())
    with faults_of(source.files[0], DataError):
        labels, places = classes.sorted()
    first = None if "X" in kinds else int(lowest > 0)
    _rewrite(folder / "codes", np.uint32, lambda numbers: places[numbers])
    if first and lengths["indices"]:
        _rewrite(folder / "indices", np.int32, lambda indices: indices - 1)
    np.save(folder / "classes.npy", labels, allow_pickle=False)
    width = source.layout.width or max(highest + 1 - (first or 0), 1)
    shapes = {name: [length, width] if name == "X" else [length] for name, length in lengths.items()}
    arrays = {name: [np.dtype(kind).str, *shapes[name]] for name, kind in kinds.items()}
    header = {"arrays": arrays, "rows": rows, "first_index": first, "width": width}
    (folder / _HEADER).write_text(json.dumps(header), encoding="utf-8")


def _rewrite(path: Path, kind: Any, function: Callable[[np.ndarray], Any]) -> None:
    """Replace the entries of an array by a function of them, 4 MB at a time."""
    entries = np.memmap(path, kind, "r+")
    for start in range(0, entries.size, 1 << 20):
        part = slice(start, start + (1 << 20))
        entries[part] = function(entries[part])
    entries.flush()
