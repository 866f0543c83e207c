"""maxmargin separate: a separator with its margin, or the rows that prove that there is none."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

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

if TYPE_CHECKING:
    from ..readers import Table
    from ..verdicts import Inseparable, Verdict

SHORT = 24  # characters of a fraction that is printed


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

        from ..separation import separate as decide
        from .summary import as_json as to_json

        verdict = decide(
            table.X, table.y, kernel=kernel, gamma=gamma, degree=degree, coef0=coef0, p=p, bias=bias, tol=tol,
            max_time=max_time,
        )  # fmt: skip
        typer.echo(to_json(_facts(verdict, table)) if as_json else _report(verdict, table))
    if verdict.separable is None:
        raise typer.Exit(STOPPED)


def _facts(verdict: Verdict, table: Table) -> dict[str, Any]:
    """What was found, as plain values; rows are counted from 1, as the report does."""
    from ..kernel_verdicts import KernelSeparator
    from ..verdicts import Inseparable, LinearSeparator, Separable

    facts: dict[str, Any] = {
        "separable": verdict.separable,
        "rows": table.X.shape[0],
        "features": table.X.shape[1],
        "feature_names": table.feature_names,
        "classes": list(verdict.classes),
        "p": verdict.p,
        "bias": verdict.bias,
        "method": verdict.method,
        "seconds": verdict.seconds,
    }
    if isinstance(verdict, Separable):
        point: dict[str, Any] = {}
        if isinstance(verdict, LinearSeparator):
            point = {"coef": verdict.w.tolist(), "intercept": verdict.b}
        if isinstance(verdict, KernelSeparator):
            point = {"dual_coef": verdict.coefficients.tolist(), "intercept": verdict.b}
        return facts | {"lower": verdict.lo, "upper": verdict.hi} | point
    rows = [
        {"row": i + 1, "weight": value}
        for i, value in zip(verdict.support.tolist(), verdict.alpha.tolist(), strict=True)
    ]
    if isinstance(verdict, Inseparable):
        for row, weight in zip(rows, verdict.weights, strict=True):
            row["exact"] = str(weight)
        return facts | {"reason": verdict.words(1), "radius": verdict.radius, "proof": rows}
    return facts | {"lower": verdict.lo, "upper": verdict.hi, "reason": verdict.reason, "weights": rows}


def _report(verdict: Verdict, table: Table) -> str:
    """What was found, in words; rows of data are counted from 1, header lines apart."""
    from ..kernels import Linear
    from ..verdicts import Inseparable, Separable
    from .summary import text_of

    negative, positive = (text_of(name) for name in verdict.classes)
    through = "" if verdict.bias else " through the origin"
    what = (
        "hyperplane"
        if isinstance(verdict.kernel, Linear)
        else f"function of the {verdict.kernel.name} kernel"
    )
    sides = f"{what}{through} has {negative} on one side and {positive} on the other"
    found = f"({verdict.method}, {verdict.seconds:.2g} s)"
    if isinstance(verdict, Inseparable):
        return "\n".join([f"NOT SEPARABLE: no {sides} {found}", *_proof(verdict, table)])
    if isinstance(verdict, Separable):
        bounds = f"{verdict.lo:.9g} <= largest margin <= {verdict.hi:.9g} (p = {verdict.p:g})"
        digits = f"\n{verdict.digits}" if verdict.digits else ""
        return f"SEPARABLE: a {sides} {found}\n{bounds}{digits}"
    return (
        f"UNDECIDED: {verdict.reason} {found}\n"
        f"largest margin <= {verdict.hi:.9g} (p = {verdict.p:g}), as weights on {verdict.support.size} rows show"
    )


def _proof(verdict: Inseparable, table: Table) -> list[str]:
    """The rows that prove it, and why they do."""
    from ..kernels import Linear
    from .summary import text_of

    labels: Any = table.y
    lines = [verdict.words(1), "", f"{'row':>8}  {'class':>10}  weight"]
    for i, weight in zip(verdict.support.tolist(), verdict.weights, strict=True):
        exact = f" = {weight}" if len(str(weight)) <= SHORT else ""
        lines.append(f"{i + 1:8d}  {text_of(labels[i]):>10}  {float(weight):.6g}{exact}")
    signs = ", and so does weight x sign" if verdict.bias else ""
    rows = "row" if isinstance(verdict.kernel, Linear) else "feature of a row"
    lines += [
        "",
        f"with -1 and 1 as the signs of the classes, weight x sign x {rows} adds up to exactly 0{signs}:",
        "a separator with every row on its side would make that sum positive",
    ]
    if verdict.radius:
        lines.append(
            f"whatever the hyperplane, the margin of some row is at most -{verdict.radius:.6g} (p = {verdict.p:g})"
        )
    return lines
