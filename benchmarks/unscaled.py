"""Dense data sets without scaling, with the labels of all their classes."""

from __future__ import annotations

import csv
import gzip
from collections.abc import Callable
from typing import Any

import numpy as np
from sklearn.datasets import load_breast_cancer, load_digits, load_iris, load_svmlight_file, load_wine

from .datasets import _path

Rows = tuple[np.ndarray, np.ndarray]


def _svmlight(file: str) -> Rows:
    X, y = load_svmlight_file(str(_path(file)))
    return X.toarray(), y


def _columns(file: str) -> Rows:
    """Read a table of numbers, the label in the last column."""
    rows = np.loadtxt(_path(file))
    return np.ascontiguousarray(rows[:, :-1]), rows[:, -1]


def _csv(file: str, label: int) -> Rows:
    """Read comma-separated numbers, the label in this column."""
    with gzip.open(_path(file), "rt") as stream:
        rows = [row for row in csv.reader(stream) if row]
    y = np.array([row[label] for row in rows])
    return np.array([np.delete(np.array(row, dtype=object), label) for row in rows]).astype(float), y


def _toy(load: Callable[..., Any]) -> Rows:
    """Load a toy data set of scikit-learn."""
    found = load()
    return found.data, found.target


def unequal(n: int, d: int, seed: int = 0) -> Rows:
    """Generate normal columns with scales from 0.01 to 100, and labels of a linear target with 10 % flipped."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, d))
    y = np.where(X @ rng.standard_normal(d) > 0.0, 1.0, -1.0)
    y[rng.random(n) < 0.1] *= -1.0
    X *= rng.permutation(np.logspace(-2.0, 2.0, d))
    return X, y


SETS: dict[str, Callable[[], Rows]] = {
    "breast_cancer": lambda: _toy(load_breast_cancer),
    "digits": lambda: _toy(load_digits),
    "iris": lambda: _toy(load_iris),
    "wine": lambda: _toy(load_wine),
    "sonar": lambda: _csv("sonar/sonar.all-data.gz", -1),
    "ionosphere": lambda: _csv("ionosphere/ionosphere.data.gz", -1),
    "heart": lambda: _svmlight("heart/heart.svm.gz"),
    "german": lambda: _svmlight("german/german.numer.svm.gz"),
    "diabetes": lambda: _svmlight("diabetes/pima-diabetes.svm.gz"),
    "bupa": lambda: _svmlight("bupa/bupa.svm.gz"),
    "svmguide1": lambda: _svmlight("svmguide1/svmguide1.gz"),
    "satimage": lambda: _columns("satimage/sat.trn.gz"),
    "letter": lambda: _csv("letter/letter-recognition.data.gz", 0),
    "splice": lambda: _svmlight("splice/splice.gz"),
    "madelon": lambda: _svmlight("madelon/madelon_train.svm.gz"),
    "skin": lambda: _columns("skin/Skin_NonSkin.txt.gz"),
}
MICROARRAYS: dict[str, Callable[[], Rows]] = {
    name: lambda file=file: _svmlight(f"{file}.svm.gz")
    for name, file in {
        "arcene": "arcene/arcene_train",
        "breast-chang": "breast-chang/breast-chang",
        "breast-west": "breast-west/breast-west",
        "cns": "cns/cns",
        "colon": "colon/colon",
        "dlbcl": "dlbcl/dlbcl-7129",
        "prostate": "prostate/prostate",
    }.items()
}
