"""Several classes as binary problems: each against the rest, or each against each other, in the layouts of SVC."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import combinations
from typing import Any, ClassVar

import numpy as np

SCHEMES = ("ovr", "ovo")


class Parts:
    """One-vs-rest: class k is positive in problem k; two classes make one problem, in which the second is positive.

    Parameters
    ----------
    count : int
        Number of classes, at least 2.

    Attributes
    ----------
    labels : list
        The classes of each problem, by number: k against all others, or, one-vs-one, the pair (i, j).
    """

    name: ClassVar[str] = "ovr"

    def __init__(self, count: int) -> None:
        self.count = count
        self.labels: Sequence[Any] = [1] if count == 2 else list(range(count))

    def signs(self, k: int, codes: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return labels -1.0 and 1.0 of problem k for rows of these classes, and which rows take part."""
        return np.where(codes == self.labels[k], 1.0, -1.0), codes >= 0

    def sides(self, k: int, classes: np.ndarray) -> tuple[Any, Any]:
        """Return the names of the negative and the positive side of problem k."""
        return tuple(classes.tolist()) if self.count == 2 else (False, True)

    def packed(self, coefficients: np.ndarray, codes: np.ndarray) -> np.ndarray:
        """Return `dual_coef_` from the coefficients (problems, rows) of support vectors, sorted by class."""
        return coefficients

    def unpacked(self, dual_coef: np.ndarray, counts: np.ndarray) -> np.ndarray:
        """Return the coefficients (problems, rows) from `dual_coef_`; `counts`: support vectors of each class."""
        return dual_coef

    def problems(self, code: int) -> np.ndarray:
        """Return the problem of each row of `dual_coef_`, in the columns of this class."""
        return np.arange(len(self.labels))

    def values(self, scores: np.ndarray) -> np.ndarray:
        """Return one value for each class from the scores (rows, problems): shape (rows, classes)."""
        return np.hstack([-scores, scores]) if self.count == 2 else scores

    def votes(self, scores: np.ndarray) -> np.ndarray:
        """Return the values whose maximum determines the predicted class: shape (rows, classes)."""
        return self.values(scores)


class AgainstEachOther(Parts):
    """One-vs-one: classes i < j in problem (i, j), in which i is positive, as in SVC.

    A support vector has a coefficient for each of the other classes: row j - 1 of `dual_coef_` where j is larger than
    its own class, row j where it is smaller.
    """

    name = "ovo"

    def __init__(self, count: int) -> None:
        self.count = count
        self.labels = list(combinations(range(count), 2))

    def signs(self, k: int, codes: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        i, j = self.labels[k]
        return np.where(codes == i, 1.0, -1.0), (codes == i) | (codes == j)

    def sides(self, k: int, classes: np.ndarray) -> tuple[Any, Any]:
        i, j = classes[list(self.labels[k])].tolist()
        return j, i

    def packed(self, coefficients: np.ndarray, codes: np.ndarray) -> np.ndarray:
        packed = np.zeros((self.count - 1, codes.size))
        for k, row, columns in self._places(np.bincount(codes, minlength=self.count)):
            packed[row, columns] = coefficients[k, columns]
        return packed

    def unpacked(self, dual_coef: np.ndarray, counts: np.ndarray) -> np.ndarray:
        found = np.zeros((len(self.labels), int(counts.sum())))
        for k, row, columns in self._places(counts):
            found[k, columns] = dual_coef[row, columns]
        return found

    def _places(self, counts: np.ndarray) -> Iterator[tuple[int, int, slice]]:
        """Yield (k, row, columns): the place in `dual_coef_` of one class's coefficients of problem k.

        `counts` are the numbers of support vectors of each class, which are sorted by class.
        """
        # of pair (i, j), class i has row j - 1, as j > i, and class j has row i
        ends = [0, *np.cumsum(counts).tolist()]
        for k, (i, j) in enumerate(self.labels):
            yield k, j - 1, slice(ends[i], ends[i + 1])
            yield k, i, slice(ends[j], ends[j + 1])

    def problems(self, code: int) -> np.ndarray:
        return np.array([k for k, pair in enumerate(self.labels) if code in pair])

    def votes(self, scores: np.ndarray) -> np.ndarray:
        """Return the number of pairs that each class wins."""
        # a pair gives its vote to `second`; a positive score moves it to `first`
        classes = np.eye(self.count, dtype=np.float32)  # sums of small integers are exact
        first, second = classes[np.array(self.labels).T]
        return (scores > 0.0).astype(np.float32) @ (first - second) + second.sum(axis=0)

    def values(self, scores: np.ndarray) -> np.ndarray:
        """Return votes plus a monotone map of the sums of scores to (-1/3, 1/3), which decides ties, as in SVC."""
        sums = np.zeros((scores.shape[0], self.count))
        # in this order for any number of rows, so that rounding is the same
        for k, (i, j) in enumerate(self.labels):
            sums[:, i] += scores[:, k]
            sums[:, j] -= scores[:, k]
        return self.votes(scores) + sums / (3.0 * (np.abs(sums) + 1.0))


def parts_of(scheme: str, count: int) -> Parts:
    """Return the problems of this scheme; for two classes one in any case, the second class against the first."""
    return AgainstEachOther(count) if scheme == "ovo" and count > 2 else Parts(count)


def named_parts(parts: Parts, classes: np.ndarray) -> list[Any]:
    """Return the class of each problem, or its pair of classes; None for the only problem of two classes."""
    if len(classes) == 2:
        return [None]
    return [
        tuple(classes[list(label)].tolist()) if isinstance(label, tuple) else classes[label]
        for label in parts.labels
    ]


def class_numbers(labels: np.ndarray, classes: np.ndarray) -> np.ndarray:
    """Return the number of each label among the sorted classes; -1 for labels that are none of them."""
    known = np.isin(labels, classes)
    numbers = np.full(labels.shape, -1)
    numbers[known] = np.searchsorted(classes, labels[known])
    return numbers


def python_label(label: Any) -> Any:
    """Return a label as a Python scalar, which prints without its NumPy type; other objects as they are."""
    return label.item() if isinstance(label, np.generic) else label
