"""Pictures of a report, as part of its page, for light and dark paper."""

from __future__ import annotations

import io
import re
import warnings
from base64 import b64encode
from collections.abc import Iterator
from typing import Any

import numpy as np

from ..certificates.verdicts import Inseparable
from ..certificates.verification import verdicts_of
from ..kernels.functions import Precomputed
from ..plots.bounds import BoundsDisplay
from ..plots.margins import MarginDisplay
from ..plots.robustness import RobustnessDisplay
from ..plots.style import BLUE, FAINT, GREEN, GRID, INK, PAPER, TINTS, VERMILION, new_figure
from ..plots.surface import DecisionSurfaceDisplay
from .markup import Markup, element, paragraph, section, void
from .subject import Outcome, Subject

FIGURE_SIZE = (7.2, 4.6)  # inches: two pictures fit side by side on a wide screen
_DARK_TINTS = ("#173a54", "#54301a", "#12463a", "#4d3644", "#4d3d16", "#1e4052", "#363d47")
_DARK = {
    INK: "#e5e9ef", GRID: "#323b47", PAPER: "#161b22", BLUE: "#4aa8e0", VERMILION: "#f0803c", GREEN: "#34c79b",
    **dict(zip(TINTS, _DARK_TINTS, strict=True)),
    **dict(zip(FAINT, ("#14242f", "#2e1f14"), strict=True)),
}  # fmt: skip
_INKED = ("text.color", "axes.labelcolor", "axes.edgecolor", "xtick.color", "ytick.color", "hatch.color")
_STYLE: dict[Any, Any] = {
    **dict.fromkeys(_INKED, INK),
    "axes.facecolor": PAPER,
    "figure.facecolor": PAPER,
    "svg.fonttype": "path",
    "svg.hashsalt": "maxmargin",  # the same picture is the same text
    "font.family": "DejaVu Sans",
}


def pictures(subject: Subject) -> Markup:
    """Return the section of all pictures that there are for this model and these data."""
    found = list(figures(subject))
    nothing = None if found else paragraph("There is nothing to draw: the model knows none of the labels.")
    drawn = element("div", *found, class_="figures")
    return section("Pictures", drawn, subject.left_out("Margins of {} more problems are not drawn."), nothing)


def figures(subject: Subject) -> Iterator[Markup]:
    """Draw all pictures that there are for this model and these data."""
    yield from _history(subject)
    if subject.known.any():
        yield from _margins(subject)
        yield from _surface(subject)
        yield from _robustness(subject)


def _history(subject: Subject) -> Iterator[Markup]:
    """Draw the bounds of the problem with the largest gap, if its history has two reports to draw."""
    # bounds of a margin that is proved not to exist say nothing
    proofs = verdicts_of(subject.model)
    bounded = [one for one in subject.decisions if not isinstance(proofs.get(one.label), Inseparable)]
    if not bounded:
        return
    widest = max(bounded, key=lambda one: one.certificate.gap if one.certificate else 0.0)
    history = [report for report in subject.model.history_ if report.label == widest.label]
    if sum(np.isfinite(report.lower) and np.isfinite(report.upper) for report in history) < 2:
        return
    words = (
        "Certified bounds against time. The optimum lies in the shaded interval between the two lines. Times were "
        "recorded during the fit."
    )
    yield _figure(words, BoundsDisplay, subject.model, label=widest.label)


def _margins(subject: Subject) -> Iterator[Markup]:
    """Draw the margins of each listed decision in which rows take part."""
    X, y, weights = subject.known_rows
    fitted = subject.recheck.outcome is not Outcome.OTHER_DATA
    support = "; bars in full colour are support vectors" if fitted else ""
    for one in subject.listed:
        if one.signs(y)[1].any():
            words = (
                f"Margins y f(x) of the rows, {one.positive} upwards and {one.negative} downwards. Rows left of 0 are "
                f"on the wrong side{support}."
            )
            yield _figure(words, MarginDisplay, one.model, X, y, sample_weight=weights, label=one.label)


def _surface(subject: Subject) -> Iterator[Markup]:
    """Draw the decision surface: in two features, across the weights, or along the principal components."""
    first, features = subject.decisions[0], subject.X.shape[1]
    if first.certificate is None or isinstance(first.certificate.kernel, Precomputed) or features < 2:
        return
    alone = len(subject.decisions) == 1
    if features == 2:
        plane, words = None, "The decision surface in its two features"
    elif alone and subject.is_linear and np.any(subject.model.coef_):
        plane = "weights"
        words = "A projection that contains the weights: every row is drawn at its true score"
    else:
        plane = "components"
        words = (
            "A section of the decision surface through the mean, along the two principal components. Rows are "
            "projected onto it; crosses mark rows that are misclassified in the full space"
        )
    areas = "Dashed lines are the margin, f = ±1." if alone else "Areas show which class is predicted."
    X, y, weights = subject.known_rows
    options = {"sample_weight": weights, "plane": plane, "feature_names": subject.names}
    yield _figure(f"{words}. {areas}", DecisionSurfaceDisplay, first.model, X, y, **options)


def _robustness(subject: Subject) -> Iterator[Markup]:
    """Draw the certified radii of a model that has them."""
    if hasattr(subject.model, "certified_radius"):
        X, y, _ = subject.known_rows
        words = (
            "The share of rows that are classified as labelled under every perturbation up to a size: proved, not "
            "sampled."
        )
        yield _figure(words, RobustnessDisplay, subject.decisions[0].model, X, y)


def _figure(words: str, display: Any, *arguments: Any, **options: Any) -> Markup:
    """Return a picture, drawn by `display.from_estimator`, with its words.

    The title of the picture is the alternative text, for readers who do not see it.
    """
    from matplotlib import rc_context

    with rc_context(_STYLE), warnings.catch_warnings():
        # letters that the font lacks are drawn as boxes; the words beside the picture have them
        warnings.filterwarnings("ignore", "Glyph .* missing from", UserWarning)
        ax = new_figure(FIGURE_SIZE).subplots()
        display.from_estimator(*arguments, ax=ax, **options)
        title = " ".join(ax.get_title(loc="left").split())
        text, unsigned = io.StringIO(), dict.fromkeys(("Date", "Creator", "Format", "Type"))
        ax.figure.savefig(text, format="svg", metadata=unsigned)
        width, height = (round(72.0 * inches) for inches in ax.figure.get_size_inches())
    picture = b64encode(_for_both_papers(text.getvalue()).encode()).decode()
    source, alt = f"data:image/svg+xml;base64,{picture}", f"{title}. {words}" if title else words
    image = void("img", src=source, alt=alt, width=width, height=height)
    return element("figure", image, element("figcaption", words))


def _for_both_papers(svg: str) -> str:
    """Return a picture with colours by name, which have other values where the reader asks for a dark page."""
    svg = svg[svg.index("<svg") :]  # without the reference to a document type elsewhere
    light, dark = [], []
    for k, (colour, instead) in enumerate(_DARK.items()):
        svg = svg.replace(colour, f"var(--c{k})")
        light.append(f"--c{k}:{colour}")
        dark.append(f"--c{k}:{instead}")
    style = (
        f"<style>svg{{{';'.join(light)}}}@media screen and (prefers-color-scheme:dark){{svg{{{';'.join(dark)}}}}}"
        "</style>"
    )
    return re.sub(r"(<svg[^>]*>)", lambda found: found[1] + style, svg, count=1)
