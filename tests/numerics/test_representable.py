"""Numbers that float64 does not represent are refused where a proof depends on them; others are accepted."""

from __future__ import annotations

from decimal import Decimal
from fractions import Fraction

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
import scipy.sparse as sp

from maxmargin import (
    CertificateError,
    KernelMaxMarginClassifier,
    MarginRFE,
    MaxMarginClassifier,
    MaxMarginClassifierCV,
    compare,
    separate,
)

B = 2**53
PAIR = np.array([[B], [B + 1]])
WIDE = np.finfo(np.longdouble).nmant > 52
ROUNDED = {
    "int64": PAIR,
    "negative": -PAIR,
    "uint64": PAIR.astype(np.uint64),
    "lists": PAIR.tolist(),
    "beside a fraction": [[B, 0.5], [B + 1, 0.5]],
    "beyond int64": [[2**70], [2**70 + 1]],
    "objects": PAIR.astype(object),
    "text": PAIR.astype(str),
    "fractions": [[Fraction(1, 3)], [Fraction(1, 2)]],
    "decimals": np.array([[Decimal(1)], [Decimal("1.00000000000000000001")]]),
    "CSR": sp.csr_matrix(PAIR),
    "COO": sp.coo_array(PAIR),
    "CSR with duplicates": sp.csr_matrix((np.array([B, 1, B]), np.zeros(3, int), [0, 2, 3]), (2, 1)),
    "pandas": pd.DataFrame({"a": [B, B + 1], "b": [0.5, 0.5]}),
    "pandas, nullable": pd.DataFrame({"a": pd.array([B, B + 1], dtype="Int64"), "b": [0.5, 0.5]}),
    "polars": pl.DataFrame({"a": [B, B + 1], "b": [0.5, 0.5]}),
    "arrow": pa.table({"a": [B, B + 1], "b": [0.5, 0.5]}),
}
if WIDE:
    ROUNDED["long double"] = PAIR.astype(np.longdouble)
HARD_MARGIN_METHODS = [
    separate,
    lambda X, y: separate(X, y, kernel="poly"),
    lambda X, y: MaxMarginClassifier(np.inf).fit(X, y),
    lambda X, y: KernelMaxMarginClassifier(np.inf, kernel="linear").fit(X, y),
]
COMPLEX = [[[1 + 1j], [1]], np.array([[1j], [1]], object), sp.csr_matrix(np.array([[1j], [1]]))]


@pytest.mark.parametrize("name", ROUNDED)
def test_unrepresentable_numbers_are_refused(name):
    for method in HARD_MARGIN_METHODS:
        with pytest.raises(ValueError, match=r"which no float64 is.*[Ss]ubtract a constant"):
            method(ROUNDED[name], [0, 1])


def test_shifted_rows_are_separable():
    verdict = separate(PAIR - B, [0, 1])
    assert verdict.separable
    assert verdict.verify(PAIR - B, [0, 1]) is verdict
    assert 0.49 < verdict.lo <= 0.5 <= verdict.hi


def test_verdicts_are_not_verified_on_rounded_rows():
    equal_rows = separate(PAIR.astype(float), [0, 1])
    assert equal_rows.separable is False
    distant_rows = separate([[0.0], [float(B)]], [0, 1])
    for verdict in (equal_rows, distant_rows):
        with pytest.raises(CertificateError, match=r"9007199254740993, which no float64 is"):
            verdict.verify(PAIR, [0, 1])
        with pytest.raises(CertificateError, match="complex"):
            verdict.verify([[1j], [0]], [0, 1])


@pytest.mark.parametrize("index", range(3))
def test_complex_rows_are_refused(index):
    for method in HARD_MARGIN_METHODS:
        with pytest.raises(ValueError, match="complex numbers"):
            method(COMPLEX[index], [0, 1])
    for model in (MaxMarginClassifier(), KernelMaxMarginClassifier()):
        with pytest.raises(ValueError, match=r"[Cc]omplex"):
            model.fit(COMPLEX[index], [0, 1])


@pytest.mark.parametrize(
    "X",
    [
        np.array([[B], [B + 2]]),
        np.array([[2**62], [-(2**63)]]),
        [[1e300], [1.5]],
        np.array([["0.1"], ["2"]]),
        np.array([[Fraction(1, 2)], [3]]),
        np.array([[0], [1]], bool),
        np.array([[1], [2]], np.float16),
        np.array([[1], [2]], np.longdouble),
        sp.csr_matrix(np.array([[B], [1]])),
        pd.DataFrame({"a": [B, 7]}),
        pl.DataFrame({"a": [0.1, 7]}),
    ],
)
def test_representable_numbers_are_accepted(X):
    assert separate(X, [0, 1]).verify(X, [0, 1]).separable


def test_soft_margins_accept_rounded_numbers():
    model = MaxMarginClassifier(1.0).fit(PAIR, [0, 1])
    assert model.certificate_.gap <= 1e-3


def test_selection_among_hard_margins_refuses_unrepresentable_numbers():
    X, y = np.tile(PAIR, (4, 2)), np.tile([0, 1], 4)
    for model in (MaxMarginClassifierCV(Cs=[1.0, np.inf], cv=2), MarginRFE(MaxMarginClassifier(np.inf))):
        with pytest.raises(ValueError, match="which no float64 is"):
            model.fit(X, y)
        assert not hasattr(model, "classes_")
    with pytest.raises(ValueError, match="which no float64 is"):
        compare(X, y, C=np.inf)
