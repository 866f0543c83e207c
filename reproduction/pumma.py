"""The PUMMA paper: Figures 3 and 4, Tables 1 and 2, and the Newton iteration that it prints for p > 2.

K. Ishibashi, K. Hatano, M. Takeda, "Online learning of approximate maximum p-norm margin classifiers with bias",
COLT 2008.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from functools import cache, partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from scipy.optimize import minimize_scalar

from maxmargin import KernelMaxMarginClassifier, verify
from maxmargin.algorithms import ALMA, MICRA, PUMMA, AggressiveROMMA, Algorithm
from maxmargin.numerics.sums import norm

from .cramma import optimum
from .data import Data, adult, ionosphere, mnist, r_of_k, votes
from .record import Cell, Row, Section, Tables, like, results_of

# Figures 3 and 4: r-of-k data, p = 2 and p = 2 ln n, means of ten data sets.

DELTA, N, K, SETS = 0.1, 100, 16, 10
BIASES = {15: 1, 9: 4, 1: 8}  # k - 2 r + 1, and r
LARGE_P = 2.0 * float(np.log(N))
POINTS = 60  # points of a curve, at epochs in geometric progression
LEVELS = {2.0: "0.0225", LARGE_P: "0.0461"}  # as printed
LEAST = {2.0: 1.0, LARGE_P: 2.0}  # the least time of the other algorithm over PUMMA's, as the paper states
READ_OFF = {("aggressive ROMMA, coordinate R", 1): 25_000}  # updates; other points cannot be read off


class Look(NamedTuple):
    """A run after an epoch: updates, CPU seconds of the epochs, and the margin of the iterate."""

    updates: float
    seconds: float
    margin: float


def epochs(rule: Algorithm, X: np.ndarray, y: np.ndarray, p: float = 2.0) -> list[Look]:
    """Return the state after each epoch of a hard-margin run, until one makes no update.

    Rules without an intercept of their own find it by a constant coordinate, as long as the longest row.
    """
    found = rule.run(X, y, p=p, intercept="free", max_epochs=np.inf)
    return [Look(row.updates, row.seconds, row.margin) for row in found.table]


def radius(p: float) -> float:
    """Return |x|_p of a row of N signs."""
    return N ** (1.0 / p)


def level(p: float) -> float:
    """Return 1 - delta times the margin of the target hyperplane over R: the level that the paper draws."""
    return (1.0 - DELTA) / (K ** (1.0 - 1.0 / p) * radius(p))


class Line(NamedTuple):
    """An algorithm of the figures; `long` runs take minutes."""

    what: str
    p: float
    rule: Algorithm
    long: bool = False

    def data(self, bias: int) -> str:
        """Return the name of the norm and of the bias."""
        return f"{'p = 2' if self.p == 2.0 else 'p = 2 ln n'}, bias {bias}"


PLAIN: dict[str, Any] = {"delta": DELTA, "halving": False, "schedule": "plain", "shuffle": False}
LINES = (
    Line("PUMMA", 2.0, PUMMA(**PLAIN)),
    Line("aggressive ROMMA, coordinate R", 2.0, AggressiveROMMA(**PLAIN)),
    Line("PUMMA", LARGE_P, PUMMA(**PLAIN)),
    Line("ALMA_p, coordinate R", LARGE_P, ALMA(alpha=DELTA, shuffle=False), True),
)


def mean(line: Line, bias: int) -> list[float]:
    """Return mean updates, seconds and margin / R at the end, updates until the level, and updates, margin in turn.

    A run that has ended keeps its last state in the curve.
    """
    runs = [epochs(line.rule, *r_of_k(BIASES[bias], seed), line.p) for seed in range(SETS)]
    places = np.unique(np.geomspace(1, max(map(len, runs)), POINTS).round().astype(int)) - 1
    looks = np.array([[run[min(place, len(run) - 1)] for run in runs] for place in places]).mean(axis=1)
    R = radius(line.p)
    until = [next(look.updates for look in run if look.margin >= level(line.p) * R) for run in runs]
    curve = [float(value) for updates, _, margin in looks for value in (updates, margin / R)]
    updates, seconds, margin = looks[-1].tolist()
    return [float(f"{v:.6g}") for v in (updates, seconds, margin / R, np.mean(until), *curve)]


@cache
def result(line: Line, bias: int, everything: bool) -> list[float]:
    """Return the means of one algorithm at one bias; without `everything` those of long runs are the stored ones."""
    epochs(line.rule, *r_of_k(8, 0, m=20), line.p)  # compiles the code, which is not to be timed
    key = f"{line.what}, {line.data(bias)}"
    return results_of("pumma_figures", key, line.long, everything, partial(mean, line, bias))


def shifted(line: Line, shift: float) -> int:
    """Return the updates on the first data set of bias 1, shifted; R is that of the shifted data."""
    return int(epochs(line.rule, *r_of_k(8, 0, shift=shift))[-1].updates)


def figure3(folder: Path, everything: bool) -> Tables:
    """Yield the levels, the updates and margins, and the updates on shifted data; the data are generated here."""
    names = {
        2.0: "level, p = 2: 0.9 / (√16 · 10)",
        LARGE_P: "level, p = 2 ln n: 0.9 / (16^(1/q) · 100^(1/p))",
    }
    yield [{"quantity": names[p], "": Cell(text, f"{level(p):.4f}")} for p, text in LEVELS.items()]
    rows: list[Row] = []
    for line, bias in [(line, bias) for line in LINES for bias in BIASES]:
        updates, _, margin, until, *_ = result(line, bias, everything)
        read = READ_OFF.get((line.what, bias), 0)
        agrees = abs(updates / read - 1.0) < 0.05 if read else None
        rows.append({
            "algorithm": line.what + "†" * line.long,
            "data": line.data(bias),
            "updates": Cell(f"{read:,}" if read else "", f"{updates:,.0f}", "", agrees),
            "updates until the level": f"{until:,.0f}",
            "margin / R": Cell(f"≥ {LEVELS[line.p]}", f"{margin:.4f}", "", margin >= level(line.p)),
        })  # fmt: skip
    yield rows
    yield [
        {"algorithm": line.what, **{f"updates, shift {s}": f"{shifted(line, s):,}" for s in (0, 1, 2, 4, 8)}}
        for line in LINES[:2]
    ]


def figure4(folder: Path, everything: bool) -> Tables:
    """Yield the times, and their ratios to those of PUMMA."""
    rows: list[Row] = []
    for line, bias in [(line, bias) for line in LINES for bias in BIASES]:
        seconds, least = result(line, bias, everything)[1], LEAST[line.p]
        row: Row = {
            "algorithm": line.what + "†" * line.long,
            "data": line.data(bias),
            "seconds": f"{seconds:.3g}",
        }
        if line.what != "PUMMA":
            own = next(other for other in LINES if other.p == line.p)
            ratio = seconds / result(own, bias, everything)[1]
            row["time / time of PUMMA"] = Cell(f"≥ {least:g}", f"{ratio:.3g}", "", ratio >= least)
        rows.append(row)
    yield rows


def picture(path: Path) -> None:
    """Plot the margin against the updates: a panel for each norm, a colour for each bias."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(2, 1, figsize=(8.4, 8.4), layout="constrained")
    for ax, p in zip(axes, LEVELS, strict=True):
        for line in (line for line in LINES if line.p == p):
            style = "o-" if line.what == "PUMMA" else "^--"
            for colour, bias in enumerate(BIASES):
                curve = result(line, bias, False)[4:]
                label = f"{line.what.split(',')[0]}, bias {bias}"
                ax.semilogx(curve[::2], curve[1::2], style, markersize=3.5, color=f"C{colour}", label=label)
        ax.axhline(level(p), color="black", linewidth=1.0, linestyle=":", label=f"level {LEVELS[p]}")
        ax.set(ylim=(-0.03, None), ylabel="margin / R", xlabel="updates")
        ax.set_title("p = 2" if p == 2.0 else "p = 2 ln n", fontsize=10)
        ax.grid(alpha=0.3)
        ax.legend(fontsize=8)
    figure.savefig(path, dpi=90, metadata={"Software": None})
    plt.close(figure)


# The Newton iteration of section 4.2.

COUNT, CAP, CLOSE = 400, 100, 1e-9


def link(x: np.ndarray, p: float) -> np.ndarray:
    """Return the gradient of 1/2 |x|_p^2: sign(x_j) |x_j|^(p-1) / |x|_p^(p-2); 0 at 0."""
    size = norm(x, p)
    return size * np.sign(x) * (np.abs(x) / (size or 1.0)) ** (p - 1.0)


def jacobian(r: np.ndarray, p: float, printed: bool) -> np.ndarray:
    """Return the Jacobian of the link, or its diagonal, which the paper prints."""
    u = np.abs(r) / norm(r, p)
    g = np.sign(r) * u ** (p - 1.0)
    J = np.diag((p - 1.0) * u ** (p - 2.0)) - (p - 2.0) * np.outer(g, g)
    return np.diag(J.diagonal()) if printed else J


class Subproblem(NamedTuple):
    """z = x_pos - x_neg, the link theta of the old weight vector, and its squared norm."""

    z: np.ndarray
    theta: np.ndarray
    square: float


def harvest(X: np.ndarray, y: np.ndarray, p: float, rng: np.random.Generator) -> list[Subproblem]:
    """Return the sub-problems of case (ii) that runs of at most 40 updates, in random orders, produce."""
    found: list[Subproblem] = []
    while len(found) < COUNT:
        order = rng.permutation(len(y))
        pos, neg = (int(order[y[order] == sign][0]) for sign in (1.0, -1.0))
        m, made = 0.5 * (X[pos] - X[neg]), 0
        for k in order:
            g, size2 = link(m, p), norm(m, p) ** 2
            if y[k] * (g @ X[k] - 0.5 * float(g @ (X[pos] + X[neg]))) >= 0.9 * size2:
                continue
            pos, neg = (int(k), neg) if y[k] > 0 else (pos, int(k))
            z = X[pos] - X[neg]
            way = 0.5 * z - m
            s = 1.0  # the point m + s way of the segment nearest to 0
            if link(0.5 * z, p) @ way > 0.0:
                length = lambda s, m=m, way=way: norm(m + s * way, p)  # noqa: E731
                s = float(
                    minimize_scalar(length, bounds=(0.0, 1.0), method="bounded", options={"xatol": 1e-10}).x
                )
                found.append(Subproblem(z, m / size2, 1.0 / size2))
            m, made = m + s * way, made + 1
            if made == 40 or len(found) == COUNT:
                break
    return found


def newton(problem: Subproblem, p: float, printed: bool) -> int | None:
    """Return the steps from (0, 1) until both equations hold to `CLOSE`; None if they do not in `CAP` steps."""
    base = np.stack([problem.z, problem.theta])
    wanted = np.array([2.0, problem.square])
    x = np.array([0.0, 1.0])
    with np.errstate(all="ignore"):
        for step in range(CAP):
            r = x @ base
            miss = base @ link(r, p) - wanted
            if (np.abs(miss) <= CLOSE * wanted).all():
                return step
            if not (np.isfinite(miss).all() and r.any()):
                return None
            try:
                x = x - np.linalg.solve(base @ jacobian(r, p, printed) @ base.T, miss)
            except np.linalg.LinAlgError:
                return None
    return None


def newton_sets() -> dict[str, Data]:
    """Return random signs, dense normal rows, and sparse rows."""
    rng = np.random.default_rng(0)
    target, normal = rng.normal(size=30), rng.normal(size=(300, 30))
    sparse = np.where(rng.random((300, 100)) < 0.05, rng.random((300, 100)), 0.0)
    sparse[:, 0] += 0.1  # no row is zero
    return {
        "random signs, 1000 x 100": r_of_k(8, 0),
        "normal, 300 x 30": (normal, np.sign(normal @ target)),
        "sparse, 300 x 100": (sparse, np.sign(sparse @ rng.normal(size=100) + 1e-9)),
    }


def newton_tables(folder: Path, everything: bool) -> Tables:
    """Yield the shares of failures and the median steps; the data are generated here."""
    rows: list[Row] = []
    for name, (X, y) in newton_sets().items():
        for p in (2.5, 4.0, 2.0 * float(np.log(X.shape[1])), 30.0):
            problems, row = harvest(X, y, p, np.random.default_rng(1)), {"data": name, "norm": f"p = {p:.3g}"}
            for label, printed in (("printed", True), ("whole Jacobian", False)):
                done = [step for problem in problems if (step := newton(problem, p, printed)) is not None]
                row[f"{label}: fails"] = f"{1.0 - len(done) / len(problems):.0%}"
                row[f"{label}: steps, median"] = f"{np.median(done):.0f}" if done else "none met"
            rows.append({**row})
    yield rows


# Table 1: linear kernel, 2-norm soft margin.

C, ACCURACY = 0.5, 0.01  # the paper's objective is 1/2 |w|^2 + (1/2) sum xi^2; its δ
ETA = 0.3  # of MICRA, which the paper does not print
LONG_ROWS = 16_000  # sets with at least so many rows run only with `--all`
COLUMNS1 = ("MICRA", "SVMlight / certified optimum", "PUMMA", "aggressive ROMMA")
PRINTED1 = {  # 100 times the margins, and the seconds, of MICRA, SVMlight, PUMMA and ROMMA
    "ionosphere": ("10.04 10.55 10.49 10.50", (0.48, 0.06, 0.54, 3.12)),
    "house-votes": ("16.51 17.42 17.31 17.36", (0.09, 0.03, 0.26, 0.62)),
    "adult-1k": ("4.03 4.95 4.50 4.91", (2.34, 0.47, 5.40, 15.83)),
    "adult-2k": ("2.81 3.40 3.37 3.38", (5.61, 2.13, 25.38, 82.70)),
    "adult-4k": ("2.00 2.40 2.38 2.38", (55.91, 9.33, 159.54, 496.52)),
    "adult-8k": ("1.46 1.69 1.67 1.67", (189.13, 232.42, 807.46, 2167.40)),
    "adult-16k": ("1.13 1.20 1.18 1.18", (2050.84, 1271.06, 3365.47, 12503.62)),
    "adult-full": ("0.79 0.83 0.82 0.82", (12394.86, 5893.20, 44480.59, 71296.34)),
}
REASONS = {"adult": "other features", "house": "another order"}


def margin(c: np.ndarray, X: Any, y: np.ndarray, rho: float) -> float:
    """Return the margin of sum c_k y_k in the extended space; the intercept is free if rho is 0."""
    own = 0.5 / C * c
    w, w0 = X.T @ (c * y), rho * float(c @ y)
    z = X @ w + y * own
    b = rho * w0 if rho else -0.5 * float(z[y > 0].min() + z[y < 0].max())
    return float((y * (z + b)).min()) / float(w @ w + w0 * w0 + own @ c) ** 0.5


def run(rule: Algorithm, X: Any, y: np.ndarray, rho: float = 0.0) -> float:
    """Run until a pass makes no update; return the margin of the last weight."""
    options: dict[str, Any] = {"intercept": "augmented" if rho else "free", "intercept_scaling": rho or 1.0}
    return margin(rule.run(X, y, C, max_epochs=np.inf, record=None, **options).alpha, X, y, rho)


def timed(function: Callable[..., float], *arguments: Any, **options: Any) -> tuple[float, float]:
    """Return the result, and the CPU time in seconds."""
    began = time.process_time()
    found = function(*arguments, **options)
    return found, time.process_time() - began


def margins_and_times(X: Any, y: np.ndarray, least: float) -> list[float]:
    """Return β of MICRA, then margin and seconds of MICRA, the optimum, PUMMA and ROMMA.

    MICRA has the first β of 1, 2, 4, ... whose margin, times 100, is at least `least`.
    """
    R, beta, order = float(sp.csr_array(X).power(2).sum(axis=1).max()) ** 0.5, 1.0, {"shuffle": False}
    while (found := timed(run, MICRA(beta=beta, eta=ETA, schedule="active", **order), X, y, R))[
        0
    ] < 0.01 * least:
        beta *= 2.0
    best = timed(optimum, X, y, C, "free", tol=1e-6)
    pumma = timed(run, PUMMA(delta=ACCURACY, **order), X, y)
    return [beta, *found, *best, *pumma, *timed(run, AggressiveROMMA(delta=ACCURACY, **order), X, y, R)]


def sets(folder: Path) -> Iterator[tuple[str, Any, np.ndarray]]:
    """Yield the data sets in the order of the table; the row of the votes without any vote is removed."""
    yield "ionosphere", *ionosphere(folder)
    X, y = votes(folder)
    voted = X.any(axis=1)
    yield "house-votes", X[voted], y[voted]
    for name, rows in zip(list(PRINTED1)[2:], (1000, 2000, 4000, 8000, 16000, None), strict=True):
        yield name, *adult(folder, rows)


def table1(folder: Path, everything: bool) -> Tables:
    """Yield the margins and the times; the largest sets run with `everything` only."""
    margins_and_times(*ionosphere(folder), 1.0)  # the first runs compile the code, which is not to be timed
    margins_and_times(*adult(folder, 100), 0.1)
    margins: list[Row] = []
    times: list[Row] = []
    for name, X, y in sets(folder):
        (printed, seconds), long = PRINTED1[name], y.size >= LONG_ROWS
        texts, run = printed.split(), partial(margins_and_times, X, y, float(printed.split()[0]))
        beta, *found = results_of("pumma_table1", name, long, everything, run)
        labels: Row = {"data set": name + "†" * long, "size": f"{X.shape[0]} x {X.shape[1]}"}
        ours = [like(text, 100.0 * value) for text, value in zip(texts, found[::2], strict=True)]
        reasons = ["", "SVMlight's tolerance of 0.001", REASONS.get(name[:5], ""), ""]
        reasons = [""] + [REASONS["adult"]] * 3 if name.startswith("adult") else reasons
        cells = [Cell(*three) for three in zip(texts, ours, reasons, strict=True)]
        cells[0] = Cell(f"≥ {texts[0]}", ours[0], "", found[0] >= 0.01 * float(texts[0]))
        margins.append({**labels, **dict(zip(COLUMNS1, cells, strict=True)), "β / R of MICRA": f"{beta:g}"})
        row, own = dict(labels), found[5]
        for k in (0, 1, 3):
            before, now = seconds[k] / seconds[2], found[2 * k + 1] / own
            reason = "another implementation"
            row[f"{COLUMNS1[k]}"] = Cell(f"{before:.2g}", f"{now:.2g}", reason, (before < 1.0) == (now < 1.0))
        times.append(row)
    yield margins
    yield times


# Table 2: MNIST, each digit against the rest, polynomial kernel, 2-norm soft margin.

OWN = 30.0  # added to the diagonal of the kernel: 1 / (2 C)
KERNEL: dict[str, Any] = {"kernel": "poly", "degree": 5, "gamma": 1.0 / 1100.0**2, "coef0": 1.0}
TOL, MEGABYTES, IMAGES = 1e-4, 2500, 60_000  # gap of the objectives, cache of kernel rows, training rows


class Fit(NamedTuple):
    """A column of the table: the algorithm, whether there is a bias, and the printed margins and seconds by digit."""

    name: str
    algorithm: str | Algorithm
    bias: bool
    margins: str
    seconds: tuple[float, ...]


FITS = (
    Fit("optimum", "decomposition", True, "1.339 0.712 0.810 0.763 0.650 0.672 0.941 0.621 0.810 0.558",
        (256.51, 152.10, 413.43, 566.84, 333.04, 428.36, 246.47, 322.90, 694.17, 599.78)),
    Fit("optimum without bias", "decomposition", False, "1.155 0.712 0.765 0.722 0.629 0.664 0.880 0.611 0.727 0.541",
        (164.83, 119.62, 309.77, 384.17, 267.65, 301.99, 184.39, 304.54, 437.48, 399.08)),
    Fit("PUMMA", PUMMA(delta=ACCURACY, shuffle=False), True,
        "1.330 0.706 0.804 0.757 0.645 0.667 0.934 0.616 0.804 0.554",
        (373.48, 291.54, 1674.08, 2654.19, 905.16, 1480.44, 534.80, 860.89, 5648.12, 5290.33)),
    Fit("aggressive ROMMA", AggressiveROMMA(delta=ACCURACY, shuffle=False), False,
        "1.150 0.708 0.761 0.719 0.626 0.661 0.876 0.608 0.723 0.538",
        (218.97, 231.82, 870.58, 2296.34, 505.11, 1007.91, 308.18, 584.36, 5074.51, 6057.92)),
)  # fmt: skip


def fitted(fit: Fit, X: np.ndarray, labels: np.ndarray) -> Any:
    """Fit all digits against the rest."""
    return KernelMaxMarginClassifier(
        C=0.5 / OWN, loss="squared_hinge", fit_intercept=fit.bias, algorithm=fit.algorithm, tol=TOL,
        cache_size=MEGABYTES, **KERNEL,
    ).fit(X, labels)  # fmt: skip


def digits_of(X: np.ndarray, digits: np.ndarray) -> list[list[float]]:
    """Return two intervals of the largest margin for every digit, then margin and updates of PUMMA and of ROMMA."""
    found: list[list[float]] = [[] for _ in range(10)]
    for fit in FITS:
        model = fitted(fit, X, digits)
        if fit.algorithm == "decomposition":
            parts: Any = verify(model, X, digits)
            for row, part in zip(found, parts.parts, strict=True):
                row += [(2.0 * part.upper) ** -0.5, (2.0 * part.lower) ** -0.5]
            continue
        updates = {report.label: report.steps for report in model.history_}
        for digit, (row, part) in enumerate(zip(found, model.certificate_.parts, strict=True)):
            y, c = np.where(digits == digit, 1.0, -1.0), np.zeros(digits.size)
            c[part.support] = part.dual * y[part.support]
            used = X[part.support]
            scores = (1.0 + X @ used.T * KERNEL["gamma"]) ** KERNEL["degree"] @ c[part.support]
            z = scores + OWN * c
            b = -0.5 * float(z[y > 0].min() + z[y < 0].max()) if fit.bias else 0.0
            row += [float((y * (z + b)).min()) / float(c @ z) ** 0.5, updates[model.classes_[digit]]]
    return found


def seconds_of(X: np.ndarray, digits: np.ndarray, digit: int) -> list[float]:
    """Return the CPU times of the four fits of one digit, each with its own cache."""
    return [timed(fitted, fit, X, (digits == digit).astype(int))[1] for fit in FITS]


def table2(folder: Path, everything: bool) -> Tables:
    """Yield the margins with and without a bias, and ratios of times, from the store or run with `everything`."""
    X, digits = mnist(folder, IMAGES if everything else 300)
    kept = digits_of(X, digits) if everything else [[]] * 10
    sides: tuple[list[Row], list[Row]] = ([], [])
    times: list[Row] = []
    for digit in range(10):
        found = results_of("pumma_table2", f"digit {digit}", True, everything, lambda k=digit: kept[k])
        for side, rows in enumerate(sides):
            rows.append(compared(digit, side, found))
        seconds = partial(seconds_of, X, digits, digit)
        spent = results_of("pumma_table2", f"digit {digit}, seconds", True, everything, seconds)
        row: Row = {"digit": f"{digit}†"}
        for fit, base in ((2, 0), (3, 1), (1, 0), (2, 3)):
            before, now = FITS[fit].seconds[digit] / FITS[base].seconds[digit], spent[fit] / spent[base]
            cell = Cell(
                f"{before:.2f}", f"{now:.2f}", "another implementation", (before < 1.0) == (now < 1.0)
            )
            row[f"{FITS[fit].name} / {FITS[base].name}"] = cell
        times.append(row)
    yield from (*sides, times)


def compared(digit: int, side: int, numbers: list[float]) -> Row:
    """Return the row of a digit with a bias (side 0) or without one (side 1)."""
    best, online = FITS[side], FITS[side + 2]
    low, high = numbers[2 * side : 2 * side + 2]
    margin, updates = numbers[2 * side + 4 : 2 * side + 6]
    printed, own = best.margins.split()[digit], online.margins.split()[digit]
    share = margin / high
    near = "the order of the rows" if abs(float(f"{margin:.3f}") - float(own)) < 0.0015 else ""
    return {
        "digit": f"{digit}†",
        f"SVMlight / certified {best.name}":
            Cell(printed, like(printed, 0.5 * (low + high)), f"certified: {low:.5f} to {high:.5f}"),
        online.name: Cell(own, f"{margin:.3f}", near),
        f"{online.name}, share of the optimum": Cell("≥ 0.99", f"{share:.4f}", "", share >= 0.99 * (1.0 - 1e-6)),
        "updates": f"{updates:,.0f}",
    }  # fmt: skip


FIGURE3 = f"""\
K. Ishibashi, K. Hatano, M. Takeda, "Online learning of approximate maximum p-norm margin classifiers with bias", COLT
2008. The data are random signs with n = 100 columns and m = 1000 rows, half of each class. The label is +1 if at least
r of the first k = 16 signs are +1, so that the bias k - 2 r + 1 of the target is 15, 9 and 1 for r = 1, 4 and 8. δ is
0.1 (α for ALMA_p). The algorithms make full passes in the order of the data, without halving of δ, until a pass makes
no update. Numbers are means of {SETS} data sets, and the figure has one point after each epoch (a pass); long curves
are thinned. The margin is that of the last iterate with the intercept that the algorithm has, divided by R = max |x|_p.
ROMMA and ALMA_p have a constant coordinate R. The level (dotted) is 0.9 times the margin of the target over R; *updates
until the level* is the number at the end of the first epoch above it. The curves of the paper cannot be read off
exactly: one number of updates, of ROMMA, can be to 5 %.

In the last table, all coordinates of the data (r = 8, first set) are shifted by a constant. Differences of rows do not
change, and PUMMA makes exactly the same updates; ROMMA, whose intercept is augmented, needs more.

![margin against the number of updates, for three biases and two norms](pumma_figure3.png)
"""
FIGURE4 = """\
The runs are those of Figure 3. Times are CPU times of the passes, without compilation and without the computation of
margins. Single points cannot be read off, so that ratios of times on the same computer are compared: the paper states
that PUMMA is faster than ROMMA, and at least twice as fast as ALMA_p.
"""
NEWTON = f"""\
For p > 2, an update of PUMMA requires w = f⁻¹(α z + β θ) with w·z = 2 and w·θ = ‖v‖², where f is the link, z the
difference of the two rows, v the old weight vector and θ = f(v). The paper solves for (α, β) by Newton's method from
(0, 1). The printed matrix, with sums over one index, uses only the diagonal of the Jacobian of the link. The table has
{COUNT} sub-problems of each kind, from runs of the algorithm: the share of failures and the median number of steps with
the printed matrix and with the whole Jacobian. An iteration fails if it does not satisfy both equations to 1e-9 within
100 steps. maxmargin solves every sub-problem by Newton steps within a bracket on the segment. Random signs are the data
of Figure 3.
"""
TABLE1 = """\
The numbers are 10² times the margin in the extended space, with C = 1 in the paper's notation, which is
`loss="squared_hinge"` with C = 1/2. The column of SVMlight is compared with the certified optimum with a free
intercept. PUMMA (free intercept) and aggressive ROMMA (a constant coordinate R) run with δ = 0.01, halved from 1, with
the paper's active set, in the order of the file. Their margin is that of the last weight vector. The parameters of
MICRA are not printed: here ε = ζ = 1/2, η = 0.3, a constant coordinate R, and the first β / R of 1, 2, 4, ... whose
margin is at least the printed one. Ionosphere is not scaled. The votes y, n, ? are 1, -1, 0, and the one row of "?"
only is removed. The adult sets are the first rows of a9a.

The last digit of PUMMA depends on the order of the rows, which is not printed: random orders give 17.32 to 17.35 on the
votes. The printed 0.82 on all rows of adult at δ = 0.01 allows an optimum of at most 0.833, but that of a9a is
certified to be 0.853, so that the features are others. The printed 4.50 of PUMMA contradicts δ = 0.01 beside 4.91.

The second table has CPU times as multiples of the time of PUMMA on the same set. The verdict is = if a time and its
printed one are on the same side of PUMMA's.
"""
TABLE2 = f"""\
The kernel is K = (1 + x·x' / 1100²)⁵ + 30 δᵢⱼ on pixels from 0 to 255, which is `loss="squared_hinge"` with C = 1/60,
on the 60,000 training images. Margins are those of the extended space, 1 / √(2 objective) at the optimum. The columns
of SVMlight are compared with optima certified to {TOL:g} of the objective and verified from the data. PUMMA (free
intercept) and aggressive ROMMA (no bias) run with δ = 0.01, halved from 1, with the paper's active set, in the order of
the file. Their margin is that of the last weight vector; columns *share of the optimum* divide it by the upper end of
the certified interval. The last digit depends on the order of the rows, which is not printed.

The third table has ratios of CPU times of digits that are fitted separately, each with an own cache ({MEGABYTES:,} MB;
the paper's has 1 GB). The optima are those of SVMlight and of our decomposition. The verdict is = if both ratios are on
the same side of 1.
"""
SECTIONS = {
    "pumma_figure3": Section(
        "PUMMA, Figure 3: margin against updates, p = 2 and p = 2 ln n", FIGURE3, figure3, picture
    ),
    "pumma_figure4": Section("PUMMA, Figure 4: computation time against bias", FIGURE4, figure4),
    "pumma_newton": Section("PUMMA, the printed Newton iteration for p > 2", NEWTON, newton_tables),
    "pumma_table1": Section("PUMMA, Table 1: margins with a 2-norm soft margin", TABLE1, table1),
    "pumma_table2": Section("PUMMA, Table 2: MNIST, each digit against the rest", TABLE2, table2),
}
