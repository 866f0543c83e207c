"""The public `verify`: which proof a model has."""

from __future__ import annotations

from typing import Any

from .certificates import Certificate, Certificates
from .certificates import verify as verify_linear
from .kernel_certificates import verify_kernel
from .threads import one_thread


@one_thread
def verify(model: Any, X: Any, y: Any, sample_weight: Any = None) -> Certificate | Certificates:
    """Recompute every number of a model's certificate from the data, in float64, rounding outwards.

    Parameters
    ----------
    model : fitted MaxMarginClassifier or KernelMaxMarginClassifier, or a model that `load` returned
    X : array-like or sparse matrix of shape (n, d)
        The training data; the kernel matrix where it was precomputed.
    y : array-like of shape (n,)
        The training labels.
    sample_weight : array-like of shape (n,), default=None
        The sample weights of the fit.

    Returns
    -------
    Certificate or Certificates
        The same bounds, recomputed.

    Raises
    ------
    CertificateError
        If the certificate belongs to other data, or a bound does not hold: the message says which. If there is none, as
        of models that were read from files of other programs, of streams, pipelines and searches: why, and what has
        one.
    """
    return (verify_kernel if hasattr(model, "n_support_") else verify_linear)(model, X, y, sample_weight)
