"""maxmargin predict: a model and data in, labels out."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated, Any

import typer
from typer import Argument, Option

from .options import ALL_COLUMNS, AsJson, ColumnOptions, Model, command


@command()
def predict(
    model: Model,
    data: Annotated[
        Path, Argument(help="Rows to classify; labels are not needed in .csv, .npz, .parquet and .arrow.")
    ],
    output: Annotated[
        Path | None, Option("--output", "-o", help="Where to write; else standard output.")
    ] = None,
    scores: Annotated[
        bool, Option("--scores", help="After each label, and tabs, the score, or that of every class.")
    ] = False,
    columns: ColumnOptions = ALL_COLUMNS,
    as_json: AsJson = False,
) -> None:
    """Write the class of each row, one a line or as JSON; where labels are known, the accuracy on standard error."""
    from ..numerics.files import check_place, written_whole
    from .data import read_model_and_data
    from .words import label_text

    if output is not None:
        check_place(output, model, data)
    fitted, table = read_model_and_data(model, data, columns)
    predicted = fitted.predict(table.X)
    labels = [label_text(name) for name in predicted]
    values = fitted.decision_function(table.X) if scores else None
    if as_json:
        facts: dict[str, Any] = {"labels": predicted.tolist()}
        text = json.dumps(facts if values is None else {**facts, "scores": values.tolist()}) + "\n"
    else:
        lines = labels if values is None else _lines_with_scores(labels, values)
        text = "".join(f"{line}\n" for line in lines)
    if output is None:
        typer.echo(text, nl=False)
    else:
        with written_whole(output) as file:
            file.write(text.encode())
    if table.y is not None:
        classes = {label_text(name) for name in fitted.classes_}
        typer.echo(_accuracy(labels, [label_text(name) for name in table.y], classes), err=True)


def _lines_with_scores(labels: list[str], scores: Any) -> list[str]:
    rows = scores.reshape(len(labels), -1).tolist()
    return ["\t".join([label, *map(repr, row)]) for label, row in zip(labels, rows, strict=True)]


def _accuracy(predicted: list[str], truth: list[str], classes: set[str]) -> str:
    if not classes.intersection(truth):
        return "accuracy unknown: the labels of the data are none of the model's classes"
    right = sum(one == two for one, two in zip(predicted, truth, strict=True))
    return f"accuracy {right / len(truth):.6g} ({right} of {len(truth)} rows)"
