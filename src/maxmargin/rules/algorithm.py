"""What every incremental algorithm offers: the field's parameters, and a plan for one problem."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any, ClassVar

from ..problems import Problem


@dataclass(frozen=True)
class Plan:
    """How an algorithm goes about one problem.

    Attributes
    ----------
    rule : record
        Threshold and step, compiled where they are called from compiled code.
    unit : float or None
        The score that stands for a margin of one; None where the rule does not fix it, and the best
        multiple of its weight is taken instead.
    real : bool, default=False
        May dual weights be moved to any real number between sweeps? The Perceptrons count updates.
    levels : (float, int, int), default=(0.01, 3, 10)
        For the two-level schedule: how near to the margin, and the most epochs on the first and second set.
    """

    rule: Any
    unit: float | None
    real: bool = False
    levels: tuple[float, int, int] = (0.01, 3, 10)


class Algorithm(ABC):
    """An incremental algorithm with its parameters; frozen, hashable, comparable."""

    name: ClassVar[str]
    schedules: ClassVar[tuple[str, ...]]
    convergent: ClassVar[bool] = True  # to any accuracy; else it ends by its own criterion
    schedule: str

    def refuses(self, problem: Problem) -> str | None:
        """What to ask for instead where the algorithm does not solve the problem; None where it does."""
        return None

    @abstractmethod
    def plan(self, problem: Problem, radius2: float, tol: float) -> Plan:
        """The rule for this problem; `radius2` is the largest squared norm of a pattern, slack included."""
