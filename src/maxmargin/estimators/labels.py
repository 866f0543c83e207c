"""Labels of all kinds: the classes that they name, and what each row and each class weighs."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import _check_sample_weight

from ..problem.problem import Problem

_NORMAL = float(np.finfo(float).smallest_normal)
SOME, FEW = 1000, 32  # rows that tell all classes nearly always, and classes that are few
MANY = 0.25  # share of the rows that may be classes, and nobody asks whether they are


def class_names(y: np.ndarray) -> np.ndarray:
    """The distinct labels, two at least."""
    if y.dtype.kind == "S":
        raise ValueError("The labels are bytes: decode them, y.astype(str) for instance.")
    kinds = sorted({type(label).__name__ for label in y}) if y.dtype == object else []
    if len(kinds) == 1 and kinds[0] in ("int", "bool"):
        raise ValueError(
            f"Unknown label type: y is an array of objects that are all {kinds[0]}; give it their type, "
            f"y.astype({kinds[0]})."
        )
    try:
        classes = _distinct(y)
        # two labels tell as much of their kind as all rows do, and nothing speaks against few whole numbers or names
        whole = classes.dtype.kind in "biuU" or (classes.dtype.kind == "f" and not (classes % 1.0).any())
        if not whole or classes.size > max(2, MANY * y.size):  # of which scikit-learn warns
            check_classification_targets(classes if classes.size <= 2 else y)
    except TypeError:
        missing = sum(label is None for label in y)
        if missing:
            raise ValueError(missing_labels(missing, y.size)) from None
        raise ValueError(
            f"The labels cannot be compared with one another: y holds {' and '.join(kinds)}. Give all classes "
            "names of one type."
        ) from None
    if classes.size < 2:
        what = "all rows are" if classes.size else "there is no row"
        name = f" of class {classes.tolist()[0]!r}" if classes.size else ""
        raise ValueError(
            f"A classifier needs rows of at least 2 classes with positive weight, but {what}{name} (one class)."
        )
    return classes


def _distinct(y: np.ndarray) -> np.ndarray:
    """The distinct entries of y in order; where they are few, all are sorted out by those of some rows."""
    if y.size <= SOME:
        return np.unique(y)
    found = np.unique(y[:: 1 + y.size // SOME])
    if found.size <= FEW and y.dtype.kind in "biuf":
        known = y == found[0]
        for name in found[1:]:
            known |= y == name
        if known.all():
            return found
    return np.unique(y)


def missing_labels(missing: int, rows: int) -> str:
    """What is said of rows without a label."""
    return f"Input y contains NaN: {missing} of {rows} rows have no label; leave these rows out."


def row_weights(X: Any, sample_weight: Any) -> np.ndarray:
    """The sample weights of a fit, float64, checked; it may be the caller's array."""
    if sample_weight is None:
        return np.ones(X.shape[0])
    weights = _check_sample_weight(sample_weight, X, dtype=np.float64, ensure_non_negative=True)
    with np.errstate(over="ignore"):
        if not np.isfinite(weights.sum()):
            raise ValueError(
                "The sum of sample_weight is beyond float64 numbers: divide all of them by a constant, and "
                "multiply C by it."
            )
    return weights


def times_classes(weights: np.ndarray, y: np.ndarray, classes: np.ndarray, factors: np.ndarray) -> np.ndarray:
    """Every row's weight times the factor of its class; a new array."""
    weights = weights.copy()
    for name, factor in zip(classes, factors, strict=True):
        weights[y == name] *= factor
    return weights


def check_costs(problem: Problem, weights: np.ndarray) -> None:
    """Is every C s_i a normal number, and can the losses of w = 0, up to four times these, be added up?"""
    if problem.hard:
        return
    C = float(problem.C)
    with np.errstate(over="ignore"):
        total = C * float(weights.sum())
    least = C * float(weights.min(initial=np.inf))
    if not least > 0.0:
        least = C * float(weights.min(where=weights > 0.0, initial=np.inf))
    if not math.isfinite(16.0 * total):
        raise ValueError(
            f"C times the sum of all weights is {total:.3g}, and losses of that size are beyond float64 numbers: "
            "lower C, or the sample weights; C=inf is the hard margin."
        )
    if least < _NORMAL:
        raise ValueError(
            f"C times the least weight of a row is {least:.3g}, which has lost its digits: raise C, or the sample "
            "weights; rows that are not to count have weight 0."
        )


def class_factors(class_weight: Any, classes: np.ndarray, y: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """The factor on the weight of every row of a class.

    Parameters
    ----------
    class_weight : dict, "balanced" or None
    classes : ndarray of shape (n_classes,)
    y : ndarray of shape (n,)
    weights : ndarray of shape (n,)
        Sample weights, which "balanced" counts.
    """
    if class_weight is None:
        return np.ones(classes.size)
    if isinstance(class_weight, str):
        if class_weight != "balanced":
            raise ValueError(f'class_weight must be a dict, "balanced" or None; got {class_weight!r}.')
        totals = np.array([weights[y == name].sum() for name in classes])
        return totals.sum() / (classes.size * totals)
    if not isinstance(class_weight, dict):
        raise ValueError(f'class_weight must be a dict, "balanced" or None; got {class_weight!r}.')
    unknown = [name for name in class_weight if name not in set(y.tolist())]  # of weight 0, too
    if unknown:
        raise ValueError(f"class_weight names classes that y does not hold: {unknown}.")
    factors = np.array([class_weight.get(name, 1.0) for name in classes.tolist()])
    if factors.dtype.kind not in "biuf":
        raise ValueError(f"class_weight must hold numbers; got {class_weight!r}.")
    factors = factors.astype(float)
    if not (np.isfinite(factors) & (factors >= 0.0)).all():
        raise ValueError(f"class_weight must hold finite numbers of at least 0; got {class_weight!r}.")
    return factors


def check_sides(classes: np.ndarray, y: np.ndarray, weights: np.ndarray, hard: bool) -> None:
    """Are there rows of positive weight of two classes at least; of all of them, where the margin is hard?"""
    left = np.unique(y[weights > 0.0])
    if left.size < 2:
        raise ValueError(
            "class_weight leaves rows of only one class with a positive weight: raise the zero weights."
        )
    if hard and left.size < classes.size:
        missing = [name for name in classes.tolist() if name not in set(left.tolist())]
        raise ValueError(
            f"class_weight leaves no row of class {missing[0]!r} with a positive weight, and a hard margin (C=inf) has "
            "two sides: raise the zero weight, or leave the class out of the data."
        )
