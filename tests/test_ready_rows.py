"""Rows, labels and weights that nothing has to be done with are taken as they are; what is wrong is told as ever."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from sklearn.svm import LinearSVC

from maxmargin import MaxMarginClassifier, Problem
from maxmargin.estimators import linear
from maxmargin.estimators.validation import (
    FEW_CLASSES,
    SAMPLED_LABELS,
    distinct_classes,
    needs_no_conversion,
    unique_labels,
)

pd = pytest.importorskip("pandas")

RNG = np.random.default_rng(0)
X = RNG.normal(size=(60, 3))
Y = (X[:, 0] + 0.1 * X[:, 1] > 0.0).astype(int)


class Asked(Exception):
    """Somebody else was to look at the rows."""


@pytest.mark.parametrize("kind", [np.float64, np.float32])
@pytest.mark.parametrize("y", [Y, Y > 0, 2.0 * Y - 1.0, np.where(Y, "up", "down"), Y.astype(np.uint8)])
def test_plain_arrays_are_not_looked_at_twice(kind, y, monkeypatch):
    rows = X.astype(kind)
    expected = MaxMarginClassifier().fit(pd.DataFrame(rows), y)
    monkeypatch.setattr(linear, "validate_rows", None)
    found = MaxMarginClassifier().fit(rows, y)
    assert np.array_equal(found.coef_, expected.coef_)
    assert np.array_equal(found.classes_, expected.classes_)
    assert found.n_features_in_ == 3


@pytest.mark.parametrize(
    ("rows", "y"),
    [
        (X.tolist(), Y),
        (X, Y.tolist()),
        (X.astype(int), Y),
        (X.astype(">f8"), Y),
        (np.asfortranarray(X), Y),
        (X[:, ::2], Y),
        (X[:, 0], Y),
        (X[:0], Y[:0]),
        (X[:, :0], Y),
        (X, Y[:-1]),
        (X, Y[:, None]),
        (X, np.where(Y, np.nan, 1.0)),
        (X, Y.astype(object)),
        (X.view(np.matrix), Y),  # made so it warns nobody
        (np.ma.masked_array(X, X > 2.0), Y),
        (sp.csr_array(X), Y),
        (pd.DataFrame(X), Y),
        (X, pd.Series(Y)),
    ],
)
def test_all_else_is_looked_at(rows, y, monkeypatch):
    def ask(*_, **__):
        raise Asked

    assert not needs_no_conversion(rows, y)
    monkeypatch.setattr(linear, "validate_rows", ask)
    with pytest.raises(Asked):
        MaxMarginClassifier().fit(rows, y)


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("store", [np.asarray, sp.csr_array, lambda rows: rows.astype(np.float32)])
def test_entries_that_are_no_numbers_are_told_as_scikit_learn_does(value, store):
    """In rows of weight 0, too; and the model of before is still there."""
    rows, weights = X.copy(), np.ones(60)
    rows[7, 1], weights[7] = value, 0.0
    model = MaxMarginClassifier().fit(X, Y)
    before = model.coef_.copy()
    said = "contains NaN" if np.isnan(value) else "contains infinity"
    with pytest.raises(ValueError, match=said):
        LinearSVC().fit(store(rows), Y)
    for sample_weight in (None, weights):
        with pytest.raises(ValueError, match=said):
            model.fit(store(rows), Y, sample_weight)
    assert np.array_equal(model.coef_, before)
    assert model.n_features_in_ == 3


def test_entries_whose_squares_are_no_numbers_are_numbers():
    """They are in the way of a proof, but no infinity."""
    with pytest.raises(ValueError, match=r"The largest entry of X is .*e\+200, and its square is beyond"):
        MaxMarginClassifier().fit(1e200 * X, Y)


def test_names_of_columns_go_with_the_next_fit():
    model = MaxMarginClassifier().fit(pd.DataFrame(X, columns=list("abc")), Y)
    assert list(model.feature_names_in_) == list("abc")
    model.fit(X[:, :2].copy(), Y)
    assert not hasattr(model, "feature_names_in_")
    assert model.n_features_in_ == 2


LABELS = (np.int64, np.uint8, np.bool_, np.float32, np.float64, np.dtype("U3"))


SOME_LABELS = st.sampled_from(LABELS).flatmap(lambda kind: arrays(kind, st.integers(2, 40)))


@given(pick=SOME_LABELS, times=st.sampled_from([1, 90]))
def test_classes_are_the_distinct_labels(pick, times):
    """Whether few of many rows tell them or not, and whatever they are."""
    y = np.tile(pick, times)
    y = y[np.random.default_rng(0).permutation(y.size)]
    if y.dtype.kind == "f":
        y = np.where(np.isfinite(y), np.trunc(y), 0.0)
    found, expected = unique_labels(y), np.unique(y)
    assert found.dtype == expected.dtype
    assert np.array_equal(found, expected)


@pytest.mark.parametrize("classes", [2, FEW_CLASSES, FEW_CLASSES + 1])
def test_a_class_that_is_not_among_some_rows_is_found(classes):
    """Of one row, in whatever place; of rows in order."""
    n = 5 * SAMPLED_LABELS
    y = np.arange(n) % classes
    for place in (0, 1, n // 2, n - 1):
        rare = y.copy()
        rare[place] = 1000
        assert distinct_classes(rare).tolist() == [*range(classes), 1000]
    assert distinct_classes(np.sort(y)).tolist() == [*range(classes)]


@pytest.mark.parametrize("loss", ["hinge", "squared_hinge"])
@pytest.mark.parametrize("weight", [0.0, 1e-310, 0.3, 1.0, 1e300, np.nan])
def test_equal_weights_have_equal_coordinates(loss, weight):
    """The same as one by one."""
    problem = Problem(loss, 0.7)
    each = [float(problem.delta2(np.array([weight]))[0])] * 5
    np.testing.assert_array_equal(problem.delta2(np.full(5, weight)), each)
    assert problem.delta2(np.ones(0)).size == 0
