"""The proximal-point method on the dual of the hinge, each of its problems by a semismooth Newton method.

With dual variables as shares s_i of their caps c_i, the next shares maximise ::

    dual(c s) - sum c_i (s_i - near_i)^2 / (2 sigma)

near_i being the last shares. As a problem in w this smooths the hinge of each row within 1 / sigma of its breakpoint:
s_i = near_i + sigma (1 - margin_i), clipped to [0, 1] (`semismooth`). A Newton step passes twice over the rows and
needs products of columns over active rows alone, soon about as many as there are columns: n d + k d^2 operations,
where a step of an interior-point method takes n d^2. A larger sigma needs fewer problems, and more steps for each; it
rises while more rows are active than there can be at the optimum, and fast once the active set is that of the optimum.

References
----------
R. T. Rockafellar, "Augmented Lagrangians and applications of the proximal point algorithm in convex programming",
Math. Oper. Res. 1, 1976; X. Li, D. Sun, K.-C. Toh, "A highly efficient semismooth Newton augmented Lagrangian method
for solving Lasso problems", SIAM J. Optim. 28, 2018; Y. Yan, Q. Li, "An efficient augmented Lagrangian method for
support vector machine", Optim. Methods Softw. 35, 2020.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from ...problem.problem import Problem
from .centred_rows import CentredRows, centred_rows
from .iterate import Reached
from .semismooth import Rules, SemismoothNewton
from .semismooth_steps import COUNT, ENDED, FAILED, STEEPNESS, TOTAL, UNCHANGED, accept_shares


@dataclass(frozen=True)
class Settings:
    """Numerical settings of the proximal-point method.

    Values without a figure are those that the data sets of docs/regimes.md were solved with; they are no optimum.
    """

    max_steps: int = 200  # of Newton's method, over all problems; 15 to 60 are usual
    # the first sigma: this, or less, so that dual variables sum to no more than `max_first_sum` at slacks of one
    first_sigma: float = 0.25
    max_first_sum: float = 1e4
    # growth of sigma from problem to problem: the first while more than `many` rows a column are active (the optimum
    # has about one), or while problems take at most `easy_steps` steps; else the second, and its root after a problem
    # of more than `long` steps. Below this growth problems become too many, above it each takes too many steps.
    fast_growth: float = 7.0
    growth: float = 2.0
    many: float = 4.0
    easy_steps: int = 2
    long: int = 4
    # the largest sigma at caps of one; slacks are smaller where caps are
    max_sigma: float = 1e5
    # once a problem ends with the active set that its last Hessian had, and a gap of `known_gap`: growth of sigma, the
    # factor by which it rises with each such problem, and the limit as a multiple of the largest sigma
    known_gap: float = 1e-5
    jump: float = 30.0
    jump_growth: float = 10.0
    beyond: float = 1e4
    # a problem is solved at this share of its first gradient, or at this share of sum alpha_i, which is rounding
    solved: float = 0.1
    rounding: float = 1e-14
    # share of the slope at its start at which a line search ends: the next step corrects what it leaves
    line_search: float = 0.05
    # an iterate is yielded for a certificate when its gap is `first_gap`, then when it is `report_share` of the last
    first_gap: float = 1e-2
    report_share: float = 0.1
    # The end: at a gap of `end_gap` a problem moved slacks by `still`, as a share of 1 + |z|_1, or by `nearly_still`
    # and no longer halves this; or `idle` problems in a row did not lower the gap.
    end_gap: float = 1e-9
    still: float = 1e-15
    nearly_still: float = 1e-12
    idle: int = 3


SETTINGS = Settings()


class Start(NamedTuple):
    """A start: (w, b), the dual variables as shares of their caps, and the first sigma."""

    w: np.ndarray
    b: float
    shares: np.ndarray
    sigma: float


def proximal_points(
    problem: Problem,
    X: Any,
    y: np.ndarray,
    weights: np.ndarray,
    interrupted: Callable[[], bool] = lambda: False,
    tol: float = 0.0,
    start: Start | None = None,
    settings: Settings = SETTINGS,
) -> Iterator[Reached]:
    """Yield iterates for the hinge at p = 2 that converge to the optimum.

    Parameters
    ----------
    problem : Problem
    X : ndarray or CSR matrix of shape (n, d), or CentredRows of it
    y : ndarray of shape (n,), entries -1.0 and 1.0
    weights : ndarray of shape (n,), positive
        Sample weights.
    interrupted : callable
        Whether to stop. Called before every step, and while one is computed.
    tol : float, default=0
        A relative gap: the first iterate within it is yielded at once.
    start : Start, default=None
        None: w = 0, and a sigma at which the slacks of all rows count.
    settings : Settings
    """
    rows = centred_rows(problem, X)
    caps = problem.caps(weights) * rows.unit**2
    if not caps.min() > 0.0:  # in units as large as these
        return
    state = _State(rows, y, caps, interrupted, settings)
    state.start_at(start)
    yielded, active, near, steps = settings.first_gap / settings.report_share, None, False, 0
    while steps < settings.max_steps and state.status != FAILED:
        stop, gap = interrupted(), state.gap
        within = not near and 0.0 < gap <= tol
        if within:
            near, yielded = True, min(gap, yielded)
            yield state.iterate(tol)
        if stop or state.status == ENDED:
            report = gap <= settings.report_share * yielded
            if gap <= settings.first_gap:
                report |= active is not None and np.array_equal(active, state.active)
                active = state.active.copy()
            end = state.accept_shares() or stop
            if end or (report and not within):
                yielded = min(gap, yielded)
                yield state.iterate(tol)
            if end:
                return
            state.next_problem()
        steps += max(1, state.solve(settings.max_steps - steps, -1.0 if near else tol))
    yield state.iterate(tol)


class _State(SemismoothNewton):
    """The iterate of the current proximal problem."""

    def __init__(
        self,
        rows: CentredRows,
        y: np.ndarray,
        caps: np.ndarray,
        interrupted: Callable[[], bool],
        settings: Settings = SETTINGS,
    ) -> None:
        rules = Rules(settings.line_search, settings.solved, settings.rounding)
        super().__init__(rows, y, caps, 1.0, interrupted, rules)
        self.settings = settings
        self._max_sigma = settings.max_sigma * max(1.0, 1.0 / float(caps.sum()))
        self._jump, self._moved = settings.jump, np.inf
        self._least, self._idle = np.inf, 0

    def start_at(self, start: Start | None) -> None:
        """Begin at a start, or at w = 0 with dual variables that balance."""
        if start is None:
            self.near[:], self.sigma = first_shares(self.rows.problem, self.y, self.costs, self.settings)
            self.slack[:] = 1.0
        else:
            self.near[:], self.sigma = start.shares, start.sigma
            self.z[:] = self.rows.coordinates(start.w, start.b)
            self.set_slack()
        self._taken = 0
        self.begin()
        self.advance(0)

    def iterate(self, tol: float) -> Reached:
        """Return the point in the problem's own units."""
        return Reached(*self.rows.primal(self.z), self.alpha(), self.gap, tol > 0.0 and self.gap <= tol)

    def solve(self, max_steps: int, goal: float) -> int:
        """Go on with the current problem; return how many steps were taken."""
        taken = self.advance(max_steps, goal or -1.0)
        self._taken += taken
        return taken

    def accept_shares(self) -> bool:
        """Let the next problem be near the present shares; return whether these are the optimum to rounding."""
        settings, last = self.settings, self._moved
        self._moved, length = accept_shares(self.sigma, self.data, self.vectors)
        gap = self.gap
        self._idle = 0 if gap < self._least else self._idle + 1
        self._least = min(gap, self._least)
        if self._least > settings.end_gap:
            return False
        still = self._moved <= settings.still * length or (
            self._moved <= settings.nearly_still * length and self._moved > 0.5 * last
        )
        optimal = still and self.values[STEEPNESS] <= settings.rounding * self.values[TOTAL]
        return optimal or self._idle >= settings.idle

    def next_problem(self) -> None:
        """Raise sigma, and begin the next problem."""
        settings, limit, active = self.settings, self._max_sigma, int(self.values[COUNT])
        known = self.gap <= settings.known_gap
        if known:
            self.set_slack()
        if known and self.values[UNCHANGED]:
            growth, limit = self._jump, settings.beyond * limit
            self._jump *= settings.jump_growth
        else:
            self._jump = settings.jump
            fast = active > settings.many * self.rows.size or self._taken <= settings.easy_steps
            growth = settings.fast_growth if fast else settings.growth
            if active == self.y.size:  # nothing has been clipped yet
                growth *= settings.fast_growth
            growth = growth if self._taken <= settings.long else growth**0.5
        self.sigma = max(self.sigma, min(growth * self.sigma, limit))
        # Slacks that are not quite zero, times a larger sigma, would clip most active shares, which come back one by
        # one: the first step goes where it would without clipping.
        self._taken = 0
        self.begin(frozen=active < self.y.size)


def first_shares(
    problem: Problem, y: np.ndarray, caps: np.ndarray, settings: Settings = SETTINGS
) -> tuple[np.ndarray, float]:
    """Return shares of caps at which dual variables balance, as a start at w = 0, and the first sigma."""
    total, signed = float(caps.sum()), float(caps @ y)
    sigma = min(settings.first_sigma, settings.max_first_sum / total)
    positive, negative = total + signed, total - signed
    if not (problem.free and positive > 0.0 and negative > 0.0):
        return np.full(y.size, 2.0 * sigma), sigma
    heavier = np.where(y > 0.0, min(1.0, negative / positive), min(1.0, positive / negative))
    return 2.0 * sigma * heavier, sigma
