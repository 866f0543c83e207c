"""Visits of each row, and seconds, on text that is larger than the last cache of a processor.

`python -m benchmarks.large_text`.
"""

from __future__ import annotations

import sys
import time
import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.svm import LinearSVC

from maxmargin import MaxMarginClassifier

from .datasets import Dataset
from .objective import primal
from .page import as_typed, deliver, extent, grouped, page, page_parser, summary, system, table

PAGE = Path(__file__).parents[1] / "docs" / "measurements" / "large_text.md"
LOSSES, INTERCEPTS = ("hinge", "squared_hinge"), ("none", "free", "augmented")
MOST_VISITS = {"hinge": 10.0, "squared_hinge": 15.0}  # goals for a gap of 1e-3 at C = 1
LADDER = (1.0, 0.3, 0.1, 0.03, 0.01)  # tolerances of LinearSVC, loosest first
LIMIT = 30.0  # seconds of a fit of LinearSVC after which no tighter tolerance is tried
MAX_TIME = 60.0  # time limit of a fit of maxmargin, in seconds
# Standard deviation of the noise of the labels in units of that of the scores, exponent of the word frequencies, seed.
RECIPES = {"much noise": (0.5, 1.05, 0), "little noise": (0.1, 1.05, 1), "rare words": (0.5, 0.8, 2)}


@dataclass(frozen=True)
class Fit:
    """Fit of maxmargin: the problem, visits of each row, the most of them between two bounds, seconds, and the end."""

    data: str
    loss: str
    C: float
    intercept: str
    tol: float
    visits: float
    between: float
    seconds: float
    gap: float
    status: str


def text(noise: float, exponent: float, seed: int, n: int, d: int = 100_000, words: int = 17) -> Dataset:
    """Return rows of random words whose frequencies follow Zipf's law, of unit length, with linear noisy labels."""
    rng = np.random.default_rng(seed)
    share = np.cumsum(np.arange(1.0, d + 1.0) ** -exponent)
    columns = np.minimum(np.searchsorted(share / share[-1], rng.random((n, words))), d - 1)
    starts = np.arange(0, n * words + 1, words, dtype=np.int32)
    X = sp.csr_matrix((np.ones(n * words), columns.ravel().astype(np.int32), starts), shape=(n, d))
    X.sum_duplicates()
    X.data = np.log1p(X.data)
    X.data /= np.repeat(np.sqrt(X.multiply(X).sum(axis=1).A1), np.diff(X.indptr))
    score = X @ rng.standard_normal(d)
    return Dataset("", X, np.where(score + noise * score.std() * rng.standard_normal(n) > 0.0, 1.0, -1.0), "")


def fitted(data: Dataset, C: float, loss: str, intercept: str, tol: float) -> tuple[Fit, Any]:
    """Fit once; return what was measured, and the model."""
    own: dict[str, Any] = {"fit_intercept": False} if intercept == "none" else {"intercept": intercept}
    model = MaxMarginClassifier(C, loss=loss, tol=tol, random_state=0, max_time=MAX_TIME, **own)
    begin = time.process_time()
    model.fit(data.X, data.y)
    seconds = time.process_time() - begin
    visits = np.array([0, *(report.presentations for report in model.history_)]) / data.y.size
    between = float(np.diff(visits).max())
    gap, status = model.certificate_.gap, model.status_.value
    return Fit(data.name, loss, C, intercept, tol, float(visits[-1]), between, seconds, gap, status), model


def measure(name: str, n: int) -> Iterator[Fit]:
    """Yield the fits of one recipe: every intercept and two gaps at C = 1; of the first recipe two other C."""
    made = text(*RECIPES[name], n)
    data = Dataset(name, made.X, made.y, "")
    for loss in LOSSES:
        fitted(Dataset("", data.X[:5000], data.y[:5000], ""), 1.0, loss, "free", 1e-3)  # loads compiled code
    others = (0.01, 100.0) if name == next(iter(RECIPES)) else ()
    cases = [
        *product((1.0,), LOSSES, INTERCEPTS, (1e-3, 1e-4)),
        *product(others, LOSSES, ("free",), (1e-3,)),
    ]
    for case in cases:
        fit, _ = fitted(data, *case)
        print(fit, file=sys.stderr, flush=True)
        yield fit


def peer(name: str, n: int, loss: str) -> list[str]:
    """Return the cells of the loosest fit of LinearSVC, at C = 1 without intercept, whose true excess is 1e-3."""
    data = text(*RECIPES[name], n)
    lower = fitted(data, 1.0, loss, "none", 1e-5)[1].certificate_.lower
    cells: list[str] = []
    for tol in LADDER:
        begin = time.process_time()
        model = LinearSVC(loss=loss, fit_intercept=False, tol=tol, max_iter=1000, random_state=0)
        model.fit(data.X, data.y)
        seconds = time.process_time() - begin
        excess = primal(data, 1.0, model.coef_.ravel(), loss) / lower - 1.0
        reached = "yes" if excess <= 1e-3 else "no"
        cells = [name, loss, f"{tol:g}", f"{model.n_iter_}", f"{seconds:.3g} s", f"{excess:.0e}", reached]
        if excess <= 1e-3 or seconds > LIMIT:
            break
    return cells


def document(fits: Sequence[Fit], peers: Sequence[Sequence[str]], n: int, command: str) -> str:
    """Return the page."""

    def cells(some: Sequence[Fit]) -> list[str]:
        goal = MOST_VISITS[some[0].loss]
        met = sum(fit.visits <= goal for fit in some)
        return [
            str(len(some)), extent([fit.visits for fit in some], ".3g"), f"{goal:g}", f"{met} of {len(some)}",
            f"{max(fit.between for fit in some):.2g}", extent([fit.seconds for fit in some], ".2g"),
        ]  # fmt: skip

    first = [fit for fit in fits if fit.C == 1.0 and fit.tol == 1e-3]
    head = ["loss", "intercept", "problems", "visits of a row: median (range)", "goal: at most", "met"]
    head += ["most between bounds", "seconds"]
    top = summary(head, grouped(first, lambda fit: (fit.loss, fit.intercept)), cells)
    rows = [
        [
            fit.data, fit.loss, f"{fit.C:g}", fit.intercept, f"{fit.tol:g}", f"{fit.visits:.1f}",
            f"{fit.between:.1f}", f"{fit.seconds:.3g}", f"{fit.gap:.0e}", fit.status,
        ]
        for fit in fits
    ]  # fmt: skip
    names = [
        "data",
        "loss",
        "C",
        "intercept",
        "gap",
        "visits",
        "most between bounds",
        "seconds",
        "certified",
        "end",
    ]
    theirs = ["data", "loss", "tol", "iterations", "time", "true excess", "1e-3 reached"]
    sections = {
        "How it is measured": _METHOD.format(
            ladder=", ".join(f"{tol:g}" for tol in LADDER), limit=LIMIT, most=MAX_TIME
        ),
        "All fits": table(names, rows),
        "LinearSVC": table(theirs, peers),
        "Versions": system("maxmargin", "numpy", "scipy", "numba", "scikit-learn"),
    }
    return page("Text larger than the cache", _ABOUT.format(n=n), top, command, sections)


_ABOUT = """\
Generated text of {n:,} rows and 100,000 columns, 15 to 17 entries a row (about 190 MB), at C = 1 to a certified gap
of 1e-3. A visit of a row is a step of dual coordinate descent that looks at it, or its share of a pass that computes
bounds. Between two bounds are at most 5 visits of each row on data of this size.
"""

_METHOD = """\
- **Rows** are random words whose frequencies follow Zipf's law, log1p of the counts, divided by their lengths. Labels
  are the signs of linear scores with noise. The recipes differ in the noise, the frequencies and the seed.
- **Seconds** are processor seconds of the whole fit with its certificate, one fit each, at most {most:g} s.
- **LinearSVC** is fitted at C = 1 without intercept, with the tolerances {ladder}, loosest first, until
  its true excess over the certified lower bound is at most 1e-3 or a fit takes more than {limit:g} s. The last fit is
  shown.
"""


def main(arguments: list[str] | None = None) -> int:
    """Measure and print; with --write into `docs/measurements/large_text.md`."""
    parser = page_parser("large_text", __doc__, PAGE)
    parser.add_argument("--recipes", nargs="+", choices=list(RECIPES), default=list(RECIPES))
    parser.add_argument("--rows", type=int, default=1_000_000)
    options = parser.parse_args(arguments)
    with warnings.catch_warnings():
        warnings.simplefilter(
            "ignore"
        )  # LinearSVC warns when it stops early; the true excess measures the same
        fits = [fit for name in options.recipes for fit in measure(name, options.rows)]
        peers = [peer(options.recipes[0], options.rows, loss) for loss in LOSSES]
    text_of_page = document(fits, peers, options.rows, as_typed("large_text", arguments))
    deliver(text_of_page, PAGE if options.write else None)
    return 0


if __name__ == "__main__":
    sys.exit(main())
