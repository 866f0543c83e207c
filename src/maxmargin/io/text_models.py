"""Model files of liblinear and libsvm: lines of names and values, then weights or support vectors as text.

R.-E. Fan and others, "LIBLINEAR: a library for large linear classification", JMLR 9, 2008, and C.-C. Chang, C.-J. Lin,
"LIBSVM: a library for support vector machines", ACM TIST 2, 2011. The layouts are those of `save_model` in version 2 of
liblinear and of `svm_save_model` in version 3 of libsvm.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, fields
from itertools import chain
from numbers import Integral
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

from ..estimators.imported import ImportedKernelClassifier, ImportedLinearClassifier
from ..kernels.functions import Gaussian, Kernel, Linear, Polynomial, Sigmoid
from ..numerics.files import written_whole
from .models import C_INT, KernelModel, LinearModel, check_numbers, kernel_error, whole_labels
from .sealed_file import ModelFileError

ONE_PROBLEM = "MCSVM_CS"  # all classes in one problem: of two classes, too, each has a row of weights
LIBLINEAR_SOLVERS = (
    "L2R_LR", "L2R_L2LOSS_SVC_DUAL", "L2R_L2LOSS_SVC", "L2R_L1LOSS_SVC_DUAL", ONE_PROBLEM, "L1R_L2LOSS_SVC", "L1R_LR",
    "L2R_LR_DUAL",
)  # fmt: skip
_KINDS: Any = (Linear, Polynomial, Gaussian, Sigmoid)
LIBSVM_KERNELS = dict(zip(("linear", "polynomial", "rbf", "sigmoid"), _KINDS, strict=True))


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
    check_numbers(coef_=linear.coef, intercept_=linear.intercept)
    numbers = whole_labels(linear.labels, model.classes_, labels)
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
    with written_whole(path) as file:
        file.writelines(f"{line}\n".encode() for line in header)
        file.writelines(f"{digits(row)} \n".encode() for row in rows.tolist())


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
    file = TextFile.read(path, "solver_type", "w")
    solver = file.word("solver_type")
    if solver not in LIBLINEAR_SOLVERS:
        raise file.error(
            f"a model of {solver!r} is none of liblinear's classifiers: {', '.join(LIBLINEAR_SOLVERS)}."
        )
    classes = file.count("nr_class", 2, "a classifier")
    features = file.count("nr_feature", 1, "a model")
    labels, bias = file.labels(classes), float(file.number("bias", float))
    biased = bias >= 0.0
    columns = classes if classes > 2 or solver == ONE_PROBLEM else 1
    words = b" ".join(file.lines).split()
    expected = (features + biased) * columns
    if len(words) != expected:
        raise file.error(
            f"the file {_wrong_end(len(words), expected)}: {features} features, {classes} classes and "
            f"bias {bias:g} take {expected} weights, and there are {len(words)}; copy or write it again."
        )
    weights = file.values(words, ", below the line 'w'").reshape(-1, columns)
    if classes == 2:  # the first in the file is positive, and its score decides even where each has one
        labels = labels[::-1]
        weights = weights[:, :1] if labels[0] < labels[1] else -weights[:, :1]
    else:
        weights = weights[:, np.argsort(labels)]
    model = ImportedLinearClassifier()
    model.keep(labels, features, {"format": "liblinear", "solver_type": solver, "bias": bias})
    model.coef_ = np.ascontiguousarray(weights[:features].T)
    model.intercept_ = bias * weights[features] if biased else np.zeros(weights.shape[1])
    return model


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
    machine = KernelModel.of(model)
    header = ["svm_type c_svc", *_kernel_lines(machine.kernel)]
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
    header += [
        f"nr_class {count}",
        f"total_sv {vectors.shape[0]}",
        f"rho {digits((-machine.intercept).tolist())}",
        f"label {' '.join(map(str, numbers[order].tolist()))}",
        f"nr_sv {' '.join(map(str, machine.counts[order].tolist()))}",
        "SV",
    ]
    with written_whole(path) as file:
        file.writelines(f"{line}\n".encode() for line in header)
        for i in rows:
            row = slice(vectors.indptr[i], vectors.indptr[i + 1])
            entries = zip(vectors.indices[row].tolist(), vectors.data[row].tolist(), strict=True)
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
    file = TextFile.read(path, "svm_type", "SV")
    kind = file.word("svm_type")
    if kind not in ("c_svc", "nu_svc"):
        raise file.error(f"a model of {kind!r} is none of libsvm's classifiers: c_svc, nu_svc.")
    kernel = _kernel(file)
    classes, total = file.count("nr_class", 2, "a classifier"), file.count("total_sv", 0, "a model")
    labels, pairs = file.labels(classes), classes * (classes - 1) // 2
    rho, counts = file.numbers("rho", float, pairs), file.numbers("nr_sv", int, classes)
    if sum(counts.tolist()) != total or (counts < 0).any():
        raise file.error(f"'nr_sv' must add up to 'total_sv', {total}; it is {counts.tolist()!r}.")
    if len(file.lines) != total:
        raise file.error(
            f"the file {_wrong_end(len(file.lines), total)}: of {total} support vectors there are "
            f"{len(file.lines)}; copy or write it again."
        )
    coefficients, vectors = _support_vectors(file, classes - 1)
    width = max(vectors.shape[1], 1)
    if n_features is not None:
        if n_features < width:
            raise file.error(f"the support vectors have {width} columns, more than n_features={n_features}.")
        width = int(n_features)
        vectors.resize(total, width)
    model = ImportedKernelClassifier()
    origin = {"format": "libsvm", "svm_type": kind, "kernel": str(kernel)}
    if classes == 2:  # the first in the file is the positive one
        rows = np.concatenate([np.arange(counts[0], total), np.arange(counts[0])])
        labels, counts = labels[::-1], counts[::-1]
        vectors, coefficients = vectors[rows], coefficients[:, rows]
    model.keep(labels, width, origin)
    model.multi_class_ = "ovo"
    model.support_vectors_, model.n_support_ = vectors, counts.astype(np.int32)
    model.dual_coef_, model.intercept_ = coefficients, -rho
    model.make_machine(kernel)
    return model


def _whole(number: Any) -> bool:
    return isinstance(number, Integral) and not isinstance(number, bool)


def _kernel_lines(kernel: Kernel) -> Iterator[str]:
    """Yield the lines of a libsvm file that name a kernel and its parameters."""
    name = next((name for name, kind in LIBSVM_KERNELS.items() if type(kernel) is kind), None)
    if name is None:
        raise kernel_error(kernel, "its rows are nowhere", "is none of libsvm's")
    yield f"kernel_type {name}"
    for parameter in ("degree", "gamma", "coef0"):
        if hasattr(kernel, parameter):
            yield f"{parameter} {getattr(kernel, parameter):.17g}"


def _kernel(file: TextFile) -> Kernel:
    """Return the kernel that a libsvm file names."""
    name = file.word("kernel_type")
    if name not in LIBSVM_KERNELS:
        rows = " (its rows are numbers of a matrix that is not here)" if name == "precomputed" else ""
        raise file.error(f"the kernel {name!r} is none that can be read: {', '.join(LIBSVM_KERNELS)}{rows}.")
    values: dict[str, Any] = {}
    if name == "polynomial":
        values["degree"] = file.count("degree", 0, "a polynomial")
        if values["degree"] > C_INT:
            raise file.error(f"'degree' is {values['degree']}, and {C_INT} at most.")
    for parameter in {field.name for field in fields(LIBSVM_KERNELS[name])} & {"gamma", "coef0"}:
        values[parameter] = float(file.number(parameter, float))
    return LIBSVM_KERNELS[name](**values)


def _support_vectors(file: TextFile, count: int) -> tuple[np.ndarray, Any]:
    """Return the coefficients (count, n_SV) of a libsvm file, and its support vectors as a CSR matrix."""
    coefficients, values, indices, indptr = [], [], [], [0]
    for number, line in enumerate(file.lines, file.first_line):
        place, words = f", line {number}", line.split()
        entries = [word.partition(b":") for word in words[count:]]
        if len(words) < count or any(b":" in word for word in words[:count]):
            raise file.error(f"a support vector begins with {count} coefficients.", place)
        try:
            columns = [int(index) for index, _, _ in entries]
            coefficients += [float(word) for word in words[:count]]
            values += [float(value) for _, _, value in entries]
        except ValueError:
            raise file.error(f"entries are index:value, and numbers; got {line[:60]!r}.", place) from None
        if any(after <= before for before, after in zip(chain([0], columns), columns, strict=False)):
            raise file.error(f"indices must count from 1, and grow; got {columns[:8]!r}.", place)
        if columns and columns[-1] > C_INT:
            raise file.error(
                f"indices are {C_INT} at most, numbers of 32 bits; got {str(columns[-1])[:40]}.", place
            )
        indices += columns
        indptr.append(len(indices))
    if not (np.isfinite(coefficients).all() and np.isfinite(values).all()):
        raise file.error("a coefficient or an entry is not finite.")
    rows = len(file.lines)
    shape = (rows, max(indices, default=1))
    vectors = sp.csr_matrix((np.array(values), np.array(indices, np.int64) - 1, indptr), shape)
    return np.ascontiguousarray(np.reshape(coefficients, (rows, count)).T), vectors


def _wrong_end(found: int, expected: int) -> str:
    return "is cut short" if found < expected else "goes on after its end"


def digits(numbers: Iterable[float]) -> str:
    """Return numbers with 17 digits, from which every float64 is read back unchanged."""
    return " ".join(format(number, ".17g") for number in numbers)


@dataclass(frozen=True)
class TextFile:
    """Header and block of a text model.

    Attributes
    ----------
    path : Path
    header : dict of str
        The rest of each line by its first word.
    lines : list of bytes
        The lines of the block.
    first_line : int
        The line number of the block in the file, counted from 1.
    """

    path: Path
    header: dict[str, str]
    lines: list[bytes]
    first_line: int

    @staticmethod
    def read(path: str | os.PathLike[str], opening: str, block: str) -> TextFile:
        """Read a file whose first word is `opening`, and whose block begins after the line `block`.

        Raises
        ------
        ModelFileError
            If the file is another one, or cut short.
        """
        path = Path(path)
        content = path.read_bytes()
        lines = content.splitlines()
        if not lines or not lines[0].startswith(opening.encode() + b" "):
            what = "the file is empty" if not content else f"it does not begin with {opening!r}"
            raise ModelFileError(f"{path}: this is no such model file: {what}.")
        header: dict[str, str] = {}
        for number, line in enumerate(lines, 1):
            if line.strip() == block.encode():
                if not content.endswith(b"\n"):
                    raise ModelFileError(
                        f"{path}: the last line is not complete; copy or write the file again."
                    )
                return TextFile(path, header, lines[number:], number + 1)
            try:
                name, _, value = line.decode("ascii").strip().partition(" ")
            except UnicodeDecodeError:
                raise ModelFileError(f"{path}, line {number}: this is no text of a model.") from None
            header[name] = value.strip()
        raise ModelFileError(
            f"{path}: the file is cut short: there is no line {block!r}; copy or write it again."
        )

    def error(self, message: str, place: str = "") -> ModelFileError:
        """Return the error of a file, with its name and perhaps a place in it."""
        return ModelFileError(f"{self.path}{place}: {message}")

    def word(self, name: str) -> str:
        """Return the rest of the line of this name."""
        if name not in self.header:
            raise self.error(f"there is no line {name!r}; copy or write the file again.")
        return self.header[name]

    def numbers(self, name: str, kind: type[int] | type[float], count: int = 1) -> np.ndarray:
        """Return the `count` finite numbers on the line of this name."""
        words = self.word(name).split()
        try:
            numbers = np.array([kind(word) for word in words], dtype=np.int64 if kind is int else np.float64)
            if not np.isfinite(numbers).all():
                raise ValueError
        except (ValueError, OverflowError):
            raise self.error(
                f"{name!r} must be {'whole' if kind is int else 'finite'} numbers; got "
                f"{' '.join(words)[:60]!r}."
            ) from None
        if numbers.size != count:
            raise self.error(f"{name!r} must be {count} numbers; there are {numbers.size}.")
        return numbers

    def number(self, name: str, kind: type[int] | type[float]) -> Any:
        """Return the number on the line of this name."""
        return self.numbers(name, kind)[0]

    def count(self, name: str, least: int, what: str) -> int:
        """Return the whole number on the line of this name, at least `least`."""
        count = int(self.number(name, int))
        if count < least:
            raise self.error(f"{name!r} is {count}, and {what} has {least} at least.")
        return count

    def labels(self, count: int) -> np.ndarray:
        """Return the labels of the classes, all of them different."""
        labels = self.numbers("label", int, count)
        if np.unique(labels).size < count:
            raise self.error(f"two classes have the same label: {labels.tolist()!r}.")
        return labels

    def values(self, words: list[bytes], place: str) -> np.ndarray:
        """Return finite numbers from their texts; `place` is their place in the file, for errors."""
        try:
            values = np.array(words, dtype=bytes).astype(float) if words else np.empty(0)
        except ValueError:
            values = np.array([_number(word) for word in words])
        if not np.isfinite(values).all():
            bad = words[int(np.flatnonzero(~np.isfinite(values))[0])].decode("utf-8", "replace")
            raise self.error(f"{bad[:40]!r} is no finite number.", place)
        return values


def _number(word: bytes) -> float:
    """Return the number of a text; NaN where it is none."""
    try:
        return float(word)
    except ValueError:
        return np.nan
