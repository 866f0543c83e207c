"""What becomes of the report of a round."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

from ..fit.deadline import Watch
from ..fit.report import Report
from .callbacks import RoundTasks


class Hearing:
    """Prints the reports of one fit, where that is asked for, and tells the callbacks, each of which may end it.

    Parameters
    ----------
    verbose : int
    callback : callable or None
        The parameter of the estimator.
    tasks : RoundTasks
        What scikit-learn's callbacks hear.
    """

    def __init__(self, verbose: int, callback: Callable[[Report], Any] | None, tasks: RoundTasks) -> None:
        self._verbose, self._callback, self._tasks = verbose, callback, tasks
        self._stages: dict[Any, tuple[str, str]] = {}  # who is at work, by label

    def __call__(self, report: Report, point: Callable[[], Any], watch: Watch) -> None:
        """One report, and a function that makes the best point so far; `watch` ends what it is about."""
        if self._verbose:
            self._print(report)
        if self._callback is not None and self._callback(report):
            watch.stop()
        if self._tasks.heard(report, watch.left(), point):
            watch.stop()

    def _print(self, report: Report) -> None:
        name = "" if report.label is None else f"[{report.label}] "
        stage = report.stage, report.reason
        if self._stages.get(report.label) != stage:
            self._stages[report.label] = stage
            print(f"{name}{report.stage}: {report.reason}", file=sys.stderr)
        print(
            f"{name}round {report.round:4d}  {report.seconds:8.2f} s  {report.lower:.9g} .. {report.upper:.9g}"
            f"  gap {report.gap:.3g}  ({report.stage})",
            file=sys.stderr,
        )
