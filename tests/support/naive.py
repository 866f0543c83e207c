"""Each rule in a few lines of NumPy, directly from its statement: slow and simple, for comparison.

Arguments are the reflected patterns Y (row k is y_k x_k, with the constant and own coordinates of the problem),
the order of presentation, a cap for each dual weight, and the parameters of the rule; for rules that learn a bias, the
labels as well. In other norms Y is without own coordinates, whose squares are `delta2`.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy.optimize import brentq

# parameters for many updates on small sets; ratios are not simple, to avoid ties
BUSY: dict[str, dict] = {
    "mpu": {"delta": 0.0123, "delta_b": 2.7},
    "local-perceptron": {"b": 3.7},
    "alma": {"alpha": 0.37},
    "cramma": {"beta": 1.3, "eta": 0.211},
    "micra": {"beta": 1.3, "eta": 0.87, "epsilon": 0.4, "zeta": 0.3},
    "fixed-margin": {"beta": 0.123, "eta": 0.211},
    "aggressive-romma": {"delta": 0.17, "halving": False},
    "pumma": {"delta": 0.17, "halving": False},
    "fmp": {"gamma": 0.1123},
}


class Run(NamedTuple):
    """Result of a naive run."""

    weights: np.ndarray
    dual: np.ndarray
    moved: list[int]  # rows that made a step, in the order of the steps
    nearest: float  # distance of the nearest decision from its threshold; below 1e-9 rounding decides
    bias: float = 0.0
    mistakes: int = 0  # of streams and PUMMA: rows presented at a score of at most 0; at w = 0 all rows
    learnt: float = 0.0  # of MPU: the numbers of single updates
    unlearnt: float = 0.0


def perceptron(Y, order, caps, b):
    """Update when a.y_k <= b:  a <- a + y_k; b may be an array of thresholds."""
    limits = np.broadcast_to(b, len(Y))
    a, I, moved, nearest = np.zeros(Y.shape[1]), np.zeros(len(Y)), [], np.inf
    for k in order:
        p = a @ Y[k]
        nearest = min(nearest, abs(p - limits[k]))
        if p <= limits[k]:
            a, I[k] = a + Y[k], I[k] + 1
            moved.append(k)
    return Run(a, I, moved, nearest)


def local_perceptron(Y, order, caps, b):
    """Update when a.y_k <= b |y_k|^2:  a <- a + y_k."""
    return perceptron(Y, order, caps, b * (Y * Y).sum(axis=1))


def mpu(Y, order, caps, b, db):
    """Learn when a.y_k <= b and I_k < cap, unlearn when a.y_k >= b + db and I_k > 0, repeatedly."""
    a, I, moved, nearest, learnt, unlearnt = np.zeros(Y.shape[1]), np.zeros(len(Y)), [], np.inf, 0.0, 0.0
    for k in order:
        p, y2, old = a @ Y[k], Y[k] @ Y[k], I[k]
        nearest = min(nearest, abs(p - b), abs(p - b - db))
        if p <= b and I[k] < caps[k]:
            times = (b - p) / y2 if y2 else np.inf
            I[k] = min(I[k] + np.floor(times) + 1, caps[k]) if y2 else caps[k]
        elif p >= b + db and I[k] > 0:
            times = (p - (b + db)) / y2
            I[k] = max(I[k] - np.floor(times) - 1, 0)
        if I[k] != old:
            nearest = min(nearest, abs(times - np.rint(times))) if y2 else nearest
            a = a + (I[k] - old) * Y[k]
            learnt, unlearnt = learnt + max(I[k] - old, 0.0), unlearnt + max(old - I[k], 0.0)
            moved.append(k)
    return Run(a, I, moved, nearest, learnt=learnt, unlearnt=unlearnt)


def dual_descent(Y, order, caps, unit):
    """alpha_k <- clip(alpha_k - G / |y_k|^2, 0, U),  G = a.y_k - unit."""
    a, alpha, moved, nearest = np.zeros(Y.shape[1]), np.zeros(len(Y)), [], np.inf
    for k in order:
        G, Q, old = a @ Y[k] - unit, Y[k] @ Y[k], alpha[k]
        nearest = min(nearest, abs(G))
        if (G < 0 and old < caps[k]) or (G > 0 and old > 0):
            alpha[k] = np.clip(old - G / Q, 0.0, caps[k]) if Q else caps[k]
            a = a + (alpha[k] - old) * Y[k]
            moved.append(k)
    return Run(a, alpha, moved, nearest)


def micra(Y, order, caps, beta, epsilon, eta, zeta, R):
    """Update when u.y_k/R <= beta/t^epsilon:  u <- u + (eta/t^zeta) y_k/R, divided by its norm.

    The run starts with u = y_1/|y_1| and t = 1.
    """
    k = next((k for k in order if Y[k].any()), order[0])
    I, t, moved, nearest = np.zeros(len(Y)), 1, [], np.inf
    I[k] = 1.0 / np.linalg.norm(Y[k])
    u = I[k] * Y[k]
    for k in order:
        p, limit = u @ Y[k] / R, beta / t**epsilon
        nearest = min(nearest, abs(p - limit))
        if p <= limit:
            u, I[k] = u + eta / t**zeta * Y[k] / R, I[k] + eta / t**zeta / R
            N = np.linalg.norm(u)
            u, I, t = u / N, I / N, t + 1
            moved.append(k)
    return Run(u, I, moved, nearest)


def segment(m, z):
    """Return the position on the segment [m, z] of its point nearest to 0."""
    D = z - m
    return np.clip(-(m @ D) / (D @ D), 0.0, 1.0) if D.any() else 0.0


def romma(Y, order, caps, delta, on_mistakes):
    """Update on mistakes, m.y_k <= 0, or when m.y_k < (1 - delta) |m|^2:  m <- nearest to 0 on [m, y_k].

    m = w/|w|^2; m = 0 proves that there is no separator, and the run ends.
    """
    m, a, moved, nearest = Y[order[0]], np.eye(len(Y))[order[0]], [], np.inf
    for k in order:
        p, limit = m @ Y[k], 0.0 if on_mistakes else (1.0 - delta) * (m @ m)
        nearest = min(nearest, abs(p - limit) if m @ m > 1e-9 else 0.0)
        if m.any() and (p <= limit if on_mistakes else p < limit):
            s = segment(m, Y[k])
            m, a = (1.0 - s) * m + s * Y[k], (1.0 - s) * a + s * np.eye(len(Y))[k]
            moved.append(k)
    return Run(m, a, moved, nearest)


def pegasos(Y, caps, turns, k, projection):
    """w <- (1 - 1/t) w + sum over violators of (n cap_i / (t k)) y_i; `projection` cuts w to a ball."""
    n, w, alpha, nearest = len(Y), np.zeros(Y.shape[1]), np.zeros(len(Y)), np.inf
    for t, batch in enumerate(turns, 1):
        scores = Y[batch] @ w
        nearest = min(nearest, np.abs(scores - 1.0).min())
        w, alpha = (1.0 - 1.0 / t) * w, (1.0 - 1.0 / t) * alpha
        for i, s in zip(batch, scores, strict=True):
            if s < 1.0:
                c = n * caps[i] / (t * k)
                w, alpha[i] = w + c * Y[i], alpha[i] + c
        if projection:
            shrink = min(1.0, np.sqrt(caps.sum()) / np.linalg.norm(w)) if w.any() else 1.0
            w, alpha = shrink * w, shrink * alpha
    return Run(w, alpha, [], nearest)


# every norm


def p_norm(v, r):
    """|v|_r."""
    top = np.abs(v).max(initial=0.0)
    if r == np.inf or top == 0.0:
        return top
    return top * np.sum((np.abs(v) / top) ** r) ** (1.0 / r)


def inverse_link(theta, p):
    """sign(theta_i) |theta_i|^(p-1) / |theta|_p^(p-2)."""
    size = p_norm(theta, p)
    if size == 0.0 or p == 2.0:
        return theta
    return size * np.sign(theta) * (np.abs(theta) / size) ** (p - 1.0)


def alma_p(Y, delta2, order, gamma, eta, R, p):
    """Update when w.y_k/R <= gamma sqrt(p-1)/sqrt(t):  w <- f^-1(f(w) + eta/sqrt((p-1) t) y_k/R), cut to norm 1."""
    theta, c, t, moved, nearest = np.zeros(Y.shape[1]), np.zeros(len(Y)), 1, [], np.inf
    for k in order:
        limit = gamma * np.sqrt(p - 1.0) / np.sqrt(t)
        s = (inverse_link(theta, p) @ Y[k] + delta2[k] * c[k]) / R
        nearest = min(nearest, abs(s - limit))
        if s <= limit:
            h = eta / np.sqrt(p - 1.0) / np.sqrt(t) / R
            theta, c[k] = theta + h * Y[k], c[k] + h
            N = max(1.0, np.sqrt(p_norm(theta, p) ** 2 + delta2 @ c**2))
            theta, c, t = theta / N, c / N, t + 1
            moved.append(k)
    return Run(inverse_link(theta, p), c, moved, nearest)


def alma(Y, order, caps, gamma, eta, R, normalise=False):
    """ALMA at p = 2; with `normalise` every pattern is divided by its length, and patterns of zeros are skipped."""
    length = np.linalg.norm(Y, axis=1) if normalise else np.ones(len(Y))
    size = np.where(length > 0.0, length, 1.0)
    order = [k for k in order if length[k] > 0.0]
    run = alma_p(Y / size[:, None], np.zeros(len(Y)), order, gamma, eta, 1.0 if normalise else R, 2.0)
    return run._replace(dual=run.dual / size)


def pumma_p(Y, delta2, order, delta, y, p):
    """Update when l_k (m.x_k + b) < (1 - delta) |m|^2:  x_k replaces the last pattern of its class that made an update,
    m <- nearest to 0 on [m, (x+ - x-)/2] in the p-norm, b makes both scores equal; m = f(w)/|w|_q^2.
    """
    i, one = order[0], np.eye(len(Y))
    j = next((j for j in order if y[j] != y[i]), i)
    held, moved, nearest, mistakes, a = {y[i]: i, y[j]: j}, [], np.inf, 0, 0.5 * (one[i] + one[j])

    def gradient(a):
        return Y @ inverse_link(a @ Y, p) + delta2 * a  # of half the squared norm

    def bias(s):
        return -0.5 * (s[held[1.0]] - s[held[-1.0]])

    scores = gradient(a)
    b = bias(scores)
    for k in order:
        n2, s = p_norm(a @ Y, p) ** 2 + delta2 @ a**2, scores[k] + y[k] * b
        nearest = min(nearest, abs(s - (1.0 - delta) * n2) / n2 if n2 else 0.0)
        mistakes += s <= 0.0
        if s < (1.0 - delta) * n2:
            held[y[k]] = k
            pair = 0.5 * (one[held[1.0]] + one[held[-1.0]])

            def slope(t, a=a, pair=pair):
                return gradient((1.0 - t) * a + t * pair) @ (pair - a)

            if p == 2.0 and not delta2.any():
                t = segment(a @ Y, pair @ Y)
            else:
                t = 1.0 if slope(1.0) <= 0.0 else brentq(slope, 0.0, 1.0, xtol=1e-16, rtol=1e-15)
            a = (1.0 - t) * a + t * pair
            scores = gradient(a)
            b = bias(scores)
            moved.append(k)
    return Run(inverse_link(a @ Y, p), a, moved, nearest, b, mistakes)


def pumma(Y, order, caps, delta, y):
    """PUMMA at p = 2, own coordinates as columns."""
    return pumma_p(Y, np.zeros(len(Y)), order, delta, y, 2.0)


def subgradient(w, q):
    """A g with g.w = |w|_q and |g|_p = 1; for q = inf it is shared by the largest coordinates."""
    size = p_norm(w, q)
    if size == 0.0:
        return np.zeros_like(w)
    if q == np.inf:
        ties = np.abs(w) >= size * (1.0 - 1e-9)
        return np.where(ties, np.sign(w) / ties.sum(), 0.0)
    return np.sign(w) * (np.abs(w) / size) ** (q - 1.0)


def fmp(Y, delta2, order, gamma, eta, lift, y, p, flexible=False):
    """Update when l (w.x + b) + delta_k^2 v_k <= gamma N:  reduce N by eta gamma, at most to 0, by scaling (w, v), then

    w <- w + eta l x, v_k <- v_k + eta, b <- b + eta lift l.  N = sqrt(|w|_q^2 + sum delta_k^2 v_k^2), or |w|_q for
    the flexible margin. The dual weights are v at p = 2, otherwise the number of steps of each pattern times eta.
    """
    q = {1.0: np.inf, np.inf: 1.0}.get(p) or p / (p - 1.0)
    w, v, count, b, moved, nearest = np.zeros(Y.shape[1]), np.zeros(len(Y)), np.zeros(len(Y)), 0.0, [], np.inf
    for k in order:
        size = p_norm(w, q)
        N = size if flexible else np.sqrt(size**2 + delta2 @ v**2)
        s = w @ Y[k] + y[k] * b + delta2[k] * v[k]
        nearest = min(nearest, abs(s - gamma * N) / max(abs(s), 1e-300)) if N else nearest
        if s <= gamma * N:
            if N:
                nearest = min(nearest, abs(N - eta * gamma) / N)  # whether w ends at 0 or near it
                down = eta * gamma * size / N * subgradient(w, q)
                w = np.sign(w) * np.maximum(np.abs(w) - np.abs(down), 0.0)
                v = v * max(1.0 - eta * gamma / N, 0.0)
            w, v[k], b = w + eta * Y[k], v[k] + eta, b + eta * lift * y[k]
            count[k] += eta
            moved.append(k)
    return Run(w, v if p == 2.0 and not flexible else count, moved, nearest, b)


def fixed_margin(Y, order, caps, gamma, eta, lift, y):
    """FMP at p = 2, own coordinates as columns."""
    return fmp(Y, np.zeros(len(Y)), order, gamma, eta, lift, y, 2.0)


NAIVE = {
    "perceptron": perceptron,
    "local-perceptron": local_perceptron,
    "mpu": mpu,
    "dcd": dual_descent,
    "alma": alma,
    "cramma": micra,
    "micra": micra,
    "fixed-margin": micra,
    "romma": romma,
    "aggressive-romma": romma,
    "pumma": pumma,
    "fmp": fixed_margin,
}


def replay(name, Y, y, order, caps, numbers):
    """Run a naive rule with the parameters of the compiled record."""
    return NAIVE[name](Y, order, caps, *numbers, **({"y": y} if name in ("pumma", "fmp") else {}))


# streams: every row once, in order


def presented_once(name, w, t, y, numbers):
    """Return the score that must not be positive for an update, and the weight after the update."""
    if name in ("perceptron", "local-perceptron"):
        return w @ y - numbers[0] * (1.0 if name == "perceptron" else y @ y), w + y
    if name == "alma":
        gamma, eta, R, normalise = numbers
        R = np.linalg.norm(y) if normalise else R  # each pattern divided by its own length
        if R == 0.0:
            return np.inf, w
        new = w + eta / np.sqrt(t) * y / R
        return w @ y / R - gamma / np.sqrt(t), new / max(1.0, np.linalg.norm(new))
    if "romma" in name:
        delta, on_mistakes = numbers
        s = segment(w, y)
        limit = 0.0 if on_mistakes else (1.0 - delta) * (w @ w)
        return w @ y - limit if w.any() or not on_mistakes else np.inf, (1.0 - s) * w + s * y
    beta, epsilon, eta, zeta, R = numbers
    new = w + eta / t**zeta * y / R
    return w @ y / R - beta / t**epsilon, new / np.linalg.norm(new)


def once(name, Y, y, numbers):
    """A stream through a rule; numbers(R^2) are the parameters of its record for the largest length R so far.

    Unlike in the batch versions above, the first row of ROMMA, CRAMMA and MICRA is not presented again; this changes
    the result of CRAMMA and MICRA only. PUMMA starts with the first row and the first of the other class; rows
    between them are not presented again either.
    """
    if name == "pumma":
        j = int(np.argmax(y != y[0]))
        run = pumma(Y, [0, j, *range(j + 1, len(Y))], None, numbers(1.0)[0], y)
        return run._replace(moved=[j, *run.moved], mistakes=j + 1 + run.mistakes)
    w, t, R2, moved, nearest, mistakes = np.zeros(Y.shape[1]), 1, 0.0, [], np.inf, 0
    begun = name not in ("romma", "aggressive-romma", "cramma", "micra", "fixed-margin")
    for k, row in enumerate(Y):
        R2 = max(R2, row @ row)
        mistakes += w @ row <= 0.0
        if not begun:
            if row.any():
                w, begun = row if "romma" in name else row / np.linalg.norm(row), True
                moved.append(k)
            continue
        far, new = presented_once(name, w, t, row, numbers(R2))
        nearest = min(nearest, abs(far) or np.inf, abs(w @ row) or np.inf)  # zero is exact: a row of zeros
        if far < 0.0 if name == "aggressive-romma" else far <= 0.0:
            w, t = new, t + 1
            moved.append(k)
    return Run(w, np.zeros(0), moved, nearest, 0.0, mistakes)
