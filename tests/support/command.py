"""Run the command line in this process, on a small data set."""

from __future__ import annotations

from threading import TIMEOUT_MAX
from unittest.mock import patch

import numpy as np
from typer.testing import CliRunner

from maxmargin.cli import display
from maxmargin.cli.app import app

RNG = np.random.default_rng(0)
X = np.round(RNG.normal(size=(60, 4)), 3)
Y = np.where(X[:, 0] + 0.4 * RNG.normal(size=60) > 0.0, 1, -1)


def run(*arguments):
    """Run a command; return its output on both streams and its exit code. A traceback is a failure.

    A single argument is a whole command line. Lines of progress, which long work such as compilation prints, are left
    out: the output does not depend on time.
    """
    arguments = arguments[0].split() if len(arguments) == 1 else arguments
    with patch.object(display, "INTERVAL", TIMEOUT_MAX):
        result = CliRunner().invoke(app, [str(argument) for argument in arguments])
    assert result.exception is None or isinstance(result.exception, SystemExit), result.exception
    assert "Traceback" not in result.stderr
    return result


def refused(*arguments):
    """Run a command that refuses its input; return the one-line error message."""
    result = run(*arguments)
    assert result.exit_code == 2, result.output
    assert result.stderr.startswith("maxmargin: ")
    assert result.stderr.count("\n") == 1
    return result.stderr.removeprefix("maxmargin: ").rstrip()
