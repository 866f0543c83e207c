"""Dense data without scaling, both losses, small and large C, against all linear solvers that are installed.

`python -m benchmarks.regimes`.
"""

from __future__ import annotations

import gc
import sys
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from threadpoolctl import threadpool_limits

from maxmargin import MaxMarginClassifier, Status

from .datasets import Dataset
from .measure import search
from .norms import bound, judged
from .objective import primal, reference
from .page import as_typed, deliver, extent, page, page_parser, summary, system, table
from .rivals import FAMILY, HARD, OTHERS, Bounded, Rival, signs, timed
from .solvers import Answer, ladder
from .unscaled import MICROARRAYS, SETS, Rows, unequal

PAGE = Path(__file__).parents[1] / "docs" / "measurements" / "regimes.md"
GAPS = (1e-4, 1e-6)
COSTS = (1e-3, 1.0, 100.0)
LOSSES = ("hinge", "squared_hinge")
STEPS = ladder(1e-9)
# Largest ratios of times, maxmargin to a peer, that meet the goals: for LinearSVC and liblinear at C >= 1 and below,
# and for other peers.
TENTH, HALF, FASTER = 0.1, 0.5, 1.0
# Seconds of a peer's fit: at most MAX_LIMIT if that is enough to decide whether the goal is met, at least MIN_LIMIT.
MAX_LIMIT, MIN_LIMIT = 60.0, 5.0
# Time limit of a peer as a multiple of the time of maxmargin, (smallest, usual): for LinearSVC and liblinear, and for
# another peer. The smallest multiple is large enough to decide whether the goal is met.
FAMILY_LIMITS, OTHER_LIMITS = (12.0, 20.0), (3.0, 6.0)
OUR_LIMIT = 300.0  # time limit of a fit of maxmargin, in seconds
TURN_SECONDS, MAX_FITS = 0.3, 7  # seconds of the equal fits in one turn, and their largest number
PROBLEM_SECONDS = 30.0  # seconds of a problem after which no further turn begins
PACKAGES = (
    "maxmargin", "numpy", "scipy", "numba", "scikit-learn", "liblinear-official", "rehline", "snapml", "clarabel",
)  # fmt: skip

SOFT: dict[str, Callable[[], Rows]] = {
    "unequal-200k": lambda: unequal(200_000, 50),
    "skin": SETS["skin"],
    "satimage": SETS["satimage"],
    "letter": SETS["letter"],
    "unequal-1m": lambda: unequal(1_000_000, 20),
}
SEPARABLE = {"sonar": SETS["sonar"], **MICROARRAYS}


class Soft:
    """Soft-margin problem of the peers: with a constant column whose weight is regularised."""

    def __init__(self, name: str, X: np.ndarray, y: np.ndarray, loss: str, C: float) -> None:
        self.name, self.X, self.loss, self.C = name, X, loss, C
        self.y = np.unique(y, return_inverse=True)[1]  # some peers take numeric labels only
        self.seen = np.column_stack([X, np.ones(len(X))])  # the rows that the peers get
        self.rivals = (*FAMILY, *OTHERS)
        self.goal = TENTH if C >= 1.0 else HALF
        self._parts = [Dataset(name, self.seen, side, "") for side in signs(y)]
        self._known = [reference(part, C, 1e-9, OUR_LIMIT, loss) for part in self._parts]
        self.width = max(known.width for known in self._known)

    def excess(self, w: np.ndarray) -> float:
        """Return the true excess of the objective over the optimum, the largest of all classes."""
        with np.errstate(over="ignore", invalid="ignore"):
            found = [
                known.excess(primal(part, self.C, one, self.loss))
                for part, known, one in zip(self._parts, self._known, w, strict=True)
            ]
        return float(np.nan_to_num(max(found), nan=np.inf))

    def ours(self, tol: float, seed: int, intercept: str = "augmented") -> MaxMarginClassifier:
        """Return MaxMarginClassifier for the problem of the peers, or for another intercept."""
        return MaxMarginClassifier(
            self.C, loss=self.loss, tol=tol, intercept=intercept, random_state=seed, max_time=OUR_LIMIT
        )

    def weights(self, model: Any) -> np.ndarray:
        """Return w with the weight of the constant column."""
        return np.column_stack([model.coef_, model.intercept_])


class Hard:
    """Hard-margin problem on separable data; the intercept is free for all solvers."""

    loss, C, rivals, goal = "hard margin", np.inf, HARD, FASTER

    def __init__(self, name: str, X: np.ndarray, y: np.ndarray) -> None:
        (side,) = signs(y)
        self.name, self.X, self.y = name, X, side
        self.seen = X
        model = self.ours(1e-9, 0).fit(X, side)
        alpha = np.zeros(y.size)
        alpha[model.certificate_.support] = model.certificate_.dual
        self._most = bound(X, side, alpha, 2)
        self.width = self.excess(model.coef_)

    def excess(self, w: np.ndarray) -> float:
        """Return one minus the ratio of the margin to the largest margin."""
        return 1.0 - judged(self.X, self.y, w[0], 2) / self._most

    def ours(self, tol: float, seed: int, intercept: str = "free") -> MaxMarginClassifier:
        """Return MaxMarginClassifier for the hard margin."""
        return MaxMarginClassifier(
            self.C, tol=tol, intercept=intercept, random_state=seed, max_time=OUR_LIMIT
        )

    def weights(self, model: Any) -> np.ndarray:
        """Return w without an intercept: the judge finds the best one."""
        return model.coef_


Problem = Soft | Hard


@dataclass
class Ours:
    """Fits of maxmargin at one gap; `free` are the times for the default problem, with a free intercept."""

    seconds: list[float] = field(default_factory=list)
    free: list[float] = field(default_factory=list)
    gap: float = 0.0
    excess: float = 0.0
    certified: bool = True
    free_certified: bool = True


@dataclass
class Theirs:
    """Fits of one peer at one gap.

    Attributes
    ----------
    rival : Rival
    seconds : list of float
        Turn by turn; if the peer never reached the gap, the time of its longest completed fit.
    tol : float
    passes : int
    excess : float
        Excess of the fit that counts, or the best of all fits if none reached the gap.
    reached : bool
    stopped : bool
        Whether the time limit kept the peer from the gap.
    """

    rival: Rival
    seconds: list[float]
    tol: float
    passes: int
    excess: float
    reached: bool
    stopped: bool = False

    @property
    def median(self) -> float:
        return float(np.median(self.seconds))


@dataclass(frozen=True)
class Result:
    """Results of all solvers on one problem at one gap."""

    problem: str
    size: str
    classes: int
    loss: str
    C: float
    tol: float
    width: float
    goal: float
    ours: Ours
    theirs: list[Theirs]

    def ratio(self, one: Theirs) -> float:
        """Return the ratio of times to a peer, turn by turn; an upper bound if the peer never reached the gap."""
        mine = np.asarray(self.ours.seconds)
        return float(np.median(mine / one.seconds if one.reached else mine / one.median))

    def within(self, one: Theirs, goal: float) -> bool | None:
        """Return whether the goal is met; None if the peer's time limit was too short to decide it."""
        if one.reached or self.ratio(one) <= goal or not self.ours.certified:
            return self.ours.certified and self.ratio(one) <= goal
        return None if one.stopped else True

    def best(self) -> Theirs | None:
        """Return the fastest of the family that reached the gap; if none did, the one with the longest fit."""
        family = [one for one in self.theirs if one.rival in FAMILY]
        return min(
            family, key=lambda one: (not one.reached, one.median * (1 if one.reached else -1)), default=None
        )


def compare(problem: Problem, turns: int) -> Iterator[Result]:
    """Yield the results at every gap. First each peer's ladder is searched; then all solvers are fitted in turn."""
    mine = {tol: Ours() for tol in GAPS}
    _ours_turn(problem, Ours(), GAPS[-1], 0)  # loads or compiles the machine code
    first = Ours()
    _ours_turn(problem, first, GAPS[-1], 0)
    theirs: dict[float, list[Theirs]] = {tol: [] for tol in GAPS}
    runs: list[Callable[[int], None]] = []
    for rival in problem.rivals:
        if not rival.installed or problem.loss not in (*rival.losses, Hard.loss):
            continue
        fit = rival.make(problem.seen, problem.y, problem.loss, problem.C)
        least, most = (
            times * first.seconds[0] for times in (FAMILY_LIMITS if rival in FAMILY else OTHER_LIMITS)
        )
        bounded = Bounded(fit, max(MIN_LIMIT, least, min(MAX_LIMIT, most)), STEPS[-1])
        for tol in GAPS:
            found = _searched(rival, bounded, problem, tol)
            _say(f"  {rival.name} to {tol:g}: {_reached(found)}")
            theirs[tol].append(found)
            if found.reached:
                runs.append(_turn_of(found, fit, problem))
    for tol in GAPS:
        runs.append(lambda seed, tol=tol: _ours_turn(problem, mine[tol], tol, seed))
    for found in (one for kind in theirs.values() for one in kind if one.reached):
        found.seconds.clear()
    begin = time.process_time()
    for seed in range(1, turns + 1):
        for k in np.random.default_rng(seed).permutation(
            len(runs)
        ):  # a random order, so that no solver always follows the same one
            runs[k](seed)
        if time.process_time() - begin > PROBLEM_SECONDS:
            break
    n, d = problem.X.shape
    classes = np.unique(problem.y).size
    for tol in GAPS:
        yield Result(
            problem.name, f"{n:,} x {d:,}", classes, problem.loss, problem.C, tol, problem.width, problem.goal,
            mine[tol], theirs[tol],
        )  # fmt: skip


def _ours_turn(problem: Problem, row: Ours, tol: float, seed: int) -> None:
    """Fit the peers' problem, and the default problem of a soft margin; add the times to the row."""
    model: Any

    def fitted(*intercept: str) -> float:
        nonlocal model
        gc.collect()  # same state as before the fits of the peers
        begin = time.process_time()
        model = problem.ours(tol, seed, *intercept).fit(problem.X, problem.y)
        return time.process_time() - begin

    row.seconds.append(usual(fitted))
    row.gap = max(row.gap, *(part.gap for part in model.certificate_.certificates))
    row.excess = max(row.excess, problem.excess(problem.weights(model)))
    row.certified &= model.status_ is Status.CERTIFIED and row.excess <= tol
    if isinstance(problem, Soft):
        row.free.append(usual(lambda: fitted("free")))
        row.free_certified &= model.status_ is Status.CERTIFIED


def _searched(rival: Rival, bounded: Bounded, problem: Problem, tol: float) -> Theirs:
    """Return the time, tolerance and passes with which a peer reaches this gap with seed 0."""

    def excess_of(answer: Answer) -> float:
        return problem.excess(answer.w) if answer.w.size else np.inf

    passes = bounded.passes
    if excess_of(bounded.at(STEPS[-1], passes)) <= tol:  # otherwise no looser tolerance reaches the gap
        rung, answer, excess = search(bounded, excess_of, np.inf, tol, STEPS)
        while answer.seconds > 0.3 * bounded.limit:  # it may have reached the gap long before its last pass
            attempt = bounded.at(STEPS[rung], passes // 2)
            found = excess_of(attempt)
            if found > tol or attempt.seconds > 0.9 * answer.seconds:  # some peers have no limit of passes
                break
            answer, excess, passes = attempt, found, passes // 2
        return Theirs(rival, [answer.seconds], STEPS[rung], passes, excess, True)
    ended = [(excess_of(one), setting, one.seconds) for setting, one in bounded.known.items() if one.w.size]
    if not ended:  # no fit was completed
        return Theirs(rival, [bounded.limit], STEPS[0], passes, np.inf, False, True)
    best, (step, passes), _ = min(ended)
    longest = max(seconds for *_, seconds in ended)
    stopped = max(one.seconds for one in bounded.known.values()) > 0.3 * bounded.limit
    return Theirs(rival, [longest], step, passes, best, False, stopped)


def _turn_of(row: Theirs, fit: Any, problem: Problem) -> Callable[[int], None]:
    def turn(seed: int) -> None:
        answers: list[Answer] = []

        def fitted() -> float:
            answers.append(timed(fit, row.tol, row.passes, seed))
            return answers[-1].seconds

        row.seconds.append(usual(fitted))
        row.excess = max(row.excess, problem.excess(answers[-1].w))

    return turn


def usual(seconds: Callable[[], float]) -> float:
    """Return the time of a fit after an uncounted first one, which reloads data that other fits evicted from caches.

    Short fits are repeated, and the median is returned.
    """
    seconds()
    taken = [seconds()]
    while sum(taken) < TURN_SECONDS and len(taken) < MAX_FITS:
        taken.append(seconds())
    return float(np.median(taken))


# tables


def _reached(one: Theirs) -> str:
    """Return the fit of a peer that reaches the gap, or its best excess and longest fit."""
    if one.reached:
        return f"{_seconds(one.median)}, tol {one.tol:g}, excess {one.excess:.0e}"
    return f"not reached: gap {one.excess:.0e} after {_seconds(one.median)}{', ended' if one.stopped else ''}"


def _seconds(value: float) -> str:
    return f"{1e3 * value:.3g} ms" if value < 1.0 else f"{value:.3g} s"


def _ratio(result: Result, one: Theirs) -> str:
    return f"{'' if one.reached else '< '}{result.ratio(one):.2g}"


def _told(met: bool | None) -> str:
    return "cannot tell" if met is None else "yes" if met else "**no**"


def _beside(result: Result) -> str:
    """Return the ratios to all peers, as text."""
    return ", ".join(f"{_ratio(result, one)} of {one.rival.name}" for one in result.theirs)


def _cells(result: Result) -> list[str]:
    """Return the cells that identify a row of the tables."""
    return [result.problem, result.loss, f"{result.C:g}", f"{result.tol:g}"]


def _mine(result: Result) -> list[str]:
    ours = result.ours
    word = "" if ours.certified else " **not certified**"
    return [_seconds(float(np.median(ours.seconds))), f"{ours.gap:.0e} / {ours.excess:.0e}{word}"]


def against_family(results: Sequence[Result]) -> str:
    """Return the table of maxmargin, also for its default problem, and the best of LinearSVC and liblinear."""
    rows = []
    for result in results:
        best = result.best()
        if best is None:
            continue
        free = _seconds(float(np.median(result.ours.free)))
        rows.append(
            [
                *_cells(result), *_mine(result), f"{best.rival.name}: {_reached(best)}", _ratio(result, best),
                f"{result.goal:g}", _told(result.within(best, result.goal)),
                free + ("" if result.ours.free_certified else " **not certified**"),
            ]
        )  # fmt: skip
    head = [
        "set", "loss", "C", "gap", "ours", "certified gap / true excess", "best of LinearSVC and liblinear", "ratio",
        "goal", "met", "ours, free intercept",
    ]  # fmt: skip
    return table(head, rows)


def side_by_side(results: Sequence[Result], peers: Sequence[Rival], ours: bool = False) -> str:
    """Return the table of these peers, by problem: time, tolerance, and ratio of the times."""
    rows = []
    for result in results:
        cells = {one.rival: f"{_reached(one)}; {_ratio(result, one)}" for one in result.theirs}
        line = [cells.get(rival, "") for rival in peers]
        if any(line):
            rows.append([*_cells(result), *(_mine(result) if ours else []), *line])
    mine = ["ours", "certified gap / true excess"] if ours else []
    return table(["set", "loss", "C", "gap", *mine, *(rival.name for rival in peers)], rows)


def family(results: Sequence[Result]) -> str:
    """Return the tables of all solvers of LinearSVC and liblinear, one per loss."""
    parts = []
    for loss in dict.fromkeys(result.loss for result in results if result.loss != Hard.loss):
        some = [result for result in results if result.loss == loss]
        parts.append(side_by_side(some, [rival for rival in FAMILY if loss in rival.losses]))
    return "\n\n".join(parts)


def sizes(results: Sequence[Result]) -> str:
    """Return the table of the data sets, with the width of the bounds on the optima."""
    known: dict[tuple[str, str, str], float] = {}
    for one in results:
        key = one.problem, one.size, str(one.classes)
        known[key] = max(known.get(key, 0.0), one.width)
    return table(
        ["set", "rows x columns", "classes", "optimum known to"],
        [[*key, f"{width:.0e}"] for key, width in known.items()],
    )


def best(results: Sequence[Result]) -> str:
    """Return the summary table: the ratios and goals by peer, loss and C."""
    groups: dict[tuple[str, ...], list[tuple[Result, Theirs, float]]] = {}
    for result in results:
        one = result.best()
        if one is not None:
            key = "best of LinearSVC and liblinear", result.loss, "C >= 1" if result.C >= 1.0 else "C < 1"
            groups.setdefault(key, []).append((result, one, result.goal))
    for rival in (*OTHERS, *HARD):
        pairs = [(result, one) for result in results for one in result.theirs if one.rival is rival]
        losses = dict.fromkeys(result.loss for result, _ in pairs)
        if pairs:
            key = rival.name, ", ".join(losses), "C = inf" if Hard.loss in losses else "all"
            groups[key] = [(result, one, FASTER) for result, one in pairs]

    def cells(some: Sequence[tuple[Result, Theirs, float]]) -> list[str]:
        met = [result.within(one, goal) for result, one, goal in some]
        return [
            str(len(some)), extent([result.ratio(one) for result, one, _ in some]), f"{some[0][2]:g}",
            str(met.count(True)), str(met.count(False)), str(met.count(None)),
            str(sum(not one.reached for _, one, _ in some)),
        ]  # fmt: skip

    head = [
        "peer", "loss", "C", "problems", "ratio: median (range)", "goal: at most", "met", "not met", "undecided",
        "peer never reached the gap",
    ]  # fmt: skip
    return summary(head, groups, cells)


def document(results: Sequence[Result], command: str, turns: int, packages: str) -> str:
    """Return the page."""
    method = _METHOD.format(
        limit=MAX_LIMIT,
        least=MIN_LIMIT,
        tenfold=FAMILY_LIMITS,
        ahead=OTHER_LIMITS,
        turns=turns,
        ample=PROBLEM_SECONDS,
        enough=TURN_SECONDS,
        many=MAX_FITS,
    )
    sections = {
        "How time is measured": method,
        "Data": f"{sizes(results)}\n\n{_DATA}",
        "The best of LinearSVC and liblinear": against_family(results),
        "The other peers": side_by_side(results, [rival for rival in OTHERS if rival.installed]),
        "Hard margins": f"{_HARD}\n\n{side_by_side(results, [rival for rival in HARD if rival.installed], ours=True)}",
        "LinearSVC and liblinear, one by one": family(results),
        "Versions": packages,
    }
    missing = [rival.name for rival in (*OTHERS, *HARD) if not rival.installed]
    about = _ABOUT + (f"Not installed and not compared: {', '.join(missing)}.\n" if missing else "")
    return page("Soft and hard margins on dense, unscaled data", about, best(results), command, sections)


_ABOUT = """\
`MaxMarginClassifier` is compared with linear solvers of other packages, each at the same true gap (1e-4 and 1e-6). A
ratio is our time divided by the peer's; below 1, maxmargin is faster. If the peer never reached the gap (last column),
the time of its longest fit counts, and the ratio is an upper bound.
"""

_METHOD = """\
- **Ours**: the whole `fit`, with the certificate. All solvers regularise the weight of a constant column
  (`intercept="augmented"`). A judge, with code that neither side uses, computes the true excess from the data.
- **Peers** count at the loosest tolerance, of six per decade from 1 to 1e-9, at which the true excess is at most the
  gap for all classes. Building their input is not counted.
- **Limit of a peer**: {tenfold[1]:g} times our time ({ahead[1]:g} times if it is not LinearSVC or liblinear) within
  {least:g} to {limit:g} s, or {tenfold[0]:g} ({ahead[0]:g}) times our time if that is more; for liblinear 300 passes.
  *not reached*: best excess, longest fit. *ended*: by the limit, and undecided if the ratio does not decide the goal.
  A peer that stops by itself without the gap counts as slower.
- **Turns**: processor seconds of one thread, random order, up to {turns} seeds within {ample:g} s; medians. The first
  fit of a turn is not counted; fits follow until {enough:g} s are spent, at most {many}.
"""

_DATA = """\
*unequal* is generated: normal columns with scales from 0.01 to 100, linear labels, 10 % of them flipped."""

_HARD = """\
The intercept is free. The gap is one minus the ratio of the margin to the largest margin."""


def problems(names: Sequence[str], losses: Sequence[str], costs: Sequence[float]) -> Iterator[Problem]:
    """Yield the problems of these data sets, losses and costs, one at a time."""
    for name in names:
        if name in SEPARABLE:
            yield Hard(name, *SEPARABLE[name]())
            continue
        X, y = SOFT[name]()
        for loss in losses:
            for C in costs:
                yield Soft(name, X, y, loss, C)


def main(arguments: list[str] | None = None) -> int:
    """Measure and print; with --write into `docs/measurements/regimes.md`."""
    every = [*SOFT, *SEPARABLE]
    parser = page_parser("regimes", __doc__, PAGE)
    parser.add_argument("--sets", nargs="+", choices=every, default=every, help="data sets")
    parser.add_argument("--losses", nargs="+", choices=LOSSES, default=LOSSES)
    parser.add_argument("--C", nargs="+", type=float, default=COSTS, help="values of C of the soft margins")
    parser.add_argument("--turns", type=int, default=7, help="number of seeds")
    parser.add_argument("--quick", action="store_true", help="satimage at C = 1 and sonar, one turn")
    options = parser.parse_args(arguments)
    if options.quick:
        options.sets, options.C, options.turns = ["satimage", "sonar"], [1.0], 1
    results: list[Result] = []
    with threadpool_limits(limits=1), warnings.catch_warnings():
        warnings.simplefilter("ignore")  # peers warn when they stop early; the true excess measures the same
        for problem in problems(options.sets, options.losses, options.C):
            _say(f"{problem.name} {problem.loss} C={problem.C:g}: optimum known to {problem.width:.0e}")
            for result in compare(problem, options.turns):
                results.append(result)
                _say(f"  to {result.tol:g}: {' '.join(_mine(result))}; {_beside(result)}")
    command = as_typed("regimes", arguments)
    text = document(results, command, options.turns, system(*PACKAGES))
    deliver(text, PAGE if options.write else None)
    return 0


def _say(line: str) -> None:
    print(line, file=sys.stderr, flush=True)


if __name__ == "__main__":
    sys.exit(main())
