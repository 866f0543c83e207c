"""Runs of algorithms by themselves: the table, the record and its bounds, from their definitions."""

from __future__ import annotations

from itertools import cycle

import numpy as np
import pytest
from clouds import clouds, signs
from effort import interpreted
from problems import rings
from sklearn.metrics.pairwise import rbf_kernel

from maxmargin import Status
from maxmargin.algorithms import ALGORITHMS, MPU, Perceptron


@interpreted
@pytest.mark.parametrize(
    ("name", "options"),
    [
        ("dcd", {"C": 1.0, "loss": "hinge"}),
        ("mpu", {"C": 1.0, "loss": "hinge"}),
        ("perceptron", {"intercept": "augmented"}),
        ("pumma", {"C": 2.0, "p": 3.0}),
        ("ima", {"p": 3.0}),
    ],
)
def test_rows_of_the_table_are_those_of_the_iterates(name, options):
    """Every row is the last one of a shorter run, and its value follows from (w, b)."""
    X, y = clouds(40, 3, gap=0.4)
    X = X + 0.8 * signs(y)[:, None] * ("C" not in options)
    algorithm = ALGORITHMS[name]() if name == "ima" else ALGORITHMS[name](schedule="plain")
    whole = algorithm.run(X, y, max_epochs=12, random_state=0, **options)
    problem = whole.problem
    bound = [row.upper if problem.hard else row.lower for row in whole.table]
    assert bound == (np.minimum if problem.hard else np.maximum).accumulate(bound).tolist()
    for rows in (3, len(whole.table)):
        run = algorithm.run(X, y, max_epochs=whole.table[rows - 1].epochs, random_state=0, **options)
        assert len(run.table) == rows
        assert run.n_updates == run.table[-1].updates == whole.table[rows - 1].updates
        assert run.n_epochs == rows or name == "ima"
        scale = 1.0 / (run.parameters["unit"] or np.nan)
        margins, length = signs(y) * (X @ run.w + run.b), np.linalg.norm(run.w, problem.q)
        if problem.intercept == "augmented":
            length = np.hypot(length, run.b)
        if problem.hard:
            assert run.margin == pytest.approx(margins.min() / length, rel=1e-9)
            assert run.objective == pytest.approx(0.5 / run.margin**2 if run.margin > 0.0 else np.inf)
        elif np.isfinite(scale):
            losses = np.maximum(1.0 - scale * margins, 0.0).sum()
            assert run.objective == pytest.approx(0.5 * (scale * length) ** 2 + problem.C * losses, rel=1e-9)
        value = whole.table[rows - 1].margin if problem.hard else whole.table[rows - 1].objective
        assert (run.lower if problem.hard else run.upper) == pytest.approx(value, rel=1e-9)
        assert run.lower <= run.upper


@interpreted
@pytest.mark.parametrize("C", [np.inf, 3.0])
@pytest.mark.parametrize("intercept", ["none", "augmented"])
def test_a_kernel_perceptron_makes_the_updates_of_the_paper(C, intercept):
    """Update by update; the squared hinge is a hard margin of patterns with slack coordinates."""
    (X, y, _), b = rings(60, 1), 3.0
    K = rbf_kernel(X, gamma=2.0)
    G = K + float(intercept == "augmented") + np.eye(60) * (0.5 / C)
    for epochs in (1, 2):
        run = Perceptron(b=b, shuffle=False).run(
            K, y, C, kernel="precomputed", intercept=intercept, max_epochs=epochs
        )
        alpha, left = np.zeros(60), run.n_updates
        for i in cycle(range(60)):
            if not left:
                break
            if y[i] * (G[i] @ (alpha * y)) <= b * G.diagonal().max():
                alpha[i], left = alpha[i] + 1.0, left - 1
        assert run.alpha.tolist() == alpha.tolist()
        assert run.w is None
        assert pytest.approx(G.diagonal().max() ** 0.5, rel=1e-12) == run.R
        if np.isinf(C):
            f = y * (K @ (alpha * y) + run.b)
            length = np.sqrt(alpha * y @ K @ (alpha * y) + run.b**2 * (intercept == "augmented"))
            assert run.margin == pytest.approx(f.min() / length, rel=1e-9)


@interpreted
@pytest.mark.parametrize("kernel", [None, "linear"])
def test_an_iterate_that_does_not_separate_is_not_replaced(kernel):
    X, y = clouds(40, 3, gap=0.4)
    run = ALGORITHMS["cramma"](eta=1e-5).run(
        X + 3.0 * signs(y)[:, None], y, kernel=kernel, intercept="free", max_epochs=3
    )
    assert run.status is Status.MAX_ITER
    assert run.margin < 0.0
    assert run.lower == pytest.approx(run.margin, rel=1e-9)
    assert run.upper > 0.0


def test_a_run_ends_at_its_tolerance_or_by_its_callback_and_refuses_what_it_does_not_solve():
    X, y = clouds(40, 3, gap=0.4)
    run = MPU().run(X, y, 1.0, tol=1e-3, random_state=0)
    assert run.status is Status.CERTIFIED
    assert run.upper <= (1.0 + 1e-3) * run.lower
    seen = []
    ended = MPU().run(X, y, 1.0, random_state=0, callback=lambda row: seen.append(row) or len(seen) == 2)
    assert (ended.status, ended.table) == (Status.INTERRUPTED, seen)
    weighted = MPU().run(X, y, 1.0, loss="hinge", tol=1e-9, sample_weight=np.arange(40.0) % 3)
    assert not weighted.alpha[::3].any()
    with pytest.raises(ValueError, match="two classes; got 3"):
        MPU().run(X, np.arange(40) % 3)
    with pytest.raises(ValueError, match='pegasos does not solve this problem: use loss="hinge"'):
        ALGORITHMS["pegasos"]().run(X, y)
