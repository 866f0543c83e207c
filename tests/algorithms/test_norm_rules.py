"""Algorithms in other norms than the Euclidean: steps against their formulas, and the bounds of their theorems."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp
from effort import COMPILED, THOROUGH, interpreted, thorough
from hypothesis import given, settings
from hypothesis import strategies as st
from naive import alma_p, fmp, inverse_link, p_norm, pumma_p
from presenting import opened, packed, present, scored
from scipy.optimize import linprog

from maxmargin import Problem
from maxmargin.algorithms import ALGORITHMS, ALMA, FMP, IMA, PUMMA, Facts, FlexibleIMA
from maxmargin.algorithms.online.alma import elapsed
from maxmargin.data.rows import Patterns
from maxmargin.data.task import Task
from maxmargin.engine.state import BIAS, FACTOR, NORM2, TIME, Motion, refresh
from maxmargin.fit.run import Run
from maxmargin.fit.schedules import SCHEDULES

LINKED_EXPONENTS = (2.0, 2.5, 3.0, 6.8, 2.0 * float(np.log(12)), 100.0)
EXPONENTS = (1.0, 1.5, 2.0, 3.0, np.inf)
# rows of 0 and 1 once per algorithm; the cases that take minutes to compile run with the slow tests
SLOW = pytest.mark.slow
SOFT = [("real", False), ("real", True), ("binary", True), pytest.param("binary", False, marks=SLOW)]
INTERCEPTS = [
    ("real", "free"),
    ("real", "none"),
    ("binary", "free"),
    pytest.param("binary", "none", marks=SLOW),
]
seeds = st.integers(0, 2**20)
EXACT = 1.0 - 1e-10  # rounding of the run


def facts(problem: Problem, X, rho: float = 0.0) -> Facts:
    """The data statistics that a plan is given."""
    patterns = Patterns(X)
    largest = float((patterns.squares(problem.p, rho) + problem.delta2(np.ones(patterns.n))).max())
    return Facts(problem, largest, 0.1, n=patterns.n, length2=float(patterns.square.max()), d=patterns.d)


def state(algorithm, X, y, problem: Problem, order):
    """(rule, weight) before the first presentation."""
    rule = algorithm.plan(facts(problem, X, problem.rho)).rule
    h = Patterns(X).weight(
        problem,
        y,
        np.ones(len(y)),
        1.0,
        problem.rho,
        type(algorithm).scale,
        True,
        motion=type(algorithm).motion,
    )
    return rule, opened(rule, h, order)


def stores(k: int) -> list:
    """Dense and CSR; `make test` compiles one of them for each kind of weight, in turn."""
    both = [np.asarray, sp.csr_matrix]
    return both if THOROUGH or not COMPILED else [both[k % 2]]


def weight(h) -> np.ndarray:
    return h.number[FACTOR] * h.space.vector.w


def dual(h) -> np.ndarray:
    return np.asarray(h.scale.to_dual(h.alpha)) + 0.0


# steps against the formulas


def datasets() -> dict[str, tuple[np.ndarray, np.ndarray]]:
    """Real features, and features of zeros and ones."""
    rng = np.random.default_rng(0)
    real = rng.normal(size=(40, 12))
    y = np.where(real[:, 0] > 0.0, 1.0, -1.0)
    real[:, 0] += 0.3 * y
    real[:, 1] += 0.4
    binary = (rng.random((40, 12)) < 0.3).astype(float)
    return {"real": (real, y), "binary": (binary, np.where(binary[:, :4].sum(axis=1) >= 2.0, 1.0, -1.0))}


def problem(p: float, soft: bool, intercept: str, size: float = 1.0) -> Problem:
    return Problem("squared_hinge", 3.0 / size / size if soft else np.inf, p=p, intercept=intercept)


def trajectory(algorithm, X, y, kind: Problem, passes: int = 12):
    """(rule, updated rows, state) after some passes in order."""
    line = np.arange(len(y))
    rule, h = state(algorithm, X, y, kind, line)
    moved, _ = present(rule, h, [line] * passes)
    return rule, moved, h


def assert_same_trajectory(found, h, moved: list[int]) -> None:
    assert found.nearest > 1e-9
    assert moved == found.moved
    assert len(moved) > 20
    np.testing.assert_allclose(weight(h), found.weights, rtol=0.0, atol=1e-11 * np.abs(found.weights).max())
    np.testing.assert_allclose(dual(h), found.dual, rtol=0.0, atol=1e-11 * np.abs(found.dual).max())


@interpreted
@thorough
@pytest.mark.parametrize("p", LINKED_EXPONENTS)
@pytest.mark.parametrize(("name", "soft"), SOFT)
def test_alma_steps_equal_its_formula(name, soft, p):
    X, y = datasets()[name]
    kind = problem(p, soft, "none")
    algorithm = ALMA(alpha=0.37)
    found = alma_p(
        y[:, None] * X, kind.delta2(np.ones(40)), list(range(40)) * 12, 0.63 * 8.0**0.5 / 0.37, 2.0**0.5,
        facts(kind, X).R, p,
    )  # fmt: skip
    for store in stores(int(soft)):
        _, moved, h = trajectory(algorithm, store(X), y, kind)
        assert_same_trajectory(found, h, moved)


@interpreted
@thorough
@pytest.mark.parametrize("p", LINKED_EXPONENTS)
@pytest.mark.parametrize(("name", "soft"), SOFT)
def test_pumma_steps_equal_its_formula(name, soft, p):
    X, y = datasets()[name]
    kind = problem(p, soft, "free")
    found = pumma_p(y[:, None] * X, kind.delta2(np.ones(40)), list(range(40)) * 12, 0.17, y, p)
    for store in stores(int(soft)):
        _, moved, h = trajectory(PUMMA(delta=0.17, halving=False), store(X), y, kind)
        assert_same_trajectory(found, h, moved)
        assert h.number[BIAS] == pytest.approx(found.bias, rel=1e-11, abs=1e-11 * found.trail[-1] ** 0.5)
        assert h.number[NORM2] == pytest.approx(found.trail[-1], rel=1e-11)


@interpreted
@thorough
@pytest.mark.parametrize("p", EXPONENTS)
@pytest.mark.parametrize("form", ["hard", "soft", "flexible"])
@pytest.mark.parametrize(("name", "intercept"), INTERCEPTS)
def test_fmp_steps_equal_its_formula(name, intercept, form, p):
    X, y = datasets()[name]
    kind = problem(p, form != "hard", intercept)
    delta2, order = kind.delta2(np.ones(40)), list(range(40)) * 12
    rule = FMP(gamma=0.06).plan(facts(kind, X)).rule
    found = fmp(y[:, None] * X, delta2, order, rule.gamma, 1.0, rule.constant2, y, p, form == "flexible")
    motion = Motion.FLEXIBLE if form == "flexible" else Motion.SUBGRADIENT
    forms = ["hard", "soft", "flexible"]
    for store in stores(1 if name == "binary" else forms.index(form) + (intercept == "none")):
        h = Patterns(store(X)).weight(kind, y, np.ones(40), 1.0, 0.0, FMP.scale, True, motion=motion)
        moved, _ = present(rule, h, [range(40)] * 12)
        assert found.nearest > 1e-9
        assert moved == found.moved
        size = np.abs(found.weights).max()
        np.testing.assert_allclose(weight(h), found.weights, rtol=0.0, atol=1e-11 * size)
        np.testing.assert_allclose(dual(h), found.dual, rtol=1e-11)
        assert h.number[BIAS] == pytest.approx(found.bias, rel=1e-11)


def trajectories() -> dict[str, list[int]]:
    """Updated rows of every algorithm, for each storage and kind of data."""
    out = {}
    for name, (X, y) in datasets().items():
        for store in (np.asarray, sp.csr_matrix):
            for soft in (False, True):
                for p in (2.5, 6.8):
                    case = f"{name} {store.__name__} {soft} {p}"
                    for kind, algorithm in (
                        ("none", ALMA(alpha=0.37)),
                        ("free", PUMMA(delta=0.17, halving=False)),
                    ):
                        _, moved, h = trajectory(algorithm, store(X), y, problem(p, soft, kind), 4)
                        out[f"{algorithm.name} {case}"] = moved
                for p in EXPONENTS:
                    _, moved, h = trajectory(FMP(gamma=0.06), store(X), y, problem(p, soft, "free"), 4)
                    refresh(h)
                    out[f"fmp {name} {store.__name__} {soft} {p}"] = moved
    return out


@pytest.mark.slow
def test_interpreted_and_compiled_steps_are_equal():
    done = subprocess.run(
        [
            sys.executable,
            "-W",
            "error",
            "-c",
            "import test_norm_rules as t, json; print(json.dumps(t.trajectories()))",
        ],
        env={
            **os.environ,
            "NUMBA_DISABLE_JIT": "1",
            "PYTHONPATH": os.pathsep.join([str(Path(__file__).parent), *sys.path]),
        },
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout) == trajectories()


@interpreted
@pytest.mark.parametrize("size", [1e-150, 1e-100, 1e100, 1e150])
@pytest.mark.parametrize("p", [2.5, 100.0])
def test_steps_do_not_depend_on_the_unit_of_the_data(p, size):
    """No power over- or underflows: the same steps at every scale, and w scaled accordingly."""
    X, y = datasets()["real"]
    for algorithm, intercept in ((ALMA(alpha=0.37), "none"), (PUMMA(delta=0.17, halving=False), "free")):
        for soft in (False, True):
            _, moved, h = trajectory(algorithm, X, y, problem(p, soft, intercept))
            _, rescaled_moved, other = trajectory(algorithm, X * size, y, problem(p, soft, intercept, size))
            assert moved == rescaled_moved
            ratio = size if algorithm.name == "pumma" else 1.0
            np.testing.assert_allclose(
                weight(other) / ratio, weight(h), rtol=0.0, atol=1e-9 * np.abs(weight(h)).max()
            )


@pytest.mark.parametrize("p", [3.0, 6.8, 100.0])
def test_running_sums_equal_recomputed_sums(p):
    """After thousands of updates the sum of powers is that of theta, and own coordinates match the dual weights."""
    X, y = datasets()["real"]
    rng = np.random.default_rng(1)
    for soft in (False, True):
        rule, h = state(
            PUMMA(delta=1e-4, halving=False), sp.csr_matrix(X), y, problem(p, soft, "free"), range(40)
        )
        present(rule, h, [rng.permutation(40) for _ in range(300)])
        theta = h.number[0] * h.space.vector.theta
        exact = p_norm(theta, p) ** 2 + 1.0 / 6.0 * soft * float(dual(h) @ dual(h))
        assert h.number[NORM2] == pytest.approx(exact, rel=1e-9)
        np.testing.assert_allclose(theta, (dual(h) * y) @ X, atol=1e-11 * np.abs(theta).max())
        before = scored(h)
        refresh(h)
        assert h.number[NORM2] == pytest.approx(exact, rel=1e-13)
        np.testing.assert_allclose(scored(h), before, atol=1e-10 * np.abs(before).max())


@interpreted
@pytest.mark.parametrize("name", ["pumma", "fmp"])
@pytest.mark.parametrize("p", [2.5, 3.0])
def test_packed_rows_give_the_same_steps(name, p):
    X, y = datasets()["real"]
    algorithm = PUMMA(delta=0.17, halving=False) if name == "pumma" else FMP(gamma=0.06)
    rows = np.random.default_rng(2).permutation(40)[:30]
    for store in (np.asarray, sp.csr_matrix):
        for soft in (False, True):
            kind = problem(p, soft, "free")
            (rule, unpacked), (_, packed_state) = (
                state(algorithm, store(X), y, kind, range(40)) for _ in range(2)
            )
            moved, scores = present(rule, unpacked, [rows, rows])
            packed_moved, packed_scores = present(rule, packed(packed_state, rows), [range(30)] * 2)
            assert moved == [rows[k] for k in packed_moved]
            assert scores.tolist() == packed_scores.tolist()
            assert weight(unpacked).tolist() == weight(packed_state).tolist()


def test_row_norms_equal_the_definition():
    rng = np.random.default_rng(3)
    X = rng.normal(size=(9, 7)) * (rng.random((9, 7)) < 0.6) * 1e150
    X[4] = 0.0
    ones = (X != 0.0).astype(float)
    for p in (1.0, 1.5, 2.0, 3.0, 100.0, np.inf):
        for rows, stored in ((X, X), (X, sp.csr_matrix(X)), (ones, sp.csr_matrix(ones))):
            for rho in (0.0, 2.0):
                wide = np.column_stack([rows, np.full(9, rho)])
                expected = [p_norm(row, p) ** 2 for row in wide]
                np.testing.assert_allclose(Patterns(stored).squares(p, rho), expected, rtol=1e-13)
    patterns = Patterns(ones)
    assert patterns.squares(3.0) is patterns.squares(3.0)
    assert patterns.squares(2.0) is patterns.square


# theorems


def planted(seed: int, n: int, d: int, p: float, gamma: float, b: float = 0.0):
    """(X, y, u): the largest p-margin is exactly gamma, with and without a bias where b = 0, that of (u, b), |u|_q = 1.

    theta and u are a dual pair: |theta|_p = 1, u.theta = 1. Four patterns y_k = gamma theta +- t, u.t = 0, two of each
    class, have the mean gamma theta, which bounds every margin by gamma; all others are farther along u.
    """
    rng = np.random.default_rng(seed)
    theta = rng.normal(size=d)
    if p == np.inf:  # the largest entries of theta, where u is not 0
        theta = np.sign(theta) * np.where(np.arange(d) < max(1, d // 2), 1.0, rng.random(d))
        u = np.where(np.abs(theta) == 1.0, theta * rng.random(d), 0.0)
        u /= np.abs(u).sum()
    elif p == 1.0:  # theta is 0 where u is not largest
        theta = np.where(np.arange(d) < max(1, d // 2), theta, 0.0)
        u = np.where(theta != 0.0, np.sign(theta), rng.uniform(-1.0, 1.0, d))
        theta = theta / np.abs(theta).sum()
    else:
        theta = theta / p_norm(theta, p)
        u = inverse_link(theta, p)
    t = rng.normal(size=(n, d))
    t -= np.outer(t @ u, theta)
    t[:4] = t[0] * np.array([1.0, -1.0, 1.0, -1.0])[:, None]
    far = np.where(np.arange(n) < 4, gamma, gamma * (1.0 + rng.exponential(size=n)))
    y = np.where(rng.random(n) < 0.5, 1.0, -1.0)
    y[:4] = 1.0, 1.0, -1.0, -1.0
    return y[:, None] * (t + np.outer(far, theta)) - b * theta, y, u


def count_updates(rule, h, n: int, rng, most: float) -> int:
    """The number of updates until a full pass makes none; at most `most`."""
    count = 0
    while True:
        moved, _ = present(rule, h, [rng.permutation(n)])
        count += len(moved)
        assert count <= most
        if not moved:
            return count


def soft_point(X, y, u, b: float, gamma: float, C: float) -> float:
    """|u|_q^2 + C |xi|^2 of (u, b) / gamma, |u|_q = 1; C / 2 is the weight of xi^2."""
    xi = np.maximum(1.0 - y * (X @ u + b) / gamma, 0.0)
    return gamma**-2 + C * float(xi @ xi)


@settings(max_examples=40)
@given(
    seeds,
    st.integers(4, 20),
    st.integers(2, 8),
    st.sampled_from(LINKED_EXPONENTS),
    st.sampled_from((0.3, 0.8)),
)
def test_alma_updates_and_margin_satisfy_the_bound(seed, n, d, p, alpha):
    """Updates <= (2 (p - 1) / gamma^2) (2 / alpha - 1)^2 + 8 / alpha - 4, margin >= (1 - alpha) gamma."""
    X, y, _ = planted(seed, n, d, p, 0.5)
    kind = problem(p, False, "none")
    rule, h = state(ALMA(alpha=alpha), X, y, kind, range(n))
    gamma = 0.5 / facts(kind, X).R
    rng = np.random.default_rng(seed)
    count_updates(rule, h, n, rng, 2.0 * (p - 1.0) / gamma**2 * (2.0 / alpha - 1.0) ** 2 + 8.0 / alpha - 4.0)
    size = p_norm(weight(h), p / (p - 1.0))
    assert size**2 == pytest.approx(h.number[NORM2], rel=1e-9)
    assert float(scored(h).min()) / size >= (1.0 - alpha) * 0.5 * EXACT
    assert size / dual(h).sum() >= 0.5 * EXACT  # |theta|_p = |w|_q, and the dual weights' bound


@settings(max_examples=40)
@given(
    seeds,
    st.integers(4, 20),
    st.integers(2, 8),
    st.sampled_from(LINKED_EXPONENTS),
    st.sampled_from((1.0, 0.4, 0.1)),
    st.sampled_from((0.0, 1.5)),
)
def test_pumma_satisfies_theorem_3(seed, n, d, p, delta, b):
    """|w|_q^2 grows by delta^2 / (4 (p - 1) R^2) with each update, and never exceeds gamma^-2."""
    X, y, _ = planted(seed, n, d, p, 0.5, b)
    kind = problem(p, False, "free")
    R2, rng = facts(kind, X).radius2, np.random.default_rng(seed)
    rule, h = state(PUMMA(delta=delta, halving=False), X, y, kind, range(n))
    last, finished = 1.0 / h.number[NORM2], False
    while not finished:
        finished = True
        for k in rng.permutation(n):
            if present(rule, h, [[k]])[0]:
                now, finished = 1.0 / h.number[NORM2], False
                assert now >= (last + delta**2 / (4.0 * (p - 1.0) * R2)) * EXACT
                assert now <= 4.0 / EXACT
                assert scored(h)[h.pair] == pytest.approx(h.number[NORM2], rel=1e-9)
                last = now
    margin = float(scored(h).min()) / h.number[NORM2] ** 0.5
    assert margin >= (1.0 - delta) * 0.5 * EXACT
    assert dual(h)[y > 0.0].sum() == pytest.approx(0.5, rel=1e-9)


@settings(max_examples=30)
@given(
    seeds,
    st.integers(4, 20),
    st.integers(3, 40),
    st.sampled_from((1.0, 2.0, 4.0)),
    st.sampled_from((1.0, 0.4, 0.1)),
    st.sampled_from((0.0, 1.5)),
)
def test_pumma_satisfies_corollary_4(seed, n, d, c, delta, b):
    """p = c ln d: (1 - delta) e^(-1/c) gamma_inf is reached after 4 p e^(2/c) (R_inf / (delta gamma_inf))^2 updates.

    |x|_inf <= |x|_p <= d^(1/p) |x|_inf = e^(1/c) |x|_inf, and likewise for |w|_q and |w|_1, so that Theorem 3 covers
    gamma_p >= gamma_inf and of R_p <= e^(1/c) R_inf.
    """
    X, y, _ = planted(seed, n, d, np.inf, 0.5, b)
    p = max(2.0, c * float(np.log(d)))
    rule, h = state(PUMMA(delta=delta, halving=False), X, y, problem(p, False, "free"), range(n))
    far = d ** (1.0 / p)  # e^(1/c), unless p is raised to 2
    count = count_updates(
        rule,
        h,
        n,
        np.random.default_rng(seed),
        4.0 * (p - 1.0) * (far * np.abs(X).max() / (delta * 0.5)) ** 2,
    )
    assert count > 0 or scored(h).min() > 0.0
    margin = float(scored(h).min()) / float(np.abs(weight(h)).sum())
    assert margin >= (1.0 - delta) / far * 0.5 * EXACT


@settings(max_examples=40)
@given(
    seeds,
    st.integers(4, 20),
    st.integers(2, 8),
    st.sampled_from(LINKED_EXPONENTS),
    st.sampled_from((1.0, 0.4, 0.1)),
    st.sampled_from((0.3, 3.0)),
)
def test_pumma_satisfies_theorem_5(seed, n, d, p, delta, C):
    """Updates <= (4 (p - 1) R^2 + 2 / C) (|u|_q^2 + C |xi|^2) / delta^2 for every feasible (u, b, xi).

    With own coordinates e_k / sqrt(C), theta^ = (theta, own) and G = 1/2 (|theta|_p^2 + |own|^2), section 0.1 gives
    G(theta^ + a z^) <= G(theta^) + a w^.z^ + a^2 / 2 ((p - 1) |z|_p^2 + |own coordinates of z^|^2) for z^ = the sum
    of the two reflected patterns: |z|_p <= 2 R, and its own coordinates are two of 1 / sqrt(C). So the last factor is
    at most K = 4 (p - 1) R^2 + 2 / C. The step is min 1/2 |w^|^2 with w^.z^ >= 2 and w^.theta^ >= |theta^|^2, whose
    dual at multipliers (a, 1) is 2 a + |theta^|^2 - G(theta^ + a z^) >= 1/2 |theta^|^2 + a (2 - w^.z^) - a^2 K / 2,
    and 2 - w^.z^ > delta: one pattern is tight, the other below 1 - delta, b cancels. With a = delta / K the squared
    norm grows by delta^2 / K. It never exceeds |u|_q^2 + C |xi|^2 of a feasible point, since every feasible point
    satisfies the constraints of all steps.
    """
    X, y, u = planted(seed, n, d, p, 0.5)
    rng = np.random.default_rng(seed)
    X = X + 0.5 * rng.normal(size=X.shape)  # the planted margin is lost, and in general separability
    kind = Problem("squared_hinge", 0.5 * C, p=p, intercept="free")
    R2 = float(Patterns(X).squares(p).max())
    K = 4.0 * (p - 1.0) * R2 + 2.0 / C
    points = [soft_point(X, y, u, 0.0, gamma, C) for gamma in (0.2, 0.5, 1.0, 3.0, 10.0)]
    rule, h = state(PUMMA(delta=delta, halving=False), X, y, kind, range(n))
    last, finished = 1.0 / h.number[NORM2], False
    while not finished:
        finished = True
        for k in rng.permutation(n):
            if present(rule, h, [[k]])[0]:
                now, finished = 1.0 / h.number[NORM2], False
                assert now >= (last + delta**2 / K) * EXACT
                assert now <= min(points) / EXACT
                last = now
    N2 = h.number[NORM2]
    w, b = weight(h) / N2, h.number[BIAS] / N2  # slacks are alpha_k / (C N2)
    xi = np.maximum(1.0 - y * (X @ w + b) / (1.0 - delta), 0.0) if delta < 1.0 else None
    if xi is not None:
        w = w / (1.0 - delta)
        objective = p_norm(w, p / (p - 1.0)) ** 2 + C * float(xi @ xi)
        assert objective <= 1.0 / N2 / (1.0 - delta) ** 2 / EXACT  # at most (1 - delta)^-2 times the optimum


@settings(max_examples=40)
@given(
    seeds,
    st.integers(4, 20),
    st.integers(2, 8),
    st.sampled_from(EXPONENTS),
    st.sampled_from((0.0, 0.3, 0.7)),
    st.sampled_from((0.0, 1.5)),
    st.booleans(),
)
def test_fmp_updates_and_margin_satisfy_the_bound(seed, n, d, p, share, b, free):
    """((R_2 + gamma G)^2 + c^2) (|u|_2^2 + b*^2 / c^2) / (gamma* - gamma)^2 updates; then the margin is above gamma."""
    b = b if free else 0.0
    X, y, u = planted(seed, n, d, p, 0.5, b)
    kind = problem(p, False, "free" if free else "none")
    statistics = facts(kind, X)
    rule, h = state(FMP(gamma=share * 0.5 / statistics.R), X, y, kind, range(n))
    gamma, c2, G = share * 0.5, rule.constant2, float(d) ** max(0.0, 0.5 - 1.0 / p)
    assert rule.gamma == pytest.approx(gamma)
    most = ((np.sqrt(statistics.length2) + gamma * G) ** 2 + c2) * (
        float(u @ u) + (b * b / c2 if free else 0.0)
    )
    count_updates(rule, h, n, np.random.default_rng(seed), most / (0.5 - gamma) ** 2 / EXACT)
    size = p_norm(weight(h), kind.q)
    assert float((y * (X @ weight(h) + h.number[BIAS])).min()) / size >= gamma * EXACT


@settings(max_examples=25)
@given(
    seeds,
    st.integers(4, 12),
    st.integers(2, 6),
    st.sampled_from(EXPONENTS),
    st.sampled_from((1.0, 1.2)),
    st.booleans(),
    st.booleans(),
)
def test_failed_fmp_runs_prove_an_upper_bound(seed, n, d, p, share, free, soft):
    """|sum n_k l_k x_k|_p <= T gamma + |w|_p; balanced, it bounds every margin from above and approaches gamma."""
    X, y, _ = planted(seed, n, d, p, 0.5)
    kind = Problem("squared_hinge", 5.0 if soft else np.inf, p=p, intercept="free" if free else "none")
    delta2 = kind.delta2(np.ones(n))
    rule, h = state(FMP(gamma=1.0), X, y, kind, range(n))
    optimum = 0.5 if not soft else 0.5 + delta2[0]  # an upper bound on margins of the extended patterns
    rule = rule._replace(gamma=share * optimum)
    moved, _ = present(rule, h, [np.random.default_rng(seed).permutation(n) for _ in range(3000)])
    counts = np.bincount(moved, minlength=n).astype(float)
    T = counts.sum()
    if p != 2.0:
        assert dual(h).tolist() == counts.tolist()
    assert p_norm((counts * y) @ X, p) <= (T * rule.gamma + p_norm(weight(h), p)) / EXACT
    alpha = kind.balanced(y, dual(h)) if free else dual(h)
    assert alpha is not None
    bound = np.sqrt(p_norm((alpha * y) @ X, p) ** 2 + delta2 @ alpha**2) / alpha.sum()
    if not soft:
        assert bound >= 0.5 * EXACT
    if len(moved) > 1000:
        assert bound <= 1.25 * rule.gamma


# IMA: whole runs


def run_of(algorithm, X, y, kind: Problem, tol: float = 1e-9, most: int = 3000, start=None) -> Run:
    """A run until it has converged or is within tol."""
    task = Task(kind, Patterns(X), y, np.ones(len(y)), start)
    run = Run(task, algorithm, tol, np.random.default_rng(0), lambda: False)
    for k, _ in enumerate(SCHEDULES[algorithm.schedule](run)):
        if run.converged or run.best.gap <= tol or k >= most:
            break
    return run


@settings(max_examples=12)
@given(
    seeds,
    st.integers(4, 20),
    st.integers(2, 8),
    st.sampled_from(LINKED_EXPONENTS),
    st.booleans(),
    st.booleans(),
)
def test_alma_satisfies_its_bound_from_any_dual_weights(seed, n, d, p, soft, normalise):
    """The number of updates, initial ones included, and the margin satisfy the theorem."""
    X, y, _ = planted(seed, n, d, p, 0.5)
    rng = np.random.default_rng(seed)
    start = rng.random(n) * (rng.random(n) < 0.7)
    start[0] = 1.0
    kind, rule = problem(p, soft, "none"), ALMA(alpha=0.6, normalise=normalise)
    run = run_of(rule, X, y, kind, 1e-12, 10**5, start)
    assert run.converged
    k, sizes = float(run.h.number[TIME]), np.sqrt(run.h.square) if normalise else facts(kind, X).R
    rows = y[:, None] * X
    if soft:
        rows = np.hstack([rows, np.diag(np.sqrt(kind.delta2(np.ones(n))))])
    u = weight(run.h)
    own = kind.delta2(np.ones(n)) ** 0.5 * dual(run.h)
    margins = (rows @ np.append(u, own) if soft else rows @ u) / sizes
    reached = float(margins.min()) / run.h.number[NORM2] ** 0.5
    cold = run_of(rule, X, y, kind, 1e-12, 10**5)
    optimum = max(reached, float((scored(cold.h) / sizes).min()) / cold.h.number[NORM2] ** 0.5)
    assert k <= 2.0 * (p - 1.0) / optimum**2 * (2.0 / 0.6 - 1.0) ** 2 + 8.0 / 0.6 - 4.0
    assert reached >= 0.4 * optimum
    assert run.best.lower >= 0.0 < run.best.upper


def test_alma_warm_start_at_its_end_makes_no_step():
    """Its step counter is at least 0.99 times the number of updates that reached the start."""
    X, y, _ = planted(1, 30, 6, 3.0, 0.2)
    kind = problem(3.0, False, "none")
    cold = run_of(ALMA(alpha=0.2), X, y, kind)
    warm = run_of(ALMA(alpha=0.2), X, y, kind, start=cold.h.scale.to_dual(cold.h.alpha))
    assert cold.steps > 1000
    assert warm.steps == 0
    assert warm.h.number[TIME] >= 0.99 * cold.steps


@pytest.mark.parametrize("k", [1, 2, 50, 2099, 2100, 2101, 3000, 10**5])
def test_elapsed_inverts_the_growth_of_alma(k):
    """The largest k with s_k at most the given sum: exact below 2100, at least 0.99 k above."""
    eta, growth, s = 0.5, 20.0, 0.0
    for j in range(1, k):
        s = (s + eta * j**-0.5) / (1.0 + growth / j) ** 0.5
    least, most = (k - 1, k - 1) if k < 2100 else (0.99 * k, k)
    assert least <= elapsed(s, eta, growth) <= most


@pytest.mark.parametrize("p", EXPONENTS)
@pytest.mark.parametrize("free", [True, False])
def test_ima_margin_is_within_alpha_of_the_optimum(p, free):
    for seed in range(3):
        X, y, _ = planted(seed, 30, 6, p, 0.5)
        run = run_of(IMA(alpha=0.1), X, y, problem(p, False, "free" if free else "none"))
        assert run.converged
        assert 0.9 * 0.5 <= run.best.lower <= 0.5 / EXACT <= run.best.upper / EXACT**2


@pytest.mark.parametrize("p", [1.0, np.inf])
def test_ima_agrees_with_the_linear_program(p):
    rng = np.random.default_rng(4)
    y = np.where(np.arange(30) % 2 == 0, 1.0, -1.0)
    X = rng.normal(size=(30, 40)) + 0.5 * y[:, None]
    A = y[:, None] * np.hstack([X, -X, np.ones((30, 1)), -np.ones((30, 1))])
    if p == np.inf:  # min |w|_1
        done = linprog(np.r_[np.ones(80), 0.0, 0.0], A_ub=-A, b_ub=-np.ones(30))
    else:  # min |w|_inf
        last = np.hstack([np.eye(40), np.eye(40), np.zeros((40, 2)), -np.ones((40, 1))])
        done = linprog(
            np.r_[np.zeros(82), 1.0],
            A_ub=np.vstack([np.hstack([-A, np.zeros((30, 1))]), last]),
            b_ub=np.r_[-np.ones(30), np.zeros(40)],
        )
    best = 1.0 / done.fun
    run = run_of(IMA(), X, y, problem(p, False, "free"), tol=0.03)
    assert 0.97 * best <= run.best.lower <= best / EXACT
    assert best * EXACT <= run.best.upper <= best / 0.97


@pytest.mark.parametrize("p", EXPONENTS)
def test_ima_certifies_the_soft_margin(p):
    rng = np.random.default_rng(5)
    y = np.where(np.arange(40) % 2 == 0, 1.0, -1.0)
    X = rng.normal(size=(40, 6)) + 0.4 * y[:, None]
    run = run_of(IMA(), X, y, Problem("squared_hinge", 1.0, p=p), tol=0.05)
    assert run.best.gap <= 0.05
    if FlexibleIMA().refuses(run.problem):
        return
    other = run_of(FlexibleIMA(), X, y, Problem("squared_hinge", 1.0, p=p), tol=1e-9)
    assert other.converged  # its own criterion ends it, with valid bounds
    assert other.best.upper >= run.best.lower * EXACT
    assert other.best.lower <= run.best.upper / EXACT


def test_budget_ends_ima():
    X, y, _ = planted(7, 30, 6, 3.0, 0.5)
    run = run_of(IMA(increment=0.02, budget=200), X, y, problem(3.0, False, "free"))
    assert run.converged
    assert 0.3 < run.best.lower <= 0.5 / EXACT


# supported problems


def test_refusals_name_algorithms_for_the_norm():
    for name, cls in ALGORITHMS.items():
        if cls.schedules[0] == "points":
            continue  # exact solvers of other norms
        hard, soft = (Problem("squared_hinge", C, p=np.inf) for C in (np.inf, 1.0))
        if name in ("ima", "fmp", "flexible-ima"):
            assert cls().refuses(soft) is None
            assert cls().refuses(Problem("squared_hinge", 1.0)) is None
            assert (cls().refuses(hard) is None) == (name != "flexible-ima")
            assert cls().refuses(Problem("squared_hinge", 1.0, p=1.0, power=1)) == "norm_power=2"
        elif name in ("alma", "pumma"):
            assert 'p="log"' in cls().refuses(hard)
            assert "ima" in cls().refuses(Problem("squared_hinge", 1.0, p=1.5))
            assert cls().refuses(Problem("squared_hinge", 1.0, p=6.8)) is None
        else:
            kind = Problem("hinge", 1.0 if cls().refuses(Problem("hinge", 1.0)) is None else np.inf, p=3.0)
            assert "pumma" in (cls().refuses(kind) or "")


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: FMP(gamma=-1.0), "gamma must be a number of at least 0"),
        (lambda: FMP(constant=0.0), "constant must be a positive number or None"),
        (lambda: IMA(alpha=1.0), "alpha must lie between 0 and 1"),
        (lambda: IMA(increment=0.0), "increment must be a positive number"),
        (lambda: IMA(budget=0), "budget must be a whole number"),
    ],
)
def test_invalid_parameters_are_refused(make, message):
    with pytest.raises(ValueError, match=message):
        make()
