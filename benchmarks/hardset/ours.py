"""Fits of maxmargin on hard problems."""

from __future__ import annotations

import time
import warnings

import numpy as np

from maxmargin import KernelMaxMarginClassifier, MaxMarginClassifier, Status

from .answers import Answer
from .problems import HardProblem

TRIES = 4  # fits at most: others may use the processor at the same time


def classifier(
    problem: HardProblem, tol: float, limit: float
) -> MaxMarginClassifier | KernelMaxMarginClassifier:
    """Return the classifier of a problem, with default settings but for tolerance, time limit and seed."""
    common = {
        "C": problem.C, "loss": "squared_hinge" if problem.hard else problem.loss, "tol": tol, "max_time": limit,
        "fit_intercept": problem.intercept, "random_state": 0,
    }  # fmt: skip
    kernel = problem.kernel
    if kernel:
        return KernelMaxMarginClassifier(
            kernel=kernel.name, gamma=kernel.gamma, degree=kernel.degree, coef0=kernel.coef0, **common
        )
    return MaxMarginClassifier(p=problem.p, norm_power=problem.power, **common)


def solve(problem: HardProblem, tol: float, limit: float) -> Answer:
    """Fit once, and again with more time if the fit was stopped before it had the processor for its limit.

    `max_time` counts seconds of the wall clock, the limit those of the processor.
    """
    X, y = problem.make()
    wall = limit
    for _ in range(TRIES):
        model = classifier(problem, tol, wall)
        begin = time.process_time()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            model.fit(X, y)
        seconds = time.process_time() - begin
        stopped = model.status_ is Status.MAX_TIME
        if not stopped or seconds > 0.8 * limit:
            break
        wall *= limit / max(seconds, 0.1 * limit)
    certificates = model.certificate_.certificates
    claims = [(float(one.lower), float(one.upper)) for one in certificates]
    return Answer(
        _points(problem, model, len(X)), seconds, model.status_.value, claims, float(model.certificate_.gap)
    )


def _points(problem: HardProblem, model: MaxMarginClassifier | KernelMaxMarginClassifier, n: int) -> list:
    if not problem.kernel:
        coefficients = np.atleast_2d(model.coef_)
    else:
        coefficients = np.zeros((len(model.dual_coef_), n))
        coefficients[:, model.support_] = model.dual_coef_
    return list(zip(coefficients, np.ravel(model.intercept_), strict=True))
