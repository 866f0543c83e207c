"""Progress of long work: announced steps, a bar on a terminal, lines elsewhere, and what is compiled."""

from __future__ import annotations

import importlib.util
import json
import time
from dataclasses import replace
from itertools import count

import numpy as np
import pytest
from command import X, Y, run

from maxmargin import KernelMaxMarginClassifier, MarginRFE, MaxMarginClassifierCV, compare
from maxmargin.cli import display
from maxmargin.cli.display import Progress
from maxmargin.engine.jit import COMPILATION
from maxmargin.estimators.linear import WithoutExactStep
from maxmargin.fit.report import Report
from maxmargin.io.model_file import save
from maxmargin.numerics.progress import LISTENERS, announce

REPORT = Report(3, 0.5, 1.25, 1.5, 0.2, 10, 5, "dcd", "cat")


def test_line_names_steps_bounds_and_time(monkeypatch):
    clock = count(0.0, 2.0)
    monkeypatch.setattr(display.time, "perf_counter", lambda: next(clock))
    with Progress("objective", max_time=10.0, quiet=True) as progress:
        announce("fold", 2, 5)
        assert progress.line() == "2.0 s, 8.0 s left   fold (2 of 5)"
        announce("a set", level=1)
        progress(REPORT)
        bounds = "class cat   round 3   1.25 ≤ objective ≤ 1.5   gap 0.2   20 rows/s   (dcd)"
        assert progress.line() == f"4.0 s, 6.0 s left   fold (2 of 5)   a set   {bounds}"
        announce("fold", 3, 5)  # ends the set, and the fit in it
        assert progress.line() == "6.0 s, 4.0 s left   fold (3 of 5)"
        monkeypatch.setattr(COMPILATION, "running", 2)
        assert "fold (3 of 5)   compiling for this machine, once" in progress.line()
    assert progress.begin_step not in LISTENERS


def test_share_of_nested_steps_is_that_of_the_whole():
    with Progress(tol=1e-4, quiet=True) as progress:
        assert progress.share() is None
        announce("reading", share=lambda: 0.25)
        assert progress.share() == 0.25
        announce("fold", 2, 4)
        announce("set", 3, 4, level=1)
        assert progress.share() == pytest.approx((1 + 2 / 4) / 4, abs=1e-15)
        for gap, done in ((1e-2, 0.5), (1e-9, 1.0), (np.inf, 0.0)):
            progress(replace(REPORT, gap=gap))
            assert progress.share() == pytest.approx((1 + (2 + done) / 4) / 4, abs=1e-15)


@pytest.mark.parametrize("quiet", [False, True])
def test_a_line_is_printed_at_each_interval_without_a_terminal(capsys, monkeypatch, quiet):
    assert display.INTERVAL == 10.0
    monkeypatch.setattr(display, "INTERVAL", 0.02)
    printed, deadline = "", time.monotonic() + (0.3 if quiet else 60.0)
    with Progress("margin", quiet=quiet):
        announce("fold", 2, 4)
        while not printed and time.monotonic() < deadline:
            time.sleep(0.02)
            printed = capsys.readouterr().err
    assert printed.startswith("" if quiet else "maxmargin: 25%   ")
    assert (" s   fold (2 of 4)\n" in printed) is not quiet


def test_commands_announce_their_steps(data, tmp_path, monkeypatch):
    model, steps = tmp_path / "m", []
    monkeypatch.setattr("maxmargin.numerics.progress.LISTENERS", [lambda step: steps.append(str(step))])
    save(KernelMaxMarginClassifier().fit(np.tile(X, (5, 1)), np.tile(Y, 5)), model)
    np.savez(tmp_path / "rows.npz", X=np.tile(X, (5, 1)), y=np.tile(Y, 5))
    run("predict", model, tmp_path / "rows.npz")
    assert steps == ["reading rows.npz", "block of rows (1 of 2)", "block of rows (2 of 2)"]
    run("check", model, tmp_path / "rows.npz")
    assert steps[3:] == ["reading rows.npz", "recomputing the bounds"]
    reading, expected = "reading train.svm", ["fold (1 of 3)", "fold (2 of 3)", "all rows (3 of 3)"]
    for words, found in (
        (("compare", data, "--algorithms", "dcd,mpu"), ["dcd (1 of 2)", "mpu (2 of 2)"]),
        (("select", data, "--folds", 2, "--keep", 2), expected),
        (("separate", data), ["least squares", "Wolfe's algorithm in exact arithmetic"]),
    ):
        steps.clear()
        assert (run(*words).exit_code, steps[0]) == (0, reading)
        later = steps[steps.index("loading the solver") + 1 :]
        assert [step for step in later if "features" not in step] == found


def test_verbose_estimators_print_their_steps(capsys):
    MaxMarginClassifierCV([0.1, 1.0], cv=2, verbose=1).fit(X, Y)
    printed = f"\n{capsys.readouterr().err}"
    for line in ("fold (1 of 3)", "fold (2 of 3)", "all rows (3 of 3)", "C = 1, p = 2 (2 of 2)"):
        assert f"\n{line}\n" in printed
    MarginRFE("dcd", cv=2, verbose=1).fit(X, Y)
    assert capsys.readouterr().err.startswith("fold (1 of 3)\nfold (2 of 3)\nall rows (3 of 3)\n")
    MaxMarginClassifierCV([0.1, 1.0], cv=2).fit(X, Y)
    assert capsys.readouterr().err == ""


def test_compilation_counts_what_is_compiled_and_not_what_is_loaded(tmp_path, monkeypatch):
    monkeypatch.setattr("numba.core.config.CACHE_DIR", str(tmp_path / "cache"))
    code = "from maxmargin.engine.jit import compiled\n@compiled()\ndef twice(a):\n    return a + a\n"
    (tmp_path / "twice.py").write_text(code)
    spent = []
    for _ in range(2):
        spec = importlib.util.spec_from_file_location("twice", tmp_path / "twice.py")
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        before = COMPILATION.seconds
        assert module.twice(2.0) == 4.0
        spent.append(COMPILATION.seconds - before)
    assert spent[0] > 0.0
    assert spent[1] == COMPILATION.running == 0


def test_compared_fits_in_which_something_was_compiled_are_repeated(monkeypatch, data):
    fit, sizes = WithoutExactStep.fit, []

    def compiling_fit(model, rows, *arguments):
        sizes.append(rows.shape[0])
        COMPILATION.seconds += 0.5 * (len(sizes) < 3)  # the warm-up and the first fit of all rows
        return fit(model, rows, *arguments)

    words = ("compare", data, "--algorithms", "dcd")
    run(*words)  # compiles
    monkeypatch.setattr(WithoutExactStep, "fit", compiling_fit)
    monkeypatch.setattr(COMPILATION, "seconds", COMPILATION.seconds)
    rows = np.arange(180) % 60
    assert compare(X[rows], Y[rows], ["dcd"], random_state=0).compile_seconds == pytest.approx(1, abs=1e-12)
    assert sizes == [60, 180, 180]
    assert json.loads(run(*words, "--json").stdout)["compile_seconds"] == 0.0
    sizes.clear()
    assert "\n(the table leaves out 1.0 s of compilation for this machine, once" in run(*words).stdout
