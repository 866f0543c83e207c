"""Rows of large files on disk: the same rows as read at once, faults, and caches that are used, written and deleted."""

from __future__ import annotations

import errno
import gzip
import json
import os
import subprocess
import sys
import threading
from hashlib import sha256

import numpy as np
import pytest
import scipy.sparse as sp

from maxmargin import MaxMarginClassifier, verify
from maxmargin.numerics.progress import LISTENERS
from maxmargin.readers import DataError, Expected, read
from maxmargin.readers.blocks import read_ahead
from maxmargin.readers.cache_folder import clear_cache
from maxmargin.readers.model_rows import RowsForModel
from maxmargin.readers.row_cache import open_rows

N, D = 300, 5
WORDS = np.array(["b", "a", "10", "c d"])


def dense(kind="float64", labels=WORDS, seed=0):
    rng = np.random.default_rng(seed)
    return rng.normal(size=(N, D)).astype(kind), labels[rng.integers(0, len(labels), N)]


def csv_text(X, y, names="x0,x1,x2,x3,x4,y"):
    rows = (",".join([*map(repr, row), str(label)]) for row, label in zip(X.tolist(), y, strict=True))
    return "\n".join([names, *rows]) + "\n"


def svm_text(first=1, seed=0):
    X, y = dense(labels=np.array([-1, 1]), seed=seed)
    rows = (
        " ".join([str(label), *(f"{j + first}:{v!r}" for j, v in enumerate(row) if v > -0.5)])
        for row, label in zip(X.tolist(), y, strict=True)
    )
    return "\n".join(rows) + "\n"


def frame(pa, X, y):
    return pa.table({**{f"x{j}": X[:, j] for j in range(D)}, "y": y})


def write(path, kind="float64"):
    """Write rows in the format of a name."""
    name = path.name.removesuffix(".gz")
    X, y = dense(kind)
    if name.endswith(("csv", "svm")):
        text = (csv_text(X, y) if name.endswith("csv") else svm_text()).encode()
        path.write_bytes(gzip.compress(text) if path.suffix == ".gz" else text)
        return path
    pa = pytest.importorskip("pyarrow", reason="pip install 'maxmargin[arrow]'")
    table = frame(pa, X, y)
    if name.endswith("parquet"):
        from pyarrow import parquet

        parquet.write_table(table, path, row_group_size=70)
    else:
        new = pa.ipc.new_file if name.startswith("file") else pa.ipc.new_stream
        with new(path, table.schema) as sink:
            sink.write_table(table, 64)
    return path


def array(X):
    return X.toarray() if sp.issparse(X) else np.asarray(X)


def same(stored, table):
    """Return whether stored rows are those of a table."""
    classes, codes = np.unique(table.y, return_inverse=True)
    assert stored.classes.dtype == classes.dtype
    assert np.array_equal(stored.classes, classes)
    assert np.array_equal(stored.codes, codes)
    facts = ("feature_names", "label_name", "first_index", "rounded")
    assert [getattr(stored, name) for name in facts] == [getattr(table, name) for name in facts]
    return stored.X.dtype == table.X.dtype and np.array_equal(array(stored.X), array(table.X))


def left(folder):
    """Return the names of caches, complete or not, in a folder."""
    return [path.name for path in folder.iterdir() if "maxmargin-cache" in path.name]


@pytest.fixture
def at_step():
    """Call a function when a step of this name is announced."""

    def add(name, function):
        LISTENERS.append(lambda step: function() if step.name == name else None)

    before = LISTENERS.copy()
    yield add
    LISTENERS[:] = before


@pytest.mark.parametrize("line", ["\0", "3,4,a\0", '3,4,"\0"', "\0003,4,a"])
@pytest.mark.parametrize("delimiter", [",", " "])
def test_rows_after_a_nul_byte_are_not_left_out(tmp_path, line, delimiter):
    lines = ["u,v,y", *(f"{k},{k},{'ab'[k % 2]}" for k in range(900)), line, "1,2,b"]
    path = tmp_path / "a.csv"
    path.write_text("\n".join(lines).replace(",", delimiter))  # far from the beginning, which is examined
    for opened in (read, open_rows):
        with pytest.raises(DataError, match=r"a\.csv, line 902: there is a NUL byte"):
            opened(path)


FORMATS = ("a.svm", "a.svm.gz", "a.csv", "a.csv.gz", "a.parquet", "file.arrow", "stream.arrow")


class TestRows:
    @pytest.mark.parametrize("block_bytes", [900, 1 << 20])
    @pytest.mark.parametrize("name", FORMATS)
    def test_every_format_is_stored_as_it_is_read(self, tmp_path, name, block_bytes):
        path = write(tmp_path / name)
        stored = open_rows(path, block_bytes=block_bytes)
        assert same(stored, read(path))
        assert left(tmp_path) == [f"{name}.maxmargin-cache"]
        assert (stored.codes.dtype, stored.place(N - 1)) == (np.uint8, (path, N - 1))
        assert np.array_equal(array(stored.rows(37, 90)), array(stored.X)[37:90])
        (record,) = json.loads((tmp_path / f"{name}.maxmargin-cache" / "header.json").read_text())["files"]
        assert (record["rows"], record["sha256"]) == (N, sha256(path.read_bytes()).hexdigest())
        assert not (stored.X.data if sp.issparse(stored.X) else stored.X).flags.writeable

    def test_columns_are_chosen_and_float32_is_kept(self, tmp_path):
        path = write(tmp_path / "a.parquet", "float32")
        for options in ({}, {"label": "y", "use": ["x3,x0"]}, {"drop": ["x1", "x2"]}):
            assert same(open_rows(path, **options), read(path, **options))
        assert open_rows(path).X.dtype == np.float32

    def test_several_text_files_are_one_data_set(self, tmp_path):
        for name, first in (("a", 1), ("b", 0), ("c", 1)):
            (tmp_path / name).write_text(svm_text(first, first) + f"1 {10 * first + 3}:1 # last\n")
        (tmp_path / "all").write_text("".join((tmp_path / name).read_text() for name in "abc"))
        stored = open_rows([tmp_path / name for name in "abc"], block_bytes=500)
        assert same(stored, read(tmp_path / "all"))
        assert [stored.place(row)[0].name for row in (0, N, N + 1, 3 * N + 2)] == ["a", "a", "b", "c"]
        assert stored.place(N + 1) == (tmp_path / "b", 0)
        assert same(open_rows(tmp_path / "a", n_features=40), read(tmp_path / "a", 40))

    def test_folders_of_parquet_files_and_orders_of_columns(self, tmp_path):
        pq = pytest.importorskip("pyarrow.parquet")
        pa = pytest.importorskip("pyarrow")
        table = frame(pa, *dense())
        (tmp_path / "set").mkdir()
        for k, order in enumerate(([0, 1, 2, 3, 4, 5], [5, 3, 4, 0, 1, 2])):
            pq.write_table(table.select(order), tmp_path / "set" / f"{k}.parquet")
        stored = open_rows(tmp_path / "set", label="y")
        assert np.array_equal(stored.X, np.vstack([dense()[0]] * 2))
        pq.write_table(table.rename_columns(["x0", "x1", "x2", "x3", "z", "y"]), tmp_path / "set/2.parquet")
        with pytest.raises(DataError, match=r"2\.parquet: the column 'x4' is missing"):
            open_rows(tmp_path / "set")

    def test_arrays_have_labels_of_their_own(self, tmp_path):
        X, y = dense("float32", labels=np.arange(300))
        np.save(tmp_path / "X.npy", X)
        np.save(tmp_path / "y.npy", y)
        stored = open_rows(tmp_path / "X.npy", labels=tmp_path / "y.npy", block_bytes=400)
        assert np.array_equal(stored.X, X)
        assert np.array_equal(stored.classes[stored.codes], y)
        assert (stored.X.dtype, stored.classes.dtype) == (np.float32, y.dtype)

    @pytest.mark.parametrize(
        "rows",
        [
            '1,2,"a"\n"2", 3 ,b \n\n4,5,b',
            '1,2,a\n2,6,"b,c"\n3,1,6" long\n4,1,"n" n\n',
            '1,2,a\n2,6,"b\nc"\n',
            "1,2,a\n+2,6.,b\n.5,1e3,b\n",
            "True,2,a\nfalse,6,b\n",
            "True,2,a\n1,6,b\n",
            "1,2,a\nNA,6,b\n",
            "1,2,a\n1_0,6,b\n",
            "1,9007199254740993,a\n1,6,b\n",
            "1,2,a\n1,9007199254740992,b\n1,3.5e20,a\n1,18014398509481985,a\n",
            "1,2,a\n1,2,b,3\n",
            "1,2,a\n1,2\n",
            "1,2,a\n1,1e999,a\n",
            "1,2,a\n1,2,\u00e9\n",
            "1,2,a\n1,2, \n",
            "1,2,3\n1,2,inf\n",
            "1,2,a\n \n",
            "",
        ],
    )
    @pytest.mark.parametrize("block_bytes", [1, 1 << 20])
    def test_unusual_tables_are_read_or_refused_as_at_once(self, tmp_path, rows, block_bytes):
        path = tmp_path / "a.csv"
        path.write_text(
            "u,v,y\n" + "5,6,a\n" * (40 if "True" not in rows and "3\n" not in rows else 0) + rows
        )
        try:
            expected = read(path)
        except DataError as error:
            with pytest.raises(DataError) as caught:
                open_rows(path, block_bytes=block_bytes)
            message = str(error)
            assert str(caught.value) == message.replace("a header, but no rows", "no rows")
        else:
            assert same(open_rows(path, block_bytes=block_bytes), expected)
            os.utime(path, (1e9, 1e9))  # the digest is compared
            written = (tmp_path / "a.csv.maxmargin-cache" / "X.npy").stat().st_mtime_ns
            open_rows(path)
            assert (tmp_path / "a.csv.maxmargin-cache" / "X.npy").stat().st_mtime_ns == written

    def test_labels_are_those_of_the_whole_column(self, tmp_path):
        for labels in (["1", "1.0", "2"], ["1", "1.5", "x"], ["1_0", "10"], [str(2**70), "1"], ["-1.0", "1"]):
            path = tmp_path / "a.csv"
            path.write_text("u,y\n" + "".join(f"{k},{label}\n" for k, label in enumerate(labels)))
            assert same(open_rows(path, block_bytes=128), read(path))


class TestFaults:
    @pytest.mark.parametrize(
        ("name", "good", "bad"),
        [
            ("svm", "1 1:2\n-1 1:1\n", "1 1:1\n" * 40 + "1 2:x\n"),
            ("svm", "1 1:2\n-1 1:1\n", "1 1:1\n" * 40 + "1 2:nan"),
            ("csv", "u,v,y\n1,2,a\n2,3,b\n", "u,v,y\n" + "1,2,a\n" * 40 + "1,,b\n"),
            ("csv", "u,v,y\n1,2,a\n2,3,b\n", "u,v,y\n" + "1,2,a\n" * 40 + "1,inf,b\n"),
            ("csv", "u,v,y\n1,2,a\n2,3,b\n", "u,v,y\n" + "1,2,a\n" * 40 + "1,2,\n"),
            ("csv", "u,v,y\n1,2,a\n2,3,b\n", "u,v,y\n" + "1,2,a\n" * 40 + '1,2,"a\n'),
            ("csv", "u,v,y\n1,2,3\n2,3,4\n", "u,v,y\n" + "1,2,3\n" * 40 + "1,2,nan\n"),
            ("csv", "u,v,y\nTrue,2,a\n", "u,v,y\n" + "True,2,a\n" * 40 + "1,2,a\n"),
        ],
    )
    def test_faults_of_text_are_named_as_by_the_reader(self, tmp_path, name, good, bad):
        paths = [tmp_path / f"a.{name}", tmp_path / f"b.{name}"]
        for path, text in zip(paths, (good, bad), strict=True):
            path.write_text(text)
        with pytest.raises(DataError) as expected:
            read(paths[1])
        with pytest.raises(DataError) as caught:
            open_rows(paths, block_bytes=64)
        assert str(caught.value) == str(expected.value)
        assert str(caught.value).startswith(f"{paths[1]}, line 4")
        assert left(tmp_path) == []

    @pytest.mark.parametrize("place", ["x3", "y"])
    @pytest.mark.parametrize("value", [np.nan, np.inf])
    def test_rows_of_tables_are_named_with_their_file(self, tmp_path, place, value):
        pq = pytest.importorskip("pyarrow.parquet")
        pa = pytest.importorskip("pyarrow")
        X, y = dense(labels=np.array([0.0, 1.0]))
        pq.write_table(frame(pa, X, y), tmp_path / "a.parquet")
        (y if place == "y" else X[:, 3])[210] = value
        pq.write_table(frame(pa, X, y), tmp_path / "b.parquet")
        with pytest.raises(DataError, match=rf"b\.parquet: .*row 211 .*{value}"):
            open_rows([tmp_path / "a.parquet", tmp_path / "b.parquet"], block_bytes=2000)
        assert left(tmp_path) == []

    def test_arrays_and_sources_that_do_not_fit_are_refused(self, tmp_path):
        X, y = dense()
        np.save(tmp_path / "y.npy", y[:-1])
        np.save(tmp_path / "X.npy", X)
        with pytest.raises(DataError, match=r"X\.npy: there must be one label for each of the 300 rows"):
            open_rows(tmp_path / "X.npy", labels=tmp_path / "y.npy")
        with pytest.raises(DataError, match=r"X\.npy: name one \.npy file of labels"):
            open_rows(tmp_path / "X.npy")
        np.save(tmp_path / "X.npy", np.asfortranarray(X))
        with pytest.raises(DataError, match=r"X\.npy: the array is stored by columns"):
            open_rows(tmp_path / "X.npy", labels=tmp_path / "y.npy")
        with pytest.raises(DataError, match=r"a\.csv: this is CSV, and .*a\.svm is svmlight text"):
            open_rows([write(tmp_path / "a.svm"), write(tmp_path / "a.csv")])
        with pytest.raises(DataError, match=r"a\.svm, line \d+: the index 5 is beyond the 4 features"):
            open_rows(tmp_path / "a.svm", n_features=4)
        assert left(tmp_path) == []

    def test_a_full_disk_leaves_nothing_behind(self, tmp_path):
        resource = pytest.importorskip("resource", reason="limits of a process")
        path = write(tmp_path / "a.svm")
        table = read(path)  # compiles: the compiled code could not be saved below
        content, limits = path.read_bytes(), resource.getrlimit(resource.RLIMIT_FSIZE)
        resource.setrlimit(resource.RLIMIT_FSIZE, (6000, limits[1]))
        try:
            with pytest.raises(
                DataError, match=r"no room for the cache .*it needs about \d.* are free; make room"
            ):
                open_rows(path, block_bytes=1000)
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, limits)
        assert left(tmp_path) == []
        assert path.read_bytes() == content
        assert same(open_rows(path), table)

    def test_ctrl_c_leaves_nothing_behind(self, tmp_path, at_step):
        def interrupt():
            raise KeyboardInterrupt

        at_step("reading b.svm", interrupt)
        threads = threading.active_count()
        with pytest.raises(KeyboardInterrupt):
            open_rows([write(tmp_path / "a.svm"), write(tmp_path / "b.svm")], block_bytes=1000)
        assert left(tmp_path) == []
        assert threading.active_count() == threads

    @pytest.mark.parametrize("text", ["1 1:1\n", None])
    def test_a_source_that_changes_while_it_is_read_is_refused(self, tmp_path, at_step, text):
        paths = [write(tmp_path / "a.svm"), write(tmp_path / "b.svm")]

        def change():  # a is complete: it gets longer, or is cut
            with open(paths[0], "ab") as file:
                file.write(text.encode()) if text else file.truncate(1000)

        at_step("reading b.svm", change)
        with pytest.raises(DataError, match=r"a\.svm: the file was changed while it was read; read it again"):
            open_rows(paths)
        assert left(tmp_path) == []

    @pytest.mark.parametrize("name", ["X.npy", "y.npy"])
    def test_arrays_that_change_while_they_are_read_for_a_model_are_refused(self, tmp_path, name):
        X, y = dense(labels=np.arange(2))
        np.save(tmp_path / "X.npy", X)
        np.save(tmp_path / "y.npy", y)
        blocks = RowsForModel(tmp_path / "X.npy", Expected(D), tmp_path / "y.npy").blocks()
        assert np.array_equal(next(blocks)[0], X)
        os.utime(tmp_path / name, (1e9, 1e9))
        with pytest.raises(
            DataError, match=rf"{name}: the file was changed while it was read; read it again"
        ):
            next(blocks)

    def test_folders_of_killed_processes_are_deleted(self, tmp_path):
        path = write(tmp_path / "a.svm")
        script = (
            "import os, sys; from maxmargin.numerics.progress import LISTENERS\n"
            "LISTENERS.append(lambda step: os._exit(9) if step.name.startswith('reading') else None)\n"
            "from maxmargin.readers.row_cache import open_rows; open_rows(sys.argv[1])"
        )
        assert subprocess.run([sys.executable, "-c", script, path], check=False).returncode == 9
        (name,) = left(tmp_path)
        assert name.startswith(".")
        assert same(open_rows(path), read(path))
        assert left(tmp_path) == ["a.svm.maxmargin-cache"]

    def test_a_header_of_a_killed_process_is_deleted_with_its_cache(self, tmp_path):
        path = write(tmp_path / "a.svm")
        rows = read(path)
        assert same(open_rows(path), rows)
        (tmp_path / "a.svm.maxmargin-cache" / ".header.json.abc.1.2").touch()
        path.write_text(svm_text(seed=1))
        assert same(open_rows(path), read(path))
        assert clear_cache([path])
        assert left(tmp_path) == []

    def test_other_folders_are_never_replaced_or_deleted(self, tmp_path):
        path = write(tmp_path / "a.svm")
        folder = tmp_path / "a.svm.maxmargin-cache"
        folder.mkdir()
        (folder / "notes.txt").write_text("mine")
        with pytest.raises(DataError, match="this is no cache, but has the name of one"):
            open_rows(path)
        assert clear_cache([path]) == {}
        (folder / "notes.txt").unlink()
        open_rows(path)
        (folder / "notes.txt").write_text("mine")
        assert clear_cache([path]) == {}
        assert (folder / "notes.txt").read_text() == "mine"


class TestReuse:
    def marked(self, path):
        """Return the time at which the codes of a cache were written."""
        return (path.parent / f"{path.name}.maxmargin-cache" / "codes.npy").stat().st_mtime_ns

    def test_a_cache_is_used_until_source_or_options_change(self, tmp_path):
        path = write(tmp_path / "a.svm")
        open_rows(path)
        first = self.marked(path)
        for time in (None, (1e9, 1e9), None):  # as it was; only touched: the digest is the same
            if time:
                os.utime(path, time)
            assert same(open_rows(path), read(path))
            assert self.marked(path) == first
        open_rows(path, n_features=9)
        assert self.marked(path) != first
        text = path.read_text()
        for changed in (text + "1 1:1\n", text[: text.rindex("\n", 0, 5000) + 1]):
            path.write_text(changed)
            assert same(open_rows(path), read(path))

    def test_same_size_and_other_digits_are_noticed(self, tmp_path):
        path = tmp_path / "a.csv"
        for value in (1, 2, 3):
            path.write_text(f"u,y\n{value},a\n5,b\n")
            os.utime(path, (value * 1e9, value * 1e9))
            assert open_rows(path).X[0, 0] == value

    @pytest.mark.parametrize("name", ["header.json", "token", "data.npy", "indptr.npy", "codes.npy"])
    def test_damaged_caches_are_written_again(self, tmp_path, name):
        path = write(tmp_path / "a.svm")
        open_rows(path)
        damaged = tmp_path / "a.svm.maxmargin-cache" / name
        for damage in (lambda: os.truncate(damaged, damaged.stat().st_size // 2), damaged.unlink):
            damage()
            assert same(open_rows(path), read(path))

    @pytest.mark.parametrize("facts", [{"classes": []}, {"n_features": 1}, {"arrays": None}, {"layout": 3}])
    def test_changed_headers_are_written_again(self, tmp_path, facts):
        path = write(tmp_path / "a.svm")
        rows, header = open_rows(path), tmp_path / "a.svm.maxmargin-cache" / "header.json"
        header.write_text(json.dumps(json.loads(header.read_text()) | facts))
        again = open_rows(path)
        assert same(again, read(path))
        assert (again.classes.tolist(), again.layout) == (rows.classes.tolist(), rows.layout)

    @pytest.mark.parametrize("letter", ["a", "\u00e9"])
    def test_the_longest_names_have_caches(self, tmp_path, letter):
        paths = [tmp_path / (letter * (254 // len(letter.encode())) + end) for end in "xy"]
        for seed, path in enumerate(paths):
            try:
                path.write_text(svm_text(seed=seed))
            except OSError:
                pytest.skip("the file system has no names of 255 bytes")
        for _ in range(2):
            assert all(same(open_rows(path), read(path)) for path in paths)
        assert len(left(tmp_path)) == 2
        assert same(open_rows(paths[0], cache_dir=tmp_path / "other"), read(paths[0]))
        assert len(clear_cache(paths)) == 2

    def test_a_folder_for_caches_keeps_names_apart(self, tmp_path):
        for name in ("one", "two"):
            (tmp_path / name).mkdir()
            (tmp_path / name / "a").write_text(
                svm_text(seed=len(left(tmp_path))) + f"1 {len(name)}:{name == 'one':d}\n"
            )
        paths, caches = [tmp_path / name / "a" for name in ("one", "two")], tmp_path / "new" / "caches"
        for path in (*paths, paths):
            open_rows(path, cache_dir=caches)
        assert len(left(caches)) == 3
        assert same(open_rows(paths[0], cache_dir=caches), read(paths[0]))
        assert len(clear_cache([paths[1]], caches)) == 2  # that of both, too
        (size,) = clear_cache(cache_dir=caches).values()
        assert size > 8 * N
        assert left(caches) == []

    def test_folder_that_cannot_be_written_is_named(self, tmp_path, monkeypatch):
        def refuse(*_, **__):
            raise PermissionError(errno.EACCES, "Permission denied")

        path = write(tmp_path / "a.svm")
        monkeypatch.setattr("pathlib.Path.mkdir", refuse)
        with pytest.raises(DataError, match="Permission denied; name a folder for the cache with cache_dir"):
            open_rows(path)


class TestReadAhead:
    def test_blocks_are_the_same_and_are_prepared_ahead(self):
        ready = threading.Event()

        def blocks():
            yield 0
            ready.set()
            yield 1

        ahead = read_ahead(blocks())
        assert next(ahead) == 0
        assert ready.wait(10)  # while the caller has the first
        assert list(ahead) == [1]
        assert list(read_ahead([])) == []

    def test_exceptions_pass_and_an_early_end_ends_the_thread(self):
        ended, threads = [], threading.active_count()

        def blocks():
            try:
                yield 0
                yield 1
                raise ValueError("the third")
            finally:
                ended.append(True)

        ahead = read_ahead(blocks())
        next(ahead)
        ahead.close()
        assert ended == [True]
        with pytest.raises(ValueError, match="the third"):
            list(read_ahead(blocks()))
        assert len(ended) == 2
        assert threading.active_count() == threads


def test_verify_finds_the_columns_of_the_model_by_their_names(tmp_path):
    X, y = dense(labels=np.array(["n", "p"]))
    pa, csv = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.csv")
    columns = {f"x{j}": X[:, j] for j in range(D)} | {"y": y, "z": np.arange(N)}
    names = {"a.csv": [*columns][:-1], "reordered.csv": [*columns][-2::-1], "more.csv": [*columns][::-1]}
    for name, order in names.items():
        csv.write_csv(pa.table({one: columns[one] for one in order}), tmp_path / name)
    model = MaxMarginClassifier(memory="1GB").fit(tmp_path / "a.csv")
    (arrays,) = tmp_path.glob("*.maxmargin-cache/X.npy")
    number = arrays.stat().st_ino
    bounds = verify(model, tmp_path / "a.csv").lower
    assert arrays.stat().st_ino == number  # of the fit
    for name in names:
        assert verify(model, tmp_path / name).lower == bounds
    assert verify(model, pa.table(columns)).lower == bounds
