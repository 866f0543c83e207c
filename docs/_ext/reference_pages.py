"""Generator of the reference: tables of all public names of the package, of `maxmargin.plots` and of the bounds."""

from __future__ import annotations

import inspect
from importlib import import_module
from pathlib import Path
from typing import Any

from algorithm_pages import heading

import maxmargin
from maxmargin import plots
from maxmargin.algorithms import ALGORITHMS, bounds

# By the module that defines a name, or by a package for all its modules.
SECTIONS = {
    "Classifiers": (
        "estimators.linear",
        "estimators.kernel",
        "estimators.prediction",
        "estimators.online",
        "estimators.path",
        "estimators.selection",
    ),
    "Certificates and verdicts": ("certificates", "separability"),
    "Fits, comparisons and reports": ("fit", "inspection", "problem", "estimators.explanation"),
    "Model files": ("io",),
}
# What functions return and callbacks get, by the module that defines it.
RESULTS = {
    "certificates.certificate": ["Certificates"],
    "certificates.verdicts": ["Separable"],
    "estimators.explanation": ["SupportReport"],
    "estimators.path": ["MarginPath"],
    "fit.report": ["Report"],
    "inspection.compare": ["Comparison"],
}


def write_page(app: Any) -> None:
    path = Path(app.srcdir) / "api" / "index.rst"
    path.parent.mkdir(exist_ok=True)
    text = page()
    if not path.exists() or path.read_text(encoding="utf-8") != text:
        path.write_text(text, encoding="utf-8")


def page() -> str:
    names = maxmargin.__all__
    parts = [
        heading("Reference"),
        "The public names of ``maxmargin``, the displays of ``maxmargin.plots`` and the command line. Names that begin",
        "with an underscore, and modules that are not listed here, may change without notice.",
        "",
    ]
    for words, modules in SECTIONS.items():
        found = [name for name in names if _is_of(name, modules)]
        names = [name for name in names if name not in found]
        parts += [heading(words, "-"), *_summaries("maxmargin", found)]
    if names:
        parts += [heading("Further", "-"), *_summaries("maxmargin", names)]
    parts += [heading("Results of these functions and methods", "-")]
    for module, found in RESULTS.items():
        parts += _summaries(f"maxmargin.{module}", found)
    displays = [
        name for name in dir(plots) if inspect.isclass(getattr(plots, name)) and name.endswith("Display")
    ]
    parts += [heading("Displays", "-"), *_summaries("maxmargin.plots", displays)]
    parts += [
        heading("Algorithms", "-"),
        "Values of the parameter ``algorithm``: an object, or its name. :doc:`Each has a page </algorithm/index>`.",
        "",
        ".. list-table::",
        "   :class: algorithms",
        "",
    ]
    for name, cls in ALGORITHMS.items():
        parts += [f"   * - :py:class:`~maxmargin.algorithms.{cls.__name__}`", f"     - ``{name}``"]
    parts += [
        "",
        heading("Bounds before the run", "-"),
        "The theorems of the papers, as functions of R (the largest norm of a pattern), of a margin and of",
        "the parameters of an algorithm.",
        "",
        *_summaries(
            bounds.__name__, [name for name, one in vars(bounds).items() if _is_public_function(one)]
        ),
    ]
    parts += ["", heading("Command line", "-"), ":doc:`All commands and their options <commands>`.", ""]
    return "\n".join(parts)


def _is_public_function(one: Any) -> bool:
    """Return whether an object is a public function of the module of the bounds."""
    return inspect.isfunction(one) and one.__module__ == bounds.__name__ and not one.__name__.startswith("_")


def _is_of(name: str, modules: tuple[str, ...]) -> bool:
    """Return whether one of the modules, or a module inside one of them, defines the name."""
    home = getattr(maxmargin, name).__module__.removeprefix("maxmargin.")
    return any(f"{home}.".startswith(f"{module}.") for module in modules)


def _summaries(module: str, names: list[str]) -> list[str]:
    """Return a table of classes and a table of functions, which have different templates of autosummary."""
    lines = [f".. currentmodule:: {module}", ""]
    thing = import_module(module)
    for template, is_one in (("class", inspect.isclass), ("function", inspect.isfunction)):
        found = [name for name in names if is_one(getattr(thing, name))]
        if found:
            lines += [".. autosummary::", "   :toctree:", f"   :template: {template}.rst", ""]
            lines += [*(f"   {name}" for name in found), ""]
    return lines


def setup(app: Any) -> dict[str, Any]:
    # before autosummary, which writes a page for each name
    app.connect("builder-inited", write_page, priority=110)
    return {"parallel_read_safe": True}
