"""maxmargin separate: a separator with its margin, or the rows that prove that there is none."""

from __future__ import annotations

from typing import Annotated, Any

from typer import Option

from .options import STOPPED, AsJson, ColumnOptions, Columns, Data, Result, command


@command(
    "kernel", "gamma", "degree", "coef0",
    p={"default": 2.0, "help": "Norm in which the margin is measured: 1 to inf."},
    tol={"default": 1e-2, "help": "Relative width of the interval around the largest margin; inf: the verdict alone."},
    max_time={"help": "Seconds, after which the question is left open."},
)  # fmt: skip
def separate(
    data: Data,
    *,
    bias: Annotated[
        bool, Option("--bias/--no-bias", help="May the hyperplane pass beside the origin?")
    ] = True,
    n_features: Columns = None,
    columns: ColumnOptions,
    as_json: AsJson = False,
    **parameters: Any,
) -> Result:
    """Find a hyperplane, or a function of a kernel, that separates two classes, or prove that there is none.

    A proof that none can names rows whose weighted sum is zero. Both hold whatever the rounding. Exit
    code 0 with either proof, 3 if the question was left open.
    """
    from .data import read_labelled

    if parameters["kernel"] == "precomputed":
        raise ValueError("--kernel precomputed takes a matrix, which no file of rows is: ask in Python.")
    table = read_labelled(data, n_features, columns, exact=True)

    from ..separability.separate import separate as find_separator
    from .words import verdict_facts, verdict_text

    verdict = find_separator(table.X, table.y, bias=bias, **parameters)
    rows, features = table.X.shape
    shape = {"rows": rows, "features": features, "feature_names": table.feature_names}
    code = STOPPED if verdict.separable is None else 0
    return Result(shape | verdict_facts(verdict), [verdict_text(verdict, table.y)], code)
