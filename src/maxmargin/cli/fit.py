"""maxmargin fit: data in, a model with its certificate out."""

from __future__ import annotations

import time
from functools import partial
from math import isinf
from pathlib import Path
from typing import Any

from .options import STOPPED, Result, flags_of, note


def fit(
    data: Path,
    *,
    output: Path,
    n_features: int | None = None,
    columns: Any,
    online: bool = False,
    **chosen: Any,
) -> Result:
    """Fit a classifier, certify it, and write the model and its certificate to a file.

    Ctrl-C ends the fit, and the best model so far is written; a second Ctrl-C ends the command without a model.
    Data that do not fit in memory are read in passes.
    """
    if online:
        from .online import fit_online

        return fit_online(data, output, n_features, chosen)

    from ..fit.deadline import Deadline, result_of
    from ..numerics.files import check_place
    from ..readers.table import Table, TooLargeError
    from .data import read_labelled, stored_rows
    from .display import Progress

    check_place(output, data)
    with Progress():
        table: Any = None
        if "memory" not in chosen:
            try:
                table = read_labelled(data, n_features, columns)
            except TooLargeError as error:
                note(f"{error} It is read in passes now (--memory).")
        model = _classifier(chosen)
        problem = model._problem()  # faults of options are reported before rows are read in passes
        deadline = Deadline(model.max_time)  # of the first reading and the fit
        if table is None:
            table = stored_rows(data, n_features, columns, model.cache_dir, deadline.interrupted)

        import numpy as np

        from ..io.model_file import save
        from ..problem.problem import Status

    begin = time.perf_counter()
    with Progress("margin" if isinf(model.C) else "objective") as progress:
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
    code = 0 if model.status_ is Status.CERTIFIED else STOPPED
    return Result({}, _report(model, table, seconds, output), code)


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
        raise ValueError(f"{flags_of(unknown[0])[-1]} {fault}")
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
