"""Rows larger than memory, rows on a cluster, and streams.

`python -m benchmarks.scale [--parts memory memory_peers cluster streams] [--sets NAME ...] [--write]`. Generated rows
are written to a temporary folder as files that are mapped into memory; each fit has a process of its own. A pass is a
read of all rows; the sample, which is read first, touches a part of them.
"""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from itertools import product
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.linear_model import Perceptron, SGDClassifier
from sklearn.svm import LinearSVC

from maxmargin import MaxMarginClassifier, OnlineMarginClassifier

from .datasets import DATASETS, ROOT, Rows, csr, digits, sparse, words
from .results import Row, main

# rows in files

COLUMNS, BLOCK = (
    28,
    500_000,
)  # of dense rows, as many as in the data set HIGGS, and rows that are made at a time
TEXT_BLOCK, DRAWS, EXPONENT, NOISE = (
    100_000,
    60,
    1.05,
    0.5,
)  # rows of text are noisy, as those of `linear.text`


def write_dense(folder: Path, n: int) -> None:
    """Write dense rows, a third of whose columns are skewed, with noisy labels."""
    rng = np.random.default_rng(0)
    X = np.lib.format.open_memmap(folder / "rows.npy", "w+", np.float64, (n, COLUMNS))
    y, w = np.empty(n, np.int8), rng.normal(size=COLUMNS)
    for begin in range(0, n, BLOCK):
        block = rng.standard_normal((min(BLOCK, n - begin), COLUMNS))
        block[:, ::3] = np.exp(0.5 * block[:, ::3])
        X[begin : begin + BLOCK] = block
        scores = (block - np.exp(0.125) * (np.arange(COLUMNS) % 3 == 0)) @ w
        y[begin : begin + BLOCK] = scores > 4.0 * rng.standard_normal(len(block))
    X.flush()
    np.save(folder / "labels.npy", y)


def write_text(folder: Path, n: int, d: int) -> None:
    """Write rows of random words with linear noisy labels."""
    rng = np.random.default_rng(0)
    w, spread, labels, lengths = rng.standard_normal(d), 0.0, [], []
    with open(folder / "values.bin", "wb") as values, open(folder / "indices.bin", "wb") as indices:
        for begin in range(0, n, TEXT_BLOCK):
            X = words(rng, min(TEXT_BLOCK, n - begin), d, DRAWS, EXPONENT)
            scores = X @ w
            spread = spread or scores.std()
            labels.append(scores + NOISE * spread * rng.standard_normal(X.shape[0]) > 0.0)
            lengths.append(np.diff(X.indptr))
            X.data.tofile(values)
            X.indices.tofile(indices)
    np.save(folder / "starts.npy", np.cumsum(np.concatenate([[0], *lengths]), dtype=np.int64))
    np.save(folder / "labels.npy", np.concatenate(labels).astype(np.int8))
    np.save(folder / "columns.npy", d)


def read(folder: Path) -> Rows:
    """Return rows that one of the functions above has written, as memory maps, and their labels."""
    y = np.load(folder / "labels.npy")
    if (folder / "rows.npy").exists():
        return np.load(folder / "rows.npy", mmap_mode="r"), y
    X = sp.csr_matrix((y.size, int(np.load(folder / "columns.npy"))))
    # assigned one by one: the constructor would read all indices to check them
    X.data = np.memmap(folder / "values.bin", np.float64, "r")
    X.indices = np.memmap(folder / "indices.bin", np.int32, "r")
    X.indptr = np.load(folder / "starts.npy", mmap_mode="r")
    return X, y


def fit(folder: str, loss: str, C: str, memory: str, max_time: str) -> None:
    """Fit once in this process, and print passes to two gaps, seconds, the peak of the memory in MB and the bound."""
    X, y = read(Path(folder))
    model = MaxMarginClassifier(
        float(C), loss=loss, tol=1e-4, memory=memory, random_state=0, max_time=float(max_time)
    )
    begin = time.perf_counter()
    model.fit(X, y)
    row: Row = {"seconds": time.perf_counter() - begin}
    for tol in (1e-3, 1e-4):
        row[f"passes to {tol:g}"] = next((one.round for one in model.history_ if one.gap <= tol), "")
    lines = Path("/proc/self/status").read_text().splitlines()
    row["peak MB"] = next(int(line.split()[1]) // 1024 for line in lines if line.startswith("VmHWM"))
    print(json.dumps(row | {"gap": float(model.certificate_.gap), "upper": float(model.certificate_.upper)}))


def fitted(folder: str, *arguments: object) -> Row:
    """Fit in a new process; return what `fit` prints."""
    command = [sys.executable, "-m", "benchmarks.scale", "--fit", folder, *map(str, arguments)]
    return json.loads(subprocess.run(command, capture_output=True, text=True, check=True, cwd=ROOT).stdout)


SMALL_ROWS, SMALL_MEMORY = 1_000_000, "26MB"
LARGE: dict[str, tuple[Callable[[Path], None], str, float]] = {
    "dense": (lambda folder: write_dense(folder, 20_000_000), "512MB", 120.0),
    "text": (
        lambda folder: write_text(folder, 5_000_000, 1_000_000),
        "512MB",
        1500.0,
    ),
}


def memory(sets: Sequence[str] | None) -> Iterator[Row]:
    """Certified fits of generated rows that are larger than the memory of the fit."""
    for name, (write, size, max_time) in LARGE.items():
        with TemporaryDirectory() as folder:
            if sets is None or name in sets:
                write(Path(folder))
                for loss, C in product(("hinge", "squared_hinge"), (0.01, 1.0, 100.0)):
                    found = fitted(folder, loss, C, size, max_time)
                    yield {"data": name, "loss": loss, "C": C, "memory": size, **found}


# other packages on rows in files

VOWPAL_PASSES = (1, 5, 20)
VOWPAL_CONSTANT, VOWPAL_BITS = 11650396, 10  # the number of its constant feature, and bits of its table


def sgd(X: Any, y: np.ndarray, C: float) -> Iterator[tuple[str, float, np.ndarray, float]]:
    """SGDClassifier.partial_fit with blocks in random order and averages."""
    rng, model, used = np.random.default_rng(0), SGDClassifier(alpha=1.0 / (C * y.size), average=True), 0.0
    for k in range(5):
        begin = time.perf_counter()
        for start in rng.permutation(np.arange(0, y.size, 100_000)):
            model.partial_fit(X[start : start + 100_000], y[start : start + 100_000], classes=[0, 1])
        used += time.perf_counter() - begin
        yield str(k + 1), used, model.coef_[0], model.intercept_[0]


def liblinear(X: Any, y: np.ndarray, C: float) -> Iterator[tuple[str, float, np.ndarray, float]]:
    """LinearSVC, with all rows in memory."""
    begin = time.perf_counter()
    model = LinearSVC(C=C, loss="hinge", random_state=0, max_iter=100, tol=1e-3).fit(np.array(X), y)
    yield "", time.perf_counter() - begin, model.coef_[0], model.intercept_[0]


def vowpal(X: Any, y: np.ndarray, C: float) -> Iterator[tuple[str, float, np.ndarray, float]]:
    """Vowpal Wabbit with the hinge, where it is installed: a text file once, then its cache file in each pass."""
    with suppress(ImportError), TemporaryDirectory() as folder:
        from vowpalwabbit import Workspace  # type: ignore[import-not-found]

        text, kept = Path(folder) / "rows.vw", Path(folder) / "rows.model"
        with open(text, "w") as file:
            for row, label in zip(X, y.tolist(), strict=True):
                entries = " ".join(f"{j}:{value:.9g}" for j, value in enumerate(row.tolist()))
                file.write(f"{1 if label else -1} | {entries}\n")
        for passes in VOWPAL_PASSES:
            begin = time.perf_counter()
            Workspace(
                f"-d {text} -f {kept} -c -k --cache_file {folder}/rows.cache --passes {passes} --loss_function hinge "
                f"--l2 {1.0 / (C * y.size)} -b {VOWPAL_BITS} --holdout_off --quiet"
            ).finish()
            used = time.perf_counter() - begin
            learner = Workspace(f"-i {kept} -t --quiet")
            w = np.array([learner.get_weight(j) for j in range(COLUMNS)])
            b = learner.get_weight(VOWPAL_CONSTANT & ((1 << VOWPAL_BITS) - 1))
            learner.finish()
            yield str(passes), used, w, b


def memory_peers(sets: Sequence[str] | None) -> Iterator[Row]:
    """Other packages on a million rows: the best objective over all rows of their numbers of passes."""
    with TemporaryDirectory() as folder:
        write_dense(Path(folder), SMALL_ROWS)
        X, y = read(Path(folder))
        mine = fitted(folder, "hinge", 1.0, SMALL_MEMORY, 120.0)
        solver = f"maxmargin, memory={SMALL_MEMORY!r}"
        yield {
            "solver": solver,
            "passes": mine["passes to 0.0001"],
            "seconds": mine["seconds"],
            "excess": mine["gap"],
        }
        for name, run in {"SGDClassifier": sgd, "LinearSVC": liblinear, "Vowpal Wabbit": vowpal}.items():
            rows: list[Row] = []
            for passes, seconds, w, b in run(X, y, 1.0):
                slack = np.maximum(0.0, 1.0 - np.where(y > 0, 1.0, -1.0) * (X @ w + b))
                excess = (0.5 * float(w @ w) + float(slack.sum())) / mine["upper"] - 1.0
                rows.append({"solver": name, "passes": passes, "seconds": seconds, "excess": excess})
            yield from sorted(rows, key=lambda row: row["excess"])[:1]


# a cluster


def cluster(sets: Sequence[str] | None) -> Iterator[Row]:
    """Fits of Dask arrays on worker processes of this machine, and of the same rows as an array with a memory."""
    import dask.array as da
    from dask.distributed import Client

    rows = 800_000
    for workers in (0, 1, 2):
        size, w = rows // 8, np.random.default_rng(0).normal(size=COLUMNS)
        X = da.random.default_rng(1).normal(size=(rows, COLUMNS), chunks=(size, -1))
        y = (X @ w + da.random.default_rng(2).normal(size=rows, chunks=size) > 0.5).astype(np.int8)
        model = MaxMarginClassifier(loss="hinge", memory="8MB", tol=1e-4, random_state=0)
        with Client(n_workers=max(workers, 1), threads_per_worker=1, dashboard_address=":0") as client:
            X, y = da.compute(X, y) if workers == 0 else client.persist([X, y])
            for _ in range(2):  # the first fit loads the compiled code
                begin = time.perf_counter()
                model.fit(X, y)
                seconds = time.perf_counter() - begin
        bounds = {"lower": f"{model.certificate_.lower:.10g}", "upper": f"{model.certificate_.upper:.10g}"}
        where = str(workers) if workers else "no cluster"
        yield {"workers": where, "rows": rows, "passes": model.n_iter_, "seconds": seconds, **bounds}


# streams

BATCH, SPEED_TURNS, ORDERS = 1000, 5, 3
LEARNERS: dict[str, Callable[[int], Any]] = {
    "OnlineMarginClassifier": lambda seed: OnlineMarginClassifier(random_state=seed),
    'OnlineMarginClassifier("pumma", C=1)': lambda seed: OnlineMarginClassifier("pumma", C=1.0),
    "SGDClassifier": lambda seed: SGDClassifier(random_state=seed),
    "SGDClassifier(average=True)": lambda seed: SGDClassifier(average=True, random_state=seed),
    "SGDClassifier, passive-aggressive": lambda seed: SGDClassifier(
        penalty=None, learning_rate="pa1", eta0=1.0, random_state=seed
    ),
    "Perceptron": lambda seed: Perceptron(random_state=seed),
}


def one_pass(model: Any, X: Any, y: np.ndarray, classes: Any) -> float:
    """Learn the rows in batches; return rows a second. The first call, which sets the model up, is not counted."""
    model.partial_fit(X[:BATCH], y[:BATCH], classes=classes)
    parts = [(X[k : k + BATCH], y[k : k + BATCH]) for k in range(BATCH, len(y), BATCH)]
    begin = time.process_time()
    for rows, labels in parts:
        model.partial_fit(rows, labels)
    return (len(y) - BATCH) / (time.process_time() - begin)


def speed_streams() -> dict[str, Rows]:
    """Return a CSR stream (the rows of Reuters four times, in random order) and a dense stream with 50 columns."""
    (X, y), rng = DATASETS["reuters"](), np.random.default_rng(0)
    order = np.concatenate([rng.permutation(len(y)) for _ in range(4)])
    rows = rng.standard_normal((50_000, 50))
    target = rows @ rng.standard_normal(50) + 2.0 * rng.standard_normal(50_000)
    return {"sparse": (X[order], y[order]), "dense": (rows, np.where(target > 0.0, 1.0, -1.0))}


def _ten_digits(part: str = "train") -> Rows:
    X, y = digits(part)
    return csr(X), y.astype(int)


TESTED: dict[str, Callable[[], tuple[Rows, Rows]]] = {
    "adult": lambda: (sparse("adult/a9a.gz", d=123), sparse("adult/a9a.t.gz", d=123)),
    "web": lambda: (sparse("web/w7a.gz", d=300), sparse("web/w7a.t.gz", d=300)),
    "mnist": lambda: (_ten_digits(), _ten_digits("t10k")),
}


def streams(sets: Sequence[str] | None) -> Iterator[Row]:
    """Rows a second of one pass in batches of 1000, and the accuracy on test rows after one pass in random order."""
    found: dict[str, Row] = {learner: {"learner": learner} for learner in LEARNERS}
    for name, (X, y) in speed_streams().items():
        for learner, make in LEARNERS.items():
            turns = [one_pass(make(seed), X, y, [-1.0, 1.0]) for seed in range(SPEED_TURNS + 1)]
            found[learner][f"rows a second, {name}"] = f"{np.median(turns[1:]):.2g}"
    for name, load in TESTED.items():
        (X, y), test = load()
        orders = [np.random.default_rng(1000 + seed).permutation(len(y)) for seed in range(ORDERS)]
        for learner, make in LEARNERS.items():
            models = [make(seed) for seed in range(ORDERS)]
            for model, order in zip(models, orders, strict=True):
                one_pass(model, X[order], y[order], np.unique(y))
            found[learner][f"accuracy, {name}"] = float(np.median([model.score(*test) for model in models]))
    yield from found.values()


if __name__ == "__main__":
    if sys.argv[1:2] == ["--fit"]:
        fit(*sys.argv[2:])
    else:
        sys.exit(main("scale", __doc__, memory, memory_peers, cluster, streams))
