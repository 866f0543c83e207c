"""KernelMaxMarginClassifier: SVC's place, with a certificate."""

from __future__ import annotations

from collections.abc import Callable
from copy import copy
from dataclasses import dataclass, replace
from functools import cache, cached_property
from numbers import Integral
from threading import Lock
from typing import Any

import numpy as np
import scipy.sparse as sp
from joblib import Parallel, delayed
from sklearn.base import BaseEstimator, ClassifierMixin

from ..algorithms import Algorithm
from ..algorithms.batch.kernel_rows import MEGABYTE
from ..certificates.certificate import Certificate, Certificates
from ..certificates.definiteness import check_kernel
from ..certificates.expansions import KernelPoint, all_bounds, certificate
from ..certificates.gram import KernelSample
from ..certificates.sample import Sample
from ..certificates.separators import KernelSeparator, LinearSeparator
from ..certificates.verdicts import Inseparable, Separable, Verdict
from ..data.duplicates import apart, merge
from ..data.rows import canonical
from ..data.units import check_constant
from ..fit.deadline import Watch
from ..fit.kernel_solve import KERNEL_ALGORITHMS, Decomposition, KernelSolution, Part, solve_kernel
from ..fit.report import Report, Stopping
from ..kernels.functions import Kernel, Precomputed
from ..kernels.names import kernel_named, width
from ..numerics.representable import refuse_rounded
from ..numerics.sparse_columns import may_be_dense, without_empty_columns
from ..numerics.threads import jobs, one_thread
from ..problem.multiclass import SCHEMES, Parts, named_parts, parts_of
from ..problem.problem import Problem
from ..problem.status import Status, worst
from ..separability.kernel import kernel_trivial_certificate, kernel_verdict
from ..separability.search import fit_task
from .callbacks import CallbackSupportMixin, round_tasks, with_callbacks
from .hard_margin import keep_verdicts
from .labels import check_costs, check_sides, class_factors, class_names, row_weights, times_classes
from .parameters import check_parameters, require_boolean, require_number, seeds
from .prediction import KernelDecision
from .progress import Hearing
from .rollback import unchanged_by
from .rows import checked_rows

SOLVED = 4e9  # work, up to which a hyperplane is written as a combination of rows


class KernelMaxMarginClassifier(KernelDecision, CallbackSupportMixin, ClassifierMixin, BaseEstimator):
    """Maximum-margin classification in the space of a kernel, with a proof.

    Minimises ``1/2 |w|^2 + C sum s_i max(0, 1 - y_i (w.phi(x_i) + b))`` (hinge) or the same with squared losses, or
    finds the largest margin (``C=inf``), where ``phi(x).phi(z) = k(x, z)``. The intercept is not regularised. The
    answer comes with a lower and an upper bound on the best possible objective (or margin); `tol` is their certified
    relative gap. Names, defaults and attributes are those of `sklearn.svm.SVC`.

    Parameters
    ----------
    C : float, default=1.0
        Weight of the losses; ``inf`` is the hard margin.
    kernel : {"linear", "poly", "rbf", "sigmoid", "precomputed"}, another name of `pairwise_kernels`, or callable, \
default="rbf"
        A callable gets two matrices of rows and returns the matrix of their kernel values. It has to be positive
        semidefinite; of ``"precomputed"``, ``"sigmoid"`` and callables that is checked.
    degree : int, default=3
        Of ``"poly"``.
    gamma : {"scale", "auto"} or float, default="scale"
        Of ``"rbf"``, ``"poly"`` and ``"sigmoid"``: ``"scale"`` is 1 / (n_features * X.var()), ``"auto"``
        1 / n_features.
    coef0 : float, default=0.0
        Of ``"poly"`` and ``"sigmoid"``.
    loss : {"hinge", "squared_hinge"}, default="hinge"
    tol : float, default=1e-3
        Certified relative gap at which the fit ends. Soft problems: (primal - dual) / dual. Hard margin:
        1 - lower / upper. Several problems: the largest.
    fit_intercept : bool, default=True
    intercept : {"free", "augmented"}, default="free"
        ``"free"`` is the unregularised intercept; ``"augmented"`` a feature of constant value `intercept_scaling`,
        whose weight is regularised.
    intercept_scaling : float, default=1.0
        Used with ``intercept="augmented"``.
    class_weight : dict or "balanced", default=None
        Every row's weight is multiplied by that of its class. ``"balanced"`` counts sample weights.
    multi_class : {"ovr", "ovo"}, default="ovr"
        Several classes: each against the rest, which share the rows of the kernel; or each against each other, as SVC
        does.
    decision_function_shape : {"ovr", "ovo"}, default="ovr"
        With ``multi_class="ovo"``: one value a class, made of votes and scores as in SVC, or one a pair of classes.
    break_ties : bool, default=False
        With ``multi_class="ovo"``: among classes of equally many votes, the scores decide, not the order.
    cache_size : float, default=200
        Megabytes for rows of the kernel.
    algorithm : str or object, default="auto"
        ``"decomposition"``, another name from `maxmargin.fit.kernel_solve.KERNEL_ALGORITHMS`, or an object such as
        ``PUMMA(delta=0.01)``. It never changes the problem, only the way to its solution. ``"auto"`` is the
        decomposition.
    max_iter : int, default=-1
        Most rounds (working sets, or looks at all scores) of each problem; -1 is as many as it takes.
    max_time : float, default=None
        Seconds after which the best model so far is kept, with its gap. They include compiling, which a machine's first
        fit of a kind needs, and which nothing interrupts.
    callback : callable, default=None
        Called with a `Report` after every round; a true answer ends the fit with the best model so far. Callbacks and
        progress bars of scikit-learn are set with ``set_callbacks`` (scikit-learn 1.9; docs/scikit_learn.md).
    n_jobs : int, default=None
        Threads, no more than there are processors: pairs of classes that are solved at the same time, and blocks of
        rows that are predicted so. Nothing depends on it.
    random_state : int, RandomState instance or None, default=None
        Order of presentation, of algorithms that have one; the decomposition has none.
    verbose : int, default=0
        1 prints a line a round to standard error.

    Attributes
    ----------
    support_ : ndarray of shape (n_SV,)
        Rows that take part in any decision, sorted by class.
    support_vectors_ : ndarray or CSR matrix of shape (n_SV, n_features)
        Empty for a precomputed kernel.
    n_support_ : ndarray of shape (n_classes,)
        How many of each class.
    dual_coef_ : ndarray of shape (1, n_SV), (n_classes, n_SV) or, one against one, (n_classes - 1, n_SV) as in SVC
    intercept_ : ndarray of shape (1,), (n_classes,) or (n_classes * (n_classes - 1) / 2,)
    coef_ : ndarray of shape (n_problems, n_features)
        With the linear kernel only.
    classes_ : ndarray of shape (n_classes,)
    class_weight_ : ndarray of shape (n_classes,)
        The factor on every row of a class.
    multi_class_ : {"ovr", "ovo"}
        The `multi_class` of the fit.
    gamma_ : float
        The number that stands for `gamma`.
    n_features_in_ : int
    feature_names_in_ : ndarray of shape (n_features,)
        Only where X had string column names.
    shape_fit_ : tuple of int
    n_iter_ : int
        Rounds; the most of all problems. One number, as of all other classifiers here; SVC has one a pair of classes.
    status_ : Status
        How the fit ended; the worst of all problems.
    fit_status_ : int
        As in SVC: 0 where `status_` is CERTIFIED, else 1.
    certificate_ : Certificate or Certificates
        The bounds and the dual weights that prove them; `verify` rechecks them from the data.
    verdict_ : Inseparable, Undecided, LinearSeparator or PolynomialSeparator, or dict of these
        Of a hard margin without a separator in float64: the exact proof that there is none, or with UNDECIDED what is
        known, which may be a separator that takes more digits than float64 coefficients of rows have. Of several
        problems, by their labels.
    history_ : list of Report

    Raises
    ------
    ValueError
        If data or parameters cannot be used; the message says what to do.

    See Also
    --------
    verify : Recompute every number of the certificate from the data.
    separate : Whether there is a separator at all.

    Notes
    -----
    Equal rows of a class are solved as one and share its dual weight by their sample weights.

    Rows of the kernel are float32 numbers where those are enough for `tol`; the certificate is made of float64 numbers
    in any case. The first Ctrl-C ends the fit with the best model so far, the second raises KeyboardInterrupt.

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

    _exact = True  # small problems end with the exact step; a comparison of algorithms does without

    def __init__(
        self,
        C: float = 1.0,
        *,
        kernel: str | Callable[[Any, Any], Any] = "rbf",
        degree: int = 3,
        gamma: float | str = "scale",
        coef0: float = 0.0,
        loss: str = "hinge",
        tol: float = 1e-3,
        fit_intercept: bool = True,
        intercept: str = "free",
        intercept_scaling: float = 1.0,
        class_weight: Any = None,
        multi_class: str = "ovr",
        decision_function_shape: str = "ovr",
        break_ties: bool = False,
        cache_size: float = 200,
        algorithm: Any = "auto",
        max_iter: int = -1,
        max_time: float | None = None,
        callback: Callable[[Report], Any] | None = None,
        n_jobs: int | None = None,
        random_state: Any = None,
        verbose: int = 0,
    ) -> None:
        self.C = C
        self.kernel = kernel
        self.degree = degree
        self.gamma = gamma
        self.coef0 = coef0
        self.loss = loss
        self.tol = tol
        self.fit_intercept = fit_intercept
        self.intercept = intercept
        self.intercept_scaling = intercept_scaling
        self.class_weight = class_weight
        self.multi_class = multi_class
        self.decision_function_shape = decision_function_shape
        self.break_ties = break_ties
        self.cache_size = cache_size
        self.algorithm = algorithm
        self.max_iter = max_iter
        self.max_time = max_time
        self.callback = callback
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.verbose = verbose

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = bool(self._sparse())
        tags.input_tags.pairwise = not self._sparse()
        return tags

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> KernelMaxMarginClassifier:
        """Find the maximum-margin classifier and prove how good it is.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features), or (n_samples, n_samples)
            The kernel matrix where it is precomputed.
        y : array-like of shape (n_samples,)
        sample_weight : array-like of shape (n_samples,), default=None
            Factor on each row's loss; weight k is k copies of the row, 0 leaves it out. With ``C=inf`` a weight only
            keeps or drops a row.

        Returns
        -------
        self : KernelMaxMarginClassifier
        """
        with unchanged_by(BaseException, self), one_thread:
            return self._fit(X, y, sample_weight)

    @with_callbacks
    def _fit(self, X: Any, y: Any, sample_weight: Any) -> KernelMaxMarginClassifier:
        problem = self._problem()
        algorithm = self._named(problem)
        if problem.hard:
            refuse_rounded(X)
        X, y = checked_rows(
            self,
            X,
            y,
            accept_sparse=self._sparse(),
            order="C",
            accept_large_sparse=True,
        )
        if self.kernel == "precomputed" and X.shape[0] != X.shape[1]:
            raise ValueError(
                f"A precomputed kernel is a square matrix, one row and one column for each sample; got shape {X.shape}."
            )
        weights = row_weights(X, sample_weight)
        classes = class_names(y[weights > 0.0])
        factors = class_factors(self.class_weight, classes, y, weights)
        whole = times_classes(weights, y, classes, factors)
        check_sides(classes, y, whole, problem.hard)
        check_costs(problem, whole)
        scheme = parts_of(self.multi_class, classes.size)
        if scheme.name == "ovr" and classes.size > 2 and self.decision_function_shape == "ovo":
            raise ValueError(
                'decision_function_shape="ovo" is one value a pair of classes, which multi_class="ovr" has none of: '
                'set multi_class="ovo".'
            )
        X = canonical(X)
        codes = np.where(np.isin(y, classes), np.searchsorted(classes, y), -1)
        gamma = width(self.gamma, X, weights)
        kernel = kernel_named(self.kernel, X, gamma, self.degree, self.coef0)
        rows = _Rows(kernel, X, codes, whole, in_order=not algorithm.shuffle)
        check_kernel(kernel, rows.X, self.cache_size * MEGABYTE)
        sample = KernelSample(kernel, rows.X, rows.rounded)
        labels = named_parts(scheme, classes)
        drawn = seeds(self.random_state, len(labels))
        reason = "asked for" if self.algorithm != "auto" else "kernels: working sets of the rows that matter"
        max_iter = np.iinfo(np.int64).max if self.max_iter == -1 else self.max_iter
        lock = Lock()

        def model(points: list[tuple[KernelPoint, np.ndarray]]) -> dict[str, Any]:
            supports, intercepts = [], []
            for (_, coefficients, b), places in points:
                supports.append(_support(rows.scattered(coefficients, places)))
                intercepts.append(b)
            shown = copy(self)
            shown.classes_, shown.multi_class_ = classes, self.multi_class
            shown._keep_machine(scheme, kernel, rows.whole_codes, X, supports, intercepts)
            return vars(shown)

        # problems on the same rows go together
        groups = [list(range(len(labels)))] if scheme.name == "ovr" else [[k] for k in range(len(labels))]
        side_by_side = jobs(self.n_jobs, len(groups))
        in_order = scheme.name == "ovo" and side_by_side == 1
        tasks = round_tasks(self, X, y, sample_weight, labels, in_order, model)
        hearing = Hearing(self.verbose, self.callback, tasks)

        def solved(group: list[int], watch: Watch) -> list[tuple[KernelSolution, np.ndarray]]:
            """The solutions of these problems, and the merged rows that they are about."""

            _, among = scheme.signs(group[0], rows.codes)
            places = np.flatnonzero(among)

            def heard(report: Report, point: Callable[[], Any]) -> None:
                with lock:
                    hearing(report, lambda: (point(), places), watch)

            if not places.size:  # both classes of a pair have weight 0
                return [(KernelSolution.nothing(), places)]
            contradicted = {k for k in group if problem.hard and question(k).contradictory()}
            parts = [
                Part(
                    problem,
                    scheme.signs(k, rows.codes[places])[0],
                    rows.weights[places],
                    algorithm,
                    reason,
                    int(drawn[k]),
                    labels[k],
                    exact=self._exact,
                    inseparable=lambda k=k: question(k).inseparable(),
                )
                for k in group
                if k not in contradicted
            ]
            # groups that are left share the time that is left
            part = watch.part(-(-(len(groups) - groups.index(group)) // side_by_side))
            stopping = Stopping(self.tol, max_iter, part, heard)
            found = iter(solve_kernel(sample.part(places), parts, stopping, self.cache_size) if parts else [])
            return [
                (KernelSolution.open(places.size) if k in contradicted else next(found), places)
                for k in group
            ]

        with Watch(self.max_time) as watch:

            @cache
            def question(k: int) -> _Question:
                part = rows.taking_part(*scheme.signs(k, codes))
                return _Question(problem, kernel, X, *part, scheme.sides(k, classes), watch)

            if side_by_side > 1:
                parallel: Any = Parallel(n_jobs=side_by_side, require="sharedmem")
                found: list[Any] = list(parallel(delayed(solved)(group, watch) for group in groups))
            else:
                found = [solved(group, watch) for group in groups]
            solutions = [one for group in found for one in group]
            verdicts: list[Verdict | None] = [None] * len(labels)
            for k, (solution, places) in enumerate(solutions):
                undecided = solution.status is Status.UNDECIDED and not solution.bounds.lower > 0.0
                if problem.hard and (undecided or question(k).proposes(solution)):
                    answer, verdicts[k] = question(k).answered(rows.spread(solution, places), self.tol)
                    solutions[k] = answer, None
        self.classes_, self.class_weight_ = classes, factors
        self.multi_class_, self.gamma_, self.shape_fit_ = self.multi_class, gamma, X.shape
        self._keep(problem, scheme, rows, labels, X, whole, solutions)
        keep_verdicts(self, labels, verdicts)
        for label, (solution, _) in zip(labels, solutions, strict=True):
            tasks.ended(label, solution.status)
        tasks.done()
        return self

    @property
    def fit_status_(self) -> int:
        """0 where the fit is certified to `tol`, else 1."""
        return int(self.status_ is not Status.CERTIFIED)

    # parameters

    def _problem(self) -> Problem:
        check_parameters(self)
        if not (isinstance(self.kernel, str) or callable(self.kernel)):
            raise ValueError(
                'kernel must be one of SVC\'s names, such as "rbf" or "linear", another of `pairwise_kernels`, or a '
                f"function of two matrices; got {self.kernel!r}."
            )
        require_boolean("break_ties", self.break_ties)
        require_number("cache_size", self.cache_size)
        if not self.cache_size > 0:
            raise ValueError(f"cache_size must be a positive number of megabytes; got {self.cache_size!r}.")
        for name in ("multi_class", "decision_function_shape"):
            if getattr(self, name) not in SCHEMES:
                raise ValueError(f'{name} must be "ovr" or "ovo"; got {getattr(self, name)!r}.')
        whole = isinstance(self.max_iter, Integral) and not isinstance(self.max_iter, bool)
        if not whole or (self.max_iter < 1 and self.max_iter != -1):
            raise ValueError(
                f"max_iter must be a whole number of rounds, at least 1, or -1 for no limit; got {self.max_iter!r}."
            )
        problem = Problem(
            loss=self.loss,
            C=float(self.C),
            intercept=self.intercept if self.fit_intercept else "none",
            intercept_scaling=float(self.intercept_scaling),
        )
        check_constant(problem)
        return problem

    def _named(self, problem: Problem) -> Algorithm | Decomposition:
        """The algorithm that is asked for."""
        algorithm = (
            "decomposition"
            if isinstance(self.algorithm, str) and self.algorithm == "auto"
            else self.algorithm
        )
        if isinstance(algorithm, str):
            if algorithm not in KERNEL_ALGORITHMS:
                raise ValueError(
                    f"algorithm must be 'auto', one of {', '.join(map(repr, KERNEL_ALGORITHMS))}, or an object such as "
                    f"PUMMA(); got {algorithm!r}."
                )
            algorithm = KERNEL_ALGORITHMS[algorithm]()
        elif not isinstance(algorithm, Algorithm | Decomposition):
            raise ValueError(f"algorithm must be a name or a rule object such as PUMMA(); got {algorithm!r}.")
        if isinstance(algorithm, Algorithm) and algorithm.refuses_kernels() is not None:
            raise ValueError(
                f"algorithm {algorithm.name!r} does not work with kernels: use {algorithm.refuses_kernels()}."
            )
        instead = algorithm.refuses(problem)
        if instead is not None:
            raise ValueError(
                f"algorithm {algorithm.name!r} does not solve loss={self.loss!r} with C={problem.C:g}: use {instead}, "
                'or algorithm="auto".'
            )
        return algorithm

    def _sparse(self) -> str | bool:
        """What is accepted of sparse matrices: a kernel matrix has no zeros to leave out."""
        return False if isinstance(self.kernel, str) and self.kernel == "precomputed" else "csr"

    # results

    def _keep(
        self,
        problem: Problem,
        scheme: Parts,
        rows: _Rows,
        labels: list[Any],
        X: Any,
        weights: np.ndarray,
        solutions: list[tuple[KernelSolution, np.ndarray | None]],
    ) -> None:
        kernel, n = rows.kernel, X.shape[0]
        sample, parts, supports = Sample(X, np.zeros(n), weights), [], []
        codes = rows.whole_codes
        for k, (solution, places) in enumerate(
            solutions
        ):  # one by one: zeros of all pairs would take much memory
            whole, (signs, among) = rows.spread(solution, places), scheme.signs(k, codes)
            part = replace(sample, y=signs, weights=np.where(among, weights, 0.0), like=sample)
            alpha = np.minimum(whole.point.alpha, problem.caps(part.weights))  # shares have been rounded
            parts.append(certificate(problem, kernel, part, whole.bounds, alpha))
            supports.append(_support(whole.point.coefficients))
        found = [solution for solution, _ in solutions]
        self.n_iter_ = max(solution.rounds for solution in found)
        self.status_ = worst(solution.status for solution in found)
        self.history_ = [report for solution in found for report in solution.history]
        if len(parts) == 1:
            self.certificate_: Certificate | Certificates = parts[0]
        else:
            self.certificate_ = Certificates(tuple(labels), tuple(parts))
        self._keep_machine(
            scheme, kernel, codes, X, supports, [solution.point.intercept for solution in found]
        )

    def _keep_machine(
        self,
        scheme: Parts,
        kernel: Kernel,
        codes: np.ndarray,
        X: Any,
        supports: list[tuple[np.ndarray, np.ndarray]],
        intercepts: list[float],
    ) -> None:
        """Keep what predicts, from places and coefficients of each problem."""
        n = X.shape[0]
        taking = np.zeros(n, dtype=bool)
        for places, _ in supports:
            taking[places] = True
        used = np.flatnonzero(taking)
        used = used[np.argsort(codes[used], kind="stable")]  # by class, as in SVC
        coefficients = _side_by_side(supports, used, n)
        self.support_ = used.astype(np.int32)
        self.n_support_ = np.bincount(codes[used], minlength=scheme.count).astype(np.int32)
        self.support_vectors_ = np.empty((0, n)) if isinstance(kernel, Precomputed) else X[used]
        self.dual_coef_ = scheme.packed(coefficients, codes[used])
        self.intercept_ = np.array(intercepts)
        self.make_machine(kernel)


def _support(coefficients: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The rows that take part, and their coefficients."""
    places = np.flatnonzero(coefficients)
    return places, coefficients[places]


def _side_by_side(supports: list[tuple[np.ndarray, np.ndarray]], used: np.ndarray, n: int) -> np.ndarray:
    """The coefficients (problems, rows) of these of n rows, from places and values of each problem."""
    column, out = np.empty(n, np.intp), np.zeros((len(supports), used.size))
    column[used] = np.arange(used.size)
    for line, (places, values) in zip(out, supports, strict=True):
        line[column[places]] = values
    return out


class _Rows:
    """The rows that a fit works on: of positive weight, equal ones of a class as one.

    With `in_order` they are in the order in which they first appear in the data.

    Attributes
    ----------
    X, codes, weights
        Distinct rows, the number of their class, and their total weight.
    rounded : float
        By how much the shares of equal rows may miss what they share, relative to it.
    whole_codes, whole : ndarray of shape (n,)
        The number of the class of every row of the fit, -1 where all of a class have weight 0; and its weight.
    """

    def __init__(
        self, kernel: Kernel, X: Any, codes: np.ndarray, weights: np.ndarray, in_order: bool
    ) -> None:
        self.kernel, self.whole_codes, self.whole = kernel, codes, weights
        self._used = np.flatnonzero(weights > 0.0)
        self._n = codes.size
        labels, weights = codes[self._used].astype(float), weights[self._used]
        if isinstance(kernel, Precomputed):
            self._merged = apart(labels, weights)
        else:
            some = X if self._used.size == self._n else X[self._used]
            self._merged = merge(some, labels, weights, in_order)
        halved = np.frexp(self._merged.shares)[0] == 0.5  # halves and quarters are exact
        copies = float(np.bincount(self._merged.groups).max(initial=0))
        self.rounded = 0.0 if halved.all() else (copies + 4.0) * float(np.finfo(float).eps)
        places = self._used[self._merged.places]
        self.X = X if np.array_equal(places, np.arange(self._n)) else kernel.part(X, places)
        self.codes, self.weights = self._merged.y.astype(np.intp), self._merged.weights

    def taking_part(self, signs: np.ndarray, among: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Labels and weights of all rows of the fit in one of its problems, and which rows take part."""
        here = np.where(among, self.whole, 0.0)
        return signs, here, np.flatnonzero(here > 0.0)

    def spread(self, solution: KernelSolution, places: np.ndarray | None) -> KernelSolution:
        """A solution on these distinct rows as one on all rows of the fit, which it is where there are no places."""
        if places is None:
            return solution
        alpha, coefficients, b = solution.point
        point = KernelPoint(self.scattered(alpha, places), self.scattered(coefficients, places), b)
        return replace(solution, point=point)

    def scattered(self, values: np.ndarray, places: np.ndarray) -> np.ndarray:
        """What belongs to these distinct rows, as the shares of all rows of the fit."""
        out, some = np.zeros(self._n), np.flatnonzero(values)  # most are 0, and pairs of classes are many
        order, starts = self._equal
        first, last = starts[places[some]], starts[places[some] + 1]
        whose = np.repeat(np.arange(some.size), last - first)
        within = np.arange(whose.size) - np.cumsum(last - first)[whose] + last[whose]
        every = order[within]
        out[self._used[every]] = values[some][whose] * self._merged.shares[every]
        return out

    @cached_property
    def _equal(self) -> tuple[np.ndarray, np.ndarray]:
        """The rows of positive weight, equal ones side by side, and where those of each distinct row begin."""
        groups = self._merged.groups
        counts = np.bincount(groups, minlength=self.codes.size)
        return np.argsort(groups, kind="stable"), np.concatenate([[0], np.cumsum(counts)])


@dataclass(frozen=True, eq=False)
class _Question:
    """Is there a separator at all? Asked where none was found."""

    problem: Problem
    kernel: Kernel
    X: Any
    y: np.ndarray
    weights: np.ndarray
    rows: np.ndarray  # that take part
    sides: tuple[Any, Any]
    watch: Watch

    @cached_property
    def verdict(self) -> Verdict:
        """The answer, one however often it is asked for."""
        X = self.kernel.part(self.X, self.rows)
        y = self.y[self.rows]
        task = fit_task(self.problem, X, y, self.sides, self.watch)
        return kernel_verdict(self.kernel, task, self.rows, self.y.size)

    def contradictory(self) -> bool:
        """Are there rows that contradict each other?"""
        X, y = self.kernel.part(self.X, self.rows), self.y[self.rows]
        return kernel_trivial_certificate(self.kernel, self.problem, X, y) is not None

    def inseparable(self) -> bool:
        """Is there a proof that no separator exists?"""
        return isinstance(self.verdict, Inseparable)

    def proposes(self, found: KernelSolution) -> bool:
        """Tell whether the question was asked during the fit, and its separator proves more than this solution."""
        if "verdict" not in vars(self):
            return False
        return isinstance(self.verdict, Separable) and not found.bounds.lower >= self.verdict.lo > 0.0

    def answered(self, found: KernelSolution, tol: float) -> tuple[KernelSolution, Verdict | None]:
        """Combine a solution with the verdict, which is returned where the model does not show it.

        The verdict's separator is an incumbent: the better of both is kept, with its certificate. What the model does
        not show is the proof that there is no separator, a question that is open, or a separator that no float64
        coefficients are known for: a polynomial, or a hyperplane in rational numbers.
        """
        verdict = self.verdict
        if isinstance(verdict, Inseparable):
            alpha = np.zeros(self.y.size)
            alpha[verdict.support] = verdict.alpha
            return self._at(found.point._replace(alpha=alpha), found, Status.INSEPARABLE), verdict
        separator = self._separator(verdict)
        if separator is not None:
            duals = (found.point.alpha, separator.alpha)
            status = Status.STALLED if found.status in (Status.UNDECIDED, Status.NOT_FINITE) else found.status
            points = [self._at(separator._replace(alpha=alpha), found, status) for alpha in duals]
            better = min(points, key=lambda point: point.bounds.upper)
            if better.bounds.lower > max(found.bounds.lower, 0.0):
                certified = self.problem.gap(better.bounds.lower, better.bounds.upper) <= tol
                return replace(better, status=Status.CERTIFIED if certified else status), None
        if found.bounds.lower > 0.0:
            return found, None
        return replace(found, status=self.watch.status() or Status.UNDECIDED), verdict

    def _at(self, point: KernelPoint, found: KernelSolution, status: Status) -> KernelSolution:
        sample = KernelSample(self.kernel, self.X)
        proof = all_bounds([self.problem], sample, [self.y], [self.weights], [point])[0]
        return replace(found, point=proof.point, bounds=proof.bounds, status=status)

    def _separator(self, verdict: Verdict) -> KernelPoint | None:
        """The function of a verdict, and its dual weights; None where float64 coefficients of rows are not known."""
        if isinstance(verdict, KernelSeparator):
            coefficients = verdict.coefficients
        elif isinstance(verdict, LinearSeparator):
            coefficients = _combination(self.X[self.rows], verdict.w)
        else:
            return None
        if coefficients is None:
            return None
        c, alpha = np.zeros(self.y.size), np.zeros(self.y.size)
        c[self.rows] = coefficients
        alpha[self.rows[verdict.certificate.support]] = verdict.certificate.dual
        return KernelPoint(alpha, c, verdict.b)


def _combination(X: Any, w: np.ndarray) -> np.ndarray | None:
    """The coefficients of rows whose sum is nearest to w, by least squares; None of data that are too large for them.

    What of w is no combination of rows has no part in their scores.
    """
    X, columns = without_empty_columns(X)
    w, (n, d) = columns.restrict(w), X.shape
    if n * d * min(n, d) > SOLVED:
        return None
    if not may_be_dense(X):  # the normal equations, of n rows and columns
        X, w = (X @ X.T).astype(float), X @ w
    dense = np.asarray(X.toarray() if sp.issparse(X) else X, dtype=float)
    try:
        return np.linalg.lstsq(dense.T, w)[0]
    except np.linalg.LinAlgError:
        return None
