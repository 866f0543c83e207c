"""Records of certificates: bounds, the dual variables that prove one of them, and the fingerprint of the data."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from ..kernels.functions import Kernel, Linear
from ..problem.problem import Problem, proves_nothing

# Accepted difference of checksums of the same data, as a fraction of the sum of absolute values. Sums of up to 1e8
# terms, added in another order, differ by less, and up to 1e10 rows a changed entry of the size of the others makes a
# larger difference. Certificates of stored models are compared with the same tolerance.
CHECKSUM_TOLERANCE = 1e-11
# the text of each kind of intercept of a problem
INTERCEPT = {"none": "no intercept", "free": "free intercept", "augmented": "augmented intercept"}


class CertificateError(ValueError):
    """Error of a certificate whose proof fails, that belongs to other data, or that is missing."""


class BoundError(CertificateError):
    """Error of a bound that the sums of a check do not prove; sums of more digits may prove it."""


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
        # sizes are compared exactly, sums up to rounding
        tolerance = CHECKSUM_TOLERANCE * max(self.scale, other.scale)
        same = abs(self.checksum - other.checksum) <= tolerance < math.inf
        return None if same else "sizes agree, values, labels, weights or row order do not"


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
class Certificate:
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
        `dual` is then multiplied by its factors.
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
    def gap(self) -> float:
        """The certified relative gap."""
        return self.problem.gap(self.lower, self.upper)

    @property
    def proves_nothing(self) -> bool:
        """Whether neither bound restricts the optimum, as in a fit stopped before it found one; the gap is then inf."""
        return proves_nothing(self.lower, self.upper)

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
        proof = f"gap {self.gap:.3g}, proved by {self.support.size} of {self.rows} rows"
        if self.implied is not None:
            proof = f"gap {self.gap:.3g}, proved by two points and {self.support.size} of {self.rows} rows"
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
