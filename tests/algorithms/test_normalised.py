"""Normalised and smoothed Perceptrons and von Neumann's algorithm: steps of the papers, theorems, and verdicts."""

from __future__ import annotations

import pickle
from dataclasses import replace
from itertools import count

import numpy as np
import pytest
import scipy.sparse as sp
from naive_normalised import MAX_STEPS, NAIVE, inseparable, margin, radius, reflected, separable
from sklearn.base import clone

from maxmargin import KernelMaxMarginClassifier, MaxMarginClassifier, Status, separate
from maxmargin.algorithms import (
    IteratedSmoothedPrimalDual,
    NormalisedPerceptron,
    SmoothedPerceptron,
    SmoothedPrimalDual,
    VonNeumann,
)
from maxmargin.algorithms.bounds import iterated_smoothed_primal_dual_steps

SEEDS = range(3)
ROUNDING = 1e-13  # error of sums of a few dozen numbers of at most one
REGISTERED = {
    "NP": NormalisedPerceptron,
    "NVN": VonNeumann,
    "SNKP": SmoothedPerceptron,
    "SNKPVN": SmoothedPrimalDual,
    "ISNKPVN": IteratedSmoothedPrimalDual,
}
STORES = {"dense": np.asarray, "sparse": sp.csr_array, "float32": np.float32}
each_algorithm = pytest.mark.parametrize("name", REGISTERED)


def fitted(cls, X, y, kernel=False, **parameters):
    """A hard margin without intercept by this algorithm; `parameters` are those of the algorithm."""
    options = {"C": np.inf, "fit_intercept": False, "algorithm": cls(**parameters)}
    model = (
        KernelMaxMarginClassifier(kernel="linear", **options) if kernel else MaxMarginClassifier(**options)
    )
    return model.fit(X, y)


def first_separator(name, Y, *q):
    """(step, w) of the first iterate of the naive algorithm that separates rows of three features."""
    G = Y @ Y.T
    for step, (alpha, _) in zip(count(int(name == "NP")), NAIVE[name](G, *q), strict=False):
        if (G @ alpha).min() > ROUNDING:
            return step, (Y.T @ alpha)[:3]
    raise AssertionError


@each_algorithm
@pytest.mark.parametrize("store", STORES)
def test_first_separator_is_that_of_the_paper_within_its_theorem(name, store):
    for seed in SEEDS:
        X, y = separable(seed)
        X = X.astype(np.float32).astype(float)
        step, w = first_separator(name, reflected(X, y))
        for kernel in (None, "linear"):
            run = REGISTERED[name]().run(STORES[store](X), y, kernel=kernel, record=None)
            assert run.status is Status.CONVERGED
            assert run.n_updates <= MAX_STEPS[name](len(y), margin(seed)[0])
            assert run.lower > 0.0
            if store != "float32":
                assert run.n_updates == step
                own = X.T @ (run.alpha * y) if kernel else run.w
                np.testing.assert_allclose(
                    own / np.linalg.norm(own), w / np.linalg.norm(w), rtol=0, atol=1e-9
                )


@each_algorithm
def test_fits_without_a_separator_end_with_the_proof_from_their_combination(name):
    cls = REGISTERED[name]
    for seed in SEEDS:
        X, y = inseparable(seed)
        for model in (fitted(cls, X, y), fitted(cls, X, y, kernel=True)):
            assert model.status_ is Status.INSEPARABLE
            assert not model.verdict_.verify(X, y).separable
            if cls.decides:  # its combination of the normalised rows has length eps
                assert model.verdict_.method.startswith(cls.words)
                assert model.history_[-1].upper <= cls().eps * np.linalg.norm(X, axis=1).max()
        verdict = separate(X, y, bias=False, algorithm=cls.name, max_time=20)
        assert not verdict.verify(X, y).separable
        assert verdict.method.startswith(cls.words)
        X, y = separable(seed)
        verdict = separate(X, y, bias=False, algorithm=cls(), tol=np.inf)
        assert verdict.method == cls.words
        assert verdict.verify(X, y).separable


@each_algorithm
def test_accuracy_ends_at_a_share_of_the_largest_margin(name):
    X, y = separable(1)
    X /= np.linalg.norm(X, axis=1)[:, None]
    low, high = margin(1)
    first, last = (REGISTERED[name](accuracy=share).run(X, y) for share in (1.0, 0.1))
    assert first.n_updates < last.n_updates
    assert 0.0 < first.lower < 0.9 * low <= last.lower <= high * (1.0 + ROUNDING)


@pytest.mark.parametrize(("eps", "gamma"), [(1e-12, 2.0), (1e-8, 8.0)])
def test_iterated_algorithm_converges_linearly(eps, gamma):
    """Also for patterns in a subspace."""
    basis, _ = np.linalg.qr(np.random.default_rng(0).normal(size=(6, 3)))
    for seed in SEEDS:
        X, y = inseparable(seed)
        Y = reflected(X, y)
        run = IteratedSmoothedPrimalDual(eps=eps, gamma=gamma).run(X @ basis.T, y)
        most = iterated_smoothed_primal_dual_steps(
            radius(Y), len(y), eps, np.linalg.norm(Y.mean(axis=0)), gamma
        )
        assert run.n_updates < most


@pytest.mark.parametrize("kernel", ["poly", "rbf", "precomputed"])
def test_kernel_searches_prove_what_the_algorithm_finds(kernel):
    """A polynomial separates by its degree, distinct rows are separated by the Gaussian."""
    X = np.random.default_rng(0).normal(size=(30, 2))
    y = np.where((X**2).sum(axis=1) > 1.0, 1, 0)
    options = {"degree": 2, "coef0": 1.0} if kernel == "poly" else {}
    given = (1.0 + X @ X.T) ** 2 if kernel == "precomputed" else X
    for cls in REGISTERED.values():
        verdict = separate(given, y, algorithm=cls(), tol=np.inf, kernel=kernel, **options)
        assert verdict.method == cls.words
        assert verdict.verify(given, y).separable


@pytest.mark.parametrize("name", ["SNKPVN", "ISNKPVN"])
def test_centre_of_the_smoothing_is_a_parameter_of_the_rows(name):
    """Steps are those of the paper; equal rows have the sum of their weights, rows of weight 0 are left out."""
    (X, y), cls = separable(2), REGISTERED[name]
    q, copies = np.random.default_rng(0).random((2, 24)) ** 8
    step, w = first_separator(name, reflected(X, y), (q + copies) / (q + copies).sum())
    run = cls(q=q + copies).run(X, y)
    assert run.n_updates == step
    np.testing.assert_allclose(run.w / np.linalg.norm(run.w), w / np.linalg.norm(w), rtol=0, atol=1e-9)
    twice = np.vstack([X, X]), np.tile(y, 2)
    merged = separate(*twice, bias=False, algorithm=cls(q=np.append(q, copies), accuracy=0.3), tol=np.inf)
    single = separate(X, y, bias=False, algorithm=cls(q=q + copies, accuracy=0.3), tol=np.inf)
    np.testing.assert_allclose(merged.w, single.w, rtol=1e-9)
    left = cls(q=np.append(q + copies, q)).run(*twice, sample_weight=np.repeat([1.0, 0.0], 24))
    assert left.lower == pytest.approx(run.lower, rel=1e-9)


def test_centre_of_the_smoothing_is_kept_as_given():
    q = np.random.default_rng(0).random(24)
    algorithm = IteratedSmoothedPrimalDual(q=q)
    for copy in (replace(algorithm), pickle.loads(pickle.dumps(algorithm)), clone(algorithm, safe=False)):
        assert copy == algorithm
        assert hash(copy) == hash(algorithm)
        assert copy.q == tuple(q)
    assert algorithm != IteratedSmoothedPrimalDual(q=q[::-1])


@pytest.mark.parametrize("q", [[1.0, -1.0], "abc", [1j, 1.0], [0.0, 0.0], [np.nan, 1.0], []])
def test_centres_off_the_simplex_are_refused(q):
    with pytest.raises(ValueError, match="q must be finite weights"):
        SmoothedPrimalDual(q=q)


def test_a_centre_for_another_number_of_rows_is_refused():
    with pytest.raises(ValueError, match=r"24 weights, .* got 1"):
        fitted(SmoothedPrimalDual, *separable(0), q=[1.0])


@each_algorithm
def test_rows_without_a_direction_are_no_traceback(name):
    """A row of zeros has no normalised pattern; contradictory rows have no separator."""
    X, y = separable(0)
    X[3] = 0.0
    assert fitted(REGISTERED[name], X, y).status_ is Status.INSEPARABLE
    for rows in ([[1.0], [1.0]], [[1.0], [2.0]], [[0.0, 3.0], [0.0, 3.0]]):
        assert fitted(REGISTERED[name], rows, [1, -1]).status_ is Status.INSEPARABLE
