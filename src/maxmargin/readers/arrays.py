"""NumPy archives: dense X and y, or the arrays of a sparse matrix and y."""

from __future__ import annotations

from collections.abc import Generator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

from ..numerics.files import Fault
from .table import Block, Layout, check_finite, listed

_SPARSE = ("data", "indices", "indptr", "shape")
_SHAPE = "X must have two dimensions, rows and features; its shape is {}: reshape it."


def open_npz(path: Path) -> Layout:
    """Look at an archive; nothing in it is unpickled."""
    with open(path, "rb") as file, np.load(file, allow_pickle=False) as archive:
        needed = 2.0 * sum(member.file_size for member in archive.zip.infolist())
        return Layout(".npz", partial(_read_npz, path), needed, has_labels="y" in archive.files)


def _read_npz(path: Path, features: None, nbytes: int) -> Generator[Block, None, None]:
    """Yield all rows of an archive."""
    with open(path, "rb") as file, np.load(file, allow_pickle=False) as archive:
        arrays = {name: archive[name] for name in archive.files if name in (*_SPARSE, "format", "X", "y")}
        names = listed(archive.files) or "none"
    if "X" in arrays:
        X: Any = _numbers("X", arrays["X"])
        if X.ndim != 2 or not X.size:
            raise Fault(_SHAPE.format(X.shape))
    elif arrays.keys() >= {*_SPARSE}:
        kind = arrays["format"].astype(str).item() if "format" in arrays else "csr"
        if kind not in ("csr", "csc"):
            raise Fault(f"the sparse matrix has the format {kind!r}; save X.tocsr().")
        matrix = sp.csr_matrix if kind == "csr" else sp.csc_matrix
        parts = _numbers("data", arrays["data"]), arrays["indices"], arrays["indptr"]
        X = matrix(parts, arrays["shape"].ravel().tolist())
        X.check_format(full_check=True)
        X = X.tocsr()
    else:
        raise Fault(
            f"the file needs an array X, or the arrays data, indices, indptr and shape; its arrays are {names}."
        )
    check_finite(X)
    yield X, _labels(X, arrays.get("y"), "y")


def _labels(X: Any, y: np.ndarray | None, name: str) -> np.ndarray | None:
    """Return labels, of which a column is made flat; raise Fault unless each row has one."""
    y = y.ravel() if y is not None and y.ndim == 2 and 1 in y.shape else y
    if y is not None and y.shape != X.shape[:1]:
        raise Fault(f"{name} must hold one label for each of the {X.shape[0]} rows; its shape is {y.shape}.")
    return y


def _numbers(name: str, a: np.ndarray) -> np.ndarray:
    """Return an array of real numbers as float32 or float64."""
    if a.dtype.kind not in "fiub":
        raise Fault(f"the array {name!r} must hold real numbers, not {a.dtype}.")
    return a if a.dtype in (np.float32, np.float64) else a.astype(np.float64)
