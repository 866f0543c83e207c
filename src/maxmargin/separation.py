"""`separate`: a separator with its margin, or a proof that there is none.

By Gordan's theorem one of two things exists: (w, b) with y_i (w.x_i + b) > 0 for all i, or weights alpha >= 0, not
all zero, with sum alpha_i y_i (x_i, 1) = 0. Floating point finds candidates of either, and nothing is said before one
is proved: a separator by its margin, rounded outwards, weights by adding the rows up in rational numbers. In turn

1. rows that contradict each other (equal rows of both classes; through the origin, zeros and opposite rows);
2. the point of the hull that is nearest to the origin, by non-negative least squares on columns of one size; of data
   that are too large for it, the linear program of p = inf on the rows and columns that matter;
3. Wolfe's algorithm in exact arithmetic, from the rows that these name: it decides whatever is left.

References
----------
C. L. Lawson, R. J. Hanson, "Solving Least Squares Problems", Prentice-Hall 1974, chapter 23;
P. Gordan, "Ueber die Aufloesung linearer Gleichungen mit reellen Coefficienten", Mathematische Annalen 6, 1873;
D. L. Applegate, W. Cook, S. Dash, D. G. Espinoza, "Exact solutions to linear programming problems", Operations
Research Letters 35, 2007 (floating point proposes, exact arithmetic decides).
"""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from functools import cached_property
from numbers import Real
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from scipy.optimize import nnls

from .arithmetic import Compensated
from .batch.generation import largest, linear_points
from .batch.nearest_point import floats, nearest_points
from .certificates import Certificate, Sample, certify
from .choice import choose
from .contradictions import contradiction, inner_radius
from .data import Patterns
from .intercept import best_intercept
from .problems import Problem
from .rational import BeyondReachError, IntegerRows
from .solve import Terms, solve
from .status import Status
from .task import Task
from .verdicts import Inseparable, Separable, Undecided, attained, attained_exactly
from .watch import Watch

Verdict = Separable | Inseparable | Undecided
DENSE, FLOPS = 2e7, 5e9  # entries, and entries x smaller side, up to which least squares are affordable
ROUNDS = 200  # of the fit that tells the margin
STAGES = {"exact": "the optimality conditions on the support"}  # what reports call a stage, in words


def separate(
    X: Any,
    y: Any,
    *,
    p: float = 2,
    bias: bool = True,
    tol: float = 1e-2,
    max_time: float | None = None,
) -> Verdict:
    """Decide whether two classes can be separated by a hyperplane, and prove it.

    Parameters
    ----------
    X : array-like or sparse matrix of shape (n, d)
        float32 and float64 are taken as the numbers that they are.
    y : array-like of shape (n,)
        Two classes.
    p : float in [1, inf], default=2
        The norm in which the margin is measured. The verdict does not depend on it.
    bias : bool, default=True
        May the hyperplane pass beside the origin?
    tol : float, default=1e-2
        Relative width of the interval around the largest margin at which it is narrow enough; ``inf`` ends with the
        verdict. Margins that are tiny beside the data may keep a wider one.
    max_time : float, default=None
        Seconds, after which the verdict is Undecided, or the interval as wide as it is. It is looked at between linear
        programs and between exact solutions, each of which is ended first.

    Returns
    -------
    Separable, Inseparable or Undecided
        The first two are proved, whatever the rounding. Undecided says why, with the bound on the margin that was
        reached; but for `max_time` and Ctrl-C it takes a proof of more than 2048 rows. Each has ``verify(X, y)``.

    Raises
    ------
    ValueError
        If data or parameters cannot be used; the message says what to do.

    Notes
    -----
    By Gordan's theorem (1873) exactly one of the first two is the truth. Floating point proposes, exact arithmetic
    disposes (Applegate, Cook, Dash, Espinoza 2007).

    Examples
    --------
    >>> from maxmargin import separate
    >>> X = [[0, 0], [1, 1], [0, 1], [1, 0]]
    >>> verdict = separate(X, [1, 1, 0, 0])
    >>> verdict.separable, [str(weight) for weight in verdict.weights]
    (False, ['1/4', '1/4', '1/4', '1/4'])
    >>> y = [0, 1, 1, 1]
    >>> separate(X, y).verify(X, y).separable
    True
    """
    problem = _problem(p, bias, tol, max_time)
    table, signs, classes = _table(X, y)
    with (
        Watch(max_time) as watch,
        np.errstate(over="ignore", under="ignore", invalid="ignore", divide="ignore"),
    ):
        return _Search(problem, table, signs, classes, float(tol), watch).verdict()


class Separator(NamedTuple):
    """(w, b), and what its margin is at least."""

    w: np.ndarray
    b: float
    lower: float


class _Search:
    """One question on its way to an answer."""

    def __init__(
        self, problem: Problem, X: Any, y: np.ndarray, classes: tuple[Any, Any], tol: float, watch: Watch
    ) -> None:
        self.problem, self.X, self.y, self.classes, self.tol, self.watch = problem, X, y, classes, tol, watch
        self.method = "nothing"

    def verdict(self) -> Verdict:
        """The answer."""
        weights, self.distinct = contradiction(self.X, self.y, self.problem.free)
        if weights is not None:
            return self._inseparable(weights, "looking for rows that contradict each other")
        rows = IntegerRows(self.X[self.distinct], self.y[self.distinct], self.problem.free)
        self.alpha = np.ones(rows.n)
        for candidate in _candidates(self.problem, rows, self.watch):
            self.alpha, self.method = candidate.alpha, candidate.method
            proved = self._proved(rows, candidate.w)
            if proved is not None:
                return self._separable(proved, self.method)
        try:
            return self._exactly(rows)
        except TimeoutError:
            reason = "Ctrl-C was heard" if self.watch.status() is Status.INTERRUPTED else "max_time went by"
        except BeyondReachError as error:
            reason = str(error)
        return self._undecided(reason)

    def _exactly(self, rows: IntegerRows) -> Verdict:
        """Wolfe's algorithm in exact arithmetic, from the rows of the dual weights so far."""
        method = f"{self.method} and Wolfe's algorithm in exact arithmetic"
        direction: list[int] = []
        for corral in nearest_points(rows, _start(self.alpha, rows.width), self.watch.interrupted):
            if corral.zero:
                total = sum(corral.weights)
                pairs = zip(corral.rows, corral.weights, strict=True)
                weights = {int(self.distinct[i]): Fraction(value, total) for i, value in pairs}
                return self._inseparable(weights, method)
            w = floats(corral.direction)
            scores = rows.y * (rows.scaled @ w[: rows.d] + (w[-1] if rows.bias else 0.0))
            proved = self._proved(rows, w[: rows.d]) if scores.min() > 0.0 else None
            if proved is not None:
                return self._separable(proved, method)
            direction = corral.direction
        return self._beyond_floats(rows, direction, method)

    def _proved(self, rows: IntegerRows, w: np.ndarray) -> Separator | None:
        """Weights on scaled columns with their best intercept, if they separate."""
        w = _unscaled(w, rows)
        b = 0.0
        if self.problem.free:
            b = best_intercept(self.problem, Compensated.scores(self.X, w), self.y, np.ones(self.y.size))
        lower = attained(self.X, self.y, w, b, self.problem.q)
        return Separator(w, b, lower) if lower > 0.0 else None

    @cached_property
    def sample(self) -> Sample:
        """The data as certificates see them."""
        return Sample(self.X, self.y, np.ones(self.y.size))

    def _whole(self, alpha: np.ndarray) -> np.ndarray:
        """Dual weights of all rows."""
        whole = np.zeros(self.y.size)
        whole[self.distinct] = alpha
        return whole

    def _separable(self, best: Separator, method: str) -> Separable:
        """The verdict, with an interval as narrow as is asked for and can be had."""
        found = certify(self.problem, self.sample, best.w, best.b, self._whole(self.alpha))
        if not best.lower >= (1.0 - self.tol) * found.upper and not self.watch.interrupted():
            other = self._margin()
            if other is not None:
                w, b, certificate, stage = other
                lower = attained(self.X, self.y, w, b, self.problem.q)
                best = Separator(w, b, lower) if lower > best.lower else best
                found = min(certificate, found, key=lambda one: one.upper)
                method = f"{method}, the margin by {stage}"
        return self._told(best, found, method)

    def _told(
        self, best: Separator, found: Certificate, method: str, exact: tuple[Fraction, ...] | None = None
    ) -> Separable:
        return Separable(
            best.w, best.b, best.lower, _above(found.upper, best.lower), self.problem.p, self.problem.free,
            self.classes, method, self.watch.seconds(), found, exact,
        )  # fmt: skip

    def _margin(self) -> tuple[np.ndarray, float, Certificate, str] | None:
        """What the fit of a hard margin finds, in this norm."""
        task = Task(self.problem, Patterns(self.X), self.y, np.ones(self.y.size))
        algorithm, reason = choose(self.problem, task.patterns, self.y, self.watch.interrupted)
        terms = Terms(self.tol, ROUNDS, self.watch, reason=reason)
        try:
            found = solve(task, algorithm, terms, np.random.default_rng(0), self.sample)
        except ValueError:  # numbers whose squares leave float64: the verdict stands, and its bounds
            return None
        stage = found.history[-1].stage if found.history else algorithm.name
        return found.w, found.b, found.certificate, STAGES.get(stage, stage)

    def _beyond_floats(self, rows: IntegerRows, direction: list[int], method: str) -> Separable:
        """A separator that takes more digits than float64 has."""
        powers = [Fraction(2) ** int(exponent) for exponent in rows.exponents]
        w = [value * power for value, power in zip(direction, powers, strict=False)]
        b = Fraction(direction[-1] << rows.bits) if rows.bias else Fraction(0)
        unit = max(abs(value) for value in w)
        exact = (*(value / unit for value in w), b / unit)
        near = np.array([float(value) for value in exact])
        best = Separator(near[:-1], float(near[-1]), attained_exactly(self.X, self.y, exact, self.problem.q))
        found = certify(self.problem, self.sample, best.w, best.b, self._whole(self.alpha))
        return self._told(best, found, method, exact)

    def _inseparable(self, weights: dict[int, Fraction], method: str) -> Inseparable:
        support = np.array(sorted(weights), dtype=np.int64)
        exact = tuple(weights[i] for i in support.tolist())
        radius = inner_radius(self.X, self.y, support, exact, self.problem)
        return Inseparable(
            support, exact, self.problem.free, self.classes, self.X.shape[1], self.y.size, method,
            self.watch.seconds(), radius, self.problem.p,
        )  # fmt: skip

    def _undecided(self, reason: str) -> Undecided:
        alpha = self._whole(self.alpha)
        found = certify(self.problem, self.sample, np.zeros(self.X.shape[1]), 0.0, alpha)
        return Undecided(
            0.0, _above(found.upper, 0.0), found, self.problem.p, self.problem.free, self.classes,
            self.X.shape[1], reason, self.method, self.watch.seconds(),
        )  # fmt: skip


class Candidate(NamedTuple):
    """Weights on scaled columns, dual weights, and what found them: one of the two may be a proof."""

    w: np.ndarray
    alpha: np.ndarray
    method: str


def _candidates(problem: Problem, rows: IntegerRows, watch: Watch) -> Iterator[Candidate]:
    """What floating point says: the nearest point where that is affordable, else a linear program's points in turn."""
    X, y = rows.scaled, rows.y
    middle, spread = np.zeros(rows.d), np.ones(rows.d)
    if rows.bias and not sp.issparse(X):  # a column far from zero varies little: what matters is how
        top, bottom = X.max(axis=0), X.min(axis=0)
        middle, spread = 0.5 * (top + bottom), 0.5 * (top - bottom)
        spread = 2.0 ** np.round(np.log2(np.where(spread > 0.0, spread, 1.0)))
        X = (X - middle) / spread
    if rows.n * rows.d <= DENSE and float(rows.n) * rows.d * min(rows.n, rows.d) <= FLOPS:
        found = _nearest(X.toarray() if sp.issparse(X) else X, y, rows.bias)
        if found is not None:
            yield Candidate(found[0] / spread, found[1], "least squares")
            return
    program = Problem("hinge", np.inf, p=np.inf, intercept=problem.intercept)
    for w, b, alpha in linear_points(program, X, y, np.ones(y.size), watch.interrupted):
        yield Candidate(w / spread, alpha, "a linear program")
        if float((y * (X @ w + b)).min()) > 0.0:
            return  # no proof of it in float64: a program in smaller units would take HiGHS long, at times minutes


def _nearest(X: np.ndarray, y: np.ndarray, bias: bool) -> tuple[np.ndarray, np.ndarray] | None:
    """The least |(sum z a, sum z - 1)| over z >= 0, by active sets; None if that does not end.

    The residual (u, t) of the optimum has a_i.u + t <= 0 for all i, and t > 0 unless it is zero: -u separates. Else z
    is a combination of the origin, of at most one row more than there are coordinates.
    """
    ones = np.ones((1, y.size))
    A = np.vstack([(X * y[:, None]).T, *([y[None]] if bias else []), ones])
    target = np.zeros(A.shape[0])
    target[-1] = 1.0
    try:
        z, _ = nnls(A, target)
    except RuntimeError:  # no end within its limit of steps
        return None
    u = A @ z - target
    return u[: X.shape[1]], z


def _start(alpha: np.ndarray, width: int) -> dict[int, float]:
    """The rows that exact arithmetic begins with: those of the largest dual weights."""
    places = largest(alpha, 2 * (width + 1), 0.0)
    return {int(i): float(alpha[i]) for i in np.sort(places)} or {0: 1.0}


def _unscaled(w: np.ndarray, rows: IntegerRows) -> np.ndarray:
    """Weights on the columns as they are, the largest about one; those that are nothing beside it are zero."""
    mantissa, exponent = np.frexp(w)
    exponent = exponent + rows.exponents - rows.bits
    top = int(exponent[mantissa != 0.0].max(initial=-(2**31)))
    return np.ldexp(mantissa, np.clip(exponent - top, -1100, 0).astype(np.int32))


def _above(upper: float, lower: float) -> float:
    """An upper bound as a number: rounding may have it fall below the lower one, and overflow leave none."""
    return np.inf if np.isnan(upper) else max(upper, lower)


def _problem(p: Any, bias: Any, tol: Any, max_time: Any) -> Problem:
    """The hard margin that the verdict is about; parameters are refused in a sentence."""
    for name, value in (("p", p), ("tol", tol), ("max_time", 1.0 if max_time is None else max_time)):
        if isinstance(value, bool) or not isinstance(value, Real):
            raise ValueError(f"{name} must be a number; got {name}={value!r}.")
    if not p >= 1.0:
        raise ValueError(f"p must be a number from 1 to inf; got p={p!r}.")
    if not tol > 0.0:
        raise ValueError(f"tol must be positive, or inf for the verdict alone; got tol={tol!r}.")
    if max_time is not None and not max_time > 0.0:
        raise ValueError(f"max_time must be a positive number of seconds, or None; got {max_time!r}.")
    if not isinstance(bias, bool | np.bool_):
        raise ValueError(f"bias must be True or False; got {bias!r}.")
    return Problem("hinge", np.inf, p=float(p), intercept="free" if bias else "none")


def _table(X: Any, y: Any) -> tuple[Any, np.ndarray, tuple[Any, Any]]:
    """Patterns as the solvers take them, signs, and the labels of the two classes; the caller's stay as they are."""
    if not sp.issparse(X):
        try:
            X = np.asarray(X)
            X = X if X.dtype in (np.float32, np.float64) else X.astype(float)
        except (TypeError, ValueError):
            raise ValueError(
                "X must hold numbers, in rows of one length: encode text, and fill the rows."
            ) from None
    if X.ndim != 2:
        raise ValueError(
            f"X must have two dimensions, rows and features; got {X.ndim}: X.reshape(-1, 1) makes a column."
        )
    if not min(X.shape):
        raise ValueError(f"X is empty, of shape {X.shape}: there must be a row of each class, and a feature.")
    labels = np.asarray(y)
    if labels.shape != (X.shape[0],):
        raise ValueError(
            f"y must hold one label for each of the {X.shape[0]} rows of X; got shape {labels.shape}."
        )
    X = Patterns(X).X if sp.issparse(X) else X
    if sp.issparse(X) and (X.data == 0.0).any():
        X = X.copy()
        X.eliminate_zeros()
    if not np.isfinite(X.data if sp.issparse(X) else X).all():
        raise ValueError(
            "X holds NaN or infinity: fill or drop the rows that do, with SimpleImputer for instance."
        )
    return X, *_signs(labels)


def _signs(labels: np.ndarray) -> tuple[np.ndarray, tuple[Any, Any]]:
    """-1.0 and 1.0, and the labels that they stand for."""
    if labels.dtype.kind == "f" and not np.isfinite(labels).all():
        raise ValueError("y holds NaN or infinity: drop the rows whose class is not known.")
    try:
        classes = np.unique(labels)
    except TypeError:
        raise ValueError(
            "The labels cannot be compared with one another: give both classes names of one type."
        ) from None
    if classes.size != 2:
        remedy = "a hyperplane has two sides, so give rows of both"
        if classes.size > 2:
            remedy = "ask for one class at a time, y == label"
        raise ValueError(f"y must hold two classes and holds {classes.size}: {remedy}.")
    negative, positive = classes.tolist()
    return np.where(labels == classes[1], 1.0, -1.0), (negative, positive)
