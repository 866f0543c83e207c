"""Facts about the rows of a fitted model: support, margins at the optimum, leave-one-out labels, and their proofs."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ..certificates.bounds import Certificate, Certificates, Sample, training_data
from ..certificates.kernel import KernelSample
from ..certificates.leave_one_out import InnerProducts, LeftOut, left_out
from ..certificates.screening import Margins, certain_margins, excess, margins_within, modulus
from ..certificates.verdicts import Inseparable, Verdict
from ..certificates.verification import verdicts_of
from ..data.duplicates import merge
from ..kernels.gram import gram_product
from ..numerics.sums import Plain
from ..problem.multiclass import Parts, named_parts, parts_of
from ..problem.problem import Problem
from .hard_margin import item

LEAST, MOST = 1e-9, 1e-2  # of the share of a cap that a gap is said to leave open
DUST = 1e-6  # share of the largest dual weight below which one does not count, where there are no caps
SHOWN = 5  # rows of a list that are named in the text


@dataclass(frozen=True, eq=False)
class PartReport:
    """One binary problem: two classes, a class against the rest, or a pair of classes.

    Attributes
    ----------
    name : object
        The class, or the pair; None for two classes.
    certificate : Certificate
        As the data at hand prove it.
    takes_part : ndarray of bool of shape (n,)
        Rows of this problem.
    dual, cap : ndarray of shape (n,)
        Dual weights, and the largest that each may be; of the hard margin dual weights sum to one.
    margin : ndarray of shape (n,)
        y_i (w.x_i + b); of the hard margin in units of the smallest.
    optimum : Margins or None
        Between what the margins lie at the optimum; None where no theorem tells.
    without : LeftOut or None
        What is certain of rows that are left out; None for p other than 2.
    xi_alpha : ndarray of bool of shape (n,) or None
        An estimate, not a bound: rows of which Joachims' xi-alpha says that they may be wrong if left out (hinge).
    verdict : Inseparable, Undecided, LinearSeparator or None
        Of a hard margin for which no separator was found: the proof that there is none, or what is known.
    """

    name: Any
    certificate: Certificate
    takes_part: np.ndarray
    dual: np.ndarray
    cap: np.ndarray
    margin: np.ndarray
    optimum: Margins | None
    without: LeftOut | None
    xi_alpha: np.ndarray | None
    verdict: Verdict | None = None

    @property
    def capped(self) -> bool:
        """Have dual weights caps (hinge)?"""
        return bool(np.isfinite(self.cap[self.takes_part]).any())

    @property
    def open(self) -> float:
        """Share of a cap that the gap leaves open: `left_open`."""
        return left_open(self.certificate)

    @property
    def carries(self) -> np.ndarray:
        """Rows with a dual weight above what the gap leaves open; without caps, above 1e-6 of the largest.

        Interior points leave less than that on rows that have none at the optimum.
        """
        least = self.open * self.cap if self.capped else DUST * self.dual.max(initial=0.0)
        return self.dual > least

    @property
    def full(self) -> np.ndarray:
        """Rows whose dual weight is at its cap, as near as the gap tells."""
        return at_cap(self.dual, self.cap, self.open)

    @property
    def suspects(self) -> np.ndarray:
        """Rows on the wrong side with a dual weight; the farthest first.

        At the optimum of the hinge each has all of its cap. What one of margin m lacks of it here is a matter of the
        gap alone: the sum of (cap - dual) (1 - m) over such rows is at most the gap (complementary slackness).
        """
        rows = np.flatnonzero(self.carries & (self.margin < 0.0))
        return rows[np.argsort(self.margin[rows], kind="stable")]

    @property
    def misplaced(self) -> np.ndarray | None:
        """Rows on the wrong side at every optimum, by proof; None where no theorem tells."""
        return None if self.optimum is None else self.takes_part & (self.optimum.most < 0.0)

    @property
    def decisive(self) -> np.ndarray:
        """Rows with a dual weight, in the order of `by_weight`."""
        rows = np.flatnonzero(self.carries)
        return rows[by_weight(self.dual[rows], self.cap[rows], self.margin[rows], self.open)]


def left_open(certificate: Certificate) -> float:
    """Share of its cap by which a dual weight may miss 0 or the cap and still be there at the optimum: an estimate.

    What a row lacks of its cap, times what its margin lacks of one, is at most the gap (complementary slackness), so
    that one of the two is at most its square root; 1 % at most.
    """
    return float(np.clip(np.sqrt(max(certificate.gap, 0.0)), LEAST, MOST))


def at_cap(dual: np.ndarray, cap: np.ndarray, share: float) -> np.ndarray:
    """Which dual weights are at their caps, to this share of them."""
    return (dual > 0.0) & (dual >= cap * (1.0 - share))


def by_weight(dual: np.ndarray, cap: np.ndarray, margin: np.ndarray, share: float) -> np.ndarray:
    """The order of rows by falling dual weight; of equal ones, as at a common cap, the lowest margin is first."""
    weight = np.where(at_cap(dual, cap, share), cap, dual)
    return np.lexsort((margin, -np.round(weight / weight.max(initial=1e-300), 9)))


@dataclass(frozen=True, eq=False)
class SupportReport:
    """What is certain of each row of the data that a classifier was learnt from.

    Attributes
    ----------
    parts : tuple of PartReport
    labels : ndarray of shape (n,)
    contradictory : list of ndarray of int
        Sets of equal rows with different labels.
    right, wrong : ndarray of bool of shape (n,), or None
        Rows that the classifier learnt without them labels rightly, or wrongly, for certain.
    """

    parts: tuple[PartReport, ...]
    labels: np.ndarray
    contradictory: list[np.ndarray]
    right: np.ndarray | None
    wrong: np.ndarray | None

    @property
    def leave_one_out(self) -> tuple[int, int] | None:
        """The least and the largest number of rows that are labelled wrongly if left out; None where not known."""
        if self.right is None or self.wrong is None:
            return None
        used = np.any([part.takes_part for part in self.parts], axis=0)
        return int((self.wrong & used).sum()), int((~self.right & used).sum())

    def table(self, part: int = 0) -> dict[str, np.ndarray]:
        """A row for each row of the data, of one binary problem.

        Parameters
        ----------
        part : int, default=0
            Which class, or pair of classes.

        Returns
        -------
        columns : dict of ndarray of shape (n,)
            row, label, dual, cap, margin, margin_least, margin_most, role ("weightless": in no optimum has it a dual
            weight; "full": in every optimum it has all that its cap allows (hinge) or some (squared hinge);
            "open"; "not here"), left_out ("right", "wrong", "open"). ``pandas.DataFrame(report.table())`` makes a
            frame of them.
        """
        one = self.parts[part]
        n = self.labels.size
        role = np.full(n, "open", dtype=object)
        left = np.full(n, "open", dtype=object)
        least, most = np.full(n, -np.inf), np.full(n, np.inf)
        if one.optimum is not None:
            least, most = one.optimum.least, one.optimum.most
            role[one.optimum.weightless] = "weightless"
            role[one.optimum.inside] = "full"
        role[~one.takes_part] = "not here"
        if one.without is not None:
            left[one.without.right], left[one.without.wrong] = "right", "wrong"
        return {
            "row": np.arange(n), "label": self.labels, "dual": one.dual, "cap": one.cap, "margin": one.margin,
            "margin_least": least, "margin_most": most, "role": role, "left_out": left,
        }  # fmt: skip

    def __str__(self) -> str:
        return "\n".join(self._lines())

    def _lines(self) -> Iterator[str]:
        yield f"{self.labels.size} rows, {np.unique(self.labels).size} classes"
        for part in self.parts:
            yield from self._part(part)
        for rows in self.contradictory[:SHOWN]:
            yield f"rows {_few(rows)} are equal and have different labels: no classifier is right on all"
        if len(self.contradictory) > SHOWN:
            yield f"... and {len(self.contradictory) - SHOWN} more such sets"
        between = self.leave_one_out
        if between is not None:
            total = self.labels.size
            yield (
                f"left out one by one, between {between[0]} and {between[1]} of {total} rows are labelled wrongly "
                "(certain)"
            )

    def _part(self, part: PartReport) -> Iterator[str]:
        if part.name is not None:
            yield ""
            yield f"{_named(part.name)}:"
        if part.verdict is not None:
            yield str(part.verdict)
        # its bounds tell no more then, and there is no optimum to speak of
        if isinstance(part.verdict, Inseparable):
            yield "  nothing is certain of the optimum: there is none"
            return
        yield str(part.certificate)
        count, some = int(part.takes_part.sum()), int(part.carries.sum())
        yield f"  {some} of {count} rows have a dual weight" + (
            f", {int(part.full.sum())} of them all that they may have (to {part.open:.2g} of it, by the gap)"
            if part.capped
            else ""
        )
        if part.optimum is None:
            problem = part.certificate.problem
            why = (
                "the bounds at hand tell nothing of it"
                if modulus(problem) > 0.0
                else "no theorem does, for this norm"
            )
            yield f"  nothing is certain of the optimum: {why}"
        else:
            idle, below, wrong = (
                int((some & part.takes_part).sum())
                for some in (part.optimum.weightless, part.optimum.inside, part.optimum.most < 0.0)
            )
            yield (
                f"  certain of every optimum: {idle} rows have no dual weight, {below} have margins below one, {wrong} "
                "are on the wrong side"
            )
        if part.decisive.size:
            yield f"  most decisive: rows {_few(part.decisive)}"
        if part.suspects.size:
            yield f"  on the wrong side, and perhaps mislabelled: rows {_few(part.suspects)}"
        if part.xi_alpha is not None:
            yield f"  estimated, not proved: {int(part.xi_alpha.sum())} rows wrong if left out (xi-alpha)"


def explained(
    model: Any, X: Any, y: Any, sample_weight: Any, proved: Certificate | Certificates
) -> SupportReport:
    """Compute the support report of a model from the certificates that these data prove."""
    X, labels, weights = training_data(model, X, y, sample_weight)
    scheme = parts_of(getattr(model, "multi_class_", "ovr"), len(model.classes_))
    codes = np.searchsorted(model.classes_, labels)
    codes = np.where(np.isin(labels, model.classes_), codes, -1)
    told = _kernel if hasattr(model, "dual_coef_") else _linear
    verdicts = verdicts_of(model)
    parts = tuple(
        replace(part, verdict=verdicts.get(part.name))
        for part in told(model, X, codes, weights, scheme, proved.certificates)
    )
    right, wrong = _altogether(parts, scheme, codes)
    return SupportReport(parts, labels, _contradictory(X, labels, weights), right, wrong)


def _linear(
    model: Any,
    X: Any,
    codes: np.ndarray,
    weights: np.ndarray,
    scheme: Parts,
    certificates: tuple[Certificate, ...],
) -> Iterator[PartReport]:
    whole, names = Sample(X, np.zeros(codes.size), weights), _names(model, scheme)
    for k, certificate in enumerate(certificates):
        y, among = scheme.signs(k, codes)
        sample = replace(whole, y=y, weights=np.where(among, weights, 0.0), like=whole)
        w, b = np.asarray(model.coef_[k], float), float(model.intercept_[k])
        problem, rho = certificate.problem, certificate.problem.rho
        scores = Plain.scores(X, w)
        rows = InnerProducts(
            lambda c, rho=rho: np.array([Plain.scores(X, Plain.combine(X, one)) + rho * rho * one.sum() for one in c]),
            sample.norms**2 + rho * rho, 0.0, certificate.support.size + sample.width + 2,
        )  # fmt: skip
        optimum = certain_margins(sample, w, b, certificate)
        yield _part(names[k], certificate, sample, scores, b, optimum, rows if problem.p == 2 else None)


def _kernel(
    model: Any,
    X: Any,
    codes: np.ndarray,
    weights: np.ndarray,
    scheme: Parts,
    certificates: tuple[Certificate, ...],
) -> Iterator[PartReport]:
    kernel = KernelSample(certificates[0].kernel, X)
    whole, names = Sample(X, np.zeros(codes.size), weights), _names(model, scheme)
    coefficients = scheme.unpacked(np.asarray(model.dual_coef_, float), np.asarray(model.n_support_))
    c = np.zeros((len(certificates), codes.size))
    c[:, np.asarray(model.support_)] = coefficients
    scores = gram_product(kernel.kernel, kernel.X, c)
    for k, certificate in enumerate(certificates):
        y, among = scheme.signs(k, codes)
        sample = replace(whole, y=y, weights=np.where(among, weights, 0.0), like=whole)
        problem, b = certificate.problem, float(np.ravel(model.intercept_)[k])
        rho = problem.rho
        rows = InnerProducts(
            lambda c, rho=rho: kernel.scores(c) + rho * rho * c.sum(axis=1, keepdims=True),
            kernel.diagonal + rho * rho, kernel.error, codes.size,
        )  # fmt: skip
        gap, z = excess(problem, certificate.lower, certificate.upper), scores[k] + (b if rho else 0.0)
        optimum = None
        if modulus(problem) > 0.0 and np.isfinite(gap):
            size = float(np.abs(c[k]).sum())
            off = size * (kernel.error + (codes.size + 8.0) * np.finfo(float).eps * float(kernel.most))
            if problem.hard:  # as long as its least margin asks
                unit = certificate.lower * float(np.sqrt(problem.norm2(max(c[k] @ scores[k], 0.0), b)))
                z, off = z / unit, off / unit
            away = (
                np.sqrt(np.maximum(rows.squares, 0.0)) * float(np.sqrt(2.0 * gap)) * (1.0 + 1e-12) + 2.0 * off
            )
            optimum = margins_within(problem, z, away, y, sample.weights)
        yield _part(names[k], certificate, sample, scores[k], b, optimum, rows)


def _part(
    name: Any,
    certificate: Certificate,
    sample: Sample,
    scores: np.ndarray,
    b: float,
    optimum: Margins | None,
    rows: InnerProducts | None,
) -> PartReport:
    problem, y, weights = certificate.problem, sample.y, sample.weights
    here = weights > 0.0
    dual = certificate.alpha
    margin = np.where(here, y * (scores + b), np.nan)
    alpha, upper = dual, certificate.upper
    if problem.hard:
        upper = 0.5 / certificate.lower**2 * (1.0 + 1e-14) if certificate.lower > 0.0 else np.inf
        margin = margin / np.nanmin(margin) if np.nanmin(margin) > 0.0 else margin
        if rows is not None and dual.any():
            square = float(dual * y @ rows.scores((dual * y)[None])[0])
            alpha = dual / square if square > 0.0 else dual
    without = None
    if rows is not None and np.isfinite(upper) and np.isfinite(alpha).all():
        up = np.abs(margin) * 1e-12 + 1e-12 * (np.abs(scores) + abs(b))
        margins = np.where(here, margin + up, 2.0)
        without = left_out(problem, y, weights, alpha, margins, upper, rows)
    caps = np.where(here, problem.caps(weights), 0.0)
    estimate = _xi_alpha(problem, alpha, margin, rows, here) if rows is not None else None
    return PartReport(name, certificate, here, dual, caps, margin, optimum, without, estimate)


def _xi_alpha(
    problem: Problem, alpha: np.ndarray, margin: np.ndarray, rows: InnerProducts, here: np.ndarray
) -> np.ndarray | None:
    """Rows with 2 alpha_i R^2 + xi_i >= 1 (Joachims, 2000), R^2 the largest |x_i|^2."""
    if problem.hard or problem.loss != "hinge":
        return None
    radius2 = float(rows.squares[here].max(initial=0.0))
    return here & (2.0 * alpha * radius2 + np.maximum(1.0 - margin, 0.0) >= 1.0) & (alpha > 0.0)


def _altogether(
    parts: tuple[PartReport, ...], scheme: Parts, codes: np.ndarray
) -> tuple[np.ndarray | None, np.ndarray | None]:
    """What the parts say of the label: right where all that matter are, wrong where two contradict the right one."""
    withouts = [part.without for part in parts if part.without is not None]
    if len(withouts) < len(parts):
        return None, None
    if len(parts) == 1:
        return withouts[0].right, withouts[0].wrong
    right, wrong = np.zeros(codes.size, bool), np.zeros(codes.size, bool)
    against_rest = not isinstance(scheme.labels[0], tuple)
    for code in range(int(codes.max()) + 1):
        mine = codes == code
        its = [withouts[k] for k in scheme.problems(code)] if not against_rest else withouts
        right[mine] = np.all([one.right for one in its], axis=0)[mine]
        if against_rest:  # another class says yes, and its own says no
            others = [one.wrong for k, one in enumerate(withouts) if k != code]
            wrong[mine] = (withouts[code].wrong & np.any(others, axis=0))[mine]
    return right, wrong


def _contradictory(X: Any, labels: np.ndarray, weights: np.ndarray) -> list[np.ndarray]:
    """Sets of equal rows whose labels differ."""
    rows = np.flatnonzero(weights > 0.0)
    ones = np.ones(rows.size)
    groups = merge(X[rows], ones, ones).groups
    order = np.argsort(groups, kind="stable")
    sets = np.split(rows[order], np.flatnonzero(np.diff(groups[order])) + 1)
    return [some for some in sets if some.size > 1 and np.unique(labels[some]).size > 1]


def _names(model: Any, scheme: Parts) -> list[Any]:
    """What the parts are called, as Python prints it."""
    return [item(name) for name in named_parts(scheme, model.classes_)]


def _named(name: Any) -> str:
    return f"{name[0]!r} against {name[1]!r}" if isinstance(name, tuple) else f"{name!r} against the rest"


def _few(rows: np.ndarray) -> str:
    shown = ", ".join(str(row) for row in rows[:SHOWN])
    return shown if rows.size <= SHOWN else f"{shown} and {rows.size - SHOWN} more"
