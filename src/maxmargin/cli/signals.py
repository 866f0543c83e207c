"""Signals that end a command: Ctrl-C, SIGTERM of `kill` and batch systems, SIGHUP of a closed terminal."""

from __future__ import annotations

import errno
import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

INTERRUPTED = 130  # exit code of Ctrl-C: 128 + SIGINT, as shells have it


@contextmanager
def replaced_handlers() -> Iterator[None]:
    """Replace the handler of Ctrl-C, by one for the time before the command begins and one for that after it.

    Where Ctrl-C is ignored, as in background jobs of a shell, nothing is replaced.
    """
    if signal.getsignal(signal.SIGINT) is not signal.default_int_handler:
        yield
        return
    # A KeyboardInterrupt within the loading of modules would show a traceback.
    signal.signal(signal.SIGINT, _leave)
    try:
        yield
    finally:
        # The process ends: in its last steps a KeyboardInterrupt would show a traceback, and SIGTERM or SIGHUP would
        # replace the exit code of a command that is done.
        for number in (signal.SIGINT, *_as_interrupt()):
            if callable(signal.getsignal(number)):  # a handler, not the default
                signal.signal(number, signal.SIG_IGN)


def begin_command() -> None:
    """Let Ctrl-C raise KeyboardInterrupt, and SIGTERM and SIGHUP do what Ctrl-C does.

    Without `replaced_handlers`, as where a program calls a command, all handlers stay.
    """
    if signal.getsignal(signal.SIGINT) is not _leave:
        return
    signal.signal(signal.SIGINT, signal.default_int_handler)
    for number in _as_interrupt():
        if signal.getsignal(number) is signal.SIG_DFL:  # `nohup` ignores SIGHUP
            signal.signal(number, lambda *received: signal.raise_signal(signal.SIGINT))


@contextmanager
def terminal_may_be_closed() -> Iterator[None]:
    """Ignore that nothing can be written to a terminal which has been closed: the result of a command is kept."""
    try:
        yield
    except OSError as error:
        if error.errno != errno.EIO:
            raise


def _as_interrupt() -> list[int]:
    """Return the numbers of the signals that do what Ctrl-C does; Windows has no SIGHUP."""
    return [getattr(signal, name) for name in ("SIGTERM", "SIGHUP") if hasattr(signal, name)]


def _leave(*received: Any) -> None:
    """End the process with the exit code of Ctrl-C; no file is open yet."""
    os._exit(INTERRUPTED)
