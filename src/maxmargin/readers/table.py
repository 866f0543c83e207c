"""What a file has to hold, the layout that is found in it, the table of its rows, and its labels as numbers."""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter
from collections.abc import Callable, Collection, Generator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import accumulate
from pathlib import Path
from sys import float_info
from typing import Any

import numpy as np

from ..numerics.columns import bad_label, first_beyond
from ..numerics.files import Fault

LABEL_NAMES = ("label", "target", "class", "y")
_MOST_CLASSES = 1 << 20  # labels that are kept in memory: about 100 MB
Block = tuple[
    Any, np.ndarray | list[str] | None
]  # rows of a file as a matrix, and the label of each if there are any


class DataError(ValueError):
    """A data file that cannot be used; the message names the file, the place, the fault and the remedy."""


class TooLargeError(DataError):
    """A data file whose rows do not fit in memory."""


@dataclass(frozen=True)
class Expected:
    """Requirements on a file.

    Attributes
    ----------
    n_features : int, default=None
        Number of features. A sparse file may then hold fewer columns, and a table need not have labels; more columns
        are an error.
    label : str, default=None
        The label column of a CSV, Parquet or Arrow file. None takes a column named label, target, class or y, else
        the last.
    features : list of str, default=None
        The feature columns that the model knows; a file whose columns have names may hold others, in any order.
    first_index : {0, 1}, default=None
        The first index of svmlight text; None takes the rule of `read`.
    use : sequence of str, default=()
        Names of the feature columns, in this order, one at a time or with commas between; none takes all.
    drop : sequence of str, default=()
        Names of columns that are left out. Columns in which pandas keeps the names of rows are left out in any case,
        unless `use` names them.
    header : bool, default=None
        Whether the first line of a text table holds the names of the columns; None: it does unless all its cells are
        numbers.
    delimiter : str, default=None
        The sign between the columns of a text table, a space for runs of spaces and tabs; None asks
        `csv.Sniffer`.
    """

    n_features: int | None = None
    label: str | None = None
    features: list[str] | None = None
    first_index: int | None = None
    use: Sequence[str] = ()
    drop: Sequence[str] = ()
    header: bool | None = None
    delimiter: str | None = None

    @property
    def for_model(self) -> bool:
        """Whether the columns have to fit a model; labels are not needed then."""
        return self.n_features is not None or self.features is not None


def expected_of(model: Any, columns: Expected | None = None) -> Expected:
    """Return what a file has to hold for a fitted model, besides what is asked of its columns.

    The label column, the first index and the layout of text are by default those of the file of the fit.
    """
    columns = columns or Expected()
    names, source = getattr(model, "feature_names_in_", None), getattr(model, "source_", {})
    return replace(
        columns,
        n_features=model.n_features_in_,
        label=columns.label or source.get("label"),
        features=None if names is None else [str(name) for name in names],
        first_index=source.get("first_index"),
        header=source.get("header") if columns.header is None else columns.header,
        delimiter=columns.delimiter or source.get("delimiter"),
    )


@dataclass(frozen=True)
class Table:
    """A data set, in memory or on disk.

    Attributes
    ----------
    X : ndarray or CSR matrix of shape (n_samples, n_features)
        float32 or float64, finite. On disk a read-only memory map, or a CSR matrix of three, with sorted indices.
    codes : ndarray of shape (n_samples,) or None
        The class of each row, as its place in `classes`.
    classes : ndarray
        Sorted: int64 where all labels are whole numbers, else float64 or strings.
    feature_names : list of str or None
    label_name : str or None
        The column that the labels were in.
    first_index : {0, 1} or None
        The first index of svmlight text.
    remembered : dict
        `header` and `delimiter` of `Expected` that a model needs to read other files of this layout.
    files : tuple of (Path, int)
        The files in their order, and the number of rows of each.
    written : Path or None
        The folder of rows on disk, where this call wrote it and it stays.
    """

    X: Any
    codes: Any
    classes: np.ndarray
    feature_names: list[str] | None
    label_name: str | None
    first_index: int | None
    remembered: dict[str, Any]
    files: tuple[tuple[Path, int], ...]
    written: Path | None = None

    @cached_property
    def y(self) -> np.ndarray | None:
        """The label of each row, if there are labels."""
        return None if self.codes is None else self.classes[self.codes]

    def label(self, row: int) -> Any:
        """Return the label of a row, if there are labels."""
        return None if self.codes is None else self.classes[self.codes[row]]

    def place(self, row: int) -> tuple[Path, int]:
        """Return the file of a row and its number in this file, both counted from 0."""
        ends = list(accumulate(count for _, count in self.files))
        k = bisect_right(ends, row)
        return self.files[k][0], row - (ends[k - 1] if k else 0)


@dataclass(frozen=True)
class Layout:
    """The columns that are read of a file, and how its rows are read.

    Attributes
    ----------
    format : str
    blocks : callable
        Takes the features in the order of the data set, and bytes; yields blocks of rows of about so many bytes. The
        columns of svmlight text are its indices as they are written.
    features, label : list of str, str or None
        The columns, where they have names.
    width : int or None
        Number of features; None where only the rows say it.
    float32 : bool
        Whether all features are float32.
    has_labels : bool
    remembered : dict
        As in `Table`.
    """

    format: str
    blocks: Callable[[Any, int], Generator[Block, None, None]]
    features: list[str] | None = None
    label: str | None = None
    width: int | None = None
    float32: bool = False
    has_labels: bool = True
    remembered: dict[str, Any] = field(default_factory=dict)


def whole(labels: np.ndarray) -> np.ndarray:
    """Return labels such as -1.0 and 3.0 as integers, which print as they were written, and others unchanged."""
    # beyond 2^53 float64 numbers are integers in any case
    if labels.dtype.kind == "f" and np.all(labels == np.trunc(labels)) and np.all(np.abs(labels) < 2.0**53):
        return labels.astype(np.int64)
    return labels


def labels_of(texts: list[str]) -> np.ndarray:
    """Return labels as numbers where all of them are numbers, else as strings."""
    for kind in (int, float):
        with suppress(ValueError, OverflowError):
            return whole(np.array([kind(text) for text in texts], np.int64 if kind is int else np.float64))
    return np.array(texts)


def columns(
    names: list[str], expected: Expected, row_names: Collection[str] = ()
) -> tuple[list[str], str | None]:
    """Return the names of the features and of the label (None if there is none).

    Parameters
    ----------
    names : list of str
        All different.
    expected : Expected
    row_names : collection of str, default=()
        Columns that are no features unless `expected` names them.

    Raises
    ------
    Fault
        If a column is missing, asked for in two ways, or their number is not the model's.
    """
    used = _named("--columns", expected.use, names)
    dropped = _named("--drop", expected.drop, names)
    if strange := {*dropped} & {*used, expected.label}:
        raise Fault(f"--drop names the column {min(strange)!r}, and so does another option; name it once.")
    left_out = {*dropped, *({*row_names} - {*used, expected.label})}
    left = [name for name in names if name not in left_out]
    chosen = {*used}
    labels = [name for name in left if name not in chosen]  # columns that may be the label
    lower = {name.lower(): name for name in reversed(labels)}
    usual = next((lower[name] for name in LABEL_NAMES if name in lower), None)
    if expected.features is not None:
        return _columns_of_model(names, expected, used or left, usual)
    if expected.label in used:
        raise Fault(f"the column {expected.label!r} cannot be both the label and a feature; name it once.")
    if expected.label in names:
        label = expected.label
    elif expected.label is not None and not expected.for_model:
        raise Fault(f"there is no column {expected.label!r}; the columns are {listed(names)}.")
    elif len(used or left) == expected.n_features:  # all columns are features of the model
        label = usual if used else None
    else:
        label = usual or (labels[-1] if labels else None)
    features = used or [name for name in left if name != label]
    if label is None and not expected.for_model:
        raise Fault("--columns names every column as a feature; name the label column with --label.")
    if expected.n_features is not None and len(features) != expected.n_features:
        number = f"{expected.n_features} (the number of the model, or of --n-features)"
        raise Fault(f"the file has {len(features)} features, and not {number}.")
    if not features:
        raise Fault(f"the only column is the label {label or names[0]!r}; a classifier needs features.")
    return features, label


def _columns_of_model(
    names: list[str], expected: Expected, left: list[str], usual: str | None
) -> tuple[list[str], str | None]:
    """Return the columns for a model that knows them by name; `left` are the columns that options leave."""
    features: Any = expected.features
    known, allowed = {*names}, {*left}
    if missing := [name for name in features if name not in known & allowed]:
        raise Fault(
            f"the model needs the column {missing[0]!r}; the file, or --columns and --drop, have not."
        )
    label = expected.label if expected.label in names else usual
    return features, None if label in features else label


def _named(option: str, words: Sequence[str], names: list[str]) -> list[str]:
    """Return the columns that an option names, with commas between or one at a time, in this order.

    Raises
    ------
    Fault
        If there is no such column, or one is named twice.
    """
    known = {*names}
    asked: list[str] = []
    for word in words:
        # a name may have a comma in it
        asked += [word] if word in known else [part.strip() for part in word.split(",") if part.strip()]
    for name in asked:
        if name not in known:
            raise Fault(f"{option} names {name!r}, which is not a column; the columns are {listed(names)}.")
    if (twice := repeated(asked)) is not None:
        raise Fault(f"{option} names the column {twice!r} twice; name it once.")
    return asked


def repeated(names: list[str]) -> str | None:
    """Return the first name that occurs more than once."""
    return next((name for name, count in Counter(names).items() if count > 1), None)


def listed(names: list[str]) -> str:
    """Return the first eight names as text."""
    return ", ".join(map(repr, names[:8])) + (", ..." if len(names) > 8 else "")


def check_finite(X: Any, names: list[str] | None = None, before: int = 0) -> None:
    """Raise Fault at the first entry of an array or a CSR matrix that is NaN or infinite.

    `before` rows of the file come before these.
    """
    found = first_beyond(X, float_info.max)
    if found is not None:
        row, column, value = found
        column = f"column {column + 1}" if names is None else f"column {names[column]!r}"
        remedy = "correct it, fill it in, or leave the row out"
        value = "empty or nan" if np.isnan(value) else value
        raise Fault(
            f"row {before + row + 1} (counted from 1), {column} is {value}, not a finite number; {remedy}."
        )


class Classes:
    """Distinct labels, numbered in the order in which they occur.

    Of the labels b, a, b the numbers are 0, 1, 0; `sorted` returns the classes a, b, and the places 1, 0 of b and a.
    """

    def __init__(self) -> None:
        self._numbers: dict[Any, int] = {}
        self._kind, self._read_from_text = "", False

    def numbered(self, labels: np.ndarray | list[str], before: int = 0) -> np.ndarray:
        """Return the number of each label; raise Fault at one that names no class.

        `before` rows of the file come before these.
        """
        self._read_from_text, codes = isinstance(labels, list), slice(None)
        if not isinstance(labels, list):
            fault = bad_label(labels)
            if fault is not None:
                raise Fault(f"the label of row {before + fault[0] + 1} (counted from 1) is {fault[1]}.")
            labels, codes = np.unique(labels, return_inverse=True)
        kind = "text" if isinstance(labels, list) or labels.dtype.kind in "US" else "numbers"
        if not isinstance(labels, list) and labels.dtype.kind not in "USbiuf":
            raise Fault(f"labels must be numbers or text, not {labels.dtype}; number the classes.")
        if self._kind not in ("", kind):
            raise Fault(f"its labels are {kind}, and those before {self._kind}; store one kind.")
        self._kind, numbers = kind, self._numbers
        texts = labels if isinstance(labels, list) else labels.tolist()
        found = np.array([numbers.setdefault(text, len(numbers)) for text in texts], np.uint32)
        if len(numbers) > _MOST_CLASSES:
            raise Fault(f"there are more than {_MOST_CLASSES} different labels; a label names a class.")
        return found[codes]

    def sorted(self) -> tuple[np.ndarray, np.ndarray]:
        """Return the classes in the order of `np.unique`, and the place of each label by its number.

        Raise Fault where a label is NaN or infinite.
        """
        names = list(self._numbers)
        labels = labels_of(names) if self._read_from_text else whole(np.array(names))
        if (found := bad_label(labels)) is not None:
            raise Fault(f"the label {names[found[0]]!r} is {found[1]}.")
        return np.unique(labels, return_inverse=True)
