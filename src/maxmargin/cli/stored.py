"""A model file, and data that are to fit it."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from ..io.model_file import load
from ..io.readers import DataError, Table
from ..io.readers.files import look
from .options import Selection


def model_and_data(model_path: Path, data: Path, which: Selection) -> tuple[Any, Table]:
    """Read both; columns with names are put in the model's order."""
    look(model_path)
    which.check(data)
    model: Any = load(model_path)
    source = getattr(model, "source_", {})
    names = getattr(model, "feature_names_in_", None)
    table = which.read(
        data,
        getattr(model, "n_features_in_", None),  # columns may be hashed
        label=which.label or source.get("label"),
        features=None if names is None else names.tolist(),
        first_index=source.get("first_index"),
    )
    if which.label is not None and which.label in (table.feature_names or ()):
        raise DataError(
            f"{data}: the column {which.label!r} is a feature of the model; name the column of the labels with --label."
        )
    if which.label is not None and table.label_name != which.label:
        raise DataError(f"{data}: there is no column {which.label!r} for the labels.")
    if table.y is not None:
        table = replace(table, y=_as_classes(table.y, model.classes_))
    if names is not None:
        del model.feature_names_in_  # columns are in order now; an array without names need not be warned of
    return model, table


def certified_and_labelled(model_path: Path, data: Path, which: Selection, what: str) -> tuple[Any, Table]:
    """Read both, for `what` is about a certificate and the labels that it is proved for."""
    model, table = model_and_data(model_path, data, which)
    if not hasattr(model, "certificate_"):
        raise DataError(f"{model_path}: {model.uncertified_}")
    if table.y is None:
        raise DataError(f"{data}: {what} is about labels too, and the file holds none.")
    return model, table


def _as_classes(y: np.ndarray, classes: np.ndarray) -> np.ndarray:
    """Labels True and False as the classes are: text, as in a CSV file, or booleans, as in an Arrow file."""
    if classes.dtype.kind == "b" and y.dtype.kind == "U" and np.isin(y, ["True", "False"]).all():
        return y == "True"
    return y.astype(str) if y.dtype.kind == "b" and classes.dtype.kind in "UO" else y
