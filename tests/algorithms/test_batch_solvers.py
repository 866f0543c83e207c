"""Batch solvers by their names: certified, with the independent optimum between the bounds, and stopped when asked."""

from __future__ import annotations

from itertools import product
from typing import Any, NamedTuple

import numpy as np
import pytest
import scipy.sparse as sp
from effort import examples, interpreted, thorough
from hypothesis import given, settings
from hypothesis import strategies as st
from memory import with_peak_memory
from oracle import optimum, optimum_in_norm
from problems import conditioned, rings

from maxmargin import KernelMaxMarginClassifier, MaxMarginClassifier, Problem, Status, verify

INF = np.inf
INTERCEPTS = ("free", "augmented", "none")
BOTH = ("hinge", "squared_hinge")
ANY_NORM = (
    (INF, 2),
    (1.5, 1),
    (1.0, 2),
    (3.0, 2),
    (30.0, 1),
    (1.0, 1),
    (1.2, 2),
    (INF, 1),
    (2.0, 1),
    (2.0, 2),
)
CONDITIONS = ("plain", "scales", "collinear", "far", "sparse", "float32", "separable", "rare", "copies")
WITHOUT_SCALING = ("scales", "collinear", "far")  # conditions for which a solver has to scale columns


class Solver(NamedTuple):
    """A solver with the losses, costs, norms and powers of its problems, and the gap that it is asked for."""

    losses: tuple[str, ...]
    tol: float
    costs: tuple[float, ...] = (1e-3, 1.0, 1e3)
    norms: tuple[tuple[float, int], ...] = ((2.0, 2),)

    def problem(self, k: int) -> Problem:
        """Problem number k: combinations in turn."""
        p, power = self.norms[k % len(self.norms)]
        loss, C = self.losses[k % len(self.losses)], self.costs[(k // 2) % len(self.costs)]
        return Problem(loss, C, p=p, power=power, intercept=INTERCEPTS[k % 3], intercept_scaling=2.0)


SOLVERS = {
    "newton": Solver(BOTH[1:], 1e-8),
    "proximal-point": Solver(BOTH[:1], 1e-8),
    "interior-point": Solver(BOTH, 1e-6, (0.01, 1.0, 100.0, INF), ANY_NORM),
    "proximal-newton": Solver(BOTH[1:], 1e-6, (0.01, 1.0, 100.0), ((INF, 1), (INF, 2))),
    "lp": Solver(BOTH[:1], 1e-6, (0.1, INF, 10.0), ((1.0, 1), (INF, 1))),
    "kernel": Solver(BOTH, 1e-4, (0.1, 1.0, 100.0, INF)),
}
CASES = [
    (name, condition, k)
    for i, name in enumerate(SOLVERS)
    for k, condition in enumerate(CONDITIONS, i)
    if not (name == "kernel" and condition in WITHOUT_SCALING)
]


def model_of(name: str, problem: Problem, tol: float, **options) -> Any:
    """The estimator of a problem with this solver; "kernel" stands for decomposition with the linear kernel."""
    options |= {"C": problem.C, "tol": tol, "loss": problem.loss, "random_state": 0}
    options |= {"fit_intercept": problem.intercept != "none"}
    options["intercept_scaling"] = problem.intercept_scaling if problem.intercept == "augmented" else None
    if name == "kernel":
        return KernelMaxMarginClassifier(kernel="linear", **options)
    return MaxMarginClassifier(p=problem.p, norm_power=problem.power, algorithm=name, **options)


@interpreted
@thorough
@pytest.mark.parametrize(("name", "condition", "k"), CASES)
def test_fits_are_certified_and_contain_the_optimum(name, condition, k):
    solver = SOLVERS[name]
    for turn in range(examples(1, 12)):
        problem = solver.problem(k + turn)
        condition = "separable" if problem.hard else "mild scales" if condition == "scales" else condition
        X, y, weights = conditioned(condition, 60, 4 if turn % 2 == 0 else 20, k)
        stored = {"sparse": sp.csr_matrix, "float32": lambda X: X.astype(np.float32)}.get(
            condition, np.asarray
        )(X)
        model = model_of(name, problem, solver.tol).fit(stored, y, weights)
        assert model.status_ is Status.CERTIFIED
        proved = verify(model, stored, y, weights)
        assert proved.gap <= solver.tol * 1.001
        truth = (optimum if problem.p == 2.0 and problem.power == 2 else optimum_in_norm)(
            problem, X, y, weights
        )
        slack = 1e-11 * float(truth.upper)
        slack += 1e-6 * float(truth.upper) * (name == "kernel")  # kernel values of float32 rows are rounded
        assert proved.lower <= float(truth.upper) + slack
        assert proved.upper >= float(truth.lower) - slack


@interpreted
@pytest.mark.parametrize("name", SOLVERS)
def test_a_callback_stops_the_solver_with_a_valid_certificate(name):
    X, y, weights = conditioned("separable", 300, 8, 1)
    problem = SOLVERS[name].problem(4)
    model = model_of(name, problem, 1e-12, callback=lambda report: True).fit(X, y, weights)
    assert model.status_ in (
        Status.INTERRUPTED,
        Status.CERTIFIED,
        Status.STALLED,
    )  # the last: gaps of rounding
    assert model.n_iter_ <= 1
    assert verify(model, X, y, weights).lower <= model.certificate_.upper * (1.0 + 1e-9)


@settings(max_examples=60)
@given(
    seed=st.integers(0, 10**6),
    name=st.sampled_from(("newton", "proximal-point", "interior-point")),
    log_C=st.integers(-6, 6),
    columns=st.sampled_from((0.0, 3.0)),
    rows=st.sampled_from((0.0, 3.0)),
)
def test_bounds_close_for_uneven_scales(seed, name, log_C, columns, rows):
    """Columns, weights and C of many sizes, repeated rows and columns."""
    rng = np.random.default_rng(seed)
    n, d = int(rng.integers(2, 60)), int(rng.integers(1, 8))
    X = rng.normal(size=(n, d)) * 10.0 ** rng.uniform(-columns, columns, d)
    y = np.where(np.arange(n) % 2 == 0, 1.0, -1.0)
    if seed % 2:
        X[n // 2 :], X[:, -1] = X[: n - n // 2], X[:, 0]
    weights = 10.0 ** rng.uniform(-rows, rows, n)
    problem = Problem(SOLVERS[name].losses[-1], 10.0**log_C, intercept=INTERCEPTS[seed % 3])
    model = model_of(name, problem, 1e-4).fit(X, y, weights)
    lost = (2.0 * problem.C * weights.max() * (X * X).sum(axis=1).max() + 1.0) * 1e-16  # an ulp of a margin
    assert lost > 1e-6 or model.status_ is Status.CERTIFIED
    assert verify(model, X, y, weights).lower <= model.certificate_.upper * (1.0 + 1e-9)


@pytest.mark.parametrize(
    ("name", "storage"), [("newton", "dense"), ("newton", "csr"), ("proximal-point", "dense")]
)
def test_peak_memory_is_a_share_of_the_data(name, storage):
    """Temporaries: a few vectors of n numbers, a sample, and chunks of rows of a megabyte."""
    X, y, _ = conditioned("plain", 60_000, 60, 0)
    stored = sp.csr_matrix(X) if storage == "csr" else X
    model = model_of(name, SOLVERS[name].problem(0), 1e-2, max_iter=2)
    model.fit(stored, y)  # code is compiled or loaded
    _, peak = with_peak_memory(lambda: model.fit(stored, y))
    assert peak < (1.2 if storage == "csr" else 0.5) * X.nbytes + 2**22


@pytest.mark.parametrize("p", [1.0, 1.1, 1.5, 2.0, 3.0, 10.0, INF])
@pytest.mark.parametrize("shape", [(12, 200), (200, 12)])
def test_interior_points_converge_in_few_steps_for_every_norm(p, shape):
    """Hard, and both losses and powers with C from small to large."""
    X, y, weights = conditioned("separable", *shape, 0)
    kinds, steps = [(loss, C, power) for loss in BOTH for C in (0.01, 100.0) for power in (1, 2)], 0
    for loss, C, power in [("hinge", INF, 2), *kinds]:
        problem = Problem(loss, C, p=p, power=power, intercept="free")
        model = model_of("interior-point", problem, 1e-6).fit(sp.csr_matrix(X), y, weights)
        assert model.status_ is Status.CERTIFIED
        steps += model.n_iter_
    assert steps <= 65  # seven a fit; without second-order corrections up to 70


@pytest.mark.parametrize("C", [0.01, 100.0])
@pytest.mark.parametrize("loss", BOTH)
def test_interior_points_at_two_converge_beyond_the_exact_stage(loss, C):
    X, y, weights = conditioned("plain", 2500, 120, 1)
    model = model_of("interior-point", Problem(loss, C, intercept="free"), 1e-6).fit(X, y, weights)
    assert model.status_ is Status.CERTIFIED
    assert {report.stage for report in model.history_} == {"interior-point"}
    assert model.n_iter_ <= 12  # gaps of points fall at least to a quarter, from 4


@pytest.mark.parametrize("p", [1.0, INF])
def test_linear_programs_of_many_rows_or_columns_are_certified_from_some_of_them(p):
    """More entries than are solved in one program; weights of both signs."""
    for n, d in ((80, 1500), (3000, 30)):
        X, y, weights = conditioned("separable", n, d, 0)
        for C in (INF, 1.0):
            problem = Problem("hinge", C, p=p, power=2 if C == INF else 1, intercept="free")
            model = model_of("lp", problem, 1e-6).fit(X, y, weights)
            assert model.status_ is Status.CERTIFIED
            assert {report.stage for report in model.history_} == {"lp"}
            assert (model.coef_ > 0.0).any()
            assert (model.coef_ < 0.0).any()
            assert verify(model, X, y, weights).gap <= 1e-6


def test_newton_solves_many_rows_from_a_sample_and_wide_rows_by_conjugate_gradients():
    """More rows than the exact stage solves; the result is the same for copies of rows as for weights."""
    X, y, weights = conditioned("plain", 21_000, 6, 3)
    problem = Problem("squared_hinge", 1.0, intercept="free")
    whole = model_of("newton", problem, 1e-9).fit(X, y, 2.0 * weights)
    copies = np.repeat(np.arange(len(y)), (2.0 * weights).astype(int))
    copied = model_of("newton", problem, 1e-9).fit(X[copies], y[copies])
    assert whole.status_ is copied.status_ is Status.CERTIFIED
    assert whole.history_[0].stage == "newton"
    assert copied.coef_ == pytest.approx(whole.coef_, rel=1e-4)
    X, y, _ = conditioned("sparse", 80, 1500, 0)
    for C in (0.01, 10.0):
        model = model_of("newton", Problem("squared_hinge", C, intercept="free"), 1e-8)
        assert model.fit(sp.csr_matrix(X), y).status_ is Status.CERTIFIED


def test_point_start_and_warm_starts_spare_steps():
    X, y, weights = conditioned("plain", 3000, 120, 1)
    for name in ("newton", "proximal-point"):
        model = model_of(name, SOLVERS[name].problem(2), 1e-6, warm_start=True).fit(X, y, weights)
        first, steps = model.certificate_, model.n_iter_
        model.fit(X, y, weights)
        assert model.status_ is Status.CERTIFIED
        assert model.n_iter_ <= steps
        assert model.certificate_.lower <= first.upper * (1.0 + 1e-12)
        assert first.lower <= model.certificate_.upper * (1.0 + 1e-12)


# decomposition


@pytest.mark.parametrize(("loss", "C"), [*product(BOTH, (0.1, 10.0)), ("hinge", INF)])
@pytest.mark.parametrize("megabytes", [0.1, 100.0])
def test_bounds_of_kernel_fits_contain_the_optimum_with_any_cache(loss, C, megabytes):
    """The matrix as a precomputed kernel gives the optimum to compare with."""
    X, y, weights = rings(700, 17, noise=0.0 if C == INF else 0.3)
    K = np.exp(-0.5 * ((X[:, None] - X[None]) ** 2).sum(axis=2))
    exact = KernelMaxMarginClassifier(C, loss=loss, kernel="precomputed", tol=1e-5).fit(K, y, weights)
    model = KernelMaxMarginClassifier(C, loss=loss, gamma=0.5, tol=1e-3, cache_size=megabytes)
    model.fit(X, y, weights)
    assert model.status_ is exact.status_ is Status.CERTIFIED
    assert model.certificate_.lower <= exact.certificate_.upper * (1.0 + 1e-9)
    assert exact.certificate_.lower <= model.certificate_.upper * (1.0 + 1e-9)
    assert verify(model, X, y, weights).gap <= 1e-3


def test_rows_of_weight_zero_take_no_part_in_kernel_fits():
    X, y, weights = rings(300, 9)
    weights[::3] = 0.0
    used = weights > 0.0
    model = KernelMaxMarginClassifier(1.0, gamma=0.5, tol=1e-6).fit(X, y, weights)
    alone = KernelMaxMarginClassifier(1.0, gamma=0.5, tol=1e-6).fit(X[used], y[used], weights[used])
    assert used[model.support_].all()
    assert model.decision_function(X) == pytest.approx(alone.decision_function(X), abs=1e-2)


@pytest.mark.parametrize("fit_intercept", [True, False])
def test_contradictory_zero_rows_have_no_margin_in_kernel_fits(fit_intercept):
    X, y = np.vstack([np.zeros((2, 2)), np.eye(2)]), np.array([1, -1, 1, -1])
    model = KernelMaxMarginClassifier(INF, kernel="linear", fit_intercept=fit_intercept).fit(X, y)
    assert model.status_ is Status.INSEPARABLE
    assert verify(model, X, y).upper <= 1e-12
