"""Pictures of a fit, in the manner of scikit-learn's displays; they need matplotlib."""

from .algorithm_comparison import AlgorithmComparisonDisplay
from .bounds import BoundsDisplay
from .elimination import EliminationDisplay
from .margins import MarginDisplay
from .path import PathDisplay
from .robustness import RobustnessDisplay
from .sparsity import SparsityDisplay
from .surface import DecisionSurfaceDisplay

__all__ = [
    "AlgorithmComparisonDisplay",
    "BoundsDisplay",
    "DecisionSurfaceDisplay",
    "EliminationDisplay",
    "MarginDisplay",
    "PathDisplay",
    "RobustnessDisplay",
    "SparsityDisplay",
]
