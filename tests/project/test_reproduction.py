"""Published values: short runs of every table, and completeness of the tables and the page.

The published numbers stand in the scripts of `reproduction`, which print the tables.
"""

from __future__ import annotations

from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.spatial import ConvexHull

from maxmargin import PUMMA, AggressiveROMMA, MaxMarginClassifier
from maxmargin.problem.problem import dual_exponent
from reproduction import (
    cramma,
    data,
    mpu,
    mpu_certified,
    mpu_table1,
    pumma_figure3,
    pumma_figures,
    pumma_table1,
    pumma_table2,
    theorems,
)
from reproduction.__main__ import SECTIONS
from reproduction.epochs import epochs
from reproduction.record import LONG, NO_DATA, Cell, like, recall

ROOT = Path(__file__).resolve().parents[2]
TABLES = [  # of the CRAMMA paper, with their data and number of counts
    (import_module(f"reproduction.cramma_table{k}").TABLE, load, count)
    for k, load, count in (
        (1, data.sonar, 24),
        (2, data.sonar, 8),
        (3, data.wbc_separable, 15),
        (4, data.wbc, 15),
    )
]
QUICK = 500_000  # updates of runs that take at most some tenths of a second


def rows_to_run() -> Iterator[Any]:
    """Yield the rows without long runs; all but the first row of each algorithm, if it is quick, are slow tests.

    Counts with a second value, `double`, depend on rounding, for the reason that the table states.
    """
    for table, load, _ in TABLES:
        for row in table.rows:
            first = row.count == min(other.count for other in table.rows if other.what == row.what)
            marks = () if first and row.count < QUICK else pytest.mark.slow
            if row.count <= LONG and row.double is None:
                yield pytest.param(table, load, row, marks=marks, id=f"{table.name}-{row.count}")


@pytest.mark.parametrize(("table", "load", "row"), list(rows_to_run()))
def test_published_counts_are_reproduced_exactly(data_folder: Path, table: Any, load: Any, row: Any) -> None:
    updates, *others = table.run(row, *load(data_folder))
    assert updates == row.count
    assert [like(*pair) for pair in zip(row.printed, others, strict=True)] == list(row.printed)


@pytest.mark.parametrize(("table", "_", "count"), TABLES)
def test_recorded_long_runs_agree_with_the_published_counts(table: Any, _: Any, count: int) -> None:
    recorded = recall(table.name)
    assert len(table.rows) == count
    for row in table.rows:
        if row.count > LONG:
            updates, *others = recorded[row.key]
            assert updates == row.count or row.double is not None
            assert [like(*pair) for pair in zip(row.printed, others, strict=True)] == list(row.printed)
            assert abs(updates / row.count - 1.0) < 3e-4


def test_radii_and_largest_margins_equal_the_published_values(data_folder: Path) -> None:
    """To half a unit of the last printed digit, or to a bound's relative tol of 1e-6 where that is more."""
    assert cramma.radius2(data.sonar(data_folder)[0], 1.0) ** 0.5 == pytest.approx(3.812101, abs=5e-7)
    assert cramma.radius2(data.wbc_separable(data_folder)[0], 30.0) == 1716.0
    assert cramma.radius2(data.wbc(data_folder)[0], 10.0, 0.5) == 917.0
    margin = cramma.optimum(*data.sonar(data_folder), np.inf, "augmented", tol=1e-6)
    assert margin == pytest.approx(0.00840574, abs=2e-8)
    margin = cramma.optimum(*data.wbc(data_folder), 0.5, "augmented", 10.0, tol=1e-6)
    assert margin == pytest.approx(0.13033452, abs=2e-7)


# the PUMMA paper


def test_ionosphere_margins_equal_those_of_the_pumma_paper(data_folder: Path) -> None:
    X, y = data.ionosphere(data_folder)
    assert f"{100 * pumma_table1.run(PUMMA(delta=0.01, shuffle=False), X, y):.2f}" == "10.49"
    R = float((X * X).sum(axis=1).max()) ** 0.5
    assert f"{100 * pumma_table1.run(AggressiveROMMA(delta=0.01, shuffle=False), X, y, R):.2f}" == "10.50"
    assert 100 * cramma.optimum(X, y, 0.5, "free", tol=1e-6) == pytest.approx(10.557, abs=1e-3)


def test_margins_of_the_pumma_paper_allow_the_votes_without_the_empty_row(data_folder: Path) -> None:
    """The row without votes moves the optimum out of the interval that the printed margins allow."""
    low, high = pumma_table1.PUBLISHED["house-votes"].allowed
    X, y = {name: rows for name, *rows in pumma_table1.sets(data_folder)}["house-votes"]
    assert low <= 100 * cramma.optimum(X, y, 0.5, "free", tol=1e-6) <= high
    assert 100 * cramma.optimum(*data.votes(data_folder), 0.5, "free", tol=1e-6) < 0.98 * low


def test_margins_of_the_pumma_paper_exclude_the_features_of_a9a(data_folder: Path) -> None:
    """The certified optimum on the full set is too large, but not without the binned numbers."""
    low, high = pumma_table1.PUBLISHED["adult-full"].allowed
    X, y = data.adult(data_folder)
    assert 100 * cramma.optimum(X, y, 0.5, "free", tol=1e-4) > 1.02 * high
    nominal = np.delete(X.toarray(), pumma_table1.BINNED_NUMBERS, axis=1)
    assert low <= 100 * cramma.optimum(nominal, y, 0.5, "free", tol=1e-4) <= high


def test_updates_of_pumma_are_invariant_under_translation() -> None:
    pumma, romma = pumma_figures.LINES[:2]
    assert pumma_figure3.shifted(pumma, 0.0) == pumma_figure3.shifted(pumma, 4.0)
    assert pumma_figure3.shifted(romma, 4.0) > 4 * pumma_figure3.shifted(romma, 0.0)


@pytest.mark.parametrize("line", pumma_figures.LINES[:3], ids=lambda line: line.key(15))
def test_epochs_end_with_the_updates_of_a_fit_and_the_guaranteed_margin(line: Any) -> None:
    """The margin is at least 1 - delta times the largest one with the same intercept, and at most the largest."""
    X, y = data.r_of_k(1, 1)
    assert np.array_equal(y > 0, (X[:, :16] > 0).any(axis=1))
    assert (set(X.flat), y.sum()) == ({-1.0, 1.0}, 0.0)
    own: dict[str, Any] = {"intercept": "augmented", "intercept_scaling": line.rho} if line.rho else {}
    options: dict[str, Any] = {"C": np.inf, "p": line.p}
    run = MaxMarginClassifier(algorithm=line.rule, tol=1e-13, max_iter=10**9, **options, **own).fit(X, y)
    looks = list(epochs(line.rule, X, y, line.p, line.rho))
    assert looks[-1].updates == looks[-2].updates == run.history_[-1].steps
    same: Any = MaxMarginClassifier(tol=1e-3, **options, **own).fit(X, y).certificate_
    free: Any = MaxMarginClassifier(tol=1e-3, **options).fit(X, y).certificate_
    assert 0.9 * same.lower <= looks[-1].margin <= free.upper
    assert looks[-1].margin >= pumma_figures.level(line.p) * pumma_figures.radius(line.p)


def test_recorded_margins_of_table_2_equal_the_published_ones() -> None:
    """Optima agree to half a unit of the last digit, but for digit 9 without a bias: 0.5405 here, published 0.541.

    The last digit of PUMMA and ROMMA depends on the order of the rows: they agree to one unit.
    """
    recorded = recall("pumma_table2")
    printed = (pumma_table2.BIAS, pumma_table2.PLAIN, pumma_table2.WITH_PUMMA, pumma_table2.WITH_ROMMA)
    for digit, published in enumerate(zip(*printed, strict=True)):
        low, high, low_plain, high_plain, pumma, _, romma, _ = recorded[f"digit {digit}"]
        for best, online, lower, upper, found in (
            (published[0], published[2], low, high, pumma),
            (published[1], published[3], low_plain, high_plain, romma),
        ):
            assert lower <= upper <= lower * (1.0 + 5.01e-5)
            off = 6e-4 if best == "0.541" and digit == 9 else 5e-4
            assert 0.5 * (lower + upper) == pytest.approx(float(best), abs=off)
            assert 0.99 * upper <= found <= upper
            assert found == pytest.approx(float(online), abs=1e-3)


@pytest.mark.slow
def test_table_2_on_600_images_reaches_the_optimum(data_folder: Path) -> None:
    numbers, _ = pumma_table2.rows_of(data_folder, 600)
    found = [cell for digit, row in enumerate(numbers) for cell in pumma_table2.compare(600, digit, row)]
    assert len(found) == 80
    assert all(cell.fine for cell in found)
    fractions = [float(cell.ours) for cell in found if cell.quantity.endswith("of the optimum")]
    assert 0.99 <= min(fractions) <= max(fractions) <= 1.0


# the MPU paper

QUICK_RUNS = ((1, 0), (1, 3))  # every algorithm once


@pytest.mark.parametrize(
    ("number", "run"),
    [
        pytest.param(
            number, run, marks=[pytest.mark.slow] * ((number, run) not in QUICK_RUNS), id=f"{name}-{number}"
        )
        for number in (0, 1)
        for run, (name, _) in enumerate(mpu_certified.RUNS)
    ],
)
def test_certified_objective_is_at_most_the_published_one(data_folder: Path, number: int, run: int) -> None:
    """The optimum is given to half a unit of its last digit."""
    described, optimum = mpu.AT_HAND[number], mpu.AT_HAND[number].optimum
    X, y = described.load(data_folder)
    # raises unless the certificate is valid
    cell = mpu_certified.reproduce(described, *mpu_certified.RUNS[run], X, y)
    assert cell.certified
    assert cell.gap <= 1e-4
    assert optimum - 0.005 <= cell.upper <= cell.published
    assert optimum * (1.0 - 1e-4) <= cell.lower <= optimum + 0.005


# the papers of the smoothed Perceptrons and of IMA_p


def test_steps_are_within_the_bounds_of_the_theorems() -> None:
    found = [*theorems.theorem_cells((0.1, 0.02)), *theorems.p_margin_cells()]
    ratios = [cell for cell in found if cell.quantity == "ratio"]
    assert len(ratios) == 2 * 2 * len(theorems.RUNS) + 3 * 4
    assert all(cell.fine and cell.agrees for cell in ratios)
    assert all(cell.fine for cell in found)
    hard = [float(one.ours) for one in ratios if one.what == "NP" and one.parameter.startswith("separable")]
    assert min(hard) > 0.1  # the patterns are not easier than the bound needs


@pytest.mark.parametrize("rho", theorems.MARGINS)
def test_patterns_of_the_theorems_have_the_margin_that_the_tables_state(rho: float) -> None:
    Y = theorems.separable(rho, 1)
    signs = np.where(np.arange(len(Y)) % 2 == 0, 1.0, -1.0)
    model = MaxMarginClassifier(C=np.inf, fit_intercept=False).fit(signs[:, None] * Y, signs)
    assert model.certificate_.lower == pytest.approx(rho, rel=1e-8)
    Y = theorems.inseparable(rho, 1)
    assert -ConvexHull(Y).equations[:, -1].max() == pytest.approx(rho, rel=1e-8)
    for p in theorems.EXPONENTS:
        Y, w = theorems.with_p_margin(p, 1)
        assert np.linalg.norm(w, dual_exponent(p)) == pytest.approx(1.0, rel=1e-12)
        model = MaxMarginClassifier(C=np.inf, p=p, fit_intercept=False, tol=1e-6).fit(
            signs[:, None] * Y, signs
        )
        assert model.certificate_.lower <= theorems.MARGIN * (1.0 + 1e-9)
        assert model.certificate_.upper >= (Y @ w).min() * (1.0 - 1e-9)
        assert (Y @ w).min() == pytest.approx(theorems.MARGIN, rel=1e-9)
        assert model.certificate_.gap <= 1e-6


@pytest.mark.parametrize("column", ["MPU", "DCD"])
@pytest.mark.parametrize("described", [pytest.param(mpu.ADULT, marks=pytest.mark.slow), mpu.WEB])
def test_best_of_five_orders_at_the_printed_parameters_is_at_most_the_published_objective(
    data_folder: Path, described: mpu.DataSet, column: str
) -> None:
    J = mpu_table1.results(column, described, *described.load(data_folder)).J
    printed = described.J.split()[mpu.PLACES[column]]
    assert described.optimum - 0.005 <= min(J) <= max(J) <= described.optimum * 1.0003
    assert float(like(printed, min(J))) <= float(printed)


@pytest.mark.parametrize("described", mpu.AT_HAND, ids=lambda described: described.name)
def test_recorded_objectives_of_pegasos_are_at_most_twice_as_far_from_the_optimum_as_the_published_one(
    described: mpu.DataSet,
) -> None:
    _, _, *J = recall(mpu_table1.NAME)[f"{described.name}, Pegasos"]
    assert described.optimum - 0.005 <= min(J)
    assert max(J) - described.optimum <= 2.0 * (float(described.J.split()[3]) - described.optimum)


# the page


def test_page_holds_every_section_and_count() -> None:
    page = (ROOT / "reproduction" / "README.md").read_text()
    for name in SECTIONS:
        title = import_module(f"reproduction.{name}").TITLE
        assert f"<!-- {name} -->\n\n<details>\n<summary>{title}<" in page
    assert all(f"| {row.count:,} |" in page for table, *_ in TABLES for row in table.rows)
    assert all(f"| {J} |" in page for described in mpu.DATA_SETS for J in described.J.split())
    assert "not run yet" not in page


def test_verdicts_of_cells() -> None:
    for published, ours, reason, verdict, fine in (
        ("", "1 to 2", "", "not available", True),
        ("1,000", "1,000", "", "=", True),
        ("1,000", "1,203", "rounding", "+203 (rounding)", True),
        ("7.80", "7.79", "", "-0.01", False),
        ("", "7.79", "", "not available", True),
        ("7.80", "", "", "not run yet", True),
        ("7.80", "", NO_DATA, NO_DATA, True),
        ("7.80", "7.79 to 7.80", "", "=", True),
        ("7.80", "7.82 to 7.90", "", "+0.02", False),
        ("1.0 to 5.0", "2.2", "", "=", True),
        ("9.7 to 31", "54", "more passes", "+23 (more passes)", True),
    ):
        cell = Cell("a", "1", "updates", published, ours, reason)
        assert (cell.verdict, cell.fine) == (verdict, fine)
