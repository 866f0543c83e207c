"""The page of results: raw rows in CSV files beside it, and its tables, which are written from these files.

`python -m benchmarks.results` writes all tables anew, without measuring.
"""

from __future__ import annotations

import argparse
import csv
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import date
from pathlib import Path
from typing import Any

import numpy as np
from threadpoolctl import threadpool_limits

FOLDER = Path(__file__).parents[1] / "docs" / "measurements"
MACHINE = "2 cores"
OURS = "maxmargin"
# the columns that say what a row is about; the others hold what was measured
KEYS = (
    "data", "kind", "problem", "loss", "C", "p", "power", "tol", "intercept", "against", "level", "rows", "workers",
    "solver", "peer", "learner", "process",
)  # fmt: skip

Row = dict[str, Any]
Measure = Callable[[Sequence[str] | None], Iterator[Row]]
Cell = Callable[[Sequence[Row]], object]


def read(name: str) -> list[Row]:
    """Return the rows of a CSV file of the page, as text; none if it does not exist."""
    path = FOLDER / f"{name}.csv"
    if not path.exists():
        return []
    with open(path, newline="") as file:
        return list(csv.DictReader(file))


def save(name: str, rows: Iterable[Row], machine: str = MACHINE, day: str = "") -> None:
    """Write rows in the place of older ones about the same, and the table of the page."""
    stamp = {"machine": machine, "day": day or date.today().isoformat()}
    texts = [{key: shown(value) for key, value in (row | stamp).items()} for row in rows]

    def about(row: Row) -> tuple[str, ...]:
        return tuple(row.get(key) or "" for key in KEYS)

    whole = {about(row): row for row in [*read(name), *texts]}
    columns = list(dict.fromkeys(key for row in whole.values() for key in row))
    with open(FOLDER / f"{name}.csv", "w", newline="") as file:
        writer = csv.DictWriter(file, columns, lineterminator="\n")
        writer.writeheader()
        writer.writerows(whole.values())
    write_table(name)


def shown(value: object) -> str:
    """Return a number with four digits, and other values as they are."""
    return f"{value:.4g}" if isinstance(value, float) else str(value)


def write_table(name: str) -> None:
    """Write a table of the page from its CSV file, with the date, the machine and the command."""
    rows = read(name)
    if not rows:
        return
    module, make = TABLES[name]
    days = sorted({row["day"] for row in rows})
    machines = "; ".join(dict.fromkeys(row["machine"] for row in rows))
    when = days[0] if len(days) == 1 else f"{days[0]} to {days[-1]}"
    command = f"python -m benchmarks.{module}" + ("" if name in ("kernel", "hardset") else f" --parts {name}")
    text = f"{make(rows)}\n\n{when}, {machines}: `{command}`; [rows]({name}.csv)."
    between(FOLDER / "index.md", name, text)


def between(page: Path, mark: str, text: str) -> None:
    """Replace the text between two marks of a page."""
    first, last = f"<!-- {mark} -->", f"<!-- end of {mark} -->"
    head, _, rest = page.read_text(encoding="utf-8").partition(first)
    page.write_text(f"{head}{first}\n\n{text}\n\n{last}{rest.partition(last)[2]}", encoding="utf-8")


def table(head: Iterable[object], rows: Iterable[Iterable[object]]) -> str:
    """Return a Markdown table."""
    lines = [list(head), *map(list, rows)]
    lines.insert(1, ["---"] * len(lines[0]))
    return "\n".join("| " + " | ".join(map(str, line)) + " |" for line in lines)


def extent(values: Sequence[float], form: str = ".2g") -> str:
    """Return the median, with the smallest and the largest value in brackets."""
    if not len(values):
        return ""
    three = (np.median(values), min(values), max(values))
    middle, least, most = (f"{float(f'{x:{form}}'):,g}" for x in three)
    return middle if least == most else f"{middle} ({least} to {most})"


# cells of tables, and tables


def numbers(rows: Sequence[Row], column: str) -> list[float]:
    """Return the numbers of a column."""
    return [float(row[column]) for row in rows if row.get(column)]


def ratios(rows: Sequence[Row], ours: str = "ours", theirs: str = "theirs") -> list[float]:
    """Return the ratios of two columns of times."""
    return [float(row[ours]) / float(row[theirs]) for row in rows if row.get(ours) and row.get(theirs)]


def count(**wanted: str) -> Cell:
    """Return a cell: the number of rows with these values."""
    return lambda rows: sum(all(row.get(key) == value for key, value in wanted.items()) for row in rows)


def ahead(row: Row) -> bool:
    """Whether a peer comes as close in less time, or alone."""
    slower = row["status"] != "CERTIFIED" or float(row["ours"]) > float(row["theirs"])
    return slower and row.get("reached") != "no"


def proved(rows: Sequence[Row]) -> list[Row]:
    """Return the rows of certified fits."""
    return [row for row in rows if row["status"] == "CERTIFIED"]


RATIO: Mapping[str, Cell] = {
    "ours / peer": lambda rows: extent(ratios(proved(rows))),
    "peer faster": lambda rows: sum(map(ahead, rows)),
}


def grouped(
    by: Sequence[str], cells: Mapping[str, Cell], whole: bool = True
) -> Callable[[Sequence[Row]], str]:
    """Return a function that makes a table with a line for each value of some columns, and one for all rows."""

    def make(rows: Sequence[Row]) -> str:
        groups: dict[tuple[str, ...], list[Row]] = {}
        for row in rows:
            groups.setdefault(tuple(row.get(key) or "" for key in by), []).append(row)
        lines = [[*key, *(cell(some) for cell in cells.values())] for key, some in groups.items()]
        if whole:
            lines.append(["all", *[""] * (len(by) - 1), *(cell(rows) for cell in cells.values())])
        return table([*by, *cells], lines)

    return make


def listed(*columns: str) -> Callable[[Sequence[Row]], str]:
    """Return a function that makes a table of these columns of all rows."""
    return lambda rows: table(columns, [[row.get(key) or "" for key in columns] for row in rows])


def times(peer: str, ours: str = "ours", theirs: str = "theirs") -> Cell:
    """Return a cell: the times of a peer, divided by ours."""
    return lambda rows: extent(ratios([row for row in rows if row["peer"] == peer], theirs, ours))


def linear(rows: Sequence[Row]) -> str:
    """Return the table of linear classifiers, with the faster peer of those that come as close."""
    best: dict[tuple[str, ...], Row] = {}
    for row in sorted(rows, key=lambda row: (row["reached"] == "no", float(row["theirs"]))):
        best.setdefault((row["data"], row["loss"], row["C"]), row)
    order = [tuple(row[key] for key in ("data", "loss", "C")) for row in rows]
    return grouped(["data"], {"problems": len, "peer as close": count(reached="yes"), **RATIO})(
        [best[key] for key in dict.fromkeys(order)]
    )


def norms(rows: Sequence[Row]) -> str:
    """Return the table of certified fits in every norm."""
    names = list(dict.fromkeys(row["p"] for row in rows))
    cells: dict[str, Cell] = {"fits of each": lambda some: len(some) // len(names)}
    cells |= {f"p = {p}": count(p=p, certified="yes") for p in names}
    return grouped(["loss", "power"], cells, whole=False)(rows)


def hardset(rows: Sequence[Row]) -> str:
    """Return the table of hard problems that each solver solves."""
    levels = ("0.001", "1e-06", "1e-09")

    def line(name: str, solver: str, column: str = "excess") -> list[object]:
        some = [row for row in rows if row["solver"] == solver]
        cells: list[object] = [name, len({row["problem"] for row in some})]
        for level in levels:
            tried = [row for row in some if row["level"] in ("", level)]
            cells.append(
                sum(float(row[column]) <= float(level) for row in tried if row["wrong"] in ("", "0"))
            )
        return cells

    solvers = [line(name, name) for name in dict.fromkeys(row["solver"] for row in rows)]
    head = ["solver", "problems it can state", *(f"solved to {level}" for level in levels)]
    return table(head, [line(f"{OURS}, certified", OURS, "gap"), *solvers])


INTELEX = "SVC of scikit-learn-intelex"
CERTIFIED: Mapping[str, Cell] = {"problems": len, "certified": count(status="CERTIFIED")}
REACHED: Mapping[str, Cell] = {**CERTIFIED, "peer as close": count(reached="yes")}
TEXT: Mapping[str, Cell] = {
    "visits of each row": lambda rows: extent(numbers(rows, "visits")),
    "seconds": lambda rows: extent(numbers(rows, "ours")),
    "LinearSVC, s": lambda rows: extent(numbers(rows, "theirs")),
}
NEAR: Mapping[str, Cell] = {"peer within 1e-3": lambda rows: sum(x <= 1e-3 for x in numbers(rows, "excess"))}
WARNED: Mapping[str, Cell] = {"peer warned": count(warned="yes")}
MEMORY = ("data", "loss", "C", "passes to 0.0001", "seconds", "peak MB")
STREAMS = (
    "rows a second, sparse",
    "rows a second, dense",
    "accuracy, adult",
    "accuracy, web",
    "accuracy, mnist",
)
KERNEL: Mapping[str, Cell] = {
    "SVC: fit": times("SVC"),
    "predict": times("SVC", "predict", "their predict"),
    "scikit-learn-intelex: fit": times(INTELEX),
    "its predict": times(INTELEX, "predict", "their predict"),
}
INF_NORM = (
    "maxmargin, s",
    "HiGHS, dual simplex, s",
    "HiGHS, interior points, s",
    "LinearSVC, s",
    "its margin / bound",
)
# CSV file: module that measures it, and its table
TABLES: dict[str, tuple[str, Callable[[Sequence[Row]], str]]] = {
    "linear": ("linear", linear),
    "text": ("linear", grouped(["loss", "intercept"], TEXT, whole=False)),
    "defaults": ("linear", grouped(["kind", "loss"], {**CERTIFIED, **RATIO, **WARNED})),
    "harsh": ("linear", grouped(["kind"], {**CERTIFIED, **NEAR, **RATIO})),
    "path": ("linear", listed("data", "path, s", "20 fits, s", "LinearSVC, s", "of which as close")),
    "startup": ("linear", listed("process", "seconds")),
    "kernel": ("kernel", grouped(["data", "against"], KERNEL, whole=False)),
    "norms": ("norm", norms),
    "norm_peers": ("norm", grouped(["peer", "p"], {**REACHED, **RATIO}, whole=False)),
    "inf_norm": ("norm", listed("data", *INF_NORM)),
    "hardset": ("hardset", hardset),
    "memory": ("scale", listed(*MEMORY)),
    "memory_peers": ("scale", listed("solver", "passes", "seconds", "excess")),
    "cluster": ("scale", listed("workers", "rows", "passes", "seconds", "lower")),
    "streams": ("scale", listed("learner", *STREAMS)),
}


def main(module: str, description: str | None, *parts: Measure) -> int:
    """Measure the parts that the command line names, and print them; with --write into the page and its CSV files."""
    known = {part.__name__: part for part in parts}
    parser = argparse.ArgumentParser(prog=f"python -m benchmarks.{module}", description=description)
    parser.add_argument("--parts", nargs="+", choices=list(known), default=list(known))
    parser.add_argument("--sets", nargs="+", help="data sets; all by default")
    parser.add_argument("--machine", default=MACHINE, help="as the page states it")
    parser.add_argument("--write", action="store_true", help="write the CSV files and tables of the page")
    options = parser.parse_args()
    with threadpool_limits(1), warnings.catch_warnings():
        warnings.simplefilter("ignore")  # peers warn when they end early; the true excess measures the same
        for name in options.parts:
            rows = []
            for row in known[name](options.sets):
                print(name, *(shown(value) for value in row.values()), flush=True)
                rows.append(row)
            if options.write:
                save(name, rows, options.machine)
    return 0


if __name__ == "__main__":
    for one in TABLES:
        write_table(one)
