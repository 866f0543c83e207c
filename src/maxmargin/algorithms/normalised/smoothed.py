"""Smoothed Perceptrons: Nesterov's excessive gap technique, with one product with G a step.

The Perceptron maximises a linear function over the simplex at every step. Smoothing subtracts mu d(p) from it, with d
strongly convex, and lets mu go to zero::

    L_mu(alpha) = max over p of ( -p'G alpha - mu d(p) ) + |alpha|_G^2 / 2,
    p_mu(alpha) = the p that attains it.

Every step keeps the excessive gap L_mu(alpha) <= -|p|_G^2 / 2. It implies a separator after O(1/rho) steps where there
is one, with bounds lower^2 >= rho^2 - 2 mu max d and upper^2 <= rho^2 + 2 mu max d of the margin, and
|p|_G^2 <= 2 mu min d(W) where there is none, W = {p : G p = 0} being the proofs of inseparability. Each d is a class
(`Entropy`, `Distance`); the recurrence is the same for both.

References
----------
A. Ramdas, J. Pena, "Margins, kernels and non-linear smoothed Perceptrons", ICML 2014 (SNKP, SNKPVN, ISNKPVN);
N. Soheili, J. Pena, "A primal-dual smooth Perceptron-von Neumann algorithm", Discrete Geometry and Optimization, 2013;
Yu. Nesterov, "Excessive gap technique in nonsmooth convex minimization", SIAM J. Optim. 16, 2005;
J. Duchi, S. Shalev-Shwartz, Y. Singer, T. Chandra, "Efficient projections onto the l1-ball for learning in high
dimensions", ICML 2008.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from itertools import count
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np

from ...numerics.sizes import is_finite
from ..base import require
from .base import NormalisedAlgorithm
from .patterns import Array, Iterate, NormalisedPatterns, bounded_iterate, interpolate


class Entropy(NamedTuple):
    """d(p) = sum p_i log p_i + log n, at most log n; strongly convex in the 1-norm, and |.|_G <= |.|_1.

    `centre`, of shape (n,), must be the centre of the simplex, where d is zero.
    """

    centre: Array

    @property
    def mu(self) -> float:
        """2: d(p) >= |p - centre|_1^2 / 2 (Pinsker's inequality)."""
        return 2.0

    def minimise(self, margins: Array, mu: float) -> Array:
        """Return the softmax of -margins / mu."""
        p = np.exp((margins.min() - margins) / mu)  # exponents of at most 0 cannot overflow
        return p / p.sum()


class Distance(NamedTuple):
    """d(p) = |p - centre|^2 / 2, at most 1; |.|_G <= sqrt(n) |.|_2. `centre` is a point of the simplex, shape (n,)."""

    centre: Array

    @property
    def mu(self) -> float:
        """2 n: |p - centre|_G^2 <= n |p - centre|_2^2 = 2 n d(p)."""
        return 2.0 * self.centre.shape[0]

    def minimise(self, margins: Array, mu: float) -> Array:
        """Return the projection of centre - margins / mu on the simplex."""
        # the projection does not depend on a constant added to all entries; this one keeps them small
        return project_on_simplex(self.centre + (margins.min() - margins) / mu)


def project_on_simplex(v: Array) -> Array:
    """Return the point of the simplex nearest to v, in O(n log n) (Duchi et al. 2008).

    It is max(v - tau, 0) with tau = max over k of (sum of the k largest entries - 1) / k: the quotient grows with k as
    long as the next entry is larger than it.
    """
    v = v - v.max()
    tau = ((np.cumsum(np.sort(v)[::-1]) - 1.0) / np.arange(1, v.size + 1, dtype=v.dtype)).max()
    p = np.maximum(v - tau, 0.0)
    return p / p.sum()


def excessive_gap(patterns: NormalisedPatterns, prox: Entropy | Distance) -> Iterator[Iterate]:
    """Run the recurrence of all smoothed Perceptrons.

    With theta = 2/(k+3): alpha <- (1-theta)(alpha + theta p) + theta^2 p_mu(alpha), mu <- (1-theta) mu,
    p <- (1-theta) p + theta p_mu(alpha). The p_mu(alpha) of the last formula is the one of the first in the next
    step, so that a step takes one product with G.

    Parameters
    ----------
    patterns : NormalisedPatterns
    prox : Entropy or Distance
        d, a strongly convex function on the simplex that is zero at its `centre`, where alpha starts; `mu` is the
        initial mu, large enough for mu d(p) >= |p - centre|_G^2, with which every step keeps the excessive gap;
        `minimise(margins, mu)` is p_mu, the p of the simplex that minimises p'margins + mu d(p).

    Yields
    ------
    Iterate
        After 0, 1, ... steps, without end.
    """
    mu = prox.mu
    alpha = patterns.combine(prox.centre)
    p = smooth = patterns.combine(prox.minimise(alpha.margins, mu))
    for k in count():
        yield bounded_iterate(patterns, k, alpha, p)
        theta = 2.0 / (k + 3)
        # (1-theta)(alpha + theta p) + theta^2 p_mu(alpha), as two interpolations
        alpha = interpolate(alpha, interpolate(p, smooth, theta), theta)
        mu *= 1.0 - theta
        smooth = patterns.combine(prox.minimise(alpha.margins, mu))
        p = interpolate(p, smooth, theta)


@dataclass(frozen=True)
class SmoothedPerceptron(NormalisedAlgorithm):
    """The smoothed Perceptron: an accelerated method that replaces the least margin by a soft minimum (SNKP).

    Iteration: the coefficients of the patterns move towards a softmax of the negative margins, whose temperature mu
    falls as 1/t^2. A step costs one product with the rows and one with their transpose.
    Guarantee: a separator is found after at most 2 sqrt(2 log n) / rho steps where the largest normalised margin rho
    exceeds eps. Without a separator the algorithm ends after at most 2 sqrt(2 log n) / eps steps.

    Parameters
    ----------
    eps : float, default=1e-3
        The algorithm ends without a separator when the length of its convex combination of the normalised patterns,
        which bounds the normalised margin, is at most eps.
    accuracy : float, default=1
        In (0, 1]: the algorithm ends at a separator whose normalised margin is at least 1 - accuracy of the largest,
        by the bounds of the iterates. 1 is the criterion of the paper: it ends at the first separator.

    References
    ----------
    A. Ramdas, J. Pena, "Margins, kernels and non-linear smoothed Perceptrons", ICML 2014;
    N. Soheili, J. Pena, "A smooth Perceptron algorithm", SIAM J. Optim. 22, 2012.
    """

    name: ClassVar[str] = "smoothed-perceptron"
    words: ClassVar[str] = "the smoothed Perceptron"

    def iterates(self, patterns: NormalisedPatterns) -> Iterator[Iterate]:
        return excessive_gap(patterns, Entropy(patterns.uniform()))


class RowWeights(tuple[float, ...]):
    """Weights of the rows, which `repr` counts; a tuple can be hashed and compared."""

    def __repr__(self) -> str:
        return f"<{len(self)} weights>"


@dataclass(frozen=True)
class SmoothedPrimalDual(NormalisedAlgorithm):
    """The smoothed primal-dual algorithm: a separator, or a short convex combination of normalised patterns (SNKPVN).

    Iteration: as for the smoothed Perceptron, with the projection of q - margins / mu on the simplex in place of the
    softmax.
    Guarantee: a separator is found after at most 2 sqrt(2 n) / rho steps where the largest normalised margin rho
    exceeds eps. Without a separator a convex combination of the normalised patterns of length at most eps is found
    after at most 2 sqrt(2 n) min(1, |q| / |rho|) / eps steps, where |rho| is the radius of the largest ball around the
    origin inside the convex hull of the normalised patterns, and |q| the length of their mean with the weights q.

    Parameters
    ----------
    q : array-like of shape (n,), default=None
        Weights of the rows, none negative and not all 0, which are divided by their sum: the point of the simplex that
        the projection is centred at. Without a separator the bound on the steps is proportional to the length of the
        mean of the normalised patterns with these weights, where this is below |rho|. Rows that are merged have the
        sum of their weights, rows of sample weight 0 are left out. None, or weights that are 0 on all other rows, are
        equal weights.
    eps : float, default=1e-3
        The algorithm ends without a separator when the length of the combination is at most eps, delta in the paper.
        Exact arithmetic then decides separability, from the patterns of the combination.
    accuracy : float, default=1
        In (0, 1]: the algorithm ends at a separator whose normalised margin is at least 1 - accuracy of the largest,
        by the bounds of the iterates. 1 is the criterion of the paper: it ends at the first separator.

    References
    ----------
    A. Ramdas, J. Pena, "Margins, kernels and non-linear smoothed Perceptrons", ICML 2014;
    N. Soheili, J. Pena, "A primal-dual smooth Perceptron-von Neumann algorithm", Discrete Geometry and Optimization,
    2013.
    """

    name: ClassVar[str] = "smoothed-primal-dual"
    words: ClassVar[str] = "the smoothed primal-dual algorithm"
    decides: ClassVar[bool] = True
    q: Any = field(default=None, kw_only=True)

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.q is not None:
            q = np.asarray(self.q)
            numbers = q.dtype.kind in "biuf" and q.ndim == 1 and q.size > 0
            if not (numbers and q.min() >= 0.0 and 0.0 < q.max() < np.inf):
                raise ValueError("q must be finite weights of the rows, none negative and not all 0.")
            object.__setattr__(self, "q", RowWeights(q.astype(float).tolist()))

    @property
    def keeps_rows(self) -> bool:
        return self.q is not None

    def for_rows(self, n: int, totals: Callable[[np.ndarray], np.ndarray]) -> Self:
        if self.q is None:
            return self
        require(len(self.q) == n, f"q must have {n} weights, one for each row", len(self.q))
        q = totals(np.array(self.q))
        return replace(self, q=q if q.any() else None)

    def centre_of(self, patterns: NormalisedPatterns) -> Array:
        """Return the weights `q` divided by their sum, or equal weights."""
        if self.q is None:
            return patterns.uniform()
        q = np.array(self.q) / max(self.q)  # the sum of q itself may overflow
        return q / q.sum()

    def iterates(self, patterns: NormalisedPatterns) -> Iterator[Iterate]:
        return excessive_gap(patterns, Distance(self.centre_of(patterns)))


@dataclass(frozen=True)
class IteratedSmoothedPrimalDual(SmoothedPrimalDual):
    """The iterated smoothed primal-dual algorithm: restarts of the smoothed one, with linear convergence (ISNKPVN).

    Iteration: `SmoothedPrimalDual` runs until the length of its combination is 1 / gamma of that of q, and starts again
    with this combination as its q.
    Guarantee: without a separator a combination of length at most eps is found after at most log(1/eps) / log(gamma)
    runs of at most 2 gamma sqrt(2 n) / |rho| steps each, where |rho| is the radius of the largest ball around the
    origin inside the convex hull of the normalised patterns. A separator is found after at most
    1 + log(1/rho) / log(gamma) runs of at most 2 sqrt(2 n) / rho steps where the largest normalised margin rho exceeds
    eps.

    Parameters
    ----------
    gamma : float, default=2
        Larger than 1: the factor by which the length falls in a run.
    q : array-like of shape (n,), default=None
        Weights of the rows for the first run, as for `SmoothedPrimalDual`.
    eps : float, default=1e-3
        The algorithm ends without a separator when the length of the combination is at most eps. Exact arithmetic then
        decides separability, from the patterns of the combination.
    accuracy : float, default=1
        In (0, 1]: the algorithm ends at a separator whose normalised margin is at least 1 - accuracy of the largest,
        by the bounds of the iterates. 1 is the criterion of the paper: it ends at the first separator.

    References
    ----------
    As for `SmoothedPrimalDual`.
    """

    gamma: float = 2.0

    name: ClassVar[str] = "iterated-smoothed-primal-dual"
    words: ClassVar[str] = "the iterated smoothed primal-dual algorithm"

    def __post_init__(self) -> None:
        super().__post_init__()
        require(is_finite(self.gamma) and self.gamma > 1.0, "gamma must be larger than 1", self.gamma)

    def iterates(self, patterns: NormalisedPatterns) -> Iterator[Iterate]:
        q = self.centre_of(patterns)
        steps = count()  # the start of a run is a step
        goal = patterns.length(patterns.combine(q)) / self.gamma  # |p|_G below which a run ends
        while True:
            for iterate in excessive_gap(patterns, Distance(q)):
                yield iterate._replace(step=next(steps))
                if iterate.upper < goal:
                    q, goal = iterate.p.coefficients, iterate.upper / self.gamma
                    break
