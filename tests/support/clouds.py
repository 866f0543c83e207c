"""Overlapping normal classes, points that no solver produced, and comparison of models with the exact optimum."""

from __future__ import annotations

from copy import copy
from dataclasses import replace

import numpy as np
import scipy.sparse as sp
from oracle import optimum

from maxmargin import verify

# parameters of a fit that ends by no criterion of its own: no float64 certificate has this gap
ENDLESS = {"C": 1e4, "loss": "hinge", "tol": 1e-15, "max_iter": 10**9, "algorithm": "dcd", "random_state": 0}


def clouds(n=60, d=4, seed=0, gap=0.6, classes=2):
    """Return normal rows and labels 0, 1, ... in turn; the mean of class k is 2 gap along axis k."""
    rng = np.random.default_rng(seed)
    y = np.arange(n) % classes
    return rng.normal(size=(n, d)) + 2.0 * gap * np.eye(max(d, classes))[y][:, :d], y


def signs(y):
    """Return 1.0 for rows of the last class, and -1.0 for all others."""
    return np.where(np.asarray(y) == np.max(y), 1.0, -1.0)


def assert_optimum_is_bracketed(model, X, y):
    """Assert that the certificate of a two-class model verifies, and brackets the optimum of the oracle."""
    now = verify(model, X, y)
    dense = X.toarray() if sp.issparse(X) else np.asarray(X, float)
    truth = optimum(now.problem, dense, signs(y), np.ones(len(y)))
    # the width of the oracle's interval, and rounding of sums of a few dozen products
    slack = float(truth.e) + 1e-12 * float(truth.upper)
    for certificate in (now, model.certificate_):
        assert certificate.lower <= float(truth.upper) + slack
        assert certificate.upper >= float(truth.lower) - slack


def altered(model, **changes):
    """The same model with changed attributes, as in a forged file."""
    forged = copy(model)
    vars(forged).update(changes)
    return forged


def with_certificate(model, **changes):
    return altered(model, certificate_=replace(model.certificate_, **changes))


def proved(model, X, y, w, b, alpha, weights=None):
    """The bounds of a point that no solver produced, set into a model that claims nothing."""
    support = np.flatnonzero(alpha)
    silent = with_certificate(model, lower=-np.inf, upper=np.inf, support=support, dual=alpha[support])
    return verify(altered(silent, coef_=w[None], intercept_=np.array([b])), X, y, weights)


def feasible(problem, y, weights, alpha):
    """Dual variables within their caps, the heavier class scaled down where the intercept is free."""
    capped = problem.loss == "hinge" and np.inf > problem.C
    caps = problem.C * weights if capped else np.where(weights > 0.0, np.inf, 0.0)
    alpha = np.minimum(alpha, caps)
    if problem.intercept == "free":
        sums = np.array([alpha[y < 0].sum(), alpha[y > 0].sum()])
        if not sums.all():
            return np.zeros(len(y))
        alpha = np.minimum(alpha * (sums.min() / sums)[(y > 0).astype(int)], caps)
    return alpha
