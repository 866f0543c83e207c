"""The intercept for given scores: the minimiser, or the midpoint of the minimisers."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize

from maxmargin import MPU, MaxMarginClassifier, Problem, Status
from maxmargin.problem.intercept import best_intercept, best_multiple_and_intercept


def loss(problem, z, y, s, b):
    """The exact loss at b, without the factor C."""
    xi = [max(1 - l * (v + b), Fraction(0)) for v, l in zip(z, y, strict=True)]
    return sum(
        (w * (x if problem.loss == "hinge" else x * x) for w, x in zip(s, xi, strict=True)), Fraction(0)
    )


def minimisers(problem, z, y, s):
    """(first, last) minimiser b of the loss, exactly, by evaluating every kink and segment."""
    rows = [row for row in zip(z, y, s, strict=True) if row[2] > 0]
    kinks = sorted({l - v for v, l, _ in rows})
    candidates = list(kinks)
    if problem.loss == "squared_hinge":
        for low, high in zip([kinks[0] - 1, *kinks], [*kinks, kinks[-1] + 1], strict=True):
            # between two kinks the same patterns have a loss, and the best b is their mean kink
            inside = (low + high) / 2
            active = [(l - v, w) for v, l, w in rows if l * (v + inside) < 1]
            if active:
                best = sum(t * w for t, w in active) / sum(w for _, w in active)
                if low <= best <= high:
                    candidates.append(best)
    values = {b: loss(problem, z, y, s, b) for b in candidates}
    best = min(values.values())
    found = [b for b, value in values.items() if value == best]
    return min(found), max(found)


eighths = st.integers(-40, 40).map(lambda k: k / 8)
patterns = st.lists(
    st.tuples(eighths, st.sampled_from((-1.0, 1.0)), st.sampled_from((0.0, 0.5, 1.0, 1.0, 2.0))),
    min_size=2,
    max_size=12,
).filter(lambda rows: {l for _, l, s in rows if s > 0} == {-1.0, 1.0})


@settings(max_examples=500)
@given(patterns, st.sampled_from(("hinge", "squared_hinge")), st.sampled_from((0.25, 1.0, 64.0)))
@example([(0.0, 1.0, 1.0), (0.0, -1.0, 1.0)], "hinge", 1.0)  # constant between the two kinks
@example([(3.0, 1.0, 1.0), (-3.0, -1.0, 1.0)], "squared_hinge", 1.0)  # no loss between the kinks
@example([(0.0, 1.0, 1.0), (1.0, 1.0, 0.0), (0.0, -1.0, 1.0)], "hinge", 1.0)  # a kink of weight zero inside
@example([(3.0, 1.0, 1.0), (2.0, 1.0, 0.0), (-3.0, -1.0, 1.0)], "squared_hinge", 1.0)
def test_intercept_is_the_midpoint_of_the_minimisers(rows, loss_name, C):
    z, y, s = (np.array(column) for column in zip(*rows, strict=True))
    problem = Problem(loss_name, C, intercept="free")
    exact = [[Fraction(v) for v in column] for column in (z.tolist(), y.tolist(), s.tolist())]
    first, last = minimisers(problem, *exact)
    assert best_intercept(problem, z, y, s) == pytest.approx(float((first + last) / 2), rel=1e-13, abs=1e-13)


@pytest.mark.parametrize("n", [6000, 40_001])
@pytest.mark.parametrize("condition", ["random", "ties", "flat", "one value", "unrepresentative sample"])
def test_intercept_of_many_rows_is_the_midpoint_of_the_minimisers(condition, n):
    """Scores and weights are small multiples of 1/8, so that the sums of the reference are exact."""
    rng = np.random.default_rng(n)
    y, s = np.where(rng.random(n) < 0.4, 1.0, -1.0), rng.integers(0, 4, n) / 2.0
    z = rng.integers(-(2**20), 2**20, n) / 8.0
    if condition == "ties":
        z = np.round(z / 2**15)
    elif condition == "flat":  # a positive and a negative cluster of equal weight, far apart
        y, s, z = np.where(np.arange(n) % 2, 1.0, -1.0), np.ones(n), 0.0 * z
        s[0], z[y > 0] = 1.0 - n % 2, 50.0
    elif condition == "one value":
        z[:] = 3.0
    elif condition == "unrepresentative sample":  # all rows of the sample have large scores
        z[:: n // 1000] = 2.0**20
    kinks = y - z
    values, index = np.unique(kinks, return_inverse=True)
    slopes = np.cumsum(np.bincount(index, s)) - s[y > 0].sum()
    first = int(np.argmax(slopes >= 0.0))
    b = values[first] if slopes[first] > 0.0 else 0.5 * (values[first] + values[np.argmax(slopes > 0.0)])
    assert best_intercept(Problem("hinge", 2.0), z, y, s) == b


@settings(max_examples=200)
@given(st.integers(0, 2**20), st.integers(2, 40), st.sampled_from(("hinge", "squared_hinge")))
def test_intercept_minimises_the_loss_to_rounding(seed, n, loss_name):
    """Real scores and weights of different sizes: the loss at b is the exact minimum up to rounding."""
    rng = np.random.default_rng(seed)
    z = rng.normal(size=n) * 10.0 ** rng.uniform(-3, 3)
    y = np.where(rng.random(n) < 0.5, 1.0, -1.0)
    y[:2] = 1.0, -1.0
    s = 10.0 ** rng.uniform(-3, 3, n)
    problem = Problem(loss_name, 10.0 ** rng.uniform(-4, 4), intercept="free")
    exact = [[Fraction(v) for v in column] for column in (z.tolist(), y.tolist(), s.tolist())]
    best = loss(problem, *exact, minimisers(problem, *exact)[0])
    found = loss(problem, *exact, Fraction(best_intercept(problem, z, y, s)))
    # a minimum of zero is attained up to the rounding of the scores
    rounding = sum(exact[2]) * (Fraction(1e-15) * Fraction(1.0 + float(np.abs(z).max()))) ** (
        1 if loss_name == "hinge" else 2
    )
    assert best <= found <= best * (1 + Fraction(1, 10**11)) + rounding


@settings(max_examples=100)
@given(patterns)
def test_hard_margin_intercept_equalises_the_smallest_margins(rows):
    """b maximises min y_i (z_i + b); rows of weight 0 are ignored."""
    z, y, s = (np.array(column) for column in zip(*rows, strict=True))
    b = best_intercept(Problem("hinge", np.inf, intercept="free"), z, y, s)
    margins, used = y * (z + b), s > 0
    plus, minus = margins[used & (y > 0)].min(), margins[used & (y < 0)].min()
    assert plus == pytest.approx(minus, abs=1e-14)


@settings(max_examples=100)
@given(patterns, st.sampled_from(("hinge", "squared_hinge")), eighths)
def test_shift_and_reflection_of_scores(rows, loss_name, shift):
    """Scores shifted by t shift b by -t; negated scores and labels negate b."""
    z, y, s = (np.array(column) for column in zip(*rows, strict=True))
    problem = Problem(loss_name, 1.0, intercept="free")
    b = best_intercept(problem, z, y, s)
    assert best_intercept(problem, z + shift, y, s) == pytest.approx(b - shift, abs=1e-12)
    assert best_intercept(problem, -z, -y, s) == pytest.approx(-b, abs=1e-12)


@pytest.mark.parametrize("big", [1e8, 1e13, 1e16, 1e100])
def test_one_dominant_weight_leaves_a_valid_minimiser(big):
    """The other weights decide within the interval that the large one leaves, and are not lost in sums."""
    hinge = Problem("hinge", 1.0)
    z, y = np.array([0.25, 0.0, 0.25]), np.array([-1.0, 1.0, -1.0])
    for s in (np.array([1.0, big, 1.0]), np.array([1.0 / big, 1.0, 1e-3 / big])):
        b = best_intercept(hinge, z, y, s)
        first, last = minimisers(hinge, *(list(map(Fraction, v.tolist())) for v in (z, y, s)))
        assert first <= Fraction(b) <= last


@pytest.mark.parametrize("intercept", ["free", "augmented"])
@pytest.mark.parametrize("schedule", MPU.schedules)
def test_mpu_ends_by_its_own_accuracy(schedule, intercept, rules_alone):
    """With an accuracy coarser than `tol`, MPU ends as converged before max_iter."""
    rng = np.random.default_rng(4)
    y = np.arange(80) % 2
    X = rng.normal(size=(80, 3)) + 0.6 * (2 * y - 1)[:, None] + 2.0
    model = MaxMarginClassifier(
        loss="hinge",
        intercept=intercept,
        algorithm=MPU(delta=0.05, schedule=schedule),
        tol=1e-9,
        max_iter=5000,
        random_state=0,
    ).fit(X, y)
    assert model.status_ is Status.CONVERGED
    assert model.certificate_.gap < 0.05  # the accuracy delta of MPU


@given(
    seed=st.integers(0, 2**31),
    n=st.integers(2, 30),
    kind=st.sampled_from(("free", "augmented", "none")),
    size=st.sampled_from((1e-3, 1.0, 1e3)),
)
def test_best_multiple_and_intercept_minimise_the_objective(seed, n, kind, size):
    """Newton's method in two variables, from a distant start, against a general minimiser started at its result."""
    rng = np.random.default_rng(seed)
    y = rng.permutation(np.where(np.arange(n) % 2, 1.0, -1.0))
    z, weights = size * (rng.normal(size=n) + y), rng.integers(1, 4, size=n) / 2.0
    problem = Problem("squared_hinge", 2.0, intercept=kind)
    b = 0.0 if kind == "none" else size * float(rng.normal())
    length = size * float(rng.random())

    def value(t, other):
        return 0.5 * (t * length) ** 2 + float(problem.losses(y * (t * z + other), weights).sum())

    t, other = best_multiple_and_intercept(problem, length**2, z, b, y, weights)
    assert value(t, other) <= value(1.0, b) * (1.0 + 1e-12)
    if kind == "free":
        least = minimize(lambda x: value(x[0] / size, x[1]), [t * size, other], method="Nelder-Mead").fun
    else:
        assert other == pytest.approx(t * b)

        def of_multiple(x):
            positive = max(x[0] / size, 0.0)
            return value(positive, positive * b)

        least = minimize(of_multiple, [t * size], method="Nelder-Mead").fun
    if value(t, other) != value(1.0, b):  # if no positive multiple is better, the input is returned
        assert value(t, other) <= least + 1e-9 * max(least, 1.0)
