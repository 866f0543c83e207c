"""Tables that users give: what float64 does not hold is refused with a remedy, what dominates is named, and columns
without entries are left out.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import inf, isinf, log10
from numbers import Real
from sys import float_info
from typing import Any

import numpy as np
import scipy.sparse as sp

WHOLE = 2**53  # float64 represents every integer up to this
ENCODE = "encode text and dates, with OneHotEncoder in a pipeline for instance, or leave the column out"


def check_columns(X: Any) -> None:
    """Raise ValueError for a table that is damaged, or holds what float64 does not.

    Two integers beyond 2^53 may be the same float64 number: different rows would be taken for equal ones. Arrays of
    floats are not searched for NaN and infinity, which the caller finds.
    """
    check_storage(X)
    if getattr(getattr(X, "dtype", None), "kind", "O") not in "fb" and (fault := column_message(X)):
        raise ValueError(fault)


def column_message(X: Any) -> str | None:
    """Return a message about the first column of X with an entry that is no finite number of float64; None without."""
    return next((fault for column in _columns(X) if (fault := _fault(*column))), None)


def rows_and_labels(X: Any, y: Any, error: type[ValueError] = ValueError) -> tuple[Any, np.ndarray]:
    """Return rows, dense or in canonical CSR format, of float32 or float64 numbers, and a label for each.

    X is not changed. An `error` is raised where they cannot be used; the message names a remedy.
    """
    try:
        check_columns(X)
        X = X.tocsr() if sp.issparse(X) else np.asarray(X)
        X = X if X.dtype in (np.float32, np.float64) else X.astype(np.float64)
        if X.ndim != 2:
            raise ValueError(f"X must have two dimensions, not {X.ndim}: X.reshape(-1, 1) makes a column.")
        X = canonical(X) if sp.issparse(X) else X
        if first_beyond(X, float_info.max) is not None:
            raise ValueError(column_message(X))
        return X, label_array(y, X.shape[0])
    except (TypeError, ValueError) as fault:
        raise error(str(fault)) from None


def first_beyond(X: Any, most: float) -> tuple[int, int, float] | None:
    """Return row, column and value of the first entry that is NaN, or larger in size than `most`; None without one.

    Of a CSR matrix the first stored entry of the first such row is meant.
    """
    entries = X.data if sp.issparse(X) else X
    if max(float(entries.max(initial=0.0)), -float(entries.min(initial=0.0))) <= most:  # false for NaN
        return None
    k = int(np.flatnonzero(~(np.abs(entries, dtype=float) <= most))[0])
    if not sp.issparse(X):
        row, column = divmod(k, X.shape[1])
        return row, column, float(X[row, column])
    return int(np.searchsorted(X.indptr, k, side="right")) - 1, int(X.indices[k]), float(X.data[k])


def _columns(X: Any) -> Iterator[tuple[str, np.ndarray]]:
    """Yield the place and the entries of the columns of a table; of a sparse one, of the columns with faults only."""
    if hasattr(X, "columns"):  # of Arrow tables, `columns` are the columns and not their names
        for j, name in enumerate(getattr(X, "column_names", X.columns)):
            yield f"column {name!r}", np.asarray(X.iloc[:, j] if hasattr(X, "iloc") else X[name])
        return
    if sp.issparse(X):
        table = sp.csc_array(X)
        most = WHOLE + 1 if table.dtype.kind in "iu" else inf
        fine = (table.data < most) & (table.data > -most) if table.dtype.kind in "biuf" else False
        places = (
            np.searchsorted(table.indptr, np.flatnonzero(~np.broadcast_to(fine, table.nnz)), side="right") - 1
        )
        for j in np.unique(places).tolist():  # only these become dense, one at a time
            yield f"column {j}", table[:, [j]].toarray().ravel()
        return
    table = np.asarray(X)
    table = table if table.dtype.kind in "biufcmM" else np.asarray(X, dtype=object)
    for j in range(table.shape[1] if table.ndim == 2 else 0):
        yield f"column {j}", table[:, j]


def _fault(place: str, values: np.ndarray) -> str | None:
    """Describe the first entry of a column that is no finite number of float64; None where there is none."""
    kind = values.dtype.kind
    if kind in "mM":
        return f"{place} of X holds {values.dtype}, not numbers: {ENCODE}."
    if kind == "c":
        return "Complex data not supported: give real and imaginary parts of X columns of their own."
    if kind in "biu":
        for i in np.flatnonzero((values > WHOLE) | (values < -WHOLE))[:1].tolist():
            return (
                f"{place} of X holds {values[i]} in row {i} (counted from 0), and float64 rounds integers beyond 2^53, "
                "so that different rows may become equal: leave the column out if it identifies rows, subtract a "
                "constant or divide, or, if rounding is meant, convert X to float64."
            )
        return None
    if kind == "f" and np.isfinite(values).all():
        return None
    for i, value in enumerate(values.tolist()):
        where = f"(row {i}; rows and columns are counted from 0)"
        if is_missing(value):
            remedy = (
                "fill such entries in, with SimpleImputer in a pipeline for instance, or leave the rows out"
            )
            return f"Input X contains NaN: {place} is missing; {remedy} {where}."
        try:
            infinite = isinf(float(value))
        except TypeError:  # of objects of any kind
            return None
        except (ValueError, OverflowError):
            return f"{place} of X holds {str(value)[:40]!r}, not numbers: {ENCODE} {where}."
        if infinite:
            remedy = "give finite numbers, or leave the rows out"
            return f"Input X contains infinity: {place} is infinite; {remedy} {where}."
    return None


def check_storage(X: Any) -> None:
    """Raise ValueError for masked entries, queries of Polars, and a sparse matrix with damaged indices.

    NumPy reads the values under a mask, and compiled code would read outside of the arrays.
    """
    if hasattr(X, "collect") and hasattr(X, "collect_schema"):  # of Polars
        raise ValueError(
            "X, y or sample_weight is a query that has not been run, and no table: call collect() first."
        )
    if isinstance(getattr(X, "_meta", None), np.ma.MaskedArray):  # of Dask
        X = X.compute()
    if np.ma.is_masked(X):
        raise ValueError("X, y or sample_weight has masked entries: fill them in, or leave the rows out.")
    kind: Any = type(X)
    try:
        if hasattr(X, "check_format"):
            if X.indices.dtype.kind not in "iu":
                raise TypeError("its indices are no integers")
            # the check may change its matrix: it is made on a copy of the matrix, not of its arrays
            kind((X.data, X.indices, X.indptr), X.shape).check_format()
        elif sp.issparse(X) and X.format == "coo":
            kind((X.data, X.coords), X.shape)  # checks the coordinates
    except (ValueError, IndexError, TypeError) as error:
        raise ValueError(f"X is a damaged sparse matrix: {error}; build it again by coo_array.") from None


def weight_array(weights: Any, rows: int) -> np.ndarray:
    """Return sample weights as float64 numbers, one for each row; a single number, or None for ones, is repeated.

    ValueError is raised unless there are as many, all finite and at least 0; NumPy would read masked ones, and dates.
    """
    check_storage(weights)
    if weights is None or isinstance(weights, Real):
        weights = np.full(rows, 1.0 if weights is None else float(weights))
    kind = np.asarray(weights).dtype
    try:
        found = np.asarray(weights, dtype=float)
    except (TypeError, ValueError, OverflowError) as error:
        raise ValueError(f"sample_weight must hold numbers: {error}") from None
    if kind.kind in "mM":
        raise ValueError(f"sample_weight holds {kind}, not numbers: give numbers of at least 0.")
    if found.shape != (rows,):
        raise ValueError(f"sample_weight must hold {rows} numbers, one a row; got shape {found.shape}.")
    for i in np.flatnonzero(~((found >= 0.0) & (found < inf)))[:1].tolist():
        raise ValueError(
            f"sample_weight must hold finite numbers of at least 0, and that of row {i} (counted from 0) is {found[i]}."
        )
    return found


# labels


def plain_labels(y: Any) -> Any:
    """Return labels that scikit-learn reads unchanged: pandas' as arrays, Arrow's dictionaries as their entries.

    scikit-learn makes floats of pandas' own integers. Of a chunked dictionary with a missing entry NumPy would repeat
    the last label. Masked labels are refused.
    """
    check_storage(y)
    if hasattr(y, "isna") and not hasattr(y, "compute"):  # of pandas; NumPy computes those of Dask
        return np.asarray(y)
    kind = getattr(y, "type", None)
    if hasattr(kind, "index_type"):
        return y.cast(kind.value_type)  # pyright: ignore[reportOptionalMemberAccess]
    return y.astype(object) if getattr(getattr(y, "dtype", None), "kind", "O") == "T" else y


def label_array(y: Any, rows: int | None = None) -> np.ndarray:
    """Return labels as an array of shape (n,), with a DataConversionWarning if they are a column, as in fits.

    Raises
    ------
    ValueError
        Unless y has the shape (n,) or (n, 1), with `rows` labels if that is given, no entry is masked, and each label
        names a class.
    """
    labels = np.asarray(plain_labels(y))
    if labels.ndim == 0:  # None, or a sparse matrix
        raise ValueError(f"y must be an array of one label for each row; got {type(y).__name__}.")
    if labels.ndim != 1:
        from sklearn.utils.validation import column_or_1d  # verification of other labels does without it

        labels = column_or_1d(labels, warn=True)
    if rows is not None and labels.size != rows:
        raise ValueError(f"y must hold one label for each of the {rows} rows; got shape {labels.shape}.")
    if labels.dtype.kind not in "biuU" and (fault := bad_label(labels)) is not None:
        raise ValueError(f"Label {fault[0]} (counted from 0) is {fault[1]}.")
    return labels


def bad_label(y: np.ndarray) -> tuple[int, str] | None:
    """Return the row of the first label that names no class, and what it is with the remedy; None if there is none.

    Such are NaN, infinity, NaT, and what a data frame library has for missing entries.
    """
    kind = y.dtype.kind
    if kind == "f":
        bad = ~np.isfinite(y)
    elif kind == "O":
        bad = np.fromiter((is_missing(v) or v in (inf, -inf) for v in y.ravel().tolist()), bool, y.size)
    else:
        bad = np.isnat(y) if kind in "mM" else np.zeros(0, bool)
    return next(((i, f"{y.ravel()[i]}: leave the row out") for i in np.flatnonzero(bad)[:1].tolist()), None)


def is_missing(value: Any) -> bool:
    """Return whether a value is None, NaN, or the missing value of a data frame library."""
    if value is None:
        return True
    try:
        return bool(value != value)
    except (TypeError, ValueError):  # pandas.NA has no truth value
        return type(value).__name__ == "NAType"


# the entry or the column that is far larger than all others

# Least ratio of sizes that is reported. Its square, 1e8, is the ratio of the terms in squared lengths and in products
# of columns, and takes up half of the 16 digits of float64; smaller ratios seldom keep a fit from its tolerance.
DOMINATES = 1e4


@dataclass(frozen=True)
class Dominant:
    """An entry that dominates its column, a column that dominates the others, or the scale of all columns.

    Attributes
    ----------
    column : int or None
        None if all columns are of a scale far from 1.
    row : int or None
        The row of the entry; None if the whole column is large.
    value : float
        The entry of largest absolute value.
    others : float
        The largest absolute value of the column's other entries, or the median of this value over the other columns.
    """

    column: int | None
    row: int | None
    value: float
    others: float

    def words(self, first: int = 0, names: Sequence[str] | None = None) -> str:
        """Return a sentence that names the row, the column and the remedy.

        Parameters
        ----------
        first : int, default=0
            The number that the first row, and the first column, has in the sentence.
        names : sequence of str, default=None
            Of the columns; None for their numbers.
        """
        if self.column is None:
            if not self.value:
                return "every entry of X is 0, which tells no classes apart: check how X was made"
            return f"the entries of X reach {self.value:.3g}, far from 1: scale the features (StandardScaler)"
        counted = f"(counted from {first})"
        column = (
            f"column {self.column + first} {counted}" if names is None else f"column {names[self.column]!r}"
        )
        if self.row is None:
            return (
                f"{column} reaches {self.value:.3g}, and the median of the other columns {self.others:.3g}: divide it "
                f"by 1e{round(log10(abs(self.value)) - log10(self.others))}, or scale all columns with StandardScaler"
            )
        return (
            f"row {self.row + first} {counted} holds {self.value:.3g} in {column}, whose other entries are at most "
            f"{self.others:.3g} in size: is it a sentinel for a missing value? Fill it in (SimpleImputer), or leave "
            "the row out"
        )


def dominant(X: Any) -> Dominant | None:
    """Return the entry or the column that is at least `DOMINATES` times as large as the others; None without one.

    Without one, all columns are reported if their largest entry is `DOMINATES` times as large or as small as 1, which
    stands for the constant feature of the intercept.

    Parameters
    ----------
    X : ndarray or CSR matrix of shape (n, d)
    """
    top, bottom = column_extremes(X)
    sizes = np.maximum(top, -bottom)
    j = int(sizes.argmax())
    column = vector(X[:, [j]])
    row = int(np.abs(column).argmax())
    value, large = float(column[row]), float(sizes[j]) / DOMINATES
    rest = float(np.abs(column[column != value]).max(initial=0.0))  # a sentinel may occur in several rows
    others = np.delete(sizes, j)
    median = float(np.median(others[others > 0.0])) if others.any() else 0.0
    above = 0.0 < median <= large  # the column is above the others
    if 0.0 < rest <= large or (above and np.count_nonzero(column) == 1):
        return Dominant(j, row, value, rest)
    if above:
        return Dominant(j, None, value, median)
    return None if 1.0 / DOMINATES < abs(value) < DOMINATES else Dominant(None, None, value, 1.0)


def column_extremes(X: Any) -> tuple[np.ndarray, np.ndarray]:
    """Return the largest and the smallest entry of every column, of shape (d,)."""
    top, bottom = X.max(axis=0), X.min(axis=0)
    return (vector(top), vector(bottom)) if sp.issparse(X) else (top.astype(float), bottom.astype(float))


def vector(values: Any) -> np.ndarray:
    """Return a dense or sparse row or column as a float64 vector."""
    return np.asarray(values.toarray() if sp.issparse(values) else values, dtype=float).ravel()


# columns without entries
#
# The presolve of sparse data drops the columns without entries before a solver sees the data, and restores them after.
# Such a column adds nothing to any score, and a weight other than 0 does not reduce any norm of w: for every p some
# optimum has weight 0 there (for p > 1 every optimum). The problem on the other columns therefore has the same optimum,
# and arrays of a solver have one number for each column with entries, of which there are no more than entries.

# Share of columns with entries from which all columns are kept: to drop fewer than half of them saves less than half
# of the memory of a solver, and the copy of the column indices takes as much.
MAX_KEPT = 0.5


@dataclass(frozen=True, eq=False)
class Columns:
    """The columns of a data set that are kept.

    Attributes
    ----------
    count : int
        Columns of the data set.
    places : ndarray of int, default=None
        The columns that are kept, ascending; None where all are.
    """

    count: int
    places: np.ndarray | None = None

    def restrict(self, w: np.ndarray) -> np.ndarray:
        """Return the entries of w, of shape (..., count), at the columns that are kept."""
        return w if self.places is None else w[..., self.places]

    def restore(self, w: np.ndarray) -> np.ndarray:
        """Return the vector of shape (..., count) with these entries at the columns that are kept, and 0 elsewhere."""
        if self.places is None:
            return w
        whole = np.zeros((*w.shape[:-1], self.count), w.dtype)
        whole[..., self.places] = w
        return whole


def without_empty_columns(X: Any, coef: np.ndarray | None = None) -> tuple[Any, Columns]:
    """Return the data on the columns that have entries, and which columns these are.

    Parameters
    ----------
    X : ndarray or CSR matrix of shape (n, d)
        Dense data, and sparse data of which at least half of the columns have entries, are returned as they are.
    coef : ndarray of shape (..., d), default=None
        Weights that X will be used with: the columns of those that are not 0 are kept, too.

    Returns
    -------
    X : ndarray or CSR matrix of shape (n, k)
        Time and memory of the step are of the order of the entries.
    columns : Columns
    """
    d = X.shape[1]
    if not sp.issparse(X):
        return X, Columns(d)
    by_sorting = d > X.nnz  # sort the entries: no array of all columns is made
    if by_sorting:
        places = np.unique(X.indices)
    else:
        seen, step = np.zeros(d, bool), 1 << 16
        for first in range(0, X.nnz, step):  # the pass ends once the columns marked are enough
            seen[X.indices[first : first + step]] = True
            if np.count_nonzero(seen) >= MAX_KEPT * d:
                return X, Columns(d)
        places = np.flatnonzero(seen)
    if coef is not None:
        places = np.union1d(places, np.flatnonzero(coef) % d)
    if places.size >= MAX_KEPT * d:
        return X, Columns(d)
    if not places.size:
        places = np.zeros(1, np.intp)  # solvers have at least one column
    if by_sorting:
        indices = np.searchsorted(places, X.indices)
    else:
        number = np.zeros(d, np.intp)
        number[places] = np.arange(places.size)
        indices = number[X.indices]
    some = (X.data, indices.astype(X.indices.dtype, copy=False), X.indptr)
    return type(X)(some, shape=(X.shape[0], places.size), copy=False), Columns(d, places)


def canonical(X: Any) -> Any:
    """Return CSR rows with sorted entries, each once, copied if need be."""
    if not X.has_canonical_format:
        X = X.copy()
        X.sum_duplicates()
    return X


def with_constant_column(X: Any, constant: float) -> Any:
    """Return the rows with one more column, the last, in which every entry is `constant`; X itself where that is 0.

    Parameters
    ----------
    X : ndarray or CSR matrix of shape (n, d)
    constant : float
        The constant coordinate of an augmented intercept, `Problem.rho`.

    Returns
    -------
    ndarray or CSR matrix of shape (n, d + 1), or (n, d)
    """
    if not constant:
        return X
    column = np.full((X.shape[0], 1), constant)
    return sp.hstack([X, column], format="csr") if sp.issparse(X) else np.hstack([X, column])


def may_be_dense(X: Any) -> bool:
    """Return whether a dense copy of X takes memory of the order of its entries, or little in any case.

    2^21 numbers take 16 MiB, of which a solver makes up to seven, together less than the libraries themselves take. An
    entry takes 12 to 16 bytes in CSR, and 8 numbers take 64: a larger copy is at most about five times the data.
    """
    return not sp.issparse(X) or X.shape[0] * X.shape[1] <= max(2**21, 8 * X.nnz)
