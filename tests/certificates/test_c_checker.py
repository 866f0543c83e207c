"""checker/check.c and checker/check.py decide the same on true and on damaged certificates."""

from __future__ import annotations

import hashlib
import importlib.util
import json
import math
import shutil
import subprocess
import sys
import warnings
from pathlib import Path

import numpy as np
import pytest

from maxmargin import MaxMarginClassifier
from maxmargin.io.certificate_file import write_certificate

CHECKER = Path(__file__).parents[2] / "checker"
PROBLEMS, MUTATIONS = 40, 120
NORMS = 1.0, 2.0, math.inf, 3.0
LOSSES = "hinge", "squared_hinge", "hard"
INTERCEPTS = "none", "free", "augmented"
NAMES = "no", "ja", "2.50"


@pytest.fixture(scope="module")
def c_checker(tmp_path_factory):
    compiler = shutil.which("cc")
    if not (CHECKER / "check.c").exists():
        pytest.skip("the checker is not part of an installed package")
    if compiler is None:
        pytest.skip("no C compiler is installed")
    program = tmp_path_factory.mktemp("checker") / "check"
    options = ["-std=c99", "-O2", "-Wall", "-Wextra", "-o", str(program), str(CHECKER / "check.c")]
    built = subprocess.run([compiler, *options, "-lcrypto", "-lgmp", "-lm"], capture_output=True, text=True)
    for library, signs in {"GMP": ("gmp.h", "-lgmp"), "OpenSSL": ("openssl/evp.h", "-lcrypto")}.items():
        if any(sign in built.stderr for sign in signs):
            pytest.skip(f"{library} is not installed")
    assert (built.returncode, built.stderr) == (0, "")
    return program


@pytest.fixture(scope="module")
def python_status():
    """Return a function: the exit status of check.py, whose uncaught exceptions end with the status 1."""
    spec = importlib.util.spec_from_file_location("check", CHECKER / "check.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)

    def status(proof, data):
        try:
            module.check(str(proof), str(data))
        except (Exception, SystemExit):
            return 1
        return 0

    return status


def c_status(program, proof, data):
    done = subprocess.run([program, proof, data], capture_output=True, text=True)
    assert done.returncode in (0, 1, 3), (done.returncode, done.stderr)
    if done.returncode == 0:
        assert (done.stdout.splitlines()[-1], done.stderr) == ("VALID", "")
    else:
        assert done.stderr.startswith({1: "INVALID: ", 3: "UNSUPPORTED: "}[done.returncode])
    return done.returncode


def write_svmlight(path, X, y):
    """Write rows with comments, queries, a blank line, and each number of a class in one of its notations."""
    with path.open("w", encoding="utf-8") as file:
        file.write("# rows\n\n")
        for i, (x, label) in enumerate(zip(X, y, strict=True)):
            entries = " ".join(f"{j + 1}:{float(v)!r}" for j, v in enumerate(x) if v or i % 2)
            shown = label if isinstance(label, str) else (f"+{label}", f"{label}.0", f"{label}")[i % 3]
            file.write(f"{shown} qid:{i} {entries} # row {i}\n")


def example(folder, t):
    """Write the data and the certificate of problem number t, and return their paths."""
    rng = np.random.default_rng(t)
    n, d, k = int(rng.integers(6, 30)), int(rng.integers(1, 6)), 2 + (t % 5 == 0)
    X = rng.normal(size=(n, d)) * 10.0 ** rng.integers(-2, 3, d)
    X[rng.random(size=X.shape) < 0.1] = 0.0
    y = np.resize(np.arange(k), n)
    loss, p, intercept = LOSSES[t % 3], NORMS[t // 3 % 4], INTERCEPTS[(t + t // 12) % 3]
    if loss == "hard" and rng.random() < 0.7:
        X[:, 0] += 5 * y * abs(X[:, 0]).max()
    weights = rng.uniform(0.5, 2, n) if rng.random() < 0.5 else None
    labels = np.array(NAMES)[y] if rng.random() < 0.4 else y
    model = MaxMarginClassifier(
        loss="hinge" if loss == "hard" else loss,
        C=math.inf if loss == "hard" else float(10.0 ** rng.integers(-2, 4)),
        p=p,
        norm_power=1 if loss != "hard" and t % 4 == 1 else 2,
        intercept="free" if intercept == "none" else intercept,
        fit_intercept=intercept != "none",
        random_state=0,
        max_time=1.0,
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model.fit(X, labels, weights)
    proof, data = folder / f"{t}.json", folder / f"{t}.svm"
    write_svmlight(data, X, labels.tolist())
    write_certificate(proof, model, X, labels, weights)
    return proof, data


@pytest.fixture(scope="module")
def examples(tmp_path_factory):
    folder = tmp_path_factory.mktemp("certificates")
    return [example(folder, t) for t in range(PROBLEMS)]


def test_true_certificates_are_decided_as_by_the_checker_in_python(examples, c_checker, python_status):
    statuses = [c_status(c_checker, *files) for files in examples]
    for files, status in zip(examples, statuses, strict=True):
        assert python_status(*files) == 0
        parts = [json.loads(line) for line in files[0].read_text().splitlines()]
        p = {float.fromhex(part["p"]) for part in parts if "p" in part}
        assert status == 0 or (status == 3 and p == {3.0})
    assert statuses.count(0) >= PROBLEMS // 2


def test_both_checkers_print_the_problem_that_is_proved(examples, c_checker):
    printed = 0
    for files in examples[:16]:
        found, expected = (
            subprocess.run([*command, *files], capture_output=True, text=True)
            for command in ([c_checker], [sys.executable, "-I", CHECKER / "check.py"])
        )
        if found.returncode == 0:
            lines = expected.stdout.splitlines()
            assert found.stdout.splitlines() == lines[lines[0].startswith("rows") :]
            printed += 1
    assert printed >= 5


def moved(text, rng):
    """Return a number changed a little: by a unit in the last place, a sign, or a factor."""
    if "x" not in text:
        return "0x1.0000000000000p+0" if text == "inf" else text.replace("/", "0/", 1)
    x, kind = float.fromhex(text), rng.integers(4)
    return float((np.nextafter(x, math.inf), np.nextafter(x, -math.inf), -x, 2 * x)[kind]).hex()


def damaged(proof, data, rng, folder):
    """Write copies of which one is damaged in one place."""
    lines, text = [json.loads(line) for line in proof.read_text().splitlines()], data.read_bytes().decode()
    kind = ("dual", "weights", "w", "lower", "upper", "bound", "label", "digit", "line", "byte", "sha256")[
        rng.integers(11)
    ]
    part = lines[rng.choice([i for i, line in enumerate(lines) if "positive" in line])]
    if kind in ("dual", "weights", "w"):
        pairs = [pair for line in lines for pair in line.get(kind, ())]
        if pairs:
            pair = pairs[rng.integers(len(pairs))]
            pair[1] = moved(pair[1], rng)
    elif kind in ("lower", "upper"):  # one unit in the last place inward
        part[kind] = float(np.nextafter(float.fromhex(part[kind]), math.inf if kind == "lower" else 0)).hex()
    elif kind == "bound":
        name = ("C", "p", "scaling", "b", "upper")[rng.integers(5)]
        part[name] = ("0x1.8000000000000p+0", "2", "inf", "0x1.0000000000000p+0", "7/2")[rng.integers(5)]
    elif kind == "label":
        part["positive"] = ("0", "1", "no")[rng.integers(3)]
    elif kind == "digit":
        place = rng.choice([i for i, c in enumerate(text) if c.isdigit()])
        text = text[:place] + str(rng.integers(10)) + text[place + 1 :]
    elif kind == "line":
        del lines[rng.integers(len(lines))]
    elif kind == "sha256":
        lines[0]["sha256"] = lines[0]["sha256"][::-1]
    raw = "".join(json.dumps(line) + "\n" for line in lines)
    if kind == "byte":
        place = rng.integers(len(raw))
        raw = raw[:place] + ('"', "", "{", "\\", "9", "\n")[rng.integers(6)] + raw[place + 1 :]
    copies = folder / proof.name, folder / data.name
    copies[0].write_text(raw)
    copies[1].write_bytes(text.encode())
    return copies, kind


def test_damaged_certificates_are_decided_as_by_the_checker_in_python(
    examples, c_checker, python_status, tmp_path
):
    rng, refused = np.random.default_rng(0), 0
    for t in range(MUTATIONS):
        copies, kind = damaged(*examples[t % PROBLEMS], rng, tmp_path)
        found, expected = c_status(c_checker, *copies), python_status(*copies)
        assert found in (expected, 3), (t, kind, copies[0].read_text())
        refused += found == 1
    assert refused >= MUTATIONS // 3


def test_a_negative_bound_of_a_margin_is_refused(examples, c_checker, tmp_path):
    proof, data = examples[2]
    lines = [json.loads(line) for line in proof.read_text().splitlines()]
    lines[1] |= {"lower": "0x0.0p+0", "upper": "-0x1.0000000000000p+20"}
    (tmp_path / "proof.json").write_text("".join(json.dumps(line) + "\n" for line in lines))
    assert lines[1]["loss"] == "hard"
    assert c_status(c_checker, tmp_path / "proof.json", data) == 1


def test_a_lower_bound_of_a_margin_of_w_zero_is_refused(examples, c_checker, python_status, tmp_path):
    """Where all rows with a weight are of one class, w = 0 has positive margins."""
    lines = [json.loads(line) for line in examples[2][0].read_text().splitlines()]
    rows = [line.split()[0] for line in examples[2][1].read_text().splitlines() if line and line[0] != "#"]
    lines[1] |= {"intercept": "free", "b": (1.0).hex(), "lower": (1e300).hex(), "upper": "inf"}
    negative = [k for k, label in enumerate(rows, 1) if float(label) != float(lines[1]["positive"])]
    lines[2:] = [{"weights": [[k, (0.0).hex()] for k in negative]}, {"end": 3}]
    proof = tmp_path / "proof.json"
    proof.write_text("".join(json.dumps(line) + "\n" for line in lines))
    assert (python_status(proof, examples[2][1]), c_status(c_checker, proof, examples[2][1])) == (1, 1)


def test_compressed_data_are_not_supported(examples, c_checker):
    assert c_status(c_checker, examples[0][0], "data.svm.gz") == 3


def test_other_layouts_and_columns_that_descend_are_not_decided(examples, c_checker, python_status, tmp_path):
    proof, data = examples[0]
    compact, descending = tmp_path / "compact.json", tmp_path / "descending.svm"
    lines = map(json.loads, proof.read_text().splitlines())
    compact.write_text("".join(json.dumps(line, separators=(",", ":")) + "\n" for line in lines))
    rows = [line.split("#")[0].split() for line in data.read_text().splitlines()]
    descending.write_text("".join(" ".join([*row[:1], *reversed(row[1:])]) + "\n" for row in rows))
    for files in ((compact, data), (proof, descending)):
        assert (python_status(*files), c_status(c_checker, *files)) == (0, 3)


def test_delimited_text_is_not_supported(c_checker, python_status, tmp_path):
    X, y = np.array([[1.0], [-1.0]]), np.array([1, 0])
    model = MaxMarginClassifier().fit(X, y)
    model.source_ = {"label": "kind", "first_index": None}
    proof, data = tmp_path / "proof.json", tmp_path / "data.csv"
    data.write_text("kind,x\n1,1.0\n0,-1.0\n")
    write_certificate(proof, model, X, y, feature_names=["x"])
    assert (python_status(proof, data), c_status(c_checker, proof, data)) == (0, 3)


def test_names_of_columns_are_skipped(c_checker, python_status, tmp_path):
    X, y = np.array([[1.0, 2.0], [-1.0, 0.5]]), np.array([1, 0])
    proof, data = tmp_path / "proof.json", tmp_path / "data.svm"
    data.write_text("1 1:1 2:2\n0 1:-1 2:0.5\n")
    write_certificate(proof, MaxMarginClassifier().fit(X, y), X, y, feature_names=["x", "y"])
    assert (python_status(proof, data), c_status(c_checker, proof, data)) == (0, 0)


@pytest.mark.parametrize(("first", "columns"), [(-1e300, 1e308), (-math.inf, math.inf), (1.0, 2)])
def test_headers_with_numbers_that_are_not_whole_are_refused(
    c_checker, python_status, tmp_path, first, columns
):
    """Subtracted from the columns 1 and 2, such an index makes one of two, whose entries cancel."""
    proof, data = tmp_path / "proof.json", tmp_path / "data.svm"
    data.write_text("1 1:1\n-1 2:1\n")
    one, zero = (1.0).hex(), (0.0).hex()
    rows = "".join(f"{label} {j - first + 1}:{one}\n" for label, j in ((1, 1), (-1, 2)))
    header = {"format": "maxmargin certificate", "version": 1, "rows": 2, "columns": columns}
    header |= {"sha256": hashlib.sha256(rows.encode()).hexdigest(), "label": None, "names": None}
    part = {"positive": "1", "loss": "hard", "C": "inf", "p": (2.0).hex(), "power": 2, "intercept": "none"}
    part |= {"scaling": one, "b": zero, "lower": zero, "upper": one if columns == 2 else zero}
    lines = [header | {"first_index": first, "parts": 1}, part, {"dual": [[1, one], [2, one]]}, {"end": 3}]
    proof.write_text("".join(json.dumps(line) + "\n" for line in lines))
    assert (python_status(proof, data), c_status(c_checker, proof, data)) == (1, 3)


def test_stated_weights_of_one_are_not_counted(examples, c_checker, tmp_path):
    """Weights other than 1 are those of another value, however many the file states."""
    lines = [json.loads(line) for line in examples[2][0].read_text().splitlines()]
    lines = [line for line in lines if "weights" not in line][:2]
    lines[1] |= {"lower": (0.0).hex(), "upper": "inf"}
    lines += [{"weights": [[1, (1.0).hex()], [2, (2.0).hex()], [3, (1.0).hex()]]}, {"end": 3}]
    (tmp_path / "proof.json").write_text("".join(json.dumps(line) + "\n" for line in lines))
    for command in ([c_checker], [sys.executable, "-I", CHECKER / "check.py"]):
        files = tmp_path / "proof.json", examples[2][1]
        done = subprocess.run([*command, *files], capture_output=True, text=True)
        assert " 1 rows have weights other than 1, 0 of them 0" in done.stdout
