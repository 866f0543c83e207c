"""Schedules: fits by rules end, do not depend on the seed without shuffling, and are stopped within their rounds."""

from __future__ import annotations

import time

import numpy as np
import pytest
import scipy.sparse as sp
from effort import interpreted
from problems import conditioned

from maxmargin import MaxMarginClassifier, Problem, Status
from maxmargin.algorithms import ALGORITHMS, Bias

HARD = Problem("squared_hinge", np.inf)
EUCLIDEAN = [name for name in ALGORITHMS if ALGORITHMS[name]().refuses(HARD) is None]
SCHEDULED = [(name, schedule) for name in EUCLIDEAN for schedule in ALGORITHMS[name].schedules]
SHUFFLED = [pair for pair in SCHEDULED if "shuffle" in ALGORITHMS[pair[0]].__dataclass_fields__]
SETTINGS = {"cramma": {"eta": 0.05}, "micra": {"eta": 0.5}, "fixed-margin": {"beta": 0.02, "eta": 0.05}}


def separated(seed: int, n: int = 30, d: int = 4, gap: float = 1.5) -> tuple[np.ndarray, np.ndarray]:
    """Rows of two separable classes."""
    rng = np.random.default_rng(seed)
    y = np.where(rng.random(n) < 0.5, 1.0, -1.0)
    y[:2] = 1.0, -1.0
    X = rng.normal(size=(n, d))
    X[:, 0] = y * (gap + np.abs(X[:, 0]))
    return X, y


def ran(name: str, X, y, seed=0, **options):
    """A run of an algorithm by itself to a hard margin, with its kind of intercept."""
    cls = ALGORITHMS[name]
    known = {key: value for key, value in SETTINGS.get(name, {}).items() if hasattr(cls(), key)}
    rule = cls(**known | {key: options.pop(key) for key in ("schedule", "shuffle") if key in options})
    intercept = "free" if cls.bias is Bias.OWN else "augmented"
    return rule.run(X, y, intercept=intercept, random_state=seed, record=None, **options)


@interpreted
@pytest.mark.parametrize(("name", "schedule"), SCHEDULED)
def test_rules_end_with_a_separator_in_every_schedule(name, schedule):
    X, y = separated(3)
    run = ran(name, X, y, schedule=schedule, max_epochs=10**5, tol=1e-3)
    assert run.status in (Status.CONVERGED, Status.CERTIFIED, Status.MAX_ITER)
    margins = y * (X @ run.w + run.b)
    assert margins.min() > 0.0
    length = np.hypot(np.linalg.norm(run.w), run.b * (run.problem.intercept == "augmented"))
    assert 0.0 < run.lower <= run.upper
    assert run.lower == pytest.approx(margins.min() / length, rel=1e-9)


@interpreted
@pytest.mark.parametrize(("name", "schedule"), SHUFFLED)
def test_results_without_shuffling_do_not_depend_on_the_seed(name, schedule):
    X, y = separated(5)

    def result(seed, shuffle):
        run = ran(name, X, y, seed, schedule=schedule, shuffle=shuffle, max_epochs=20)
        return run.n_updates, run.w.tobytes(), run.b, run.alpha.tobytes()

    assert len({result(seed, False) for seed in (0, 1, None)}) == 1
    assert result(3, True) == result(3, True)


@interpreted
@pytest.mark.parametrize("loss", ["hinge", "squared_hinge"])
def test_eps_ends_at_a_pass_with_small_projected_gradients(loss):
    """The stopping criterion of LIBLINEAR, at the last iterate: a smaller eps takes more visits."""
    X, y = separated(7, n=60, gap=-0.5)
    visits = []
    for eps in (0.3, 0.01, 1e-4):
        rule = ALGORITHMS["dcd"](schedule="shrinking", eps=eps)
        run = rule.run(X, y, 0.6, loss=loss, random_state=0)
        assert run.status is Status.CONVERGED
        alpha = run.alpha
        gradient = y * (X @ run.w) - 1.0 + (alpha / 1.2 if loss == "squared_hinge" else 0.0)
        cap = 0.6 if loss == "hinge" else np.inf
        projected = np.where(alpha <= 0.0, np.minimum(gradient, 0.0), gradient)
        projected = np.where(alpha >= cap * (1.0 - 1e-9), np.maximum(gradient, 0.0), projected)
        assert np.abs(projected).max() <= 2.0 * eps + 1e-3  # w changes within the last pass
        visits.append(run.table[-1].visits)
    assert visits[0] < min(visits[1:])


@interpreted
@pytest.mark.parametrize(
    "name", ["perceptron", "mpu", "dcd", "fmp", "ima", "flexible-ima", "smoothed-perceptron"]
)
def test_max_time_ends_a_rule_that_does_not_converge(name):
    """Long before its rounds are over; the bound is generous for slow machines and compilation."""
    X, y, _ = conditioned("plain", 4000, 20, 0)
    C = 1.0 if ALGORITHMS[name]().refuses(HARD) else np.inf
    options = {"C": C, "algorithm": name, "tol": 1e-14, "random_state": 0, "max_iter": 10**9}
    MaxMarginClassifier(**options | {"max_iter": 1}).fit(sp.csr_matrix(X), y)  # code is compiled or loaded
    begin = time.perf_counter()
    model = MaxMarginClassifier(**options, max_time=0.1).fit(sp.csr_matrix(X), y)
    assert time.perf_counter() - begin < 10.0
    assert model.status_ in (Status.MAX_TIME, Status.INSEPARABLE, Status.STALLED, Status.CONVERGED)
    assert np.isfinite(model.coef_).all()
