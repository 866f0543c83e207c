"""Rules of the Perceptron family: published numbers of updates, and bounds of their theorems."""

from __future__ import annotations

import gzip
from collections.abc import Iterator
from fractions import Fraction
from functools import cache
from itertools import product

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from naive import aggressive_romma, pumma, pumma_printed, romma_printed
from oracle import optimum
from presenting import bias, dual, opened, plan, present, reflected, scored, start, weight
from scipy.optimize import brentq
from sklearn.datasets import load_svmlight_file

from maxmargin import MaxMarginClassifier, Perceptron, Problem, Status
from maxmargin.algorithms import ALMA, CRAMMA, PUMMA, AggressiveROMMA
from maxmargin.engine.state import NORM2
from maxmargin.problem.intercept import best_multiple_and_intercept

HARD = Problem("hinge", np.inf, intercept="none")
FREE = Problem("hinge", np.inf, intercept="free")
seeds = st.integers(0, 2**20)


# published numbers of updates: P. Tsampouka, J. Shawe-Taylor, ECML 2006, tables 1 to 4


@cache
def published(folder, name: str) -> tuple[np.ndarray, np.ndarray, float, float]:
    """(X, y, constant coordinate, C) of a table; C = 1 / (2 Delta^2), infinite without a Delta."""
    if name == "sonar":  # the starred mines and then the starred rocks, in the order of the original files
        X, y = load_svmlight_file(str(folder / "sonar" / "sonar-aspect.train.svm.gz"))
        return X.toarray(), y, 1.0, np.inf
    with gzip.open(folder / "wbc" / "breast-cancer-wisconsin.data.gz", "rt") as file:
        rows = [line.strip().split(",") for line in file if line.strip() and "?" not in line]
    table = np.array(rows, float)
    X, y = np.ascontiguousarray(table[:, 1:-1]), np.where(table[:, -1] == 4.0, 1.0, -1.0)
    if name == "extended":
        return X, y, 10.0, 0.5
    out = np.array([2, 4, 191, 217, 227, 245, 252, 286, 307, 420, 475]) - 1
    return np.delete(X, out, axis=0), np.delete(y, out), 30.0, np.inf


IN_ORDER = {"shuffle": False, "schedule": "plain"}


def perceptron_rule(b):
    return Perceptron(b=b, **IN_ORDER)


def alma_rule(alpha):
    return ALMA(alpha=alpha, **IN_ORDER)


def cramma_rule(eta):
    return lambda beta: CRAMMA(beta=beta, eta=eta / beta, **IN_ORDER)


def cramma_rule_epsilon_2(beta):
    return CRAMMA(beta=beta, eta=0.4 * beta**-0.3, epsilon=2.0, **IN_ORDER)


EXTENDED = 1.7 / (917.0 * 683.0) ** 0.5  # 1.7 Delta / (R sqrt(m))
COUNTS = [
    # table 1; the count of the Perceptron is its updates, that of ALMA and CRAMMA a counter that begins with 1
    *(("sonar", perceptron_rule, b, t) for b, t in ((1.0, 247_140), (3.1, 660_698), (5.4, 1_117_124))),
    *(("sonar", alma_rule, a, t - 1) for a, t in ((0.75, 415_119), (0.55, 1_584_785), (0.45, 3_133_968))),
    *(
        ("sonar", cramma_rule(0.001), beta, t - 1)
        for beta, t in (
            (0.73, 248_267),
            (1.52, 669_170),
            (2.0, 1_047_757),
            (3.0, 2_143_989),
            (3.45, 2_762_005),
        )
    ),
    # table 2
    *(
        ("sonar", cramma_rule_epsilon_2, beta, t - 1)
        for beta, t in ((1e6, 70_798), (1e7, 106_507), (1e8, 264_396), (1e9, 756_035), (1e10, 2_275_334))
    ),
    # table 3
    *(("wbc", perceptron_rule, b, t) for b, t in ((0.52, 1_718_705), (0.9, 2_720_447))),
    ("wbc", alma_rule, 0.8, 2_704_553 - 1),
    *(
        ("wbc", cramma_rule(1e-4), beta, t - 1)
        for beta, t in (
            (0.22, 259_036),
            (0.32, 431_543),
            (0.42, 660_486),
            (0.49, 824_120),
            (0.8, 2_044_555),
        )
    ),
    # table 4, where the count of the Perceptron is one more than its updates as well; ties: b = c R^2, without a root
    *(("extended", perceptron_rule, b, t - 1) for b, t in ((1.0, 67_913), (10.0, 560_591))),
    ("extended", alma_rule, 0.75, 79_061 - 1),
    ("extended", cramma_rule(EXTENDED), 0.95, 80_671 - 1),
]


@pytest.mark.parametrize(("name", "rule", "parameter", "count"), COUNTS)
def test_published_numbers_of_updates_are_reproduced(data_folder, name, rule, parameter, count):
    X, y, rho, C = published(data_folder, name)
    model = MaxMarginClassifier(
        C, intercept="augmented", intercept_scaling=rho, algorithm=rule(parameter), max_iter=10**6, tol=1e-9
    ).fit(X, y)
    assert model.status_ is Status.CONVERGED
    assert model.history_[-1].steps == count


# theorems


def separable(seed: int, n: int, d: int, kind: Problem = HARD, fraction: float = 20.0):
    """Integer patterns of a problem with a known optimum: (X, y, R^2, largest margin, from below and from above).

    For the 2-norm soft margin these are of the extended patterns: the optimum of the objective is 1 / (2 Gamma^2).
    """
    rng = np.random.default_rng(seed)
    u = rng.normal(size=d)
    y = np.where(rng.random(n) < 0.5, 1.0, -1.0)
    y[:2] = 1.0, -1.0
    X = np.rint(3.0 * (rng.normal(size=(n, d)) + 1.5 * y[:, None] * u / np.linalg.norm(u)))
    ones = np.ones(n)
    exact = optimum(kind, X, y, ones)
    R2 = float(((X * X).sum(axis=1) + kind.delta2(ones)).max()) + kind.rho**2
    if kind.hard:
        low, high = float(exact.lower), float(exact.upper)
    else:
        low, high = (2.0 * float(exact.upper)) ** -0.5, (2.0 * float(exact.lower)) ** -0.5
    assume(low > R2**0.5 / fraction)
    assert high - low < 1e-8 * high
    return X, y, R2, low, high


def state(name: str, X, y, kind: Problem, order, **options):
    """(rule, weight) before the first presentation."""
    p = plan(name, kind, X, rho=kind.rho, **options)
    h = start(X, y, kind, 1.0, kind.rho, name=name)
    return p.rule, opened(p.rule, h, order)


def update_rows(rule, h, n: int, rng, most: float) -> Iterator[int]:
    """Yield the row of every update until a full pass makes none; rows in random orders."""
    made, converged = 0, False
    while not converged:
        converged = True
        for k in rng.permutation(n):
            if present(rule, h, [[k]])[0]:
                made, converged = made + 1, False
                assert made <= most
                yield int(k)


def updates(rule, h, n: int, rng, most: float) -> int:
    """Return the number of updates until a full pass makes none; check that it is at most `most`."""
    made = 0
    while True:
        moved, _ = present(rule, h, [rng.permutation(n)])
        if not moved:
            return made
        made += len(moved)
        assert made <= most


def directional_margin(h) -> float:
    """min a.y_k / |a|, own coordinates included."""
    a, own = weight(h), 0.0
    if hasattr(h.slack, "delta2"):
        own = float(h.slack.delta2 @ dual(h) ** 2)
    return float(scored(h).min()) / (float(a @ a) + own) ** 0.5


SPACES = (
    HARD,
    Problem("hinge", np.inf, intercept="augmented", intercept_scaling=2.0),
    Problem("squared_hinge", 0.125, intercept="none"),
    Problem("squared_hinge", 0.5, intercept="augmented", intercept_scaling=2.0),
)
ROUNDING = 1.0 - 1e-11  # rounding of the run


def cramma_bound(beta: float, epsilon: float, eta: float, g: float) -> tuple[float, float]:
    """(most updates, least margin / gamma_d) of theorem 1, g = gamma_d / R, beta in units of R; equation (19)."""
    chi, om = 1.0 - 0.5 * eta * (1.0 + eta) / g, eta * (1.0 + eta) * g
    right = beta ** (-1.0 / epsilon) * g ** (1.0 / epsilon - 1.0) * (1.0 + om) / eta

    def excess(tau):
        power = (
            np.log1p(tau) if epsilon == 1.0 else np.expm1((1.0 - epsilon) * np.log1p(tau)) / (1.0 - epsilon)
        )
        return chi * tau - (1.0 + eta) * power - right

    low, high = ((1.0 + eta) / chi) ** (1.0 / epsilon) - 1.0, 1.0
    while excess(high) <= 0.0 or high <= low:
        high *= 2.0
    tau = brentq(excess, low, high, xtol=1e-12, rtol=1e-14)
    if epsilon == 0.5:
        q = (1.0 + eta) / chi
        closed = (q + ((q - 1.0) ** 2 + g * (1.0 + om) / (chi * eta * beta**2)) ** 0.5) ** 2 - 1.0
        assert tau == pytest.approx(closed, rel=1e-9)
    return (beta / g) ** (1.0 / epsilon) * (1.0 + tau), (1.0 + tau) ** -epsilon


@settings(max_examples=60)
@given(
    seeds,
    st.integers(3, 20),
    st.integers(1, 5),
    st.sampled_from(SPACES),
    st.sampled_from((0.5, 0.7, 1.0, 2.0)),
    st.sampled_from((1.0, 2.0, 5.0)),
    st.sampled_from((0.03, 0.2, 0.6)),
)
def test_cramma_meets_the_bounds_of_theorem_1(seed, n, d, kind, epsilon, beta, fraction):
    X, y, R2, gamma, _ = separable(seed, n, d, kind)
    g = gamma / R2**0.5
    eta = fraction * 0.5 * ((1.0 + 8.0 * g) ** 0.5 - 1.0)
    most, least = cramma_bound(beta, epsilon, eta, g)
    assume(most < 3e5)
    rng = np.random.default_rng(seed)
    rule, h = state("cramma", X, y, kind, range(n), beta=beta, eta=eta, epsilon=epsilon)
    t = 1 + updates(rule, h, n, rng, most - 1.0)
    assert t <= most
    assert directional_margin(h) >= gamma * least * ROUNDING
    assert directional_margin(h) > R2**0.5 * beta * t**-epsilon * ROUNDING


@settings(max_examples=30)
@given(seeds, st.integers(3, 20), st.integers(1, 5), st.sampled_from(SPACES[2:]), st.sampled_from((0.5, 2.0)))
def test_cramma_meets_the_inequalities_of_theorem_2(seed, n, d, kind, beta):
    """Gamma_opt^-2 <= J(u, gamma) <= Gamma^-2 (21), d'_k >= gamma - u.y_k, and so D' >= D (27), for any weight."""
    X, y, _, _, high = separable(seed, n, d, kind)
    rule, h = state("cramma", X, y, kind, range(n), beta=beta, eta=0.02)
    present(rule, h, [np.random.default_rng(seed).permutation(n) for _ in range(300)])
    Delta2, a, c = 0.5 / kind.C, weight(h), dual(h)
    Gamma = directional_margin(h)
    assume(Gamma > 0.0)
    length2 = float(a @ a)
    gamma = Gamma * ((length2 + Delta2 * float(c @ c)) / length2) ** 0.5
    short = gamma - (scored(h) - Delta2 * c) / length2**0.5
    d_k, extended = np.maximum(short, 0.0), Delta2 * c / length2**0.5
    J = gamma**-2 * (1.0 + float(d_k @ d_k) / Delta2)
    assert high**-2 * ROUNDING <= J <= Gamma**-2 / ROUNDING
    assert (extended >= short - 1e-11 * gamma).all()
    assert np.linalg.norm(extended) >= np.linalg.norm(d_k) * ROUNDING


@settings(max_examples=50)
@given(
    seeds,
    st.integers(3, 20),
    st.integers(1, 5),
    st.sampled_from(SPACES),
    st.sampled_from((0.2, 0.5, 0.8)),
    st.booleans(),
)
def test_alma_meets_its_bounds_on_updates_and_margin(seed, n, d, kind, alpha, normalise):
    """Updates <= (2 / gamma^2) (2 / alpha - 1)^2 + 8 / alpha - 4, margin >= (1 - alpha) gamma, of scaled patterns."""
    X, y, R2, gamma, _ = separable(seed, n, d, kind)
    scale = R2**0.5
    if normalise:  # normalised patterns, without constant or own coordinates
        assume((X != 0.0).any(axis=1).all())
        X, kind, scale = X / np.linalg.norm(X, axis=1)[:, None], HARD, 1.0
        gamma = float(optimum(kind, X, y, np.ones(n)).lower)
        assume(gamma > 0.05)
        X = X * np.random.default_rng(seed).integers(1, 5, n)[:, None]
    gamma /= scale
    most = 2.0 / gamma**2 * (2.0 / alpha - 1.0) ** 2 + 8.0 / alpha - 4.0
    rule, h = state("alma", X, y, kind, range(n), alpha=alpha, normalise=normalise)
    updates(rule, h, n, np.random.default_rng(seed), most)
    if normalise:
        margin = float((scored(h) / np.sqrt(h.square)).min()) / np.linalg.norm(weight(h))
    else:
        margin = directional_margin(h) / scale
    assert margin >= (1.0 - alpha) * gamma * ROUNDING


@settings(max_examples=50)
@given(
    seeds,
    st.integers(3, 20),
    st.integers(1, 5),
    st.sampled_from(SPACES),
    st.sampled_from(((0.5, 0.5), (0.5, 0.2), (1.0, 0.5), (1.0, 0.9), (2.0, 0.3))),
    st.sampled_from((0.5, 1.0, 2.0)),
    st.sampled_from((0.1, 0.5, 2.0)),
)
def test_micra_meets_its_bounds_on_updates_and_margin(seed, n, d, kind, powers, beta, eta):
    """1 >= sum over i from [t_0] + 1 of eta_i (g - eta_i / 2 - eta_i^2 / 2 - (1 + eta_i) beta / i^epsilon)."""
    epsilon, zeta = powers
    X, y, R2, gamma, _ = separable(seed, n, d, kind, fraction=8.0)
    g = gamma / R2**0.5
    t0 = (beta / g) ** (1.0 / epsilon)
    i = np.floor(t0) + np.arange(1.0, 3e5)
    rate = eta * i**-zeta
    total = np.cumsum(rate * (g - 0.5 * rate - 0.5 * rate**2 - (1.0 + rate) * beta * i**-epsilon))
    assume(total[-1] > 1.0)
    most = i[np.flatnonzero(total <= 1.0).max(initial=0)] + 1.0
    rule, h = state("micra", X, y, kind, range(n), beta=beta, eta=eta, epsilon=epsilon, zeta=zeta)
    t = 1 + updates(rule, h, n, np.random.default_rng(seed), most - 1.0)
    assert t <= most
    assert directional_margin(h) >= gamma * (t0 / most) ** epsilon * ROUNDING


@settings(max_examples=40)
@given(
    seeds,
    st.integers(3, 20),
    st.integers(1, 5),
    st.sampled_from(SPACES),
    st.sampled_from((None, 1.0, 0.5, 0.1)),
)
def test_romma_meets_its_bounds_on_norm_and_updates(seed, n, d, kind, delta):
    """|w| is at most that of the optimum, |w|^2 grows by delta^2 / R^2 per step: R^2 / (delta gamma)^2 updates.

    For plain ROMMA delta = 1.
    """
    X, y, R2, gamma, high = separable(seed, n, d, kind)
    rng = np.random.default_rng(seed)
    name, options = (
        ("romma", {}) if delta is None else ("aggressive-romma", {"delta": delta, "halving": False})
    )
    accuracy = 1.0 if delta is None else delta
    rule, h = state(name, X, y, kind, range(n), **options)
    last = 1.0 / h.number[NORM2]
    for _ in update_rows(rule, h, n, rng, R2 / (accuracy * gamma) ** 2 - 1.0):
        now = 1.0 / h.number[NORM2]
        assert now >= (last + accuracy**2 / R2) * ROUNDING
        assert now <= gamma**-2 / ROUNDING
        assert dual(h).sum() == pytest.approx(1.0, rel=1e-11)  # a convex combination, so |m| is a bound
        last = now
    if delta is None:
        assert scored(h).min() > 0.0
    else:
        assert directional_margin(h) >= (1.0 - delta) * h.number[NORM2] ** 0.5 * ROUNDING
        assert directional_margin(h) >= (1.0 - delta) * high * ROUNDING


PAIRS = (FREE, Problem("squared_hinge", 0.5, intercept="free"))


@settings(max_examples=40)
@given(seeds, st.integers(3, 20), st.integers(1, 5), st.sampled_from(PAIRS), st.sampled_from((1.0, 0.5, 0.1)))
def test_pumma_meets_its_bounds_on_norm_and_updates(seed, n, d, kind, delta):
    """|w| is at most that of the optimum, both constraints stay tight, 4 (R / (delta gamma))^2 updates."""
    X, y, R2, gamma, high = separable(seed, n, d, kind)
    rule, h = state("pumma", X, y, kind, range(n), delta=delta, halving=False)
    last = 1.0 / h.number[NORM2]
    for k in update_rows(rule, h, n, np.random.default_rng(seed), 4.0 * R2 / (delta * gamma) ** 2 - 1.0):
        m2, scores = h.number[NORM2], scored(h)
        assert scores[h.pair] == pytest.approx(m2, rel=1e-12)
        assert k in h.pair
        a, w = dual(h), weight(h)
        assert float(w @ w) + float(kind.delta2(np.ones(n)) @ a**2) == pytest.approx(m2, rel=1e-11)
        assert a[y > 0.0].sum() == pytest.approx(0.5, rel=1e-11)
        assert a[y < 0.0].sum() == pytest.approx(0.5, rel=1e-11)
        assert m2**0.5 >= gamma * ROUNDING  # |m| is a bound at every step
        assert 1.0 / m2 >= (last + 0.25 * delta**2 / R2) * ROUNDING
        last = 1.0 / m2
    margin = float(scored(h).min()) / h.number[NORM2] ** 0.5
    assert margin >= (1.0 - delta) * h.number[NORM2] ** 0.5 * ROUNDING
    assert margin >= (1.0 - delta) * high * ROUNDING


@settings(max_examples=20)
@given(seeds, st.integers(3, 9), st.integers(1, 4))
def test_margin_of_pair_differences_equals_the_margin_with_bias(seed, n, d):
    """Theorem 2 of PUMMA: the margin with a bias equals the margin without a bias of all (x+ - x-) / 2."""
    X, y, _, _, _ = separable(seed, n, d, FREE)
    Z = np.array([0.5 * (X[i] - X[j]) for i, j in product(np.flatnonzero(y > 0), np.flatnonzero(y < 0))])
    one, other = optimum(FREE, X, y, np.ones(n)), optimum(HARD, Z, np.ones(len(Z)), np.ones(len(Z)))
    slack = Fraction(1, 10**9) * one.upper
    assert one.lower <= other.upper + slack
    assert other.lower <= one.upper + slack


@settings(max_examples=30)
@given(seeds, st.integers(4, 20), st.integers(2, 5), st.sampled_from((0.4, 0.17, 0.05)))
def test_segment_steps_equal_the_published_quotients(seed, n, d, delta):
    """m = w / |w|^2 follows the published step of w far from the optimum, where its quotients do not cancel."""
    X, y, *_ = separable(seed, n, d, FREE, fraction=6.0)
    rng = np.random.default_rng(seed)
    order, Y = np.concatenate([rng.permutation(n) for _ in range(3)]), reflected(X, y)
    caps = np.full(n, np.inf)
    if Y[order[0]].any() and optimum(HARD, X, y, np.ones(n)).lower > 0:
        m, w = aggressive_romma(Y, order, caps, delta), romma_printed(Y, order, caps, delta)
        if min(m.nearest, w.nearest) > 1e-6:
            assert m.moved == w.moved
            assert m.weights / (m.weights @ m.weights) == pytest.approx(w.weights, rel=1e-6, abs=1e-6)
    m, w = pumma(Y, order, caps, delta, y), pumma_printed(Y, order, caps, delta, y)
    assume(min(m.nearest, w.nearest) > 1e-6)
    assert m.moved == w.moved
    n2 = m.weights @ m.weights
    assert m.weights / n2 == pytest.approx(w.weights, rel=1e-6, abs=1e-6)
    assert m.bias / n2 == pytest.approx(w.bias, rel=1e-6, abs=1e-6)


# the bias


@settings(max_examples=20)
@given(seeds, st.integers(4, 20), st.integers(2, 5), st.sampled_from((64.0, 4096.0)))
def test_pumma_is_invariant_under_translation(seed, n, d, shift):
    """After a shift of all rows the updates and w are equal, and the bias is shifted accordingly."""
    X, y, _, _, high = separable(seed, n, d, FREE, fraction=10.0)
    order = np.random.default_rng(seed).permutation(n)
    states = []
    for rows in (X, X + shift):
        rule, h = state("pumma", rows, y, FREE, order, delta=0.1, halving=False)
        moved, _ = present(rule, h, [order] * 30)
        states.append((moved, weight(h), bias(h)))
    (moved, w, b), (shifted_moved, v, c) = states
    assert moved == shifted_moved
    assert v == pytest.approx(w, rel=1e-9, abs=1e-9)
    assert c + shift * float(v.sum()) == pytest.approx(b, rel=1e-7, abs=1e-7)
    # the margin of (w, b) meets the guarantee
    model = MaxMarginClassifier(
        np.inf, algorithm=PUMMA(delta=0.1), tol=1e-9, random_state=seed, max_iter=1000
    ).fit(X + shift, y)
    margins = y * (model.decision_function(X + shift)) / np.linalg.norm(model.coef_)
    assert margins.min() >= 0.9 * high * (1.0 - 1e-9)


def test_pumma_finds_the_margin_far_from_the_origin():
    """Two points at 1e6 +- 1: PUMMA finds the margin 1 without a step; the augmented margin is a millionth of it."""
    X, y = np.array([[1e6 - 1.0], [1e6 + 1.0]]), np.array([0, 1])
    own = MaxMarginClassifier(np.inf, algorithm=PUMMA(delta=0.1), tol=1e-9).fit(X, y)
    assert own.history_[-1].steps == 0
    assert own.certificate_.lower == pytest.approx(1.0, rel=1e-9)
    assert -own.intercept_[0] / own.coef_[0, 0] == pytest.approx(1e6, abs=1e-6)
    wide = MaxMarginClassifier(
        np.inf, intercept="augmented", algorithm=AggressiveROMMA(delta=0.1), tol=0.5
    ).fit(X, y)
    assert wide.certificate_.upper < 2e-6
    assert wide.history_[-1].steps > 0


@settings(max_examples=8)
@given(seeds)
def test_both_intercepts_give_valid_bounds_of_one_margin(seed):
    """A coordinate of length R loses a factor of at most sqrt(2) of the margin; own biases lose none."""
    X, y, _, low, high = separable(seed, 8, 3, FREE)
    for rule, fraction in ((PUMMA(delta=0.01), 0.99), (AggressiveROMMA(delta=0.01), 0.99 * 0.5**0.5)):
        model = MaxMarginClassifier(np.inf, algorithm=rule, tol=1e-9, random_state=0).fit(X, y)
        assert model.certificate_.lower <= high
        assert model.certificate_.upper >= low
        assert model.certificate_.lower >= fraction * low * ROUNDING


# the primal point of a soft margin: the best multiple of w differs from that of the dual weights


@settings(max_examples=200)
@given(st.integers(0, 2**20), st.integers(-6, 6), st.integers(-4, 8))
def test_best_multiple_minimises_the_objective(seed, square, cost):
    rng = np.random.default_rng(seed)
    margins, costs = rng.normal(size=9) + rng.normal(), 10.0**cost * rng.random(9)

    def value(t):
        return 0.5 * t * t * 10.0**square + float(costs @ np.maximum(0.0, 1.0 - t * margins) ** 2)

    squared = Problem("squared_hinge", 1.0, intercept="none")
    best, _ = best_multiple_and_intercept(squared, 10.0**square, margins, 0.0, np.ones(9), costs)
    others = [*(best * np.linspace(0.9, 1.1, 41)), 0.0, 0.5 * best, 2.0 * best]
    assert value(best) <= min(map(value, others)) * (1.0 + 1e-9)


@pytest.mark.parametrize("C", [1.0, 1e5, 1e8])
@pytest.mark.parametrize("name", ["aggressive-romma", "pumma"])
def test_default_accuracy_certifies_the_tolerance(name, C):
    """The delta chosen for `tol` gives a gap within `tol`."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(40, 3))
    y = np.where(X[:, 0] > 0, 1, -1)
    X[:, 0] += 0.2 * y
    model = MaxMarginClassifier(C, algorithm=name, fit_intercept=name == "pumma", random_state=0).fit(X, y)
    assert model.status_ is Status.CERTIFIED


def test_zero_rows_are_inseparable_and_invalid_parameters_are_refused():
    for name in ("fixed-margin", "cramma", "perceptron"):
        model = MaxMarginClassifier(np.inf, algorithm=name, fit_intercept=False, max_iter=5)
        assert model.fit(np.zeros((4, 2)), [0, 1, 0, 1]).status_ is Status.INSEPARABLE
    for make in (lambda: ALMA(C=np.inf), lambda: CRAMMA(eta=np.inf), lambda: Perceptron(b=np.inf)):
        with pytest.raises(ValueError, match="got inf"):
            make()
    for make in (lambda: PUMMA(halving=2), lambda: Perceptron(shuffle="no"), lambda: ALMA(normalise=0.0)):
        with pytest.raises(ValueError, match="must be True or False; got"):
            make()
