"""maxmargin predict, check and report: what is written and printed about a model, and the exit codes."""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import replace
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
from command import X, Y, refused, run
from sklearn.datasets import dump_svmlight_file

from maxmargin import KernelMaxMarginClassifier, MaxMarginClassifier, OnlineMarginClassifier, load, save

CHECKER = Path(__file__).resolve().parents[2] / "checker" / "check.py"
THREE = np.digitize(X[:, 0], [-0.5, 0.5])


def test_labels_and_scores_are_those_of_the_model(model, data, tmp_path):
    fitted = load(model)
    labels, scores = fitted.predict(X), fitted.decision_function(X)
    result = run("predict", model, data)
    assert (result.exit_code, result.stdout.split("\n")) == (0, [*map(str, labels), ""])
    assert result.stderr == f"accuracy {np.mean(labels == Y):.6g} ({np.sum(labels == Y)} of 60 rows)\n"
    assert run("predict", model, data, "-o", tmp_path / "out").stdout == ""
    assert (tmp_path / "out").read_text() == result.stdout
    found = [
        json.loads(line) for line in run("predict", model, data, "--json", "--scores").stdout.splitlines()
    ]
    assert [one["label"] for one in found] == labels.tolist()
    assert np.allclose([one["score"] for one in found], scores, rtol=0.0, atol=1e-14)  # sums of four
    save(MaxMarginClassifier().fit(X, THREE), tmp_path / "m")  # a score for each of several classes
    label, *row = run("predict", tmp_path / "m", data, "--scores").stdout.splitlines()[0].split("\t")
    assert (len(row), int(label)) == (3, np.argmax([float(score) for score in row]))
    kernel = KernelMaxMarginClassifier(random_state=0).fit(X, Y)
    save(kernel, tmp_path / "m")
    found = [
        float(line.split()[1])
        for line in run("predict", tmp_path / "m", data, "--scores").stdout.splitlines()
    ]
    assert np.allclose(found, kernel.decision_function(X), rtol=0.0, atol=1e-12)


def test_the_first_index_of_the_fit_and_unknown_labels(tmp_path):
    new, model = tmp_path / "new", tmp_path / "m"
    dump_svmlight_file(X, Y, str(new), zero_based=True)
    run("fit", new, "-o", model)
    new.write_text("0 1:1 2:1\n0 1:1 2:1\n")  # indices count from 0 here as well
    result = run("predict", model, new, "--scores")
    expected = load(model).decision_function([[0.0, 1.0, 1.0, 0.0]])[0]
    assert float(result.stdout.split()[1]) == pytest.approx(expected, rel=0.0, abs=1e-14)
    assert result.stderr.startswith("accuracy unknown")


def test_folders_are_read_in_passes_by_names_of_columns(folder, tmp_path):
    path, X, y = folder
    model, other = tmp_path / "model", tmp_path / "other"
    assert run("fit", path, "-o", model).exit_code == 0
    fitted = load(model)
    del fitted.feature_names_in_  # X is no table
    found = run("predict", model, path)
    assert found.stdout.split() == fitted.predict(X).tolist()
    assert found.stderr.startswith(f"accuracy {fitted.score(X, y):.6g} (")
    other.mkdir()
    lines = [",".join([name, *map(str, row)]) for row, name in zip(X[:, ::-1].tolist(), y, strict=True)]
    (other / "rows.csv").write_text("\n".join(["label,e,d,c,b,a", *lines]) + "\n")
    for rows in (path, other, other / "rows.csv"):
        assert run("check", model, rows).exit_code == 0
        assert run("predict", model, rows).stdout == found.stdout
    (other / "rows.csv").write_text("\n".join(["label,e,d,c,b,a", *lines[1:], lines[1]]) + "\n")
    assert "other data" in refused("check", model, other)
    bare = [",".join(map(str, row)) for row in X[:, [1, 0, 2, 4, 3]].tolist()]
    (other / "rows.csv").write_text("\n".join(["b,a,c,e,d", *bare]) + "\n")  # without labels
    assert run("predict", model, other)[:3] == (0, found.stdout, "")


def test_models_without_a_certificate_of_these_data_are_refused(folder, tmp_path):
    path, X, y = folder
    for fitted, words in (
        (KernelMaxMarginClassifier().fit(X[:100], y[:100]), "other data"),
        (OnlineMarginClassifier().fit(X, y), "no certificate"),
    ):
        save(fitted, tmp_path / "model")
        assert words in refused("check", tmp_path / "model", path)


def test_faults_leave_the_output_as_it_was(model, data, tmp_path):
    out, text = tmp_path / "out", data.read_text()
    out.write_text("old")
    for line, words in (
        ("1 5:1\n", "line 61: '5:1' is no entry"),
        ("1 1:x\n", "line 61: '1:x' is no entry"),
    ):
        data.write_text(text + line)
        assert words in refused("predict", model, data, "-o", out)
        assert out.read_text() == "old"
        assert {path.name for path in tmp_path.iterdir()} == {model.name, data.name, "out"}


def test_bounds_are_recomputed_from_the_data(model, data):
    result = run("check", model, data)
    assert result.exit_code == 0
    assert result.stdout.startswith("verified: recomputed from the 60 rows")
    assert json.loads(run("check", model, data, "--json").stdout)["verified"] is True


@pytest.mark.parametrize(("bound", "lower", "upper"), [("lower", 1.01, 1.02), ("upper", 0.98, 0.99)])
def test_the_bound_that_fails_is_named(model, data, bound, lower, upper):
    fitted = load(model)
    old = fitted.certificate_
    fitted.certificate_ = replace(old, lower=old.lower * lower, upper=old.upper * upper)
    save(fitted, model)
    assert f"the {bound} bound fails" in refused("check", model, data)
    assert json.loads(run("check", model, data, "--json").stdout)["verified"] is False


@pytest.mark.skipif(not CHECKER.exists(), reason="the checker is not part of an installed package")
@pytest.mark.parametrize("kind", ["data", "table"])
def test_proofs_are_valid_for_the_checker(kind, request, tmp_path):
    data, model, proof = request.getfixturevalue(kind), tmp_path / "m", tmp_path / "proof.json"
    assert run("fit", data, "-o", model, "--seed", 0).exit_code == 0
    found = json.loads(run("check", model, data, "--proof", proof, "--json").stdout)
    ((lower, upper),) = found["exact_bounds"]
    assert 0.0 < lower <= upper
    done = subprocess.run([sys.executable, "-I", CHECKER, proof, data], capture_output=True, text=True)
    assert done.stdout.endswith("VALID\n")
    assert f"{lower:.17g} <= best objective <= {upper:.17g}" in done.stdout
    before = data.read_bytes()
    refused("check", model, data, "--proof", data)
    assert data.read_bytes() == before


def test_hard_margins_print_and_recheck_the_proof(tmp_path):
    square, model = tmp_path / "square.csv", tmp_path / "model"
    square.write_text("a,b,same\n0,0,yes\n1,1,yes\n0,1,no\n1,0,no\n")
    proof = run("separate", square).stdout.partition("     row")[2]
    for words in (("fit", square, "--C", "inf", "-o", model), ("check", model, square)):
        result = run(*words)
        assert result.exit_code == 3
        assert result.stdout.startswith("INSEPARABLE in " if words[0] == "fit" else "verified: ")
        assert proof in result.stdout
    (verdict,) = json.loads(run("check", model, square, "--json").stdout)["verdicts"]
    assert [(row["row"], row["exact"]) for row in verdict["proof"]] == [(k, "1/4") for k in range(1, 5)]
    false = load(model)
    false.verdict_ = replace(false.verdict_, weights=(*false.verdict_.weights[:2], *[Fraction(1, 8)] * 2))
    save(false, tmp_path / "false")
    assert "the proof fails" in refused("check", tmp_path / "false", square)
