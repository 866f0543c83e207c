"""Bounds on the best possible objective or margin, and their verification from the data alone.

Every non-negative combination of patterns is a certificate. With alpha feasible and v = sum alpha_i y_i x_i

* soft:  sum alpha_i - 1/2 |v|^2 - sum alpha_i^2 / (4 C s_i) [squared hinge]  <=  optimum  <=  primal value,
* hard:  min m_i / |w|  <=  largest margin  <=  |v| / sum alpha_i,

v being measured in the p-norm and w in the q-norm: it takes no more than Hoelder's inequality. With the norm to the
first power the bounds are sum alpha_i - sum alpha_i^2 / (4 C s_i), divided by max(1, |v|), and the primal value. A free
intercept asks for alpha balanced between the classes. Where entries are huge, alpha may stand for real numbers near
it (`exactness`). This module knows no solver: it imports NumPy and the problem record.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import cached_property, lru_cache
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from ..kernels.functions import Kernel, Linear
from ..numerics.sparse_columns import Columns, without_empty_columns
from ..numerics.sums import (
    PART,
    Arithmetic,
    Compensated,
    CutShortError,
    Plain,
    cut_short_unless,
    parts,
    powers_error,
)
from ..problem.problem import Problem, proves_nothing
from .huge_columns import exact_bound, huge_columns, inside

INTERCEPT = {"none": "no intercept", "free": "free intercept", "augmented": "augmented intercept"}
_EPS, _LEAST = float(np.finfo(float).eps), float(np.finfo(float).smallest_subnormal)
SEEN = 3e-3  # rounding that takes more than this share of the gap is avoided,
REACHED = 3e-2  # or of the gap that is asked for, where it is reached nevertheless;
NEGLIGIBLE, FEW = 1e-10, 20_000  # unless it is this share of a bound of a sample with more entries than that
ONE_BY_ONE = 2000  # dual weights up to which nothing at all may be left between the classes
BALANCED = 1e-14  # share of more of them that may be left, where it is not seen
FEWER = 2  # times as many entries as count, where it is worth to leave the others out
UNEVEN = 1e-18  # share of more of them that is left, where it is seen
KEPT = 50_000  # columns whose shares are kept from fit to fit


class CertificateError(ValueError):
    """A certificate does not hold, or belongs to other data."""


@dataclass(frozen=True)
class Fingerprint:
    """What a certificate remembers of its data: sizes, and sums that change when an entry does.

    Independent of storage (dense or CSR, float32 or float64 of the same values), not of row order.
    """

    rows: int
    features: int
    positives: int
    checksum: float
    scale: float

    def difference(self, other: Fingerprint) -> str | None:
        """What tells `other` apart, in words; None where nothing does."""
        for name in ("rows", "features", "positives"):
            mine, theirs = getattr(self, name), getattr(other, name)
            if mine != theirs:
                word = "positive labels" if name == "positives" else name
                return f"{mine} {word} then, {theirs} now"
        if abs(self.checksum - other.checksum) > 1e-11 * max(self.scale, other.scale):
            return "sizes agree, values, labels, weights or row order do not"
        return None


def fingerprint(sample: Sample) -> Fingerprint:
    """The fingerprint of patterns with their labels and weights."""
    y, weights, marks = sample.y, sample.weights, sample.marks
    with np.errstate(over="ignore", invalid="ignore"):
        checksum, scale = _sums(marks, y, weights)
        if not np.isfinite(scale):  # of large weights and large entries: in units of their own
            checksum, scale = _sums(marks / np.abs(marks).max(), y, weights, float(1.0 + weights.max()))
        return _fingerprinted(sample, checksum, scale)


def _fingerprinted(sample: Sample, checksum: float, scale: float) -> Fingerprint:
    """The fingerprint of these patterns, of whose entries the sums are known."""
    d = sample.X.shape[1] if sample.columns is None else sample.columns.count
    return Fingerprint(sample.y.size, d, int(np.count_nonzero(sample.y > 0)), checksum, scale)


def _sums(marks: np.ndarray, y: np.ndarray, weights: np.ndarray, unit: float = 1.0) -> tuple[float, float]:
    """The sum of the marks times what labels and weights tell, in this unit; and that of their absolute values."""
    if y.size > PART:
        sums = [_sums(marks[some], y[some], weights[some], unit) for some in parts(y.size)]
        return sum(checksum for checksum, _ in sums), sum(scale for _, scale in sums)
    factors = 1.0 + weights
    factors /= unit
    factors *= 3.0 + y
    return float(marks @ factors), float(np.abs(marks) @ factors)


def marked(X: Any, columns: Columns | None = None) -> np.ndarray:
    """A number for every row, which its place and its entries tell."""
    with np.errstate(over="ignore", invalid="ignore"):
        marks = project(X, columns)
        for some in parts(marks.size):
            places = np.arange(some.start, some.stop, dtype=np.uint32)
            shuffle = (places * np.uint32(2654435769)) >> np.uint32(12)
            marks[some] *= 0.5 + shuffle * 2.0**-21  # less than one
        return marks


def project(X: Any, columns: Columns | None = None) -> np.ndarray:
    """One number a row, in which every entry has its own share: that of its column in the whole data set."""
    places = None if columns is None else columns.places
    shares = column_shares(X.shape[1]) if places is None else _shares(places + 1.0)
    marks = Plain.scores(X, shares)
    marks += 1.0
    return marks


def column_shares(d: int) -> np.ndarray:
    """The share of every column's entries; nobody writes to it."""
    return _kept_shares(d) if d <= KEPT else _shares(np.arange(1.0, d + 1.0))


def _shares(numbers: np.ndarray) -> np.ndarray:
    """The shares of the columns with these numbers, of which the first is 1."""
    return 1.0 + 0.5 * np.sin(numbers)


@lru_cache(maxsize=4)
def _kept_shares(d: int) -> np.ndarray:
    return _shares(np.arange(1.0, d + 1.0))


@dataclass(frozen=True, eq=False)
class Certificate:
    """A lower and an upper bound, and the dual weights that prove one of them.

    The other is proved by the model's own ``coef_`` and ``intercept_``.

    Attributes
    ----------
    problem : Problem
    lower, upper : float
        Soft: dual and primal objective. Hard: attained margin, and a bound on every margin.
    support : ndarray of int64
        Rows with a non-zero dual weight.
    dual : ndarray of float64
        Their dual weights, feasible for the problem.
    fingerprint : Fingerprint
        What is remembered of the data.
    kernel : Kernel
        The linear one, where the model has weights of its own.
    """

    problem: Problem
    lower: float
    upper: float
    support: np.ndarray
    dual: np.ndarray
    fingerprint: Fingerprint
    kernel: Kernel = field(default_factory=Linear)

    @property
    def gap(self) -> float:
        """The certified relative gap."""
        return self.problem.gap(self.lower, self.upper)

    @property
    def proves_nothing(self) -> bool:
        """Whether neither bound is known, as of a fit that was stopped before it found one; the gap is then inf."""
        return proves_nothing(self.lower, self.upper)

    @property
    def rows(self) -> int:
        """How many rows the data had."""
        return self.fingerprint.rows

    @property
    def alpha(self) -> np.ndarray:
        """The dual weight of every row, of shape (rows,)."""
        alpha = np.zeros(self.rows)
        alpha[self.support] = self.dual
        return alpha

    @property
    def certificates(self) -> tuple[Certificate, ...]:
        """Those of all problems: itself."""
        return (self,)

    def __repr__(self) -> str:
        return str(self)

    def __str__(self) -> str:
        problem = self.problem
        what = "margin" if problem.hard else "objective"
        name = "hard margin" if problem.hard else f"{problem.loss}, C = {problem.C:g}"
        space = f"p = {problem.p:g}" if isinstance(self.kernel, Linear) else str(self.kernel)
        return (
            f"{name}, {space}, {INTERCEPT[problem.intercept]}\n"
            f"  {self.lower:.12g} <= best {what} <= {self.upper:.12g}\n"
        ) + (
            "  nothing is proved: neither bound is known, and the gap is inf"
            if self.proves_nothing
            else f"  gap {self.gap:.3g}, proved by {self.support.size} of {self.rows} rows"
        )


@dataclass(frozen=True, eq=False)
class Certificates:
    """One certificate for each class against the rest, or for each pair of classes; the gap is the largest."""

    classes: tuple[Any, ...]
    parts: tuple[Certificate, ...]

    @property
    def gap(self) -> float:
        """The largest gap of all classes."""
        return max(part.gap for part in self.parts)

    @property
    def proves_nothing(self) -> bool:
        """Whether no part has a bound."""
        return all(part.proves_nothing for part in self.parts)

    @property
    def certificates(self) -> tuple[Certificate, ...]:
        """Those of all problems."""
        return self.parts

    def __iter__(self):
        return iter(self.parts)

    def __len__(self) -> int:
        return len(self.parts)

    def __getitem__(self, k: int) -> Certificate:
        return self.parts[k]

    def __repr__(self) -> str:
        return str(self)

    def __str__(self) -> str:
        pairs = isinstance(self.classes[0], tuple)
        what = "pairs of classes" if pairs else "classes, one against the rest"
        lines = [f"{len(self)} {what}; largest gap {self.gap:.3g}"]
        for name, part in zip(self.classes, self.parts, strict=True):
            lines.append(
                f"{name}: {part.lower:.9g} <= best <= {part.upper:.9g}, gap {part.gap:.3g}"
                + (", nothing is proved" if part.proves_nothing else "")
            )
        return "\n".join(lines)


@dataclass(frozen=True, eq=False)
class Sample:
    """Patterns, labels and weights, as a certificate sees them.

    Parameters
    ----------
    X : ndarray or CSR matrix of shape (n, d)
    y : ndarray of shape (n,), entries -1.0 and 1.0
    weights : ndarray of shape (n,)
        Sample weights; rows of weight 0 take no part.
    norms : ndarray of shape (n,), default=None
        |x_i|, where they are known.
    like : Sample, default=None
        Another of the same rows, which has their norms and marks for all, and is like none.
    columns : Columns, default=None
        Which columns of the data set those of X are; None: all of them.
    """

    X: Any
    y: np.ndarray
    weights: np.ndarray
    norms: Any = None
    like: Sample | None = None
    columns: Columns | None = None

    def __post_init__(self) -> None:
        if self.norms is None:
            norms = Plain.row_norms(self.X) if self.like is None else self.like.norms
            object.__setattr__(self, "norms", norms)

    @cached_property
    def marks(self) -> np.ndarray:
        """`marked(X)`."""
        return marked(self.X, self.columns) if self.like is None else self.like.marks

    @cached_property
    def fingerprint(self) -> Fingerprint:
        """What a certificate remembers of these data."""
        return fingerprint(self)

    @property
    def unmarked(self) -> bool:
        """Is there no fingerprint yet?"""
        return "fingerprint" not in vars(self)

    @property
    def told_marks(self) -> np.ndarray | None:
        """The marks, if they are known by now."""
        return vars(self if self.like is None else self.like).get("marks")

    def remember(self, checksum: float, scale: float, marks: np.ndarray) -> None:
        """The sums of the fingerprint have been found on the way; the marks, if any, are those of all."""
        if marks.size and self.like is not None:
            vars(self.like).setdefault("marks", marks)
        if math.isfinite(scale):
            vars(self)["fingerprint"] = _fingerprinted(self, checksum, scale)

    @cached_property
    def longest(self) -> float:
        """The largest |x_i|."""
        return float(self.norms.max(initial=0.0)) if self.like is None else self.like.longest

    @property
    def entries(self) -> int:
        """Stored entries of all rows."""
        return int(self.X.nnz) if sp.issparse(self.X) else self.X.size

    @property
    def width(self) -> int:
        """Most terms that the score of a row can have."""
        if sp.issparse(self.X):
            return int(np.diff(self.X.indptr).max(initial=0))
        return self.X.shape[1]


class Bounds(NamedTuple):
    """A lower and an upper bound, rounded outwards: `below` and `above` are what that took from each."""

    lower: float
    upper: float
    below: float
    above: float

    @property
    def rounding(self) -> float:
        """What rounding took from both together."""
        return self.below + self.above


def feasible(problem: Problem, y: np.ndarray, weights: np.ndarray, alpha: np.ndarray) -> np.ndarray:
    """The dual weights nearest at hand that the bound allows: capped, and balanced between the classes.

    Soft problems: the heavier class is scaled down, which no cap forbids. Of the hard margin only the
    proportions count: their sum is made one.
    """
    alpha = problem.capped(alpha, weights)
    if problem.hard:
        alpha = _proportions(alpha)
    if problem.free:
        balanced = problem.balanced(y, alpha)
        if balanced is None:
            return np.zeros_like(alpha)
        alpha = balanced
        if alpha.size <= ONE_BY_ONE or abs(Plain.total(alpha * y)) > BALANCED * float(alpha.sum()):
            _even_out(alpha, y, problem.caps(weights))
    return alpha


def _even_out(alpha: np.ndarray, y: np.ndarray, caps: np.ndarray) -> None:
    """Take what rounding left between the classes from a large dual weight, and its own rounding from a small one.

    All are multiples of the last digit of the smallest, so that most often nothing at all is left.
    """
    few, nothing = None, UNEVEN * float(alpha.sum())
    if alpha.size <= ONE_BY_ONE:
        signed = alpha * y
        few, nothing = signed[signed != 0.0].tolist(), 0.0
    for attempt in range(4):
        # exactly, or of a large sample to many digits
        excess = math.fsum(few) if few is not None else Compensated.summed(np.multiply, alpha, y)
        if abs(excess) <= nothing:
            return
        heavy, r = y * excess > 0.0, abs(excess)
        if attempt == 0:
            k = int(np.argmax(np.where(heavy, alpha, -1.0)))
        else:
            room = np.where(heavy, alpha >= r, (alpha > 0.0) & (alpha + r <= caps))
            if not room.any():
                return
            k = int(np.argmin(np.where(room, alpha, np.inf)))
        before = float(alpha[k])
        alpha[k] = max(before - r, 0.0) if heavy[k] else before + r
        if few is not None:
            few += [-before * y[k], float(alpha[k]) * y[k]]


def _proportions(alpha: np.ndarray) -> np.ndarray:
    """Divided by their sum: tiny numbers would lose their squares."""
    largest = float(alpha.max(initial=0.0))
    if not (np.isfinite(largest) and largest > 0.0):
        return np.zeros_like(alpha)
    alpha = alpha / largest
    return alpha / alpha.sum()


def certify(
    problem: Problem,
    sample: Sample,
    w: np.ndarray,
    b: float,
    alpha: np.ndarray,
    tol: float = 0.0,
    affords: Callable[[float], bool] = lambda seconds: True,
) -> Certificate:
    """The certificate of a primal point (w, b) and dual weights alpha, made feasible first.

    Parameters
    ----------
    problem : Problem
    sample : Sample
    w : ndarray of shape (d,)
    b : float
    alpha : ndarray of shape (n,)
        Any non-negative numbers; best, those of a solver.
    tol : float, default=0
        The gap that is asked for: rounding that is far below it may remain.
    affords : callable
        Is there time for sums that take so many seconds? Where there is not, they are not begun. Asked of no seconds
        while they are made, which ends them.

    Notes
    -----
    Bounds are rounded outwards: they hold for the numbers as they are. Sums are ordinary ones where that costs
    next to nothing of the gap, else compensated ones.
    """
    y, weights = sample.y, sample.weights
    alpha = feasible(problem, y, weights, np.asarray(alpha, dtype=float))
    huge = huge_columns(problem, sample.X, sample.norms, alpha)
    alone, found = _multiplied(problem, sample, w, b, alpha, huge, tol, affords)
    if huge is not None and not found.lower > 0.0:  # no room for real dual weights around these
        near = feasible(problem, y, weights, inside(problem, sample.X, y, weights, alpha, huge))
        alone, found = _multiplied(problem, sample, w, b, near, huge, tol, affords)
        if not found.lower > 0.0:
            alone, found = _multiplied(problem, sample, w, b, alpha, None, tol, affords)
    return proved(problem, sample, alone, found)


def proved(problem: Problem, sample: Sample, alpha: np.ndarray, found: Bounds) -> Certificate:
    """The certificate of these bounds, of which alpha proves one."""
    support = np.flatnonzero(alpha > 0.0)
    lower, upper = float(found.lower), float(found.upper)  # whose quotient may overflow in silence
    return Certificate(problem, lower, upper, support, alpha[support], sample.fingerprint)


def _multiplied(
    problem: Problem,
    sample: Sample,
    w: np.ndarray,
    b: float,
    alpha: np.ndarray,
    huge: np.ndarray | None,
    tol: float,
    affords: Callable[[float], bool],
) -> tuple[np.ndarray, Bounds]:
    """The best multiple of alpha, huge columns left out as if they cancelled, and its bounds."""
    if problem.hard:  # only proportions count
        found = bounds(problem, sample, w, b, alpha)
        return with_more_digits(problem, sample, w, b, alpha, found, tol, affords)
    signed = alpha * sample.y
    v = Plain.combine(sample.X, signed)
    full = np.append(v, problem.rho * Plain.total(signed)) if problem.rho else v
    v2 = Plain.square(full if huge is None else full[~huge[: full.size]], problem.p)
    multiple = 1.0 if not alpha.any() else problem.multiple(alpha, v2, sample.weights)
    alpha = problem.capped(np.multiply(alpha, multiple, out=signed), sample.weights)
    found = bounds(problem, sample, w, b, alpha, Plain, v * multiple)
    return with_more_digits(problem, sample, w, b, alpha, found, tol, affords)


def with_more_digits(
    problem: Problem,
    sample: Sample,
    w: np.ndarray,
    b: float,
    alpha: np.ndarray,
    found: Bounds,
    tol: float,
    affords: Callable[[float], bool],
) -> tuple[np.ndarray, Bounds]:
    """The same bounds, of sums with as many digits as it takes."""
    share = REACHED if problem.gap(found.lower, found.upper) <= tol else SEEN
    negligible = max(0.0 if sample.entries <= FEW else NEGLIGIBLE, share * tol)
    if (
        _is_seen(problem, found, negligible) and problem.free
    ):  # the multiple has rounded the dual weights once more
        _even_out(alpha, sample.y, problem.caps(sample.weights))
    if _is_seen(problem, found, negligible) and affords(Compensated.SECONDS * sample.entries):
        with suppress(CutShortError), cut_short_unless(lambda: affords(0.0)):
            found = bounds(problem, sample, w, b, alpha, Compensated)
    return alpha, found


def _is_seen(problem: Problem, found: Bounds, negligible: float) -> bool:
    """Tell whether rounding takes a part of the gap that is worth more digits, or hides that (w, b) separates."""
    if problem.hard and -found.below <= found.lower <= 0.0:  # the margin as computed is positive
        return True
    return not found.rounding <= max(SEEN * (found.upper - found.lower), negligible * abs(found.upper))


def bounds(
    problem: Problem,
    sample: Sample,
    w: np.ndarray,
    b: float,
    alpha: np.ndarray,
    arithmetic: Arithmetic = Plain,
    v: np.ndarray | None = None,
) -> Bounds:
    """Bounds from the data; alpha must be feasible. `v` is sum alpha_i y_i x_i, if known."""
    if problem.hard:  # whoever made them: tiny ones would make |v|^2 vanish, and a false bound
        alpha, v = _proportions(alpha), None
    with np.errstate(over="ignore", invalid="ignore"):
        huge = huge_columns(problem, sample.X, sample.norms, alpha)
        margins = _margins(sample, w, b, arithmetic, huge is not None)
        dual = _dual_point(problem, sample, alpha, arithmetic, v)
        if problem.hard:
            found = _hard_bounds(problem, sample.weights, arithmetic, (w, b), margins, alpha, dual)
            separates = float(margins.values[sample.weights > 0.0].min()) > 0.0
            if separates and not found.below <= NEGLIGIBLE * found.lower:
                # |x_i| |w| bounds the rounding of a score too loosely to prove this margin where columns differ in
                # size: the sum of the absolute terms of each score is much smaller there
                margins = replace(margins, sizes=Plain.scores(abs(sample.X), np.abs(w)), times=1.0)
                found = _hard_bounds(problem, sample.weights, arithmetic, (w, b), margins, alpha, dual)
        else:
            sums = _soft_sums(problem, sample.weights, arithmetic, margins, alpha)
            found = soft_bounds(problem, arithmetic, (w, b), sums, dual)
        if huge is None:
            return found
        exact = exact_bound(problem, sample.X, sample.y, sample.weights, alpha, huge)
        better = exact.lower > found.lower or np.isnan(found.lower)
        return found._replace(lower=exact.lower, below=exact.below) if better else found


class DualPoint(NamedTuple):
    """v = sum alpha_i y_i x_i, the constant coordinate included, and how far it is from what would prove the bound.

    `off` is what rounding may add to |v|; so may `uneven`, the difference of the classes' totals that is left
    where they should be equal: the heavier one scaled down moves v by so much times the longest pattern.
    """

    v: np.ndarray
    off: float
    uneven: float


def _dual_point(
    problem: Problem,
    sample: Sample,
    alpha: np.ndarray,
    arithmetic: Arithmetic,
    v: np.ndarray | None,
) -> DualPoint:
    count, uneven = int(np.count_nonzero(alpha)), 0.0
    v = arithmetic.combine(sample.X, alpha * sample.y) if v is None else v
    if problem.rho:
        v = np.append(v, problem.rho * arithmetic.summed(np.multiply, alpha, sample.y))
    spread = float(alpha @ sample.norms) + problem.rho * float(alpha.sum())
    if problem.free:
        # an uneven rest moves v by so many radii of the data: more digits, whatever the others have
        finer = Compensated if arithmetic is Plain else arithmetic
        uneven = abs(finer.summed(np.multiply, *_few(alpha > 0.0, alpha, sample.y)))
        uneven += finer.error(uneven, float(alpha.sum()), finer.terms(alpha, count, 0))
    terms = arithmetic.terms(sample.X, count, 0)
    dual = rounded(problem, sample, arithmetic, v, spread, terms, uneven)
    # products of tiny numbers, and of their halves, may underflow
    if spread > 0.0 or problem.rho or sample.norms[alpha > 0.0].any():
        dual = dual._replace(off=dual.off + 8.0 * (count + 1.0) * v.size * _LEAST)
    return dual


def rounded(
    problem: Problem,
    sample: Sample,
    arithmetic: Arithmetic,
    v: np.ndarray,
    spread: float,
    terms: int,
    uneven: float,
) -> DualPoint:
    """The same of v, a sum of so many terms, the sum of whose lengths is `spread`."""
    # of rows, in the p-norm, at most
    times = max(v.size, 1) ** (1.0 / problem.p - 0.5) if problem.p < 2.0 else 1.0
    size = arithmetic.norm(v, problem.p)
    off = arithmetic.error(size, times * spread, terms) + arithmetic.error(size, size, v.size)
    if uneven > 0.0:
        off += uneven * times * sample.longest
    return DualPoint(v, off, uneven)


@dataclass(frozen=True)
class _Margins:
    """The margins, and what tells by how much each may be off: no score is a sum of more than times size + |b|."""

    values: np.ndarray
    sizes: np.ndarray
    times: float
    b: float
    arithmetic: Arithmetic
    terms: int
    width: int

    def off(self, values: np.ndarray, sizes: np.ndarray) -> np.ndarray:
        """Of all of them, or of some."""
        size = sizes * (1.01 * self.times)
        size += abs(self.b)
        off = self.arithmetic.error(values, size, self.terms)
        off += (self.width + 2) * _LEAST
        return off


def _margins(sample: Sample, w: np.ndarray, b: float, arithmetic: Arithmetic, uneven: bool) -> _Margins:
    """The margins; of `uneven` columns the lengths of the rows say too little."""
    margins = arithmetic.scores(sample.X, w, b)
    margins *= sample.y
    sizes, times = (Plain.scores(abs(sample.X), np.abs(w)), 1.0) if uneven else (sample.norms, Plain.norm(w))
    terms = arithmetic.terms(sample.X, sample.width, 1) + 1
    return _Margins(margins, sizes, times, b, arithmetic, terms, sample.width)


def _gains(problem: Problem, weights: np.ndarray, arithmetic: Arithmetic, alpha: np.ndarray) -> float:
    """What the dual weights are worth but for the square of v."""
    total = 0.0
    for part in _at_once(alpha.size, arithmetic):
        values, costs = _few(alpha[part] > 0.0, alpha[part], weights[part])
        total += arithmetic.total(problem.gains(values, costs))
    return total


def _losses(
    problem: Problem, weights: np.ndarray, arithmetic: Arithmetic, margins: _Margins
) -> tuple[float, float]:
    """The losses of margins that are as small as they may be, and of the margins as they seem."""
    total = nominal = 0.0
    for part in _at_once(weights.size, arithmetic):
        values, sizes = margins.values[part], margins.sizes[part]
        least = values - margins.off(values, sizes)
        short = ~(least >= 1.0)  # what is not a number is no margin
        least, values, costs = _few(short, least, values, weights[part])
        total += arithmetic.total(problem.losses(least, costs))
        nominal += Plain.total(problem.losses(values, costs))
    return total, nominal


def _at_once(n: int, arithmetic: Arithmetic) -> Iterable[slice]:
    """The places of entries that are added up together: with more digits all of them."""
    return parts(n) if arithmetic is Plain else (slice(0, n),)


def _few(wanted: np.ndarray, *vectors: np.ndarray) -> Sequence[np.ndarray]:
    """Their entries that are wanted, where these are few: all others add nothing."""
    if FEWER * np.count_nonzero(wanted) >= wanted.size:
        return vectors
    places = np.flatnonzero(wanted)
    return [vector[places] for vector in vectors]


class Sums(NamedTuple):
    """Over all n patterns, of which `used` have a dual weight: what these are worth but for |v|^2, and all losses.

    `size` is the sum of alpha and alpha^2 / (4 C s_i), of which the gains are the difference; losses are those of
    margins as small as they may be, and of margins as they seem. Of the terms of both sums so many are added one after
    the other.
    """

    n: int
    used: int
    gains: float
    size: float
    losses: float
    nominal: float
    terms_of_gains: int
    terms_of_losses: int


def _soft_sums(
    problem: Problem, weights: np.ndarray, arithmetic: Arithmetic, margins: _Margins, alpha: np.ndarray
) -> Sums:
    gains, count = _gains(problem, weights, arithmetic, alpha), int(np.count_nonzero(alpha))
    losses, nominal = _losses(problem, weights, arithmetic, margins)
    size = 2.0 * float(alpha.sum()) - gains
    n = alpha.size
    of_gains, of_losses = arithmetic.terms(alpha, count, 0), arithmetic.terms(margins.values, n, 0)
    return Sums(n, count, gains, size, losses, nominal, of_gains, of_losses)


def soft_bounds(
    problem: Problem,
    arithmetic: Arithmetic,
    point: tuple[np.ndarray, float],
    sums: Sums,
    dual: DualPoint,
) -> Bounds:
    w, b = point
    v2, size = arithmetic.square(dual.v, problem.p), sums.size
    lower = problem.worth(sums.gains, v2)
    terms = sums.terms_of_gains + dual.v.size
    if problem.power == 2:
        below = arithmetic.error(lower, size + v2, terms) + 4.0 * _EPS * (size + v2)
        below += (
            dual.uneven + dual.off * (float(np.sqrt(v2)) + dual.off) + v2 * powers_error(problem.p, terms)
        )
    else:  # gains divided by max(1, |v|), of which |v| may be larger than it seems
        below = arithmetic.error(lower, size, terms) + 4.0 * _EPS * size + dual.uneven
        below += size * (dual.off + float(np.sqrt(v2)) * (powers_error(problem.p, terms) + terms * _EPS))
    if sums.used:
        below += (sums.n + dual.v.size + 4.0) * _LEAST
    if problem.euclidean:
        penalty = 0.5 * problem.norm2(arithmetic.square(w), b)
    else:
        penalty = problem.penalty(arithmetic.norm(problem.weights(w, b), problem.q))
    upper = penalty + sums.losses
    above = arithmetic.error(upper, upper, sums.terms_of_losses + w.size) + 4.0 * _EPS * upper
    above += 2.0 * upper * powers_error(problem.q, w.size)
    if penalty > 0.0 or w.any():  # squares may have lost their digits
        above += (w.size + 4.0) * _LEAST
    return Bounds(lower - below, upper + above, below, above + sums.losses - sums.nominal)


def _hard_bounds(
    problem: Problem,
    weights: np.ndarray,
    arithmetic: Arithmetic,
    point: tuple[np.ndarray, float],
    margins: _Margins,
    alpha: np.ndarray,
    dual: DualPoint,
) -> Bounds:
    w, b = point
    length = arithmetic.norm(problem.weights(w, b), problem.q)
    used = weights > 0.0
    lower = nominal = -np.inf
    if length > 0.0:
        values = margins.values
        nominal = float(values[used].min()) / length
        lower = float((values - margins.off(values, margins.sizes))[used].min()) / length
        inexact = arithmetic.error(1.0, 1.0, w.size) + powers_error(problem.q, w.size)
        lower -= abs(lower) * (inexact + 4.0 * _EPS)
    below = nominal - lower if np.isfinite(nominal) else 0.0
    total, size = arithmetic.total(alpha), arithmetic.norm(dual.v, problem.p)
    off_total = arithmetic.error(total, total, arithmetic.terms(alpha, alpha.size, 0)) + dual.uneven
    if not total > off_total:
        return Bounds(lower, np.inf, below, 0.0)
    longest = size * (1.0 + powers_error(problem.p, dual.v.size))
    longest += arithmetic.error(size, size, dual.v.size) + dual.off
    upper = longest / (total - off_total) * (1.0 + 4.0 * _EPS)
    return Bounds(lower, upper, below, upper - size / total)


def verify(model: Any, X: Any, y: Any, sample_weight: Any = None) -> Certificate | Certificates:
    """`maxmargin.verify` for a model with weights of its own: sums are compensated."""
    X, labels, weights = training_data(model, X, y, sample_weight)
    coef, intercept, classes = np.asarray(model.coef_, float), np.ravel(model.intercept_), model.classes_
    certificate, columns = model.certificate_, None
    if coef.ndim == 2 and coef.shape[1] == X.shape[1]:
        X, columns = without_empty_columns(X, coef)
        coef = columns.restrict(coef)
    with np.errstate(over="ignore", invalid="ignore"):
        sample = Sample(X, np.zeros(labels.size), weights, columns=columns)
        return _recheck_all(certificate, sample, labels, coef, intercept, classes)


def training_data(model: Any, X: Any, y: Any, sample_weight: Any) -> tuple[Any, np.ndarray, np.ndarray]:
    """Data, labels, and the weight of every row with that of its class, as a certificate of the model needs them."""
    if not hasattr(model, "certificate_"):
        raise CertificateError(_nothing_to_verify(model))
    names = getattr(X, "columns", None)
    X = X.tocsr() if sp.issparse(X) else np.asarray(X)
    if X.ndim != 2:
        raise CertificateError(f"X must have two dimensions, rows and features; got {X.ndim}.")
    if X.dtype not in (np.float32, np.float64):
        X = X.astype(np.float64)
    if sp.issparse(X) and not X.has_canonical_format:
        X = X.copy()  # the caller's stays as it is
        X.sum_duplicates()
    _check_missing(X, names)
    labels = np.asarray(y)
    if labels.shape != (X.shape[0],):
        raise CertificateError(
            f"y must hold one label for each of the {X.shape[0]} rows; got shape {labels.shape}."
        )
    weights = np.ones(X.shape[0]) if sample_weight is None else np.asarray(sample_weight, dtype=float)
    if weights.ndim == 0:
        weights = np.full(labels.shape, float(weights))
    if weights.shape != labels.shape:
        raise CertificateError(f"sample_weight must hold one number a row; got shape {weights.shape}.")
    _check_labels(model, labels, weights)
    weights = weights * _class_weights(model, labels)
    return X, labels, weights


def _nothing_to_verify(model: Any) -> str:
    """Why there is no certificate, and what has one."""
    if hasattr(model, "uncertified_"):
        return str(model.uncertified_)
    kind = type(model).__name__
    if hasattr(model, "steps"):
        return (
            f"a certificate is of one classifier and the rows that it was fitted to, and this is a {kind}: with pipe "
            "for it, verify(pipe[-1], pipe[:-1].transform(X), y)."
        )
    if hasattr(model, "best_estimator_"):
        return (
            f"a certificate is of one classifier, and this is a {kind}: with search for it, "
            "verify(search.best_estimator_, X, y)."
        )
    if hasattr(model, "support_") and hasattr(model, "estimator_"):
        return (
            f"a certificate is of one classifier and the columns that it was fitted to, and this is a {kind}: with "
            "selector for it, verify(selector.estimator_, selector.transform(X), y)."
        )
    if not hasattr(model, "fit") or any(name.endswith("_") for name in getattr(model, "__dict__", {})):
        return f"{kind} has no certificate: fit a MaxMarginClassifier or a KernelMaxMarginClassifier, which have."
    return "this model is not fitted, so that there is nothing to verify: call fit first."


def _check_missing(X: Any, names: Any) -> None:
    """Raise CertificateError where entries are missing, with the first column in which they are."""
    with np.errstate(over="ignore", invalid="ignore"):
        if np.isfinite((X.data if sp.issparse(X) else X).sum(dtype=np.float64)):  # one pass, no copy
            return
    if sp.issparse(X):
        counts = np.bincount(X.indices[np.isnan(X.data)], minlength=X.shape[1])
    else:
        counts = np.isnan(X).sum(axis=0)
    columns = np.flatnonzero(counts)
    if columns.size:
        j = int(columns[0])
        raise CertificateError(
            f"Input X contains NaN: column {j if names is None else repr(names[j])} is missing in {counts[j]} of "
            f"{X.shape[0]} rows; a certificate is about the data of the fit."
        )


def _recheck_all(
    certificate: Certificate | Certificates,
    sample: Sample,
    labels: np.ndarray,
    coef: np.ndarray,
    intercept: np.ndarray,
    classes: Any,
) -> Certificate | Certificates:
    def against_rest(name: Any) -> Sample:
        return replace(sample, y=np.where(labels == name, 1.0, -1.0), like=sample)

    binary = isinstance(certificate, Certificate)
    count = 1 if binary else len(certificate)
    expected = 1 if len(classes) == 2 else len(classes)
    if count != expected or coef.shape[0] != count or intercept.shape != (count,):
        raise CertificateError(
            f"{len(classes)} classes need {expected} certificates, rows of coef_ and intercepts; there are {count}, "
            f"{coef.shape[0]} and {intercept.size}."
        )
    if isinstance(certificate, Certificate):
        return _recheck(certificate, against_rest(classes[1]), coef[0], intercept[0])
    parts = []
    for k, part in enumerate(certificate):
        try:
            parts.append(_recheck(part, against_rest(classes[k]), coef[k], intercept[k]))
        except CertificateError as error:
            raise CertificateError(f"class {_plain(classes[k])!r}: {error}") from None
    return Certificates(certificate.classes, tuple(parts))


def _plain(label: Any) -> Any:
    """A label as Python prints it."""
    return label.item() if isinstance(label, np.generic) else label


def _class_weights(model: Any, labels: np.ndarray) -> np.ndarray:
    factors = np.ones(labels.shape[0])
    for name, factor in zip(model.classes_, model.class_weight_, strict=True):
        factors[labels == name] = factor
    return factors


def _check_labels(model: Any, labels: np.ndarray, weights: np.ndarray) -> None:
    strange = ~np.isin(labels, model.classes_) & (weights > 0.0)
    if strange.any():
        raise CertificateError(
            f"y holds a label that the model does not know: {_plain(labels[strange][0])!r}."
        )


def _recheck(claim: Certificate, sample: Sample, w: np.ndarray, b: float) -> Certificate:
    check_claim(claim, sample, b)
    if w.shape != (sample.X.shape[1],):
        raise CertificateError(
            f"the model has {w.size} weights for {sample.X.shape[1]} features: they do not fit."
        )
    found = bounds(claim.problem, sample, w, b, claimed_weights(claim, sample), Compensated)
    check_found(claim, found)
    return replace(claim, lower=float(found.lower), upper=float(found.upper))


def check_claim(claim: Certificate, sample: Sample, b: float) -> None:
    """Does the certificate belong to these data, and its intercept to its problem?"""
    difference = claim.fingerprint.difference(fingerprint(sample))
    if difference is not None:
        raise CertificateError(f"this certificate was made for other data: {difference}.")
    if claim.problem.intercept == "none" and b != 0.0:
        raise CertificateError("the upper bound fails: the model has an intercept, its problem has none.")


def claimed_weights(claim: Certificate, sample: Sample) -> np.ndarray:
    """The dual weights of a certificate, one a row, if they are such as its problem allows."""
    problem, y, rows = claim.problem, sample.y, sample.y.size
    side = "upper" if problem.hard else "lower"
    support, dual = np.asarray(claim.support), np.asarray(claim.dual)
    if support.shape != dual.shape or support.ndim != 1 or support.dtype.kind not in "iu":
        raise CertificateError(
            f"the {side} bound fails: there must be one dual weight for each row it names."
        )
    if support.size and not (support[0] >= 0 and support[-1] < rows and (np.diff(support) > 0).all()):
        raise CertificateError(
            f"the {side} bound fails: it names rows that the data do not have, or one twice."
        )
    alpha = np.zeros(rows)
    alpha[support] = dual
    if not np.all(alpha >= 0.0):
        raise CertificateError(f"the {side} bound fails: a dual weight is negative or not a number.")
    if np.any(alpha > problem.caps(sample.weights)):
        raise CertificateError(f"the {side} bound fails: a dual weight is above its cap C s_i.")
    total = Compensated.total(alpha)
    if problem.free and abs(Compensated.total(alpha * y)) > 1e-12 * total:
        raise CertificateError(f"the {side} bound fails: dual weights are not balanced between the classes.")
    return alpha


def check_found(claim: Certificate, found: Bounds) -> None:
    """Do the bounds that the data give prove what is claimed?"""
    if not found.lower >= claim.lower - found.below:
        raise CertificateError(
            f"the lower bound fails: {claim.lower:.17g} is claimed, the data give {found.lower:.17g}."
        )
    if not found.upper <= claim.upper + found.above:
        raise CertificateError(
            f"the upper bound fails: {claim.upper:.17g} is claimed, the data give {found.upper:.17g}."
        )
    if found.lower > found.upper:
        raise CertificateError(
            f"the bounds cross: the data give {found.lower:.17g} as lower, {found.upper:.17g} as upper bound."
        )
