"""All compiled functions of the package."""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import maxmargin


def all_compiled() -> list[Callable[..., Any]]:
    """Every compiled function of every module, each once; modules whose optional dependencies are missing have none."""
    found = {}
    for info in pkgutil.walk_packages(maxmargin.__path__, "maxmargin."):
        if info.name != "maxmargin.__main__":  # it runs the command line
            with suppress(ImportError):
                module = importlib.import_module(info.name)
                found |= {id(f): f for f in vars(module).values() if hasattr(f, "targetoptions")}
    return list(found.values())
