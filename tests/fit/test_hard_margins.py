"""Hard margins: status, verdict and model agree; inseparable data end promptly, with a proof in exact arithmetic."""

from __future__ import annotations

import time
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from edge import cancels, edges
from effort import interpreted

import maxmargin as mm

INF = np.inf


def fitted(X, y, weights=None, **options) -> Any:
    return mm.MaxMarginClassifier(INF, random_state=0, **options).fit(X, y, weights)


def flipped(n=350, d=10, flips=5, seed=0):
    """Labels of a linear rule, a few of them flipped."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, d))
    y = np.where(X @ rng.standard_normal(d) > 0.0, 1, -1)
    y[rng.choice(n, flips, replace=False)] *= -1
    return X, y


@pytest.mark.parametrize(
    ("size", "options"),
    [
        ((350, 10, 5), {"intercept_scaling": 1.0}),
        ((350, 10, 5), {"fit_intercept": False}),
        ((350, 10, 5), {"p": 3}),
        ((350, 10, 5), {"p": INF}),
        ((20_000, 30, 2000), {}),
    ],
)
def test_inseparability_is_proved_exactly_and_promptly(size, options):
    """Tens of thousands of rows: without the separability test the fit takes minutes."""
    X, y = flipped(*size)
    begin = time.perf_counter()
    model = fitted(X, y, **options)
    assert time.perf_counter() - begin < 30.0
    assert model.status_ is mm.Status.INSEPARABLE
    verdict = model.verdict_
    assert isinstance(verdict, mm.Inseparable)
    assert verdict.verify(X, y) is verdict
    bias = options.get("fit_intercept", True)
    assert verdict.bias is bias
    assert verdict.support.size <= size[1] + 2
    assert cancels(X, 1.0 * y, dict(zip(verdict.support, verdict.weights, strict=True)), bias)
    # the certificate holds the same weights, rounded to float64: a sum of so many rows, each with an error of eps
    assert model.certificate_.support.tolist() == verdict.support.tolist()
    error = (verdict.support.size + 10.0) * np.finfo(float).eps * np.linalg.norm(X, axis=1).max()
    assert 0.0 <= model.certificate_.upper <= error
    mm.verify(model, X, y)


@pytest.mark.parametrize("p", [2, 3, INF])
def test_status_agrees_with_exact_separability(p):
    """Touching hulls and margins of 1e-9 of the data's size, against rational arithmetic."""
    for edge in edges(30, 11):
        model = fitted(edge.X, edge.y, p=p, fit_intercept=edge.bias, max_iter=60)
        assert (model.status_ is mm.Status.INSEPARABLE) == (not edge.separable), edge
        if edge.separable and model.certificate_.lower > 0.0:
            assert not hasattr(model, "verdict_")
            continue
        if edge.separable:  # the separator needs more digits than float64 has
            assert model.verdict_.separable
            assert model.status_ is mm.Status.UNDECIDED
        assert model.verdict_.separable is edge.separable
        model.verdict_.verify(edge.X, edge.y)


def test_rows_of_weight_zero_are_ignored():
    X, y = flipped()
    weights = np.ones(350)
    support = fitted(X, y).verdict_.support
    weights[support[:2]] = 0.0
    model = fitted(X, y, weights)
    assert model.status_ is mm.Status.INSEPARABLE
    assert not set(support[:2]) & set(model.verdict_.support)
    mm.verify(model, X, y, weights)
    model.verdict_ = replace(model.verdict_, weights=model.verdict_.weights[::-1])
    with pytest.raises(mm.CertificateError, match="the proof fails"):
        mm.verify(model, X, y, weights)
    # labels of a hyperplane, except for one row of weight 0
    clean = np.where(X[:, 0] > 0, 1, -1)
    X[:, 0] += 0.1 * clean
    clean[3] *= -1
    assert fitted(X, clean, 1.0 * (np.arange(350) != 3)).status_ is mm.Status.CERTIFIED


def test_multiclass_verdicts_name_the_inseparable_class():
    rng = np.random.default_rng(0)
    X = np.vstack([rng.standard_normal((40, 2)) * 0.3 + centre for centre in ([0, 0], [4, 0], [8, 0])])
    y = np.repeat(["left", "middle", "right"], 40)
    model = fitted(X, y)
    assert model.status_ is mm.Status.INSEPARABLE
    assert list(model.verdict_) == ["middle"]  # one versus the rest: the middle class lies between the others
    model.verdict_["middle"].verify(X, y == "middle")
    model.fit(X[y != "right"], y[y != "right"])
    assert model.status_ is mm.Status.CERTIFIED
    assert not hasattr(model, "verdict_")


def test_model_files_keep_the_proof(tmp_path):
    X, y = flipped()
    for labels in (y, np.where(y > 0, "up", "down"), np.where(np.arange(350) < 100, 7, y)):
        model = fitted(X, labels)
        mm.save(model, tmp_path / "model.safetensors")
        copy: Any = mm.load(tmp_path / "model.safetensors")
        assert copy.status_ is model.status_ is mm.Status.INSEPARABLE
        one, two = model.verdict_, copy.verdict_
        pairs = [(one, two, labels)]
        if isinstance(one, dict):
            assert list(one) == list(two)
            pairs = [(one[k], two[k], labels == k) for k in one]
        for old, new, truth in pairs:
            assert (type(old), str(old), old.classes) == (type(new), str(new), new.classes)
            new.verify(X, truth)


# columns of uneven scale


def uneven_columns(n, d, seed):
    """Separable rows with columns from 1e-12 to 1e10, each of which contributes to the labels."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, d))
    y = np.where(X @ rng.standard_normal(d) > 0.0, 1, -1)
    return X * np.logspace(-12, 10, d), y


# the first six once ended UNDECIDED with a negative margin, although the verdict held a separator
@pytest.mark.parametrize(
    ("n", "d", "p", "seed"),
    [(100, 40, 3, 10), (30, 8, 3, 38), (30, 20, 3, 144), (60, 3, 1, 25), (30, 20, 1.5, 56), (60, 12, INF, 1),
     (30, 8, 2, 0)],
)  # fmt: skip
@pytest.mark.parametrize("fit_intercept", [False, True])
def test_model_is_at_least_as_good_as_the_verdict(n, d, p, seed, fit_intercept):
    X, y = uneven_columns(n, d, seed)
    verdict = mm.separate(X, y, p=p, bias=fit_intercept, tol=INF)
    assert verdict.separable
    assert verdict.lo > 0.0
    model = fitted(X, y, p=p, fit_intercept=fit_intercept, max_iter=60)
    assert model.status_ in (mm.Status.CERTIFIED, mm.Status.STALLED, mm.Status.MAX_ITER, mm.Status.CONVERGED)
    assert not hasattr(model, "verdict_")
    assert (model.predict(X) == y).all()
    assert model.certificate_.lower >= verdict.lo * (1.0 - 1e-9)  # bounds are rounded outwards
    assert model.certificate_.upper <= verdict.hi * (1.0 + 1e-9)
    verified: Any = mm.verify(model, X, y)
    assert 0.0 < verified.lower <= verified.upper
    scores = y * model.decision_function(X)
    assert 0.4 < scores.min() < 2.1  # one, up to rounding or a power of two


@interpreted
def test_separators_found_before_an_interrupt_are_kept():
    X, y = uneven_columns(30, 8, 0)
    model = fitted(X, y, fit_intercept=False, algorithm="ima", callback=lambda report: report.round >= 4)
    assert model.status_ is mm.Status.INTERRUPTED
    verified: Any = mm.verify(model, X, y)
    assert min(model.certificate_.lower, verified.lower) > 0.0
    assert not hasattr(model, "verdict_")


# kernels


def test_a_hyperplane_that_the_kernel_solver_does_not_find_is_the_verdict():
    """The margin, 3.5e-10, is lost in the kernel's decomposition and exact step, but not in the verdict."""
    X, y = np.array([[0.0, 0.0], [1.0, 0.0], [0.0, 1.0], [0.5, 0.5 - 1e-9]]), np.array([0, 1, 1, 0])
    for rows in (X, sp.csr_matrix(X)):
        model: Any = mm.KernelMaxMarginClassifier(INF, kernel="linear").fit(rows, y)
        assert f"{model.status_}: {model.message_}".startswith("UNDECIDED: This model cannot express the")
        assert model.verdict_.lo <= 1e-9 / np.sqrt(8.0) <= model.verdict_.verify(rows, y).hi


@pytest.mark.parametrize("kernel", ["linear", "poly", "rbf"])
def test_contradictory_rows_are_found_before_the_kernel_solver_starts(kernel):
    X, y = flipped(3000, 10, 300)
    X, y = np.vstack([X, X[:1]]), np.append(y, -y[0])
    model: Any = mm.KernelMaxMarginClassifier(INF, kernel=kernel).fit(X, y)
    assert (model.status_, model.n_iter_) == (mm.Status.INSEPARABLE, 0)
    assert np.ptp(model.decision_function(X[:50])) == 0.0
    assert model.verdict_.support.tolist() == [0, 3000]
    assert model.verdict_.verify(X, y) is model.verdict_
    assert mm.verify(model, X, y).lower == -INF


def test_the_upper_bound_of_an_undecided_verdict_is_checked_in_reports():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(40, 2))
    y = (X[:, 0] > 0.0).astype(int)
    model = mm.MaxMarginClassifier(C=np.inf).fit(X, y)
    claim = mm.Undecided(
        hi=1e-30, certificate=replace(model.certificate_, lower=0.0), reason="max_time went by", bias=True,
        classes=(0, 1), features=2, method="nothing", seconds=0.0,
    )  # fmt: skip
    model.verdict_ = claim
    with pytest.raises(mm.CertificateError, match="the upper bound fails"):
        mm.support_report(model, X, y)
