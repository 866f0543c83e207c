"""Streams equal naive streams row by row; the command keeps its model on interrupts and bad lines."""

from __future__ import annotations

import itertools
import json
import re
import signal
from functools import partial
from itertools import product

import numpy as np
import pytest
import scipy.sparse as sp
from command import refused, run
from effort import interpreted
from memory import with_peak_memory
from naive import once
from sklearn.datasets import load_svmlight_file

import maxmargin as mm
from maxmargin import OnlineMarginClassifier, Problem, load
from maxmargin.algorithms import ALGORITHMS, Facts
from maxmargin.fit.streaming import Stream, streams
from maxmargin.readers import svmlight

RUNS = [
    mm.Perceptron(b=0.37),
    mm.LocalPerceptron(b=0.37),
    mm.ALMA(alpha=0.37),
    mm.ALMA(alpha=0.37, normalise=True),
    mm.CRAMMA(beta=1.3, eta=0.211),
    mm.MICRA(beta=1.3, eta=0.87, epsilon=0.4, zeta=0.3),
    mm.FixedDirectionalMargin(beta=0.123, eta=0.211),
    mm.ROMMA(),
    mm.AggressiveROMMA(delta=0.17, halving=False),
    mm.PUMMA(delta=0.17, halving=False),
]
RHO = 0.5


def rows(seed, n=60):
    """Integer rows: some are zero, and the longest are last."""
    rng = np.random.default_rng(seed)
    y = np.where(rng.random(n) < 0.5, 1.0, -1.0)
    y[:4] = y[0]
    y[4] = -y[0]
    X = np.rint(2.0 * (rng.normal(size=(n, 4)) + 0.7 * y[:, None])) * (rng.random((n, 4)) < 0.8)
    X[[0, 1, 17]] = 0.0
    X[30:] *= 2.0
    return X, y


def test_runs_hold_every_streaming_rule_and_others_are_refused():
    assert {rule.name for rule in RUNS} == {name for name, cls in ALGORITHMS.items() if streams(cls)}
    for name, cls in ALGORITHMS.items():
        if not streams(cls):
            words = f"'{name}' cannot learn from a stream, which brings a pattern"
            with pytest.raises(ValueError, match=words):
                OnlineMarginClassifier(name).partial_fit([[1.0], [2.0]], [0, 1], classes=[0, 1])


def is_quick(rule, intercept, C, sparse) -> bool:
    """Select two opposite combinations of the eight for every rule; the next rule has two others."""
    k = RUNS.index(rule)
    same = sparse == (k % 2 == 0)
    return (intercept == same) and (np.isinf(C) == (same == (k % 4 < 2)))


@interpreted
@pytest.mark.parametrize(
    ("rule", "intercept", "C", "sparse"),
    [
        pytest.param(*combination, marks=() if is_quick(*combination) else pytest.mark.slow)
        for combination in product(RUNS, (True, False), (np.inf, 2.0), (False, True))
    ],
    ids=repr,
)
def test_updates_equal_those_of_the_naive_stream(rule, intercept, C, sparse):
    """Indices of updates, mistakes, the last weight (60 n eps = 1e-13); batches of one and of 11 rows; R grows."""
    if rule.name == "pumma" and not intercept:
        pytest.skip("PUMMA learns an intercept")
    store = sp.csr_matrix if sparse else np.asarray
    kind = Problem("squared_hinge", C, intercept="free" if intercept else "none")
    rho = RHO if intercept and rule.name != "pumma" else 0.0
    delta2 = 0.0 if kind.hard else 1.0 / (2.0 * C)

    def numbers(radius2):
        plan = rule.plan(Facts(kind, radius2, 0.1))
        return (plan.rule, *plan.then)[-1]

    n_updates = 0
    for seed in range(3):
        X, y = rows(seed)
        n, d = X.shape
        Y = y[:, None] * np.column_stack([X, np.full(n, rho)])
        naive = once(
            rule.name, np.column_stack([Y, np.sqrt(delta2) * np.eye(n)]) if delta2 else Y, y, numbers
        )
        if naive.nearest < 1e-9:
            continue
        options = {"C": C, "trail": "last", "fit_intercept": intercept, "intercept_scaling": RHO}
        model, whole = (OnlineMarginClassifier(rule, **options) for _ in range(2))
        moved = []
        for k in range(n):  # batches of one row show which row made an update
            before = model.updates_[0] if k else 0
            model.partial_fit(store(X[k : k + 1]), y[k : k + 1], classes=[-1.0, 1.0])
            moved += [k] * int(model.updates_[0] - before)
        assert moved == naive.moved
        assert model.mistakes_[0] == naive.mistakes
        np.testing.assert_allclose(model.coef_[0], naive.weights[:d], rtol=1e-12, atol=1e-12)
        bias = naive.bias if rule.name == "pumma" else rho * naive.weights[d]
        np.testing.assert_allclose(model.intercept_[0], bias, rtol=1e-12, atol=1e-12)
        n_updates += len(moved)
        for k in range(0, n, 11):
            whole.partial_fit(store(X[k : k + 11]), y[k : k + 11], classes=[-1.0, 1.0])
        assert np.array_equal(whole.coef_, model.coef_)
        assert whole.mistakes_[0] == naive.mistakes
    assert n_updates >= 10


# maxmargin fit --online

IN_ORDER = ("--shuffle-buffer", 0)


@pytest.fixture
def small_blocks(monkeypatch):
    monkeypatch.setattr(svmlight, "stream_svmlight", partial(svmlight.stream_svmlight, size=4000))


def text(n, classes):
    """Return random svmlight lines."""
    rng = np.random.default_rng(0)
    y = rng.integers(0, classes, n)
    columns = 1 + np.sort(rng.random((n, 30)).argsort(axis=1)[:, :5], axis=1)
    values = rng.random((n, 5)) + (columns % classes == y[:, None])
    lines = (
        f"{label} " + " ".join(f"{j}:{v:.3f}" for j, v in zip(row, line, strict=True))
        for label, row, line in zip(y.tolist(), columns.tolist(), values.tolist(), strict=True)
    )
    return "\n".join(lines) + "\n"


def partial_fit_on(path, n):
    X, y = load_svmlight_file(str(path), n_features=30)
    return OnlineMarginClassifier().partial_fit(X[:n], y[:n].astype(int), classes=np.unique(y).astype(int))


def test_interrupted_model_has_equal_rows_for_all_classes(tmp_path, small_blocks, monkeypatch):
    """SIGINT in a block, after the first of three classes."""
    data, out, calls, present = tmp_path / "rows.svm", tmp_path / "m", itertools.count(1), Stream.present

    def interrupted(stream, *task):
        if next(calls) == 8:
            signal.raise_signal(signal.SIGINT)
        present(stream, *task)

    monkeypatch.setattr(Stream, "present", interrupted)
    data.write_text(text(400, 3))
    done = run("fit", data, "-o", out, "--online", *IN_ORDER, "--n-features", 30, "--classes", "0,1,2")
    assert done.exit_code == 3, done.stderr
    assert "stopped before the end" in done.stdout
    model = load(out)
    n_rows = int(re.match(r"(\d+) rows", done.stdout)[1])
    assert 0 < n_rows < 400
    assert {stream.seen for stream in model._streams} == {n_rows}
    assert np.array_equal(model.coef_, partial_fit_on(data, n_rows).coef_)
    assert [int(stream.arrays["counts"].sum()) for stream in model._streams] == [n_rows] * 3


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("1 3:x", "line 401: the value of '3:x' is not a number"),
        ("1 3:1e200", "Squares of entries of X overflow: divide X by a large number"),
    ],
)
def test_model_of_the_rows_before_a_bad_line_is_written(line, message, tmp_path, small_blocks):
    data, out, good = (tmp_path / name for name in ("rows.svm", "m", "good.svm"))
    good.write_text(text(400, 2))
    data.write_text(text(400, 2) + line + "\n")
    done = run("fit", data, "-o", out, "--online", *IN_ORDER, "--json", "--n-features", 30)
    assert done.exit_code == 3
    facts = json.loads(done.stdout)
    assert 0 < facts["rows"] <= 400
    assert message in facts["stopped"]
    assert message in done.stderr
    assert done.stderr.rstrip().endswith(f"; the model was learnt from {facts['rows']} rows.")
    assert np.array_equal(load(out).coef_, partial_fit_on(good, facts["rows"]).coef_)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ("--algorithm cramma", "--algorithm cramma needs a rate, and the command line has no option for it"),
        ("--algorithm pumma --no-intercept", "pumma learns an intercept: leave out --no-intercept"),
    ],
)
def test_errors_name_command_line_options(options, message, tmp_path):
    data = tmp_path / "rows.svm"
    data.write_text(text(20, 2))
    assert message in refused("fit", data, "-o", tmp_path / "m", "--online", *options.split())
    assert not (tmp_path / "m").exists()


@pytest.mark.slow
def test_memory_does_not_grow_with_the_length_of_the_file(tmp_path, small_blocks):
    data, peaks = tmp_path / "rows.svm", []
    for copies in (1, 1, 8):  # the first compiles
        data.write_text(text(5_000, 3) * copies)
        words = ("fit", data, "-o", tmp_path / "m", "--online", "--trail", "vote", "--n-features", 30)
        words += ("--shuffle-buffer", "100KB")
        done, peak = with_peak_memory(lambda words=words: run(*words))
        assert done.exit_code == 0, done.stderr
        assert load(tmp_path / "m").n_seen_ == 5_000 * copies
        peaks.append(peak)
    assert peaks[2] < peaks[1] + 0.5 * data.stat().st_size
