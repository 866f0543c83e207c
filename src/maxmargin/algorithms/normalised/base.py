"""The interface `Algorithm` of the algorithms on normalised patterns, with rows or with a kernel."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import KW_ONLY, dataclass
from typing import TYPE_CHECKING, Any, ClassVar

from ...numerics.progress import OutOfTime
from ...numerics.sizes import is_finite
from ...problem.problem import Problem
from ..base import Algorithm, Bias, Facts, Plan, require
from .patterns import Iterate, NormalisedPatterns, until_decided

if TYPE_CHECKING:
    from ...fit.runs import GramRun, LinearRun


@dataclass(frozen=True)
class NormalisedAlgorithm(Algorithm):
    """Common part of the algorithms on normalised patterns, which solve the hard margin at p = 2.

    Every pattern is divided by its length. A free intercept is the weight of a constant coordinate, as long as the
    longest row. A fit evaluates the bounds of its own problem at the iterates 1, 2, 4, 8, ...

    Parameters
    ----------
    eps : float, default=1e-3
        The algorithm ends without a separator when the length of its convex combination of the normalised patterns,
        which bounds their margin, is at most eps. Exact arithmetic then decides separability, from the patterns of this
        combination.
    accuracy : float, default=1
        In (0, 1]: the algorithm ends at a separator whose normalised margin is at least 1 - accuracy of the largest,
        by the bounds of the iterates. 1 is the criterion of the papers: it ends at the first separator.

    Attributes
    ----------
    words : str
        The name in messages.
    """

    _: KW_ONLY
    eps: float = 1e-3
    accuracy: float = 1.0
    schedule: str = "points"

    schedules: ClassVar[tuple[str, ...]] = ("points",)
    convergent: ClassVar[bool] = False
    bias: ClassVar[Bias] = Bias.COORDINATE
    words: ClassVar[str]

    def __post_init__(self) -> None:
        require(is_finite(self.eps, 0.0), "eps must be a positive number", self.eps)
        within = is_finite(self.accuracy) and 0.0 < self.accuracy <= 1.0
        require(within, "accuracy must lie above 0 and be at most 1", self.accuracy)

    def refuses(self, problem: Problem) -> str | None:
        return super().refuses(problem) if problem.hard else "C=inf"

    def plan(self, facts: Facts) -> Plan:
        return Plan(rule=self._points, unit=1.0)

    @abstractmethod
    def iterates(self, patterns: NormalisedPatterns) -> Iterator[Iterate]:
        """Yield the iterates of the algorithm, without its stopping criterion."""

    def until_end(
        self, patterns: NormalisedPatterns, interrupted: Callable[[], bool] = lambda: False
    ) -> Iterator[Iterate]:
        """Yield the iterates up to the one that meets the stopping criterion, or up to an interruption."""
        eps = max(self.eps, patterns.noise)
        return until_decided(self.iterates(patterns), eps, interrupted, self.accuracy)

    def _points(self, run: LinearRun | GramRun) -> Iterator[Any]:
        """Yield the iterates 1, 2, 4, 8, ... and the last one as points; none where a pattern has no direction.

        An evaluation of the bounds costs about as much as a step; more than 1024 steps between two of them would delay
        the reports of a fit.
        """
        try:
            patterns = run.normalised_patterns()
        except ValueError:  # the square of a length is 0, or not finite
            return
        due, last, iterate = 0, None, None
        with suppress(OutOfTime):  # within a product with the rows of a kernel
            for count, iterate in enumerate(self.until_end(patterns, run.interrupted)):
                run.steps = iterate.step
                if count >= due:
                    yield patterns.solution(iterate)
                    due, last = count + min(count + 1, 1024), iterate
                else:
                    run.presentations += run.n
        if iterate is not None and iterate is not last:
            yield patterns.solution(iterate)
        run.converged = True
