"""Data sets of the benchmarks: rows and labels. This module imports no classifier."""

from __future__ import annotations

import csv
import gzip
import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.datasets import load_breast_cancer, load_digits, load_iris, load_svmlight_file, load_wine

ROOT = Path(__file__).parents[1]
Rows = tuple[Any, np.ndarray]


def path(name: str) -> Path:
    """Return a file of the folder MAXMARGIN_DATA, or of a folder next to the checkout."""
    found = ROOT / os.environ.get("MAXMARGIN_DATA", "../shared/data") / name
    if not found.exists():
        raise FileNotFoundError(f"{found} is not there: set MAXMARGIN_DATA to the folder of the data sets")
    return found


def signs(y: np.ndarray, positive: Any) -> np.ndarray:
    """Return 1.0 for the rows of a class, and -1.0 for the others."""
    return np.where(y == positive, 1.0, -1.0)


def csr(X: Any) -> sp.csr_matrix:
    """Return rows with 32-bit indices, which all solvers read without a conversion."""
    X = sp.csr_matrix(X, dtype=np.float64)
    X.sum_duplicates()
    X.indices, X.indptr = X.indices.astype(np.int32), X.indptr.astype(np.int32)
    return X


def sparse(file: str, positive: float = 1.0, d: int | None = None) -> Rows:
    """Read svmlight text as CSR rows with labels -1.0 and 1.0."""
    X, y = load_svmlight_file(str(path(file)), n_features=d)
    return csr(X), signs(y, positive)


def dense(file: str) -> Rows:
    """Read svmlight text as dense rows with its own labels."""
    X, y = load_svmlight_file(str(path(file)))
    return X.toarray(), y


def columns(file: str, label: int = -1) -> Rows:
    """Read a table of numbers with the label in this column."""
    rows = np.loadtxt(path(file))
    return np.ascontiguousarray(np.delete(rows, label, axis=1)), rows[:, label]


def comma_separated(file: str, label: int) -> Rows:
    """Read comma-separated numbers with the label in this column."""
    with gzip.open(path(file), "rt") as stream:
        rows = np.array([row for row in csv.reader(stream) if row])
    return np.delete(rows, label, axis=1).astype(float), rows[:, label]


def digits(part: str = "train") -> Rows:
    """Return MNIST, "train" or "t10k", as a dense matrix in [0, 1], and the digits."""
    with gzip.open(path(f"mnist/{part}-images-idx3-ubyte.gz"), "rb") as stream:
        pixels = np.frombuffer(stream.read(), np.uint8, offset=16).reshape(-1, 784) / 255.0
    with gzip.open(path(f"mnist/{part}-labels-idx1-ubyte.gz"), "rb") as stream:
        return pixels, np.frombuffer(stream.read(), np.uint8, offset=8)


def zero_digit(part: str = "train") -> Rows:
    """Return MNIST, 0 against the rest, as CSR rows, because liblinear has no dense ones."""
    X, y = digits(part)
    return csr(X), signs(y, 0)


def unequal(n: int, d: int, seed: int = 0) -> Rows:
    """Generate normal columns with scales from 0.01 to 100, and labels of a linear target with 10 % flipped."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, d))
    y = np.where(X @ rng.standard_normal(d) > 0.0, 1.0, -1.0)
    y[rng.random(n) < 0.1] *= -1.0
    X *= rng.permutation(np.logspace(-2.0, 2.0, d))
    return X, y


def words(rng: np.random.Generator, n: int, d: int, draws: int, exponent: float) -> sp.csr_matrix:
    """Return rows of random words whose frequencies follow Zipf's law: log1p of the counts, of unit length."""
    share = np.cumsum(np.arange(1.0, d + 1.0) ** -exponent)
    places = np.minimum(np.searchsorted(share / share[-1], rng.random((n, draws))), d - 1)
    starts = np.arange(0, n * draws + 1, draws, dtype=np.int32)
    X = sp.csr_matrix((np.ones(n * draws), places.ravel().astype(np.int32), starts), shape=(n, d))
    X.sum_duplicates()
    X.data = np.log1p(X.data)
    X.data /= np.repeat(np.sqrt(X.multiply(X).sum(axis=1).A1), np.diff(X.indptr))
    return X


def generated(n: int = 200_000, d: int = 50_000, entries: int = 64, seed: int = 0) -> Rows:
    """Generate rows with 64 non-zero entries and labels from a noisy linear target.

    The columns of a row are distinct and follow Zipf's law; the values are standard normal, divided by 8. The target
    has 200 features, drawn like the columns but without repetition, with standard normal weights. 10 % of the labels
    are flipped.
    """
    rng = np.random.default_rng(seed)
    share = 1.0 / np.arange(1.0, d + 1.0)
    share /= share.sum()
    edges = np.cumsum(share)
    places = np.empty((n, entries), np.int32)
    places[:] = np.minimum(np.searchsorted(edges, rng.random((n, entries))), d - 1)
    rows = np.arange(n)
    while rows.size:  # draw repeated columns of a row again
        block = np.sort(places[rows], axis=1)
        again = np.zeros(block.shape, bool)
        again[:, 1:] = block[:, 1:] == block[:, :-1]
        block[again] = np.minimum(np.searchsorted(edges, rng.random(int(again.sum()))), d - 1)
        places[rows] = block
        rows = rows[again.any(axis=1)]
    places.sort(axis=1)
    values = rng.standard_normal(n * entries) / np.sqrt(entries)
    X = sp.csr_matrix(
        (values, places.ravel(), np.arange(0, n * entries + 1, entries, dtype=np.int32)), (n, d)
    )
    target = np.zeros(d)
    target[rng.choice(d, 200, replace=False, p=share)] = rng.standard_normal(200)
    y = np.where(X @ target > 0.0, 1.0, -1.0)
    y[rng.random(n) < 0.1] *= -1.0
    return X, y


# sparse rows, and text
DATASETS: dict[str, Callable[[], Rows]] = {
    "adult": partial(sparse, "adult/a9a.gz"),
    "web": partial(sparse, "web/w8a.gz"),
    "mushrooms": partial(sparse, "mushrooms/mushrooms.gz", 2.0),
    "splice": partial(sparse, "splice/splice.gz"),
    "reuters": partial(sparse, "reuters-moneyfx/money-fx.trn.gz"),
    "pcmac": partial(sparse, "pcmac/pcmac.svm.gz"),
    "mnist": zero_digit,
    "generated": generated,
}
# dense rows without scaling, with the labels of all their classes
SETS: dict[str, Callable[[], Rows]] = {
    "breast_cancer": partial(load_breast_cancer, return_X_y=True),
    "digits": partial(load_digits, return_X_y=True),
    "iris": partial(load_iris, return_X_y=True),
    "wine": partial(load_wine, return_X_y=True),
    "sonar": partial(comma_separated, "sonar/sonar.all-data.gz", -1),
    "ionosphere": partial(comma_separated, "ionosphere/ionosphere.data.gz", -1),
    "heart": partial(dense, "heart/heart.svm.gz"),
    "german": partial(dense, "german/german.numer.svm.gz"),
    "diabetes": partial(dense, "diabetes/pima-diabetes.svm.gz"),
    "bupa": partial(dense, "bupa/bupa.svm.gz"),
    "svmguide1": partial(dense, "svmguide1/svmguide1.gz"),
    "satimage": partial(columns, "satimage/sat.trn.gz"),
    "letter": partial(comma_separated, "letter/letter-recognition.data.gz", 0),
    "splice": partial(dense, "splice/splice.gz"),
    "madelon": partial(dense, "madelon/madelon_train.svm.gz"),
    "skin": partial(columns, "skin/Skin_NonSkin.txt.gz"),
}
MICROARRAYS: dict[str, Callable[[], Rows]] = {
    "arcene": partial(dense, "arcene/arcene_train.svm.gz"),
    "breast-chang": partial(dense, "breast-chang/breast-chang.svm.gz"),
    "breast-west": partial(dense, "breast-west/breast-west.svm.gz"),
    "cns": partial(dense, "cns/cns.svm.gz"),
    "colon": partial(dense, "colon/colon.svm.gz"),
    "dlbcl": partial(dense, "dlbcl/dlbcl-7129.svm.gz"),
    "prostate": partial(dense, "prostate/prostate.svm.gz"),
}
SCALED = ("breast_cancer", "digits", "iris", "wine")  # fitted by default also with standardised columns
UNEQUAL: dict[str, Callable[[], Rows]] = {
    "unequal-200k": partial(unequal, 200_000, 50),
    "unequal-1m": partial(unequal, 1_000_000, 20),
}


def standardised(X: np.ndarray) -> np.ndarray:
    """Return columns of mean 0 and variance 1."""
    return (X - X.mean(axis=0)) / np.where(X.std(axis=0) > 0.0, X.std(axis=0), 1.0)


def _wbc() -> Rows:
    """Return the 683 rows of WBC without missing values."""
    rows = np.genfromtxt(path("wbc/breast-cancer-wisconsin.data.gz"), delimiter=",")
    whole = rows[~np.isnan(rows).any(axis=1)]
    return whole[:, 1:10], whole[:, 10]


def _votes() -> Rows:
    """Return the votes: y, n, ? are 1, -1, 0."""
    text = np.genfromtxt(path("votes/house-votes-84.data.gz"), delimiter=",", dtype=str)
    return np.select([text[:, 1:] == "y", text[:, 1:] == "n"], [1.0, -1.0], 0.0), text[:, 0]


# sets of the benchmarks of norms, the largest first
NORM_SETS: dict[str, Callable[[], Rows]] = {
    **{name: DATASETS[name] for name in ("mnist", "reuters", "web", "adult", "pcmac", "mushrooms")},
    "usps": partial(columns, "usps/zip.train.gz", 0),
    **{name: SETS[name] for name in SETS if name not in SCALED},
    **MICROARRAYS,
    "wbc": _wbc,
    "votes": _votes,
    "australian": partial(sparse, "australian/australian_scale.gz"),
    "a1a": partial(sparse, "adult/a1a.gz"),
}


def most_frequent(name: str) -> Rows:
    """Return a set of `NORM_SETS` with the most frequent class against the others."""
    X, y = NORM_SETS[name]()
    values, counts = np.unique(y, return_counts=True)
    return X if sp.issparse(X) else np.ascontiguousarray(X, dtype=float), signs(y, values[counts.argmax()])


@dataclass(frozen=True)
class KernelSet:
    """Data set with its binary problems.

    Attributes
    ----------
    name : str
    X : ndarray or CSR matrix of shape (n, d)
    y : ndarray of int of shape (n,)
    C, gamma : float
    against : {"each other", "the rest"}
        With more than two classes: one binary problem for each pair of classes, or for each class against the rest.
    """

    name: str
    X: Any
    y: np.ndarray
    C: float
    gamma: float
    against: str = "each other"

    def problems(self) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        """Yield the row indices and the labels of every binary problem: 1.0 for the first class, -1.0 for the other."""
        classes = np.unique(self.y)
        if self.against == "the rest":
            for one in classes:
                yield np.arange(self.y.size), signs(self.y, one)
            return
        for k, one in enumerate(classes):
            for other in classes[k + 1 :]:
                places = np.flatnonzero((self.y == one) | (self.y == other))
                yield places, signs(self.y[places], one)


def kernel_sets() -> dict[str, Callable[[], KernelSet]]:
    """Return the loaders of the data sets of the kernel benchmarks, by name."""

    def binary(name: str, file: str) -> KernelSet:
        X, y = sparse(file)
        return KernelSet(name, X, (y > 0).astype(int), 1.0, 0.05)

    def scaled(name: str, load: Callable[[], Rows], against: str) -> KernelSet:
        X, y = load()
        return KernelSet(
            name, X, np.unique(y, return_inverse=True)[1], 10.0, 1.0 / (X.shape[1] * X.var()), against
        )

    def usps() -> Rows:
        X, y = columns("usps/zip.train.gz", 0)
        return (X + 1.0) / 2.0, y

    def letter() -> Rows:
        X, y = SETS["letter"]()
        return X / 15.0, y

    def mnist() -> Rows:
        X, y = digits()
        return X[:10_000], y[:10_000]

    made: dict[str, Callable[[], KernelSet]] = {
        "a9a": partial(binary, "a9a", "adult/a9a.gz"),
        "w7a": partial(binary, "w7a", "web/w7a.gz"),
    }
    for name, load in {"usps": usps, "letter": letter, "mnist, 10,000": mnist}.items():
        short = name.partition(",")[0]
        made[f"{short}-ovo"] = partial(scaled, name, load, "each other")
        made[f"{short}-ovr"] = partial(scaled, name, load, "the rest")
    return made
