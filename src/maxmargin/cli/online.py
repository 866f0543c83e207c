"""maxmargin fit --online: a file of any length, read once in constant memory."""

from __future__ import annotations

import time
from math import isinf
from pathlib import Path
from typing import Any

import numpy as np
import typer

from ..algorithms import ALGORITHMS
from ..estimators.decisions import text_of
from ..estimators.online import TRAILS, OnlineMarginClassifier
from ..estimators.stream_parameters import EXAMPLE_RATES
from ..fit.streaming import streams
from ..io.model_file import save
from ..io.readers import DataError, names_columns, svmlight
from ..io.readers.files import check_file
from ..io.readers.table import labels_of
from ..numerics.files import check_place
from .display import Progress
from .options import STOPPED, Result, dashed

# columns that indices are hashed into where their number is not given (the default of Vowpal Wabbit, too): 2 MB of
# weights a class; more costs memory, less lets more features share a column (17 % of 50,000 here)
HASHED_COLUMNS = 1 << 18
PARAMETERS = ("C", "algorithm", "fit_intercept", "intercept_scaling", "trail")  # of the estimator
OTHER_OPTIONS = ("data", "output", "online", "classes", "hashing", "n_features", "as_json", "quiet")
CTRL_C = "Ctrl-C"  # as the reason why a stream ended


def fit_online(data: Path, output: Path, given: dict[str, Any]) -> Result:
    """Learn from every row once, and write the model.

    Ctrl-C, and a line that cannot be read, end the stream; the model of the rows before is written.

    Parameters
    ----------
    data, output : Path
    given : dict
        Options that the command line sets.
    """
    check_file(data)
    check_place(output, data)
    _check_options(data, given)
    parameters = {name: given[name] for name in PARAMETERS if name in given}
    hasher = None if "n_features" in given else given.get("hashing", HASHED_COLUMNS)
    model, begin = OnlineMarginClassifier(**parameters, hasher=hasher), time.perf_counter()
    stopped = _learn(model, data, given)
    seconds = time.perf_counter() - begin
    save(model, output)
    if stopped not in (None, CTRL_C):
        rows = f"the model was learnt from the first {model.n_seen_} rows."
        typer.echo(f"maxmargin: {stopped.rstrip('.')}; {rows}", err=True)
    end = "" if stopped is None else ", stopped before the end"
    facts = _stream_facts(model)
    lines = [f"{model.n_seen_} rows in {seconds:.3g} s{end}: {output}"]
    lines += [_problem_line(model, problem) for problem in facts["problems"]]
    facts |= {"stopped": stopped, "seconds": seconds, "model": str(output)}
    return Result(facts, lines, 0 if stopped is None else STOPPED)


def _check_options(data: Path, given: dict[str, Any]) -> None:
    """Raise DataError where an option, or the kind of file, does not go with a stream."""
    unused = [name for name in given if name not in PARAMETERS + OTHER_OPTIONS]
    if unused:
        raise DataError(f"{dashed(unused[0])} does not apply with --online; leave one of them out.")
    if not data.is_file():
        raise DataError(f"{data}: --online reads a file, not a pipe; write the rows to a file first.")
    if names_columns(data) or data.suffix.lower() == ".npz":
        raise DataError(f"{data}: --online reads svmlight text; convert the data, or leave out --online.")
    _check_algorithm(given.get("algorithm", "auto"), given.get("fit_intercept", True))
    if given.get("trail", "average") not in TRAILS:
        raise DataError(f"--trail must be average, vote or last; got {given['trail']}.")
    for name, most in (("C", "or inf for the hard margin"), ("intercept_scaling", "finite")):
        value = given.get(name, 1.0)
        if not value > 0.0 or (value == float("inf") and name != "C"):
            raise DataError(f"{dashed(name)} must be a positive number, {most}; got {value:g}.")
    for name in ("n_features", "hashing"):
        if given.get(name) is not None and given[name] < 1:
            raise DataError(f"{dashed(name)} must be at least 1, got {given[name]}.")
    if "n_features" in given and "hashing" in given:
        raise DataError("--hashing is for an unknown number of columns; leave out --n-features or --hashing.")


def _check_algorithm(name: str, fit_intercept: bool) -> None:
    """Raise DataError where an algorithm cannot learn from a stream, in terms of the command line."""
    able = [one for one, cls in ALGORITHMS.items() if streams(cls) and one not in EXAMPLE_RATES]
    if name in EXAMPLE_RATES:
        needed = "the margin to reach" if name == "fixed-margin" else "a rate"
        raise DataError(
            f"--algorithm {name} needs {needed}, and the command line has no option for it: name another algorithm "
            f"({', '.join(able)}), or use OnlineMarginClassifier in Python."
        )
    if name not in ("auto", *ALGORITHMS):
        raise DataError(f"--algorithm must be auto or one of {', '.join(able)}; got {name}.")
    if name != "auto" and name not in able:
        raise DataError(
            f"'{name}' cannot learn from a stream, where each row occurs only once: leave out --online, or name "
            f"one of {', '.join(able)}."
        )
    if name == "pumma" and not fit_intercept:
        raise DataError("--algorithm pumma learns an intercept: leave out --no-intercept, or name another.")


def _learn(model: Any, data: Path, given: dict[str, Any]) -> str | None:
    """Present the rows of a file; return the reason why they ended early, None at the end of the file.

    What stops it before the first row is learnt is raised.
    """
    try:
        with Progress(quiet=bool(given.get("quiet"))):
            _present(model, data, given)
    except (KeyboardInterrupt, DataError) as error:
        if not getattr(model, "n_seen_", 0):
            raise
        return str(error) if isinstance(error, DataError) else CTRL_C
    if not getattr(model, "n_seen_", 0):
        raise DataError(f"{data}: the file holds no rows.")
    return None


def _present(model: Any, data: Path, given: dict[str, Any]) -> None:
    """Learn block by block."""
    classes = None
    for block in svmlight.stream_svmlight(data, given.get("n_features")):
        if block.y.dtype.kind == "f":
            raise DataError(f"{data}: the labels are fractions, not classes; number the classes.")
        if classes is None:
            classes = _classes(data, given.get("classes"), block.y)
        strange = np.flatnonzero(~np.isin(block.y, classes))
        if strange.size:
            row, label = getattr(model, "n_seen_", 0) + int(strange[0]) + 1, block.y[strange[0]]
            raise DataError(
                f"{data}: the label of row {row} (counted from 1) is {label}, none of the classes {classes.tolist()}; "
                "name all classes with --classes."
            )
        try:
            model.source_ = {"label": None, "first_index": block.first_index}
            model.partial_fit(block.X, block.y, classes=classes)
        except ValueError as error:
            raise DataError(f"{data}: {error}") from None


def _classes(data: Path, names: str | None, y: np.ndarray) -> np.ndarray:
    """Return the classes of ``--classes``, else those among the labels of the first block."""
    if names is not None:
        classes = labels_of([word for word in names.split(",") if word.strip()])
        if classes.dtype.kind != "i":
            raise DataError(f"--classes takes whole numbers, as in -1,1; got {names}.")
        return classes
    classes = np.unique(y)
    if classes.size < 2:
        raise DataError(f"{data}: the first {y.size} rows are all of class {classes[0]}; use --classes.")
    return classes


def _stream_facts(model: Any) -> dict[str, Any]:
    """Return a stream's model as plain values: one problem a class, of two classes one for the second."""
    labels = list(model.classes_)
    numbers = {"mistakes": model.mistakes_, "updates": model.updates_, **model.bounds_._asdict()}
    problems = [
        {"class": label} | {name: values[k].item() for name, values in numbers.items()}
        for k, label in enumerate(labels if len(labels) > 2 else labels[1:])
    ]
    features = int(model.coef_.shape[1])
    return {"rows": model.n_seen_, "features": features, "classes": labels, "problems": problems}


def _problem_line(model: Any, problem: dict[str, Any]) -> str:
    quantity = "margin" if isinf(model.C) else "objective"
    name = "" if len(model.mistakes_) == 1 else f"{text_of(problem['class'])}: "
    return (
        f"{name}{problem['mistakes']} mistakes during the pass, {problem['updates']} updates; "
        f"{problem['lower']:.6g} <= best {quantity} <= {problem['upper']:.6g}"
    )
