"""Classes of maxmargin with the constructors and the array layouts of scikit-learn.

A parameter with the same meaning is passed on. A parameter that has no influence on the solution is accepted and
ignored. For a value that has no counterpart, ``fit`` raises an error that names the parameter.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import scipy.sparse as sp

from maxmargin import KernelMaxMarginClassifier, MaxMarginClassifier, OnlineMarginClassifier
from maxmargin.algorithms import Perceptron as PerceptronRule


class Untranslatable(ValueError):
    """Error for a value of a parameter of scikit-learn that has no counterpart."""


def _refuse(model: Any, **only: tuple[Any, ...]) -> None:
    for name, values in only.items():
        value = getattr(model, name)
        if not any(value is one or (type(value) is type(one) and value == one) for one in values):
            raise Untranslatable(f"{type(model).__name__}: maxmargin has no counterpart of {name}={value!r}")


class LinearSVC(MaxMarginClassifier):
    """MaxMarginClassifier as LinearSVC. `dual` is ignored: the certificate bounds the primal and the dual objective.

    ``penalty="l1"`` is p = inf with the norm of w to the first power.
    """

    def __init__(
        self,
        penalty: str = "l2",
        loss: str = "squared_hinge",
        *,
        dual: Any = "auto",
        tol: float = 1e-4,
        C: float = 1.0,
        multi_class: str = "ovr",
        fit_intercept: bool = True,
        intercept_scaling: float = 1.0,
        class_weight: Any = None,
        verbose: int = 0,
        random_state: Any = None,
        max_iter: int = 1000,
    ) -> None:
        super().__init__(
            C,
            loss=loss,
            tol=tol,
            fit_intercept=fit_intercept,
            intercept="augmented",
            intercept_scaling=intercept_scaling,
            class_weight=class_weight,
            max_iter=max_iter,
            random_state=random_state,
            verbose=verbose,
        )
        self.penalty, self.dual, self.multi_class = penalty, dual, multi_class

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> LinearSVC:
        _refuse(self, penalty=("l2", "l1"), multi_class=("ovr",))
        self.p, self.norm_power = (np.inf, 1) if self.penalty == "l1" else (2, 2)
        super().fit(X, y, sample_weight)
        return self


class SVC(KernelMaxMarginClassifier):
    """KernelMaxMarginClassifier as SVC. `shrinking` and `probability` are ignored; there is no `predict_proba`.

    Every pair of classes is a binary problem, as in SVC. `dual_coef_` and `coef_` are sparse if X was.
    """

    def __init__(
        self,
        *,
        C: float = 1.0,
        kernel: Any = "rbf",
        degree: int = 3,
        gamma: Any = "scale",
        coef0: float = 0.0,
        shrinking: bool = True,
        probability: Any = "deprecated",
        tol: float = 1e-3,
        cache_size: float = 200,
        class_weight: Any = None,
        verbose: int = False,
        max_iter: int = -1,
        decision_function_shape: str = "ovr",
        break_ties: bool = False,
        random_state: Any = None,
    ) -> None:
        super().__init__(
            C,
            kernel=kernel,
            degree=degree,
            gamma=gamma,
            coef0=coef0,
            tol=tol,
            cache_size=cache_size,
            class_weight=class_weight,
            multi_class="ovo",
            decision_function_shape=decision_function_shape,
            break_ties=break_ties,
            max_iter=max_iter,
            random_state=random_state,
            verbose=verbose,
        )
        self.shrinking, self.probability = shrinking, probability

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> SVC:
        super().fit(X, y, sample_weight)
        if sp.issparse(X):
            self.dual_coef_ = sp.csr_matrix(self.dual_coef_)
        return self

    @property
    def coef_(self) -> Any:
        with self._with_arrays() as sparse:
            coef = super().coef_
        return sp.csr_matrix(coef) if sparse else coef

    def decision_function(self, X: Any) -> np.ndarray:
        with self._with_arrays():
            return super().decision_function(X)

    def predict(self, X: Any) -> np.ndarray:
        with self._with_arrays():
            return super().predict(X)

    @contextmanager
    def _with_arrays(self) -> Iterator[bool]:
        """Make `dual_coef_` dense inside the block; yield whether it was sparse."""
        kept = getattr(self, "dual_coef_", None)
        if not sp.issparse(kept):
            yield False
            return
        self.dual_coef_ = kept.toarray()
        try:
            yield True
        finally:
            self.dual_coef_ = kept


class _Online(OnlineMarginClassifier):
    """Common base of `Perceptron` and `SGDClassifier`."""

    def fit(self, X: Any, y: Any) -> _Online:
        self._translate()
        super().fit(X, y)
        return self

    def partial_fit(self, X: Any, y: Any, classes: Any = None) -> _Online:
        self._translate()
        super().partial_fit(X, y, classes)
        return self

    def _translate(self) -> None:
        _refuse(self, class_weight=(None,), early_stopping=(False,), warm_start=(False,))


class Perceptron(_Online):
    """Rosenblatt's Perceptron with the mean of its weights. `tol` is ignored."""

    def __init__(
        self,
        *,
        penalty: Any = None,
        alpha: float = 0.0001,
        l1_ratio: float = 0.15,
        fit_intercept: bool = True,
        max_iter: int = 1000,
        tol: Any = 1e-3,
        shuffle: bool = True,
        verbose: int = 0,
        eta0: float = 1.0,
        n_jobs: Any = None,
        random_state: Any = 0,
        early_stopping: bool = False,
        validation_fraction: float = 0.1,
        n_iter_no_change: int = 5,
        class_weight: Any = None,
        warm_start: bool = False,
    ) -> None:
        super().__init__(
            PerceptronRule(b=0.0),
            fit_intercept=fit_intercept,
            intercept_scaling=1.0,
            max_iter=max_iter,
            shuffle=shuffle,
            random_state=random_state,
        )
        self.penalty, self.alpha, self.l1_ratio, self.tol = penalty, alpha, l1_ratio, tol
        self.verbose, self.eta0, self.n_jobs = verbose, eta0, n_jobs
        self.early_stopping, self.validation_fraction = early_stopping, validation_fraction
        self.n_iter_no_change, self.class_weight, self.warm_start = n_iter_no_change, class_weight, warm_start

    def _translate(self) -> None:
        super()._translate()
        _refuse(self, penalty=(None,), eta0=(1.0,))


class SGDClassifier(_Online):
    """OnlineMarginClassifier as SGDClassifier. `alpha`, `tol` and `n_jobs` are ignored; there is no penalty term."""

    def __init__(
        self,
        loss: str = "hinge",
        *,
        penalty: Any = "l2",
        alpha: float = 0.0001,
        l1_ratio: float = 0.15,
        fit_intercept: bool = True,
        max_iter: int = 1000,
        tol: Any = 1e-3,
        shuffle: bool = True,
        verbose: int = 0,
        epsilon: float = 0.1,
        n_jobs: Any = None,
        random_state: Any = None,
        learning_rate: str = "optimal",
        eta0: float = 0.01,
        power_t: float = 0.5,
        early_stopping: bool = False,
        validation_fraction: float = 0.1,
        n_iter_no_change: int = 5,
        class_weight: Any = None,
        warm_start: bool = False,
        average: Any = False,
    ) -> None:
        super().__init__(
            fit_intercept=fit_intercept, max_iter=max_iter, shuffle=shuffle, random_state=random_state
        )
        self.loss, self.penalty, self.alpha, self.l1_ratio, self.tol = loss, penalty, alpha, l1_ratio, tol
        self.verbose, self.epsilon, self.n_jobs = verbose, epsilon, n_jobs
        self.learning_rate, self.eta0, self.power_t = learning_rate, eta0, power_t
        self.early_stopping, self.validation_fraction = early_stopping, validation_fraction
        self.n_iter_no_change, self.class_weight = n_iter_no_change, class_weight
        self.warm_start, self.average = warm_start, average

    def _translate(self) -> None:
        super()._translate()
        _refuse(self, loss=("hinge", "perceptron"), penalty=("l2", None), average=(True, False))
        _refuse(self, learning_rate=("optimal",))
