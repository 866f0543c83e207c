"""A pass that evaluates a point: the objective or the smallest margin, and the rows with the smallest margins."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from ...certificates.bounds import PrimalSums, Side, attained_margin_bound, norm_interval, objective_bound
from ...certificates.certificate import Fingerprint
from ...data.partitions import Gathered, Partition
from ...numerics.sums import Plain
from .coordinates import Coordinates
from .sums import BLOCK_BYTES, Block, Near


@dataclass(frozen=True, eq=False)
class Evaluation:
    """What a pass has to compute for one binary problem.

    Attributes
    ----------
    positive : int
        The class against the rest.
    z : ndarray of shape (size,)
    nearest : int
        Rows to gather, at most.
    reach : float
        Margin below which rows are gathered.
    """

    positive: int
    z: np.ndarray
    nearest: int
    reach: float


@dataclass(frozen=True, eq=False)
class Scored:
    """Sums and minima over rows for one `Evaluation`.

    Attributes
    ----------
    rows, positives : int
    checksum, scale : float
        Sums of the fingerprint (`Sample.fingerprint`).
    losses, worst : float
        Losses of the margins as computed, and of the margins minus their error bounds; 0 for a hard margin.
    smallest, least : float
        The smallest margin as computed, and that of the margins minus their error bounds.
    near : Near
        The rows of the smallest margins, with these as distances.
    terms, blocks : int
        Successive additions within a block, at most, and blocks that were added up: for error bounds.
    """

    rows: int
    positives: int
    checksum: float
    scale: float
    losses: float
    worst: float
    smallest: float
    least: float
    near: Near
    terms: int
    blocks: int = 1

    def merge(self, other: Scored) -> Scored:
        """Return the result for the rows of both."""
        return Scored(
            self.rows + other.rows,
            self.positives + other.positives,
            self.checksum + other.checksum,
            self.scale + other.scale,
            self.losses + other.losses,
            self.worst + other.worst,
            min(self.smallest, other.smallest),
            min(self.least, other.least),
            self.near.merge(other.near),
            max(self.terms, other.terms),
            self.blocks + other.blocks,
        )

    def fingerprint(self, columns: int) -> Fingerprint:
        """Return the fingerprint of the rows."""
        return Fingerprint(self.rows, columns, self.positives, self.checksum, self.scale)

    def bound(self, coordinates: Coordinates, z: np.ndarray) -> Side:
        """Return the bound that the point z attains: its objective, or its margin for a hard margin, in any norm."""
        problem = coordinates.problem
        length = norm_interval(problem.weights(*coordinates.point(z)), problem.q, Plain)
        if problem.hard:
            return attained_margin_bound(PrimalSums(self.smallest, self.least, 0.0, length))
        terms = self.terms + self.blocks
        return objective_bound(
            problem, PrimalSums(self.losses, self.worst, Plain.error(0.0, self.worst, terms), length)
        )


@dataclass(frozen=True, eq=False)
class Scores:
    """The results of a pass for several binary problems."""

    parts: tuple[Scored, ...]

    def merge(self, other: Scores) -> Scores:
        """Return the results for the rows of both."""
        return Scores(tuple(one.merge(two) for one, two in zip(self.parts, other.parts, strict=True)))


def evaluate(coordinates: Coordinates, evaluations: tuple[Evaluation, ...], partition: Partition) -> Scores:
    """Return the results that are asked for, over the rows of a partition."""
    rows = max(BLOCK_BYTES // (8 * max(coordinates.size, 1)), 1)
    blocks = list(partition.blocks(rows)) or [replace(partition, X=partition.X[:0])]
    found: Scores | None = None
    for part in blocks:
        block = Block(coordinates, part)
        scores = Scores(tuple(_scored(block, one) for one in evaluations))
        found = scores if found is None else found.merge(scores)
    assert found is not None
    return found


def _scored(block: Block, evaluation: Evaluation) -> Scored:
    """Return the results of one binary problem for a block."""
    coordinates, weights = block.coordinates, block.weights
    problem, used = coordinates.problem, weights > 0.0
    y = np.where(block.block.codes == evaluation.positive, 1.0, -1.0)
    margins = y * coordinates.scores(block.X, evaluation.z)
    worst = margins - block.errors(evaluation.z, margins)
    losses, worst_losses = (
        0.0 if problem.hard else Plain.total(problem.losses(each, weights)) for each in (margins, worst)
    )
    places = np.flatnonzero((margins < evaluation.reach) & used)
    assert isinstance(block.block, Partition)
    near = Near(Gathered.take(block.block, places), margins[places], evaluation.nearest)
    return Scored(
        y.size, int(np.count_nonzero(y > 0.0)), float(block.products @ (3.0 + y)),
        float(np.abs(block.products) @ (3.0 + y)), losses, worst_losses, float(margins[used].min(initial=np.inf)),
        float(worst[used].min(initial=np.inf)), near.pruned(), Plain.terms(block.X, y.size, 0),
    )  # fmt: skip
