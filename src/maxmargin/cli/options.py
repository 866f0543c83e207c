"""What several commands ask for in the same words."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from typer import Option

Label = Annotated[str | None, Option(help="The label column of a .csv or .parquet file.")]
AsJson = Annotated[bool, Option("--json", help="One JSON object on standard output.")]


def check_label(data: Path, label: str | None) -> None:
    """Refuse a label column where columns have no names."""
    from ..readers import DataError, names_columns

    if label is not None and not names_columns(data):
        raise DataError(
            f"{data}: --label names a column of a .csv or .parquet file, and this kind of file has a fixed "
            "place for labels; leave --label out."
        )
