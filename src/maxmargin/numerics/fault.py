"""Faults of files, told without the name of the file, which one place adds."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager

# Characters of the longest message. More show more of names and numbers of a file, of which a damaged one may have
# thousands; fewer cut messages that list the columns of a file. All sentences of the package with short names fit.
LONGEST = 800


class Fault(Exception):
    """A fault of a file and its remedy, in whole sentences.

    Parameters
    ----------
    message : str
    line : int, default=None
        The line of the file in which it is.
    kind : type of ValueError, default=None
        The error that it becomes, in place of the usual one.
    """

    def __init__(self, message: str, line: int | None = None, kind: type[ValueError] | None = None) -> None:
        super().__init__(message)
        self.kind = kind
        self.place = "" if line is None else f", line {line}"


@contextmanager
def faults_of(name: str | os.PathLike[str], kind: type[ValueError]) -> Iterator[None]:
    """Turn a fault into an error of this kind, whose message begins with the name of the file."""
    try:
        yield
    except Fault as fault:
        raise (fault.kind or kind)(f"{name}{fault.place}: {shortened(str(fault))}") from None


def shortened(text: str) -> str:
    """Return a text of at most LONGEST characters, without its middle if need be: the remedy is at the end."""
    half = LONGEST // 2 - 3
    return text if len(text) <= LONGEST else f"{text[:half]} ... {text[-half:]}"
