"""maxmargin fit --online: a file or a pipe of any length, read once in constant memory, its rows in random order."""

from __future__ import annotations

import time
from collections.abc import Iterable
from math import isinf
from pathlib import Path
from typing import Any

import numpy as np
import typer

from ..estimators.decisions import text_of
from ..estimators.online import OnlineMarginClassifier
from ..io.model_file import save
from ..numerics.files import check_place
from ..readers import DataError
from ..readers.files import DELIMITED, OTHER_THAN_TEXT, check_file, ending
from ..readers.svmlight import STANDARD_INPUT, RowBlock, read_stream, shuffled
from ..readers.table import labels_of
from .display import Progress
from .options import STOPPED, Result, dashed

PARAMETERS = ("C", "algorithm", "fit_intercept", "intercept_scaling", "random_state")


def fit_online(
    data: Path, output: Path, n_features: int | None, classes: str | None, given: dict[str, Any], quiet: bool
) -> Result:
    """Learn from every row once, and write the model.

    Ctrl-C, and a line that cannot be read, end the stream; the model of the rows before is written.

    Parameters
    ----------
    data : Path
        Of a file or a pipe; - is standard input.
    output : Path
    n_features : int or None
        ``--n-features``, which a stream needs.
    classes : str or None
        ``--classes``.
    given : dict
        Parameters of the classifier that the command line sets.
    quiet : bool
    """
    if data != STANDARD_INPUT:
        check_file(data)
    check_place(output, data)
    unused = [name for name in given if name not in PARAMETERS]
    if unused:
        raise DataError(f"{dashed(unused[0])} does not apply with --online; leave one of them out.")
    if ending(data) in (*OTHER_THAN_TEXT, *DELIMITED):
        raise DataError(f"{data}: --online reads svmlight text; convert the data, or leave out --online.")
    if n_features is None:
        raise DataError("--online needs the number of columns: give --n-features.")
    model, begin = OnlineMarginClassifier(**given), time.perf_counter()
    with Progress(quiet=quiet):
        # more entries mix longer runs of a label and cost memory: these are 100 MB
        rows = shuffled(
            read_stream(data, n_features), 8_000_000, np.random.default_rng(given.get("random_state"))
        )
        stopped = _learn(model, rows, _labels(classes))
    seconds = time.perf_counter() - begin
    save(model, output)
    if stopped:
        typer.echo(
            f"maxmargin: {stopped.rstrip('.')}; the model was learnt from {model.n_seen_} rows.", err=True
        )
    facts = _facts(model)
    end = ", stopped before the end" if stopped else ""
    lines = [f"{model.n_seen_} rows in {seconds:.3g} s{end}: {output}"]
    lines += [_line(model, problem) for problem in facts["problems"]]
    facts |= {"stopped": stopped, "seconds": seconds, "model": output}
    return Result(facts, lines, STOPPED if stopped else 0)


def _learn(model: Any, rows: Iterable[RowBlock], classes: np.ndarray | None) -> str | None:
    """Learn all rows; return the reason why they ended early, None at the end of the data.

    What stops it before any row is learnt is raised.
    """
    try:
        for X, y, first_index in rows:
            if y.dtype.kind == "f":
                raise DataError("the labels are fractions, not classes; number the classes.")
            model.source_ = {"label": None, "first_index": first_index}
            classes = np.unique(y) if classes is None else classes
            try:
                model.partial_fit(X, y, classes)
            except ValueError as error:
                raise DataError(f"{error} All classes: --classes.") from None
    except (DataError, KeyboardInterrupt) as error:
        if not hasattr(model, "n_seen_"):
            raise
        return str(error) or "Ctrl-C"
    return None


def _labels(names: str | None) -> np.ndarray | None:
    """Return the classes of ``--classes``."""
    if names is None:
        return None
    classes = labels_of([word for word in names.split(",") if word.strip()])
    if classes.dtype.kind != "i":
        raise DataError(f"--classes takes whole numbers, as in -1,1; got {names}.")
    return classes


def _facts(model: Any) -> dict[str, Any]:
    """Return a stream's model as plain values: one problem a class, of two classes one for the second."""
    labels = list(model.classes_)
    numbers = {"mistakes": model.mistakes_, "updates": model.updates_, **model.bounds_._asdict()}
    problems = [
        {"class": label} | {name: values[k].item() for name, values in numbers.items()}
        for k, label in enumerate(labels if len(labels) > 2 else labels[1:])
    ]
    features = int(model.coef_.shape[1])
    return {"rows": model.n_seen_, "features": features, "classes": labels, "problems": problems}


def _line(model: Any, problem: dict[str, Any]) -> str:
    quantity = "margin" if isinf(model.C) else "objective"
    name = "" if len(model.mistakes_) == 1 else f"{text_of(problem['class'])}: "
    return (
        f"{name}{problem['mistakes']} mistakes during the pass, {problem['updates']} updates; "
        f"{problem['lower']:.6g} <= best {quantity} <= {problem['upper']:.6g}"
    )
