"""Data to learn from: a file with labels that are classes."""

from __future__ import annotations

from pathlib import Path

from ..io.readers import DataError, Table, names_columns
from .options import Selection


def check_options(data: Path, n_features: int | None, which: Selection) -> None:
    """Refuse what this kind of file has no use for."""
    which.check(data)
    if n_features is not None and n_features < 1:
        raise DataError(
            f"--n-features must be at least 1, got {n_features}; leave it out to count those that occur."
        )
    if n_features is not None and names_columns(data):
        raise DataError(f"{data}: the header says which features there are; leave --n-features out.")


def refuse_rounded(data: Path, table: Table) -> None:
    """Refuse rows that are not those of the file, where something is to be proved of these."""
    if table.rounded is not None:
        raise DataError(
            f"{data} holds {table.rounded}, which no float64 is, and proofs are about float64 numbers: rows that "
            "differ could be taken for equal ones. Subtract a constant from its column, or divide, so that float64 "
            "holds every number; or, if rounding is meant, write it with a decimal point."
        )


def read_labelled(data: Path, n_features: int | None, which: Selection) -> Table:
    """Read a file; its labels must be there, and be classes."""
    table = which.read(data, n_features)
    if table.y is None:
        raise DataError(f"{data}: there are no labels to learn from.")
    if table.y.dtype.kind in "mM":
        raise DataError(
            f"{data}: the labels (column {table.label_name!r}) are dates or times, not classes; name another column "
            "with --label."
        )
    if table.y.dtype.kind == "f":
        remedy = "number the classes"
        if table.label_name is not None:
            remedy = f"name another column than {table.label_name!r} with --label"
        raise DataError(f"{data}: the labels are fractions, not classes; {remedy}.")
    return table
