"""Fitted classifiers: scores, labels and certified radii, and why a fit ended as it did."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from copy import copy
from itertools import repeat
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils.extmath import safe_sparse_dot
from sklearn.utils.validation import check_is_fitted

from ..certificates.certificate import Certificate, Certificates
from ..fit.report import Report
from ..kernels.functions import Kernel, Linear, Precomputed
from ..numerics.columns import dominant, label_array
from ..numerics.files import place_of
from ..numerics.progress import announce
from ..numerics.sizes import jobs, one_thread
from ..numerics.sums import EPS, TINY, norm
from ..problem.multiclass import Parts, parts_of, python_label
from ..problem.problem import Status, dual_exponent, worst
from .validation import validate_rows

_MOST = float(np.finfo(float).max)


class CertifiedClassifier(ClassifierMixin, BaseEstimator):
    """Base of classifiers whose fit ends with certificates."""

    n_iter_: int
    status_: Status
    message_: str
    history_: list[Report]
    certificate_: Certificate | Certificates

    def _store(self, names: list[Any], solutions: Sequence[Any], X: Any) -> None:
        """Set status, rounds, history, certificate, the verdict where there is no separator, and last the message.

        Parameters
        ----------
        names : list
            The label of each binary task; None is the label of a single task.
        solutions : sequence of Solution or KernelTaskSolution
        X : ndarray or CSR matrix of shape (n, d) or None
            The rows, for the message; None if they are kernel values.
        """
        for name in ("message_", "verdict_", "source_"):  # of the last fit
            vars(self).pop(name, None)
        self.n_iter_ = max(solution.rounds for solution in solutions)
        self.status_ = worst(solution.status for solution in solutions)
        self.history_ = [report for solution in solutions for report in solution.history]
        certificates = tuple(solution.certificate for solution in solutions)
        self.certificate_ = (
            certificates[0] if len(certificates) == 1 else Certificates(tuple(names), certificates)
        )
        pairs = zip(names, solutions, strict=True)
        found = {python_label(name): one.verdict for name, one in pairs if one.verdict is not None}
        if found:
            self.verdict_ = found if len(names) > 1 else found[None]
        self.message_ = message_of_fit(self, X, getattr(self, "feature_names_in_", None))


def _no_probabilities(model: Any) -> Any:
    """Not available: margins are no probabilities. Use `sklearn.calibration.CalibratedClassifierCV`."""
    raise AttributeError(
        f"{type(model).__name__} has no predict_proba, since margins are no probabilities: wrap it in "
        "sklearn.calibration.CalibratedClassifierCV, which has."
    )


def _lazy(model: Any, method: str, X: Any) -> Any:
    """Return what a method of a fitted model returns for the rows of a Dask collection or Spark frame, lazily."""
    check_is_fitted(model)
    columns, plain = model.n_features_in_, copy(model)
    # what predictions do not use, and may be large; names of features are compared here, once for all blocks
    for name in ("certificate_", "verdict_", "history_", "message_", "feature_names_in_", "callback"):
        vars(plain).pop(name, None)
    function = getattr(plain, method)
    if place_of(X) == "spark":
        from ..partitions.spark import with_result

        return with_result(function, X, getattr(model, "feature_names_in_", None), columns)
    from ..partitions import dask

    dask.check_columns(X)
    validate_rows(model, dask.example_row(X, columns), reset=False)
    return dask.map_blocks(function, X, columns, model.classes_)


class Scored:
    """Accuracy, for labels that fits take, and what scikit-learn knows of rows that they take."""

    predict_proba = property(_no_probabilities)

    def __sklearn_tags__(self) -> Any:
        parent: Any = super()
        tags = parent.__sklearn_tags__()
        # a matrix of kernel values is dense, and has a row and a column for each sample
        tags.input_tags.pairwise = getattr(self, "kernel", None) == "precomputed"
        tags.input_tags.sparse = not tags.input_tags.pairwise
        return tags

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """Return the accuracy on these rows; labels that a fit refuses are refused.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
        y : array-like of shape (n_samples,)
        sample_weight : array-like of shape (n_samples,), default=None

        Returns
        -------
        accuracy : float
        """
        parent: Any = super()
        return parent.score(X, label_array(y), sample_weight)


class LinearDecision(Scored):
    """Scores, labels and certified radii, for classifiers with `coef_`, `intercept_` and `classes_`."""

    coef_: Any
    intercept_: Any
    classes_: Any

    def decision_function(self, X: Any) -> np.ndarray:
        """Return the signed distance to the hyperplane, times |w|.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features), Dask collection or Spark frame

        Returns
        -------
        scores : ndarray of shape (n_samples,) or (n_samples, n_classes)
            For a Dask collection a lazy one; for a Spark frame the frame with a column "decision".
        """
        check_is_fitted(self)
        if place_of(X) in ("dask", "spark"):
            return _lazy(self, "decision_function", X)
        X = validate_rows(self, X, reset=False)
        with one_thread():
            scores = safe_sparse_dot(X, self.coef_.T, dense_output=True) + self.intercept_
        return scores.ravel() if scores.shape[1] == 1 else scores

    def predict(self, X: Any) -> np.ndarray:
        """Return the class of each row.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features), Dask collection or Spark frame

        Returns
        -------
        labels : ndarray of shape (n_samples,)
            For a Dask collection a lazy one; for a Spark frame the frame with a column "prediction".
        """
        if place_of(X) in ("dask", "spark"):
            return _lazy(self, "predict", X)
        scores = self.decision_function(X)
        return self.classes_[(scores > 0).astype(np.intp) if scores.ndim == 1 else scores.argmax(axis=1)]

    def certified_radius(self, X: Any) -> np.ndarray:
        """Return a lower bound of the size of the smallest perturbation that changes the label of each row.

        Two classes: |w.x + b| / |w|_q, the distance to the hyperplane in the p-norm in which the classifier measures
        distance (2 for `OnlineMarginClassifier`), 1/p + 1/q = 1. Several classes: with k the class predicted, the
        smallest (s_k - s_j) / |w_k - w_j|_q over all other j. It is inf if no perturbation can change the label,
        because the weights are equal.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)

        Returns
        -------
        radii : ndarray of shape (n_samples,)
            Rounded downwards: every row of float64 numbers at a smaller distance in the p-norm has the same label. 0 if
            the sign of the score is within rounding.

        Raises
        ------
        NotFittedError
        ValueError
            If X does not fit the model.

        Notes
        -----
        Proof. Let s = w.x + b, r = |s| / |w|_q, and g a subgradient of |.|_q at w, so that g.w = |w|_q and |g|_p = 1.
        The row x - sign(s) r g is at the distance r from x, and its score is
        s - sign(s) r |w|_q = 0: beyond it, along the same line, the label is the other one. A shorter perturbation e
        does not change the label: by Hoelder's inequality it changes the score by |w.e| <= |w|_q |e|_p < |s| if
        |e|_p < r. With several classes, k is predicted if s_k >= s_j for all j, which is a half-space for each j; by
        the same argument the distance of x from its boundary is (s_k - s_j) / |w_k - w_j|_q, and the label changes
        outside the first of these half-spaces.

        Rounding: the error of a score of d products, summed in any order, is at most c = (d + 4) eps (|w|.|x| + |b|),
        plus d times the smallest number if products underflow. Twice this bound is subtracted from |s|, for the row and
        for the perturbed row; |w|_q is rounded up, and the quotient down. If weights are equal, inf holds for exact
        scores.

        Examples
        --------
        >>> from maxmargin import MaxMarginClassifier
        >>> clf = MaxMarginClassifier(C=float("inf")).fit([[0.0, 0.0], [3.0, 4.0]], [0, 1])
        >>> clf.certified_radius([[0.0, 0.0]]).round(6).tolist()
        [2.5]
        """
        check_is_fitted(self)
        X, certificate = validate_rows(self, X, reset=False), getattr(self, "certificate_", None)
        p = 2.0 if certificate is None else float(certificate.certificates[0].problem.p)
        return _radii(X, self.coef_, self.intercept_, p)


class KernelDecision(Scored):
    """Scores and labels, for classifiers that are sums of kernel functions, in the layout of SVC."""

    classes_: Any
    multi_class_: str
    decision_function_shape: str
    break_ties: bool
    n_jobs: int | None
    dual_coef_: Any
    intercept_: Any
    n_support_: Any
    support_: Any
    support_vectors_: Any
    _kernel: Kernel
    _groups: list[tuple[Any, np.ndarray, np.ndarray]]

    def decision_function(self, X: Any) -> np.ndarray:
        """Return the signed distance to the surface in the space of the kernel, times |w|.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features), or (n_samples, n_samples_fit)
            Kernel values with the rows of the fit, if the kernel is precomputed.

        Returns
        -------
        scores : ndarray of shape (n_samples,), (n_samples, n_classes) or (n_samples, n_pairs)
        """
        scores = self._scores(X)
        if scores.shape[1] == 1:
            return scores.ravel()
        return scores if self.decision_function_shape == "ovo" else self._scheme().values(scores)

    def predict(self, X: Any) -> np.ndarray:
        """Return the class of each row.

        Parameters
        ----------
        X : array-like or sparse matrix, as for `decision_function`

        Returns
        -------
        labels : ndarray of shape (n_samples,)
        """
        check_is_fitted(self)
        if self.break_ties and self.decision_function_shape == "ovo":
            raise ValueError('break_ties must be False unless decision_function_shape="ovr".')
        scores, scheme = self._scores(X), self._scheme()
        values = scheme.values(scores) if self.break_ties else scheme.votes(scores)
        return self.classes_[values.argmax(axis=1)]

    @property
    def coef_(self) -> np.ndarray:
        """Weights of the features, with the linear kernel only."""
        kernel = self.kernel_
        if not isinstance(kernel, Linear):
            raise AttributeError(f"coef_ needs the linear kernel; the kernel of this model is {kernel}.")
        coefficients = self._scheme().unpacked(self.dual_coef_, self.n_support_)
        coef = np.asarray(coefficients @ self.support_vectors_)
        # computed at each access: writing to it would have no effect on the model
        coef.flags.writeable = False
        return coef

    @property
    def kernel_(self) -> Kernel:
        """The kernel, with numerical values of its parameters."""
        check_is_fitted(self)
        return self._kernel

    def _scheme(self) -> Parts:
        """Return the division of the classes into binary tasks at the time of the fit."""
        return parts_of(self.multi_class_, len(self.classes_))

    def _scores(self, X: Any) -> np.ndarray:
        """Return the score of every binary task, shape (n_samples, n_tasks)."""
        sparse = False if isinstance(self.kernel_, Precomputed) else "csr"
        from ..data.rows import engine_rows  # only here: it loads the engine

        X = engine_rows(validate_rows(self, X, accept_sparse=sparse, reset=False))
        # of 256 rows: their kernel values with a block of support vectors stay in the cache of a core
        blocks = [X[first : first + 256] for first in range(0, X.shape[0], 256)]
        threads = min(jobs(self.n_jobs), len(blocks))
        numbers = range(1, len(blocks) + 1)
        with one_thread():  # each thread of Python computes a block of rows by itself
            if threads == 1:
                return np.concatenate([*map(self._block_scores, blocks, numbers, repeat(len(blocks)))])
            with ThreadPoolExecutor(threads) as pool:
                return np.concatenate([*pool.map(self._block_scores, blocks, numbers, repeat(len(blocks)))])

    def _block_scores(self, Z: Any, number: int, of: int) -> np.ndarray:
        """Return the scores of a block of rows, in float64 if the rows or the support vectors are float64."""
        announce("block of rows", number, of, level=2)
        kernel = self._kernel
        scores = np.tile(self.intercept_.astype(float), (Z.shape[0], 1))
        for X, coefficients, tasks in self._groups:
            if isinstance(kernel, Precomputed):
                # Scores may be tied exactly: the sum of a row must not depend on the other rows of the block.
                products = [np.multiply(Z[:, X], c, order="C").sum(axis=1) for c in coefficients]
                scores[:, tasks] += np.column_stack(products)
            elif X.shape[0]:
                dtype = np.result_type(X.dtype, Z.dtype)
                for columns, values in kernel.tiles(Z.astype(dtype, copy=False), X.astype(dtype, copy=False)):
                    scores[:, tasks] += values @ coefficients[:, columns].T
        return scores

    def make_machine(self, kernel: Kernel) -> None:
        """Prepare prediction from the fitted attributes and the kernel, after a fit or when a model file is read.

        Support vectors that belong to the same binary tasks form a group: their rows (of a precomputed kernel, their
        places among its columns), their coefficients of shape (n_tasks, n_rows), and the numbers of the tasks.
        """
        scheme, coefficients = self._scheme(), np.asarray(self.dual_coef_)
        X = self.support_ if isinstance(kernel, Precomputed) else kernel.prepared(self.support_vectors_)
        counts = [X.shape[0]] if scheme.name == "ovr" else self.n_support_  # which the classes share
        stops = np.cumsum(counts).tolist()
        parts = map(slice, [0, *stops], stops)
        self._groups = [(X[part], coefficients[:, part], scheme.problems(k)) for k, part in enumerate(parts)]
        self._kernel = kernel


def _radii(X: Any, coef: Any, intercept: Any, p: float) -> np.ndarray:
    """Return rounded-down distances to the surface between the class predicted and the nearest other."""
    W, b = np.asarray(coef, dtype=float), np.asarray(intercept, dtype=float)
    if W.shape[0] == 1:  # the first of two classes has the score 0
        W, b = np.vstack([np.zeros_like(W), W]), np.append(0.0, b)
    d, q = W.shape[1], dual_exponent(p)
    # relative error of the norms, and of the rounding that a perturbation adds to the scores
    c = (2.0 * d + 32.0) * EPS
    radii = np.full(X.shape[0], np.inf)
    with np.errstate(over="ignore", under="ignore", invalid="ignore", divide="ignore"):
        scores = safe_sparse_dot(X, W.T, dense_output=True) + b
        noise = safe_sparse_dot(abs(X), np.abs(W).T, dense_output=True) + np.abs(b)
        noise = 2.0 * ((d + 4.0) * EPS * noise + TINY)
        lengths = np.array([norm(w, q) for w in W])
        predicted = scores.argmax(axis=1)
        pairs = [(k, j) for k in np.unique(predicted) for j in range(W.shape[0]) if j != k]
        for k, j in pairs:
            rows = np.flatnonzero(predicted == k)
            size = norm(W[k] - W[j], q)
            if size > 0.0:
                gap = scores[rows, k] - scores[rows, j] - noise[rows, k] - noise[rows, j]
                radius = _quotient(gap, size * (1.0 + c) + c * (lengths[k] + lengths[j]))
            else:  # the difference of the scores is constant; of equal scores the first class is predicted
                radius = np.inf if b[k] > b[j] or (b[k] == b[j] and k < j) else 0.0
            radii[rows] = np.minimum(radii[rows], radius)
    return radii


def _quotient(gap: np.ndarray, size: float) -> np.ndarray:
    """Return gap / size rounded down, 0 where the gap may not be positive."""
    # a difference of scores that overflows is not known
    r = np.where((gap > 0.0) & np.isfinite(gap), gap, 0.0) / (size + TINY)
    return np.nextafter(np.clip(np.nan_to_num(r, nan=0.0, posinf=_MOST), 0.0, _MOST), 0.0)


REASONS = {
    Status.CERTIFIED: "the certified gap, {gap:.2g}, is at most tol={tol:g}",
    Status.CONVERGED: "the algorithm ended by its own criterion",
    Status.STALLED: "rounding in float64 prevents further progress",
    Status.MAX_ITER: "all max_iter={rounds} rounds were made",
    Status.MAX_TIME: "the limit max_time={seconds} s went by, or too little of it was left for a certificate",
    Status.INTERRUPTED: "Ctrl-C or a callback ended the fit, and the best model so far is kept",
    Status.UNDECIDED: "{reason}",
    Status.INSEPARABLE: "no surface separates the classes; the model has the exact proof, verdict_",
    Status.NOT_FINITE: "numbers overflowed: the scale of the data is beyond float64",
}
LIMITS = {Status.MAX_TIME: "max_time", Status.MAX_ITER: "max_iter"}


def message_of_fit(model: Any, X: Any = None, names: Sequence[str] | None = None) -> str:
    """Return why the fit of a classifier ended, and if it is not certified, what to try.

    Parameters
    ----------
    model : MaxMarginClassifier or KernelMaxMarginClassifier
        Fitted.
    X : ndarray or CSR matrix of shape (n, d), default=None
        The rows of the fit; None if they are not known, or are kernel values.
    names : sequence of str, default=None
        Of the columns; None for their numbers.
    """
    status, certificate, tol = model.status_, model.certificate_, model.tol
    verdict, reason = getattr(model, "verdict_", None), "this model cannot express the separator verdict_"
    if not getattr(verdict, "separable", False):
        reason = getattr(verdict, "reason", "the search ended")
        reason = f"no separator was found, and no proof that there is none: {reason}"
    values = {"gap": certificate.gap, "reason": reason, "rounds": model.max_iter, "seconds": model.max_time}
    sentences = [REASONS[status].format(tol=tol, **values)]
    if status not in (Status.CERTIFIED, Status.UNDECIDED, Status.INSEPARABLE):
        parts = zip(certificate.certificates, certificate.classes, strict=True)
        worst, label = max(parts, key=lambda part: part[0].gap)
        about = "" if label is None else f" of class {python_label(label)!r}"
        sentences.append(f"the certified gap{about} is {worst.gap:.2g}, above tol={tol:g}")
    if status not in (Status.CERTIFIED, Status.INTERRUPTED):
        sentences += _remedies(model, X, names)
    return " ".join(f"{one[0].upper()}{one[1:]}." for one in sentences)


def _remedies(model: Any, X: Any, names: Sequence[str] | None) -> list[str]:
    """Return what to try, the most likely first."""
    status, gap = model.status_, model.certificate_.gap
    if status is Status.INSEPARABLE:
        return ["give a finite C, the weight of the losses"]
    large = None if X is None else dominant(X)
    remedies = [] if large is None else [large.words(names=names)]
    other = 'set algorithm="auto"' if model.algorithm != "auto" else "try another algorithm"
    if status in LIMITS:
        # more rounds do not make up for the scale of all columns, on which proofs of hard margins do not depend
        if large is None or large.column is not None or np.isinf(model.C):
            remedies.append(f"raise {LIMITS[status]}, or {other}")
    elif status is Status.CONVERGED:
        remedies.append(other)
    elif large is None:
        remedies.append("scale the features, with StandardScaler for instance, or give a smaller, finite C")
    if model.tol < gap < 1.0:
        digit = 10.0 ** np.floor(np.log10(gap))
        remedies.append(f"if this gap is small enough, set tol={np.ceil(gap / digit) * digit:.1g}")
    return remedies
