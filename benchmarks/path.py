"""Path of 20 values of C beside 20 separate fits of maxmargin and LinearSVC at the same true accuracy, in one thread.

`python -m benchmarks.path`.
"""

from __future__ import annotations

import platform
import time
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from unittest import mock

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from sklearn.svm import LinearSVC
from threadpoolctl import threadpool_limits

from maxmargin import MarginPath, MaxMarginClassifier, margin_path

from . import datasets
from .datasets import Dataset
from .objective import primal
from .page import as_typed, deliver, page, page_parser, system, table

PAGE = Path(__file__).parents[1] / "docs" / "measurements" / "path_benchmark.md"
CS = np.logspace(-3.0, 3.0, 20)
TOL = 1e-3
GOAL = 0.25  # goal on adult: largest ratio of the time of the path to the time of the fits of LinearSVC
LADDER = (1.0, 0.3, 0.1, 0.03, 0.01, 3e-3, 1e-3, 1e-4)  # tolerances of LinearSVC, tried in this order
MAX_PASSES = 3000  # limit of passes of LinearSVC; if it does not reach TOL, the time of these passes counts
SETS: tuple[Callable[[], Dataset], ...] = (datasets.adult, datasets.web, datasets.mushrooms, datasets.pcmac)


@dataclass(frozen=True)
class Peer:
    """Fit of LinearSVC at one C: the loosest tolerance that reaches TOL, its time, and its true excess."""

    tol: float
    seconds: float
    excess: float

    @property
    def reached(self) -> bool:
        return self.excess <= TOL


def linear_svc(data: Dataset, C: float, lower: float) -> Peer:
    """Fit at the tolerances of the ladder until w is within TOL of the lower bound; return the last fit."""
    found = Peer(np.inf, 0.0, np.inf)
    for tol in LADDER:
        model = LinearSVC(
            loss="hinge", fit_intercept=False, C=C, tol=tol, dual=True, max_iter=MAX_PASSES, random_state=0
        )
        begin = time.process_time()
        model.fit(data.X, data.y)
        seconds = time.process_time() - begin
        found = Peer(tol, seconds, primal(data, C, model.coef_[0]) / lower - 1.0)
        if found.reached or model.n_iter_ >= MAX_PASSES:
            break
    return found


def timed_path(data: Dataset, screen: bool) -> tuple[float, MarginPath]:
    begin = time.process_time()
    # a path records wall time; here it records processor time, like all other times
    with mock.patch("maxmargin.estimators.path.perf_counter", time.process_time):
        path = margin_path(
            data.X, data.y, CS, loss="hinge", fit_intercept=False, tol=TOL, screen=screen, random_state=0
        )
    return time.process_time() - begin, path


def timed_fits(data: Dataset) -> list[float]:
    """Return the times of separate fits of maxmargin."""
    seconds = []
    for C in CS:
        begin = time.process_time()
        MaxMarginClassifier(C, loss="hinge", fit_intercept=False, tol=TOL, random_state=0).fit(data.X, data.y)
        seconds.append(time.process_time() - begin)
    return seconds


def compare(data: Dataset) -> tuple[list[str], str]:
    """Return a line of the summary, and the table of all values of C."""
    timed_path(data, False), timed_path(data, True), timed_fits(data)  # compiles the code
    (whole, path), (screened, _) = timed_path(data, False), timed_path(data, True)
    alone = timed_fits(data)
    lower = [
        MaxMarginClassifier(C, loss="hinge", fit_intercept=False, tol=1e-5)
        .fit(data.X, data.y)
        .certificate_.lower
        for C in CS
    ]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        peers = [linear_svc(data, float(C), bound) for C, bound in zip(CS, lower, strict=True)]
    theirs = sum(peer.seconds for peer in peers)
    reached = sum(peer.reached for peer in peers)
    summary = [
        data.name, f"{whole:.2f}", f"{screened:.2f}", f"{sum(alone):.2f}", f"{theirs:.2f}", f"{reached} of {CS.size}",
        f"{whole / sum(alone):.3f}", f"{whole / theirs:.3f}",
    ]  # fmt: skip
    head = ["C", "path, ms", "certified gap", "alone, ms", "LinearSVC, ms", "its tolerance", "its true gap"]
    rows = [
        [
            f"{C:.3g}", f"{1e3 * seconds:.1f}", f"{gap:.1e}", f"{1e3 * own:.1f}", f"{1e3 * peer.seconds:.1f}",
            f"{peer.tol:g}", f"{peer.excess:.1e}" + ("" if peer.reached else " (not reached)"),
        ]
        for C, seconds, gap, own, peer in zip(CS, path.seconds, path.gaps_, alone, peers, strict=True)
    ]  # fmt: skip
    return summary, table(head, rows)


def document(command: str) -> str:
    """Measure, and return the page."""
    summaries, details = [], {}
    with threadpool_limits(1):
        for load in SETS:
            summary, detail = compare(load())
            summaries.append(summary)
            details[summary[0]] = detail
    return page_of(summaries, details, command, f"{platform.machine()}, one thread used")


def page_of(
    summaries: Sequence[Sequence[str]], details: Mapping[str, str], command: str, machine: str
) -> str:
    """Return the page for the lines of the summary, and the tables of the data sets."""
    head = [
        "set", "path, s", "with screening, s", "20 fits alone, s", "20 fits of LinearSVC, s",
        "LinearSVC reached the gap", "path / alone", "path / LinearSVC",
    ]  # fmt: skip
    sections = {
        "How time is measured": _METHOD.format(tol=TOL, passes=MAX_PASSES, last=LADDER[-1], goal=GOAL)
    }
    sections |= {f"{name}, by C": detail for name, detail in details.items()}
    sections["Versions"] = system("maxmargin", "numpy", "numba", "scikit-learn")
    about = _ABOUT.format(tol=TOL)
    return page("Paths and separate fits", about, table(head, summaries), command, sections, machine)


_ABOUT = """\
One `margin_path` over 20 values of C from 1e-3 to 1e3 is compared with 20 separate fits of maxmargin and of
`LinearSVC`, for the hinge loss without intercept, each at a gap of at most {tol:g}. Below 1, the path is faster. Where
`LinearSVC` did not reach this gap, the time of its last fit counts.
"""

_METHOD = """\
*path* is one `margin_path`; *alone* are 20 fits, each from the start. LinearSVC counts at the loosest tolerance at
which its true gap is at most {tol:g}. The fit of {passes} passes, or at the tolerance {last:g}, is the last one. Times
are those of the processor. The goal, on adult: the path takes at most {goal:g} times as long as the fits of LinearSVC.
"""


def main(arguments: list[str] | None = None) -> int:
    options = page_parser("path", __doc__, PAGE).parse_args(arguments)
    deliver(document(as_typed("path", arguments)), PAGE if options.write else None)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
