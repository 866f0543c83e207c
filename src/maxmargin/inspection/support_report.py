"""Support report: support vectors, margins at the optimum and leave-one-out labels, with their proofs."""

from __future__ import annotations

from typing import Any

from ..certificates.training_data import training_data
from ..certificates.verification import verify, verify_verdicts
from ..estimators.explanation import SupportReport, explained


def support_report(model: Any, X: Any, y: Any, sample_weight: Any = None) -> SupportReport:
    """Report which rows are support vectors, and which rows a leave-one-out fit may misclassify, each with its proof.

    The certificate is recomputed from the data first (`verify`). Facts that are called certain hold for the optimum
    itself, which the model need not have reached: they follow from the certified gap
    (`maxmargin.certificates.screening`, `maxmargin.certificates.leave_one_out` have the theorems), and the smaller the
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
    verify_verdicts(model, training_data(model, X, y, sample_weight)[0], y, sample_weight)
    return explained(model, X, y, sample_weight, proved)
