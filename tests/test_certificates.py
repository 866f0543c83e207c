"""Certificates hold whatever they are made of, and verification finds every lie."""

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


# weak duality: any point will do


multipliers = st.sampled_from((0.0, 1e-9, 1e-3, 1.0, 1.0, 1.0, 1e3, 1e9))


@settings(max_examples=200)
@given(
    st.booleans().flatmap(lambda hard: cases(hard=hard)),
    st.integers(0, 2**20),
    multipliers,
    multipliers,
    st.sampled_from((0.0, 0.3, 1.0)),
)
def test_any_point_brackets_the_optimum(c, seed, length, weight, share):
    """Non-negative dual weights and any (w, b): lower <= optimum <= upper."""
    rng = np.random.default_rng(seed)
    n, d = c.X.shape
    alpha = weight * rng.exponential(size=n) * (rng.random(n) < share)
    w, b = length * rng.normal(size=d), length * rng.normal()
    if rng.random() < 0.5:  # or the weight that belongs to these dual weights
        w = c.X.T @ (alpha * c.y)
    b = b if c.problem.intercept != "none" else 0.0
    truth = optimum(c.problem, c.X, c.y, c.weights)
    found = certify(c.problem, Sample(c.stored, c.y, c.weights), w, b, alpha)
    assert found.lower <= truth.upper  # rational numbers: not a digit of grace
    assert found.upper >= truth.lower
    assert found.gap >= 0.0 or c.problem.hard
    assert (found.dual > 0.0).all()
    assert (found.dual <= c.problem.caps(c.weights)[found.support]).all()


@settings(max_examples=200)
@given(st.booleans().flatmap(lambda hard: cases(hard=hard)), st.integers(0, 2**20))
def test_what_is_made_feasible_is_feasible(c, seed):
    rng = np.random.default_rng(seed)
    n = len(c.y)
    caps = np.where(np.isfinite(c.problem.caps(c.weights)), c.problem.caps(c.weights), 1.0)
    alpha = 2.0 * caps * rng.random(n) * (rng.random(n) < 0.8) - 0.1
    out = feasible(c.problem, c.y, c.weights, alpha)
    assert (out >= 0.0).all()
    assert (out <= c.problem.caps(c.weights)).all()
    cut = np.clip(alpha, 0.0, c.problem.caps(c.weights))
    if not c.problem.hard:
        # scaled down, never up but for the last digits; the hard margin does not know a scale
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
def test_bounds_are_the_definitions(c, seed):
    """The two values against rational arithmetic, formula by formula."""
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
    # rounded outwards, by no more than is said
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
    """A model and its data; the hard margin gets separable ones."""
    X, y = two_clouds(**{"gap": 3.0 if name.startswith("hard") else 0.6, **data})
    return MaxMarginClassifier(random_state=0, tol=1e-3, **MODELS[name]).fit(X, y), X, y


def altered(model, **changes):
    """The same model with other contents, as a file from elsewhere might hold it."""
    names = ("coef_", "intercept_", "classes_", "class_weight_", "certificate_")
    return SimpleNamespace(**{**{name: getattr(model, name) for name in names}, **changes})


def with_certificate(model, **changes):
    return altered(model, certificate_=replace(model.certificate_, **changes))


@pytest.mark.parametrize("name", MODELS)
def test_a_fitted_model_verifies(name):
    model, X, y = fitted(name)
    again = verify(model, X, y)
    claim = model.certificate_
    assert again.lower == pytest.approx(claim.lower, rel=1e-12)
    assert again.upper == pytest.approx(claim.upper, rel=1e-12)
    assert again.gap <= 1e-3
    signs = np.where(y == 1, 1.0, -1.0)
    truth = optimum(claim.problem, X, signs, np.ones(len(y)))
    assert again.lower <= float(truth.upper) * (1 + 1e-13)
    assert again.upper >= float(truth.lower) * (1 - 1e-13)


@pytest.mark.parametrize("name", MODELS)
def test_storage_is_no_part_of_a_certificate(name):
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
        verify(model, narrow, y)  # other numbers, from the eighth digit on


@pytest.mark.parametrize("name", MODELS)
def test_another_weight_fails_the_primal_side(name):
    """Soft: w proves the upper bound. Hard: it proves the lower one."""
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
def test_a_weight_of_another_length_is_refused(name):
    model, X, y = fitted(name)
    with pytest.raises(CertificateError):
        verify(altered(model, coef_=model.coef_[:, :-1]), X, y)


@pytest.mark.parametrize("name", MODELS)
def test_dual_weights_that_are_not_feasible(name):
    model, X, y = fitted(name)
    side = "upper" if name.startswith("hard") else "lower"
    dual = model.certificate_.dual
    for bad in (-1e-9, np.nan):
        wrong = dual.copy()
        wrong[0] = bad
        with pytest.raises(
            CertificateError, match=f"the {side} bound fails: a dual weight is negative or not a"
        ):
            verify(with_certificate(model, dual=wrong), X, y)
    if name in ("hinge", "no intercept", "augmented"):
        wrong = dual.copy()
        wrong[np.argmax(dual)] = 0.7 * 1.001
        with pytest.raises(CertificateError, match="the lower bound fails: a dual weight is above its cap"):
            verify(with_certificate(model, dual=wrong), X, y)
    if name in ("hinge", "squared", "hard"):
        wrong = dual.copy()
        wrong[np.argmin(dual)] *= 0.99
        with pytest.raises(CertificateError, match=f"the {side} bound fails: dual weights are not balanced"):
            verify(with_certificate(model, dual=wrong), X, y)


@pytest.mark.parametrize("name", MODELS)
def test_support_that_is_not_there(name):
    model, X, y = fitted(name)
    for bad in (len(y), -1):
        support = model.certificate_.support.copy()
        support[0] = bad
        with pytest.raises(CertificateError):
            verify(with_certificate(model, support=support), X, y)
    with pytest.raises(CertificateError):  # a row named twice would count once here and twice elsewhere
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
def test_bounds_that_claim_too_much(name):
    model, X, y = fitted(name)
    claim = model.certificate_
    with pytest.raises(CertificateError, match=r"the lower bound fails: .* is claimed, the data give"):
        verify(with_certificate(model, lower=claim.lower * (1 + 1e-9)), X, y)
    with pytest.raises(CertificateError, match=r"the upper bound fails: .* is claimed, the data give"):
        verify(with_certificate(model, upper=claim.upper * (1 - 1e-9)), X, y)
    for nonsense in (np.nan, np.inf):
        with pytest.raises(CertificateError, match="the lower bound fails"):
            verify(with_certificate(model, lower=nonsense), X, y)
        with pytest.raises(CertificateError, match="the upper bound fails"):
            verify(with_certificate(model, upper=-nonsense), X, y)
    # claiming less is no lie
    weaker = verify(with_certificate(model, lower=claim.lower * 0.5, upper=claim.upper * 2.0), X, y)
    assert weaker.lower == pytest.approx(claim.lower, rel=1e-12)
    assert weaker.upper == pytest.approx(claim.upper, rel=1e-12)


@pytest.mark.parametrize("name", [name for name in MODELS if not name.startswith("hard")])
def test_another_problem_has_other_bounds(name):
    """The same dual weights and w do not prove the claim for another C."""
    model, X, y = fitted(name)
    problem = model.certificate_.problem
    with pytest.raises(CertificateError, match="bound fails"):
        verify(with_certificate(model, problem=replace(problem, C=problem.C * 0.9)), X, y)


@pytest.mark.parametrize("name", ["hinge", "hard"])
def test_other_data_are_named(name):
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
    beside = order.copy()
    beside[:] = np.arange(40)
    beside[[4, 6]] = 6, 4  # two rows of one class change places
    negative = X.copy()
    negative[0] *= -1.0
    for X_, y_ in (
        (X, swapped),
        (changed, y),
        (X[order], y[order]),
        (X[beside], y[beside]),
        (X[:, ::-1], y),
        (negative, y),
    ):
        with pytest.raises(
            CertificateError, match=other + "sizes agree, values, labels, weights or row order"
        ):
            verify(model, X_, y_)
    heavy = np.ones(40)
    heavy[5] = 1.01
    with pytest.raises(CertificateError, match=other + "sizes agree, values, labels, weights or row order"):
        verify(model, X, y, heavy)
    verify(model, X, y, np.ones(40))


def test_labels_that_the_model_does_not_know():
    model, X, y = fitted("hinge")
    with pytest.raises(CertificateError):
        verify(model, X, np.where(y == 0, 7, y))


@pytest.mark.parametrize("name", ["hinge", "squared", "hard"])
def test_sample_weights_are_part_of_the_data(name):
    X, y = two_clouds(gap=3.0 if name == "hard" else 0.6)
    s = np.random.default_rng(1).integers(0, 4, 40).astype(float)
    s[:2] = 1.0
    model = MaxMarginClassifier(random_state=0, **MODELS[name]).fit(X, y, s)
    assert verify(model, X, y, s).gap <= 1e-3
    for wrong in (None, s + (np.arange(40) == 9), s * 2.0, s[::-1]):
        with pytest.raises(CertificateError, match="made for other data"):
            verify(model, X, y, wrong)
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
def test_data_of_wrong_shape(arguments, message):
    model, *_ = fitted("hinge")
    with pytest.raises(CertificateError, match=message):
        verify(model, *arguments)


def test_class_weights_are_part_of_the_problem():
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


def test_one_certificate_a_class():
    X, y = three_clouds()
    model = MaxMarginClassifier(random_state=0).fit(X, y)
    claim = model.certificate_
    assert len(claim) == 3
    assert claim.gap == max(part.gap for part in claim) <= 1e-3
    again = verify(model, X, y)
    for part, name in zip(again, claim.classes, strict=True):
        truth = optimum(part.problem, X, np.where(y == name, 1.0, -1.0), np.ones(45))
        assert part.lower <= float(truth.upper) * (1 + 1e-13)
        assert part.upper >= float(truth.lower) * (1 - 1e-13)
    coef = model.coef_.copy()
    coef[1] *= 1.1
    with pytest.raises(CertificateError, match="class 'bee': the upper bound fails"):
        verify(altered(model, coef_=coef), X, y)
    with pytest.raises(CertificateError, match="class 'ant': this certificate was made for other data"):
        verify(model, X, np.roll(y, 1))
    liar = replace(claim, parts=(claim[0], claim[1], replace(claim[2], lower=claim[2].lower * 1.01)))
    with pytest.raises(CertificateError, match="class 'cat': the lower bound fails"):
        verify(altered(model, certificate_=liar), X, y)
    assert len(str(claim).splitlines()) == 4
    assert all(name in str(claim) for name in ("ant", "bee", "cat"))


# what is printed and kept


@pytest.mark.parametrize("name", MODELS)
def test_a_certificate_prints_in_a_few_lines(name):
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


def test_gaps_are_defined_once():
    soft, hard = Problem("hinge", 1.0), Problem("hinge", np.inf)
    assert soft.gap(2.0, 3.0) == 0.5  # (primal - dual) / dual
    assert soft.gap(0.0, 3.0) == soft.gap(-1.0, 3.0) == np.inf
    assert hard.gap(2.0, 4.0) == 0.5  # 1 - lower / upper
    assert hard.gap(-2.0, 4.0) == 1.5
    assert hard.gap(0.0, 0.0) == np.inf


@given(st.integers(0, 2**20), st.integers(0, 39), st.integers(0, 4), st.sampled_from((1e-6, 1e-3, 1.0, -2.0)))
@settings(max_examples=100)
def test_every_entry_counts_in_the_fingerprint(seed, i, j, change):
    X, y = two_clouds(seed=seed)
    signs, ones = np.where(y == 1, 1.0, -1.0), np.ones(40)
    before = Sample(X, signs, ones).fingerprint
    assert before.difference(Sample(sp.csr_matrix(X), signs, ones).fingerprint) is None
    X[i, j] += change
    assert before.difference(Sample(X, signs, ones).fingerprint) is not None


@pytest.mark.parametrize("intercept", ["free", "augmented", "none"])
@pytest.mark.parametrize("loss", ["hinge", "squared_hinge"])
def test_bounds_of_many_rows_are_made_part_by_part(loss, intercept, monkeypatch):
    """The same bounds and the same fingerprint but for rounding, whatever the parts are."""
    X, y = two_clouds(n=200, seed=8)
    signs, weights = np.where(y == 1, 1.0, -1.0), np.linspace(0.5, 2.0, y.size)
    problem = Problem(loss, 2.0, intercept=intercept)
    w, alpha = X.T @ signs / 100.0, np.abs(np.sin(np.arange(y.size)))
    whole = certify(problem, Sample(X, signs, weights), w, 0.1, alpha)
    monkeypatch.setattr(maxmargin.numerics.sums, "TERMS", 7)
    apart = certify(problem, Sample(X, signs, weights), w, 0.1, alpha)
    assert apart.lower == pytest.approx(whole.lower, rel=1e-13)
    assert apart.upper == pytest.approx(whole.upper, rel=1e-13)
    assert whole.fingerprint.difference(apart.fingerprint) is None
    assert apart.fingerprint.checksum == pytest.approx(whole.fingerprint.checksum, rel=1e-13)


def test_certificates_need_no_compiler():
    """The module that proves is not the one that solves: it runs where numba and the solvers are missing."""
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


def test_parts_of_a_certificate_that_are_missing():
    """As many certificates, rows of coef_ and intercepts as there are problems."""
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
    lie = replace(binary.certificate_, support=binary.certificate_.support.astype(float))
    with pytest.raises(CertificateError, match="must be one dual weight for each row it names"):
        verify(altered(binary, certificate_=lie), X, y)


@pytest.mark.parametrize("arithmetic", [Plain, Compensated])
@pytest.mark.parametrize("size", [5e-324, 1e-323, 1e-320, 1e-310, 1e-300])
def test_products_that_underflow_prove_nothing(arithmetic, size):
    """A quarter of the smallest number is 0, and no margin is."""
    y = np.array([1.0, 1.0, -1.0, -1.0])
    sample = Sample(size * y[:, None], y, np.ones(4))
    hard = Problem("hinge", np.inf, intercept="none")
    assert bounds(hard, sample, np.ones(1), 0.0, np.ones(4), arithmetic).upper >= size


def test_fingerprints_of_large_numbers_tell_data_apart():
    X, y = np.array([[1e200, 2.0], [-1e200, 3.0], [4.0, 1e200]]), np.array([1.0, -1.0, 1.0])
    one = Sample(X, y, np.full(3, 1e200)).fingerprint
    assert one.difference(Sample(X.copy(), y, np.full(3, 1e200)).fingerprint) is None
    for other in (Sample(X[::-1], y, np.full(3, 1e200)), Sample(X, y, np.array([1e200, 1e200, 2e200]))):
        assert one.difference(other.fingerprint) is not None


def solved(stored=np.asarray):
    """A problem, its sample, and the points that are the optimum but for rounding."""
    X, y = two_clouds()
    model = MaxMarginClassifier(1.0, tol=1e-12).fit(X, y)
    sample, certificate = Sample(stored(X), np.where(y > 0, 1.0, -1.0), np.ones(y.size)), model.certificate_
    alpha = np.zeros(y.size)
    alpha[certificate.support] = certificate.dual
    return certificate.problem, sample, model.coef_[0], float(model.intercept_[0]), alpha


def test_sums_that_take_longer_than_there_is_time_are_not_begun(monkeypatch):
    """Bounds are as true without, only wider apart."""
    problem, sample, *points = solved()
    used = []
    monkeypatch.setattr(
        maxmargin.certificates.rows,
        "bounds",
        lambda *task: used.append(task[5]) or bounds(*task),
    )
    found = {}
    enough = Compensated.SECONDS * sample.X.size
    for left in (0.5 * enough, enough):
        used.clear()
        found[left] = certify(problem, sample, *points, 0.0, left.__ge__)
        assert used == ([Plain] if left < enough else [Plain, Compensated])
    wide, narrow = found.values()
    assert wide.lower < narrow.lower <= narrow.upper < wide.upper
    assert wide.gap < 1e-9


@pytest.mark.parametrize("stored", [np.asarray, sp.csr_matrix])
def test_sums_that_are_told_to_stop_do(stored, monkeypatch):
    """Before the next block of rows, with the bounds that there were; and later sums are made to their end."""
    monkeypatch.setattr(maxmargin.numerics.sums, "_BLOCK", 16)
    problem, sample, *points = solved(stored)
    asked, most = [], np.inf

    def affords(seconds):
        asked.append(seconds)
        return len(asked) <= most

    narrow = certify(problem, sample, *points, 0.0, affords)
    times = len(asked)
    assert times > 10
    assert not any(asked[1:])
    for most in (0, 1, 2, times // 2, times - 1):
        asked.clear()
        wide = certify(problem, sample, *points, 0.0, affords)
        assert len(asked) == most + 1
        assert wide.lower < narrow.lower <= narrow.upper < wide.upper
        assert wide.gap < 1e-9
    again = certify(problem, sample, *points)
    assert (again.lower, again.upper) == (narrow.lower, narrow.upper)


def test_what_has_no_certificate_of_its_own_says_what_has():
    """Of pipelines, searches and selectors: the call that does verify, which works as it is printed."""
    X, y = load_iris(return_X_y=True)
    pipe = make_pipeline(StandardScaler(), MaxMarginClassifier(random_state=0)).fit(X, y)
    search = GridSearchCV(MaxMarginClassifier(random_state=0), {"C": [0.1, 1.0]}, cv=2).fit(X, y)
    selector = MarginRFE("auto", p=2, n_features_to_select=2, random_state=0).fit(X, y)
    names = {"X": X, "y": y, "pipe": pipe, "search": search, "selector": selector, "verify": verify}
    for model, kind in ((pipe, "Pipeline"), (search, "GridSearchCV"), (selector, "MarginRFE")):
        with pytest.raises(CertificateError, match=f"this is a {kind}") as caught:
            verify(model, X, y)
        call = str(caught.value)[str(caught.value).index("verify(") :].rstrip(".")
        assert eval(call, names).gap <= 1e-3
    # rows that are no numbers before the pipeline are not what is wrong
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


def test_classes_of_many_equal_dual_weights_balance():
    """Sums of equal numbers are off on one side: what is left is taken from one of them."""
    n = 2_000_000
    y = np.where(np.arange(n) % 3 == 0, 1.0, -1.0)
    alpha = feasible(Problem("hinge", 0.1), y, np.ones(n), np.full(n, 0.1))
    assert abs(math.fsum(alpha * y)) <= 1e-14 * alpha.sum()


def test_fingerprints_tell_entries_at_the_end_of_the_range():
    y, ones = np.array([1.0, -1.0, 1.0, -1.0]), np.ones(4)
    one, other = (
        Sample(np.array([[0.0], [1e308], [last], [3.0]]), y, ones, norms=ones).fingerprint
        for last in (1.1e308, 0.9e308)
    )
    assert np.isfinite([one.checksum, one.scale]).all()
    assert one.difference(one) is None
    assert one.difference(other) is not None
