"""Predictions as lines of text or as one JSON object, written part by part."""

from __future__ import annotations

import json
from collections.abc import Callable
from tempfile import SpooledTemporaryFile
from types import TracebackType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import numpy as np

SPOOLED = 1 << 20  # characters of scores that are in memory before a temporary file holds them, for JSON
_PART = 1 << 20  # characters that are copied at a time


class Predictions:
    """Writer of the class of each row, and of its scores.

    Parameters
    ----------
    write : callable
        Writes a text.
    as_json : bool
        One object, {"labels": [...], "scores": [...]}, in place of a line for each row.
    """

    def __init__(self, write: Callable[[str], Any], as_json: bool) -> None:
        self._write, self._as_json, self._first = write, as_json, True
        # labels come before scores: a temporary file holds the scores
        self._scores: Any = None
        if as_json:
            self._scores = SpooledTemporaryFile(SPOOLED, "w+", encoding="utf-8")  # noqa: SIM115  closed by __exit__
        self._has_scores = False

    def __enter__(self) -> Predictions:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._as_json:
            try:
                if error is None:
                    self._end()
            finally:
                self._scores.close()

    def add(self, labels: list[str], predicted: np.ndarray, values: np.ndarray | None) -> None:
        """Write the predictions of some rows.

        Parameters
        ----------
        labels : list of str
            The predicted classes as text.
        predicted : ndarray of shape (n,)
        values : ndarray of shape (n,) or (n, k), or None
            Scores.
        """
        if self._as_json:
            before = '{"labels": [' if self._first else ", "
            self._write(before + json.dumps(predicted.tolist())[1:-1])
            if values is not None:
                self._scores.write(("" if self._first else ", ") + json.dumps(values.tolist())[1:-1])
                self._has_scores = True
            self._first = False
            return
        lines = labels
        if values is not None:
            rows = values.reshape(len(labels), -1).tolist()
            lines = ["\t".join([label, *map(repr, row)]) for label, row in zip(labels, rows, strict=True)]
        self._write("".join(f"{line}\n" for line in lines))

    def _end(self) -> None:
        """Write the rest of the JSON object."""
        self._write("]")
        if self._has_scores:
            self._write(', "scores": [')
            self._scores.seek(0)
            while part := self._scores.read(_PART):
                self._write(part)
            self._write("]")
        self._write("}\n")
