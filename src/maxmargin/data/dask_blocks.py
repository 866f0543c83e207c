"""Rows of Dask arrays and data frames: their shape, their blocks as matrices, and functions of blocks."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import scipy.sparse as sp

from ..numerics.column_errors import ENCODE
from ..numerics.sparse_columns import canonical


def check_columns(X: Any) -> None:
    """Refuse collections that are no matrices of numbers, and arrays whose columns are in several chunks."""
    if X.ndim != 2:
        raise ValueError(f"X must have two dimensions, not {X.ndim}: X.reshape(-1, 1) makes a column.")
    if hasattr(X, "numblocks") and X.numblocks[1] != 1:
        chunks = X.numblocks[1]
        raise ValueError(f"all columns of X must be in one chunk, not in {chunks}: X.rechunk({{1: -1}}).")
    types = X.dtypes.items() if hasattr(X, "dtypes") else [("", X.dtype)]
    for name, kind in types:
        if getattr(kind, "kind", "O") not in "biuf":
            where = f"column {name!r} of X" if hasattr(X, "dtypes") else "X"
            raise ValueError(f"{where} holds {kind}, and no numbers: {ENCODE}.")


def unmasked(numbers: Any) -> Any:
    """Return numbers with NaN, which is refused, for masked entries: NumPy would read what is under the mask."""
    return numbers.astype(float).filled(np.nan) if np.ma.is_masked(numbers) else numbers


def matrix(X: Any) -> Any:
    """Return a block of rows as an array in C order or a canonical CSR matrix, of float32 or float64."""
    if hasattr(X, "to_numpy"):
        single = len(X.columns) and all(kind == np.float32 for kind in X.dtypes)
        X = X.to_numpy(dtype=np.float32 if single else np.float64, na_value=np.nan)
    X = X.tocsr() if sp.issparse(X) else np.asarray(unmasked(X))
    X = X if X.dtype in (np.float32, np.float64) else X.astype(np.float64)
    return canonical(X) if sp.issparse(X) else np.ascontiguousarray(X)


def example_row(X: Any, columns: int) -> Any:
    """Return one row of zeros of the same kind, with the names of the columns; `columns` is used where X has none."""
    if hasattr(X, "columns"):
        import pandas

        return pandas.DataFrame(np.zeros((1, len(X.columns))), columns=X.columns)
    width = columns if np.isnan(X.shape[1]) else X.shape[1]
    return np.zeros((1, width), X.dtype)


def map_blocks(function: Callable[[Any], np.ndarray], X: Any, columns: int, names: Any) -> Any:
    """Return the results of a function of matrices for all blocks of rows, as a lazy collection.

    Parameters
    ----------
    function : callable
        Returns an array with one row for each row.
    X : dask.array.Array or dask.dataframe.DataFrame of shape (n, d)
    columns : int
        As of `example_row`.
    names : ndarray
        Names of the columns of a result with two dimensions.

    Returns
    -------
    dask.array.Array, or dask.dataframe.Series or DataFrame with the index of X
    """
    example = example_row(X, columns)
    block = partial(_of_block, function, names)
    found = block(example)
    if hasattr(X, "map_partitions"):
        return X.map_partitions(block, meta=found.iloc[:0])
    sizes = {"drop_axis": 1} if found.ndim == 1 else {"chunks": (X.chunks[0], found.shape[1:])}
    return X.map_blocks(block, dtype=found.dtype, meta=found[:0], **sizes)


def _of_block(function: Callable[[Any], np.ndarray], names: Any, X: Any) -> Any:
    """Return the result for a block of rows, which may have none; of a frame with its index."""
    rows = matrix(X)
    found = function(rows if rows.shape[0] else np.zeros((1, rows.shape[1])))[: rows.shape[0]]
    if not hasattr(X, "to_numpy"):
        return found
    import pandas

    if found.ndim == 1:
        return pandas.Series(found, index=X.index)
    return pandas.DataFrame(found, index=X.index, columns=names)
