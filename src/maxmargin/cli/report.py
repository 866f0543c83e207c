"""maxmargin report: one page about a model and its data."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
from typer import Argument, Option

from .exits import BAD, STOPPED, one_sentence
from .options import AsJson, Drop, Label, Selection, Use

PAGES = (".html", ".htm")


def report(
    model: Annotated[Path, Argument(help="A file that `maxmargin fit` wrote.")],
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
    quiet: Annotated[bool, Option("--quiet", "-q", help="Nothing is printed.")] = False,
) -> None:
    """Write one page that stands by itself: verdict, certificate rechecked, pictures, decisive rows and features.

    The page is written in any case that data fit the model, and says what was found. Exit code 2 if a bound does not
    hold on the data of the fit, 3 if the bounds are farther apart than the tolerance of the fit, or nothing is proved.
    """
    with one_sentence():
        from ..numerics.files import check_place
        from .compare import _figure
        from .stored import certified_and_labelled
        from .summary import as_json as to_json
        from .summary import nothing_proved

        check_place(output, model, data)
        # a device or a pipe takes anything
        if output.suffix.lower() not in PAGES and (output.is_file() or not output.exists()):
            raise ValueError(
                f"{output}: a report is a page of HTML, for a browser, which can print it to PDF; name a file that "
                f"ends in {PAGES[0]}."
            )
        _figure()  # without matplotlib, to be told before the work
        fitted, table = certified_and_labelled(model, data, Selection(label, columns, drop), "a report")

        from ..report import Outcome, write_report

        rows, names = table.X.shape[0], table.feature_names
        if names is None and table.first_index is not None:
            names = [f"feature {j + table.first_index}" for j in range(table.X.shape[1])]
        found = write_report(
            fitted, table.X, table.y, output, feature_names=names, name=name or data.name, top=top
        )
        gap = float(found.certificate.gap)
        if as_json:
            facts = {"report": str(output), "outcome": found.outcome.value, "reason": found.words or None}
            typer.echo(to_json({**facts, "status": fitted.status_.value, "gap": gap, "tol": fitted.tol}))
        elif not quiet:
            typer.echo(f"report: {output}")
            typer.echo(
                {
                    Outcome.NOTHING_PROVED: nothing_proved(fitted, found.certificate),
                    Outcome.HOLDS: nothing_proved(fitted, found.certificate)
                    or f"verified: recomputed from the {rows} rows of {data}, every bound holds",
                    Outcome.OTHER_DATA: f"not verified: these are other data than those of the fit ({found.words})",
                    Outcome.FAILS: f"the certificate does not hold: {found.words}",
                }[found.outcome]
            )
    if found.outcome is Outcome.FAILS:
        raise typer.Exit(BAD)
    if gap > fitted.tol:
        raise typer.Exit(STOPPED)
