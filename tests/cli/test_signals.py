"""Signals before, within and after commands."""

from __future__ import annotations

import signal
import subprocess
import sys

import pytest

ENDED = """
import signal
from maxmargin.cli.signals import begin_command, replaced_handlers
with replaced_handlers():
    begin_command()
signal.raise_signal(signal.{name})
"""


@pytest.mark.parametrize("name", ["SIGINT", "SIGTERM", "SIGHUP"])
def test_signals_after_a_command_leave_its_exit_code(name):
    if not hasattr(signal, name):
        pytest.skip(f"this system has no {name}")
    assert subprocess.run([sys.executable, "-c", ENDED.format(name=name)], check=False).returncode == 0
