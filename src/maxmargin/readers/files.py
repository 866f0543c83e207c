"""Opening files, compressed or not; errors of reading in one sentence."""

from __future__ import annotations

import bz2
import gzip
import lzma
import os
from codecs import BOM_UTF8
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

from ..numerics.files import Fault, faults_of, shortened
from ..numerics.progress import ReadingStoppedError, announce
from .table import DataError

COMPRESSED: dict[str, Callable[..., Any]] = {".gz": gzip.open, ".bz2": bz2.open, ".xz": lzma.open}
Paths = str | os.PathLike[str] | Sequence[str | os.PathLike[str]]
# ends of names; text with any other one is svmlight text
ARROW = (".arrow", ".feather", ".ipc")
DELIMITED = (".csv", ".tsv", ".data")
OTHER_THAN_TEXT = (".npz", ".parquet", *ARROW)


def paths_of(paths: Paths) -> list[Path]:
    """Return one path, or several, as a list."""
    return [Path(paths)] if isinstance(paths, str | os.PathLike) else [Path(path) for path in paths]


def check_file(path: Path) -> None:
    """Raise DataError where a file is missing, empty, or a folder."""
    if path.is_dir():
        raise DataError(f"{path}: this is a folder; name a file in it.")
    if not path.exists():
        raise DataError(f"{path}: there is no such file.")
    if path.is_file() and path.stat().st_size == 0:
        raise DataError(f"{path}: the file is empty.")


def ending(path: Path) -> str:
    """Return the end of the name that says the format of a file."""
    return (path.with_suffix("") if path.suffix.lower() in COMPRESSED else path).suffix.lower()


def kind_of(path: Path, table: bool = False) -> str:
    """Return the end of the name that says the format of a file; of all text tables ".csv", of svmlight text "".

    `table` says whether an option about text tables is given. Raise Fault where the file cannot be read.
    """
    kind = ending(path)
    if not path.is_file():
        raise Fault("a pipe or device can be read only once; write the data to a file first.")
    if kind not in OTHER_THAN_TEXT:
        return ".csv" if table or kind in DELIMITED else ""
    if path.suffix.lower() != kind:
        raise Fault(f"a {kind} file cannot be read in compressed form; decompress it first.")
    return kind


@contextmanager
def data_errors(path: Path) -> Iterator[None]:
    """Turn faults, and errors of the system, of decompressors and of readers, into a DataError of one sentence."""
    try:
        with faults_of(path, DataError):
            yield
    except (DataError, ReadingStoppedError):
        raise
    except Exception as error:  # libraries raise what they like where a file is damaged
        if isinstance(error, OSError) and error.errno is not None:
            raise DataError(f"{path}: cannot be read: {error.strerror}.") from None
        reason = " ".join(str(error).split()).rstrip(".") or type(error).__name__
        raise DataError(
            f"{path}: this is not a valid {path.suffix or 'text'} file, is cut short or too large "
            f"({shortened(reason)}); copy it again, or correct its name."
        ) from None


@contextmanager
def open_data(path: Path | int) -> Iterator[IO[bytes]]:
    """Open a file, a pipe, or the number of one that stays open, for reading bytes, decompressed."""
    with open(path, "rb", closefd=isinstance(path, Path)) as raw:
        opener = COMPRESSED.get(path.suffix.lower()) if isinstance(path, Path) else None
        file: Any = opener(raw, "rb") if opener else raw
        announce(f"reading {path.name if isinstance(path, Path) else 'standard input'}")
        if file.peek(len(BOM_UTF8)).startswith(BOM_UTF8):  # the byte-order mark, which some editors write
            file.read(len(BOM_UTF8))
        yield file


def first_megabyte(path: Path) -> bytes:
    """Return the first megabyte of a text."""
    with open_data(path) as file:
        text = file.read(1 << 20)
    if not text.strip():
        raise Fault("the file is empty.")
    return text
