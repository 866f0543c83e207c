"""Rows of features that are not known beforehand, by feature hashing."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.feature_extraction import FeatureHasher

ROWS_OF_INPUT_TYPE = {  # rows that each `input_type` of FeatureHasher takes
    "dict": "a dict of features, {'height': 1.7, 'colour=red': 1}",
    "pair": "a list of pairs, [('height', 1.7), ('colour=red', 1)]",
    "string": "a list of words, ['tall', 'red']",
}


def as_hasher(hasher: Any) -> FeatureHasher:
    """Return the hasher; a number stands for ``FeatureHasher(n_features=number)``."""
    return hasher if isinstance(hasher, FeatureHasher) else FeatureHasher(int(hasher))


def hash_rows(hasher: FeatureHasher, X: Any) -> Any:
    """Hash rows to a CSR matrix of `hasher.n_features` columns.

    Parameters
    ----------
    hasher : FeatureHasher
    X : list of rows, or sparse matrix
        Column j of a sparse matrix is the feature named ``str(j)``.

    Raises
    ------
    ValueError
        If X is something else, or holds NaN or infinity.
    """
    if not sp.issparse(X):
        rows = _hash_lists(hasher, X)
        _check_finite(rows)
        return rows
    X = sp.csr_matrix(X)
    _check_finite(X)
    if not X.nnz:  # FeatureHasher refuses an empty list of names
        return sp.csr_matrix((X.shape[0], hasher.n_features), dtype=hasher.dtype)
    used, position = np.unique(X.indices, return_inverse=True)
    # Row j of `hashed` has one entry: the column and the sign of feature used[j].
    hashed: Any = FeatureHasher(
        hasher.n_features, input_type="string", dtype=hasher.dtype, alternate_sign=hasher.alternate_sign
    ).transform([[str(j)] for j in used.tolist()])
    entries = (X.data * hashed.data[position], hashed.indices[position], X.indptr.copy())
    out = sp.csr_matrix(entries, (X.shape[0], hasher.n_features))
    out.sum_duplicates()
    return out


def _hash_lists(hasher: FeatureHasher, X: Any) -> Any:
    """Hash rows that are no matrix; name the right form of X where they cannot be hashed."""
    kind: str = hasher.input_type  # pyright: ignore[reportAttributeAccessIssue]
    form = (
        f"With a hasher, X is a list of rows, each {ROWS_OF_INPUT_TYPE[kind]}, or a CSR matrix of any width: "
    )
    if isinstance(X, np.ndarray) and X.dtype != object:
        raise ValueError(f"{form}give scipy.sparse.csr_matrix(X).")
    if hasattr(X, "to_dict") and hasattr(X, "columns"):
        raise ValueError(f'{form}give X.to_dict("records") of this table.')
    if isinstance(X, Mapping | str):
        raise ValueError(f"{form}for one row, give [X].")
    try:
        return hasher.transform(X)
    except (AttributeError, TypeError, ValueError, StopIteration) as error:
        reason = "there is no row" if isinstance(error, StopIteration) else str(error).rstrip(".")
        raise ValueError(f"{form}these rows are something else ({reason}).") from error


def _check_finite(X: Any) -> None:
    if not np.isfinite(X.data).all():
        raise ValueError("Rows hold NaN or infinity: leave these features out, or give them numbers.")
