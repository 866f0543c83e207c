"""maxmargin check: recompute a model's certificate from its data."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
from typer import Argument

from .options import STOPPED, AsJson, Drop, Label, Model, Use, errors_in_one_sentence


def check(
    model: Model,
    data: Annotated[Path, Argument(help="The data that it was fitted to.")],
    label: Label = None,
    columns: Use = None,
    drop: Drop = None,
    as_json: AsJson = False,
) -> None:
    """Recompute every bound of a model from the data; exit code 2 if one does not hold, and which.

    The proof that a hard margin has no separator is rechecked in rational numbers. Exit code 3 if all bounds hold, but
    are farther apart than the tolerance of the fit, or there is no separator, or nothing is proved.
    """
    with errors_in_one_sentence():
        from ..certificates.certificate import CertificateError
        from ..certificates.verification import verify, verify_verdicts
        from .data import ColumnOptions, read_certified
        from .words import bound_lines, fit_facts, is_inseparable, json_text, nothing_proved

        fitted, table = read_certified(model, data, ColumnOptions(label, columns, drop), "a certificate")
        try:
            certificate = verify(fitted, table.X, table.y)
            verify_verdicts(fitted, table.X, table.y)
        except CertificateError as error:
            if as_json:
                typer.echo(json_text({"verified": False, "reason": str(error)}))
            raise
        unproved = nothing_proved(fitted, certificate)
        within_tolerance = unproved is None and certificate.gap <= fitted.tol
        if as_json:
            reason = {} if unproved is None else {"reason": unproved}
            facts = fit_facts(fitted, certificate, table.feature_names)
            typer.echo(json_text({"verified": unproved is None, **reason, **facts}))
        else:
            proof = ", and so does the proof that there is no separator" if is_inseparable(fitted) else ""
            typer.echo(
                unproved
                or f"verified: recomputed from the {table.X.shape[0]} rows of {data}, every bound holds{proof}"
            )
            for line in bound_lines(fitted, table.y, certificate):
                typer.echo(line)
            if not within_tolerance and unproved is None and not is_inseparable(fitted):
                typer.echo(f"the gap is above the tolerance of the fit, {fitted.tol:g}")
    if not within_tolerance:
        raise typer.Exit(STOPPED)
