"""Common code of the sections about the MPU paper: the data sets, the printed numbers, and timed fits.

C. Panagiotakopoulos, P. Tsampouka, "The margin perceptron with unlearning", ICML 2010. The problem is the hinge loss
with C = 1 and no intercept.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from math import floor, log10
from pathlib import Path
from statistics import median
from typing import Any, NamedTuple

import numpy as np
from sklearn.datasets import load_svmlight_file

from maxmargin import MPU, MaxMarginClassifier
from maxmargin.algorithms import Algorithm

from .record import NO_DATA, Cell, interval, number

COLUMNS = ("MPU", "DCD", "SVMperf", "Pegasos")
LIBLINEAR = "DCD of LIBLINEAR"
# the place among `COLUMNS` of the printed numbers with which our columns are compared
PLACES = {"MPU": 0, "DCD": 1, LIBLINEAR: 1, "SVMperf": 2, "OCAS": 2, "Pegasos": 3}
# why the times of a column have another ratio to MPU's than the printed ones; the verdict adds passes and their times
IMPLEMENTATION, OTHER_ALGORITHM = "another implementation and computer", "another algorithm than SVMperf"
STOP_GAP = 1e-4  # delta_stop of the paper, here the certified gap
ORDERS = range(5)  # seeds of random orders
PAPER_MPU = MPU(delta=1e-5, schedule="two-level")  # c_bar, N_ep1, N_ep2 and delta_b are the defaults


@dataclass(frozen=True)
class DataSet:
    """Data set of the tables.

    Attributes
    ----------
    name, size : str
    J : str
        Printed objectives, here and below in the order of `COLUMNS`, separated by spaces.
    seconds, rough_seconds : str
        Printed times: of Table 1, and of Table 2, to 1 % above the optimum.
    eps : tuple of float
        The stopping parameters of DCD and of SVMperf.
    iterations : float
        Iterations of Pegasos.
    file : str
        Empty if the data are not at hand.
    optimum : float
        The optimal objective in the digits shown, from an independent solver; NaN if the data are not at hand.
    """

    name: str
    size: str
    J: str
    seconds: str
    eps: tuple[float, float]
    iterations: float
    rough_seconds: str
    file: str = ""
    optimum: float = np.nan

    def load(self, folder: Path) -> tuple[Any, np.ndarray]:
        """Return the patterns and the labels."""
        return load_svmlight_file(str(folder / self.file))


ADULT = DataSet(
    "Adult", "32,561 x 123", "11434.4 11434.4 11434.4 11434.9", "0.4 0.3 9.3 397.0", (0.06, 0.004), 3e7,
    "0.1 0.2 1.5 4.0", "adult/a9a.gz", 11433.81,
)  # fmt: skip
WEB = DataSet(
    "Web", "49,749 x 300", "6605.17 6605.15 6605.22 6605.31", "0.1 0.1 11.1 199.7", (0.07, 0.001), 2e7,
    "0.1 0.1 0.3 1.0", "web/w8a.gz", 6604.89,
)  # fmt: skip
DATA_SETS = (
    ADULT,
    WEB,
    DataSet(
        "Physics", "50,000 x 70", "49643.6 49642.6 49644.1 49644.2", "0.4 2.0 2.2 13.3", (0.05, 0.02), 5e5,
        "0.1 0.1 0.3 0.3",
    ),
    DataSet(
        "Real-sim", "72,309 x 20,958", "5402.25 5402.22 5402.58 5402.53", "0.5 0.4 6.1 395.3", (0.01, 0.001), 2e7,
        "0.3 0.2 0.8 3.2",
    ),
    DataSet(
        "News20", "19,996 x 1,355,191", "2562.57 2562.57 2562.71 2562.69", "4.9 4.2 659.6 1673.0", (0.003, 0.001),
        1e7, "1.6 0.6 12.8 10.6",
    ),
    DataSet(
        "Webspam (unigram)", "350,000 x 254", "69592.1 69591.4 69592.9 69599.6", "3.1 2.8 10.3 297.7",
        (0.07, 0.001), 9e6, "1.2 1.4 7.4 13.7",
    ),
    DataSet(
        "Covertype", "581,012 x 54", "340490 340491 340493 340505", "22.2 46.6 505.4 2447.9", (0.08, 0.008), 1e8,
        "6.2 9.1 76.5 141.9",
    ),
    DataSet(
        "C11 (RCV1)", "804,414 x 47,236", "44725.4 44725.3 44730.5 44730.3", "5.7 5.1 29.2 2743.6",
        (0.02, 0.001), 1e8, "3.1 3.5 12.9 27.9",
    ),
    DataSet(
        "CCAT (RCV1)", "804,414 x 47,236", "92990.2 92989.3 92992.8 93000.5", "8.1 7.9 54.3 3103.6",
        (0.02, 0.001), 1e8, "3.7 3.6 19.3 31.6",
    ),
)  # fmt: skip
AT_HAND = tuple(data for data in DATA_SETS if data.file)


class Results(NamedTuple):
    """Runs of an algorithm in several orders, or a single run.

    Attributes
    ----------
    J : tuple of float
        The objectives.
    seconds, passes : float
        Medians of the CPU seconds, and of the number of row visits divided by the number of rows; NaN if not known.
    """

    J: tuple[float, ...]
    seconds: float
    passes: float

    @property
    def cost(self) -> str:
        """Number and time of the passes, which explain a different time; only the time if the passes are not known."""
        if np.isnan(self.passes):
            return f"{self.seconds:.2g} s in all"
        return f"{self.passes:,.0f} passes of {digits(1e3 * self.seconds / self.passes)} ms"

    @classmethod
    def of(cls, runs: Sequence[tuple[float, float, float]]) -> Results:
        """Return the results of runs, each with its objective, seconds and passes."""
        J, seconds, passes = zip(*runs, strict=True)
        return cls(J, median(seconds), median(passes))


def last_iterate(algorithm: Algorithm, X: Any, y: np.ndarray, **options: Any) -> tuple[float, float, float]:
    """Return the objective of the last iterate, the CPU seconds of the fit and its passes over the rows."""
    model = MaxMarginClassifier(
        C=1.0, loss="hinge", fit_intercept=False, algorithm=algorithm, point="last", max_iter=10**9, **options
    )
    began = time.process_time()
    model.fit(X, y)
    seconds, report = time.process_time() - began, model.history_[-1]
    return report.upper, seconds, report.presentations / y.size


def ratios(
    data: DataSet,
    seconds: str,
    columns: Iterable[str],
    found: dict[str, Results],
    stored: bool = False,
) -> Iterator[Cell]:
    """Yield the cells of the times as multiples of MPU's, and MPU's own time in seconds.

    Parameters
    ----------
    data : DataSet
    seconds : str
        Printed seconds.
    columns : iterable of str
        Keys of `PLACES`.
    found : dict
        From a column to its results; empty if nothing was computed.
    stored : bool, default=False
        Whether the results of Pegasos come from the store.
    """
    printed, own = seconds.split(), found.get("MPU")
    label = ", ".join(printed)
    yield Cell(data.name, label, "MPU, CPU seconds", "", f"{own.seconds:.3f}" if own else "")
    for column in columns:
        ours, reason = "", "" if data.file else NO_DATA
        if own and column in found:
            ours = digits(found[column].seconds / own.seconds)
            cause = OTHER_ALGORITHM if column == "OCAS" else IMPLEMENTATION
            reason = f"{cause}: {found[column].cost}; MPU {own.cost}"
        yield Cell(
            data.name, label, f"{column} / MPU", rounded_ratio(printed[PLACES[column]], printed[0]), ours, reason,
            stored=stored and column == "Pegasos",
        )  # fmt: skip


def rounded_ratio(seconds: str, divisor: str) -> str:
    """Return the interval of the ratio of two times that are printed to 0.1 s."""
    above, below = number(seconds), number(divisor)
    return interval(
        digits(value) for value in ((above - 0.05) / (below + 0.05), (above + 0.05) / (below - 0.05))
    )


def digits(value: float) -> str:
    """Return a positive number in two significant digits."""
    rounded = float(f"{value:.1e}")
    return f"{rounded:,.{max(1 - floor(log10(rounded)), 0)}f}"
