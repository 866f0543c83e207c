"""ONNX graphs: they say what the estimators say, and no label contradicts the scores beside it."""

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
WORDS = np.array(["setosa", "versicolor", "virginica"])[SPECIES]
NEW = np.vstack([X, RNG.normal(3.0, 3.0, (300, 4)), np.zeros((1, 4))])
LABELS = {
    "two": np.where(SPECIES == 1, 3, -5),
    "three": SPECIES,
    "words": WORDS,
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
    """Labels and scores of a graph."""
    session = runtime.InferenceSession(path, providers=["CPUExecutionProvider"])
    assert [one.name for one in session.get_outputs()] == ["label", "scores"]
    return session.run(None, {"X": rows})


def written(model, tmp_path, dtype=np.float64, **options):
    """Write, run on new rows, and compare with the estimator; labels and scores."""
    to_onnx(model, tmp_path / "a.onnx", dtype=dtype, **options)
    rows = NEW.astype(dtype)
    labels, scores = run(tmp_path / "a.onnx", rows)
    expected = model.decision_function(rows)
    assert scores.dtype == dtype
    assert scores.shape == expected.shape
    size = np.abs(expected).max()
    # double arithmetic in any case: float32 scores are rounded once
    tolerance = 1e-11 if dtype == np.float64 else 1.2e-7
    assert np.allclose(scores, expected, rtol=tolerance, atol=1e-11 * size)
    return np.asarray(labels), scores, model.predict(rows)


def agree(labels, scores, classes):
    """Is every label the one that the scores beside it name?"""
    places = (scores > 0).astype(int) if scores.ndim == 1 else scores.argmax(axis=1)
    return np.array_equal(labels, classes[places])


class TestLinear:
    @pytest.mark.parametrize("dtype", [np.float64, np.float32])
    @pytest.mark.parametrize("labels", LABELS)
    def test_labels_and_scores(self, labels, dtype, tmp_path):
        model = MaxMarginClassifier().fit(X, LABELS[labels])
        found, scores, expected = written(model, tmp_path, dtype)
        assert np.array_equal(found, expected)
        assert agree(found, scores, model.classes_)

    def test_a_choice_by_cross_validation(self, tmp_path):
        for y in (LABELS["two"], WORDS):
            model = MaxMarginClassifierCV(Cs=[0.1, 1.0], cv=2).fit(X, y)
            found, scores, expected = written(model, tmp_path)
            assert np.array_equal(found, expected)
            assert agree(found, scores, model.classes_)

    def test_streams(self, tmp_path):
        for trail in ("average", "last"):
            model = OnlineMarginClassifier(trail=trail, random_state=0).fit(X, SPECIES)
            found, scores, expected = written(model, tmp_path)
            assert np.array_equal(found, expected)
            assert agree(found, scores, model.classes_)
        voting = OnlineMarginClassifier(trail="vote", random_state=0).fit(X, SPECIES)
        with pytest.raises(ModelFileError, match='fit with trail="average"'):
            to_onnx(voting, tmp_path / "b.onnx")
        hashed = OnlineMarginClassifier(hasher=8).partial_fit([{"a": 1}, {"b": 1}], [0, 1], classes=[0, 1])
        with pytest.raises(ModelFileError, match=r"without a hasher .* with --n-features"):
            to_onnx(hashed, tmp_path / "b.onnx")
        assert not (tmp_path / "b.onnx").exists()

    @pytest.mark.parametrize("labels", ["two", "three"])
    def test_float32_arithmetic_contradicts_itself_nowhere(self, labels, tmp_path):
        """Rows on the boundary up to rounding: there labels may differ from ours, never from their own scores."""
        model = MaxMarginClassifier().fit(X, LABELS[labels])
        w = model.coef_[0] if labels == "two" else model.coef_[0] - model.coef_[1]
        b = model.intercept_[0] if labels == "two" else model.intercept_[0] - model.intercept_[1]
        rows = NEW - ((NEW @ w + b) / (w @ w))[:, None] * w
        rows = np.vstack([rows, np.nextafter(rows, np.inf)]).astype(np.float32)
        for double in (True, False):
            to_onnx(model, tmp_path / "a.onnx", dtype=np.float32, double=double)
            found, scores = run(tmp_path / "a.onnx", rows)
            assert agree(found, scores, model.classes_)
            # each of d + 1 products and sums is off by half a unit at most
            unit = np.finfo(np.float32).eps
            bound = np.abs(rows) @ np.abs(model.coef_.T) + np.abs(model.intercept_)
            off = np.abs(
                scores.reshape(len(rows), -1) - (rows.astype(float) @ model.coef_.T + model.intercept_)
            )
            assert (off <= 6 * unit * bound).all()

    def test_float32_arithmetic_has_no_doubles(self, tmp_path):
        import onnx

        for model in (MaxMarginClassifier(), KernelMaxMarginClassifier(multi_class="ovo")):
            to_onnx(model.fit(X, SPECIES), tmp_path / "a.onnx", dtype=np.float32, double=False)
            graph = onnx.load(tmp_path / "a.onnx").graph
            double = onnx.TensorProto.DOUBLE
            assert all(one.data_type != double for one in graph.initializer)
            casts = [a.i for node in graph.node if node.op_type == "Cast" for a in node.attribute]
            assert double not in casts

    def test_even_scores_of_a_model_of_liblinear(self, tmp_path):
        for order in ("1 -1", "-1 1"):
            (tmp_path / "a.model").write_text(
                f"solver_type L2R_LR\nnr_class 2\nlabel {order}\nnr_feature 4\nbias -1\nw\n1 \n0 \n0 \n-1 \n"
            )
            model = from_liblinear(tmp_path / "a.model")
            found, _, expected = written(model, tmp_path)
            assert np.array_equal(found, expected)
            assert found[-1] == int(order.split()[1])
        (tmp_path / "a.model").write_text(
            "solver_type L2R_LR\nnr_class 3\nlabel 5 -2 3\nnr_feature 4\nbias -1\nw\n1 2 3\n0 0 1\n3 2 1\n0 1 0\n"
        )
        model = from_liblinear(tmp_path / "a.model")
        found, _, expected = written(model, tmp_path)
        assert np.array_equal(found, expected)
        assert found[-1] == 5


class TestKernels:
    @pytest.mark.parametrize("dtype", [np.float64, np.float32])
    @pytest.mark.parametrize("kernel", KERNELS)
    @pytest.mark.parametrize("labels", ["two words", "three"])
    def test_against_the_rest(self, labels, kernel, dtype, tmp_path):
        model = KernelMaxMarginClassifier(kernel=kernel, **KERNELS[kernel]).fit(X, LABELS[labels])
        found, scores, expected = written(model, tmp_path, dtype)
        assert np.array_equal(found, expected)
        assert agree(found, scores, model.classes_)

    @pytest.mark.parametrize("dtype", [np.float64, np.float32])
    @pytest.mark.parametrize(("shape", "break_ties"), [("ovr", False), ("ovr", True), ("ovo", False)])
    def test_against_each_other(self, shape, break_ties, dtype, tmp_path):
        # labels that say nothing: many votes are even
        y = np.random.default_rng(0).permutation(np.arange(150) % 4)
        model = KernelMaxMarginClassifier(
            multi_class="ovo", decision_function_shape=shape, break_ties=break_ties, gamma=0.5, C=5.0
        ).fit(X, y)
        found, scores, expected = written(model, tmp_path, dtype)
        assert np.array_equal(found, expected)
        if break_ties:
            assert agree(found, scores, model.classes_)
            return
        votes = np.rint(scores)
        if shape == "ovo":
            pairs = [(i, j) for i in range(4) for j in range(i + 1, 4)]
            votes = np.zeros((len(NEW), 4))
            for k, (i, j) in enumerate(pairs):
                votes[:, i] += scores[:, k] > 0
                votes[:, j] += scores[:, k] <= 0
        assert (np.sort(votes, axis=1)[:, -1] == np.sort(votes, axis=1)[:, -2]).any()
        assert agree(found, votes, model.classes_)

    @pytest.mark.parametrize("shape", ["ovr", "ovo"])
    def test_models_of_libsvm(self, shape, tmp_path):
        model = KernelMaxMarginClassifier(multi_class="ovo").fit(X, SPECIES)
        to_libsvm(model, tmp_path / "a.model", labels=[7, 3, 5])
        read = from_libsvm(tmp_path / "a.model").set_params(decision_function_shape=shape)
        found, _, expected = written(read, tmp_path)
        assert np.array_equal(found, expected)

    def test_the_sigmoid(self, tmp_path):
        (tmp_path / "a.model").write_text(
            "svm_type c_svc\nkernel_type sigmoid\ngamma 0.5\ncoef0 -1\nnr_class 2\ntotal_sv 2\nrho 0.125\n"
            "label -1 1\nnr_sv 1 1\nSV\n1 1:2 4:1 \n-1 2:3 \n"
        )
        found, _, expected = written(from_libsvm(tmp_path / "a.model"), tmp_path)
        assert np.array_equal(found, expected)

    def test_kernels_without_a_graph(self, tmp_path):
        for kernel, data, said in (
            ("precomputed", X @ X.T, "precomputed, and the input of the graph consists of rows"),
            ("laplacian", X, "the kernel laplacian cannot be written as a graph"),
            (lambda A, B: A @ B.T, X, "the kernel is a Python function"),
        ):
            model = KernelMaxMarginClassifier(kernel=kernel).fit(data, LABELS["two"])
            with pytest.raises(ModelFileError, match=said):
                to_onnx(model, tmp_path / "a.onnx")
        assert not (tmp_path / "a.onnx").exists()


class TestPipelines:
    @pytest.mark.parametrize("dtype", [np.float64, np.float32])
    @pytest.mark.parametrize("labels", ["words", "two"])
    def test_of_a_scaler(self, labels, dtype, tmp_path):
        for model in (MaxMarginClassifier(), KernelMaxMarginClassifier()):
            pipe = make_pipeline(StandardScaler(), model).fit(X, LABELS[labels])
            to_onnx(pipe, tmp_path / "a.onnx", dtype=dtype)
            found, scores = run(tmp_path / "a.onnx", NEW.astype(dtype))
            assert np.allclose(
                scores, pipe.decision_function(NEW), atol=1e-10 if dtype == np.float64 else 1e-4
            )
            assert agree(found, scores, pipe.classes_)

    def test_skl2onnx_itself(self):
        import skl2onnx

        from maxmargin.io.onnx import register

        register()
        register()  # once more does no harm
        pipe = make_pipeline(StandardScaler(), MaxMarginClassifier()).fit(X, SPECIES)
        graph = skl2onnx.to_onnx(pipe, X[:1], options={id(pipe[-1]): {"double": True}}, target_opset=13)
        session = runtime.InferenceSession(graph.SerializeToString(), providers=["CPUExecutionProvider"])
        found, _ = session.run(None, {"X": NEW})
        assert np.array_equal(found, pipe.predict(NEW))

    @pytest.mark.parametrize("labels", ["words", "two"])
    @pytest.mark.parametrize("around", ["search", "pipeline", "both"])
    def test_classifiers_deep_inside(self, around, labels, tmp_path):
        import onnx

        pipe = make_pipeline(StandardScaler(), MaxMarginClassifier())
        model = {
            "search": GridSearchCV(pipe, {"maxmarginclassifier__C": [0.1, 1.0]}, cv=2),
            "pipeline": make_pipeline(StandardScaler(), pipe),
            "both": make_pipeline(
                StandardScaler(), GridSearchCV(pipe, {"maxmarginclassifier__C": [1.0]}, cv=2)
            ),
        }[around].fit(X, LABELS[labels])
        to_onnx(model, tmp_path / "a.onnx")
        found, scores = run(tmp_path / "a.onnx", NEW)
        assert np.allclose(scores, model.decision_function(NEW), atol=1e-10)
        assert agree(found, scores, model.classes_)
        inner = model
        while not isinstance(inner, MaxMarginClassifier):
            inner = inner[-1] if hasattr(inner, "steps") else inner.best_estimator_
        for options in ({}, {"dtype": np.float32, "double": False}):
            to_onnx(model, tmp_path / "a.onnx", **options)
            graph = onnx.load(tmp_path / "a.onnx")
            beside = {one.key: one.value for one in graph.metadata_props}
            assert beside["certificate"] == str(inner.certificate_)
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
    def test_calibrated_probabilities(self, model, ensemble, tmp_path):
        whole = CalibratedClassifierCV(model, cv=2, ensemble=ensemble)
        searched = GridSearchCV(whole, {"cv": [2]}, cv=2)
        cases = [
            (whole, LABELS["two"]),
            (make_pipeline(StandardScaler(), whole), LABELS["two words"]),
            (searched, SPECIES),
        ]
        for calibrated, y in cases:
            calibrated.fit(X, y)
            to_onnx(calibrated, tmp_path / "a.onnx")
            session = runtime.InferenceSession(tmp_path / "a.onnx", providers=["CPUExecutionProvider"])
            found, shares = session.run(None, {"X": X})
            assert np.allclose(shares, calibrated.predict_proba(X), atol=1e-6)
            assert np.array_equal(found, calibrated.predict(X))

    def test_a_pipeline_inside_of_calibration_is_refused(self, tmp_path):
        """skl2onnx takes the score of the second row for all rows, and labels for numbers."""
        pipe = make_pipeline(StandardScaler(), MaxMarginClassifier())
        model = CalibratedClassifierCV(pipe, cv=2).fit(X, LABELS["two"])
        with pytest.raises(
            ModelFileError, match="inside of Pipeline: put pipelines and searches around Cali"
        ):
            to_onnx(model, tmp_path / "a.onnx")
        assert not (tmp_path / "a.onnx").exists()

    @pytest.mark.parametrize("method", ["isotonic", "temperature"])
    def test_other_calibration_is_refused(self, method, tmp_path):
        """skl2onnx takes the nearest step of an isotonic regression, and does not know temperatures."""
        model = CalibratedClassifierCV(MaxMarginClassifier(), method=method, cv=2)
        try:
            model.fit(X, SPECIES)
        except InvalidParameterError:
            pytest.skip("this scikit-learn does not have it")
        with pytest.raises(ModelFileError, match=f"'{method}'.* use \"sigmoid\""):
            to_onnx(model, tmp_path / "a.onnx")
        assert not (tmp_path / "a.onnx").exists()

    @pytest.mark.parametrize(
        "around",
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
    def test_what_would_have_other_answers_is_refused(self, around, tmp_path):
        for model in (around, make_pipeline(StandardScaler(), around)):
            model.fit(X, LABELS["two"])
            with pytest.raises(
                ModelFileError, match=f"not in {type(around).__name__}: write the classifier alone"
            ):
                to_onnx(model, tmp_path / "a.onnx")
        assert not (tmp_path / "a.onnx").exists()

    def test_imputers_take_float32(self, tmp_path):
        pipe = make_pipeline(SimpleImputer(), MaxMarginClassifier()).fit(X, SPECIES)
        to_onnx(pipe, tmp_path / "a.onnx", dtype=np.float32)
        rows = np.where(RNG.random(X.shape) < 0.1, np.nan, X).astype(np.float32)
        found, scores = run(tmp_path / "a.onnx", rows)
        assert np.allclose(scores, pipe.decision_function(rows), atol=1e-4)
        assert agree(found, scores, pipe.classes_)

    def test_what_has_no_graph_is_told(self, tmp_path):
        pd = pytest.importorskip("pandas")
        frame = pd.DataFrame(X, columns=list("abcd"))
        columns = ColumnTransformer([("scaled", StandardScaler(), ["a", "c"])])
        pipe = make_pipeline(columns, MaxMarginClassifier()).fit(frame, SPECIES)
        with pytest.raises(ModelFileError, match="numbers of the columns"):
            to_onnx(pipe, tmp_path / "a.onnx")
        with pytest.raises(ModelFileError, match="of a MarginRFE its estimator_"):
            to_onnx(MarginRFE().fit(X, LABELS["two"]), tmp_path / "a.onnx")
        assert not (tmp_path / "a.onnx").exists()
        # by numbers it goes
        columns = ColumnTransformer([("scaled", StandardScaler(), [0, 2])])
        pipe = make_pipeline(columns, MaxMarginClassifier()).fit(X, SPECIES)
        to_onnx(pipe, tmp_path / "a.onnx")
        assert np.allclose(run(tmp_path / "a.onnx", NEW)[1], pipe.decision_function(NEW), atol=1e-10)

    def test_without_a_classifier_of_ours(self, tmp_path):
        to_onnx(StandardScaler().fit(X), tmp_path / "a.onnx")
        session = runtime.InferenceSession(tmp_path / "a.onnx", providers=["CPUExecutionProvider"])
        assert np.allclose(session.run(None, {"X": NEW})[0], StandardScaler().fit(X).transform(NEW))


class TestFiles:
    def test_the_certificate_is_written_beside(self, tmp_path):
        import onnx

        model = MaxMarginClassifier().fit(X, LABELS["two"])
        to_onnx(model, tmp_path / "a.onnx")
        beside = {one.key: one.value for one in onnx.load(tmp_path / "a.onnx").metadata_props}
        assert beside["certificate"] == str(model.certificate_)

    def test_bad_input(self, tmp_path):
        with pytest.raises(NotFittedError):
            to_onnx(MaxMarginClassifier(), tmp_path / "a.onnx")
        model = MaxMarginClassifier().fit(X, LABELS["two"])
        with pytest.raises(ModelFileError, match="float64 or float32"):
            to_onnx(model, tmp_path / "a.onnx", dtype=np.int64)
        assert not list(tmp_path.iterdir())

    def test_missing_skl2onnx_is_told(self, tmp_path, monkeypatch):
        monkeypatch.setitem(sys.modules, "skl2onnx", None)
        model = MaxMarginClassifier().fit(X, LABELS["two"])
        with pytest.raises(ImportError, match=r"pip install 'maxmargin\[onnx\]'"):
            to_onnx(model, tmp_path / "a.onnx")
