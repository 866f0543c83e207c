"""One kernel problem under way, on rows of the kernel of one precision."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np

from ..algorithms import Algorithm, Decomposition
from ..certificates.expansions import KernelPoint
from ..certificates.gram import KernelSample
from ..data.task import GramTask
from ..engine.order import Source
from ..problem.status import Status
from .attempt import Attempt
from .gram_exact import finish
from .gram_run import GramRun
from .incumbent import ROUNDING
from .report import Report, Stopping

# Rounds without a separator before the verdict on separability is asked for: it costs as much as many rounds.
ASKED = 20
# Multiple of the rounding error of the rows below which a bound of all margins is no margin at all.
HOPELESS = 100.0


class GramAttempt(Attempt):
    """A kernel task with its solver.

    Parameters
    ----------
    task : GramTask
    algorithm : Algorithm or Decomposition
    stopping : Stopping
    rng : Generator or Draws
    sample : KernelSample
        The same rows in float64, for the exact stage.
    inseparable : callable
        Returns whether there is a proof that no separator exists; called once at most.
    rounds : int
    history : list of Report
        Of the attempts before.
    """

    def __init__(
        self,
        task: GramTask,
        algorithm: Algorithm | Decomposition,
        stopping: Stopping,
        rng: Source,
        sample: KernelSample,
        inseparable: Callable[[], bool],
        rounds: int,
        history: list[Report],
    ) -> None:
        super().__init__(task, stopping, history)
        self.task, self.sample, self.rounds = task, sample, rounds
        self._inseparable = inseparable
        diagonal = task.rows.diagonal
        self.no_margin = HOPELESS * np.finfo(diagonal.dtype).eps * float(diagonal.max(initial=0.0)) ** 0.5
        self.run = GramRun(task, algorithm, stopping.tol, rng, stopping.watch.interrupted)
        self.run.look_for_zero_rows()
        self._rounds = self._scheduled()

    def point(self) -> KernelPoint:
        """Return the best point so far."""
        tracker = self.run.tracker
        return KernelPoint(tracker.alpha, tracker.primal.w, tracker.primal.b)

    def rules_out_separator(self) -> bool:
        if not self.problem.hard or self.rounds != ASKED or self.run.lower > 0.0:
            return False
        return self._inseparable()

    def _exact(self) -> Iterator[None]:
        finish(self.run.tracker, self.problem, self.task.y, self.task.weights, self.sample)
        yield

    def _status_of_exact(self) -> Status | None:
        return Status.CONVERGED if self.run.gap <= ROUNDING else None

    def _report(self, name: str, reason: str) -> None:
        run, point = self.run, self.point()
        margin = run.lower
        if not self.problem.hard:
            margin = (2.0 * run.upper) ** -0.5 if run.upper > 0.0 else np.inf
        report = self._append((run.lower, run.upper, run.gap), margin, name, reason)
        self.stopping.on_report(report, lambda: point)
