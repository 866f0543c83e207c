"""Text models: layout and meaning of the files, and models that no file can hold."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.datasets import load_iris
from sklearn.exceptions import NotFittedError
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import maxmargin as mm
from maxmargin import KernelMaxMarginClassifier, MaxMarginClassifier

X, THREE_CLASSES = load_iris(return_X_y=True)
TWO_CLASSES = np.where(THREE_CLASSES == 1, 1, -1)
NAMES = np.array(["setosa", "versicolor", "virginica"])[THREE_CLASSES]
NEW = np.vstack([X + 0.25, np.random.default_rng(0).normal(3.0, 3.0, (300, 4)), np.zeros((1, 4))])
OVO = {"multi_class": "ovo"}


@pytest.fixture
def path(tmp_path):
    return tmp_path / "a.model"


def refusal(function, *arguments, **options):
    """Call a function that must raise ModelFileError; return the one-line message."""
    with pytest.raises(mm.ModelFileError) as caught:
        function(*arguments, **options)
    assert "\n" not in str(caught.value)
    return str(caught.value)


def lines_of(path):
    """Return the header of a text model as a dict of words, and the lines of its block."""
    lines = path.read_text().splitlines()
    block = next(k for k, line in enumerate(lines) if line in ("w", "SV"))
    return {line.split()[0]: line.split()[1:] for line in lines[:block]}, lines[block + 1 :]


def predicted_by_liblinear(path, rows):
    """Predict as liblinear's `predict` does: the label of the largest score; of two, the first where it is positive."""
    header, lines = lines_of(path)
    weights = np.array([line.split() for line in lines], float)
    rows = np.column_stack([rows, np.ones(len(rows))])[:, : len(weights)]
    scores, labels = rows @ weights, np.array(header["label"], int)
    return labels[np.where(scores[:, 0] > 0.0, 0, 1) if len(labels) == 2 else scores.argmax(axis=1)]


class TestMeaning:
    def test_every_double_survives(self, path):
        numbers = [0.1, -0.0, 5e-324, -1.7976931348623157e308, 1 / 3, 2.0**-1074 * 3, np.nextafter(1, 2)]
        model = MaxMarginClassifier(fit_intercept=False).fit(np.eye(7), [0, 1, 0, 1, 0, 1, 0])
        model.coef_ = np.array([numbers])
        mm.to_liblinear(model, path)
        assert np.array(lines_of(path)[1], float).tobytes() == model.coef_.tobytes()

    @pytest.mark.parametrize("labels", [TWO_CLASSES, THREE_CLASSES, 9.0 - 4 * THREE_CLASSES])
    @pytest.mark.parametrize("kernel", [False, True])
    def test_liblinear_predicts_with_the_file_as_the_model(self, labels, kernel, path):
        model = KernelMaxMarginClassifier(kernel="linear") if kernel else MaxMarginClassifier()
        mm.to_liblinear(model.fit(X, labels), path)
        assert np.array_equal(predicted_by_liblinear(path, NEW), model.predict(NEW))

    def test_files_have_the_documented_layout(self, path):
        model = MaxMarginClassifier().fit(X, TWO_CLASSES)
        mm.to_liblinear(model, path)
        lines = path.read_text().splitlines()
        assert lines[:6] == [
            "solver_type L2R_L2LOSS_SVC", "nr_class 2", "label 1 -1", "nr_feature 4", "bias 1", "w"
        ]  # fmt: skip
        assert [float(line) for line in lines[6:]] == [*model.coef_[0], model.intercept_[0]]
        mm.to_liblinear(MaxMarginClassifier(fit_intercept=False, loss="hinge").fit(X, TWO_CLASSES), path)
        assert path.read_text().splitlines()[:5:4] == ["solver_type L2R_L1LOSS_SVC_DUAL", "bias -1"]
        model = KernelMaxMarginClassifier(kernel="poly", degree=3, gamma=0.5, coef0=-0.0, C=1.0)
        mm.to_libsvm(model.fit([[0.0, 1.0], [0.0, -2.0], [3.0, 0.0]], [1, -1, -1]), path)
        lines = path.read_text().splitlines()
        count = len(model.support_)
        assert lines[:7] == [
            "svm_type c_svc", "kernel_type polynomial", "degree 3", "gamma 0.5", "coef0 -0", "nr_class 2",
            f"total_sv {count}",
        ]  # fmt: skip
        assert lines[8:10] == ["label 1 -1", f"nr_sv 1 {count - 1}"]
        assert lines[11].split()[1:] == ["2:1"]  # the support vector of class 1, zeros left out

    def test_support_vectors_of_pairs_give_the_scores(self, path):
        model = KernelMaxMarginClassifier(gamma=0.7, decision_function_shape="ovo", **OVO).fit(
            X, THREE_CLASSES
        )
        mm.to_libsvm(model, path, labels=[7, 3, 5])
        header, lines = lines_of(path)
        assert header["label"] == ["7", "3", "5"]
        counts = np.array(header["nr_sv"], int)
        numbers = np.array([[word.split(":")[-1] for word in line.split()] for line in lines], float)
        coefficients, vectors = numbers[:, :2], numbers[:, 2:]  # no entry of iris is 0
        values = np.exp(-0.7 * ((NEW[:, None] - vectors) ** 2).sum(axis=2))
        ends = np.cumsum([0, *counts])
        scores = []
        for (i, j), rho in zip(((0, 1), (0, 2), (1, 2)), map(float, header["rho"]), strict=True):
            first, second = slice(ends[i], ends[i + 1]), slice(ends[j], ends[j + 1])
            scores.append(
                values[:, first] @ coefficients[first, j - 1]
                + values[:, second] @ coefficients[second, i]
                - rho
            )
        assert np.allclose(np.column_stack(scores), model.decision_function(NEW), rtol=0.0, atol=1e-12)


class CustomMPU(mm.algorithms.MPU):
    """An algorithm that model files do not know."""


class TestUnsupportedModels:
    def test_string_labels_need_integer_labels(self, path):
        model = MaxMarginClassifier().fit(X, NAMES)
        assert "labels=[0, 1, ...]" in refusal(mm.to_liblinear, model, path)
        wrong = [1, 2], [1, 1, 2], [0.5, 1, 2], [1, 2, 2**31], [None, 1, 2], [[1], 2, 3], [np.nan, 1, 2], 7
        for labels in wrong:
            assert "whole numbers" in refusal(mm.to_liblinear, model, path, labels=labels)
        assert not path.exists()
        mm.to_liblinear(model, path, labels=[30, 10, 20])
        number = {"setosa": 30, "versicolor": 10, "virginica": 20}
        assert predicted_by_liblinear(path, NEW).tolist() == [number[name] for name in model.predict(NEW)]

    @pytest.mark.parametrize(
        ("write", "model", "expected"),
        [
            (mm.to_liblinear, KernelMaxMarginClassifier(kernel="linear", **OVO), 'multi_class="ovr"'),
            (mm.to_liblinear, KernelMaxMarginClassifier(), "to_libsvm"),
            (mm.to_libsvm, KernelMaxMarginClassifier(), 'multi_class="ovo"'),
            (mm.to_libsvm, MaxMarginClassifier(), "to_liblinear"),
            (mm.to_liblinear, make_pipeline(StandardScaler(), MaxMarginClassifier()), "to_onnx"),
            (mm.to_libsvm, KernelMaxMarginClassifier(kernel="laplacian", **OVO), "laplacian"),
            (mm.save, KernelMaxMarginClassifier(kernel=lambda A, B: A @ B.T), "no code"),
            (mm.save, MaxMarginClassifier(algorithm=CustomMPU()), 'algorithm="auto"'),
            (mm.save, make_pipeline(MaxMarginClassifier()), "save writes models of"),
        ],
    )
    def test_models_that_no_file_can_hold_are_refused(self, write, model, expected, path):
        assert expected in refusal(write, model.fit(X, THREE_CLASSES), path)
        assert not path.exists()

    def test_unfitted_and_infinite_models_are_refused(self, path):
        for write in (mm.to_liblinear, mm.to_libsvm, mm.save):
            with pytest.raises(NotFittedError):
                write(MaxMarginClassifier(), path)
        broken = MaxMarginClassifier().fit(X, TWO_CLASSES)
        broken.coef_ = broken.coef_ * np.inf
        assert "not finite" in refusal(mm.to_liblinear, broken, path)
        odd = MaxMarginClassifier().fit(X, TWO_CLASSES).set_params(max_time=object())
        assert "a model file can hold numbers and strings" in refusal(mm.save, odd, path)
