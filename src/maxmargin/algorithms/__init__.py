"""The algorithms, one file each (with variants), and their registries ALGORITHMS and KERNEL_ALGORITHMS by name."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from .base import Algorithm, Bias, Facts, Plan
from .normalised.perceptron import NormalisedPerceptron, VonNeumann
from .normalised.smoothed import IteratedSmoothedPrimalDual, SmoothedPerceptron, SmoothedPrimalDual
from .online.alma import ALMA
from .online.cramma import CRAMMA, MICRA, FixedDirectionalMargin
from .online.dual_coordinate_descent import DualCoordinateDescent
from .online.ima import FMP, IMA, FlexibleIMA
from .online.mpu import MPU
from .online.pegasos import Pegasos
from .online.perceptron import LocalPerceptron, Perceptron
from .online.pumma import PUMMA
from .online.romma import ROMMA, AggressiveROMMA
from .programs import Decomposition, InteriorPoint, LinearProgram, Newton, ProximalNewton, ProximalPoint

ALGORITHMS: dict[str, type[Algorithm]] = {
    cls.name: cls
    for cls in (
        DualCoordinateDescent,
        MPU,
        Perceptron,
        LocalPerceptron,
        ALMA,
        CRAMMA,
        MICRA,
        FixedDirectionalMargin,
        ROMMA,
        AggressiveROMMA,
        PUMMA,
        Pegasos,
        FMP,
        IMA,
        FlexibleIMA,
        LinearProgram,
        InteriorPoint,
        ProximalPoint,
        Newton,
        ProximalNewton,
        NormalisedPerceptron,
        SmoothedPerceptron,
        VonNeumann,
        SmoothedPrimalDual,
        IteratedSmoothedPrimalDual,
    )
}

KERNEL_ALGORITHMS: dict[str, type[Algorithm] | type[Decomposition]] = {
    Decomposition.name: Decomposition,
    **{name: cls for name, cls in ALGORITHMS.items() if cls.kernelised},
}


def named_algorithm(algorithm: Any, names: Iterable[str], example: str, kinds: Any) -> Any:
    """Return the algorithm of a name, or the object itself.

    Parameters
    ----------
    algorithm : str or object
    names : iterable of str
        Names that are accepted.
    example : str
        An object for the error message.
    kinds : type or union of types
        Of objects that are accepted.
    """
    names = list(names)
    if isinstance(algorithm, str) and algorithm in names:
        return (ALGORITHMS | KERNEL_ALGORITHMS)[algorithm]()
    if isinstance(algorithm, kinds):
        return algorithm
    raise ValueError(
        f"algorithm must be 'auto', one of {', '.join(map(repr, names))}, or an object such as {example}; got "
        f"{algorithm!r}."
    )


__all__ = [
    "ALGORITHMS",
    "ALMA",
    "CRAMMA",
    "FMP",
    "IMA",
    "KERNEL_ALGORITHMS",
    "MICRA",
    "MPU",
    "PUMMA",
    "ROMMA",
    "AggressiveROMMA",
    "Algorithm",
    "Bias",
    "Decomposition",
    "DualCoordinateDescent",
    "Facts",
    "FixedDirectionalMargin",
    "FlexibleIMA",
    "InteriorPoint",
    "IteratedSmoothedPrimalDual",
    "LinearProgram",
    "LocalPerceptron",
    "Newton",
    "NormalisedPerceptron",
    "Pegasos",
    "Perceptron",
    "Plan",
    "ProximalNewton",
    "ProximalPoint",
    "SmoothedPerceptron",
    "SmoothedPrimalDual",
    "VonNeumann",
]
