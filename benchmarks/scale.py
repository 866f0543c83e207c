"""Rows larger than memory: passes to a certified gap, seconds and peak memory, beside SGDClassifier.partial_fit.

`python -m benchmarks.scale [--rows N] [--write]`. Real sets are fitted with a tenth of their rows in memory, in random
order and sorted by label; N generated rows of 28 columns are written to a temporary folder and fitted with 512 MB, each
fit in a process of its own. A pass is a read of all rows; the sample, which is read first, touches a part of them.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import time
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.linear_model import SGDClassifier

from maxmargin import MaxMarginClassifier
from maxmargin.data.partitions import ArrayPartitions
from maxmargin.estimators.partitioned import encode_labels, fit_partitions
from maxmargin.fit.partitioned.cached_loops import COPIES as LOOP_COPIES
from maxmargin.fit.partitioned.cached_loops import NUMBERS_BYTES, VECTORS
from maxmargin.fit.partitioned.cached_loops import ROWS_SHARE as LOOP_SHARE
from maxmargin.fit.partitioned.policy import method_for
from maxmargin.fit.partitioned.solve import COPIES, ROWS_SHARE, STAGE
from maxmargin.problem.problem import Problem

from .datasets import adult, mnist_dense, web
from .page import page, table

PAGE = Path(__file__).parents[1] / "docs" / "measurements" / "scale.md"
TOLS, COSTS, LOSSES = (1e-3, 1e-4), (0.01, 1.0, 100.0), ("hinge", "squared_hinge")
SHARE = 0.1  # of the rows of real sets that are kept in memory
MEMORY = "512MB"  # for generated rows
SGD_PASSES, SGD_BLOCK, SGD_COST = 5, 100_000, 1.0  # SGDClassifier is compared at one C


SETS = {"adult": adult, "web": web, "mnist": mnist_dense}


def passes_to(history: Any) -> list[str]:
    """Return the passes after which each gap of TOLS was certified for all classes, "-" where it was not."""
    found = []
    for tol in TOLS:
        labels = {report.label for report in history}
        if not labels:  # the sample was not solved in time
            return ["-" for _ in TOLS]
        first = [
            next((r.round for r in history if r.label == label and r.gap <= tol), np.inf) for label in labels
        ]
        found.append("-" if max(first) == np.inf else str(max(first)))
    return found


def real_set(X: Any, y: np.ndarray, loss: str, C: float, max_time: float) -> tuple[list[str], float]:
    """Return the passes of a fit with a share of the rows in memory, and its seconds."""
    (n, d), problem = X.shape, Problem(loss, C)
    classes = np.unique(y)
    partitions = ArrayPartitions(X, encode_labels(y, None, classes)[0])
    # the memory in which the method that is chosen keeps this share of the rows
    memory = SHARE * n * COPIES * 8.0 * (d + 1) / ROWS_SHARE
    if method_for(problem, partitions, memory)[0] != STAGE:
        memory = (
            SHARE * n * (LOOP_COPIES * partitions.row_bytes + NUMBERS_BYTES) + VECTORS * 8.0 * d
        ) / LOOP_SHARE
    model = MaxMarginClassifier(
        C=C, loss=loss, tol=TOLS[-1], memory=memory, max_time=max_time, max_iter=40, random_state=0
    )
    begin = time.perf_counter()
    fit_partitions(model, problem, partitions, classes, np.ones(classes.size))
    return passes_to(model.history_), time.perf_counter() - begin


def real_sets(sets: list[str], max_time: float) -> str:
    """Return the table of real sets."""
    rows = []
    for name in sets:
        data = SETS[name]()
        X, y = (data.X, data.y) if hasattr(data, "X") else data
        X = X.toarray() if sp.issparse(X) and X.shape[1] < 200 else X
        by_label = np.argsort(y, kind="stable")
        for loss in LOSSES:
            for C in COSTS:
                cells = []
                for order in (np.random.default_rng(0).permutation(y.size), by_label):
                    passes, seconds = real_set(X[order], y[order], loss, C, max_time)
                    cells += [" / ".join(passes), f"{seconds:.1f}"]
                rows.append([name, loss, f"{C:g}", *cells])
                print(rows[-1], flush=True)
    head = ["set", "loss", "C", "passes to 1e-3 / 1e-4", "s", "sorted by label", "s"]
    return table(head, rows)


def write_rows(folder: Path, n: int) -> None:
    """Write generated rows of 28 columns, a third of them skewed, with noisy labels."""
    rng = np.random.default_rng(0)
    X = np.lib.format.open_memmap(folder / "rows.npy", "w+", np.float64, (n, 28))
    y, w = np.empty(n, np.int8), rng.normal(size=28)
    for begin in range(0, n, 500_000):
        size = min(500_000, n - begin)
        block = rng.standard_normal((size, 28))
        block[:, ::3] = np.exp(0.5 * block[:, ::3])
        X[begin : begin + size] = block
        y[begin : begin + size] = (
            block - np.exp(0.125) * (np.arange(28) % 3 == 0)
        ) @ w > 4.0 * rng.standard_normal(size)
    X.flush()
    np.save(folder / "labels.npy", y)


ONE_FIT = """
import json, sys, time
import numpy as np
from maxmargin import MaxMarginClassifier
folder, loss, C, memory = sys.argv[1:]
X, y = np.load(folder + "/rows.npy", mmap_mode="r"), np.load(folder + "/labels.npy")
begin = time.perf_counter()
model = MaxMarginClassifier(C=float(C), loss=loss, tol=1e-4, memory=memory, random_state=0).fit(X, y)
seconds = time.perf_counter() - begin
peak = next(line for line in open("/proc/self/status") if line.startswith("VmHWM"))
history = [[report.round, report.seconds, report.gap] for report in model.history_]
found = {"history": history, "seconds": seconds, "peak": int(peak.split()[1]) / 1024}
print(json.dumps(found | {"upper": model.certificate_.upper}))
"""


def sgd_passes(folder: Path, loss: str, C: float, goal: float) -> tuple[str, str]:
    """Return the passes and seconds after which SGDClassifier is within 1e-3 of an objective, "-" if it is not."""
    X, y = np.load(folder / "rows.npy", mmap_mode="r"), np.load(folder / "labels.npy")
    n, used, rng = y.size, 0.0, np.random.default_rng(0)
    model = SGDClassifier(loss=loss, alpha=1.0 / (C * n), random_state=0, average=True)
    for k in range(SGD_PASSES):
        begin = time.perf_counter()
        for start in rng.permutation(np.arange(0, n, SGD_BLOCK)):
            part = slice(start, start + SGD_BLOCK)
            model.partial_fit(X[part], y[part], classes=[0, 1])
        used += time.perf_counter() - begin
        w, b, total = model.coef_[0], model.intercept_[0], 0.0
        for start in range(0, n, SGD_BLOCK):
            part = slice(start, start + SGD_BLOCK)
            slack = np.maximum(0.0, 1.0 - np.where(y[part] > 0, 1.0, -1.0) * (X[part] @ w + b))
            total += float((slack if loss == "hinge" else slack * slack).sum())
        if 0.5 * float(w @ w) + C * total <= goal * 1.001:
            return str(k + 1), f"{used:.0f}"
    return f"- ({SGD_PASSES})", f"{used:.0f}"


def generated(n: int) -> str:
    """Return the table of generated rows."""
    rows = []
    with TemporaryDirectory() as name:
        folder = Path(name)
        write_rows(folder, n)
        begin = time.perf_counter()
        X = np.load(folder / "rows.npy", mmap_mode="r")
        for start in range(0, n, SGD_BLOCK):
            X[start : start + SGD_BLOCK].sum()
        floor = time.perf_counter() - begin
        for loss in LOSSES:
            for C in COSTS:
                words = [sys.executable, "-c", ONE_FIT, name, loss, str(C), MEMORY]
                done = subprocess.run(words, capture_output=True, text=True, check=True, env=os.environ)
                found = json.loads(done.stdout)
                passes = [next((str(r) for r, _, gap in found["history"] if gap <= tol), "-") for tol in TOLS]
                sgd = sgd_passes(folder, loss, C, found["upper"]) if C == SGD_COST else ("", "")
                rows.append(
                    [
                        loss,
                        f"{C:g}",
                        " / ".join(passes),
                        f"{found['seconds']:.0f}",
                        f"{found['peak']:.0f}",
                        *sgd,
                    ]
                )
                print(rows[-1], flush=True)
    head = ["loss", "C", "passes to 1e-3 / 1e-4", "s", "peak MB", "SGD passes to 1e-3", "s"]
    return f"Reading the rows once and adding them up takes {floor:.1f} s.\n\n" + table(head, rows)


ABOUT = """
Certified fits of rows that do not fit in memory. A pass is a read of all rows. `SGDClassifier` gets the same rows by
`partial_fit`, in blocks in random order, with averaging and alpha = 1 / (C n), until its objective, computed by the
benchmark, is within 1e-3 of the certified one; it does not know when that is.
"""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=20_000_000)
    parser.add_argument("--max-time", type=float, default=300.0)
    parser.add_argument("--sets", nargs="*", choices=SETS, default=list(SETS))
    parser.add_argument("--write", action="store_true")
    arguments = parser.parse_args()
    large, real = generated(arguments.rows), real_sets(arguments.sets, arguments.max_time)
    size = 8e-9 * 28 * arguments.rows
    top = f"{arguments.rows:,} generated rows of 28 columns ({size:.1f} GB), `memory={MEMORY!r}`:\n\n{large}"
    sections = {f"Real sets, a tenth of the rows in memory, at most {arguments.max_time:.0f} s": real}
    command = f"python -m benchmarks.scale --rows {arguments.rows} --sets {' '.join(arguments.sets)} --write"
    text = page("Rows larger than memory", ABOUT, top, command, sections)
    if arguments.write:
        PAGE.write_text(text)
    print(text)


if __name__ == "__main__":
    main()
