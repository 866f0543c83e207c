"""Cutting planes: the hinge loss modelled from below by a maximum of affine functions.

The loss R(w) = sum c_i max(0, 1 - m_i), minimised over the intercept where that is free, is convex. A plane is an
affine lower bound of R that is tangent to it at some w: with theta_i = 1 where m_i < 1, 0 where m_i > 1, and
0 <= theta_i <= 1 at m_i = 1 (such that the derivative in a free intercept is zero), R(v) >= h - g.v with
h = sum c_i theta_i and g = sum c_i theta_i y_i x_i. The model is the maximum of these planes and of zero. The minimum
of 1/2 |w|^2 + model equals the maximum of its dual ::

    maximise h'a - 1/2 |sum a_p g_p|^2,   a >= 0,  sum a = 1   (zero is one of the planes),

so that w = sum a_p g_p, and alpha_i = c_i sum a_p theta_pi are dual variables within their caps.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import numpy as np
import scipy.linalg

from ...numerics.sums import Plain
from ...problem.intercept import best_intercept
from ...problem.problem import Problem
from ..base import Algorithm, Bias, Facts, Plan, is_positive_finite, is_whole, require

_linalg: Any = scipy.linalg  # whose annotations are unions of all cases

ROUNDING = 1e-13  # a difference of a plane and the model that is rounding, relative to the largest height


@dataclass(frozen=True)
class Settings:
    """Numerical settings of the model of planes and of the line search.

    Values were chosen on the data sets of docs/measurements/regimes.md.
    """

    # Weight of the proximal term of the model's dual, relative to the largest |g / h|^2. Planes that are convex
    # combinations of others give a singular Gram matrix; this term makes it definite. A larger weight needs more steps.
    ridge: float = 1e-11
    # The least weight of the proximal term, relative to 1 / the largest h, where slopes cancel to about 0.
    min_ridge: float = 1e-8
    # Line search: distance of equal points, relative to |w|; largest step, beyond which a direction is rounding.
    same_point: float = 1e-12
    max_line_step: float = 1e4
    # Steps of iterative refinement of a linear system: large terms cancel in the multiplier. More cost time.
    refinements: int = 2
    # Largest number of proximal steps for one model, 1 or 2 of which are usual.
    max_proximal_steps: int = 6
    # Relative gap at which the proximal steps end; and that of the problem at which a run ends without a further plane.
    end_gap: float = 1e-10


SETTINGS = Settings()


@dataclass(frozen=True)
class CuttingPlane(Algorithm):
    """Cutting planes for the hinge loss: the one-slack form of SVMperf, and OCAS.

    Model: L(w) = sum C s_i max(0, 1 - w.y_i) is at least 0 and at least h_p - g_p.w for every plane p, with
    h_p = sum of C s_i and g_p = sum of C s_i y_i over the rows whose margin was below 1 where the plane touches L.
    Iteration: w minimises 1/2 |w|^2 + the maximum of the planes (the dual has one variable for each plane), and the
    next plane touches L at w (SVMperf); or the best point w_b moves to the minimum of the objective on the line from
    w_b through w, and the next plane touches L at (1 - mu) w_b + mu w (OCAS), with which the objective falls in every
    iteration.
    Guarantee: the bounds of the objective differ by at most C n eps after at most
    log2(1 / (4 R^2 C n)) + 16 R^2 C n / eps planes (each term rounded to a whole number, n being the sum of the sample
    weights; SVMperf), whatever the number of rows. With a free intercept L is minimised over b, planes are balanced
    between the classes, and the same holds.

    Parameters
    ----------
    variant : {"ocas", "svmperf"}, default="ocas"
    eps : float, default=None
        End when the difference of the bounds on the objective, divided by C n, is at most eps, which is SVMperf's
        violation of the slack. None continues until `tol`.
    mu : float, default=0.1
        OCAS: the plane is taken at this fraction of the way from the best point to the model's minimiser.
    idle : int, default=50
        Iterations after which a plane of dual variable 0 is dropped.

    References
    ----------
    T. Joachims, "Training linear SVMs in linear time", KDD 2006;
    V. Franc, S. Sonnenburg, "Optimized cutting plane algorithm for support vector machines", ICML 2008;
    T. Joachims, T. Finley, C.-N. Yu, "Cutting-plane training of structural SVMs", Machine Learning 77, 2009
    (theorem 5).
    """

    variant: str = "ocas"
    eps: float | None = None
    mu: float = 0.1
    idle: int = 50
    schedule: str = "planes"

    name: ClassVar[str] = "cutting-plane"
    schedules: ClassVar[tuple[str, ...]] = ("planes",)
    bias: ClassVar[Bias] = Bias.OWN
    kernelised: ClassVar[bool] = False

    def __post_init__(self) -> None:
        require(self.variant in ("ocas", "svmperf"), "variant must be 'ocas' or 'svmperf'", self.variant)
        eps_is_valid = self.eps is None or is_positive_finite(self.eps)
        require(eps_is_valid, "eps must be a positive number or None", self.eps)
        mu_is_valid = is_positive_finite(self.mu) and self.mu <= 1.0
        require(mu_is_valid, "mu must lie above 0 and be at most 1", self.mu)
        require(is_whole(self.idle, 1), "idle must be a whole number of turns, at least 1", self.idle)

    def refuses(self, problem: Problem) -> str | None:
        if problem.hard or problem.loss != "hinge":
            return 'loss="hinge" with a finite C'
        return super().refuses(problem)

    def plan(self, facts: Facts) -> Plan:
        mu = self.mu if self.variant == "ocas" else None
        end_difference = 0.0 if self.eps is None else self.eps * facts.losses
        return Plan(rule=None, unit=1.0, pace=Pace(mu, end_difference, self.idle))


class Pace(NamedTuple):
    """Settings of the schedule `planes`.

    Attributes
    ----------
    mu : float or None
        OCAS: the best point moves along the line through the model's minimiser, and the plane touches at the fraction
        `mu` of the way from it to the minimiser. None, SVMperf: both points are the minimiser.
    end_difference : float
        Difference of the upper and the lower bound of the objective at which the run ends.
    idle : int
        Iterations after which a plane of dual variable 0 is dropped.
    """

    mu: float | None
    end_difference: float
    idle: int


class Point(NamedTuple):
    """A primal point with its scores.

    Attributes
    ----------
    w : ndarray
        Weights, that of the constant coordinate included where there is one.
    z : ndarray of shape (n,)
        The scores w.x_i.
    b : float
        The free intercept of least loss for these scores; 0 where there is none.
    """

    w: np.ndarray
    z: np.ndarray
    b: float


class Plane(NamedTuple):
    """An affine lower bound of the loss: R(v) >= height - slope.v.

    Attributes
    ----------
    height : float
        h = sum c_i theta_i.
    slope : ndarray of shape (size,)
        g = sum c_i theta_i y_i x_i, with an entry for the constant coordinate where there is one.
    violated : ndarray of uint8
        theta of the rows that are not tied, 1 where the margin is below 1, as packed bits: n / 8 bytes for each plane.
    tied : ndarray of int
        The rows of margin one whose theta is `share`.
    share : float
        Between 0 and 1.
    """

    height: float
    slope: np.ndarray
    violated: np.ndarray
    tied: np.ndarray
    share: float

    def theta(self, n: int) -> np.ndarray:
        """Return theta, of shape (n,)."""
        theta = np.unpackbits(self.violated, count=n).astype(float)
        theta[self.tied] = self.share
        return theta


class Hinge:
    """The hinge loss of one problem.

    Parameters
    ----------
    problem : Problem
        With the hinge loss.
    X : ndarray or CSR matrix of shape (n, d)
    y : ndarray of shape (n,), entries -1.0 and 1.0
    weights : ndarray of shape (n,), positive
        Sample weights.
    settings : Settings
    """

    def __init__(
        self, problem: Problem, X: Any, y: np.ndarray, weights: np.ndarray, settings: Settings = SETTINGS
    ) -> None:
        self.problem, self.X, self.y, self._weights = problem, X, y, weights
        self.settings, self.caps = settings, problem.caps(weights)

    def at(self, w: np.ndarray, z: np.ndarray) -> Point:
        """Return the point of w and its scores z, with the intercept of least loss."""
        free = self.problem.free
        return Point(w, z, best_intercept(self.problem, z, self.y, self._weights) if free else 0.0)

    def between(self, one: Point, two: Point, k: float) -> Point:
        """Return the point one + k (two - one) with its own intercept; k may be above 1."""
        return self.at(one.w + k * (two.w - one.w), one.z + k * (two.z - one.z))

    def value(self, point: Point) -> float:
        """Return the objective 1/2 |w|^2 + R(w) at a point."""
        margins = self.y * (point.z + point.b)
        return 0.5 * float(point.w @ point.w) + float(self.caps @ np.maximum(1.0 - margins, 0.0))

    def plane(self, point: Point) -> Plane:
        """Return the plane that touches the loss R(w) = sum c_i max(0, 1 - m_i) at this point.

        Its dual variables are c_i theta_i. Without a free intercept theta_i = 1 where m_i < 1. With one, dR/db = 0 at
        the best intercept: the rows of m_i < 1 balance, or rows of m_i = 1 get a common theta that balances them.
        """
        y, caps, problem = self.y, self.caps, self.problem
        tied, share = np.zeros(0, np.intp), 0.0
        if problem.free:
            breakpoint = y - point.z  # the intercept at which the row's margin is one
            violated = np.where(y > 0.0, breakpoint > point.b, breakpoint < point.b)
            derivative = float(caps[violated] @ y[violated])  # -dR/db without the tied rows
            tied = np.flatnonzero((breakpoint == point.b) & (y * derivative < 0.0))
            total = float(caps[tied].sum())
            share = min(abs(derivative) / total, 1.0) if total > 0.0 else 0.0
        else:
            violated = y * point.z < 1.0
        theta = violated.astype(float)
        theta[tied] = share
        alpha = caps * theta
        slope = Plain.combine(self.X, y * alpha)
        if problem.rho:
            slope = np.append(slope, problem.rho * float(alpha @ y))
        return Plane(float(alpha.sum()), slope, np.packbits(violated), tied, share)

    def line_search(self, one: Point, two: Point) -> float:
        """Return the k in [0, settings.max_line_step] for which one + k (two - one) has the least objective.

        0 where the points are equal up to rounding. Exact, by sorting the breakpoints, where a margin is one: with the
        direction v the slope at k is w.v + k |v|^2 - sum c_i dm_i / dk over the rows with m_i < 1, and it increases by
        c_i |dm_i / dk| at a breakpoint. The intercept moves linearly from that of `one` to that of `two`.
        """
        margins = self.y * (one.z + one.b)
        gain = self.y * (two.z + two.b) - margins
        v = two.w - one.w
        square = float(v @ v)
        if square <= self.settings.same_point**2 * float(one.w @ one.w):
            return 0.0
        violated = (margins < 1.0) | ((margins == 1.0) & (gain < 0.0))
        slope = float(one.w @ v) - float(self.caps[violated] @ gain[violated])
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            breakpoints = (1.0 - margins) / gain
        ahead = np.flatnonzero((breakpoints > 0.0) & np.isfinite(breakpoints))
        ahead = ahead[np.argsort(breakpoints[ahead])]
        breakpoints, rise = breakpoints[ahead], np.cumsum(self.caps[ahead] * np.abs(gain[ahead]))
        # whether the objective increases to the right of each breakpoint; the minimum is at the first such j or before
        increases = slope + rise + square * breakpoints >= 0.0
        j = int(np.argmax(increases)) if increases.any() else breakpoints.size
        before = slope + (rise[j - 1] if j else 0.0)
        k = -before / square  # the zero of the slope between the breakpoints j - 1 and j, cut at j
        k = min(k, float(breakpoints[j])) if j < breakpoints.size else k
        return min(max(k, 0.0), self.settings.max_line_step)


class Model:
    """A set of planes, and the minimiser of 1/2 |w|^2 + the maximum of the planes.

    Parameters
    ----------
    hinge : Hinge
    size : int
        Number of coordinates of w, the constant one included.
    idle : int
        Minimisations after which a plane of dual variable 0 is dropped.
    settings : Settings

    Attributes
    ----------
    planes : list of Plane
        The first one is the plane zero, which is never dropped.
    a : ndarray
        The dual variables of the planes.
    added : int
        Number of planes ever added.
    """

    def __init__(self, hinge: Hinge, size: int, idle: int, settings: Settings = SETTINGS) -> None:
        n = hinge.caps.size
        zero = Plane(0.0, np.zeros(size), np.packbits(np.zeros(n, bool)), np.zeros(0, np.intp), 0.0)
        self.hinge, self.idle, self.settings = hinge, idle, settings
        self.planes = [zero]
        self.added = 0
        self.a, self._unused = np.ones(1), np.zeros(1, int)
        self._slopes, self._gram = np.zeros((1, size)), np.zeros((1, 1))

    @property
    def heights(self) -> np.ndarray:
        """The heights of all planes, in the order of `planes`."""
        return np.array([plane.height for plane in self.planes])

    def is_below(self, plane: Plane, w: np.ndarray) -> bool:
        """Return whether the model is below this plane at w by more than rounding."""
        heights = self.heights
        rounding = ROUNDING * max(plane.height, float(heights.max()))
        return plane.height - float(plane.slope @ w) > float((heights - self._slopes @ w).max()) + rounding

    def add(self, plane: Plane) -> None:
        """Add a plane to the model."""
        products = self._slopes @ plane.slope
        self.planes.append(plane)
        self.added += 1
        self.a, self._unused = np.append(self.a, 0.0), np.append(self._unused, 0)
        self._slopes = np.vstack([self._slopes, plane.slope])
        self._gram = np.pad(self._gram, (0, 1))
        self._gram[-1, :-1] = self._gram[:-1, -1] = products
        self._gram[-1, -1] = float(plane.slope @ plane.slope)

    def minimise(self) -> tuple[np.ndarray, np.ndarray]:
        """Minimise 1/2 |w|^2 + model; drop the planes of dual variable 0 in more than `idle` minimisations in a row.

        Returns
        -------
        w : ndarray of shape (size,)
        alpha : ndarray of shape (n,)
            Dual variables of the rows, c_i sum a_p theta_pi.
        """
        heights, settings = self.heights, self.settings
        for _ in range(settings.max_proximal_steps):
            self.a = proximal_step_on_simplex(self._gram, heights, self.a, settings)
            w = self.a @ self._slopes
            square = float(w @ w)
            # (1/2 |w|^2 + model) - (h'a - 1/2 |w|^2)
            gap = square + max(float((heights - self._slopes @ w).max()), 0.0) - float(heights @ self.a)
            if gap <= settings.end_gap * square:
                break
        self._unused = np.where(self.a > 0.0, 0, self._unused + 1)  # minimisations in a row with a = 0
        self._unused[0] = 0
        kept = self._unused <= self.idle
        if not kept.all():
            self.planes = [plane for plane, stays in zip(self.planes, kept, strict=True) if stays]
            self.a, self._unused, self._slopes = self.a[kept], self._unused[kept], self._slopes[kept]
            self._gram = self._gram[np.ix_(kept, kept)]
        used = np.flatnonzero(self.a)
        alpha = np.zeros(self.hinge.caps.size)
        for p in used:
            alpha += self.a[p] * self.planes[p].theta(alpha.size)
        return self.a[used] @ self._slopes[used], self.hinge.caps * np.minimum(alpha, 1.0)


def proximal_step_on_simplex(
    gram: np.ndarray, heights: np.ndarray, start: np.ndarray, settings: Settings = SETTINGS
) -> np.ndarray:
    """Return a proximal step from `start` to the minimiser of 1/2 a' gram a - heights'a over the simplex.

    A primal active-set method: solve on the support; if the solution leaves the simplex, go to its boundary and drop
    the planes whose coefficient became zero; else add the plane of the most negative reduced cost. The objective falls
    in every iteration, so that no support is repeated. Planes are divided by their heights, so that all heights are
    one: with the scaled coefficients a_p h_p and r = 1 / h, the simplex is r'a = 1. The first plane is zero, and its
    coefficient is one minus the sum of the others.

    Parameters
    ----------
    gram : ndarray of shape (k, k)
        Products of the slopes.
    heights, start : ndarray of shape (k,)
    settings : Settings
    """
    h = np.append(1.0, heights[1:])
    G = gram / h / h[:, None]
    min_ridge = settings.min_ridge / (float(h[1:].max(initial=0.0)) or 1.0)
    ridge = max(settings.ridge * float(G.diagonal().max()), min_ridge)
    G[np.diag_indices_from(G)] += ridge
    a, r = start * h, 1.0 / h
    # minimise 1/2 a'Ga - q'a, with the term ridge / 2 |a - start|^2 in G and q
    q = ridge * a + 1.0
    q[0] = 0.0
    support = np.flatnonzero(a > 0.0)
    # A limit against endless iterations by rounding: a round value; not tuned.
    for _ in range(10 * a.size + 100):
        z, level = _solve_on_support(G, q, r, support, settings.refinements)
        if (z >= 0.0).all():
            a = np.zeros(a.size)
            a[support] = z
            reduced = G[:, support[support > 0]] @ z[support > 0] - q + level * r
            reduced[0] = level * a.sum()  # in the units of the others
            reduced[support] = 0.0
            best = int(np.argmin(reduced))
            if reduced[best] >= -ROUNDING * (1.0 + float(G.diagonal().max()) * float(a[1:].sum())):
                break
            support = np.append(support, best)
        else:
            current = a[support]
            with np.errstate(divide="ignore", invalid="ignore"):
                steps = np.where(z < 0.0, current / (current - z), np.inf)
            t = float(steps.min())
            if t == 0.0:  # the last plane was added by rounding alone
                break
            moved = np.maximum(current + t * (z - current), 0.0)
            moved[steps <= t] = 0.0
            a = np.zeros(a.size)
            a[support] = moved
            support = support[moved > 0.0]
    a = a / h
    return a / a.sum()


def _solve_on_support(
    G: np.ndarray, q: np.ndarray, r: np.ndarray, support: np.ndarray, refinements: int
) -> tuple[np.ndarray, float]:
    """Return (z, level) with G z - q + level r = 0 on the support and r'z = 1.

    `level` is the multiplier of r'z = 1. If the zero plane (index 0) is in the support, level is 0 and its coefficient
    is one minus r'z of the others.

    Parameters
    ----------
    G : ndarray of shape (k, k)
    q, r : ndarray of shape (k,)
    support : ndarray of int
    refinements : int
        Steps of iterative refinement.
    """
    planes = support > 0
    p, z, level = support[planes], np.ones(support.size), 0.0
    if p.size:
        part, r = G[np.ix_(p, p)], r[p]
        factor = _linalg.cho_factor(part, check_finite=False)
        y = _linalg.cho_solve(factor, r, check_finite=False)
        found = np.zeros(p.size)
        for _ in range(1 + refinements):  # x and level y, with y = G^-1 r, may be huge, and cancel
            x = _linalg.cho_solve(factor, q[p] - part @ found - level * r, check_finite=False)
            length = float(r @ y)
            more = (float(r @ (found + x)) - 1.0) / length if planes.all() and length > 0.0 else 0.0
            found, level = found + x - more * y, level + more
        z[planes] = found
        z[~planes] = 1.0 - float(r @ found)
    return z, level
