"""Scores, labels and certified radii of fitted classifiers, whether fitted here or read from files."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils.extmath import safe_sparse_dot
from sklearn.utils.validation import check_is_fitted

from ..certificates.certificate import Certificate, Certificates
from ..data.rows import engine_rows
from ..fit.report import Report
from ..kernels.functions import Kernel, Linear, Precomputed
from ..numerics.norms import norm
from ..numerics.threads import jobs, one_thread
from ..problem.multiclass import Parts, parts_of, python_label
from ..problem.problem import dual_exponent
from ..problem.status import Status, worst
from .progress import CallbackSupportMixin
from .validation import validate_rows

# Rows that are scored at once: the kernel values of a block with all support vectors stay in the cache of a core, and
# each block is the work of one thread.
BLOCK = 256
_EPS = float(np.finfo(float).eps)
_LEAST = float(np.finfo(float).smallest_subnormal)
_MOST = float(np.finfo(float).max)


class CertifiedClassifier(CallbackSupportMixin, ClassifierMixin, BaseEstimator):
    """Base of classifiers whose fit ends with certificates."""

    n_iter_: int
    status_: Status
    history_: list[Report]
    certificate_: Certificate | Certificates
    _exact = True  # small problems end with the exact step; a comparison of algorithms does without

    def _store(self, names: list[Any], solutions: Sequence[Any]) -> None:
        """Set how the fit ended, its certificate and, of hard margins without a separator, `verdict_`.

        Parameters
        ----------
        names : list
            The label of each binary task; None is the only one.
        solutions : sequence of Solution or KernelTaskSolution
        """
        self.n_iter_ = max(solution.rounds for solution in solutions)
        self.status_ = worst(solution.status for solution in solutions)
        self.history_ = [report for solution in solutions for report in solution.history]
        certificates = tuple(solution.certificate for solution in solutions)
        self.certificate_ = (
            certificates[0] if len(certificates) == 1 else Certificates(tuple(names), certificates)
        )
        vars(self).pop("verdict_", None)  # of the last fit
        pairs = zip(names, solutions, strict=True)
        found = {python_label(name): one.verdict for name, one in pairs if one.verdict is not None}
        if found:
            self.verdict_ = found if len(names) > 1 else found[None]


class LinearDecision:
    """Scores and labels, for classifiers with `coef_`, `intercept_` and `classes_`."""

    coef_: Any
    intercept_: Any
    classes_: Any

    def decision_function(self, X: Any) -> np.ndarray:
        """Return the signed distance to the hyperplane, times |w|.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)

        Returns
        -------
        scores : ndarray of shape (n_samples,) or (n_samples, n_classes)
        """
        check_is_fitted(self)
        X = self._rows_to_predict(X)
        with one_thread:
            scores = self._scores(X)
        return scores.ravel() if scores.shape[1] == 1 else scores

    def predict(self, X: Any) -> np.ndarray:
        """Return the class of each row.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)

        Returns
        -------
        labels : ndarray of shape (n_samples,)
        """
        return self._labels(self.decision_function(X))

    def _rows_to_predict(self, X: Any) -> Any:
        """Validate rows against those of the fit."""
        return validate_rows(self, X, reset=False)

    def _scores(self, X: Any) -> np.ndarray:
        """Return the score of every binary task, shape (n_samples, n_tasks)."""
        return safe_sparse_dot(X, self.coef_.T, dense_output=True) + self.intercept_

    def _labels(self, scores: np.ndarray) -> np.ndarray:
        """Return the class with the largest score; of two classes the second where the score is positive."""
        return self.classes_[(scores > 0).astype(np.intp) if scores.ndim == 1 else scores.argmax(axis=1)]


class Robust:
    """`certified_radius`, for classifiers with `coef_`, `intercept_` and `classes_`."""

    def certified_radius(self, X: Any) -> np.ndarray:
        """Return the size of the smallest perturbation that can change the label of each row.

        Two classes: |w.x + b| / |w|_q, the distance to the hyperplane in the p-norm in which the classifier measures
        distance (2 for `OnlineMarginClassifier`), 1/p + 1/q = 1. Several classes: with k the class predicted, the
        least of (s_k - s_j) / |w_k - w_j|_q over all others j. Where no perturbation can change the label, because
        the weights are equal, it is inf.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features), or rows for the hasher

        Returns
        -------
        radii : ndarray of shape (n_samples,)
            Rounded downwards: no row of float64 numbers nearer than that, in the p-norm, is predicted otherwise.
            0 where rounding leaves the label of the row itself in doubt.

        Raises
        ------
        NotFittedError
        ValueError
            If X does not fit the model, or several hyperplanes vote (``trail="vote"``).

        Notes
        -----
        The proof, by construction. Let s = w.x + b, r = |s| / |w|_q, and g a subgradient of |.|_q at w, so that
        g.w = |w|_q and |g|_p = 1 (`maxmargin.numerics.norms.subgradient`).
        The row x - sign(s) r g is at the distance r from x, and its
        score is s - sign(s) r |w|_q = 0: beyond it, along the same line, the label is the other one.
        Nothing shorter will do: by Hoelder's inequality a perturbation e moves the score by
        |w.e| <= |w|_q |e|_p < |s| where |e|_p < r. Of several classes, k is predicted where s_k >= s_j for all j. Each
        j leaves a half-space, from whose other side x is (s_k - s_j) / |w_k - w_j|_q away by the same
        argument, and the label changes as soon as one of them is left.

        Rounding: a score of d products is off by at most c = (d + 4) eps (|w|.|x| + |b|), in whatever order it was
        summed, and d times the smallest number where products underflow. Twice that is taken from |s|, for the row
        itself and for the perturbed one, |w|_q is rounded up, and the quotient down. Where weights are equal, inf
        holds for exact scores. With a hasher, distances are those between hashed rows.

        Examples
        --------
        >>> from maxmargin import MaxMarginClassifier
        >>> clf = MaxMarginClassifier(C=float("inf")).fit([[0.0, 0.0], [3.0, 4.0]], [0, 1])
        >>> clf.certified_radius([[0.0, 0.0]]).round(6).tolist()
        [2.5]
        """
        check_is_fitted(self)
        if getattr(self, "trail", None) == "vote":
            raise ValueError(
                'With trail="vote" several hyperplanes predict, and there is no one distance: fit with '
                'trail="average" or trail="last".'
            )
        model: Any = self
        X = model._rows_to_predict(X)
        return _radii(X, model.coef_, model.intercept_, exponent(model))


class KernelDecision:
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
            Kernel values with the rows of the fit where the kernel is precomputed.

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
            raise ValueError(
                "break_ties must be False where there is one value a pair of classes: set "
                'decision_function_shape="ovr", or break_ties=False.'
            )
        scores, scheme = self._scores(X), self._scheme()
        values = scheme.values(scores) if self.break_ties else scheme.votes(scores)
        return self._classes_in_order()[values.argmax(axis=1)]

    def _classes_in_order(self) -> np.ndarray:
        """Return the classes in the order of the scores."""
        return self.classes_

    @property
    def coef_(self) -> np.ndarray:
        """Weights of the features: of the linear kernel only."""
        kernel = self.kernel_
        if not isinstance(kernel, Linear):
            raise AttributeError(
                f"coef_ belongs to the linear kernel; this model was fitted with the kernel {kernel}."
            )
        coefficients = self._scheme().unpacked(self.dual_coef_, self.n_support_)
        coef = np.asarray(coefficients @ self.support_vectors_)
        # computed at each access: writing to it would have no effect on the model
        coef.flags.writeable = False
        return coef

    @property
    def kernel_(self) -> Kernel:
        """The kernel, with the numbers that stand for its parameters."""
        check_is_fitted(self)
        return self._kernel

    def _scheme(self) -> Parts:
        """Return the binary tasks of the fit, whatever the present parameters are."""
        return parts_of(self.multi_class_, len(self.classes_))

    def _scores(self, X: Any) -> np.ndarray:
        """Return the score of every binary task, shape (n_samples, n_tasks)."""
        sparse = False if isinstance(self.kernel_, Precomputed) else "csr"
        X = engine_rows(validate_rows(self, X, accept_sparse=sparse, reset=False))
        blocks = [X[first : first + BLOCK] for first in range(0, X.shape[0], BLOCK)]
        threads = min(jobs(self.n_jobs), len(blocks))
        with one_thread:  # each thread of Python computes a block of rows by itself
            if threads == 1:
                return np.concatenate([self._block_scores(Z) for Z in blocks])
            with ThreadPoolExecutor(threads) as pool:
                return np.concatenate(list(pool.map(self._block_scores, blocks)))

    def _block_scores(self, Z: Any) -> np.ndarray:
        """Return the scores of some rows; of float32 and float64 rows or support vectors, the finer type counts."""
        kernel = self._kernel
        scores = np.tile(self.intercept_.astype(float), (Z.shape[0], 1))
        for X, coefficients, tasks in self._groups:
            if isinstance(kernel, Precomputed):
                # Given values may be tied: sums of a row must not depend on the rows beside it.
                products = [np.multiply(Z[:, X], c, order="C").sum(axis=1) for c in coefficients]
                scores[:, tasks] += np.column_stack(products)
            elif X.shape[0]:
                dtype = np.result_type(X.dtype, Z.dtype)
                for columns, values in kernel.tiles(Z.astype(dtype, copy=False), X.astype(dtype, copy=False)):
                    scores[:, tasks] += values @ coefficients[:, columns].T
        return scores

    def make_machine(self, kernel: Kernel) -> None:
        """Prepare the prediction from the fitted attributes and the kernel; also for models read from files.

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


def exponent(model: Any) -> float:
    """Return p of the norm in which a fitted classifier measures distance: that of its certificate, else 2."""
    certificate = getattr(model, "certificate_", None)
    return 2.0 if certificate is None else float(certificate.certificates[0].problem.p)


def _radii(X: Any, coef: Any, intercept: Any, p: float) -> np.ndarray:
    """Return rounded-down distances to the surface between the class predicted and the nearest other."""
    W, b = np.asarray(coef, dtype=float), np.asarray(intercept, dtype=float)
    if W.shape[0] == 1:  # the first of two classes has the score 0
        W, b = np.vstack([np.zeros_like(W), W]), np.append(0.0, b)
    d, q = W.shape[1], dual_exponent(p)
    c = (2.0 * d + 32.0) * _EPS  # of norms too, and of what a perturbation adds to the rounding of scores
    radii = np.full(X.shape[0], np.inf)
    with np.errstate(over="ignore", under="ignore", invalid="ignore", divide="ignore"):
        scores = safe_sparse_dot(X, W.T, dense_output=True) + b
        noise = safe_sparse_dot(abs(X), np.abs(W).T, dense_output=True) + np.abs(b)
        noise = 2.0 * ((d + 4.0) * _EPS * noise + (d + 4.0) * _LEAST)
        lengths = np.array([norm(w, q) for w in W])
        predicted = scores.argmax(axis=1)
        pairs = [(k, j) for k in np.unique(predicted) for j in range(W.shape[0]) if j != k]
        for k, j in pairs:
            rows = np.flatnonzero(predicted == k)
            size = norm(W[k] - W[j], q)
            if size > 0.0:
                gap = scores[rows, k] - scores[rows, j] - noise[rows, k] - noise[rows, j]
                radius = _quotient(gap, size * (1.0 + c) + c * (lengths[k] + lengths[j]))
            else:  # the same everywhere; of equals the first is predicted
                radius = np.inf if b[k] > b[j] or (b[k] == b[j] and k < j) else 0.0
            radii[rows] = np.minimum(radii[rows], radius)
    return radii


def _quotient(gap: np.ndarray, size: float) -> np.ndarray:
    """Return gap / size rounded down, 0 where the gap may not be positive."""
    r = np.where(gap > 0.0, gap, 0.0) / (size + 2.0 * _LEAST)
    return np.nextafter(np.clip(np.nan_to_num(r, nan=0.0, posinf=_MOST), 0.0, _MOST), 0.0)
