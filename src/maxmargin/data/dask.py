"""Rows of Dask collections: blocks as matrices, read once as partitions, and functions of blocks.

With a client the rows stay in the memory of the workers; each pass moves sums and the rows near the margin. A worker
that dies costs the recomputation of its partitions: Dask keeps the tasks that made them. Without a client they are
computed anew in each pass.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from concurrent.futures import CancelledError
from functools import partial
from typing import Any

import numpy as np
import scipy.sparse as sp
from dask import config
from dask.base import compute
from dask.delayed import delayed

from ..numerics.columns import ENCODE, canonical, plain_labels
from ..numerics.files import place_of
from .partitions import (
    DescribedRows,
    M,
    Part,
    Partitions,
    Rows,
    class_codes,
    describe,
    merged,
    times_factors,
)

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


class DaskRows(DescribedRows):
    """Rows, labels and sample weights of Dask collections, read once.

    With a client the rows are kept on the workers.

    Parameters
    ----------
    X, y, sample_weight
        As of `estimators.partitioned.fit_cluster`.
    interrupted : callable, default=bool
        Whether to stop.

    Raises
    ------
    ValueError
        If the collections do not fit together, or rows cannot be used; the message names the remedy.
    ReadingStoppedError
        If the reading was stopped.
    """

    def __init__(self, X: Any, y: Any, sample_weight: Any, interrupted: Callable[[], bool] = bool) -> None:
        collections = check_collections(X, {"y": y, "sample_weight": sample_weight})
        self._client = default_client()
        blocks = zip(*map(_blocks, collections), strict=True)
        read = delayed(_read, pure=False)
        self._rows = [read(*block) for block in blocks]
        if self._client is not None:
            self._rows = persisted(self._client, self._rows)
        try:
            super().__init__(run(self._client, self._all_descriptions, None, interrupted))
        except BaseException:
            self.close()  # cancels tasks that are not done
            raise
        self.example = example_row(X, self.shape[1])

    def _all_descriptions(self, _: Any) -> Any:
        return delayed(list, pure=False)([delayed(describe, pure=False)(part) for part in self._rows])

    def partitions(self, classes: np.ndarray, factors: np.ndarray | None) -> DaskPartitions:
        encode = delayed(partial(_encoded, classes, factors), pure=False)
        parts = [encode(self._rows[k], int(self.firsts[k])) for k in self.kept]
        self.close()  # workers need not hold them beside the partitions
        return DaskPartitions(parts, self.shape, self.sparse, self._client)

    def close(self) -> None:
        self._rows = []


def check_collections(X: Any, others: dict[str, Any]) -> list[Any]:
    """Refuse collections that do not fit together; return X, y, and the weights unless they are None."""
    check_columns(X)
    blocks = _count(X)
    given: dict[str, Any] = {
        name: other for name, other in others.items() if other is not None or name == "y"
    }
    for name, other in given.items():
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
    return [X, *given.values()]


def _count(collection: Any) -> int:
    """Return the number of partitions along the rows."""
    return collection.numblocks[0] if hasattr(collection, "numblocks") else collection.npartitions


def _blocks(collection: Any) -> list[Any]:
    """Return the partitions of a collection as Delayed objects."""
    found = collection.to_delayed()
    return found.ravel().tolist() if isinstance(found, np.ndarray) else list(found)


def _read(X: Any, y: Any, weights: Any = None) -> Part:
    """Return the rows of blocks."""
    labels = np.asarray(plain_labels(np.where(y.mask, None, y.data) if np.ma.is_masked(y) else y))
    return matrix(X), labels, None if weights is None else np.asarray(unmasked(weights), dtype=float)


def _encoded(
    classes: np.ndarray, factors: np.ndarray | None, part: Part, first: int
) -> tuple[Any, np.ndarray, np.ndarray | None, int]:
    """Return the arguments of a `Rows.consecutive`."""
    X, y, weights = part
    codes = class_codes(y, classes)
    return X, codes, times_factors(weights, codes, factors), first


class DaskPartitions(Partitions):
    """Partitions that Dask computes.

    Parameters
    ----------
    parts : sequence of Delayed
        Each computes the arguments X, codes, weights and first of a `Rows.consecutive`.
    shape : (int, int)
    sparse : bool
    client : distributed.Client or None
        None for the scheduler that Dask is configured to use.
    """

    def __init__(self, parts: Sequence[Any], shape: tuple[int, int], sparse: bool, client: Any) -> None:
        self.shape, self.sparse = shape, sparse
        self._parts, self._client = list(parts), client
        if client is not None:
            self._parts = persisted(client, self._parts)

    def reduce(self, function: Callable[[Rows], M], interrupted: Callable[[], bool]) -> M | None:
        return run(self._client, self._tree, function, interrupted)

    def _tree(self, function: Any) -> Any:
        """Return the task that merges the results of all partitions, as a tree in the order of the rows."""
        level = [delayed(_apply, pure=False)(function, part) for part in self._parts]
        while len(level) > 1:
            groups = [level[k : k + 8] for k in range(0, len(level), 8)]
            level = [delayed(merged, pure=False)(group) for group in groups]
        return level[0]


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


def persisted(client: Any, parts: list[Any]) -> list[Any]:
    """Compute parts on the workers, and keep them there."""
    return list(client.persist(parts, retries=RETRIES))


def run(
    client: Any, task: Callable[[Any], Any], shared: Any, interrupted: Callable[[], bool] = lambda: False
) -> Any:
    """Compute a task, and return its result; None if interrupted.

    Parameters
    ----------
    client : distributed.Client or None
    task : callable
        Returns the Delayed object, from `shared`.
    shared : object
        What many tasks need; each worker gets it once.
    interrupted : callable
        Called every POLL seconds; without a client, before and after each task, in the thread of the caller.
    """
    if client is None:
        return _computed(task(shared), interrupted)
    # sent as a task, not scattered: a worker that dies with it costs no more than its partitions. The warning about
    # large tasks is for those that repeat their arguments.
    with config.set({"distributed.admin.large-graph-warning-threshold": sys.maxsize}):
        sent = client.submit(_itself, shared, pure=False)
    try:
        return _result(client.compute(task(sent), retries=RETRIES), interrupted)
    except CancelledError as lost:
        raise RuntimeError(
            "Dask has lost rows with the worker that held them, and cannot compute them again, as they were scattered: "
            "make the collections from files, or from arrays with dask.array.from_array."
        ) from lost


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
            try:
                distributed.wait(future, timeout=POLL)
            except TimeoutError:
                continue
        return future.result()
    finally:
        if not future.done():
            future.cancel()


def _apply(function: Callable[[Rows], Any], part: tuple[Any, ...]) -> Any:
    """Return the result of a function for a partition."""
    return function(Rows.consecutive(*part))
