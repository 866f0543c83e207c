"""maxmargin certificate: files that the checker accepts with the data of the fit, of svmlight text and of a table."""

from __future__ import annotations

import gzip
import json
import subprocess
import sys
from pathlib import Path

import pytest
from command import refused, run

CHECKER = Path(__file__).resolve().parents[2] / "checker" / "check.py"


@pytest.mark.skipif(not CHECKER.exists(), reason="the checker is not part of an installed package")
@pytest.mark.parametrize("kind", ["data", "table"])
def test_certificates_of_the_command_are_valid(kind, request, tmp_path):
    data = request.getfixturevalue(kind)
    model = request.getfixturevalue({"data": "model", "table": "table_model"}[kind])
    proof = tmp_path / "proof.json"
    found = json.loads(run("certificate", model, data, "-o", proof, "--json").stdout)
    ((lower, upper),) = found["bounds"].values()
    assert 0.0 < lower <= upper
    done = subprocess.run([sys.executable, "-I", CHECKER, proof, data], capture_output=True, text=True)
    assert done.stdout.endswith("VALID\n")
    assert f"{lower:.17g} <= best objective <= {upper:.17g}" in done.stdout


def test_the_certificate_may_not_replace_the_data(model, data):
    before = data.read_bytes()
    refused("certificate", model, data, "-o", data)
    assert data.read_bytes() == before


def copied(data, path, change):
    path.write_text(change(data.read_text()))
    return path


@pytest.mark.parametrize(
    ("name", "change", "options", "readable"),
    [
        ("rows.csv", lambda text: text, (), True),
        ("rows.csv", lambda text: text.replace(",", ";"), (), True),
        ("rows.csv", lambda text: text.replace(",", "|"), ("--delimiter", "|"), False),
        ("rows.csv", lambda text: text.split("\n", 1)[1], ("--no-header",), False),
    ],
)
def test_tables_that_the_checker_cannot_read_are_named(table, tmp_path, name, change, options, readable):
    data, model, proof = (
        copied(table, tmp_path / name, change),
        tmp_path / "m.safetensors",
        tmp_path / "proof.json",
    )
    assert run("fit", data, "-o", model, "--seed", 0, *options).exit_code == 0
    said = run("certificate", model, data, "-o", proof).stdout
    assert ("check.py reads svmlight and delimited text" in said) == (not readable)
    if CHECKER.exists():
        done = subprocess.run([sys.executable, "-I", CHECKER, proof, data], capture_output=True, text=True)
        assert (done.returncode == 0) == readable


def test_compressed_rows_that_the_checker_cannot_read_are_named(model, data, tmp_path):
    for suffix in (".gz", ".GZ"):
        rows = tmp_path / f"rows.svm{suffix}"
        rows.write_bytes(gzip.compress(data.read_bytes()))
        said = run("certificate", model, rows, "-o", tmp_path / "proof.json").stdout
        assert ("check.py reads" in said) == (suffix == ".GZ")
