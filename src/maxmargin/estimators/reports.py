"""What becomes of the report of a round."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

from ..solve import Report
from ..watch import Watch
from .callbacks import RoundTasks


def hear(
    report: Report,
    point: Callable[[], Any],
    watch: Watch,
    verbose: int,
    callback: Callable[[Report], Any] | None,
    tasks: RoundTasks,
) -> None:
    """Print a report, where that is asked for, and tell the callbacks, each of which may end the fit.

    Parameters
    ----------
    report : Report
    point : callable
        Makes the best point so far.
    watch : Watch
    verbose : int
    callback : callable or None
        The parameter of the estimator.
    tasks : RoundTasks
        What scikit-learn's callbacks hear.
    """
    if verbose:
        name = "" if report.label is None else f"[{report.label}] "
        if report.round == 1:
            print(f"{name}{report.stage}: {report.reason}", file=sys.stderr)
        print(
            f"{name}round {report.round:4d}  {report.seconds:8.2f} s  {report.lower:.9g} .. {report.upper:.9g}"
            f"  gap {report.gap:.3g}  ({report.stage})",
            file=sys.stderr,
        )
    if callback is not None and callback(report):
        watch.stop()
    if tasks.heard(report, watch.left(), point):
        watch.stop()
