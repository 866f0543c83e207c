"""maxmargin fit: data in, a model with its certificate out."""

from __future__ import annotations

from math import isinf
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from typer import Option

from .exits import STOPPED, one_sentence
from .options import (
    AsJson,
    ClassWeight,
    Columns,
    Cost,
    Data,
    FitIntercept,
    Intercept,
    InterceptScaling,
    Label,
    Loss,
    NormPower,
    P,
    Seed,
)

if TYPE_CHECKING:
    from ..readers import Table
    from .progress import Progress


def fit(
    ctx: typer.Context,
    data: Data,
    output: Annotated[Path, Option("--output", "-o", help="The model file to write.")],
    C: Cost = 1.0,
    loss: Loss = "squared_hinge",
    p: P = 2,
    norm_power: NormPower = 2,
    tol: Annotated[float, Option(help="Certified relative gap at which the fit ends.")] = 1e-3,
    algorithm: Annotated[
        str, Option(help="auto, or a name: dcd, mpu, pumma, perceptron and others.")
    ] = "auto",
    fit_intercept: FitIntercept = True,
    intercept: Intercept = "free",
    intercept_scaling: InterceptScaling = 1.0,
    class_weight: ClassWeight = None,
    max_iter: Annotated[int, Option(help="Most rounds.")] = 1000,
    max_time: Annotated[float | None, Option(help="Seconds; then the best model so far is kept.")] = None,
    seed: Seed = None,
    n_jobs: Annotated[int | None, Option(help="Classes solved at the same time.")] = None,
    n_features: Columns = None,
    label: Label = None,
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
) -> None:
    """Learn a classifier, prove how good it is, and write both to a file.

    Ctrl-C ends the fit with the best model so far, which is written; a second Ctrl-C gives up.
    """
    if online:
        from .online import fit_online

        fit_online(data, output, ctx)
        return
    with one_sentence():
        from ..atomic import check_place
        from .labelled import check_options, read_labelled

        check_place(output, data)
        if classes is not None or hashing is not None or trail is not None:
            raise ValueError("--classes, --hashing and --trail belong to --online: add it, or leave them out")
        check_options(data, n_features, label)
        table = read_labelled(data, n_features, label)

        from ..estimators.linear import MaxMarginClassifier
        from ..persistence import save
        from ..status import Status
        from .progress import Progress
        from .summary import as_json as to_json
        from .summary import summary

        model = MaxMarginClassifier(
            C=C,
            loss=loss,
            p=p,
            norm_power=norm_power,
            tol=tol,
            fit_intercept=fit_intercept,
            intercept=intercept,
            intercept_scaling=intercept_scaling,
            class_weight=class_weight,
            algorithm=algorithm,
            max_iter=max_iter,
            max_time=max_time,
            n_jobs=n_jobs,
            random_state=seed,
        )
        with Progress("margin" if isinf(C) else "objective", max_time, quiet) as progress:
            seconds = _fit(model, table, progress)
        save(model, output)
        if as_json:
            facts = {**summary(model, model.certificate_), "seconds": seconds, "model": str(output)}
            typer.echo(to_json(facts))
        elif not quiet:
            typer.echo(f"{model.status_.value} in {model.n_iter_} rounds, {seconds:.3g} s: {output}")
            typer.echo(str(model.certificate_))
    if model.status_ is not Status.CERTIFIED:
        raise typer.Exit(STOPPED)


def _fit(model: Any, table: Table, progress: Progress) -> float:
    """Fit; the model remembers the names of the columns, and how the file was written."""
    import time

    import numpy as np

    begin = time.perf_counter()
    model.set_params(callback=progress).fit(table.X, table.y)
    seconds = time.perf_counter() - begin
    model.set_params(callback=None)
    if table.feature_names is not None:
        model.feature_names_in_ = np.array(table.feature_names, dtype=object)
    model.source_ = {"label": table.label_name, "first_index": table.first_index}
    return seconds
