"""maxmargin report: one page about a model and its data."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
from typer import Argument, Option

from .options import BAD_INPUT, STOPPED, AsJson, Drop, Label, Model, Quiet, Use, errors_in_one_sentence

PAGES = (".html", ".htm")


def report(
    model: Model,
    data: Annotated[Path, Argument(help="The data that it was fitted to, or others with labels.")],
    output: Annotated[Path, Option("--output", "-o", help="Where to write the page, as .html.")] = Path(
        "report.html"
    ),
    name: Annotated[str | None, Option(help="What the data are called; else as their file.")] = None,
    top: Annotated[int, Option(help="Rows and features that tables have at most.")] = 10,
    label: Label = None,
    columns: Use = None,
    drop: Drop = None,
    as_json: AsJson = False,
    quiet: Quiet = False,
) -> None:
    """Write one page that stands by itself: verdict, certificate rechecked, pictures, decisive rows and features.

    The page is written in any case that data fit the model, and says what was found. Exit code 2 if a bound does not
    hold on the data of the fit, 3 if the bounds are farther apart than the tolerance of the fit, or nothing is proved.
    """
    with errors_in_one_sentence():
        from ..numerics.files import check_place

        check_place(output, model, data)
        # a device or a pipe takes anything
        if output.suffix.lower() not in PAGES and (output.is_file() or not output.exists()):
            raise ValueError(
                f"{output}: a report is a page of HTML, for a browser, which can print it to PDF; name a file that "
                f"ends in {PAGES[0]}."
            )

        from .data import ColumnOptions, read_certified
        from .display import new_figure
        from .words import json_text, nothing_proved

        new_figure((1.0, 1.0))  # a missing matplotlib is reported before the work
        fitted, table = read_certified(model, data, ColumnOptions(label, columns, drop), "a report")

        from ..report import Outcome, write_report  # needs matplotlib

        rows, names = table.X.shape[0], table.feature_names
        if names is None and table.first_index is not None:
            names = [f"feature {j + table.first_index}" for j in range(table.X.shape[1])]
        found = write_report(
            fitted, table.X, table.y, output, feature_names=names, name=name or data.name, top=top
        )
        gap = float(found.certificate.gap)
        if as_json:
            facts = {"report": str(output), "outcome": found.outcome.value, "reason": found.words or None}
            typer.echo(json_text({**facts, "status": fitted.status_.value, "gap": gap, "tol": fitted.tol}))
        elif not quiet:
            unproved = nothing_proved(fitted, found.certificate)
            holds = f"verified: recomputed from the {rows} rows of {data}, every bound holds"
            sentences = {
                Outcome.NOTHING_PROVED: unproved,
                Outcome.HOLDS: unproved or holds,  # of several classes, nothing may be proved about some
                Outcome.OTHER_DATA: f"not verified: these are other data than those of the fit ({found.words})",
                Outcome.FAILS: f"the certificate does not hold: {found.words}",
            }
            typer.echo(f"report: {output}\n{sentences[found.outcome]}")
    if found.outcome is Outcome.FAILS:
        raise typer.Exit(BAD_INPUT)
    if not gap <= fitted.tol:
        raise typer.Exit(STOPPED)
