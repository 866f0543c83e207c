"""Every solver on small data without compilation, and large ones where their methods begin: bounds hold, and verify."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
import scipy.sparse as sp
from clouds import assert_optimum_is_bracketed, clouds
from effort import interpreted
from sklearn.datasets import load_wine

from maxmargin import KernelMaxMarginClassifier, MaxMarginClassifier, Problem, Status, separate, verify
from maxmargin.algorithms import ALGORITHMS, DualCoordinateDescent

STORES = {"dense": np.asarray, "csr": sp.csr_matrix}
PROBLEMS = [
    {"loss": loss, "C": C, "p": p, "intercept": intercept}
    for loss, C, p, intercept in product(
        ("hinge", "squared_hinge"), (1.0, np.inf), (2.0, 1.5, 3.0, np.inf, 1.0), ("free", "augmented")
    )
]


@interpreted
@pytest.mark.parametrize("store", STORES)
@pytest.mark.parametrize("name", ALGORITHMS)
def test_warm_and_cold_fits_by_name_bracket_the_optimum(name, store):
    """At two problems that the algorithm solves, the second fit from the first one's point at another C."""
    solved = [one for one in PROBLEMS if ALGORITHMS[name]().refuses(Problem(**one)) is None]
    for parameters in (solved[0], solved[-1]):
        X, y = clouds(40, 4, gap=0.4 if parameters["C"] < np.inf else 3.0)
        X = STORES[store](X)
        scaling = 1.0 if parameters["intercept"] == "augmented" else None
        problem = {key: value for key, value in parameters.items() if key != "intercept"}
        model = MaxMarginClassifier(
            algorithm=name, warm_start=True, max_iter=10, random_state=0, intercept_scaling=scaling, **problem
        )
        for C in (parameters["C"], 1.5 * parameters["C"]):
            model.set_params(C=C).fit(X, y)
            if parameters["p"] == 2.0:
                assert_optimum_is_bracketed(model, X, y)
            assert verify(model, X, y).gap <= 1.1 * model.certificate_.gap + 1e-8
            assert (model.certificate_.gap <= model.tol) == (model.status_ is Status.CERTIFIED)


@interpreted
@pytest.mark.parametrize("store", STORES)
@pytest.mark.parametrize(
    ("loss", "p", "power", "C"),
    [
        *product(("hinge", "squared_hinge"), (2.0, np.inf, 1.0), (2,), (0.1, 100.0)),
        *product(("hinge", "squared_hinge"), (1.02, 1.5, 30.0), (1, 2), (1.0,)),
        *(("hinge", p, 2, np.inf) for p in (1.02, 2.0, 30.0)),
    ],
)
def test_default_fits_are_certified(loss, p, power, C, store):
    X, y = clouds(150, 12, gap=0.3 if np.inf > C else 3.0)
    X = STORES[store](np.where(np.abs(X) > 0.5, X, 0.0))
    model = MaxMarginClassifier(C, loss=loss, p=p, norm_power=power if np.inf > C else 2).fit(X, y)
    assert model.status_ is Status.CERTIFIED
    assert verify(model, X, y).gap <= 1.1e-3


def test_many_rows_of_the_hinge_are_certified_from_samples():
    X, y = clouds(110_000, 3, gap=0.3)
    model = MaxMarginClassifier(loss="hinge", max_time=60).fit(X, y)
    assert model.status_ is Status.CERTIFIED
    rows = np.random.default_rng(0).choice(110_000, 200, replace=False)
    part = MaxMarginClassifier(loss="hinge").fit(
        X[rows], y[rows]
    )  # a part of the rows has a smaller objective
    assert part.certificate_.lower <= model.certificate_.upper
    verify(model, X, y)


@pytest.mark.parametrize("gap", [0.2, 8.0])
def test_many_rows_are_separated_or_proved_inseparable(gap):
    X, y = clouds(60_000, 5, gap=gap)
    verdict = separate(X, y, max_time=60)
    assert verdict.separable is (gap > 1.0)
    verdict.verify(X, y)


@interpreted
@pytest.mark.parametrize("loss", ["hinge", "squared_hinge"])
def test_kernel_fits_with_few_cached_rows_and_rows_of_weight_zero(loss):
    """Equal to those of the rows of positive weight with all kernel rows in memory."""
    X, y = clouds(130, 4, gap=0.3)
    weights = np.where(np.arange(130) % 5 == 0, 0.0, 1.0)
    used = weights > 0.0
    for kernel in ("rbf", "linear"):
        options = {"loss": loss, "kernel": kernel, "tol": 1e-4, "gamma": 0.3}
        few = KernelMaxMarginClassifier(cache_size=0.02, **options).fit(X, y, weights)
        whole = KernelMaxMarginClassifier(**options).fit(X[used], y[used])
        assert few.status_ is whole.status_ is Status.CERTIFIED
        assert few.certificate_.lower <= whole.certificate_.upper
        assert whole.certificate_.lower <= few.certificate_.upper
        verify(few, X, y, weights)


@pytest.mark.parametrize("algorithm", [DualCoordinateDescent(), DualCoordinateDescent("shrinking")], ids=str)
def test_passes_over_many_rows_are_divided_into_calls(algorithm):
    X, y = clouds(130_000, 3, gap=6.0)
    model = MaxMarginClassifier(algorithm=algorithm, max_iter=3, random_state=0).fit(X, y)
    assert verify(model, X, y).upper <= model.certificate_.upper * (1.0 + 1e-9)
    assert model.score(X, y) == 1.0


@pytest.mark.parametrize("algorithm", ["auto", "perceptron"])
def test_kernel_rows_that_do_not_fit_are_replaced(algorithm):
    X, y = clouds(1300, 3, gap=0.1 if algorithm == "auto" else 3.0)
    options = {"C": 0.1 if algorithm == "auto" else np.inf, "gamma": 0.3, "algorithm": algorithm}
    few, whole = (KernelMaxMarginClassifier(cache_size=size, **options).fit(X, y) for size in (0.01, 200.0))
    assert few.status_ is whole.status_
    assert few.certificate_.lower <= whole.certificate_.upper
    assert whole.certificate_.lower <= few.certificate_.upper


@pytest.mark.parametrize("p", [1.02, 10.0])
def test_raw_columns_in_every_norm_are_certified_by_interior_points(p):
    X, y = load_wine(return_X_y=True)
    for loss in ("hinge", "squared_hinge"):
        model = MaxMarginClassifier(loss=loss, p=p, algorithm="interior-point").fit(X, y > 0)
        assert model.status_ is Status.CERTIFIED
