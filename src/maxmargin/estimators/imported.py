"""Classifiers that other programs fitted: they predict, and have no certificate."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NoReturn

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin

from .prediction import KernelDecision, LinearDecision


class Imported(ClassifierMixin, BaseEstimator):
    """Base of models read from files of other programs.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        Sorted.
    labels_ : ndarray of shape (n_classes,)
        The classes in the order of the file, of two the negative one first. Of classes with equal scores the first in
        this order is predicted, as in the program that wrote the file.
    n_features_in_ : int
    feature_names_in_ : ndarray of shape (n_features,)
        Only if the file has names.
    origin_ : dict
        Other contents of the file: its format, parameters of the fit, and bounds that it claims.
    uncertified_ : str
        The reason why there is no `certificate_`.
    """

    labels_: np.ndarray
    origin_: dict[str, Any]
    feature_names_in_: np.ndarray

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> NoReturn:
        """Refused: the model stays as it was read.

        Raises
        ------
        ValueError
        """
        raise ValueError(
            f"{type(self).__name__} holds a model that was fitted elsewhere, and learns nothing: fit a "
            "MaxMarginClassifier or KernelMaxMarginClassifier instead."
        )

    @property
    def uncertified_(self) -> str:
        """The reason why there is no certificate."""
        return (
            f"this model was read from a {self.origin_['format']} file, which holds no proof of how good it is: fit "
            "again with maxmargin for one, or read the .safetensors file that `save` wrote."
        )

    def keep(self, labels: np.ndarray, width: int, origin: dict[str, Any]) -> None:
        """Set the classes in the order of `labels_`, the number of features, and other contents of the file."""
        self.labels_, self.classes_ = labels, np.sort(labels)
        self.n_features_in_, self.origin_ = int(width), origin

    @property
    def _places(self) -> np.ndarray:
        """Positions of `labels_` in `classes_`."""
        return np.searchsorted(self.classes_, self.labels_)


class ImportedLinearClassifier(LinearDecision, Imported):
    """A linear model read from a file, as `from_liblinear` returns it.

    It predicts as the program that wrote it does. It has no certificate: the file contains no dual variables.

    Attributes
    ----------
    coef_ : ndarray of shape (1, n_features) or (n_classes, n_features)
        In the order of `classes_`; of two classes, the second is positive.
    intercept_ : ndarray of shape (1,) or (n_classes,)
    classes_, labels_, n_features_in_, feature_names_in_, origin_, uncertified_
        See `Imported`.
    """

    def _labels(self, scores: np.ndarray) -> np.ndarray:
        if scores.ndim > 1:
            return self.labels_[scores[:, self._places].argmax(axis=1)]
        second = scores if self._places[0] == 0 else -scores
        return self.labels_[(second > 0).astype(np.intp)]


@dataclass(eq=False, repr=False, kw_only=True)
class ImportedKernelClassifier(KernelDecision, Imported):
    """A kernel model read from a file, as `from_libsvm` returns it: each class against each other.

    It predicts as the program that wrote it does. It has no certificate: the file does not contain the rows of the fit
    and their weights.

    Parameters
    ----------
    decision_function_shape : {"ovr", "ovo"}, default="ovr"
        Several classes: one value per class, from votes and scores as in SVC, or one per pair of classes.
    break_ties : bool, default=False
        Whether the scores decide among classes with equal numbers of votes.
    n_jobs : int, default=None
        Number of threads for blocks of rows in prediction.

    Attributes
    ----------
    support_vectors_ : CSR matrix of shape (n_SV, n_features)
        Sorted by class, in the order of `labels_`.
    n_support_ : ndarray of shape (n_classes,)
        Number of support vectors of each class, in the order of `labels_`.
    dual_coef_ : ndarray of shape (n_classes - 1, n_SV)
        As in SVC, for classes in the order of `labels_`.
    intercept_ : ndarray of shape (n_classes * (n_classes - 1) / 2,)
        The intercept of each pair of `labels_`.
    multi_class_ : {"ovo"}
    classes_, labels_, n_features_in_, origin_, uncertified_
        See `Imported`.
    """

    decision_function_shape: str = "ovr"
    break_ties: bool = False
    n_jobs: int | None = None

    def _decisions(self, scores: np.ndarray) -> np.ndarray:
        """Return the values of `decision_function`, in the order of `classes_`."""
        scores = super()._decisions(scores)
        places = self._places
        if scores.ndim == 1:
            return scores if places[0] == 0 else -scores
        if self.decision_function_shape != "ovo":
            return scores[:, np.argsort(places)]
        pairs = np.sort(places[np.array(self._scheme().labels)], axis=1)
        turned = places[np.array(self._scheme().labels)[:, 0]] != pairs[:, 0]
        return np.where(turned, -scores, scores)[:, np.lexsort(pairs.T[::-1])]

    def _classes_in_order(self) -> np.ndarray:
        return self.labels_
