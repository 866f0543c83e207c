"""Verification of certificates where the rows are: one pass over partitions for all binary problems."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from ...certificates.certificate import Certificate, Certificates, check_support, require
from ...certificates.row_pass import bound_of_dual, combine_sides
from ...certificates.verification import (
    check_claim,
    linear_parts,
    naming,
    recomputed,
)
from ...data.partitions import Partitions
from .passes import Coordinates, Evaluation, Linearisation, pass_sums


def verify_partitions(model: Any, partitions: Partitions) -> Certificate | Certificates:
    """Recompute the bounds of a model's certificate from partitioned rows, rounding outwards.

    Parameters
    ----------
    model : fitted MaxMarginClassifier, or a model that `load` returned
        Linear.
    partitions : Partitions
        The training data; codes are those of ``model.classes_``, and weights contain ``model.class_weight_``.

    Returns
    -------
    Certificate or Certificates
        As of `certificates.verification.verify`.

    Raises
    ------
    CertificateError
        As of `certificates.verification.verify`.
    """
    claim, parts, columns = model.certificate_, linear_parts(model), partitions.shape[1]
    features = np.shape(model.coef_)[1]
    require(features == columns, f"the model has {features} weights for {columns} features: they do not fit.")
    problem = parts[0][0].problem
    same = all(part.problem == problem for part, *_ in parts)
    require(same, "the certificates of this model are about different problems.")
    coordinates, queries, found = Coordinates(problem, columns), [], []
    for k, (part, name, w, b) in enumerate(parts):
        with naming(name, model):
            positive, z = 1 if len(parts) == 1 else k, coordinates.vector(w, b)
            dual = _dual_of_claim(part, coordinates, z, partitions.shape[0])
            queries.append(Evaluation(positive, z, 0, -np.inf, by_terms=True, dual=dual))
    total = partitions.total(partial(pass_sums, coordinates, tuple(queries)), bool)
    assert total is not None
    for (part, name, _, b), query, sums in zip(parts, queries, total, strict=True):
        with naming(name, model):
            check_claim(part, sums.data, b)
            assert sums.dual is not None
            # the factors of implied dual variables are those of their best multiple
            below, _ = bound_of_dual(problem, sums.dual, scaled=part.implied is not None)
            found.append(recomputed(part, combine_sides(problem, below, coordinates.bound(sums, query.z))))
    return found[0] if isinstance(claim, Certificate) else Certificates(claim.classes, tuple(found))


def _dual_of_claim(
    claim: Certificate, coordinates: Coordinates, z: np.ndarray, rows: int
) -> tuple[Linearisation, np.ndarray]:
    """Return the step that implies the dual variables of a claim about a model at z, and its end."""
    numbers, alpha, _ = check_support(claim, rows)
    points = claim.implied
    if points is None:
        return Linearisation(z, 0.0, numbers, alpha, others_zero=True), z
    first = coordinates.vector(points.first_w, points.first_b)
    end = coordinates.vector(points.second_w, points.second_b)
    return Linearisation(first, points.width, numbers, alpha), end
