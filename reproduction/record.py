"""Cells of the tables: a published and a computed number, their comparison, and Markdown tables of cells."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

LONG = 25_000_000  # rows with more updates run only with `--all`
STORE = Path(__file__).parent / "long.json"  # last results of these rows
NO_DATA = "data not at hand"  # the reason of a cell without a computed number


@dataclass(frozen=True)
class Cell:
    """Number of a table, published and computed.

    Attributes
    ----------
    what, parameter : str
        The row of the table: algorithm or data set, and its parameter.
    quantity : str
        The column.
    published : str
        As printed, or "a to b" for a number that is known to lie between a and b; empty if it is not available.
    ours : str
        Computed number, in as many digits as printed, or "a to b" for the results of several runs; empty if the row was
        not run.
    reason : str
        Reason of a difference, if it is known, or another remark; `NO_DATA` if nothing can be computed.
    agrees : bool or None
        Whether the numbers agree; None compares them as printed. Intervals agree if they have a common number.
    stored : bool
        Whether the computed number is from the store, which holds the last run of `--all`.
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
        """Whether the numbers are equal in the printed digits, or agree."""
        if self.agrees is None and any(" to " in text for text in (self.published, self.ours)):
            return bool(self.ours) and distance(self.published, self.ours) == 0.0
        return self.published == self.ours if self.agrees is None else self.agrees

    @property
    def fine(self) -> bool:
        """Whether the numbers are equal, cannot be compared, or differ for a known reason."""
        return not self.published or not self.ours or self.equal or bool(self.reason)

    @property
    def verdict(self) -> str:
        """Text of the comparison: `=`, or the difference and its reason."""
        if not self.ours:
            return (NO_DATA if self.reason == NO_DATA else "not run yet") if self.published else ""
        if not self.published:
            return self.reason or "not available"
        if self.equal:
            return self.reason if self.agrees and self.reason else "="
        apart = difference(self.published, self.ours) if self.published[0].isdigit() else "differs"
        return apart + (f" ({self.reason})" if self.reason else "")


def difference(published: str, ours: str) -> str:
    """Return `distance` in the printed digits."""
    digits = min(len(end.partition(".")[2]) for end in published.split(" to "))
    return f"{distance(published, ours):+,.{digits}f}"


def distance(published: str, ours: str) -> float:
    """Return the computed minus the published number; of intervals, between the nearest ends, or 0 if they overlap."""
    low, high = ends(published)
    least, most = ends(ours)
    return max(least - high, 0.0) + min(most - low, 0.0)


def ends(text: str) -> tuple[float, float]:
    """Return the ends of an interval, which are equal for a number."""
    low, _, high = text.partition(" to ")
    return number(low), number(high or low)


def number(text: str) -> float:
    """Return the value of a printed number."""
    return float(text.replace(",", ""))


def like(printed: str, value: float) -> str:
    """Return a value in as many digits as the printed one."""
    return f"{value:.{len(printed.rpartition('.')[2])}f}"


def interval(texts: Iterable[str]) -> str:
    """Return the smallest and the largest of these numbers as "a to b", or the number if all are equal."""
    ordered = sorted(texts, key=number)
    return ordered[0] if ordered[0] == ordered[-1] else f"{ordered[0]} to {ordered[-1]}"


def recall(table: str) -> dict[str, list[float]]:
    """Return the last results of the long rows of a table."""
    return json.loads(STORE.read_text()).get(table, {}) if STORE.is_file() else {}


def remember(table: str, results: Mapping[str, Iterable[float]]) -> None:
    """Store results of long rows; rows that did not run keep their stored results."""
    kept = json.loads(STORE.read_text()) if STORE.is_file() else {}
    kept[table] = dict(sorted({**kept.get(table, {}), **{k: list(v) for k, v in results.items()}}.items()))
    STORE.write_text(json.dumps(dict(sorted(kept.items())), indent=1, ensure_ascii=False) + "\n")


def markdown(head: list[str], rows: list[list[str]]) -> str:
    """Return a Markdown table."""
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def table(found: list[Cell], row: tuple[str, str] = ("algorithm", "parameter")) -> str:
    """Return a Markdown table: for each row and quantity the published and the computed number, and the verdict."""
    quantities = list(dict.fromkeys(cell.quantity for cell in found))
    lines: dict[tuple[str, str], dict[str, Cell]] = {}
    for cell in found:
        lines.setdefault((cell.what, cell.parameter), {})[cell.quantity] = cell
    compared = {q for q in quantities if any(c.published for c in found if c.quantity == q)}
    head = [*row]
    for quantity in quantities:
        head += (
            [f"{quantity}, published", "computed", "verdict"]
            if quantity in compared
            else [f"{quantity}, computed"]
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
    """Return the table of single numbers: cells without a quantity."""
    rows = [[c.what, c.published, c.ours, c.verdict] for c in found]
    return markdown(["", "published", "computed", "verdict"], rows)


def both(found: list[Cell], row: tuple[str, str] = ("algorithm", "parameter")) -> str:
    """Return the table of single numbers, followed by the main table."""
    single = [cell for cell in found if not cell.quantity]
    return basic(single) + "\n\n" + table([cell for cell in found if cell.quantity], row)
