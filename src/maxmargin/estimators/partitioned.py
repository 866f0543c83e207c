"""Linear fits of rows in partitions: memory maps and files larger than memory, Dask collections, Spark frames."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import closing
from copy import copy
from typing import Any

import numpy as np
import scipy.sparse as sp

from ..data.door import check_costs
from ..fit.deadline import Deadline, Reporter
from ..fit.report import Stopping
from ..numerics.columns import check_storage, label_array, weight_array
from ..numerics.files import place_of
from ..numerics.sizes import draw_seeds, one_thread, parse_bytes, require_weight_memory
from ..partitions.blocks import ArrayPartitions, BadRowError, Partitions, class_codes
from ..partitions.solve import PartitionedProblem, solve_soft_margins
from ..problem.problem import Problem, Status
from ..readers.row_cache import IN_MEMORY_COPIES, bytes_of, open_rows
from ..readers.sources import loaded
from ..readers.table import DataError, Table
from . import validation
from .linear_tasks import fit_in_memory

STALLED = (
    "The bounds have stopped improving at a gap of {gap:.2g}: the rows that decide about the solution do not fit in "
    "memory. Give more memory, or a larger tol."
)
LABELS_PER_BLOCK = 1 << 20  # labels that are encoded at a time: temporaries of some megabytes


def fits_in_memory(model: Any, X: Any) -> bool:
    """Return whether an in-memory fit of these rows stays within `memory`."""
    return IN_MEMORY_COPIES * bytes_of(X) <= parse_bytes(model.memory)


def fit_rows(model: Any, problem: Problem, X: Any, y: Any, sample_weight: Any, deadline: Deadline) -> None:
    """Fit a classifier to rows on a cluster, in files, or in memory; X and y are those of `MaxMarginClassifier.fit`.

    Rows whose fit would take more than `memory`, for files by default half of what is free, are read in blocks.
    """
    place = place_of(X, y)
    if place != "files":
        large = (isinstance(X, np.ndarray) or sp.issparse(X)) and not fits_in_memory(model, X)
        fit = fit_cluster if place != "memory" else fit_arrays if large else fit_in_memory
        fit(model, problem, X, y, sample_weight, deadline)
        return
    if sample_weight is not None:
        raise ValueError("files have no sample weights: fit arrays or memory maps with sample_weight.")
    if not (y is None or isinstance(y, str)):
        raise ValueError("the labels of files are in a column of them: name it as y, or map X by np.load.")
    stored = open_rows(X, cache_dir=model.cache_dir, label=y, interrupted=deadline.interrupted)
    fit_stored(model, problem, stored, deadline)


@one_thread()
def fit_stored(model: Any, problem: Problem, stored: Table, deadline: Deadline) -> None:
    """Fit a classifier to the rows of files; rows that fit in memory are loaded.

    Parameters
    ----------
    model : MaxMarginClassifier
    problem : Problem
    stored : Table
    deadline : Deadline
        That of the whole fit, which began with the reading.

    Raises
    ------
    DataError
        If a row cannot be used; the message names its file and its number there.
    """
    X, classes = stored.X, stored.classes
    if fits_in_memory(model, X):
        fit_in_memory(model, problem, loaded(X), classes[stored.codes], None, deadline)
    else:
        try:
            _fit_codes(model, problem, X, stored.codes, None, classes, deadline)
        except BadRowError as error:
            file, row = stored.place(error.row)
            raise DataError(f"{file}: row {row + 1} (counted from 1): {error.fault}") from None
    model.n_features_in_ = X.shape[1]
    vars(model).pop("feature_names_in_", None)
    if stored.feature_names is not None:
        model.feature_names_in_ = np.array(stored.feature_names, dtype=object)
    model.source_ = {"label": stored.label_name, "first_index": stored.first_index, **stored.remembered}


def _fit_codes(
    model: Any,
    problem: Problem,
    X: Any,
    codes: np.ndarray,
    weights: np.ndarray | None,
    classes: np.ndarray,
    deadline: Deadline,
) -> None:
    """Fit a classifier to rows of arrays with the numbers of their classes, -1 for rows of weight 0 of no class."""
    totals = np.zeros(classes.size)
    for begin in range(0, codes.size, LABELS_PER_BLOCK):
        part = slice(begin, begin + LABELS_PER_BLOCK)
        share = None if weights is None else weights[part]
        totals += np.bincount(np.maximum(codes[part], 0), share, classes.size)
    fit_partitions(model, problem, ArrayPartitions(X, codes, weights), classes, totals, deadline)


def fit_arrays(model: Any, problem: Problem, X: Any, y: Any, sample_weight: Any, deadline: Deadline) -> None:
    """Fit a classifier to rows of arrays or memory maps that are larger than its memory.

    Parameters
    ----------
    model : MaxMarginClassifier
    problem : Problem
    X : ndarray, np.memmap or CSR matrix of shape (n, d)
        Its entries are checked in the first pass. Whole numbers, booleans and float16 are converted to float64 block
        by block.
    y, sample_weight : array-like of shape (n,)
    deadline : Deadline
    """
    if not isinstance(getattr(X, "indices", None), np.memmap):  # a memory map is checked block by block
        check_storage(X)
    X = X.tocsr() if sp.issparse(X) else X
    if X.ndim != 2 or X.dtype.kind not in "fiub":
        raise ValueError(
            f"rows larger than memory must be a matrix of real numbers; got shape {X.shape} and type {X.dtype}: "
            "convert the file once."
        )
    y = label_array(y, X.shape[0])
    weights = None if sample_weight is None else weight_array(sample_weight, y.size)
    classes = validation.distinct_labels(y if weights is None else y[weights > 0.0])
    parts = range(0, y.size, LABELS_PER_BLOCK)
    codes = np.concatenate([class_codes(y[begin : begin + LABELS_PER_BLOCK], classes) for begin in parts])
    _fit_codes(model, problem, X, codes, weights, classes, deadline)
    vars(model).pop("feature_names_in_", None)


def cluster_rows(
    X: Any, y: Any, sample_weight: Any, names: Any = None, interrupted: Callable[[], bool] = bool
) -> Any:
    """Return the `ClusterPartitions` of a Dask collection or a Spark frame; `contextlib.closing` releases them.

    Parameters
    ----------
    X : dask.array.Array, dask.dataframe.DataFrame or pyspark.sql.DataFrame of shape (n, d)
    y, sample_weight : dask.array.Array or dask.dataframe.Series of shape (n,), or str
        With frames the names of columns of X.
    names : sequence of str, default=None
        With frames the names of the features; None for all other columns.
    interrupted : callable, default=bool
        Whether to stop, which raises ReadingStoppedError. By default never.
    """
    if place_of(X) == "spark":
        from ..partitions.spark import SparkPartitions as Found
    else:
        from ..partitions.dask import DaskPartitions as Found

    return Found(X, y, sample_weight, names, interrupted)


def fit_cluster(model: Any, problem: Problem, X: Any, y: Any, sample_weight: Any, deadline: Deadline) -> None:
    """Fit a classifier to a Dask collection or a Spark frame; parameters are those of `cluster_rows`."""
    check_solvable(model)
    with closing(cluster_rows(X, y, sample_weight, interrupted=deadline.interrupted)) as rows:
        # each label twice: for scikit-learn, labels of which most occur once are no classes
        classes = validation.distinct_labels(np.repeat(rows.names[rows.totals > 0.0], 2))
        total = dict(zip(rows.names.tolist(), rows.totals, strict=True))
        totals = np.array([total[label] for label in classes.tolist()])
        validated = copy(model)  # a fit that fails leaves the model as it was
        validation.validate_rows(validated, rows.example)
        fit_partitions(model, problem, rows, classes, totals, deadline)
        vars(model).pop("feature_names_in_", None)
        if hasattr(validated, "feature_names_in_"):
            model.feature_names_in_ = validated.feature_names_in_


def weights_of_classes(model: Any, classes: np.ndarray, totals: np.ndarray) -> np.ndarray:
    """Return the factor on the weight of the rows of each class, whose weights sum to `totals`."""
    if classes.size < 2:
        raise ValueError(f"A classifier needs rows of 2 classes with weight; there are {classes.tolist()}.")
    if model.class_weight is None:
        return np.ones(classes.size)
    factors = validation.class_factors(model.class_weight, classes, classes, totals)
    if np.count_nonzero(factors) < 2:
        raise ValueError(
            "class_weight leaves less than two classes with a positive weight: raise the zero weights."
        )
    return factors


def fit_partitions(
    model: Any,
    problem: Problem,
    partitions: Partitions,
    classes: np.ndarray,
    totals: np.ndarray,
    deadline: Deadline,
) -> None:
    """Fit a classifier to partitioned rows, and set its attributes.

    Parameters
    ----------
    model : MaxMarginClassifier
    problem : Problem
    partitions : Partitions
    classes : ndarray of shape (classes,)
    totals : ndarray of shape (classes,)
        The sum of the sample weights of each class.
    deadline : Deadline
        That of the whole fit.

    Raises
    ------
    ValueError
        If partitioned fits do not solve the problem; the message names the remedy.
    """
    check_solvable(model)
    class_weights = weights_of_classes(model, classes, totals)
    check_costs(problem, class_weights[class_weights > 0.0])  # those of rows are checked in the first pass
    partitions.encode(classes, None if model.class_weight is None else class_weights)
    names = [None] if classes.size == 2 else list(classes)
    require_weight_memory(2 * len(names), partitions.shape[1])  # as in fits of rows in memory
    reporter = Reporter(model)
    with deadline.interruptible():  # until the model is stored
        stopping = Stopping(model.tol, model.max_iter, deadline, reporter.report)
        seed = int(draw_seeds(model.random_state, 1)[0])
        memory = parse_bytes(model.memory)
        solutions = solve_soft_margins(
            PartitionedProblem(partitions, problem, list(classes), stopping, memory, seed, model.cache_dir)
        )
        model.classes_, model.class_weight_ = classes, class_weights
        model.coef_ = np.array([solution.w for solution in solutions])
        model.intercept_ = np.array([solution.b for solution in solutions])
        model.n_features_in_ = partitions.shape[1]
        model._store(names, solutions, None)
        if model.status_ is Status.STALLED:
            model.message_ = STALLED.format(gap=model.certificate_.gap)


def check_solvable(model: Any) -> None:
    """Raise ValueError where partitioned fits do not know a parameter."""
    if np.isinf(model.C) or model.p != 2 or model.norm_power != 2:
        raise ValueError(
            "rows that do not fit in memory are fitted with a soft margin in the 2-norm only: set p=2, norm_power=2 "
            "and a finite C, or fit a sample of the rows, or give the memory for all."
        )
    if model.algorithm != "auto" or model.warm_start:
        raise ValueError(
            'fits of rows in partitions choose algorithm and start themselves: set algorithm="auto" and '
            "warm_start=False, or fit rows in memory: leave out memory=, or gather a Dask collection with X.compute(), "
            "a Spark frame with X.toPandas()."
        )
