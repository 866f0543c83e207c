"""INCREMENTAL ALGORITHMS: one file each, and the registry that tests, command line and docs iterate over."""

from .algorithm import Algorithm, Bias, Facts, Plan
from .alma import ALMA
from .cutting_plane import CuttingPlane
from .dual_descent import DualCoordinateDescent
from .fmp import FMP
from .ima import IMA, FlexibleIMA
from .local import LocalPerceptron
from .micra import CRAMMA, MICRA, FixedDirectionalMargin
from .mpu import MPU
from .pegasos import Pegasos
from .perceptron import Perceptron
from .programs import BarrierPath, InteriorPoint, LinearProgram, Newton, ProximalPoint
from .pumma import PUMMA
from .romma import ROMMA, AggressiveROMMA

RULES: dict[str, type[Algorithm]] = {
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
        CuttingPlane,
        FMP,
        IMA,
        FlexibleIMA,
        LinearProgram,
        BarrierPath,
        InteriorPoint,
        ProximalPoint,
        Newton,
    )
}

__all__ = [
    "ALMA",
    "CRAMMA",
    "FMP",
    "IMA",
    "MICRA",
    "MPU",
    "PUMMA",
    "ROMMA",
    "RULES",
    "AggressiveROMMA",
    "Algorithm",
    "BarrierPath",
    "Bias",
    "CuttingPlane",
    "DualCoordinateDescent",
    "Facts",
    "FixedDirectionalMargin",
    "FlexibleIMA",
    "InteriorPoint",
    "LinearProgram",
    "LocalPerceptron",
    "Newton",
    "Pegasos",
    "Perceptron",
    "Plan",
    "ProximalPoint",
]
