"""One published number beside ours, what may be said of the two, and tables of them."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

LONG = 25_000_000  # updates of a row that only `--all` runs
STORE = Path(__file__).parent / "long.json"  # what such rows gave when they last ran


@dataclass(frozen=True)
class Cell:
    """One number of a table.

    Attributes
    ----------
    what, parameter : str
        The row: algorithm or data set, and its parameter.
    quantity : str
        The column.
    published : str
        As printed; empty where the number is not at hand.
    ours : str
        To the printed digits; empty where the row was not run.
    reason : str
        Why the two differ, where that is known; or what else is to be said.
    agrees : bool or None
        None compares the two as printed.
    stored : bool
        Is ours from the last run of the rows that only `--all` runs?
    """

    what: str
    parameter: str
    quantity: str
    published: str
    ours: str
    reason: str = ""
    agrees: bool | None = None
    stored: bool = False

    @property
    def equal(self) -> bool:
        """The same number, as far as it is printed."""
        return self.published == self.ours if self.agrees is None else self.agrees

    @property
    def fine(self) -> bool:
        """The same, or nothing to compare with, or different for a reason that is known."""
        return self.equal or not self.published or not self.ours or bool(self.reason)

    @property
    def verdict(self) -> str:
        """`=`, or the difference and its reason."""
        if not self.ours:
            return "not run yet" if self.published else ""
        if not self.published:
            return self.reason or "not at hand"
        if self.equal:
            return self.reason if self.agrees and self.reason else "="
        apart = difference(self.published, self.ours) if self.published[0].isdigit() else "differs"
        return apart + (f" ({self.reason})" if self.reason else "")


def difference(published: str, ours: str) -> str:
    """Ours minus the published number, as far as that is printed."""
    if "." not in published:
        return f"{number(ours) - number(published):+,.0f}"
    digits = len(published.rpartition(".")[2])
    return f"{number(ours) - number(published):+.{digits}f}"


def number(text: str) -> float:
    """A printed number."""
    return float(text.replace(",", ""))


def like(printed: str, value: float) -> str:
    """A value, to as many digits as the printed one has."""
    return f"{value:.{len(printed.rpartition('.')[2])}f}"


def recall(table: str) -> dict[str, list[float]]:
    """What the long rows of a table gave when they last ran."""
    return json.loads(STORE.read_text()).get(table, {}) if STORE.is_file() else {}


def remember(table: str, results: Mapping[str, Iterable[float]]) -> None:
    """Keep what long rows gave; rows that did not run keep what they have."""
    kept = json.loads(STORE.read_text()) if STORE.is_file() else {}
    kept[table] = dict(sorted({**kept.get(table, {}), **{k: list(v) for k, v in results.items()}}.items()))
    STORE.write_text(json.dumps(dict(sorted(kept.items())), indent=1, ensure_ascii=False) + "\n")


def markdown(head: list[str], rows: list[list[str]]) -> str:
    """A Markdown table."""
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def table(found: list[Cell], row: tuple[str, str] = ("algorithm", "parameter")) -> str:
    """Cells as Markdown: one line a row, and for each quantity the published number, ours and the verdict."""
    quantities = list(dict.fromkeys(cell.quantity for cell in found))
    lines: dict[tuple[str, str], dict[str, Cell]] = {}
    for cell in found:
        lines.setdefault((cell.what, cell.parameter), {})[cell.quantity] = cell
    compared = {q for q in quantities if any(c.published for c in found if c.quantity == q)}
    head = [*row]
    for quantity in quantities:
        head += (
            [f"{quantity}, published", "ours", "verdict"] if quantity in compared else [f"{quantity}, ours"]
        )
    rows = []
    for (what, parameter), cells in lines.items():
        line = [what, parameter]
        for quantity in quantities:
            cell = cells.get(quantity) or Cell(what, parameter, quantity, "", "")
            shown = cell.ours + ("†" if cell.stored and cell.ours else "")
            line += [cell.published, shown, cell.verdict] if quantity in compared else [shown]
        rows.append(line)
    return markdown(head, rows)


def basic(found: list[Cell]) -> str:
    """Single numbers, no row of a table: cells without a quantity."""
    rows = [[c.what, c.published, c.ours, c.verdict] for c in found]
    return markdown(["", "published", "ours", "verdict"], rows)


def both(found: list[Cell], row: tuple[str, str] = ("algorithm", "parameter")) -> str:
    """Single numbers first, then the table."""
    single = [cell for cell in found if not cell.quantity]
    return basic(single) + "\n\n" + table([cell for cell in found if cell.quantity], row)
