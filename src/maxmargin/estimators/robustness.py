"""Certified radii: how far a row may move before its label can change."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.utils.extmath import safe_sparse_dot
from sklearn.utils.validation import check_is_fitted

from ..numerics.norms import norm
from ..problem.problem import dual_exponent

_EPS = float(np.finfo(float).eps)
_LEAST = float(np.finfo(float).smallest_subnormal)
_MOST = float(np.finfo(float).max)


class Robust:
    """`certified_radius`, for classifiers with `coef_`, `intercept_` and `classes_`."""

    def certified_radius(self, X: Any) -> np.ndarray:
        """Return the size of the smallest perturbation that can change the label of each row.

        Two classes: |w.x + b| / |w|_q, the distance to the hyperplane in the p-norm in which the classifier measures
        distance (2 for `OnlineMarginClassifier`), 1/p + 1/q = 1. Several classes: with k the class predicted, the
        least of (s_k - s_j) / |w_k - w_j|_q over all others j. Where no perturbation can change the label, because
        the weights are equal, it is inf.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features), or rows for the hasher

        Returns
        -------
        radii : ndarray of shape (n_samples,)
            Rounded downwards: no row of float64 numbers nearer than that, in the p-norm, is predicted otherwise.
            0 where rounding leaves the label of the row itself in doubt.

        Raises
        ------
        NotFittedError
        ValueError
            If X does not fit the model, or several hyperplanes vote (``trail="vote"``).

        Notes
        -----
        The proof, by construction. Let s = w.x + b, r = |s| / |w|_q, and g a subgradient of |.|_q at w, so that
        g.w = |w|_q and |g|_p = 1 (`maxmargin.numerics.norms.subgradient`).
        The row x - sign(s) r g is at the distance r from x, and its
        score is s - sign(s) r |w|_q = 0: beyond it, along the same line, the label is the other one.
        Nothing shorter will do: by Hoelder's inequality a perturbation e moves the score by
        |w.e| <= |w|_q |e|_p < |s| where |e|_p < r. Of several classes, k is predicted where s_k >= s_j for all j. Each
        j leaves a half-space, from whose other side x is (s_k - s_j) / |w_k - w_j|_q away by the same
        argument, and the label changes as soon as one of them is left.

        Rounding: a score of d products is off by at most c = (d + 4) eps (|w|.|x| + |b|), in whatever order it was
        summed, and d times the smallest number where products underflow. Twice that is taken from |s|, for the row
        itself and for the perturbed one, |w|_q is rounded up, and the quotient down. Where weights are equal, inf
        speaks of exact scores. With a hasher, distances are those between hashed rows.

        Examples
        --------
        >>> from maxmargin import MaxMarginClassifier
        >>> clf = MaxMarginClassifier(C=float("inf")).fit([[0.0, 0.0], [3.0, 4.0]], [0, 1])
        >>> clf.certified_radius([[0.0, 0.0]]).round(6).tolist()
        [2.5]
        """
        check_is_fitted(self)
        if getattr(self, "trail", None) == "vote":
            raise ValueError(
                'With trail="vote" several hyperplanes predict, and there is no one distance: fit with '
                'trail="average" or trail="last".'
            )
        model: Any = self
        X = model._rows_to_predict(X)
        return _radii(X, model.coef_, model.intercept_, exponent(model))


def exponent(model: Any) -> float:
    """Return p of the norm in which a fitted classifier measures distance: that of its certificate, else 2."""
    certificate = getattr(model, "certificate_", None)
    return 2.0 if certificate is None else float(certificate.certificates[0].problem.p)


def _radii(X: Any, coef: Any, intercept: Any, p: float) -> np.ndarray:
    """Return rounded-down distances to the surface between the class predicted and the nearest other."""
    W, b = np.asarray(coef, dtype=float), np.asarray(intercept, dtype=float)
    d, q = W.shape[1], dual_exponent(p)
    c = (2.0 * d + 32.0) * _EPS  # of norms too, and of what a perturbation adds to the rounding of scores
    with np.errstate(over="ignore", under="ignore", invalid="ignore", divide="ignore"):
        scores = safe_sparse_dot(X, W.T, dense_output=True) + b
        noise = safe_sparse_dot(abs(X), np.abs(W).T, dense_output=True) + np.abs(b)
        noise = 2.0 * ((d + 4.0) * _EPS * noise + (d + 4.0) * _LEAST)
        if W.shape[0] == 1:
            size = norm(W[0], q)
            if size == 0.0:
                return np.full(X.shape[0], np.inf)
            return _quotient(np.abs(scores[:, 0]) - noise[:, 0], size * (1.0 + c))
        radii = np.full(X.shape[0], np.inf)
        lengths = np.array([norm(w, q) for w in W])
        predicted = scores.argmax(axis=1)
        for k in np.unique(predicted):
            rows = np.flatnonzero(predicted == k)
            for j in range(W.shape[0]):
                if j == k:
                    continue
                size = norm(W[k] - W[j], q)
                if size > 0.0:
                    gap = scores[rows, k] - scores[rows, j] - noise[rows, k] - noise[rows, j]
                    radius = _quotient(gap, size * (1.0 + c) + c * (lengths[k] + lengths[j]))
                else:  # the same everywhere; of equals the first is predicted
                    radius = np.inf if b[k] > b[j] or (b[k] == b[j] and k < j) else 0.0
                radii[rows] = np.minimum(radii[rows], radius)
        return radii


def _quotient(gap: np.ndarray, size: float) -> np.ndarray:
    """Return gap / size rounded down, 0 where the gap may not be positive."""
    r = np.where(gap > 0.0, gap, 0.0) / (size + 2.0 * _LEAST)
    return np.nextafter(np.clip(np.nan_to_num(r, nan=0.0, posinf=_MOST), 0.0, _MOST), 0.0)
