"""The reason why a fit ended as it did, and what to try next."""

from __future__ import annotations

import re
from collections.abc import Sequence
from math import ceil, isfinite, log
from typing import Any

import numpy as np

from ..fit.report import Report
from ..numerics.scales import dominant
from ..problem.multiclass import python_label
from ..problem.status import Status

# Reports from which the gap is extrapolated: a line through fewer would say little. A round value; not tuned.
LEAST_REPORTS = 5
# Correlation of the logarithms of gap and time from which the gap counts as converging, and the largest factor of an
# extrapolation: beyond it the time is known to less than its order of magnitude. Round values; not tuned.
LEAST_CORRELATION, MOST_FACTOR = 0.9, 100.0
# Decades of the gap that are left, for each decade in the reports: the line is drawn no further. A round value; not
# tuned.
MOST_DECADES = 3.0
# Ratio of the last gap to that in the middle of the reports above which the gap has stopped falling: a slow rate, 1
# over the square root of the rounds, has 0.7. A round value; not tuned.
LEAST_FALL = 0.9
REASONS = {
    Status.CERTIFIED: "the certified gap, {gap:.2g}, is at most tol={tol:g}",
    Status.CONVERGED: "the algorithm ended by its own criterion",
    Status.STALLED: "rounding in float64 prevents further progress",
    Status.MAX_ITER: "all max_iter={rounds} rounds were made",
    Status.MAX_TIME: "the limit max_time={seconds} s went by, or too little of it was left for a certificate",
    Status.INTERRUPTED: "Ctrl-C or a callback ended the fit, and the best model so far is kept",
    Status.UNDECIDED: "no separator was found, and no proof that there is none: {reason}",
    Status.INSEPARABLE: "no surface separates the classes; the model has the exact proof, verdict_",
    Status.NOT_FINITE: "numbers overflowed: the scale of the data is beyond float64",
}
LIMITS = {Status.MAX_TIME: ("max_time", "seconds", " s"), Status.MAX_ITER: ("max_iter", "round", "")}


def explain(model: Any, X: Any = None, names: Sequence[str] | None = None) -> str:
    """Return why the fit of a classifier ended, and if it is not certified, what to try.

    Parameters
    ----------
    model : MaxMarginClassifier or KernelMaxMarginClassifier
        Fitted.
    X : ndarray or CSR matrix of shape (n, d), default=None
        The rows of the fit; None if they are not known, or are kernel values.
    names : sequence of str, default=None
        Of the columns; None for their numbers.
    """
    status, certificate, tol = model.status_, model.certificate_, model.tol
    reason = getattr(getattr(model, "verdict_", None), "reason", "the search ended")
    values = {"gap": certificate.gap, "reason": reason, "rounds": model.max_iter, "seconds": model.max_time}
    sentences = [REASONS[status].format(tol=tol, **values)]
    if status not in (Status.CERTIFIED, Status.UNDECIDED, Status.INSEPARABLE):
        parts = zip(certificate.certificates, certificate.classes, strict=True)
        worst, label = max(parts, key=lambda part: part[0].gap)
        about = "" if label is None else f" of class {python_label(label)!r}"
        sentences.append(f"the certified gap{about} is {worst.gap:.2g}, above tol={tol:g}")
    if status not in (Status.CERTIFIED, Status.INTERRUPTED):
        sentences += _remedies(model, X, names)
    return " ".join(f"{one[0].upper()}{one[1:]}." for one in sentences)


def counted_from_one(message: str, names: Sequence[str] | None = None) -> str:
    """Return a text of `explain` with rows and columns counted from 1; columns are named where `names` are given."""

    def place(found: re.Match[str]) -> str:
        number = int(found[2])
        if names is None or found[1].lower() != "column":
            return f"{found[1]} {number + 1} (counted from 1)"
        return f"{found[1]} {names[number]!r}"

    return re.sub(r"\b([Rr]ow|[Ll]abel|[Cc]olumn) (\d+) \(counted from 0\)", place, message)


def _remedies(model: Any, X: Any, names: Sequence[str] | None) -> list[str]:
    """Return what to try, the most likely first."""
    status, gap = model.status_, model.certificate_.gap
    if status is Status.INSEPARABLE:
        return ["give a finite C, the weight of the losses"]
    large = None if X is None else dominant(X)
    remedies = [] if large is None else [large.words(names=names)]
    # in a comparison, which leaves out the exact stage, algorithms are named
    named = model.algorithm != "auto" and model._exact
    other = 'set algorithm="auto"' if named else "try another algorithm"
    if status in LIMITS:
        name, unit, suffix = LIMITS[status]
        needed = _needed(model, unit)
        if needed is not None:
            remedies.append(f"raise {name} to about {float(f'{needed:.2g}'):g}{suffix}")
        elif _stagnates(model):
            remedies.append(f"the gap hardly falls any more: rather than a larger {name}, {other}")
        # more rounds do not make up for the scale of all columns, on which proofs of hard margins do not depend
        elif large is None or large.column is not None or np.isinf(model.C):
            remedies.append(f"raise {name}")
    elif status is Status.CONVERGED:
        remedies.append(other)
    elif large is None:
        remedies.append("scale the features, with StandardScaler for instance, or give a smaller, finite C")
    if model.tol < gap < 1.0:
        digit = 10.0 ** np.floor(np.log10(gap))
        remedies.append(f"if this gap is small enough, set tol={np.ceil(gap / digit) * digit:.1g}")
    return remedies


def _needed(model: Any, unit: str) -> float | None:
    """Return the limit with which all problems would reach `tol`, extrapolated; None without a basis."""
    needs, begun = [], 0.0
    for label in dict.fromkeys(report.label for report in model.history_):
        history = [report for report in model.history_ if report.label == label]
        last = getattr(history[-1], unit)
        end = last if history[-1].gap <= model.tol else extrapolated(history, model.tol, unit)
        needs.append(np.inf if end is None else end - begun)
        begun = last if unit == "seconds" else 0.0
    # each problem gets an equal share of the time
    need = max(needs, default=np.inf) * (len(needs) if unit == "seconds" else 1)
    if not isfinite(need):
        return None
    return need if unit == "seconds" else ceil(need)


def _stagnates(model: Any) -> bool:
    """Return whether the gap that is furthest from `tol` hardly fell in the second half of its reports."""
    last = {report.label: report.gap for report in model.history_}
    worst = max(last, key=last.__getitem__, default=None)
    gaps = [report.gap for report in model.history_ if report.label == worst]
    return len(gaps) >= 2 * LEAST_REPORTS and gaps[-1] > LEAST_FALL * gaps[len(gaps) // 2]


def extrapolated(history: Sequence[Report], tol: float, unit: str) -> float | None:
    """Return the time or the round in which the gap would reach `tol` if it went on falling as in the last reports.

    Of a geometric and of a polynomial rate the one with the better fit is taken.

    Parameters
    ----------
    history : sequence of Report
        Of one problem.
    tol : float
    unit : {"seconds", "round"}

    Returns
    -------
    end : float or None
        None if reports are too few, do not converge, or are too far from `tol`.
    """
    points = [(getattr(report, unit), report.gap) for report in history if 0.0 < report.gap < np.inf]
    points = points[min(len(points) // 2, max(len(points) - LEAST_REPORTS, 0)) :]
    if len(points) < LEAST_REPORTS or not points[0][0] > 0.0 or not points[0][1] > points[-1][1]:
        return None
    if log(points[-1][1] / tol) > MOST_DECADES * log(points[0][1] / points[-1][1]):
        return None
    x, gaps = np.array(points, dtype=float).T
    found = []
    for time in (x, np.log(x)):
        slope, _ = np.polyfit(time, np.log(gaps), 1)
        steps = log(tol / gaps[-1]) / min(float(slope), -1e-9)
        end = x[-1] + steps if time is x else x[-1] * np.exp(min(steps, 100.0))
        found.append((np.corrcoef(time, np.log(gaps))[0, 1], float(end)))
    correlation, end = min(found)
    return end if correlation <= -LEAST_CORRELATION and end <= MOST_FACTOR * x[-1] else None
