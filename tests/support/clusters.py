"""Rows and fits for the tests of back ends whose rows stay on other machines."""

import numpy as np

from maxmargin import MaxMarginClassifier, Status

MEMORY = "50kB"  # the rows of each test need more


def rows(classes=2, n=2000, d=6, seed=0):
    """Return normal rows with noisy labels, and weights of which some are 0."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d))
    scores = X @ rng.normal(size=(d, classes)) + rng.normal(size=(n, classes))
    return X, scores.argmax(axis=1), rng.integers(0, 4, n).astype(float)


def model(**parameters):
    return MaxMarginClassifier(**{"memory": MEMORY, "random_state": 0, "tol": 1e-5} | parameters)


def assert_same_fit(one, other):
    assert one.status_ is other.status_ is Status.CERTIFIED
    assert one.classes_.tolist() == other.classes_.tolist()
    np.testing.assert_allclose(one.coef_, other.coef_, rtol=1e-6, atol=1e-9)
    assert_same_bounds(one.certificate_, other.certificate_)


def assert_same_bounds(one, other):
    for part, same in zip(one.certificates, other.certificates, strict=True):
        np.testing.assert_allclose([part.lower, part.upper], [same.lower, same.upper], rtol=1e-9)
