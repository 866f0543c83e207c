"""Rows larger than memory: passes to a certified gap, seconds and peak memory, beside other packages.

`python -m benchmarks.scale [--parts NAME ...] [--write]`. Real sets are fitted with a tenth of their rows in memory, in
random order and sorted by label. Generated rows are written to a temporary folder and fitted with 512 MB, each fit in a
process of its own. A pass is a read of all rows; the sample, which is read first, touches a part of them. The page has
a section for each part; with `--write` those that were measured are replaced.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from datetime import date
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import scipy.sparse as sp

from maxmargin import MaxMarginClassifier
from maxmargin.data.partitions import ArrayPartitions
from maxmargin.estimators.partitioned import encode_labels, fit_partitions
from maxmargin.fit.deadline import Deadline
from maxmargin.fit.partitioned.cached_loops import COPIES as LOOP_COPIES
from maxmargin.fit.partitioned.cached_loops import NUMBERS_BYTES, VECTORS
from maxmargin.fit.partitioned.cached_loops import ROWS_SHARE as LOOP_SHARE
from maxmargin.fit.partitioned.policy import method_for
from maxmargin.fit.partitioned.solve import COPIES, ROWS_SHARE, STAGE
from maxmargin.problem.problem import Problem

from .datasets import adult, mnist_dense, mnist_digits, web
from .page import deliver, folded, sections_of, table, versions, wrapped
from .scale_data import COLUMNS, write_rows, write_text
from .scale_fit import measured
from .scale_peers import attempts

PAGE = Path(__file__).parents[1] / "docs" / "measurements" / "scale.md"
TOLS, COSTS, LOSSES = (1e-3, 1e-4), (0.01, 1.0, 100.0), ("hinge", "squared_hinge")
SHARE = 0.1  # of the rows of real sets that are kept in memory
MEMORY = "512MB"  # for generated rows
PEER_COST = 1.0  # other packages are compared at one C
ROWS = 20_000_000  # generated dense rows
TEXT = (5_000_000, 1_000_000)  # rows and columns of generated text
# Rows that other packages get: Vowpal Wabbit reads text, which takes minutes to write for more. Memory in proportion.
PEER_ROWS, PEER_MEMORY = 1_000_000, "26MB"
BLOCK = 100_000  # rows that are added up at a time
SETS = {"adult": adult, "web": web, "mnist": mnist_dense, "mnist10": mnist_digits}


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
    if method_for(problem, partitions, memory, classes.size if classes.size > 2 else 1)[0] != STAGE:
        memory = (
            SHARE * n * (LOOP_COPIES * partitions.row_bytes + NUMBERS_BYTES) + VECTORS * 8.0 * d
        ) / LOOP_SHARE
    model = MaxMarginClassifier(
        C=C, loss=loss, tol=TOLS[-1], memory=memory, max_time=max_time, max_iter=40, random_state=0
    )
    begin = time.perf_counter()
    fit_partitions(model, problem, partitions, classes, np.ones(classes.size), Deadline(model.max_time))
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


def passes_of(found: dict[str, Any]) -> str:
    """Return the passes to each gap of TOLS; "-" with the last gap where it was not reached."""
    cells = [next((str(r) for r, _, gap in found["history"] if gap <= tol), "-") for tol in TOLS]
    return " / ".join(cells) + (f" ({found['gap']:.1e})" if found["gap"] > TOLS[-1] else "")


def generated(folder: Path, max_time: float) -> str:
    """Return the table of fits of the rows in a folder."""
    rows, limited = [], True
    for loss in LOSSES:
        for C in COSTS:
            found = measured(folder, loss, C, MEMORY, max_time)
            limited = limited and found["limited"]
            rows.append([loss, f"{C:g}", passes_of(found), f"{found['seconds']:.0f}", f"{found['peak']:.0f}"])
            print(rows[-1], flush=True)
    return (
        (LIMITED if limited else "")
        + "\n\n"
        + table(["loss", "C", "passes to 1e-3 / 1e-4", "s", "peak MB"], rows)
    )


def dense(max_time: float) -> str:
    """Return the text about generated dense rows."""
    with TemporaryDirectory() as name:
        write_rows(Path(name), ROWS)
        floor = reading(Path(name))
        return f"Reading the rows once and adding them up takes {floor:.1f} s.\n\n{generated(Path(name), max_time)}"


def text(max_time: float) -> str:
    """Return the text about generated rows of words."""
    with TemporaryDirectory() as name:
        write_text(Path(name), *TEXT)
        return generated(Path(name), max_time)


def peers(max_time: float) -> str:
    """Return the table of other packages on generated dense rows."""
    with TemporaryDirectory() as name:
        write_rows(Path(name), PEER_ROWS)
        ours = measured(Path(name), LOSSES[0], PEER_COST, PEER_MEMORY, max_time)
        passes, seconds = str(ours["history"][-1][0]), f"{ours['seconds']:.1f}"
        rows = [[f"maxmargin, memory={PEER_MEMORY!r}", passes, seconds, f"{ours['gap']:.1e} (proved)"]]
        for found in attempts(Path(name), LOSSES[0], PEER_COST, ours["upper"]):
            rows.append([found.name, found.passes, f"{found.seconds:.1f}", f"{found.excess:.1e}"])
            print(rows[-1], flush=True)
    used = versions("scikit-learn", "vowpalwabbit")
    return (
        PEERS + f" {used}.\n\n" + table(["package", "passes", "s", "relative excess of the objective"], rows)
    )


def reading(folder: Path) -> float:
    """Return the seconds in which the dense rows of a folder are read once and added up."""
    X, begin = np.load(folder / "rows.npy", mmap_mode="r"), time.perf_counter()
    for start in range(0, len(X), BLOCK):
        X[start : start + BLOCK].sum()
    return time.perf_counter() - begin


ABOUT = """# Rows larger than memory

Certified fits of rows that do not fit in memory. A pass is a read of all rows.
"""
LIMITED = wrapped(
    "A control group limits each process to 1.2 times the memory and 200 MB; pages of files that are in memory before "
    "the process reads them count for `peak MB`, and not for the group."
)
PEERS = """
The objective of other packages is computed by the benchmark, over all rows, and compared with the certified one:
`SGDClassifier` by `partial_fit`, in blocks in random order, with averaging and alpha = 1 / (C n); Vowpal Wabbit from a
text file with its cache; liblinear (`LinearSVC`) on the rows in memory. They do not know how far they are from the
optimum.
""".strip()
PARTS: dict[str, tuple[str, Callable[[float], str]]] = {
    "dense": (
        f"{ROWS:,} generated rows of {COLUMNS} columns ({8e-9 * COLUMNS * ROWS:.1f} GB), `memory={MEMORY!r}`",
        dense,
    ),
    "peers": (
        f"Other packages on {PEER_ROWS:,} rows of the same kind (hinge, C = {PEER_COST:g})",
        peers,
    ),
    "text": (f"Generated text, {TEXT[0]:,} x {TEXT[1]:,} (3.0 GB), `memory={MEMORY!r}`", text),
    "sets": (
        "Real sets, a tenth of the rows in memory",
        lambda max_time: real_sets(["adult", "web", "mnist"], max_time),
    ),
    "classes": ("mnist, ten classes in the same passes", lambda max_time: real_sets(["mnist10"], max_time)),
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--parts", nargs="*", choices=PARTS, default=list(PARTS))
    parser.add_argument("--max-time", type=float, default=600.0)
    parser.add_argument("--write", action="store_true")
    arguments = parser.parse_args()
    top, *others = PARTS.values()  # the first part is not folded
    before = PAGE.read_text() if PAGE.exists() else ""
    sections = sections_of(before)
    _, found, first = before.partition("<details>")[0].partition(f"{top[0]}:\n\n")
    if found:
        sections[top[0]] = first.strip()
    for name in arguments.parts:
        title, measure = PARTS[name]
        day, package = date.today().isoformat(), versions("maxmargin")
        command = f"python -m benchmarks.scale --parts {name} --max-time {arguments.max_time:g}"
        about = wrapped(f"Measured on {day} with {package} by `{command}`, 2 shared cores.")
        sections[title] = f"{measure(arguments.max_time)}\n\n{about}"
    head = [ABOUT.strip(), f"{top[0]}:\n\n{sections[top[0]]}"] if top[0] in sections else [ABOUT.strip()]
    known = (folded(title, sections[title]) for title, _ in others if title in sections)
    deliver("\n\n".join([*head, *known]) + "\n", PAGE if arguments.write else None)


if __name__ == "__main__":
    main()
