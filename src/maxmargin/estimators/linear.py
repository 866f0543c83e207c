"""MaxMarginClassifier: the linear classifier with a certificate."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin

from ..algorithms import Algorithm
from ..certificates.certificate import Certificate, Certificates
from ..data.rows import Patterns
from ..fit.report import Report, Solution
from ..numerics.representable import refuse_rounded
from ..numerics.sparse_columns import without_empty_columns
from ..numerics.threads import one_thread
from ..problem.problem import Problem
from ..problem.status import Status
from ..separability.linear import on_all_columns
from .algorithm_parameter import check_solves, linear_algorithm
from .prediction import LinearDecision
from .progress import CallbackSupportMixin, Reporter, with_callbacks
from .robustness import Robust
from .rollback import unchanged_by
from .targets import encode_targets
from .tasks import LinearTasks, TrainingData, store_results
from .validation import (
    check_p,
    check_parameters,
    check_seed,
    is_whole,
    needs_no_conversion,
    require_boolean,
    require_number,
    set_feature_count,
    validate_rows,
)

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

    n_iter_: int
    status_: Status
    history_: list[Report]
    certificate_: Certificate | Certificates
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
        problem, algorithm = self._problem(), linear_algorithm(self.algorithm)
        if self.p != "log":
            check_solves(algorithm, problem)
        if problem.hard:
            refuse_rounded(X)
        data = self._training_data(problem, X, y, sample_weight)
        if self.p == "log":
            problem = replace(problem, p=max(2.0, 2.0 * np.log(data.columns.count)))
            check_solves(algorithm, problem)
        check_seed(self.random_state)
        tasks = LinearTasks(self, problem, algorithm, data, self._last_dual(data), self._last_points(data))
        reporter = Reporter(
            self, data.given, data.targets.y, sample_weight, tasks.names, tasks.workers == 1, data.model
        )
        self._store(data, tasks.names, tasks.solve(reporter))
        reporter.end()
        return self

    def _training_data(self, problem: Problem, X: Any, y: Any, sample_weight: Any) -> TrainingData:
        """Validate the data, drop columns without entries, encode the labels and weight the rows."""
        options = {"accept_sparse": "csr", "order": "C", "accept_large_sparse": True}
        if needs_no_conversion(X, y):
            given, labels = X, y
            set_feature_count(self, X)
        else:
            try:
                given, labels = validate_rows(self, X, y, ensure_all_finite=False, **options)
            except ValueError:
                validate_rows(self, X, y, **options)  # errors in entries come before others
                raise
        rows, columns = without_empty_columns(given)
        patterns = Patterns(rows)
        if not math.isfinite(patterns.longest2):  # an entry is NaN or infinite, or its square overflows
            validate_rows(self, X, y, **options)
        targets = encode_targets(problem, self.class_weight, rows, labels, sample_weight)
        return TrainingData(given, rows, columns, patterns, targets)

    # parameters

    def _problem(self) -> Problem:
        """Check the parameters, and return the problem that they state."""
        check_p(self.p)
        require_number("norm_power", self.norm_power)
        if self.norm_power not in (1, 2):
            raise ValueError(
                f"norm_power must be 2 (half the squared norm) or 1 (the norm itself); got {self.norm_power!r}."
            )
        check_parameters(self)
        if not is_whole(self.max_iter) or self.max_iter < 1:
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

    # warm start

    def _last_dual(self, data: TrainingData) -> list[np.ndarray] | None:
        """Return the dual variables of the last fit, where a warm start may use them."""
        if not self._has_last_fit(data):
            return None
        parts = self.certificate_.certificates
        return [part.alpha for part in parts] if parts[0].rows == data.targets.y.size else None

    def _last_points(self, data: TrainingData) -> list[tuple[np.ndarray, float]] | None:
        """Return (w, b) of the last fit on these columns, where a warm start may use them."""
        if not self._has_last_fit(data) or self.coef_.shape[1] != data.columns.count:
            return None
        coef = data.columns.restrict(self.coef_)
        return [(w, float(b)) for w, b in zip(coef, self.intercept_, strict=True)]

    def _has_last_fit(self, data: TrainingData) -> bool:
        """Return whether there is a warm start from a fit with the same classes."""
        warm = self.warm_start and hasattr(self, "certificate_")
        return warm and np.array_equal(data.targets.classes, self.classes_)

    # results

    def _store(self, data: TrainingData, names: list[Any], solutions: list[Solution]) -> None:
        """Set the fitted attributes."""
        self.classes_, self.class_weight_ = data.targets.classes, data.targets.class_weights
        self.coef_ = data.columns.restore(np.array([solution.w for solution in solutions]))
        self.intercept_ = np.array([solution.b for solution in solutions])
        verdicts = [
            None if solution.verdict is None else on_all_columns(solution.verdict, data.columns)
            for solution in solutions
        ]
        certificates = [solution.certificate for solution in solutions]
        store_results(self, names, solutions, certificates, verdicts)


class WithoutExactStep(MaxMarginClassifier):
    """`MaxMarginClassifier` without the exact step at the end of small problems."""

    _exact = False
