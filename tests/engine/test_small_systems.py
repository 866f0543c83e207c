"""Linear systems of the exact step and of Newton's steps: compiled loops and LAPACK against NumPy and SciPy."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.datasets import load_iris

import maxmargin.fit.presolve
import maxmargin.fit.small_dense
from maxmargin import MaxMarginClassifier, Problem
from maxmargin.algorithms.batch import centred_rows as rows_module
from maxmargin.algorithms.batch.centred_rows import CentredRows, centred_rows
from maxmargin.algorithms.batch.factors import RIDGES, PivotedQR, factor
from maxmargin.algorithms.batch.newton import newton_points
from maxmargin.algorithms.batch.quadratic_program import SharedRows, SpanBasis
from maxmargin.algorithms.batch.semismooth_steps import (
    DUAL_NORM2,
    GRADIENT2,
    MAX_GRADIENT,
    NORM2,
    set_gradient_and_gap,
)
from maxmargin.algorithms.batch.sifting import sifted_points
from maxmargin.data.rows import Patterns
from maxmargin.engine import small_cholesky


def definite(size: int, seed: int = 0, digits: float = 0.0) -> np.ndarray:
    """A positive definite matrix with rows and columns scaled by this many decades, and well conditioned otherwise."""
    rng = np.random.default_rng(seed)
    A = rng.normal(size=(3 * size, size)) * 10.0 ** rng.uniform(-digits, digits, size=size)
    return A.T @ A


class TestCholesky:
    @pytest.mark.parametrize("size", [1, 2, 3, 7, 100, 101])
    @pytest.mark.parametrize("digits", [0.0, 60.0])
    def test_systems_are_solved(self, size, digits):
        matrix = definite(size, digits=digits)
        before = matrix.copy()
        x = np.random.default_rng(1).normal(size=size) / np.sqrt(np.diag(matrix))
        solve = factor(matrix)
        assert solve is not None
        assert solve(matrix @ x) * np.sqrt(np.diag(matrix)) == pytest.approx(
            x * np.sqrt(np.diag(matrix)), abs=1e-11
        )
        assert (matrix == before).all()

    def test_several_right_hand_sides_are_solved(self):
        matrix, right = definite(5, digits=9.0), np.arange(10.0).reshape(5, 2)
        solve = factor(matrix)
        assert solve is not None
        np.testing.assert_array_equal(solve(right), np.column_stack([solve(column) for column in right.T]))

    def test_matrices_indefinite_by_rounding_get_a_ridge(self):
        """Two equal columns; the solution solves the unmodified system."""
        matrix = definite(6)
        matrix[-1], matrix[:, -1] = matrix[0], matrix[:, 0]
        matrix[-1, -1] = matrix[0, 0] * (1.0 - 4e-16)
        right = matrix @ np.ones(6)
        solve = factor(matrix)
        assert solve is not None
        assert matrix @ solve(right) == pytest.approx(right, rel=1e-5)

    @pytest.mark.parametrize("invalid", ["negative", "zero", "nan", "inf", "far", "indefinite"])
    def test_invalid_matrices_have_no_factor(self, invalid):
        matrix = definite(4)
        places = {"negative": -1.0, "zero": 0.0, "nan": np.nan, "inf": np.inf}
        if invalid in places:
            matrix[2, 2] = places[invalid]
        elif invalid == "far":
            matrix[1, 3] = matrix[3, 1] = np.nan
        else:
            matrix[1, 3] = matrix[3, 1] = 2.0 * np.sqrt(matrix[1, 1] * matrix[3, 3])
        assert factor(matrix) is None

    def test_ridges_increase_from_zero(self):
        assert tuple(sorted(RIDGES)) == RIDGES
        assert RIDGES[0] == 0.0


@pytest.mark.parametrize("storage", [np.asarray, sp.csr_array, np.float32])
@pytest.mark.parametrize("chunk", [100, 2**20])
def test_products_equal_the_sums_over_rows(chunk, storage, monkeypatch):
    """For any subset of rows, in one chunk or several, with and without a copy of the rows."""
    monkeypatch.setattr(rows_module, "CHUNK_BYTES", chunk)
    rng = np.random.default_rng(2)
    X, costs, places = rng.normal(size=(30, 5)) + 3.0, rng.random(30), np.sort(rng.permutation(30)[:17])
    X = X.astype(np.float32).astype(float)
    for make in (CentredRows, centred_rows):
        rows = make(Problem("hinge", 1.0), storage(X))
        b = (np.column_stack([X - X.mean(axis=0), np.ones(30)]) / rows.units)[places]
        found = rows.regularised(rows.all_products(costs, places)) - np.diag(rows.regular)
        assert found == pytest.approx((b * costs[places, None]).T @ b, rel=1e-12, abs=1e-12)


@pytest.mark.parametrize("size", [1, 2, 5, 6])
@pytest.mark.parametrize("some", [0, 1, 3, 4, 5, 30])
@pytest.mark.parametrize("room", [1, 4, 64])
def test_row_products_are_added_below_the_diagonal(room, some, size):
    rng = np.random.default_rng(2)
    rows, weights, matrix = rng.normal(size=(30, size)), rng.random(30), np.zeros((size, size))
    places = rng.permutation(30)[:some].astype(np.uint32)
    columns = np.full((size, room), np.nan)
    expected = (rows[places] * weights[places, None]).T @ rows[places]
    for sign, total in ((1.0, expected), (1.0, 2.0 * expected), (-1.0, expected)):
        small_cholesky.add_row_products(sign, rows, weights, places, columns, matrix)
        assert np.tril(matrix) == pytest.approx(np.tril(total), rel=1e-13, abs=1e-13)


@pytest.mark.parametrize("size", [1, 2, 3, 7, 100])
@pytest.mark.parametrize("digits", [0.0, 60.0])
def test_compiled_cholesky_solves_small_systems(size, digits):
    matrix = definite(size, digits=digits)
    root = np.sqrt(np.diag(matrix))
    x = np.random.default_rng(1).normal(size=size) / root
    right, out, (scale, inverse) = matrix @ x, np.empty(size), np.empty((2, size))
    assert small_cholesky.factor(matrix, scale, inverse)
    small_cholesky.solve_factored(matrix, scale, inverse, right, out)
    assert out * root == pytest.approx(x * root, abs=1e-11)


def test_compiled_cholesky_adds_a_ridge_to_matrices_indefinite_by_rounding():
    matrix = definite(6)
    matrix[-1], matrix[:, -1] = matrix[0], matrix[:, 0]
    matrix[-1, -1] = matrix[0, 0] * (1.0 - 4e-16)
    before, right, out, (scale, inverse) = matrix.copy(), matrix[0].copy(), np.empty(6), np.empty((2, 6))
    assert small_cholesky.factor(matrix, scale, inverse)
    small_cholesky.solve_factored(matrix, scale, inverse, right, out)
    assert before @ out == pytest.approx(right, rel=1e-9)
    for invalid in (-1.0, 0.0, np.inf, np.nan):
        assert not small_cholesky.factor(np.diag([1.0, invalid]), scale[:2], inverse[:2])


def test_gradient_and_norms_equal_numpy():
    rng = np.random.default_rng(3)
    regular, z, combination = np.array([1.0, 1.0, 0.0]), *rng.normal(size=(2, 3))
    vectors, values = np.array([z, regular, np.zeros(3), combination]), np.zeros(13)
    set_gradient_and_gap(1.0, 1.0, False, vectors, values)
    gradient = vectors[2]
    assert gradient == pytest.approx(regular * z - combination)
    assert values[[MAX_GRADIENT, GRADIENT2, NORM2, DUAL_NORM2]] == pytest.approx(
        (np.abs(gradient).max(), regular @ gradient**2, regular @ z**2, regular @ combination**2)
    )
    for invalid in (0, 1, 2):
        vectors[3] = np.where(np.arange(3) == invalid, np.nan, combination)
        set_gradient_and_gap(1.0, 1.0, False, vectors, values)
        assert np.isnan(values[MAX_GRADIENT])


class TestOrthogonal:
    @settings(max_examples=60, deadline=None)
    @given(st.integers(1, 9), st.integers(1, 9), st.integers(0, 9), st.integers(0, 10**6))
    def test_pivoted_qr_has_the_rank_and_solves(self, rows, columns, rank, seed):
        rng = np.random.default_rng(seed)
        B = rng.normal(size=(rows, rank)) @ rng.normal(size=(rank, columns))
        factors = PivotedQR(B)
        assert factors.rank == min(rows, columns, rank)
        assert pytest.approx(np.eye(factors.rank), abs=1e-13) == factors.Q.T @ factors.Q
        z = rng.normal(size=factors.rank)
        assert B @ factors.solve(z) == pytest.approx(
            factors.Q @ z, abs=1e-7
        )  # errors grow with the condition of R
        right = B.T @ (factors.Q @ z)
        assert factors.solve_transposed(right) == pytest.approx(z, abs=1e-6)

    def test_zero_matrix_has_rank_zero(self, capfd):
        factors = PivotedQR(np.zeros((3, 2)))
        assert factors.rank == 0
        assert (factors.solve(factors.solve_transposed(np.ones(2))) == 0.0).all()
        assert not any(capfd.readouterr())  # no message of LAPACK


@pytest.mark.parametrize("alike", [1.0, 1e-7])
def test_basis_of_scaled_rows_equals_that_of_a_copy(alike):
    """Rows times factors, with a constant: by products, or by an orthogonal factor if two rows are nearly equal."""
    rng = np.random.default_rng(5)
    X, factors = rng.normal(size=(8, 60)), rng.choice([-0.5, 0.5], size=8)
    X[1] = X[0] + alike * X[1]
    factors[1] = factors[0]
    A = np.column_stack([X, np.full(8, 3.0)]) * factors[:, None]
    basis = SpanBasis(X, factors=factors, constant=3.0)
    assert (basis.orthogonal is None) is (alike == 1.0)
    assert basis.coefficients @ basis.coefficients.T == pytest.approx(A @ A.T, abs=1e-12)
    a = rng.random(8)
    assert basis.expand(basis.coefficients.T @ a) == pytest.approx(A.T @ a, abs=1e-11)


def test_row_subsets_keep_squares():
    X = np.random.default_rng(6).normal(size=(9, 4))
    places = np.array([7, 2, 2, 0])
    some, fresh = Patterns(X).some(places), Patterns(X[places])
    assert (some.X == fresh.X).all()
    assert (some.square == fresh.square).all()


@pytest.mark.parametrize("intercept", ["free", "augmented", "none"])
@pytest.mark.parametrize("layout", [np.asarray, np.asfortranarray, np.float32, lambda X: X[::2, 1:]])
def test_small_dense_rows_are_centred_and_scaled(layout, intercept):
    """With the constant column, in the units of the rows, for any memory layout."""
    X = layout(np.random.default_rng(3).normal(size=(40, 6)) * 10.0 ** np.arange(6) + 50.0)
    blocks = centred_rows(Problem("hinge", 1.0, intercept=intercept, intercept_scaling=3.0), X)
    constant = np.full((len(X), blocks.size - X.shape[1]), blocks.constant)
    rows = np.hstack([X.astype(float) - blocks.mean, constant]) / blocks.units
    assert blocks.scores(np.eye(blocks.size)) == pytest.approx(rows, rel=1e-14)


class TestRowsSharedByClasses:
    @pytest.mark.parametrize("points", [newton_points, sifted_points])
    def test_solvers_accept_centred_rows(self, points):
        X = np.random.default_rng(9).normal(size=(80, 3)) + 5.0
        y = np.where(X[:, 0] > 5.0, 1.0, -1.0)
        y[:8] *= -1.0
        problem = Problem("squared_hinge" if points is newton_points else "hinge", 1.0)
        *_, (w, b, alpha, *_) = points(problem, X, y, np.ones(80))
        *_, (v, c, other, *_) = points(problem, centred_rows(problem, X), y, np.ones(80))
        assert ((w == v).all(), b) == (True, c)
        assert (alpha == other).all()

    def test_shared_rows_are_created_once(self, monkeypatch):
        created = []

        class Counted(SharedRows):
            def __init__(self, *task):
                created.append(task)
                super().__init__(*task)

        monkeypatch.setattr(maxmargin.fit.presolve, "SharedRows", Counted)
        X, y = load_iris(return_X_y=True)
        monkeypatch.setattr(
            maxmargin.fit.small_dense, "MAX_COLUMNS", 0
        )  # the small dense stage needs no shared rows
        shared = MaxMarginClassifier(random_state=0).fit(X, y)
        assert len(created) == 1
        # each class has the result of a separate fit
        for k in range(3):
            alone = MaxMarginClassifier(random_state=0).fit(X, y == k)
            assert shared.coef_[k] == pytest.approx(alone.coef_[0], rel=1e-9)
            assert shared.certificate_.certificates[k].gap <= 1e-9


@pytest.mark.parametrize("seed", range(20))
def test_far_columns_are_centred(seed):
    """Only columns whose spread is at most a tenth of their size."""
    rng = np.random.default_rng(seed)
    n, d = rng.integers(1, 30), rng.integers(1, 50)
    X = rng.normal(size=(n, d)) + 10.0 ** rng.uniform(-1.0, 2.0, size=d) * rng.choice(
        [-1.0, 0.0, 1.0], size=d
    )
    X[:, rng.random(d) < 0.2] = 0.0
    mean = X.mean(axis=0)
    far = np.maximum(X.max(axis=0) - mean, mean - X.min(axis=0)) <= 0.1 * np.abs(X).max(axis=0)
    shift = SharedRows(Problem("hinge", np.inf), X).shift
    assert shift == pytest.approx(np.where(far, mean, 0.0))
    assert not SharedRows(Problem("hinge", np.inf, intercept="none"), X).shift.any()
