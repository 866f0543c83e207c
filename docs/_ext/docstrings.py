"""Docstrings are plain text with mathematics in it: what reStructuredText would take for marks is escaped.

`|w|_q`, `coef_` and `a * b` are a norm, a name and a product. Condition, update and guarantee of an algorithm become
paragraphs of their own.
"""

from __future__ import annotations

import re
from typing import Any

from maxmargin.algorithms import Algorithm

_MARKS = re.compile(r"``.*?``|`[^`]*`_?|(?P<bar>\|)|(?P<star>(?<!\*)\*(?!\*))|(?P<tail>(?<=\w)_(?![\w]))")
_HEADS = re.compile(
    r"(?:^|(?<=[.;)] ))(Condition|Update|Guarantee[^:.]{0,60}|Iteration|Model|2-norm soft margin):", re.M
)


def escaped(line: str) -> str:
    """Return a line of a docstring with its bars, stars and trailing underscores escaped."""
    return _MARKS.sub(lambda match: match[0] if match[0].startswith("`") else f"\\{match[0]}", line)


def plain(lines: list[str]) -> list[str]:
    """Return the lines of a docstring, escaped outside of examples, literal blocks and heads of parameters."""
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
            result.append(escaped(line))
        if literal is None and line.rstrip().endswith("::"):
            literal = indent
        if line.lstrip().startswith(">>>"):
            literal = indent - 1  # to the end of the example: examples come last
    return result


def as_statements(text: str) -> str:
    """Return a docstring in which condition, update, iteration and guarantee begin paragraphs."""
    return _HEADS.sub(lambda match: f"\n\n**{match[1]}:**", text)


def on_docstring(app: Any, what: str, name: str, thing: Any, options: Any, lines: list[str]) -> None:
    lines[:] = plain(lines)
    if what == "class" and isinstance(thing, type) and issubclass(thing, Algorithm):
        body = "\n".join(lines)
        head, bar, rest = body.partition("\nParameters\n")
        if not bar:
            head, bar, rest = body.partition("\nReferences\n")
        lines[:] = (as_statements(head) + bar + rest).split("\n")


def leave_out(app: Any, what: str, name: str, thing: Any, skip: bool, options: Any) -> bool | None:
    """Skip the methods of metadata routing that scikit-learn adds to every estimator."""
    return True if re.fullmatch(r"set_\w+_request", name) else None


def setup(app: Any) -> dict[str, Any]:
    app.setup_extension("sphinx.ext.autodoc")
    # before numpydoc takes the docstring apart
    app.connect("autodoc-process-docstring", on_docstring, priority=100)
    app.connect("autodoc-skip-member", leave_out)
    return {"parallel_read_safe": True}
