"""KernelMaxMarginClassifier: scikit-learn's checks, attributes of SVC, proofs, invalid input."""

from __future__ import annotations

import pickle
import threading
from dataclasses import replace
from itertools import combinations, product

import numpy as np
import pytest
import scipy.sparse as sp
from effort import ON_SPARSE, selected
from oracle import optimum
from problems import rings
from sklearn.base import clone
from sklearn.datasets import load_breast_cancer, load_digits, load_iris
from sklearn.metrics.pairwise import laplacian_kernel, polynomial_kernel, rbf_kernel
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC
from sklearn.utils.estimator_checks import parametrize_with_checks

from maxmargin import (
    PUMMA,
    CertificateError,
    CuttingPlane,
    KernelMaxMarginClassifier,
    MaxMarginClassifier,
    Problem,
    Status,
    verify,
)
from maxmargin.algorithms import KERNEL_ALGORITHMS
from maxmargin.certificates.sample import Sample
from maxmargin.kernels.functions import Gaussian


def indefinite_matrix_checks(estimator):
    """Checks that pass matrices with eigenvalues of -2 and less as kernels, which are refused."""
    if estimator.kernel != "precomputed":
        return {}
    return dict.fromkeys(
        ("check_estimators_dtypes", "check_positive_only_tag_during_fit"), "no kernel has that matrix"
    )


PROBLEM = Problem("hinge", 1.0)


@parametrize_with_checks(
    [
        KernelMaxMarginClassifier(),
        KernelMaxMarginClassifier(multi_class="ovo", n_jobs=2),
        KernelMaxMarginClassifier(kernel="precomputed"),
    ],
    expected_failed_checks=indefinite_matrix_checks,
)
def test_scikit_learn_checks_pass(estimator, check):
    """All checks, with expected failures for indefinite matrices alone."""
    check(estimator)


@pytest.mark.slow
@parametrize_with_checks(
    [
        KernelMaxMarginClassifier(kernel="linear", class_weight="balanced"),
        KernelMaxMarginClassifier(
            kernel="poly", degree=2, coef0=1.0, loss="squared_hinge", intercept="augmented"
        ),
    ]
)
def test_scikit_learn_checks_pass_with_other_parameters(estimator, check):
    check(estimator)


def gram(model, X):
    """The matrix of a fitted model's kernel, by scikit-learn."""
    if model.kernel == "linear":
        return X @ X.T
    if model.kernel == "poly":
        return polynomial_kernel(X, gamma=model.gamma_, degree=model.degree, coef0=model.coef0)
    return rbf_kernel(X, gamma=model.gamma_)


@pytest.mark.parametrize("exact", [True, False], ids=["exact", "decomposed"])
@pytest.mark.parametrize("kernel", ["rbf", "poly", "linear"])
@pytest.mark.parametrize("intercept", ["free", "none", "augmented"])
@pytest.mark.parametrize(
    ("loss", "C"),
    [("hinge", 1.0), ("hinge", 30.0), ("squared_hinge", 1.0), ("squared_hinge", 30.0), ("hinge", np.inf)],
)
def test_certificate_contains_the_optimum(kernel, intercept, loss, C, exact):
    """By Clarabel on a factor of scikit-learn's kernel matrix; with and without weights, some of them 0."""
    X, y, weights = rings(40, 0, noise=0.0)
    if kernel == "linear" and np.isinf(C):
        X = X + 3.0 * y[:, None]
    weights[3] = 0.0
    for s in (None, weights):
        model = KernelMaxMarginClassifier(
            C, kernel=kernel, degree=2, gamma=0.5, coef0=1.0, loss=loss, tol=1e-4, fit_intercept=intercept != "none",
            intercept="free" if intercept == "none" else intercept, intercept_scaling=0.7,
        )  # fmt: skip
        model._exact = exact
        model.fit(X, y, s)
        assert model.status_ is Status.CERTIFIED
        assert model.certificate_.gap <= (1e-9 if exact else 1e-4)
        assert verify(model, X, y, s).gap <= model.certificate_.gap + 1e-12
        values, vectors = np.linalg.eigh(gram(model, X))
        truth = optimum(
            model.certificate_.problem, vectors * np.sqrt(np.maximum(values, 0.0)), y,
            np.ones(40) if s is None else s,
        )  # fmt: skip
        e = float(truth.e) + 1e-9 * float(truth.upper)
        assert model.certificate_.lower - e <= float(truth.upper)
        assert model.certificate_.upper + e >= float(truth.lower)
        # the model is the primal point: its margins and norm give the primal bound
        scores = model.decision_function(X)
        c = np.zeros(40)
        c[model.support_] = model.dual_coef_[0]
        norm2 = c @ gram(model, X) @ c
        if intercept == "augmented":
            norm2 += (model.intercept_[0] / 0.7) ** 2
        used = np.ones(40) if s is None else s
        if np.isinf(C):
            assert (y * scores)[used > 0].min() / norm2**0.5 == pytest.approx(
                model.certificate_.lower, rel=1e-9
            )
        else:
            primal = model.certificate_.problem.primal(0.5 * norm2, y * scores, used)
            assert primal == pytest.approx(model.certificate_.upper, rel=1e-9)


@pytest.mark.parametrize("intercept", ["free", "none", "augmented"])
@pytest.mark.parametrize("loss", ["hinge", "squared_hinge"])
@pytest.mark.parametrize("C", [1e10, 1e16, 1e100, 1e300])
def test_huge_C_gives_the_hard_margin(intercept, loss, C):
    """Margins that miss 1 by rounding would cost C times the error: the hard-margin solution is also tried."""
    X, y, ones = *rings(40, 0)[:2], np.ones(40)
    X = X + 3.0 * y[:, None]
    hard = optimum(Problem(loss, np.inf, intercept=intercept, intercept_scaling=0.7), X, y, ones)
    model = KernelMaxMarginClassifier(
        C, kernel="linear", loss=loss, tol=1e-6, fit_intercept=intercept != "none",
        intercept="free" if intercept == "none" else intercept, intercept_scaling=0.7,
    ).fit(X, y)  # fmt: skip
    assert model.status_ is Status.CERTIFIED
    now = verify(model, X, y)
    assert now.gap < 1e-8
    assert now.lower <= 0.5 / float(hard.lower) ** 2 * (1.0 + 1e-12)
    assert now.upper >= 0.5 / float(hard.upper) ** 2 * (1.0 - 1e-12 - 1.0 / C)
    assert (y * model.decision_function(X) >= 1.0 - (loss == "squared_hinge") * 100.0 / C).all()


class TestAgreementWithSVC:
    """The same optimum, with the attribute names of SVC."""

    @pytest.mark.parametrize("kernel", ["rbf", "linear", "poly"])
    def test_two_classes_agree_with_svc(self, kernel):
        X, y = load_iris(return_X_y=True)
        X, y = X[50:], np.where(y[50:] == 1, "versicolor", "virginica")
        svc = SVC(kernel=kernel, tol=1e-9).fit(X, y)
        model = KernelMaxMarginClassifier(kernel=kernel, tol=1e-9).fit(X, y)
        scale = np.abs(svc.decision_function(X)).max()
        np.testing.assert_allclose(model.decision_function(X), svc.decision_function(X), atol=1e-5 * scale)
        np.testing.assert_array_equal(model.predict(X), svc.predict(X))
        assert model.dual_coef_.shape[0] == 1
        assert model.intercept_.shape == (1,)
        assert model.n_support_.sum() == model.support_.size == model.dual_coef_.shape[1]
        np.testing.assert_array_equal(model.support_vectors_, X[model.support_])
        np.testing.assert_allclose(model.dual_coef_.sum(), 0.0, atol=1e-9)
        assert np.abs(model.dual_coef_).max() <= 1.0
        assert model.shape_fit_ == X.shape
        if kernel == "linear":
            np.testing.assert_allclose(model.coef_, svc.coef_, atol=1e-4)
            with pytest.raises(ValueError, match="read-only"):
                model.coef_[0, 0] = 1.0
        else:
            with pytest.raises(AttributeError, match="linear kernel"):
                model.coef_  # noqa: B018
            assert model.gamma_ == pytest.approx(svc._gamma, rel=1e-12)

    @pytest.mark.parametrize("shape", ["ovr", "ovo"])
    @pytest.mark.parametrize("break_ties", [False, True])
    def test_one_versus_one_agrees_with_svc(self, shape, break_ties):
        X, y = load_digits(n_class=5, return_X_y=True)
        X, y = X[:300], y[:300]
        if break_ties and shape == "ovo":
            clf = KernelMaxMarginClassifier(
                multi_class="ovo", decision_function_shape=shape, break_ties=True
            ).fit(X, y)
            with pytest.raises(ValueError, match="break_ties must be False"):
                clf.predict(X)
            return
        svc = SVC(tol=1e-9, decision_function_shape=shape, break_ties=break_ties, C=3.0).fit(X, y)
        model = KernelMaxMarginClassifier(
            3.0, tol=1e-9, multi_class="ovo", decision_function_shape=shape, break_ties=break_ties
        ).fit(X, y)
        np.testing.assert_allclose(model.decision_function(X), svc.decision_function(X), atol=2e-5)
        np.testing.assert_array_equal(model.predict(X), svc.predict(X))
        assert model.dual_coef_.shape[0] == 4
        assert model.intercept_.shape == (10,)
        np.testing.assert_allclose(model.intercept_, svc.intercept_, atol=1e-5)
        full_dual_coef, expected = np.zeros((4, 300)), np.zeros((4, 300))
        full_dual_coef[:, model.support_], expected[:, svc.support_] = (
            model.dual_coef_,
            svc.dual_coef_.toarray() if sp.issparse(svc.dual_coef_) else svc.dual_coef_,
        )
        np.testing.assert_allclose(full_dual_coef, expected, atol=1e-4)
        assert (np.diff(y[model.support_]) >= 0).all()  # sorted by class
        np.testing.assert_array_equal(np.bincount(y[model.support_]), model.n_support_)
        assert [part.problem.C for part in model.certificate_] == [3.0] * 10
        assert model.certificate_.classes == tuple(combinations(range(5), 2))
        assert verify(model, X, y).gap <= 1e-9

    def test_one_versus_rest_agrees_with_binary_svc(self):
        X, y = load_digits(n_class=4, return_X_y=True)
        X, y = X[:300], y[:300]
        model = KernelMaxMarginClassifier(tol=1e-8).fit(X, y)
        assert model.dual_coef_.shape == (4, model.support_.size)
        assert model.intercept_.shape == (4,)
        for k in range(4):
            svc = SVC(tol=1e-9, gamma=model.gamma_).fit(X, y == k)
            np.testing.assert_allclose(model.decision_function(X)[:, k], svc.decision_function(X), atol=1e-5)
        assert verify(model, X, y).gap <= 1e-8
        assert {report.label for report in model.history_} == {0, 1, 2, 3}

    def test_defaults_equal_those_of_svc(self):
        expected, model = SVC().get_params(), KernelMaxMarginClassifier().get_params()
        for name in expected.keys() & model.keys():
            assert model[name] == expected[name] or name == "verbose", name


class TestEquivalentRows:
    """Equivalent representations of the rows give the same model."""

    def test_weights_equal_copies(self):
        X, y, _ = rings(60, 1)
        counts = np.random.default_rng(0).integers(0, 4, 60)
        one = KernelMaxMarginClassifier(tol=1e-8).fit(X, y, counts)
        two = KernelMaxMarginClassifier(tol=1e-8).fit(np.repeat(X, counts, axis=0), np.repeat(y, counts))
        assert one.gamma_ == pytest.approx(two.gamma_, rel=1e-12)
        np.testing.assert_allclose(one.decision_function(X), two.decision_function(X), rtol=1e-7, atol=1e-7)
        # each copy has its share of the dual weight, within its cap
        assert np.abs(two.dual_coef_).max() <= 1.0
        assert two.support_.size == counts[one.support_].sum()

    @pytest.mark.parametrize("multi_class", ["ovr", "ovo"])
    def test_storage_formats_and_kernel_forms_agree(self, multi_class):
        X, y = load_iris(return_X_y=True)
        weights = np.random.default_rng(1).choice([0.0, 0.5, 2.0], 150)
        reference = KernelMaxMarginClassifier(gamma=0.3, tol=1e-8, multi_class=multi_class).fit(X, y, weights)
        expected = reference.decision_function(X)
        K = rbf_kernel(X, gamma=0.3)
        others = [
            (KernelMaxMarginClassifier(gamma=0.3, tol=1e-8), sp.csr_matrix(X)),
            (KernelMaxMarginClassifier(gamma=0.3, tol=1e-8), sp.csr_array(X)),
            (KernelMaxMarginClassifier(gamma=0.3, tol=1e-8), np.asfortranarray(X)),
            (KernelMaxMarginClassifier(kernel=lambda A, B: rbf_kernel(A, B, gamma=0.3), tol=1e-8), X),
            (KernelMaxMarginClassifier(kernel="precomputed", tol=1e-8), K),
        ]
        for model, data in others:
            model.set_params(multi_class=multi_class).fit(data, y, weights)
            np.testing.assert_allclose(model.decision_function(data), expected, rtol=1e-6, atol=1e-6)
            np.testing.assert_array_equal(model.predict(data), reference.predict(X))
            assert verify(model, data, y, weights).gap <= 1e-8
            if model.kernel == "precomputed":
                assert model.support_vectors_.shape[0] == 0

    def test_other_scikit_learn_kernels_equal_precomputed_ones(self):
        X, y, _ = rings(60, 2)
        one = KernelMaxMarginClassifier(kernel="laplacian", gamma=0.4, tol=1e-8).fit(X, y)
        two = KernelMaxMarginClassifier(kernel="precomputed", tol=1e-8).fit(laplacian_kernel(X, gamma=0.4), y)
        np.testing.assert_allclose(
            one.decision_function(X), two.decision_function(laplacian_kernel(X, gamma=0.4)), atol=1e-7
        )

    def test_linear_kernel_agrees_with_the_linear_classifier(self):
        X, y, weights = rings(80, 3)
        for loss, intercept in product(("hinge", "squared_hinge"), ("free", "augmented")):
            one = KernelMaxMarginClassifier(kernel="linear", loss=loss, intercept=intercept, tol=1e-8).fit(
                X, y, weights
            )
            two = MaxMarginClassifier(loss=loss, intercept=intercept, tol=1e-8).fit(X, y, weights)
            np.testing.assert_allclose(one.coef_, two.coef_, atol=1e-6)
            assert one.certificate_.lower == pytest.approx(two.certificate_.lower, rel=1e-7)

    def test_scores_do_not_depend_on_threads_and_blocks(self, monkeypatch):
        """Equal for any number of threads; equal up to rounding for any block size."""
        X, y = load_digits(return_X_y=True)
        model = KernelMaxMarginClassifier(tol=1e-2).fit(X[:500], y[:500])
        one = model.decision_function(X)
        np.testing.assert_array_equal(model.set_params(n_jobs=2).decision_function(X), one)
        monkeypatch.setattr("maxmargin.estimators.prediction.BLOCK", 1)
        np.testing.assert_allclose(model.decision_function(X), one, atol=1e-9)

    def test_pairs_of_classes_do_not_depend_on_n_jobs(self):
        X, y = load_digits(n_class=5, return_X_y=True)
        one = KernelMaxMarginClassifier(multi_class="ovo").fit(X, y)
        two = KernelMaxMarginClassifier(multi_class="ovo", n_jobs=2).fit(X, y)
        np.testing.assert_array_equal(one.dual_coef_, two.dual_coef_)


class TestPrecision:
    """Kernel rows beyond the cache: any tol is certified, for all magnitudes of entries and losses."""

    @pytest.fixture(autouse=True)
    def no_exact_stage(self, monkeypatch):
        monkeypatch.setattr("maxmargin.fit.exact.MAX_EIGEN_ROWS", 10)

    @pytest.mark.parametrize("tol", [1e-3, 1e-8])
    def test_tolerances_are_certified(self, tol):
        X, y, _ = rings(300, 4)
        model = KernelMaxMarginClassifier(tol=tol, cache_size=0.5).fit(X, y)
        assert verify(model, X, y).gap <= tol

    def test_rows_far_from_the_origin_are_certified(self):
        X, y, _ = rings(300, 4)
        model = KernelMaxMarginClassifier(gamma=0.3, cache_size=0.5).fit(X + 1e4, y)
        assert model.status_ is Status.CERTIFIED

    def test_algorithm_with_its_own_accuracy_ends_as_converged(self):
        X, y, _ = rings(300, 4)
        rule = PUMMA(delta=0.5)
        model = KernelMaxMarginClassifier(loss="squared_hinge", algorithm=rule, cache_size=0.5).fit(X, y)
        assert model.status_ is Status.CONVERGED

    def test_large_losses_are_certified(self):
        X, y, _ = rings(300, 4, noise=0.0)
        model = KernelMaxMarginClassifier(C=1e6, tol=1e-5, cache_size=0.5).fit(X, y)
        assert model.status_ is Status.CERTIFIED
        assert verify(model, X, y).gap <= 1e-5


class TestVerification:
    """Invalid certificates are refused."""

    @pytest.fixture
    def fitted(self):
        X, y, _ = rings(80, 5)
        return KernelMaxMarginClassifier(tol=1e-4).fit(X, y), X, y

    def test_other_data_are_refused(self, fitted):
        model, X, y = fitted
        with pytest.raises(CertificateError, match="other data"):
            verify(model, X + 1e-3, y)
        with pytest.raises(CertificateError, match="other data"):
            verify(model, X[::-1], y[::-1])
        with pytest.raises(CertificateError, match="other data"):
            verify(model, X, y, np.full(80, 2.0))

    def test_overstated_bounds_are_refused(self, fitted):
        model, X, y = fitted
        true = model.certificate_
        for changed, side in (
            (replace(true, lower=true.lower * (1 + 1e-6)), "lower"),
            (replace(true, upper=true.upper * (1 - 1e-6)), "upper"),
            (replace(true, dual=true.dual * 0.5), "lower"),
            (replace(true, dual=np.where(np.arange(true.dual.size) == 0, 2.0, true.dual)), "cap|balanced"),
            (replace(true, kernel=Gaussian(0.9)), "bound"),
        ):
            model.certificate_ = changed
            with pytest.raises(CertificateError, match=side):
                verify(model, X, y)

    def test_changed_support_is_refused(self, fitted):
        model, X, y = fitted
        support, vectors, counts, dual = (
            model.support_,
            model.support_vectors_,
            model.n_support_,
            model.dual_coef_,
        )
        for changed, message in (
            ({"support_vectors_": -vectors}, "not the rows"),
            (
                {"support_": np.where(np.arange(support.size) == 0, 10**6, support)},
                "rows that the data do not have",
            ),
            (
                {"support_": np.where(np.arange(support.size) == 0, -1, support)},
                "rows that the data do not have",
            ),
            ({"support_": np.full_like(support, 3)}, "each once"),
            ({"n_support_": counts[::-1] + np.array([1, -1], counts.dtype)}, "n_support_|do not fit"),
            ({"dual_coef_": dual[:, 1:]}, "do not fit"),
        ):
            for name, value in changed.items():
                setattr(model, name, value)
            with pytest.raises(CertificateError, match=message):
                verify(model, X, y)
            model.support_, model.support_vectors_, model.n_support_, model.dual_coef_ = (
                support,
                vectors,
                counts,
                dual,
            )
        verify(model, X, y)

    def test_certificates_of_indefinite_matrices_are_refused(self):
        """Including a certificate with the fingerprint of the indefinite matrix."""
        X, y, _ = rings(60, 5)
        G = rbf_kernel(X, gamma=0.5)
        model = KernelMaxMarginClassifier(kernel="precomputed").fit(G, y)
        forged = Sample(G - 0.3 * np.eye(60), y, np.ones(60)).fingerprint
        model.certificate_ = replace(model.certificate_, fingerprint=forged)
        with pytest.raises(CertificateError, match=r"no bound holds: .* not positive semidefinite"):
            verify(model, G - 0.3 * np.eye(60), y)

    def test_changed_coefficients_are_refused(self, fitted):
        model, X, y = fitted
        model.dual_coef_ = model.dual_coef_ * 1.5
        with pytest.raises(CertificateError, match="upper bound fails"):
            verify(model, X, y)

    def test_message_names_the_class(self):
        X, y = load_iris(return_X_y=True)
        names = np.array(["setosa", "versicolor", "virginica"])[y]
        for scheme, match in (("ovr", "class 'versicolor'"), ("ovo", "classes 'setosa' and 'virginica'")):
            model = KernelMaxMarginClassifier(multi_class=scheme).fit(X, names)
            parts = list(model.certificate_.parts)
            parts[1] = replace(parts[1], lower=parts[1].lower * 1.01)
            model.certificate_ = replace(model.certificate_, parts=tuple(parts))
            with pytest.raises(CertificateError, match=match):
                verify(model, X, names)

    def test_certificate_names_kernel_and_intercept(self, fitted):
        model, _, _ = fitted
        assert "Gaussian" in str(model.certificate_)
        assert "free intercept" in str(model.certificate_)


class TestHardMargin:
    """Inseparable data end with a proof or with an undecided status, and never with a false certificate."""

    @pytest.mark.parametrize("kernel", ["rbf", "poly", "linear", "precomputed"])
    def test_contradictory_rows_are_inseparable(self, kernel):
        X, y, _ = rings(40, 13)
        X, y = np.vstack([X, X[:1]]), np.append(y, -y[0])
        data = X @ X.T if kernel == "precomputed" else X
        model = KernelMaxMarginClassifier(np.inf, kernel=kernel).fit(data, y)
        assert model.status_ is Status.INSEPARABLE
        assert model.verdict_.verify(data, y) == model.verdict_
        verify(model, data, y)
        assert not model.certificate_.lower > 0.0
        assert model.certificate_.upper < 1e-6

    def test_polynomials_of_insufficient_degree_are_inseparable(self):
        """Concentric spheres need squares: the verdict has at most 12 rows, and separable labels are certified."""
        X, y, _ = rings(200, 14)
        model = KernelMaxMarginClassifier(np.inf, kernel="poly", degree=2, coef0=1.0, gamma=1.0).fit(X, y)
        assert model.status_ is Status.INSEPARABLE
        assert model.verdict_.support.size <= 12  # 9 monomials, a bias, and two further rows
        model.verdict_.verify(X, y)
        model.fit(X[:, :], np.where((X * X).sum(axis=1) > 2.4, 1, -1))
        assert model.status_ is Status.CERTIFIED
        assert not hasattr(model, "verdict_")

    def test_multiclass_verdicts(self):
        X, y = load_iris(return_X_y=True)
        model = KernelMaxMarginClassifier(np.inf, kernel="linear").fit(X, y)
        assert set(model.verdict_) == {1, 2}
        assert model.status_ is Status.INSEPARABLE
        one_versus_one = KernelMaxMarginClassifier(np.inf, kernel="linear", multi_class="ovo").fit(X, y)
        assert set(one_versus_one.verdict_) == {(1, 2)}
        assert one_versus_one.verdict_[(1, 2)].classes == (2, 1)
        verify(one_versus_one, X, y)

    def test_margins_below_float64_precision_are_undecided(self):
        """A Gaussian kernel so wide that its values are equal to rounding."""
        X, y, _ = rings(60, 15)
        model = KernelMaxMarginClassifier(np.inf, gamma=1e-9).fit(X, y)
        assert model.status_ is Status.UNDECIDED
        assert model.certificate_.upper > 0.0
        assert model.verdict_.hi > 0.0

    def test_rows_of_weight_zero_are_not_part_of_a_proof(self):
        X, y, _ = rings(40, 13, noise=0.0)
        X, y = np.vstack([X, X[:1]]), np.append(y, -y[0])
        weights = np.ones(41)
        weights[40] = 0.0
        model = KernelMaxMarginClassifier(np.inf).fit(X, y, weights)
        assert model.status_ is Status.CERTIFIED
        weights[[0, 40]] = 1.0, 2.0
        weights[1] = 0.0
        model.fit(X, y, weights)
        assert model.status_ is Status.INSEPARABLE
        assert model.verdict_.support.tolist() == [0, 40]


class TestIncrementalAlgorithms:
    """The same problem by incremental algorithms."""

    @pytest.mark.parametrize(
        ("name", "loss"),
        selected(
            product(sorted(set(KERNEL_ALGORITHMS) - {"decomposition"}), ("hinge", "squared_hinge", "hard")),
            lambda name, loss: loss != "squared_hinge" or name in ON_SPARSE,
        ),
    )
    def test_bounds_contain_the_optimum(self, name, loss):
        X, y, weights = rings(60, 16, noise=0.0)
        C = np.inf if loss == "hard" else 3.0
        loss = "hinge" if loss == "hard" else loss
        model = KernelMaxMarginClassifier(
            C, loss=loss, gamma=0.5, algorithm=name, random_state=0, max_iter=300, tol=1e-2
        )
        model._exact = False
        if KERNEL_ALGORITHMS[name]().refuses(replace(PROBLEM, loss=loss, C=C)) is not None:
            with pytest.raises(ValueError, match="does not solve"):
                model.fit(X, y)
            return
        model.fit(X, y, weights)
        bounds = verify(model, X, y, weights)
        best = KernelMaxMarginClassifier(C, loss=loss, gamma=0.5, tol=1e-8).fit(X, y, weights).certificate_
        assert bounds.lower <= best.upper
        assert bounds.upper >= best.lower
        assert model.history_[0].stage == name
        assert 0.0 < bounds.lower <= bounds.upper < np.inf  # final gaps: test_kernel_rules.py
        if KERNEL_ALGORITHMS[name].convergent and name != "pegasos":  # its steps shrink with time
            assert model.status_ is Status.CERTIFIED

    def test_algorithm_objects_are_accepted(self):
        X, y, _ = rings(60, 16, noise=0.0)
        model = KernelMaxMarginClassifier(np.inf, algorithm=PUMMA(delta=0.01), random_state=0).fit(X, y)
        assert model.certificate_.gap <= 0.02

    def test_algorithms_without_a_kernel_form_are_refused(self):
        X, y, _ = rings(20, 16)
        with pytest.raises(ValueError, match="'cutting-plane' does not work with kernels"):
            KernelMaxMarginClassifier(algorithm=CuttingPlane()).fit(X, y)


class TestStopping:
    @pytest.fixture
    def large(self):
        X, y, _ = rings(4000, 6)
        return X, y

    def test_callback_stops_the_fit(self, large):
        reports = []
        model = KernelMaxMarginClassifier(
            tol=1e-9, callback=lambda report: reports.append(report) or len(reports) == 2
        )
        model.fit(*large)
        assert model.status_ is Status.INTERRUPTED
        assert len(reports) == 2
        assert np.isfinite(model.certificate_.gap)
        assert verify(model, *large).gap == pytest.approx(model.certificate_.gap, rel=1e-6)

    def test_max_time_stops_the_fit(self, large):
        model = KernelMaxMarginClassifier(C=1e5, tol=1e-9, max_time=0.3).fit(*large)
        assert model.status_ is Status.MAX_TIME
        assert verify(model, *large).gap < np.inf

    def test_max_iter_stops_the_fit(self, large):
        model = KernelMaxMarginClassifier(tol=1e-9, max_iter=1).fit(*large)
        assert model.status_ is Status.MAX_ITER
        assert model.n_iter_ == 1
        verify(model, *large)

    def test_a_failed_fit_leaves_the_model_unchanged(self):
        X, y, _ = rings(60, 7)
        model = KernelMaxMarginClassifier().fit(X, y)
        before = pickle.dumps(vars(model))

        def raise_error(report):
            raise RuntimeError("no")

        model.set_params(callback=raise_error)
        with pytest.raises(RuntimeError):
            model.fit(X, y)
        model.set_params(callback=None)
        assert pickle.dumps(vars(model)) == before

    def test_verbose_prints_one_line_per_report(self, capsys):
        X, y, _ = rings(700, 8)
        model = KernelMaxMarginClassifier(verbose=1).fit(X, y)
        assert len(capsys.readouterr().err.splitlines()) == len(model.history_) + 1
        assert [report.round for report in model.history_] == list(range(1, len(model.history_) + 1))

    def test_fit_in_another_thread_is_certified(self):
        X, y, _ = rings(100, 9)
        model = KernelMaxMarginClassifier()
        worker = threading.Thread(target=model.fit, args=(X, y))
        worker.start()
        worker.join()
        assert model.status_ is Status.CERTIFIED


class TestInput:
    """Invalid input is refused with a remedy; degenerate input is certified."""

    @pytest.mark.parametrize(
        ("parameters", "message"),
        [
            ({"C": 0}, "C must be a positive number"),
            ({"C": "1"}, "C must be a positive number"),
            ({"kernel": "gauss"}, "kernel must be one of"),
            ({"kernel": 3}, "kernel must be one of"),
            ({"kernel": None}, 'kernel must be one of .* "linear"'),
            ({"kernel": np.eye(20)}, "kernel must be one of .* got array"),
            ({"gamma": "wide"}, "gamma must be"),
            ({"gamma": -1.0}, "gamma must be"),
            ({"gamma": np.nan}, "gamma must be"),
            ({"kernel": "poly", "degree": -1}, "degree must be"),
            ({"kernel": "poly", "degree": 2.5}, "degree must be"),
            ({"kernel": "poly", "coef0": np.inf}, "coef0 must be"),
            ({"loss": "log"}, "loss must be one of"),
            ({"tol": 0.0}, "tol must be positive"),
            ({"cache_size": 0}, "cache_size must be"),
            ({"cache_size": "200"}, "cache_size must be"),
            ({"multi_class": "crammer_singer"}, "multi_class must be"),
            ({"decision_function_shape": None}, "decision_function_shape must be"),
            ({"max_iter": 0}, "max_iter must be"),
            ({"max_time": -1}, "max_time must be"),
            ({"algorithm": "lp"}, "algorithm must be"),
            ({"algorithm": 3}, "algorithm must be"),
            ({"class_weight": "even"}, "class_weight must be"),
            ({"n_jobs": 0}, "n_jobs must be"),
            ({"callback": 1}, "callback must be"),
            ({"fit_intercept": "yes"}, "fit_intercept must be"),
            ({"break_ties": 1}, "break_ties must be"),
        ],
    )
    def test_invalid_parameters_are_refused(self, parameters, message):
        X, y, _ = rings(20, 10)
        model = KernelMaxMarginClassifier(**parameters)
        with pytest.raises(ValueError, match=message):
            model.fit(X, y)
        assert not hasattr(model, "classes_")

    @pytest.mark.parametrize("multi_class", ["ovr", "ovo"])
    @pytest.mark.parametrize("loss", ["hinge", "squared_hinge"])
    def test_class_of_weight_zero_is_certified_or_refused(self, multi_class, loss):
        """Certified for soft margins; hard margins without one of the classes are refused."""
        X, y = load_iris(return_X_y=True)
        model = KernelMaxMarginClassifier(loss=loss, multi_class=multi_class, class_weight={0: 0.0}).fit(X, y)
        assert model.status_ is Status.CERTIFIED
        assert set(model.predict(X)) <= {0, 1, 2}
        verify(model, X, y)
        for estimator in (model, MaxMarginClassifier(class_weight={0: 0.0})):
            with pytest.raises(ValueError, match="no row of class 0 with a positive weight"):
                estimator.set_params(C=np.inf).fit(X, y)

    def test_matrices_that_are_not_square_are_refused(self):
        X, y, _ = rings(20, 10)
        with pytest.raises(ValueError, match="square"):
            KernelMaxMarginClassifier(kernel="precomputed").fit(X, y)

    def test_overflowing_kernels_are_refused(self):
        X, y, _ = rings(20, 10)
        with pytest.raises(ValueError, match=r"The kernel overflows .* scale the features"):
            KernelMaxMarginClassifier(kernel="poly", gamma=1.0, degree=9).fit(X * 1e30, y)
        with pytest.raises(ValueError, match=r"The sigmoid kernel overflows .* scale the features"):
            KernelMaxMarginClassifier(kernel="sigmoid", gamma=0.0).fit(X * 1e160, y)
        for kernel in ("rbf", "laplacian"):
            for scale in (1e-160, 1e160):
                with pytest.raises(ValueError, match="features are too small or too large"):
                    KernelMaxMarginClassifier(kernel=kernel).fit(X * scale, y)

    @pytest.mark.parametrize("C", [1.0, np.inf])
    def test_overflowing_or_underflowing_sums_are_refused(self, C):
        """Refused with a remedy."""
        X, y, _ = rings(40, 10)
        X = X + 3.0 * y[:, None]
        for matrix, scale, message in (
            (X, 1e-165, "squares of rows of this length underflow, .* scale the features"),
            (X, 1e-160, "squares of rows of this length underflow, .* scale the features"),
            (X, 1e-128, "underflows in sums, .* scale the features"),
            (X, 1e126, "overflows in sums, .* scale the features, or lower gamma or coef0"),
            (X @ X.T, 1e-253, "underflows in sums, .* scale the matrix"),
            (X @ X.T, 1e250, "overflows in sums, .* scale the matrix"),
        ):
            kernel = "linear" if matrix is X else "precomputed"
            with pytest.raises(ValueError, match=message):
                KernelMaxMarginClassifier(C, kernel=kernel).fit(matrix * scale, y)
        with pytest.raises(ValueError, match=r"overflows in sums, .* lower gamma or coef0"):
            KernelMaxMarginClassifier(C, kernel="poly", coef0=1e100).fit(X, y)

    @pytest.mark.parametrize("scale", [1e-120, 1e-78, 1e78, 1e120])
    @pytest.mark.parametrize("loss", ["hinge", "squared_hinge"])
    def test_extreme_feature_scales_are_certified(self, scale, loss):
        """Within these limits margins and their bounds scale with the features."""
        X, y, _ = rings(40, 10)
        X = X + 3.0 * y[:, None]
        plain = KernelMaxMarginClassifier(np.inf, kernel="linear", tol=1e-6).fit(X, y)
        hard = KernelMaxMarginClassifier(np.inf, kernel="linear", tol=1e-6).fit(X * scale, y)
        assert hard.status_ is Status.CERTIFIED
        assert verify(hard, X * scale, y).lower == pytest.approx(plain.certificate_.lower * scale, rel=1e-6)
        given = KernelMaxMarginClassifier(np.inf, kernel="precomputed", tol=1e-6).fit(X @ X.T * scale, y)
        assert given.certificate_.upper == pytest.approx(plain.certificate_.upper * scale**0.5, rel=1e-6)
        soft = KernelMaxMarginClassifier(kernel="linear", loss=loss, tol=1e-6).fit(X * scale, y)
        assert soft.status_ is Status.CERTIFIED
        best = 2.0 * (y > 0).sum() if scale < 1.0 else 0.5 / hard.certificate_.lower**2
        if scale > 1.0 or loss == "hinge":
            assert verify(soft, X * scale, y).upper == pytest.approx(best, rel=1e-6)

    @pytest.mark.parametrize(
        "kernel", ["precomputed", "sigmoid", lambda A, B: -(A @ B.T)], ids=["matrix", "sigmoid", "function"]
    )
    def test_indefinite_kernels_are_refused(self, kernel):
        """The message states the negative eigenvalue."""
        X, y, _ = rings(40, 10)
        model = KernelMaxMarginClassifier(kernel=kernel, gamma=2.0, coef0=-1.0)
        with pytest.raises(ValueError, match=r"not positive semidefinite, its least eigenvalue is -\d"):
            model.fit(np.tanh(2.0 * X @ X.T - 1.0) if kernel == "precomputed" else X, y)

    def test_matrices_that_are_not_symmetric_are_refused(self):
        X, y, _ = rings(20, 10)
        K = rbf_kernel(X)
        K[3, 4] += 0.1
        with pytest.raises(ValueError, match="not symmetric: the value of rows 3 and 4"):
            KernelMaxMarginClassifier(kernel="precomputed").fit(K, y)

    def test_kernel_functions_of_wrong_shape_are_refused(self):
        X, y, _ = rings(20, 10)
        with pytest.raises(ValueError, match="must return a matrix of shape"):
            KernelMaxMarginClassifier(kernel=lambda A, B: np.ones(3)).fit(X, y)

    @pytest.mark.parametrize("value", [0.0, 7.0, 0.1, 1000.0])
    @pytest.mark.parametrize("store", [np.asarray, sp.csr_matrix], ids=["dense", "sparse"])
    def test_constant_features_are_certified(self, value, store):
        X, y, _ = rings(20, 10)
        model = KernelMaxMarginClassifier().fit(store(np.full_like(X, value)), y)
        assert model.status_ is Status.CERTIFIED
        assert model.gamma_ == 1.0

    def test_features_far_from_zero_are_refused_or_end(self):
        """Where rounding removes all information, the fit ends and the model is not worse than w = 0."""
        X, y, _ = rings(60, 10)
        with pytest.raises(ValueError, match=r"lost in rounding: .* Take the mean"):
            KernelMaxMarginClassifier().fit(X + 1e8, y)
        for parameters in ({"kernel": "poly"}, {"kernel": "linear"}, {"kernel": "rbf"}):
            for shift in (1e4,) if parameters["kernel"] == "rbf" else (1e4, 1e8):
                model = KernelMaxMarginClassifier(max_time=60, **parameters).fit(X + shift, y)
                assert model.status_ in (Status.CERTIFIED, Status.STALLED)
                assert 0.0 <= model.certificate_.lower <= model.certificate_.upper < np.inf
                rows, c = (X + shift).astype(np.longdouble), np.zeros(y.size, np.longdouble)
                c[model.support_] = model.dual_coef_[0]
                if model.kernel == "linear":
                    scores = rows @ (rows.T @ c)
                elif model.kernel == "poly":
                    scores = (model.gamma_ * (rows @ rows.T)) ** 3 @ c
                else:
                    scores = rbf_kernel(X + shift, gamma=model.gamma_) @ c
                losses = np.maximum(0.0, 1.0 - y * (scores + model.intercept_[0])).sum()
                assert float(c @ scores / 2.0 + losses) <= 2.0 * min((y > 0).sum(), (y < 0).sum()) + 1e-6
                verify(model, X + shift, y)

    def test_two_classes_of_weight_zero_are_certified(self):
        X, y = load_digits(n_class=4, return_X_y=True)
        model = KernelMaxMarginClassifier(multi_class="ovo", class_weight={0: 0.0, 3: 0.0}).fit(
            X[:200], y[:200]
        )
        assert model.status_ is Status.CERTIFIED
        verify(model, X[:200], y[:200])

    @pytest.mark.parametrize("scale", [1e-150, 1e-8, 1e8, 1e100])
    def test_gamma_scale_removes_the_unit_of_the_data(self, scale):
        """With `gamma="scale"` the lower bound is the same in every unit."""
        X, y, _ = rings(60, 11)
        model = KernelMaxMarginClassifier(tol=1e-6).fit(X * scale, y)
        assert model.status_ is Status.CERTIFIED
        plain = KernelMaxMarginClassifier(tol=1e-6).fit(X, y)
        assert model.certificate_.lower == pytest.approx(plain.certificate_.lower, rel=1e-5)

    def test_dual_weights_dominated_by_rounding_end_as_stalled(self):
        """Running bounds cross, since the rounding of |w|^2 = 1e30 exceeds C: the fit ends with a valid lower bound."""
        X, y, _ = rings(60, 3)
        model = KernelMaxMarginClassifier(1e10, kernel="linear", max_time=60).fit(X * 1e4, y)
        assert model.status_ is Status.STALLED
        assert verify(model, X * 1e4, y).lower <= 2e10 * (y > 0).sum()

    def test_rows_with_both_labels_are_certified(self):
        X, y, _ = rings(40, 12)
        X, y = np.vstack([X, X[:5]]), np.append(y, -y[:5])
        model = KernelMaxMarginClassifier(tol=1e-6).fit(X, y)
        assert model.status_ is Status.CERTIFIED
        verify(model, X, y)


class TestParametersAfterTheFit:
    """Parameters set after the fit have no effect on the fitted model before the next fit."""

    @pytest.mark.parametrize(("fitted", "later"), [("ovr", "ovo"), ("ovo", "ovr")])
    def test_multi_class_applies_at_the_next_fit(self, fitted, later):
        X, y = load_iris(return_X_y=True)
        model = KernelMaxMarginClassifier(kernel="linear", multi_class=fitted).fit(X, y)
        scores, labels, coef, proved = (
            model.decision_function(X), model.predict(X), model.coef_, str(verify(model, X, y)),
        )  # fmt: skip
        model.set_params(multi_class=later)
        np.testing.assert_array_equal(model.decision_function(X), scores)
        np.testing.assert_array_equal(model.predict(X), labels)
        np.testing.assert_array_equal(model.coef_, coef)
        assert str(verify(model, X, y)) == proved
        assert model.multi_class_ == fitted
        assert model.fit(X, y).multi_class_ == later

    def test_kernel_applies_at_the_next_fit(self):
        X, y, _ = rings(40, 13)
        linear = KernelMaxMarginClassifier(kernel="linear").fit(sp.csr_matrix(X), y)
        coef = linear.coef_
        linear.set_params(kernel="precomputed")
        np.testing.assert_array_equal(linear.coef_, coef)
        np.testing.assert_allclose(
            linear.decision_function(sp.csr_matrix(X)), X @ coef[0] + linear.intercept_
        )
        gaussian = KernelMaxMarginClassifier().fit(X, y).set_params(kernel="linear")
        with pytest.raises(AttributeError, match=r"the kernel of this model is Gaussian"):
            gaussian.coef_  # noqa: B018
        given = KernelMaxMarginClassifier(kernel="precomputed").fit(X @ X.T, y).set_params(kernel="linear")
        with pytest.raises(TypeError, match="Sparse"):
            given.predict(sp.csr_matrix(X @ X.T))

    def test_decision_function_parameters_apply_at_prediction(self):
        """As in SVC."""
        X, y = load_iris(return_X_y=True)
        X, y = np.vstack([X, X]), np.append(y, y + 3)
        model = KernelMaxMarginClassifier(multi_class="ovo", C=0.1).fit(X, y)
        assert model.decision_function(X).shape == (300, 6)
        assert model.set_params(decision_function_shape="ovo").decision_function(X).shape == (300, 15)
        model.set_params(decision_function_shape="ovr", break_ties=True)
        best = model.classes_[model.decision_function(X).argmax(axis=1)]
        np.testing.assert_array_equal(model.predict(X), best)

    def test_parameters_of_linear_classifiers_apply_at_the_next_fit(self):
        X, y = load_iris(return_X_y=True)
        model = MaxMarginClassifier(random_state=0).fit(X, y)
        scores, radii, proved = (
            model.decision_function(X),
            model.certified_radius(X),
            str(verify(model, X, y)),
        )
        model.set_params(p=1, loss="hinge", C=9.0, fit_intercept=False, class_weight="balanced")
        np.testing.assert_array_equal(model.decision_function(X), scores)
        np.testing.assert_array_equal(model.certified_radius(X), radii)
        assert str(verify(model, X, y)) == proved


def test_fit_status_is_zero_if_certified():
    X, y, _ = rings(60, 14)
    assert KernelMaxMarginClassifier().fit(X, y).fit_status_ == SVC().fit(X, y).fit_status_ == 0
    cut = KernelMaxMarginClassifier(tol=1e-12, max_iter=1).fit(X, y)
    assert cut.status_ is not Status.CERTIFIED
    assert cut.fit_status_ == 1
    assert not hasattr(KernelMaxMarginClassifier(), "fit_status_")


def test_grid_search_pickle_and_clone():
    X, y = load_iris(return_X_y=True)
    search = GridSearchCV(
        make_pipeline(StandardScaler(), KernelMaxMarginClassifier()),
        {"kernelmaxmarginclassifier__C": [0.1, 10.0]},
        cv=3,
    ).fit(X, y)
    assert search.best_score_ > 0.9
    model = KernelMaxMarginClassifier(C=2.0).fit(X, y)
    unpickled = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(unpickled.decision_function(X), model.decision_function(X))
    assert clone(model).get_params() == model.get_params()


def test_linear_kernel_with_long_rows_and_large_caps():
    """Terms of kernel value times dual weight exceed their sum a billion times: compensated sums are certified."""
    rng = np.random.default_rng(1)
    X = rng.normal(size=(120, 6))
    y = (X[:, 0] + rng.normal(size=120) > 0.0).astype(int)
    X, y = (
        1e3 * X[[*range(120), 0, 0, 1, 2, 2]],
        y[[*range(120), 0, 0, 1, 2, 2]],
    )  # the dual weights of equal rows are rounded
    for subset in (slice(120), slice(None)):
        model = KernelMaxMarginClassifier(1e4, kernel="linear").fit(X[subset], y[subset])
        other = MaxMarginClassifier(1e4, loss="hinge", tol=1e-9).fit(X[subset], y[subset]).certificate_
        assert model.certificate_.lower <= other.upper
        assert other.lower <= model.certificate_.upper
        assert verify(model, X[subset], y[subset]).gap <= 1e-3
        primal = hinge_objective(model, X[subset], y[subset])
        assert primal <= 1.0001 * other.upper
    assert KernelMaxMarginClassifier(1e4, kernel="linear").fit(X[:120], y[:120]).status_ is Status.CERTIFIED


@pytest.mark.parametrize("C", [1e2, 1e5])
def test_linear_kernel_on_unscaled_features_is_certified(C):
    X, y = load_breast_cancer(return_X_y=True)
    X, y = X[::2], y[::2]
    model = KernelMaxMarginClassifier(C, kernel="linear").fit(X, y)
    other = MaxMarginClassifier(C, loss="hinge").fit(X, y).certificate_
    assert model.status_ is Status.CERTIFIED
    assert max(model.certificate_.lower, other.lower) <= min(model.certificate_.upper, other.upper)


def test_stalled_fit_returns_the_best_model():
    """Kernel values dominated by rounding: the certificate is loose, but the objective is within 0.1 percent."""
    rng = np.random.default_rng(1)
    X = rng.normal(size=(120, 6))
    y = (X[:, 0] + rng.normal(size=120) > 0.0).astype(int)
    X = 1e3 * X
    model = KernelMaxMarginClassifier(1e4, kernel="poly", degree=1, gamma=1.0).fit(X, y)
    best = MaxMarginClassifier(1e4, loss="hinge", tol=1e-9).fit(X, y).certificate_
    bounds = verify(model, X, y)
    assert model.status_ is Status.STALLED
    assert bounds.lower <= best.upper
    assert best.lower <= bounds.upper
    assert hinge_objective(model, X, y) <= 1.001 * best.upper


def hinge_objective(model, X, y):
    """The hinge objective of a model with the linear kernel, in 80-bit arithmetic if available."""
    w = model.dual_coef_[0].astype(np.longdouble) @ X[model.support_].astype(np.longdouble)
    margins = (2.0 * y - 1.0) * (X @ w + model.intercept_[0])
    return float(w @ w / 2.0 + model.C * np.maximum(0.0, 1.0 - margins).sum())


def test_small_cache_with_large_working_sets_is_certified():
    """Working sets of the squared hinge exceed the two blocks of kernel rows that fit beside the cache."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(2500, 10))
    y = (np.sin(3.0 * X[:, 0]) + X[:, 1] > 0.0).astype(int)
    model = KernelMaxMarginClassifier(loss="squared_hinge", cache_size=1, max_time=20.0).fit(X, y)
    assert model.status_ is Status.CERTIFIED
    assert verify(model, X, y).gap <= 1e-3
    last = model.history_[-1]  # the running bounds agree up to rounding
    assert (last.lower, last.upper) == pytest.approx(
        (model.certificate_.lower, model.certificate_.upper), rel=1e-5
    )


def test_classes_report_in_order():
    """Reports are grouped by class, and the callback receives them in the order of the history."""
    X, y = load_digits(return_X_y=True)
    reports = []
    model = KernelMaxMarginClassifier(10.0, callback=reports.append).fit(X, y)
    assert model.status_ is Status.CERTIFIED
    assert max(part.gap for part in model.certificate_.parts) <= model.tol
    labels = [report.label for report in model.history_]
    assert labels == sorted(labels) == [report.label for report in reports]


def test_classes_share_max_time():
    """Time left by one class is used by the others; every class has a model."""
    X = np.random.default_rng(0).normal(size=(3000, 20))
    y = np.arange(3000) % 5
    model = KernelMaxMarginClassifier(1e6, tol=1e-9, max_time=1.0, cache_size=20).fit(X, y)
    assert model.status_ is Status.MAX_TIME
    assert len({report.label for report in model.history_}) == 5
    assert model.history_[-1].seconds < 3.0
