"""maxmargin certificate: files that the checker accepts with the data of the fit, of svmlight text and of a table."""

from __future__ import annotations

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
