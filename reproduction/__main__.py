"""`python -m reproduction [names] [--all] [--write]`: reproduce published tables, and print them beside ours.

Without names, all sections run. Rows with more than 25 million updates (or iterations) run with --all only; otherwise
their last results are shown. --write writes the sections to `reproduction/README.md`, and the figures to the same
folder. Sections that are not named stay unchanged.
"""

from __future__ import annotations

import argparse
import importlib
import re
import sys
import time
from pathlib import Path
from typing import Any

from benchmarks.page import folded

from .data import data_folder
from .record import markdown

PAGE = Path(__file__).parent / "README.md"
SECTIONS = (
    "cramma_table1", "cramma_table2", "cramma_table3", "cramma_table4", "pumma_figure3", "pumma_figure4",
    "pumma_large_p", "pumma_newton", "ima_margins", "elimination", "pumma_table1", "pumma_table2",
    "mpu_table1", "separable_or_not",
)  # fmt: skip
ROUGHLY = (10, 30, 60, 120, 300, 600, 1200, 2400)  # seconds
PAPERS = {  # the lines of the summary table: the beginnings of the names of their sections
    "CRAMMA, Tables 1 to 4": ("cramma",),
    "PUMMA, Figures 3 and 4": ("pumma_figure", "pumma_large"),
    "PUMMA, Tables 1 and 2": ("pumma_table",),
    "PUMMA, the printed Newton iteration": ("pumma_newton",),
    "IMA_p, against exact optima": ("ima",),
    "Margin Perceptron with unlearning, Table 1": ("mpu",),
    "Feature elimination": ("elimination",),
    "Separable or not": ("separable",),
}
HEAD = """\
# Published numbers, reproduced

Numbers that papers print are compared with ours. They *agree* if they are equal in all printed digits, or lie as near
as their table states; where they *differ*, the table states the difference, and its reason where it is known. *Not at
hand* means that we do not have the published number. Where nothing is compared, the section holds only our numbers.

{summary}

Written by `python -m reproduction --write`, the command of `make reproduce`. `tests/project/test_reproduction.py` tests
the same numbers. † marks results that only `make reproduce-all` computes; the last ones are stored in `long.json`.
Times were measured on 2 shared cores.
"""


def main(arguments: list[str] | None = None) -> int:
    """Return 0 if every number is reproduced or differs for a known reason, else 1."""
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
        parser.error(f"{folder} does not exist: set MAXMARGIN_DATA to the folder of the data sets")
    fine = True
    for name in options.names or SECTIONS:
        section = importlib.import_module(f".{name}", __package__)
        began = time.perf_counter()
        found = list(section.cells(folder, options.all))
        fine &= all(cell.fine for cell in found)
        text, seconds = shown(section, found), time.perf_counter() - began
        print(f"{section.TITLE}\n\n{text}\n({name}: {seconds:.0f} s)\n", flush=True)
        if options.write:
            write(name, folded(section.TITLE, f"{text}\n{took(seconds, options.all)}"))
            if hasattr(section, "picture"):
                section.picture(found, PAGE.parent / f"{name}.png")
    if options.write:
        print(f"written: {PAGE}")
    return 0 if fine else 1


def shown(section: Any, found: list[Any]) -> str:
    """Return the text of a section of the page."""
    return f"{section.TEXT}\n{section.table(found)}\n"


def took(seconds: float, everything: bool) -> str:
    """Return a rough time of a section, so that small changes of the time do not change the page."""
    most = next((limit for limit in ROUGHLY if seconds < limit), None)
    words = f"more than {ROUGHLY[-1]} s" if most is None else f"under {most} s"
    return f"*Takes {words}{', rows marked † included' if everything else ''}.*"


def summary(sections: dict[str, str]) -> str:
    """Return the table at the top of the page: the verdicts of all tables with published numbers, counted by paper."""
    rows = []
    for paper, starts in PAPERS.items():
        words = [
            word for name, text in sections.items() if name.startswith(starts) for word in verdicts(text)
        ]
        absent = words.count("not at hand")
        apart = sum(bool(re.match(r"[+-]\d|differs|not at its end", word)) for word in words)
        compared = len(words) - absent
        cells = [str(compared), str(compared - apart), str(apart)] if compared else ["none", "", ""]
        rows.append([paper, *cells, str(absent or "")])
    return markdown(["paper or subject", "numbers compared", "agree", "differ", "not at hand"], rows)


def verdicts(text: str) -> list[str]:
    """Return the entries in the columns of verdicts of a section, of tables with published numbers."""
    found = []
    for block in re.findall(r"(?:^\|.*\n)+", text, re.MULTILINE):
        head, _, *rows = ([cell.strip() for cell in line[1:-1].split("|")] for line in block.splitlines())
        if any("published" in name for name in head):
            places = [place for place, name in enumerate(head) if name == "verdict"]
            found += [row[place] for row in rows for place in places if row[place]]
    return found


def write(name: str, text: str) -> None:
    """Replace one section of the page, and the summary table."""
    page = PAGE.read_text() if PAGE.is_file() else ""
    sections = dict(re.findall(r"<!-- (\w+) -->\n\n(.*?)\n(?=\n<!-- |\Z)", page, re.DOTALL)) | {name: text}
    body = "\n\n".join(f"<!-- {key} -->\n\n{sections[key]}" for key in SECTIONS if key in sections)
    PAGE.write_text(f"{HEAD.format(summary=summary(sections))}\n{body}\n")


if __name__ == "__main__":
    sys.exit(main())
