"""The public set of hard problems: the same data everywhere, and brackets that hold."""

from fractions import Fraction

import numpy as np
import pytest

pytest.importorskip(
    "benchmarks.hardset.problems", reason="the benchmarks are not part of an installed package"
)
from benchmarks.hardset.problems import PROBLEMS

flint = pytest.importorskip("flint", reason="the reference solver needs python-flint")
from benchmarks.hardset import exact, optima  # noqa: E402

# hard margins and both losses, p = 1, 1.5, 2, 3 and inf, both powers of the norm, several classes
SAMPLE = (
    "near-separable-05", "lattice-03", "lattice-05", "outlier-01", "outlier-07", "contradictory-08", "classes-04",
)  # fmt: skip


def test_there_are_100_problems_with_the_data_of_the_stored_optima():
    assert len(PROBLEMS) == 100
    assert {name: problem.digest() for name, problem in PROBLEMS.items()} == optima.digests()


def test_all_brackets_are_narrow():
    for name, found in optima.load().items():
        assert all(0 < high - low <= Fraction(optima.WIDTH) * low for low, high in found), name


@pytest.mark.parametrize("name", SAMPLE)
def test_brackets_are_those_of_the_reference_solver(name):
    problem, stored = PROBLEMS[name], optima.load()[name]
    for (X, signs), (low, high) in zip(problem.parts(), stored, strict=True):
        again = [Fraction(end) for end in optima.bracket(problem, X, signs)]
        assert again[0] <= high
        assert low <= again[1]


def test_values_agree_with_rational_arithmetic():
    """Objective and bound of a lattice problem at given points, computed with fractions."""
    problem = PROBLEMS["lattice-04"]
    ((X, signs),) = problem.parts()
    judge = exact.Judge(problem, X, signs)
    rows = [[Fraction(x) for x in row] for row in X]
    w, b = [0.5, -0.25, 0.125, 1.0], 0.75
    scores = [sum(x * Fraction(v) for x, v in zip(row, w, strict=True)) + Fraction(b) for row in rows]
    losses = [max(Fraction(0), 1 - int(sign) * score) for sign, score in zip(signs, scores, strict=True)]
    value = sum(Fraction(v) ** 2 for v in w) / 2 + Fraction(problem.C) * sum(losses)
    assert judge.value(exact.exact(np.array(w)), flint.arb(b)).contains(_number(value))
    # balanced dual variables: as much weight on each class
    few = min((signs == 1).sum(), (signs == -1).sum())
    alpha = np.zeros(len(signs))
    for sign in (-1, 1):
        alpha[np.flatnonzero(signs == sign)[:few]] = 1.0 + np.arange(few) % 3
    dual = [Fraction(x) for x in alpha]
    v = [sum(a * int(s) * row[j] for a, s, row in zip(dual, signs, rows, strict=True)) for j in range(4)]
    bound = sum(dual) - sum(x * x for x in v) / 2
    assert judge.bound([flint.arb(x) for x in alpha]).contains(_number(bound))
    # one more unit of weight on a row is taken back
    alpha[np.argmax(alpha)] += 1.0
    assert judge.bound([flint.arb(x) for x in alpha]).contains(_number(bound))


def _number(value):
    return flint.fmpq(value.numerator, value.denominator)
