"""LinearSVC, SVC and SGDClassifier of scikit-learn, whose fits end with a certificate.

The classes inherit from those of scikit-learn all but the solution: constructors, checks of the input, prediction and
attributes are those of the installed version. `models_` holds the classifiers that solve the problem.
"""

from __future__ import annotations

import inspect
import warnings
from typing import Any, TypeVar

import numpy as np
import scipy.sparse as sp
import sklearn.linear_model
import sklearn.svm
from sklearn.base import clone
from sklearn.calibration import CalibratedClassifierCV
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.class_weight import compute_class_weight
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import _check_sample_weight, column_or_1d, validate_data

from .certificates.certificate import Certificate, Certificates
from .certificates.verification import verify
from .estimators.kernel import KernelMaxMarginClassifier
from .estimators.linear import MaxMarginClassifier
from .fit.report import Report
from .problem.problem import Status, worst

__all__ = ["SVC", "LinearSVC", "SGDClassifier"]

Class = TypeVar("Class", bound=type)


def limited(cls: Class) -> Class:
    """Add `max_time` and `callback` to the end of an inherited constructor; decorator of a class."""
    inherited: Any = cls.__init__

    def __init__(
        self: Any, *values: Any, max_time: Any = None, callback: Any = None, **parameters: Any
    ) -> None:
        inherited(self, *values, **parameters)
        self.max_time, self.callback = max_time, callback

    ours = inspect.signature(__init__).parameters
    parameters = [*inspect.signature(inherited).parameters.values(), ours["max_time"], ours["callback"]]
    __init__.__signature__ = inspect.Signature(parameters)  # pyright: ignore[reportFunctionMemberAccess]
    cls.__init__ = __init__
    return cls


class Certified:
    """The certificate of a fit, and the classifiers that have found it."""

    models_: tuple[Any, ...]
    status_: Status
    message_: str
    certificate_: Certificate | Certificates
    history_: list[Report]
    classes_: Any
    class_weight_: Any
    max_time: Any
    callback: Any

    def keep(self, *models: Any) -> None:
        """Keep the fitted classifiers and their certificates; warn where these do not reach `tol`."""
        self.models_, self.status_ = models, worst(model.status_ for model in models)
        self.history_ = [report for model in models for report in model.history_]
        self.message_ = max(models, key=lambda model: model.certificate_.gap).message_
        parts: Any = tuple(model.certificate_ for model in models)
        self.certificate_ = parts[0] if len(parts) == 1 else Certificates(tuple(self.classes_), parts)
        if self.status_ is not Status.CERTIFIED:
            warnings.warn(self.message_, ConvergenceWarning, stacklevel=3)

    def verify(self, X: Any, y: Any, sample_weight: Any = None) -> Certificate | Certificates:
        """Recompute the bounds of the certificate from the data, as `maxmargin.verify` does, which calls this method.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
        y : array-like of shape (n_samples,)
        sample_weight : array-like of shape (n_samples,), default=None
            Of the fit.

        Returns
        -------
        Certificate or Certificates

        Raises
        ------
        CertificateError
            If the data are not those of the fit, or a bound does not hold.
        """
        X = X.astype(float) if sp.issparse(X) else np.asarray(X, float)
        weights = np.ones(len(y)) if sample_weight is None else np.maximum(sample_weight, 0.0)
        if len(self.models_) == 1:
            return verify(self.models_[0], X, y, weights)
        found: Any = tuple(
            verify(model, X, np.equal(y, label), weights * self.factors(y, label))
            for model, label in zip(self.models_, self.classes_, strict=True)
        )
        return Certificates(tuple(self.classes_), found)

    def factors(self, y: Any, label: Any) -> np.ndarray:
        """Return the factors of `class_weight` on the weights of all rows, in the problem of one class of several."""
        return np.where(np.equal(y, label), self.class_weight_[self.classes_ == label], 1.0)


def solve_linear(
    model: Any, X: Any, y: np.ndarray, sample_weight: Any, factors: np.ndarray, **parameters: Any
) -> None:
    """Fit a linear class to validated data, with these factors on the weights of the classes."""
    weights = _check_sample_weight(sample_weight, X, dtype=np.float64)
    weights = np.maximum(weights, 0.0)  # liblinear leaves out rows of negative weight too
    norm = {"p": np.inf, "norm_power": 1} if model.penalty == "l1" else {}
    plain = MaxMarginClassifier(
        loss=model.loss, fit_intercept=model.fit_intercept, max_iter=max(1, model.max_iter),
        random_state=model.random_state, verbose=bool(model.verbose), max_time=model.max_time,
        callback=model.callback, **norm, **parameters,
    )  # fmt: skip
    classes, model.class_weight_ = model.classes_, factors
    if classes.size < 3 or model.class_weight is None:
        plain.class_weight = None if model.class_weight is None else dict(zip(classes, factors, strict=True))
        models = [plain.fit(X, y, weights)]
    else:  # in each problem only the weight of its own class counts, as in scikit-learn
        plain.max_time = model.max_time and model.max_time / classes.size
        copies: list[Any] = [clone(plain) for _ in classes]
        pairs = zip(copies, classes, strict=True)
        models = [copy.fit(X, y == label, weights * model.factors(y, label)) for copy, label in pairs]
    model.coef_ = np.vstack([one.coef_ for one in models])
    model.intercept_ = np.concatenate([one.intercept_ for one in models])
    model.n_iter_ = max(one.n_iter_ for one in models)
    model.keep(*models)


@limited
class LinearSVC(Certified, sklearn.svm.LinearSVC):
    """`sklearn.svm.LinearSVC` with a certificate.

    The problem is that of scikit-learn: the intercept is a regularised weight of a constant feature of value
    `intercept_scaling`. Parameters, attributes and methods are those of scikit-learn, and these:

    Parameters
    ----------
    tol : float, default=1e-4
        Certified relative gap at which the fit ends.
    dual : {"auto", True, False}, default="auto"
        Ignored: the certificate bounds the primal and the dual objective.
    multi_class : {"ovr"}, default="ovr"
    max_iter : int, default=1000
        Number of rounds, each of which ends with new bounds.
    max_time : float, default=None
        Seconds after which the best model so far is kept, with its gap.
    callback : callable, default=None
        Called with a `Report` after every round; a true value ends the fit.

    Attributes
    ----------
    certificate_ : Certificate or Certificates
    status_ : Status
    message_ : str
    history_ : list of Report
    models_ : tuple of MaxMarginClassifier
        The classifier that solved the problem, as `save` and `support_report` take it. With `class_weight` and several
        classes there is one for each class.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from maxmargin.sklearn import LinearSVC
    >>> clf = LinearSVC().fit(*load_iris(return_X_y=True))
    >>> clf.status_
    <Status.CERTIFIED: 'CERTIFIED'>
    """

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> LinearSVC:
        """Fit the model, and certify it.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
        y : array-like of shape (n_samples,)
        sample_weight : array-like of shape (n_samples,), default=None

        Returns
        -------
        self : LinearSVC
        """
        self._validate_params()
        refuse(self, "multi_class", ("ovr",))
        X, y = validate_data(self, X, y, accept_sparse="csr", dtype=np.float64, order="C")
        check_classification_targets(y)
        self.classes_ = np.unique(y)
        factors = compute_class_weight(
            self.class_weight, classes=self.classes_, y=y, sample_weight=sample_weight
        )
        solve_linear(
            self, X, y, sample_weight, factors,
            C=self.C, tol=self.tol, intercept_scaling=self.intercept_scaling,
        )  # fmt: skip
        if not self.fit_intercept:
            self.intercept_ = 0.0
        return self


@limited
class SGDClassifier(Certified, sklearn.linear_model.SGDClassifier):
    """`sklearn.linear_model.SGDClassifier` of a hinge loss, with a certificate.

    Minimises the mean of the losses plus `alpha` times the penalty, which is the problem with C = 1 / (n alpha), to the
    certified gap `tol`. Settings of stochastic gradient descent do not change the optimum, and are ignored:
    `learning_rate`, `eta0`, `power_t`, `shuffle`, `average`, `warm_start`, `early_stopping`, `validation_fraction`,
    `n_iter_no_change`, `coef_init` and `intercept_init`. Other parameters, attributes and methods are those of
    scikit-learn, and these:

    Parameters
    ----------
    loss : {"hinge", "squared_hinge"}, default="hinge"
    penalty : {"l2", "l1"}, default="l2"
    tol : float, default=1e-3
        Certified relative gap at which the fit ends; None and 0 are 1e-3.
    max_iter : int, default=1000
        Number of rounds, each of which ends with new bounds.
    max_time : float, default=None
        Seconds after which the best model so far is kept, with its gap.
    callback : callable, default=None
        Called with a `Report` after every round; a true value ends the fit.

    Attributes
    ----------
    certificate_, status_, message_, history_, models_
        As of `LinearSVC`.
    """

    def fit(
        self, X: Any, y: Any, coef_init: Any = None, intercept_init: Any = None, sample_weight: Any = None
    ) -> SGDClassifier:
        """Fit the model, and certify it.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
        y : array-like of shape (n_samples,)
        coef_init, intercept_init : object, default=None
            Ignored: the optimum does not depend on the start.
        sample_weight : array-like of shape (n_samples,), default=None

        Returns
        -------
        self : SGDClassifier
        """
        self._validate_params()
        self._more_validate_params()
        refuse(self, "loss", ("hinge", "squared_hinge"))
        refuse(self, "penalty", ("l2", "l1"))
        if self.alpha == 0.0:
            raise ValueError("alpha must be positive: without a penalty, C would be infinite.")
        dtype = [np.float64, np.float32]
        X, y = validate_data(self, X, y, accept_sparse="csr", dtype=dtype, order="C")
        check_classification_targets(y)
        self.classes_ = np.unique(y)
        factors = compute_class_weight(self.class_weight, classes=self.classes_, y=y)
        # checks the shapes of the start, and allocates what `partial_fit` needs
        self._allocate_parameter_mem(self.classes_.size, X.shape[1], X.dtype, coef_init, intercept_init)
        C = 1.0 / (X.shape[0] * self.alpha)
        solve_linear(self, X, y, sample_weight, factors, C=C, tol=self.tol or 1e-3, n_jobs=self.n_jobs)
        self.t_ = self.n_iter_ * X.shape[0] + 1.0
        return self

    def partial_fit(self, X: Any, y: Any, classes: Any = None, sample_weight: Any = None) -> SGDClassifier:
        """Make one pass of scikit-learn's stochastic gradient descent, which has no certificate.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
        y : array-like of shape (n_samples,)
        classes : array-like of shape (n_classes,), default=None
            All classes; needed in the first call.
        sample_weight : array-like of shape (n_samples,), default=None

        Returns
        -------
        self : SGDClassifier
        """
        if hasattr(self, "certificate_"):  # of the last fit, whose weights are about to change
            del self.certificate_, self.status_, self.message_, self.history_, self.models_
        return super().partial_fit(X, y, classes, sample_weight)


@limited
class SVC(Certified, sklearn.svm.SVC):
    """`sklearn.svm.SVC` with a certificate.

    The kernel has to be positive semidefinite on the data. Parameters, attributes and methods are those of
    scikit-learn, and these:

    Parameters
    ----------
    tol : float, default=1e-3
        Certified relative gap at which the fit ends.
    shrinking : bool, default=True
        Ignored.
    probability : bool, default="deprecated"
        True fits a `CalibratedClassifierCV` too, with scikit-learn's warning that this ends with version 1.11.
    max_iter : int, default=-1
        Number of rounds, each of which ends with new bounds, for each pair of classes; -1 for no limit.
    max_time : float, default=None
        Seconds after which the best model so far is kept, with its gap.
    callback : callable, default=None
        Called with a `Report` after every round; a true value ends the fit.

    Attributes
    ----------
    certificate_ : Certificate or Certificates
        One for each pair of classes.
    status_, message_, history_
        As of `LinearSVC`.
    models_ : tuple of KernelMaxMarginClassifier
        The classifier that solved the problem.
    """

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> SVC:
        """Fit the model, and certify it.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features) or (n_samples, n_samples)
            What a callable kernel takes, or the kernel matrix, if it is precomputed.
        y : array-like of shape (n_samples,)
        sample_weight : array-like of shape (n_samples,), default=None

        Returns
        -------
        self : SVC
        """
        super().fit(X, y, sample_weight)
        if self._probA.size:
            plain: Any = clone(self)
            plain.probability = "deprecated"
            smallest, rows = np.unique(y, return_counts=True)[1].min(), np.arange(len(y))
            # a class of one row cannot be left out: then the scores of the fit are calibrated
            folds: Any = {"ensemble": False, "cv": min(5, smallest) if smallest > 1 else [(rows, rows)]}
            self._calibrated = CalibratedClassifierCV(plain, **folds).fit(X, y, sample_weight)
        return self

    def _solve(
        self, X: Any, y: Any, sample_weight: Any, solver_type: int, kernel: str, random_seed: int
    ) -> None:
        """Solve the problem of validated data in place of libsvm, and set what libsvm returns."""
        if callable(self.kernel):
            self._BaseLibSVM__Xfit = X  # with which `_compute_kernel` pairs rows
            X = self._compute_kernel(X)
        weights = column_or_1d(np.maximum(sample_weight, 0.0)) if sample_weight.size else np.ones(y.size)
        labels = self.classes_[y.astype(int)]
        left = np.unique(labels[weights > 0.0]).size
        if left < 2:  # in the words of libsvm
            faults = "have zero or negative weights", "with positive weights belong to the same class"
            raise ValueError(f"Invalid input - all samples {faults[left]}.")
        gamma: Any = 1.0 if kernel == "precomputed" else self._gamma
        model = KernelMaxMarginClassifier(
            self.C, kernel=kernel, degree=self.degree, gamma=gamma, coef0=self.coef0, tol=self.tol,
            class_weight=dict(zip(self.classes_, self.class_weight_, strict=True)), multi_class="ovo",
            decision_function_shape="ovo", cache_size=self.cache_size, max_iter=self.max_iter or 1,
            max_time=self.max_time, callback=self.callback, random_state=random_seed, verbose=bool(self.verbose),
        )  # fmt: skip
        model.fit(X, labels, weights)
        self.classes_ = model.classes_
        self.keep(model)
        # of two classes, the first one is the positive one of libsvm
        sign = -1.0 if self.classes_.size == 2 else 1.0
        self.support_, self.support_vectors_ = model.support_, model.support_vectors_
        self._n_support, self.intercept_ = model.n_support_, sign * model.intercept_
        self.dual_coef_ = sign * model.dual_coef_
        if self._sparse:
            self.dual_coef_ = type(X)(self.dual_coef_)
        self.fit_status_ = int(self.status_ is not Status.CERTIFIED)
        names = self.certificate_.classes
        rounds = [max((one.round for one in self.history_ if one.label == name), default=0) for name in names]
        self._num_iter = np.array(rounds, dtype=np.int32)
        wanted = getattr(self, "probability", "deprecated") not in ("deprecated", False)
        self._probA = self._probB = np.zeros(len(names) if wanted else 0)

    _dense_fit = _sparse_fit = _solve

    # by products of matrices, which take a fifth of the time of libsvm's loops

    def _decision_function(self, X: Any) -> np.ndarray:
        X = self._compute_kernel(self._validate_for_predict(X))
        return self.models_[0].decision_function(X)

    def _numbers_of_classes(self, X: Any) -> np.ndarray:
        return np.searchsorted(self.classes_, self.models_[0].predict(self._compute_kernel(X)))

    def _probabilities(self, X: Any) -> np.ndarray:
        return self._calibrated.predict_proba(X)

    _dense_predict = _sparse_predict = _numbers_of_classes
    _dense_predict_proba = _sparse_predict_proba = _probabilities

    def verify(self, X: Any, y: Any, sample_weight: Any = None) -> Certificate | Certificates:
        """Recompute the bounds of the certificate from the data; see `LinearSVC.verify`."""
        return super().verify(self._compute_kernel(X), y, sample_weight)


def refuse(model: Any, name: str, known: tuple[str, ...]) -> None:
    """Refuse a value of a parameter for which there is no certificate."""
    value = getattr(model, name)
    if value not in known:
        raise ValueError(
            f"{name}={value!r} has no certificate: {name} must be one of {known}; other values are those of the class "
            f"{type(model).__name__} of scikit-learn itself."
        )
