"""maxmargin fit: data in, a model with its certificate out."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from math import isinf
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from typer import Option

from .options import (
    ESTIMATOR_OPTIONS,
    INTERRUPTED,
    STOPPED,
    AsJson,
    Columns,
    Data,
    Drop,
    Label,
    Use,
    errors_in_one_sentence,
    given_options,
    takes,
)

if TYPE_CHECKING:
    from ..io.readers import Table
    from .display import Progress


@takes(*ESTIMATOR_OPTIONS)
def fit(
    ctx: typer.Context,
    data: Data,
    output: Annotated[Path, Option("--output", "-o", help="The model file to write.")],
    loss: Annotated[
        str, Option(help="squared_hinge or hinge.", show_default="squared_hinge; with --kernel hinge")
    ] = "squared_hinge",
    max_iter: Annotated[int, Option(help="Most rounds.", show_default="1000; with --kernel no limit")] = 1000,
    n_features: Columns = None,
    label: Label = None,
    columns: Use = None,
    drop: Drop = None,
    as_json: AsJson = False,
    quiet: Annotated[bool, Option("--quiet", "-q", help="No live line and no report.")] = False,
    online: Annotated[
        bool, Option("--online", help="One pass over svmlight text of any length, in constant memory.")
    ] = False,
    classes: Annotated[
        str | None, Option(help="With --online: all labels, as in -1,1; else those of the first 4 MB.")
    ] = None,
    hashing: Annotated[
        int | None,
        Option(help="With --online, without --n-features: columns that indices are hashed into; 262144."),
    ] = None,
    trail: Annotated[
        str | None, Option(help="With --online: average, vote or last; which weights predict.")
    ] = None,
    **parameters: Any,
) -> None:
    """Learn a classifier, prove how good it is, and write both to a file.

    Ctrl-C ends the fit with the best model so far, which is written; a second Ctrl-C gives up.
    """
    given = given_options(ctx)
    if online:
        with errors_in_one_sentence(), _interrupted_without_model():
            from .online import fit_online

            fit_online(data, output, given)
        return
    with errors_in_one_sentence():
        from ..numerics.files import check_place
        from .data import ColumnOptions, read_labelled, refuse_rounded

        check_place(output, data)
        if classes is not None or hashing is not None or trail is not None:
            raise ValueError("--classes, --hashing and --trail belong to --online: add it, or leave them out")
        table = read_labelled(data, n_features, ColumnOptions(label, columns, drop))

        from ..io.model_file import save
        from ..problem.status import Status
        from .display import Progress
        from .words import fit_facts, json_text

        # only what is given: the two classifiers have different defaults
        model = _classifier({name: given[name] for name in ESTIMATOR_OPTIONS if name in given})
        if isinf(model.C):
            refuse_rounded(data, table)
        with Progress("margin" if isinf(model.C) else "objective", model.max_time, quiet) as progress:
            seconds = _fit(model, table, progress)
        save(model, output)
        if as_json:
            facts = fit_facts(model, model.certificate_, table.feature_names)
            typer.echo(json_text({**facts, "seconds": seconds, "model": str(output)}))
        elif not quiet:
            _print_report(model, table, seconds, output)
    if model.status_ is not Status.CERTIFIED:
        raise typer.Exit(STOPPED)


@contextmanager
def _interrupted_without_model() -> Iterator[None]:
    """Report Ctrl-C before a stream has a model, or a second one while it is written."""
    try:
        yield
    except KeyboardInterrupt:
        typer.echo("maxmargin: stopped before anything was learnt and written; there is no model.", err=True)
        raise typer.Exit(INTERRUPTED) from None


def _classifier(parameters: dict[str, Any]) -> Any:
    """Return the classifier with the parameters that the command line gives, and its own defaults for the others."""
    from ..estimators.kernel import KernelMaxMarginClassifier
    from ..estimators.linear import MaxMarginClassifier

    if "seed" in parameters:
        parameters["random_state"] = parameters.pop("seed")
    if parameters.get("kernel") == "precomputed":
        raise ValueError("--kernel precomputed takes a matrix, which no file of rows is: ask in Python.")
    classifier = KernelMaxMarginClassifier if "kernel" in parameters else MaxMarginClassifier
    known = classifier().get_params()
    for name in parameters:
        if name not in known:
            option = "--" + name.replace("_", "-")
            raise ValueError(
                f"{option} belongs to --kernel: name a kernel, or leave it out"
                if classifier is MaxMarginClassifier
                else f"{option} does not go with --kernel: leave it out"
            )
    return classifier(**parameters)


def _fit(model: Any, table: Table, progress: Progress) -> float:
    """Fit, and keep with the model what prediction needs to read its files; return the seconds of the fit."""
    import numpy as np

    begin = time.perf_counter()
    model.set_params(callback=progress).fit(table.X, table.y)
    seconds = time.perf_counter() - begin
    model.set_params(callback=None)
    if table.feature_names is not None:
        model.feature_names_in_ = np.array(table.feature_names, dtype=object)
    model.source_ = {"label": table.label_name, "first_index": table.first_index}
    return seconds


def _print_report(model: Any, table: Table, seconds: float, output: Path) -> None:
    """Print status, algorithms, bounds and the largest weights of a model."""
    from .words import bound_lines, is_inseparable, stages_line, weight_lines

    rounds = f"{model.n_iter_} round{'s' * (model.n_iter_ != 1)}"
    typer.echo(f"{model.status_.value} in {rounds}, {seconds:.3g} s: {output}")
    typer.echo(stages_line(model))
    for line in bound_lines(model, table.y, model.certificate_):
        typer.echo(line)
    # without a separator, or a bound, there are no weights to speak of
    if not is_inseparable(model) and not model.certificate_.proves_nothing:
        for line in weight_lines(model, table.feature_names):
            typer.echo(line)
