"""Text models and JSON: round trips are exact, and invalid files are refused with the reason."""

from __future__ import annotations

import json

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.datasets import load_iris
from sklearn.exceptions import NotFittedError
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from maxmargin import (
    CertificateError,
    ImportedKernelClassifier,
    KernelMaxMarginClassifier,
    MarginRFE,
    MaxMarginClassifier,
    MaxMarginClassifierCV,
    ModelFileError,
    OnlineMarginClassifier,
    from_dict,
    from_json,
    from_liblinear,
    from_libsvm,
    load,
    save,
    to_dict,
    to_json,
    to_liblinear,
    to_libsvm,
    verify,
)

X, THREE_CLASSES = load_iris(return_X_y=True)
TWO_CLASSES = np.where(THREE_CLASSES == 1, 1, -1)
STRING_CLASSES = np.array(["setosa", "versicolor", "virginica"])[THREE_CLASSES]
NEW = np.vstack([X + 0.25, np.random.default_rng(0).normal(3.0, 3.0, (300, 4)), np.zeros((1, 4))])
KERNELS = {
    "linear": {},
    "poly": {"degree": 2, "gamma": 0.3, "coef0": 1.0},
    "rbf": {"gamma": 0.7},
}


@pytest.fixture(scope="module")
def linear_models():
    return {
        k: MaxMarginClassifier().fit(X, y) for k, y in {"two": TWO_CLASSES, "three": THREE_CLASSES}.items()
    }


@pytest.fixture(scope="module")
def kernel_models():
    return {
        k: KernelMaxMarginClassifier(multi_class="ovo", gamma=0.7).fit(X, y)
        for k, y in {"two": TWO_CLASSES, "three": THREE_CLASSES}.items()
    }


def refusal(function, *arguments, **options):
    """Call a function that must raise ModelFileError; return the one-line message."""
    with pytest.raises(ModelFileError) as caught:
        function(*arguments, **options)
    assert "\n" not in str(caught.value)
    return str(caught.value)


def assert_equal_predictions(one, two):
    assert np.array_equal(one.decision_function(NEW), two.decision_function(NEW))
    assert np.array_equal(one.predict(NEW), two.predict(NEW))
    assert np.array_equal(one.classes_, two.classes_)


class TestLiblinear:
    @pytest.mark.parametrize("classes", ["two", "three"])
    @pytest.mark.parametrize("intercept", [True, False])
    def test_round_trip_preserves_the_model(self, classes, intercept, tmp_path):
        y = {"two": TWO_CLASSES, "three": THREE_CLASSES}[classes]
        model = MaxMarginClassifier(fit_intercept=intercept, loss="hinge").fit(X, y)
        to_liblinear(model, tmp_path / "a.model")
        copy = from_liblinear(tmp_path / "a.model")
        assert np.array_equal(copy.coef_, model.coef_)
        assert np.array_equal(copy.intercept_, model.intercept_)
        assert_equal_predictions(copy, model)
        to_liblinear(copy, tmp_path / "b.model")
        first, second = ((tmp_path / name).read_text().splitlines() for name in ("a.model", "b.model"))
        assert first[0] == "solver_type L2R_L1LOSS_SVC_DUAL"
        assert first[1:] == second[1:]
        assert f"bias {1 if intercept else -1}" in first

    def test_file_has_the_documented_layout(self, linear_models, tmp_path):
        to_liblinear(linear_models["two"], tmp_path / "a.model")
        lines = (tmp_path / "a.model").read_text().splitlines()
        coef, intercept = linear_models["two"].coef_[0], linear_models["two"].intercept_[0]
        assert lines[:6] == [
            "solver_type L2R_L2LOSS_SVC", "nr_class 2", "label 1 -1", "nr_feature 4", "bias 1", "w"
        ]  # fmt: skip
        assert [float(line) for line in lines[6:]] == [*coef, intercept]

    def test_every_double_survives_a_round_trip(self, linear_models, tmp_path):
        numbers = [0.1, -0.0, 5e-324, -1.7976931348623157e308, 1 / 3, 2.0**-1074 * 3, np.nextafter(1, 2)]
        model = from_dict(to_dict(linear_models["two"]))
        model.coef_, model.n_features_in_ = np.array([numbers]), len(numbers)
        for write, read in ((to_liblinear, from_liblinear), (to_json, from_json)):
            write(model, tmp_path / "a")
            assert read(tmp_path / "a").coef_.tobytes() == model.coef_.tobytes()

    @pytest.mark.parametrize("labels", [[1, -1], [-1, 1]])
    def test_zero_scores_are_decided_as_in_liblinear(self, labels, tmp_path):
        (tmp_path / "a.model").write_text(
            f"solver_type L2R_L2LOSS_SVC\nnr_class 2\nlabel {labels[0]} {labels[1]}\nnr_feature 1\nbias -1\nw\n2 \n"
        )
        model = from_liblinear(tmp_path / "a.model")
        assert model.classes_.tolist() == [-1, 1]
        assert model.coef_ == 2.0 * labels[0]
        # positive scores: the first label of the file; others: the second
        assert model.predict([[3.0], [-3.0], [0.0]]).tolist() == [labels[0], labels[1], labels[1]]
        save(model, tmp_path / "a.safetensors")
        assert load(tmp_path / "a.safetensors").predict([[0.0]]).tolist() == [labels[1]]
        assert from_dict(to_dict(model)).predict([[0.0]]).tolist() == [labels[1]]

    def test_classes_in_file_order_are_sorted(self, tmp_path):
        (tmp_path / "a.model").write_text(
            "solver_type L2R_LR\nnr_class 3\nlabel 5 -2 3\nnr_feature 2\nbias 2\nw\n"
            "1 2 3 \n4 5 6 \n0.5 0.25 0.125 \n"
        )
        model = from_liblinear(tmp_path / "a.model")
        assert model.classes_.tolist() == [-2, 3, 5]
        assert model.coef_.tolist() == [[2, 5], [3, 6], [1, 4]]
        assert model.intercept_.tolist() == [0.5, 0.25, 1.0]
        model.intercept_ = np.zeros(3)
        assert model.predict([[0.0, 0.0]]).tolist() == [5]

    def test_string_labels_need_integer_labels(self, tmp_path):
        model = MaxMarginClassifier().fit(X, STRING_CLASSES)
        message = refusal(to_liblinear, model, tmp_path / "a.model")
        assert "labels=[0, 1, ...]" in message
        assert not (tmp_path / "a.model").exists()
        to_liblinear(model, tmp_path / "a.model", labels=[30, 10, 20])
        copy = from_liblinear(tmp_path / "a.model")
        assert copy.labels_.tolist() == [30, 10, 20]
        numbers = dict(zip(["setosa", "versicolor", "virginica"], [30, 10, 20], strict=True))
        assert copy.predict(NEW).tolist() == [numbers[name] for name in model.predict(NEW)]
        odd = ([None, 1, 2], [[1], [1, 2], 3], [[1], [2], [3]], [{}, 1, 2], [np.nan, 1, 2], [np.inf, 1, 2], 7)
        for labels in ([1, 2], [1, 1, 2], [0.5, 1, 2], [1, 2, 2**31], [1, 2, 10**30], *odd):
            assert "whole numbers" in refusal(to_liblinear, model, tmp_path / "b.model", labels=labels)

    def test_online_models_are_written_or_refused_by_trail_and_hasher(self, tmp_path):
        model = OnlineMarginClassifier(random_state=0).fit(X, THREE_CLASSES)
        to_liblinear(model, tmp_path / "a.model")
        assert_equal_predictions(from_liblinear(tmp_path / "a.model"), model)
        voting = OnlineMarginClassifier(trail="vote", random_state=0).fit(X, TWO_CLASSES)
        assert 'trail="average"' in refusal(to_liblinear, voting, tmp_path / "b.model")
        hashed = OnlineMarginClassifier(hasher=16).partial_fit([{"a": 1}, {"b": 1}], [0, 1], classes=[0, 1])
        assert "hashes its features" in refusal(to_json, hashed, tmp_path / "b.json")

    def test_linear_kernel_models_are_written_as_linear_models(self, tmp_path):
        model = KernelMaxMarginClassifier(kernel="linear").fit(X, THREE_CLASSES)
        to_liblinear(model, tmp_path / "a.model")
        assert np.allclose(
            from_liblinear(tmp_path / "a.model").decision_function(X), model.decision_function(X)
        )
        pairs = KernelMaxMarginClassifier(kernel="linear", multi_class="ovo").fit(X, THREE_CLASSES)
        assert 'multi_class="ovr"' in refusal(to_liblinear, pairs, tmp_path / "a.model")

    def test_unsupported_models_are_refused(self, kernel_models, linear_models, tmp_path):
        path = tmp_path / "a.model"
        assert "to_libsvm" in refusal(to_liblinear, kernel_models["two"], path)
        assert "to_liblinear" in refusal(to_libsvm, linear_models["two"], path)
        pipe = make_pipeline(StandardScaler(), MaxMarginClassifier()).fit(X, TWO_CLASSES)
        assert "to_onnx" in refusal(to_liblinear, pipe, path)
        eliminated = MarginRFE().fit(X, TWO_CLASSES)
        for write in (to_liblinear, to_libsvm, to_json):
            assert "Write its estimator_" in refusal(write, eliminated, path)
        with pytest.raises(NotFittedError):
            to_liblinear(MaxMarginClassifier(), path)
        broken = from_dict(to_dict(linear_models["two"]))
        broken.coef_ = broken.coef_ * np.inf
        assert "not finite" in refusal(to_liblinear, broken, path)
        assert not path.exists()

    def test_failed_write_keeps_the_old_file(self, linear_models, tmp_path, monkeypatch):
        path = tmp_path / "a.model"
        path.write_text("old")

        def full(numbers):
            raise OSError("no space left on the disk")

        monkeypatch.setattr("maxmargin.io.text_models.digits", full)
        with pytest.raises(OSError, match="no space"):
            to_liblinear(linear_models["two"], path)
        assert path.read_text() == "old"
        assert [one.name for one in tmp_path.iterdir()] == ["a.model"]


class TestMalformedLiblinear:
    VALID = "solver_type L2R_LR\nnr_class 2\nlabel 1 -1\nnr_feature 2\nbias 1\nw\n0.5 \n-1 \n2 \n"

    def test_valid_file_is_read(self, tmp_path):
        (tmp_path / "a").write_text(self.VALID)
        assert from_liblinear(tmp_path / "a").decision_function([[2.0, 3.0]]) == 0.0

    @pytest.mark.parametrize("cut", range(len(VALID)))
    def test_every_truncation_is_refused(self, tmp_path, cut):
        (tmp_path / "a").write_text(self.VALID[:cut])
        message = refusal(from_liblinear, tmp_path / "a")
        assert message.startswith(str(tmp_path / "a"))

    @pytest.mark.parametrize(
        ("old", "new", "message"),
        [
            ("solver_type L2R_LR", "svm_type c_svc", "does not begin with 'solver_type'"),
            ("L2R_LR", "L2R_L2LOSS_SVR", "'L2R_L2LOSS_SVR' is not a classifier of liblinear"),
            ("nr_class 2", "nr_class 1", "'nr_class' must be at least 2"),
            ("nr_class 2", "nr_class two", "'nr_class' must be whole numbers; got 'two'"),
            ("nr_class 2", f"nr_class {10**30}", "'nr_class' must be whole numbers"),
            ("nr_feature 2", f"nr_feature {10**30}", "'nr_feature' must be whole numbers"),
            ("label 1 -1", f"label 1 {10**30}", "'label' must be whole numbers"),
            ("nr_class 2", f"nr_class {10**18}", "'label' must be"),
            ("nr_feature 2", f"nr_feature {10**18}", "is cut short"),
            ("nr_class 2\n", "", "there is no line 'nr_class'"),
            ("label 1 -1", "label 1", "'label' must be 2 numbers; got 1"),
            ("label 1 -1", "label 1 1", "the same label"),
            ("nr_feature 2", "nr_feature 3", "is cut short"),
            ("nr_feature 2", "nr_feature 1", "is too long"),
            ("bias 1", "bias inf", "finite"),
            ("-1 \n", "-1x \n", "'-1x' is not a finite number"),
            ("-1 \n", "nan \n", "'nan' is not a finite number"),
            ("w\n", "v\n", "no line 'w'"),
            ("bias", "b\xefas", "line 5: this line is not ASCII text"),
        ],
    )
    def test_invalid_contents_are_refused_with_the_reason(self, tmp_path, old, new, message):
        (tmp_path / "a").write_bytes(self.VALID.replace(old, new).encode("latin-1"))
        assert message in refusal(from_liblinear, tmp_path / "a")

    def test_missing_files_raise_file_not_found(self, tmp_path):
        with pytest.raises(FileNotFoundError):
            from_liblinear(tmp_path / "a")


class TestLibsvm:
    @pytest.mark.parametrize("kernel", KERNELS)
    @pytest.mark.parametrize("classes", ["two", "three"])
    def test_round_trip_preserves_the_model(self, kernel, classes, tmp_path):
        y = {"two": TWO_CLASSES, "three": THREE_CLASSES}[classes]
        model = KernelMaxMarginClassifier(kernel=kernel, multi_class="ovo", **KERNELS[kernel]).fit(X, y)
        to_libsvm(model, tmp_path / "a.model")
        copy = from_libsvm(tmp_path / "a.model")
        assert np.array_equal(copy.dual_coef_, model.dual_coef_)
        assert np.array_equal(copy.support_vectors_.toarray(), model.support_vectors_)
        assert np.allclose(copy.decision_function(NEW), model.decision_function(NEW), rtol=1e-9, atol=1e-9)
        assert np.array_equal(copy.predict(NEW), model.predict(NEW))
        to_libsvm(copy, tmp_path / "b.model")
        assert (tmp_path / "a.model").read_bytes() == (tmp_path / "b.model").read_bytes()

    def test_sigmoid_kernel_is_read_and_written(self, tmp_path):
        (tmp_path / "a.model").write_text(
            "svm_type c_svc\nkernel_type sigmoid\ngamma 0.5\ncoef0 0.25\nnr_class 2\ntotal_sv 2\nrho 0.125\n"
            "label 1 -1\nnr_sv 1 1\nSV\n1 1:2 \n-1 2:3 \n"
        )
        read = from_libsvm(tmp_path / "a.model")
        z = np.array([1.0, 2.0])
        expected = np.tanh(0.5 * 2 * z[0] + 0.25) - np.tanh(0.5 * 3 * z[1] + 0.25) - 0.125
        assert read.decision_function([z]) == pytest.approx(expected, rel=1e-14)
        to_libsvm(read, tmp_path / "b.model")
        assert from_libsvm(tmp_path / "b.model").decision_function([z]) == read.decision_function([z])

    def test_file_has_the_documented_layout(self, tmp_path):
        model = KernelMaxMarginClassifier(kernel="poly", degree=3, gamma=0.5, coef0=-0.0, C=1.0)
        model.fit([[0.0, 1.0], [0.0, -2.0], [3.0, 0.0]], [1, -1, -1])
        to_libsvm(model, tmp_path / "a.model")
        lines = (tmp_path / "a.model").read_text().splitlines()
        assert lines[:7] == [
            "svm_type c_svc", "kernel_type polynomial", "degree 3", "gamma 0.5", "coef0 -0", "nr_class 2",
            f"total_sv {len(model.support_)}",
        ]  # fmt: skip
        assert lines[8] == "label 1 -1"
        assert lines[9] == "nr_sv 1 " + str(len(model.support_) - 1)
        assert lines[11].split()[1:] == ["2:1"]  # the support vector of class 1, zeros left out

    def test_classes_in_file_order_are_sorted(self, kernel_models, tmp_path):
        """Scores are equal for every order of the classes, and labels are equal except for ties."""
        model = kernel_models["three"]
        to_libsvm(model, tmp_path / "a.model", labels=[7, 3, 5])
        read = from_libsvm(tmp_path / "a.model")
        assert read.labels_.tolist() == [7, 3, 5]
        assert read.classes_.tolist() == [3, 5, 7]
        number = {0: 7, 1: 3, 2: 5}
        assert read.predict(NEW).tolist() == [number[name] for name in model.predict(NEW)]
        scores = model.decision_function(NEW)
        assert np.allclose(read.decision_function(NEW), scores[:, [1, 2, 0]], atol=1e-9)
        model.decision_function_shape = read.decision_function_shape = "ovo"
        pairs = model.decision_function(NEW)  # setosa-versicolor, setosa-virginica, versicolor-virginica
        model.decision_function_shape = "ovr"
        assert np.allclose(
            read.decision_function(NEW), np.column_stack([pairs[:, 2], -pairs[:, 0], -pairs[:, 1]])
        )

    def test_n_features_widens_a_model_for_sparse_rows(self, kernel_models, tmp_path):
        to_libsvm(kernel_models["two"], tmp_path / "a.model")
        read = from_libsvm(tmp_path / "a.model", n_features=6)
        wide = sp.hstack([sp.csr_array(NEW), sp.csr_array(np.ones((len(NEW), 2)))], format="csr")
        here = kernel_models["two"].decision_function(NEW) - kernel_models["two"].intercept_
        there = read.decision_function(wide) - read.intercept_
        assert np.allclose(there, here * np.exp(-0.7 * 2), atol=1e-12)
        assert "n_features=3" in refusal(from_libsvm, tmp_path / "a.model", n_features=3)
        for wrong in ("x", 6.5, 2**70, True, 0):
            assert "n_features must be a whole number" in refusal(
                from_libsvm, tmp_path / "a.model", n_features=wrong
            )

    def test_imported_kernel_models_survive_model_files(self, kernel_models, tmp_path):
        to_libsvm(kernel_models["three"], tmp_path / "a.model", labels=[7, 3, 5])
        read = from_libsvm(tmp_path / "a.model")
        read.set_params(break_ties=True)
        save(read, tmp_path / "a.safetensors")
        copy = load(tmp_path / "a.safetensors")
        assert isinstance(copy, ImportedKernelClassifier)
        assert copy.get_params() == read.get_params()
        assert copy.origin_ == read.origin_
        assert_equal_predictions(copy, read)

    def test_one_against_rest_models_are_refused(self, tmp_path):
        model = KernelMaxMarginClassifier().fit(X, THREE_CLASSES)
        assert 'multi_class="ovo"' in refusal(to_libsvm, model, tmp_path / "a.model")
        assert not (tmp_path / "a.model").exists()

    def test_unsupported_kernels_are_refused(self, tmp_path):
        path = tmp_path / "a.model"
        for kernel, data, message in (
            ("precomputed", X @ X.T, "precomputed"),
            ("laplacian", X, "laplacian"),
            (lambda A, B: A @ B.T, X, "the kernel is a Python function"),
        ):
            model = KernelMaxMarginClassifier(kernel=kernel).fit(data, TWO_CLASSES)
            assert message in refusal(to_libsvm, model, path)
        assert not path.exists()


class TestMalformedLibsvm:
    VALID = (
        "svm_type c_svc\nkernel_type rbf\ngamma 0.5\nnr_class 2\ntotal_sv 2\nrho 0.5\nlabel 1 -1\nnr_sv 1 1\nSV\n"
        "1 1:1 3:2 \n-1 2:1 \n"
    )

    def test_valid_file_is_read(self, tmp_path):
        (tmp_path / "a").write_text(self.VALID)
        expected = 1.0 - np.exp(-0.5 * 6) - 0.5
        assert from_libsvm(tmp_path / "a").decision_function([[1.0, 0.0, 2.0]]) == pytest.approx(expected)

    @pytest.mark.parametrize("cut", range(len(VALID)))
    def test_every_truncation_is_refused(self, tmp_path, cut):
        (tmp_path / "a").write_text(self.VALID[:cut])
        message = refusal(from_libsvm, tmp_path / "a")
        assert message.startswith(str(tmp_path / "a"))

    @pytest.mark.parametrize(
        ("old", "new", "message"),
        [
            ("c_svc", "epsilon_svr", "'epsilon_svr' is not a classifier of libsvm"),
            ("kernel_type rbf", "kernel_type precomputed", "the file does not contain the matrix"),
            ("kernel_type rbf", "kernel_type cubic", "the kernel 'cubic' cannot be read"),
            ("gamma 0.5\n", "", "there is no line 'gamma'"),
            ("total_sv 2", "total_sv 3", "must add up to 'total_sv'"),
            ("nr_sv 1 1", "nr_sv 3 -1", "must add up to 'total_sv'"),
            ("total_sv 2", "total_sv -2", "'total_sv' must be at least 0"),
            ("-1 2:1 \n", "-1 2:1 \n-1 2:1 \n", "is too long"),
            ("-1 2:1 \n", "\n", "line 11: a support vector must begin with 1 coefficients"),
            ("-1 2:1 \n", "-1 2 \n", "line 11: entries must be index:value"),
            ("-1 2:1 \n", "2:1 \n", "line 11: a support vector must begin"),
            ("-1 2:1 \n", "-1 0:1 \n", "line 11: indices must be at least 1"),
            ("3:2", "1:2", "line 10: indices must be at least 1, and increase"),
            ("3:2", "3:inf", "is not a finite number"),
            ("3:2", "99999999999999999999999999:2", "line 10: indices must be at most 2147483647"),
            ("3:2", f"{2**62}:2", "line 10: indices must be at most 2147483647"),
            ("3:2", f"{10**12}:2", "line 10: indices must be at most 2147483647"),
            ("nr_class 2", f"nr_class {10**30}", "'nr_class' must be whole numbers"),
            ("total_sv 2", f"total_sv {10**30}", "'total_sv' must be whole numbers"),
            ("nr_sv 1 1", f"nr_sv 1 {10**30}", "'nr_sv' must be whole numbers"),
            # as numbers of 64 bits these add up to 2
            (
                "nr_class 2\ntotal_sv 2\nrho 0.5\nlabel 1 -1\nnr_sv 1 1",
                f"nr_class 3\ntotal_sv 2\nrho 1 2 3\nlabel 1 2 3\nnr_sv {2**63 - 1} {2**63 - 1} 4",
                "must add up to 'total_sv'",
            ),
            ("label 1 -1", f"label 1 {10**30}", "'label' must be whole numbers"),
            (
                "kernel_type rbf",
                f"kernel_type polynomial\ndegree {10**30}\ncoef0 1",
                "'degree' must be whole",
            ),
            (
                "kernel_type rbf",
                f"kernel_type polynomial\ndegree {2**31}\ncoef0 1",
                "'degree' must be from 0 to 2147483647; got 2147483648",
            ),
        ],
    )
    def test_invalid_contents_are_refused_with_the_reason(self, tmp_path, old, new, message):
        (tmp_path / "a").write_text(self.VALID.replace(old, new))
        assert message in refusal(from_libsvm, tmp_path / "a")


class TestJson:
    @pytest.mark.parametrize("y", [TWO_CLASSES, THREE_CLASSES, STRING_CLASSES], ids=["two", "three", "names"])
    def test_round_trip_preserves_the_model(self, y, tmp_path):
        model = MaxMarginClassifier(C=2.0, loss="hinge").fit(X, y)
        to_json(model, tmp_path / "a.json")
        copy = from_json(tmp_path / "a.json")
        assert np.array_equal(copy.coef_, model.coef_)
        assert np.array_equal(copy.intercept_, model.intercept_)
        assert_equal_predictions(copy, model)
        assert copy.origin_["parameters"]["C"] == 2.0
        assert to_dict(copy)["decisions"] == to_dict(model)["decisions"]
        assert json.loads((tmp_path / "a.json").read_text()) == to_dict(model)

    def test_record_holds_class_weights_and_bounds(self, linear_models):
        record = to_dict(linear_models["two"])
        assert record["model"] == "MaxMarginClassifier"
        assert record["classes"] == [-1, 1]
        (decision,) = record["decisions"]
        assert decision["class"] == 1
        assert decision["coef"] == linear_models["two"].coef_[0].tolist()
        certificate = linear_models["two"].certificate_
        assert decision["bounds"]["lower"] == certificate.lower
        assert decision["bounds"]["upper"] == certificate.upper
        assert decision["bounds"]["of"] == "objective"

    def test_feature_names_are_keys_of_the_coefficients(self, tmp_path):
        pd = pytest.importorskip("pandas")
        names = ["length", "width, of leaves", "Länge", "4"]
        model = MaxMarginClassifier(C=np.inf).fit(pd.DataFrame(X, columns=names), THREE_CLASSES == 0)
        to_json(model, tmp_path / "a.json")
        text = (tmp_path / "a.json").read_text(encoding="utf-8")
        record = json.loads(text)
        assert list(record["decisions"][0]["coef"]) == names
        assert "Länge" in text
        assert record["parameters"]["C"] == "inf"
        assert record["decisions"][0]["bounds"]["of"] == "margin"
        copy = from_json(tmp_path / "a.json")
        assert copy.feature_names_in_.tolist() == names
        assert copy.classes_.tolist() == [False, True]
        assert np.array_equal(copy.decision_function(pd.DataFrame(X, columns=names)), model.decision_function(
            pd.DataFrame(X, columns=names)
        ))  # fmt: skip

    def test_cross_validated_model_is_written_as_its_best_estimator(self, tmp_path):
        model = MaxMarginClassifierCV(Cs=[0.1, 1.0], cv=2).fit(X, TWO_CLASSES)
        to_json(model, tmp_path / "a.json")
        copy = from_json(tmp_path / "a.json")
        assert_equal_predictions(copy, model)
        assert to_dict(model) == to_dict(model.best_estimator_)
        assert copy.origin_["parameters"]["C"] == model.best_estimator_.C
        with pytest.raises(NotFittedError):
            to_dict(MaxMarginClassifierCV())

    def test_online_models_without_a_bound_are_valid_json(self):
        record = to_dict(OnlineMarginClassifier(random_state=0).fit(X, THREE_CLASSES))
        assert [one["bounds"]["lower"] for one in record["decisions"]] == ["-inf"] * 3
        json.dumps(record, allow_nan=False)

    def test_truncated_files_are_refused(self, linear_models, tmp_path):
        to_json(linear_models["two"], tmp_path / "a.json")
        whole = (tmp_path / "a.json").read_bytes()
        for cut in range(0, len(whole) - 2, 37):
            (tmp_path / "b.json").write_bytes(whole[:cut])
            assert "not JSON, or it is cut short" in refusal(from_json, tmp_path / "b.json")

    @pytest.mark.parametrize(
        ("change", "message"),
        [
            ({"format": "PMML"}, "not a model that to_json wrote"),
            ({"version": 2}, "install a newer maxmargin"),
            ({"version": 0}, '"version" must be at least 1'),
            ({"version": -5}, '"version" must be at least 1'),
            ({"classes": [None, 1]}, "all numbers, all strings"),
            ({"classes": [{}, {}]}, "all numbers, all strings"),
            ({"classes": [[1], [1, 2]]}, "all numbers, all strings"),
            ({"classes": [1, np.inf]}, "contains a class that a NumPy array cannot hold"),
            ({"classes": [1, 10**400]}, "contains a class that a NumPy array cannot hold"),
            ({"classes": [0.5, 10**400]}, "contains a class that a NumPy array cannot hold"),
            ({"classes": [1, 2**70]}, "contains a class that a NumPy array cannot hold"),
            ({"classes": [1]}, "at least two different classes"),
            ({"classes": [1, 1]}, "at least two different classes"),
            ({"n_features": "4"}, '"n_features" must be a whole number'),
            ({"features": ["a"]}, '"features" must be 4 names'),
            ({"decisions": []}, '2 classes need 1 "decisions"; got 0'),
            ({"decisions": [{"class": 1, "coef": [1, 2, 3]}]}, '"coef" of decision 0 must be 4 numbers'),
            (
                {"decisions": [{"class": 1, "coef": [1, 2, 3, "x"]}]},
                "weight 3 of decision 0 must be a finite number; got 'x'",
            ),
            ({"decisions": [{"class": 1, "coef": [1, 2, 3, 10**400]}]}, "weight 3 of decision 0"),
            ({"decisions": [{"class": 1, "coef": [1, 2, 3, 4]}]}, "the intercept of decision 0"),
            ({"decisions": [{"class": 1, "coef": {"a": 1}}]}, '"features"'),
        ],
    )
    def test_invalid_contents_are_refused_with_the_reason(self, linear_models, change, message):
        assert message in refusal(from_dict, {**to_dict(linear_models["two"]), **change})

    def test_decisions_in_the_wrong_order_are_refused(self, linear_models):
        record = to_dict(linear_models["three"])
        message = refusal(from_dict, {**record, "decisions": record["decisions"][::-1]})
        assert "decision 0 must have the class 0" in message
        assert "\"class\" is '2'" in message
        (one,) = to_dict(linear_models["two"])["decisions"]
        # 1 and true are equal in Python, but are classes of different types
        for label in (77, -1, "1", True, None):
            message = refusal(
                from_dict, {**to_dict(linear_models["two"]), "decisions": [{**one, "class": label}]}
            )
            assert "decision 0 must have the class 1" in message

    @pytest.mark.parametrize("mixed", [[1, "a"], [True, 2], ["x", False]])
    def test_classes_of_mixed_types_are_refused(self, linear_models, mixed):
        record = {**to_dict(linear_models["two"]), "classes": mixed}
        record["decisions"][0]["class"] = mixed[1]
        assert "all numbers, all strings, or all true and false" in refusal(from_dict, record)

    def test_invalid_json_is_refused(self, tmp_path):
        for text, message in (
            (b"[1]", "not a model"), (b"\xff", "UTF-8"), (b'{"a": NaN}', "NaN is not a number"), (b"", "not JSON"),
            (b'{"version": ' + b"1" * 5000 + b"}", "a whole number is too long"),
        ):  # fmt: skip
            (tmp_path / "a").write_bytes(text)
            assert message in refusal(from_json, tmp_path / "a")


class TestImported:
    def test_verify_refuses_imported_models(self, linear_models, kernel_models, tmp_path):
        to_libsvm(kernel_models["two"], tmp_path / "a.model")
        for model in (from_dict(to_dict(linear_models["two"])), from_libsvm(tmp_path / "a.model")):
            assert not hasattr(model, "certificate_")
            with pytest.raises(CertificateError, match="holds no proof of how good it is"):
                verify(model, X, TWO_CLASSES)

    def test_imported_models_cannot_be_fitted(self, linear_models):
        model = from_dict(to_dict(linear_models["two"]))
        with pytest.raises(ValueError, match="fitted elsewhere, and learns nothing"):
            model.fit(X, TWO_CLASSES)
        assert_equal_predictions(model, linear_models["two"])

    def test_imported_model_works_as_the_last_pipeline_step(self, linear_models):
        pipe = make_pipeline(StandardScaler().fit(X), from_dict(to_dict(linear_models["two"])))
        assert np.array_equal(
            pipe.predict(X), linear_models["two"].predict(StandardScaler().fit_transform(X))
        )

    def test_rows_of_another_width_are_refused(self, linear_models):
        with pytest.raises(ValueError, match="expecting 4 features"):
            from_dict(to_dict(linear_models["two"])).predict(X[:, :3])
