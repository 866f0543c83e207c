"""The command line: thin; every option of a fit is a field of the estimator."""

from .app import main

__all__ = ["main"]
