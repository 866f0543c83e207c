"""Svmlight text: numbers and faults compared with a reader of a few lines of Python."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from maxmargin.readers import DataError, read
from maxmargin.readers.svmlight import stream_svmlight

# compiled, and interpreted in the part of the suite where nothing is compiled
both = pytest.mark.parametrize(
    "way", ["compiled", pytest.param("interpreted", marks=pytest.mark.interpreted)]
)
NUMBERS = st.one_of(
    st.floats(allow_nan=False, allow_infinity=False).map(repr),
    st.from_regex(r"[+-]?([0-9]{1,24}\.?[0-9]{0,24}|\.[0-9]{1,24})([eE][+-]?[0-9]{1,3})?", fullmatch=True),
    st.integers(-(2**70), 2**70).map(str),
    st.sampled_from(["-0", "+.5e-3", "0e999", "0." + "0" * 400 + "1e400", "9007199254740993.0"]),
).filter(lambda text: math.isfinite(float(text)))
VALID = b"1 1:1 2:-0.5 # two\n-1 qid:3 1:7\t4:.5 \r\n\n+2 2:1e3 3:12.25 5:6\n0\n"
# whole words, right and wrong; and signs that end or change words
WORDS = (
    b"1 -1 +1 1: :1 1:1 2:0.5 2:1e 4:-. 7:1_0 +8:1 1_0:2 -0:1 0:1 qid:3 qid x nan inf 0x1 1,2 1e999".split()
)
SIGNS = [bytes([sign]) for sign in b"\n \t\r\x0b\x0c#:\0\xa0\x1ce-+_.0189"]
EDITS = st.lists(
    st.tuples(
        st.integers(0, len(VALID)),
        st.integers(0, 2),
        st.sampled_from([*SIGNS, *WORDS, *(b" " + word for word in WORDS)]),
    ),
    max_size=2,
)


def naive(text):
    """Return labels and entries of the rows of a text as lists, None where a line is wrong."""
    labels, rows = [], []
    for line in text.split(b"\n"):
        if b"\r" in line.partition(b"#")[2].rstrip(b"\r"):
            return None
        words = line.split(b"#")[0].split()
        if not words:
            continue
        try:
            labels.append(float(words.pop(0)))
            if words and words[0].startswith(b"qid:"):
                int(words.pop(0)[4:])
            pairs = [word.split(b":", 1) for word in words]
            rows.append([(int(index), float(value)) for index, value in pairs])
        except ValueError:
            return None
        indices = [-1, *(index for index, _ in rows[-1])]
        numbers = [labels[-1], *(value for _, value in rows[-1])]
        if sorted({*indices}) != indices or indices[-1] >= 2**31 or not all(map(math.isfinite, numbers)):
            return None
        if abs(labels[-1]) >= 2**53:
            return None
    return labels, rows


def bits(numbers):
    return np.array(numbers, float).view(np.int64).tolist()


class TestNumbers:
    @both
    @given(texts=st.lists(NUMBERS, min_size=1, max_size=5))
    def test_every_notation_is_the_number_of_float(self, way, texts, tmp_path_factory):
        path = tmp_path_factory.getbasetemp() / f"numbers-{way}.svm"
        path.write_text("".join(f"0.5 1:{text}\n" for text in texts))
        assert bits(read(path).X.data) == bits([float(text) for text in texts])
        labels = [text for text in [*texts, "0.5"] if abs(float(text)) < 2**53]  # not all whole
        path.write_text("".join(f"{text} 1:1\n" for text in labels))
        assert bits(read(path).y) == bits([float(text) for text in labels])

    @pytest.mark.parametrize("form", ["%r", "%.17g", "%.16e", "%.6f", "%.4g"])
    def test_many_random_numbers_are_those_of_float(self, form, tmp_path):
        rng = np.random.default_rng(0)
        numbers = rng.normal(size=20_000) * 10.0 ** rng.integers(-8, 9, size=20_000)
        texts = [form % number for number in numbers.tolist()]
        (tmp_path / "a").write_text("".join(f"1 1:{text}\n" for text in texts))
        assert bits(read(tmp_path / "a").X.data) == bits([float(text) for text in texts])

    @pytest.mark.parametrize("digits", ["9007199254740993", "18014398509481985", "100000000000000000000001"])
    def test_whole_numbers_that_are_rounded_are_reported(self, digits, tmp_path):
        (tmp_path / "a").write_text(f"1 1:9007199254740992 2:0.{digits}\n-1 1:{digits} 2:1e30\n")
        assert read(tmp_path / "a").rounded == digits


class TestFaults:
    @both
    @settings(max_examples=300)
    @given(edits=EDITS)
    def test_lines_are_accepted_and_refused_as_by_python(self, way, edits, tmp_path_factory):
        text = VALID
        for place, removed, inserted in edits:
            text = text[:place] + inserted + text[place + removed :]
        path = tmp_path_factory.getbasetemp() / f"lines-{way}.svm"
        path.write_bytes(b"#" * 5000 + b"\n" + text)  # a file that begins with zero bytes is no text
        expected = naive(text)
        if expected is None or not expected[0]:
            with pytest.raises(DataError):
                read(path)
            return
        labels, rows = expected
        indices = [index for row in rows for index, _ in row]
        first, table = 0 if 0 in indices else 1, read(path)
        assert (table.first_index, table.y.tolist()) == (first, labels)
        assert (table.X.indices + first).tolist() == indices
        assert table.X.data.tolist() == [value for row in rows for _, value in row]
        assert table.X.indptr.tolist() == np.cumsum([0, *map(len, rows)]).tolist()
        assert table.X.shape[1] == max(indices, default=first) + 1 - first

    @both
    @pytest.mark.parametrize(
        "word", ["qidfoo", "qid", "qid:", "qid:x", "qid:1.5", "qid3:1", "qid:3:4", "qid::"]
    )
    def test_only_a_query_with_a_number_is_left_out(self, way, word, tmp_path):
        (tmp_path / "a").write_text(f"1 qid:7 1:1\n2 {word} 1:1\n")
        with pytest.raises(DataError, match=f"a, line 2: .*{word}"):
            read(tmp_path / "a")

    @both
    @pytest.mark.parametrize("text", ["1 1:1\n2 1:2 # a\r1 1:3\n", "1 1:1\n#\r2 1:2\r1 1:3\n"])
    def test_rows_after_a_carriage_return_in_a_comment_are_not_left_out(self, way, text, tmp_path):
        (tmp_path / "a").write_text(text)
        with pytest.raises(DataError, match="a, line 2: a carriage return is within a comment"):
            read(tmp_path / "a")
        (tmp_path / "a").write_text("1 1:1 # a\r\n2 1:2 #\r\n")
        assert read(tmp_path / "a").y.tolist() == [1, 2]

    @pytest.mark.parametrize("size", [1, 7, 64])
    def test_blocks_of_any_size_are_the_whole(self, size, tmp_path):
        lines = [f"{k % 2} {k % 5}:{k}.25 7:{k} # {k}\n\n" for k in range(40)]
        (tmp_path / "a").write_text("".join(lines).rstrip())
        whole = read(tmp_path / "a")
        blocks = list(stream_svmlight(tmp_path / "a", whole.X.shape[1], size))
        assert np.array_equal(np.vstack([block.X.toarray() for block in blocks]), whole.X.toarray())
        assert np.concatenate([block.y for block in blocks]).tolist() == whole.y.tolist()
