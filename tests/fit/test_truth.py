"""Every rule on hundreds of small degenerate problems: certified, with bounds that enclose the optimum."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np
import pytest
from effort import examples, interpreted, thorough
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st
from oracle import Optimum, optimum
from problems import Case, Spec, case, cases

from maxmargin import MaxMarginClassifier, Problem, Status, verify
from maxmargin.algorithms import ALGORITHMS

CONVERGENT = [name for name in ALGORITHMS if ALGORITHMS[name].convergent]
SOFT = [Problem(loss, 1.0) for loss in ("hinge", "squared_hinge")]
FOR_SOFT = [name for name in ALGORITHMS if any(ALGORITHMS[name]().refuses(one) is None for one in SOFT)]
FOR_HARD = [name for name in ALGORITHMS if ALGORITHMS[name]().refuses(Problem("hinge", np.inf)) is None]
FOR_ALL = [name for name in CONVERGENT if name in FOR_HARD and name in FOR_SOFT]
COMPILES = [name for name in ALGORITHMS if ALGORITHMS[name].schedules[0] != "points"]
# Rules with slack coordinates compile soft and hard margins separately: the fast suite has one of both.
SOFT_ONLY = ("perceptron", "alma", "micra", "fixed-margin", "pumma")
EPS = float(np.finfo(float).eps)
pytestmark = interpreted


@cache
def _optimum(spec: Spec, problem: Problem) -> Optimum:
    """Return the interval of the oracle; problems recur for every rule."""
    c = case(spec)
    return optimum(problem, c.X, c.y, c.weights)


def fit(c: Case, name: str = "auto", tol: float = 1e-8, seed: int = 0, **options) -> MaxMarginClassifier:
    return MaxMarginClassifier(algorithm=name, tol=tol, random_state=seed, **c.options, **options).fit(
        c.stored, c.y, c.weights
    )


def assert_bracketed(certificate, expected: Optimum) -> None:
    """lower - e <= oracle <= upper + e, float against rational numbers: bounds are rounded outwards."""
    assert certificate.lower <= expected.lower + expected.e
    assert certificate.upper >= expected.upper - expected.e


MANY = ("dcd", "mpu", "perceptron")  # rules with more examples


def accepts_hinge(name: str) -> bool:
    return ALGORITHMS[name]().refuses(Problem("hinge", 1.0)) is None


def rules(names: list[str], soft: bool) -> list[Any]:
    """Rules, each for soft or hard margins; those that compile both separately have one of them as a slow test."""

    def slow(name):  # each round of cramma has as many updates as a small margin needs
        twice = name in COMPILES and not accepts_hinge(name) and (name in SOFT_ONLY) != soft
        return twice or name == "cramma"

    return [pytest.param(name, not soft, marks=pytest.mark.slow if slow(name) else ()) for name in names]


def solvable(name: str, c: Case) -> Case:
    """Return the problem, or a similar one that the rule solves."""

    def changed(c, **change):
        return replace(c, problem=replace(c.problem, **change), spec=replace(c.spec, **change))

    for change in ({}, {"loss": "hinge"}, {"loss": "squared_hinge"}, {"intercept": "free"}):
        if ALGORITHMS[name]().refuses(c.problem):
            c = changed(c, **change)
    assert ALGORITHMS[name]().refuses(c.problem) is None
    return c


@thorough
@pytest.mark.parametrize(("name", "hard"), rules(FOR_SOFT, True) + rules(FOR_HARD, False))
def test_bounds_enclose_the_optimum_and_status_is_correct(name, hard):
    """Inseparable data end as inseparable or undecided, without a positive hard margin; all others are certified."""

    def body(c):
        c = solvable(name, c)
        expected, tol = _optimum(c.spec, c.problem), (1e-8, 1e-8, 1e-3)[c.spec.seed % 3]
        # the assertions hold after any number of rounds
        model = fit(c, name, tol, max_iter=1000 if name in CONVERGENT else 20 if name in MANY else 10)
        if expected.lower > 0:
            assert expected.e <= 1e-9 * expected.upper  # otherwise the test is vacuous
            if name in CONVERGENT:
                assert model.status_ is Status.CERTIFIED
            elif hard:
                assert model.status_ is not Status.INSEPARABLE
            else:  # ends by its own criterion, or, for tiny margins, by the number of rounds
                assert model.status_ in (Status.CERTIFIED, Status.CONVERGED, Status.MAX_ITER)
        elif model.certificate_.lower <= 0.0:
            assert model.status_ in (Status.INSEPARABLE, Status.UNDECIDED)
        if model.status_ is Status.CERTIFIED:
            assert model.certificate_.gap <= tol
            assert not hard or (model.predict(c.stored) == c.y)[c.weights > 0].all()
        assert_bracketed(model.certificate_, expected)
        assert_bracketed(verify(model, c.stored, c.y, c.weights), expected)
        assert np.isfinite([*model.coef_[0], *model.intercept_]).all()
        assert c.problem.intercept != "none" or model.intercept_[0] == 0.0

    number = examples(6, 200) if name in MANY else examples(3, 15)
    some = settings(max_examples=number, suppress_health_check=[HealthCheck.too_slow])
    some(given(cases(hard=hard))(body))()


@thorough
@pytest.mark.parametrize(
    ("name", "loss"),
    [
        ("auto", "hinge"),
        ("auto", "squared_hinge"),
        ("interior-point", "hinge"),
        ("proximal-point", "hinge"),
        ("newton", "squared_hinge"),
    ],
)
def test_nearly_collinear_columns_of_any_scale_are_certified(name, loss):
    """Some of these with a large C need orthogonal factors."""
    rng = np.random.default_rng(0)
    for seed in (*range(40), *examples((84, 318), (84, 106, 256, 286, 318))):
        C = float(10.0 ** rng.integers(-4, 5)) if seed < 40 else 1e4
        n, d = int(rng.integers(10, 60)), int(rng.integers(2, 10))
        if seed < 40 and seed % examples(8, 1):
            continue
        c = case(
            Spec(n, d, seed, "collinear", loss=loss, C=C, intercept=("none", "free", "augmented")[seed % 3])
        )
        expected = _optimum(c.spec, c.problem)
        assert expected.e <= 1e-7 * expected.upper
        model = fit(c, name, 1e-6)
        assert model.status_ is Status.CERTIFIED
        assert_bracketed(model.certificate_, expected)
        assert_bracketed(verify(model, c.X, c.y), expected)


# invariances of the optimum


def assert_equal_models(c: Case, a, b) -> None:
    """Compare models to 1e-9, relative to the weight (1e-7 for columns from 1e-3 to 1e3).

    If patterns cancel in the weight, the tolerance is relative to a typical weight: long enough to give the longest
    row a score of one, and at most the sum of all patterns at their caps; rounding of that sum is allowed.
    """
    longest = float(np.linalg.norm(c.X, axis=1).max()) or 1.0
    typical = 1.0 / longest if c.problem.hard else min(1.0 / longest, c.problem.C * c.weights.sum() * longest)
    allowed = (1e-7 if c.spec.base == "scaled" else 1e-9) * max(float(np.linalg.norm(a.coef_)), typical)
    allowed += 0.0 if c.problem.hard else 4.0 * EPS * float(a.certificate_.dual.sum()) * longest
    assert np.linalg.norm(a.coef_ - b.coef_) <= allowed
    assert abs(a.intercept_[0] - b.intercept_[0]) <= 1e-9 + allowed * longest


any_margin = st.booleans().flatmap(lambda hard: cases(hard=hard))
# A problem, a changed problem, and the known relation of their optima: w is a factor times the changed one, and b
# differs by a shift times the sum of w. Factors are powers of two, so that the data change without rounding.
Change = tuple[Case, Case, float, float]


def permuted(c: Case, rng) -> Change:
    order = rng.permutation(len(c.y))
    return c, replace(c, X=c.X[order], y=c.y[order], weights=c.weights[order]), 1.0, 0.0


def copied(c: Case, rng) -> Change:
    """A row of weight k as k rows."""
    assume(c.spec.weights in ("whole", "some_zero"))
    rows = rng.permutation(np.repeat(np.arange(len(c.y)), c.weights.astype(int)))
    return c, replace(c, X=c.X[rows], y=c.y[rows], weights=np.ones(rows.size)), 1.0, 0.0


def exchanged(c: Case, rng) -> Change:
    return c, replace(c, y=-c.y), -1.0, 0.0


def rescaled(c: Case, rng) -> Change:
    """Rows times k, with C / k^2 and the intercept's feature times k: w / k, and the same b."""
    k = float(rng.choice([0.25, 4.0]))
    scaled = replace(c.problem, C=c.problem.C / k**2, intercept_scaling=c.problem.intercept_scaling * k)
    return c, replace(c, X=c.X * k, problem=scaled), k, 0.0


def stored_otherwise(c: Case, rng) -> Change:
    return c, replace(c, spec=replace(c.spec, sparse=not c.spec.sparse)), 1.0, 0.0


def shifted(c: Case, rng) -> Change:
    """Rows shifted by 3 in every column: a free intercept is shifted, since it is not regularised."""
    assume(c.problem.intercept == "free" and c.spec.base != "scaled")
    c = replace(c, X=np.rint(c.X * 64) / 64)  # the shift is exact
    return c, replace(c, X=c.X + 3.0), 1.0, 3.0


@thorough
@pytest.mark.parametrize("change", [permuted, copied, exchanged, rescaled, stored_otherwise, shifted])
@settings(max_examples=examples(12, 120))
@given(c=any_margin, seed=st.integers(0, 2**20))
def test_changed_problems_have_the_expected_optimum(change, c, seed):
    c, changed, factor, shift = change(c, np.random.default_rng(seed))
    first = fit(c)
    if first.status_ is not Status.CERTIFIED:  # the hard margin of inseparable data has no optimum
        return
    second = fit(changed, seed=seed % 1000)
    second.coef_ = second.coef_ * factor
    second.intercept_ = second.intercept_ * (-1.0 if factor < 0.0 else 1.0) + shift * second.coef_.sum()
    assert_equal_models(changed if shift else c, first, second)
    verify(fit(changed), changed.stored, changed.y, changed.weights)


@thorough
@pytest.mark.parametrize("name", FOR_ALL)
@pytest.mark.parametrize("n", [None, 1500])
@settings(max_examples=examples(3, 60))
@given(data=st.data(), hard=st.booleans(), loose=st.booleans())
def test_model_does_not_depend_on_the_rule(name, n, data, hard, loose):
    """Also for problems too large for the oracle."""
    c = solvable(name, data.draw(cases(hard=hard) if n is None else cases(hard=hard, n=n)))
    first, second = fit(c), fit(c, name, tol=1e-3 if loose else 1e-8)
    verify(second, c.stored, c.y, c.weights)
    if first.status_ is Status.CERTIFIED:
        assert second.status_ is Status.CERTIFIED
        assert_equal_models(c, first, second)
    else:
        assert hard
        assert {first.status_, second.status_} <= {Status.INSEPARABLE, Status.UNDECIDED}
