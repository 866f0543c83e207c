"""Runs of equal labels in a stream, against those of rows in random order."""

from __future__ import annotations

from math import log

import numpy as np

from ..engine.jit import compiled

LAST, RUN, CHANGES, WARNED, COUNTS = range(5)  # places in the state
# Least number of rows: below, a run is short in any case.
LEAST_ROWS = 200
# The warning comes at fewer than a fifth of the label changes of a random order, if these are 20 at least. Runs three
# times as long as in random order cost no accuracy after one pass over adult, web, Reuters and two others, ten times as
# long up to 0.15. Two classes in random order have this few changes with a probability of at most 5e-13 (exact, for
# 11 rows of 200 in one class).
SHARE, LEAST_CHANGES = 5, 20
# The warning comes also for one run that is improbable in random order. Among n rows, n_k of them of class k, there is
# a run of L rows of class k with a probability of at most n (n_k / n)^L. With L so large that this is at most
# alpha / n^2 over the number of classes, a stream of any length is reported with a probability of at most alpha times
# the sum of 1 / n^2 from n = 200: 5e-9. A larger alpha gives shorter runs, which do less harm.
ALPHA = 1e-6
WARNING = (
    "Labels come in long runs: up to {longest} rows in succession have the same label, which changes {changes} times "
    "in {rows} rows, and about {expected:.0f} times in random order. Random order gives better models: shuffle the "
    "rows, use fit with shuffle=True, or give the command a larger --shuffle-buffer."
)


class LabelRuns:
    """Counts of the label changes from row to row, and the longest run of each label.

    With n_k rows of class k among n in random order, the mean number of changes is (n^2 - sum n_k^2) / n: for two
    classes with shares p and 1 - p it is 2 n p (1 - p).

    Parameters
    ----------
    n_classes : int

    Attributes
    ----------
    numbers : ndarray of int
        The state: the place of the last label among the classes, -1 for none; rows of its run so far; changes; whether
        a warning was given, which ends the count; for each class its rows and its longest run.
    """

    def __init__(self, n_classes: int) -> None:
        self.numbers = np.zeros(4 + 2 * n_classes, np.int64)
        self.numbers[LAST] = -1

    def add(self, places: np.ndarray) -> str | None:
        """Count rows by the places of their labels among the classes; return a warning, once, if one is due."""
        numbers = self.numbers
        counts, longest = numbers[COUNTS::2], numbers[COUNTS + 1 :: 2]
        if numbers[WARNED]:
            return None
        _count(places, numbers, counts, longest)
        expected = _improbable(numbers[CHANGES], counts, longest)
        if not expected:
            return None
        numbers[WARNED] = 1
        rows = counts.sum()
        return WARNING.format(longest=longest.max(), changes=numbers[CHANGES], rows=rows, expected=expected)


@compiled()
def _count(places, numbers, counts, longest):
    """Count rows in the state and in its views, the rows of each class and the longest run of each."""
    last, run, changes = numbers[LAST], numbers[RUN], numbers[CHANGES]
    for place in places:
        if place != last:
            if last >= 0:
                changes += 1
            last, run = place, 0
        run += 1
        counts[place] += 1
        longest[place] = max(longest[place], run)
    numbers[LAST], numbers[RUN], numbers[CHANGES] = last, run, changes


@compiled()
def _improbable(changes, counts, longest):
    """Return the mean number of changes in random order, if changes are too few or a run too long for it, else 0."""
    rows = counts.sum()
    if rows < LEAST_ROWS:
        return 0.0
    expected, highest = float(rows), log(ALPHA) - 3.0 * log(rows) - log(counts.size)
    too_long = False
    for k in range(counts.size):
        if counts[k]:
            share = counts[k] / rows
            expected -= counts[k] * share
            too_long |= longest[k] * log(share) <= highest
    few = expected >= LEAST_CHANGES and SHARE * changes < expected
    return expected if few or too_long else 0.0
