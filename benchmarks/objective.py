"""The judge: objectives from the data in float64, with code that belongs to neither side.

A peer's answer is measured by its true excess over the optimum. The optimum is known as a bracket
[lower, upper] by weak duality, so it does not matter whose dual weights prove the lower end; excess is taken
over the lower end, to nobody's favour.
"""

from __future__ import annotations

import hashlib
import json
import os
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np

from maxmargin import MaxMarginClassifier

from .datasets import Dataset


@dataclass(frozen=True)
class Reference:
    """The optimal objective lies between these two."""

    lower: float
    upper: float

    def excess(self, value: float) -> float:
        """Relative excess of an objective over the lower end."""
        return (value - self.lower) / self.lower

    @property
    def width(self) -> float:
        """How well the optimum is known."""
        return self.excess(self.upper)


def primal(data: Dataset, C: float, w: np.ndarray) -> float:
    """1/2 |w|^2 + C sum max(0, 1 - y_i w.x_i)."""
    margins = data.y * (data.X @ w)
    return 0.5 * float(np.dot(w, w)) + C * float(np.maximum(0.0, 1.0 - margins).sum())


def dual(data: Dataset, C: float, alpha: np.ndarray) -> float:
    """sum alpha_i - 1/2 |sum alpha_i y_i x_i|^2, the weights cut to [0, C] first."""
    alpha = np.minimum(np.maximum(alpha, 0.0), C)
    v = data.X.T @ (alpha * data.y)
    return float(alpha.sum()) - 0.5 * float(np.dot(v, v))


def reference(data: Dataset, C: float, tol: float = 1e-6, max_time: float = 900.0) -> Reference:
    """The bracket of the optimum; computed once, then kept outside the repository."""
    store = _store()
    known = json.loads(store.read_text()) if store.exists() else {}
    key = f"{data.name} C={C:g} {_digest(data)}"
    if key not in known:
        model = MaxMarginClassifier(
            C, loss="hinge", fit_intercept=False, tol=tol, max_iter=10**6, max_time=max_time, random_state=0
        ).fit(data.X, data.y)
        alpha = np.zeros(data.y.size)
        alpha[model.certificate_.support] = model.certificate_.dual
        known[key] = asdict(Reference(dual(data, C, alpha), primal(data, C, model.coef_.ravel())))
        store.parent.mkdir(parents=True, exist_ok=True)
        store.write_text(json.dumps(known, indent=1))
    return Reference(**known[key])


def _store() -> Path:
    folder = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(folder) / "maxmargin-benchmarks" / "reference.json"


def _digest(data: Dataset) -> str:
    digest = hashlib.sha256(data.y.tobytes())
    for part in (data.X.indptr, data.X.indices, data.X.data):
        digest.update(part.tobytes())
    return digest.hexdigest()[:16]
