"""maxmargin fit: data in, a model with its certificate out."""

from __future__ import annotations

import time
from functools import partial
from math import isinf
from pathlib import Path
from typing import Any

import typer

from .options import ESTIMATOR_OPTIONS, STOPPED, Result, command, dashed


@command(*ESTIMATOR_OPTIONS)
def fit(
    data: Path,
    *,
    output: Path,
    n_features: int | None = None,
    columns: Any,
    as_json: bool = False,
    quiet: bool = False,
    online: bool = False,
    classes: str | None = None,
    picture: Path | None = None,
    **chosen: Any,
) -> Result:
    """Fit a classifier, certify it, and write the model and its certificate to a file.

    Ctrl-C ends the fit, and the best model so far is written. A second Ctrl-C ends the command without a model.

    Parameters
    ----------
    output : Path
        The model file to write.
    C : float, default=1.0; with --online inf
        Weight of the losses; inf is the hard margin.
    loss : str, default=squared_hinge; with --kernel hinge
        squared_hinge or hinge.
    max_iter : int, default=1000; with --kernel no limit
        Maximum number of rounds.
    quiet : bool
        Print no progress line and no report.
    online : bool
        One pass over svmlight text of any length, in constant memory and without a certificate; the file may be a pipe,
        and - is standard input; with --n-features, --C, --algorithm, --intercept-scaling, --no-intercept and --seed.
    classes : str
        With --online: all labels, as in -1,1; by default those of the first 100 MB of rows.
    picture : Path
        Draw the certified bounds against time, as .png, .pdf or .svg; not with --online.
    """
    if online:
        from .online import fit_online

        return fit_online(data, output, n_features, classes, chosen, quiet)
    if classes is not None:
        raise ValueError("--classes needs --online: add it, or leave it out")

    from ..fit.deadline import Deadline, result_of
    from ..numerics.files import check_place
    from ..readers.table import Table, TooLargeError
    from .data import read_labelled, stored_rows
    from .display import PictureFile, Progress

    check_place(output, data)
    drawn = None if picture is None else PictureFile(picture, data, output)
    hard = isinf(chosen.get("C", 1.0))
    with Progress(quiet=quiet):
        table: Any = None
        if "memory" not in chosen:
            try:
                table = read_labelled(data, n_features, columns)
            except TooLargeError as error:
                typer.echo(f"maxmargin: {error} It is read in passes now (--memory).", err=True)
        model = _classifier(chosen)
        problem = model._problem()  # faults of options are reported before rows are read in passes
        deadline = Deadline(model.max_time)  # of the first reading and the fit
        if table is None:
            table = stored_rows(data, n_features, columns, model.cache_dir, deadline.interrupted)

        import numpy as np

        from ..io.model_file import save
        from ..problem.problem import Status
        from .words import fit_facts

    begin = time.perf_counter()
    with Progress("margin" if hard else "objective", quiet) as progress:
        model.set_params(callback=progress)
        if isinstance(table, Table):
            result_of(partial(model.fit, table.X, table.y))
        else:
            from ..estimators.partitioned import fit_stored

            fit_stored(model, problem, table, deadline)
    seconds = time.perf_counter() - begin
    model.set_params(callback=None)
    # for prediction, which reads files by names of columns or first index
    if table.feature_names is not None:
        model.feature_names_in_ = np.array(table.feature_names, dtype=object)
    model.source_ = {"label": table.label_name, "first_index": table.first_index, **table.remembered}
    save(model, output)
    if drawn is not None:
        from ..plots.bounds import BoundsDisplay

        BoundsDisplay.from_estimator(model, ax=drawn.figure.subplots())
        drawn.save()
    facts = fit_facts(model, model.certificate_, table.feature_names)
    facts |= {"message": model.message_, "seconds": seconds, "model": output, "picture": picture}
    code = 0 if model.status_ is Status.CERTIFIED else STOPPED
    return Result(facts, _report(model, table, seconds, output), code)


def _classifier(parameters: dict[str, Any]) -> Any:
    """Return the classifier with the parameters that are given; the two classifiers have different defaults."""
    from ..estimators.kernel import KernelMaxMarginClassifier
    from ..estimators.linear import MaxMarginClassifier

    if parameters.get("kernel") == "precomputed":
        raise ValueError("--kernel precomputed needs kernel values: use KernelMaxMarginClassifier in Python.")
    classifier = KernelMaxMarginClassifier if "kernel" in parameters else MaxMarginClassifier
    unknown = [name for name in parameters if name not in classifier().get_params()]
    if unknown:
        fault = "cannot be combined with --kernel: leave it out"
        if classifier is MaxMarginClassifier:
            fault = "applies only with --kernel: name a kernel, or leave it out"
        raise ValueError(f"{dashed(unknown[0])} {fault}")
    return classifier(**parameters)


def _report(model: Any, table: Any, seconds: float, output: Path) -> list[str]:
    """Return status, algorithms, bounds and the largest weights of a model as lines of text."""
    from ..problem.problem import Status
    from .words import bound_lines, is_inseparable, stages_line, weight_lines

    rounds = f"{model.n_iter_} round{'s' * (model.n_iter_ != 1)}"
    lines = [f"{model.status_.value} in {rounds}, {seconds:.3g} s: {output}"]
    lines += [] if model.status_ is Status.CERTIFIED else [model.message_]
    lines.append(stages_line(model))
    lines += bound_lines(model, table.label, model.certificate_)
    # without a separator, or a bound, there are no weights to speak of
    if not is_inseparable(model) and not model.certificate_.proves_nothing:
        lines += weight_lines(model, table.feature_names)
    return lines
