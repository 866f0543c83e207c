"""Results as Markdown: tables for the terminal, and the page `docs/measurements/benchmarks.md`."""

from __future__ import annotations

import platform
from collections.abc import Sequence

import numpy as np

from .breakdown import Part
from .measure import Comparison, Row
from .memory import Peak
from .page import spread, table, versions
from .startup import Compilation, Timing

PACKAGES = ("maxmargin", "numpy", "scipy", "numba", "scikit-learn", "liblinear-official")


def times(results: Sequence[Comparison]) -> str:
    """Return the table of our solvers, each with the best peer."""
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
    return _PAGE.format(
        command=command,
        repeats=repeats,
        many=3 * repeats,
        packages=versions(*PACKAGES),
        python=platform.python_version(),
        verdict=_verdict(results, peaks, started),
        sets=sets(results),
        times=times(results),
        peers=peers(results),
        profiles="\n\n".join(profiles) or "The goal is reached everywhere.",
        compilation=compilation(compiled),
        memory=memory(peaks),
        startup=startup(started),
    )


def _verdict(results: Sequence[Comparison], peaks: Sequence[Peak], started: dict[str, Timing]) -> str:
    """Return the list of goals that are met and of those that are not."""
    met = [result for result in results if result.met(result.ours[0])]
    missed = [
        f"  - {result.data.name}, C = {result.C:g}: ratio {np.median(result.ratios(result.ours[0])):.2f}, "
        f"goal {result.goal:g}"
        for result in results
        if not result.met(result.ours[0])
    ]
    mine = [peak.ratio for peak in peaks if peak.solver == "maxmargin"]
    lines = [
        f'- Time, `algorithm="{results[0].ours[0].solver}"`: the goal is reached on {len(met)} of '
        f"{len(results)} problems{', not reached on' if missed else ''}",
        *missed,
        f"- Memory: at most {max(mine):.2f} times the bytes of the input, in addition to the input (limit: 1.5).",
    ]
    added = float(np.median(np.subtract(started["maxmargin"].seconds, started["base"].seconds)))
    lines.append(
        f"- Start-up: `from maxmargin import MaxMarginClassifier` adds {1e3 * added:.0f} ms (limit: 300)."
    )
    return "\n".join(lines)


_PAGE = """\
# Benchmarks

Written by `{command}`; no number on this page is typed by hand. Machine: 2 shared cores, one thread used.
Python {python}; {packages}.

{verdict}

## How time is measured

The problem is the hinge loss without intercept, `1/2 |w|^2 + C sum max(0, 1 - y_i w.x_i)`. It is solved to a
relative accuracy of 1e-4.

- **Ours** is `MaxMarginClassifier(loss="hinge", C=C, fit_intercept=False, tol=1e-4)`. The time is that of the whole
  `fit`, with validation, packing of the rows and the certificate. A fit counts if its status is CERTIFIED with a
  certified gap of at most 1e-4, and if the judge (below) confirms the excess.
- **Peers** are `LinearSVC` (`max_iter=10**6`) and `liblinear-official` (`-s 3`). They certify nothing. The time in
  which liblinear's problem object is built is not counted; liblinear ends after 300 passes, whatever the tolerance.
  Each peer is fitted at a ladder of tolerances, six per decade from 1 to 1e-6. For each seed the loosest tolerance
  counts at which the *true* excess over the optimum is at most 1e-4. This favours the peers: a user does not know that
  tolerance. The *best peer* is the faster of the two.
- **The judge** (`benchmarks/objective.py`) computes objectives from the data in float64, with code that neither side
  uses. Weak duality bounds the optimum from below and above. The excess is the relative difference between an
  objective and the lower bound.
- All solvers are fitted in turn in one process, seed by seed, in random order. Compiled code is loaded before. Times
  are those of the one thread that works; other processes on the shared cores disturb them less than they disturb wall
  times. There are {repeats} seeds; {many} if fits take less than 50 ms, and 3 if they take more than 5 s. Numbers are
  medians, with quartiles in brackets. A ratio is the median of the ratios of the single turns. The column *on the
  wall* is the same ratio from wall times. Certified gaps are the largest over all seeds.
- **Goal**: at most half of the best peer's time if that peer needs more than 10 ms, and otherwise at most its time.

## Data

{sets}

## Time

{times}

Some certified gaps are far below 1e-4. They belong to problems of up to 2,000 rows, which are solved exactly whatever
the tolerance. The peers' times are for 1e-4.

The peers, one by one:

{peers}

## Time by function, where the goal is not reached

Time in compiled code and in NumPy is counted for the function of maxmargin that called it.
`compiled.sweeps.repeat` is the main loop; the rest is Python, NumPy and fixed costs.

{profiles}

## Compilation

The table shows how much longer the first fit of a process takes than later fits. Compiled code is cached on disk. A
process that finds the cache only loads it. Before that, Numba initialises itself for the first compiled function of
the process, whichever package the function belongs to; the last column is that time.

{compilation}

## Memory

Peak resident memory of a fit (hinge, no intercept, tolerance 1e-4) beyond what the process held before the fit, for
inputs above 50 MB. `LinearSVC` is shown for comparison, at tolerance 0.01.

{memory}

## Start-up

{startup}
"""
