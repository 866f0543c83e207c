"""Choice of `algorithm="auto"`: its time beside the times of the solvers of soft margins that it chooses from.

`python -m benchmarks.crossover`.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp
from threadpoolctl import threadpool_limits

from maxmargin import MaxMarginClassifier, Problem, Status
from maxmargin.algorithms import ALGORITHMS

from . import datasets
from .page import deliver, extent, grouped, page, page_parser, summary, system, table
from .unscaled import SETS, unequal

PAGE = Path(__file__).parents[1] / "docs" / "measurements" / "choice.md"


@dataclass(frozen=True)
class Case:
    """A loss and a norm, the solvers that are compared, and the values of C and tolerances."""

    loss: str
    solvers: tuple[str, ...]
    p: float = 2.0
    power: int = 2
    costs: tuple[float, ...] = (1e-3, 1.0, 100.0)
    gaps: tuple[float, ...] = (1e-3, 1e-6)

    def refuses(self, solver: str) -> bool:
        """Return whether a solver does not apply."""
        return ALGORITHMS[solver]().refuses(Problem(self.loss, 1.0, p=self.p, power=self.power)) is not None


EUCLIDEAN = {
    "hinge": Case("hinge", ("dcd", "interior-point", "proximal-point")),
    "squared_hinge": Case("squared_hinge", ("dcd", "interior-point", "newton")),
}
# a linear program takes minutes: two values of C, one tolerance
LINEAR = {
    f"hinge, p = {p:g}, norm_power=1": Case("hinge", ("interior-point", "lp"), p, 1, (0.01, 1.0), (1e-3,))
    for p in (1.0, np.inf)
}
COLUMNS = tuple(dict.fromkeys(s for case in (*EUCLIDEAN.values(), *LINEAR.values()) for s in case.solvers))
NEAR = 1.5  # ratio of the time of auto to that of the fastest solver up to which the choice counts as good
LONGER, LEAST = 10.0, 0.5  # time limit of a solver: a multiple of the time of auto, and a number of seconds

Rows = tuple[Any, np.ndarray]


def _stored(load: Callable[[], datasets.Dataset]) -> Callable[[], Rows]:
    """Return the loader of a data set of `benchmarks.datasets`."""

    def rows() -> Rows:
        found = load()
        return found.X, found.y

    return rows


def _first(name: str) -> Callable[[], Rows]:
    """Return the loader of a multiclass set, with the first class against the rest."""

    def rows() -> Rows:
        X, y = SETS[name]()
        return X, y == np.unique(y)[0]

    return rows


def equal(n: int, d: int, seed: int = 0) -> Rows:
    """Generate normal columns of one scale, and noisy labels."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d))
    return X, X @ rng.normal(size=d) + 2.0 * rng.normal(size=n) > 0.0


def mnist_test() -> Rows:
    """Return the 10,000 test images of MNIST as dense rows, without constant columns, and which of them are eights."""
    X, digits = datasets.mnist_digits("t10k")
    return np.ascontiguousarray(X[:, X.any(axis=0)]), digits == 8


DATA: dict[str, Callable[[], Rows]] = {
    "adult": _stored(datasets.adult),
    "web": _stored(datasets.web),
    "mushrooms": _stored(datasets.mushrooms),
    "reuters": _stored(datasets.reuters),
    "pcmac": _stored(datasets.pcmac),
    "satimage": _first("satimage"),
    "letter": _first("letter"),
    "madelon": SETS["madelon"],
    "skin": SETS["skin"],
    "equal": lambda: equal(200_000, 50),
    "unequal": lambda: unequal(200_000, 50),
}
# dense rows whose linear programs are large
LARGE: dict[str, Callable[[], Rows]] = {
    "madelon": SETS["madelon"],
    "mnist-test": mnist_test,
    "wide": lambda: equal(500, 20_000),
}


@dataclass(frozen=True)
class Outcome:
    """Result of a fit: processor time, whether it was certified, and the algorithms that ran."""

    seconds: float
    certified: bool
    stages: tuple[str, ...]

    def __str__(self) -> str:
        return f"{'' if self.certified else '> '}{1e3 * self.seconds:.3g}"


def outcome(rows: Rows, case: Case, C: float, tol: float, algorithm: str, patience: float) -> Outcome:
    """Return the faster of two fits."""
    model = MaxMarginClassifier(
        C, loss=case.loss, p=case.p, norm_power=case.power, tol=tol, algorithm=algorithm, max_time=patience,
        max_iter=10**6, random_state=0,
    )  # fmt: skip
    seconds = []
    for _ in range(2):
        begin = time.process_time()
        model.fit(*rows)
        seconds.append(time.process_time() - begin)
        if model.status_ is not Status.CERTIFIED:
            break
    stages = tuple(dict.fromkeys(report.stage for report in model.history_))
    return Outcome(min(seconds), model.status_ is Status.CERTIFIED, stages)


def measured(name: str, load: Callable[[], Rows], cases: dict[str, Case]) -> list[list[str]]:
    """Return the rows of a data set in the table."""
    rows, lines = load(), []
    what = f"{name}, {rows[0].shape[0]:,} x {rows[0].shape[1]:,}"
    what += ", sparse" if sp.issparse(rows[0]) else ""
    for (label, case), C, tol in (
        (one, C, tol) for one in cases.items() for C in one[1].costs for tol in one[1].gaps
    ):
        auto = outcome(rows, case, C, tol, "auto", 60.0)
        patience = LONGER * auto.seconds + LEAST
        asked = [solver for solver in case.solvers if not case.refuses(solver)]
        others = {solver: outcome(rows, case, C, tol, solver, patience) for solver in asked}
        fits = [one.seconds for one in others.values() if one.certified]
        best = f"{auto.seconds / min(fits):.1f}" if fits else ""
        line = [what, label, f"{C:g}", f"{tol:g}", *(str(others.get(s, "")) for s in COLUMNS)]
        lines.append([*line, str(auto), ", ".join(auto.stages), best])
        print(" ".join(lines[-1]), flush=True)
    return lines


def document(names: list[str]) -> str:
    """Measure, and return the page."""
    with threadpool_limits(limits=1):
        for case in (EUCLIDEAN | LINEAR).values():  # loads or compiles the machine code
            for X in (equal(3000, 3)[0], sp.csr_array(equal(3000, 3)[0])):
                for solver in (*case.solvers, "auto"):
                    outcome((X, np.arange(3000) % 2), case, 1.0, 1e-3, solver, 5.0)
        lines = [line for name in names if name in DATA for line in measured(name, DATA[name], EUCLIDEAN)]
        lines += [line for name in names if name in LARGE for line in measured(name, LARGE[name], LINEAR)]
    return page_of(lines, system("maxmargin", "numpy", "scipy", "numba"))


def page_of(lines: Sequence[Sequence[str]], packages: str) -> str:
    """Return the page for the rows of its table."""
    head = ["data", "loss", "C", "tol", *COLUMNS, "auto", "stages of auto", "auto / best"]
    sections = {
        "The rule": _RULE,
        "How time is measured": _METHOD.format(longer=LONGER, least=LEAST),
        "All measurements": table(head, lines),
        "Versions": packages,
    }
    title = 'How `algorithm="auto"` chooses'
    return page(title, _ABOUT, best(lines), "python -m benchmarks.crossover --write", sections)


def best(lines: Sequence[Sequence[str]]) -> str:
    """Return the summary table: auto and the fastest solver, by loss and stages of auto."""

    def cells(some: Sequence[Sequence[str]]) -> list[str]:
        ratios = [float(line[-1]) for line in some]
        near = sum(ratio <= NEAR for ratio in ratios)
        return [str(len(ratios)), extent(ratios), str(near), str(len(ratios) - near)]

    head = [
        "loss",
        "stages of auto",
        "problems",
        "auto / fastest: median (range)",
        f"at most {NEAR:g}",
        f"above {NEAR:g}",
    ]
    known = [line for line in lines if line[-1]]
    return summary(head, grouped(known, lambda line: (line[1], line[-2])), cells, "all")


_ABOUT = """\
The time of a fit with `algorithm="auto"` is compared with the times of the solvers that it chooses from, each chosen by
name, on data sets of different sizes: both losses at p = 2 with several values of C and two tolerances, and problems in
other norms that are linear programs on large dense rows. auto does not know in advance which solver is the fastest; a
ratio above 1 is the cost of that.
"""

_RULE = """\
A fit runs one or more solvers in sequence. Each of them is a stage. Every report in `history_`, the `verbose` output
and the command line state the solver of the stage (`stage`) and why it was chosen (`reason`). The *exact stage* is an
active-set method whose last iterate is the optimum to rounding. The smaller side is the smaller number of rows and
columns.

1. **p = 2, small problems** (up to 2,000 rows and rows x smaller side^2 up to 2e8, or up to 50,000 rows and rows x
   smaller side^2 up to 2e7): the exact stage. Soft margins of up to 99 columns are solved by compiled iterations.
   Otherwise the active set is taken from the iterates of another solver: Newton's method (squared hinge), proximal
   points (hinge), interior points (hinge with fewer rows than a quarter of the squared number of columns, and hard
   margins). If that active set does not lead to the optimum, the next solver follows. A soft margin of more than 2,000
   rows ends at the first iterate that certifies `tol`. For a hard margin with fewer columns than rows, a limited
   number of passes of dual coordinate descent precedes this stage.
2. **p = 2, squared hinge, up to 1,000 columns**: Newton's method. It is compiled for dense rows of up to 99 columns and
   30,000 rows. Interior points follow if rounding ends Newton's method.
3. **p = 2, squared hinge, more columns**: dual coordinate descent. After 50 passes Newton's method with conjugate
   gradients follows, if there are at least as many rows as columns.
4. **p = 2, hinge, dense, at least as many rows as columns squared**: proximal points. Interior points follow if they
   end too early.
5. **p = 2, other hinge problems, up to 3,000 columns and no more columns than rows**: dual coordinate descent. Proximal
   points follow when dual coordinate descent has spent half of their estimated work.
6. **p = 2, other problems** (hinge with more columns, hard margins that are not small): dual coordinate descent.
7. **p = inf, squared hinge**: the proximal Newton method; interior points follow if rounding ends it. **p = 1 and
   inf, linear programs**: HiGHS on a subset of the rows and columns, which grows until it is sufficient. The hinge is
   left to Newton's method or interior points where they apply (interior points up to rows x columns x smaller side =
   4e9, on dense rows 1e11): always at p = 1, and at p = inf with more than 200 errors at p = 2, as a linear program
   needs all rows with a loss. **p = inf, other soft margins**: interior points on a growing subset of the columns.
8. **Other p, soft margins**: Newton's method on smoothed losses, up to 1,000 columns; the squared hinge with no more
   columns than rows and rows x columns^2 up to 1e11, the hinge with at least eight rows per column and up to 2e10.
   Interior points follow if it ends early. Otherwise interior points on dense rows up to rows x columns x smaller side
   = 4e9. Otherwise dual coordinate descent, followed by interior points (dense) or Newton's method (sparse). With the
   hinge, interior points are computed for rows near the margin and for means of the others, if there are at least 270
   rows for each column.
9. **Other p, hard margins**: interior points up to 4e9 (sparse rows count for less), and beyond it `pumma` (2 < p <
   inf) or `ima`.

Each stage starts from the bounds and the dual variables of the stages before it. The bounds never get worse.
"""

_METHOD = """\
Times are milliseconds of processor time for the whole fit with a free intercept, the faster of two runs. Compilation is
not counted. A solver that is chosen by name also ends small problems with the exact stage, so that auto can be faster
than all of them. `>`: the solver was stopped without a certificate of `tol`, at a limit of {longer:g} times the time of
auto plus {least:g} s.
"""


def main(arguments: list[str] | None = None) -> int:
    """Measure and print; with --write into `docs/measurements/choice.md`."""
    parser = page_parser("crossover", __doc__, PAGE)
    names = list(DATA | LARGE)
    parser.add_argument("--sets", nargs="+", choices=names, default=names, help="data sets")
    options = parser.parse_args(arguments)
    text = document(options.sets)
    deliver(text, PAGE if options.write else None)
    return 0


if __name__ == "__main__":
    sys.exit(main())
