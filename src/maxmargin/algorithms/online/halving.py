"""The accuracy delta of ROMMA and PUMMA: the value that certifies a gap, and halving (PUMMA, section 5.2)."""

from __future__ import annotations

from typing import Any

from ..base import Facts, is_number


def is_accuracy(delta: Any) -> bool:
    """Return whether this may be the accuracy; None is chosen from the tolerance."""
    return delta is None or (is_number(delta) and 0.0 < delta <= 1.0)


def target(delta: float | None, facts: Facts) -> float:
    """Return the accuracy with which a pass without updates certifies the gap: the margin is 1 - delta of its bound.

    Hard margin: the gap is delta. Soft: the objective goes with the inverse square of the extended margin.
    """
    if delta is not None:
        return delta
    gap = 0.9 * facts.tol  # a tenth is left for rounding, of the scores and outwards of the certificate
    return min(gap if facts.problem.hard else 1.0 - (1.0 + gap) ** -0.5, 1.0)


def accuracies(delta: float, halving: bool) -> list[float]:
    """Return 1, 1/2, 1/4, ... down to delta; or delta alone."""
    out, current = [], 1.0
    while halving and current > delta:
        out.append(current)
        current *= 0.5
    return [*out, delta]
