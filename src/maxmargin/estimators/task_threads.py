"""The binary tasks of one fit: solved one after the other, or in threads."""

from __future__ import annotations

from collections.abc import Callable
from math import ceil
from typing import Any, TypeVar

from joblib import Parallel, delayed

from ..fit.deadline import Watch

T = TypeVar("T")


def solve_tasks(solve: Callable[[int, Watch], T], count: int, workers: int, watch: Watch) -> list[T]:
    """Solve tasks 0, ..., count - 1; the tasks that are left share the time that is left.

    Parameters
    ----------
    solve : callable
        Solves the k-th task within its share of the time.
    count : int
    workers : int
        Tasks that are solved at the same time.
    watch : Watch
        Of the whole fit.
    """

    def one(k: int) -> T:
        return solve(k, watch.part(ceil((count - k) / workers)))

    if workers == 1:
        return [one(k) for k in range(count)]
    parallel: Any = Parallel(n_jobs=workers, require="sharedmem")
    return list(parallel(delayed(one)(k) for k in range(count)))
