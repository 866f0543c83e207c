"""Command `python -m reproduction [names] [--all] [--write]`: compute published tables and compare the numbers.

Without names, all sections run. Rows with more than 25 million updates (or iterations) run only with --all; otherwise
their stored results are shown. --write writes the sections to `reproduction/README.md`, and the figures to the same
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

from .data import data_folder
from .record import NO_DATA, markdown

PAGE = Path(__file__).parent / "README.md"
SECTIONS = (
    "cramma_table1", "cramma_table2", "cramma_table3", "cramma_table4", "pumma_figure3", "pumma_figure4",
    "pumma_newton", "ima_margins", "elimination", "pumma_table1", "pumma_table2",
    "mpu_table1", "mpu_table2", "mpu_certified", "separable_or_not", "theorems",
)  # fmt: skip
TIME_CLASSES = (10, 30, 60, 120, 300, 600, 1200, 2400)  # seconds
PAPERS = {  # rows of the summary table, with the beginnings of the names of their sections
    "CRAMMA, Tables 1 to 4": ("cramma",),
    "PUMMA, Figures 3 and 4": ("pumma_figure",),
    "PUMMA, Tables 1 and 2": ("pumma_table",),
    "PUMMA, the printed Newton iteration": ("pumma_newton",),
    "IMA_p, against exact optima": ("ima",),
    "Margin Perceptron with unlearning, Tables 1 and 2": ("mpu_table",),
    "Margin Perceptron with unlearning, certified": ("mpu_certified",),
    "Feature elimination": ("elimination",),
    "Separability": ("separable",),
    "Smoothed Perceptrons and IMA_p, theorems": ("theorems",),
}
HEAD = """\
# Reproduction of published numbers

The tables compare numbers that papers print with numbers that maxmargin computes. Two numbers *agree* if all printed
digits are equal, or if the difference is within the tolerance that the table states. If they *differ*, the table states
the difference, and the reason where it is known. *Not available* means that the published number is not known to the
authors of this page, *data not at hand* that the data set is not among the test data. An entry "a to b" holds the
results of several random orders, or the numbers that a printed, rounded one stands for; such entries agree if they
overlap. Rows with "none" are not compared with published numbers.

{summary}

`make reproduce` (`python -m reproduction --write`) writes this page, and `tests/project/test_reproduction.py` tests
numbers of the tables. † marks results that only `make reproduce-all` computes; the last results are stored in
`long.json`. Times were measured on 2 shared cores. In the tables of CRAMMA, γ is the largest margin and γ' the margin
of the result, both in the space with the constant coordinate ρ; R is the length of the longest pattern in this space.
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
        parser.error(f"unknown section {unknown[0]}: choose from {', '.join(SECTIONS)}")
    folder = data_folder()
    if not folder.is_dir():
        parser.error(f"{folder} does not exist: set MAXMARGIN_DATA to the folder of the data sets")
    is_fine = True
    for name in options.names or SECTIONS:
        section = importlib.import_module(f".{name}", __package__)
        began = time.perf_counter()
        found = list(section.cells(folder, options.all))
        is_fine &= all(cell.fine for cell in found)
        text, seconds = shown(section, found), time.perf_counter() - began
        print(f"{section.TITLE}\n\n{text}\n({name}: {seconds:.0f} s)\n", flush=True)
        if options.write:
            write(name, folded(section.TITLE, f"{text}\n{took(seconds, options.all)}"))
            if hasattr(section, "picture"):
                section.picture(found, PAGE.parent / f"{name}.png")
    if options.write:
        print(f"written: {PAGE}")
    return 0 if is_fine else 1


def folded(title: str, text: str) -> str:
    """Return a section that is closed until a reader opens it; without headings, which would end it."""
    return f"<details>\n<summary>{title}</summary>\n\n{text.strip()}\n\n</details>"


def shown(section: Any, found: list[Any]) -> str:
    """Return the text of a section of the page."""
    return f"{section.TEXT}\n{section.table(found)}\n"


def took(seconds: float, everything: bool) -> str:
    """Return the class of the time of a section, so that small changes of the time do not change the page."""
    most = next((limit for limit in TIME_CLASSES if seconds < limit), None)
    words = f"more than {TIME_CLASSES[-1]} s" if most is None else f"under {most} s"
    return f"*Takes {words}{', rows marked † included' if everything else ''}.*"


def summary(sections: dict[str, str]) -> str:
    """Return the table at the top of the page: the verdicts of all tables with published numbers, counted by paper."""
    rows = []
    for paper, starts in PAPERS.items():
        words = [
            word for name, text in sections.items() if name.startswith(starts) for word in verdicts(text)
        ]
        missing = sum(word in ("not available", NO_DATA) for word in words)
        apart = sum(bool(re.match(r"[+-]\d|differs|not reached", word)) for word in words)
        compared = len(words) - missing
        cells = [str(compared), str(compared - apart), str(apart)] if compared else ["none", "", ""]
        rows.append([paper, *cells, str(missing or "")])
    return markdown(["paper or subject", "numbers compared", "agree", "differ", "not compared"], rows)


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
