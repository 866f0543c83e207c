"""What is fuzzed: a name, and a trial that returns its outcome or raises for a fault."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Any, Protocol

from mutants import mutated

# Characters of the longest message: the files and their numbers are short, and a message shows parts of them.
LONGEST = 1500


class Wrong(Exception):
    """A wrong answer, in words."""


class Target(Protocol):
    """A kind of files, or of problems.

    Attributes
    ----------
    name : str
    seconds : float
        The limit of a trial, above what it takes on a machine that is busy otherwise.
    """

    name: str
    seconds: float

    def trial(self, rng: Random, folder: Path) -> str:
        """Write an input to the folder and try it; return the outcome in a word; raise for a fault."""
        ...


@dataclass(frozen=True)
class FileTarget:
    """Mutants of files of one format.

    Attributes
    ----------
    name, suffix : str
    originals : sequence of bytes
        Files that are read.
    check : callable
        A function of the path, the number of the original and a random generator, as `Target.trial`.
    words : sequence of bytes
        Of the format.
    finish : callable
        Makes the file of a mutant: a checksum, a compression.
    seconds : float
    """

    name: str
    suffix: str
    originals: Sequence[bytes]
    check: Callable[[Path, int, Random], str]
    words: Sequence[bytes] = ()
    finish: Callable[[bytes], bytes] = bytes
    seconds: float = 10.0

    def trial(self, rng: Random, folder: Path) -> str:
        """Read a mutant."""
        k = rng.randrange(len(self.originals))
        path = folder / f"input{self.suffix}"
        path.write_bytes(self.finish(mutated(self.originals[k], rng, self.words, self.originals)))
        return self.check(path, k, rng)


def attempted(call: Callable[[], Any], kind: type[Exception]) -> tuple[Any, str | None]:
    """Return the result of a call, or the message of the error that it is allowed to raise, which must be clear.

    Raises
    ------
    Wrong
        If the message is no sentence of at most LONGEST characters, or says that memory was not enough: a reader has
        to compare its estimate with the memory that is free before.
    """
    try:
        return call(), None
    except kind as error:
        if type(error).__module__.split(".")[0] != "maxmargin":
            raise
        text = str(error)
        if not text.endswith(".") or len(text) > LONGEST or re.search(r"Traceback|[\0\x1b]", text):
            raise Wrong(f"no clear sentence: {text[: 2 * LONGEST]!r}") from error
        if "not enough memory" in text:
            raise Wrong(f"memory ran out: {text}") from error
        return None, text


def require(holds: Any, words: str) -> None:
    """Raise Wrong unless the condition holds."""
    if not holds:
        raise Wrong(words)
