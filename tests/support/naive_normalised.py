"""Algorithms on normalised patterns as in the papers, with the full matrix G: they yield (alpha, p) of every step."""

from __future__ import annotations

from itertools import count
from math import ceil, log, sqrt

import numpy as np


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


def naive_snkpvn(G):
    return naive_smoothed(G, projection, 2 * len(G), np.full(len(G), 1 / len(G)))


def naive_isnkpvn(G):
    q = np.full(len(G), 1 / len(G))
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
