"""Rows of Spark frames: blocks that the executors keep, and functions of them."""

from __future__ import annotations

import pickle
from collections.abc import Callable, Iterator
from concurrent.futures import Future, wait
from functools import partial
from math import isqrt
from typing import Any
from uuid import uuid4

import pandas as pd
import pyarrow as pa
from pyspark import InheritableThread  # pyright: ignore[reportMissingImports]
from pyspark.sql.functions import floor  # pyright: ignore[reportMissingImports]

from .partitions import M, Merger, Partition, Partitions, merged

# Seconds between two checks whether to stop: well below the second in which a fit ends, and rare beside jobs.
POLL = 0.2
# How often jobs are cancelled, with POLL seconds between: jobs may begin late. A driver that does not answer, and tasks
# that do not end, must not keep the caller; ten seconds are ten times what cancelled jobs take.
CANCELLED = 50
# Results that the driver merges by itself. Of more partitions the executors merge groups first, in a shuffle, which
# takes some tenths of a second; the driver then holds about the root of the number of partitions. A round value.
MERGED = 16
# The merged results of a function for one or more partitions, of which the first has this number.
RESULT = "part long, result binary"
# Makes X, codes and weights of a block of rows.
Decode = Callable[[Any], tuple[Any, Any, Any]]


class SparkPartitions(Partitions):
    """Partitions whose rows the executors of Spark keep.

    Parameters
    ----------
    blocks : pyspark.sql.DataFrame
        Persisted blocks of rows: the number `part` of the partition of each, the place `first` of its first row in
        the partition, and `rows`, bytes.
    decode : callable
        Makes the arguments X, codes and weights of a `Partition` of bytes; it can be pickled.
    firsts : dict
        The number of the first row of each partition.
    shape : (int, int)
    sparse : bool
    """

    def __init__(
        self, blocks: Any, decode: Decode, firsts: dict[int, int], shape: tuple[int, int], sparse: bool
    ) -> None:
        self.shape, self.sparse = shape, sparse
        self._blocks, self._decode, self._firsts = blocks.select("part", "first", "rows"), decode, firsts

    def reduce(self, function: Callable[[Partition], M], interrupted: Callable[[], bool]) -> M | None:
        results = self._blocks.mapInArrow(partial(_apply, function, self._decode, self._firsts), RESULT)
        if len(self._firsts) > MERGED:
            group = floor(results["part"] / isqrt(len(self._firsts)))
            results = results.groupBy(group).applyInPandas(_merge, RESULT)
        rows = run(results, interrupted)
        return None if rows is None else merged(pickle.loads(row.result) for row in sorted(rows))


def run(frame: Any, interrupted: Callable[[], bool] = bool) -> list[Any] | None:
    """Compute the rows of a frame; cancel its jobs and return None if interrupted.

    Jobs that do not end within CANCELLED calls are left to a thread that does not keep the process.
    """
    session, tag, found = frame.sparkSession, f"maxmargin-{uuid4()}", Future[list[Any]]()
    # a session of Spark Connect has no context
    context = None if "connect" in type(session).__module__ else session.sparkContext

    def collect() -> None:
        """Compute the rows, with a tag for the jobs of this thread."""
        try:
            context.addJobTag(tag) if context else session.addTag(tag)
            found.set_result(frame.collect())
        except BaseException as error:
            found.set_exception(error)

    InheritableThread(collect, session=session, daemon=True).start()
    try:
        while not found.done():
            if interrupted():
                return None
            wait([found], POLL)
        return found.result()
    finally:
        for _ in range(CANCELLED):
            if found.done():
                break
            context.cancelJobsWithTag(tag) if context else session.interruptTag(tag)
            wait([found], POLL)


def record(**values: Any) -> pa.RecordBatch:
    """Return a batch of one row."""
    return pa.RecordBatch.from_pylist([values])


def _apply(
    function: Callable[[Partition], M], decode: Decode, firsts: dict[int, int], batches: Iterator[Any]
) -> Iterator[Any]:
    """Yield the merged results of a function for the blocks of a partition."""
    merger, part = Merger[M](), None
    for batch in batches:
        parts, places, blocks = batch.columns
        for part, place, block in zip(parts.to_pylist(), places.to_pylist(), blocks, strict=True):
            merger.add(function(Partition(*decode(block.as_buffer()), firsts[part] + place)))
    if part is not None:
        yield record(part=part, result=pickle.dumps(merger.merged()))


def _merge(results: pd.DataFrame) -> pd.DataFrame:
    """Return the merged results of a group of partitions as one."""
    results = results.sort_values("part")
    result = pickle.dumps(merged(map(pickle.loads, results["result"])))
    return pd.DataFrame({"part": [results["part"].iloc[0]], "result": [result]})
