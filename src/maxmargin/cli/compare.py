"""maxmargin compare: algorithms on the same data, side by side."""

from __future__ import annotations

from functools import partial
from math import isinf
from pathlib import Path
from typing import Any

from .options import STOPPED, Result, command


@command(
    "C", "loss", "p", "norm_power", "tol", "fit_intercept", "intercept_scaling", "class_weight",
    "max_iter", "max_time", "seed",
)  # fmt: skip
def compare(
    data: Path,
    *,
    algorithms: str | None = None,
    n_features: int | None = None,
    columns: Any,
    csv: Path | None = None,
    picture: Path | None = None,
    as_json: bool = False,
    quiet: bool = False,
    **parameters: Any,
) -> Result:
    """Run algorithms on the same problem, data and seed, and compare their results.

    Algorithms that do not solve the problem are listed with the reason. Ctrl-C ends the comparison, and the results so
    far are printed. Exit code 3 if an algorithm ended above the tolerance.

    Parameters
    ----------
    tol : float, default=0.001
        Certified relative gap at which an algorithm ends.
    max_iter : int, default=1000
        Maximum number of epochs of each algorithm.
    max_time : float
        Time limit of each algorithm in seconds.
    algorithms : str
        Names separated by commas, as in dcd,mpu,pumma; by default all.
    csv : Path
        Write every report of every algorithm to this file.
    picture : Path
        Draw margins or objectives against updates and time, as .png, .pdf or .svg.
    quiet : bool
        Print no progress line and no table.
    """
    from ..numerics.files import check_place
    from .data import read_labelled
    from .display import PictureFile, Progress

    if csv is not None:
        check_place(csv, data)
    drawn = None if picture is None else PictureFile(picture, data, *([] if csv is None else [csv]))
    hard = isinf(parameters.get("C", 1.0))
    names = None if algorithms is None else [name.strip() for name in algorithms.split(",")]
    with Progress("margin" if hard else "objective", quiet) as progress:
        table = read_labelled(data, n_features, columns)

        from ..fit.deadline import result_of
        from ..inspection.compare import compare as run_algorithms

        comparison = result_of(
            partial(run_algorithms, table.X, table.y, names, callback=progress, **parameters)
        )
    if csv is not None:
        comparison.to_csv(csv)
    if drawn is not None and comparison.entries:
        comparison.plot(drawn.figure.subplots(1, 2))
        drawn.save()
    facts = _facts(comparison) | {"csv": csv, "picture": picture}
    return Result(facts, [comparison.table()], 0 if comparison.certified else STOPPED)


def _facts(comparison: Any) -> dict[str, Any]:
    """Return the table of a comparison as plain values."""
    from .words import problem_facts

    entries = []
    for entry in comparison.entries:
        one, names = entry.run, ("lower", "upper", "margin", "objective")
        facts = {
            "algorithm": entry.algorithm,
            "class": entry.label,
            "status": one.status.value,
            "gap": entry.gap,
        }
        facts |= {name: getattr(one, name) for name in names}
        entries.append(facts | {"updates": one.n_updates, "epochs": one.n_epochs, "seconds": entry.seconds})
    facts = {"problem": problem_facts(comparison.problem), "tol": comparison.tol}
    return facts | {"algorithms": entries, "refused": comparison.refused}
