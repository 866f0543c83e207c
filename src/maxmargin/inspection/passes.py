"""Verification of linear models in passes over rows in files, or on a cluster."""

from __future__ import annotations

from contextlib import ExitStack, closing
from typing import Any

import numpy as np

from ..certificates.certificate import Certificate, CertificateError, Certificates, require
from ..certificates.training_data import nothing_to_verify
from ..certificates.verdicts import Checked, Inseparable
from ..certificates.verification import verdicts_about
from ..estimators.partitioned import cluster_rows
from ..numerics.files import place_of
from ..partitions.blocks import ArrayPartitions, BadRowError, Partitions
from ..partitions.verification import verify_partitions
from ..readers.row_cache import open_rows
from ..readers.table import Expected, Table, expected_of
from ..separability.passes import verify_in_passes


def verify_elsewhere(model: Any, X: Any, y: Any, sample_weight: Any, cache_dir: Any) -> Any:
    """Recompute bounds from rows in files, or where those of a cluster are; arguments are those of `verify`."""
    place = place_of(X, y)
    if place == "files":
        require(not isinstance(model, Checked), "a verdict is verified on rows in memory.")
        folder = cache_dir or getattr(model, "cache_dir", None)
        require_linear_certificate(model)
        stored = open_rows(X, cache_dir=folder, **vars(expected_of(model, Expected(label=y))))
        return verify_stored(model, stored)
    gathered = "X.toPandas()" if place == "spark" else "X.compute()"
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
