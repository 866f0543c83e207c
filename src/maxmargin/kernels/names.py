"""Kernels by scikit-learn's names and parameters."""

from __future__ import annotations

from numbers import Integral, Real
from sys import float_info
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.metrics.pairwise import KERNEL_PARAMS

from ..numerics.sums import EPS
from .functions import Gaussian, Kernel, Linear, Pairwise, Polynomial, Precomputed, Sigmoid


def kernel_named(kernel: Any, X: Any, gamma: Any, degree: Any, coef0: Any) -> Kernel:
    """Return the kernel that scikit-learn's parameters stand for; None is the linear one.

    Parameters
    ----------
    kernel : str, callable or None
    X : ndarray or CSR matrix of shape (n, d)
        Data whose features and variance ``"auto"`` and ``"scale"`` take.
    gamma : float, "scale" or "auto"
    degree : int
    coef0 : float

    Raises
    ------
    ValueError
        If a parameter cannot be used; the message says what can.
    """
    if kernel is None or (isinstance(kernel, str) and kernel == "linear"):
        return Linear()
    if callable(kernel):
        return Pairwise(kernel)
    if not isinstance(kernel, str) or kernel not in KERNEL_PARAMS.keys() | {"precomputed"}:
        names = ", ".join(map(repr, sorted({*KERNEL_PARAMS, "precomputed"})))
        raise ValueError(f"kernel must be one of {names}, or a function of two matrices; got {kernel!r}.")
    if kernel == "precomputed":
        return Precomputed()
    if isinstance(degree, bool) or not isinstance(degree, Integral) or degree < 0:
        raise ValueError(f"degree must be a whole number of at least 0; got {degree!r}.")
    # Pairwise gets those parameters that its kernel has
    known = {
        "gamma": _number("gamma", width(gamma, X)),
        "degree": int(degree),
        "coef0": _number("coef0", coef0),
    }
    if kernel in ("poly", "polynomial"):
        return Polynomial(**known)
    if kernel == "rbf":
        return Gaussian(known["gamma"])
    if kernel == "sigmoid":
        return Sigmoid(known["gamma"], known["coef0"])
    return Pairwise(
        kernel, tuple((name, known[name]) for name in sorted(KERNEL_PARAMS[kernel] & known.keys()))
    )


def width(gamma: Any, X: Any, weights: np.ndarray | None = None) -> float:
    """Return `gamma` as a number; with "scale" it is 1 / (d variance of X), rows being counted by their weights."""
    if isinstance(gamma, str):
        if gamma == "auto":
            return 1.0 / X.shape[1]
        if gamma != "scale":
            raise ValueError(f'gamma must be a number of at least 0, "scale" or "auto"; got {gamma!r}.')
        variance = _variance(X, np.ones(X.shape[0]) if weights is None else weights)
        return 1.0 / (X.shape[1] * variance) if variance else 1.0  # as in scikit-learn
    value = -1.0 if gamma is None else _number("gamma", gamma)
    if not value >= 0.0:
        raise ValueError(f'gamma must be a number of at least 0, "scale" or "auto"; got {gamma!r}.')
    return value


def _variance(X: Any, weights: np.ndarray) -> float:
    """Return the variance of all entries of X, in which rows are counted by their weights.

    Entries are taken relative to the first one (dense) or to 0 (sparse), against cancellation.
    """
    fractions = weights / (float(weights.sum()) * X.shape[1])
    if sp.issparse(X):
        mean = float(np.asarray(X.T @ fractions, dtype=float).sum())
        # zeros that are not stored have the squared deviation mean^2: it is added for all and subtracted for the others
        excess = np.square(X.data.astype(float) - mean) - mean * mean
        spread = sp.csr_matrix((excess, X.indices, X.indptr), X.shape)
        variance = float((spread.T @ fractions).sum()) + mean * mean
        return variance if variance > 64.0 * EPS * mean * mean else 0.0  # all entries equal, up to rounding
    shifted = X - X[0, 0]
    mean = float(np.asarray(shifted.T @ fractions, dtype=float).sum())
    return float(np.square(shifted - mean, dtype=float).sum(axis=1) @ fractions)


def _number(name: str, value: Any) -> float:
    # compared exactly: whole numbers beyond float64 would overflow
    if isinstance(value, bool) or not isinstance(value, Real) or not abs(value) <= float_info.max:  # pyright: ignore
        raise ValueError(f"{name} must be a finite number; got {value!r}.")
    return float(value)
