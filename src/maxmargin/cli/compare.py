"""maxmargin compare: algorithms on the same data, side by side."""

from __future__ import annotations

from functools import partial
from math import isinf
from pathlib import Path
from typing import Any

from .options import STOPPED, Result


def compare(
    data: Path,
    *,
    algorithms: str | None = None,
    n_features: int | None = None,
    columns: Any,
    csv: Path | None = None,
    **parameters: Any,
) -> Result:
    """Run algorithms on the same problem, data and seed, and compare their results.

    Algorithms that do not solve the problem are listed with the reason. Ctrl-C ends the comparison, and the results
    so far are printed. Exit code 3 if an algorithm ended above the tolerance.
    """
    from ..numerics.files import check_place
    from .data import read_labelled
    from .display import Progress

    if csv is not None:
        check_place(csv, data)
    hard = isinf(parameters.get("C", 1.0))
    names = None if algorithms is None else [name.strip() for name in algorithms.split(",")]
    with Progress("margin" if hard else "objective") as progress:
        table = read_labelled(data, n_features, columns)

        from ..fit.deadline import result_of
        from ..inspection.compare import compare as run_algorithms

        comparison = result_of(
            partial(run_algorithms, table.X, table.y, names, callback=progress, **parameters)
        )
    if csv is not None:
        comparison.to_csv(csv)
    facts = _facts(comparison) | {"csv": csv}
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
