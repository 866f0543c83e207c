"""Certified radii: no shorter perturbation changes a label, and one of that length reaches the surface."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from naive import subgradient
from sklearn.exceptions import NotFittedError
from sklearn.feature_extraction import FeatureHasher

from maxmargin import MaxMarginClassifier, OnlineMarginClassifier
from maxmargin.numerics.norms import norm, row_norms
from maxmargin.problem.problem import dual_exponent

RNG = np.random.default_rng(0)
EXPONENTS = (1.0, 1.5, 2.0, 3.0, np.inf)


def clouds(classes=2, n=60, d=5):
    y = np.arange(n) % classes
    return RNG.normal(size=(n, d)) + 2.0 * np.eye(max(d, classes))[y][:, :d], y


def with_norm(model, p):
    """Set the norm of the certificates to p; the hyperplanes stay as fitted."""
    certificate = model.certificate_
    if hasattr(certificate, "parts"):
        parts = tuple(replace(part, problem=replace(part.problem, p=p)) for part in certificate)
        model.certificate_ = replace(certificate, parts=parts)
    else:
        model.certificate_ = replace(certificate, problem=replace(certificate.problem, p=p))
    return model


def direction_to_class(model, x, j, q):
    """Return the direction of p-norm 1 towards the boundary with class j, and the distance."""
    W, b = model.coef_, model.intercept_
    if len(W) == 1:
        s, w = float(W[0] @ x + b[0]), W[0]
        return -np.sign(s) * subgradient(w, q), abs(s) / norm(w, q)
    s = W @ x + b
    k = int(s.argmax())
    return -subgradient(W[k] - W[j], q), (s[k] - s[j]) / norm(W[k] - W[j], q)


@pytest.mark.parametrize("p", EXPONENTS)
@pytest.mark.parametrize("classes", [2, 3, 4])
@pytest.mark.parametrize("sparse", [False, True])
def test_radius_is_the_distance_to_the_decision_surface(p, classes, sparse):
    X, y = clouds(classes)
    model = with_norm(MaxMarginClassifier(random_state=0).fit(X, y), p)
    q, labels = dual_exponent(p), model.predict(X)
    radii = model.certified_radius(sp.csr_array(X) if sparse else X)
    assert radii.shape == (60,)
    assert (radii > 0.0).all()
    for x, label, r in zip(X, labels, radii, strict=True):
        others = [0] if classes == 2 else [j for j in range(classes) if j != label]
        g, nearest = min((direction_to_class(model, x, j, q) for j in others), key=lambda found: found[1])
        assert norm(g, p) == pytest.approx(1.0)
        assert r <= nearest
        assert r == pytest.approx(nearest, rel=1e-12)
        assert model.predict([x + 0.999999 * r * g])[0] == label
        assert model.predict([x + 1.000001 * r * g])[0] != label
        steps = RNG.normal(size=(50, x.size)) * RNG.choice([1e-3, 1.0], size=(50, x.size))
        steps *= 0.9999 * r / row_norms(steps, p)[:, None]
        assert (model.predict(x + steps) == label).all()


@pytest.mark.parametrize("p", EXPONENTS)
@pytest.mark.parametrize("scale", [1e-150, 1e-20, 1.0, 1e150])
def test_radii_scale_with_the_data(p, scale):
    X, y = clouds()
    model = with_norm(MaxMarginClassifier(random_state=0).fit(X, y), p)
    radii = model.certified_radius(X)
    model.coef_ = model.coef_ / scale
    assert model.certified_radius(X * scale) == pytest.approx(radii * scale, rel=1e-12)
    model.coef_, model.intercept_ = model.coef_ * scale, model.intercept_ * scale  # the same hyperplane
    assert model.certified_radius(X * scale) == pytest.approx(radii * scale, rel=1e-12)


@settings(max_examples=60)
@given(
    st.integers(0, 10**6),
    st.sampled_from([1.0, 1.2, 2.0, 7.0, 300.0, np.inf]),
    st.sampled_from([-150, 0, 150]),
)
def test_radii_are_rounded_downwards(seed, p, power):
    from fractions import Fraction

    rng = np.random.default_rng(seed)
    w, x = rng.normal(size=4) * 10.0**power, rng.normal(size=4) * 10.0**-power
    model = with_norm(MaxMarginClassifier().fit([[0.0] * 4, [1.0] * 4], [0, 1]), p)
    model.coef_, model.intercept_ = w[None], rng.normal(size=1)
    r = float(model.certified_radius(x[None])[0])
    exact = sum(Fraction(a) * Fraction(c) for a, c in zip(w, x, strict=True)) + Fraction(model.intercept_[0])
    # at p = 1 and inf the dual norm is exact as well
    if p == 1.0:
        assert Fraction(r) * max(Fraction(abs(a)) for a in w) <= abs(exact)
    elif p == np.inf:
        assert Fraction(r) * sum(Fraction(abs(a)) for a in w) <= abs(exact)
    assert r == pytest.approx(float(abs(exact)) / norm(w, dual_exponent(p)), rel=1e-11, abs=0.0)


def test_float32_rows_have_the_radii_of_their_float64_values():
    X, y = clouds()
    narrow = X.astype(np.float32)
    model = MaxMarginClassifier(random_state=0).fit(X, y)
    radii = model.certified_radius(narrow)
    assert radii.dtype == np.float64
    assert np.array_equal(radii, model.certified_radius(narrow.astype(float)))


def test_radius_is_zero_where_rounding_decides_the_label():
    model = MaxMarginClassifier().fit([[-1.0, 0.0], [1.0, 0.0]], [0, 1])
    model.coef_, model.intercept_ = np.array([[1.0, 1.0]]), np.array([0.0])
    assert model.certified_radius([[1.0, -1.0], [1.0, -1.0 + 2.0**-53]]).tolist() == [0.0, 0.0]
    assert model.certified_radius([[1e308, 1e308]]).tolist() == [
        0.0
    ]  # the score overflows: no radius is certain


def test_radius_is_infinite_where_no_perturbation_changes_the_label():
    model = MaxMarginClassifier().fit([[0.0], [1.0]], [0, 1])
    model.coef_ = np.zeros((1, 1))
    assert model.certified_radius([[3.0], [4.0]]).tolist() == [np.inf, np.inf]
    X, y = clouds(3)
    several = MaxMarginClassifier(random_state=0).fit(X, y)
    several.coef_, several.intercept_ = np.ones((3, 5)), np.array([1.0, 3.0, 2.0])
    assert (several.certified_radius(X) == np.inf).all()
    several.intercept_ = np.zeros(3)
    assert (several.predict(X) == 0).all()
    assert (several.certified_radius(X) == np.inf).all()
    several.coef_ = np.array([[1.0] * 5, [1.0] * 5, [2.0] * 5])  # two equal classes and a different one
    several.intercept_ = np.array([1.0, 0.0, 0.0])
    assert several.certified_radius([[0.0] * 5])[0] == pytest.approx(1.0 / np.sqrt(5.0))


def test_online_models_have_radii_in_the_2_norm():
    X, y = clouds(3)
    for trail in ("average", "last"):
        model = OnlineMarginClassifier(trail=trail, random_state=0).fit(X, y)
        radii = model.certified_radius(X)
        assert radii.shape == (60,)
        for x, label, r in zip(X, model.predict(X), radii, strict=True):
            distances = [direction_to_class(model, x, j, 2.0)[1] for j in range(3) if j != label]
            assert r == pytest.approx(min(distances), rel=1e-11)
    voting = OnlineMarginClassifier(trail="vote", random_state=0).fit(X, y)
    with pytest.raises(ValueError, match="several hyperplanes predict"):
        voting.certified_radius(X)


def test_radii_of_hashed_rows_are_those_after_hashing():
    rows = [{"a": 1.0, "b": 2.0}, {"c": 1.0}] * 10
    model = OnlineMarginClassifier(hasher=16, random_state=0).fit(rows, [0, 1] * 10)
    hashed = FeatureHasher(16).transform(rows)
    scores = np.abs(model.decision_function(rows)) / np.linalg.norm(model.coef_)
    assert model.certified_radius(rows) == pytest.approx(scores, rel=1e-12)
    assert hashed.shape == (20, 16)


def test_unfitted_models_and_rows_of_wrong_width_are_refused():
    with pytest.raises(NotFittedError):
        MaxMarginClassifier().certified_radius([[0.0]])
    with pytest.raises(NotFittedError):
        OnlineMarginClassifier().certified_radius([[0.0]])
    X, y = clouds()
    with pytest.raises(ValueError, match="features"):
        MaxMarginClassifier().fit(X, y).certified_radius(X[:, :3])
