"""Verification of certificates where the rows are: one pass over partitions, for all binary problems."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from ...certificates.bounds import Bounds, Side
from ...certificates.certificate import Certificate, CertificateError, Certificates, Fingerprint, require
from ...certificates.verification import check_support, naming, recomputed
from ...data.partitions import Partitions
from .bounds import dual_side, objective_side
from .coordinates import Coordinates
from .sums import Linearisation, Query, Sums, pass_sums

NO_DUAL = Side(-np.inf, 0.0, -np.inf)


def verify_partitions(model: Any, partitions: Partitions) -> Certificate | Certificates:
    """Recompute the bounds of a model's certificate in one pass over partitioned rows, rounding outwards.

    Parameters
    ----------
    model : fitted MaxMarginClassifier, or a model that `load` returned
        For a soft margin at p = 2.
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
    claim, classes = model.certificate_, model.classes_
    parts, columns = claim.certificates, partitions.shape[1]
    coef, intercept = np.asarray(model.coef_, float), np.ravel(model.intercept_)
    count = len(parts)
    expected = 1 if len(classes) == 2 else len(classes)
    require(
        count == expected == coef.shape[0] and intercept.shape == (count,),
        f"{len(classes)} classes need {expected} certificates, rows of coef_ and intercepts; there are {count}, "
        f"{coef.shape[0]} and {intercept.size}.",
    )
    require(
        coef.shape[1] == columns,
        f"the model has {coef.shape[1]} weights for {columns} features: they do not fit.",
    )
    names = classes[1:] if count == 1 else classes
    checks = []
    for k, (part, name) in enumerate(zip(parts, names, strict=True)):
        with naming(name, model):
            checks.append(
                _Check(part, coef[k], float(intercept[k]), 1 if count == 1 else k, partitions.shape)
            )
    queries = tuple(query for check in checks for query in check.queries)
    # all problems of a model have the same constant coordinate
    found = partitions.total(partial(pass_sums, checks[0].coordinates, queries), bool)
    assert found is not None
    certificates = []
    for k, (check, name) in enumerate(zip(checks, names, strict=True)):
        with naming(name, model):
            certificates.append(check.certificate(*found.parts[2 * k : 2 * k + 2]))
    return (
        certificates[0]
        if isinstance(claim, Certificate)
        else Certificates(claim.classes, tuple(certificates))
    )


class _Check:
    """The check of one binary problem: a query for the point of the model, and one for the dual variables.

    Attributes
    ----------
    coordinates : Coordinates
    queries : (Query, Query)
    """

    def __init__(
        self, claim: Certificate, w: np.ndarray, b: float, positive: int, shape: tuple[int, int]
    ) -> None:
        problem = claim.problem
        if problem.hard or not problem.euclidean:
            raise CertificateError(
                "only soft margins at p = 2 are verified on rows in partitions: give the rows in memory."
            )
        require(
            problem.intercept != "none" or b == 0.0,
            "the upper bound fails: the model has an intercept, its problem has none.",
        )
        self.claim, self.coordinates = claim, Coordinates(problem, shape[1])
        numbers, alpha, _ = check_support(claim, shape[0])
        z, points = self.coordinates.vector(w, b), claim.implied
        last, second = Linearisation(z, 0.0, numbers, alpha, others_zero=True), z
        if points is not None:
            second = self.coordinates.vector(points.second_w, points.second_b)
            first = self.coordinates.vector(points.first_w, points.first_b)
            last = Linearisation(first, points.width, numbers, alpha)
        self.last, self.z, self.second = last, z, second
        nothing = (None, 1.0, 0, -1.0, True)  # gathers no rows
        self.queries = (
            Query(positive, z, 0.0, 0.0, None, *nothing),
            Query(positive, second, 0.0, 0.0, last, *nothing),
        )

    def certificate(self, primal: Sums, dual: Sums) -> Certificate:
        """Return the certificate with recomputed bounds; raise CertificateError unless they prove the claimed ones."""
        data = Fingerprint(primal.rows, self.coordinates.d, primal.positives, primal.checksum, primal.scale)
        difference = self.claim.fingerprint.difference(data)
        words = f"{difference}; give the data of the fit"
        require(difference is None, f"this certificate was made for other data: {words}.")
        above = objective_side(self.coordinates, primal, self.z)
        # the sums of no dual variables prove nothing
        below, _ = dual_side(self.coordinates, dual) or (NO_DUAL, None)
        # the claimed bounds were rounded as well: each side has a margin of its own
        found = Bounds(below.bound, above.bound, 2.0 * below.rounding, 2.0 * above.rounding)
        return recomputed(self.claim, found)
