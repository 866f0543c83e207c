"""Small degenerate problems, for hypothesis and for loops."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import scipy.sparse as sp
from hypothesis import strategies as st

from maxmargin import Problem

BASES = ("gaussian", "integer", "binary", "separable", "line", "few", "scaled", "thin", "far")
TWISTS = ("copies", "contradiction", "zero_rows", "constant_column", "zero_column", "twin_columns")
WEIGHTS = ("none", "whole", "real", "some_zero")
INTERCEPTS = ("none", "free", "augmented")


@dataclass(frozen=True)
class Spec:
    """Parameters of a problem; equal specs give equal problems."""

    n: int = 6
    d: int = 2
    seed: int = 0
    base: str = "gaussian"
    twists: tuple[str, ...] = ()
    weights: str = "none"
    loss: str = "hinge"
    C: float = 1.0
    intercept: str = "free"
    sparse: bool = False


@dataclass(frozen=True)
class Case:
    """A problem with its data; y in {-1.0, 1.0}."""

    problem: Problem
    X: np.ndarray
    y: np.ndarray
    weights: np.ndarray
    spec: Spec = field(default_factory=Spec)

    @property
    def stored(self):
        """X in the storage of the spec."""
        return sp.csr_matrix(self.X) if self.spec.sparse else self.X

    @property
    def options(self) -> dict:
        """Equivalent parameters of the estimator."""
        p = self.problem
        return {
            "C": p.C,
            "loss": p.loss,
            "fit_intercept": p.intercept != "none",
            "intercept_scaling": p.intercept_scaling if p.intercept == "augmented" else None,
        }


def rows(spec: Spec) -> tuple[np.ndarray, np.ndarray]:
    """Return (X, y) of a spec: a base, then its twists; both classes occur."""
    rng = np.random.default_rng([spec.seed, spec.n, spec.d])
    n, d = spec.n, spec.d
    y = np.where(rng.random(n) < rng.uniform(0.2, 0.8), 1.0, -1.0)
    i, j = rng.choice(n, 2, replace=False)
    y[i], y[j] = 1.0, -1.0
    if spec.base == "integer":
        X = rng.integers(-3, 4, (n, d)).astype(float)
    elif spec.base == "binary":
        X = (rng.random((n, d)) < 0.4).astype(float)
    elif spec.base == "separable":
        direction = rng.normal(size=d)
        X = rng.normal(size=(n, d)) + np.outer(y, direction) * (3.0 / np.linalg.norm(direction) + 2.0)
    elif spec.base == "line":  # all rows are multiples of one
        X = np.outer(rng.integers(-4, 5, n), rng.integers(-2, 3, d)).astype(float)
    elif spec.base == "few":  # few different rows
        X = rng.integers(-2, 3, (3, d)).astype(float)[rng.integers(0, 3, n)]
    elif spec.base == "scaled":  # columns from 1e-3 to 1e3
        X = rng.normal(size=(n, d)) * 10.0 ** rng.uniform(-3, 3, d)
    elif spec.base == "thin":  # clouds far from the origin, close to each other
        X = rng.normal(size=(n, d)) + 20.0 + 0.5 * y[:, None]
    elif spec.base == "collinear":  # pairs of columns equal up to 1e-6, scales from 1e-6 to 1e6; not in BASES
        X = rng.normal(size=(n, d))
        y = np.where(X @ rng.normal(size=d) + 0.5 * rng.normal(size=n) > 0.0, 1.0, -1.0)
        y[i], y[j] = 1.0, -1.0
        half = d // 2
        X[:, d - half :] = X[:, :half] * rng.uniform(0.5, 2.0, half) + 1e-6 * rng.normal(size=(n, half))
        X *= 10.0 ** rng.uniform(-6, 6, d)
    elif spec.base == "far":  # integers far from the origin
        X = rng.integers(-2, 3, (n, d)) + rng.choice([-8.0, 8.0, 100.0])
    else:
        X = rng.normal(size=(n, d)) + 0.8 * y[:, None]
    for twist in spec.twists:
        if twist == "copies":
            k = rng.integers(0, n, n // 2)
            X[rng.permutation(n)[: n // 2]] = X[k]
        elif twist == "contradiction":
            X[j] = X[i]
        elif twist == "zero_rows":
            X[rng.random(n) < 0.3] = 0.0
        elif twist == "constant_column":
            X[:, 0] = 1.0
        elif twist == "zero_column":
            X[:, -1] = 0.0
        elif twist == "twin_columns":
            X[:, 0] = X[:, -1]
    return X, y


def weights(spec: Spec, y: np.ndarray) -> np.ndarray:
    """Return sample weights; both classes have a row of positive weight."""
    rng = np.random.default_rng([spec.seed, 7])
    if spec.weights == "none":
        return np.ones(len(y))
    if spec.weights == "real":
        return 10.0 ** rng.uniform(-2, 1, len(y))
    s = rng.integers(0 if spec.weights == "some_zero" else 1, 4, len(y)).astype(float)
    s[[np.argmax(y), np.argmin(y)]] = 2.0
    return s


def case(spec: Spec) -> Case:
    """Return the problem of a spec."""
    X, y = rows(spec)
    problem = Problem(spec.loss, spec.C, intercept=spec.intercept, intercept_scaling=1.5)
    return Case(problem, X, y, weights(spec, y), spec)


def cases(hard: bool = False, **fixed) -> st.SearchStrategy[Case]:
    """Strategy for small problems; with `hard` hard margins only."""
    parts = {
        "n": st.integers(2, 40),
        "d": st.sampled_from((*range(1, 13), 60, 300)),
        "seed": st.integers(0, 2**20),
        "base": st.sampled_from(BASES),
        "twists": st.lists(st.sampled_from(TWISTS), unique=True, max_size=2).map(tuple),
        "weights": st.sampled_from(WEIGHTS),
        "loss": st.sampled_from(("hinge", "squared_hinge")),
        "C": st.just(np.inf) if hard else st.integers(-16, 16).map(lambda k: 10.0 ** (k / 4)),
        "intercept": st.sampled_from(INTERCEPTS),
        "sparse": st.booleans(),
    }
    parts.update({name: st.just(value) for name, value in fixed.items()})
    return st.builds(Spec, **parts).map(case)


def drawn(rng: np.random.Generator, hard: bool = False, **fixed) -> Spec:
    """Return a random spec, for loops."""
    parts = {
        "n": int(rng.integers(2, 41)),
        "d": int(rng.choice([*range(1, 13), 60, 300])),
        "seed": int(rng.integers(2**20)),
        "base": str(rng.choice(BASES)),
        "twists": tuple(map(str, rng.choice(TWISTS, rng.integers(3), replace=False))),
        "weights": str(rng.choice(WEIGHTS)),
        "loss": str(rng.choice(["hinge", "squared_hinge"])),
        "C": np.inf if hard else float(10.0 ** (rng.integers(-16, 17) / 4)),
        "intercept": str(rng.choice(INTERCEPTS)),
        "sparse": bool(rng.random() < 0.5),
    }
    return Spec(**{**parts, **fixed})


def rings(n, seed, noise=0.3):
    """Two classes that are not linearly separable."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 3))
    y = np.where((X * X).sum(axis=1) + noise * rng.normal(size=n) > 2.4, 1.0, -1.0)
    assert np.unique(y).size == 2
    return X, y, rng.choice([0.5, 1.0, 2.0], n)


def shifted_classes(seed, n=60, d=5, shift=1.0):
    """Return the generator, rows and labels: two classes, one row in three positive, shifted along column 0."""
    rng = np.random.default_rng(seed)
    y = np.where(np.arange(n) % 3 == 0, 1.0, -1.0)
    X = rng.normal(size=(n, d))
    X[:, 0] += shift * y
    return rng, X, y


def conditioned(condition: str, n: int, d: int, seed: int):
    """Return rows in single precision, noisy labels of a linear rule, and weights, under a condition of the rows."""
    rng = np.random.default_rng([seed, n, d])
    X = (rng.normal(size=(n, d)) + rng.normal(size=d)).astype(np.float32).astype(float)
    direction = rng.normal(size=d)
    if condition == "separable":  # by a hyperplane through the origin, with rows on both sides
        X[1] = -X[0]
        y = np.where(X @ direction > 0.0, 1.0, -1.0)
    else:
        y = np.where((X - X.mean(axis=0)) @ direction + rng.normal(size=n) > 0.0, 1.0, -1.0)
        y[:2] = 1.0, -1.0
    if condition == "scales":
        X = X * 10.0 ** np.linspace(-6.0, 6.0, d)
    elif condition == "mild scales":
        X = X * 10.0 ** np.linspace(-3.0, 3.0, d)
    elif condition == "collinear":
        X[:, -1] = X[:, 0] + 1e-7 * X[:, -1]
    elif condition == "far":
        X[:, 1] += 1e3
    elif condition == "sparse":
        X = np.where(rng.random(X.shape) < 0.4, X, 0.0)
    elif condition == "rare":
        y = np.where(np.arange(n) < max(2, n // 50), 1.0, -1.0)
    elif condition == "copies":  # also contradictory copies, equal columns and a row of zeros
        X[n // 2 :] = X[: n - n // 2]
        X[3], X[:, 0] = 0.0, X[:, -1]
    return X, y, rng.integers(1, 4, size=n) / 2.0
