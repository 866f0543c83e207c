"""Validation of parameters, rows, labels and weights. Every error message says what to do."""

from __future__ import annotations

import math
from collections.abc import Iterator
from numbers import Integral, Real
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.utils import check_random_state
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import _check_sample_weight, validate_data

from ..numerics.representable import COMPLEX
from ..problem.problem import Problem

SMALLEST_NORMAL = float(np.finfo(float).smallest_normal)
FLOATS = (np.dtype(np.float64), np.dtype(np.float32))

# Distinct labels: sorting all of them takes longer than comparing all with each class. Every `n / SAMPLED_LABELS`-th
# row names the candidates; more classes than FEW_CLASSES would take as many passes, and all labels are sorted instead.
SAMPLED_LABELS, FEW_CLASSES = 1000, 32
# scikit-learn warns of more classes than half of the rows; below this share of them its check cannot say anything new.
CLASSES_PER_ROW = 0.25

ENCODE = (
    "turn text and dates into numbers, with OneHotEncoder or OrdinalEncoder in a pipeline for instance, or leave the "
    "column out"
)
IMPUTE = "fill such entries in, with SimpleImputer in a pipeline for instance, or leave the rows out"


# parameters


def is_number(value: Any) -> bool:
    """Return whether a value is a real number; booleans are not."""
    return isinstance(value, Real) and not isinstance(value, bool)


def is_whole(value: Any) -> bool:
    """Return whether a value is an integer; booleans are not."""
    return isinstance(value, Integral) and not isinstance(value, bool)


def require_number(name: str, value: Any) -> None:
    """Refuse everything but real numbers."""
    if not is_number(value):
        raise ValueError(f"{name} must be a number; got {name}={value!r}.")


def require_boolean(name: str, value: Any) -> None:
    """Refuse everything but True and False."""
    if not isinstance(value, bool | np.bool_):
        raise ValueError(f"{name} must be True or False; got {value!r}.")


def check_C(C: Any) -> None:
    """Refuse a C that is no positive number."""
    if not is_number(C) or not float(C) > 0.0:
        raise ValueError(f"C must be a positive number, or inf for the hard margin; got C={C!r}.")


def check_p(p: Any) -> None:
    """Refuse a norm that is neither a number nor "log"; `Problem` checks its range."""
    if not (is_number(p) or (isinstance(p, str) and p == "log")):
        raise ValueError(f'p must be a number from 1 to inf, or "log"; got p={p!r}.')


def check_parameters(model: Any) -> None:
    """Check C, tol, max_time, n_jobs, callback and the three parameters of the intercept."""
    require_number("intercept_scaling", model.intercept_scaling)
    check_C(model.C)
    if not is_number(model.tol) or not 0.0 < float(model.tol) < np.inf:
        raise ValueError(
            "tol must be positive: it is the certified gap, and a gap of 0 cannot be proved; "
            f"got tol={model.tol!r}."
        )
    require_boolean("fit_intercept", model.fit_intercept)
    max_time = model.max_time
    if max_time is not None and not (is_number(max_time) and float(max_time) > 0.0):
        raise ValueError(f"max_time must be a positive number of seconds, or None; got {max_time!r}.")
    if model.n_jobs is not None and not (is_whole(model.n_jobs) and model.n_jobs != 0):
        raise ValueError(
            "n_jobs must be a whole number of threads, -1 for as many as there are processors, or None; "
            f"got {model.n_jobs!r}."
        )
    if model.callback is not None and not callable(model.callback):
        raise ValueError(f"callback must be a function of a report, or None; got {model.callback!r}.")
    if model.intercept not in ("free", "augmented"):
        raise ValueError(f'intercept must be "free" or "augmented"; got {model.intercept!r}.')


def check_seed(random_state: Any) -> None:
    """Refuse a random_state that is neither a seed nor a generator."""
    if random_state is None:
        return
    if not isinstance(random_state, Integral):
        check_random_state(random_state)
    elif random_state < 0:
        raise ValueError(f"random_state must be a whole number of at least 0; got {random_state!r}.")


def draw_seeds(random_state: Any, size: int) -> np.ndarray:
    """Draw `size` seeds."""
    check_seed(random_state)
    if isinstance(
        random_state, Integral
    ):  # faster than RandomState, whose set-up takes longer than a small fit
        return np.random.SeedSequence(int(random_state)).generate_state(size)
    return check_random_state(random_state).randint(np.iinfo(np.int32).max, size=size)


# rows


def validate_rows(estimator: Any, X: Any, *y: Any, **options: Any) -> Any:
    """Validate rows (and labels) with scikit-learn's `validate_data`; name the column and the remedy in its errors.

    Parameters
    ----------
    estimator : estimator
        Its `n_features_in_` and `feature_names_in_` are set, or compared where ``reset=False``.
    X : array-like, data frame or sparse matrix of shape (n_samples, n_features)
    *y : array-like of shape (n_samples,)
        Labels, at most one set of them.
    **options
        Further options of `validate_data`.

    Returns
    -------
    X, or X and y
        float32 or float64.

    Raises
    ------
    ValueError
        If X or y cannot be used; of text and missing entries, the message names the column.
    """
    _refuse_lazy_and_temporal(X)
    try:
        return validate_data(estimator, X, *map(plain_labels, y), dtype=list(FLOATS), **options)
    except (ValueError, TypeError) as error:
        message = _explain(str(error), X, y)
        if message is None:
            raise
        raise ValueError(message) from None


def needs_no_conversion(X: Any, y: Any) -> bool:
    """Return whether only the entries of X remain to be checked: `validate_rows` takes as long as a small fit."""
    if type(X) is not np.ndarray or type(y) is not np.ndarray or X.ndim != 2 or y.shape != X.shape[:1]:
        return False
    if not (X.dtype in FLOATS and X.size and X.flags.c_contiguous and y.dtype.kind in "biufU"):
        return False
    return y.dtype.kind != "f" or bool(np.isfinite(y).all())


def set_feature_count(estimator: Any, X: np.ndarray) -> None:
    """Set `n_features_in_` for columns without names."""
    estimator.n_features_in_ = X.shape[1]
    if hasattr(estimator, "feature_names_in_"):
        del estimator.feature_names_in_


def _refuse_lazy_and_temporal(X: Any) -> None:
    """Refuse polars queries, and dates and times of polars, which would be read as numbers."""
    if hasattr(X, "collect") and hasattr(X, "collect_schema"):
        raise ValueError("X is a query that has not been run, and no table yet: call collect() first.")
    for name, kind in getattr(X, "schema", {}).items() if hasattr(X, "get_columns") else ():
        if kind.is_temporal():
            raise ValueError(_not_numeric(f"column {name!r}", kind))


def _explain(error: str, X: Any, y: tuple[Any, ...]) -> str | None:
    """Return a message that names the column and the remedy; None where scikit-learn's own says enough."""
    if error.startswith("The feature names should match"):
        return f"{error}Columns in the order of the fit: X[list(model.feature_names_in_)]."
    if "not 'complex'" in error:
        return COMPLEX
    for fault in _column_faults(X, error):
        if fault is not None:
            return fault
    if "NaN" in error and y:
        missing = [_is_missing(value) for value in np.asarray(y[0], dtype=object).ravel()]
        if any(missing):
            return missing_labels(sum(missing), len(missing))
    return None


def _column_faults(X: Any, error: str) -> Iterator[str | None]:
    """Yield, column by column, a description of its text or missing entries; None for a sound column."""
    if sp.issparse(X):
        entries = X.tocoo()
        is_float = entries.data.dtype.kind == "f"
        missing = np.isnan(entries.data) if is_float else np.zeros(entries.data.size, bool)
        if missing.any():
            column = entries.coords[1][missing].min()
            count = np.unique(entries.coords[0][missing & (entries.coords[1] == column)]).size
            yield _missing_entries(f"column {column}", count, X.shape[0])
        return
    if hasattr(X, "columns") and hasattr(X, "shape") and len(X.shape) == 2:
        for place, name in enumerate(X.columns):
            column = X.iloc[:, place] if hasattr(X, "iloc") else X[name]
            yield _column_fault(f"column {name!r}", column, str(column.dtype))
        return
    if "convert string" in error or "contains NaN" in error:
        table = np.asarray(X, dtype=object)
        for j in range(table.shape[1] if table.ndim == 2 else 0):
            yield _column_fault(f"column {j}", table[:, j], "text")


def _column_fault(place: str, column: Any, kind: str) -> str | None:
    """Describe the text or the missing entries of one column; None where it has neither."""
    values = np.asarray(column)
    if values.dtype.kind in "iub":
        return None
    if values.dtype.kind not in "fOUST":
        return _not_numeric(place, kind)
    if values.dtype.kind == "f":
        missing = np.isnan(values)
    else:
        missing = np.array([_is_missing(value) for value in values])
        for value in values[~missing]:
            if not _reads_as_number(value):
                return f"{place} of X holds {kind}, {str(value)[:40]!r} for instance, not numbers: {ENCODE}."
    return _missing_entries(place, int(missing.sum()), missing.size) if missing.any() else None


def _not_numeric(place: str, kind: Any) -> str:
    return f"{place} of X holds {kind}, not numbers: {ENCODE}."


def _missing_entries(place: str, count: int, rows: int) -> str:
    return f"Input X contains NaN: {place} is missing in {count} of {rows} rows; {IMPUTE}."


def _is_missing(value: Any) -> bool:
    """Return whether a value is None, NaN, or the missing value of a data frame library."""
    if value is None:
        return True
    try:
        return bool(value != value)
    except (TypeError, ValueError):  # pandas.NA has no truth value
        return type(value).__name__ == "NAType"


def _reads_as_number(value: Any) -> bool:
    try:
        float(value)
    except (TypeError, ValueError):
        return False
    return True


# labels


def python_label(label: Any) -> Any:
    """Return a label as a Python object."""
    return label.item() if isinstance(label, np.generic) else label


def plain_labels(y: Any) -> Any:
    """Convert integers and booleans of pandas' own types to those of NumPy, so that classes keep their type.

    Labels of other types, and with missing entries, are returned as they are.
    """
    kind = getattr(y, "dtype", None)
    if isinstance(kind, np.dtype) or not hasattr(y, "isna") or getattr(kind, "kind", "O") not in "biu":
        return y
    return y if y.isna().any() else np.array(y.tolist())


def missing_labels(missing: int, rows: int) -> str:
    """Return the error message for rows without a label."""
    return f"Input y contains NaN: {missing} of {rows} rows have no label; leave these rows out."


def distinct_labels(y: np.ndarray) -> np.ndarray:
    """Return the distinct labels in order; refuse labels that do not name classes."""
    if y.dtype.kind == "S":
        raise ValueError("The labels are bytes: decode them, y.astype(str) for instance.")
    kinds = sorted({type(label).__name__ for label in y}) if y.dtype == object else []
    if len(kinds) == 1 and kinds[0] in ("int", "bool"):
        raise ValueError(
            f"Unknown label type: y is an array of objects that are all {kinds[0]}; give it their type, "
            f"y.astype({kinds[0]})."
        )
    try:
        classes = unique_labels(y)
        # Two labels show their type as well as all rows do; few integers or names need no check by scikit-learn.
        discrete = classes.dtype.kind in "biuU" or (classes.dtype.kind == "f" and not (classes % 1.0).any())
        if not discrete or classes.size > max(2, CLASSES_PER_ROW * y.size):
            check_classification_targets(classes if classes.size <= 2 else y)
    except TypeError:
        missing = sum(label is None for label in y)
        if missing:
            raise ValueError(missing_labels(missing, y.size)) from None
        raise ValueError(
            f"The labels cannot be compared with one another: y holds {' and '.join(kinds)}. Give all classes "
            "names of one type."
        ) from None
    return classes


def distinct_classes(y: np.ndarray) -> np.ndarray:
    """Return the distinct labels of rows with positive weight; refuse fewer than two."""
    classes = distinct_labels(y)
    if classes.size < 2:
        rows = f"all rows are of class {classes.tolist()[0]!r}" if classes.size else "there is no row"
        raise ValueError(
            f"A classifier needs rows of at least 2 classes with positive weight, but {rows} (one class)."
        )
    return classes


def unique_labels(y: np.ndarray) -> np.ndarray:
    """Return ``np.unique(y)``, in one pass for each class where there are few (see SAMPLED_LABELS)."""
    if y.size <= SAMPLED_LABELS:
        return np.unique(y)
    candidates = np.unique(y[:: 1 + y.size // SAMPLED_LABELS])
    if candidates.size <= FEW_CLASSES and y.dtype.kind in "biuf":
        matched = y == candidates[0]
        for label in candidates[1:]:
            matched |= y == label
        if matched.all():
            return candidates
    return np.unique(y)


# weights


def validate_sample_weight(X: Any, sample_weight: Any) -> np.ndarray:
    """Return the sample weights as float64, which may be the caller's array; ones where there are none."""
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


def validate_class_weight(
    class_weight: Any, classes: np.ndarray, y: np.ndarray, weights: np.ndarray
) -> np.ndarray:
    """Return the factor on the weight of every row of a class.

    Parameters
    ----------
    class_weight : dict, "balanced" or None
    classes : ndarray of shape (n_classes,)
    y : ndarray of shape (n,)
    weights : ndarray of shape (n,)
        Sample weights, which "balanced" counts.

    Returns
    -------
    factors : ndarray of shape (n_classes,)
    """
    if class_weight is None:
        return np.ones(classes.size)
    if isinstance(class_weight, str) and class_weight == "balanced":
        totals = np.array([weights[y == name].sum() for name in classes])
        return totals.sum() / (classes.size * totals)
    if not isinstance(class_weight, dict):
        raise ValueError(f'class_weight must be a dict, "balanced" or None; got {class_weight!r}.')
    unknown = [name for name in class_weight if name not in set(y.tolist())]  # rows of weight 0 count here
    if unknown:
        raise ValueError(f"class_weight names classes that y does not hold: {unknown}.")
    factors = np.array([class_weight.get(name, 1.0) for name in classes.tolist()])
    if factors.dtype.kind not in "biuf":
        raise ValueError(f"class_weight must hold numbers; got {class_weight!r}.")
    factors = factors.astype(float)
    if not (np.isfinite(factors) & (factors >= 0.0)).all():
        raise ValueError(f"class_weight must hold finite numbers of at least 0; got {class_weight!r}.")
    return factors


def check_costs(problem: Problem, weights: np.ndarray) -> None:
    """Refuse costs C s_i that underflow, and such that the losses overflow.

    The losses of w = 0 are at most 4 C s_i in sum; the factor 16 leaves room for bounds of four times that.
    """
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
    if least < SMALLEST_NORMAL:
        raise ValueError(
            f"C times the least weight of a row is {least:.3g}, which has lost its digits: raise C, or the sample "
            "weights; rows that are not to count have weight 0."
        )


def check_weighted_classes(classes: np.ndarray, y: np.ndarray, weights: np.ndarray, hard: bool) -> None:
    """Refuse weights that leave rows of one class only; of hard margins, that leave out a class."""
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
