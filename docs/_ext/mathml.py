"""Renderer of formulas as MathML, which browsers display without a script, a font or a network."""

from __future__ import annotations

from typing import Any

from docutils import nodes
from docutils.utils.math import MathError
from docutils.utils.math.latex2mathml import tex2mathml
from sphinx.util import logging

logger = logging.getLogger(__name__)


def to_mathml(node: nodes.Element, as_block: bool) -> str:
    """Return a formula as MathML; warn and return it as code if it cannot be converted."""
    try:
        code = tex2mathml(node.astext(), as_block=as_block)
    except MathError as error:
        logger.warning("formula not converted to MathML: %s", error, location=node)
        return f"<code>{nodes.Text(node.astext())}</code>"
    # a bar is a delimiter, which browsers would space like a binary operator
    return code.replace('<mo stretchy="false">|</mo>', '<mo stretchy="false" lspace="0" rspace="0">|</mo>')


def visit_inline(translator: Any, node: nodes.math) -> None:
    translator.body.append(to_mathml(node, as_block=False))
    raise nodes.SkipNode


def visit_block(translator: Any, node: nodes.math_block) -> None:
    translator.body.append(f'<div class="formula">{to_mathml(node, as_block=True)}</div>')
    raise nodes.SkipNode


def setup(app: Any) -> dict[str, Any]:
    app.add_html_math_renderer("mathml", (visit_inline, None), (visit_block, None))
    return {"parallel_read_safe": True, "parallel_write_safe": True}
