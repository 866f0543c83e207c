"""Fitted attributes that linear and kernel classifiers have in common."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..certificates.certificate import Certificate, Certificates
from ..certificates.verdicts import Verdict
from ..problem.status import worst
from .validation import python_label


def store_results(
    model: Any,
    names: list[Any],
    solutions: Sequence[Any],
    certificates: Sequence[Certificate],
    verdicts: Sequence[Verdict | None],
) -> None:
    """Set `n_iter_`, `status_`, `history_`, `certificate_` and `verdict_`.

    Parameters
    ----------
    model : estimator
    names : list
        The label of each binary task; None is the only one.
    solutions : sequence of Solution or KernelSolution
    certificates : sequence of Certificate
    verdicts : sequence of Verdict or None
        Of hard margins without a separator.
    """
    model.n_iter_ = max(solution.rounds for solution in solutions)
    model.status_ = worst(solution.status for solution in solutions)
    model.history_ = [report for solution in solutions for report in solution.history]
    one = len(certificates) == 1
    model.certificate_ = certificates[0] if one else Certificates(tuple(names), tuple(certificates))
    _store_verdicts(model, names, verdicts)


def _store_verdicts(model: Any, names: list[Any], verdicts: Sequence[Verdict | None]) -> None:
    """Set `verdict_`, by label where there are several tasks; delete it where every task has its separator."""
    if hasattr(model, "verdict_"):
        del model.verdict_
    pairs = zip(names, verdicts, strict=True)
    found = {python_label(name): verdict for name, verdict in pairs if verdict is not None}
    if found:
        model.verdict_ = found if len(names) > 1 else found[None]
