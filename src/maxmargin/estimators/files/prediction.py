"""Predictions and accuracies for the rows of files, which are read once, block by block."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from copy import copy
from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from ...numerics.labels import label_array
from ...readers.files import LABELS_OF_FILES, Paths, names_files
from ...readers.model_rows import RowsForModel
from ...readers.table import DataError, Expected
from ..decisions import class_codes, text_of

# Attributes of a fitted model that predictions do not use, and that may be large, or were compared once for all blocks.
NOT_FOR_PREDICTION = ("certificate_", "verdict_", "history_", "message_", "feature_names_in_", "callback")


def for_prediction(model: Any) -> Any:
    """Return a copy of a fitted model that predicts plain arrays, without what predictions do not use."""
    found = copy(model)
    for name in NOT_FOR_PREDICTION:
        vars(found).pop(name, None)
    return found


class FilesDecision:
    """Predictions for the rows of files, which are read once, block by block: base of classifiers."""

    def _for_files(self, method: str, paths: Paths) -> np.ndarray:
        """Return what a method, such as `predict`, returns for all rows of files.

        Raises
        ------
        DataError
            If a file cannot be read, or does not fit the model.
        """
        check_is_fitted(self)
        function = getattr(for_prediction(self), method)
        return np.concatenate([function(X) for X, _ in RowsForModel(paths, expected_of(self)).blocks()])

    def score(self, X: Any, y: Any = None, sample_weight: Any = None) -> float:
        """Return the accuracy on these rows.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features), path, or list of paths
            Files as of `predict`, with labels.
        y : array-like of shape (n_samples,), path, or list of paths
            For files only if they are .npy files: the .npy files of the labels.
        sample_weight : array-like of shape (n_samples,), default=None
            Not with files.

        Returns
        -------
        accuracy : float
        """
        if not names_files(X):
            parent: Any = super()
            return parent.score(X, label_array(y), sample_weight)
        check_is_fitted(self)
        if sample_weight is not None:
            raise ValueError("files have no sample weights: score arrays or memory maps with sample_weight.")
        if not (y is None or names_files(y)):
            raise ValueError(LABELS_OF_FILES)
        return _accuracy(for_prediction(self), X, y, expected_of(self))


def expected_of(
    model: Any,
    label: str | None = None,
    use: Sequence[str] = (),
    drop: Sequence[str] = (),
    header: bool | None = None,
    delimiter: str | None = None,
) -> Expected:
    """Return what a file has to hold for a fitted model; the other parameters are those of `Expected`.

    The label column, the first index and the layout of text are by default those of the file of the fit.
    """
    names, source = getattr(model, "feature_names_in_", None), getattr(model, "source_", {})
    return Expected(
        getattr(model, "n_features_in_", None),  # a model that hashes its columns has none
        label=label or source.get("label"),
        features=None if names is None else [str(name) for name in names],
        first_index=source.get("first_index"),
        use=use,
        drop=drop,
        header=source.get("header") if header is None else header,
        delimiter=delimiter or source.get("delimiter"),
    )


def _accuracy(model: Any, paths: Paths, labels: Paths | None, expected: Expected) -> float:
    """Return the share of the rows of files that `model.predict` gives their label; arguments as of `RowsForModel`."""
    rows, agreement = RowsForModel(paths, expected, labels), Agreement(model.classes_)
    if not rows.has_labels:
        raise DataError(
            f"{paths}: the files have no labels, which an accuracy needs; add a label to each row."
        )
    for X, numbers in rows.blocks():
        agreement.add(numbers, model.predict(X))
    right, total, _ = agreement.counts(rows.labels())
    return right / total


class Agreement:
    """How often each label of a data set is predicted as each class.

    Labels are numbered while they are read, since the type of labels that are text depends on all of them.

    Parameters
    ----------
    classes_ : ndarray
        Of the model.
    """

    def __init__(self, classes_: Any) -> None:
        self.classes_, self._pairs = np.asarray(classes_), Counter[int]()

    def add(self, numbers: np.ndarray | None, predicted: np.ndarray) -> None:
        """Count rows by the number of their label and by the class that is predicted."""
        assert numbers is not None
        codes = class_codes(self, predicted)
        pairs, counts = np.unique(numbers.astype(np.int64) * self.classes_.size + codes, return_counts=True)
        self._pairs.update(dict(zip(pairs.tolist(), counts.tolist(), strict=True)))

    def counts(self, labels: np.ndarray) -> tuple[int, int, bool]:
        """Return the rows that are predicted right, all rows, and whether a label is a class.

        Labels and classes are compared as text, as a model of classes in a text file knows them: 1 is 1.0.

        Parameters
        ----------
        labels : ndarray
            The label of each number.
        """
        truth, names = [text_of(label) for label in labels], [text_of(name) for name in self.classes_]
        divided = ((*divmod(pair, len(names)), count) for pair, count in self._pairs.items())
        right = sum(count for number, code, count in divided if truth[number] == names[code])
        return right, self._pairs.total(), not {*truth}.isdisjoint(names)
