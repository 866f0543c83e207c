"""support_report: its statements hold for the optimum and for classifiers fitted without a row."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from problems import shifted_classes
from sklearn.base import clone
from sklearn.datasets import load_iris, make_blobs, make_classification
from sklearn.preprocessing import scale

from maxmargin import (
    CertificateError,
    KernelMaxMarginClassifier,
    MaxMarginClassifier,
    MaxMarginClassifierCV,
    OnlineMarginClassifier,
    support_report,
)
from maxmargin.estimators.linear import WithoutExactStep

MODELS = {
    "hinge": MaxMarginClassifier(0.05, loss="hinge"),
    "rough": MaxMarginClassifier(0.05, loss="hinge", tol=0.02, algorithm="mpu", random_state=0),
    "squared": MaxMarginClassifier(0.02),
    "none": MaxMarginClassifier(0.05, loss="hinge", fit_intercept=False),
    "augmented": MaxMarginClassifier(0.05, loss="hinge", intercept="augmented"),
    "weights": MaxMarginClassifier(0.05, loss="hinge", class_weight="balanced"),
    "gaussian": KernelMaxMarginClassifier(0.3, gamma=0.3),
    "polynomial": KernelMaxMarginClassifier(0.05, kernel="poly", degree=2, coef0=1.0, loss="squared_hinge"),
    "given": KernelMaxMarginClassifier(0.1, kernel="precomputed"),
}


def input_for(model, X):
    """Rows, or a kernel matrix for a precomputed kernel."""
    return X @ X.T + 1.0 if model.get_params().get("kernel") == "precomputed" else X


def score_without(model, X, y, i):
    rest = np.arange(y.size) != i
    if model.get_params().get("kernel") == "precomputed":
        return (
            model.set_params(tol=1e-7)
            .fit(X[rest][:, rest], y[rest])
            .decision_function(X[i : i + 1][:, rest])[0]
        )
    return model.set_params(tol=1e-7).fit(X[rest], y[rest]).decision_function(X[i : i + 1])[0]


@pytest.mark.parametrize("name", MODELS)
def test_report_agrees_with_the_optimum_and_with_refits_without_a_row(name):
    _, X, y = shifted_classes(1, n=40, d=3)
    X[:2, 0] *= -1.0
    model = clone(MODELS[name])
    X = input_for(model, X)
    report = support_report(model.fit(X, y), X, y)
    table = report.table()
    best = clone(model).set_params(tol=1e-9, **({"algorithm": "auto"} if name == "rough" else {})).fit(X, y)
    margins, dual = y * best.decision_function(X), np.zeros(y.size)
    dual[best.certificate_.support] = best.certificate_.dual
    assert (table["margin_least"] <= margins + 1e-4).all()
    assert (table["margin_most"] >= margins - 1e-4).all()
    assert (dual[table["role"] == "weightless"] <= 1e-6).all()
    full = table["role"] == "full"
    if "squared" not in (name, model.get_params()["loss"].split("_")[0]):
        np.testing.assert_allclose(dual[full], table["cap"][full], rtol=1e-5)
    if name != "weights":  # class weights change when a row is left out
        left_out_scores = np.array([y[i] * score_without(clone(model), X, y, i) for i in range(y.size)])
        assert (left_out_scores[table["left_out"] == "right"] > 0).all()
        assert (left_out_scores[table["left_out"] == "wrong"] < 0).all()
        least, most = report.leave_one_out
        assert least <= (left_out_scores < 0).sum() <= most
        if name != "rough":
            assert most - least < y.size
    text = str(report)
    assert "have a dual weight" in text
    assert ("estimate" in text) == (model.get_params()["loss"] == "hinge")


def test_hard_margin_report_names_few_support_rows():
    _, X, y = shifted_classes(2, n=40, d=3, shift=4.0)
    for model in (MaxMarginClassifier(np.inf), KernelMaxMarginClassifier(np.inf, kernel="linear")):
        report = support_report(model.fit(X, y), X, y)
        part = report.parts[0]
        assert part.margin.min() == pytest.approx(1.0)
        assert part.optimum.weightless.sum() >= 36  # d + 1 support rows suffice
        assert not part.carries[part.optimum.weightless].any()
        assert report.leave_one_out[1] <= 4
        left_out_scores = [
            y[i] * score_without(clone(model), X, y, i) for i in np.flatnonzero(report.right)[:8]
        ]
        assert min(left_out_scores) > 0


def test_sparse_rows_and_other_norms_are_supported():
    _, X, y = shifted_classes(3)
    dense = support_report(MaxMarginClassifier(loss="hinge").fit(X, y), X, y)
    sparse = support_report(MaxMarginClassifier(loss="hinge").fit(sp.csr_array(X), y), sp.csr_array(X), y)
    assert dense.leave_one_out == sparse.leave_one_out
    other = support_report(MaxMarginClassifier(p=4, tol=1e-6).fit(X, y), X, y)
    assert other.parts[0].optimum is not None
    assert other.leave_one_out is None
    assert "no theorem does" in str(support_report(MaxMarginClassifier(p=np.inf).fit(X, y), X, y))


def test_inseparable_data_have_no_optimum_in_the_report():
    _, X, y = shifted_classes(2)
    report = support_report(MaxMarginClassifier(np.inf).fit(X, y), X, y)
    assert report.parts[0].optimum is None
    assert report.leave_one_out is None
    verdict = str(report.parts[0].verdict)
    assert verdict.startswith("not separable: rows ")
    assert str(report).index(verdict) < str(report).index("nothing is certain of the optimum: there is none")
    assert "<=" not in str(report).replace(verdict, "")  # no bounds of a margin that does not exist


def test_false_proof_of_inseparability_is_refused():
    _, X, y = shifted_classes(2)
    model = MaxMarginClassifier(np.inf).fit(X, y)
    model.verdict_ = replace(model.verdict_, weights=model.verdict_.weights[::-1])
    with pytest.raises(CertificateError, match="the proof fails"):
        support_report(model, X, y)


@pytest.mark.parametrize("multi_class", ["ovr", "ovo"])
def test_verdicts_of_inseparable_classes_are_reported(multi_class):
    X, y = load_iris(return_X_y=True)
    names = np.array(["one", "two", "three"])[y]
    model = KernelMaxMarginClassifier(np.inf, kernel="linear", multi_class=multi_class).fit(X, names)
    report = support_report(model, X, names)
    given = {part.name: part.verdict for part in report.parts if part.verdict is not None}
    assert given == model.verdict_
    assert len(given) == (2 if multi_class == "ovr" else 1)
    assert str(report).count("not separable") == len(given)


def test_mislabelled_and_contradictory_rows_are_reported():
    _, X, y = shifted_classes(4, shift=3.0)
    y = np.where(y > 0, "yes", "no")
    y[7] = "no" if y[7] == "yes" else "yes"
    X, y = np.vstack([X, X[9]]), np.append(y, "no" if y[9] == "yes" else "yes")
    report = support_report(MaxMarginClassifier(loss="hinge").fit(X, y), X, y)
    assert {7, y.size - 1} & set(report.parts[0].suspects.tolist())
    assert [rows.tolist() for rows in report.contradictory] == [[9, y.size - 1]]
    assert f"rows 9, {y.size - 1} are equal" in str(report)
    frame = pd.DataFrame(report.table()).sort_values("dual", ascending=False)
    assert frame.row.iloc[0] in report.parts[0].decisive[: report.parts[0].full.sum()]


@pytest.mark.parametrize("p", [2, 3, np.inf])
@pytest.mark.parametrize("tol", [1e-3, 1e-8])
def test_suspects_are_the_rows_on_the_wrong_side_at_any_tolerance(p, tol):
    """Interior-point dual weights stay below their caps by a fraction of the gap."""
    X, y = make_blobs(60, 2, centers=2, cluster_std=3.5, random_state=3)
    model = MaxMarginClassifier(loss="hinge", p=p, tol=tol, random_state=0).fit(X, y)
    part = support_report(model, X, y).parts[0]
    signed = np.where(y == 1, 1, -1) * model.decision_function(X)
    assert set(part.suspects) == set(np.flatnonzero(signed < 0.0))
    assert part.suspects.size == 12
    gap = part.certificate.upper - part.certificate.lower
    lacks = (part.cap - part.dual) * np.maximum(1.0 - signed, 0.0)
    assert lacks.sum() <= gap + 1e-9 * part.certificate.upper


def test_small_interior_point_weights_do_not_count_as_support():
    """The numbers of support rows agree at a rough and at a fine tolerance."""
    X, y = make_classification(3000, 5, n_informative=4, n_redundant=0, flip_y=0.1, random_state=0)
    settings = {"loss": "hinge", "algorithm": "interior-point"}
    rough, fine = (
        support_report(WithoutExactStep(100, tol=tol, **settings).fit(X, y), X, y) for tol in (1e-3, 1e-9)
    )
    assert (rough.parts[0].dual > 0.0).mean() > 0.99  # interior points have positive weights
    rough, fine, text = rough.parts[0], fine.parts[0], str(fine)
    assert abs(int(rough.carries.sum()) - int(fine.carries.sum())) < 0.03 * y.size
    assert abs(int(rough.full.sum()) - int(fine.full.sum())) < 0.03 * y.size
    assert set(fine.suspects) == set(np.flatnonzero(fine.margin < 0.0))
    # among rows at their cap the ones with the smallest margins are named
    first = fine.decisive[:5]
    assert fine.full[first].all()
    np.testing.assert_array_equal(fine.margin[first], np.sort(fine.margin)[:5])
    assert f"most decisive: rows {', '.join(map(str, first))} and" in text


def test_misplaced_rows_are_on_the_wrong_side_of_the_optimum():
    _, X, y = shifted_classes(1, n=40, d=3)
    X[:2, 0] *= -1.0
    model = MaxMarginClassifier(0.05, loss="hinge", tol=1e-8).fit(X, y)
    part = support_report(model, X, y).parts[0]
    best = MaxMarginClassifier(0.05, loss="hinge", tol=1e-10).fit(X, y)
    wrong = y * best.decision_function(X) < 0.0
    assert part.misplaced.any()
    assert wrong[part.misplaced].all()
    assert f"{int(part.misplaced.sum())} are on the wrong side" in str(support_report(model, X, y))


@pytest.mark.parametrize(
    "model",
    [
        MaxMarginClassifier(loss="hinge"),
        KernelMaxMarginClassifier(gamma=0.1),
        KernelMaxMarginClassifier(gamma=0.1, multi_class="ovo"),
    ],
)
def test_multiclass_leave_one_out_agrees_with_refits(model):
    X, y = load_iris(return_X_y=True)
    X, names = scale(X), np.array(["one", "two", "three"])[y]
    report = support_report(model.fit(X, names), X, names)
    assert len(report.parts) == 3
    least, most = report.leave_one_out
    some = np.random.default_rng(0).choice(150, 12, replace=False)
    for i in some:
        rest = np.arange(150) != i
        found = (
            type(model)(**(model.get_params() | {"tol": 1e-7}))
            .fit(X[rest], names[rest])
            .predict(X[i : i + 1])[0]
        )
        if report.right[i]:
            assert found == names[i]
        if report.wrong[i]:
            assert found != names[i]
    assert 0 <= least <= most < 150
    if model.get_params().get("multi_class") == "ovo":
        assert (report.table()["role"] == "not here").sum() == 50
        assert "against" in str(report)
    else:
        assert "against the rest" in str(report)


def test_rows_of_weight_zero_are_excluded_from_the_report():
    _, X, y = shifted_classes(5)
    s = np.where(np.arange(y.size) % 4 == 0, 0.0, 1.0)
    clf = MaxMarginClassifierCV([0.01, 0.1], cv=3, loss="hinge").fit(X, y, s)
    report = support_report(clf, X, y, s)
    table = report.table()
    assert (table["role"][s == 0] == "not here").all()
    assert np.isnan(table["margin"][s == 0]).all()
    assert report.leave_one_out[1] <= (s > 0).sum()


def test_models_without_a_valid_certificate_are_refused():
    _, X, y = shifted_classes(6)
    with pytest.raises(CertificateError, match="needs a classifier with a certificate"):
        support_report(OnlineMarginClassifier().fit(X, y), X, y)
    with pytest.raises(CertificateError, match="made for other data"):
        support_report(MaxMarginClassifier().fit(X, y), X[:-1], y[:-1])
