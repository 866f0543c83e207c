"""The normalised Perceptron and von Neumann's algorithm: one column of the Gram matrix a step.

Both add the pattern of least margin to a convex combination of the patterns: the Perceptron with the step 1/(k+1),
von Neumann's algorithm with the step that minimises the length of the combination.

References
----------
A. Ramdas, J. Pena, "Margins, kernels and non-linear smoothed Perceptrons", ICML 2014;
N. Soheili, J. Pena, "A smooth Perceptron algorithm", SIAM J. Optim. 22, 2012;
G. B. Dantzig, "An epsilon-precise feasible solution to a linear program with a convexity constraint in 1/epsilon^2
iterations independent of problem size", Stanford SOL 92-5, 1992 (the algorithm is von Neumann's, of 1948);
M. Epelman, R. M. Freund, "Condition number complexity of an elementary algorithm for computing a reliable solution
of a conic linear system", Math. Program. 88, 2000.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import count
from typing import Any, ClassVar

from .base import NormalisedAlgorithm
from .patterns import Iterate, NormalisedPatterns, bounded_iterate, interpolate


def normalised_perceptron(patterns: NormalisedPatterns) -> Iterator[Iterate]:
    """Run the normalised Perceptron, on rows (NP) or on a Gram matrix (NKP).

    From alpha = 0, alpha <- (1 - theta) alpha + theta e_j with j = argmin (G alpha) and theta = 1/(k+1). If there is a
    separator, one is found after at most 1/rho^2 steps. The steps are those of a subgradient method for
    max_i(-(G alpha)_i) + |alpha|_G^2 / 2, so that further steps lead to the largest margin. A step costs one column
    of G.

    Parameters
    ----------
    patterns : NormalisedPatterns

    Yields
    ------
    Iterate
        After 1, 2, ... steps, without end; p equals alpha, the fraction of all steps that added each pattern.
    """
    alpha = patterns.vertex(0)  # at alpha = 0 all margins are equal, and theta = 1
    for k in count(1):
        yield bounded_iterate(patterns, k, alpha, alpha)
        worst = int(alpha.margins.argmin())
        alpha = interpolate(alpha, patterns.vertex(worst), 1.0 / (k + 1))


def von_neumann(patterns: NormalisedPatterns) -> Iterator[Iterate]:
    """Run von Neumann's algorithm, on rows (NVN) or on a Gram matrix.

    From the centre of the simplex, p <- the point of the segment from p to e_j of least |.|_G, j = argmin (G p).
    As long as p does not separate, |p|_G <= 1/sqrt(k+1): at most 1/eps^2 steps until p separates or |p|_G <= eps.
    A step costs one column of G.

    Parameters
    ----------
    patterns : NormalisedPatterns

    Yields
    ------
    Iterate
        After 0, 1, ... steps; alpha equals p. Ends only where |p|_G is the smallest in the simplex, up to rounding.
    """
    p = patterns.combine(patterns.uniform())
    for k in count():
        iterate = bounded_iterate(patterns, k, p, p)
        yield iterate
        j = int(p.margins.argmin())
        least, square = float(p.margins[j]), iterate.upper**2
        if square <= least:  # p'Gp <= min (G p): the optimality condition of the shortest point
            return
        # |(1-t) p + t e_j|_G^2 is least at t = (p'Gp - (Gp)_j) / (p'Gp - 2 (Gp)_j + 1), since G_jj = 1
        step = (square - least) / (square - 2.0 * least + 1.0)
        p = interpolate(p, patterns.vertex(j), min(step, 1.0))


@dataclass(frozen=True)
class NormalisedPerceptron(NormalisedAlgorithm):
    """The normalised Perceptron: adds the pattern of least margin to a mean of normalised patterns (NP, NKP).

    Iteration: w <- (1 - theta) w + theta y_k with theta = 1/(t+1) after t steps, where y_k is the normalised pattern of
    least margin. w is the mean of the patterns that were added. A step costs the margins of all patterns with respect
    to one row.
    Guarantee: a separator is found after at most 1/rho^2 steps where the largest normalised margin rho exceeds eps.
    Without a separator |w| is at most 1/sqrt(t) after t steps, so that the algorithm ends after at most 1/eps^2 steps.

    Parameters
    ----------
    eps : float, default=1e-3
        The algorithm ends without a separator when |w|, which bounds the normalised margin, is at most eps.
    accuracy : float, default=1
        In (0, 1]: the algorithm ends at a separator whose normalised margin is at least 1 - accuracy of the largest,
        by the bounds of the iterates. 1 is the criterion of the paper: it ends at the first separator.

    References
    ----------
    A. Ramdas, J. Pena, "Margins, kernels and non-linear smoothed Perceptrons", ICML 2014;
    N. Soheili, J. Pena, "A smooth Perceptron algorithm", SIAM J. Optim. 22, 2012.
    """

    name: ClassVar[str] = "normalised-perceptron"
    words: ClassVar[str] = "the normalised Perceptron"
    iterates: ClassVar[Any] = staticmethod(normalised_perceptron)


@dataclass(frozen=True)
class VonNeumann(NormalisedAlgorithm):
    """Von Neumann's algorithm: a short convex combination of normalised patterns, or a separator (NVN).

    Iteration: the combination moves towards the pattern of least margin, to the point of the segment between them
    nearest to the origin. It begins at the mean of all patterns. A step costs the margins of all patterns with respect
    to one row.
    Guarantee: after at most 1/eps^2 steps the combination separates, or its length is at most eps. It separates after
    at most 1/rho^2 steps where the largest normalised margin rho exceeds eps.

    Parameters
    ----------
    eps : float, default=1e-3
        The algorithm ends without a separator when the length of the combination, which bounds the normalised margin,
        is at most eps. Exact arithmetic then decides separability, from the patterns of the combination.
    accuracy : float, default=1
        In (0, 1]: the algorithm ends at a separator whose normalised margin is at least 1 - accuracy of the largest,
        by the bounds of the iterates. 1 is the criterion of the papers: it ends at the first separator.

    References
    ----------
    G. B. Dantzig, "An epsilon-precise feasible solution to a linear program with a convexity constraint in 1/epsilon^2
    iterations independent of problem size", Stanford SOL 92-5, 1992 (the algorithm is von Neumann's, of 1948);
    M. Epelman, R. M. Freund, "Condition number complexity of an elementary algorithm for computing a reliable solution
    of a conic linear system", Math. Program. 88, 2000.
    """

    name: ClassVar[str] = "von-neumann"
    words: ClassVar[str] = "von Neumann's algorithm"
    decides: ClassVar[bool] = True
    iterates: ClassVar[Any] = staticmethod(von_neumann)
