"""Algorithms side by side: one problem, the same data, one seed for all orders."""

from __future__ import annotations

import csv
import io
import os
import signal
from collections.abc import Callable, Iterable, Sequence
from dataclasses import MISSING, dataclass, field, fields, is_dataclass
from functools import partial
from typing import Any

import numpy as np
from sklearn.utils import check_random_state

from ..algorithms import ALGORITHMS, KERNEL_ALGORITHMS, Algorithm
from ..engine.jit import seconds_compiled
from ..estimators.kernel import KernelMaxMarginClassifier, kernel_algorithm
from ..estimators.linear import WithoutExactStep
from ..estimators.linear_tasks import linear_algorithm
from ..estimators.validation import validate_rows
from ..fit.deadline import Interruption, interrupts_handled
from ..fit.report import Report
from ..numerics.files import written_whole
from ..numerics.progress import announce
from ..problem.multiclass import python_label
from ..problem.problem import Problem
from ..problem.status import Status

WARM_UP_ROWS = 30  # of a class, for the fit that compiles before the clock runs: few rows cost little time
WARM_UP_ROUNDS = 4  # of that fit: it need not end at the tolerance, only enter the compiled functions
# The state of a fit without a round: `max_time` went by before it, or rows that contradict each other ended the fit.
NO_ROUND = Report(0, np.nan, np.nan, np.nan, np.nan, presentations=0, steps=0, stage="")
COLUMNS: tuple[str, ...] = (
    "algorithm", "class", "round", "seconds", "presentations", "updates", "margin", "objective", "lower", "upper",
    "gap",
)  # fmt: skip
TABLE = (
    "algorithm", "class", "status", "margin", "at most", "objective", "at least", "gap", "updates", "seconds",
)  # fmt: skip


@dataclass(frozen=True)
class Entry:
    """Result of one algorithm on one problem (one class against the rest, where there are several).

    Attributes
    ----------
    algorithm : str
    label : object
        The class; None for two classes, which are one problem.
    status : Status
    lower, upper, gap : float
        Proved by its certificate.
    margin : float
        Hard margin: the smallest margin of its w; else 1 / |w|.
    objective : float
        Of its w: 1/2 |w|^2 + losses; 1 / (2 margin^2) for the hard margin.
    updates, presentations, rounds : int
    seconds : float
        From the beginning of the fit; classes are solved in turn. NaN without a round.
    history : list of Report
        One a round.
    """

    algorithm: str
    label: Any
    status: Status
    lower: float
    upper: float
    gap: float
    margin: float
    objective: float
    updates: int
    presentations: int
    rounds: int
    seconds: float
    history: list[Report]


@dataclass(frozen=True)
class Comparison:
    """Result of `compare`.

    Attributes
    ----------
    problem : Problem
    tol : float
    entries : list of Entry
        In the order in which the algorithms were named.
    refused : dict of str to str
        For the algorithms that did not run, the reason.
    compile_seconds : float, default=0.0
        Time that compiling took, none of which is in the seconds of the entries.
    models : dict of str to MaxMarginClassifier or KernelMaxMarginClassifier, default={}
        The fitted model of each algorithm that ran; its `message_` explains the status.
    interrupted : bool, default=False
        Whether the comparison ended before all algorithms ran.
    """

    problem: Problem
    tol: float
    entries: list[Entry]
    refused: dict[str, str]
    compile_seconds: float = 0.0
    models: dict[str, Any] = field(default_factory=dict)
    interrupted: bool = False

    @property
    def certified(self) -> bool:
        """True if every algorithm that solves the problem ran, and reached the tolerance."""
        return not self.interrupted and all(entry.status is Status.CERTIFIED for entry in self.entries)

    def records(self) -> list[dict[str, Any]]:
        """Return every report of every algorithm, as plain values under the names of `COLUMNS`."""
        found = []
        for entry in self.entries:
            for report in entry.history:
                best = objective(self.problem, report.lower, report.upper)
                values = (
                    entry.algorithm, entry.label, report.round, report.seconds, report.presentations, report.steps,
                    report.margin, best, report.lower, report.upper, report.gap,
                )  # fmt: skip
                found.append(dict(zip(COLUMNS, values, strict=True)))
        return found

    def table(self) -> str:
        """Return a text with a line for each algorithm (and class), and the reason of each that did not reach `tol`.

        The proved bound on the best possible value stands beside the value that was reached: at most this margin, or
        at least this objective.
        """
        hard = self.problem.hard
        lines: list[Sequence[str]] = [TABLE]
        for one in self.entries:
            values = (
                one.algorithm, str(one.label), one.status.value, f"{one.margin:.6g}", f"{one.upper:.7g}",
                f"{one.objective:.7g}", f"{one.lower:.7g}", f"{one.gap:.2g}", str(one.updates),
                f"{one.seconds:.3g}",
            )  # fmt: skip
            lines.append(values)
        several = any(entry.label is not None for entry in self.entries)
        shown = {"class": several, "at most": hard, "at least": not hard}
        columns = [_padded(column) for column in zip(*lines, strict=True) if shown.get(column[0], True)]
        text = ["  ".join(line).rstrip() for line in zip(*columns, strict=True)] if self.entries else []
        for name, model in self.models.items():
            text += (
                [] if model.status_ is Status.CERTIFIED else [f"{name}: {model.status_}: {model.message_}"]
            )
        return "\n".join([*text, *(f"{name}: {reason}" for name, reason in self.refused.items())])

    def to_csv(self, path: str | os.PathLike[str]) -> None:
        """Write `records` to a file, which appears whole or not at all.

        Parameters
        ----------
        path : str or path-like
        """
        text = io.StringIO(newline="")
        writer = csv.DictWriter(text, COLUMNS, lineterminator="\n")
        writer.writeheader()
        writer.writerows(self.records())
        with written_whole(path) as file:
            file.write(text.getvalue().encode())

    def plot(self, axes: Any = None, *, label: Any = None) -> Any:
        """Draw the margin (or the distance from the best objective) against updates and against time.

        Parameters
        ----------
        axes : pair of matplotlib Axes, default=None
            Where to draw; None makes a figure.
        label : object, default=None
            The class whose problem is drawn, where there are several; None takes the first.

        Returns
        -------
        display : AlgorithmComparisonDisplay
        """
        from ..plots.algorithm_comparison import AlgorithmComparisonDisplay

        return AlgorithmComparisonDisplay.from_comparison(self, axes=axes, label=label)


def compare(
    X: Any,
    y: Any,
    algorithms: Sequence[str | Algorithm] | None = None,
    *,
    sample_weight: Any = None,
    callback: Callable[[Report], Any] | None = None,
    random_state: Any = None,
    **parameters: Any,
) -> Comparison:
    """Run algorithms on the same problem, data and seed, and compare their results, on rows or on a kernel.

    Small linear problems have no exact stage here: every algorithm has to reach the tolerance by itself. Compilation is
    not timed: each algorithm first fits a few of the rows, and a fit that compiled code nevertheless is repeated.

    Parameters
    ----------
    X : array-like or sparse matrix of shape (n_samples, n_features)
    y : array-like of shape (n_samples,)
    algorithms : list of str or Algorithm, default=None
        Names from `maxmargin.algorithms.ALGORITHMS`, or with a kernel `KERNEL_ALGORITHMS`, or objects such as
        ``PUMMA(delta=0.01)``; None takes all names. Those that do not solve the problem are listed with the reason.
    sample_weight : array-like of shape (n_samples,), default=None
    callback : callable, default=None
        Called with every `Report`; a true answer ends the comparison with the results so far.
    random_state : int, RandomState instance or None, default=None
        One seed is drawn from it, and is that of every algorithm.
    **parameters
        Of `MaxMarginClassifier`: the problem (``C``, ``loss``, ``fit_intercept``, ...), ``tol``, ``max_iter``, and
        ``max_time``, which each algorithm has to itself. With ``kernel`` they are those of `KernelMaxMarginClassifier`,
        with ``max_iter=1000`` by default.

    Returns
    -------
    comparison : Comparison

    Raises
    ------
    ValueError
        If data or parameters cannot be used, or none of the algorithms solves the problem.

    Notes
    -----
    Ctrl-C ends the comparison with `KeyboardInterrupt`, whose attribute `result` has the results so far; algorithms
    without a result are listed as not run.

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from maxmargin import compare
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> result = compare(X / X.max(axis=0), y, ["dcd", "mpu", "perceptron"], loss="hinge", random_state=0)
    >>> [entry.status.value for entry in result.entries]
    ['CERTIFIED', 'CERTIFIED']
    >>> result.refused["perceptron"]
    'it does not solve this problem; it does with loss="squared_hinge" or C=inf'
    """
    registry, cls, as_algorithm, parameters = _kind(parameters)
    named = _by_name(registry if algorithms is None else algorithms)
    for name in ("algorithm", "warm_start", "n_jobs", "verbose"):
        if name in parameters:
            raise TypeError(f"compare() has no use for {name!r}, as algorithms run in turn: leave it out.")
    for name in sorted(parameters.keys() - cls._get_param_names()):
        kind = "with" if "kernel" in parameters else "without"
        raise TypeError(f"compare() {kind} a kernel has no parameter {name!r}: leave it out.")
    seed = int(check_random_state(random_state).randint(np.iinfo(np.int32).max))
    fixed = {"random_state": seed, "callback": callback, **parameters}
    models = {name: cls(algorithm=one, **fixed) for name, one in named.items()}
    problem = next(iter(models.values()))._problem()
    refused = _refusals(named, as_algorithm, problem)
    running = [name for name in models if name not in refused]
    if not running:
        reasons = "; ".join(f"{name}: {reason}" for name, reason in refused.items())
        raise ValueError(f"none of the algorithms solves this problem ({reasons}): name another.")
    X, y = validate_rows(models[running[0]], X, y, order="C")
    fitted: dict[str, Any] = {}  # one store for each algorithm: Ctrl-C comes before it or after it
    before = seconds_compiled()
    interruption = Interruption()
    try:
        for number, name in enumerate(running, 1):
            announce(name, number, len(running))
            # The first Ctrl-C raises at once: compilation does not notice the flag of a deadline. A deadline replaces
            # the default handler only; `partial` makes this one another object.
            with interrupts_handled(partial(signal.default_int_handler)):
                _compile(cls, named[name], X, y, parameters)
            compiled = seconds_compiled()
            model = models[name]
            with interruption:
                model.fit(X, y, sample_weight)
                if seconds_compiled() > compiled and model.status_ is not Status.INTERRUPTED:
                    # the times of the first fit contain compilation
                    model.fit(X, y, sample_weight)
            fitted[name] = model
            if interruption.received or model.status_ is Status.INTERRUPTED:
                break
    except KeyboardInterrupt:
        interruption.received = True
    left = [name for name in running if name not in fitted]
    refused |= dict.fromkeys(left, "not run: the comparison was interrupted")
    entries = [entry for name, model in fitted.items() for entry in _entries(name, model, problem)]
    seconds = seconds_compiled() - before
    comparison = Comparison(problem, models[running[0]].tol, entries, refused, seconds, fitted, bool(left))
    interruption.raise_with(comparison)
    return comparison


def _kind(parameters: dict[str, Any]) -> tuple[dict[str, Any], type[Any], Callable[..., Any], dict[str, Any]]:
    """Return the algorithms by name, the class of the models, its function from names to algorithms, its parameters.

    With a kernel `max_iter` has the default of rows: some algorithms do not end by themselves.
    """
    if "kernel" not in parameters:
        return ALGORITHMS, WithoutExactStep, linear_algorithm, parameters
    parameters = {"max_iter": WithoutExactStep().max_iter} | parameters
    return KERNEL_ALGORITHMS, KernelMaxMarginClassifier, kernel_algorithm, parameters


def _compile(cls: type[Any], algorithm: Any, X: Any, y: np.ndarray, parameters: dict[str, Any]) -> None:
    """Fit a few rows of each class, which compiles the functions of the fit."""
    some = np.concatenate([np.flatnonzero(y == label)[:WARM_UP_ROWS] for label in np.unique(y)])
    precomputed = parameters.get("kernel") == "precomputed"
    if precomputed and X.shape[0] != X.shape[1]:
        return  # the fit refuses the matrix
    few = X[np.ix_(some, some)] if precomputed else X[some]
    if isinstance(algorithm, Algorithm):
        algorithm = algorithm.for_rows(y.size, lambda numbers: numbers[some])
    parameters = {**parameters, "max_iter": WARM_UP_ROUNDS, "max_time": None}
    cls(algorithm=algorithm, **parameters).fit(few, y[some])


def objective(problem: Problem, lower: float, upper: float) -> float:
    """Return the best objective so far, from bounds on it, or on the hard margin."""
    if not problem.hard:
        return upper
    return 0.5 / lower / lower if lower > 0.0 else np.inf


def _padded(column: Sequence[str]) -> list[str]:
    """Return the cells of a column, the title first, equally wide: words at the left, numbers at the right."""
    width = max(map(len, column))
    words = column[0] in ("algorithm", "class", "status")
    return [cell.ljust(width) if words else cell.rjust(width) for cell in column]


def _by_name(algorithms: Any) -> dict[str, Any]:
    """Return the algorithms by their names in the table."""
    single = isinstance(algorithms, str) or not isinstance(algorithms, Iterable)
    algorithms = [algorithms] if single else list(algorithms)
    if not algorithms:
        raise ValueError("algorithms must hold at least one name or rule object.")
    named: dict[str, Any] = {}
    for algorithm in algorithms:
        if not isinstance(algorithm, str | Algorithm):
            raise ValueError(f"algorithms must hold names and rule objects such as MPU(); got {algorithm!r}.")
        name = _name(algorithm)
        if algorithm in named.values() or (name in named and "(" not in name):
            raise ValueError(f"algorithms must not hold the same one twice; got {name!r} twice.")
        # weights of rows are not in the name
        named[f"{name} #{len(named) + 1}" if name in named else name] = algorithm
    return named


def _name(algorithm: Any) -> str:
    """Return the name of an algorithm, with the parameters that are not the defaults."""
    if not isinstance(algorithm, Algorithm):
        return str(algorithm)
    changed = []
    for one in fields(algorithm) if is_dataclass(algorithm) else ():
        value = getattr(algorithm, one.name)
        if one.default is MISSING or value != one.default:
            changed.append(f"{one.name}={value!r}")
    return f"{algorithm.name}({', '.join(changed)})" if changed else algorithm.name


def _refusals(named: dict[str, Any], as_algorithm: Callable[..., Any], problem: Problem) -> dict[str, str]:
    """Return the reasons of the algorithms that do not solve the problem."""
    refused = {}
    for name, given in named.items():
        algorithm = as_algorithm(given)  # raises for unknown names and schedules
        instead = None if algorithm is None else algorithm.refuses(problem)
        if instead is not None:
            refused[name] = f"it does not solve this problem; it does with {instead}"
    return refused


def _entries(name: str, model: Any, problem: Problem) -> list[Entry]:
    """Return the entry of each binary problem of a fitted model."""
    parts = model.certificate_.certificates
    entries = []
    for label, part in zip(map(python_label, model.certificate_.classes), parts, strict=True):
        history = [report for report in model.history_ if report.label == label]
        last = history[-1] if history else NO_ROUND
        # a model of several classes has the worst status of its parts only
        certified = len(parts) > 1 and part.gap <= model.tol
        status = Status.CERTIFIED if certified else model.status_
        margin = part.lower if problem.hard else last.margin
        entries.append(
            Entry(
                name, label, status, part.lower, part.upper, part.gap, margin,
                objective(problem, part.lower, part.upper), last.steps, last.presentations, len(history),
                last.seconds, history,
            )
        )  # fmt: skip
    return entries
