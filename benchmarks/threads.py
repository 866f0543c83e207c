"""Times of fits with one and with two threads, alone and on busy cores: two threads must never be much slower.

`python -m benchmarks.threads`.
"""

from __future__ import annotations

import multiprocessing
import os
import platform
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from joblib import cpu_count
from threadpoolctl import ThreadpoolController

from maxmargin import KernelMaxMarginClassifier, MaxMarginClassifier
from maxmargin.numerics.threads import one_thread

from .page import as_typed, deliver, grouped, page, page_parser, spread, summary, table
from .unscaled import SETS, Rows, unequal

PAGE = Path(__file__).parents[1] / "docs" / "measurements" / "threads.md"
GOAL = 1.3  # largest ratio of the time with two threads to that with one


@dataclass(frozen=True)
class Case:
    """Fit with a number of jobs; with `blas`, with this number of BLAS threads instead, to measure their cost."""

    name: str
    rows: Callable[[], Rows]
    make: Callable[[int], Any]
    blas: bool = False

    def seconds(self, jobs: int) -> float:
        """Return the wall time of a fit."""
        X, y = _loaded(self.rows)
        usual = one_thread.count
        try:
            if self.blas:
                one_thread.count = jobs
            begin = time.perf_counter()
            self.make(1 if self.blas else jobs).fit(X, y)
            return time.perf_counter() - begin
        finally:
            one_thread.count = usual


@cache
def _loaded(rows: Callable[[], Rows]) -> Rows:
    return rows()


def _first(rows: Callable[[], Rows], n: int) -> Callable[[], Rows]:
    """Return a loader of the first n rows."""
    return lambda: tuple(part[:n] for part in rows())  # type: ignore[return-value]


def _pairs(jobs: int) -> KernelMaxMarginClassifier:
    return KernelMaxMarginClassifier(10.0, multi_class="ovo", n_jobs=jobs)


def _linear(jobs: int, loss: str = "squared_hinge") -> MaxMarginClassifier:
    return MaxMarginClassifier(loss=loss, n_jobs=jobs, random_state=0)


def _binary() -> Rows:
    return unequal(200_000, 50)


CASES = {
    case.name: case
    for case in (
        Case("satimage, 6 classes", SETS["satimage"], _linear),
        Case("satimage, 6 classes, hinge", SETS["satimage"], lambda jobs: _linear(jobs, "hinge")),
        Case("letter, 26 classes", SETS["letter"], _linear),
        Case("letter, 2,000 rows, Gaussian kernel, 325 pairs", _first(SETS["letter"], 2000), _pairs),
        Case("200,000 x 50, 2 classes", _binary, _linear),
        Case("200,000 x 50, 2 classes, threads of BLAS", _binary, _linear, blas=True),
    )
}


@contextmanager
def competitors(places: list[int]) -> Iterator[None]:
    """Keep each of these processors busy with a process."""
    context: Any = multiprocessing.get_context("spawn")
    busy = [context.Process(target=_burn, args=(place,), daemon=True) for place in places]
    for process in busy:
        process.start()
    time.sleep(0.5 if busy else 0.0)
    try:
        yield
    finally:
        for process in busy:
            process.kill()
            process.join()


def _burn(place: int) -> None:
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, {place})
    x = 1.0
    while x:
        x = (x * 1.0000001) % 2.0 + 1e-9


def measure(case: Case, turns: int) -> dict[int, list[float]]:
    """Return the seconds with one and with two threads, measured in turn."""
    found: dict[int, list[float]] = {1: [], 2: []}
    for turn in range(turns):
        for jobs in (1, 2) if turn % 2 else (2, 1):
            found[jobs].append(case.seconds(jobs))
    return found


def document(names: list[str], turns: int, command: str) -> str:
    """Measure, and return the page."""
    rows = []
    processors = _processors()
    for name in names:
        for jobs in (1, 2):
            CASES[name].seconds(jobs)  # loads or compiles the machine code
        for places in ([], processors):
            with competitors(places):
                found = measure(CASES[name], turns)
            ratio = np.divide(found[2], found[1])
            met = "yes" if np.median(ratio) <= GOAL else "**no**"
            rows.append(
                [
                    name, f"{len(places)} busy processes" if places else "nothing",
                    *(spread(np.array(found[jobs]), ".2f") for jobs in (1, 2)), spread(ratio, ".2f"),
                    "not used" if CASES[name].blas else met,
                ]
            )  # fmt: skip
            print(" | ".join(rows[-1]), file=sys.stderr, flush=True)
    blas = ", ".join(
        f"{one['internal_api']} {one['version']} with {one['num_threads']} threads"
        for one in ThreadpoolController().select(user_api="blas").info()
    )
    packages = f"Python {platform.python_version()}; BLAS: {blas}."
    machine = f"{len(processors)} shared cores, of which joblib may use {cpu_count()}"
    return page_of(rows, turns, command, packages, machine)


def page_of(rows: Sequence[Sequence[str]], turns: int, command: str, packages: str, machine: str) -> str:
    """Return the page for the lines of the table."""
    head = ["fit", "beside it", "one thread, s", "two, s", "ratio", f"at most {GOAL:g}"]
    sections = {
        "How time is measured": _METHOD.format(turns=turns),
        "All fits": table(head, rows),
        "Where threads are used": _USE,
        "Versions": packages,
    }
    return page("Time with two threads", _ABOUT.format(goal=GOAL), best(rows), command, sections, machine)


def best(rows: Sequence[Sequence[str]]) -> str:
    """Return the summary table: the ratios alone and beside busy processes."""

    def cells(some: Sequence[Sequence[str]]) -> list[str]:
        return [*(row[4] for row in some), ", ".join(dict.fromkeys(row[5] for row in some))]

    return summary(
        ["fit", "alone", "beside busy processes", f"at most {GOAL:g}"],
        grouped(rows, lambda row: (row[0],)),
        cells,
    )


def _processors() -> list[int]:
    """Return the processors that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return sorted(os.sched_getaffinity(0))
    return list(range(os.cpu_count() or 1))


_ABOUT = """\
Whole fits with `n_jobs=2` are compared with fits with `n_jobs=1`, alone and while one busy process is pinned to every
core. A number is the wall time with two threads divided by that with one: the median, with quartiles in brackets. Below
1, two threads are faster; the goal is at most {goal:g} times the time with one.
"""

_METHOD = """\
Times are wall seconds of whole fits with default settings. Fits with `n_jobs` 1 and 2 alternate, {turns} turns of each.
Numbers are medians with quartiles in brackets; ratios are taken turn by turn.
"""

_USE = """\
* `n_jobs` is the number of classes, pairs of classes, or blocks of rows to predict that are processed at the same time.
  They run in threads of joblib, and the compiled code releases the lock of the interpreter. The number of threads never
  exceeds the number of processors that joblib counts, which takes the affinity of the process and the limit of its
  container into account.
* Small problems with `algorithm="auto"` (less than two million entries of all classes together) are solved in one
  thread, whatever `n_jobs` is. Their exact stages end within milliseconds, before another thread has started.
* BLAS uses one thread everywhere, two classes included. The last fit shows the cost of two. BLAS threads spin while
  they wait for each other. Their sums differ in the last digits, so that the model would depend on `n_jobs`.
* Nothing else starts threads: no compiled code is parallel by itself.
"""


def main(arguments: list[str] | None = None) -> int:
    """Measure and print; with --write into `docs/measurements/threads.md`."""
    parser = page_parser("threads", __doc__, PAGE)
    parser.add_argument("--sets", nargs="+", choices=list(CASES), default=list(CASES), help="fits")
    parser.add_argument("--turns", type=int, default=5)
    options = parser.parse_args(arguments)
    command = as_typed("threads", arguments)
    text = document(options.sets, options.turns, command)
    deliver(text, PAGE if options.write else None)
    return 0


if __name__ == "__main__":
    sys.exit(main())
