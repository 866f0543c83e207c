"""The signals that end a fit or a command; imported before everything else of a command."""

import signal

# Ctrl-C; SIGTERM of `kill` and batch systems; SIGHUP of a closed terminal, which Windows does not have
STOP_SIGNALS = [getattr(signal, name) for name in ("SIGINT", "SIGTERM", "SIGHUP") if hasattr(signal, name)]
INTERRUPTED = 130  # exit code of a command that they end: 128 + SIGINT, as shells have it
