"""Records of certificates: the bounds, the dual variables that prove one of them, the fingerprint of the data."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from ..kernels.functions import Kernel, Linear
from ..problem.problem import Problem, proves_nothing

INTERCEPT = {"none": "no intercept", "free": "free intercept", "augmented": "augmented intercept"}


class CertificateError(ValueError):
    """A certificate does not hold, or belongs to other data."""


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
        for name in ("rows", "features", "positives"):
            mine, theirs = getattr(self, name), getattr(other, name)
            if mine != theirs:
                word = "positive labels" if name == "positives" else name
                return f"{mine} {word} then, {theirs} now"
        if abs(self.checksum - other.checksum) > 1e-11 * max(self.scale, other.scale):
            return "sizes agree, values, labels, weights or row order do not"
        return None


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
