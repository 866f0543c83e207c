"""Frames of pandas and polars: names are stored, and entries that are no numbers are refused with their column."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp

from maxmargin import (
    CertificateError,
    KernelMaxMarginClassifier,
    MarginRFE,
    MaxMarginClassifier,
    OnlineMarginClassifier,
    separate,
    verify,
)

pd, pl = pytest.importorskip("pandas"), pytest.importorskip("polars")

RNG = np.random.default_rng(0)
X = RNG.normal(size=(60, 3))
Y = (X[:, 0] + 0.1 * X[:, 1] > 0.0).astype(int)
STRING_LABELS = np.where(Y, "up", "down")
PANDAS, POLARS = pd.DataFrame(X, columns=list("abc")), pl.DataFrame(X, schema=list("abc"))
FRAMES = {"pandas": PANDAS, "polars": POLARS}


def test_verify_and_predict_name_the_column_with_missing_entries():
    holes = X.copy()
    holes[:7, 1] = np.nan
    for model in (MaxMarginClassifier().fit(X, Y), KernelMaxMarginClassifier().fit(X, Y)):
        for data, name in (
            (holes, "column 1"),
            (sp.csr_matrix(holes), "column 1"),
            (pd.DataFrame(holes, columns=list("abc")), "column 'b'"),
            (pl.DataFrame(holes, schema=list("abc")), "column 'b'"),
        ):
            message = f"Input X contains NaN: {name} is missing in 7 of 60 rows"
            with pytest.raises(CertificateError, match=message):
                verify(model, data, Y)
        with pytest.raises(ValueError, match="column 1 is missing in 7 of 60 rows"):
            model.predict(holes)


@pytest.mark.parametrize("frame", FRAMES.values(), ids=FRAMES)
class TestNames:
    @pytest.mark.parametrize(
        "model", [MaxMarginClassifier(), KernelMaxMarginClassifier(), OnlineMarginClassifier(random_state=0)]
    )
    def test_feature_names_are_stored_and_checked(self, frame, model):
        model.fit(frame, Y)
        assert model.feature_names_in_.tolist() == ["a", "b", "c"]
        expected = type(model)(**model.get_params()).fit(X, Y)
        assert np.allclose(
            model.decision_function(frame), expected.decision_function(X), rtol=1e-12, atol=1e-13
        )
        assert np.array_equal(model.predict(frame), expected.predict(X))
        with pytest.raises(ValueError, match=r"X\[list\(model.feature_names_in_\)\]"):
            model.predict(frame[["c", "b", "a"]])
        reordered = frame[["c", "b", "a"]][list(model.feature_names_in_)]
        assert np.array_equal(model.predict(reordered), model.predict(frame))
        with pytest.raises(ValueError, match="unseen at fit time"):
            model.predict(
                frame.rename(
                    {"a": "z"} if frame is POLARS else str.upper, **{} if frame is POLARS else {"axis": 1}
                )
            )
        if hasattr(model, "certificate_"):
            assert verify(model, frame, Y).gap <= model.certificate_.gap + 1e-12

    def test_selected_features_keep_their_names(self, frame):
        chosen = MarginRFE(n_features_to_select=1).fit(frame, Y)
        assert chosen.get_feature_names_out().tolist() == ["a"]

    def test_verdicts_accept_frames(self, frame):
        verdict = separate(frame, Y)
        assert verdict.separable
        verdict.verify(frame, Y)


FEATURES = {
    "pandas Int64": PANDAS.assign(b=pd.Series(range(60), dtype="Int64")),
    "pandas boolean": PANDAS.assign(b=pd.Series([True, False] * 30, dtype="boolean")),
    "pandas Float64": PANDAS.astype("Float64"),
    "pandas, Arrow": PANDAS.astype("double[pyarrow]"),
    "pandas, all Int64": pd.DataFrame({"a": pd.Series(range(60)), "b": [1, 2] * 30}).astype("Int64"),
    "pandas, categories of numbers": PANDAS.assign(b=pd.Series([1, 2] * 30).astype("category")),
    "polars, whole numbers": POLARS.with_columns(b=pl.int_range(60)),
    "polars, booleans": POLARS.with_columns(b=pl.col("a") > 0),
}


@pytest.mark.parametrize("kind", FEATURES)
def test_numeric_columns_of_every_type_are_accepted(kind):
    frame = FEATURES[kind]
    plain = np.array([[float(value) for value in row] for row in frame.to_numpy()])
    model = MaxMarginClassifier().fit(frame, Y)
    assert np.array_equal(model.coef_, MaxMarginClassifier().fit(plain, Y).coef_)
    assert verify(model, frame, Y).gap < 1e-3


FILL = "SimpleImputer in a pipeline"
ENCODE = "OneHotEncoder or OrdinalEncoder in a pipeline"
REFUSED = {
    "pandas NaN": (
        PANDAS.assign(b=[np.nan, np.nan] + [1.0] * 58),
        "column 'b' is missing in 2 of 60 rows",
        FILL,
    ),
    "pandas Int64": (
        PANDAS.assign(b=pd.Series([None, *range(59)], dtype="Int64")),
        "column 'b' is missing in 1",
        FILL,
    ),
    "pandas NA": (
        PANDAS.assign(b=pd.Series([pd.NA, 1] * 30, dtype=object)),
        "'b' is missing in 30 of 60",
        FILL,
    ),
    "pandas text": (PANDAS.assign(b="Oslo"), "column 'b' of X holds str, 'Oslo' for instance", ENCODE),
    "pandas objects": (
        PANDAS.assign(b=pd.Series(["x", None] * 30, dtype=object)),
        "'b' of X holds object, 'x'",
        ENCODE,
    ),
    "pandas categories": (
        PANDAS.assign(b=pd.Categorical(["u", "v"] * 30)),
        "holds category, 'u' for",
        ENCODE,
    ),
    "pandas dates": (PANDAS.assign(b=pd.Timestamp("2020-02-02")), "'b' of X holds datetime64", ENCODE),
    "pandas durations": (PANDAS.assign(b=pd.Timedelta("1D")), "'b' of X holds timedelta64", ENCODE),
    "polars null": (
        POLARS.with_columns(b=pl.lit(None, dtype=pl.Float64)),
        "'b' is missing in 60 of 60",
        FILL,
    ),
    "polars whole": (POLARS.with_columns(b=pl.Series([None, *range(59)])), "'b' is missing in 1 of 60", FILL),
    "polars text": (
        POLARS.with_columns(b=pl.lit("Oslo")),
        "'b' of X holds String, 'Oslo' for instance",
        ENCODE,
    ),
    "polars categories": (
        POLARS.with_columns(b=pl.lit("u").cast(pl.Categorical)),
        "holds Categorical, 'u'",
        ENCODE,
    ),
    "polars dates": (POLARS.with_columns(b=pl.date(2020, 2, 2)), "'b' of X holds Date, not numbers", ENCODE),
    "a query": (POLARS.lazy(), "a query that has not been run", r"collect\(\)"),
    "array of text": (np.array([["1", "2", "x"]] * 60), "column 2 of X holds text, 'x' for instance", ENCODE),
    "array with NaN": (np.where(np.arange(3) == 1, np.nan, X), "column 1 is missing in 60 of 60 rows", FILL),
}


@pytest.mark.parametrize("kind", REFUSED)
@pytest.mark.parametrize("model", [MaxMarginClassifier, KernelMaxMarginClassifier, OnlineMarginClassifier])
def test_nonnumeric_columns_are_refused_with_the_remedy(kind, model):
    frame, place, remedy = REFUSED[kind]
    with pytest.raises(ValueError, match=place) as caught:
        model().fit(frame, Y)
    assert remedy.replace("\\", "") in str(caught.value)
    assert "\n" not in str(caught.value)
    fitted = model().fit(PANDAS, Y)
    if not kind.startswith("array"):
        with pytest.raises(ValueError, match=place):
            fitted.predict(frame)


def test_infinite_entries_are_reported_as_infinity():
    with pytest.raises(ValueError, match="infinity"):
        MaxMarginClassifier().fit(PANDAS.assign(b=np.inf), Y)


LABELS = {
    "text": (pd.Series(STRING_LABELS), ["down", "up"]),
    "categories": (pd.Series(STRING_LABELS).astype("category"), ["down", "up"]),
    "Int64": (pd.Series(Y, dtype="Int64"), [0, 1]),
    "boolean": (pd.Series(Y == 1, dtype="boolean"), [False, True]),
    "Arrow numbers": (pd.Series(Y, dtype="int64[pyarrow]"), [0, 1]),
    "Arrow text": (pd.Series(STRING_LABELS, dtype="string[pyarrow]"), ["down", "up"]),
    "polars text": (pl.Series(STRING_LABELS.tolist()), ["down", "up"]),
    "polars categories": (pl.Series(STRING_LABELS.tolist(), dtype=pl.Categorical), ["down", "up"]),
    "polars numbers": (pl.Series(Y), [0, 1]),
    "polars booleans": (pl.Series(Y == 1), [False, True]),
}


@pytest.mark.parametrize("kind", LABELS)
def test_labels_keep_their_type(kind):
    y, names = LABELS[kind]
    for model in (MaxMarginClassifier(), KernelMaxMarginClassifier(), OnlineMarginClassifier(random_state=0)):
        classes = model.fit(PANDAS, y).classes_.tolist()
        assert classes == names
        assert [type(name) for name in classes] == [type(name) for name in names]
    model = MaxMarginClassifier().fit(PANDAS, y)
    assert verify(model, PANDAS, y).gap < 1e-3


@pytest.mark.parametrize(
    "y",
    [
        pd.Series([None, *Y[1:].tolist()], dtype="Int64"),
        pd.Series([None, *STRING_LABELS[1:]], dtype=object),
        pl.Series([None, *Y[1:].tolist()]),
        np.where(np.arange(60) == 0, np.nan, Y),
    ],
)
def test_missing_labels_are_counted(y):
    for model in (MaxMarginClassifier(), KernelMaxMarginClassifier(), OnlineMarginClassifier()):
        with pytest.raises(ValueError, match="1 of 60 rows have no label; leave these rows out"):
            model.fit(PANDAS, y)
