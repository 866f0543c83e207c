"""maxmargin check: recompute a model's certificate from its data."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
from typer import Argument

from .exits import STOPPED, one_sentence
from .options import AsJson, Drop, Label, Selection, Use


def check(
    model: Annotated[Path, Argument(help="A file that `maxmargin fit` wrote.")],
    data: Annotated[Path, Argument(help="The data that it was fitted to.")],
    label: Label = None,
    columns: Use = None,
    drop: Drop = None,
    as_json: AsJson = False,
) -> None:
    """Recompute every bound of a model from the data; exit code 2 if one does not hold, and which.

    The proof that a hard margin has no separator is rechecked in rational numbers. Exit code 3 if all bounds hold, but
    are farther apart than the tolerance of the fit, or there is no separator.
    """
    with one_sentence():
        from ..certificates import CertificateError
        from ..readers import DataError
        from ..verification import verify, verify_verdicts
        from .separability import inseparable, of_model
        from .stored import model_and_data
        from .summary import as_json as to_json
        from .summary import summary

        fitted, table = model_and_data(model, data, Selection(label, columns, drop))
        if not hasattr(fitted, "certificate_"):
            why = getattr(
                fitted, "uncertified_", "the model of a stream has no certificate, for its rows are gone."
            )
            raise DataError(f"{model}: {why}")
        if table.y is None:
            raise DataError(f"{data}: a certificate is about labels too, and the file holds none.")
        try:
            certificate = verify(fitted, table.X, table.y)
            verify_verdicts(fitted, table.X, table.y)
        except CertificateError as error:
            if as_json:
                typer.echo(to_json({"verified": False, "reason": str(error)}))
            raise
        if as_json:
            typer.echo(to_json({"verified": True, **summary(fitted, certificate, table.feature_names)}))
        else:
            proof = ", and so does the proof that there is no separator" if inseparable(fitted) else ""
            typer.echo(
                f"verified: recomputed from the {len(table.y)} rows of {data}, every bound holds{proof}"
            )
            for words in of_model(fitted, table.y):
                typer.echo(words)
            if not proof or len(fitted.classes_) > 2:
                typer.echo(str(certificate))
        if certificate.gap > fitted.tol:
            if not as_json and not inseparable(fitted):
                typer.echo(f"the gap is above the tolerance of the fit, {fitted.tol:g}")
            raise typer.Exit(STOPPED)
