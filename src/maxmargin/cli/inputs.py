"""Inputs of a command: pipes become temporary files, notices of readers become lines on standard error."""

from __future__ import annotations

import shutil
import tempfile
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

import typer

STANDARD_INPUT = Path("-")
_START = 1 << 16  # bytes that are enough to tell the format of a file


@contextmanager
def read_once(given: dict[str, Any]) -> Iterator[None]:
    """Copy data that are standard input or a pipe into a temporary file, and print notices, while a command runs.

    Parameters
    ----------
    given : dict
        The arguments of a command. `data` is replaced by the file, except with ``online``, which reads pipes itself.
    """
    data = given.get("data")
    with warnings.catch_warnings():
        if data is not None:
            _print_notices()
        if data is None or given.get("online") or not _is_pipe(data):
            yield
            return
        with tempfile.TemporaryDirectory(prefix="maxmargin-") as folder:
            given["data"] = _copied(data, Path(folder))
            try:
                yield
            except (ValueError, OSError) as error:  # with the name that the user knows
                raise _renamed(error, folder) from None


def _is_pipe(data: Path) -> bool:
    """Return whether data can be read only once."""
    return data == STANDARD_INPUT or (data.exists() and not data.is_file() and not data.is_dir())


def _print_notices() -> None:
    """Print each notice of the readers as a line, once."""
    from ..readers import DataNotice

    printed = set[str]()

    def show(message: Warning | str, *place: Any, **more: Any) -> None:
        words = str(message)
        if words not in printed:
            typer.echo(f"maxmargin: {words}", err=True)
        printed.add(words)

    before = warnings.showwarning
    warnings.simplefilter("always", DataNotice)
    warnings.showwarning = lambda message, category, *more, **rest: (
        show if issubclass(category, DataNotice) else before
    )(message, category, *more, **rest)


def _copied(data: Path, folder: Path) -> Path:
    """Copy a pipe into a file of the folder, whose name ends as its format demands; return the file."""
    import sys

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


def _renamed(error: ValueError | OSError, folder: str) -> ValueError | OSError:
    """Return an error without the name of the temporary folder."""
    if isinstance(error, ValueError):
        error.args = tuple(str(words).replace(f"{folder}/", "") for words in error.args)
    elif error.filename:
        error.filename = Path(error.filename).name
    return error
