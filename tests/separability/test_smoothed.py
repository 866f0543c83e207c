"""Normalised and smoothed Perceptrons and Von Neumann: steps as in the papers, and their theorems."""

from __future__ import annotations

import pickle
from dataclasses import replace
from itertools import islice
from math import sqrt

import array_api_strict
import numpy as np
import pytest
import scipy.sparse as sp
from array_api_compat import array_namespace
from effort import examples, thorough
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from naive_normalised import MAX_STEPS, NAIVE, inseparable, margin, radius, reflected, separable
from sklearn.base import clone

from maxmargin import (
    IteratedSmoothedPrimalDual,
    KernelMaxMarginClassifier,
    MaxMarginClassifier,
    NormalisedPerceptron,
    SmoothedPerceptron,
    SmoothedPrimalDual,
    Status,
    VonNeumann,
    separate,
    verify,
)
from maxmargin.algorithms.bounds import iterated_smoothed_primal_dual_steps
from maxmargin.algorithms.normalised.patterns import NormalisedProducts, NormalisedRows, until_decided
from maxmargin.algorithms.normalised.perceptron import normalised_perceptron, von_neumann
from maxmargin.algorithms.normalised.smoothed import (
    iterated_perceptron_von_neumann,
    perceptron_von_neumann,
    project_on_simplex,
    smoothed_perceptron,
)

SEEDS = range(3)
ROUNDING = 1e-13  # error of sums of a few dozen numbers of at most one


ALGORITHMS = {
    "NP": normalised_perceptron,
    "NVN": von_neumann,
    "SNKP": smoothed_perceptron,
    "SNKPVN": perceptron_von_neumann,
    "ISNKPVN": iterated_perceptron_von_neumann,
}
each_algorithm = pytest.mark.parametrize("name", ALGORITHMS)


def strict(X):
    """An array of a library that has the functions of the array API only, and no conversion to NumPy."""
    return array_api_strict.asarray(X, device=array_api_strict.Device("device1"))


def numpy_array(x):
    is_strict = not isinstance(x, np.ndarray)
    return np.asarray(x.to_device(array_api_strict.Device("CPU_DEVICE"))) if is_strict else x


def gram(K, y, *extra):
    """Patterns of a kernel matrix."""
    return NormalisedProducts(lambda c: K @ c, array_namespace(K).linalg.diagonal(K), y, *extra)


FORMS = {
    "dense": NormalisedRows,
    "sparse": lambda X, y, *extra: NormalisedRows(sp.csc_array(X), y, *extra),
    "kernel": lambda X, y, *extra: gram(X @ X.T, y, *extra),
    "strict": lambda X, y, *extra: NormalisedRows(strict(X), strict(y), *extra),
    "strict kernel": lambda X, y, *extra: gram(strict(X @ X.T), strict(y), *extra),
}


@each_algorithm
@pytest.mark.parametrize(
    ("form", "extra", "dtype"),
    [
        ("dense", (0.0, 0.0), "float64"),
        ("sparse", (0.7, 0.4), "float64"),
        ("kernel", (1.5, 0.0), "float64"),
        ("kernel", (0.0, 0.4), "float32"),
        ("sparse", (0.0, 0.0), "float32"),
        ("strict", (0.5, 0.3), "float32"),
        ("strict kernel", (0.5, 0.3), "float64"),
    ],
)
def test_every_step_equals_that_of_the_paper(name, form, extra, dtype):
    run, naive = ALGORITHMS[name], NAIVE[name]
    # margins are divided by mu, which decreases as 1 / step^2
    unit, steps = (ROUNDING, 40) if dtype == "float64" else (40 * float(np.finfo(dtype).eps), 12)
    for X, y in (separable(0), inseparable(1)):
        X = X.astype(dtype)
        Y = reflected(X.astype(float), y, *extra)
        G = Y @ Y.T
        patterns = FORMS[form](X, y, *extra)
        for found, (alpha, p) in islice(zip(run(patterns), naive(G), strict=False), steps):
            size = unit * (found.step + 1) ** 2
            for actual, reference in (
                (found.alpha.weights, alpha), (found.p.weights, p), (found.alpha.margins, G @ alpha)
            ):  # fmt: skip
                assert numpy_array(actual).dtype == dtype
                np.testing.assert_allclose(numpy_array(actual), reference, rtol=0, atol=size)
            assert type(found.lower) is type(found.upper) is float
            assert found.upper**2 == pytest.approx(p @ G @ p, abs=size)
            # an alpha that does not separate gives a bound that is reduced by the rounding error
            less, length = (0.0, 0.0) if found.primal else (patterns.rounding, patterns.noise)
            least = (G @ alpha).min() - less
            assert found.lower * (sqrt(alpha @ G @ alpha) - length) == pytest.approx(least, abs=size)


# theorems


@each_algorithm
@pytest.mark.parametrize("form", ["dense", "kernel"])
def test_separators_are_found_within_the_bounds_of_the_theorems(name, form):
    run, limit = ALGORITHMS[name], MAX_STEPS[name]
    for seed in SEEDS:
        X, y = separable(seed)
        low, high = margin(seed)
        steps = list(until_decided(run(FORMS[form](X, y)), 0.0))
        assert steps[-1].primal
        assert (reflected(X, y) @ (reflected(X, y).T @ steps[-1].alpha.weights) > 0).all()
        assert steps[-1].step <= limit(len(y), low)
        assert all(one.lower <= high + ROUNDING and one.upper >= low - ROUNDING for one in steps)


REGISTERED = dict(
    zip(ALGORITHMS, (NormalisedPerceptron, VonNeumann, SmoothedPerceptron, SmoothedPrimalDual,
        IteratedSmoothedPrimalDual), strict=True)
)  # fmt: skip


@each_algorithm
def test_fits_end_with_a_separator_or_with_the_proof_from_their_combination(name):
    """Linear fits, kernel fits and searches for a separator; the steps are those of the theorems."""
    cls, options = REGISTERED[name], {"fit_intercept": False, "C": np.inf, "algorithm": REGISTERED[name].name}
    fits = (MaxMarginClassifier(**options), KernelMaxMarginClassifier(kernel="linear", **options))
    for seed in SEEDS:
        X, y = separable(seed)
        for model in fits:
            model.fit(X, y)
            assert model.status_ is Status.CONVERGED
            assert (model.predict(X) == y).all()
            assert verify(model, X, y).lower > 0.0
            assert model.history_[-1].steps <= MAX_STEPS[name](len(y), margin(seed)[0])
        verdict = separate(X, y, bias=False, algorithm=cls(), tol=np.inf)
        assert verdict.method == cls.words
        assert verdict.verify(X, y).separable
        X, y = inseparable(seed)
        for model in fits:
            model.fit(X, y)
            assert model.status_ is Status.INSEPARABLE
            assert not model.verdict_.verify(X, y).separable
            if cls.decides:  # its combination of the normalised rows has length eps
                assert model.verdict_.method.startswith(cls.words)
                assert model.history_[-1].upper <= cls().eps * np.linalg.norm(X, axis=1).max()
        verdict = separate(X, y, bias=False, algorithm=cls.name)
        assert not verdict.verify(X, y).separable
        assert verdict.method.startswith(cls.words)


@each_algorithm
@pytest.mark.parametrize("make", [separable, inseparable])
def test_certificates_of_float32_rows_hold(name, make):
    X, y = make(0)
    X = X.astype(np.float32)
    model = MaxMarginClassifier(np.inf, algorithm=REGISTERED[name]()).fit(X, y)
    assert (verify(model, X, y).lower > 0.0) == (make is separable)


@each_algorithm
def test_accuracy_ends_at_a_share_of_the_largest_margin(name):
    X, y = separable(1)
    (low, high), patterns = margin(1), NormalisedRows(X, y)
    first, last = (list(REGISTERED[name](accuracy=share).until_end(patterns))[-1] for share in (1.0, 0.1))
    assert first.step < last.step
    assert 0.0 < first.lower < 0.9 * low <= last.lower <= high * (1.0 + ROUNDING)


@pytest.mark.parametrize("kernel", ["poly", "rbf", "precomputed"])
def test_kernel_searches_prove_what_the_algorithm_finds(kernel):
    """A polynomial separates by its degree, distinct rows are separated by the Gaussian, equal rows by nothing."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(30, 2))
    y = np.where((X**2).sum(axis=1) > 1.0, 1, 0)
    options = {"kernel": kernel, "degree": 2, "coef0": 1.0} if kernel != "precomputed" else {"kernel": kernel}
    for cls in REGISTERED.values():
        given = (1.0 + X @ X.T) ** 2 if kernel == "precomputed" else X
        verdict = separate(given, y, algorithm=cls(), tol=np.inf, **options)
        assert verdict.method == cls.words
        assert verdict.verify(given, y).separable
        if kernel == "poly":
            other = separate(X, y, algorithm=cls(), kernel="poly", degree=1)
            assert not other.verify(X, y).separable
            assert other.method.startswith(cls.words)


@pytest.mark.parametrize(
    ("form", "eps", "gamma"), [("dense", 1e-12, 2.0), ("dense", 1e-8, 8.0), ("kernel", 1e-7, 1.5)]
)
def test_iterated_algorithm_converges_linearly(form, eps, gamma):
    """Also for patterns in a subspace."""
    basis, _ = np.linalg.qr(np.random.default_rng(0).normal(size=(6, 3)))
    for seed in SEEDS:
        X, y = inseparable(seed)
        patterns = FORMS[form](X @ basis.T, y)
        start = patterns.length(patterns.point(patterns.uniform()))
        *_, last = until_decided(iterated_perceptron_von_neumann(patterns, gamma), eps)
        Y = reflected(X, y)
        assert last.step < iterated_smoothed_primal_dual_steps(radius(Y), len(y), eps, start, gamma)
        assert np.linalg.norm(Y.T @ last.p.weights) <= eps + 1e-15
        assert last.p.weights.min() >= 0.0
        assert last.p.weights.sum() == pytest.approx(1.0, abs=1e-14)


@pytest.mark.parametrize("name", ["SNKPVN", "ISNKPVN"])
def test_centre_of_the_smoothing_is_a_parameter_of_the_rows(name):
    """Steps are those of the paper; merged rows have the sum of their weights, and rows of weight 0 are left out."""
    (X, y), cls = separable(2), REGISTERED[name]
    q, copies, dropped = np.random.default_rng(0).random((3, 24)) ** 8
    total = (q + copies) / (q + copies).sum()
    patterns, Y = NormalisedRows(X, y), reflected(X, y)
    pairs = zip(cls(q=q + copies).iterates(patterns), NAIVE[name](Y @ Y.T, total), strict=False)
    for found, (alpha, p) in islice(pairs, 40):
        np.testing.assert_allclose(found.alpha.weights, alpha, rtol=0, atol=1e-9)
        np.testing.assert_allclose(found.p.weights, p, rtol=0, atol=1e-9)
    ends = []
    for base in (MaxMarginClassifier(np.inf), KernelMaxMarginClassifier(np.inf, kernel="linear")):
        linear = isinstance(base, MaxMarginClassifier)  # such a fit merges no rows
        parts, weights = (
            ([q + copies, dropped], [1.0, 0.0]) if linear else ([q, copies, dropped], [1.0, 1.0, 0.0])
        )
        base.set_params(fit_intercept=False)
        base.set_params(algorithm=cls(q=np.concatenate(parts), accuracy=0.3))
        base.fit(np.vstack([X] * len(parts)), np.tile(y, len(parts)), np.repeat(weights, 24))
        last = base.history_[-1]
        ends += [(last.steps, last.lower, last.upper)]
    merged, single = (
        separate(rows, labels, bias=False, algorithm=cls(q=weights, accuracy=0.3), tol=np.inf)
        for rows, labels, weights in (
            (np.vstack([X, X]), np.tile(y, 2), np.append(q, copies)),
            (X, y, q + copies),
        )
    )
    assert merged.method == single.method == cls.words
    np.testing.assert_allclose(merged.w, single.w, rtol=1e-9)
    expected = MaxMarginClassifier(np.inf, fit_intercept=False, algorithm=cls(q=total, accuracy=0.3)).fit(
        X, y
    )
    last = expected.history_[-1]
    assert last.steps > 5
    for end in ends:
        assert end == pytest.approx((last.steps, last.lower, last.upper), rel=1e-9)
    nowhere = MaxMarginClassifier(np.inf, algorithm=cls(q=np.repeat([0.0, 1.0], 24)))
    nowhere.fit(np.vstack([X, X]), np.tile(y, 2), np.repeat([1.0, 0.0], 24))
    plain = MaxMarginClassifier(np.inf, algorithm=cls()).fit(X, y)
    assert nowhere.history_[-1].lower == pytest.approx(plain.history_[-1].lower, rel=1e-9)


@pytest.mark.parametrize("seed", SEEDS)
def test_centre_of_the_smoothing_is_kept_as_given(seed):
    q = np.random.default_rng(seed).random(24)
    algorithm = IteratedSmoothedPrimalDual(q=q)
    for copy in (replace(algorithm), pickle.loads(pickle.dumps(algorithm)), clone(algorithm, safe=False)):
        assert copy == algorithm
        assert hash(copy) == hash(algorithm)
        assert copy.q == tuple(q)
    assert algorithm != IteratedSmoothedPrimalDual(q=q[::-1])
    assert "q=<24 weights>" in repr(algorithm)


@thorough
@given(arrays(float, st.integers(1, 30), elements=st.floats(-1e3, 1e3)), st.floats(1e-3, 1e3), st.booleans())
@settings(max_examples=examples(30, 300), deadline=None)
def test_projection_is_the_nearest_point_of_the_simplex(v, scale, ties):
    v = np.round(v) if ties else v * scale
    p = project_on_simplex(v)
    assert p.min() >= 0.0
    assert p.sum() == pytest.approx(1.0, abs=1e-15 * len(v))
    # optimality condition of the projection, to 18 n eps max(1, |v|)
    assert ((v - p) - (v - p) @ p).max() <= 4e-15 * len(v) * (1.0 + np.abs(v).max())


# stopping, refusals


@each_algorithm
def test_interrupts_and_contradictory_rows_end_the_iteration(name):
    run, calls = ALGORITHMS[name], []
    iterates = run(NormalisedRows(*inseparable(0)))
    steps = list(until_decided(iterates, 0.0, interrupted=lambda: len(calls) == 6 or calls.append(0)))
    assert [one.step - steps[0].step for one in steps] == list(range(7))
    for X in ([[1.0], [1.0]], [[1.0], [2.0]], [[0.0, 3.0], [0.0, 3.0]]):
        *_, last = until_decided(run(NormalisedRows(X, [1, -1])), 1e-3)
        assert last.dual(1e-3)
        assert last.lower == -1.0
        np.testing.assert_allclose(last.p.weights, 0.5, rtol=ROUNDING)


def test_von_neumann_ends_at_an_optimum_and_kernel_bounds_are_at_least_the_rounding_error():
    """For a kernel |p|_G^2 is a difference of numbers of magnitude one."""
    (only,) = von_neumann(NormalisedRows([[1, 0], [2, 0]], [1, 1]))
    assert only.lower == only.upper == 1.0
    *_, last = until_decided(smoothed_perceptron(gram(np.ones((2, 2)), [1, -1])), 1e-7)
    assert last.upper == 2.0 * sqrt(np.finfo(float).eps)
    assert last.lower == -1.0


X, Y = separable(0)
ZERO = np.vstack([X[:23], np.zeros(3)])


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: NormalisedRows(sp.csr_matrix(ZERO), Y), "pattern 23 .counted from 0. cannot be normalised"),
        (lambda: NormalisedRows(np.where(X[0, 0] == X, np.inf, X), Y), "must be finite"),
        (lambda: iterated_perceptron_von_neumann(NormalisedRows(X, Y), 1.0), "gamma must be"),
        *(
            (lambda q=q: SmoothedPrimalDual(q=q), "q must be finite weights .* none negative")
            for q in ([1.0, -1.0], "abc", {0: 1.0}, [1j, 1.0], [0.0, 0.0], [np.nan, 1.0], [])
        ),
        (lambda: MaxMarginClassifier(np.inf, algorithm=SmoothedPrimalDual(q=[1.0])).fit(X, Y), "24 weights, .* got 1"),
    ],
)  # fmt: skip
def test_invalid_patterns_and_parameters_are_refused(call, words):
    with pytest.raises(ValueError, match=words):
        call()
    assert NormalisedRows(ZERO, Y, Delta=0.1).n == 24
