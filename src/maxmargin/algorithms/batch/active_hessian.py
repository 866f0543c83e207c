"""The Hessian of the losses of the active rows, updated as rows enter and leave the active set."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from ...engine.newton import changes
from .chunks import Blocks

# share of the active rows that may have changed for an update: an update by k rows costs as much as k rows of a new
# matrix and loses digits, and two small products take longer than one
MAX_CHANGED = 0.5
# share of the largest value that an entry of the diagonal has had, below which subtraction has cancelled three digits
MIN_DIAGONAL = 1e-3


class ActiveHessian:
    """M = sum_{i in A} c_i b_i b_i' over the active rows A.

    Parameters
    ----------
    blocks : Blocks
        The rows b_i.
    weights : ndarray of shape (n,)
        c_i.
    interrupted : callable
        Whether to stop; asked between blocks of rows.
    """

    def __init__(self, blocks: Blocks, weights: np.ndarray, interrupted: Callable[[], bool]) -> None:
        self.blocks, self.weights, self.interrupted = blocks, weights, interrupted
        self._active: np.ndarray | None = None  # the rows that M is the sum of; None: of none yet
        self._entering, self._leaving = np.empty((2, weights.size), np.uint32)
        self._matrix = np.zeros((blocks.size, blocks.size))
        self._largest = np.zeros(blocks.size)  # of each entry of the diagonal since M was made anew

    def regularised(self, active: np.ndarray, factor: float = 1.0) -> np.ndarray:
        """Return R + factor * M for these active rows, R having a 1 for every regularised weight.

        Parameters
        ----------
        active : ndarray of shape (n,), bool
            Kept, and not to be changed by the caller.
        factor : float, default=1.0
        """
        self._update(active)
        return self.blocks.regularised(self._matrix if factor == 1.0 else factor * self._matrix)

    def _update(self, active: np.ndarray) -> None:
        """Add the rows that enter to M and subtract those that leave, or compute M anew."""
        before = np.zeros_like(active) if self._active is None else self._active
        entering, leaving, count = changes(active, before, self._entering, self._leaving)
        anew = entering + leaving > MAX_CHANGED * count
        if entering and not anew:
            self._matrix += self._sum(self._entering[:entering])
            np.maximum(self._largest, np.diag(self._matrix), out=self._largest)
        if leaving and not anew:
            self._matrix -= self._sum(self._leaving[:leaving])
            anew = bool((np.diag(self._matrix) < MIN_DIAGONAL * self._largest).any())
        if anew:
            if entering < count:
                changes(active, np.zeros_like(active), self._entering, self._leaving)
            self._matrix = self._sum(self._entering[:count])
            self._largest = np.diag(self._matrix).copy()
        self._active = active

    def _sum(self, rows: np.ndarray) -> np.ndarray:
        """Return the sum of c_i b_i b_i' over these rows."""
        return self.blocks.all_products(self.weights, rows, self.interrupted)
