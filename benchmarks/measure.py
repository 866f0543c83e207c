"""Comparison in one process and one thread: maxmargin at its certified gap, the peers at their true excess."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np
from threadpoolctl import threadpool_limits

from .datasets import Dataset
from .objective import Reference, primal, reference
from .solvers import LADDER, PEERS, TOL, Answer, Peer, ours

SHORT_SECONDS = 0.05  # fits shorter than this have three times as many seeds
LONG_SECONDS = 5.0  # if a fit takes longer than this, there are at most three seeds
COARSE_STEP = 3  # rungs of the ladder between two attempts of the first search
# The goal: GOAL_RATIO times the time of the best peer if that is more than GOAL_SECONDS, otherwise its whole time.
GOAL_RATIO, GOAL_SECONDS = 0.5, 0.010


@dataclass
class Row:
    """Fits of one solver on one problem.

    Attributes
    ----------
    solver : str
    seconds, wall, excess : list of float
        Thread time, wall time and excess (computed by the judge) of the fits that count.
    gaps : list of float
        Certified gaps; empty for a peer.
    settings : list of float
        Number of rounds of maxmargin, or the tolerance that counted for a peer.
    reached : bool
        Whether every fit reached an excess of 1e-4. If not, times are those of the last attempt.
    """

    solver: str
    seconds: list[float] = field(default_factory=list)
    wall: list[float] = field(default_factory=list)
    excess: list[float] = field(default_factory=list)
    gaps: list[float] = field(default_factory=list)
    settings: list[float] = field(default_factory=list)
    reached: bool = True

    @property
    def median(self) -> float:
        """Median thread time, in seconds."""
        return float(np.median(self.seconds))

    def note(self, answer: Answer, excess: float, setting: float, reached: bool) -> None:
        """Add one fit."""
        self.seconds.append(answer.seconds)
        self.wall.append(answer.wall)
        self.excess.append(excess)
        self.settings.append(setting)
        self.reached &= reached
        if answer.gap is not None:
            self.gaps.append(answer.gap)


@dataclass
class Comparison:
    """Results of all solvers on one problem."""

    data: Dataset
    C: float
    reference: Reference
    ours: list[Row]
    peers: list[Row]

    @property
    def best_peer(self) -> Row:
        """Fastest of the peers that reached 1e-4; fastest of all peers if none did."""
        return min(self.peers, key=lambda row: (not row.reached, row.median))

    def ratios(self, row: Row, wall: bool = False) -> np.ndarray:
        """Return the time of maxmargin divided by the time of the best peer in the same turn, for every turn."""
        ours, theirs = (one.wall if wall else one.seconds for one in (row, self.best_peer))
        if len(theirs) != len(ours):
            theirs = [float(np.median(theirs))] * len(ours)
        return np.asarray(ours) / np.asarray(theirs)

    @property
    def goal(self) -> float:
        """Largest ratio that meets the goal."""
        return GOAL_RATIO if self.best_peer.median > GOAL_SECONDS else 1.0

    def met(self, row: Row) -> bool:
        """Return whether every fit is certified, and the goal is met or no peer reached 1e-4."""
        return row.reached and (not self.best_peer.reached or float(np.median(self.ratios(row))) <= self.goal)


def compare(
    data: Dataset,
    C: float,
    algorithms: Sequence[str] = ("auto",),
    repeats: int = 7,
    limit: float = 120.0,
    say: Callable[[str], None] = lambda line: None,
) -> Comparison:
    """Fit all solvers in turn, seed by seed.

    Parameters
    ----------
    data : Dataset
    C : float
    algorithms : sequence of str
        Algorithms of maxmargin.
    repeats : int
        Number of seeds; three times as many if fits take milliseconds, at most three if they take many seconds.
    limit : float
        Seconds of one fit after which no tighter tolerance of a peer is tried.
    say : callable
        Function that receives a line about the progress.
    """
    with threadpool_limits(limits=1), warnings.catch_warnings():
        warnings.simplefilter("ignore")  # peers warn when they stop early; the true excess measures the same
        known = reference(data, C)
        say(f"{data.name} C={C:g}: optimum {known.lower:.8g} known to {known.width:.1e}")
        judge = _Judge(data, C, known)
        longest, shortest = 0.0, np.inf
        for name in algorithms:
            ours(data, C, name, seed=0)  # loads or compiles the machine code
            taken = ours(data, C, name, seed=0).seconds
            longest, shortest = max(longest, taken), min(shortest, taken)
        runners: list[Callable[[int], None]] = []
        peers = []
        for name, make in PEERS.items():
            peer = make(data, C)
            rung, answer, excess = search(peer, judge.excess, limit)
            say(f"  {name}: tol {LADDER[rung]:g}, {answer.seconds:.4g} s, true excess {excess:.2e}")
            longest = max(longest, answer.seconds)
            peers.append(_Peer(Row(name), peer, judge, rung, limit, excess > TOL))
        for one in peers:
            one.patient = longest <= LONG_SECONDS
            runners.append(one.turn)
        mine = [Row(name) for name in algorithms]
        runners += [_ours_turn(row, judge) for row in mine]
        count = (
            min(repeats, 3)
            if longest > LONG_SECONDS
            else 3 * repeats
            if shortest < SHORT_SECONDS
            else repeats
        )
        for seed in range(1, count + 1):
            for k in np.random.default_rng(seed).permutation(
                len(runners)
            ):  # a random order, so that no solver always follows the same one
                runners[k](seed)
    return Comparison(data, C, known, mine, [one.row for one in peers])


@dataclass
class _Judge:
    """Judge of one problem: computes the true excess of every answer."""

    data: Dataset
    C: float
    known: Reference

    def excess(self, answer: Answer) -> float:
        return self.known.excess(primal(self.data, self.C, answer.w))


def _ours_turn(row: Row, judge: _Judge) -> Callable[[int], None]:
    def turn(seed: int) -> None:
        answer = ours(judge.data, judge.C, row.solver, seed)
        excess = judge.excess(answer)
        row.note(answer, excess, float(answer.rounds or 0), answer.certified and excess <= TOL)

    return turn


def search(
    peer: Peer,
    excess_of: Callable[[Answer], float],
    limit: float,
    tol: float = TOL,
    ladder: Sequence[float] = LADDER,
) -> tuple[int, Answer, float]:
    """Return the loosest rung that reaches `tol` with seed 0, with its fit and its excess.

    The search goes down the ladder by `COARSE_STEP` rungs until one reaches `tol`, then back by single rungs.
    """
    rung, last = 0, len(ladder) - 1
    while True:
        answer = peer(ladder[rung], 0)
        excess = excess_of(answer)
        if excess <= tol or rung == last or answer.seconds >= limit:
            break
        rung = min(rung + COARSE_STEP, last)
    if excess > tol:
        return rung, answer, excess
    for looser in range(rung - 1, max(rung - COARSE_STEP, -1), -1):
        attempt = peer(ladder[looser], 0)
        found = excess_of(attempt)
        if found > tol:
            break
        rung, answer, excess = looser, attempt, found
    return rung, answer, excess


@dataclass
class _Peer:
    """Turns of a peer: for each seed the loosest rung that reaches `TOL` counts."""

    row: Row
    peer: Peer
    judge: _Judge
    rung: int
    limit: float
    hopeless: bool
    patient: bool = True

    def turn(self, seed: int) -> None:
        if self.hopeless and not self.patient and self.row.seconds:
            return  # it never reaches TOL, and its fits are long: one is enough
        rung = self.rung
        answer = self.peer(LADDER[rung], seed)
        excess = self.judge.excess(answer)
        looser = self.patient and excess <= TOL
        while excess > TOL and rung < len(LADDER) - 1 and answer.seconds <= self.limit:
            rung += 1
            answer = self.peer(LADDER[rung], seed)
            excess = self.judge.excess(answer)
        while looser and rung > 0:
            attempt = self.peer(LADDER[rung - 1], seed)
            found = self.judge.excess(attempt)
            if found > TOL:
                break
            rung, answer, excess = rung - 1, attempt, found
        self.row.note(answer, excess, LADDER[rung], excess <= TOL)
