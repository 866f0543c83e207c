"""One page for every algorithm: what it solves is asked of it, the text is its docstring, the picture is a run.

The pages, and the table of them, are written to docs/algorithm/ before Sphinx reads anything; they are not kept in the
repository.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import algorithm_pictures as pictures
from docstrings import escaped
from sphinx.util import logging

from maxmargin import Problem
from maxmargin.algorithms import ALGORITHMS, Algorithm, Facts, Plan
from maxmargin.algorithms.batch import (
    barrier,
    cutting_plane,
    decomposition,
    generation,
    newton,
    sifting,
)
from maxmargin.algorithms.batch import (
    proximal_point as proximal,
)
from maxmargin.algorithms.programs import Program
from maxmargin.fit.streaming import streams
from maxmargin.separability import nearest_point, normalised_perceptron, smoothed

logger = logging.getLogger(__name__)

ROOT = Path(__file__).resolve().parents[2]
NORMS = {"1": 1.0, "1.5": 1.5, "2": 2.0, "4": 4.0, "∞": float("inf")}
QUESTIONS = {
    "hard margin": ("hinge", float("inf")),
    "hinge": ("hinge", 1.0),
    "squared hinge": ("squared_hinge", 1.0),
}

# where the steps of those are that have no rule for a single pattern
SOLVERS = {
    "lp": generation,
    "barrier": barrier,
    "interior-point": sifting,
    "proximal-point": proximal,
    "newton": newton,
    "cutting-plane": cutting_plane,
}


@dataclass(frozen=True)
class Batch:
    """An algorithm that sees all patterns at every step, and has no name in the registry."""

    slug: str
    title: str
    functions: tuple[Callable[..., Any], ...]
    draw: Callable[[Path], None]

    @property
    def module(self) -> Any:
        return inspect.getmodule(self.functions[0])


BATCH = (
    Batch(
        "normalised-perceptron",
        "The normalised Perceptron and von Neumann's algorithm",
        (normalised_perceptron.normalised_perceptron, normalised_perceptron.von_neumann),
        pictures.bounds_of_iterates(
            normalised_perceptron.normalised_perceptron, normalised_perceptron.von_neumann
        ),
    ),
    Batch(
        "smoothed-perceptrons",
        "The smoothed Perceptrons",
        (
            smoothed.smoothed_perceptron,
            smoothed.perceptron_von_neumann,
            smoothed.iterated_perceptron_von_neumann,
            smoothed.excessive_gap,
        ),
        pictures.bounds_of_iterates(
            smoothed.smoothed_perceptron,
            smoothed.perceptron_von_neumann,
            smoothed.iterated_perceptron_von_neumann,
        ),
    ),
    Batch(
        "decomposition",
        "Decomposition of kernel problems",
        (decomposition.decomposed_points, decomposition.working_set),
        pictures.kernel_machine,
    ),
    Batch(
        "nearest-point",
        "The nearest point of a hull, exactly",
        (nearest_point.nearest_points,),
        pictures.nearest_point,
    ),
)


def write(app: Any) -> None:
    """Write every page and its picture, where the ones that are there are older than their sources."""
    folder = Path(app.srcdir) / "algorithm"
    (folder / "pictures").mkdir(parents=True, exist_ok=True)
    for name, cls in ALGORITHMS.items():
        source = Path(inspect.getfile(cls))
        if _is_old(folder, name, source):
            logger.info("drawing algorithm %s", name)
            pictures.path_and_bounds(cls, folder / "pictures" / f"{name}.svg")
        _keep(folder / f"{name}.rst", rule_page(name, cls))
    for batch in BATCH:
        if _is_old(folder, batch.slug, Path(batch.module.__file__)):
            logger.info("drawing algorithm %s", batch.slug)
            batch.draw(folder / "pictures" / f"{batch.slug}.svg")
        _keep(folder / f"{batch.slug}.rst", batch_page(batch))
    _keep(folder / "index.rst", index())


def _is_old(folder: Path, name: str, source: Path) -> bool:
    picture = folder / "pictures" / f"{name}.svg"
    sources = (source, Path(pictures.__file__))
    return not picture.exists() or picture.stat().st_mtime < max(path.stat().st_mtime for path in sources)


def _keep(path: Path, text: str) -> None:
    """Written only where it changed, so that Sphinx reads no page twice."""
    if not path.exists() or path.read_text(encoding="utf-8") != text:
        path.write_text(text, encoding="utf-8")


def summary(thing: Any) -> str:
    """The first sentence of a docstring."""
    return inspect.getdoc(thing).split("\n\n")[0].replace("\n", " ")


def title(cls: type) -> str:
    """What the docstring calls the algorithm, before it says what it does."""
    return re.split(r"[:;,.](?= )|\.$", summary(cls))[0]


def headed(text: str, sign: str = "=") -> str:
    return f"{text}\n{sign * len(text)}\n"


def rule_page(name: str, cls: type[Algorithm]) -> str:
    source = Path(inspect.getfile(cls)).relative_to(ROOT)
    parts = [
        headed(name if title(cls).lower().startswith(name) else f"{name}: {title(cls)}"),
        f".. image:: pictures/{name}.svg\n"
        f"   :alt: The line of {name} after each round, and the certified interval round by round.\n"
        "   :class: algorithm-picture\n",
        pictures.caption(cls) + "\n",
        solves(cls),
        headed("What it does, and what it promises", "-"),
        f".. autoclass:: maxmargin.{cls.__name__}\n   :no-members:\n",
        headed("In use", "-"),
        in_use(name, cls),
        headed("The rule in the source", "-"),
    ]
    rule = type(planned(cls).rule)
    if hasattr(rule, "step"):
        module = Path(inspect.getfile(rule)).relative_to(ROOT)
        parts.append(f".. literalinclude:: ../../{module}\n   :pyobject: {rule.__name__}\n")
        parts.append(
            f"The parameters of a problem become those of this record in ``{source}``; storage, order, bounds and "
            "stopping are common to all algorithms: :doc:`/explanation/architecture`.\n"
        )
    else:
        parts.append(
            "It sees all patterns at every step, so that there is no rule for a single one. What follows is the "
            f"introduction of ``{SOLVERS[name].__name__}``, where its steps are.\n"
        )
        parts.append(f".. automodule:: {SOLVERS[name].__name__}\n   :no-members:\n")
    return "\n".join(parts)


def planned(cls: type[Algorithm]) -> Plan:
    """What the algorithm makes of the problem of its picture."""
    options = pictures.question(cls)
    problem = Problem(options.get("loss", "squared_hinge"), options["C"], p=options.get("p", 2.0))
    return cls().plan(Facts(problem, radius2=1.0, tol=1e-3, floor=lambda: 0.1, n=100, d=2))


def solves(cls: type[Algorithm]) -> str:
    """Which problems the algorithm takes, in its own answers."""
    algorithm = cls()
    rows = []
    for words, (loss, C) in QUESTIONS.items():
        cells = []
        for p in NORMS.values():
            whole = algorithm.refuses(Problem(loss, C, p=p)) is None
            first = not whole and algorithm.refuses(Problem(loss, C, p=p, power=1)) is None
            cells.append("yes" if whole else "with ``norm_power=1``" if first else "–")
        rows.append((words, *cells))
    head = ("", *(f"p = {p}" for p in NORMS))
    table = [
        ".. list-table:: What it solves",
        "   :header-rows: 1",
        "   :stub-columns: 1",
        "   :class: solves",
        "",
    ]
    for row in (head, *rows):
        table += [f"   {'* -' if k == 0 else '  -'} {cell}" for k, cell in enumerate(row)]
    facts = [
        f"* A free intercept: {cls.bias.value}.",
        "* Kernels: "
        + ("yes, in :class:`~maxmargin.KernelMaxMarginClassifier`." if cls.kernelised else "no."),
        "* Streams: "
        + (
            "yes, in :class:`~maxmargin.OnlineMarginClassifier`."
            if streams(cls)
            else "no, it needs patterns again."
        ),
        "* Schedules: " + ", ".join(f"``{schedule}``" for schedule in cls.schedules) + ".",
    ]
    return "\n".join([*table, "", *facts, ""])


def in_use(name: str, cls: type[Algorithm]) -> str:
    """The lines that made the picture."""
    options = pictures.question(cls)
    words = ", ".join(f"{key}={_word(value)}" for key, value in options.items())
    return (
        ".. code-block:: python\n\n"
        f"   from maxmargin import {', '.join(sorted([cls.__name__, 'MaxMarginClassifier'], key=str.lower))}\n\n"
        f"   MaxMarginClassifier(algorithm={name!r}{', ' + words if words else ''})  # by its name\n"
        f"   MaxMarginClassifier(algorithm={cls.__name__}()"
        f"{', ' + words if words else ''})  # or as an object, with parameters of its own\n\n"
        "On the command line ``maxmargin fit DATA -o MODEL --algorithm " + name + "`` takes it by its name.\n"
    )


def _word(value: Any) -> str:
    return 'float("inf")' if value == float("inf") else repr(value)


def batch_page(batch: Batch) -> str:
    parts = [
        headed(batch.title),
        f".. image:: pictures/{batch.slug}.svg\n   :alt: {batch.title} at work.\n   :class: algorithm-picture\n",
        f".. automodule:: {batch.module.__name__}\n   :no-members:\n",
    ]
    parts += [
        f".. autofunction:: {function.__module__}.{function.__name__}\n" for function in batch.functions
    ]
    return "\n".join(parts)


def index() -> str:
    lines = [
        headed("One page an algorithm"),
        "Condition, update, guarantee and references are those of the docstrings; each picture was drawn by running",
        "the algorithm when these pages were built. :doc:`/reference/algorithms` sets them beside each other.",
        "",
    ]
    for words, names in (
        ("Incremental", [name for name, cls in ALGORITHMS.items() if not issubclass(cls, Program)]),
        (
            "All patterns at every step",
            [name for name, cls in ALGORITHMS.items() if issubclass(cls, Program)],
        ),
    ):
        lines += [headed(words, "-"), ".. list-table::", "   :class: algorithms", "   :widths: 22 78", ""]
        for name in names:
            lines += [f"   * - :doc:`{name} <{name}>`", f"     - {escaped(summary(ALGORITHMS[name]))}"]
        lines += [""]
    lines += [headed("Behind other parts of the library", "-"), ".. list-table::", "   :class: algorithms"]
    lines += ["   :widths: 22 78", ""]
    for batch in BATCH:
        lines += [f"   * - :doc:`{batch.title} <{batch.slug}>`", f"     - {escaped(summary(batch.module))}"]
    lines += ["", ".. toctree::", "   :hidden:", ""]
    lines += [f"   {name} <{name}>" for name in ALGORITHMS]
    lines += [f"   {batch.title} <{batch.slug}>" for batch in BATCH]
    return "\n".join([*lines, ""])


def setup(app: Any) -> dict[str, Any]:
    app.connect("builder-inited", write, priority=100)
    return {"parallel_read_safe": True}
