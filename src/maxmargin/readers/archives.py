"""NumPy archives: dense X and y, or the arrays of a sparse matrix and y."""

from __future__ import annotations

from collections.abc import Generator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

from ..numerics.files import Fault
from .table import Block, Expected, Layout, check_finite, listed


def open_npz(path: Path, expected: Expected) -> Layout:
    """Look at an archive; nothing in it is unpickled."""
    with open(path, "rb") as file, np.load(file, allow_pickle=False) as archive:
        return Layout(".npz", partial(_blocks, path, expected.n_features), has_labels="y" in archive.files)


def _blocks(path: Path, width: int | None, features: None, nbytes: int) -> Generator[Block, None, None]:
    """Yield all rows of an archive, sparse ones in `width` columns if it is given."""
    with open(path, "rb") as file, np.load(file, allow_pickle=False) as archive:
        y = archive["y"] if "y" in archive.files else None
        if "X" in archive.files:
            X: Any = archive["X"]
        elif {"data", "indices", "indptr", "shape"} <= {*archive.files}:
            kind = archive["format"].astype(str).item() if "format" in archive.files else "csr"
            if kind not in ("csr", "csc"):
                raise Fault(f"the sparse matrix has the format {kind!r}; save X.tocsr().")
            matrix = sp.csr_matrix if kind == "csr" else sp.csc_matrix
            parts = archive["data"], archive["indices"], archive["indptr"]
            X = matrix(parts, archive["shape"].ravel().tolist())
            X.check_format(full_check=True)
            X = X.tocsr()
            X.resize(X.shape[0], max(width or 0, X.shape[1]))
        else:
            names = listed(archive.files) or "none"
            raise Fault(
                f"the file needs an array X, or the arrays data, indices, indptr and shape; its arrays are {names}."
            )
    if X.dtype.kind not in "fiub":
        raise Fault(f"X must hold real numbers, not {X.dtype}.")
    if X.ndim != 2 or 0 in X.shape:
        raise Fault(f"X must have two dimensions, rows and features; its shape is {X.shape}: reshape it.")
    if width not in (None, X.shape[1]):
        raise Fault(f"there must be {width} features, and X has {X.shape[1]}; give the features of the fit.")
    X = X if X.dtype in (np.float32, np.float64) else X.astype(np.float64)
    check_finite(X)
    y = y.ravel() if y is not None and y.ndim == 2 and 1 in y.shape else y
    if y is not None and y.shape != X.shape[:1]:
        raise Fault(f"y must hold one label for each of the {X.shape[0]} rows; its shape is {y.shape}.")
    yield X, y
