"""maxmargin separate: a separator with its margin, or the rows that prove that there is none."""

from __future__ import annotations

from typing import Annotated, Any

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
    parse_norm,
    takes,
)


@takes("kernel", "gamma", "degree", "coef0")
def separate(
    data: Data,
    p: Annotated[
        Any, Option(parser=parse_norm, metavar="NORM", help="Norm in which the margin is measured: 1 to inf.")
    ] = 2.0,
    tol: Annotated[
        float,
        Option(help="Relative width of the interval around the largest margin; inf: the verdict alone."),
    ] = 1e-2,
    max_time: Annotated[float | None, Option(help="Seconds, after which the question is left open.")] = None,
    bias: Annotated[
        bool, Option("--bias/--no-bias", help="May the hyperplane pass beside the origin?")
    ] = True,
    n_features: Columns = None,
    label: Label = None,
    columns: Use = None,
    drop: Drop = None,
    as_json: AsJson = False,
    **parameters: Any,
) -> None:
    """Find a hyperplane, or a function of a kernel, that separates two classes, or prove that there is none.

    A proof that none can names rows whose weighted sum is zero. Both hold whatever the rounding. Exit
    code 0 with either proof, 3 if the question was left open.
    """
    with errors_in_one_sentence():
        from .data import ColumnOptions, check_data_options, read_labelled, refuse_rounded

        column_options = ColumnOptions(label, columns, drop)
        check_data_options(data, n_features, column_options)
        if parameters["kernel"] == "precomputed":
            raise ValueError("--kernel precomputed takes a matrix, which no file of rows is: ask in Python.")
        table = read_labelled(data, n_features, column_options)
        refuse_rounded(data, table)

        from ..separability.separate import separate as find_separator
        from .words import json_text, verdict_facts, verdict_text

        verdict = find_separator(table.X, table.y, p=p, bias=bias, tol=tol, max_time=max_time, **parameters)
        if as_json:
            rows, features = table.X.shape
            shape = {"rows": rows, "features": features, "feature_names": table.feature_names}
            typer.echo(json_text({**shape, **verdict_facts(verdict)}))
        else:
            typer.echo(verdict_text(verdict, table.y))
    if verdict.separable is None:
        raise typer.Exit(STOPPED)
