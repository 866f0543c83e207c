"""Default settings on data without preprocessing: certified fits, and times beside those of LinearSVC.

`python -m benchmarks.defaults`.
"""

from __future__ import annotations

import sys
import time
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from pathlib import Path

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from sklearn.preprocessing import StandardScaler
from sklearn.svm import LinearSVC
from threadpoolctl import threadpool_limits

from maxmargin import MaxMarginClassifier

from .page import compared, deliver, grouped, page, page_parser, summary, system, table
from .regimes import SEPARABLE
from .unscaled import SETS, Rows

PAGE = Path(__file__).parents[1] / "docs" / "measurements" / "defaults.md"
COSTS = (1e-3, 1.0, 1e3)
LOSSES = ("hinge", "squared_hinge")
WIDE = {name: rows for name, rows in SEPARABLE.items() if name not in SETS}  # the micro-arrays
SCALED = (
    "breast_cancer",
    "digits",
    "iris",
    "wine",
)  # sets that are also measured with columns of mean 0 and variance 1
FEW_COLUMNS, MANY_COLUMNS = "more rows than columns", "micro-arrays"  # kinds of data
MAX_SECONDS = 60.0  # time limit of a fit
MAX_TURNS, TURN_SECONDS = (
    7,
    2.0,
)  # largest number of turns, and seconds of all fits after which no further turn begins


@dataclass(frozen=True)
class Fits:
    """Fits of both estimators with their defaults.

    Attributes
    ----------
    model : MaxMarginClassifier
    peer : LinearSVC
    seconds, peer_seconds : float
        Processor times.
    warned : bool
        Whether the peer warned that it has not converged.
    """

    model: MaxMarginClassifier
    peer: LinearSVC
    seconds: float
    peer_seconds: float
    warned: bool


def both(X: np.ndarray, y: np.ndarray, loss: str, C: float) -> Fits:
    """Fit MaxMarginClassifier and LinearSVC, each with its defaults."""
    begin = time.process_time()
    model = MaxMarginClassifier(C, loss=loss, max_time=MAX_SECONDS).fit(X, y)
    middle = time.process_time()
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        peer = LinearSVC(C=C, loss=loss, random_state=0).fit(X, y)
    end = time.process_time()
    warned = any(issubclass(one.category, ConvergenceWarning) for one in caught)
    return Fits(model, peer, middle - begin, end - middle, warned)


@dataclass(frozen=True)
class Outcome:
    """Results of repeated fits of both estimators.

    Attributes
    ----------
    seconds, peer : float
        Median processor times.
    status : str
    gap : float
        The largest certified gap of all classes.
    stages : str
        The algorithms that were run.
    warned : bool
        Whether the peer warned that it has not converged.
    """

    seconds: float
    peer: float
    status: str
    gap: float
    stages: str
    warned: bool

    @property
    def met(self) -> bool:
        """Whether the fit of maxmargin is certified before the peer ended."""
        return self.status == "CERTIFIED" and self.seconds < self.peer


Found = tuple[tuple[str, str, str], Outcome]


def outcome(X: np.ndarray, y: np.ndarray, loss: str, C: float) -> Outcome:
    """Fit both estimators in turn, repeatedly if the fits are short."""
    fits = [both(X, y, loss, C)]
    while len(fits) < MAX_TURNS and sum(one.seconds + one.peer_seconds for one in fits) < TURN_SECONDS:
        fits.append(both(X, y, loss, C))
    model = fits[-1].model
    gaps = [part.gap for part in model.certificate_.certificates]
    stages = dict.fromkeys(report.stage for report in model.history_)
    return Outcome(
        float(np.median([one.seconds for one in fits])),
        float(np.median([one.peer_seconds for one in fits])),
        model.status_.value,
        max(gaps),
        ", ".join(stages),
        fits[-1].warned,
    )


def lines(
    sets: Mapping[str, Callable[[], Rows]], names: Iterable[str], kind: str, found: list[Found]
) -> Iterator[list[str]]:
    """Yield the lines of a table; append the outcomes to `found`, with the kind of data, the loss and C."""
    for name in names:
        X, y = sets[name]()
        stored = {"": X} | ({" scaled": StandardScaler().fit_transform(X)} if name in SCALED else {})
        for (what, rows), loss, C in product(stored.items(), LOSSES, COSTS):
            one = outcome(rows, y, loss, C)
            found.append(((kind, loss, "all" if kind == MANY_COLUMNS else f"{C:g}"), one))
            line = [
                name + what, f"{X.shape[0]:,} x {X.shape[1]:,}", str(np.unique(y).size), loss, f"{C:g}",
                one.status, f"{one.gap:.0e}", one.stages, f"{1e3 * one.seconds:.1f}",
                f"{1e3 * one.peer:.1f}" + (", warns" if one.warned else ""), "yes" if one.met else "**no**",
            ]  # fmt: skip
            print(" ".join(line), flush=True)
            yield line


def best(found: Sequence[Found]) -> str:
    """Return the summary table: certified fits, and the time of maxmargin beside LinearSVC."""

    def cells(some: Sequence[Found]) -> list[str]:
        outcomes = [one for _, one in some]
        certified = sum(one.status == "CERTIFIED" for one in outcomes)
        rows, ratios, *_ = compared([one.seconds / one.peer for one in outcomes])
        sooner, warned = sum(one.met for one in outcomes), sum(one.warned for one in outcomes)
        return [rows, str(certified), ratios, str(sooner), str(len(outcomes) - sooner), str(warned)]

    head = [
        "data", "loss", "C", "problems", "certified", "ratio: median (range)", "certified sooner", "later",
        "LinearSVC warned",
    ]  # fmt: skip
    return summary(head, grouped(found, lambda one: one[0]), cells, "all")


def document(names: list[str]) -> str:
    """Measure, and return the page."""
    found: list[Found] = []
    with threadpool_limits(limits=1):
        for loss in LOSSES:  # loads or compiles the machine code
            for scale in (1.0, 1e4):
                rng = np.random.default_rng(0)
                X = rng.normal(size=(3000, 3)) * np.array([1.0, scale, 1.0])
                outcome(X, rng.random(3000) < 0.5, loss, 1e3)
        many = list(lines(SETS, [name for name in names if name in SETS], FEW_COLUMNS, found))
        few = list(lines(WIDE, [name for name in names if name in WIDE], MANY_COLUMNS, found))
    return page_of(found, many, few, system("maxmargin", "numpy", "numba", "scikit-learn"))


def page_of(
    found: Sequence[Found], many: Iterable[Iterable[str]], few: Iterable[Iterable[str]], packages: str
) -> str:
    """Return the page for the outcomes and the lines of both tables."""
    head = [
        "data", "size", "classes", "loss", "C", "status", "gap", "algorithms", "ours, ms", "LinearSVC, ms",
        "certified sooner",
    ]  # fmt: skip
    sections = {
        "How time is measured": _METHOD,
        "More rows than columns": table(head, many),
        "Wide rows: micro-arrays": table(head, few),
        "Versions": packages,
    }
    title = "Default settings on data without preprocessing"
    return page(title, _ABOUT, best(found), "python -m benchmarks.defaults --write", sections)


_ABOUT = """\
`MaxMarginClassifier` and `LinearSVC` are fitted with their defaults, except for the loss and C, on data as they come. A
ratio is our time to a certificate divided by the time until `LinearSVC` ends or warns that it has not converged; below
1, maxmargin is faster.
"""

_METHOD = """\
The defaults of `MaxMarginClassifier` are tol = 1e-3 and a free intercept; those of `LinearSVC` are tol = 1e-4, at most
1000 iterations and a penalised intercept. Times are processor times, the median of up to 7 fits of each, in turn.
Compilation is not counted. Rows marked *scaled* have columns of mean 0 and variance 1.
"""


def main(arguments: list[str] | None = None) -> int:
    """Measure and print; with --write into `docs/measurements/defaults.md`."""
    parser = page_parser("defaults", __doc__, PAGE)
    every = [*SETS, *WIDE]
    parser.add_argument("--sets", nargs="+", choices=every, default=every, help="data sets")
    options = parser.parse_args(arguments)
    text = document(options.sets)
    deliver(text, PAGE if options.write else None)
    return 0


if __name__ == "__main__":
    sys.exit(main())
