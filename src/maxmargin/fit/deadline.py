"""The deadline of a fit: a time limit, Ctrl-C, or a callback; its division among binary tasks, and their reports."""

from __future__ import annotations

import math
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
from joblib import Parallel, delayed

from ..numerics.progress import STOP_SIGNALS, announce
from ..problem.problem import Status

if TYPE_CHECKING:
    from .report import Report

T = TypeVar("T")


@dataclass(eq=False)
class Deadline:
    """The time limit of a fit, and a flag that Ctrl-C or a callback sets to end the fit early.

    Within a block of `interruptible`, in the main thread, the first Ctrl-C sets the flag; the second one raises
    `SecondInterruptError`. `raise_interrupt` raises KeyboardInterrupt for the first one, when the result is stored.

    Parameters
    ----------
    max_time : float, default=None
        Seconds from `began`; None for no time limit.
    began : float
        A reading of `time.perf_counter`; by default that of now.
    stopped : threading.Event
        Set by Ctrl-C or by a callback; all parts of a fit use the same event, so that it ends all of them.
    """

    max_time: float | None = None
    began: float = field(default_factory=time.perf_counter)
    stopped: threading.Event = field(default_factory=threading.Event)
    _received: int = field(default=0, init=False)  # signals of Ctrl-C

    @contextmanager
    def interruptible(self) -> Iterator[None]:
        """Set the flag at the first Ctrl-C within the block, raise `SecondInterruptError` at the second."""
        within, leaving = ExitStack(), False

        def interrupt(*received: Any) -> None:
            self._received += 1
            self.stopped.set()
            if self._received > 1 and not leaving:
                within.close()  # the error may be raised where the block has just ended
                raise SecondInterruptError("Ctrl-C was pressed twice")

        within.enter_context(interrupts_handled(interrupt))
        try:
            yield
        finally:
            leaving = True
            within.close()
        if self._received > 1:  # C code has ignored the error
            raise SecondInterruptError("Ctrl-C was pressed twice")

    def raise_interrupt(self, result: Any) -> None:
        """Raise `FitInterruptedError` with the result if Ctrl-C set the flag."""
        if self._received:
            raise FitInterruptedError(result)

    def split(self, shares: float) -> Deadline:
        """Return the deadline of a part of the work: the remaining time is divided by `shares`."""
        if self.max_time is None or shares == 1:
            return self
        passed = time.perf_counter() - self.began
        return replace(self, max_time=passed + max(self.max_time - passed, 0.0) / shares)

    def remaining(self) -> float:
        """Return the seconds until the end; inf without a time limit."""
        if self.max_time is None:
            return math.inf
        return max(self.began + self.max_time - time.perf_counter(), 0.0)

    def interrupted(self) -> bool:
        """Return whether the time is up or the flag is set."""
        if self.stopped.is_set() or self.max_time is None:
            return self.stopped.is_set()
        return time.perf_counter() - self.began >= self.max_time

    def status(self) -> Status | None:
        """Return INTERRUPTED if the flag is set, MAX_TIME if the time is up, else None."""
        if self.stopped.is_set():
            return Status.INTERRUPTED
        return Status.MAX_TIME if self.interrupted() else None


class SecondInterruptError(KeyboardInterrupt):
    """A second Ctrl-C, which ends a fit at once; no model is kept."""


class FitInterruptedError(KeyboardInterrupt):
    """Ctrl-C ended a fit, a search or a comparison, and its best result so far is kept.

    Parameters
    ----------
    result : object
        The fitted estimator, which also holds it; or the path, the comparison or the verdict.
    """

    def __init__(self, result: Any) -> None:
        super().__init__(result)
        self.result = result

    def __str__(self) -> str:
        return f"Ctrl-C; the best result so far is kept: {type(self.result).__name__}"

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle as a KeyboardInterrupt without the result, which stays in its process.

        A result that cannot be pickled, as with a local function as callback, would end the worker of a process pool.
        """
        return KeyboardInterrupt, ("Ctrl-C ended a fit in another process",)


class Interruption:
    """Delay of the KeyboardInterrupt of fits that Ctrl-C ended, until a caller has stored what is found so far.

    The context manager catches `FitInterruptedError`, whose fit has stored its own result; any other error passes.

    Attributes
    ----------
    received : bool
        Whether one was caught.
    """

    def __init__(self) -> None:
        self.received = False

    def __enter__(self) -> Interruption:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: Any) -> bool:
        """Catch the error of a fit that Ctrl-C ended."""
        caught = isinstance(error, FitInterruptedError)
        self.received |= caught
        return caught

    def raise_with(self, result: Any) -> None:
        """Raise `FitInterruptedError` with the result if one was caught."""
        if self.received:
            raise FitInterruptedError(result)


def result_of(run: Callable[[], T]) -> T:
    """Return the result of a fit, a search or a comparison, the best so far after Ctrl-C."""
    try:
        return run()
    except FitInterruptedError as error:
        return error.result


@contextmanager
def interrupts_handled(handler: Callable[..., None], always: bool = False) -> Iterator[None]:
    """Handle Ctrl-C by `handler` within the block, in the main thread, which alone receives signals.

    So are other signals that raise KeyboardInterrupt, as SIGTERM does in commands. A handler that a program has set for
    Ctrl-C stays, unless `always`.
    """
    previous = {}
    try:
        if threading.current_thread() is threading.main_thread():
            for number in STOP_SIGNALS:
                found = signal.getsignal(number)
                of_program = always and number == signal.SIGINT and callable(found)
                if found is signal.default_int_handler or of_program:
                    previous[number] = found
                    signal.signal(number, handler)
        yield
    finally:
        for number, found in previous.items():
            signal.signal(number, found)


@contextmanager
def deferred_interrupt() -> Iterator[None]:
    """Defer Ctrl-C to the end of the block; in threads other than the main thread, which receive none, do nothing."""
    received: list[int] = []
    try:
        with interrupts_handled(lambda number, frame: received.append(number), always=True):
            yield
    finally:
        if received:
            signal.raise_signal(received[0])


def solve_tasks(
    solve_task: Callable[[int, Deadline], T], count: int, workers: int, deadline: Deadline
) -> list[T]:
    """Solve tasks 0, ..., count - 1; each gets an equal share of the time that remains when it begins.

    Parameters
    ----------
    solve_task : callable
        Solves the k-th task within its share of the time.
    count : int
    workers : int
        Number of tasks that are solved at the same time.
    deadline : Deadline
        The deadline of the whole fit.
    """

    if count == 1:
        return [solve_task(0, deadline)]

    def begin(k: int) -> T:
        announce("binary problem", k + 1, count, level=2)
        return solve_task(k, deadline.split(math.ceil((count - k) / workers)))

    if workers == 1:
        return [begin(k) for k in range(count)]
    parallel: Any = Parallel(n_jobs=workers, require="sharedmem")
    return list(parallel(delayed(begin)(k) for k in range(count)))


@dataclass(eq=False)
class Reporter:
    """Prints the reports of one fit if `verbose`, and passes them to the callback, which may end the fit.

    Parameters
    ----------
    model : estimator
        With the parameters `verbose` and `callback`.
    """

    model: Any
    # the stage of each task, and its reason
    _stages: dict[Any, tuple[str, str]] = field(default_factory=dict)
    _lock: Any = field(default_factory=threading.Lock)

    def report(self, report: Report, deadline: Deadline) -> None:
        """Print the report of a round if `verbose`, and pass it to the callback, which may stop the deadline."""
        with self._lock:
            if self.model.verbose:
                self._print(report)
            answer = False if self.model.callback is None else self.model.callback(report)
            if np.ndim(answer):  # an array has no truth value
                kind = type(answer).__name__
                raise ValueError(
                    f"callback must return True to end the fit, else False or None; got a {kind}."
                )
            if answer:
                deadline.stopped.set()

    def _print(self, report: Report) -> None:
        """Print a line about the round, and one before it where another stage begins."""
        name = "" if report.label is None else f"[{report.label}] "
        stage = report.stage, report.reason
        if self._stages.get(report.label) != stage:
            self._stages[report.label] = stage
            print(f"{name}{report.stage}: {report.reason}", file=sys.stderr)
        print(
            f"{name}round {report.round:4d}  {report.seconds:8.2f} s  {report.lower:.9g} .. {report.upper:.9g}"
            f"  gap {report.gap:.3g}  ({report.stage})",
            file=sys.stderr,
        )
