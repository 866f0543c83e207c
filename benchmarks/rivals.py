"""Peers of `benchmarks.regimes`: dense rows with a constant last column, both losses, several classes.

A peer is constructed for a problem. It is then fitted at a tolerance, with a limit of passes and a seed, and returns w
of every class, in the order of the classes. The judge is in `objective.py`.
"""

from __future__ import annotations

import ctypes
import gc
import multiprocessing
import resource
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
import scipy.sparse as sp
from liblinear.liblinear import parameter, problem
from liblinear.liblinearutil import train
from sklearn.linear_model import SGDClassifier
from sklearn.svm import SVC, LinearSVC

from .solvers import Answer

try:
    import rehline  # type: ignore[import-not-found]
except ImportError:
    rehline = None
try:
    import snapml  # type: ignore[import-not-found]
except ImportError:
    snapml = None
try:
    import clarabel
except ImportError:
    clarabel = None

MAX_PASSES = 10**7  # largest limit of passes that a peer is given
GRACE_SECONDS = 60.0  # additional wall time of a fit over ten times its processor time, for a busy machine

Fit = Callable[[float, int, int], np.ndarray]  # (tolerance, passes, seed)
Make = Callable[[np.ndarray, np.ndarray, str, float], Fit]


@dataclass(frozen=True)
class Rival:
    """Peer: its name, its constructor, the losses that it is used for, and its package (None if not installed)."""

    name: str
    make: Make
    losses: tuple[str, ...] = ("hinge", "squared_hinge")
    package: Any = np

    @property
    def installed(self) -> bool:
        return self.package is not None


def _svc(dual: bool) -> Make:
    """Return the constructor of LinearSVC, without intercept: the rows have a constant column."""

    def make(X: np.ndarray, y: np.ndarray, loss: str, C: float) -> Fit:
        def fit(tol: float, passes: int, seed: int) -> np.ndarray:
            model = LinearSVC(
                loss=loss, C=C, tol=tol, dual=dual, fit_intercept=False, max_iter=passes, random_state=seed
            )
            return model.fit(X, y).coef_

        return fit

    return make


def _liblinear(solver: int) -> Make:
    """Return the constructor of liblinear-official with the solver of this number.

    liblinear has its own limit of passes. The time to build its problem object is not counted.
    """

    def make(X: np.ndarray, y: np.ndarray, loss: str, C: float) -> Fit:
        classes, codes = np.unique(y, return_inverse=True)
        built = problem(codes.astype(float), sp.csr_matrix(X))
        libc = ctypes.CDLL(None)

        def fit(tol: float, passes: int, seed: int) -> np.ndarray:
            libc.srand(seed)
            model = train(built, parameter(f"-s {solver} -B -1 -c {C!r} -e {tol!r} -q"))
            seen = np.array(model.get_labels())  # in the order of the rows
            if classes.size == 2:
                w = np.ctypeslib.as_array(model.w, (1, X.shape[1])).copy()
                return w if seen[0] == 1 else -w
            return np.ctypeslib.as_array(model.w, (X.shape[1], classes.size)).T[np.argsort(seen)].copy()

        return fit

    return make


def _sgd(X: np.ndarray, y: np.ndarray, loss: str, C: float) -> Fit:
    """Construct SGDClassifier with its default learning rate."""

    def fit(tol: float, passes: int, seed: int) -> np.ndarray:
        model = SGDClassifier(
            loss=loss,
            alpha=1.0 / (C * y.size),
            tol=tol,
            fit_intercept=False,
            max_iter=passes,
            random_state=seed,
        )
        return model.fit(X, y).coef_

    return fit


def _snapml(X: np.ndarray, y: np.ndarray, loss: str, C: float) -> Fit:
    """Construct SupportVectorMachine of snapml."""

    def fit(tol: float, passes: int, seed: int) -> np.ndarray:
        model = snapml.SupportVectorMachine(
            loss=loss, regularizer=1.0 / C, tol=tol, max_iter=passes, n_jobs=1, random_state=seed
        )
        return np.atleast_2d(model.fit(X, y).coef_)

    return fit


def _rehline(X: np.ndarray, y: np.ndarray, loss: str, C: float) -> Fit:
    """Construct plqERM_Ridge of ReHLine, fitted class by class."""
    sides = list(signs(y))
    name = "svm" if loss == "hinge" else "squared svm"

    def fit(tol: float, passes: int, seed: int) -> np.ndarray:
        model = rehline.plqERM_Ridge({"name": name}, C=C, tol=tol, max_iter=passes, coordinate_seed=seed)
        return np.array([np.ravel(model.fit(X, side).coef_) for side in sides])

    return fit


def signs(y: np.ndarray) -> Iterable[np.ndarray]:
    """Yield the labels -1.0 and 1.0 of every binary problem; two classes give one, with the second class positive."""
    classes = np.unique(y)
    for positive in classes[1:] if classes.size == 2 else classes:
        yield np.where(y == positive, 1.0, -1.0)


FAMILY = (  # the same C++ code in two packages, with several solvers; the goal refers to the fastest of them
    Rival("LinearSVC", _svc(dual=True)),
    Rival("LinearSVC, primal", _svc(dual=False), ("squared_hinge",)),
    Rival("liblinear -s 3", _liblinear(3), ("hinge",)),
    Rival("liblinear -s 1", _liblinear(1), ("squared_hinge",)),
    Rival("liblinear -s 2", _liblinear(2), ("squared_hinge",)),
)
OTHERS = (
    Rival("ReHLine", _rehline, package=rehline),
    Rival("snapml", _snapml, package=snapml),
    Rival("SGD", _sgd),
)


# the hard margin with a free intercept: peers return the w of a separator, and the judge finds the best intercept


def _hard_svc(X: np.ndarray, y: np.ndarray, loss: str, C: float) -> Fit:
    """Construct SVC with C=inf. Its tolerance is absolute, in the scale of the kernel values."""
    return lambda tol, passes, seed: SVC(kernel="linear", C=C, tol=tol, max_iter=passes).fit(X, y).coef_


def _clarabel(X: np.ndarray, y: np.ndarray, loss: str, C: float) -> Fit:
    """Construct Clarabel: on the primal problem if there are fewer columns than rows, otherwise on the dual one."""
    return _clarabel_primal(X, y) if X.shape[1] < X.shape[0] else _clarabel_dual(X, y)


def _clarabel_primal(X: np.ndarray, y: np.ndarray) -> Fit:
    n, d = X.shape

    def fit(tol: float, passes: int, seed: int) -> np.ndarray:
        rows = sp.csc_matrix(-y[:, None] * np.column_stack([X, np.ones(n)]))
        square = sp.diags([1.0] * d + [0.0], format="csc")
        return _conic(square, np.zeros(d + 1), rows, -np.ones(n), 0, tol, passes)[None, :d]

    return fit


def _clarabel_dual(X: np.ndarray, y: np.ndarray) -> Fit:
    n = y.size

    def fit(tol: float, passes: int, seed: int) -> np.ndarray:
        signed = y[:, None] * X
        rows = sp.csc_matrix(np.vstack([y, -np.eye(n)]))
        square = sp.triu(sp.csc_matrix(signed @ signed.T), format="csc")
        return (_conic(square, -np.ones(n), rows, np.zeros(n + 1), 1, tol, passes) @ signed)[None, :]

    return fit


def _conic(P: Any, q: np.ndarray, A: Any, b: np.ndarray, equal: int, tol: float, passes: int) -> np.ndarray:
    """Minimise 1/2 x.Px + q.x with A x = b in the first rows and A x <= b in the others."""
    settings = clarabel.DefaultSettings()
    settings.verbose, settings.max_iter = False, min(passes, 10**6)
    settings.tol_gap_abs = settings.tol_gap_rel = settings.tol_feas = tol
    cones = [clarabel.ZeroConeT(equal)] * (equal > 0) + [clarabel.NonnegativeConeT(b.size - equal)]
    return np.array(clarabel.DefaultSolver(P, q, A, b, cones, settings).solve().x)


HARD = (Rival("SVC", _hard_svc), Rival("Clarabel", _clarabel, package=clarabel))


def timed(fit: Fit, tol: float, passes: int, seed: int) -> Answer:
    """Fit once; return w with the processor time and the wall time."""
    gc.collect()  # collecting the garbage of earlier fits takes up to 0.1 s and is not counted
    begin = time.process_time(), time.perf_counter()
    w = fit(tol, passes, seed)
    return Answer(time.process_time() - begin[0], time.perf_counter() - begin[1], w)


@dataclass
class Bounded:
    """Fits of a peer in a child process, with as many passes as the time limit allows.

    The process is killed if a fit takes three times the limit. Results are cached: a ladder that is searched for two
    gaps is fitted once.
    """

    fit: Fit
    limit: float
    tightest: float
    known: dict[tuple[float, int], Answer] = field(default_factory=dict)

    def __call__(self, tol: float, seed: int) -> Answer:
        return self.at(tol, self.passes)

    def at(self, tol: float, passes: int) -> Answer:
        """Return the fit at this tolerance with at most this many passes."""
        if (tol, passes) not in self.known:
            self.known[tol, passes] = self._fitted(tol, passes)
        return self.known[tol, passes]

    @cached_property
    def passes(self) -> int:
        """Number of passes that the time limit allows, estimated from a short fit."""
        passes = 10
        while passes < MAX_PASSES:
            taken = self.at(self.tightest, passes).seconds
            if taken >= self.limit / 30.0:
                return max(10, int(passes * self.limit / taken))
            passes *= 10
        return passes

    def _fitted(self, tol: float, passes: int) -> Answer:
        context: Any = multiprocessing.get_context("fork")
        receiver, sender = context.Pipe(duplex=False)
        process = context.Process(target=self._send, args=(sender, tol, passes))
        process.start()
        sender.close()
        nothing = Answer(3.0 * self.limit, 3.0 * self.limit, np.empty(0))
        try:
            answer = receiver.recv() if receiver.poll(10.0 * self.limit + GRACE_SECONDS) else nothing
        except EOFError:  # the system killed the process
            answer = nothing
        process.kill()
        process.join()
        return answer

    def _send(self, sender: Any, tol: float, passes: int) -> None:
        seconds = int(np.ceil(3.0 * self.limit))
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        resource.setrlimit(resource.RLIMIT_CPU, (seconds, seconds + 1))
        sender.send(timed(self.fit, tol, passes, 0))
