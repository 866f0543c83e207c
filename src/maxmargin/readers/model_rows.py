"""Rows of files of any size for a model that is fitted: read once, block by block, without a copy on the disk."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from ..numerics.files import faults_of
from .blocks import Classes, read_ahead
from .files import CHANGED, Paths, data_errors, paths_of
from .sources import opened
from .svmlight import PART, text_rows, texts
from .table import DataError, Expected


class RowsForModel:
    """The rows of files in the columns of a model, and the labels of those that have any.

    Parameters
    ----------
    paths : path-like or sequence of path-like
        Files as of `row_cache.open_rows`, or a data set of pyarrow.
    expected : Expected
        Of the model.

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

    def __init__(self, paths: Paths, expected: Expected) -> None:
        self._source = opened(paths_of(paths), (), expected, expected.n_features)
        self._classes = Classes()
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
        source, stamps, found = self._source, self._source.stamps(), False
        for k, path in enumerate(source.files):
            rows = 0
            with closing(read_ahead(source.blocks(k, PART))) as blocks:
                for block in blocks:
                    numbers = None
                    with faults_of(path, DataError):
                        if block.labels is not None:
                            numbers = self._classes.numbered(block, rows)
                    rows += block.X.shape[0]
                    yield block.X, numbers
            found = found or rows > 0
        if source.stamps() != stamps:
            raise DataError(f"{source.files[0]}: {CHANGED}")
        if not found:
            raise DataError(f"{source.files[0]}: the file holds no rows.")

    def labels(self) -> np.ndarray:
        """Return the label of each number, when all blocks have been read; raise DataError at NaN or infinity."""
        with faults_of(self._source.files[0], DataError):
            classes, places = self._classes.sorted()
        return classes[places]


def _first_index(files: list[Path]) -> int:
    """Return the first index of svmlight text, 0 or 1, by the rule of `readers.read`: all of it is read."""
    for path in files:
        with data_errors(path):
            if any(rows.lowest == 0 for rows in text_rows(texts(path, PART), None, None)):
                return 0
    return 1
