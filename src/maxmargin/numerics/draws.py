"""Random numbers of a seed, whose generator is made when the first is asked for: many small fits ask for none."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from typing import Any

import numpy as np


class Draws:
    """Stands for the generator of this seed, or of the one that is drawn then."""

    def __init__(self, seed: int | Callable[[], int]) -> None:
        self._seed = seed

    @cached_property
    def _generator(self) -> np.random.Generator:
        return np.random.default_rng(self._seed() if callable(self._seed) else self._seed)

    def integers(self, *bounds: Any, **how: Any) -> Any:
        """`Generator.integers`."""
        return self._generator.integers(*bounds, **how)
