"""Execution of the Python blocks of Markdown pages; output and figures are inserted below each block.

The blocks of a page run in order, in one namespace. A block that fails is a warning, which `sphinx -W` makes an error.
Blocks of another language (`text`, `sh`) do not run.
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
NOT_INSTALLED = {"pyspark"}  # 400 MB, and needs Java: not part of the environment of the documentation
PICTURES = "api/pictures"  # relative to docs/; not kept in the repository


def run_blocks(app: Any, doctree: nodes.document) -> None:
    """Run the Python blocks of a page."""
    page = app.env.docname
    if app.env.doc2path(page, base=False).suffix != ".md":
        return
    # blocks that literalinclude took from a file do not run
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
                if isinstance(error, ModuleNotFoundError) and error.name in NOT_INSTALLED:
                    logger.info("a block of %s does not run without %s", page, error.name)
                    break
                logger.warning("block failed: %s: %s", type(error).__name__, error, location=block)
                break
            _insert_output(app, block, printed.getvalue(), f"{page.replace('/', '-')}-{number + 1}")


def _insert_output(app: Any, block: nodes.literal_block, printed: str, name: str) -> None:
    """Insert the output of a block and its open figures below the block."""
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
            nodes.image(
                uri="/" + os.fspath(picture.relative_to(app.srcdir)), alt="Figure drawn by the code above."
            )
        )
    pyplot.close("all")
    place = block.parent.index(block)
    block.parent[place + 1 : place + 1] = below


def setup(app: Any) -> dict[str, Any]:
    pyplot.switch_backend("agg")
    # before Sphinx collects the images of the page
    app.connect("doctree-read", run_blocks, priority=100)
    return {"parallel_read_safe": False}
