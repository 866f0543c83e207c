"""Side by side in one process and one thread: ours at its certified gap, the peers at their true excess."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np
from threadpoolctl import threadpool_limits

from .datasets import Dataset
from .objective import Reference, primal, reference
from .solvers import LADDER, PEERS, TOL, Answer, Peer, ours

SHORT = 0.05  # seconds; fits as short as this are repeated three times as often
LONG = 5.0  # fits as long as this are repeated three times in all
COARSE = 3  # rungs of the ladder taken at once in the first search
HALF, SMALL = 0.5, 0.010  # the goal: half of the peer's time where it needs more than 10 ms, else all of it


@dataclass
class Row:
    """All fits of one solver on one problem.

    Attributes
    ----------
    solver : str
    seconds, wall, excess : list of float
        Of the fits that count: time of the one thread that works, time on the wall, the judge's excess.
    gaps : list of float
        Ours: certified gaps.
    settings : list of float
        Ours: rounds. A peer: the tolerance that counted.
    reached : bool
        Did every fit get to 1e-4? Where not, times are those of the last attempt.
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
        """Seconds of the thread."""
        return float(np.median(self.seconds))

    def note(self, answer: Answer, excess: float, setting: float, reached: bool) -> None:
        """Add a fit."""
        self.seconds.append(answer.seconds)
        self.wall.append(answer.wall)
        self.excess.append(excess)
        self.settings.append(setting)
        self.reached &= reached
        if answer.gap is not None:
            self.gaps.append(answer.gap)


@dataclass
class Comparison:
    """All solvers on one problem."""

    data: Dataset
    C: float
    reference: Reference
    ours: list[Row]
    peers: list[Row]

    @property
    def best_peer(self) -> Row:
        """The faster of the peers that got there; the faster at giving up where none did."""
        return min(self.peers, key=lambda row: (not row.reached, row.median))

    def ratios(self, row: Row, wall: bool = False) -> np.ndarray:
        """Our time over that of the best peer in the same turn, turn by turn."""
        ours, theirs = (one.wall if wall else one.seconds for one in (row, self.best_peer))
        if len(theirs) != len(ours):
            theirs = [float(np.median(theirs))] * len(ours)
        return np.asarray(ours) / np.asarray(theirs)

    @property
    def goal(self) -> float:
        """The ratio to reach."""
        return HALF if self.best_peer.median > SMALL else 1.0

    def met(self, row: Row) -> bool:
        """Certified every time, and within the goal (or no peer got there at all)."""
        return row.reached and (not self.best_peer.reached or float(np.median(self.ratios(row))) <= self.goal)


def compare(
    data: Dataset,
    C: float,
    algorithms: Sequence[str] = ("auto",),
    repeats: int = 7,
    limit: float = 120.0,
    say: Callable[[str], None] = lambda line: None,
) -> Comparison:
    """Alternate all solvers over the seeds; nothing else runs in between.

    Parameters
    ----------
    data : Dataset
    C : float
    algorithms : sequence of str
        Of ours.
    repeats : int
        Seeds; three times as many where fits take milliseconds, three where they take many seconds.
    limit : float
        A peer that has not got there in a fit of so many seconds is given up.
    say : callable
        Hears what is going on.
    """
    with threadpool_limits(limits=1), warnings.catch_warnings():
        warnings.simplefilter("ignore")  # a peer that stops early says so; its true excess says it better
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
            one.patient = longest <= LONG
            runners.append(one.turn)
        mine = [Row(name) for name in algorithms]
        runners += [_ours_turn(row, judge) for row in mine]
        count = min(repeats, 3) if longest > LONG else 3 * repeats if shortest < SHORT else repeats
        for seed in range(1, count + 1):
            for k in np.random.default_rng(seed).permutation(len(runners)):  # nobody always follows the same
                runners[k](seed)
    return Comparison(data, C, known, mine, [one.row for one in peers])


@dataclass
class _Judge:
    """True excess of an answer."""

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
    """The loosest rung that gets there with seed 0: in strides down the ladder, then back by single rungs."""
    rung, last = 0, len(ladder) - 1
    while True:
        answer = peer(ladder[rung], 0)
        excess = excess_of(answer)
        if excess <= tol or rung == last or answer.seconds >= limit:
            break
        rung = min(rung + COARSE, last)
    if excess > tol:
        return rung, answer, excess
    for looser in range(rung - 1, max(rung - COARSE, -1), -1):
        attempt = peer(ladder[looser], 0)
        found = excess_of(attempt)
        if found > tol:
            break
        rung, answer, excess = looser, attempt, found
    return rung, answer, excess


@dataclass
class _Peer:
    """A peer's turns: each counts the loosest rung that gets there with its seed."""

    row: Row
    peer: Peer
    judge: _Judge
    rung: int
    limit: float
    hopeless: bool
    patient: bool = True

    def turn(self, seed: int) -> None:
        if self.hopeless and not self.patient and self.row.seconds:
            return  # it was given up: once is enough
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
