"""Generated rows that are larger than memory, in files that are memory-mapped."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

COLUMNS = 28  # of dense rows, as many as in the data set HIGGS
BLOCK = 500_000  # dense rows that are made at a time
TEXT_BLOCK = 100_000  # rows of text that are made at a time
WORDS, EXPONENT, NOISE = (
    60,
    1.05,
    0.5,
)  # draws of words for a row, of Zipf's law, noise in units of the scores


def write_rows(folder: Path, n: int) -> None:
    """Write dense rows, a third of whose columns are skewed, with noisy labels."""
    rng = np.random.default_rng(0)
    X = np.lib.format.open_memmap(folder / "rows.npy", "w+", np.float64, (n, COLUMNS))
    y, w = np.empty(n, np.int8), rng.normal(size=COLUMNS)
    for begin in range(0, n, BLOCK):
        size = min(BLOCK, n - begin)
        block = rng.standard_normal((size, COLUMNS))
        block[:, ::3] = np.exp(0.5 * block[:, ::3])
        X[begin : begin + size] = block
        y[begin : begin + size] = (
            block - np.exp(0.125) * (np.arange(COLUMNS) % 3 == 0)
        ) @ w > 4.0 * rng.standard_normal(size)
    X.flush()
    np.save(folder / "labels.npy", y)


def write_text(folder: Path, n: int, d: int) -> None:
    """Write rows of random words whose frequencies follow Zipf's law, of unit length, with linear noisy labels."""
    rng = np.random.default_rng(0)
    share = np.cumsum(np.arange(1.0, d + 1.0) ** -EXPONENT)
    w, spread, labels, lengths = rng.standard_normal(d), 0.0, [], []
    with open(folder / "values.bin", "wb") as values, open(folder / "indices.bin", "wb") as indices:
        for begin in range(0, n, TEXT_BLOCK):
            size = min(TEXT_BLOCK, n - begin)
            words = np.minimum(np.searchsorted(share / share[-1], rng.random((size, WORDS))), d - 1)
            starts = np.arange(0, size * WORDS + 1, WORDS, dtype=np.int32)
            X = sp.csr_matrix((np.ones(words.size), words.ravel().astype(np.int32), starts), (size, d))
            X.sum_duplicates()
            X.data = np.log1p(X.data)
            X.data /= np.repeat(np.sqrt(X.multiply(X).sum(axis=1).A1), np.diff(X.indptr))
            scores = X @ w
            spread = spread or scores.std()
            labels.append(scores + NOISE * spread * rng.standard_normal(size) > 0.0)
            lengths.append(np.diff(X.indptr))
            X.data.tofile(values)
            X.indices.tofile(indices)
    np.save(folder / "starts.npy", np.cumsum(np.concatenate([[0], *lengths]), dtype=np.int64))
    np.save(folder / "labels.npy", np.concatenate(labels).astype(np.int8))
    np.save(folder / "columns.npy", d)


def read(folder: Path) -> tuple[Any, np.ndarray]:
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
