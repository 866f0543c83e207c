"""Numbers of threads: n_jobs for Python, one for BLAS."""

from __future__ import annotations

from contextlib import ContextDecorator
from functools import cached_property
from threading import Lock
from typing import Any

from joblib import cpu_count, effective_n_jobs
from threadpoolctl import ThreadpoolController


def jobs(n_jobs: int | None, parts: int | None = None) -> int:
    """Return the number of threads for `parts` parts of the work: n_jobs as in joblib, at most one for each processor.

    Processors are limited by the process's affinity and by a container's share; more threads would wait for each other.
    """
    if n_jobs == 1 or (n_jobs is None and parts == 1):
        return 1
    # None stands for the setting of joblib's parallel_config
    wanted = min(effective_n_jobs(n_jobs), cpu_count())  # pyright: ignore[reportArgumentType]
    return wanted if parts is None else max(1, min(wanted, parts))


class BlasThreads(ContextDecorator):
    """Context in which BLAS has `count` threads, in all threads of Python.

    The setting belongs to the process. With several fits at the same time it is set by the first that enters the
    context, and restored by the last that leaves it.
    """

    def __init__(self, count: int) -> None:
        self.count, self._lock, self._inside = count, Lock(), 0
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


# Threads of BLAS wait for each other by spinning, which on shared cores takes more time than it saves; and the rounding
# of sums would depend on their number.
one_thread = BlasThreads(1)
