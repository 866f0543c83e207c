"""MaxMarginClassifier: the linear classifier with a certificate."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import KW_ONLY, dataclass, replace
from typing import Any

import numpy as np

from ..algorithms import ALGORITHMS, Algorithm
from ..certificates.certificate import INTERCEPT
from ..data.rows import Patterns
from ..fit.report import Report, Solution
from ..numerics.representable import refuse_rounded
from ..numerics.sparse_columns import without_empty_columns
from ..problem.problem import Problem
from ..separability.linear import on_all_columns
from .prediction import CertifiedClassifier, LinearDecision, Robust
from .progress import Reporter
from .tasks import LinearTasks, TrainingData, store_results
from .validation import (
    BOOLEAN,
    COMMON,
    NORM,
    Checks,
    check_parameters,
    encode_targets,
    is_number,
    is_whole,
    named_algorithm,
    restored_after,
    validate_rows,
)

LARGE_P = 100.0  # stands for p="log" until the number of features is known
CHECKS: Checks = (
    NORM
    | COMMON
    | {
        "norm_power": (
            lambda power: is_number(power) and power in (1, 2),
            "norm_power must be 2 (half the squared norm) or 1 (the norm itself); got {!r}.",
        ),
        "max_iter": (
            lambda rounds: is_whole(rounds, 1),
            "max_iter must be a whole number of rounds, at least 1; got {!r}.",
        ),
        "warm_start": (lambda warm: isinstance(warm, BOOLEAN), "warm_start must be True or False; got {!r}."),
    }
)


@dataclass(eq=False, repr=False)
class MaxMarginClassifier(LinearDecision, Robust, CertifiedClassifier):
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

    C: float = 1.0
    _: KW_ONLY
    loss: str = "squared_hinge"
    p: float | str = 2
    norm_power: int = 2
    tol: float = 1e-3
    fit_intercept: bool = True
    intercept: str = "free"
    intercept_scaling: float = 1.0
    class_weight: Any = None
    algorithm: str | Algorithm = "auto"
    max_iter: int = 1000
    max_time: float | None = None
    callback: Callable[[Report], Any] | None = None
    warm_start: bool = False
    n_jobs: int | None = None
    random_state: Any = None
    verbose: int = 0

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags

    @restored_after(BaseException)
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
        problem = self._problem()
        if problem.hard:
            refuse_rounded(X)
        given, y = validate_rows(self, X, y, order="C")
        rows, columns = without_empty_columns(given)
        targets = encode_targets(problem, self.class_weight, rows, y, sample_weight)
        if self.p == "log":
            problem = replace(problem, p=max(2.0, 2.0 * np.log(columns.count)))
        algorithm = linear_algorithm(self.algorithm, problem)
        data = TrainingData(given, rows, columns, Patterns(rows), targets)
        start = self._last_solution(data) if self.warm_start else (None, None)
        tasks = LinearTasks(self, problem, algorithm, data, *start)
        reporter = Reporter(self, given, y, sample_weight, tasks.names, tasks.workers == 1, data.model)
        self._store(data, tasks.names, tasks.solve(reporter))
        reporter.end()
        return self

    def _problem(self) -> Problem:
        """Check the parameters, and return the problem that they state."""
        check_parameters(self, CHECKS)
        return Problem(
            loss=self.loss,
            C=float(self.C),
            p=LARGE_P if self.p == "log" else float(self.p),
            intercept=self.intercept if self.fit_intercept else "none",
            intercept_scaling=float(self.intercept_scaling),
            power=int(self.norm_power),
        )

    def _last_solution(
        self, data: TrainingData
    ) -> tuple[list[np.ndarray] | None, list[tuple[np.ndarray, float]] | None]:
        """Return the dual variables and the (w, b) of the last fit, where a warm start may use them; else None."""
        if not np.array_equal(data.targets.classes, getattr(self, "classes_", ())):
            return None, None
        parts = self.certificate_.certificates
        duals = [part.alpha for part in parts] if parts[0].rows == data.targets.y.size else None
        if self.coef_.shape[1] != data.columns.count:
            return duals, None
        coef = data.columns.restrict(self.coef_)
        return duals, [(w, float(b)) for w, b in zip(coef, self.intercept_, strict=True)]

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


def linear_algorithm(algorithm: Any, problem: Problem | None = None) -> Algorithm | None:
    """Return the algorithm of a linear classifier; None for "auto".

    Raises
    ------
    ValueError
        If there is no such algorithm, or it does not solve the problem; the message names those that do.
    """
    if isinstance(algorithm, str) and algorithm == "auto":
        return None
    algorithm = named_algorithm(algorithm, ALGORITHMS, ALGORITHMS, "MPU()", Algorithm)
    if algorithm.schedule not in algorithm.schedules:
        raise ValueError(
            f"{algorithm.name} has the schedules {', '.join(map(repr, algorithm.schedules))}; "
            f"got {algorithm.schedule!r}."
        )
    instead = None if problem is None else algorithm.refuses(problem)
    if problem is not None and instead is not None:
        power = "" if problem.power == 2 else ", the norm to the first power"
        described = f"loss={problem.loss!r} with C={problem.C:g}, p={problem.p:g}{power}"
        solvers = [name for name, cls in ALGORITHMS.items() if cls().refuses(problem) is None]
        raise ValueError(
            f"algorithm {algorithm.name!r} does not solve {described} and {INTERCEPT[problem.intercept]}: use "
            f"{instead}, or another algorithm ({', '.join(solvers) or 'none solves it'})."
        )
    return algorithm


class WithoutExactStep(MaxMarginClassifier):
    """`MaxMarginClassifier` without the exact step at the end of small problems."""

    _exact = False
