"""The process of the command line: `maxmargin`, or python -m maxmargin."""

from __future__ import annotations

import signal

from .numerics.progress import INTERRUPTED, STOP_SIGNALS


def main() -> None:
    """Run the command that the arguments of the process name; SIGTERM and SIGHUP do what Ctrl-C does."""
    try:
        for number in STOP_SIGNALS:
            if signal.getsignal(number) is signal.SIG_DFL:
                signal.signal(number, signal.default_int_handler)

        from .cli.app import app  # only here: Ctrl-C during the import ends the process in the same way

        app()
    except KeyboardInterrupt:
        raise SystemExit(INTERRUPTED) from None


if __name__ == "__main__":
    main()
