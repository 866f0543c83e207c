"""The first entry of rows that is NaN or infinite."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp


def first_not_finite(X: Any) -> tuple[int, int, float] | None:
    """Return row, column and value of the first entry that is NaN or infinite; None where there is none.

    Parameters
    ----------
    X : ndarray or CSR matrix of shape (n, d)
        Numbers; of a CSR matrix the first stored entry of the first such row is meant.
    """
    entries = X.data if sp.issparse(X) else X
    with np.errstate(over="ignore", invalid="ignore"):
        # one pass, no copy; a sum that overflows is examined below
        if np.isfinite(entries.sum(dtype=np.float64)):
            return None
    places = np.flatnonzero(~np.isfinite(entries))
    if not places.size:
        return None
    k = int(places[0])
    if not sp.issparse(X):
        row, column = divmod(k, X.shape[1])
        return row, column, float(X[row, column])
    return int(np.searchsorted(X.indptr, k, side="right")) - 1, int(X.indices[k]), float(X.data[k])
