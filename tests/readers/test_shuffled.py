"""Rows of svmlight text in random order: each row once, at places that are random, with the lines of faults."""

import gzip
from pathlib import Path

import numpy as np
import pytest

from maxmargin.readers import DataError
from maxmargin.readers.shuffled import Reader, ShuffleBuffer

N = 3000
SIZES = [0, 2_000, 20_000, 10_000_000]  # in order; smaller than a block; larger; larger than the data


def text(end=b"\n"):
    """Return rows whose value is their number, with comments and blank lines, some longer than a block of a file."""
    rng = np.random.default_rng(0)
    lines = []
    for k in range(N):
        more = b"".join(b" %d:1" % j for j in range(3, 3 + (2000 if k % 700 == 0 else rng.integers(9))))
        lines += [
            b"%d 1:%d 2:%d" % (2 * (k >= N // 2) - 1, k // 50, k % 50)
            + more
            + (b" # word" if k % 5 == 0 else b"")
        ]
        lines += [b"", b"# comment"] if k % 97 == 0 else []
    return end.join(lines)


def numbers(path, size, seed=0, n_features=None):
    """Return the numbers of the rows in the order in which they leave the buffer."""
    buffer = ShuffleBuffer(size, np.random.default_rng(seed))
    found = []
    for block in Reader(path, n_features, buffer):
        found += list(buffer.add(block))
    found += list(buffer.rest())
    first = 1 - found[0].first_index  # the column of the index 1
    rows = [block.X[:, [first, first + 1]].toarray() @ [50, 1] for block in found]
    order = np.concatenate(rows).astype(int)
    labels = np.concatenate([block.y for block in found])
    assert np.array_equal(labels, np.where(order >= N // 2, 1, -1))
    return order


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("n_features", [None, 3000])
@pytest.mark.parametrize("suffix", [".svm", ".svm.gz"])
def test_every_row_comes_once_and_the_seed_decides_the_order(size, n_features, suffix, tmp_path):
    path = tmp_path / f"rows{suffix}"
    for content in (text(), b"\xef\xbb\xbf" + text(b"\r\n") + b"\r\n"):
        path.write_bytes(gzip.compress(content) if suffix.endswith("gz") else content)
        order = numbers(path, size, 0, n_features)
        assert np.array_equal(np.sort(order), np.arange(N))
        assert np.array_equal(order, np.arange(N)) == (size == 0)
        assert np.array_equal(numbers(path, size, 0, n_features), order)
        assert np.array_equal(numbers(path, size, 1, n_features), order) == (size == 0)


def test_a_small_buffer_mixes_blocks_of_the_whole_file(tmp_path):
    """The file is sorted by label, and has 45 blocks, of which the buffer holds 20: every tenth has both labels."""
    path = tmp_path / "rows.svm"
    lines = (b"%d 1:%d 2:%d # %50d\n" % (2 * (k >= N // 2) - 1, k // 50, k % 50, 0) for k in range(N))
    path.write_bytes(b"".join(lines))
    for seed in range(3):
        shares = [np.mean(part >= N // 2) for part in np.array_split(numbers(path, 60_000, seed), 10)]
        assert 0.1 < min(shares) < max(shares) < 0.9


@pytest.mark.parametrize("size", SIZES)
def test_faults_name_the_line_and_labels_the_row(size, tmp_path):
    path = tmp_path / "rows.svm"
    lines = text().split(b"\n")
    lines[2000] = b"1 3:x"
    path.write_bytes(b"\n".join(lines))
    with pytest.raises(DataError, match="line 2001: the value of '3:x'"):
        numbers(path, size)
    path.write_bytes(text() + b"\n1 3:")
    with pytest.raises(DataError, match=f"line {len(lines) + 1}: .* cut short here"):
        numbers(path, size)
    path.write_bytes(text())
    reader = Reader(path, None, ShuffleBuffer(size, np.random.default_rng(0)))
    for block in reader:
        values = block.X[:, [1, 2]].toarray() @ [50, 1]
        assert [reader.row(k) for k in (0, len(values) - 1)] == [int(values[k]) + 1 for k in (0, -1)]


@pytest.mark.parametrize("size", SIZES)
def test_the_first_index_is_that_of_the_beginning_of_the_file(size, tmp_path):
    path = tmp_path / "rows.svm"
    path.write_bytes(b"1 0:7 1:1\n" + b"1 1:1 2:1\n" * 2000)
    for seed in range(3):
        buffer = ShuffleBuffer(size, np.random.default_rng(seed))
        blocks = list(Reader(path, 3, buffer))
        assert {block.first_index for block in blocks} == {0}
        assert sum(block.X[:, 0].sum() for block in blocks) == 7.0


def test_a_file_that_becomes_shorter_is_refused(tmp_path):
    path = tmp_path / "rows.svm"
    path.write_bytes(text())
    blocks = iter(Reader(path, None, ShuffleBuffer(20_000, np.random.default_rng(0))))
    next(blocks)
    path.write_bytes(text()[:100])
    with pytest.raises(DataError, match="became shorter while it was read"):
        list(blocks)


def test_a_file_of_comments_has_no_rows(tmp_path):
    path = tmp_path / "rows.svm"
    path.write_bytes(b"# comment\n" * 1000)
    for size in SIZES:
        with pytest.raises(DataError, match="there are no rows"):
            list(Reader(Path(path), None, ShuffleBuffer(size, np.random.default_rng(0))))
