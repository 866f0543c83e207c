"""The normalised Perceptron: every step adds the pattern of least margin, and weights stay an average.

References
----------
A. Ramdas, J. Pena, "Margins, kernels and non-linear smoothed Perceptrons", ICML 2014;
N. Soheili, J. Pena, "A smooth Perceptron algorithm", SIAM J. Optim. 22, 2012.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import count

from .iterates import State, state
from .normalized import NormalisedPatterns, between


def normalised_perceptron(patterns: NormalisedPatterns) -> Iterator[State]:
    """NP on rows, NKP on a Gram matrix: the same steps.

    From alpha = 0, alpha <- (1 - theta) alpha + theta e_j with j = argmin (G alpha) and theta = 1/(k+1). If there is a
    separator, one is found after at most 1/rho^2 steps; the steps are those of a subgradient method for
    max_i(-(G alpha)_i) + |alpha|_G^2 / 2, so that going on leads to the largest margin. A step costs one column of G.

    Parameters
    ----------
    patterns : NormalisedPatterns

    Yields
    ------
    State
        After 1, 2, ... steps; p and alpha are the same, the shares in which patterns were added.
    """
    alpha = patterns.vertex(0)  # from 0 all margins are the same, and theta = 1
    for k in count(1):
        yield state(patterns, k, alpha, alpha)
        worst = int(patterns.xp.argmin(alpha.margins))
        alpha = between(alpha, patterns.vertex(worst), 1.0 / (k + 1))
