"""The command line: every option of a fit is a parameter of the estimator."""

from __future__ import annotations

import signal

from ..numerics.progress import INTERRUPTED, STOP_SIGNALS

__all__ = ["main"]


def main() -> None:
    """Run the command that the arguments of the process name; SIGTERM and SIGHUP do what Ctrl-C does."""
    try:
        for number in STOP_SIGNALS:
            if signal.getsignal(number) is signal.SIG_DFL:
                signal.signal(number, signal.default_int_handler)

        from .app import app

        app()
    except KeyboardInterrupt:
        raise SystemExit(INTERRUPTED) from None
