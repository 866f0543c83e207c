"""Callbacks of scikit-learn: its tree of tasks for a fit. They are new in 1.9; with an older version nothing is called.

Each estimator calls `step_callbacks` or `round_callbacks`, which return an object whose methods do nothing where no
callback was set.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from math import ceil, isfinite, log10
from typing import Any

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


__all__ = [
    "CallbackSupportMixin", "RoundCallbacks", "StepCallbacks", "round_callbacks", "step_callbacks", "with_callbacks",
]  # fmt: skip

Attributes = Callable[[], dict[str, Any]]  # makes the fitted attributes of a copy of the estimator


class StepCallbacks:
    """A fit of several steps, such as passes over the data. These methods do nothing."""

    @contextmanager
    def step(self, name: Callable[[], str], estimator: Any = None) -> Iterator[None]:
        """One step, with its own line in a progress bar.

        Parameters
        ----------
        name : callable
            Returns the name of the step.
        estimator : estimator, default=None
            Does this step, and calls the callbacks itself where it can; None for the estimator of the fit.
        """
        yield

    def end(self) -> None:
        """End the fit: the estimator has all of its attributes."""

    @property
    def stopped(self) -> bool:
        """Whether a callback asked for the end."""
        return False


class RoundCallbacks:
    """A fit whose binary tasks report every round. These methods do nothing."""

    def report(self, report: Report, left: float, best: Callable[[], Any]) -> bool:
        """Pass on the report of a round.

        Parameters
        ----------
        report : Report
        left : float
            Seconds left of `max_time`.
        best : callable
            Returns the best point so far.

        Returns
        -------
        stop : bool
            Whether a callback asks for the end.
        """
        return False

    def end_task(self, label: Any, status: Status) -> None:
        """End one binary task."""

    def end(self) -> None:
        """End the fit: the estimator has all of its attributes."""


def step_callbacks(
    estimator: Any, X: Any, y: Any, sample_weight: Any, steps: int, attributes: Attributes | None = None
) -> StepCallbacks:
    """Begin a fit of at most `steps` steps.

    Parameters
    ----------
    estimator : estimator
    X, y, sample_weight
        Data of the fit.
    steps : int
    attributes : callable, default=None
        Makes the attributes with which a copy of the estimator predicts as if the fit had ended with this step.
    """
    if not hasattr(estimator, "_skl_callbacks"):
        return StepCallbacks()
    return _StepCallbacks(estimator, _data(X, y, sample_weight), steps, attributes)


def round_callbacks(
    estimator: Any,
    X: Any,
    y: Any,
    sample_weight: Any,
    labels: Sequence[Any],
    sequential: bool,
    model: Callable[[list[Any]], dict[str, Any]],
) -> RoundCallbacks:
    """Begin a fit of one or more binary tasks.

    Parameters
    ----------
    estimator : estimator
    X, y, sample_weight
        Data of the fit.
    labels : sequence
        Labels of the tasks in their reports; None is the only one.
    sequential : bool
        Whether one task ends before the next begins.
    model : callable
        Makes the attributes with which a copy of the estimator predicts, from the best point of each task.
    """
    if not hasattr(estimator, "_skl_callbacks"):
        return RoundCallbacks()
    return _RoundCallbacks(estimator, _data(X, y, sample_weight), labels, sequential, model)


class _StepCallbacks(StepCallbacks):
    """Tree of tasks: fit -> step."""

    def __init__(
        self, estimator: Any, data: dict[str, Any], steps: int, attributes: Attributes | None
    ) -> None:
        self._estimator, self._data = estimator, data
        self._reconstruction = {} if attributes is None else {"reconstruction_attributes": attributes}
        self._root = estimator._init_callback_context(max_subtasks=steps)
        self._root.call_on_fit_task_begin(estimator=estimator, **data)
        self._stopped = False

    @contextmanager
    def step(self, name: Callable[[], str], estimator: Any = None) -> Iterator[None]:
        # scikit-learn puts another estimator's tree in the place of a task that has no subtasks
        context = self._root.subcontext(
            task_name=_without_markup(name()), max_subtasks=None if estimator is None else 0
        )
        nested = hasattr(estimator, "set_callbacks")
        with context.propagate_callback_context(estimator) if nested else nullcontext():
            context.call_on_fit_task_begin(estimator=self._estimator, **self._data)
            yield
        if context.call_on_fit_task_end(estimator=self._estimator, **self._data, **self._reconstruction):
            self._stopped = True

    def end(self) -> None:
        self._root.call_on_fit_task_end(estimator=self._estimator, **self._data, reconstruction_attributes={})

    @property
    def stopped(self) -> bool:
        return self._stopped


class _RoundCallbacks(RoundCallbacks):
    """Tree of tasks: fit -> binary task, where there are several -> decade of the gap -> round.

    A binary task has a subtask for each power of ten between a gap of 1 and `tol`, so that its progress bar shows how
    far it has come, and how long the rest takes. The name of a decade holds the bounds with which it began. One more
    subtask shows the status at the end. The context of a round has its `Report` as the attribute `report`.
    """

    def __init__(
        self,
        estimator: Any,
        data: dict[str, Any],
        labels: Sequence[Any],
        sequential: bool,
        model: Callable[[list[Any]], dict[str, Any]],
    ) -> None:
        self._estimator, self._data, self._model = estimator, data, model
        self._labels, self._sequential = list(labels), sequential
        decades = max(
            1, ceil(-log10(estimator.tol) - 1e-9)
        )  # 1e-9: rounding of the logarithm of a power of ten
        alone = len(self._labels) == 1
        self._root = estimator._init_callback_context(
            max_subtasks=decades + 1 if alone else len(self._labels), sequential_subtasks=alone or sequential
        )
        self._root.call_on_fit_task_begin(estimator=estimator, **data)
        self._tasks = {label: _BinaryTask(estimator, data, decades) for label in self._labels}
        if alone:
            self._tasks[self._labels[0]].context = self._root

    def report(self, report: Report, left: float, best: Callable[[], Any]) -> bool:
        task = self._begun(report.label)
        task.best = best
        return task.report(report, left, self._attributes(report.round))

    def end_task(self, label: Any, status: Status) -> None:
        task = self._begun(label)
        task.end(status)
        if task.context is not self._root:
            task.end_context(task.context)

    def end(self) -> None:
        self._root.call_on_fit_task_end(estimator=self._estimator, **self._data, reconstruction_attributes={})

    def _attributes(self, rounds: int) -> Attributes | None:
        """Return a function that makes the model of this round; None until every task has a point."""
        points = [task.best for task in self._tasks.values() if task.best is not None]
        if len(points) < len(self._tasks):
            return None
        return lambda: {**self._model([point() for point in points]), "n_iter_": rounds}

    def _begun(self, label: Any) -> _BinaryTask:
        """Return a binary task, whose context begins with the first call."""
        task = self._tasks[label]
        if task.context is None:
            task.context = self._root.subcontext(
                task_name=_without_markup(f"class {label}"),
                task_id=None if self._sequential else self._labels.index(label),
                max_subtasks=task.decades + 1,
            )
            task.context.call_on_fit_task_begin(estimator=self._estimator, **self._data)
        return task


class _BinaryTask:
    """The contexts of one binary task, from a gap of 1 to `tol`."""

    def __init__(self, estimator: Any, data: dict[str, Any], decades: int) -> None:
        self.context: Any = None
        self.decades = decades
        self.best: Callable[[], Any] | None = None
        self._estimator, self._data, self._tol = estimator, data, estimator.tol
        self._hard = not isfinite(estimator.C)
        self._passed = 0  # decades
        self._decade: Any = None  # context of the present one
        self._last: Report | None = None

    def report(self, report: Report, left: float, attributes: Attributes | None) -> bool:
        """Begin and end the context of a round, and those of the decades that it passes."""
        if self._decade is None:
            self._decade = self._begin_context(self.context, self._progress(self._last or report, left), None)
        self._last = report
        stop = self.end_context(self._begin_context(self._decade, "round", 0), attributes)
        # the last decade ends with the task: only then is it known whether `tol` is reached
        reached = min(self._decades_below(report.gap), self.decades - 1)
        if reached > self._passed:
            stop |= self.end_context(self._decade)
            for _ in range(self._passed + 1, reached):
                self.end_context(self._begin_context(self.context, "passed at once", 0))
            self._passed, self._decade = reached, None
        return stop

    def end(self, status: Status) -> None:
        """End the decade at hand, and show the status."""
        if self._decade is not None:
            self.end_context(self._decade)
        last = self._last
        bounds = "" if last is None else f" {_interval(last)}, gap {last.gap:.1g}"
        self.end_context(self._begin_context(self.context, f"{status}{bounds}", None))

    def end_context(self, context: Any, attributes: Attributes | None = None) -> bool:
        """End a context; return whether a callback asks for the end of the fit."""
        reconstruction = {} if attributes is None else {"reconstruction_attributes": attributes}
        return bool(context.call_on_fit_task_end(estimator=self._estimator, **self._data, **reconstruction))

    def _begin_context(self, parent: Any, name: str, subtasks: int | None) -> Any:
        """Begin a context that has the last report as its attribute `report`."""
        context = parent.subcontext(task_name=name, max_subtasks=subtasks)
        context.report = self._last
        return context.call_on_fit_task_begin(estimator=self._estimator, **self._data)

    def _decades_below(self, gap: float) -> int:
        """Return the number of decades that a gap has passed."""
        if not 0.0 < gap < 1.0:
            return self.decades if gap <= 0.0 else 0
        return min(int(self.decades * log10(gap) / log10(self._tol)), self.decades) if self._tol < 1.0 else 0

    def _progress(self, report: Report, left: float) -> str:
        """Return bounds, gap and time in one short line: progress bars cut long names."""
        line = f"{_interval(report)}, gap {report.gap:.1g}"
        line = f"margin {line}" if self._hard else f"{line}, margin {report.margin:.2g}"
        return f"{line}, {left:.0f} s left" if isfinite(left) else line


def _interval(report: Report) -> str:
    return f"{report.lower:.4g}..{report.upper:.4g}"


def _data(X: Any, y: Any, sample_weight: Any) -> dict[str, Any]:
    """Return the data in the form in which callbacks receive them."""
    return {"X": X, "y": y, "metadata": None if sample_weight is None else {"sample_weight": sample_weight}}


def _without_markup(name: str) -> str:
    """Replace square brackets, which progress bars read as markup."""
    return name.replace("[", "(").replace("]", ")")
