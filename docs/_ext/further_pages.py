"""Pages that no table of contents names stand in the guide, after those that it names itself."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

GUIDE, MARK = "guide", "further-pages"


def fill(app: Any, page: str, content: list[str]) -> None:
    if page == GUIDE:
        content[0] = content[0].replace(MARK, "\n".join(further(Path(app.srcdir))))


def further(folder: Path) -> list[str]:
    """The Markdown pages of the folder that stand in none of its tables of contents."""
    pages = {path.stem: path.read_text(encoding="utf-8") for path in folder.glob("*.md")}
    named = {"index"}
    for text in pages.values():
        for block in re.findall(r"```\{toctree\}\n(.*?)```", text, re.S):
            named |= {word.strip("<>") for word in block.split()}
    return sorted(pages.keys() - named)


def setup(app: Any) -> dict[str, Any]:
    app.connect("source-read", fill)
    return {"parallel_read_safe": True}
