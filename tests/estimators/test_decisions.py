"""Binary decisions of a classifier: sides, scores, dual weights, and the data that they belong to."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from clouds import clouds

from maxmargin import KernelMaxMarginClassifier, MaxMarginClassifier, OnlineMarginClassifier
from maxmargin.estimators.decisions import decision, decisions

X, THREE = clouds(60, 3, classes=3)
TWO = np.where(THREE > 0, "yes", "no")
FRAME = pd.DataFrame(X, columns=["a", "b", "c"])


PAIRS = [(0, 1), (0, 2), (1, 2)]


@pytest.mark.parametrize(
    ("model", "labels"),
    [
        (MaxMarginClassifier(random_state=0), [None]),
        (MaxMarginClassifier(random_state=0), [0, 1, 2]),
        (KernelMaxMarginClassifier(), [0, 1, 2]),
        (KernelMaxMarginClassifier(multi_class="ovo", decision_function_shape="ovo"), PAIRS),
    ],
)
def test_rows_with_dual_weight_are_of_the_sides_and_have_margins_of_at_most_one(model, labels):
    y = TWO if labels == [None] else THREE
    found = decisions(model.fit(sp.csr_matrix(X), y))
    assert [one.label for one in found] == labels
    for one, label, certificate in zip(found, labels, model.certificate_.certificates, strict=True):
        signs, included = one.signs(y)
        positive = {None: "yes"}.get(label, label[0] if isinstance(label, tuple) else label)
        assert set(y[included & (signs > 0.0)]) == {positive}
        if isinstance(label, tuple):
            assert set(y[included & (signs < 0.0)]) == {label[1]}
        margins, support = signs * one.scores(X), one.dual() > 1e-6
        assert support.any()
        assert margins[support].max() < 1.01  # complementary slackness, up to tol
        assert not one.dual()[(margins > 1.01) | ~included].any()
        assert one.certificate is certificate
        assert one.difference(X, y) is None
        assert one.support(X, y).sum() == certificate.support.size
        assert one.support(X[:50], y[:50]) is None


def test_difference_describes_how_other_data_differ():
    weights, moved = np.linspace(0.5, 1.5, 60), X.copy()
    moved[7, 1] += 1e-6
    model = MaxMarginClassifier(class_weight="balanced", random_state=0).fit(X, THREE, sample_weight=weights)
    one = decision(model, 2)
    assert one.difference(FRAME, THREE, weights) is None
    for words, data in (
        ("", (X, THREE)),
        ("3 features then, 2 now", (X[:, :2], THREE, weights)),
        ("label 0 (counted from 0) is 9, no class of the model", (X, np.full(60, 9), weights)),
        ("values, labels, weights or row order", (moved, THREE, weights)),
    ):
        assert words in one.difference(*data)
    online = decision(OnlineMarginClassifier(random_state=0).fit(X, TWO))
    assert "no certificate" in online.difference(X, TWO)
    with pytest.raises(ValueError, match="no certificate"):
        online.dual()
    for label in ((0, 1), 7):
        with pytest.raises(ValueError, match="label must be"):
            decision(model, label)
