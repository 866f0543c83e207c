"""Incremental rules in kernel space: one binary problem under way."""

from __future__ import annotations

from typing import Any


class KernelRun:
    def __init__(self, *args: Any) -> None:
        raise NotImplementedError
