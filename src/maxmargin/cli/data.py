"""Reading data and model files as a command line names them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from ..numerics.progress import announce
from ..numerics.sizes import size_text
from ..readers import DataError, Expected, Table, read
from ..readers.files import check_file
from ..readers.sources import opened
from ..readers.table import Classes, expected_of
from .options import note


def read_labelled(data: Path, n_features: int | None, columns: Expected) -> Table:
    """Read rows with labels that are classes.

    Parameters
    ----------
    data : Path
    n_features : int or None
        ``--n-features``.
    columns : Expected

    Raises
    ------
    DataError
        If an option does not apply to the file, or its labels are missing or no classes.
    """
    table = read(data, **vars(replace(columns, n_features=n_features)))
    if table.y is None:
        raise DataError(f"{data}: the file has no labels, which a fit needs; add a label to each row.")
    if table.y.dtype.kind == "f":
        raise DataError(
            f"{data}: the labels are fractions, not classes; number the classes, or name another column with --label."
        )
    announce("loading the solver")  # the modules that a command imports after the data
    return table


def stored_rows(
    data: Path,
    n_features: int | None,
    columns: Expected,
    cache_dir: str | None = None,
    interrupted: Callable[[], bool] = bool,
) -> Any:
    """Open rows that are read in passes; arguments are those of `read_labelled` and of `row_cache.open_rows`.

    Where they are written to disk, a line on standard error says where, and how large they are.
    """
    from ..readers.row_cache import open_rows

    requirements = vars(replace(columns, n_features=n_features))
    stored = open_rows(data, cache_dir=cache_dir, interrupted=interrupted, **requirements)
    if stored.written is not None:
        size = size_text(sum(file.stat().st_size for file in stored.written.iterdir()))
        remark = "later commands read them there; delete the folder when none does."
        note(f"the rows were written to {stored.written} ({size}); {remark}")
    return stored


def model_and_blocks(
    model_path: Path, data: Path, columns: Expected
) -> tuple[Any, Iterator[tuple[Any, np.ndarray | None]], Classes]:
    """Return a model; blocks of rows for it, each with the numbers of their labels; and the classes of these.

    Rows are read as the blocks are asked for. Numbers are None where the data have no labels.
    """
    model, expected = _model_and_expected(model_path, data, columns)
    classes = Classes()
    return model, opened([data], expected).rows_for_model(classes), classes


def _model_and_expected(model_path: Path, data: Path, columns: Expected) -> tuple[Any, Expected]:
    """Read a model; return it with what it expects of the data, whose named columns are put in its order."""
    check_file(model_path)

    from ..io.model_file import load

    model: Any = load(model_path)
    expected = expected_of(model, columns)
    # X has no names, but its columns are in order: scikit-learn's warning about missing names would be wrong
    vars(model).pop("feature_names_in_", None)
    return model, expected


def read_certified(model_path: Path, data: Path, columns: Expected, purpose: str) -> tuple[Any, Table]:
    """Read a model that has a certificate, and data for it with labels; `purpose` names what needs both."""
    model, expected = _model_and_expected(model_path, data, columns)
    table = read(data, **vars(expected))
    if not hasattr(model, "certificate_"):
        raise DataError(f"{model_path}: {model.uncertified_}")
    if table.y is None:
        raise DataError(f"{data}: {purpose} needs labels, and the file has none; add a label to each row.")
    return model, table
