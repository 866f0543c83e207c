"""The reason why a fit ended as it did, and what to try next."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ..numerics.scales import dominant
from ..problem.multiclass import python_label
from ..problem.status import Status

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
LIMITS = {Status.MAX_TIME: "max_time", Status.MAX_ITER: "max_iter"}


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
        # more rounds do not make up for the scale of all columns, on which proofs of hard margins do not depend
        if large is None or large.column is not None or np.isinf(model.C):
            remedies.append(f"raise {LIMITS[status]}, or {other}")
    elif status is Status.CONVERGED:
        remedies.append(other)
    elif large is None:
        remedies.append("scale the features, with StandardScaler for instance, or give a smaller, finite C")
    if model.tol < gap < 1.0:
        digit = 10.0 ** np.floor(np.log10(gap))
        remedies.append(f"if this gap is small enough, set tol={np.ceil(gap / digit) * digit:.1g}")
    return remedies
