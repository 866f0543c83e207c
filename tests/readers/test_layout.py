"""Text tables without a header, with other delimiters, and with repeated names: rows, notices and refusals."""

from __future__ import annotations

import codecs
import gzip

import numpy as np
import pytest

from maxmargin.readers import DataError, DataNotice, read
from maxmargin.readers.row_cache import open_rows

X = np.array([[5.1, 3.5], [4.9, 3.0], [6.2, 3.4], [5.9, 3.0]])
WORDS, NUMBERS = ["Iris-setosa", "Iris-setosa", "Iris-virginica", "Iris-virginica"], [1, 1, 2, 2]


def text(between=",", labels=WORDS, header=""):
    rows = (between.join([*map(str, row), str(label)]) for row, label in zip(X, labels, strict=True))
    return header + "\n".join(rows) + "\n\n"


def in_blocks(path, **options):
    """Read rows as of data that exceed the memory."""
    stored = open_rows(path, **options)
    assert np.array_equal(stored.X, X)
    return stored.feature_names, stored.label_name, stored.classes[stored.codes].tolist(), stored.layout


def at_once(path, **options):
    table = read(path, **options)
    assert np.array_equal(table.X, X)
    return table.feature_names, table.label_name, table.y.tolist(), table.layout


@pytest.mark.parametrize("labels", [WORDS, NUMBERS])
@pytest.mark.parametrize("between", [",", ";", "\t", "   ", ", "])
@pytest.mark.parametrize("name", ["iris.data", "iris.csv"])
def test_a_missing_header_is_noticed(between, labels, name, tmp_path):
    path = tmp_path / name
    path.write_text(text(between, labels))
    for reader in (at_once, in_blocks):
        with pytest.warns(DataNotice, match=r"the first line seems to be a row .*--header") as caught:
            found = reader(path)
        assert len(caught) == 1
        assert found == (["x1", "x2"], "x3", labels, {"header": False})
        assert reader(path, header=False) == found


def test_a_header_and_svmlight_text_are_read_as_before(tmp_path):
    path = tmp_path / "iris.data"
    for header in ("a,b,kind\n", "1,2,kind\n", "1.5,2.5,label\n"):
        path.write_text(text(header=header))
        for reader in (at_once, in_blocks):
            assert reader(path)[2:] == (WORDS, {})
    path.write_text("# rows\n1 1:5.1 2:3.5\n2 1:4.9\n")
    assert read(path).first_index == 1
    assert open_rows(path).first_index == 1


def test_the_first_line_is_what_an_option_says(tmp_path):
    path = tmp_path / "a.csv"
    path.write_text("0,1,2\n5.1,3.5,1\n4.9,3.0,2\n")
    with pytest.raises(
        DataError, match=r"may be a header of numbers or a row; give --header or --no-header\."
    ):
        read(path)
    assert read(path, header=True).feature_names == ["0", "1"]
    assert read(path, header=False).X.shape == (3, 2)
    path.write_text("5.1,x,1\n4.9,y,2\n")  # the word does not occur again
    assert read(path, header=False, drop=["x2"]).X.tolist() == [[5.1], [4.9]]


def test_other_text_is_a_table_where_a_delimiter_is_given(tmp_path):
    path = tmp_path / "rows.txt"
    path.write_text(text("|", header="a|b|kind\n"))
    for reader in (at_once, in_blocks):
        assert reader(path, delimiter="|") == (["a", "b"], "kind", WORDS, {"delimiter": "|"})


@pytest.mark.parametrize("pack", [bytes, gzip.compress])
def test_byte_order_marks_are_skipped_or_refused(pack, tmp_path):
    path = tmp_path / ("iris.data" if pack is bytes else "iris.data.gz")
    path.write_bytes(pack(codecs.BOM_UTF8 + text().encode()))
    for reader in (at_once, in_blocks):
        assert reader(path, header=False)[0] == ["x1", "x2"]
    path.write_bytes(pack(codecs.BOM_UTF8 + b"1 1:5.1\n2 1:4.9\n"))
    assert read(path).X.toarray().tolist() == [[5.1], [4.9]]
    path.write_bytes(pack(text().encode("utf-16")))
    for reader in (read, open_rows):
        with pytest.raises(DataError, match="this is text in UTF-16; save it in UTF-8"):
            reader(path)


def test_repeated_names_get_numbers(tmp_path):
    path = tmp_path / "a.csv"
    path.write_text(text(header="a,a,kind\n"))
    for reader in (at_once, in_blocks):
        with pytest.warns(DataNotice, match=r"the same name \('a'\); the first .* are named 'a\.1'"):
            assert reader(path)[0] == ["a", "a.1"]
    path.write_text("a,a.1,a,y\n1,2,3,4\n")
    with pytest.warns(DataNotice):
        assert read(path).feature_names == ["a", "a.1", "a.2"]
