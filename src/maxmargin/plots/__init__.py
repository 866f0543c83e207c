"""Pictures of a fit, in the manner of scikit-learn's displays; they need matplotlib."""

from .algorithm_comparison import AlgorithmComparisonDisplay
from .bounds import BoundsDisplay
from .margins import MarginDisplay
from .path import PathDisplay

__all__ = ["AlgorithmComparisonDisplay", "BoundsDisplay", "MarginDisplay", "PathDisplay"]
