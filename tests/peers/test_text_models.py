"""Text models beside liblinear and libsvm themselves: what we write they read, what they write we read."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.datasets import load_digits, load_iris

from maxmargin import (
    KernelMaxMarginClassifier,
    MaxMarginClassifier,
    from_liblinear,
    from_libsvm,
    to_liblinear,
    to_libsvm,
)

WHY = "needs a C++ compiler to install: pip install 'maxmargin[bench]'"
linear = pytest.importorskip("liblinear.liblinearutil", reason=f"liblinear-official {WHY}")
kernel = pytest.importorskip("libsvm.svmutil", reason=f"libsvm-official {WHY}")

RNG = np.random.default_rng(0)
IRIS, SPECIES = load_iris(return_X_y=True)
NEW = np.vstack([IRIS[::5], RNG.normal(3.0, 3.0, (60, 4)), np.zeros((1, 4))])
NEW_ROWS = sp.csr_matrix(NEW)
DIGITS, WHICH = (a[::4] for a in load_digits(return_X_y=True))
LABELS = {
    "plus and minus": np.where(SPECIES == 1, 1, -1),
    "minus first": np.where(SPECIES == 0, -3, 8),
    "three": SPECIES,
    "three, the largest first": 9 - 4 * SPECIES,
}


def decisions(classes, labels, values):
    """What a package says, in our order: one column of two classes, else one a class."""
    values = np.asarray(values)
    if len(labels) == 2:
        return values[:, 0] * (1.0 if labels[0] == classes[1] else -1.0)
    return values[:, [labels.index(label) for label in classes.tolist()]]


def pairs(classes, labels, values):
    """The values of pairs in our order, as decision_function_shape="ovo" has them."""
    values, found, k = np.asarray(values), {}, 0
    for i, first in enumerate(labels):
        for second in labels[i + 1 :]:
            found[first, second], found[second, first] = values[:, k], -values[:, k]
            k += 1
    classes = classes.tolist()
    return np.column_stack([found[a, b] for i, a in enumerate(classes) for b in classes[i + 1 :]])


@pytest.mark.parametrize("labels", LABELS)
@pytest.mark.parametrize("intercept", [True, False])
def test_liblinear_predicts_with_our_file(labels, intercept, tmp_path):
    model = MaxMarginClassifier(fit_intercept=intercept).fit(IRIS, LABELS[labels])
    to_liblinear(model, tmp_path / "a.model")
    theirs = linear.load_model(str(tmp_path / "a.model"))
    said, _, values = linear.predict([], NEW_ROWS, theirs, "-q")
    assert np.array_equal(said, model.predict(NEW))
    found = decisions(model.classes_, theirs.get_labels(), values)
    assert np.allclose(found, model.decision_function(NEW), rtol=1e-13, atol=1e-13)


@pytest.mark.parametrize("labels", LABELS)
@pytest.mark.parametrize("bias", [-1, 2.5])
@pytest.mark.parametrize("solver", [0, 1, 2, 3, 4, 5, 6, 7])
def test_we_predict_with_a_file_of_liblinear(labels, bias, solver, tmp_path):
    theirs = linear.train(LABELS[labels], sp.csr_matrix(IRIS), f"-s {solver} -B {bias} -q")
    linear.save_model(str(tmp_path / "a.model"), theirs)
    said, _, values = linear.predict([], NEW_ROWS, theirs, "-q")
    ours = from_liblinear(tmp_path / "a.model")
    assert np.array_equal(ours.predict(NEW), said)
    if solver != 4 or ours.classes_.size > 2:  # of two classes in one problem, its Python shows no scores
        found = decisions(ours.classes_, theirs.get_labels(), values)
        assert np.allclose(ours.decision_function(NEW), found, rtol=1e-12, atol=1e-12)


KERNELS = [
    ("rbf", {"gamma": 0.4}, "-t 2 -g 0.4"),
    ("poly", {"gamma": 0.4, "degree": 3, "coef0": 0.5}, "-t 1 -g 0.4 -d 3 -r 0.5"),
    ("linear", {}, "-t 0"),
    ("sigmoid", {"gamma": 0.01, "coef0": -0.5}, "-t 3 -g 0.01 -r -0.5"),
]


@pytest.mark.parametrize("labels", LABELS)
@pytest.mark.parametrize(("name", "parameters", "words"), KERNELS[:3], ids=lambda value: str(value))
def test_libsvm_predicts_with_our_file(labels, name, parameters, words, tmp_path):
    model = KernelMaxMarginClassifier(kernel=name, multi_class="ovo", **parameters).fit(IRIS, LABELS[labels])
    to_libsvm(model, tmp_path / "a.model")
    theirs = kernel.svm_load_model(str(tmp_path / "a.model"))
    said, _, values = kernel.svm_predict([], NEW_ROWS, theirs, "-q")
    assert np.array_equal(said, model.predict(NEW))
    model.set_params(decision_function_shape="ovo" if model.classes_.size > 2 else "ovr")
    order = pairs if model.classes_.size > 2 else decisions
    found = order(model.classes_, theirs.get_labels(), values)
    mine = model.decision_function(NEW)
    assert np.allclose(found, mine, rtol=1e-10, atol=1e-10 * np.abs(mine).max())


@pytest.mark.parametrize("labels", LABELS)
@pytest.mark.parametrize(("name", "parameters", "words"), KERNELS, ids=lambda value: str(value))
@pytest.mark.parametrize("machine", ["-s 0", "-s 1 -n 0.1", "-s 0 -b 1"])
def test_we_predict_with_a_file_of_libsvm(labels, name, parameters, words, machine, tmp_path):
    trained = kernel.svm_train(LABELS[labels], sp.csr_matrix(IRIS), f"{machine} {words} -q")
    kernel.svm_save_model(str(tmp_path / "a.model"), trained)
    # its Python writes all values of a nu_svc into room for one; the other kind predicts alike
    (tmp_path / "b.model").write_text((tmp_path / "a.model").read_text().replace("nu_svc", "c_svc"))
    theirs = kernel.svm_load_model(str(tmp_path / "b.model"))
    said, _, values = kernel.svm_predict([], NEW_ROWS, theirs, "-q")
    ours = from_libsvm(tmp_path / "a.model")
    assert np.array_equal(ours.predict(NEW), said)
    several = ours.classes_.size > 2
    ours.set_params(decision_function_shape="ovo" if several else "ovr")
    found = (pairs if several else decisions)(ours.classes_, theirs.get_labels(), values)
    mine = ours.decision_function(NEW)
    assert np.allclose(mine, found, rtol=1e-10, atol=1e-10 * np.abs(mine).max())


def test_ten_classes_of_many_columns(tmp_path):
    """Votes of 45 pairs are even now and then: the order of the file decides, there as here."""
    theirs = kernel.svm_train(WHICH[::-1], sp.csr_matrix(DIGITS[::-1]), "-t 2 -g 0.0005 -q")
    kernel.svm_save_model(str(tmp_path / "a.model"), theirs)
    read = from_libsvm(tmp_path / "a.model", n_features=64)
    some = np.vstack([DIGITS[::4], RNG.uniform(0.0, 16.0, (100, 64))])
    said = kernel.svm_predict([], sp.csr_matrix(some), theirs, "-q")[0]
    assert np.array_equal(read.predict(some), said)
    to_libsvm(read, tmp_path / "b.model")
    again = kernel.svm_load_model(str(tmp_path / "b.model"))
    assert np.array_equal(kernel.svm_predict([], sp.csr_matrix(some), again, "-q")[0], said)
