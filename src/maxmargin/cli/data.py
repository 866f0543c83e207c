"""Reading data and model files as a command line names them."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from ..numerics.progress import announce
from ..readers import DataError, Expected, Table, names_columns, read
from ..readers.files import check_file
from ..readers.table import TooLargeError
from .options import ColumnOptions


def _check_columns(data: Path, columns: ColumnOptions) -> None:
    """Raise DataError where columns are named, and this kind of file has no names of columns."""
    if names_columns(data, **columns.layout()):
        return
    for option, value in zip(("--label", "--columns", "--drop"), columns[:3], strict=True):
        if value:
            place = "a fixed place for labels" if option == "--label" else "no names for columns"
            raise DataError(
                f"{data}: {option} names a column of a .csv, .parquet or .arrow file, and this kind of file has "
                f"{place}; leave {option} out."
            )
    option = "--delimiter" if columns.delimiter else "--header/--no-header"
    if columns.layout() != {"header": None, "delimiter": None} and data.is_file():
        raise DataError(f"{data}: {option} is for tables of text, and this file is none; leave {option} out.")


def read_labelled(data: Path, n_features: int | None, columns: ColumnOptions, exact: bool) -> Table:
    """Read rows with labels that are classes.

    Parameters
    ----------
    data : Path
    n_features : int or None
        ``--n-features``.
    columns : ColumnOptions
    exact : bool
        Whether a number that float64 does not hold is an error: where rows are to be proved separable or not.

    Raises
    ------
    DataError
        If an option does not apply to the file, or its labels are missing or no classes.
    """
    _check_columns(data, columns)
    if n_features is not None and n_features < 1:
        raise DataError(f"--n-features must be at least 1, got {n_features}; leave it out to count them.")
    if n_features is not None and names_columns(data, **columns.layout()):
        raise DataError(f"{data}: the number of features is that of the header; leave --n-features out.")
    _refuse_folder(data)
    table = read(data, n_features, **columns.requirements())
    if table.y is None:
        raise DataError(f"{data}: the file has no labels, which a fit needs; add a label to each row.")
    if table.y.dtype.kind in "mM":
        raise DataError(f"{data}: labels {table.label_name!r} are dates; name another column with --label.")
    if table.y.dtype.kind == "f":
        remedy = "number the classes"
        if table.label_name is not None:
            remedy = f"name another column than {table.label_name!r} with --label"
        raise DataError(f"{data}: the labels are fractions, not classes; {remedy}.")
    if exact and table.rounded is not None:
        raise DataError(
            f"{data} contains {table.rounded}, which is not a float64 number. After rounding, different rows could be "
            "proved equal. Subtract a constant from its column, or divide the column, so that all numbers are float64 "
            "numbers; or, to accept the rounding, write the number with a decimal point."
        )
    announce("loading the solver")  # the modules that a command imports after the data
    return table


def default_memory() -> int:
    """Return the bytes that a fit may use of data that do not fit in memory: half of what is free."""
    from ..numerics.sizes import available_memory

    return int(0.5 * available_memory())


def _refuse_folder(data: Path) -> None:
    """Raise TooLargeError at a folder, whose files are only read in blocks; commands that cannot do so print it."""
    if data.is_dir():
        raise TooLargeError(f"{data}: this is a folder; name a file in it.")


def stored_rows(
    data: Path,
    n_features: int | None,
    columns: ColumnOptions,
    cache_dir: str | None,
    interrupted: Callable[[], bool] = bool,
) -> Any:
    """Open rows that are read in passes; arguments are those of `read_labelled` and of `row_cache.open_rows`."""
    from ..readers.row_cache import open_rows

    _check_columns(data, columns)
    if not data.is_dir():
        check_file(data)
    if not data.is_file() and not data.is_dir():
        raise DataError(f"{data}: a pipe or device can be read only once; write the data to a file first.")
    requirements = columns.requirements()
    return open_rows(
        data, cache_dir=cache_dir, n_features=n_features, interrupted=interrupted, **requirements
    )


def columns_of_model(names: Iterable[Any], data: Path, columns: ColumnOptions) -> ColumnOptions:
    """Return options that select the features of a model, in its order, from data that are read in passes.

    Where the data have these columns alone, in this order, the options stay, and so does a cache of the fit.
    """
    from ..readers.sources import opened

    features = [str(name) for name in names]
    found = opened([data], [], Expected(**columns.requirements()), None).features
    return columns if found in (None, features) else columns._replace(use=features, drop=None)


def stored_table(stored: Any) -> Table:
    """Return what reports read of rows on disk, as a table."""
    names = stored.feature_names, stored.label_name, stored.first_index, stored.rounded, stored.layout
    return Table(stored.X, StoredLabels(stored.classes, stored.codes), *names)  # pyright: ignore[reportArgumentType]


class StoredLabels:
    """The labels of rows on disk, which are read where they are asked for."""

    def __init__(self, classes: np.ndarray, codes: np.ndarray) -> None:
        self.classes, self.codes, self.size = classes, codes, codes.size

    def __getitem__(self, rows: Any) -> Any:
        return self.classes[self.codes[rows]]


def read_model_and_data(model_path: Path, data: Path, columns: ColumnOptions) -> tuple[Any, Table]:
    """Read a model and data for it; columns with names are put in the model's order."""
    model, expected = _model_and_expected(model_path, data, columns)
    _refuse_folder(data)
    table = read(data, **vars(expected))
    _check_label(data, columns, table.feature_names, table.label_name)
    if table.y is not None:
        table = replace(table, y=_labels_as_classes(table.y, model.classes_))
    return model, table


def model_and_rows(model_path: Path, data: Path, columns: ColumnOptions) -> tuple[Any, Any]:
    """Return a model, and rows for it that are read block by block (`RowsForModel`)."""
    from ..readers.model_rows import RowsForModel

    model, expected = _model_and_expected(model_path, data, columns)
    rows = RowsForModel(data, expected)
    _check_label(data, columns, rows.features, rows.label)
    return model, rows


def _model_and_expected(model_path: Path, data: Path, columns: ColumnOptions) -> tuple[Any, Expected]:
    """Read a model; return it with what it expects of the data."""
    check_file(model_path)

    from ..estimators.files.prediction import expected_of
    from ..io.model_file import load

    model: Any = load(model_path)
    _check_columns(data, columns.with_defaults(getattr(model, "source_", {})))
    expected = expected_of(model, **columns.requirements())
    # X has no names, but its columns are in order: scikit-learn's warning about missing names would be wrong
    vars(model).pop("feature_names_in_", None)
    return model, expected


def _check_label(data: Path, columns: ColumnOptions, features: list[str] | None, label: str | None) -> None:
    """Raise DataError where the label column that the command line names is a feature, or is not there."""
    if columns.label is not None and columns.label in (features or ()):
        raise DataError(f"{data}: the column {columns.label!r} is a feature; name another with --label.")
    if columns.label is not None and label != columns.label:
        raise DataError(f"{data}: there is no label column {columns.label!r}; name another with --label.")


def read_certified(model_path: Path, data: Path, columns: ColumnOptions, purpose: str) -> tuple[Any, Table]:
    """Read a model that has a certificate, and data with labels; `purpose` names what needs both."""
    model, table = read_model_and_data(model_path, data, columns)
    if not hasattr(model, "certificate_"):
        raise DataError(f"{model_path}: {model.uncertified_}")
    if table.y is None:
        raise DataError(f"{data}: {purpose} needs labels, and the file has none; add a label to each row.")
    return model, table


def _labels_as_classes(y: np.ndarray, classes: np.ndarray) -> np.ndarray:
    """Convert labels True and False between text, as in a CSV file, and booleans, as in an Arrow file."""
    if classes.dtype.kind == "b" and y.dtype.kind == "U" and np.isin(y, ["True", "False"]).all():
        return y == "True"
    return y.astype(str) if y.dtype.kind == "b" and classes.dtype.kind in "UO" else y
