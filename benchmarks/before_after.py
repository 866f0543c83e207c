"""Compare the times of two checkouts of this package on some 300 problems, without peers.

`python -m benchmarks.before_after --before ../old`: each checkout runs in its own process, with the code of this
benchmark. The two processes fit the same problem in turn. Groups of problems are called pages: text and sparse rows
("benchmarks"), dense rows of unequal scale ("regimes"), default fits ("defaults") and Gaussian kernels ("kernels").
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field
from functools import lru_cache
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np

from .datasets import DATASETS, MICROARRAYS, SCALED, SETS, UNEQUAL, kernel_sets, standardised

HERE = Path(__file__).parents[1]
LOSSES = ("hinge", "squared_hinge")
MAX_SECONDS = 120.0  # time limit of a fit
TURN_SECONDS, MAX_FITS = 1.0, 7  # seconds of one checkout's fits of a problem, and their largest number


@dataclass(frozen=True)
class Row:
    """A problem: its group, a data set, and the parameters of the estimator."""

    page: str
    data: str
    parameters: dict[str, Any] = field(hash=False)

    def __str__(self) -> str:
        settings = ", ".join(
            f"{name}={value}" for name, value in self.parameters.items() if name != "cache_size"
        )
        return f"{self.page} {self.data} {settings}"


def rows() -> Iterator[Row]:
    """Yield the rows of all pages; rows of the same data set follow each other."""
    for name, C, algorithm in product(DATASETS, (1.0, 0.1), ("auto", "dcd", "mpu")):
        common = {"loss": "hinge", "fit_intercept": False, "tol": 1e-4}
        yield Row("benchmarks", name, {"C": C, "algorithm": algorithm, **common})
    soft = ("unequal-200k", "skin", "satimage", "letter", "unequal-1m")
    for name, loss, C, tol, intercept in product(
        soft, LOSSES, (1e-3, 1.0, 100.0), (1e-4, 1e-6), ({"intercept_scaling": 1.0}, {})
    ):
        yield Row("regimes", name, {"C": C, "loss": loss, "tol": tol} | intercept)
    for name, tol in product(("sonar", *MICROARRAYS), (1e-4, 1e-6)):
        yield Row("regimes", name, {"C": float("inf"), "tol": tol})
    scaled = [f"{name} scaled" for name in SCALED]
    for name, loss, C in product((*SETS, *scaled, *MICROARRAYS), LOSSES, (1e-3, 1.0, 1e3)):
        yield Row("defaults", name, {"C": C, "loss": loss})
    for name in kernel_sets():
        yield Row("kernels", name, {"tol": 1e-3, "cache_size": 200.0})


@lru_cache(maxsize=1)
def load(page: str, name: str) -> Any:
    """Return the data of a row: (X, y), or a set of the kernel benchmarks."""
    if page == "kernels":
        return kernel_sets()[name]()
    if page == "benchmarks":
        return DATASETS[name]()
    X, y = {**SETS, **MICROARRAYS, **UNEQUAL}[name.removesuffix(" scaled")]()
    X = standardised(X) if name.endswith(" scaled") else X
    return X, np.unique(y, return_inverse=True)[1]


def fit(row: Row) -> dict[str, Any]:
    """Fit once with the package that this process imports; return the time, the status and the gap."""
    from maxmargin import KernelMaxMarginClassifier, MaxMarginClassifier

    if row.page == "kernels":
        data = load(row.page, row.data)
        scheme = "ovr" if data.against == "the rest" else "ovo"
        model: Any = KernelMaxMarginClassifier(data.C, gamma=data.gamma, multi_class=scheme, **row.parameters)
        X, y = data.X, data.y
    else:
        model = MaxMarginClassifier(random_state=0, max_time=MAX_SECONDS, **row.parameters)
        X, y = load(row.page, row.data)
    begin = time.process_time()
    model.fit(X, y)
    seconds = time.process_time() - begin
    return {"seconds": seconds, "status": model.status_.value, "gap": model.certificate_.gap}


class Checkout:
    """Process that imports the package of one checkout and fits problems with it."""

    def __init__(self, folder: Path) -> None:
        one_thread = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "NUMBA_NUM_THREADS"), "1")
        environment = {
            **os.environ,
            **one_thread,
            "PYTHONPATH": str(folder / "src"),
            "PYTHONWARNINGS": "ignore",
        }
        command = [sys.executable, "-m", "benchmarks.before_after", "--worker"]
        self._process = subprocess.Popen(
            command, cwd=HERE, env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )

    def fit(self, row: Row) -> dict[str, Any]:
        """Fit a row once in the process."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        print(json.dumps(asdict(row)), file=self._process.stdin, flush=True)
        return json.loads(self._process.stdout.readline())


def compare(row: Row, before: Checkout, after: Checkout) -> tuple[float, float, str, str]:
    """Return the shortest times of both checkouts, fitted in turn, and how their fits ended.

    The first fit of each loads data and compiled code and does not count.
    """
    times: dict[Checkout, list[float]] = {before: [], after: []}
    ends = {checkout: checkout.fit(row) for checkout in times}
    while len(times[after]) < MAX_FITS and sum(times[before] + times[after]) < 2.0 * TURN_SECONDS:
        for checkout, found in times.items():
            found.append(checkout.fit(row)["seconds"])
    return min(times[before]), min(times[after]), ends[before]["status"], ends[after]["status"]


def main(arguments: list[str] | None = None) -> int:
    """Print a line for each row, then geometric means of the ratios after / before, and counts of certified fits."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.before_after", description=__doc__)
    parser.add_argument("--before", type=Path, help="the other checkout")
    parser.add_argument("--pages", nargs="+", default=["benchmarks", "regimes", "defaults", "kernels"])
    parser.add_argument("--skip", nargs="+", default=[], help="data sets to skip")
    parser.add_argument("--worker", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args(arguments)
    if options.worker:
        for line in sys.stdin:
            print(json.dumps(fit(Row(**json.loads(line)))), flush=True)
        return 0
    if options.before is None:
        parser.error("the other checkout is required: --before FOLDER")
    before, after = Checkout(options.before.resolve()), Checkout(HERE)
    ratios: dict[str, list[float]] = {}
    certified: list[tuple[bool, bool]] = []  # of the default fits
    for row in rows():
        if row.page not in options.pages or row.data in options.skip:
            continue
        old, new, ended_before, ended_after = compare(row, before, after)
        ratios.setdefault(row.page, []).append(new / old)
        if row.page == "defaults":
            certified.append((ended_before == "CERTIFIED", ended_after == "CERTIFIED"))
        ends = ended_after if ended_after == ended_before else f"{ended_before} -> {ended_after}"
        print(f"{new / old:.2f}  {1e3 * old:.2f} -> {1e3 * new:.2f} ms  {ends}  {row}", flush=True)
    summaries = {**ratios, "all": [ratio for found in ratios.values() for ratio in found]}
    for page, found in summaries.items():
        mean = float(np.exp(np.mean(np.log(found))))
        print(f"{page}: geometric mean {mean:.3f} of {len(found)} rows, largest {max(found):.2f}")
    if certified:
        earlier, later = map(sum, zip(*certified, strict=True))
        print(f"defaults: {earlier} of {len(certified)} fits CERTIFIED before, {later} after")
    return 0


if __name__ == "__main__":
    sys.exit(main())
