"""Certified radii: no shorter perturbation changes a label, and one of that length reaches the surface."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
import scipy.sparse as sp
from clouds import clouds
from effort import examples, interpreted, thorough
from hypothesis import given, settings
from hypothesis import strategies as st
from naive import p_norm, subgradient

from maxmargin import MaxMarginClassifier, OnlineMarginClassifier

INF = np.inf


def dual_exponent(p):
    return INF if p == 1 else 1.0 if p == INF else p / (p - 1.0)


def fitted(X, y, p=2.0):
    """Return a model for p = 2 with the norm of its certificates set to p; the hyperplanes do not change."""
    model = MaxMarginClassifier(random_state=0).fit(X, y)
    for part in model.certificate_.certificates:
        object.__setattr__(part, "problem", replace(part.problem, p=p))
    return model


def nearest_boundary(model, x, q):
    """Return the direction of p-norm 1 towards the nearest boundary, and the distance."""
    W, b = model.coef_, model.intercept_
    W, b = (np.vstack([0.0 * W, W]), np.append(0.0, b)) if len(W) == 1 else (W, b)
    s = W @ x + b
    k = int(s.argmax())
    found = ((W[k] - W[j], s[k] - s[j]) for j in range(len(b)) if j != k)
    w, distance = min(((w, gap / p_norm(w, q)) for w, gap in found), key=lambda one: one[1])
    return -subgradient(w, q), distance


@pytest.mark.parametrize(
    ("p", "classes", "store"),
    [(1.0, 3, np.asarray), (1.5, 2, sp.csr_array), (2.0, 4, sp.csr_array), (INF, 2, np.asarray)],
)
def test_radius_is_the_distance_to_the_decision_surface(p, classes, store):
    X, y = clouds(24, 5, classes=classes)
    model, q, rng = fitted(X, y, p), dual_exponent(p), np.random.default_rng(0)
    radii, labels = model.certified_radius(store(X)), model.predict(X)
    for x, label, r in zip(X, labels, radii, strict=True):
        g, distance = nearest_boundary(model, x, q)
        assert p_norm(g, p) == pytest.approx(1.0, rel=1e-14, abs=0.0)  # five powers
        assert 0.0 < r <= distance
        assert r == pytest.approx(distance, rel=0.0, abs=1e-13)  # 2 (d + 4) eps of terms of size 10
        assert model.predict([x + 0.999999 * r * g])[0] == label
        assert model.predict([x + 1.000001 * r * g])[0] != label
        steps = rng.normal(size=(50, 5)) * rng.choice([1e-3, 1.0], size=(50, 5))
        steps *= 0.9999 * r / np.linalg.norm(steps, p, axis=1, keepdims=True)
        assert (model.predict(x + steps) == label).all()
    for scale in (1e-150, 1e150):  # radii have the unit of the data
        model.coef_ = model.coef_ / scale
        assert model.certified_radius(X * scale) == pytest.approx(radii * scale, rel=1e-12, abs=0.0)
        model.coef_ = model.coef_ * scale


@thorough
@settings(max_examples=examples(20, 1000))
@given(
    st.integers(0, 10**6), st.sampled_from([1.0, 1.2, 2.0, 7.0, 300.0, INF]), st.sampled_from([-150, 0, 150])
)
def test_radii_are_rounded_downwards(seed, p, power):
    rng = np.random.default_rng(seed)
    w, x, b = rng.normal(size=4) * 10.0**power, rng.normal(size=4) * 10.0**-power, rng.normal()
    model = fitted([[0.0] * 4, [1.0] * 4], [0, 1], p)
    model.coef_, model.intercept_ = w[None], np.array([b])
    r = float(model.certified_radius(x[None])[0])
    score = abs(sum(Fraction(a) * Fraction(c) for a, c in zip(w, x, strict=True)) + Fraction(b))
    lengths = {1.0: max(Fraction(abs(a)) for a in w), INF: sum(Fraction(abs(a)) for a in w)}  # rational norms
    assert Fraction(r) * lengths.get(p, 0) <= score
    unit = (np.abs(w) @ np.abs(x) + abs(b)) / p_norm(w, dual_exponent(p))  # of the terms of the score
    assert r == pytest.approx(
        float(score) / p_norm(w, dual_exponent(p)), rel=1e-12, abs=1e-14 * unit
    )  # 2 (d + 4) eps


def test_radii_without_a_nearest_boundary():
    """Zero where rounding decides the label or a score overflows; infinite where no perturbation changes it."""
    model = MaxMarginClassifier().fit([[-1.0, 0.0], [1.0, 0.0]], [0, 1])
    model.coef_, model.intercept_ = np.array([[1.0, 1.0]]), np.array([0.0])
    rows = [[1.0, -1.0], [1.0, -1.0 + 2.0**-53], [1e308, 1e308]]
    assert model.certified_radius(rows).tolist() == [0.0, 0.0, 0.0]
    model.coef_ = np.zeros((1, 2))
    assert model.certified_radius(rows).tolist() == [INF] * 3
    X, y = clouds(60, 5, classes=3)
    several = MaxMarginClassifier(random_state=0).fit(X, y)
    several.coef_ = np.ones((3, 5))
    for intercept in ([1.0, 3.0, 2.0], [0.0, 0.0, 0.0]):
        several.intercept_ = np.array(intercept)
        assert (several.certified_radius(X) == INF).all()


@interpreted
def test_online_models_have_radii_in_the_2_norm():
    X, y = clouds(60, 5, classes=3)
    model = OnlineMarginClassifier(random_state=0).fit(X, y)
    distances = [nearest_boundary(model, x, 2.0)[1] for x in X]
    assert model.certified_radius(X) == pytest.approx(distances, rel=0.0, abs=1e-13)
