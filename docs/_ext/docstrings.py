"""Conversion of docstrings, which are plain text with formulas in ASCII, to reStructuredText.

In every docstring, characters that are markup in reStructuredText are escaped: `|w|_q`, `coef_` and `a * b` are a norm,
a name and a product. The docstrings on the algorithm pages also get typeset formulas, a paragraph for each of
condition, update and guarantee, and a list of references.
"""

from __future__ import annotations

import re
from typing import Any

from formulas import typeset

from maxmargin.algorithms import Algorithm

_MARKS = re.compile(r"``.*?``|`[^`]*`_?|(?P<bar>\|)|(?P<star>(?<!\*)\*(?!\*))|(?P<tail>(?<=\w)_(?![\w]))")
_STATEMENTS = re.compile(
    r"(?:^|(?<=[.;)] ))(Condition|Update|Iteration|Model|2-norm soft margin|Guarantee)([^:.]{0,60}):", re.M
)
_SECTION = re.compile(r"^(?=\S.*\n-{3,}$)", re.M)
_NEXT_REFERENCE = re.compile(r"; (?=[A-Z][a-z]?\.[ -])")  # initials follow


def escape(line: str) -> str:
    """Escape bars, stars and trailing underscores in a line of a docstring."""
    return _MARKS.sub(lambda match: match[0] if match[0].startswith("`") else f"\\{match[0]}", line)


def escape_lines(lines: list[str]) -> list[str]:
    """Escape the lines of a docstring, except for examples, literal blocks and the heads of parameters."""
    result: list[str] = []
    literal: int | None = None
    for line in lines:
        indent = len(line) - len(line.lstrip())
        if literal is not None and line.strip() and indent <= literal:
            literal = None
        is_head = re.match(r"\*{0,2}\w[\w, *]* : ", line) is not None and indent == 0
        if literal is not None or line.lstrip().startswith(">>>") or is_head:
            result.append(line)
        else:
            result.append(escape(line))
        if literal is None and line.rstrip().endswith("::"):
            literal = indent
        if line.lstrip().startswith(">>>"):
            literal = indent - 1  # to the end of the example: examples come last
    return result


def algorithm_text(text: str) -> str:
    """Convert the docstring of an algorithm: formulas in the text, and one item for each reference."""
    head, *sections = _SECTION.split(text)
    paragraphs: list[str] = []
    for paragraph in head.strip("\n").split("\n\n"):
        if not paragraph.startswith(" "):
            paragraphs.append(_statements(" ".join(paragraph.split("\n"))))
            continue
        if paragraphs[-1].endswith("::"):  # a formula of its own, which is not Python
            paragraphs[-1] = re.sub(r" ::$|:$", "", paragraphs[-1])
            paragraphs.append(".. code-block:: text")
        paragraphs.append(paragraph)
    return "\n\n".join(["\n\n".join(paragraphs), *(_section(section) for section in sections), ""])


def _statements(paragraph: str) -> str:
    """Return a paragraph with condition, update and guarantee as paragraphs of their own, formulas typeset."""
    return typeset(_STATEMENTS.sub(lambda match: f"\n\n**{match[1]}**{match[2]}:", paragraph))


def _section(section: str) -> str:
    if not section.startswith("References\n"):
        return "\n".join(escape_lines(section.strip("\n").split("\n")))
    title, line, *lines = section.strip("\n").split("\n")
    items = _NEXT_REFERENCE.split(" ".join(lines))
    return "\n".join([title, line, *(f"* {_without_enumerator(escape(item.strip()))}" for item in items)])


def _without_enumerator(text: str) -> str:
    """Escape the initial "C." at the beginning of a line, which reStructuredText would read as item C of a list."""
    return re.sub(r"^(?=[A-Za-z]\. )", r"\\", text)


def on_docstring(app: Any, what: str, name: str, thing: Any, options: Any, lines: list[str]) -> None:
    is_algorithm = what == "class" and isinstance(thing, type) and issubclass(thing, Algorithm)
    # public names are documented as maxmargin.NAME
    if is_algorithm or name.startswith(("maxmargin.algorithms.", "maxmargin.separability.")):
        lines[:] = algorithm_text("\n".join(lines)).split("\n")
    else:
        lines[:] = escape_lines(lines)


def skip_metadata_requests(
    app: Any, what: str, name: str, thing: Any, skip: bool, options: Any
) -> bool | None:
    """Skip the `set_..._request` methods that scikit-learn adds to every estimator."""
    return True if re.fullmatch(r"set_\w+_request", name) else None


def setup(app: Any) -> dict[str, Any]:
    app.setup_extension("sphinx.ext.autodoc")
    # before numpydoc parses the docstring
    app.connect("autodoc-process-docstring", on_docstring, priority=100)
    app.connect("autodoc-skip-member", skip_metadata_requests)
    return {"parallel_read_safe": True}
