"""maxmargin compare: algorithms on the same data, side by side."""

from __future__ import annotations

from math import isinf
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from typer import Option

from .exits import STOPPED, one_sentence
from .options import (
    AsJson,
    ClassWeight,
    Columns,
    Cost,
    Data,
    Drop,
    FitIntercept,
    Intercept,
    InterceptScaling,
    Label,
    Loss,
    NormPower,
    P,
    Seed,
    Selection,
    Use,
    picture_kind,
)

if TYPE_CHECKING:
    from ..inspection.compare import Comparison


def compare(
    data: Data,
    algorithms: Annotated[
        str | None, Option(help="Names with commas between, as dcd,mpu,pumma; all, if left out.")
    ] = None,
    C: Cost = 1.0,
    loss: Loss = "squared_hinge",
    p: P = 2,
    norm_power: NormPower = 2,
    tol: Annotated[float, Option(help="Certified relative gap at which an algorithm ends.")] = 1e-3,
    fit_intercept: FitIntercept = True,
    intercept: Intercept = "free",
    intercept_scaling: InterceptScaling = 1.0,
    class_weight: ClassWeight = None,
    max_iter: Annotated[int, Option(help="Most rounds of each algorithm.")] = 1000,
    max_time: Annotated[float | None, Option(help="Seconds that each algorithm may take.")] = None,
    seed: Seed = None,
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
) -> None:
    """Run algorithms on the same problem, data and seed, and set what they reach against each other.

    Those that do not solve the problem are listed with the reason. Ctrl-C ends the comparison with what is known.
    Exit code 3 if an algorithm stopped before the tolerance.
    """
    with one_sentence():
        from ..numerics.files import check_place
        from .labelled import check_options, read_labelled, refuse_rounded

        kind, figure = None, None
        if csv is not None:
            check_place(csv, data)
        if picture is not None:
            check_place(picture, data, *([] if csv is None else [csv]))
            kind, figure = picture_kind(picture), _figure()
            if csv is not None and csv.absolute() == picture.absolute():
                raise ValueError(f"{picture}: --csv and --picture name the same file; give each its own")
        which = Selection(label, columns, drop)
        check_options(data, n_features, which)
        table = read_labelled(data, n_features, which)
        if isinf(C):
            refuse_rounded(data, table)

        from ..inspection.compare import compare as run
        from .progress import Progress
        from .summary import as_json as to_json

        names = None if algorithms is None else [name.strip() for name in algorithms.split(",")]
        with Progress("margin" if isinf(C) else "objective", None, quiet or as_json) as progress:
            found = run(
                table.X,
                table.y,
                names,
                callback=progress,
                random_state=seed,
                C=C,
                loss=loss,
                p=p,
                norm_power=norm_power,
                tol=tol,
                fit_intercept=fit_intercept,
                intercept=intercept,
                intercept_scaling=intercept_scaling,
                class_weight=class_weight,
                max_iter=max_iter,
                max_time=max_time,
            )
        if csv is not None:
            found.to_csv(csv)
        if picture is not None:
            _draw(found, figure, picture, str(kind))
        if as_json:
            facts = _facts(found)
            facts |= {"csv": None if csv is None else str(csv)}
            facts |= {"picture": None if picture is None else str(picture)}
            typer.echo(to_json(facts))
        elif not quiet:
            typer.echo(found.table())
    if not found.certified:
        raise typer.Exit(STOPPED)


def _figure() -> Any:
    """An empty figure that needs no screen."""
    try:
        from matplotlib.figure import Figure
    except ImportError:
        raise ValueError("Pictures need matplotlib: pip install 'maxmargin[plot]'.") from None
    return Figure(figsize=(10.8, 4.6), layout="constrained")


def _draw(found: Comparison, figure: Any, path: Path, kind: str) -> None:
    from ..numerics.files import written_whole

    found.plot(figure.subplots(1, 2))
    with written_whole(path) as file:
        figure.savefig(file, format=kind, dpi=150)


def _facts(found: Comparison) -> dict[str, Any]:
    """The table, as plain values."""
    from dataclasses import fields

    problem = found.problem
    entries = []
    for entry in found.entries:
        facts = {field.name: getattr(entry, field.name) for field in fields(entry) if field.name != "history"}
        facts |= {"status": entry.status.value, "class": facts.pop("label")}
        entries.append(facts)
    return {
        "problem": {name: getattr(problem, name) for name in ("loss", "C", "p", "power", "intercept")},
        "tol": found.tol,
        "algorithms": entries,
        "refused": found.refused,
    }
