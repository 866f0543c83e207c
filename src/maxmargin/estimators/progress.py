"""Progress of a fit: the division of the time among its binary tasks, and their reports."""

from __future__ import annotations

import sys
from collections.abc import Callable
from math import ceil
from threading import Lock
from typing import Any, TypeVar

import numpy as np
from joblib import Parallel, delayed

from ..engine.jit import seconds_compiled
from ..fit.deadline import Deadline
from ..fit.report import Report
from ..numerics.progress import announce

T = TypeVar("T")


def solve_tasks(
    solve_task: Callable[[int, Deadline], T], count: int, workers: int, deadline: Deadline
) -> list[T]:
    """Solve tasks 0, ..., count - 1; each gets an equal share of the time that remains when it begins.

    Parameters
    ----------
    solve_task : callable
        Solves the k-th task within its share of the time.
    count : int
    workers : int
        Number of tasks that are solved at the same time.
    deadline : Deadline
        The deadline of the whole fit.
    """

    def begin(k: int, deadline: Deadline) -> T:
        if count > 1:
            announce("binary problem", k + 1, count, level=2)
        return solve_task(k, deadline)

    if workers == 1:  # the last task has all of the remaining time
        last = count - 1
        return [begin(k, deadline.split(count - k) if k < last else deadline) for k in range(count)]
    parallel: Any = Parallel(n_jobs=workers, require="sharedmem")

    # called when task k begins, so that `split` divides the time that remains then
    def within_share(k: int) -> T:
        return begin(k, deadline.split(ceil((count - k) / workers)))

    return list(parallel(delayed(within_share)(k) for k in range(count)))


class Reporter:
    """Prints the reports of one fit if `verbose`, and passes them to the callback, which may end the fit.

    Parameters
    ----------
    model : estimator
        With the parameters `verbose` and `callback`.
    """

    def __init__(self, model: Any) -> None:
        self._model = model
        self._stages: dict[Any, tuple[str, str]] = {}  # the stage of each task, and its reason
        self._lock = Lock()
        self._compiled = seconds_compiled()  # at the last line printed

    def report(self, report: Report, deadline: Deadline) -> None:
        """Print the report of a round if `verbose`, and pass it to the callback, which may stop the deadline."""
        with self._lock:
            if self._model.verbose:
                self._print(report)
            if self._model.callback is not None and is_true(self._model.callback(report)):
                deadline.stopped.set()

    def _print(self, report: Report) -> None:
        """Print a line about the round, and one before it where another stage begins."""
        name = "" if report.label is None else f"[{report.label}] "
        if seconds_compiled() > self._compiled:
            seconds, self._compiled = seconds_compiled() - self._compiled, seconds_compiled()
            print(f"compiled in {seconds:.2f} s for this machine, once", file=sys.stderr)
        stage = report.stage, report.reason
        if self._stages.get(report.label) != stage:
            self._stages[report.label] = stage
            print(f"{name}{report.stage}: {report.reason}", file=sys.stderr)
        print(
            f"{name}round {report.round:4d}  {report.seconds:8.2f} s  {report.lower:.9g} .. {report.upper:.9g}"
            f"  gap {report.gap:.3g}  ({report.stage})",
            file=sys.stderr,
        )


def is_true(answer: Any) -> bool:
    """Return whether the value that a callback returned is true; arrays, for example, have no truth value."""
    if np.ndim(answer):
        kind = type(answer).__name__
        raise ValueError(f"callback must return True to end the fit, else False or None; got a {kind}.")
    return bool(answer)
