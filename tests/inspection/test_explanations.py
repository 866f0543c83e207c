"""support_report: its statements hold for the optimum and for classifiers fitted without a row."""

from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse as sp
from problems import shifted_classes
from sklearn.base import clone
from sklearn.datasets import load_iris, make_blobs, make_classification
from sklearn.preprocessing import scale
from sklearn.svm import LinearSVC

from maxmargin import (
    CertificateError,
    KernelMaxMarginClassifier,
    MaxMarginClassifier,
    support_report,
)

HINGE = MaxMarginClassifier(0.05, loss="hinge")
MODELS = {
    "hinge": HINGE,
    "rough": clone(HINGE).set_params(tol=0.02, algorithm="mpu", random_state=0),
    "squared": MaxMarginClassifier(0.02),
    "sparse": clone(HINGE),
    "other norm": MaxMarginClassifier(0.02, p=4, tol=1e-6),
    "augmented": clone(HINGE).set_params(intercept_scaling=1.0, class_weight={-1: 1.0, 1: 2.0}),
    "gaussian": KernelMaxMarginClassifier(0.3, gamma=0.3),
    "given": KernelMaxMarginClassifier(0.05, kernel="precomputed", loss="squared_hinge"),
}


def score_without(model, X, y, i):
    """Return the score of row i, signed by its class, of a classifier fitted without it."""
    rest = np.arange(y.size) != i
    given = getattr(model, "kernel", "") == "precomputed"
    fitted = clone(model).set_params(tol=1e-7).fit(X[rest][:, rest] if given else X[rest], y[rest])
    return y[i] * fitted.decision_function(X[i : i + 1][:, rest] if given else X[i : i + 1])[0]


@pytest.mark.parametrize("name", MODELS)
def test_report_agrees_with_the_optimum_and_with_refits_without_a_row(name):
    _, X, y = shifted_classes(1, n=40, d=3)
    X[:2, 0] *= -1.0
    model = clone(MODELS[name])
    X = X @ X.T + 1.0 if name == "given" else sp.csr_array(X) if name == "sparse" else X
    report = support_report(model.fit(X, y), X, y)
    table, part = report.table(), report.parts[0]
    best = clone(model).set_params(tol=1e-9, **({"algorithm": "auto"} if name == "rough" else {})).fit(X, y)
    margins, dual = y * best.decision_function(X), np.zeros(y.size)
    dual[best.certificate_.support] = best.certificate_.dual
    # 1e-4 and 1e-6: |w - w*|^2 <= 2 gap * objective at a gap of 1e-9
    assert (table["margin_least"] <= margins + 1e-4).all()
    assert (table["margin_most"] >= margins - 1e-4).all()
    assert (dual[table["role"] == "weightless"] <= 1e-6).all()
    full = table["role"] == "full"
    if model.loss == "hinge":
        np.testing.assert_allclose(dual[full], table["cap"][full], rtol=1e-6)
    assert (margins[part.misplaced] < 0.0).all()
    assert part.misplaced.any() or name != "hinge"
    assert (report.leave_one_out is None) == (name == "other norm")
    if report.leave_one_out is not None:
        scores = np.array([score_without(model, X, y, i) for i in range(y.size)])
        assert (scores[table["left_out"] == "right"] > 0).all()
        assert (scores[table["left_out"] == "wrong"] < 0).all()
        assert report.leave_one_out[0] <= (scores < 0).sum() <= report.leave_one_out[1]
        assert report.leave_one_out[1] - report.leave_one_out[0] < y.size or name == "rough"
    assert "are support vectors" in str(report)


@pytest.mark.parametrize("C", [0.01, 0.1, 1.0, 10.0])
def test_rows_that_are_left_out_are_labelled_as_the_report_says(C):
    for seed in range(4):
        _, X, y = shifted_classes(seed, n=24, d=2 + seed % 3, shift=0.6)
        X[0] *= 4.0
        model = MaxMarginClassifier(C, fit_intercept=bool(seed % 2), tol=1e-9).fit(X, y)
        said = support_report(model, X, y).table()["left_out"]
        scores = np.array([score_without(model, X, y, i) for i in range(y.size)])
        assert (scores[said == "right"] > 0.0).all()
        assert (scores[said == "wrong"] < 0.0).all()


@pytest.mark.parametrize("model", [MaxMarginClassifier(), KernelMaxMarginClassifier(kernel="linear")])
def test_hard_margin_report_names_few_support_rows(model):
    _, X, y = shifted_classes(2, n=40, d=3, shift=4.0)
    report = support_report(clone(model).set_params(C=np.inf, tol=1e-5).fit(X, y), X, y)
    part = report.parts[0]
    assert part.margin.min() == pytest.approx(1.0, rel=1e-12, abs=0.0)
    assert part.optimum.weightless.sum() >= 36  # d + 1 support rows suffice
    assert not part.carries[part.optimum.weightless].any()
    assert report.leave_one_out[1] <= 4


def test_inseparable_data_have_a_verdict_and_no_optimum():
    _, X, y = shifted_classes(2)
    model = MaxMarginClassifier(np.inf).fit(X, y)
    report = support_report(model, X, y)
    assert (report.parts[0].optimum, report.leave_one_out) == (None, None)
    around = str(report).split(str(report.parts[0].verdict))
    assert len(around) == 2
    assert "<=" not in "".join(around)  # no bounds of a margin that does not exist
    model.verdict_ = replace(model.verdict_, weights=model.verdict_.weights[::-1])
    for other, rows, message in (
        (model, 60, "the proof fails"),
        (LinearSVC().fit(X, y), 40, "LinearSVC has no certificate: fit a MaxMargin"),
        (clone(HINGE).fit(X, y), 39, "made for other data"),
    ):
        with pytest.raises(CertificateError, match=message):
            support_report(other, X[:rows], y[:rows])


def test_mislabelled_rows_are_reported():
    _, X, y = shifted_classes(4, shift=3.0)
    y[7] *= -1
    X, y = np.vstack([X, X[9]]), np.append(y, -y[9])
    report = support_report(MaxMarginClassifier(loss="hinge").fit(X, y), X, y)
    assert {7, y.size - 1} & set(report.parts[0].suspects.tolist())


@pytest.mark.parametrize(("p", "tol"), [(2, 1e-8), (3, 1e-3), (np.inf, 1e-3)])
def test_suspects_are_the_rows_on_the_wrong_side_at_any_tolerance(p, tol):
    """Interior-point dual weights stay below their caps by a fraction of the gap."""
    X, y = make_blobs(60, 2, centers=2, cluster_std=3.5, random_state=3)
    model = MaxMarginClassifier(loss="hinge", p=p, tol=tol, random_state=0).fit(X, y)
    part, signed = support_report(model, X, y).parts[0], np.where(y == 1, 1, -1) * model.decision_function(X)
    assert set(part.suspects) == set(np.flatnonzero(signed < 0.0))
    lacks = (part.cap - part.dual) * np.maximum(1.0 - signed, 0.0)
    assert (
        lacks.sum() <= part.certificate.upper - part.certificate.lower + 1e-12 * part.certificate.upper
    )  # 60 eps


def test_small_interior_point_weights_do_not_count_as_support():
    X, y = make_classification(1000, 5, n_informative=4, n_redundant=0, flip_y=0.1, random_state=0)
    settings = {"loss": "hinge", "p": 1.9, "algorithm": "interior-point"}  # another norm has no exact stage
    models = [MaxMarginClassifier(100.0, tol=tol, **settings).fit(X, y) for tol in (1e-3, 1e-9)]
    rough, fine = (support_report(model, X, y).parts[0] for model in models)
    assert (rough.dual > 0.0).mean() > 0.99  # interior points have positive weights
    assert abs(int(rough.carries.sum()) - int(fine.carries.sum())) < 0.03 * y.size
    assert abs(int(rough.full.sum()) - int(fine.full.sum())) < 0.03 * y.size
    # among rows at their cap the ones with the smallest margins come first
    np.testing.assert_array_equal(fine.margin[fine.decisive[:5]], np.sort(fine.margin)[:5])
    assert fine.full[fine.decisive[:5]].all()


@pytest.mark.parametrize("model", [HINGE, KernelMaxMarginClassifier(gamma=0.1, multi_class="ovo")])
def test_multiclass_leave_one_out_agrees_with_refits(model):
    X, y = load_iris(return_X_y=True)
    X, names = scale(X), np.array(["one", "two", "three"])[y]
    model = clone(model).fit(X, names)
    report = support_report(model, X, names)
    for i in np.random.default_rng(0).choice(150, 6, replace=False):
        rest = np.arange(150) != i
        found = clone(model).set_params(tol=1e-7).fit(X[rest], names[rest]).predict(X[i : i + 1])[0]
        assert found == names[i] or not report.right[i]
        assert found != names[i] or not report.wrong[i]
    pairs = hasattr(model, "multi_class")
    assert ((report.table()["role"] == "not here").sum() == 50) == pairs != ("the rest" in str(report))
    hard = clone(model).set_params(C=np.inf, tol=1e-5).fit(X, names)
    verdicts = {part.name: part.verdict for part in support_report(hard, X, names).parts}
    assert {name: one for name, one in verdicts.items() if one is not None} == getattr(hard, "verdict_", {})


def test_rows_of_weight_zero_are_excluded_from_the_report():
    _, X, y = shifted_classes(5)
    weights = (np.arange(y.size) % 4 != 0).astype(float)
    report = support_report(clone(HINGE).fit(X, y, weights), X, y, weights)
    assert ((report.table()["role"] == "not here") == (weights == 0)).all()
