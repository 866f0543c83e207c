"""KernelMaxMarginClassifier: certified optimum, agreement with SVC, equivalent data, and refused certificates."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse as sp
from effort import interpreted
from oracle import optimum
from problems import rings
from sklearn.base import clone
from sklearn.datasets import load_digits, load_iris
from sklearn.metrics.pairwise import laplacian_kernel, pairwise_kernels, rbf_kernel
from sklearn.svm import SVC

from maxmargin import CertificateError, KernelMaxMarginClassifier, MaxMarginClassifier, Status, verify
from maxmargin.algorithms import PUMMA, Perceptron

INF = np.inf


def gram(model, X):
    """Return the matrix of a fitted model's kernel, by scikit-learn."""
    options = {"gamma": model.gamma_, "degree": model.degree, "coef0": model.coef0}
    return pairwise_kernels(X, metric=model.kernel, filter_params=True, **options)


@pytest.mark.parametrize(
    ("kernel", "intercept", "loss", "C"),
    [
        ("rbf", "free", "hinge", 1.0),
        ("rbf", "none", "squared_hinge", 30.0),
        ("poly", "free", "squared_hinge", 1.0),
        ("poly", "augmented", "hinge", INF),
        ("linear", "augmented", "hinge", 30.0),
        ("linear", "free", "hinge", INF),
    ],
)
def test_certificate_contains_the_optimum(kernel, intercept, loss, C):
    """By Clarabel on a factor of scikit-learn's kernel matrix; with and without weights, some of them 0."""
    X, y, weights = rings(40, 0, noise=0.0)
    X = X + 3.0 * y[:, None] if kernel == "linear" and np.isinf(C) else X
    weights[3] = 0.0
    options = {
        "kernel": kernel,
        "degree": 2 + (C == 1.0),
        "gamma": 0.5,
        "coef0": 1.0,
        "loss": loss,
        "tol": 1e-4,
    }
    options["intercept_scaling"] = 0.7 if intercept == "augmented" else None
    model = KernelMaxMarginClassifier(C, fit_intercept=intercept != "none", **options)
    for s in (np.ones(40), weights):
        model.fit(X, y, s)
        certificate, problem, K = model.certificate_, model.certificate_.problem, gram(model, X)
        assert model.status_ is Status.CERTIFIED
        assert certificate.gap <= 1e-4
        assert verify(model, X, y, s).gap <= certificate.gap + 1e-12
        values, vectors = np.linalg.eigh(K)
        truth = optimum(problem, vectors * np.sqrt(np.maximum(values, 0.0)), y, s)
        e = float(truth.e) + 1e-9 * float(truth.upper)  # of the factor: n eps |K|, divided by the margin
        assert certificate.lower - e <= float(truth.upper)
        assert certificate.upper + e >= float(truth.lower)
        # the model is the primal point: its margins and norm give the primal bound, to n eps |c|'|K||c| / |w|^2
        margins, c = y * model.decision_function(X), np.zeros(40)
        c[model.support_] = model.dual_coef_[0]
        norm2 = c @ K @ c + (intercept == "augmented") * (model.intercept_[0] / 0.7) ** 2
        if np.isinf(C):
            assert margins[s > 0].min() / norm2**0.5 == pytest.approx(certificate.lower, rel=1e-10)
        else:
            assert problem.primal(norm2**0.5, margins, s) == pytest.approx(certificate.upper, rel=1e-10)


# agreement with SVC: at tol = 1e-9 scores may differ by sqrt(2 tol objective), 1e-4 for objectives of at most 5


def test_two_classes_have_the_layout_of_svc():
    X, y = load_iris(return_X_y=True)
    X, y = X[50:], np.where(y[50:] == 1, "versicolor", "virginica")
    model = KernelMaxMarginClassifier(kernel="linear").fit(X, y)
    assert (model.intercept_.shape, model.shape_fit_, model.fit_status_) == ((1,), X.shape, 0)
    assert model.dual_coef_.shape == (1, model.support_.size) == (1, model.n_support_.sum())
    with pytest.raises(ValueError, match="read-only"):
        model.coef_[0, 0] = 1.0
    with pytest.raises(AttributeError, match="linear kernel"):
        KernelMaxMarginClassifier().fit(X, y).coef_  # noqa: B018


@pytest.mark.parametrize(("shape", "break_ties"), [("ovr", False), ("ovr", True), ("ovo", False)])
def test_one_versus_one_agrees_with_svc(shape, break_ties):
    X, y = load_digits(n_class=5, return_X_y=True)
    X, y = X[:300], y[:300]
    options = {"decision_function_shape": shape, "break_ties": break_ties, "tol": 1e-9, "C": 3.0}
    svc, model = SVC(**options).fit(X, y), KernelMaxMarginClassifier(multi_class="ovo", **options).fit(X, y)
    rows = np.vstack([X, np.random.default_rng(0).uniform(0, 16, (200, 64))])  # 32 with equal votes
    np.testing.assert_allclose(model.decision_function(rows), svc.decision_function(rows), atol=2e-5)
    np.testing.assert_array_equal(model.predict(rows), svc.predict(rows))
    np.testing.assert_allclose(model.intercept_, svc.intercept_, atol=1e-5)
    full_dual_coef, expected = np.zeros((4, 300)), np.zeros((4, 300))
    full_dual_coef[:, model.support_], expected[:, svc.support_] = model.dual_coef_, svc.dual_coef_
    np.testing.assert_allclose(full_dual_coef, expected, atol=1e-4)
    np.testing.assert_array_equal(y[model.support_], np.repeat(np.arange(5), model.n_support_))
    if shape == "ovo":
        with pytest.raises(ValueError, match="break_ties"):
            model.set_params(break_ties=True).predict(X)
    assert verify(model, X, y).gap <= 1e-9


# equivalent data and methods


@pytest.mark.parametrize("multi_class", ["ovr", "ovo"])
def test_storages_and_forms_of_a_kernel_agree(multi_class):
    """Kernel values differ by rounding, and points of a gap of 1e-8 by sqrt(2 gap objective), at an objective of 30."""
    X, y = load_iris(return_X_y=True)
    X[100] = X[50]  # in another class
    weights = np.random.default_rng(0).choice([0.0, 0.5, 2.0], 150)
    options = {"gamma": 0.3, "tol": 1e-8, "multi_class": multi_class}
    for name, kernel in (("rbf", rbf_kernel), ("laplacian", laplacian_kernel)):
        reference = KernelMaxMarginClassifier(kernel=name, **options).fit(X, y, weights)
        expected = reference.decision_function(X)
        assert reference.score(X, y) > 0.9
        for form, data in (
            (name, sp.csr_matrix(X)),
            (name, np.asfortranarray(X)),
            (lambda A, B, kernel=kernel: kernel(A, B, gamma=0.3), X),
            ("precomputed", kernel(X, gamma=0.3)),
        ):
            model = KernelMaxMarginClassifier(kernel=form, **options).fit(data, y, weights)
            np.testing.assert_allclose(model.decision_function(data), expected, rtol=0.0, atol=8e-4)
            np.testing.assert_array_equal(model.predict(data), reference.predict(X))
            assert verify(model, data, y, weights).gap <= 1e-8
            assert (model.support_vectors_.shape[0] == 0) == (form == "precomputed")


def test_scores_do_not_depend_on_other_rows():
    X, y = load_digits(n_class=5, return_X_y=True)
    model = KernelMaxMarginClassifier(multi_class="ovo", tol=1e-2).fit(X[:300], y[:300])
    parts = [model.decision_function(X[first : first + 100]) for first in range(0, len(X), 100)]
    scores = np.concatenate(parts)
    np.testing.assert_allclose(model.decision_function(X), scores, rtol=0.0, atol=1e-12)  # 300 eps


@interpreted
@pytest.mark.parametrize(
    ("options", "shift", "noise", "status"),
    [
        ({"tol": 1e-8}, 0.0, 0.3, Status.CERTIFIED),
        ({"gamma": 0.3}, 1e4, 0.3, Status.CERTIFIED),
        ({"C": 1e6, "tol": 1e-5}, 0.0, 0.0, Status.CERTIFIED),
        ({"loss": "squared_hinge", "algorithm": PUMMA(delta=0.5)}, 0.0, 0.3, Status.CONVERGED),
    ],
    ids=str,
)
def test_rows_beyond_the_cache_are_certified(options, shift, noise, status):
    """Only an algorithm that is asked for a lower accuracy than `tol` ends without a certificate of `tol`."""
    X, y, _ = rings(600, 4, noise)
    model = KernelMaxMarginClassifier(cache_size=0.5, **options).fit(X + shift, y)
    assert model.status_ is status
    assert verify(model, X + shift, y).gap <= (model.tol if status is Status.CERTIFIED else 1.0)


@interpreted
@pytest.mark.parametrize("store", [np.asarray, sp.csr_matrix])
def test_copies_of_rows_are_presented_merged_at_their_first_position(store):
    """Integers make all sums exact; with C = 1/2 a row of weight 4 has the own coordinate 1 / sqrt(4)."""
    rng = np.random.default_rng(0)
    X = np.unique(rng.integers(-9, 10, size=(20, 3)), axis=0).astype(float)
    order = np.append(rng.permutation(len(X)), np.repeat(rng.permutation(len(X))[:5], 3))
    weights = np.where(np.isin(np.arange(len(X)), order[-15:]), 4.0, 1.0)
    y, first = np.where(X @ [3.0, -2.0, 1.0] > 0.5, 1, -1), order[: len(X)]
    rule = Perceptron(b=1.0, schedule="plain", shuffle=False)
    options = {"C": 0.5, "loss": "squared_hinge", "fit_intercept": False, "algorithm": rule, "max_iter": 3}
    model = KernelMaxMarginClassifier(kernel="linear", **options)
    merged, alone, other = (
        clone(model).fit(store(X[rows]), y[rows], s)
        for rows, s in ((order, None), (first, weights[first]), (first[::-1], weights[first[::-1]]))
    )
    steps = [[report.steps for report in one.history_] for one in (merged, alone, other)]
    assert steps[0] == steps[1] != steps[2]
    assert merged.gamma_ == pytest.approx(alone.gamma_, rel=1e-12)  # rows count by their weights
    dual = np.bincount(order, weights=merged.certificate_.alpha)
    assert dual[first] == pytest.approx(alone.certificate_.alpha, rel=1e-15, abs=0.0)


# false certificates are refused


def first(values, value):
    """Return a copy with another first entry."""
    return np.where(np.arange(values.size) == 0, value, values)


FORGERIES = {
    "lower bound": (lambda m, c: {"certificate_": replace(c, lower=c.lower * (1 + 1e-6))}, "lower"),
    "upper bound": (lambda m, c: {"certificate_": replace(c, upper=c.upper * (1 - 1e-6))}, "upper"),
    "dual weights": (lambda m, c: {"certificate_": replace(c, dual=c.dual * 0.5)}, "lower"),
    "kernel": (lambda m, c: {"certificate_": replace(c, kernel=replace(c.kernel, gamma=0.9))}, "bound"),
    "coefficients": (lambda m, c: {"dual_coef_": m.dual_coef_ * 1.5}, "upper"),
    "vectors": (lambda m, c: {"support_vectors_": -m.support_vectors_}, "not the rows"),
    "equal rows": (lambda m, c: {"support_": np.full_like(m.support_, 3)}, "each once"),
    "counts": (lambda m, c: {"n_support_": m.n_support_ + np.array([1, -1])}, "n_support_|do not fit"),
}


@pytest.mark.parametrize("forgery", FORGERIES)
def test_forged_models_are_refused(forgery):
    X, y, _ = rings(80, 5)
    model = KernelMaxMarginClassifier(tol=1e-4).fit(X, y)
    assert "Gaussian" in str(verify(model, X, y))
    changes, words = FORGERIES[forgery]
    vars(model).update(changes(model, model.certificate_))
    with pytest.raises(CertificateError, match=words):
        verify(model, X, y)


def test_certificates_of_indefinite_matrices_are_refused():
    X, y, _ = rings(60, 5)
    K = rbf_kernel(X, gamma=0.5)
    model = KernelMaxMarginClassifier(kernel="precomputed").fit(K, y)
    indefinite = K - 0.3 * np.eye(60)
    forged = MaxMarginClassifier().fit(indefinite, y).certificate_.fingerprint
    model.certificate_ = replace(model.certificate_, fingerprint=forged)
    with pytest.raises(CertificateError, match="not positive semidefinite"):
        verify(model, indefinite, y)


# hard margins of inseparable data


@pytest.mark.parametrize("kernel", ["rbf", "precomputed"])
def test_contradictory_rows_are_inseparable_unless_one_has_no_weight(kernel):
    X, y, _ = rings(40, 13, noise=0.0)
    X, y, weights = np.vstack([X, X[:1]]), np.append(y, -y[0]), np.arange(41) < 40
    data = rbf_kernel(X) if kernel == "precomputed" else X
    model = KernelMaxMarginClassifier(INF, kernel=kernel).fit(data, y)
    assert model.status_ is Status.INSEPARABLE
    assert model.verdict_.verify(data, y).support.tolist() == [0, 40]
    assert not verify(model, data, y).lower > 0.0
    assert model.fit(data, y, weights).status_ is Status.CERTIFIED
    assert not hasattr(model, "verdict_")
    y[1:3] = -2  # a class before the others; of a pair the first class is the positive one
    assert model.set_params(multi_class="ovo").fit(data, y).verdict_[-1, 1].classes == (1, -1)
