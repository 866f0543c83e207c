"""Arrow data that are no files: data sets of pyarrow, tables, data frames, and streams of record batches."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from ..numerics.fault import faults_of
from .blocks import Block
from .columnar import arrow_blocks, arrow_faults, columns_of_schema
from .files import Digest, names_files
from .sources import Source
from .table import DataError, Expected

NAME = Path("Arrow data")  # in messages, in place of a file
KIND = "Arrow"


@dataclass
class StreamSource(Source):
    """Arrow data, which `blocks` reads once.

    Attributes
    ----------
    reader : pyarrow.dataset.Dataset or pyarrow.RecordBatchReader
        A reader can be read once.
    """

    reader: Any

    def blocks(
        self, k: int, size: int, digest: Digest | None = None, of_labels: Digest | None = None
    ) -> Iterator[Block]:
        """Read the data block by block; digests are left alone."""
        features: Any = self.features
        wanted = features if self.label is None else [*features, self.label]
        rows = max(1, size // (8 * len(features) + 8))
        with faults_of(NAME, DataError), arrow_faults(KIND):
            yield from arrow_blocks(
                _tables(self.reader, wanted, rows), features, self.label, self.dtype == np.float32
            )

    def record(self, path: Path) -> dict[str, Any]:
        """Return a record as of a file, which is always the same."""
        return {"path": str(path), "size": 1, "mtime_ns": 0}


def opened_stream(data: Any, expected: Expected) -> StreamSource:
    """Return the columns of Arrow data, whose rows are not read yet.

    Raises
    ------
    DataError
        If a column is missing, or holds no numbers.
    """
    with faults_of(NAME, DataError), arrow_faults(KIND):
        import pyarrow as pa

        reader = data if names_files(data) else pa.RecordBatchReader.from_stream(data)
        features, label, single = columns_of_schema(reader.schema, expected)
    kind = np.dtype(np.float32 if single else np.float64)
    return StreamSource([NAME], [], KIND, features, label, len(features), kind, expected, reader)


def _tables(reader: Any, wanted: list[str], rows: int) -> Iterator[Any]:
    """Yield the columns as tables of at most so many rows."""
    import pyarrow as pa

    batches = reader
    if names_files(reader):  # a data set would read many batches ahead
        batches = reader.to_batches(columns=wanted, batch_size=rows, batch_readahead=1, fragment_readahead=1)
    for batch in batches:
        table = pa.Table.from_batches([batch]).select(wanted)
        for start in range(0, table.num_rows, rows):
            yield table.slice(start, rows)
