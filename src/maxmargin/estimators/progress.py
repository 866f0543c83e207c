"""Progress of a fit: reports that are printed, passed to `callback`, and shown by callbacks of scikit-learn.

Callbacks of scikit-learn (since 1.9) see a fit as a tree of tasks; with an older version nothing is called.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from math import ceil, isfinite, log10
from threading import Lock
from typing import Any

from ..fit.deadline import Deadline
from ..fit.report import Report
from ..problem.status import Status

try:
    from sklearn.callback import CallbackSupportMixin, with_callbacks  # pyright: ignore[reportAssignmentType]
except ModuleNotFoundError:  # scikit-learn < 1.9

    class CallbackSupportMixin:
        """Takes no callbacks."""

    def with_callbacks(method: Callable[..., Any]) -> Callable[..., Any]:
        """Return the method itself."""
        return method


__all__ = ["CallbackSupportMixin", "Reporter", "StepCallbacks", "with_callbacks"]

Attributes = Callable[[], dict[str, Any]]  # makes the fitted attributes of a copy of the estimator


class StepCallbacks:
    """Callbacks of a fit of several steps, such as passes over the data. Tree of tasks: fit -> step.

    Parameters
    ----------
    estimator : estimator
        Without callbacks, or None: the methods do nothing.
    X, y, sample_weight
        Data of the fit.
    steps : int
        At most.
    attributes : callable, default=None
        Makes the attributes with which a copy of the estimator predicts as if the fit had ended with this step.

    Attributes
    ----------
    stopped : bool
        Whether a callback asked for the end.
    """

    def __init__(
        self,
        estimator: Any = None,
        X: Any = None,
        y: Any = None,
        sample_weight: Any = None,
        steps: int = 0,
        attributes: Attributes | None = None,
    ) -> None:
        self.stopped = False
        self._tree = None
        if hasattr(estimator, "_skl_callbacks"):
            self._tree = _Tree(estimator, X, y, sample_weight, max_subtasks=steps)
            self._attributes = attributes

    @contextmanager
    def step(self, name: Callable[[], str], estimator: Any = None) -> Iterator[None]:
        """Run one step, with its own line in a progress bar.

        Parameters
        ----------
        name : callable
            Returns the name of the step.
        estimator : estimator, default=None
            Does this step, and calls the callbacks itself where it can; None for the estimator of the fit.
        """
        if self._tree is None:
            yield
            return
        # scikit-learn puts another estimator's tree in the place of a task that has no subtasks
        subtasks = None if estimator is None else 0
        context = self._tree.root.subcontext(task_name=_without_markup(name()), max_subtasks=subtasks)
        nested = hasattr(estimator, "set_callbacks")
        with context.propagate_callback_context(estimator) if nested else nullcontext():
            self._tree.begin(context)
            yield
        self.stopped |= self._tree.end(context, self._attributes)

    def end(self) -> None:
        """End the fit: the estimator has all of its attributes."""
        if self._tree is not None:
            self._tree.end(self._tree.root, {})


class Reporter:
    """Prints the reports of one fit if `verbose`, and passes them to the callbacks, each of which may end the fit.

    Parameters
    ----------
    model : estimator
        With the parameters `verbose` and `callback`.
    X, y, sample_weight
        Data of the fit.
    labels : sequence
        Labels of the binary tasks in their reports; None is the only one.
    sequential : bool
        Whether one task ends before the next begins.
    attributes : callable
        Makes the attributes with which a copy of the estimator predicts, from the best point of each task.
    """

    def __init__(
        self,
        model: Any,
        X: Any,
        y: Any,
        sample_weight: Any,
        labels: Sequence[Any],
        sequential: bool,
        attributes: Callable[[list[Any]], dict[str, Any]],
    ) -> None:
        self._verbose, self._callback = model.verbose, model.callback
        self._stages: dict[Any, tuple[str, str]] = {}  # stage at work, by label
        self._lock = Lock()
        self._callbacks = None
        if hasattr(model, "_skl_callbacks"):
            self._callbacks = _RoundCallbacks(model, X, y, sample_weight, labels, sequential, attributes)

    def report(self, report: Report, best: Callable[[], Any], deadline: Deadline) -> None:
        """Pass on one report.

        Parameters
        ----------
        report : Report
        best : callable
            Returns the best point so far.
        deadline : Deadline
            Of the task; it is stopped where a callback asks for the end.
        """
        with self._lock:
            if self._verbose:
                self._print(report)
            if self._callback is not None and self._callback(report):
                deadline.stopped.set()
            if self._callbacks is not None and self._callbacks.report(report, deadline.remaining(), best):
                deadline.stopped.set()

    def end_task(self, label: Any, status: Status) -> None:
        """End one binary task."""
        if self._callbacks is not None:
            with self._lock:
                self._callbacks.end_task(label, status)

    def end(self) -> None:
        """End the fit: the estimator has all of its attributes."""
        if self._callbacks is not None:
            self._callbacks.tree.end(self._callbacks.tree.root, {})

    def _print(self, report: Report) -> None:
        name = "" if report.label is None else f"[{report.label}] "
        stage = report.stage, report.reason
        if self._stages.get(report.label) != stage:
            self._stages[report.label] = stage
            print(f"{name}{report.stage}: {report.reason}", file=sys.stderr)
        print(
            f"{name}round {report.round:4d}  {report.seconds:8.2f} s  {report.lower:.9g} .. {report.upper:.9g}"
            f"  gap {report.gap:.3g}  ({report.stage})",
            file=sys.stderr,
        )


class _Tree:
    """The contexts of one fit, which begin and end with its data."""

    def __init__(self, estimator: Any, X: Any, y: Any, sample_weight: Any, **root: Any) -> None:
        metadata = None if sample_weight is None else {"sample_weight": sample_weight}
        self._arguments = {"estimator": estimator, "X": X, "y": y, "metadata": metadata}
        self.root = self.begin(estimator._init_callback_context(**root))

    def begin(self, context: Any) -> Any:
        """Begin a context, and return it."""
        return context.call_on_fit_task_begin(**self._arguments)

    def end(self, context: Any, attributes: Attributes | dict[str, Any] | None = None) -> bool:
        """End a context; return whether a callback asks for the end of the fit.

        Parameters
        ----------
        context : context
        attributes : callable or dict, default=None
            Makes the fitted attributes of a copy of the estimator, or holds those that the estimator lacks; None
            where there is no model yet.
        """
        return bool(context.call_on_fit_task_end(**self._arguments, reconstruction_attributes=attributes))


class _RoundCallbacks:
    """Tree of tasks: fit -> binary task, where there are several -> decade of the gap -> round.

    A binary task has a subtask for each power of ten between a gap of 1 and `tol`, so that its progress bar shows how
    far it has come, and how long the rest takes. The name of a decade holds the bounds with which it began. One more
    subtask shows the status at the end. The context of a round has its `Report` as the attribute `report`.

    Parameters are those of `Reporter`.
    """

    def __init__(
        self,
        estimator: Any,
        X: Any,
        y: Any,
        sample_weight: Any,
        labels: Sequence[Any],
        sequential: bool,
        attributes: Callable[[list[Any]], dict[str, Any]],
    ) -> None:
        self._labels, self._sequential, self._attributes = list(labels), sequential, attributes
        # 1e-9: rounding of the logarithm of a power of ten
        self._decades = max(1, ceil(-log10(estimator.tol) - 1e-9))
        alone = len(self._labels) == 1
        subtasks = self._decades + 1 if alone else len(self._labels)
        self.tree = _Tree(
            estimator, X, y, sample_weight, max_subtasks=subtasks, sequential_subtasks=alone or sequential
        )
        hard = not isfinite(estimator.C)
        self._tasks = {label: _BinaryTask(self.tree, self._decades, estimator.tol, hard) for label in labels}
        if alone:
            self._tasks[self._labels[0]].context = self.tree.root

    def report(self, report: Report, left: float, best: Callable[[], Any]) -> bool:
        """Pass on the report of a round; return whether a callback asks for the end.

        Parameters
        ----------
        report : Report
        left : float
            Seconds left of `max_time`.
        best : callable
            Returns the best point so far.
        """
        task = self._begun(report.label)
        task.best = best
        points = [task.best for task in self._tasks.values() if task.best is not None]
        if len(points) < len(self._tasks):
            return task.report(report, left, None)
        return task.report(
            report, left, lambda: self._attributes([point() for point in points]) | {"n_iter_": report.round}
        )

    def end_task(self, label: Any, status: Status) -> None:
        """End one binary task."""
        task = self._begun(label)
        task.end(status)
        if task.context is not self.tree.root:
            self.tree.end(task.context)

    def _begun(self, label: Any) -> _BinaryTask:
        """Return a binary task, whose context begins with the first call."""
        task = self._tasks[label]
        if task.context is None:
            task.context = self.tree.begin(
                self.tree.root.subcontext(
                    task_name=_without_markup(f"class {label}"),
                    task_id=None if self._sequential else self._labels.index(label),
                    max_subtasks=self._decades + 1,
                )
            )
        return task


class _BinaryTask:
    """The contexts of one binary task, from a gap of 1 to `tol`."""

    def __init__(self, tree: _Tree, decades: int, tol: float, hard: bool) -> None:
        self.context: Any = None
        self.best: Callable[[], Any] | None = None
        self._tree, self._decades, self._tol, self._hard = tree, decades, tol, hard
        self._passed = 0  # decades
        self._decade: Any = None  # context of the present one
        self._last: Report | None = None

    def report(self, report: Report, left: float, attributes: Attributes | None) -> bool:
        """Begin and end the context of a round, and those of the decades that it passes."""
        if self._decade is None:
            self._decade = self._begin_context(self.context, self._progress(self._last or report, left), None)
        self._last = report
        stop = self._tree.end(self._begin_context(self._decade, "round", 0), attributes)
        # the last decade ends with the task: only then is it known whether `tol` is reached
        reached = min(self._decades_below(report.gap), self._decades - 1)
        if reached > self._passed:
            stop |= self._tree.end(self._decade)
            for _ in range(self._passed + 1, reached):
                self._tree.end(self._begin_context(self.context, "passed at once", 0))
            self._passed, self._decade = reached, None
        return stop

    def end(self, status: Status) -> None:
        """End the decade at hand, and show the status."""
        if self._decade is not None:
            self._tree.end(self._decade)
        last = self._last
        bounds = "" if last is None else f" {_interval(last)}, gap {last.gap:.1g}"
        self._tree.end(self._begin_context(self.context, f"{status}{bounds}", None))

    def _begin_context(self, parent: Any, name: str, subtasks: int | None) -> Any:
        """Begin a context that has the last report as its attribute `report`."""
        context = parent.subcontext(task_name=name, max_subtasks=subtasks)
        context.report = self._last
        return self._tree.begin(context)

    def _decades_below(self, gap: float) -> int:
        """Return the number of decades that a gap has passed."""
        if not 0.0 < gap < 1.0:
            return self._decades if gap <= 0.0 else 0
        return (
            min(int(self._decades * log10(gap) / log10(self._tol)), self._decades) if self._tol < 1.0 else 0
        )

    def _progress(self, report: Report, left: float) -> str:
        """Return bounds, gap and time in one short line: progress bars cut long names."""
        line = f"{_interval(report)}, gap {report.gap:.1g}"
        line = f"margin {line}" if self._hard else f"{line}, margin {report.margin:.2g}"
        return f"{line}, {left:.0f} s left" if isfinite(left) else line


def _interval(report: Report) -> str:
    return f"{report.lower:.4g}..{report.upper:.4g}"


def _without_markup(name: str) -> str:
    """Replace square brackets, which progress bars read as markup."""
    return name.replace("[", "(").replace("]", ")")
