"""Linear systems of the exact step and of Newton's steps: compiled loops and LAPACK against NumPy."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from effort import examples, thorough
from hypothesis import given, settings
from hypothesis import strategies as st

from maxmargin import Problem
from maxmargin.engine import small_cholesky
from maxmargin.solvers import rows as rows_module
from maxmargin.solvers.linear_systems import PivotedQR, factor
from maxmargin.solvers.rows import CentredRows, centred_rows


def definite(size: int, digits: float) -> np.ndarray:
    """A positive definite matrix with rows and columns scaled by this many decades, and well conditioned otherwise."""
    rng = np.random.default_rng(0)
    A = rng.normal(size=(3 * size, size)) * 10.0 ** rng.uniform(-digits, digits, size=size)
    return A.T @ A


def compiled_factor(matrix):
    """The compiled counterpart of `factor`: a function that solves, or None."""
    matrix, (scale, inverse) = matrix.copy(), np.empty((2, len(matrix)))
    if not small_cholesky.factor(matrix, scale, inverse):
        return None

    def solve(right):
        out = np.empty(right.size)
        small_cholesky.solve_factored(matrix, scale, inverse, right, out)
        return out

    return solve


@pytest.mark.parametrize("factorise", [factor, compiled_factor])
class TestCholesky:
    @pytest.mark.parametrize("size", [1, 2, 3, 7, 100])
    def test_systems_are_solved_for_rows_of_any_scale(self, size, factorise):
        for digits in (0.0, 60.0):
            matrix = definite(size, digits)
            root, before = np.sqrt(np.diag(matrix)), matrix.copy()
            x = np.random.default_rng(1).normal(size=size) / root
            # the scaled matrix has a condition of about 1e3: n eps times that
            assert factorise(matrix)(matrix @ x) * root == pytest.approx(x * root, abs=1e-11)
            assert (matrix == before).all()

    def test_matrices_indefinite_by_rounding_get_a_ridge(self, factorise):
        """Two equal columns; the solution solves the unmodified system up to the ridge, 1e-10 at most."""
        matrix = definite(6, 0.0)
        matrix[-1], matrix[:, -1] = matrix[0], matrix[:, 0]
        matrix[-1, -1] = matrix[0, 0] * (1.0 - 4e-16)
        right = matrix @ np.ones(6)
        assert matrix @ factorise(matrix)(right) == pytest.approx(right, rel=1e-9)

    def test_invalid_matrices_have_no_factor(self, factorise):
        for invalid in (-1.0, 0.0, np.nan, np.inf):
            matrix = definite(4, 0.0)
            matrix[2, 2] = invalid
            assert factorise(matrix) is None
        for beside in (np.nan, 2.0):
            matrix = definite(4, 0.0)
            matrix[1, 3] = matrix[3, 1] = beside * np.sqrt(matrix[1, 1] * matrix[3, 3])
            assert factorise(matrix) is None


@pytest.mark.parametrize("storage", [np.asarray, sp.csr_array, np.float32])
def test_products_equal_the_sums_over_rows(storage, monkeypatch):
    """For any subset of rows, in one chunk or several, with and without a copy of the rows."""
    rng = np.random.default_rng(2)
    X, costs, places = rng.normal(size=(30, 5)) + 3.0, rng.random(30), np.sort(rng.permutation(30)[:17])
    X = X.astype(np.float32).astype(float)
    for chunk in (100, 2**20):
        monkeypatch.setattr(rows_module, "CHUNK_BYTES", chunk)
        for make in (CentredRows, centred_rows):
            rows = make(Problem("hinge", 1.0), storage(X))
            b = (np.column_stack([X - X.mean(axis=0), np.ones(30)]) / rows.units)[places]
            found = rows.regularised(rows.all_products(costs, places)) - np.diag(rows.regular)
            assert found == pytest.approx(
                (b * costs[places, None]).T @ b, rel=1e-12, abs=1e-12
            )  # 30 terms, centred


@pytest.mark.parametrize("size", [1, 2, 5, 6])
def test_row_products_are_added_below_the_diagonal(size):
    """In blocks of any size, with rows left over or none."""
    rng = np.random.default_rng(2)
    rows, weights = rng.normal(size=(30, size)), rng.random(30)
    for some in (0, 1, 4, 5, 30):
        for room in (1, 4, 64):
            places = rng.permutation(30)[:some].astype(np.uint32)
            matrix, columns = np.zeros((size, size)), np.full((size, room), np.nan)
            expected = (rows[places] * weights[places, None]).T @ rows[places]
            for sign, total in ((1.0, expected), (1.0, 2.0 * expected), (-1.0, expected)):
                small_cholesky.add_row_products(sign, rows, weights, places, columns, matrix)
                assert np.tril(matrix) == pytest.approx(np.tril(total), rel=0.0, abs=1e-13)  # 30 eps


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


@pytest.mark.parametrize("intercept", ["free", "augmented", "none"])
@pytest.mark.parametrize("layout", [np.asarray, np.asfortranarray, np.float32, lambda X: X[::2, 1:]])
def test_small_dense_rows_are_centred_and_scaled(layout, intercept):
    """With the constant column, in the units of the rows, for any memory layout."""
    X = layout(np.random.default_rng(3).normal(size=(40, 6)) * 10.0 ** np.arange(6) + 50.0)
    blocks = centred_rows(Problem("hinge", 1.0, intercept=intercept, intercept_scaling=3.0), X)
    constant = np.full((len(X), blocks.size - X.shape[1]), blocks.constant)
    rows = np.hstack([X.astype(float) - blocks.mean, constant]) / blocks.units
    assert blocks.scores(np.eye(blocks.size)) == pytest.approx(
        rows, rel=1e-14, abs=1e-14
    )  # centred by one subtraction
