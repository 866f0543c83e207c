"""Bounds for kernel machines: those of `certificates`, with w = sum c_i phi(x_i) known by its kernel values alone.

Everything is read off products of the Gram matrix with dual weights and with the coefficients of w, in float64:
the scores f_j = sum_i c_i k(x_i, x_j), and |w|^2 = sum c_j f_j. Entries are taken to be off by
`Kernel.error`, sums by their rounding, and by the least number for each product, which may underflow; bounds
are rounded outwards: they hold for the kernel as it is, not as computed.

Of the linear kernel w itself is at hand: it is summed up in more digits, as sums of large coefficients cancel, and the
scores are read off it. Kernel values, whose errors do not cancel, take no part.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np

from ..kernels.functions import Kernel, Linear, Precomputed, Products
from ..kernels.gram import BLOCK, gram_product
from ..numerics.sums import Compensated, Plain
from ..problem.intercept import best_intercept, best_multiple_and_intercept
from ..problem.multiclass import parts_of
from ..problem.problem import Problem
from .bounds import (
    Bounds,
    Certificate,
    CertificateError,
    Certificates,
    Sample,
    check_claim,
    check_found,
    claimed_weights,
    feasible,
    fingerprint,
    training_data,
)
from .definiteness import check_kernel

EPS = float(np.finfo(float).eps)
NORMAL, LEAST = float(np.finfo(float).smallest_normal), float(np.finfo(float).smallest_subnormal)
RANGE = (
    1e-250,
    1e250,
)  # of the largest kernel value: terms of sums neither overflow nor lose digits that count
FEW = 2**17  # entries of rows, up to which their scores have more digits as well
TINY = 1e-155  # no row whose square underflows is longer
LOST = 0.1  # share of the largest kernel value by which one may be off
NEXT = 1e-3  # share of the best objective, up to which others are as good
AS_SMALL = 1.001  # a gap that is no larger is the same
TURNS = 20  # length and intercept in turn


class KernelPoint(NamedTuple):
    """Dual weights, and a primal point w = sum coefficients_i phi(x_i) with its intercept."""

    alpha: np.ndarray
    coefficients: np.ndarray
    intercept: float


class KernelBounds(NamedTuple):
    """Bounds, rounded outwards, and the point that proves them.

    `value` is the objective of its primal side in float64, or the margin, where it is hard: nothing is taken from it.
    """

    bounds: Bounds
    point: KernelPoint
    value: float


@dataclass(frozen=True, eq=False)
class KernelSample:
    """Rows and their kernel, as a certificate sees them.

    Parameters
    ----------
    kernel : Kernel
        Whose values, computed in float64, are off by no more than `kernel.error`.
    X : ndarray or CSR matrix of shape (n, d)
    rounded : float, default=0
        By how much, relative to itself, a coefficient may be off where equal rows share it.

    Attributes
    ----------
    features : ndarray or CSR matrix of shape (n, d), or None
        The rows as they are, where the kernel is their inner product.
    """

    kernel: Kernel
    X: Any
    rounded: float = 0.0

    error: float = 0.0
    most: Any = None  # of the diagonal
    diagonal: Any = None
    features: Any = None
    product: Callable[[np.ndarray], np.ndarray] | None = None  # by values that are at hand

    def __post_init__(self) -> None:
        if self.most is not None:
            return
        rows = self.X.astype(np.float64, copy=False)
        object.__setattr__(self, "X", self.kernel.prepared(rows))
        if isinstance(self.kernel, Linear):
            object.__setattr__(self, "features", rows)
        with np.errstate(over="ignore", invalid="ignore"):
            diagonal = self.kernel.diagonal(self.X)
            most = float(np.abs(diagonal).max(initial=0.0))
            square = 1.0
            if isinstance(self.kernel, Products):
                square = float(Linear().diagonal(self.X).max(initial=0.0))
        given = isinstance(self.kernel, Precomputed)
        if not most <= RANGE[1]:
            remedy = "scale the matrix" if given else "scale the features, or lower gamma or coef0"
            raise ValueError(
                f"The kernel overflows in sums, if not before: its values reach {most:.3g}, and bounds can be computed "
                f"up to {RANGE[1]:g}; {remedy}."
            )
        if square < NORMAL and abs(rows).max() > 0.0:
            raise ValueError(
                "The squares of rows of this length underflow, and kernel values with them: scale the features."
            )
        if 0.0 < most < RANGE[0]:
            raise ValueError(
                f"The kernel underflows in sums, if not before: its values reach {most:.3g}, and bounds can be "
                f"computed from {RANGE[0]:g} on; scale the {'matrix' if given else 'features'}."
            )
        error = self.kernel.error(self.X)
        if not np.isfinite(error):
            raise ValueError(
                "The squares of rows of this length overflow, and kernel values with them: scale the features."
            )
        if error > LOST * most:
            raise ValueError(
                f"Kernel values are lost in rounding: they are {most:.3g} at most, and may be off by {error:.3g}. "
                "Take the mean of each feature from it, and scale the features."
            )
        object.__setattr__(self, "most", most)
        object.__setattr__(self, "diagonal", diagonal)
        object.__setattr__(self, "error", error)

    def scores(self, c: np.ndarray) -> np.ndarray:
        """sum_i c_i k(x_i, x_j) of every row j; of several c, shape (m, n), at the price of one."""
        if self.features is not None:
            return np.reshape([self._summed(one).scores for one in np.atleast_2d(c)], c.shape)
        return gram_product(self.kernel, self.X, c) if self.product is None else self.product(c)

    def combinations(self, c: np.ndarray) -> list[Combination]:
        """sum_i c_i phi(x_i) of several c, shape (m, n)."""
        if self.features is not None:
            return [self._summed(one) for one in c]
        return [self._valued(one, scores) for one, scores in zip(c, self.scores(c), strict=True)]

    def multiple(self, w: Combination, t: float, c: np.ndarray) -> Combination:
        """t times this combination, whose coefficients `c` are t times its own but for rounding.

        Where values of the kernel are off by as much, that rounding is nothing more; features see it.
        """
        if self.features is not None:
            return w if np.array_equal(c, w.c) else self._summed(c)
        return Combination(c, t * w.scores, t * (t * w.square), abs(t) * w.off, t * (t * w.uncertain))

    def part(self, places: np.ndarray) -> KernelSample:
        """These rows; nothing of theirs is larger than of all."""
        if places.size == self.X.shape[0]:
            return self
        X, diagonal = self.kernel.part(self.X, places), self.diagonal[places]
        features = None if self.features is None else self.features[places]
        return replace(self, X=X, diagonal=diagonal, features=features, product=None)

    def _valued(self, c: np.ndarray, scores: np.ndarray) -> Combination:
        """By values of the kernel."""
        total, terms = float(np.abs(c).sum()), int(np.count_nonzero(c)) + 4
        square = float(c @ scores)
        added = min(terms, BLOCK + c.size // BLOCK + 5)  # a block's sum, and the sum of the blocks
        underflow = LEAST if self.most > 0.0 else 0.0
        off = total * (self.error + (added + 2.0) * EPS * self.most) + terms * underflow
        uncertain = total * off + terms * (EPS * float(np.abs(c * scores).sum()) + underflow)
        return Combination(c, scores, max(square, 0.0), off, uncertain)

    def _summed(self, c: np.ndarray) -> Combination:
        """By features."""
        more, X, d, used = Compensated, self.features, self.features.shape[1], np.flatnonzero(c)
        digits = more if X.shape[0] * d <= FEW else Plain
        w = more.combine(X[used], c[used])
        scores = digits.scores(X, w)
        underflow = LEAST if self.most > 0.0 else 0.0
        lengths = 1.01 * np.sqrt(self.diagonal) + (TINY if self.most > 0.0 else 0.0)
        size, length = float(np.abs(c) @ lengths), 1.01 * more.norm(w)
        moved = more.error(length, size, more.terms(X, used.size, 0)) + self.rounded * size
        moved += 8.0 * (used.size + 1.0) * d * underflow
        off = digits.error(scores, lengths * length, digits.terms(X, d, 1)) + 1.01 * lengths * moved
        off += (d + 2.0) * underflow
        square = more.square(w)
        uncertain = moved * (2.0 * length + moved) + more.error(square, square, d) + (d + 2.0) * underflow
        return Combination(c, scores, square, off, 1.01 * uncertain)


class Combination(NamedTuple):
    """sum c_i phi(x_i): scores, squared length, and by how much these may be off."""

    c: np.ndarray
    scores: np.ndarray
    square: float
    off: Any  # of every score, or of any
    uncertain: float


def kernel_bounds(
    problem: Problem, kernel: Kernel, X: Any, y: np.ndarray, weights: np.ndarray, alpha: np.ndarray
) -> KernelBounds:
    """The bounds that dual weights prove, with the best primal point along them.

    Parameters
    ----------
    problem : Problem
        p = 2.
    kernel : Kernel
    X : ndarray or CSR matrix of shape (n, d)
    y : ndarray of shape (n,), entries -1.0 and 1.0
    weights : ndarray of shape (n,)
        Sample weights; rows of weight 0 take no part.
    alpha : ndarray of shape (n,)
        Any non-negative numbers; they are made feasible first.
    """
    return all_bounds(
        [problem], KernelSample(kernel, X), [y], [weights], [KernelPoint(alpha, alpha * y, 0.0)]
    )[0]


def attained(problem: Problem, sample: KernelSample, y: np.ndarray, c: np.ndarray, b: float) -> float:
    """What the margin of sum c_i k(x_i, .) + b is at least, rounded downwards.

    Parameters
    ----------
    problem : Problem
        A hard margin.
    sample : KernelSample
    y : ndarray of shape (n,), entries -1.0 and 1.0
    c : ndarray of shape (n,)
    b : float
    """
    return _primal_side(problem, y, np.ones(y.size), sample.combinations(c[None])[0], b)[0]


def all_bounds(
    problems: Sequence[Problem],
    sample: KernelSample,
    ys: Sequence[np.ndarray],
    weights: Sequence[np.ndarray],
    points: Sequence[KernelPoint],
    gaps: Sequence[float] | None = None,
) -> list[KernelBounds]:
    """The bounds of several problems on the same rows, which cost one computation of the kernel.

    The primal point is that which was given, or where it does not prove a gap that is next to nothing above that of
    `gaps`, the best multiple of the dual one with its best intercept, if that is better (`better`).
    """
    duals = [
        feasible(problem, y, s, point.alpha)
        for problem, y, s, point in zip(problems, ys, weights, points, strict=True)
    ]
    signed = [alpha * y for alpha, y in zip(duals, ys, strict=True)]
    share_of = _share if sample.features is None else _equal
    shares = [share_of(point.coefficients, c) for point, c in zip(points, signed, strict=True)]
    others = [point.coefficients for point, share in zip(points, shares, strict=True) if share is None]
    combinations = sample.combinations(np.array([*signed, *others]))
    rest = iter(combinations[len(signed) :])
    result = []
    for k, (problem, y, s, point) in enumerate(zip(problems, ys, weights, points, strict=True)):
        alpha, dual = _multiplied(problem, sample, s, y, duals[k], combinations[k])
        proof = _dual_side(problem, sample, y, s, alpha, dual)
        if not (problem.hard or proof[0] >= 0.0):  # no dual weights prove more than ones that rounding spoils
            alpha, proof = np.zeros_like(alpha), (0.0, 0.0)
        given, share = None, shares[k]
        if share is None:
            given = next(rest)
        elif not problem.hard and share != 0.0:  # the multiple that is best for the primal may be another
            given = sample.multiple(combinations[k], share, share * combinations[k].c)
        found: list[KernelBounds] = []
        seen = 0.0 if gaps is None else gaps[k]
        for w, b in _primal_points(problem, sample, y, s, given, point.intercept, dual):
            side = _primal_side(problem, y, s, w, b)
            found.append(KernelBounds(_both(problem, proof, side), KernelPoint(alpha, w.c, b), side.value))
            if problem.gap(found[-1].bounds.lower, found[-1].bounds.upper) <= AS_SMALL * seen:
                break
        result.append(better(problem, found))
    return result


def better(problem: Problem, found: Sequence[KernelBounds]) -> KernelBounds:
    """Of those whose objective, or margin, is next to the best, the one that proves most.

    What rounding takes from a bound is no fault of the point: w = 0, of which it takes nothing, is no better for it.
    """
    values = np.array([_worth(problem, one.value) for one in found])
    proved = np.array(
        [_worth(problem, one.bounds.lower if problem.hard else one.bounds.upper) for one in found]
    )
    gaps = np.array([problem.gap(one.bounds.lower, one.bounds.upper) for one in found])
    near = values <= values.min() + NEXT * abs(values.min())
    if problem.hard and (proved < 0.0).any():  # `proved` is minus a margin: a proved separator comes first
        near = proved < 0.0
    return found[int(np.lexsort((values, proved, gaps, ~near))[0])]


def _primal_points(
    problem: Problem,
    sample: KernelSample,
    y: np.ndarray,
    weights: np.ndarray,
    given: Combination | None,
    intercept: float,
    dual: Combination,
) -> Iterator[tuple[Combination, float]]:
    """What may attain the most: the point that was given, that along the dual one, those without losses, and none."""
    tried = [] if given is None else [(given, intercept)]
    yield from tried
    tried.append(_best_primal(problem, sample, dual, y, weights))
    yield tried[-1]
    if not problem.hard:
        for w, b in tried:
            yield from _without_losses(sample, y, weights, w, b)
        yield _nothing(problem, y, weights)


def _worth(problem: Problem, value: float) -> float:
    """What is least for the best primal point; not a number is the worst."""
    value = -value if problem.hard else value
    return np.inf if np.isnan(value) else value


def _nothing(problem: Problem, y: np.ndarray, weights: np.ndarray) -> tuple[Combination, float]:
    """w = 0 and its best intercept."""
    zero = np.zeros(y.size)
    b = best_intercept(problem, zero, y, weights) if problem.free else 0.0
    return Combination(zero, zero, 0.0, 0.0, 0.0), b


def _both(problem: Problem, dual: tuple[float, float], primal: _Side) -> Bounds:
    """A bound and what rounding took from it, of either side: which of them is the lower one?"""
    (lower, below), (upper, above) = (primal[:2], dual) if problem.hard else (dual, primal[:2])
    return Bounds(lower, upper, below, above)


def _share(c: np.ndarray, other: np.ndarray) -> float | None:
    """The t for which c is t times the other, but for rounding: its scores are known without it; else None."""
    square = float(other @ other)
    if square == 0.0 or not c.any():
        return None if c.any() else 0.0
    t = float(c @ other) / square
    t = 1.0 if abs(t - 1.0) <= c.size * EPS else t  # no rounding beyond a cap
    return t if float(np.abs(c - t * other).max()) <= 1e-9 * float(np.abs(c).max()) else None


def _equal(c: np.ndarray, other: np.ndarray) -> float | None:
    """`_share` where rounding is seen: sums of large coefficients cancel, so that next to equal ones make another w."""
    return 1.0 if np.array_equal(c, other) else None


def _multiplied(
    problem: Problem,
    sample: KernelSample,
    weights: np.ndarray,
    y: np.ndarray,
    alpha: np.ndarray,
    dual: Combination,
) -> tuple[np.ndarray, Combination]:
    """The best multiple of the dual weights; of a hard margin only proportions count."""
    if problem.hard or not alpha.any():
        return alpha, dual
    own = problem.rho * float(dual.c.sum())
    t = problem.multiple(alpha, dual.square + own * own, weights)
    alpha = np.minimum(t * alpha, problem.caps(weights))
    return alpha, sample.multiple(dual, t, alpha * y)


def _dual_side(
    problem: Problem,
    sample: KernelSample,
    y: np.ndarray,
    weights: np.ndarray,
    alpha: np.ndarray,
    dual: Combination,
) -> tuple[float, float]:
    """What the dual weights prove, and what rounding took from it."""
    terms, total = int(np.count_nonzero(alpha)) + 4, float(alpha.sum())
    own = problem.rho * float(dual.c.sum())
    square = dual.square + own * own
    uncertain = dual.uncertain + 4.0 * terms * EPS * problem.rho * problem.rho * total * total
    # classes whose totals differ by rounding: scaling the heavier one down moves v by so much
    uneven = 0.0
    if problem.free:
        uneven = abs(math.fsum(dual.c[dual.c != 0.0].tolist()))
        moved = uneven * sample.most**0.5
        uncertain += 2.0 * moved * ((square + uncertain) ** 0.5 + moved)
    if problem.hard:
        rest = total * (1.0 - (alpha.size + 4.0) * EPS) - uneven
        if not rest > 0.0:
            return np.inf, 0.0
        upper = (square + uncertain) ** 0.5 / rest * (1.0 + 8.0 * EPS)
        return upper, upper - square**0.5 / total
    size = float((2.0 * alpha - problem.gains(alpha, weights)).sum())
    below = 0.5 * uncertain + (terms + 4.0) * EPS * (size + square) + 2.0 * uneven
    return problem.dual(square, alpha, weights) - below, below


class _Side(NamedTuple):
    """What a primal point attains, what rounding took from that, and what it attains as computed."""

    bound: float
    taken: float
    value: float


def _primal_side(problem: Problem, y: np.ndarray, weights: np.ndarray, w: Combination, b: float) -> _Side:
    margins, slack = _margins(y, w, b)
    square = problem.norm2(w.square, b)
    if problem.hard:
        used = weights > 0.0
        least = float((margins - slack)[used].min())
        if not square > 0.0:
            return _Side(-np.inf, 0.0, -np.inf)
        value = float(margins[used].min()) / square**0.5
        far = square + w.uncertain if least > 0.0 else max(square - w.uncertain, 0.0)
        lower = least / far**0.5 if far > 0.0 else -np.inf
        lower -= 8.0 * EPS * abs(lower)
        return _Side(lower, value - lower if np.isfinite(lower) else 0.0, value)
    value = problem.primal(0.5 * square, margins, weights)
    upper = problem.primal(0.5 * (square + w.uncertain), margins - slack, weights)
    upper += (margins.size + 8.0) * EPS * upper
    return _Side(upper, upper - value, value)


def _margins(y: np.ndarray, w: Combination, b: float) -> tuple[np.ndarray, np.ndarray]:
    """The margins, and by how much each may be off."""
    margins = y * (w.scores + b)
    rounded = np.where(w.scores == 0.0, 0.0, 4.0 * EPS * np.abs(margins))  # b alone is not rounded
    return margins, w.off + rounded


def _without_losses(
    sample: KernelSample, y: np.ndarray, weights: np.ndarray, w: Combination, b: float
) -> list[tuple[Combination, float]]:
    """The multiple whose margins reach 1, for all that rounding may do: a large C magnifies what is missing.

    Three times what they may be off: here, and twice where scores are computed anew.
    """
    margins, slack = _margins(y, w, b)
    least = float((margins - 3.0 * slack).min(where=weights > 0.0, initial=np.inf))
    if not 0.0 < least < 1.0:
        return []
    t = (1.0 + 16.0 * EPS) / least
    return [(sample.multiple(w, t, t * w.c), t * b)]


def _best_primal(
    problem: Problem, sample: KernelSample, dual: Combination, y: np.ndarray, weights: np.ndarray
) -> tuple[Combination, float]:
    """The best multiple of the w of these dual weights, and its intercept."""
    constant = problem.rho * problem.rho * float(dual.c.sum())
    t, b = 1.0, constant
    if problem.free:
        b = best_intercept(problem, dual.scores, y, weights)
    if problem.hard:
        smallest = float((y * (dual.scores + b))[weights > 0.0].min())
        t = 1.0 / smallest if smallest > 0.0 else 1.0  # canonical scale: the smallest margin is one
        b = t * b
    elif problem.loss == "squared_hinge":
        t, b = best_multiple_and_intercept(problem, dual.square, dual.scores, b, y, weights, TURNS)
    return sample.multiple(dual, t, t * dual.c), b


def certificate(
    problem: Problem, kernel: Kernel, sample: Sample, found: Bounds, alpha: np.ndarray
) -> Certificate:
    """Bounds and the dual weights that prove one of them, with the fingerprint of the data."""
    support = np.flatnonzero(alpha).astype(np.int64)
    return Certificate(
        problem, float(found.lower), float(found.upper), support, alpha[support], fingerprint(sample), kernel
    )


@contextmanager
def _of(label: Any, model: Any) -> Iterator[None]:
    """A failure names the problem, where there are several."""
    try:
        yield
    except CertificateError as error:
        if len(model.classes_) == 2:
            raise
        names = model.classes_[list(np.atleast_1d(label))].tolist()
        what = f"class {names[0]!r}" if len(names) == 1 else f"classes {names[0]!r} and {names[1]!r}"
        raise CertificateError(f"{what}: {error}") from None


def _support(model: Any, X: Any) -> np.ndarray:
    """The rows of the support vectors, if they and their coefficients belong together."""
    support, counts = np.asarray(model.support_), np.asarray(model.n_support_)
    dual_coef = np.asarray(model.dual_coef_)
    if support.ndim != 1 or support.dtype.kind not in "iu" or np.unique(support).size != support.size:
        raise CertificateError("support_ must name rows by their numbers, each once.")
    if support.size and not (support.min() >= 0 and support.max() < X.shape[0]):
        raise CertificateError("support_ names rows that the data do not have.")
    if dual_coef.ndim != 2 or dual_coef.shape[1] != support.size or counts.sum() != support.size:
        raise CertificateError(
            f"{support.size} support vectors, dual_coef_ of shape {dual_coef.shape} and {counts.sum()} by class: they "
            "do not fit."
        )
    if counts.shape != (len(model.classes_),):
        raise CertificateError(f"n_support_ must hold a number for each of {len(model.classes_)} classes.")
    return support


def verify_kernel(model: Any, X: Any, y: Any, sample_weight: Any = None) -> Certificate | Certificates:
    """`verify` for a model that is a combination of kernel functions.

    Every number is recomputed from the data by kernel values in float64. The kernel is that of the certificate; of
    a matrix given as ``kernel="precomputed"``, X is the matrix.
    """
    X, labels, weights = training_data(model, X, y, sample_weight)
    claim = model.certificate_
    parts = claim.certificates
    scheme = parts_of(model.multi_class_, len(model.classes_))
    support = _support(model, X)
    coefficients = scheme.unpacked(np.asarray(model.dual_coef_, float), np.asarray(model.n_support_))
    intercepts = np.ravel(model.intercept_)
    if not len(parts) == len(scheme.labels) == len(coefficients) == len(intercepts):
        raise CertificateError(
            f"{len(model.classes_)} classes need {len(scheme.labels)} certificates and intercepts; there are "
            f"{len(parts)} and {intercepts.size}."
        )
    codes = np.searchsorted(model.classes_, labels)
    codes = np.where(np.isin(labels, model.classes_), codes, -1)
    data = Sample(X, np.zeros(labels.size), weights)
    kernel = parts[0].kernel
    if isinstance(kernel, Precomputed) and X.shape[0] != X.shape[1]:
        raise CertificateError(f"a precomputed kernel is a square matrix; got shape {X.shape}.")
    if any(part.kernel != kernel for part in parts):
        raise CertificateError("the certificates of this model are about different kernels.")
    try:
        check_kernel(kernel, X)
    except ValueError as error:
        raise CertificateError(f"no bound holds: {error}") from None
    sample = KernelSample(kernel, X)
    signs, shares, vectors = [], [], []
    for k, part in enumerate(parts):
        with _of(scheme.labels[k], model):
            s, among = scheme.signs(k, codes)
            signs.append(s)
            shares.append(np.where(among, weights, 0.0))
            here = replace(data, y=s, weights=shares[-1], like=data)
            check_claim(part, here, float(intercepts[k]))
            w = np.zeros(labels.size)
            w[support] = coefficients[k]
            vectors += [claimed_weights(part, here) * s, w]
    if not np.array_equal(codes[support], np.repeat(np.arange(len(model.classes_)), model.n_support_)):
        raise CertificateError("n_support_ does not fit the classes of the support vectors.")
    if not isinstance(kernel, Precomputed):
        rows = model.support_vectors_
        if rows.shape != (support.size, X.shape[1]) or (rows != X[support]).sum():
            raise CertificateError("support_vectors_ are not the rows that support_ names.")
    with np.errstate(over="ignore", invalid="ignore"):
        combinations = sample.combinations(np.array(vectors))
    found = []
    for k, part in enumerate(parts):
        with _of(scheme.labels[k], model):
            alpha = vectors[2 * k] * signs[k]
            dual, w = combinations[2 * k : 2 * k + 2]
            dual_side = _dual_side(part.problem, sample, signs[k], shares[k], alpha, dual)
            primal_side = _primal_side(part.problem, signs[k], shares[k], w, float(intercepts[k]))
            now = _both(part.problem, dual_side, primal_side)
            check_found(part, now)
            found.append(replace(part, lower=float(now.lower), upper=float(now.upper)))
    return found[0] if isinstance(claim, Certificate) else Certificates(claim.classes, tuple(found))
