"""ONNX graphs: labels and scores equal those of the estimators, and labels match scores."""

from __future__ import annotations

import sys

import numpy as np
import pytest
from sklearn.calibration import CalibratedClassifierCV
from sklearn.compose import ColumnTransformer
from sklearn.datasets import load_iris
from sklearn.ensemble import BaggingClassifier, StackingClassifier
from sklearn.exceptions import NotFittedError
from sklearn.impute import SimpleImputer
from sklearn.model_selection import FixedThresholdClassifier, GridSearchCV
from sklearn.multiclass import OneVsRestClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils._param_validation import InvalidParameterError

from maxmargin import (
    KernelMaxMarginClassifier,
    MarginRFE,
    MaxMarginClassifier,
    MaxMarginClassifierCV,
    ModelFileError,
    OnlineMarginClassifier,
    from_liblinear,
    from_libsvm,
    to_libsvm,
    to_onnx,
)

pytest.importorskip("skl2onnx", reason="pip install 'maxmargin[onnx]'")
runtime = pytest.importorskip("onnxruntime", reason="pip install onnxruntime")

RNG = np.random.default_rng(0)
X, SPECIES = load_iris(return_X_y=True)
STRING_LABELS = np.array(["setosa", "versicolor", "virginica"])[SPECIES]
NEW = np.vstack([X, RNG.normal(3.0, 3.0, (300, 4)), np.zeros((1, 4))])
LABELS = {
    "two": np.where(SPECIES == 1, 3, -5),
    "three": SPECIES,
    "words": STRING_LABELS,
    "two words": np.where(SPECIES == 2, "yes", "no"),
    "truth": SPECIES == 0,
    "fractions": np.where(SPECIES == 0, -1.0, 1.0),
}
KERNELS = {
    "linear": {},
    "poly": {"degree": 3, "gamma": 0.2, "coef0": 1.0},
    "rbf": {"gamma": 0.7},
}


def run(path, rows):
    """Run a graph; return labels and scores."""
    session = runtime.InferenceSession(path, providers=["CPUExecutionProvider"])
    assert [one.name for one in session.get_outputs()] == ["label", "scores"]
    return session.run(None, {"X": rows})


def export_and_compare(model, tmp_path, dtype=np.float64, **options):
    """Export, run on new rows and compare with the estimator; return labels, scores and expected labels."""
    to_onnx(model, tmp_path / "a.onnx", dtype=dtype, **options)
    rows = NEW.astype(dtype)
    labels, scores = run(tmp_path / "a.onnx", rows)
    expected = model.decision_function(rows)
    assert scores.dtype == dtype
    assert scores.shape == expected.shape
    size = np.abs(expected).max()
    # arithmetic is double in both cases; float32 scores are rounded once
    tolerance = 1e-11 if dtype == np.float64 else 1.2e-7
    assert np.allclose(scores, expected, rtol=tolerance, atol=1e-11 * size)
    return np.asarray(labels), scores, model.predict(rows)


def labels_match_scores(labels, scores, classes):
    """Tell whether each label is the one that its scores select."""
    places = (scores > 0).astype(int) if scores.ndim == 1 else scores.argmax(axis=1)
    return np.array_equal(labels, classes[places])


class TestLinear:
    @pytest.mark.parametrize("dtype", [np.float64, np.float32])
    @pytest.mark.parametrize("labels", LABELS)
    def test_graph_labels_and_scores_equal_the_model(self, labels, dtype, tmp_path):
        model = MaxMarginClassifier().fit(X, LABELS[labels])
        found, scores, expected = export_and_compare(model, tmp_path, dtype)
        assert np.array_equal(found, expected)
        assert labels_match_scores(found, scores, model.classes_)

    def test_cross_validated_model_equals_its_graph(self, tmp_path):
        for y in (LABELS["two"], STRING_LABELS):
            model = MaxMarginClassifierCV(Cs=[0.1, 1.0], cv=2).fit(X, y)
            found, scores, expected = export_and_compare(model, tmp_path)
            assert np.array_equal(found, expected)
            assert labels_match_scores(found, scores, model.classes_)

    def test_online_models_are_exported_or_refused_by_trail_and_hasher(self, tmp_path):
        for trail in ("average", "last"):
            model = OnlineMarginClassifier(trail=trail, random_state=0).fit(X, SPECIES)
            found, scores, expected = export_and_compare(model, tmp_path)
            assert np.array_equal(found, expected)
            assert labels_match_scores(found, scores, model.classes_)
        voting = OnlineMarginClassifier(trail="vote", random_state=0).fit(X, SPECIES)
        with pytest.raises(ModelFileError, match='fit with trail="average"'):
            to_onnx(voting, tmp_path / "b.onnx")
        hashed = OnlineMarginClassifier(hasher=8).partial_fit([{"a": 1}, {"b": 1}], [0, 1], classes=[0, 1])
        with pytest.raises(ModelFileError, match=r"without a hasher .* with --n-features"):
            to_onnx(hashed, tmp_path / "b.onnx")
        assert not (tmp_path / "b.onnx").exists()

    @pytest.mark.parametrize("labels", ["two", "three"])
    def test_float32_labels_match_their_scores_near_the_boundary(self, labels, tmp_path):
        """Labels of rows on the boundary may differ from the estimator, but not from the scores of the graph."""
        model = MaxMarginClassifier().fit(X, LABELS[labels])
        w = model.coef_[0] if labels == "two" else model.coef_[0] - model.coef_[1]
        b = model.intercept_[0] if labels == "two" else model.intercept_[0] - model.intercept_[1]
        rows = NEW - ((NEW @ w + b) / (w @ w))[:, None] * w
        rows = np.vstack([rows, np.nextafter(rows, np.inf)]).astype(np.float32)
        for double in (True, False):
            to_onnx(model, tmp_path / "a.onnx", dtype=np.float32, double=double)
            found, scores = run(tmp_path / "a.onnx", rows)
            assert labels_match_scores(found, scores, model.classes_)
            # each of d + 1 products and sums has an error of at most half a unit
            unit = np.finfo(np.float32).eps
            bound = np.abs(rows) @ np.abs(model.coef_.T) + np.abs(model.intercept_)
            off = np.abs(
                scores.reshape(len(rows), -1) - (rows.astype(float) @ model.coef_.T + model.intercept_)
            )
            assert (off <= 6 * unit * bound).all()

    def test_float32_graphs_contain_no_doubles(self, tmp_path):
        import onnx

        for model in (MaxMarginClassifier(), KernelMaxMarginClassifier(multi_class="ovo")):
            to_onnx(model.fit(X, SPECIES), tmp_path / "a.onnx", dtype=np.float32, double=False)
            graph = onnx.load(tmp_path / "a.onnx").graph
            double = onnx.TensorProto.DOUBLE
            assert all(one.data_type != double for one in graph.initializer)
            casts = [a.i for node in graph.node if node.op_type == "Cast" for a in node.attribute]
            assert double not in casts

    def test_zero_scores_are_decided_in_the_order_of_liblinear(self, tmp_path):
        for order in ("1 -1", "-1 1"):
            (tmp_path / "a.model").write_text(
                f"solver_type L2R_LR\nnr_class 2\nlabel {order}\nnr_feature 4\nbias -1\nw\n1 \n0 \n0 \n-1 \n"
            )
            model = from_liblinear(tmp_path / "a.model")
            found, _, expected = export_and_compare(model, tmp_path)
            assert np.array_equal(found, expected)
            assert found[-1] == int(order.split()[1])
        (tmp_path / "a.model").write_text(
            "solver_type L2R_LR\nnr_class 3\nlabel 5 -2 3\nnr_feature 4\nbias -1\nw\n1 2 3\n0 0 1\n3 2 1\n0 1 0\n"
        )
        model = from_liblinear(tmp_path / "a.model")
        found, _, expected = export_and_compare(model, tmp_path)
        assert np.array_equal(found, expected)
        assert found[-1] == 5


class TestKernels:
    @pytest.mark.parametrize("dtype", [np.float64, np.float32])
    @pytest.mark.parametrize("kernel", KERNELS)
    @pytest.mark.parametrize("labels", ["two words", "three"])
    def test_one_against_rest_kernels_equal_the_model(self, labels, kernel, dtype, tmp_path):
        model = KernelMaxMarginClassifier(kernel=kernel, **KERNELS[kernel]).fit(X, LABELS[labels])
        found, scores, expected = export_and_compare(model, tmp_path, dtype)
        assert np.array_equal(found, expected)
        assert labels_match_scores(found, scores, model.classes_)

    @pytest.mark.parametrize("dtype", [np.float64, np.float32])
    @pytest.mark.parametrize(("shape", "break_ties"), [("ovr", False), ("ovr", True), ("ovo", False)])
    def test_pairwise_kernels_equal_the_model(self, shape, break_ties, dtype, tmp_path):
        # random labels: many votes are tied
        y = np.random.default_rng(0).permutation(np.arange(150) % 4)
        model = KernelMaxMarginClassifier(
            multi_class="ovo", decision_function_shape=shape, break_ties=break_ties, gamma=0.5, C=5.0
        ).fit(X, y)
        found, scores, expected = export_and_compare(model, tmp_path, dtype)
        assert np.array_equal(found, expected)
        if break_ties:
            assert labels_match_scores(found, scores, model.classes_)
            return
        votes = np.rint(scores)
        if shape == "ovo":
            pairs = [(i, j) for i in range(4) for j in range(i + 1, 4)]
            votes = np.zeros((len(NEW), 4))
            for k, (i, j) in enumerate(pairs):
                votes[:, i] += scores[:, k] > 0
                votes[:, j] += scores[:, k] <= 0
        assert (np.sort(votes, axis=1)[:, -1] == np.sort(votes, axis=1)[:, -2]).any()
        assert labels_match_scores(found, votes, model.classes_)

    @pytest.mark.parametrize("shape", ["ovr", "ovo"])
    def test_imported_libsvm_models_equal_the_model(self, shape, tmp_path):
        model = KernelMaxMarginClassifier(multi_class="ovo").fit(X, SPECIES)
        to_libsvm(model, tmp_path / "a.model", labels=[7, 3, 5])
        read = from_libsvm(tmp_path / "a.model").set_params(decision_function_shape=shape)
        found, _, expected = export_and_compare(read, tmp_path)
        assert np.array_equal(found, expected)

    def test_sigmoid_kernel_equals_the_model(self, tmp_path):
        (tmp_path / "a.model").write_text(
            "svm_type c_svc\nkernel_type sigmoid\ngamma 0.5\ncoef0 -1\nnr_class 2\ntotal_sv 2\nrho 0.125\n"
            "label -1 1\nnr_sv 1 1\nSV\n1 1:2 4:1 \n-1 2:3 \n"
        )
        found, _, expected = export_and_compare(from_libsvm(tmp_path / "a.model"), tmp_path)
        assert np.array_equal(found, expected)

    def test_unsupported_kernels_are_refused(self, tmp_path):
        for kernel, data, message in (
            ("precomputed", X @ X.T, "precomputed, and the input of the graph consists of rows"),
            ("laplacian", X, "the kernel laplacian cannot be written as a graph"),
            (lambda A, B: A @ B.T, X, "the kernel is a Python function"),
        ):
            model = KernelMaxMarginClassifier(kernel=kernel).fit(data, LABELS["two"])
            with pytest.raises(ModelFileError, match=message):
                to_onnx(model, tmp_path / "a.onnx")
        assert not (tmp_path / "a.onnx").exists()


class TestPipelines:
    @pytest.mark.parametrize("dtype", [np.float64, np.float32])
    @pytest.mark.parametrize("labels", ["words", "two"])
    def test_scaler_pipelines_equal_the_model(self, labels, dtype, tmp_path):
        for model in (MaxMarginClassifier(), KernelMaxMarginClassifier()):
            pipe = make_pipeline(StandardScaler(), model).fit(X, LABELS[labels])
            to_onnx(pipe, tmp_path / "a.onnx", dtype=dtype)
            found, scores = run(tmp_path / "a.onnx", NEW.astype(dtype))
            assert np.allclose(
                scores, pipe.decision_function(NEW), atol=1e-10 if dtype == np.float64 else 1e-4
            )
            assert labels_match_scores(found, scores, pipe.classes_)

    def test_converters_are_registered_with_skl2onnx(self):
        import skl2onnx

        from maxmargin.io.onnx import register

        register()
        register()  # a second call changes nothing
        pipe = make_pipeline(StandardScaler(), MaxMarginClassifier()).fit(X, SPECIES)
        graph = skl2onnx.to_onnx(pipe, X[:1], options={id(pipe[-1]): {"double": True}}, target_opset=13)
        session = runtime.InferenceSession(graph.SerializeToString(), providers=["CPUExecutionProvider"])
        found, _ = session.run(None, {"X": NEW})
        assert np.array_equal(found, pipe.predict(NEW))

    @pytest.mark.parametrize("labels", ["words", "two"])
    @pytest.mark.parametrize("wrapper", ["search", "pipeline", "both"])
    def test_nested_pipelines_and_searches_keep_the_certificate(self, wrapper, labels, tmp_path):
        import onnx

        pipe = make_pipeline(StandardScaler(), MaxMarginClassifier())
        model = {
            "search": GridSearchCV(pipe, {"maxmarginclassifier__C": [0.1, 1.0]}, cv=2),
            "pipeline": make_pipeline(StandardScaler(), pipe),
            "both": make_pipeline(
                StandardScaler(), GridSearchCV(pipe, {"maxmarginclassifier__C": [1.0]}, cv=2)
            ),
        }[wrapper].fit(X, LABELS[labels])
        to_onnx(model, tmp_path / "a.onnx")
        found, scores = run(tmp_path / "a.onnx", NEW)
        assert np.allclose(scores, model.decision_function(NEW), atol=1e-10)
        assert labels_match_scores(found, scores, model.classes_)
        inner = model
        while not isinstance(inner, MaxMarginClassifier):
            inner = inner[-1] if hasattr(inner, "steps") else inner.best_estimator_
        for options in ({}, {"dtype": np.float32, "double": False}):
            to_onnx(model, tmp_path / "a.onnx", **options)
            graph = onnx.load(tmp_path / "a.onnx")
            metadata = {one.key: one.value for one in graph.metadata_props}
            assert metadata["certificate"] == str(inner.certificate_)
        kinds = [one.data_type for one in graph.graph.initializer]
        kinds += [a.i for node in graph.graph.node if node.op_type == "Cast" for a in node.attribute]
        assert onnx.TensorProto.DOUBLE not in kinds

    @pytest.mark.parametrize("ensemble", [True, False])
    @pytest.mark.parametrize(
        "model",
        [
            MaxMarginClassifier(),
            MaxMarginClassifierCV(Cs=[1.0]),
            KernelMaxMarginClassifier(),
            KernelMaxMarginClassifier(multi_class="ovo"),
        ],
        ids=["linear", "path", "kernel", "pairs"],
    )
    def test_calibrated_probabilities_equal_the_model(self, model, ensemble, tmp_path):
        calibration = CalibratedClassifierCV(model, cv=2, ensemble=ensemble)
        searched = GridSearchCV(calibration, {"cv": [2]}, cv=2)
        cases = [
            (calibration, LABELS["two"]),
            (make_pipeline(StandardScaler(), calibration), LABELS["two words"]),
            (searched, SPECIES),
        ]
        for calibrated, y in cases:
            calibrated.fit(X, y)
            to_onnx(calibrated, tmp_path / "a.onnx")
            session = runtime.InferenceSession(tmp_path / "a.onnx", providers=["CPUExecutionProvider"])
            found, probabilities = session.run(None, {"X": X})
            assert np.allclose(probabilities, calibrated.predict_proba(X), atol=1e-6)
            assert np.array_equal(found, calibrated.predict(X))

    def test_pipeline_inside_calibration_is_refused(self, tmp_path):
        """skl2onnx uses the score of the second row for all rows, and takes labels as numbers."""
        pipe = make_pipeline(StandardScaler(), MaxMarginClassifier())
        model = CalibratedClassifierCV(pipe, cv=2).fit(X, LABELS["two"])
        with pytest.raises(
            ModelFileError, match="inside of Pipeline: put pipelines and searches around Cali"
        ):
            to_onnx(model, tmp_path / "a.onnx")
        assert not (tmp_path / "a.onnx").exists()

    @pytest.mark.parametrize("method", ["isotonic", "temperature"])
    def test_calibration_other_than_sigmoid_is_refused(self, method, tmp_path):
        """skl2onnx takes the nearest step of an isotonic regression, and does not support temperatures."""
        model = CalibratedClassifierCV(MaxMarginClassifier(), method=method, cv=2)
        try:
            model.fit(X, SPECIES)
        except InvalidParameterError:
            pytest.skip("this version of scikit-learn lacks the method")
        with pytest.raises(ModelFileError, match=f"'{method}'.* use \"sigmoid\""):
            to_onnx(model, tmp_path / "a.onnx")
        assert not (tmp_path / "a.onnx").exists()

    @pytest.mark.parametrize(
        "wrapper",
        [
            OneVsRestClassifier(MaxMarginClassifier()),
            BaggingClassifier(make_pipeline(StandardScaler(), MaxMarginClassifier()), n_estimators=2),
            FixedThresholdClassifier(MaxMarginClassifier(), threshold=0.1),
            StackingClassifier(
                [("one", MaxMarginClassifier()), ("other", KernelMaxMarginClassifier())], cv=2
            ),
        ],
        ids=lambda model: type(model).__name__,
    )
    def test_meta_estimators_with_other_predictions_are_refused(self, wrapper, tmp_path):
        for model in (wrapper, make_pipeline(StandardScaler(), wrapper)):
            model.fit(X, LABELS["two"])
            with pytest.raises(
                ModelFileError, match=f"not in {type(wrapper).__name__}: write the classifier alone"
            ):
                to_onnx(model, tmp_path / "a.onnx")
        assert not (tmp_path / "a.onnx").exists()

    def test_float32_pipeline_with_imputer_equals_the_model(self, tmp_path):
        pipe = make_pipeline(SimpleImputer(), MaxMarginClassifier()).fit(X, SPECIES)
        to_onnx(pipe, tmp_path / "a.onnx", dtype=np.float32)
        rows = np.where(RNG.random(X.shape) < 0.1, np.nan, X).astype(np.float32)
        found, scores = run(tmp_path / "a.onnx", rows)
        assert np.allclose(scores, pipe.decision_function(rows), atol=1e-4)
        assert labels_match_scores(found, scores, pipe.classes_)

    def test_unsupported_pipeline_steps_are_refused(self, tmp_path):
        pd = pytest.importorskip("pandas")
        frame = pd.DataFrame(X, columns=list("abcd"))
        columns = ColumnTransformer([("scaled", StandardScaler(), ["a", "c"])])
        pipe = make_pipeline(columns, MaxMarginClassifier()).fit(frame, SPECIES)
        with pytest.raises(ModelFileError, match="numbers of the columns"):
            to_onnx(pipe, tmp_path / "a.onnx")
        with pytest.raises(ModelFileError, match="of a MarginRFE its estimator_"):
            to_onnx(MarginRFE().fit(X, LABELS["two"]), tmp_path / "a.onnx")
        assert not (tmp_path / "a.onnx").exists()
        # columns selected by number are supported
        columns = ColumnTransformer([("scaled", StandardScaler(), [0, 2])])
        pipe = make_pipeline(columns, MaxMarginClassifier()).fit(X, SPECIES)
        to_onnx(pipe, tmp_path / "a.onnx")
        assert np.allclose(run(tmp_path / "a.onnx", NEW)[1], pipe.decision_function(NEW), atol=1e-10)

    def test_pipelines_without_a_maxmargin_classifier_are_exported(self, tmp_path):
        to_onnx(StandardScaler().fit(X), tmp_path / "a.onnx")
        session = runtime.InferenceSession(tmp_path / "a.onnx", providers=["CPUExecutionProvider"])
        assert np.allclose(session.run(None, {"X": NEW})[0], StandardScaler().fit(X).transform(NEW))


class TestFiles:
    def test_certificate_is_stored_in_the_metadata(self, tmp_path):
        import onnx

        model = MaxMarginClassifier().fit(X, LABELS["two"])
        to_onnx(model, tmp_path / "a.onnx")
        metadata = {one.key: one.value for one in onnx.load(tmp_path / "a.onnx").metadata_props}
        assert metadata["certificate"] == str(model.certificate_)

    def test_unfitted_models_and_invalid_dtypes_are_refused(self, tmp_path):
        with pytest.raises(NotFittedError):
            to_onnx(MaxMarginClassifier(), tmp_path / "a.onnx")
        model = MaxMarginClassifier().fit(X, LABELS["two"])
        with pytest.raises(ModelFileError, match="float64 or float32"):
            to_onnx(model, tmp_path / "a.onnx", dtype=np.int64)
        assert not list(tmp_path.iterdir())

    def test_missing_skl2onnx_raises_import_error_with_the_remedy(self, tmp_path, monkeypatch):
        monkeypatch.setitem(sys.modules, "skl2onnx", None)
        model = MaxMarginClassifier().fit(X, LABELS["two"])
        with pytest.raises(ImportError, match=r"pip install 'maxmargin\[onnx\]'"):
            to_onnx(model, tmp_path / "a.onnx")
