"""NumPy archives: dense X and y, or the arrays of a CSR matrix and y."""

from __future__ import annotations

import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.lib import format as form

from ...numerics.representable import first_rounded
from .files import require_memory
from .table import DataError, Expected, Table, check_finite, check_labels, listed, whole

_SPARSE = ("data", "indices", "indptr", "shape")


def read_npz(path: Path, expected: Expected) -> Table:
    """Read an archive; nothing in it is unpickled."""
    if not zipfile.is_zipfile(path):
        raise DataError(f"{path}: this is no .npz file, or it is cut short; write or copy it again.")
    headers = _headers(path)
    for name, (_, dtype) in headers.items():
        if dtype.hasobject:
            raise DataError(
                f"{path}: the array {name!r} holds Python objects, which could run code when loaded; "
                "save it as numbers or strings."
            )
    require_memory(path, sum(_bytes(shape, dtype) for shape, dtype in headers.values()))
    with np.load(path, allow_pickle=False) as archive:
        y = archive["y"] if "y" in headers else None
        rounded = next((first_rounded(archive[name]) for name in ("X", "data") if name in headers), None)
        if "X" in headers:
            X = _dense(path, archive["X"], expected)
        elif all(name in headers for name in _SPARSE):
            X = _sparse(path, archive, headers, expected)
        else:
            raise DataError(
                f"{path}: there is neither X nor data, indices, indptr and shape; name the arrays so, which "
                f"are {listed(list(headers)) or 'none'}."
            )
    if y is None and not expected.for_model:
        raise DataError(f"{path}: there is no array 'y' with the labels; save them beside X.")
    if X.shape[0] == 0 or X.shape[1] == 0:
        raise DataError(f"{path}: X is empty: {X.shape[0]} rows, {X.shape[1]} features.")
    y = None if y is None else _labels(path, y, X.shape[0])
    return Table(X, y, rounded=None if rounded is None else str(rounded))


def _labels(path: Path, y: np.ndarray, rows: int) -> np.ndarray:
    y = y.ravel() if y.ndim == 2 and 1 in y.shape else y
    if y.shape != (rows,):
        raise DataError(f"{path}: y must hold one label for each of the {rows} rows; got {y.shape}.")
    check_labels(path, y)
    return whole(y)


def _headers(path: Path) -> dict[str, tuple[tuple[int, ...], np.dtype]]:
    """Return shape and type of every array, without reading the arrays."""
    headers = {}
    with zipfile.ZipFile(path) as archive:
        for member in archive.namelist():
            if not member.endswith(".npy"):
                continue
            with archive.open(member) as file:
                try:
                    first_version = form.read_magic(file) == (1, 0)
                    read = form.read_array_header_1_0 if first_version else form.read_array_header_2_0
                    shape, _, dtype = read(file)
                except (ValueError, SyntaxError) as error:
                    raise DataError(f"{path}: the array {member!r} is damaged ({error}).") from None
            headers[member.removesuffix(".npy")] = (shape, dtype)
    return headers


def _bytes(shape: tuple[int, ...], dtype: np.dtype) -> float:
    """Return the memory that an array takes; numbers of other types are copied to float64."""
    entries = float(np.prod(np.array(shape, dtype=float)))
    return entries * dtype.itemsize + (0.0 if dtype.kind in "fUS" else 8.0 * entries)


def _dense(path: Path, X: np.ndarray, expected: Expected) -> np.ndarray:
    if X.ndim != 2:
        raise DataError(f"{path}: X must have two dimensions, rows and features; its shape is {X.shape}.")
    if expected.n_features is not None and X.shape[1] != expected.n_features:
        raise DataError(f"{path}: the model has {expected.n_features} features, X holds {X.shape[1]}.")
    X = _numbers(path, "X", X)
    check_finite(path, X)
    return X


def _sparse(path: Path, archive: Any, headers: dict[str, Any], expected: Expected) -> Any:
    """Return the CSR matrix of the arrays of an archive, as wide as the model where one is known."""
    kind = archive["format"].item() if "format" in headers else b"csr"
    kind = kind.decode() if isinstance(kind, bytes) else str(kind)
    if kind not in ("csr", "csc"):
        raise DataError(f"{path}: the sparse matrix is stored as {kind!r}; save X.tocsr().")
    shape = tuple(int(side) for side in archive["shape"].ravel())
    data = _numbers(path, "data", archive["data"])
    if len(shape) != 2 or not np.isfinite(data).all():
        what = "'data' holds NaN or infinity" if len(shape) == 2 else f"the shape is {shape}"
        raise DataError(f"{path}: {what}; save a sparse matrix of finite numbers with two dimensions.")
    matrix = sp.csr_matrix if kind == "csr" else sp.csc_matrix
    try:
        X: Any = matrix((data, archive["indices"], archive["indptr"]), shape)
        X.check_format(full_check=True)
    except ValueError as error:
        raise DataError(f"{path}: the arrays are no sound {kind.upper()} matrix: {error}.") from None
    X = X.tocsr()
    if expected.n_features is not None:
        if X.shape[1] > expected.n_features:
            raise DataError(f"{path}: the model has {expected.n_features} features, X holds {X.shape[1]}.")
        X.resize(X.shape[0], expected.n_features)
    return X


def _numbers(path: Path, name: str, a: np.ndarray) -> np.ndarray:
    if a.dtype.kind not in "fiub":
        raise DataError(f"{path}: the array {name!r} must hold real numbers; its type is {a.dtype}.")
    if a.dtype in (np.float32, np.float64):
        return a
    return a.astype(np.float64)
