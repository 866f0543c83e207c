"""Generator of one page for each algorithm: a picture of a run, the supported problems and the docstring.

The pages and their index are written to docs/algorithm/ before Sphinx reads its sources. They are not kept in the
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
from formulas import typeset
from sphinx.util import logging

from maxmargin import Problem
from maxmargin.algorithms import ALGORITHMS, Algorithm, Facts
from maxmargin.algorithms.normalised import perceptron as normalised
from maxmargin.algorithms.normalised import smoothed
from maxmargin.algorithms.normalised.base import NormalisedAlgorithm
from maxmargin.estimators.online import streams
from maxmargin.separability import search
from maxmargin.solvers import decomposition, generation, interior_point, l1, semismooth

logger = logging.getLogger(__name__)

ROOT = Path(__file__).resolve().parents[2]
NORMS = {"1": 1.0, "1.5": 1.5, "2": 2.0, "4": 4.0, "∞": float("inf")}
PROBLEMS = {
    "hard margin": ("hinge", float("inf")),
    "hinge": ("hinge", 1.0),
    "squared hinge": ("squared_hinge", 1.0),
}

# Symbols of the docstrings as regular expressions, with their meanings.
SYMBOLS = {
    r"x_i\b": "x_i is a row, y_i its label",
    r"\bl_k\b": "x_k is a row, l_k its label",
    r"\by_k\b|w\.y_i\b": "a pattern y is a row multiplied by its label",
    r"\b[nd]\b(?! =)": "n is the number of rows, d the number of features",
    r"\bs_[ik]\b": "s is the sample weight of a row",
    r"\ba\.y_k": "a is the weight vector, of which w is a multiple",
    r"\bu\.y_k": "u is the weight vector, divided by its norm",
    r"\balpha_[ik]\b": "alpha with an index is a dual variable",
    r"\bR\b": "R is the largest norm of a pattern",
    "normalised margin": "the normalised margin is that of the patterns divided by their lengths, constant coordinate "
    "included",
    r"\bgamma_d\b": "gamma_d is the largest directional margin",
    r"\blink\b": "the link f is the gradient of half of the squared q-norm, with 1/p + 1/q = 1",
    r"\b1-norm soft": "the 1-norm soft margin has the hinge loss",
    r"\b2-norm soft|extended space": "the 2-norm soft margin (squared hinge) is a hard margin of patterns with one "
    "slack coordinate each, delta_k for pattern k",
    r"\bdelta_[ik]\b": "delta_k^2 = 1 / (2 C s_k), with the sample weight s_k, and 0 for the hard margin",
}

# The modules of the batch algorithms, which have no update rule for a single pattern.
SOLVERS = {
    "lp": generation,
    "interior-point": interior_point,
    "proximal-point": semismooth,
    "newton": semismooth,
    "proximal-newton": l1,
    "normalised-perceptron": normalised,
    "von-neumann": normalised,
    "smoothed-perceptron": smoothed,
    "smoothed-primal-dual": smoothed,
    "iterated-smoothed-primal-dual": smoothed,
}


@dataclass(frozen=True)
class InternalAlgorithm:
    """Batch algorithm that other functions of the library use, without a name in the registry."""

    slug: str
    title: str
    functions: tuple[Callable[..., Any], ...]
    draw: Callable[[Path], None]

    @property
    def module(self) -> Any:
        return inspect.getmodule(self.functions[0])


INTERNAL = (
    InternalAlgorithm(
        "decomposition",
        "Decomposition of kernel problems",
        (decomposition.decomposed_points, decomposition.working_set),
        pictures.kernel_machine,
    ),
    InternalAlgorithm(
        "nearest-point",
        "Nearest point of a convex hull in exact arithmetic",
        (search.nearest_points,),
        pictures.nearest_point,
    ),
)


def write_pages(app: Any) -> None:
    """Write every page, and draw each picture that is missing or older than its sources."""
    folder = Path(app.srcdir) / "algorithm"
    (folder / "pictures").mkdir(parents=True, exist_ok=True)
    for name, cls in ALGORITHMS.items():
        source = Path(inspect.getfile(cls))
        if _is_old(folder, name, source):
            logger.info("drawing algorithm %s", name)
            draw = (
                pictures.bounds_of_steps if issubclass(cls, NormalisedAlgorithm) else pictures.path_and_bounds
            )
            draw(cls, folder / "pictures" / f"{name}.svg")
        _write_if_changed(folder / f"{name}.rst", rule_page(name, cls))
    for internal in INTERNAL:
        if _is_old(folder, internal.slug, Path(internal.module.__file__)):
            logger.info("drawing algorithm %s", internal.slug)
            internal.draw(folder / "pictures" / f"{internal.slug}.svg")
        _write_if_changed(folder / f"{internal.slug}.rst", internal_page(internal))
    _write_if_changed(folder / "index.rst", index())


def _is_old(folder: Path, name: str, source: Path) -> bool:
    picture = folder / "pictures" / f"{name}.svg"
    sources = (source, Path(pictures.__file__))
    return not picture.exists() or picture.stat().st_mtime < max(path.stat().st_mtime for path in sources)


def _write_if_changed(path: Path, text: str) -> None:
    """Write a file if its text changed, so that Sphinx rebuilds only pages that changed."""
    if not path.exists() or path.read_text(encoding="utf-8") != text:
        path.write_text(text, encoding="utf-8")


def summary(thing: Any) -> str:
    """Return the first paragraph of a docstring."""
    return inspect.getdoc(thing).split("\n\n")[0].replace("\n", " ")


def title(cls: type) -> str:
    """Return the name of an algorithm: the beginning of its docstring, up to the first punctuation mark."""
    return re.split(r"[:;,.](?= )|\.$", summary(cls))[0]


def heading(text: str, sign: str = "=") -> str:
    return f"{text}\n{sign * len(text)}\n"


def rule_page(name: str, cls: type[Algorithm]) -> str:
    source = Path(inspect.getfile(cls)).relative_to(ROOT)
    parts = [
        heading(name if title(cls).lower().startswith(name) else f"{name}: {title(cls)}"),
        f".. image:: pictures/{name}.svg\n   :alt: A run of {name} on two species of iris.\n"
        "   :class: algorithm-picture\n",
        pictures.caption(cls) + "\n",
        supported_problems(cls),
        heading("Definition and guarantee", "-"),
        notation(cls),
        f".. autoclass:: maxmargin.algorithms.{cls.__name__}\n   :no-members:\n",
        heading("Usage", "-"),
        usage(name, cls),
        heading("Implementation", "-"),
    ]
    rule = update_rule(cls)
    if name not in SOLVERS:
        module = Path(inspect.getfile(rule)).relative_to(ROOT)
        parts.append(f".. literalinclude:: ../../{module}\n   :pyobject: {rule.__name__}\n")
        parts.append(
            f"``{source}`` computes the fields of this record from the problem. Storage, order of the rows, bounds and "
            "stopping are common to all algorithms: :doc:`/explanation/architecture`.\n"
        )
    else:
        parts.append(
            "Every step uses all patterns, so that there is no update rule for a single pattern. The steps are in "
            f"the module ``{SOLVERS[name].__name__}``, whose docstring follows.\n"
        )
        parts.append(f".. automodule:: {SOLVERS[name].__name__}\n   :no-members:\n   :no-index:\n")
    return "\n".join(parts)


def notation(cls: type[Algorithm]) -> str:
    """Return the meanings of the symbols in the docstring of an algorithm."""
    text = (inspect.getdoc(cls) or "").partition("\nReferences\n")[0]
    found = [meaning for symbol, meaning in SYMBOLS.items() if re.search(symbol, text)]
    return typeset(f"Notation: {'; '.join(found)}.") + "\n"


def update_rule(cls: type[Algorithm]) -> type:
    """Return the class of the algorithm's rule for the problem of its picture."""
    options = pictures.problem_options(cls)
    problem = Problem(options.get("loss", "squared_hinge"), options["C"], p=options.get("p", 2.0))
    return type(cls().plan(Facts(problem, radius2=1.0, tol=1e-3, floor=lambda: 0.1, n=100, d=2)).rule)


def supported_problems(cls: type[Algorithm]) -> str:
    """Return a table of the problems that the algorithm solves, and a list of its other properties."""
    algorithm = cls()
    rows = []
    for words, (loss, C) in PROBLEMS.items():
        cells = []
        for p in NORMS.values():
            whole = algorithm.refuses(Problem(loss, C, p=p)) is None
            first = not whole and algorithm.refuses(Problem(loss, C, p=p, power=1)) is None
            cells.append("yes" if whole else "with ``norm_power=1``" if first else "–")
        rows.append((words, *cells))
    head = ("", *(f"p = {p}" for p in NORMS))
    table = [
        ".. list-table:: Supported problems",
        "   :header-rows: 1",
        "   :stub-columns: 1",
        "   :class: solves",
        "",
    ]
    for row in (head, *rows):
        table += [f"   {'* -' if k == 0 else '  -'} {cell}" for k, cell in enumerate(row)]
    facts = [
        f"* Free intercept: {cls.bias.value}.",
        "* Kernels: "
        + ("yes, in :class:`~maxmargin.KernelMaxMarginClassifier`." if cls.kernelised else "no."),
        "* Streams: "
        + (
            "yes, in :class:`~maxmargin.OnlineMarginClassifier`."
            if streams(cls)
            else "no, it needs several passes over the rows."
        ),
        "* Values of ``schedule``: " + ", ".join(f"``{schedule}``" for schedule in cls.schedules) + ".",
    ]
    return "\n".join([*table, "", *facts, ""])


def usage(name: str, cls: type[Algorithm]) -> str:
    """Return the constructor calls for the problem of the picture, and the option of the command line."""
    arguments = "".join(f", {key}={_literal(value)}" for key, value in pictures.problem_options(cls).items())
    return (
        ".. code-block:: python\n\n"
        f"   from maxmargin import MaxMarginClassifier\n   from maxmargin.algorithms import {cls.__name__}\n\n"
        f"   # by name\n   MaxMarginClassifier(algorithm={_literal(name)}{arguments})\n"
        f"   # as an object, which takes the parameters above\n"
        f"   MaxMarginClassifier(algorithm={cls.__name__}(){arguments})\n\n"
        f"On the command line: ``maxmargin fit DATA -o MODEL --algorithm {name}``.\n"
    )


def _literal(value: Any) -> str:
    """Return a value as Python source."""
    if isinstance(value, str):
        return f'"{value}"'
    return 'float("inf")' if value == float("inf") else repr(value)


def internal_page(internal: InternalAlgorithm) -> str:
    parts = [
        heading(internal.title),
        f".. image:: pictures/{internal.slug}.svg\n   :alt: {internal.title}: a run on two features of iris.\n"
        "   :class: algorithm-picture\n",
        f".. automodule:: {internal.module.__name__}\n   :no-members:\n",
    ]
    parts += [
        f".. autofunction:: {function.__module__}.{function.__name__}\n" for function in internal.functions
    ]
    return "\n".join(parts)


def index() -> str:
    lines = [
        heading("Algorithm pages"),
        "Each page has the supported problems, condition, update, guarantee and references of one algorithm, and a",
        "picture of a run on two features of iris. :doc:`/reference/algorithms` compares the algorithms.",
        "",
    ]
    incremental = [name for name in ALGORITHMS if name not in SOLVERS]
    for title, names in (("Incremental algorithms", incremental), ("Batch algorithms", list(SOLVERS))):
        pages = [(name, name, ALGORITHMS[name]) for name in names]
        lines += [heading(title, "-"), *_table(pages)]
    lines += [heading("Algorithms inside other functions", "-")]
    lines += _table([(internal.title, internal.slug, internal.module) for internal in INTERNAL])
    lines += [".. toctree::", "   :hidden:", ""]
    lines += [f"   {name} <{name}>" for name in ALGORITHMS]
    lines += [f"   {internal.title} <{internal.slug}>" for internal in INTERNAL]
    return "\n".join([*lines, ""])


def _table(pages: list[tuple[str, str, Any]]) -> list[str]:
    """Return a table of links to pages and the first sentences of docstrings."""
    rows = [
        line
        for words, page, thing in pages
        for line in (f"   * - :doc:`{words} <{page}>`", f"     - {typeset(summary(thing))}")
    ]
    return [".. list-table::", "   :class: algorithms", "   :widths: 22 78", "", *rows, ""]


def setup(app: Any) -> dict[str, Any]:
    app.connect("builder-inited", write_pages, priority=100)
    return {"parallel_read_safe": True}
