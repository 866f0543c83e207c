"""Opening files, compressed or not; errors of reading in one sentence; the memory that data take."""

from __future__ import annotations

import bz2
import csv
import gzip
import lzma
import os
import sys
import zipfile
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

from .table import DataError

COMPRESSED: dict[str, Callable[..., Any]] = {".gz": gzip.open, ".bz2": bz2.open, ".xz": lzma.open}
_MAGIC = {
    b"\x1f\x8b": ".gz",
    b"BZh": ".bz2",
    b"\xfd7zXZ\x00": ".xz",
    b"PK\x03\x04": ".npz",
    b"PAR1": ".parquet",
    b"ARROW1": ".arrow",
    b"FEA1": ".feather",
}
_SAMPLE = 1 << 20  # bytes: enough to estimate the memory that a file takes, and read in a millisecond


def check_file(path: Path) -> None:
    """Raise DataError where a file is missing, empty, or a folder."""
    if path.is_dir():
        raise DataError(f"{path}: this is a folder; name a file in it.")
    if not path.exists():
        raise DataError(f"{path}: there is no such file.")
    if path.is_file() and path.stat().st_size == 0:
        raise DataError(f"{path}: the file is empty.")


@contextmanager
def data_errors(path: Path) -> Iterator[None]:
    """Turn errors of the system and of decompressors into a DataError of one sentence."""
    try:
        yield
    except EOFError:
        raise DataError(f"{path}: the compressed file is cut short; copy or fetch it again.") from None
    except (zlib.error, lzma.LZMAError, gzip.BadGzipFile, zipfile.BadZipFile) as error:
        raise DataError(
            f"{path}: this is not a sound {path.suffix} file ({str(error).rstrip('.')}); it is damaged, or "
            "its name does not fit: copy or fetch it again, or rename it."
        ) from None
    except UnicodeDecodeError:
        raise DataError(f"{path}: this is not text in UTF-8; save it in that encoding.") from None
    except csv.Error as error:
        raise DataError(
            f"{path}: this is no sound table of lines and columns ({error}); save it as CSV again."
        ) from None
    except MemoryError:
        raise DataError(f"{path}: the memory was used up while reading; {_REMEDY}.") from None
    except OSError as error:
        if error.errno is None:  # bz2: "Invalid data stream"
            raise DataError(
                f"{path}: this is not a sound {path.suffix} file: copy or fetch it again."
            ) from None
        raise DataError(f"{path}: cannot be read: {error.strerror}.") from None


def open_data(path: Path) -> IO[bytes]:
    """Open a file for reading bytes, decompressed."""
    opener = COMPRESSED.get(path.suffix.lower())
    return opener(path, "rb") if opener else open(path, "rb")


@dataclass(frozen=True)
class Sample:
    """The beginning of a text, and the length of the whole over it (an estimate where it is compressed)."""

    text: bytes
    ratio: float


def sample(path: Path) -> Sample:
    """Read the first megabyte of a text file.

    Raises
    ------
    DataError
        If it is no text, or compressed under a name that does not say so.
    """
    with open(path, "rb") as raw:
        opener = COMPRESSED.get(path.suffix.lower())
        text = (opener(raw, "rb") if opener else raw).read(_SAMPLE)
        bytes_read = max(raw.tell(), 1)
    for magic, suffix in _MAGIC.items():
        if text.startswith(magic):
            raise DataError(f"{path}: this is a {suffix} file by its content; give it a name that ends so.")
    if text.startswith((b"\xff\xfe", b"\xfe\xff")):
        raise DataError(f"{path}: this is text in UTF-16; save it in UTF-8.")
    if b"\0" in text[:4096]:
        raise DataError(
            f"{path}: this is not a text file; other kinds have names that end in .npz, .parquet or .arrow."
        )
    if not text.strip():
        if len(text) < _SAMPLE:
            raise DataError(f"{path}: the file is empty.")
        text = b"\n"
    return Sample(text, 1.0 if len(text) < _SAMPLE else max(path.stat().st_size / bytes_read, 1.0))


_REMEDY = "use fewer rows, sparse data (svmlight text, .npz with CSR arrays), or a machine with more memory"


def require_memory(path: Path, needed: float) -> None:
    """Raise DataError where `needed` bytes are more than the memory that is free."""
    available = available_memory()
    if needed > available:
        raise DataError(
            f"{path}: the data need about {_size(needed)} of memory, and {_size(available)} are "
            f"free; {_REMEDY}."
        )


def available_memory() -> float:
    """Return the bytes that can be allocated without swapping, within the limit of a container."""
    try:
        available = float(os.sysconf("SC_PHYS_PAGES")) * os.sysconf("SC_PAGE_SIZE")
    except (AttributeError, ValueError, OSError):
        available = float(sys.maxsize)
    for name, value in _memory_lines():
        if name in ("MemAvailable:", "limit"):
            available = min(available, value)
    return available


def _memory_lines() -> Iterator[tuple[str, float]]:
    """Yield the memory that Linux reports, nothing elsewhere; SC_AVPHYS_PAGES would leave out the page cache."""
    try:
        with open("/proc/meminfo") as file:
            for line in file:
                name, value = line.split()[:2]
                yield name, 1024.0 * float(value)
    except (OSError, ValueError):
        pass
    for limit in ("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes"):
        try:
            yield "limit", float(Path(limit).read_text())
        except (OSError, ValueError):  # no container, or the word "max"
            continue


def _size(number: float) -> str:
    for unit in ("bytes", "kB", "MB", "GB"):
        if number < 1000.0:
            return f"{number:.3g} {unit}"
        number /= 1000.0
    return f"{number:.3g} TB"
