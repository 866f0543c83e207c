"""Certificates hold for arbitrary points, and verification detects every false claim."""

from __future__ import annotations

import subprocess
import sys
from copy import copy
from dataclasses import replace
from fractions import Fraction
from functools import cache

import numpy as np
import pytest
import scipy.sparse as sp
from clouds import assert_optimum_is_bracketed, clouds
from effort import examples, thorough
from hypothesis import given, settings
from hypothesis import strategies as st
from oracle import exact_bounds
from problems import cases, shifted_classes
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import maxmargin
from maxmargin import CertificateError, MaxMarginClassifier, OnlineMarginClassifier, Problem, verify
from maxmargin.certificates import bounds as formulas
from maxmargin.certificates import one_pass
from maxmargin.certificates.bounds import DualSums, Length, PrimalSums
from maxmargin.certificates.dual_variables import feasible
from maxmargin.certificates.rows import bounds, certify
from maxmargin.certificates.sample import Sample
from maxmargin.data.partitions import ArrayPartitions
from maxmargin.fit.partitioned.verification import verify_partitions
from maxmargin.numerics.sums import Compensated, Plain

EPS = float(np.finfo(float).eps)
# sums over at most 60 rows and features: 60 eps = 1e-14, times 20 for terms larger than their sum and for margins
ROUNDING = 2e-13
problems = st.booleans().flatmap(lambda hard: cases(hard=hard))
sizes = st.sampled_from((0.0, 1e-9, 1e-3, 1.0, 1.0, 1.0, 1e3, 1e9))


@thorough
@settings(max_examples=examples(40, 1500))
@given(problems, st.integers(0, 2**20), sizes, sizes, st.sampled_from((0.0, 0.3, 1.0)))
def test_arbitrary_points_prove_their_bounds_in_rational_arithmetic(c, seed, length, weight, share):
    """Not further away than the rounding margins that are stated; what is proved holds by weak duality."""
    rng = np.random.default_rng(seed)
    n, d = c.X.shape
    alpha = weight * rng.exponential(size=n) * (rng.random(n) < share)
    w, b = length * rng.normal(size=d), length * rng.normal() * (c.problem.intercept != "none")
    if rng.random() < 0.5:  # the weight of these dual weights
        w = c.X.T @ (alpha * c.y)
    sample = Sample(c.stored, c.y, c.weights)
    claim = certify(c.problem, sample, w, b, alpha)
    assert (claim.dual > 0.0).all()
    assert (claim.dual <= c.problem.caps(c.weights)[claim.support]).all()
    exact = exact_bounds(c.problem, c.X, c.y, c.weights, w, b, claim.alpha)
    separate = (bounds(c.problem, sample, w, b, claim.alpha, one) for one in (Plain, Compensated))
    for found in (claim, *separate):
        assert found.lower == -np.inf or Fraction(found.lower) <= exact.lower
        assert found.upper == np.inf or Fraction(found.upper) >= exact.upper
    if np.isfinite(found.lower) and not c.problem.hard:  # exact margins of hard problems are cut at 0
        assert exact.lower - Fraction(found.lower) <= 2 * Fraction(found.below)
    if found.upper < np.inf:
        assert Fraction(found.upper) - exact.upper <= 2 * Fraction(found.above)


@pytest.mark.parametrize("make", [certify, one_pass.certify])
@pytest.mark.parametrize("loss", ["hinge", "squared_hinge"])
def test_errors_of_cancelling_sums_are_part_of_the_margins(make, loss):
    """Rows far from the origin, whose scores and combinations cancel to eight digits; plain sums."""
    for seed in range(10):
        rng = np.random.default_rng(seed)
        X, y, ones = 1e8 + rng.normal(size=(30, 3)), np.where(np.arange(30) % 2, 1.0, -1.0), np.ones(30)
        problem, w, alpha = Problem(loss, 1.0), rng.normal(size=3), 1e-8 * rng.random(30)
        b = -float(np.median(X @ w))
        found = make(problem, Sample(X, y, ones), w, b, alpha, np.inf)
        exact = exact_bounds(problem, X, y, ones, w, b, found.alpha)
        assert Fraction(found.lower) <= exact.lower
        assert Fraction(found.upper) >= exact.upper


def test_errors_of_sums_are_measured_in_the_norm_of_the_problem():
    """At p = 1 the errors of equal columns add up, d / sqrt(d) times as large as in the 2-norm; plain sums."""
    problem, d = Problem("hinge", 1.0, p=1.0, intercept="none"), 10_000
    for seed in range(20):
        a0, a1, x0 = (np.random.default_rng(seed).uniform(0.5, 1.0, 3) * [1e-3, 1e-3, 1e3]).tolist()
        x1 = (a0 * x0 - 1e-6) / a1  # |v| is small, and so is the rounding of the norm itself
        sample = Sample(np.repeat([[x0], [x1]], d, axis=1), np.array([1.0, -1.0]), np.ones(2))
        found = bounds(problem, sample, np.zeros(d), 0.0, np.array([a0, a1]), Plain)
        v = d * (Fraction(a0) * Fraction(x0) - Fraction(a1) * Fraction(x1))
        assert Fraction(found.lower) <= Fraction(a0) + Fraction(a1) - v * v / 2


def sums_with_errors(seed):
    """Random sums of both sides; their errors are 0 in every second case, so that only the formula rounds."""
    rng = np.random.default_rng(seed)
    scale = 10.0 ** rng.uniform(-3, 3) * (seed % 2)
    gains, value, least, margin = rng.exponential(size=4)
    errors = (1e-2 * scale * rng.random(5)).tolist()
    length = Length(value, max(value - errors[0], 0.0), value + errors[1])
    # the margin as computed, and the smallest within its errors, of either sign
    margin = margin * (1.0 if rng.random() < 0.7 else -1.0)
    dual = DualSums(gains, gains * (1.0 + rng.random()), errors[2], errors[3], length)
    return dual, PrimalSums(margin, margin - errors[4], errors[2], length), least


@pytest.mark.parametrize("seed", range(4))
def test_formulas_round_outwards_and_use_every_error(seed):
    """For the worst sums within the given errors, in rational arithmetic."""
    for k in range(seed, 400, 4):
        dual, primal, losses = sums_with_errors(k)
        high, low = (max(Fraction(v), Fraction(0)) for v in (dual.length.high, dual.length.low))
        gains = Fraction(dual.gains) - Fraction(dual.error) - Fraction(dual.imbalance)
        assert Fraction(formulas.half_square_bound(dual).bound) <= gains - high * high / 2
        if gains > 0:
            assert Fraction(formulas.first_power_bound(dual).bound) <= gains / max(high, 1)
            assert Fraction(formulas.largest_margin_bound(dual).bound) >= high / gains
        worst = Fraction(primal.worst)
        if worst > 0 or low > 0:
            divisor = high if worst > 0 else low
            assert Fraction(formulas.attained_margin_bound(primal).bound) <= worst / divisor
        loss = PrimalSums(losses, losses, primal.error, primal.length)
        for power, penalty in ((2, high * high / 2), (1, high)):
            upper = formulas.objective_bound(Problem("hinge", 1.0, power=power), loss).bound
            assert Fraction(upper) >= penalty + Fraction(losses) + Fraction(loss.error)


@thorough
@settings(max_examples=examples(30, 1000))
@given(problems, st.integers(0, 2**20))
def test_feasible_dual_weights_are_capped_and_balanced(c, seed):
    rng = np.random.default_rng(seed)
    n, caps = len(c.y), c.problem.caps(c.weights)
    alpha = 2.0 * np.where(np.isfinite(caps), caps, 1.0) * rng.random(n) * (rng.random(n) < 0.8) - 0.1
    out, cut = feasible(c.problem, c.y, c.weights, alpha), np.clip(alpha, 0.0, caps)
    assert (out >= 0.0).all()
    assert (out <= caps).all()
    if not c.problem.hard:  # scaled down, never up except by rounding; hard margins have no scale
        assert (out <= cut + 4.0 * EPS * cut.max(initial=0.0)).all()
    if c.problem.free:
        exact = [Fraction(v) for v in out.tolist()]
        balance = sum(v * int(l) for v, l in zip(exact, c.y, strict=True))
        assert abs(balance) <= Fraction(2 * n * EPS) * sum(exact)


def test_the_bound_of_a_hard_margin_is_that_of_the_dual_variables_as_given():
    """Not of rounded multiples of them: where the terms of v are 1e10 times as large as v, rounding would show."""
    rng = np.random.default_rng(0)
    problem = Problem("hinge", np.inf, p=np.inf, intercept="none")
    for _ in range(20):
        X, y = 41.0 + 1e-9 * rng.random((60, 3)), np.repeat([1.0, -1.0], [20, 40])
        first, second = rng.integers(1, 1 << 20, (2, 20)).astype(float)
        alpha = 3.0 * np.concatenate([first + second, first, second])
        weights, entries = [Fraction(a) for a in alpha * y], [[Fraction(x) for x in row] for row in X]
        v = [sum((c * row[j] for c, row in zip(weights, entries, strict=True)), Fraction()) for j in range(3)]
        exact = max(map(abs, v)) / sum(map(abs, weights))
        found = bounds(problem, Sample(X, y, np.ones(60)), np.zeros(3), 0.0, alpha, Compensated)
        assert exact <= found.upper <= float(exact) * (1.0 + 1e-12)


@pytest.mark.parametrize("arithmetic", [Plain, Compensated])
def test_underflowing_products_do_not_lower_the_upper_bound(arithmetic):
    """A quarter of the smallest number underflows to 0, which is not an upper bound of the margin."""
    y, hard = np.array([1.0, 1.0, -1.0, -1.0]), Problem("hinge", np.inf, intercept="none")
    for size in (5e-324, 1e-323, 1e-320, 1e-310, 1e-300):
        sample = Sample(size * y[:, None], y, np.ones(4))
        assert bounds(hard, sample, np.ones(1), 0.0, np.ones(4), arithmetic).upper >= size


# fitted models


SOFT = {"loss": "hinge", "C": 0.7}
MODELS = {
    "hinge": SOFT,
    "squared": {"loss": "squared_hinge", "C": 2.0},
    "no intercept": {"fit_intercept": False, **SOFT},
    "augmented": {"intercept": "augmented", "intercept_scaling": 2.0, **SOFT},
    "hard": {"C": np.inf},
}


@cache
def fitted(name):
    """A model and its data, separable for hard margins; tests do not change them."""
    X, y = clouds(40, 5, gap=3.0 if name == "hard" else 0.6)
    return MaxMarginClassifier(random_state=0, tol=1e-3, **MODELS[name]).fit(X, y), X, y


def altered(model, **changes):
    """The same model with changed attributes, as in a forged file."""
    forged = copy(model)
    vars(forged).update(changes)
    return forged


def with_certificate(model, **changes):
    return altered(model, certificate_=replace(model.certificate_, **changes))


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
    data = model.certificate_.fingerprint
    for sums in ({"checksum": np.inf}, {"checksum": np.nan}, {"scale": np.inf}, {"scale": np.nan}):
        with pytest.raises(CertificateError, match=same_size):
            verify(with_certificate(model, fingerprint=replace(data, **sums)), X, y)


@pytest.mark.parametrize("weight", [np.nan, np.inf, -np.inf, -1.0])
def test_weights_that_no_fit_takes_are_refused_in_a_sentence(weight):
    model, X, y = fitted("hinge")
    for weights in (weight, np.where(np.arange(40) == 7, weight, 1.0)):
        with pytest.raises(
            CertificateError, match=r"sample_weight must hold finite numbers of at least 0; weight"
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
    """For pipelines and searches the message states a call of `verify` that works as printed."""
    X, y = clouds(40, 5)
    pipe = make_pipeline(StandardScaler(), MaxMarginClassifier(random_state=0)).fit(X, y)
    search = GridSearchCV(MaxMarginClassifier(random_state=0), {"C": [0.1, 1.0]}, cv=2).fit(X, y)
    for name, model in (("pipe", pipe), ("search", search)):
        with pytest.raises(CertificateError, match=f"this is a {type(model).__name__}") as error:
            verify(model, X, y)
        call = str(error.value)[str(error.value).index("verify(") :].rstrip(".")
        assert eval(call, {"X": X, "y": y, name: model, "verify": verify}).gap <= 1e-3
    for model, message in (
        ({"coef_": X}, "dict has no certificate"),
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


def test_fingerprints_of_large_numbers_differ_for_different_data():
    y, ones = np.array([1.0, -1.0, 1.0]), np.full(3, 1e200)
    X = np.array([[1e200, 2.0], [-1e200, 3.0], [4.0, 1e200]])
    near = [np.array([[0.0], [1e308], [last]]) for last in (1.1e308, 0.9e308)]
    data = (X, ones), (X[::-1], ones), (X, ones * [1, 1, 2])
    one, *others = (Sample(rows, y, s).fingerprint for rows, s in data)
    first, second = (Sample(rows, y, np.ones(3), norms=np.ones(3)).fingerprint for rows in near)
    assert np.isfinite([one.scale, first.checksum, first.scale]).all()
    assert one.difference(Sample(X.copy(), y, ones).fingerprint) is None
    assert all(one.difference(other) is not None for other in others)
    assert first.difference(second) is not None


def test_certificates_need_no_compiler():
    """The certifying module does not import numba, scikit-learn or a solver."""
    code = """
import sys, types
for name in ("numba", "llvmlite", "sklearn"):
    sys.modules[name] = None  # an import of it fails
package = types.ModuleType("maxmargin"); package.__path__ = [sys.argv[1]]
sys.modules["maxmargin"] = package
import numpy as np
from maxmargin.certificates.sample import Sample
from maxmargin.certificates.rows import certify
from maxmargin.problem.problem import Problem
sample = Sample(np.array([[1.0], [-1.0]]), np.array([1.0, -1.0]), np.ones(2))
c = certify(Problem("hinge", 1.0), sample, np.array([1.0]), 0.0, np.array([0.5, 0.5]))
assert c.lower <= 0.5 <= c.upper and c.upper - c.lower < 1e-14  # 45 eps of sums of two
"""
    subprocess.run([sys.executable, "-c", code, maxmargin.__path__[0]], check=True, timeout=120)


def test_models_whose_checksums_overflow_are_verified_in_memory_and_in_passes_and_other_data_refused():
    rng, X, y = shifted_classes(1, n=40, d=2)
    X, weights = 1e150 * X, 1e160 * rng.uniform(0.5, 1.0, 40)
    model = MaxMarginClassifier(1e-200, random_state=0).fit(X, y, weights)
    codes = (y > 0).astype(np.int8)
    verify(model, X, y, weights)
    verify_partitions(model, ArrayPartitions(X, codes, weights))
    for others in (weights * 1.001, weights[::-1]):
        with pytest.raises(CertificateError, match="other data"):
            verify(model, X, y, others)
        with pytest.raises(CertificateError, match="other data"):
            verify_partitions(model, ArrayPartitions(X, codes, others))


def test_hard_margins_whose_sums_overflow_prove_nothing():
    X, y = np.array([[1.7e308, 1.0], [1.7e308, -1.0], [-1.7e308, 1.0]]), np.array([1.0, -1.0, 1.0])
    sample = Sample(X, y, np.ones(3))
    found = certify(Problem("hinge", np.inf), sample, np.array([1e10, 1e10]), 0.0, np.full(3, 1e10))
    assert (found.lower, found.upper) == (-np.inf, np.inf)


@pytest.mark.parametrize("p", [1, 1.5, 2, 3, np.inf])
def test_rows_whose_squares_underflow_count_in_bounds_of_hard_margins(p):
    """One positive number for each row: the largest margin is the smallest of them."""
    for least in (5e-324, 1e-310, 1e-300, 1e-200):
        X, y = np.array([[1.0], [-0.5], [0.25], [-least]]), np.array([1, 0, 1, 0])
        model = MaxMarginClassifier(C=np.inf, p=p, fit_intercept=False, random_state=0).fit(X, y)
        assert model.certificate_.lower <= least <= model.certificate_.upper
        assert np.isfinite(model.coef_).all()
        assert model.score(X, y) == 1.0
