"""Threads and processes at the same time; compile caches that are empty, damaged, deleted, or of another processor."""

from __future__ import annotations

import os
import shutil
from concurrent.futures import ThreadPoolExecutor
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from threading import Barrier

import numba
import pytest
from processes import run_python

import maxmargin

SOURCE = Path(maxmargin.__file__).resolve().parents[1]
MODULE = """
from maxmargin.engine.jit import compiled

@compiled()
def scaled(x):
    return 3.0 * x
"""
CALL = "from module import scaled; print(scaled(2.0), sum(scaled.stats.cache_hits.values()))"
FORKS = """
import os
from module import scaled
children = []
for k in range(8):
    child = os.fork()
    if not child:
        code = 1
        try:
            code = int(scaled(float(k)) != 3.0 * k)
        finally:
            os._exit(code)
    children.append(child)
print([os.waitpid(child, 0)[1] for child in children], scaled(2.0), *scaled.stats.cache_hits.values())
"""

needs_jit = pytest.mark.skipif(bool(numba.config.DISABLE_JIT), reason="interpreted: nothing is compiled")
needs_fork = pytest.mark.skipif(not hasattr(os, "fork"), reason="processes are not forked on this system")


@pytest.fixture
def cache(tmp_path, monkeypatch):
    """An empty folder for compiled code, of this process and of `python`."""
    (tmp_path / "module.py").write_text(MODULE)
    monkeypatch.setattr(numba.config, "CACHE_DIR", str(tmp_path / "cache"))
    return tmp_path / "cache"


def function(cache):
    """Return a function that this process has not compiled or loaded yet."""
    spec = spec_from_file_location("module", cache.parent / "module.py")
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.scaled


def call(scaled):
    """Call a function; return the value, and how often its code was loaded from the cache."""
    return scaled(2.0), sum(scaled.stats.cache_hits.values())


def python(code, cache, **more):
    """Run code in a new process which finds `module`; return what it prints."""
    path = os.pathsep.join(map(str, (SOURCE, cache.parent)))
    variables = {"PYTHONPATH": path, "NUMBA_CACHE_DIR": str(cache), "NUMBA_DISABLE_JIT": "0"}
    return run_python("-c", code, **(variables | more)).strip()


def files(cache):
    """Return the files of compiled code by the end of the name, which are all there are."""
    found = [path for path in cache.rglob("*") if path.is_file()]
    ends = {end: [path for path in found if path.suffix == end] for end in (".nbi", ".nbc")}
    assert sum(map(len, ends.values())) == len(found)
    return ends


# one function, an empty cache


@needs_jit
def test_threads_compile_at_the_same_time(cache):
    scaled, start = function(cache), Barrier(8)

    def begin(k):
        start.wait()
        return scaled(float(k) if k % 2 else k)

    with ThreadPoolExecutor(8) as pool:
        assert list(pool.map(begin, range(8))) == [3.0 * k for k in range(8)]
    assert call(function(cache)) == (6.0, 1)
    assert [len(some) for some in files(cache).values()] == [1, 2]


@needs_jit
@needs_fork
def test_processes_compile_at_the_same_time(cache):
    assert python(FORKS, cache) == f"{[0] * 8} 6.0 1"
    assert [len(some) for some in files(cache).values()] == [1, 1]


# other caches


@needs_jit
def test_code_of_another_processor_is_not_loaded(cache):
    other = {"NUMBA_CPU_NAME": "generic", "NUMBA_CPU_FEATURES": ""}
    if numba.config.CPU_NAME == "generic":
        pytest.skip("this process compiles for no processor in particular")
    assert call(function(cache)) == (6.0, 0)
    assert python(CALL, cache, **other) == "6.0 0"
    assert call(function(cache)) == (6.0, 1)
    assert python(CALL, cache, **other) == "6.0 1"
    assert [len(some) for some in files(cache).values()] == [1, 2]


@needs_jit
@pytest.mark.parametrize("end", [".nbi", ".nbc"])
def test_damaged_files_are_compiled_again(cache, end):
    assert call(function(cache)) == (6.0, 0)
    (path,) = files(cache)[end]
    content = path.read_bytes()
    half = len(content) // 2
    flipped = content[:half] + bytes([content[half] ^ 1]) + content[half + 1 :]
    for damaged in (content[:half], bytes(len(content)), flipped if end == ".nbc" else b""):
        path.write_bytes(damaged)
        assert call(function(cache)) == (6.0, 0)
        assert call(function(cache)) == (6.0, 1)


@needs_jit
def test_a_cache_that_is_deleted_after_the_import_is_written_again(cache):
    for _ in range(2):
        scaled = function(cache)
        shutil.rmtree(cache)
        assert call(scaled) == (6.0, 0)
    assert call(function(cache)) == (6.0, 1)
