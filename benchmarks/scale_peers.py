"""Other packages on generated dense rows, until their objective is within 1e-3 of the optimum: passes and seconds.

The objective is computed here, over all rows, from the weights that a package ends with.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from sklearn.linear_model import SGDClassifier
from sklearn.svm import LinearSVC

from .scale_data import COLUMNS, read

BLOCK = 100_000
EXCESS = 1e-3  # relative excess of the objective that is to be reached
SGD_PASSES = 5
VOWPAL_PASSES = (1, 5, 20)
VOWPAL_CONSTANT, VOWPAL_BITS = 11650396, 10  # the number of its constant feature, and bits of its table
LIBLINEAR_ROWS = 1_000_000  # a subset of 0.25 GB, of which liblinear makes a copy of twice the size


class Attempt(NamedTuple):
    """Name, passes, seconds, and relative excess of the objective over the certified upper bound."""

    name: str
    passes: str
    seconds: float
    excess: float


def objective(X: Any, y: np.ndarray, w: np.ndarray, b: float, loss: str, C: float) -> float:
    """Return 1/2 |w|^2 + C sum of the losses of all rows."""
    total = 0.0
    for begin in range(0, y.size, BLOCK):
        part = slice(begin, begin + BLOCK)
        slack = np.maximum(0.0, 1.0 - np.where(y[part] > 0, 1.0, -1.0) * (X[part] @ w + b))
        total += float((slack if loss == "hinge" else slack * slack).sum())
    return 0.5 * float(w @ w) + C * total


def sgd(folder: Path, loss: str, C: float, best: float) -> Attempt:
    """SGDClassifier.partial_fit with blocks in random order and averages, until it is close enough."""
    X, y = read(folder)
    used, rng, excess = 0.0, np.random.default_rng(0), np.inf
    model = SGDClassifier(loss=loss, alpha=1.0 / (C * y.size), random_state=0, average=True)
    for k in range(SGD_PASSES):
        begin = time.perf_counter()
        for start in rng.permutation(np.arange(0, y.size, BLOCK)):
            part = slice(start, start + BLOCK)
            model.partial_fit(X[part], y[part], classes=[0, 1])
        used += time.perf_counter() - begin
        excess = objective(X, y, model.coef_[0], model.intercept_[0], loss, C) / best - 1.0
        if excess <= EXCESS:
            return Attempt("SGDClassifier", str(k + 1), used, excess)
    return Attempt("SGDClassifier", str(SGD_PASSES), used, excess)


def vowpal(folder: Path, C: float, best: float) -> Iterator[Attempt]:
    """Vowpal Wabbit with the hinge: a text file once, then its cache file in each pass."""
    from vowpalwabbit import Workspace

    X, y = read(folder)
    text, model = folder / "rows.vw", folder / "rows.model"
    with open(text, "w") as file:
        for begin in range(0, y.size, BLOCK):
            for row, label in zip(X[begin : begin + BLOCK], y[begin : begin + BLOCK].tolist(), strict=True):
                words = " ".join(f"{j}:{value:.9g}" for j, value in enumerate(row.tolist()))
                file.write(f"{1 if label else -1} | {words}\n")
    for passes in VOWPAL_PASSES:
        begin = time.perf_counter()
        Workspace(
            f"-d {text} -f {model} -c -k --cache_file {folder / 'rows.cache'} --passes {passes} --loss_function hinge "
            f"--l2 {1.0 / (C * y.size)} -b {VOWPAL_BITS} --holdout_off --quiet"
        ).finish()
        used = time.perf_counter() - begin
        learner = Workspace(f"-i {model} -t --quiet")
        w = np.array([learner.get_weight(j) for j in range(COLUMNS)])
        b = learner.get_weight(VOWPAL_CONSTANT & ((1 << VOWPAL_BITS) - 1))
        learner.finish()
        yield Attempt("Vowpal Wabbit", str(passes), used, objective(X, y, w, b, "hinge", C) / best - 1.0)


def liblinear(folder: Path, loss: str, C: float, best: float) -> Attempt:
    """LinearSVC on the first rows, as many as a machine holds; C grows so that the losses weigh the same."""
    X, y = read(folder)
    k = min(LIBLINEAR_ROWS, y.size)
    begin = time.perf_counter()
    model = LinearSVC(
        C=C * y.size / k, loss=loss, dual=loss == "hinge", random_state=0, max_iter=100, tol=1e-3
    ).fit(np.array(X[:k]), y[:k])
    used = time.perf_counter() - begin
    excess = objective(X, y, model.coef_[0], model.intercept_[0], loss, C) / best - 1.0
    return Attempt(f"liblinear, {k:,} rows", "-", used, excess)


def attempts(folder: Path, loss: str, C: float, best: float) -> Iterator[Attempt]:
    """Yield what each package reaches; `best` is a certified upper bound of the optimum."""
    yield sgd(folder, loss, C, best)
    yield liblinear(folder, loss, C, best)
    if loss == "hinge":  # Vowpal Wabbit has no squared hinge
        yield from vowpal(folder, C, best)
