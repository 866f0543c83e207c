"""Newton's method on partitioned rows, with the rows near the margin solved exactly in memory.

For soft margins at p = 2 with many rows and few columns. A pass over the rows computes, at the point z, the objective,
slope and curvature of the losses, and gathers the rows nearest to the margin (`sums`). The next point solves
the local model: gathered rows exactly, all others by their Taylor polynomial (`LocalModel`). The next pass evaluates
the objective there, and the dual objective of the dual variables that the step implies. So each pass gives a lower and
an upper bound.

Rows that are not gathered are assumed to stay on their side of the margin, and a trust region limits the step.

The start is the solution of a random sample. Usually 3 to 8 passes certify a gap of 1e-4, for C from 0.01 to 100.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from scipy.linalg import LinAlgError

from ..certificates.certificate import ImpliedDual
from ..certificates.row_pass import bound_of_dual, slopes
from ..data.rows import Patterns
from ..fit.best import Primal
from ..fit.deadline import Deadline
from ..fit.report import Stopping, Task
from ..fit.solve import solve
from ..numerics.sums import EPS, row_norms
from ..problem.problem import Problem
from ..solvers.linear_systems import Solve, factor
from .blocks import signs_of
from .passes import Block, Coordinates, Linearisation, Near, StepSums, Sums
from .sample import MAX_IDLE, DrawnRows, draw_rows

if TYPE_CHECKING:
    from .solve import PartitionedProblem, PassFit, Proof

# The literals below were chosen on adult, web, mnist and generated normal rows, with 5 and 10 % of the rows in memory
# and C in {0.01, 1, 100}, and not tuned further.


@dataclass(frozen=True, eq=False)
class NewtonQuery:
    """What a pass has to compute for a step.

    Attributes
    ----------
    positive : int
        The class against the rest.
    z : ndarray of shape (size,)
    width : float
        Width about the margin over which the hinge is smoothed for the curvature of the proximal term: four errors.
    last : Linearisation or None
        The step that led to z.
    mean_length : float
        The mean |x_i|. The distance of a row from the margin is |1 - m_i| / |x_i| times this mean, since the score of a
        longer row changes by more.
    nearest : int
        Rows to gather, at most.
    reach : float
        Distance up to which rows are gathered.
    """

    positive: int
    z: np.ndarray
    width: float
    last: Linearisation | None
    mean_length: float
    nearest: int
    reach: float

    def sums(self, block: Block) -> Sums:
        """Return the sums over the rows of a block, and the rows within reach of the margin."""
        problem, y = block.coordinates.problem, signs_of(block.rows, self.positive)
        margins = block.margins(y, self.z)
        slope, curvature = slopes(problem, margins, block.weights)
        if problem.loss == "hinge":
            inside = np.abs(1.0 - margins) < 0.5 * self.width
            curvature = np.where(inside, problem.C * block.weights / self.width, 0.0)
        dual = None
        if self.last is not None:
            dual = block.implied_sums(y, self.last, block.margins(y, self.last.z), margins)
        step = StepSums(
            block.coordinates.combine(block.X, slope * y), block.coordinates.products(block.X, curvature)
        )
        found = block.bound_sums(y, self.z, margins)
        return found._replace(dual=dual, near=self._near(block, margins), step=step)

    def _near(self, block: Block, margins: np.ndarray) -> Near:
        """Return the rows within reach of the margin."""
        distances = distances_of(margins, block.norms / self.mean_length)
        places = np.flatnonzero((distances <= self.reach) & (block.weights > 0.0))
        return block.near(places, distances[places], margins, self.nearest)


def distances_of(margins: np.ndarray, lengths: np.ndarray) -> np.ndarray:
    """Return the distances of rows from the margin, by their lengths relative to the mean length: shape (n,)."""
    return np.abs(1.0 - margins) / np.maximum(lengths, 0.1)  # or rows of tiny entries were never gathered


@dataclass(frozen=True, eq=False)
class LocalModel:
    """The problem of a step: rows near the margin exactly, all others by a quadratic function.

        minimise  1/2 z'Qz - p'z + sum over gathered rows of C s_i loss(y_i x_i.z)

    Q and p hold the penalty, the Taylor polynomial of the losses of all other rows, and a proximal term that
    limits the step. The dual variables of the gathered rows minimise 1/2 (p + B'a)'Q^-1 (p + B'a) + 1/2 a'Da - 1'a
    within their caps, the rows of B being y_i x_i: a quadratic program with as many columns as z has entries, which
    Mehrotra's predictor-corrector method (SIAM J. Optim. 2, 1992) solves in 10 to 30 steps for every C.

    Attributes
    ----------
    Q : ndarray of shape (size, size)
        Positive definite.
    p : ndarray of shape (size,)
    rows : ndarray of shape (k, size)
        The rows y_i x_i of B.
    D, caps : ndarray of shape (k,)
        1 / (2 C s_i) of the squared hinge, and C s_i of the hinge; 0 and inf for the other loss.
    """

    Q: np.ndarray
    p: np.ndarray
    rows: np.ndarray
    D: np.ndarray
    caps: np.ndarray

    def with_proximal_term(self, weight: float, metric: np.ndarray, centre: np.ndarray) -> LocalModel:
        """Add weight / 2 (z - centre)' metric (z - centre) to the objective, but for a constant."""
        Q, p = self.Q + weight * metric, self.p + weight * (metric @ centre)
        return LocalModel(Q, p, self.rows, self.D, self.caps)

    def solve(self, accuracy: float, interrupted: Callable[[], bool]) -> tuple[np.ndarray, np.ndarray] | None:
        """Return z, of shape (size,), and the dual variables of the gathered rows, of shape (k,); None if stopped.

        The iterations end once Q z = p + B'a up to 1e-6 of the largest entry of Q z and p, and the duality gap is
        `accuracy`. A tighter equation costs steps: any dual variables within their caps give a valid bound of the whole
        problem.

        Parameters
        ----------
        accuracy : float
            Duality gap, in the unit of the objective, at which the iterations end.
        interrupted : callable
            Whether to stop.
        """
        if not self.D.size:
            return np.linalg.solve(self.Q, self.p), np.zeros(0)
        # x = (a, caps - a), or a where there are no caps, with the multipliers s; `signs` is dx / da
        capped = bool(np.isfinite(self.caps).all())
        a = 0.5 * self.caps if capped else 0.5 / self.D
        x, signs = (np.stack([a, a]), np.array([[1.0], [-1.0]])) if capped else (a[None], np.ones((1, 1)))
        s, z, mu = np.ones_like(x), np.zeros(self.p.size), float(a.mean())
        # 15 to 30 steps are usual; nearly dependent columns of very different scales take more
        for _ in range(400):
            combined, penalised = self.rows.T @ x[0], self.Q @ z
            stationarity = penalised - combined - self.p
            scale = max(float(np.abs(self.p).max()), float(np.abs(penalised).max()))
            accurate = float(np.abs(stationarity).max()) <= 1e-6 * scale
            if (accurate and mu * x.size <= accuracy) or interrupted() or not 0.0 < mu < np.inf:
                break
            gradient = self.rows @ z + self.D * x[0] - 1.0 - (signs * s).sum(axis=0)
            T = self.D + (s / x).sum(axis=0)
            weighted = self.rows / np.sqrt(T)[:, None]
            solve = factor(self.Q + weighted.T @ weighted)
            if solve is None:
                break
            newton = partial(self._direction, solve, T, x, s, signs, gradient, stationarity)
            dx, ds, _ = newton(-x * s)
            t = _step_length(x, s, dx, ds)
            predicted = float(np.vdot(x + t * dx, s + t * ds)) / x.size
            if not np.isfinite(predicted):
                break
            target = mu * max(predicted / mu, 0.0) ** 3  # Mehrotra's target
            dx, ds, dz = newton(target - x * s - dx * ds)
            t = _step_length(x, s, dx, ds)
            if not t > 1e-10:  # rounding prevents progress
                break
            x, s, z = x + t * dx, s + t * ds, z + t * dz
            mu = float(np.vdot(x, s)) / x.size
        return None if interrupted() else (z, x[0])

    def _direction(
        self,
        solve: Solve,
        T: np.ndarray,
        x: np.ndarray,
        s: np.ndarray,
        signs: np.ndarray,
        gradient: np.ndarray,
        stationarity: np.ndarray,
        change: np.ndarray,
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return dx, ds and dz of the step that, linearised, removes all residuals and changes x s by `change`.

        T da + B dz = r and Q dz - B'da = -stationarity, where `solve` inverts Q + B'T^-1 B.
        """
        r = (signs * change / x).sum(axis=0) - gradient
        dz = solve(self.rows.T @ (r / T) - stationarity)
        dx = signs * ((r - self.rows @ dz) / T)
        return dx, (change - s * dx) / x, dz


def _step_length(x: np.ndarray, s: np.ndarray, dx: np.ndarray, ds: np.ndarray) -> float:
    """Return the largest t <= 1 with which a step goes at most 0.995 of the way to where x or s is 0."""
    rate = max(float((-dx / x).max()), float((-ds / s).max()))
    return min(1.0, 0.995 / max(rate, 0.995))


def regularised(coordinates: Coordinates, matrix: np.ndarray) -> np.ndarray:
    """Return R plus a matrix of shape (size, size).

    R is 0 for a free intercept. 1e-12 of the diagonal entry, or of 1 where that is less, is added there, so that the
    sum can be factorised where the matrix has no curvature in this direction. It is small beside any other curvature.
    """
    found = matrix + np.diag(coordinates.regular)
    if coordinates.problem.free:
        found[-1, -1] += 1e-12 * max(float(found[-1, -1]), 1.0)
    return found


def prove(
    coordinates: Coordinates, sums: Sums, last: Linearisation, z: np.ndarray
) -> tuple[Callable[[], Proof], float]:
    """Return the dual variables that the last step implies, and the lower bound that they prove."""
    assert sums.dual is not None
    side, factors = bound_of_dual(coordinates.problem, sums.dual, scaled=True)
    size = factors @ sums.dual.total + (factors * factors) @ sums.dual.cost
    minus, plus = factors.tolist()
    implied = ImpliedDual(*coordinates.point(last.z), *coordinates.point(z), plus, minus)
    # another computation of the implied dual variables rounds the margins otherwise, by some hundred units of roundoff
    return lambda: (last.numbers, last.alpha, implied), side.bound - 1e-11 * float(size)


class NewtonRun:
    """The iteration of one binary problem.

    Parameters
    ----------
    fit : PassFit
    drawn : DrawnRows
        A random sample of all rows, which is kept in memory.
    nearest : int
        Rows near the margin that fit in memory.
    start : (ndarray, ndarray)
        z of the sample, and z of half of it.

    Attributes
    ----------
    z : ndarray of shape (size,)
        The point that the next pass evaluates.
    error : float
        An estimate of the root mean square error of the scores at z: at first the difference between the solutions of
        the sample and of half of it.
    last, last_move, objective : Linearisation or None, float, float
        The step that led to z, the root mean square of its change of the scores, and the objective at its beginning.
    radius : float
        The trust region: the longest next step, as `last_move`.
    mean_length : float
        The mean |x_i|.
    idle : int
        Passes since the gap was last reduced to half of `idle_gap`, the gap at that time.
    """

    def __init__(self, fit: PassFit, drawn: DrawnRows, nearest: int, start: tuple[np.ndarray, ...]) -> None:
        self.fit, self.problem, self.coordinates = fit, fit.problem, fit.coordinates
        self.drawn, self.nearest, self.idle, self.idle_gap = drawn, nearest, 0, np.inf
        self.y = signs_of(drawn.rows, fit.positive)
        self.total = float(drawn.factors.sum())
        self.z, half = start
        self.error = self._mean_move(self.z - half)
        self.last: Linearisation | None = None
        self.objective, self.last_move, self.radius = np.inf, np.inf, np.inf
        self.gradient = np.zeros(self.z.size)
        lengths = row_norms(drawn.rows.X)
        self.mean_length = float(self._mean(lengths)) or 1.0
        self._lengths = lengths / self.mean_length

    def query(self) -> NewtonQuery:
        """Return what the next pass has to compute."""
        reach = self._reach(distances_of(self._sample_margins(self.z), self._lengths))
        return NewtonQuery(
            positive=self.fit.positive,
            z=self.z,
            width=max(4.0 * self.error, reach, EPS),
            last=self.last,
            mean_length=self.mean_length,
            nearest=self.nearest,
            reach=reach,
        )

    def advance(self, query: NewtonQuery, sums: Sums) -> None:
        """Update the bounds from the sums of a pass, and move z to the next point."""
        best = self.fit.best
        side = self.coordinates.bound(sums, query.z)
        objective = side.bound - side.rounding
        proof, lower = best.alpha, -np.inf
        if query.last is not None:
            proof, lower = prove(self.coordinates, sums, query.last, query.z)
        best.keep(Primal(*self.coordinates.point(query.z)), side.bound, proof, lower)
        self.idle += 1
        if best.gap < 0.5 * self.idle_gap:
            self.idle, self.idle_gap = 0, best.gap
        if best.gap <= self.fit.stopping.tol:
            return
        assert sums.step is not None
        assert sums.near is not None
        if not self._step_back(query, sums.step, objective):
            self._step(query, sums.step, sums.near.pruned())

    def _step_back(self, query: NewtonQuery, sums: StepSums, objective: float) -> bool:
        """Set the radius by the last step, at whose end are these sums; if it is worse than the beginning, move back.

        Return whether z was moved. The best point on the step is taken to be that of the cubic function with the values
        and slopes of both ends.
        """
        last, gradient = query.last, self.coordinates.regular * query.z - sums.slope
        share = 1.0
        if last is not None:
            step = query.z - last.z
            begin, end = float(self.gradient @ step), float(gradient @ step)
            if end > 0.0 > begin:
                middle = begin + end - 3.0 * (objective - self.objective)
                root = np.sqrt(middle * middle - begin * end)
                share = float(1.0 - (end + root - middle) / (end - begin + 2.0 * root))
            # four times: 6, 10, 10 passes to 1e-4 for web at C = 0.01, 1, 100, in place of 6, 6, 9
            self.radius = max(self.radius, 2.0 * self.last_move)
            if share < 1.0:
                self.radius = max(share, 0.1) * self.last_move
            if objective > self.objective:
                self.z, self.last = last.z + share * step, None
                self.error = min(2.0 * self.error, self.radius)
                return True
        self.objective, self.gradient = objective, gradient
        return False

    def _step(self, query: NewtonQuery, sums: StepSums, near: Near) -> None:
        """Move to the solution of the local model at a point, not farther than the model is accurate."""
        hinge = self.problem.loss == "hinge"
        reach = float(near.distances.max()) if near.distances.size >= self.nearest else query.reach
        metric = regularised(self.coordinates, sums.curvature)
        model = self._local_model(query, sums, near)
        accuracy = 1e-2 * self.fit.stopping.tol * max(abs(self.objective), 1e-300)
        interrupted = self.fit.stopping.deadline.interrupted

        def solve(weight: float) -> Trial | None:
            """Solve the local model with a proximal term of this weight; None if it fails or is stopped."""
            with suppress(LinAlgError):
                found = model.with_proximal_term(weight, metric, query.z).solve(accuracy, interrupted)
                if found is not None and np.isfinite(found[0]).all():
                    return Trial(*found, self._mean_move(found[0] - query.z), weight)
            return None

        # the model holds up to the farthest gathered row, or as far as the last step was wrong
        longest = min(1.5 * max(reach, self.error) if hinge else np.inf, self.radius)
        step = longest_step(solve, longest)
        if step is None or interrupted():
            return
        self.last = Linearisation(query.z, near.rows.numbers, step.alpha)
        self.z, self.last_move = step.z, step.move
        share = 0.2 if hinge else 1.0  # of the step, that is left as error after it
        # a step that had to be limited leaves the error as large as it was, or larger
        left = share * step.move if step.weight == 0.0 else max(step.move, self.error)
        self.error = max(left, EPS)

    def _local_model(self, query: NewtonQuery, sums: StepSums, near: Near) -> LocalModel:
        """Return the local model without proximal term.

        With H the curvature and g the slope of the other rows at z0, their Taylor polynomial is
        1/2 z'Hz - (g + H z0)'z but for a constant: Q = R + H, p = g + H z0.
        """
        coordinates, problem = self.coordinates, self.problem
        caps, D = problem.caps(near.rows.weights), problem.delta2(near.rows.weights)
        rows = coordinates.extended(near.rows.X)
        rows *= signs_of(near.rows, self.fit.positive)[:, None]
        slope, curvature = slopes(problem, near.margins, near.rows.weights)
        p = sums.slope - rows.T @ slope
        if problem.loss == "hinge":
            return LocalModel(regularised(coordinates, np.zeros_like(sums.curvature)), p, rows, D, caps)
        weighted = rows * np.sqrt(curvature)[:, None]
        others = sums.curvature - weighted.T @ weighted
        # a difference of large numbers: rounding, of some units of the last digit of these, may leave slightly negative
        # eigenvalues
        others[np.diag_indices_from(others)] += 1e-12 * np.diag(sums.curvature)
        return LocalModel(regularised(coordinates, others), p + others @ query.z, rows, D, caps)

    def _sample_margins(self, z: np.ndarray) -> np.ndarray:
        """Return the margins of the rows of the sample: shape (k,)."""
        return self.y * self.coordinates.scores(self.drawn.rows.X, z)

    def _mean(self, values: np.ndarray) -> float:
        """Return the mean of values, of shape (k,), of the rows of the sample, each for the rows that it stands for."""
        return float(values @ self.drawn.factors) / self.total

    def _mean_move(self, step: np.ndarray) -> float:
        """Return the root mean square of the change of the scores by a step."""
        change = self.coordinates.scores(self.drawn.rows.X, step)
        return float(np.sqrt(self._mean(change * change)))

    def _reach(self, distances: np.ndarray) -> float:
        """Return the distance below which more rows lie than fit in memory, by the sample; infinity if all fit."""
        order = np.argsort(distances, kind="stable")
        # rows that each row stands for: memory holds rows, whatever their sample weights
        below = np.cumsum((self.drawn.factors / self.drawn.rows.weights)[order])
        k = int(np.searchsorted(below, 1.2 * self.nearest))  # the sample may be wrong by a fifth
        return float(distances[order[k]]) if k < distances.size else np.inf


class Trial(NamedTuple):
    """A solution of the local model.

    z has the shape (size,), alpha, the dual variables of the gathered rows, (k,). `move` is the root mean square of the
    change of the scores, `weight` that of the proximal term.
    """

    z: np.ndarray
    alpha: np.ndarray
    move: float
    weight: float


def longest_step(solve: Callable[[float], Trial | None], longest: float) -> Trial | None:
    """Return a step that is not longer than `longest`, and not much shorter unless it needs no proximal term.

    The weight of the proximal term grows tenfold until the step is short enough, and is then bisected.
    """
    best, last, low, high, weight = None, None, 0.0, np.inf, 0.0
    for _ in range(8):
        found = solve(weight)
        last = found or last
        if found is not None and found.move <= longest:
            best, high = found, weight
            if weight == 0.0 or found.move >= 0.5 * longest:
                break
        else:
            low = weight
        bisected = high < np.inf
        weight = float(np.sqrt(max(low, high / 100.0) * high)) if bisected else max(10.0 * weight, 1e-3)
    return best or last


def rows_in_memory(memory: float, columns: int) -> int:
    """Return the number of rows, gathered ones and the sample, that fit in 0.6 of so many bytes.

    The rest holds blocks, sums and matrices of d x d. Four copies of a row, as float64 with all columns, are in memory
    at the same time: as it was read, in the local model, and in two products of the interior points.
    """
    return max(int(0.6 * memory / (4 * 8.0 * (columns + 1))), 2)


def draw_sample(fit: PartitionedProblem) -> DrawnRows | None:
    """Draw the rows in memory from which all binary problems start; None if stopped.

    A tenth of all rows is enough, if it is more than 100 rows a column and 20,000: a local model of more rows takes
    longer than the pass that it may save. 1,000,000 x 28, hinge, C = 1: 2.3, 1.9, 2.4 and 5.3 seconds with 2, 8, 20 and
    50 %.
    """
    n, d = fit.partitions.shape
    rows = min(rows_in_memory(fit.memory, d), max(n // 10, 100 * (d + 1), 20_000))
    return draw_rows(fit.partitions, len(fit.classes), rows, fit.seed, fit.stopping.deadline.interrupted)


def solve_in_memory(
    problem: Problem, drawn: DrawnRows, positive: int, deadline: Deadline, seed: int
) -> Primal:
    """Solve a problem on drawn rows with the in-memory solver; w = 0 where only one class was drawn.

    The gap is 1e-3: the solution differs by far more from that of all rows.
    """
    X, y = drawn.rows.X, signs_of(drawn.rows, positive)
    if not y.size or abs(y.sum()) == y.size:
        return Primal(np.zeros(X.shape[1]), 0.0)
    found = solve(Task(problem, Patterns(X), y, drawn.factors, seed=seed), Stopping(1e-3, 1000, deadline))
    return Primal(found.w, found.b)


def newton_passes(fit: PassFit) -> Iterator[None]:
    """Make passes of Newton's method, each followed by a step, until the gap hardly changes."""
    drawn = fit.drawn
    if drawn is None:  # stopped
        return
    seed, size = fit.whole.seed, drawn.factors.size
    half = drawn.some(np.arange(0, size, 2))
    deadline = fit.stopping.deadline
    points = [solve_in_memory(fit.problem, rows, fit.positive, deadline, seed) for rows in (drawn, half)]
    kept = max(size // 3, 2)  # rows of the sample; the others make room for rows near the margin
    sample = drawn.some(np.sort(np.random.default_rng(seed).permutation(size)[:kept]))
    start = tuple(fit.coordinates.vector(point.w, point.b) for point in points)
    run = NewtonRun(fit, sample, max(size - kept, 1), start)
    fit.best.primal = Primal(*fit.coordinates.point(run.z))
    while run.idle < MAX_IDLE:
        query = run.query()
        sums = fit.make_pass(query.sums)
        if sums is None:
            return
        run.advance(query, sums)
        yield
