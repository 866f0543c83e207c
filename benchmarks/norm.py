"""Norms other than p = 2: soft margins in nine norms, beside three peers, and the largest margin in the inf-norm.

`python -m benchmarks.norm [--parts norms norm_peers inf_norm] [--sets NAME ...] [--write]`.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator, Sequence
from functools import partial
from itertools import product
from typing import Any

import numpy as np
import scipy.sparse as sp
from scipy.optimize import linprog
from sklearn.svm import LinearSVC

from maxmargin import MaxMarginClassifier

from .datasets import NORM_SETS, Rows, most_frequent
from .hardset.quadratic import by_clarabel, clarabel, stated
from .measure import Problem, compare, dual, ours, timed
from .results import Row, main

LOSSES, POWERS, COSTS = ("hinge", "squared_hinge"), (2, 1), (0.01, 1.0, 100.0)
TOL = 1e-3

# soft margins in nine norms

NORMS: tuple[Any, ...] = (1, 1.2, 1.5, 1.8, 2, 3, 10, "log", np.inf)
# A fit may take this many times as long as at p = 2 (with norm_power=2, the same loss and C), or MIN_SECONDS.
TIMES, MIN_SECONDS, MAX_SECONDS = 20.0, 2.0, 60.0


def norms(sets: Sequence[str] | None) -> Iterator[Row]:
    """Default fits in every norm, with a time limit that depends on the time at p = 2."""
    for name in sets or NORM_SETS:
        X, y = most_frequent(name)
        for loss, C in product(LOSSES, COSTS):

            def fit(
                p: Any, power: int, limit: float, loss: str = loss, C: float = C, rows: Rows = (X, y)
            ) -> Any:
                model = MaxMarginClassifier(
                    C, p=p, loss=loss, norm_power=power, max_time=limit, random_state=0
                )
                begin = time.perf_counter()
                model.fit(*rows)
                return time.perf_counter() - begin, model

            allowed = max(MIN_SECONDS, TIMES * min(fit(2, 2, MAX_SECONDS)[0] for _ in range(2)))
            for power, p in product(POWERS, NORMS):
                seconds, model = fit(p, power, allowed)
                if TOL < model.certificate_.gap < 10.0 * TOL:  # the first fit may have compiled code
                    seconds, model = fit(p, power, allowed)
                certified = "yes" if model.certificate_.gap <= TOL else "no"
                yield {
                    "data": name, "loss": loss, "power": power, "p": p, "C": C, "certified": certified,
                    "gap": float(model.certificate_.gap), "seconds": seconds, "allowed": allowed,
                    "status": model.status_.value,
                }  # fmt: skip


# soft margins beside peers

LIMIT = 5.0  # seconds of a peer
# Rows x columns x smaller side up to which Clarabel is run: beyond, a factorisation may take more than LIMIT.
MAX_CONIC = 2e8


def l1(problem: Problem, tolerance: float, **settings: Any) -> np.ndarray:
    """Fit the L1-regularised squared hinge of LIBLINEAR (-s 5) by LinearSVC."""
    model: Any = LinearSVC(
        **{"penalty": "l1", "dual": False, "C": problem.C, "fit_intercept": False, "tol": tolerance,
           "max_iter": 10**6, "random_state": 0, **settings}
    )  # fmt: skip
    return model.fit(problem.X, problem.y).coef_.ravel()


def highs(problem: Problem, tolerance: float, method: str = "highs", limit: float = LIMIT) -> np.ndarray:
    """Solve the linear program of |w|_1 or |w|_inf by HiGHS, which has no gap to stop at."""
    n, d = problem.X.shape
    A = sp.csr_matrix(problem.X).multiply(problem.y[:, None]).tocsr()
    free, soft = int(problem.intercept), 0 if problem.hard else n
    others = sp.hstack([sp.csr_matrix(problem.y[:, None] * np.ones((1, free))), sp.eye(n, soft)])
    if problem.q == 1.0:  # w = u - v
        G, cost = sp.hstack([A, -A, others]), np.ones(2 * d)
    else:  # w = u - t, 0 <= u <= 2 t
        G, cost = sp.hstack([A, sp.csr_matrix(-A.sum(axis=1)), others]), np.append(np.zeros(d), 1.0)
        largest = sp.hstack(
            [-sp.eye(d), sp.csr_matrix(2.0 * np.ones((d, 1))), sp.csr_matrix((d, free + soft))]
        )
        G = sp.vstack([G, largest])
    bounds = [(0.0, None)] * cost.size + [(None, None)] * free + [(0.0, None)] * soft
    cost, right = np.r_[cost, np.zeros(free), np.full(soft, problem.C)], np.zeros(G.shape[0])
    right[:n] = -1.0
    options: Any = {"time_limit": limit}
    found = linprog(cost, A_ub=-G.tocsc(), b_ub=right, bounds=bounds, method=method, options=options)
    if found.x is None:
        return np.zeros(d)
    return found.x[:d] - (found.x[d : 2 * d] if problem.q == 1.0 else found.x[d])


def conic(problem: Problem, tolerance: float) -> np.ndarray:
    """Solve the conic program by Clarabel."""
    program = stated(problem, problem.X, problem.y)
    return np.nan_to_num(program.read(*by_clarabel(program, problem, tolerance))[0])


def peers_of(problem: Problem) -> dict[str, Any]:
    """Return the solvers of a problem."""
    linear = problem.q in (1.0, np.inf) and problem.loss == "hinge" and problem.power == 1
    sparse = problem.q == 1.0 and problem.loss == "squared_hinge" and problem.power == 1
    small = np.prod(problem.X.shape) * min(problem.X.shape) <= MAX_CONIC
    return {
        **({"LinearSVC(penalty='l1')": l1} if sparse else {}),
        **({"HiGHS": highs} if linear else {}),
        **({"Clarabel": conic} if small and clarabel is not None else {}),
    }


def norm_peers(sets: Sequence[str] | None) -> Iterator[Row]:
    """Soft margins without intercept; entries are divided by the largest one, as no peer solves the others."""
    for name in sets or NORM_SETS:
        X, y = most_frequent(name)
        X = X / float(np.abs(X).max())
        for p, loss, power, C in product((1.0, 1.5, 3.0, np.inf), LOSSES, POWERS, COSTS):
            problem = Problem(X, y, C, loss, p, power)
            peers = peers_of(problem)
            for row in compare(problem, peers, TOL, LIMIT, max_time=LIMIT) if peers else ():
                yield {"data": name, "p": p, "loss": loss, "power": power, "C": C, **row}


# the largest margin in the inf-norm

HARD = {
    "HiGHS, dual simplex": partial(highs, method="highs-ds", limit=100.0),
    "HiGHS, interior points": partial(highs, method="highs-ipm", limit=100.0),
    "LinearSVC": partial(l1, tolerance=1e-4, fit_intercept=True, max_iter=1000, C=1.0),
}


def inf_norm(sets: Sequence[str] | None) -> Iterator[Row]:
    """Margins certified to 1 %, beside HiGHS on the same linear program and L1 penalties, as a share of our bound."""
    for name in sets or ("arcene", "prostate", "mushrooms"):
        X, y = most_frequent(name)
        problem = Problem(X, y, np.inf, "hard", np.inf, 1, intercept=True)
        ours(problem, 0.01, norm_power=2)  # loads or compiles the code
        seconds, model = ours(problem, 0.01, norm_power=2)
        alpha = dual(model, y.size)
        apart = X.T @ (alpha * (y > 0) / alpha[y > 0].sum() - alpha * (y < 0) / alpha[y < 0].sum())
        bound = 0.5 * float(np.abs(apart).max())
        fits = {"maxmargin": (seconds, model.coef_.ravel())}
        for learner, solve in HARD.items():
            arguments = (problem,) if "LinearSVC" in learner else (problem, 0.0)
            fits[learner] = timed(lambda solve=solve, arguments=arguments: solve(*arguments))
        row: Row = {"data": name} | {f"{learner}, s": taken for learner, (taken, _) in fits.items()}
        w = fits["LinearSVC"][1]
        scores = X @ w
        share = 0.5 * (scores[y > 0].min() - scores[y < 0].max()) / np.abs(w).sum() / bound
        yield row | {"its margin / bound": float(share)}


if __name__ == "__main__":
    sys.exit(main("norm", __doc__, norms, norm_peers, inf_norm))
