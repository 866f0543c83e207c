"""Facts about the rows of a fitted model: support, margins at the optimum, leave-one-out labels, and their proofs."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from ..certificates.certificate import Certificate, Certificates, Sample
from ..certificates.gram import KernelSample
from ..certificates.screening import (
    InnerProducts,
    LeftOut,
    Margins,
    certain_margins,
    hard_objective,
    left_out,
    modulus,
)
from ..certificates.training_data import training_data
from ..certificates.verdicts import Inseparable, Verdict
from ..certificates.verification import verdicts_of, verify
from ..numerics.sums import Plain, norm, row_norms
from ..problem.multiclass import Parts, class_numbers, named_parts, python_label
from .decisions import scheme_of

SHOWN = 5  # rows of a list that the text names: as many as fit on a line
# bound of the relative rounding error of margins, by which they are enlarged before a theorem uses them
_MARGIN_ROUNDING = 1e-12


@dataclass(frozen=True, eq=False)
class PartReport:
    """One binary problem: two classes, a class against the rest, or a pair of classes.

    Attributes
    ----------
    name : object
        The class, or the pair; None for two classes.
    certificate : Certificate
        As recomputed from the data.
    takes_part : ndarray of bool of shape (n,)
        Rows of this problem.
    dual, cap : ndarray of shape (n,)
        Dual variables, and their upper bounds; dual variables of the hard margin sum to one.
    margin : ndarray of shape (n,)
        y_i (w.x_i + b); for the hard margin in units of the smallest.
    optimum : Margins or None
        Bounds on the margins at the optimum; None where no theorem gives any.
    without : LeftOut or None
        Certain leave-one-out labels; None for p other than 2.
    verdict : Inseparable, Undecided, LinearSeparator or None
        For a hard margin without a separator: the proof that none exists, or the result of the search.
    """

    name: Any
    certificate: Certificate
    takes_part: np.ndarray
    dual: np.ndarray
    cap: np.ndarray
    margin: np.ndarray
    optimum: Margins | None
    without: LeftOut | None
    verdict: Verdict | None = None

    @property
    def capped(self) -> bool:
        """Whether dual variables have upper bounds (hinge)."""
        return bool(np.isfinite(self.cap[self.takes_part]).any())

    @property
    def open(self) -> float:
        """The tolerance of `carries` and `full`, a share of a cap (`dual_tolerance`)."""
        return dual_tolerance(self.certificate)

    @property
    def carries(self) -> np.ndarray:
        """Support vectors: rows with a dual variable above the share `open` of its cap, or 1e-6 of the largest."""
        # interior points leave smaller ones on rows whose dual variable is 0 at the optimum
        least = self.open * self.cap if self.capped else 1e-6 * self.dual.max(initial=0.0)
        return self.dual > least

    @property
    def full(self) -> np.ndarray:
        """Bounded support vectors: rows with a dual variable at its cap, to the tolerance `open`."""
        return at_cap(self.dual, self.cap, self.open)

    @property
    def suspects(self) -> np.ndarray:
        """Misclassified support vectors, by increasing margin.

        At the optimum of the hinge, the dual variable of such a row is at its cap. At a certified point the sum of
        (cap - dual) (1 - m) over rows of margin m < 1 is at most the gap (complementary slackness).
        """
        rows = np.flatnonzero(self.carries & (self.margin < 0.0))
        return rows[np.argsort(self.margin[rows], kind="stable")]

    @property
    def misplaced(self) -> np.ndarray | None:
        """Rows that every optimum misclassifies, by proof; None where no theorem gives bounds."""
        return None if self.optimum is None else self.takes_part & (self.optimum.most < 0.0)

    @property
    def decisive(self) -> np.ndarray:
        """Support vectors in the order of `order_by_dual`."""
        rows = np.flatnonzero(self.carries)
        return rows[order_by_dual(self.dual[rows], self.cap[rows], self.margin[rows], self.open)]


def dual_tolerance(certificate: Certificate) -> float:
    """Return the distance from 0 or from its cap, as a share of the cap, within which a dual variable counts as there.

    An estimate: the distance of a dual variable from its cap times the distance of the margin from one is at most the
    gap (complementary slackness), so that one of the two is at most its square root.
    """
    # a smaller share of a cap would count rounding of dual variables; with a larger one, every dual variable of a
    # model with a large gap would count as 0 or at its cap
    return float(np.clip(np.sqrt(max(certificate.gap, 0.0)), 1e-9, 1e-2))


def at_cap(dual: np.ndarray, cap: np.ndarray, share: float) -> np.ndarray:
    """Return which dual variables are at their caps, to this share of them."""
    return (dual > 0.0) & (dual >= cap * (1.0 - share))


def order_by_dual(dual: np.ndarray, cap: np.ndarray, margin: np.ndarray, share: float) -> np.ndarray:
    """Return the order of rows by falling dual variable; equal ones, as at a common cap, by rising margin."""
    weight = np.where(at_cap(dual, cap, share), cap, dual)
    return np.lexsort((margin, -np.round(weight / weight.max(initial=1e-300), 9)))


@dataclass(frozen=True, eq=False)
class SupportReport:
    """Certain facts about each row of the training data.

    Attributes
    ----------
    parts : tuple of PartReport
    labels : ndarray of shape (n,)
    right, wrong : ndarray of bool of shape (n,), or None
        Rows that the classifier learnt without them certainly labels correctly, or certainly incorrectly.
    """

    parts: tuple[PartReport, ...]
    labels: np.ndarray
    right: np.ndarray | None
    wrong: np.ndarray | None

    @property
    def leave_one_out(self) -> tuple[int, int] | None:
        """The least and the largest number of rows that are labelled wrongly if left out; None where not known."""
        if self.right is None or self.wrong is None:
            return None
        used = np.any([part.takes_part for part in self.parts], axis=0)
        return int((self.wrong & used).sum()), int((~self.right & used).sum())

    @property
    def limits_errors(self) -> bool:
        """Whether the proved number of leave-one-out errors is below the number of errors of a constant label."""
        counts = np.unique(self.labels, return_counts=True)[1]
        return self.leave_one_out is not None and self.leave_one_out[1] < self.labels.size - int(counts.max())

    def table(self, part: int = 0) -> dict[str, np.ndarray]:
        """Return one binary problem as columns with an entry for each row of the data.

        Parameters
        ----------
        part : int, default=0
            Index of the class, or of the pair of classes.

        Returns
        -------
        columns : dict of ndarray of shape (n,)
            row, label, dual, cap, margin, margin_least, margin_most, role ("weightless": the dual variable is 0 in
            every optimum; "full": in every optimum it is at its cap (hinge) or positive (squared hinge); "open";
            "not here"), left_out ("right", "wrong", "open"). ``pandas.DataFrame(report.table())`` makes a frame of
            them.
        """
        one = self.parts[part]
        n = self.labels.size
        least, most = np.full(n, -np.inf), np.full(n, np.inf)
        role, left = np.full((2, n), "open", dtype=object)
        if one.optimum is not None:
            least, most = one.optimum.least, one.optimum.most
            role[one.optimum.weightless], role[one.optimum.inside] = "weightless", "full"
        role[~one.takes_part] = "not here"
        if one.without is not None:
            left[one.without.right], left[one.without.wrong] = "right", "wrong"
        return {
            "row": np.arange(n), "label": self.labels, "dual": one.dual, "cap": one.cap, "margin": one.margin,
            "margin_least": least, "margin_most": most, "role": role, "left_out": left,
        }  # fmt: skip

    def __str__(self) -> str:
        return self.text()

    def text(self, first: int = 0) -> str:
        """Return the facts in words; `first` is the number of the first row."""
        lines = [f"{self.labels.size} rows (counted from {first}), {np.unique(self.labels).size} classes"]
        for part in self.parts:
            lines += _part_lines(part, first)
        if self.leave_one_out is not None:
            least, most = self.leave_one_out
            number = f"between {least} and {most}" if self.limits_errors else f"at least {least}"
            of = f"of {self.labels.size} rows are labelled wrongly (certain)"
            lines.append(f"left out one by one, {number} {of}")
        return "\n".join(lines)


def _part_lines(part: PartReport, first: int) -> Iterator[str]:
    """Describe one binary problem, a line for each fact."""
    if part.name is not None:
        yield ""
        pair = part.name if isinstance(part.name, tuple) else None
        yield f"{part.name!r} against the rest:" if pair is None else f"{pair[0]!r} against {pair[1]!r}:"
    if isinstance(part.verdict, Inseparable):
        yield part.verdict.text(first)
        yield "  nothing is certain of the optimum: there is none"
        return
    if part.verdict is not None:
        yield str(part.verdict)
    yield str(part.certificate)
    counts = f"{int(part.carries.sum())} of {int(part.takes_part.sum())}"
    full = (
        f", {int(part.full.sum())} of them at the cap (within {part.open:.2g} of it)" if part.capped else ""
    )
    yield f"  {counts} rows are support vectors{full}"
    if part.optimum is None or part.misplaced is None:
        theorem = modulus(part.certificate.problem) > 0.0
        reason = "the certified bounds are too wide" if theorem else "no theorem does, for this norm"
        yield f"  nothing is certain of the optimum: {reason}"
    else:
        rows_of = (part.optimum.weightless, part.optimum.inside, part.misplaced)
        zero, below, wrong = (int((rows & part.takes_part).sum()) for rows in rows_of)
        yield (
            f"  certain of every optimum: {zero} rows are no support vectors, {below} have margins below one, {wrong} "
            "are on the wrong side"
        )
    if part.decisive.size:
        yield f"  largest dual variables: rows {_numbers(part.decisive + first)}"
    if part.suspects.size:
        yield f"  on the wrong side, and perhaps mislabelled: rows {_numbers(part.suspects + first)}"


def _numbers(rows: np.ndarray) -> str:
    """Return the first row numbers, and how many there are besides."""
    shown = ", ".join(str(row) for row in rows[:SHOWN])
    return shown if rows.size <= SHOWN else f"{shown} and {rows.size - SHOWN} more"


def explained(
    model: Any, X: Any, y: Any, sample_weight: Any, proved: Certificate | Certificates
) -> SupportReport:
    """Compute the support report of a model from the certificates that these data prove."""
    X, labels, weights = training_data(model, X, y, sample_weight)
    scheme, codes = scheme_of(model), class_numbers(labels, model.classes_)
    names = [python_label(name) for name in named_parts(scheme, model.classes_)]
    certificates, verdicts = proved.certificates, verdicts_of(model)
    samples = []
    for k in range(len(certificates)):
        signs, takes_part = scheme.signs(k, codes)
        samples.append(Sample(X, signs, np.where(takes_part, weights, 0.0)))
    functions_of = _kernel_functions if hasattr(model, "dual_coef_") else _linear_functions
    problems = zip(certificates, samples, functions_of(model, samples, certificates), strict=True)
    parts = tuple(_part(name, verdicts.get(name), *one) for name, one in zip(names, problems, strict=True))
    right, wrong = _combined_labels(parts, scheme, codes)
    return SupportReport(parts, labels, right, wrong)


class _DecisionFunction(NamedTuple):
    """The decision function f of one binary problem on its data, in a form that linear and kernel models share.

    Attributes
    ----------
    scores : ndarray of shape (n,)
        f(x_i) - b.
    b : float
    products : InnerProducts or None
        None unless p = 2.
    optimum : Margins or None
        Bounds on the margins at the optimum; None where no theorem gives any.
    """

    scores: np.ndarray
    b: float
    products: InnerProducts | None
    optimum: Margins | None


def _linear_functions(
    model: Any, samples: list[Sample], certificates: tuple[Certificate, ...]
) -> Iterator[_DecisionFunction]:
    """Yield the decision functions of a linear model."""
    X, problem = samples[0].X, certificates[0].problem
    rho2 = problem.rho * problem.rho
    constant = np.full(X.shape[0], problem.rho)
    lengths = row_norms(np.column_stack([row_norms(X, problem.p), constant]), problem.p)

    def products(c: np.ndarray) -> np.ndarray:
        scores = np.array([Plain.scores(X, Plain.combine(X, one)) for one in c])
        return scores + rho2 * c.sum(axis=1, keepdims=True)

    for k, (sample, certificate) in enumerate(zip(samples, certificates, strict=True)):
        w, b = np.asarray(model.coef_[k], float), float(model.intercept_[k])
        terms = certificate.support.size + sample.width + 2
        rows = InnerProducts(products, sample.norms**2 + rho2, 0.0, terms) if problem.p == 2 else None
        scores, length = Plain.scores(X, w), norm(problem.weights(w, b), problem.q)
        errors = Plain.error(sample.norms * norm(w) + abs(b), sample.width + w.size + 2)
        optimum = certain_margins(sample, certificate, (scores, b, length), errors, lengths)
        yield _DecisionFunction(scores, b, rows, optimum)


def _kernel_functions(
    model: Any, samples: list[Sample], certificates: tuple[Certificate, ...]
) -> Iterator[_DecisionFunction]:
    """Yield the decision functions of a kernel model, w = sum_i c_i phi(x_i)."""
    kernel = KernelSample(certificates[0].kernel, samples[0].X)
    n, rho = kernel.diagonal.size, certificates[0].problem.rho
    c = np.zeros((len(certificates), n))
    dual_coef, counts = np.asarray(model.dual_coef_, float), np.asarray(model.n_support_)
    c[:, np.asarray(model.support_)] = scheme_of(model).unpacked(dual_coef, counts)
    functions = kernel.combinations(c)

    def products(c: np.ndarray) -> np.ndarray:
        found = np.array([one.scores for one in kernel.combinations(c)])
        return found + rho * rho * c.sum(axis=1, keepdims=True)

    rows = InnerProducts(products, kernel.diagonal + rho * rho, kernel.error, n)
    lengths = np.sqrt(np.maximum(rows.squares, 0.0))
    for k, (sample, certificate) in enumerate(zip(samples, certificates, strict=True)):
        b = float(np.ravel(model.intercept_)[k])
        scores, square = functions[k].scores, functions[k].square
        # of the scores, and of the length by which those of a hard margin are divided
        errors = functions[k].score_error + np.abs(scores) * functions[k].square_error / max(square, 1e-300)
        point = scores, b, certificate.problem.norm2(square, b) ** 0.5
        yield _DecisionFunction(scores, b, rows, certain_margins(sample, certificate, point, errors, lengths))


def _part(
    name: Any, verdict: Verdict | None, certificate: Certificate, sample: Sample, function: _DecisionFunction
) -> PartReport:
    """Report on one binary problem."""
    scores, b, products, optimum = function
    problem, y, weights = certificate.problem, sample.y, sample.weights
    here, dual = weights > 0.0, certificate.alpha
    margin = np.where(here, y * (scores + b), np.nan)
    alpha, upper = dual, certificate.upper
    if problem.hard:
        # as the problem min |w|^2 / 2 with margins of at least one, whose optimum is 1 / (2 margin^2)
        upper = hard_objective(certificate.lower)
        margin = margin / np.nanmin(margin) if np.nanmin(margin) > 0.0 else margin
        if products is not None and dual.any():
            square = float(dual * y @ products.scores((dual * y)[None])[0])
            alpha = dual / square if square > 0.0 else dual
    without = None
    if products is not None and np.isfinite(upper) and np.isfinite(alpha).all():
        rounding = _MARGIN_ROUNDING * (np.abs(margin) + np.abs(scores) + abs(b))
        margins = np.where(here, margin + rounding, 2.0)  # above one, so that other rows have no loss
        without = left_out(problem, y, weights, alpha, margins, upper, products)
    cap = np.where(here, problem.caps(weights), 0.0)
    return PartReport(name, certificate, here, dual, cap, margin, optimum, without, verdict)


def _combined_labels(
    parts: tuple[PartReport, ...], scheme: Parts, codes: np.ndarray
) -> tuple[np.ndarray | None, np.ndarray | None]:
    """Combine the leave-one-out labels of all binary problems; return the rows that are right, and the wrong ones.

    A row is right if it is right in all problems of its class. Of classes against the rest it is wrong if it is on the
    negative side of its own class and on the positive side of another one.
    """
    left = [part.without for part in parts if part.without is not None]
    if len(left) < len(parts):
        return None, None
    if len(parts) == 1:
        return left[0].right, left[0].wrong
    all_right, all_wrong = (np.array([getattr(one, side) for one in left]) for side in ("right", "wrong"))
    right, wrong = np.zeros((2, codes.size), bool)
    for code in range(scheme.count):
        mine = codes == code
        right[mine] = all_right[scheme.problems(code)][:, mine].all(axis=0)
        if scheme.name == "ovr":
            others = np.delete(all_wrong, code, axis=0)
            wrong[mine] = (all_wrong[code] & others.any(axis=0))[mine]
    return right, wrong


def support_report(model: Any, X: Any, y: Any, sample_weight: Any = None) -> SupportReport:
    """Report which rows are support vectors, and which rows a leave-one-out fit may misclassify, each with its proof.

    The certificate is recomputed from the data first (`verify`). Facts that are called certain hold for the optimum
    itself, which the model need not have reached: they follow from the certified gap
    (`maxmargin.certificates.screening` has the theorems), and the smaller the
    gap, the more of them. A row that is left out takes its whole weight with it; weights of classes stay those of the
    fit.

    Parameters
    ----------
    model : MaxMarginClassifier, MaxMarginClassifierCV or KernelMaxMarginClassifier
        Fitted.
    X : array-like or sparse matrix of shape (n_samples, n_features)
        The data that it was fitted to; the matrix itself for ``kernel="precomputed"``.
    y : array-like of shape (n_samples,)
    sample_weight : array-like of shape (n_samples,), default=None
        As given to fit.

    Returns
    -------
    report : SupportReport
        ``print`` shows it in words; `SupportReport.table` has a line for each row.

    Raises
    ------
    CertificateError
        If the model has no certificate, or the data do not prove it; or not that there is no separator, where the
        model says so (`verdict_`).

    Examples
    --------
    >>> import numpy as np
    >>> from maxmargin import MaxMarginClassifier, support_report
    >>> X = np.array([[0.0], [1.0], [4.0], [5.0]])
    >>> y = np.array([0, 0, 1, 1])
    >>> report = support_report(MaxMarginClassifier(loss="hinge").fit(X, y), X, y)
    >>> report.table()["role"].tolist()
    ['weightless', 'open', 'open', 'weightless']
    """
    proved = verify(model, X, y, sample_weight)
    return explained(model, X, y, sample_weight, proved)
