"""Sizes of memory as users write them: 512MB, 2GB, 1.5GiB."""

from __future__ import annotations

import re
from numbers import Real
from typing import Any

UNITS = {"": 1, "B": 1, "KB": 10**3, "MB": 10**6, "GB": 10**9, "TB": 10**12} | {
    "KIB": 2**10, "MIB": 2**20, "GIB": 2**30, "TIB": 2**40,
}  # fmt: skip


def parse_bytes(size: Any) -> int:
    """Return a size in bytes.

    Parameters
    ----------
    size : str or number
        Such as 2e9, "2000000000", "512MB" or "1.5 GiB". MB is 1,000,000 bytes, MiB 2^20.

    Raises
    ------
    ValueError
        If it is no size, or not positive.
    """
    found = 0.0
    if isinstance(size, Real) and not isinstance(size, bool):
        found = float(max(0.0, min(size, 2.0**63)))  # an integer may be beyond float64
    elif isinstance(size, str) and (
        match := re.fullmatch(r"\s*([0-9.]+(?:[eE][0-9]+)?)\s*([A-Za-z]*)\s*", size)
    ):
        number, unit = match.groups()
        if unit.upper() in UNITS and number.count(".") <= 1 and number != ".":
            found = float(number) * UNITS[unit.upper()]
    if not 1.0 <= found < 2.0**63:
        raise ValueError(f"a size is a number of bytes, or a text such as '512MB' or '2GiB'; got {size!r}.")
    return int(found)
