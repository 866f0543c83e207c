"""What every incremental algorithm offers: the field's parameters, and a plan for one problem."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import KW_ONLY, dataclass, fields
from enum import Enum
from numbers import Real
from typing import Any, ClassVar

import numpy as np

from ..engine.state import Motion, Unscaled
from ..problem.problem import Problem

OTHER_NORMS = 'p=2; for another p algorithm="pumma" or "alma" (2 <= p < inf), "ima" (every p) or "auto"'


class Bias(Enum):
    """How an algorithm comes by an unregularised intercept."""

    SHIFT = "a shift of all scores, moved from outside until it is right"
    COORDINATE = "a constant coordinate of every pattern; the bounds take the best intercept for its w"
    OWN = "learnt by the rule itself"


@dataclass(frozen=True)
class Facts:
    """What an algorithm may want to know before it plans.

    Attributes
    ----------
    problem : Problem
    radius2 : float
        R^2, the largest squared norm of a pattern, constant and own coordinate included.
    tol : float
        The certified gap that is asked for.
    floor : callable
        Finds a lower bound of the largest directional margin, 0 where it finds none.
    n : int
        Patterns.
    losses : float
        The objective of a soft problem at w = 0.
    length2 : float, default=None
        The largest squared Euclidean norm of a pattern, constant and own coordinate left aside; None for `radius2`.
    d : int
        Features.
    point : (ndarray of shape (d,), float), default=None
        (w, b) to begin with.
    """

    problem: Problem
    radius2: float
    tol: float
    floor: Callable[[], float] = lambda: 0.0
    n: int = 1
    losses: float = 1.0
    length2: float | None = None
    d: int = 1
    point: tuple[np.ndarray, float] | None = None

    @property
    def R(self) -> float:
        """The largest norm of a pattern; 1 where all are zero."""
        return self.radius2**0.5 if self.radius2 > 0.0 else 1.0


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
    then : tuple of records, default=()
        Rules of the same kind that take over, each when all patterns are right for the one before.
    real : bool, default=False
        May dual weights be moved to any real number between sweeps? The Perceptrons count updates.
    pace : record, default=None
        What a schedule that belongs to this algorithm asks for: sizes, numbers of epochs.
    clock : callable, default=None
        The time that has passed at a w of length one, by its dual weights and the lengths of the patterns, as if the
        rule had led there; None for rules that begin at 0 always.
    """

    rule: Any
    unit: float | None
    then: tuple[Any, ...] = ()
    real: bool = False
    pace: Any = None
    clock: Callable[[np.ndarray, np.ndarray], float] | None = None


class Algorithm(ABC):
    """An incremental algorithm with its parameters; frozen, hashable, comparable."""

    name: ClassVar[str]
    schedules: ClassVar[tuple[str, ...]]
    convergent: ClassVar[bool] = True  # to any accuracy; else it ends by its own criterion
    bias: ClassVar[Bias] = Bias.SHIFT
    scale: ClassVar[Any] = Unscaled  # what its step does to w as a whole
    motion: ClassVar[Motion] = Motion.LINK  # what its step moves
    kernelised: ClassVar[bool] = True  # does it know patterns by their inner products alone?
    schedule: str
    shuffle: bool = True

    def refuses(self, problem: Problem) -> str | None:
        """What to ask for instead where the algorithm does not solve the problem; None where it does."""
        return self.other_norm(problem)

    def other_norm(self, problem: Problem) -> str | None:
        """The same, of the norm alone."""
        return None if problem.p == 2 and is_squared(problem) else OTHER_NORMS

    def refuses_kernels(self) -> str | None:
        """What to ask for instead where the patterns are those of a kernel; None where the algorithm has that form."""
        return None if self.kernelised else 'algorithm="auto", "dcd", "mpu" or "pumma"'

    @abstractmethod
    def plan(self, facts: Facts) -> Plan:
        """The rule for this problem."""


@dataclass(frozen=True)
class PerceptronLike(Algorithm):
    """Hard margin, and 2-norm soft margin by virtual extension; passes until no pattern asks for an update.

    Parameters
    ----------
    schedule : {"active", "plain"}, default="active"
        Full passes, each followed by passes over those that made an update until none of them does; or full
        passes only.
    shuffle : bool, default=True
        Present rows in random order, a new one in every full pass; else in the order of the data, as the papers'
        tables do.
    """

    _: KW_ONLY
    schedule: str = "active"
    shuffle: bool = True

    schedules: ClassVar[tuple[str, ...]] = ("active", "plain")
    convergent: ClassVar[bool] = False
    bias: ClassVar[Bias] = Bias.COORDINATE

    def __post_init__(self) -> None:
        for field in fields(self):
            if isinstance(field.default, bool):
                value = getattr(self, field.name)
                require(isinstance(value, bool), f"{field.name} must be True or False", value)

    def refuses(self, problem: Problem) -> str | None:
        if not problem.hard and problem.loss == "hinge":
            return 'loss="squared_hinge" or C=inf'
        return super().refuses(problem)


def is_squared(problem: Problem) -> bool:
    """Does the norm stand squared in the problem? The hard margin is the same in any case."""
    return problem.hard or problem.power == 2


def from_two_on(problem: Problem) -> str | None:
    """What to ask for where a theorem needs 2 <= p < inf."""
    if problem.p < 2.0:
        return 'p of at least 2; for a smaller one algorithm="ima" or "auto"'
    if problem.p == float("inf"):
        return 'p="log", which is nearly inf; for inf itself algorithm="ima" or "auto"'
    return None if is_squared(problem) else "norm_power=2"


def require(holds: bool, sentence: str, value: Any) -> None:
    """Parameters are checked when the object is made."""
    if not holds:
        raise ValueError(f"{sentence}; got {value!r}.")


def is_number(value: Any) -> bool:
    """A real, finite number, and no boolean."""
    return isinstance(value, Real) and not isinstance(value, bool) and abs(float(value)) < float("inf")
