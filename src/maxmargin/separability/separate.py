"""`separate`: a separator with its margin, or a proof that there is none.

This module validates the data. `search` describes the steps of the search, `linear` takes them for hyperplanes, and
`kernel` for functions of a kernel's feature space.

References
----------
C. L. Lawson, R. J. Hanson, "Solving Least Squares Problems", Prentice-Hall 1974, chapter 23;
P. Gordan, "Ueber die Aufloesung linearer Gleichungen mit reellen Coefficienten", Mathematische Annalen 6, 1873;
D. L. Applegate, W. Cook, S. Dash, D. G. Espinoza, "Exact solutions to linear programming problems", Operations
Research Letters 35, 2007 (candidates in floating point, decisions in exact arithmetic).
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
import scipy.sparse as sp

from ..algorithms import ALGORITHMS, named_algorithm
from ..algorithms.normalised.base import NormalisedAlgorithm
from ..certificates.gram import check_kernel
from ..certificates.verdicts import LinearSeparator, Undecided, Verdict
from ..data.door import check_entries
from ..fit.deadline import Deadline
from ..kernels.functions import Kernel, Linear, Precomputed, kernel_named
from ..numerics.columns import dominant, rows_and_labels, without_empty_columns
from ..numerics.sizes import is_real, one_thread, parse_bytes, require_weight_memory
from ..problem.problem import Problem
from .kernel import KernelSearch
from .linear import LinearSearch

if TYPE_CHECKING:
    from ..partitions.blocks import Rows
    from ..readers.table import Table


@one_thread()
def separate(
    X: Any,
    y: Any,
    *,
    kernel: Any = None,
    gamma: Any = "scale",
    degree: int = 3,
    coef0: float = 0.0,
    p: float = 2,
    bias: bool = True,
    tol: float = 1e-2,
    algorithm: Any = "auto",
    max_time: float | None = None,
) -> Verdict:
    """Decide whether a hyperplane, or a function of a kernel's feature space, separates two classes, and prove it.

    Parameters
    ----------
    X : array-like or sparse matrix of shape (n, d)
        float32 and float64 are taken as the numbers that they are; numbers that float64 does not hold, such as
        2^53 + 1, are refused. The matrix of kernel values, of shape (n, n), with ``kernel="precomputed"``.
        Files of any size are searched by the command ``maxmargin separate``.
    y : array-like of shape (n,)
        Two classes.
    kernel : {"linear", "poly", "rbf", "sigmoid", "precomputed"}, callable or str, default=None
        A name of scikit-learn, including those of its `pairwise_kernels`, or a callable of two matrices. None and
        ``"linear"`` stand for hyperplanes.
    gamma : float, "scale" or "auto", default="scale"
        Of "poly", "rbf" and "sigmoid", as in scikit-learn: 1 / (d X.var()), or 1 / d.
    degree : int, default=3
        Of "poly".
    coef0 : float, default=0.0
        Of "poly" and "sigmoid".
    p : float in [1, inf], default=2
        The norm in which the margin is measured; 2 with kernels. The verdict does not depend on it.
    bias : bool, default=True
        Whether the hyperplane has an intercept.
    tol : float, default=1e-2
        Relative width of the interval around the largest margin at which the search ends; ``inf`` ends with the
        verdict. Margins that are tiny compared with the data may keep a wider one.
    algorithm : str or object, default="auto"
        The method in floating point: ``"normalised-perceptron"``, ``"smoothed-perceptron"``, ``"von-neumann"``,
        ``"smoothed-primal-dual"``, ``"iterated-smoothed-primal-dual"``, or an object such as ``VonNeumann(eps=1e-4)``.
        Exact arithmetic begins with the rows that have weights at its end. ``"auto"`` is the order of methods of
        `docs/reference/separability.md`.
    max_time : float, default=None
        Seconds, after which the verdict is Undecided, or the interval as wide as it is. The clock is read within
        linear programs, and between working sets and exact solutions, each of which ends first. With a kernel, the
        search for a separator takes all of the time; None ends it after as many working sets as take some seconds.

    Returns
    -------
    Separable, Inseparable or Undecided
        The first two are proved, rounding included. Undecided has the reason, a remedy, and the bound on the margin so
        far. It is returned after `max_time`, or if a proof has more than 600 rows; with a kernel also for
        margins that float64 kernel values cannot tell from zero, or if some seconds of working sets find none. Each
        verdict has ``verify(X, y)``.

    Raises
    ------
    ValueError
        If data or parameters cannot be used, or the kernel is indefinite on the rows; the message says what to do.
    KeyboardInterrupt
        After Ctrl-C; the attribute `result` of the error is the verdict so far.

    Notes
    -----
    By Gordan's theorem (1873) exactly one of the first two holds. Candidates come from floating point, and exact
    arithmetic decides (Applegate, Cook, Dash, Espinoza 2007).

    Examples
    --------
    >>> from maxmargin import separate
    >>> X = [[0, 0], [1, 1], [0, 1], [1, 0]]
    >>> verdict = separate(X, [1, 1, 0, 0])
    >>> verdict.separable, [str(weight) for weight in verdict.weights]
    (False, ['1/4', '1/4', '1/4', '1/4'])
    >>> y = [0, 1, 1, 1]
    >>> separate(X, y).verify(X, y).separable
    True
    >>> separate(X, [1, 1, 0, 0], kernel="rbf", gamma=1.0).separable
    True
    """
    (problem, method), deadline = _asked(p, bias, tol, max_time, algorithm), Deadline(max_time)
    if sp.issparse(X) and isinstance(kernel, str) and kernel == "precomputed":
        raise ValueError("A precomputed kernel must be a dense matrix: X.toarray() makes one.")
    table, labels = rows_and_labels(X, y)
    if not min(table.shape):
        raise ValueError(
            f"X is empty, of shape {table.shape}: there must be a row of each class, and a feature."
        )
    check_entries(table)
    # labels of mixed types cannot be sorted
    try:
        names = np.unique(labels)
    except TypeError:
        raise ValueError("The labels cannot be compared: give both classes names of one type.") from None
    signs, classes = np.where(labels == names[-1], 1.0, -1.0), _two_classes(names)
    function = kernel_named(kernel, table, gamma, degree, coef0)
    with deadline.interruptible():
        if not isinstance(function, Linear):
            _check_kernel(function, table, problem)
        # with a time limit the limit alone ends the search
        more_sets = 0 if max_time is None else np.inf
        verdict = decide(problem, table, signs, classes, deadline, function, float(tol), more_sets, method)
        if isinstance(verdict, Undecided) and not isinstance(function, Precomputed):
            verdict = replace(verdict, scale=dominant(table))
    deadline.raise_interrupt(verdict)
    return verdict


@one_thread()
def separate_stored(
    stored: Table,
    *,
    p: float = 2,
    bias: bool = True,
    tol: float = 1e-2,
    algorithm: Any = "auto",
    max_time: float | None = None,
    memory: Any = None,
) -> Verdict:
    """Return the verdict on hyperplanes and the rows of files, which are loaded if `memory` is enough.

    Parameters
    ----------
    stored : Table
    p, bias, tol, algorithm, max_time
        As of `separate`.
    memory : int, float or str, default=None
        Bytes; None for half of what is free.

    Raises
    ------
    ValueError
        If the rows cannot be used.
    """
    X, codes, classes = stored.X, stored.codes, _two_classes(stored.classes)
    limit = parse_bytes(memory)
    (problem, method), deadline = _asked(p, bias, tol, max_time, algorithm), Deadline(max_time)
    options = {"deadline": deadline, "kernel": Linear(), "algorithm": method}

    # only here: rows in memory need neither readers nor partitions
    from ..partitions.blocks import ArrayPartitions, signs_of
    from ..partitions.newton import rows_in_memory
    from ..readers.row_cache import IN_MEMORY_COPIES, bytes_of
    from ..readers.sources import loaded
    from .passes import PassSearch

    def decide_held(held: Rows, tol: float) -> Verdict:
        """Return the verdict on rows in memory."""
        return decide(problem, held.X, signs_of(held), classes, tol=tol, **options)

    with deadline.interruptible():
        if IN_MEMORY_COPIES * bytes_of(X) <= limit:
            signs = np.where(np.asarray(codes) == 1, 1.0, -1.0)
            verdict = decide(problem, loaded(X), signs, classes, tol=float(tol), **options)
        else:
            partitions = ArrayPartitions(X, codes)
            # sparse rows stay sparse in memory
            rows = rows_in_memory(limit, int(partitions.row_bytes / 8.0) if partitions.sparse else X.shape[1])
            verdict = PassSearch(
                problem, partitions, classes, rows, float(tol), deadline, decide_held
            ).verdict()
    deadline.raise_interrupt(verdict)
    return verdict


def decide(
    problem: Problem,
    X: Any,
    y: np.ndarray,
    classes: tuple[Any, Any],
    deadline: Deadline,
    kernel: Kernel,
    tol: float = np.inf,
    more_sets: float = 0,
    algorithm: NormalisedAlgorithm | None = None,
    start: np.ndarray | None = None,
) -> Verdict:
    """Return the verdict on data that have been validated, such as those of a hard-margin fit.

    Parameters
    ----------
    problem : Problem
        The hard margin, with the p-norm and the intercept.
    X : ndarray or CSR matrix of shape (n, d)
    y : ndarray of shape (n,), entries -1.0 and 1.0
    classes : tuple
        The labels of the negative and of the positive side.
    deadline : Deadline
    kernel : Kernel
    tol : float, default=inf
        As of `separate`.
    more_sets : float, default=0
        As of `KernelSearch`.
    algorithm, start
        As of `SeparatorSearch`.
    """
    options = {"algorithm": algorithm, "start": start}
    with np.errstate(over="ignore", under="ignore", invalid="ignore", divide="ignore"):
        if not isinstance(kernel, Linear):
            return KernelSearch(problem, X, y, classes, tol, deadline, kernel, more_sets, **options).verdict()
        # weights of empty columns are zero in every separator that is looked for
        X, columns = without_empty_columns(X)
        require_weight_memory(3, columns.count)  # of a separator, and twice of an exact one while it is made
        search = LinearSearch(problem, X, y, classes, tol, deadline, columns, **options)
        found = search.verdict()
        return replace(found, w=columns.restore(found.w)) if isinstance(found, LinearSeparator) else found


@np.errstate(over="ignore", under="ignore", invalid="ignore", divide="ignore")
def _check_kernel(kernel: Kernel, X: Any, problem: Problem) -> None:
    """Raise ValueError for kernels that are no inner product on the rows, or whose values are not finite."""
    if problem.p != 2:
        raise ValueError(f"Kernels measure margins in the 2-norm: p must be 2; got p={problem.p:g}.")
    if not isinstance(kernel, Precomputed) and not np.isfinite(kernel.diagonal(kernel.prepared(X))).all():
        raise ValueError("Kernel values are beyond float64 numbers: scale the features, or lower gamma.")
    check_kernel(kernel, X)


def _two_classes(classes: np.ndarray) -> tuple[Any, Any]:
    """Return the labels of two classes; raise ValueError where there are more or fewer."""
    if classes.size != 2:
        remedy = "ask for one class at a time, y == label"
        if classes.size < 2:
            remedy = "a hyperplane has two sides, so give rows of both"
        raise ValueError(f"y must hold two classes and holds {classes.size}: {remedy}.")
    return tuple(classes.tolist())


def _asked(
    p: Any, bias: Any, tol: Any, max_time: Any, algorithm: Any
) -> tuple[Problem, NormalisedAlgorithm | None]:
    """Return the hard margin problem and the algorithm, None for "auto"; ValueError says what is wrong."""
    # bool is a subclass of int: True would be taken as 1
    for name, value in (("p", p), ("tol", tol), ("max_time", 1.0 if max_time is None else max_time)):
        if not is_real(value):
            raise ValueError(f"{name} must be a number; got {name}={value!r}.")
    if not tol > 0.0:
        raise ValueError(f"tol must be positive, or inf for the verdict alone; got tol={tol!r}.")
    if max_time is not None and not max_time > 0.0:
        raise ValueError(f"max_time must be a positive number of seconds, or None; got {max_time!r}.")
    if not isinstance(bias, bool | np.bool_):
        raise ValueError(f"bias must be True or False; got {bias!r}.")
    problem = Problem("hinge", np.inf, p=float(p), intercept="free" if bias else "none")
    if isinstance(algorithm, str) and algorithm == "auto":
        return problem, None
    names = [name for name, cls in ALGORITHMS.items() if issubclass(cls, NormalisedAlgorithm)]
    return problem, named_algorithm(algorithm, names, "VonNeumann()", NormalisedAlgorithm)
