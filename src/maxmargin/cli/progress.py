"""A live line on standard error while a fit runs."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ..fit.report import Report


class Progress:
    """Rounds, bounds, gap and time left, on one line; the callback of a fit.

    Parameters
    ----------
    quantity : str
        What is bounded: "objective" or "margin".
    max_time : float or None
        Seconds that the fit may take.
    quiet : bool
        Show nothing. Nothing is shown either where standard error is no terminal.
    """

    def __init__(self, quantity: str, max_time: float | None, quiet: bool) -> None:
        self.quantity, self.max_time, self.quiet = quantity, max_time, quiet
        self.report: Report | None = None
        self._begin = time.perf_counter()
        self._live: Any = None

    def __enter__(self) -> Progress:
        self._begin = time.perf_counter()
        if not self.quiet:
            from rich.console import Console
            from rich.live import Live

            console = Console(stderr=True)
            if console.is_terminal:
                self._live = Live(self, console=console, transient=True, refresh_per_second=8)
                self._live.start()
        return self

    def __exit__(self, *exception: object) -> None:
        if self._live is not None:
            self._live.stop()

    def __call__(self, report: Report) -> None:
        self.report = report

    def line(self) -> str:
        """What is known now."""
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

    def __rich__(self) -> Any:
        from rich.text import Text

        return Text(self.line(), no_wrap=True, overflow="ellipsis")
