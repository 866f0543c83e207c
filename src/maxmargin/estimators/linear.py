"""MaxMarginClassifier: the linear classifier with a certificate."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import KW_ONLY, dataclass
from typing import TYPE_CHECKING, Any

from ..fit.deadline import Deadline
from ..fit.report import Report
from ..numerics.files import place_of
from ..numerics.sizes import is_whole
from ..problem.problem import Problem
from . import validation
from .prediction import CertifiedClassifier, LinearDecision

if TYPE_CHECKING:
    from ..algorithms import Algorithm

CHECKS: validation.Checks = validation.COMMON | {
    # `Problem` checks the range of p
    "p": (lambda p: p == "log" or validation.is_real(p), 'a number from 1 to inf, or "log"; got p={!r}'),
    "norm_power": (
        lambda power: validation.is_real(power) and power in (1, 2),
        "2 (half the squared norm) or 1 (the norm itself); got {!r}",
    ),
    "max_iter": (lambda rounds: is_whole(rounds, 1), "a whole number of rounds, at least 1; got {!r}"),
    "memory": (
        validation.optional(validation.is_size),
        "a number of bytes, or a text such as '512MB' or '2GiB', or None; got {!r}",
    ),
    "cache_dir": (
        validation.optional(lambda path: isinstance(path, str | os.PathLike)),
        "a path, or None; got {!r}",
    ),
    "warm_start": (lambda warm: isinstance(warm, validation.BOOLEAN), "True or False; got {!r}"),
}


@dataclass(eq=False, repr=False)
class MaxMarginClassifier(LinearDecision, CertifiedClassifier):
    """Linear maximum-margin classification with a proof.

    Minimises ``1/2 |w|^2 + C sum s_i max(0, 1 - y_i (w.x_i + b))`` (hinge) or the same with squared losses, or
    finds the largest margin (``C=inf``); s_i is the weight of row i. The intercept is not regularised. Several classes
    are solved one against the rest. The result has a certified lower and upper bound on the best possible objective (or
    margin); the fit ends when their relative gap is at most `tol`.

    Parameters
    ----------
    C : float, default=1.0
        Weight of the losses; ``inf`` is the hard margin.
    loss : {"squared_hinge", "hinge"}, default="squared_hinge"
    p : float in [1, inf] or "log", default=2
        Norm in which distance is measured; |w| is its dual norm. With ``inf``, the 1-norm of w, few entries of `coef_`
        are large; with 1 the largest entry is bounded. ``"log"`` is max(2, 2 ln n_features), close to ``inf``, where
        the update bounds of PUMMA and ALMA grow only as ln n_features.
    norm_power : {2, 1}, default=2
        1 replaces ``1/2 |w|^2`` by ``|w|``, as in the linear programs of the papers.
    tol : float, default=1e-3
        Certified relative gap at which the fit ends. Soft problems: (primal - dual) / dual. Hard margin:
        1 - lower / upper. Several classes: the largest.
    fit_intercept : bool, default=True
    intercept_scaling : float, default=None
        None is an unregularised intercept. A number is the value of a constant feature whose weight is regularised,
        as in LinearSVC.
    class_weight : dict or "balanced", default=None
        Every row's weight is multiplied by that of its class. ``"balanced"`` counts sample weights.
    algorithm : str or Algorithm, default="auto"
        A name from `maxmargin.algorithms.ALGORITHMS` or an object such as ``MPU(delta=1e-5)``. It never changes the
        problem, only the method of solution. ``"auto"`` chooses by p, loss and size, and states the reason in
        `history_` (docs/reference/algorithms.md has the rule). p = 2: the exact stage for small
        problems; Newton's method for squared losses of up to 1000 features; proximal points for the hinge on dense
        rows, if these are at least as many as features squared; otherwise dual coordinate descent, followed by proximal
        points or Newton's method where it converges slowly. p = inf with squared losses: `proximal-newton`. Other p:
        interior points, `lp` for linear problems of few rows at p = inf or large ones, otherwise `dcd` (soft) or `ima`
        (hard).
    max_iter : int, default=1000
        Largest number of rounds per class. A round is an evaluation of all rows and the sweeps before it, or one
        iterate of a batch solver.
    max_time : float, default=None
        Seconds after which the best model so far is kept, with its gap. They include the compilation of the first fit
        of a kind on a machine, and the loading of compiled code by the first fit of a process, about a second; neither
        can be interrupted. The first reading of files, or of rows on a cluster, is ended with a ReadingStoppedError:
        without labels there is no model.
    callback : callable, default=None
        Called with a `Report` after every round; if it returns a true value, the fit ends with the best model so far.
    warm_start : bool, default=False
        Start from the last fit, if it had the same classes. Its model is the result of a fit that is stopped before a
        better one is found. `dcd` and `mpu` start from its dual variables if the number of rows is the same, and
        `newton` from its weights if the number of features is.
    memory : int, float or str, default=None
        Bytes that the fit may use, such as 2e9 or "2GB". Rows that need more are read in blocks, pass after pass, from
        X, which may be a memory map of a file; the fit keeps a sample of the rows, and the rows near the margin. For
        soft margins at p = 2. None: arrays are in memory, and files may take half of the free memory.
    cache_dir : str or path-like, default=None
        The folder for the rows of files; None for ``maxmargin`` in the user's cache folder, as ``~/.cache`` of Linux.
    n_jobs : int, default=None
        Classes solved at the same time (threads; no more than there are processors, and one if all classes are
        solved in milliseconds, or rows exceed `memory`). The model does not depend on it.
    random_state : int, RandomState instance or None, default=None
        Order of presentation. None draws a new seed.
    verbose : int, default=0
        1 prints a line for each round to standard error, and one with the reason when another algorithm begins.

    Attributes
    ----------
    coef_ : ndarray of shape (1, n_features) or (n_classes, n_features)
    intercept_ : ndarray of shape (1,) or (n_classes,)
    classes_ : ndarray of shape (n_classes,)
    class_weight_ : ndarray of shape (n_classes,)
        The factor on the weight of every row of a class.
    n_features_in_ : int
    feature_names_in_ : ndarray of shape (n_features,)
        Only if X had string column names.
    n_iter_ : int
        Number of rounds; the largest of all classes.
    status_ : Status
        How the fit ended; the worst of all classes.
    message_ : str
        Why the fit ended so, and if it is not certified, what to try.
    certificate_ : Certificate or Certificates
        The bounds and the dual variables that prove them; `verify` recomputes them from the data.
    history_ : list of Report
    verdict_ : Inseparable or Undecided, or dict of them
        Only for a hard margin without a separator in float64. INSEPARABLE: the rational weights that prove that no
        separator exists. UNDECIDED: the bounds so far. Its method ``verify(X, y)`` checks it. With several classes a
        dict: the verdict about ``y == label`` for each label without a separator.

    Raises
    ------
    ValueError
        If data or parameters cannot be used; the message names the remedy.

    See Also
    --------
    verify : Recompute every number of the certificate from the data.

    Notes
    -----
    The first Ctrl-C ends the fit with the best model so far, as `max_time` does, and then raises KeyboardInterrupt; the
    second raises it at once, and the estimator is as it was before.

    At p = 2, unless an algorithm without convergence to the optimum is named, problems of up to 2000 rows and 300
    columns (and others: `docs/reference/algorithms.md` has the rule) end with the exact stage, which solves the
    optimality conditions on the support. The result is then the optimum to rounding. It does not depend on the order of
    rows, on the seed, or on whether rows are copied or weighted (with more than 500 columns, up to rounding). Other
    fits end at `tol`.

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
    intercept_scaling: float | None = None
    class_weight: Any = None
    algorithm: str | Algorithm = "auto"
    max_iter: int = 1000
    max_time: float | None = None
    callback: Callable[[Report], Any] | None = None
    warm_start: bool = False
    memory: Any = None
    cache_dir: Any = None
    n_jobs: int | None = None
    random_state: Any = None
    verbose: int = 0

    @validation.restored_after(BaseException)
    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> MaxMarginClassifier:
        """Find the maximum-margin classifier, and certify it.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features), path, or list of paths
            float32 and float64 are not converted. Files: svmlight text, CSV, Parquet, Arrow, patterns such as
            ``data/*.csv``, and folders of tables; they are read once, and their rows are kept on disk (`cache_dir`).
            Arrow data: a ``pyarrow.dataset.Dataset``, table or stream, or a data frame of which y names a column; the
            rows are on disk (`cache_dir`) during the fit. A Dask array or data frame, or a Spark frame: its rows stay
            where they are (`docs/howto/dask.md`, `docs/howto/spark.md`).
        y : array-like of shape (n_samples,), or str
            The name of the label column of files, Arrow data and frames of Dask and Spark; for files and Arrow data by
            default that named label, target, class or y, or the last one. For a Dask collection also one with the same
            partitions; as is `sample_weight`.
        sample_weight : array-like of shape (n_samples,), default=None
            Factor on each row's loss; weight k is equal to k copies of the row, weight 0 leaves it out. With ``C=inf``
            all positive weights are equal.

        Returns
        -------
        self : MaxMarginClassifier
        """
        problem, deadline = self._problem(), Deadline(self.max_time)
        if self.memory is None and place_of(X, y) == "memory":
            from .linear_tasks import fit_in_memory  # only here: it loads solvers and certificates

            fit_in_memory(self, problem, X, y, sample_weight, deadline)
        else:
            from .partitioned import fit_rows  # only here: it loads readers and partitions

            fit_rows(self, problem, X, y, sample_weight, deadline)
        deadline.raise_interrupt(self)
        return self

    def _problem(self) -> Problem:
        """Check the parameters, and return the problem that they state."""
        validation.check_parameters(self, CHECKS)
        # until the number of features is known, a large p, which is no special norm of any algorithm
        p = 100.0 if self.p == "log" else float(self.p)
        scaling = 1.0 if self.intercept_scaling is None else float(self.intercept_scaling)
        kind = "free" if self.intercept_scaling is None else "augmented"
        intercept = kind if self.fit_intercept else "none"
        power = int(self.norm_power)
        return Problem(self.loss, float(self.C), p, intercept, intercept_scaling=scaling, power=power)
