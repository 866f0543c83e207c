"""maxmargin predict, check and report: commands on a model that `maxmargin fit` wrote."""

from __future__ import annotations

import json
import sys
from collections import Counter
from contextlib import nullcontext
from pathlib import Path
from typing import Any

from .options import BAD_INPUT, STOPPED, Result, json_text


def predict(
    model: Path,
    data: Path,
    *,
    output: Path | None = None,
    scores: bool = False,
    columns: Any,
    as_json: bool = False,
) -> None:
    """Write the predicted class of each row on a line, or as a JSON object.

    If the data have labels, the accuracy is printed on standard error. Data are read block by block, and
    predictions are written as they are made.
    """
    from ..estimators.decisions import text_of
    from ..numerics.files import check_place, faults_of, written_whole
    from ..readers import DataError
    from .data import model_and_blocks
    from .display import Progress

    if output is not None:
        check_place(output, model, data)
    fitted, blocks, classes = model_and_blocks(model, data, columns)
    pairs = Counter[tuple[int, str]]()  # numbers of labels, and the class that is predicted
    # a terminal shows either progress or predictions
    whole = nullcontext() if output is None else written_whole(output)
    with Progress(quiet=output is None and sys.stdout.isatty()), whole as file:
        for X, numbers in blocks:
            text, predicted = _predictions(fitted, X, scores, as_json)
            print(text, end="") if file is None else file.write(text.encode())
            if numbers is not None:
                pairs.update(zip(numbers.tolist(), map(text_of, predicted), strict=True))
    if pairs:
        with faults_of(data, DataError):
            labels, places = classes.sorted()
        truth = [text_of(label) for label in labels[places]]
        right = sum(count for (number, name), count in pairs.items() if truth[number] == name)
        accuracy = f"{right / pairs.total():.6g} ({right} of {pairs.total()} rows)"
        if {*truth}.isdisjoint(map(text_of, fitted.classes_)):
            accuracy = "unknown: no label of the data is a class of the model"
        print(f"accuracy {accuracy}", file=sys.stderr)


def _predictions(fitted: Any, X: Any, scores: bool, as_json: bool) -> tuple[str, Any]:
    """Return a line of text for each row, and the predicted classes."""
    from ..estimators.decisions import text_of

    predicted, values = fitted.predict(X), fitted.decision_function(X) if scores else None
    if as_json:
        columns = {"label": predicted.tolist()} | ({} if values is None else {"score": values.tolist()})
        lines = [
            json.dumps(dict(zip(columns, row, strict=True))) for row in zip(*columns.values(), strict=True)
        ]
    else:
        lines = [text_of(name) for name in predicted]
        if values is not None:
            rows = values.reshape(len(lines), -1).tolist()
            lines = ["\t".join([label, *map(repr, row)]) for label, row in zip(lines, rows, strict=True)]
    return "".join(f"{line}\n" for line in lines), predicted


def check(
    model: Path, data: Path, *, proof: Path | None = None, columns: Any, as_json: bool = False
) -> Result:
    """Recompute every bound of a model from the data of its fit.

    The proof that a hard margin has no separator is rechecked in rational numbers. Exit code 2 if a bound does not
    hold; the message names it. Exit code 3 if all bounds hold, but the gap is above the tolerance of the fit, if
    there is no separator, or if nothing is proved.
    """
    from ..certificates.certificate import CertificateError
    from ..certificates.verification import verify
    from ..numerics.files import check_place
    from ..readers.table import TooLargeError
    from .data import read_certified
    from .display import Progress
    from .words import bound_lines, fit_facts, is_inseparable, nothing_proved

    if proof is not None:
        check_place(proof, model, data)
    try:
        with Progress():
            try:
                fitted, table = read_certified(model, data, columns, "a check")
            except TooLargeError:
                if proof is not None:
                    raise
                fitted, table, certificate = _check_in_passes(model, data, columns)
            else:
                certificate = verify(fitted, table.X, table.y)
    except CertificateError as error:
        if as_json:
            print(json_text({"verified": False, "reason": str(error)}))
        raise
    unproved, inseparable = nothing_proved(fitted, certificate), is_inseparable(fitted)
    certified = unproved is None and certificate.gap <= fitted.tol
    also = ", and so does the proof that there is no separator" if inseparable else ""
    holds = f"verified: recomputed from the {table.X.shape[0]} rows of {data}, every bound holds{also}"
    lines = [unproved or holds, *bound_lines(fitted, table.label, certificate)]
    if unproved is None and not certified and not inseparable:
        lines += [f"the gap is above the tolerance of the fit, {fitted.tol:g}", fitted.message_]
    facts = {"verified": unproved is None, "reason": unproved}
    facts |= fit_facts(fitted, certificate, table.feature_names)
    if proof is not None:
        from ..io.certificate_file import write_certificate

        exact = write_certificate(
            proof, fitted, table.X, table.y, feature_names=table.feature_names, label=table.label_name,
            first_index=table.first_index,
        )  # fmt: skip
        facts |= {"proof": proof, "exact_bounds": [list(pair) for pair in exact]}
        lines.append(f"proof: {proof}")
    return Result(facts, lines, 0 if certified else STOPPED)


def _check_in_passes(model: Path, data: Path, columns: Any) -> tuple[Any, Any, Any]:
    """Return a model, its rows on disk, and its recomputed certificate, where the data exceed the memory."""
    from ..inspection.passes import require_linear_certificate, verify_stored
    from ..io.model_file import load
    from ..readers.table import expected_of
    from .data import stored_rows

    fitted: Any = load(model)
    require_linear_certificate(fitted)  # before a cache of the data is written
    expected = expected_of(fitted, columns)
    stored = stored_rows(data, expected.n_features, expected, fitted.cache_dir)
    return fitted, stored, verify_stored(fitted, stored)


def report(
    model: Path,
    data: Path,
    *,
    output: Path = Path("report.html"),
    columns: Any,
) -> Result:
    """Write a self-contained HTML page: verdict, rechecked certificate, pictures, largest dual variables and weights.

    It is written whenever the data have the features of the model, and states the result of the check. Exit code 2
    if a bound does not hold on the data of the fit, 3 if the gap is above the tolerance of the fit, or if nothing
    is proved.
    """
    from ..numerics.files import check_place

    check_place(output, model, data)

    from .data import read_certified
    from .display import Progress
    from .words import nothing_proved

    with Progress():
        fitted, table = read_certified(model, data, columns, "a report")

        from ..report import Outcome, write_report

        names = table.feature_names
        if names is None and table.first_index is not None:
            names = [f"feature {j + table.first_index}" for j in range(table.X.shape[1])]
        found = write_report(fitted, table.X, table.y, output, feature_names=names, name=data.name)
    gap = float(found.certificate.gap)
    facts = {"report": output, "outcome": found.outcome.value, "reason": found.words or None}
    facts |= {"status": fitted.status_.value, "gap": gap, "tol": fitted.tol}
    # of several classes, nothing may be proved about some though the others hold
    holds = f"verified: recomputed from the {table.X.shape[0]} rows of {data}, every bound holds"
    sentence = nothing_proved(fitted, found.certificate) or holds
    if found.outcome is Outcome.OTHER_DATA:
        sentence = f"not verified: the data are not those of the fit ({found.words})"
    if found.outcome is Outcome.FAILS:
        sentence = f"the certificate does not hold: {found.words}"
    code = BAD_INPUT if found.outcome is Outcome.FAILS else 0 if gap <= fitted.tol else STOPPED
    reason = [fitted.message_] if code == STOPPED else []
    return Result(facts, [f"report: {output}", sentence, *reason], code)
