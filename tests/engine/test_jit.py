"""Compilation: signatures of methods, allocation, the cache on disk, and agreement with interpreted code."""

from __future__ import annotations

import ast
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any, NamedTuple

import numba
import numpy as np
import pytest
import replay
from compiled_functions import all_compiled
from numba.core.errors import NumbaError
from presenting import ONE_BY_ONE, plan, start

import maxmargin.engine
from maxmargin import Problem
from maxmargin.algorithms import ALGORITHMS
from maxmargin.engine.jit import compiled, record
from maxmargin.engine.sweep import repeat

REPLAY = Path(replay.__file__)
SOURCE = Path(maxmargin.__file__).resolve().parent

needs_jit = pytest.mark.skipif(bool(numba.config.DISABLE_JIT), reason="interpreted: nothing is compiled")


# methods of records


def test_method_with_a_second_signature_is_refused():
    with pytest.raises(
        TypeError, match=r"SecondSignature\.score\(self, i, j\): elsewhere it is score\(self, i\)"
    ):

        @record
        class SecondSignature(NamedTuple):
            a: Any

            def score(self, i, j):
                return self.a


def test_method_with_the_same_signature_is_accepted():
    @record
    class SameSignature(NamedTuple):
        a: float

        def threshold(self, h):
            return self.a

    assert SameSignature(2.0).threshold(None) == 2.0


# imports of numba


def imported(file: Path) -> set[str]:
    """Top-level names of everything that a file imports."""
    names = set()
    for node in ast.walk(ast.parse(file.read_text())):
        if isinstance(node, ast.Import):
            names |= {alias.name.split(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and not node.level:
            names.add(node.module.split(".")[0])
    return names


def test_only_jit_py_imports_numba():
    importing = {file for file in SOURCE.rglob("*.py") if imported(file) & {"numba", "llvmlite"}}
    assert importing == {SOURCE / "engine" / "jit.py"}


def test_engine_files_import_only_numpy_and_standard_modules():
    for file in (SOURCE / "engine").glob("*.py"):
        if file.name != "jit.py":
            assert imported(file) <= {"__future__", "enum", "math", "typing", "numpy"}, file.name


# no allocation

ALLOCATION_ERROR = "NRT required|Only accept returning of array passed into the function"


@needs_jit
def test_compiled_code_cannot_allocate():
    """The private option _nrt=False forbids allocation; without it the same function compiles."""

    def allocate(n):
        return np.zeros(n).sum()

    assert numba.njit(allocate)(3) == 0.0
    with pytest.raises(NumbaError, match=ALLOCATION_ERROR):
        compiled()(allocate)(3)


@needs_jit
def test_methods_of_records_cannot_allocate():
    @record
    class AllocatingRecord(NamedTuple):
        a: float

        def allocate(self, size):
            return np.zeros(size).sum()

    @compiled()
    def call_allocate(allocating, n):
        return allocating.allocate(n)

    with pytest.raises(NumbaError, match=ALLOCATION_ERROR):
        call_allocate(AllocatingRecord(1.0), 3)


@needs_jit
def test_every_compiled_function_runs_without_reference_counts():
    dispatchers = all_compiled()
    assert len(dispatchers) >= 10
    for function in dispatchers:
        assert function.targetoptions["_nrt"] is False, function
        assert function.targetoptions["nogil"] is True, function
        assert type(function._cache).__name__ == "_SourceAwareCache", function


@needs_jit
def test_machine_code_of_a_sweep_counts_no_references():
    problem = Problem("squared_hinge", 1.0, intercept="augmented")
    h = start(np.eye(3), np.array([1.0, -1.0, 1.0]), problem, rho=1.0)
    rule = plan("mpu", problem, np.eye(3), rho=1.0).rule
    arguments = rule, h, np.arange(3, dtype=np.uint32), np.empty(3), np.empty(3, np.uint32), 1

    def code(**options):
        fresh = numba.njit(**options)(repeat.py_func)
        fresh(*arguments)
        (text,) = fresh.inspect_llvm().values()
        return text

    assert "NRT_incref" in code(error_model="numpy")  # so the pattern occurs where references are counted
    assert "NRT_" not in code(error_model="numpy", _nrt=False)


# one source, compiled and interpreted


def replayed(*arguments: str, **environment: str) -> dict:
    """Run replay.py with warnings as errors; return what it prints."""
    done = subprocess.run(
        [sys.executable, "-W", "error", str(REPLAY), *arguments],
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr
    assert not done.stderr
    return json.loads(done.stdout)


@pytest.fixture(scope="module")
def compiled_and_interpreted() -> tuple[dict, dict]:
    return replayed(NUMBA_DISABLE_JIT="0"), replayed(NUMBA_DISABLE_JIT="1")


def test_compiled_and_interpreted_agree_bit_for_bit(compiled_and_interpreted):
    """Runs: Perceptron and MPU on integers, dual coordinate descent on short dyadic fractions, and orders."""
    compiled_runs, interpreted_runs = compiled_and_interpreted
    assert compiled_runs.keys() == interpreted_runs.keys()
    for name in compiled_runs:
        if name != "dcd, real, dense" and "dividing" not in name:
            assert compiled_runs[name] == interpreted_runs[name], name
            assert len(compiled_runs[name]["steps"]) >= 10, name


def test_dense_and_sparse_runs_agree_bit_for_bit(compiled_and_interpreted):
    for runs in compiled_and_interpreted:
        for name in runs:
            if name.endswith("dense") and "real" not in name:
                assert runs[name] == runs[name.replace("dense", "csr")], name


def test_dense_real_runs_take_the_same_steps_compiled_and_interpreted(compiled_and_interpreted):
    """Compiled dense sums are reassociated: values differ in the last bits, steps do not."""
    compiled_runs, interpreted_runs = (runs["dcd, real, dense"] for runs in compiled_and_interpreted)
    assert (
        compiled_runs["steps"]
        == interpreted_runs["steps"]
        == compiled_and_interpreted[0]["dcd, real, csr"]["steps"]
    )
    assert compiled_runs["values"] == pytest.approx(interpreted_runs["values"], rel=1e-12)


def test_rules_that_divide_take_the_same_steps_compiled_and_interpreted(compiled_and_interpreted):
    """Every method of the weight, packed and not: equal updates in equal order, and values within 1e-12."""
    compiled_runs, interpreted_runs = compiled_and_interpreted
    names = [name for name in compiled_runs if "dividing" in name]
    assert len(names) == 2 * (7 + 9)  # rules that divide, in batches; all on streams; dense and CSR
    for name in names:
        csr = compiled_runs[name.replace("asarray", "csr_matrix")]
        assert compiled_runs[name]["steps"] == interpreted_runs[name]["steps"] == csr["steps"], name
        assert len(compiled_runs[name]["steps"]) >= 30, name
        size = max(map(abs, interpreted_runs[name]["values"]))
        for run in (compiled_runs[name], csr):
            assert run["values"] == pytest.approx(
                interpreted_runs[name]["values"], rel=0.0, abs=1e-12 * size
            ), name


def test_concurrent_cache_writes_do_not_mix_code(tmp_path):
    """Two indices are read before either is written; Numba's own cache would name one file for both."""
    from maxmargin.engine.jit import _CacheFile

    one, two = (_CacheFile(str(tmp_path), "f", "stamp") for _ in range(2))
    read, write = two._load_index(), one._save_data

    def save_after_another_process(name, data):
        two.save(("b",), "code of b")
        write(name, data)

    two._load_index = lambda: dict(read)  # the state before the other write
    one._save_data = save_after_another_process
    one.save(("a",), "code of a")
    for key in "ab":
        assert _CacheFile(str(tmp_path), "f", "stamp").load((key,)) in (f"code of {key}", None)
    again = _CacheFile(str(tmp_path), "f", "stamp")
    again.save(("b",), "code of b")
    assert again.load(("b",)) == "code of b"


# bounds checks of compiled code


@pytest.mark.slow
def test_no_index_is_out_of_range(tmp_path):
    """Run every schedule of every rule with Numba's bounds checks."""
    gaps = replayed(
        "fits", "2500", NUMBA_BOUNDSCHECK="1", NUMBA_CACHE_DIR=str(tmp_path), NUMBA_DISABLE_JIT="0"
    )
    convergent = [name for name in ONE_BY_ONE if ALGORITHMS[name].convergent]
    assert max(gap for name, gap in gaps.items() if name.split(",")[0] in convergent) < 0.1


def test_bounds_checks_detect_an_index_out_of_range(tmp_path):
    """Negative control for test_no_index_is_out_of_range."""
    code = """
import numpy as np
from maxmargin.engine.sweep import score_rows
from maxmargin import Problem
from maxmargin.data.rows import Patterns
h = Patterns(np.eye(3)).weight(Problem("hinge", 1.0, intercept="none"), np.ones(3), np.ones(3), 1.0, 0.0)
score_rows(h, np.array([7], np.uint32), np.empty(1))
"""
    done = subprocess.run(
        [sys.executable, "-c", code],
        env={
            **os.environ,
            "NUMBA_BOUNDSCHECK": "1",
            "NUMBA_CACHE_DIR": str(tmp_path),
            "NUMBA_DISABLE_JIT": "0",
        },
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    assert "IndexError: index is out of bounds" in done.stderr


# the cache on disk


class PackageCopy:
    """A copy of the package with a separate cache."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        shutil.copytree(SOURCE, folder / "maxmargin", ignore=shutil.ignore_patterns("__pycache__"))

    def run(self) -> dict:
        result = replayed(
            "two",
            PYTHONPATH=str(self.folder),
            NUMBA_CACHE_DIR=str(self.folder / "cache"),
            NUMBA_DISABLE_JIT="0",
        )
        assert Path(result["file"]).is_relative_to(self.folder)
        return result

    def edit(self, file: str, *changes: tuple[str, str]) -> None:
        path = self.folder / "maxmargin" / file
        text = path.read_text()
        for old, new in changes:
            assert old in text, f"{file} does not hold {old!r}"
            text = text.replace(old, new)
        path.write_text(text)


@pytest.mark.slow
def test_cache_is_invalidated_by_edits_of_the_sources(tmp_path):
    package = PackageCopy(tmp_path)
    cold = package.run()
    assert not cold["hits"]
    assert {line.split()[0] for line in cold["misses"]} >= {
        "repeat",
        "score_rows",
        "copy_rows",
        "_shuffle",
    }

    warm = package.run()
    assert not warm["misses"]
    assert set(warm["hits"]) <= set(cold["misses"])
    assert warm["runs"] == cold["runs"]

    # after the edit of a rule only its own functions are compiled again
    package.edit("algorithms/online/perceptron.py", ("h.add(i, 1.0)", "h.add(i, 2.0)"))
    edited = package.run()
    assert edited["runs"]["Perceptron"] != cold["runs"]["Perceptron"]
    assert edited["runs"]["MPU"] == cold["runs"]["MPU"]
    assert edited["misses"]
    assert all("Learn(" in line and "Unlearn(" not in line for line in edited["misses"])
    assert set(warm["hits"]) - set(edited["misses"]) <= set(edited["hits"])

    # a leaf: everything is compiled again, the functions of other files included
    package.edit("algorithms/online/perceptron.py", ("h.add(i, 2.0)", "h.add(i, 1.0)"))
    package.edit("engine/vectors.py", ("self.w[j] += step", "self.w[j] += 2.0 * step"))
    leaf = package.run()
    assert not leaf["hits"]
    assert all(leaf["runs"][name]["w"] != cold["runs"][name]["w"] for name in cold["runs"])


@pytest.mark.slow
def test_renamed_record_discards_the_old_cache(tmp_path):
    """Old indexes name a removed class: no error, no warning, the same result."""
    package = PackageCopy(tmp_path)
    before = package.run()
    package.edit(
        "algorithms/online/perceptron.py", ("class Learn(", "class Study("), ("rule=Learn(", "rule=Study(")
    )
    after = package.run()
    assert after["runs"] == before["runs"]
    assert any("Study(" in line for line in after["misses"])
    again = package.run()  # the new cache is complete
    assert not again["misses"]
    assert again["runs"] == before["runs"]


def test_user_rules_do_not_share_a_cache_index(tmp_path):
    """An index that names a record which cannot be imported is discarded, so each rule needs its own."""
    (tmp_path / "engine.py").write_text(
        "from maxmargin.engine.jit import compiled\n\n\n"
        "@compiled()\ndef limit(rule):\n    return rule.threshold(rule)\n"
    )
    for name, number in (("rule_a", 1), ("rule_b", 2)):
        (tmp_path / name).mkdir()
        (tmp_path / name / f"{name}.py").write_text(
            "from typing import NamedTuple\n\nfrom maxmargin.engine.jit import record\n\n\n"
            f"@record\nclass Rule(NamedTuple):\n    a: float\n\n"
            f"    def threshold(self, h):\n        return self.a + {number}\n"
        )

    def hits(name):
        lines = f"from engine import limit; from {name} import Rule; print(limit(Rule(1.0)))"
        lines += "; print(len(limit.stats.cache_hits))"
        folders = (SOURCE.parent, tmp_path, tmp_path / name)
        done = subprocess.run(
            [sys.executable, "-c", lines],
            env={
                **os.environ,
                "PYTHONPATH": os.pathsep.join(map(str, folders)),
                "NUMBA_CACHE_DIR": str(tmp_path / "cache"),
                "NUMBA_DISABLE_JIT": "0",
            },
            capture_output=True,
            text=True,
            check=True,
        )
        return done.stdout.split()

    assert hits("rule_a") == ["2.0", "0"]
    assert hits("rule_b") == ["3.0", "0"]
    assert hits("rule_a") == ["2.0", "1"]
    assert hits("rule_b") == ["3.0", "1"]


@needs_jit
def test_edit_recompiles_only_a_function_and_its_callers(tmp_path):
    """Callers: direct, through another function, and by a method of a record argument."""
    head = "from typing import NamedTuple\n\nfrom maxmargin.engine.jit import compiled, record\n"
    function = "\n\n@compiled()\ndef {}(x):\n    return {}\n"
    files = {
        "leaf": function.format("leaf", "x + 1.0"),
        "direct": "from leaf import leaf\n" + function.format("direct", "leaf(x) * 2.0"),
        "indirect": "from direct import direct\n" + function.format("indirect", "direct(x) * 3.0"),
        "rule": "from leaf import leaf\n\n\n@record\nclass Rule(NamedTuple):\n    a: float\n\n"
        "    def threshold(self, h):\n        return leaf(self.a)\n",
        "by_record": function.format("by_record", "x.threshold(x)"),
        "other": function.format("other", "x + 7.0"),
    }
    for name, text in files.items():
        (tmp_path / f"{name}.py").write_text(head + text)
    script = """
import importlib, json
from rule import Rule
out = {}
for name in ("leaf", "direct", "indirect", "by_record", "other"):
    function = getattr(importlib.import_module(name), name)
    value = function(Rule(1.0) if name == "by_record" else 1.0)
    out[name] = [value, sum(function.stats.cache_misses.values())]
print(json.dumps(out))
"""

    def run() -> dict:
        done = subprocess.run(
            [sys.executable, "-c", script],
            env={
                **os.environ,
                "PYTHONPATH": os.pathsep.join([str(SOURCE.parent), str(tmp_path)]),
                "NUMBA_CACHE_DIR": str(tmp_path / "cache"),
                "NUMBA_DISABLE_JIT": "0",
            },
            capture_output=True,
            text=True,
            check=True,
        )
        return json.loads(done.stdout)

    values = {"leaf": 2.0, "direct": 4.0, "indirect": 12.0, "by_record": 2.0, "other": 8.0}
    assert run() == {name: [value, 1] for name, value in values.items()}
    assert run() == {name: [value, 0] for name, value in values.items()}
    leaf = tmp_path / "leaf.py"
    leaf.write_text(leaf.read_text().replace("x + 1.0", "x + 2.0"))
    values = {"leaf": 3.0, "direct": 6.0, "indirect": 18.0, "by_record": 3.0, "other": 8.0}
    assert run() == {name: [value, int(name != "other")] for name, value in values.items()}
