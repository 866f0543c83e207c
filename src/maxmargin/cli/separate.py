"""maxmargin separate: a separator with its margin, or the rows that prove that there is none."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any

from .options import STOPPED, Result


def separate(data: Path, *, n_features: int | None = None, columns: Any, **parameters: Any) -> Result:
    """Find a separator of two classes, or prove that there is none.

    It is a hyperplane, or a function of a kernel; the proof is rows whose weighted sum is zero. Rounding affects
    neither answer. Exit code 0 with a separator or a proof, 3 if the result is undecided. Data that do not fit in
    memory are searched for hyperplanes in passes.
    """
    from ..fit.deadline import Deadline, result_of
    from ..readers.table import TooLargeError
    from .data import read_labelled, stored_rows
    from .display import Progress

    if parameters.get("kernel") == "precomputed":
        raise ValueError("--kernel precomputed needs a kernel matrix: use maxmargin.separate in Python.")
    with Progress():
        table: Any = None
        memory = parameters.pop("memory", None)
        try:
            if memory is None:
                table = read_labelled(data, n_features, columns)
        except TooLargeError:
            if parameters.get("kernel") not in (None, "linear"):
                raise

        from ..certificates.verdicts import Undecided
        from ..separability import separate as separability
        from .words import verdict_facts, verdict_lines

        if table is None:
            if parameters.pop("kernel", "linear") != "linear" or "gamma" in parameters:
                raise ValueError(
                    "data that are read in passes are searched for hyperplanes: leave out --kernel"
                )
            deadline = Deadline(parameters.get("max_time"))
            table = stored_rows(data, n_features, columns, interrupted=deadline.interrupted)
            parameters["max_time"] = max(deadline.remaining(), 1e-3)  # it has to be positive
            find: Any = partial(separability.separate_stored, table, memory=memory)
        else:
            find = partial(separability.separate, table.X, table.y)
        verdict = result_of(partial(find, **parameters))
    rows, features = table.X.shape
    shape = {"rows": rows, "features": features, "feature_names": table.feature_names}
    facts, undecided = shape | verdict_facts(verdict), isinstance(verdict, Undecided)
    if undecided:
        facts["remedy"] = verdict.remedy(1, table.feature_names)
    return Result(facts, verdict_lines(verdict, table.label), STOPPED if undecided else 0)
