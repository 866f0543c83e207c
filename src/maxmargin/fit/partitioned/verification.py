"""Verification of certificates where the rows are: one pass over partitions for all binary problems, at most two."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import Any, TypeVar

import numpy as np

from ...certificates.certificate import Certificate, Certificates, check_support, require
from ...certificates.row_pass import Bounds, Side, bound_of_dual, bounds_to, combine_sides
from ...certificates.sample import Sample
from ...certificates.verification import (
    check_data,
    check_intercept,
    claimed_dual,
    naming,
    recomputed,
)
from ...data.partitions import Gathered, Partitions, signs_of
from .sums import Coordinates, Evaluation, Linearisation, Query, Sums, pass_sums

# the lower bound of a certificate without dual variables
NO_DUAL = Side(-np.inf, 0.0)


def verify_partitions(model: Any, partitions: Partitions) -> Certificate | Certificates:
    """Recompute the bounds of a model's certificate from partitioned rows, rounding outwards.

    Soft margins at p = 2 take one pass. Otherwise, and where its sums do not prove the bounds, the rows that have
    a dual variable are gathered as well.

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
    problem = parts[0].problem
    same = all(part.problem == problem for part in parts)
    require(same, "the certificates of this model are about different problems.")
    kind = _CheckBySums if problem.euclidean and not problem.hard else _CheckByRows

    def check_of(kind: type[C], k: int) -> C:
        return kind(parts[k], coef[k], float(intercept[k]), 1 if count == 1 else k, partitions.shape)

    checks = []
    for k, name in enumerate(names):
        with naming(name, model):
            checks.append(check_of(kind, k))
    found = []
    for k, (name, result) in enumerate(zip(names, kind.read(partitions, checks), strict=True)):
        with naming(name, model):
            found.append(checks[k].certificate(*result))
    return found[0] if isinstance(claim, Certificate) else Certificates(claim.classes, tuple(found))


class _Check:
    """The check of one binary problem.

    Attributes
    ----------
    claim : Certificate
    coordinates : Coordinates
    z : ndarray of shape (size,)
        The point of the model.
    positive : int
        The class against the rest.
    """

    def __init__(
        self, claim: Certificate, w: np.ndarray, b: float, positive: int, shape: tuple[int, int]
    ) -> None:
        check_intercept(claim, b)
        self.claim, self.positive, self.coordinates = claim, positive, Coordinates(claim.problem, shape[1])
        self.numbers, self.alpha, _ = check_support(claim, shape[0])
        self.z = self.coordinates.vector(w, b)

    def recomputed(self, found: Bounds) -> Certificate:
        """Return the certificate with these bounds; raise CertificateError unless they prove the claimed ones."""
        # the claimed bounds were rounded as well: each side has a margin of its own
        return recomputed(self.claim, found._replace(below=2.0 * found.below, above=2.0 * found.above))


C = TypeVar("C", bound=_Check)


class _CheckBySums(_Check):
    """A query for the point of the model, and one for the dual variables."""

    @staticmethod
    def read(partitions: Partitions, checks: list[_CheckBySums]) -> list[tuple[Sums, Sums]]:
        """Return the sums of both queries for each problem."""
        queries = tuple(query for check in checks for query in check.queries())
        found = partitions.total(partial(pass_sums, checks[0].coordinates, queries), bool)
        assert found is not None
        return list(zip(found.parts[::2], found.parts[1::2], strict=True))

    def queries(self) -> tuple[Query, Query]:
        """Return the queries, which gather no rows and leave out slope and curvature."""
        nothing: dict[str, Any] = {
            "positive": self.positive,
            "width": 0.0,
            "curved_width": 0.0,
            "metric": None,
        }
        nothing |= {"unit": 1.0, "nearest": 0, "reach": -1.0, "farthest": -1.0, "bounds_only": True}
        last, second = Linearisation(self.z, 0.0, self.numbers, self.alpha, others_zero=True), self.z
        points = self.claim.implied
        if points is not None:
            first = self.coordinates.vector(points.first_w, points.first_b)
            second = self.coordinates.vector(points.second_w, points.second_b)
            last = Linearisation(first, points.width, self.numbers, self.alpha)
        return (
            Query(z=self.z, last=None, **nothing),
            Query(z=second, last=last, **nothing),
        )

    def certificate(self, primal: Sums, dual: Sums) -> Certificate:
        """Return the certificate with recomputed bounds."""
        check_data(self.claim, primal.data)
        assert dual.dual is not None
        above, (below, _) = (
            self.coordinates.bound(primal, self.z),
            bound_of_dual(self.claim.problem, dual.dual),
        )
        return self.recomputed(combine_sides(self.claim.problem, below, above))


class _CheckByRows(_Check):
    """An evaluation of the point of the model, and the rows that have a dual variable."""

    @staticmethod
    def read(partitions: Partitions, checks: list[_CheckByRows]) -> list[tuple[Sums, Gathered]]:
        """Return for each problem the evaluation of its point, and the rows of all problems."""
        evaluations = tuple(Evaluation(one.positive, one.z, 0, -np.inf, by_terms=True) for one in checks)
        found = partitions.total(partial(pass_sums, checks[0].coordinates, evaluations), bool)
        numbers = np.unique(np.concatenate([check.numbers for check in checks]))
        rows = partitions.gather(numbers, bool)
        assert found is not None
        assert rows is not None
        return [(scored, rows) for scored in found.parts]

    def certificate(self, scored: Sums, rows: Gathered) -> Certificate:
        """Return the certificate with recomputed bounds."""
        problem = self.claim.problem
        check_data(self.claim, scored.data)
        primal = self.coordinates.bound(scored, self.z)
        if not self.numbers.size:
            dual = NO_DUAL._replace(bound=np.inf) if problem.hard else NO_DUAL
            return self.recomputed(combine_sides(problem, dual, primal))
        mine = rows.some(np.searchsorted(rows.numbers, self.numbers))
        sample = Sample(mine.X, signs_of(mine, self.positive), mine.weights)
        places = np.arange(self.numbers.size)
        alpha = claimed_dual(replace(self.claim, support=places), sample)
        # the bound of the point on these rows alone is not used
        found = bounds_to(problem, sample, *self.coordinates.point(self.z), alpha, 0.0)
        dual = Side(found.upper, found.above) if problem.hard else Side(found.lower, found.below)
        return self.recomputed(combine_sides(problem, dual, primal))
