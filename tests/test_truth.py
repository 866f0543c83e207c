"""Every rule, on hundreds of small problems of every awkward kind: certified, with the truth in between."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np
import pytest
from effort import COMPILED, THOROUGH, compiled_for, examples, thorough
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from oracle import Optimum, optimum
from presenting import ONE_BY_ONE
from problems import BASES, Case, Spec, case, cases, drawn

from maxmargin import MaxMarginClassifier, Problem, Status, verify
from maxmargin.algorithms import ALGORITHMS

CONVERGENT = [name for name in ALGORITHMS if ALGORITHMS[name].convergent]
FOR_SOFT = [name for name in ALGORITHMS if name != "lp"]  # not of p = 2
FOR_HARD = [name for name in ALGORITHMS if ALGORITHMS[name]().refuses(Problem("hinge", np.inf)) is None]
FOR_ALL = [name for name in CONVERGENT if name in FOR_HARD]
EPS = float(np.finfo(float).eps)


@cache
def _truth(spec: Spec, problem: Problem) -> Optimum:
    c = case(spec)
    return optimum(problem, c.X, c.y, c.weights)


def truth_of(c: Case) -> Optimum:
    """The oracle's interval; the same problems come again for every rule."""
    return _truth(c.spec, c.problem)


def fit(c: Case, name: str = "auto", tol: float = 1e-8, seed: int = 0, **options) -> MaxMarginClassifier:
    return MaxMarginClassifier(algorithm=name, tol=tol, random_state=seed, **c.options, **options).fit(
        c.stored, c.y, c.weights
    )


def bracketed(certificate, truth: Optimum) -> None:
    """lower - e <= oracle <= upper + e, float against rational numbers: bounds are rounded outwards."""
    assert certificate.lower <= truth.lower + truth.e
    assert certificate.upper >= truth.upper - truth.e


settings.register_profile("truth", parent=settings.default, suppress_health_check=[HealthCheck.too_slow])
LONG = {name: examples(30, 200) for name in ("dcd", "mpu", "perceptron")}  # examples of the others are fewer
ROUNDS = {"perceptron": 20}  # and so are their rounds: what is asserted holds after any number of them


def on_many(name: str, strategy: st.SearchStrategy[Case], body: Callable[[Case], None]) -> None:
    """The body on as many problems as this rule's share of the time is."""
    profile = settings(settings.get_profile("truth"), max_examples=LONG.get(name, examples(8, 15)))
    profile(given(strategy)(body))()


def rounds(name: str) -> int:
    """Most rounds: a rule that ends by its own criterion may take as long as it likes to come to it."""
    return 1000 if name in CONVERGENT else ROUNDS.get(name, 10)


def tolerances(names: list[str]) -> list[Any]:
    """Rules with a tight tolerance and a loose one; with the latter, most are slow tests."""
    tight = [pytest.param(name, 1e-8) for name in names]
    loose = [pytest.param(name, 1e-3, marks=() if name in LONG else pytest.mark.slow) for name in names]
    return tight + loose


def solvable(name: str, c: Case) -> Case:
    """The problem, or the one nearest to it that the rule solves."""
    for change in ({}, {"loss": "hinge"}, {"loss": "squared_hinge"}, {"intercept": "free"}):
        if ALGORITHMS[name]().refuses(c.problem):
            c = replace(c, problem=replace(c.problem, **change), spec=replace(c.spec, **change))
    assert ALGORITHMS[name]().refuses(c.problem) is None
    if COMPILED and not THOROUGH and name in ONE_BY_ONE and not compiled_for(name, "csr"):
        c = replace(c, spec=replace(c.spec, sparse=False))
    return c


@thorough
@pytest.mark.parametrize(("name", "tol"), tolerances(FOR_SOFT))
def test_soft_problems(name, tol):
    def body(c):
        c = solvable(name, c)
        truth = truth_of(c)
        assert truth.e <= 1e-9 * truth.upper  # else nothing would be tested
        model = fit(c, name, tol, max_iter=rounds(name))
        if name in CONVERGENT:
            assert model.status_ is Status.CERTIFIED
        else:  # it ends by its own criterion, or, where the margin is tiny, by the number of rounds
            assert model.status_ in (Status.CERTIFIED, Status.CONVERGED, Status.MAX_ITER)
        if model.status_ is Status.CERTIFIED:
            assert model.certificate_.gap <= tol
        bracketed(model.certificate_, truth)
        again = verify(model, c.stored, c.y, c.weights)
        bracketed(again, truth)
        assert np.isfinite(model.coef_).all()
        assert np.isfinite(model.intercept_).all()
        if c.problem.intercept == "none":
            assert model.intercept_[0] == 0.0

    on_many(name, cases(), body)


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
def test_nearly_collinear_columns_from_1e_6_to_1e6(name, loss):
    """Second-order solvers certify them; the last resort, orthogonal factors, is needed for some with a large C."""
    rng = np.random.default_rng(0)
    for seed in (*range(40), 84, 106, 256, 286, 318):
        C = float(10.0 ** rng.integers(-4, 5)) if seed < 40 else 1e4
        n, d = int(rng.integers(10, 60)), int(rng.integers(2, 10))
        if seed < 40 and seed % examples(4, 1):
            continue
        c = case(
            Spec(n, d, seed, "collinear", loss=loss, C=C, intercept=("none", "free", "augmented")[seed % 3])
        )
        truth = truth_of(c)
        assert truth.e <= 1e-7 * truth.upper
        model = fit(c, name, 1e-6)
        assert model.status_ is Status.CERTIFIED
        bracketed(model.certificate_, truth)
        bracketed(verify(model, c.X, c.y), truth)


@thorough
@pytest.mark.parametrize(("name", "tol"), tolerances(FOR_HARD))
def test_hard_margin(name, tol):
    """Separable: certified. Not separable: an end, and the word for it; never a margin that is not there."""

    def body(c):
        c = solvable(name, c)
        truth = truth_of(c)
        model = fit(c, name, tol, max_iter=rounds(name))
        if truth.lower > 0:
            assert truth.e <= 1e-9 * truth.upper
            if name in CONVERGENT:
                assert model.status_ is Status.CERTIFIED
            else:
                assert model.status_ is not Status.INSEPARABLE
        elif model.certificate_.lower <= 0.0:
            assert model.status_ in (Status.INSEPARABLE, Status.UNDECIDED)
        if model.status_ is Status.CERTIFIED:
            assert model.certificate_.gap <= tol
            assert (model.predict(c.stored) == c.y)[c.weights > 0].all()
        bracketed(model.certificate_, truth)
        bracketed(verify(model, c.stored, c.y, c.weights), truth)

    on_many(name, cases(hard=True), body)


@thorough
@pytest.mark.parametrize("name", FOR_ALL)
@settings(max_examples=examples(10, 40))
@given(
    c=st.sampled_from((60, 300, 1500)).flatmap(
        lambda n: st.booleans().flatmap(lambda hard: cases(hard=hard, n=n))
    )
)
def test_larger_problems(name, c):
    """Too large for the oracle, not for the certificate, which is a proof of its own."""
    model = fit(c, name)
    if model.certificate_.lower > 0.0:
        assert model.status_ is Status.CERTIFIED
    else:
        assert c.problem.hard
        assert model.status_ in (Status.INSEPARABLE, Status.UNDECIDED)
    verify(model, c.stored, c.y, c.weights)


def test_every_kind_of_problem_was_among_them():
    """The strategy reaches what it is for: counted on as many random specs as one rule sees."""
    rng = np.random.default_rng(0)
    specs = [drawn(rng) for _ in range(250)]
    assert {s.base for s in specs} == set(BASES)
    assert min(s.C for s in specs) == 1e-4
    assert max(s.C for s in specs) == 1e4
    some = [case(s) for s in specs]
    assert sum(s.d > 50 * s.n for s in specs) >= 3
    assert sum((c.X == 0.0).all(axis=1).any() for c in some) >= 30
    assert sum((c.weights == 0.0).any() for c in some) >= 30
    assert sum(len(np.unique(c.X, axis=0)) < len(c.X) for c in some) >= 50
    separable = [truth_of(case(replace(s, C=np.inf))).lower > 0 for s in specs[:100]]
    assert 20 <= sum(separable) <= 80


# the answer is the optimum: it does not depend on the way to it


def same(c: Case, a, b) -> None:
    """Two models to 1e-9, relative to the weight (1e-7 where columns of 1e-3 stand beside columns of 1e3).

    Where patterns cancel in it, relative to what a weight of this problem may be: long enough to give the longest
    row a score of one, and no longer than the sum of all patterns at their caps; and no more exact than its sum.
    """
    longest = float(np.linalg.norm(c.X, axis=1).max()) or 1.0
    natural = 1.0 / longest if c.problem.hard else min(1.0 / longest, c.problem.C * c.weights.sum() * longest)
    allowed = (1e-7 if c.spec.base == "scaled" else 1e-9) * max(float(np.linalg.norm(a.coef_)), natural)
    allowed += 0.0 if c.problem.hard else 4.0 * EPS * float(a.certificate_.dual.sum()) * longest
    assert np.linalg.norm(a.coef_ - b.coef_) <= allowed
    assert abs(a.intercept_[0] - b.intercept_[0]) <= 1e-9 + allowed * longest


unique = st.booleans().flatmap(lambda hard: cases(hard=hard))


def settled(model) -> bool:
    """Hard margin of inseparable data: there is no optimum to agree on."""
    return model.status_ is Status.CERTIFIED


@thorough
@settings(max_examples=examples(37, 150))
@given(unique, st.integers(0, 2**20))
def test_row_order_and_seed_do_not_matter(c, seed):
    rng = np.random.default_rng(seed)
    order = rng.permutation(len(c.y))
    first = fit(c)
    if not settled(first):
        return
    other = replace(c, X=c.X[order], y=c.y[order], weights=c.weights[order])
    same(c, first, fit(other, seed=seed % 1000))


@thorough
@pytest.mark.parametrize("name", FOR_ALL)
@settings(max_examples=examples(20, 80))
@given(c=unique, loose=st.booleans())
def test_the_rule_does_not_matter(name, c, loose):
    first = fit(c)
    if settled(first):
        same(c, first, fit(c, name, tol=1e-3 if loose else 1e-8))


@thorough
@settings(max_examples=examples(37, 150))
@given(unique.filter(lambda c: c.spec.weights in ("whole", "some_zero")), st.integers(0, 2**20))
def test_weight_k_is_k_copies(c, seed):
    first = fit(c)
    if not settled(first):
        return
    rows = np.random.default_rng(seed).permutation(np.repeat(np.arange(len(c.y)), c.weights.astype(int)))
    copies = replace(c, X=c.X[rows], y=c.y[rows], weights=np.ones(rows.size))
    second = fit(copies)
    same(c, first, second)
    assert second.certificate_.lower == pytest.approx(first.certificate_.lower, rel=1e-8)
    verify(second, copies.stored, copies.y)


@thorough
@settings(max_examples=examples(20, 80))
@given(unique)
def test_labels_exchanged_turn_the_model_round(c):
    first = fit(c)
    if settled(first):
        turned = fit(replace(c, y=-c.y))
        turned.coef_, turned.intercept_ = -turned.coef_, -turned.intercept_
        same(c, first, turned)


@thorough
@settings(max_examples=examples(20, 80))
@given(cases(), st.sampled_from((0.25, 4.0)))
def test_patterns_scaled_by_k_and_C_by_one_over_k_squared(c, k):
    """w of k x with C / k^2 is w / k: the same separator; a power of two, so no rounding comes in."""
    first = fit(c)
    problem = replace(c.problem, C=c.problem.C / k**2, intercept_scaling=c.problem.intercept_scaling * k)
    second = fit(replace(c, X=c.X * k, problem=problem))
    second.coef_ = second.coef_ * k
    same(c, first, second)


@thorough
@settings(max_examples=examples(20, 80))
@given(unique)
def test_storage_does_not_matter(c):
    first = fit(c)
    if settled(first):
        same(c, first, fit(replace(c, spec=replace(c.spec, sparse=not c.spec.sparse))))


@thorough
@settings(max_examples=examples(20, 80))
@given(
    unique.filter(lambda c: c.problem.intercept == "free" and c.spec.base != "scaled"),
    st.sampled_from((-8.0, 3.0)),
)
def test_a_free_intercept_does_not_see_a_shift_of_all_rows(c, shift):
    """The intercept is not regularised: moving the origin moves the intercept and nothing else."""
    c = replace(c, X=np.rint(c.X * 64) / 64)  # so that the shift is exact
    first = fit(c)
    if not settled(first):
        return
    second = fit(replace(c, X=c.X + shift))
    second.intercept_ = second.intercept_ + shift * second.coef_.sum()
    same(replace(c, X=c.X + shift), first, second)
