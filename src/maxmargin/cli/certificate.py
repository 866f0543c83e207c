"""maxmargin certificate: the proof of a model in a file that a program without maxmargin checks."""

from __future__ import annotations

import csv
from pathlib import Path
from typing import Any

from .options import ColumnOptions, Result, command


@command()
def certificate(
    model: Path,
    data: Path,
    *,
    output: Path = Path("proof.json"),
    columns: ColumnOptions,
    as_json: bool = False,
) -> Result:
    """Write the bounds of a linear model, and the numbers that prove them, for a check without maxmargin.

    Both bounds are computed in rational arithmetic. The program checker/check.py of the source distribution checks the
    file against the data: python check.py proof.json data.svm

    Parameters
    ----------
    data : Path
        The data of the fit.
    output : Path
        The file to write.
    """
    from ..io.certificate_file import write_certificate
    from ..numerics.files import check_place
    from .data import read_certified
    from .display import Progress

    check_place(output, model, data)
    with Progress():
        fitted, table = read_certified(model, data, columns, "a certificate")
        found = write_certificate(
            output, fitted, table.X, table.y, feature_names=table.feature_names, label=table.label_name,
            first_index=table.first_index,
        )  # fmt: skip
    labels = fitted.classes_[1:] if len(found) == 1 else fitted.classes_
    bounds = {str(label): pair for label, pair in zip(labels, found, strict=True)}
    lines = [f"class {label}: {pair[0]:.17g} <= best <= {pair[1]:.17g}" for label, pair in bounds.items()]
    parts = fitted.certificate_.certificates
    if any(lower == 0.0 < part.lower for (lower, _), part in zip(found, parts, strict=True)):
        lines.append(
            "a lower bound of the fit is not in the file: no dual variables whose products with very large columns "
            "cancel were found; scale the features."
        )
    if not _read_by_checker(data, table):
        lines.append(
            "checker/check.py reads svmlight and delimited text, which has a header of different names and commas, "
            "semicolons or tabs between the columns, plain or compressed as .gz: write the rows in this form."
        )
    return Result({"certificate": str(output), "bounds": bounds}, [f"certificate: {output}", *lines])


def _read_by_checker(data: Path, table: Any) -> bool:
    """Return whether checker/check.py reads the file; the first line of a table has to name its columns."""
    from ..readers.files import COMPRESSED, OTHER_THAN_TEXT, kind_of, open_data

    if kind_of(data) in OTHER_THAN_TEXT or (data.suffix.lower() in COMPRESSED and data.suffix != ".gz"):
        return False
    if table.label_name is None:  # svmlight text
        return True
    with open_data(data) as file:
        header = file.readline().decode()
    names = next(csv.reader([header], delimiter=max(",;\t", key=header.count)))  # as the checker does
    return len({*names}) == len(names) and {table.label_name, *table.feature_names} <= {*names}
