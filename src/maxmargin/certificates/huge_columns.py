"""Real dual variables near the stored ones whose huge columns cancel exactly.

The lower bound of a soft problem, sum alpha - 1/2 |v|^2 with v = sum alpha_i y_i x_i, requires v_j to be small in
every column; |v| is the p-norm. Where entries are huge, no float64 dual variables have this property: the rounding of
alpha alone changes v_j by far too much. Real dual variables have it, and the bound requires only that they exist.

Theorem. The *equations* are linear in alpha: sum alpha_i y_i x_ij = 0 for each huge column j, and sum alpha_i y_i = 0
where the intercept is free, or where the constant coordinate of an augmented one is huge. Let A be the matrix of the
equations, with a column for each row i of the data whose dual variable has a distance r_i > 0 from its bounds 0 and
C s_i: it may change by r_i up and down. Let t be the left sides of the equations at alpha, over *all* rows. For any
matrix M with |I - A M|_inf <= eta < 1 there is a real c with A c = t and

    |c| <= |M| (|t| + eta / (1 - eta) |t|_inf).

(c = M (I - E)^-1 t with E = I - A M.) If this is at most r, then alpha - c is feasible and balanced, its v_j are
zero in the huge columns, and its dual value bounds the optimum. Neither c nor alpha - c is computed.
"""

from __future__ import annotations

import math
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import numpy as np
import scipy.linalg
import scipy.sparse as sp

from ..numerics.rational import null_vector
from ..numerics.sparse_columns import with_constant_column
from ..numerics.sums import EPS, Compensated, Plain, exact_dot
from ..problem.problem import Problem
from ..problem.rounding import ordinary_limit
from .bounds import Side, norm_interval

if TYPE_CHECKING:
    from .sample import Sample

_linalg: Any = scipy.linalg  # typed as Any: its annotations are unions over all options
# Where a column is huge, columns of at least NEARLY_HUGE times the limit of `ordinary_limit` are required to cancel as
# well: each further equation costs little, and the bound loses 1/2 v_j^2 in every column j that does not cancel.
NEARLY_HUGE = 1e-2
# Fraction of the largest r_i below which the dual variable of row i is kept fixed. A smaller value would admit rows
# whose entries of M consist of rounding errors, a larger one would leave fewer rows to cancel with.
MIN_FREE_SLACK = 1e-8
# Work, rows x equations^2, beyond which no proof is tried: at this value it takes some seconds.
MAX_WORK = 4e9
# Work of exact elimination, equations^3 x bits^2 of the longest integer, beyond which it is not tried. Measured on one
# core, in units of 1e10: 1.5 takes 0.5 s (100 equations of 121 bits), 6.3 takes 1.9 s (100, 251 bits), 7.5 takes 3.5 s
# (50, 772 bits), 60 takes 22 s (100, 774 bits). A larger value would take longer, a smaller one prove fewer bounds.
MAX_EXACT_WORK = 1e11
# Distance from its bounds, as a fraction of its cap or of the largest dual variable, to which each dual variable is
# moved where no proof was found because dual variables are at their bounds: a larger value would change the dual value,
# a smaller one would leave r_i too small for the changes c_i.
BOUND_DISTANCE = 1e-7
# Relative size of the residual of an equation after projection on other equations below which the residual may be
# rounding: the equation is then tested for an exact linear combination of the others. The factors of such a combination
# are assumed to be multiples of FACTOR_UNIT (small whole numbers, halves and the like).
DEPENDENT_RESIDUAL, FACTOR_UNIT = 1e-10, 2.0**-20
# Fraction of the cost of the changes c by which a matrix M computed on another machine, as by `verify`, may change it.
MATRIX_ROUNDING = 0.01
# Largest eta of the theorem with which a proof is tried: it allows eta < 1, but its bound of the changes has the factor
# eta / (1 - eta), which is at most 1 here. A larger value would admit bounds that are too large to be of use.
MAX_ETA = 0.5
# Newton steps that correct dual variables after they were moved from their bounds. The equations are linear: one step
# solves them but for rounding and clipping, which the others correct; more of them would cost factorisations.
NEWTON_STEPS = 3
# Fraction of the distance BOUND_DISTANCE to which these steps may bring a dual variable back to a bound: a larger value
# would clip more of the corrections, a smaller one would leave r_i too small again.
KEPT_DISTANCE = 0.01
# Error bound of a product that underflows, where the largest factors are about one.
PRODUCT_UNDERFLOW = 1e-290


def huge_columns(problem: Problem, sample: Sample, alpha: np.ndarray) -> np.ndarray | None:
    """Return a mask, of shape (d,), of the columns in which rounding of alpha alone makes v large; None if none are.

    A column is huge if sum alpha_i |x_ij| is above `ordinary_limit`; where one is, the mask includes columns down to
    NEARLY_HUGE times this limit. With an augmented intercept the mask has one more entry, for the constant coordinate.
    None also for hard margins.
    """
    total = float(alpha.sum())
    # |v| is at most sqrt(total) near the optimum, or 1 for the norm to the first power
    limit = ordinary_limit(total if problem.power == 2 else 1.0)
    if problem.hard or max(float(alpha @ sample.norms), problem.rho * total) <= limit:
        return None
    size = Plain.combine(abs(sample.X), alpha)
    if problem.rho:
        size = np.append(size, problem.rho * total)
    return size > NEARLY_HUGE * limit if size.max() > limit else None


def _too_much_work(rows: int, equations: Any) -> bool:
    """Return whether a factorisation of the equations takes too long for a proof."""
    return rows * equations**2 > MAX_WORK


def exact_bound(problem: Problem, sample: Sample, alpha: np.ndarray, huge: np.ndarray) -> Side | None:
    """Return a lower bound: the dual value of real dual variables alpha - c whose huge columns cancel exactly.

    The bound is the dual value of alpha without its huge columns, minus a bound of the change by c:
    sum |c_i| + sum |c_i| (2 alpha_i + |c_i|) / (4 C s_i) of the gains (the second sum of the squared hinge only), and
    the increase of 1/2 |v|^2 in the other columns. For the norm to the first power, the changed gains are divided by
    max(1, |v|), if they are positive.

    Parameters
    ----------
    problem : Problem
        Soft.
    sample : Sample
    alpha : ndarray of shape (n,)
        Feasible.
    huge : ndarray of bool of shape (d,), or (d + 1,) with an augmented intercept
        As `huge_columns` returns it.

    Returns
    -------
    Side or None
        Its `rounding` includes the amount by which the bound may differ when it is recomputed on another machine. None
        where no proof is found or tried.
    """
    used = np.flatnonzero(alpha)
    if _too_much_work(used.size, np.count_nonzero(huge)):
        return None
    X, y = with_constant_column(sample.X[used], problem.rho), sample.y[used]
    weights, alpha = sample.weights[used], alpha[used]
    caps = problem.caps(weights)
    slack = np.minimum(alpha, caps * (1.0 - 4.0 * EPS) - alpha)  # r, the distance to the nearest bound
    change = _bound_of_change(_independent(_equations(problem, X, y, huge)), alpha, slack)  # of |c_i|
    if change is None:
        return None
    # in the other columns: v, the sum of the absolute values of its terms, and a bound of the change of v by c
    rest = X[:, np.flatnonzero(~huge)]
    v = Compensated.combine(rest, alpha * y)
    size, shift = Plain.combine(abs(rest), alpha), Plain.combine(abs(rest), change)
    terms = alpha.size + v.size + 8
    round_up = 1.0 + 8.0 * terms * EPS  # more than all roundings of a sum of non-negative terms
    v_error = Compensated.error(v, float(size.sum()), terms)
    length = norm_interval(np.abs(v) + v_error + shift * round_up, problem.p, Plain).high
    before, after = Plain.square(v, problem.p), length * length * round_up
    gains = problem.gains(alpha, weights)
    growth = 0.5 * max(after - before, 0.0) if problem.power == 2 else 0.0
    cost = _cost_of_change(problem, alpha, weights, change, growth)
    value = Compensated.total(gains) - (0.5 * before if problem.power == 2 else 0.0)
    # `size_of_terms` is at least the sum of the absolute values of all terms
    size_of_terms = float(np.abs(gains).sum() + alpha.sum()) + before + after
    # the caps C s_i are rounded, and alpha may exceed them by the factor 1 + cap_excess, by which it is divided
    cap_excess = max(float(np.max(alpha / caps)) - 1.0, 0.0)
    rounding = Compensated.error(value, size_of_terms, terms) + (8.0 * EPS + cap_excess) * size_of_terms
    bound, rounding = float(value - cost * round_up - rounding), rounding + MATRIX_ROUNDING * cost
    if problem.power == 2:
        return Side(bound, rounding, value)
    divisor = max(length, 1.0) * round_up
    return Side(bound / divisor, rounding / divisor, value / divisor) if bound > 0.0 else None


def _cost_of_change(
    problem: Problem, alpha: np.ndarray, weights: np.ndarray, change: np.ndarray, growth: float
) -> float:
    """Return a bound of the change of the dual value by c; `growth` is that of 1/2 |v|^2.

    The other terms are sum alpha, and the sum of alpha^2 / (4 C s) of the squared losses.
    """
    cost = float(change.sum()) + growth
    if problem.loss == "squared_hinge":
        cost += float((change * ((2.0 * alpha + change) / (4.0 * problem.C * weights))).sum())
    return cost


def _equations(problem: Problem, X: Any, y: np.ndarray, huge: np.ndarray) -> np.ndarray:
    """Return the matrix of the equations, of shape (equations, rows), scaled to entries of about one, no two equal.

    An equation is divided by a power of two, which is exact, and by the sign of its first non-zero entry. If all
    non-zero entries are equal, they are replaced by ones: the new equation has the same solutions.
    """
    block = X[:, np.flatnonzero(huge)]
    block = np.asarray(block.toarray() if sp.issparse(block) else block, dtype=float)
    equations = {np.ones(y.size).tobytes(): np.ones(y.size)} if problem.free else {}
    for column in block.T:
        first = column[np.flatnonzero(column)[0]]
        if np.isin(column, (0.0, first)).all():
            equation = (column != 0.0).astype(float)
        else:
            equation = np.ldexp(column, -int(np.frexp(np.abs(column).max())[1])) * np.sign(first)
        equation = equation + 0.0  # no negative zero
        equations.setdefault(equation.tobytes(), equation)
    return np.array(list(equations.values())) * y


def cancelled_exactly(
    problem: Problem, sample: Sample, alpha: dict[int, Fraction], huge: np.ndarray
) -> dict[int, Fraction]:
    """Return exactly feasible dual variables near alpha, by row, whose huge columns cancel exactly.

    As many dual variables as there are equations change, those that the pivots of a QR factorisation choose among the
    rows, weighted by their distances from their bounds.

    Parameters
    ----------
    problem : Problem
        Soft.
    sample : Sample
    alpha : dict of Fraction
        Exactly feasible dual variables by row.
    huge : ndarray of bool
        As `huge_columns` returns it.

    Returns
    -------
    dict of Fraction
        Alpha itself where too many equations depend on one another, exact elimination would take over some seconds,
        or dual variables would leave their bounds.
    """
    used = np.array(sorted(alpha))
    if _too_much_work(used.size, np.count_nonzero(huge)):
        return alpha
    X = with_constant_column(sample.X[used], problem.rho)
    equations = _independent(_equations(problem, X, sample.y[used], huge))
    values = [alpha[i] for i in used.tolist()]
    weights = sample.weights[used].tolist()
    caps: list[Any] = [
        math.inf if math.isinf(problem.cap) else Fraction(problem.cap) * Fraction(s) for s in weights
    ]
    slack = np.array([float(min(a, cap - a)) for a, cap in zip(values, caps, strict=True)])
    pivots = _linalg.qr(equations * slack, mode="r", pivoting=True, check_finite=False)[1][: len(equations)]
    # A c = t in integers, A with the columns of the pivots: the null vector of (A, -t) is a multiple of (c, 1)
    common = math.lcm(*(value.denominator for value in values))
    numerators = [value.numerator * (common // value.denominator) for value in values]
    integer_equations = []
    for equation in equations:
        ratios = [factor.as_integer_ratio() for factor in equation.tolist()]
        finest = max(below for _, below in ratios)  # denominators are powers of two
        factors = [above * (finest // below) for above, below in ratios]
        total = sum(a * factor for a, factor in zip(numerators, factors, strict=True))
        line = [*(factors[k] * common for k in pivots), -total]
        shared = math.gcd(*line) or 1
        integer_equations.append([number // shared for number in line])
    bits = max(number.bit_length() for line in integer_equations for number in line)
    affordable = len(equations) ** 3 * bits**2 <= MAX_EXACT_WORK
    solution = null_vector(integer_equations) if affordable else None
    if solution is None or not solution[-1]:
        return alpha
    found = alpha.copy()
    for k, value in zip(pivots.tolist(), solution[:-1], strict=True):
        changed = values[k] - Fraction(value, solution[-1])
        if not 0 <= changed <= caps[k]:
            return alpha
        found[int(used[k])] = changed
    return found


def _independent(equations: np.ndarray) -> np.ndarray:
    """Return the equations without exact linear combinations of others, which every solution of the others solves.

    A QR factorisation with pivoting chooses a basis. The factors of every other equation are computed by least squares,
    rounded to multiples of FACTOR_UNIT, and checked in exact arithmetic; an equation that fails the check is kept.
    """
    R, order = _linalg.qr(equations.T, mode="r", pivoting=True, check_finite=False)
    size = np.abs(np.diag(R))
    rank = np.count_nonzero(size > DEPENDENT_RESIDUAL * size[0])
    basis, others = order[:rank], order[rank:]
    if not others.size:
        return equations
    factors = _linalg.lstsq(equations[basis].T, equations[others].T, check_finite=False)[0]
    # the last factor, -1, is that of the equation itself
    factors = np.append(np.rint(factors / FACTOR_UNIT) * FACTOR_UNIT, np.full((1, others.size), -1.0), axis=0)
    kept = list(basis)
    for k, factor in zip(others, factors.T, strict=True):
        if any(exact_dot(part, factor) != 0.0 for part in equations[[*basis, k]].T):
            kept.append(k)
    return equations[kept]


def _bound_of_change(equations: np.ndarray, alpha: np.ndarray, slack: np.ndarray) -> np.ndarray | None:
    """Return a bound of |c_i| for every row, of shape (n,), where alpha - c solves all equations exactly.

    The bound is that of the theorem in the module's docstring, with `slack` as r. None where the theorem does not
    prove that such a c exists.
    """
    # units of about the largest dual variable, a power of two: division is exact
    unit = 2.0 ** np.floor(np.log2(float(alpha.max())))
    alpha, slack = alpha / unit, slack / unit
    t = np.abs([exact_dot(equation, alpha) for equation in equations]) * (1.0 + 4.0 * EPS)
    change = np.zeros(alpha.size)
    if not t.any():
        return change
    t = t + alpha.size * PRODUCT_UNDERFLOW
    free = np.flatnonzero(slack > MIN_FREE_SLACK * max(float(slack.max()), 0.0))
    m = len(equations)
    if free.size < m or _too_much_work(free.size, m):
        return None
    A, r = equations[:, free], slack[free]
    try:
        M = _right_inverse(A, r)
    except np.linalg.LinAlgError:
        return None
    round_up = 1.0 + 8.0 * (free.size + m) * EPS
    # eta >= |I - A M|_inf, the rounding of the product included
    rounding = (free.size + 8) * EPS * ((np.abs(A) + PRODUCT_UNDERFLOW) @ np.abs(M) + np.eye(m))
    eta = float((np.abs(np.eye(m) - A @ M) + rounding).sum(axis=1).max()) * round_up
    if not eta < MAX_ETA:
        return None
    c = np.abs(M) @ (t + eta / (1.0 - eta) * t.max()) * round_up
    if not (c <= r).all():
        return None
    change[free] = c
    return change * unit


def _right_inverse(A: np.ndarray, r: np.ndarray) -> np.ndarray:
    """Return the right inverse D (A D)^+ of A, D = diag(r): changes are large where the distance r to the bounds is."""
    Q, R = _linalg.qr((A * r).T, mode="economic", check_finite=False)
    return r[:, None] * _linalg.solve_triangular(R, Q.T, check_finite=False).T


def away_from_bounds(problem: Problem, sample: Sample, alpha: np.ndarray, huge: np.ndarray) -> np.ndarray:
    """Return dual variables near alpha, away from their bounds, that solve the equations up to float64 rounding.

    They are clipped to the relative distance BOUND_DISTANCE from their bounds, and corrected by Newton steps with a
    right inverse, each clipped to the fraction KEPT_DISTANCE of that distance. Alpha is returned where there is too
    much work, or no right inverse.
    """
    used = np.flatnonzero(sample.weights)
    if _too_much_work(used.size, np.count_nonzero(huge)):
        return alpha
    caps, near = problem.caps(sample.weights)[used], alpha[used]
    least = BOUND_DISTANCE * np.minimum(caps, float(near.max()))
    near = np.clip(near, least, caps - least)
    X = with_constant_column(sample.X[used], problem.rho)
    equations = _independent(_equations(problem, X, sample.y[used], huge))
    kept = KEPT_DISTANCE * least
    for _ in range(NEWTON_STEPS):
        try:
            M = _right_inverse(equations, np.minimum(near, caps - near))
        except (np.linalg.LinAlgError, ValueError):
            return alpha
        near = np.clip(near - M @ (equations @ near), kept, caps - kept)
    near = np.where(np.isfinite(near), near, alpha[used])
    alpha = alpha.copy()
    alpha[used] = near
    return alpha
