"""Gaussian kernels: seconds to a certified gap of 1e-3, and seconds of SVC at a tolerance that reaches this gap.

`python -m benchmarks.kernel [--sets usps-ovo ...] [--write]`.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from contextlib import suppress
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.svm import SVC

from maxmargin import KernelMaxMarginClassifier

from .datasets import KernelSet, kernel_sets
from .measure import timed
from .results import Row, main

KINDS: dict[str, Any] = {"SVC": SVC}
with suppress(ImportError):
    from sklearnex.svm import SVC as PatchedSVC  # type: ignore[import-not-found]

    KINDS["SVC of scikit-learn-intelex"] = PatchedSVC
TOL = 1e-3
TOLERANCES = (1e-1, 3e-2, 1e-2, 3e-3, 1e-3, 3e-4, 1e-4)  # of SVC, tried in this order
MEGABYTES = 200.0  # of kernel rows, for every solver
PREDICTED = 5000  # rows whose prediction is timed
Fit = tuple[
    float, float, float
]  # seconds of the fit and of the prediction, the largest gap of all binary problems


def gap(data: KernelSet, places: np.ndarray, y: np.ndarray, alpha: np.ndarray, w: np.ndarray) -> float:
    """Return the relative gap of one binary problem for these dual variables and coefficients of w."""
    X, scores = data.X[places], np.zeros((2, places.size))
    both = np.array([alpha * y, w])
    used = np.flatnonzero(both.any(axis=0))
    for first in range(0, used.size, 1000):
        some = used[first : first + 1000]
        scores += both[:, some] @ rbf_kernel(X[some], X, gamma=data.gamma)
    kinks = np.sort(y - scores[1])  # the best b is the one at which the subgradient contains 0
    b = kinks[min(int((y > 0).sum()), y.size - 1)]
    loss = data.C * np.maximum(0.0, 1.0 - y * (scores[1] + b)).sum()
    primal, dual = loss + 0.5 * float(w @ scores[1]), alpha.sum() - 0.5 * float(both[0] @ scores[0])
    return float((primal - dual) / dual)


def ours(data: KernelSet) -> Fit:
    """Fit KernelMaxMarginClassifier to a certified gap of TOL, and predict."""
    scheme = "ovr" if data.against == "the rest" else "ovo"
    model = KernelMaxMarginClassifier(
        data.C, gamma=data.gamma, tol=TOL, multi_class=scheme, cache_size=MEGABYTES
    )
    seconds, _ = timed(lambda: model.fit(data.X, data.y))
    predict, _ = timed(lambda: model.predict(data.X[:PREDICTED]))
    return seconds, predict, float(model.certificate_.gap)


def svc(data: KernelSet, tolerance: float, kind: Any) -> Fit:
    """Fit SVC, and predict. One against the rest takes one fit a class; a gap above TOL ends them."""
    settings = {"C": data.C, "gamma": data.gamma, "tol": tolerance, "cache_size": MEGABYTES}
    seconds = predict = worst = 0.0
    problems = list(data.problems())
    rest = data.against == "the rest"
    for k, labels in enumerate([y for _, y in problems] if rest else [data.y]):
        fit, model = timed(lambda labels=labels: kind(**settings).fit(data.X, labels))
        seconds += fit
        predict += timed(lambda model=model: model.predict(data.X[:PREDICTED]))[0]
        pairs = zip(problems[k:], dual_weights(model, labels), strict=False)
        worst = max(worst, *(gap(data, *one, alpha, alpha * one[1]) for one, alpha in pairs))
        if worst > TOL:
            break
    return seconds, predict, worst


def dual_weights(model: Any, labels: np.ndarray) -> Iterator[np.ndarray]:
    """Yield the dual variables of SVC for every pair of classes, for the rows of both."""
    dual = np.abs(model.dual_coef_.toarray() if sp.issparse(model.dual_coef_) else model.dual_coef_)
    classes, of = np.unique(labels, return_inverse=True)
    whose = of[model.support_]
    for i in range(classes.size):
        for j in range(i + 1, classes.size):
            alpha = np.zeros(labels.size)
            alpha[model.support_[whose == i]] = dual[j - 1, whose == i]
            alpha[model.support_[whose == j]] = dual[i, whose == j]
            yield alpha[(of == i) | (of == j)]


def compare(data: KernelSet) -> Iterator[Row]:
    """Yield a row for each peer, at the loosest tolerance at which the gap of every binary problem is at most TOL."""
    against = data.against if np.unique(data.y).size > 2 else ""
    ours(data)  # loads or compiles the code
    seconds, predict, worst = ours(data)
    mine = {"data": data.name, "against": against, "ours": seconds, "predict": predict, "gap": worst}
    for peer, kind in KINDS.items():
        for tolerance in TOLERANCES:
            theirs, his_predict, excess = svc(data, tolerance, kind)
            if excess <= TOL:
                break
        his = {"theirs": theirs, "their predict": his_predict, "tolerance": tolerance, "excess": excess}
        yield mine | {"peer": peer, **his}


def kernel(sets: Sequence[str] | None) -> Iterator[Row]:
    """Fits and predictions beside SVC of scikit-learn and of scikit-learn-intelex, where it is installed."""
    for name, load in kernel_sets().items():
        if sets is None or name in sets:
            yield from compare(load())


if __name__ == "__main__":
    sys.exit(main("kernel", __doc__, kernel))
