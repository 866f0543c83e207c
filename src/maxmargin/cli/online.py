"""maxmargin fit --online: a file of any length, read once in constant memory."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from math import isinf
from pathlib import Path
from typing import Any

import typer

from .exits import STOPPED, one_sentence
from .options import given_by

WIDTH = 1 << 18  # columns that indices are hashed into where their number is not said
NUMBERED = {  # algorithms that have no default in a stream
    "cramma": "a rate",
    "micra": "a rate",
    "fixed-margin": "the margin to reach",
}
FIELDS = ("C", "algorithm", "fit_intercept", "intercept_scaling", "trail")  # of the estimator
CTRL_C, GAVE_UP = "Ctrl-C", 130  # 128 and the number of its signal, as shells have it
OTHERS = ("data", "output", "online", "classes", "hashing", "n_features", "as_json", "quiet")


def fit_online(data: Path, output: Path, ctx: typer.Context) -> None:
    """Learn from every row once, and write the model.

    Ctrl-C, and a line that cannot be read, end the stream with what has been learnt, which is written.
    """
    with one_sentence(), _nothing_learnt():
        from ..io.readers.files import look
        from ..numerics.files import check_place

        given = given_by(ctx)
        look(data)
        check_place(output, data)
        _check(data, given)

        from ..io.model_file import save
        from .summary import as_json, text_of

        model, begin = _model(given), time.perf_counter()
        stopped = _learn(model, data, given)
        seconds = time.perf_counter() - begin
        save(model, output)
        if stopped not in (None, CTRL_C):
            typer.echo(
                f"maxmargin: {stopped.rstrip('.')}; the model holds the {model.n_seen_} rows before.",
                err=True,
            )
        if given.get("as_json"):
            facts = {**_facts(model), "stopped": stopped, "seconds": seconds, "model": str(output)}
            typer.echo(as_json(facts))
        elif not given.get("quiet"):
            end = "" if stopped is None else ", stopped before the end"
            typer.echo(f"{model.n_seen_} rows in {seconds:.3g} s{end}: {output}")
            what = "margin" if isinf(model.C) else "objective"
            for fact in _facts(model)["problems"]:
                name = "" if len(model.mistakes_) == 1 else f"{text_of(fact['class'])}: "
                typer.echo(
                    f"{name}{fact['mistakes']} mistakes on the way, {fact['updates']} updates; "
                    f"{fact['lower']:.6g} <= best {what} <= {fact['upper']:.6g}"
                )
    if stopped is not None:
        raise typer.Exit(STOPPED)


@contextmanager
def _nothing_learnt() -> Iterator[None]:
    """Ctrl-C before there is a model, or a second one while it is written: say so."""
    try:
        yield
    except KeyboardInterrupt:
        typer.echo("maxmargin: stopped before anything was learnt and written; there is no model.", err=True)
        raise typer.Exit(GAVE_UP) from None


def _check(data: Path, given: dict[str, Any]) -> None:
    from ..io.readers import DataError, names_columns

    strange = [name for name in given if name not in FIELDS + OTHERS]
    if strange:
        raise DataError(
            f"--{strange[0].replace('_', '-')} is of no use in a stream; leave it out, or leave out --online."
        )
    if not data.is_file():
        raise DataError(f"{data}: --online needs a file, not a pipe: write the rows to one first.")
    if names_columns(data) or data.suffix.lower() == ".npz":
        raise DataError(f"{data}: --online reads svmlight text; write the data so, or leave out --online.")
    _check_fields(given)
    for name in ("n_features", "hashing"):
        if given.get(name) is not None and given[name] < 1:
            raise DataError(f"--{name.replace('_', '-')} must be at least 1, got {given[name]}.")
    if "n_features" in given and "hashing" in given:
        raise DataError("--hashing is for files whose width is not known; leave out --n-features or it.")


def _check_fields(given: dict[str, Any]) -> None:
    """What the estimator would refuse in words of Python, in those of the command line."""
    from ..algorithms import ALGORITHMS
    from ..estimators.online import TRAILS
    from ..fit.streaming import streams
    from ..io.readers import DataError

    name = given.get("algorithm", "auto")
    fit = [one for one, cls in ALGORITHMS.items() if streams(cls) and one not in NUMBERED]
    if name in NUMBERED:
        raise DataError(
            f"--algorithm {name} needs {NUMBERED[name]}, for which there is no option here: name another one "
            f"({', '.join(fit)}), or use OnlineMarginClassifier in Python."
        )
    if name not in ("auto", *ALGORITHMS):
        raise DataError(f"--algorithm must be auto or one of {', '.join(fit)}; got {name}.")
    if name != "auto" and name not in fit:
        raise DataError(
            f"'{name}' cannot learn from a stream, which brings a pattern only once: leave out --online, or name "
            f"one of {', '.join(fit)}."
        )
    if name == "pumma" and not given.get("fit_intercept", True):
        raise DataError(
            "--algorithm pumma learns an intercept: leave out --no-intercept, or name another one."
        )
    if given.get("trail", "average") not in TRAILS:
        raise DataError(f"--trail must be average, vote or last; got {given['trail']}.")
    for option, most in (("C", "or inf for the hard margin"), ("intercept_scaling", "finite")):
        value = given.get(option, 1.0)
        if not value > 0.0 or (value == float("inf") and option != "C"):
            dashed = f"--{option.replace('_', '-')}"
            raise DataError(f"{dashed} must be a positive number, {most}; got {value:g}.")


def _model(given: dict[str, Any]) -> Any:
    from ..estimators.online import OnlineMarginClassifier

    fields = {name: given[name] for name in FIELDS if name in given}
    hasher = None if "n_features" in given else given.get("hashing", WIDTH)
    return OnlineMarginClassifier(**fields, hasher=hasher)


def _learn(model: Any, data: Path, given: dict[str, Any]) -> str | None:
    """Present the file; what stopped it before its end, None where nothing did.

    Nothing is lost: what stops it before the first row is learnt is raised.
    """
    from ..io.readers import DataError

    try:
        with _bar(data, bool(given.get("quiet"))) as show:
            _present(model, data, given, show)
    except KeyboardInterrupt:
        if not _rows(model):
            raise
        return CTRL_C
    except DataError as error:
        if not _rows(model):
            raise
        return str(error)
    if not _rows(model):
        raise DataError(f"{data}: the file holds no rows.")
    return None


def _present(model: Any, data: Path, given: dict[str, Any], show: Any) -> None:
    from ..io.readers import DataError
    from ..io.readers.svmlight import stream_svmlight

    classes = _classes(given)
    for block in stream_svmlight(data, given.get("n_features")):
        if block.y.dtype.kind == "f":
            raise DataError(f"{data}: the labels are fractions, not classes; number the classes.")
        if classes is None:
            classes = _found(data, block.y)
        try:
            model.source_ = {"label": None, "first_index": block.first_index}
            model.partial_fit(block.X, block.y, classes=classes)
        except ValueError as error:
            remedy = " Name all of them with --classes." if "announced" in str(error) else ""
            raise DataError(f"{data}: {error}{remedy}") from None
        show(block.read)


def _rows(model: Any) -> int:
    return model.n_seen_ if hasattr(model, "classes_") else 0


def _classes(given: dict[str, Any]) -> Any:
    from ..io.readers import DataError
    from ..io.readers.table import labels_of

    if "classes" not in given:
        return None
    classes = labels_of([word for word in given["classes"].split(",") if word.strip()])
    if classes.dtype.kind != "i":
        raise DataError(f"--classes takes whole numbers, as in -1,1; got {given['classes']}.")
    return classes


def _found(data: Path, y: Any) -> Any:
    import numpy as np

    from ..io.readers import DataError

    classes = np.unique(y)
    if classes.size < 2:
        raise DataError(
            f"{data}: the first {y.size} rows are all of class {classes[0]}; name all classes with --classes, "
            "or write the rows in random order."
        )
    return classes


@contextmanager
def _bar(data: Path, quiet: bool) -> Iterator[Any]:
    """A bar of the bytes read, on a terminal."""
    from rich.console import Console
    from rich.progress import BarColumn, DownloadColumn, Progress, TimeRemainingColumn, TransferSpeedColumn

    console = Console(stderr=True)
    if quiet or not console.is_terminal:
        yield lambda read: None
        return
    columns = (BarColumn(), DownloadColumn(), TransferSpeedColumn(), TimeRemainingColumn())
    with Progress(*columns, console=console, transient=True) as bar:
        task = bar.add_task("read", total=data.stat().st_size)
        yield lambda read: bar.update(task, completed=read)


def _facts(model: Any) -> dict[str, Any]:
    labels = list(model.classes_)
    if len(labels) == 2:
        labels = labels[1:]
    bounds = model.bounds_
    return {
        "rows": model.n_seen_,
        "features": int(model.coef_.shape[1]),
        "classes": list(model.classes_),
        "problems": [
            {
                "class": label,
                "mistakes": int(model.mistakes_[k]),
                "updates": int(model.updates_[k]),
                "lower": float(bounds.lower[k]),
                "upper": float(bounds.upper[k]),
            }
            for k, label in enumerate(labels)
        ],
    }
