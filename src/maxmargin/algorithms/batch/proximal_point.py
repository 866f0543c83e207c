"""The proximal-point method on the dual of the hinge; a semismooth Newton method solves each proximal problem.

With the dual variables alpha_i = c_i share_i, as shares of their caps c_i, the next shares maximise ::

    dual(alpha) - sum c_i (share_i - prox_i)^2 / (2 sigma)

where prox_i are the last shares. As a problem in w, this smooths the hinge of each row within 1 / sigma of its
breakpoint: share_i = prox_i + sigma (1 - margin_i), clipped to [0, 1] (`semismooth`). A Newton step passes twice over
the rows, and needs products of columns only over the k active rows, soon about as many as there are columns. It costs
n d + k d^2 operations, where a step of an interior-point method costs n d^2. With a larger sigma there are fewer
problems, with more steps each. sigma grows fast while more rows are active than at the optimum, and once the active set
is that of the optimum.

References
----------
R. T. Rockafellar, "Augmented Lagrangians and applications of the proximal point algorithm in convex programming",
Math. Oper. Res. 1, 1976; X. Li, D. Sun, K.-C. Toh, "A highly efficient semismooth Newton augmented Lagrangian method
for solving Lasso problems", SIAM J. Optim. 28, 2018; Y. Yan, Q. Li, "An efficient augmented Lagrangian method for
support vector machine", Optim. Methods Softw. 35, 2020.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np

from ...problem.problem import Problem
from ..linear_algebra.centred_rows import centred_rows
from .iterate import Reached
from .semismooth import Rules, SemismoothNewton
from .semismooth_steps import CONVERGED, FAILED, GOES_ON, SIGMA, TAKEN, next_problem, solve_problems

# A more exact solution of a problem takes steps that do not save any in the next one; the next Newton step corrects the
# error of a line search. Chosen on the data sets of benchmarks.before_after.
RULES = Rules(line_search_slope=0.05, gradient_share=0.1, gradient_rounding=1e-14)


class Settings(NamedTuple):
    """Numerical settings of the proximal-point method, which compiled code reads too.

    Values without a measurement were chosen on the data sets of benchmarks.before_after, and not tuned further.
    """

    max_steps: int = 200  # Newton steps over all problems; 15 to 60 are usual
    # The first sigma, or less where the caps are large: sigma sum c_i, about sum alpha_i at slacks of one, is at most
    # `max_first_sum`. A larger sigma takes more steps for the first problem, a smaller one more problems.
    first_sigma: float = 0.25
    max_first_sum: float = 1e4
    # Growth of sigma from problem to problem: `fast_growth` while more than `many_active` rows for each column are
    # active (the optimum has about one) or the last problem took at most `easy_steps` steps; otherwise `growth`. It is
    # multiplied by `fast_growth` while all rows are active. After a problem of more than `long_steps` steps, its square
    # root is used. With a smaller growth there are more problems, with a larger one each takes more steps.
    fast_growth: float = 7.0
    growth: float = 2.0
    many_active: float = 4.0
    easy_steps: int = 2
    long_steps: int = 4
    # The largest sigma where the caps sum to one or more; it is larger in proportion where they sum to less.
    max_sigma: float = 1e5
    # The active set counts as that of the optimum after a problem that ends at a gap of at most `known_set_gap` with
    # the active set of its last Hessian. Then sigma grows by `known_set_growth`, times `more_growth` for each such
    # problem in a row before; its limit is `beyond_max_sigma` times the usual one. If the active set is right, larger
    # numbers save problems; if not, they cost steps.
    known_set_gap: float = 1e-5
    known_set_growth: float = 30.0
    more_growth: float = 10.0
    beyond_max_sigma: float = 1e4
    rules: Rules = RULES
    # The solution of a problem is yielded, to be certified, when its gap is at most `first_report_gap`, then when it is
    # at most `report_share` times that of the last one yielded. Smaller values save certificates, and passes of sifting
    # over all rows, and end later at `tol`.
    first_report_gap: float = 1e-4
    report_share: float = 0.1
    # The iteration ends, at a gap of at most `end_gap`, when a problem changed the slacks by at most `min_change` times
    # (1 + |z|_1), or by at most `min_stalled_change` times that and by more than half of the last change; or when
    # `max_idle` problems in a row did not reduce the gap. Smaller changes and a larger `max_idle` take steps that
    # change rounding errors only.
    end_gap: float = 1e-9
    min_change: float = 1e-15
    min_stalled_change: float = 1e-12
    max_idle: int = 3


SETTINGS = Settings()


class Start(NamedTuple):
    """A warm start: (w, b), the dual variables as shares of their caps, of shape (n,), and the first sigma."""

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
        Whether to stop; called before and during every step.
    tol : float, default=0
        A relative gap; the first iterate within it is yielded at once.
    start : Start, default=None
        None: w = 0, and a sigma at which all rows are active.
    settings : Settings
    """
    rows = centred_rows(problem, X)
    caps = problem.caps(weights) * rows.unit**2
    if not caps.min() > 0.0:  # underflow, in units as large as these
        return
    state = _State(rows, y, caps, 1.0, interrupted, settings)
    state.start_from(start)
    # gap of the last point yielded, at first such that a gap of `first_report_gap` is reported; the active set of the
    # last problem within that gap; whether a point within `tol` has been yielded
    yielded, active, near, steps = settings.first_report_gap / settings.report_share, None, False, 0
    while steps < settings.max_steps and state.status != FAILED:
        stop, gap = interrupted(), state.gap
        within = not near and 0.0 < gap <= tol
        if within:
            near, yielded = True, min(gap, yielded)
            yield state.iterate(tol)
        if stop or state.status != GOES_ON:
            report = gap <= settings.report_share * yielded
            if gap <= settings.first_report_gap:
                # the active set of the last problem again: likely that of the optimum
                report |= active is not None and np.array_equal(active, state.active)
                active = state.active.copy()
            end = stop or state.next_problem()
            if end or (report and not within):
                yielded = min(gap, yielded)
                yield state.iterate(tol)
            if end:
                return
        steps += max(1, state.solve(settings.max_steps - steps, -1.0 if near else tol))
    yield state.iterate(tol)


class _State(SemismoothNewton):
    """The iterate of the current proximal problem."""

    def start_from(self, start: Start | None) -> None:
        """Begin at a warm start, or at w = 0 with balanced dual variables."""
        if start is None:
            self.prox[:], self.sigma = first_shares(self.rows.problem, self.y, self.costs, self.settings)
            self.slack[:] = 1.0
        else:
            self.prox[:], self.sigma = start.shares, start.sigma
            self.z[:] = self.rows.coordinates(start.w, start.b)
            self.set_slack()
        max_sigma = self.settings.max_sigma * max(1.0, 1.0 / float(self.costs.sum()))
        # the entries SIGMA to TAKEN
        progress = [self.sigma, max_sigma, self.settings.known_set_growth, np.inf, np.inf, 0.0, 0.0]
        self._progress = np.array(progress)
        self.begin()
        self.advance(0)

    def iterate(self, tol: float) -> Reached:
        """Return the point in the problem's own units."""
        return Reached(*self.rows.primal(self.z), self.alpha(), self.gap, tol > 0.0 and self.gap <= tol)

    def solve(self, max_steps: int, goal: float) -> int:
        """Take steps on the current problem, at most `max_steps`, to the gap `goal`; return their number.

        On small dense rows, go on to the next problem while the gap is too large to be reported.
        """
        if self._small is None:
            taken = self.advance(max_steps, goal or -1.0)
            self._progress[TAKEN] += taken
            return taken
        task = self._small, self.settings, self._progress, self.free, self._begins, self._frozen
        self._begins = False
        taken = solve_problems(*task, min(max_steps, self._max_steps), goal or -1.0)
        self.sigma = float(self._progress[SIGMA])
        return taken

    def next_problem(self) -> bool:
        """Set prox to the present shares, increase sigma and begin the next problem; return whether there is none.

        The slacks of active rows are small but not zero. Times a larger sigma they would clip most of these shares, and
        the rows would become active again one by one. The first step therefore leaves their shares unclipped.
        """
        if self.status != CONVERGED:
            next_problem(self.settings, self._progress, self.data, self.vectors, self.values)
            if self.gap <= self.settings.known_set_gap:
                self.set_slack()
            self.sigma = float(self._progress[SIGMA])
            self.begin(frozen=not self.active.all())
        return self.status == CONVERGED


def first_shares(
    problem: Problem, y: np.ndarray, caps: np.ndarray, settings: Settings = SETTINGS
) -> tuple[np.ndarray, float]:
    """Return shares of the caps for a start at w = 0, and the first sigma.

    All slacks are 1 there. The shares are 2 sigma, reduced in the heavier class where the intercept is free, so that
    sum y_i c_i share_i = 0.
    """
    total, signed = float(caps.sum()), float(caps @ y)
    sigma = min(settings.first_sigma, settings.max_first_sum / total)
    positive, negative = total + signed, total - signed
    if not (problem.free and positive > 0.0 and negative > 0.0):
        return np.full(y.size, 2.0 * sigma), sigma
    heavier = np.where(y > 0.0, min(1.0, negative / positive), min(1.0, positive / negative))
    return 2.0 * sigma * heavier, sigma
