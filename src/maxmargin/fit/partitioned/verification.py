"""Verification of certificates where the rows are: one pass over partitions, for all binary problems."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from ...certificates.bounds import Bounds, Side
from ...certificates.certificate import Certificate, CertificateError, Certificates, Fingerprint, require
from ...certificates.verification import check_bounds, naming
from ...data.partitions import Partitions
from .bounds import objective_side, prove
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
            checks.append(_Check(part, coef[k], float(intercept[k]), 1 if count == 1 else k, partitions.shape))
    queries = tuple(query for check in checks for query in check.queries)
    # all problems of a model have the same constant coordinate
    found = partitions.total(partial(pass_sums, checks[0].coordinates, queries), bool)
    assert found is not None
    recomputed = []
    for k, (check, name) in enumerate(zip(checks, names, strict=True)):
        with naming(name, model):
            recomputed.append(check.recomputed(*found.parts[2 * k : 2 * k + 2]))
    return recomputed[0] if isinstance(claim, Certificate) else Certificates(claim.classes, tuple(recomputed))


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
        numbers, alpha = np.asarray(claim.support), np.asarray(claim.dual)
        _check_dual(numbers, alpha, shape[0])
        z, points = self.coordinates.vector(w, b), claim.implied
        last, second = Linearisation(None, 0.0, numbers, alpha), z
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

    def recomputed(self, primal: Sums, dual: Sums) -> Certificate:
        """Return the certificate with recomputed bounds; raise CertificateError unless they prove the claimed ones."""
        data = Fingerprint(primal.rows, self.coordinates.d, primal.positives, primal.checksum, primal.scale)
        difference = self.claim.fingerprint.difference(data)
        require(difference is None, f"this certificate was made for other data: {difference}; give the data of the fit.")
        above, proof = objective_side(self.coordinates, primal, self.z), None
        if self.last.numbers.size or self.last.z is not None:
            proof = prove(self.coordinates, dual, self.last, self.second)
        below = NO_DUAL if proof is None else proof.side
        # the claimed bounds were rounded as well: each side has a margin of its own
        found = Bounds(below.bound, above.bound, 2.0 * below.rounding, 2.0 * above.rounding)
        check_bounds(self.claim, found)
        return replace(self.claim, lower=float(found.lower), upper=float(found.upper))


def _check_dual(numbers: np.ndarray, alpha: np.ndarray, rows: int) -> None:
    """Raise CertificateError unless there is one dual variable, not negative, for each row, in ascending order."""
    one_each = numbers.shape == alpha.shape and numbers.ndim == 1 and numbers.dtype.kind in "iu"
    require(one_each, "the lower bound fails: there must be one dual variable for each row it names.")
    ascending = not numbers.size or (numbers[0] >= 0 and numbers[-1] < rows and (np.diff(numbers) > 0).all())
    require(ascending, "the lower bound fails: it names rows that the data do not have, or one twice.")
    require(np.all(alpha >= 0.0), "the lower bound fails: a dual variable is negative or not a number.")
