"""Validation of rows: refusal with the message of scikit-learn; the previous fit is kept."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.svm import LinearSVC

from maxmargin import KernelMaxMarginClassifier, MaxMarginClassifier, OnlineMarginClassifier, Problem

pd = pytest.importorskip("pandas")

RNG = np.random.default_rng(0)
X = RNG.normal(size=(60, 3))
Y = (X[:, 0] + 0.1 * X[:, 1] > 0.0).astype(int)


@pytest.mark.parametrize("kind", [np.float64, np.float32])
@pytest.mark.parametrize("y", [Y, Y > 0, 2.0 * Y - 1.0, np.where(Y, "up", "down"), Y.astype(np.uint8)])
def test_arrays_and_series_give_the_model_of_frames(kind, y):
    rows = X.astype(kind)
    expected = MaxMarginClassifier().fit(pd.DataFrame(rows), y)
    for form, labels in (
        (rows, y),
        (np.asfortranarray(rows), y),
        (rows[:, :], list(y)),
        (rows, pd.Series(y)),
    ):
        found = MaxMarginClassifier().fit(form, labels)
        assert np.array_equal(found.coef_, expected.coef_)
        assert np.array_equal(found.classes_, expected.classes_)
        assert found.n_features_in_ == 3
        assert not hasattr(found, "feature_names_in_")


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("store", [np.asarray, sp.csr_array, lambda rows: rows.astype(np.float32)])
def test_nan_and_infinity_are_refused_as_in_scikit_learn(value, store):
    """Rows of weight 0 are checked as well; the previous fit is kept."""
    rows, weights = X.copy(), np.ones(60)
    rows[7, 1], weights[7] = value, 0.0
    model = MaxMarginClassifier().fit(X, Y)
    before = model.coef_.copy()
    message = "contains NaN" if np.isnan(value) else "contains infinity"
    with pytest.raises(ValueError, match=message):
        LinearSVC().fit(store(rows), Y)
    for sample_weight in (None, weights):
        with pytest.raises(ValueError, match=message):
            model.fit(store(rows), Y, sample_weight)
    assert np.array_equal(model.coef_, before)
    assert model.n_features_in_ == 3


def test_entries_with_overflowing_squares_are_not_reported_as_infinity():
    """Such entries prevent a certificate, but are finite."""
    with pytest.raises(ValueError, match=r"The largest entry of X is .*e\+200, and its square is beyond"):
        MaxMarginClassifier().fit(1e200 * X, Y)


def test_feature_names_are_removed_by_the_next_fit():
    model = MaxMarginClassifier().fit(pd.DataFrame(X, columns=list("abc")), Y)
    assert list(model.feature_names_in_) == list("abc")
    model.fit(X[:, :2].copy(), Y)
    assert not hasattr(model, "feature_names_in_")
    assert model.n_features_in_ == 2


@pytest.mark.parametrize("loss", ["hinge", "squared_hinge"])
@pytest.mark.parametrize("weight", [0.0, 1e-310, 0.3, 1.0, 1e300, np.nan])
def test_delta2_of_equal_weights_equals_the_elementwise_values(loss, weight):
    """Equal weights take a shortcut."""
    problem = Problem(loss, 0.7)
    each = [float(problem.delta2(np.array([weight]))[0])] * 5
    np.testing.assert_array_equal(problem.delta2(np.full(5, weight)), each)
    assert problem.delta2(np.ones(0)).size == 0


@pytest.mark.parametrize("storage", [sp.csr_matrix, sp.csc_array])
@pytest.mark.parametrize(
    ("indices", "indptr"), [([0, 5, 1], [0, 1, 2, 3]), ([0, -1, 1], [0, 1, 2, 3]), ([0, 1, 2], [0, 3, 1, 3])]
)
@pytest.mark.parametrize(
    "model", [MaxMarginClassifier(), KernelMaxMarginClassifier(), OnlineMarginClassifier()]
)
def test_damaged_sparse_matrices_are_refused(model, indices, indptr, storage):
    """Compiled code would read memory outside the arrays, in the fit and in predictions."""
    y, damaged = np.array([0, 1, 0]), storage((3, 3))
    model = clone(model).fit(storage(np.eye(3)), y)
    damaged.data, damaged.indices, damaged.indptr = np.ones(3), np.array(indices), np.array(indptr)
    with pytest.raises(ValueError, match=r"damaged sparse matrix.* Build it again"):
        model.predict(damaged)
    with pytest.raises(ValueError, match=r"damaged sparse matrix.* Build it again"):
        clone(model).fit(damaged, y)


@pytest.mark.parametrize("kind", [int, float, str])
def test_classes_of_many_rows_include_those_that_a_sample_of_the_labels_lacks(kind):
    """One label of 30,000 is of the third class, in every position modulo the step of the sample."""
    X = np.random.default_rng(0).normal(size=(30_000, 2))
    for place in range(25_000, 25_004):
        y = (X[:, 0] > 0.0).astype(int)
        y[place] = 2
        model = MaxMarginClassifier(max_iter=1, tol=0.5).fit(X, y.astype(kind))
        assert model.classes_.tolist() == [kind(label) for label in (0, 1, 2)]
