"""Records of certificates: the bounds, the dual variables that prove one of them, the fingerprint of the data."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from ..kernels.functions import Kernel, Linear
from ..problem.problem import Problem, proves_nothing

# Share of the sum of absolute values by which checksums of the same data may differ: sums of up to 1e8 terms, made in
# another order, differ less, and a changed entry of the size of the others changes more up to 1e10 rows.
SAME = 1e-11
INTERCEPT = {"none": "no intercept", "free": "free intercept", "augmented": "augmented intercept"}


class CertificateError(ValueError):
    """Failure of a certificate, or one of other data."""


def require(holds: Any, failure: str) -> None:
    """Raise CertificateError with this message unless the condition holds."""
    if not holds:
        raise CertificateError(failure)


@dataclass(frozen=True)
class Fingerprint:
    """Identification of the data of a certificate: sizes, and sums that change when an entry does.

    Independent of storage (dense or CSR, float32 or float64 of the same values), not of row order.
    """

    rows: int
    features: int
    positives: int
    checksum: float
    scale: float

    def difference(self, other: Fingerprint) -> str | None:
        """Describe the first difference from `other`; None where there is none."""
        for name, word in (("rows", "rows"), ("features", "features"), ("positives", "positive labels")):
            before, now = getattr(self, name), getattr(other, name)
            if before != now:
                return f"{before} {word} then, {now} now"
        if abs(self.checksum - other.checksum) > SAME * max(self.scale, other.scale):
            return "sizes agree, values, labels, weights or row order do not"
        return None


@dataclass(frozen=True, eq=False)
class Certificate:
    """A lower and an upper bound, and the dual variables that prove one of them.

    The other is proved by the model's own ``coef_`` and ``intercept_``.

    Attributes
    ----------
    problem : Problem
    lower, upper : float
        Soft: dual and primal objective. Hard: attained margin, and a bound on every margin.
    support : ndarray of int64
        Rows with a non-zero dual variable.
    dual : ndarray of float64
        Their dual variables, feasible for the problem.
    fingerprint : Fingerprint
        Of the data that the bounds are about.
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
        """The number of rows of the data."""
        return self.fingerprint.rows

    @property
    def alpha(self) -> np.ndarray:
        """The dual variable of every row, of shape (rows,)."""
        alpha = np.zeros(self.rows)
        alpha[self.support] = self.dual
        return alpha

    @property
    def certificates(self) -> tuple[Certificate, ...]:
        """The certificates of all problems: this one."""
        return (self,)

    def __repr__(self) -> str:
        return str(self)

    def __str__(self) -> str:
        problem = self.problem
        what, name = (
            ("margin", "hard margin") if problem.hard else ("objective", f"{problem.loss}, C = {problem.C:g}")
        )
        space = f"p = {problem.p:g}" if isinstance(self.kernel, Linear) else str(self.kernel)
        proof = f"gap {self.gap:.3g}, proved by {self.support.size} of {self.rows} rows"
        if self.proves_nothing:
            proof = "nothing is proved: neither bound is known, and the gap is inf"
        return (
            f"{name}, {space}, {INTERCEPT[problem.intercept]}\n"
            f"  {self.lower:.12g} <= best {what} <= {self.upper:.12g}\n  {proof}"
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
        """The certificates of all problems."""
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
