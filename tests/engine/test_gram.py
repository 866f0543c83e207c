"""Scores by look-up of inner products: the same steps as on the rows."""

from __future__ import annotations

import numpy as np
import pytest

from maxmargin import Problem
from maxmargin.algorithms.batch.kernel_rows import KernelRows
from maxmargin.algorithms.online.perceptron import Learn
from maxmargin.data.rows import KernelPatterns, PackedRows, Patterns
from maxmargin.engine.storage import Gram
from maxmargin.engine.sweep import repeat, score_rows
from maxmargin.kernels.functions import Linear


@pytest.mark.parametrize("rho", [0.0, 2.0])
def test_kernel_rows_of_integers_give_identical_results(rho):
    """The perceptron on integers, packed and unpacked."""
    n, rng = 24, np.random.default_rng(0)
    y = 2.0 * (np.arange(n) % 2) - 1.0
    X = rng.integers(-3, 4, (n, 60)) + 1.0 * y[:, None]
    problem = Problem("hinge", np.inf, intercept="none")
    kernel = KernelPatterns(KernelRows(Linear(), X, 1.0), np.arange(n))
    kernel.fetch(np.arange(n, dtype=np.uint32))
    line = np.arange(n, dtype=np.uint32)
    scores, moved = np.empty(n), np.empty(n, np.uint32)
    results = []
    for patterns in (Patterns(X), kernel):
        h = patterns.weight(problem, y, np.ones(n), 1.0, rho)
        assert isinstance(h.space, Gram) == (patterns is kernel)
        for _ in range(5):
            repeat(Learn(500.0), h, line[::-1].copy(), scores, moved, 1)
            packed = PackedRows().pack(h, line[3:17])
            repeat(Learn(700.0), packed, line[:14], scores, moved, 2)
        score_rows(h, line, scores)
        results.append((h.alpha.tolist(), scores.tolist()))
    assert results[0] == results[1]
