"""Callbacks of scikit-learn that record the tasks of a fit."""

from __future__ import annotations


class Recorder:
    """A callback that records the tasks of a fit, and ends it where `stop` returns true."""

    def __init__(self, stop=lambda context: False) -> None:
        self.stop = stop
        self.setups, self.teardowns, self.begun, self.ended = [], [], [], []
        self.models = {}  # model and metadata at the end of each task

    def setup(self, estimator, context):
        self.setups.append(estimator)

    def teardown(self, estimator, context):
        self.teardowns.append(estimator)

    def on_fit_task_begin(self, estimator, context):
        self.begun.append(context)

    def on_fit_task_end(self, estimator, context, *, X=None, y=None, metadata=None, fitted_estimator=None):
        self.ended.append(context)
        self.models[context] = fitted_estimator, metadata
        return self.stop(context)

    @property
    def rounds(self):
        return [context for context in self.ended if context.task_name == "round"]

    def below_root(self):
        """Return the subtasks of the fit; all tasks have ended, and the callback was torn down once."""
        assert len(self.setups) == 1
        assert self.setups == self.teardowns
        assert set(self.begun) == set(self.ended)
        return [context for context in self.ended if context.parent is self.begun[0]]


class PropagatedRecorder(Recorder):
    max_propagation_depth = None  # it is called for nested fits as well
