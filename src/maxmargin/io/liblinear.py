"""Model files of liblinear: weights as text, one line a feature.

R.-E. Fan and others, "LIBLINEAR: a library for large linear classification", JMLR 9, 2008; the layout is that of
`save_model` in version 2.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any

import numpy as np

from ..estimators.imported import ImportedLinearClassifier
from ..numerics.files import written_whole
from .model_file import ModelFileError
from .models import LinearModel, check_numbers, whole_labels
from .text_model import TextModel, digits

TOGETHER = "MCSVM_CS"  # all classes in one problem: a row of weights for each of two classes, too
SOLVERS = (
    "L2R_LR", "L2R_L2LOSS_SVC_DUAL", "L2R_L2LOSS_SVC", "L2R_L1LOSS_SVC_DUAL", TOGETHER, "L1R_L2LOSS_SVC", "L1R_LR",
    "L2R_LR_DUAL",
)  # fmt: skip


def to_liblinear(model: Any, path: str | os.PathLike[str], *, labels: Sequence[int] | None = None) -> None:
    """Write a linear classifier as a model file of liblinear, whose `predict` then says what ours does.

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
    rows = np.column_stack([linear.coef, linear.intercept]).T if biased else linear.coef.T
    # of two classes, the first in the file is the positive one
    order = numbers[::-1] if len(numbers) == 2 else numbers
    hinge = getattr(model, "loss", "squared_hinge") == "hinge"
    lines = [
        f"solver_type {'L2R_L1LOSS_SVC_DUAL' if hinge else 'L2R_L2LOSS_SVC'}",
        f"nr_class {len(numbers)}",
        f"label {' '.join(map(str, order.tolist()))}",
        f"nr_feature {linear.coef.shape[1]}",
        f"bias {1 if biased else -1}",
        "w",
    ]
    with written_whole(path) as file:
        file.write("".join(f"{line}\n" for line in lines).encode())
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
    file = TextModel.read(path, "solver_type", "w")
    solver = file.word("solver_type")
    if solver not in SOLVERS:
        raise ModelFileError(
            f"{file.path}: a model of {solver!r} is none of liblinear's classifiers: {', '.join(SOLVERS)}."
        )
    classes = file.count("nr_class", 2, "a classifier")
    features = file.count("nr_feature", 1, "a model")
    labels, bias = file.labels(classes), float(file.number("bias", float))
    biased = bias >= 0.0
    columns = classes if classes > 2 or solver == TOGETHER else 1
    words = b" ".join(file.lines).split()
    expected = (features + biased) * columns
    if len(words) != expected:
        cut = "is cut short" if len(words) < expected else "goes on after its end"
        raise ModelFileError(
            f"{file.path}: the file {cut}: {features} features, {classes} classes and bias {bias:g} take {expected} "
            f"weights, and there are {len(words)}; copy or write it again."
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
