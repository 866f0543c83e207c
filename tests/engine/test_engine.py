"""The storage of rows does not change results: equal numbers give equal bits."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from itertools import product

import numpy as np
import pytest
import scipy.sparse as sp
from effort import ON_ALL, compiled_for, interpreted, selected
from presenting import (
    BUSY,
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
from maxmargin import MaxMarginClassifier, Problem
from maxmargin.algorithms import ALGORITHMS
from maxmargin.data.rows import PackedRows, Patterns
from maxmargin.engine.state import BIAS
from maxmargin.engine.storage import Dense, Sparse

HARD = Problem("hinge", np.inf, intercept="none")


def problem_for(name: str, intercept: str = "none") -> Problem:
    """A problem that the algorithm solves, without slack."""
    problem = Problem("hinge", 4.0, intercept=intercept)
    free = Problem("hinge", np.inf, intercept="free")
    return next(p for p in (problem, HARD, free) if ALGORITHMS[name]().refuses(p) is None)


def plan_for(name: str, problem: Problem, X, weights=None):
    """The rule planned for these data: with default options if its arithmetic is exact, else with many updates."""
    return plan(name, problem, X, weights, **({} if name in WHOLE else BUSY.get(name, {})))


def signs(n, rng):
    """Labels of both classes."""
    y = np.where(rng.random(n) < 0.5, 1.0, -1.0)
    y[:2] = 1.0, -1.0
    return y


def exact_rows(name, rng, n=40, d=9, binary=False, entries=4, spare=0.0):
    """Rows for which the arithmetic of the rule is exact.

    Integers for rules with integer steps. Dual coordinate descent divides by |x|^2: four entries of +-1 make it
    a power of two (`spare` is the contribution of the problem), and twenty steps then need fewer than 53 bits.
    """
    if name != "dcd":
        if binary:
            return (rng.random((n, d)) < 0.5).astype(float)
        return rng.integers(-3, 4, (n, d)).astype(float)
    n, X = 10, np.zeros((10, d))
    for row in X:
        row[rng.choice(d, int(entries - spare), replace=False)] = 1.0
    return X if binary else X * rng.choice([-1.0, 1.0], X.shape)


def orders(name, n, rng):
    """Three random orders of all rows; two for dual coordinate descent, which is twenty presentations."""
    return [rng.permutation(n) for _ in range(2 if name == "dcd" else 3)]


def with_indices(X, kind):
    X = sp.csr_matrix(X)
    X.indices, X.indptr = X.indices.astype(kind), X.indptr.astype(kind)
    return X


STORAGES = {
    "csr": sp.csr_matrix,
    "csr, 64-bit indices": lambda X: with_indices(X, np.int64),
    "csr array": sp.csr_array,
    "csc": sp.csc_matrix,
    "float32": lambda X: X.astype(np.float32),
    "float32 csr": lambda X: sp.csr_matrix(X.astype(np.float32)),
    "integers": lambda X: X.astype(np.int8),
    "column-major": np.asfortranarray,
    "every second column": lambda X: np.repeat(X, 2, axis=1)[:, ::2],
}


RULE_AND_STORAGE = selected(
    product(ONE_BY_ONE, (False, True)), lambda name, sparse: compiled_for(name, "csr" if sparse else "dense")
)


def outcome(rule, h, presented_orders):
    """All results of a run."""
    opened(rule, h, presented_orders[0])
    moved, scores = present(rule, h, presented_orders)
    return moved, scores, weight(h), dual(h), scored(h)


def assert_equal_outcomes(name, a, b):
    """Assert the same steps and the same bits; to 1e-12 if the rule divides or takes roots."""
    assert a[0] == b[0]
    for one, other in zip(a[1:], b[1:], strict=True):
        if name in WHOLE:
            assert one.tobytes() == other.tobytes()
        else:
            np.testing.assert_allclose(one, other, rtol=0.0, atol=1e-12 * np.abs(other).max())


# storages after reading; the others become dense float64, compiled once
KINDS = {
    "csr": "csr",
    "csr, 64-bit indices": "csr",
    "csr array": "csr",
    "csc": "csr",
    "float32": "float32",
    "float32 csr": "float32 csr",
}


@pytest.mark.parametrize(
    ("name", "storage"),
    selected(product(ONE_BY_ONE, STORAGES), lambda name, s: compiled_for(name, KINDS.get(s, "dense"))),
)
def test_all_storages_give_the_same_bits(name, storage):
    rng = np.random.default_rng(3)
    problem = problem_for(name)
    for _ in range(3):
        X = exact_rows(name, rng)
        y = signs(len(X), rng)
        p = plan_for(name, problem, X)
        unit = p.unit or 1.0
        presented_orders = orders(name, len(X), rng)
        expected = outcome(p.rule, start(X, y, problem, unit, name=name), presented_orders)
        assert_equal_outcomes(
            name,
            outcome(p.rule, start(STORAGES[storage](X), y, problem, unit, name=name), presented_orders),
            expected,
        )
        assert len(expected[0]) > len(X) // 2  # steps were made


@pytest.mark.parametrize("name", selected(ONE_BY_ONE, lambda name: name in ON_ALL))
def test_dense_and_sparse_binary_rows_give_the_same_bits(name):
    rng = np.random.default_rng(4)
    problem = problem_for(name)
    X = exact_rows(name, rng, binary=True)
    y = signs(len(X), rng)
    p = plan_for(name, problem, X)
    unit = p.unit or 1.0
    presented_orders = orders(name, len(X), rng)
    h = start(sp.csr_matrix(X), y, problem, unit, name=name)
    assert isinstance(h.space, Sparse)
    dense = start(X, y, problem, unit, name=name)
    assert isinstance(dense.space, Dense)
    assert_equal_outcomes(
        name, outcome(p.rule, dense, presented_orders), outcome(p.rule, h, presented_orders)
    )


@pytest.mark.parametrize("name", selected(ONE_BY_ONE, lambda name: name in ON_ALL))
def test_64_bit_indices_give_the_same_bits(name, monkeypatch):
    rng = np.random.default_rng(5)
    problem = problem_for(name)
    X = exact_rows(name, rng)
    y = signs(len(X), rng)
    p = plan_for(name, problem, X)
    unit = p.unit or 1.0
    presented_orders = orders(name, len(X), rng)
    narrow = start(sp.csr_matrix(X), y, problem, unit, name=name)
    monkeypatch.setattr(maxmargin.data.rows, "_SMALL_INDEX", 0)
    wide = start(sp.csr_matrix(X), y, problem, unit, name=name)
    assert narrow.space.indices.dtype.itemsize == 4
    assert wide.space.indices.dtype.itemsize == wide.space.indptr.dtype.itemsize == 8
    assert_equal_outcomes(
        name, outcome(p.rule, narrow, presented_orders), outcome(p.rule, wide, presented_orders)
    )
    rows = presented_orders[0][:5]
    packed_runs = [present(p.rule, packed(h, rows), [range(5)]) for h in (narrow, wide)]
    assert_equal_outcomes(name, *packed_runs)
    assert_equal_outcomes(name, (packed_runs[0][0], weight(narrow)), (packed_runs[1][0], weight(wide)))


@interpreted
@pytest.mark.parametrize(("name", "sparse"), RULE_AND_STORAGE)
def test_packed_rows_give_the_same_bits(name, sparse):
    rng = np.random.default_rng(6)
    problem = problem_for(name)
    X = exact_rows(name, rng)
    y = signs(len(X), rng)
    p = plan_for(name, problem, X)
    unit = p.unit or 1.0
    n = len(X)
    rows = rng.permutation(n)[: n - 3]
    stored = sp.csr_matrix(X) if sparse else X
    others = np.setdiff1d(np.arange(n), rows)  # the packed rows exclude those that initialise the rule
    unpacked, source = (
        opened(p.rule, start(stored, y, problem, unit, name=name), [*others, *rows]) for _ in range(2)
    )
    moved, scores = present(p.rule, unpacked, [rows, rows])
    active = packed(source, rows)
    packed_moved, packed_scores = present(p.rule, active, [range(rows.size)] * 2)
    assert_equal_outcomes(name, (moved, scores), ([rows[k] for k in packed_moved], packed_scores))
    # packed rows share w and the dual weights with their source
    assert_equal_outcomes(
        name, *((*present(p.rule, h, [range(n)]), weight(h), dual(h), scored(h)) for h in (unpacked, source))
    )


@interpreted
@pytest.mark.parametrize(("name", "sparse"), RULE_AND_STORAGE)
def test_intercept_scaling_equals_an_explicit_column(name, sparse):
    rng = np.random.default_rng(7)
    problem = problem_for(name, "augmented")
    rho = 1.0 if name == "dcd" else 3.0
    X = exact_rows(name, rng, spare=rho)
    y = signs(len(X), rng)
    wide = np.column_stack([X, np.full(len(X), rho)])
    p = plan_for(name, problem, wide)
    unit = p.unit or 1.0
    presented_orders = orders(name, len(X), rng)
    store = sp.csr_matrix if sparse else np.asarray
    biased = start(store(X), y, problem, unit, rho, name=name)
    explicit = start(store(wide), y, problem, unit, name=name)
    assert biased.square.tolist() == explicit.square.tolist()
    assert_equal_outcomes(
        name, outcome(p.rule, biased, presented_orders), outcome(p.rule, explicit, presented_orders)
    )
    rows = presented_orders[0][::-1][:6]
    assert_equal_outcomes(
        name, ([], scored(packed(biased, rows), 6)), ([], scored(packed(explicit, rows), 6))
    )


@interpreted
@pytest.mark.parametrize(("name", "sparse"), RULE_AND_STORAGE)
def test_squared_hinge_equals_explicit_columns(name, sparse):
    """The own coordinate of a pattern is delta, here a power of two: 1 / (2 C s) = delta^2."""
    rng = np.random.default_rng(8)
    delta = 1.0 if name == "dcd" else 4.0
    problem, hard = Problem("squared_hinge", 0.5 / delta**2, intercept="none"), HARD
    if ALGORITHMS[name]().refuses(problem):
        problem, hard = (replace(p, intercept="free") for p in (problem, hard))
    X = exact_rows(name, rng, spare=1.0)
    n = len(X)
    y = signs(n, rng)
    s = np.ones(n) if name == "dcd" else rng.choice([1.0, 4.0, 0.25], n)  # delta^2 / s is a square as well
    delta2 = problem.delta2(s)
    Y = y[:, None] * reflected(X, y, delta2=delta2)
    p = plan_for(name, problem, X, s)
    unit = p.unit or 1.0
    presented_orders = orders(name, n, rng)
    store = sp.csr_matrix if sparse else np.asarray
    elastic = start(store(X), y, problem, unit, weights=s, name=name)
    explicit = start(store(Y), y, hard, unit, name=name)
    assert elastic.square.tolist() == explicit.square.tolist()
    moved, scores, w, alpha, after = outcome(p.rule, elastic, presented_orders)
    expected_moved, expected, columns, beta, expected_after = outcome(p.rule, explicit, presented_orders)
    # the own coordinates of w are delta alpha and need not be stored
    own = np.sqrt(delta2) * alpha
    if name in WHOLE:  # by value, since zeros may differ in sign
        assert (moved, scores.tolist(), after.tolist()) == (
            expected_moved,
            expected.tolist(),
            expected_after.tolist(),
        )
        assert alpha.tolist() == beta.tolist()
        assert [*w, *own] == columns.tolist()
    else:
        assert_equal_outcomes(
            name, (moved, scores, after, alpha), (expected_moved, expected, expected_after, beta)
        )
        assert_equal_outcomes(name, (moved, np.concatenate([w, own])), (expected_moved, columns))


@pytest.mark.parametrize("sparse", [False, True])
def test_bias_adds_its_product_with_the_label_to_scores(sparse):
    rng = np.random.default_rng(9)
    X = rng.integers(-3, 4, (12, 5)).astype(float)
    y = signs(12, rng)
    free = Problem("hinge", 4.0, intercept="free")
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


def test_float32_values_are_summed_in_float64():
    """Squares and scores equal those of the same values in float64."""
    rng = np.random.default_rng(10)
    X = rng.normal(size=(7, 50)).astype(np.float32)
    y = signs(7, rng)
    for narrow, wide in ((X, X.astype(float)), (sp.csr_matrix(X), sp.csr_matrix(X.astype(float)))):
        a, b = start(narrow, y, HARD), start(wide, y, HARD)
        assert a.square.dtype == np.float64
        assert a.square.tolist() == b.square.tolist()
        p = plan("perceptron", HARD, X.astype(float))
        moved, scores = present(p.rule, a, [range(7)] * 3)
        expected_moved, expected = present(p.rule, b, [range(7)] * 3)
        assert moved == expected_moved
        assert scores.tolist() == expected.tolist()
        # float32 sums would be inaccurate in the eighth digit
        exact = [sum(Fraction(float(v)) ** 2 for v in row) for row in X]
        assert max(abs(Fraction(v) - e) / e for v, e in zip(a.square.tolist(), exact, strict=True)) < 1e-14


def test_unsorted_and_repeated_entries_are_summed():
    indptr, n = np.array([0, 4, 4, 7]), 3
    X = sp.csr_matrix(
        (np.array([3.0, 1.0, -2.0, 5.0, 4.0, -4.0, 1.0]), np.array([3, 0, 3, 1, 2, 2, 0]), indptr),
        shape=(n, 4),
    )
    plain = np.array([[1.0, 5.0, 0.0, 1.0], [0.0, 0.0, 0.0, 0.0], [1.0, 0.0, 0.0, 0.0]])
    assert (X.toarray() == plain).all()
    before = X.data.copy(), X.indices.copy(), X.indptr.copy()
    y = np.array([1.0, -1.0, -1.0])
    p = plan("perceptron", HARD, plain)
    presented_orders = [range(n)] * 4
    assert_equal_outcomes(
        "perceptron", *(outcome(p.rule, start(rows, y, HARD), presented_orders) for rows in (X, plain))
    )
    for old, new in zip(before, (X.data, X.indices, X.indptr), strict=True):
        assert old.tolist() == new.tolist()  # the caller's matrix is unchanged


def test_explicit_zeros_do_not_change_results():
    X = sp.csr_matrix((np.array([1.0, 0.0, 2.0]), np.array([0, 1, 1]), np.array([0, 2, 3])), shape=(2, 2))
    y = np.array([1.0, -1.0])
    p = plan("perceptron", HARD, X.toarray())
    presented_orders = [range(2)] * 4
    assert_equal_outcomes(
        "perceptron", *(outcome(p.rule, start(rows, y, HARD), presented_orders) for rows in (X, X.toarray()))
    )


# memory


def test_dense_data_are_not_copied(tmp_path):
    X = np.arange(12.0).reshape(4, 3)
    frozen = X.copy()
    frozen.flags.writeable = False
    np.save(tmp_path / "X.npy", X)
    mapped = np.load(tmp_path / "X.npy", mmap_mode="r")
    narrow = X.astype(np.float32)
    for data in (X, frozen, mapped, narrow):
        h = start(data, np.array([1.0, -1.0, 1.0, -1.0]), HARD)
        assert np.shares_memory(h.space.X, data)
        assert type(h.space.X) is np.ndarray
        present(plan("perceptron", HARD, X).rule, h, [range(4)] * 3)
        assert np.array_equal(data, X)


@pytest.mark.parametrize("kind", [np.int32, np.int64])
def test_sparse_data_are_not_copied(kind, monkeypatch):
    """Values are shared; indices are converted only if their width changes."""
    X = with_indices(np.array([[1.0, 0.0, 2.0], [0.0, 3.0, 0.0]]), kind)
    for part in (X.data, X.indices, X.indptr):
        part.flags.writeable = False
    monkeypatch.setattr(maxmargin.data.rows, "_SMALL_INDEX", 0 if kind is np.int64 else 2**32 - 1)
    h = start(X, np.array([1.0, -1.0]), HARD)
    assert np.shares_memory(h.space.data, X.data)
    assert np.shares_memory(h.space.indices, X.indices)
    assert np.shares_memory(h.space.indptr, X.indptr)
    present(plan("perceptron", HARD, X.toarray()).rule, h, [range(2)] * 3)


def test_read_only_arrays_need_no_further_compilation():
    X = np.arange(12.0).reshape(4, 3)
    y = np.array([1.0, -1.0, 1.0, -1.0])
    rule = plan("perceptron", HARD, X).rule
    from maxmargin.engine.sweep import repeat

    if not hasattr(repeat, "signatures"):
        pytest.skip("interpreted: nothing is compiled")
    present(rule, start(X, y, HARD), [range(4)])
    signature_count = len(repeat.signatures)
    X.flags.writeable = False
    present(rule, start(X, y, HARD), [range(4)])
    assert len(repeat.signatures) == signature_count


@pytest.mark.parametrize(
    ("name", "intercept", "sparse"),
    selected(
        product(ALGORITHMS, ("none", "free", "augmented"), (False, True)),
        # a constant feature is a column, and is compiled once more
        lambda name, intercept, sparse: (
            intercept == ("none" if sparse else "free") and (name not in ONE_BY_ONE or name in ON_ALL)
        ),
    ),
)
def test_fit_does_not_modify_the_data_of_the_caller(name, intercept, sparse):
    rng = np.random.default_rng(11)
    X = rng.integers(-2, 3, (30, 4)).astype(float)
    X[3] = X[2]
    X = sp.csr_matrix(X) if sparse else X
    y, s = signs(30, rng), rng.integers(0, 3, 30).astype(float)
    s[:2] = 1.0
    parts = [X.data, X.indices, X.indptr] if sparse else [X]
    parts += [y, s]
    before = [part.tobytes() for part in parts]
    kind = {"intercept": intercept} if intercept != "none" else {"fit_intercept": False}
    losses = [
        loss
        for loss in ("squared_hinge", "hinge")
        if ALGORITHMS[name]().refuses(Problem(loss, 1.0, intercept=intercept)) is None
    ]
    if not losses:
        assert (
            (name, intercept) in (("pumma", "none"), ("pumma", "augmented"))
            or name == "lp"
            or ALGORITHMS[name]().other_norm(Problem("squared_hinge", 1.0))
        )  # or solves other norms
        return
    MaxMarginClassifier(loss=losses[0], algorithm=name, max_iter=5, **kind).fit(X, y, s)
    assert before == [part.tobytes() for part in parts]


# memory of packed rows


@pytest.mark.parametrize(
    "store", [np.asarray, sp.csr_matrix, lambda X: sp.csr_matrix((X != 0).astype(float))]
)
def test_packed_memory_is_reused(store):
    rng = np.random.default_rng(12)
    X = rng.integers(-2, 3, (50, 6)).astype(float)
    y = signs(50, rng)
    s = rng.integers(1, 4, 50).astype(float)
    problem = Problem("hinge", 2.0, intercept="augmented")
    h = start(store(X), y, problem, rho=2.0, weights=s)
    h.space.vector.w[:] = rng.integers(-4, 5, 7)
    all_scores = scored(h)
    memory, packings = PackedRows(), []
    for size in (3, 40, 50, 1, 20, 50):
        rows = rng.permutation(50)[:size].astype(np.uint32)
        active = memory.pack(h, rows)
        packings.append(active)
        assert scored(active, size).tolist() == all_scores[rows].tolist()
        for part in ("y", "square", "cap", "ids"):
            assert getattr(active, part)[:size].tolist() == getattr(h, part)[rows].tolist(), part
        assert active.alpha is h.alpha
        assert active.space.vector.w is h.space.vector.w
    # reused memory: later rows overwrite earlier ones
    assert np.shares_memory(packings[-1].y, packings[-2].y)
    assert np.shares_memory(packings[-1].ids, packings[-3].ids)


def test_packed_memory_grows_for_long_rows():
    """A few long rows after many short ones: enough rows, but too few entries."""
    X = np.zeros((30, 200))
    X[:, 0] = 1.0 + np.arange(30.0)
    X[25:] += 1.0
    h = start(sp.csr_matrix(X), np.where(np.arange(30) % 2, 1.0, -1.0), HARD)
    h.space.vector.w[:] = np.arange(200.0) - 70.0
    memory = PackedRows()
    memory.pack(h, np.arange(20, dtype=np.uint32))
    rows = np.arange(29, 24, -1, dtype=np.uint32)
    assert scored(memory.pack(h, rows), 5).tolist() == scored(h)[rows].tolist()


def test_squares_of_rows_equal_exact_sums():
    rng = np.random.default_rng(13)
    X = rng.normal(size=(9, 33)) * 10.0 ** rng.uniform(-5, 5, (9, 1))
    X[4] = 0.0
    exact = [float(sum(Fraction(v) ** 2 for v in row)) for row in X.tolist()]
    for stored in (X, sp.csr_matrix(X)):
        assert Patterns(stored).square == pytest.approx(exact, rel=1e-15 * 34, abs=0.0)
