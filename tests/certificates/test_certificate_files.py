"""Certificate files: the checker, which imports nothing of the package, accepts what is written, not what is false."""

from __future__ import annotations

import csv
import gzip
import hashlib
import json
import math
import subprocess
import sys
from copy import copy
from dataclasses import replace
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp
from effort import examples, thorough

from maxmargin import (
    CertificateError,
    KernelMaxMarginClassifier,
    MaxMarginClassifier,
    separate,
    write_certificate,
)

CHECKER = Path(__file__).resolve().parents[2] / "checker" / "check.py"
pytestmark = pytest.mark.skipif(
    not CHECKER.exists(), reason="the checker is not part of an installed package"
)


def checked(proof, data):
    """Run the checker in a process of its own; return its exit code and its last line."""
    done = subprocess.run(
        [sys.executable, "-I", str(CHECKER), str(proof), str(data)], capture_output=True, text=True
    )
    return done.returncode, (done.stdout + done.stderr).strip().splitlines()[-1]


def write_rows(path, X, labels):
    """Write svmlight text."""
    X = X.toarray() if sp.issparse(X) else X
    with open(path, "w", encoding="utf-8") as file:
        for row, label in zip(X.tolist(), labels, strict=True):
            file.write(f"{label} " + " ".join(f"{j}:{x!r}" for j, x in enumerate(row, 1) if x) + "\n")


def problem(seed):
    """Return rows, labels, weights or None, and parameters: every kind of problem in turn."""
    rng = np.random.default_rng(seed)
    n, d, k = int(rng.integers(6, 40)), int(rng.integers(1, 6)), 2 + (seed % 5 == 0)
    X, y = rng.normal(size=(n, d)) * 10.0 ** rng.integers(-2, 3, d), np.resize(np.arange(k), n)
    hard = seed % 3 == 0
    if hard and seed % 2:  # separable
        X[:, 0] += 6.0 * y * np.abs(X[:, 0]).max()
    parameters = {
        "C": np.inf if hard else float(10.0 ** rng.integers(-2, 4)),
        "loss": ("hinge", "squared_hinge")[seed % 2],
        "p": (1.0, 1.5, 2.0, 3.0, np.inf)[seed % 5],
        "norm_power": 1 + int(hard or rng.random() < 0.7),
    }
    parameters |= ({"fit_intercept": False}, {}, {"intercept_scaling": 0.3})[seed % 4 % 3]
    return X, y, rng.uniform(0.5, 2.0, n) if seed % 2 else None, parameters


def written(tmp_path, seed):
    """Fit a problem, and write its certificate and its data; return the paths, the model and the bounds."""
    X, y, weights, parameters = problem(seed)
    model = MaxMarginClassifier(random_state=0, max_time=10.0, **parameters).fit(X, y, weights)
    proof, data = tmp_path / "proof.json", tmp_path / "data.svm"
    bounds = write_certificate(proof, model, X, y, weights)
    write_rows(data, X, y)
    return proof, data, model, bounds


@thorough
def test_certificates_of_all_kinds_are_valid_with_the_bounds_of_the_fit(tmp_path):
    for seed in range(examples(20, 300)):
        proof, data, model, bounds = written(tmp_path, seed)
        assert checked(proof, data) == (0, "VALID"), seed
        for (lower, upper), part in zip(bounds, model.certificate_.certificates, strict=True):
            assert lower >= part.lower * (1.0 - 1e-9) or lower == 0.0 == upper
            assert upper <= part.upper * (1.0 + 1e-9)


@thorough
def test_changed_certificates_are_refused_unless_the_statement_stays_true(tmp_path):
    """Bounds that are tighter by a part in 1e6 are false for these numbers."""
    rng, refused, trials = np.random.default_rng(0), 0, examples(30, 1000)
    for trial in range(trials):
        if trial % 5 == 0:
            proof, data, _, _ = written(tmp_path, trial // 5)
            lines, rows = proof.read_text().splitlines(), data.read_text().splitlines()
        heads = [k for k, line in enumerate(lines) if "positive" in json.loads(line)]
        kind, k = ("lower", "upper", "label", "data", "end")[trial % 5], int(rng.choice(heads))
        head, new, changed = json.loads(lines[k]), [*lines], [*rows]
        i = int(rng.integers(len(rows)))
        if kind in ("lower", "upper"):
            value = float.fromhex(head[kind])
            if value == 0.0 or np.isinf(value):  # states nothing, or cannot be tighter
                refused += 1
                continue
            inward = 1.0 + 1e-6 if kind == "lower" else 1.0 - 1e-6
            new[k] = json.dumps(head | {kind: (inward * value).hex()})
        elif kind == "label":
            changed[i] = "7" + rows[i][1:]
        elif kind == "data":
            _, entry = rows[i].split()[1].split(":")
            changed[i] = rows[i].replace(entry, repr(float(np.nextafter(float(entry), np.inf))))
        else:
            del new[k + 1]
        (tmp_path / "other.json").write_text("\n".join(new) + "\n")
        (tmp_path / "other.svm").write_text("\n".join(changed) + "\n")
        code, said = checked(tmp_path / "other.json", tmp_path / "other.svm")
        assert (code, said[:8]) == (1, "INVALID:"), (trial, kind)
        refused += 1
    assert refused == trials


def test_a_changed_dual_variable_is_refused_or_proves_the_same_bound(tmp_path):
    """Hinge at p = 2: the value of the changed dual variables, in rational numbers, decides."""
    rng = np.random.default_rng(1)
    X, y = rng.normal(size=(30, 3)), np.resize([0, 1], 30)
    model = MaxMarginClassifier(loss="hinge", fit_intercept=False, random_state=0).fit(X, y)
    proof, data, other = tmp_path / "proof.json", tmp_path / "data.svm", tmp_path / "other.json"
    ((lower, _),) = write_certificate(proof, model, X, y)
    write_rows(data, X, y)
    lines, signs = proof.read_text().splitlines(), [2 * label - 1 for label in y.tolist()]
    k = next(k for k, line in enumerate(lines) if "dual" in json.loads(line))
    rows, outcomes = [[Fraction(x) for x in row] for row in X.tolist()], set()
    for trial in range(20):
        pairs = json.loads(lines[k])["dual"]
        i = trial % len(pairs)
        pairs[i][1] = (float.fromhex(pairs[i][1]) * (1.0 + (-1.0) ** trial * 10.0 ** -(trial % 17))).hex()
        alpha = {place - 1: Fraction(float.fromhex(text)) for place, text in pairs}
        v = [sum((a * signs[r] * rows[r][j] for r, a in alpha.items()), Fraction()) for j in range(3)]
        value = sum(alpha.values()) - sum(x * x for x in v) / 2
        true = value >= Fraction(lower) and all(0 <= a <= 1 for a in alpha.values())
        other.write_text("\n".join([*lines[:k], json.dumps({"dual": pairs}), *lines[k + 1 :]]) + "\n")
        assert (checked(other, data)[0] == 0) == true, trial
        outcomes.add(true)
    assert False in outcomes


def test_delimited_text_is_checked_by_the_names_of_its_columns(tmp_path):
    rng = np.random.default_rng(2)
    X, y = rng.normal(size=(30, 2)), np.resize(["no", "yes"], 30)
    model = MaxMarginClassifier(random_state=0).fit(X, y)
    model.source_ = {"label": "class", "first_index": None}
    write_certificate(tmp_path / "proof.json", model, X, y, feature_names=["a", "b"])
    with open(tmp_path / "data.csv", "w", newline="") as file:
        csv.writer(file).writerows(
            [
                ["b", "class", "a"],
                *([row[1], label, row[0]] for row, label in zip(X.tolist(), y, strict=True)),
            ]
        )
    assert checked(tmp_path / "proof.json", tmp_path / "data.csv") == (0, "VALID")


def test_false_dual_variables_are_refused(tmp_path):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(40, 3))
    y = np.where(X[:, 0] + 0.5 * rng.normal(size=40) > 0.0, 1, -1)
    X[0, 1] = 1e30
    model = MaxMarginClassifier(loss="hinge", random_state=0).fit(X, y)
    true = model.certificate_
    for changes in ({"support": np.array([0]), "dual": np.array([1.0])}, {"dual": true.dual + 2.0}):
        model.certificate_ = replace(true, **changes)
        with pytest.raises(CertificateError, match="lower bound fails"):
            write_certificate(tmp_path / "proof.json", model, X, y)
    assert not (tmp_path / "proof.json").exists()


def test_false_proofs_that_there_is_no_separator_are_refused(tmp_path):
    X, y = np.array([[0.0], [1.0], [2.0]]), np.array([0, 1, 0])
    model = MaxMarginClassifier(np.inf, random_state=0).fit(X, y)
    for changes in ({"support": np.array([0, 1, 7])}, {"weights": (Fraction(1, 3),) * 3}):
        proof, model.verdict_ = model.verdict_, replace(model.verdict_, **changes)
        with pytest.raises(CertificateError, match="proof fails"):
            write_certificate(tmp_path / "proof.json", model, X, y)
        model.verdict_ = proof


def test_proofs_about_other_problems_and_rows_of_weight_zero_are_refused(tmp_path):
    X, y = np.array([[0.0], [1.0], [2.0], [0.0], [0.0]]), np.array([0, 1, 0, 1, 0])
    weights = np.array([1.0, 1.0, 1.0, 0.0, 1.0])
    hard = {p: MaxMarginClassifier(np.inf, p=p, random_state=0).fit(X, y, weights) for p in (1, 2)}
    origin = MaxMarginClassifier(np.inf, fit_intercept=False, random_state=0).fit(X, y, weights)
    soft = MaxMarginClassifier(random_state=0).fit(X, y, weights)
    zero = separate(X[[0, 3]], y[[0, 3]])
    zero = replace(zero, support=np.array([0, 3]), rows=5)
    assert zero.verify(X, y) is zero
    for model, verdict, words in (
        (hard[2], zero, "row of weight 0"),
        (hard[2], hard[1].verdict_, "another problem"),
        (hard[2], origin.verdict_, "another problem"),
        (soft, hard[2].verdict_, "another problem"),
        (hard[2], {1: hard[2].verdict_}, "no class of the model"),
    ):
        model = copy(model)
        model.verdict_ = verdict
        with pytest.raises(CertificateError, match=words):
            write_certificate(tmp_path / "proof.json", model, X, y, weights)


def test_inseparable_data_have_an_upper_bound_of_zero(tmp_path):
    X, y = np.array([[0.0], [1.0], [2.0]]), np.array([0, 1, 0])
    model = MaxMarginClassifier(np.inf, random_state=0).fit(X, y)
    assert write_certificate(tmp_path / "proof.json", model, X, y) == [(0.0, 0.0)]
    write_rows(tmp_path / "data.svm", X, y)
    assert checked(tmp_path / "proof.json", tmp_path / "data.svm") == (0, "VALID")


def test_other_data_and_kernel_models_are_refused_and_no_file_is_left(tmp_path):
    X, y = np.random.default_rng(3).normal(size=(30, 2)), np.resize([0, 1], 30)
    proof = tmp_path / "proof.json"
    model = MaxMarginClassifier(random_state=0).fit(X, y)
    with pytest.raises(CertificateError, match="give the data of the fit"):
        write_certificate(proof, model, X + 1.0, y)
    with pytest.raises(CertificateError, match="`verify` checks kernel models"):
        write_certificate(proof, KernelMaxMarginClassifier(random_state=0).fit(X, y), X, y)
    assert not proof.exists()


def small_certificate(folder, weights=None):
    """Write a certificate and a table of the columns a, b and class, with one column more; return their paths."""
    X, y = np.array([[0.0, 1.0], [1.0, 0.0], [2.0, 2.0], [3.0, 1.0]]), np.array(["no", "no", "yes", "yes"])
    model = MaxMarginClassifier(random_state=0).fit(X, y, weights)
    proof, data = folder / "proof.json", folder / "data.csv"
    write_certificate(proof, model, X, y, weights, feature_names=["a", "b"], label="class")
    rows = [f"{label},7,{a},{b}" for label, (a, b) in zip(y, X.tolist(), strict=True)]
    data.write_text("\n".join(["class,other,a,b", *rows]) + "\n")
    return proof, data


def run_checker(*arguments):
    command = [sys.executable, "-I", str(CHECKER), *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True)


def test_the_checker_says_when_it_was_called_wrongly_or_a_file_cannot_be_read(tmp_path):
    proof, data = small_certificate(tmp_path)
    (tmp_path / "text").write_text("1 1:0.5\n")
    (tmp_path / "object").write_text('{"format": "other"}\n')
    (tmp_path / "empty").write_text("")
    (tmp_path / "bytes").write_bytes(b"\x93NUMPY\xff")
    (tmp_path / "text.gz").write_text("1 1:0.5\n")
    (tmp_path / "list").write_text("[1]\n")
    compressed = bytearray(gzip.compress(data.read_bytes()))
    compressed[12:16] = b"\xff" * 4
    (tmp_path / "damaged.gz").write_bytes(compressed)
    (tmp_path / "wide.csv").write_text(
        f"{data.read_text()}yes,7,{'1' * 200_000},0\n"
    )  # beyond the limit of a field
    for arguments in [(), (proof,), (proof, data, data)]:
        done = run_checker(*arguments)
        assert (done.returncode, done.stderr) == (2, "usage: check.py proof.json data\n")
    unreadable = [(tmp_path / name, data) for name in ("text", "object", "list", "empty", "bytes", "none")]
    broken = ("bytes", "none", "text.gz", "damaged.gz", "wide.csv")
    for files in [*unreadable, *((proof, tmp_path / name) for name in broken)]:
        done = run_checker(*files)
        assert (done.returncode, done.stderr[:12]) == (2, "UNREADABLE: "), files
    data.write_text(data.read_text().replace("class", "kind"))
    done = run_checker(proof, data)
    assert done.returncode == 1
    assert "INVALID: the data have no column 'class'" in done.stderr


def test_the_checker_prints_weights_and_the_columns_that_it_read(tmp_path):
    text = run_checker(*small_certificate(tmp_path)).stdout
    assert "label 'class', names ['a', 'b']" in text
    assert " 0 rows have weights other than 1" in text
    text = run_checker(*small_certificate(tmp_path, np.array([0.0, 1.0, 2.0, 1.0]))).stdout
    assert " 2 rows have weights other than 1, 1 of them 0" in text


def test_names_that_the_terminal_does_not_have_are_printed_with_escapes(tmp_path, monkeypatch):
    monkeypatch.setenv("PYTHONIOENCODING", "ascii")
    X, y = np.array([[1.0], [-1.0]]), np.array(["\u65e5", "\u6708"])
    write_rows(tmp_path / "data.svm", X, y)
    write_certificate(tmp_path / "proof.json", MaxMarginClassifier().fit(X, y), X, y)
    files = [tmp_path / "proof.json", tmp_path / "data.svm"]
    done = subprocess.run([sys.executable, CHECKER, *files], capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")
    assert r"class '\u6708'" in done.stdout


@pytest.mark.parametrize(
    "options",
    [
        {"feature_names": ["a"]},
        {"feature_names": ["a", "a"]},
        {"feature_names": ["a", "class"], "label": "class"},
        {"label": "class"},
        {"first_index": 2},
        {"first_index": -1},
    ],
)
def test_columns_that_no_checker_could_find_are_refused(tmp_path, options):
    X, y = np.array([[0.0, 1.0], [1.0, 0.0]]), np.array([0, 1])
    model = MaxMarginClassifier(random_state=0).fit(X, y)
    with pytest.raises(ValueError, match=r"feature_names|first_index"):
        write_certificate(tmp_path / "proof.json", model, X, y, **options)
    assert not (tmp_path / "proof.json").exists()


FALSE = [
    ("hinge", "1.9", "inf", [[1.5, "1"], [1.25, "1"]]),  # rows between rows
    ("hinge", "0x1.0000000000000p-2", "inf", [[1, "1"], [1, "1"]]),  # a row twice
    ("hinge", "0", "-0x1.0000000000000p+20", []),
    ("hard", "1", "-1", [[1, "1/2"], [2, "1/2"]]),
    ("hard", "0", "0", [[1.5, "1"]]),
    ("hard", "0", "1e-400000000", [[1, "1"], [2, "1"]]),  # a form of numbers that takes long to read
    ("hinge", "0x1.0000000000000p-1", "inf", [[1, "2"], [2, "2"]]),  # above the caps
    ("hinge", "0x1.0000000000000p-2", "inf", [[1, "1/2"]]),  # not balanced
]


@pytest.mark.parametrize(("loss", "lower", "upper", "dual"), FALSE)
def test_false_statements_about_two_rows_are_refused(tmp_path, loss, lower, upper, dual):
    """Rows 1 and -1: the objective is at least 1/2, the margin is 1."""
    data, part = two_rows(tmp_path, [1.0], [-1.0])
    part |= {"loss": loss, "C": "1" if loss == "hinge" else "inf", "lower": lower, "upper": upper}
    w, true = {"w": [[1, "1"]]}, {"lower": "0x1.0000000000000p-1" if loss == "hinge" else "1", "upper": "1"}
    assert outcome(data, part | true, w, {"dual": [[1, "1/2"], [2, "1/2"]]}) == 0
    assert outcome(data, part, w, {"dual": dual}) == 1


def two_rows(folder, positive, negative):
    """Write a row of the class 1 and one of the class -1; return the path, and facts of a hard margin on them."""
    (folder / "data.svm").write_text(
        "".join(
            f"{label} " + " ".join(f"{j}:{x!r}" for j, x in enumerate(row, 1)) + "\n"
            for label, row in ((1, positive), (-1, negative))
        )
    )
    part = {
        "positive": "1",
        "loss": "hard",
        "C": "inf",
        "p": "2",
        "power": 2,
        "intercept": "free",
        "scaling": "1",
    }
    return folder / "data.svm", part | {"b": "0", "lower": "0", "upper": "inf"}


def outcome(data, part, *numbers):
    """Write a certificate of two rows, of its facts and lines of numbers; return the exit code of the checker."""
    rows = [line.split() for line in data.read_text().splitlines()]
    texts = [
        " ".join([row[0], *(f"{j}:{float(x).hex()}" for j, x in (pair.split(":") for pair in row[1:]))])
        for row in rows
    ]
    digest = hashlib.sha256("".join(f"{text}\n" for text in texts).encode()).hexdigest()
    head = {
        "format": "maxmargin certificate",
        "version": 1,
        "rows": 2,
        "columns": len(rows[0]) - 1,
        "sha256": digest,
    }
    head |= {"label": None, "names": None, "first_index": 1, "parts": 1}
    lines = [head, part, *numbers, {"end": 2 + len(numbers)}]
    proof = data.with_name("proof.json")
    proof.write_text("".join(json.dumps(line) + "\n" for line in lines))
    return checked(proof, data)[0]


def test_bounds_in_norms_of_huge_exponents_are_refused_where_digits_end(tmp_path):
    """|v|_p is 2^(1/p) m, and upper sum(alpha) is m + 1: a bound that is not proved, by a part in 1e70.

    m^2 and (m + 1)^2, in units of 2^-1074, lie on both sides of the middle of two numbers of 60 digits.
    """
    data, part = two_rows(tmp_path, [1.0, 1.0], [-0.5, -0.5])
    part |= {"intercept": "none", "p": (1e70).hex(), "upper": "1"}
    for k in range(8):
        middle = (2 * (10**59 + 7919 * k) + 1) * 10**741 // 2
        m = math.isqrt(middle) >> 1074
        assert 0.69 * m > 1e70  # (2^(1/p) - 1) m > 1, as ln 2 / p is above 0.69 / p
        assert outcome(data, part, {"dual": [[1, str(m - 1)], [2, "2"]]}) == 1
        assert outcome(data, part, {"dual": [[1, str(m)], [2, str(m)]]}) == 0


def test_a_lower_bound_of_a_margin_needs_weights(tmp_path):
    """Where all rows with a weight are of one class, every intercept is a margin of w = 0, which has no length."""
    data, part = two_rows(tmp_path, [1.0], [2.0])
    weights = {"weights": [[2, "0"]]}
    assert outcome(data, part | {"b": "1", "lower": "1"}, weights) == 1
    assert outcome(data, part | {"b": "1", "lower": "1"}, {"w": [[1, "1"]]}, weights) == 0
