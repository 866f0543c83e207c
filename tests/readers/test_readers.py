"""Data files: contents that are read, and messages about files that cannot be read."""

from __future__ import annotations

import bz2
import gzip
import lzma
import os
import zipfile

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn import datasets  # noqa: F401 (imported by the first read, which would be slow)

from maxmargin.numerics import sizes
from maxmargin.readers import DataError, read

TEXT = b"+1 1:0.5 3:-2\n-1 2:1e-3 # a comment\n# nothing but a comment\n+1 qid:4 1:1 4:7\n-1\n"
DENSE = np.array([[0.5, 0, -2, 0], [0, 1e-3, 0, 0], [1, 0, 0, 7], [0, 0, 0, 0]])
LABELS = np.array([1, -1, 1, -1])
CSR = {"data": [1.0], "indices": [0], "indptr": [0, 1], "shape": (1, 2), "y": [1]}
OPENERS = {"": open, ".gz": gzip.open, ".bz2": bz2.open, ".xz": lzma.open}


@pytest.fixture
def write(tmp_path):
    """Write bytes to a file, compressed according to its suffix."""

    def write(name, content):
        path = tmp_path / name
        with OPENERS.get(path.suffix, open)(path, "wb") as file:
            file.write(content)
        return path

    return write


def refusal_of(path, *args, **kwargs):
    """Read a file that must be refused; return the one-line message without the file name."""
    with pytest.raises(DataError) as caught:
        read(path, *args, **kwargs)
    text = str(caught.value)
    assert text.startswith(str(path))
    assert "\n" not in text
    return text.removeprefix(str(path)).lstrip(":, ")


class TestSvmlight:
    @pytest.mark.parametrize("suffix", OPENERS)
    def test_plain_and_compressed_text_is_read(self, write, suffix):
        table = read(write("a9a.txt" + suffix, TEXT))
        assert np.array_equal(table.X.toarray(), DENSE)
        assert np.array_equal(table.y, LABELS)
        assert (table.y.dtype, table.first_index, table.feature_names) == (np.int64, 1, None)

    def test_line_ends_first_index_and_number_types(self, write):
        assert read(write("a", b"1 1:1\n-1 1:2")).X.toarray().tolist() == [[1], [2]]
        assert np.array_equal(read(write("a", TEXT.replace(b"\n", b"\r\n"))).X.toarray(), DENSE)
        assert np.array_equal(read(write("a", b"0.5 1:1\n1 1:2\n")).y, [0.5, 1.0])
        zero_based = read(write("a", b"1 0:1 2:3\n-1 1:2\n"))
        assert np.array_equal(zero_based.X.toarray(), [[1, 0, 3], [0, 2, 0]])
        assert zero_based.first_index == 0
        path = write("a", b"1 1:1\n-1 2:2\n")
        assert np.array_equal(read(path, first_index=0).X.toarray(), [[0, 1, 0], [0, 0, 2]])
        assert "line 2: the index 0 is below 1" in refusal_of(write("b", b"1 1:1\n-1 0:1\n"), first_index=1)

    def test_features_of_the_model_are_the_width(self, write):
        assert read(write("a", TEXT), n_features=9).X.shape == (4, 9)
        assert read(write("a", TEXT), n_features=4).X.shape == (4, 4)
        empty = read(write("b", b"1\n-1\n"), n_features=5).X
        assert (empty.shape, empty.nnz) == ((2, 5), 0)
        assert refusal_of(write("a", TEXT), n_features=3).startswith(
            "line 4: the index 4 is beyond the 3 features"
        )

    @pytest.mark.parametrize(
        ("line", "expected"),
        [
            (b"1 1:1 12", "'12' has no colon"),
            (b"1 1:1 12:", "the value of '12:' is not a number; write entries"),
            (b"1 1:1 x:2", "the index of 'x:2' is not a whole number"),
            (b"1 1:1_000", "the value of '1:1_000' is not a number"),  # a number in Python only
            (b"1 1_0:1", "the index of '1_0:1' is not a whole number"),
            (b"1_0 1:1", "the label '1_0' is not a number"),
            (b"1 1:one", "the value of '1:one' is not a number"),
            (b"1 3:1 2:1", "the index 2 comes after 3; sort"),
            (b"1 2:1 2:1", "the index 2 comes after 2"),
            (b"1 -1:1", "the index -1 is below 0"),
            (b"1 3000000000:1", "the index 3000000000 is too large"),
            (b"1 1:nan", "the value of '1:nan' is not finite"),
            (b"1 1:-inf", "the value of '1:-inf' is not finite"),
            (b"nan 1:1", "the label 'nan' is not finite"),
            (b"cat 1:1", "the label 'cat' is not a number"),
            (b"1,2 1:1", "the label '1,2' is a list"),
            (b"1:1 2:1", "begins with '1:1', not with a label"),
        ],
    )
    def test_malformed_line_is_reported_with_its_number(self, write, line, expected):
        path = write("bad.txt.gz", b"# header\n1 1:1\n\n-1 2:3\n" + line + b"\n1 1:1\n")
        error = refusal_of(path)
        assert error.startswith("line 5: ")
        assert expected in error
        assert "cut short" not in error
        assert refusal_of(write("a", b"1 1:1\n-1 1:2 12:")).endswith(
            "(the line has no end: the file may be cut short here)."
        )


class TestDamage:
    @pytest.mark.parametrize("suffix", [".gz", ".bz2", ".xz", ".npz", ".parquet", ".arrow"])
    def test_truncated_files_and_other_contents_are_refused(self, write, suffix):
        path = write(f"a{suffix}", b"".join(b"%d %d:%d\n" % (k % 2, k % 97 + 1, k * k) for k in range(2000)))
        if suffix == ".npz":
            np.savez(path, X=DENSE, y=LABELS)
        elif suffix in (".parquet", ".arrow"):
            pa = pytest.importorskip("pyarrow")
            table = pa.table({"a": np.arange(500.0), "y": np.arange(500)})
            writer = pytest.importorskip(f"pyarrow.{'parquet' if suffix == '.parquet' else 'feather'}")
            getattr(writer, "write_table" if suffix == ".parquet" else "write_feather")(table, path)
        content = path.read_bytes()
        assert len(read(path).y) in (4, 500, 2000)
        for k in (len(content) // 2, len(content) - 100, len(content) - 20):
            path.write_bytes(content[:k])
            assert "cut short" in refusal_of(path)
        for damaged in (content[:1], content[:7], content[:40], TEXT):
            path.write_bytes(damaged)
            assert refusal_of(path)
        if suffix == ".gz":
            altered = bytearray(content)
            altered[-6] ^= 0xFF  # in the check sum
            path.write_bytes(altered)
            assert "not a valid .gz file (CRC check failed" in refusal_of(path)

    @pytest.mark.parametrize(
        ("name", "content", "expected"),
        [
            ("a9a", gzip.compress(TEXT, mtime=0), "this is a .gz file by its content"),
            ("model.bin", bytes(range(256)), "this is not a text file"),
            ("a", b"", "the file is empty."),
            ("a.gz", b"\n \n", "the file is empty."),
            ("a.csv", b"\n \n", "the file is empty."),
            ("a", b"# one\n# two\n", "the file holds no rows."),
            ("a.txt", b"u,v,y\n1,2,3\n", "line 1: the label 'u,v,y' is a list, and a row has one label; CSV"),
            ("a.parquet.gz", b"x", "a .parquet file cannot be read in compressed form"),
        ],
    )
    def test_files_of_other_kinds_are_refused(self, write, name, content, expected):
        assert refusal_of(write(name, content)).startswith(expected)

    @pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no named pipes")
    @pytest.mark.parametrize("name", ["a", "a.csv", "a.npz", "a.parquet"])
    def test_pipes_are_refused(self, tmp_path, name):
        os.mkfifo(tmp_path / name)
        expected = refusal_of(tmp_path / name)
        assert expected == "a pipe or device can be read only once; write the data to a file first."

    def test_missing_files_and_folders_are_refused(self, tmp_path):
        assert refusal_of(tmp_path / "nowhere.svm") == "there is no such file."
        assert refusal_of(tmp_path) == "this is a folder; name a file in it."

    @pytest.mark.parametrize("name", ["a", "a.xz", "a.csv"])
    def test_data_larger_than_memory_are_refused(self, write, name, monkeypatch):
        lines = b"1 1:1 2:2 3:3\n" if name != "a.csv" else b"1,2,3\n"
        path = write(name, (b"a,b,c\n" if name == "a.csv" else b"") + lines * 20_000)
        assert 1e8 < sizes.available_memory() < 1e15
        read(path)
        monkeypatch.setattr(sizes, "available_memory", lambda: 5e5)
        assert "the data need about " in refusal_of(path)


class TestCsv:
    @pytest.mark.parametrize("suffix", OPENERS)
    def test_last_column_is_the_label(self, write, suffix):
        table = read(write("a.csv" + suffix, b"u,v,kind\n1,2,yes\n3,4.5,no\n\n"))
        assert np.array_equal(table.X, [[1, 2], [3, 4.5]])
        assert table.y.tolist() == ["yes", "no"]
        assert table.feature_names == ["u", "v"]
        assert table.label_name == "kind"

    def test_column_with_a_conventional_name_is_the_label(self, write):
        for name in ("label", "Target", "class", "y"):
            table = read(write("a.csv", f"{name},u\n1,2\n-1,4\n".encode()))
            assert (table.label_name, table.y.tolist(), table.y.dtype) == (name, [1, -1], np.int64)

    def test_separators_quotes_and_a_byte_order_mark_are_accepted(self, write):
        table = read(write("a.csv", '\ufeff"a, b";class\n"1";"x;y"\n2;z\n'.encode()))
        assert table.feature_names == ["a, b"]
        assert table.y.tolist() == ["x;y", "z"]
        assert np.array_equal(read(write("a.tsv", b"a\ty\n1\t0\n2\t1\n")).X, [[1], [2]])

    def test_columns_are_read_by_position_for_models_without_names(self, write):
        path = write("a.csv", b"u,v\n1,2\n3,4\n")
        assert read(path, n_features=2).y is None
        assert np.array_equal(read(path, n_features=1).y, [2, 4])
        assert refusal_of(path, n_features=3).startswith("the model has 3 features, the file has 1")
        assert read(write("a.csv", b"u\n1\n3\n"), n_features=1).X.shape == (2, 1)

    @pytest.mark.parametrize(
        ("content", "expected"),
        [
            (b"1,,x", "column 'v' is empty; fill it in"),
            (b"1,nan,x", "column 'v' is 'nan'; fill it in"),
            (b"inf,1,x", "column 'u' is 'inf', which is not a finite float64 number"),
            (b"1,-1e400,x", "column 'v' is '-1e400', which is not a finite float64 number"),
            (b'"-1,5e3",1,x', "column 'u': '-1,5e3' has a decimal comma; write numbers with a decimal point"),
            (b"1,True,x", "column 'v': 'True' is not a number"),
            (b"1,2", "the row has 2 columns, the header 3; make them equal"),
            (b"1,2,x,4", "the row has 4 columns, the header 3"),
            (b"1,2,", "the label (column 'kind') is empty"),
            (b"1_000,2,x", "column 'u': '1_000' is not a number"),
            (
                b"1,2\n3,4\n",
                "line 1: the first line, '1', '2', may be a header of numbers or a row; give --header or",
            ),
            (b"only\n1\n", "line 1: the header ['only'] has one column"),
            (
                b"u,y,y\n1,2,3\n",
                "line 1: the label column 'y' is one of several that are named 'y'; give the label",
            ),
            (b"u,v,v\n1,2,3\n", "line 1: the label column 'v.1' is one of several that are named 'v'"),
            (b"u,y\n", "the file holds a header, but no rows."),
            ("u,y\n1,\xe9\n".encode("latin-1"), "this is not text in UTF-8"),
            ("u,y\n1,2\n".encode("utf-16"), "this is text in UTF-16; save it in UTF-8."),
            (b",u,y\n0,1,2\n", "line 1: column 1 (counted from 1) has no name; give it one"),
            (b"u,y,\n1,2,\n", "line 1: column 3 (counted from 1) has no name"),
            (b"a;b;label\n1,5;2;x\n2,5;1;y\n", "line 2: column 'a': '1,5' has a decimal comma"),
            (b"u,y\n1,1\n2,nan\n", "line 3: the label (column 'y') is 'nan'"),
            (b"u\rv,y\n1,a\n2,b\n", "this is not a valid table"),
            # all rows are of one class: the header may be a row
            (b"1,2,x\n3,1,y\n", "line 1: all rows are of class 'y', and the names of the features"),
            (b'u,y\n1,"a\n5,a\n2,b"\n3,a\n', "line 4: the label (column 'y') has several lines"),
            (b"f,u,y\nTrue,1,a\n1,2,b\n", "line 3: column 'f' begins with True or False, and '1' is neither"),
            (b"f,u,y\nTrue,1,a\n,2,b\n", "line 3: column 'f' is empty"),
            (b"f,u,y\nTrue,1,a\nyes,2,b\n", "line 3: column 'f' begins with True or False, and 'yes'"),
        ],
    )
    def test_malformed_tables_are_refused(self, write, content, expected):
        if b"\n" not in content:  # one row of a table
            content, expected = b"u,v,kind\n1,2,x\n" + content + b"\n1,2,y\n", f"line 3: {expected}"
        assert refusal_of(write("a.csv", content)).startswith(expected)

    def test_faults_in_unused_columns_and_headers_of_models_are_accepted(self, write):
        for entry in (b"1", b"", b"yes"):
            path = write("a.csv", b"f,u,y\nTrue,1,a\n" + entry + b",2,b\n")
            assert read(path, drop=["f"]).X.tolist() == [[1], [2]]
        text = b'u,note,y\n1,"two\nlines",a\n2,5" long,b\n'
        assert read(write("b.csv", text), drop=["note"]).y.tolist() == ["a", "b"]
        # a model may have such columns, and rows to predict may be of one class
        path = write("c.csv", b"1,2,x\n3,1,y\n")
        assert read(path, 2, features=["1", "2"], label="x").y.tolist() == ["y"]

    def test_boolean_columns_are_read_as_zero_and_one(self, write):
        text = b'f,u,g,y\n\nTrue,1, False,a\n"False",2.5,True,b\n'  # of pandas; polars writes lower case
        for path in (write("a.csv", text), write("b.csv", text.lower())):
            assert read(path).X.tolist() == [[1, 1, 0], [0, 2.5, 1]]

    @pytest.mark.parametrize(
        "text", [b'u,y,note\n1,a,n\n2,"b,n"\n', b'u,y,note\n1,a,"n" n\n2,b,6" long\n3,b,"n"\n']
    )
    def test_unclosed_quote_is_reported_with_its_line(self, write, text):
        text = text.replace(b',"b,n"', b',b,"n"')
        options = {"drop": ["note"], "label": "y"}
        assert read(write("a.csv", text), **options).y.tolist()[:2] == ["a", "b"]
        expected = f"line {text.count(10)}: a quote is opened and never closed"
        assert refusal_of(write("b.csv", text.rstrip()[:-1]), **options).startswith(expected)

    @pytest.mark.parametrize(
        ("labels", "expected"),
        [
            ([2**53, 2**53 + 1, -(2**63)], [2**53, 2**53 + 1, -(2**63)]),
            ([2**70, 2**70 + 1], [str(2**70), str(2**70 + 1)]),
            (["1", "1.0", "2"], [1, 1, 2]),
            (["1_0", "10"], ["1_0", "10"]),
        ],
    )
    def test_distinct_labels_stay_distinct(self, write, labels, expected):
        y = read(write("a.csv", "".join(["u,y\n", *(f"1,{k}\n" for k in labels)]).encode())).y
        assert y.tolist() == expected
        assert y.dtype.kind == ("i" if isinstance(expected[0], int) else y.dtype.kind)


class TestNpz:
    def test_dense_arrays_are_read(self, tmp_path):
        for dtype in (np.float32, np.float64, np.int16, bool):
            X = np.arange(6).reshape(3, 2).astype(dtype)
            np.savez(tmp_path / "a.npz", X=X, y=["a", "b", "a"])
            table = read(tmp_path / "a.npz")
            assert np.array_equal(table.X, X)
            assert table.X.dtype == (np.float32 if dtype is np.float32 else np.float64)
            assert table.y.tolist() == ["a", "b", "a"]
        np.savez(tmp_path / "a.npz", X=np.full((3, 2), 1.7e308), y=[0, 1, 1])
        assert read(tmp_path / "a.npz").X.max() == 1.7e308
        assert refusal_of(tmp_path / "a.npz", 3).startswith("the model has 3 features, and X has 2")

    @pytest.mark.parametrize("kind", ["csr", "csc"])
    def test_sparse_arrays_are_read(self, tmp_path, kind):
        X, path = sp.csr_matrix(DENSE).asformat(kind), tmp_path / "a.npz"
        arrays = {name: getattr(X, name) for name in ("data", "indices", "indptr", "shape")}
        np.savez_compressed(path, format=kind.encode(), y=LABELS, **arrays)
        table = read(path, n_features=6)
        assert table.X.format == "csr"
        assert np.array_equal(table.X.toarray(), np.hstack([DENSE, np.zeros((4, 2))]))
        assert np.array_equal(table.y, LABELS)
        sp.save_npz(path, X)
        assert read(path, n_features=4).y is None
        assert refusal_of(path).startswith("there is no array 'y' with the labels")

    @pytest.mark.parametrize(
        ("arrays", "expected"),
        [
            ({"a": 1}, "the file needs an array X, or the arrays data, indices, indptr and shape"),
            ({"X": np.ones(3), "y": [1, 2, 3]}, "X must have two dimensions"),
            ({"X": np.ones((3, 2)), "y": [1, 2]}, "y must hold one label for each of the 3 rows"),
            ({"X": [[1.0], [np.nan]], "y": [1, 2]}, "row 2, column 1 (counted from 1) is nan"),
            ({"X": [[1.0], [-np.inf]], "y": [1, 2]}, "row 2, column 1 (counted from 1) is -inf"),
            ({"X": np.ones((2, 2)), "y": [1, np.nan]}, "the label of row 2 (counted from 1) is nan"),
            ({"X": np.ones((0, 2)), "y": []}, "X is empty, 0 rows of 2 features; "),
            ({"X": [["a"]], "y": [1]}, "the array 'X' must hold real numbers"),
            ({"X": [[1j]], "y": [1]}, "the array 'X' must hold real numbers, not complex128"),
            (CSR | {"indices": [7]}, "the arrays are not a valid CSR matrix"),
            (CSR | {"data": [np.nan]}, "row 1, column 1 (counted from 1) is nan"),
            (CSR | {"format": b"bsr"}, "the sparse matrix has the format 'bsr'"),
            ({"X": np.ones((1, 1)), "y": np.array([{}], dtype=object)}, "the array 'y' holds Python objects"),
        ],
    )
    def test_invalid_arrays_are_refused(self, tmp_path, arrays, expected):
        np.savez(tmp_path / "a.npz", **arrays)
        assert refusal_of(tmp_path / "a.npz").startswith(expected)

    def test_arrays_larger_than_memory_are_refused_before_reading(self, tmp_path):
        with zipfile.ZipFile(tmp_path / "a.npz", "w") as archive, archive.open("X.npy", "w") as file:
            header = {"descr": "<f8", "fortran_order": False, "shape": (10**9, 10**6)}
            np.lib.format.write_array_header_1_0(file, header)
        assert refusal_of(tmp_path / "a.npz").startswith("the data need about 8e+03 TB of memory")


def test_adult_data_are_read(data_folder):
    table = read(data_folder / "adult" / "a1a.gz", n_features=123)
    assert table.X.shape == (1605, 123)
    assert np.bincount(table.y + 1).tolist() == [1210, 0, 395]
