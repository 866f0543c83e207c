"""Rows of files of any size, read once and kept on disk in row-major order."""

from __future__ import annotations

import errno
import os
import secrets
import shutil
import tempfile
import weakref
from bisect import bisect_right
from collections.abc import Callable, Sequence
from contextlib import ExitStack, closing, suppress
from dataclasses import dataclass, field
from itertools import accumulate
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.lib import format as form

from ..numerics.fault import faults_of
from ..numerics.files import folder_of_this_process
from ..numerics.memory_maps import is_file_of
from ..numerics.progress import announce
from ..numerics.sizes import size_text
from ..numerics.stop_check import READING_STOPPED, ReadingStoppedError
from .arrow_stream import opened_stream
from .blocks import Block, Classes, read_ahead
from .cache_folder import (
    FORMAT,
    HEADER,
    SUFFIX,
    TOKEN,
    VERSION,
    cache_place,
    header_bytes,
    is_header_of,
    new_folder,
    valid_header,
)
from .files import Digest, Paths, are_paths, paths_of
from .sources import CHANGED, Source, opened
from .table import DataError, Expected

# bytes of text, or of numbers, that are read at a time: less costs calls, more costs memory, of which there are a few
# blocks at any time
BLOCK_BYTES = 1 << 20
# A solver in memory needs so many times the bytes of the rows: these, and what it keeps beside them.
IN_MEMORY_COPIES = 2.0
ROUNDED = (  # the refusal of numbers where rows are to be proved separable or not
    "the files contain {number}, which is not a float64 number: after rounding, different rows could be proved equal. "
    "Subtract a constant from its column, or divide the column."
)
CSR = ("data", "indices", "indptr")  # the arrays of sparse rows
_ROWS = 1 << 20  # codes that are rewritten at a time: 4 MB
_FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)  # of a disk, a quota, a limit of the process


@dataclass(frozen=True)
class StoredRows:
    """Rows on disk, mapped into memory.

    Attributes
    ----------
    X : ndarray or CSR matrix of shape (n, d)
        A read-only memory map, or a CSR matrix of three, whose indices are sorted. Slices of the matrix copy
        all of its indices where their types differ: use `rows`.
    codes : ndarray of shape (n,)
        The class of each row, as its place in `classes`; a read-only memory map.
    classes : ndarray
        Sorted, as `numpy.unique` returns them.
    feature_names : list of str or None
    label_name : str or None
    first_index : {0, 1} or None
        The first index of svmlight text.
    rounded : str or None
        A number of the source that float64 does not hold.
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
    rounded: str | None
    files: tuple[tuple[Path, int], ...]
    layout: dict[str, Any] = field(default_factory=dict)

    def place(self, row: int) -> tuple[Path, int]:
        """Return the file of a row and its number in this file, both counted from 0."""
        ends = list(accumulate(count for _, count in self.files))
        k = bisect_right(ends, row)
        return self.files[k][0], row - (ends[k - 1] if k else 0)

    def rows(self, start: int, stop: int) -> Any:
        """Return rows start to stop - 1 as an array or a CSR matrix on the memory maps, without a copy of entries."""
        if not sp.issparse(self.X):
            return self.X[start:stop]
        indptr = self.X.indptr[start : stop + 1]
        entries = slice(int(indptr[0]), int(indptr[-1]))
        kind = self.X.indices.dtype
        arrays = self.X.data[entries], self.X.indices[entries], (indptr - indptr[0]).astype(kind)
        return _csr(*arrays, self.X.shape[1])


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

    The cache is the folder `<name>.maxmargin-cache`. It is written again if a file or an option has changed.

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
    if not are_paths(source):
        found = opened_stream(source, Expected(label=label, use=use, drop=drop))
        return _open_stream(found, cache_dir, block_bytes, interrupted)
    sources, label_sources = paths_of(source), paths_of(labels or ())
    folder = cache_place(sources, label_sources, cache_dir)
    expected = Expected(label=label, use=use, drop=drop, header=header, delimiter=delimiter)
    found = opened(sources, label_sources, expected, n_features)
    options = {"label": label, "use": [*use], "drop": [*drop], "n_features": n_features}
    options |= {"header": header, "delimiter": delimiter}
    facts = {"format": FORMAT, "version": VERSION, "options": options}
    facts["sources"] = [str(path.absolute()) for path in sources]
    stored = None
    while stored is None:  # other processes may put caches with other options in its place at any time
        with suppress(OSError, ValueError, KeyError, TypeError):  # of a damaged cache
            valid = valid_header(folder, facts, [*found.files, *found.label_files])
            stored = None if valid is None else _stored(folder, valid)
        if stored is None:
            stored = _stored(folder, _written(folder, found, facts, block_bytes, interrupted))
    return stored


def _open_stream(
    found: Source, cache_dir: str | os.PathLike[str] | None, size: int, interrupted: Callable[[], bool]
) -> StoredRows:
    """Return the rows of Arrow data in a cache that is deleted with them."""
    place = folder_of_this_process(Path(cache_dir or tempfile.gettempdir()), "rows")
    try:
        folder = place / f"arrow{SUFFIX}"
        facts = {"format": FORMAT, "version": VERSION}
        stored = _stored(folder, _written(folder, found, facts, size, interrupted))
        assert stored is not None  # no other process writes here
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


def _stored(folder: Path, header: dict[str, Any]) -> StoredRows | None:
    """Return the rows of a cache; None if another one has taken the place of the one of this header."""
    with suppress(FileNotFoundError):
        maps = {name.removesuffix(".npy"): _mapped(folder / name) for name in header["arrays"]}
        if is_header_of(folder, header):
            return _of_maps(maps, header)
    return None


def _of_maps(maps: dict[str, np.ndarray], header: dict[str, Any]) -> StoredRows:
    """Return rows on these arrays."""
    X = (
        maps["X"]
        if "X" in maps
        else _csr(maps["data"], maps["indices"], maps["indptr"], header["n_features"])
    )
    classes = _classes_of(header)
    files = tuple((Path(one["path"]), one["rows"]) for one in header["files"] if "rows" in one)
    facts = {
        name: header[name] for name in ("feature_names", "label_name", "first_index", "rounded", "layout")
    }
    return StoredRows(X, maps["codes"], classes, files=files, **facts)


def _classes_of(header: dict[str, Any]) -> np.ndarray:
    """Return the classes of a cache; NumPy would make float64 of small and large unsigned integers."""
    kind = np.dtype(header["kind_of_classes"])
    return np.array(header["classes"], np.int64 if kind.kind in "mM" else kind).astype(kind)


def _mapped(path: Path) -> np.ndarray:
    """Return the array of a file, mapped into memory if it has entries."""
    try:
        array: Any = np.load(path, mmap_mode="r")
        is_file_of(array, path.stat())  # the first call remembers the file of the map
    except ValueError:  # an empty file cannot be mapped
        return np.load(path)
    return array


def _csr(data: np.ndarray, indices: np.ndarray, indptr: np.ndarray, width: int) -> Any:
    """Return a CSR matrix on these arrays; the constructor would read, and may copy, all of them."""
    X = sp.csr_matrix((0, width), dtype=data.dtype)
    X.data, X.indices, X.indptr, X._shape = data, indices, indptr, (indptr.size - 1, width)
    X.has_sorted_indices = X.has_canonical_format = True
    return X


def _written(
    folder: Path, source: Source, facts: dict[str, Any], size: int, interrupted: Callable[[], bool]
) -> dict[str, Any]:
    """Write the cache; return its header."""
    writer, token = _Writer(source, interrupted), secrets.token_hex(8)
    try:
        with new_folder(folder) as temporary:
            header = facts | writer.write(temporary, size) | {"token": token}
            (temporary / TOKEN).write_text(token)
            with open(temporary / HEADER, "xb") as file:
                file.write(header_bytes(header))
                os.fsync(file.fileno())
        return header
    except OSError as error:
        words = f"cannot be written: {error.strerror}; name a folder for the cache with cache_dir"
        if error.errno in _FULL:
            needed, free = size_text(writer.needed()), size_text(shutil.disk_usage(folder.parent).free)
            words = (
                f"there is no room for the cache ({error.strerror}): it needs about {needed}, and {free} are free; "
                "make room, or name another folder with cache_dir"
            )
        raise DataError(f"{folder}: {words}.") from None


class _Writer:
    """The arrays of a cache while they are written."""

    def __init__(self, source: Source, interrupted: Callable[[], bool]) -> None:
        self._source, self._interrupted, self._classes = source, interrupted, Classes()
        self._rounded: str | None = None
        self._records = [source.record(path) for path in (*source.files, *source.label_files)]
        self._digests = [Digest() for _ in self._records]
        self._arrays: dict[str, _Growing] = {}
        self._first, self._highest = 1, -1  # of svmlight text: the first index if no index is 0

    def needed(self) -> float:
        """Return an estimate of the bytes of the whole cache, from what was written and the share that was read.

        A few blocks are read ahead, so that it is too small where less than some megabytes were written.
        """
        written = sum(array.bytes for array in self._arrays.values())
        return written / (self._share() or 1.0)

    def _share(self) -> float:
        """Return the share of the source that has been read."""
        count = len(self._source.files)
        total = sum(record["size"] for record in self._records[:count])
        return min(1.0, sum(digest.seen for digest in self._digests[:count]) / total)

    def write(self, folder: Path, size: int) -> dict[str, Any]:
        """Read the source and write the arrays; return what the header says about them."""
        source = self._source
        with ExitStack() as stack:
            kinds: dict[str, Any] = {"X": source.dtype, "numbers": np.uint32}
            if source.is_text:
                kinds = dict(zip(CSR, (np.float64, np.int32, np.int64), strict=True)) | {"numbers": np.uint32}
            for name, kind in kinds.items():
                tail = [source.width] if name == "X" else []
                self._arrays[name] = stack.enter_context(_Growing(folder / f"{name}.npy", kind, tail))
            if source.is_text:
                self._arrays["indptr"].append(np.zeros(1, np.int64))
            announce("writing the cache")
            for k, path in enumerate(source.files):
                self._records[k]["rows"] = self._write_file(k, path, size)
            for array in self._arrays.values():
                array.finish()
        width = source.width
        if source.is_text:
            width = (
                source.check_indices(self._first, self._highest) or max(self._highest - self._first, 0) + 1
            )
        classes = self._write_codes(folder)
        for record, digest in zip(self._records, self._digests, strict=True):
            if self._source.record(Path(record["path"])).items() - record.items():
                raise DataError(f"{record['path']}: {CHANGED}")
            record["sha256"] = digest.sha.hexdigest()
        return {
            "files": self._records,
            "arrays": {path.name: path.stat().st_size for path in folder.iterdir()},
            "n_features": width,
            "classes": classes.view(np.int64).tolist() if classes.dtype.kind in "mM" else classes.tolist(),
            "kind_of_classes": classes.dtype.str,
            "feature_names": source.features,
            "label_name": source.label,
            "first_index": self._first if source.is_text else None,
            "rounded": self._rounded,
            "layout": source.layout,
        }

    def _write_file(self, k: int, path: Path, size: int) -> int:
        """Write the rows of a file; return their number."""
        before = 0
        of_labels = self._digests[len(self._source.files) + k] if self._source.label_files else None
        with closing(read_ahead(self._source.blocks(k, size, self._digests[k], of_labels))) as blocks:
            for block in blocks:
                if self._interrupted():
                    raise ReadingStoppedError(f"{path}: {READING_STOPPED}")
                with faults_of(path, DataError):
                    numbers = self._classes.numbered(block, before)
                self._arrays["numbers"].append(numbers)
                self._rounded = self._rounded or block.rounded
                self._append(block)
                before += numbers.size
        return before

    def _append(self, block: Block) -> None:
        """Write the features of some rows."""
        rows = block.X
        if not self._source.is_text:
            self._arrays["X"].append(rows)
            return
        self._highest = max(self._highest, rows.highest)
        if rows.lowest == 0 and self._first == 1:
            self._first = 0
            self._arrays["indices"].add(1)  # they were written as if the first index were 1
        if self._source.width is not None and self._highest > self._source.width:
            self._source.check_indices(self._first, self._highest)
        self._arrays["indptr"].append(rows.indptr[1:] + self._arrays["data"].length)
        self._arrays["indices"].append(np.subtract(rows.indices, self._first, out=rows.indices))
        self._arrays["data"].append(rows.values)

    def _write_codes(self, folder: Path) -> np.ndarray:
        """Write the class of each row, in place of the number of its label; return the classes."""
        if not self._arrays["numbers"].length:
            raise DataError(f"{self._source.files[0]}: the file holds no rows.")
        classes, places = self._classes.sorted()
        numbers = np.load(folder / "numbers.npy", mmap_mode="r")
        self._source.check_classes(self._classes, classes, self._records)
        kind = next(one for one in (np.uint8, np.uint16, np.uint32) if classes.size <= np.iinfo(one).max + 1)
        with _Growing(folder / "codes.npy", kind) as codes:
            self._arrays["codes"] = codes
            for start in range(0, numbers.size, _ROWS):
                codes.append(places[numbers[start : start + _ROWS]])
            codes.finish()
        del numbers
        (folder / "numbers.npy").unlink()
        return classes


class _Growing:
    """A .npy file that rows are added to; the header is written again at the end."""

    def __init__(self, path: Path, kind: Any, tail: Sequence[Any] = ()) -> None:
        self._kind, self._tail, self.length = np.dtype(kind), tail, 0
        self._path, self._file = path, open(path, "xb", buffering=0)  # noqa: SIM115  closed by __exit__
        try:
            self._write_header()
        except OSError:  # a full disk
            self._file.close()
            raise
        self._start = self.bytes = self._file.tell()

    def __enter__(self) -> _Growing:
        return self

    def __exit__(self, *error: object) -> None:
        self._file.close()

    def _write_header(self) -> None:
        # NumPy leaves room for the largest length: headers of all lengths have the same size
        header = {"descr": self._kind.str, "fortran_order": False, "shape": (self.length, *self._tail)}
        form.write_array_header_1_0(self._file, header)

    def append(self, rows: np.ndarray) -> None:
        """Write rows at the end."""
        if not rows.size:
            return
        view = np.ascontiguousarray(rows, self._kind).data.cast("B")
        self.bytes += len(view)
        while view:  # a call writes 2 GB at most
            view = view[self._file.write(view) :]
        self.length += len(rows)

    def add(self, number: int) -> None:
        """Add a number to all entries so far."""
        if self.length:
            entries = np.memmap(self._path, self._kind, "r+", self._start, (self.length,))
            entries += self._kind.type(number)
            entries.flush()

    def finish(self) -> None:
        """Write the header, and wait until all is on the disk."""
        self._file.seek(0)
        self._write_header()
        os.fsync(self._file.fileno())
