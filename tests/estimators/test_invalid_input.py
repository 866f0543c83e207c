"""Rows, labels and weights that cannot be used are refused, in fit and in prediction, with few words asserted."""

from __future__ import annotations

from functools import partial

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from clouds import clouds
from problems import rings
from sklearn.base import clone
from sklearn.exceptions import DataConversionWarning
from sklearn.metrics.pairwise import rbf_kernel

from maxmargin import (
    KernelMaxMarginClassifier,
    MarginRFE,
    MaxMarginClassifier,
    MaxMarginClassifierCV,
    OnlineMarginClassifier,
    separate,
    verify,
)

INF, NAN = np.inf, np.nan
X4, Y4 = np.array([[0.0, 1.0], [1.0, 0.0], [2.0, 1.0], [0.0, 3.0]]), [0, 1, 0, 1]
ALL = [
    cls(random_state=0) for cls in (MaxMarginClassifier, KernelMaxMarginClassifier, OnlineMarginClassifier)
]
SELECTOR = MarginRFE(MaxMarginClassifier())
BOTH = (MaxMarginClassifier, KernelMaxMarginClassifier)


@pytest.mark.parametrize("cls", BOTH)
@pytest.mark.parametrize(
    ("X", "y", "weights", "words"),
    [
        (X4, ["a"] * 4, None, r"2 classes.*class 'a' \(one class\)"),
        (X4, np.array(["a", 1, "b", 2], dtype=object), None, "label"),
        (X4, np.array([False, True, False, True], dtype=object), None, r"astype\(bool\)"),
        (X4, pd.Series([None, 1, 0, 1], dtype="Int64"), None, "Label 0 "),
        (X4, [NAN, 1, 0, 1], None, "Label 0 "),
        (X4, Y4, [1.0, 1.0, 1.0], r"\(3,\)"),
        (X4, Y4, [1.0, -1.0, 1.0, 1.0], "at least 0.* row 1 .counted from 0"),
        (X4, Y4, [1.0, INF, 1.0, 1.0], "finite numbers.* row 1 .counted from 0"),
        (X4, Y4, [0.0, 0.0, 0.0, 0.0], "all weights are zero"),
        (X4, Y4, [1e308] * 4, "C times the weights"),
        (X4, Y4, [1.0, 0.0, 1.0, 0.0], "one class"),
    ],
)
def test_unusable_rows_labels_and_weights_are_refused(cls, X, y, weights, words):
    with pytest.raises((ValueError, TypeError), match=words):
        cls().fit(X, y, weights)


@pytest.mark.parametrize(
    "used",
    [lambda X, y: MaxMarginClassifier().fit(X, y), lambda X, y: OnlineMarginClassifier().fit(X, y), separate],
)
@pytest.mark.parametrize(
    ("y", "words"),
    [
        (np.array(["2020", "NaT", "2020", "NaT"], "M8[D]"), "Label 1 "),
        (np.array([1, "NaT", 1, 1], "m8[s]"), "Label 1 "),
        (pd.Series(pd.to_datetime(["2020", None, "2020", "2020"])), "Label 1 "),
        (pd.Series(["a", None, "b", "a"], dtype="category"), "Label 1 "),
        (np.array([1, INF, 1, 1], dtype=object), "Label 1 .* is inf"),
    ],
)
def test_labels_that_would_become_others_are_refused(used, y, words):
    with pytest.raises(ValueError, match=words):
        used(X4, y)


def test_missing_entries_of_arrow_dictionaries_are_no_labels():
    pa = pytest.importorskip("pyarrow")
    for labels in (["a", "b", None, "b"], [3, 4, None, 4]):
        coded = pa.array(labels).dictionary_encode()
        for y in (coded, pa.chunked_array([coded])):
            for used in (MaxMarginClassifier().fit, separate):
                with pytest.raises(ValueError, match="Label 2 "):
                    used(X4, y)
        y = pa.chunked_array([pa.array([labels[0], labels[1]] * 2).dictionary_encode()])
        assert MaxMarginClassifier().fit(X4, y).classes_.tolist() == labels[:2]


def test_large_labels_stay_apart():
    for y in (
        [2**53, 2**53 + 1] * 2,
        pd.Series([1, 2**63 + 1] * 2, dtype="UInt64"),
        np.array([2**63, 2**63 + 1] * 2, np.uint64),
    ):
        for found in (MaxMarginClassifier().fit(X4, y).classes_.tolist(), [*separate(X4, y).classes]):
            assert found == list(y[:2])
    for y, remedy in (([2**64, 2**64 + 1] * 2, r"astype\(str\)"), ([1e19, 0.0, 1.0, 2.0], "label type")):
        with pytest.raises(ValueError, match=remedy):
            MaxMarginClassifier().fit(X4, y)


@pytest.mark.parametrize("model", ALL)
def test_scores_refuse_the_labels_that_fits_refuse(model):
    y = np.array([1.0, 2.0] * 2)
    found = clone(model).fit(X4, y)
    for used in (found.score, clone(model).fit):
        with pytest.raises(ValueError, match="Label 1 "):
            used(X4, np.array([1.0, np.nan, 2.0, 1.0]))
    assert found.score(X4, found.predict(X4)) == 1.0


@pytest.mark.parametrize("model", ALL)
def test_text_of_every_type_is_scored(model):
    y = np.array(["a", "b"] * 2)
    kinds = [y, y.astype(np.dtypes.StringDType()), y.astype(object), y.tolist()]
    scores = [clone(model).fit(X4, fitted).score(X4, scored) for fitted in kinds for scored in kinds]
    assert scores == [np.mean(clone(model).fit(X4, y).predict(X4) == y)] * 16


def test_a_column_of_labels_is_accepted_with_the_warning_of_scikit_learn():
    X, y = clouds()
    model, verdict = MaxMarginClassifier().fit(X, y), separate(X, y)
    stored = MaxMarginClassifier(max_iter=1, memory=1000, random_state=0)  # in partitions
    calls = [clone(model).fit, stored.fit, separate, verdict.verify, partial(verify, model), model.score]
    for call in calls:
        for column in (y[:, None], pd.DataFrame({"y": y})):
            with pytest.warns(DataConversionWarning):
                assert type(call(X, column)) is type(call(X, y))
        with pytest.raises(ValueError, match=r"1d array, got an array of shape \(1, 60\)"):
            call(X, y[None])
    for call in calls[2:]:
        for wrong in (None, sp.csr_matrix(y[:, None])):
            with pytest.raises(ValueError, match=f"one label for each row; got {type(wrong).__name__}"):
                call(X, wrong)


@pytest.mark.parametrize("model", [MaxMarginClassifierCV(Cs=2, cv=2), SELECTOR])
@pytest.mark.parametrize(
    ("y", "words"),
    [
        ([None, "a", None, "a"], "Label 0 "),
        ([None] * 4, "Label 0 "),
        (np.array([b"a", b"b", b"a", b"b"]), "The labels are bytes"),
        (np.array(["a", 1, "b", 2], dtype=object), "y holds int and str"),
    ],
)
def test_labels_that_name_no_classes_are_refused_before_rows_are_split(model, y, words):
    with pytest.raises(ValueError, match=words):
        clone(model).fit(X4, y)


@pytest.mark.parametrize("model", ALL)
@pytest.mark.parametrize(("store", "value"), [(np.asarray, NAN), (sp.csr_array, -INF), (np.float32, INF)])
def test_nan_and_infinity_are_refused_also_in_rows_of_weight_zero(model, store, value):
    X, y = clouds()
    model, rows = clone(model).fit(X, y), X.copy()
    rows[7, 1] = value
    weights = () if isinstance(model, OnlineMarginClassifier) else (np.arange(60) != 7,)
    for call in (lambda: model.fit(store(rows), y, *weights), lambda: model.predict(store(rows))):
        with pytest.raises(ValueError, match="NaN" if np.isnan(value) else "infinity"):
            call()


@pytest.mark.parametrize("model", ALL)
@pytest.mark.parametrize(
    ("storage", "indices", "indptr"),
    [
        (sp.csr_matrix, [0, 5, 1], [0, 1, 2, 3]),
        (sp.csc_array, [0, -1, 1], [0, 1, 2, 3]),
        (sp.csr_matrix, [0, 1, 2], [0, 3, 1, 3]),
    ],
)
def test_damaged_sparse_matrices_are_refused(model, storage, indices, indptr):
    """Compiled code would read memory outside the arrays, in the fit and in predictions."""
    y, damaged = np.array([0, 1, 0]), storage((3, 3))
    model = clone(model).fit(storage(np.eye(3)), y)
    damaged.data, damaged.indices, damaged.indptr = np.ones(3), np.array(indices), np.array(indptr)
    for call in (lambda: model.predict(damaged), lambda: clone(model).fit(damaged, y)):
        with pytest.raises(ValueError, match="damaged sparse matrix"):
            call()


def test_repeated_entries_of_sparse_rows_are_summed_in_a_copy():
    rng = np.random.default_rng(0)
    columns = np.array([3, 1, 3, 0, 2, 2] * 4)
    X = sp.csr_matrix((rng.normal(size=24), columns, np.arange(0, 25, 6)), shape=(4, 4))
    before, dense = X.data.copy(), X.toarray()
    for cls in BOTH:
        model = cls(random_state=0).fit(X, Y4)
        verify(model, X, Y4)
        expected = cls(random_state=0).fit(dense, Y4).decision_function(dense)
        assert model.decision_function(X) == pytest.approx(expected, rel=0.0, abs=1e-13)  # 24 terms
    assert X.data.tolist() == before.tolist()


@pytest.mark.parametrize("kind", [int, float, str])
def test_rare_classes_are_found_among_many_labels(kind):
    """One label of 30,000 is of the third class, in every position modulo the step of the sample."""
    X = np.random.default_rng(0).normal(size=(30_000, 2))
    for place in range(25_000, 25_004):
        y = (X[:, 0] > 0.0).astype(int)
        y[place] = 2
        model = MaxMarginClassifier(max_iter=1, tol=0.5).fit(X, y.astype(kind))
        assert model.classes_.tolist() == [kind(label) for label in (0, 1, 2)]


NOT_A_KERNEL = r"not positive semidefinite.*eigenvalue is -\d"


@pytest.mark.parametrize(
    ("options", "data", "words"),
    [
        ({"kernel": "rbf"}, lambda X: X + 1e8, "lost in rounding.*mean"),
        ({"kernel": "precomputed"}, lambda X: X, "square"),
        ({"kernel": "precomputed"}, lambda X: rbf_kernel(X) + np.eye(40, k=39), "rows 0 and 39 .counted"),
        ({"kernel": "precomputed"}, lambda X: np.tanh(2.0 * X @ X.T - 1.0), NOT_A_KERNEL),
        ({"kernel": lambda A, B: -(A @ B.T)}, lambda X: X, NOT_A_KERNEL),
        ({"kernel": lambda A, B: np.ones(3)}, lambda X: X, "shape"),
        ({"kernel": lambda A, B: np.full((len(A), len(B)), np.nan)}, lambda X: X, "not finite real numbers"),
    ],
)
def test_kernels_without_a_certificate_are_refused(options, data, words):
    X, y, _ = rings(40, 10)
    with pytest.raises(ValueError, match=words):
        KernelMaxMarginClassifier(**options).fit(data(X), y)


DAYS = np.array([["2020-01-01"], ["2020-01-02"], ["2020-01-03"], ["NaT"]], dtype="M8[D]")


@pytest.mark.parametrize(
    "X",
    [
        DAYS, DAYS - DAYS[0], pd.DataFrame(DAYS.astype("M8[s]")),
    ],
)  # fmt: skip
def test_dates_and_times_are_no_numbers(X):
    rows, labels = [[0.0], [1.0], [2.0], [3.0]], [0, 0, 1, 1]
    verdict, model = separate(rows, labels), MaxMarginClassifier().fit(rows, labels)
    for call in (separate, verdict.verify, lambda X, y: verify(model, X, y), *(cls().fit for cls in BOTH)):
        with pytest.raises(ValueError, match=r"column 0 of X holds .*, not numbers: encode"):
            call(X, labels)


def test_weights_that_cannot_be_used_are_named_by_their_row():
    for model in (MaxMarginClassifier(), KernelMaxMarginClassifier(), SELECTOR, MaxMarginClassifierCV()):
        with pytest.raises(ValueError, match=r"at least 0, and that of row 2 \(counted from 0\)"):
            model.fit(X4, Y4, sample_weight=[1.0, 1.0, -1.0, 1.0])


def test_dates_are_no_weights():
    model, weights = MaxMarginClassifier().fit(X4, Y4), np.full(4, np.datetime64("2020-01-01"))
    fits = [MaxMarginClassifier(memory=1), SELECTOR, MaxMarginClassifierCV(), *(cls() for cls in BOTH)]
    for call in (partial(verify, model), *(one.fit for one in fits)):
        with pytest.raises(ValueError, match=r"sample_weight holds .*, not numbers: give numbers"):
            call(X4, Y4, weights)


def test_values_under_a_mask_are_not_used():
    labels, weights = np.ma.array(Y4, mask=[0, 1, 0, 0]), np.ma.array(np.ones(4), mask=[0, 1, 0, 0])
    verdict, model = separate(X4, [0, 0, 0, 1]), MaxMarginClassifier().fit(X4, Y4)
    stored = MaxMarginClassifier(memory=1)  # in partitions
    calls = [
        lambda: separate(X4, labels), lambda: verdict.verify(X4, labels), lambda: verify(model, X4, labels),
        lambda: verify(model, X4, Y4, weights), lambda: stored.fit(X4, labels), lambda: stored.fit(X4, Y4, weights),
        *(lambda cls=cls: cls().fit(X4, Y4, sample_weight=weights) for cls in BOTH),
        lambda: SELECTOR.fit(X4, Y4, sample_weight=weights),
        lambda: MaxMarginClassifierCV().fit(X4, Y4, sample_weight=weights),
    ]  # fmt: skip
    for call in calls:
        with pytest.raises(ValueError, match="masked entries: fill them in"):
            call()


@pytest.mark.parametrize("cls", [MaxMarginClassifier, KernelMaxMarginClassifier, MaxMarginClassifierCV])
@pytest.mark.parametrize("n_jobs", [0, "a"])
def test_numbers_of_threads_are_checked_before_the_fit(cls, n_jobs):
    with pytest.raises(ValueError, match="n_jobs must be a whole number of threads"):
        cls(n_jobs=n_jobs).fit(X4, Y4)


def test_huge_integers_are_refused_as_other_values_are():
    for size in (10**400, -(10**400)):
        with pytest.raises(ValueError, match="memory must be"):
            MaxMarginClassifier(memory=size).fit(X4, Y4)
    with pytest.raises(ValueError, match="sample_weight must hold numbers"):
        MaxMarginClassifier().fit(X4, Y4, [10**400] * 4)


def test_queries_of_polars_are_to_be_collected():
    polars = pytest.importorskip("polars", reason="pip install polars")
    X, y = polars.DataFrame(X4).lazy(), polars.DataFrame({"y": Y4}).lazy()
    model = MaxMarginClassifier().fit(X4, Y4)
    for used in (
        *(one.fit for one in map(clone, ALL)),
        separate,
        lambda X, y: verify(model, X, y),
    ):
        for rows, labels in ((X, Y4), (X4, y)):
            with pytest.raises(ValueError, match=r"collect\(\)"):
                used(rows, labels)
