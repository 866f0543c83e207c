"""When to stop early: time, Ctrl-C, a callback. Asked between compiled calls, from any thread."""

from __future__ import annotations

import math
import signal
import threading
import time
from types import FrameType
from typing import Any

from ..numerics.stop_check import StopCheck
from ..problem.status import Status


class Watch:
    """A clock and an ear for the first Ctrl-C; the second one raises KeyboardInterrupt.

    Parameters
    ----------
    max_time : float, default=None
        Seconds from now.
    parent : Watch, default=None
        The watch of the whole, whose clock and whose Ctrl-C count here too.
    """

    def __init__(self, max_time: float | None = None, parent: Watch | None = None) -> None:
        self.begin = time.perf_counter() if parent is None else parent.begin
        self.deadline = None if max_time is None else time.perf_counter() + max_time
        self._parent = parent
        self._stopped = False
        self._previous: Any = None

    def __enter__(self) -> Watch:
        if threading.current_thread() is threading.main_thread():
            previous = signal.getsignal(signal.SIGINT)
            if previous is signal.default_int_handler:  # somebody else's handler stays
                self._previous = previous
                signal.signal(signal.SIGINT, self._listen)
        return self

    def __exit__(self, *exception: Any) -> None:
        if self._previous is not None:
            signal.signal(signal.SIGINT, self._previous)
            self._previous = None

    def _listen(self, signum: int, frame: FrameType | None) -> None:
        if self._stopped:
            raise KeyboardInterrupt
        self._stopped = True

    def part(self, shares: float) -> Watch:
        """A watch for one of several parts of the work: an equal share of the time that is left."""
        if self.deadline is None:
            return Watch(None, parent=self)
        return Watch(max(self.deadline - time.perf_counter(), 0.0) / shares, parent=self)

    def take(self, shares: float) -> None:
        """Have an equal share of the time that is left to the whole, from now on."""
        if self._parent is not None:
            self.deadline = self._parent.part(shares).deadline

    def stop(self) -> None:
        """End at the next opportunity, as the first Ctrl-C does."""
        self._stopped = True
        if self._parent is not None:
            self._parent.stop()

    def _told(self) -> bool:
        """Has somebody said so, here or of the whole?"""
        return self._stopped or (self._parent is not None and self._parent._told())

    def seconds(self) -> float:
        """Since the beginning."""
        return time.perf_counter() - self.begin

    def left(self) -> float:
        """Seconds that are left; infinitely many where no time was set."""
        return math.inf if self.deadline is None else max(self.deadline - time.perf_counter(), 0.0)

    @property
    def check(self) -> StopCheck:
        """`interrupted`, with the time that is left."""
        return StopCheck(self.interrupted, self.left)

    def affords(self, seconds: float) -> bool:
        """Is there time for what takes so long?"""
        return not self.interrupted() and seconds <= self.left()

    def interrupted(self) -> bool:
        """Is it time to stop?"""
        return self.status() is not None

    def status(self) -> Status | None:
        """Why to stop; None while there is no reason."""
        if self._told():
            return Status.INTERRUPTED
        if self.deadline is not None and time.perf_counter() >= self.deadline:
            return Status.MAX_TIME
        return None
