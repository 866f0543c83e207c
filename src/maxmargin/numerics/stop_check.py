"""A check whether to stop, called by solvers between steps; they know nothing of clocks or signals."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True)
class StopCheck:
    """A check whether to stop with the seconds left: the limit of a solver that cannot call it on its way.

    Attributes
    ----------
    stop : callable
        True where it is time to stop.
    left : callable
        Seconds that are left; infinite where no time was set.
    """

    stop: Callable[[], bool]
    left: Callable[[], float]

    def __call__(self) -> bool:
        return self.stop()


def seconds_left(interrupted: Callable[[], bool]) -> float:
    """Return the seconds left of a `StopCheck`; infinity for any other function."""
    return interrupted.left() if isinstance(interrupted, StopCheck) else math.inf
