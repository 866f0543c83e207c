"""maxmargin separate: a separator with its margin, or the rows that prove that there is none."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer
from typer import Option

from .exits import STOPPED, one_sentence
from .options import AsJson, Columns, Data, Label, exponent

if TYPE_CHECKING:
    from ..readers import Table
    from ..verdicts import Inseparable, Separable, Undecided


def separate(
    data: Data,
    p: Annotated[
        Any, Option(parser=exponent, metavar="NORM", help="Norm in which the margin is measured: 1 to inf.")
    ] = 2.0,
    bias: Annotated[bool, Option("--bias/--no-bias", help="May the hyperplane pass beside the origin?")] = True,
    tol: Annotated[
        float, Option(help="Relative width of the interval around the largest margin; inf: the verdict alone.")
    ] = 1e-2,
    max_time: Annotated[float | None, Option(help="Seconds, after which the question is left open.")] = None,
    n_features: Columns = None,
    label: Label = None,
    as_json: AsJson = False,
) -> None:
    """Can a hyperplane separate the two classes? A separator with its margin, or the rows that prove that none can.

    Both are proved, whatever the rounding. Exit code 0 with either proof, 3 if the question was left open.
    """
    with one_sentence():
        from .labelled import check_options, read_labelled

        check_options(data, n_features, label)
        table = read_labelled(data, n_features, label)

        from ..separation import separate as decide
        from .summary import as_json as to_json

        verdict = decide(table.X, table.y, p=p, bias=bias, tol=tol, max_time=max_time)
        typer.echo(to_json(_facts(verdict, table)) if as_json else _report(verdict, table))
    if verdict.separable is None:
        raise typer.Exit(STOPPED)


def _facts(verdict: Separable | Inseparable | Undecided, table: Table) -> dict[str, Any]:
    """What was found, as plain values; rows are counted from 1, as the report does."""
    facts: dict[str, Any] = {
        "separable": verdict.separable,
        "rows": len(table.y),  # pyright: ignore[reportArgumentType]
        "features": table.X.shape[1],
        "classes": list(verdict.classes),
        "p": verdict.p,
        "bias": verdict.bias,
        "method": verdict.method,
        "seconds": verdict.seconds,
    }
    if verdict.separable is False:
        proof = zip(verdict.support.tolist(), verdict.weights, verdict.alpha.tolist(), strict=True)
        shown = [{"row": i + 1, "weight": value, "exact": str(weight)} for i, weight, value in proof]
        return facts | {"reason": verdict.words(1), "radius": verdict.radius, "proof": shown}
    facts |= {"lower": verdict.lo, "upper": verdict.hi}
    if verdict.separable is None:
        proof = zip(verdict.support.tolist(), verdict.alpha.tolist(), strict=True)
        return facts | {
            "reason": verdict.reason,
            "weights": [{"row": i + 1, "weight": value} for i, value in proof],
        }
    return facts | {"coef": verdict.w.tolist(), "intercept": verdict.b}
