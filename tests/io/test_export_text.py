"""Text models: layout and meaning of the files, and refusal of invalid files with the reason."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
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
LINEAR = "solver_type L2R_LR\nnr_class {}\nlabel {}\nnr_feature {}\nbias {}\nw\n"
LIBLINEAR = LINEAR.format(2, "1 -1", 2, 1) + "0.5 \n-1 \n2 \n"
LIBSVM = (
    "svm_type c_svc\nkernel_type rbf\ngamma 0.5\nnr_class 2\ntotal_sv 2\nrho 0.5\nlabel 1 -1\nnr_sv 1 1\nSV\n"
    "1 1:1 3:2 \n-1 2:1 \n"
)
TEXTS = {"liblinear": LIBLINEAR, "libsvm": LIBSVM}
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


class TestMeaning:
    def test_every_double_survives(self, path):
        numbers = [0.1, -0.0, 5e-324, -1.7976931348623157e308, 1 / 3, 2.0**-1074 * 3, np.nextafter(1, 2)]
        path.write_text(LIBLINEAR)
        model = mm.from_liblinear(path)
        model.coef_, model.n_features_in_ = np.array([numbers]), len(numbers)
        mm.to_liblinear(model, path)
        assert mm.from_liblinear(path).coef_.tobytes() == model.coef_.tobytes()

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

    @pytest.mark.parametrize(("first", "second"), [(1, -1), (-1, 1)])
    def test_zero_scores_are_decided_as_in_liblinear(self, first, second, path):
        path.write_text(LINEAR.format(2, f"{first} {second}", 1, -1) + "2 \n")
        model = mm.from_liblinear(path)
        mm.save(model, path)
        for copy in (model, mm.load(path)):
            # positive scores: the first label of the file; others: the second
            assert copy.predict([[3.0], [-3.0], [0.0]]).tolist() == [first, second, second]

    def test_classes_in_file_order_are_sorted(self, path):
        path.write_text(LINEAR.format(3, "5 -2 3", 2, 2) + "1 2 3 \n4 5 6 \n0.5 0.25 0.125 \n")
        model = mm.from_liblinear(path)
        assert model.classes_.tolist() == [-2, 3, 5]
        assert model.coef_.tolist() == [[2, 5], [3, 6], [1, 4]]
        assert model.intercept_.tolist() == [0.5, 0.25, 1.0]
        machine = KernelMaxMarginClassifier(gamma=0.7, **OVO).fit(X, THREE_CLASSES)
        mm.to_libsvm(machine, path, labels=[7, 3, 5])
        read = mm.from_libsvm(path)
        assert (read.labels_.tolist(), read.classes_.tolist()) == ([7, 3, 5], [3, 5, 7])
        assert read.predict(NEW).tolist() == [(7, 3, 5)[k] for k in machine.predict(NEW)]
        scores = machine.decision_function(NEW)[:, [1, 2, 0]]
        assert np.allclose(read.decision_function(NEW), scores, rtol=0.0, atol=1e-12)
        machine.decision_function_shape = read.decision_function_shape = "ovo"
        pairs = machine.decision_function(NEW)[:, [2, 0, 1]] * [1.0, -1.0, -1.0]
        assert np.allclose(read.decision_function(NEW), pairs, rtol=0.0, atol=1e-12)
        mm.to_libsvm(machine.fit(X, TWO_CLASSES), path, labels=[7, 3])
        assert np.allclose(-mm.from_libsvm(path).decision_function(NEW), machine.decision_function(NEW))

    def test_n_features_widens_a_model_for_sparse_rows(self, path):
        path.write_text(LIBSVM)
        wide = sp.csr_array([[1.0, 0.0, 2.0, 0.0, 1.0]])
        here = mm.from_libsvm(path).decision_function([[1.0, 0.0, 2.0]]) + 0.5
        assert here == pytest.approx(1.0 - np.exp(-0.5 * 6), rel=1e-14, abs=0.0)
        there = mm.from_libsvm(path, n_features=5).decision_function(wide) + 0.5
        assert there == pytest.approx(here * np.exp(-0.5), rel=1e-14, abs=0.0)
        path.write_text(LIBSVM.replace("rbf", "sigmoid\ncoef0 -1"))
        values = np.tanh(0.5 * NEW[:, :3] @ [[1.0, 0.0], [0.0, 1.0], [2.0, 0.0]] - 1.0)
        scores = mm.from_libsvm(path).decision_function(NEW[:, :3])
        # of at most 2.5
        assert scores == pytest.approx(values[:, 0] - values[:, 1] - 0.5, rel=0.0, abs=1e-14)
        assert "n_features=2" in refusal(mm.from_libsvm, path, n_features=2)


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
        assert mm.from_liblinear(path).predict(NEW).tolist() == [number[name] for name in model.predict(NEW)]

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

    def test_imported_models_have_no_certificate_and_learn_nothing(self, path):
        path.write_text(LIBSVM)
        model = mm.from_libsvm(path)
        with pytest.raises(mm.CertificateError, match="holds no proof of how good it is"):
            mm.verify(model, X, TWO_CLASSES)
        with pytest.raises(ValueError, match="fitted elsewhere, and learns nothing"):
            model.fit(X, TWO_CLASSES)


@pytest.mark.parametrize("form", TEXTS)
def test_every_truncation_is_refused(form, path):
    read, text = getattr(mm, f"from_{form}"), TEXTS[form]
    for cut in range(len(text)):
        path.write_text(text[:cut])
        assert refusal(read, path).startswith(str(path))
    path.write_text(text)
    assert read(path).n_features_in_ > 0
    with pytest.raises(FileNotFoundError):
        read(path.with_suffix(".none"))


@pytest.mark.parametrize(
    ("form", "old", "new", "message"),
    [
        ("liblinear", "solver_type L2R_LR", "svm_type c_svc", "does not begin with 'solver_type'"),
        ("liblinear", "L2R_LR", "L2R_L2LOSS_SVR", "'L2R_L2LOSS_SVR' is not a classifier of liblinear"),
        ("liblinear", "nr_class 2", "nr_class 1", "'nr_class' must be at least 2"),
        ("liblinear", "nr_class 2", "nr_class two", "two"),
        ("liblinear", "nr_class 2\n", "", "there is no line 'nr_class'"),
        ("liblinear", "label 1 -1", "label 1", "'label' must be 2 numbers; got 1"),
        ("liblinear", "label 1 -1", "label 1 1", "the same label"),
        ("liblinear", "nr_feature 2", f"nr_feature {10**9}", "is cut short"),
        ("liblinear", "nr_feature 2", "nr_feature 1", "is too long"),
        ("liblinear", "bias 1", "bias inf", "finite"),
        ("liblinear", "-1 \n", "-1x \n", "line 8: "),
        ("liblinear", "w\n", "v\n", "no line 'w'"),
        ("libsvm", "c_svc", "epsilon_svr", "'epsilon_svr' is not a classifier of libsvm"),
        ("libsvm", "kernel_type rbf", "kernel_type precomputed", "the kernel 'precomputed' cannot be read"),
        ("libsvm", "gamma 0.5\n", "", "there is no line 'gamma'"),
        ("libsvm", "total_sv 2", "total_sv 3", "must add up to 'total_sv'"),
        ("libsvm", "nr_sv 1 1", "nr_sv 3 -1", "must add up to 'total_sv'"),
        ("libsvm", "nr_sv 1 1", f"nr_sv {2**63 + 1} {2**63 + 1}", "'nr_sv' must be whole numbers of 32 bits"),
        ("libsvm", "-1 2:1 \n", "-1 2:1 \n-1 2:1 \n", "is too long"),
        ("libsvm", "-1 2:1 \n", "\n", "line 11: a support vector must be 1 coefficients"),
        ("libsvm", "-1 2:1 \n", "-1 2 \n", "line 11: "),
        ("libsvm", "-1 2:1 \n", "-1 0:1 \n", "line 11: indices must be from 1"),
        ("libsvm", "3:2", "1:2", "line 10: indices must be from 1"),
        ("libsvm", "3:2", "3:inf", "line 10: "),
        ("libsvm", "3:2", f"{2**62}:2", "line 10: indices must be from 1 to 2147483647"),
        ("libsvm", "gamma 0.5", "gamma -0.5", "must be at least 0"),
    ],
)
def test_invalid_files_are_refused(form, old, new, message, path):
    assert TEXTS[form].count(old) == 1
    path.write_text(TEXTS[form].replace(old, new))
    assert message in refusal(getattr(mm, f"from_{form}"), path)
