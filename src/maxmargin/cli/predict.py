"""maxmargin predict: a model and data in, labels out."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated, Any

import typer
from typer import Argument, Option

from .exits import one_sentence
from .options import AsJson, Drop, Label, Selection, Use


def predict(
    model: Annotated[Path, Argument(help="A file that `maxmargin fit` wrote.")],
    data: Annotated[
        Path, Argument(help="Rows to classify; labels are not needed in .csv, .npz, .parquet and .arrow.")
    ],
    output: Annotated[
        Path | None, Option("--output", "-o", help="Where to write; else standard output.")
    ] = None,
    scores: Annotated[
        bool, Option("--scores", help="After each label, and tabs, the score, or that of every class.")
    ] = False,
    label: Label = None,
    columns: Use = None,
    drop: Drop = None,
    as_json: AsJson = False,
) -> None:
    """Write the class of each row, one a line or as JSON; where labels are known, the accuracy on standard error."""
    with one_sentence():
        from .stored import model_and_data
        from .summary import text_of

        if output is not None:
            from ..numerics.files import check_place

            check_place(output, model, data)
        fitted, table = model_and_data(model, data, Selection(label, columns, drop))
        labels = [text_of(name) for name in fitted.predict(table.X)]
        values = fitted.decision_function(table.X) if scores else None
        if as_json:
            found: dict[str, Any] = {"labels": fitted.predict(table.X).tolist()}
            text = json.dumps(found if values is None else {**found, "scores": values.tolist()}) + "\n"
        else:
            lines = labels if values is None else _with_scores(labels, values)
            text = "".join(f"{line}\n" for line in lines)
        if output is None:
            typer.echo(text, nl=False)
        else:
            from ..numerics.files import written_whole

            with written_whole(output) as file:
                file.write(text.encode())
        if table.y is not None:
            known = {text_of(name) for name in fitted.classes_}
            typer.echo(_accuracy(labels, [text_of(name) for name in table.y], known), err=True)


def _with_scores(labels: list[str], scores: Any) -> list[str]:
    rows = scores.reshape(len(labels), -1).tolist()
    return ["\t".join([label, *map(repr, row)]) for label, row in zip(labels, rows, strict=True)]


def _accuracy(labels: list[str], truth: list[str], known: set[str]) -> str:
    if not known.intersection(truth):
        return "accuracy unknown: the labels of the data are none of the model's classes"
    right = sum(one == two for one, two in zip(labels, truth, strict=True))
    return f"accuracy {right / len(truth):.6g} ({right} of {len(truth)} rows)"
