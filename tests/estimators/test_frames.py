"""Frames of pandas and polars: names are stored, and entries that are no numbers are refused with their column."""

from __future__ import annotations

from datetime import date

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
import scipy.sparse as sp
from clouds import clouds
from sklearn.base import clone

from maxmargin import (
    CertificateError,
    KernelMaxMarginClassifier,
    MaxMarginClassifier,
    OnlineMarginClassifier,
    verify,
)

ROUNDING = 1e-13  # sums of at most 60 terms of size 1: 60 eps = 1e-14, times 10
X, Y = clouds(60, 3, gap=4.0)
STRING_LABELS = np.where(Y, "up", "down")
PANDAS, POLARS = pd.DataFrame(X, columns=list("abc")), pl.DataFrame(X, schema=list("abc"))
MODELS = [MaxMarginClassifier(), KernelMaxMarginClassifier(), OnlineMarginClassifier(random_state=0)]


@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize("frame", [PANDAS, POLARS], ids=["pandas", "polars"])
def test_feature_names_are_stored_and_checked(frame, model):
    expected = model.fit(X, Y).decision_function(X)
    model.fit(frame, Y)
    assert model.feature_names_in_.tolist() == ["a", "b", "c"]
    assert np.allclose(model.decision_function(frame), expected, rtol=0.0, atol=ROUNDING)
    exchanged = frame[["c", "b", "a"]]
    with pytest.raises(ValueError, match="in the same order"):
        model.predict(exchanged)
    assert np.array_equal(model.predict(exchanged[list(model.feature_names_in_)]), model.predict(frame))
    with pytest.raises(ValueError, match="unseen at fit time"):
        model.predict(type(frame)(X, list("xyz")) if frame is POLARS else frame.set_axis(list("xyz"), axis=1))
    if hasattr(model, "certificate_"):
        assert verify(model, frame, Y).gap <= model.certificate_.gap + ROUNDING
    model.fit(X[:, :2].copy(), Y)  # names are those of the last fit
    assert not hasattr(model, "feature_names_in_")
    assert model.n_features_in_ == 2


@pytest.mark.parametrize("model", MODELS)
def test_arrow_tables_are_read_as_frames_are(model):
    table = pa.Table.from_pandas(PANDAS)
    expected = clone(model).fit(PANDAS, Y).decision_function(PANDAS)
    found = clone(model).fit(table, Y)
    assert found.feature_names_in_.tolist() == ["a", "b", "c"]
    assert np.allclose(found.decision_function(table), expected, rtol=0.0, atol=ROUNDING)
    for bad, message in (
        (
            table.set_column(1, "b", pa.array(["u"] * 60)),
            "column 'b' of X holds 'u', not numbers",
        ),
        (table.set_column(1, "b", pa.array([None] * 59 + [1.0])), "column 'b' is missing"),
        (
            table.set_column(1, "b", pa.array([date(2020, 2, 2)] * 60)),
            "column 'b' of X holds datetime64.*, not",
        ),
        (
            pa.RecordBatchReader.from_batches(table.schema, table.to_batches()),
            r"X.read_all\(\) makes a table",
        ),
    ):
        with pytest.raises(ValueError, match=message):
            clone(model).fit(bad, Y)


@pytest.mark.parametrize("frame", [PANDAS, POLARS], ids=["pandas", "polars"])
def test_frames_without_labels_are_refused_in_a_sentence(frame):
    with pytest.raises(ValueError, match="requires y to be passed, but the target y is None"):
        MaxMarginClassifier().fit(frame)


def test_the_last_column_of_arrow_data_is_taken_for_the_labels_with_a_warning():
    table = pa.Table.from_pandas(PANDAS).append_column("kind", pa.array(STRING_LABELS))
    with pytest.warns(UserWarning, match="the last column, 'kind', is taken for the labels"):
        assert MaxMarginClassifier().fit(table).feature_names_in_.tolist() == list("abc")


FEATURES = {
    "pandas Int64": PANDAS.assign(b=pd.Series(range(60), dtype="Int64")),
    "pandas, Arrow": PANDAS.astype("double[pyarrow]"),
    "polars, whole numbers": POLARS.with_columns(b=pl.int_range(60)),
    "float32": X.astype(np.float32),
}


@pytest.mark.parametrize("kind", FEATURES)
def test_numbers_of_every_type_are_accepted(kind):
    rows = FEATURES[kind]
    table = rows.to_numpy() if hasattr(rows, "to_numpy") else rows
    plain = np.array([[float(value) for value in row] for row in table])
    model, expected = MaxMarginClassifier().fit(rows, Y), MaxMarginClassifier().fit(plain, Y)
    assert model.coef_ == pytest.approx(expected.coef_, rel=0.0, abs=ROUNDING)
    assert verify(model, rows, Y).gap < 1e-3


FILL, ENCODE = "SimpleImputer", "OneHotEncoder"
REFUSED = {
    "pandas NaN": (PANDAS.assign(b=[np.nan, np.nan] + [1.0] * 58), "'b' is missing", FILL),
    "pandas text": (PANDAS.assign(b="Oslo"), "'b'.* 'Oslo'", ENCODE),
    "a masked array": (np.ma.array(X, mask=X > 1.0), "masked entries", "fill them in"),
    "Arrow dates": (
        PANDAS.assign(b="2020-02-02").astype({"b": "timestamp[s][pyarrow]"}),
        "'b'.* datetime64",
        ENCODE,
    ),
    "polars null": (POLARS.with_columns(b=pl.lit(None, dtype=pl.Float64)), "'b' is missing", FILL),
    "polars dates": (POLARS.with_columns(b=pl.date(2020, 2, 2)), "'b'.* datetime64", ENCODE),
    "a query": (POLARS.lazy(), "query", "collect()"),
    "array of text": (np.array([["1", "2", "x"]] * 60), "column 2.* 'x'", ENCODE),
    "CSR with NaN": (sp.csr_matrix(np.where(np.arange(3) == 1, np.nan, X)), "column 1 is missing", FILL),
}


@pytest.mark.parametrize("kind", REFUSED)
def test_other_columns_are_refused_with_their_name_and_the_remedy(kind):
    """In fit, prediction and verification."""
    data, place, remedy = REFUSED[kind]
    for model in MODELS:
        model.fit(PANDAS if isinstance(data, pd.DataFrame | pl.DataFrame) else X, Y)
        calls = [model.predict, lambda rows, model=model: model.fit(rows, Y)]
        if hasattr(model, "certificate_") and "NaN" in kind:
            calls.append(lambda rows, model=model: verify(model, rows, Y))
        for call in calls:
            with pytest.raises((ValueError, CertificateError), match=place) as caught:
                call(data)
            assert remedy in str(caught.value) or isinstance(caught.value, CertificateError)
            assert "\n" not in str(caught.value)


LABELS = {
    "fractions": (2.0 * Y - 1.0, [-1.0, 1.0]),
    "categories": (pd.Series(STRING_LABELS).astype("category"), ["down", "up"]),
    "Int64": (pd.Series(Y, dtype="Int64"), [0, 1]),
    "boolean": (pd.Series(Y == 1, dtype="boolean"), [False, True]),
    "Arrow numbers": (pd.Series(Y, dtype="int64[pyarrow]"), [0, 1]),
    "polars categories": (pl.Series(STRING_LABELS.tolist(), dtype=pl.Categorical), ["down", "up"]),
}


@pytest.mark.parametrize("kind", LABELS)
def test_labels_keep_their_type(kind):
    y, names = LABELS[kind]
    for model in MODELS:
        classes = model.fit(PANDAS, y).classes_.tolist()
        assert [(type(name), name) for name in classes] == [(type(name), name) for name in names]
    model = MaxMarginClassifier().fit(X, y)
    assert model.coef_.tolist() == MaxMarginClassifier().fit(X, Y).coef_.tolist()
    assert verify(model, PANDAS, y).gap < 1e-3
