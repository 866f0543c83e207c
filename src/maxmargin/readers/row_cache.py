"""Rows of files of any size, read once and kept on disk in row-major order."""

from __future__ import annotations

import json
import os
import shutil
import tempfile
import weakref
from collections.abc import Callable
from dataclasses import replace
from hashlib import sha256
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp
from platformdirs import user_cache_path

from ..numerics.files import delete_left_over, temporary_name
from ..numerics.progress import announce
from ..numerics.sizes import size_text
from .files import Paths, paths_of
from .sources import Source, mapped, opened, opened_stream
from .table import DataError, Expected, Table

SUFFIX = ".maxmargin-cache"
# A solver in memory needs so many times the bytes of the rows: these, and what it keeps beside them.
IN_MEMORY_COPIES = 2.0
_HEADER, _CLASSES = "header.json", "classes.npy"


def open_rows(
    source: Paths,
    *,
    cache_dir: str | os.PathLike[str] | None = None,
    interrupted: Callable[[], bool] = bool,
    **requirements: Any,
) -> Table:
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
    Table

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
        folder = temporary_name(Path(cache_dir or tempfile.gettempdir()) / "rows")
        _write(folder, folder, found, interrupted)
        stored = _stored(folder, found)
        weakref.finalize(stored, shutil.rmtree, folder, ignore_errors=True)
        return stored
    found = opened(paths_of(source), expected)
    first, layout = found.files[0], found.layout
    if layout.format == ".npz":
        raise DataError(f"{first}: an .npz file cannot be read block by block; fit np.load of .npy files.")
    if not layout.has_labels:
        raise DataError(f"{first}: the file has no labels; add a label to each row.")
    stamps = found.stamps()
    name = os.fsencode(first.name)[:150].decode(errors="ignore")  # of 255 bytes that names have
    # the first part of the digest is that of the paths, the second of all else
    facts = [path for path, *_ in stamps], (stamps, layout.features, layout.label, layout.remembered)
    begin, rest = (sha256(repr(one).encode()).hexdigest()[:10] for one in facts)
    folder = Path(cache_dir or user_cache_path("maxmargin")) / f"{name}-{begin}-{rest}{SUFFIX}"
    try:
        return _stored(folder, found)
    except (OSError, ValueError, KeyError) as error:  # there is none, or it is damaged
        if isinstance(error, DataError):
            raise
    _write(temporary_name(folder), folder, found, interrupted)
    for other in folder.parent.glob(f"*-{begin}-*{SUFFIX}"):  # of the same files before they changed
        if other != folder:
            shutil.rmtree(other, ignore_errors=True)
    return replace(_stored(folder, found), written=folder)


def bytes_of(X: Any) -> float:
    """Return the bytes of a matrix in memory, where numbers other than float32 and float64 are float64."""
    item = 4.0 if X.dtype == np.float32 else 8.0
    return X.nnz * (item + 4.0) + 8.0 * X.shape[0] if sp.issparse(X) else float(X.size * item)


def _stored(folder: Path, source: Source) -> Table:
    """Return the rows of a cache of a source."""
    header = json.loads((folder / _HEADER).read_text(encoding="utf-8"))
    arrays = mapped(folder, header["kinds"])
    if {name: array.size for name, array in arrays.items()} != header["sizes"]:
        raise ValueError("a file is damaged")
    return source.table(arrays, np.load(folder / _CLASSES), header)


def _write(temporary: Path, folder: Path, source: Source, interrupted: Callable[[], bool]) -> None:
    """Write a cache to a temporary folder, and put it in its place."""
    announce("writing the cache")
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        delete_left_over(folder.parent)
        temporary.mkdir(mode=0o700)  # readable for this user alone
        try:
            arrays, classes, header = source.collected(temporary, interrupted)
            header["kinds"] = {name: array.dtype.str for name, array in arrays.items()}
            header["sizes"] = {name: array.size for name, array in arrays.items()}
            arrays.clear()  # maps of files
            np.save(temporary / _CLASSES, classes, allow_pickle=False)
            (temporary / _HEADER).write_text(json.dumps(header), encoding="utf-8")
            for path in temporary.iterdir():
                with open(path, "rb+") as file:
                    os.fsync(file.fileno())
            if temporary == folder:
                return
            shutil.rmtree(folder, ignore_errors=True)  # a damaged one
            try:
                os.replace(temporary, folder)
            except OSError:
                if not folder.is_dir():  # else another process has written the same
                    raise
                shutil.rmtree(temporary, ignore_errors=True)
        except BaseException:
            shutil.rmtree(temporary, ignore_errors=True)
            raise
    except OSError as error:
        free = size_text(shutil.disk_usage(folder.parent).free) if folder.parent.is_dir() else "no bytes"
        raise DataError(
            f"{folder}: the cache cannot be written: {error.strerror} ({free} are free); make room, or name another "
            "folder with cache_dir."
        ) from None
