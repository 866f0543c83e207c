"""The parts of a model that files for other programs hold, from any classifier."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from ..estimators.imported import ImportedKernelClassifier, ImportedLinearClassifier
from ..estimators.kernel import KernelMaxMarginClassifier
from ..estimators.linear import MaxMarginClassifier
from ..estimators.online import OnlineMarginClassifier
from ..estimators.selection import MarginRFE
from ..kernels.functions import Kernel, Linear, Pairwise, Precomputed
from ..numerics.sizes import memory_shortage
from .sealed_file import ModelFileError

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
        machine = isinstance(model, MACHINES)
        if machine and not isinstance(model.kernel_, Linear):
            if isinstance(model.kernel_, Precomputed | Pairwise):
                raise kernel_error(model.kernel_, "features have no weights", "has no weights of features")
            raise ModelFileError(
                f"only the linear kernel has weights of features, and this model has the kernel "
                f"{model.kernel_.name!r}: write the model with to_libsvm or to_onnx."
            )
        if machine and len(model.classes_) > 2 and model.multi_class_ == "ovo":
            raise ModelFileError(
                "the file has one row of weights for each class, and this model compares classes in pairs: write it "
                'with to_libsvm or to_onnx, or fit with multi_class="ovr".'
            )
        if machine:
            check_room(model.intercept_.size, model.support_vectors_.shape[1])
        labels, coef = labels_of(model), np.asarray(model.coef_, float)
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


MACHINES = (KernelMaxMarginClassifier, ImportedKernelClassifier)
KINDS = (MaxMarginClassifier, OnlineMarginClassifier, ImportedLinearClassifier, *MACHINES)


def _check_kind(model: Any, what: str) -> None:
    """Raise ModelFileError where a model is no fitted classifier; `what` names the content of the file."""
    if not isinstance(model, KINDS):
        remedy = ""
        if hasattr(model, "steps"):
            remedy = " The file cannot hold the other steps of a pipeline: use to_onnx."
        elif isinstance(model, MarginRFE):
            remedy = " Write its estimator_, which was fitted to the columns in support_."
        raise ModelFileError(
            f"the file can hold {what} of one of {', '.join(kind.__name__ for kind in KINDS)}; got "
            f"{type(model).__name__}.{remedy}"
        )
    check_is_fitted(model)


def check_machine(model: Any) -> None:
    """Raise ModelFileError where a model is no fitted classifier with support vectors."""
    _check_kind(model, "support vectors")
    if not isinstance(model, MACHINES):
        raise ModelFileError("this model has no support vectors: use to_liblinear, to_json or to_onnx.")


def check_room(rows: int, width: int) -> None:
    """Raise ModelFileError where rows with a number for every feature exceed the free memory."""
    if shortage := memory_shortage(8.0 * rows * width):
        raise ModelFileError(
            f"the file has a number for each of {width} features, which takes {shortage}: write it with to_libsvm, or "
            "number the features of the data without gaps and fit again."
        )


def labels_of(model: Any) -> np.ndarray:
    """Return the classes in the order in which equal scores are decided: the first of these is predicted."""
    return getattr(model, "labels_", model.classes_)


def whole_labels(names: np.ndarray, classes: np.ndarray, labels: Sequence[int] | None) -> np.ndarray:
    """Return the whole number that stands for each of the classes.

    Parameters
    ----------
    names : ndarray of shape (n_classes,)
        The classes in the order of the result.
    classes : ndarray of shape (n_classes,)
        The classes sorted.
    labels : sequence of int or None
        A number for each of `classes`; None where they are numbers.
    """
    given = classes if labels is None else np.asarray(labels, dtype=object)
    numbers = given.ravel().tolist()
    whole = given.shape == classes.shape and all(map(_is_c_int, numbers))
    if labels is not None and not (whole and len(set(numbers)) == classes.size):
        raise ModelFileError(
            f"labels must be {classes.size} different whole numbers of 32 bits, one for each of the classes "
            f"{classes.tolist()!r} in this order; got {str(labels)[:60]}."
        )
    if not whole:
        raise ModelFileError(
            f"the classes in such a file must be whole numbers of 32 bits, and those of the model are {numbers!r}: "
            "give a number for each, in this order, with labels=[0, 1, ...] (on the command line, --labels 0,1,...)."
        )
    return given.astype(int)[np.searchsorted(classes, names)]


def _is_c_int(value: Any) -> bool:
    """Return whether a value is a whole number that an int of C holds."""
    number = isinstance(value, int | float | np.integer | np.floating) and not isinstance(value, bool)
    return bool(number and abs(value) <= C_INT and float(value).is_integer())


def check_numbers(**arrays: np.ndarray) -> None:
    """Raise ModelFileError where a number is not finite: no program could read it."""
    for name, numbers in arrays.items():
        if not np.isfinite(numbers).all():
            raise ModelFileError(f"{name} contains numbers that are not finite; nothing is written.")


def kernel_error(kernel: Kernel, precomputed: str, named: str) -> ModelFileError:
    """Return the error of a format that cannot hold a kernel.

    `precomputed` completes "the kernel matrix was precomputed, and ...", `named` "the kernel <name> ...".
    """
    if isinstance(kernel, Precomputed):
        reason = f"the kernel matrix was precomputed, and {precomputed}"
    elif isinstance(kernel, Pairwise) and callable(kernel.function):
        reason = "the kernel is a Python function"
    else:
        reason = f"the kernel {getattr(kernel, 'function', kernel)!s} {named}"
    return ModelFileError(f'{reason}: fit with kernel="linear", "poly", "rbf" or "sigmoid".')
