"""Messages say what is wrong, where, and what to do."""

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp

import maxmargin as mm
from maxmargin import KernelMaxMarginClassifier, MaxMarginClassifier, OnlineMarginClassifier, separate

rng = np.random.default_rng(0)
X = rng.normal(size=(60, 5))
Y = (X[:, 0] + rng.normal(size=60) > 0).astype(int)


def with_entry(row, column, value):
    Z = X.copy()
    Z[row, column] = value
    return Z


def damaged(kind="csr"):
    """Rows in a sparse format, with an index outside of their shape."""
    Z = sp.csr_array(X).asformat(kind)
    if kind == "coo":
        Z.coords = Z.coords[0] + 50, Z.coords[1]
    else:
        Z.indices[3] = 77
    return Z


def unfinished(Z, names=None, **parameters):
    """Fit one round in another norm, where no exact step follows: not enough for any tolerance."""
    options = {"algorithm": "dcd", "p": 3, "random_state": 0, "max_iter": 1, "tol": 1e-12}
    model = MaxMarginClassifier(**options | parameters)
    return model.fit(Z if names is None else pd.DataFrame(Z, columns=names), Y)


SENTINEL = "Row 7 (counted from 0) holds -1e+12 in column {}, whose other entries are at most"


def test_the_row_or_the_column_that_dominates_is_named():
    message = unfinished(sp.csr_matrix(with_entry(7, 3, -1e12))).message_
    assert SENTINEL.format("3 (counted from 0)") in message
    assert SENTINEL.format("'d'") in unfinished(with_entry(7, 3, -1e12), list("abcde")).message_
    large = X * [1, 1, 1, 1e9, 1]
    message = unfinished(sp.csr_matrix(large)).message_
    assert "Column 3 (counted from 0) reaches" in message
    assert "divide it by 1e9" in message
    for plain in (X, np.full((60, 1), 7.0)):
        assert "column" not in unfinished(plain).message_.lower()


def test_limits_are_named():
    message = unfinished(X).message_
    assert message.startswith("All max_iter=1 rounds were made. The certified gap is ")
    assert "Raise max_iter" in message
    assert "Raise max_time" in unfinished(X, max_time=1e-9).message_
    assert "raise" not in (unfinished(X * 1e40).message_ + unfinished(X * 0.0).message_).lower()
    assert "Ctrl-C or a callback ended" in unfinished(X, callback=lambda report: True).message_
    several = unfinished(X).fit(X, Y + (X[:, 1] > 1.0))
    assert "gap of class" in several.message_


def test_hard_margins_name_the_reason_and_a_finite_C():
    message = MaxMarginClassifier(C=np.inf).fit(X, Y).message_
    assert message.endswith("Give a finite C, the weight of the losses.")
    assert "max_time" in MaxMarginClassifier(C=np.inf, max_time=1e-9).fit(X, Y).message_
    verdict = separate(with_entry(7, 3, -1e12), Y, max_time=1e-9)
    assert verdict.remedy().startswith("row 7 (counted from 0) holds")
    assert "raise max_time" in str(verdict)
    assert "row 8 (counted from 1)" in verdict.remedy(1)


@pytest.mark.parametrize("kind", [MaxMarginClassifier, KernelMaxMarginClassifier, OnlineMarginClassifier])
def test_probabilities_are_those_of_calibration(kind):
    assert not hasattr(kind(), "predict_proba")
    with pytest.raises(AttributeError, match=r"sklearn.calibration.CalibratedClassifierCV"):
        kind().predict_proba(X)


HUGE = 10**400
INFINITE = "contains infinity: column {} is infinite; .*row 4; rows and columns are"


def fit(Z, labels=Y, **parameters):
    return lambda: MaxMarginClassifier(**parameters).fit(Z, labels)


REFUSED = [
    (fit(with_entry(4, 1, np.inf)), INFINITE.format(1)),
    (fit(sp.csc_matrix(with_entry(4, 1, -np.inf))), INFINITE.format(1)),
    (fit(pd.DataFrame(with_entry(4, 1, np.inf), columns=list("abcde"))), INFINITE.format("'b'")),
    (lambda: separate(with_entry(4, 1, np.inf), Y), INFINITE.format(1)),
    (fit(with_entry(4, 1, np.nan)), "column 1 is missing; .*row 4"),
    (fit(np.array([[HUGE], [1]], dtype=object), [0, 1]), "column 0 of X holds '1000"),
    (fit(damaged()), "damaged sparse matrix"),
    (fit(damaged("coo")), "damaged sparse matrix"),
    (lambda: mm.verify(MaxMarginClassifier().fit(X, Y), damaged(), Y), "damaged sparse matrix"),
    (lambda: mm.support_report(MaxMarginClassifier().fit(X, Y), damaged(), Y), "damaged sparse matrix"),
    (lambda: separate(X, Y, tol=HUGE), "tol must be a number"),
    (lambda: mm.margin_path(X, Y, Cs=[HUGE]), "Cs must be positive numbers"),
    (fit(X, class_weight={0: 0, 1: 1}), "class_weight leaves only one class with a positive weight"),
    (lambda: OnlineMarginClassifier().partial_fit(X, Y, classes=[0, np.inf]), "Label 1 .counted.* is inf"),
    (lambda: mm.compare(X, Y, [1, "dcd", None]), r"names and algorithm objects such as MPU\(\); got 1"),
    (lambda: OnlineMarginClassifier(fit_intercept=2).fit(X, Y), "fit_intercept must be True or False; got 2"),
    (fit(X, callback=lambda report: [1]), "callback must return True to end the fit, else .*; got a list"),
    (lambda: mm.verify(MaxMarginClassifier().fit(X, Y), X, Y + 1), r"label \d .* is 2, no class of"),
]


@pytest.mark.parametrize(("call", "message"), REFUSED)
def test_refusals_name_the_place_and_the_remedy(call, message):
    with pytest.raises(ValueError, match=f"(?s){message}"):
        call()


def test_a_callback_that_ends_a_fold_is_no_keyboard_interrupt():
    with pytest.raises(RuntimeError, match="callback ended a fit of a fold before C was chosen"):
        mm.MaxMarginClassifierCV([0.1, 1.0], algorithm="dcd", callback=lambda report: True).fit(X, Y)


def test_verify_names_the_column_of_missing_and_text_entries():
    frame = pd.DataFrame(X, columns=list("abcde"))
    model = MaxMarginClassifier().fit(frame, Y)
    for value, words in ((pd.NA, "column 'b' is missing"), ("high", "column 'b' of X holds")):
        with pytest.raises(mm.CertificateError, match=words):
            mm.verify(model, frame.assign(b=[value, *X[1:, 1]]), Y)
