"""Rows of Dask collections: blocks as matrices, read once as partitions, and functions of blocks.

With a client the rows stay in the memory of the workers; each pass moves sums and the rows near the margin. A worker
that dies costs the recomputation of its partitions: Dask keeps the tasks that made them. Without a client they are
computed anew in each pass.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from concurrent.futures import CancelledError
from contextlib import suppress
from functools import partial
from typing import Any

import numpy as np
import scipy.sparse as sp
from dask import config
from dask.base import compute
from dask.delayed import delayed

from ..numerics.columns import ENCODE, canonical, plain_labels
from ..numerics.files import place_of
from .blocks import Block, ClusterPartitions, M, block_of, merged

# Seconds between two checks whether to stop: well below the second in which a fit ends, and rare beside messages.
POLL = 0.2
# How often a task is tried again that has failed, since reading from a network may fail once.
RETRIES = 2


def check_columns(X: Any) -> None:
    """Refuse collections that are no matrices of numbers, and arrays whose columns are in several chunks."""
    if X.ndim != 2:
        raise ValueError(f"X must have two dimensions, not {X.ndim}: X.reshape(-1, 1) makes a column.")
    if hasattr(X, "numblocks") and X.numblocks[1] != 1:
        chunks = X.numblocks[1]
        raise ValueError(f"all columns of X must be in one chunk, not in {chunks}: X.rechunk({{1: -1}}).")
    types = X.dtypes.items() if hasattr(X, "dtypes") else [("", X.dtype)]
    for name, kind in types:
        if getattr(kind, "kind", "O") not in "biuf":
            where = f"column {name!r} of X" if hasattr(X, "dtypes") else "X"
            raise ValueError(f"{where} holds {kind}, and no numbers: {ENCODE}.")


def unmasked(numbers: Any) -> Any:
    """Return numbers with NaN, which is refused, for masked entries: NumPy would read what is under the mask."""
    return numbers.astype(float).filled(np.nan) if np.ma.is_masked(numbers) else numbers


def matrix(X: Any) -> Any:
    """Return a block of rows as an array in C order or a canonical CSR matrix, of float32 or float64."""
    if hasattr(X, "to_numpy"):
        single = len(X.columns) and all(kind == np.float32 for kind in X.dtypes)
        X = X.to_numpy(dtype=np.float32 if single else np.float64, na_value=np.nan)
    X = X.tocsr() if sp.issparse(X) else np.asarray(unmasked(X))
    X = X if X.dtype in (np.float32, np.float64) else X.astype(np.float64)
    return canonical(X) if sp.issparse(X) else np.ascontiguousarray(X)


def example_row(X: Any, columns: int) -> Any:
    """Return one row of zeros of the same kind, with the names of the columns; `columns` is used where X has none."""
    if hasattr(X, "columns"):
        import pandas

        return pandas.DataFrame(np.zeros((1, len(X.columns))), columns=X.columns)
    width = columns if np.isnan(X.shape[1]) else X.shape[1]
    return np.zeros((1, width), X.dtype)


def map_blocks(function: Callable[[Any], np.ndarray], X: Any, columns: int, names: Any) -> Any:
    """Return the results of a function of matrices for all blocks of rows, as a lazy collection.

    Parameters
    ----------
    function : callable
        Returns an array with one row for each row.
    X : dask.array.Array or dask.dataframe.DataFrame of shape (n, d)
    columns : int
        As of `example_row`.
    names : ndarray
        Names of the columns of a result with two dimensions.

    Returns
    -------
    dask.array.Array, or dask.dataframe.Series or DataFrame with the index of X
    """
    example = example_row(X, columns)
    block = partial(_of_block, function, names)
    found = block(example)
    if hasattr(X, "map_partitions"):
        return X.map_partitions(block, meta=found.iloc[:0])
    sizes = {"drop_axis": 1} if found.ndim == 1 else {"chunks": (X.chunks[0], found.shape[1:])}
    return X.map_blocks(block, dtype=found.dtype, meta=found[:0], **sizes)


def _of_block(function: Callable[[Any], np.ndarray], names: Any, X: Any) -> Any:
    """Return the result for a block of rows, which may have none; of a frame with its index."""
    rows = matrix(X)
    found = function(rows if rows.shape[0] else np.zeros((1, rows.shape[1])))[: rows.shape[0]]
    if not hasattr(X, "to_numpy"):
        return found
    import pandas

    if found.ndim == 1:
        return pandas.Series(found, index=X.index)
    return pandas.DataFrame(found, index=X.index, columns=names)


class DaskPartitions(ClusterPartitions):
    """Rows, labels and sample weights of Dask collections, read once.

    With a client the workers keep them.

    Parameters
    ----------
    X, y, sample_weight
        As of `estimators.partitioned.fit_cluster`.
    names : sequence of str, default=None
        The names of the features where y is that of a column of X; None for all other columns.
    interrupted : callable, default=bool
        Whether to stop.

    Raises
    ------
    ValueError
        If the collections do not fit together, or rows cannot be used; the message names the remedy.
    ReadingStoppedError
        If the reading was stopped.
    """

    def __init__(
        self, X: Any, y: Any, sample_weight: Any, names: Any = None, interrupted: Callable[[], bool] = bool
    ) -> None:
        given = check_collections(*columns_of(X, y, sample_weight, names))
        self._client = default_client()
        read = delayed(_read, pure=False)
        self._parts = [read(*blocks) for blocks in zip(*map(_blocks, given), strict=True)]
        if self._client is not None:
            self._parts = list(self._client.persist(self._parts, retries=RETRIES))
        self.describe(interrupted)
        self.example = example_row(given[0], self.shape[1])

    def reduce_blocks(
        self, function: Callable[[int, int, Block], M], interrupted: Callable[[], bool]
    ) -> M | None:
        client = self._client
        if client is None:
            return _computed(self._tree(function), interrupted)
        # sent as a task, not scattered: a worker that dies with it costs no more than its partitions. The warning about
        # large tasks is for those that repeat their arguments.
        with config.set({"distributed.admin.large-graph-warning-threshold": sys.maxsize}):
            sent = client.submit(_itself, function, pure=False)
        try:
            return _result(client.compute(self._tree(sent), retries=RETRIES), interrupted)
        except CancelledError as lost:
            raise RuntimeError(
                "Dask has lost rows with the worker that held them, and cannot compute them again, as they were "
                "scattered: make the collections from files, or from arrays with dask.array.from_array."
            ) from lost

    def _tree(self, function: Any) -> Any:
        """Return the task that merges the results of all partitions, as a tree in the order of the rows."""
        level = [delayed(_apply, pure=False)(function, k, part) for k, part in enumerate(self._parts)]
        while len(level) > 1:
            groups = [level[k : k + 8] for k in range(0, len(level), 8)]
            level = [delayed(merged, pure=False)(group) for group in groups]
        return level[0]

    def close(self) -> None:
        self._parts = []


def columns_of(X: Any, y: Any, sample_weight: Any, names: Any) -> tuple[Any, Any, Any]:
    """Return the rows, labels and weights of a data frame where names of its columns are given."""
    given = [name for name in (y, sample_weight) if isinstance(name, str)]
    if not given:
        return X, y, sample_weight
    for name in given:
        if name not in getattr(X, "columns", ()):
            raise ValueError(
                f"X has no column {name!r}; give a Dask Series or array, or the name of a column."
            )
    y, sample_weight = (X[one] if isinstance(one, str) else one for one in (y, sample_weight))
    return X.drop(columns=given) if names is None else X[list(names)], y, sample_weight


def check_collections(X: Any, y: Any, sample_weight: Any) -> list[Any]:
    """Refuse collections that do not fit together; return X, y, and the weights unless they are None."""
    check_columns(X)
    given = {"X": X, "y": y} | ({} if sample_weight is None else {"sample_weight": sample_weight})
    blocks = _count(X)
    for name, other in list(given.items())[1:]:
        if place_of(other) != "dask":
            raise ValueError(
                f"{name} must be a Dask array or Series, as X is a Dask collection; got {type(other).__name__}: "
                f"dask.array.from_array({name}, chunks=X.chunks[0]) makes one of an array."
            )
        if other.ndim != 1:
            raise ValueError(f"{name} must have one dimension, not {other.ndim}: take its only column.")
        known = hasattr(X, "chunks") and hasattr(other, "chunks")
        known = known and not np.isnan([*X.chunks[0], *other.chunks[0]]).any()
        if _count(other) != blocks or (known and X.chunks[0] != other.chunks[0]):
            raise ValueError(
                f"X and {name} must have the same partitions; X has {blocks}, {name} has {_count(other)}"
                f"{', of other lengths' if _count(other) == blocks else ''}: {name}.rechunk(X.chunks[0]) for arrays, "
                f"{name}.repartition(divisions=X.divisions) for data frames."
            )
    return list(given.values())


def _count(collection: Any) -> int:
    """Return the number of partitions along the rows."""
    return collection.numblocks[0] if hasattr(collection, "numblocks") else collection.npartitions


def _blocks(collection: Any) -> list[Any]:
    """Return the partitions of a collection as Delayed objects.

    Those of a data frame are not fused: how many files are read at once depends on the columns that are.
    """
    if hasattr(collection, "simplify"):
        return list(collection.simplify().to_delayed(optimize_graph=False))
    return collection.to_delayed().ravel().tolist()


def _read(X: Any, y: Any, weights: Any = None) -> Block:
    """Return the rows of partitions of collections."""
    labels = np.asarray(plain_labels(np.where(y.mask, None, y.data) if np.ma.is_masked(y) else y))
    return block_of(
        matrix(X), labels, None if weights is None else np.asarray(unmasked(weights), dtype=float)
    )


def _apply(function: Callable[[int, int, Block], M], part: int, block: Block) -> M | None:
    """Return the result of a function for a partition; None for one without rows."""
    return function(part, 0, block) if block.X.shape[0] or block.fault else None


def default_client() -> Any:
    """Return Dask's default client; None without one, or where another scheduler is configured."""
    # without the module there is no client, and importing it takes time
    distributed = sys.modules.get("distributed")
    if distributed is None or config.get("scheduler", None) not in (
        None,
        "dask.distributed",
        "distributed",
    ):
        return None
    try:
        client = distributed.default_client()
    except ValueError:
        return None
    if client.asynchronous:
        raise ValueError(
            "the default client of Dask is asynchronous: make one with Client(asynchronous=False)."
        )
    return client


class _StoppedError(Exception):
    """Ends the scheduler that runs in this process."""


def _computed(task: Any, interrupted: Callable[[], bool]) -> Any:
    """Return the result of a task; None if interrupted, which tasks that have begun do not notice."""

    def check(*_: Any) -> None:
        """End the scheduler if interrupted."""
        if interrupted():
            raise _StoppedError

    try:
        # for this call only: `with Callback` would also check the tasks of other threads. The entries of a callback are
        # start, start_state, pretask, posttask and finish.
        return compute(task, callbacks=[(None, None, check, check, None)])[0]
    except _StoppedError:
        return None


def _itself(shared: Any) -> Any:
    """Return the argument."""
    return shared


def _result(future: Any, interrupted: Callable[[], bool]) -> Any:
    """Return the result of a future; cancel it and return None if interrupted."""
    import distributed

    try:
        while not future.done():
            if interrupted():
                return None
            with suppress(TimeoutError):
                distributed.wait(future, timeout=POLL)
        return future.result()
    finally:
        if not future.done():
            future.cancel()
