"""The list of the 100 hard problems."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from . import data
from .data import Data, bundled, cloud

INF = float("inf")


@dataclass(frozen=True)
class KernelFunction:
    """Kernel: ``"rbf"``, exp(-gamma |x - z|^2), or ``"poly"``, (gamma x.z + coef0)^degree."""

    name: str
    gamma: float
    degree: int = 3
    coef0: float = 1.0


@dataclass(frozen=True)
class HardProblem:
    """Problem: minimise penalty(w) + C sum loss(y_i (w.x_i + b)), or find the largest margin.

    Attributes
    ----------
    name : str
    category : str
    make : callable
        Returns rows of shape (n, d) and labels of shape (n,).
    loss : {"hinge", "squared_hinge", "hard"}
    C : float
    p : float
        Exponent of the norm of distances; the penalty has the dual exponent.
    power : {2, 1}
        2: the penalty is half the squared norm of w, 1: the norm.
    kernel : KernelFunction, default=None
    intercept : bool, default=True
        Whether there is a free intercept b; otherwise b = 0.
    """

    name: str
    category: str
    make: Callable[[], Data]
    loss: str = "hinge"
    C: float = 1.0
    p: float = 2.0
    power: int = 2
    kernel: KernelFunction | None = None
    intercept: bool = True

    @property
    def hard(self) -> bool:
        """Whether the largest margin is sought."""
        return self.loss == "hard"

    def parts(self) -> list[Data]:
        """Return the binary problems: rows and signs, one for each class if there are more than two."""
        X, y = self.make()
        labels = np.unique(y)
        return [(X, np.where(y == one, 1, -1)) for one in (labels[1:] if labels.size == 2 else labels)]

    def digest(self) -> str:
        """Return a hash of rows and labels."""
        X, y = self.make()
        code = hashlib.sha256(repr(X.shape).encode())
        code.update(np.ascontiguousarray(X, dtype="<f8").tobytes())
        code.update(np.ascontiguousarray(y, dtype="<i8").tobytes())
        return code.hexdigest()[:16]


def _of(function: Callable[..., Data], source: Callable[[], Data], *arguments: object) -> Callable[[], Data]:
    """Return a maker that applies a function of data to the data of another maker."""
    return lambda: function(source(), *arguments)


def _rbf(gamma: float, **settings: object) -> dict[str, object]:
    return settings | {"kernel": KernelFunction("rbf", gamma)}


def _poly(degree: int, gamma: float, **settings: object) -> dict[str, object]:
    return settings | {"kernel": KernelFunction("poly", gamma, degree)}


BREAST = partial(bundled, "breast", 140, 12)
WINE = partial(bundled, "wine", 170, None, 1)
IRIS = partial(bundled, "iris", 150, None, 1)
SMALL = partial(cloud, 40, 80, 6)
LOUD = partial(cloud, 43, 80, 6, 8.0)
MIDDLE = partial(cloud, 41, 200, 12)

HARD = {"loss": "hard", "C": INF}
SQUARED = {"loss": "squared_hinge"}
BARE = {"intercept": False}
TINY = partial(data.near_separable, 1, 80, 6)
CONTRADICTORY = partial(data.contradictory, 3, 100, 8)
DEPENDENT = partial(data.collinear, 5, 120, 6, 12)
NEARLY = partial(data.collinear, 6, 120, 6, 12, 2.0**-24)
WIDE = _of(data.scaled, MIDDLE, -12, 12)
LATTICE = partial(data.lattice, 8, 150, 4, 3)
FLIPPED = partial(data.lattice, 9, 150, 4, 3, 0.1)
COPIES = partial(data.duplicates, 10, 60, 5, 8)
QUARTIC = _of(data.powers, WINE, 3, 4)
SENTINEL = partial(_of, data.sentinel)
BREAST_SCALED = _of(data.standardised, partial(bundled, "breast", 140))
PLANE = partial(cloud, 30, 100, 2)

# rows: a function that makes data, and the other attributes
CATEGORIES: dict[str, tuple[tuple[Callable[[], Data], dict[str, Any]], ...]] = {
    "near-separable": (
        (partial(TINY, 2.0**-20), HARD),
        (partial(TINY, 2.0**-28), HARD),
        (partial(TINY, 2.0**-28), HARD | {"p": INF}),
        (partial(TINY, 2.0**-28), HARD | {"p": 1.0}),
        (partial(TINY, 2.0**-20), HARD | {"p": 1.5}),
        (partial(TINY, 2.0**-28), HARD | {"p": 3.0}),
        (partial(data.near_separable, 2, 250, 20, 2.0**-20), HARD | BARE),
        (partial(TINY, 2.0**-20), {"C": 1e6}),
        (partial(TINY, 2.0**-30), SQUARED | {"C": 1e6}),
        (partial(TINY, 2.0**-20), {"C": 1e6, "p": INF}),
    ),
    "contradictory": (
        (partial(CONTRADICTORY, 5), {"C": 1e6}),
        (partial(CONTRADICTORY, 60), {"C": 1e-6}),
        (partial(CONTRADICTORY, 60), SQUARED | {"C": 1e6} | BARE),
        (partial(CONTRADICTORY, 50), {"C": 1e3, "p": INF}),
        (partial(CONTRADICTORY, 50), {"C": 1e3, "p": 1.0}),
        (partial(CONTRADICTORY, 50), SQUARED | {"C": 1e3, "p": 1.5}),
        (partial(CONTRADICTORY, 50), {"C": 1e3, "p": 3.0}),
        (partial(CONTRADICTORY, 5), SQUARED | BARE | {"C": 1e6, "p": INF, "power": 1}),
    ),
    "collinear": (
        (DEPENDENT, {"C": 1e3}),
        (NEARLY, {"C": 1e6}),
        (NEARLY, SQUARED | {"C": 1e6} | BARE),
        (DEPENDENT, {"C": 10.0, "p": INF}),
        (NEARLY, {"C": 1e3, "p": INF}),
        (NEARLY, SQUARED | {"C": 1e3, "p": 1.0}),
        (NEARLY, {"C": 1e3, "p": 1.5}),
        (NEARLY, SQUARED | {"C": 1e3, "p": 3.0}),
    ),
    "scaled": (
        (WIDE, {"C": 1.0}),
        (WIDE, SQUARED | {"C": 1e6}),
        (WIDE, SQUARED | {"C": 1e-6} | BARE),
        (_of(data.scaled, SMALL, -12, 12), {"p": INF}),
        (_of(data.scaled, SMALL, -12, 12), {"p": 1.0}),
        (_of(data.scaled, SMALL, -6, 6), SQUARED | {"p": 1.5}),
        (_of(data.scaled, SMALL, -6, 6), SQUARED | {"p": 3.0}),
        (_of(data.scaled, partial(cloud, 42, 80, 6, 0.0), -6, 6), HARD),
        (_of(data.times, SMALL, 1e16), {}),
        (_of(data.times, LOUD, 1e16), {"p": INF}),
        (_of(data.times, SMALL, 1e16), SQUARED | {"p": 3.0}),
        (_of(data.times, LOUD, 1e-4), {"C": 1e6} | BARE),
    ),
    "lattice": (
        (LATTICE, HARD),
        (LATTICE, HARD | {"p": INF}),
        (LATTICE, HARD | {"p": 1.0}),
        (FLIPPED, {"C": 100.0}),
        (FLIPPED, SQUARED | {"C": 1e-3} | BARE),
        (FLIPPED, {"C": 1.0, "p": INF, "power": 1}),
        (FLIPPED, {"C": 1.0, "p": 1.0}),
        (FLIPPED, {"C": 1.0, "p": 3.0}),
    ),
    "duplicates": (
        (COPIES, {"C": 1.0}),
        (COPIES, {"C": 1e4} | BARE),
        (COPIES, {"C": 1.0, "p": INF}),
        (COPIES, SQUARED | {"C": 1.0, "p": 1.5}),
        (partial(data.duplicates, 11, 400, 10, 5), {"C": 10.0}),
    ),
    "outlier": (
        (_of(data.outlier, SMALL, 1e9), {}),
        (_of(data.outlier, SMALL, 1e14), {"C": 1e3}),
        (_of(data.outlier, SMALL, 1e14), SQUARED),
        (_of(data.outlier, SMALL, 1e9), {"C": 1e-3} | BARE),
        (_of(data.outlier, SMALL, 1e9), {"p": INF}),
        (_of(data.outlier, SMALL, 1e9), SQUARED | {"p": 1.0}),
        (_of(data.outlier, SMALL, 1e6), SQUARED | {"p": 3.0}),
        (_of(data.outlier, BREAST, 1e14), SQUARED),
    ),
    "powers": (
        (QUARTIC, {}),
        (QUARTIC, SQUARED | {"C": 1e3}),
        (_of(data.powers, IRIS, 3, 4), {"C": 1e6}),
        (_of(data.powers, partial(bundled, "breast", 200, 4), 4, 3), SQUARED),
        (_of(data.powers, partial(bundled, "breast", 200, 4), 4, 3), {"C": 1e3} | BARE),
        (_of(data.powers, WINE, 4, 2), {"p": INF}),
        (_of(data.powers, WINE, 4, 2), SQUARED | {"p": 1.0}),
        (_of(data.powers, IRIS, 4, 2), SQUARED | {"p": 1.5}),
        (_of(data.exponentials, BREAST, 3.0), {"C": 1e3}),
        (_of(data.exponentials, BREAST, 3.0), SQUARED | {"C": 1e3}),
        (_of(data.exponentials, BREAST, 3.0), {"C": 1e3, "p": INF}),
    ),
    "sentinel": (
        (SENTINEL(SMALL, 1e9), {}),
        (SENTINEL(SMALL, 1e12), SQUARED | {"C": 1e3}),
        (SENTINEL(SMALL, 1e9), {"p": 1.0}),
        (SENTINEL(SMALL, 1e9), SQUARED | {"p": 1.5}),
        (SENTINEL(SMALL, 1e12), {"p": 3.0}),
        (SENTINEL(SMALL, 1e10), {"p": INF}),
        (SENTINEL(SMALL, 1e12), SQUARED | {"p": INF}),
        (SENTINEL(SMALL, 1e7), {"p": INF, "power": 1}),
        (SENTINEL(SMALL, 1e9), {"p": INF, "power": 1}),
        (SENTINEL(BREAST, -999.0, 30), {"C": 1e3}),
        (SENTINEL(BREAST, -2147483648.0, 30), {}),
        (SENTINEL(BREAST, -2147483648.0, 30), SQUARED | {"C": 1e-3} | BARE),
        (SENTINEL(SMALL, 1e16), SQUARED | BARE),
    ),
    "classes": (
        (partial(bundled, "digits", 250), {"C": 1e-3} | BARE),
        (partial(bundled, "wine", 170), {"C": 10.0}),
        (partial(data.classes, 20, 200, 5, 20), {"C": 1.0}),
        (partial(data.classes, 21, 120, 4, 12), SQUARED | {"C": 1e3} | BARE),
        (partial(bundled, "iris", 150), {"C": 1.0, "p": INF}),
    ),
    "kernel": (
        (PLANE, _rbf(1e-4, C=1.0)),
        (PLANE, _rbf(1.0, C=1e4)),
        (PLANE, _rbf(0.1, C=1e6)),
        (PLANE, _rbf(1e4, C=1e6)),
        (PLANE, _rbf(1e-2, C=1e4, loss="squared_hinge")),
        (PLANE, _rbf(10.0, loss="hard", C=INF)),
        (BREAST_SCALED, _rbf(1e-6, C=1e6)),
        (BREAST_SCALED, _rbf(0.03, C=1e-2, loss="squared_hinge")),
        (PLANE, _poly(3, 1.0, C=1e4)),
        (PLANE, _poly(5, 1.0, C=1e4)),
        (BREAST_SCALED, _poly(3, 0.1, C=1e4)),
        (WINE, _poly(2, 1.0, C=1e-6)),
    ),
}
PROBLEMS = {
    f"{category}-{i:02d}": HardProblem(f"{category}-{i:02d}", category, make, **settings)
    for category, rows in CATEGORIES.items()
    for i, (make, settings) in enumerate(rows, 1)
}
