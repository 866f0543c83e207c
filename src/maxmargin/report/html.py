"""HTML elements whose content is escaped."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape
from typing import Any


class Markup(str):
    """Text that is HTML already."""

    __slots__ = ()


def element(name: str, /, *content: Any, **attributes: Any) -> Markup:
    """Return an element; its content is escaped unless it is Markup, and None is left out, as are attributes of None.

    Attributes are given as keywords, with an underscore at the end where Python has a word of that name; inner
    underscores are hyphens.
    """
    given = "".join(
        f' {key.removesuffix("_").replace("_", "-")}="{escape(str(value))}"'
        for key, value in attributes.items()
        if value is not None
    )
    inner = "".join(
        one if isinstance(one, Markup) else escape(str(one)) for one in content if one is not None
    )
    return Markup(f"<{name}{given}>" + ("" if name in ("img", "meta") else f"{inner}</{name}>"))


def section(title: str, *content: Any) -> Markup:
    """Return a section with its title, by which it can be referred to."""
    name = title.lower().replace(" ", "-")
    return element("section", element("h2", title, id=name), *content, aria_labelledby=name)


def table(caption: str, head: Sequence[str], rows: Iterable[Sequence[Any]], numbers: Sequence[int]) -> Markup:
    """Return a table whose first cell of each row is its header; columns in `numbers` are aligned at the right."""

    def line(cells: Sequence[Any], scope: str | None) -> Markup:
        return element("tr", *(
            element(
                "td" if k and scope is None else "th", cell,
                scope=scope or (None if k else "row"), class_="number" if k in numbers else None,
            )
            for k, cell in enumerate(cells)
        ))  # fmt: skip

    body = element("tbody", *(line(row, None) for row in rows))
    whole = element("table", element("caption", caption), element("thead", line(head, "col")), body)
    # wide tables scroll by themselves, by keyboard too
    return element("div", whole, class_="wide", tabindex="0", role="region", aria_label=caption)
