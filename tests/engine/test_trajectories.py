"""Steps of every rule equal those of its naive version, for every problem, norm and storage."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
import scipy.sparse as sp
from effort import THOROUGH, interpreted
from naive import BUSY, NAIVE, alma_p, fmp, p_norm, pegasos, pumma_p, replay
from presenting import ONE_BY_ONE, WHOLE, bias, dual, facts, opened, packed, present, reflected, scored

from maxmargin import Problem, Status
from maxmargin.algorithms import ALGORITHMS, MPU, PUMMA, Bias, Facts, Pegasos
from maxmargin.algorithms.normalised.base import NormalisedAlgorithm
from maxmargin.algorithms.online.dual_coordinate_descent import Descend
from maxmargin.algorithms.online.mpu import Unlearn
from maxmargin.data.rows import Patterns
from maxmargin.engine.state import FACTOR, NORM2, Motion, Scaled, refresh
from maxmargin.engine.sweep import batches

HARD, FREE = (Problem("hinge", np.inf, intercept=intercept) for intercept in ("none", "free"))
PROBLEMS = [
    HARD,
    FREE,
    Problem("hinge", 0.75, intercept="none"),
    Problem("hinge", 2.0, intercept="augmented", intercept_scaling=1.5),
    Problem("squared_hinge", 0.5, intercept="none"),
    Problem("squared_hinge", 2.0, intercept="augmented", intercept_scaling=1.5),
    Problem("squared_hinge", 0.5, intercept="free"),
]
EUCLIDEAN = [
    (name, problem, False)
    for name in ONE_BY_ONE
    for problem in PROBLEMS
    if ALGORITHMS[name]().refuses(problem) is None and problem.free == (ALGORITHMS[name].bias is Bias.OWN)
]
LINKED, EXPONENTS = (2.5, 6.8, 100.0), (1.0, 1.5, 3.0, np.inf)


def in_norm(p: float, soft: bool, intercept: str) -> Problem:
    """A problem in another norm."""
    return Problem("squared_hinge", 3.0 if soft else np.inf, p=p, intercept=intercept)


OTHER_NORMS = [
    *(("alma", in_norm(p, soft, "none"), False) for p in LINKED for soft in (False, True)),
    *(("pumma", in_norm(p, soft, "free"), False) for p in LINKED for soft in (False, True)),
    *(
        ("fmp", in_norm(p, soft, ("none", "free")[k % 2]), False)
        for k, p in enumerate(EXPONENTS)
        for soft in (0, 1)
    ),
    *(("fmp", in_norm(p, True, ("free", "none")[k % 2]), True) for k, p in enumerate((2.0, *EXPONENTS))),
]
STORES = {
    "dense": np.asarray,
    "csr": sp.csr_matrix,
    "float32": lambda X: X.astype(np.float32),
    "float32 csr": lambda X: sp.csr_matrix(X.astype(np.float32)),
}
N, D = 8, 4


def rows(rng, kind: str):
    """Rows and labels of two overlapping classes: numbers in single precision, small integers, or 0 and 1."""
    y = np.where(np.arange(N) % 3 == 0, 1.0, -1.0)
    X = rng.normal(size=(N, D)) + 0.5 * y[:, None]
    if kind == "binary":
        X = (X > 0.0).astype(float)
        X[~X.any(axis=1), 0] = 1.0
        return X, y
    return (np.rint(2.0 * X) if kind == "integer" else X.astype(np.float32).astype(float)), y


def orders(rng):
    """A full pass, two passes over some rows, and a full pass.

    No row is presented twice in succession, as the second score would be on the threshold.
    """
    while True:
        some = rng.permutation(N)[:5]
        out = [rng.permutation(N), some, some, rng.permutation(N)]
        if all(a[-1] != b[0] for a, b in pairwise(out)):
            return out


def naive_run(name, rule, X, y, problem, s, order, caps, flexible):
    """The naive version of a rule."""
    delta2 = problem.delta2(s)
    if problem.p == 2.0 and not flexible:
        Y = reflected(X, y, problem.rho, delta2 if delta2.any() else None)
        return replay(name, Y, y, order, caps, rule)
    Y, p = y[:, None] * X, problem.p
    if name == "alma":  # B = sqrt(8) / alpha, C = sqrt(2), as in the theorem
        alpha = BUSY["alma"]["alpha"]
        return alma_p(Y, delta2, order, (1.0 - alpha) * 8.0**0.5 / alpha, 2.0**0.5, rule.R, p)
    if name == "pumma":
        return pumma_p(Y, delta2, order, rule.delta, y, p)
    return fmp(Y, delta2, order, rule.gamma, 1.0, rule.constant2, y, p, flexible)


def compare(name, problem, flexible, stores, seeds) -> None:
    """Compare runs on random data with the naive version.

    A decision within 1e-9 of its threshold depends on rounding: such data are skipped. Integers have no rounding in the
    Perceptron and in MPU, which then agree bit by bit, ties included.
    """
    algorithm = ALGORITHMS[name](**BUSY.get(name, {}))
    steps = compared = 0
    for seed in range(seeds):
        rng = np.random.default_rng([seed, 5])
        kind = ("real", "real", "integer", "binary")[seed % 4]
        X, y = rows(rng, kind)
        s = 10.0 ** rng.uniform(-1, 1, N) if kind == "real" and problem.p == 2.0 else np.ones(N)
        plan = algorithm.plan(facts(problem, X, s))
        exact = kind != "real" and name in WHOLE and name != "dcd" and problem.C != 0.75
        rule, unit = plan.rule, plan.unit or 1.0
        if exact and name == "mpu":
            rule, unit = Unlearn(256.0, 128.0), 256.0
        turns, caps = orders(rng), problem.caps(s) * unit
        if name == "pumma" and problem.p > 2.0 and kind == "binary":
            continue  # segments on which the norm is constant to rounding: their nearest points are not unique
        expected = naive_run(name, rule, X, y, problem, s, np.concatenate(turns), caps, flexible)
        if expected.nearest <= 1e-9 and not exact:
            continue
        compared += 1
        motion = Motion.FLEXIBLE if flexible else algorithm.motion
        for stored in [sp.csr_matrix(X)] if kind == "binary" else [store(X) for store in stores]:
            if name == "pumma" and stored.dtype == np.float32 and not sp.issparse(stored):
                continue  # the inner product of two such rows is computed in single precision
            h = Patterns(stored).engine_state(
                problem, y, s, unit, problem.rho, algorithm.scale, algorithm.bias is Bias.OWN, motion=motion
            )
            opened(rule, h, turns[0])
            moved = present(rule, h, turns[:1])[0]
            some = packed(h, turns[1])
            moved += [int(turns[1][k]) for k in present(rule, some, [range(turns[1].size)] * 2)[0]]
            moved += present(rule, h, turns[3:])[0]
            assert moved == expected.moved
            size = np.abs(expected.weights).max()
            w, alpha = h.number[FACTOR] * h.space.vector.w, np.asarray(h.scale.to_dual(h.alpha))
            # about thirty steps, each with a few roundings; powers with p = 100 lose two digits
            near = 1e-12 if problem.p == 2.0 else 1e-10
            share = 0.0 if exact else near
            np.testing.assert_allclose(w, expected.weights[: w.size], rtol=0.0, atol=share * size)
            np.testing.assert_allclose(alpha, expected.dual, rtol=0.0, atol=share * expected.dual.max())
            assert (alpha <= h.cap).all()  # caps are reached exactly
            assert bias(h) == pytest.approx(expected.bias, rel=near, abs=near * size)
            if algorithm.scale is Scaled and not flexible and (name != "fmp" or problem.p == 2.0):
                norm2 = p_norm(expected.weights, problem.q) ** 2
                norm2 += problem.delta2(s) @ expected.dual**2 if problem.p != 2.0 else 0.0
                assert h.number[NORM2] == pytest.approx(norm2, rel=10.0 * near)  # by a recurrence
        steps += len(expected.moved)
    assert compared >= seeds // 4
    assert steps >= (1 if name == "romma" else 4) * compared  # ROMMA learns from mistakes only


def test_every_rule_has_a_naive_version():
    """Others are compared elsewhere; IMA repeats FMP."""
    assert set(NAIVE) == set(ONE_BY_ONE)
    others = {"pegasos", "ima", "flexible-ima"}
    programs = {"lp", "interior-point", "proximal-point", "newton"}
    programs |= {"proximal-newton"}
    programs |= {name for name, cls in ALGORITHMS.items() if issubclass(cls, NormalisedAlgorithm)}
    assert set(ALGORITHMS) - set(NAIVE) == others | programs


@interpreted
@pytest.mark.parametrize(("name", "problem", "flexible"), EUCLIDEAN + OTHER_NORMS, ids=str)
def test_trajectory_equals_the_naive_one(name, problem, flexible):
    compare(name, problem, flexible, STORES.values(), 40 if THOROUGH else 12)


@interpreted
@pytest.mark.parametrize("size", [1e-150, 1e150])
@pytest.mark.parametrize(("name", "p"), [("alma", 2.5), ("alma", 100.0), ("pumma", 2.5), ("pumma", 100.0)])
def test_steps_do_not_depend_on_the_unit_of_the_data(name, p, size):
    """No power over- or underflows: the same steps, and w in proportion."""
    X, y = rows(np.random.default_rng(0), "real")
    intercept, order = "free" if name == "pumma" else "none", np.arange(N)
    for soft in (False, True):
        runs = []
        for unit in (1.0, size):
            problem = Problem(
                "squared_hinge", 3.0 / unit / unit if soft else np.inf, p=p, intercept=intercept
            )
            algorithm = ALGORITHMS[name](**BUSY[name])
            rule = algorithm.plan(facts(problem, X * unit)).rule
            h = Patterns(X * unit).engine_state(problem, y, np.ones(N), 1.0, 0.0, Scaled, name == "pumma")
            opened(rule, h, order)
            moved = present(rule, h, [order] * 4)[0]
            runs.append((moved, h.number[FACTOR] * h.space.vector.w / (unit if name == "pumma" else 1.0)))
        assert runs[0][0] == runs[1][0]
        np.testing.assert_allclose(runs[1][1], runs[0][1], rtol=0.0, atol=1e-10 * np.abs(runs[0][1]).max())


@interpreted
@pytest.mark.parametrize("p", [3.0, 100.0])
def test_running_sums_equal_recomputed_sums(p):
    """After hundreds of updates the norm is that of theta, and theta the sum of patterns by the dual weights."""
    rng = np.random.default_rng(1)
    X = rng.normal(size=(40, 12))
    y = np.where(X[:, 0] > 0.0, 1.0, -1.0)
    X[:, 0] += 0.3 * y
    problem = in_norm(p, True, "free")
    rule = PUMMA(delta=1e-4, halving=False).plan(facts(problem, X)).rule
    h = Patterns(X).engine_state(problem, y, np.ones(40), 1.0, 0.0, Scaled, True)
    opened(rule, h, range(40))
    assert len(present(rule, h, [rng.permutation(40) for _ in range(60)])[0]) > 300
    theta, alpha = h.number[0] * h.space.vector.theta, np.asarray(h.scale.to_dual(h.alpha))
    exact = p_norm(theta, p) ** 2 + problem.delta2(np.ones(40)) @ alpha**2
    assert h.number[NORM2] == pytest.approx(exact, rel=1e-11, abs=0.0)  # hundreds of roundings, times p
    np.testing.assert_allclose(theta, (alpha * y) @ X, rtol=0.0, atol=1e-12 * np.abs(theta).max())
    before = scored(h)
    refresh(h)
    assert h.number[NORM2] == pytest.approx(exact, rel=1e-13, abs=0.0)
    np.testing.assert_allclose(scored(h), before, rtol=0.0, atol=1e-12 * np.abs(before).max())


@interpreted
@pytest.mark.parametrize("projection", [False, True])
@pytest.mark.parametrize(
    "problem", [PROBLEMS[2], PROBLEMS[3], Problem("hinge", 0.05, intercept="free")], ids=str
)
def test_pegasos_trajectory_equals_the_naive_one(problem, projection):
    """One call of several batches, the last of them smaller than k."""
    compared = 0
    for seed in range(8):
        rng = np.random.default_rng(seed)
        X, y = rows(rng, "binary" if seed % 4 == 3 else "real")
        s, k, rho = 10.0 ** rng.uniform(-1, 1, N), (1, 5)[seed % 2], problem.rho or 1.5 * problem.free
        drawn = rng.integers(N, size=(33, 48)[seed % 2], dtype=np.uint32)
        Y, caps = reflected(X, y, rho), problem.caps(s)
        expected = pegasos(Y, caps, [drawn[i : i + k] for i in range(0, drawn.size, k)], k, projection)
        if expected.nearest < 1e-9:
            continue
        compared += 1
        rule = (
            Pegasos(k, projection=projection)
            .plan(Facts(problem, 1.0, 0.1, n=N, losses=float(caps.sum())))
            .rule
        )
        for store in (np.asarray, sp.csr_matrix):
            h = Patterns(store(X)).engine_state(problem, y, s, 1.0, rho, Scaled)
            batches(rule, h, drawn, np.empty(k))
            assert h.norm2() == pytest.approx(expected.weights @ expected.weights, rel=1e-9) or not projection
            refresh(h)
            assert h.space.vector.w == pytest.approx(expected.weights, rel=1e-11, abs=1e-12)
            assert dual(h) == pytest.approx(expected.dual, rel=1e-11, abs=1e-12)
            assert h.time() == -(-drawn.size // k)
    assert compared >= 3


@interpreted
@pytest.mark.parametrize(("loss", "C"), [("hinge", 0.75), ("squared_hinge", 0.5), ("hinge", np.inf)], ids=str)
def test_mpu_in_cyclic_order_equals_algorithm_1(loss, C):
    """Full passes in the order of the data; the counts, the accuracy after the run and the last w are those of it."""
    problem, algorithm = Problem(loss, C, intercept="none"), MPU(0.03, 2.7, schedule="plain", shuffle=False)
    compared = 0
    for seed in range(6):
        X, y = rows(np.random.default_rng(seed), "real")
        X[:, 0] += 2.0 * y * problem.hard  # separable
        rule, delta2 = algorithm.plan(facts(problem, X)).rule, problem.delta2(np.ones(N))
        Y, caps = reflected(X, y, 0.0, delta2 if delta2.any() else None), problem.caps(np.ones(N)) * rule.b
        expected = NAIVE["mpu"](Y, list(range(N)) * 400, caps, *rule)
        if expected.nearest <= 1e-9:
            continue
        compared += 1
        a, w = expected.weights, expected.weights[:D]
        run = algorithm.run(X, y, C, loss=loss)
        assert run.status is Status.CONVERGED
        assert (run.parameters["t_plus"], run.parameters["t_minus"]) == (expected.learnt, expected.unlearnt)
        assert run.n_updates == len(expected.moved)
        np.testing.assert_array_equal(run.alpha, expected.dual)
        primal = 0.5 * a @ a + np.minimum(caps, 1e9) @ np.maximum(rule.b - Y @ a, 0.0)
        bound = primal / (rule.b * (expected.learnt - expected.unlearnt) - 0.5 * a @ a) - 1.0
        if problem.cap == np.inf:
            bound = 1.0 - (Y @ a).min() / (a @ a) * (expected.learnt - expected.unlearnt)
        assert run.parameters["after_run_accuracy"] == pytest.approx(bound, rel=1e-9, abs=1e-12)
        assert bound < 0.06  # 2 delta, as of the 1-norm soft margin before the run
        np.testing.assert_allclose(run.w, w, rtol=1e-9, atol=0.0)
    assert compared >= 3


@interpreted
@pytest.mark.parametrize("score", [40.0, 42.0, 68.0, 70.0, 72.0, 74.0])
def test_mpu_updates_at_its_thresholds_as_stated(score):
    """a.y = b is learnt and a.y = b + db is unlearnt, both once; scores between them cause no update."""
    change = {40.0: 1.0, 70.0: -1.0, 72.0: -1.0, 74.0: -2.0}.get(score, 0.0)
    for dual_weight in (5.0, 0.0):  # at 0 there is nothing to unlearn
        h = Patterns(np.array([[2.0, 0.0], [0.0, 1.0]])).engine_state(
            HARD, np.array([1.0, -1.0]), np.ones(2), 1.0, 0.0
        )
        h.space.vector.w[0], h.alpha[0] = score / 2.0, dual_weight
        expected = change if dual_weight or change > 0.0 else 0.0
        assert present(Unlearn(40.0, 30.0), h, [[0]])[0] == ([0] if expected else [])
        assert h.alpha[0] == dual_weight + expected
        assert h.space.vector.w[0] == score / 2.0 + 2.0 * expected


@interpreted
@pytest.mark.parametrize("rule", [Unlearn(256.0, 128.0), Descend(1.0)], ids=lambda rule: type(rule).__name__)
def test_zero_pattern_reaches_its_cap_in_one_presentation(rule):
    X, y, s = np.array([[1.0, 2.0], [0.0, 0.0]]), np.array([1.0, -1.0]), np.array([1.0, 3.0])
    h = Patterns(X).engine_state(Problem("hinge", 0.5, intercept="none"), y, s, 2.0, 0.0)
    assert present(rule, h, [[1], [1]])[0] == [1]
    assert h.alpha[1] == 3.0
    assert not h.space.vector.w.any()


@interpreted
def test_more_updates_of_mpu_than_an_int64_holds():
    """The row (1e-10) takes 3e24 updates at once."""
    run = MPU(schedule="plain", shuffle=False).run([[1e-10], [-1.0]], [1, -1], 1e60, max_epochs=5)
    assert run.parameters["t_plus"] > 2.0**63


@interpreted
def test_updates_from_a_weight_that_points_away_are_within_the_limit_of_ima():
    """The limit grows with the length of the start; the largest margin is 1, at least (1 + alpha / 2) gamma."""
    X, y, problem = np.array([[1.0], [-1.0]]), np.array([1.0, -1.0]), Problem("hinge", np.inf, 2.0, "none")
    most = ALGORITHMS["ima"](alpha=0.8).plan(facts(problem, X)).settings.max_updates
    for length in (0.0, 1e3):
        h = Patterns(X).engine_state(problem, y, np.ones(2), 1.0, 0.0, Scaled, True, Motion.SUBGRADIENT)
        rule = ALGORITHMS["fmp"](gamma=0.7).plan(facts(problem, X)).rule
        h.space.vector.w[:] = -length
        refresh(h)
        assert len(present(rule, h, 2000 * [range(2)])[0]) <= most(0.7, 1.0, length**2)
        w = h.number[FACTOR] * h.space.vector.w
        assert scored(h).min() > 0.7 * np.abs(w).max() * (1.0 - 1e-10)
