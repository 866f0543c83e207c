"""A live line while a fit runs, a bar while a file is read, and pictures in files."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from rich.console import Console
from rich.live import Live
from rich.progress import BarColumn, DownloadColumn, TimeRemainingColumn, TransferSpeedColumn
from rich.progress import Progress as ProgressBar
from rich.text import Text

from ..numerics.files import check_place, written_whole

if TYPE_CHECKING:
    from ..fit.report import Report  # slow to import

PICTURE_FORMATS = ("png", "pdf", "svg")


class Progress:
    """Live line on standard error with rounds, bounds, gap and time left; the callback of a fit.

    Parameters
    ----------
    quantity : str
        The bounded quantity: "objective" or "margin".
    max_time : float or None
        Seconds that the fit may take.
    quiet : bool
        Show nothing. Nothing is shown either where standard error is no terminal.
    """

    def __init__(self, quantity: str, max_time: float | None, quiet: bool) -> None:
        self.quantity, self.max_time, self.quiet = quantity, max_time, quiet
        self.report: Report | None = None
        self._begin = time.perf_counter()
        self._live: Live | None = None

    def __enter__(self) -> Progress:
        console = Console(stderr=True)
        if not self.quiet and console.is_terminal:
            self._live = Live(self, console=console, transient=True, refresh_per_second=8)
            self._live.start()
        return self

    def __exit__(self, *exception: object) -> None:
        if self._live is not None:
            self._live.stop()

    def __call__(self, report: Report) -> None:
        self.report = report

    def line(self) -> str:
        """Return the line for the last report."""
        seconds = time.perf_counter() - self._begin
        left = "" if self.max_time is None else f", {max(self.max_time - seconds, 0.0):.1f} s left"
        clock = f"{seconds:.1f} s{left}"
        report = self.report
        if report is None:
            return f"first round ...   {clock}"
        name = "" if report.label is None else f"class {report.label}   "
        return (
            f"{name}round {report.round}   {report.lower:.6g} ≤ {self.quantity} ≤ {report.upper:.6g}   "
            f"gap {report.gap:.2g}   {clock}   ({report.stage})"
        )

    def __rich__(self) -> Text:
        return Text(self.line(), no_wrap=True, overflow="ellipsis")


@contextmanager
def reading_bar(data: Path, quiet: bool) -> Iterator[Callable[[int], None]]:
    """Show a bar of the bytes read, on a terminal; yields the function that is called with their number."""
    console = Console(stderr=True)
    if quiet or not console.is_terminal:
        yield lambda read: None
        return
    columns = (BarColumn(), DownloadColumn(), TransferSpeedColumn(), TimeRemainingColumn())
    with ProgressBar(*columns, console=console, transient=True) as bar:
        task = bar.add_task("read", total=data.stat().st_size)
        yield lambda read: bar.update(task, completed=read)


class PictureFile:
    """A figure of matplotlib, and the file that it is saved to; faults are reported before there is anything to draw.

    Parameters
    ----------
    path : Path
        Its end says the format; without an end it is png.
    size : tuple of float
        Width and height in inches.
    *inputs : Path
        Files that are read from, and must not be overwritten.

    Raises
    ------
    OSError
        If the file cannot be written.
    ValueError
        If there is no such format.
    ImportError
        Without matplotlib.
    """

    def __init__(self, path: Path, size: tuple[float, float], *inputs: Path) -> None:
        check_place(path, *inputs)
        self.path, self.format = path, path.suffix.lower().removeprefix(".") or "png"
        if self.format not in PICTURE_FORMATS:
            raise ValueError(f"{path}: a picture is a .png, .pdf or .svg file; use one of these endings")

        from ..plots.style import new_figure  # slow

        self.figure = new_figure(size)

    def save(self) -> None:
        """Write the figure; the file appears whole or not at all."""
        with written_whole(self.path) as file:
            self.figure.savefig(file, format=self.format, dpi=150)
