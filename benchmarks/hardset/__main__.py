"""Certified fits and other solvers on 100 hard problems with known optima.

`python -m benchmarks.hardset [--sets maxmargin SVC ...] [--write]`: here the sets are solvers.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence

from ..results import OURS, Row, main
from .answers import judged, limited, ours
from .peers import PEERS, Peer
from .problems import PROBLEMS, HardProblem

LEVELS = (1e-3, 1e-6, 1e-9)  # tolerances of our fits; a peer is done at the last


def hardset(solvers: Sequence[str] | None) -> Iterator[Row]:
    """Yield three rows about our fits of each problem, and one about the best answer of each peer that can state it."""
    for problem in PROBLEMS.values():
        if solvers is None or OURS in solvers:
            for level, answer in zip(LEVELS, limited(ours, problem, LEVELS), strict=True):
                yield judged(OURS, problem, f"{level:g}", answer)
        for peer in PEERS:
            if (
                (solvers is None or peer.name in solvers)
                and peer.package is not None
                and peer.applies(problem)
            ):
                yield best(peer, problem)


def best(peer: Peer, problem: HardProblem) -> Row:
    """Return the best answer of a peer, from its tightest tolerance until one has the finest level."""
    rows: list[Row] = []
    for tol in peer.tolerances:
        rows.append(judged(peer.name, problem, "", limited(peer.solve, problem, [tol])[0]))
        if rows[-1]["excess"] <= LEVELS[-1]:
            break
    return min(rows, key=lambda row: row["excess"])


if __name__ == "__main__":
    sys.exit(main("hardset", __doc__, hardset))
