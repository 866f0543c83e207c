"""The parameters `algorithm` and `hasher` of a stream: check of the algorithm, and hashing of rows."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.feature_extraction import FeatureHasher

from ..algorithms import ALGORITHMS, CRAMMA, MICRA, Algorithm, FixedDirectionalMargin, LocalPerceptron
from ..fit.streaming import streams
from ..numerics.finite import first_not_finite
from ..problem.problem import Problem
from .validation import named_algorithm

NOT_FOR_STREAMS = {  # the reasons in error messages
    "mpu": "it takes back what it has learnt from a pattern when the pattern comes again",
    "dcd": "it changes the dual variable of a pattern a little every time the pattern comes",
    "cutting-plane": "every plane is made of all patterns",
    "lp": "a linear program is one of all patterns",
    "fmp": "it comes to its margin only in many passes",
    "ima": "it goes from margin to margin, each found in many passes",
    "pegasos": "it draws patterns at random from all of them, and its steps depend on how many there are",
}
EXAMPLE_RATES = {  # of the algorithms with a parameter that has no default in a stream
    "cramma": "CRAMMA(eta=0.1)",
    "micra": "MICRA(eta=0.3)",
    "fixed-margin": "FixedDirectionalMargin(beta=0.01, eta=0.1)",
}
ROWS_OF_INPUT_TYPE = {  # rows that each `input_type` of FeatureHasher takes
    "dict": "a dict of features, {'height': 1.7, 'colour=red': 1}",
    "pair": "a list of pairs, [('height', 1.7), ('colour=red', 1)]",
    "string": "a list of words, ['tall', 'red']",
}


def stream_algorithm(algorithm: Any, problem: Problem) -> Algorithm:
    """Return the algorithm of a stream; "auto" is `LocalPerceptron`. Refuse algorithms that need stored rows."""
    suitable = [name for name, cls in ALGORITHMS.items() if streams(cls)]
    if isinstance(algorithm, str) and algorithm == "auto":
        algorithm = LocalPerceptron.name
    algorithm = named_algorithm(algorithm, ALGORITHMS, "ALMA()", Algorithm, suitable)
    if not streams(type(algorithm)):
        reason = NOT_FOR_STREAMS.get(algorithm.name, "it needs a pattern more than once")
        raise ValueError(
            f"algorithm {algorithm.name!r} cannot learn from a stream, which brings a pattern only once: "
            f"{reason}. Use MaxMarginClassifier, or one of {', '.join(map(repr, suitable))}."
        )
    if isinstance(algorithm, FixedDirectionalMargin) and algorithm.beta is None:
        raise ValueError(
            "fixed-margin without beta takes a share of a margin found by a run over all patterns, which a "
            "stream has not: give the margin to reach, FixedDirectionalMargin(beta=0.01) for instance."
        )
    if isinstance(algorithm, CRAMMA | MICRA | FixedDirectionalMargin) and algorithm.eta is None:
        raise ValueError(
            f"{algorithm.name} without eta takes its rate from a bound on the margin that a run over all patterns "
            "finds, which a stream has not, and no theorem covers a rate without one: give a rate, "
            f"{EXAMPLE_RATES[algorithm.name]} for instance."
        )
    instead = algorithm.refuses(problem)
    if instead is not None:
        raise ValueError(f"algorithm {algorithm.name!r} needs {instead}.")
    return algorithm


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
    found = first_not_finite(X)
    if found is not None:
        raise ValueError(f"Row {found[0]} (counted from 0) holds NaN or infinity: leave such features out.")
