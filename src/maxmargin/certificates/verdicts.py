"""Verdicts on separability with their proofs and separators, each checked from the data alone.

References
----------
P. Gordan, "Ueber die Aufloesung linearer Gleichungen mit reellen Coefficienten", Mathematische Annalen 6, 1873: either
some (w, b) has y_i (w.x_i + b) > 0 for all i, or some alpha >= 0, not zero, has sum alpha_i y_i (x_i, 1) = 0.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Hashable, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any, ClassVar, Self

import numpy as np

from ..kernels.functions import Kernel, Linear, Precomputed
from ..numerics.columns import Dominant, without_empty_columns
from ..numerics.rational import inner_radius, row_entries
from ..problem.problem import dual_exponent
from .certificate import Certificate, Sample, check_support, require, require_rows
from .gram import KernelProblem, KernelSample
from .row_pass import Side, attained_margin, exact_dual_side
from .training_data import data_of

PRINTED_ROWS = 6  # number of rows of a proof whose numbers are printed: as many as fit on a line
LINEAR = Linear()  # the kernel with phi(x) = x, the default of verdicts


@dataclass(frozen=True, eq=False, kw_only=True)
class Checked(ABC):
    """A statement about rows and labels that can be checked from these alone.

    Attributes
    ----------
    p : float
        Exponent of the norm in which margins, and the radius of a proof, are measured.
    bias : bool
        Whether hyperplanes have an intercept.
    classes : tuple
        The label of the negative class and that of the positive class.
    features : int
        Number of columns of the data.
    method : str
        The name of the method that found the proof, or the separator and its margin.
    seconds : float
        The time of this method.
    kernel : Kernel
        The kernel whose feature map is phi; phi(x) = x for the linear kernel.
    """

    p: float = 2.0
    bias: bool
    classes: tuple[Any, Any]
    features: int
    method: str
    seconds: float
    kernel: Kernel = LINEAR

    def verify(self, X: Any, y: Any) -> Self:
        """Recompute the proof from the data.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n, d)
            Files are read in passes by `maxmargin.verify(verdict, paths)`.
        y : array-like of shape (n,)

        Returns
        -------
        self

        Raises
        ------
        CertificateError
            If the data are not those of the statement, or the proof fails.
        """
        self.check(*data_of(X, y, self.classes, self.features))
        return self

    @abstractmethod
    def check(self, X: Any, signs: np.ndarray) -> None:
        """Raise CertificateError unless the rows, in float64, with signs -1.0 and 1.0 prove the statement."""


@dataclass(frozen=True, eq=False, kw_only=True)
class Separable(Checked):
    """A separator, and an interval that holds the largest margin.

    Attributes
    ----------
    separable : bool
        True: proved.
    lo, hi : float
        lo <= largest margin <= hi, rounded outwards; lo is what the separator attains.
    certificate : Certificate
        The dual variables that prove hi.
    """

    separable: ClassVar[bool] = True
    lo: float
    hi: float
    certificate: Certificate = field(repr=False)

    def __str__(self) -> str:
        where = "" if self.bias else " through the origin"
        return (
            f"separable{where}: class {self.classes[1]!r} lies where {self.score()} > 0\n"
            f"  {self.lo:.6g} <= largest margin <= {self.hi:.6g} (p = {self.p:g})"
            + f"\n  found by {self.method}, {self.seconds:.2g} s"
        )

    def check(self, X: Any, signs: np.ndarray) -> None:
        """Recompute both bounds."""
        check_upper_bound(self, X, signs)
        lower, claimed = self.attained_margin(X, signs), max(self.lo, self.certificate.lower)
        holds = self.lo > 0.0 and claimed <= lower
        require(holds, f"the margin fails: {claimed:.17g} is claimed, the data give {lower:.17g}.")

    def check_intercept(self, b: Any) -> None:
        """Raise CertificateError if the statement is about hyperplanes through the origin, and b is not 0."""
        require(self.bias or b == 0, "the separator fails: it has an intercept, its problem has none.")

    @abstractmethod
    def score(self) -> str:
        """Return the formula of the score that is positive on the side of the positive class."""

    @abstractmethod
    def attained_margin(self, X: Any, signs: np.ndarray) -> float:
        """Return a margin that the separator is proved to attain; not positive where it does not separate."""


@dataclass(frozen=True, eq=False, kw_only=True)
class Inseparable(Checked):
    """Weights of at most d + 2 rows that prove that no separator exists.

    Attributes
    ----------
    separable : bool
        False: proved.
    support : ndarray of int
        At most d + 2 rows (d + 1 without a bias).
    weights : tuple of Fraction
        Positive, of sum one, and, with a bias, equal totals in both classes: sum weights_k y_k phi(x_k) = 0, exactly.
    rows : int
        Number of rows of the data.
    radius : float, default=0.0
        For every hyperplane the smallest signed distance of a row, in the p-norm, is at most -radius. It is a lower
        bound of the radius of the largest ball around the origin inside the convex hull of y_i x_i (with a bias, of
        its balanced combinations). 0.0 where the proof's rows do not span the space, or where it was not computed.
    """

    separable: ClassVar[bool] = False
    support: np.ndarray
    weights: tuple[Fraction, ...]
    rows: int
    radius: float = 0.0

    @property
    def alpha(self) -> np.ndarray:
        """The weights, rounded to float64."""
        return np.array([float(weight) for weight in self.weights])

    def words(self, first: int = 0) -> str:
        """Return a sentence that states the proof.

        Parameters
        ----------
        first : int, default=0
            The number that the first row of the data has in the sentence.
        """
        numbers, size = (self.support + first).tolist(), self.support.size
        rows = ", ".join(map(str, numbers[:PRINTED_ROWS])) + (", ..." if size > PRINTED_ROWS else "")
        linear = isinstance(self.kernel, Linear)
        if size == 2 and self.weights[0] == self.weights[1] and (self.bias or not linear):
            equal = "equal" if linear else "the same to the kernel"
            return f"rows {rows} (counted from {first}) are {equal} and of different classes"
        total = "sum alpha y x" if linear else "sum alpha y k(x, .)"
        return (
            f"rows {rows} ({size} in all, counted from {first}) have weights with which {total} is exactly 0"
        )

    def __str__(self) -> str:
        return self.text()

    def text(self, first: int = 0) -> str:
        """Return the statement in a few lines; `first` is the number of the first row."""
        where = "" if self.bias else " through the origin"
        ball = ""
        if self.radius:
            ball = f"\n  whatever the hyperplane, the margin of some row is at most -{self.radius:.6g} (p = {self.p:g})"
        found = f"{self.method}, {self.seconds:.2g} s"
        return f"not separable{where}: {self.words(first)}{ball}\n  found by {found}"

    def check(self, X: Any, signs: np.ndarray) -> None:
        """Sum the weighted rows, sum weights_k y_k (phi(x_k), 1), which must be exactly 0, and recompute the radius."""
        same = signs.size == self.rows
        require(same, f"the verdict is about {self.rows} rows, not {signs.size}: give its X and y.")
        require_rows(self.support, self.rows)
        one_each = np.unique(self.support).size == len(self.weights) > 0
        require(one_each, "the proof fails: it needs one weight for each of its rows.")
        # Caratheodory: affinely independent rows are at most one more than the dimension, the intercept included
        has_rows = isinstance(self.kernel, Linear | Precomputed)
        within = not has_rows or len(self.weights) <= self.features + 1 + int(self.bias)
        require(within, "the proof fails: it has more rows than d + 2 (d + 1 without a bias).")
        convex = all(weight > 0 for weight in self.weights) and sum(self.weights) == 1
        require(convex, "the proof fails: weights must be positive, and of sum one.")
        # weights_k y_k times their common denominator: integers
        common = math.lcm(*(weight.denominator for weight in self.weights))
        signed = [
            int(signs[i]) * weight.numerator * (common // weight.denominator)
            for i, weight in zip(self.support.tolist(), self.weights, strict=True)
        ]
        balanced = not self.bias or sum(signed) == 0
        require(balanced, "the proof fails: the weights are not balanced between the classes.")
        images = [_image(self.kernel, X, i) for i in self.support.tolist()]
        # denominators of entries are powers of two, so that the largest is a common multiple
        finest = max((below for _, ratios in images for _, below in ratios), default=1)
        # the weighted sum in each coordinate j, in units of 1 / (common finest)
        total: dict[Hashable, int] = {}
        for weight, (at, ratios) in zip(signed, images, strict=True):
            for j, (above, below) in zip(at, ratios, strict=True):
                total[j] = total.get(j, 0) + weight * above * (finest // below)
        for j, value in total.items():
            require(value == 0, f"the proof fails: the weighted sum of column {j} is not 0.")
        if self.radius != 0.0:
            rows, y, q = X[self.support], signs[self.support], dual_exponent(self.p)
            radius, rounding = inner_radius(rows, y, self.weights, q, self.bias)
            holds = isinstance(self.kernel, Linear) and 0.0 < self.radius <= radius + rounding
            require(holds, f"the radius fails: {self.radius:.17g} is claimed, the data give {radius:.17g}.")


def _image(kernel: Kernel, X: Any, i: int) -> tuple[list[Hashable], list[tuple[int, int]]]:
    """Return the coordinates and the values, as numerators and denominators, of an image of row i.

    The row itself for the linear kernel and for a kernel matrix, whose columns span all functions; for other kernels
    one coordinate for each distinct row, since equal rows have equal images.
    """
    at, values = row_entries(X, i)
    if isinstance(kernel, Linear | Precomputed):
        return list(at), [value.as_integer_ratio() for value in values]
    return [(*at, *values)], [(1, 1)]


@dataclass(frozen=True, eq=False, kw_only=True)
class Undecided(Checked):
    """Neither a separator nor a proof that there is none: dual variables prove that the largest margin is at most `hi`.

    Attributes
    ----------
    separable : None
    lo, hi : float
        Bounds of the largest margin in the p-norm, over |w|_q <= 1: lo = 0.0.
    certificate : Certificate
        Its `support` and `dual` are the rows and the dual variables that prove hi.
    reason : str
        The reason why no decision was reached.
    scale : Dominant, default=None
        An entry or a column that dominates the data of `separate`.
    """

    separable: ClassVar[None] = None
    lo: float = 0.0
    hi: float
    certificate: Certificate = field(repr=False)
    reason: str
    scale: Dominant | None = None

    @property
    def support(self) -> np.ndarray:
        """The rows with a non-zero dual variable, of shape (number of such rows,)."""
        return self.certificate.support

    @property
    def alpha(self) -> np.ndarray:
        """The dual variables of the rows `support`."""
        return self.certificate.dual

    def remedy(self, first: int = 0, names: Sequence[str] | None = None) -> str:
        """Return what to try; `first` is the number of the first row and column, `names` are those of the columns."""
        large = "scale the features" if self.scale is None else self.scale.words(first, names)
        return f"{large}; or {'raise max_time' if 'max_time' in self.reason else 'fit a soft margin (a finite C)'}"

    def words(self, first: int = 0, names: Sequence[str] | None = None) -> str:
        """Return why the search ended, and what to try; the parameters are those of `remedy`."""
        found = f"no separator was found, and no proof that there is none: {self.reason}"
        return f"{found}\n  to try: {self.remedy(first, names)}"

    def __str__(self) -> str:
        return (
            f"undecided: {self.words()}\n"
            f"  largest margin <= {self.hi:.6g} (p = {self.p:g}), as weights on {self.support.size} rows show\n"
            f"  {self.method}, {self.seconds:.2g} s"
        )

    def check(self, X: Any, signs: np.ndarray) -> None:
        """Recompute the upper bound that the dual variables prove; the only lower bound is 0.0, that of w = 0."""
        zero = self.lo == 0.0 and self.certificate.lower <= 0.0
        require(zero, "the lower bound fails: that of an undecided verdict must be 0.")
        check_upper_bound(self, X, signs)


Verdict = Separable | Inseparable | Undecided


def check_upper_bound(claim: Separable | Undecided, X: Any, y: np.ndarray) -> None:
    """Recompute the upper bound of the largest margin that the dual variables of a verdict prove.

    Parameters
    ----------
    claim : Separable or Undecided
    X : ndarray or CSR matrix of shape (n, d)
    y : ndarray of shape (n,), entries -1.0 and 1.0

    Raises
    ------
    CertificateError
        If the certificate is about other data or another problem, its dual variables are not feasible, or the
        recomputed bound is above `hi`, or that of the certificate, by more than its rounding margin.
    """
    cert = claim.certificate
    require(cert.rows == y.size, f"the verdict is about {cert.rows} rows, not {y.size}: give its X and y.")
    problem = cert.problem
    same = problem.hard and (problem.p, problem.free) == (claim.p, claim.bias)
    require(same, "the proof fails: the certificate of the verdict is about another problem.")
    support = check_support(cert, y.size)[0]
    if not support.size:
        upper, above = Side(np.inf, 0.0)
    elif isinstance(claim.kernel, Linear):
        rows = Sample(without_empty_columns(X[support])[0], y[support], np.ones(support.size))
        upper, above = exact_dual_side(cert.problem, rows, cert.dual)
    else:
        task = KernelProblem(cert.problem, KernelSample(claim.kernel, X), y, np.ones(y.size))
        upper, above = task.dual_bound(cert.alpha)
    for bound in (claim.hi, cert.upper):
        failure = f"the upper bound fails: {bound:.17g} is claimed, the data give {upper:.17g}."
        require(upper <= bound + (above if upper < np.inf else 0.0), failure)


@dataclass(frozen=True, eq=False, kw_only=True)
class LinearSeparator(Separable):
    """A hyperplane between the classes.

    Attributes
    ----------
    w : ndarray of shape (d,)
    b : float
    """

    w: np.ndarray
    b: float

    def score(self) -> str:
        return "w.x + b"

    def attained_margin(self, X: Any, signs: np.ndarray) -> float:
        """Recompute the margin, by exact sums where others do not prove the claim."""
        problem = self.certificate.problem
        self.check_intercept(self.b)
        fits = self.w.shape == (X.shape[1],) and np.isfinite(self.w).all() and np.isfinite(self.b)
        require(fits, "the separator fails: a weight for each feature, and b, must be finite.")
        X, columns = without_empty_columns(X, self.w)
        w = columns.restrict(self.w)
        return attained_margin(problem, Sample(X, signs, np.ones(signs.size)), w, self.b, self.lo)


@dataclass(frozen=True, eq=False, kw_only=True)
class KernelSeparator(Separable):
    """A function f(x) = sum coefficients_i k(x_i, x) + b that is positive on one class and negative on the other.

    Its margin lo > 0 is measured in the feature space of the kernel.

    Attributes
    ----------
    coefficients : ndarray of shape (n,)
    b : float
    """

    coefficients: np.ndarray = field(repr=False)
    b: float

    def score(self) -> str:
        return f"sum c_i k(x_i, x) + b, of {np.count_nonzero(self.coefficients)} rows x_i,"

    def attained_margin(self, X: Any, signs: np.ndarray) -> float:
        """Recompute the margin from kernel values in float64, with bounds of their errors."""
        self.check_intercept(self.b)
        sample = KernelSample(self.kernel, X)
        task = KernelProblem(self.certificate.problem, sample, signs, np.ones(signs.size))
        lower = task.attained_margin(self.coefficients, self.b)
        return lower if lower > 0.0 else -np.inf
