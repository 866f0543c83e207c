"""A pass that evaluates a point: the objective or the smallest margin, and the rows with the smallest margins."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ...certificates.bounds import PrimalSums, Side, attained_margin_bound
from ...data.partitions import Gathered, Partition, signs_of
from .bounds import objective_side
from .coordinates import Coordinates
from .sums import Block, Near, PassResult, RowSums, results_by_block


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
    by_terms : bool, default=False
        Whether the error of each score is bounded by its own terms, as of `Block.errors`.
    """

    positive: int
    z: np.ndarray
    nearest: int
    reach: float
    by_terms: bool = False


@dataclass(frozen=True, eq=False)
class Scored(RowSums):
    """Sums and minima over rows for one `Evaluation`.

    Attributes
    ----------
    smallest, least : float
        The smallest margin as computed, and that of the margins minus their error bounds.
    near : Near
        The rows of the smallest margins, with these as distances.
    """

    smallest: float
    least: float
    near: Near

    def merge(self, other: Scored) -> Scored:  # pyright: ignore[reportIncompatibleMethodOverride]
        """Return the result for the rows of both."""
        return Scored(
            **vars(super().merge(other)),
            # NaN if one is: where a score overflows, no margin is known
            smallest=float(np.minimum(self.smallest, other.smallest)),
            least=float(np.minimum(self.least, other.least)),
            near=self.near.merge(other.near),
        )

    def bound(self, coordinates: Coordinates, z: np.ndarray) -> Side:
        """Return the bound that the point z attains: its objective, or its margin for a hard margin, in any norm."""
        if not coordinates.problem.hard:
            return objective_side(coordinates, self, z)
        return attained_margin_bound(PrimalSums(self.smallest, self.least, 0.0, coordinates.length(z)))


def evaluate(
    coordinates: Coordinates, evaluations: tuple[Evaluation, ...], partition: Partition
) -> PassResult[Scored]:
    """Return the results that are asked for, over the rows of a partition."""
    return results_by_block(coordinates, evaluations, _scored, partition)


def _scored(block: Block, evaluation: Evaluation) -> Scored:
    """Return the results of one binary problem for a block."""
    used = block.weights > 0.0
    y = signs_of(block.block, evaluation.positive)
    margins = y * block.coordinates.scores(block.X, evaluation.z)
    worst = margins - block.errors(evaluation.z, margins, evaluation.by_terms)
    places = np.flatnonzero((margins < evaluation.reach) & used)
    assert isinstance(block.block, Partition)
    least = margins[places]
    near = Near(Gathered.take(block.block, places), least, least, evaluation.nearest)
    return Scored(
        **vars(block.row_sums(y, margins, worst)),
        smallest=float(margins[used].min(initial=np.inf)),
        least=float(worst[used].min(initial=np.inf)),
        near=near.pruned(),
    )
