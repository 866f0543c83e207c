"""Paths over C and p, and selection of C and p by cross-validation."""

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.datasets import load_breast_cancer, load_iris
from sklearn.model_selection import GridSearchCV, GroupKFold, StratifiedKFold
from sklearn.preprocessing import scale

from maxmargin import MaxMarginClassifier, MaxMarginClassifierCV, Status, load, margin_path, save, verify

CS = np.logspace(-2, 2, 4)
FEW_ROUNDS = {"loss": "hinge", "algorithm": "dcd", "max_iter": 5, "random_state": 0}  # too few to certify


@pytest.fixture(scope="module")
def cancer():
    X, y = load_breast_cancer(return_X_y=True)
    return scale(X), y


def separable():
    """Rows with a large margin, few of which are near it."""
    rng = np.random.default_rng(0)
    y = np.where(np.arange(1000) % 2 == 0, 1, -1)
    X = rng.normal(size=(1000, 4))
    X[:, 0] = y * (1.0 + 10.0 * rng.random(1000))
    return X, y


class TestPoints:
    @pytest.mark.parametrize(
        ("loss", "fit_intercept", "sparse"), [("hinge", True, False), ("squared_hinge", False, True)]
    )
    def test_every_point_is_certified_and_its_bounds_enclose_the_optimum(
        self, cancer, loss, fit_intercept, sparse
    ):
        X, y = cancer
        data = sp.csr_array(X) if sparse else X
        path = margin_path(data, y, CS, loss=loss, fit_intercept=fit_intercept, tol=1e-4, random_state=0)
        assert len(path) == path.seconds.size == 4
        for C, model in zip(CS, path, strict=True):
            assert model.status_ is Status.CERTIFIED
            assert verify(model, data, y).gap <= 1e-4
            alone = MaxMarginClassifier(C, loss=loss, fit_intercept=fit_intercept, tol=1e-9).fit(data, y)
            assert model.certificate_.lower <= alone.certificate_.upper
            assert model.certificate_.upper >= alone.certificate_.lower
        assert (path.coefs_.shape, path.intercepts_.shape) == ((4, 30), (4,))

    def test_starts_from_the_point_before_save_visits_of_sparse_rows(self):
        rng = np.random.default_rng(0)
        X = sp.csr_array(np.eye(9)[rng.integers(0, 9, (5000, 14))].reshape(5000, 126))
        y = np.sign(X @ rng.normal(size=126) + 3.0 * rng.normal(size=5000))
        path = margin_path(X, y, [1.0, 3.0, 10.0, 30.0], loss="hinge", random_state=0)
        alone = [MaxMarginClassifier(C, loss="hinge", random_state=0).fit(X, y) for C in path.Cs]
        visits = [sum(model.history_[-1].presentations for model in some) for some in (path, alone)]
        assert visits[0] < 0.5 * visits[1]

    def test_points_keep_the_given_order(self, cancer):
        """Points are fitted by rising C; `Cs` and `ps` may be in any order, and the hard margin comes last."""
        path = margin_path(*cancer, [10.0, np.inf, 0.1], [2, np.inf], random_state=0, max_time=60)
        assert list(path.Cs) == [10.0, np.inf, 0.1] * 2
        assert list(path.ps) == [2.0] * 3 + [np.inf] * 3
        assert [(model.C, model.certificate_.problem.C) for model in path] == [(C, C) for C in path.Cs]
        assert path.statuses_ == (Status.CERTIFIED,) * 6
        alone = MaxMarginClassifier(np.inf, random_state=0).fit(*cancer)
        np.testing.assert_array_equal(path[1].coef_, alone.coef_)
        np.testing.assert_allclose(margin_path(*cancer, 3, tol=0.1).Cs, [1e-4, 1.0, 1e4], 1e-14)

    def test_multiclass_bounds_are_sums_and_of_hard_margins_minima(self):
        X, y = load_iris(return_X_y=True)
        path = margin_path(X, y, [0.1, 1.0], loss="hinge", random_state=3)
        assert (path.coefs_.shape, path.intercepts_.shape) == ((2, 3, 4), (2, 3))
        np.testing.assert_allclose(path.lower_[1], sum(one.lower for one in path[1].certificate_), 1e-15)
        rng = np.random.default_rng(0)
        X = np.repeat(np.eye(3), 9, 0) + 0.1 * rng.random((27, 3))
        hard = margin_path(X, np.arange(27) // 9, [np.inf])
        assert hard.lower_[0] == min(part.lower for part in hard[0].certificate_)

    def test_invalid_arguments_are_refused(self, cancer):
        for Cs in (True, 0):
            with pytest.raises(ValueError, match="Cs must"):
                margin_path(*cancer, Cs)


def test_a_callback_ends_the_path_with_its_point(cancer):
    rounds = []

    def stop(report):
        rounds.append(report.round)
        return rounds.count(1) == 2

    path = margin_path(*cancer, [0.1, 1.0, 10.0], callback=stop, **FEW_ROUNDS)
    assert (len(path), path.statuses_[-1]) == (2, Status.INTERRUPTED)
    assert "INTERRUPTED (C = 1" in str(path)


class TestCrossValidation:
    def test_scores_equal_those_of_a_grid_search(self, cancer, tmp_path):
        X, y = cancer
        folds = StratifiedKFold(4, shuffle=True, random_state=0)
        settings = {"loss": "hinge", "tol": 1e-6, "random_state": 0}
        clf = MaxMarginClassifierCV(CS, cv=folds, **settings).fit(X, y)
        grid = GridSearchCV(MaxMarginClassifier(**settings), {"C": CS}, cv=folds).fit(X, y)
        assert clf.scores_.shape == clf.gaps_.shape == (4, 1, 4)
        assert (clf.gaps_ <= 1e-6).all()
        expected = np.array([grid.cv_results_[f"split{k}_test_score"] for k in range(4)])
        # one row of a fold may be on the boundary to within the gap
        assert np.abs(clf.scores_[:, 0] - expected).max() <= 1.5 / (y.size // 4)
        assert clf.best_score_ == clf.scores_.mean(axis=0).max()
        assert clf.Cs_[clf.scores_.mean(axis=0)[0].argmax()] == clf.C_  # the smallest of equally good ones
        verify(clf, X, y)
        save(clf, tmp_path / "model.safetensors")
        saved = load(tmp_path / "model.safetensors")
        assert (type(saved), saved.C) == (MaxMarginClassifier, clf.C_)
        verify(saved, X, y)

    def test_cross_validation_selects_the_norm_and_the_smallest_cost(self):
        X = np.random.default_rng(0).normal(size=(120, 200))
        y = np.sign(X[:, 0] + X[:, 1])
        clf = MaxMarginClassifierCV([0.1, 0.01], ps=["log", 2, np.inf], cv=4, random_state=0).fit(X, y)
        assert clf.p_ == np.inf  # two features of 200 suffice
        assert np.count_nonzero(np.abs(clf.coef_) > 1e-2 * np.abs(clf.coef_).max()) < 50

    def test_threads_scorers_weights_and_groups(self, cancer):
        X, y = cancer
        s, groups = np.where(y == 1, 1.0, 3.0), np.arange(y.size) // 10
        options = {"cv": GroupKFold(3), "scoring": "roc_auc", "random_state": 0}
        one = MaxMarginClassifierCV([0.1, 1.0], **options).fit(X, y, s, groups=groups)
        splits = list(GroupKFold(3).split(X, y, groups))
        two = MaxMarginClassifierCV([0.1, 1.0], n_jobs=2, **options | {"cv": splits}).fit(X, y, s)
        np.testing.assert_array_equal(one.scores_, two.scores_)
        np.testing.assert_array_equal(one.coef_, two.coef_)
        assert one.best_score_ > 0.99
        verify(one, X, y, s)

    def test_ties_select_the_smallest_cost_and_the_first_norm(self, cancer):
        X, y = cancer
        clf = MaxMarginClassifierCV([1.0, 0.1], ps=[2, 1.5], cv=2, scoring=lambda model, X, y: 1.0)
        assert (clf.fit(X[::9], y[::9]).C_, clf.p_) == (0.1, 2)
        with pytest.raises(TypeError, match="sample_weight"):
            clf.fit(X, y, np.ones(y.size))
        with pytest.raises(ValueError, match="no row with a weight"):
            clf.set_params(cv=[(np.arange(300), np.arange(300, 400))]).fit(X, y, np.arange(y.size) < 300)
