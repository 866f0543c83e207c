"""Compiled code where no folder can be written, and where the disk is full: imports and fits work, with one warning."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import maxmargin

SOURCE = Path(maxmargin.__file__).resolve().parent

FUNCTIONS = """
from maxmargin.engine.jit import compiled


@compiled()
def twice(x):
    return 2.0 * x


@compiled()
def thrice(x):
    return 3.0 * x
"""
# rights do not stop the superuser: the calls with which Numba writes fail as they do on such a file system
READ_ONLY = """
import builtins, errno, os, tempfile

usual = builtins.open


def refuse(*args, **kwargs):
    raise OSError(errno.EROFS, os.strerror(errno.EROFS))


def only_read(file, mode="r", *args, **kwargs):
    return refuse() if set(mode) & set("wax+") else usual(file, mode, *args, **kwargs)


builtins.open, os.makedirs, tempfile.TemporaryFile = only_read, refuse, refuse
"""
FULL = """
import builtins, errno, os

usual = builtins.open


class Full:
    def __init__(self, file, mode):
        self.file = usual(file, mode)

    def __enter__(self):
        return self

    def __exit__(self, *error):
        self.file.close()

    def write(self, data):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


def on_full_disk(file, mode="r", *args, **kwargs):
    return Full(file, mode) if mode == "wb" else usual(file, mode, *args, **kwargs)


builtins.open = on_full_disk
"""
REPORT = """
import json, warnings

with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    import maxmargin

    from functions import thrice, twice

    imported = len(caught)
    results = [twice(4.0), {more}]
print(
    json.dumps(
        {
            "results": results,
            "hits": [sum(f.stats.cache_hits.values()) for f in (twice, thrice)],
            "at_import": imported,
            "warnings": [[w.category.__name__, str(w.message)] for w in caught],
        }
    )
)
"""


class Place:
    """A folder with a module of two compiled functions, which stands in for the package's folder."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.kept = folder, folder / "__pycache__"
        (folder / "functions.py").write_text(FUNCTIONS)

    def run(self, conditions: str = "", more: str = "thrice(4.0)", **environment: str) -> dict:
        """Import the package and call the functions in a new process without a home, under these conditions."""
        clean = {k: v for k, v in os.environ.items() if not k.startswith(("NUMBA_", "XDG_"))}
        done = subprocess.run(
            [sys.executable, "-c", conditions + REPORT.replace("{more}", more)],
            env={
                **clean,
                "HOME": os.devnull,
                "PYTHONPATH": os.pathsep.join(map(str, (SOURCE.parent, self.folder))),
                "PYTHONDONTWRITEBYTECODE": "1",
                **environment,
            },
            capture_output=True,
            text=True,
            check=False,
            timeout=300,
        )
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout)


@pytest.fixture
def place(tmp_path):
    return Place(tmp_path)


def warned_once(seen):
    """One RuntimeWarning, at the first compilation, which names the remedy."""
    assert seen["at_import"] == 0
    ((category, message),) = seen["warnings"]
    return category == "RuntimeWarning" and "NUMBA_CACHE_DIR" in message


def test_folders_that_cannot_be_made_leave_code_in_memory(place):
    """Files stand in the place of all cache folders: nobody can write there, whatever the rights."""
    place.kept.write_text("a file")
    seen = place.run()
    assert seen["results"] == [8.0, 12.0]
    assert seen["hits"] == [0, 0]
    assert warned_once(seen)


def test_all_compiled_modules_are_imported_on_a_read_only_disk(place):
    """Classifiers are imported when they are asked for, and compiled functions with them."""
    names = [f"maxmargin.{name}.__name__" for name in ("MaxMarginClassifier", "KernelMaxMarginClassifier")]
    assert place.run(READ_ONLY, more=", ".join(names))["results"][1:] == [
        name.split(".")[1] for name in names
    ]


def test_the_folder_that_the_warning_asks_for_ends_it(place, tmp_path):
    place.kept.write_text("a file")
    folder = str(tmp_path / "cache")
    first, second = (place.run(NUMBA_CACHE_DIR=folder) for _ in range(2))
    assert first["warnings"] == second["warnings"] == []
    assert first["hits"] == [0, 0]
    assert second["hits"] == [1, 1]


def test_a_cache_folder_that_is_none_is_passed_over(place):
    """NUMBA_CACHE_DIR below a file, with no other folder to write to."""
    place.kept.write_text("a file")
    seen = place.run(NUMBA_CACHE_DIR=str(place.kept / "cache"))
    assert seen["results"] == [8.0, 12.0]
    assert warned_once(seen)


@pytest.mark.parametrize("where", ["beside the module", "NUMBA_CACHE_DIR"])
def test_a_read_only_cache_is_read(place, tmp_path, where):
    """What it holds is not compiled again and needs no warning; what it lacks is compiled in memory."""
    environment = {} if where == "beside the module" else {"NUMBA_CACHE_DIR": str(tmp_path / "cache")}
    warm = place.run(more="0.0", **environment)
    assert warm["warnings"] == []
    before = sorted(tmp_path.rglob("*"))
    seen = place.run(READ_ONLY, more="0.0", **environment)
    assert seen["hits"] == [1, 0]
    assert seen["warnings"] == []
    seen = place.run(READ_ONLY, **environment)
    assert seen["results"] == [8.0, 12.0]
    assert seen["hits"] == [1, 0]
    assert warned_once(seen)
    assert sorted(tmp_path.rglob("*")) == before


def test_a_read_only_cache_of_other_sources_is_not_used(place):
    place.run()
    (place.folder / "functions.py").write_text(FUNCTIONS.replace("2.0 * x", "4.0 * x"))
    seen = place.run(READ_ONLY)
    assert seen["results"] == [16.0, 12.0]
    assert seen["hits"] == [0, 0]
    assert warned_once(seen)


def test_a_full_disk_leaves_code_in_memory(place):
    """The folder is there and a file can be made, but not filled: no half of a file stays behind."""
    seen = place.run(FULL)
    assert seen["results"] == [8.0, 12.0]
    assert warned_once(seen)
    assert not list(place.kept.iterdir())


def test_a_read_only_index_of_a_record_that_is_gone_is_passed_over(place):
    """Such an index is discarded where it can be written."""
    rule = (
        "from typing import NamedTuple\n\nfrom maxmargin.engine.jit import record\n\n\n"
        "@record\nclass Rule(NamedTuple):\n    a: float\n\n    def threshold(self, h):\n        return self.a\n"
    )
    (place.folder / "rule.py").write_text(rule)
    (place.folder / "functions.py").write_text(
        FUNCTIONS + "\n\n@compiled()\ndef limit(rule):\n    return rule.threshold(rule)\n"
    )
    call = "__import__('functions').limit(__import__('rule').{}(1.0))"
    assert place.run(more=call.format("Rule"))["results"][1] == 1.0
    (place.folder / "rule.py").write_text(rule.replace("Rule", "Other"))
    seen = place.run(READ_ONLY, more=call.format("Other"))
    assert seen["results"][1] == 1.0
    assert warned_once(seen)


@pytest.mark.slow
def test_a_fit_of_a_package_without_a_folder_for_compiled_code(place, tmp_path):
    """A copy of the package, with a file in the place of every folder for compiled code."""
    package = tmp_path / "copy" / "maxmargin"
    shutil.copytree(SOURCE, package, ignore=shutil.ignore_patterns("__pycache__"))
    for folder in {path.parent for path in package.rglob("*.py")}:
        (folder / "__pycache__").write_text("a file")
    place.kept.write_text("a file")
    fit = "maxmargin.MaxMarginClassifier().fit([[0.0], [1.0], [3.0]], [0, 0, 1]).status_.name"
    seen = place.run(more=fit, PYTHONPATH=os.pathsep.join(map(str, (package.parent, place.folder))))
    assert seen["results"] == [8.0, "CERTIFIED"]
    assert warned_once(seen)
