"""The page about the hard problems."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ..page import page, system, table
from .answers import LIMIT, Verdict
from .optima import load
from .peers import PEERS
from .problems import PROBLEMS

OURS = "maxmargin"
LEVELS = (1e-3, 1e-6, 1e-9)
PACKAGES = (
    "maxmargin", "numpy", "scipy", "numba", "scikit-learn", "liblinear-official", "clarabel", "highspy", "proxsuite",
    "piqp", "python-flint",
)  # fmt: skip


def reached(found: Sequence[Verdict], solver: str, problem: str, level: float) -> bool:
    """Whether an answer of a solver is within a level of the optimum; of ours the answer at that tolerance counts."""
    return any(
        one.excess <= level
        for one in found
        if one.solver == solver and one.problem == problem and (solver != OURS or one.tol == level)
    )


def certified(one: Verdict) -> bool:
    """Whether a fit of ours proves its gap, in time and without a wrong claim."""
    return one.gap <= one.tol and one.excess < np.inf and one.wrong == 0.0


def document(found: Sequence[Verdict]) -> str:
    """Return the page for the verdicts about all solvers."""
    mine = [one for one in found if one.solver == OURS]
    sections = {
        "Method": _METHOD,
        "Certified fits by category": _categories(mine),
        "Fits that are not certified": _failures(mine),
        "All problems": _problems(found),
        "Versions": system(*PACKAGES),
    }
    wrong = sum(one.wrong > 0.0 for one in mine)
    top = f"{_summary(found)}\n\nClaimed intervals that do not contain the optimum: {wrong} of {len(mine)} fits."
    return page("Hard problems", _ABOUT, top, "python -m benchmarks.hardset --write", sections)


def _summary(found: Sequence[Verdict]) -> str:
    rows = []
    mine = [one for one in found if one.solver == OURS]
    names = {one.problem for one in mine}
    if names:
        counts = [sum(certified(one) for one in mine if one.tol == level) for level in LEVELS]
        rows.append([f"{OURS}, certified", str(len(names)), *map(str, counts)])
    stated = {OURS: len(PROBLEMS)}
    stated |= {peer.name: sum(map(peer.applies, PROBLEMS.values())) for peer in PEERS}
    for solver, number in stated.items():
        names = {one.problem for one in found if one.solver == solver}
        if names:
            counts = [sum(reached(found, solver, name, level) for name in names) for level in LEVELS]
            size = str(number) if len(names) == number else f"{number}, {len(names)} of them measured"
            rows.append([solver, size, *map(str, counts)])
    return table(["solver", "problems it can state", *(f"solved to {level:.0e}" for level in LEVELS)], rows)


def _categories(mine: Sequence[Verdict]) -> str:
    rows = []
    for category in dict.fromkeys(problem.category for problem in PROBLEMS.values()):
        some = [one for one in mine if PROBLEMS[one.problem].category == category]
        counts = [f"{sum(certified(one) for one in some if one.tol == level)}" for level in LEVELS]
        rows.append([category, str(len({one.problem for one in some})), *counts])
    return table(["category", "problems", *(f"certified to {level:.0e}" for level in LEVELS)], rows)


def _failures(mine: Sequence[Verdict]) -> str:
    rows = [
        [
            one.problem, PROBLEMS[one.problem].statement, f"{one.tol:.0e}", one.status, f"{one.gap:.1e}",
            f"{one.excess:.1e}", f"{one.wrong:.1e}" if one.wrong else "no", f"{one.seconds:.1f}",
        ]
        for one in mine
        if not certified(one)
    ]  # fmt: skip
    head = [
        "problem",
        "statement",
        "tolerance",
        "status",
        "claimed gap",
        "true excess",
        "wrong claim",
        "seconds",
    ]
    return f"{_REASONS}\n{table(head, rows)}" if rows else "None."


def _problems(found: Sequence[Verdict]) -> str:
    optima = load()
    solvers = [OURS, *(peer.name for peer in PEERS)]
    rows = []
    for name, problem in PROBLEMS.items():
        X, _ = problem.make()
        cells = [
            _best([one for one in found if one.solver == solver and one.problem == name])
            for solver in solvers
        ]
        optimum = f"{float(optima[name][0][0]):.6g}" + (
            f" and {len(optima[name]) - 1} more" if optima[name][1:] else ""
        )
        rows.append([name, f"{len(X)} x {X.shape[1]}", problem.statement, optimum, *cells])
    return f"{_ALL}\n\n{table(['problem', 'rows x columns', 'statement', 'optimum', *solvers], rows)}"


def _best(some: Sequence[Verdict]) -> str:
    if not some:
        return "N/A"
    best = min(one.excess for one in some)
    return f"{max(best, 0.0):.0e}" if np.isfinite(best) else "none"


_ABOUT = f"""\
100 small problems that are hard for float64: near-separable, contradictory, collinear and badly scaled data, lattice
points, duplicates, outliers, powers of raw columns, sentinels, many classes, five norms, C from 1e-6 to 1e6 and hard
margins, kernels of all widths. The optimum of each is known to 1e-12 from arithmetic in 600 bits. The table counts the
problems that a solver solves within {LIMIT:.0f} seconds: the objective at the w and b that it returns is within that
relative distance of the optimum. *Certified* fits also prove it themselves.
"""

_METHOD = """\
- **Data** come from seeded integers and the sets that scikit-learn holds (`benchmarks/hardset/problems.py`), and are
  the same on every machine; a hash of each is stored.
- **Optima** lie between the two numbers of `benchmarks/hardset/optima.json`: the objective of a feasible point, and the
  bound of exactly feasible dual variables, both in ball arithmetic and rounded outward. The points come from an
  interior-point method in 600 bits that shares no code with maxmargin (`python -m benchmarks.hardset.optima`).
- **Judge**: the w and b of every solver are evaluated in the same ball arithmetic. With a kernel, w is given by
  coefficients of rows, and kernel values are those of the formula, not of float64. Problems of several classes are
  solved one against the rest; the worst class counts. A hard margin has the excess 1 - margin / largest margin.
- **Time**: a solver has 10 seconds of one processor for all classes, in a process of its own; imports and compilation
  are not counted.
- **maxmargin** is fitted with default settings at tol = 1e-3, 1e-6 and 1e-9; each count is that of the fit at this
  tolerance. A fit is certified if its claimed gap is at most `tol` and its interval contains the optimum.
- **Other solvers** are run at several tolerances in their own units until an answer is within 1e-9; the best answer
  counts: SVC, LinearSVC and liblinear at 1e-9, 1e-6 and 1e-3, HiGHS at 1e-10, its smallest, the others at 1e-12, 1e-9
  and 1e-6. SVC, LinearSVC and ProxQP have a limit of iterations, where they return their last point; otherwise a
  process that exceeds the time has no answer. They certify nothing that a user could check.
- **Problems that a solver can state**: LinearSVC and liblinear have no free intercept, or a regularised one: they get
  the problems without intercept; liblinear also squared losses with the option -R. SVC gets hinge losses and hard
  margins with intercept at p = 2, and kernels. HiGHS, ProxQP and PIQP solve quadratic programs: p = 1, 2, inf and
  kernels. Clarabel gets all (p = 1.5 and 3 as power cones). Programs are stated in w, b and the losses, with a kernel
  in the dual variables (`benchmarks/hardset/quadratic.py`).
"""

_REASONS = """\
- **Hard margins of 4e-9 (near-separable)**: the points are near the optimum, as the true excess says. The upper bound
  is that of float64 dual variables, whose rounding alone moves it by 1e-7 and more. Fits at p = 2 end in exact
  arithmetic; those in other norms do not.
- **Kernels**: bounds hold for the exact kernel, and allow for the rounding of kernel values. With C = 1e4, or kernel
  values of 1e12, the two allowances are 1e-6 of the objective and more. Where the true excess is large, the rounded
  values have another optimum.
- **Huge columns (scaled, sentinel)**: the lower bound is that of real dual variables near those in float64, less a
  bound of their distance.
"""

_ALL = """\
The cells of the solvers are the smallest relative excess over the optimum at any tolerance; *none* is no answer in
time, N/A a problem that the solver cannot state."""
