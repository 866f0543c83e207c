"""The certified bounds that the sums of a pass prove, and a pass that evaluates a point."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ...certificates.bounds import (
    DualSums,
    PrimalSums,
    Side,
    attained_margin_bound,
    half_square_bound,
    norm_interval,
    objective_bound,
)
from ...certificates.certificate import Certificate, Fingerprint, ImpliedDual
from ...data.partitions import Gathered, Partition, signs_of
from ...numerics.sums import SMALLEST_FLOAT, Plain
from ...problem.problem import Problem, best_multiple
from .sums import (
    Block,
    BoundSums,
    Coordinates,
    DualTotals,
    Linearisation,
    Near,
    PassResult,
    RowSums,
    Sums,
    results_by_block,
)

# Part of the lower bound that is subtracted, since another computation of the implied dual variables rounds the margins
# otherwise: relative differences of some hundred times the unit roundoff. A smaller part may refuse valid certificates,
# a larger one limits the gap that can be certified.
RECOMPUTED = 1e-11
# Smaller factors of dual variables have lost digits.
SMALLEST_NORMAL = float(np.finfo(float).smallest_normal)


@dataclass(frozen=True, eq=False)
class Proof:
    """Dual variables, and the lower bound that they prove.

    Attributes
    ----------
    side : Side
    dual : ImpliedDual
    numbers, alpha : ndarray of shape (k,)
        The rows whose dual variables are given one by one, and these, before the factors of `dual` multiply them.
    """

    side: Side
    dual: ImpliedDual
    numbers: np.ndarray
    alpha: np.ndarray

    def certificate(self, coordinates: Coordinates, upper: float, fingerprint: Fingerprint) -> Certificate:
        """Return the certificate of this lower bound and an upper bound."""
        return Certificate(
            coordinates.problem,
            self.side.bound,
            upper,
            self.numbers,
            self.alpha,
            fingerprint,
            implied=self.dual,
        )


def objective_side(coordinates: Coordinates, sums: RowSums, z: np.ndarray) -> Side:
    """Return the upper bound that the objective at z is, in any norm."""
    error = Plain.error(sums.worst, sums.additions)
    found = PrimalSums(sums.losses, sums.worst, error, coordinates.length(z))
    return objective_bound(coordinates.problem, found)


def prove(coordinates: Coordinates, sums: Sums, last: Linearisation, z: np.ndarray) -> Proof | None:
    """Return the lower bound of the dual variables that the last step implies; None if they prove nothing."""
    found = dual_side(coordinates, sums)
    if found is None:
        return None
    side, (plus, minus) = found
    implied = ImpliedDual(*coordinates.point(last.z), *coordinates.point(z), last.width, plus, minus)
    return Proof(side, implied, last.numbers, last.alpha)


def dual_side(coordinates: Coordinates, sums: BoundSums) -> tuple[Side, tuple[float, float]] | None:
    """Return the lower bound that dual variables prove, and their factors for both classes; None if they prove nothing.

    With a free intercept the heavier class is scaled down to the total of the other. All dual variables are then
    multiplied by the t that maximises t sum alpha_i - t^2 (1/2 |v|^2 + sum alpha_i^2 / (4 C s_i)), at most 1 for the
    hinge, so that no factor lifts a dual variable above its cap. Additions are counted within and between blocks; 8
    more cover the products with the factors.
    """
    problem, dual = coordinates.problem, sums.dual
    assert dual is not None
    factors = np.ones(2)
    if problem.free:
        if not dual.alpha.min() > 0.0:
            return None
        factors = dual.alpha.min() / dual.alpha
    v, total, lost = _scaled(dual, factors, coordinates)
    if not (total > 0.0 and np.isfinite(total + lost) and np.isfinite(v).all()):
        return None
    smallest = float(factors.min())
    factors = factors * best_multiple(total, Plain.square(v) + 2.0 * lost, np.inf if lost else 1.0)
    if not min(smallest, factors.min()) >= SMALLEST_NORMAL:
        return None  # factors have lost digits: the classes do not balance
    v, total, lost = _scaled(dual, factors, coordinates)
    terms = sums.additions + 8
    # products of tiny dual variables underflow before the factors multiply their sums
    largest = max(float(factors.max()), 1.0)
    # the classes are balanced but for the rounding of their two sums
    imbalance = Plain.error(total, terms) + 4.0 * SMALLEST_FLOAT if problem.free else 0.0
    spread = float(factors @ dual.spread) + coordinates.constant * total
    # in each coordinate every product may underflow
    underflow = 8.0 * (sums.rows + 1.0) * v.size * (SMALLEST_FLOAT * largest)
    v_error = Plain.error(spread, terms) + imbalance * sums.longest + underflow
    length = norm_interval(v, 2.0, v_error)
    underflow = (sums.rows + 4.0) * (SMALLEST_FLOAT * largest) * largest
    if not underflow <= RECOMPUTED * total:  # nothing is known of the squares
        return None
    error = Plain.error(total + lost, terms) + underflow
    side = half_square_bound(DualSums(total - lost, total + lost, error, imbalance, length))
    given_up = RECOMPUTED * (total + lost)
    side = Side(side.bound - given_up, side.rounding + given_up, side.value)
    plus, minus = factors.tolist()
    return side, (plus, minus)


def _scaled(
    dual: DualTotals, factors: np.ndarray, coordinates: Coordinates
) -> tuple[np.ndarray, float, float]:
    """Return v, of shape (size,), sum alpha_i and sum alpha_i^2 / (4 C s_i), alpha being times the factors."""
    v = (factors @ dual.v) * coordinates.regular
    return v, float(factors @ dual.alpha), float((factors * dual.gains_lost) @ factors)


def empty_certificate(problem: Problem, shape: tuple[int, int]) -> Certificate:
    """Return the certificate of a fit that was stopped before its first pass: it proves nothing."""
    nothing = Fingerprint(*shape, 0, 0.0, 0.0)
    return Certificate(problem, -np.inf, np.inf, np.zeros(0, np.int64), np.zeros(0), nothing)


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
