"""Faults that `make fuzz` found: damaged arrays of NumPy, and damaged numbers in text, are refused in a sentence."""

from __future__ import annotations

import io
import struct
import zipfile

import numpy as np
import pytest

from maxmargin.numerics.fault import LONGEST
from maxmargin.readers import DataError, Expected, read
from maxmargin.readers.model_rows import RowsForModel
from maxmargin.readers.row_cache import open_rows

X, Y = np.arange(6.0).reshape(3, 2), np.array([0, 1, 1])


def npy(array):
    file = io.BytesIO()
    np.save(file, array)
    return file.getvalue()


def refusal_of(path):
    with pytest.raises(DataError) as error:
        read(path)
    return str(error.value).removeprefix(f"{path}: ")


def archive_of(path, content):
    """Write an archive whose array X is this content, with its true checksum."""
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("X.npy", content)
        archive.writestr("y.npy", npy(Y))
    return path


@pytest.mark.parametrize(
    ("offset", "value"),
    [(10, 99), (8, 1 << 5), (8, 1 << 6), (8, 1), (6, 100)],  # of the first entry of the central directory
    ids=["compression", "patched data", "strong encryption", "encryption", "version"],
)
def test_archives_of_other_kinds_are_refused(tmp_path, offset, value):
    path = tmp_path / "a.npz"
    np.savez(path, X=X, y=Y)
    content = bytearray(path.read_bytes())
    entry = content.index(b"PK\x01\x02")
    struct.pack_into("<H", content, entry + offset, value)
    path.write_bytes(content)
    assert "; " in refusal_of(path)


def test_archives_after_other_bytes_are_read_or_refused(tmp_path):
    np.savez(tmp_path / "a.npz", X=X, y=Y)
    (tmp_path / "b.npz").write_bytes(b"bytes before" + (tmp_path / "a.npz").read_bytes())
    assert np.array_equal(read(tmp_path / "b.npz").X, X)


HEADERS = {
    "an open bracket": (b"(3, 2)", b"((((2)"),
    "a negative size": (b"(3, 2)", b"(-3,2)"),
    "a size beyond integers": (b"(3, 2), }" + 9 * b" ", b"(3, 9223372036854), }"[:18]),
    "an unknown version": (b"\x93NUMPY\x01", b"\x93NUMPY\x09"),
    "a header of gigabytes": (b"\x93NUMPY\x01\x00v\x00{'", b"\x93NUMPY\x02\x00v\x00\xff\x7f"),
    "a type without a size": (b"'<f8'", b"'|S0'"),
    "a type of several numbers": (b"'<f8'", b"'2f8'"),
}


@pytest.mark.parametrize(("old", "new"), HEADERS.values(), ids=HEADERS)
def test_damaged_headers_are_refused(tmp_path, old, new):
    content = npy(X)
    assert old in content
    damaged = content.replace(old, new)
    assert refusal_of(archive_of(tmp_path / "a.npz", damaged))
    (tmp_path / "a.npy").write_bytes(damaged)
    with pytest.raises(DataError):
        list(RowsForModel(tmp_path / "a.npy", Expected(2)).blocks())


def test_names_of_damaged_arrays_may_have_braces(tmp_path):
    with zipfile.ZipFile(tmp_path / "a.npz", "w") as archive:
        archive.writestr("{0}.npy", b"")
    assert refusal_of(tmp_path / "a.npz").startswith("the array '{0}.npy' is damaged")


def test_arrays_that_are_cut_short_are_refused(tmp_path):
    assert "is cut short" in refusal_of(archive_of(tmp_path / "a.npz", npy(X)[:-8]))


@pytest.mark.parametrize("code", [0x110000, 0xD800])
def test_text_that_is_not_unicode_is_refused(tmp_path, code):
    content = npy(np.array(["a", "b", "b"])).replace(struct.pack("<I", ord("a")), struct.pack("<I", code))
    with zipfile.ZipFile(tmp_path / "a.npz", "w") as archive:
        archive.writestr("X.npy", npy(X))
        archive.writestr("y.npy", content)
    assert "not Unicode" in refusal_of(tmp_path / "a.npz")
    assert "real numbers" in refusal_of(archive_of(tmp_path / "b.npz", npy(np.array([["a"], ["b"], ["c"]]))))
    np.save(tmp_path / "X.npy", X)
    (tmp_path / "y.npy").write_bytes(content)
    with pytest.raises(DataError, match="not Unicode"):
        list(RowsForModel(tmp_path / "X.npy", Expected(2), tmp_path / "y.npy").blocks())


@pytest.mark.parametrize("labels", [Y * 1j, np.zeros(3, [("a", float)])], ids=["complex", "records"])
def test_labels_without_an_order_are_refused(tmp_path, labels):
    np.savez(tmp_path / "a.npz", X=X, y=labels)
    assert refusal_of(tmp_path / "a.npz").startswith("labels must be numbers or text")


@pytest.mark.parametrize("encoded", [True, False])
def test_records_as_labels_of_arrow_files_are_refused(tmp_path, encoded):
    pa = pytest.importorskip("pyarrow")
    labels = pa.array([{"a": 1}, {"a": 2}, {"a": 2}])
    if encoded:
        labels = pa.DictionaryArray.from_arrays([0, 1, 1], labels)
    table = pa.table({"x": [1.0, 2.0, 3.0], "y": labels})
    with pa.ipc.new_file(tmp_path / "a.arrow", table.schema) as file:
        file.write_table(table)
    assert refusal_of(tmp_path / "a.arrow").startswith("column 'y' holds struct<a: int64>, not labels")


def test_labels_with_exponents_of_any_length_are_text(tmp_path):
    (tmp_path / "a.csv").write_text("a,y\n1,1e-99999999999999999999\n2,0\n")
    assert read(tmp_path / "a.csv").y.tolist() == ["1e-99999999999999999999", "0"]


def test_control_characters_are_no_blanks_around_numbers(tmp_path):
    (tmp_path / "a.csv").write_bytes(b"a,y\n1,0\n2.5\x1c,1\n")
    assert refusal_of(tmp_path / "a.csv").endswith("name the column with --drop or --label.")


def test_messages_show_a_part_of_long_names(tmp_path):
    (tmp_path / "a.csv").write_text(f"{'a' * 100_000};\n1;2\n")
    message = refusal_of(tmp_path / "a.csv")
    assert len(message) < LONGEST + 100
    assert message.endswith(".")


def test_parquet_files_with_other_rows_than_they_declare_are_refused(tmp_path):
    pa = pytest.importorskip("pyarrow", reason="pip install 'maxmargin[arrow]'")
    parquet = pytest.importorskip("pyarrow.parquet")
    path = tmp_path / "a.parquet"
    parquet.write_table(pa.table({"u": np.arange(40.0), "y": np.arange(40) % 2}), path, compression="none")
    content, refusals = path.read_bytes(), set()
    footer = len(content) - 8 - struct.unpack("<I", content[-8:-4])[0]
    # 40 as Thrift writes it: numbers of rows and of values
    for place in (k for k in range(footer, len(content) - 8) if content[k] == 80):
        for count in (0, 1, 39, 41):
            path.write_bytes(content[:place] + bytes([2 * count]) + content[place + 1 :])
            for opened in (read, open_rows):
                try:
                    assert opened(path).X.shape == (40, 1)
                except DataError as error:
                    refusals.add(str(error).removeprefix(f"{path}: ").partition(":")[0])
    assert {
        "the file declares 0 rows and holds 40",
        "the file declares 41 rows and holds 40",
        "the file declares 40 rows and holds 1",
        "the file declares 40 rows and holds 0",
    } <= refusals
