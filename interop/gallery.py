"""Measure ten scripts like those of scikit-learn's gallery, as they are and with the import line changed.

Usage: python -m interop.gallery [--write]

Seconds of the processor count, after a first run of each script, which imports and compiles. A script sets `score`.
"""

from __future__ import annotations

import argparse
import statistics
import time
from typing import Any

from .scikit_learn_tests import write_part

PACKAGES = {
    "sklearn": "from sklearn.linear_model import SGDClassifier\nfrom sklearn.svm import SVC, LinearSVC"
}
PACKAGES["maxmargin"] = "from maxmargin.sklearn import SVC, LinearSVC, SGDClassifier"
COMMON = """
import numpy as np, warnings
from sklearn import datasets
from sklearn.model_selection import GridSearchCV, cross_val_score, train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
warnings.simplefilter("ignore")
def split(X, y):
    return train_test_split(X, y, random_state=0)
def digits():
    return split(*datasets.load_digits(return_X_y=True))
def text(n=2000, d=5000):
    rng = np.random.default_rng(0)
    import scipy.sparse as sp
    X = sp.random(n, d, 0.01, format="csr", random_state=0, data_rvs=lambda k: rng.exponential(size=k))
    return split(X, (X @ rng.normal(size=d) + rng.normal(size=n) > 0).astype(int))
"""
SCRIPTS = {
    "iris, four kernels": """
X, y = datasets.load_iris(return_X_y=True)
models = [SVC(kernel="linear"), LinearSVC(max_iter=10000), SVC(gamma=0.7), SVC(kernel="poly", degree=3)]
score = np.mean([model.fit(X[:, :2], y).score(X[:, :2], y) for model in models])""",
    "digits, SVC": """
X, Z, y, z = digits()
score = SVC(gamma=0.001).fit(X, y).score(Z, z)""",
    "digits, search over C and gamma": """
X, Z, y, z = digits()
grid = {"svc__C": [1, 10, 100], "svc__gamma": [1e-3, 1e-2]}
score = GridSearchCV(make_pipeline(StandardScaler(), SVC()), grid).fit(X, y).score(Z, z)""",
    "digits, LinearSVC in a pipeline": """
X, Z, y, z = digits()
score = make_pipeline(StandardScaler(), LinearSVC()).fit(X, y).score(Z, z)""",
    "breast cancer, cross-validation over C": """
X, y = datasets.load_breast_cancer(return_X_y=True)
models = [make_pipeline(StandardScaler(), LinearSVC(C=C, max_iter=20000)) for C in (0.01, 0.1, 1, 10)]
score = max(cross_val_score(model, X, y, cv=10).mean() for model in models)""",
    "sparse text, LinearSVC of both penalties": """
X, Z, y, z = text()
models = [LinearSVC(C=0.1), LinearSVC(penalty="l1", dual=False)]
score = np.mean([model.fit(X, y).score(Z, z) for model in models])""",
    "sparse text, SGDClassifier over alpha": """
X, Z, y, z = text()
models = [SGDClassifier(alpha=a, random_state=0) for a in (1e-4, 1e-3, 1e-2)]
score = max(model.fit(X, y).score(Z, z) for model in models)""",
    "synthetic rows, calibrated": """
from sklearn.calibration import CalibratedClassifierCV
X, Z, y, z = split(*datasets.make_classification(20000, 20, n_informative=8, random_state=0))
model = make_pipeline(StandardScaler(), CalibratedClassifierCV(LinearSVC()))
score = model.fit(X, y).score(Z, z)""",
    "multilabel, one against the rest": """
from sklearn.multiclass import OneVsRestClassifier
X, Z, y, z = split(*datasets.make_multilabel_classification(1000, 20, random_state=0))
score = OneVsRestClassifier(SVC(kernel="linear")).fit(X, y).score(Z, z)""",
    "wine, selection of features and unequal classes": """
from sklearn.feature_selection import SelectFromModel
X, Z, y, z = split(*datasets.load_wine(return_X_y=True))
chosen = SelectFromModel(LinearSVC(C=0.1, penalty="l1", dual=False))
model = make_pipeline(StandardScaler(), chosen, SVC(class_weight="balanced"))
score = model.fit(X, y).score(Z, z)""",
}


def run(package: str, script: str) -> tuple[float, float]:
    """Return the seconds of the processor that a script takes, and its score."""
    names: dict[str, Any] = {}
    exec(COMMON + PACKAGES[package], names)
    begun = time.process_time()
    exec(script, names)
    return time.process_time() - begun, float(names["score"])


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--write", action="store_true", help="update docs/reference/scikit_learn.md")
    parser.add_argument("--repeats", type=int, default=3, help="runs of each, of which the median counts")
    options = parser.parse_args()
    lines = ["| script | scikit-learn | maxmargin | scores |", "|---|---:|---:|---|"]
    total = {"sklearn": 0.0, "maxmargin": 0.0}
    for name, script in SCRIPTS.items():
        for package in total:
            run(package, script)
        rounds = [{package: run(package, script) for package in total} for _ in range(options.repeats)]
        seconds = {package: statistics.median(one[package][0] for one in rounds) for package in total}
        total = {package: total[package] + seconds[package] for package in total}
        theirs, ours = (f"{rounds[0][package][1]:.3f}" for package in total)
        scores = theirs if theirs == ours else f"{theirs}, {ours}"
        lines.append(f"| {name} | {seconds['sklearn']:.2f} s | {seconds['maxmargin']:.2f} s | {scores} |")
        print(lines[-1], flush=True)
    lines.append(f"| sum | {total['sklearn']:.1f} s | {total['maxmargin']:.1f} s | |")
    print(lines[-1])
    if options.write:
        write_part("times", "\n".join(lines))


if __name__ == "__main__":
    main()
