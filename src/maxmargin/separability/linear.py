"""The search for a hyperplane between two classes, or for the proof that there is none.

Separators are the floating-point candidates, each with its best intercept, and the directions of Wolfe's algorithm.
Their margin is proved in float64. A fit of a hard margin then narrows the interval around the largest margin.
One or two rows that contradict each other are a proof that there is no separator. The convex hull of the rows of a
proof may hold a ball around the origin (`inner_radius`).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from ..certificates.certificate import Certificate, Sample
from ..certificates.row_pass import attained_margin, certify
from ..certificates.verdicts import Inseparable, LinearSeparator, Verdict
from ..data.rows import Patterns
from ..fit.policy import sample_rows
from ..fit.report import Solution, Stopping, Task
from ..fit.solve import solve
from ..kernels.functions import Linear
from ..numerics.columns import Columns
from ..numerics.progress import OutOfTime, announce
from ..numerics.rational import BeyondReachError, IntegerRows, inner_radius
from ..numerics.sums import Plain
from ..problem.problem import best_intercept
from .search import TRIVIAL, SeparatorSearch, as_floats, candidates, nearest_points, trivial_certificate


@dataclass(eq=False)
class LinearSearch(SeparatorSearch):
    """The search for a hyperplane.

    Parameters
    ----------
    columns : Columns
        The columns of the data that X has. Weights of a separator are of these columns; everything
        else in a verdict is about the whole data.
    """

    columns: Columns
    kernel = Linear()

    @np.errstate(over="ignore", under="ignore", invalid="ignore", divide="ignore")
    def verdict(self) -> Verdict:
        """Decide on samples, look for a trivial certificate, then decide in exact arithmetic from floating point."""
        self._common["features"] = self.columns.count
        count = sample_rows(*self.X.shape) if self.algorithm is None else 0
        if count and (found := self._contradiction_of_few_rows(count)) is not None:
            return found
        weights, self.distinct = trivial_certificate(self.X, self.y, not self.problem.free)
        found = self.decide_exactly() if weights is None else self.inseparable(weights, TRIVIAL)
        if isinstance(found, str):
            return self.undecided(found, self._certificate(np.zeros(self.X.shape[1]), 0.0))
        # A ball has the dimension of the data, of which columns without entries span none.
        if isinstance(found, Inseparable) and self.columns.places is None:
            rows, signs = self.X[found.support], self.y[found.support]
            radius, _ = inner_radius(rows, signs, found.weights, self.problem.q, self.problem.free)
            return replace(found, radius=radius)
        return found

    def _contradiction_of_few_rows(self, count: int) -> Inseparable | None:
        """Return the verdict on a sample of the rows that has no separator, which holds for all rows; else None.

        It begins with `count` rows. Rows on the wrong side of its separator join it, at most `count` of the smallest
        margins.
        """
        n = self.y.size
        rows = np.sort(np.random.default_rng(0).choice(n, count, replace=False))
        for _ in range(10):  # 1,000,000 x 3 with 5 wrong labels takes two
            found = replace(self, X=self.X[rows], y=self.y[rows], tol=np.inf).verdict()
            if isinstance(found, Inseparable):
                return replace(found, support=rows[found.support], rows=n)
            if not isinstance(found, LinearSeparator):  # the deadline has passed
                return None
            margins = self.y * Plain.scores(self.X, found.w, found.b)
            wrong = np.flatnonzero(margins <= 0.0)
            if not wrong.size:
                return None
            rows = np.union1d(rows, wrong[np.argsort(margins[wrong])[:count]])
        return None

    def decide_exactly(self) -> Inseparable | LinearSeparator | str:
        """Run Wolfe's algorithm in exact arithmetic from the rows of floating-point candidates.

        Returns
        -------
        Inseparable or LinearSeparator
            The verdict.
        str
            The reason why there is none: the proof would be too large, or float64 has too few digits for a separator.
            Empty after the deadline, whose status has the reason.
        """
        places = self.distinct.places
        self.alpha = np.ones(places.size)
        try:
            rows = IntegerRows(self.X[places], self.y[places], self.problem.free, self.deadline.interrupted)
            start = None if self.start is None else self.distinct.gather(self.start)
            algorithm = self.algorithm
            if algorithm is not None and start is None:
                algorithm = algorithm.for_rows(self.y.size, self.distinct.gather)
            for candidate in candidates(rows, self.deadline, algorithm, start):
                self.alpha, self.method = candidate.alpha, candidate.method
                separator = self.proved_separator(rows, candidate.w, self.method)
                if separator is not None:
                    return separator
            announce("Wolfe's algorithm in exact arithmetic")
            method = f"{self.method} and Wolfe's algorithm in exact arithmetic"
            # A proof has at most width + 1 rows; among twice as many some weights may be rounding errors.
            largest = np.argsort(-self.alpha, kind="stable")[: 2 * (rows.width + 1)]
            start = {i: float(self.alpha[i]) for i in np.sort(largest).tolist() if self.alpha[i] > 0.0}
            for corral in nearest_points(rows, start or {0: 1.0}):
                if not any(corral.direction):
                    weights = {int(self.distinct.places[i]): weight for i, weight in corral.weights.items()}
                    return self.inseparable(weights, method)
                separator = self.proved_separator(rows, as_floats(corral.direction)[: rows.d], method)
                if separator is not None:
                    return separator
            return "a separator takes more digits than float64 has"
        except OutOfTime:
            return ""
        except BeyondReachError as error:
            return str(error)

    def proved_separator(self, rows: IntegerRows, w: np.ndarray, method: str) -> LinearSeparator | None:
        """Return the verdict on w with its best intercept if float64 sums prove that it separates."""
        if not w.any():
            return None
        # Column j of `rows.scaled` is that of X times 2^(exponents_j - bits): weights of the columns of X, the largest
        # about one. Weights below 2^-1100 of the largest become 0.
        mantissa, exponent = np.frexp(w)
        exponent = exponent + rows.exponents - rows.bits
        exponent -= exponent[mantissa != 0.0].max()
        w, b, y = np.ldexp(mantissa, np.clip(exponent, -1100, 0).astype(np.int32)), 0.0, self.y
        scores = Plain.scores(self.X, w)
        if self.problem.free:
            b = best_intercept(self.problem, scores, y, np.ones(y.size))
        if not (y * (scores + b)).min() > 0.0:
            return None
        lower = attained_margin(self.problem, self._sample, w, b)
        return self._separable(w, b, lower, method) if lower > 0.0 else None

    @cached_property
    def _sample(self) -> Sample:
        return Sample(self.X, self.y, np.ones(self.y.size), columns=self.columns)

    def _certificate(self, w: np.ndarray, b: float) -> Certificate:
        """Return the certificate of (w, b) with the last dual weights, which are 0 on copies of rows."""
        alpha = np.zeros(self.y.size)
        alpha[self.distinct.places] = self.alpha
        return certify(self.problem, self._sample, w, b, alpha)

    def _separable(self, w: np.ndarray, b: float, lower: float, method: str) -> LinearSeparator:
        """Return the verdict on a separator of at least this margin.

        Where the interval around the largest margin is wider than `tol`, a hard margin is fitted first. The verdict
        then has the separator with the larger margin of the two, and the certificate with the smaller upper bound.
        """
        certificate = self._certificate(w, b)
        if not lower >= (1.0 - self.tol) * certificate.upper and not self.deadline.interrupted():
            found = self._fit()
            if found is not None and found.history:
                fitted = attained_margin(self.problem, self._sample, found.w, found.b)
                if fitted > lower:
                    w, b, lower = found.w, found.b, fitted
                certificate = min(found.certificate, certificate, key=lambda one: one.upper)
                stage = found.history[-1].stage
                stage = "the optimality conditions on the support" if stage == "exact" else stage
                method = f"{method}, the margin by {stage}"
        return LinearSeparator(w=w, b=b, **self.bound_fields(lower, certificate, method))

    def _fit(self) -> Solution | None:
        """Return the hard-margin fit in the p-norm of the problem; None if squares of the data over- or underflow."""
        announce("a fit that narrows the interval of the margin")
        task = Task(self.problem, Patterns(self.X, self.columns), self.y, np.ones(self.y.size))
        # more rounds narrow the interval of badly scaled data further, fewer end sooner
        stopping = Stopping(self.tol, 200, self.deadline)
        try:
            return solve(task, stopping)
        except ValueError:  # the separator is proved all the same, with the bounds that it has
            return None
