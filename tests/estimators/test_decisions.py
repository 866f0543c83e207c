"""Decisions of a classifier: signs, scores and dual variables."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from sklearn.exceptions import NotFittedError

from maxmargin import KernelMaxMarginClassifier, MaxMarginClassifier, OnlineMarginClassifier
from maxmargin.estimators.decisions import class_values, decision, decisions, rows_of

RNG = np.random.default_rng(0)
X = RNG.normal(size=(60, 3))
TWO = np.where(X[:, 0] + 0.3 * RNG.normal(size=60) > 0.0, "yes", "no")
THREE = np.digitize(X[:, 0] + 0.3 * RNG.normal(size=60), [-0.5, 0.5])
FOUR = np.digitize(X[:, 0] + RNG.normal(size=60), [-0.8, 0.0, 0.8])


def test_two_classes_have_one_decision():
    model = MaxMarginClassifier(random_state=0).fit(X, TWO)
    (one,) = decisions(model)
    assert (one.label, one.positive, one.negative) == (None, "class yes", "class no")
    assert one.name == "class yes against class no"
    assert np.array_equal(one.scores(X), model.decision_function(X))
    signs, included = one.signs(TWO)
    assert included.all()
    assert np.array_equal(signs > 0.0, TWO == "yes")
    assert np.flatnonzero(one.dual()).tolist() == model.certificate_.support.tolist()


@pytest.mark.parametrize("shape", ["ovr", "ovo"])
def test_pairs_of_classes_have_decisions_for_both_score_shapes(shape):
    model = KernelMaxMarginClassifier(multi_class="ovo", decision_function_shape=shape).fit(X, THREE)
    found = decisions(model)
    assert [one.label for one in found] == [(0, 1), (0, 2), (1, 2)]
    for one, certificate in zip(found, model.certificate_, strict=True):
        signs, included = one.signs(THREE)
        assert set(THREE[included & (signs > 0.0)]) == {one.label[0]}
        assert set(THREE[included & (signs < 0.0)]) == {one.label[1]}
        # rows of the pair with a margin above one have no dual weight
        clear = signs * one.scores(X) > 1.01
        assert not one.dual()[clear & included].any()
        assert one.certificate is certificate
        assert one.difference(X, THREE) is None


def test_support_rows_have_margins_of_at_most_one():
    for model in (
        MaxMarginClassifier(random_state=0).fit(sp.csr_matrix(X), THREE),
        KernelMaxMarginClassifier().fit(X, THREE),
    ):
        for one in decisions(model):
            signs, _ = one.signs(THREE)
            support = one.dual() > 1e-6
            assert support.any()
            assert (signs * one.scores(X))[support].max() < 1.01


def test_difference_describes_how_other_data_differ():
    weights = np.linspace(0.5, 1.5, 60)
    model = MaxMarginClassifier(class_weight="balanced", random_state=0).fit(X, THREE, sample_weight=weights)
    one = decision(model, 2)
    assert one.difference(X, THREE, weights) is None
    assert one.difference(sp.csr_matrix(X), THREE, weights) is None
    assert one.difference(X, THREE) is not None
    assert "rows then" in str(one.difference(X[:50], THREE[:50], weights[:50]))
    assert "features then, 2 now" in str(one.difference(X[:, :2], THREE, weights))
    assert "label that the model does not know: 9" in str(one.difference(X, np.full(60, 9), weights))
    moved = X.copy()
    moved[7, 1] += 1e-6
    assert "values, labels, weights or row order do not" in str(one.difference(moved, THREE, weights))


def test_frames_and_arrays_give_equal_decisions():
    frame = pd.DataFrame(X, columns=["a", "b", "c"])
    model = MaxMarginClassifier(random_state=0).fit(frame, TWO)
    assert decision(model).scores(X) == pytest.approx(model.decision_function(frame), rel=1e-12)
    assert decision(model).difference(frame, TWO) is None
    assert model.feature_names_in_.tolist() == ["a", "b", "c"]


@pytest.mark.parametrize("scheme", ["ovr", "ovo"])
def test_predicted_class_has_the_largest_class_value(scheme):
    # a narrow kernel: pairwise decisions are cyclic in places
    model = KernelMaxMarginClassifier(multi_class=scheme, gamma=3.0, C=10.0).fit(X, FOUR)
    rows = np.random.default_rng(1).normal(size=(3000, 3))
    values = class_values(model, rows)
    assert values.shape == (3000, 4)
    assert np.array_equal(model.classes_[values.argmax(axis=1)], model.predict(rows))
    if scheme == "ovo":
        assert ((values > 0.0).sum(axis=1) == 1).all()


def test_decisions_of_online_models_have_no_certificate():
    one = decision(OnlineMarginClassifier(random_state=0).fit(X, TWO))
    assert one.difference(X, TWO) == "the model has no certificate"
    with pytest.raises(ValueError, match="no certificate, and so no dual weights"):
        one.dual()


def test_missing_and_text_entries_are_reported_with_their_column():
    frame = pd.DataFrame(X, columns=["a", "b", "c"])
    named, unnamed = (MaxMarginClassifier(random_state=0).fit(rows, TWO) for rows in (frame, X))
    gaps = X.copy()
    gaps[:20, 1] = np.nan
    with pytest.raises(ValueError, match="column 1 is missing in 20 of 60 rows; fill such entries in"):
        rows_of(unnamed, gaps)
    with pytest.raises(ValueError, match="column 1 is missing in 20 of 60 rows"):
        rows_of(unnamed, sp.csr_matrix(gaps))
    with pytest.raises(ValueError, match="column 'b' is missing in 20 of 60 rows"):
        rows_of(named, pd.DataFrame(gaps, columns=["a", "b", "c"]))
    with pytest.raises(ValueError, match=r"column 'c' of X holds .*'tall' for instance, not numbers"):
        rows_of(named, frame.assign(c="tall"))
    assert np.array_equal(rows_of(named, frame), X)


def test_invalid_decision_labels_are_refused():
    with pytest.raises(NotFittedError):
        decisions(MaxMarginClassifier())
    model = MaxMarginClassifier(random_state=0).fit(X, THREE)
    assert decision(model).label == 0
    with pytest.raises(ValueError, match=r"label must be one of \[0, 1, 2\]; got \(0, 1\)"):
        decision(model, (0, 1))
    with pytest.raises(ValueError, match=r"label must be one of \[0, 1, 2\]; got 7"):
        decision(model, 7)
    with pytest.raises(ValueError, match="label must be None for two classes"):
        decision(MaxMarginClassifier(random_state=0).fit(X, TWO), "yes")
