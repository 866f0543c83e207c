"""maxmargin check: recompute a model's certificate from its data."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
from typer import Argument

from .options import ALL_COLUMNS, STOPPED, AsJson, ColumnOptions, Model, Result, command, json_text


@command()
def check(
    model: Model,
    data: Annotated[Path, Argument(help="The data that it was fitted to.")],
    columns: ColumnOptions = ALL_COLUMNS,
    as_json: AsJson = False,
) -> Result:
    """Recompute every bound of a model from the data; exit code 2 if one does not hold, and which.

    The proof that a hard margin has no separator is rechecked in rational numbers. Exit code 3 if all bounds hold, but
    are farther apart than the tolerance of the fit, or there is no separator, or nothing is proved.
    """
    from ..certificates.certificate import CertificateError
    from ..certificates.verification import verify, verify_verdicts
    from .data import read_certified
    from .words import bound_lines, fit_facts, is_inseparable, nothing_proved

    fitted, table = read_certified(model, data, columns, "a certificate")
    try:
        certificate = verify(fitted, table.X, table.y)
        verify_verdicts(fitted, table.X, table.y)
    except CertificateError as error:
        if as_json:
            typer.echo(json_text({"verified": False, "reason": str(error)}))
        raise
    unproved, inseparable = nothing_proved(fitted, certificate), is_inseparable(fitted)
    certified = unproved is None and certificate.gap <= fitted.tol
    proof = ", and so does the proof that there is no separator" if inseparable else ""
    holds = f"verified: recomputed from the {table.X.shape[0]} rows of {data}, every bound holds{proof}"
    lines = [unproved or holds, *bound_lines(fitted, table.y, certificate)]
    if unproved is None and not certified and not inseparable:
        lines.append(f"the gap is above the tolerance of the fit, {fitted.tol:g}")
    reason = {} if unproved is None else {"reason": unproved}
    facts = {"verified": unproved is None, **reason, **fit_facts(fitted, certificate, table.feature_names)}
    return Result(facts, lines, 0 if certified else STOPPED)
