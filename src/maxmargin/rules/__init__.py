"""INCREMENTAL ALGORITHMS: one file each, and the registry that tests, command line and docs iterate over."""

from .algorithm import Algorithm, Plan
from .dual_descent import DualCoordinateDescent
from .mpu import MPU
from .perceptron import Perceptron

RULES: dict[str, type[Algorithm]] = {cls.name: cls for cls in (DualCoordinateDescent, MPU, Perceptron)}

__all__ = ["MPU", "RULES", "Algorithm", "DualCoordinateDescent", "Perceptron", "Plan"]
