"""Seconds between the order to stop a fit and its end: `max_time`, Ctrl-C and callbacks, for every algorithm.

`python -m benchmarks.stopping`.
"""

from __future__ import annotations

import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.base import clone
from threadpoolctl import threadpool_limits

from maxmargin import KernelMaxMarginClassifier, MaxMarginClassifier
from maxmargin.algorithms import ALGORITHMS, KERNEL_ALGORITHMS

from .page import as_typed, deliver, page, page_parser, summary, system, table

PAGE = Path(__file__).parents[1] / "docs" / "measurements" / "stopping.md"
SECONDS = 1.0  # from the beginning of a fit to the order to stop
ALLOWED = 0.5, 0.05  # seconds, and share of the elapsed time, that a stop may take
ORDERS = ("max_time", "Ctrl-C", "callback")
Rows = tuple[Any, np.ndarray]


@dataclass(frozen=True)
class Shape:
    """The shape of generated rows.

    Attributes
    ----------
    n, d : int
    density : float
        Share of the entries that are not zero; 1 for a dense matrix.
    flipped : float
        Share of the labels that are random.
    """

    n: int
    d: int
    density: float = 1.0
    flipped: float = 0.2

    def rows(self) -> Rows:
        """Return rows and labels -1 and 1."""
        rng = np.random.default_rng(0)
        dense = self.density == 1.0
        X: Any = rng.normal(size=(self.n, self.d)) if dense else _sparse(self, rng)
        y = np.where(X @ rng.normal(size=self.d) > 0.0, 1, -1)
        flipped = rng.random(self.n) < self.flipped
        y[flipped] = rng.choice([-1, 1], int(flipped.sum()))
        return X, y


def _sparse(shape: Shape, rng: np.random.Generator) -> sp.csr_matrix:
    """Return rows with a constant number of entries, whose columns may coincide."""
    entries = max(1, round(shape.density * shape.d))
    columns = rng.integers(shape.d, size=(shape.n, entries))
    places = np.arange(0, shape.n * entries + 1, entries)
    X = sp.csr_matrix((rng.normal(size=columns.size), columns.ravel(), places), (shape.n, shape.d))
    X.sum_duplicates()
    return X


LINEAR_SHAPES = {
    "38 x 7,129": Shape(38, 7_129, flipped=0.0),
    "500 x 20,000": Shape(500, 20_000),
    "2,000 x 2,000": Shape(2_000, 2_000),
    "3,000 x 1,500": Shape(3_000, 1_500),
    "20,000 x 300": Shape(20_000, 300),
    "200,000 x 50": Shape(200_000, 50),
    "1,000,000 x 5": Shape(1_000_000, 5),
    "20,000 x 20,000 sparse": Shape(20_000, 20_000, 0.002),
    "100,000 x 1,000 sparse": Shape(100_000, 1_000, 0.02),
}
LINEAR_PROBLEMS: list[dict[str, Any]] = [
    {"loss": "squared_hinge", "C": 100.0},
    {"loss": "hinge", "C": 100.0},
    {"C": np.inf},
    {"loss": "hinge", "C": 1.0, "p": 1, "norm_power": 1},
    {"loss": "hinge", "C": 1.0, "p": np.inf, "norm_power": 1},
    {"C": np.inf, "p": 3},
]
KERNEL_SHAPES = {"1,500 x 10": Shape(1_500, 10), "20,000 x 10": Shape(20_000, 10)}
KERNEL_PROBLEMS: list[dict[str, Any]] = [
    {"loss": "squared_hinge", "C": 100.0},
    {"loss": "hinge", "C": 1e4},
    {"C": np.inf},
]


@dataclass(frozen=True)
class Problem:
    """One of the 60 problems: rows, and an estimator with the parameters of the problem."""

    name: str
    shape: Shape
    estimator: Any
    algorithms: Sequence[str]


@dataclass(frozen=True)
class Stop:
    """One measured stop.

    Attributes
    ----------
    problem, algorithm, order : str
    elapsed : float
        Seconds from the beginning of the fit to its end.
    wait : float
        Seconds until the order is given: to the next call of a callback.
    late : float
        Seconds from the order to the end.
    status : str
    """

    problem: str
    algorithm: str
    order: str
    elapsed: float
    wait: float
    late: float
    status: str

    @property
    def allowed(self) -> float:
        """Seconds that this stop may take."""
        return ALLOWED[0] + ALLOWED[1] * self.elapsed


def problems() -> Iterator[Problem]:
    """Yield the 60 problems."""
    for (name, shape), parameters in product(LINEAR_SHAPES.items(), LINEAR_PROBLEMS):
        estimator = MaxMarginClassifier(tol=1e-15, max_iter=10**9, random_state=0, **parameters)
        yield Problem(f"{name}, {_words(parameters)}", shape, estimator, ("auto", *ALGORITHMS))
    for (name, shape), parameters in product(KERNEL_SHAPES.items(), KERNEL_PROBLEMS):
        estimator = KernelMaxMarginClassifier(tol=1e-15, max_iter=10**9, random_state=0, **parameters)
        yield Problem(f"{name} rbf, {_words(parameters)}", shape, estimator, ("auto", *KERNEL_ALGORITHMS))


def _words(parameters: dict[str, Any]) -> str:
    return " ".join(
        str(value) if name == "loss" else f"{name}={value:g}" for name, value in parameters.items()
    )


def stop_of(problem: Problem, rows: Rows, algorithm: str, order: str, seconds: float) -> Stop | None:
    """Fit, order the fit to stop after these seconds; None if it ended before, or does not solve the problem."""
    ordered: list[float] = []
    model = clone(problem.estimator).set_params(algorithm=algorithm)
    begin = time.perf_counter()
    act: Callable[[], Any] = {
        "max_time": lambda: model.set_params(max_time=seconds),
        "Ctrl-C": lambda: _press_after(seconds, ordered),
        "callback": lambda: model.set_params(callback=_true_after(begin + seconds, ordered)),
    }[order]
    timer = act()
    try:
        model.fit(*rows)
    except KeyboardInterrupt:
        pass
    except ValueError:
        return None
    finally:
        end = time.perf_counter()
        if order == "Ctrl-C":
            timer.cancel()
            timer.join()
    if order == "max_time":
        ordered.append(begin + seconds)
    if not ordered or end < ordered[0] or str(model.status_) not in ("MAX_TIME", "INTERRUPTED"):
        return None
    wait = ordered[0] - begin - seconds
    return Stop(problem.name, algorithm, order, end - begin, wait, end - ordered[0], str(model.status_))


def _press_after(seconds: float, ordered: list[float]) -> threading.Timer:
    """Press Ctrl-C after these seconds, and note the time."""

    def press() -> None:
        ordered.append(time.perf_counter())
        os.kill(os.getpid(), signal.SIGINT)

    timer = threading.Timer(seconds, press)
    timer.start()
    return timer


def _true_after(when: float, ordered: list[float]) -> Callable[[Any], bool]:
    """Return a callback that is true from this reading of the clock on, and notes the first such call."""

    def callback(report: Any) -> bool:
        now = time.perf_counter()
        if now >= when and not ordered:
            ordered.append(now)
        return now >= when

    return callback


def measured(chosen: Sequence[Problem], seconds: float, orders: Sequence[str]) -> list[Stop]:
    """Return the stops of all algorithms on these problems."""
    stops: list[Stop] = []
    for problem in chosen:
        rows = problem.shape.rows()
        few = replace(problem.shape, n=30, d=20).rows()
        for algorithm in problem.algorithms:
            try:  # compiles, which may take more than 9 s where no compiled code is stored
                clone(problem.estimator).set_params(algorithm=algorithm, max_iter=2, max_time=60.0).fit(*few)
            except ValueError:
                continue
            for order in orders:
                stop = stop_of(problem, rows, algorithm, order, seconds)
                if stop is not None:
                    stops.append(stop)
                    late = " LATE" if stop.late > stop.allowed else ""
                    numbers = f"{stop.late:.3f} s after {stop.wait:.3f} s{late}"
                    print(f"{stop.problem}: {algorithm}, {order}: {numbers}", flush=True)
    return stops


ABOUT = """
A fit that `max_time`, Ctrl-C or its callback stops ends with the best model so far. The table has the time from the
order to the end of `fit`, with the certificate. At most 0.5 s and 5 % of the elapsed time are allowed. A callback is
called after each round, and a few times a second within long ones; its time begins with the call that returns True.
*wait* is the time to that call from the moment from which on it returns True. Compiled code is loaded before.
60 problems: 9 shapes of linear problems with 6 objectives, 2 of kernels with 3; all algorithms that solve them, and the
default, but for fits that end before the order.
"""
HEAD = ("order", "stops", "median s", "largest s", "later than allowed", "median wait s", "largest wait s")


def page_of(stops: Sequence[Stop], command: str) -> str:
    """Return the page."""
    groups = {(order,): [one for one in stops if one.order == order] for order in ORDERS}

    def cells(group: Sequence[Stop]) -> list[str]:
        late = [one.late for one in group]
        count = sum(one.late > one.allowed for one in group)
        waits = [one.wait for one in group]
        numbers = [f"{np.median(late):.3f}", f"{max(late):.2f}", str(count)]
        return [str(len(group)), *numbers, f"{np.median(waits):.3f}", f"{max(waits):.2f}"]

    top = summary(HEAD, {key: group for key, group in groups.items() if group}, cells)
    slowest = sorted(stops, key=lambda one: one.allowed - one.late)[:40]
    lines = [
        [one.problem, one.algorithm, one.order, f"{one.late:.3f}", f"{one.wait:.3f}", f"{one.elapsed:.2f}"]
        for one in slowest
    ]
    sections = {
        "The 40 latest stops": table(
            ("problem", "algorithm", "order", "late s", "wait s", "elapsed s"), lines
        ),
        "Versions": system("maxmargin", "numpy", "scipy", "numba", "scikit-learn"),
    }
    return page("Stops", ABOUT, top, command, sections)


def main(arguments: list[str] | None = None) -> int:
    """Measure and print; with --write into `docs/measurements/stopping.md`."""
    parser = page_parser("stopping", __doc__, PAGE)
    parser.add_argument("--seconds", type=float, default=SECONDS, help="from the beginning to the order")
    parser.add_argument("--only", default="", help="part of the names of problems")
    parser.add_argument("--orders", nargs="*", default=ORDERS)
    options = parser.parse_args(arguments)
    signal.signal(signal.SIGINT, signal.default_int_handler)
    chosen = [one for one in problems() if options.only in one.name]
    with threadpool_limits(1):
        stops = measured(chosen, options.seconds, options.orders)
    deliver(page_of(stops, as_typed("stopping", arguments)), PAGE if options.write else None)
    return 0


if __name__ == "__main__":
    sys.exit(main())
