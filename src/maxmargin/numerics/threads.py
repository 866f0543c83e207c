"""Numbers of threads: n_jobs for Python, one for BLAS."""

from __future__ import annotations

import os
import threading
from contextlib import ContextDecorator
from functools import cached_property
from threading import Lock
from typing import Any

from joblib import cpu_count, effective_n_jobs
from joblib.parallel import get_active_backend
from threadpoolctl import ThreadpoolController


def jobs(n_jobs: int | None, parts: int | None = None) -> int:
    """Return the threads for this many parts of the work: n_jobs in joblib's sense, at most one a processor.

    A container's share and the affinity of the process count. More threads than that would only wait for each other,
    or use up the share in the first part of each period. Among several jobs of joblib (a grid search with n_jobs), this
    one has its share of the processors.
    """
    if n_jobs is None and parts == 1:
        return 1
    # None is what joblib's parallel_config says
    wanted = 1 if n_jobs == 1 else effective_n_jobs(n_jobs)  # pyright: ignore[reportArgumentType]
    if wanted == 1:
        return 1
    wanted = min(wanted, _processors())
    return wanted if parts is None else max(1, min(wanted, parts))


def _processors() -> int:
    """Return the processors that this call may use."""
    backend: Any = get_active_backend()[0]
    if not backend.nesting_level:
        return cpu_count()
    # joblib tells a process of its pool how many threads it may have; jobs that are threads are as many as processors
    alone = threading.current_thread() is threading.main_thread()
    share = os.environ.get("OMP_NUM_THREADS", "") if alone else ""
    return min(int(share), cpu_count()) if share.isdecimal() and int(share) else 1


class BlasThreads(ContextDecorator):
    """Context in which BLAS has `count` threads, from whichever thread of Python.

    The setting is the process's: of two fits at the same time the first to end must not give it back to the second,
    nor the second restore what it has found.
    """

    def __init__(self, count: int) -> None:
        self.count = count
        self._lock = Lock()
        self._inside = 0
        self._limit: Any = None

    @cached_property
    def _blas(self) -> ThreadpoolController:
        return ThreadpoolController().select(user_api="blas")

    def __enter__(self) -> None:
        with self._lock:
            libraries = self._blas.lib_controllers
            if not self._inside and any(library.num_threads != self.count for library in libraries):
                self._limit = self._blas.limit(limits=self.count)
            self._inside += 1

    def __exit__(self, *exception: object) -> None:
        with self._lock:
            self._inside -= 1
            if not self._inside and self._limit is not None:
                self._limit.restore_original_limits()
                self._limit = None


# threads of BLAS wait for each other by spinning, which on shared cores costs more than it gives; and sums would
# depend on their number
one_thread = BlasThreads(1)
