"""maxmargin fit --online: pipes and standard input, and the order of rows."""

from __future__ import annotations

import bz2
import gzip
import itertools
import lzma
import os
import signal
import subprocess
import sys
import threading
import time
from contextlib import contextmanager, suppress

import numpy as np
import pytest
from command import refused, run

from maxmargin import OnlineMarginClassifier, load
from maxmargin.fit.streaming import Stream

COMMAND = [sys.executable, "-c", "from maxmargin.cli import main; main()", "fit", "--online"]
needs_pipes = pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="the system has no named pipes")


def sorted_rows(n=2000):
    """Return svmlight text with all rows of the label -1 first, and the rows and labels."""
    rng = np.random.default_rng(0)
    y = np.repeat([-1, 1], n // 2)
    X = np.round(rng.normal(size=(n, 4)) + 0.5 * y[:, None], 3)
    lines = (
        f"{label} " + " ".join(f"{j + 1}:{v}" for j, v in enumerate(row))
        for row, label in zip(X, y, strict=True)
    )
    return ("\n".join(lines) + "\n").encode(), X, y


TEXT, X, Y = sorted_rows()


@contextmanager
def pipe_of(content, tmp_path):
    """Make a named pipe, into which a thread writes; it ends early if the reader does."""
    path = tmp_path / "pipe"
    os.mkfifo(path)

    def write():
        with suppress(BrokenPipeError), open(path, "wb") as file:
            file.write(content)

    writer = threading.Thread(target=write, daemon=True)
    writer.start()
    yield path
    writer.join(10)
    path.unlink()


def fitted(data, tmp_path, *options):
    words = ("--quiet", "--n-features", 4, "--seed", 1)  # no progress while code is compiled
    result = run("fit", "--online", data, "-o", tmp_path / "m", *words, *options)
    assert (result.exit_code, result.stderr) == (0, "")
    return load(tmp_path / "m")


@needs_pipes
@pytest.mark.parametrize("compress", [bytes, gzip.compress, bz2.compress, lzma.compress])
def test_a_pipe_gives_the_model_of_the_file(compress, tmp_path):
    (tmp_path / "rows.svm").write_bytes(TEXT)
    model = fitted(tmp_path / "rows.svm", tmp_path)
    with pipe_of(compress(TEXT), tmp_path) as path:
        assert np.array_equal(fitted(path, tmp_path).coef_, model.coef_)


def test_standard_input_gives_the_model_of_the_file(tmp_path):
    (tmp_path / "rows.svm").write_bytes(TEXT)
    model = fitted(tmp_path / "rows.svm", tmp_path)
    words = [*COMMAND, "-", "-o", str(tmp_path / "m"), "--n-features", "4", "--seed", "1", "--quiet"]
    done = subprocess.run(words, input=TEXT, capture_output=True, timeout=300)
    assert (done.returncode, done.stderr) == (0, b"")
    assert np.array_equal(load(tmp_path / "m").coef_, model.coef_)
    words[words.index("-")] = "none"
    none = subprocess.run([*words, "--quiet"], input=b"", capture_output=True, text=False, timeout=300)
    assert b"none: there is no such file" in none.stderr
    assert load(tmp_path / "m").random_state == 1


@needs_pipes
@pytest.mark.parametrize(
    ("content", "code", "message"),
    [
        (b"", 2, "pipe: there are no rows."),
        (b"# a comment\n", 2, "pipe: there are no rows."),
        (
            TEXT + b"1 1:",
            3,
            "line 2001: the value of '1:' is not a number; write entries as index:value (the line has no end",
        ),
        (gzip.compress(TEXT)[:2000], 2, "the compressed file is cut short"),
        (b"PAR1" + bytes(100), 2, "line 1: the label 'PAR1"),
        (b"1 1:1\n1 1:2\n", 2, "the first 2 rows that were read are all of class 1; use --classes"),
        (b"1 1:1\n-1 1:2\n1 7:1\n", 2, "line 3: the index 7 is beyond the 4 features"),
        (b"\n1 1:1\n\n-1 1:2\n1 1:1\n", 0, ""),
    ],
)
def test_faults_of_pipes_are_those_of_files(content, code, message, tmp_path, monkeypatch):
    monkeypatch.setattr(
        "maxmargin.readers.shuffled.BLOCK", 1 << 14
    )  # several blocks: the rows before are learnt
    with pipe_of(content, tmp_path) as path:
        done = run("fit", "--online", path, "-o", tmp_path / "m", "--n-features", 4)
    assert done.exit_code == code, done.output
    assert message in done.stderr
    assert (tmp_path / "m").exists() == (code != 2)


@needs_pipes
def test_ctrl_c_keeps_the_rows_that_have_come_through_a_pipe(tmp_path):
    """Ctrl-C while the command waits for more, after the pipe has been emptied."""
    fcntl, termios = pytest.importorskip("fcntl"), pytest.importorskip("termios")
    content = b"".join(TEXT.splitlines(keepends=True)[::50])
    path, ended = tmp_path / "pipe", threading.Event()
    os.mkfifo(path)

    def write():
        with open(path, "wb", buffering=0) as file:
            file.write(content + b"1 1:")  # the last row is not complete
            while fcntl.ioctl(file, termios.FIONREAD, bytes(4)) != bytes(4):
                time.sleep(0.01)
            time.sleep(0.2)  # the command waits for more text
            os.kill(os.getpid(), signal.SIGINT)
            ended.wait(60)

    writer = threading.Thread(target=write, daemon=True)
    writer.start()
    done = run("fit", "--online", path, "-o", tmp_path / "m", "--n-features", 4)
    ended.set()
    assert done.exit_code == 3, done.output
    assert done.stdout.startswith("40 rows in ")
    assert load(tmp_path / "m").n_seen_ == 40


@pytest.mark.parametrize(("interrupts", "least", "most"), [({2}, 2000, 2000), ({2, 5}, 500, 700)])
def test_after_ctrl_c_the_buffer_is_learnt_until_a_second_one(interrupts, least, most, tmp_path, monkeypatch):
    data, present, calls = tmp_path / "rows.svm", Stream.present, itertools.count(1)
    data.write_bytes(TEXT)
    monkeypatch.setattr("maxmargin.readers.shuffled.BLOCK", 1 << 13)  # the rows leave the buffer in 16 blocks

    def interrupted(stream, *task):
        if next(calls) in interrupts:
            signal.raise_signal(signal.SIGINT)
        present(stream, *task)

    monkeypatch.setattr(Stream, "present", interrupted)
    done = run("fit", "--online", data, "-o", tmp_path / "m", "--n-features", 4)
    assert done.exit_code == 3, done.output
    assert least <= load(tmp_path / "m").n_seen_ <= most


@pytest.mark.parametrize("suffix", [".svm", ".svm.gz"])
def test_sorted_rows_are_learnt_in_random_order(suffix, tmp_path):
    """As accurate as rows in memory in random order, also with a buffer that holds a sixth of the rows."""
    data = tmp_path / f"rows{suffix}"
    data.write_bytes(gzip.compress(TEXT) if suffix.endswith("gz") else TEXT)
    order = np.random.default_rng(0).permutation(Y.size)
    least = OnlineMarginClassifier().partial_fit(X[order], Y[order], classes=[-1, 1]).score(X, Y) - 0.02
    options = [(), ("--shuffle-buffer", "20KB")] if suffix == ".svm" else [()]
    for option in options:
        models = [fitted(data, tmp_path, *option) for _ in range(2)]
        assert models[0].score(X, Y) > least
        assert np.array_equal(models[0].coef_, models[1].coef_)
        other = run(
            "fit", "--online", data, "-o", tmp_path / "m", "--n-features", 4, *option, "--seed", 2, "--quiet"
        )
        assert other.stderr == ""
        assert not np.array_equal(load(tmp_path / "m").coef_, models[0].coef_)


def test_sizes_have_units(tmp_path):
    (tmp_path / "rows.svm").write_bytes(TEXT)
    models = {
        size: fitted(tmp_path / "rows.svm", tmp_path, "--shuffle-buffer", size).coef_.tolist()
        for size in ("20KB", "20000", "0.02mb", "20 kb", "30KB")
    }
    assert len({str(coef) for coef in models.values()}) == 2
    assert models["20KB"] == models["0.02mb"] == models["20 kb"] == models["20000"] != models["30KB"]
    assert "such as 512KB" in refused(
        "fit", "--online", tmp_path / "rows.svm", "-o", "m", "--n-features", 4, "--shuffle-buffer", "-1"
    )
