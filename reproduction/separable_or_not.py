"""Separability of the papers' data sets, with the size of the proof or the margin, and the time."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.datasets import load_svmlight_file

from maxmargin import Separable, Undecided, separate
from maxmargin.data.duplicates import merge

from . import record
from .data import adult, ionosphere, sonar, wbc, wbc_separable
from .record import Cell

TITLE = "Separability of the papers' data sets"
TEXT = """\
`separate` runs with a bias and p = 2. Column *largest margin* is an interval of relative width 1 % that contains
the largest margin. Column *proof* is the number of rows with weights whose signed sum is exactly zero, checked in
rational numbers; a proof of two rows consists of equal rows of different classes. *time of the verdict* is the time
to a separator or to a proof, *time of the margin* the additional time to 1 %. All verdicts are verified from the
data, by code that the search does not use. Sonar is the training half. *No contradicting rows* means without the
rows that equal a row of the other class. The last columns are about separation by a function of the Gaussian
kernel, with scikit-learn's gamma="scale" and a margin to 10 %; with this kernel only equal rows prove that no
separator exists.
"""

MAX_KERNEL_ROWS = 10_000  # largest number of rows for the Gaussian kernel

Data = tuple[Any, np.ndarray]


def svmlight(file: str) -> Callable[[Path], Data]:
    """Return the loader of a file with sparse rows."""
    return lambda folder: load_svmlight_file(str(folder / file))


def micro_array(file: str) -> Callable[[Path], Data]:
    """Return the loader of a file with dense rows."""

    def load(folder: Path) -> Data:
        X, y = load_svmlight_file(str(folder / file))
        return X.toarray(), y

    return load


def without_contradictions(load: Callable[[Path], Data]) -> Callable[[Path], Data]:
    """Return a loader of the rows that equal no row of the other class."""

    def loaded(folder: Path) -> Data:
        X, y = load(folder)
        ones = np.ones(y.size)
        groups = merge(X.tocsr(), ones, ones).groups
        both = (np.bincount(groups, y > 0) > 0) & (np.bincount(groups, y < 0) > 0)
        return X[~both[groups]], y[~both[groups]]

    return loaded


SETS: dict[str, Callable[[Path], Data]] = {
    "sonar": sonar,
    "wbc": wbc,
    "wbc without 11 rows": wbc_separable,
    "ionosphere": ionosphere,
    "heart": micro_array("heart/heart.svm.gz"),
    "adult a1a": lambda folder: adult(folder, file="a1a"),
    "adult a9a": adult,
    "adult a9a, no contradicting rows": without_contradictions(adult),
    "web w8a": svmlight("web/w8a.gz"),
    "web w8a, no contradicting rows": without_contradictions(svmlight("web/w8a.gz")),
    "mushrooms": svmlight("mushrooms/mushrooms.gz"),
    "colon": micro_array("colon/colon.svm.gz"),
    "prostate": micro_array("prostate/prostate.svm.gz"),
    "dlbcl, 7129": micro_array("dlbcl/dlbcl-7129.svm.gz"),
    "dlbcl, 5468": micro_array("dlbcl/dlbcl-5468.svm.gz"),
    "breast, Chang": micro_array("breast-chang/breast-chang.svm.gz"),
    "breast, West": micro_array("breast-west/breast-west.svm.gz"),
    "cns": micro_array("cns/cns.svm.gz"),
    "arcene": micro_array("arcene/arcene_train.svm.gz"),
    "madelon": micro_array("madelon/madelon_train.svm.gz"),
}


def cells(folder: Path, everything: bool = False) -> Iterator[Cell]:
    """Yield the cells, one row per data set."""
    separate([[0.0], [1.0]], [0, 1])  # compiles the code
    for name, load in SETS.items():
        X, y = load(folder)
        began = time.perf_counter()
        verdict = separate(X, y, tol=np.inf)
        decided, method = time.perf_counter() - began, verdict.method
        proof, margin, spent = "", "", ""
        if isinstance(verdict, Separable):
            began = time.perf_counter()
            verdict = separate(X, y)
            spent = f"{max(time.perf_counter() - began - decided, 0.0):.2f} s"
            margin = f"{verdict.lo:.6g} .. {verdict.hi:.6g}"
        elif isinstance(verdict, Undecided):
            margin = f"at most {verdict.hi:.3g}"
        else:
            proof = f"{verdict.support.size} rows"
        verdict.verify(X, y)
        word = {True: "separable", False: "not separable", None: "undecided"}[verdict.separable]
        row = (name, f"{X.shape[0]:,} × {X.shape[1]:,}")
        gaussian, asked = "", ""
        if X.shape[0] <= MAX_KERNEL_ROWS or proof == "2 rows":
            began = time.perf_counter()
            kernel = separate(X, y, kernel="rbf", tol=0.1)
            asked = f"{time.perf_counter() - began:.2f} s"
            kernel.verify(X, y)
            gaussian = (
                f"{kernel.lo:.4g} .. {kernel.hi:.4g}"
                if isinstance(kernel, Separable)
                else f"at most {kernel.hi:.3g}"
                if isinstance(kernel, Undecided)
                else f"not separable, {kernel.support.size} rows"
            )
        for quantity, ours in (
            ("verdict", word),
            ("largest margin", margin),
            ("proof", proof),
            ("time of the verdict", f"{decided:.2f} s"),
            ("time of the margin", spent),
            ("method", method),
            ("Gaussian kernel: margin", gaussian),
            ("Gaussian kernel: time", asked),
        ):
            yield Cell(*row, quantity, "", ours)


def table(found: list[Cell]) -> str:
    """Return the cells as Markdown. No numbers were published for this section."""
    quantities = list(dict.fromkeys(cell.quantity for cell in found))
    rows: dict[tuple[str, str], list[str]] = {}
    for cell in found:
        rows.setdefault((cell.what, cell.parameter), []).append(cell.ours)
    return record.markdown(["data", "size", *quantities], [[*row, *ours] for row, ours in rows.items()])
