"""One page for each algorithm: the problems that it solves, its docstring, and a picture of a run.

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

# Symbols of the docstrings as regular expressions, with their meanings.
SYMBOLS = {
    r"x_i\b": "x_i is a row, y_i its label",
    r"\bl_k\b": "x_k is a row, l_k its label",
    r"\by_k\b|w\.y_i\b": "a pattern y is a row multiplied by its label",
    r"\b[nd]\b(?! =)": "n is the number of rows, d that of features",
    r"\bs_[ik]\b": "s is the sample weight of a row",
    r"\bR\b": "R is the largest norm of a pattern",
    r"\bgamma_d\b": "gamma_d is the largest directional margin",
    r"\blink\b": "the link f is the gradient of half of the squared q-norm, with 1/p + 1/q = 1",
    r"\bdelta_k\b": "delta_k^2 = 1 / (2 C s_k), with the sample weight s_k, and 0 for the hard margin",
}

# modules with the steps of algorithms that have no rule for a single pattern
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
    """An algorithm whose steps use all patterns, and which is not in the registry."""

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
    """Write every page, and each picture that is older than its sources."""
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
    """Write the text if it differs from the file, so that Sphinx reads no unchanged page again."""
    if not path.exists() or path.read_text(encoding="utf-8") != text:
        path.write_text(text, encoding="utf-8")


def summary(thing: Any) -> str:
    """Return the summary of a docstring in one line."""
    return inspect.getdoc(thing).split("\n\n")[0].replace("\n", " ")


def title(cls: type) -> str:
    """Return the name of the algorithm, with which the summary of its docstring begins."""
    return re.split(r"[:;,.](?= )|\.$", summary(cls))[0]


def headed(text: str, sign: str = "=") -> str:
    return f"{text}\n{sign * len(text)}\n"


def rule_page(name: str, cls: type[Algorithm]) -> str:
    source = Path(inspect.getfile(cls)).relative_to(ROOT)
    parts = [
        headed(name if title(cls).lower().startswith(name) else f"{name}: {title(cls)}"),
        f".. image:: pictures/{name}.svg\n"
        f"   :alt: The line of {name}, and the certified bounds, after each round.\n"
        "   :class: algorithm-picture\n",
        pictures.caption(cls) + "\n",
        solves(cls),
        headed("Definition", "-"),
        notation(cls),
        f".. autoclass:: maxmargin.{cls.__name__}\n   :no-members:\n",
        headed("Use", "-"),
        in_use(name, cls),
        headed("Source", "-"),
    ]
    rule = type(planned(cls).rule)
    if name not in SOLVERS:
        module = Path(inspect.getfile(rule)).relative_to(ROOT)
        parts.append(f".. literalinclude:: ../../{module}\n   :pyobject: {rule.__name__}\n")
        parts.append(
            f"``{source}`` computes the parameters of this record. Storage, order of the rows, bounds and stopping are "
            "common to all algorithms: :doc:`/explanation/architecture`.\n"
        )
    else:
        parts.append(
            "Each step uses all patterns, so there is no rule for a single pattern. The steps are in "
            f"``{SOLVERS[name].__name__}``:\n"
        )
        parts.append(f".. automodule:: {SOLVERS[name].__name__}\n   :no-members:\n")
    return "\n".join(parts)


def notation(cls: type[Algorithm]) -> str:
    """Return the meaning of the symbols that occur in the docstring of an algorithm."""
    text = (inspect.getdoc(cls) or "").partition("\nReferences\n")[0]
    found = [meaning for symbol, meaning in SYMBOLS.items() if re.search(symbol, text)]
    return f"Notation: {'; '.join(found)}.\n"


def planned(cls: type[Algorithm]) -> Plan:
    """Return the plan of the algorithm for the problem of its picture."""
    options = pictures.question(cls)
    problem = Problem(options.get("loss", "squared_hinge"), options["C"], p=options.get("p", 2.0))
    return cls().plan(Facts(problem, radius2=1.0, tol=1e-3, floor=lambda: 0.1, n=100, d=2))


def solves(cls: type[Algorithm]) -> str:
    """Return the table of the problems that the algorithm solves, and its properties as a list."""
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
        ".. list-table:: Problems that it solves",
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
            else "no, it visits patterns more than once."
        ),
        "* Schedules: " + ", ".join(f"``{schedule}``" for schedule in cls.schedules) + ".",
    ]
    return "\n".join([*table, "", *facts, ""])


def in_use(name: str, cls: type[Algorithm]) -> str:
    """Return the lines that create the classifier of the picture."""
    options = pictures.question(cls)
    words = ", ".join(f"{key}={_word(value)}" for key, value in options.items())
    return (
        ".. code-block:: python\n\n"
        f"   from maxmargin import {', '.join(sorted([cls.__name__, 'MaxMarginClassifier'], key=str.lower))}\n\n"
        f"   MaxMarginClassifier(algorithm={name!r}{', ' + words if words else ''})  # by its name\n"
        f"   MaxMarginClassifier(algorithm={cls.__name__}()"
        f"{', ' + words if words else ''})  # or as an object, whose parameters can be set\n\n"
        "On the command line: ``maxmargin fit DATA -o MODEL --algorithm " + name + "``.\n"
    )


def _word(value: Any) -> str:
    return 'float("inf")' if value == float("inf") else repr(value)


def batch_page(batch: Batch) -> str:
    parts = [
        headed(batch.title),
        f".. image:: pictures/{batch.slug}.svg\n   :alt: A run of: {batch.title}.\n   :class: algorithm-picture\n",
        f".. automodule:: {batch.module.__name__}\n   :no-members:\n",
    ]
    parts += [
        f".. autofunction:: {function.__module__}.{function.__name__}\n" for function in batch.functions
    ]
    return "\n".join(parts)


def index() -> str:
    lines = [
        headed("Pages of the algorithms"),
        "Each page has the docstring of the class, and a picture of a run. :doc:`/reference/algorithms` compares the",
        "algorithms.",
        "",
    ]
    for words, names in (
        ("Steps on single patterns", [name for name in ALGORITHMS if name not in SOLVERS]),
        ("Steps on all patterns", list(SOLVERS)),
    ):
        lines += [headed(words, "-"), ".. list-table::", "   :class: algorithms", "   :widths: 22 78", ""]
        for name in names:
            lines += [f"   * - :doc:`{name} <{name}>`", f"     - {escaped(summary(ALGORITHMS[name]))}"]
        lines += [""]
    lines += [headed("Used by other parts of the library", "-"), ".. list-table::", "   :class: algorithms"]
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
