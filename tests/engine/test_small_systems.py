"""Linear systems of Newton's steps and of the polish, against NumPy."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from effort import examples, thorough
from hypothesis import given, settings
from hypothesis import strategies as st

from maxmargin import Problem
from maxmargin.solvers import rows as rows_module
from maxmargin.solvers.linear_systems import PivotedQR, factor
from maxmargin.solvers.rows import CentredRows
from maxmargin.solvers.wide_rows import WideRows


def definite(size: int, digits: float) -> np.ndarray:
    """A positive definite matrix with rows and columns scaled by this many decades, and well conditioned otherwise."""
    rng = np.random.default_rng(0)
    A = rng.normal(size=(3 * size, size)) * 10.0 ** rng.uniform(-digits, digits, size=size)
    return A.T @ A


class TestCholesky:
    @pytest.mark.parametrize("size", [1, 2, 3, 7, 100])
    def test_systems_are_solved_for_rows_of_any_scale(self, size):
        for digits in (0.0, 60.0):
            matrix = definite(size, digits)
            root, before = np.sqrt(np.diag(matrix)), matrix.copy()
            x = np.random.default_rng(1).normal(size=size) / root
            # the scaled matrix has a condition of about 1e3: n eps times that
            assert factor(matrix)(matrix @ x) * root == pytest.approx(x * root, abs=1e-11)
            assert (matrix == before).all()

    def test_matrices_indefinite_by_rounding_get_a_ridge(self):
        """Two equal columns; the solution solves the unmodified system up to the ridge, 1e-10 at most."""
        matrix = definite(6, 0.0)
        matrix[-1], matrix[:, -1] = matrix[0], matrix[:, 0]
        matrix[-1, -1] = matrix[0, 0] * (1.0 - 4e-16)
        right = matrix @ np.ones(6)
        assert matrix @ factor(matrix)(right) == pytest.approx(right, rel=1e-9)

    def test_invalid_matrices_have_no_factor(self):
        for invalid in (-1.0, 0.0, np.nan, np.inf):
            matrix = definite(4, 0.0)
            matrix[2, 2] = invalid
            assert factor(matrix) is None
        for beside in (np.nan, 2.0):
            matrix = definite(4, 0.0)
            matrix[1, 3] = matrix[3, 1] = beside * np.sqrt(matrix[1, 1] * matrix[3, 3])
            assert factor(matrix) is None


@pytest.mark.parametrize("storage", [np.asarray, sp.csr_array, np.float32])
def test_products_equal_the_sums_over_rows(storage, monkeypatch):
    """For any subset of rows, in one chunk or several, with and without a copy of the rows."""
    rng = np.random.default_rng(2)
    X, costs, places = rng.normal(size=(30, 5)) + 3.0, rng.random(30), np.sort(rng.permutation(30)[:17])
    X = X.astype(np.float32).astype(float)
    for chunk, most in ((100, 0), (2**20, 0), (2**20, 2**20)):
        monkeypatch.setattr(rows_module, "CHUNK_BYTES", chunk)
        monkeypatch.setattr(rows_module, "MAX_COPY", most)
        rows = CentredRows(Problem("hinge", 1.0), storage(X))
        b = np.column_stack([X - X.mean(axis=0), np.ones(30)]) / rows.units
        z, chosen = rng.normal(size=6), b[places]
        assert rows.products(costs, places) == pytest.approx(
            (chosen * costs[places, None]).T @ chosen, rel=1e-12, abs=1e-12
        )  # 30 terms, centred
        assert rows.column_squares(costs) == pytest.approx(costs @ (b * b), rel=1e-12)
        assert rows.scores(z) == pytest.approx(b @ z, abs=1e-12)
        assert rows.combine(costs) == pytest.approx(costs @ b, abs=1e-12)


@thorough
@settings(max_examples=examples(20, 1000))
@given(st.integers(1, 9), st.integers(1, 9), st.integers(0, 9), st.integers(0, 10**6))
def test_pivoted_qr_has_the_rank_and_solves(rows, columns, rank, seed):
    rng = np.random.default_rng(seed)
    B = rng.normal(size=(rows, rank)) @ rng.normal(size=(rank, columns))
    factors = PivotedQR(B)
    assert factors.rank == min(rows, columns, rank)
    assert pytest.approx(np.eye(factors.rank), abs=1e-13) == factors.Q.T @ factors.Q
    z = rng.normal(size=factors.rank)
    # errors grow with the condition of R, at most 1e5 here, and with its square
    assert B @ factors.solve(z) == pytest.approx(factors.Q @ z, rel=0.0, abs=1e-9)
    assert factors.solve_transposed(B.T @ (factors.Q @ z)) == pytest.approx(z, rel=0.0, abs=1e-8)


@pytest.mark.parametrize("width", [40, 200])
@pytest.mark.parametrize("rho", [0.0, 3.0])
@pytest.mark.parametrize("storage", [np.asarray, sp.csr_array])
@pytest.mark.parametrize("alike", [False, True])
def test_coordinates_of_wide_rows_have_the_same_products(width, rho, storage, alike):
    """Also for dependent rows, and rows far from 0."""
    X = np.random.default_rng(4).normal(size=(20, width))
    X[-1] = X[0] if alike else X[-1] + 1.0
    problem = Problem("hinge", 1.0, intercept="augmented" if rho else "free", intercept_scaling=rho or 1.0)
    wide = WideRows(problem, storage(X))
    shifted = X - wide.mean
    assert wide.coordinates @ wide.coordinates.T == pytest.approx(shifted @ shifted.T + rho**2, abs=1e-11)
    u = np.random.default_rng(5).normal(size=wide.coordinates.shape[1])
    w, b = wide.primal(u, 0.5)
    assert X @ w + b == pytest.approx(wide.coordinates @ u + 0.5, abs=1e-6 if alike else 1e-9)
    again, intercept = wide.reduced(w, b)
    assert wide.coordinates @ again + intercept == pytest.approx(X @ w + b, abs=1e-6 if alike else 1e-9)


@pytest.mark.parametrize("intercept", ["free", "augmented", "none"])
@pytest.mark.parametrize("layout", [np.asarray, np.asfortranarray, np.float32, lambda X: X[::2, 1:]])
def test_small_dense_rows_are_centred_and_scaled(layout, intercept):
    """With the constant column, in the units of the rows, for any memory layout."""
    X = layout(np.random.default_rng(3).normal(size=(40, 6)) * 10.0 ** np.arange(6) + 50.0)
    blocks = CentredRows(Problem("hinge", 1.0, intercept=intercept, intercept_scaling=3.0), X)
    constant = np.full((len(X), blocks.size - X.shape[1]), blocks.constant)
    rows = np.hstack([X.astype(float) - blocks.mean, constant]) / blocks.units
    assert blocks.scores(np.eye(blocks.size)) == pytest.approx(
        rows, rel=1e-14, abs=1e-14
    )  # centred by one subtraction
