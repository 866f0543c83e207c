"""Full disks and read-only folders: the place is named, and an old file stays as it was."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from contextlib import suppress

import pytest
from command import X, Y, refused, run
from sklearn.datasets import dump_svmlight_file

COMMANDS = {
    "fit": ("fit", "DATA", "-o"),
    "fit --online": ("fit", "DATA", "--online", "--n-features", 4, "-o"),
    "export": ("export", "MODEL", "--to", "liblinear", "-o"),
    "check --proof": ("check", "MODEL", "DATA", "--proof"),
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
    folder, mount = tmp_path / "disk", shutil.which("mount")
    folder.mkdir()
    words = [mount, "-t", "tmpfs", "-o", "size=64k", "tmpfs", folder]
    if mount is None or subprocess.run(words, capture_output=True, check=False).returncode:
        pytest.skip("only the superuser of Linux mounts file systems")
    yield folder
    subprocess.run(["umount", folder], check=True)


def fill(folder):
    """Write a file until there is no room."""
    with open(folder / "filler", "wb", buffering=0) as file, suppress(OSError):
        while True:
            file.write(bytes(512))


@pytest.mark.parametrize("name", COMMANDS)
def test_full_and_read_only_disks_are_named_and_the_old_file_stays(name, inputs, disk):
    target = disk / "target"
    target.write_text("old")
    words = [inputs.get(word, word) for word in COMMANDS[name]] + [target]
    fill(disk)
    assert refused(*words) == f"{target}: No space left on device"
    subprocess.run(["mount", "-o", "remount,ro", disk], check=True)
    assert refused(*words).startswith(f"{disk}: ")
    assert target.read_text() == "old"
    assert sorted(os.listdir(disk)) == ["filler", "target"]


def test_rows_are_not_kept_on_full_or_read_only_disks(inputs, disk, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(disk))
    (disk / "maxmargin").mkdir()
    fit = ("fit", inputs["DATA"], "--memory", "1KB", "-o", inputs["MODEL"])
    before = inputs["MODEL"].read_bytes()
    fill(disk)
    assert "No space left on device" in refused(*fit)
    subprocess.run(["mount", "-o", "remount,ro", disk], check=True)
    assert "Read-only file system" in refused(*fit)
    assert inputs["MODEL"].read_bytes() == before
    assert sorted(os.listdir(disk)) == ["filler", "maxmargin"]
    assert os.listdir(disk / "maxmargin") == []


@pytest.mark.slow
@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="no such device on this system")
def test_full_devices_are_errors_of_one_sentence(inputs):
    assert refused("fit", inputs["DATA"], "-o", "/dev/full") == "/dev/full: No space left on device"
    with open("/dev/full", "w") as full:
        done = subprocess.run(
            [sys.executable, "-m", "maxmargin", "check", inputs["MODEL"], inputs["DATA"]],
            stdout=full, stderr=subprocess.PIPE, text=True, check=False,
        )  # fmt: skip
    assert (done.returncode, done.stderr.splitlines()[-1]) == (2, "maxmargin: No space left on device")
