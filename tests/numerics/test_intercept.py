"""The intercept for given scores: the minimiser, or the midpoint of the minimisers."""

from fractions import Fraction

import numpy as np
import pytest
from effort import examples, thorough
from hypothesis import example, given, settings
from hypothesis import strategies as st

from maxmargin import Problem
from maxmargin.problem.problem import best_intercept


def minimisers(squared, z, y, s):
    """(first, last) minimiser b of the loss in rational numbers, by its values at every kink and segment."""
    rows = [
        tuple(map(Fraction, row)) for row in zip(*(v.tolist() for v in (z, y, s)), strict=True) if row[2] > 0
    ]
    kinks = sorted({l - v for v, l, _ in rows})
    candidates = list(kinks)
    for low, high in zip([kinks[0] - 1, *kinks], [*kinks, kinks[-1] + 1], strict=True):
        # between two kinks the same patterns have a loss, and the best b is their mean kink
        active = [(l - v, w) for v, l, w in rows if l * (v + (low + high) / 2) < 1]
        if squared and active:
            candidates.append(sum(t * w for t, w in active) / sum(w for _, w in active))
    xi = {b: [(max(1 - l * (v + b), 0), w) for v, l, w in rows] for b in candidates}
    values = {b: sum(w * (x * x if squared else x) for x, w in slacks) for b, slacks in xi.items()}
    best = [b for b, value in values.items() if value == min(values.values())]
    return min(best), max(best)


eighths = st.integers(-40, 40).map(lambda k: k / 8)
weights = st.sampled_from((0.0, 0.5, 1.0, 1.0, 2.0))
patterns = st.lists(
    st.tuples(eighths, st.sampled_from((-1.0, 1.0)), weights), min_size=2, max_size=12
).filter(lambda rows: {l for _, l, s in rows if s > 0} == {-1.0, 1.0})


@thorough
@settings(max_examples=examples(60, 1000))
@given(patterns, st.booleans(), st.sampled_from((0.25, 1.0, 64.0)))
@example([(0.0, 1.0, 1.0), (0.0, -1.0, 1.0)], False, 1.0)  # constant between the two kinks
@example([(3.0, 1.0, 1.0), (-3.0, -1.0, 1.0)], True, 1.0)  # no loss between the kinks
@example([(0.0, 1.0, 1.0), (1.0, 1.0, 0.0), (0.0, -1.0, 1.0)], False, 1.0)  # a kink of weight zero inside
@example([(3.0, 1.0, 1.0), (2.0, 1.0, 0.0), (-3.0, -1.0, 1.0)], True, 1.0)
def test_intercept_is_the_midpoint_of_the_minimisers(rows, squared, C):
    """Of a hard margin it equalises the smallest margins of both classes; rows of weight 0 are ignored."""
    z, y, s = (np.array(column) for column in zip(*rows, strict=True))
    b = best_intercept(Problem("squared_hinge" if squared else "hinge", C), z, y, s)
    b_exact = float(sum(minimisers(squared, z, y, s)) / 2)
    assert b == pytest.approx(b_exact, rel=0.0, abs=3e-14)  # sums of 12 terms of at most 12: 12 eps 12
    margins = y * (z + best_intercept(Problem("hinge", np.inf), z, y, s))
    plus, minus = (margins[(s > 0) & (y == side)].min() for side in (1.0, -1.0))
    assert plus == pytest.approx(minus, rel=0.0, abs=1e-14)  # two roundings of numbers of at most 16


@pytest.mark.parametrize("condition", ["random", "ties", "flat", "unrepresentative sample"])
def test_intercept_of_many_rows_is_the_midpoint_of_the_minimisers(condition):
    """Scores and weights are small multiples of 1/8, so that the sums of the reference are exact."""
    n, rng = 6000, np.random.default_rng(0)
    y, s = np.where(rng.random(n) < 0.4, 1.0, -1.0), rng.integers(0, 4, n) / 2.0
    z = rng.integers(-(2**20), 2**20, n) / 8.0
    if condition == "ties":
        z = np.round(z / 2**15)
    elif condition == "flat":  # a positive and a negative cluster of equal weight, far apart
        y, s = np.where(np.arange(n) % 2, 1.0, -1.0), np.ones(n)
        z = np.where(y > 0, 50.0, 0.0)
    elif condition != "random":  # all rows of the sample have large scores
        z[:: n // 1000] = 2.0**20
    values, index = np.unique(y - z, return_inverse=True)
    slopes = np.cumsum(np.bincount(index, s)) - s[y > 0].sum()
    first = int(np.argmax(slopes >= 0.0))
    b = values[first] if slopes[first] > 0.0 else 0.5 * (values[first] + values[np.argmax(slopes > 0.0)])
    assert best_intercept(Problem("hinge", 2.0), z, y, s) == b


@pytest.mark.parametrize("big", [1e3, 1e8])
def test_one_dominant_weight_leaves_a_valid_minimiser(big):
    """The other weights decide within the interval that the large one leaves, and are not lost in sums."""
    z, y = np.array([0.25, 0.0, 0.25]), np.array([-1.0, 1.0, -1.0])
    for s in (np.array([1.0, big, 1.0]), np.array([1.0 / big, 1.0, 1.0 / big])):
        first, last = minimisers(False, z, y, s)
        assert first <= Fraction(best_intercept(Problem("hinge", 1.0), z, y, s)) <= last
