"""Bounds on the best possible objective or margin, and their verification from the data alone.

Every non-negative combination of patterns is a certificate. With alpha feasible and v = sum alpha_i y_i x_i

* soft:  sum alpha_i - 1/2 |v|^2 - sum alpha_i^2 / (4 C s_i) [squared hinge]  <=  optimum  <=  primal value,
* hard:  min m_i / |w|  <=  largest margin  <=  |v| / sum alpha_i,

where a free intercept asks for alpha balanced between the classes (weak duality; for the margin, the
distance between the convex hulls). This module knows no solver: it imports NumPy and the problem record.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp

from .arithmetic import Compensated, Plain
from .problems import Problem

_EPS = float(np.finfo(float).eps)
FEW, SEEN_FEW, SEEN = 20_000, 1e-12, 1e-10  # entries; rounding of this share of a bound is avoided


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


def fingerprint(
    X: Any, y: np.ndarray, weights: np.ndarray, projection: np.ndarray | None = None
) -> Fingerprint:
    """The fingerprint of patterns (X, y) with these weights; `projection` is that of `project(X)`."""
    z = project(X) if projection is None else projection
    n, d = X.shape
    shuffle = (np.arange(n, dtype=np.uint32) * np.uint32(2654435769)) >> np.uint32(12)
    t = (1.0 + shuffle * 2.0**-20) * (1.0 + weights) * (1.5 + 0.5 * y)
    return Fingerprint(n, d, int(np.sum(y > 0)), float(t @ z), float(np.abs(t) @ np.abs(z)))


def project(X: Any) -> np.ndarray:
    """One number a row, in which every entry has its own share."""
    return 1.0 + Plain.scores(X, 1.0 + 0.5 * np.sin(np.arange(1.0, X.shape[1] + 1.0)))


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
    """

    problem: Problem
    lower: float
    upper: float
    support: np.ndarray
    dual: np.ndarray
    fingerprint: Fingerprint

    @property
    def gap(self) -> float:
        """The certified relative gap."""
        return self.problem.gap(self.lower, self.upper)

    @property
    def rows(self) -> int:
        """How many rows the data had."""
        return self.fingerprint.rows

    def __repr__(self) -> str:
        return str(self)

    def __str__(self) -> str:
        problem = self.problem
        what = "margin" if problem.hard else "objective"
        name = "hard margin" if problem.hard else f"{problem.loss}, C = {problem.C:g}"
        word = {"none": "no intercept", "free": "free intercept", "augmented": "augmented intercept"}
        return (
            f"{name}, p = {problem.p:g}, {word[problem.intercept]}\n"
            f"  {self.lower:.12g} <= best {what} <= {self.upper:.12g}\n"
            f"  gap {self.gap:.3g}, proved by {self.support.size} of {self.rows} rows"
        )


@dataclass(frozen=True, eq=False)
class Certificates:
    """One certificate per class of a one-vs-rest model; the gap is the largest."""

    classes: tuple[Any, ...]
    parts: tuple[Certificate, ...]

    @property
    def gap(self) -> float:
        """The largest gap of all classes."""
        return max(part.gap for part in self.parts)

    def __iter__(self):
        return iter(self.parts)

    def __len__(self) -> int:
        return len(self.parts)

    def __getitem__(self, k: int) -> Certificate:
        return self.parts[k]

    def __repr__(self) -> str:
        return str(self)

    def __str__(self) -> str:
        lines = [f"{len(self)} classes, one against the rest; largest gap {self.gap:.3g}"]
        for name, part in zip(self.classes, self.parts, strict=True):
            lines.append(f"{name}: {part.lower:.9g} <= best <= {part.upper:.9g}, gap {part.gap:.3g}")
        return "\n".join(lines)


def feasible(problem: Problem, y: np.ndarray, weights: np.ndarray, alpha: np.ndarray) -> np.ndarray:
    """The dual weights nearest at hand that the bound allows: capped, and balanced between the classes.

    The heavier class is scaled down, which no cap forbids. Those of the hard margin, of which only the
    proportions count, get the sum one.
    """
    alpha = np.clip(alpha, 0.0, problem.caps(weights))
    if problem.hard:
        alpha = _proportions(alpha)
    if problem.free:
        positive = y > 0
        plus, minus = float(alpha[positive].sum()), float(alpha[~positive].sum())
        if plus > 0.0 and minus > 0.0:
            alpha = alpha * np.where(positive, min(1.0, minus / plus), min(1.0, plus / minus))
            _balance(alpha, y)
        else:
            alpha = np.zeros_like(alpha)
    return _proportions(alpha) if problem.hard else alpha


def _balance(alpha: np.ndarray, y: np.ndarray) -> None:
    """Take what rounding left between the classes from the largest dual weight of the heavier one."""
    for _ in range(2):
        excess = math.fsum((alpha * y)[alpha > 0.0].tolist())
        k = int(np.argmax(np.where(y * excess > 0.0, alpha, -1.0)))
        alpha[k] = max(alpha[k] - abs(excess), 0.0)


def _proportions(alpha: np.ndarray) -> np.ndarray:
    """Divided by their sum: tiny numbers would lose their squares."""
    largest = float(alpha.max(initial=0.0))
    if not (np.isfinite(largest) and largest > 0.0):
        return np.zeros_like(alpha)
    alpha = alpha / largest
    return alpha / alpha.sum()


def certify(
    problem: Problem,
    X: Any,
    y: np.ndarray,
    weights: np.ndarray,
    w: np.ndarray,
    b: float,
    alpha: np.ndarray,
    projection: np.ndarray | None = None,
    square: np.ndarray | None = None,
) -> Certificate:
    """The certificate of a primal point (w, b) and dual weights alpha, made feasible first.

    Parameters
    ----------
    problem : Problem
    X : ndarray or CSR matrix of shape (n, d)
    y : ndarray of shape (n,), entries -1.0 and 1.0
    weights : ndarray of shape (n,)
        Sample weights; rows of weight 0 take no part.
    w : ndarray of shape (d,)
    b : float
    alpha : ndarray of shape (n,)
        Any non-negative numbers; best, those of a solver.
    projection, square : ndarray of shape (n,), default=None
        `project(X)` and the squared norms of the rows, where they are known.

    Notes
    -----
    Sums are ordinary ones, unless their rounding could be seen in the bounds: then they are compensated.
    """
    alpha = feasible(problem, y, weights, alpha)
    v2 = _combined(problem, X, alpha * y, Plain)  # (hard: of weights that sum to one already)
    arithmetic = _arithmetic(problem, X, weights, w, b, alpha, v2, square)
    if arithmetic is not Plain:
        v2 = _combined(problem, X, alpha * y, arithmetic)
    multiple = _best_multiple(problem, weights, alpha, v2)
    alpha, v2 = alpha * multiple, v2 * multiple * multiple
    if arithmetic is not Plain:  # the multiple has rounded the dual weights once more
        if problem.free:
            _balance(alpha, y)
        v2 = None
    lower, upper = bounds(problem, X, y, weights, w, b, alpha, arithmetic, v2)
    support = np.flatnonzero(alpha).astype(np.int64)
    return Certificate(problem, lower, upper, support, alpha[support], fingerprint(X, y, weights, projection))


def bounds(
    problem: Problem,
    X: Any,
    y: np.ndarray,
    weights: np.ndarray,
    w: np.ndarray,
    b: float,
    alpha: np.ndarray,
    arithmetic: type[Plain] | type[Compensated] = Plain,
    v2: float | None = None,
) -> tuple[float, float]:
    """(lower, upper) from the data; alpha must be feasible. `v2` is |sum alpha_i y_i x_i|^2, if known."""
    if problem.hard:
        alpha = _proportions(alpha)  # whoever made them: tiny ones would make |v|^2 vanish, and a false bound
    margins = y * arithmetic.scores(X, w, b)
    length2 = problem.norm2(arithmetic.square(w), b)
    v2 = _combined(problem, X, alpha * y, arithmetic) if v2 is None else v2
    if problem.hard:
        total = arithmetic.total(alpha)
        upper = float(np.sqrt(v2)) / total if total > 0.0 else np.inf
        smallest = float(margins[weights > 0.0].min())
        return (smallest / float(np.sqrt(length2)) if length2 > 0.0 else -np.inf), upper
    lower = problem.dual(v2, alpha, weights, arithmetic.total)
    if problem.free and b != 0.0:  # balanced but for rounding, which the intercept multiplies
        lower -= abs(b * arithmetic.total(alpha * y))
    return lower, problem.primal(length2, margins, weights, arithmetic.total)


def _arithmetic(
    problem: Problem,
    X: Any,
    weights: np.ndarray,
    w: np.ndarray,
    b: float,
    alpha: np.ndarray,
    v2: float,
    square: np.ndarray | None,
) -> type[Plain] | type[Compensated]:
    """Ordinary sums where their rounding is far below what a bound says, else compensated ones."""
    n, d = X.shape
    norms = np.sqrt(Plain.row_squares(X) if square is None else square) + problem.rho
    unit = _EPS * (16.0 + np.sqrt(n + d))  # rounding errors of a sum seldom all have one sign
    total = float(alpha.sum())
    off_v = unit * float(alpha @ norms)
    off_margin = unit * (float(norms.max(initial=0.0)) * float(np.sqrt(Plain.square(w))) + abs(b))
    if problem.hard:
        off, size = off_v + off_margin * np.sqrt(v2), float(np.sqrt(v2))
    else:
        off, size = off_v * (float(np.sqrt(v2)) + off_v) + off_margin * total, abs(total - 0.5 * v2)
        if problem.loss == "squared_hinge":  # the losses of margins that rounding leaves below one
            off += float(problem.losses(np.full(n, 1.0 - off_margin), weights) @ (alpha > 0.0))
    entries = X.nnz if sp.issparse(X) else n * d
    return Plain if off <= (SEEN_FEW if entries <= FEW else SEEN) * size else Compensated


def _combined(problem: Problem, X: Any, c: np.ndarray, arithmetic: type[Plain] | type[Compensated]) -> float:
    """|sum c_i x_i|^2, the augmented coordinate included."""
    v2 = arithmetic.square(arithmetic.combine(X, c))
    return v2 + (problem.rho * arithmetic.total(c)) ** 2 if problem.rho else v2


def _best_multiple(problem: Problem, weights: np.ndarray, alpha: np.ndarray, v2: float) -> float:
    """The multiple of alpha with the largest dual value; of no account for the hard margin."""
    total = float(alpha.sum())
    if problem.hard or total == 0.0:
        return 1.0
    quadratic = v2
    used = alpha > 0.0
    if problem.loss == "squared_hinge":
        quadratic += float(problem.delta2(weights) @ (alpha * alpha))
    best = total / quadratic if quadratic > 0.0 else np.inf
    best = min(best, float(np.min(problem.caps(weights)[used] / alpha[used])))
    return best if np.isfinite(best) else 1.0


def verify(model: Any, X: Any, y: Any, sample_weight: Any = None) -> Certificate | Certificates:
    """Recompute every number of a model's certificate from the data, in float64 with compensated sums.

    Parameters
    ----------
    model : fitted MaxMarginClassifier, or a model that `load` returned
    X : array-like or sparse matrix of shape (n, d)
        The training data.
    y : array-like of shape (n,)
        The training labels.
    sample_weight : array-like of shape (n,), default=None
        The sample weights of the fit.

    Returns
    -------
    Certificate or Certificates
        The same bounds, recomputed.

    Raises
    ------
    CertificateError
        If the certificate belongs to other data, or a bound does not hold: the message says which.
    """
    X = X.tocsr() if sp.issparse(X) else np.asarray(X)
    if X.ndim != 2:
        raise CertificateError(f"X must have two dimensions, rows and features; got {X.ndim}.")
    if X.dtype not in (np.float32, np.float64):
        X = X.astype(np.float64)
    if sp.issparse(X) and not X.has_canonical_format:
        X = X.copy()  # the caller's stays as it is
        X.sum_duplicates()
    if not hasattr(model, "certificate_"):
        raise CertificateError(
            "this model is not fitted, so that there is nothing to verify: call fit first."
        )
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
    coef, intercept, classes = np.asarray(model.coef_, float), np.ravel(model.intercept_), model.classes_
    certificate = model.certificate_
    with np.errstate(over="ignore", invalid="ignore"):
        return _recheck_all(certificate, X, labels, weights, coef, intercept, classes)


def _recheck_all(
    certificate: Certificate | Certificates,
    X: Any,
    labels: np.ndarray,
    weights: np.ndarray,
    coef: np.ndarray,
    intercept: np.ndarray,
    classes: Any,
) -> Certificate | Certificates:
    if isinstance(certificate, Certificate):
        return _recheck(
            certificate, X, np.where(labels == classes[1], 1.0, -1.0), weights, coef[0], intercept[0]
        )
    parts = []
    for k, part in enumerate(certificate):
        try:
            signs = np.where(labels == classes[k], 1.0, -1.0)
            parts.append(_recheck(part, X, signs, weights, coef[k], intercept[k % intercept.size]))
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


def _recheck(
    claim: Certificate, X: Any, y: np.ndarray, weights: np.ndarray, w: np.ndarray, b: float
) -> Certificate:
    now = fingerprint(X, y, weights)
    difference = claim.fingerprint.difference(now)
    if difference is not None:
        raise CertificateError(f"this certificate was made for other data: {difference}.")
    problem = claim.problem
    if problem.intercept == "none" and b != 0.0:
        raise CertificateError("the upper bound fails: the model has an intercept, its problem has none.")
    side = "upper" if problem.hard else "lower"
    support, dual = np.asarray(claim.support), np.asarray(claim.dual)
    if support.shape != dual.shape or support.ndim != 1:
        raise CertificateError(
            f"the {side} bound fails: there must be one dual weight for each row it names."
        )
    if support.size and not (support[0] >= 0 and support[-1] < now.rows and (np.diff(support) > 0).all()):
        raise CertificateError(
            f"the {side} bound fails: it names rows that the data do not have, or one twice."
        )
    if w.shape != (now.features,):
        raise CertificateError(
            f"the model has {w.size} weights for {now.features} features: they do not fit."
        )
    alpha = np.zeros(now.rows)
    alpha[support] = dual
    if not np.all(alpha >= 0.0):
        raise CertificateError(f"the {side} bound fails: a dual weight is negative or not a number.")
    if np.any(alpha > problem.caps(weights) * (1.0 + 1e-12)):
        raise CertificateError(f"the {side} bound fails: a dual weight is above its cap C s_i.")
    total = Compensated.total(alpha)
    if problem.free and abs(Compensated.total(alpha * y)) > 1e-12 * total:
        raise CertificateError(f"the {side} bound fails: dual weights are not balanced between the classes.")
    lower, upper = bounds(problem, X, y, weights, w, b, alpha, Compensated)
    below, above = _rounding(problem, X, y, weights, w, b, alpha)
    if not lower >= claim.lower - below:
        raise CertificateError(
            f"the lower bound fails: {claim.lower:.17g} is claimed, the data give {lower:.17g}."
        )
    if not upper <= claim.upper + above:
        raise CertificateError(
            f"the upper bound fails: {claim.upper:.17g} is claimed, the data give {upper:.17g}."
        )
    if lower > upper + below + above:
        raise CertificateError(
            f"the bounds cross: the data give {lower:.17g} as lower, {upper:.17g} as upper bound."
        )
    return Certificate(problem, lower, upper, claim.support, claim.dual, now)


def _norm(v: np.ndarray) -> float:
    """|v|, also where squares would vanish."""
    top = float(np.abs(v).max(initial=0.0))
    return top * float(np.sqrt(np.sum((v / top) ** 2))) if top > 0.0 else 0.0


def _rounding(
    problem: Problem, X: Any, y: np.ndarray, weights: np.ndarray, w: np.ndarray, b: float, alpha: np.ndarray
) -> tuple[float, float]:
    """By how much ordinary sums may be off (lower, upper): number of terms times eps times their sizes."""
    n, d = X.shape
    size = abs(X)
    unit_row, unit_column = (d + 16.0) * _EPS, (n + 16.0) * _EPS
    off = unit_row * (Plain.scores(size, np.abs(w)) + abs(b) + 1.0)  # of each margin
    length2 = problem.norm2(float(w @ w), b)
    v = Plain.combine(X, alpha * y)
    spread = unit_column * Plain.combine(size, alpha)
    v2 = float(v @ v) + (problem.rho * float((alpha * y).sum())) ** 2
    off2 = float((2.0 * np.abs(v) + spread) @ spread) + unit_row * v2
    if problem.rho:
        off2 += (2.0 * v2**0.5 + unit_column * problem.rho * float(alpha.sum())) * (
            unit_column * problem.rho * float(alpha.sum())
        )
    if problem.hard:
        length, total = max(length2, 1e-300) ** 0.5, max(float(alpha.sum()), 1e-300)
        used = weights > 0.0
        lower = (
            float(off[used].max()) / length
            + 4.0 * unit_row * float(np.abs(Plain.scores(X, w, b))[used].min()) / length
        )
        upper = (_norm(spread) + 4.0 * unit_column * _norm(v)) / total
        return lower, upper
    gains = float(np.abs(problem.gains(alpha, weights)).sum())
    margins = y * Plain.scores(X, w, b)
    worst = problem.losses(margins - off, weights)
    upper = float((worst - problem.losses(margins, weights)).sum()) + unit_column * (
        float(worst.sum()) + 0.5 * length2
    )
    return 0.5 * off2 + unit_column * gains, upper + unit_row * length2
