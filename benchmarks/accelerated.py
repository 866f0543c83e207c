"""The accelerated method: passes to a certified gap of the hard margin, beside PUMMA, IMA, ALMA, smoothed Perceptron.

`python -m benchmarks.accelerated`.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache, partial
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.datasets import load_svmlight_file
from threadpoolctl import threadpool_limits

from maxmargin import ALMA, IMA, PUMMA, AcceleratedGradient
from maxmargin.algorithms.bounds import accelerated_steps
from maxmargin.algorithms.normalised.patterns import NormalisedRows
from maxmargin.algorithms.normalised.smoothed import smoothed_perceptron
from maxmargin.estimators.linear import WithoutExactStep
from maxmargin.numerics.norms import row_norms

from .datasets import _path
from .page import as_typed, deliver, grouped, page, page_parser, system, table

PAGE = Path(__file__).parents[1] / "docs" / "measurements" / "accelerated.md"
GAPS = (0.1, 0.01, 0.001)
NORMS = (2.0, 4.0, 8.0, "log")
# Passes and seconds of processor time after which a run ends: the limit of passes is reached first, except by methods
# whose passes over sparse rows are slow.
MOST_PASSES, MOST_SECONDS = 10_000, 8.0
METHODS = ("accelerated", "PUMMA", "IMA", "ALMA", "smoothed Perceptron")


def gaussian() -> tuple[Any, np.ndarray]:
    """Return 1500 x 50 standard normal rows, moved by 0.28 away from a plane through 0: R / gamma is 30 at p = 2."""
    rng = np.random.default_rng(0)
    X, u = rng.normal(size=(1500, 50)), rng.normal(size=50)
    u /= np.linalg.norm(u)
    y = np.where(X @ u > 0.0, 1.0, -1.0)
    return X + 0.28 * np.outer(y, u), y


def _file(name: str, positive: float) -> tuple[Any, np.ndarray]:
    X, labels = load_svmlight_file(str(_path(name)))
    dense = X.nnz > 0.5 * X.shape[0] * X.shape[1]
    return X.toarray() if dense else X.tocsr(), np.where(labels == positive, 1.0, -1.0)


SETS: dict[str, Callable[[], tuple[Any, np.ndarray]]] = {
    "Gaussian, 1,500 x 50": cache(gaussian),
    "sonar, 104 x 60": cache(partial(_file, "sonar/sonar-aspect.train.svm.gz", 1.0)),
    "mushrooms, 8,124 x 112": cache(partial(_file, "mushrooms/mushrooms.gz", 2.0)),
}


@dataclass(frozen=True)
class Cell:
    """Run of a method to a gap.

    Attributes
    ----------
    data, method : str
    p : float or "log"
    gap : float
        The gap at which the run ends.
    passes, seconds : float
    reached : float
        The certified gap at the end.
    ended : bool
        Whether the gap was reached within the limits.
    """

    data: str
    method: str
    p: Any
    gap: float
    passes: float
    seconds: float
    reached: float
    ended: bool

    @property
    def text(self) -> str:
        """The passes; where the gap was not reached, the gap at the end in brackets."""
        return f"{self.passes:,.0f}" if self.ended else f"({self.reached:.2g})"


def label(p: Any) -> str:
    """Return p for a table."""
    return "2 ln d" if p == "log" else f"{p:g}"


def exponent(p: Any, d: int) -> float:
    """Return p as a number; "log" is max(2, 2 ln d)."""
    return max(2.0, 2.0 * np.log(d)) if p == "log" else float(p)


def fitted(name: str, method: str, p: Any, gap: float, algorithm: Any) -> Cell:
    """Run an algorithm of the registry; presentations include those of the evaluations."""
    X, y = SETS[name]()
    options: dict[str, Any] = {
        "p": p,
        "tol": gap,
        "max_iter": 3,
        "random_state": 0,
    }
    if method == "ALMA":
        options |= {
            "intercept": "augmented",
            "intercept_scaling": float(row_norms(X, exponent(p, X.shape[1])).max()),
        }
    model = WithoutExactStep(np.inf, algorithm=algorithm, **options)
    model.fit(X, y)  # compiles
    begin = time.process_time()

    def spent(report: Any) -> bool:
        return report.presentations > MOST_PASSES * y.size or time.process_time() - begin > MOST_SECONDS

    model.set_params(max_iter=10**9, callback=spent).fit(X, y)
    seconds = time.process_time() - begin
    certificate: Any = model.certificate_
    passes = model.history_[-1].presentations / y.size
    return Cell(name, method, p, gap, passes, seconds, certificate.gap, certificate.gap <= gap)


def smoothed(name: str, gap: float) -> Cell:
    """Run the smoothed Perceptron on normalised patterns with a constant feature of their largest length."""
    X, y = SETS[name]()
    patterns = NormalisedRows(X, y, constant=float(row_norms(X, 2.0).max()))
    begin, lower, upper, passes = time.process_time(), -np.inf, np.inf, 0

    def open_gap() -> float:
        return 1.0 - lower / upper if lower > 0.0 else np.inf

    for iterate in islice(smoothed_perceptron(patterns), MOST_PASSES):
        lower, upper, passes = max(lower, iterate.lower), min(upper, iterate.upper), iterate.step + 2
        if open_gap() <= gap:
            break
    reached = open_gap()
    return Cell(name, METHODS[-1], 2.0, gap, passes, time.process_time() - begin, reached, reached <= gap)


def measure(name: str, method: str, p: Any, gap: float) -> Cell:
    """Return the run with the fewest passes; ALMA has several values of alpha, of which each runs to the limit."""
    if method == METHODS[-1]:
        return smoothed(name, gap)
    rules: dict[str, list[Any]] = {
        "accelerated": [AcceleratedGradient()],
        "PUMMA": [PUMMA()],
        "IMA": [IMA()],
        "ALMA": [ALMA(alpha=alpha) for alpha in (gap**0.5, gap**0.5 / 3.0)],
    }
    cells = [fitted(name, method, p, gap, rule) for rule in rules[method]]
    return min(cells, key=lambda cell: (not cell.ended, cell.passes if cell.ended else cell.reached))


def cells_of(name: str) -> list[Cell]:
    """Return the runs on a set; after a gap that is not reached, no smaller one is tried."""
    found = []
    for p in NORMS:
        for method in METHODS if p == 2.0 else METHODS[:-1]:
            for gap in GAPS:
                cell = measure(name, method, p, gap)
                found.append(cell)
                print(cell, file=sys.stderr, flush=True)
                if not cell.ended:
                    break
    return found


def theorem_row(name: str) -> list[str]:
    """Return R / gamma and the bound of the steps to 1 %, for each norm."""
    X, y = SETS[name]()
    row = [name]
    for p in NORMS:
        number = exponent(p, X.shape[1])
        model = WithoutExactStep(
            np.inf, p=number, algorithm="accelerated", tol=0.01, max_iter=10**6, max_time=30.0
        )
        margin = model.fit(X, y).certificate_.lower  # pyright: ignore
        R, steps = float(row_norms(X, number).max()), model.history_[-1].steps
        bound = accelerated_steps(R, margin, 0.01, y.size, number)
        row.append(f"{R / margin:.0f}: {steps:,} of {bound:,.0f}")
    return row


def document(names: list[str], command: str) -> str:
    """Measure, and return the page."""
    cells = [cell for name in names for cell in cells_of(name)]

    def line(some: Any) -> list[str]:
        of = {method: [cell.text for cell in some if cell.method == method] for method in METHODS}
        return [" / ".join(of[method]) for method in METHODS]

    groups = grouped(cells, lambda cell: (cell.data, label(cell.p)))
    lines = [[*key, *line(group)] for key, group in groups.items()]
    head = ["data", "p", *METHODS]
    top = table(head, [one for one in lines if one[1] in (label(NORMS[0]), label(NORMS[-1]))])
    columns = ["data", "p", "method", "gap asked for", "certified gap", "passes", "seconds"]
    every = [
        [
            one.data,
            label(one.p),
            one.method,
            f"{one.gap:g}",
            f"{one.reached:.2g}",
            f"{one.passes:,.0f}",
            f"{one.seconds:.2g}",
        ]
        for one in cells
    ]
    sections = {
        "All norms": table(head, lines),
        "How passes are counted": _METHOD.format(passes=MOST_PASSES, seconds=MOST_SECONDS),
        "Steps and the theorem": _THEOREM
        + table(["data", *(f"p = {label(p)}" for p in NORMS)], map(theorem_row, names)),
        "All runs": table(columns, every),
        "Versions": system("maxmargin", "numpy", "scipy", "scikit-learn"),
    }
    return page("The accelerated method for hard margins", _ABOUT, top, command, sections)


_ABOUT = """\
The passes over the rows until [the accelerated method](../algorithm/accelerated) certifies a gap of 10 % / 1 % / 0.1 %,
beside PUMMA, IMA, ALMA and the smoothed Perceptron. In brackets: the gap at the end, where it was not reached.
"""

_METHOD = """\
A pass is n presentations of rows, those of the evaluations of bounds included. A step of the accelerated method, or of
the smoothed Perceptron, is one pass: a product with the rows and one with their transpose; steps that are repeated
count as passes. Passes of PUMMA and IMA over their active sets count by the number of rows. Each gap is a run of its
own, of at most {passes:,} passes or {seconds:g} s of processor time. After a gap that is not reached, no smaller one is
tried. PUMMA and IMA have their default parameters, ALMA the better of the accuracies alpha = sqrt(gap) and
sqrt(gap) / 3, which its user does not know. The gap of ALMA falls by jumps, as its upper bound becomes good at the end
of a run only.

The intercept is free, except that two methods have none: ALMA solves the problem with a constant feature of the length
of the longest row, whose weight is in the norm; so does the smoothed Perceptron, which also divides each pattern by its
length. These are other problems, with other margins. The smoothed Perceptron exists at p = 2 only, and its bounds are
not certified.
"""

_THEOREM = """\
R / gamma, and the number of steps to 1 % beside the largest number that the theorem allows. The steps are fewer since
their length is found by trial: the smoothness of the dual objective along the path is far less than (p - 1) R^2.

"""


def main(arguments: list[str] | None = None) -> int:
    """Measure and print; with --write into `docs/measurements/accelerated.md`."""
    parser = page_parser("accelerated", __doc__, PAGE)
    parser.add_argument("--sets", nargs="+", choices=list(SETS), default=list(SETS))
    options = parser.parse_args(arguments)
    with threadpool_limits(1):
        text = document(options.sets, as_typed("accelerated", arguments))
    deliver(text, PAGE if options.write else None)
    return 0


if __name__ == "__main__":
    sys.exit(main())
