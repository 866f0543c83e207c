"""Linear classifiers: fits beside LinearSVC, text, default fits on clean and on faulty data, paths, and start-up.

`python -m benchmarks.linear [--parts linear text defaults harsh path startup] [--sets NAME ...] [--write]`.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from functools import lru_cache
from itertools import product
from typing import Any

import numpy as np
import scipy.sparse as sp
from scipy.optimize import brentq
from sklearn.datasets import load_breast_cancer, make_classification
from sklearn.exceptions import ConvergenceWarning
from sklearn.preprocessing import PolynomialFeatures
from sklearn.svm import LinearSVC

from maxmargin import MaxMarginClassifier, margin_path

from .datasets import DATASETS, MICROARRAYS, SCALED, SETS, UNEQUAL, Rows, signs, standardised, words
from .hardset.quadratic import optional
from .measure import Problem, compare, ours, timed
from .results import Row, main

LOSSES = ("hinge", "squared_hinge")


def linear_svc(problem: Problem, tolerance: float) -> np.ndarray:
    """Fit LinearSVC, the code of liblinear, until its tolerance is met."""
    model = LinearSVC(
        loss=problem.loss, C=problem.C, tol=tolerance, dual="auto", fit_intercept=False, max_iter=10**6,
        random_state=0,
    )  # fmt: skip
    return model.fit(problem.X, problem.y).coef_.ravel()


@lru_cache(maxsize=1)
def _for_liblinear(problem: Problem) -> Any:
    return liblinear.problem(problem.y, sp.csr_matrix(problem.X))


def by_liblinear(problem: Problem, tolerance: float) -> np.ndarray:
    """Fit the newer liblinear of liblinear-official (-s 3, -s 2), which ends after 300 passes."""
    options = f"-s {3 if problem.loss == 'hinge' else 2} -B -1 -c {problem.C!r} -e {tolerance!r} -q"
    model = liblinear.train(_for_liblinear(problem), liblinear.parameter(options))
    w = np.ctypeslib.as_array(model.w, (problem.X.shape[1],)).copy()
    return w if model.get_labels()[0] == 1 else -w


liblinear = optional("liblinear.liblinearutil")
PEER = {"LinearSVC": linear_svc}
PEERS = {**PEER, **({"liblinear": by_liblinear} if liblinear else {})}


# fits beside LinearSVC

DENSE = {name: {**UNEQUAL, **SETS}[name] for name in ("unequal-200k", "skin", "satimage", "letter")}
TOL, LIMIT = 1e-4, 30.0  # seconds of a peer


def linear(sets: Sequence[str] | None) -> Iterator[Row]:
    """Sparse rows without intercept, and dense, unscaled ones with a constant column."""
    for name, load in DATASETS.items():
        if sets is None or name in sets:
            X, y = load()
            for C in (1.0, 0.1):
                for row in compare(Problem(X, y, C), PEERS, TOL, LIMIT):
                    yield {"data": name, "loss": "hinge", "C": C, "tol": TOL, **row}
    for name, load in DENSE.items():
        if sets is None or name in sets:
            X, y = load()
            X, y = np.column_stack([X, np.ones(len(X))]), signs(y, np.unique(y)[0])
            for C in (1e-3, 1.0, 100.0):  # with the hinge peers take minutes
                for row in compare(Problem(X, y, C, "squared_hinge"), PEERS, TOL, LIMIT):
                    yield {"data": name, "loss": "squared_hinge", "C": C, "tol": TOL, **row}


# text larger than the cache

TEXT_ROWS, TEXT_TOL, TEXT_LIMIT = 1_000_000, 1e-3, 60.0
# Standard deviation of the noise of the labels in units of that of the scores, exponent of the word frequencies, seed.
RECIPES = {"much noise": (0.5, 1.05, 0), "little noise": (0.1, 1.05, 1), "rare words": (0.5, 0.8, 2)}


def text_rows(recipe: str, n: int = TEXT_ROWS, d: int = 100_000) -> Rows:
    """Return rows of 17 random words, with linear noisy labels."""
    noise, exponent, seed = RECIPES[recipe]
    rng = np.random.default_rng(seed)
    X = words(rng, n, d, 17, exponent)
    score = X @ rng.standard_normal(d)
    return X, np.where(score + noise * score.std() * rng.standard_normal(n) > 0.0, 1.0, -1.0)


def text(sets: Sequence[str] | None) -> Iterator[Row]:
    """Seconds, and visits of each row: steps of dual coordinate descent that look at it, and its shares of passes."""
    for recipe in RECIPES if sets is None else sets:
        X, y = text_rows(recipe)
        for loss, intercept in product(LOSSES, ("none", "free", "augmented")):
            problem = Problem(X, y, 1.0, loss, intercept=intercept != "none")
            own = {"intercept_scaling": 1.0} if intercept == "augmented" else {}
            few = Problem(X[:5000], y[:5000], 1.0, loss, intercept=problem.intercept)
            ours(few, TEXT_TOL, **own)  # loads or compiles the code
            seconds, model = ours(problem, TEXT_TOL, **own)
            visits = sum(report.presentations for report in list(model.history_)[-1:]) / y.size
            row = {"data": recipe, "loss": loss, "intercept": intercept, "ours": seconds, "visits": visits}
            row |= {"gap": model.certificate_.gap, "status": model.status_.value}
            beside = intercept == "none" and recipe == next(iter(RECIPES))
            yield row | (next(compare(problem, PEER, TEXT_TOL, TEXT_LIMIT)) if beside else {})


# default fits

MAX_TURNS, TURN_SECONDS = 3, 1.0  # of short fits, which are repeated
SMALL = {**SETS, **{f"{name} scaled": SETS[name] for name in SCALED}, **MICROARRAYS}


def both(X: Any, y: np.ndarray, loss: str, C: float, turns: int = 1) -> tuple[Row, Any, Any]:
    """Fit MaxMarginClassifier and LinearSVC with their defaults; return the row and both models."""
    times: list[tuple[float, float]] = []
    MaxMarginClassifier(C, loss=loss, max_time=60.0).fit(X, y)  # loads or compiles the code
    while True:
        mine, model = timed(lambda: MaxMarginClassifier(C, loss=loss, max_time=60.0).fit(X, y))
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            theirs, peer = timed(lambda: LinearSVC(C=C, loss=loss, random_state=0).fit(X, y))
        times.append((mine, theirs))
        if len(times) >= turns or np.sum(times) > TURN_SECONDS:
            break
    mine, theirs = np.median(times, axis=0)
    warned = any(issubclass(one.category, ConvergenceWarning) for one in caught)
    row = {
        "status": model.status_.value, "gap": max(part.gap for part in model.certificate_.certificates),
        "ours": float(mine), "peer": "LinearSVC", "theirs": float(theirs), "warned": "yes" if warned else "no",
    }  # fmt: skip
    return row, model, peer


def defaults(sets: Sequence[str] | None) -> Iterator[Row]:
    """Default fits on data without preprocessing."""
    for name in SMALL if sets is None else sets:
        X, y = SMALL[name]()
        X = standardised(X) if name.endswith(" scaled") else X
        kind = "micro-arrays" if name in MICROARRAYS else "more rows than columns"
        for loss, C in product(LOSSES, (1e-3, 1.0, 1e3)):
            yield {"data": name, "kind": kind, "loss": loss, "C": C, **both(X, y, loss, C, MAX_TURNS)[0]}


# default fits on faulty data

Fault = Callable[[np.ndarray, np.random.Generator], np.ndarray]


def _longer(factor: float) -> Fault:
    def made(X: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        X = X.copy()
        X[rng.choice(len(X), 5, replace=False)] *= factor
        return X

    return made


def _sentinel(value: float, share: float = 0.02) -> Fault:
    return lambda X, rng: np.where(rng.random(X.shape) < share, value, X)


def _stamps(X: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    return np.column_stack([X, 1.7e18 + 1e9 * np.arange(len(X)), rng.integers(2**62, size=len(X))])


def _near(X: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    return np.column_stack([X, X[:, :5] * (1.0 + 1e-7 * rng.normal(size=(len(X), 5)))])


FAULTS: dict[str, dict[str, Fault]] = {
    "clean": {"as it is": lambda X, rng: X},
    "columns in other units": {
        "all columns + 1e6": lambda X, rng: X + 1e6,
        "columns x 1e-8 to 1e8": lambda X, rng: X * np.logspace(-8.0, 8.0, X.shape[1]),
    },
    "5 rows in another unit": {f"5 rows x 1e{k}": _longer(10.0**k) for k in (3, 6, 9)},
    "sentinels": {
        "-999 in 2 % of the entries": _sentinel(-999.0),
        "-2147483648 in 2 %": _sentinel(-(2.0**31)),
        "-2147483648 in 0.01 %": _sentinel(-(2.0**31), 1e-4),
        "1e12 in 2 %": _sentinel(1e12),
    },
    "time stamps and identifiers": {"nanoseconds, numbers of 62 bits": _stamps},
    "dependent columns": {
        "5 columns twice, but for 1e-7": _near,
        "3 columns also x 1e6 and x 1e-6": lambda X, rng: np.hstack([X, X[:, :3] * 1e6, X[:, :3] * 1e-6]),
        "products of 3 of 6 columns": lambda X, rng: PolynomialFeatures(3).fit_transform(X[:, :6]),
    },
    "heavy tails": {
        "exp(3 x) of standardised columns": lambda X, rng: np.exp(3.0 * standardised(X)),
        "6 columns of Cauchy's cubed": lambda X, rng: np.hstack(
            [X[:, :2], rng.standard_cauchy((len(X), 6)) ** 3]
        ),
    },
}


def _generated() -> Rows:
    X, y = make_classification(20_000, 20, n_informative=10, flip_y=0.1, random_state=0)
    return X + 100.0 * np.random.default_rng(0).normal(size=20), y


def at_best_intercept(X: np.ndarray, y: np.ndarray, loss: str, C: float, w: np.ndarray) -> float:
    """Return the objective of w with its best intercept."""
    scores = X @ w
    if not np.isfinite(scores).all():
        return np.inf
    kinks = np.sort(y - scores)  # the intercepts at which the loss of a row begins
    b = kinks[min(int((y > 0.0).sum()), y.size - 1)]  # the subgradient of the hinge contains 0
    if loss == "squared_hinge":
        b = brentq(lambda b: y @ np.maximum(0.0, 1.0 - y * (scores + b)), kinks[0], kinks[-1], maxiter=5000)
    slack = np.maximum(0.0, 1.0 - y * (scores + b))
    return 0.5 * float(w @ w) + C * float(slack.sum() if loss == "hinge" else slack @ slack)


def harsh(sets: Sequence[str] | None) -> Iterator[Row]:
    """Default fits on two data sets with added faults; the excess of LinearSVC is over our lower bound."""
    for name, (X, y) in {
        "breast_cancer": load_breast_cancer(return_X_y=True),
        "generated": _generated(),
    }.items():
        for kind, faults in FAULTS.items() if sets is None or name in sets else ():
            for (fault, make), loss, C in product(faults.items(), LOSSES, (1e-3, 1.0, 1e3)):
                rows = np.ascontiguousarray(make(np.asarray(X, float), np.random.default_rng(1)))
                row, model, peer = both(rows, y, loss, C)
                lower = model.certificate_.lower
                with np.errstate(over="ignore", invalid="ignore"):
                    value = at_best_intercept(rows, signs(y, 1), loss, C, peer.coef_[0])
                excess = {"excess": value / lower - 1.0 if lower > 0.0 else np.nan}
                yield {"data": name, "kind": kind, "problem": fault, "loss": loss, "C": C, **row, **excess}


# paths and start-up

CS = np.logspace(-3.0, 3.0, 20)


PATH: dict[str, Any] = {"loss": "hinge", "fit_intercept": False, "tol": 1e-3, "random_state": 0}


def path(sets: Sequence[str] | None) -> Iterator[Row]:
    """A path of 20 values of C, beside separate fits of both packages to a gap of 1e-3."""
    for name in sets or ("adult", "web", "mushrooms", "pcmac"):
        X, y = DATASETS[name]()
        margin_path(X, y, CS, **PATH)  # loads or compiles the code
        seconds, _ = timed(lambda X=X, y=y: margin_path(X, y, CS, **PATH))
        rows = [next(compare(Problem(X, y, float(C)), PEER, 1e-3, 10.0)) for C in CS]
        alone, theirs = (sum(row[side] for row in rows) for side in ("ours", "theirs"))
        reached = f"{sum(row['reached'] == 'yes' for row in rows)} of {CS.size}"
        times = {"path, s": seconds, "20 fits, s": alone, "LinearSVC, s": theirs}
        yield {"data": name, **times, "of which as close": reached}


FIT = "; from sklearn.datasets import load_breast_cancer; {}().fit(*load_breast_cancer(return_X_y=True))"
PEER_IMPORT, OUR_IMPORT = "from sklearn.svm import LinearSVC", "from maxmargin import MaxMarginClassifier"
COMMANDS = {
    "import numpy, scipy, sklearn, numba": "import numpy, scipy, sklearn, numba",
    PEER_IMPORT: PEER_IMPORT,
    OUR_IMPORT: OUR_IMPORT,
    "fit of LinearSVC, 569 x 30": PEER_IMPORT + FIT.format("LinearSVC"),
    "first fit of MaxMarginClassifier, nothing compiled": OUR_IMPORT + FIT.format("MaxMarginClassifier"),
    "later fit of MaxMarginClassifier": OUR_IMPORT + FIT.format("MaxMarginClassifier"),
}
TURNS = 7


def startup(sets: Sequence[str] | None) -> Iterator[Row]:
    """Seconds of whole processes; the first fit on a machine compiles its code, which is then stored."""
    with tempfile.TemporaryDirectory() as folder:
        installed = {**os.environ, "NUMBA_CACHE_DIR": folder, "PYTHONWARNINGS": "ignore"}
        installed.pop("PYTHONDONTWRITEBYTECODE", None)  # an installed package has bytecode

        def seconds(code: str) -> float:
            begin = time.perf_counter()
            subprocess.run([sys.executable, "-c", code], check=True, env=installed)
            return time.perf_counter() - begin

        for process, code in COMMANDS.items():
            times = [seconds(code) for _ in range(1 if process.startswith("first") else TURNS)]
            least, most = min(times), max(times)
            yield {"process": process, "seconds": float(np.median(times)), "least": least, "most": most}


if __name__ == "__main__":
    sys.exit(main("linear", __doc__, linear, text, defaults, harsh, path, startup))
