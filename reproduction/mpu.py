"""The MPU paper: Tables 1 and 2, and certified objectives of at most those of Table 1.

C. Panagiotakopoulos, P. Tsampouka, "The margin perceptron with unlearning", ICML 2010. The problem is the hinge loss
with C = 1 and no intercept.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from math import floor, log10
from pathlib import Path
from statistics import median
from typing import Any, NamedTuple

import numpy as np
from scipy.sparse import csr_matrix
from sklearn.datasets import load_svmlight_file
from sklearn.svm import LinearSVC

from maxmargin import MaxMarginClassifier, Status, verify
from maxmargin.algorithms import MPU, Algorithm, DualCoordinateDescent, Pegasos

from .cutting_plane import rounds
from .record import Cell, Row, Section, Tables, interval, like, number, results_of

COLUMNS = ("MPU", "DCD", "SVMperf", "Pegasos")
LIBLINEAR = "DCD of LIBLINEAR"
# the place among `COLUMNS` of the printed numbers with which our columns are compared
PLACES = {"MPU": 0, "DCD": 1, LIBLINEAR: 1, "SVMperf": 2, "OCAS": 2, "Pegasos": 3}
STOP_GAP = 1e-4  # delta_stop of the paper, here the certified gap
TOLERANCES = (STOP_GAP, 5e-5, 2e-5, 1e-5)  # tried in turn while a run ends above the printed value
ORDERS = range(5)  # seeds of random orders
PAPER_MPU = MPU(delta=1e-5, schedule="two-level")  # c_bar, N_ep1, N_ep2 and delta_b are the defaults
SHRINKING = DualCoordinateDescent(schedule="shrinking")


@dataclass(frozen=True)
class DataSet:
    """Data set of the tables.

    Attributes
    ----------
    J, seconds, rough_seconds : str
        Printed objectives, times of Table 1, and times of Table 2 to 1 % above the optimum, in the order of `COLUMNS`.
    eps : tuple of float
        The stopping parameters of DCD and of SVMperf.
    iterations : int
        Iterations of Pegasos.
    optimum : float
        The optimal objective in the digits shown, from an independent solver.
    """

    name: str
    file: str
    J: str
    seconds: str
    rough_seconds: str
    eps: tuple[float, float]
    iterations: int
    optimum: float

    def load(self, folder: Path) -> tuple[Any, np.ndarray]:
        """Return the patterns and the labels."""
        return load_svmlight_file(str(folder / self.file))


DATA_SETS = (
    DataSet(
        "Adult", "adult/a9a.gz", "11434.4 11434.4 11434.4 11434.9", "0.4 0.3 9.3 397.0", "0.1 0.2 1.5 4.0",
        (0.06, 0.004), 30_000_000, 11433.81,
    ),
    DataSet(
        "Web", "web/w8a.gz", "6605.17 6605.15 6605.22 6605.31", "0.1 0.1 11.1 199.7", "0.1 0.1 0.3 1.0",
        (0.07, 0.001), 20_000_000, 6604.89,
    ),
)  # fmt: skip


class Found(NamedTuple):
    """Objectives in several orders, or a single one, and the median of the CPU seconds."""

    J: list[float]
    seconds: float


class Planes(NamedTuple):
    """The end of a run of cutting planes: the last objective, bounds, CPU seconds, rounds and passes."""

    J: float
    upper: float
    lower: float
    seconds: float
    rounds: int
    passes: int


def planes(X: Any, y: np.ndarray, ocas: bool, done: Callable[[float, float], bool]) -> Planes:
    """Run cutting planes until done(upper, lower)."""
    began, upper, found = time.process_time(), np.inf, None
    for count, (point, lower, passes) in enumerate(rounds(X, y, ocas), 1):
        upper = min(upper, point.value)
        found = Planes(point.value, upper, lower, time.process_time() - began, count, passes)
        if done(upper, lower):
            break
    assert found is not None
    return found


def alone(algorithm: Algorithm, X: Any, y: np.ndarray, **options: Any) -> tuple[float, float]:
    """Return the objective of the last iterate, and the CPU seconds of the run."""
    began = time.process_time()
    found = algorithm.run(
        X, y, 1.0, loss="hinge", intercept="none", max_epochs=np.inf, record=None, **options
    )
    return found.objective, time.process_time() - began


def in_orders(run: Callable[[int], tuple[float, float]]) -> Found:
    """Return the results of runs in all `ORDERS`."""
    J, seconds = zip(*(run(seed) for seed in ORDERS), strict=True)
    return Found(list(J), median(seconds))


def results(column: str, data: DataSet, X: Any, y: np.ndarray) -> Found:
    """Run the algorithm of a column, a key of `PLACES`, in all `ORDERS`; cutting planes once."""
    if column in ("SVMperf", "OCAS"):
        allowed = 0.01 * data.eps[1] * y.size  # SVMperf's losses are in percent
        end = planes(X, y, column == "OCAS", lambda upper, lower: upper - lower <= allowed)
        return Found([end.J], end.seconds)
    if column == LIBLINEAR:
        return in_orders(lambda seed: liblinear(X, y, data.eps[0], seed))
    algorithm = {
        "MPU": PAPER_MPU,
        "DCD": DualCoordinateDescent(schedule="shrinking", eps=data.eps[0]),
        "Pegasos": Pegasos(k=30, T=data.iterations),
    }[column]
    tol = STOP_GAP if column == "MPU" else None
    return in_orders(lambda seed: alone(algorithm, X, y, tol=tol, random_state=seed))


def liblinear(X: Any, y: np.ndarray, eps: float, seed: int) -> tuple[float, float]:
    """Return the same as `alone` for LIBLINEAR, which scikit-learn contains."""
    model = LinearSVC(
        C=1.0, loss="hinge", fit_intercept=False, tol=eps, dual=True, max_iter=10**6, random_state=seed
    )
    rows = csr_matrix((X.data, X.indices.astype(np.int32), X.indptr.astype(np.int32)), X.shape)
    began = time.process_time()
    model.fit(rows, y)
    seconds, w = time.process_time() - began, model.coef_.ravel()
    return float(0.5 * w @ w + np.maximum(1.0 - y * (X @ w), 0.0).sum()), seconds


def table1(folder: Path, everything: bool) -> Tables:
    """Yield the objectives and the ratios of times; Pegasos comes from the store, or runs again with `everything`."""
    objectives: list[Row] = []
    times: list[Row] = []
    for data in DATA_SETS:
        X, y = data.load(folder)
        found = {column: results(column, data, X, y) for column in list(PLACES)[:-1]}
        second = found["MPU"].seconds

        def pegasos(data: DataSet = data, X: Any = X, y: Any = y, second: float = second) -> list[float]:
            run = results("Pegasos", data, X, y)
            return [run.seconds / second, *run.J]

        ratio, *J = results_of("mpu_table1", f"{data.name}, Pegasos", True, everything, pegasos)
        found["Pegasos"] = Found(J, ratio * second)
        close = (
            f"both within {0.01 * data.eps[1] * y.size:.1f} of the optimum, {data.optimum:.2f}, as ε allows"
        )
        row: Row = {"data set": data.name}
        for column, place in PLACES.items():
            printed = data.J.split()[place]
            ours = interval(like(printed, J) for J in found[column].J)
            row[f"J, {column}" + "†" * (column == "Pegasos")] = Cell(
                printed, ours, close if place == 2 else ""
            )
        objectives.append(row)
        times.append(ratios(data, data.seconds, found))
    yield objectives
    yield times


def table2(folder: Path, everything: bool) -> Tables:
    """Yield the ratios of times to an objective of 1 % above the optimum."""
    rows: list[Row] = []
    algorithms: dict[str, Algorithm] = {"MPU": PAPER_MPU, "DCD": SHRINKING, "Pegasos": Pegasos(k=30)}
    for data in DATA_SETS:
        X, y = data.load(folder)
        target = 1.01 * data.optimum

        def run(algorithm: Algorithm, X: Any = X, y: Any = y, target: float = target) -> Found:
            options = {"callback": lambda row: row.objective <= target}
            return in_orders(lambda seed: alone(algorithm, X, y, random_state=seed, **options))

        found = {name: run(algorithm) for name, algorithm in algorithms.items()}
        for name in ("SVMperf", "OCAS"):
            end = planes(X, y, name == "OCAS", lambda upper, lower, target=target: upper <= target)
            found[name] = Found([end.J], end.seconds)
        rows.append(ratios(data, data.rough_seconds, found))
    yield rows


def ratios(data: DataSet, seconds: str, found: dict[str, Found]) -> Row:
    """Return the times as multiples of MPU's, which are printed to 0.1 s, and MPU's own time in seconds."""
    printed, own = [number(text) for text in seconds.split()], found["MPU"].seconds
    row: Row = {
        "data set": data.name,
        f"seconds as printed: {', '.join(COLUMNS)}": seconds.replace(" ", ", "),
        "MPU, CPU seconds": f"{own:.3f}",
    }
    for column in [column for column in PLACES if column in found and column != "MPU"]:
        above, below = printed[PLACES[column]], printed[0]
        least, most = (above - 0.05) / (below + 0.05), (above + 0.05) / (below - 0.05)
        reason = (
            "another algorithm than SVMperf" if column == "OCAS" else "another implementation and computer"
        )
        row[f"{column} / MPU"] = Cell(
            interval([digits(least), digits(most)]), digits(found[column].seconds / own), reason
        )
    return row


def digits(value: float) -> str:
    """Return a positive number in two significant digits."""
    rounded = float(f"{value:.1e}")
    return f"{rounded:,.{max(1 - floor(log10(rounded)), 0)}f}"


RUNS: dict[
    str, tuple[str, Algorithm | bool]
] = {  # the column of the printed numbers; an algorithm, or whether OCAS
    "MPU, two-level active set of the paper, δ = 1e-5": ("MPU", PAPER_MPU),
    "MPU, gap-driven, δ = 1e-5": ("MPU", MPU(delta=1e-5)),
    "dual coordinate descent, shrinking of its paper": ("DCD", SHRINKING),
    "dual coordinate descent, gap-driven": ("DCD", DualCoordinateDescent()),
    "cutting planes, OCAS": ("OCAS", True),
    "cutting planes, one slack as in SVMperf": ("SVMperf", False),
}


class Certified(NamedTuple):
    """A run at a tolerance: bounds, rounds, and passes over the rows."""

    tol: float
    lower: float
    upper: float
    rounds: int
    passes: float


def certified(name: str, tol: float, X: Any, y: np.ndarray) -> Certified:
    """Run one of `RUNS` to a gap of `tol`; `verify` recomputes the bounds of a model from the data."""
    _, algorithm = RUNS[name]
    if isinstance(algorithm, bool):
        end = planes(X, y, algorithm, lambda upper, lower: upper - lower <= tol * lower)
        return Certified(tol, end.lower, end.upper, end.rounds, end.passes)
    model = MaxMarginClassifier(
        C=1.0, loss="hinge", fit_intercept=False, tol=tol, algorithm=algorithm, random_state=0, max_iter=10**9
    ).fit(X, y)
    assert model.status_ is Status.CERTIFIED
    found: Any = verify(model, X, y)
    passes = model.history_[-1].presentations / y.size
    return Certified(tol, found.lower, found.upper, model.n_iter_, passes)


def certified_tables(folder: Path, everything: bool) -> Tables:
    """Yield the objectives; a run that ends above the printed value is repeated at a smaller tolerance."""
    rows: list[Row] = []
    for data in DATA_SETS:
        X, y = data.load(folder)
        for name, (column, _) in RUNS.items():
            printed, first = data.J.split()[PLACES[column]], np.nan
            for tol in TOLERANCES:
                found = certified(name, tol, X, y)
                first = found.upper if tol == STOP_GAP else first
                if found.upper <= number(printed):
                    break
            rows.append({
                "set": data.name, "algorithm": name, f"J at {STOP_GAP:g}": f"{first:.3f}", "tol": f"{found.tol:g}",
                "J": Cell(f"≤ {printed}", f"{found.upper:.3f}", "", found.upper <= number(printed)),
                "lower bound": f"{found.lower:.3f}", "gap": f"{found.upper / found.lower - 1.0:.1e}",
                "rounds": f"{found.rounds}", "passes": f"{found.passes:.1f}",
            })  # fmt: skip
    yield rows


TEXT1 = """\
C. Panagiotakopoulos, P. Tsampouka, "The margin perceptron with unlearning", ICML 2010. The problem is the hinge loss
with C = 1 and no intercept, J the primal objective `1/2 |w|^2 + sum max(0, 1 - y_i w.x_i)` at the last iterate. Adult
is a9a (32,561 x 123), Web is w8a (49,749 x 300); the paper's other seven sets are not at hand. The parameters are the
printed ones: MPU with δ = 1e-5, two-level active sets with c̄ = 1.01, 3 and 10 epochs, δ_b = 3 R², ended by a gap of
1e-4; dual coordinate descent (DCD) with shrinking and LIBLINEAR's criterion ε = 0.06 and 0.07; cutting planes with one
slack as in SVMperf, with ε = 0.004 and 0.001 in percent of the rows; Pegasos with k = 30 and 3e7 and 2e7 iterations.
Two more columns are compared with the same printed numbers: the DCD of LIBLINEAR, in scikit-learn, and OCAS.

The order of the rows is random, and the paper's is not known: MPU, DCD and Pegasos run in five orders (seeds 0 to 4).
The second table has times as multiples of MPU's, in CPU seconds of one thread; the printed seconds are rounded to 0.1,
so that a printed ratio is an interval. On the shared machine a ratio varies by up to a third between runs.
"""
TEXT2 = """\
The problem and the algorithms are those of Table 1, here without their own stopping criteria. A run ends at the first
evaluation of all rows with an objective of at most 1 % above the optimum. The median of five orders (seeds 0 to 4) is
shown, in CPU seconds of one thread, evaluations included, as a multiple of MPU's.
"""
TEXT3 = """\
The problem is that of Table 1. Here every J is an upper bound of the optimum, with a lower bound beside it. `verify`
recomputes both from the data, except for cutting planes, which `reproduction/cutting_plane.py` has. Every algorithm
runs at the paper's tolerance of 1e-4, which is here a certified gap. If J is then above the printed value of the
algorithm, it runs again at half the tolerance or less; *tol* is the tolerance of the run shown. *rounds* is the number
of evaluations on all rows, *passes* the number of presentations divided by the number of rows. The optimal objectives,
from an independent solver, are 11433.81 and 6604.89. The rows come in random order (seed 0).
"""
TITLE = "The margin Perceptron with unlearning"
SECTIONS = {
    "mpu_table1": Section(f"{TITLE}, Table 1", TEXT1, table1),
    "mpu_table2": Section(f"{TITLE}, Table 2: times to 1 %", TEXT2, table2),
    "mpu_certified": Section(f"{TITLE}: certified objectives", TEXT3, certified_tables),
}
