"""Validation of parameters, rows, labels and weights; every error message names the remedy."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property, partial, wraps
from numbers import Integral
from typing import Any, TypeVar, cast

import numpy as np
from sklearn.utils import check_random_state
from sklearn.utils.class_weight import compute_class_weight
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import validate_data

from ..certificates.certificate import INTERCEPT
from ..fit.deadline import FitInterruptedError
from ..numerics.columns import (
    check_columns,
    column_message,
    label_array,
    plain_labels,
    weight_array,
)
from ..numerics.sizes import is_finite, is_real, is_whole, one_thread, parse_bytes
from ..problem.multiclass import class_numbers
from ..problem.problem import Problem

Method = TypeVar("Method", bound=Callable[..., Any])


def restored_after(failure: type[BaseException]) -> Callable[[Method], Method]:
    """Return a decorator of `fit`: one thread of BLAS, and attributes restored on failure.

    Parameters
    ----------
    failure : type
        If the method raises this, the estimator gets back the attributes it had before: BaseException, or Exception
        where Ctrl-C keeps the state reached so far. After a `FitInterruptedError` whose result is the estimator, and
        after a first Ctrl-C when the method has stored its model, the estimator keeps this model; not after a
        `SecondInterruptError`.
    """

    def decorate(method: Method) -> Method:
        @wraps(method)
        def run(estimator: Any, *args: Any, **kwargs: Any) -> Any:
            before = dict(vars(estimator))
            try:
                with one_thread():
                    return method(estimator, *args, **kwargs)
            except failure as error:
                if isinstance(error, FitInterruptedError) and error.result is estimator:
                    raise
                if type(error) is KeyboardInterrupt and _has_new_model(estimator, before):
                    raise FitInterruptedError(estimator) from None
                vars(estimator).clear()
                vars(estimator).update(before)
                raise

        return cast(Method, run)

    return decorate


def _has_new_model(estimator: Any, before: dict[str, Any]) -> bool:
    """Return whether a fit has stored its model, of which `message_` is the last attribute (`_store`)."""
    found = vars(estimator)
    return "message_" in found and found.get("certificate_") is not before.get("certificate_")


# parameters


def is_size(value: Any) -> bool:
    """Return whether a value is a size of memory, such as 2e9 or "2GB"."""
    try:
        return parse_bytes(value) > 0
    except ValueError:
        return False


def optional(is_valid: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """Return a check that accepts None, and every value that `is_valid` accepts."""
    return lambda value: value is None or is_valid(value)


# For each parameter: the check that its value has to pass, and for the error message what the value must be.
Checks = dict[str, tuple[Callable[[Any], Any], str]]

BOOLEAN = (bool, np.bool_)
is_positive = partial(is_real, above=0.0)
is_positive_finite = partial(is_finite, above=0.0)
TOL = "positive and finite: it is the certified gap, and a gap of 0 cannot be proved; got tol={!r}"
THREADS = "a whole number of threads, -1 for as many as there are processors, or None; got {!r}"
COST: Checks = {"C": (is_positive, "a positive number, or inf for the hard margin; got C={!r}")}
COMMON: Checks = COST | {
    "intercept_scaling": (optional(is_real), "a number, or None; got intercept_scaling={!r}"),
    "tol": (is_positive_finite, TOL),
    "fit_intercept": (lambda fit: isinstance(fit, BOOLEAN), "True or False; got {!r}"),
    "max_time": (optional(is_positive), "a positive number of seconds, or None; got {!r}"),
    "n_jobs": (optional(lambda n_jobs: is_whole(n_jobs) and n_jobs != 0), THREADS),
    "verbose": (
        lambda verbose: isinstance(verbose, BOOLEAN) or is_whole(verbose, 0),
        "0, 1, False or True; got {!r}",
    ),
    "callback": (optional(callable), "a function of a report, or None; got {!r}"),
    "random_state": (  # check_random_state raises for values that are no seeds
        lambda seed: int(seed) >= 0 if isinstance(seed, Integral) else check_random_state(seed),
        "a whole number of at least 0; got {!r}",
    ),
}


def check_parameters(model: Any, checks: Checks) -> None:
    """Refuse the first parameter of an estimator whose value fails its check."""
    for name, (is_valid, what) in checks.items():
        value = getattr(model, name)
        if not is_valid(value):
            raise ValueError(f"{name} must be {what.format(value)}.")


def check_solves(algorithm: Any, problem: Problem, registry: Mapping[str, Any]) -> None:
    """Refuse an algorithm that does not solve the problem; the message names algorithms that do."""
    instead = algorithm.refuses(problem)
    if instead is not None:
        power = "" if problem.power == 2 else ", the norm to the first power"
        described = f"loss={problem.loss!r} with C={problem.C:g}, p={problem.p:g}{power}"
        solvers = [name for name, cls in registry.items() if cls().refuses(problem) is None]
        raise ValueError(
            f"algorithm {algorithm.name!r} does not solve {described} and {INTERCEPT[problem.intercept]}: use "
            f"{instead}, or another algorithm ({', '.join(solvers) or 'none solves it'})."
        )


# rows


def validate_rows(estimator: Any, X: Any, y: Any = "no_validation", **options: Any) -> Any:
    """Validate rows (and labels) with scikit-learn's `validate_data`; name the column and the remedy in its errors.

    Parameters
    ----------
    estimator : estimator
        Its `n_features_in_` and `feature_names_in_` are set, or compared where ``reset=False``.
    X : array-like, data frame or sparse matrix of shape (n_samples, n_features)
    y : array-like of shape (n_samples,), default="no_validation"
        Labels.
    **options
        Further options of `validate_data`; sparse rows become CSR unless these say otherwise.

    Returns
    -------
    X, or X and y
        float32 or float64.

    Raises
    ------
    ValueError
        If X or y cannot be used; of text and missing entries, the message names the column.
    """
    if hasattr(X, "read_all"):
        raise ValueError("X is a stream of record batches: X.read_all() makes a table of it.")
    options = {"accept_sparse": "csr", "dtype": [np.float64, np.float32]} | options
    labels = plain_labels(y)
    check_columns(X)
    try:
        return validate_data(estimator, X, labels, **options)
    except (ValueError, TypeError, OverflowError):
        if message := column_message(X):
            raise ValueError(message) from None
        if not (y is None or isinstance(y, str)):
            label_array(labels)
        raise


# labels and weights


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
        The distinct labels of the rows with a positive sample weight, sorted.
    class_weights : ndarray of shape (n_classes,)
        The factor on the weight of every row of a class.
    """

    y: np.ndarray
    sample_weights: np.ndarray
    weights: np.ndarray
    selected: np.ndarray | None
    classes: np.ndarray
    class_weights: np.ndarray

    @cached_property
    def codes(self) -> np.ndarray:
        """The number of the class of every row; -1 where all rows of its label have weight 0."""
        return class_numbers(self.y, self.classes)


def validated_data(
    model: Any, problem: Problem, X: Any, y: Any, sample_weight: Any, **options: Any
) -> tuple[Any, Targets]:
    """Validate rows, labels and weights, and multiply the sample weights by the class weights.

    Parameters
    ----------
    model : estimator
        With the parameter `class_weight`.
    problem : Problem
    X, y, sample_weight
        Of `fit`.
    **options
        As of `validate_rows`.

    Raises
    ------
    ValueError
        If there are fewer than two classes with rows of positive weight, or weights cannot be used.
    """
    X, y = validate_rows(model, X, y, order="C", **options)
    class_weight = model.class_weight
    sample_weights = np.ones(y.size) if sample_weight is None else weight_array(sample_weight, y.size)
    classes = distinct_labels(y if sample_weight is None else y[sample_weights > 0.0])
    if classes.size < 2:
        rows = f"all rows are of class {classes.tolist()[0]!r}" if classes.size else "all weights are zero"
        raise ValueError(f"A classifier needs rows of 2 classes with weight, but {rows} (one class).")
    weights, class_weights = sample_weights, np.ones(classes.size)
    if class_weight is not None:
        class_weights = class_factors(class_weight, classes, y, sample_weights)
        weights = sample_weights.copy()
        for label, factor in zip(classes, class_weights, strict=True):
            weights[y == label] *= factor
    selected = None if weights.min() > 0.0 else np.flatnonzero(weights > 0.0)
    missing = [] if selected is None else np.setdiff1d(classes, y[selected]).tolist()
    if classes.size - len(missing) < 2:
        left = "no class" if classes.size == len(missing) else "only one class"
        raise ValueError(f"class_weight leaves {left} with a positive weight: raise the zero weights.")
    if missing and problem.hard:
        raise ValueError(
            f"class_weight leaves no row of class {missing[0]!r} with a positive weight, and a hard margin (C=inf) has "
            "two sides: raise the zero weight, or leave the class out of the data."
        )
    from ..data.door import check_costs  # only here: the import of a classifier loads nothing of `data`

    check_costs(problem, weights if selected is None else weights[selected])
    return X, Targets(y, sample_weights, weights, selected, classes, class_weights)


@np.errstate(invalid="ignore")  # scikit-learn compares labels with integers of 64 bits
def distinct_labels(y: np.ndarray) -> np.ndarray:
    """Return the distinct labels in order; refuse labels that do not name classes."""
    if y.dtype.kind == "S":
        raise ValueError("The labels are bytes: decode them, y.astype(str) for instance.")
    if y.dtype.kind not in "biuU":
        label_array(y)
    kinds = sorted({type(label).__name__ for label in y}) if y.dtype == object else []
    if len(kinds) == 1 and kinds[0] in ("int", "bool"):
        remedy = kinds[0] if np.array(y.tolist()).dtype.kind in "biu" else "str"  # beyond 64 bits
        raise ValueError(f"Unknown label type: y holds objects that are {kinds[0]}: y.astype({remedy}).")
    try:
        classes = np.unique(y)
        # scikit-learn refuses fractions, and warns where there are more classes than half of the rows
        fractions = y.dtype.kind == "f" and (classes % 1.0).any()
        if fractions or y.dtype.kind == "O" or 2 * classes.size > y.size:
            check_classification_targets(y)
    except TypeError:
        raise ValueError(
            f"The labels cannot be compared with one another: y holds {' and '.join(kinds)}. Give all classes "
            "names of one type."
        ) from None
    return classes


def class_factors(class_weight: Any, classes: np.ndarray, y: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """Return the factor on the weight of every row of a class; "balanced" counts the sample weights."""
    used = weights > 0.0
    try:
        factors = compute_class_weight(class_weight, classes=classes, y=y[used], sample_weight=weights[used])
    except (TypeError, ValueError) as error:
        raise ValueError(f"class_weight={class_weight!r} cannot be used: {error}") from None
    if not (np.isfinite(factors) & (factors >= 0.0)).all():
        raise ValueError(f"class_weight must hold finite numbers of at least 0; got {class_weight!r}.")
    return factors
