"""A model file, and data that are to fit it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from ..persistence import load
from ..readers import DataError, Table
from ..readers.files import look
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
    if which.label is not None and table.label_name != which.label:
        raise DataError(f"{data}: there is no column {which.label!r} for the labels.")
    if names is not None:
        del model.feature_names_in_  # columns are in order now; an array without names need not be warned of
    return model, table
