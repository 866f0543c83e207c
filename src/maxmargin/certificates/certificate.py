"""Records of certificates: bounds, the dual variables that prove one of them, the data and their fingerprint."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
import scipy.sparse as sp

from ..kernels.functions import Kernel, Linear
from ..numerics.columns import Columns, without_empty_columns
from ..numerics.sums import Plain, row_norms
from ..problem.problem import Bracket, Problem

if TYPE_CHECKING:
    from .row_pass import Bounds

# the text of each kind of intercept of a problem
INTERCEPT = {"none": "no intercept", "free": "free intercept", "augmented": "augmented intercept"}


class CertificateError(ValueError):
    """Error of a certificate whose proof fails, that belongs to other data, or that is missing."""


def require(holds: Any, failure: str, error: type[CertificateError] = CertificateError) -> None:
    """Raise CertificateError, or another `error`, with this message unless the condition holds."""
    if not holds:
        raise error(failure)


def require_rows(support: np.ndarray, rows: int) -> None:
    """Raise CertificateError unless the row numbers of a proof are those of rows of the data."""
    integers = np.asarray(support).dtype.kind in "iu"
    within = integers and (not np.size(support) or (np.min(support) >= 0 and np.max(support) < rows))
    require(within, "the proof fails: it names rows that the data do not have.")


def require_weights(weights: np.ndarray) -> None:
    """Raise CertificateError unless the rows of a proof have these weights above 0."""
    used = np.all(weights > 0.0)
    require(used, "the proof fails: it names a row of weight 0, which takes no part in the problem.")


@dataclass(frozen=True)
class Fingerprint:
    """Identification of the data of a certificate by its sizes and by sums that depend on every entry.

    It does not depend on storage (dense or CSR, float32 or float64 of the same values), and depends on row order.

    Attributes
    ----------
    rows, features, positives : int
        Numbers of rows, of columns, and of positive labels; 0 positive labels if a fit was stopped before its first
        pass over the labels: any labels and entries agree with it.
    checksum, scale : float
        The sum, and the sum of the absolute values, of one number for each row (`Sample.fingerprint`).
    """

    rows: int
    features: int
    positives: int
    checksum: float
    scale: float

    def merge(self, other: Fingerprint) -> Fingerprint:
        """Return the fingerprint of the rows of both."""
        rows, positives = self.rows + other.rows, self.positives + other.positives
        sums = self.checksum + other.checksum, self.scale + other.scale
        return Fingerprint(rows, self.features, positives, *sums)

    def difference(self, other: Fingerprint) -> str | None:
        """Return a description of the first difference from `other`, the data now; None where there is none."""
        for name, word in (("rows", "rows"), ("features", "features"), ("positives", "positive labels")):
            before, now = getattr(self, name), getattr(other, name)
            # A fit of partitions that was stopped before its first pass knows their shape alone. Each problem of any
            # other fit has a positive label.
            if name == "positives" and not before:
                return None
            if before != now:
                return f"{before} {word} then, {now} now"
        # Sizes are compared exactly, sums up to rounding: those of up to 1e8 terms, added in another order, differ by
        # less, and up to 1e10 rows a changed entry of the size of the others makes a larger difference.
        tolerance = 1e-11 * max(self.scale, other.scale)
        same = abs(self.checksum - other.checksum) <= tolerance < math.inf
        return None if same else "sizes agree, values, labels, weights or row order do not"


def row_projections(
    X: Any, weights: np.ndarray, numbers: np.ndarray, positions: np.ndarray, shift: np.ndarray | None = None
) -> np.ndarray:
    """Return (1 + sum_j x_ij (1 + sin(j) / 2)) (1 + s_i) times a factor for the position of each row, shape (n,).

    `numbers` are the j of the columns in the whole data set, counted from 1; `shift` is what the door has subtracted.
    The factor is a multiplicative hash of the position, between 1/2 and 1: 2654435769 is 2^32 / golden ratio (Knuth),
    and the upper 20 bits are used.
    """
    factors = 1.0 + 0.5 * np.sin(numbers)
    hashes = (positions.astype(np.uint32) * np.uint32(2654435769)) >> np.uint32(12)
    found = Plain.scores(X, factors, 1.0 if shift is None else 1.0 + float(shift @ factors))
    found *= 0.5 + hashes * 2.0**-21
    found *= 1.0 + weights
    return found


@dataclass(frozen=True, eq=False)
class Sample:
    """All rows of a data set that take part, with labels and sample weights of a binary problem.

    Parameters
    ----------
    X : ndarray or CSR matrix of shape (n, d)
    y : ndarray of shape (n,), entries -1.0 and 1.0
        Of a sample that several problems share, anything: each replaces it.
    weights : ndarray of shape (n,)
        Sample weights; rows of weight 0 take no part.
    columns : Columns, default=None
        The columns of the data set that X consists of; None where X has all of them.
    shift : ndarray of shape (d,), default=None
        What the door has subtracted from every row of the data set (`data.door`); None for nothing.
    lengths : ndarray of shape (n,), default=None
        2-norms |x_i|, if they are known.
    """

    X: Any
    y: np.ndarray
    weights: np.ndarray
    columns: Columns | None = None
    shift: np.ndarray | None = None
    lengths: np.ndarray | None = None

    @cached_property
    def norms(self) -> np.ndarray:
        """2-norms |x_i|, of shape (n,)."""
        return row_norms(self.X) if self.lengths is None else self.lengths

    @property
    def width(self) -> int:
        """The largest number of terms of a score w.x_i: stored entries of a sparse row, else columns."""
        return int(np.diff(self.X.indptr).max(initial=0)) if sp.issparse(self.X) else self.X.shape[1]

    @cached_property
    def fingerprint(self) -> Fingerprint:
        """The sum of projection_i (3 + y_i), the sum of its absolute values, and the sizes of the data."""
        X, columns = without_empty_columns(self.X) if self.columns is None else (self.X, self.columns)
        # places are the numbers of the columns of X in the whole data set; None where X has all of them
        numbers = np.arange(1.0, X.shape[1] + 1.0) if columns.places is None else columns.places + 1.0
        found = row_projections(X, self.weights, numbers, np.arange(self.y.size), self.shift)
        signs, positives = 3.0 + self.y, int(np.count_nonzero(self.y > 0))
        sums = float(found @ signs), float(np.abs(found) @ signs)
        return Fingerprint(self.y.size, columns.count, positives, *sums)

    def certificate(
        self, problem: Problem, alpha: np.ndarray, found: Bounds, kernel: Kernel | None = None
    ) -> Certificate:
        """Return the certificate of the bounds `found`, one of which the dual variables alpha, of shape (n,), prove.

        `kernel` is that of the model; None for the linear kernel.
        """
        support = (alpha > 0.0).nonzero()[0]
        # Python floats, which raise no warning where the quotient of the gap overflows
        lower, upper = float(found.lower), float(found.upper)
        kernel = Linear() if kernel is None else kernel
        return Certificate(problem, lower, upper, support, alpha[support], self.fingerprint, kernel)


@dataclass(frozen=True, eq=False)
class ImpliedDual:
    """Two points that imply the dual variables of rows (`row_pass.implied`).

    Attributes
    ----------
    first_w, second_w : ndarray of shape (d,)
    first_b, second_b : float
    plus, minus : float
        Factors of the dual variables of positive and of negative rows, which balance the classes.
    """

    first_w: np.ndarray
    first_b: float
    second_w: np.ndarray
    second_b: float
    plus: float
    minus: float


@dataclass(frozen=True, eq=False)
class Certificate(Bracket):
    """A lower and an upper bound, and the dual variables that prove one of them.

    The other bound is proved by the primal point of the model, such as ``coef_`` and ``intercept_``.

    Attributes
    ----------
    problem : Problem
    lower, upper : float
        Soft margin: dual and primal objective. Hard margin: the attained margin, and an upper bound of the largest one.
    support : ndarray of int64
        Rows with a non-zero dual variable, in ascending order.
    dual : ndarray of float64
        The dual variables of these rows, feasible for the problem.
    fingerprint : Fingerprint
        The fingerprint of the data for which the bounds hold.
    kernel : Kernel
        The linear kernel where the model has a weight vector.
    implied : ImpliedDual, default=None
        For fits of rows in partitions: the points that imply the dual variables of all rows but those of `support`.
        Readers multiply `dual` by its factors, `plus` and `minus`.
    """

    problem: Problem
    lower: float
    upper: float
    support: np.ndarray
    dual: np.ndarray
    fingerprint: Fingerprint
    kernel: Kernel = field(default_factory=Linear)
    implied: ImpliedDual | None = None

    @property
    def proves_nothing(self) -> bool:
        """Whether neither bound restricts the optimum, as in a fit stopped before it found one; the gap is then inf.

        Optima are never negative, so that a lower bound of zero or less restricts nothing; NaN is no bound either.
        """
        return not self.lower > 0.0 and not self.upper < math.inf

    @property
    def rows(self) -> int:
        """The number of rows of the data."""
        return self.fingerprint.rows

    @property
    def alpha(self) -> np.ndarray:
        """The dual variable of every row, of shape (rows,).

        Raises
        ------
        CertificateError
            If they are implied by two points: they are then computed from the data.
        """
        require(
            self.implied is None,
            "the dual variables are implied by two points: only the data give their values.",
        )
        require_rows(self.support, self.rows)
        alpha = np.zeros(self.rows)
        alpha[self.support] = self.dual
        return alpha

    @property
    def certificates(self) -> tuple[Certificate, ...]:
        """A tuple of this certificate alone, for code that serves one and several problems."""
        return (self,)

    @property
    def classes(self) -> tuple[None]:
        """A tuple of None, the label of the only problem of two classes, as `Certificates.classes` of several ones."""
        return (None,)

    def __repr__(self) -> str:
        # three lines: the problem, the bounds, and the gap with the number of rows that prove it
        problem = self.problem
        what, name = (
            ("margin", "hard margin") if problem.hard else ("objective", f"{problem.loss}, C = {problem.C:g}")
        )
        space = f"p = {problem.p:g}" if isinstance(self.kernel, Linear) else str(self.kernel)
        points = "" if self.implied is None else "two points and "
        proof = f"gap {self.gap:.3g}, proved by {points}{self.support.size} of {self.rows} rows"
        if self.proves_nothing:
            proof = "nothing is proved: neither bound is known, and the gap is inf"
        return (
            f"{name}, {space}, {INTERCEPT[problem.intercept]}\n"
            f"  {self.lower:.12g} <= best {what} <= {self.upper:.12g}\n  {proof}"
        )


@dataclass(frozen=True, eq=False)
class Certificates:
    """One certificate for each class against the rest, or for each pair of classes.

    Attributes
    ----------
    classes : tuple
        The class, or the pair of classes, of each problem.
    parts : tuple of Certificate
    """

    classes: tuple[Any, ...]
    parts: tuple[Certificate, ...]

    @property
    def gap(self) -> float:
        """The largest gap of all parts."""
        return max(part.gap for part in self.parts)

    @property
    def proves_nothing(self) -> bool:
        """Whether no part has a bound that restricts the optimum."""
        return all(part.proves_nothing for part in self.parts)

    @property
    def certificates(self) -> tuple[Certificate, ...]:
        """The certificates of all problems."""
        return self.parts

    def __iter__(self):
        return iter(self.parts)

    def __len__(self) -> int:
        return len(self.parts)

    def __getitem__(self, k: int) -> Certificate:
        return self.parts[k]

    def __repr__(self) -> str:
        what = "pairs of classes" if isinstance(self.classes[0], tuple) else "classes, one against the rest"
        lines = [f"{len(self)} {what}; largest gap {self.gap:.3g}"]
        for name, part in zip(self.classes, self.parts, strict=True):
            lines.append(
                f"{name}: {part.lower:.9g} <= best <= {part.upper:.9g}, gap {part.gap:.3g}"
                + (", nothing is proved" if part.proves_nothing else "")
            )
        return "\n".join(lines)


def check_support(claim: Certificate, rows: int) -> tuple[np.ndarray, np.ndarray, str]:
    """Return the rows and the dual variables of a certificate, and the beginning of a sentence on their bound.

    Raises CertificateError unless there is one number for each row, not negative, and the rows are in ascending order.
    """
    support, dual = np.asarray(claim.support), np.asarray(claim.dual)
    # the bound that dual variables prove: the upper one of a hard margin
    bound = f"the {'upper' if claim.problem.hard else 'lower'} bound fails"
    one_each = support.shape == dual.shape and support.ndim == 1 and support.dtype.kind in "iu"
    require(one_each, f"{bound}: there must be one dual variable for each row it names.")
    ascending = not support.size or (support[0] >= 0 and support[-1] < rows and (np.diff(support) > 0).all())
    require(ascending, f"{bound}: it names rows that the data do not have, or one twice.")
    require(np.all(dual >= 0.0), f"{bound}: a dual variable is negative or not a number.")
    return support, dual, bound
