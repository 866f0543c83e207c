"""maxmargin compare: algorithms on the same data, side by side."""

from __future__ import annotations

from dataclasses import fields
from functools import partial
from math import isinf
from pathlib import Path
from typing import TYPE_CHECKING, Any

from .options import STOPPED, ColumnOptions, Result, command

if TYPE_CHECKING:
    from ..inspection.compare import Comparison
    from ..readers import Table


@command(
    "C", "loss", "p", "norm_power", "tol", "fit_intercept", "intercept", "intercept_scaling", "class_weight",
    "point", "max_iter", "max_time", "seed",
)  # fmt: skip
def compare(
    data: Path,
    *,
    algorithms: str | None = None,
    n_features: int | None = None,
    columns: ColumnOptions,
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
    tol : float
        Certified relative gap at which an algorithm ends.
    max_iter : int
        Maximum number of rounds of each algorithm.
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
    drawn = None if picture is None else PictureFile(picture, data)
    hard = isinf(parameters["C"])
    names = None if algorithms is None else _names(algorithms)
    with Progress("margin" if hard else "objective", parameters["tol"], quiet=quiet) as progress:
        table = read_labelled(data, n_features, columns, exact=hard)

        from ..engine.jit import COMPILATION
        from ..fit.deadline import result_of
        from ..inspection.compare import compare as run_algorithms
        from .words import message

        comparison = result_of(
            partial(run_algorithms, table.X, table.y, names, callback=progress, **parameters)
        )
    if csv is not None:
        comparison.to_csv(csv)
    if drawn is not None and comparison.entries:
        comparison.plot(drawn.figure.subplots(1, 2))
        drawn.save()
    files = {"csv": csv and str(csv), "picture": picture and str(picture)}
    lines, seconds = [comparison.table(partial(message, table=table))], comparison.compile_seconds
    if seconds:
        lines.append(f"(the table leaves out {seconds:.1f} s of compilation {COMPILATION.purpose})")
    return Result(_facts(comparison, table) | files, lines, 0 if comparison.certified else STOPPED)


def _names(algorithms: str) -> list[str]:
    """Return the names of ``--algorithms``; raise ValueError where one is unknown, or none is named."""
    from ..algorithms import ALGORITHMS

    names = [name for name in map(str.strip, algorithms.split(",")) if name]
    unknown = [name for name in names if name not in ("auto", *ALGORITHMS)]
    if unknown or not names:
        known = ", ".join(ALGORITHMS)
        raise ValueError(
            f"--algorithms takes names separated by commas, of {known}; got {', '.join(unknown) or 'none'}"
        )
    return names


def _facts(comparison: Comparison, table: Table) -> dict[str, Any]:
    """Return the table of a comparison as plain values."""
    from .words import message, problem_facts

    entries = []
    for entry in comparison.entries:
        facts = {field.name: getattr(entry, field.name) for field in fields(entry) if field.name != "history"}
        words = message(comparison.models[entry.algorithm], table)
        entries.append(facts | {"status": entry.status.value, "class": facts.pop("label"), "message": words})
    facts = {"problem": problem_facts(comparison.problem), "tol": comparison.tol}
    facts["compile_seconds"] = comparison.compile_seconds
    return facts | {"algorithms": entries, "refused": comparison.refused}
