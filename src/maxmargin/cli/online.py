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

WIDTH = 1 << 18  # columns that indices are hashed into where their number is not said
FIELDS = ("C", "algorithm", "fit_intercept", "intercept_scaling", "trail")  # of the estimator
OTHERS = ("data", "output", "online", "classes", "hashing", "n_features", "as_json", "quiet")


def fit_online(data: Path, output: Path, ctx: typer.Context) -> None:
    """Learn from every row once, and write the model.

    Ctrl-C ends the stream with what has been learnt, which is written.
    """
    with one_sentence():
        from ..atomic import check_place
        from ..readers.files import look

        given = {name: ctx.params[name] for name in ctx.params if _given(ctx, name)}
        look(data)
        check_place(output, data)
        _check(data, given)

        from ..persistence import save
        from .summary import as_json, text_of

        model, begin = _model(given), time.perf_counter()
        whole = _learn(model, data, given)
        seconds = time.perf_counter() - begin
        save(model, output)
        if given.get("as_json"):
            typer.echo(as_json({**_facts(model), "seconds": seconds, "model": str(output)}))
        elif not given.get("quiet"):
            end = "" if whole else ", stopped before the end"
            typer.echo(f"{model.n_seen_} rows in {seconds:.3g} s{end}: {output}")
            what = "margin" if isinf(model.C) else "objective"
            for fact in _facts(model)["problems"]:
                name = "" if len(model.mistakes_) == 1 else f"{text_of(fact['class'])}: "
                typer.echo(
                    f"{name}{fact['mistakes']} mistakes on the way, {fact['updates']} updates; "
                    f"{fact['lower']:.6g} <= best {what} <= {fact['upper']:.6g}"
                )
    if not whole:
        raise typer.Exit(STOPPED)


def _given(ctx: typer.Context, name: str) -> bool:
    source = ctx.get_parameter_source(name)
    return source is not None and source.name == "COMMANDLINE"


def _check(data: Path, given: dict[str, Any]) -> None:
    from ..readers import DataError, names_columns

    strange = [name for name in given if name not in FIELDS + OTHERS]
    if strange:
        raise DataError(
            f"--{strange[0].replace('_', '-')} is of no use in a stream; leave it out, or leave out --online."
        )
    if names_columns(data) or data.suffix.lower() == ".npz":
        raise DataError(f"{data}: --online reads svmlight text; write the data so, or leave out --online.")
    for name in ("n_features", "hashing"):
        if given.get(name) is not None and given[name] < 1:
            raise DataError(f"--{name.replace('_', '-')} must be at least 1, got {given[name]}.")
    if "n_features" in given and "hashing" in given:
        raise DataError("--hashing is for files whose width is not known; leave out --n-features or it.")


def _model(given: dict[str, Any]) -> Any:
    from ..estimators.online import OnlineMarginClassifier

    fields = {name: given[name] for name in FIELDS if name in given}
    hasher = None if "n_features" in given else given.get("hashing", WIDTH)
    return OnlineMarginClassifier(**fields, hasher=hasher)


def _learn(model: Any, data: Path, given: dict[str, Any]) -> bool:
    """Present the file; was it read to its end?"""
    from ..readers import DataError
    from ..readers.svmlight import stream_svmlight

    classes = _classes(given)
    with _bar(data, bool(given.get("quiet"))) as show:
        try:
            for block in stream_svmlight(data, given.get("n_features")):
                if block.y.dtype.kind == "f":
                    raise DataError(f"{data}: the labels are fractions, not classes; number the classes.")
                if classes is None:
                    classes = _found(data, block.y)
                try:
                    model.partial_fit(block.X, block.y, classes=classes)
                except ValueError as error:
                    remedy = " Name all of them with --classes." if "announced" in str(error) else ""
                    raise DataError(f"{data}: {error}{remedy}") from None
                model.source_ = {"label": None, "first_index": block.first_index}
                show(block.read)
        except KeyboardInterrupt:
            if not hasattr(model, "classes_"):
                raise
            return False
    if not hasattr(model, "classes_"):
        raise DataError(f"{data}: the file holds no rows.")
    return True


def _classes(given: dict[str, Any]) -> Any:
    from ..readers import DataError
    from ..readers.table import labels_of

    if "classes" not in given:
        return None
    classes = labels_of([word for word in given["classes"].split(",") if word.strip()])
    if classes.dtype.kind != "i":
        raise DataError(f"--classes takes whole numbers, as in -1,1; got {given['classes']}.")
    return classes


def _found(data: Path, y: Any) -> Any:
    import numpy as np

    from ..readers import DataError

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
