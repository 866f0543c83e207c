"""The list of the 100 hard problems."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from itertools import chain

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

    def __str__(self) -> str:
        return f"{self.name} {self.gamma:g}" + (f" degree {self.degree}" if self.name == "poly" else "")


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

    @property
    def statement(self) -> str:
        """Loss, C, norm and kernel in words."""
        cost = "hard margin" if self.hard else f"{self.loss}, C = {self.C:g}"
        norm = f", p = {self.p:g}" + (", power 1" if self.power == 1 else "")
        space = f", {self.kernel}" if self.kernel else norm
        return cost + space + ("" if self.intercept else ", no intercept")


def _named(category: str, *rows: tuple) -> list[HardProblem]:
    """Return problems of a category: each row is a function that makes data and a dict of the other attributes."""
    return [
        HardProblem(f"{category}-{i:02d}", category, make, **settings)
        for i, (make, settings) in enumerate(rows, 1)
    ]


def _on(function: Callable[..., Data], *arguments: object, **options: object) -> Callable[[], Data]:
    return partial(function, *arguments, **options)


def _of(function: Callable[..., Data], source: Callable[[], Data], *arguments: object) -> Callable[[], Data]:
    """Return a maker that applies a function of data to the data of another maker."""
    return lambda: function(source(), *arguments)


_breast = partial(bundled, "breast", 140, 12)
_wine = partial(bundled, "wine", 170, None, 1)
_iris = partial(bundled, "iris", 150, None, 1)
_small = partial(cloud, 40, 80, 6)
_loud = partial(cloud, 43, 80, 6, 8.0)
_middle = partial(cloud, 41, 200, 12)

HARD = {"loss": "hard", "C": INF}
SQUARED = {"loss": "squared_hinge"}
BARE = {"intercept": False}


def _separable() -> list[HardProblem]:
    tiny = partial(data.near_separable, 1, 80, 6)
    return _named(
        "near-separable",
        (_on(tiny, 2.0**-20), HARD),
        (_on(tiny, 2.0**-28), HARD),
        (_on(tiny, 2.0**-28), HARD | {"p": INF}),
        (_on(tiny, 2.0**-28), HARD | {"p": 1.0}),
        (_on(tiny, 2.0**-20), HARD | {"p": 1.5}),
        (_on(tiny, 2.0**-28), HARD | {"p": 3.0}),
        (_on(data.near_separable, 2, 250, 20, 2.0**-20), HARD | BARE),
        (_on(tiny, 2.0**-20), {"C": 1e6}),
        (_on(tiny, 2.0**-30), SQUARED | {"C": 1e6}),
        (_on(tiny, 2.0**-20), {"C": 1e6, "p": INF}),
    )  # fmt: skip


def _contradictory() -> list[HardProblem]:
    one = partial(data.contradictory, 3, 100, 8)
    return _named(
        "contradictory",
        (_on(one, 5), {"C": 1e6}),
        (_on(one, 60), {"C": 1e-6}),
        (_on(one, 60), SQUARED | {"C": 1e6} | BARE),
        (_on(one, 50), {"C": 1e3, "p": INF}),
        (_on(one, 50), {"C": 1e3, "p": 1.0}),
        (_on(one, 50), SQUARED | {"C": 1e3, "p": 1.5}),
        (_on(one, 50), {"C": 1e3, "p": 3.0}),
        (_on(one, 5), SQUARED | BARE | {"C": 1e6, "p": INF, "power": 1}),
    )


def _collinear() -> list[HardProblem]:
    exact = partial(data.collinear, 5, 120, 6, 12)
    near = partial(data.collinear, 6, 120, 6, 12, 2.0**-24)
    return _named(
        "collinear",
        (exact, {"C": 1e3}),
        (near, {"C": 1e6}),
        (near, SQUARED | {"C": 1e6} | BARE),
        (exact, {"C": 10.0, "p": INF}),
        (near, {"C": 1e3, "p": INF}),
        (near, SQUARED | {"C": 1e3, "p": 1.0}),
        (near, {"C": 1e3, "p": 1.5}),
        (near, SQUARED | {"C": 1e3, "p": 3.0}),
    )


def _scaled() -> list[HardProblem]:
    wide = _of(data.scaled, _middle, -12, 12)
    return _named(
        "scaled",
        (wide, {"C": 1.0}),
        (wide, SQUARED | {"C": 1e6}),
        (wide, SQUARED | {"C": 1e-6} | BARE),
        (_of(data.scaled, _small, -12, 12), {"p": INF}),
        (_of(data.scaled, _small, -12, 12), {"p": 1.0}),
        (_of(data.scaled, _small, -6, 6), SQUARED | {"p": 1.5}),
        (_of(data.scaled, _small, -6, 6), SQUARED | {"p": 3.0}),
        (_of(data.scaled, partial(cloud, 42, 80, 6, 0.0), -6, 6), HARD),
        (_of(data.times, _small, 1e16), {}),
        (_of(data.times, _loud, 1e16), {"p": INF}),
        (_of(data.times, _small, 1e16), SQUARED | {"p": 3.0}),
        (_of(data.times, _loud, 1e-4), {"C": 1e6} | BARE),
    )


def _lattice() -> list[HardProblem]:
    plain = partial(data.lattice, 8, 150, 4, 3)
    flipped = partial(data.lattice, 9, 150, 4, 3, 0.1)
    return _named(
        "lattice",
        (plain, HARD),
        (plain, HARD | {"p": INF}),
        (plain, HARD | {"p": 1.0}),
        (flipped, {"C": 100.0}),
        (flipped, SQUARED | {"C": 1e-3} | BARE),
        (flipped, {"C": 1.0, "p": INF, "power": 1}),
        (flipped, {"C": 1.0, "p": 1.0}),
        (flipped, {"C": 1.0, "p": 3.0}),
    )


def _duplicates() -> list[HardProblem]:
    copies = partial(data.duplicates, 10, 60, 5, 8)
    return _named(
        "duplicates",
        (copies, {"C": 1.0}),
        (copies, {"C": 1e4} | BARE),
        (copies, {"C": 1.0, "p": INF}),
        (copies, SQUARED | {"C": 1.0, "p": 1.5}),
        (_on(data.duplicates, 11, 400, 10, 5), {"C": 10.0}),
    )


def _outlier() -> list[HardProblem]:
    return _named(
        "outlier",
        (_of(data.outlier, _small, 1e9), {}),
        (_of(data.outlier, _small, 1e14), {"C": 1e3}),
        (_of(data.outlier, _small, 1e14), SQUARED),
        (_of(data.outlier, _small, 1e9), {"C": 1e-3} | BARE),
        (_of(data.outlier, _small, 1e9), {"p": INF}),
        (_of(data.outlier, _small, 1e9), SQUARED | {"p": 1.0}),
        (_of(data.outlier, _small, 1e6), SQUARED | {"p": 3.0}),
        (_of(data.outlier, _breast, 1e14), SQUARED),
    )


def _powers() -> list[HardProblem]:
    quartic = _of(data.powers, _wine, 3, 4)
    return _named(
        "powers",
        (quartic, {}),
        (quartic, SQUARED | {"C": 1e3}),
        (_of(data.powers, _iris, 3, 4), {"C": 1e6}),
        (_of(data.powers, partial(bundled, "breast", 200, 4), 4, 3), SQUARED),
        (_of(data.powers, partial(bundled, "breast", 200, 4), 4, 3), {"C": 1e3} | BARE),
        (_of(data.powers, _wine, 4, 2), {"p": INF}),
        (_of(data.powers, _wine, 4, 2), SQUARED | {"p": 1.0}),
        (_of(data.powers, _iris, 4, 2), SQUARED | {"p": 1.5}),
        (_of(data.exponentials, _breast, 3.0), {"C": 1e3}),
        (_of(data.exponentials, _breast, 3.0), SQUARED | {"C": 1e3}),
        (_of(data.exponentials, _breast, 3.0), {"C": 1e3, "p": INF}),
    )


def _sentinels() -> list[HardProblem]:
    one = partial(_of, data.sentinel)
    return _named(
        "sentinel",
        (one(_small, 1e9), {}),
        (one(_small, 1e12), SQUARED | {"C": 1e3}),
        (one(_small, 1e9), {"p": 1.0}),
        (one(_small, 1e9), SQUARED | {"p": 1.5}),
        (one(_small, 1e12), {"p": 3.0}),
        (one(_small, 1e10), {"p": INF}),
        (one(_small, 1e12), SQUARED | {"p": INF}),
        (one(_small, 1e7), {"p": INF, "power": 1}),
        (one(_small, 1e9), {"p": INF, "power": 1}),
        (one(_breast, -999.0, 30), {"C": 1e3}),
        (one(_breast, -2147483648.0, 30), {}),
        (one(_breast, -2147483648.0, 30), SQUARED | {"C": 1e-3} | BARE),
        (one(_small, 1e16), SQUARED | BARE),
    )


def _many() -> list[HardProblem]:
    return _named(
        "classes",
        (partial(bundled, "digits", 250), {"C": 1e-3} | BARE),
        (partial(bundled, "wine", 170), {"C": 10.0}),
        (_on(data.classes, 20, 200, 5, 20), {"C": 1.0}),
        (_on(data.classes, 21, 120, 4, 12), SQUARED | {"C": 1e3} | BARE),
        (partial(bundled, "iris", 150), {"C": 1.0, "p": INF}),
    )


def _kernels() -> list[HardProblem]:
    breast = _of(data.standardised, partial(bundled, "breast", 140))
    plane = _on(cloud, 30, 100, 2)

    def rbf(gamma: float, **settings: object) -> dict[str, object]:
        return settings | {"kernel": KernelFunction("rbf", gamma)}

    def poly(degree: int, gamma: float, **settings: object) -> dict[str, object]:
        return settings | {"kernel": KernelFunction("poly", gamma, degree)}

    return _named(
        "kernel",
        (plane, rbf(1e-4, C=1.0)),
        (plane, rbf(1.0, C=1e4)),
        (plane, rbf(0.1, C=1e6)),
        (plane, rbf(1e4, C=1e6)),
        (plane, rbf(1e-2, C=1e4, loss="squared_hinge")),
        (plane, rbf(10.0, loss="hard", C=INF)),
        (breast, rbf(1e-6, C=1e6)),
        (breast, rbf(0.03, C=1e-2, loss="squared_hinge")),
        (plane, poly(3, 1.0, C=1e4)),
        (plane, poly(5, 1.0, C=1e4)),
        (breast, poly(3, 0.1, C=1e4)),
        (_wine, poly(2, 1.0, C=1e-6)),
    )


PROBLEMS: dict[str, HardProblem] = {
    problem.name: problem
    for problem in chain(
        _separable(), _contradictory(), _collinear(), _scaled(), _lattice(), _duplicates(), _outlier(), _powers(),
        _sentinels(), _many(), _kernels(),
    )
}  # fmt: skip
