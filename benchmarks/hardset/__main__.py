"""Certified fits and other solvers on 100 hard problems with known optima: `python -m benchmarks.hardset`."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

from threadpoolctl import threadpool_limits

from ..page import deliver, page_parser
from . import ours, results
from .answers import GRACE, Verdict, judged, limited
from .peers import PEERS, Peer
from .problems import PROBLEMS, HardProblem
from .tables import LEVELS, OURS, document

PAGE = Path(__file__).parents[2] / "docs" / "measurements" / "hardset.md"


def fitted(problem: HardProblem) -> Iterator[Verdict]:
    """Yield the verdicts about our fits, one for each level of accuracy."""
    for tol, answer in zip(LEVELS, limited(ours.solve, problem, LEVELS, GRACE), strict=True):
        yield judged(OURS, problem, tol, answer)


def solved(peer: Peer, problem: HardProblem) -> Iterator[Verdict]:
    """Yield the verdicts about a peer, from its tightest tolerance until an answer has the finest level of accuracy."""
    for tol in peer.tolerances:
        verdict = judged(peer.name, problem, tol, limited(peer.solve, problem, [tol])[0])
        yield verdict
        if verdict.excess <= min(LEVELS):
            break


def measured(name: str, solvers: Sequence[str]) -> list[Verdict]:
    """Return the verdicts about some solvers on one problem."""
    problem = PROBLEMS[name]
    found = list(fitted(problem)) if OURS in solvers else []
    for peer in PEERS:
        if peer.name in solvers and peer.package is not None and peer.applies(problem):
            found += solved(peer, problem)
    for one in found:
        print(
            f"{one.problem:18} {one.solver:10} {one.tol:.0e} {one.status:12.40} {one.seconds:6.2f} s  "
            f"excess {one.excess:8.1e}  gap {one.gap:8.1e}  wrong {one.wrong:.1e}",
            flush=True,
        )
    return found


def main(arguments: list[str] | None = None) -> int:
    """Measure and print; with --write into `docs/measurements/hardset.md`."""
    parser = page_parser("hardset", __doc__, PAGE)
    names = [OURS, *(peer.name for peer in PEERS)]
    parser.add_argument(
        "--solvers", nargs="*", choices=names, default=names, help="the others keep their last results"
    )
    parser.add_argument(
        "--problems", nargs="+", metavar="NAME", choices=list(PROBLEMS), default=list(PROBLEMS)
    )
    options = parser.parse_args(arguments)
    with threadpool_limits(limits=1):
        for name in options.problems if options.solvers else []:
            results.replace(measured(name, options.solvers))
    deliver(document(results.load()), PAGE if options.write else None)
    return 0


if __name__ == "__main__":
    sys.exit(main())
