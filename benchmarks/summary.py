"""Six comparisons with scikit-learn at the same accuracy: the table of the README.

`python -m benchmarks.summary [--write]`. Each row times both sides in one process and thread, in turn. A peer counts at
the loosest tolerance with which its true excess over the optimum is at most 1e-3. The objective is computed here, from
the data, and the lower bound of the optimum from the dual variables of maxmargin, for both sides.
"""

from __future__ import annotations

import sys
import time
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.linear_model import SGDClassifier
from sklearn.svm import SVC, LinearSVC
from threadpoolctl import threadpool_limits

from maxmargin import MaxMarginClassifier, OnlineMarginClassifier

from . import kernels
from .datasets import adult, pcmac
from .kernel_sets import sets
from .page import table
from .unscaled import unequal

README = Path(__file__).parents[1] / "README.md"
MARKS = ("<!-- summary -->", "<!-- end of summary -->")
TOL = 1e-3
REPEATS = 3
LADDER = (1e-1, 3e-2, 1e-2, 3e-3, 1e-3, 3e-4, 1e-4, 1e-5, 1e-6)  # tolerances of a peer, tried in this order
MAX_SECONDS = 10.0  # of one fit of a peer, after which no smaller tolerance is tried
MAX_ITER = 5000  # of a peer: five times its default
BATCH = 1000  # rows of one call of partial_fit


@dataclass(frozen=True)
class Row:
    """One comparison: the problem, the peer, the seconds of both, and the excess of the peer over the optimum."""

    problem: str
    peer: str
    ours: float
    theirs: float
    excess: float | None = None


def timed(run: Callable[[], Any]) -> tuple[float, Any]:
    """Return the thread time of a call, and its result."""
    begin = time.thread_time()
    result = run()
    return time.thread_time() - begin, result


def linear(name: str, X: Any, y: np.ndarray, C: float, loss: str, l1: bool = False) -> Row:
    """Compare with LinearSVC without an intercept; with `l1` the penalty is the sum of |w_j|."""
    y = np.where(y > 0.0, 1.0, -1.0)
    norm = {"p": np.inf, "norm_power": 1} if l1 else {}
    peer = {"penalty": "l1", "dual": False} if l1 else {"dual": "auto"}

    def ours() -> MaxMarginClassifier:
        return MaxMarginClassifier(C, loss=loss, tol=TOL, fit_intercept=False, random_state=0, **norm).fit(
            X, y
        )

    def theirs(tol: float) -> LinearSVC:
        model = LinearSVC(
            C=C, loss=loss, tol=tol, fit_intercept=False, max_iter=MAX_ITER, random_state=0, **peer
        )
        return model.fit(X, y)

    def primal(w: np.ndarray) -> float:
        slack = np.maximum(0.0, 1.0 - y * (X @ w))
        size = np.abs(w).sum() if l1 else 0.5 * w @ w
        return float(size + C * (slack if loss == "hinge" else slack**2).sum())

    certificate: Any = ours().certificate_
    alpha = np.zeros(y.size)
    alpha[certificate.support] = certificate.dual
    v = X.T @ (alpha * y)
    alpha /= max(1.0, np.abs(v).max()) if l1 else 1.0
    lower = (
        alpha.sum()
        - (0.0 if loss == "hinge" else (alpha**2).sum() / (4.0 * C))
        - (0.0 if l1 else 0.5 * v @ v)
    )

    for tol in LADDER:
        seconds, model = timed(lambda tol=tol: theirs(tol))
        excess = primal(model.coef_.ravel()) / lower - 1.0
        if excess <= TOL or seconds > MAX_SECONDS:
            break
    pairs = [(timed(ours)[0], timed(lambda: theirs(tol))[0]) for _ in range(REPEATS if seconds < 5.0 else 1)]
    mine, other = np.median(pairs, axis=0)
    return Row(name, 'LinearSVC(penalty="l1")' if l1 else "LinearSVC", mine, other, excess)


def kernel(name: str, data: Any) -> Row:
    """Compare the fits of a Gaussian kernel with SVC."""
    kernels.ours(data)
    mine = np.median([kernels.ours(data).seconds for _ in range(REPEATS)])
    for tol in LADDER:
        fit = kernels.svc(data, tol, SVC)
        if fit.gap <= TOL:
            break
    return Row(name, "SVC", float(mine), fit.seconds, fit.gap)


def stream(name: str, n: int = 200_000, d: int = 50) -> Row:
    """Compare one pass of partial_fit with SGDClassifier; a stream has no certified optimum."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((n, d))
    y = np.where(X @ rng.standard_normal(d) + 2.0 * rng.standard_normal(n) > 0.0, 1, -1)

    def one_pass(model: Any) -> None:
        for first in range(0, n, BATCH):
            model.partial_fit(X[first : first + BATCH], y[first : first + BATCH], classes=[-1, 1])

    one_pass(OnlineMarginClassifier())
    pairs = [
        (timed(lambda: one_pass(OnlineMarginClassifier()))[0], timed(lambda: one_pass(SGDClassifier()))[0])
        for _ in range(REPEATS)
    ]
    mine, other = np.median(pairs, axis=0)
    return Row(name, "SGDClassifier", mine, other)


def rows() -> Iterator[Row]:
    """Yield the six comparisons."""
    text = pcmac()
    yield linear("text, 1,943 x 3,289, hinge", text.X, text.y, 1.0, "hinge")
    yield linear("the same text, sparse weights", text.X, text.y, 1.0, "squared_hinge", l1=True)
    data = adult()
    yield linear("adult, 32,561 x 123, hinge", data.X, data.y, 1.0, "hinge")
    yield linear("columns of unequal scale, 20,000 x 20, hinge", *unequal(20_000, 20), 1.0, "hinge")
    yield kernel("digits, 7,291 x 256, Gaussian kernel", sets()["usps-ovo"]())
    yield stream("one pass over 200,000 x 50")


def lines(row: Row) -> list[str]:
    """Return the cells of a row; a ratio below 1 means that maxmargin is faster."""
    reached = row.excess is None or row.excess <= TOL
    ratio = f"{float(f'{row.ours / row.theirs:.2g}'):g}"
    return [
        row.problem,
        f"`{row.peer}`",
        f"{row.theirs:.3g} s" + ("" if reached else f" (excess {row.excess:.1g})"),
        f"{row.ours:.3g} s",
        f"**{ratio}**" if row.ours < row.theirs else ratio,
    ]


def main(arguments: list[str]) -> int:
    """Print the table, and write it into the README with `--write`."""
    with threadpool_limits(1), warnings.catch_warnings():
        warnings.simplefilter("ignore")  # peers warn when they stop early; the true excess measures the same
        found = []
        for row in rows():
            found.append(lines(row))
            print(*found[-1], sep="   ", flush=True)
    text = table(["problem", "peer", "its time", "maxmargin", "ratio"], found)
    print(text)
    if "--write" in arguments:
        page = README.read_text(encoding="utf-8")
        head, _, rest = page.partition(MARKS[0])
        _, _, tail = rest.partition(MARKS[1])
        README.write_text(f"{head}{MARKS[0]}\n\n{text}\n\n{MARKS[1]}{tail}", encoding="utf-8")
    return 0


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
