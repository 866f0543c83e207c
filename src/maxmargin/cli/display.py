"""Progress of a command on standard error, and pictures in files."""

from __future__ import annotations

import sys
import time
from contextlib import ExitStack, suppress
from math import log
from pathlib import Path
from threading import Event, Thread
from typing import TYPE_CHECKING

from rich.console import Console
from rich.live import Live
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from ..numerics.files import check_place, written_whole
from ..numerics.progress import LISTENERS, Step
from .signals import terminal_may_be_closed

if TYPE_CHECKING:
    from ..fit.report import Report  # slow to import

# Seconds between lines where standard error is no terminal: short work prints none, and a log of an hour has 360.
INTERVAL = 10.0
PICTURE_FORMATS = ("png", "pdf", "svg")


class Progress:
    """The work of a command: a bar and a line on a terminal, a line every ten seconds elsewhere, on standard error.

    The line names the step that was announced last, and has the rounds, bounds and gap of a fit, of which this is the
    callback.

    Parameters
    ----------
    quantity : str
        The quantity that a fit bounds: "objective" or "margin".
    tol : float
        The gap at which the bar of a fit is full.
    max_time : float or None
        Seconds that the work may take.
    quiet : bool
        Show nothing.
    """

    def __init__(
        self, quantity: str = "", tol: float = 1.0, max_time: float | None = None, quiet: bool = False
    ) -> None:
        self.quantity, self.tol, self.max_time, self.quiet = quantity, tol, max_time, quiet
        self.report: Report | None = None
        self.steps: list[Step] = []
        self._begin, self._shown = time.perf_counter(), ExitStack()

    def __enter__(self) -> Progress:
        console, ended = Console(stderr=True), Event()
        LISTENERS.append(self.begin_step)
        self._shown.callback(LISTENERS.remove, self.begin_step)
        if not self.quiet and console.is_interactive:
            live = Live(self, console=console, transient=True, refresh_per_second=8, redirect_stdout=False)
            self._shown.enter_context(live)
        elif not self.quiet:
            printer = Thread(target=self._print_lines, args=(ended,), daemon=True)
            printer.start()
            self._shown.callback(printer.join)
            self._shown.callback(ended.set)
        return self

    def __exit__(self, *exception: object) -> None:
        with terminal_may_be_closed():
            self._shown.close()

    def __call__(self, report: Report) -> None:
        self.report = report

    def begin_step(self, step: Step) -> None:
        """Show a step in place of the last one of its level, and of all deeper ones."""
        self.steps, self.report = [one for one in self.steps if one.level < step.level] + [step], None

    def share(self) -> float | None:
        """Return the share of the work that is done; None if it is not known."""
        done: float | None = None
        if self.report is not None and self.tol < 1.0:  # the powers of ten that the gap of a fit has passed
            done = abs(log(min(max(self.report.gap, self.tol), 1.0)) / log(self.tol))
        for step in reversed(self.steps):
            with suppress(OSError, ValueError):  # of a file that has been closed
                done = done if step.share is None else step.share()
            done = (step.number - 1 + (done or 0.0)) / step.of if step.of else done
        return done

    def line(self) -> str:
        """Return the line: the time, steps, and the last report or that something is being compiled.

        The time is first, since a terminal may cut the end off.
        """
        seconds = time.perf_counter() - self._begin
        left = "" if self.max_time is None else f", {max(self.max_time - seconds, 0.0):.1f} s left"
        parts = [f"{seconds:.1f} s{left}", *map(str, self.steps)]
        # this module is loaded with the first fit, and takes a second that reading does not need
        compilation = getattr(sys.modules.get("maxmargin.engine.jit"), "COMPILATION", None)
        report = self.report
        if compilation is not None and compilation.running:
            parts.append(f"compiling {compilation.purpose}")
        elif report is not None:
            name = "" if report.label is None else f"class {report.label}   "
            bounds = f"{report.lower:.6g} ≤ {self.quantity} ≤ {report.upper:.6g}   gap {report.gap:.2g}"
            speed = report.presentations / report.seconds if report.seconds > 0.0 else 0.0
            visits = f"   {speed:.2g} rows/s" if speed else ""
            parts.append(f"{name}round {report.round}   {bounds}{visits}   ({report.stage})")
        return "   ".join(parts)

    def _print_lines(self, ended: Event) -> None:
        """Print the line every INTERVAL seconds until the work has ended."""
        while not ended.wait(INTERVAL):
            done = f"{share:.0%}   " if (share := self.share()) is not None else ""
            print(f"maxmargin: {done}{self.line()}", file=sys.stderr, flush=True)

    def __rich__(self) -> Table:
        share, table = self.share(), Table.grid(padding=(0, 1))
        bar = ProgressBar(1.0, share or 0.0, width=20, pulse=share is None)
        table.add_row(bar, Text(self.line(), no_wrap=True, overflow="ellipsis"))
        return table


class PictureFile:
    """A figure and its file, a .png 800 pixels wide; faults are reported before there is anything to draw.

    Parameters
    ----------
    path : Path
        Its end says the format; without an end it is png.
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

    def __init__(self, path: Path, *inputs: Path) -> None:
        check_place(path, *inputs)
        self.path, self.format = path, path.suffix.lower().removeprefix(".") or "png"
        if self.format not in PICTURE_FORMATS:
            raise ValueError(f"{path}: a picture is a .png, .pdf or .svg file; use one of these endings")

        from ..plots.style import WIDTH, new_figure  # slow

        self.figure = new_figure((WIDTH, 4.5))

    def save(self) -> None:
        """Write the figure; the file appears whole or not at all."""
        with written_whole(self.path) as file:
            self.figure.savefig(file, format=self.format, dpi=100)
