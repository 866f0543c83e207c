"""Labels of files name the classes that they name in the file, or are refused."""

from __future__ import annotations

import numpy as np
import pytest

from maxmargin.readers import DataError, read
from maxmargin.readers.row_cache import open_rows

BIG = 2**53
X = np.array([[0.0, 1.0], [1.0, 0.0], [2.0, 1.0], [0.0, 3.0]])


def read_in_blocks(path):
    rows = open_rows(path)
    return rows.classes[rows.codes].tolist()


def read_at_once(path):
    return read(path).y.tolist()


BOTH = pytest.mark.parametrize("labels_of", [read_at_once, read_in_blocks])


@BOTH
@pytest.mark.parametrize("label", [BIG, BIG + 1, -BIG - 1, 2**64, "1e300"])
def test_labels_of_svmlight_text_that_float64_rounds_are_refused(tmp_path, labels_of, label):
    path = tmp_path / "t.svm"
    path.write_text(f"1 1:1\n{label} 1:2\n")
    with pytest.raises(DataError, match=r"line 2: the label .* is beyond 2\^53"):
        labels_of(path)
    path.write_text(f"1 1:1\n{BIG - 1} 1:2\n")
    assert labels_of(path) == [1, BIG - 1]


@BOTH
@pytest.mark.parametrize(
    "labels", [[BIG + 1, BIG], ["9223372036854775809", "1"], ["9007199254740993.0", "a"]]
)
def test_labels_of_csv_stay_what_they_are(tmp_path, labels_of, labels):
    path = tmp_path / "t.csv"
    path.write_text("u,y\n" + "".join(f"{k},{label}\n" for k, label in enumerate(labels)))
    assert labels_of(path) == labels


@pytest.mark.parametrize(
    ("parts", "words"),
    [
        ([[1, 2], ["a", "b"]], "text and those of other files numbers"),
        ([[1, 2], np.array(["2020", "2021"], "M8[D]")], "dates and those of other files numbers"),
        ([[1, 2], np.array([1, "NaT"], "m8[s]")], "row 2 .* is NaT"),
    ],
)
def test_label_files_that_cannot_be_one_type_are_refused(tmp_path, parts, words):
    rows, labels = ([tmp_path / f"{name}{k}.npy" for k in range(2)] for name in "Xy")
    for k, part in enumerate(parts):
        np.save(rows[k], X[2 * k : 2 * k + 2])
        np.save(labels[k], part)
    with pytest.raises(DataError, match=words):
        open_rows(rows, labels=labels)


def test_small_and_large_unsigned_labels_come_from_a_cache_as_they_are(tmp_path):
    np.save(tmp_path / "X.npy", X)
    np.save(tmp_path / "y.npy", np.array([1, 2**63 + 1, 2**63, 1], np.uint64))
    for _ in range(2):
        rows = open_rows(tmp_path / "X.npy", labels=tmp_path / "y.npy")
        assert rows.classes.tolist() == [1, 2**63, 2**63 + 1]


@pytest.mark.parametrize("values", [["a", "b", None], [1, 2, None]])
def test_missing_entries_of_dictionaries_are_no_labels(tmp_path, values):
    pa = pytest.importorskip("pyarrow", reason="pip install 'maxmargin[arrow]'")
    codes = pa.DictionaryArray.from_arrays(pa.array([0, 1, 2, 1]), pa.array(values))
    table, path = pa.table({"u": X[:, 0], "y": codes}), tmp_path / "t.arrow"
    with pa.OSFile(str(path), "wb") as file, pa.ipc.new_file(file, table.schema) as writer:
        writer.write_table(table)
    for data, opened in ((path, read), (path, open_rows), (table, open_rows)):
        with pytest.raises(DataError, match=r"row 3 \(counted from 1\), column 'y' is empty"):
            opened(data)
