"""Rows of files of any size for a model that is fitted: read once, block by block, without a copy on the disk."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from ..numerics.fault import faults_of
from .arrow_stream import opened_stream
from .blocks import Classes, read_ahead
from .files import Paths, are_paths, data_errors, paths_of
from .sources import CHANGED, opened
from .svmlight import PART, text_rows, texts
from .table import DataError, Expected

# Bytes of text, or of numbers, that are read at a time: less costs calls of the model, more costs memory, of which a
# few blocks are in use at any time. That of `row_cache`.
BLOCK_BYTES = 1 << 20


class RowsForModel:
    """The rows of files in the columns of a model, and the labels of those that have any.

    Parameters
    ----------
    paths : path-like or sequence of path-like
        Files as of `row_cache.open_rows`, or a data set of pyarrow.
    expected : Expected
        Of the model.
    labels : path-like or sequence of path-like, default=None
        The .npy files of the labels, if the rows are in .npy files.

    Attributes
    ----------
    features : list of str or None
    label : str or None
        The columns, if they have names.
    has_labels : bool

    Raises
    ------
    DataError
        If a file cannot be read, or does not fit the model.
    """

    def __init__(
        self, paths: Paths, expected: Expected, labels: Paths | None = None, block_bytes: int | None = None
    ) -> None:
        if are_paths(paths):
            self._source = opened(paths_of(paths), paths_of(labels or ()), expected, expected.n_features)
        else:
            self._source = opened_stream(paths, expected)
        self._classes, self._records = Classes(), list[dict[str, Any]]()
        self.features, self.label = self._source.features, self._source.label
        self.has_labels = self._source.has_labels
        if self._source.is_text and expected.first_index is None:
            first = _first_index(self._source.files)
            self._source.expected = replace(self._source.expected, first_index=first)

    def blocks(self) -> Iterator[tuple[Any, np.ndarray | None]]:
        """Yield the rows once, as arrays or CSR matrices, with the number of the label of each, or None.

        Raises
        ------
        DataError
            At the first fault of a file, and if there are no rows.
        """
        for k, path in enumerate(self._source.files):
            read, rows = [path, *self._source.label_files[k : k + 1]], 0
            records = [self._source.record(one) for one in read]
            with closing(read_ahead(self._source.blocks(k, BLOCK_BYTES))) as blocks:
                for block in blocks:
                    numbers = None
                    with faults_of(path, DataError):
                        if block.labels is not None:
                            numbers = self._classes.numbered(block, rows)
                    rows += block.X.shape[0]
                    yield block.X, numbers
            for one, record in zip(read, records, strict=True):
                if self._source.record(one) != record:
                    raise DataError(f"{one}: {CHANGED}")
            self._records.append(records[0] | {"rows": rows})
        if not any(record["rows"] for record in self._records):
            raise DataError(f"{self._source.files[0]}: the file holds no rows.")

    def labels(self) -> np.ndarray:
        """Return the label of each number, when all blocks have been read.

        Raises
        ------
        DataError
            If a label is NaN or infinite, or the header of a table seems to be a row.
        """
        classes, places = self._classes.sorted()
        self._source.check_classes(self._classes, classes, self._records)
        return classes[places]


def _first_index(files: list[Path]) -> int:
    """Return the first index of svmlight text, 0 or 1, by the rule of `readers.read`: all of it is read."""
    for path in files:
        with data_errors(path):
            if any(rows.lowest == 0 for rows, _, _ in text_rows(texts(path, PART), None, None)):
                return 0
    return 1
