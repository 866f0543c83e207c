"""CSV and TSV block by block: parsed by pyarrow; by Python from the first row on that pyarrow refuses."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from typing import IO, Any

import numpy as np

from ..numerics.representable import WHOLE, first_rounded_text
from .blocks import Block
from .delimited import BOOLEANS, TextTable, rows_of
from .files import Digest, open_data
from .layout import END, SPACES

# bytes of text that pyarrow reads at a time, of which it keeps dozens: with 4 MB a text of 300 MB took 1.8 times as
# long as with 256 kB, and three times the memory
_BLOCK = 1 << 18


class _RefusedError(Exception):
    """A block that Python has to read, which accepts it or names the fault."""


def stream_delimited(table: TextTable, size: int, digest: Digest | None) -> Iterator[Block]:
    """Read a text table block by block, of about `size` bytes of text, with or without labels.

    Raises
    ------
    Fault
        At the first line that is wrong, as `read_delimited` does.
    """
    done, label, rounded = 0, table.label, _Rounded(table)
    try:
        for X, texts, codes in _arrow_blocks(table, size, digest):
            found = rounded.first(done, X)
            done += len(X)
            yield Block(X, texts, codes, found) if label else Block(X, None, slice(None), found)
        return
    except _RefusedError:
        pass
    rows = islice(rows_of(table), done, None)
    while block := list(islice(rows, max(1, size // (8 * len(table.names))))):
        X, texts = np.array([row for _, row in block]), dict.fromkeys(text for text, _ in block)
        places = {text: k for k, text in enumerate(texts)}
        codes, found = np.array([places[text] for text, _ in block]), rounded.first(done, X)
        yield Block(X, list(texts), codes, found) if label else Block(X, None, slice(None), found)
        done += len(X)
    if digest is not None:
        digest.read(table.path)


def _arrow_blocks(
    table: TextTable, size: int, digest: Digest | None
) -> Iterator[tuple[np.ndarray, list[str], np.ndarray]]:
    """Yield features, distinct labels and the place of each row's label, of each block of text.

    Raises
    ------
    _RefusedError
        At a block that pyarrow refuses, or that may have a fault, and where pyarrow is not installed.
    """
    try:
        from pyarrow import ArrowException, csv
    except ImportError:
        raise _RefusedError from None
    if table.layout.delimiter == SPACES:  # pyarrow does not read runs of spaces as one
        raise _RefusedError
    names, features, label = table.names, table.features, table.label
    skipped = int(table.layout.header)
    first = next(table.fields(), None)
    if first is None:
        if digest is not None:
            digest.read(table.path)
        return
    fields = dict(zip(names, first[1], strict=False))
    booleans = {name for name in features if fields.get(name, "").strip() in BOOLEANS}
    types = dict.fromkeys(features, "float64") | dict.fromkeys(booleans, "bool")
    if label is not None:
        types[label] = "string"
    last = _LastLine()
    block = max(min(size, _BLOCK), 64 * len(names))  # numbers have fewer than 64 digits: a row fits
    try:
        with (
            open_data(table.path, digest) as file,
            csv.open_csv(
                whole := _WithLastLine(file),
                csv.ReadOptions(use_threads=False, block_size=block, skip_rows=skipped, column_names=names),
                csv.ParseOptions(
                    delimiter=table.layout.delimiter, newlines_in_values=True, invalid_row_handler=last.accept
                ),
                csv.ConvertOptions(
                    column_types=types,
                    include_columns=list(types),
                    null_values=[],
                    true_values=[text for text, number in BOOLEANS.items() if number == "1"],
                    false_values=[text for text, number in BOOLEANS.items() if number == "0"],
                ),
            ) as batches,
        ):
            for batch in batches:
                if batch.num_rows:
                    yield _arrays(batch, features, label)
    except ArrowException:
        raise _RefusedError from None
    if last.count != 1 or whole.has_nul:  # a quote is open
        raise _RefusedError


def _arrays(batch: Any, features: list[str], label: str | None) -> tuple[np.ndarray, list[str], np.ndarray]:
    """Return features, distinct labels and the place of each row's label; no labels where `label` is None."""
    X = np.empty((batch.num_rows, len(features)))
    for j, name in enumerate(features):
        X[:, j] = batch.column(name).to_numpy(zero_copy_only=False)
    coded = None if label is None else batch.column(label).dictionary_encode()
    texts = [] if coded is None else [text.strip() for text in coded.dictionary.to_pylist()]
    with np.errstate(over="ignore", invalid="ignore"):
        finite = np.isfinite(X.sum()) or np.isfinite(X).all()
    if not finite or any(not text or "\n" in text for text in texts):
        raise _RefusedError
    distinct: dict[str, int] = {}
    places = np.array([distinct.setdefault(text, len(distinct)) for text in texts], np.intp)
    return X, list(distinct), places if coded is None else places[coded.indices.to_numpy()]


class _WithLastLine:
    """A file of text for pyarrow, with one more line: it becomes part of the last row where a quote is open."""

    closed = False

    def __init__(self, file: IO[bytes]) -> None:
        self._file, self._rest, self.has_nul = file, f"\n{END}\n".encode(), False

    def read(self, size: int = -1) -> bytes:
        """Return the next bytes."""
        text = self._file.read(size)
        self.has_nul = self.has_nul or b"\0" in text
        if not text:
            text, self._rest = self._rest, b""
        return text

    def close(self) -> None:
        """Leave the file open."""


class _LastLine:
    """The number of rows that are the additional line alone."""

    def __init__(self) -> None:
        self.count = 0

    def accept(self, row: Any) -> str:
        """Skip this row, and refuse other rows of a wrong number of columns."""
        if row.text != END:
            return "error"
        self.count += 1
        return "skip"


class _Rounded:
    """The first whole number of a table that float64 does not hold, looked for from the first large number on."""

    def __init__(self, table: TextTable) -> None:
        self._table, self._places = table, table.places
        self._rows, self._next = None, 0
        self._found: str | None = None

    def first(self, before: int, X: np.ndarray) -> str | None:
        """Return that number if it is among these rows, or was found before; `before` rows come before them."""
        if self._found is None and max(X.max(), -X.min()) >= WHOLE:
            self._rows = self._table.fields() if self._rows is None else self._rows
            rows = islice(self._rows, before - self._next, before - self._next + len(X))
            self._found = first_rounded_text(row[k] for _, row in rows for k in self._places)
            self._next = before + len(X)
        return self._found
