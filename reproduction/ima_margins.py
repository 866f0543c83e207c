"""IMA_p and ALMA_p on separable sets and with the 2-norm soft margin, compared with exact optima."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import clarabel
import numpy as np
import scipy.sparse as sp
from sklearn.datasets import load_svmlight_file

from maxmargin import ALMA, IMA, MaxMarginClassifier
from maxmargin.algorithms import Algorithm

from . import record
from .data import ionosphere, sonar, wbc, wbc_separable
from .record import Cell

TITLE = "IMA_p and ALMA_p against exact optima"
NAME = "ima_margins"
NEAR = 0.99  # share of the exact optimum at which a run ends
MAX_SECONDS = 600.0  # time limit of a run of `--all`
Data = tuple[np.ndarray, np.ndarray]
TEXT = f"""\
The tables of the IMA_p paper are not available. This section makes the comparison of the paper's experiments, for
the hard margin with a free intercept and features that are not scaled. IMA runs until its margin is at least {NEAR}
of the largest margin, or for {MAX_SECONDS:.0f} s. The largest margin is computed separately (certified to 1e-6; for
p = 1 and p = ∞ by HiGHS). The column *share of its own bound* divides by the upper bound that IMA computes itself,
from the numbers of updates of its last call. ALMA_p has α = 0.1, p = 2 ln f for f features and a constant
coordinate R, and makes as many updates as IMA at the same p; a negative share means that the result does not
separate the classes. The second table is the 2-norm soft margin with C = 1, on the two sets that are not separable,
compared with Clarabel.
"""


def micro_array(file: str) -> Callable[[Path], Data]:
    """Return the loader of a set with thousands of features and few rows."""

    def load(folder: Path) -> Data:
        X, y = load_svmlight_file(str(folder / file))
        return np.ascontiguousarray(X.toarray()), np.where(y > 0, 1.0, -1.0)

    return load


SETS: dict[str, Callable[[Path], Data]] = {
    "sonar": sonar,
    "wbc without 11 rows": wbc_separable,
    "colon": micro_array("colon/colon.svm.gz"),
    "prostate": micro_array("prostate/prostate.svm.gz"),
    "dlbcl": micro_array("dlbcl/dlbcl-7129.svm.gz"),
    "breast-west": micro_array("breast-west/breast-west.svm.gz"),
    "cns": micro_array("cns/cns.svm.gz"),
}
SOFT: dict[str, Callable[[Path], Data]] = {"ionosphere": ionosphere, "wbc": wbc}
NORMS = {"p = 1": 1.0, "p = ∞": np.inf, "p = 2 ln f": 0.0}  # 0 stands for 2 ln f


def exponent(p: float, features: int) -> float:
    """Return the exponent of the norm for this number of features."""
    return p or max(2.0, 2.0 * float(np.log(features)))


def until_near(rule: Algorithm, data: Data, p: float, optimum: float, steps: float = np.inf) -> Any:
    """Fit until the margin is NEAR of the optimum, or for this number of updates."""

    def enough(report: Any) -> bool:
        return report.lower >= NEAR * optimum or report.steps > steps

    model = MaxMarginClassifier(
        C=np.inf,
        p=p,
        algorithm=rule,
        tol=1e-6,
        max_iter=10**9,
        max_time=MAX_SECONDS,
        callback=enough,
        random_state=0,
    )
    model._exact = False  # no exact method takes over
    return model.fit(*data)


def hard_rows(name: str, data: Data) -> list[float]:
    """Return the numbers of one set.

    For every norm: the updates of IMA, the share of the optimum, and the share of IMA's own bound. For the last norm
    also ALMA's share of the optimum.
    """
    out: list[float] = []
    for p in NORMS.values():
        r = exponent(p, data[0].shape[1])
        exact: Any = MaxMarginClassifier(C=np.inf, p=r, tol=1e-6, random_state=0).fit(*data).certificate_
        model = until_near(IMA(), data, r, exact.lower)
        steps, found = model.history_[-1].steps, model.certificate_
        out += [steps, found.lower / exact.upper, found.lower / found.upper]
        if not p:
            alma = until_near(ALMA(alpha=0.1), data, r, exact.lower, steps)
            out += [alma.certificate_.lower / exact.upper]
    return out


def clarabel_objective(data: Data, p: float) -> float:
    """Minimise 1/2 t^2 + sum xi^2 with |w|_q <= t, for p = 1, 2 and infinity, as a quadratic program."""
    X, y = data
    n, d = X.shape
    # variables: w, r (|w_j| <= r_j), t, b, xi
    size = 2 * d + 2 + n
    P = sp.diags(np.r_[np.zeros(2 * d), 1.0, 0.0, np.full(n, 2.0)], format="csc")
    if p == 2.0:
        P = sp.diags(np.r_[np.ones(d), np.zeros(d + 2), np.full(n, 2.0)], format="csc")
    one, nothing = sp.eye(d), sp.csr_matrix((d, 2 + n))
    margins = sp.hstack([-sp.csr_matrix(X * y[:, None]), sp.csr_matrix((n, d + 1)), -y[:, None], -sp.eye(n)])
    absolute = [sp.hstack([sign * one, -one, nothing]) for sign in (1.0, -1.0)]
    t = sp.csr_matrix((np.ones(1), ([0], [2 * d])), shape=(1, size))
    if p == 1.0:  # |w|_inf: every r_j at most t
        length = sp.hstack([sp.csr_matrix((d, d)), one, -np.ones((d, 1)), sp.csr_matrix((d, 1 + n))])
    else:
        length = sp.hstack([sp.csr_matrix((1, d)), np.ones((1, d)), sp.csr_matrix((1, 2 + n))]) - t
    positive = sp.hstack([sp.csr_matrix((n, 2 * d + 2)), -sp.eye(n)])
    A = sp.vstack([margins, *absolute, length, positive], format="csc")
    b = np.r_[-np.ones(n), np.zeros(A.shape[0] - n)]
    settings = clarabel.DefaultSettings()
    settings.verbose = False
    solution = clarabel.DefaultSolver(
        P, np.zeros(size), A, b, [clarabel.NonnegativeConeT(len(b))], settings
    ).solve()
    return float(solution.obj_val)


def soft_row(data: Data, p: float) -> tuple[float, float]:
    """Return the objectives of IMA and of Clarabel."""
    best = clarabel_objective(data, p)

    def enough(report: Any) -> bool:
        return report.upper <= best / NEAR

    model = MaxMarginClassifier(
        p=p, algorithm=IMA(), tol=1e-6, max_iter=10**9, max_time=MAX_SECONDS, callback=enough, random_state=0
    )
    model._exact = False  # at p = 2, small problems would otherwise end with the exact stage
    found: Any = model.fit(*data).certificate_
    return found.upper, best


def cells(folder: Path, everything: bool = False) -> Iterator[Cell]:
    """Yield all cells; the hard margins run with `everything` only, because they take long."""
    kept = record.recall(NAME)
    for name, load in SETS.items():
        if everything:
            kept[name] = hard_rows(name, load(folder))
            record.remember(NAME, {name: kept[name]})
        row = kept.get(name)
        for k, label in enumerate(NORMS):
            if row is None:
                continue
            steps, share, proved = row[3 * k : 3 * k + 3]
            stored = not everything
            yield Cell(name, label, "updates of IMA", "", f"{steps:,.0f}", stored=stored)
            near = share >= NEAR * (1.0 - 1e-6)
            yield Cell(
                name,
                label,
                "share of the optimum",
                f"≥ {NEAR}",
                f"{share:.4f}",
                "reached" if near else "time limit",
                near,
                stored,
            )
            yield Cell(name, label, "share of its own bound", "", f"{proved:.3f}", stored=stored)
            alma = f"{row[9]:.3f}" if k == len(NORMS) - 1 else ""
            yield Cell(name, label, "ALMA_p, share of the optimum", "", alma, stored=stored)
    for name, load in SOFT.items():
        for p in (1.0, 2.0, np.inf):
            ours, best = soft_row(load(folder), p)
            near = ours <= best / NEAR
            label = f"p = {'∞' if np.isinf(p) else f'{p:g}'}"
            yield Cell(
                f"{name}, soft",
                label,
                "objective of IMA / objective of Clarabel",
                "≤ 1.01",
                f"{ours / best:.4f}",
                "reached",
                near,
            )


def table(found: list[Cell]) -> str:
    """Return the cells as Markdown. No numbers were published for this section."""
    hard = [cell for cell in found if "soft" not in cell.what]
    soft = [cell for cell in found if "soft" in cell.what]
    parts = [record.table(part, ("data", "norm")) for part in (hard, soft) if part]
    return "\n\n".join(parts).replace(", published |", ", required |")
