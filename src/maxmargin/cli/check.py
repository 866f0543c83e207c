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
    are farther apart than the tolerance of the fit, or there is no separator, or nothing is proved.
    """
    with one_sentence():
        from ..certificates.bounds import CertificateError
        from ..certificates.verification import verify, verify_verdicts
        from .separability import in_all_words, inseparable
        from .stored import certified_and_labelled
        from .summary import as_json as to_json
        from .summary import nothing_proved, summary

        which = Selection(label, columns, drop)
        fitted, table = certified_and_labelled(model, data, which, "a certificate")
        try:
            certificate = verify(fitted, table.X, table.y)
            verify_verdicts(fitted, table.X, table.y)
        except CertificateError as error:
            if as_json:
                typer.echo(to_json({"verified": False, "reason": str(error)}))
            raise
        unproved = nothing_proved(fitted, certificate)
        if as_json:
            facts = summary(fitted, certificate, table.feature_names)
            reason = {} if unproved is None else {"reason": unproved}
            typer.echo(to_json({"verified": unproved is None, **reason, **facts}))
        else:
            proof = ", and so does the proof that there is no separator" if inseparable(fitted) else ""
            typer.echo(
                unproved
                or f"verified: recomputed from the {table.X.shape[0]} rows of {data}, every bound holds{proof}"
            )
            for words in in_all_words(fitted, table.y, certificate):
                typer.echo(words)
        if unproved or certificate.gap > fitted.tol:
            if not as_json and not unproved and not inseparable(fitted):
                typer.echo(f"the gap is above the tolerance of the fit, {fitted.tol:g}")
            raise typer.Exit(STOPPED)
