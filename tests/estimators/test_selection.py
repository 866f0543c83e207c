"""Feature elimination: selected features, bounds of every set."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from effort import interpreted
from sklearn.base import clone
from sklearn.feature_selection import RFE
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV
from sklearn.neighbors import KNeighborsClassifier
from sklearn.svm import LinearSVC

from maxmargin import MarginRFE, MaxMarginClassifier, verify

CLASSIFIER, DESCENT = MaxMarginClassifier(), MaxMarginClassifier(algorithm="dcd", random_state=0)


def rows(n=80, d=12, useful=3, classes=2, noise=0.3, seed=0):
    """Return rows whose class depends on the first `useful` features only."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d))
    score = X[:, :useful].sum(axis=1) + noise * rng.normal(size=n)
    return X, np.digitize(score, np.quantile(score, np.arange(1, classes) / classes))


def separable(n=60, d=30, useful=4):
    X, y = rows(n, d, useful, noise=0.0, seed=1)
    X[:, :useful] += 0.3 * np.where(y > 0, 1.0, -1.0)[:, None]
    return X, y


class TestElimination:
    def test_informative_features_are_kept(self):
        X, y = rows()
        table = pd.DataFrame(X, columns=[f"gene {j}" for j in range(12)])
        selector = MarginRFE(CLASSIFIER, n_features_to_select=3).fit(table, y)
        kept, inner = table.iloc[:, :3], selector.estimator_
        assert selector.support_.nonzero()[0].tolist() == sorted(selector.order_[:3]) == [0, 1, 2]
        assert selector.n_features_ == (selector.ranking_ == 1).sum() == 3
        assert sorted(selector.order_) == list(range(12))
        assert np.array_equal(selector.predict(table), inner.predict(kept.to_numpy()))
        assert selector.score(table, y) == inner.score(kept.to_numpy(), y) > 0.85
        verify(inner, kept.to_numpy(), y)
        pd.testing.assert_frame_equal(selector.set_output(transform="pandas").transform(table), kept)

    @pytest.mark.parametrize("classes", [2, 3])
    def test_ranking_equals_that_of_rfe_with_the_same_classifier(self, classes):
        X, y = rows(classes=classes)
        svc = LinearSVC(tol=1e-8, max_iter=10**6)
        actual = MarginRFE(svc, n_features_to_select=2, step=1).fit(X, y)
        reference = RFE(svc, n_features_to_select=2, step=1).fit(X, y)
        assert np.array_equal(actual.ranking_, reference.ranking_)
        assert np.array_equal(actual.support_, reference.support_)
        assert np.array_equal(actual.predict(X), reference.predict(X))

    def test_features_of_weight_zero_are_removed_first(self):
        X, y = rows()
        X[:, 5:] = 0.0
        selector = MarginRFE(CLASSIFIER, n_features_to_select=2, step=1).fit(X, y)
        assert [stage.n_features for stage in selector.path_] == [12, 5, 4, 3, 2]
        assert selector.ranking_[5:].tolist() == [5] * 7
        kept = MarginRFE(CLASSIFIER, n_features_to_select=8, step=1).fit(X, y)
        assert kept.n_features_ == 8  # the requested number

    def test_sparse_and_float32_rows_are_supported(self):
        X, y = rows()
        X[np.abs(X) < 0.5] = 0.0
        selector = MarginRFE(CLASSIFIER, n_features_to_select=3)
        dense, sparse = clone(selector).fit(X, y), clone(selector).fit(sp.csr_array(X), y)
        assert np.array_equal(sparse.ranking_, dense.ranking_)
        assert sparse.estimator_.coef_ == pytest.approx(dense.estimator_.coef_, rel=1e-10)  # rounding
        assert sp.issparse(sparse.transform(sp.csr_array(X)))
        narrow = X.astype(np.float32)
        assert clone(selector).fit(narrow, y).transform(narrow).dtype == np.float32


class TestBounds:
    @interpreted
    @pytest.mark.parametrize(("C", "p"), [(1.0, 2), (np.inf, 2), (np.inf, "log"), (np.inf, np.inf)])
    def test_bounds_hold_and_are_monotone_along_the_path(self, C, p):
        X, y = separable(40, 60)
        classifier = MaxMarginClassifier(C, p=p, tol=1e-2)
        path = MarginRFE(classifier, n_features_to_select=5, step=0.3).fit(X, y).path_
        for stage in path:
            assert stage.hard == np.isinf(C)
            assert stage.p == (max(2.0, 2.0 * np.log(stage.n_features)) if p == "log" else p)
            exact = MaxMarginClassifier(C, p=stage.p, tol=1e-3).fit(X[:, stage.features], y).certificate_
            assert stage.lower <= exact.upper
            assert stage.upper >= exact.lower
        if p == 2:
            side, sign = ("upper", -1.0) if np.isinf(C) else ("lower", 1.0)
            assert (sign * np.diff([getattr(stage, side) for stage in path]) >= 0.0).all()

    @interpreted
    def test_loose_bounds_of_a_set_are_improved_by_those_of_a_larger_one(self):
        X, y = separable(40, 12)
        loose = MaxMarginClassifier(np.inf, algorithm="perceptron", tol=1e-3, max_iter=50, random_state=0)
        path = MarginRFE(loose, n_features_to_select=6, step=1).fit(X, y).path_
        assert (np.diff([stage.upper for stage in path]) <= 0.0).all()

    def test_hard_margin_keeps_the_last_separable_set(self):
        X, y = separable()
        selector = MarginRFE(MaxMarginClassifier(np.inf), n_features_to_select=1, step=1).fit(X, y)
        last = selector.path_[-1]
        assert selector.n_features_ == last.n_features > 1
        assert f"{last.n_features - 1} features" in selector.reason_
        assert selector.score(X, y) == 1.0
        assert verify(selector.estimator_, selector.transform(X), y).lower > 0.0


class TestInterface:
    def test_methods_follow_the_classifier(self):
        X, y = rows()
        search = GridSearchCV(MarginRFE(LogisticRegression()), {"estimator__C": [0.1, 1.0]}, cv=2).fit(X, y)
        assert search.predict_proba(X).shape == (80, 2)
        assert not hasattr(MarginRFE(CLASSIFIER), "predict_proba")
        assert not hasattr(MarginRFE(KNeighborsClassifier()), "decision_function")
        with pytest.raises(ValueError, match="nothing to rank features by"):
            MarginRFE(MaxMarginClassifier(p=np.inf), n_features_to_select=0.5).fit(1e-9 * X, y)

    def test_interrupt_keeps_the_current_set(self, capsys):
        X, y = rows()
        interrupted = clone(DESCENT).set_params(tol=1e-9, callback=lambda report: True)
        selector = MarginRFE(interrupted, n_features_to_select=2, verbose=1).fit(X, y)
        assert selector.n_features_ == 12
        assert "interrupted" in selector.reason_
        assert capsys.readouterr().err.count("features") == 1
