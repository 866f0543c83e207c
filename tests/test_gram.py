"""Inner products kept: the same steps as on the rows themselves, and the same weight."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp

import maxmargin.data.rows
from maxmargin import ALMA, PUMMA, AggressiveROMMA, MaxMarginClassifier, Perceptron, Problem, verify
from maxmargin.algorithms.online.perceptron import Learn
from maxmargin.data.rows import Patterns, Room
from maxmargin.engine.storage import Gram
from maxmargin.engine.sweep import look, repeat


def wide(n=24, d=60, seed=0):
    rng = np.random.default_rng(seed)
    y = np.arange(n) % 2
    return rng.integers(-3, 4, (n, d)) + 1.0 * (2 * y - 1)[:, None], y


PROBLEMS = [
    {"C": np.inf},
    {"C": 1e-2},
    {"C": np.inf, "intercept": "augmented", "intercept_scaling": 2.0},
]
ALGORITHMS = [
    Perceptron(b=4.0),
    ALMA(alpha=0.2),
    AggressiveROMMA(delta=0.02),
    PUMMA(delta=0.02),
    PUMMA(delta=0.02, schedule="plain", shuffle=False),
]


@pytest.mark.parametrize("options", PROBLEMS, ids=str)
@pytest.mark.parametrize("algorithm", ALGORITHMS, ids=lambda a: f"{a.name}, {a.schedule}")
def test_same_steps_as_on_the_rows(algorithm, options, monkeypatch):
    if isinstance(algorithm, PUMMA) and len(options) > 1:
        pytest.skip("PUMMA learns a free intercept")
    X, y = wide()
    store = sp.csr_matrix if isinstance(algorithm, Perceptron) else np.asarray
    assert Patterns(store(X)).few
    models = []
    for most in (maxmargin.data.rows.MOST_PRODUCTS, 0):
        monkeypatch.setattr(maxmargin.data.rows, "MOST_PRODUCTS", most)
        models.append(MaxMarginClassifier(algorithm=algorithm, random_state=0, **options).fit(store(X), y))
    kept, rows = models
    assert kept.history_[-1].steps == rows.history_[-1].steps > 0
    assert kept.coef_ == pytest.approx(rows.coef_, rel=1e-9)
    assert kept.intercept_ == pytest.approx(rows.intercept_, rel=1e-9, abs=1e-12)
    assert kept.certificate_.lower == pytest.approx(rows.certificate_.lower, rel=1e-9)
    assert kept.certificate_.upper == pytest.approx(rows.certificate_.upper, rel=1e-9)
    verify(kept, X, y)


@pytest.mark.parametrize("rho", [0.0, 2.0])
def test_integer_data_give_the_same_bits(rho):
    """The Perceptron on integers, packed and not."""
    X, y = wide()
    signs = 2.0 * y - 1.0
    problem = Problem("hinge", np.inf, intercept="none")
    patterns = Patterns(X)
    line = np.arange(len(y), dtype=np.uint32)
    scores, moved = np.empty(len(y)), np.empty(len(y), np.uint32)
    ends = []
    for gram in (None, patterns.inner_products()):
        h = patterns.weight(problem, signs, np.ones(len(y)), 1.0, rho, gram=gram)
        assert isinstance(h.space, Gram) == (gram is not None)
        for _ in range(5):
            repeat(Learn(500.0), h, line[::-1].copy(), scores, moved, 1)
            packed = Room().pack(h, line[3:17])
            repeat(Learn(700.0), packed, line[:14], scores, moved, 2)
        look(h, line, scores)
        ends.append((h.alpha.tolist(), scores.tolist()))
    assert ends[0] == ends[1]


def test_only_where_rows_are_longer_than_the_list_of_them():
    X, _ = wide(n=24, d=23)
    assert not Patterns(X).few
    assert not Patterns(sp.random(50, 4000, density=0.001, format="csr", random_state=0)).few
