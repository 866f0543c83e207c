"""Judge of all solvers: computes objectives from the data in float64, with code that no solver uses.

An answer is measured by its true excess over the optimum. Weak duality bounds the optimum: it lies in [lower, upper].
Dual variables of any solver prove the lower bound. The excess is taken over the lower bound, for all solvers.
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
    """Bounds on the optimal objective."""

    lower: float
    upper: float

    def excess(self, value: float) -> float:
        """Return the relative excess of an objective over the lower bound."""
        return (value - self.lower) / self.lower

    @property
    def width(self) -> float:
        """Relative distance of the two bounds."""
        return self.excess(self.upper)


def primal(data: Dataset, C: float, w: np.ndarray, loss: str = "hinge") -> float:
    """Return 1/2 |w|^2 + C sum max(0, 1 - y_i w.x_i), or the same with squared losses."""
    losses = np.maximum(0.0, 1.0 - data.y * (data.X @ w))
    return 0.5 * float(np.dot(w, w)) + C * float(np.sum(losses if loss == "hinge" else losses**2))


def dual(data: Dataset, C: float, alpha: np.ndarray, loss: str = "hinge") -> float:
    """Return sum alpha_i - 1/2 |sum alpha_i y_i x_i|^2, with alpha clipped to [0, C].

    With squared losses alpha is only clipped to alpha >= 0, and |alpha|^2 / (4 C) is subtracted.
    """
    alpha = np.clip(alpha, 0.0, C if loss == "hinge" else None)
    v = data.X.T @ (alpha * data.y)
    cost = 0.0 if loss == "hinge" else float(np.dot(alpha, alpha)) / (4.0 * C)
    return float(alpha.sum()) - 0.5 * float(np.dot(v, v)) - cost


def reference(
    data: Dataset, C: float, tol: float = 1e-6, max_time: float = 900.0, loss: str = "hinge"
) -> Reference:
    """Return bounds on the optimum. They are computed once and then kept in a cache folder outside the repository."""
    store = _store()
    known = json.loads(store.read_text()) if store.exists() else {}
    key = f"{data.name} {loss} C={C:g} tol={tol:g} {_digest(data)}"
    if key not in known:
        model = MaxMarginClassifier(
            C, loss=loss, fit_intercept=False, tol=tol, max_iter=10**6, max_time=max_time, random_state=0
        ).fit(data.X, data.y)
        alpha = np.zeros(data.y.size)
        alpha[model.certificate_.support] = model.certificate_.dual
        w = model.coef_.ravel()
        known[key] = asdict(Reference(dual(data, C, alpha, loss), primal(data, C, w, loss)))
        store.parent.mkdir(parents=True, exist_ok=True)
        store.write_text(json.dumps(known, indent=1))
    return Reference(**known[key])


def _store() -> Path:
    folder = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(folder) / "maxmargin-benchmarks" / "reference.json"


def _digest(data: Dataset) -> str:
    digest = hashlib.sha256(data.y.tobytes())
    sparse = (getattr(data.X, name, None) for name in ("indptr", "indices"))
    for part in (*sparse, data.X.data):
        if part is not None:
            digest.update(part)
    return digest.hexdigest()[:16]
