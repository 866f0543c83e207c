"""Peak memory of a call."""

from __future__ import annotations

import tracemalloc
from collections.abc import Callable
from typing import Any


def with_peak_memory(call: Callable[[], Any]) -> tuple[Any, int]:
    """Return the result of a call and the largest number of bytes that Python and NumPy held for it at once."""
    tracemalloc.start()
    try:
        return call(), tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
