"""The parts of a model that files for other programs hold, from any classifier.

Linear models have weights of features; kernel models have support vectors. Of two classes there is one score, positive
for the second of the classes in their order here; liblinear and libsvm name the positive class first.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from ..estimators.kernel import KernelMaxMarginClassifier
from ..estimators.linear import MaxMarginClassifier
from ..estimators.online import OnlineMarginClassifier
from ..estimators.prediction import ImportedKernelClassifier, ImportedLinearClassifier
from ..kernels.functions import Kernel, Linear
from ..numerics.sizes import memory_shortage
from .container import ModelFileError

C_INT = 2**31 - 1  # the largest int of C, of which such files are made


@dataclass(frozen=True)
class LinearModel:
    """The scores w_k . x + b_k of all classes, or of two classes that of the second against the first.

    Attributes
    ----------
    labels : ndarray of shape (n_classes,)
        Of classes with equal scores, the first of these is predicted.
    coef : ndarray of shape (1, n_features) or (n_classes, n_features)
        In the order of `labels`.
    intercept : ndarray of shape (1,) or (n_classes,)
    """

    labels: np.ndarray
    coef: np.ndarray
    intercept: np.ndarray

    @staticmethod
    def of(model: Any) -> LinearModel:
        """Return the weights of a fitted classifier.

        Raises
        ------
        ModelFileError
            If it has none, or if a weight is not finite.
        """
        _check_kind(model, "weights of features")
        if isinstance(model, KERNEL_MODELS):
            several = len(model.classes_) > 2 and model.multi_class_ == "ovo"
            if not isinstance(model.kernel_, Linear) or several:
                raise ModelFileError(
                    "the file has a row of weights for each class, which only a linear kernel has, of several classes "
                    'with multi_class="ovr": write the model with to_libsvm or to_onnx.'
                )
            check_room(model.intercept_.size, model.support_vectors_.shape[1])
        labels, coef = ordered_classes(model), np.asarray(model.coef_, float)
        intercept = np.ravel(model.intercept_).astype(float)
        check_numbers(coef_=coef, intercept_=intercept)
        return LinearModel(model.classes_, coef, intercept).reordered(np.searchsorted(model.classes_, labels))

    def imported(self, origin: dict[str, Any]) -> ImportedLinearClassifier:
        """Return the classifier of these scores, which a file holds; `origin` are other contents of the file."""
        model = ImportedLinearClassifier()
        model.keep(self.labels, self.coef.shape[1], origin)
        ordered = self.reordered(np.argsort(self.labels))
        model.coef_, model.intercept_ = ordered.coef, ordered.intercept
        return model

    def reordered(self, order: np.ndarray) -> LinearModel:
        """Return the model with its labels in another order; the row of two classes is that of the second."""
        if len(order) > 2:
            return LinearModel(self.labels[order], self.coef[order], self.intercept[order])
        sign = 1.0 if order[0] == 0 else -1.0
        return LinearModel(self.labels[order], sign * self.coef, sign * self.intercept)


KERNEL_MODELS = (KernelMaxMarginClassifier, ImportedKernelClassifier)
KINDS = (MaxMarginClassifier, OnlineMarginClassifier, ImportedLinearClassifier, *KERNEL_MODELS)


def _check_kind(model: Any, what: str) -> None:
    """Raise ModelFileError where a model is no fitted classifier; `what` names the content of the file."""
    if not isinstance(model, KINDS):
        raise ModelFileError(
            f"the file can hold {what} of one of {', '.join(kind.__name__ for kind in KINDS)}, not of "
            f"{type(model).__name__}: write the classifier inside it alone, or use to_onnx for a pipeline."
        )
    check_is_fitted(model)


def check_kernel_model(model: Any) -> None:
    """Raise ModelFileError where a model is no fitted classifier with support vectors."""
    _check_kind(model, "support vectors")
    if not isinstance(model, KERNEL_MODELS):
        raise ModelFileError("this model has no support vectors: use to_liblinear or to_onnx.")


def check_room(rows: int, width: int) -> None:
    """Raise ModelFileError where rows with a number for every feature exceed the free memory."""
    if shortage := memory_shortage(8.0 * rows * width):
        raise ModelFileError(
            f"a number for each of {width} features takes {shortage}: write it with to_libsvm."
        )


def ordered_classes(model: Any) -> np.ndarray:
    """Return the classes in the order in which equal scores are decided: the first of these is predicted."""
    return getattr(model, "labels_", model.classes_)


def integers_of(ordered: np.ndarray, classes: np.ndarray, labels: Sequence[int] | None) -> np.ndarray:
    """Return the whole number that stands for each class.

    Parameters
    ----------
    ordered : ndarray of shape (n_classes,)
        The classes in the order of the result (`ordered_classes`).
    classes : ndarray of shape (n_classes,)
        The classes sorted.
    labels : sequence of int or None
        A number for each of `classes`; None where they are numbers.
    """
    given = classes if labels is None else np.asarray(labels, dtype=object)
    if given.shape != classes.shape or not all(map(_is_c_int, given)) or np.unique(given).size < given.size:
        raise ModelFileError(
            f"classes in such a file must be different whole numbers of 32 bits; got {str(given.tolist())[:60]}: give "
            f"a number for each of the {classes.size} classes, in sorted order, with labels=[0, 1, ...] (--labels "
            "0,1,...)."
        )
    return given.astype(int)[np.searchsorted(classes, ordered)]


def _is_c_int(value: Any) -> bool:
    """Return whether a value is a whole number that an int of C holds."""
    number = isinstance(value, int | float | np.integer | np.floating) and not isinstance(value, bool)
    return bool(number and abs(value) <= C_INT and float(value).is_integer())


def check_numbers(**arrays: np.ndarray) -> None:
    """Raise ModelFileError where a number is not finite: no program could read it."""
    for name, numbers in arrays.items():
        if not np.isfinite(numbers).all():
            raise ModelFileError(f"{name} contains numbers that are not finite; nothing is written.")


def unsupported_kernel(kernel: Kernel) -> ModelFileError:
    """Return the error of a format that cannot hold a kernel."""
    name = getattr(kernel, "function", kernel.name)
    return ModelFileError(
        f'the file cannot hold the kernel {name!s}: fit with kernel="linear", "poly", "rbf" or "sigmoid".'
    )
