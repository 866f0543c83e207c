"""Interface of the algorithms: parameters, the problems that an algorithm solves, and its plan for one problem."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import KW_ONLY, dataclass, fields
from enum import Enum
from importlib import import_module
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np

from ..engine.state import Motion, Unscaled
from ..problem.problem import Problem

if TYPE_CHECKING:
    from ..fit.alone import AlgorithmRun

# Required parameters, for the error messages of algorithms that solve p = 2 only.
OTHER_NORMS = 'p=2; for another p algorithm="pumma" or "alma" (2 <= p < inf), "ima" (every p) or "auto"'


class Bias(Enum):
    """Way in which an algorithm finds the unregularised intercept."""

    SHIFT = "a shift of all scores, updated between sweeps"
    COORDINATE = "the weight of a constant coordinate; bounds use the best intercept for the resulting w"
    OWN = "computed by the algorithm itself"


@dataclass(frozen=True)
class Facts:
    """Facts about a problem and its data, from which an algorithm makes its plan.

    Attributes
    ----------
    problem : Problem
    radius2 : float
        R^2, the largest squared norm of a pattern, including the constant coordinate and the slack coordinate of the
        2-norm soft margin.
    tol : float
        The certified gap at which a fit ends.
    floor : callable, default=lambda: 0.0
        Returns a lower bound of the largest directional margin, in the units of the patterns, from a short Perceptron
        run; 0 where it finds none.
    n : int, default=1
        Number of patterns.
    losses : float, default=1
        The objective of a soft problem at w = 0, C sum s_i; 0 for hard margins.
    length2 : float, default=None
        The largest squared Euclidean norm of a pattern without constant and slack coordinates; None for `radius2`.
    d : int, default=1
        Number of features.
    """

    problem: Problem
    radius2: float
    tol: float
    floor: Callable[[], float] = lambda: 0.0
    n: int = 1
    losses: float = 1.0
    length2: float | None = None
    d: int = 1

    @property
    def R(self) -> float:
        """The largest norm of a pattern; 1 where all are zero."""
        return self.radius2**0.5 if self.radius2 > 0.0 else 1.0


@dataclass(frozen=True)
class Plan:
    """The plan of an algorithm for one problem.

    Attributes
    ----------
    rule : record or callable
        The update of an online algorithm (a record, whose methods compiled code calls; see `engine.sweep`), or a batch
        solver: for the schedule "points" a function that yields the iterates of a run, (w, b, alpha) or `Reached`.
    unit : float or None
        The score that stands for a margin of one. None where the rule does not fix it: bounds then use the best
        multiple of w.
    then : tuple of records, default=()
        Rules of the same kind that follow, each when no pattern violates the rule before.
    settings : record or float, default=None
        Parameters of the schedule that belongs to this algorithm: sizes, numbers of epochs, an accuracy.
    """

    rule: Any
    unit: float | None
    then: tuple[Any, ...] = ()
    settings: Any = None


class Algorithm(ABC):
    """An algorithm with its parameters. Instances are frozen, hashable and comparable.

    Attributes
    ----------
    name : str
    schedules : tuple of str
        The allowed values of `schedule`, names of functions of `fit.schedules`.
    convergent : bool
        Whether it converges to any accuracy; otherwise it ends by a criterion of its own.
    bias : Bias
    scale : record class
        `Scaled` if its steps multiply w by a factor, `Unscaled` if they only add patterns.
    motion : Motion
        The vector to which its steps add patterns.
    kernelised : bool
        Whether it uses patterns only through inner products, so that it works with kernels.
    centres : bool
        Whether evaluations in the schedule "gap" move an augmented intercept of a soft problem as they move a free one.
        False where the step of the paper includes the constant coordinate.
    shuffle : bool
        Whether rows are presented in random order; otherwise in the order of the data.
    decides : bool
        Whether it ends by itself where there is no separator, with dual variables that nearly prove this. A fit then
        leaves the verdict on separability to its end.
    """

    name: ClassVar[str]
    schedules: ClassVar[tuple[str, ...]]
    convergent: ClassVar[bool] = True
    bias: ClassVar[Bias] = Bias.SHIFT
    scale: ClassVar[Any] = Unscaled
    motion: ClassVar[Motion] = Motion.LINK
    kernelised: ClassVar[bool] = True
    decides: ClassVar[bool] = False
    centres: ClassVar[bool] = False
    schedule: str
    shuffle: bool = True

    def run(self, X: Any, y: Any, C: float = np.inf, **options: Any) -> AlgorithmRun:
        """Run the algorithm by itself, exactly as its paper has it, and return the record of the run.

        Nothing else takes part: rows are neither merged nor shifted, no other method takes over, and the result is the
        last iterate with the algorithm's own scale, intercept, order and stopping rule.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
        y : array-like of shape (n_samples,)
            Two classes; the larger label is the positive one.
        C : float, default=inf
            Weight of the losses, as in `MaxMarginClassifier`; ``inf`` is the hard margin.
        kernel : str, callable or None, default=None
            A name of `KernelMaxMarginClassifier`, with its default parameters, or a function of two matrices.
        max_epochs : float, default=1000
            The run ends at the first row of the table with as many epochs.
        record : {"epoch", None}, default="epoch"
            ``"epoch"``: the table has a row for every pass over all rows, with the passes over an active set that
            follow it. None: a row wherever a fit computes bounds, after 1, 2, 4, ... passes, which takes less time.
        tol : float, default=None
            Gap of the bounds by the last iterate and by the best dual variables at which the run ends. None: its own
            stopping rule alone. Parameters such as ``delta=None`` follow from it (1e-3 for None).
        sample_weight : array-like of shape (n_samples,), default=None
        random_state : int, RandomState instance or None, default=None
            Of the orders of presentation.
        callback : callable, default=None
            Called with every row of the table; a true answer ends the run.
        loss, p, intercept, intercept_scaling, power
            Of the problem (`Problem`). By default the loss is the squared hinge if the algorithm solves it, and the
            intercept "free" if the algorithm has one of its own, else "none".

        Returns
        -------
        run : AlgorithmRun

        Examples
        --------
        >>> from maxmargin.algorithms import Perceptron
        >>> run = Perceptron(b=1.0, shuffle=False).run([[2.0, 0.0], [0.0, -1.0]], [1, -1])
        >>> run.w, run.n_updates, run.status
        (array([4., 5.]), 7, <Status.CONVERGED: 'CONVERGED'>)
        """
        # runs are above the algorithms, and are loaded when one is called for
        return import_module("maxmargin.fit.alone").run(self, X, y, C, **options)

    def refuses(self, problem: Problem) -> str | None:
        """Return None for a problem that the algorithm solves, else the required parameters, for an error message."""
        return self.other_norm(problem)

    def other_norm(self, problem: Problem) -> str | None:
        """Return None for a norm that the algorithm solves, else the required parameters, for an error message."""
        return None if problem.euclidean else OTHER_NORMS

    @property
    def keeps_rows(self) -> bool:
        """Whether the algorithm depends on the order or on weights of the given rows, so that none are merged."""
        return not self.shuffle

    def for_rows(self, n: int, totals: Callable[[np.ndarray], np.ndarray]) -> Self:
        """Return the algorithm for rows that were selected or merged from n rows.

        `totals` maps an array of shape (n,) to one number for each new row: the sum over the rows merged into it.
        """
        return self

    def refuses_kernels(self) -> str | None:
        """Return None if the algorithm works with kernels, else the names of algorithms that do."""
        return None if self.kernelised else 'algorithm="auto", "dcd", "mpu" or "pumma"'

    @abstractmethod
    def plan(self, facts: Facts) -> Plan:
        """Return the plan for a problem."""

    def measure(self, run: Any) -> dict[str, float]:
        """Return numbers of the algorithm itself, from the state of a run (`fit.runs`) after its last evaluation."""
        return {}


@dataclass(frozen=True)
class PerceptronLike(Algorithm):
    """Common part of the Perceptron-like algorithms, which pass over the rows until no pattern violates the rule.

    They solve the hard margin, and the 2-norm soft margin as a hard margin of patterns with slack coordinates.

    Parameters
    ----------
    schedule : {"active", "plain"}, default="active"
        "active": full passes, each followed by passes over the rows that made an update until none of them does.
        "plain": full passes only.
    shuffle : bool, default=True
        Whether to present rows in random order, drawn again for every full pass. False: in the order of the data, as
        in the tables of the papers.
    """

    _: KW_ONLY
    schedule: str = "active"
    shuffle: bool = True

    schedules: ClassVar[tuple[str, ...]] = ("active", "plain")
    convergent: ClassVar[bool] = False
    bias: ClassVar[Bias] = Bias.COORDINATE

    def __post_init__(self) -> None:
        # subclasses check their numbers; the flags of all of them are checked here
        for field in fields(self):
            if isinstance(field.default, bool):
                value = getattr(self, field.name)
                require(isinstance(value, bool), f"{field.name} must be True or False", value)

    def refuses(self, problem: Problem) -> str | None:
        # the hinge is no hard margin of extended patterns
        if not problem.hard and problem.loss == "hinge":
            return 'loss="squared_hinge" or C=inf'
        return super().refuses(problem)


def from_two_on(problem: Problem) -> str | None:
    """Return None where 2 <= p < inf and the norm is squared, as the theorems assume; else the required parameters."""
    if problem.p < 2.0:
        return 'p of at least 2; for a smaller one algorithm="ima" or "auto"'
    # the theorems bound the number of updates by a multiple of p - 1
    if problem.p == float("inf"):
        return 'p="log", which is nearly inf; for inf itself algorithm="ima" or "auto"'
    return "norm_power=2" if problem.first_power else None


def require(condition: bool, sentence: str, value: Any) -> None:
    """Raise ValueError with this sentence and the value of a parameter, unless the condition holds."""
    if not condition:
        raise ValueError(f"{sentence}; got {value!r}.")
