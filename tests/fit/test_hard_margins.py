"""Hard margins of inseparable data: a prompt end, with a proof in exact arithmetic."""

from __future__ import annotations

import time

import numpy as np
import pytest
import scipy.sparse as sp
from edge import cancels, edges

from maxmargin import (
    Inseparable,
    KernelMaxMarginClassifier,
    MaxMarginClassifier,
    Status,
    Undecided,
    load,
    save,
    verify,
)
from maxmargin.certificates.separators import LinearSeparator

INF = np.inf


def flipped(n=350, d=10, flips=5, seed=0):
    """Labels of a linear rule, a few of them flipped."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, d))
    y = np.where(X @ rng.standard_normal(d) > 0.0, 1, -1)
    y[rng.choice(n, flips, replace=False)] *= -1
    return X, y


@pytest.mark.parametrize(
    "options", [{}, {"intercept": "augmented"}, {"fit_intercept": False}, {"p": 3}, {"p": INF}]
)
def test_inseparability_is_proved_exactly(options):
    X, y = flipped()
    model = MaxMarginClassifier(INF, random_state=0, **options).fit(X, y)
    assert model.status_ is Status.INSEPARABLE
    verdict = model.verdict_
    assert isinstance(verdict, Inseparable)
    assert verdict.verify(X, y) is verdict
    bias = options.get("fit_intercept", True)
    assert verdict.bias is bias
    assert cancels(
        X, np.where(y > 0, 1.0, -1.0), dict(zip(verdict.support, verdict.weights, strict=True)), bias
    )
    # the certificate holds the same weights, rounded
    assert model.certificate_.support.tolist() == verdict.support.tolist()
    assert 0.0 <= model.certificate_.upper <= 1e-14 * np.abs(X).max()
    verify(model, X, y)


@pytest.mark.parametrize("p", [2, 3, INF])
def test_status_agrees_with_exact_separability(p):
    """Touching hulls and margins of 1e-9 of the data's size, against rational arithmetic."""
    for edge in edges(30, 11):
        model = MaxMarginClassifier(INF, p=p, fit_intercept=edge.bias, max_iter=60, random_state=0)
        model.fit(edge.X, edge.y)
        assert (model.status_ is Status.INSEPARABLE) == (not edge.separable), edge
        if edge.separable:
            if model.certificate_.lower > 0.0:
                assert not hasattr(model, "verdict_")
            else:  # the separator needs more digits than float64 has
                assert isinstance(model.verdict_, LinearSeparator)
                assert model.status_ is Status.UNDECIDED
        if hasattr(model, "verdict_"):
            assert model.verdict_.separable is edge.separable
            model.verdict_.verify(edge.X, edge.y)
        assert hasattr(model, "verdict_") or edge.separable


def test_large_inseparable_data_end_promptly():
    """Tens of thousands of rows: without the separability test the fit takes minutes."""
    X, y = flipped(20_000, 30, 2000)
    MaxMarginClassifier(INF).fit(X[:50], X[:50, 0] > 0)  # compiles
    begin = time.perf_counter()
    model = MaxMarginClassifier(INF, random_state=0).fit(sp.csr_matrix(X), y)
    assert time.perf_counter() - begin < 30.0
    assert model.status_ is Status.INSEPARABLE
    assert model.verdict_.support.size <= 32
    model.verdict_.verify(X, y)


def test_rows_of_weight_zero_are_ignored():
    X, y = flipped()
    weights = np.ones(350)
    proof = MaxMarginClassifier(INF, random_state=0).fit(X, y).verdict_
    weights[proof.support[:2]] = 0.0
    model = MaxMarginClassifier(INF, random_state=0).fit(X, y, weights)
    assert model.status_ is Status.INSEPARABLE
    assert not set(proof.support[:2]) & set(model.verdict_.support)
    model.verdict_.verify(X, y)
    verify(model, X, y, weights)
    # labels of a hyperplane, except for one row of weight 0
    clean = np.where(X[:, 0] > 0, 1, -1)
    X[:, 0] += 0.1 * clean
    clean[3] *= -1
    weights[:] = np.arange(350) != 3
    assert MaxMarginClassifier(INF, random_state=0).fit(X, clean, weights).status_ is Status.CERTIFIED


def test_multiclass_verdicts_name_the_inseparable_class():
    rng = np.random.default_rng(0)
    X = np.vstack([rng.standard_normal((40, 2)) * 0.3 + centre for centre in ([0, 0], [4, 0], [8, 0])])
    y = np.repeat(["left", "middle", "right"], 40)
    model = MaxMarginClassifier(INF, random_state=0).fit(X, y)
    assert model.status_ is Status.INSEPARABLE
    assert list(model.verdict_) == ["middle"]  # one versus the rest: the middle class lies between the others
    model.verdict_["middle"].verify(X, y == "middle")
    model.fit(X[y != "right"], y[y != "right"])
    assert model.status_ is Status.CERTIFIED
    assert not hasattr(model, "verdict_")


def test_max_time_and_limits_of_exact_arithmetic_are_reported(monkeypatch):
    X, y = flipped(4000, 200, 1500)
    model = MaxMarginClassifier(INF, max_time=0.05, random_state=0).fit(X, y)
    assert model.status_ in (Status.MAX_TIME, Status.INSEPARABLE)
    monkeypatch.setattr("maxmargin.numerics.rational.MAX_COLUMNS", 6)
    X, y = flipped()
    model = MaxMarginClassifier(INF, random_state=0).fit(X, y)
    assert model.status_ is Status.UNDECIDED
    assert isinstance(model.verdict_, Undecided)
    assert "beyond exact reach" in model.verdict_.reason
    assert 0.0 == model.verdict_.lo <= model.verdict_.hi < 1e-10
    model.verdict_.verify(X, y)


@pytest.mark.parametrize("reach", [2048, 6])
def test_model_files_keep_the_proof(reach, monkeypatch, tmp_path):
    monkeypatch.setattr("maxmargin.numerics.rational.MAX_COLUMNS", reach)
    X, y = flipped()
    for labels in (y, np.where(y > 0, "up", "down"), np.where(np.arange(350) < 100, 7, y)):
        model = MaxMarginClassifier(INF, random_state=0).fit(X, labels)
        save(model, tmp_path / "model.safetensors")
        copy = load(tmp_path / "model.safetensors")
        assert copy.status_ is model.status_
        one, two = model.verdict_, copy.verdict_
        pairs = [(one, two, labels)]
        if isinstance(one, dict):
            assert list(one) == list(two)
            pairs = [(one[k], two[k], labels == k) for k in one]
        for old, new, truth in pairs:
            assert type(old) is type(new)
            assert str(old) == str(new)
            assert old.classes == new.classes
            new.verify(X, truth)


class TestKernels:
    def test_proved_hyperplane_becomes_the_model(self):
        """The margin, 3.5e-10, is lost in the kernel's decomposition and exact step, but not in the verdict."""
        X, y = np.array([[0.0, 0.0], [1.0, 0.0], [0.0, 1.0], [0.5, 0.5 - 1e-9]]), np.array([0, 1, 1, 0])
        margin = 1e-9 / np.sqrt(8.0)
        for rows in (X, sp.csr_matrix(X)):
            model = KernelMaxMarginClassifier(INF, kernel="linear").fit(rows, y)
            assert 0.99 * margin < model.certificate_.lower <= (1.0 + 1e-6) * margin
            assert (1.0 - 1e-6) * margin <= model.certificate_.upper
            assert model.status_ in (Status.CERTIFIED, Status.STALLED)
            assert not hasattr(model, "verdict_")
            assert (model.predict(rows) == y).all()
            assert verify(model, rows, y).lower == pytest.approx(model.certificate_.lower)

    @pytest.mark.parametrize("kernel", ["linear", "poly", "rbf"])
    def test_contradictory_rows_are_found_before_the_solver_starts(self, kernel):
        X, y = flipped(3000, 10, 300)
        X, y = np.vstack([X, X[:1]]), np.append(y, -y[0])
        begin = time.perf_counter()
        model = KernelMaxMarginClassifier(INF, kernel=kernel).fit(X, y)
        assert time.perf_counter() - begin < 3.0  # 0.1 s on an idle machine
        assert model.status_ is Status.INSEPARABLE
        assert model.n_iter_ == 0
        assert np.ptp(model.decision_function(X[:50])) == 0.0
        assert model.verdict_.support.tolist() == [0, 3000]
        assert model.verdict_.verify(X, y) is model.verdict_
        assert verify(model, X, y).lower == -INF
