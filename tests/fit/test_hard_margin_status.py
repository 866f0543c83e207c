"""Hard margins whose columns differ by many orders of magnitude: model, status and verdict agree."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from maxmargin import MaxMarginClassifier, Separable, Status, separate, verify
from maxmargin.certificates.rows import certify
from maxmargin.certificates.sample import Sample
from maxmargin.numerics.norms import norm
from maxmargin.problem.problem import Problem

INF = np.inf
ENDS = (Status.CERTIFIED, Status.STALLED, Status.MAX_ITER, Status.CONVERGED)


def verified_lower(model, *data) -> float:
    """The lower bound that the data prove."""
    found: Any = verify(model, *data)
    return found.lower


def uneven_columns(n, d, seed, least=-12, largest=10):
    """Separable rows with columns from 10^least to 10^largest, each of which contributes to the labels."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, d))
    y = np.where(X @ rng.standard_normal(d) > 0.0, 1, -1)
    return X * np.logspace(least, largest, d), y


# the first six once ended UNDECIDED with a negative margin, although the verdict held a separator
@pytest.mark.parametrize(
    ("n", "d", "p", "seed"),
    [(100, 40, 3, 10), (30, 8, 3, 38), (30, 20, 3, 144), (60, 3, 1, 25), (30, 20, 1.5, 56), (60, 12, INF, 1),
     (30, 8, 2, 0)],
)  # fmt: skip
@pytest.mark.parametrize("fit_intercept", [False, True])
def test_model_is_at_least_as_good_as_the_verdict(n, d, p, seed, fit_intercept):
    X, y = uneven_columns(n, d, seed)
    verdict = separate(X, y, p=p, bias=fit_intercept, tol=INF)
    assert isinstance(verdict, Separable)
    assert verdict.lo > 0.0
    model: Any = MaxMarginClassifier(
        C=INF, p=p, fit_intercept=fit_intercept, max_iter=60, random_state=0
    ).fit(X, y)
    assert model.status_ in ENDS
    assert not hasattr(model, "verdict_")
    assert (model.predict(X) == y).all()
    assert model.certificate_.lower >= verdict.lo * (1.0 - 1e-9)  # bounds are rounded outwards
    assert model.certificate_.upper <= verdict.hi * (1.0 + 1e-9)
    verified: Any = verify(model, X, y)
    assert verified.lower > 0.0
    assert verified.lower <= verified.upper
    scores = y * model.decision_function(X)
    assert 0.4 < scores.min() < 2.1  # one, up to rounding or a power of two


def test_separators_found_before_an_interrupt_are_kept():
    X, y = uneven_columns(30, 8, 0)
    options = {"C": INF, "p": 3, "fit_intercept": False, "algorithm": "ima", "random_state": 0}
    model: Any = MaxMarginClassifier(callback=lambda report: report.round >= 6, **options).fit(X, y)
    assert model.status_ is Status.INTERRUPTED
    assert model.certificate_.lower > 0.0
    assert verified_lower(model, X, y) > 0.0
    assert not hasattr(model, "verdict_")


@pytest.mark.parametrize("p", [1.0, 1.5, 2.0, 3.0, INF])
@pytest.mark.parametrize("free", [False, True])
def test_certified_margin_of_uneven_columns_is_attained(p, free):
    rng = np.random.default_rng(5)
    exact, w = rng.integers(-8, 9, (40, 6)).astype(float), np.array([1.0, -2.0, 3.0, 1.0, -1.0, 2.0])
    exact = exact[exact @ w != 0.0]
    scale = 2.0 ** np.array([-40.0, -20.0, -5.0, 10.0, 25.0, 34.0])
    X, y = exact * scale, np.sign(exact @ w)  # scores are integers, and exact
    problem = Problem("hinge", INF, p=p, intercept="free" if free else "none")
    found = certify(problem, Sample(X, y, np.ones(y.size)), w / scale, 0.0, np.ones(y.size))
    attained = float(np.abs(exact @ w).min()) / norm(w / scale, problem.q)
    assert found.lower == pytest.approx(attained, rel=1e-9)
    assert found.lower <= attained
    assert found.lower <= found.upper
