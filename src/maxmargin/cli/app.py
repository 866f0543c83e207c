"""The application of all commands. Their modules import only typer, so that help is fast."""

from __future__ import annotations

import os
import sys
from typing import Annotated

import typer
from typer import Option

from .. import __version__
from .cache import cache
from .certificate import certificate
from .compare import compare
from .demo import demo
from .export import export, import_model
from .fit import fit
from .models import check, predict, report
from .select import select
from .separate import separate

app = typer.Typer(
    epilog="Exit codes: 0 done; 2 wrong input or a failed check; 3 gap above the tolerance, or undecided; 130 Ctrl-C.",
    add_completion=False,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
)
for command in (fit, predict, check, report, certificate, compare, select, separate, export, demo, cache):
    app.command()(command)
app.command("import")(import_model)


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


def main() -> None:
    """Run the command that the arguments of the process name."""
    if sys.stderr is None:  # closed: `print` to None would write to standard output
        sys.stderr = open(os.devnull, "w", encoding="utf-8")  # noqa: SIM115  for the rest of the process
    app()
