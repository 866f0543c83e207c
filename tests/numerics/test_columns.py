"""Integers beyond 2^53, complex numbers, dates and text are refused with their column and a remedy."""

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
import scipy.sparse as sp

import maxmargin as mm

B = 2**53
PAIR = np.array([[B], [B + 1]])
FRAME = {"a": [B, B + 1], "b": [0.5, 0.5]}
ROUNDED = {
    "int64": PAIR,
    "negative": -PAIR,
    "uint64": PAIR.astype(np.uint64),
    "CSR": sp.csr_matrix(PAIR),
    "pandas": pd.DataFrame(FRAME),
    "pandas, nullable": pd.DataFrame({"a": pd.array([B, B + 1], dtype="Int64")}),
    "polars": pl.DataFrame(FRAME),
    "arrow": pa.table(FRAME),
}
FITS = [
    mm.separate,
    mm.MaxMarginClassifier().fit,
    mm.KernelMaxMarginClassifier().fit,
    mm.OnlineMarginClassifier().fit,
    lambda X, y: mm.separate(X, y, kernel="poly"),
    mm.MaxMarginClassifier(np.inf).fit,
    mm.KernelMaxMarginClassifier(np.inf, kernel="linear").fit,
    mm.MaxMarginClassifierCV(Cs=[1.0, np.inf], cv=2).fit,
    mm.MarginRFE(mm.MaxMarginClassifier(np.inf)).fit,
    lambda X, y: mm.compare(X, y, C=np.inf),
]


@pytest.mark.parametrize("name", ROUNDED)
def test_integers_that_float64_may_round_are_refused(name):
    for method in FITS:
        with pytest.raises(
            ValueError, match=r"column .* of X holds -?900719925474099\d in row 1 .*subtract a constant"
        ):
            method(ROUNDED[name], [0, 1])


def test_verdicts_are_not_verified_on_rounded_rows():
    verdict = mm.separate(PAIR - B, [0, 1])
    assert verdict.verify(PAIR - B, [0, 1]) is verdict
    assert 0.49 < verdict.lo <= 0.5 <= verdict.hi
    for verdict in (mm.separate(PAIR.astype(float), [0, 1]), mm.separate([[0.0], [float(B)]], [0, 1])):
        with pytest.raises(mm.CertificateError, match="9007199254740993 in row 1"):
            verdict.verify(PAIR, [0, 1])


def test_complex_rows_are_refused():
    for X in ([[1 + 1j], [1]], sp.csr_matrix(np.array([[1j], [1]]))):
        for fit in FITS:
            with pytest.raises(ValueError, match=r"[Cc]omplex"):
                fit(X, [0, 1])


def test_other_numbers_are_accepted():
    for X in (
        np.array([[B], [-B]]),
        np.array([[0], [1]], bool),
        np.array([[1], [2]], np.longdouble),
        sp.csr_matrix(np.array([[B], [1]])),
        pd.DataFrame({"a": [B, 7]}),
        pl.DataFrame({"a": [0.1, 7]}),
    ):
        assert mm.separate(X, [0, 1]).verify(X, [0, 1]).separable
