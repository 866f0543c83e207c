"""Long work: the steps that it announces, and what tells it to stop."""

from __future__ import annotations

import math
import signal
import sys
from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

# Ctrl-C; SIGTERM of `kill` and batch systems; SIGHUP of a closed terminal, which Windows does not have
STOP_SIGNALS = [getattr(signal, name) for name in ("SIGINT", "SIGTERM", "SIGHUP") if hasattr(signal, name)]
INTERRUPTED = 130  # exit code of a command that they end: 128 + SIGINT, as shells have it


class Step(NamedTuple):
    """A step of long work.

    Attributes
    ----------
    name : str
    number, of : int
        This is the `number`-th of `of` steps, counted from 1; 0 if their number is not known.
    level : int
        Depth: a step replaces the last one of its level, and ends all deeper ones. 0: an algorithm, a fold, a file;
        1: a point of a path, a set of features; 2: a class, a block of rows.
    """

    name: str
    number: int
    of: int
    level: int

    def __str__(self) -> str:
        return f"{self.name} ({self.number} of {self.of})" if self.of else self.name


LISTENERS: list[Callable[[Step], None]] = []  # of the process: any of its threads may announce a step


def announce(name: str, number: int = 0, of: int = 0, level: int = 0, verbose: int = 0) -> None:
    """Pass a step that begins to the listeners; print it to standard error if `verbose`."""
    step = Step(name, number, of, level)
    for listener in tuple(LISTENERS):
        listener(step)
    if verbose:
        print(step, file=sys.stderr)


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
