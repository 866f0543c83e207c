"""MaxMarginClassifier: scikit-learn's checks, invalid input, degenerate input, and stopping."""

from __future__ import annotations

import pickle
import subprocess
import sys
import textwrap
import time
from itertools import product

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from effort import THOROUGH, compiled_for, thorough
from oracle import optimum
from sklearn.base import clone
from sklearn.datasets import load_iris
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import parametrize_with_checks

import maxmargin.certificates.rows
from maxmargin import (
    MPU,
    CertificateError,
    DualCoordinateDescent,
    KernelMaxMarginClassifier,
    MaxMarginClassifier,
    Perceptron,
    Problem,
    Report,
    Status,
    verify,
)
from maxmargin.algorithms import ALGORITHMS
from maxmargin.algorithms.programs import LinearProgram
from maxmargin.fit.deadline import Deadline

EUCLIDEAN = [name for name in ALGORITHMS if name != "lp"]  # algorithms for p = 2
FOR_HARD = [name for name in ALGORITHMS if ALGORITHMS[name]().refuses(Problem("hinge", np.inf)) is None]


@parametrize_with_checks(
    [
        MaxMarginClassifier(),
        MaxMarginClassifier(loss="hinge", algorithm=MPU(schedule="two-level"), n_jobs=2),
    ]
)
def test_scikit_learn_checks_pass(estimator, check):
    """All checks, without expected failures."""
    check(estimator)


@pytest.mark.slow
@parametrize_with_checks(
    [
        MaxMarginClassifier(loss="hinge", algorithm="mpu"),
        MaxMarginClassifier(loss="hinge", intercept="augmented", class_weight="balanced"),
        MaxMarginClassifier(C=100.0, tol=1e-6, warm_start=True),
        MaxMarginClassifier(algorithm="perceptron", max_iter=20),
    ]
)
def test_scikit_learn_checks_pass_with_other_parameters(estimator, check):
    check(estimator)


def clouds(n=60, d=4, seed=0, gap=0.6, classes=2):
    rng = np.random.default_rng(seed)
    y = np.arange(n) % classes
    return rng.normal(size=(n, d)) + gap * np.eye(max(d, classes))[y][:, :d] * 2.0, y


@pytest.fixture(scope="module")
def data():
    return clouds()


def signs(y):
    return np.where(np.asarray(y) == np.max(y), 1.0, -1.0)


def assert_optimum_is_bracketed(model, X, y, weights=None):
    """Assert that the certificate of a two-class model brackets the oracle's optimum and verifies."""
    weights = np.ones(len(y)) if weights is None else weights
    verify(model, X, y, weights)
    dense = X.toarray() if sp.issparse(X) else np.asarray(X, float)
    truth = optimum(model.certificate_.problem, dense, signs(y), weights)
    slack = float(truth.e) + 1e-12 * float(truth.upper)
    assert model.certificate_.lower <= float(truth.upper) + slack
    assert model.certificate_.upper >= float(truth.lower) - slack
    return truth


# invalid input: messages are asserted


def invalid(value, message, **parameters):
    return pytest.param({**parameters, **value}, message, id=message[:50])


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        invalid({"C": -1.0}, r"C must be a positive number, or inf for the hard margin; got C=-1\.0"),
        invalid({"C": 0}, r"C must be a positive number, or inf for the hard margin; got C=0"),
        invalid({"C": np.nan}, r"C must be a positive number, or inf for the hard margin; got C=nan"),
        invalid({"C": "1"}, r"C must be a positive number, or inf for the hard margin; got C='1'"),
        invalid(
            {"tol": 0},
            "tol must be positive: it is the certified gap, and a gap of 0 cannot be proved; got tol=0",
        ),
        invalid({"tol": -1e-3}, r"tol must be positive: .* got tol=-0\.001"),
        invalid({"tol": np.nan}, "tol must be positive: .* got tol=nan"),
        invalid({"loss": "log"}, "loss must be one of 'hinge', 'squared_hinge'; got 'log'"),
        invalid({"p": 0.5}, r"p must be a number from 1 to inf; got p=0\.5"),
        invalid({"p": "inf"}, r'p must be a number from 1 to inf, or "log"; got p=.inf.'),
        invalid({"p": np.nan}, r"p must be a number from 1 to inf; got p=nan"),
        invalid(
            {"norm_power": 3}, r"norm_power must be 2 .half the squared norm. or 1 .the norm itself.; got 3"
        ),
        invalid(
            {"p": 3, "algorithm": "dcd"}, r"'dcd' does not solve .*p=3.*: use p=2; for another p .*barrier"
        ),
        invalid({"norm_power": 1, "algorithm": "dcd"}, r"'dcd' does not solve .*first power.*barrier"),
        invalid({"p": np.inf, "algorithm": "pumma"}, r"'pumma' does not solve .*p=inf.*: use p=.log."),
        invalid({"p": 1.5, "algorithm": "alma"}, r"'alma' does not solve .*p=1\.5.*ima"),
        invalid({"intercept": "real"}, 'intercept must be "free" or "augmented"; got \'real\''),
        invalid(
            {"intercept": "augmented", "intercept_scaling": 0},
            "intercept_scaling must be a positive, finite number",
        ),
        invalid({"max_iter": 0}, "max_iter must be a whole number of rounds, at least 1; got 0"),
        invalid({"max_iter": 2.5}, "max_iter must be a whole number of rounds, at least 1; got 2.5"),
        invalid({"max_time": 0}, "max_time must be a positive number of seconds, or None; got 0"),
        invalid({"max_time": -3.0}, r"max_time must be a positive number of seconds, or None; got -3\.0"),
        invalid(
            {"algorithm": "smo"},
            "algorithm must be 'auto', one of 'dcd', 'mpu', .*, or an object such as",
        ),
        invalid({"algorithm": 3}, r"algorithm must be a name or a rule object such as MPU\(\); got 3"),
        invalid({"algorithm": MPU}, r"algorithm must be a name or a rule object such as MPU\(\)"),
        invalid(
            {"algorithm": "perceptron", "loss": "hinge"},
            "algorithm 'perceptron' does not solve loss='hinge' with C=1",
        ),
        invalid({"p": None}, "p must be a number from 1 to inf, or .log.; got p=None"),
        invalid({"p": "2"}, "p must be a number from 1 to inf, or .log.; got p='2'"),
        invalid({"intercept_scaling": "x"}, "intercept_scaling must be a number; got intercept_scaling='x'"),
        invalid({"tol": True}, "tol must be positive"),
        invalid({"fit_intercept": "no"}, "fit_intercept must be True or False; got 'no'"),
        invalid({"warm_start": 1}, "warm_start must be True or False; got 1"),
        invalid({"max_time": True}, "max_time must be a positive number of seconds, or None; got True"),
        invalid({"random_state": -1}, "random_state must be a whole number of at least 0; got -1"),
        invalid({"class_weight": {0: "a"}}, "class_weight must hold numbers; got {0: 'a'}"),
        invalid(
            {"n_jobs": "all"}, "n_jobs must be a whole number of threads, -1 for as many as .* got 'all'"
        ),
        invalid({"n_jobs": 0}, "n_jobs must be a whole number of threads, .* or None; got 0"),
        invalid(
            {"intercept": "augmented", "intercept_scaling": 1e200},
            r"The square of intercept_scaling=1e\+200 is beyond float64 numbers: take one of the size of the features",
        ),
        invalid({"max_iter": True}, "max_iter must be a whole number of rounds"),
        invalid({"callback": 3}, "callback must be a function of a report, or None; got 3"),
        invalid({"class_weight": "even"}, "class_weight must be a dict, \"balanced\" or None; got 'even'"),
        invalid({"class_weight": [1.0, 2.0]}, 'class_weight must be a dict, "balanced" or None; got'),
        invalid({"class_weight": {2: 1.0}}, r"class_weight names classes that y does not hold: \[2\]"),
        invalid({"class_weight": {0: -1.0}}, "class_weight must hold finite numbers of at least 0"),
        invalid({"class_weight": {0: np.inf}}, "class_weight must hold finite numbers of at least 0"),
        invalid({"class_weight": {0: 0.0}}, "class_weight leaves only one class with a positive weight"),
    ],
)
def test_invalid_parameters_are_refused(parameters, message, data):
    with pytest.raises(ValueError, match=message):
        MaxMarginClassifier(**parameters).fit(*data)


X4 = [[0.0, 1.0], [1.0, 0.0], [2.0, 1.0], [0.0, 3.0]]


@pytest.mark.parametrize(
    ("X", "y", "message"),
    [
        ([[0.0, np.nan], *X4[1:]], [0, 1, 0, 1], "contains NaN"),
        ([[0.0, np.inf], *X4[1:]], [0, 1, 0, 1], "contains infinity"),
        (sp.csr_matrix([[0.0, np.nan], *X4[1:]]), [0, 1, 0, 1], "contains NaN"),
        (np.zeros((0, 2)), [], r"Found array with 0 sample\(s\)"),
        (np.zeros((4, 0)), [0, 1, 0, 1], r"Found array with 0 feature\(s\)"),
        ([1.0, 2.0, 3.0, 4.0], [0, 1, 0, 1], "Expected 2D array, got 1D array instead"),
        (
            X4,
            [1, 1, 1, 1],
            r"A classifier needs rows of at least 2 classes .* all rows are of class 1 \(one class\)",
        ),
        (
            X4,
            ["a"] * 4,
            r"A classifier needs rows of at least 2 classes .* all rows are of class 'a' \(one class\)",
        ),
        (X4, [0.1, 1.3, 2.7, 0.4], "Unknown label type: continuous"),
        (X4, [[0, 1], [1, 0], [0, 1], [1, 1]], r"y should be a 1d array, got an array of shape \(4, 2\)"),
        (X4, [0, 1, np.nan, 1], "Input y contains NaN"),
        (X4, None, "requires y to be passed, but the target y is None"),
        (X4, [0, 1, 0], r"Found input variables with inconsistent numbers of samples: \[4, 3\]"),
        ([["a", "b"], ["c", "d"]], [0, 1], "column 0 of X holds text, 'a' for instance"),
        (np.array(X4) + 1j, [0, 1, 0, 1], "Complex data not supported"),
        (X4, [b"a", b"b", b"a", b"b"], r"The labels are bytes: decode them, y.astype\(str\)"),
        (
            X4,
            np.array([0, 1, 0, 1], dtype=object),
            r"objects that are all int; give it their type, y.astype\(int\)",
        ),
        (
            X4,
            np.array([False, True, False, True], dtype=object),
            r"Unknown label type: .* give it their type, y.astype\(bool\)",
        ),
        (
            np.array(X4) * 1e-200,
            [0, 1, 0, 1],
            "The largest entry of X is 3e-200, and its square is beyond float64",
        ),
        (
            sp.csr_matrix(X4) * 1e300,
            [0, 1, 0, 1],
            r"entry of X is 3e\+300, .*: scale the features first, with Stand",
        ),
    ],
)
def test_invalid_data_are_refused(X, y, message):
    with pytest.raises(ValueError, match=message):
        MaxMarginClassifier().fit(X, y)


def test_labels_without_an_order_are_refused():
    """None among strings: the message names the labels."""
    with pytest.raises((ValueError, TypeError), match=r"label"):
        MaxMarginClassifier().fit(X4, np.array(["a", None, "b", "a"], dtype=object))


@pytest.mark.parametrize(
    ("weights", "message"),
    [
        ([1.0, 1.0, 1.0], r"sample_weight.shape == \(3,\), expected \(4,\)"),
        ([1.0, -1.0, 1.0, 1.0], "Negative values in data passed to `sample_weight`"),
        ([1.0, np.nan, 1.0, 1.0], "Input sample_weight contains NaN"),
        ([1.0, np.inf, 1.0, 1.0], "Input sample_weight contains infinity"),
        ([0.0, 0.0, 0.0, 0.0], "Sample weights must contain at least one non-zero number"),
        ([1e308] * 4, "The sum of sample_weight is beyond float64 numbers: divide all of them by a constant"),
        ([1.0, 0.0, 1.0, 0.0], r"needs rows of at least 2 classes .* all rows are of class 0 \(one class\)"),
    ],
)
def test_invalid_weights_are_refused(weights, message):
    with pytest.raises(ValueError, match=message):
        MaxMarginClassifier().fit(X4, [0, 1, 0, 1], weights)


@pytest.mark.parametrize("cls", [MaxMarginClassifier, KernelMaxMarginClassifier])
def test_overflowing_sums_of_class_weights_are_refused(cls):
    with pytest.raises(ValueError, match="C times the sum of all weights is inf"):
        cls(class_weight={0: 1e308, 1: 1e308}).fit(X4, [0, 1, 0, 1])


@pytest.mark.parametrize("cls", [MaxMarginClassifier, KernelMaxMarginClassifier])
@pytest.mark.parametrize("loss", ["hinge", "squared_hinge"])
@pytest.mark.parametrize(
    ("C", "weights", "message"),
    [
        (1e308, [1.0] * 4, "C times the sum of all weights is inf, .*: lower C"),
        (1e10, [1.0, 1e300, 1.0, 1.0], "C times the sum of all weights is inf, .*: lower C"),
        (1e-310, [1.0] * 4, "C times the least weight of a row is 1e-310, .*: raise C"),
        (1e-20, [1.0, 1e-300, 1.0, 1.0], "C times the least weight of a row is 1e-320, .*: raise C"),
    ],
)
def test_costs_beyond_float64_are_refused(cls, loss, C, weights, message):
    with pytest.raises(ValueError, match=message):
        cls(C, loss=loss).fit(X4, [0, 1, 0, 1], weights)
    cls(np.inf).fit(X4, [0, 1, 0, 1], weights)  # a hard margin has no costs


@pytest.mark.parametrize("cls", [MaxMarginClassifier, KernelMaxMarginClassifier])
@pytest.mark.parametrize("scaling", [1e-160, 1e160])
def test_intercept_scalings_beyond_float64_are_refused(cls, scaling):
    model = cls(intercept="augmented", intercept_scaling=scaling)
    with pytest.raises(ValueError, match=r"The square of intercept_scaling=1e.160 is beyond float64 numbers"):
        model.fit(X4, [0, 1, 0, 1])


@pytest.mark.parametrize(
    ("model", "scale", "weight"),
    [
        (MaxMarginClassifier(1e-200, loss="hinge"), 1.0, 1e200),
        (MaxMarginClassifier(1e-200, loss="hinge"), 1e-120, 1.0),
        (MaxMarginClassifier(1e-200), 1e-120, 1.0),
        (MaxMarginClassifier(1e200, loss="hinge"), 1e110, 1e80),
        (MaxMarginClassifier(1e300), 1e110, 1.0),
        (MaxMarginClassifier(np.inf), 1e140, 1e200),
        (KernelMaxMarginClassifier(1e-100, kernel="linear"), 1e-120, 1.0),
        (KernelMaxMarginClassifier(1e-100, kernel="linear", loss="squared_hinge"), 1e-120, 1.0),
        (KernelMaxMarginClassifier(1e-200), 1.0, 1e300),
        (KernelMaxMarginClassifier(), 1e140, 1e200),
        (KernelMaxMarginClassifier(1e306), 1.0, 1.0),
        (KernelMaxMarginClassifier(1e306, loss="squared_hinge"), 1.0, 1.0),
    ],
    ids=str,
)
def test_extreme_magnitudes_give_valid_certificates(model, scale, weight):
    """Products leave the range of float64: no warning (pytest makes warnings errors), and valid bounds."""
    X, y = np.array([[1.0, 2.0], [3.0, -1.0], [2.0, 2.5], [-1.0, 0.5]]) * scale, [0, 1, 0, 1]
    weights = [1.0, weight, 1.0, weight]
    model = clone(model).fit(X, y, weights)
    assert model.status_ is not Status.NOT_FINITE
    now = verify(model, X, y, weights)
    assert 0.0 <= now.lower <= now.upper < np.inf
    assert now.gap <= 1e-3 or model.status_ is not Status.CERTIFIED


def test_invalid_data_at_prediction_are_refused(data):
    X, y = data
    model = MaxMarginClassifier()
    with pytest.raises(ValueError, match="not fitted yet"):
        model.predict(X)
    model.fit(X, y)
    with pytest.raises(ValueError, match="X has 3 features, but MaxMarginClassifier is expecting 4 features"):
        model.predict(X[:, :3])
    with pytest.raises(ValueError, match="contains NaN"):
        model.decision_function(np.full((1, 4), np.nan))


@pytest.mark.parametrize(
    "failing_fit",
    [
        lambda model, X, y: model.set_params(C=-1.0).fit(X, y),
        lambda model, X, y: model.set_params(algorithm="nothing").fit(X, y),
        lambda model, X, y: model.fit(X[:, :2], y[:-1]),
        lambda model, X, y: model.fit(np.full_like(X, np.nan), y),
        lambda model, X, y: model.fit(X[:, :3], np.zeros(len(y))),
        lambda model, X, y: model.fit(X[:, :3], y, np.zeros(len(y))),
        lambda model, X, y: model.set_params(class_weight={7: 1.0}).fit(X[:, :3], y),
    ],
)
def test_a_failed_fit_leaves_the_fitted_model_unchanged(failing_fit, data):
    X, y = data
    model = MaxMarginClassifier(random_state=0).fit(X, y)
    before, scores = {k: v for k, v in vars(model).items() if k.endswith("_")}, model.decision_function(X)
    with pytest.raises(ValueError, match=r"\w"):
        failing_fit(model, X, y)
    after = {k: v for k, v in vars(model).items() if k.endswith("_")}
    assert after.keys() == before.keys()
    assert all(after[k] is before[k] for k in before if k != "n_features_in_")
    assert model.n_features_in_ == 4
    assert model.decision_function(X).tolist() == scores.tolist()


# degenerate but valid input: solved and certified


def degenerate_data(rng):
    """Names, rows and labels in {0, 1}."""
    X, y = clouds(30, 5)
    zero = X.copy()
    zero[rng.random(30) < 0.5] = 0.0
    both = np.vstack([X, X[:10]]), np.append(y, 1 - y[:10])
    constant = X.copy()
    constant[:, 2] = 7.0
    yield "all-zero rows", zero, y
    yield "only zeros", np.zeros((6, 3)), np.array([0, 1, 0, 1, 1, 1])
    yield "identical rows with opposite labels", *both
    yield "only identical rows", np.ones((6, 3)), np.array([0, 1, 0, 1, 1, 1])
    yield "duplicate columns", np.hstack([X, X]), y
    yield "a constant column", constant, y
    yield "only constant columns", np.full((6, 2), 3.0), np.array([0, 1, 0, 1, 0, 1])
    yield "two rows", np.array([[1.0], [2.0]]), np.array([0, 1])
    yield "one row against many", X, (np.arange(30) == 3).astype(int)
    yield "large numbers", X * 1e6, y
    yield "small numbers", X * 1e-6, y


DEGENERATE = {name: (X, y) for name, X, y in degenerate_data(np.random.default_rng(0))}


@thorough
@pytest.mark.parametrize(
    ("algorithm", "loss"),
    [
        (name, loss)
        for name in ALGORITHMS
        for loss in ("hinge", "squared_hinge")
        if ALGORITHMS[name].convergent and ALGORITHMS[name]().refuses(Problem(loss, 1.0)) is None
    ],
)
@pytest.mark.parametrize("name", DEGENERATE)
def test_degenerate_data_are_certified(name, algorithm, loss):
    X, y = DEGENERATE[name]
    combinations = list(product((1e-3, 1.0, 1e3), (np.asarray, sp.csr_matrix)))
    index = list(DEGENERATE).index(name)
    for C, store in (
        combinations if THOROUGH else combinations[index % 3 :: 3]
    ):  # one dense and one CSR, of different C
        stored = store(X)
        model = MaxMarginClassifier(C, loss=loss, algorithm=algorithm, random_state=0).fit(stored, y)
        assert model.status_ is Status.CERTIFIED
        assert model.certificate_.gap <= 1e-3
        assert_optimum_is_bracketed(model, stored, y)


def test_zero_rows_cost_C_without_intercept():
    """Hinge without intercept: each all-zero row costs exactly C for every w."""
    X, y = clouds(40, 3)
    padded = np.vstack([X, np.zeros((7, 3))])
    labels = np.append(y, [0, 1, 1, 0, 1, 1, 1])
    options = {"loss": "hinge", "C": 0.3, "fit_intercept": False, "random_state": 0, "tol": 1e-8}
    plain, extended = (
        MaxMarginClassifier(**options).fit(X, y),
        MaxMarginClassifier(**options).fit(padded, labels),
    )
    assert extended.coef_ == pytest.approx(plain.coef_, rel=1e-9)
    assert extended.certificate_.lower == pytest.approx(plain.certificate_.lower + 7 * 0.3, rel=1e-9)
    assert extended.certificate_.dual[-7:].tolist() == [0.3] * 7


def test_zero_row_without_intercept_is_inseparable():
    X, y = clouds(40, 3, gap=4.0)
    X[5] = 0.0
    model = MaxMarginClassifier(np.inf, fit_intercept=False, random_state=0).fit(X, y)
    assert model.status_ is Status.INSEPARABLE
    assert model.certificate_.support.tolist() == [5]  # this row is the origin, which proves it
    assert model.certificate_.upper == 0.0


@pytest.mark.parametrize(
    "algorithm", [name for name in FOR_HARD if name != "pumma"]
)  # it requires an intercept
@pytest.mark.usefixtures("rules_alone")
def test_zero_row_among_thousands_is_handled_by_every_algorithm(algorithm):
    """Without the exact step: inseparable or undecided for the hard margin, certified for the soft margin."""
    rng = np.random.default_rng(0)
    y = rng.integers(0, 2, 2500)
    X = sp.csr_matrix(
        (rng.normal(size=(2500, 3)) + 6.0 * (2 * y - 1)[:, None]) * (np.arange(2500) != 17)[:, None]
    )
    for stored in (X, X.toarray()):
        model = MaxMarginClassifier(
            np.inf, fit_intercept=False, algorithm=algorithm, random_state=0, max_iter=20
        ).fit(stored, y)
        assert model.status_ in (Status.INSEPARABLE, Status.UNDECIDED)
        assert np.isfinite(model.coef_).all()
        assert model.certificate_.lower <= 0.0
        verify(model, stored, y)
    if ALGORITHMS[algorithm]().refuses(Problem("hinge", 1.0)) is None:
        soft = MaxMarginClassifier(1.0, loss="hinge", fit_intercept=False, algorithm=algorithm).fit(X, y)
        assert soft.status_ is Status.CERTIFIED
        assert soft.certificate_.lower >= 1.0 - 1e-9  # the row costs C


@pytest.mark.parametrize("loss", ["hinge", "squared_hinge"])
@pytest.mark.parametrize("C", [1.0, np.inf])
def test_ten_thousand_times_more_features_than_rows_are_certified(loss, C):
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(10, 100_000)), np.arange(10) % 2
    for stored in (X, sp.random_array((10, 100_000), density=0.001, rng=rng, format="csr")):
        begin = time.perf_counter()
        model = MaxMarginClassifier(C, loss=loss, random_state=0, tol=1e-6).fit(stored, y)
        assert time.perf_counter() - begin < 20.0
        assert model.status_ is Status.CERTIFIED
        assert (model.predict(stored) == y).all()
        verify(model, stored, y)


@pytest.mark.parametrize("power", [-60, -20, 20, 60])
@pytest.mark.parametrize("loss", ["hinge", "squared_hinge"])
def test_rescaled_data_with_rescaled_C_give_the_same_solution(power, loss):
    """k x with C / k^2 is an equivalent problem."""
    X, y = clouds(20, 3)
    scale = 2.0 ** round(power * np.log2(10.0))
    plain = MaxMarginClassifier(1.0, loss=loss, random_state=0).fit(X, y)
    scaled = MaxMarginClassifier(scale**-2.0, loss=loss, random_state=0).fit(X * scale, y)
    assert scaled.status_ is Status.CERTIFIED
    assert scaled.coef_ * scale == pytest.approx(plain.coef_, rel=1e-9)
    assert scaled.intercept_ == pytest.approx(plain.intercept_, rel=1e-9)
    verify(scaled, X * scale, y)


SCALES = {
    "all tiny": (0.6, np.full(5, -150.0)),
    "all huge": (4.0, np.full(5, 150.0)),
    "from tiny to one": (0.6, np.array([-150.0, -100.0, -50.0, -5.0, 0.0])),
    "from one to huge": (8.0, np.array([0.0, 5.0, 50.0, 100.0, 150.0])),
    "from tiny to huge": (8.0, np.array([-150.0, -75.0, 0.0, 75.0, 150.0])),
}


@pytest.mark.parametrize("intercept", [True, False])
@pytest.mark.parametrize("loss", ["hinge", "squared_hinge"])
@pytest.mark.parametrize("name", SCALES)
def test_features_of_distant_scales_are_certified(name, loss, intercept):
    """Columns from 1e-150 to 1e150, C = 1; the largest column separates if it is huge."""
    gap, powers = SCALES[name]
    rng = np.random.default_rng(0)
    y = np.arange(20) % 2
    X = (rng.normal(size=(20, 5)) + gap * (2 * y - 1)[:, None]) * 10.0**powers
    model = MaxMarginClassifier(1.0, loss=loss, fit_intercept=intercept, random_state=0).fit(X, y)
    assert model.status_ is Status.CERTIFIED
    assert np.isfinite(model.coef_).all()
    assert np.isfinite(model.intercept_).all()
    if gap > 1.0:
        assert model.score(X, y) == 1.0
    verify(model, X, y)


@pytest.mark.parametrize("intercept", [True, False])
@pytest.mark.parametrize("loss", ["hinge", "squared_hinge"])
def test_inseparable_features_of_distant_scales_are_certified(loss, intercept):
    """Large terms of sum alpha y x must cancel to 1e-150: real dual weights close to the stored ones do so."""
    X, y = clouds(20, 5)
    X = X * 10.0 ** np.array([-150.0, -75.0, 0.0, 75.0, 150.0])
    model = MaxMarginClassifier(1.0, loss=loss, fit_intercept=intercept, random_state=0).fit(X, y)
    assert model.status_ is Status.CERTIFIED
    verify(model, X, y)


def test_hard_margin_with_distant_scales_has_finite_valid_bounds():
    """No certificate within tolerance is required; the model is finite and its bounds hold."""
    X, y = clouds(20, 5)
    X = X * 10.0 ** np.array([-150.0, -75.0, 0.0, 75.0, 150.0])
    model = MaxMarginClassifier(np.inf, random_state=0, max_iter=50).fit(X, y)
    assert model.status_ is not Status.NOT_FINITE
    assert np.isfinite(model.coef_).all()
    assert np.isfinite(model.intercept_).all()
    verify(model, X, y)


@pytest.mark.parametrize("scale", [1e-150, 1.0, 1e150])
def test_hard_margin_is_certified_at_extreme_scales(scale):
    X, y = clouds(20, 3, gap=4.0)
    model = MaxMarginClassifier(np.inf, random_state=0, tol=1e-6).fit(X * scale, y)
    assert model.status_ is Status.CERTIFIED
    truth = optimum(Problem("hinge", np.inf), X, signs(y), np.ones(20))
    assert model.certificate_.lower / scale == pytest.approx(float(truth.lower), rel=1e-5)
    assert model.certificate_.lower / scale <= float(truth.upper) * (1.0 + 1e-12)


# hard margins end


@pytest.mark.parametrize(
    ("algorithm", "intercept"),
    [(name, kind) for name in FOR_HARD for kind in (True, False) if (name, kind) != ("pumma", False)],
)
def test_hard_margin_ends_on_inseparable_data(algorithm, intercept, request):
    for n in (60, 2500):  # with and without the exact step
        if n == 2500:
            request.getfixturevalue("rules_alone")
        X, y = clouds(n, 3, gap=0.3)
        model = MaxMarginClassifier(
            np.inf, algorithm=algorithm, fit_intercept=intercept, random_state=0, max_iter=30
        ).fit(X, y)
        assert model.status_ in (Status.INSEPARABLE, Status.UNDECIDED)
        assert model.certificate_.lower <= 0.0
        assert model.certificate_.upper >= 0.0
        verify(model, X, y)
        if n == 60 and ALGORITHMS[algorithm].convergent:
            assert model.status_ is Status.INSEPARABLE
            # dual weights whose combination is the origin, to rounding
            assert model.certificate_.upper <= 1e-13 * np.abs(X).max()


def test_separable_data_are_not_reported_inseparable():
    for seed in range(20):
        rng = np.random.default_rng(seed)
        X, y = rng.normal(size=(12, 2)) * 10.0 ** rng.uniform(-6, 6), np.arange(12) % 2
        X[:, 0] = np.where(y == 1, 1.0, -1.0) * 10.0 ** rng.uniform(-9, 0) * np.abs(X).max()
        model = MaxMarginClassifier(np.inf, random_state=0).fit(X, y)
        assert model.status_ is Status.CERTIFIED
        assert_optimum_is_bracketed(model, X, y)


def test_margins_near_rounding_are_certified_in_any_row_order():
    """Products for a margin of 1e-7 are rounding errors: the interior point ends before it finds the support."""
    rng = np.random.default_rng(8)
    X, y = rng.normal(size=(12, 2)) * 10.0 ** rng.uniform(-6, 6), np.arange(12) % 2
    X[:, 0] = np.where(y == 1, 1.0, -1.0) * 10.0 ** rng.uniform(-9, 0) * np.abs(X).max()
    for seed in range(40):
        order = np.random.default_rng(seed).permutation(12)
        model = MaxMarginClassifier(np.inf, random_state=0).fit(X[order], y[order])
        assert model.status_ is Status.CERTIFIED
        assert model.certificate_.lower <= X[1, 0] <= model.certificate_.upper


# meaning of the parameters


def objective(model, X, y, C, loss, weights=None):
    """1/2 |w|^2 + C sum s_i loss, by its definition."""
    xi = np.maximum(0.0, 1.0 - signs(y) * (X @ model.coef_[0] + model.intercept_[0]))
    s = np.ones(len(y)) if weights is None else weights
    return 0.5 * model.coef_[0] @ model.coef_[0] + C * (s @ (xi if loss == "hinge" else xi**2))


@pytest.mark.parametrize("loss", ["hinge", "squared_hinge"])
def test_objective_equals_the_documented_one(loss, data):
    X, y = data
    model = MaxMarginClassifier(0.7, loss=loss, random_state=0).fit(X, y)
    value = objective(model, X, y, 0.7, loss)
    assert value == pytest.approx(model.certificate_.upper, rel=1e-12)
    rng = np.random.default_rng(0)
    for _ in range(50):  # perturbed models are not better
        other = clone(model)
        other.coef_ = model.coef_ + 1e-3 * rng.normal(size=(1, 4))
        other.intercept_ = model.intercept_ + 1e-3 * rng.normal(size=1)
        assert objective(other, X, y, 0.7, loss) >= model.certificate_.lower


def test_fitted_attributes(data):
    X, y = data
    model = MaxMarginClassifier(random_state=0).fit(X, np.array(["no", "yes"])[y])
    assert model.coef_.shape == (1, 4)
    assert model.intercept_.shape == (1,)
    assert model.classes_.tolist() == ["no", "yes"]
    assert model.n_features_in_ == 4
    assert model.n_iter_ >= 1
    assert model.status_ is Status.CERTIFIED
    assert model.decision_function(X) == pytest.approx(X @ model.coef_[0] + model.intercept_[0], rel=1e-12)
    assert (model.predict(X) == np.where(model.decision_function(X) > 0, "yes", "no")).all()
    rounds = [report.round for report in model.history_]
    assert rounds == list(range(1, len(rounds) + 1))
    for before, after in zip(model.history_, model.history_[1:], strict=False):
        assert after.lower >= before.lower or after.gap <= before.gap
        assert after.seconds >= before.seconds
        assert after.presentations >= before.presentations


def test_feature_names_are_stored_and_checked(data):
    X, y = data
    frame = pd.DataFrame(X, columns=["a", "b", "c", "d"])
    model = MaxMarginClassifier(random_state=0).fit(frame, y)
    assert model.feature_names_in_.tolist() == ["a", "b", "c", "d"]
    assert model.coef_.tolist() == MaxMarginClassifier(random_state=0).fit(X, y).coef_.tolist()
    verify(model, frame, y)
    with pytest.raises(ValueError, match="feature names should match those that were passed during fit"):
        model.predict(frame[["b", "a", "c", "d"]])


def test_intercept_options(data):
    """None is zero; free is unregularised; augmented equals a constant feature with a regularised weight."""
    X, y = data
    X = X + 5.0
    options = {"loss": "hinge", "C": 0.5, "tol": 1e-9, "random_state": 0}
    none = MaxMarginClassifier(fit_intercept=False, **options).fit(X, y)
    assert none.intercept_.tolist() == [0.0]
    augmented = MaxMarginClassifier(intercept="augmented", intercept_scaling=3.0, **options).fit(X, y)
    explicit = MaxMarginClassifier(fit_intercept=False, **options).fit(
        np.column_stack([X, np.full(60, 3.0)]), y
    )
    assert np.append(augmented.coef_, augmented.intercept_ / 3.0) == pytest.approx(
        explicit.coef_[0], rel=1e-8
    )
    assert augmented.certificate_.upper == pytest.approx(explicit.certificate_.upper, rel=1e-8)
    free = MaxMarginClassifier(**options).fit(X, y)
    assert free.certificate_.upper < augmented.certificate_.lower < none.certificate_.lower
    wide = MaxMarginClassifier(intercept="augmented", intercept_scaling=1e4, **options).fit(X, y)
    assert wide.certificate_.upper == pytest.approx(free.certificate_.upper, rel=1e-4)


def test_sample_weights_equal_copies(data):
    X, y = data
    s = np.random.default_rng(0).integers(0, 4, 60)
    s[:2] = 1
    options = {"loss": "hinge", "tol": 1e-9, "random_state": 0}
    weighted = MaxMarginClassifier(**options).fit(X, y, s)
    copies = MaxMarginClassifier(**options).fit(np.repeat(X, s, axis=0), np.repeat(y, s))
    assert weighted.coef_ == pytest.approx(copies.coef_, rel=1e-9)
    assert weighted.intercept_ == pytest.approx(copies.intercept_, rel=1e-9)
    half = MaxMarginClassifier(C=2.0, **options).fit(X, y, s / 2.0)
    assert half.coef_ == pytest.approx(weighted.coef_, rel=1e-9)
    hard = MaxMarginClassifier(np.inf, **options)
    X, y = clouds(gap=4.0)
    s = np.where(np.arange(60) % 5, 0.01 + np.arange(60), 0.0)
    kept = s > 0
    assert hard.fit(X, y, s).coef_ == pytest.approx(clone(hard).fit(X[kept], y[kept]).coef_, rel=1e-9)


def test_zero_sample_weights_remove_a_class():
    X, y = clouds(60, 4, classes=3)
    s = (y != 1).astype(float)
    model = MaxMarginClassifier(random_state=0).fit(X, y, s)
    assert model.classes_.tolist() == [0, 2]
    assert model.coef_.shape == (1, 4)
    alone = MaxMarginClassifier(random_state=0).fit(X[y != 1], y[y != 1])
    assert model.coef_ == pytest.approx(alone.coef_, rel=1e-9)
    assert model.certificate_.rows == 60
    verify(model, X, y, s)


@pytest.mark.parametrize("classes", [2, 3])
def test_class_weights_equal_sample_weights(classes):
    rng = np.random.default_rng(0)
    X, y = clouds(60, 4, classes=classes)
    y = np.where(rng.random(60) < 0.4, 0, y)  # unequal classes
    s = rng.integers(1, 4, 60).astype(float)
    options = {"loss": "hinge", "tol": 1e-9, "random_state": 0}
    counts = np.bincount(y, weights=s)
    factors = s.sum() / (classes * counts)
    balanced = MaxMarginClassifier(class_weight="balanced", **options).fit(X, y, s)
    explicit = MaxMarginClassifier(**options).fit(X, y, s * factors[y])
    named = MaxMarginClassifier(class_weight=dict(enumerate(factors)), **options).fit(X, y, s)
    assert balanced.class_weight_ == pytest.approx(factors, rel=1e-14)
    for other in (explicit, named):
        assert balanced.coef_ == pytest.approx(other.coef_, rel=1e-8, abs=1e-10)
        assert balanced.intercept_ == pytest.approx(other.intercept_, rel=1e-8)
    verify(balanced, X, y, s)
    partial = MaxMarginClassifier(class_weight={1: 3.0}, **options).fit(X, y)
    assert partial.class_weight_.tolist() == [1.0, 3.0, 1.0][:classes]


def test_zero_class_weight_removes_a_class():
    X, y = clouds(60, 4, classes=3)
    model = MaxMarginClassifier(class_weight={1: 0.0}, loss="hinge", tol=1e-8, random_state=0).fit(X, y)
    verify(model, X, y)
    two = MaxMarginClassifier(loss="hinge", tol=1e-8, random_state=0).fit(X[y != 1], y[y != 1])
    assert model.coef_[model.classes_.tolist().index(2)] == pytest.approx(two.coef_[0], rel=1e-8)


# several classes


def test_multiclass_fits_equal_one_versus_rest_fits():
    X, y = load_iris(return_X_y=True)
    model = MaxMarginClassifier(loss="hinge", random_state=0, tol=1e-8).fit(X, y)
    assert model.coef_.shape == (3, 4)
    for k in range(3):
        alone = MaxMarginClassifier(loss="hinge", random_state=0, tol=1e-8).fit(X, y == k)
        assert model.coef_[k] == pytest.approx(alone.coef_[0], rel=1e-8)
        assert model.intercept_[k] == pytest.approx(alone.intercept_[0], rel=1e-8)
    scores = model.decision_function(X)
    assert scores.shape == (150, 3)
    assert (model.predict(X) == scores.argmax(axis=1)).all()
    assert model.score(X, y) > 0.9
    verify(model, X, y)
    assert {report.label for report in model.history_} == {0, 1, 2}


@pytest.mark.parametrize("n", [150, 2500])
@pytest.mark.usefixtures("rules_alone")
def test_results_do_not_depend_on_n_jobs(n):
    X, y = clouds(n, 4, classes=3)
    one, two = (MaxMarginClassifier(random_state=5, n_jobs=jobs, max_iter=20).fit(X, y) for jobs in (1, 2))
    assert one.coef_.tolist() == two.coef_.tolist()
    assert one.intercept_.tolist() == two.intercept_.tolist()
    assert one.certificate_.gap == two.certificate_.gap


# algorithms, searches, copies


@pytest.mark.parametrize("name", EUCLIDEAN)
def test_algorithm_names_and_objects_are_equivalent(name, data):
    loss = "squared_hinge" if name in FOR_HARD or name in ("flexible-ima", "newton") else "hinge"
    by_name = MaxMarginClassifier(loss=loss, algorithm=name, random_state=0, max_iter=10).fit(*data)
    by_object = clone(by_name).set_params(algorithm=ALGORITHMS[name]()).fit(*data)
    assert by_name.coef_.tolist() == by_object.coef_.tolist()
    assert ALGORITHMS[name]() == ALGORITHMS[name]()
    assert hash(ALGORITHMS[name]()) == hash(ALGORITHMS[name]())


@thorough
@pytest.mark.parametrize("name", EUCLIDEAN)
@pytest.mark.usefixtures("rules_alone")
def test_every_schedule_of_every_algorithm_is_certified(name):
    """More rows than the exact step takes; non-convergent algorithms and Pegasos are only verified."""
    X, y = clouds(2500, 4)
    C = 0.05
    loss = "squared_hinge" if name in FOR_HARD or name in ("flexible-ima", "newton") else "hinge"
    for schedule in ALGORITHMS[name].schedules:
        for stored in (X, sp.csr_matrix(X)) if THOROUGH or compiled_for(name, "csr") else (X,):
            model = MaxMarginClassifier(
                C, loss=loss, algorithm=ALGORITHMS[name](schedule=schedule), random_state=0, max_iter=300
            ).fit(stored, y)
            if ALGORITHMS[name].convergent and name != "pegasos":  # slow near the optimum
                assert model.status_ is Status.CERTIFIED
                assert model.certificate_.gap <= 1e-3
            verify(model, stored, y)


def distance_bound(model) -> float:
    """An upper bound on the distance of w from the optimum: the objective is 1-strongly convex."""
    return float(np.sqrt(2.0 * (model.certificate_.upper - model.certificate_.lower))) + 1e-9


@pytest.mark.usefixtures("rules_alone")
def test_equal_seeds_give_equal_runs():
    X, y = clouds(2500, 4)
    first, second, other = (
        MaxMarginClassifier(algorithm="dcd", random_state=seed).fit(X, y) for seed in (3, 3, 4)
    )
    assert first.coef_.tolist() == second.coef_.tolist()
    assert [r.presentations for r in first.history_] == [r.presentations for r in second.history_]
    # another seed, without the exact step: equal up to the gaps
    assert first.coef_.tolist() != other.coef_.tolist()
    assert np.linalg.norm(first.coef_ - other.coef_) <= distance_bound(first) + distance_bound(other)


def test_clone_pickle_and_grid_search(data):
    X, y = data
    model = MaxMarginClassifier(2.0, loss="hinge", algorithm=MPU(delta=1e-5), random_state=0)
    assert clone(model).get_params() == model.get_params()
    model.fit(X, y)
    unpickled = pickle.loads(pickle.dumps(model))
    assert unpickled.decision_function(X).tolist() == model.decision_function(X).tolist()
    assert verify(unpickled, X, y).lower == verify(model, X, y).lower
    assert unpickled.status_ is Status.CERTIFIED
    rules = [DualCoordinateDescent(), MPU(), Perceptron(), "auto"]
    search = GridSearchCV(MaxMarginClassifier(random_state=0), {"algorithm": rules, "C": [0.1, 1.0]}, cv=3)
    search.fit(X, y)
    assert search.best_params_["algorithm"] in rules
    assert np.isfinite(search.cv_results_["mean_test_score"]).all()
    make_pipeline(StandardScaler(), MaxMarginClassifier()).fit(X, y).predict(X)


@pytest.mark.usefixtures("rules_alone")
def test_warm_start_saves_presentations(data):
    """A second fit starts from the previous solution and takes less than half of the presentations."""
    X, y = clouds(2500, 4)
    model = MaxMarginClassifier(algorithm="dcd", warm_start=True, random_state=0, tol=1e-4).fit(X, y)
    cold = model.history_[-1].presentations
    first, before = model.coef_.copy(), distance_bound(model)
    model.fit(X, y)
    assert model.status_ is Status.CERTIFIED
    assert model.history_[-1].presentations < 0.5 * cold
    assert np.linalg.norm(model.coef_ - first) <= distance_bound(model) + before
    model.set_params(C=1.5).fit(X, y)
    truth = MaxMarginClassifier(1.5, tol=1e-4, random_state=1).fit(X, y)
    assert model.certificate_.lower <= truth.certificate_.upper
    assert truth.certificate_.lower <= model.certificate_.upper
    small, labels = data  # other data: the start is discarded
    model.fit(small, labels)
    assert model.certificate_.rows == 60
    verify(model, small, labels)


def test_verbose_writes_to_standard_error(data, capsys):
    MaxMarginClassifier(verbose=1, random_state=0).fit(*data)
    out, err = capsys.readouterr()
    assert not out
    first, *lines = err.splitlines()
    assert first == "exact: p = 2, a small problem: the optimality conditions on the support"
    assert lines[0].startswith("round    1")
    assert all("gap" in line for line in lines)
    MaxMarginClassifier().fit(*data)
    assert capsys.readouterr() == ("", "")


# stopping


def unreachable_problem():
    """Data with more rows than the exact step takes, for a gap that no algorithm reaches."""
    rng = np.random.default_rng(0)
    y = rng.integers(0, 2, 4000)
    return rng.normal(size=(4000, 40)) + 0.05 * (2 * y - 1)[:, None], y


UNREACHABLE = {
    "C": 1e4,
    "loss": "hinge",
    "tol": 1e-15,
    "max_iter": 10**9,
    "random_state": 0,
    "algorithm": "dcd",
}


def assert_best_model_is_kept(model, X, y):
    """Assert that a stopped fit has a model, verified bounds, and the best upper bound of its history."""
    assert model.certificate_.gap > 1e-15
    assert model.coef_.any()
    assert verify(model, X, y).gap == pytest.approx(model.certificate_.gap, rel=1e-6)
    assert model.certificate_.upper <= min(report.upper for report in model.history_) * (1 + 1e-9)


@pytest.mark.usefixtures("rules_alone")
def test_max_time_stops_the_fit():
    X, y = unreachable_problem()
    MaxMarginClassifier(**{**UNREACHABLE, "max_iter": 1}).fit(X, y)  # compiles
    begin = time.perf_counter()
    model = MaxMarginClassifier(**UNREACHABLE, max_time=0.3).fit(X, y)
    assert 0.3 <= time.perf_counter() - begin < 3.0
    assert model.status_ is Status.MAX_TIME
    assert_best_model_is_kept(model, X, y)


def test_digits_skipped_for_lack_of_time_are_not_certified(monkeypatch):
    """Status MAX_TIME if the gap needs the skipped digits, CONVERGED if the method itself ends short of it."""
    monkeypatch.setattr(Deadline, "can_afford", lambda deadline, seconds: False)
    X, y = unreachable_problem()
    X, y = X[:300, :5], y[:300]  # with more rows plain sums suffice
    model = MaxMarginClassifier(1.0, loss="squared_hinge", tol=1e-15).fit(X, y)
    assert model.status_ is Status.MAX_TIME
    assert verify(model, X, y).gap < model.certificate_.gap < 1e-9
    monkeypatch.setattr(maxmargin.certificates.rows, "GAP_FRACTION", np.inf)
    assert MaxMarginClassifier(1.0, loss="squared_hinge", tol=1e-15).fit(X, y).status_ is Status.CONVERGED


@pytest.mark.parametrize(
    ("algorithm", "p", "power", "C"),
    [("lp", 1.0, 1, 1e-4), ("lp", 1.0, 1, np.inf), ("barrier", 1.5, 2, 1.0), ("newton", 2.0, 2, 1.0)],
)
def test_expired_time_still_gives_a_report_and_a_certificate(algorithm, p, power, C):
    """At least one report, one round, and valid bounds."""
    X, y = unreachable_problem()
    loss = "squared_hinge" if algorithm == "newton" else "hinge"
    model = MaxMarginClassifier(C, loss=loss, p=p, norm_power=power, algorithm=algorithm, max_time=1e-9).fit(
        X[:200], y[:200]
    )
    assert model.n_iter_ >= 1
    assert model.history_
    verify(model, X[:200], y[:200])


def test_late_points_count_where_zero_is_optimal(monkeypatch):
    """w = 0 with the dual weights that prove it, which other algorithms do not find."""
    original = LinearProgram.points

    def late(*task):
        for point in original(*task):
            time.sleep(0.2)
            yield point

    monkeypatch.setattr(LinearProgram, "points", staticmethod(late))
    X, y = unreachable_problem()
    model = MaxMarginClassifier(1e-4, loss="hinge", p=1.0, norm_power=1, algorithm="lp", max_time=0.15).fit(
        X[:300, :5], y[:300]
    )
    assert not model.coef_.any()
    assert model.status_ is Status.CERTIFIED


@pytest.mark.usefixtures("rules_alone")
def test_max_iter_stops_the_fit():
    X, y = unreachable_problem()
    model = MaxMarginClassifier(**{**UNREACHABLE, "max_iter": 3}).fit(X, y)
    assert model.status_ is Status.MAX_ITER
    assert model.n_iter_ == 3
    assert_best_model_is_kept(model, X, y)


@pytest.mark.usefixtures("rules_alone")
def test_callback_stops_the_fit():
    X, y = unreachable_problem()
    reports = []

    def stop_at_fourth(report):
        reports.append(report)
        return len(reports) == 4

    model = MaxMarginClassifier(**UNREACHABLE, callback=stop_at_fourth).fit(X, y)
    assert model.status_ is Status.INTERRUPTED
    assert model.n_iter_ == 4
    assert all(isinstance(report, Report) for report in reports)
    assert reports == model.history_
    assert_best_model_is_kept(model, X, y)


def test_exceptions_of_a_callback_propagate(data):
    def broken(report):
        raise RuntimeError("the callback's own")

    with pytest.raises(RuntimeError, match="the callback's own"):
        MaxMarginClassifier(callback=broken).fit(*data)


CTRL_C = """
    import os, signal, sys, threading, time
    import numpy as np
    sys.path[:0] = {tests!r}
    from test_estimator import UNREACHABLE, assert_best_model_is_kept, unreachable_problem
    from maxmargin import MaxMarginClassifier, Status
    import maxmargin.fit.exact
    maxmargin.fit.exact.MAX_ROWS_TO_OPTIMUM = maxmargin.fit.exact.MAX_ROWS_TO_TOL = 0  # no exact step
    X, y = unreachable_problem()
    times = {times}

    def press(report):
        # Ctrl-C during the fit: a signal to the process itself
        if report.round in (3, 4)[:times]:
            os.kill(os.getpid(), signal.SIGINT)

    before = signal.getsignal(signal.SIGINT)
    {body}
"""


def run_and_interrupt(times: int, body: str) -> subprocess.CompletedProcess:
    from pathlib import Path

    code = textwrap.dedent(CTRL_C).format(
        tests=[str(Path(__file__).parent), *sys.path],
        times=times,
        body=textwrap.dedent(body).replace("\n", "\n"),
    )
    return subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=120, check=False
    )


def test_first_ctrl_c_keeps_the_best_model():
    done = run_and_interrupt(
        1,
        """
model = MaxMarginClassifier(**UNREACHABLE, callback=press).fit(X, y)
assert model.status_ is Status.INTERRUPTED, model.status_
assert_best_model_is_kept(model, X, y)
assert signal.getsignal(signal.SIGINT) is before
print("kept")
""",
    )
    assert done.stdout == "kept\n", done.stderr


def test_second_ctrl_c_raises():
    """Two signals before the fit ends."""
    done = run_and_interrupt(
        2,
        """
def press_twice(report):
    if report.round == 3:
        os.kill(os.getpid(), signal.SIGINT)
        os.kill(os.getpid(), signal.SIGINT)
try:
    MaxMarginClassifier(**UNREACHABLE, callback=press_twice).fit(X, y)
except KeyboardInterrupt:
    assert signal.getsignal(signal.SIGINT) is before
    print("raised")
""",
    )
    assert done.stdout == "raised\n", done.stderr


def test_ctrl_c_at_an_arbitrary_moment_keeps_the_model():
    """A signal from a timer, as from a terminal."""
    done = run_and_interrupt(
        1,
        """
MaxMarginClassifier(**{**UNREACHABLE, "max_iter": 1}).fit(X, y)  # compiles
threading.Timer(0.5, lambda: os.kill(os.getpid(), signal.SIGINT)).start()
model = MaxMarginClassifier(**UNREACHABLE).fit(X, y)
assert model.status_ is Status.INTERRUPTED, model.status_
print("kept")
""",
    )
    assert done.stdout == "kept\n", done.stderr


def test_user_signal_handlers_are_kept():
    done = run_and_interrupt(
        1,
        """
signals = []
signal.signal(signal.SIGINT, lambda *a: signals.append(a))
model = MaxMarginClassifier(**{**UNREACHABLE, "max_iter": 6}, callback=press).fit(X, y)
assert len(signals) == 1 and model.status_ is Status.MAX_ITER
print("stays")
""",
    )
    assert done.stdout == "stays\n", done.stderr


@pytest.mark.usefixtures("rules_alone")
def test_every_schedule_ends_within_max_iter():
    """Rounds end, and max_iter applies, even if the criterion of the schedule is never met."""
    X, y = clouds(2500, 3, gap=0.3)
    for name in FOR_HARD:
        cls = ALGORITHMS[name]
        for schedule in cls.schedules:
            model = MaxMarginClassifier(
                np.inf, algorithm=cls(schedule=schedule), max_iter=3, random_state=0
            ).fit(X, y)
            assert model.n_iter_ <= 3, name
            assert model.status_ in (Status.INSEPARABLE, Status.UNDECIDED)


def test_bounds_of_data_far_from_the_origin_do_not_cross():
    """The bounds use compensated sums where ordinary sums lose digits."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(20, 3))
    y = X[:, 0] + rng.normal(size=20) > 0
    for shift in (1e4, 1e8, 1e12):
        for loss in ("hinge", "squared_hinge"):
            model = MaxMarginClassifier(1e3, loss=loss, random_state=0).fit(X + shift, y)
            assert model.status_ is Status.CERTIFIED
            assert model.certificate_.lower <= model.certificate_.upper * (1.0 + 1e-12)
            verify(model, X + shift, y)


def test_verify_does_not_modify_the_data():
    rng = np.random.default_rng(0)
    columns = np.array([3, 1, 3, 0, 2, 2] * 4)
    X = sp.csr_matrix((rng.normal(size=24), columns, np.arange(0, 25, 6)), shape=(4, 4))
    y = np.array([0, 1, 0, 1])
    model = MaxMarginClassifier(random_state=0).fit(X, y)
    verify(model, X, y)
    assert X.nnz == 24


def test_verify_refuses_an_intercept_added_to_a_model_without_one():
    X, y = clouds(30, 2)
    model = MaxMarginClassifier(fit_intercept=False, random_state=0).fit(X, y)
    model.intercept_[:] = -0.1
    with pytest.raises(CertificateError, match="the model has an intercept"):
        verify(model, X, y)


@pytest.mark.parametrize("loss", ["hinge", "squared_hinge"])
def test_bounds_for_tiny_C_contain_the_optimum(loss):
    """The optimum is C times the smallest loss at w = 0."""
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(60, 4)), rng.integers(3, size=60) > 0
    model = MaxMarginClassifier(1e-300, loss=loss, random_state=0).fit(X, y)
    assert model.status_ is Status.CERTIFIED
    b = np.linspace(-1.0, 1.0, 20001)[:, None]
    xi = np.maximum(0.0, 1.0 - np.where(y, 1.0, -1.0) * b)
    best = (xi if loss == "hinge" else xi**2).sum(axis=1).min()
    assert model.certificate_.lower <= best * 1e-300 * (1.0 + 1e-12)
    assert model.certificate_.upper == pytest.approx(best * 1e-300, rel=1e-6)


def test_tiny_inseparable_data_are_verified():
    for seed in range(20):
        rng = np.random.default_rng(seed)
        X, y = rng.normal(size=(15, 1)) * 1e-140, rng.random(15) < 0.5
        y[:2] = (True, False)
        model = MaxMarginClassifier(np.inf, random_state=0).fit(X, y)
        verify(model, X, y)


@pytest.mark.parametrize("loss", ["hinge", "squared_hinge"])
def test_three_classes_with_one_of_zero_weight_are_certified(loss):
    X, y = clouds(60, 4, classes=3)
    model = MaxMarginClassifier(class_weight={2: 0.0}, loss=loss, random_state=0).fit(X, y)
    assert model.status_ is Status.CERTIFIED
    assert not (model.predict(X) == 2).any()
    verify(model, X, y)


def test_results_do_not_depend_on_the_joblib_backend(monkeypatch):
    import joblib

    monkeypatch.setattr("maxmargin.estimators.linear.MIN_THREADED_ENTRIES", 0)
    X, y = clouds(60, 4, classes=3)
    one = MaxMarginClassifier(random_state=0).fit(X, y)
    with joblib.parallel_config("loky"):
        two = MaxMarginClassifier(random_state=0, n_jobs=2).fit(X, y)
    assert np.array_equal(one.coef_, two.coef_)


# fits after a failed exact step


def test_fit_is_certified_after_a_failed_exact_step():
    """A zero row beside rows of length 1000, C = 1e4: its loss is nearly the whole objective."""
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(60, 30)), rng.integers(0, 2, 60)
    y[:2], X[2] = (0, 1), 0.0
    model = MaxMarginClassifier(1e4, fit_intercept=False, random_state=0).fit(1e3 * X, y)
    assert model.status_ is Status.CERTIFIED
    verify(model, 1e3 * X, y)


def test_tolerance_below_float64_precision_ends_as_converged():
    """The optimum to rounding, with status CONVERGED instead of a round limit."""
    X, y = clouds(200, 5)
    model = MaxMarginClassifier(tol=1e-300, random_state=0).fit(X, y)
    assert model.status_ is Status.CONVERGED
    assert model.certificate_.gap < 1e-12


def test_separation_by_a_small_column_is_not_reported_inseparable():
    """The small column separates, though |v| is at the level of rounding beside the large column."""
    X, y = np.array([[3e-12, 5e9], [0.0, 5e9]]), [0, 1]
    model = MaxMarginClassifier(np.inf, fit_intercept=False, random_state=0, max_iter=20).fit(X, y)
    assert model.status_ is not Status.INSEPARABLE
    verify(model, X, y)


def test_class_weight_of_a_class_without_rows_is_accepted():
    X, y = clouds(30, 3, classes=3)
    model = MaxMarginClassifier(class_weight={0: 1.0, 1: 2.0, 2: 5.0}).fit(X, y, (y != 2).astype(float))
    assert model.classes_.tolist() == [0, 1]
