"""Largest inf-norm margin: seconds to a certified 1 %, against HiGHS on the same linear program; features found.

`python -m benchmarks.norms`.
"""

from __future__ import annotations

import sys
import time
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp
from scipy.optimize import linprog
from sklearn.datasets import load_svmlight_file
from sklearn.linear_model import LogisticRegression
from sklearn.svm import LinearSVC
from threadpoolctl import threadpool_limits

from maxmargin import MaxMarginClassifier

from .datasets import _path, relevant
from .page import deliver, grouped, page, page_parser, summary, system, table

PAGE = Path(__file__).parents[1] / "docs" / "measurements" / "norms.md"
TOL = 0.01
METHODS = ("highs-ds", "highs-ipm")
LARGE_C = 1e3  # values of C of the peers with a soft margin


@dataclass(frozen=True)
class Set:
    """Separable data set.

    Attributes
    ----------
    name : str
    X : ndarray or CSR matrix of shape (n, d)
    y : ndarray of shape (n,), entries -1.0 and 1.0
    relevant : ndarray of int or None
        The columns that determine the labels, where they are known.
    goal : float
        Goal: smallest ratio of the time of HiGHS to the time of maxmargin.
    """

    name: str
    X: Any
    y: np.ndarray
    relevant: np.ndarray | None
    goal: float


@dataclass(frozen=True)
class Found:
    """Result of a learner: time, margin and weights.

    Attributes
    ----------
    learner : str
    seconds : float
    margin : float
        min y_i (w.x_i + b) / |w|_1 with the best b for w, computed by the judge.
    w : ndarray of shape (d,)
    ended : bool
        Whether the learner ended without a time limit.
    """

    learner: str
    seconds: float
    margin: float
    w: np.ndarray
    ended: bool = True

    @property
    def used(self) -> np.ndarray:
        """Columns with a weight above rounding."""
        return np.flatnonzero(np.abs(self.w) > 1e-9 * np.abs(self.w).max(initial=0.0))


def sets() -> list[Set]:
    """Return the data sets of the comparison."""
    out = []
    for name, file in (("arcene", "arcene/arcene_train.svm.gz"), ("prostate", "prostate/prostate.svm.gz")):
        X, y = load_svmlight_file(str(_path(file)))
        out.append(Set(name, np.ascontiguousarray(X.toarray()), np.where(y > 0, 1.0, -1.0), None, 1.0))
    made, places = relevant()
    return [*out, Set(made.name, made.X, made.y, places, 5.0)]


def judged(X: Any, y: np.ndarray, w: np.ndarray, order: float = 1) -> float:
    """Return the margin of w in the norm of this order, with the best intercept, by code that no learner uses."""
    z, length = X @ w, float(np.linalg.norm(w, order))
    return 0.5 * float(z[y > 0].min() - z[y < 0].max()) / length if length > 0.0 else -np.inf


def bound(X: Any, y: np.ndarray, alpha: np.ndarray, order: float = np.inf) -> float:
    """Return an upper bound on every margin in the norm of this order, from dual variables of both classes."""
    parts = [alpha * (y > 0), alpha * (y < 0)]
    apart = X.T @ (parts[0] / parts[0].sum() - parts[1] / parts[1].sum())
    return 0.5 * float(np.linalg.norm(apart, order))


def ours(data: Set) -> tuple[Found, float]:
    """Fit MaxMarginClassifier with default settings and tol 1 %; return the result and its upper bound."""
    clf = MaxMarginClassifier(C=np.inf, p=np.inf, tol=TOL, random_state=0)
    begin = time.perf_counter()
    clf.fit(data.X, data.y)
    seconds = time.perf_counter() - begin
    certificate: Any = clf.certificate_
    alpha = np.zeros(data.y.size)
    alpha[certificate.support] = certificate.dual
    w = clf.coef_.ravel()
    return Found("maxmargin, certified to 1 %", seconds, judged(data.X, data.y, w), w), bound(
        data.X, data.y, alpha
    )


def highs(data: Set, method: str, limit: float) -> Found:
    """Minimise |w|_1 with all margins at least 1, by HiGHS. The time to build the matrix is not counted."""
    n, d = data.X.shape
    A = sp.csr_matrix(data.X).multiply(data.y[:, None])
    G: Any = -sp.hstack([A, -A, sp.csr_matrix(data.y[:, None])], format="csc")
    cost = np.append(np.ones(2 * d), 0.0)
    bounds = [(0.0, None)] * (2 * d) + [(None, None)]
    begin = time.perf_counter()
    result = linprog(
        cost, A_ub=G, b_ub=-np.ones(n), bounds=bounds, method=method, options={"time_limit": limit}
    )
    seconds = time.perf_counter() - begin
    w = np.zeros(d) if result.x is None else result.x[:d] - result.x[d : 2 * d]
    return Found(f"HiGHS, {method}", seconds, judged(data.X, data.y, w), w, result.status == 0)


def sparse_peers(data: Set) -> list[Found]:
    """Return scikit-learn's classifiers with an L1 penalty, which select features."""
    models: dict[str, Callable[[], Any]] = {
        f'LinearSVC(penalty="l1", C={LARGE_C:g})': lambda: LinearSVC(
            penalty="l1", dual=False, C=LARGE_C, random_state=0
        ),
        'LinearSVC(penalty="l1")': lambda: LinearSVC(penalty="l1", dual=False, random_state=0),
        'LogisticRegression(penalty="l1")': lambda: LogisticRegression(
            l1_ratio=1.0, solver="liblinear", random_state=0
        ),
    }
    found = []
    for name, make in models.items():
        model = make()
        begin = time.perf_counter()
        model.fit(data.X, data.y)
        seconds = time.perf_counter() - begin
        w = model.coef_.ravel()
        found.append(Found(name, seconds, judged(data.X, data.y, w), w))
    return found


def measure(data: Set, repeats: int, limit: float) -> tuple[list[list[Found]], float]:
    """Fit all learners, maxmargin and HiGHS in turn; return the results and the smallest upper bound."""
    turns, least = [], np.inf
    for turn in range(repeats):
        mine, upper = ours(data)
        least = min(least, upper)
        peers = [highs(data, method, limit) for method in METHODS]
        turns.append([mine, *peers, *(sparse_peers(data) if turn == 0 else [])])
    return turns, least


def lines(data: Set, turns: list[list[Found]], upper: float) -> list[list[str]]:
    """Return the rows of the table of the page."""
    out = []
    for k, first in enumerate(turns[0]):
        rows = [turn[k] for turn in turns if k < len(turn)]
        seconds = float(np.median([row.seconds for row in rows]))
        ratio = float(
            np.median([row.seconds / turn[0].seconds for row, turn in zip(rows, turns, strict=False)])
        )
        kept = (
            ""
            if data.relevant is None
            else f"{np.isin(data.relevant, first.used).sum()} of {data.relevant.size}"
        )
        late = "" if first.ended else "more than "
        out.append(
            [
                data.name,
                first.learner,
                f"{late}{seconds:.3g}",
                f"{late}{ratio:.1f}",
                f"{first.margin / upper:.4f}",
                str(first.used.size),
                kept,
            ]
        )
    return out


def document(repeats: int, limit: float) -> str:
    """Measure, and return the page."""
    rows, verdicts = [], []
    with threadpool_limits(limits=1), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        MaxMarginClassifier(C=np.inf, p=np.inf).fit(
            [[0.0], [1.0]], [0, 1]
        )  # loads or compiles the machine code
        for data in sets():
            turns, upper = measure(data, repeats, limit)
            rows += lines(data, turns, upper)
            best = [
                min(found.seconds for found in turn[1 : 1 + len(METHODS)]) / turn[0].seconds for turn in turns
            ]
            ratio, share = float(np.median(best)), turns[0][0].margin / upper
            met = ratio >= data.goal and share >= 1.0 - TOL
            verdicts.append(
                f"* {data.name}: {ratio:.1f} times as fast as the faster HiGHS method (goal: {data.goal:g}), "
                f"{'met' if met else 'not met'}."
            )
    return page_of(rows, verdicts, repeats, limit, system("maxmargin", "numpy", "scipy", "scikit-learn"))


def page_of(
    rows: Sequence[Sequence[str]], verdicts: Sequence[str], repeats: int, limit: float, packages: str
) -> str:
    """Return the page for the lines of the table and the verdicts."""
    head = [
        "data", "learner", "seconds", "time / maxmargin", "share of the bound", "columns used", "relevant found"
    ]  # fmt: skip
    sections = {
        "How time is measured": _METHOD.format(repeats=repeats, limit=limit),
        "Goals": "\n".join(verdicts),
        "All learners": f"{table(head, rows)}\n\n{_DATA}",
        "Versions": packages,
    }
    title = "The largest margin in the inf-norm"
    return page(title, _ABOUT, best(rows), "python -m benchmarks.norms --write", sections)


def best(rows: Sequence[Sequence[str]]) -> str:
    """Return the summary table: times of the peers divided by maxmargin, and the margins of L1 penalties."""

    def cells(some: Sequence[Sequence[str]]) -> list[str]:
        exact = [row for row in some if row[1].startswith("HiGHS")]
        others = [row for row in some[1:] if row not in exact]
        shares = [float(row[4]) for row in others]
        times = [row[3] for row in (*exact, *others)]
        return [some[0][2], *times, f"{min(shares):.2f} to {max(shares):.2f}"]

    peers = list(dict.fromkeys(row[1] for row in rows if not row[1].startswith("maxmargin")))
    head = ["data", "maxmargin, s", *peers, "share of the bound, L1 penalties"]
    return summary(head, grouped(rows, lambda row: (row[0],)), cells)


_ABOUT = """\
`MaxMarginClassifier(C=inf, p=inf, tol=0.01)` is compared with HiGHS, which solves the same linear program, and with
classifiers with an L1 penalty, which solve another problem. A number is the time of the peer divided by ours; below 1,
maxmargin is slower. The last column is the margin of the L1 penalties, divided by the proved upper bound.
"""

_METHOD = """\
The linear program is min |w|_1 with all margins at least 1, on all rows and columns. HiGHS has no relative gap for
linear programs, so it runs to its optimum, or at most {limit:g} s. The time to build its matrix is not counted. Both
are timed in {repeats} turns. The table shows medians of the seconds, and medians of the ratios within a turn.

The share of the bound is the margin of a learner divided by the smallest upper bound that dual variables prove. The
benchmark computes every margin in the same way, with the best intercept. A negative margin separates nothing.
"""

_DATA = """\
arcene is 100 x 10,000 and prostate 102 x 12,600, both dense. The generated set is 20,000 x 5,000 with 50 entries in
each row, and 20 of its columns determine the labels."""


def main(arguments: list[str] | None = None) -> int:
    """Measure and print; with --write into `docs/measurements/norms.md`."""
    parser = page_parser("norms", __doc__, PAGE)
    parser.add_argument("--repeats", type=int, default=3, help="turns")
    parser.add_argument("--limit", type=float, default=300.0, help="seconds after which HiGHS is given up")
    options = parser.parse_args(arguments)
    text = document(options.repeats, options.limit)
    deliver(text, PAGE if options.write else None)
    return 0


if __name__ == "__main__":
    sys.exit(main())
