"""A check whether to stop, which solvers call between steps; they read no clock and handle no signal."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass


class ReadingStoppedError(RuntimeError):
    """Error of a first reading of rows that was stopped: their labels are not known yet, and there is no model."""


class OutOfTime(Exception):
    """The stop check was true within a long computation, which has no result."""


def require_time(interrupted: Callable[[], bool]) -> None:
    """Raise OutOfTime if the stop check is true."""
    if interrupted():
        raise OutOfTime


READING_STOPPED = (
    "max_time ended the fit while the rows were read for the first time: the labels are not known, "
    "and there is no model. Give more time."
)


@dataclass(frozen=True)
class StopCheck:
    """A check whether to stop, and the seconds left: the time limit of a solver that cannot call the check.

    Attributes
    ----------
    stop : callable
        Returns whether to stop.
    left : callable
        Returns the seconds left; infinity without a time limit.
    """

    stop: Callable[[], bool]
    left: Callable[[], float]

    def __call__(self) -> bool:
        return self.stop()


def seconds_left(interrupted: Callable[[], bool]) -> float:
    """Return the seconds left of a `StopCheck`; infinity for any other function."""
    return interrupted.left() if isinstance(interrupted, StopCheck) else math.inf
