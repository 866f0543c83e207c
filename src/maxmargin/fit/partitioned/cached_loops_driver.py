"""Dual cached loops for all binary problems of a fit, one after another, each in passes of its own."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from ...certificates.certificate import Certificate
from ...data.partitions import ArrayPartitions, Gathered
from .cached_loops import SETTINGS, STAGE, LoopSettings, LoopsRun, rows_in_memory
from .driver import PartitionedFit, PartitionedSolution, PassDriver
from .dual_arrays import dual_arrays

# Attributes of `LoopsRun` that a checkpoint stores, beside the dual variables, the rows kept and the random numbers.
STATE = (
    "u", "rho", "balance", "best", "upper", "lower", "factors", "steps", "passes", "level",
)  # fmt: skip


class LoopsDriver(PassDriver):
    """Dual cached loops for all binary problems of a fit: soft margins at p = 2.

    The problems are solved one after another, each in passes of its own: each keeps other rows in memory.

    A checkpoint holds the state of every problem after its last whole pass, also of those that have ended: a time limit
    divides the time among the problems, and the same call goes on with each that is not certified.

    Parameters
    ----------
    fit : PartitionedFit
        With `ArrayPartitions`.
    settings : LoopSettings
    """

    stage = STAGE
    method = "rows in partitions: dual coordinate descent, with the open rows in memory"
    partitions: ArrayPartitions
    runs: list[LoopsRun]

    def __init__(self, fit: PartitionedFit, settings: LoopSettings = SETTINGS) -> None:
        super().__init__(fit)
        self.settings, self.rows = settings, rows_in_memory(fit.memory, self.partitions)
        self.states: list[dict[str, Any] | None] = [None for _ in self.labels]

    def solutions(self) -> list[PartitionedSolution]:
        if self.resume() is False:
            return [self.solution(k, self.stopped()) for k in range(len(self.labels))]
        whole, found = self.fit.stopping, []
        for k in range(len(self.labels)):
            self.stopping = replace(whole, deadline=whole.deadline.split(len(self.labels) - k))
            with dual_arrays(self.partitions.shape[0], self.fit.memory, self.fit.folder) as duals:
                status = self.make_passes() if self._begin_problem(k, duals) else self.stopped()
                if not self.histories[k]:
                    self.runs[k].best = self.runs[k].z  # of the blocks before the fit was stopped
                found.append(self.solution(k, status))
                self.runs[k].release()
        return found

    def _begin_problem(self, k: int, duals: np.ndarray) -> bool:
        """Begin a problem, or restore it; return whether its rows could be read."""
        rng = np.random.default_rng([self.fit.seed, k])
        run = LoopsRun(
            self.partitions, self.coordinates, self.positives[k], self.rows, duals, rng, self.stopping.tol,
            self.settings,
        )  # fmt: skip
        self.runs.append(run)
        state = self.states[k]
        if state is None:
            return True
        set_state(run, state)
        run.fingerprint = self.fingerprints[k]
        if not self.open_problems():  # no rows are needed
            return True
        numbers = state["kept"]
        rows = self.partitions.gather(numbers, self.stopping.deadline.interrupted)
        if rows is None:
            return False
        run.kept = rows.some(np.searchsorted(rows.numbers, numbers))
        return True

    def open_problems(self) -> list[int]:
        k, run = len(self.runs) - 1, self.runs[-1]
        return [k] if run.gap > self.stopping.tol and run.idle < self.settings.max_idle else []

    def advance(self, problems: list[int]) -> bool:
        (k,) = problems
        run = self.runs[k]
        sums = run.advance(self.interrupted)
        if sums is None:
            return False
        self.check_rows(k, sums)
        self.report(k)
        if self.fit.checkpoint is not None:
            self.states[k] = get_state(run)
        return True

    def certificate(self, k: int) -> Certificate:
        return self.runs[k].certificate()

    def held_rows(self) -> Gathered:
        kept = self.runs[-1].kept
        assert kept is not None
        return kept

    def state_of(self, k: int) -> dict[str, Any] | None:
        return self.states[k]

    def restore(self, rows: Gathered, state: dict[str, Any], states: list[dict[str, Any] | None]) -> None:
        self.states = states


def get_state(run: LoopsRun) -> dict[str, Any]:
    """Return the state between two passes, in which the dual variables that are not 0 are stored with their rows."""
    assert run.kept is not None
    state = {name: getattr(run, name) for name in STATE} | {"kept": run.kept.numbers}
    state |= {"u": run.u.copy(), "random": run.rng.bit_generator.state}
    for name in ("current", "proved"):
        signed = getattr(run, name)
        support = np.flatnonzero(signed)
        state[name] = {"rows": support, "signed": np.asarray(signed[support])}
    return state


def set_state(run: LoopsRun, state: dict[str, Any]) -> None:
    """Set what `get_state` has returned, but for the rows kept."""
    for name in STATE:
        setattr(run, name, state[name])
    run.u, run.factors = state["u"].copy(), tuple(state["factors"])
    run.rng.bit_generator.state = state["random"]
    for name in ("current", "proved"):
        getattr(run, name)[state[name]["rows"]] = state[name]["signed"]
