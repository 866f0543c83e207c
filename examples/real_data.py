"""Loaders of the real data of the examples, from the folder in the environment variable MAXMARGIN_DATA.

The folder holds files of the LIBSVM and UCI collections, with the paths below.
"""

from __future__ import annotations

import gzip
import os
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.datasets import load_svmlight_file

ROOT = Path(__file__).resolve().parents[1]
FOLDER = (ROOT / os.environ.get("MAXMARGIN_DATA", "../shared/data")).resolve()

# path of a file, and its number of columns
SVMLIGHT = {
    "adult": ("adult/a9a.gz", 123),
    "adult-test": ("adult/a9a.t.gz", 123),
    "web": ("web/w7a.gz", 300),
    "web-test": ("web/w7a.t.gz", 300),
    "reuters": ("reuters-moneyfx/money-fx.trn.gz", 8315),
    "reuters-test": ("reuters-moneyfx/money-fx.tst.gz", 8315),
    "pcmac": ("pcmac/pcmac.svm.gz", 3289),
    "sonar": ("sonar/sonar-aspect.train.svm.gz", 60),
    "mushrooms": ("mushrooms/mushrooms.gz", 112),
    "australian": ("australian/australian_scale.gz", 14),
    "german": ("german/german.numer.svm.gz", 24),
    "heart": ("heart/heart_scale.gz", 13),
    "diabetes": ("diabetes/pima-diabetes.svm.gz", 8),
    "splice": ("splice/splice.gz", 60),
    "colon": ("colon/colon.svm.gz", 2000),
    "prostate": ("prostate/prostate.svm.gz", 12600),
    "dlbcl": ("dlbcl/dlbcl-7129.svm.gz", 7129),
    "cns": ("cns/cns.svm.gz", 7129),
    "arcene": ("arcene/arcene_train.svm.gz", 10000),
}
DENSE = {
    "colon",
    "prostate",
    "dlbcl",
    "cns",
    "arcene",
    "sonar",
    "heart",
    "german",
    "diabetes",
    "splice",
    "australian",
}
MNIST = {"mnist": "train", "mnist-test": "t10k"}


class MissingDataError(FileNotFoundError):
    """Error for a file of an example that does not exist."""


def load(name: str) -> tuple[Any, np.ndarray]:
    """Return the rows and the labels of a data set; rows are dense if most entries are not zero.

    Raises
    ------
    MissingDataError
        If the file does not exist; the message contains its path.
    """
    if name in MNIST:
        return _pictures(MNIST[name])
    if name == "skin":
        table = np.loadtxt(_path("skin/Skin_NonSkin.txt.gz"))
        return table[:, :3], np.where(table[:, 3] == 1, "skin", "no skin")
    file, columns = SVMLIGHT[name]
    X, y = load_svmlight_file(str(_path(file)), n_features=columns)
    if name in DENSE:
        return X.toarray(), y.astype(int)
    # 32-bit indices, which most packages expect
    X.indices, X.indptr = X.indices.astype(np.int32), X.indptr.astype(np.int32)
    return X, y.astype(int)


def _pictures(part: str) -> tuple[np.ndarray, np.ndarray]:
    """Return images of digits, 28 x 28 grey values from 0 to 1, and their labels."""
    with gzip.open(_path(f"mnist/{part}-images-idx3-ubyte.gz")) as file:
        X = np.frombuffer(file.read(), np.uint8, offset=16).reshape(-1, 784)
    with gzip.open(_path(f"mnist/{part}-labels-idx1-ubyte.gz")) as file:
        y = np.frombuffer(file.read(), np.uint8, offset=8)
    return X / np.float32(255.0), y.astype(int)


def _path(file: str) -> Path:
    path = FOLDER / file
    if not path.exists():
        raise MissingDataError(
            f"{path} does not exist, and this example needs it: set MAXMARGIN_DATA to the folder of the data sets. "
            "Other examples use data that scikit-learn includes."
        )
    return path
