"""Signals that end a command: the best model so far is kept."""

from __future__ import annotations

import os
import select
import signal
import subprocess
import sys
import time
from contextlib import suppress

import numpy as np
import pytest

from maxmargin import Status, load

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="needs a pseudo-terminal")


def ended(words, name, shown_before, written=b""):
    """Run a command on a terminal, send it a signal after this text is shown; return its exit code and output."""
    if signal.getsignal(getattr(signal, name)) is signal.SIG_IGN:
        pytest.skip(f"the tests ignore {name}, as under nohup")
    terminal, end = os.openpty()
    command = [sys.executable, "-m", "maxmargin", *map(str, words)]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": end}
    process = subprocess.Popen(command, env={**os.environ, "COLUMNS": "200"}, **pipes)
    os.close(end)
    process.stdin.write(written)
    process.stdin.flush()
    shown, deadline = "", time.monotonic() + 120.0
    while shown_before not in shown and process.poll() is None and time.monotonic() < deadline:
        if select.select([terminal], [], [], 0.1)[0]:
            with suppress(OSError):  # the other end is closed
                shown += os.read(terminal, 4096).decode("utf-8", "replace")
    time.sleep(0.5)
    process.send_signal(getattr(signal, name))
    printed = process.communicate(timeout=60)[0].decode()
    os.close(terminal)
    return process.returncode, printed, shown


@pytest.mark.parametrize("name", ["SIGTERM", pytest.param("SIGINT", marks=pytest.mark.slow)])
def test_a_signal_ends_a_fit_with_the_best_model_so_far(tmp_path, name):
    rng = np.random.default_rng(0)
    np.savez(tmp_path / "hard", X=rng.normal(size=(2600, 100)), y=rng.integers(0, 2, 2600))
    options = "--algorithm dcd --loss hinge --C 1e4 --tol 1e-14 --max-time 99 --max-iter 99999999"
    words = ["fit", tmp_path / "hard.npz", "-o", tmp_path / "m", *options.split()]
    code, printed, shown = ended(words, name, "<= objective <=")
    assert (code, printed[:15]) == (3, "INTERRUPTED in "), shown
    assert load(tmp_path / "m").status_ is Status.INTERRUPTED


@pytest.mark.slow
def test_ctrl_c_keeps_the_rows_that_have_come_through_a_pipe(tmp_path):
    text = b"1 1:1 2:0.5\n-1 1:-1 2:0.25\n" * 20_000  # longer than the pipe holds
    words = ["fit", "-", "--online", "--n-features", 2, "-o", tmp_path / "m"]
    code, printed, shown = ended(words, "SIGINT", "reading standard input", text)
    assert code == 3, shown
    assert "stopped before the end" in printed
    assert 0 < load(tmp_path / "m").n_seen_ <= 40_000


@pytest.mark.slow
def test_ctrl_c_without_a_result_exits_with_130(tmp_path):
    words = ["fit", "-", "--online", "--n-features", 2, "-o", tmp_path / "m"]
    code, printed, shown = ended(words, "SIGINT", "reading standard input", b"1 1:")
    assert (code, printed) == (130, ""), shown
    assert not (tmp_path / "m").exists()
