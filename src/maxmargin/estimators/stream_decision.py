"""Weights, counts and predictions of the streams of an online classifier."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from sklearn.utils.extmath import safe_sparse_dot

from ..fit.streaming import Stream
from .hashing import as_hasher, hash_rows
from .prediction import LinearDecision


class StreamBounds(NamedTuple):
    """Bounds on the best objective, or margin, on all patterns seen; one number a class."""

    lower: np.ndarray
    upper: np.ndarray


class StreamDecision(LinearDecision):
    """Fitted attributes, scores and labels of a classifier with one stream for each binary problem."""

    hasher: Any
    _streams: list[Stream]

    @property
    def coef_(self) -> np.ndarray:
        """Weights, a line for each problem."""
        return np.vstack([stream.weight()[0] for stream in self._fitted_streams()])

    @property
    def intercept_(self) -> np.ndarray:
        """Intercepts."""
        return np.array([stream.weight()[1] for stream in self._fitted_streams()])

    @property
    def bounds_(self) -> StreamBounds:
        """Bounds that hold for all rows seen."""
        lower, upper = np.array([stream.bounds() for stream in self._fitted_streams()]).T
        return StreamBounds(lower, upper)

    @property
    def mistakes_(self) -> np.ndarray:
        """Rows that were not on the right side."""
        return np.array([stream.mistakes for stream in self._fitted_streams()])

    @property
    def updates_(self) -> np.ndarray:
        """Rows that changed the weight."""
        return np.array([stream.updates for stream in self._fitted_streams()])

    @property
    def n_seen_(self) -> int:
        """Presentations so far."""
        return self._fitted_streams()[0].seen

    def decision_function(self, X: Any) -> np.ndarray:
        """Return w.x + b of the mean or last weight; of voters the majority, from -1 to 1.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features), or rows for the hasher

        Returns
        -------
        scores : ndarray of shape (n_samples,) or (n_samples, n_classes)
        """
        return super().decision_function(X)

    def _rows_to_predict(self, X: Any) -> Any:
        return super()._rows_to_predict(X) if self.hasher is None else hash_rows(as_hasher(self.hasher), X)

    def _scores(self, X: Any) -> np.ndarray:
        if self._streams[0].trail != "vote":
            return super()._scores(X)
        return np.column_stack([_majority(stream, X) for stream in self._streams])

    @property
    def uncertified_(self) -> str:
        """Why there is no certificate."""
        return "the model of a stream has no certificate, for its rows are gone; bounds_ is what is certain of them."

    def state(self) -> list[dict[str, np.ndarray]]:
        """Return the state of the stream of each problem: the arrays themselves, not copies."""
        return [stream.arrays for stream in self._fitted_streams()]

    def _fitted_streams(self) -> list[Stream]:
        if "_streams" not in vars(self):
            raise AttributeError(
                f"This {type(self).__name__} is not fitted yet: call fit or partial_fit first."
            )
        return self._streams


def _majority(stream: Stream, X: Any) -> np.ndarray:
    """Return the majority of the voters of a stream for each row, from -1 to 1."""
    weights, biases, votes = stream.voters()
    scores = safe_sparse_dot(X, weights.T, dense_output=True) + biases
    return np.sign(scores) @ votes / max(float(votes.sum()), 1.0)
