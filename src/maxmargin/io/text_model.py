"""Text models: lines of names and values, then a block of numbers; what is wrong with one is told with its place."""

from __future__ import annotations

import os
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from .model_file import ModelFileError


def digits(numbers: Iterable[float]) -> str:
    """Numbers with 17 digits, from which every float64 comes back as it was."""
    return " ".join(format(number, ".17g") for number in numbers)


@dataclass(frozen=True)
class TextModel:
    """A text model that has been cut into its parts.

    Attributes
    ----------
    path : Path
    header : dict of str
        The first word of each line, and what follows.
    lines : list of bytes
        What comes after the line that begins the block.
    first : int
        The number of the first of these in the file, counted from 1.
    """

    path: Path
    header: dict[str, str]
    lines: list[bytes]
    first: int

    @staticmethod
    def read(path: str | os.PathLike[str], opening: str, block: str) -> TextModel:
        """Read a file that begins with the word `opening`, and whose block begins after the line `block`.

        Raises
        ------
        ModelFileError
            If it is none, or cut short.
        """
        path = Path(path)
        content = path.read_bytes()
        lines = content.splitlines()
        if not lines or not lines[0].startswith(opening.encode() + b" "):
            what = "the file is empty" if not content else f"it does not begin with {opening!r}"
            raise ModelFileError(f"{path}: this is no such model file: {what}.")
        header: dict[str, str] = {}
        for number, line in enumerate(lines, 1):
            if line.strip() == block.encode():
                if not content.endswith(b"\n"):
                    raise ModelFileError(
                        f"{path}: the last line is not complete; copy or write the file again."
                    )
                return TextModel(path, header, lines[number:], number + 1)
            try:
                name, _, value = line.decode("ascii").strip().partition(" ")
            except UnicodeDecodeError:
                raise ModelFileError(f"{path}, line {number}: this is no text of a model.") from None
            header[name] = value.strip()
        raise ModelFileError(
            f"{path}: the file is cut short: there is no line {block!r}; copy or write it again."
        )

    def word(self, name: str) -> str:
        """What stands behind this name."""
        if name not in self.header:
            raise ModelFileError(f"{self.path}: there is no line {name!r}; copy or write the file again.")
        return self.header[name]

    def numbers(self, name: str, kind: type[int] | type[float], count: int = 1) -> np.ndarray:
        """So many finite numbers behind this name."""
        words = self.word(name).split()
        try:
            found = np.array([kind(word) for word in words], dtype=np.int64 if kind is int else np.float64)
            if not np.isfinite(found).all():
                raise ValueError
        except (ValueError, OverflowError):
            raise ModelFileError(
                f"{self.path}: {name!r} must be {'whole' if kind is int else 'finite'} numbers; got "
                f"{' '.join(words)[:60]!r}."
            ) from None
        if found.size != count:
            raise ModelFileError(f"{self.path}: {name!r} must be {count} numbers; there are {found.size}.")
        return found

    def number(self, name: str, kind: type[int] | type[float]) -> Any:
        """The number behind this name."""
        return self.numbers(name, kind)[0]

    def count(self, name: str, least: int, what: str) -> int:
        """The whole number behind this name, `least` at least."""
        count = int(self.number(name, int))
        if count < least:
            raise ModelFileError(f"{self.path}: {name!r} is {count}, and {what} has {least} at least.")
        return count

    def labels(self, count: int) -> np.ndarray:
        """The names of the classes, all of them different."""
        labels = self.numbers("label", int, count)
        if np.unique(labels).size < count:
            raise ModelFileError(f"{self.path}: two classes have the same label: {labels.tolist()!r}.")
        return labels

    def values(self, words: list[bytes], place: str) -> np.ndarray:
        """Finite numbers from their texts; `place` tells where they stand."""
        try:
            values = np.array(words, dtype=bytes).astype(float) if words else np.empty(0)
            sound = np.isfinite(values)
        except ValueError:
            sound = np.array([_finite(word) for word in words])
            values = np.empty(0)
        if not sound.all():
            bad = words[int(np.flatnonzero(~sound)[0])].decode("utf-8", "replace")
            raise ModelFileError(f"{self.path}{place}: {bad[:40]!r} is no finite number.")
        return values


def _finite(word: bytes) -> bool:
    try:
        return bool(np.isfinite(float(word)))
    except ValueError:
        return False
