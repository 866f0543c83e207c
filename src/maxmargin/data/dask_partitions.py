"""Rows of Dask collections: on the workers of a cluster, or where Dask's own scheduler computes them.

With a client the rows stay in the memory of the workers. A worker that dies costs the recomputation of its partitions:
Dask keeps the tasks that made them. Without a client they are computed anew in each pass.
"""

from __future__ import annotations

import pickle
import secrets
import sys
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import CancelledError
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from typing import Any

from dask import config
from dask.base import compute
from dask.delayed import delayed

from .partitions import M, Partition, Partitions, merged

# Seconds between two checks whether to stop: well below the second in which a fit ends, and rare beside messages.
POLL = 0.2
# How often a task is tried again that has failed, since reading from a network may fail once.
RETRIES = 2
# Results that one task merges. More make the tree flatter, and bring more results to one worker at the same time.
MERGED = 8
# Bytes of the rows that are processed between two checks whether to stop, where the scheduler runs in this process:
# those of 150 columns take a quarter of a second. Smaller blocks cost more merges.
CHECKED_BYTES = 1 << 24


class DaskPartitions(Partitions):
    """Partitions that Dask computes.

    Parameters
    ----------
    parts : sequence of Delayed
        Each computes the arguments X, codes, weights and first of a `Partition`.
    shape : (int, int)
    sparse : bool
    client : distributed.Client or None
        None for the scheduler that Dask is configured to use.

    Attributes
    ----------
    moved : list of int
        For each call of `reduce` the bytes that were moved, at most: the function to each worker, and the result of
        each task. A result that is merged on the worker that made it does not move.
    """

    def __init__(self, parts: Sequence[Any], shape: tuple[int, int], sparse: bool, client: Any) -> None:
        self.shape, self.sparse, self.moved = shape, sparse, list[int]()
        self._parts, self._client = list(parts), client
        # one for all passes, since the scheduler keeps topics
        self._topic, self._begun = f"maxmargin-rows-{secrets.token_hex(4)}", 0
        if client is not None:
            self._parts = persisted(client, self._parts)

    def reduce(self, function: Callable[[Partition], M], interrupted: Callable[[], bool]) -> M | None:
        with self._counted() as count:
            # a client stops a pass itself
            work = _Work(function, _Check(interrupted if self._client is None else bool), count)
            found = run(self._client, self._tree, work, bool if self._client is None else interrupted)
        if found is None or found.value is None:
            return None
        workers = 1 if self._client is None else len(self._client.nthreads())
        self.moved.append(found.bytes + workers * count_bytes(function))
        return found.value

    @contextmanager
    def _counted(self) -> Iterator[Callable[[int], None]]:
        """Yield a function that tasks call with the number of rows that are done; `rows_done` is their sum.

        Workers send it as events, with the number of the pass. A task that is repeated counts twice.
        """
        self.rows_done, self._begun = 0, self._begun + 1

        def add(rows: int) -> None:
            self.rows_done = min(self.rows_done + rows, self.shape[0])

        if self._client is None:
            yield _Local(add)
            return
        this = self._begun

        def receive(event: Any) -> None:
            """Count the rows of an event, unless a pass that was stopped sent it."""
            begun, rows = event[1]
            if begun == this:
                add(rows)

        self._client.subscribe_topic(self._topic, receive)
        try:
            yield partial(_send, self._topic, this)
        finally:
            self._client.unsubscribe_topic(self._topic)

    def _tree(self, work: Any) -> Any:
        """Return the task that merges the results of all partitions, as a tree in the order of the rows."""
        level = [delayed(_apply, pure=False)(work, part) for part in self._parts]
        while len(level) > 1:
            groups = [level[k : k + MERGED] for k in range(0, len(level), MERGED)]
            level = [delayed(_merge, pure=False)(group) for group in groups]
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


@dataclass(frozen=True, eq=False)
class _Check:
    """A check whether to stop; in other processes it is never true, and the client stops the pass."""

    interrupted: Callable[[], bool]

    def __call__(self) -> bool:
        return self.interrupted()

    def __reduce__(self) -> tuple[Any, ...]:
        return _Check, (bool,)  # bool() is False


@dataclass(frozen=True, eq=False)
class _Local:
    """A function that is called in this process only; in other processes nothing is done."""

    function: Callable[[int], None]

    def __call__(self, rows: int) -> None:
        self.function(rows)

    def __reduce__(self) -> tuple[Any, ...]:
        return _Local, (bool,)


def _send(topic: str, begun: int, rows: int) -> None:
    """Send the number of a pass and a number of rows from a worker to the subscribers of a topic."""
    import distributed

    distributed.get_worker().log_event(topic, (begun, rows))


@dataclass(frozen=True, eq=False)
class _Work:
    """A function of partitions, with a check whether to stop, and a function that takes the number of rows done."""

    function: Callable[[Partition], Any]
    interrupted: _Check
    count: Callable[[int], None]


@dataclass(frozen=True, eq=False)
class _Result:
    """The result of some partitions, None if stopped, and the bytes of the results of all tasks that made it."""

    value: Any
    bytes: int


def _apply(work: _Work, part: tuple[Any, ...]) -> _Result:
    """Apply a function to a partition."""
    partition = Partition(*part)
    rows = CHECKED_BYTES * partition.size // max(count_bytes(part), 1)
    results = []
    # sparse rows are copied where a partition is divided
    for block in [partition] if partition.size <= rows else partition.blocks(rows):
        if work.interrupted():
            return _Result(None, 0)
        results.append(work.function(block))
        work.count(block.size)
    value = merged(results)
    return _Result(value, count_bytes(value))


def _merge(results: list[_Result]) -> _Result:
    """Merge results in the order of the rows, and add up their bytes."""
    if any(result.value is None for result in results):
        return _Result(None, 0)
    value = merged([result.value for result in results])
    return _Result(value, count_bytes(value) + sum(result.bytes for result in results))


def count_bytes(value: Any) -> int:
    """Return the bytes of an object as it is sent; arrays are not copied for it."""
    buffers: list[pickle.PickleBuffer] = []
    head = pickle.dumps(value, protocol=5, buffer_callback=buffers.append)
    return len(head) + sum(memoryview(buffer).nbytes for buffer in buffers)
