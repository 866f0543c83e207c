"""Inputs of a command: pipes become temporary files, notices of readers become lines on standard error."""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import IO, Any

import typer

from ..numerics.files import folder_of_this_process

STANDARD_INPUT = Path("-")
_START = 1 << 16  # bytes that are enough to tell the format of a file


@contextmanager
def read_once(given: dict[str, Any]) -> Iterator[Callable[[str], str]]:
    """Copy data that are standard input or a pipe into a temporary file, and print notices, while a command runs.

    The function that is returned takes the temporary folder out of a text for the user.

    Parameters
    ----------
    given : dict
        The arguments of a command. `data` is replaced by the file, except with ``online``, which reads pipes itself.
    """
    data, quiet = given.get("data"), bool(given.get("quiet"))
    if data is None:
        yield str
        return
    with warnings.catch_warnings():
        if given.get("online") or not _is_pipe(data):
            _print_notices(str, quiet)
            yield str
            return
        folder = folder_of_this_process(Path(tempfile.gettempdir()), "pipe")
        try:
            shown = partial(_without, f"{folder}{os.sep}")
            _print_notices(shown, quiet)
            given["data"] = _copied(data, folder)
            try:
                yield shown
            except (ValueError, OSError) as error:
                raise _renamed(error, shown) from None
        finally:
            shutil.rmtree(folder, ignore_errors=True)


def _is_pipe(data: Path) -> bool:
    """Return whether data can be read only once."""
    return data == STANDARD_INPUT or (data.exists() and not data.is_file() and not data.is_dir())


def _print_notices(shown: Callable[[str], str], quiet: bool) -> None:
    """Print each notice of readers as a line, once, as `shown` makes it; that of ``--checkpoint`` unless `quiet`."""
    from ..readers import DataNotice
    from .refusals import as_typed

    printed = set[str]()

    def show(message: Warning | str, *place: Any, **more: Any) -> None:
        words = as_typed(str(message), ())
        if words not in printed:
            typer.echo(f"maxmargin: {shown(words)}", err=True)
        printed.add(words)

    before = warnings.showwarning
    warnings.simplefilter("always", DataNotice)
    warnings.showwarning = lambda message, category, *more, **rest: (
        show if issubclass(category, UserWarning) else before
    )(message, category, *more, **rest)
    warnings.filterwarnings("ignore" if quiet else "always", "checkpoint is not used", UserWarning)


def _copied(data: Path, folder: Path) -> Path:
    """Copy a pipe into a file of the folder, whose name ends as its format demands; return the file."""
    from ..readers import DataError

    if data == STANDARD_INPUT:
        if sys.stdin is None:
            raise DataError("standard input: it is closed; pipe rows into the command.")
        file = folder / "standard input"
        with open(0, "rb", closefd=False) as pipe:
            _copy(pipe, file)
    else:
        file = folder / data.name
        with open(data, "rb") as pipe:
            _copy(pipe, file)
    return _with_ending(file)


def _copy(pipe: IO[bytes], file: Path) -> None:
    with open(file, "wb") as copy:
        shutil.copyfileobj(pipe, copy, 1 << 20)


def _with_ending(file: Path) -> Path:
    """Rename a file of unknown format by its content."""
    from ..readers.files import COMPRESSED, MAGIC
    from ..readers.layout import kind_of_text

    with open(file, "rb") as raw:
        begin = raw.read(_START)
        suffix = next((end for magic, end in MAGIC.items() if begin.startswith(magic)), "")
        if suffix in COMPRESSED:
            raw.seek(0)
            try:
                begin = COMPRESSED[suffix](raw, "rb").read(_START)
            except (OSError, EOFError):  # damaged: reported where it is read
                begin = b""
    kind = suffix if suffix and suffix not in COMPRESSED else kind_of_text(begin) + suffix
    return file.rename(file.with_name(file.name + kind)) if kind else file


def _without(folder: str, text: str) -> str:
    return text.replace(folder, "")


def _renamed(error: ValueError | OSError, shown: Callable[[str], str]) -> ValueError | OSError:
    """Return an error with the name of the file that `shown` makes."""
    if isinstance(error, ValueError):
        error.args = tuple(shown(str(words)) for words in error.args)
    elif error.filename:
        error.filename = shown(str(error.filename))
    return error
