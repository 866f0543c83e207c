"""Von Neumann's algorithm on normalised patterns: the shortest point of the segment to the pattern of least margin.

References
----------
G. B. Dantzig, "An epsilon-precise feasible solution to a linear program with a convexity constraint in 1/epsilon^2
iterations independent of problem size", Stanford SOL 92-5, 1992 (the algorithm is von Neumann's, of 1948);
M. Epelman, R. M. Freund, "Condition number complexity of an elementary algorithm for computing a reliable solution
of a conic linear system", Math. Program. 88, 2000.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import count

from .iterates import State, state
from .normalized import NormalisedPatterns, between


def von_neumann(patterns: NormalisedPatterns) -> Iterator[State]:
    """NVN, on rows or on a Gram matrix.

    From the centre of the simplex, p <- the point of the segment from p to e_j of least |.|_G, j = argmin (G p).
    As long as p does not separate, |p|_G <= 1/sqrt(k+1): at most 1/eps^2 steps until p separates or |p|_G <= eps.
    A step costs one column of G.

    Parameters
    ----------
    patterns : NormalisedPatterns

    Yields
    ------
    State
        After 0, 1, ... steps; alpha and p are the same. Ends only where p is the shortest point, up to rounding.
    """
    p = patterns.at(patterns.uniform())
    for k in count():
        now = state(patterns, k, p, p)
        yield now
        j = int(patterns.xp.argmin(p.margins))
        least, square = float(p.margins[j]), now.upper**2
        if square <= least:
            return
        p = between(p, patterns.vertex(j), min((square - least) / (square - 2.0 * least + 1.0), 1.0))
