"""Minimum time of a certified fit, beside the time of peers: lengths of rows, a matrix and a proof per class.

`python -m benchmarks.floor`. If these parts alone take longer than a goal, the goal cannot be reached.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path

import numpy as np
from sklearn.svm import LinearSVC
from threadpoolctl import threadpool_limits

from maxmargin import MaxMarginClassifier, Problem
from maxmargin.algorithms.linear_algebra.centred_rows import centred_rows
from maxmargin.certificates.one_pass import certify
from maxmargin.certificates.sample import Sample
from maxmargin.data.rows import Patterns

from .page import compared, deliver, extent, page, page_parser, summary, system, table
from .regimes import COSTS, FAMILY, SOFT, STEPS, Soft
from .rivals import signs, timed
from .unscaled import SETS

PAGE = Path(__file__).parents[1] / "docs" / "measurements" / "floor.md"
GAP, GOAL = 1e-4, 0.1  # relative gap of the fits, and the goal as a share of liblinear's time
SMALL = (
    "iris",
    "wine",
    "breast_cancer",
    "sonar",
    "ionosphere",
    "heart",
    "german",
    "diabetes",
    "bupa",
    "svmguide1",
)
DEFAULT_TOL = 1e-3  # the default of `tol`
LOW_C = 1e-3  # the C at which LinearSVC is fastest
MIN_FITS, FIT_SECONDS, MAX_FITS = (
    3,
    0.3,
    50,
)  # fits are repeated for FIT_SECONDS; smallest and largest number of fits
PASSES = 300  # limit of passes of liblinear


def median(call: Callable[[], object]) -> float:
    """Return the median processor time of a call, after an uncounted first one."""
    call()
    spent: list[float] = []
    while len(spent) < MIN_FITS or (sum(spent) < FIT_SECONDS and len(spent) < MAX_FITS):
        begin = time.process_time()
        call()
        spent.append(time.process_time() - begin)
    return float(np.median(spent))


def fitted(fit: Callable[[], MaxMarginClassifier]) -> tuple[float, MaxMarginClassifier]:
    """Return the median processor time of a fit, and the model."""
    last: list[MaxMarginClassifier] = []

    def again() -> None:
        last[:] = [fit()]

    return median(again), last[0]


class Floor:
    """Seconds of the parts: the lengths of the rows, and for all classes the matrices of products and the proofs.

    `step` does not belong to the sum: scores and a combination of all rows, once per class. A proof is `certify` at
    the optimum that `model` has found, for this gap.
    """

    def __init__(self, X: np.ndarray, y: np.ndarray, model: MaxMarginClassifier, gap: float) -> None:
        self.lengths = median(lambda: Patterns(X))
        rows = np.column_stack([X, np.ones(len(X))])
        squared = model.loss == "squared_hinge"
        classes = len(model.coef_)
        blocks = centred_rows(
            Problem(model.loss, model.C, intercept="augmented"), np.ascontiguousarray(X, dtype=float)
        )
        z = np.full(blocks.size, 1e-3)
        self.products = classes * median(lambda: rows.T @ rows) if squared else 0.0
        self.step = classes * median(lambda: blocks.combine(blocks.scores(z)))
        self.proofs = sum(self._proofs(X, y, model, gap))

    @staticmethod
    def _proofs(X: np.ndarray, y: np.ndarray, model: MaxMarginClassifier, gap: float) -> Iterator[float]:
        weights = np.ones(len(X))
        whole = Sample(X, weights, weights)

        def prove(problem: Problem, side: np.ndarray, w: np.ndarray, b: float, alpha: np.ndarray) -> None:
            certify(problem, whole.with_labels(side), w, b, alpha, gap)

        parts = zip(signs(y), model.coef_, model.intercept_, model.certificate_.certificates, strict=True)
        for side, w, b, part in parts:
            alpha = np.zeros(len(X))
            alpha[part.support] = part.dual
            yield median(partial(prove, part.problem, side, w, float(b), alpha))

    @property
    def whole(self) -> float:
        """The sum of the parts."""
        return self.lengths + self.products + self.proofs

    @property
    def shown(self) -> list[str]:
        """The parts and their sum in milliseconds, as text."""
        parts = self.lengths, self.products, self.proofs, self.whole
        return [f"{1e3 * part:.3g}" for part in parts]


def newton(problem: Soft) -> float:
    """Return the time of liblinear's Newton method at the loosest tolerance that comes within GAP of the optimum."""
    (rival,) = [one for one in FAMILY if one.name == "liblinear -s 2"]
    fit = rival.make(problem.seen, problem.y, problem.loss, problem.C)
    for tol in STEPS:
        if problem.excess(timed(fit, tol, PASSES, 0).w) <= GAP:
            return median(partial(fit, tol, PASSES, 0))
    return np.inf


def large(names: list[str]) -> Iterator[list[str]]:
    """Yield the lines for the squared hinge on many rows."""
    for name in names:
        X, y = SOFT[name]()
        for C in COSTS[1:]:
            problem = Soft(name, X, y, "squared_hinge", C)
            ours, model = fitted(lambda problem=problem: problem.ours(GAP, 0).fit(problem.X, problem.y))
            floor, theirs = Floor(problem.X, problem.y, model, GAP), newton(problem)
            goal = GOAL * theirs
            yield [
                name, f"{C:g}", f"{1e3 * theirs:.3g}", f"{1e3 * goal:.3g}", *floor.shown, f"{floor.whole / goal:.2g}",
                f"{1e3 * floor.step:.3g}", f"{(floor.whole + floor.step) / goal:.2g}", f"{1e3 * ours:.3g}",
            ]  # fmt: skip


def small() -> Iterator[list[str]]:
    """Yield the lines for both losses on few rows, with default settings."""
    for name in SMALL:
        X, y = SETS[name]()
        for loss in ("hinge", "squared_hinge"):
            ours, model = fitted(lambda loss=loss, X=X, y=y: MaxMarginClassifier(LOW_C, loss=loss).fit(X, y))
            floor = Floor(X, y, model, DEFAULT_TOL)
            theirs = median(
                lambda loss=loss, X=X, y=y: LinearSVC(C=LOW_C, loss=loss, random_state=0, max_iter=10**5).fit(
                    X, y
                )
            )
            yield [
                name, loss, f"{1e3 * theirs:.3g}", *floor.shown, f"{floor.whole / theirs:.2g}", f"{1e3 * ours:.3g}"
            ]  # fmt: skip


def best(many: Sequence[Sequence[str]], few: Sequence[Sequence[str]]) -> str:
    """Return the summary table: the costs of a certificate and the fits of maxmargin, beside the peers."""
    groups: dict[
        tuple[str, ...], list[tuple[float, float, float]]
    ] = {}  # time of the peer, sum of the costs, time of maxmargin
    for line in many:
        times = float(line[2]), float(line[7]), float(line[-1])
        groups.setdefault((line[0], "squared_hinge", f"liblinear -s 2, to {GAP:g}"), []).append(times)
    for line in few:
        times = float(line[2]), float(line[6]), float(line[-1])
        groups.setdefault(("sets of few rows", line[1], "LinearSVC, defaults"), []).append(times)

    def cells(some: Sequence[tuple[float, float, float]]) -> list[str]:
        return [
            extent([costs / peer for peer, costs, _ in some]), *compared([fit / peer for peer, _, fit in some])
        ]  # fmt: skip

    head = [
        "data", "loss", "peer", "costs / peer", "problems", "our fit / peer: median (range)", "faster", "slower"
    ]  # fmt: skip
    return summary(head, groups, cells)


_ABOUT = """\
A fit that ends with a certificate has costs that do not depend on the iterations of the solver. The table shows these
costs in our implementation, and our whole fit, divided by the time of a peer, which proves nothing. C is 0.001 for sets
of few rows, and 1 and 100 for the others, where the goal is a tenth of the time of liblinear.
"""

_METHOD = """\
The costs are the sum of three parts:

* The **lengths** of the rows, on which the rounding error of every bound depends. Their computation also checks that
  every entry is a number.
* One **matrix** per class with the products of the columns, computed by BLAS, for Newton's method on the squared hinge.
  With many rows, our implementation computes the matrix of a sixteenth of the rows, and needs no matrix of all rows if
  the iteration from there converges.
* The **proofs**, one per class: the scores of all rows, and a combination of all rows, with their rounding errors.

Times are milliseconds of the processor, medians. Not counted are the choice of the algorithm, the merging of equal
rows, the start and linear systems. **A step** is the scores and a combination of all rows once more. Newton's method
takes at least one step if some rows are on the wrong side of the margin at its start. The column *with it / goal* adds
one step to the sum.
"""

_MANY = """\
The column `liblinear -s 2` is the time of liblinear's Newton method at the loosest tolerance at which it comes within
{gap:g} of the optimum. A user does not know that tolerance. The goal is a tenth of this time.
"""

_FEW = """\
LinearSVC is fitted with its own defaults, except for a larger limit of iterations, so that it converges.
"""


def document(names: list[str]) -> str:
    """Measure, and return the page."""
    with threadpool_limits(limits=1):
        many, few = list(large(names)), list(small())
    return page_of(many, few, system("maxmargin", "numpy", "numba", "scikit-learn", "liblinear-official"))


def page_of(many: Sequence[Sequence[str]], few: Sequence[Sequence[str]], packages: str) -> str:
    """Return the page for the lines of both tables."""
    parts = ["lengths", "matrix", "proofs", "sum"]
    ends = ["sum / goal", "a step", "with it / goal", "our fit"]
    first = table(["data", "C", "liblinear -s 2", "goal", *parts, *ends], many)
    second = table(["data", "loss", "LinearSVC", *parts, "sum / LinearSVC", "our fit"], few)
    sections = {
        "The costs": _METHOD,
        "Squared hinge, a tenth of liblinear's time at C >= 1": f"{_MANY.format(gap=GAP)}\n{first}",
        f"Few rows, default settings, C = {LOW_C:g}": f"{_FEW}\n{second}",
        "Versions": packages,
    }
    title = "Minimum time of a certified fit"
    return page(title, _ABOUT, best(many, few), "python -m benchmarks.floor --write", sections)


def main(arguments: list[str] | None = None) -> int:
    """Measure and print; with --write into `docs/measurements/floor.md`."""
    parser = page_parser("floor", __doc__, PAGE)
    parser.add_argument(
        "--sets", nargs="+", choices=list(SOFT), default=list(SOFT), help="data sets of many rows"
    )
    options = parser.parse_args(arguments)
    deliver(document(options.sets), PAGE if options.write else None)
    return 0


if __name__ == "__main__":
    sys.exit(main())
