"""Published values: short runs of the tables of `reproduction`, which has the printed numbers."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from maxmargin import MaxMarginClassifier
from maxmargin.algorithms import PUMMA, AggressiveROMMA
from reproduction import cramma, cutting_plane, data, mpu, pumma, theorems
from reproduction.__main__ import PAGE, SECTIONS
from reproduction.record import LONG, Cell, like, recall

COUNTS = {table: cramma.published(table) for table in cramma.SETTINGS}
QUICK = 100_000  # updates of runs that take at most some tenths of a second


def rows_to_run() -> Iterator[Any]:
    """Yield the rows without long runs; all but the quick first row of each algorithm are slow tests."""
    for table, rows in COUNTS.items():
        for row in rows:
            first = row.updates == min(other.updates for other in rows if other.algorithm == row.algorithm)
            marks = () if first and row.updates < QUICK else pytest.mark.slow
            if row.updates <= LONG and not row.double:
                yield pytest.param(row, marks=marks, id=f"table {table}, {row.updates}")


@pytest.mark.parametrize("row", list(rows_to_run()))
def test_published_counts_are_reproduced_exactly(data_folder: Path, row: Any) -> None:
    updates, *others = cramma.run(row, *cramma.SETTINGS[row.table].load(data_folder))
    assert updates == row.updates
    assert [like(*pair) for pair in zip(row.numbers, others, strict=True)] == row.numbers


def test_recorded_long_runs_agree_with_the_published_counts() -> None:
    assert [len(rows) for rows in COUNTS.values()] == [24, 8, 15, 15]
    for row in (row for rows in COUNTS.values() for row in rows if row.updates > LONG):
        updates, *others = recall(f"cramma_table{row.table}")[" ".join(row.labels)]
        assert updates == row.updates or row.double
        assert abs(updates / row.updates - 1.0) < 3e-4
        assert [like(*pair) for pair in zip(row.numbers, others, strict=True)] == row.numbers


def test_constants_of_the_data_equal_the_published_ones(data_folder: Path) -> None:
    assert cramma.radius2(data.sonar(data_folder)[0], 1.0) ** 0.5 == pytest.approx(3.812101, abs=5e-7)
    assert cramma.radius2(data.wbc_separable(data_folder)[0], 30.0) == 1716.0
    margin = cramma.optimum(*data.wbc(data_folder), 0.5, 10.0, tol=1e-6)
    assert margin == pytest.approx(0.13033452, abs=2e-7)


@pytest.mark.slow
def test_margins_on_ionosphere_equal_those_of_the_pumma_paper(data_folder: Path) -> None:
    X, y = data.ionosphere(data_folder)
    R = float((X * X).sum(axis=1).max()) ** 0.5
    assert f"{100 * pumma.run(PUMMA(delta=0.01, shuffle=False), X, y):.2f}" == "10.49"
    assert f"{100 * pumma.run(AggressiveROMMA(delta=0.01, shuffle=False), X, y, R):.2f}" == "10.50"


@pytest.mark.slow
def test_updates_of_pumma_are_invariant_under_translation() -> None:
    own, romma = pumma.LINES[:2]
    assert pumma.shifted(own, 0.0) == pumma.shifted(own, 4.0)
    assert pumma.shifted(romma, 4.0) > 4 * pumma.shifted(romma, 0.0)


@pytest.mark.parametrize("line", [*pumma.LINES[:2], pytest.param(pumma.LINES[2], marks=pytest.mark.slow)])
def test_epochs_end_with_the_updates_of_a_fit_above_the_level(line: Any) -> None:
    X, y = data.r_of_k(1, 1)
    assert np.array_equal(y > 0, (X[:, :16] > 0).any(axis=1))
    run = line.rule.run(X, y, p=line.p, intercept="free", max_epochs=np.inf, record=None)
    last = pumma.epochs(line.rule, X, y, line.p)[-1]
    assert last.updates == run.n_updates
    assert last.margin >= pumma.level(line.p) * pumma.radius(line.p)


def test_the_printed_newton_iteration_fails_where_the_whole_jacobian_does_not() -> None:
    X, y = pumma.newton_sets()["normal, 300 x 30"]
    for p, fails in ((2.5, False), (30.0, True)):
        problems = pumma.harvest(X, y, p, np.random.default_rng(1))[:50]
        steps = {
            printed: [pumma.newton(problem, p, printed) for problem in problems] for printed in (True, False)
        }
        assert (None in steps[True]) is fails
        assert steps[False].count(None) < 15


def test_recorded_margins_on_mnist_equal_the_published_ones() -> None:
    """To one unit of the last digit, which depends on the order of the rows."""
    for digit in range(10):
        for side in (0, 1):
            cells = [cell for cell in pumma.compared(digit, side, recall("pumma_table2")[f"digit {digit}"]).values()
                     if isinstance(cell, Cell)]  # fmt: skip
            assert all(
                cell.agrees or abs(float(cell.ours) - float(cell.published)) < 0.0015 for cell in cells
            )


@pytest.mark.parametrize(
    "name", [name for name in mpu.RUNS if name != "cutting planes, one slack as in SVMperf"]
)
def test_certified_objectives_on_the_web_set_are_at_most_the_published_one(
    data_folder: Path, name: str
) -> None:
    described, (column, _) = mpu.DATA_SETS[1], mpu.RUNS[name]
    found = mpu.certified(name, 1e-5, *described.load(data_folder))
    assert described.optimum - 0.005 <= found.upper <= float(described.J.split()[mpu.PLACES[column]])
    assert described.optimum * (1.0 - 1e-5) <= found.lower <= described.optimum + 0.005


@pytest.mark.parametrize("ocas", [True, False])
def test_cutting_planes_bracket_the_optimum_from_both_sides(ocas: bool) -> None:
    X, y = data.r_of_k(4, 0, n=20, m=100)
    y[:10] *= -1.0
    best: Any = MaxMarginClassifier(loss="hinge", fit_intercept=False, tol=1e-9).fit(X, y).certificate_
    points = list(cutting_plane.rounds(X, y, ocas))
    assert all(point.value >= best.lower and lower <= best.upper for point, lower, _ in points)
    assert points[-1][0].value == pytest.approx(points[-1][1], rel=1e-8)


@pytest.mark.slow
def test_steps_are_within_the_bounds_of_the_theorems() -> None:
    rows = [*theorems.steps_table((0.1, 0.02)), *theorems.p_margin_table()]
    cells = [cell for row in rows for cell in row.values() if isinstance(cell, Cell)]
    assert len(cells) == 2 * 2 * len(theorems.RUNS) + 4 * 7
    assert all(cell.agrees for cell in cells)


def test_the_page_holds_every_section_and_every_number_has_a_reason() -> None:
    page = PAGE.read_text()
    titles = [section.title for section in SECTIONS.values()]
    assert all(f"<summary>{title}" in page for title in titles)
    assert not re.search(r"not run yet|\| differs \||\| \+[\d.,]+ \|", page)
    cells = ("1.0 to 5.0", "2.2"), ("7.80", "7.82 to 7.90"), ("1,000", "1,203"), ("7.80", "")
    assert [Cell(*cell).verdict for cell in cells] == ["=", "+0.02", "+203", "not run yet"]
