"""Text models and JSON: round trips are exact, and invalid files are refused with the reason."""

from __future__ import annotations

import json

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from sklearn.datasets import load_iris
from sklearn.exceptions import NotFittedError
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import maxmargin as mm
from maxmargin import KernelMaxMarginClassifier, MaxMarginClassifier, OnlineMarginClassifier

X, THREE_CLASSES = load_iris(return_X_y=True)
TWO_CLASSES = np.where(THREE_CLASSES == 1, 1, -1)
NAMES = np.array(["setosa", "versicolor", "virginica"])[THREE_CLASSES]
NEW = np.vstack([X + 0.25, np.random.default_rng(0).normal(3.0, 3.0, (300, 4)), np.zeros((1, 4))])
LIBLINEAR = "solver_type L2R_LR\nnr_class 2\nlabel 1 -1\nnr_feature 2\nbias 1\nw\n0.5 \n-1 \n2 \n"
LIBSVM = (
    "svm_type c_svc\nkernel_type rbf\ngamma 0.5\nnr_class 2\ntotal_sv 2\nrho 0.5\nlabel 1 -1\nnr_sv 1 1\nSV\n"
    "1 1:1 3:2 \n-1 2:1 \n"
)
JSON = mm.to_dict(MaxMarginClassifier().fit(X, TWO_CLASSES))
POLYNOMIAL = "kernel_type polynomial\ndegree {}\ncoef0 1"


@pytest.fixture
def path(tmp_path):
    return tmp_path / "a.model"


@pytest.fixture(scope="module")
def machine():
    return KernelMaxMarginClassifier(multi_class="ovo", gamma=0.7).fit(X, THREE_CLASSES)


def refusal(function, *arguments, **options):
    """Call a function that must raise ModelFileError; return the one-line message."""
    with pytest.raises(mm.ModelFileError) as caught:
        function(*arguments, **options)
    assert "\n" not in str(caught.value)
    return str(caught.value)


def assert_equal_predictions(one, two):
    assert np.array_equal(one.decision_function(NEW), two.decision_function(NEW))
    assert np.array_equal(one.predict(NEW), two.predict(NEW))
    assert np.array_equal(one.classes_, two.classes_)


class TestRoundTrips:
    @pytest.mark.parametrize("y", [TWO_CLASSES, THREE_CLASSES], ids=["two", "three"])
    @pytest.mark.parametrize("intercept", [True, False])
    @pytest.mark.parametrize("form", ["liblinear", "json"])
    def test_linear_models_survive(self, y, intercept, form, path):
        model = MaxMarginClassifier(fit_intercept=intercept, loss="hinge").fit(X, y)
        getattr(mm, f"to_{form}")(model, path)
        copy = getattr(mm, f"from_{form}")(path)
        assert copy.coef_.tobytes() == model.coef_.tobytes()
        assert np.array_equal(copy.intercept_, model.intercept_)
        assert_equal_predictions(copy, model)
        if form == "liblinear":
            lines = path.read_text().splitlines()
            assert lines[0] == "solver_type L2R_L1LOSS_SVC_DUAL"
            assert lines[4] == f"bias {1 if intercept else -1}"

    @pytest.mark.parametrize("form", ["liblinear", "json"])
    def test_every_double_survives(self, form, path):
        numbers = [0.1, -0.0, 5e-324, -1.7976931348623157e308, 1 / 3, 2.0**-1074 * 3, np.nextafter(1, 2)]
        model = mm.from_dict(JSON)
        model.coef_, model.n_features_in_ = np.array([numbers]), len(numbers)
        getattr(mm, f"to_{form}")(model, path)
        assert getattr(mm, f"from_{form}")(path).coef_.tobytes() == model.coef_.tobytes()

    @pytest.mark.parametrize(
        ("kernel", "options", "y"),
        [
            ("linear", {}, TWO_CLASSES),
            ("poly", {"degree": 2, "gamma": 0.3, "coef0": 1.0}, THREE_CLASSES),
            ("rbf", {"gamma": 0.7}, THREE_CLASSES),
        ],
    )
    def test_kernel_models_survive(self, kernel, options, y, path, tmp_path):
        model = KernelMaxMarginClassifier(kernel=kernel, multi_class="ovo", **options).fit(X, y)
        mm.to_libsvm(model, path)
        copy = mm.from_libsvm(path)
        assert np.array_equal(copy.dual_coef_, model.dual_coef_)
        assert np.array_equal(copy.support_vectors_.toarray(), model.support_vectors_)
        assert np.allclose(copy.decision_function(NEW), model.decision_function(NEW), rtol=1e-9, atol=1e-9)
        assert np.array_equal(copy.predict(NEW), model.predict(NEW))
        mm.to_libsvm(copy, tmp_path / "b.model")
        assert path.read_bytes() == (tmp_path / "b.model").read_bytes()
        mm.save(copy.set_params(break_ties=True), path)
        assert mm.load(path).get_params() == copy.get_params()
        assert_equal_predictions(mm.load(path), copy)

    def test_files_have_the_documented_layout(self, path):
        model = mm.from_dict(JSON)
        mm.to_liblinear(model, path)
        lines = path.read_text().splitlines()
        assert lines[:6] == [
            "solver_type L2R_L2LOSS_SVC", "nr_class 2", "label 1 -1", "nr_feature 4", "bias 1", "w"
        ]  # fmt: skip
        assert [float(line) for line in lines[6:]] == [*model.coef_[0], model.intercept_[0]]
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

    @pytest.mark.parametrize("labels", [[1, -1], [-1, 1]])
    def test_zero_scores_are_decided_as_in_liblinear(self, labels, path):
        path.write_text(
            f"solver_type L2R_LR\nnr_class 2\nlabel {labels[0]} {labels[1]}\nnr_feature 1\nbias -1\nw\n2 \n"
        )
        model = mm.from_liblinear(path)
        mm.save(model, path)
        for copy in (model, mm.load(path), mm.from_dict(mm.to_dict(model))):
            # positive scores: the first label of the file; others: the second
            assert copy.predict([[3.0], [-3.0], [0.0]]).tolist() == [labels[0], labels[1], labels[1]]

    def test_classes_in_file_order_are_sorted(self, machine, path):
        path.write_text(
            "solver_type L2R_LR\nnr_class 3\nlabel 5 -2 3\nnr_feature 2\nbias 2\nw\n1 2 3 \n4 5 6 \n0.5 0.25 0.125 \n"
        )
        model = mm.from_liblinear(path)
        assert model.classes_.tolist() == [-2, 3, 5]
        assert model.coef_.tolist() == [[2, 5], [3, 6], [1, 4]]
        assert model.intercept_.tolist() == [0.5, 0.25, 1.0]
        mm.to_libsvm(machine, path, labels=[7, 3, 5])
        read = mm.from_libsvm(path)
        assert (read.labels_.tolist(), read.classes_.tolist()) == ([7, 3, 5], [3, 5, 7])
        assert read.predict(NEW).tolist() == [(7, 3, 5)[k] for k in machine.predict(NEW)]
        assert np.allclose(
            read.decision_function(NEW), machine.decision_function(NEW)[:, [1, 2, 0]], atol=1e-9
        )

    def test_sigmoid_kernels_are_read_and_written(self, path):
        path.write_text(LIBSVM.replace("rbf", "sigmoid").replace("gamma 0.5", "gamma 0.5\ncoef0 0.25"))
        read = mm.from_libsvm(path)
        z = np.array([1.0, 2.0, 3.0])
        expected = np.tanh(0.5 * 7 + 0.25) - np.tanh(0.5 * 2 + 0.25) - 0.5
        assert read.decision_function([z]) == pytest.approx(expected, rel=1e-14)
        mm.to_libsvm(read, path)
        assert mm.from_libsvm(path).decision_function([z]) == read.decision_function([z])

    def test_n_features_widens_a_model_for_sparse_rows(self, path):
        path.write_text(LIBSVM)
        wide = sp.csr_array([[1.0, 0.0, 2.0, 0.0, 1.0]])
        here = mm.from_libsvm(path).decision_function([[1.0, 0.0, 2.0]]) + 0.5
        assert here == pytest.approx(1.0 - np.exp(-0.5 * 6))
        there = mm.from_libsvm(path, n_features=5).decision_function(wide) + 0.5
        assert there == pytest.approx(here * np.exp(-0.5))
        assert "n_features=2" in refusal(mm.from_libsvm, path, n_features=2)
        for wrong in ("x", 6.5, 2**70, True, 0):
            assert "must be a whole number" in refusal(mm.from_libsvm, path, n_features=wrong)


class TestUnsupportedModels:
    def test_string_labels_need_integer_labels(self, path):
        model = MaxMarginClassifier().fit(X, NAMES)
        assert "labels=[0, 1, ...]" in refusal(mm.to_liblinear, model, path)
        for labels in (
            [1, 2],
            [1, 1, 2],
            [0.5, 1, 2],
            [1, 2, 2**31],
            [None, 1, 2],
            [[1], 2, 3],
            [np.nan, 1, 2],
            7,
        ):
            assert "whole numbers" in refusal(mm.to_liblinear, model, path, labels=labels)
        assert not path.exists()
        mm.to_liblinear(model, path, labels=[30, 10, 20])
        number = {"setosa": 30, "versicolor": 10, "virginica": 20}
        assert mm.from_liblinear(path).predict(NEW).tolist() == [number[name] for name in model.predict(NEW)]

    @pytest.mark.parametrize(
        ("write", "model", "expected"),
        [
            (mm.to_liblinear, OnlineMarginClassifier(trail="vote", random_state=0), 'trail="average"'),
            (mm.to_json, OnlineMarginClassifier(hasher=16), "hashes its features"),
            (
                mm.to_liblinear,
                KernelMaxMarginClassifier(kernel="linear", multi_class="ovo"),
                'multi_class="ovr"',
            ),
            (mm.to_liblinear, KernelMaxMarginClassifier(), "to_libsvm"),
            (mm.to_libsvm, KernelMaxMarginClassifier(), 'multi_class="ovo"'),
            (mm.to_libsvm, MaxMarginClassifier(), "to_liblinear"),
            (mm.to_liblinear, make_pipeline(StandardScaler(), MaxMarginClassifier()), "to_onnx"),
            (mm.to_json, mm.MarginRFE(), "Write its estimator_"),
            (mm.to_libsvm, KernelMaxMarginClassifier(multi_class="ovo", kernel="laplacian"), "laplacian"),
            (
                mm.to_libsvm,
                KernelMaxMarginClassifier(kernel=lambda A, B: A @ B.T, multi_class="ovo"),
                "function",
            ),
        ],
    )
    def test_models_that_no_file_can_hold_are_refused(self, write, model, expected, path):
        if getattr(model, "hasher", None):
            model.partial_fit([{"a": 1}, {"b": 1}], [0, 1], classes=[0, 1])
        else:
            model.fit(X, THREE_CLASSES)
        assert expected in refusal(write, model, path)
        assert not path.exists()

    def test_unfitted_and_infinite_models_are_refused(self, path):
        for write in (mm.to_liblinear, mm.to_libsvm, mm.to_json):
            with pytest.raises(NotFittedError):
                write(MaxMarginClassifier(), path)
        broken = mm.from_dict(JSON)
        broken.coef_ = broken.coef_ * np.inf
        assert "not finite" in refusal(mm.to_liblinear, broken, path)

    def test_imported_models_have_no_certificate_and_learn_nothing(self, path):
        path.write_text(LIBSVM)
        for model in (mm.from_dict(JSON), mm.from_libsvm(path)):
            with pytest.raises(mm.CertificateError, match="holds no proof of how good it is"):
                mm.verify(model, X, TWO_CLASSES)
            with pytest.raises(ValueError, match="fitted elsewhere, and learns nothing"):
                model.fit(X, TWO_CLASSES)
            with pytest.raises(ValueError, match=r"expecting \d features"):
                model.predict(X[:, :2])


class TestMalformedText:
    @pytest.mark.parametrize(("read", "text"), [(mm.from_liblinear, LIBLINEAR), (mm.from_libsvm, LIBSVM)])
    def test_every_truncation_is_refused(self, read, text, path):
        for cut in range(len(text)):
            path.write_text(text[:cut])
            assert refusal(read, path).startswith(str(path))
        path.write_text(text)
        assert read(path).decision_function([[2.0, 3.0, 0.0][: read(path).n_features_in_]]).shape == (1,)
        with pytest.raises(FileNotFoundError):
            read(path.with_suffix(".none"))

    @pytest.mark.parametrize(
        ("old", "new", "message"),
        [
            ("solver_type L2R_LR", "svm_type c_svc", "does not begin with 'solver_type'"),
            ("L2R_LR", "L2R_L2LOSS_SVR", "'L2R_L2LOSS_SVR' is not a classifier of liblinear"),
            ("nr_class 2", "nr_class 1", "'nr_class' must be at least 2"),
            ("nr_class 2", "nr_class two", "'nr_class' must be whole numbers; got 'two'"),
            ("nr_feature 2", f"nr_feature {10**30}", "'nr_feature' must be whole numbers"),
            ("nr_class 2", f"nr_class {10**18}", "'label' must be"),
            ("nr_class 2\n", "", "there is no line 'nr_class'"),
            ("label 1 -1", "label 1", "'label' must be 2 numbers; got 1"),
            ("label 1 -1", "label 1 1", "the same label"),
            ("nr_feature 2", f"nr_feature {10**18}", "is cut short"),
            ("nr_feature 2", "nr_feature 1", "is too long"),
            ("bias 1", "bias inf", "finite"),
            ("-1 \n", "-1x \n", "'-1x' is not a finite number"),
            ("-1 \n", "nan \n", "'nan' is not a finite number"),
            ("w\n", "v\n", "no line 'w'"),
            ("bias", "b\xefas", "line 5: this line is not ASCII text"),
        ],
    )
    def test_invalid_liblinear_files_are_refused(self, path, old, new, message):
        path.write_bytes(LIBLINEAR.replace(old, new).encode("latin-1"))
        assert message in refusal(mm.from_liblinear, path)

    @pytest.mark.parametrize(
        ("old", "new", "message"),
        [
            ("c_svc", "epsilon_svr", "'epsilon_svr' is not a classifier of libsvm"),
            ("kernel_type rbf", "kernel_type precomputed", "the file does not contain the matrix"),
            ("kernel_type rbf", "kernel_type cubic", "the kernel 'cubic' cannot be read"),
            ("gamma 0.5\n", "", "there is no line 'gamma'"),
            ("total_sv 2", "total_sv 3", "must add up to 'total_sv'"),
            ("nr_sv 1 1", "nr_sv 3 -1", "must add up to 'total_sv'"),
            # as numbers of 64 bits these add up to 2
            ("nr_sv 1 1", f"nr_sv {2**63 + 1} {2**63 + 1}", "'nr_sv' must be whole numbers"),
            ("total_sv 2", "total_sv -2", "'total_sv' must be at least 0"),
            ("-1 2:1 \n", "-1 2:1 \n-1 2:1 \n", "is too long"),
            ("-1 2:1 \n", "\n", "line 11: a support vector must begin with 1 coefficients"),
            ("-1 2:1 \n", "-1 2 \n", "line 11: entries must be index:value"),
            ("-1 2:1 \n", "-1 0:1 \n", "line 11: indices must be at least 1"),
            ("3:2", "1:2", "line 10: indices must be at least 1, and increase"),
            ("3:2", "3:inf", "is not a finite number"),
            ("3:2", f"{2**62}:2", "line 10: indices must be at most 2147483647"),
            ("kernel_type rbf", POLYNOMIAL.format(10**30), "'degree' must be whole"),
            (
                "kernel_type rbf",
                POLYNOMIAL.format(2**31),
                "'degree' must be from 0 to 2147483647; got 2147483648",
            ),
        ],
    )
    def test_invalid_libsvm_files_are_refused(self, path, old, new, message):
        path.write_text(LIBSVM.replace(old, new))
        assert message in refusal(mm.from_libsvm, path)


class TestJson:
    @pytest.mark.parametrize("C", [2.0, np.inf])
    def test_record_holds_names_parameters_and_bounds(self, C, path):
        names = ["length", "width, of leaves", "Länge", "4"]
        frame = pd.DataFrame(X, columns=names)
        model = MaxMarginClassifier(C=C).fit(frame, NAMES == "setosa")
        mm.to_json(model, path)
        record = json.loads(path.read_text(encoding="utf-8"))
        assert record == mm.to_dict(model)
        assert (record["model"], record["classes"]) == ("MaxMarginClassifier", [False, True])
        (decision,) = record["decisions"]
        assert decision["coef"] == dict(zip(names, model.coef_[0].tolist(), strict=True))
        bounds, certificate = decision["bounds"], model.certificate_
        assert bounds["of"] == ("objective" if C == 2.0 else "margin")
        assert [bounds["lower"], bounds["upper"]] == [certificate.lower, certificate.upper]
        assert record["parameters"]["C"] == ("inf" if np.inf == C else C)
        copy = mm.from_json(path)
        assert copy.feature_names_in_.tolist() == names
        assert np.array_equal(copy.decision_function(frame), model.decision_function(frame))
        assert mm.to_dict(copy)["decisions"] == record["decisions"]

    def test_cross_validated_and_online_models_are_written(self):
        model = mm.MaxMarginClassifierCV(Cs=[0.1, 1.0], cv=2).fit(X, NAMES)
        assert mm.to_dict(model) == mm.to_dict(model.best_estimator_)
        assert_equal_predictions(mm.from_dict(mm.to_dict(model)), model)
        record = mm.to_dict(OnlineMarginClassifier(random_state=0).fit(X, THREE_CLASSES))
        assert [one["bounds"]["lower"] for one in record["decisions"]] == ["-inf"] * 3
        json.dumps(record, allow_nan=False)

    @pytest.mark.parametrize(
        ("change", "message"),
        [
            ({"format": "PMML"}, "not a model that to_json wrote"),
            ({"version": 2}, "install a newer maxmargin"),
            ({"version": 0}, '"version" must be at least 1'),
            ({"classes": [None, 1]}, "all numbers, all strings"),
            ({"classes": [True, 2]}, "all numbers, all strings"),
            ({"classes": [[1], [1, 2]]}, "all numbers, all strings"),
            ({"classes": [1, 10**400]}, "contains a class that a NumPy array cannot hold"),
            ({"classes": [1, 2**70]}, "contains a class that a NumPy array cannot hold"),
            ({"classes": [1, 1]}, "at least two different classes"),
            ({"n_features": "4"}, '"n_features" must be a whole number'),
            ({"features": ["a"]}, '"features" must be 4 names'),
            ({"decisions": []}, '2 classes need 1 "decisions"; got 0'),
            ({"decisions": [{"class": 1, "coef": [1, 2, 3]}]}, '"coef" of decision 0 must be 4 numbers'),
            (
                {"decisions": [{"class": 1, "coef": [1, 2, 3, "x"]}]},
                "weight 3 of decision 0 must be a finite",
            ),
            ({"decisions": [{"class": 1, "coef": [1, 2, 3, 4]}]}, "the intercept of decision 0"),
            ({"decisions": [{"class": 1, "coef": {"a": 1}}]}, '"features"'),
            # 1 and true are equal in Python, but are classes of different types
            ({"decisions": [{**JSON["decisions"][0], "class": True}]}, "decision 0 must have the class 1"),
            ({"decisions": [{**JSON["decisions"][0], "class": -1}]}, "decision 0 must have the class 1"),
        ],
    )
    def test_invalid_records_are_refused_with_the_reason(self, change, message):
        assert message in refusal(mm.from_dict, {**JSON, **change})

    def test_invalid_files_are_refused(self, path):
        whole = json.dumps(JSON).encode()
        for text, message in (
            *((whole[:cut], "not JSON, or it is cut short") for cut in range(0, len(whole) - 1, 37)),
            (b"[1]", "not a model"), (b"\xff", "UTF-8"), (b'{"a": NaN}', "NaN is not a number"),
            (b'{"version": ' + b"1" * 5000 + b"}", "a whole number is too long"),
        ):  # fmt: skip
            path.write_bytes(text)
            assert message in refusal(mm.from_json, path)
