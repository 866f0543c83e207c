"""A fitted model on one page: its verdict, its certificate rechecked, pictures and tables."""

from .page import Outcome, Recheck, write_report

__all__ = ["Outcome", "Recheck", "write_report"]
