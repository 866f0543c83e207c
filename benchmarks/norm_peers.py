"""Soft margins in other norms than p = 2 against LIBLINEAR's L1 penalty, HiGHS and Clarabel, at the same accuracy.

`python -m benchmarks.norm_peers`.
"""

from __future__ import annotations

import importlib
import multiprocessing
import sys
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp
from scipy.optimize import linprog, minimize_scalar
from sklearn.svm import LinearSVC
from threadpoolctl import threadpool_limits

from maxmargin import MaxMarginClassifier

from .any_norm import parser_of_sets, pool_of_one_thread_each, rows_of
from .page import deliver, extent, grouped, page, system, table, wrapped

linear_svc: Any = LinearSVC  # typed as Any: its annotation refuses dual=False
clarabel: Any = None
with suppress(ImportError):
    clarabel = importlib.import_module("clarabel")

PAGE = Path(__file__).parents[1] / "docs" / "measurements" / "norm_peers.md"
NORMS, COSTS = (1.0, 1.5, 3.0, np.inf), (0.01, 1.0, 100.0)
TOL, LIMIT = 1e-3, 5.0
TOLS = 10.0 ** -np.arange(1.0, 9.0)  # of the peers, until one reaches TOL
# Rows x columns x smaller side up to which Clarabel is run: beyond, a factorisation may take more than LIMIT.
MAX_CONIC = 2e8


@dataclass(frozen=True)
class Task:
    """A soft margin without intercept, which every peer solves: its data and problem."""

    name: str
    X: Any
    y: np.ndarray
    p: float
    loss: str
    power: int
    C: float

    @property
    def q(self) -> float:
        """The exponent of the norm of w."""
        return np.inf if self.p == 1 else 1.0 if np.isinf(self.p) else self.p / (self.p - 1.0)

    def objective(self, w: np.ndarray) -> float:
        """Return the objective of the best multiple of w."""
        margins, length = self.y * (self.X @ w), float(np.linalg.norm(w, self.q))

        def at(k: float) -> float:
            slack = np.maximum(1.0 - k * margins, 0.0)
            loss = slack.sum() if self.loss == "hinge" else slack @ slack
            return (0.5 * (k * length) ** 2 if self.power == 2 else k * length) + self.C * float(loss)

        found: Any = minimize_scalar(lambda log: at(float(np.exp(log))), bounds=(-1.0, 1.0), method="bounded")
        return min(at(1.0), float(np.min(found.fun)))

    def bound(self, alpha: np.ndarray) -> float:
        """Return the lower bound of dual variables, at their best multiple up to two."""
        length = float(np.linalg.norm(self.X.T @ (alpha * self.y), self.p))

        def at(k: float) -> float:
            beta = np.minimum(k * alpha, self.C) if self.loss == "hinge" else k * alpha
            if k > 1.0 and self.loss == "hinge" and (k * alpha > self.C).any():
                return -np.inf
            gain = float(beta.sum()) - (0.0 if self.loss == "hinge" else float(beta @ beta) / (4.0 * self.C))
            if self.power == 1:
                return gain if k * length <= 1.0 else gain / (k * length)
            return gain - 0.5 * (k * length) ** 2

        return max(at(k) for k in np.linspace(0.9, 1.1, 201))


def ours(task: Task) -> tuple[float, np.ndarray, float]:
    """Return seconds, w and the lower bound of a default fit."""
    model = MaxMarginClassifier(
        C=task.C, p=task.p, loss=task.loss, norm_power=task.power, fit_intercept=False, max_time=LIMIT, random_state=0
    )  # fmt: skip
    begin = time.perf_counter()
    model.fit(task.X, task.y)
    seconds, certificate = time.perf_counter() - begin, model.certificate_
    alpha = np.zeros(task.y.size)
    alpha[certificate.support] = certificate.dual  # type: ignore[attr-defined]
    return seconds, model.coef_.ravel(), task.bound(alpha)


def l1(task: Task, tol: float) -> np.ndarray:
    """Fit LIBLINEAR's L1-regularised squared hinge (-s 5) by LinearSVC."""
    model = linear_svc(
        penalty="l1", dual=False, C=task.C, fit_intercept=False, tol=tol, max_iter=10**6, random_state=0
    )
    return model.fit(task.X, task.y).coef_.ravel()


def highs(task: Task, tol: float) -> np.ndarray:
    """Solve the linear program of the hinge with |w|_1 or |w|_inf by HiGHS; it has no gap to stop at."""
    n, d = np.shape(task.X)
    A = sp.csr_matrix(task.X).multiply(task.y[:, None]).tocsr()
    if task.q == 1.0:  # w = u - v
        G: Any = sp.hstack([A, -A, sp.eye(n)])
        cost = np.r_[np.ones(2 * d), np.full(n, task.C)]
    else:  # w = u - t, 0 <= u <= 2 t
        t = A @ np.ones(d)
        G = sp.hstack([A, sp.csr_matrix(-t[:, None]), sp.eye(n)])
        G = sp.vstack(
            [G, -sp.hstack([sp.eye(d), sp.csr_matrix(-2.0 * np.ones((d, 1))), sp.csr_matrix((d, n))])]
        )
        cost = np.r_[np.zeros(d), 1.0, np.full(n, task.C)]
    right = -np.r_[np.ones(n), np.zeros(G.shape[0] - n)]
    options: Any = {"time_limit": LIMIT}
    found = linprog(cost, A_ub=-G.tocsc(), b_ub=right, method="highs", options=options)
    if found.x is None:
        return np.zeros(d)
    return found.x[:d] - found.x[d : 2 * d] if task.q == 1.0 else found.x[:d] - found.x[d]


def conic(task: Task, tol: float) -> np.ndarray:
    """Solve the conic program by Clarabel: |w_j| <= t, a sum of |w_j|, or a power cone for each coordinate.

    Variables are w, r (bounds of the coordinates), t and the slacks xi; sum r <= t and |w_j| <= r_j^(1/q) t^(1-1/q).
    """
    n, d = np.shape(task.X)
    size = 2 * d + 1 + n
    w, r, t, xi = np.arange(d), d + np.arange(d), 2 * d, 2 * d + 1 + np.arange(n)

    def rows(*parts: tuple[Any, Any]) -> Any:
        """Return a matrix from blocks and the columns on which they act."""
        block: Any = sp.coo_matrix(sp.hstack([part for part, _ in parts]))
        columns = np.concatenate([np.atleast_1d(places) for _, places in parts])
        return sp.csc_matrix((block.data, (block.row, columns[block.col])), shape=(block.shape[0], size))

    eye, ones = sp.eye(d), sp.csr_matrix(np.ones((d, 1)))
    A = sp.csr_matrix(task.X).multiply(task.y[:, None])
    parts, sides, cones = (
        [rows((-A, w), (-sp.eye(n), xi)), rows((-sp.eye(n), xi))],
        [-np.ones(n), np.zeros(n)],
        [],
    )
    if np.isinf(task.q):
        parts += [rows((eye, w), (-ones, t)), rows((-eye, w), (-ones, t))]
    else:
        parts.append(rows((ones.T, r), (-sp.eye(1), t)))
        if task.q == 1.0:
            parts += [rows((eye, w), (-eye, r)), rows((-eye, w), (-eye, r))]
    linear = sum(part.shape[0] for part in parts)
    cones = [clarabel.NonnegativeConeT(linear)]
    if 1.0 < task.q < np.inf:  # (r_j, t, w_j) in the power cone of the exponent 1 / q
        stacked = sp.vstack([rows((-eye, r)), rows((-ones, t)), rows((-eye, w))])
        parts.append(stacked.tocsr()[np.arange(3 * d).reshape(3, d).T.ravel()])
        cones += [clarabel.PowerConeT(1.0 / task.q)] * d
    matrix: Any = sp.csc_matrix(sp.vstack(parts))
    right = np.zeros(matrix.shape[0])
    right[:n] = sides[0]
    curvature, cost = np.zeros(size), np.zeros(size)
    curvature[t], cost[t] = (1.0, 0.0) if task.power == 2 else (0.0, 1.0)
    curvature[xi], cost[xi] = (0.0, task.C) if task.loss == "hinge" else (2.0 * task.C, 0.0)
    settings = clarabel.DefaultSettings()
    settings.verbose, settings.time_limit = False, LIMIT
    settings.tol_gap_abs = settings.tol_gap_rel = settings.tol_feas = tol
    found = clarabel.DefaultSolver(
        sp.diags(curvature, format="csc"), cost, matrix, right, cones, settings
    ).solve()
    return np.nan_to_num(np.array(found.x)[:d])


PEERS: dict[str, tuple[Callable[[Task, float], np.ndarray], Callable[[Task], bool]]] = {
    "LinearSVC(penalty='l1')": (l1, lambda task: task.q == 1.0 and task.loss == "squared_hinge" and task.power == 1),
    "HiGHS": (highs, lambda task: task.q in (1.0, np.inf) and task.loss == "hinge" and task.power == 1),
    "Clarabel": (conic, lambda task: clarabel is not None and np.prod(task.X.shape) * min(task.X.shape) <= MAX_CONIC),
}  # fmt: skip


@dataclass(frozen=True)
class Ratio:
    """Seconds of maxmargin and of a peer for one task; `reached` is whether the peer came within TOL of the bound."""

    task: Task
    peer: str
    seconds: float
    gap: float
    peer_seconds: float
    reached: bool


def first_seconds(
    task: Task, solve: Callable[[Task, float], np.ndarray], target: float, results: Any
) -> None:
    """Send the seconds of a peer at its largest tolerance for which the objective is at most `target`."""
    for tol in TOLS:
        begin = time.perf_counter()
        w = solve(task, tol)
        seconds = time.perf_counter() - begin
        if task.objective(w) <= target:
            results.send(seconds)
            break


def compared(task: Task) -> Iterator[Ratio]:
    """Yield the comparisons of one task. A peer has a process of its own, which ends after LIMIT."""
    takers = [(name, solve) for name, (solve, takes) in PEERS.items() if takes(task)]
    if not takers:
        return
    ours(task)  # loads compiled code
    seconds, w, lower = ours(task)
    gap = task.objective(w) / lower - 1.0 if lower > 0.0 else np.inf
    for name, solve in takers:
        results, sender = multiprocessing.Pipe(duplex=False)
        process = multiprocessing.get_context("fork").Process(
            target=first_seconds, args=(task, solve, (1.0 + TOL) * lower, sender)
        )
        process.start()
        sender.close()  # so that `poll` returns when the process ends
        try:
            taken = results.recv() if results.poll(LIMIT) else None
        except EOFError:
            taken = None
        process.kill()
        process.join()
        yield Ratio(task, name, seconds, gap, LIMIT if taken is None else taken, taken is not None)


def part(name: str, p: float) -> list[Ratio]:
    """Return the comparisons of one data set and norm; entries are divided by the largest: no peer meets 1e5."""
    with threadpool_limits(limits=1), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        X, y = rows_of(name)
        X = X / float(np.abs(X).max())
        problems = product(("hinge", "squared_hinge"), (2, 1), COSTS)
        found = [one for problem in problems for one in compared(Task(name, X, y, p, *problem))]
    print(name, p, file=sys.stderr, flush=True)
    return found


def document(ratios: Sequence[Ratio], machine: str) -> str:
    """Return the page."""
    names = len({one.task.name for one in ratios})
    about = f"""Soft margins without intercept, p in {{1, 1.5, 3, inf}}, the hinge and the squared hinge, both
    powers of the norm, C in {{0.01, 1, 100}}, on {names} data sets, divided by their largest entry. A number is the
    time of the peer divided by ours; above 1, maxmargin is faster. A peer is run at the tolerances 1e-1, 1e-2, ...
    The first fit counts whose objective is within {TOL:g} of our lower bound, both computed by code of neither side.
    HiGHS has no relative gap, and runs to its optimum. A peer that takes {LIMIT:g} s without reaching it is counted as
    failed. Clarabel is run on data of at most {MAX_CONIC:g} rows x columns x smaller side."""
    rows, each = [], []
    for (peer, p), some in grouped(ratios, lambda one: (one.peer, f"{one.task.p:g}")).items():
        both = [one for one in some if one.reached and one.gap <= TOL]
        times = [one.peer_seconds / one.seconds for one in both]
        rows.append(
            [peer, p, str(len(some)), extent(times) if times else "", str(sum(one < 1.0 for one in times)),
             str(sum(not one.reached for one in some)), str(sum(not one.gap <= TOL for one in some))]
        )  # fmt: skip
    for one in ratios:
        each.append(
            [one.task.name, f"{one.task.p:g}", one.task.loss, str(one.task.power), f"{one.task.C:g}", one.peer,
             f"{one.seconds:.3g}", f"{one.gap:.1e}", f"{one.peer_seconds:.3g}" if one.reached else "failed"]
        )  # fmt: skip
    head = [
        "peer",
        "p",
        "problems",
        "time / maxmargin: median (range)",
        "peer is faster",
        "peer failed",
        "we failed",
    ]
    return page(
        "Other norms against peers", wrapped(" ".join(about.split())), table(head, rows),
        "python -m benchmarks.norm_peers --write",
        {"All problems": table(["data", "p", "loss", "norm_power", "C", "peer", "ours, s", "our gap", "peer, s"], each),
         "Machine and packages": system("numpy", "scipy", "numba", "scikit-learn", "clarabel")},
        machine,
    )  # fmt: skip


def main(arguments: list[str] | None = None) -> int:
    """Measure and print; with --write into `docs/measurements/norm_peers.md`."""
    options = parser_of_sets("norm_peers", __doc__, PAGE).parse_args(arguments)
    with pool_of_one_thread_each(options.processes) as pool:
        parts = pool.map(part, *zip(*product(options.sets, NORMS), strict=True))
        ratios = [one for found in parts for one in found]
    deliver(document(ratios, options.machine), PAGE if options.write else None)
    return 0


if __name__ == "__main__":
    sys.exit(main())
