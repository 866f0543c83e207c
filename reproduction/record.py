"""Sections of the page: published numbers beside computed ones, Markdown tables, and the store of long runs."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

LONG = 25_000_000  # rows with more updates run only with `--all`
STORE = Path(__file__).parent / "long.json"  # last results of these rows


@dataclass(frozen=True)
class Cell:
    """A published and a computed number.

    Attributes
    ----------
    published : str
        As printed, or "a to b" for a number that lies between a and b; empty if it is not available.
    ours : str
        In as many digits as printed, or "a to b" for several runs; empty if nothing was computed.
    reason : str
        Reason of a difference, if it is known.
    agrees : bool or None
        Whether the numbers agree; None compares them as printed. Intervals agree if they have a common number.
    """

    published: str
    ours: str
    reason: str = ""
    agrees: bool | None = None

    @property
    def equal(self) -> bool:
        """Whether the numbers agree."""
        if self.agrees is not None:
            return self.agrees
        return self.published == self.ours or bool(self.ours and distance(self.published, self.ours) == 0.0)

    @property
    def compared(self) -> bool:
        """Whether there are two numbers."""
        return bool(self.published and self.ours)

    @property
    def fine(self) -> bool:
        """Whether the numbers agree, cannot be compared, or differ for a known reason."""
        return not self.compared or self.equal or bool(self.reason)

    @property
    def verdict(self) -> str:
        """Text of the comparison: `=`, or the difference and its reason."""
        if not self.compared:
            return "not run yet" if self.published else "not available"
        if self.equal:
            return "="
        digits = min(len(end.partition(".")[2]) for end in self.published.split(" to "))
        apart = "differs" if self.agrees is False else f"{distance(self.published, self.ours):+,.{digits}f}"
        return apart + (f" ({self.reason})" if self.reason else "")


Row = dict[str, str | Cell]  # from the name of a column to its text or its numbers
Tables = Iterable[list[Row]]


class Section(NamedTuple):
    """A section: its title, its text, the function (folder, everything) that makes its tables, and its picture."""

    title: str
    text: str
    tables: Callable[[Path, bool], Tables]
    picture: Callable[[Path], None] | None = None


def distance(published: str, ours: str) -> float:
    """Return the computed minus the published number; of intervals, between the nearest ends, or 0 if they overlap."""
    (low, high), (least, most) = ends(published), ends(ours)
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
    return f"{value:.{len(printed.partition('.')[2])}f}"


def interval(texts: Iterable[str]) -> str:
    """Return the smallest and the largest of these numbers as "a to b", or the number if all are equal."""
    ordered = sorted(texts, key=number)
    return ordered[0] if ordered[0] == ordered[-1] else f"{ordered[0]} to {ordered[-1]}"


def recall(table: str) -> dict[str, list[float]]:
    """Return the last results of the long rows of a table."""
    return json.loads(STORE.read_text()).get(table, {})


def remember(table: str, results: Mapping[str, Iterable[float]]) -> None:
    """Store results of long rows; rows that did not run keep their stored results."""
    kept = json.loads(STORE.read_text())
    kept[table] = dict(sorted({**kept.get(table, {}), **{k: list(v) for k, v in results.items()}}.items()))
    STORE.write_text(json.dumps(dict(sorted(kept.items())), indent=1, ensure_ascii=False) + "\n")


def results_of(
    table: str, key: str, long: bool, everything: bool, run: Callable[[], list[float]]
) -> list[float]:
    """Return the results of a row: of a run, or, for a long one without `everything`, those stored."""
    if long and not everything:
        return recall(table).get(key, [])
    found = run()
    if long:
        remember(table, {key: found})
    return found


def markdown(rows: list[Row]) -> str:
    """Return a Markdown table; a column with a `Cell` has three: published, computed, verdict."""
    names = list(dict.fromkeys(name for row in rows for name in row))
    pairs = {name for row in rows for name, value in row.items() if isinstance(value, Cell)}
    head, lines = [], []
    for name in names:
        head += [f"{name}, published".lstrip(", "), "computed", "verdict"] if name in pairs else [name]
    for row in rows:
        line: list[str] = []
        for name in names:
            value = row.get(name, "")
            if isinstance(value, Cell):
                line += [value.published, value.ours, value.verdict]
            else:
                line += [value] + ["", ""] * (name in pairs)
        lines.append(line)
    return "\n".join("| " + " | ".join(line) + " |" for line in [head, ["---"] * len(head), *lines])
