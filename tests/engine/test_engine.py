"""The storage of rows does not change results: equal numbers give equal bits."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from itertools import product

import numpy as np
import pytest
import scipy.sparse as sp
from effort import interpreted
from naive import BUSY
from presenting import (
    ONE_BY_ONE,
    WHOLE,
    dual,
    opened,
    packed,
    plan,
    present,
    reflected,
    scored,
    start,
    weight,
)

import maxmargin.data.rows
from maxmargin import Problem
from maxmargin.algorithms import ALGORITHMS
from maxmargin.algorithms.online.perceptron import Learn
from maxmargin.data.rows import KernelPatterns, PackedRows, Patterns
from maxmargin.engine.state import BIAS
from maxmargin.engine.storage import Dense, Gram, Sparse
from maxmargin.engine.sweep import repeat, score_rows
from maxmargin.kernels.functions import Linear
from maxmargin.solvers.decomposition import KernelRows

HARD = Problem("hinge", np.inf, intercept="none")


def problem_for(name: str, intercept: str = "none") -> Problem:
    """A problem that the algorithm solves, without slack."""
    problems = Problem("hinge", 4.0, intercept=intercept), HARD, replace(HARD, intercept="free")
    return next(p for p in problems if ALGORITHMS[name]().refuses(p) is None)


def plan_for(name: str, problem: Problem, X, weights=None):
    """The rule planned for these data: with default options if its arithmetic is exact, else with many updates."""
    return plan(name, problem, X, weights, **({} if name in WHOLE else BUSY.get(name, {})))


def signs(n, rng):
    """Labels of both classes."""
    y = np.where(rng.random(n) < 0.5, 1.0, -1.0)
    y[:2] = 1.0, -1.0
    return y


def exact_rows(name, rng, n=40, d=9, entries=4, spare=0.0):
    """Rows for which the arithmetic of the rule is exact.

    Integers for rules with integer steps. Dual coordinate descent divides by |x|^2: four entries of +-1 make it
    a power of two (`spare` is the contribution of the problem), and twenty steps then need fewer than 53 bits.
    """
    if name != "dcd":
        return rng.integers(-3, 4, (n, d)).astype(float)
    X = np.zeros((10, d))
    for row in X:
        row[rng.choice(d, int(entries - spare), replace=False)] = 1.0
    return X * rng.choice([-1.0, 1.0], X.shape)


def orders(name, n, rng):
    """Three random orders of all rows; two for dual coordinate descent, which is twenty presentations."""
    return [rng.permutation(n) for _ in range(2 if name == "dcd" else 3)]


def outcome(rule, h, presented_orders):
    """All results of a run."""
    opened(rule, h, presented_orders[0])
    moved, scores = present(rule, h, presented_orders)
    return moved, scores, weight(h), dual(h), scored(h)


def assert_equal_outcomes(name, a, b):
    """Assert the same steps and equal numbers; to 1e-12, for 120 roundings, if the rule divides or takes roots."""
    assert a[0] == b[0]
    for one, other in zip(a[1:], b[1:], strict=True):
        if name in WHOLE:  # by value, since zeros may differ in sign
            np.testing.assert_array_equal(one, other)
        else:
            np.testing.assert_allclose(one, other, rtol=0.0, atol=1e-12 * np.abs(other).max())


def with_indices(X, kind):
    X = sp.csr_matrix(X)
    X.indices, X.indptr = X.indices.astype(kind), X.indptr.astype(kind)
    return X


STORAGES = {
    "csr": sp.csr_matrix,
    "csr, 64-bit indices": lambda X: with_indices(X, np.int64),
    "csc": sp.csc_matrix,
    "float32": lambda X: X.astype(np.float32),
    "float32 csr": lambda X: sp.csr_matrix(X.astype(np.float32)),
    "integers": lambda X: X.astype(np.int8),
    "column-major": np.asfortranarray,
    "every second column": lambda X: np.repeat(X, 2, axis=1)[:, ::2],
}


def assert_same_as_dense(name, X, store, rng):
    """Whole runs and runs on packed rows."""
    problem, y = problem_for(name), signs(len(X), rng)
    p, presented = plan_for(name, problem, X), orders(name, len(X), rng)
    dense, other = (start(rows, y, problem, p.unit or 1.0, name=name) for rows in (X, store(X)))
    expected = outcome(p.rule, dense, presented)
    assert_equal_outcomes(name, outcome(p.rule, other, presented), expected)
    assert len(expected[0]) > len(X) // 2  # steps were made
    some = presented[0][:5]
    assert_equal_outcomes(name, *(present(p.rule, packed(h, some), [range(5)]) for h in (other, dense)))
    return dense, other


@interpreted
@pytest.mark.parametrize(("name", "storage"), list(product(ONE_BY_ONE, STORAGES)))
def test_all_storages_give_the_same_bits(name, storage):
    rng = np.random.default_rng(3)
    assert_same_as_dense(name, exact_rows(name, rng), STORAGES[storage], rng)


@pytest.mark.parametrize(
    "storage",
    ["float32 csr", "zeros and ones"]
    + [pytest.param(name, marks=pytest.mark.slow) for name in ("csr", "float32", "64-bit indices")],
)
def test_compiled_storages_give_the_same_bits(storage, monkeypatch):
    rng = np.random.default_rng(4)
    X = exact_rows("perceptron", rng)
    if storage == "zeros and ones":
        X = (X > 0).astype(float)
    elif storage == "64-bit indices":
        monkeypatch.setattr(maxmargin.data.rows, "_SMALL_INDEX", 0)
    dense, other = assert_same_as_dense("perceptron", X, STORAGES.get(storage, sp.csr_matrix), rng)
    assert isinstance(dense.space, Dense)
    assert isinstance(other.space, Dense if storage == "float32" else Sparse)
    if storage not in ("float32", "float32 csr"):
        assert other.space.indices.dtype.itemsize == (8 if storage == "64-bit indices" else 4)


@interpreted
@pytest.mark.parametrize(("name", "store"), list(product(ONE_BY_ONE, (np.asarray, sp.csr_matrix))))
class TestExplicitForms:
    def test_packed_rows_give_the_same_bits(self, name, store):
        rng, problem = np.random.default_rng(6), problem_for(name)
        X = exact_rows(name, rng)
        n, y, p = len(X), signs(len(X), rng), plan_for(name, problem, X)
        rows = rng.permutation(n)[: n - 3]
        others = np.setdiff1d(np.arange(n), rows)  # the packed rows exclude those that initialise the rule
        unpacked, source = (
            opened(p.rule, start(store(X), y, problem, p.unit or 1.0, name=name), [*others, *rows])
            for _ in range(2)
        )
        expected = present(p.rule, unpacked, [rows, rows])
        moved, scores = present(p.rule, packed(source, rows), [range(rows.size)] * 2)
        assert_equal_outcomes(name, ([rows[k] for k in moved], scores), expected)
        # packed rows share w and the dual weights with their source
        ends = ((*present(p.rule, h, [range(n)]), weight(h), dual(h), scored(h)) for h in (unpacked, source))
        assert_equal_outcomes(name, *ends)

    def test_intercept_scaling_equals_an_explicit_column(self, name, store):
        rng, problem = np.random.default_rng(7), problem_for(name, "augmented")
        rho = 1.0 if name == "dcd" else 3.0
        X = exact_rows(name, rng, spare=rho)
        y, wide = signs(len(X), rng), np.column_stack([X, np.full(len(X), rho)])
        p, presented = plan_for(name, problem, wide), orders(name, len(X), rng)
        biased = start(store(X), y, problem, p.unit or 1.0, rho, name=name)
        explicit = start(store(wide), y, problem, p.unit or 1.0, name=name)
        assert biased.square.tolist() == explicit.square.tolist()
        assert_equal_outcomes(name, *(outcome(p.rule, h, presented) for h in (biased, explicit)))
        rows = presented[0][::-1][:6]
        assert_equal_outcomes(name, *(([], scored(packed(h, rows), 6)) for h in (biased, explicit)))

    def test_squared_hinge_equals_explicit_columns(self, name, store):
        """The own coordinate of a pattern is delta, here a power of two: 1 / (2 C s) = delta^2."""
        rng, delta = np.random.default_rng(8), 1.0 if name == "dcd" else 4.0
        problem, hard = Problem("squared_hinge", 0.5 / delta**2, intercept="none"), HARD
        if ALGORITHMS[name]().refuses(problem):
            problem, hard = (replace(p, intercept="free") for p in (problem, hard))
        X = exact_rows(name, rng, spare=1.0)
        n, y = len(X), signs(len(X), rng)
        s = np.ones(n) if name == "dcd" else rng.choice([1.0, 4.0, 0.25], n)  # delta^2 / s is a square, too
        delta2 = problem.delta2(s)
        p, presented = plan_for(name, problem, X, s), orders(name, n, rng)
        elastic = start(store(X), y, problem, p.unit or 1.0, weights=s, name=name)
        explicit = start(
            store(y[:, None] * reflected(X, y, delta2=delta2)), y, hard, p.unit or 1.0, name=name
        )
        assert elastic.square.tolist() == explicit.square.tolist()
        moved, scores, w, alpha, after = outcome(p.rule, elastic, presented)
        # the own coordinates of w are delta alpha and need not be stored
        found = moved, scores, np.concatenate([w, np.sqrt(delta2) * alpha]), alpha, after
        assert_equal_outcomes(name, found, outcome(p.rule, explicit, presented))


@interpreted
@pytest.mark.parametrize("sparse", [False, True])
def test_bias_adds_its_product_with_the_label_to_scores(sparse):
    rng = np.random.default_rng(9)
    X, y, free = rng.integers(-3, 4, (12, 5)).astype(float), signs(12, rng), Problem("hinge", 4.0)
    p = plan("mpu", free, X, rho=1.0)
    h = start(sp.csr_matrix(X) if sparse else X, y, free, p.unit, rho=1.0)
    present(p.rule, h, [range(12)])
    before = scored(h)
    h.number[BIAS] = 17.0
    assert scored(h).tolist() == (before + 17.0 * y).tolist()
    # the rule decides by the shifted score: a pattern beyond the threshold is not learnt
    h.alpha[:], h.space.vector.w[:], h.number[BIAS] = 0.0, 0.0, 4.0 * p.unit
    moved, _ = present(p.rule, h, [[int(np.argmax(y)), int(np.argmin(y))]])
    assert moved == [int(np.argmin(y))]


@pytest.mark.parametrize("store", [np.asarray, sp.csr_matrix])
def test_float32_values_are_summed_in_float64(store):
    """Squares and scores are those of the same values in float64; sums of float32 would lose the eighth digit."""
    rng = np.random.default_rng(10)
    X, y = rng.normal(size=(7, 50)).astype(np.float32), signs(7, rng)
    a, b = start(store(X), y, HARD), start(store(X.astype(float)), y, HARD)
    exact = [float(sum(Fraction(float(v)) ** 2 for v in row)) for row in X]
    assert a.square.tolist() == b.square.tolist()
    assert a.square == pytest.approx(exact, rel=50 * 2.0**-53, abs=0.0)
    rule = plan("perceptron", HARD, X.astype(float)).rule
    (moved, scores), (expected_moved, expected) = (present(rule, h, [range(7)] * 3) for h in (a, b))
    assert moved == expected_moved
    assert scores == pytest.approx(expected, rel=0.0, abs=1e-11)  # 50 eps |w| |x|, |w| at most 21 |x|


# memory


def test_data_are_not_copied(tmp_path, monkeypatch):
    """Dense, read-only and mapped rows are shared; sparse indices are converted only if their width changes."""
    X, y = np.arange(12.0).reshape(4, 3), np.array([1.0, -1.0, 1.0, -1.0])
    frozen, rule = X.copy(), plan("perceptron", HARD, X).rule
    frozen.flags.writeable = False
    np.save(tmp_path / "X.npy", X)
    for data in (X, frozen, np.load(tmp_path / "X.npy", mmap_mode="r"), X.astype(np.float32)):
        h = start(data, y, HARD)
        assert np.shares_memory(h.space.X, data)
        present(rule, h, [range(4)] * 3)
        assert np.array_equal(data, np.arange(12.0).reshape(4, 3))
    for kind, limit in ((np.int32, 2**32 - 1), (np.int64, 0)):
        monkeypatch.setattr(maxmargin.data.rows, "_SMALL_INDEX", limit)
        rows = with_indices(X, kind)
        parts = rows.data, rows.indices, rows.indptr
        for part in parts:
            part.flags.writeable = False
        h = start(rows, y, HARD)
        for part, shared in zip(parts[:2], (h.space.data, h.space.indices), strict=True):
            assert np.shares_memory(part, shared)
        present(rule, h, [range(4)] * 3)


# rows of a kernel


@pytest.mark.parametrize("rho", [0.0, 2.0])
def test_kernel_rows_of_integers_give_identical_results(rho):
    """The perceptron on integers, packed and unpacked."""
    n, rng = 24, np.random.default_rng(0)
    y = 2.0 * (np.arange(n) % 2) - 1.0
    X = rng.integers(-3, 4, (n, 60)) + 1.0 * y[:, None]
    problem = Problem("hinge", np.inf, intercept="none")
    kernel = KernelPatterns(KernelRows(Linear(), X, 1.0), np.arange(n))
    kernel.fetch(np.arange(n, dtype=np.uint32))
    line = np.arange(n, dtype=np.uint32)
    scores, moved = np.empty(n), np.empty(n, np.uint32)
    results = []
    for patterns in (Patterns(X), kernel):
        h = patterns.engine_state(problem, y, np.ones(n), 1.0, rho)
        assert isinstance(h.space, Gram) == (patterns is kernel)
        for _ in range(5):
            repeat(Learn(500.0), h, line[::-1].copy(), scores, moved, 1)
            packed = PackedRows().pack(h, line[3:17])
            repeat(Learn(700.0), packed, line[:14], scores, moved, 2)
        score_rows(h, line, scores)
        results.append((h.alpha.tolist(), scores.tolist()))
    assert results[0] == results[1]
