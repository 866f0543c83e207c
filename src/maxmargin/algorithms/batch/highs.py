"""Linear programs by HiGHS, with an iteration limit, and left where a fit is to stop.

`scipy.optimize.linprog` runs HiGHS in one call, without a callback and without a warm start. The call is made in a
thread of its own, while the caller's thread waits in short intervals and asks whether to stop: Python handles a signal
in the main thread alone, and between two of its own instructions. When the caller leaves, the thread ends with its
current time limit. That limit is the time that is left, or a slice of it: slices grow, as every one starts the program
anew. None of this changes the solution of a program that is solved in time: the same HiGHS solves the same program.

SciPy before 1.15 holds the interpreter's lock inside HiGHS. There the time limit holds, and Ctrl-C is heard at the end
of a slice.
"""

from __future__ import annotations

import contextvars
import threading
import time
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from scipy.optimize import OptimizeResult, linprog

from ...numerics.stop_check import seconds_left

# Seconds between two questions whether to stop: an interrupt is to be heard within half a second, and a solved program
# is returned at once, however long this is.
POLL = 0.05
# Seconds that the caller waits for the thread once it is to stop: HiGHS ends some hundredths of a second after its time
# limit, and a thread that has ended leaves nothing behind.
GRACE = 0.2
# Seconds of the first slice, and the factor of the next. Long slices keep a thread that was left at work, to the end of
# its slice at most; short ones make long programs begin anew more often: with this factor a program takes at most
# 1 + 4/3 times as long as in one piece, and no longer where it is shorter than the first slice, which nearly all are.
FIRST, FACTOR = 4.0, 4.0
# Seconds below which a time limit means that nothing is begun.
SHORTEST = 1e-3
# Iterations for each row and column. The dual simplex method takes about one to three; at margins near its tolerances
# it can cycle without an end (1,000 x 20 rows at 1e-9), so that a fit without `max_time` would never return. A
# program this size stops after some seconds.
ITERATIONS = 20
TIME_OR_ITERATIONS = 1  # status of a result that a limit ended


def solve_linear(
    cost: np.ndarray,
    G: Any,
    h: np.ndarray,
    bounds: Sequence[tuple[float | None, float | None]],
    method: str,
    tolerance: float,
    interrupted: Callable[[], bool],
) -> OptimizeResult | None:
    """Minimise cost.x subject to G x <= h and bounds; None where it is time to stop before the solution is there.

    Parameters
    ----------
    cost : ndarray of shape (k,)
    G : ndarray or sparse matrix of shape (m, k)
    h : ndarray of shape (m,)
    bounds : sequence of k pairs
        None where there is none.
    method : {"highs-ds", "highs-ipm"}
    tolerance : float
        Of primal and dual feasibility.
    interrupted : callable
        True where it is time to stop; a `StopCheck` tells the time that is left, too.

    Returns
    -------
    OptimizeResult or None
        `status` is not 0 where HiGHS found no solution, for instance within the iteration limit.
    """
    options = {
        "primal_feasibility_tolerance": tolerance,
        "dual_feasibility_tolerance": tolerance,
        "maxiter": ITERATIONS * sum(G.shape),
    }

    def run(limit: float) -> OptimizeResult:
        limited = {**options, "time_limit": limit}
        return linprog(cost, G, h, bounds=bounds, method=method, options=limited)

    if interrupted():
        return None
    call = _Call(run, seconds_left(interrupted))
    return call.wait(interrupted)


class _Call:
    """One program in a thread of its own.

    Parameters
    ----------
    run : callable
        From a time limit in seconds to the result.
    left : float
        Seconds for all slices; infinite where there is no limit.
    """

    def __init__(self, run: Callable[[float], OptimizeResult], left: float) -> None:
        self._run, self._deadline = run, time.perf_counter() + left
        self._ended, self._left = threading.Event(), False
        self._result: OptimizeResult | None = None
        self._error: BaseException | None = None

    def wait(self, interrupted: Callable[[], bool]) -> OptimizeResult | None:
        """Start, and return the result, or None as soon as it is time to stop; errors of the thread are raised here."""
        # NumPy's error state is part of the context. The thread is no daemon: one that returns from HiGHS while the
        # interpreter is being shut down aborts the process.
        context = contextvars.copy_context()
        thread = threading.Thread(target=context.run, args=(self._solve,), name="HiGHS")
        thread.start()
        try:
            while not self._ended.wait(POLL):
                if interrupted():
                    self._ended.wait(GRACE)
                    break
        finally:
            self._left = True
        if self._error is not None:
            raise self._error
        return self._result

    def _solve(self) -> None:
        """Slices of growing length until one ends with a result, or nobody waits for it any more."""
        try:
            self._result = self._in_slices()
        except BaseException as error:
            self._error = error
        finally:
            self._ended.set()

    def _in_slices(self) -> OptimizeResult | None:
        longest = FIRST
        while not self._left:
            limit = min(longest, self._deadline - time.perf_counter())
            if limit < SHORTEST:
                return None
            begun = time.perf_counter()
            result = self._run(limit)
            # a result before the time limit is final, one that the iteration limit ended included
            if result.status != TIME_OR_ITERATIONS or time.perf_counter() - begun < limit:
                return result
            longest *= FACTOR
        return None
