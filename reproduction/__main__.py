"""`python -m reproduction [names] [--all] [--write]`: every published table beside ours.

Without names, all of them. Rows that take more than 25 million updates (or iterations) run with --all only, else
they are shown as they were last found. --write puts the sections into `reproduction/README.md`, and figures beside
it; sections that are not named stay as they are.
"""

from __future__ import annotations

import argparse
import importlib
import re
import sys
import time
from pathlib import Path
from typing import Any

from .data import data_folder

PAGE = Path(__file__).parent / "README.md"
SECTIONS = (
    "cramma_table1", "cramma_table2", "cramma_table3", "cramma_table4", "pumma_figure3", "pumma_figure4",
    "pumma_large_p", "pumma_newton", "ima_margins", "elimination", "pumma_table1", "pumma_table2",
    "mpu_table1", "separable_or_not",
)  # fmt: skip
ROUGHLY = (10, 30, 60, 120, 300, 600, 1200, 2400)  # seconds
HEAD = """\
# Published numbers, reproduced

Written by `python -m reproduction --write`, which is `make reproduce`; `tests/test_reproduction.py` holds the same
numbers as tests. `=` means the same number, as far as it is printed. † marks what only `make reproduce-all`
runs, as it was last found; it is kept in `long.json`. Times are of 2 shared cores.
"""


def main(arguments: list[str] | None = None) -> int:
    """0 if every number is reproduced or differs for a known reason, else 1."""
    parser = argparse.ArgumentParser(
        prog="python -m reproduction",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("names", nargs="*", metavar="name", help=f"one of {', '.join(SECTIONS)}")
    parser.add_argument("--all", action="store_true", help="also the rows that take minutes")
    parser.add_argument("--write", action="store_true", help="write reproduction/README.md")
    options = parser.parse_args(arguments)
    unknown = [name for name in options.names if name not in SECTIONS]
    if unknown:
        parser.error(f"there is no {unknown[0]}: choose from {', '.join(SECTIONS)}")
    folder = data_folder()
    if not folder.is_dir():
        parser.error(f"{folder} is not there: set MAXMARGIN_DATA to the folder of the data sets")
    fine = True
    for name in options.names or SECTIONS:
        section = importlib.import_module(f".{name}", __package__)
        began = time.perf_counter()
        found = list(section.cells(folder, options.all))
        fine &= all(cell.fine for cell in found)
        text, seconds = shown(section, found), time.perf_counter() - began
        print(f"{text}\n({name}: {seconds:.0f} s)\n", flush=True)
        if options.write:
            write(name, f"{text}\n{took(seconds, options.all)}\n")
            if hasattr(section, "picture"):
                section.picture(found, PAGE.parent / f"{name}.png")
    if options.write:
        print(f"written: {PAGE}")
    return 0 if fine else 1


def shown(section: Any, found: list[Any]) -> str:
    """A section of the page."""
    return f"## {section.TITLE}\n\n{section.TEXT}\n{section.table(found)}\n"


def took(seconds: float, everything: bool) -> str:
    """How long a section takes, so roughly that the page changes only where that does."""
    most = next((limit for limit in ROUGHLY if seconds < limit), None)
    words = f"more than {ROUGHLY[-1]} s" if most is None else f"under {most} s"
    return f"*Takes {words}{', rows marked † included' if everything else ''}.*"


def write(name: str, text: str) -> None:
    """Put one section into the page, in its place."""
    page = PAGE.read_text() if PAGE.is_file() else ""
    sections = dict(re.findall(r"<!-- (\w+) -->\n\n(.*?)\n(?=<!-- |\Z)", page, re.DOTALL)) | {name: text}
    body = "\n".join(f"<!-- {key} -->\n\n{sections[key]}" for key in SECTIONS if key in sections)
    PAGE.write_text(f"{HEAD}\n{body}\n")


if __name__ == "__main__":
    sys.exit(main())
