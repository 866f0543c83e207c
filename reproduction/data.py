"""Data sets of the papers, in the order of rows that the papers use."""

from __future__ import annotations

import gzip
import os
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.datasets import load_svmlight_file

ROOT = Path(__file__).parents[1]

# rows of WBC that the CRAMMA paper removes: numbers from 1, among the 683 rows without missing values
REMOVED = (2, 4, 191, 217, 227, 245, 252, 286, 307, 420, 475)


def data_folder() -> Path:
    """Return the folder of the data files: that of MAXMARGIN_DATA, or a folder next to the checkout."""
    return ROOT / os.environ.get("MAXMARGIN_DATA", "../shared/data")


Data = tuple[Any, np.ndarray]  # rows and labels 1 and -1


def sonar(folder: Path) -> tuple[np.ndarray, np.ndarray]:
    """Return the aspect-angle training set: 49 mines, then 55 rocks, in the order of the original files."""
    X, y = load_svmlight_file(str(folder / "sonar/sonar-aspect.train.svm.gz"))
    return np.ascontiguousarray(X.toarray()), y


def wbc(folder: Path) -> tuple[np.ndarray, np.ndarray]:
    """Return the 683 rows without missing values, raw, in the order of the file; malignant is +1."""
    rows = [line.split(",") for line in _lines(folder / "wbc/breast-cancer-wisconsin.data.gz")]
    table = np.array([row for row in rows if "?" not in row], dtype=float)
    return np.ascontiguousarray(table[:, 1:10]), np.where(table[:, 10] == 4, 1.0, -1.0)


def wbc_separable(folder: Path) -> tuple[np.ndarray, np.ndarray]:
    """Return the same rows without the 11 patterns whose removal makes them separable."""
    X, y = wbc(folder)
    keep = np.ones(y.size, bool)
    keep[np.array(REMOVED) - 1] = False
    return np.ascontiguousarray(X[keep]), y[keep]


def ionosphere(folder: Path) -> tuple[np.ndarray, np.ndarray]:
    """Return 351 rows of 34 numbers, raw; good is +1."""
    rows = [line.split(",") for line in _lines(folder / "ionosphere/ionosphere.data.gz")]
    return np.array([row[:34] for row in rows], dtype=float), _signs([row[34] for row in rows], "g")


def votes(folder: Path) -> tuple[np.ndarray, np.ndarray]:
    """Return 435 rows of 16 votes: y, n, ? are 1, -1, 0; republican is +1."""
    rows = [line.split(",") for line in _lines(folder / "votes/house-votes-84.data.gz")]
    code = {"y": 1.0, "n": -1.0, "?": 0.0}
    return np.array([[code[v] for v in row[1:]] for row in rows]), _signs(
        [row[0] for row in rows], "republican"
    )


def adult(folder: Path, rows: int | None = None) -> Data:
    """Return the first rows of the adult data, with 123 binary features."""
    X, y = load_svmlight_file(str(folder / "adult/a9a.gz"), n_features=123)
    return X[:rows], y[:rows]


def mnist(folder: Path, rows: int | None = None) -> tuple[np.ndarray, np.ndarray]:
    """Return the first training images, 784 pixels of 0 to 255, and their digits, in the order of the file."""
    pixels, digits = (
        np.frombuffer(
            gzip.decompress((folder / f"mnist/train-{name}.gz").read_bytes()), np.uint8, offset=head
        )
        for name, head in (("images-idx3-ubyte", 16), ("labels-idx1-ubyte", 8))
    )
    return pixels.reshape(-1, 784)[:rows].astype(float), digits[:rows].astype(int)


def r_of_k(
    r: int, seed: int, n: int = 100, k: int = 16, m: int = 1000, shift: float = 0.0
) -> tuple[np.ndarray, np.ndarray]:
    """Generate random signs, labelled +1 if at least r of the first k are +1 (half of the rows), shifted by `shift`."""
    rng = np.random.default_rng(seed)
    X = rng.choice([-1.0, 1.0], size=(m, n))
    y = np.repeat([1.0, -1.0], m // 2)
    counts = np.arange(k + 1)
    binomials = np.cumprod(np.r_[1.0, (k - counts[:-1]) / (counts[:-1] + 1.0)])
    for row, label in zip(X, y, strict=True):
        weights = np.where((counts >= r) == (label > 0), binomials, 0.0)
        row[:k] = -1.0
        row[rng.permutation(k)[: rng.choice(k + 1, p=weights / weights.sum())]] = 1.0
    order = rng.permutation(m)
    return X[order] + shift, y[order]


def _lines(path: Path) -> list[str]:
    with gzip.open(path, "rt") as file:
        return file.read().split()


def _signs(labels: list[str], positive: str) -> np.ndarray:
    return np.where(np.array(labels) == positive, 1.0, -1.0)
