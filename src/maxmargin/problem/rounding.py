"""The rounding of dual variables: columns with entries so large that it alone makes sum alpha_i y_i x_i large."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ..numerics.sums import EPS, Plain
from .problem import Problem

# Column j is huge where rounding of the dual variables may change v_j by more than HUGE_SHARE * sqrt(sum alpha).
# The lower bound is about sum alpha / 2, and a column that is not huge takes at most 1e-12 of it. A larger value would
# lose more of the bound. A smaller one would apply `certificates.huge_columns` to data for which plain sums are
# accurate enough.
HUGE_SHARE = 1e-6
# An entry of v = sum alpha_i y_i x_i up to this share of sum alpha_i |x_ij| is taken for rounding of alpha and of the
# sum. It is no bound of both, but their errors cancel: 0.05 eps was the largest in random sums of 1,000,000 terms. A
# smaller share counts rounding as a violation, a larger one a violation as rounding; certificates decide both.
ROUNDING_SHARE = 4.0 * EPS


def ordinary_limit(total: float) -> float:
    """Return the largest size sum alpha_i |x_ij| of a column that is not huge; `total` is sum alpha_i.

    Rounding of alpha changes v_j by up to EPS times this size, which equals HUGE_SHARE * sqrt(total) at the limit.
    """
    return HUGE_SHARE / EPS * math.sqrt(total)


def without_rounding(
    problem: Problem, X: Any, longest: float, alpha: np.ndarray, v: np.ndarray
) -> np.ndarray:
    """Return v = sum alpha_i y_i x_i of a soft margin with 0 for entries that are rounding of alpha.

    In huge columns, rounding of alpha alone makes |v| exceed the sum of alpha. Certificates prove that real dual
    variables near alpha cancel in these columns (`certificates.huge_columns`).

    Parameters
    ----------
    problem : Problem
    X : ndarray or CSR matrix of shape (n, d)
    longest : float
        The length of the longest row: without huge columns v is returned at once.
    alpha : ndarray of shape (n,)
    v : ndarray of shape (d,), or (d + 1,) with the constant coordinate
    """
    total = float(alpha.sum())
    size = max(longest, problem.rho) * total
    if problem.hard or size <= ordinary_limit(total if problem.power == 2 else 1.0):
        return v
    sizes = np.append(Plain.combine(abs(X), alpha), problem.rho * total)[: v.size]
    return np.where(np.abs(v) > ROUNDING_SHARE * sizes, v, 0.0)
