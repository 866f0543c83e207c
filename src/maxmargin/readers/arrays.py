"""NumPy archives: dense X and y, or the arrays of a CSR matrix and y; single arrays, block by block."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

from ..numerics.files import Fault
from .files import require_memory
from .table import Block, Expected, Table, check_finite, check_labels, listed, whole

_SPARSE = ("data", "indices", "indptr", "shape")


def read_npz(path: Path, expected: Expected) -> Table:
    """Read an archive; nothing in it is unpickled."""
    with open(path, "rb") as file, np.load(file, allow_pickle=False) as archive:
        require_memory(sum(float(member.file_size) for member in archive.zip.infolist()))
        arrays = {name: archive[name] for name in archive.files if name in (*_SPARSE, "format", "X", "y")}
    if "X" in arrays:
        X = _numbers("X", arrays["X"])
        if X.ndim != 2 or not X.size:
            raise Fault(f"X must have two dimensions, rows and features; its shape is {X.shape}: reshape it.")
    elif arrays.keys() >= {*_SPARSE}:
        X = _sparse(arrays)
    else:
        raise Fault(
            "the file needs an array X, or the arrays data, indices, indptr and shape; its arrays are "
            f"{listed(list(archive.files)) or 'none'}."
        )
    check_finite(X)
    width, y = expected.n_features, arrays.get("y")
    if width is not None and sp.issparse(X) and X.shape[1] < width:
        X.resize(X.shape[0], width)
    if width is not None and X.shape[1] != width:
        raise Fault(f"the model has {width} features, and X has {X.shape[1]}; give the features of the fit.")
    if y is None and not expected.for_model:
        raise Fault("there is no array 'y' with the labels; save them beside X.")
    if y is not None:
        y = y.ravel() if y.ndim == 2 and 1 in y.shape else y
        if y.shape != X.shape[:1]:
            raise Fault(f"y must hold one label for each of the {X.shape[0]} rows; its shape is {y.shape}.")
        check_labels(y)
        y = whole(y)
    return Table(X, y)


def mapped_array(path: Path) -> np.ndarray:
    """Return the array of a .npy file, mapped into memory; nothing in it is unpickled."""
    with np.errstate(over="ignore"):  # of a damaged shape, which is refused
        return np.load(path, mmap_mode="r", allow_pickle=False)


def stream_arrays(path: Path, labels: Path | None, size: int) -> Iterator[Block]:
    """Read a .npy file of rows, and one of labels if it is named, block by block of about `size` bytes."""
    X, y = mapped_array(path), None if labels is None else mapped_array(labels)
    if y is not None and y.shape != X.shape[:1]:
        raise Fault(
            f"there must be one label for each of the {len(X)} rows; the shape of {labels} is {y.shape}."
        )
    step = max(1, size // (X.itemsize * X.shape[1]))
    for begin in range(0, len(X), step):
        rows = _numbers("X", np.array(X[begin : begin + step]))
        check_finite(rows, None, begin)
        yield Block(rows, None if y is None else np.array(y[begin : begin + step]))


def _sparse(arrays: dict[str, np.ndarray]) -> Any:
    """Return the matrix of the arrays of `scipy.sparse.save_npz` as CSR."""
    kind = arrays["format"].item() if "format" in arrays else "csr"
    kind = kind.decode() if isinstance(kind, bytes) else str(kind)
    if kind not in ("csr", "csc"):
        raise Fault(f"the sparse matrix has the format {kind!r}; save X.tocsr().")
    matrix = sp.csr_matrix if kind == "csr" else sp.csc_matrix
    parts = _numbers("data", arrays["data"]), arrays["indices"], arrays["indptr"]
    X: Any = matrix(parts, arrays["shape"].ravel().tolist())
    X.check_format(full_check=True)
    require_memory(16.0 * X.shape[0] + 24.0 * X.nnz)
    return X.tocsr()


def _numbers(name: str, a: np.ndarray) -> np.ndarray:
    """Return an array of real numbers as float32 or float64."""
    if a.dtype.kind not in "fiub":
        raise Fault(f"the array {name!r} must hold real numbers, not {a.dtype}.")
    return a if a.dtype in (np.float32, np.float64) else a.astype(np.float64)
