"""Normalised patterns, and the algorithms of the papers on the full matrix G, which yield (alpha, p) of every step."""

from __future__ import annotations

from functools import cache
from itertools import count
from math import ceil, log, sqrt

import numpy as np
from oracle import optimum
from scipy.spatial import ConvexHull

from maxmargin import Problem


def separable(seed, n=24, d=3):
    """Patterns with a separator, of lengths from 0.1 to 10."""
    rng = np.random.default_rng(seed)
    w = rng.normal(size=d)
    X = rng.normal(size=(20 * n, d))
    X = X[np.abs(X @ w) > 0.15 * np.linalg.norm(X, axis=1) * np.linalg.norm(w)][:n]
    return X * 10.0 ** rng.uniform(-1, 1, size=(n, 1)), np.where(X @ w > 0, 1.0, -1.0)


def inseparable(seed, n=12, d=3):
    """Patterns whose hull has 0 inside."""
    rng = np.random.default_rng(seed)
    while True:
        X, y = rng.normal(size=(n, d)), np.where(rng.random(n) < 0.5, 1.0, -1.0)
        if radius(reflected(X, y)) > 0.02:
            return X * 10.0 ** rng.uniform(-1, 1, size=(n, 1)), y


def reflected(X, y, constant=0.0, Delta=0.0):
    """Return Y: rows with all explicit features, reflected and normalised."""
    phi = np.hstack([X, np.full((len(y), 1), constant), Delta * np.eye(len(y))])
    return y[:, None] * phi / np.linalg.norm(phi, axis=1)[:, None]


def radius(Y):
    """Radius of the largest ball around 0 in the hull of the rows (of full rank); negative if 0 is outside."""
    return float((-ConvexHull(Y[:, np.any(Y != 0.0, axis=0)]).equations[:, -1]).min())


@cache
def margin(seed):
    """An interval around rho of the separable patterns of this seed, proved in rational arithmetic."""
    Y = reflected(*separable(seed))
    best = optimum(Problem("hinge", np.inf, intercept="none"), Y, np.ones(len(Y)), np.ones(len(Y)))
    return float(best.lower), float(best.upper)


def naive_np(G):
    alpha = np.zeros(len(G))
    for k in count():
        alpha = (1 - 1 / (k + 1)) * alpha + 1 / (k + 1) * np.eye(len(G))[np.argmin(G @ alpha)]
        yield alpha, alpha


def naive_nvn(G):
    p = np.full(len(G), 1 / len(G))
    while True:
        yield p, p
        step = np.eye(len(G))[np.argmin(G @ p)] - p
        p = p + np.clip(-(step @ G @ p) / (step @ G @ step), 0, 1) * step


def softmax(margins, mu, q):
    e = np.exp(-margins / mu)
    return e / e.sum()


def projection(margins, mu, q):
    """The nearest point of the simplex to q - margins / mu: tau by bisection."""
    v = q - margins / mu
    low, high = v.min() - 1, v.max()
    for _ in range(200):
        tau = 0.5 * (low + high)
        low, high = (tau, high) if np.maximum(v - tau, 0).sum() > 1 else (low, tau)
    return np.maximum(v - tau, 0)


def naive_smoothed(G, p_mu, mu, q):
    alpha, p = q, p_mu(G @ q, mu, q)
    for k in count():
        yield alpha, p
        theta = 2 / (k + 3)
        alpha = (1 - theta) * (alpha + theta * p) + theta**2 * p_mu(G @ alpha, mu, q)
        mu = (1 - theta) * mu
        p = (1 - theta) * p + theta * p_mu(G @ alpha, mu, q)


def naive_snkp(G):
    return naive_smoothed(G, softmax, 2, np.full(len(G), 1 / len(G)))


def naive_snkpvn(G, q=None):
    return naive_smoothed(G, projection, 2 * len(G), np.full(len(G), 1 / len(G)) if q is None else q)


def naive_isnkpvn(G, q=None):
    q = np.full(len(G), 1 / len(G)) if q is None else q
    while True:
        for alpha, p in naive_smoothed(G, projection, 2 * len(G), q):
            yield alpha, p
            if p @ G @ p < q @ G @ q / 4:
                q = p
                break


NAIVE = {
    "NP": naive_np,
    "NVN": naive_nvn,
    "SNKP": naive_snkp,
    "SNKPVN": naive_snkpvn,
    "ISNKPVN": naive_isnkpvn,
}
MAX_STEPS = {  # to a separator of n patterns of margin rho, by the theorems
    "NP": lambda n, rho: 1 / rho**2,
    "NVN": lambda n, rho: 1 / rho**2,
    "SNKP": lambda n, rho: 2 * sqrt(2 * log(n)) / rho,
    "SNKPVN": lambda n, rho: 2 * sqrt(2 * n) / rho,
    "ISNKPVN": lambda n, rho: (1 + log(1 / rho) / log(2)) * ceil(2 * sqrt(2 * n) / rho),
}
