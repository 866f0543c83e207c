"""The public `verify`: which proof a model has."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..numerics.threads import one_thread
from .bounds import Certificate, CertificateError, Certificates
from .bounds import verify as verify_linear
from .kernel import verify_kernel
from .verdicts import Inseparable, Verdict


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
        The same bounds, recomputed. Those of a fit that was stopped before it found anything are -inf and inf, which
        hold of any data and prove nothing: `gap` is then inf, `proves_nothing` true, and the text says so.

    Raises
    ------
    CertificateError
        If the certificate belongs to other data, or a bound does not hold: the message says which. If there is none, as
        of models that were read from files of other programs, of streams, pipelines and searches: why, and what has
        one.
    """
    return (verify_kernel if hasattr(model, "n_support_") else verify_linear)(model, X, y, sample_weight)


def verdicts_of(model: Any) -> dict[Any, Verdict]:
    """`verdict_` by the labels of the binary problems, None for two classes; empty where each has its separator."""
    found = getattr(model, "verdict_", {})
    return found if isinstance(found, dict) else {None: found}


@one_thread
def verify_verdicts(model: Any, X: Any, y: Any) -> dict[Any, Verdict]:
    """Recheck, in rational numbers, each proof of a model that there is no separator.

    Parameters
    ----------
    model, X, y
        As of `verify`, which speaks of all other bounds.

    Returns
    -------
    dict of Verdict
        What `verdicts_of` says of the model.

    Raises
    ------
    CertificateError
        If a proof fails.
    """
    found, y = verdicts_of(model), np.asarray(y)
    for label, verdict in found.items():
        if not isinstance(verdict, Inseparable):
            continue
        labels = y if label is None or isinstance(label, tuple) else y == label
        here = np.isin(labels, verdict.classes)
        if not here[verdict.support].all():
            raise CertificateError(
                "the proof fails: not all of its rows are of the classes that it is about."
            )
        # rows of other classes, and those that the fit left out, have no part in it
        verdict.verify(X, np.where(here, labels, verdict.classes[0]))
    return found
