"""Fits of Dask arrays on worker processes of this machine: rounds, bytes moved per round, and seconds.

`python -m benchmarks.dask_scale --rows 200000,800000 --workers 1,2,4` prints a Markdown table. The same rows are fitted
from an array in blocks (`memory=`), with the same memory; its bounds are those of the fits on the workers up to
rounding. Times need a machine with nothing else to do, and as many cores as workers.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import dask
import dask.array as da
import numpy as np
from dask.distributed import Client

from maxmargin import MaxMarginClassifier
from maxmargin.data.dask_partitions import DaskPartitions

COLUMNS, PARTITIONS = 28, 8


@dataclass(frozen=True)
class Fit:
    """One fit.

    Attributes
    ----------
    where : str
        The number of worker processes, or "array".
    rows : int
    rounds : int
    moved : int
        The most bytes that a round moved, at most; 0 for an array.
    seconds : float
    lower, upper : float
    """

    where: str
    rows: int
    rounds: int
    moved: int
    seconds: float
    lower: float
    upper: float


def data(rows: int) -> tuple[da.Array, da.Array]:
    """Return normal rows in PARTITIONS partitions, and labels of which some are wrong."""
    size, w = -(-rows // PARTITIONS), np.random.default_rng(0).normal(size=COLUMNS)
    X = da.random.default_rng(1).normal(size=(rows, COLUMNS), chunks=(size, -1))
    noise = da.random.default_rng(2).normal(size=rows, chunks=size)
    return X, (X @ w + noise > 0.5).astype(np.int8)


@contextmanager
def recorded() -> Iterator[list[int]]:
    """Record the bytes that each call of `DaskPartitions.reduce` moves."""
    moved: list[int] = []
    reduce = DaskPartitions.reduce

    def recording(self: DaskPartitions, *arguments: Any) -> Any:
        found = reduce(self, *arguments)
        moved.extend(self.moved[-1:])
        return found

    DaskPartitions.reduce = recording
    try:
        yield moved
    finally:
        DaskPartitions.reduce = reduce


def measured(where: str, X: Any, y: Any, memory: str, tol: float) -> Fit:
    """Fit once."""
    model = MaxMarginClassifier(loss="hinge", memory=memory, tol=tol, random_state=0)
    with recorded() as moved:
        began = time.perf_counter()
        model.fit(X, y)
        seconds = time.perf_counter() - began
    claim = model.certificate_
    # the first two calls count the rows of the classes and draw a sample
    passes = max(moved[2:], default=0)
    return Fit(where, X.shape[0], model.n_iter_, passes, seconds, claim.lower, claim.upper)


def main() -> None:
    """Run all fits, and print a table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", default="200000,800000", help="comma separated")
    parser.add_argument("--workers", default="1,2,4", help="comma separated numbers of processes")
    parser.add_argument("--memory", default="8MB", help="memory of the fit, which bounds the gathered rows")
    parser.add_argument("--tol", type=float, default=1e-4)
    options = parser.parse_args()
    sizes, found = [int(rows) for rows in options.rows.split(",")], []
    for rows in sizes:
        with dask.config.set(scheduler="threads"):
            X, y = dask.compute(*data(rows))
        measured("array", X, y, options.memory, options.tol)  # loads the compiled code
        found.append(measured("array", X, y, options.memory, options.tol))
    for workers in map(int, options.workers.split(",")):
        with Client(n_workers=workers, threads_per_worker=1, dashboard_address=":0"):
            for rows in sizes:
                X, y = dask.persist(*data(rows))
                measured(str(workers), X, y, options.memory, options.tol)
                found.append(measured(str(workers), X, y, options.memory, options.tol))
    print("| where | rows | rounds | MB moved in a round, at most | seconds | lower bound | upper bound |")
    print("|---|---|---|---|---|---|---|")
    for fit in found:
        bounds = f"{fit.lower:.12g} | {fit.upper:.12g}"
        print(
            f"| {fit.where} | {fit.rows:,} | {fit.rounds} | {fit.moved / 1e6:.2f} | {fit.seconds:.2f} | {bounds} |"
        )


if __name__ == "__main__":
    main()
