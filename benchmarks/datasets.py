"""Data sets of `docs/measurements/benchmarks.md`: CSR with 32-bit indices and float64 values, labels in {-1, +1}."""

from __future__ import annotations

import gzip
import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import scipy.sparse as sp
from sklearn.datasets import load_svmlight_file

ROOT = Path(__file__).parents[1]


class MissingDataError(FileNotFoundError):
    """Error for a file of the data folder that does not exist."""


@dataclass(frozen=True)
class Dataset:
    """Data of one binary problem.

    Attributes
    ----------
    name : str
    X : CSR matrix of shape (n, d)
    y : ndarray of shape (n,), entries -1.0 and 1.0
    note : str
        Remark for the table of the data sets.
    """

    name: str
    X: sp.csr_matrix
    y: np.ndarray
    note: str

    @property
    def nbytes(self) -> int:
        """Size of the matrix in bytes."""
        return self.X.data.nbytes + self.X.indices.nbytes + self.X.indptr.nbytes


def data_folder() -> Path:
    """Return the folder of the data files: that of MAXMARGIN_DATA, or a folder next to the checkout."""
    return ROOT / os.environ.get("MAXMARGIN_DATA", "../shared/data")


def _path(name: str) -> Path:
    path = data_folder() / name
    if not path.exists():
        raise MissingDataError(f"{path} is not there: set MAXMARGIN_DATA to the folder of the data sets")
    return path


def _csr(X: sp.csr_matrix) -> sp.csr_matrix:
    """Return a `csr_matrix` that all solvers read without a conversion."""
    X = sp.csr_matrix(X, dtype=np.float64)
    X.sum_duplicates()
    X.indices, X.indptr = X.indices.astype(np.int32), X.indptr.astype(np.int32)
    return X


def _svmlight(name: str, file: str, note: str, positive: float = 1.0) -> Dataset:
    X, labels = load_svmlight_file(str(_path(file)))
    return Dataset(name, _csr(X), np.where(labels == positive, 1.0, -1.0), note)


def adult() -> Dataset:
    """Return Adult a9a: 0/1 features."""
    return _svmlight("adult", "adult/a9a.gz", "a9a; all values 1")


def web() -> Dataset:
    """Return Web w8a: 0/1 features; 4,203 rows are zero."""
    return _svmlight("web", "web/w8a.gz", "w8a; all values 1; 4,203 rows are zero")


def mushrooms() -> Dataset:
    """Return Mushrooms: 0/1 features, separable; label 2 is the positive class."""
    return _svmlight("mushrooms", "mushrooms/mushrooms.gz", "all values 1; separable", positive=2.0)


def splice() -> Dataset:
    """Return splice junctions: 60 dense features, codes 1 to 4."""
    return _svmlight("splice", "splice/splice.gz", "train; dense rows kept as CSR")


def reuters() -> Dataset:
    """Return Reuters-21578, topic money-fx, training part."""
    return _svmlight("reuters", "reuters-moneyfx/money-fx.trn.gz", "money-fx, train")


def pcmac() -> Dataset:
    """Return two topics of 20 newsgroups: word counts."""
    return _svmlight("pcmac", "pcmac/pcmac.svm.gz", "word counts")


def _idx(file: str) -> np.ndarray:
    """Read an IDX file of unsigned bytes."""
    with gzip.open(_path(file), "rb") as stream:
        raw = stream.read()
    sides = [int.from_bytes(raw[4 + 4 * k : 8 + 4 * k], "big") for k in range(raw[3])]
    return np.frombuffer(raw, np.uint8, offset=4 + 4 * len(sides)).reshape(sides)


def mnist_digits(part: str = "train") -> tuple[np.ndarray, np.ndarray]:
    """Return MNIST, "train" or "t10k", as a dense float64 matrix in [0, 1], and the digits."""
    pixels = _idx(f"mnist/{part}-images-idx3-ubyte.gz").reshape(-1, 784)
    return pixels / 255.0, _idx(f"mnist/{part}-labels-idx1-ubyte.gz")


def mnist_dense() -> tuple[np.ndarray, np.ndarray]:
    """Return MNIST, 0 against the rest, as a dense float64 matrix in [0, 1]."""
    X, digits = mnist_digits()
    return X, np.where(digits == 0, 1.0, -1.0)


def mnist() -> Dataset:
    """Return MNIST, 0 against the rest, values in [0, 1]; as CSR, because liblinear has no dense rows."""
    X, y = mnist_dense()
    return Dataset("mnist", _csr(sp.csr_matrix(X)), y, "0 against the rest; values / 255; CSR for both sides")


def relevant(
    n: int = 20_000, d: int = 5_000, few: int = 20, own: int = 10, others: int = 40, seed: int = 0
) -> tuple[Dataset, np.ndarray]:
    """Generate separable rows, and return them with the relevant columns.

    Each row has standard normal values in 10 of the 20 relevant columns and in 40 others. The weights of the target
    have absolute values from 0.5 to 1.5. Rows whose inf-norm margin is below 0.02 are drawn again.
    """
    rng = np.random.default_rng(seed)
    places = np.sort(rng.choice(d, few, replace=False))
    rest = np.setdiff1d(np.arange(d), places)
    target = np.zeros(d)
    target[places] = rng.uniform(0.5, 1.5, few) * rng.choice([-1.0, 1.0], few)
    target /= np.abs(target).sum()
    columns, values = np.empty((n, own + others), np.int64), np.empty((n, own + others))
    rows = np.arange(n)
    while rows.size:
        columns[rows, :own] = places[np.argsort(rng.random((rows.size, few)), axis=1)[:, :own]]
        columns[rows, own:] = [rng.choice(rest, others, replace=False) for _ in rows]
        values[rows] = rng.standard_normal((rows.size, own + others))
        score = np.sum(values[rows] * target[columns[rows]], axis=1)
        rows = rows[np.abs(score) < 0.02]
    y = np.sign(np.sum(values * target[columns], axis=1))
    X = sp.csr_matrix((values.ravel(), columns.ravel(), np.arange(0, values.size + 1, own + others)), (n, d))
    X.sort_indices()
    return Dataset("generated", _csr(X), y, "20 relevant columns of 5,000, margin at least 0.02"), places


def generated(n: int = 200_000, d: int = 50_000, entries: int = 64, seed: int = 0) -> Dataset:
    """Generate rows with 64 non-zero entries and labels from a noisy linear target.

    The columns of a row are distinct and follow Zipf's law; the values are standard normal, divided by 8. The target
    has 200 features, drawn like the columns but without repetition, with standard normal weights. 10 % of the labels
    are flipped.
    """
    rng = np.random.default_rng(seed)
    share = 1.0 / np.arange(1.0, d + 1.0)
    share /= share.sum()
    edges = np.cumsum(share)
    columns = np.empty((n, entries), np.int32)
    columns[:] = np.minimum(np.searchsorted(edges, rng.random((n, entries))), d - 1)
    rows = np.arange(n)
    while rows.size:  # draw repeated columns of a row again
        block = np.sort(columns[rows], axis=1)
        again = np.zeros(block.shape, bool)
        again[:, 1:] = block[:, 1:] == block[:, :-1]
        block[again] = np.minimum(np.searchsorted(edges, rng.random(int(again.sum()))), d - 1)
        columns[rows] = block
        rows = rows[again.any(axis=1)]
    columns.sort(axis=1)
    values = rng.standard_normal(n * entries) / np.sqrt(entries)
    X = sp.csr_matrix(
        (values, columns.ravel(), np.arange(0, n * entries + 1, entries, dtype=np.int32)), (n, d)
    )
    target = np.zeros(d)
    target[rng.choice(d, 200, replace=False, p=share)] = rng.standard_normal(200)
    y = np.where(X @ target > 0.0, 1.0, -1.0)
    y[rng.random(n) < 0.1] *= -1.0
    return Dataset("generated", X, y, "Zipf columns, target on 200 features, 10 % of labels flipped, seed 0")


DATASETS: dict[str, Callable[[], Dataset]] = {
    "adult": adult,
    "web": web,
    "mushrooms": mushrooms,
    "splice": splice,
    "reuters": reuters,
    "pcmac": pcmac,
    "mnist": mnist,
    "generated": generated,
}
