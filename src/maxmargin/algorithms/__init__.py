"""The algorithms, one file each (with variants), and their registries ALGORITHMS and KERNEL_ALGORITHMS by name."""

from __future__ import annotations

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
from .programs import (
    Decomposition,
    InteriorPoint,
    LinearProgram,
    Newton,
    ProximalNewton,
    ProximalPoint,
)

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
