"""Accuracy after one pass over files sorted by label: the table of `docs/howto/shuffle_a_stream.md`.

`python -m benchmarks.sorted_streams [--write]`. Files are written to a temporary folder and learnt by the function of
`maxmargin fit --online`.
"""

from __future__ import annotations

import argparse
import gzip
import io
import sys
from collections.abc import Callable
from contextlib import redirect_stderr
from datetime import date
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.datasets import dump_svmlight_file
from threadpoolctl import threadpool_limits

from maxmargin import load
from maxmargin.cli.online import fit_online

from .datasets import _csr, _idx, _path, pcmac
from .page import table, versions, wrapped
from .streaming import SETS

PAGE = Path(__file__).parents[1] / "docs" / "howto" / "shuffle_a_stream.md"
MARKS = ("<!-- sorted -->", "<!-- end of sorted -->")
SEEDS = 3
SMALL = 20  # a small buffer is the size of the text divided by this
Parts = tuple[Any, np.ndarray, Any, np.ndarray]  # rows and labels of the training and of the test part
COLUMNS = (
    "in the order of the file",
    "default buffer",
    "small buffer",
    "small buffer, `.gz`",
    "rows shuffled before",
)


def _split(X: Any, y: np.ndarray) -> Parts:
    """Return four fifths of the rows for training, the others for the test."""
    test = np.arange(y.size) % 5 == 4
    return X[~test], y[~test], X[test], y[test]


def _pcmac() -> Parts:
    data = pcmac()
    order = np.random.default_rng(0).permutation(data.y.size)
    return _split(data.X[order], data.y[order])


def _skin() -> Parts:
    with gzip.open(_path("skin/Skin_NonSkin.txt.gz")) as file:
        values = np.loadtxt(file)
    return _split(_csr(sp.csr_matrix(values[:, :3] / 255.0)), values[:, 3])


def _digits() -> Parts:
    images = (("train-images", 60000), ("t10k-images", 10000))
    X, T = (
        _csr(sp.csr_matrix(_idx(f"mnist/{name}-idx3-ubyte.gz").reshape(n, 784) / 255.0)) for name, n in images
    )
    y, z = (_idx(f"mnist/{name}-labels-idx1-ubyte.gz").astype(int) for name in ("train", "t10k"))
    return X, y, T, z


DATA: dict[str, Callable[[], Parts]] = {
    **{name: load_set for name, load_set in SETS.items() if not name.startswith("mnist")},
    "pcmac (every fifth row for the test)": _pcmac,
    "skin (every fifth row for the test)": _skin,
    "mnist (ten digits)": _digits,
}


def _learnt(path: Path, width: int, buffer: int, seed: int, T: Any, z: np.ndarray, classes: str) -> str:
    """Return the accuracy of one pass, with a star if the command warned of long runs."""
    given = {
        "n_features": width,
        "shuffle_buffer": str(buffer),
        "seed": seed,
        "quiet": True,
        "classes": classes,
    }
    if buffer < 0:
        del given["shuffle_buffer"]
    with redirect_stderr(io.StringIO()) as printed:
        fit_online(path, path.with_name("model"), given)
    return f"{load(path.with_name('model')).score(T, z):.4f}{'*' * ('long runs' in printed.getvalue())}"


def accuracies(name: str, folder: Path, seeds: int) -> list[str]:
    """Return a row of the table: the name, the size of the text, the share of the largest class, and COLUMNS."""
    X, y, T, z = DATA[name]()
    y, z = y.astype(int), z.astype(int)
    plain, zipped, mixed = (folder / file for file in ("sorted.svm", "sorted.svm.gz", "mixed.svm"))
    order = np.argsort(y, kind="stable")
    dump_svmlight_file(X[order], y[order], str(plain), zero_based=False)
    zipped.write_bytes(gzip.compress(plain.read_bytes(), 1))
    size = plain.stat().st_size
    classes = ",".join(map(str, np.unique(y)))
    cells = []
    for path, buffer in (
        (plain, 0),
        (plain, -1),
        (plain, size // SMALL),
        (zipped, size // SMALL),
        (mixed, 0),
    ):
        found = []
        for seed in range(seeds if buffer or path is mixed else 1):
            if path is mixed:
                order = np.random.default_rng(seed).permutation(y.size)
                dump_svmlight_file(X[order], y[order], str(mixed), zero_based=False)
            found.append(_learnt(path, X.shape[1], buffer, seed, T, z, classes))
        cells.append(sorted(found)[len(found) // 2])
    majority = np.unique(z, return_counts=True)[1].max() / z.size
    return [name, f"{size / 1e6:.1f} MB", f"{majority:.4f}", *cells]


def main(arguments: list[str] | None = None) -> int:
    """Measure and print; with --write into `docs/howto/shuffle_a_stream.md`."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.sorted_streams", description=__doc__)
    parser.add_argument("--write", action="store_true", help=f"write docs/howto/{PAGE.name}")
    options = parser.parse_args(arguments)
    rows = []
    with threadpool_limits(limits=1):
        for name in DATA:
            with TemporaryDirectory() as folder:
                rows.append(accuracies(name, Path(folder), SEEDS))
            print(*rows[-1], flush=True)
    about = (
        f"Accuracy on test rows after one pass over files sorted by label, medians over {SEEDS} seeds. A star: the "
        f"command warned. The default buffer is 100 MB, the small one 1/{SMALL} of the text. Up to 4 MB of "
        "compressed text are shuffled as a whole with any buffer. The last column is one pass over a file in random "
        "order, without a buffer. Measured on "
        f"{date.today().isoformat()} with {versions('maxmargin')} by `python -m benchmarks.sorted_streams --write`, "
        "which writes this table."
    )
    shown = f"{wrapped(about)}\n\n{table(['data', 'text', 'largest class', *COLUMNS], rows)}"
    print(shown)
    if options.write:
        before, rest = PAGE.read_text(encoding="utf-8").split(MARKS[0])
        PAGE.write_text(
            f"{before}{MARKS[0]}\n\n{shown}\n\n{MARKS[1]}{rest.split(MARKS[1])[1]}", encoding="utf-8"
        )
    return 0


if __name__ == "__main__":
    sys.exit(main())
