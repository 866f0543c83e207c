"""KernelMaxMarginClassifier as its user meets it: scikit-learn's checks, SVC's attributes, proofs, bad input."""

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
from sklearn.base import clone
from sklearn.datasets import load_breast_cancer, load_digits, load_iris
from sklearn.metrics.pairwise import laplacian_kernel, polynomial_kernel, rbf_kernel
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC
from sklearn.utils.estimator_checks import parametrize_with_checks
from test_decomposition import rings

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


def not_gram_matrices(estimator):
    """Checks that hand over matrices with negative eigenvalues as kernels: -2 and less, which are refused."""
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
    expected_failed_checks=not_gram_matrices,
)
def test_scikit_learn(estimator, check):
    """Every check, with no expected failure but for matrices that no kernel has."""
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
def test_scikit_learn_with_other_parameters(estimator, check):
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
def test_the_optimum_lies_within_the_certificate(kernel, intercept, loss, C, exact):
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
        # the model is the primal point: its own margins and length give the primal bound
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
def test_a_large_weight_of_the_losses_is_a_hard_margin(intercept, loss, C):
    """Margins that miss 1 by rounding would cost C times that: the widest function without losses is tried too."""
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


class TestAsSVC:
    """The same optimum under the same names."""

    @pytest.mark.parametrize("kernel", ["rbf", "linear", "poly"])
    def test_two_classes(self, kernel):
        X, y = load_iris(return_X_y=True)
        X, y = X[50:], np.where(y[50:] == 1, "versicolor", "virginica")
        svc = SVC(kernel=kernel, tol=1e-9).fit(X, y)
        ours = KernelMaxMarginClassifier(kernel=kernel, tol=1e-9).fit(X, y)
        scale = np.abs(svc.decision_function(X)).max()
        np.testing.assert_allclose(ours.decision_function(X), svc.decision_function(X), atol=1e-5 * scale)
        np.testing.assert_array_equal(ours.predict(X), svc.predict(X))
        assert ours.dual_coef_.shape[0] == 1
        assert ours.intercept_.shape == (1,)
        assert ours.n_support_.sum() == ours.support_.size == ours.dual_coef_.shape[1]
        np.testing.assert_array_equal(ours.support_vectors_, X[ours.support_])
        np.testing.assert_allclose(ours.dual_coef_.sum(), 0.0, atol=1e-9)
        assert np.abs(ours.dual_coef_).max() <= 1.0
        assert ours.shape_fit_ == X.shape
        if kernel == "linear":
            np.testing.assert_allclose(ours.coef_, svc.coef_, atol=1e-4)
            with pytest.raises(ValueError, match="read-only"):
                ours.coef_[0, 0] = 1.0
        else:
            with pytest.raises(AttributeError, match="linear kernel"):
                ours.coef_  # noqa: B018
            assert ours.gamma_ == pytest.approx(svc._gamma, rel=1e-12)

    @pytest.mark.parametrize("shape", ["ovr", "ovo"])
    @pytest.mark.parametrize("break_ties", [False, True])
    def test_one_against_one(self, shape, break_ties):
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
        ours = KernelMaxMarginClassifier(
            3.0, tol=1e-9, multi_class="ovo", decision_function_shape=shape, break_ties=break_ties
        ).fit(X, y)
        np.testing.assert_allclose(ours.decision_function(X), svc.decision_function(X), atol=2e-5)
        np.testing.assert_array_equal(ours.predict(X), svc.predict(X))
        assert ours.dual_coef_.shape[0] == 4
        assert ours.intercept_.shape == (10,)
        np.testing.assert_allclose(ours.intercept_, svc.intercept_, atol=1e-5)
        ours_whole, theirs = np.zeros((4, 300)), np.zeros((4, 300))
        ours_whole[:, ours.support_], theirs[:, svc.support_] = (
            ours.dual_coef_,
            svc.dual_coef_.toarray() if sp.issparse(svc.dual_coef_) else svc.dual_coef_,
        )
        np.testing.assert_allclose(ours_whole, theirs, atol=1e-4)
        assert (np.diff(y[ours.support_]) >= 0).all()  # by class
        np.testing.assert_array_equal(np.bincount(y[ours.support_]), ours.n_support_)
        assert [part.problem.C for part in ours.certificate_] == [3.0] * 10
        assert ours.certificate_.classes == tuple(combinations(range(5), 2))
        assert verify(ours, X, y).gap <= 1e-9

    def test_one_against_the_rest(self):
        X, y = load_digits(n_class=4, return_X_y=True)
        X, y = X[:300], y[:300]
        ours = KernelMaxMarginClassifier(tol=1e-8).fit(X, y)
        assert ours.dual_coef_.shape == (4, ours.support_.size)
        assert ours.intercept_.shape == (4,)
        for k in range(4):
            svc = SVC(tol=1e-9, gamma=ours.gamma_).fit(X, y == k)
            np.testing.assert_allclose(ours.decision_function(X)[:, k], svc.decision_function(X), atol=1e-5)
        assert verify(ours, X, y).gap <= 1e-8
        assert {report.label for report in ours.history_} == {0, 1, 2, 3}

    def test_defaults(self):
        theirs, ours = SVC().get_params(), KernelMaxMarginClassifier().get_params()
        for name in theirs.keys() & ours.keys():
            assert ours[name] == theirs[name] or name == "verbose", name


class TestRows:
    """What stands for the same rows gives the same model."""

    def test_copies_and_weights(self):
        X, y, _ = rings(60, 1)
        counts = np.random.default_rng(0).integers(0, 4, 60)
        one = KernelMaxMarginClassifier(tol=1e-8).fit(X, y, counts)
        two = KernelMaxMarginClassifier(tol=1e-8).fit(np.repeat(X, counts, axis=0), np.repeat(y, counts))
        assert one.gamma_ == pytest.approx(two.gamma_, rel=1e-12)
        np.testing.assert_allclose(one.decision_function(X), two.decision_function(X), rtol=1e-7, atol=1e-7)
        # each copy has its share, within its cap
        assert np.abs(two.dual_coef_).max() <= 1.0
        assert two.support_.size == counts[one.support_].sum()

    @pytest.mark.parametrize("multi_class", ["ovr", "ovo"])
    def test_storages_and_kernels(self, multi_class):
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

    def test_another_kernel_of_scikit_learn(self):
        X, y, _ = rings(60, 2)
        one = KernelMaxMarginClassifier(kernel="laplacian", gamma=0.4, tol=1e-8).fit(X, y)
        two = KernelMaxMarginClassifier(kernel="precomputed", tol=1e-8).fit(laplacian_kernel(X, gamma=0.4), y)
        np.testing.assert_allclose(
            one.decision_function(X), two.decision_function(laplacian_kernel(X, gamma=0.4)), atol=1e-7
        )

    def test_the_linear_kernel_is_the_linear_classifier(self):
        X, y, weights = rings(80, 3)
        for loss, intercept in product(("hinge", "squared_hinge"), ("free", "augmented")):
            one = KernelMaxMarginClassifier(kernel="linear", loss=loss, intercept=intercept, tol=1e-8).fit(
                X, y, weights
            )
            two = MaxMarginClassifier(loss=loss, intercept=intercept, tol=1e-8).fit(X, y, weights)
            np.testing.assert_allclose(one.coef_, two.coef_, atol=1e-6)
            assert one.certificate_.lower == pytest.approx(two.certificate_.lower, rel=1e-7)

    def test_threads_and_blocks(self, monkeypatch):
        """Scores do not depend on threads, nor on blocks but for rounding."""
        X, y = load_digits(return_X_y=True)
        model = KernelMaxMarginClassifier(tol=1e-2).fit(X[:500], y[:500])
        one = model.decision_function(X)
        np.testing.assert_array_equal(model.set_params(n_jobs=2).decision_function(X), one)
        monkeypatch.setattr("maxmargin.estimators.prediction.BLOCK", 1)
        np.testing.assert_allclose(model.decision_function(X), one, atol=1e-9)

    def test_pairs_side_by_side(self):
        X, y = load_digits(n_class=5, return_X_y=True)
        one = KernelMaxMarginClassifier(multi_class="ovo").fit(X, y)
        two = KernelMaxMarginClassifier(multi_class="ovo", n_jobs=2).fit(X, y)
        np.testing.assert_array_equal(one.dual_coef_, two.dual_coef_)


class TestPrecision:
    """Rows of the kernel beyond the cache: any tol is certified, whatever the size of entries and losses."""

    @pytest.fixture(autouse=True)
    def without_exact_stage(self, monkeypatch):
        monkeypatch.setattr("maxmargin.fit.exact.GRAM_ROWS", 10)

    @pytest.mark.parametrize("tol", [1e-3, 1e-8])
    def test_any_tol(self, tol):
        X, y, _ = rings(300, 4)
        model = KernelMaxMarginClassifier(tol=tol, cache_size=0.5).fit(X, y)
        assert verify(model, X, y).gap <= tol

    def test_rows_far_from_the_origin(self):
        X, y, _ = rings(300, 4)
        model = KernelMaxMarginClassifier(gamma=0.3, cache_size=0.5).fit(X + 1e4, y)
        assert model.status_ is Status.CERTIFIED

    def test_an_algorithm_that_ends_by_its_own_accuracy(self):
        X, y, _ = rings(300, 4)
        rule = PUMMA(delta=0.5)
        model = KernelMaxMarginClassifier(loss="squared_hinge", algorithm=rule, cache_size=0.5).fit(X, y)
        assert model.status_ is Status.CONVERGED

    def test_large_losses(self):
        X, y, _ = rings(300, 4, noise=0.0)
        model = KernelMaxMarginClassifier(C=1e6, tol=1e-5, cache_size=0.5).fit(X, y)
        assert model.status_ is Status.CERTIFIED
        assert verify(model, X, y).gap <= 1e-5


class TestProof:
    """A certificate that does not hold is found out."""

    @pytest.fixture
    def fitted(self):
        X, y, _ = rings(80, 5)
        return KernelMaxMarginClassifier(tol=1e-4).fit(X, y), X, y

    def test_other_data(self, fitted):
        model, X, y = fitted
        with pytest.raises(CertificateError, match="other data"):
            verify(model, X + 1e-3, y)
        with pytest.raises(CertificateError, match="other data"):
            verify(model, X[::-1], y[::-1])
        with pytest.raises(CertificateError, match="other data"):
            verify(model, X, y, np.full(80, 2.0))

    def test_bounds_that_claim_too_much(self, fitted):
        model, X, y = fitted
        true = model.certificate_
        for wrong, side in (
            (replace(true, lower=true.lower * (1 + 1e-6)), "lower"),
            (replace(true, upper=true.upper * (1 - 1e-6)), "upper"),
            (replace(true, dual=true.dual * 0.5), "lower"),
            (replace(true, dual=np.where(np.arange(true.dual.size) == 0, 2.0, true.dual)), "cap|balanced"),
            (replace(true, kernel=Gaussian(0.9)), "bound"),
        ):
            model.certificate_ = wrong
            with pytest.raises(CertificateError, match=side):
                verify(model, X, y)

    def test_support_that_was_changed(self, fitted):
        model, X, y = fitted
        support, vectors, counts, dual = (
            model.support_,
            model.support_vectors_,
            model.n_support_,
            model.dual_coef_,
        )
        for changed, said in (
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
            with pytest.raises(CertificateError, match=said):
                verify(model, X, y)
            model.support_, model.support_vectors_, model.n_support_, model.dual_coef_ = (
                support,
                vectors,
                counts,
                dual,
            )
        verify(model, X, y)

    def test_a_matrix_that_has_no_bounds(self):
        """A certificate of an indefinite matrix is none, whoever made it."""
        X, y, _ = rings(60, 5)
        G = rbf_kernel(X, gamma=0.5)
        model = KernelMaxMarginClassifier(kernel="precomputed").fit(G, y)
        forged = Sample(G - 0.3 * np.eye(60), y, np.ones(60)).fingerprint
        model.certificate_ = replace(model.certificate_, fingerprint=forged)
        with pytest.raises(CertificateError, match=r"no bound holds: .* not positive semidefinite"):
            verify(model, G - 0.3 * np.eye(60), y)

    def test_a_model_that_was_changed(self, fitted):
        model, X, y = fitted
        model.dual_coef_ = model.dual_coef_ * 1.5
        with pytest.raises(CertificateError, match="upper bound fails"):
            verify(model, X, y)

    def test_the_class_is_named(self):
        X, y = load_iris(return_X_y=True)
        names = np.array(["setosa", "versicolor", "virginica"])[y]
        for scheme, match in (("ovr", "class 'versicolor'"), ("ovo", "classes 'setosa' and 'virginica'")):
            model = KernelMaxMarginClassifier(multi_class=scheme).fit(X, names)
            parts = list(model.certificate_.parts)
            parts[1] = replace(parts[1], lower=parts[1].lower * 1.01)
            model.certificate_ = replace(model.certificate_, parts=tuple(parts))
            with pytest.raises(CertificateError, match=match):
                verify(model, X, names)

    def test_it_says_what_it_is_about(self, fitted):
        model, _, _ = fitted
        assert "Gaussian" in str(model.certificate_)
        assert "free intercept" in str(model.certificate_)


class TestHardMargin:
    """Without a separator there is a proof, or what is known; never an answer that rests on rounding."""

    @pytest.mark.parametrize("kernel", ["rbf", "poly", "linear", "precomputed"])
    def test_contradictory_rows(self, kernel):
        X, y, _ = rings(40, 13)
        X, y = np.vstack([X, X[:1]]), np.append(y, -y[0])
        data = X @ X.T if kernel == "precomputed" else X
        model = KernelMaxMarginClassifier(np.inf, kernel=kernel).fit(data, y)
        assert model.status_ is Status.INSEPARABLE
        assert model.verdict_.verify(data, y) == model.verdict_
        verify(model, data, y)
        assert not model.certificate_.lower > 0.0
        assert model.certificate_.upper < 1e-6

    def test_too_few_monomials(self):
        """Sphere against its inside takes squares: products of degree 1 do not separate, nor do many odd ones."""
        X, y, _ = rings(200, 14)
        model = KernelMaxMarginClassifier(np.inf, kernel="poly", degree=2, coef0=1.0, gamma=1.0).fit(X, y)
        assert model.status_ is Status.INSEPARABLE
        assert model.verdict_.support.size <= 12  # 9 monomials, a bias, and two more
        model.verdict_.verify(X, y)
        model.fit(X[:, :], np.where((X * X).sum(axis=1) > 2.4, 1, -1))
        assert model.status_ is Status.CERTIFIED
        assert not hasattr(model, "verdict_")

    def test_several_classes(self):
        X, y = load_iris(return_X_y=True)
        model = KernelMaxMarginClassifier(np.inf, kernel="linear").fit(X, y)
        assert set(model.verdict_) == {1, 2}
        assert model.status_ is Status.INSEPARABLE
        pairs = KernelMaxMarginClassifier(np.inf, kernel="linear", multi_class="ovo").fit(X, y)
        assert set(pairs.verdict_) == {(1, 2)}
        assert pairs.verdict_[(1, 2)].classes == (2, 1)
        verify(pairs, X, y)

    def test_margins_that_float64_cannot_tell(self):
        """A Gaussian so wide that all rows look the same."""
        X, y, _ = rings(60, 15)
        model = KernelMaxMarginClassifier(np.inf, gamma=1e-9).fit(X, y)
        assert model.status_ is Status.UNDECIDED
        assert model.certificate_.upper > 0.0
        assert model.verdict_.hi > 0.0

    def test_rows_of_weight_zero_prove_nothing(self):
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


class TestIncrementalRules:
    """The same problem by other ways."""

    @pytest.mark.parametrize(
        ("name", "loss"),
        selected(
            product(sorted(set(KERNEL_ALGORITHMS) - {"decomposition"}), ("hinge", "squared_hinge", "hard")),
            lambda name, loss: loss != "squared_hinge" or name in ON_SPARSE,
        ),
    )
    def test_bounds_hold(self, name, loss):
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
        found = verify(model, X, y, weights)
        best = KernelMaxMarginClassifier(C, loss=loss, gamma=0.5, tol=1e-8).fit(X, y, weights).certificate_
        assert found.lower <= best.upper
        assert found.upper >= best.lower
        assert model.history_[0].stage == name
        assert 0.0 < found.lower <= found.upper < np.inf  # how far each of them goes: test_kernel_rules.py
        if KERNEL_ALGORITHMS[name].convergent and name != "pegasos":  # whose steps shrink with time
            assert model.status_ is Status.CERTIFIED

    def test_an_object(self):
        X, y, _ = rings(60, 16, noise=0.0)
        model = KernelMaxMarginClassifier(np.inf, algorithm=PUMMA(delta=0.01), random_state=0).fit(X, y)
        assert model.certificate_.gap <= 0.02

    def test_what_has_no_kernel_form(self):
        X, y, _ = rings(20, 16)
        with pytest.raises(ValueError, match="'cutting-plane' does not work with kernels"):
            KernelMaxMarginClassifier(algorithm=CuttingPlane()).fit(X, y)


class TestStopping:
    @pytest.fixture
    def large(self):
        X, y, _ = rings(4000, 6)
        return X, y

    def test_callback(self, large):
        seen = []
        model = KernelMaxMarginClassifier(
            tol=1e-9, callback=lambda report: seen.append(report) or len(seen) == 2
        )
        model.fit(*large)
        assert model.status_ is Status.INTERRUPTED
        assert len(seen) == 2
        assert np.isfinite(model.certificate_.gap)
        assert verify(model, *large).gap == pytest.approx(model.certificate_.gap, rel=1e-6)

    def test_time(self, large):
        model = KernelMaxMarginClassifier(C=1e5, tol=1e-9, max_time=0.3).fit(*large)
        assert model.status_ is Status.MAX_TIME
        assert verify(model, *large).gap < np.inf

    def test_rounds(self, large):
        model = KernelMaxMarginClassifier(tol=1e-9, max_iter=1).fit(*large)
        assert model.status_ is Status.MAX_ITER
        assert model.n_iter_ == 1
        verify(model, *large)

    def test_a_fit_that_fails_changes_nothing(self):
        X, y, _ = rings(60, 7)
        model = KernelMaxMarginClassifier().fit(X, y)
        before = pickle.dumps(vars(model))

        def fails(report):
            raise RuntimeError("no")

        model.set_params(callback=fails)
        with pytest.raises(RuntimeError):
            model.fit(X, y)
        model.set_params(callback=None)
        assert pickle.dumps(vars(model)) == before

    def test_reports(self, capsys):
        X, y, _ = rings(700, 8)
        model = KernelMaxMarginClassifier(verbose=1).fit(X, y)
        assert len(capsys.readouterr().err.splitlines()) == len(model.history_) + 1
        assert [report.round for report in model.history_] == list(range(1, len(model.history_) + 1))

    def test_from_another_thread(self):
        X, y, _ = rings(100, 9)
        model = KernelMaxMarginClassifier()
        worker = threading.Thread(target=model.fit, args=(X, y))
        worker.start()
        worker.join()
        assert model.status_ is Status.CERTIFIED


class TestInput:
    """Bad input gets a sentence with a remedy."""

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
    def test_parameters(self, parameters, message):
        X, y, _ = rings(20, 10)
        model = KernelMaxMarginClassifier(**parameters)
        with pytest.raises(ValueError, match=message):
            model.fit(X, y)
        assert not hasattr(model, "classes_")

    @pytest.mark.parametrize("multi_class", ["ovr", "ovo"])
    @pytest.mark.parametrize("loss", ["hinge", "squared_hinge"])
    def test_a_class_of_weight_zero(self, multi_class, loss):
        """Has no losses; a hard margin without a side is refused."""
        X, y = load_iris(return_X_y=True)
        model = KernelMaxMarginClassifier(loss=loss, multi_class=multi_class, class_weight={0: 0.0}).fit(X, y)
        assert model.status_ is Status.CERTIFIED
        assert set(model.predict(X)) <= {0, 1, 2}
        verify(model, X, y)
        for estimator in (model, MaxMarginClassifier(class_weight={0: 0.0})):
            with pytest.raises(ValueError, match="no row of class 0 with a positive weight"):
                estimator.set_params(C=np.inf).fit(X, y)

    def test_a_matrix_that_is_not_square(self):
        X, y, _ = rings(20, 10)
        with pytest.raises(ValueError, match="square"):
            KernelMaxMarginClassifier(kernel="precomputed").fit(X, y)

    def test_numbers_that_overflow(self):
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
    def test_sums_that_overflow_or_underflow(self, C):
        """Refused with the remedy, not answered with what is left of the numbers."""
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
    def test_scales_of_features(self, scale, loss):
        """Within these limits margins grow with the features, and so do their bounds."""
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
    def test_indefinite_kernels(self, kernel):
        """Refused with the eigenvalue that shows it."""
        X, y, _ = rings(40, 10)
        model = KernelMaxMarginClassifier(kernel=kernel, gamma=2.0, coef0=-1.0)
        with pytest.raises(ValueError, match=r"not positive semidefinite, its least eigenvalue is -\d"):
            model.fit(np.tanh(2.0 * X @ X.T - 1.0) if kernel == "precomputed" else X, y)

    def test_a_matrix_that_is_not_symmetric(self):
        X, y, _ = rings(20, 10)
        K = rbf_kernel(X)
        K[3, 4] += 0.1
        with pytest.raises(ValueError, match="not symmetric: the value of rows 3 and 4"):
            KernelMaxMarginClassifier(kernel="precomputed").fit(K, y)

    def test_a_callable_of_the_wrong_shape(self):
        X, y, _ = rings(20, 10)
        with pytest.raises(ValueError, match="must return a matrix of shape"):
            KernelMaxMarginClassifier(kernel=lambda A, B: np.ones(3)).fit(X, y)

    @pytest.mark.parametrize("value", [0.0, 7.0, 0.1, 1000.0])
    @pytest.mark.parametrize("store", [np.asarray, sp.csr_matrix], ids=["dense", "sparse"])
    def test_constant_features(self, value, store):
        X, y, _ = rings(20, 10)
        model = KernelMaxMarginClassifier().fit(store(np.full_like(X, value)), y)
        assert model.status_ is Status.CERTIFIED
        assert model.gamma_ == 1.0

    def test_features_far_off(self):
        """Where rounding takes everything, no model is worse than w = 0, and nothing is spoilt; it ends."""
        X, y, _ = rings(60, 10)
        with pytest.raises(ValueError, match=r"lost in rounding: .* Take the mean"):
            KernelMaxMarginClassifier().fit(X + 1e8, y)
        for parameters in ({"kernel": "poly"}, {"kernel": "linear"}, {"kernel": "rbf"}):
            for far in (1e4,) if parameters["kernel"] == "rbf" else (1e4, 1e8):
                model = KernelMaxMarginClassifier(max_time=60, **parameters).fit(X + far, y)
                assert model.status_ in (Status.CERTIFIED, Status.STALLED)
                assert 0.0 <= model.certificate_.lower <= model.certificate_.upper < np.inf
                rows, c = (X + far).astype(np.longdouble), np.zeros(y.size, np.longdouble)
                c[model.support_] = model.dual_coef_[0]
                if model.kernel == "linear":
                    scores = rows @ (rows.T @ c)
                elif model.kernel == "poly":
                    scores = (model.gamma_ * (rows @ rows.T)) ** 3 @ c
                else:
                    scores = rbf_kernel(X + far, gamma=model.gamma_) @ c
                losses = np.maximum(0.0, 1.0 - y * (scores + model.intercept_[0])).sum()
                assert float(c @ scores / 2.0 + losses) <= 2.0 * min((y > 0).sum(), (y < 0).sum()) + 1e-6
                verify(model, X + far, y)

    def test_two_classes_of_weight_zero(self):
        X, y = load_digits(n_class=4, return_X_y=True)
        model = KernelMaxMarginClassifier(multi_class="ovo", class_weight={0: 0.0, 3: 0.0}).fit(
            X[:200], y[:200]
        )
        assert model.status_ is Status.CERTIFIED
        verify(model, X[:200], y[:200])

    @pytest.mark.parametrize("scale", [1e-150, 1e-8, 1e8, 1e100])
    def test_scales(self, scale):
        """`gamma="scale"` takes any scale out of the data."""
        X, y, _ = rings(60, 11)
        model = KernelMaxMarginClassifier(tol=1e-6).fit(X * scale, y)
        assert model.status_ is Status.CERTIFIED
        plain = KernelMaxMarginClassifier(tol=1e-6).fit(X, y)
        assert model.certificate_.lower == pytest.approx(plain.certificate_.lower, rel=1e-5)

    def test_dual_weights_that_are_all_rounding(self):
        """Running bounds that cross, as |w|^2 is of 1e30 and its rounding more than C: the fit ends, and is honest."""
        X, y, _ = rings(60, 3)
        model = KernelMaxMarginClassifier(1e10, kernel="linear", max_time=60).fit(X * 1e4, y)
        assert model.status_ is Status.STALLED
        assert verify(model, X * 1e4, y).lower <= 2e10 * (y > 0).sum()

    def test_rows_with_both_labels(self):
        X, y, _ = rings(40, 12)
        X, y = np.vstack([X, X[:5]]), np.append(y, -y[:5])
        model = KernelMaxMarginClassifier(tol=1e-6).fit(X, y)
        assert model.status_ is Status.CERTIFIED
        verify(model, X, y)


class TestParametersAfterTheFit:
    """A fitted model is what was fitted: parameters that are set afterwards wait for the next fit."""

    @pytest.mark.parametrize(("fitted", "later"), [("ovr", "ovo"), ("ovo", "ovr")])
    def test_scheme(self, fitted, later):
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

    def test_kernel(self):
        X, y, _ = rings(40, 13)
        linear = KernelMaxMarginClassifier(kernel="linear").fit(sp.csr_matrix(X), y)
        coef = linear.coef_
        linear.set_params(kernel="precomputed")
        np.testing.assert_array_equal(linear.coef_, coef)
        np.testing.assert_allclose(
            linear.decision_function(sp.csr_matrix(X)), X @ coef[0] + linear.intercept_
        )
        bent = KernelMaxMarginClassifier().fit(X, y).set_params(kernel="linear")
        with pytest.raises(AttributeError, match=r"fitted with the kernel Gaussian"):
            bent.coef_  # noqa: B018
        given = KernelMaxMarginClassifier(kernel="precomputed").fit(X @ X.T, y).set_params(kernel="linear")
        with pytest.raises(TypeError, match="Sparse"):
            given.predict(sp.csr_matrix(X @ X.T))

    def test_what_acts_when_it_predicts(self):
        """As in SVC."""
        X, y = load_iris(return_X_y=True)
        X, y = np.vstack([X, X]), np.append(y, y + 3)
        model = KernelMaxMarginClassifier(multi_class="ovo", C=0.1).fit(X, y)
        assert model.decision_function(X).shape == (300, 6)
        assert model.set_params(decision_function_shape="ovo").decision_function(X).shape == (300, 15)
        model.set_params(decision_function_shape="ovr", break_ties=True)
        best = model.classes_[model.decision_function(X).argmax(axis=1)]
        np.testing.assert_array_equal(model.predict(X), best)

    def test_linear_classifiers_too(self):
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


def test_fit_status_says_in_a_number_what_status_says():
    X, y, _ = rings(60, 14)
    assert KernelMaxMarginClassifier().fit(X, y).fit_status_ == SVC().fit(X, y).fit_status_ == 0
    cut = KernelMaxMarginClassifier(tol=1e-12, max_iter=1).fit(X, y)
    assert cut.status_ is not Status.CERTIFIED
    assert cut.fit_status_ == 1
    assert not hasattr(KernelMaxMarginClassifier(), "fit_status_")


def test_at_home_in_scikit_learn():
    X, y = load_iris(return_X_y=True)
    search = GridSearchCV(
        make_pipeline(StandardScaler(), KernelMaxMarginClassifier()),
        {"kernelmaxmarginclassifier__C": [0.1, 10.0]},
        cv=3,
    ).fit(X, y)
    assert search.best_score_ > 0.9
    model = KernelMaxMarginClassifier(C=2.0).fit(X, y)
    again = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(again.decision_function(X), model.decision_function(X))
    assert clone(model).get_params() == model.get_params()


def test_the_linear_kernel_of_long_rows_and_large_caps():
    """Terms of kernel values times dual weights are a billion times what is left: the sums themselves are certified."""
    rng = np.random.default_rng(1)
    X = rng.normal(size=(120, 6))
    y = (X[:, 0] + rng.normal(size=120) > 0.0).astype(int)
    X, y = (
        1e3 * X[[*range(120), 0, 0, 1, 2, 2]],
        y[[*range(120), 0, 0, 1, 2, 2]],
    )  # shares of equal rows are rounded
    for some in (slice(120), slice(None)):
        model = KernelMaxMarginClassifier(1e4, kernel="linear").fit(X[some], y[some])
        other = MaxMarginClassifier(1e4, loss="hinge", tol=1e-9).fit(X[some], y[some]).certificate_
        assert model.certificate_.lower <= other.upper
        assert other.lower <= model.certificate_.upper
        assert verify(model, X[some], y[some]).gap <= 1e-3
        primal = problem_value(model, X[some], y[some])
        assert primal <= 1.0001 * other.upper
    assert KernelMaxMarginClassifier(1e4, kernel="linear").fit(X[:120], y[:120]).status_ is Status.CERTIFIED


@pytest.mark.parametrize("C", [1e2, 1e5])
def test_the_linear_kernel_of_features_as_they_are(C):
    X, y = load_breast_cancer(return_X_y=True)
    X, y = X[::2], y[::2]
    model = KernelMaxMarginClassifier(C, kernel="linear").fit(X, y)
    other = MaxMarginClassifier(C, loss="hinge").fit(X, y).certificate_
    assert model.status_ is Status.CERTIFIED
    assert max(model.certificate_.lower, other.lower) <= min(model.certificate_.upper, other.upper)


def test_the_model_is_the_best_one_though_its_bound_is_not():
    """Kernel values that say nothing of their rows: the certificate is loose, and the model is no constant."""
    rng = np.random.default_rng(1)
    X = rng.normal(size=(120, 6))
    y = (X[:, 0] + rng.normal(size=120) > 0.0).astype(int)
    X = 1e3 * X
    model = KernelMaxMarginClassifier(1e4, kernel="poly", degree=1, gamma=1.0).fit(X, y)
    best = MaxMarginClassifier(1e4, loss="hinge", tol=1e-9).fit(X, y).certificate_
    found = verify(model, X, y)
    assert model.status_ is Status.STALLED
    assert found.lower <= best.upper
    assert best.lower <= found.upper
    assert problem_value(model, X, y) <= 1.001 * best.upper


def problem_value(model, X, y):
    """The hinge's objective of a model of the linear kernel, in 80 bits where there are as many."""
    w = model.dual_coef_[0].astype(np.longdouble) @ X[model.support_].astype(np.longdouble)
    margins = (2.0 * y - 1.0) * (X @ w + model.intercept_[0])
    return float(w @ w / 2.0 + model.C * np.maximum(0.0, 1.0 - margins).sum())


def test_little_memory_for_rows_that_move_all():
    """The squared hinge moves more rows of a working set than two blocks of kernel rows hold beside what was kept."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(2500, 10))
    y = (np.sin(3.0 * X[:, 0]) + X[:, 1] > 0.0).astype(int)
    model = KernelMaxMarginClassifier(loss="squared_hinge", cache_size=1, max_time=20.0).fit(X, y)
    assert model.status_ is Status.CERTIFIED
    assert verify(model, X, y).gap <= 1e-3
    last = model.history_[-1]  # the running bounds are those of the kernel, but for rounding
    assert (last.lower, last.upper) == pytest.approx(
        (model.certificate_.lower, model.certificate_.upper), rel=1e-5
    )


def test_classes_report_one_after_another():
    """Every report is of one class, and the callback sees them in the order of the history."""
    X, y = load_digits(return_X_y=True)
    heard = []
    model = KernelMaxMarginClassifier(10.0, callback=heard.append).fit(X, y)
    assert model.status_ is Status.CERTIFIED
    assert max(part.gap for part in model.certificate_.parts) <= model.tol
    labels = [report.label for report in model.history_]
    assert labels == sorted(labels) == [report.label for report in heard]


def test_classes_share_the_time():
    """What one class leaves of the time the others have; no class is without a model."""
    X = np.random.default_rng(0).normal(size=(3000, 20))
    y = np.arange(3000) % 5
    model = KernelMaxMarginClassifier(1e6, tol=1e-9, max_time=1.0, cache_size=20).fit(X, y)
    assert model.status_ is Status.MAX_TIME
    assert len({report.label for report in model.history_}) == 5
    assert model.history_[-1].seconds < 3.0
