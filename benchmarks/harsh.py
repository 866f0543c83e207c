"""Default settings on corrupted data: sentinels, rows in another unit, polynomials of raw columns, time stamps.

`python -m benchmarks.harsh`.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from sklearn.datasets import load_breast_cancer, make_classification
from sklearn.preprocessing import PolynomialFeatures, StandardScaler
from threadpoolctl import threadpool_limits

from maxmargin import Problem, verify
from maxmargin.problem.intercept import best_intercept

from .defaults import COSTS, LOSSES, Fits, both
from .page import compared, deliver, grouped, page, page_parser, summary, system, table

PAGE = Path(__file__).parents[1] / "docs" / "measurements" / "harsh.md"

Rows = np.ndarray
Disorder = Callable[[Rows, np.random.Generator], Rows]


def _long(factor: float) -> Disorder:
    def made(X: Rows, rng: np.random.Generator) -> Rows:
        X = X.copy()
        X[rng.choice(len(X), 5, replace=False)] *= factor
        return X

    return made


def _sentinel(value: float, share: float = 0.02) -> Disorder:
    return lambda X, rng: np.where(rng.random(X.shape) < share, value, X)


def _stamps(X: Rows, rng: np.random.Generator) -> Rows:
    return np.column_stack([X, 1.7e18 + 1e9 * np.arange(len(X)), rng.integers(2**62, size=len(X))])


def _near(X: Rows, rng: np.random.Generator) -> Rows:
    return np.column_stack([X, X[:, :5] * (1.0 + 1e-7 * rng.normal(size=(len(X), 5)))])


def _cubes(X: Rows, rng: np.random.Generator) -> Rows:
    return np.column_stack([X[:, :2], rng.standard_cauchy((len(X), 6)) ** 3])


DISORDERS: dict[str, Disorder] = {
    "as it is": lambda X, rng: X,
    "all columns + 1e6": lambda X, rng: X + 1e6,
    "columns x 1e-8 to 1e8": lambda X, rng: X * np.logspace(-8.0, 8.0, X.shape[1]),
    "5 rows x 1e3": _long(1e3),
    "5 rows x 1e6": _long(1e6),
    "5 rows x 1e9": _long(1e9),
    "-999 in 2 % of the entries": _sentinel(-999.0),
    "-2147483648 in 2 %": _sentinel(-(2.0**31)),
    "-2147483648 in 0.01 %": _sentinel(-(2.0**31), 1e-4),
    "1e12 in 2 %": _sentinel(1e12),
    "nanoseconds, numbers of 62 bits": _stamps,
    "5 columns twice, but for 1e-7": _near,
    "3 columns also x 1e6 and x 1e-6": lambda X, rng: np.column_stack([X, X[:, :3] * 1e6, X[:, :3] * 1e-6]),
    "products of 3 of 6 columns": lambda X, rng: PolynomialFeatures(3).fit_transform(X[:, :6]),
    "exp(3 x) of standardised columns": lambda X, rng: np.exp(3.0 * StandardScaler().fit_transform(X)),
    "6 columns of Cauchy's cubed": _cubes,
}
# what the data imitate, for the summary
KINDS = {
    "clean": ["as it is"],
    "columns in other units": ["all columns + 1e6", "columns x 1e-8 to 1e8"],
    "5 rows in another unit": ["5 rows x 1e3", "5 rows x 1e6", "5 rows x 1e9"],
    "sentinels": ["-999 in 2 % of the entries", "-2147483648 in 2 %", "-2147483648 in 0.01 %", "1e12 in 2 %"],
    "time stamps and identifiers": ["nanoseconds, numbers of 62 bits"],
    "dependent columns": [
        "5 columns twice, but for 1e-7", "3 columns also x 1e6 and x 1e-6", "products of 3 of 6 columns",
    ],
    "heavy tails": ["exp(3 x) of standardised columns", "6 columns of Cauchy's cubed"],
}  # fmt: skip


def _generated() -> tuple[Rows, np.ndarray]:
    X, y = make_classification(20_000, 20, n_informative=10, flip_y=0.1, random_state=0)
    return X + 100.0 * np.random.default_rng(0).normal(size=20), y


SETS = {
    "breast_cancer": lambda: load_breast_cancer(return_X_y=True),
    "generated": _generated,
}


@dataclass(frozen=True)
class Outcome:
    """Fits of both estimators, and their errors.

    Attributes
    ----------
    kind : str
        A key of KINDS.
    fits : Fits
    gap : float
        Certified gap, recomputed from the data.
    excess : float
        Excess of the objective at the peer's w, with its best intercept, over the certified lower bound.
    """

    kind: str
    fits: Fits
    gap: float
    excess: float


def outcome(X: Rows, y: np.ndarray, loss: str, C: float, kind: str = "") -> Outcome:
    """Fit both estimators with their defaults, and compute their errors."""
    fits = both(X, y, loss, C)
    certificate = verify(fits.model, X, y)
    with np.errstate(over="ignore", invalid="ignore"):
        value = objective(X, y, loss, C, fits.peer.coef_[0])
        excess = (value - certificate.lower) / certificate.lower if certificate.lower > 0.0 else np.nan
    return Outcome(kind, fits, certificate.gap, excess)


def objective(X: Rows, y: np.ndarray, loss: str, C: float, w: np.ndarray) -> float:
    """Return 1/2 |w|^2 plus C times the losses, at the best intercept."""
    signs, scores = np.where(y == 1, 1.0, -1.0), X @ w
    if not np.isfinite(scores).all():
        return np.inf
    b = best_intercept(Problem(loss, C), scores, signs, np.ones(y.size))
    lack = np.maximum(0.0, 1.0 - signs * (scores + b))
    return 0.5 * float(w @ w) + C * float((lack if loss == "hinge" else lack * lack).sum())


def document(names: list[str]) -> str:
    """Measure, and return the page."""
    rows, found = [], []
    with threadpool_limits(limits=1):
        for loss in LOSSES:  # loads or compiles the machine code
            X, y = _generated()
            outcome(X[:3000], y[:3000], loss, 1.0)
            outcome(_long(1e9)(X[:3000], np.random.default_rng(0)), y[:3000], loss, 1.0)
        for name in names:
            X, y = SETS[name]()
            for what, disorder in DISORDERS.items():
                stored = np.ascontiguousarray(disorder(np.asarray(X, float), np.random.default_rng(1)))
                kind = next(kind for kind, disorders in KINDS.items() if what in disorders)
                for loss in LOSSES:
                    for C in COSTS:
                        one = outcome(stored, y, loss, C, kind)
                        found.append(one)
                        excess = f"{one.excess:.0e}" if np.isfinite(one.excess) else "not a number"
                        rows.append(
                            [
                                name, what, f"{stored.shape[0]:,} x {stored.shape[1]}", loss, f"{C:g}",
                                one.fits.model.status_.value, f"{one.gap:.0e}", f"{1e3 * one.fits.seconds:.0f}",
                                f"{1e3 * one.fits.peer_seconds:.0f}" + (", warns" if one.fits.warned else ""), excess,
                            ]
                        )  # fmt: skip
                        print(" ".join(rows[-1]), flush=True)
    return page_of(found, rows, system("maxmargin", "numpy", "numba", "scikit-learn"))


def page_of(found: Sequence[Outcome], rows: Sequence[Sequence[str]], packages: str) -> str:
    """Return the page for the outcomes and the lines of the table."""
    head = [
        "data", "what was done to it", "size", "loss", "C", "status", "gap", "ours, ms", "LinearSVC, ms",
        "its excess",
    ]  # fmt: skip
    sections = {
        "How time and errors are measured": _METHOD,
        "All fits": table(head, rows),
        "Versions": packages,
    }
    title = "Default settings on corrupted and badly scaled data"
    return page(title, _ABOUT, best(found), "python -m benchmarks.harsh --write", sections)


def best(found: Sequence[Outcome]) -> str:
    """Return the summary table: certified fits, fits of LinearSVC near the optimum, and times."""

    def cells(some: Sequence[Outcome]) -> list[str]:
        certified = sum(one.fits.model.status_.value == "CERTIFIED" for one in some)
        rows, *times = compared([one.fits.seconds / one.fits.peer_seconds for one in some])
        near, warned = sum(one.excess <= 1e-3 for one in some), sum(one.fits.warned for one in some)
        return [rows, str(certified), str(near), str(warned), *times]

    head = [
        "what the data hold", "fits of each", "maxmargin certified", "LinearSVC within 1e-3", "LinearSVC warned",
        "ratio: median (range)", "faster", "slower",
    ]  # fmt: skip
    return summary(head, grouped(found, lambda one: (one.kind,)), cells, "all")


_ABOUT = """\
`MaxMarginClassifier` and `LinearSVC` are fitted with their defaults, except for the loss and C, on two data sets with
added faults. The table counts certified fits (tol = 1e-3), and fits of `LinearSVC` whose objective is within 1e-3 of
the optimum. A ratio is our time divided by that of `LinearSVC`, whatever its accuracy; below 1, maxmargin is faster.
"""

_METHOD = """\
Our gaps are recomputed from the data; our fits have a time limit of one minute. The excess of `LinearSVC` is the
relative difference between the objective at its w, with the best intercept for that w, and the lower bound that our
certificate proves. Times are milliseconds of the processor, one fit each. Compilation is not counted.

Some fits of `LinearSVC` end without a warning and have a large excess: its tolerance was met too early, or it solved
its own problem, whose intercept is regularised, which changes w if columns are far from 0.
"""


def main(arguments: list[str] | None = None) -> int:
    """Measure and print; with --write into `docs/measurements/harsh.md`."""
    parser = page_parser("harsh", __doc__, PAGE)
    parser.add_argument("--sets", nargs="+", choices=list(SETS), default=list(SETS), help="data sets")
    options = parser.parse_args(arguments)
    deliver(document(options.sets), PAGE if options.write else None)
    return 0


if __name__ == "__main__":
    sys.exit(main())
