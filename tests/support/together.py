"""Fits at the same time, in threads or in forked processes, from an empty compile cache; prints JSON.

``python together.py {threads, forks, loky} COUNT`` fits one model by itself and COUNT models at the same time, and
prints whether all are the same, bit for bit.
"""

from __future__ import annotations

import hashlib
import json
import os
import sys
from concurrent.futures import ThreadPoolExecutor
from threading import Barrier

import numpy as np
from joblib import Parallel, delayed

from maxmargin import KernelMaxMarginClassifier, MaxMarginClassifier

RNG = np.random.default_rng(0)
X = RNG.normal(size=(400, 6))
Y = np.where(X[:, 0] + 0.3 * RNG.normal(size=400) > 0.0, 1, -1)
ESTIMATORS = {
    "hinge": MaxMarginClassifier(loss="hinge", algorithm="mpu", max_iter=20, random_state=0),
    "squared hinge": MaxMarginClassifier(random_state=0),
    "kernel": KernelMaxMarginClassifier(random_state=0),
}


def digest(name: str) -> str:
    """Return the digest of what a fit found."""
    model = ESTIMATORS[name].__class__(**ESTIMATORS[name].get_params()).fit(X, Y)
    numbers = model.decision_function(X), model.certificate_.lower, model.certificate_.upper
    return hashlib.sha256(b"".join(np.asarray(one).tobytes() for one in numbers)).hexdigest()


def in_threads(name: str, count: int) -> list[str]:
    """Fit in threads that begin at the same time."""
    start = Barrier(count)

    def fitted(_: int) -> str:
        start.wait()
        return digest(name)

    with ThreadPoolExecutor(count) as pool:
        return list(pool.map(fitted, range(count)))


def in_forks(name: str, count: int) -> list[str]:
    """Fit in forked processes."""
    pipes = []
    for _ in range(count):
        reading, writing = os.pipe()
        if not os.fork():
            found = b""
            try:
                found = digest(name).encode()
            finally:
                os.write(writing, found)
                os._exit(0)
        os.close(writing)
        pipes.append(reading)
    found = [os.read(pipe, 100).decode() for pipe in pipes]
    for _ in pipes:
        os.wait()
    return found


def in_loky(name: str, count: int) -> list[str]:
    """Fit in processes of joblib."""
    return Parallel(n_jobs=2, backend="loky")(delayed(digest)(name) for _ in range(count))


def main(how: str, count: int, names: list[str]) -> None:
    """Fit at the same time, alone, and in forks after that."""
    calls = {"threads": in_threads, "forks": in_forks, "loky": in_loky}
    result = {}
    for name in names:
        found = calls[how](name, count)
        alone = digest(name)
        later = in_forks(name, 2) if hasattr(os, "fork") and how != "loky" else []  # a fork after a fit
        result[name] = [one == alone for one in found + later]
    print(json.dumps(result))


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), sys.argv[3:] or list(ESTIMATORS))
