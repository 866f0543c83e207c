"""The .npy format within files and archives: headers and arrays, whose faults are told in a sentence."""

from __future__ import annotations

import struct
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from lzma import LZMAError
from math import prod
from tokenize import TokenError
from typing import IO, Any

import numpy as np
from numpy.lib import format as form

from ..numerics.fault import Fault, shortened

Header = tuple[tuple[int, ...], bool, np.dtype]  # shape, whether stored by columns, type
COPY = "copy the file again"
_VERSIONS = ((1, 0), (2, 0), (3, 0))
# Bytes of a header: NumPy refuses longer ones, but reserves the memory that they claim before.
_LONGEST_HEADER = 10_000
_LAST_CODE, _SURROGATES = 0x10FFFF, (0xD800, 0xDFFF)  # of Unicode; the latter stand for no sign
# What the parsers of NumPy and zipfile raise where a file is damaged; RuntimeError is that of encryption, and the base
# of RecursionError and of the NotImplementedError of other compressions.
_DAMAGES = (
    ValueError, TypeError, LookupError, ArithmeticError, SyntaxError, TokenError, EOFError, RuntimeError,
    AttributeError, struct.error, zlib.error, LZMAError, zipfile.BadZipFile,
)  # fmt: skip


@contextmanager
def damages(what: str, remedy: str) -> Iterator[None]:
    """Turn errors of parsers into faults, whose sentences are "what (error); remedy."."""
    try:
        yield
    except _DAMAGES as error:
        reason = (shortened(str(error)) or type(error).__name__).replace("\n", " ").rstrip(".")
        raise Fault(f"{what} ({reason}); {remedy}.") from None


def read_header(file: IO[bytes]) -> Header:
    """Return shape, order and type of an array; the file is left at its first number.

    Raises
    ------
    ValueError and others of `damages`
        If it is no array of numbers or strings.
    """
    version = form.read_magic(file)
    if version not in _VERSIONS:
        raise ValueError(f"version {version[0]}.{version[1]} of the format is not known")
    start, first = file.tell(), version == (1, 0)
    length = int.from_bytes(file.read(2 if first else 4), "little")
    if length > _LONGEST_HEADER:
        raise ValueError(f"the header has {length} bytes")
    file.seek(start)
    shape, by_columns, dtype = (form.read_array_header_1_0 if first else form.read_array_header_2_0)(file)
    if any(size < 0 for size in shape) or dtype.subdtype is not None or not dtype.itemsize:
        raise ValueError(f"an array of shape {shape} and type {dtype} cannot be read")
    return shape, by_columns, dtype


def read_member(archive: zipfile.ZipFile, name: str) -> np.ndarray:
    """Return an array of an archive; raise Fault where it is cut short or holds text that is not Unicode."""
    member = f"{name}.npy"
    with damages(f"the array {member!r} is damaged", COPY), archive.open(member) as file:
        shape, _, dtype = read_header(file)
        if archive.getinfo(member).file_size < file.tell() + dtype.itemsize * prod(shape):
            raise Fault(f"the array {member!r} is cut short; copy the file again.")
        file.seek(0)
        array = form.read_array(file, allow_pickle=False)
    check_text(name, array)
    return array


def check_text(name: str, array: Any) -> None:
    """Raise Fault where strings of an array hold numbers that stand for no sign of Unicode."""
    if array.dtype.kind != "U" or not array.size:
        return
    codes = np.ascontiguousarray(array).view(np.dtype(np.uint32).newbyteorder(array.dtype.byteorder))
    below, above = _SURROGATES
    if codes.max() > _LAST_CODE or ((codes >= below) & (codes <= above)).any():
        raise Fault(f"the array {name!r} holds text that is not Unicode; save it again.")
