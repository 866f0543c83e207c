"""The application of all commands. Their modules import only typer, so that help is fast."""

from __future__ import annotations

from typing import Annotated

import typer
from typer import Option

from .. import __version__
from .compare import compare
from .export import export
from .fit import fit
from .models import check, predict, report
from .separate import separate

app = typer.Typer(
    epilog="Exit codes: 0 done; 2 wrong input or a failed check; 3 gap above the tolerance, or undecided; 130 Ctrl-C.",
    add_completion=False,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
)
for command in (fit, predict, check, report, separate, compare, export):
    app.command()(command)


def _show_version(requested: bool) -> None:
    if requested:
        typer.echo(f"maxmargin {__version__}")
        raise typer.Exit


@app.callback()
def maxmargin(
    version: Annotated[
        bool, Option("--version", help="Show the version and exit.", callback=_show_version, is_eager=True)
    ] = False,
) -> None:
    """Maximum-margin classification with a proof."""
