"""Command `python -m reproduction [names] [--all] [--write]`: compute published tables and compare the numbers.

Without names, all sections run. Rows with more than 25 million updates (or iterations) run only with --all; otherwise
their stored results are shown. --write writes the sections to `reproduction/README.md`, and the figure to the same
folder. Sections that are not named stay unchanged.
"""

from __future__ import annotations

import argparse
import re
import sys
import time
from pathlib import Path

from . import cramma, ima, mpu, pumma, theorems
from .data import data_folder
from .record import Cell, Row, markdown

PAGE = Path(__file__).parent / "README.md"
SECTIONS = cramma.SECTIONS | pumma.SECTIONS | mpu.SECTIONS | ima.SECTIONS | theorems.SECTIONS
PAPERS = {  # with the beginning of the names of their sections
    "CRAMMA": "cramma",
    "PUMMA": "pumma",
    "Margin Perceptron with unlearning": "mpu",
    "IMA_p, against certified optima": "ima",
    "Smoothed Perceptrons and IMA_p, bounds of the theorems": "theorems",
}
HEAD = """\
# Reproduction of published numbers

The tables compare numbers that papers print with numbers that maxmargin computes. Two numbers agree (=) if all printed
digits are equal, or if the difference is within the tolerance that the text states. Otherwise the verdict is the
difference, and the reason where it is known. An entry "a to b" holds the results of several random orders, or the
numbers that a printed, rounded one stands for; such entries agree if they overlap.

{counts}

`make reproduce` (`python -m reproduction --write`) writes this page. † marks rows that only `make reproduce-all`
computes; their last results are stored in `long.json`. Times were measured on 2 shared cores.
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
        section, began = SECTIONS[name], time.perf_counter()
        tables = [rows for rows in section.tables(folder, options.all) if rows]
        cells = [
            value for rows in tables for row in rows for value in row.values() if isinstance(value, Cell)
        ]
        is_fine &= all(cell.fine for cell in cells)
        compared = [cell for cell in cells if cell.compared]
        agree = (
            f" ({sum(cell.equal for cell in compared)} of {len(compared)} numbers agree)" if compared else ""
        )
        text = "\n\n".join([section.text.strip(), *map(markdown, tables)])
        print(f"{section.title}{agree}\n\n{text}\n({time.perf_counter() - began:.0f} s)\n", flush=True)
        if options.write:
            # no headings: one would begin a section of the built page that ends after the folded part
            write(name, f"<details>\n<summary>{section.title}{agree}</summary>\n\n{text}\n\n</details>")
            if section.picture:
                section.picture(PAGE.parent / f"{name}.png")
    return 0 if is_fine else 1


def write(name: str, text: str) -> None:
    """Replace one section of the page."""
    page = PAGE.read_text() if PAGE.is_file() else ""
    sections = dict(re.findall(r"<!-- (\w+) -->\n\n(.*?)\n(?=\n<!-- |\Z)", page, re.DOTALL)) | {name: text}
    body = "\n\n".join(f"<!-- {key} -->\n\n{sections[key]}" for key in SECTIONS if key in sections)
    rows: list[Row] = []
    for paper, start in PAPERS.items():
        own = "".join(part.split("</summary>")[0] for key, part in sections.items() if key.startswith(start))
        pairs = [(int(one), int(all_)) for one, all_ in re.findall(r"\((\d+) of (\d+) numbers", own)]
        agree, compared = map(sum, zip(*pairs, strict=True)) if pairs else (0, 0)
        rows.append({"paper": paper, "numbers compared": f"{compared}", "agree": f"{agree}"})
    PAGE.write_text(f"{HEAD.format(counts=markdown(rows))}\n{body}\n")


if __name__ == "__main__":
    sys.exit(main())
