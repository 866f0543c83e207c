"""Signals that end a command: Ctrl-C, SIGTERM of `kill` and batch systems, SIGHUP of a closed terminal."""

from __future__ import annotations

import errno
import os
import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from ..numerics.signals import STOP_SIGNALS

INTERRUPTED = 130  # exit code of Ctrl-C: 128 + SIGINT, as shells have it
AGAIN = 0.05  # seconds until an ignored Ctrl-C is sent again: C code may call Python again at once, and ignore it again


@contextmanager
def replaced_handlers() -> Iterator[None]:
    """Replace the handlers of these signals, by one for the time before the command begins and one for that after it.

    Ignored signals stay ignored: Ctrl-C in background jobs of scripts, SIGHUP under `nohup`. Where a program has a
    handler of Ctrl-C, nothing is replaced.
    """
    if signal.getsignal(signal.SIGINT) not in (signal.default_int_handler, signal.SIG_IGN):
        yield
        return
    first = signal.default_int_handler, signal.SIG_DFL  # the handlers with which Python begins
    numbers = [number for number in STOP_SIGNALS if signal.getsignal(number) in first]
    # A KeyboardInterrupt within the loading of modules would show a traceback.
    for number in numbers:
        signal.signal(number, _leave)
    try:
        yield
    finally:
        # The process ends: in its last steps a KeyboardInterrupt would show a traceback, and SIGTERM or SIGHUP would
        # replace the exit code of a command that is done.
        for number in numbers:
            signal.signal(number, signal.SIG_IGN)
        # CPython remembers a KeyboardInterrupt that passes through an `exec` of text, as within the import of a
        # dataclass, even if it is caught later, and ends the process by SIGINT; another `exec` of text resets that
        # (run_eval_code_obj of Python/pythonrun.c).
        exec("")


def begin_command() -> None:
    """Let Ctrl-C, SIGTERM and SIGHUP raise KeyboardInterrupt.

    Without `replaced_handlers`, as where a program calls a command, all handlers stay.
    """
    for number in STOP_SIGNALS:
        if signal.getsignal(number) is _leave:
            signal.signal(number, signal.default_int_handler)
            sys.unraisablehook = _interrupt_again


@contextmanager
def terminal_may_be_closed() -> Iterator[None]:
    """Ignore that nothing can be written to a terminal which has been closed: the result of a command is kept."""
    try:
        yield
    except OSError as error:
        if error.errno != errno.EIO:
            raise


def _interrupt_again(ignored: Any) -> None:
    """Send a signal again if C code that called Python, as LLVM does, has ignored its KeyboardInterrupt."""
    if not issubclass(ignored.exc_type, KeyboardInterrupt):
        sys.__unraisablehook__(ignored)
        return
    number = next(one for one in STOP_SIGNALS if callable(signal.getsignal(one)))
    again = threading.Timer(AGAIN, signal.raise_signal, [number])
    again.daemon = True  # the command may be done before
    again.start()


def _leave(*received: Any) -> None:
    """End the process with the exit code of Ctrl-C; no file is open yet."""
    os._exit(INTERRUPTED)
