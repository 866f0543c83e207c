"""The commands, put together. Their modules import only typer; the rest is loaded when it is needed."""

from __future__ import annotations

import typer

from .check import check
from .demo import demo
from .fit import fit
from .predict import predict

app = typer.Typer(
    help="Maximum-margin classification with a proof.",
    epilog="Exit codes: 0 certified, 3 stopped before the tolerance, 2 bad input or a failed check.",
    add_completion=False,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
)
for command in (fit, predict, check, demo):
    app.command()(command)


def main() -> None:
    """Run the command that the shell asks for."""
    app()
