"""Data files: contents that are read, and messages about files that cannot be read."""

from __future__ import annotations

import bz2
import gzip
import lzma
import os
import sys
import zipfile

import numpy as np
import pytest
import scipy.sparse as sp

from maxmargin.io.readers import DataError, files, read

TEXT = b"+1 1:0.5 3:-2\n-1 2:1e-3 # a comment\n# nothing but a comment\n+1 qid:4 1:1 4:7\n-1\n"
DENSE = np.array([[0.5, 0, -2, 0], [0, 1e-3, 0, 0], [1, 0, 0, 7], [0, 0, 0, 0]])
LABELS = np.array([1, -1, 1, -1])
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
        assert table.y.dtype == np.int64
        assert table.first_index == 1
        assert table.feature_names is None

    def test_last_line_may_lack_a_newline(self, write):
        assert read(write("a", b"1 1:1\n-1 1:2")).X.shape == (2, 1)

    def test_windows_line_ends_are_accepted(self, write):
        assert np.array_equal(read(write("a", TEXT.replace(b"\n", b"\r\n"))).X.toarray(), DENSE)

    def test_index_zero_means_zero_based(self, write):
        table = read(write("a", b"1 0:1 2:3\n-1 1:2\n"))
        assert np.array_equal(table.X.toarray(), [[1, 0, 3], [0, 2, 0]])
        assert table.first_index == 0

    def test_first_index_can_be_given(self, write):
        path = write("a", b"1 1:1\n-1 2:2\n")
        assert np.array_equal(read(path, first_index=0).X.toarray(), [[0, 1, 0], [0, 0, 2]])
        zero = write("b", b"1 1:1\n-1 0:1 2:2\n")
        assert "line 2: the index 0 is below 1" in refusal_of(zero, first_index=1)

    def test_missing_trailing_features_are_zero(self, write):
        assert read(write("a", TEXT), n_features=9).X.shape == (4, 9)

    def test_indices_beyond_the_model_are_refused(self, write):
        expected = refusal_of(write("a", TEXT), n_features=3)
        assert expected.startswith(
            "line 4: the index 4 is beyond the 3 features of the model (indices count from 1)"
        )
        assert expected.endswith("; fit with a larger --n-features.")

    def test_rows_without_entries_are_zero(self, write):
        table = read(write("a", b"1\n-1\n"), n_features=5)
        assert table.X.shape == (2, 5)
        assert table.X.nnz == 0

    def test_noninteger_labels_are_floats(self, write):
        assert np.array_equal(read(write("a", b"0.5 1:1\n1 1:2\n")).y, [0.5, 1.0])

    @pytest.mark.parametrize(
        ("line", "expected"),
        [
            (b"1 1:1 12", "'12' has no colon"),
            (b"1 1:1 12:", "the value '' of '12:' is not a number"),
            (b"1 1:1 x:2", "the index 'x' of 'x:2' is not a whole number"),
            (b"1 1:one", "the value 'one' of '1:one' is not a number"),
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
    @pytest.mark.parametrize("suffix", ["", ".gz"])
    def test_malformed_line_is_reported_with_its_number(self, write, suffix, line, expected):
        path = write("bad.txt" + suffix, b"# header\n1 1:1\n\n-1 2:3\n" + line + b"\n1 1:1\n")
        error = refusal_of(path)
        assert error.startswith("line 5: ")
        assert expected in error
        assert "cut short" not in error

    def test_truncated_last_line_is_reported(self, write):
        error = refusal_of(write("a", b"1 1:1\n-1 1:2 12:"))
        assert error.startswith("line 2: the value '' of '12:'")
        assert error.endswith("(the file seems to be cut short here).")

    @pytest.mark.parametrize("suffix", [".gz", ".bz2", ".xz"])
    def test_truncated_compressed_file_is_reported(self, write, suffix):
        text = b"".join(b"%d %d:%d\n" % (k % 2, k % 97 + 1, k * k) for k in range(5000))
        path = write("a" + suffix, text)
        path.write_bytes(path.read_bytes()[:-200])
        assert refusal_of(path) == "the compressed file is cut short; copy or download it again."

    @pytest.mark.parametrize("suffix", [".gz", ".bz2", ".xz"])
    def test_uncompressed_file_with_a_compressed_suffix_is_refused(self, tmp_path, suffix):
        path = tmp_path / ("a" + suffix)
        path.write_bytes(TEXT)
        assert f"not a valid {suffix} file" in refusal_of(path)

    def test_damaged_gzip_is_refused(self, write):
        path = write("a.gz", TEXT * 100)
        content = bytearray(path.read_bytes())
        content[-6] ^= 0xFF  # in the check sum
        path.write_bytes(content)
        assert "not a valid .gz file (CRC check failed" in refusal_of(path)

    def test_compressed_file_without_the_suffix_is_refused(self, tmp_path):
        path = tmp_path / "a9a"
        path.write_bytes(gzip.compress(TEXT))
        assert "this is a .gz file by its content" in refusal_of(path)

    def test_binary_files_are_refused(self, write):
        assert "this is not a text file" in refusal_of(write("model.bin", bytes(range(256))))

    @pytest.mark.parametrize("name", ["a", "a.gz", "a.csv"])
    @pytest.mark.parametrize("content", [b"", b"\n \n"])
    def test_empty_files_are_refused(self, write, name, content):
        assert refusal_of(write(name, content)) == "the file is empty."

    def test_files_with_only_comments_are_refused(self, write):
        assert refusal_of(write("a", b"# one\n# two\n")) == "the file holds no rows."

    @pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no named pipes")
    @pytest.mark.parametrize("name", ["a", "a.csv", "a.npz", "a.parquet"])
    def test_pipes_are_refused(self, tmp_path, name):
        os.mkfifo(tmp_path / name)
        expected = refusal_of(tmp_path / name)
        assert expected == "a pipe or device can be read only once; write the data to a file first."

    def test_csv_with_another_suffix_is_recognised(self, write):
        expected = refusal_of(write("a.txt", b"u,v,y\n1,2,3\n"))
        assert expected.startswith("line 1: the label 'u,v,y' is a list, and a row has one label; CSV files")

    def test_missing_files_and_folders_are_refused(self, tmp_path):
        assert refusal_of(tmp_path / "nowhere.svm") == "there is no such file."
        assert refusal_of(tmp_path) == "this is a folder; name a file in it."

    @pytest.mark.parametrize("name", ["a", "a.xz", "a.csv"])
    def test_data_larger_than_memory_are_refused(self, write, name, monkeypatch):
        lines = b"1 1:1 2:2 3:3\n" if name != "a.csv" else b"1,2,3\n"
        path = write(name, (b"a,b,c\n" if name == "a.csv" else b"") + lines * 200_000)
        read(path)
        monkeypatch.setattr(files, "available_memory", lambda: 5e6)
        expected = refusal_of(path)
        assert "the data need about " in expected
        assert "of memory; 5 MB are free; use fewer rows" in expected

    def test_memory_errors_while_reading_are_reported(self, write, monkeypatch):
        import sklearn.datasets

        def no_memory(*args, **kwargs):
            raise MemoryError

        monkeypatch.setattr(sklearn.datasets, "load_svmlight_file", no_memory)
        assert refusal_of(write("a", TEXT)).startswith("there is not enough memory to read the file")

    def test_available_memory_is_plausible(self):
        assert 1e8 < files.available_memory() < 1e15


class TestCsv:
    @pytest.mark.parametrize("suffix", OPENERS)
    def test_last_column_is_the_label(self, write, suffix):
        table = read(write("a.csv" + suffix, b"u,v,kind\n1,2,yes\n3,4.5,no\n\n"))
        assert np.array_equal(table.X, [[1, 2], [3, 4.5]])
        assert table.y.tolist() == ["yes", "no"]
        assert table.feature_names == ["u", "v"]
        assert table.label_name == "kind"

    @pytest.mark.parametrize("name", ["label", "Target", "class", "y"])
    def test_column_with_a_conventional_name_is_the_label(self, write, name):
        table = read(write("a.csv", f"{name},u\n1,2\n-1,4\n".encode()))
        assert table.label_name == name
        assert np.array_equal(table.y, [1, -1])
        assert table.y.dtype == np.int64

    def test_label_argument_selects_the_label_column(self, write):
        table = read(write("a.csv", b"u,y,v\n1,2,3\n4,5,6\n"), label="u")
        assert np.array_equal(table.y, [1, 4])
        assert table.feature_names == ["y", "v"]

    def test_quotes_semicolons_and_a_byte_order_mark_are_accepted(self, write):
        table = read(write("a.csv", '\ufeff"a, b";class\n"1";"x;y"\n2;z\n'.encode()))
        assert table.feature_names == ["a, b"]
        assert table.y.tolist() == ["x;y", "z"]

    def test_tab_separated_files_are_read(self, write):
        assert np.array_equal(read(write("a.tsv", b"a\ty\n1\t0\n2\t1\n")).X, [[1], [2]])

    def test_csv_columns_are_matched_by_name(self, write):
        path = write("a.csv", b"id,v,u,kind\np,1,2,yes\nq,3,4,no\n")
        table = read(path, n_features=2, features=["u", "v"], label="kind")
        assert np.array_equal(table.X, [[2, 1], [4, 3]])
        assert table.y.tolist() == ["yes", "no"]
        assert read(path, n_features=2, features=["u", "v"]).y is None
        expected = refusal_of(path, n_features=2, features=["u", "w"])
        assert expected.startswith("the model needs the column 'w'")

    def test_columns_are_read_by_position_for_models_without_names(self, write):
        path = write("a.csv", b"u,v\n1,2\n3,4\n")
        assert read(path, n_features=2).y is None
        assert np.array_equal(read(path, n_features=1).y, [2, 4])
        assert refusal_of(path, n_features=3).startswith("the model has 3 features, the file has 1")

    def test_single_column_without_label_is_read(self, write):
        assert read(write("a.csv", b"u\n1\n3\n"), n_features=1).X.shape == (2, 1)

    @pytest.mark.parametrize(
        ("line", "expected"),
        [
            (b"1,,x", "column 'v' is empty; fill it in"),
            (b"1,two,x", "column 'v': 'two' is not a number"),
            (b"1,nan,x", "column 'v' is 'nan'; fill it in"),
            (b"inf,1,x", "column 'u' is 'inf', which is not a finite float64 number"),
            (b"1,-1e400,x", "column 'v' is '-1e400', which is not a finite float64 number"),
            (b'"-1,5e3",1,x', "column 'u': '-1,5e3' has a decimal comma; write numbers with a decimal point"),
            (b"1,True,x", "column 'v': 'True' is not a number"),
            (b"1,2", "2 columns, but the header has 3"),
            (b"1,2,x,4", "4 columns, but the header has 3"),
            (b"1,2,", "the label (column 'kind') is empty"),
        ],
    )
    def test_malformed_line_is_reported_with_its_number(self, write, line, expected):
        error = refusal_of(write("a.csv", b"u,v,kind\n1,2,x\n" + line + b"\n1,2,y\n"))
        assert error.startswith("line 3: ")
        assert expected in error

    def test_nan_labels_are_refused(self, write):
        expected = refusal_of(write("a.csv", b"u,y\n1,1\n2,nan\n"))
        assert expected.startswith("line 3: the label (column 'y') is 'nan'")

    def test_lines_shorter_than_the_header_are_refused(self, write):
        expected = refusal_of(write("a.csv", b"u,v,kind\n1,2\n3,4\n"))
        assert expected.startswith("line 2: ")

    @pytest.mark.parametrize(
        ("content", "expected"),
        [
            (b"1,2\n3,4\n", "line 1: the file needs a header"),
            (b"only\n1\n", "line 1: the header ['only'] has one column"),
            (b"u,u,y\n1,2,3\n", "line 1: two columns are named 'u'"),
            (b"u,y\n", "the file holds a header, but no rows."),
            ("u,y\n1,\xe9\n".encode("latin-1"), "this is not text in UTF-8"),
            ("u,y\n1,2\n".encode("utf-16"), "this is text in UTF-16; save it in UTF-8."),
            (b",u,y\n0,1,2\n", "line 1: column 1 has no name; give it one, or leave the column out"),
            (b"u,y,\n1,2,\n", "line 1: column 3 has no name"),
        ],
    )
    def test_malformed_tables_are_refused(self, write, content, expected):
        assert refusal_of(write("a.csv", content)).startswith(expected)

    def test_decimal_commas_are_refused(self, write):
        expected = refusal_of(write("a.csv", b"a;b;label\n1,5;2;x\n2,5;1;y\n"))
        assert expected.startswith("line 2: column 'a': '1,5' has a decimal comma")

    def test_boolean_columns_are_read_as_zero_and_one(self, write):
        table = read(write("a.csv", b'f,u,g,y\n\nTrue,1, false,a\n"False",2.5,true,b\n'))
        assert table.X.tolist() == [[1, 1, 0], [0, 2.5, 1]]
        # mixtures with other entries are refused
        for entry, expected in (
            (b"1", "and '1' is neither"),
            (b"", "is empty"),
            (b"yes", "and 'yes' is neither"),
        ):
            error = refusal_of(write("b.csv", b"f,u,y\nTrue,1,a\n" + entry + b",2,b\n"))
            assert error.startswith("line 3: column 'f'")
            assert expected in error
        # unused columns may hold anything
        assert read(write("c.csv", b"f,u,y\nTrue,1,a\nyes,2,b\n"), drop=["f"]).X.tolist() == [[1], [2]]

    def test_boolean_columns_of_pandas_and_polars_are_read(self, tmp_path):
        pd, pl = pytest.importorskip("pandas"), pytest.importorskip("polars")
        pytest.importorskip("pyarrow")
        columns = {
            "flag": [True, False, True],
            "u": [0.5, 1.5, -2.0],
            "on": [False] * 3,
            "y": ["a", "b", "a"],
        }
        one, two = pd.DataFrame(columns), pl.DataFrame(columns)
        one.to_parquet(tmp_path / "one.parquet")
        one.to_csv(tmp_path / "one.csv", index=False)
        two.write_parquet(tmp_path / "two.parquet")
        two.write_csv(tmp_path / "two.csv")
        assert "True" in (tmp_path / "one.csv").read_text()
        assert "true" in (tmp_path / "two.csv").read_text()
        for name in ("one.parquet", "one.csv", "two.parquet", "two.csv"):
            table = read(tmp_path / name)
            assert table.X.tolist() == [[1, 0.5, 0], [0, 1.5, 0], [1, -2, 0]], name
            assert table.y.tolist() == ["a", "b", "a"]
            reordered = read(tmp_path / name, 2, features=["on", "flag"])
            assert reordered.X.tolist() == [[0, 1], [0, 0], [0, 1]]

    def test_header_that_may_be_a_row_is_refused(self, write):
        path = write("a.csv", b"1,2,x\n3,1,y\n")
        expected = refusal_of(path)
        assert expected.startswith(
            "line 1: all rows are of class 'y', and the names of the features, '1', '2', are"
        )
        assert "if this line is a row, write a header" in expected
        # a model may have such columns, and rows to predict may be of one class
        assert read(path, 2, features=["1", "2"]).y is None
        assert read(path, 2, features=["1", "2"], label="x").y.tolist() == ["y"]

    def test_missing_header_is_refused(self, write):
        expected = refusal_of(write("a.csv", b"1.5,2,yes\n3,4,no\n5,6,yes\n"))
        assert expected == (
            "line 1: the file needs a header with the names of the columns, but seems to begin with a row: its label "
            "'yes' occurs again."
        )

    def test_carriage_return_line_ends_are_refused(self, write):
        assert "carriage return alone" in refusal_of(write("a.csv", b"u,y\r1,a\r2,b\r"))
        # in the header only: the message of the csv module
        assert "not a valid table" in refusal_of(write("b.csv", b"u\rv,y\n1,a\n2,b\n"))

    @pytest.mark.parametrize("column", ["y", "note"])
    def test_unclosed_quote_is_reported(self, write, column):
        names, options = ("u,y", {}) if column == "y" else ("u,y,note", {"drop": ["note"], "label": "y"})
        more = "" if column == "y" else ",n"
        text = f'{names}\n1,a{more}\n2,"b{more}"\n'.replace(',"b,n"', ',b,"n"').encode()
        assert read(write("a.csv", text), **options).y.tolist() == ["a", "b"]
        expected = refusal_of(write("b.csv", text.rstrip()[:-1]), **options)
        assert expected.startswith("line 3: a quote is opened and never closed")

    def test_unclosed_quote_after_irregular_quotes_is_reported(self, write):
        text = b'u,y,note\n1,a,"n" n\n2,b,6" long\n3,b,"n"\n'
        assert read(write("a.csv", text), drop=["note"], label="y").y.tolist() == ["a", "b", "b"]
        expected = refusal_of(write("b.csv", text.rstrip()[:-1]), drop=["note"], label="y")
        assert expected.startswith("line 4: a quote is opened and never closed")

    def test_quoted_label_of_several_lines_is_refused(self, write):
        rows = b"".join(b"%d,a\n" % k for k in range(15))
        expected = refusal_of(write("a.csv", b'u,y\n1,"a\n' + rows + b'2,b"\n3,a\n'))
        assert expected.startswith("line 18: the label (column 'y') that ends here has several lines")
        # an unused column may hold anything, and a quote inside a field is literal
        text = b'u,note,y\n1,"two\nlines",a\n2,5" long,b\n'
        assert read(write("b.csv", text), drop=["note"]).y.tolist() == ["a", "b"]

    def test_large_integer_labels_stay_distinct(self, write):
        wide = [2**53, 2**53 + 1, -(2**63)]
        table = read(write("a.csv", "".join(["u,y\n", *(f"1,{k}\n" for k in wide)]).encode()))
        assert table.y.dtype == np.int64
        assert table.y.tolist() == wide
        wide = [str(2**70), str(2**70 + 1)]
        table = read(write("b.csv", "".join(["u,y\n", *(f"1,{k}\n" for k in wide)]).encode()))
        assert table.y.tolist() == wide
        table = read(write("c.csv", b"u,y\n1,1\n1,1.0\n1,2\n"))
        assert (table.y.dtype, table.y.tolist()) == (np.int64, [1, 1, 2])
        assert read(write("d.csv", b"u,y\n1,1_0\n1,10\n")).y.tolist() == ["1_0", "10"]

    def test_numbers_with_underscores_are_refused(self, write):
        expected = refusal_of(write("a.csv", b"u,y\n1,a\n1_000,b\n"))
        assert expected.startswith("line 3: column 'u': '1_000' is not a number")

    def test_numeric_column_names_are_accepted(self, write):
        assert read(write("a.csv", b"0,1,kind\n3,4,no\n5,6,yes\n")).feature_names == ["0", "1"]

    def test_label_column_may_share_the_name_of_a_class(self, write):
        assert read(write("a.csv", b"u,spam\n3,spam\n5,ham\n")).label_name == "spam"

    def test_missing_label_column_is_reported(self, write):
        expected = refusal_of(write("a.csv", b"u,v\n1,2\n"), label="kind")
        assert expected == "there is no column 'kind'; the columns are 'u', 'v'."


class TestNpz:
    @pytest.mark.parametrize("dtype", [np.float32, np.float64, np.int16, bool])
    def test_dense_arrays_are_read(self, tmp_path, dtype):
        X = np.arange(6).reshape(3, 2).astype(dtype)
        np.savez(tmp_path / "a.npz", X=X, y=["a", "b", "a"])
        table = read(tmp_path / "a.npz")
        assert np.array_equal(table.X, X)
        assert table.X.dtype == (np.float32 if dtype is np.float32 else np.float64)
        assert table.y.tolist() == ["a", "b", "a"]

    @pytest.mark.parametrize("kind", ["csr", "csc"])
    def test_sparse_arrays_are_read(self, tmp_path, kind):
        X = sp.csr_matrix(DENSE).asformat(kind)
        np.savez_compressed(
            tmp_path / "a.npz",
            data=X.data, indices=X.indices, indptr=X.indptr, shape=X.shape, format=kind.encode(), y=LABELS,
        )  # fmt: skip
        table = read(tmp_path / "a.npz", n_features=6)
        assert table.X.format == "csr"
        assert np.array_equal(table.X.toarray(), np.hstack([DENSE, np.zeros((4, 2))]))
        assert np.array_equal(table.y, LABELS)

    def test_scipy_save_npz_has_no_labels(self, tmp_path):
        sp.save_npz(tmp_path / "a.npz", sp.csr_matrix(DENSE))
        assert read(tmp_path / "a.npz", n_features=4).y is None
        assert refusal_of(tmp_path / "a.npz") == "there is no array 'y' with the labels; save them beside X."

    @pytest.mark.parametrize(
        ("arrays", "expected"),
        [
            (
                {"a": 1},
                "the file needs an array X, or the arrays data, indices, indptr and shape; its arrays are 'a'.",
            ),
            ({"X": np.ones(3), "y": [1, 2, 3]}, "X must have two dimensions"),
            ({"X": np.ones((3, 2)), "y": [1, 2]}, "y must hold one label for each of the 3 rows"),
            ({"X": [[1.0], [np.nan]], "y": [1, 2]}, "row 1 (counted from 0), column 0 is nan"),
            (
                {"X": [[1.0], [-np.inf]], "y": [1, 2]},
                "row 1 (counted from 0), column 0 is -inf, which is not a finite number; correct such entries",
            ),
            ({"X": np.ones((2, 2)), "y": [1, np.nan]}, "the label of row 1 (counted from 0) is nan"),
            ({"X": np.ones((0, 2)), "y": []}, "X is empty: 0 rows, 2 features."),
            ({"X": [["a"]], "y": [1]}, "the array 'X' must hold real numbers"),
            ({"X": [[1j]], "y": [1]}, "the array 'X' must hold real numbers; its type is complex128"),
            (
                {"data": [1.0], "indices": [7], "indptr": [0, 1], "shape": (1, 2), "y": [1]},
                "the arrays are not a valid CSR matrix",
            ),
            (
                {"data": [np.nan], "indices": [0], "indptr": [0, 1], "shape": (1, 2), "y": [1]},
                "'data' holds NaN or infinity",
            ),
            (
                {"data": [1.0], "indices": [0], "indptr": [0, 1], "shape": (1, 2), "format": b"bsr"},
                "the sparse matrix has the format 'bsr'",
            ),
        ],
    )
    def test_invalid_arrays_are_refused(self, tmp_path, arrays, expected):
        np.savez(tmp_path / "a.npz", **arrays)
        assert refusal_of(tmp_path / "a.npz").startswith(expected)

    def test_large_finite_numbers_are_accepted(self, tmp_path):
        np.savez(tmp_path / "a.npz", X=np.full((3, 2), 1.7e308), y=[0, 1, 1])
        assert read(tmp_path / "a.npz").X.max() == 1.7e308

    def test_object_arrays_are_refused(self, tmp_path):
        np.savez(tmp_path / "a.npz", X=np.ones((1, 1)), y=np.array([{}], dtype=object))
        assert refusal_of(tmp_path / "a.npz").startswith(
            "the array 'y' holds Python objects, which could run code"
        )

    def test_truncated_npz_file_is_refused(self, tmp_path):
        np.savez(tmp_path / "a.npz", X=DENSE, y=LABELS)
        content = (tmp_path / "a.npz").read_bytes()
        (tmp_path / "a.npz").write_bytes(content[:-100])
        assert refusal_of(tmp_path / "a.npz").startswith("this is not an .npz file, or it is cut short")

    def test_wrong_number_of_features_is_refused(self, tmp_path):
        np.savez(tmp_path / "a.npz", X=DENSE, y=LABELS)
        assert (
            refusal_of(tmp_path / "a.npz", 3)
            == "the model has 3 features, and X has 4; give the features of the fit."
        )

    def test_arrays_larger_than_memory_are_refused_before_reading(self, tmp_path):
        with zipfile.ZipFile(tmp_path / "a.npz", "w") as archive, archive.open("X.npy", "w") as file:
            header = {"descr": "<f8", "fortran_order": False, "shape": (10**9, 10**6)}
            np.lib.format.write_array_header_1_0(file, header)
        assert refusal_of(tmp_path / "a.npz").startswith("the data need about 8e+03 TB of memory")


class TestParquet:
    @pytest.fixture
    def write_table(self, tmp_path):
        pa, pq = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")

        def write(**columns):
            pq.write_table(pa.table(columns), tmp_path / "a.parquet")
            return tmp_path / "a.parquet"

        return write

    def test_numbers_and_string_labels_are_read(self, write_table):
        table = read(write_table(u=[1, 2], v=[0.5, -1.0], w=[True, False], kind=["a", "b"]))
        assert np.array_equal(table.X, [[1, 0.5, 1], [2, -1, 0]])
        assert table.y.tolist() == ["a", "b"]
        assert table.feature_names == ["u", "v", "w"]

    def test_parquet_columns_are_matched_by_name(self, write_table):
        path = write_table(y=[1.0, 2.0], id=["p", "q"], u=[5, 6], v=[7, 8])
        table = read(path, 2, features=["v", "u"])
        assert np.array_equal(table.X, [[7, 5], [8, 6]])
        assert np.array_equal(table.y, [1, 2])

    def test_categories_and_float32_columns_are_read(self, write_table):
        pa = pytest.importorskip("pyarrow")
        path = write_table(u=pa.array([1.5, 2.5], pa.float32()), y=pa.array(["a", "b"]).dictionary_encode())
        table = read(path)
        assert table.X.dtype == np.float32
        assert table.y.tolist() == ["a", "b"]

    def test_empty_cells_strings_and_infinities_are_refused(self, write_table):
        assert refusal_of(write_table(u=[1, None], y=[0, 1])).startswith(
            "row 1 (counted from 0), column 'u' is empty"
        )
        assert refusal_of(write_table(u=["a", "b"], y=[0, 1])).startswith(
            "column 'u' holds string, not numbers"
        )
        assert refusal_of(write_table(u=[1.0, np.inf], y=[0, 1])).startswith(
            "row 1 (counted from 0), column 'u' is inf"
        )

    def test_tables_without_rows_are_refused(self, write_table):
        assert refusal_of(write_table(u=[], y=[])) == "the file holds no rows."

    def test_truncated_parquet_file_is_refused(self, write_table):
        path = write_table(u=[1, 2], y=[0, 1])
        path.write_bytes(path.read_bytes()[:-20])
        expected = refusal_of(path)
        assert expected.startswith("this is not a valid Parquet file, or is cut short (")
        assert expected.endswith("); copy it again.")
        assert ". " not in expected

    def test_tables_larger_than_memory_are_refused(self, write_table, monkeypatch):
        path = write_table(u=[1, 2], y=[0, 1])
        monkeypatch.setattr(files, "available_memory", lambda: 10)
        assert "the data need about 64 bytes of memory" in refusal_of(path)

    def test_missing_pyarrow_is_reported(self, write_table, monkeypatch):
        path = write_table(u=[1, 2], y=[0, 1])
        monkeypatch.setitem(sys.modules, "pyarrow", None)
        assert refusal_of(path) == "Parquet needs pyarrow: pip install 'maxmargin[arrow]'."

    def test_compressed_parquet_files_are_refused(self, write):
        assert (
            refusal_of(write("a.parquet.gz", b"x"))
            == "a .parquet file cannot be read in compressed form; decompress it first."
        )


def test_adult_data_are_read(data_folder):
    table = read(data_folder / "adult" / "a1a.gz", n_features=123)
    assert table.X.shape == (1605, 123)
    assert np.bincount(table.y + 1).tolist() == [1210, 0, 395]
