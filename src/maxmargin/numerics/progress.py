"""Steps of long work: announced by the code that does the work, received by a display."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import NamedTuple


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
