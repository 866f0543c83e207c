"""Model files of liblinear and libsvm: lines of names and values, then weights or support vectors as text.

R.-E. Fan and others, "LIBLINEAR: a library for large linear classification", JMLR 9, 2008, and C.-C. Chang, C.-J. Lin,
"LIBSVM: a library for support vector machines", ACM TIST 2, 2011. The layouts are those of `save_model` in version 2 of
liblinear and of `svm_save_model` in version 3 of libsvm.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import fields
from itertools import chain, pairwise
from math import isfinite
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

from ..estimators.prediction import ImportedKernelClassifier, ImportedLinearClassifier
from ..kernels.functions import Gaussian, Kernel, Linear, Polynomial, Sigmoid
from ..numerics.files import Fault, faults_of, written_whole
from . import foreign
from .container import ModelFileError
from .foreign import C_INT, LinearModel

CRAMMER_SINGER = "MCSVM_CS"  # of two classes, too, each has a row of weights
LIBLINEAR_SOLVERS = (
    "L2R_LR", "L2R_L2LOSS_SVC_DUAL", "L2R_L2LOSS_SVC", "L2R_L1LOSS_SVC_DUAL", CRAMMER_SINGER, "L1R_L2LOSS_SVC",
    "L1R_LR", "L2R_LR_DUAL",
)  # fmt: skip
LIBSVM_KERNELS: dict[str, Any] = {
    "linear": Linear, "polynomial": Polynomial, "rbf": Gaussian, "sigmoid": Sigmoid
}  # fmt: skip
KERNEL_PARAMETERS = {"degree": int, "gamma": float, "coef0": float}  # in the order of the file


def to_liblinear(model: Any, path: str | os.PathLike[str], *, labels: Sequence[int] | None = None) -> None:
    """Write a linear classifier as a model file of liblinear, whose `predict` then gives the same labels.

    Parameters
    ----------
    model : MaxMarginClassifier, OnlineMarginClassifier or ImportedLinearClassifier
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
    Weights have 17 digits and come back as they were. The intercept is the weight of a feature of constant value 1
    (``bias 1``); without one there is no such feature (``bias -1``). The line ``solver_type`` names the loss; neither
    C nor the norm have a place in the file.
    """
    linear = LinearModel.of(model)
    numbers = foreign.integers_of(linear.labels, model.classes_, labels)
    biased = bool(linear.intercept.any())
    # a line of the file is a feature
    rows = np.column_stack([linear.coef, linear.intercept]).T if biased else linear.coef.T
    # of two classes, the first in the file is the positive one
    order = numbers[::-1] if len(numbers) == 2 else numbers
    hinge = getattr(model, "loss", "squared_hinge") == "hinge"
    header = [
        f"solver_type {'L2R_L1LOSS_SVC_DUAL' if hinge else 'L2R_L2LOSS_SVC'}",
        f"nr_class {len(numbers)}",
        f"label {' '.join(map(str, order.tolist()))}",
        f"nr_feature {linear.coef.shape[1]}",
        f"bias {1 if biased else -1}",
        "w",
    ]
    _write(path, header, (f"{digits(row)} " for row in rows.tolist()))


def from_liblinear(path: str | os.PathLike[str]) -> ImportedLinearClassifier:
    """Read a classifier that liblinear wrote.

    Parameters
    ----------
    path : str or path-like
        A model of any of its classifiers. Of logistic regression the scores are read, and no probabilities; of two
        classes in one problem (``MCSVM_CS``) the score of the first, by which liblinear decides.

    Returns
    -------
    ImportedLinearClassifier
        It has no certificate: the file does not say which rows prove how good the model is.

    Raises
    ------
    ModelFileError
        If the file is cut short, malformed, or holds no classifier; the message says where.
    OSError
        If there is no such file, or it cannot be read.
    """
    with faults_of(path, ModelFileError):
        return _liblinear_model(*_sections(path, "solver_type", "w"))


def _liblinear_model(header: _Header, lines: list[tuple[int, bytes]]) -> ImportedLinearClassifier:
    """Return the classifier of a header of liblinear and the numbered lines of weights below it."""
    solver = header.word("solver_type")
    if solver not in LIBLINEAR_SOLVERS:
        raise Fault(f"{solver!r} is not a classifier of liblinear, which has {', '.join(LIBLINEAR_SOLVERS)}.")
    classes, features = header.count("nr_class", 2), header.count("nr_feature", 1)
    labels, bias = header.labels(classes), float(header.numbers("bias", float)[0])
    biased = bias >= 0.0
    columns = classes if classes > 2 or solver == CRAMMER_SINGER else 1
    weights = np.array([weight for number, line in lines for weight in _numbers(line.split(), float, number)])
    _check_length(weights.size, (features + biased) * columns)
    weights = weights.reshape(-1, columns)
    intercept = bias * weights[features] if biased else np.zeros(columns)
    if classes == 2:  # the first in the file is positive, and its score decides even where each has one
        labels, weights, intercept = labels[::-1], weights[:, :1], intercept[:1]
    coef = np.ascontiguousarray(weights[:features].T)
    foreign.check_numbers(weights=coef, intercept=intercept)
    return LinearModel(labels, coef, intercept).imported(
        {"format": "liblinear", "solver_type": solver, "bias": bias}
    )


def to_libsvm(model: Any, path: str | os.PathLike[str], *, labels: Sequence[int] | None = None) -> None:
    """Write a kernel classifier as a model file of libsvm, whose `svm-predict` then gives the same labels.

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
    foreign.check_kernel_model(model)
    kernel, ordered, counts = model.kernel_, foreign.ordered_classes(model), model.n_support_
    name = next((name for name, kind in LIBSVM_KERNELS.items() if type(kernel) is kind), None)
    if name is None:
        raise foreign.unsupported_kernel(kernel)
    parameters = [one for one in KERNEL_PARAMETERS if hasattr(kernel, one)]
    count = len(ordered)
    if count > 2 and model.multi_class_ == "ovr":
        raise ModelFileError(
            "libsvm compares classes in pairs, and this model compares each class with the rest: fit with "
            'multi_class="ovo" (on the command line, --multi-class ovo), or write it with to_onnx.'
        )
    vectors: Any = sp.csr_matrix(model.support_vectors_)
    foreign.check_numbers(
        dual_coef_=model.dual_coef_, intercept_=model.intercept_, support_vectors_=vectors.data
    )
    numbers = foreign.integers_of(ordered, model.classes_, labels)
    # of two classes, the first in the file is the positive one
    order = np.arange(count)[::-1] if count == 2 else np.arange(count)
    ends = np.cumsum(counts)
    rows = np.concatenate([np.arange(ends[k] - counts[k], ends[k]) for k in order])
    header = [
        "svm_type c_svc",
        f"kernel_type {name}",
        *(f"{parameter} {getattr(kernel, parameter):.17g}" for parameter in parameters),
        f"nr_class {count}",
        f"total_sv {vectors.shape[0]}",
        f"rho {digits((-model.intercept_).tolist())}",
        f"label {' '.join(map(str, numbers[order].tolist()))}",
        f"nr_sv {' '.join(map(str, counts[order].tolist()))}",
        "SV",
    ]
    _write(path, header, _vector_lines(model.dual_coef_[:, rows], vectors[rows]))


def _vector_lines(coefficients: np.ndarray, vectors: Any) -> Iterator[str]:
    """Yield the line of each row of a CSR matrix: its coefficients, and its entries as ``index:value``."""
    vectors.sort_indices()
    for i, (start, end) in enumerate(pairwise(vectors.indptr)):
        entries = zip(vectors.indices[start:end].tolist(), vectors.data[start:end].tolist(), strict=True)
        words = [f"{j + 1}:{value:.17g}" for j, value in entries if value]
        yield " ".join([digits(coefficients[:, i].tolist()), *words, ""])


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
        It has no certificate: the file has neither the rows of the fit nor their sample weights.

    Raises
    ------
    ModelFileError
        If the file is cut short, malformed, or holds no classifier; the message says where.
    OSError
        If there is no such file, or it cannot be read.
    """
    with faults_of(path, ModelFileError):
        return _libsvm_model(n_features, *_sections(path, "svm_type", "SV"))


def _libsvm_model(
    n_features: int | None, header: _Header, lines: list[tuple[int, bytes]]
) -> ImportedKernelClassifier:
    """Return the classifier of a header of libsvm and the numbered lines of support vectors below it."""
    kind = header.word("svm_type")
    if kind not in ("c_svc", "nu_svc"):
        raise Fault(f"{kind!r} is not a classifier of libsvm, which has c_svc and nu_svc.")
    kernel = _kernel(header)
    classes, total = header.count("nr_class", 2), header.count("total_sv", 0)
    labels = header.labels(classes)
    rho = header.numbers("rho", float, classes * (classes - 1) // 2)
    counts = header.numbers("nr_sv", int, classes)
    if counts.sum() != total or (counts < 0).any():
        raise Fault(f"'nr_sv' must add up to 'total_sv', {total}; got {counts.tolist()!r}.")
    _check_length(len(lines), total)
    coefficients, vectors = _support_vectors(lines, classes - 1)
    width = vectors.shape[1] if n_features is None else n_features
    if width < vectors.shape[1]:
        raise Fault(f"support vectors have {vectors.shape[1]} columns, more than n_features={n_features}.")
    vectors.resize(total, width)
    if classes == 2:  # the first in the file is the positive one
        rows = np.concatenate([np.arange(counts[0], total), np.arange(counts[0])])
        labels, counts = labels[::-1], counts[::-1]
        vectors, coefficients = vectors[rows], coefficients[:, rows]
    model = ImportedKernelClassifier()
    model.keep(labels, width, {"format": "libsvm", "svm_type": kind, "kernel": str(kernel)})
    model.multi_class_ = "ovo"
    model.support_vectors_, model.n_support_ = vectors, counts.astype(np.int32)
    model.dual_coef_, model.intercept_ = coefficients, -rho
    model.make_machine(kernel)
    return model


def _kernel(header: _Header) -> Kernel:
    """Return the kernel that a libsvm file names."""
    name = header.word("kernel_type")
    if name not in LIBSVM_KERNELS:
        raise Fault(f"the kernel {name!r} cannot be read; the others are {', '.join(LIBSVM_KERNELS)}.")
    kernel = LIBSVM_KERNELS[name]
    known = {field.name for field in fields(kernel)}
    values = {
        one: header.numbers(one, kind)[0].item() for one, kind in KERNEL_PARAMETERS.items() if one in known
    }
    if values.get("degree", 0) < 0 or (name == "rbf" and values["gamma"] < 0.0):
        raise Fault("'degree', and 'gamma' of the kernel rbf, must be at least 0.")
    return kernel(**values)


def _support_vectors(lines: list[tuple[int, bytes]], count: int) -> tuple[np.ndarray, Any]:
    """Return the coefficients (count, n_SV) of a libsvm file, and its support vectors as a CSR matrix."""
    coefficients, values, indices, indptr = [], [], [], [0]
    for number, line in lines:
        words = line.split()
        entries = [word.split(b":") for word in words[count:]]
        if len(words) < count or any(len(entry) != 2 for entry in entries):
            raise Fault(f"a support vector must be {count} coefficients, and entries index:value.", number)
        coefficients += _numbers(words[:count], float, number)
        columns = _numbers([index for index, _ in entries], int, number)
        values += _numbers([value for _, value in entries], float, number)
        if any(after <= before for before, after in pairwise([0, *columns, C_INT + 1])):
            raise Fault(f"indices must be from 1 to {C_INT}, and increase; got {columns[:8]!r}.", number)
        indices += columns
        indptr.append(len(indices))
    shape = (len(lines), max(indices, default=1))
    vectors = sp.csr_matrix((np.array(values), np.array(indices, np.int64) - 1, indptr), shape)
    return np.ascontiguousarray(np.reshape(coefficients, (len(lines), count)).T), vectors


def _numbers(words: list[Any], kind: Any, line: int | None = None) -> list[Any]:
    """Return the numbers that words are; raise Fault where one is none, or is not finite."""
    try:
        numbers = [kind(word) for word in words]
        if all(map(isfinite, numbers)):
            return numbers
    except (ValueError, OverflowError):  # isfinite, of integers of hundreds of digits
        pass
    what = "whole" if kind is int else "finite"
    raise Fault(f"there must be {what} numbers; got {str(words)[:60]}; copy or write the file again.", line)


def _check_length(found: int, expected: int) -> None:
    """Raise Fault where the block of a file is shorter or longer than its header says."""
    if found != expected:
        end = "is cut short" if found < expected else "is too long"
        raise Fault(
            f"the file {end}: its header needs {expected}, and it has {found}; copy or write it again."
        )


def digits(numbers: Iterable[float]) -> str:
    """Return numbers with 17 digits, from which every float64 is read back unchanged."""
    return " ".join(format(number, ".17g") for number in numbers)


def _write(path: str | os.PathLike[str], header: Iterable[str], rows: Iterable[str]) -> None:
    """Write the lines of a file, which appears whole or not at all."""
    with written_whole(path) as file:
        file.writelines(f"{line}\n".encode() for line in chain(header, rows))


def _sections(
    path: str | os.PathLike[str], first_word: str, last_header_line: str
) -> tuple[_Header, list[tuple[int, bytes]]]:
    """Return the header of a text model, and the numbered lines of its block.

    Parameters
    ----------
    path : str or path-like
    first_word, last_header_line : str
        The block begins below the latter.

    Raises
    ------
    Fault
        If the file is another one, or cut short.
    """
    content = Path(path).read_bytes()
    lines = content.splitlines()
    if not content.startswith(first_word.encode() + b" "):
        raise Fault(
            f"this is not such a model file: it does not begin with {first_word!r}; name another file."
        )
    header = _Header()
    numbered = list(enumerate(lines, 1))
    for number, line in numbered:
        if line.strip() == last_header_line.encode():
            if not content.endswith(b"\n"):
                raise Fault("the last line is not complete; copy or write the file again.")
            return header, numbered[number:]
        name, _, value = line.decode(errors="replace").strip().partition(" ")
        header[name] = value.strip()
    raise Fault(f"the file is cut short: there is no line {last_header_line!r}; copy or write it again.")


class _Header(dict[str, str]):
    """Header of a text model: the rest of each line by its first word."""

    def word(self, name: str) -> str:
        """Return the rest of the line of this name."""
        if name not in self:
            raise Fault(f"there is no line {name!r}; copy or write the file again.")
        return self[name]

    def numbers(self, name: str, kind: type[int] | type[float], count: int = 1) -> np.ndarray:
        """Return the `count` finite numbers on the line of this name."""
        words = self.word(name).split()
        if len(words) != count:
            raise Fault(f"{name!r} must be {count} numbers; got {len(words)}.")
        numbers = np.array(_numbers(words, kind), np.float64)
        if kind is int and (np.abs(numbers) > C_INT).any():
            raise Fault(f"{name!r} must be whole numbers of 32 bits; got {words[:8]}.")
        return numbers.astype(kind)

    def count(self, name: str, least: int) -> int:
        """Return the whole number on the line of this name, at least `least`."""
        count = int(self.numbers(name, int)[0])
        if count < least:
            raise Fault(f"{name!r} must be at least {least}; got {count}.")
        return count

    def labels(self, count: int) -> np.ndarray:
        """Return the labels of the classes, all of them different."""
        labels = self.numbers("label", int, count)
        if np.unique(labels).size < count:
            raise Fault(f"two classes have the same label: {labels.tolist()!r}; give each class its own.")
        return labels
