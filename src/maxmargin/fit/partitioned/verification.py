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
from .sums import Coordinates, DualQuery, Evaluation, Linearisation, Sums, pass_sums


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
    checks = []
    for k, (part, name, w, b) in enumerate(parts):
        with naming(name, model):
            checks.append(_Check(part, w, b, 1 if len(parts) == 1 else k, partitions.shape))
    queries = tuple(query for check in checks for query in check.queries())
    total = partitions.total(partial(pass_sums, checks[0].coordinates, queries), bool)
    assert total is not None
    found = []
    for k, (_, name, *_) in enumerate(parts):
        with naming(name, model):
            found.append(checks[k].certificate(*total.parts[2 * k : 2 * k + 2]))
    return found[0] if isinstance(claim, Certificate) else Certificates(claim.classes, tuple(found))


class _Check:
    """The check of one binary problem.

    Attributes
    ----------
    claim : Certificate
    b : float
    coordinates : Coordinates
    z : ndarray of shape (size,)
        The point of the model.
    positive : int
        The class against the rest.
    """

    def __init__(
        self, claim: Certificate, w: np.ndarray, b: float, positive: int, shape: tuple[int, int]
    ) -> None:
        self.claim, self.b, self.positive = claim, b, positive
        self.coordinates = Coordinates(claim.problem, shape[1])
        self.numbers, self.alpha, _ = check_support(claim, shape[0])
        self.z = self.coordinates.vector(w, b)

    def queries(self) -> tuple[Evaluation, DualQuery]:
        """Return the queries for the point of the model and for the dual variables of the claim."""
        step, end = Linearisation(self.z, 0.0, self.numbers, self.alpha, others_zero=True), self.z
        points = self.claim.implied
        if points is not None:
            first = self.coordinates.vector(points.first_w, points.first_b)
            end = self.coordinates.vector(points.second_w, points.second_b)
            step = Linearisation(first, points.width, self.numbers, self.alpha)
        return Evaluation(self.positive, self.z, 0, -np.inf, by_terms=True), DualQuery(
            self.positive, step, end
        )

    def certificate(self, primal: Sums, dual: Sums) -> Certificate:
        """Return the certificate with recomputed bounds; raise CertificateError unless they prove the claimed ones."""
        check_claim(self.claim, primal.data, self.b)
        assert dual.dual is not None
        # the factors of implied dual variables are those of their best multiple
        below, _ = bound_of_dual(self.claim.problem, dual.dual, scaled=self.claim.implied is not None)
        found = combine_sides(self.claim.problem, below, self.coordinates.bound(primal, self.z))
        # the claimed bounds were rounded as well: each side has a margin of its own
        return recomputed(self.claim, found._replace(below=2.0 * found.below, above=2.0 * found.above))
