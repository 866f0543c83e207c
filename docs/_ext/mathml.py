"""Formulas as MathML, which browsers draw by themselves: no script, no font and no network is needed."""

from __future__ import annotations

from typing import Any

from docutils import nodes
from docutils.utils.math import MathError
from docutils.utils.math.latex2mathml import tex2mathml
from sphinx.util import logging

logger = logging.getLogger(__name__)


def drawn(node: nodes.Element, as_block: bool) -> str:
    """The formula as MathML; as it was written, with a warning, where that is not understood."""
    try:
        return tex2mathml(node.astext(), as_block=as_block)
    except MathError as error:
        logger.warning("this formula cannot be drawn: %s", error, location=node)
        return f"<code>{nodes.Text(node.astext())}</code>"


def visit_inline(translator: Any, node: nodes.math) -> None:
    translator.body.append(drawn(node, as_block=False))
    raise nodes.SkipNode


def visit_block(translator: Any, node: nodes.math_block) -> None:
    translator.body.append(f'<div class="formula">{drawn(node, as_block=True)}</div>')
    raise nodes.SkipNode


def setup(app: Any) -> dict[str, Any]:
    app.add_html_math_renderer("mathml", (visit_inline, None), (visit_block, None))
    return {"parallel_read_safe": True, "parallel_write_safe": True}
