"""What scikit-learn's callbacks hear of a fit. They are new in scikit-learn 1.9: with an older one nothing is said."""

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
        """The method itself."""
        return method


__all__ = ["CallbackSupportMixin", "RoundTasks", "Tasks", "round_tasks", "tasks", "with_callbacks"]

Model = Callable[[list[Any]], dict[str, Any]]


class Tasks:
    """The tasks of a fit: none, where no callback was set."""

    @contextmanager
    def part(self, name: Callable[[], str], estimator: Any = None) -> Iterator[None]:
        """One part of the work, with a line of its own in a progress bar.

        Parameters
        ----------
        name : callable
            Makes its name, which tells what is known before.
        estimator : estimator, default=None
            Who does this part, and tells of it where it can; None for the estimator of the fit.
        """
        yield

    def done(self) -> None:
        """The fit is at its end, and the estimator has all of its attributes."""

    @property
    def stopped(self) -> bool:
        """Has a callback asked for the end?"""
        return False


class RoundTasks:
    """The rounds of a fit: nobody hears of them, where no callback was set."""

    def heard(self, report: Report, left: float, point: Callable[[], Any]) -> bool:
        """Tell of a round.

        Parameters
        ----------
        report : Report
        left : float
            Seconds that are left of `max_time`.
        point : callable
            What the model of this round is made of.

        Returns
        -------
        stop : bool
            Is the fit to end here?
        """
        return False

    def ended(self, label: Any, status: Status) -> None:
        """This problem has come to an end."""

    def done(self) -> None:
        """The fit is at its end, and the estimator has all of its attributes."""


def tasks(
    estimator: Any,
    X: Any,
    y: Any,
    sample_weight: Any,
    count: int,
    state: Callable[[], dict[str, Any]] | None = None,
) -> Tasks:
    """The tasks of a fit of so many parts.

    Parameters
    ----------
    estimator : estimator
    X, y, sample_weight
        What is fitted.
    count : int
        The most parts.
    state : callable, default=None
        Makes the attributes with which a copy of the estimator predicts as if the fit had ended with the last part.
    """
    if not hasattr(estimator, "_skl_callbacks"):
        return Tasks()
    return _ToldTasks(estimator, _data(X, y, sample_weight), count, state)


def round_tasks(
    estimator: Any, X: Any, y: Any, sample_weight: Any, labels: Sequence[Any], in_order: bool, model: Model
) -> RoundTasks:
    """The tasks of a fit that makes reports.

    Parameters
    ----------
    estimator : estimator
    X, y, sample_weight
        What is fitted.
    labels : sequence
        What the reports call the problems; None is the only one.
    in_order : bool
        Does one problem end before the next begins?
    model : callable
        Attributes with which a copy of the estimator predicts, from the last point of each problem.
    """
    if not hasattr(estimator, "_skl_callbacks"):
        return RoundTasks()
    return _ToldRounds(estimator, _data(X, y, sample_weight), labels, in_order, model)


class _ToldTasks(Tasks):
    """fit -> part."""

    def __init__(
        self, estimator: Any, data: dict[str, Any], count: int, state: Callable[[], dict[str, Any]] | None
    ) -> None:
        self._estimator, self._data = estimator, data
        self._ends = {} if state is None else {"reconstruction_attributes": state}
        self._root = estimator._init_callback_context(max_subtasks=count)
        self._root.call_on_fit_task_begin(estimator=estimator, **data)
        self._stopped = False

    @contextmanager
    def part(self, name: Callable[[], str], estimator: Any = None) -> Iterator[None]:
        # a task with nothing below it is what another estimator's tasks are put in the place of
        context = self._root.subcontext(
            task_name=_plain(name()), max_subtasks=None if estimator is None else 0
        )
        hears = hasattr(estimator, "set_callbacks")
        with context.propagate_callback_context(estimator) if hears else nullcontext():
            context.call_on_fit_task_begin(estimator=self._estimator, **self._data)
            yield
        if context.call_on_fit_task_end(estimator=self._estimator, **self._data, **self._ends):
            self._stopped = True

    def done(self) -> None:
        self._root.call_on_fit_task_end(estimator=self._estimator, **self._data, reconstruction_attributes={})

    @property
    def stopped(self) -> bool:
        return self._stopped


class _ToldRounds(RoundTasks):
    """fit -> problem, where there are several -> tenfold nearer -> round.

    A problem has a subtask for each power of ten that is between a gap of 1 and `tol`, so that the bar of the problem
    shows how much of the way is gone, and how long the rest takes. Its name has the bounds with which it began. One
    more tells how it ended. A round's task has its `Report` as the attribute `report` of the context.
    """

    def __init__(
        self, estimator: Any, data: dict[str, Any], labels: Sequence[Any], in_order: bool, model: Model
    ) -> None:
        self._estimator, self._data, self._model = estimator, data, model
        self._labels = list(labels)
        decades = max(1, ceil(-log10(estimator.tol) - 1e-9))
        alone = len(self._labels) == 1
        size = decades + 1 if alone else len(self._labels)
        self._root = estimator._init_callback_context(
            max_subtasks=size, sequential_subtasks=alone or in_order
        )
        self._root.call_on_fit_task_begin(estimator=estimator, **data)
        self._in_order = in_order
        self._problems = {label: _Problem(estimator, data, estimator.tol, decades) for label in self._labels}
        if alone:
            self._problems[self._labels[0]].context = self._root

    def heard(self, report: Report, left: float, point: Callable[[], Any]) -> bool:
        problem = self._problems[report.label]
        if problem.context is None:
            self._begin(report.label)
        problem.point = point
        return problem.heard(report, left, self._state(report.round))

    def ended(self, label: Any, status: Status) -> None:
        problem = self._problems[label]
        if problem.context is None:
            self._begin(label)
        problem.done(status)
        if problem.context is not self._root:
            problem.end(problem.context)

    def done(self) -> None:
        self._root.call_on_fit_task_end(estimator=self._estimator, **self._data, reconstruction_attributes={})

    def _state(self, rounds: int) -> Callable[[], dict[str, Any]] | None:
        """What makes the model of this round; None until every problem has a point."""
        points = [problem.point for problem in self._problems.values() if problem.point is not None]
        if len(points) < len(self._problems):
            return None
        return lambda: {**self._model([made() for made in points]), "n_iter_": rounds}

    def _begin(self, label: Any) -> None:
        """The task of a problem."""
        problem = self._problems[label]
        problem.context = self._root.subcontext(
            task_name=_plain(f"class {label}"),
            task_id=None if self._in_order else self._labels.index(label),
            max_subtasks=problem.decades + 1,
        )
        problem.context.call_on_fit_task_begin(estimator=self._estimator, **self._data)


class _Problem:
    """One binary problem on its way from a gap of 1 to `tol`."""

    def __init__(self, estimator: Any, data: dict[str, Any], tol: float, decades: int) -> None:
        self.context: Any = None
        self.decades = decades
        self.point: Callable[[], Any] | None = None
        self._estimator, self._data, self._tol = estimator, data, tol
        self._hard = not isfinite(estimator.C)
        self._gone = 0
        self._decade: Any = None
        self._last: Report | None = None

    def heard(self, report: Report, left: float, state: Callable[[], dict[str, Any]] | None) -> bool:
        if self._decade is None:
            self._decade = self._begun(self.context, self._line(self._last or report, left), None)
        self._last = report
        stop = self.end(self._begun(self._decade, "round", 0), state)
        # the last decade ends with the fit: whether `tol` is proved is only known there
        reached = min(self._reached(report.gap), self.decades - 1)
        if reached > self._gone:
            stop |= self.end(self._decade)
            for _ in range(self._gone + 1, reached):
                self.end(self._begun(self.context, "passed at once", 0))
            self._gone, self._decade = reached, None
        return stop

    def done(self, status: Status) -> None:
        if self._decade is not None:
            self.end(self._decade)
        last = self._last
        known = "" if last is None else f" {self._between(last)}, gap {last.gap:.1g}"
        self.end(self._begun(self.context, f"{status}{known}", None))

    def _begun(self, parent: Any, name: str, size: int | None) -> Any:
        """A task that has begun; what is known then is its `report`."""
        context = parent.subcontext(task_name=name, max_subtasks=size)
        context.report = self._last
        return context.call_on_fit_task_begin(estimator=self._estimator, **self._data)

    def end(self, context: Any, state: Callable[[], dict[str, Any]] | None = None) -> bool:
        """End a task. Does a callback ask for the end of the fit?"""
        ends = {} if state is None else {"reconstruction_attributes": state}
        return bool(context.call_on_fit_task_end(estimator=self._estimator, **self._data, **ends))

    def _reached(self, gap: float) -> int:
        """How many of the decades are gone."""
        if not 0.0 < gap < 1.0:
            return self.decades if gap <= 0.0 else 0
        return min(int(self.decades * log10(gap) / log10(self._tol)), self.decades) if self._tol < 1.0 else 0

    def _line(self, report: Report, left: float) -> str:
        """What is known, in few words: lines of a progress bar are cut where they are long."""
        line = f"{self._between(report)}, gap {report.gap:.1g}"
        line = f"margin {line}" if self._hard else f"{line}, margin {report.margin:.2g}"
        return f"{line}, {left:.0f} s left" if isfinite(left) else line

    @staticmethod
    def _between(report: Report) -> str:
        """The bounds."""
        return f"{report.lower:.4g}..{report.upper:.4g}"


def _data(X: Any, y: Any, sample_weight: Any) -> dict[str, Any]:
    """What a callback gets to see of the data."""
    return {"X": X, "y": y, "metadata": None if sample_weight is None else {"sample_weight": sample_weight}}


def _plain(name: str) -> str:
    """A name that a progress bar does not read as markup."""
    return name.replace("[", "(").replace("]", ")")
