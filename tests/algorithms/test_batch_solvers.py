"""Every batch solver ends at the optimum; its points are feasible, its gaps are true, and an interrupt stops it."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from itertools import count, islice, product
from typing import NamedTuple

import numpy as np
import pytest
import scipy.sparse as sp
from effort import examples, thorough
from hypothesis import given, settings
from hypothesis import strategies as st
from memory import with_peak_memory
from oracle import optimum, optimum_in_norm
from problems import bounds_of, conditioned

from maxmargin import MaxMarginClassifier, Problem, Status
from maxmargin.algorithms.any_norm.barrier import path_points
from maxmargin.algorithms.any_norm.interior_point import norm_points
from maxmargin.algorithms.batch import generation, newton
from maxmargin.algorithms.batch.accelerated import accelerated_points
from maxmargin.algorithms.batch.decomposition import Settings as SetSettings
from maxmargin.algorithms.batch.decomposition import decomposed_points
from maxmargin.algorithms.batch.generation import column_points, linear_points, norm_solutions
from maxmargin.algorithms.batch.interior_point import interior_points
from maxmargin.algorithms.batch.kernel_rows import KernelRows
from maxmargin.algorithms.batch.newton import newton_points
from maxmargin.algorithms.batch.proximal_newton import Settings as ProximalSettings
from maxmargin.algorithms.batch.proximal_newton import proximal_newton_points
from maxmargin.algorithms.batch.proximal_point import proximal_points
from maxmargin.algorithms.batch.sifting import Settings, by_proximal_points, sifted_points
from maxmargin.algorithms.linear_algebra import centred_rows, systems
from maxmargin.algorithms.programs import by_norm_solutions
from maxmargin.kernels.functions import Linear
from maxmargin.problem.intercept import best_intercept

INTERCEPTS = ("free", "augmented", "none")
# samples small enough for the oracle, without the solution of all rows at once
SAMPLES = Settings(min_sample_rows=20, sample_rows_per_column=1, max_share=0.9, few_entries=0)
MASTERS = generation.Settings(
    whole_entries=0, all_rows=10, added_rows=6, added_columns=4, first_columns=8, mean_columns=3
)
COLUMNS = generation.Settings(all_columns=3, first_columns=2, added_columns=1)


def set_points(problem, X, y, weights, interrupted=lambda: False, size=2048):
    """Points of decomposition with the linear kernel."""
    rows = KernelRows(Linear(), X, 10.0)
    for alpha, scores in decomposed_points(
        problem, rows, y, weights, interrupted, settings=SetSettings(set_size=size)
    ):
        w, b = X.T @ (alpha * y), problem.rho**2 * (alpha @ y)
        yield w, best_intercept(problem, scores, y, weights) if problem.free else b, alpha


class Solver(NamedTuple):
    """A solver with the losses, costs, norms and powers of its problems, and the gap that it reaches."""

    points: Callable
    losses: tuple[str, ...]
    tol: float
    costs: tuple[float, ...] = (1e-3, 1.0, 1e3)
    norms: tuple[tuple[float, int], ...] = ((2.0, 2),)

    def problem(self, k: int) -> Problem:
        """Problem number k: combinations in turn."""
        p, power = self.norms[k % len(self.norms)]
        loss, C = self.losses[k % len(self.losses)], self.costs[(k // 2) % len(self.costs)]
        return Problem(loss, C, p=p, power=power, intercept=INTERCEPTS[k % 3], intercept_scaling=2.0)


BOTH = ("hinge", "squared_hinge")
ANY_NORM = ((np.inf, 2), (1.5, 1), (1.0, 2), (3.0, 2), (30.0, 1))
MORE_NORMS = (*ANY_NORM, (1.0, 1), (1.2, 2), (np.inf, 1), (2.0, 1))
SOLVERS = {
    "newton": Solver(newton_points, BOTH[1:], 1e-9),
    "newton, conjugate gradients": Solver(
        partial(newton_points, settings=newton.Settings(max_columns=0)), BOTH[1:], 1e-9
    ),
    "proximal newton": Solver(
        proximal_newton_points, BOTH[1:], 1e-9, (0.01, 1.0, 100.0), ((np.inf, 1), (np.inf, 2))
    ),
    "proximal newton, small sets": Solver(
        partial(proximal_newton_points, settings=ProximalSettings(added_columns=2)),
        BOTH[1:],
        1e-6,
        (0.01, 1.0, 100.0),
        ((np.inf, 1), (np.inf, 2)),
    ),
    "proximal points": Solver(proximal_points, BOTH[:1], 1e-9),
    "interior points": Solver(interior_points, BOTH, 1e-7),
    "sifting, interior": Solver(partial(sifted_points, settings=SAMPLES), BOTH[:1], 1e-7),
    "sifting, proximal": Solver(
        partial(sifted_points, solver=by_proximal_points, settings=SAMPLES), BOTH[:1], 1e-7
    ),
    "sifting, any norm": Solver(
        partial(sifted_points, solver=by_norm_solutions, settings=SAMPLES),
        BOTH[:1],
        1e-6,
        (0.01, 1.0, 100.0),
        ANY_NORM,
    ),
    "decomposition": Solver(set_points, BOTH, 1e-6, (0.1, 1.0, 100.0, np.inf)),
    "decomposition, small sets": Solver(partial(set_points, size=16), BOTH, 1e-3, (0.1, 1.0)),
    "linear programs": Solver(linear_points, BOTH[:1], 1e-6, (0.1, np.inf, 10.0), ((1.0, 1), (np.inf, 1))),
    "small masters": Solver(
        partial(linear_points, settings=MASTERS), BOTH[:1], 1e-6, (np.inf, 1.0), ((1.0, 1), (np.inf, 1))
    ),
    "accelerated": Solver(
        accelerated_points, BOTH[:1], 1e-3, (np.inf,), ((2.0, 2), (30.0, 1), (2.0, 1), (3.0, 2))
    ),
    "accelerated, exponents in turn": Solver(accelerated_points, BOTH[:1], 1e-2, (np.inf,), ((np.inf, 2),)),
    "barrier": Solver(path_points, BOTH, 1e-6, (0.01, 1.0, 100.0, np.inf), ANY_NORM),
    "interior points of any norm": Solver(norm_solutions, BOTH, 1e-6, (0.01, 1.0, 100.0, np.inf), MORE_NORMS),
    "columns": Solver(
        partial(column_points, settings=COLUMNS), BOTH, 1e-6, (0.01, 100.0), ((np.inf, 2), (np.inf, 1))
    ),
}
CONDITIONS = ("plain", "scales", "collinear", "far", "sparse", "float32", "separable", "rare", "copies")
# solvers without a scaling of columns
UNSCALED = {"decomposition", "decomposition, small sets"}


def feasible(problem, y, weights, point) -> None:
    """Check that a point is finite and its dual weights are within their caps, up to rounding."""
    w, b, alpha = point[:3]
    assert np.isfinite([*w, b, *alpha]).all()
    assert (alpha >= 0.0).all()
    assert (alpha <= problem.caps(weights) * (1.0 + 1e-12)).all()
    assert problem.intercept != "none" or b == 0.0


LINEAR = ("linear programs", "small masters")  # HiGHS has absolute tolerances
CASES = [
    (name, condition, k)
    for i, name in enumerate(SOLVERS)
    for k, condition in enumerate(
        ("mild scales" if name in LINEAR and c == "scales" else c for c in CONDITIONS), i
    )
    if not (name in UNSCALED and condition in ("scales", "collinear", "far"))
]


@thorough
@pytest.mark.parametrize(("name", "condition", "k"), CASES)
def test_points_are_feasible_and_end_at_the_optimum(name, condition, k):
    """Bounds are those of the definitions; the optimum is that of the oracle."""
    solver = SOLVERS[name]
    for turn in range(examples(1, 12)):
        problem = solver.problem(k + turn)
        separable = condition == "separable" or problem.hard
        d = (
            20 if name in ("small masters", "columns", "proximal newton, small sets") else 4
        )  # more than in the first master
        X, y, weights = conditioned("separable" if separable else condition, 60, d, k)
        stored = {"sparse": sp.csr_matrix, "float32": lambda X: X.astype(np.float32)}.get(
            condition, np.asarray
        )(X)
        single = 2.0**-24 if stored.dtype == np.float32 and name in UNSCALED else 0.0
        lower, upper, tol = 0.0, np.inf, solver.tol
        for point in islice(solver.points(problem, stored, y, weights), 3000):
            feasible(problem, y, weights, point)
            low, high = bounds_of(problem, X, y, weights, *point[:3])
            lower, upper = max(lower, low), min(upper, high)
            # Kernel values in single precision: an error of 2^-24 |K_ij| each changes a'Ka by at most 2^-24 a'|K|a, and
            # the score of row i, whose least value is |w|^2 / sum a at the optimum of a hard margin, by 2^-24 (|K|a)_i.
            if single:
                size = np.abs(X).T @ point[2]
                scale = point[0] @ point[0] / point[2].sum() if problem.hard else upper
                tol = max(tol, single * ((np.abs(X) @ size).max() if problem.hard else size @ size) / scale)
            if problem.gap(lower, upper) <= tol:
                break
        assert problem.gap(lower, upper) <= tol
        truth = (optimum if problem.p == 2.0 and problem.power == 2 else optimum_in_norm)(
            problem, X, y, weights
        )
        slack = 1e-11 * float(truth.upper) + float(truth.e)  # 60 eps, of sums 500 times as large
        assert lower <= float(truth.upper) + slack
        assert upper >= float(truth.lower) - slack


@pytest.mark.parametrize("name", SOLVERS)
@pytest.mark.parametrize("patience", [0, 3, 20])
def test_interrupt_stops_the_solver(name, patience):
    """After a few more polls, with a feasible last point; sifting has none before the last sample is solved."""
    X, y, weights = conditioned("plain", 300, 8, 1)
    polls = count()
    problem = SOLVERS[name].problem(4)
    found = list(SOLVERS[name].points(problem, X, y, weights, lambda: next(polls) >= patience))
    assert next(polls) <= patience + 40
    if found:
        feasible(problem, y, weights, found[-1])
    slow = ("sifting", "linear", "small", "barrier", "columns", "interior points of any norm")
    assert found or name.startswith(slow) or patience == 0


REPORTING = {
    name: solver
    for name, solver in SOLVERS.items()
    if name.split(",")[0] in ("newton", "sifting") or name in ("proximal points", "interior points")
}


@pytest.mark.parametrize("condition", ["plain", "scales", "rare"])
@pytest.mark.parametrize("name", REPORTING)
def test_reported_gaps_are_true(name, condition):
    """A point reported as near has a gap within the tolerance: up to 1e-9, at which rounding is a share of the gap."""
    for k in range(3):
        problem = REPORTING[name].problem(k)
        X, y, weights = conditioned(condition, 200, 4, 2)
        seen = []
        for tol in (1e-1, 1e-3, 1e-5):
            for point in REPORTING[name].points(problem, X, y, weights, tol=tol):
                gap = problem.gap(*bounds_of(problem, X, y, weights, *point[:3]))
                assert gap <= 3.0 * point.gap + 1e-9
                if point.near:
                    assert gap <= 1.01 * tol + 1e-9
                    seen.append(point.gap)
                    break
            else:
                pytest.fail("no point is reported as near")
        assert max(seen) <= 1e-1


@thorough
@settings(max_examples=examples(15, 400))
@given(
    st.integers(0, 10**6),
    st.sampled_from(["newton", "proximal points", "interior points"]),
    st.floats(-6.0, 6.0),
    st.floats(0.0, 3.0),
    st.floats(0.0, 6.0),
)
def test_bounds_close_for_extreme_scales(seed, name, log_C, columns, rows):
    """Columns, weights and C of many sizes, repeated rows and columns."""
    rng = np.random.default_rng(seed)
    n, d = int(rng.integers(2, 60)), int(rng.integers(1, 8))
    X = rng.normal(size=(n, d)) * 10.0 ** rng.uniform(-columns, columns, d)
    y = np.where(np.arange(n) % 2 == 0, 1.0, -1.0)
    if seed % 2:
        X[n // 2 :], X[:, -1] = X[: n - n // 2], X[:, 0]
    weights = 10.0 ** rng.uniform(-rows, rows, n)
    problem = Problem(SOLVERS[name].losses[-1], 10.0**log_C, intercept=INTERCEPTS[seed % 3])
    lower, upper = 0.0, np.inf
    for point in SOLVERS[name].points(problem, X, y, weights):
        feasible(problem, y, weights, point)
        low, high = bounds_of(problem, X, y, weights, *point[:3])
        lower, upper = max(lower, low), min(upper, high)
    # rounding errors of slacks in float64: an ulp of a margin, in dual variables C s times as large
    lost = (2.0 * problem.C * weights.max() * (X * X).sum(axis=1).max() + 1.0) * 1e-16
    assert lower <= upper * (1.0 + 1e-9)
    assert lost > 1e-4 or problem.gap(lower, upper) <= 1e-6


@pytest.mark.parametrize(
    ("name", "storage"), [("newton", "dense"), ("newton", "csr"), ("interior points", "dense")]
)
def test_peak_memory_is_below_half_of_the_data(name, storage):
    """Temporaries: a few vectors of n numbers, a sample, and chunks of rows of a megabyte."""
    X, y, weights = conditioned("plain", 30_000, 60, 0)
    stored, solver = (sp.csr_matrix(X) if storage == "csr" else X), SOLVERS[name]

    def first_points():
        return list(islice(solver.points(solver.problem(0), stored, y, weights), 2))

    first_points()  # code is compiled or loaded
    _, peak = with_peak_memory(first_points)
    assert peak < 0.5 * X.nbytes + 2 * centred_rows.CHUNK_BYTES


@pytest.mark.parametrize("algorithm", ["newton", "proximal-point", "interior-point"])
def test_estimator_is_certified_by_the_solver(algorithm, rules_alone):
    """Rows of uneven scales, sparse and dense."""
    X, y, weights = conditioned("plain", 200, 5, 4)
    loss = "squared_hinge" if algorithm == "newton" else "hinge"
    X = X * np.array([1e-3, 1.0, 30.0, 1e3, 1.0])
    for rows in (X, sp.csr_matrix(X)):
        model = MaxMarginClassifier(2.0, loss=loss, algorithm=algorithm, tol=1e-8).fit(rows, y, weights)
        assert model.status_ is Status.CERTIFIED
        assert {report.stage for report in model.history_} == {algorithm}
        truth = optimum(Problem(loss, 2.0), X, y, weights)
        assert model.certificate_.lower <= truth.upper
        assert model.certificate_.upper >= truth.lower


@pytest.mark.parametrize("p", [1.0, 1.2, 10.0, 100.0, np.inf])
def test_bounds_of_wide_data_meet_after_elimination_of_columns(monkeypatch, p):
    """Problems too large for the oracle."""
    monkeypatch.setattr(systems, "MIN_KEPT", 5)
    X, y, s = conditioned("plain", 12, 60, 0)
    for problem in (Problem("hinge", np.inf, p=p), Problem("squared_hinge", 1.0, p=p)):
        bounds = np.array(
            [bounds_of(problem, X, y, s, *point) for point in path_points(problem, sp.csr_matrix(X), y, s)]
        )
        assert problem.gap(bounds[:, 0].max(), bounds[:, 1].min()) <= 1e-6


@pytest.mark.parametrize("n", [1, 9, 40])
def test_systems_of_sparse_rows_in_any_order_of_entries_are_solved(n):
    """Entries unsorted, and some of them repeated; the rows are left as they are."""
    rng = np.random.default_rng(n)
    entries = sp.coo_array(
        (rng.normal(size=4 * n), (rng.integers(n, size=4 * n), rng.integers(15, size=4 * n)))
    )
    entries.resize((n, 15))
    order = np.argsort(entries.row, kind="stable")
    starts = np.searchsorted(entries.row[order], np.arange(n + 1))
    B = sp.csr_array((entries.data[order], entries.col[order], starts), shape=(n, 15))
    before, dense = (B.data.copy(), B.indices.copy()), entries.toarray()
    weight, diagonal, right = rng.uniform(0.1, 2.0, n), rng.uniform(0.1, 2.0, 15), rng.normal(size=15)
    exact = np.linalg.solve(np.diag(diagonal) + dense.T @ np.diag(weight) @ dense, right)
    for solver in (systems.solver, systems.woodbury_solver):
        np.testing.assert_allclose(solver(B, weight, diagonal)(right), exact, rtol=1e-9)
    np.testing.assert_array_equal((B.data, B.indices), before)


@pytest.mark.parametrize("p", [1.0, 1.1, 1.5, 2.0, 3.0, 10.0, np.inf])
@pytest.mark.parametrize("shape", [(12, 200), (200, 12)])
def test_interior_points_converge_in_few_steps_for_every_norm(p, shape):
    """Hard, and both losses and powers with C from small to large."""
    X, y, s = conditioned("separable", *shape, 0)
    kinds = [(loss, C, power) for loss in BOTH for C in (0.01, 1.0, 100.0) for power in (1, 2)]
    for loss, C, power in [("hinge", np.inf, 2), *kinds]:
        problem = Problem(loss, C, p=p, power=power, intercept="free")
        lower, upper = 0.0, np.inf
        for point in islice(norm_points(problem, X, y, s), 80):
            feasible(problem, y, s, point)
            low, high = bounds_of(problem, X, y, s, *point)
            lower, upper = max(lower, low), min(upper, high)
            if problem.gap(lower, upper) <= 1e-6:
                break
        assert problem.gap(lower, upper) <= 1e-6


@pytest.mark.parametrize("p", [1.0, 1.5, 3.0, np.inf])
@pytest.mark.parametrize("kind", ["equal means", "zeros", "huge", "tiny", "one column"])
def test_interior_points_of_degenerate_rows_end_without_error(p, kind):
    X, y, s = conditioned("plain", 20, 3, 1)
    corners = np.array([[1.0, 1.0], [-1.0, -1.0], [1.0, -1.0], [-1.0, 1.0]])
    X, y, s = {
        "equal means": (corners, np.array([1.0, 1.0, -1.0, -1.0]), np.ones(4)),
        "zeros": (np.zeros((20, 3)), y, s),
        "huge": (X * 1e160, y, s),
        "tiny": (X * 1e-170, y, s),
        "one column": (X[:, :1], y, s),
    }[kind]
    for loss, C, power in [("hinge", np.inf, 2), *((loss, 1.0, power) for loss in BOTH for power in (1, 2))]:
        problem = Problem(loss, C, p=p, power=power, intercept="free")
        for point in norm_points(problem, X, y, s):
            feasible(problem, y, s, point)


@pytest.mark.parametrize("shape", [(12, 200), (200, 12)])
def test_interior_points_at_two_converge_for_every_cost(shape):
    X, y, s = conditioned("separable", *shape, 0)
    for loss, C in product(BOTH, (0.01, 1.0, 100.0)):
        problem = Problem(loss, C, intercept="free")
        with np.errstate(over="ignore"):  # as in a fit: steps at the optimum divide by numbers near 0
            points = list(interior_points(problem, X, y, s))
        bounds = np.array([bounds_of(problem, X, y, s, *point[:3]) for point in points])
        assert problem.gap(bounds[:, 0].max(), bounds[:, 1].min()) <= 1e-6
