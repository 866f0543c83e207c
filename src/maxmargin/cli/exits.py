"""Exit codes, and bad input told in one sentence."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import typer

STOPPED, BAD = 3, 2


@contextmanager
def one_sentence() -> Iterator[None]:
    """Tell what is wrong with the input in one line on standard error, and leave with code 2."""
    try:
        yield
    except BrokenPipeError:  # the reader of our output has gone, as `head` does: no fault of the input
        raise
    except OSError as error:
        place = f"{error.filename}: " if error.filename else ""
        raise _complain(f"{place}{error.strerror or error}") from None
    except MemoryError as error:
        raise _complain(f"the memory was used up ({error}); use fewer rows or sparse data") from None
    except ValueError as error:
        raise _complain(str(error)) from None


def _complain(words: str) -> typer.Exit:
    typer.echo(f"maxmargin: {' '.join(words.split())}", err=True)
    return typer.Exit(BAD)
