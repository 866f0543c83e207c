"""Pages of Markdown that benchmarks write: a summary table, folded sections, versions of packages, arguments."""

from __future__ import annotations

import argparse
import platform
import re
import sys
import textwrap
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import date
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import TypeVar

import numpy as np

T = TypeVar("T")

MOST_ROWS = 10  # of a summary table, so that it fits on a screen
COMPARED = ("problems", "ratio: median (range)", "faster", "slower")  # the head of the cells of `compared`


def page(
    title: str,
    about: str,
    top: str,
    command: str,
    sections: Mapping[str, str],
    machine: str = "2 shared cores, one thread used",
) -> str:
    """Return a page: what is compared, the summary table, date, command and machine, and folded sections."""
    day, package = date.today().isoformat(), versions("maxmargin")
    written = f"Measured on {day} with {package} by `{command}`, which writes this page. Machine: {machine}."
    parts = (folded(name, text) for name, text in sections.items())
    return "\n\n".join([f"# {title}", about.strip(), top, wrapped(written), *parts]) + "\n"


def wrapped(text: str) -> str:
    """Return a paragraph in lines of at most 120 characters; code between backticks stays on one line."""
    whole = re.sub(r"`[^`]*`", lambda code: code[0].replace(" ", "\0"), text)
    return textwrap.fill(whole, 120, break_long_words=False, break_on_hyphens=False).replace("\0", " ")


def folded(title: str, text: str) -> str:
    """Return a section that is closed until a reader opens it, on GitHub and in the built pages.

    The text has no headings: a heading would begin a section of the built page that ends after the folded one.
    """
    return f"<details>\n<summary>{title}</summary>\n\n{text.strip()}\n\n</details>"


def sections_of(text: str) -> dict[str, str]:
    """Return the folded sections of a page by their titles."""
    return {
        title: body.strip()
        for title, body in re.findall(r"<summary>(.*?)</summary>\n(.*?)\n</details>", text, flags=re.DOTALL)
    }


def summary(
    head: Iterable[str],
    groups: Mapping[tuple[str, ...], Sequence[T]],
    cells: Callable[[Sequence[T]], Iterable[str]],
    whole: str = "",
) -> str:
    """Return the table at the top of a page: one line per group, and one for all of them under the name `whole`.

    The smallest groups share one line if there are more than MOST_ROWS lines.
    """
    most = MOST_ROWS - bool(whole)
    kept = dict(groups)
    if len(kept) > most:
        large = sorted(kept, key=lambda key: -len(kept[key]))[: most - 1]
        rest = [one for key, group in kept.items() if key not in large for one in group]
        kept = {key: group for key, group in kept.items() if key in large}
        kept[_padded("others", groups)] = rest
    if whole:
        kept[_padded(whole, groups)] = [one for group in groups.values() for one in group]
    return table(head, [[*key, *cells(group)] for key, group in kept.items()])


def _padded(name: str, groups: Mapping[tuple[str, ...], object]) -> tuple[str, ...]:
    return (name, *[""] * (len(next(iter(groups))) - 1))


def grouped(items: Iterable[T], key: Callable[[T], tuple[str, ...]]) -> dict[tuple[str, ...], list[T]]:
    """Return the items by key, in the order of the first item of each key."""
    groups: dict[tuple[str, ...], list[T]] = {}
    for item in items:
        groups.setdefault(key(item), []).append(item)
    return groups


def compared(ratios: Sequence[float]) -> list[str]:
    """Return cells for ratios of times, maxmargin to a peer: number, median and range, numbers below 1 and others."""
    faster = sum(ratio < 1.0 for ratio in ratios)
    return [str(len(ratios)), extent(ratios), str(faster), str(len(ratios) - faster)]


def extent(values: Sequence[float], form: str = ".2g") -> str:
    """Return the median, with the smallest and the largest value in brackets."""
    middle, least, largest = (
        f"{float(f'{one:{form}}'):g}" for one in (np.median(values), min(values), max(values))
    )
    return middle if len(values) == 1 else f"{middle} ({least} to {largest})"


def table(head: Iterable[str], rows: Iterable[Iterable[str]]) -> str:
    """Return a Markdown table."""
    lines = [list(head), *map(list, rows)]
    lines.insert(1, ["---"] * len(lines[0]))
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def versions(*names: str) -> str:
    """Return the installed versions of these packages, as text."""
    return ", ".join(map(_version, names))


def system(*names: str) -> str:
    """Return the versions of Python and of these packages, as text."""
    return wrapped(f"Python {platform.python_version()}; {versions(*names)}.")


def _version(name: str) -> str:
    try:
        return f"{name} {version(name)}"
    except PackageNotFoundError:
        return f"{name} not installed"


def page_parser(module: str, description: str | None, page: Path) -> argparse.ArgumentParser:
    """Return the parser of a module that measures and prints, and writes its page with --write."""
    parser = argparse.ArgumentParser(prog=f"python -m benchmarks.{module}", description=description)
    parser.add_argument("--write", action="store_true", help=f"write docs/measurements/{page.name}")
    return parser


def as_typed(module: str, arguments: list[str] | None) -> str:
    """Return the command that wrote a page."""
    return " ".join([f"python -m benchmarks.{module}", *(sys.argv[1:] if arguments is None else arguments)])


def deliver(text: str, page: Path | None) -> None:
    """Print a page, and write it to a file if one is named."""
    print(text)
    if page is not None:
        page.write_text(text)
        print(f"written: {page}")


def spread(values: np.ndarray, form: str) -> str:
    """Return the median, with quartiles in brackets."""
    low, middle, high = np.quantile(values, [0.25, 0.5, 0.75])
    return f"{middle:{form}} ({low:{form}}-{high:{form}})"
