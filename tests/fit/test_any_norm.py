"""All norms of MaxMarginClassifier: certified, bracketed by an independent oracle, verified from the data."""

import math
from decimal import Decimal, getcontext
from itertools import product

import numpy as np
import pytest
import scipy.sparse as sp
from effort import examples, interpreted
from oracle import optimum_in_norm
from problems import conditioned

from maxmargin import MaxMarginClassifier, Status, verify

INF = math.inf
EXPONENTS = [1.0, 1.5, 2.0, 3.0, 4.0, 10.0, INF]
ENDS = (1.0, 2.0, INF)  # where tol is tight
KINDS = [
    {"C": INF},
    {"C": 1.0},
    {"C": 30.0, "loss": "hinge"},
    {"C": 1.0, "loss": "hinge", "norm_power": 1},
    {"C": 0.3, "norm_power": 1},
]
LONG = [("dcd", 1.5, 1.0), ("dcd", 1.5, 30.0), ("dcd", 3.0, 30.0)]
INTERCEPTS = [{}, {"intercept_scaling": 0.7}, {"fit_intercept": False}]


def option_names(options: dict) -> str:
    return "-".join(f"{k}={v}" for k, v in options.items()) or "free"


def clouds(n: int, d: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Overlapping classes, with a row of zeros, repeated rows and contradictory rows."""
    X, y, _ = conditioned("plain", n, d, seed)
    X[4], X[5], X[7] = 0.0, X[6], X[8]
    y[5], y[6], y[7] = 1.0, -1.0, y[8]
    return X, y


def separable(n: int, d: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Rows that a hyperplane through the origin separates."""
    rng = np.random.default_rng(seed)
    w, X = rng.normal(size=d), rng.normal(size=(n, d))
    y = np.where(rng.random(n) < 0.4, 1.0, -1.0)
    y[:2] = 1.0, -1.0
    z = X @ w
    return X + np.outer(y * (0.2 + np.abs(z)) - z, w) / (w @ w), y


def assert_bounds_contain_the_oracle(certificate, X, y, weights=None) -> None:
    """Assert lower <= oracle and upper >= oracle, up to the error of the oracle."""
    weights = np.ones(len(y)) if weights is None else weights
    oracle = optimum_in_norm(certificate.problem, X, y, weights)
    assert certificate.lower <= oracle.upper
    assert certificate.upper >= oracle.lower


@pytest.mark.parametrize(
    ("p", "kind", "intercept"),
    [  # each norm with each kind of problem; intercepts in turn in the fast suite, all in the slow one
        pytest.param(p, kind, intercept, marks=() if (j + k) % 3 == i else pytest.mark.slow)
        for j, p in enumerate(EXPONENTS)
        for k, kind in enumerate(KINDS)
        for i, intercept in enumerate(INTERCEPTS)
    ],
    ids=lambda value: option_names(value) if isinstance(value, dict) else str(value),
)
def test_fits_are_certified_and_contain_the_oracle(p, kind, intercept):
    hard, tol = kind["C"] == INF, 1e-6 if p in ENDS else 1e-4
    for seed, (n, d) in enumerate([(30, 4), (12, 25)]):
        X, y = separable(n, d, seed) if hard else clouds(n, d, seed)
        model = MaxMarginClassifier(p=p, tol=tol, random_state=0, **kind, **intercept).fit(X, y)
        assert model.status_ is Status.CERTIFIED
        assert model.certificate_.gap <= tol
        assert_bounds_contain_the_oracle(model.certificate_, X, y)
        verify(model, X, y)


@interpreted
@pytest.mark.parametrize(
    ("name", "p", "kind"),
    [  # the slow ones take dcd a hundred thousand steps
        pytest.param(name, p, kind, marks=pytest.mark.slow if (name, p, kind["C"]) in LONG else ())
        for name, p in (
            *product(("dcd",), (1.5, 2.0, 3.0)),
            *product(("interior-point",), (1.0, 1.01, 1.2, 3.0, 30.0)),
        )
        for kind in KINDS[1:]
    ],
    ids=lambda value: option_names(value) if isinstance(value, dict) else str(value),
)
def test_methods_for_soft_margins_contain_the_oracle(name, p, kind):
    for rows in ((40, 4), (12, 25)):
        X, y = clouds(*rows, 1)
        model = MaxMarginClassifier(p=p, algorithm=name, random_state=0, **kind).fit(sp.csr_matrix(X), y)
        assert model.history_[0].stage == name
        assert model.status_ is Status.CERTIFIED
        assert_bounds_contain_the_oracle(model.certificate_, X, y)


@interpreted
@pytest.mark.parametrize("p", [1.0, 1.5, 3.0, 10.0, INF])
def test_incremental_algorithm_is_certified_and_contains_the_oracle(p):
    for C, tol in ((INF, 0.05), (1.0, 0.2)):
        X, y = separable(10, 3, 0) if C == INF else clouds(10, 3, 0)
        model = MaxMarginClassifier(C, p=p, tol=tol, algorithm="ima", random_state=0).fit(X, y)
        assert (model.status_, {report.stage for report in model.history_}) == (Status.CERTIFIED, {"ima"})
        assert_bounds_contain_the_oracle(model.certificate_, X, y)
        assert verify(model, X, y).gap <= tol


@interpreted
@pytest.mark.parametrize("p", [1.0, 1.5, 3.0, INF])
def test_sample_weights_equal_copies_in_every_storage(p):
    X, y = clouds(30, 5, 3)
    X[np.abs(X) < 0.5] = 0.0
    weights = np.random.default_rng(0).integers(0, 3, 30).astype(float)
    weights[:2] = 1.0
    copies, single = np.repeat(np.arange(30), weights.astype(int)), X.astype(np.float32)
    bounds = []
    for rows, labels, s, tol in (
        (X, y, weights, 1e-6),
        (sp.csr_matrix(X), y, weights, 1e-6),
        (X[copies], y[copies], None, 1e-6),
        (single, y, weights, 1e-3),
    ):
        model = MaxMarginClassifier(p=p, tol=tol, random_state=0).fit(rows, labels, s)
        assert model.status_ is Status.CERTIFIED
        verify(model, rows, labels, s)
        bounds.append(model.certificate_)
    assert_bounds_contain_the_oracle(bounds[1], X, y, weights)
    assert [found.upper for found in bounds[:3]] == pytest.approx([bounds[0].upper] * 3, rel=1e-6)  # tol


@pytest.mark.parametrize(
    ("p", "scale"),
    [(1.0, 1e-49), (1.5, 1e8), (2.0, 1e-49), (2.0, 1e49), (3.0, 1e-8), (10.0, 1e8), (INF, 1e49)],
)
def test_rescaled_data_are_certified(p, scale):
    X, y = separable(25, 4, 5)
    options = {"p": p, "tol": 1e-4, "random_state": 0}
    expected = MaxMarginClassifier(INF, **options).fit(X, y).certificate_
    model = MaxMarginClassifier(INF, **options).fit(X * scale, y)
    assert model.status_ is Status.CERTIFIED
    assert model.certificate_.lower / scale == pytest.approx(expected.lower, rel=1e-4)  # tol
    for power, loss in ((2, "squared_hinge"), (1, "squared_hinge"), (1, "hinge")):
        soft = MaxMarginClassifier(0.5 / scale**power, loss=loss, norm_power=power, **options)
        assert soft.fit(X * scale, y).status_ is Status.CERTIFIED
        verify(soft, X * scale, y)


def test_log_is_twice_the_logarithm_of_the_number_of_features():
    X, y = clouds(40, 30, 9)
    model = MaxMarginClassifier(p="log", random_state=0).fit(X, y)
    assert model.certificate_.problem.p == pytest.approx(2.0 * math.log(30), rel=1e-15, abs=0.0)
    assert MaxMarginClassifier(p="log").fit(X[:, :2], y).certificate_.problem.p == 2.0


def test_infinite_p_gives_sparse_weights_and_p_one_equal_magnitudes():
    X, y = separable(20, 60, 10)
    sparse = MaxMarginClassifier(C=INF, p=INF, random_state=0).fit(X, y).coef_.ravel()
    assert np.count_nonzero(np.abs(sparse) > 1e-9 * np.abs(sparse).max()) <= 20
    magnitudes = np.abs(MaxMarginClassifier(C=INF, p=1.0, tol=1e-6, random_state=0).fit(X, y).coef_.ravel())
    assert np.mean(magnitudes > 0.999 * magnitudes.max()) >= 0.6


@pytest.mark.parametrize("intercept", INTERCEPTS, ids=option_names)
@pytest.mark.parametrize("power", [1, 2])
def test_weights_that_the_gap_excludes_are_exact_zeros(power, intercept):
    """Squared hinge at p = inf: the dual objective is strongly concave, so that v is near its value at the optimum."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(80, 200)) * (rng.random((80, 200)) < 0.3)
    y, weights = np.sign(X[:, :5].sum(axis=1) + rng.normal(size=80)), rng.integers(1, 4, 80).astype(float)
    for tol in (1e-2, 1e-10):
        model = MaxMarginClassifier(p=INF, norm_power=power, tol=tol, **intercept)
        model.fit(sp.csr_matrix(X), y, weights)
        assert model.history_[-1].stage == "proximal-newton"
        certificate, w, alpha = model.certificate_, model.coef_.ravel(), np.zeros(80)
        assert certificate.gap <= tol
        alpha[certificate.support] = certificate.dual
        free, rho = certificate.problem.free, certificate.problem.rho
        v = np.abs((alpha * y) @ np.column_stack([X, np.full(80, rho)]))
        costs = 4.0 * model.C * weights  # |v - v*|_j <= sqrt(gap sum 4 C s (x_j - mean)^2)
        centre = costs @ X / costs.sum() if free else 0.0
        away = np.sqrt((certificate.upper - certificate.lower) * (costs @ (X - centre) ** 2))
        scale = max(1.0, v.max()) if power == 1 else 1.0
        largest = 1.0 if power == 1 else (v[:-1] - away).max()
        excluded = v[:-1] / scale + away < largest * (1.0 - 1e-6)
        assert not w[excluded].any()
        assert 0 < np.count_nonzero(w) <= 80
    assert excluded.sum() == 200 - np.count_nonzero(w)


@pytest.mark.parametrize(
    ("p", "n", "stage"), [(1.0, 500, "interior-point"), (INF, 2000, "interior-point"), (INF, 500, "lp")]
)
def test_linear_program_is_left_to_another_method_where_it_is_slow(p, n, stage):
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(n, 6)), np.where(rng.random(n) < 0.5, 1.0, -1.0)
    options = {"C": 1.0, "loss": "hinge", "p": p, "norm_power": 1}
    for shift in (0.5, 4.0):
        rows = X + shift * y[:, None]
        auto, program = (
            MaxMarginClassifier(algorithm=name, **options).fit(rows, y) for name in ("auto", "lp")
        )
        assert auto.history_[0].stage == stage
        assert auto.certificate_.gap <= 1e-3
        assert program.certificate_.gap <= 1e-3
        assert auto.certificate_.lower <= program.certificate_.upper * (1.0 + 1e-9)
        assert program.certificate_.lower <= auto.certificate_.upper * (1.0 + 1e-9)


@pytest.mark.parametrize("p", [1.0, 1.5, 2.0, 3.0])
def test_few_sparse_rows_of_uneven_columns_are_certified(p):
    for seed, size, power in product(range(6), (1, 6), (1, 2)):
        rng = np.random.default_rng(seed)
        X = (
            rng.normal(size=(20, 5))
            * 10.0 ** rng.integers(-size, size + 1, size=5)
            * (rng.random((20, 5)) < 0.5)
        )
        y = np.where(rng.normal(size=20) > 0.0, 1, -1)
        model = MaxMarginClassifier(p=p, loss="hinge", norm_power=power, random_state=0).fit(
            sp.csr_matrix(X), y
        )
        assert model.status_ is Status.CERTIFIED


as_decimal = np.vectorize(Decimal, otypes=[object])


def decimal_norm(v: np.ndarray, r: float) -> Decimal:
    """|v|_r in 60-digit decimal arithmetic."""
    size = [abs(x) for x in v if x]
    if r == INF or not size:
        return max(size, default=Decimal(0))
    return sum((x ** Decimal(r) for x in size), Decimal(0)) ** (1 / Decimal(r))


def decimal_bounds(certificate, X, y, w, b) -> tuple[Decimal, Decimal]:
    """The bounds proved by (w, b) and the dual weights, from the definitions, to 60 digits."""
    problem, y, X, w, b = certificate.problem, y.astype(int), as_decimal(X), as_decimal(w), Decimal(float(b))
    alpha = np.full(len(y), Decimal(0))
    alpha[certificate.support] = as_decimal(certificate.dual)
    margins, v, balance, total = y * (X @ w + b), (alpha * y) @ X, alpha @ y, alpha.sum()
    if problem.rho:
        w, v = np.append(w, b / Decimal(problem.rho)), np.append(v, Decimal(problem.rho) * balance)
    # the conjugate exponent to 60 digits, not rounded to float64
    q = Decimal(problem.p) / (Decimal(problem.p) - 1) if 1.0 < problem.p < INF else problem.q
    length, size = decimal_norm(w, q), decimal_norm(v, problem.p)
    if problem.hard:
        return min(margins) / length, size / total
    hinge, C = problem.loss == "hinge", Decimal(problem.C)
    slack = [max(1 - m, Decimal(0)) for m in margins]
    losses = sum(C * (x if hinge else x * x) for x in slack)
    gains = total - (0 if hinge else (alpha * alpha).sum() / (4 * C))
    if problem.power == 1:
        return gains / max(Decimal(1), size), length + losses
    return gains - size * size / 2, length * length / 2 + losses


@pytest.mark.parametrize(
    ("p", "kind"),
    [
        pytest.param(p, kind, marks=() if (i + k) % 3 == 0 else pytest.mark.slow)
        for i, p in enumerate([1.0, 1.25, 1.5, 3.0, 30.0, INF])
        for k, kind in enumerate(KINDS)
    ],
    ids=lambda value: option_names(value) if isinstance(value, dict) else str(value),
)
def test_certified_bounds_hold_in_exact_arithmetic(p, kind):
    """Outward rounding: the bounds hold for the exact values of the stored numbers, without tolerance."""
    getcontext().prec = 60
    for seed in range(examples(2, 6)):
        for intercept in INTERCEPTS[1:]:  # without a balance constraint the dual value is exact
            X, y = separable(9, 3, seed) if kind["C"] == INF else clouds(9, 3, seed)
            options = {"tol": 1e-9, "max_iter": 60, "random_state": 0, **kind, **intercept}
            model = MaxMarginClassifier(p=p, **options).fit(X, y)
            certificate = model.certificate_
            lower, upper = decimal_bounds(certificate, X, y, model.coef_.ravel(), model.intercept_[0])
            assert Decimal(certificate.lower) <= lower
            assert Decimal(certificate.upper) >= upper
            assert certificate.gap < 1e-6


@pytest.mark.parametrize("p", [1.0, INF])
@pytest.mark.parametrize("size", [1.0, 1e-20, 1e-49])
def test_linear_program_with_optimum_zero_is_certified(p, size):
    """The solution of the linear program is exactly 0, that of another method up to `tol`."""
    X, y = clouds(30, 4, 17)
    for C, algorithm in product((1e-3, 1e-12, 1e-15), ("auto", "lp")):
        model = MaxMarginClassifier(C, p=p, loss="hinge", norm_power=1, algorithm=algorithm).fit(X * size, y)
        assert model.status_ is Status.CERTIFIED
        if C * size < 1e-5 and algorithm == "lp":
            assert not model.coef_.any()
        verify(model, X * size, y)
