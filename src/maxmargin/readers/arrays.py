"""NumPy archives: dense X and y, or the arrays of a CSR matrix and y; single arrays, block by block."""

from __future__ import annotations

import zipfile
from collections.abc import Iterator
from contextlib import ExitStack, nullcontext
from math import prod
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

from ..numerics.fault import Fault, shortened
from ..numerics.representable import first_rounded
from .array_format import COPY, check_text, damages, read_header, read_member
from .blocks import Block
from .files import Digest, require_memory
from .table import Expected, Table, check_finite, checked, listed

_SPARSE = ("data", "indices", "indptr", "shape")
# Bytes of an array whose shape has a product that float64 may not hold: more than any memory.
_MORE_THAN_ANY = 10**30


def read_npz(path: Path, expected: Expected) -> Table:
    """Read an archive; nothing in it is unpickled."""
    if not zipfile.is_zipfile(path):
        raise Fault("this is not an .npz file, or it is cut short; write or copy it again.")
    with ExitStack() as opened:
        with damages("this is not a valid .npz file", COPY):
            archive = opened.enter_context(zipfile.ZipFile(path))
        headers = _headers(archive)
        require_memory(sum(_bytes_of(name, *header) for name, header in headers.items()))
        names = (name for name in (*_SPARSE, "format", "X", "y") if name in headers)
        arrays = {name: read_member(archive, name) for name in names}
    if "X" in arrays:
        X = _numbers("X", arrays["X"])
        rounded = first_rounded(arrays["X"])
        if X.ndim != 2:
            raise Fault(f"X must have two dimensions, rows and features; its shape is {X.shape}: reshape it.")
    elif arrays.keys() >= {*_SPARSE}:
        X = _sparse(arrays)
        rounded = first_rounded(arrays["data"])
    else:
        raise Fault(
            "the file needs an array X, or the arrays data, indices, indptr and shape; its arrays are "
            f"{listed(list(headers)) or 'none'}."
        )
    check_finite(X)
    width = expected.n_features
    if width is not None and sp.issparse(X) and X.shape[1] < width:
        X.resize(X.shape[0], width)
    if width is not None and X.shape[1] != width:
        raise Fault(f"the model has {width} features, and X has {X.shape[1]}; give the features of the fit.")
    y = arrays.get("y")
    if y is None and not expected.for_model:
        raise Fault("there is no array 'y' with the labels; save them beside X.")
    if 0 in X.shape:
        raise Fault(f"X is empty, {X.shape[0]} rows of {X.shape[1]} features; save rows with features.")
    if y is not None:
        y = y.ravel() if y.ndim == 2 and 1 in y.shape else y
        if y.shape != X.shape[:1]:
            raise Fault(f"y must hold one label for each of the {X.shape[0]} rows; its shape is {y.shape}.")
        y = checked(y)
    return Table(X, y, rounded=None if rounded is None else str(rounded))


def array_shape(path: Path) -> tuple[tuple[int, ...], np.dtype, int]:
    """Return shape and type of a .npy file, and the place of its first number.

    Raises
    ------
    Fault
        If it is none, or its rows are not stored one after another.
    """
    with open(path, "rb") as file:
        with damages("this is not a valid .npy file", "save it again"):
            shape, by_columns, dtype = read_header(file)
        if by_columns and len(shape) > 1:
            raise Fault("the array is stored by columns; save numpy.ascontiguousarray(X).")
        if dtype.hasobject:
            raise Fault("the array holds Python objects; save it as numbers or strings.")
        if path.stat().st_size < file.tell() + dtype.itemsize * prod(shape):
            raise Fault("the file is cut short; copy it again.")
        return shape, dtype, file.tell()


def stream_arrays(
    path: Path, labels: Path | None, size: int, digest: Digest | None, of_labels: Digest | None
) -> Iterator[Block]:
    """Read a .npy file of rows, and one of labels if it is named, block by block of about `size` bytes."""
    (n, d), dtype, start = array_shape(path)
    shape, kind, begin = ((n,), np.dtype(float), 0) if labels is None else array_shape(labels)
    if shape != (n,):
        raise Fault(f"there must be one label for each of the {n} rows; the shape of {labels} is {shape}.")
    step, rounded = max(1, size // (dtype.itemsize * d)), None
    with open(path, "rb") as rows, nullcontext() if labels is None else open(labels, "rb") as classes:
        rows.seek(start)
        if classes is not None:
            classes.seek(begin)
        for before in range(0, n, step):
            count = min(step, n - before)
            X = np.fromfile(rows, dtype, count * d)
            y = None if classes is None else np.fromfile(classes, kind, count)
            if X.size < count * d or (y is not None and y.size < count):
                raise Fault("the file was changed while it was read; read it again.")
            numbers = _numbers("X", X.reshape(count, d))
            rounded = first_rounded(X) if rounded is None else rounded
            check_finite(numbers, None, before)
            if y is not None:
                check_text("y", y)
            if digest is not None:
                digest.seen = rows.tell()
            yield Block(numbers, y, slice(None), None if rounded is None else str(rounded))
    if digest is not None and labels is not None and of_labels is not None:
        digest.read(path)
        of_labels.read(labels)


def _headers(archive: zipfile.ZipFile) -> dict[str, tuple[tuple[int, ...], np.dtype]]:
    """Return shape and type of every array, without reading the arrays."""
    headers = {}
    for member in archive.namelist():
        if not member.endswith(".npy"):
            continue
        with damages(f"the array {shortened(repr(member))} is damaged", COPY), archive.open(member) as file:
            shape, _, dtype = read_header(file)
        headers[member.removesuffix(".npy")] = (shape, dtype)
    return headers


def _bytes_of(name: str, shape: tuple[int, ...], dtype: np.dtype) -> float:
    """Return the memory that an array takes, with a copy to float64 of numbers that are no floats."""
    if dtype.hasobject:
        raise Fault(f"the array {name!r} holds Python objects; save it as numbers or strings.")
    entry = dtype.itemsize + (0 if dtype.kind in "fUS" else 8)
    return float(min(entry * prod(shape), _MORE_THAN_ANY))


def _sparse(arrays: dict[str, np.ndarray]) -> Any:
    """Return the matrix of the arrays of `scipy.sparse.save_npz`, as CSR."""
    kind = arrays["format"].tolist() if "format" in arrays else "csr"
    kind = kind.decode("ascii", "replace") if isinstance(kind, bytes) else str(kind)
    if kind not in ("csr", "csc"):
        raise Fault(f"the sparse matrix has the format {kind!r}; save X.tocsr().")
    data = _numbers("data", arrays["data"])
    matrix = sp.csr_matrix if kind == "csr" else sp.csc_matrix
    try:
        X: Any = matrix((data, arrays["indices"], arrays["indptr"]), arrays["shape"].ravel().tolist())
        X.check_format(full_check=True)
    except (TypeError, ValueError, ArithmeticError, LookupError) as error:
        raise Fault(f"the arrays are not a valid {kind.upper()} matrix ({error}); save it again.") from None
    if kind == "csc":  # rows are counted in the conversion, and need not have entries
        require_memory(16.0 * X.shape[0] + 24.0 * X.nnz)
    return X.tocsr()


def _numbers(name: str, a: np.ndarray) -> np.ndarray:
    """Return an array of real numbers as float32 or float64."""
    if a.dtype.kind not in "fiub":
        remedy = "make two real columns of each" if a.dtype.kind == "c" else "encode text and dates"
        raise Fault(f"the array {name!r} must hold real numbers, not {a.dtype}: {remedy}.")
    return a if a.dtype in (np.float32, np.float64) else a.astype(np.float64)
