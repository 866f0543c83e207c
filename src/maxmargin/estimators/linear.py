"""MaxMarginClassifier: the linear classifier with a certificate."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import replace
from numbers import Integral, Real
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin

from ..algorithms import ALGORITHMS, Algorithm
from ..certificates.certificate import INTERCEPT, Certificate, Certificates
from ..data.rows import Patterns
from ..fit.report import Report, Solution
from ..numerics.representable import refuse_rounded
from ..numerics.sparse_columns import Columns, without_empty_columns
from ..numerics.threads import one_thread
from ..problem.problem import Problem
from ..problem.status import worst
from ..separability.linear import on_all_columns
from .callbacks import CallbackSupportMixin, round_tasks, with_callbacks
from .hard_margin import keep_verdicts
from .labels import check_costs, check_sides, class_factors, class_names, row_weights, times_classes
from .one_vs_rest import OneVsRest, TrainingData
from .parameters import check_parameters, check_seed, require_boolean, require_number
from .prediction import LinearDecision
from .progress import Hearing
from .robustness import Robust
from .rollback import unchanged_by
from .rows import are_ready, checked_rows, count_columns

LARGE_P = 100.0  # stands for p="log" until the number of features is known


class MaxMarginClassifier(LinearDecision, Robust, CallbackSupportMixin, ClassifierMixin, BaseEstimator):
    """Linear maximum-margin classification with a proof.

    Minimises ``1/2 |w|^2 + C sum s_i max(0, 1 - y_i (w.x_i + b))`` (hinge) or the same with squared losses, or
    finds the largest margin (``C=inf``). The intercept is not regularised. Several classes are solved one
    against the rest. The answer comes with a lower and an upper bound on the best possible objective (or
    margin); `tol` is their certified relative gap.

    Parameters
    ----------
    C : float, default=1.0
        Weight of the losses; ``inf`` is the hard margin.
    loss : {"squared_hinge", "hinge"}, default="squared_hinge"
    p : float in [1, inf] or "log", default=2
        Norm in which distance is measured; |w| is the dual norm of it. Large p makes `coef_` sparse (``inf``: the
        1-norm of w), p = 1 bounds all of its entries alike. ``"log"`` is max(2, 2 ln n_features), nearly ``inf``
        with the mistake bounds that the papers prove.
    norm_power : {2, 1}, default=2
        1 puts ``|w|`` in the place of ``1/2 |w|^2``, as the papers' linear programs do.
    tol : float, default=1e-3
        Certified relative gap at which the fit ends. Soft problems: (primal - dual) / dual. Hard margin:
        1 - lower / upper. Several classes: the largest.
    fit_intercept : bool, default=True
    intercept : {"free", "augmented"}, default="free"
        ``"free"`` is the unregularised intercept; ``"augmented"`` a feature of constant value
        `intercept_scaling`, whose weight is regularised, as in LinearSVC.
    intercept_scaling : float, default=1.0
        Used with ``intercept="augmented"``.
    class_weight : dict or "balanced", default=None
        Every row's weight is multiplied by that of its class. ``"balanced"`` counts sample weights.
    algorithm : str or Algorithm, default="auto"
        A name from `maxmargin.algorithms.ALGORITHMS` or an object such as ``MPU(delta=1e-5)``. It never changes the
        problem, only the way to its solution. ``"auto"`` chooses by p, loss and size, and says why in `history_`
        (`docs/choice.md` has the rule and its measurements): for p = 2 the exact step where problems are small;
        Newton's method for squared losses of up to 1000 features; proximal points for the hinge on dense rows, at
        least as many as features squared; else dual coordinate descent, which hands over to proximal points, or to
        Newton's method, where these are the faster. For other p exact programs where these are small enough or
        linear, else `pumma` (2 < p < inf) or `ima`.
    max_iter : int, default=1000
        Most rounds (a full look at the data and the sweeps after it) per class.
    max_time : float, default=None
        Seconds after which the best model so far is kept, with its gap. They include compiling, which a machine's first
        fit of a kind needs, and which nothing interrupts.
    callback : callable, default=None
        Called with a `Report` after every round; a true answer ends the fit with the best model so far. Callbacks and
        progress bars of scikit-learn are set with ``set_callbacks`` (scikit-learn 1.9; docs/scikit_learn.md).
    warm_start : bool, default=False
        Begin where the last fit ended, if it had the same classes: that model is the best so far until a better one is
        found, however early the fit is stopped. Algorithms begin with its dual weights, if there were as many rows
        and the algorithm can begin with any (`dcd`, `mpu`, `alma`); with its weights, if there were as many features
        and the algorithm moves these (`fmp`, `ima`).
    n_jobs : int, default=None
        Classes solved at the same time (threads; no more than there are processors, and one where all classes are
        solved in milliseconds). The model does not depend on it.
    random_state : int, RandomState instance or None, default=None
        Order of presentation. None takes a fresh seed.
    verbose : int, default=0
        1 prints a line a round to standard error, and one where another algorithm begins, with the reason.

    Attributes
    ----------
    coef_ : ndarray of shape (1, n_features) or (n_classes, n_features)
    intercept_ : ndarray of shape (1,) or (n_classes,)
    classes_ : ndarray of shape (n_classes,)
    class_weight_ : ndarray of shape (n_classes,)
        The factor on every row of a class.
    n_features_in_ : int
    feature_names_in_ : ndarray of shape (n_features,)
        Only where X had string column names.
    n_iter_ : int
        Rounds; the most of all classes.
    status_ : Status
        How the fit ended; the worst of all classes.
    certificate_ : Certificate or Certificates
        The bounds and the dual weights that prove them; `verify` rechecks them from the data.
    history_ : list of Report
    verdict_ : Inseparable or Undecided, or dict of these
        Only of a hard margin for which no separator was found: with INSEPARABLE the rational weights that prove that
        there is none, with UNDECIDED the bounds so far (or, as LinearSeparator, one that takes more digits than float64
        has); ``verify(X, y)`` checks each. Of several classes those without one, by label, about ``y == label``.

    Raises
    ------
    ValueError
        If data or parameters cannot be used; the message says what to do.

    See Also
    --------
    verify : Recompute every number of the certificate from the data.

    Notes
    -----
    The first Ctrl-C ends the fit with the best model so far, as `max_time` does; the second raises
    KeyboardInterrupt.

    Small problems (up to 2000 rows: `docs/architecture.md` has the rule) end with a step that solves the
    optimality conditions on the support exactly: the answer is then the optimum to rounding, the same for any row
    order, for copies and weights, and for any seed (of more than 500 columns: but for rounding).

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from maxmargin import MaxMarginClassifier, verify
    >>> X, y = load_iris(return_X_y=True)
    >>> clf = MaxMarginClassifier(random_state=0).fit(X, y)
    >>> clf.status_
    <Status.CERTIFIED: 'CERTIFIED'>
    >>> verify(clf, X, y).gap < 1e-8
    True
    """

    _exact = True  # small problems end with the exact step; a comparison of algorithms does without

    def __init__(
        self,
        C: float = 1.0,
        *,
        loss: str = "squared_hinge",
        p: float | str = 2,
        norm_power: int = 2,
        tol: float = 1e-3,
        fit_intercept: bool = True,
        intercept: str = "free",
        intercept_scaling: float = 1.0,
        class_weight: Any = None,
        algorithm: str | Algorithm = "auto",
        max_iter: int = 1000,
        max_time: float | None = None,
        callback: Callable[[Report], Any] | None = None,
        warm_start: bool = False,
        n_jobs: int | None = None,
        random_state: Any = None,
        verbose: int = 0,
    ) -> None:
        self.C = C
        self.loss = loss
        self.p = p
        self.norm_power = norm_power
        self.tol = tol
        self.fit_intercept = fit_intercept
        self.intercept = intercept
        self.intercept_scaling = intercept_scaling
        self.class_weight = class_weight
        self.algorithm = algorithm
        self.max_iter = max_iter
        self.max_time = max_time
        self.callback = callback
        self.warm_start = warm_start
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.verbose = verbose

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> MaxMarginClassifier:
        """Find the maximum-margin classifier and prove how good it is.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            float32 and float64 are kept as they come.
        y : array-like of shape (n_samples,)
        sample_weight : array-like of shape (n_samples,), default=None
            Factor on each row's loss; weight k is k copies of the row, 0 leaves it out. With ``C=inf`` a
            weight only keeps or drops a row.

        Returns
        -------
        self : MaxMarginClassifier
        """
        with unchanged_by(BaseException, self), one_thread:
            return self._fit(X, y, sample_weight)

    @with_callbacks
    def _fit(self, X: Any, y: Any, sample_weight: Any) -> MaxMarginClassifier:
        """Validate, encode the labels, solve one binary task per class, store the solutions."""
        problem, named = self._problem(), self._named()
        if self.p != "log":
            _solved_by(named, problem)
        if problem.hard:
            refuse_rounded(X)
        data = self._training_data(problem, X, y, sample_weight)
        if self.p == "log":
            problem = replace(problem, p=max(2.0, 2.0 * np.log(data.columns.count)))
            _solved_by(named, problem)
        check_seed(self.random_state)
        classes = OneVsRest(self, problem, named, data, self._last_dual(data), self._last_points(data))
        tasks = round_tasks(
            self, data.given, data.y, sample_weight, data.labels, classes.workers == 1, data.model
        )
        solutions = classes.solve(tasks, Hearing(self.verbose, self.callback, tasks))
        self._keep(data, solutions)
        tasks.done()
        return self

    def _training_data(self, problem: Problem, X: Any, y: Any, sample_weight: Any) -> TrainingData:
        """Validate the data, drop columns without entries, encode the labels and weight the rows."""
        given, patterns, X, y, columns = self._patterns(X, y)
        weights = row_weights(X, sample_weight)
        keeps_all = sample_weight is None or bool((weights > 0.0).all())
        classes = class_names(y if keeps_all else y[weights > 0.0])
        factors = class_factors(self.class_weight, classes, y, weights)
        if self.class_weight is not None:
            weights = times_classes(weights, y, classes, factors)
            keeps_all = bool((weights > 0.0).all())
        check_costs(problem, weights)
        rows = None if keeps_all else np.flatnonzero(weights > 0.0)
        if rows is not None:
            check_sides(classes, y, weights, problem.hard)
        return TrainingData(given, X, columns, patterns, y, weights, rows, classes, factors)

    def _patterns(self, X: Any, y: Any) -> tuple[Any, Patterns, Any, np.ndarray, Columns]:
        """The rows, checked; these on the columns with entries, for the engine and for certificates; the labels."""
        how = {"accept_sparse": "csr", "order": "C", "accept_large_sparse": True}
        if are_ready(X, y):
            whole, labels = X, y
            count_columns(self, X)
        else:
            try:
                whole, labels = checked_rows(self, X, y, ensure_all_finite=False, **how)
            except ValueError:
                checked_rows(self, X, y, **how)  # entries are told first
                raise
        given, (whole, columns) = whole, without_empty_columns(whole)
        patterns = Patterns(whole)
        if not math.isfinite(patterns.longest2):  # an entry is no number, or its square is beyond them
            checked_rows(self, X, y, **how)
        return given, patterns, whole, labels, columns

    # parameters

    def _problem(self) -> Problem:
        if self.p != "log" and (not isinstance(self.p, Real) or isinstance(self.p, bool)):
            raise ValueError(f'p must be a number from 1 to inf, or "log"; got p={self.p!r}.')
        require_number("norm_power", self.norm_power)
        if self.norm_power not in (1, 2):
            raise ValueError(
                f"norm_power must be 2 (half the squared norm) or 1 (the norm itself); got {self.norm_power!r}."
            )
        check_parameters(self)
        if not isinstance(self.max_iter, Integral) or isinstance(self.max_iter, bool) or self.max_iter < 1:
            raise ValueError(f"max_iter must be a whole number of rounds, at least 1; got {self.max_iter!r}.")
        require_boolean("warm_start", self.warm_start)
        return Problem(
            loss=self.loss,
            C=float(self.C),
            p=LARGE_P if self.p == "log" else float(self.p),
            intercept=self.intercept if self.fit_intercept else "none",
            intercept_scaling=float(self.intercept_scaling),
            power=int(self.norm_power),
        )

    def _named(self) -> Algorithm | None:
        """The algorithm that is asked for; None where it is to be chosen."""
        algorithm = self.algorithm
        if isinstance(algorithm, str):
            name = algorithm
            if name == "auto":
                return None
            if name not in ALGORITHMS:
                raise ValueError(
                    f"algorithm must be 'auto', one of {', '.join(map(repr, ALGORITHMS))}, or an object such as "
                    f"MPU(); got {algorithm!r}."
                )
            algorithm = ALGORITHMS[name]()
        elif not isinstance(algorithm, Algorithm):
            raise ValueError(f"algorithm must be a name or a rule object such as MPU(); got {algorithm!r}.")
        if algorithm.schedule not in algorithm.schedules:
            raise ValueError(
                f"{algorithm.name} has the schedules {', '.join(map(repr, algorithm.schedules))}; "
                f"got {algorithm.schedule!r}."
            )
        return algorithm

    def _last_dual(self, data: TrainingData) -> list[np.ndarray] | None:
        """Return the dual variables of the last fit, where a warm start may use them."""
        if not (self.warm_start and hasattr(self, "certificate_")):
            return None
        if not np.array_equal(data.classes, self.classes_):
            return None
        parts = self.certificate_.certificates
        return [part.alpha for part in parts] if parts[0].rows == data.y.size else None

    def _last_points(self, data: TrainingData) -> list[tuple[np.ndarray, float]] | None:
        """Return (w, b) of the last fit on these columns, where a warm start may use them."""
        if not (self.warm_start and hasattr(self, "certificate_")):
            return None
        same = self.coef_.shape[1] == data.columns.count and np.array_equal(data.classes, self.classes_)
        if not same:
            return None
        coef = data.columns.restrict(self.coef_)
        return [(w, float(b)) for w, b in zip(coef, self.intercept_, strict=True)]

    # results

    def _keep(self, data: TrainingData, solutions: list[Solution]) -> None:
        """Set the fitted attributes."""
        labels, columns = data.labels, data.columns
        self.classes_, self.class_weight_ = data.classes, data.class_weights
        self.coef_ = columns.restore(np.array([solution.w for solution in solutions]))
        self.intercept_ = np.array([solution.b for solution in solutions])
        self.n_iter_ = max(solution.rounds for solution in solutions)
        self.status_ = worst(solution.status for solution in solutions)
        self.history_ = [report for solution in solutions for report in solution.history]
        found = [solution.verdict for solution in solutions]
        verdicts = [None if verdict is None else on_all_columns(verdict, columns) for verdict in found]
        keep_verdicts(self, labels, verdicts)
        if len(solutions) == 1:
            self.certificate_: Certificate | Certificates = solutions[0].certificate
        else:
            self.certificate_ = Certificates(tuple(labels), tuple(s.certificate for s in solutions))


class WithoutExactStep(MaxMarginClassifier):
    """The same, where small problems do not end with the exact step."""

    _exact = False


def _solved_by(algorithm: Algorithm | None, problem: Problem) -> None:
    """Refuse a problem that the algorithm does not solve."""
    instead = None if algorithm is None else algorithm.refuses(problem)
    if algorithm is not None and instead is not None:
        raise ValueError(
            f"algorithm {algorithm.name!r} does not solve {_asked(problem)}: use {instead}, or another algorithm "
            f"({', '.join(_who_solves(problem)) or 'none solves it'})."
        )


def _asked(problem: Problem) -> str:
    """The problem in words."""
    norm = "" if problem.power == 2 else ", the norm to the first power"
    return f"loss={problem.loss!r} with C={problem.C:g}, p={problem.p:g}{norm} and {INTERCEPT[problem.intercept]}"


def _who_solves(problem: Problem) -> Iterator[str]:
    for name, cls in ALGORITHMS.items():
        if cls().refuses(problem) is None:
            yield name
