"""Full disks, read-only folders, folders that vanish, and several processes that write one file."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from contextlib import suppress
from multiprocessing import get_context

import numpy as np
import pytest
from command import X, Y, refused, run
from sklearn.datasets import dump_svmlight_file

from maxmargin.data.partitions import block_of_rows
from maxmargin.numerics.files import written_whole
from maxmargin.numerics.progress import LISTENERS
from maxmargin.readers.cache_folder import clear_cache
from maxmargin.readers.row_cache import open_rows

COMMANDS = {
    "fit": ("fit", "DATA", "-o"),
    "fit --online": ("fit", "DATA", "--online", "--n-features", 4, "-o"),
    "export": ("export", "MODEL", "--to", "json", "-o"),
    "certificate": ("certificate", "MODEL", "DATA", "-o"),
}


@pytest.fixture
def inputs(tmp_path):
    """A data file and a model, by the names that commands have for them."""
    data, model = tmp_path / "train.svm", tmp_path / "model"
    dump_svmlight_file(X, Y, str(data), zero_based=False)
    assert run("fit", data, "-o", model, "--seed", 0).exit_code == 0
    return {"DATA": data, "MODEL": model}


@pytest.fixture
def disk(tmp_path):
    """A file system of 64 KB, which is mounted by the superuser."""
    folder = tmp_path / "disk"
    folder.mkdir()
    mount = shutil.which("mount")
    if (
        mount is None
        or subprocess.run(
            [mount, "-t", "tmpfs", "-o", "size=64k", "tmpfs", folder], capture_output=True, check=False
        ).returncode
    ):
        pytest.skip("only the superuser of Linux mounts file systems")
    yield folder
    subprocess.run(["umount", folder], check=True)


def words(name, inputs, output):
    """Return a command line that writes to a file."""
    return [inputs.get(word, word) for word in COMMANDS[name]] + [output]


def fill(folder):
    """Write a file until there is no room."""
    with open(folder / "filler", "wb", buffering=0) as file, suppress(OSError):
        while True:
            file.write(bytes(512))


@pytest.mark.parametrize("name", COMMANDS)
def test_a_full_disk_is_named_and_the_old_file_stays(name, inputs, disk):
    target = disk / "target"
    target.write_text("old")
    fill(disk)
    assert refused(*words(name, inputs, target)) == f"{target}: No space left on device"
    assert target.read_text() == "old"
    assert sorted(os.listdir(disk)) == ["filler", "target"]


@pytest.mark.parametrize("name", COMMANDS)
def test_a_folder_that_is_read_only_is_named_before_any_work(name, inputs, disk):
    target = disk / "target"
    target.write_text("old")
    subprocess.run(["mount", "-o", "remount,ro", disk], check=True)
    assert refused(*words(name, inputs, target)) == f"{disk}: nothing may be written to this folder"
    assert target.read_text() == "old"
    assert os.listdir(disk) == ["target"]


def test_rows_are_not_kept_on_full_or_read_only_disks(inputs, disk):
    fit = ("fit", inputs["DATA"], "--memory", "1KB", "--cache-dir", disk, "-o", inputs["MODEL"])
    before = inputs["MODEL"].read_bytes()
    fill(disk)
    assert "no room for the cache (No space left on device)" in refused(*fit)
    subprocess.run(["mount", "-o", "remount,ro", disk], check=True)
    assert "cannot be written: Read-only file system; name a folder for the cache" in refused(*fit)
    assert inputs["MODEL"].read_bytes() == before
    assert os.listdir(disk) == ["filler"]


@pytest.mark.parametrize("name", ["fit", "certificate"])
def test_a_folder_that_vanishes_during_the_work_is_named(name, inputs, tmp_path):
    folder = tmp_path / "folder"
    folder.mkdir()

    def remove(step):
        shutil.rmtree(folder, ignore_errors=True)

    LISTENERS.append(remove)
    try:
        assert refused(*words(name, inputs, folder / "target")) == f"{folder}: there is no such folder"
    finally:
        LISTENERS.remove(remove)
    assert not folder.exists()


needs_full_device = pytest.mark.skipif(
    not os.path.exists("/dev/full"), reason="no such device on this system"
)


@needs_full_device
def test_a_full_device_is_named(inputs):
    assert refused(*words("fit", inputs, "/dev/full")) == "/dev/full: No space left on device"


@needs_full_device
@pytest.mark.slow
def test_a_full_standard_output_is_an_error_of_one_sentence(inputs):
    with open("/dev/full", "w") as full:
        done = subprocess.run(
            [sys.executable, "-m", "maxmargin", "check", inputs["MODEL"], inputs["DATA"]],
            stdout=full, stderr=subprocess.PIPE, text=True, check=False,
        )  # fmt: skip
    assert (done.returncode, done.stderr) == (2, "maxmargin: No space left on device\n")


def write_often(path, letter):
    """Write a file of one letter many times."""
    for _ in range(50):
        with written_whole(path) as file:
            for _ in range(4):
                file.write(letter * 10_000)
                file.flush()


@pytest.mark.skipif(sys.platform == "win32", reason="Windows refuses to replace a file that is read")
def test_processes_that_write_one_file_leave_one_of_their_files(tmp_path):
    path = tmp_path / "file"
    path.write_bytes(b"0" * 40_000)
    context = get_context("spawn")
    writers = [context.Process(target=write_often, args=(path, letter)) for letter in (b"a", b"b")]
    for writer in writers:
        writer.start()
    seen = set()
    while any(writer.is_alive() for writer in writers):
        content = path.read_bytes()
        assert content == content[:1] * 40_000
        seen.add(content[:1])
    for writer in writers:
        writer.join()
    assert [writer.exitcode for writer in writers] == [0, 0]
    assert path.read_bytes()[:1] in (b"a", b"b")
    assert os.listdir(tmp_path) == ["file"]


# caches of rows


def rows_file(path, seed):
    """Write a table whose files all have one size; return its rows."""
    rows = np.random.default_rng(seed).integers(10, 99, size=(300, 3))
    lines = [",".join(map(str, row)) + f",{k % 2}" for k, row in enumerate(rows.tolist())]
    path.write_text("\n".join(["a,b,c,y", *lines]) + "\n")
    return rows


@pytest.mark.skipif(sys.platform == "win32", reason="Windows refuses to replace files that are mapped")
def test_rows_stay_what_they_are_when_their_cache_is_replaced_or_deleted(tmp_path):
    path = tmp_path / "a.csv"
    first = rows_file(path, 0)
    stored = open_rows(path)
    second = rows_file(path, 1)
    os.utime(path, (1.0, 1.0))
    again = open_rows(path)
    for found, rows in ((stored, first), (again, second)):
        np.testing.assert_array_equal(block_of_rows(found.X, 100, 300), rows[100:])
    assert clear_cache([path])
    np.testing.assert_array_equal(block_of_rows(again.X, 100, 300), second[100:])


@pytest.mark.skipif(sys.platform == "win32", reason="Windows refuses to replace files that are mapped")
def test_a_process_that_writes_another_cache_at_the_same_time_does_not_change_the_rows(tmp_path, monkeypatch):
    """Another process replaces the cache between the end of the writing and the opening of the rows, once."""
    from maxmargin.readers import row_cache

    path, written, others = tmp_path / "a.csv", row_cache._written, []
    rows = rows_file(path, 0)

    def written_twice(*arguments):
        result = written(*arguments)
        if not others:
            others.append(None)
            others.append(open_rows(path, use=["c"]))
        return result

    monkeypatch.setattr(row_cache, "_written", written_twice)
    np.testing.assert_array_equal(open_rows(path).X, rows)
    np.testing.assert_array_equal(others[1].X, rows[:, 2:])
