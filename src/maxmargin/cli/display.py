"""Progress of a command on standard error."""

from __future__ import annotations

import shutil
import sys
import time
from typing import TYPE_CHECKING

from ..numerics.progress import LISTENERS, Step

if TYPE_CHECKING:
    from ..fit.report import Report  # slow to import


class Progress:
    """The work of a command: a line on a terminal, a line every ten seconds elsewhere, on standard error.

    The line names the step that was announced last, and has the round, the bounds and the gap of a fit, of which this
    is the callback.

    Parameters
    ----------
    quantity : str
        The quantity that a fit bounds: "objective" or "margin".
    quiet : bool
        Show nothing.
    """

    def __init__(self, quantity: str = "", quiet: bool = False) -> None:
        self.quantity, self.quiet = quantity, quiet or sys.stderr is None
        self.steps: list[Step] = []
        self._terminal = sys.stderr is not None and not quiet and sys.stderr.isatty()
        self._begin = self._shown = time.perf_counter()

    def __enter__(self) -> Progress:
        LISTENERS.append(self.begin_step)
        return self

    def __exit__(self, *exception: object) -> None:
        LISTENERS.remove(self.begin_step)
        if self._terminal:
            self._rewrite("", end="\r")

    def __call__(self, report: Report) -> None:
        name = "" if report.label is None else f"class {report.label}   "
        bounds = f"{report.lower:.6g} <= {self.quantity} <= {report.upper:.6g}   gap {report.gap:.2g}"
        self._show(f"   {name}round {report.round}   {bounds}   ({report.stage})")

    def begin_step(self, step: Step) -> None:
        """Show a step in place of the last one of its level, and of all deeper ones."""
        self.steps = [one for one in self.steps if one.level < step.level] + [step]
        self._show("", now=self._terminal and step.level == 0)

    def _show(self, text: str, now: bool = False) -> None:
        seconds = time.perf_counter()
        # lines on a terminal replace each other; a log of an hour has 360
        if self.quiet or not (now or seconds - self._shown >= (0.1 if self._terminal else 10.0)):
            return
        self._shown = seconds
        line = "   ".join([f"{seconds - self._begin:.1f} s", *map(str, self.steps)]) + text
        if self._terminal:
            self._rewrite(line)
        else:
            print(f"maxmargin: {line}", file=sys.stderr, flush=True)

    def _rewrite(self, line: str, end: str = "") -> None:
        width = shutil.get_terminal_size().columns - 1
        print(f"\r{line[:width]:{width}}", end=end, file=sys.stderr, flush=True)
