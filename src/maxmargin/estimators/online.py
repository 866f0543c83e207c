"""OnlineMarginClassifier: the incremental algorithms on streams, every row presented once."""

from __future__ import annotations

from copy import deepcopy
from dataclasses import KW_ONLY, dataclass
from typing import Any, NamedTuple

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.feature_extraction import FeatureHasher
from sklearn.utils import check_random_state
from sklearn.utils.extmath import safe_sparse_dot
from sklearn.utils.validation import check_is_fitted

from ..algorithms import Algorithm
from ..data.rows import Patterns
from ..fit.deadline import deferred_interrupt
from ..fit.streaming import Stream
from ..problem.problem import Problem
from . import validation
from .prediction import LinearDecision, Robust
from .progress import CallbackSupportMixin, StepCallbacks
from .stream_parameters import hash_rows, stream_algorithm

TRAILS = ("average", "vote", "last")
STREAM_PARAMETERS = (  # a stream is made with these: they cannot change between calls of partial_fit
    "algorithm", "C", "trail", "n_voters", "fit_intercept", "intercept_scaling", "radius", "hasher",
)  # fmt: skip

CHECKS: validation.Checks = validation.COST | {
    "trail": (lambda trail: trail in TRAILS, '"average", "vote" or "last"; got {!r}'),
    "n_voters": (lambda count: validation.is_whole(count, 2), "a whole number of at least 2; got {!r}"),
    "max_iter": (lambda passes: validation.is_whole(passes, 1), "a whole number of at least 1; got {!r}"),
    "intercept_scaling": (validation.is_positive_finite, "a positive, finite number; got {!r}"),
    "radius": (
        validation.optional(validation.is_positive_finite),
        "a positive, finite number, or None; got {!r}",
    ),
    "hasher": (
        lambda hasher: hasher is None or isinstance(hasher, FeatureHasher) or validation.is_whole(hasher, 1),
        "a FeatureHasher, a positive number of columns, or None; got {!r}",
    ),
}


class StreamBounds(NamedTuple):
    """Bounds on the best objective, or margin, on all patterns seen; one number a class."""

    lower: np.ndarray
    upper: np.ndarray


@dataclass(eq=False, repr=False)
class OnlineMarginClassifier(LinearDecision, Robust, CallbackSupportMixin, ClassifierMixin, BaseEstimator):
    """Large-margin classification of streams: every row is seen once, and memory does not grow.

    The incremental algorithms of `maxmargin.algorithms` that need no pattern again: Perceptron with margin, ALMA,
    CRAMMA, MICRA, fixed directional margin, ROMMA, aggressive ROMMA and PUMMA, for the hard margin or (``C`` finite)
    the 2-norm soft margin. Several classes are learnt one against the rest. The result does not depend on how the
    stream is cut into batches.

    Parameters
    ----------
    algorithm : str or Algorithm, default="auto"
        A name from `maxmargin.algorithms.ALGORITHMS` or an object such as ``ALMA(alpha=0.2)``. ``"auto"`` is the
        Perceptron with a margin in each pattern's own measure, ``LocalPerceptron()``: its mean weight was the most
        accurate after one pass over adult, web, Reuters and MNIST, and it needs no radius. MPU, dual coordinate
        descent, Pegasos and cutting planes are refused: they need a pattern more than once; so are CRAMMA, MICRA and
        fixed margin without a rate ``eta``, which their theorems draw from a bound on the margin that a stream has not.
        Schedules and ``halving`` are of no use in a stream and are left aside; where no accuracy is given, it is
        that for a gap of 0.1.
    C : float, default=inf
        Weight of the squared losses; ``inf`` is the hard margin. As in `MaxMarginClassifier`; every presentation is a
        pattern with a slack of its own.
    trail : {"average", "vote", "last"}, default="average"
        Which weights predict: the mean of those after every presentation; a vote of those that lasted longest, each
        with as many votes as the presentations it lasted, of which `decision_function` returns the majority, from -1
        to 1; or the last one.
    n_voters : int, default=20
        With ``trail="vote"``: the most weights that vote, the present one among them. When there are more, the one
        that lasted shortest is dropped.
    fit_intercept : bool, default=True
    intercept_scaling : float, default=0.3
        The constant coordinate by which the intercept is learnt, for patterns of about unit length; larger where
        few features leave much to the intercept. PUMMA learns it directly.
    radius : float, default=None
        The largest norm that a pattern will have (the constant included), where an algorithm measures in units of it:
        Perceptron, ALMA, CRAMMA, MICRA and fixed margin. None, or too small a number, and it is the largest norm so
        far. That keeps their theorems: the Perceptron's threshold then never exceeds ``b`` R^2, and the others
        run on patterns divided by numbers of at most R, whose margin is at least gamma / R.
    hasher : FeatureHasher or int, default=None
        For rows whose features are not known beforehand: X is then what the hasher's ``transform`` takes, or a CSR
        matrix of any width, whose column j is the feature named ``str(j)``. A number stands for
        ``FeatureHasher(n_features=number)``, whose rows are dicts.
    max_iter : int, default=5
        Passes of `fit` over the data; `partial_fit` makes one.
    shuffle : bool, default=True
        Whether `fit` presents rows in random order.
    random_state : int, RandomState instance or None, default=None

    Attributes
    ----------
    coef_ : ndarray of shape (1, n_features) or (n_classes, n_features)
        Of the mean weight with ``trail="average"``, else of the last.
    intercept_ : ndarray of shape (1,) or (n_classes,)
    classes_ : ndarray of shape (n_classes,)
    bounds_ : StreamBounds
        Bounds that hold for all rows seen, from the classes' sums of alpha, alpha x and alpha^2 alone, whatever
        the rule: with ``C=inf`` an upper bound of the largest margin (the lower one is -inf: no margin is known of
        rows that are gone); with ``C`` finite the dual value of the best multiple as a lower bound of the least
        objective, and the objective at w = 0 as an upper one. The intercept is free where there is one. Rounded
        outwards.
    mistakes_ : ndarray of shape (1,) or (n_classes,)
        Rows that the weight of their time did not have on the right side: y (w.x + b) was not positive. With w = 0
        that is every row: those that PUMMA lets pass until it has seen both classes, and rows of zeros before
        ROMMA, CRAMMA or MICRA begin, are among them.
    updates_ : ndarray of shape (1,) or (n_classes,)
        Rows that changed the weight.
    n_seen_ : int
        Presentations so far.
    n_iter_ : int
        Passes of the last `fit`; 1 after `partial_fit` alone.
    n_features_in_ : int
        Not with a hasher.
    feature_names_in_ : ndarray of shape (n_features,)
        Only where X had string column names.
    uncertified_ : str
        Why there is no `certificate_`.

    Notes
    -----
    There is no `sample_weight`: one pass cannot make weight k equal k copies of a row, of which the second is
    scored after the first has been learnt.

    References
    ----------
    Y. Freund, R. E. Schapire, "Large margin classification using the perceptron algorithm", Machine Learning 37,
    1999 (averaging and voting); the docstrings of the rules name theirs.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from maxmargin import OnlineMarginClassifier
    >>> X, y = load_iris(return_X_y=True)
    >>> clf = OnlineMarginClassifier()
    >>> for k in range(0, 150, 10):
    ...     clf = clf.partial_fit(X[k::15], y[k::15], classes=[0, 1, 2])
    >>> clf.coef_.shape
    (3, 4)
    """

    algorithm: str | Algorithm = "auto"
    _: KW_ONLY
    C: float = np.inf
    trail: str = "average"
    n_voters: int = 20
    fit_intercept: bool = True
    intercept_scaling: float = 0.3
    radius: float | None = None
    hasher: Any = None
    max_iter: int = 5
    shuffle: bool = True
    random_state: Any = None

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.input_tags.dict = self.hasher is not None
        tags.input_tags.two_d_array = self.hasher is None
        return tags

    # learning

    @validation.restored_after(Exception)
    def fit(self, X: Any, y: Any) -> OnlineMarginClassifier:
        """Begin anew, and make `max_iter` passes over these rows.

        It ends before where a whole pass changes nothing. There is no `sample_weight`: see Notes.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features), or rows for the hasher
        y : array-like of shape (n_samples,)

        Returns
        -------
        self : OnlineMarginClassifier
        """
        X, y = self._validated(X, y, first=True)
        self._begin(y, X.shape[1])
        signs, rng = self._signs(y), check_random_state(self.random_state)
        passes = StepCallbacks(
            self, (X, y, None), self.max_iter, lambda: {"_streams": deepcopy(self._streams)}
        )
        for k in range(self.max_iter):
            before = self.updates_
            with passes.step(self._summary):
                if k:
                    for stream in self._streams:
                        stream.count_pass()
                order = rng.permutation(X.shape[0]) if self.shuffle else slice(None)
                self._present(Patterns(X[order]), [sign[order] for sign in signs], k == 0)
                self.n_iter_ = k + 1
            if np.array_equal(before, self.updates_) or passes.stopped:
                break
        passes.end()
        return self

    @validation.restored_after(Exception)
    def partial_fit(self, X: Any, y: Any, classes: Any = None) -> OnlineMarginClassifier:
        """Present these rows once, in their order, and go on from what was learnt before.

        There is no `sample_weight`: see Notes.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features), or rows for the hasher
            Any number of rows, one included.
        y : array-like of shape (n_samples,)
        classes : array-like of shape (n_classes,), default=None
            All classes that will ever come; needed at the first call.

        Returns
        -------
        self : OnlineMarginClassifier
        """
        first = not hasattr(self, "_streams")
        if first and classes is None:
            raise ValueError(
                "classes must be passed on the first call to partial_fit: name all that will ever come."
            )
        if not first:
            self._check_same_stream(classes)
        X, y = self._validated(X, y, first)
        if first:
            self._begin(np.asarray(classes), X.shape[1])
        self._present(Patterns(X), self._signs(y), True)
        return self

    def _present(self, patterns: Patterns, signs: list[np.ndarray], new: bool) -> None:
        """Present rows to the streams of all classes; Ctrl-C waits, so that these have seen the same rows."""
        if not np.isfinite(patterns.square.sum()):
            raise ValueError("Squares of entries of X overflow: divide X by a large number.")
        with deferred_interrupt():
            for stream, sign in zip(self._streams, signs, strict=True):
                stream.present(patterns, sign, new)

    # streams

    @validation.restored_after(Exception)
    def begin(self, classes: np.ndarray, width: int) -> None:
        """Begin a new stream of rows with these classes and `width` columns (after hashing)."""
        validation.check_parameters(self, CHECKS)
        if not validation.is_whole(width, 1):
            raise ValueError(f"width must be a positive number of columns; got {width!r}.")
        if self.hasher is None:
            self.n_features_in_ = int(width)
            if len(getattr(self, "feature_names_in_", ())) != width:
                vars(self).pop("feature_names_in_", None)
        elif width != self._feature_hasher().n_features:
            raise ValueError(
                f"width={width!r}, but the hasher makes rows of {self._feature_hasher().n_features} columns."
            )
        self._begin(np.asarray(classes), int(width))

    def _check_same_stream(self, classes: Any) -> None:
        """Refuse other parameters and classes than those with which the stream began: its sums would prove nothing."""
        for name, then in self._began.items():
            now = getattr(self, name)
            if now is not then and now != then:
                raise ValueError(
                    f"{name} was {then!r} when this stream began, and is {now!r} now: set it back, or begin anew with "
                    "fit or with sklearn.base.clone(model).partial_fit."
                )
        if classes is not None and not np.array_equal(np.unique(np.asarray(classes)), self.classes_):
            raise ValueError(
                f"classes={np.asarray(classes).tolist()!r} is not the same as on the first call to "
                f"partial_fit, which was {self.classes_.tolist()!r}."
            )

    def _begin(self, labels: np.ndarray, d: int) -> None:
        """Begin one stream for each binary problem of the classes of these labels, for rows with d columns."""
        classes = validation.distinct_labels(labels)
        if classes.size < 2:
            raise ValueError(
                f"A classifier needs at least 2 classes; got {classes.size} class: {classes.tolist()!r}."
            )
        problem = Problem("squared_hinge", float(self.C), intercept="free" if self.fit_intercept else "none")
        algorithm = stream_algorithm(self.algorithm, problem)
        self.classes_ = classes
        self.n_iter_ = 1
        self._began = {name: getattr(self, name) for name in STREAM_PARAMETERS}
        rho = float(self.intercept_scaling) if self.fit_intercept else 0.0
        self._streams = [
            Stream(algorithm, problem, d, rho, float(self.radius or 0.0), self.trail, int(self.n_voters))
            for _ in range(1 if classes.size == 2 else classes.size)
        ]

    def _summary(self) -> str:
        """Return mistakes and bounds so far in one short line."""
        lower, upper = self.bounds_
        hard = not np.isfinite(self.C)
        bounds = f"margin <= {upper.min():.4g}" if hard else f"{lower.sum():.4g}..{upper.sum():.4g}"
        return f"{int(self.mistakes_.sum())} mistakes, {bounds}"

    # data

    def _feature_hasher(self) -> FeatureHasher:
        """Return the hasher; a number stands for ``FeatureHasher(n_features=number)``."""
        return self.hasher if isinstance(self.hasher, FeatureHasher) else FeatureHasher(int(self.hasher))

    def _validated(self, X: Any, y: Any, first: bool) -> tuple[Any, np.ndarray]:
        """Return rows as an array or CSR matrix, and labels; the `first` ones set the number of features."""
        if first:
            validation.check_parameters(self, CHECKS)
        if self.hasher is None:
            return validation.validate_rows(self, X, y, order="C", reset=first)
        X, y = hash_rows(self._feature_hasher(), X), np.asarray(y)
        if y.shape != (X.shape[0],):
            raise ValueError(f"y must hold one label for each of the {X.shape[0]} rows; got shape {y.shape}.")
        return X, y

    def _signs(self, y: np.ndarray) -> list[np.ndarray]:
        """Return the labels -1.0 and 1.0 of every binary problem; refuse labels of other classes."""
        classes = self.classes_
        place = np.minimum(np.searchsorted(classes, y), classes.size - 1)
        strange = np.flatnonzero(classes[place] != y)
        if strange.size:
            raise ValueError(
                f"y holds {y[strange].tolist()[0]!r}, which is none of the classes announced: {classes.tolist()!r}."
            )
        positive = [1] if classes.size == 2 else range(classes.size)
        return [np.where(place == k, 1.0, -1.0) for k in positive]

    # the model, and its bounds

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

    def _rows_to_predict(self, X: Any) -> Any:
        return super()._rows_to_predict(X) if self.hasher is None else hash_rows(self._feature_hasher(), X)

    def _scores(self, X: Any) -> np.ndarray:
        """Return w.x + b of the mean or last weight; of voters the majority, from -1 to 1."""
        if self._streams[0].trail != "vote":
            return super()._scores(X)
        majorities = []
        for stream in self._streams:
            weights, biases, votes = stream.voters()
            sides = np.sign(safe_sparse_dot(X, weights.T, dense_output=True) + biases)
            majorities.append(sides @ votes / max(float(votes.sum()), 1.0))
        return np.column_stack(majorities)

    @property
    def uncertified_(self) -> str:
        """Why there is no certificate."""
        return "the model of a stream has no certificate, for its rows are gone; bounds_ is what is certain of them."

    def state(self) -> list[dict[str, np.ndarray]]:
        """Return the state of the stream of each problem: the arrays themselves, not copies."""
        return [stream.arrays for stream in self._fitted_streams()]

    def _fitted_streams(self) -> list[Stream]:
        check_is_fitted(self, "_streams")
        return self._streams
