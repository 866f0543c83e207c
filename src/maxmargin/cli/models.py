"""maxmargin predict, check and report: commands on a model that `maxmargin fit` wrote."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import typer

from .options import BAD_INPUT, STOPPED, ColumnOptions, Result, command, json_text
from .predictions import Predictions
from .refusals import as_typed


@command()
def predict(
    model: Path,
    data: Path,
    *,
    output: Path | None = None,
    scores: bool = False,
    columns: ColumnOptions,
    as_json: bool = False,
) -> None:
    """Write the predicted class of each row, one per line or as JSON.

    If the data have labels, the accuracy is printed on standard error. Data that do not fit in memory are read once,
    block by block, and predictions are written as they are made.

    Parameters
    ----------
    data : Path
        Rows to classify; labels are not needed in .csv, .npz, .parquet and .arrow.
    output : Path
        File to write; by default standard output.
    scores : bool
        Write the score, or the score of every class, after each label, separated by tabs.
    """
    from ..estimators.decisions import text_of
    from ..numerics.files import check_place
    from ..readers.table import TooLargeError
    from .data import read_model_and_data
    from .display import Progress

    if output is not None:
        check_place(output, model, data)
    try:
        with Progress():
            fitted, table = read_model_and_data(model, data, columns)
            predicted, values = _predicted(fitted, table.X, scores)
    except TooLargeError:
        _predict_in_blocks(model, data, output, scores, columns, as_json)
        return
    labels = [text_of(name) for name in predicted]
    with _written(output) as write, Predictions(write, as_json) as writer:
        writer.add(labels, predicted, values)
    if table.y is not None:
        truth, classes = [text_of(name) for name in table.y], [text_of(name) for name in fitted.classes_]
        right = sum(one == two for one, two in zip(labels, truth, strict=True))
        _print_accuracy(right, len(truth), not set(truth).isdisjoint(classes))


def _predict_in_blocks(
    model: Path, data: Path, output: Path | None, scores: bool, columns: ColumnOptions, as_json: bool
) -> None:
    """Predict the rows of data that exceed the memory, in one pass; arguments as of `predict`."""
    from ..estimators.decisions import text_of
    from ..estimators.files.prediction import Agreement
    from .data import model_and_rows
    from .display import Progress

    fitted, rows = model_and_rows(model, data, columns)
    agreement = Agreement(fitted.classes_)
    # a terminal shows either progress or predictions
    with Progress(quiet=output is None and sys.stdout.isatty()), _written(output) as write:
        with Predictions(write, as_json) as writer:
            for X, numbers in rows.blocks():
                predicted, values = _predicted(fitted, X, scores)
                writer.add([text_of(name) for name in predicted], predicted, values)
                if numbers is not None:
                    agreement.add(numbers, predicted)
        found = agreement.counts(rows.labels()) if rows.has_labels else None
    if found is not None:
        _print_accuracy(*found)


def _predicted(fitted: Any, X: Any, scores: bool) -> tuple[Any, Any]:
    """Return the predicted classes of rows, and their scores, or None in place of these."""
    from ..estimators.prediction import labels_and_scores

    return labels_and_scores(fitted, X) if scores else (fitted.predict(X), None)


@contextmanager
def _written(output: Path | None) -> Iterator[Callable[[str], Any]]:
    """Return the function that writes text to a file, which appears whole or not at all, or to standard output."""
    from ..numerics.files import written_whole

    if output is None:
        yield partial(typer.echo, nl=False)
        return
    with written_whole(output) as file:
        yield lambda text: file.write(text.encode())


def _print_accuracy(right: int, total: int, known: bool) -> None:
    """Print the accuracy on standard error; `known` is whether a label of the data is a class of the model."""
    accuracy = f"{right / total:.6g} ({right} of {total} rows)"
    accuracy = accuracy if known else "unknown: no label of the data is a class of the model"
    typer.echo(f"accuracy {accuracy}", err=True)


@command()
def check(model: Path, data: Path, *, columns: ColumnOptions, as_json: bool = False) -> Result:
    """Recompute every bound of a model from the data.

    The proof that a hard margin has no separator is rechecked in rational numbers. Exit code 2 if a bound does not
    hold; the message names it. Exit code 3 if all bounds hold, but the gap is above the tolerance of the fit, if there
    is no separator, or if nothing is proved.

    Parameters
    ----------
    data : Path
        The data of the fit.
    """
    from ..certificates.certificate import CertificateError
    from ..certificates.verification import verify, verify_verdicts
    from ..readers.table import TooLargeError
    from .data import read_certified
    from .display import Progress
    from .words import bound_lines, fit_facts, is_inseparable, message, nothing_proved

    try:
        with Progress():
            try:
                fitted, table = read_certified(model, data, columns, "a check")
            except TooLargeError:
                fitted, table, certificate = _check_in_passes(model, data, columns)
            else:
                certificate = verify(fitted, table.X, table.y)
                verify_verdicts(fitted, table.X, table.y)
    except CertificateError as error:
        if as_json:
            typer.echo(json_text({"verified": False, "reason": as_typed(str(error), ())}))
        raise
    unproved, inseparable = nothing_proved(fitted, certificate), is_inseparable(fitted)
    certified = unproved is None and certificate.gap <= fitted.tol
    proof = ", and so does the proof that there is no separator" if inseparable else ""
    holds = f"verified: recomputed from the {table.X.shape[0]} rows of {data}, every bound holds{proof}"
    lines = [unproved or holds, *bound_lines(fitted, table.y, certificate)]
    if unproved is None and not certified and not inseparable:
        lines += [f"the gap is above the tolerance of the fit, {fitted.tol:g}", message(fitted, table)]
    reason = {} if unproved is None else {"reason": unproved}
    facts = {"verified": unproved is None, **reason, **fit_facts(fitted, certificate, table.feature_names)}
    return Result(facts, lines, 0 if certified else STOPPED)


def _check_in_passes(model: Path, data: Path, columns: ColumnOptions) -> tuple[Any, Any, Any]:
    """Return a model, its data as `stored_table`, and its recomputed certificate, where the data exceed the memory."""
    from ..inspection.verification import require_linear_certificate, verify_stored
    from ..io.model_file import load
    from ..readers import names_columns
    from .data import columns_of_model, stored_rows, stored_table

    fitted: Any = load(model)
    require_linear_certificate(fitted)  # before a cache of the data is written
    columns = columns.with_defaults(getattr(fitted, "source_", {}))
    named = names_columns(data, **columns.layout())
    width = None if named else fitted.n_features_in_
    if named and hasattr(fitted, "feature_names_in_") and not columns.use:
        columns = columns_of_model(fitted.feature_names_in_, data, columns)
    stored = stored_rows(data, width, columns, fitted.cache_dir)
    return fitted, stored_table(stored), verify_stored(fitted, stored)


@command()
def report(
    model: Path,
    data: Path,
    *,
    output: Path = Path("report.html"),
    name: str | None = None,
    top: int = 10,
    columns: ColumnOptions,
    as_json: bool = False,
    quiet: bool = False,
) -> Result:
    """Write a self-contained HTML page: verdict, rechecked certificate, pictures, largest dual variables and weights.

    The page is written whenever the data have the features of the model, and states the result of the check. Exit code
    2 if a bound does not hold on the data of the fit, 3 if the gap is above the tolerance of the fit, or if nothing is
    proved.

    Parameters
    ----------
    data : Path
        The data of the fit, or other data with labels.
    output : Path
        The page to write, as .html.
    name : str
        Name of the data on the page; by default the name of their file.
    top : int
        Maximum number of rows and of features in a table.
    """
    from ..numerics.files import check_place

    if top < 1:
        raise ValueError(f"--top must be a whole number of at least 1; got {top}.")
    check_place(output, model, data)
    # a device or a pipe takes anything
    if output.suffix.lower() not in (".html", ".htm") and (output.is_file() or not output.exists()):
        raise ValueError(f"{output}: a report is an HTML page; name a file that ends in .html.")

    from ..plots.style import new_figure
    from .data import read_certified
    from .display import Progress
    from .words import message, nothing_proved

    new_figure((1.0, 1.0))  # a missing matplotlib is reported before the work
    with Progress(quiet=quiet):
        fitted, table = read_certified(model, data, columns, "a report")

        from ..report.page import write_report
        from ..report.subject import Outcome

        names = table.feature_names
        if names is None and table.first_index is not None:
            names = [f"feature {j + table.first_index}" for j in range(table.X.shape[1])]
        title = name or data.name
        found = write_report(fitted, table.X, table.y, output, feature_names=names, name=title, top=top)
    gap = float(found.certificate.gap)
    facts = {"report": str(output), "outcome": found.outcome.value, "reason": found.words or None}
    facts |= {"status": fitted.status_.value, "gap": gap, "tol": fitted.tol}
    # of several classes, nothing may be proved about some though the others hold
    holds = f"verified: recomputed from the {table.X.shape[0]} rows of {data}, every bound holds"
    sentence = nothing_proved(fitted, found.certificate) or holds
    if found.outcome is Outcome.OTHER_DATA:
        sentence = f"not verified: the data are not those of the fit ({found.words})"
    if found.outcome is Outcome.FAILS:
        sentence = f"the certificate does not hold: {found.words}"
    code = BAD_INPUT if found.outcome is Outcome.FAILS else 0 if gap <= fitted.tol else STOPPED
    reason = [message(fitted, table)] if code == STOPPED else []
    return Result(facts, [f"report: {output}", sentence, *reason], code)
