"""checker/lean/WeakDuality.lean: the proofs of docs/explanation/exact_checks.md that Lean 4 has checked."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import pytest

FILE = Path(__file__).parents[2] / "checker" / "lean" / "WeakDuality.lean"
OWN_AXIOMS = {"propext", "Classical.choice", "Quot.sound"}  # of Lean itself
OLDEST = 4, 28  # the version in which the proofs were written


@pytest.fixture(scope="module")
def text():
    if not FILE.exists():
        pytest.skip("the checker is not part of an installed package")
    return FILE.read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def theorems(text):
    return re.findall(r"^theorem (\w+)", text, re.MULTILINE)


@pytest.fixture(scope="module")
def output(text, theorems, tmp_path_factory):
    """Return what Lean prints about the file, with the axioms of each theorem at its end."""
    lean = shutil.which("lean")
    if lean is None:
        pytest.skip("lean is not on the path")
    version = subprocess.run([lean, "--version"], capture_output=True, text=True).stdout
    found = re.search(r"version (\d+)\.(\d+)", version)
    if found is None or (int(found[1]), int(found[2])) < OLDEST:
        pytest.skip(
            f"needs Lean {OLDEST[0]}.{OLDEST[1]} or later, not {version.strip() or 'a lean without version'}"
        )
    path = tmp_path_factory.mktemp("lean") / FILE.name
    axioms = "".join(f"#print axioms MaxMargin.{name}\n" for name in theorems)
    path.write_text(text + axioms, encoding="utf-8")
    run = subprocess.run([lean, path.name], cwd=path.parent, capture_output=True, text=True, encoding="utf-8")
    return run.stdout + run.stderr


def test_nothing_is_left_open_or_assumed(text):
    assert (
        re.findall(r"\b(sorry|admit|axiom|opaque|unsafe|native_decide|implemented_by|extern)\b", text) == []
    )


def test_every_theorem_stands_in_the_file_once(theorems):
    assert len(theorems) == len({*theorems})
    assert {"holder_two", "gordan", "lower_two_sound", "hard_upper_sound", "check_sound"} <= {*theorems}


def test_lean_accepts_every_proof(output):
    others = [line for line in output.splitlines() if "cannot use `#print axioms` in a `module`" not in line]
    assert [line for line in others if re.search(r"\b(error|sorry|sorryAx)\b", line)] == []


def test_theorems_depend_on_the_axioms_of_lean_alone(output, theorems):
    if "cannot use `#print axioms` in a `module`" in output:
        pytest.skip("this build of Lean imports the core without proofs, and prints no axioms")
    stated = re.findall(
        r"'MaxMargin\.(\w+)' (?:does not depend on any|depends on) axioms(?:: \[([^\]]*)\])?", output
    )
    assert {name for name, _ in stated} == {*theorems}
    assert {axiom.strip() for _, axioms in stated for axiom in axioms.split(",")} - {""} <= OWN_AXIOMS
