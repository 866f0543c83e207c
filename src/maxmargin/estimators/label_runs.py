"""Runs of equal labels in a stream, against those of rows in random order."""

from __future__ import annotations

import numpy as np

# The warning comes at fewer than a third of the label changes that a random order has in the mean, after 200 rows at
# least, if the mean is 30 at least. Then a random order of two classes has this few with a probability of at most 2e-12
# (exact numbers of runs; the most for 17 rows of 200 in one class), and fewer still the more rows there are. A larger
# share would also report labels that depend a little on those before, which do no harm.
_SHARE, _ROWS, _CHANGES = 3, 200, 30
WARNING = (
    "Labels come in long runs: {changes} of {rows} rows have another label than the row before, and about "
    "{expected:.0f} would in random order, which gives better models. Shuffle the rows, use fit with shuffle=True, or "
    "give the command a larger --shuffle-buffer."
)


class LabelRuns:
    """Count the label changes from row to row.

    With n_k rows of class k among n in random order, the mean number of changes is (n^2 - sum n_k^2) / n: for two
    classes with shares p and 1 - p it is 2 n p (1 - p).

    Parameters
    ----------
    n_classes : int

    Attributes
    ----------
    numbers : ndarray of int
        The state: the place of the last label among the classes, -1 for none; changes; whether a warning was given; the
        number of rows of each class.
    """

    def __init__(self, n_classes: int) -> None:
        self.numbers = np.zeros(3 + n_classes, np.int64)
        self.numbers[0] = -1

    def add(self, places: np.ndarray) -> str | None:
        """Count rows by the places of their labels among the classes; return a warning, once, if one is due."""
        numbers = self.numbers
        before = np.append(numbers[0] if numbers[0] >= 0 else places[0], places[:-1])
        numbers[1] += np.count_nonzero(places != before)
        numbers[0] = places[-1]
        counts = numbers[3:]
        counts += np.bincount(places, minlength=counts.size)
        rows = int(counts.sum())
        expected = rows - float((counts / rows) @ counts)
        few = _SHARE * numbers[1] < expected and rows >= _ROWS and expected >= _CHANGES
        if not few or numbers[2]:
            return None
        numbers[2] = 1
        return WARNING.format(changes=numbers[1], rows=rows, expected=expected)
