"""Rules: trajectories equal naive versions, and the bounds of the theorems hold."""

from __future__ import annotations

from fractions import Fraction
from itertools import product

import numpy as np
import pytest
import scipy.sparse as sp
from effort import COMPILED, THOROUGH, compiled_for, examples, interpreted, selected, thorough
from hypothesis import assume, example, given, settings
from hypothesis import strategies as st
from naive import NAIVE, dual_descent, replay
from oracle import optimum
from presenting import (
    BUSY,
    ONE_BY_ONE,
    bias,
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

from maxmargin import MPU, MaxMarginClassifier, Perceptron, Problem
from maxmargin.algorithms import (
    ALGORITHMS,
    ALMA,
    CRAMMA,
    MICRA,
    PUMMA,
    ROMMA,
    AggressiveROMMA,
    Bias,
    Facts,
    FixedDirectionalMargin,
)
from maxmargin.algorithms.online.dual_coordinate_descent import Descend
from maxmargin.algorithms.online.mpu import Unlearn
from maxmargin.algorithms.online.perceptron import Learn

STORES = {"dense": np.asarray, "csr": sp.csr_matrix}
PROBLEMS = [
    Problem("hinge", np.inf, intercept="none"),
    Problem("hinge", 0.75, intercept="none"),
    Problem("hinge", 2.0, intercept="augmented", intercept_scaling=1.5),
    Problem("squared_hinge", 0.5, intercept="none"),
    Problem("squared_hinge", 2.0, intercept="augmented", intercept_scaling=1.5),
    Problem("hinge", np.inf, intercept="free"),
    Problem("squared_hinge", 0.5, intercept="free"),
]
COVERED = [
    (name, p)
    for name in ONE_BY_ONE
    for p in PROBLEMS
    if ALGORITHMS[name]().refuses(p) is None and p.free == (ALGORITHMS[name].bias is Bias.OWN)
]


STORED = selected(
    [(name, problem, storage) for (name, problem), storage in product(COVERED, STORES)],
    lambda name, problem, storage: compiled_for(name, storage),
)


def cloud(rng, n, d, shift=0.5, whole=False):
    """Rows of two overlapping classes."""
    y = np.where(rng.random(n) < 0.5, 1.0, -1.0)
    y[:2] = 1.0, -1.0
    X = rng.normal(size=(n, d)) + shift * y[:, None]
    return (np.rint(2.0 * X) if whole else X), y


def turns_of(rng, n, count):
    """Random orders of all rows; no row is presented twice in succession, which would put it on its threshold."""
    turns = [rng.permutation(n)]
    while len(turns) < count:
        order = rng.permutation(n)
        if order[0] != turns[-1][-1]:
            turns.append(order)
    return turns


def test_every_rule_has_a_naive_version():
    """Algorithms that do not present rows one by one have naive versions elsewhere; IMA repeats FMP."""
    assert set(NAIVE) == set(ONE_BY_ONE)
    one_by_one = {"pegasos", "cutting-plane", "ima", "flexible-ima"}
    programs = {"lp", "barrier", "interior-point", "proximal-point", "newton"}
    assert set(ALGORITHMS) - set(NAIVE) == one_by_one | programs


@interpreted
@pytest.mark.parametrize(("name", "problem", "storage"), STORED)
def test_trajectory_equals_the_naive_one(name, problem, storage):
    """The same rows make a step in the same order, and w and the dual weights agree to rounding.

    A decision within 1e-9 of its threshold depends on rounding: the naive run returns the smallest
    distance, and data with such a decision are skipped.
    """
    steps = compared = 0
    for seed in range(20):
        rng = np.random.default_rng(seed)
        X, y = cloud(rng, 30, 6)
        s = 10.0 ** rng.uniform(-1, 1, 30)
        p = plan(name, problem, X, s, problem.rho, **BUSY.get(name, {}))
        unit = p.unit or 1.0
        delta2 = problem.delta2(s)
        turns = turns_of(rng, 30, 4)
        Y = reflected(X, y, problem.rho, delta2 if delta2.any() else None)
        expected = replay(name, Y, y, np.concatenate(turns), problem.caps(s) * unit, p.rule)
        if expected.nearest <= 1e-9:
            continue
        compared += 1
        h = opened(p.rule, start(STORES[storage](X), y, problem, unit, problem.rho, s, name), turns[0])
        moved, _ = present(p.rule, h, turns)
        assert moved == expected.moved
        steps += len(moved)
        w = weight(h)
        assert w == pytest.approx(
            expected.weights[: w.size], rel=0, abs=1e-12 * np.abs(expected.weights).max()
        )
        assert dual(h) == pytest.approx(expected.dual, rel=0, abs=1e-12 * expected.dual.max())
        assert bias(h) == pytest.approx(expected.bias, rel=1e-12, abs=1e-12)
        assert (h.alpha <= h.cap).all()  # caps are reached exactly
    assert compared >= 5
    assert steps >= (3 if name == "romma" else 30) * compared  # ROMMA learns from mistakes only


@interpreted
@pytest.mark.parametrize("storage", STORES)
@pytest.mark.parametrize(
    ("name", "problem"),
    [(name, p) for name, p in COVERED if name in ("perceptron", "mpu") and (p.hard or p.C == 2.0)],
    ids=str,
)
def test_trajectory_on_integers_equals_the_naive_one_exactly(name, storage, problem):
    """On integers there is no rounding, and ties (a.y = b) are decided as stated."""
    ties = 0
    for seed in range(5):
        rng = np.random.default_rng(100 + seed)
        X, y = cloud(rng, 40, 5, whole=True)
        problem = Problem(problem.loss, problem.C, intercept=problem.intercept, intercept_scaling=2.0)
        s = rng.integers(1, 4, 40).astype(float)
        delta2 = problem.delta2(s)
        if delta2.any():
            s[:], delta2 = 1.0, problem.delta2(np.ones(40))
        rule = (Learn(24.0),) if name == "perceptron" else (Unlearn(256.0, 128.0),)
        turns = [rng.permutation(40) for _ in range(6)]
        Y = reflected(X, y, problem.rho, delta2 if delta2.any() else None)
        h = start(STORES[storage](X), y, problem, 256.0, problem.rho, s)
        expected = NAIVE[name](Y, np.concatenate(turns), h.cap, *rule[0])
        ties += expected.nearest == 0.0
        moved, _ = present(rule[0], h, turns)
        assert moved == expected.moved
        w = h.space.vector.w
        assert w.tolist() == expected.weights[: w.size].tolist()
        assert h.alpha.tolist() == expected.dual.tolist()
    assert ties  # ties occurred


@interpreted
@pytest.mark.parametrize(("name", "problem", "storage"), STORED)
def test_trajectory_on_packed_rows_equals_the_naive_one(name, problem, storage):
    rng = np.random.default_rng(17)
    X, y = cloud(rng, 30, 6)
    p = plan(name, problem, X, rho=problem.rho, **BUSY.get(name, {}))
    unit = p.unit or 1.0
    first, rows = [rng.permutation(30)], rng.permutation(30)[:17]
    h = opened(p.rule, start(STORES[storage](X), y, problem, unit, problem.rho, name=name), first[0])
    present(p.rule, h, first)
    moved, _ = present(p.rule, packed(h, rows), [range(17)] * 3)
    Y = reflected(X, y, problem.rho, problem.delta2(np.ones(30)))
    order = np.concatenate([*first, rows, rows, rows])
    expected = replay(name, Y, y, order, h.cap, p.rule)
    assert expected.nearest > 1e-9
    assert [rows[k] for k in moved] == expected.moved[len(expected.moved) - len(moved) :]
    assert dual(h) == pytest.approx(expected.dual, rel=0, abs=1e-12 * expected.dual.max())


NARROW = {
    "float32": lambda X: X.astype(np.float32),
    "float32 csr": lambda X: sp.csr_matrix(X.astype(np.float32)),
    "0/1": sp.csr_matrix,
}


@thorough
@pytest.mark.parametrize("name", NAIVE)
@settings(max_examples=examples(20, 40))
@given(
    seed=st.integers(0, 2**20),
    n=st.integers(4, 24),
    d=st.integers(2, 6),
    storage=st.sampled_from((*STORES, *NARROW)),
    kind=st.sampled_from(PROBLEMS),
    halves=st.booleans(),
)
def test_trajectory_on_integers_equals_the_naive_one_in_every_storage(
    name, seed, n, d, storage, kind, halves
):
    """Compare indices of updates in full passes and passes over packed rows.

    Ties are allowed for the Perceptron only: for others data with a decision within 1e-9 are skipped.
    """
    rng = np.random.default_rng(seed)
    if ALGORITHMS[name]().refuses(kind) or kind.free != (ALGORITHMS[name].bias is Bias.OWN):
        own = ALGORITHMS[name].bias is Bias.OWN
        kind = Problem("hinge", np.inf, intercept="free" if own else "none")
    if storage in NARROW and (kind.rho or not kind.hard):
        storage = "csr"  # other combinations are compiled in test_engine.py
    if COMPILED and not THOROUGH and not compiled_for(name, storage):
        storage = "dense"
    X, y = cloud(rng, n, d, whole=True)
    X = (X > 0.0).astype(float) if storage == "0/1" else X
    p = plan(name, kind, X, rho=kind.rho, **BUSY.get(name, {}))
    unit = p.unit or 1.0
    delta2 = kind.delta2(np.ones(n))
    first, last = rng.permutation(n), rng.permutation(n)
    some = rng.permutation(n)[: max(n // 2, 1)]
    Y = reflected(X, y, kind.rho, delta2 if delta2.any() else None)
    assume(name not in ("mpu", "dcd") or Y.any(axis=1).all())  # the cap of a zero pattern is infinite
    order = np.concatenate([first, first, some, some, last])
    expected = replay(name, Y, y, order, kind.caps(np.ones(n)) * unit, p.rule)
    assume(name == "perceptron" or expected.nearest > 1e-9)
    h = opened(p.rule, start({**STORES, **NARROW}[storage](X), y, kind, unit, kind.rho, name=name), first)
    moved, _ = present(p.rule, h, [first, first])
    if halves:
        moved += [int(some[k]) for k in present(p.rule, packed(h, some), [range(some.size)] * 2)[0]]
    else:
        moved += present(p.rule, h, [some, some])[0]
    moved += present(p.rule, h, [last])[0]
    assert moved == expected.moved
    w = weight(h)
    assert w == pytest.approx(expected.weights[: w.size], rel=0, abs=1e-11 * np.abs(expected.weights).max())
    assert dual(h) == pytest.approx(expected.dual, rel=0, abs=1e-11 * expected.dual.max())


def test_explicit_coordinates_equal_the_diagonal_of_dual_descent():
    """Squared hinge with explicit coordinates, and with D on the diagonal as in the DCD paper."""
    rng = np.random.default_rng(18)
    X, y = cloud(rng, 20, 5)
    order = np.concatenate([rng.permutation(20) for _ in range(4)])
    D, caps = 1.0 / (2.0 * 3.0), np.full(20, np.inf)
    diagonal = dual_descent(reflected(X, y), order, caps, 1.0, D)
    columns = dual_descent(reflected(X, y, delta2=np.full(20, D)), order, caps, 1.0)
    assert diagonal.moved == columns.moved
    assert diagonal.dual == pytest.approx(columns.dual, rel=1e-12)


@pytest.mark.parametrize("storage", STORES)
@pytest.mark.parametrize("name", ["mpu", "dcd"])
def test_zero_pattern_reaches_its_cap_in_one_presentation(name, storage):
    """Its dual weight is its cap after one presentation, and w does not change."""
    X, y = np.array([[1.0, 2.0], [0.0, 0.0], [-1.0, 1.0]]), np.array([1.0, 1.0, -1.0])
    s = np.array([1.0, 3.0, 1.0])
    problem = Problem("hinge", 0.5, intercept="none")
    p = plan(name, problem, X, s)
    h = start(STORES[storage](X), y, problem, p.unit, weights=s)
    moved, _ = present(p.rule, h, [[1], [1]])
    assert moved == [1]
    assert h.alpha[1] == 1.5 * p.unit
    assert not h.space.vector.w.any()


@pytest.mark.parametrize("storage", STORES)
def test_mpu_updates_at_its_thresholds_as_stated(storage):
    """a.y = b is learnt and a.y = b + db is unlearnt, both once; scores between them cause no update."""
    X, y = np.array([[2.0, 0.0], [0.0, 1.0]]), np.array([1.0, -1.0])
    for score, change in ((40.0, 1.0), (42.0, 0.0), (68.0, 0.0), (70.0, -1.0), (72.0, -1.0), (74.0, -2.0)):
        h = start(STORES[storage](X), y, PROBLEMS[0])
        h.space.vector.w[0], h.alpha[0] = score / 2.0, 5.0
        moved, _ = present(Unlearn(40.0, 30.0), h, [[0]])
        assert h.alpha[0] == 5.0 + change
        assert h.space.vector.w[0] == score / 2.0 + 2.0 * change
        assert moved == ([0] if change else [])
    h = start(STORES[storage](X), y, PROBLEMS[0])  # nothing to unlearn for any score
    h.space.vector.w[0] = 1000.0
    assert present(Unlearn(40.0, 30.0), h, [[0]])[0] == []


def test_multiple_updates_of_mpu_equal_repeated_single_updates():
    """One presentation with multiple updates gives the state of repeated single updates."""
    rng = np.random.default_rng(19)
    X, y = cloud(rng, 12, 3, whole=True)
    problem = Problem("hinge", np.inf, intercept="none")
    b, db = 500.0, 300.0
    h = start(X, y, problem)
    Y, a, I = reflected(X, y), np.zeros(3), np.zeros(12)
    for k in [*range(12), *range(12), *reversed(range(12))]:
        present(Unlearn(b, db), h, [[k]])
        while Y[k].any() and a @ Y[k] <= b:
            a, I[k] = a + Y[k], I[k] + 1
        while a @ Y[k] >= b + db and I[k] > 0:
            a, I[k] = a - Y[k], I[k] - 1
        if Y[k].any():
            assert h.alpha[k] == I[k]
            assert h.space.vector.w.tolist() == a.tolist()


# theorems


def separable(rng_seed, n, d):
    """A separable set of reflected integer patterns with its R^2 and its largest directional margin."""
    rng = np.random.default_rng(rng_seed)
    u = rng.normal(size=d)
    y = np.where(rng.random(n) < 0.5, 1.0, -1.0)
    X = np.rint(3.0 * (rng.normal(size=(n, d)) + 1.5 * y[:, None] * u / np.linalg.norm(u)))
    problem = Problem("hinge", np.inf, intercept="none")
    exact = optimum(problem, X, y, np.ones(n))
    R2 = float((X * X).sum(axis=1).max())
    assume(exact.lower > 0 and exact.lower**2 > Fraction(R2) / 400)
    assert exact.e < 1e-9 * exact.upper
    return X, y, problem, R2, exact


def updates_until_right(rule, h, n, rng, bound):
    """Sweep in random orders until a full pass makes no update or the bound is passed; count updates."""
    t = 0.0
    while True:
        before = h.alpha.copy()
        moved, _ = present(rule, h, [rng.permutation(n)])
        if not moved:
            return t
        t += np.abs(h.alpha - before).sum()  # in a sweep a pattern is presented once
        assert t <= bound


seeds = st.integers(0, 2**20)


@settings(max_examples=60)
@given(seeds, st.integers(3, 30), st.integers(1, 6), st.sampled_from([0.0, 0.3, 1.0, 5.0, 30.0]))
def test_perceptron_meets_its_bounds_on_updates_and_margin(seed, n, d, share):
    """t <= (R^2 + 2b) / gamma_d^2, and a margin of at least gamma_d b / (R^2 + 2b)."""
    X, y, problem, R2, exact = separable(seed, n, d)
    b = float(np.rint(share * R2))
    bound = (R2 + 2.0 * b) / float(exact.lower) ** 2
    h = start(X, y, problem)
    t = updates_until_right(Learn(b), h, n, np.random.default_rng(seed), bound)
    assert t == h.alpha.sum()
    a = h.space.vector.w
    margin, length = scored(h).min(), np.sqrt(a @ a)
    assert margin > b
    assert margin / length >= float(exact.lower) * b / (R2 + 2.0 * b)
    assert float(exact.upper) <= length / t * (
        1.0 + 1e-12
    )  # after the run the dual weights give an upper bound


@settings(max_examples=60)
@given(
    seeds,
    st.integers(3, 30),
    st.integers(1, 6),
    st.sampled_from([0.5, 3.0, 20.0, 100.0]),
    st.sampled_from([1.25, 2.0, 3.0, 10.0]),
)
def test_mpu_meets_the_bounds_of_theorem_1(seed, n, d, b_share, db_share):
    """Hard margin: the bound (10) on updates, the fraction before the run (11) and after it (12)."""
    X, y, problem, R2, exact = separable(seed, n, d)
    b, db = np.rint(b_share * R2) + 1.0, np.rint(db_share * R2) + 1.0
    gamma = float(exact.lower)
    bound = (R2 + 2.0 * b) / gamma**2 * (1.0 + (R2 + 2.0 * b) / (4.0 * (db - R2)))
    h = start(X, y, problem)
    t = updates_until_right(Unlearn(b, db), h, n, np.random.default_rng(seed), bound)
    a = h.space.vector.w
    length, total = np.sqrt(a @ a), h.alpha.sum()
    assert t >= total > 0
    achieved = scored(h).min() / length
    assert achieved / float(exact.upper) > 1.0 / (1.0 + min(db, b + R2) / b)
    # f >= gamma' (t+ - t-) / |a|
    assert achieved / gamma >= achieved * total / length * (1.0 - 1e-12)


def soft(seed, n, d):
    rng = np.random.default_rng(seed)
    X, y = cloud(rng, n, d, shift=0.3, whole=True)
    R2 = float((X * X).sum(axis=1).max())
    assume(R2 > 0.0)
    return X, y, R2


@settings(max_examples=60)
@given(
    seeds,
    st.integers(2, 30),
    st.integers(1, 6),
    st.integers(3, 9),
    st.sampled_from([1.25, 2.0, 3.0]),
    st.sampled_from([1, 5, 64, 1000]),
)
@example(0, 20, 3, 12, 3.0, 1000)
def test_mpu_meets_the_bounds_of_theorem_2(seed, n, d, doublings, db_share, I):
    """1-norm soft margin: the bound (22) on updates, the accuracy before the run (23) and after it (24)."""
    X, y, R2 = soft(seed, n, d)
    db = np.rint(db_share * R2) + 1.0
    b = 2.0 ** (np.ceil(np.log2(db)) + doublings)  # so that C = I / b is exact
    problem = Problem("hinge", I / b, intercept="none")
    exact = optimum(problem, X, y, np.ones(n))
    h = start(X, y, problem, unit=b)
    assert (h.cap == I).all()
    bound = n * I * (2.0 * b + db) / (db - R2)
    rng, rule, t = np.random.default_rng(seed), Unlearn(b, db), 0.0

    def after_run():
        a, scores = h.space.vector.w, scored(h)
        primal = 0.5 * (a @ a) + I * np.maximum(b - scores, 0.0).sum()
        dual = b * h.alpha.sum() - 0.5 * (a @ a)
        return primal / b**2, primal / dual - 1.0 if dual > 0.0 else np.inf

    def excess(J):
        return float((Fraction(J) - exact.upper) / exact.upper), float(
            (Fraction(J) - exact.lower) / exact.lower
        )

    while True:
        before = h.alpha.copy()
        moved, _ = present(rule, h, [rng.permutation(n)])
        assert h.alpha.min() >= 0.0
        assert h.alpha.max() <= I
        J, accuracy = after_run()
        assert excess(J)[0] <= accuracy * (1.0 + 1e-12) + 1e-14  # (24), at any time
        if not moved:
            break
        t += np.abs(h.alpha - before).sum()
        assert t <= bound  # (22)
    assert excess(J)[1] < 2.0 * (db / b) / (1.0 - db / b)  # (23)


@settings(max_examples=30)
@given(seeds, st.floats(-4, 4), st.floats(-5, -1), st.sampled_from([1.5, 3.0, 10.0]))
def test_parameters_of_mpu_follow_from_the_accuracy(seed, c, digits, delta_b):
    """b and I = C b follow from the accuracy delta: 2 (delta_b/b) / (1 - delta_b/b) <= delta; I is an integer."""
    C, delta = 10.0**c, 10.0**digits
    _, _, R2 = soft(seed, 10, 3)
    p = MPU(delta=delta, delta_b=delta_b).plan(Facts(Problem("hinge", C, intercept="none"), R2, 0.1))
    b, db = p.rule
    assert p.unit == b
    assert db == delta_b * R2
    assert 2.0 * (db / b) / (1.0 - db / b) <= delta * (1.0 + 1e-12)
    I = C * b
    assert abs(I - np.rint(I)) <= 1e-12 * I
    hard = MPU(delta=delta, delta_b=delta_b).plan(Facts(Problem("hinge", np.inf, intercept="none"), R2, 0.1))
    b, db = hard.rule
    assert 1.0 / (1.0 + min(db, b + R2) / b) >= (1.0 - delta) * (1.0 - 1e-12)


@settings(max_examples=60)
@given(seeds, st.sampled_from(["hinge", "squared_hinge"]), st.sampled_from([0.01, 1.0, 100.0]), st.booleans())
def test_dual_descent_never_decreases_the_dual_objective(seed, loss, C, sparse):
    """Every single step is an exact ascent: D(alpha) does not fall, in rational arithmetic."""
    rng = np.random.default_rng(seed)
    n, d = int(rng.integers(2, 10)), int(rng.integers(1, 5))
    X, y = cloud(rng, n, d)
    s = rng.integers(1, 4, n).astype(float)
    problem = Problem(loss, C, intercept="none")
    h = start(sp.csr_matrix(X) if sparse else X, y, problem, weights=s)
    delta2 = [Fraction(v) for v in problem.delta2(s)]
    Y = [[Fraction(v) for v in row] for row in reflected(X, y).tolist()]

    def dual():
        alpha = [Fraction(v) for v in h.alpha.tolist()]
        v = [sum(a * row[j] for a, row in zip(alpha, Y, strict=True)) for j in range(d)]
        return sum(a - D * a * a / 2 for a, D in zip(alpha, delta2, strict=True)) - sum(c * c for c in v) / 2

    last = dual()
    for k in np.concatenate([rng.permutation(n) for _ in range(4)]):
        present(Descend(1.0), h, [[k]])
        now = dual()
        assert now >= last - Fraction(1e-15) * max(1, abs(last))
        last = now
    assert last > 0


# refusals


KINDS = {
    "none": {"fit_intercept": False},
    "free": {"intercept": "free"},
    "augmented": {"intercept": "augmented"},
}


@pytest.mark.parametrize("name", ALGORITHMS)
def test_unsupported_problems_are_refused_with_a_valid_remedy(name):
    """Unsupported combinations are refused before the fit, and following the remedy removes the refusal."""
    X, y = np.array([[0.0, 1.0], [1.0, 0.0]]), np.array([0, 1])
    for kind, options in KINDS.items():
        for loss in ("hinge", "squared_hinge"):
            for C in (1.0, np.inf):
                model = MaxMarginClassifier(loss=loss, C=C, algorithm=name, max_iter=2, **options)
                remedy = ALGORITHMS[name]().refuses(Problem(loss, C, intercept=kind))
                if remedy is None:
                    model.fit(X, y)
                    continue
                with pytest.raises(
                    ValueError, match=rf"algorithm '{name}' does not solve loss='{loss}'"
                ) as caught:
                    model.fit(X, y)
                assert f"use {remedy}, or another algorithm" in str(caught.value)
                assert f"{name}," not in str(caught.value)  # the algorithm itself is not recommended
                assert not hasattr(model, "coef_")
                # the stated remedy removes the refusal
                for phrase, change in (
                    ('loss="squared_hinge"', {"loss": "squared_hinge"}),
                    ("C=inf", {"C": np.inf}),
                    ('loss="hinge" with a finite C', {"loss": "hinge", "C": 1.0}),
                    ('fit_intercept=True with intercept="free"', {"intercept": "free"}),
                ):
                    if phrase in remedy:
                        parameters = {"loss": loss, "C": C, "intercept": kind, **change}
                        again = ALGORITHMS[name]().refuses(Problem(**parameters))
                        assert again is None or (again != remedy and phrase not in again)


def test_perceptron_refuses_the_hinge_loss():
    model = MaxMarginClassifier(loss="hinge", algorithm=Perceptron(b=2.0))
    with pytest.raises(ValueError, match='use loss="squared_hinge" or C=inf, or another algorithm') as caught:
        model.fit([[0.0], [1.0]], [0, 1])
    assert "dcd" in str(caught.value)
    assert "mpu" in str(caught.value)
    assert "perceptron)" not in str(caught.value)  # the algorithm itself is not recommended


@pytest.mark.parametrize(
    ("rule", "message"),
    [
        (lambda: MPU(delta=0.0), "delta must lie between 0 and 1; got 0.0"),
        (lambda: MPU(delta=1.0), "delta must lie between 0 and 1; got 1.0"),
        (lambda: MPU(delta="x"), "delta must be a number; got 'x'"),
        (lambda: MPU(delta_b=1.0), r"delta_b must be above 1 \(in units of R\^2\); got 1.0"),
        (lambda: MPU(c_bar=0.5), "c_bar must be at least 1; got 0.5"),
        (lambda: MPU(Nep1=0), "Nep1 and Nep2 must be at least 1; got 0 and 10"),
        (lambda: MPU(Nep1=1.5), "Nep1 must be a whole number; got 1.5"),
        (lambda: MPU(schedule="shrinking"), "mpu has the schedules 'gap', 'two-level', .*; got 'shrinking'"),
        (lambda: Perceptron(b=-1.0), r"b, in units of R\^2, must be at least 0; got -1.0"),
        (
            lambda: Perceptron(b=float("nan")),
            r"b, in units of R\^2, must be at least 0; got nan",
        ),
        (lambda: ALMA(alpha=0.0), "alpha must lie above 0 and be at most 1; got 0.0"),
        (lambda: ALMA(alpha=1.5), "alpha must lie above 0 and be at most 1; got 1.5"),
        (lambda: ALMA(B=-1.0), "B must be a positive number or None; got -1.0"),
        (lambda: ALMA(C=0.0), "C must be a positive number; got 0.0"),
        (lambda: CRAMMA(beta=0.0), r"beta must be a positive number \(in units of R\); got 0.0"),
        (lambda: CRAMMA(eta=-1.0), "eta must be a positive number or None; got -1.0"),
        (lambda: CRAMMA(epsilon=0.0), "epsilon must be a positive number; got 0.0"),
        (lambda: MICRA(epsilon=True), "epsilon must be a positive number; got True"),
        (lambda: MICRA(zeta=1.5), "zeta must lie between 0 and 1; got 1.5"),
        (
            lambda: FixedDirectionalMargin(beta=-0.1),
            r"beta must be a positive number \(in units of R\); got -0.1",
        ),
        (lambda: FixedDirectionalMargin(eta=0), "eta must be a positive number or None; got 0"),
        (lambda: AggressiveROMMA(delta=0.0), "delta must lie above 0 and be at most 1, or be None; got 0.0"),
        (lambda: PUMMA(delta=1.01), "delta must lie above 0 and be at most 1, or be None; got 1.01"),
        (lambda: PUMMA(schedule="gap"), "pumma has the schedules 'active', 'plain'; got 'gap'"),
        (lambda: ROMMA(schedule="shrinking"), "romma has the schedules 'active', 'plain'; got 'shrinking'"),
    ],
)
def test_invalid_parameters_of_rules_are_refused(rule, message):
    with pytest.raises(ValueError, match=message):
        MaxMarginClassifier(algorithm=rule()).fit([[0.0], [1.0]], [0, 1])
