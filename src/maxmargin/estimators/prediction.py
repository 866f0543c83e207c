"""Scores and labels of fitted classifiers, whether fitted here or read from files."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.utils.extmath import safe_sparse_dot
from sklearn.utils.validation import check_is_fitted

from ..data.rows import canonical
from ..kernels.functions import Kernel, Linear, Precomputed
from ..numerics.threads import jobs, one_thread
from ..problem.multiclass import Parts, parts_of
from .kernel_machine import KernelMachine
from .validation import validate_rows


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
        return validate_rows(self, X, accept_sparse="csr", reset=False)

    def _scores(self, X: Any) -> np.ndarray:
        """Return the score of every binary task, shape (n_samples, n_tasks)."""
        return safe_sparse_dot(X, self.coef_.T, dense_output=True) + self.intercept_

    def _labels(self, scores: np.ndarray) -> np.ndarray:
        """Return the class with the largest score; of two classes the second where the score is positive."""
        return self.classes_[(scores > 0).astype(np.intp) if scores.ndim == 1 else scores.argmax(axis=1)]


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
    _machine: KernelMachine

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
        return self._machine.kernel

    def _scheme(self) -> Parts:
        """Return the binary tasks of the fit, whatever the present parameters are."""
        return parts_of(self.multi_class_, len(self.classes_))

    def _scores(self, X: Any) -> np.ndarray:
        """Return the score of every binary task, shape (n_samples, n_tasks)."""
        check_is_fitted(self)
        sparse = False if isinstance(self._machine.kernel, Precomputed) else "csr"
        X = validate_rows(self, X, accept_sparse=sparse, reset=False)
        with one_thread:  # each thread of Python computes a block of rows by itself
            return self._machine.scores(canonical(X), jobs(self.n_jobs))

    def make_machine(self, kernel: Kernel) -> None:
        """Make `_machine`, which predicts, from the fitted attributes; also for models read from files."""
        scheme = self._scheme()
        X = self.support_ if isinstance(kernel, Precomputed) else self.support_vectors_
        tasks = [scheme.problems(code) for code in range(scheme.count)]
        self._machine = KernelMachine.of(
            kernel, X, np.asarray(self.dual_coef_), self.intercept_, np.asarray(self.n_support_), tasks
        )
