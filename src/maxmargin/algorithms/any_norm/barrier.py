"""A primal barrier method for every p, both losses, both powers of the norm and the hard margin.

The cone |w|_q <= t is written as one cone for each coordinate, |w_j| <= r_j^a t^(1 - a) with a = 1/q, and
sum r_j <= t. Each has a self-concordant barrier for every p, so that the number of Newton steps hardly depends on p.
With m_i the margins and the slacks eliminated in closed form (`_hinge` and the others), the point of the central path
at the parameter tau minimises::

    tau (t^2 / 2 or t) + sum phi_i(m_i) - log(t - sum r)
        - sum_j [log(r_j^2a t^(2-2a) - w_j^2) + (1-a) log r_j + a log t]

(hard margin: t = 1, and -tau g in place of tau t^2 / 2, g being the smallest margin). At p = 1 there is no r and
|w_j| <= t; at p = inf, |w_j| <= r_j. Dual variables are -phi_i' / tau, and the gap is about nu / tau, nu being the
number of barriers. Newton's method uses relative steps, ``dr_j / r_j``, ``dt / t`` and ``dw_j / (r_j^a t^(1-a))``, for
which the numbers are near 1.

References
----------
Y. Nesterov, A. Nemirovskii, "Interior-point polynomial algorithms in convex programming", SIAM, 1994;
R. Chares, "Cones and interior-point algorithms for structured convex optimization involving powers and exponentials",
thesis, Louvain, 2009.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from ...problem.problem import Problem
from ...solvers.iterate import Point
from ...solvers.linear_systems import TINY, column_squares, solver, times_columns
from ...solvers.rows import UnitRows


@dataclass(frozen=True)
class Settings:
    """Numerical settings, chosen on the data sets of benchmarks.before_after where they have no other source."""

    # Squared Newton decrement up to which a point counts as near the path: below 1 Newton's method converges
    # quadratically. A smaller number costs more steps for each point, and makes its dual variables more accurate.
    near_decrement: float = 0.25
    # Growth of tau from point to point. A larger one makes fewer points, and more Newton steps for each. It doubles
    # after a point of at most `easy_steps` steps, and halves after one of at least `hard_steps`.
    first_growth: float = 10.0
    min_growth: float = 2.0
    max_growth: float = 100.0
    easy_steps: int = 4
    hard_steps: int = 10
    # Newton steps of a point at most, where 3 to 10 are usual; and of the first point, where 10 to 60 are usual.
    max_steps: int = 20
    max_first_steps: int = 300
    # After a failed point the growth becomes its square root, unless it is below this: the path ends there.
    min_retry_growth: float = 1.1
    max_trials: int = 40  # trial lengths of one line search, at most: 0.7^40 is about 1e-6
    # Factor of a trial length outside the domain, and fraction of the longest trial inside it that is taken: a point
    # near the boundary costs many Newton steps.
    shorten: float = 0.7
    inside_share: float = 0.5
    # First bound t of |w|, for rows of length one, above which the second start takes a larger tau (`_Path.start`).
    large_bound: float = 10.0
    max_refinements: int = 6  # of a linear system, at most: they end where the residual no longer halves
    slope_rounding: float = 1e-3  # a slope that counts as zero: the slopes of single barriers are about one
    gap_rounding: float = 1e-13  # nu / tau, relative to the objective, at which the path ends


SETTINGS = Settings()


def path_points(
    problem: Problem,
    X: Any,
    y: np.ndarray,
    weights: np.ndarray,
    interrupted: Callable[[], bool] = lambda: False,
    settings: Settings = SETTINGS,
) -> Iterator[Point]:
    """Yield points along the central path; tau rises until the gap is rounding.

    Parameters
    ----------
    problem : Problem
    X : ndarray or CSR matrix of shape (n, d)
        A few thousand rows or columns at most: a step costs n d min(n, d). Sparse rows whose dense copy would be far
        larger than their entries stay sparse, and their columns are not centred.
    y : ndarray of shape (n,), entries -1.0 and 1.0
        Both classes, where the intercept is free.
    weights : ndarray of shape (n,)
        Sample weights, all positive.
    interrupted : callable
        Returns whether to stop; called before every step.
    settings : Settings

    Yields
    ------
    Point
        In the caller's units; dual variables are within their caps and, up to rounding, balanced.
    """
    rows = UnitRows.of(problem, X, y, weights)
    path = _Path(problem, rows.A, y, rows.costs, interrupted, settings)
    for point in path.points():
        yield rows.restored(point)


class Losses(NamedTuple):
    """Derivatives phi_i'(m_i) and phi_i''(m_i) of the smoothed losses of all rows, each of shape (n,)."""

    slope: np.ndarray
    curvature: np.ndarray


def _margin_barrier(m: np.ndarray, k: np.ndarray) -> Losses:
    """Return the derivatives of phi(m) = -log m, for the hard margin; m is the margin minus g, and k is not used."""
    return Losses(-1.0 / m, 1.0 / (m * m))


def _hinge(m: np.ndarray, k: np.ndarray) -> Losses:
    """Return the derivatives of phi(m) = min over xi of k xi - log xi - log(m + xi - 1), with k = tau c.

    With h = k (1 - m), s = m + xi - 1 is (2 + sqrt(h^2 + 4) - h) / (2 k); phi' = -1 / s.
    """
    h = k * (1.0 - m)
    root = np.hypot(h, 2.0)
    less = np.where(h > 0.0, 4.0 / (root + np.abs(h)), root - h)  # root - h, without cancellation
    s = (2.0 + less) / (2.0 * k)
    return Losses(-1.0 / s, 0.5 * less / (root * s * s))


def _squared_hinge(m: np.ndarray, k: np.ndarray) -> Losses:
    """Return the derivatives of phi(m) = min over xi of k xi^2 - log(m + xi - 1), with k = tau c.

    With e = 1 - m, s = m + xi - 1 is (sqrt(e^2 + 2 / k) - e) / 2; phi' = -1 / s.
    """
    e = 1.0 - m
    root = np.sqrt(e * e + 2.0 / k)
    # for e > 0 the equal form without cancellation
    s = np.where(e > 0.0, (1.0 / k) / (root + np.abs(e)), 0.5 * (root - e))
    return Losses(-1.0 / s, 1.0 / (s * root))


@dataclass(frozen=True)
class State:
    """A point in the domain of the barriers, or a step.

    Attributes
    ----------
    w : ndarray of shape (d,)
    r : ndarray of shape (d,), or (0,) at p = 1
    t : float
    f : ndarray of shape (0,), (1,) or (2,)
        b, if the intercept is free, and g, if the margin is hard.
    """

    w: np.ndarray
    r: np.ndarray
    t: float
    f: np.ndarray

    def moved(self, s: float, step: State) -> State:
        """Return the point self + s step."""
        return State(self.w + s * step.w, self.r + s * step.r, self.t + s * step.t, self.f + s * step.f)


@dataclass(eq=False)
class _Path:
    """The central path of one problem. Rows are y_i x_i, divided by the largest p-norm of a row."""

    problem: Problem
    A: Any  # ndarray or CSR matrix of shape (n, d)
    y: np.ndarray
    costs: np.ndarray  # of the slacks in the objective, of shape (n,); not used for the hard margin
    interrupted: Callable[[], bool]
    settings: Settings

    def __post_init__(self) -> None:
        problem, (self.n, self.d) = self.problem, self.A.shape
        self.a = 1.0 / problem.q if problem.q < np.inf else 0.0  # the exponent of the cones
        between = 0.0 < self.a < 1.0
        self.split = self.a > 0.0  # whether there is an r
        # weights of log r_j and log t
        self.log_r, self.log_t = (1.0 - self.a, self.a) if between else (0.0, 0.0)
        # margins are A w + F f
        columns = ([self.y] if problem.free else []) + ([-np.ones(self.n)] if problem.hard else [])
        self.F = np.column_stack(columns) if columns else np.zeros((self.n, 0))
        self.phi: Callable[[np.ndarray, np.ndarray], Losses] = (
            _margin_barrier if problem.hard else _hinge if problem.loss == "hinge" else _squared_hinge
        )
        # the number of logarithms, of which the hinge has two for each row
        self.nu = (3.0 if between else 2.0) * self.d + 1.0 + self.n * (2.0 if self.phi is _hinge else 1.0)

    def start(self, raise_tau: bool) -> tuple[State, float]:
        """Return a first state, with w = 0, and a first tau.

        Hard margin: tau = nu and g = -1. Soft margin: tau = nu / sum of the costs, with which the objective at w = 0 is
        about as large as the barriers. The first bound of |w| is t = ((d + 1) / tau)^(1 / power). With `raise_tau`, tau
        is raised to its geometric mean with d / large_bound^power, if that is larger, so that the point of the path has
        a smaller |w|.
        """
        f = np.zeros(self.F.shape[1])
        if self.problem.hard:
            f[-1] = -1.0
            tau, t = self.nu, 1.0
        else:
            power = self.problem.power
            tau, larger = (
                self.nu / max(float(self.costs.sum()), TINY),
                self.d / self.settings.large_bound**power,
            )
            # the geometric mean: at the larger tau itself the start would be too far from the path
            if raise_tau and tau < larger:
                tau = (tau * larger) ** 0.5
            t = ((self.d + 1.0) / tau) ** (1.0 / power)
        r = np.full(self.d if self.split else 0, 0.5 * t / self.d)
        return State(np.zeros(self.d), r, t, f), tau

    def points(self) -> Iterator[Point]:
        """Yield points near the path for rising tau, in units of its rows, from the first start that converges."""
        for raise_tau in (False, True):
            found = False
            for point in self.follow(*self.start(raise_tau)):
                found = True
                yield point
            if found:
                return

    def follow(self, state: State, tau: float) -> Iterator[Point]:
        """Yield points near the path for rising tau, from one start.

        A point that fails is computed again from the last one, with the square root of the growth of tau.
        """
        settings, last, steps, length = self.settings, None, 0, 1.0
        growth = settings.first_growth
        while not self.interrupted():
            local = _Local(self, state, tau)
            try:
                step, change = local.newton()
            except np.linalg.LinAlgError:
                return
            decrement = -local.along(step)  # squared
            if not decrement > -settings.near_decrement:  # nan, or dominated by rounding
                return
            moved = self.search(state, step, tau, abs(decrement), length)
            steps, length = steps + 1, 1.0
            max_steps = settings.max_first_steps if last is None else settings.max_steps
            # no convergence: start again from the last point, with a smaller growth
            if moved is None or (steps >= max_steps and decrement > settings.near_decrement):
                if last is None or growth < settings.min_retry_growth:
                    return
                growth = growth**0.5
                (state, tau), steps, length = (last[0], last[1] * growth), 0, 1.0 / growth
                continue
            state = moved
            if decrement > settings.near_decrement:
                continue
            # near the path: alpha_i = -(phi_i' + phi_i'' dm_i) / tau of the linear model is balanced
            alpha = np.maximum(-(local.losses.slope + local.losses.curvature * change) / tau, 0.0)
            if self.problem.loss == "hinge" and not self.problem.hard:
                alpha = np.minimum(alpha, self.costs)
            yield Point(state.w, float(state.f[0]) if self.problem.free else 0.0, alpha)
            if self.nu / tau < settings.gap_rounding * self.value(alpha):
                return
            growth = min(growth * 2.0, settings.max_growth) if steps <= settings.easy_steps else growth
            growth = max(growth / 2.0, settings.min_growth) if steps >= settings.hard_steps else growth
            # slacks fall as 1 / tau, so that the first length tried is 1 / growth
            last, tau, steps, length = (state, tau), tau * growth, 0, 1.0 / growth

    def value(self, alpha: np.ndarray) -> float:
        """Return an estimate of the objective by dual variables: sum alpha, or 1 / sum alpha for the hard margin."""
        total = float(alpha.sum())
        return 1.0 / max(total, TINY) if self.problem.hard else total

    def search(self, state: State, step: State, tau: float, slope: float, s: float) -> State | None:
        """Return the point of a line search along Newton's step, or None where it fails.

        A length is accepted where the derivative along the step is at most slope / 2 + slope_rounding. Otherwise the
        next length is where the derivative is zero by linear interpolation. The first length is s; `slope` is minus
        the derivative at `state`, which is the squared Newton decrement.
        """
        damped = 1.0 / (1.0 + slope**0.5)  # the damped Newton step, which stays in the domain
        for _ in range(self.settings.max_trials):
            new = state.moved(s, step)
            if not self.inside(new):
                if s <= damped:  # possible by rounding only
                    s *= self.settings.shorten
                    continue
                while s > damped and not self.inside(state.moved(s, step)):
                    s *= self.settings.shorten
                s = max(self.settings.inside_share * s, min(damped, s))
                continue
            after = _Local(self, new, tau).along(step)
            if after <= 0.5 * slope + self.settings.slope_rounding:
                return new
            s *= min(max(slope / (slope + after), 0.1), 0.9)
        return None

    def inside(self, state: State) -> bool:
        """Return whether a state is in the domain of all barriers."""
        w, r, t = state.w, state.r, state.t
        if not t > 0.0 or (self.split and not (r.min() > 0.0 and t > r.sum())):
            return False
        if not (np.abs(w) < self.bounds(state)).all():
            return False
        return not self.problem.hard or bool((self.margins(state) > 0.0).all())

    def bounds(self, state: State) -> np.ndarray:
        """Return the bounds r_j^a t^(1 - a) of |w_j|, of shape (d,)."""
        return state.r**self.a * state.t ** (1.0 - self.a) if self.split else np.full(self.d, state.t)

    def margins(self, state: State) -> np.ndarray:
        """Return a_i.w + y_i b - g, of shape (n,), without the terms that the problem does not have."""
        return self.A @ state.w + self.F @ state.f


class _Local:
    """Gradient and Newton's step of the function that the path minimises at tau, at one state.

    Gradients are relative: slope_w_j = W_j dF/dw_j with W_j = r_j^a t^(1 - a) the bound of |w_j|,
    slope_r_j = r_j dF/dr_j, slope_t = t dF/dt; slope_f = dF/df. With x_j = w_j / W_j the barrier of a coordinate is
    -2 log W_j - log(1 - x_j^2) - (1 - a) log r_j - a log t; `rest` is 1 - x^2.
    """

    def __init__(self, path: _Path, state: State, tau: float) -> None:
        self.path, self.state, self.tau = path, state, tau
        a, self.W = path.a, path.bounds(state)
        x = state.w / self.W
        x2, rest = x * x, (1.0 - np.abs(x)) * (1.0 + np.abs(x))
        self.x, self.x2, self.rest = x, x2, rest
        self.room = state.t - float(state.r.sum())  # the slack of sum r_j <= t
        self.losses = path.phi(path.margins(state), tau * path.costs)
        self.slope_w = 2.0 * x / rest + self.W * (path.A.T @ self.losses.slope)
        self.slope_f = path.F.T @ self.losses.slope
        self.slope_r = -2.0 * a / rest - path.log_r + state.r / self.room if path.split else state.r
        self.slope_t = 0.0
        if path.problem.hard:
            self.slope_f[-1] -= tau
        else:
            t = state.t
            self.slope_t = tau * t ** float(path.problem.power)
            self.slope_t += float(np.sum(-(2.0 - 2.0 * a) / rest - path.log_t))
            self.slope_t -= t / self.room if path.split else 0.0

    def along(self, step: State) -> float:
        """Return the derivative along a step."""
        slope = float(self.slope_w @ (step.w / self.W) + self.slope_f @ step.f)
        if self.path.split:
            slope += float(self.slope_r @ (step.r / self.state.r))
        return slope + self.slope_t * step.t / self.state.t

    def newton(self) -> tuple[State, np.ndarray]:
        """Return Newton's step, and the change of the margins by it, of shape (n,).

        r is eliminated. The curvature of log(t - sum r) has rank one; with one more unknown z for it, the second
        derivatives in r are diagonal. The system is K u + C v = p, C'u + S v = s for u = dw / W and the border
        v = (z, dt / t, db, dg), those of them that there are, with K = diag(curvature) + B' diag(phi'') B, B = A W.
        """
        path, state, x, x2, rest, a = self.path, self.state, self.x, self.x2, self.rest, self.path.a
        soft = not path.problem.hard
        B = times_columns(path.A, self.W)
        weight = self.losses.curvature
        curvature = 2.0 * (1.0 + x2) / rest**2
        right, t_side = -self.slope_w, -self.slope_t
        borders, diagonal, sides = [], [], []
        # second derivatives, relative: of r and r (rr), w and r (wr), r and t, t and t, w and t; ur, ut: derivatives of
        # -log(t - sum r) in r and t; dr_alone: the step of r for u = 0 and v = 0
        rr = wr = rt = ur = dr_alone = np.zeros(0)
        ut = tz = 0.0
        if path.split:
            rr = 2.0 * a * (1.0 + (2.0 * a - 1.0) * x2) / rest**2 + path.log_r
            wr, rt = -4.0 * a * x / rest**2, 4.0 * a * (1.0 - a) * x2 / rest**2
            ur, ut = state.r / self.room, -state.t / self.room if soft else 0.0
            # Schur complements by r: (curvature rr - wr^2) / rr, in a form without cancellation; wt and tt below alike
            curvature = (4.0 * a * (1.0 - (2.0 * a - 1.0) * x2) / rest**3 + path.log_r * curvature) / rr
            dr_alone = -self.slope_r / rr
            right, t_side = right - wr * dr_alone, t_side - float(rt @ dr_alone)
            tz = ut - float((rt / rr) @ ur)
            borders.append(-wr * ur / rr)
            diagonal.append(-1.0 - float(ur @ (ur / rr)))
            sides.append(-float(ur @ dr_alone))
        if soft:
            t, power = state.t, path.problem.power
            tt = (2.0 - 2.0 * a) * (1.0 + (1.0 - 2.0 * a) * x2) / rest**2 + path.log_t
            wt = -4.0 * (1.0 - a) * x / rest**2
            if path.split:
                wt = wt * (2.0 * a + path.log_r * rest) / (rest * rr)
                more = path.log_t * 2.0 * a * (1.0 + (2.0 * a - 1.0) * x2) / rest**2 + path.log_r * tt
                tt = (4.0 * a * (1.0 - a) * (1.0 + x2) / rest**3 + more) / rr
            borders.append(wt)
            diagonal.append(float(tt.sum()) + (self.tau * t * t if power == 2 else 0.0))
            sides.append(t_side)
        k = len(borders)
        corner = np.zeros((k + path.F.shape[1],) * 2)  # S
        corner[:k, :k] = np.diag(diagonal)
        if path.split and soft:
            corner[0, 1] = corner[1, 0] = tz
        corner[k:, k:] = path.F.T @ (weight[:, None] * path.F)
        C = np.column_stack([*borders, B.T @ (weight[:, None] * path.F)])
        solve = solver(B, weight, curvature)  # K^-1
        full = curvature + column_squares(B, weight)
        KC = solve(C)
        schur = corner - C.T @ KC
        side = np.concatenate([sides, -self.slope_f])

        def bordered(p: np.ndarray, s: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
            u = solve(p)
            z = np.linalg.solve(schur, s - C.T @ u) if s.size else s
            return u - KC @ z, z

        u, z = np.zeros(path.d), np.zeros(side.size)
        p, s, size = right, side, np.inf
        for _ in range(path.settings.max_refinements):
            du, dz = bordered(p, s)
            u, z = u + du, z + dz
            p = right - curvature * u - B.T @ (weight * (B @ u)) - C @ z
            s = side - C.T @ u - corner @ z
            before, size = size, float(np.abs(p / np.sqrt(full)).max() + np.abs(s).max(initial=0.0))
            if not size < 0.5 * before:
                break
        dt = float(z[k - 1]) if soft else 0.0
        dr = state.r
        if path.split:
            dr = state.r * (dr_alone - (wr * u + rt * dt + ur * z[0]) / rr)
        step = State(self.W * u, dr, state.t * dt, z[k:])
        return step, path.A @ step.w + path.F @ step.f
