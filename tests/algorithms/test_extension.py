"""The 2-norm soft margin is a hard margin in the extended space, for every convention of its constant."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from effort import examples, thorough
from hypothesis import given, settings
from hypothesis import strategies as st
from oracle import optimum
from problems import conditioned

from maxmargin import Problem
from maxmargin.algorithms.batch.interior_point import interior_points
from maxmargin.certificates.extension import Extension, extended_margin
from maxmargin.certificates.rows import certify
from maxmargin.certificates.sample import Sample

HARD = Problem("hinge", np.inf, intercept="none")


@given(st.floats(1e-6, 1e6))
def test_three_conventions_of_the_constant_agree(C):
    extension, near = Extension.of_C(C), {"rel": 1e-15, "abs": 0.0}  # four roundings
    assert pytest.approx(C, **near) == extension.C
    assert extension.pumma_C == pytest.approx(2.0 * C, **near)
    assert Extension.of_pumma(2.0 * C) == extension
    assert pytest.approx(C, **near) == Extension(extension.Delta).C


@pytest.mark.parametrize("invalid", [0.0, -1.0, np.inf, np.nan])
def test_invalid_constants_are_refused(invalid):
    for make in (Extension, Extension.of_C):
        with pytest.raises(ValueError, match=r"must be (a )?positive(,| and) finite"):
            make(invalid)


def data(seed):
    """Rows of two overlapping classes with their labels."""
    return conditioned("plain", 24, 3, seed)[:2]


def claim(X, y, weights=1.0, **options):
    """Certificate of arbitrary dual weights."""
    problem = Problem(**{"loss": "squared_hinge", "C": 0.5, "intercept": "none", **options})
    alpha = np.random.default_rng(0).random(len(y))
    return certify(problem, Sample(X, y, weights * np.ones(len(y))), X.T @ (alpha * y), 0.0, alpha)


@thorough
@settings(max_examples=examples(10, 150))
@given(st.integers(0, 2**20), st.sampled_from((0.05, 0.5, 1.0, 4.0)), st.sampled_from((0.0, 1.0, 3.0)))
def test_theorem_2_holds_and_is_tight_at_the_optimum(seed, Delta, rho):
    """(21): Gamma_opt^-2 <= J(u, gamma) <= Gamma^-2, d'_k >= d_k, and both meet at the optimum."""
    X, y = data(seed)
    kind = {"intercept": "augmented", "intercept_scaling": rho} if rho else {"intercept": "none"}
    problem, ones = Problem("squared_hinge", Extension(Delta).C, **kind), np.ones(24)
    points = [point[:3] for point in interior_points(problem, X, y, ones)]
    # the extended patterns as explicit columns: their largest margin by the oracle
    Y = np.column_stack([X, np.full(len(y), rho), Delta * np.diag(y)])
    truth = optimum(HARD, Y, y, ones)
    best, ulp = float(truth.upper), 1.0 + 1e-12  # 24 eps, and the width of the interval
    for point in points:
        found = extended_margin(certify(problem, Sample(X, y, ones), *point), X, y)
        if found.Gamma <= 0.0:
            continue
        assert found.Gamma <= best * ulp
        assert best**-2 <= found.J * ulp
        assert found.Gamma**-2 * ulp >= found.J
        assert found.D_prime * ulp >= found.D
        assert found.Gamma_bounds[0] <= best * ulp
        assert found.Gamma_bounds[1] * ulp >= float(truth.lower)
        assert found.deviation >= 1.0 - found.Gamma / float(truth.lower) - 1e-12
    exact = extended_margin(certify(problem, Sample(X, y, ones), *points[-1]), sp.csr_matrix(X), y)
    assert exact.Gamma == pytest.approx(best, rel=1e-4)  # slacks of the last point: the root of its gap
    assert pytest.approx(best**-2, rel=1e-7) == exact.J  # the gap of interior points
    assert abs(exact.excess) < 1e-4


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"C": np.inf}, "only the 2-norm soft margin without a free intercept"),
        ({"loss": "hinge"}, "only the 2-norm soft margin without a free intercept"),
        ({"intercept": "free"}, "only the 2-norm soft margin without a free intercept"),
        ({"weights": 2.0}, r"each with weight 1 .*: give X and y of the fit; with sample or"),
        ({"weights": np.arange(24) > 0}, r"each with weight 1 .*: give X and y of the fit; with sample or"),
    ],
)
def test_other_problems_and_weights_are_refused(options, message):
    X, y = data(0)
    with pytest.raises(ValueError, match=message):
        extended_margin(claim(X, y, **options), X, y)


def test_other_rows_labels_and_values_are_refused():
    X, y = data(1)
    for rows, labels, message in (
        (X[:-1], y[:-1], r"\(24 rows then, 23 now\)"),
        (X[:-1], y, "X has 23 rows and y 24 labels"),
        (X, (y > 0).astype(int), r"labels must be -1.0 and 1.0: give numpy.where"),
        (X, y[:, None], "labels must be -1.0 and 1.0"),
        (X, -y, "these are not the data of the certificate"),
        (X + 1e-3, y, "sizes agree, values, labels, weights or row order do not"),
    ):
        with pytest.raises(ValueError, match=message):
            extended_margin(claim(X, y), rows, labels)
    assert extended_margin(claim(X, y), X, y.astype(int)) == extended_margin(claim(X, y), X, y)
