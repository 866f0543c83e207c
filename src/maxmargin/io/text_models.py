"""Model files of liblinear and libsvm: lines of names and values, then weights or support vectors as text.

R.-E. Fan and others, "LIBLINEAR: a library for large linear classification", JMLR 9, 2008, and C.-C. Chang, C.-J. Lin,
"LIBSVM: a library for support vector machines", ACM TIST 2, 2011. The layouts are those of `save_model` in version 2 of
liblinear and of `svm_save_model` in version 3 of libsvm.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain, pairwise
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.utils.validation import check_is_fitted

from ..estimators.kernel import KernelMaxMarginClassifier
from ..estimators.linear import MaxMarginClassifier
from ..estimators.online import OnlineMarginClassifier
from ..kernels.functions import Gaussian, Kernel, Linear, Polynomial, Sigmoid
from ..numerics.files import written_whole
from . import ModelFileError

C_INT = 2**31 - 1  # the largest int of C, of which such files are made
KINDS = (MaxMarginClassifier, OnlineMarginClassifier, KernelMaxMarginClassifier)
LIBSVM_KERNELS = {Linear: "linear", Polynomial: "polynomial", Gaussian: "rbf", Sigmoid: "sigmoid"}


def to_liblinear(model: Any, path: str | os.PathLike[str], *, labels: Sequence[int] | None = None) -> None:
    """Write a linear classifier as a model file of liblinear, whose `predict` then gives the same labels.

    Parameters
    ----------
    model : MaxMarginClassifier or OnlineMarginClassifier
        Fitted; or a KernelMaxMarginClassifier with the linear kernel.
    path : str or path-like
        The file appears whole or not at all.
    labels : sequence of int, default=None
        The number that stands for each of `classes_`, where these are not whole numbers themselves.

    Raises
    ------
    ModelFileError
        If the file cannot hold the model; the message says what can be done.
    OSError
        If the file cannot be written.

    Notes
    -----
    Weights have 17 digits, from which every float64 is read back unchanged. The intercept is the weight of a feature of
    constant value 1 (``bias 1``); without one there is no such feature (``bias -1``). The line ``solver_type`` names
    the loss; neither C nor the norm have a place in the file.
    """
    coef, intercept = weights_of(model)
    numbers = _numbers_of(model.classes_, labels)
    biased = bool(intercept.any())
    # a line of the file is a feature
    rows = np.column_stack([coef, intercept]).T if biased else coef.T
    # of two classes, the first in the file is the positive one
    order = numbers[::-1] if len(numbers) == 2 else numbers
    hinge = getattr(model, "loss", "squared_hinge") == "hinge"
    header = [
        f"solver_type {'L2R_L1LOSS_SVC_DUAL' if hinge else 'L2R_L2LOSS_SVC'}",
        f"nr_class {len(numbers)}",
        f"label {' '.join(map(str, order.tolist()))}",
        f"nr_feature {coef.shape[1]}",
        f"bias {1 if biased else -1}",
        "w",
    ]
    _write(path, header, (f"{_digits(row)} " for row in rows))


def to_libsvm(model: Any, path: str | os.PathLike[str], *, labels: Sequence[int] | None = None) -> None:
    """Write a kernel classifier as a model file of libsvm, whose `svm-predict` then gives the same labels.

    Parameters
    ----------
    model : KernelMaxMarginClassifier
        Fitted, of two classes, or of several with ``multi_class="ovo"``: libsvm compares classes in pairs.
    path : str or path-like
        The file appears whole or not at all.
    labels : sequence of int, default=None
        The number that stands for each of `classes_`, where these are not whole numbers themselves.

    Raises
    ------
    ModelFileError
        If the file cannot hold the model; the message says what can be done.
    OSError
        If the file cannot be written.

    Notes
    -----
    Numbers have 17 digits, from which every float64 is read back unchanged; entries of 0 are left out. ``svm_type`` is
    ``c_svc`` whatever the loss was: it does not matter to predictions.
    """
    check_kernel_model(model)
    kernel, counts, count = model.kernel_, model.n_support_, len(model.classes_)
    if type(kernel) not in LIBSVM_KERNELS:
        raise unsupported_kernel(kernel)
    if count > 2 and model.multi_class_ == "ovr":
        raise ModelFileError(
            "libsvm compares classes in pairs, and this model compares each class with the rest: fit with "
            'multi_class="ovo" (on the command line, --multi-class ovo), or write it with to_onnx.'
        )
    numbers = _numbers_of(model.classes_, labels)
    # of two classes, the first in the file is the positive one
    order = np.arange(count)[::-1] if count == 2 else np.arange(count)
    ends = np.cumsum(counts)
    rows = np.concatenate([np.arange(ends[k] - counts[k], ends[k]) for k in order])
    parameters = [name for name in ("degree", "gamma", "coef0") if hasattr(kernel, name)]
    header = [
        "svm_type c_svc",
        f"kernel_type {LIBSVM_KERNELS[type(kernel)]}",
        *(f"{name} {getattr(kernel, name):.17g}" for name in parameters),
        f"nr_class {count}",
        f"total_sv {len(rows)}",
        f"rho {_digits(-model.intercept_)}",
        f"label {' '.join(map(str, numbers[order].tolist()))}",
        f"nr_sv {' '.join(map(str, counts[order].tolist()))}",
        "SV",
    ]
    _write(
        path, header, _vector_lines(model.dual_coef_[:, rows], sp.csr_matrix(model.support_vectors_)[rows])
    )


def _numbers_of(classes: np.ndarray, labels: Sequence[int] | None) -> np.ndarray:
    """Return the whole number that stands for each class, from `labels` where they are no such numbers."""
    given = classes if labels is None else np.asarray(labels, dtype=object)
    if given.shape != classes.shape or not all(map(_is_c_int, given)) or np.unique(given).size < given.size:
        raise ModelFileError(
            f"classes in such a file must be different whole numbers of 32 bits; got {str(given.tolist())[:60]}: give "
            f"a number for each of the {classes.size} classes, in sorted order, with labels=[0, 1, ...] (--labels "
            "0,1,...)."
        )
    return given.astype(int)


def _is_c_int(value: Any) -> bool:
    """Return whether a value is a whole number that an int of C holds."""
    number = isinstance(value, int | float | np.integer | np.floating) and not isinstance(value, bool)
    return bool(number and abs(value) <= C_INT and float(value).is_integer())


def _vector_lines(coefficients: np.ndarray, vectors: Any) -> Iterator[str]:
    """Yield the line of each row of a CSR matrix: its coefficients, and its entries as ``index:value``."""
    vectors.sort_indices()
    for i, (start, end) in enumerate(pairwise(vectors.indptr)):
        entries = zip(vectors.indices[start:end].tolist(), vectors.data[start:end].tolist(), strict=True)
        words = [f"{j + 1}:{value:.17g}" for j, value in entries if value]
        yield " ".join([_digits(coefficients[:, i]), *words, ""])


def _digits(numbers: np.ndarray) -> str:
    """Return numbers with 17 digits, from which every float64 is read back unchanged."""
    return " ".join(format(number, ".17g") for number in numbers.tolist())


def _write(path: str | os.PathLike[str], header: Iterable[str], rows: Iterable[str]) -> None:
    """Write the lines of a file, which appears whole or not at all."""
    with written_whole(path) as file:
        file.writelines(f"{line}\n".encode() for line in chain(header, rows))


# what files for other programs hold of a classifier: weights of features, or support vectors


def weights_of(model: Any) -> tuple[np.ndarray, np.ndarray]:
    """Return weights and intercepts, a row for each class, or of two classes that of the second.

    Raises
    ------
    ModelFileError
        If the model has none, or if a number is not finite.
    """
    _check_kind(model, "weights of features")
    if isinstance(model, KernelMaxMarginClassifier):
        several = len(model.classes_) > 2 and model.multi_class_ == "ovo"
        if not isinstance(model.kernel_, Linear) or several:
            raise ModelFileError(
                "the file has a row of weights for each class, which only a linear kernel has, of several classes "
                'with multi_class="ovr": write the model with to_libsvm or to_onnx.'
            )
    coef, intercept = np.asarray(model.coef_, float), np.ravel(model.intercept_).astype(float)
    _check_numbers(coef_=coef, intercept_=intercept)
    return coef, intercept


def check_kernel_model(model: Any) -> None:
    """Raise ModelFileError where a model is no fitted classifier with support vectors of finite numbers."""
    _check_kind(model, "support vectors")
    if not isinstance(model, KernelMaxMarginClassifier):
        raise ModelFileError("this model has no support vectors: use to_liblinear or to_onnx.")
    _check_numbers(dual_coef_=model.dual_coef_, intercept_=model.intercept_)


def _check_kind(model: Any, what: str) -> None:
    """Raise ModelFileError where a model is no fitted classifier; `what` names the content of the file."""
    if not isinstance(model, KINDS):
        raise ModelFileError(
            f"the file can hold {what} of one of {', '.join(kind.__name__ for kind in KINDS)}, not of "
            f"{type(model).__name__}: write the classifier inside it alone, or use to_onnx for a pipeline."
        )
    check_is_fitted(model)


def _check_numbers(**arrays: np.ndarray) -> None:
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
