"""Certificates hold for arbitrary points, and verification detects every false claim."""

from __future__ import annotations

import math
import subprocess
import sys
from dataclasses import replace
from fractions import Fraction
from types import SimpleNamespace

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from oracle import optimum
from problems import cases
from sklearn.datasets import load_iris
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC, LinearSVC

import maxmargin.certificates.rows
from maxmargin import (
    CertificateError,
    MarginRFE,
    MaxMarginClassifier,
    OnlineMarginClassifier,
    Problem,
    verify,
)
from maxmargin.certificates.dual_variables import feasible
from maxmargin.certificates.rows import bounds, certify
from maxmargin.certificates.sample import Sample
from maxmargin.numerics.sums import Compensated, Plain

EPS = float(np.finfo(float).eps)


# weak duality for arbitrary points


multipliers = st.sampled_from((0.0, 1e-9, 1e-3, 1.0, 1.0, 1.0, 1e3, 1e9))


@settings(max_examples=200)
@given(
    st.booleans().flatmap(lambda hard: cases(hard=hard)),
    st.integers(0, 2**20),
    multipliers,
    multipliers,
    st.sampled_from((0.0, 0.3, 1.0)),
)
def test_arbitrary_points_bracket_the_optimum(c, seed, length, weight, share):
    """Non-negative dual weights and arbitrary (w, b): lower <= optimum <= upper."""
    rng = np.random.default_rng(seed)
    n, d = c.X.shape
    alpha = weight * rng.exponential(size=n) * (rng.random(n) < share)
    w, b = length * rng.normal(size=d), length * rng.normal()
    if rng.random() < 0.5:  # the weight of these dual weights
        w = c.X.T @ (alpha * c.y)
    b = b if c.problem.intercept != "none" else 0.0
    truth = optimum(c.problem, c.X, c.y, c.weights)
    found = certify(c.problem, Sample(c.stored, c.y, c.weights), w, b, alpha)
    assert found.lower <= truth.upper  # rational numbers: no tolerance
    assert found.upper >= truth.lower
    assert found.gap >= 0.0 or c.problem.hard
    assert (found.dual > 0.0).all()
    assert (found.dual <= c.problem.caps(c.weights)[found.support]).all()


@settings(max_examples=200)
@given(st.booleans().flatmap(lambda hard: cases(hard=hard)), st.integers(0, 2**20))
def test_feasible_returns_feasible_dual_weights(c, seed):
    rng = np.random.default_rng(seed)
    n = len(c.y)
    caps = np.where(np.isfinite(c.problem.caps(c.weights)), c.problem.caps(c.weights), 1.0)
    alpha = 2.0 * caps * rng.random(n) * (rng.random(n) < 0.8) - 0.1
    out = feasible(c.problem, c.y, c.weights, alpha)
    assert (out >= 0.0).all()
    assert (out <= c.problem.caps(c.weights)).all()
    cut = np.clip(alpha, 0.0, c.problem.caps(c.weights))
    if not c.problem.hard:
        # scaled down, never up except by rounding; hard margins have no scale
        assert (out <= cut + 4.0 * EPS * cut.max(initial=0.0)).all()
    for members in (c.y > 0, c.y < 0) if c.problem.free else (c.y != 0,):
        assert out[members] * cut[members].sum() == pytest.approx(
            cut[members] * out[members].sum(), rel=1e-12
        )
    if c.problem.free:
        exact = [Fraction(v) for v in out.tolist()]
        balance = sum(v * int(l) for v, l in zip(exact, c.y, strict=True))
        assert abs(balance) <= Fraction(2 * n * EPS) * sum(exact)


@settings(max_examples=100)
@given(cases(), st.integers(0, 2**20))
def test_bounds_equal_their_definitions(c, seed):
    """Both bounds against rational arithmetic."""
    rng = np.random.default_rng(seed)
    n, d = c.X.shape
    p, s = c.problem, c.weights
    alpha = feasible(p, c.y, s, rng.exponential(size=n))
    w, b = rng.normal(size=d), 0.0 if p.intercept == "none" else 1.25
    found = bounds(p, Sample(c.stored, c.y, s), w, b, alpha)
    X = [[Fraction(v) for v in row] for row in c.X.tolist()]
    w_, b_ = [Fraction(v) for v in w.tolist()], Fraction(b)
    a, cost = [Fraction(v) for v in alpha.tolist()], [Fraction(p.C) * Fraction(v) for v in s.tolist()]
    y = [int(v) for v in c.y]
    rho = Fraction(p.rho)
    margins = [
        l * (sum(u * v for u, v in zip(row, w_, strict=True)) + b_) for row, l in zip(X, y, strict=True)
    ]
    xi = [max(1 - m, Fraction(0)) for m in margins]
    hinge = p.loss == "hinge"
    primal = sum(v * v for v in w_) / 2 + sum(
        k * (x if hinge else x * x) for k, x in zip(cost, xi, strict=True)
    )
    if rho:
        primal += (b_ / rho) ** 2 / 2
    v = [sum(x * l * t for x, l, t in zip(col, y, a, strict=True)) for col in zip(*X, strict=True)]
    if rho:
        v.append(rho * sum(l * t for l, t in zip(y, a, strict=True)))
    dual = sum(a) - sum(t * t for t in v) / 2
    if not hinge:
        dual -= sum((t * t / (4 * k) for t, k in zip(a, cost, strict=True) if k), Fraction(0))
    # rounded outwards, by no more than the stated error
    for out in (found, bounds(p, Sample(c.stored, c.y, s), w, b, alpha, Compensated)):
        assert out.lower <= dual
        assert out.upper >= primal
        assert (dual - Fraction(out.lower)) + (Fraction(out.upper) - primal) <= 2 * Fraction(
            out.below + out.above
        )


# fitted models


def two_clouds(n=40, d=5, seed=0, gap=0.6):
    rng = np.random.default_rng(seed)
    y = np.where(np.arange(n) % 2, 1, 0)
    return rng.normal(size=(n, d)) + gap * (2 * y - 1)[:, None], y


SOFT = {"loss": "hinge", "C": 0.7}
MODELS = {
    "hinge": SOFT,
    "squared": {"loss": "squared_hinge", "C": 2.0},
    "no intercept": {"fit_intercept": False, **SOFT},
    "augmented": {"intercept": "augmented", "intercept_scaling": 2.0, **SOFT},
    "hard": {"C": np.inf},
    "hard, no intercept": {"C": np.inf, "fit_intercept": False},
    "hard, augmented": {"C": np.inf, "intercept": "augmented"},
}


def fitted(name, **data):
    """A model and its data, separable for hard margins."""
    X, y = two_clouds(**{"gap": 3.0 if name.startswith("hard") else 0.6, **data})
    return MaxMarginClassifier(random_state=0, tol=1e-3, **MODELS[name]).fit(X, y), X, y


def altered(model, **changes):
    """The same model with changed attributes, as in a forged file."""
    names = ("coef_", "intercept_", "classes_", "class_weight_", "certificate_")
    return SimpleNamespace(**{**{name: getattr(model, name) for name in names}, **changes})


def with_certificate(model, **changes):
    return altered(model, certificate_=replace(model.certificate_, **changes))


@pytest.mark.parametrize("name", MODELS)
def test_fitted_models_verify(name):
    model, X, y = fitted(name)
    verified = verify(model, X, y)
    claim = model.certificate_
    assert verified.lower == pytest.approx(claim.lower, rel=1e-12)
    assert verified.upper == pytest.approx(claim.upper, rel=1e-12)
    assert verified.gap <= 1e-3
    signs = np.where(y == 1, 1.0, -1.0)
    truth = optimum(claim.problem, X, signs, np.ones(len(y)))
    assert verified.lower <= float(truth.upper) * (1 + 1e-13)
    assert verified.upper >= float(truth.lower) * (1 - 1e-13)


@pytest.mark.parametrize("name", MODELS)
def test_verification_does_not_depend_on_storage(name):
    model, X, y = fitted(name)
    narrow = X.astype(np.float32)
    other = MaxMarginClassifier(random_state=0, **MODELS[name]).fit(narrow, y)
    for claim, values in ((model, X), (other, narrow)):
        for data in (
            values,
            sp.csr_matrix(values),
            sp.csc_matrix(values),
            sp.coo_array(values),
            values.astype(float),
        ):
            assert verify(claim, data, y).lower == pytest.approx(claim.certificate_.lower, rel=1e-12)
    with pytest.raises(CertificateError):
        verify(model, narrow, y)  # values differ from the eighth digit on


@pytest.mark.parametrize("name", MODELS)
def test_changed_weights_fail_the_primal_bound(name):
    """w proves the upper bound of soft margins and the lower bound of hard margins."""
    model, X, y = fitted(name)
    side = "lower" if name.startswith("hard") else "upper"
    for coef in (model.coef_ * [1.0, 1.0, 1.01, 1.0, 1.0], model.coef_[:, ::-1], np.zeros_like(model.coef_)):
        with pytest.raises(CertificateError, match=rf"the {side} bound fails: .* is claimed, the data give"):
            verify(altered(model, coef_=coef), X, y)
    if "no intercept" not in name:
        with pytest.raises(CertificateError, match=rf"the {side} bound fails"):
            verify(altered(model, intercept_=model.intercept_ + 0.05), X, y)
    with pytest.raises(CertificateError, match=rf"the {side} bound fails"):
        verify(altered(model, coef_=model.coef_ * np.nan), X, y)


@pytest.mark.parametrize("name", MODELS)
def test_weights_of_wrong_length_are_refused(name):
    model, X, y = fitted(name)
    with pytest.raises(CertificateError):
        verify(altered(model, coef_=model.coef_[:, :-1]), X, y)


@pytest.mark.parametrize("name", MODELS)
def test_infeasible_dual_weights_are_refused(name):
    model, X, y = fitted(name)
    side = "upper" if name.startswith("hard") else "lower"
    dual = model.certificate_.dual
    for invalid in (-1e-9, np.nan):
        changed_values = dual.copy()
        changed_values[0] = invalid
        with pytest.raises(
            CertificateError, match=f"the {side} bound fails: a dual weight is negative or not a"
        ):
            verify(with_certificate(model, dual=changed_values), X, y)
    if name in ("hinge", "no intercept", "augmented"):
        changed_values = dual.copy()
        changed_values[np.argmax(dual)] = 0.7 * 1.001
        with pytest.raises(CertificateError, match="the lower bound fails: a dual weight is above its cap"):
            verify(with_certificate(model, dual=changed_values), X, y)
    if name in ("hinge", "squared", "hard"):
        changed_values = dual.copy()
        changed_values[np.argmin(dual)] *= 0.99
        with pytest.raises(CertificateError, match=f"the {side} bound fails: dual weights are not balanced"):
            verify(with_certificate(model, dual=changed_values), X, y)


@pytest.mark.parametrize("name", MODELS)
def test_invalid_support_is_refused(name):
    model, X, y = fitted(name)
    for invalid in (len(y), -1):
        support = model.certificate_.support.copy()
        support[0] = invalid
        with pytest.raises(CertificateError):
            verify(with_certificate(model, support=support), X, y)
    with pytest.raises(CertificateError):  # a duplicate index would count inconsistently
        verify(
            with_certificate(
                model,
                support=np.append(model.certificate_.support, model.certificate_.support[0]),
                dual=np.append(model.certificate_.dual, model.certificate_.dual[0]),
            ),
            X,
            y,
        )
    with pytest.raises(CertificateError):
        verify(with_certificate(model, dual=model.certificate_.dual[:-1]), X, y)


@pytest.mark.parametrize("name", MODELS)
def test_overstated_bounds_are_refused(name):
    model, X, y = fitted(name)
    claim = model.certificate_
    with pytest.raises(CertificateError, match=r"the lower bound fails: .* is claimed, the data give"):
        verify(with_certificate(model, lower=claim.lower * (1 + 1e-9)), X, y)
    with pytest.raises(CertificateError, match=r"the upper bound fails: .* is claimed, the data give"):
        verify(with_certificate(model, upper=claim.upper * (1 - 1e-9)), X, y)
    for invalid_bound in (np.nan, np.inf):
        with pytest.raises(CertificateError, match="the lower bound fails"):
            verify(with_certificate(model, lower=invalid_bound), X, y)
        with pytest.raises(CertificateError, match="the upper bound fails"):
            verify(with_certificate(model, upper=-invalid_bound), X, y)
    # weaker claims are accepted
    weaker = verify(with_certificate(model, lower=claim.lower * 0.5, upper=claim.upper * 2.0), X, y)
    assert weaker.lower == pytest.approx(claim.lower, rel=1e-12)
    assert weaker.upper == pytest.approx(claim.upper, rel=1e-12)


@pytest.mark.parametrize("name", [name for name in MODELS if not name.startswith("hard")])
def test_changed_C_is_refused(name):
    """The same dual weights and w do not prove the claim for another C."""
    model, X, y = fitted(name)
    problem = model.certificate_.problem
    with pytest.raises(CertificateError, match="bound fails"):
        verify(with_certificate(model, problem=replace(problem, C=problem.C * 0.9)), X, y)


@pytest.mark.parametrize("name", ["hinge", "hard"])
def test_other_data_are_refused_with_the_difference(name):
    model, X, y = fitted(name)
    other = "this certificate was made for other data: "
    with pytest.raises(CertificateError, match=other + "40 rows then, 39 now"):
        verify(model, X[:-1], y[:-1])
    with pytest.raises(CertificateError, match=other + "5 features then, 4 now"):
        verify(model, X[:, :-1], y)
    flipped = y.copy()
    flipped[3] = 1 - flipped[3]
    with pytest.raises(CertificateError, match=other + "20 positive labels then, 19 now"):
        verify(model, X, flipped)
    swapped = y.copy()
    swapped[[2, 3]] = swapped[[3, 2]]
    changed = X.copy()
    changed[7, 2] += 1e-5
    order = np.random.default_rng(0).permutation(40)
    exchanged = order.copy()
    exchanged[:] = np.arange(40)
    exchanged[[4, 6]] = 6, 4  # two rows of one class exchanged
    negative = X.copy()
    negative[0] *= -1.0
    for X_, y_ in (
        (X, swapped),
        (changed, y),
        (X[order], y[order]),
        (X[exchanged], y[exchanged]),
        (X[:, ::-1], y),
        (negative, y),
    ):
        with pytest.raises(
            CertificateError, match=other + "sizes agree, values, labels, weights or row order"
        ):
            verify(model, X_, y_)
    changed_weights = np.ones(40)
    changed_weights[5] = 1.01
    with pytest.raises(CertificateError, match=other + "sizes agree, values, labels, weights or row order"):
        verify(model, X, y, changed_weights)
    verify(model, X, y, np.ones(40))


def test_unknown_labels_are_refused():
    model, X, y = fitted("hinge")
    with pytest.raises(CertificateError):
        verify(model, X, np.where(y == 0, 7, y))


@pytest.mark.parametrize("name", ["hinge", "squared", "hard"])
def test_changed_sample_weights_are_refused(name):
    X, y = two_clouds(gap=3.0 if name == "hard" else 0.6)
    s = np.random.default_rng(1).integers(0, 4, 40).astype(float)
    s[:2] = 1.0
    model = MaxMarginClassifier(random_state=0, **MODELS[name]).fit(X, y, s)
    assert verify(model, X, y, s).gap <= 1e-3
    for changed_values in (None, s + (np.arange(40) == 9), s * 2.0, s[::-1]):
        with pytest.raises(CertificateError, match="made for other data"):
            verify(model, X, y, changed_values)
    truth = optimum(model.certificate_.problem, X, np.where(y == 1, 1.0, -1.0), s)
    assert model.certificate_.lower <= float(truth.upper) * (1 + 1e-13)
    assert model.certificate_.upper >= float(truth.lower) * (1 - 1e-13)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (([1.0, 2.0], [0, 1]), "X must have two dimensions"),
        (([[1.0], [2.0]], [0, 1, 1]), "y must hold one label for each of the 2 rows"),
        (([[1.0], [2.0]], [[0], [1]]), "y must hold one label for each of the 2 rows"),
        (([[1.0], [2.0]], [0, 1], [1.0]), "sample_weight must hold one number a row"),
    ],
)
def test_data_of_wrong_shape_are_refused(arguments, message):
    model, *_ = fitted("hinge")
    with pytest.raises(CertificateError, match=message):
        verify(model, *arguments)


def test_changed_class_weights_are_refused():
    X, y = two_clouds()
    model = MaxMarginClassifier(class_weight={0: 3.0}, random_state=0, **SOFT).fit(X, y)
    assert verify(model, X, y).gap <= 1e-3
    with pytest.raises(CertificateError, match="made for other data"):
        verify(altered(model, class_weight_=np.ones(2)), X, y)
    plain = MaxMarginClassifier(random_state=0, **SOFT).fit(X, y, np.where(y == 0, 3.0, 1.0))
    assert plain.certificate_.upper == pytest.approx(model.certificate_.upper, rel=1e-12)


# several classes


def three_clouds():
    rng = np.random.default_rng(3)
    y = np.arange(45) % 3
    return rng.normal(size=(45, 4)) + 1.5 * np.eye(4)[y], np.array(["ant", "bee", "cat"])[y]


def test_multiclass_models_have_one_certificate_per_class():
    X, y = three_clouds()
    model = MaxMarginClassifier(random_state=0).fit(X, y)
    claim = model.certificate_
    assert len(claim) == 3
    assert claim.gap == max(part.gap for part in claim) <= 1e-3
    verified = verify(model, X, y)
    for part, name in zip(verified, claim.classes, strict=True):
        truth = optimum(part.problem, X, np.where(y == name, 1.0, -1.0), np.ones(45))
        assert part.lower <= float(truth.upper) * (1 + 1e-13)
        assert part.upper >= float(truth.lower) * (1 - 1e-13)
    coef = model.coef_.copy()
    coef[1] *= 1.1
    with pytest.raises(CertificateError, match="class 'bee': the upper bound fails"):
        verify(altered(model, coef_=coef), X, y)
    with pytest.raises(CertificateError, match="class 'ant': this certificate was made for other data"):
        verify(model, X, np.roll(y, 1))
    false_claim = replace(claim, parts=(claim[0], claim[1], replace(claim[2], lower=claim[2].lower * 1.01)))
    with pytest.raises(CertificateError, match="class 'cat': the lower bound fails"):
        verify(altered(model, certificate_=false_claim), X, y)
    assert len(str(claim).splitlines()) == 4
    assert all(name in str(claim) for name in ("ant", "bee", "cat"))


# printing and fingerprints


@pytest.mark.parametrize("name", MODELS)
def test_certificates_print_in_a_few_lines(name):
    model, *_ = fitted(name)
    claim = model.certificate_
    text = str(claim)
    assert len(text.splitlines()) <= 4
    assert max(map(len, text.splitlines())) <= 100
    assert f"{claim.lower:.12g} <= best {'margin' if claim.problem.hard else 'objective'} <=" in text
    assert f"{claim.upper:.12g}" in text
    assert f"gap {claim.gap:.3g}" in text
    assert f"{claim.support.size} of 40 rows" in text
    assert claim.rows == 40
    assert claim.support.dtype == np.int64
    assert (np.diff(claim.support) > 0).all()


def test_gap_equals_its_definition():
    soft, hard = Problem("hinge", 1.0), Problem("hinge", np.inf)
    assert soft.gap(2.0, 3.0) == 0.5  # (primal - dual) / dual
    assert soft.gap(0.0, 3.0) == soft.gap(-1.0, 3.0) == np.inf
    assert hard.gap(2.0, 4.0) == 0.5  # 1 - lower / upper
    assert hard.gap(-2.0, 4.0) == 1.5
    assert hard.gap(0.0, 0.0) == np.inf


@given(st.integers(0, 2**20), st.integers(0, 39), st.integers(0, 4), st.sampled_from((1e-6, 1e-3, 1.0, -2.0)))
@settings(max_examples=100)
def test_fingerprint_depends_on_every_entry(seed, i, j, change):
    X, y = two_clouds(seed=seed)
    signs, ones = np.where(y == 1, 1.0, -1.0), np.ones(40)
    before = Sample(X, signs, ones).fingerprint
    assert before.difference(Sample(sp.csr_matrix(X), signs, ones).fingerprint) is None
    X[i, j] += change
    assert before.difference(Sample(X, signs, ones).fingerprint) is not None


@pytest.mark.parametrize("intercept", ["free", "augmented", "none"])
@pytest.mark.parametrize("loss", ["hinge", "squared_hinge"])
def test_bounds_do_not_depend_on_the_size_of_blocks(loss, intercept, monkeypatch):
    """The same bounds and the same fingerprint up to rounding, for any block size."""
    X, y = two_clouds(n=200, seed=8)
    signs, weights = np.where(y == 1, 1.0, -1.0), np.linspace(0.5, 2.0, y.size)
    problem = Problem(loss, 2.0, intercept=intercept)
    w, alpha = X.T @ signs / 100.0, np.abs(np.sin(np.arange(y.size)))
    whole = certify(problem, Sample(X, signs, weights), w, 0.1, alpha)
    monkeypatch.setattr(maxmargin.numerics.sums, "TERMS", 7)
    blockwise = certify(problem, Sample(X, signs, weights), w, 0.1, alpha)
    assert blockwise.lower == pytest.approx(whole.lower, rel=1e-13)
    assert blockwise.upper == pytest.approx(whole.upper, rel=1e-13)
    assert whole.fingerprint.difference(blockwise.fingerprint) is None
    assert blockwise.fingerprint.checksum == pytest.approx(whole.fingerprint.checksum, rel=1e-13)


def test_certificates_need_no_compiler():
    """The certifying module does not import numba, scikit-learn or a solver."""
    code = """
import sys, types
for name in ("numba", "llvmlite", "sklearn"):
    sys.modules[name] = None  # an import of it fails
import importlib.util
root = sys.argv[1]
package = types.ModuleType("maxmargin"); package.__path__ = [root]
sys.modules["maxmargin"] = package
import numpy as np
from maxmargin.certificates.sample import Sample
from maxmargin.certificates.rows import certify
from maxmargin.problem.problem import Problem
sample = Sample(np.array([[1.0], [-1.0]]), np.array([1.0, -1.0]), np.ones(2))
c = certify(Problem("hinge", 1.0), sample, np.array([1.0]), 0.0, np.array([0.5, 0.5]))
assert c.lower <= 0.5 <= c.upper
assert c.upper - c.lower < 1e-14
"""
    import maxmargin

    root = maxmargin.__path__[0]
    subprocess.run([sys.executable, "-c", code, root], check=True, timeout=120)


def test_missing_parts_of_a_certificate_are_refused():
    """One certificate, row of coef_ and intercept per problem."""
    X, y = two_clouds()
    labels = np.arange(40) % 3
    model = MaxMarginClassifier(random_state=0).fit(X, labels)
    parts = model.certificate_.parts
    for change in (
        {"certificate_": replace(model.certificate_, parts=parts[:1])},
        {"certificate_": parts[0]},
        {"coef_": model.coef_[:1]},
        {"intercept_": model.intercept_[:1]},
    ):
        with pytest.raises(
            CertificateError, match="3 classes need 3 certificates, rows of coef_ and intercepts"
        ):
            verify(altered(model, **change), X, labels)
    binary = MaxMarginClassifier(random_state=0).fit(X, y)
    invalid_claim = replace(binary.certificate_, support=binary.certificate_.support.astype(float))
    with pytest.raises(CertificateError, match="must be one dual weight for each row it names"):
        verify(altered(binary, certificate_=invalid_claim), X, y)


@pytest.mark.parametrize("arithmetic", [Plain, Compensated])
@pytest.mark.parametrize("size", [5e-324, 1e-323, 1e-320, 1e-310, 1e-300])
def test_underflowing_products_do_not_lower_the_upper_bound(arithmetic, size):
    """A quarter of the smallest number underflows to 0, which is not an upper bound of the margin."""
    y = np.array([1.0, 1.0, -1.0, -1.0])
    sample = Sample(size * y[:, None], y, np.ones(4))
    hard = Problem("hinge", np.inf, intercept="none")
    assert bounds(hard, sample, np.ones(1), 0.0, np.ones(4), arithmetic).upper >= size


def test_fingerprints_of_large_numbers_differ_for_different_data():
    X, y = np.array([[1e200, 2.0], [-1e200, 3.0], [4.0, 1e200]]), np.array([1.0, -1.0, 1.0])
    one = Sample(X, y, np.full(3, 1e200)).fingerprint
    assert one.difference(Sample(X.copy(), y, np.full(3, 1e200)).fingerprint) is None
    for other in (Sample(X[::-1], y, np.full(3, 1e200)), Sample(X, y, np.array([1e200, 1e200, 2e200]))):
        assert one.difference(other.fingerprint) is not None


def solved_problem(stored=np.asarray):
    """A problem, its sample, and the optimal points up to rounding."""
    X, y = two_clouds()
    model = MaxMarginClassifier(1.0, tol=1e-12).fit(X, y)
    sample, certificate = Sample(stored(X), np.where(y > 0, 1.0, -1.0), np.ones(y.size)), model.certificate_
    alpha = np.zeros(y.size)
    alpha[certificate.support] = certificate.dual
    return certificate.problem, sample, model.coef_[0], float(model.intercept_[0]), alpha


def test_unaffordable_compensated_sums_are_skipped(monkeypatch):
    """The bounds are then valid but wider."""
    problem, sample, *points = solved_problem()
    arithmetics = []
    monkeypatch.setattr(
        maxmargin.certificates.rows,
        "bounds",
        lambda *task: arithmetics.append(task[5]) or bounds(*task),
    )
    found = {}
    enough = Compensated.SECONDS * sample.X.size
    for left in (0.5 * enough, enough):
        arithmetics.clear()
        found[left] = certify(problem, sample, *points, 0.0, left.__ge__)
        assert arithmetics == ([Plain] if left < enough else [Plain, Compensated])
    wide, narrow = found.values()
    assert wide.lower < narrow.lower <= narrow.upper < wide.upper
    assert wide.gap < 1e-9


@pytest.mark.parametrize("stored", [np.asarray, sp.csr_matrix])
def test_interrupted_compensated_sums_fall_back(stored, monkeypatch):
    """Before the next block of rows, with the bounds found so far; later sums are complete."""
    monkeypatch.setattr(maxmargin.numerics.sums, "_BLOCK", 16)
    problem, sample, *points = solved_problem(stored)
    polls, limit = [], np.inf

    def affords(seconds):
        polls.append(seconds)
        return len(polls) <= limit

    narrow = certify(problem, sample, *points, 0.0, affords)
    times = len(polls)
    assert times > 10
    assert not any(polls[1:])
    for limit in (0, 1, 2, times // 2, times - 1):
        polls.clear()
        wide = certify(problem, sample, *points, 0.0, affords)
        assert len(polls) == limit + 1
        assert wide.lower < narrow.lower <= narrow.upper < wide.upper
        assert wide.gap < 1e-9
    verified = certify(problem, sample, *points)
    assert (verified.lower, verified.upper) == (narrow.lower, narrow.upper)


def test_verify_refuses_other_estimators_with_a_remedy():
    """For pipelines, searches and selectors the message states a call of `verify` that works as printed."""
    X, y = load_iris(return_X_y=True)
    pipe = make_pipeline(StandardScaler(), MaxMarginClassifier(random_state=0)).fit(X, y)
    search = GridSearchCV(MaxMarginClassifier(random_state=0), {"C": [0.1, 1.0]}, cv=2).fit(X, y)
    selector = MarginRFE("auto", p=2, n_features_to_select=2, random_state=0).fit(X, y)
    names = {"X": X, "y": y, "pipe": pipe, "search": search, "selector": selector, "verify": verify}
    for model, kind in ((pipe, "Pipeline"), (search, "GridSearchCV"), (selector, "MarginRFE")):
        with pytest.raises(CertificateError, match=f"this is a {kind}") as error:
            verify(model, X, y)
        call = str(error.value)[str(error.value).index("verify(") :].rstrip(".")
        assert eval(call, names).gap <= 1e-3
    # rows of text before the pipeline do not change the message
    with pytest.raises(CertificateError, match="this is a Pipeline"):
        verify(pipe, [["red"], ["blue"]], ["yes", "no"])
    for model in (LinearSVC().fit(X, y), SVC().fit(X, y), {"coef_": X}):
        with pytest.raises(
            CertificateError, match=f"{type(model).__name__} has no certificate: fit a MaxMargin"
        ):
            verify(model, X, y)
    with pytest.raises(CertificateError, match="the model of a stream has no certificate"):
        verify(OnlineMarginClassifier().fit(X, y), X, y)
    with pytest.raises(
        CertificateError, match="not fitted, so that there is nothing to verify: call fit first"
    ):
        verify(MaxMarginClassifier(), X, y)


def test_dual_weights_of_many_equal_values_are_balanced():
    """Rounding errors of equal summands have one sign: the remainder is subtracted from one of them."""
    n = 2_000_000
    y = np.where(np.arange(n) % 3 == 0, 1.0, -1.0)
    alpha = feasible(Problem("hinge", 0.1), y, np.ones(n), np.full(n, 0.1))
    assert abs(math.fsum(alpha * y)) <= 1e-14 * alpha.sum()


def test_fingerprints_near_the_limit_of_float64_differ():
    y, ones = np.array([1.0, -1.0, 1.0, -1.0]), np.ones(4)
    one, other = (
        Sample(np.array([[0.0], [1e308], [last], [3.0]]), y, ones, norms=ones).fingerprint
        for last in (1.1e308, 0.9e308)
    )
    assert np.isfinite([one.checksum, one.scale]).all()
    assert one.difference(one) is None
    assert one.difference(other) is not None
