"""Run the command line in this process, as its entry point does, on a small data set."""

from __future__ import annotations

import io
import re
import signal
import sys
from contextlib import redirect_stderr, redirect_stdout
from importlib.metadata import entry_points
from typing import NamedTuple
from unittest.mock import patch

import numpy as np

ENTRY = next(iter(entry_points(group="console_scripts", name="maxmargin")))
# Lines that long work, such as compilation, prints: they depend on time.
PROGRESS = re.compile(r"^maxmargin: \d+\.\d s   .*\n", re.MULTILINE)
RNG = np.random.default_rng(0)
X = np.round(RNG.normal(size=(60, 4)), 3)
Y = np.where(X[:, 0] + 0.4 * RNG.normal(size=60) > 0.0, 1, -1)


class Ended(NamedTuple):
    """What a command printed, without lines of progress, and its exit code."""

    exit_code: int
    stdout: str
    stderr: str

    @property
    def output(self) -> str:
        return self.stdout + self.stderr


def run(*arguments):
    """Run a command; a single argument is a whole command line. A traceback is a failure."""
    words = arguments[0].split() if len(arguments) == 1 else map(str, arguments)
    stdout, stderr, code = io.StringIO(), io.StringIO(), 0
    handlers = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        with (
            patch.object(sys, "argv", ["maxmargin", *words]),
            redirect_stdout(stdout),
            redirect_stderr(stderr),
        ):
            ENTRY.load()()
    except SystemExit as error:
        code = error.code or 0
    finally:
        for number, handler in handlers.items():
            signal.signal(number, handler)
    assert "Traceback" not in stderr.getvalue()
    return Ended(code, stdout.getvalue(), PROGRESS.sub("", stderr.getvalue()))


def refused(*arguments):
    """Run a command that refuses its input; return the one-line error message."""
    result = run(*arguments)
    assert result.exit_code == 2, result.output
    assert result.stderr.startswith("maxmargin: ")
    assert result.stderr.count("\n") == 1
    return result.stderr.removeprefix("maxmargin: ").rstrip()
