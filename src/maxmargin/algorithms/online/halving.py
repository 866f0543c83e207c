"""The accuracy delta of aggressive ROMMA and PUMMA: its default from the tolerance, and halving."""

from __future__ import annotations

from typing import Any

from ..base import Facts, is_finite


def is_accuracy(delta: Any) -> bool:
    """Return whether delta is a valid accuracy: a number in (0, 1], or None for the default of `target`."""
    return delta is None or (is_finite(delta) and 0.0 < delta <= 1.0)


def target(delta: float | None, facts: Facts) -> float:
    """Return delta, or by default the accuracy with which a pass without updates certifies a gap of `facts.tol`.

    After such a pass the margin is at least 1 - delta of its upper bound. Hard margin: the gap is delta. Soft margin:
    the objective is proportional to the inverse square of the extended margin, so that 1 + gap = (1 - delta)^-2.
    """
    if delta is not None:
        return delta
    gap = 0.9 * facts.tol  # a tenth is left for the rounding of the scores and of the certificate
    return min(gap if facts.problem.hard else 1.0 - (1.0 + gap) ** -0.5, 1.0)


def accuracies(delta: float, halving: bool) -> list[float]:
    """Return [delta] or, with `halving`, the powers 1, 1/2, 1/4, ... above delta, then delta (PUMMA, section 5.2)."""
    out, current = [], 1.0
    while halving and current > delta:
        out.append(current)
        current *= 0.5
    return [*out, delta]
