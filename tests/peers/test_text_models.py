"""Text models beside liblinear and libsvm, which read the files of maxmargin."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.datasets import load_digits, load_iris

import maxmargin as mm

WHY = "needs a C++ compiler to install: pip install 'maxmargin[bench]'"
linear = pytest.importorskip("liblinear.liblinearutil", reason=f"liblinear-official {WHY}")
kernel = pytest.importorskip("libsvm.svmutil", reason=f"libsvm-official {WHY}")

RNG = np.random.default_rng(0)
IRIS, SPECIES = load_iris(return_X_y=True)
NEW = np.vstack([IRIS[::5], RNG.normal(3.0, 3.0, (60, 4)), np.zeros((1, 4))])
ROWS = sp.csr_matrix(NEW)
LABELS = [np.where(SPECIES == 1, 1, -1), np.where(SPECIES == 0, -3, 8), SPECIES, 9 - 4 * SPECIES]
each_labels = pytest.mark.parametrize("labels", LABELS, ids=["two", "minus first", "three", "largest first"])


def in_our_order(model, labels, values, pairs=False):
    """Return a package's scores as `decision_function` orders them: of two classes, of each class, or of pairs."""
    values, classes = np.asarray(values), model.classes_.tolist()
    if len(labels) == 2:
        return values[:, 0] * (1.0 if labels[0] == classes[1] else -1.0)
    if not pairs:
        return values[:, [labels.index(label) for label in classes]]
    names = [(first, second) for i, first in enumerate(labels) for second in labels[i + 1 :]]
    found = dict(zip(names, values.T, strict=True))
    found |= {(second, first): -scores for (first, second), scores in found.items()}
    return np.column_stack([found[a, b] for i, a in enumerate(classes) for b in classes[i + 1 :]])


def check_scores_of_liblinear(ours, theirs):
    predicted, _, values = linear.predict([], ROWS, theirs, "-q")
    assert np.array_equal(ours.predict(NEW), predicted)
    found = in_our_order(ours, theirs.get_labels(), values)
    assert np.allclose(ours.decision_function(NEW), found, rtol=1e-12, atol=1e-12)


@each_labels
@pytest.mark.parametrize("intercept", [True, False])
def test_liblinear_predicts_with_our_file(labels, intercept, tmp_path):
    model = mm.MaxMarginClassifier(fit_intercept=intercept).fit(IRIS, labels)
    mm.to_liblinear(model, tmp_path / "a.model")
    check_scores_of_liblinear(model, linear.load_model(str(tmp_path / "a.model")))


def check_scores_of_libsvm(ours, path):
    """Compare predictions and scores of a model with those of libsvm for this file."""
    theirs = kernel.svm_load_model(str(path))
    predicted, _, values = kernel.svm_predict([], ROWS, theirs, "-q")
    assert np.array_equal(ours.predict(NEW), predicted)
    ours.set_params(decision_function_shape="ovo" if ours.classes_.size > 2 else "ovr")
    found, scores = in_our_order(ours, theirs.get_labels(), values, pairs=True), ours.decision_function(NEW)
    assert np.allclose(found, scores, rtol=1e-10, atol=1e-10 * np.abs(scores).max())


KERNELS = [
    {"kernel": "rbf", "gamma": 0.4},
    {"kernel": "poly", "gamma": 0.4, "degree": 3, "coef0": 0.5},
    {"kernel": "linear"},
]


@each_labels
@pytest.mark.parametrize("parameters", KERNELS, ids=repr)
def test_libsvm_predicts_with_our_file(labels, parameters, tmp_path):
    model = mm.KernelMaxMarginClassifier(multi_class="ovo", **parameters).fit(IRIS, labels)
    mm.to_libsvm(model, tmp_path / "a.model")
    check_scores_of_libsvm(model, tmp_path / "a.model")


def test_ten_classes_of_many_columns(tmp_path):
    """Some votes of 45 pairs are equal: the order of the classes in the file decides in both packages."""
    digits, which = (a[::-4] for a in load_digits(return_X_y=True))
    some = np.vstack([digits[::4], RNG.uniform(0.0, 16.0, (100, 64))])
    model = mm.KernelMaxMarginClassifier(gamma=0.0005, multi_class="ovo").fit(digits, which)
    mm.to_libsvm(model, tmp_path / "a.model")
    theirs = kernel.svm_load_model(str(tmp_path / "a.model"))
    assert np.array_equal(kernel.svm_predict([], sp.csr_matrix(some), theirs, "-q")[0], model.predict(some))
