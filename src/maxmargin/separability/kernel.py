"""The search for a function of a kernel's feature space between two classes, or for the proof that there is none.

The floating-point method is decomposition, one working set at a time, until the margin of the iterate's function is
proved with bounds of the errors of all kernel values. For strictly positive definite kernels (the Gaussian) and
distinct rows a separator always exists, though its margin may be smaller than float64 kernel values can resolve. Other
proofs than equal rows of both classes are left to exact arithmetic on the rows of the kernel matrix, which are rows as
any other: no function of the kernel separates where no hyperplane separates them.

An algorithm on normalised patterns may take the place of decomposition.

Decomposition finds separators faster than the (smoothed) kernel Perceptrons and the primal-dual pair, which need
products with the whole matrix: measured on eight pairs of data and kernel.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any

import numpy as np

from ..algorithms.programs import Decomposition
from ..certificates.certificate import Certificate, Sample
from ..certificates.gram import KernelProblem, KernelSample
from ..certificates.row_pass import Bounds
from ..certificates.verdicts import KernelSeparator, Verdict
from ..fit.report import Task
from ..fit.runs import GramRun
from ..fit.schedules import SCHEDULES
from ..kernels.functions import Kernel, Linear, Precomputed
from ..numerics.progress import announce
from ..problem.problem import Problem
from ..solvers.decomposition import SET_SIZE, KernelRows
from .search import TRIVIAL, SeparatorSearch, trivial_certificate


def kernel_trivial_certificate(
    kernel: Kernel, problem: Problem, X: Any, y: np.ndarray
) -> dict[int, Fraction] | None:
    """Return weights of one or two rows that prove that no function of the kernel separates; None if there are none.

    Parameters
    ----------
    kernel : Kernel
    problem : Problem
        The hard margin; an augmented intercept can separate the same classes as a free one.
    X : ndarray or CSR matrix of shape (n, d)
    y : ndarray of shape (n,), entries -1.0 and 1.0
    """
    # a row of zeros has the feature vector 0 only with these kernels
    zero_rows = isinstance(kernel, Linear | Precomputed) and problem.intercept == "none"
    return trivial_certificate(X, y, zero_rows)[0]


def set_budget(n: int) -> int:
    """Return the number of working sets that a search on n rows solves without a `max_time`, in some seconds.

    A working set of k of n rows takes about 50 n k operations.
    """
    return min(int(2e9 / (50.0 * n * min(n, SET_SIZE))), 300) + 10


@dataclass(eq=False)
class KernelSearch(SeparatorSearch):
    """The search for a function of a kernel's feature space; further parameters as of `SeparatorSearch`.

    Parameters
    ----------
    kernel : Kernel
    more_sets : float, default=0
        Number of working sets beyond `set_budget` that are solved where neither a margin nor a proof is found within
        it; inf to go on until the deadline.
    """

    kernel: Kernel
    more_sets: float = 0

    def __post_init__(self) -> None:
        super().__post_init__()
        self.X = self.X.astype(np.float64, copy=False)
        self._ones = np.ones(self.y.size)
        # megabytes of kernel rows, as in scikit-learn's SVC
        rows = KernelRows(self.kernel, self.X, 200.0)
        self._longest = float(rows.diagonal.max(initial=0.0)) ** 0.5
        solver = Decomposition() if self.algorithm is None or self.start is not None else self.algorithm
        self.method = solver.words
        task = Task(self.problem, rows, self.y, self._ones)
        run = GramRun(task, solver, 0.0, np.random.default_rng(0), self.deadline.interrupted)
        self._best, self._rounds = run.best, SCHEDULES[solver.schedule](run)

    def verdict(self) -> Verdict:
        """Look for equal rows of both classes, then for a function with a proved margin."""
        weights = kernel_trivial_certificate(self.kernel, self.problem, self.X, self.y)
        if weights is not None:
            return self.inseparable(weights, TRIVIAL)
        end = self._solve()
        if self._proved_margin() > 0.0:
            return self._separable()
        return self.undecided(
            f"{end}; with a kernel only equal rows of both classes are a proof", self._certificate(0.0)
        )

    @cached_property
    def _kernel_problem(self) -> KernelProblem:
        return KernelProblem(self.problem, KernelSample(self.kernel, self.X), self.y, self._ones)

    def _solve(self) -> str:
        """Solve working sets until a margin is proved, or a limit ends it; return the reason for the end.

        Where the margin is positive, `set_budget` more are solved, to narrow its interval to `tol`. An algorithm that
        takes the place of decomposition has rounds in place of working sets, and runs to its end.
        """
        best, decomposes, budget = self._best, self.method == Decomposition.words, set_budget(self.y.size)
        most, word = (budget + self.more_sets, "working set") if decomposes else (np.inf, "round")
        for done, _ in enumerate(self._rounds, 1):
            announce(f"{self.method}, {word} {done}")
            positive = best.lower > 0.0
            # 0.9: the certificate is rounded outwards, and must still be within `tol`
            if positive and best.gap <= 0.9 * self.tol and self._proved_margin() > 0.0:
                return ""
            # squared lengths near 1e-14 of the largest consist of the rounding errors of kernel values
            if not positive and best.upper <= 1e-7 * self._longest:
                return "float64 kernel values cannot distinguish the margins from zero"
            if done >= most + (budget if positive else 0):
                return (
                    f"the search ended after {done} working sets without a proved margin: "
                    "set max_time in separate to search for that many seconds"
                )
        if decomposes:
            return "decomposition narrows the bounds no further with float64 kernel values"
        return f"{self.method} ended without a separator"

    def _proved_margin(self) -> float:
        """Return a proved lower bound of the margin of the best function so far; -inf if there is none."""
        c, b = self._best.primal
        return self._kernel_problem.attained_margin(c, b) if c.any() else -np.inf

    def _certificate(self, lower: float) -> Certificate:
        """Return the certificate of a margin `lower` with the best dual weights so far."""
        alpha = self._kernel_problem.feasible(self._best.alpha)
        upper, above = self._kernel_problem.dual_bound(alpha)
        sample = Sample(self.X, self.y, self._ones)
        return sample.certificate(self.problem, alpha, Bounds(lower, upper, 0.0, above), self.kernel)

    def _separable(self) -> KernelSeparator:
        """Return the verdict on the best function."""
        c, b = self._best.primal
        lower = self._proved_margin()
        fields = self.bound_fields(lower, self._certificate(lower), self.method)
        return KernelSeparator(coefficients=c, b=b, **fields)
