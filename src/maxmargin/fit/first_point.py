"""A first point for a problem in another norm than p = 2: the solution at p = 2, at its best multiple and intercept.

Three passes of dual coordinate descent are enough. The point restricts the optimum from both sides, so that a fit which
ends early has a finite gap.
"""

from __future__ import annotations

from dataclasses import replace
from math import exp, log

from scipy.optimize import minimize_scalar

from ..algorithms.online.dual_coordinate_descent import DualCoordinateDescent
from ..numerics.norms import norm
from ..numerics.sums import Plain
from .run import Run
from .tracker import Primal, dual_point, primal_point

# Passes over the rows, each followed by an evaluation, which shifts a free intercept. The optimum in another norm is
# far from that at p = 2: more passes delay the first iterate of the algorithm more than they save. A round value, not
# tuned.
PASSES = 3
# Multiples of w that are tried, relative to that whose penalty equals the loss at w = 0, where the objective is below
# its value at w = 0.
MIN_MULTIPLE = 1e-6
MULTIPLE_ACCURACY = (
    0.02  # relative; the optimum is flat, so that more digits change the bound by less than 1e-3
)


def evaluate_euclidean_point(run: Run) -> None:
    """Keep the bounds of an approximate solution at p = 2 in `run`, whose problem has another norm."""
    task, problem = run.task, run.problem
    euclidean = replace(task, problem=replace(problem, p=2.0, power=2))
    other = Run(euclidean, DualCoordinateDescent(), run.tol, run.rng, run.interrupted)
    for _ in range(PASSES):
        other.full_passes(1)
        other.evaluate_iterate()
        if run.interrupted():
            break
    run.presentations += other.presentations
    (w, b), alpha = other.best.primal, other.best.alpha
    run.best.update_dual(*dual_point(task, alpha)[:2])
    length = norm(problem.weights(w, b), problem.q)
    if not length > 0.0:
        return
    z = Plain.scores(task.patterns.X, w)

    def at(k: float) -> tuple[Primal, float]:
        w_k, b_k, bound = primal_point(task, k * w, k * b, k * z)
        return Primal(w_k, b_k), bound

    if problem.hard:
        run.best.update_primal(*at(1.0))
        return
    # the objective at w = 0 is at most C sum s_i, which bounds the penalty of a better w
    losses = problem.C * float(run.weights.sum())
    longest = (losses if problem.power == 1 else (2.0 * losses) ** 0.5) / length
    if not 0.0 < longest < float("inf"):
        return
    best = minimize_scalar(
        lambda k: at(longest * exp(k))[1],
        bounds=(log(MIN_MULTIPLE), 0.0),
        method="bounded",
        options={"xatol": MULTIPLE_ACCURACY},
    )
    run.best.update_primal(*at(longest * exp(float(best.x))))
