"""Numbers of files as text, in the notation that other programs read, too."""

from __future__ import annotations

from typing import TypeVar

N = TypeVar("N", int, float)


def number_of(text: str | bytes, kind: type[N]) -> N:
    """Return the number of a text; raise ValueError where it is none, or has the underscores of Python's literals."""
    if ("_" if isinstance(text, str) else b"_") in text:  # pyright: ignore[reportOperatorIssue]
        raise ValueError(text)
    return kind(text)
