"""The 2-norm soft margin is a hard margin in the extended space, for every convention of its constant."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from effort import examples, thorough
from hypothesis import given, settings
from hypothesis import strategies as st
from oracle import optimum

from maxmargin import CRAMMA, MaxMarginClassifier, Problem
from maxmargin.certificates.extension import Extension, extended_margin

HARD = Problem("hinge", np.inf, intercept="none")
KIND = {"algorithm": "perceptron", "fit_intercept": False, "random_state": 0}


@given(st.floats(1e-6, 1e6))
def test_three_conventions_of_the_constant_agree(C):
    extension = Extension.of_C(C)
    assert pytest.approx(C, rel=1e-14) == extension.C
    assert extension.pumma_C == pytest.approx(2.0 * C, rel=1e-14)
    assert Extension.of_pumma(2.0 * C) == extension
    assert pytest.approx(C, rel=1e-14) == Extension(extension.Delta).C


@pytest.mark.parametrize("invalid", [0.0, -1.0, np.inf, np.nan])
def test_invalid_constants_are_refused(invalid):
    for make in (Extension, Extension.of_C):
        with pytest.raises(ValueError, match=r"must be (a )?positive(,| and) finite"):
            make(invalid)


def data(seed, n=24, d=3):
    rng = np.random.default_rng(seed)
    y = np.where(rng.random(n) < 0.5, 1.0, -1.0)
    y[:2] = 1.0, -1.0
    return rng.normal(size=(n, d)) + 0.7 * y[:, None], y


@thorough
@settings(max_examples=examples(10, 40))
@given(st.integers(0, 2**20), st.sampled_from((0.05, 0.5, 1.0, 4.0)), st.sampled_from((0.0, 1.0, 3.0)))
def test_theorem_2_holds_and_is_tight_at_the_optimum(seed, Delta, rho):
    """(21): Gamma_opt^-2 <= J(u, gamma) <= Gamma^-2, d'_k >= d_k, and both meet at the optimum."""
    X, y = data(seed)
    kind = {"intercept": "augmented", "intercept_scaling": rho} if rho else {"fit_intercept": False}
    C = Extension(Delta).C
    rough = MaxMarginClassifier(C, algorithm=CRAMMA(), random_state=0, **kind).fit(X, y)
    found = extended_margin(rough.certificate_, X, y)
    # the extended patterns as explicit columns: their largest margin by the oracle
    Y = np.column_stack([X, np.full(len(y), rho), Delta * np.diag(y)])
    truth = optimum(HARD, Y, y, np.ones(len(y)))
    best, ulp = float(truth.upper), 1.0 + 1e-12
    assert 0.0 < found.Gamma <= best * ulp
    assert best**-2 <= found.J * ulp
    assert found.Gamma**-2 * ulp >= found.J
    assert found.D_prime * ulp >= found.D
    assert found.Gamma_bounds[0] <= best * ulp
    assert found.Gamma_bounds[1] * ulp >= float(truth.lower)
    assert found.deviation >= 1.0 - found.Gamma / float(truth.lower) - 1e-12
    exact = MaxMarginClassifier(C, tol=1e-10, random_state=0, **kind).fit(X, y).certificate_
    exact = extended_margin(exact, sp.csr_matrix(X), y)
    assert exact.Gamma == pytest.approx(best, rel=1e-6)
    assert pytest.approx(best**-2, rel=1e-6) == exact.J
    assert abs(exact.excess) < 1e-4


def test_other_problems_are_refused():
    X, y = data(0)
    for options in ({"C": np.inf, "fit_intercept": False}, {"loss": "hinge", "fit_intercept": False}, {}):
        with pytest.raises(ValueError, match="only the 2-norm soft margin without a free intercept"):
            extended_margin(MaxMarginClassifier(**options).fit(X, y).certificate_, X, y)


def test_weighted_fits_are_refused():
    X, y = data(1)
    for weights in (np.full(len(y), 2.0), np.append(0.0, np.ones(len(y) - 1))):
        model = MaxMarginClassifier(0.5, **KIND).fit(X, y, weights)
        with pytest.raises(
            ValueError, match=r"each with weight 1 .*: give X and y of the fit; with sample or"
        ):
            extended_margin(model.certificate_, X, y)
    balanced = MaxMarginClassifier(0.5, class_weight={-1: 3.0, 1: 1.0}, **KIND).fit(X, y)
    with pytest.raises(ValueError, match="with sample or class weights, Delta differs from row to row"):
        extended_margin(balanced.certificate_, X, y)
    ones = MaxMarginClassifier(0.5, **KIND).fit(X, y, np.ones(len(y)))
    assert extended_margin(ones.certificate_, X, y).Delta == pytest.approx(1.0)


def test_other_rows_labels_and_values_are_refused():
    X, y = data(1)
    certificate = MaxMarginClassifier(0.5, **KIND).fit(X, y).certificate_
    for rows, labels, message in (
        (X[:-1], y[:-1], r"\(24 rows then, 23 now\)"),
        (X[:-1], y, "X has 23 rows and y 24 labels"),
        (X, (y > 0).astype(int), r"labels must be -1.0 and 1.0: give numpy.where"),
        (X, y[:, None], "labels must be -1.0 and 1.0"),
        (X, -y, "these are not the data of the certificate"),
        (X + 1e-3, y, "sizes agree, values, labels, weights or row order do not"),
    ):
        with pytest.raises(ValueError, match=message):
            extended_margin(certificate, rows, labels)
    assert extended_margin(certificate, X, y.astype(int)) == extended_margin(certificate, X, y)
