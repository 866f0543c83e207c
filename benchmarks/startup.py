"""Start-up time of a process: imports, the command line, and the first compilation."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

BASE = "import numpy, scipy, sklearn, numba"
WHOLE = f"{BASE}; from maxmargin import MaxMarginClassifier"
PEER = "import sklearn.svm, numba"


@dataclass(frozen=True)
class Timing:
    """Times of a command, in seconds."""

    command: str
    seconds: tuple[float, ...]

    @property
    def median(self) -> float:
        """Median, in seconds."""
        return float(np.median(self.seconds))


def imports(repeats: int = 11) -> dict[str, Timing]:
    """Run the commands in turn, `repeats` times, and return their times. The first round is not counted.

    The first round fills the file cache and writes bytecode, which an installed package has too. The environment
    variable PYTHONDONTWRITEBYTECODE is removed; with it every run would compile all sources.
    """
    installed = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    with tempfile.TemporaryDirectory() as folder:
        commands = {"base": _python(BASE), "maxmargin": _python(WHOLE), "peer": _python(PEER)}
        predict = _predict(Path(folder))
        if predict is not None:
            commands["predict"] = predict
        seconds: dict[str, list[float]] = {name: [] for name in commands}
        for turn in range(repeats + 1):
            for name, command in commands.items():
                begin = time.perf_counter()
                subprocess.run(command, check=True, capture_output=True, env=installed)
                if turn:
                    seconds[name].append(time.perf_counter() - begin)
    words = {"base": BASE, "maxmargin": WHOLE, "peer": PEER, "predict": "maxmargin predict"}
    return {name: Timing(words[name], tuple(taken)) for name, taken in seconds.items()}


def _python(code: str) -> list[str]:
    return [sys.executable, "-c", code]


def _predict(folder: Path) -> list[str] | None:
    """Return the command `maxmargin predict` on 150 rows with a fitted model; None if there is no command line."""
    script = Path(sys.executable).with_name("maxmargin")
    if not script.exists():
        return None
    from sklearn.datasets import dump_svmlight_file, load_iris

    X, y = load_iris(return_X_y=True)
    data, model = folder / "iris.svm", folder / "model.safetensors"
    dump_svmlight_file(X, y, str(data), zero_based=False)
    made = subprocess.run([script, "fit", data, "-o", model], capture_output=True, check=False)
    if made.returncode or not model.exists():
        return None
    return [str(script), "predict", str(model), str(data)]


@dataclass(frozen=True)
class Compilation:
    """Time of the first fit of a process minus the time of later fits, in seconds.

    `cold` is measured with an empty cache and `cached` with a full one. `numba` is the time that Numba itself needs in
    every process before its first compiled function runs; it is part of neither.
    """

    storage: str
    algorithm: str
    cold: float
    cached: float
    numba: float


def compilations(repeats: int = 5) -> list[Compilation]:
    """Measure every storage and rule: one process with an empty cache folder, then `repeats` with the filled folder."""
    found = []
    for storage in STORAGES:
        for algorithm in ("dcd", "mpu", "perceptron"):
            with tempfile.TemporaryDirectory() as folder:
                _first_fit(
                    folder, "none", algorithm
                )  # caches the compiled function that measures Numba's own time
                cold, _ = _first_fit(folder, storage, algorithm)
                cached, numba = np.median(
                    [_first_fit(folder, storage, algorithm) for _ in range(repeats)], axis=0
                )
            found.append(Compilation(storage, algorithm, cold, float(cached), float(numba)))
    return found


def _first_fit(folder: str, storage: str, algorithm: str) -> tuple[float, float]:
    run = subprocess.run(
        [sys.executable, "-m", "benchmarks.startup", storage, algorithm],
        check=True, capture_output=True, text=True, env={**os.environ, "NUMBA_CACHE_DIR": folder},
    )  # fmt: skip
    numba, first, *rest = json.loads(run.stdout)
    return first - min(rest), numba


def _storage(name: str, X: np.ndarray) -> Any:
    import scipy.sparse as sp

    if name == "dense":
        return X
    values = (X > 0.8) * 1.0 if name == "CSR, 0/1" else np.where(X > 0.8, X, 0.0)
    return sp.csr_matrix(values)


STORAGES = ("dense", "CSR", "CSR, 0/1")


def _nothing(x: float) -> float:
    return x


def _child(storage: str, algorithm: str) -> None:
    from numba import njit

    from maxmargin import MaxMarginClassifier

    begin = time.perf_counter()
    njit(_nothing, cache=True)(1.0)
    seconds = [time.perf_counter() - begin]
    if storage == "none":
        print(json.dumps([*seconds, 0.0, 0.0]))
        return
    rng = np.random.default_rng(0)
    X = _storage(storage, rng.standard_normal((3000, 20)))
    y = np.where(rng.random(3000) < 0.5, 1.0, -1.0)
    loss = "squared_hinge" if algorithm == "perceptron" else "hinge"
    for _ in range(3):
        model = MaxMarginClassifier(
            loss=loss, fit_intercept=False, algorithm=algorithm, tol=0.1, max_iter=5, random_state=0
        )
        begin = time.perf_counter()
        model.fit(X, y)
        seconds.append(time.perf_counter() - begin)
    print(json.dumps(seconds))


if __name__ == "__main__":
    _child(*sys.argv[1:])
