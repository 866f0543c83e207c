"""maxmargin report: one page about a model and its data."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from typer import Argument, Option

from .options import ALL_COLUMNS, BAD_INPUT, STOPPED, AsJson, ColumnOptions, Model, Quiet, Result, command

PAGES = (".html", ".htm")


@command()
def report(
    model: Model,
    data: Annotated[Path, Argument(help="The data that it was fitted to, or others with labels.")],
    output: Annotated[Path, Option("--output", "-o", help="Where to write the page, as .html.")] = Path(
        "report.html"
    ),
    name: Annotated[str | None, Option(help="What the data are called; else as their file.")] = None,
    top: Annotated[int, Option(help="Rows and features that tables have at most.")] = 10,
    columns: ColumnOptions = ALL_COLUMNS,
    as_json: AsJson = False,
    quiet: Quiet = False,
) -> Result:
    """Write one page that stands by itself: verdict, certificate rechecked, pictures, decisive rows and features.

    The page is written in any case that data fit the model, and says what was found. Exit code 2 if a bound does not
    hold on the data of the fit, 3 if the bounds are farther apart than the tolerance of the fit, or nothing is proved.
    """
    from ..numerics.files import check_place

    check_place(output, model, data)
    # a device or a pipe takes anything
    if output.suffix.lower() not in PAGES and (output.is_file() or not output.exists()):
        raise ValueError(
            f"{output}: a report is a page of HTML, for a browser, which can print it to PDF; name a file that "
            f"ends in {PAGES[0]}."
        )

    from ..plots.style import new_figure
    from .data import read_certified
    from .words import nothing_proved

    new_figure((1.0, 1.0))  # a missing matplotlib is reported before the work
    fitted, table = read_certified(model, data, columns, "a report")

    from ..report.page import write_report
    from ..report.subject import Outcome

    names = table.feature_names
    if names is None and table.first_index is not None:
        names = [f"feature {j + table.first_index}" for j in range(table.X.shape[1])]
    found = write_report(
        fitted, table.X, table.y, output, feature_names=names, name=name or data.name, top=top
    )
    gap = float(found.certificate.gap)
    facts = {"report": str(output), "outcome": found.outcome.value, "reason": found.words or None}
    facts |= {"status": fitted.status_.value, "gap": gap, "tol": fitted.tol}
    unproved = nothing_proved(fitted, found.certificate)
    sentences = {
        Outcome.NOTHING_PROVED: unproved,
        # of several classes, nothing may be proved about some
        Outcome.HOLDS: unproved
        or f"verified: recomputed from the {table.X.shape[0]} rows of {data}, every bound holds",
        Outcome.OTHER_DATA: f"not verified: these are other data than those of the fit ({found.words})",
        Outcome.FAILS: f"the certificate does not hold: {found.words}",
    }
    code = BAD_INPUT if found.outcome is Outcome.FAILS else 0 if gap <= fitted.tol else STOPPED
    return Result(facts, [f"report: {output}", str(sentences[found.outcome])], code)
