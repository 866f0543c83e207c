"""Soft margins in nine norms on all data sets: certified fits, and times beside those at p = 2.

`python -m benchmarks.any_norm`.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import asdict, dataclass
from functools import partial
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.datasets import load_svmlight_file
from threadpoolctl import threadpool_limits

from maxmargin import MaxMarginClassifier

from . import datasets
from .datasets import _path
from .page import deliver, grouped, page, page_parser, system, table, wrapped
from .unscaled import MICROARRAYS, SETS

PAGE = Path(__file__).parents[1] / "docs" / "measurements" / "any_norm.md"
NORMS: tuple[Any, ...] = (1, 1.2, 1.5, 1.8, 2, 3, 10, "log", np.inf)
LOSSES, POWERS, COSTS = ("hinge", "squared_hinge"), (2, 1), (0.01, 1.0, 100.0)
TOL = 1e-3
# A fit may take this many times as long as at p = 2 (with norm_power=2, the same loss and C), or MIN_SECONDS.
TIMES, MIN_SECONDS = 20.0, 2.0
MAX_SECONDS = 60.0  # time limit at p = 2

Rows = tuple[Any, np.ndarray]


def _sparse(make: Callable[[], datasets.Dataset]) -> Rows:
    found = make()
    return found.X, found.y


def _svmlight(file: str) -> Rows:
    return load_svmlight_file(str(_path(file)))


def _wbc() -> Rows:
    """Return the 683 rows of WBC without missing values."""
    text = np.genfromtxt(_path("wbc/breast-cancer-wisconsin.data.gz"), delimiter=",")
    whole = text[~np.isnan(text).any(axis=1)]
    return whole[:, 1:10], whole[:, 10]


def _votes() -> Rows:
    """Return the votes: y, n, ? are 1, -1, 0."""
    text = np.genfromtxt(_path("votes/house-votes-84.data.gz"), delimiter=",", dtype=str)
    return np.select([text[:, 1:] == "y", text[:, 1:] == "n"], [1.0, -1.0], 0.0), text[:, 0]


# the sets that take longest come first, so that processes end together
DATA: dict[str, Callable[[], Rows]] = {
    "mnist": partial(_sparse, datasets.mnist),
    "money-fx": partial(_sparse, datasets.reuters),
    "skin": SETS["skin"],
    "web": partial(_sparse, datasets.web),
    "adult": partial(_sparse, datasets.adult),
    "usps": lambda: (lambda rows: (rows[:, 1:], rows[:, 0]))(np.loadtxt(_path("usps/zip.train.gz"))),
    "madelon": SETS["madelon"],
    "letter": SETS["letter"],
    "pcmac": partial(_sparse, datasets.pcmac),
    **{name: SETS[name] for name in SETS if name not in ("digits", "iris", "wine", "breast_cancer")},
    **MICROARRAYS,
    "wbc": _wbc,
    "votes": _votes,
    "australian": partial(_svmlight, "australian/australian_scale.gz"),
    "a1a": partial(_svmlight, "adult/a1a.gz"),
    "mushrooms": partial(_sparse, datasets.mushrooms),
}


@dataclass(frozen=True)
class Fit:
    """A fit: its problem, and what it returned.

    Attributes
    ----------
    name : str
    loss : str
    power : int
    p : float or str
    C : float
    seconds : float
    allowed : float
        The longest time that counts as fast enough, which is also the time limit of the fit.
    gap : float
        Certified relative gap.
    status : str
    stage : str
        The solver of the last round.
    zeros : float
        Share of the entries of `coef_` that are exactly 0.
    """

    name: str
    loss: str
    power: int
    p: Any
    C: float
    seconds: float
    allowed: float
    gap: float
    status: str
    stage: str
    zeros: float

    @property
    def certified(self) -> bool:
        """Whether the gap is at most TOL within the allowed time."""
        return self.gap <= TOL


def binary(y: np.ndarray) -> np.ndarray:
    """Return labels -1.0 and 1.0: the most frequent class against the others."""
    values, counts = np.unique(y, return_counts=True)
    return np.where(y == values[counts.argmax()], 1.0, -1.0)


def rows_of(name: str) -> Rows:
    """Return a data set as CSR or C-ordered rows, with the labels of `binary`."""
    X, labels = DATA[name]()
    return sp.csr_matrix(X) if sp.issparse(X) else np.ascontiguousarray(X, dtype=float), binary(labels)


def fit(X: Any, y: np.ndarray, loss: str, power: int, p: Any, C: float, limit: float) -> tuple[float, Any]:
    """Fit with default settings; return seconds and the model."""
    model = MaxMarginClassifier(C=C, p=p, loss=loss, norm_power=power, max_time=limit, random_state=0)
    begin = time.perf_counter()
    model.fit(X, y)
    return time.perf_counter() - begin, model


def measured(X: Any, y: np.ndarray, key: tuple[str, str, int, Any, float], allowed: float) -> Fit:
    """Fit one problem, and once more if its gap is nearly small enough: the first fit may load compiled code."""
    name, loss, power, p, C = key
    seconds, model = fit(X, y, loss, power, p, C, allowed)
    if TOL < model.certificate_.gap < 10.0 * TOL:
        seconds, model = fit(X, y, loss, power, p, C, allowed)
    history = model.history_
    return Fit(
        name, loss, power, p, C, seconds, allowed, float(model.certificate_.gap), str(model.status_.name),
        history[-1].stage if len(history) else "", float((model.coef_ == 0.0).mean()),
    )  # fmt: skip


def of_set(name: str, loss: str, C: float, norms: Sequence[Any]) -> list[Fit]:
    """Return the fits of one data set with this loss and C."""
    with threadpool_limits(limits=1), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        X, y = rows_of(name)
        base = min(fit(X, y, loss, 2, 2, C, MAX_SECONDS)[0] for _ in range(2))
        allowed = max(MIN_SECONDS, TIMES * base)
        return [measured(X, y, (name, loss, power, p, C), allowed) for power, p in product(POWERS, norms)]


def warm_up(sparse: bool, loss: str, norms: Sequence[Any]) -> None:
    """Compile what the fits with this loss need, on small data."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 10))
    y = np.where(X[:, 0] + rng.normal(size=300) > 0.0, 1.0, -1.0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for power, p, C in product(POWERS, norms, (0.01, 100.0)):
            fit(sp.csr_matrix(X) if sparse else X, y, loss, power, p, C, MAX_SECONDS)


def cells(fits: Sequence[Fit]) -> Iterator[str]:
    """Return the cells of a line of the summary: certified fits for each norm, as a share of all."""
    for p in NORMS:
        some = [one for one in fits if one.p == p]
        done = sum(one.certified for one in some)
        yield f"{done}" if done == len(some) else f"**{done}**"


def heads() -> list[str]:
    """Return the heads of the columns of the norms."""
    return [f"p = {p}" for p in NORMS]


def unfinished(fits: Sequence[Fit]) -> str:
    """Return a paragraph on data sets of which not all problems were measured; empty if there are none."""
    whole = len(LOSSES) * len(POWERS) * len(COSTS) * len(NORMS)
    sizes = {name: len(some) for (name,), some in grouped(fits, lambda one: (one.name,)).items()}
    parts = [f"{size} of {whole} problems of {name}" for name, size in sizes.items() if size < whole]
    if not parts:
        return ""
    share = 100.0 * sum(one.certified for one in fits) / (whole * len(sizes))
    return wrapped(
        f"Measured were only {', '.join(parts)}: the other fits would take longer than the whole table. "
        f"With all of them counted as not certified, the share is {share:.1f} %."
    )


def document(fits: Sequence[Fit], command: str, machine: str) -> str:
    """Return the page."""
    certified = sum(one.certified for one in fits)
    infinite = sum(not np.isfinite(one.gap) for one in fits)
    whole = [
        [f"{loss}, norm_power={power}", *cells([f for f in fits if (f.loss, f.power) == (loss, power)])]
        for loss, power in product(LOSSES, POWERS)
    ]
    by_set = [[name, *cells(some)] for (name,), some in grouped(fits, lambda one: (one.name,)).items()]
    rest = [
        [one.name, one.loss, str(one.power), str(one.p), f"{one.C:g}", one.status, f"{one.gap:.1e}",
         f"{one.seconds:.1f}", f"{one.allowed:.1f}", one.stage]
        for one in fits if not one.certified
    ]  # fmt: skip
    sets, each = len({one.name for one in fits}), len(LOSSES) * len(POWERS) * len(COSTS)
    about = f"""Default settings, the hinge and the squared hinge, both powers of the norm, C in {{0.01, 1, 100}}, on
{sets} data sets without scaling; of several classes, the most frequent one against the others. A fit counts as
certified if its gap is at most 1e-3 within {TIMES:g} times the time at p = 2, or {MIN_SECONDS:g} s, whichever is more.
Ratios of times to other solvers are on [another page](norm_peers.md).

**{certified} of {len(fits)} fits are certified ({100.0 * certified / max(len(fits), 1):.1f} %); {infinite} end with an
infinite gap.**

{unfinished(fits)}"""
    top = table(["certified fits", *heads()], whole)
    return page(
        "Soft margins in every norm", about, top, command,
        {
            f"Certified fits of each data set, of {each}": table(["data", *heads()], by_set),
            "Fits that are not certified in time": table(
                ["data", "loss", "norm_power", "p", "C", "status", "gap", "s", "allowed, s", "last solver"], rest
            ),
            "Machine and packages": system("numpy", "scipy", "numba", "scikit-learn"),
        },
        machine,
    )  # fmt: skip


def main(arguments: list[str] | None = None) -> int:
    """Measure and print; with --write into `docs/measurements/any_norm.md`."""
    parser = parser_of_sets("any_norm", __doc__, PAGE)
    parser.add_argument("--norms", nargs="+", default=[str(p) for p in NORMS])
    parser.add_argument("--results", type=Path, help="file of results, read if it exists, otherwise written")
    options = parser.parse_args(arguments)
    norms = [p for p in NORMS if str(p) in options.norms]
    if options.results is not None and options.results.exists():
        fits = [Fit(**one) for one in json.loads(options.results.read_text())]
    else:
        fits = collected(options.sets, norms, options.processes, options.results)
    order = {name: k for k, name in enumerate(DATA)}
    fits.sort(key=lambda one: (order[one.name], one.loss, one.power, NORMS.index(one.p), one.C))
    text = document(fits, "python -m benchmarks.any_norm --write", options.machine)
    deliver(text, PAGE if options.write else None)
    return 0


def parser_of_sets(module: str, description: str | None, to: Path) -> argparse.ArgumentParser:
    """Return the parser of a benchmark that runs these data sets in processes."""
    parser = page_parser(module, description, to)
    parser.add_argument("--sets", nargs="+", choices=list(DATA), default=list(DATA), help="data sets")
    parser.add_argument("--processes", type=int, default=1)
    parser.add_argument("--machine", default="2 shared cores, one thread used", help="as the page states it")
    return parser


def pool_of_one_thread_each(processes: int) -> ProcessPoolExecutor:
    """Return a pool of this number of processes, in which BLAS uses one thread."""
    for name in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS"):
        os.environ[name] = "1"
    return ProcessPoolExecutor(processes)


def collected(sets: Sequence[str], norms: Sequence[Any], processes: int, results: Path | None) -> list[Fit]:
    """Return the fits of all sets, measured in this number of processes; write them to `results` as they come."""
    fits: list[Fit] = []
    with pool_of_one_thread_each(processes) as pool:
        for future in [
            pool.submit(warm_up, sparse, loss, norms) for sparse in (True, False) for loss in LOSSES
        ]:
            future.result()
        futures = [
            pool.submit(of_set, name, loss, C, norms) for name, loss, C in product(sets, LOSSES, COSTS)
        ]
        for future in as_completed(futures):
            found = future.result()
            fits += found
            done = sum(one.certified for one in found)
            print(
                f"{found[0].name} {found[0].loss} {found[0].C:g}: {done} of {len(found)}",
                file=sys.stderr,
                flush=True,
            )
            if results is not None:
                results.write_text(json.dumps([asdict(one) for one in fits]))
    return fits


if __name__ == "__main__":
    sys.exit(main())
