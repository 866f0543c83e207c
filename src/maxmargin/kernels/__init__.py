"""Kernel functions."""

from .functions import Gaussian, Kernel, Linear, Pairwise, Polynomial, Precomputed, Sigmoid

__all__ = ["Gaussian", "Kernel", "Linear", "Pairwise", "Polynomial", "Precomputed", "Sigmoid"]
