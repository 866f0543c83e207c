"""Files of every format are the rows that they hold; bad cells, labels and damaged files are named by their place."""

from __future__ import annotations

import bz2
import gzip
import lzma
import math
import os
import zipfile

import numpy as np
import pytest
import scipy.sparse as sp
from command import refused, run
from effort import interpreted
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from maxmargin import MaxMarginClassifier, load, verify

OPENERS = {".gz": gzip.open, ".bz2": bz2.open, ".xz": lzma.open}
FORMATS = [
    "a.svm",
    "a.svm.gz",
    "a.svm.xz",
    "a.csv",
    "a.csv.bz2",
    "a.tsv",
    "a.parquet",
    "file.arrow",
    "stream.arrow",
]
RNG = np.random.default_rng(0)
X = np.round(RNG.normal(size=(300, 4)), 3)
WORDS = np.array(["b", "a", "c d"])[RNG.integers(0, 3, 300)]
SIGNS = np.where(X[:, 0] + RNG.normal(size=300) > 0.0, 1, -1)
SVMLIGHT = b"+1 1:0.5 3:-2\n-1 2:1e-3 # a comment\n# nothing but a comment\n+1 qid:4 1:1 4:7\r\n\n-1"
SVMLIGHT_ROWS = [[0.5, 0, -2, 0], [0, 1e-3, 0, 0], [1, 0, 0, 7], [0, 0, 0, 0]]
NUMBERS = st.one_of(
    st.floats(allow_nan=False, allow_infinity=False).map(repr),
    st.from_regex(r"[+-]?([0-9]{1,24}\.?[0-9]{0,24}|\.[0-9]{1,24})([eE][+-]?[0-9]{1,3})?", fullmatch=True),
    st.integers(-(2**70), 2**70).map(str),
    st.sampled_from(["-0", "+.5e-3", "0e999", "0." + "0" * 400 + "1e400", "9007199254740993.0"]),
).filter(lambda text: math.isfinite(float(text)))


def write(path, content):
    """Write text or bytes to a file, compressed according to its suffix."""
    with OPENERS.get(path.suffix, open)(path, "wb") as file:
        file.write(content.encode() if isinstance(content, str) else content)
    return path


def svm_text(rows, y, first=1):
    lines = (
        " ".join([str(label), *(f"{j + first}:{v!r}" for j, v in enumerate(row) if v)])
        for row, label in zip(rows.tolist(), y.tolist(), strict=True)
    )
    return "\n".join(lines) + "\n"


def csv_text(rows, y, delimiter=","):
    table = zip(rows.tolist(), y.tolist(), strict=True)
    lines = (delimiter.join([*map(repr, row), str(label)]) for row, label in table)
    return "\n".join([delimiter.join("uvwzy"), *lines]) + "\n"


def frame(pa, rows, y):
    return pa.table({**dict(zip("uvwz", rows.T, strict=True)), "y": y})


def file_of(path, rows, y):
    """Write rows in the format that the name of a file says."""
    name = path.name
    if ".svm" in name:
        return write(path, svm_text(rows, y))
    if ".csv" in name or name.endswith("tsv"):
        return write(path, csv_text(rows, y, "\t" if name.endswith("tsv") else ","))
    pa = pytest.importorskip("pyarrow")
    if name.endswith("parquet"):
        pytest.importorskip("pyarrow.parquet").write_table(frame(pa, rows, y), path, row_group_size=70)
        return path
    new = pa.ipc.new_file if name.startswith("file") else pa.ipc.new_stream
    with new(path, frame(pa, rows, y).schema) as sink:
        sink.write_table(frame(pa, rows, y), 64)
    return path


def refusal(path, *options):
    """Return the message of a fit by the command without the name of the file, with which it begins."""
    message = refused("fit", path, "-o", path.with_name("model"), *options)
    assert message.startswith(str(path))
    return message.removeprefix(str(path)).lstrip(",: ")


class TestRows:
    @pytest.mark.parametrize("name", FORMATS)
    def test_fits_in_memory_and_of_files_have_the_same_rows(self, name, tmp_path, fitted, numbers_of):
        text = ".svm" in name
        rows, y = (sp.csr_matrix(X), SIGNS) if text else (X, WORDS)
        path = file_of(tmp_path / name, X, y)
        model = fitted(path, rows, y)
        assert list(getattr(model, "feature_names_in_", [])) == ([] if text else list("uvwz"))
        np.testing.assert_array_equal(numbers_of(path, 4), X)
        assert run("fit", path, "-o", tmp_path / "m", "--seed", 0).exit_code == 0
        verify(load(tmp_path / "m"), rows, y)

    def test_svmlight_text_of_several_blocks_has_whole_lines(self, tmp_path, numbers_of):
        rows = np.tile(X, (150, 1))  # above a megabyte
        path = file_of(tmp_path / "a.svm", rows, np.tile(SIGNS, 150))
        np.testing.assert_array_equal(numbers_of(path, 4), rows)

    @interpreted
    def test_svmlight_text_has_comments_queries_and_two_first_indices(self, tmp_path, numbers_of):
        for name in ("a", "a.gz"):
            path = write(tmp_path / name, SVMLIGHT)
            np.testing.assert_array_equal(numbers_of(path, 4), SVMLIGHT_ROWS)
            np.testing.assert_array_equal(numbers_of(path, 6)[:, :4], SVMLIGHT_ROWS)
        path = write(tmp_path / "b", b"\xef\xbb\xbf1 0:1 2:3\n-1 1:2\n")
        np.testing.assert_array_equal(numbers_of(path, 3), [[1, 0, 3], [0, 2, 0]])

    @settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=40, deadline=None)
    @given(texts=st.lists(NUMBERS, min_size=1, max_size=50))
    def test_every_notation_is_the_number_of_float(self, texts, tmp_path, numbers_of):
        path = write(tmp_path / "a", "".join(f"1 2:{text}\n" for text in texts))
        assert numbers_of(path, 3)[:, 1].tolist() == [float(text) for text in texts]

    @pytest.mark.parametrize(
        ("name", "text", "options", "expected"),
        [
            ("a.csv", "u,v,w,kind\n1,2,.5,yes\n\n3,4.5,1e3,no\n", "", [[1, 2, 0.5], [3, 4.5, 1000]]),
            ("a.csv", '\ufeffu;"v ";w;y\n"1";2;3;"x;y"\n2; 3;1;z\n', "", [[1, 2, 3], [2, 3, 1]]),
            ("a.csv", "f,u,g,y\nTrue,1,false,a\nFalse,2.5,TRUE,b\n", "", [[1, 1, 0], [0, 2.5, 1]]),
            ("a.csv", "label,u,v,w\n1,2,3,4\n-1,4,5,6\n", "", [[2, 3, 4], [4, 5, 6]]),
            ("a.csv", "1;2;3;1\n4;5;6;0\n", "", [[1, 2, 3], [4, 5, 6]]),
            ("a.data", "1 2 3 0\n4  5\t6 1\n7 8 9 0\n", "", [[1, 2, 3], [4, 5, 6], [7, 8, 9]]),
            ("a.csv", "5,3,1,rose\n4,3,2,lily\n", "--no-header", [[5, 3, 1], [4, 3, 2]]),
            ("a.txt", "u|v|w|y\n1|2|3|a\n", "--delimiter |", [[1, 2, 3]]),
            ("a.csv", "u,v,w,t,y\n1,2,3,a,b\n", "--drop t", [[1, 2, 3]]),
            ("a.csv", "t,u,v,w,y\n9,1,2,3,b\n", "--columns w,u,v --label y", [[3, 1, 2]]),
        ],
    )
    def test_tables_of_text_have_headers_delimiters_and_columns(
        self, tmp_path, numbers_of, name, text, options, expected
    ):
        path = write(tmp_path / name, text)
        np.testing.assert_array_equal(numbers_of(path, 3, *options.split()), expected)

    def test_numpy_archives_are_dense_or_sparse(self, tmp_path, numbers_of):
        path, S = tmp_path / "a.npz", sp.csr_matrix(X * (X > 0.0))
        for kind in (np.float32, np.int16, bool):
            np.savez(path, X=X.astype(kind), y=WORDS)
            np.testing.assert_array_equal(numbers_of(path, 4), X.astype(kind).astype(float))
        for matrix in (S, S.tocsc()):
            sp.save_npz(path, matrix)
            np.testing.assert_array_equal(numbers_of(path, 6)[:, :4], S.toarray())
        parts = {name: getattr(S, name) for name in ("data", "indices", "indptr", "shape")}
        np.savez_compressed(path, y=SIGNS, **parts)
        assert run("fit", path, "-o", tmp_path / "m").exit_code == 0
        verify(load(tmp_path / "m"), S, SIGNS)

    def test_several_files_and_folders_are_one_data_set(self, tmp_path, fitted):
        for k in range(2):
            rows = slice(150 * k, 150 * k + 150)
            write(tmp_path / f"{k}.svm", svm_text(X[rows], SIGNS[rows], 0))
        fitted([tmp_path / "0.svm", tmp_path / "1.svm"], sp.csr_matrix(X), SIGNS)
        fitted(tmp_path / "?.svm", sp.csr_matrix(X), SIGNS)
        pa, pq = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
        (tmp_path / "set").mkdir()
        for k, order in enumerate(([0, 1, 2, 3, 4], [4, 2, 3, 0, 1])):
            rows = slice(150 * k, 150 * k + 150)
            pq.write_table(frame(pa, X[rows], WORDS[rows]).select(order), tmp_path / "set" / f"{k}.parquet")
        write(tmp_path / "set" / "notes.csv", "other\n")
        fitted(tmp_path / "set", X, WORDS)
        other = frame(pa, X, WORDS).rename_columns(["u", "v", "w", "q", "y"])
        pq.write_table(other, tmp_path / "set/2.parquet")
        with pytest.raises(ValueError, match=r"2\.parquet: .*'q'"):
            MaxMarginClassifier(memory="1GB").fit(tmp_path / "set")

    def test_arrow_data_are_read_once_and_leave_nothing(self, tmp_path, fitted):
        pa, dataset = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.dataset")
        table = frame(pa, X, WORDS)
        dataset.write_dataset(table, tmp_path / "set", format="parquet")
        reader = pa.RecordBatchReader.from_batches(table.schema, table.to_batches(70))
        for source in (dataset.dataset(tmp_path / "set"), table, reader):
            model = fitted(source, X, WORDS)
        model = fitted(table.to_pandas(), X, WORDS, "y")
        assert verify(model, table).classes == verify(model, X, WORDS).classes
        assert list((tmp_path / "caches").iterdir()) == []
        for columns, words in (
            ({"a": [1.0, None], "y": [0, 1]}, r"Arrow data: row 2 \(counted from 1\), column 'a' is empty"),
            ({"a": ["u", "v"], "y": [0, 1]}, "Arrow data: column 'a' holds string, not numbers"),
        ):
            with pytest.raises(ValueError, match=words):
                MaxMarginClassifier(memory="1GB").fit(pa.table(columns))


class TestLabels:
    @pytest.mark.parametrize(
        ("texts", "classes"),
        [
            (["yes", "no"], ["no", "yes"]),
            (["1", "1.0", "2"], [1, 2]),
            (["-1.0", "1"], [-1, 1]),
            ([str(2**53), str(2**53 + 1)], [2**53, 2**53 + 1]),
            (["nan", "x"], ["nan", "x"]),
        ],
    )
    def test_labels_of_text_are_numbers_if_all_of_them_are(self, texts, classes, tmp_path):
        rows = "".join(f"{k},{text}\n" for k, text in enumerate(texts))
        path = write(tmp_path / "a.csv", "u,y\n" + rows)
        assert run("fit", path, "-o", tmp_path / "m").exit_code == 0
        for model in (MaxMarginClassifier(memory="1GB").fit(path), load(tmp_path / "m")):
            assert model.classes_.tolist() == classes
            assert (model.classes_.dtype.kind == "i") == isinstance(classes[0], int)

    def test_y_names_the_label_column_and_the_last_one_is_stated(self, tmp_path, fitted):
        path = write(tmp_path / "a.csv", csv_text(X, WORDS).replace("u,v,w,z,y", "outcome,v,w,z,kind"))
        with pytest.warns(UserWarning, match="'kind', is taken for the labels; name it as y"):
            fitted(path, X, WORDS)
        fitted(path, X, WORDS, "kind")
        with pytest.raises(ValueError, match=r"a\.csv: there is no column 'label'"):
            MaxMarginClassifier().fit(path, "label")
        done = run("fit", path, "-o", tmp_path / "m")
        assert (done.exit_code, done.stderr.count("'kind'")) == (0, 1)
        with pytest.raises(ValueError, match=r"b\.csv: there is no such file"):
            MaxMarginClassifier().fit(tmp_path / "b.csv", "kind")

    @pytest.mark.parametrize("values", [["a", "b", None], [1, 2, None]])
    def test_missing_entries_of_dictionaries_are_no_labels(self, tmp_path, values):
        pa, feather = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.feather")
        codes = pa.DictionaryArray.from_arrays(pa.array([0, 1, 2, 1]), pa.array(values))
        feather.write_feather(pa.table({"u": X[:4, 0], "y": codes}), tmp_path / "t.arrow")
        assert "row 3 (counted from 1)" in refusal(tmp_path / "t.arrow")


class TestFaults:
    @interpreted
    def test_numbers_of_svmlight_text_are_rounded_to_the_nearest(self, tmp_path, numbers_of):
        texts = [
            "1.23456789012345678e-30",
            "123456789012345678901234567890",
            "9007199254740993",
            ".1e22",
            "4.9e-300",
            "-0.30000000000000004",
        ]
        path = write(
            tmp_path / "long", "".join(f"{(-1) ** k} 1:{one}\n" for k, one in enumerate(texts)).encode()
        )
        np.testing.assert_array_equal(numbers_of(path, 3)[:, 0], [float(one) for one in texts])

    @interpreted
    @pytest.mark.parametrize(
        ("line", "expected"),
        [
            (b"1 1:1 12", "'12' is no entry"),
            (b"1 1:1 12:", "'12:' is no entry"),
            (b"1 1:one", "'1:one' is no entry"),
            (b"1 x:2", "'x:2' is no entry"),
            (b"1 3:1 2:1", "'2:1' is no entry"),
            (b"1 2:1 2:1", "'2:1' is no entry"),
            (b"1 -1:1", "'-1:1' is no entry"),
            (b"1 3000000000:1", "'3000000000:1' is no entry"),
            (b"1 1:-inf", "'1:-inf' is no entry"),
            (b"1 1:1e999", "'1:1e999' is no entry"),
            (b"nan 1:1", "'nan' is no label"),
            (b"cat 1:1", "'cat' is no label"),
            (b"1:1 2:1", "'1:1' is no label"),
        ],
    )
    def test_lines_of_svmlight_text_are_named_by_their_number(self, tmp_path, line, expected):
        path = write(tmp_path / "bad.gz", b"# header\n1 1:1\n\n-1 2:3\n" + line + b"\n1 1:1\n")
        assert refusal(path).startswith(f"line 5: {expected}")
        with pytest.raises(ValueError, match="line 5: "):
            MaxMarginClassifier(memory="1GB", cache_dir=tmp_path / "c").fit(path)
        assert list((tmp_path / "c").iterdir()) == []

    def test_indices_are_those_of_the_features(self, tmp_path):
        path = write(tmp_path / "a", SVMLIGHT)
        assert refusal(path, "--n-features", 3).startswith("line 4: '4:7' is no entry")
        write(path, b"1 3:1\n-1 0:1\n")
        assert refusal(path, "--n-features", 3).startswith("the index 3 is beyond the 3 features")

    @pytest.mark.parametrize(
        ("content", "expected"),
        [
            ("1,,x", "row 2 (counted from 1), column 'v' is empty"),
            ("1,nan,x", "row 2 (counted from 1), column 'v' is empty or nan"),
            ("1,-1e400,x", "row 2 (counted from 1), column 'v' is -inf"),
            ('"-1,5e3",1,x', "line 3: column 'u': CSV conversion error to double: invalid value '-1,5e3'"),
            ("1,yes,x", "line 3: column 'v': CSV conversion error to double: invalid value 'yes'"),
            ("1,2", "line 3: Expected 3 columns, got 2"),
            ("1,2,x,4", "line 3: Expected 3 columns, got 4"),
            ("1,2,", "row 2 (counted from 1), column 'kind' is empty"),
            ('1,2,"x', "row 2 (counted from 1), column 'kind' is empty, or a quote is open"),
            ("only\n1\n", "the only column is the label 'only'"),
            ("5.1,3.5,rose\n4,3,lily\n", "line 1: the first line, '5.1', '3.5', 'rose', may be a header"),
            ("u,y,y\n1,2,3\n", "two columns are named 'y'"),
            ("u,y\n", "the file holds no rows"),
            (b"u,y\n1,\xe9\n", "line 2: column 'y': CSV conversion error to string: invalid UTF8 data"),
            (",u,y\n0,1,2\n", "line 1: column 1 (counted from 1) has no name"),
            ("u,y\n1,1\n2,nan\n", "the label 'nan' is nan"),
            (" \n", "the file is empty"),
        ],
    )
    def test_cells_of_tables_are_named_by_line_and_column(self, tmp_path, content, expected):
        whole = isinstance(content, bytes) or "\n" in content
        path = write(tmp_path / "a.csv", content if whole else f"u,v,kind\n1,2,x\n{content}\n1,2,y\n")
        assert refusal(path).startswith(expected)
        with pytest.raises(ValueError, match=r"a\.csv"):
            MaxMarginClassifier(memory="1GB").fit(path)

    @pytest.mark.parametrize(
        ("options", "expected"),
        [
            ("--label t", "there is no column 't'"),
            ("--columns u,t", "--columns names 't', which is not a column"),
            ("--drop u --columns u", "--drop names the column 'u', and so does another option"),
            ("--columns u,v,y", "--columns names every column"),
            ("--columns u,y --label y", "the column 'y' cannot be both"),
            ("--drop u,u", "--drop names the column 'u' twice"),
        ],
    )
    def test_columns_that_a_table_does_not_have_are_refused(self, tmp_path, options, expected):
        path = write(tmp_path / "a.csv", "u,v,y\n1,2,a\n3,4,b\n")
        assert refusal(path, *options.split()).startswith(expected)

    @pytest.mark.parametrize("column", ["w", "y"])
    def test_rows_of_parquet_files_are_named(self, tmp_path, column):
        pa, pq = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
        rows, y = X.copy(), SIGNS.astype(float)
        (y if column == "y" else rows[:, 2])[210] = np.nan
        pq.write_table(frame(pa, rows, y), tmp_path / "a.parquet")
        assert "row 211 (counted from 1)" in refusal(tmp_path / "a.parquet")
        for names, columns, words in (
            (["u", "u", "y"], [[1.0], [2.0], [3.0]], "two columns are named 'u'"),
            (["u", "y"], [[1.0], [[3.0]]], "column 'y' holds"),
            (["u", "y"], [[1.0], [" "]], "'y'"),
        ):
            pq.write_table(pa.table([*map(pa.array, columns)], names), tmp_path / "a.parquet")
            assert words in refusal(tmp_path / "a.parquet", "--label", "y")

    @pytest.mark.parametrize("suffix", [".svm.gz", ".csv.bz2", ".svm.xz", ".npz", ".parquet", ".arrow"])
    def test_truncated_files_and_other_contents_are_refused(self, tmp_path, suffix):
        path = tmp_path / f"file{suffix}"
        if suffix == ".npz":
            np.savez(path, X=X, y=SIGNS)
        else:
            file_of(path, X, SIGNS)
        content = path.read_bytes()
        for damaged in (content[: len(content) // 2], content[:-20], content[:7], SVMLIGHT):
            path.write_bytes(damaged)
            assert "this is not a valid" in refusal(path)

    @pytest.mark.parametrize(
        ("arrays", "expected"),
        [
            ({"a": 1}, "the file needs an array X, or the arrays data, indices, indptr and shape"),
            ({"X": np.ones(3), "y": [1, 2, 3]}, "X must have two dimensions"),
            ({"X": np.ones((3, 2))}, "the file has no labels"),
            ({"X": np.ones((3, 2)), "y": [1, 2]}, "y must hold one label for each of the 3 rows"),
            ({"X": [[1.0], [-np.inf]], "y": [1, 2]}, "row 2 (counted from 1), column 1 is -inf"),
            ({"X": np.ones((2, 2)), "y": [1, np.nan]}, "the label of row 2 (counted from 1) is nan"),
            ({"X": [["a"]], "y": [1]}, "X must hold real numbers"),
            (
                {"data": [1.0], "indices": [7], "indptr": [0, 1], "shape": (1, 2), "y": [1]},
                "this is not a valid",
            ),
            ({"X": np.ones((1, 1)), "y": np.array([{}], dtype=object)}, "this is not a valid"),
            ({"X": np.ones((2, 2)), "y": [1j, 2.0]}, "labels must be numbers or text"),
            (
                {"data": [1.0], "indices": [0], "indptr": [0, 1], "shape": (1, 2), "format": "bsr", "y": [1]},
                "the sparse matrix has the format 'bsr'",
            ),
        ],
    )
    def test_invalid_arrays_are_refused(self, tmp_path, arrays, expected):
        np.savez(tmp_path / "a.npz", **arrays)
        assert refusal(tmp_path / "a.npz").startswith(expected)

    def test_files_that_are_none_or_do_not_fit_are_refused(self, tmp_path):
        assert refusal(tmp_path / "nowhere.svm").startswith("there is no such file")
        assert refusal(write(tmp_path / "a", b"")).startswith("the file is empty")
        assert refusal(write(tmp_path / "b", b"# one\n")).startswith("the file holds no rows")
        np.savez(tmp_path / "a.npz", X=X, y=SIGNS)
        both = [file_of(tmp_path / name, X, SIGNS) for name in ("a.svm", "a.csv")]
        for source, words in (
            (both, "is CSV with .* is svmlight"),
            (tmp_path / "a.npz", "cannot be read block"),
        ):
            with pytest.raises(ValueError, match=words):
                MaxMarginClassifier().fit(source)

    def test_arrays_larger_than_memory_are_refused(self, tmp_path):
        with zipfile.ZipFile(tmp_path / "a.npz", "w") as archive, archive.open("X.npy", "w") as file:
            header = {"descr": "<f8", "fortran_order": False, "shape": (10**9, 10**6)}
            np.lib.format.write_array_header_1_0(file, header)
        assert refusal(tmp_path / "a.npz")

    @pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no named pipes")
    def test_pipes_are_refused_but_for_streams(self, tmp_path):
        os.mkfifo(tmp_path / "pipe.csv")
        assert "pipe" in refused("fit", tmp_path / "pipe.csv", "-o", tmp_path / "m")


def test_adult_data_are_read(data_folder, tmp_path):
    path = data_folder / "adult" / "a1a.gz"
    assert run("fit", path, "-o", tmp_path / "m", "--n-features", 123).exit_code == 0
    model = load(tmp_path / "m")
    fingerprint = model.certificate_.fingerprint
    assert (model.coef_.shape, fingerprint.rows, fingerprint.positives) == ((1, 123), 1605, 395)
