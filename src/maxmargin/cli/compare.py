"""maxmargin compare: algorithms on the same data, side by side."""

from __future__ import annotations

from dataclasses import fields
from math import isinf
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from typer import Option

from .options import (
    STOPPED,
    AsJson,
    Columns,
    Data,
    Drop,
    Label,
    Use,
    errors_in_one_sentence,
    takes,
)

if TYPE_CHECKING:
    from ..inspection.compare import Comparison


@takes(
    "C", "loss", "p", "norm_power", "fit_intercept", "intercept", "intercept_scaling", "class_weight", "seed"
)
def compare(
    data: Data,
    algorithms: Annotated[
        str | None, Option(help="Names with commas between, as dcd,mpu,pumma; all, if left out.")
    ] = None,
    tol: Annotated[float, Option(help="Certified relative gap at which an algorithm ends.")] = 1e-3,
    max_iter: Annotated[int, Option(help="Most rounds of each algorithm.")] = 1000,
    max_time: Annotated[float | None, Option(help="Seconds that each algorithm may take.")] = None,
    n_features: Columns = None,
    label: Label = None,
    columns: Use = None,
    drop: Drop = None,
    csv: Annotated[Path | None, Option(help="Write every report of every algorithm to this file.")] = None,
    picture: Annotated[
        Path | None, Option(help="Draw them against updates and time, as .png, .pdf or .svg.")
    ] = None,
    as_json: AsJson = False,
    quiet: Annotated[bool, Option("--quiet", "-q", help="No live line and no table.")] = False,
    **parameters: Any,
) -> None:
    """Run algorithms on the same problem, data and seed, and set what they reach against each other.

    Those that do not solve the problem are listed with the reason. Ctrl-C ends the comparison with what is known.
    Exit code 3 if an algorithm stopped before the tolerance.
    """
    with errors_in_one_sentence():
        from ..numerics.files import check_place
        from .data import ColumnOptions, read_labelled, refuse_rounded
        from .display import PictureFile, Progress

        if csv is not None:
            check_place(csv, data)
        drawn = None
        if picture is not None:
            drawn = PictureFile(picture, (10.8, 4.6), data, *([] if csv is None else [csv]))
            if csv is not None and csv.absolute() == picture.absolute():
                raise ValueError(f"{picture}: --csv and --picture name the same file; give each its own")
        table = read_labelled(data, n_features, ColumnOptions(label, columns, drop))
        hard = isinf(parameters["C"])
        if hard:
            refuse_rounded(data, table)

        from ..inspection.compare import compare as run_algorithms
        from .words import json_text

        with Progress("margin" if hard else "objective", None, quiet or as_json) as progress:
            comparison = run_algorithms(
                table.X,
                table.y,
                None if algorithms is None else [name.strip() for name in algorithms.split(",")],
                callback=progress,
                random_state=parameters.pop("seed"),
                tol=tol,
                max_iter=max_iter,
                max_time=max_time,
                **parameters,
            )
        if csv is not None:
            comparison.to_csv(csv)
        if drawn is not None:
            comparison.plot(drawn.figure.subplots(1, 2))
            drawn.save()
        if as_json:
            files = {"csv": csv, "picture": picture}
            names = {name: None if path is None else str(path) for name, path in files.items()}
            typer.echo(json_text(_facts(comparison) | names))
        elif not quiet:
            typer.echo(comparison.table())
    if not comparison.certified:
        raise typer.Exit(STOPPED)


def _facts(comparison: Comparison) -> dict[str, Any]:
    """Return the table of a comparison as plain values."""
    problem = comparison.problem
    entries = []
    for entry in comparison.entries:
        facts = {field.name: getattr(entry, field.name) for field in fields(entry) if field.name != "history"}
        entries.append(facts | {"status": entry.status.value, "class": facts.pop("label")})
    return {
        "problem": {name: getattr(problem, name) for name in ("loss", "C", "p", "power", "intercept")},
        "tol": comparison.tol,
        "algorithms": entries,
        "refused": comparison.refused,
    }
