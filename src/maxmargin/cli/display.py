"""A live line while a fit runs, a bar while a file is read, and pictures in files."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.live import Live
from rich.progress import BarColumn, DownloadColumn, TimeRemainingColumn, TransferSpeedColumn
from rich.progress import Progress as ProgressBar
from rich.text import Text

from ..fit.report import Report
from ..numerics.files import written_whole


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
        self._begin = time.perf_counter()
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
        clock = f"{seconds:.1f} s"
        if self.max_time is not None:
            clock += f", {max(self.max_time - seconds, 0.0):.1f} s left"
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


def new_figure(width: float, height: float) -> Any:
    """Return an empty figure, in inches, that needs no screen.

    Raises
    ------
    ValueError
        If matplotlib is not installed.
    """
    try:
        from matplotlib.figure import Figure
    except ImportError:
        raise ValueError("Pictures need matplotlib: pip install 'maxmargin[plot]'.") from None
    return Figure(figsize=(width, height), layout="constrained")


def save_figure(figure: Any, path: Path, kind: str) -> None:
    """Write a figure to a file that appears whole or not at all."""
    with written_whole(path) as file:
        figure.savefig(file, format=kind, dpi=150)
