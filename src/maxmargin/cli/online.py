"""maxmargin fit --online: a file or a pipe of any length, read once in constant memory, its rows in random order."""

from __future__ import annotations

import time
from collections.abc import Iterable
from math import isinf
from pathlib import Path
from typing import Any

import numpy as np

from ..estimators.decisions import text_of
from ..estimators.online import OnlineMarginClassifier
from ..io.model_file import save
from ..numerics.files import check_place
from ..readers import DataError
from ..readers.files import DELIMITED, OTHER_THAN_TEXT, check_file, ending
from ..readers.svmlight import STANDARD_INPUT, RowBlock, read_stream, shuffled
from .display import Progress
from .options import STOPPED, Result, flags_of, note

PARAMETERS = ("C", "algorithm", "fit_intercept", "intercept_scaling", "random_state")


def fit_online(data: Path, output: Path, n_features: int | None, given: dict[str, Any]) -> Result:
    """Learn from every row once, and write the model.

    Ctrl-C, and a line that cannot be read, end the stream; the model of the rows before is written.

    Parameters
    ----------
    data : Path
        Of a file or a pipe; - is standard input.
    output : Path
    n_features : int or None
        ``--n-features``, which a stream needs.
    given : dict
        Parameters of the classifier that the command line sets.
    """
    if data != STANDARD_INPUT:
        check_file(data)
    check_place(output, data)
    unused = [name for name in given if name not in PARAMETERS]
    if unused:
        raise DataError(f"{flags_of(unused[0])[-1]} does not apply with --online; leave one of them out.")
    if ending(data) in (*OTHER_THAN_TEXT, *DELIMITED):
        raise DataError(f"{data}: --online reads svmlight text; convert the data, or leave out --online.")
    if n_features is None:
        raise DataError("--online needs the number of columns: give --n-features.")
    model, begin = OnlineMarginClassifier(**given), time.perf_counter()
    with Progress():
        # more entries mix longer runs of a label and cost memory: these are 100 MB
        rows = shuffled(
            read_stream(data, n_features), 8_000_000, np.random.default_rng(given.get("random_state"))
        )
        stopped = _learn(model, rows)
    seconds = time.perf_counter() - begin
    save(model, output)
    if stopped:
        note(f"{stopped.rstrip('.')}; the model was learnt from {model.n_seen_} rows.")
    end = ", stopped before the end" if stopped else ""
    lines = [f"{model.n_seen_} rows in {seconds:.3g} s{end}: {output}"]
    labels = model.classes_ if len(model.classes_) > 2 else [None]
    lines += [_line(model, k, label) for k, label in enumerate(labels)]
    return Result({}, lines, STOPPED if stopped else 0)


def _learn(model: Any, rows: Iterable[RowBlock]) -> str | None:
    """Learn all rows; return the reason why they ended early, None at the end of the data.

    The classes are those of the first block of rows. What stops it before any row is learnt is raised.
    """
    classes = None
    try:
        for X, y, first_index in rows:
            if y.dtype.kind == "f":
                raise DataError("the labels are fractions, not classes; number the classes.")
            model.source_ = {"label": None, "first_index": first_index}
            classes = np.unique(y) if classes is None else classes
            model.partial_fit(X, y, classes)
    except (DataError, KeyboardInterrupt) as error:
        if not hasattr(model, "n_seen_"):
            raise
        return str(error) or "Ctrl-C"
    return None


def _line(model: Any, k: int, label: Any) -> str:
    """Return what is known about a binary problem."""
    quantity, name = (
        "margin" if isinf(model.C) else "objective",
        "" if label is None else f"{text_of(label)}: ",
    )
    lower, upper = model.bounds_.lower[k], model.bounds_.upper[k]
    return (
        f"{name}{model.mistakes_[k]} mistakes during the pass, {model.updates_[k]} updates; "
        f"{lower:.6g} <= best {quantity} <= {upper:.6g}"
    )
