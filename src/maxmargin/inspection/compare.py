"""Algorithms side by side: one problem, the same data, one seed for all orders."""

from __future__ import annotations

import csv
import io
import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import MISSING, asdict, dataclass, fields, is_dataclass, replace
from functools import partial
from itertools import count
from typing import Any

import numpy as np

from ..algorithms import ALGORITHMS, KERNEL_ALGORITHMS, Algorithm
from ..engine.jit import seconds_compiled
from ..estimators.kernel import KernelMaxMarginClassifier, kernel_algorithm
from ..estimators.linear import MaxMarginClassifier
from ..estimators.linear_tasks import linear_algorithm
from ..estimators.validation import validated_data
from ..fit.alone import AlgorithmRun, Epoch, run
from ..fit.deadline import Deadline
from ..fit.report import Report
from ..numerics.files import written_whole
from ..numerics.progress import announce
from ..numerics.sizes import draw_seeds
from ..problem.multiclass import named_parts, parts_of, python_label
from ..problem.problem import Problem, Status

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
    run : AlgorithmRun
        The record of the run.
    """

    algorithm: str
    label: Any
    run: AlgorithmRun

    @property
    def gap(self) -> float:
        """The certified relative gap."""
        return self.run.problem.gap(self.run.lower, self.run.upper)

    @property
    def seconds(self) -> float:
        """Processor time of the algorithm, without the computation of bounds; NaN where `max_time` left none."""
        return self.run.table[-1].seconds if self.run.table else np.nan


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
    interrupted : bool, default=False
        Whether the comparison ended before all algorithms ran.
    """

    problem: Problem
    tol: float
    entries: list[Entry]
    refused: dict[str, str]
    interrupted: bool = False

    @property
    def certified(self) -> bool:
        """True if every algorithm that solves the problem ran, and reached the tolerance."""
        return not self.interrupted and all(entry.run.status is Status.CERTIFIED for entry in self.entries)

    def records(self) -> list[dict[str, Any]]:
        """Return the rows of the tables of all runs, as plain values under their names, `algorithm` and `class`."""
        return [
            {"algorithm": entry.algorithm, "class": entry.label, **row._asdict()}
            for entry in self.entries
            for row in entry.run.table
        ]

    def table(self) -> str:
        """Return a text with a line for each algorithm (and class), and the reason of each that did not run.

        The proved bound on the best possible value stands beside the value that was reached: at most this margin, or
        at least this objective.
        """
        hard = self.problem.hard
        lines: list[Sequence[str]] = [TABLE]
        for entry in self.entries:
            one = entry.run
            values = (
                entry.algorithm, str(entry.label), one.status.value, f"{one.margin:.6g}", f"{one.upper:.7g}",
                f"{one.objective:.7g}", f"{one.lower:.7g}", f"{entry.gap:.2g}", str(one.n_updates),
                f"{entry.seconds:.3g}",
            )  # fmt: skip
            lines.append(values)
        several = any(entry.label is not None for entry in self.entries)
        shown = {"class": several, "at most": hard, "at least": not hard}
        columns = [_padded(column) for column in zip(*lines, strict=True) if shown.get(column[0], True)]
        text = ["  ".join(line).rstrip() for line in zip(*columns, strict=True)] if self.entries else []
        return "\n".join([*text, *(f"{name}: {reason}" for name, reason in self.refused.items())])

    def to_csv(self, path: str | os.PathLike[str]) -> None:
        """Write `records` to a file, which appears whole or not at all.

        Parameters
        ----------
        path : str or path-like
        """
        text = io.StringIO(newline="")
        writer = csv.DictWriter(text, ("algorithm", "class", *Epoch._fields), lineterminator="\n")
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

    Each algorithm runs by itself (`Algorithm.run`) and has to reach the tolerance alone, by its last iterate.
    Compilation is not timed: a run that compiled code is repeated.

    Parameters
    ----------
    X : array-like or sparse matrix of shape (n_samples, n_features)
    y : array-like of shape (n_samples,)
    algorithms : list of str or Algorithm, default=None
        Names from `maxmargin.algorithms.ALGORITHMS`, or with a kernel `KERNEL_ALGORITHMS`, or objects such as
        ``PUMMA(delta=0.01)``; None takes all names. Those that do not solve the problem are listed with the reason.
    sample_weight : array-like of shape (n_samples,), default=None
    callback : callable, default=None
        Called with a `Report` after every epoch; a true answer ends the comparison with the results so far.
    random_state : int, RandomState instance or None, default=None
        One seed is drawn from it, and is that of every algorithm.
    **parameters
        Of `MaxMarginClassifier`: the problem (``C``, ``loss``, ``fit_intercept``, ...), ``tol``, ``max_iter``, here of
        epochs, and ``max_time``, which each algorithm has to itself. With ``kernel`` they are those of
        `KernelMaxMarginClassifier`.

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
    kernels = "kernel" in parameters
    cls: Any = KernelMaxMarginClassifier if kernels else MaxMarginClassifier
    as_algorithm: Any = kernel_algorithm if kernels else linear_algorithm
    named = _by_name((KERNEL_ALGORITHMS if kernels else ALGORITHMS) if algorithms is None else algorithms)
    if unused := {"algorithm", "warm_start", "n_jobs", "verbose"} & parameters.keys():
        raise TypeError(f"compare() has no use for {min(unused)!r}, as algorithms run in turn: leave it out.")
    model: Any = cls(**{"max_iter": 1000} | parameters)
    problem = model._problem()
    ready = {name: as_algorithm(one) for name, one in named.items()}  # raises for unknown names and schedules
    refused = {
        name: f"it does not solve this problem; it does with {one.refuses(problem)}"
        for name, one in ready.items()
        if one.refuses(problem) is not None
    }
    running = [name for name in ready if name not in refused]
    if not running:
        text = "; ".join(f"{name}: {reason}" for name, reason in refused.items())
        raise ValueError(f"none of the algorithms solves this problem ({text}): name another.")
    problems = _Problems(model, problem, X, y, sample_weight, random_state, callback)
    entries: list[Entry] = []
    deadline, left = Deadline(), running
    for number, name in enumerate(running, 1):
        announce(name, number, len(running))
        compiled, found = -1.0, []
        while compiled < seconds_compiled() and not deadline.stopped.is_set():  # until nothing was compiled
            compiled = seconds_compiled()
            deadline = Deadline(model.max_time)
            with deadline.interruptible():
                found = problems.entries(name, ready[name], deadline)
        entries, left = entries + found, running[number:]
        if deadline.stopped.is_set():
            break
    refused |= dict.fromkeys(left, "not run: the comparison was interrupted")
    comparison = Comparison(problem, model.tol, entries, refused, bool(left))
    deadline.raise_interrupt(comparison)
    return comparison


class _Problems:
    """The binary problems of a comparison: each class against the rest, or with a kernel pairs of classes.

    Parameters
    ----------
    model : MaxMarginClassifier or KernelMaxMarginClassifier
        Its parameters.
    problem : Problem
    X, y, sample_weight, random_state, callback
        Of `compare`.
    """

    def __init__(
        self,
        model: Any,
        problem: Problem,
        X: Any,
        y: Any,
        sample_weight: Any,
        random_state: Any,
        callback: Any,
    ) -> None:
        data = X, y, sample_weight
        if hasattr(model, "kernel"):
            self.kernel, self.X, self.targets = model.validated(problem, *data)
        else:
            self.kernel, (self.X, self.targets) = None, validated_data(model, problem, *data)
        if getattr(model, "p", 2) == "log":
            problem = replace(problem, p=max(2.0, 2.0 * np.log(self.X.shape[1])))
        self.problem, self.model, self.callback, classes = problem, model, callback, self.targets.classes
        self.scheme = parts_of(getattr(model, "multi_class", "ovr"), classes.size)
        self.names = [python_label(label) for label in named_parts(self.scheme, classes)]
        self.seed = int(draw_seeds(random_state, 1)[0])

    def entries(self, name: str, algorithm: Any, deadline: Deadline) -> list[Entry]:
        """Run an algorithm on every problem."""
        found = []
        for k, label in enumerate(self.names):
            signs, takes_part = self.scheme.signs(k, self.targets.codes)
            ended = run(
                algorithm, self.X, signs, **asdict(self.problem), kernel=self.kernel, tol=self.model.tol,
                max_epochs=self.model.max_iter, sample_weight=np.where(takes_part, self.targets.weights, 0.0),
                random_state=self.seed, callback=partial(_report, self.callback, name, label, count(1)),
                deadline=deadline.split(len(self.names) - k),
            )  # fmt: skip
            if ended.status is Status.INTERRUPTED:
                deadline.stopped.set()
            found.append(Entry(name, label, ended))
        return found


def _report(callback: Any, name: str, label: Any, numbers: Iterator[int], row: Epoch) -> bool:
    """Pass the report of an epoch to the callback; return whether it ends the run."""
    if callback is None:
        return False
    report = Report(
        round=next(numbers), seconds=row.seconds, lower=row.lower, upper=row.upper, gap=row.gap,
        presentations=row.visits, steps=row.updates, stage=name, label=label, margin=row.margin,
    )  # fmt: skip
    return bool(callback(report))


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
        raise ValueError("algorithms must hold at least one name or algorithm object.")
    named: dict[str, Any] = {}
    for algorithm in algorithms:
        if not isinstance(algorithm, str | Algorithm) or algorithm == "auto":
            raise ValueError(
                f"algorithms must hold names and algorithm objects such as MPU(); got {algorithm!r}."
            )
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
