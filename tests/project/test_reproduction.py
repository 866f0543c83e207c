"""Published values: short runs of every table, and completeness of the tables and the page."""

from __future__ import annotations

import importlib
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from maxmargin import PUMMA, AggressiveROMMA, MaxMarginClassifier, Status, verify
from maxmargin.algorithms import ALGORITHMS

ROOT = Path(__file__).resolve().parents[2]

SECTIONS = (
    "cramma_table1", "cramma_table2", "cramma_table3", "cramma_table4", "pumma_figure3", "pumma_figure4",
    "pumma_large_p", "pumma_newton", "ima_margins", "elimination", "pumma_table1", "pumma_table2",
    "mpu_table1", "separable_or_not",
)  # fmt: skip
COUNTS = {
    "cramma_table1": {
        "Perceptron": (
            247_140, 660_698, 1_117_124, 3_977_612, 17_647_271, 39_131_402, 97_717_549, 195_358_932,
        ),
        "ALMA₂": (
            415_119, 1_584_785, 3_133_968, 6_657_109, 10_170_590, 28_339_340, 137_693_242, 1_735_836_937,
        ),
        "CRAMMA½": (
            248_267, 669_170, 1_047_757, 2_143_989, 2_762_005, 5_531_113, 21_220_354, 188_073_965,
        ),
    },
    "cramma_table2": {
        "CRAMMA²": (70_798, 106_507, 264_396, 756_035, 2_275_334, 6_994_002, 21_690_267, 67_893_557)
    },
    "cramma_table3": {
        "Perceptron": (1_718_705, 2_720_447, 3_976_477, 5_734_457, 10_508_566),
        "ALMA₂": (2_704_553, 6_254_523, 13_320_425, 27_666_246, 88_363_792),
        "CRAMMA½": (259_036, 431_543, 660_486, 824_120, 2_044_555),
    },
    "cramma_table4": {
        "Perceptron": (67_913, 560_591, 38_336_601),
        "ALMA₂": (79_061, 35_542_412),
        "CRAMMA½": (80_671, 7_252_904),
    },
}  # fmt: skip
# counts that depend on rounding (the table states the reason)
ROUNDED = (21_220_354, 188_073_965, 1_735_836_937, 21_690_267, 67_893_557)
QUICK, LONG = 1_000_000, 25_000_000
DATA = {
    "cramma_table1": "sonar",
    "cramma_table2": "sonar",
    "cramma_table3": "wbc_separable",
    "cramma_table4": "wbc",
}


@pytest.fixture
def scripts(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Import a reproduction script by name: tests and printed tables share their code."""
    monkeypatch.syspath_prepend(str(ROOT))
    return lambda name: importlib.import_module(f"reproduction.{name}")


def parametrised_counts(least: int, most: int) -> list[Any]:
    return [
        pytest.param(name, count, id=f"{name}-{count}")
        for name, algorithms in COUNTS.items()
        for counts in algorithms.values()
        for count in counts
        if least < count <= most and count not in ROUNDED
    ]


# the CRAMMA paper


@pytest.mark.parametrize("name", COUNTS)
def test_tables_hold_every_published_count(scripts: Any, name: str) -> None:
    found: dict[str, tuple[int, ...]] = {}
    for row in scripts(name).TABLE.rows:
        found[row.what] = (*found.get(row.what, ()), row.count)
    assert found == COUNTS[name]


def check_published_count(scripts: Any, folder: Path, name: str, count: int) -> None:
    table = scripts(name).TABLE
    (row,) = (row for row in table.rows if row.count == count)
    X, y = getattr(scripts("data"), DATA[name])(folder)
    updates, margin, *_ = table.run(row, X, y)
    assert updates == count
    if row.margin:
        assert scripts("record").like(row.margin, margin) == row.margin


@pytest.mark.parametrize(("name", "count"), parametrised_counts(0, QUICK))
def test_published_counts_are_reproduced_exactly(
    scripts: Any, data_folder: Path, name: str, count: int
) -> None:
    check_published_count(scripts, data_folder, name, count)


@pytest.mark.slow
@pytest.mark.parametrize(("name", "count"), parametrised_counts(QUICK, LONG))
def test_published_counts_of_millions_are_reproduced_exactly(
    scripts: Any, data_folder: Path, name: str, count: int
) -> None:
    check_published_count(scripts, data_folder, name, count)


@pytest.mark.parametrize("name", COUNTS)
def test_recorded_long_runs_agree_or_are_marked_as_rounding(scripts: Any, name: str) -> None:
    table = scripts(name).TABLE
    recorded = scripts("record").recall(name)
    for row in table.rows:
        if row.count > LONG:
            found, *_ = recorded[row.key]
            assert found == row.count or row.count in ROUNDED
            assert abs(found / row.count - 1.0) < 3e-4
        assert (row.double is not None) == (row.count in ROUNDED)


def test_radii_and_largest_margins_equal_the_published_values(scripts: Any, data_folder: Path) -> None:
    cramma, data = scripts("cramma"), scripts("data")
    assert cramma.radius2(data.sonar(data_folder)[0], 1.0) ** 0.5 == pytest.approx(3.812101, abs=5e-7)
    assert cramma.radius2(data.wbc_separable(data_folder)[0], 30.0) == 1716.0
    assert cramma.radius2(data.wbc(data_folder)[0], 10.0, 0.5) == 917.0
    margin = cramma.optimum(*data.sonar(data_folder), np.inf, "augmented", tol=1e-6)
    assert margin == pytest.approx(0.00840574, abs=2e-8)
    margin = cramma.optimum(*data.wbc(data_folder), 0.5, "augmented", 10.0, tol=1e-6)
    assert margin == pytest.approx(0.13033452, abs=2e-7)


# the PUMMA paper


def test_ionosphere_margins_equal_those_of_the_pumma_paper(scripts: Any, data_folder: Path) -> None:
    table = scripts("pumma_table1")
    X, y = scripts("data").ionosphere(data_folder)
    assert f"{100 * table.run(PUMMA(delta=0.01, shuffle=False), X, y):.2f}" == "10.49"
    R = float((X * X).sum(axis=1).max()) ** 0.5
    assert f"{100 * table.run(AggressiveROMMA(delta=0.01, shuffle=False), X, y, R):.2f}" == "10.50"
    assert 100 * scripts("cramma").optimum(X, y, 0.5, "free", tol=1e-6) == pytest.approx(10.557, abs=1e-3)


def test_tables_hold_the_published_margins_of_the_pumma_paper(scripts: Any) -> None:
    assert tuple(scripts("pumma_table1").ADULT.values()) == ("4.95", "3.40", "2.40", "1.69", "1.20", "0.83")
    assert tuple(scripts("pumma_figure3").BIASES) == (15, 9, 1)


def test_updates_of_pumma_are_invariant_under_translation(scripts: Any) -> None:
    figure, data = scripts("pumma_figure3"), scripts("data")
    rules = list(figure.ALGORITHMS.values())
    near, far = data.r_of_k(4, 1), data.r_of_k(4, 1, shift=4.0)
    assert figure.run(rules[0], *near)[0] == figure.run(rules[0], *far)[0]
    assert figure.run(rules[1], *far)[0] > 4 * figure.run(rules[1], *near)[0]


DIGITS = {
    True: (1.339, 0.712, 0.810, 0.763, 0.650, 0.672, 0.941, 0.621, 0.810, 0.558),
    False: (1.155, 0.712, 0.765, 0.722, 0.629, 0.664, 0.880, 0.611, 0.727, 0.541),
}


def test_recorded_optima_of_table_2_equal_the_published_ones(scripts: Any) -> None:
    table = scripts("pumma_table2")
    assert {bias: tuple(f"{margin:.3f}" for margin in margins) for bias, margins in DIGITS.items()} == {
        True: table.BIAS,
        False: table.PLAIN,
    }
    recorded = scripts("record").recall("pumma_table2")
    for digit in range(10):
        low, high, low_plain, high_plain, *_ = recorded[f"digit {digit}"]
        assert low <= high <= low * (1.0 + 5.01e-5)
        assert low_plain <= high_plain <= low_plain * (1.0 + 5.01e-5)
        assert 0.5 * (low + high) == pytest.approx(DIGITS[True][digit], abs=5e-4)
        # digit 9: 0.5405 here, published 0.541
        most = 6e-4 if digit == 9 else 5e-4
        assert 0.5 * (low_plain + high_plain) == pytest.approx(DIGITS[False][digit], abs=most)


def test_recorded_margins_of_table_2_equal_the_published_ones(scripts: Any) -> None:
    recorded = scripts("record").recall("pumma_table2")
    assert recorded["digit 0"][4] == pytest.approx(1.330, rel=0.01)
    assert recorded["digit 0"][6] == pytest.approx(1.150, rel=0.01)
    for digit in range(10):
        _, high, _, high_plain, pumma, _, romma, _ = recorded[f"digit {digit}"]
        assert 0.99 * high <= pumma <= high
        assert 0.99 * high_plain <= romma <= high_plain
    for *_, gigabytes in (row for key, row in recorded.items() if not key.startswith("digit")):
        assert gigabytes < 8.0


def test_table_2_on_600_images_reaches_the_optimum(scripts: Any, data_folder: Path) -> None:
    table = scripts("pumma_table2")
    numbers, _ = table.rows_of(data_folder, 600)
    found = [cell for digit, row in enumerate(numbers) for cell in table.compare(600, digit, row)]
    assert len(found) == 80
    assert all(cell.fine for cell in found)
    fractions = [float(cell.ours) for cell in found if cell.quantity.endswith("of the optimum")]
    assert 0.99 <= min(fractions) <= max(fractions) <= 1.0


@pytest.mark.parametrize("r", [1, 4, 8])
def test_r_of_k_data_follow_their_definition(scripts: Any, r: int) -> None:
    X, y = scripts("data").r_of_k(r, 0)
    assert set(np.unique(X)) == {-1.0, 1.0}
    assert np.array_equal(y > 0, (X[:, :16] > 0).sum(axis=1) >= r)
    assert y.sum() == 0.0


# the MPU paper


@pytest.fixture
def table1(scripts: Any) -> Any:
    return scripts("mpu_table1")


def test_stored_objectives_equal_those_of_the_paper(table1: Any) -> None:
    rivals = {"cutting-plane": 11434.4, "pegasos": 11434.9}
    assert table1.ADULT.published == {"mpu": 11434.4, "dcd": 11434.4, **rivals}
    rivals = {"cutting-plane": 6605.22, "pegasos": 6605.31}
    assert table1.WEB.published == {"mpu": 6605.17, "dcd": 6605.15, **rivals}
    assert [(a.name, a.schedule) for _, a in table1.RUNS] == [
        ("mpu", "two-level"), ("mpu", "gap"), ("dcd", "shrinking"), ("dcd", "gap")
    ]  # fmt: skip


@pytest.mark.parametrize("run", range(4), ids=["mpu-two-level", "mpu-gap", "dcd-shrinking", "dcd-gap"])
@pytest.mark.parametrize(
    ("data_set", "published_value", "optimum"), [(0, 11434.4, 11433.81), (1, 6605.17, 6604.89)]
)
def test_certified_objective_is_at_most_the_published_one(
    table1: Any, data_folder: Path, data_set: int, published_value: float, optimum: float, run: int
) -> None:
    data = table1.DATA_SETS[data_set]
    X, y = table1.load(data, data_folder)
    name, algorithm = table1.RUNS[run]
    cell = table1.reproduce(data, name, algorithm, X, y)  # raises unless the certificate is valid
    assert cell.certified
    assert cell.gap <= 1e-4
    assert cell.upper <= min(published_value, cell.published)
    # the optimum is given to half a unit of its last digit
    assert cell.lower <= optimum + 0.005
    assert cell.upper >= optimum - 0.005
    assert cell.lower >= optimum * (1.0 - 1e-4)


@pytest.mark.skipif("cutting-plane" not in ALGORITHMS, reason="this version has no cutting planes")
@pytest.mark.parametrize("data_set", [0, 1])
def test_cutting_planes_reach_the_published_objective(table1: Any, data_folder: Path, data_set: int) -> None:
    data = table1.DATA_SETS[data_set]
    ((name, algorithm),) = table1.rivals()
    cell = table1.reproduce(data, name, algorithm, *table1.load(data, data_folder))
    assert cell.certified
    assert data.optimum - 0.005 <= cell.upper <= cell.published


@pytest.mark.parametrize("seed", range(5))
def test_default_algorithm_is_certified_at_the_tolerance_of_the_paper(
    table1: Any, data_folder: Path, seed: int
) -> None:
    data = table1.DATA_SETS[1]
    X, y = table1.load(data, data_folder)
    model = MaxMarginClassifier(loss="hinge", fit_intercept=False, tol=1e-4, random_state=seed).fit(X, y)
    assert model.status_ is Status.CERTIFIED
    found: Any = verify(model, X, y)
    assert found.gap <= 1e-4
    assert found.lower <= data.optimum + 0.005 <= found.upper + 0.01


# the page


def test_page_holds_every_section_and_count(scripts: Any) -> None:
    page = (ROOT / "reproduction" / "README.md").read_text()
    assert scripts("__main__").SECTIONS == SECTIONS
    for name in SECTIONS:
        assert f"<!-- {name} -->\n\n## {scripts(name).TITLE}\n" in page
    for algorithms in COUNTS.values():
        for counts in algorithms.values():
            assert all(f"| {count:,} |" in page for count in counts)
    assert "not run yet" not in page
    assert (ROOT / "reproduction" / "pumma_figure3.png").stat().st_size < 100_000


def test_verdicts_of_cells(scripts: Any) -> None:
    Cell = scripts("record").Cell
    assert Cell("a", "1", "updates", "1,000", "1,000").verdict == "="
    assert Cell("a", "1", "updates", "1,000", "1,203", "rounding").verdict == "+203 (rounding)"
    assert Cell("a", "1", "margin", "7.80", "7.79").verdict == "-0.01"
    assert not Cell("a", "1", "margin", "7.80", "7.79").fine
    assert Cell("a", "1", "margin", "7.80", "7.79", "order").fine
    assert Cell("a", "1", "margin", "", "7.79").verdict == "not at hand"
    assert Cell("a", "1", "margin", "7.80", "").verdict == "not run yet"
