"""Labels, classes and weights of the rows of a fit."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from ..problem.problem import Problem
from .validation import (
    check_costs,
    check_weighted_classes,
    distinct_classes,
    validate_class_weight,
    validate_sample_weight,
)


@dataclass(frozen=True, eq=False)
class Targets:
    """Labels and weights of n rows.

    Attributes
    ----------
    y : ndarray of shape (n,)
        Labels.
    sample_weights : ndarray of shape (n,)
    weights : ndarray of shape (n,)
        Sample weights times class weights.
    selected : ndarray of int, default=None
        Rows of positive weight; None for all.
    classes : ndarray of shape (n_classes,)
        Of rows with a positive sample weight.
    class_weights : ndarray of shape (n_classes,)
    """

    y: np.ndarray
    sample_weights: np.ndarray
    weights: np.ndarray
    selected: np.ndarray | None
    classes: np.ndarray
    class_weights: np.ndarray

    @property
    def kept(self) -> Any:
        """An index of the rows of positive weight."""
        return slice(None) if self.selected is None else self.selected

    @cached_property
    def codes(self) -> np.ndarray:
        """The number of the class of every row; -1 where all rows of its label have weight 0."""
        return np.where(np.isin(self.y, self.classes), np.searchsorted(self.classes, self.y), -1)


def encode_targets(problem: Problem, class_weight: Any, X: Any, y: np.ndarray, sample_weight: Any) -> Targets:
    """Validate labels and weights, and multiply the weights by those of the classes.

    Parameters
    ----------
    problem : Problem
    class_weight : dict, "balanced" or None
    X : ndarray or CSR matrix of shape (n, d)
    y : ndarray of shape (n,)
    sample_weight : array-like of shape (n,) or None

    Raises
    ------
    ValueError
        If there are fewer than two classes with rows of positive weight, or weights cannot be used.
    """
    weights = sample_weights = validate_sample_weight(X, sample_weight)
    all_positive = sample_weight is None or bool((weights > 0.0).all())
    classes = distinct_classes(y if all_positive else y[weights > 0.0])
    class_weights = validate_class_weight(class_weight, classes, y, weights)
    if class_weight is not None:
        weights = weights.copy()
        for name, factor in zip(classes, class_weights, strict=True):
            weights[y == name] *= factor
        all_positive = bool((weights > 0.0).all())
    check_costs(problem, weights)
    selected = None
    if not all_positive:
        selected = np.flatnonzero(weights > 0.0)
        check_weighted_classes(classes, y, weights, problem.hard)
    return Targets(y, sample_weights, weights, selected, classes, class_weights)
