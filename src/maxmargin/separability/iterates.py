"""What an algorithm on normalised patterns knows after a step, and when that decides on separability.

The normalised margin is rho = max over |w| = 1, w in the span of the patterns, of min_i (margin of i). Every w
bounds it from below and every p of the simplex from above, separable or not::

    min (G alpha) / |alpha|_G  <=  rho  <=  |p|_G.

A positive rho is the least |p|_G. Where no w separates, that is 0, and |rho| is the radius of the largest ball
around 0 inside the hull of the patterns, within their span (Theorem 3 of the first paper).

References
----------
A. Ramdas, J. Pena, "Margins, kernels and non-linear smoothed Perceptrons", ICML 2014;
P. Gordan, "Ueber die Aufloesung linearer Gleichungen mit reellen Coefficienten", Math. Annalen 6, 1873.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

from .normalized import NormalisedPatterns


class State(NamedTuple):
    """After a step.

    Attributes
    ----------
    step : int
        Steps so far.
    alpha : LinearPlace or KernelPlace
        The separator on offer, with its margins G alpha. The entries of ``alpha.weights`` add up to one.
    p : LinearPlace or KernelPlace
        Weights of the simplex, with G p.
    lower, upper : float
        min(G alpha) / |alpha|_G and |p|_G: bounds of rho, these ones' alone, not the best so far. They are careful
        of rounding, but no proof: that takes the patterns once more.
    """

    step: int
    alpha: Any
    p: Any
    lower: float
    upper: float

    @property
    def primal(self) -> bool:
        """Does alpha separate?"""
        return self.lower > 0.0

    def dual(self, eps: float) -> bool:
        """Does p show that no margin is larger than eps?"""
        return self.upper <= eps


def state(patterns: NormalisedPatterns, step: int, alpha: Any, p: Any) -> State:
    """The state with the bounds of these two places."""
    length = patterns.length(alpha)
    lower = _lower(patterns, float(patterns.xp.min(alpha.margins)), length)
    return State(step, alpha, p, lower, length if p is alpha else patterns.length(p))


def _lower(patterns: NormalisedPatterns, least: float, length: float) -> float:
    """The margin of a direction whose length and least margin are known up to rounding."""
    if length <= patterns.noise:
        return -1.0  # there is no direction: no margin is less
    if least > 0.0:
        return least / length
    return max((least - patterns.rounding) / (length - patterns.noise), -1.0)


def decided(
    states: Iterator[State], eps: float, interrupted: Callable[[], bool] = lambda: False
) -> Iterator[State]:
    """States up to the first that decides: a separator, or |p|_G <= eps.

    Parameters
    ----------
    states : iterator of State
        From any of the algorithms; they do not stop by themselves, since each goes on to better bounds.
    eps : float
        Margins up to eps count as none; 0 to look for a separator only.
    interrupted : callable
        Is it time to stop? Asked after every step.

    Yields
    ------
    State
        The last one is `primal`, or `dual(eps)`, or neither where it was time to stop.
    """
    for now in states:
        yield now
        if now.primal or now.dual(eps) or interrupted():
            return
