"""Progress of a fit: the division of the time among its binary tasks, and their reports.

Reports are printed, passed to `callback`, and shown by callbacks of scikit-learn (since 1.9), for which a fit is a tree
of tasks; with an older version nothing is called.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, replace
from math import ceil, isfinite, log10
from threading import Lock
from typing import Any, TypeVar

import numpy as np
from joblib import Parallel, delayed

from ..engine.jit import COMPILATION
from ..fit.deadline import Deadline, Poll
from ..fit.report import Report, report_before
from ..numerics.progress import announce
from ..problem.status import Status

try:
    from sklearn.callback import CallbackSupportMixin, with_callbacks  # pyright: ignore[reportAssignmentType]
except ModuleNotFoundError:  # scikit-learn < 1.9

    class CallbackSupportMixin:
        """Takes no callbacks."""

    def with_callbacks(method: Callable[..., Any]) -> Callable[..., Any]:
        """Return the method itself."""
        return method


__all__ = ["CallbackSupportMixin", "Reporter", "StepCallbacks", "is_true", "solve_tasks", "with_callbacks"]

T = TypeVar("T")
Data = tuple[Any, ...]  # X, y, sample_weight of a fit
Attributes = Callable[[], dict[str, Any]]  # returns the fitted attributes of a copy of the estimator
AttributesOf = Callable[[list[Any]], dict[str, Any]]  # returns them from the best point of each task


def solve_tasks(
    solve_task: Callable[[int, Deadline], T], count: int, workers: int, deadline: Deadline
) -> list[T]:
    """Solve tasks 0, ..., count - 1; each gets an equal share of the time that remains when it begins.

    Parameters
    ----------
    solve_task : callable
        Solves the k-th task within its share of the time.
    count : int
    workers : int
        Number of tasks that are solved at the same time.
    deadline : Deadline
        The deadline of the whole fit.
    """

    def begin(k: int, deadline: Deadline) -> T:
        if count > 1:
            announce("binary problem", k + 1, count, level=2)
        return solve_task(k, deadline)

    if workers == 1:  # the last task has all of the remaining time
        last = count - 1
        return [begin(k, deadline.split(count - k) if k < last else deadline) for k in range(count)]
    parallel: Any = Parallel(n_jobs=workers, require="sharedmem")

    # called when task k begins, so that `split` divides the time that remains then
    def within_share(k: int) -> T:
        return begin(k, deadline.split(ceil((count - k) / workers)))

    return list(parallel(delayed(within_share)(k) for k in range(count)))


class _Tree:
    """The tree of tasks of one fit, for callbacks of scikit-learn; without such callbacks it has no root."""

    root: Any = None

    def _begin_fit(self, estimator: Any, data: Data, **subtasks: Any) -> None:
        """Begin the root, with the data of the fit; `subtasks` state the number and the order of its subtasks."""
        X, y, sample_weight = data
        metadata = None if sample_weight is None else {"sample_weight": sample_weight}
        self._arguments = {"estimator": estimator, "X": X, "y": y, "metadata": metadata}
        self.root = self._begin(estimator._init_callback_context(**subtasks))

    def _begin(self, context: Any) -> Any:
        """Begin a context, and return it."""
        return context.call_on_fit_task_begin(**self._arguments)

    def _end(self, context: Any, attributes: Attributes | dict[str, Any] | None = None) -> bool:
        """End a context; return whether a callback asks for the end of the fit.

        Parameters
        ----------
        context : context
        attributes : callable or dict, default=None
            Returns the fitted attributes of a copy of the estimator, or holds the attributes that the estimator lacks;
            None if there is no model yet.
        """
        return bool(context.call_on_fit_task_end(**self._arguments, reconstruction_attributes=attributes))

    def end(self) -> None:
        """End the fit: the estimator has all of its attributes."""
        if self.root is not None:
            self._end(self.root, {})


class StepCallbacks(_Tree):
    """Callbacks of a fit of several steps, such as passes over the data. Tree of tasks: fit -> step.

    Parameters
    ----------
    estimator : estimator
        If it is None or has no callbacks, the methods do nothing.
    data : (X, y, sample_weight)
    steps : int
        Largest number of steps.
    attributes : callable, default=None
        Returns the attributes with which a copy of the estimator predicts as if the fit had ended with this step.

    Attributes
    ----------
    stopped : bool
        Whether a callback asked for the end.
    """

    def __init__(
        self, estimator: Any = None, data: Data = (), steps: int = 0, attributes: Attributes | None = None
    ) -> None:
        self.stopped, self._attributes = False, attributes
        if hasattr(estimator, "_skl_callbacks"):
            self._begin_fit(estimator, data, max_subtasks=steps)

    @contextmanager
    def step(self, name: Callable[[], str], estimator: Any = None) -> Iterator[None]:
        """Run one step, with its own line in a progress bar.

        Parameters
        ----------
        name : callable
            Returns the name of the step.
        estimator : estimator, default=None
            The estimator that runs this step, and calls the callbacks itself if it supports them; None for the
            estimator of the fit.
        """
        if self.root is None:
            yield
            return
        # scikit-learn puts another estimator's tree in the place of a task that has no subtasks
        subtasks = None if estimator is None else 0
        context = self.root.subcontext(task_name=_without_markup(name()), max_subtasks=subtasks)
        nested = hasattr(estimator, "set_callbacks")
        with context.propagate_callback_context(estimator) if nested else nullcontext():
            self._begin(context)
            yield
        self.stopped |= self._end(context, self._attributes)


class Reporter(_Tree):
    """Prints the reports of one fit if `verbose`, and passes them to the callbacks, each of which may end the fit.

    Tree of tasks: fit -> binary task (if there are several) -> decade of the gap -> round. A binary task has a subtask
    for each power of ten between a gap of 1 and `tol`, so that its progress bar shows the order of magnitude of the
    gap. The name of a decade states the bounds at its beginning. One more subtask shows the status at the end. The
    context of a round has its `Report` as the attribute `report`.

    Parameters
    ----------
    model : estimator
        With the parameters `verbose` and `callback`.
    data : (X, y, sample_weight)
    labels : sequence
        Labels of the binary tasks in their reports; None is the label of a single task.
    sequential : bool
        Whether one task ends before the next begins.
    attributes : callable
        Returns the attributes with which a copy of the estimator predicts, from the best point of each task.
    """

    def __init__(
        self, model: Any, data: Data, labels: Sequence[Any], sequential: bool, attributes: AttributesOf
    ) -> None:
        self._model, self._sequential, self._attributes = model, sequential, attributes
        self._tol: float = model.tol
        # 1e-9: rounding of the logarithm of a power of ten
        self._decades = max(1, ceil(-log10(self._tol) - 1e-9))
        self._tasks = {label: _TaskProgress() for label in labels}
        self._lock = Lock()
        self._poll: Poll | None = None
        self._last: Report | None = None
        self._compiled = COMPILATION.seconds  # at the last line printed
        if hasattr(model, "_skl_callbacks"):
            alone = len(labels) == 1
            subtasks = self._decades + 1 if alone else len(labels)
            sequential = alone or sequential
            self._begin_fit(model, data, max_subtasks=subtasks, sequential_subtasks=sequential)
            if alone:
                self._tasks[labels[0]].context = self.root

    def poll(self, deadline: Deadline) -> None:
        """Let the deadline call the callback within rounds, with the last report, or one of round 0 at first."""
        if self._model.callback is None:
            return
        first = report_before(deadline, "start", "there are no bounds yet", next(iter(self._tasks)))

        def ask() -> bool:
            seconds = time.perf_counter() - deadline.began
            return is_true(self._model.callback(replace(self._last or first, seconds=seconds)))

        self._poll = deadline.poll = Poll(ask, self._lock)

    def report(self, report: Report, best: Callable[[], Any], deadline: Deadline) -> None:
        """Print the report of a round if `verbose`, and pass it to the callbacks.

        Parameters
        ----------
        report : Report
        best : callable
            Returns the best point so far.
        deadline : Deadline
            The deadline of the task, which is stopped if a callback asks for the end.
        """
        with self._lock:
            if self._model.verbose:
                self._print(report)
            self._last = report
            if self._model.callback is not None and is_true(self._model.callback(report)):
                deadline.stopped.set()
            if self._poll is not None:
                self._poll.postpone()
            if self.root is not None and self._show(report, best, deadline.remaining()):
                deadline.stopped.set()

    def end_task(self, label: Any, status: Status) -> None:
        """End one binary task, and show its status."""
        if self.root is None:
            return
        with self._lock:
            task = self._begun(label)
            if task.decade is not None:
                self._end(task.decade)
            last = task.last
            bounds = "" if last is None else f" {_interval(last)}, gap {last.gap:.1g}"
            self._end(self._begin_part(task, task.context, f"{status}{bounds}", None))
            if task.context is not self.root:
                self._end(task.context)

    def _print(self, report: Report) -> None:
        """Print a line about the round, and one before it where another stage begins."""
        task = self._tasks[report.label]
        name = "" if report.label is None else f"[{report.label}] "
        if COMPILATION.seconds > self._compiled:
            seconds, self._compiled = COMPILATION.seconds - self._compiled, COMPILATION.seconds
            print(f"compiled in {seconds:.2f} s {COMPILATION.purpose}", file=sys.stderr)
        if task.stage != (report.stage, report.reason):
            task.stage = report.stage, report.reason
            print(f"{name}{report.stage}: {report.reason}", file=sys.stderr)
        print(
            f"{name}round {report.round:4d}  {report.seconds:8.2f} s  {report.lower:.9g} .. {report.upper:.9g}"
            f"  gap {report.gap:.3g}  ({report.stage})",
            file=sys.stderr,
        )

    def _show(self, report: Report, best: Callable[[], Any], left: float) -> bool:
        """Begin and end the context of a round, and the contexts of the decades of the gap that it passes.

        Parameters
        ----------
        report : Report
        best : callable
            Returns the best point so far.
        left : float
            Seconds left of `max_time`.

        Returns
        -------
        stop : bool
            Whether a callback asks for the end.
        """
        task = self._begun(report.label)
        task.best = best
        if task.decade is None:
            name = self._progress(task.last or report, left)
            task.decade = self._begin_part(task, task.context, name, None)
        task.last = report
        points = [one.best for one in self._tasks.values() if one.best is not None]

        def attributes() -> dict[str, Any]:
            return self._attributes([point() for point in points]) | {"n_iter_": report.round}

        is_model = len(points) == len(self._tasks)
        context = self._begin_part(task, task.decade, "round", 0)
        stop = self._end(context, attributes if is_model else None)
        # the last decade ends with the task: only then is it known whether `tol` is reached
        passed = log10(min(1.0, max(report.gap, self._tol))) / log10(self._tol) if self._tol < 1.0 else 0.0
        reached = min(int(self._decades * passed), self._decades - 1)
        if reached > task.passed:
            stop |= self._end(task.decade)
            for _ in range(task.passed + 1, reached):
                self._end(self._begin_part(task, task.context, "passed at once", 0))
            task.passed, task.decade = reached, None
        return stop

    def _begun(self, label: Any) -> _TaskProgress:
        """Return a binary task, whose context begins with the first call."""
        task = self._tasks[label]
        if task.context is None:
            context = self.root.subcontext(
                task_name=_without_markup(f"class {label}"),
                task_id=None if self._sequential else list(self._tasks).index(label),
                max_subtasks=self._decades + 1,
            )
            task.context = self._begin(context)
        return task

    def _begin_part(self, task: _TaskProgress, parent: Any, name: str, subtasks: int | None) -> Any:
        """Begin a context that has the last report of a task as its attribute `report`."""
        context = parent.subcontext(task_name=name, max_subtasks=subtasks)
        context.report = task.last
        return self._begin(context)

    def _progress(self, report: Report, left: float) -> str:
        """Return bounds, gap and remaining time in one short line: progress bars cut long names."""
        line = f"{_interval(report)}, gap {report.gap:.1g}"
        line = f"{line}, margin {report.margin:.2g}" if isfinite(self._model.C) else f"margin {line}"
        return f"{line}, {left:.0f} s left" if isfinite(left) else line


@dataclass(eq=False)
class _TaskProgress:
    """The progress of one binary task.

    Attributes
    ----------
    context, decade : context or None
        The context of the task, and that of the current decade of the gap.
    passed : int
        Number of decades that the gap has passed.
    last : Report or None
        The last report.
    best : callable or None
        Returns the best point.
    stage : tuple of str or None
        The name of the current stage, and its reason.
    """

    context: Any = None
    decade: Any = None
    passed: int = 0
    last: Report | None = None
    best: Callable[[], Any] | None = None
    stage: tuple[str, str] | None = None


def is_true(answer: Any) -> bool:
    """Return whether the value that a callback returned is true; arrays, for example, have no truth value."""
    if np.ndim(answer):
        kind = type(answer).__name__
        raise ValueError(f"callback must return True to end the fit, else False or None; got a {kind}.")
    return bool(answer)


def _interval(report: Report) -> str:
    return f"{report.lower:.4g}..{report.upper:.4g}"


def _without_markup(name: str) -> str:
    """Replace square brackets, which progress bars read as markup."""
    return name.replace("[", "(").replace("]", ")")
