"""Caches of rows: they are used as long as files and options stay, written whole or not at all, and replaced."""

from __future__ import annotations

import os
import subprocess
import sys

import numpy as np
import pytest
from command import run

from maxmargin import MaxMarginClassifier, verify

RNG = np.random.default_rng(0)
X = np.round(RNG.normal(size=(400, 3)), 3)
Y = np.where(X @ [1.0, -1.0, 0.5] + RNG.normal(size=400) > 0.0, "yes", "no")


def write(path, rows=X, y=Y):
    lines = (",".join([*map(repr, row), label]) for row, label in zip(rows.tolist(), y.tolist(), strict=True))
    path.write_text("\n".join(["u,v,w,label", *lines]) + "\n")
    return path


def fit(path, memory="1GB", **parameters):
    parameters = {"cache_dir": path.parent / "caches"} | parameters
    return MaxMarginClassifier(memory=memory, random_state=0, **parameters).fit(path)


def caches(folder):
    """Return the files of the caches of a folder, complete or not, and their times."""
    found = (path for path in folder.rglob("*") if "maxmargin-cache" in str(path) and path.is_file())
    return {path: path.stat().st_mtime_ns for path in found}


def test_rows_are_read_once_as_long_as_the_file_stays(tmp_path):
    path = write(tmp_path / "a.csv")
    model = fit(path)
    first = caches(tmp_path)
    assert first
    verify(model, path)
    fit(path)
    assert fit(path, memory="20KB").classes_.tolist() == ["no", "yes"]
    assert caches(tmp_path) == first  # none was written again


@pytest.mark.parametrize("change", ["content", "time", "longer"])
def test_changed_files_are_read_again_and_leave_one_cache(tmp_path, change):
    path = write(tmp_path / "a.csv")
    fit(path)
    first = caches(tmp_path)
    rows = {"content": -X, "time": X, "longer": np.vstack([X, X[:1]])}[change]
    y = np.append(Y, Y[:1]) if change == "longer" else Y
    write(path, rows, y)
    os.utime(path, (1.0, 1.0))
    verify(fit(path), rows, y)
    assert caches(tmp_path).keys().isdisjoint(first)
    assert len({file.parent for file in caches(tmp_path)}) == 1


def test_two_files_of_one_name_have_two_caches_in_one_folder(tmp_path):
    for name, rows in (("one", X), ("two", 2.0 * X)):
        (tmp_path / name).mkdir()
        path = write(tmp_path / name / "a.csv", rows)
        verify(fit(path, cache_dir=tmp_path / "caches"), rows, Y)
    assert len(list((tmp_path / "caches").iterdir())) == 2
    assert not caches(tmp_path / "one")


@pytest.mark.parametrize("size", [0, 100])
def test_damaged_caches_are_written_again(tmp_path, size):
    path = write(tmp_path / "a.csv")
    fit(path)
    for file in caches(tmp_path):
        os.truncate(file, min(size, file.stat().st_size - 1))
    verify(fit(path), X, Y)
    max(caches(tmp_path), key=lambda file: file.stat().st_size).unlink()
    verify(fit(path), X, Y)


@pytest.mark.slow
def test_a_killed_process_leaves_no_cache_and_the_next_one_cleans_up(tmp_path):
    path = write(tmp_path / "a.csv")
    code = (
        "import os, sys; from maxmargin import MaxMarginClassifier; os.fsync = lambda _: os._exit(9)\n"
        "MaxMarginClassifier(memory='1GB', cache_dir=sys.argv[2]).fit(sys.argv[1])"
    )
    words = [sys.executable, "-c", code, path, tmp_path / "caches"]
    assert subprocess.run(words, check=False).returncode == 9
    assert caches(tmp_path)
    verify(fit(path), X, Y)
    assert len({file.parent for file in caches(tmp_path)}) == 1


def test_a_full_disk_leaves_nothing_behind(tmp_path):
    resource = pytest.importorskip("resource", reason="limits of a process")
    path = write(tmp_path / "a.csv")
    fit(write(tmp_path / "b.csv", X[:40], Y[:40]), cache_dir=tmp_path / "other")  # loads and compiles
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (6000, limits[1]))
    try:
        with pytest.raises(ValueError, match=r"the cache cannot be written: .* are free\); make room"):
            fit(path)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert not [file for file in caches(tmp_path) if "a.csv" in str(file)]
    verify(fit(path), X, Y)


@pytest.mark.skipif(sys.platform != "linux", reason="the folder of other systems is no variable")
def test_folders_of_tables_hold_what_they_held_and_the_command_says_what_it_wrote(tmp_path, user_cache):
    pa, dataset = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.dataset")
    table = pa.table({**dict(zip("uvw", X.T, strict=True)), "label": Y})
    dataset.write_dataset(table, tmp_path / "set", format="parquet")
    path = tmp_path / "set" / "part-0.parquet"
    verify(fit(path, cache_dir=None), path)
    assert list((tmp_path / "set").iterdir()) == [path]
    assert dataset.dataset(tmp_path / "set").to_table().equals(table)
    assert pytest.importorskip("pandas").read_parquet(tmp_path / "set").shape == (400, 4)
    (first,) = user_cache.iterdir()
    done = run("fit", path, "--memory", "1GB", "-o", tmp_path / "m")
    assert (done.exit_code, done.stderr) == (0, "")  # it was there
    done = run("fit", path, "--memory", "1GB", "-o", tmp_path / "m", "--drop", "w")
    (second,) = user_cache.iterdir()
    assert first != second  # other columns, in place of the first ones
    size = sum(file.stat().st_size for file in second.iterdir()) / 1000
    assert f"the rows were written to {second} ({size:.3g} kB)" in done.stderr


def test_folders_that_cannot_be_written_are_named(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(ValueError, match="name another folder with cache_dir"):
        fit(write(tmp_path / "a.csv"), cache_dir=tmp_path / "file")


def test_rows_in_memory_maps_stay_while_another_process_replaces_the_cache(tmp_path):
    """A fit in passes of one file, of which a callback replaces the cache by that of another content."""
    path, replaced = write(tmp_path / "a.csv"), []

    def replace(report):
        if not replaced:
            replaced.append(write(path, -2.0 * X))
            fit(path)

    model = fit(path, memory="20KB", callback=replace)
    assert replaced
    verify(model, X, Y)
