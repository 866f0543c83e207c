"""The status of a fit at its end."""

from __future__ import annotations

from collections.abc import Iterable
from enum import StrEnum


class Status(StrEnum):
    """State in which a fit ended, from the best to the worst; none is a warning. `message_` of a model explains it."""

    CERTIFIED = "CERTIFIED"  #: the certified gap is at most `tol`
    CONVERGED = "CONVERGED"  #: the rule ended by its own criterion, with a larger gap
    #: rounding in float64 prevents progress, with a larger gap, perhaps that of the bound alone: scale the features, or
    #: lower C
    STALLED = "STALLED"
    MAX_ITER = "MAX_ITER"  #: `max_iter` rounds were made
    MAX_TIME = "MAX_TIME"  #: `max_time` seconds went by, or too few are left for the digits of a certificate
    INTERRUPTED = "INTERRUPTED"  #: by Ctrl-C, or by the callback
    #: hard margin: stopped with no separator in the model's own float64 numbers, and no proof that there is none
    UNDECIDED = "UNDECIDED"
    INSEPARABLE = "INSEPARABLE"  #: hard margin: there is no separator, and `verdict_` proves it exactly
    NOT_FINITE = "NOT_FINITE"  #: numbers overflowed: the scale of the data is beyond float64


def worst(statuses: Iterable[Status]) -> Status:
    """Return the status of a model of several problems: the last of them in the order of `Status`."""
    return max(statuses, key=list(Status).index)


def stopped_reason(status: Status | None) -> str:
    """Return the reason of the verdict of a search that a deadline with this status ended; empty if it has not."""
    if status is None:
        return ""
    return "Ctrl-C interrupted the search" if status is Status.INTERRUPTED else "max_time went by"
