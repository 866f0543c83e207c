"""What all pictures have in common: colours that colour-blind readers can tell apart, axes, titles."""

from __future__ import annotations

import textwrap
from typing import Any

# the palette of Okabe and Ito, without its yellow, which white paper swallows
BLUE, VERMILION, GREEN, PURPLE, ORANGE, SKY = "#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9"
INK, SHADE, GRID, PAPER = "#1f2933", "#94a3b8", "#e2e8f0", "#ffffff"
UPPER, LOWER, GOAL = VERMILION, BLUE, GREEN
POSITIVE, NEGATIVE = BLUE, VERMILION
CYCLE = (BLUE, VERMILION, GREEN, PURPLE, ORANGE, SKY, INK)
TINTS = (
    "#d3e5f2",
    "#f8ddc9",
    "#cdebe1",
    "#f3dfe9",
    "#faead0",
    "#dbeefa",
    "#dcdfe3",
)  # of the cycle, for areas
FAINT = ("#e9f2f8", "#fceee4")  # of the first two, for what is inside the margin
MARKERS = "os^vD<>phXP*"


def figure(rows: int = 1, columns: int = 1) -> Any:
    """The axes of a new figure."""
    try:
        import matplotlib.pyplot as plt
    except ImportError:
        raise ImportError("Pictures need matplotlib: pip install 'maxmargin[plot]'.") from None
    return plt.subplots(rows, columns, figsize=(3.6 * (columns + 1), 4.6), layout="constrained")[1]


def plain(ax: Any) -> None:
    """A light grid behind the lines, and no frame where there is no scale."""
    ax.grid(color=GRID, lw=0.6)
    ax.set_axisbelow(True)
    for side in ("top", "right"):
        ax.spines[side].set_visible(False)


def no_ticks() -> Any:
    """A locator of none, for the small ticks of a logarithmic scale."""
    from matplotlib.ticker import NullLocator

    return NullLocator()


def literal(text: Any) -> Any:
    """A matplotlib text, drawn letter by letter: names that users give hold dollars, and are no formulas.

    Half a surrogate pair, which no file can hold, becomes a question mark.
    """
    text.set_parse_math(False)
    text.set_text(text.get_text().encode(errors="replace").decode())
    return text


def legend(ax: Any, **options: Any) -> None:
    """A legend whose labels are drawn as they were given."""
    for text in ax.legend(**options).get_texts():
        literal(text)


def entitle(ax: Any, title: str | None, *, pad: float | None = None) -> None:
    """A title of lines that end before the figure does, all about as long: layouts do not know matplotlib's own."""
    if not title:
        return
    inches = ax.figure.get_figwidth() * (1.0 - ax.get_position().x0)
    most = max(24, int(inches * 72.0 / 6.6))  # letters at 12 points, on the average
    lines = textwrap.wrap(title, most, break_long_words=False)
    while most > 24 and len(narrower := textwrap.wrap(title, most - 1, break_long_words=False)) == len(lines):
        most, lines = most - 1, narrower
    literal(ax.set_title("\n".join(lines), loc="left", pad=pad))


def label_decades(axis: Any) -> None:
    """Numbers at 1, 2 and 5 on a logarithmic axis of few decades, where powers of ten would be too few to read."""
    from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

    low, high = sorted(axis.get_view_interval())
    if not low > 0.0 or high > 50.0 * low:
        axis.set_minor_formatter(NullFormatter())
        return
    axis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0)))
    axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    axis.set_minor_formatter(NullFormatter())


def percent(share: float) -> str:
    """A share in words that do not say all where it is not all."""
    if 0.0 < share < 0.001:
        return "less than 0.1 %"
    if 0.999 < share < 1.0:
        return "more than 99.9 %"
    return f"{100.0 * share:.3g} %"
