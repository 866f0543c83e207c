"""Model files of libsvm: support vectors as text, one a line.

C.-C. Chang, C.-J. Lin, "LIBSVM: a library for support vector machines", ACM TIST 2, 2011; the layout is that of
`svm_save_model` in version 3.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from itertools import chain
from numbers import Integral
from typing import Any

import numpy as np
import scipy.sparse as sp

from ..estimators.imported import ImportedKernelClassifier
from ..kernels.functions import Gaussian, Kernel, Linear, Pairwise, Polynomial, Precomputed, Sigmoid
from ..numerics.files import written_whole
from .model_file import ModelFileError
from .models import C_INT, KernelModel, check_numbers, whole_labels
from .text_model import TextModel, digits

KERNELS = ("linear", "polynomial", "rbf", "sigmoid")


def to_libsvm(model: Any, path: str | os.PathLike[str], *, labels: Sequence[int] | None = None) -> None:
    """Write a kernel classifier as a model file of libsvm, whose `svm-predict` then says what ours does.

    Parameters
    ----------
    model : KernelMaxMarginClassifier or ImportedKernelClassifier
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
    Numbers have 17 digits and come back as they were; entries of 0 are left out. ``svm_type`` is ``c_svc`` whatever
    the loss was: it does not matter to predictions.
    """
    machine = KernelModel.of(model)
    lines = list(_parameters(machine.kernel))
    count = len(machine.labels)
    if count > 2 and model.multi_class_ == "ovr":
        raise ModelFileError(
            "libsvm compares classes in pairs, and this model each class with the rest: fit with "
            'multi_class="ovo" (on the command line, --multi-class ovo), or write it with to_onnx.'
        )
    vectors: Any = sp.csr_matrix(machine.vectors)
    check_numbers(dual_coef_=machine.dual_coef, intercept_=machine.intercept, support_vectors_=vectors.data)
    numbers = whole_labels(machine.labels, model.classes_, labels)
    # of two classes, the first in the file is the positive one
    order = np.arange(count)[::-1] if count == 2 else np.arange(count)
    ends = np.cumsum(machine.counts)
    rows = np.concatenate([np.arange(ends[k] - machine.counts[k], ends[k]) for k in order])
    lines += [
        f"nr_class {count}",
        f"total_sv {vectors.shape[0]}",
        f"rho {digits((-machine.intercept).tolist())}",
        f"label {' '.join(map(str, numbers[order].tolist()))}",
        f"nr_sv {' '.join(map(str, machine.counts[order].tolist()))}",
        "SV",
    ]
    with written_whole(path) as file:
        file.write("".join(f"{line}\n" for line in lines).encode())
        for i in rows:
            some = slice(vectors.indptr[i], vectors.indptr[i + 1])
            entries = zip(vectors.indices[some].tolist(), vectors.data[some].tolist(), strict=True)
            words = [digits(machine.dual_coef[:, i].tolist())]
            words += [f"{j + 1}:{value:.17g}" for j, value in sorted(entries) if value]
            file.write(f"{' '.join(words)} \n".encode())


def from_libsvm(path: str | os.PathLike[str], *, n_features: int | None = None) -> ImportedKernelClassifier:
    """Read a classifier that libsvm wrote.

    Parameters
    ----------
    path : str or path-like
        A model of ``c_svc`` or ``nu_svc`` with one of the kernels linear, polynomial, rbf and sigmoid. Probabilities
        are not read.
    n_features : int, default=None
        Columns of the rows that are to be classified; the file does not say. None takes the largest column in which
        a support vector has an entry.

    Returns
    -------
    ImportedKernelClassifier
        It has no certificate: the file does not say of which rows the model was made, nor what they weighed.

    Raises
    ------
    ModelFileError
        If the file is cut short, malformed, or holds no classifier; the message says where.
    OSError
        If there is no such file, or it cannot be read.
    """
    if n_features is not None and not (_whole(n_features) and 1 <= n_features <= C_INT):
        raise ModelFileError(
            f"n_features must be a whole number of columns, {C_INT} at most, or None; got {n_features!r}."
        )
    file = TextModel.read(path, "svm_type", "SV")
    kind = file.word("svm_type")
    if kind not in ("c_svc", "nu_svc"):
        raise ModelFileError(
            f"{file.path}: a model of {kind!r} is none of libsvm's classifiers: c_svc, nu_svc."
        )
    kernel = _kernel(file)
    classes, total = file.count("nr_class", 2, "a classifier"), file.count("total_sv", 0, "a model")
    labels, pairs = file.labels(classes), classes * (classes - 1) // 2
    rho, counts = file.numbers("rho", float, pairs), file.numbers("nr_sv", int, classes)
    if sum(counts.tolist()) != total or (counts < 0).any():
        raise ModelFileError(
            f"{file.path}: 'nr_sv' must add up to 'total_sv', {total}; it is {counts.tolist()!r}."
        )
    lines = file.lines
    if len(lines) != total:
        cut = "is cut short" if len(lines) < total else "goes on after its end"
        raise ModelFileError(
            f"{file.path}: the file {cut}: of {total} support vectors there are {len(lines)}; copy or write it again."
        )
    coefficients, vectors = _vectors(file, lines, classes - 1)
    width = max(vectors.shape[1], 1)
    if n_features is not None:
        if n_features < width:
            raise ModelFileError(
                f"{file.path}: the support vectors have {width} columns, more than n_features={n_features}."
            )
        width = int(n_features)
        vectors.resize(total, width)
    model = ImportedKernelClassifier()
    origin = {"format": "libsvm", "svm_type": kind, "kernel": str(kernel)}
    if classes == 2:  # the first in the file is the positive one
        rows = np.concatenate([np.arange(counts[0], total), np.arange(counts[0])])
        labels, counts, vectors, coefficients = (
            labels[::-1],
            counts[::-1],
            vectors[rows],
            coefficients[:, rows],
        )
    model.keep(labels, width, origin)
    model.multi_class_ = "ovo"
    model.support_vectors_, model.n_support_ = vectors, counts.astype(np.int32)
    model.dual_coef_, model.intercept_ = coefficients, -rho
    model.make_machine(kernel)
    return model


def _whole(number: Any) -> bool:
    return isinstance(number, Integral) and not isinstance(number, bool)


def _parameters(kernel: Kernel) -> Iterator[str]:
    """The lines that name a kernel."""
    names = {Linear: "linear", Polynomial: "polynomial", Gaussian: "rbf", Sigmoid: "sigmoid"}
    if type(kernel) not in names:
        if isinstance(kernel, Precomputed):
            what = "the kernel matrix was precomputed, and its rows are nowhere"
        elif isinstance(kernel, Pairwise) and callable(kernel.function):
            what = "the kernel is a function of Python's"
        else:
            what = f"the kernel {getattr(kernel, 'function', kernel)!s} is none of libsvm's"
        raise ModelFileError(f'{what}: fit with kernel="linear", "poly", "rbf" or "sigmoid".')
    yield "svm_type c_svc"
    yield f"kernel_type {names[type(kernel)]}"
    for name, form in (("degree", "d"), ("gamma", ".17g"), ("coef0", ".17g")):
        if hasattr(kernel, name):
            yield f"{name} {format(getattr(kernel, name), form)}"


def _kernel(file: TextModel) -> Kernel:
    """The kernel that a file names."""
    name = file.word("kernel_type")
    if name == "linear":
        return Linear()
    if name == "rbf":
        return Gaussian(float(file.number("gamma", float)))
    if name == "polynomial":
        degree = file.count("degree", 0, "a polynomial")
        if degree > C_INT:
            raise ModelFileError(f"{file.path}: 'degree' is {degree}, and {C_INT} at most.")
        return Polynomial(float(file.number("gamma", float)), degree, float(file.number("coef0", float)))
    if name == "sigmoid":
        return Sigmoid(float(file.number("gamma", float)), float(file.number("coef0", float)))
    rows = " (its rows are numbers of a matrix that is not here)" if name == "precomputed" else ""
    raise ModelFileError(
        f"{file.path}: the kernel {name!r} is none that can be read: {', '.join(KERNELS)}{rows}."
    )


def _vectors(file: TextModel, lines: list[bytes], count: int) -> tuple[np.ndarray, Any]:
    """`count` coefficients of every support vector, and the vectors as a CSR matrix."""
    coefficients, values, indices, indptr = [], [], [], [0]
    for number, line in enumerate(lines, file.first):
        place, words = f"{file.path}, line {number}", line.split()
        entries = [word.partition(b":") for word in words[count:]]
        if len(words) < count or any(b":" in word for word in words[:count]):
            raise ModelFileError(f"{place}: a support vector begins with {count} coefficients.")
        try:
            columns = [int(index) for index, _, _ in entries]
            coefficients += [float(word) for word in words[:count]]
            values += [float(value) for _, _, value in entries]
        except ValueError:
            raise ModelFileError(
                f"{place}: entries are index:value, and numbers; got {line[:60]!r}."
            ) from None
        if any(after <= before for before, after in zip(chain([0], columns), columns, strict=False)):
            raise ModelFileError(f"{place}: indices must count from 1, and grow; got {columns[:8]!r}.")
        if columns and columns[-1] > C_INT:
            raise ModelFileError(
                f"{place}: indices are {C_INT} at most, numbers of 32 bits; got {str(columns[-1])[:40]}."
            )
        indices += columns
        indptr.append(len(indices))
    found = np.array(coefficients).reshape(len(lines), count).T, np.array(values)
    if not all(np.isfinite(numbers).all() for numbers in found):
        raise ModelFileError(f"{file.path}: a coefficient or an entry is not finite.")
    shape = (len(lines), max(indices, default=1))
    vectors = sp.csr_matrix((found[1], np.array(indices, np.int64) - 1, indptr), shape)
    return np.ascontiguousarray(found[0]), vectors
