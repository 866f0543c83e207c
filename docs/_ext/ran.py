"""The Python blocks of a Markdown page are run, in order and in one scope; what they print and draw stands below them.

A block that fails is a warning, and so an error of the build. Blocks of another language (`text`, `sh`) are not run.
"""

from __future__ import annotations

import contextlib
import io
import os
import tempfile
from pathlib import Path
from typing import Any

from docutils import nodes
from matplotlib import pyplot
from sphinx.util import logging

logger = logging.getLogger(__name__)
PICTURES = "api/pictures"  # below the folder of the pages; not kept in the repository


def run(app: Any, doctree: nodes.document) -> None:
    page = app.env.docname
    if app.env.doc2path(page, base=False).suffix != ".md":
        return
    # a block that came from a file belongs to that file
    blocks = [
        block
        for block in doctree.findall(nodes.literal_block)
        if block.get("language") == "python" and "source" not in block
    ]
    scope: dict[str, Any] = {"__name__": "__main__"}
    with tempfile.TemporaryDirectory() as folder:
        for number, block in enumerate(blocks):
            printed = io.StringIO()
            try:
                with contextlib.chdir(folder), contextlib.redirect_stdout(printed):
                    exec(compile(block.astext(), f"<{page}, block {number + 1}>", "exec"), scope)
            except Exception as error:
                logger.warning("this block fails: %s: %s", type(error).__name__, error, location=block)
                break
            _show(app, block, printed.getvalue(), f"{page.replace('/', '-')}-{number + 1}")


def _show(app: Any, block: nodes.literal_block, printed: str, name: str) -> None:
    """Put what a block printed, and the figures that it left open, below it."""
    below: list[nodes.Node] = []
    if printed.strip():
        text = printed.rstrip()
        below.append(nodes.literal_block(text, text, language="text", classes=["printed"]))
    folder = Path(app.srcdir) / PICTURES
    folder.mkdir(parents=True, exist_ok=True)
    for number in pyplot.get_fignums():
        picture = folder / f"{name}-{number}.svg"
        pyplot.figure(number).savefig(picture, bbox_inches="tight")
        below.append(
            nodes.image(uri="/" + os.fspath(picture.relative_to(app.srcdir)), alt="What the block draws.")
        )
    pyplot.close("all")
    place = block.parent.index(block)
    block.parent[place + 1 : place + 1] = below


def setup(app: Any) -> dict[str, Any]:
    pyplot.switch_backend("agg")
    # before Sphinx collects the images of the page
    app.connect("doctree-read", run, priority=100)
    return {"parallel_read_safe": False}
