"""Verification of certificates where the rows are: one pass over the partitions for each binary problem."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from ..certificates.certificate import Certificate, Certificates, check_support, require
from ..certificates.row_pass import Bounds, bound_of_dual, combine_sides
from ..certificates.verification import check_claim, verify_parts
from .blocks import Partitions, signs_of
from .passes import Block, Coordinates, Linearisation, Sums, pass_sums


@dataclass(frozen=True, eq=False)
class ClaimedBounds:
    """A query for the bounds of the point z, and of the dual variables that a step and its end imply."""

    positive: int
    z: np.ndarray
    step: Linearisation
    end: np.ndarray

    def sums(self, block: Block) -> Sums:
        """Return the sums over the rows of a block."""
        y = signs_of(block.rows, self.positive)
        found = block.bound_sums(y, self.z, block.margins(y, self.z), by_terms=True)
        before, after = block.margins(y, self.step.z), block.margins(y, self.end)
        return found._replace(dual=block.implied_sums(y, self.step, before, after))


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
    columns, features = partitions.shape[1], np.shape(model.coef_)[1]
    require(features == columns, f"the model has {features} weights for {columns} features: they do not fit.")

    def bounds_of(part: Certificate, name: Any, w: np.ndarray, b: float) -> Bounds:
        """Return the bounds of a problem."""
        coordinates = Coordinates(part.problem, columns)
        z = coordinates.vector(w, b)
        claimed = _dual_of_claim(part, coordinates, z, partitions.shape[0])
        query = ClaimedBounds(int(np.flatnonzero(model.classes_ == name)[0]), z, *claimed)
        sums = partitions.total(partial(pass_sums, coordinates, query.sums), bool)
        assert sums is not None
        assert sums.dual is not None
        check_claim(part, sums.data, b)
        # the factors of implied dual variables are those of their best multiple
        below, _ = bound_of_dual(part.problem, sums.dual, scaled=part.implied is not None)
        return combine_sides(part.problem, below, coordinates.bound(sums, z))

    return verify_parts(model, bounds_of)


def _dual_of_claim(
    claim: Certificate, coordinates: Coordinates, z: np.ndarray, rows: int
) -> tuple[Linearisation, np.ndarray]:
    """Return the step that implies the dual variables of a claim about a model at z, and its end."""
    numbers, alpha, _ = check_support(claim, rows)
    points = claim.implied
    if points is None:
        return Linearisation(z, numbers, alpha, others_zero=True), z
    first = coordinates.vector(points.first_w, points.first_b)
    end = coordinates.vector(points.second_w, points.second_b)
    return Linearisation(first, numbers, alpha), end
