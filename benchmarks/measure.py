"""What the benchmarks share: problems with a judge that no solver uses, and times of peers at the same accuracy.

A peer is fitted at smaller and smaller tolerances. The first fit counts whose true excess over the optimum is at most
that of the comparison: a user does not know this tolerance. The excess is taken over the lower bound that our dual
variables prove, computed here.
"""

from __future__ import annotations

import multiprocessing
import resource
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from scipy.optimize import minimize_scalar

from maxmargin import MaxMarginClassifier

TOLERANCES = tuple(float(f"{m * 10.0**-k:g}") for k in range(9) for m in (1.0, 0.3))
REPEATS, SHORT = 3, 1.0  # fits of less than a second are repeated
WAIT = 600.0  # seconds of the wall clock after which a child process is given up: the machine may be shared

Solve = Callable[["Problem", float], np.ndarray]


@dataclass(frozen=True, eq=False)
class Problem:
    """A problem and its judge: 1/2 |w|^2 (or |w|, if `power` is 1) + C sum loss(y_i w.x_i), or the largest margin."""

    X: Any
    y: np.ndarray
    C: float = 1.0
    loss: str = "hinge"
    p: float = 2.0
    power: int = 2
    intercept: bool = False
    kernel = None

    @property
    def hard(self) -> bool:
        """Whether the largest margin is sought."""
        return self.loss == "hard"

    @property
    def q(self) -> float:
        """The exponent of the norm of w."""
        return np.inf if self.p == 1 else 1.0 if np.isinf(self.p) else self.p / (self.p - 1.0)

    def objective(self, w: np.ndarray) -> float:
        """Return the objective of the best multiple of w, without intercept."""
        margins, length = self.y * (self.X @ w), float(np.linalg.norm(w, self.q))

        def at(k: float) -> float:
            slack = np.maximum(1.0 - k * margins, 0.0)
            loss = slack.sum() if self.loss == "hinge" else slack @ slack
            return (0.5 * (k * length) ** 2 if self.power == 2 else k * length) + self.C * float(loss)

        found: Any = minimize_scalar(lambda log: at(float(np.exp(log))), bounds=(-1.0, 1.0), method="bounded")
        return min(at(1.0), float(np.min(found.fun)))

    def bound(self, alpha: np.ndarray) -> float:
        """Return the lower bound of dual variables, at their best multiple, without intercept."""
        length = float(np.linalg.norm(self.X.T @ (alpha * self.y), self.p))

        def at(k: float) -> float:
            beta = k * alpha
            if self.loss == "hinge" and (beta > self.C).any():
                return -np.inf
            gain = float(beta.sum()) - (0.0 if self.loss == "hinge" else float(beta @ beta) / (4.0 * self.C))
            if self.power == 1:
                return gain if k * length <= 1.0 else gain / (k * length)
            return gain - 0.5 * (k * length) ** 2

        return max(at(k) for k in (1.0, *np.linspace(0.9, 1.1, 201)))


def timed(run: Callable[[], Any], clock: Callable[[], float] = time.process_time) -> tuple[float, Any]:
    """Return the seconds of the processor that a call takes, and its result."""
    begin = clock()
    result = run()
    return clock() - begin, result


def ours(problem: Problem, tol: float, **settings: Any) -> tuple[float, Any]:
    """Fit MaxMarginClassifier, with defaults but for these settings; return the seconds and the model."""
    model = MaxMarginClassifier(
        problem.C, loss="squared_hinge" if problem.hard else problem.loss, p=problem.p, tol=tol, random_state=0,
        **{"fit_intercept": problem.intercept, "norm_power": problem.power, **settings},
    )  # fmt: skip
    return timed(lambda: model.fit(problem.X, problem.y))


def dual(model: Any, n: int) -> np.ndarray:
    """Return the dual variables of a binary problem of n rows."""
    alpha = np.zeros(n)
    alpha[model.certificate_.support] = model.certificate_.dual
    return alpha


def compare(
    problem: Problem, peers: Mapping[str, Solve], tol: float, limit: float = 20.0, **settings: Any
) -> Iterator[dict[str, Any]]:
    """Yield a row for each peer: our seconds, status and true gap; its seconds, tolerance and true excess.

    A peer has `limit` seconds for all of its fits. If it does not come within `tol`, its longest fit counts.
    """
    ours(problem, tol, **settings)  # loads or compiles the code
    seconds, model = ours(problem, tol, **settings)
    times = [seconds, *(ours(problem, tol, **settings)[0] for _ in range(REPEATS - 1) if seconds < SHORT)]
    lower = problem.bound(dual(model, problem.y.size))
    gap = problem.objective(model.coef_.ravel()) / lower - 1.0 if lower > 0.0 else np.inf
    mine = {"ours": float(np.median(times)), "status": model.status_.value, "gap": gap}
    for name, solve in peers.items():
        tried = in_child(lambda solve=solve: attempts(problem, solve, lower, tol), limit)
        seconds, tolerance, excess = tried[-1] if tried else (limit, "", np.inf)
        if not excess <= tol:
            longest = max([one[0] for one in tried], default=0.0)
            ended = len(tried) == len(TOLERANCES)
            seconds = longest if ended else max(longest, limit - sum(one[0] for one in tried))
        reached = "yes" if excess <= tol else "no"
        yield mine | {
            "peer": name,
            "theirs": seconds,
            "tolerance": tolerance,
            "excess": excess,
            "reached": reached,
        }


def attempts(
    problem: Problem, solve: Solve, lower: float, tol: float
) -> Iterator[tuple[float, float, float]]:
    """Yield seconds, tolerance and excess of a peer's fits, until one comes within `tol` of the lower bound."""
    for tolerance in TOLERANCES:
        fit = partial(solve, problem, tolerance)
        seconds, w = timed(fit, time.thread_time)  # with a limit Linux counts a process in steps of 4 ms
        excess = problem.objective(w) / lower - 1.0
        if excess <= tol and seconds < SHORT:
            again = [timed(fit, time.thread_time)[0] for _ in range(REPEATS - 1)]
            seconds = float(np.median([seconds, *again]))
        yield seconds, tolerance, excess
        if excess <= tol:
            return


def in_child(work: Callable[[], Iterable[Any]], seconds: float) -> list[Any]:
    """Return what a function yields in a child process, which ends after these seconds of the processor."""
    context: Any = multiprocessing.get_context("fork")
    receiver, sender = context.Pipe(duplex=False)
    process = context.Process(target=_send, args=(sender, work, seconds))
    process.start()
    sender.close()
    found = []
    with suppress(EOFError):  # the process has ended
        while receiver.poll(WAIT):
            found.append(receiver.recv())
    process.kill()
    process.join()
    return found


def _send(sender: Any, work: Callable[[], Iterable[Any]], seconds: float) -> None:
    most = int(np.ceil(seconds))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    resource.setrlimit(resource.RLIMIT_CPU, (most, most + 1))
    for one in work():
        sender.send(one)
