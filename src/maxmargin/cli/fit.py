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
    Coef0,
    Columns,
    Cost,
    Data,
    Degree,
    Drop,
    FitIntercept,
    Gamma,
    Intercept,
    InterceptScaling,
    KernelName,
    Label,
    NormPower,
    P,
    Seed,
    Selection,
    Use,
    given_by,
)

# options of the command that are no parameters of a classifier
NO_PARAMETERS = (
    "data", "output", "n_features", "label", "columns", "drop", "as_json", "quiet", "online", "classes", "hashing",
    "trail",
)  # fmt: skip

if TYPE_CHECKING:
    from ..io.readers import Table
    from .progress import Progress


def fit(
    ctx: typer.Context,
    data: Data,
    output: Annotated[Path, Option("--output", "-o", help="The model file to write.")],
    C: Cost = 1.0,
    loss: Annotated[
        str, Option(help="squared_hinge or hinge.", show_default="squared_hinge; with --kernel hinge")
    ] = "squared_hinge",
    p: P = 2,
    norm_power: NormPower = 2,
    tol: Annotated[float, Option(help="Certified relative gap at which the fit ends.")] = 1e-3,
    kernel: KernelName = None,
    gamma: Gamma = "scale",
    degree: Degree = 3,
    coef0: Coef0 = 0.0,
    multi_class: Annotated[
        str, Option(help="With --kernel: ovr, each class against the rest, or ovo, against each other.")
    ] = "ovr",
    cache_size: Annotated[float, Option(help="With --kernel: megabytes for its rows.")] = 200,
    algorithm: Annotated[
        str, Option(help="auto, or a name: dcd, mpu, pumma, perceptron and others.")
    ] = "auto",
    fit_intercept: FitIntercept = True,
    intercept: Intercept = "free",
    intercept_scaling: InterceptScaling = 1.0,
    class_weight: ClassWeight = None,
    max_iter: Annotated[int, Option(help="Most rounds.", show_default="1000; with --kernel no limit")] = 1000,
    max_time: Annotated[float | None, Option(help="Seconds; then the best model so far is kept.")] = None,
    seed: Seed = None,
    n_jobs: Annotated[int | None, Option(help="Classes solved at the same time.")] = None,
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
) -> None:
    """Learn a classifier, prove how good it is, and write both to a file.

    Ctrl-C ends the fit with the best model so far, which is written; a second Ctrl-C gives up.
    """
    if online:
        from .online import fit_online

        fit_online(data, output, ctx)
        return
    with one_sentence():
        from ..numerics.files import check_place
        from .labelled import check_options, read_labelled, refuse_rounded

        check_place(output, data)
        if classes is not None or hashing is not None or trail is not None:
            raise ValueError("--classes, --hashing and --trail belong to --online: add it, or leave them out")
        which = Selection(label, columns, drop)
        check_options(data, n_features, which)
        table = read_labelled(data, n_features, which)

        from ..io.model_file import save
        from ..problem.status import Status
        from .progress import Progress
        from .separability import in_all_words, inseparable
        from .summary import as_json as to_json
        from .summary import solved_by, summary, weights

        model = chosen_model(ctx)
        if isinf(model.C):
            refuse_rounded(data, table)
        with Progress("margin" if isinf(model.C) else "objective", max_time, quiet) as progress:
            seconds = _fit(model, table, progress)
        save(model, output)
        if as_json:
            facts = {
                **summary(model, model.certificate_, table.feature_names),
                "seconds": seconds,
                "model": str(output),
            }
            typer.echo(to_json(facts))
        elif not quiet:
            typer.echo(
                f"{model.status_.value} in {model.n_iter_} round{'s' * (model.n_iter_ != 1)}, {seconds:.3g} s: {output}"
            )
            typer.echo(solved_by(model))
            for words in in_all_words(model, table.y, model.certificate_):
                typer.echo(words)
            # without a separator, or a bound, there are no weights to speak of
            without = inseparable(model) or model.certificate_.proves_nothing
            for line in () if without else weights(model, table.feature_names):
                typer.echo(line)
    if model.status_ is not Status.CERTIFIED:
        raise typer.Exit(STOPPED)


def chosen_model(ctx: typer.Context) -> Any:
    """The classifier that the options ask for, and what was given of its parameters; the rest are its defaults."""
    from ..estimators.kernel import KernelMaxMarginClassifier
    from ..estimators.linear import MaxMarginClassifier

    given = {name: value for name, value in given_by(ctx).items() if name not in NO_PARAMETERS}
    if "seed" in given:
        given["random_state"] = given.pop("seed")
    cls = MaxMarginClassifier if ctx.params["kernel"] is None else KernelMaxMarginClassifier
    if given.get("kernel") == "precomputed":
        raise ValueError("--kernel precomputed takes a matrix, which no file of rows is: ask in Python.")
    known = cls().get_params()
    for name in given:
        if name not in known:
            option = "--" + name.replace("_", "-")
            raise ValueError(
                f"{option} belongs to --kernel: name a kernel, or leave it out"
                if cls is MaxMarginClassifier
                else f"{option} does not go with --kernel: leave it out"
            )
    return cls(**given)


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
