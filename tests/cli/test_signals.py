"""Signals before, within and after commands."""

from __future__ import annotations

import signal
import subprocess
import sys

import pytest
from command import run

from maxmargin.io.model_file import save

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


IMPORTING = """
import ctypes, signal, sys, time
from maxmargin import cli

class Pressed:  # once, in the import of a module
    def find_spec(self, name, *others):
        if name == "maxmargin.{module}":
            sys.meta_path.remove(self)
            {pressed}

sys.meta_path.insert(0, Pressed())
cli.main()
"""


def ended(module, pressed, *arguments):
    """Run a command in which this happens when it imports a module; return the ended process."""
    script = IMPORTING.format(module=module, pressed=pressed)
    words = [sys.executable, "-c", script, *map(str, arguments)]
    return subprocess.run(words, check=False, capture_output=True, text=True)


@pytest.mark.parametrize(
    ("name", "module"),
    [("SIGINT", "cli.signals"), ("SIGINT", "cli.app"), ("SIGTERM", "cli.app"), ("SIGHUP", "cli.options")],
)
def test_signals_before_a_command_end_with_the_exit_code_of_ctrl_c(name, module):
    if not hasattr(signal, name):
        pytest.skip(f"this system has no {name}")
    if signal.getsignal(getattr(signal, name)) is signal.SIG_IGN:
        pytest.skip(f"the tests ignore {name}, as under nohup")
    found = ended(module, f"signal.raise_signal(signal.{name})", "--version")
    assert (found.returncode, found.stdout, found.stderr) == (130, "", "")


@pytest.mark.parametrize(
    "pressed",
    [
        # as in the import of a module that makes a named tuple or a dataclass
        "exec('signal.raise_signal(signal.SIGINT)')",
        # C code that calls Python ignores the error, as LLVM does where it loads compiled code
        "ctypes.CFUNCTYPE(None)(lambda: signal.raise_signal(signal.SIGINT))(), [time.sleep(0.01) for _ in range(3000)]",
    ],
)
def test_ctrl_c_within_a_command_ends_with_its_exit_code(pressed, tmp_path):
    found = ended("estimators.decisions", pressed, "predict", tmp_path / "m", tmp_path / "rows.svm")
    assert (found.returncode, found.stderr.count("\n")) == (130, 1), found.stderr
    assert "interrupted" in found.stderr


def test_ctrl_c_while_the_model_is_saved_leaves_it_and_the_exit_code(data, tmp_path, monkeypatch):
    def pressed(*arguments):
        signal.raise_signal(signal.SIGINT)
        save(*arguments)

    monkeypatch.setattr("maxmargin.io.model_file.save", pressed)
    path = tmp_path / "new.safetensors"
    result = run("fit", data, "-o", path, "--seed", 0)
    assert result.exit_code == 0
    assert path.exists()
