"""maxmargin separate: a separator with its margin, or the rows that prove that there is none."""

from __future__ import annotations

from typing import Annotated, Any

import typer
from typer import Option

from .exits import STOPPED, one_sentence
from .options import (
    AsJson,
    Coef0,
    Columns,
    Data,
    Degree,
    Drop,
    Gamma,
    KernelName,
    Label,
    Selection,
    Use,
    exponent,
)


def separate(
    data: Data,
    kernel: KernelName = None,
    gamma: Gamma = "scale",
    degree: Degree = 3,
    coef0: Coef0 = 0.0,
    p: Annotated[
        Any, Option(parser=exponent, metavar="NORM", help="Norm in which the margin is measured: 1 to inf.")
    ] = 2.0,
    bias: Annotated[
        bool, Option("--bias/--no-bias", help="May the hyperplane pass beside the origin?")
    ] = True,
    tol: Annotated[
        float,
        Option(help="Relative width of the interval around the largest margin; inf: the verdict alone."),
    ] = 1e-2,
    max_time: Annotated[float | None, Option(help="Seconds, after which the question is left open.")] = None,
    n_features: Columns = None,
    label: Label = None,
    columns: Use = None,
    drop: Drop = None,
    as_json: AsJson = False,
) -> None:
    """Can a hyperplane, or a kernel's function, separate the two classes? A separator with its margin, or a proof.

    A proof that none can names rows whose weighted sum is zero. Both hold whatever the rounding. Exit
    code 0 with either proof, 3 if the question was left open.
    """
    with one_sentence():
        from .labelled import check_options, read_labelled, refuse_rounded

        which = Selection(label, columns, drop)
        check_options(data, n_features, which)
        if kernel == "precomputed":
            raise ValueError("--kernel precomputed takes a matrix, which no file of rows is: ask in Python.")
        table = read_labelled(data, n_features, which)
        refuse_rounded(data, table)

        from ..separability.separate import separate as decide
        from .separability import facts, in_words
        from .summary import as_json as to_json

        verdict = decide(
            table.X, table.y, kernel=kernel, gamma=gamma, degree=degree, coef0=coef0, p=p, bias=bias, tol=tol,
            max_time=max_time,
        )  # fmt: skip
        if as_json:
            read = {
                "rows": table.X.shape[0], "features": table.X.shape[1], "feature_names": table.feature_names,
            }  # fmt: skip
            typer.echo(to_json({**read, **facts(verdict)}))
        else:
            typer.echo(in_words(verdict, table.y))
    if verdict.separable is None:
        raise typer.Exit(STOPPED)
