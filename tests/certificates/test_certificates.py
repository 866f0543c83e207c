"""Certificates hold for arbitrary points, and verification detects every false claim."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from functools import cache

import numpy as np
import pytest
import scipy.sparse as sp
from clouds import altered, assert_optimum_is_bracketed, clouds, feasible, proved, with_certificate
from effort import examples, interpreted, thorough
from hypothesis import given, settings
from hypothesis import strategies as st
from oracle import exact_bounds
from problems import cases
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from tables import stored

from maxmargin import CertificateError, MaxMarginClassifier, OnlineMarginClassifier, Problem, verify

# sums over at most 60 rows and features: 60 eps = 1e-14, times 20 for terms larger than their sum and for margins
ROUNDING = 2e-13
problems = st.booleans().flatmap(lambda hard: cases(hard=hard))
sizes = st.sampled_from((0.0, 1e-9, 1e-3, 1.0, 1.0, 1.0, 1e3, 1e9))


@interpreted
@thorough
@settings(max_examples=examples(40, 1500))
@given(problems, st.integers(0, 2**20), sizes, sizes, st.sampled_from((0.0, 0.3, 1.0)))
def test_arbitrary_points_prove_their_bounds_in_rational_arithmetic(c, seed, length, weight, share):
    rng = np.random.default_rng(seed)
    n, d = c.X.shape
    alpha = weight * rng.exponential(size=n) * (rng.random(n) < share)
    alpha = feasible(c.problem, c.y, c.weights, alpha)
    w, b = length * rng.normal(size=d), length * rng.normal() * (c.problem.intercept != "none")
    if rng.random() < 0.5:  # the weight of these dual weights
        w = c.X.T @ (alpha * c.y)
    model = MaxMarginClassifier(random_state=0, max_iter=1, **c.options).fit(c.stored, c.y, c.weights)
    found = proved(model, c.stored, c.y, w, b, alpha, c.weights)
    exact = exact_bounds(c.problem, c.X, c.y, c.weights, w, b, alpha)
    assert found.lower == -np.inf or Fraction(found.lower) <= exact.lower
    assert found.upper == np.inf or Fraction(found.upper) >= exact.upper
    if not c.problem.hard:
        longest = np.linalg.norm(c.X, axis=1).max()
        terms = float(alpha.sum() * (1.0 + longest) + (alpha.sum() * longest) ** 2)
        assert float(exact.lower) - found.lower <= 1e-11 * terms
        scores = np.abs(w).sum() * longest + abs(b)
        assert found.upper - float(exact.upper) <= 1e-11 * (1.0 + scores) ** 2 * (
            1.0 + c.problem.C * c.weights.sum()
        )


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("loss", ["hinge", "squared_hinge"])
def test_errors_of_cancelling_sums_are_part_of_the_bounds(loss, dtype):
    """Rows far from the origin, whose scores and combinations cancel to all but a few digits."""
    rng = np.random.default_rng(0)
    far = 1e8 if dtype is np.float64 else 1e4
    X, y = (far + rng.normal(size=(30, 3))).astype(dtype), np.where(np.arange(30) % 2, 1.0, -1.0)
    model = MaxMarginClassifier(loss=loss, random_state=0).fit(X, y)
    problem, ones = Problem(loss, 1.0), np.ones(30)
    for _ in range(10):
        w, alpha = rng.normal(size=3), feasible(problem, y, ones, rng.random(30) / far)
        b = -float(np.median(X @ w))
        found = proved(model, X, y, w, b, alpha)
        exact = exact_bounds(problem, X, y, ones, w, b, alpha)
        assert Fraction(found.lower) <= exact.lower
        assert Fraction(found.upper) >= exact.upper


def test_errors_of_sums_are_measured_in_the_norm_of_the_problem():
    """At p = 1 the errors of equal columns add up, d / sqrt(d) times as large as in the 2-norm."""
    d, y = 10_000, np.array([1.0, -1.0])
    for seed in range(20):
        a0, a1, x0 = (np.random.default_rng(seed).uniform(0.5, 1.0, 3) * [1e-3, 1e-3, 1e3]).tolist()
        x1 = (a0 * x0 - 1e-6) / a1  # |v| is small, and so is the rounding of the norm itself
        X = np.repeat([[x0], [x1]], d, axis=1)
        options = {"p": 1, "loss": "hinge", "fit_intercept": False, "max_iter": 1}
        model = MaxMarginClassifier(random_state=0, **options).fit(X, y)
        found = proved(model, X, y, np.zeros(d), 0.0, np.array([a0, a1]))
        v = d * (Fraction(a0) * Fraction(x0) - Fraction(a1) * Fraction(x1))
        assert Fraction(found.lower) <= Fraction(a0) + Fraction(a1) - v * v / 2


def noisy_rows():
    """Rows of two classes that no hyperplane separates."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 3))
    return X, np.where(X[:, 0] + 0.5 * rng.normal(size=60) > 0.0, 1.0, -1.0)


@pytest.mark.parametrize("storage", ["memory", "files"])
def test_no_claim_is_verified_by_sums_that_overflow(storage, tmp_path):
    X, y = noisy_rows()
    given = (X, y) if storage == "memory" else stored(tmp_path / "a.parquet", X, y)
    model = MaxMarginClassifier(loss="hinge", random_state=0).fit(X, y)
    assert verify(model, *given).gap <= 1e-3
    model.coef_ = np.full_like(model.coef_, 1e200)
    model.certificate_ = replace(model.certificate_, upper=model.certificate_.lower * (1.0 + 1e-9))
    with pytest.raises(CertificateError, match="the upper bound fails"):
        verify(model, *given)


# the largest entries of the columns, as powers of ten, and whether such a fit is certified
EXTREMES = [([17, 0, 0, 0], False), ([9, 0, -9, 0], True), ([-45] * 4, True)]


@pytest.mark.parametrize(("powers", "certified"), EXTREMES)
@pytest.mark.parametrize("loss", ["hinge", "squared_hinge"])
def test_bounds_of_columns_of_extreme_size_are_true(powers, certified, loss):
    rng = np.random.default_rng(0)
    y = np.where(np.arange(50) % 2, 1.0, -1.0)
    X = (rng.normal(size=(50, 4)) + 0.3 * y[:, None]) * 10.0 ** np.array(powers)
    model = MaxMarginClassifier(loss=loss, random_state=0, max_time=20).fit(X, y)
    claim, ones = model.certificate_, np.ones(50)
    exact = exact_bounds(claim.problem, X, y, ones, model.coef_[0], model.intercept_[0], claim.alpha)
    found = verify(model, X, y)
    for bounds in (claim, found):
        assert Fraction(bounds.lower) <= exact.upper
        assert bounds.upper == np.inf or Fraction(bounds.upper) >= exact.upper
    assert found.gap <= 1e-3 or not certified


@pytest.mark.parametrize("p", [1, 1.5, 2, 3, np.inf])
def test_rows_whose_squares_underflow_count_in_bounds_of_hard_margins(p):
    """One positive number for each row: the largest margin is the smallest of them."""
    for least in (5e-324, 1e-310, 1e-300, 1e-200):
        X, y = np.array([[1.0], [-0.5], [0.25], [-least]]), np.array([1, 0, 1, 0])
        model = MaxMarginClassifier(C=np.inf, p=p, fit_intercept=False, random_state=0).fit(X, y)
        assert model.certificate_.lower <= least <= model.certificate_.upper
        assert np.isfinite(model.coef_).all()


# fitted models


SOFT = {"loss": "hinge", "C": 0.7}
MODELS = {
    "hinge": SOFT,
    "squared": {"loss": "squared_hinge", "C": 2.0},
    "no intercept": {"fit_intercept": False, **SOFT},
    "augmented": {"intercept_scaling": 2.0, **SOFT},
    "hard": {"C": np.inf},
}


@cache
def fitted(name):
    """A model and its data, separable for hard margins; tests do not change them."""
    X, y = clouds(40, 5, gap=3.0 if name == "hard" else 0.6)
    return MaxMarginClassifier(random_state=0, tol=1e-3, **MODELS[name]).fit(X, y), X, y


@interpreted
@pytest.mark.parametrize("name", MODELS)
def test_fitted_models_verify_in_every_storage(name):
    model, X, y = fitted(name)
    claim = model.certificate_
    for data in (X, sp.csc_matrix(X), sp.coo_array(X)):
        verified = verify(model, data, y)
        np.testing.assert_allclose((verified.lower, verified.upper), (claim.lower, claim.upper), ROUNDING)
    assert verified.gap <= 1e-3
    assert_optimum_is_bracketed(model, X, y)
    narrow = X.astype(np.float32)
    with pytest.raises(CertificateError):
        verify(model, narrow, y)  # values differ from the eighth digit on
    other = MaxMarginClassifier(random_state=0, **MODELS[name]).fit(narrow, y)
    for data in (narrow, sp.csr_matrix(narrow), narrow.astype(float)):
        assert verify(other, data, y).lower == pytest.approx(other.certificate_.lower, rel=ROUNDING, abs=0.0)


def forgeries(name, model):
    """Changed models, each with the message of its refusal: w proves one bound, dual weights the other."""
    claim, hard = model.certificate_, name.startswith("hard")
    sides = ("lower", "upper") if hard else ("upper", "lower")
    primal, proof = (f"the {side} bound fails" for side in sides)
    false = f"{primal}: .* is claimed, the data give"
    for coef in (model.coef_ * [1.0, 1.0, 1.01, 1.0, 1.0], model.coef_[:, ::-1], 0.0 * model.coef_):
        yield altered(model, coef_=coef), false
    yield altered(model, coef_=model.coef_ * np.nan), primal
    yield altered(model, intercept_=model.intercept_ + 0.05), "bound fails"
    yield altered(model, coef_=model.coef_[:, :-1]), "4 weights for 5 features"
    yield with_certificate(model, support=np.append(claim.support[1:], 40)), "rows that the data do not have"
    yield with_certificate(model, support=np.append(-1, claim.support[1:])), "rows that the data do not have"
    twice = [np.append(part, part[0]) for part in (claim.support, claim.dual)]
    yield with_certificate(model, support=twice[0], dual=twice[1]), "or one twice"
    yield with_certificate(model, dual=claim.dual[:-1]), "one dual variable for each row"
    yield with_certificate(model, support=claim.support.astype(float)), "one dual variable for each row"
    changes = [(0, -1e-9, "is negative or not a"), (0, np.nan, "is negative or not a")]
    if name in ("hinge", "no intercept", "augmented"):
        changes.append((np.argmax(claim.dual), 0.7 * 1.001, "is above its cap"))
    if name in ("hinge", "squared", "hard"):
        k = np.argmin(claim.dual)
        changes.append((k, 0.99 * claim.dual[k], "are not balanced"))
    for k, value, message in changes:
        dual = claim.dual.copy()
        dual[k] = value
        yield with_certificate(model, dual=dual), f"{proof}: .*{message}"
    overstated = {"lower": claim.lower * (1 + 1e-9), "upper": claim.upper * (1 - 1e-9)}
    for bound, value in overstated.items():
        yield with_certificate(model, **{bound: value}), f"the {bound} bound fails: .* is claimed, the data"
        yield with_certificate(model, **{bound: np.nan}), f"the {bound} bound fails"
    yield with_certificate(model, lower=np.inf), "the lower bound fails"
    if not hard:
        other = replace(claim.problem, C=0.9 * claim.problem.C)
        yield with_certificate(model, problem=other), "bound fails"


@pytest.mark.parametrize("name", MODELS)
def test_false_claims_are_refused(name):
    model, X, y = fitted(name)
    for forged, message in forgeries(name, model):
        with pytest.raises(CertificateError, match=message):
            verify(forged, X, y)
    claim = model.certificate_
    weaker = verify(with_certificate(model, lower=claim.lower * 0.5, upper=claim.upper * 2.0), X, y)
    assert (weaker.lower, weaker.upper) == pytest.approx((claim.lower, claim.upper), rel=ROUNDING, abs=0.0)


def test_other_data_are_refused_with_the_difference():
    model, X, y = fitted("hinge")
    other = "this certificate was made for other data: "
    same_size = other + "sizes agree, values, labels, weights or row"
    rows = np.arange(40)
    changed, negative, weights, exchanged = X.copy(), X.copy(), np.ones(40), rows.copy()
    changed[7, 2] += 1e-5
    negative[0] *= -1.0
    weights[5] = 1.01
    exchanged[[4, 6]] = 6, 4  # two rows of one class
    for data, difference in (
        ((X[:-1], y[:-1]), other + "40 rows then, 39 now"),
        ((X[:, :-1], y), other + "5 features then, 4 now"),
        ((X, np.where(rows == 3, 1 - y, y)), other + "20 positive labels then, 19 now"),
        ((X[:, 0], y), "X must have two dimensions"),
        ((X, y[:-1]), "y must hold one label for each of the 40 rows"),
        ((X, y, weights[:-1]), "sample_weight must hold 40 numbers, one a row"),
        ((X, y + 7), "7"),
        ((X, y[np.where(rows == 2, 3, np.where(rows == 3, 2, rows))]), same_size),
        *(((rows, y), same_size) for rows in (changed, negative, X[exchanged], X[:, ::-1])),
        ((X, y, weights), same_size),
    ):
        with pytest.raises(CertificateError, match=difference):
            verify(model, *data)
    verify(model, X, y, np.ones(40))


@pytest.mark.parametrize("weight", [np.nan, np.inf, -np.inf, -1.0])
def test_weights_that_no_fit_takes_are_refused_in_a_sentence(weight):
    model, X, y = fitted("hinge")
    for weights in (weight, np.where(np.arange(40) == 7, weight, 1.0)):
        with pytest.raises(
            CertificateError, match=r"sample_weight must hold finite numbers of at least 0, and that of row"
        ):
            verify(model, X, y, weights)
    with pytest.raises(CertificateError, match="sample_weight must hold numbers"):
        verify(model, X, y, ["many"] * 40)


def test_multiclass_models_have_one_certificate_per_class():
    X, y = clouds(45, 4, seed=3, classes=3)
    y = np.array(["ant", "bee", "cat"])[y]
    model = MaxMarginClassifier(random_state=0).fit(X, y)
    claim = model.certificate_
    assert claim.gap == max(part.gap for part in claim) <= 1e-3
    for found, part in zip(verify(model, X, y), claim, strict=True):
        assert (found.lower, found.upper) == pytest.approx((part.lower, part.upper), rel=ROUNDING, abs=0.0)
    coef = model.coef_ * [[1.0], [1.1], [1.0]]
    false = replace(claim, parts=(claim[0], claim[1], replace(claim[2], lower=claim[2].lower * 1.01)))
    fewer = "3 classes need 3 certificates, rows of coef_ and intercepts"
    for changes, labelled, message in (
        ({"coef_": coef}, y, "class 'bee': the upper bound fails"),
        ({}, np.roll(y, 1), "class 'ant': this certificate was made for other data"),
        ({"certificate_": false}, y, "class 'cat': the lower bound fails"),
        ({"certificate_": replace(claim, parts=claim.parts[:1])}, y, fewer),
        ({"certificate_": claim[0]}, y, fewer),
        ({"coef_": model.coef_[:1]}, y, fewer),
        ({"intercept_": model.intercept_[:1]}, y, fewer),
    ):
        with pytest.raises(CertificateError, match=message):
            verify(altered(model, **changes), X, labelled)


def test_verify_refuses_other_estimators_with_a_remedy():
    X, y = clouds(40, 5)
    pipe = make_pipeline(StandardScaler(), MaxMarginClassifier(random_state=0)).fit(X, y)
    assert verify(pipe[-1], pipe[:-1].transform(X), y).gap <= 1e-3
    for model, message in (
        ({"coef_": X}, "dict has no certificate"),
        (pipe, "Pipeline has no certificate: .*of a pipeline give the last step"),
        (OnlineMarginClassifier().fit(X, y), "the model of a stream has no certificate"),
        (MaxMarginClassifier(), "not fitted"),
    ):
        with pytest.raises(CertificateError, match=message):
            verify(model, X, y)


def test_certificates_print_their_bounds_and_their_gap():
    for name, what in (("squared", "objective"), ("hard", "margin")):
        claim = fitted(name)[0].certificate_
        assert len(str(claim).splitlines()) == 3
        assert f"{claim.lower:.12g} <= best {what} <= {claim.upper:.12g}" in str(claim)
        assert f"gap {claim.gap:.3g}, proved by {claim.support.size} of 40 rows" in str(claim)
    assert Problem("hinge", 1.0).gap(2.0, 3.0) == 0.5  # (primal - dual) / dual
    assert Problem("hinge", np.inf).gap(2.0, 4.0) == 0.5  # 1 - lower / upper


def test_the_imbalance_of_dual_variables_is_counted():
    """|sum alpha_i y_i| below the tolerance of `verify` would raise the dual value above the optimum."""
    X, y, C = np.array([[0.0], [0.01], [0.02], [-0.01]]), np.array([1, 1, 1, 0]), 1e-3
    model = MaxMarginClassifier(C, tol=1e-12).fit(X, y)
    alpha = np.array(model.certificate_.alpha)
    w, b = model.coef_[0], float(model.intercept_[0])
    margins = [
        Fraction(s) * (Fraction(w[0]) * Fraction(x) + Fraction(b))
        for s, x in zip((1, 1, 1, -1), X[:, 0], strict=True)
    ]
    primal = Fraction(w[0]) ** 2 / 2 + Fraction(C) * sum(max(1 - m, Fraction(0)) ** 2 for m in margins)
    uneven = alpha.copy()
    uneven[0] += 0.5e-12 * alpha.sum()
    for dual in (alpha, uneven):
        lower = proved(model, X, y, w, b, dual).lower
        assert (1.0 - 1e-11) * float(primal) <= lower
        assert Fraction(lower) <= primal
