"""Verification of models from their data, wherever these are."""

from __future__ import annotations

from contextlib import ExitStack, closing
from typing import Any

import numpy as np

from ..certificates import verification
from ..certificates.certificate import Certificate, CertificateError, Certificates, require
from ..certificates.training_data import nothing_to_verify
from ..certificates.verdicts import Checked, Inseparable
from ..certificates.verification import verdicts_about
from ..estimators.partitioned import cluster_rows
from ..numerics.files import place_of
from ..numerics.sizes import one_thread
from ..partitions.blocks import ArrayPartitions, BadRowError, Partitions
from ..partitions.verification import verify_partitions
from ..readers.row_cache import open_rows
from ..readers.table import Expected, Table, expected_of
from ..separability.passes import verify_in_passes


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
    place = place_of(X, y)
    if place == "files":
        require(not isinstance(model, Checked), "a verdict is verified on rows in memory.")
        folder = cache_dir or getattr(model, "cache_dir", None)
        require_linear_certificate(model)
        stored = open_rows(X, cache_dir=folder, **vars(expected_of(model, Expected(label=y))))
        return verify_stored(model, stored)
    if place != "memory":
        return _verify_on_cluster(model, X, y, sample_weight)
    if isinstance(model, Checked):
        return model.verify(X, y)
    if hasattr(model, "models_"):  # of maxmargin.sklearn
        return model.verify(X, y, sample_weight)
    return verification.verify(model, X, y, sample_weight)


def _verify_on_cluster(model: Any, X: Any, y: Any, sample_weight: Any) -> Certificate | Certificates:
    """Recompute bounds where the rows of a Dask collection or a Spark frame are; errors as of `verify`."""
    gathered = "X.toPandas()" if place_of(X) == "spark" else "X.compute()"
    require(not isinstance(model, Checked), f"a verdict is verified on rows in memory: give {gathered}.")
    require(hasattr(model, "certificate_"), nothing_to_verify(model))
    require(
        not hasattr(model, "n_support_"), f"a kernel model is verified on rows in memory: give {gathered}."
    )
    with ExitStack() as opened:
        try:
            rows = cluster_rows(X, y, sample_weight, getattr(model, "feature_names_in_", None))
            opened.enter_context(closing(rows))
        except ValueError as error:
            raise CertificateError(str(error)) from None
        return _verify_model(model, rows)


def _proofs(model: Any) -> dict[Any, Inseparable]:
    """Return the proofs of a model that there is no separator, with the labels of their binary problems."""
    return {k: one for k, one in verdicts_about(model).items() if isinstance(one, Inseparable)}


def _verify_model(model: Any, partitions: Partitions) -> Certificate | Certificates:
    """Recompute the bounds of a linear model's certificate, and its proofs that there is no separator, in passes."""
    partitions.encode(model.classes_, None if (model.class_weight_ == 1.0).all() else model.class_weight_)
    try:
        found = verify_partitions(model, partitions)
    except BadRowError as error:
        raise CertificateError(f"row {error.row} (counted from 0): {error.fault}") from None
    for label, verdict in _proofs(model).items():
        # of several classes each against the rest
        k = 1 if label is None else int(np.flatnonzero(model.classes_ == label)[0])
        verify_in_passes(verdict, partitions, k)
    return found


def require_linear_certificate(model: Any) -> None:
    """Raise CertificateError at a model without a certificate, or with one that needs kernel values of all rows."""
    require(hasattr(model, "certificate_"), nothing_to_verify(model))
    require(not hasattr(model, "n_support_"), "a kernel model is verified on rows in memory, not in passes.")


def verify_stored(model: Any, stored: Table) -> Certificate | Certificates:
    """Recompute the bounds of a linear model's certificate from rows on disk, block by block; errors as of `verify`.

    Proofs that there is no separator are rechecked in rational numbers.
    """
    require_linear_certificate(model)
    same = np.array_equal(stored.classes, model.classes_)
    require(same, f"the classes of the files, {stored.classes.tolist()}, are not those of the model.")
    return _verify_model(model, ArrayPartitions(stored.X, stored.codes))
