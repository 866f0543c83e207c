"""A lazy random generator: many small fits draw no number and take less time than the creation of a generator."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from typing import Any

import numpy as np


class LazyGenerator:
    """A generator of this seed, or of the seed that a function returns, created with the first draw."""

    def __init__(self, seed: int | Callable[[], int]) -> None:
        self._seed = seed

    @cached_property
    def _generator(self) -> np.random.Generator:
        return np.random.default_rng(self._seed() if callable(self._seed) else self._seed)

    def integers(self, *bounds: Any, **how: Any) -> Any:
        """Return random integers, as `Generator.integers`."""
        return self._generator.integers(*bounds, **how)
