"""HTML elements, with every text escaped."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape
from typing import Any


class Markup(str):
    """Text that is HTML already."""

    __slots__ = ()


def element(name: str, /, *content: Any, **attributes: Any) -> Markup:
    """Return an element; its content is escaped unless it is Markup, and None is left out.

    Attributes are given as keywords, with an underscore at the end where Python has a word of that name; inner
    underscores are hyphens. True stands for an attribute without a value, None for no attribute.
    """
    return Markup(f"<{name}{_attributes(attributes)}>{joined(content)}</{name}>")


def paragraph(*content: Any, **attributes: Any) -> Markup:
    """Return an element p."""
    return element("p", *content, **attributes)


def section(title: str, *content: Any) -> Markup:
    """Return a section with its title, by which it can be referred to."""
    name = title.lower().replace(" ", "-")
    return element("section", element("h2", title, id=name), *content, aria_labelledby=name)


def void(name: str, /, **attributes: Any) -> Markup:
    """Return an element without content."""
    return Markup(f"<{name}{_attributes(attributes)}>")


def joined(content: Iterable[Any]) -> Markup:
    """Return several pieces, one after the other."""
    return Markup("".join(_text(piece) for piece in content))


def table(
    caption: str, head: Sequence[str], rows: Iterable[Sequence[Any]], numbers: Sequence[int] = ()
) -> Markup:
    """Return a table whose first cell of each row is its header; columns in `numbers` are aligned at the right."""

    def cell(name: str, k: int, content: Any, scope: str | None = None) -> Markup:
        return element(name, content, scope=scope, class_="number" if k in numbers else None)

    titles = [cell("th", k, title, "col") for k, title in enumerate(head)]
    lines = []
    for first, *others in rows:
        cells = [cell("td", k, content) for k, content in enumerate(others, 1)]
        lines.append(element("tr", cell("th", 0, first, "row"), *cells))
    top = element("thead", element("tr", *titles))
    whole = element("table", element("caption", caption), top, element("tbody", *lines))
    # wide tables scroll by themselves, by keyboard too
    return element("div", whole, class_="wide", tabindex="0", role="region", aria_label=caption)


def _text(piece: Any) -> str:
    if piece is None:
        return ""
    return piece if isinstance(piece, Markup) else escape(str(piece))


def _attributes(given: dict[str, Any]) -> str:
    found = []
    for name, value in given.items():
        if value is None:
            continue
        name = name.removesuffix("_").replace("_", "-")
        found.append(f" {name}" if value is True else f' {name}="{escape(str(value))}"')
    return "".join(found)
