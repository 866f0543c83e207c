"""Caches of rows on disk hold the rows and labels that are asked for, whatever files have equal sizes and times."""

from __future__ import annotations

import os
import shutil

import numpy as np
import pytest

from maxmargin.numerics.stop_check import ReadingStoppedError
from maxmargin.readers.cache_folder import clear_cache
from maxmargin.readers.files import Digest
from maxmargin.readers.row_cache import open_rows

EARLY = (1e9, 1e9)  # the time of all files, in whole seconds, as an archive has it


def saved(path, array):
    """Save an array with the time EARLY."""
    path.parent.mkdir(exist_ok=True)
    np.save(path, array)
    os.utime(path, EARLY)
    return path


def labels_of(rows):
    return rows.classes[rows.codes].tolist()


@pytest.fixture
def digests(monkeypatch):
    """Return the list of the files whose digests are computed while a cache is compared with its sources."""
    found, read = [], Digest.read

    def observed(digest, path):
        found.append(path)
        return read(digest, path)

    monkeypatch.setattr(Digest, "read", observed)
    return found


class TestLabels:
    X = np.arange(6.0).reshape(3, 2)
    LABELS = ([0, 0, 1], [1, 0, 0])

    @pytest.mark.parametrize("names", [("y1", "y2"), ("a/y", "b/y")])
    @pytest.mark.parametrize("cache_dir", [None, "caches"])
    def test_label_files_of_one_size_and_time_are_kept_apart(self, tmp_path, names, cache_dir):
        X, caches = saved(tmp_path / "X.npy", self.X), cache_dir and tmp_path / cache_dir
        paths = [saved(tmp_path / f"{name}.npy", y) for name, y in zip(names, self.LABELS, strict=True)]
        for _ in range(2):
            for path, y in zip(paths, self.LABELS, strict=True):
                assert labels_of(open_rows(X, labels=path, cache_dir=caches)) == y
        folders = len(clear_cache([X], caches))
        assert folders == (1 if cache_dir is None and names[0] == "a/y" else 2)

    def test_a_moved_folder_keeps_its_cache(self, tmp_path, digests):
        X = saved(tmp_path / "old" / "X.npy", self.X)
        y = saved(tmp_path / "old" / "y.npy", self.LABELS[0])
        open_rows(X, labels=y)
        (tmp_path / "old").rename(tmp_path / "new")
        X, y = (tmp_path / "new" / path.name for path in (X, y))
        (folder,) = (tmp_path / "new").glob("*.maxmargin-cache")
        written = (folder / "X.npy").stat().st_mtime_ns
        digests.clear()
        for _ in range(2):
            rows = open_rows(X, labels=y)
            assert labels_of(rows) == self.LABELS[0]
            assert rows.place(0)[0] == X
        assert digests == [y]  # once, and not the rows
        assert (folder / "X.npy").stat().st_mtime_ns == written

    def test_a_cache_copied_beside_other_labels_is_not_used_for_them(self, tmp_path):
        for name, y in zip("ab", self.LABELS, strict=True):
            saved(tmp_path / name / "X.npy", self.X)
            saved(tmp_path / name / "y.npy", y)
        open_rows(tmp_path / "a" / "X.npy", labels=tmp_path / "a" / "y.npy")
        (folder,) = (tmp_path / "a").glob("*.maxmargin-cache")
        shutil.copytree(folder, tmp_path / "b" / folder.name)
        rows = open_rows(tmp_path / "b" / "X.npy", labels=tmp_path / "b" / "y.npy")
        assert labels_of(rows) == self.LABELS[1]


@pytest.mark.parametrize("move", [os.replace, shutil.copy2], ids=["mv", "cp -p"])
def test_a_file_that_took_the_name_of_another_of_its_size_and_time_is_noticed(tmp_path, move, digests):
    old, new = tmp_path / "old.csv", tmp_path / "new.csv"
    for path, text in ((old, "u,y\n1,a\n5,b\n"), (new, "u,y\n7,b\n5,a\n")):
        path.write_text(text)
        os.utime(path, EARLY)
    assert open_rows(old).X[:, 0].tolist() == [1, 5]
    move(new, old)
    assert old.stat().st_mtime == EARLY[0]
    assert open_rows(old).X[:, 0].tolist() == [7, 5]
    old.chmod(0o600)  # the content stays
    digests.clear()
    for _ in range(2):
        assert open_rows(old).X[:, 0].tolist() == [7, 5]
    assert digests == [old]  # once


def test_a_copied_cache_is_used(tmp_path, digests):
    (tmp_path / "a").mkdir()
    (tmp_path / "a" / "t.csv").write_text("u,y\n1,a\n5,b\n")
    open_rows(tmp_path / "a" / "t.csv")
    shutil.copytree(tmp_path / "a", tmp_path / "b", copy_function=shutil.copy)  # all times are new
    arrays = tmp_path / "b" / "t.csv.maxmargin-cache" / "X.npy"
    written = arrays.stat().st_mtime_ns
    digests.clear()
    for _ in range(2):
        assert open_rows(tmp_path / "b" / "t.csv").X[:, 0].tolist() == [1, 5]
    assert digests == [tmp_path / "b" / "t.csv"]
    assert arrays.stat().st_mtime_ns == written


def test_files_that_change_places_in_a_folder_are_noticed(tmp_path):
    parts = tmp_path / "set"
    parts.mkdir()
    for k in range(3):
        (parts / f"{k}.csv").write_text(f"u,y\n{k},a\n5,b\n")
        os.utime(parts / f"{k}.csv", EARLY)
    hidden = (parts / "2.csv").rename(tmp_path / "2.csv")
    assert open_rows(parts).X[:, 0].tolist() == [0, 5, 1, 5]
    (parts / "0.csv").unlink()
    hidden.rename(parts / "2.csv")
    assert open_rows(parts).X[:, 0].tolist() == [1, 5, 2, 5]


class TestReplacedCaches:
    """Of columns a and b of one table, whose caches have arrays of one size."""

    @pytest.fixture
    def table(self, tmp_path):
        path = tmp_path / "t.csv"
        path.write_text("x,a,b\n10,0,1\n20,1,0\n30,1,0\n")
        return path

    def test_a_cache_that_is_replaced_while_it_is_compared_stays_whole(self, table, monkeypatch):
        open_rows(table, label="a")
        os.utime(table, EARLY)  # the digest is compared
        read = Digest.read

        def replaced_meanwhile(digest, path):
            monkeypatch.setattr(Digest, "read", read)
            assert labels_of(open_rows(path, label="b")) == [1, 0, 0]
            return read(digest, path)

        monkeypatch.setattr(Digest, "read", replaced_meanwhile)
        codes = table.with_name("t.csv.maxmargin-cache") / "codes.npy"
        with pytest.raises(ReadingStoppedError):  # before it has written a cache again
            open_rows(table, label="a", interrupted=lambda: True)
        written = codes.stat().st_mtime_ns
        assert labels_of(open_rows(table, label="b")) == [1, 0, 0]
        assert codes.stat().st_mtime_ns == written  # the other process keeps its cache
        assert labels_of(open_rows(table, label="a")) == [0, 1, 1]

    def test_a_header_is_not_taken_for_other_arrays(self, table):
        header = table.with_name("t.csv.maxmargin-cache") / "header.json"
        open_rows(table, label="a")
        old = header.read_bytes()
        open_rows(table, label="b")
        header.write_bytes(old)
        for _ in range(2):
            assert labels_of(open_rows(table, label="a")) == [0, 1, 1]
