"""Data sets of the kernel benchmarks. This module imports no classifier."""

from __future__ import annotations

import csv
import gzip
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from .datasets import _idx, _path, _svmlight


@dataclass(frozen=True)
class Set:
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
                yield np.arange(self.y.size), np.where(self.y == one, 1.0, -1.0)
            return
        for k, one in enumerate(classes):
            for other in classes[k + 1 :]:
                places = np.flatnonzero((self.y == one) | (self.y == other))
                yield places, np.where(self.y[places] == one, 1.0, -1.0)


def sets() -> dict[str, Callable[[], Set]]:
    """Return the loaders of the data sets, by name."""

    def binary(name: str, file: str, C: float, gamma: float) -> Set:
        data = _svmlight(name, file, "")
        return Set(name, data.X, (data.y > 0).astype(int), C, gamma)

    def scaled(name: str, X: np.ndarray, y: np.ndarray, against: str) -> Set:
        return Set(name, X, y, 10.0, 1.0 / (X.shape[1] * X.var()), against)

    def usps(against: str) -> Set:
        rows = np.loadtxt(_path("usps/zip.train.gz"))
        return scaled("usps", (rows[:, 1:] + 1.0) / 2.0, rows[:, 0].astype(int), against)

    def letter(against: str) -> Set:
        with gzip.open(_path("letter/letter-recognition.data.gz"), "rt") as file:
            rows = list(csv.reader(file))
        X = np.array([row[1:] for row in rows], dtype=float) / 15.0
        return scaled("letter", X, np.array([ord(row[0]) for row in rows]), against)

    def mnist(against: str) -> Set:
        X = _idx("mnist/train-images-idx3-ubyte.gz").reshape(60_000, 784)[:10_000] / 255.0
        y = _idx("mnist/train-labels-idx1-ubyte.gz")[:10_000].astype(int)
        return scaled("mnist, 10,000", X, y, against)

    made: dict[str, Callable[[], Set]] = {
        "a9a": lambda: binary("a9a", "adult/a9a.gz", 1.0, 0.05),
        "w7a": lambda: binary("w7a", "web/w7a.gz", 1.0, 0.05),
    }
    for name, make in (("usps", usps), ("letter", letter), ("mnist", mnist)):
        made[f"{name}-ovo"] = lambda make=make: make("each other")
        made[f"{name}-ovr"] = lambda make=make: make("the rest")
    return made
