"""Solvers of the comparison: each call is timed and returns w. The judge is in `objective.py`."""

from __future__ import annotations

import ctypes
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from liblinear.liblinear import parameter, problem
from liblinear.liblinearutil import train
from sklearn.svm import LinearSVC

from maxmargin import MaxMarginClassifier, Status

from .datasets import Dataset

TOL = 1e-4


def ladder(least: float) -> tuple[float, ...]:
    """Return tolerances from 1 downwards, six per decade; a peer counts at the loosest sufficient tolerance."""
    return tuple(
        float(f"{mantissa * 10.0**-decade:.2g}")
        for decade in range(16)
        for mantissa in (1.0, 0.7, 0.5, 0.3, 0.2, 0.15)
        if mantissa * 10.0**-decade >= least
    )


LADDER = ladder(1e-6)


@dataclass(frozen=True)
class Answer:
    """Result of a fit: thread and wall seconds, w, and the report of the solver (None if it has none)."""

    seconds: float
    wall: float
    w: np.ndarray
    certified: bool = False
    gap: float | None = None
    rounds: int | None = None


Peer = Callable[[float, int], Answer]


class _Stopwatch:
    """Stopwatch of thread time and wall time, which differ if cores are shared."""

    def __init__(self) -> None:
        self.begin = time.thread_time(), time.perf_counter()

    def read(self) -> tuple[float, float]:
        return time.thread_time() - self.begin[0], time.perf_counter() - self.begin[1]


def ours(data: Dataset, C: float, algorithm: Any, seed: int, max_time: float = 600.0) -> Answer:
    """Fit MaxMarginClassifier once; the time includes validation, packing of the rows and the certificate."""
    model = MaxMarginClassifier(
        C=C,
        loss="hinge",
        fit_intercept=False,
        tol=TOL,
        algorithm=algorithm,
        random_state=seed,
        max_time=max_time,
    )
    watch = _Stopwatch()
    model.fit(data.X, data.y)
    seconds = watch.read()
    certified = model.status_ is Status.CERTIFIED and model.certificate_.gap <= TOL
    return Answer(*seconds, model.coef_.ravel(), certified, model.certificate_.gap, model.n_iter_)


def linear_svc(data: Dataset, C: float) -> Peer:
    """Return the fit of scikit-learn's LinearSVC."""

    def fit(tol: float, seed: int) -> Answer:
        model = LinearSVC(loss="hinge", fit_intercept=False, C=C, tol=tol, max_iter=10**6, random_state=seed)
        watch = _Stopwatch()
        model.fit(data.X, data.y)
        return Answer(*watch.read(), model.coef_.ravel())

    return fit


def liblinear(data: Dataset, C: float) -> Peer:
    """Return the fit of liblinear-official. The time to build its problem object is not counted, which favours it."""
    built = problem(data.y, data.X)
    libc = ctypes.CDLL(None)

    def fit(tol: float, seed: int) -> Answer:
        libc.srand(seed)
        options = parameter(f"-s 3 -B -1 -c {C!r} -e {tol!r} -q")
        watch = _Stopwatch()
        model = train(built, options)
        seconds = watch.read()
        w = np.ctypeslib.as_array(model.w, (data.X.shape[1],)).copy()
        return Answer(*seconds, w if model.label[0] == 1 else -w)  # w is that of the class of the first row

    return fit


PEERS: dict[str, Callable[[Dataset, float], Peer]] = {"LinearSVC": linear_svc, "liblinear": liblinear}
