"""KernelMaxMarginClassifier: the kernel classifier with a certificate."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import KW_ONLY, dataclass
from typing import Any

import numpy as np

from ..algorithms import KERNEL_ALGORITHMS, Algorithm, Decomposition, named_algorithm
from ..certificates.gram import check_kernel
from ..data.door import check_entries
from ..data.rows import engine_rows
from ..fit.deadline import Deadline, Reporter
from ..fit.report import Report
from ..kernels.functions import Kernel, kernel_named, width
from ..numerics.files import CLUSTERS
from ..problem.multiclass import SCHEMES
from ..problem.problem import Problem, Status
from . import validation
from .kernel_tasks import KernelTasks
from .prediction import CertifiedClassifier, KernelDecision

CHECKS: validation.Checks = validation.COMMON | {
    "kernel": (
        lambda kernel: isinstance(kernel, str) or callable(kernel),
        'one of SVC\'s names, such as "rbf" or "linear", another of `pairwise_kernels`, or a function of two matrices; '
        "got {!r}",
    ),
    "break_ties": (lambda ties: isinstance(ties, validation.BOOLEAN), "True or False; got {!r}"),
    "cache_size": (validation.is_positive, "a positive number of megabytes; got {!r}"),
    "multi_class": (lambda scheme: scheme in SCHEMES, '"ovr" or "ovo"; got {!r}'),
    "decision_function_shape": (lambda scheme: scheme in SCHEMES, '"ovr" or "ovo"; got {!r}'),
    "max_iter": (
        lambda rounds: validation.is_whole(rounds, -1) and rounds != 0,
        "a whole number of rounds, at least 1, or -1 for no limit; got {!r}",
    ),
}


@dataclass(eq=False, repr=False)
class KernelMaxMarginClassifier(KernelDecision, CertifiedClassifier):
    """Maximum-margin classification in the space of a kernel, with a certificate.

    Minimises ``1/2 |w|^2 + C sum s_i max(0, 1 - y_i (w.phi(x_i) + b))`` (hinge) or the same with squared losses, or
    finds the largest margin (``C=inf``), where ``phi(x).phi(z) = k(x, z)`` and s_i is the weight of row i. The
    intercept is not regularised. The result has a certified lower and upper bound on the best possible objective
    (or margin); the fit ends when their relative gap is at most `tol`. Names and defaults are those of
    `sklearn.svm.SVC` where it has the same parameter.

    Parameters
    ----------
    C : float, default=1.0
        Weight of the losses; ``inf`` is the hard margin.
    kernel : {"linear", "poly", "rbf", "sigmoid", "precomputed"}, another name of `pairwise_kernels`, or callable, \
default="rbf"
        A callable gets two matrices of rows and returns the matrix of their kernel values. The kernel has to be
        positive semidefinite, which is checked unless its formula implies it.
    degree : int, default=3
        Degree of ``"poly"``.
    gamma : {"scale", "auto"} or float, default="scale"
        Factor of the products or squared distances in ``"rbf"``, ``"poly"`` and ``"sigmoid"``: ``"scale"`` is
        1 / (n_features * X.var()), ``"auto"`` 1 / n_features.
    coef0 : float, default=0.0
        Constant added to the products in ``"poly"`` and ``"sigmoid"``.
    loss : {"hinge", "squared_hinge"}, default="hinge"
    tol : float, default=1e-3
        Certified relative gap at which the fit ends. Soft problems: (primal - dual) / dual. Hard margin:
        1 - lower / upper. Several problems: the largest.
    fit_intercept : bool, default=True
    intercept_scaling : float, default=None
        None is an unregularised intercept. A number is the value of a constant feature whose weight is regularised,
        as in LinearSVC.
    class_weight : dict or "balanced", default=None
        Every row's weight is multiplied by that of its class. ``"balanced"`` counts sample weights.
    multi_class : {"ovr", "ovo"}, default="ovr"
        Several classes: each against the rest, with shared rows of the kernel; or each against each other, as in SVC.
    decision_function_shape : {"ovr", "ovo"}, default="ovr"
        With ``multi_class="ovo"``: one value per class, from votes and scores as in SVC, or one per pair of classes.
    break_ties : bool, default=False
        With ``multi_class="ovo"``: whether the scores decide among classes with equal numbers of votes; otherwise the
        first of these classes is predicted.
    cache_size : float, default=200
        Megabytes of memory for rows of the kernel.
    algorithm : str or object, default="auto"
        ``"decomposition"``, another name from `maxmargin.algorithms.KERNEL_ALGORITHMS`, or an object such as
        ``PUMMA(delta=0.01)``. It never changes the problem, only the method of solution. ``"auto"`` is Newton's
        method where the kernel matrix has a small rank, else the decomposition.
    max_iter : int, default=-1
        Largest number of rounds of each problem, -1 for no limit. A round is a working set of the decomposition, or an
        evaluation of all rows and the sweeps before it.
    max_time : float, default=None
        Seconds after which the best model so far is kept, with its gap. They include compilation, which the first fit
        of a kind on a machine needs, and which cannot be interrupted.
    callback : callable, default=None
        Called with a `Report` after every round; if it returns a true value, the fit ends with the best model so far.
    n_jobs : int, default=None
        Threads, no more than there are processors, for pairs of classes in `fit` and for blocks of rows in prediction.
        Results do not depend on it.
    random_state : int, RandomState instance or None, default=None
        Order of presentation; the decomposition does not use it.
    verbose : int, default=0
        1 prints a line for each round to standard error.

    Attributes
    ----------
    support_ : ndarray of shape (n_SV,)
        The rows with a coefficient other than 0 in any problem, sorted by class.
    support_vectors_ : ndarray or CSR matrix of shape (n_SV, n_features)
        Empty for a precomputed kernel.
    n_support_ : ndarray of shape (n_classes,)
        Number of support vectors of each class.
    dual_coef_ : ndarray of shape (1, n_SV), (n_classes, n_SV) or, one against one, (n_classes - 1, n_SV) as in SVC
    intercept_ : ndarray of shape (1,), (n_classes,) or (n_classes * (n_classes - 1) / 2,)
    coef_ : ndarray of shape (n_problems, n_features)
        With the linear kernel only.
    classes_ : ndarray of shape (n_classes,)
    class_weight_ : ndarray of shape (n_classes,)
        The factor on the weight of every row of a class.
    multi_class_ : {"ovr", "ovo"}
        The `multi_class` of the fit.
    gamma_ : float
        The value of `gamma`.
    n_features_in_ : int
    feature_names_in_ : ndarray of shape (n_features,)
        Only where X had string column names.
    shape_fit_ : tuple of int
    n_iter_ : int
        Number of rounds; the largest of all problems. SVC has one number per pair of classes.
    status_ : Status
        How the fit ended; the worst of all problems.
    message_ : str
        Why the fit ended so, and if it is not certified, what to try.
    fit_status_ : int
        As in SVC: 0 if `status_` is CERTIFIED, otherwise 1.
    certificate_ : Certificate or Certificates
        The bounds and the dual variables that prove them; `verify` recomputes them from the data.
    verdict_ : Inseparable, Undecided, or LinearSeparator, or dict of them
        Only for a hard margin without a separator in float64. INSEPARABLE: the exact proof that no separator exists.
        UNDECIDED: the bounds so far, or a separator that float64 coefficients of rows do not express. With
        several problems a dict by their labels.
    history_ : list of Report

    Raises
    ------
    ValueError
        If data or parameters cannot be used; the message names the remedy.

    See Also
    --------
    verify : Recompute every number of the certificate from the data.
    separate : Decide whether a separator exists.

    Notes
    -----
    Equal rows of a class are merged; their dual variable is divided among them in proportion to their sample weights.

    Rows of the kernel are kept in float64, 8 n bytes each. Algorithms that load single rows are slow if `cache_size`
    holds fewer rows than their steps use. The first Ctrl-C ends the fit with the best model so far, and then
    raises KeyboardInterrupt; the second raises it at once, and the estimator is as it was before.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from maxmargin import KernelMaxMarginClassifier, verify
    >>> X, y = load_iris(return_X_y=True)
    >>> clf = KernelMaxMarginClassifier().fit(X, y)
    >>> clf.status_
    <Status.CERTIFIED: 'CERTIFIED'>
    >>> verify(clf, X, y).gap < 1e-3
    True
    """

    C: float = 1.0
    _: KW_ONLY
    kernel: str | Callable[[Any, Any], Any] = "rbf"
    degree: int = 3
    gamma: float | str = "scale"
    coef0: float = 0.0
    loss: str = "hinge"
    tol: float = 1e-3
    fit_intercept: bool = True
    intercept_scaling: float | None = None
    class_weight: Any = None
    multi_class: str = "ovr"
    decision_function_shape: str = "ovr"
    break_ties: bool = False
    cache_size: float = 200
    algorithm: Any = "auto"
    max_iter: int = -1
    max_time: float | None = None
    callback: Callable[[Report], Any] | None = None
    n_jobs: int | None = None
    random_state: Any = None
    verbose: int = 0

    @validation.restored_after(BaseException)
    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> KernelMaxMarginClassifier:
        """Find the maximum-margin classifier, and certify it.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features), or (n_samples, n_samples)
            The kernel matrix, if the kernel is precomputed.
        y : array-like of shape (n_samples,)
        sample_weight : array-like of shape (n_samples,), default=None
            Factor on each row's loss; weight k is equal to k copies of the row, weight 0 leaves it out. With ``C=inf``
            all positive weights are equal.

        Returns
        -------
        self : KernelMaxMarginClassifier
        """
        problem = self._problem()
        algorithm = kernel_algorithm(self.algorithm, problem)
        kernel, X, targets = self.validated(problem, X, y, sample_weight)
        if self.multi_class == "ovr" and targets.classes.size > 2 and self.decision_function_shape == "ovo":
            raise ValueError('decision_function_shape="ovo" needs pairs of classes: set multi_class="ovo".')
        tasks = KernelTasks(self, problem, algorithm, kernel, X, targets)
        check_kernel(kernel, tasks.rows.X)
        reporter, deadline = Reporter(self), Deadline(self.max_time)
        with deadline.interruptible():  # until the model is stored
            found = tasks.solve(reporter, deadline)
            self.classes_, self.class_weight_ = targets.classes, targets.class_weights
            self.multi_class_, self.shape_fit_, codes = self.multi_class, X.shape, targets.codes
            used = np.unique(np.concatenate([one.support[0] for one in found]))
            used = used[np.argsort(codes[used], kind="stable")]  # sorted by class, as in SVC
            self.support_ = used.astype(np.int32)
            self.n_support_ = np.bincount(codes[used], minlength=targets.classes.size).astype(np.int32)
            precomputed = self.kernel == "precomputed"
            self.support_vectors_ = np.empty((0, X.shape[0])) if precomputed else X[used]
            column, coefficients = np.empty(X.shape[0], np.intp), np.zeros((len(found), used.size))
            column[used] = np.arange(used.size)
            for line, (rows, values) in zip(coefficients, [one.support for one in found], strict=True):
                line[column[rows]] = values
            self.dual_coef_ = tasks.scheme.packed(coefficients, codes[used])
            self.intercept_ = np.array([one.intercept for one in found])
            self.make_machine(kernel)
            self._store(tasks.names, found, None if precomputed else X)
        deadline.raise_interrupt(self)
        return self

    def validated(
        self, problem: Problem, X: Any, y: Any, sample_weight: Any
    ) -> tuple[Kernel, Any, validation.Targets]:
        """Return the kernel, and the data that have passed all checks."""
        if type(X).__module__.split(".", 1)[0] in CLUSTERS:
            raise ValueError(
                "A kernel is fitted to rows in memory: X.compute() of Dask, X.toPandas() of Spark."
            )
        precomputed = self.kernel == "precomputed"  # a kernel matrix is dense
        sparse = False if precomputed else "csr"
        X, targets = validation.validated_data(self, problem, X, y, sample_weight, accept_sparse=sparse)
        if precomputed and X.shape[0] != X.shape[1]:
            raise ValueError(f"A precomputed kernel is a square matrix of all samples; got shape {X.shape}.")
        X = engine_rows(X)
        check_entries(X, getattr(self, "feature_names_in_", None))
        self.gamma_ = width(self.gamma, X, targets.sample_weights)
        return kernel_named(self.kernel, X, self.gamma_, self.degree, self.coef0), X, targets

    def _problem(self) -> Problem:
        """Check the parameters, and return the problem that they state."""
        validation.check_parameters(self, CHECKS)
        scaling = 1.0 if self.intercept_scaling is None else float(self.intercept_scaling)
        kind = "free" if self.intercept_scaling is None else "augmented"
        intercept = kind if self.fit_intercept else "none"
        return Problem(self.loss, float(self.C), intercept=intercept, intercept_scaling=scaling)

    @property
    def fit_status_(self) -> int:
        """0 if the fit is certified to `tol`, otherwise 1."""
        return int(self.status_ is not Status.CERTIFIED)


def kernel_algorithm(algorithm: Any, problem: Problem | None = None) -> Algorithm | Decomposition:
    """Return the algorithm of a kernel classifier; of "auto" the decomposition, before which a fit
    tries a factor of low rank.

    Raises
    ------
    ValueError
        If there is no such algorithm, or it does not solve the problem.
    """
    if isinstance(algorithm, str) and algorithm == "auto":
        return Decomposition()
    algorithm = named_algorithm(algorithm, KERNEL_ALGORITHMS, "PUMMA()", Algorithm | Decomposition)
    if isinstance(algorithm, Algorithm) and algorithm.refuses_kernels() is not None:
        raise ValueError(f"{algorithm.name!r} does not work with kernels: use {algorithm.refuses_kernels()}.")
    if problem is not None:
        validation.check_solves(algorithm, problem, KERNEL_ALGORITHMS)
    return algorithm
