"""Peak additional memory of a fit, measured in a new process that holds only the data.

`python -m benchmarks.memory FOLDER SOLVER` is that process. It loads the arrays of FOLDER, fits a few rows (which loads
the compiled code), records its resident memory, fits all rows, and prints the difference between the peak and the
recorded memory.
"""

from __future__ import annotations

import json
import resource
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

from .datasets import generated, mnist, mnist_dense

SOLVERS = ("maxmargin", "LinearSVC")
MIN_BYTES = 50e6  # the documented limit of memory applies to inputs larger than this


@dataclass(frozen=True)
class Peak:
    """Peak additional memory of one fit."""

    name: str
    solver: str
    nbytes: int
    extra: int

    @property
    def ratio(self) -> float:
        """Additional memory divided by the bytes of the input."""
        return self.extra / self.nbytes


def inputs() -> Iterator[tuple[str, Callable[[], tuple[Any, np.ndarray]]]]:
    """Yield the names of the large inputs, and functions that make them."""

    def narrow() -> tuple[Any, np.ndarray]:
        X, y = mnist_dense()
        return X.astype(np.float32), y

    def sparse(make: Callable[[], Any]) -> Callable[[], tuple[Any, np.ndarray]]:
        def build() -> tuple[Any, np.ndarray]:
            data = make()
            return data.X, data.y

        return build

    def noise() -> tuple[Any, np.ndarray]:
        rng = np.random.default_rng(0)  # no row can be screened out before the end
        return rng.standard_normal((60_000, 120)), np.where(rng.random(60_000) < 0.5, -1.0, 1.0)

    yield "mnist, dense, float64", mnist_dense
    yield "mnist, dense, float32", narrow
    yield "mnist, CSR", sparse(mnist)
    yield "generated, CSR", sparse(generated)
    yield "noise, dense, float64", noise


def peaks(solvers: tuple[str, ...] = SOLVERS) -> list[Peak]:
    """Measure every solver on every input."""
    found = []
    for name, make in inputs():
        with tempfile.TemporaryDirectory() as folder:
            X, y = make()
            nbytes = _save(Path(folder), X, y)
            del X, y
            assert nbytes > MIN_BYTES
            for solver in solvers:
                run = subprocess.run(
                    [sys.executable, "-m", "benchmarks.memory", folder, solver],
                    check=True, capture_output=True, text=True,
                )  # fmt: skip
                found.append(Peak(name, solver, nbytes, json.loads(run.stdout)["extra"]))
    return found


def _save(folder: Path, X: Any, y: np.ndarray) -> int:
    np.save(folder / "y.npy", y)
    parts = (
        {"data": X.data, "indices": X.indices, "indptr": X.indptr, "shape": np.array(X.shape)}
        if sp.issparse(X)
        else {"X": X}
    )
    for name, part in parts.items():
        np.save(folder / f"{name}.npy", part)
    return sum(part.nbytes for name, part in parts.items() if name != "shape")


def _load(folder: Path) -> tuple[Any, np.ndarray]:
    parts = {path.stem: np.load(path) for path in folder.glob("*.npy")}
    y = parts.pop("y")
    if "X" in parts:
        return parts["X"], y
    return sp.csr_matrix((parts["data"], parts["indices"], parts["indptr"]), shape=tuple(parts["shape"])), y


def _resident(field: str) -> int:
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith(field):
            return int(line.split()[1]) * 1024
    raise OSError(f"no {field} in /proc/self/status")


def _forget_peak() -> None:
    """Reset the recorded peak. If the system refuses, the older peak stays, and the result is too large."""
    with suppress(OSError):
        Path("/proc/self/clear_refs").write_text("5")


def _model(solver: str) -> Any:
    if solver == "maxmargin":
        from maxmargin import MaxMarginClassifier

        return MaxMarginClassifier(loss="hinge", fit_intercept=False, tol=1e-4, random_state=0)
    from sklearn.svm import LinearSVC

    return LinearSVC(loss="hinge", fit_intercept=False, tol=0.01, max_iter=10**6, random_state=0)


def _child(folder: str, solver: str) -> None:
    X, y = _load(Path(folder))
    few = np.concatenate([np.flatnonzero(y > 0)[:1500], np.flatnonzero(y < 0)[:1500]])
    _model(solver).fit(X[few], y[few])
    _forget_peak()
    before = _resident("VmRSS")
    _model(solver).fit(X, y)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    peak = min(peak, _resident("VmHWM"))  # the first one cannot be reset
    print(json.dumps({"extra": max(peak - before, 0)}))


if __name__ == "__main__":
    _child(*sys.argv[1:])
