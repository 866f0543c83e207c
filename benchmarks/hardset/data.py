"""Rows and labels of the hard problems, the same on every machine.

Random numbers come from integers of a seeded generator. Sums of them are multiples of 2^-20 and below 2^30, so that
they are exact in float64, whatever the order of summation. Where a function such as exp is needed, its values are
rounded to six decimal digits, because its last bit differs between mathematical libraries.
"""

from __future__ import annotations

from itertools import combinations_with_replacement

import numpy as np
from sklearn.datasets import load_breast_cancer, load_digits, load_iris, load_wine

GRID = 2.0**20  # random numbers are multiples of 1 / GRID

Data = tuple[np.ndarray, np.ndarray]


def bells(rng: np.random.Generator, *shape: int) -> np.ndarray:
    """Return random numbers of mean 0 and variance 1: sums of twelve uniform ones, multiples of 1 / GRID."""
    return (rng.integers(0, int(GRID), (12, *shape)).sum(axis=0) - 6 * int(GRID)) / GRID


def cloud(seed: int, n: int, d: int, noise: float = 1.0) -> Data:
    """Return n points in d dimensions, and the signs of an integer linear form plus noise (a power of 2, or 0)."""
    rng = np.random.default_rng(seed)
    X = bells(rng, n, d)
    form = rng.integers(1, 5, d) * rng.choice([-1, 1], d)
    score = (X * form).sum(axis=1) + noise * bells(rng, n)
    return X, np.where(score > 0.0, 1, -1)


def classes(seed: int, n: int, d: int, k: int) -> Data:
    """Return points around k centres on an integer grid; centres have a distance of a few times the spread."""
    rng = np.random.default_rng(seed)
    y = np.arange(n) % k
    return bells(rng, n, d) + rng.integers(-3, 4, (k, d))[y], y


def near_separable(seed: int, n: int, d: int, margin: float) -> Data:
    """Return separable points: a quarter within a few multiples of `margin` (a power of 2) of the plane."""
    rng = np.random.default_rng(seed)
    X = bells(rng, n, d)
    form = rng.integers(1, 4, d)
    form[-1] = 1
    y = np.where(np.arange(n) % 2 == 0, 1, -1)
    factor = np.where(rng.random(n) < 0.25, rng.integers(1, 5, n), rng.integers(1, int(GRID), n))
    X[:, -1] = y * margin * factor - (X[:, :-1] * form[:-1]).sum(axis=1)
    return X, y


def contradictory(seed: int, n: int, d: int, copies: int) -> Data:
    """Return a cloud with its first rows repeated, with the other label."""
    X, y = cloud(seed, n, d, noise=0.0)
    return np.vstack([X, X[:copies]]), np.append(y, -y[:copies])


def duplicates(seed: int, n: int, d: int, most: int) -> Data:
    """Return a cloud with each row repeated, up to `most` times, in random order."""
    X, y = cloud(seed, n, d)
    rng = np.random.default_rng(seed + 1)
    order = rng.permutation(np.repeat(np.arange(n), rng.integers(1, most + 1, n)))
    return X[order], y[order]


def collinear(seed: int, n: int, d: int, extra: int, difference: float = 0.0) -> Data:
    """Return a cloud with `extra` further columns: sums of two others, but for a small difference (a power of 2)."""
    X, y = cloud(seed, n, d)
    rng = np.random.default_rng(seed + 1)
    added = X[:, rng.integers(0, d, extra)] + X[:, rng.integers(0, d, extra)]
    return np.column_stack([X, added + difference * bells(rng, n, extra)]), y


def lattice(seed: int, n: int, d: int, side: int, flips: float = 0.0) -> Data:
    """Return integer points, labelled by an integer form without ties; a share of the labels is flipped."""
    rng = np.random.default_rng(seed)
    X = rng.integers(-side, side + 1, (n, d)).astype(float)
    form = rng.integers(1, 4, d) * rng.choice([-1, 1], d)
    y = np.where((X * form).sum(axis=1) + 0.5 > 0.0, 1, -1)
    return X, np.where(rng.random(n) < flips, -y, y)


def scaled(data: Data, low: int, high: int) -> Data:
    """Multiply the columns by powers of ten, from 10^low to 10^high."""
    X, y = data
    return X * [float(f"1e{round(k)}") for k in np.linspace(low, high, X.shape[1])], y


def times(data: Data, factor: float) -> Data:
    """Multiply all entries by one number."""
    return data[0] * factor, data[1]


def outlier(data: Data, factor: float) -> Data:
    """Multiply the first row."""
    X, y = data
    X = X.copy()
    X[0] *= factor
    return X, y


def sentinel(data: Data, value: float, entries: int = 1, seed: int = 7) -> Data:
    """Replace random entries; with one entry, that of row 3 in column 1."""
    X, y = data
    X = X.copy()
    if entries == 1:
        X[3, 1] = value
        return X, y
    X.flat[np.random.default_rng(seed).choice(X.size, entries, replace=False)] = value
    return X, y


def powers(data: Data, columns: int, degree: int) -> Data:
    """Return all products of at most `degree` of the first columns."""
    X, y = data
    products = []
    for size in range(1, degree + 1):
        for chosen in combinations_with_replacement(range(columns), size):
            product = X[:, chosen[0]]
            for j in chosen[1:]:
                product = product * X[:, j]
            products.append(product)
    return np.column_stack(products), y


def exponentials(data: Data, factor: float) -> Data:
    """Return exp(factor * x) of the standardised columns."""
    X, y = standardised(data)
    return rounded(np.exp(factor * X)), y


def standardised(data: Data) -> Data:
    """Return columns of mean 0 and variance 1, to six digits."""
    X, y = data
    return rounded((X - X.mean(axis=0)) / X.std(axis=0)), y


def rounded(X: np.ndarray) -> np.ndarray:
    """Round to six significant digits."""
    return np.array([float(f"{x:.5e}") for x in X.flat]).reshape(X.shape)


def bundled(name: str, n: int, columns: int | None = None, positive: int | None = None) -> Data:
    """Return every k-th row of a data set of scikit-learn, about n rows; with `positive`, that class and the others."""
    loaders = {"breast": load_breast_cancer, "digits": load_digits, "iris": load_iris, "wine": load_wine}
    X, y = loaders[name](return_X_y=True)
    step = max(1, len(X) // n)
    X, y = np.ascontiguousarray(X[::step, :columns], dtype=float), y[::step]
    if positive is not None:
        y = np.where(y == positive, 1, -1)
    return X, y
