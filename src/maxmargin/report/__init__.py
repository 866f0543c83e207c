"""A fitted model on one page: its verdict, its certificate rechecked, pictures and tables."""

from .page import write_report
from .subject import Outcome, Recheck

__all__ = ["Outcome", "Recheck", "write_report"]
