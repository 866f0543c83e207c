"""Results in Markdown: tables for the terminal, and the page `docs/measurements/benchmarks.md`."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from .breakdown import Part
from .measure import Comparison, Row
from .memory import Peak
from .page import COMPARED, compared, grouped, page, spread, summary, system, table, wrapped
from .startup import Compilation, Timing

PACKAGES = ("maxmargin", "numpy", "scipy", "numba", "scikit-learn", "liblinear-official")


def times(results: Sequence[Comparison]) -> str:
    """Return the table of the solvers of maxmargin, each with the best peer."""
    head = [
        "set", "C", "algorithm", "ours, ms", "certified gap", "rounds", "best peer, ms", "ratio",
        "on the wall", "goal", "met",
    ]  # fmt: skip
    rows = []
    for result in results:
        peer = result.best_peer
        for row in result.ours:
            met = "yes" if result.met(row) else "**no**"
            ratio = spread(result.ratios(row), ".2f") if peer.reached else "(no peer gets there)"
            wall = f"{np.median(result.ratios(row, wall=True)):.2f}"
            rows.append([
                result.data.name, f"{result.C:g}", row.solver, _ms(row), f"{max(row.gaps):.1e}",
                f"{np.median(row.settings):.0f}", f"{_ms(peer)} {peer.solver}", ratio,
                wall, f"{result.goal:g}", met,
            ])  # fmt: skip
    return table(head, rows)


def peers(results: Sequence[Comparison]) -> str:
    """Return the table of the peers."""
    head = ["set", "C", "peer", "time, ms", "tolerance", "true excess, worst", "gets there"]
    rows = []
    for result in results:
        for row in result.peers:
            rows.append([
                result.data.name, f"{result.C:g}", row.solver, _ms(row), f"{np.median(row.settings):.2g}",
                f"{max(row.excess):.1e}", "yes" if row.reached else "no",
            ])  # fmt: skip
    return table(head, rows)


def _ms(row: Row) -> str:
    return spread(1e3 * np.asarray(row.seconds), ".3g" if row.median < 1 else ".0f")


def sets(results: Sequence[Comparison]) -> str:
    """Return the table of the data sets, with the bounds on their optima."""
    rows = []
    for name in dict.fromkeys(result.data.name for result in results):
        same = [result for result in results if result.data.name == name]
        X = same[0].data.X
        optima = "; ".join(
            f"C = {result.C:g}: {result.reference.lower:.8g} to {result.reference.width:.0e}"
            for result in same
        )
        rows.append([name, f"{X.shape[0]:,} x {X.shape[1]:,}", f"{X.nnz:,}", same[0].data.note, optima])
    return table(["set", "rows x columns", "non-zeros", "what", "optimum, and how well it is known"], rows)


def profile(result: Comparison, seconds: float, parts: Sequence[Part], most: int = 10) -> str:
    """Return the table of the functions that take the most time on one problem."""
    shown = parts[:most]
    rows = [[f"`{p.name}`", f"{p.calls}", f"{1e3 * p.seconds:.2f}", f"{p.share:.0%}"] for p in shown]
    rest = sum(part.seconds for part in parts[most:])
    rows.append(["all else", "", f"{1e3 * rest:.2f}", f"{rest / seconds:.0%}"])
    head = f"**{result.data.name}, C = {result.C:g}**: {1e3 * seconds:.3g} ms per fit under the profiler\n\n"
    return head + table(["function", "calls", "ms", "share"], rows)


def memory(found: Sequence[Peak]) -> str:
    """Return the table of peak extra memory."""
    rows = [
        [p.name, f"{p.nbytes / 1e6:.0f}", p.solver, f"{p.extra / 1e6:.0f}", f"{p.ratio:.2f}"] for p in found
    ]
    return table(["input", "MB", "solver", "peak extra, MB", "in units of the input"], rows)


def compilation(found: Sequence[Compilation]) -> str:
    """Return the table of compile times."""
    rows = [
        [c.storage, c.algorithm, f"{c.cold:.2f}", f"{1e3 * c.cached:.0f}", f"{c.numba:.2f}"] for c in found
    ]
    return table(
        ["storage", "algorithm", "empty cache, s", "from the cache, ms", "Numba's own start, s"], rows
    )


def startup(found: dict[str, Timing]) -> str:
    """Return the table of start-up times, and the two limits for them."""
    rows = [[f"`{t.command}`", spread(1e3 * np.asarray(t.seconds), ".0f")] for t in found.values()]
    lines = [table(["command", "ms, a new process each time"], rows), ""]
    added = np.subtract(found["maxmargin"].seconds, found["base"].seconds)
    lines.append(
        f"`from maxmargin import MaxMarginClassifier` adds {spread(1e3 * added, '.0f')} ms (limit: 300)."
    )
    if "predict" in found:
        ratio = np.divide(found["predict"].seconds, found["peer"].seconds)
        lines.append(
            f"`maxmargin predict` on 150 rows takes {spread(ratio, '.2f')} times as long as "
            f'`python -c "{found["peer"].command}"` (limit: 2.5).'
        )
    else:
        lines.append("`maxmargin predict` was not measured: the command line did not run.")
    return "\n".join(lines)


def document(
    command: str,
    repeats: int,
    results: Sequence[Comparison],
    profiles: Sequence[str],
    compiled: Sequence[Compilation],
    peaks: Sequence[Peak],
    started: dict[str, Timing],
) -> str:
    """Return the page."""
    sections = {
        "How time is measured": _METHOD.format(repeats=repeats, many=3 * repeats),
        "Data": sets(results),
        "Time of all algorithms": f"{times(results)}\n\n{_EXACT}",
        "Time of the peers": peers(results),
        "Compilation": f"{_COMPILATION}\n{compilation(compiled)}",
        "Memory": f"{_MEMORY}\n{memory(peaks)}",
        "Start-up": startup(started),
    }
    if profiles:
        sections["Time by function, where the goal is not reached"] = "\n\n".join(profiles)
    sections["Versions"] = system(*PACKAGES)
    notes = _notes(peaks, started)
    return page("Benchmarks", _ABOUT, f"{best(results)}\n\n{notes}", command, sections)


def best(results: Sequence[Comparison]) -> str:
    """Return the summary table: the first algorithm of maxmargin and the best peer, by data set."""

    def cells(some: Sequence[Comparison]) -> list[str]:
        ratios = [float(np.median(one.ratios(one.ours[0]))) for one in some]
        met = sum(one.met(one.ours[0]) for one in some)
        return [*compared(ratios), str(met), str(len(some) - met)]

    head = ["set", *COMPARED, "goal met", "goal not met"]
    return summary(head, grouped(results, lambda one: (one.data.name,)), cells, "all")


def _notes(peaks: Sequence[Peak], started: dict[str, Timing]) -> str:
    """Return the results for memory and start-up in two sentences."""
    mine = max(peak.ratio for peak in peaks if peak.solver == "maxmargin")
    added = float(np.median(np.subtract(started["maxmargin"].seconds, started["base"].seconds)))
    return wrapped(
        f"Memory: a fit takes at most {mine:.2f} times the bytes of its input, in addition to the input (limit: 1.5). "
        f"Start-up: `from maxmargin import MaxMarginClassifier` adds {1e3 * added:.0f} ms (limit: 300)."
    )


_ABOUT = """\
`MaxMarginClassifier(loss="hinge", fit_intercept=False, tol=1e-4)` is compared with the faster of `LinearSVC` and
`liblinear-official`, each with an objective within 1e-4 of the optimum. A ratio is our time divided by the peer's;
below 1, maxmargin is faster. The goal is half of the peer's time, or its whole time if it needs at most 10 ms.
"""

_METHOD = """\
The problem is the hinge loss without intercept, `1/2 |w|^2 + C sum max(0, 1 - y_i w.x_i)`.

- **Ours**: the whole `fit`, with validation, packing of the rows and the certificate. A fit counts if its status is
  CERTIFIED, its certified gap is at most 1e-4, and the judge confirms the excess.
- **Peers**: `LinearSVC` (`max_iter=10**6`) and `liblinear-official` (`-s 3`). They certify nothing. The time to build
  liblinear's problem object is not counted; liblinear ends after 300 passes, whatever the tolerance. Each peer is
  fitted at a ladder of tolerances, six per decade from 1 to 1e-6. For each seed the loosest tolerance counts at which
  the true excess is at most 1e-4. This favours the peers: a user does not know that tolerance.
- **The judge** (`benchmarks/objective.py`) computes objectives from the data in float64, with code that neither side
  uses. Weak duality bounds the optimum. The excess is the relative difference between an objective and the lower bound.
- **Turns**: all solvers are fitted in turn in one process, seed by seed, in random order, with compiled code loaded.
  Times are those of the one thread that works. There are {repeats} seeds; {many} if fits take less than 50 ms, and 3 if
  they take more than 5 s. Numbers are medians, with quartiles in brackets. A ratio is the median of the ratios of the
  single turns; *on the wall* is the same ratio from wall times. Certified gaps are the largest over all seeds.
"""

_EXACT = """\
Some certified gaps are far below 1e-4. They belong to problems of up to 2,000 rows, which are solved exactly whatever
the tolerance. The peers' times are for 1e-4."""

_COMPILATION = """\
The first fit of a process takes this much longer than later fits. Compiled code is cached on disk; a process that finds
the cache only loads it. The last column is the time in which Numba initialises itself for the first compiled function
of a process, of whichever package.
"""

_MEMORY = """\
Peak resident memory of a fit (hinge, no intercept, tolerance 1e-4) beyond what the process held before the fit, for
inputs above 50 MB. `LinearSVC` is shown for comparison, at tolerance 0.01.
"""
