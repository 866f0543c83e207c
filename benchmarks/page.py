"""Pages of Markdown that benchmarks write: tables, versions of packages, arguments, delivery."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterable
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

import numpy as np


def table(head: Iterable[str], rows: Iterable[Iterable[str]]) -> str:
    """Return a Markdown table."""
    lines = [list(head), *map(list, rows)]
    lines.insert(1, ["---"] * len(lines[0]))
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def versions(*names: str) -> str:
    """Return the installed versions of these packages, as text."""
    return ", ".join(map(_version, names))


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
