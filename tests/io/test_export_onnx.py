"""ONNX graphs: labels and scores equal those of the estimators, and labels match scores."""

from __future__ import annotations

import sys

import numpy as np
import pytest
from sklearn.compose import ColumnTransformer
from sklearn.datasets import load_iris
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import GridSearchCV
from sklearn.multiclass import OneVsRestClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import maxmargin as mm
from maxmargin import KernelMaxMarginClassifier, MaxMarginClassifier, OnlineMarginClassifier

onnx = pytest.importorskip("onnx", reason="pip install 'maxmargin[onnx]'")
skl2onnx = pytest.importorskip("skl2onnx", reason="pip install 'maxmargin[onnx]'")
runtime = pytest.importorskip("onnxruntime", reason="pip install onnxruntime")

RNG = np.random.default_rng(0)
X, SPECIES = load_iris(return_X_y=True)
NEW = np.vstack([X, RNG.normal(3.0, 3.0, (300, 4)), np.zeros((1, 4))])
LABELS = {
    "two": np.where(SPECIES == 1, 3, -5),
    "three": SPECIES,
    "words": np.array(["setosa", "versicolor", "virginica"])[SPECIES],
    "truth": SPECIES == 0,
    # random labels: many votes of pairs are tied
    "random": RNG.permutation(np.arange(150) % 4),
}
PAIRS = {"multi_class": "ovo", "gamma": 0.5, "C": 5.0}
POLY = {"kernel": "poly", "degree": 3, "gamma": 0.2, "coef0": 1.0}


@pytest.fixture
def path(tmp_path):
    return tmp_path / "a.onnx"


def run(path, rows):
    """Run a graph; return labels and scores."""
    session = runtime.InferenceSession(path, providers=["CPUExecutionProvider"])
    return session.run(None, {"X": rows})


def export_and_compare(model, path):
    """Export and run on new rows: labels and scores are those of the estimator, and labels those of the scores."""
    mm.to_onnx(model, path)
    labels, scores = run(path, NEW)
    expected = model.decision_function(NEW)
    assert (scores.dtype, scores.shape) == (np.float64, expected.shape)
    # sums over 150 rows at most, 150 eps = 3e-14
    assert np.allclose(scores, expected, rtol=1e-12, atol=1e-12 * np.abs(expected).max())
    assert np.array_equal(labels, model.predict(NEW))
    return np.asarray(labels), scores


def labels_match_scores(labels, scores, classes):
    places = (scores > 0).astype(int) if scores.ndim == 1 else scores.argmax(axis=1)
    return np.array_equal(labels, classes[places])


@pytest.mark.parametrize(
    ("model", "labels"),
    [
        (MaxMarginClassifier(), "two"),
        (MaxMarginClassifier(), "three"),
        (MaxMarginClassifier(), "truth"),
        (mm.MaxMarginClassifierCV(Cs=[0.1, 1.0], cv=2), "words"),
        (OnlineMarginClassifier(random_state=0), "three"),
        (KernelMaxMarginClassifier(kernel="linear"), "two"),
        (KernelMaxMarginClassifier(**POLY), "words"),
        (KernelMaxMarginClassifier(gamma=0.7), "three"),
        (KernelMaxMarginClassifier(**PAIRS, break_ties=True), "random"),
        (make_pipeline(StandardScaler(), MaxMarginClassifier()), "words"),
        (make_pipeline(ColumnTransformer([("a", StandardScaler(), [0, 2])]), MaxMarginClassifier()), "three"),
    ],
    ids=str,
)
def test_labels_and_scores_equal_the_model(model, labels, path):
    model.fit(X, LABELS[labels])
    assert labels_match_scores(*export_and_compare(model, path), model.classes_)


def test_tied_votes_of_pairs_are_decided_as_in_the_model(path):
    for shape in ("ovo", "ovr"):
        model = KernelMaxMarginClassifier(decision_function_shape=shape, **PAIRS).fit(X, LABELS["random"])
        labels, scores = export_and_compare(model, path)
    votes = np.rint(scores)  # scores are votes, and less than half for the confidence
    assert (np.sort(votes, axis=1)[:, -1] == np.sort(votes, axis=1)[:, -2]).any()
    assert labels_match_scores(labels, votes, model.classes_)


def test_nested_searches_keep_the_certificate(path):
    pipe = make_pipeline(StandardScaler(), MaxMarginClassifier())
    search = GridSearchCV(pipe, {"maxmarginclassifier__C": [0.1, 1.0]}, cv=2).fit(X, LABELS["words"])
    export_and_compare(search, path)
    metadata = {one.key: one.value for one in onnx.load(path).metadata_props}
    assert metadata["certificate"] == str(search.best_estimator_[-1].certificate_)


def test_converters_are_registered_with_skl2onnx(path):
    mm.io.onnx.register()
    mm.io.onnx.register()  # a second call changes nothing
    pipe = make_pipeline(StandardScaler(), MaxMarginClassifier()).fit(X, SPECIES)
    graph = skl2onnx.to_onnx(pipe, X[:1], target_opset=13)
    assert np.array_equal(run(graph.SerializeToString(), NEW)[0], pipe.predict(NEW))


@pytest.mark.parametrize(
    ("model", "expected"),
    [
        (KernelMaxMarginClassifier(kernel="laplacian"), "the file cannot hold the kernel laplacian"),
        (
            OneVsRestClassifier(MaxMarginClassifier()),
            "not in OneVsRestClassifier: write the classifier alone",
        ),
    ],
)
def test_models_without_a_graph_are_refused(model, expected, path):
    with pytest.raises(mm.ModelFileError, match=expected):
        mm.to_onnx(model.fit(X, LABELS["two"]), path)
    assert not path.exists()


def test_invalid_arguments_and_missing_packages_are_refused(path, monkeypatch):
    model = MaxMarginClassifier()
    with pytest.raises(NotFittedError):
        mm.to_onnx(model, path)
    monkeypatch.setitem(sys.modules, "skl2onnx", None)
    with pytest.raises(ImportError, match=r"pip install 'maxmargin\[onnx\]'"):
        mm.to_onnx(model.fit(X, SPECIES), path)
    assert not path.exists()
