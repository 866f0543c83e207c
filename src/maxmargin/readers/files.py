"""Opening files, compressed or not; errors of reading in one sentence; the memory that data take."""

from __future__ import annotations

import bz2
import csv
import gzip
import hashlib
import io
import lzma
import os
import zipfile
import zlib
from codecs import BOM_UTF8, BOM_UTF16_BE, BOM_UTF16_LE
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

from ..numerics.fault import Fault, faults_of, shortened
from ..numerics.progress import announce
from ..numerics.sizes import memory_shortage
from .table import DataError, TooLargeError

COMPRESSED: dict[str, Callable[..., Any]] = {".gz": gzip.open, ".bz2": bz2.open, ".xz": lzma.open}
Paths = str | os.PathLike[str] | Sequence[str | os.PathLike[str]]
ARROW, DELIMITED = (".arrow", ".feather", ".ipc"), (".csv", ".tsv")  # ends of names
OTHER_THAN_TEXT = (".npy", ".npz", ".parquet", *ARROW)
MAGIC = {
    b"\x1f\x8b": ".gz",
    b"BZh": ".bz2",
    b"\xfd7zXZ\x00": ".xz",
    b"PK\x03\x04": ".npz",
    b"PAR1": ".parquet",
    b"ARROW1": ".arrow",
    b"FEA1": ".feather",
}
_REMEDY = (
    "name the memory to use with memory, use sparse data (svmlight text, .npz with CSR arrays), or fewer rows"
)
# What an error of these kinds says about a file, and the remedy; the first kind that fits counts.
_DAMAGED = (
    "this is not a valid {suffix} file ({error}): it is damaged or has the wrong name; copy or download it again, or "
    "rename it"
)
_SENTENCES: dict[type[Exception], str] = {
    EOFError: "the compressed file is cut short; copy or download it again",
    **dict.fromkeys((zlib.error, lzma.LZMAError, gzip.BadGzipFile, zipfile.BadZipFile), _DAMAGED),
    UnicodeDecodeError: "this is not text in UTF-8; save it in that encoding",
    csv.Error: "this is not a valid table of lines and columns ({error}); save it as CSV again",
    MemoryError: f"there is not enough memory to read the file; {_REMEDY}",
    OSError: "this is not a valid {suffix} file; copy or download it again",  # bz2: "Invalid data stream"
}
_SAMPLE = 1 << 20  # bytes: enough to estimate the memory that a file takes, and read in a millisecond


def paths_of(paths: Paths) -> list[Path]:
    """Return one path, or several, as a list."""
    return [Path(paths)] if isinstance(paths, str | os.PathLike) else [Path(path) for path in paths]


def are_paths(X: Any) -> bool:
    """Return whether X is the path of a file, or a list of paths."""
    names = X if isinstance(X, list | tuple) and X else [X]
    return all(isinstance(name, str | os.PathLike) for name in names)


def names_files(X: Any) -> bool:
    """Return whether X is the path of a file, a list of paths, or a data set of pyarrow, which is not imported."""
    return are_paths(X) or type(X).__module__ == "pyarrow._dataset"


def has_labelled_rows(X: Any, y: Any) -> bool:
    """Return whether X names files, or is an Arrow table, stream or data frame that has to hold the labels as well."""
    return names_files(X) or (y is None and hasattr(X, "__arrow_c_stream__"))


# the answer to labels in memory where the rows are in files
LABELS_OF_FILES = "the labels of files are in files: name the .npy files of the labels, or map X by np.load."


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


def kind_of(path: Path) -> str:
    """Return the end of the name that says the format of a file; raise Fault where it cannot be read."""
    kind = ending(path)
    if not path.is_file():
        raise Fault("a pipe or device can be read only once; write the data to a file first.")
    if kind in OTHER_THAN_TEXT and path.suffix.lower() != kind:
        raise Fault(f"a {kind} file cannot be read in compressed form; decompress it first.")
    return kind


@contextmanager
def data_errors(path: Path) -> Iterator[None]:
    """Turn faults, and errors of the system and of decompressors, into a DataError of one sentence."""
    try:
        with faults_of(path, DataError):
            yield
    except tuple(_SENTENCES) as error:
        words = next(words for kind, words in _SENTENCES.items() if isinstance(error, kind))
        if isinstance(error, OSError) and error.errno is not None:
            words = f"cannot be read: {error.strerror}"
        reason = str(error).rstrip(".")
        raise DataError(f"{path}: {shortened(words.format(suffix=path.suffix, error=reason))}.") from None


class Digest:
    """The SHA-256 digest of a file that is read once, and the number of its bytes that have been read."""

    def __init__(self) -> None:
        self.sha, self.seen = hashlib.sha256(), 0

    def update(self, part: memoryview) -> None:
        """Take in the next bytes."""
        self.sha.update(part)
        self.seen += len(part)

    def read(self, path: Path) -> str:
        """Return the digest of a whole file, which is read for it."""
        self.sha, self.seen = hashlib.sha256(), 0
        with _Observed(path, self) as file:
            _read_to_the_end(file)
        return self.sha.hexdigest()


class _Observed(io.FileIO):
    """A file whose bytes are passed to a digest when they are read."""

    def __init__(self, path: Path, digest: Digest) -> None:
        super().__init__(path)
        self._digest = digest

    def readinto(self, buffer: Any) -> int:
        count = super().readinto(buffer) or 0
        self._digest.update(memoryview(buffer)[:count])
        return count


def _read_to_the_end(file: io.RawIOBase) -> None:
    """Read the bytes that are left."""
    buffer = bytearray(_SAMPLE)
    while file.readinto(buffer):
        pass


@contextmanager
def open_data(path: Path, digest: Digest | None = None) -> Iterator[IO[bytes]]:
    """Open a file for reading bytes, decompressed.

    With a digest, all bytes of the file are read at the end, and taken into the digest.
    """
    observed = None if digest is None else _Observed(path, digest)
    with open(path, "rb") if observed is None else io.BufferedReader(observed) as raw:
        opener = COMPRESSED.get(path.suffix.lower())
        file: Any = opener(raw, "rb") if opener else raw
        announce(f"reading {path.name}")
        skip_mark(file)
        yield file
        if observed is not None:
            _read_to_the_end(observed)


def without_mark(text: bytes) -> bytes:
    """Return a text without the byte-order mark at its beginning."""
    return text.removeprefix(BOM_UTF8)


def skip_mark(file: Any) -> None:
    """Skip the byte-order mark at the beginning of a text, which some editors write."""
    if file.peek(len(BOM_UTF8)).startswith(BOM_UTF8):
        file.read(len(BOM_UTF8))


def sample(path: Path) -> tuple[bytes, float]:
    """Return the first megabyte of a text, and the length of the whole over it (estimated where it is compressed).

    Raises
    ------
    Fault
        If it is no text, or compressed under a name that does not say so.
    """
    with open(path, "rb") as raw:
        opener = COMPRESSED.get(path.suffix.lower())
        text = (opener(raw, "rb") if opener else raw).read(_SAMPLE)
        bytes_read = max(raw.tell(), 1)
    for magic, suffix in MAGIC.items():
        if text.startswith(magic):
            raise Fault(f"this is a {suffix} file by its content; give it a name that ends in {suffix}.")
    refuse_utf16(text)
    if b"\0" in text[:4096]:
        raise Fault("this is not a text file; names of other files end in .npz, .parquet or .arrow.")
    if len(text) < _SAMPLE:
        if not text.strip():
            raise Fault("the file is empty.")
        return text, 1.0
    return text, max(path.stat().st_size / bytes_read, 1.0)


def refuse_utf16(text: bytes) -> None:
    """Raise Fault where a text begins with the byte-order mark of UTF-16."""
    if text.startswith((BOM_UTF16_LE, BOM_UTF16_BE)):
        raise Fault("this is text in UTF-16; save it in UTF-8.")


def require_memory(needed: float) -> None:
    """Raise Fault where `needed` bytes are more than the memory that is free."""
    if shortage := memory_shortage(needed):
        raise Fault(f"the data need {shortage}; {_REMEDY}.", kind=TooLargeError)
