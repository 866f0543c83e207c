"""Files without a header, delimiters, and standard input and pipes of the commands."""

from __future__ import annotations

import gzip
import os
import subprocess
import sys
import threading

import pytest
from command import X, Y, refused, run

from maxmargin import load

COMMAND = [sys.executable, "-c", "from maxmargin.cli import main; main()"]
ROWS = "".join(
    ",".join([*map(repr, row), "yes" if y > 0 else "no"]) + "\n" for row, y in zip(X.tolist(), Y, strict=True)
)


@pytest.fixture
def rows(tmp_path):
    path = tmp_path / "rows.data"
    path.write_text(ROWS)
    return path


def test_all_commands_read_files_without_a_header(rows, tmp_path):
    fitted = run("fit", rows, "-o", tmp_path / "m")
    assert "rows.data: the first line seems to be a row" in fitted.stderr
    assert run("fit", rows, "-o", tmp_path / "m", "--no-header").stderr == ""
    assert load(tmp_path / "m").source_ == {"label": "x5", "first_index": None, "header": False}
    assert run("check", tmp_path / "m", rows).exit_code == 0
    predicted = run("predict", tmp_path / "m", rows)
    assert predicted.stderr.startswith("accuracy ")
    options = ("--no-header", "--label", "x5", "--drop", "x2")
    for words in (("separate",), ("select", "--folds", 2), ("compare", "--algorithms", "dcd")):
        assert run(words[0], rows, *words[1:], *options).exit_code in (0, 3)
    assert "--online" in refused("fit", rows, "-o", tmp_path / "m", "--online", "--no-header")


def test_delimiters_have_names_and_are_remembered(rows, tmp_path):
    text = tmp_path / "rows.txt"
    text.write_text("a b c d kind\n" + ROWS.replace(",", "  "))
    assert run("fit", text, "-o", tmp_path / "m", "--delimiter", "space").exit_code == 0
    assert load(tmp_path / "m").feature_names_in_.tolist() == ["a", "b", "c", "d"]
    assert run("check", tmp_path / "m", text).exit_code == 0
    assert "--delimiter must be comma, semicolon" in refused(
        "fit", text, "-o", tmp_path / "m", "--delimiter", "ab"
    )
    (tmp_path / "t.svm").write_text("1 1:1\n-1 1:2\n")
    message = refused("fit", tmp_path / "t.svm", "-o", tmp_path / "m", "--delimiter", "comma")
    assert "--delimiter is for tables of text" in message


def piped(content, *words):
    done = subprocess.run([*COMMAND, *map(str, words)], input=content, capture_output=True, timeout=300)
    return done.returncode, done.stdout.decode(), done.stderr.decode()


def test_standard_input_is_read_like_a_file(rows, tmp_path, monkeypatch):
    place = tmp_path / "temporary"
    place.mkdir()
    monkeypatch.setenv("TMPDIR", str(place))
    run("fit", rows, "-o", tmp_path / "m", "--seed", 0)
    code, _, stderr = piped(gzip.compress(ROWS.encode()), "fit", "-", "-o", tmp_path / "p", "--seed", 0)
    assert (code, stderr.startswith("maxmargin: standard input.csv.gz: the first line seems")) == (0, True)
    assert (load(tmp_path / "p").coef_ == load(tmp_path / "m").coef_).all()
    code, stdout, _ = piped(ROWS.encode(), "predict", tmp_path / "m", "-")
    assert (code, stdout) == (0, run("predict", tmp_path / "m", rows).stdout)
    code, _, stderr = piped(b"1 1:1\n-1 1:x\n", "separate", "-")
    assert (code, stderr) == (2, stderr)
    assert stderr.startswith("maxmargin: standard input, line 2: the value of '1:x' is not a number")
    assert list(place.iterdir()) == []


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="the system has no named pipes")
def test_named_pipes_are_read_like_a_file(rows, tmp_path):
    run("fit", rows, "-o", tmp_path / "m")
    os.mkfifo(tmp_path / "pipe")
    writer = threading.Thread(target=(tmp_path / "pipe").write_text, args=(ROWS,), daemon=True)
    writer.start()
    checked = run("check", tmp_path / "m", tmp_path / "pipe").stdout
    assert checked.startswith("verified: recomputed from the 60 rows of pipe.csv, every bound holds")
    writer.join(10)


def test_the_label_column_need_not_be_named_in_columns(rows, tmp_path):
    rows.with_suffix(".csv").write_text("a,b,c,d,kind\n" + ROWS)
    assert run("fit", rows.with_suffix(".csv"), "-o", tmp_path / "m", "--columns", "a,b").exit_code == 0
    assert load(tmp_path / "m").source_["label"] == "kind"
    assert run("check", tmp_path / "m", rows.with_suffix(".csv"), "--columns", "a,b").exit_code == 0
