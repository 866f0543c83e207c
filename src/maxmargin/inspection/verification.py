"""Verification of models from their data, wherever these are."""

from __future__ import annotations

from typing import Any

from ..certificates import verification
from ..certificates.verdicts import Checked
from ..numerics.files import place_of
from ..numerics.sizes import one_thread


@one_thread()
def verify(model: Any, X: Any, y: Any = None, sample_weight: Any = None, *, cache_dir: Any = None) -> Any:
    """Recompute every number of a model's certificate from the data, in float64, rounding outwards.

    Parameters
    ----------
    model : fitted MaxMarginClassifier or KernelMaxMarginClassifier, or a model that `load` returned
        Or a class of `maxmargin.sklearn`, or a verdict of `separate`, which is returned, with rows in memory. Proofs of
        a hard margin model that there is no separator are rechecked, too.
    X : array-like or sparse matrix of shape (n, d)
        The training data; the kernel matrix where it was precomputed. Of a Dask collection or a Spark frame the
        sums are computed where its rows are. Paths of files and Arrow data, as in `MaxMarginClassifier.fit`, are read
        in passes. The rows of files come from their cache where there is one, which may be that of the fit: changes
        inside of its arrays, as by a damaged disk, are not noticed. To read the files anew, delete the cache
        or name an empty folder as `cache_dir`.
    y : array-like of shape (n,)
        The training labels; a Dask array or Series with the partitions of X if X is a Dask collection, the name of a
        column of X if X is a frame of Dask or Spark; as are weights. Of files and Arrow data the name of the label
        column, by default that of the fit.
    sample_weight : array-like of shape (n,), default=None
        The sample weights of the fit.
    cache_dir : str or path-like, default=None
        The folder for the rows of files; None for that of the fit.

    Returns
    -------
    Certificate or Certificates
        The same certificate with recomputed bounds. The bounds of a fit that was stopped before it found any are -inf
        and inf, which hold for any data and prove nothing: `gap` is then inf, `proves_nothing` true, and the text of
        the certificate states it.

    Raises
    ------
    CertificateError
        If the certificate belongs to other data, or a bound does not hold; the message names the bound. Also if the
        model has no certificate, such as models from files of other programs, streams, pipelines and searches; the
        message states the reason and the object that has one.
    """
    if place_of(X, y) != "memory":
        from .passes import verify_elsewhere  # only here: it loads readers and partitions

        return verify_elsewhere(model, X, y, sample_weight, cache_dir)
    if isinstance(model, Checked):
        return model.verify(X, y)
    if hasattr(model, "models_"):  # of maxmargin.sklearn
        return model.verify(X, y, sample_weight)
    return verification.verify(model, X, y, sample_weight)
