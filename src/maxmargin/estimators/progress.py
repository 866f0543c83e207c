"""Reports of a fit: printed, passed to `callback` and to scikit-learn's callbacks."""

from __future__ import annotations

import sys
from collections.abc import Callable
from threading import Lock
from typing import Any

from ..fit.deadline import Watch
from ..fit.report import Report
from ..problem.status import Status
from .callbacks import RoundCallbacks


class Reporter:
    """Prints the reports of one fit if `verbose`, and passes them to the callbacks, each of which may end the fit.

    Parameters
    ----------
    model : estimator
        With the parameters `verbose` and `callback`.
    callbacks : RoundCallbacks
        Callbacks of scikit-learn.
    """

    def __init__(self, model: Any, callbacks: RoundCallbacks) -> None:
        self._verbose, self._callback, self._callbacks = model.verbose, model.callback, callbacks
        self._stages: dict[Any, tuple[str, str]] = {}  # stage at work, by label
        self._lock = Lock()

    def report(self, report: Report, best: Callable[[], Any], watch: Watch) -> None:
        """Pass on one report.

        Parameters
        ----------
        report : Report
        best : callable
            Returns the best point so far.
        watch : Watch
            Of the task; it is stopped where a callback asks for the end.
        """
        with self._lock:
            if self._verbose:
                self._print(report)
            if self._callback is not None and self._callback(report):
                watch.stop()
            if self._callbacks.report(report, watch.left(), best):
                watch.stop()

    def end_task(self, label: Any, status: Status) -> None:
        """Tell the callbacks that one binary task has ended."""
        with self._lock:
            self._callbacks.end_task(label, status)

    def end(self) -> None:
        """Tell the callbacks that the fit has ended, and the estimator has all of its attributes."""
        self._callbacks.end()

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
