"""The cache of compiled code on read-only and full disks: imports and fits work, with one warning."""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path

import pytest
from processes import run_python

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
# Permissions do not restrict the superuser, so the calls with which Numba writes are replaced and fail.
READ_ONLY = """
import builtins, errno, os, tempfile

original_open = builtins.open


def refuse(*args, **kwargs):
    raise OSError(errno.EROFS, os.strerror(errno.EROFS))


def open_read_only(file, mode="r", *args, **kwargs):
    return refuse() if set(mode) & set("wax+") else original_open(file, mode, *args, **kwargs)


builtins.open, os.makedirs, tempfile.TemporaryFile = open_read_only, refuse, refuse
"""
FULL = """
import builtins, errno, os

original_open = builtins.open


class FullFile:
    def __init__(self, file, mode):
        self.file = original_open(file, mode)

    def __enter__(self):
        return self

    def __exit__(self, *error):
        self.file.close()

    def write(self, data):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


def on_full_disk(file, mode="r", *args, **kwargs):
    return FullFile(file, mode) if mode == "wb" else original_open(file, mode, *args, **kwargs)


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
hits = [sum(f.stats.cache_hits.values()) for f in (twice, thrice)]
texts = [[w.category.__name__, str(w.message)] for w in caught]
print(json.dumps({"results": results, "hits": hits, "at_import": imported, "warnings": texts}))
"""


class CompiledModule:
    """A folder that holds a module of two compiled functions."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.cache = folder, folder / "__pycache__"
        (folder / "functions.py").write_text(FUNCTIONS)

    def run(self, conditions: str = "", more: str = "thrice(4.0)", **environment: str) -> dict:
        """Import the package and call the functions in a new process without a home, under these conditions."""
        places = {
            "HOME": os.devnull,
            "PYTHONPATH": os.pathsep.join(map(str, (SOURCE.parent, self.folder))),
            "PYTHONDONTWRITEBYTECODE": "1",
        }
        code = conditions + REPORT.replace("{more}", more)
        return json.loads(run_python("-c", code, clean=("NUMBA_", "XDG_"), **{**places, **environment}))


@pytest.fixture
def compiled_module(tmp_path):
    return CompiledModule(tmp_path)


def warned_once(result):
    """Tell whether there is one RuntimeWarning, at the first compilation, that names NUMBA_CACHE_DIR."""
    assert result["at_import"] == 0
    ((category, message),) = result["warnings"]
    return category == "RuntimeWarning" and "NUMBA_CACHE_DIR" in message


def test_code_is_compiled_in_memory_where_no_folder_can_be_created(compiled_module):
    """A file has the name of every cache folder, whatever the permissions, and NUMBA_CACHE_DIR is below a file."""
    compiled_module.cache.write_text("a file")
    result = compiled_module.run(NUMBA_CACHE_DIR=str(compiled_module.cache / "cache"))
    assert (result["results"], result["hits"]) == ([8.0, 12.0], [0, 0])
    assert warned_once(result)


def test_numba_cache_dir_is_used_and_left_unchanged_once_it_is_read_only(compiled_module, tmp_path):
    """Cached functions are loaded; missing ones are compiled in memory."""
    compiled_module.cache.write_text("a file")
    folder = {"NUMBA_CACHE_DIR": str(tmp_path / "cache")}
    assert compiled_module.run(more="0.0", **folder)["warnings"] == []
    before = sorted(tmp_path.rglob("*"))
    result = compiled_module.run(READ_ONLY, **folder)
    assert (result["results"], result["hits"]) == ([8.0, 12.0], [1, 0])
    assert warned_once(result)
    assert sorted(tmp_path.rglob("*")) == before


def test_code_is_compiled_in_memory_on_a_full_disk(compiled_module):
    """The folder exists and a file can be created but not written: no partial file remains."""
    result = compiled_module.run(FULL)
    assert result["results"] == [8.0, 12.0]
    assert warned_once(result)
    assert not list(compiled_module.cache.iterdir())


@pytest.mark.slow
def test_fit_works_without_any_cache_folder(compiled_module, tmp_path):
    """In a copy of the package a file has the name of every cache folder."""
    package = tmp_path / "copy" / "maxmargin"
    shutil.copytree(SOURCE, package, ignore=shutil.ignore_patterns("__pycache__"))
    for folder in {path.parent for path in package.rglob("*.py")}:
        (folder / "__pycache__").write_text("a file")
    compiled_module.cache.write_text("a file")
    fit = "maxmargin.KernelMaxMarginClassifier and maxmargin.MaxMarginClassifier().fit([[0], [3]], [0, 1]).status_.name"
    path = os.pathsep.join(map(str, (package.parent, compiled_module.folder)))
    result = compiled_module.run(more=fit, PYTHONPATH=path)
    assert result["results"] == [8.0, "CERTIFIED"]
    assert warned_once(result)
