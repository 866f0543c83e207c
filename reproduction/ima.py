"""IMA_p and ALMA_p on separable sets and with the 2-norm soft margin, compared with certified optima."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from maxmargin import MaxMarginClassifier
from maxmargin.algorithms import ALMA, IMA, Algorithm

from .data import Data, ionosphere, sonar, wbc, wbc_separable
from .record import Cell, Row, Section, Tables, results_of

NEAR, MAX_SECONDS = 0.99, 600.0  # share of the optimum at which a run ends, and its time limit
SETS = {
    "sonar": sonar,
    "wbc without 11 rows": wbc_separable,
}
NORMS = {"p = 1": 1.0, "p = ∞": np.inf, "p = 2 ln f": 0.0}  # 0 stands for 2 ln f
TEXT = f"""\
The tables of the IMA_p paper are not available. This section makes the comparison of its experiments, for the hard
margin with a free intercept and features that are not scaled. IMA runs until its margin is at least {NEAR} of the
largest margin (certified to 1e-6), or for {MAX_SECONDS:.0f} s. The column *share of its own bound* divides by the upper
bound that IMA computes itself, from the numbers of updates of its last call. ALMA_p has α = 0.1, p = 2 ln f for f
features and a constant coordinate R, and makes as many updates as IMA at the same p; a negative share means that the
result does not separate the classes. The second table is the 2-norm soft margin with C = 1, on the two sets that are
not separable: the objective of IMA divided by the certified optimum.
"""


def until(rule: Algorithm, data: Data, enough: Any, **options: Any) -> Any:
    """Fit until enough(report), or for `MAX_SECONDS`."""
    model = MaxMarginClassifier(
        algorithm=rule,
        tol=1e-6,
        max_iter=10**9,
        max_time=MAX_SECONDS,
        callback=enough,
        random_state=0,
        **options,
    )
    return model.fit(*data)


def hard(data: Data) -> list[float]:
    """Return, for every norm, updates of IMA, its shares of the optimum and of its bound; then the share of ALMA."""
    out: list[float] = []
    for p in NORMS.values():
        options = {"C": np.inf, "p": p or max(2.0, 2.0 * float(np.log(data[0].shape[1])))}
        exact: Any = MaxMarginClassifier(tol=1e-6, random_state=0, **options).fit(*data).certificate_
        goal = NEAR * exact.lower
        model = until(IMA(), data, lambda report, goal=goal: report.lower >= goal, **options)
        last = model.history_[-1]  # a separator that the verdict on separability has found may be better
        out += [last.steps, last.lower / exact.upper, last.lower / last.upper]
        if not p:
            alma = until(
                ALMA(alpha=0.1), data, lambda report, steps=last.steps: report.steps > steps, **options
            )
            out += [alma.history_[-1].lower / exact.upper]
    return out


def tables(folder: Path, everything: bool) -> Tables:
    """Yield the hard margins, which run with `everything` only, and the soft margins."""
    rows: list[Row] = []
    for name, load in SETS.items():
        found = results_of("ima_margins", name, True, everything, partial(hard, load(folder)))
        for k, label in enumerate(NORMS):
            steps, share, proved = found[3 * k : 3 * k + 3]
            rows.append({
                "data": f"{name}†", "norm": label, "updates of IMA": f"{steps:,.0f}",
                "share of the optimum": Cell(f"≥ {NEAR}", f"{share:.4f}", "time limit", share >= NEAR * (1.0 - 1e-6)),
                "share of its own bound": f"{proved:.3f}",
                "ALMA_p, share of the optimum": f"{found[9]:.3f}" if k == 2 else "",
            })  # fmt: skip
    yield rows
    rows = []
    for name, load in {"ionosphere": ionosphere, "wbc": wbc}.items():
        for p in (1.0, 2.0, np.inf):
            data = load(folder)
            best: Any = MaxMarginClassifier(p=p, tol=1e-6, random_state=0).fit(*data).certificate_
            goal = best.lower / NEAR
            ratio = (
                until(IMA(), data, lambda report, goal=goal: report.upper <= goal, p=p).history_[-1].upper
                / best.lower
            )
            cell = Cell("≤ 1.01", f"{ratio:.4f}", "time limit", ratio <= 1.0 / NEAR)
            rows.append(
                {"data": name, "norm": f"p = {'∞' if np.isinf(p) else f'{p:g}'}", "objective of IMA": cell}
            )
    yield rows


SECTIONS = {"ima_margins": Section("IMA_p and ALMA_p against certified optima", TEXT, tables)}
