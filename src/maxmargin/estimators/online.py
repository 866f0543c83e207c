"""OnlineMarginClassifier: incremental algorithms on streams, in memory of constant size."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from typing import Any, NamedTuple

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from ..algorithms import ALGORITHMS, CRAMMA, MICRA, Algorithm, FixedDirectionalMargin, LocalPerceptron
from ..data.door import check_costs, check_entries
from ..data.rows import Patterns
from ..fit.deadline import deferred_interrupt
from ..fit.streaming import Stream, streams
from ..numerics.columns import check_labels
from ..numerics.sizes import require_weight_memory
from ..problem.problem import Problem
from . import validation
from .prediction import LinearDecision, Robust

STREAM_PARAMETERS = (  # a stream is made with these: they cannot change between calls of partial_fit
    "algorithm", "C", "fit_intercept", "intercept_scaling", "radius",
)  # fmt: skip

SHARED = ("C", "fit_intercept", "random_state")  # checked as in the other classifiers
CHECKS: validation.Checks = {name: (validation.COST | validation.COMMON)[name] for name in SHARED} | {
    "shuffle": validation.COMMON["fit_intercept"],
    "max_iter": (lambda passes: validation.is_whole(passes, 1), "a whole number of at least 1; got {!r}"),
    "intercept_scaling": (validation.is_positive_finite, "a positive, finite number; got {!r}"),
    "radius": (
        validation.optional(validation.is_positive_finite),
        "a positive, finite number, or None; got {!r}",
    ),
}


class StreamBounds(NamedTuple):
    """Bounds on the best objective, or margin, on all patterns seen; one number per binary problem."""

    lower: np.ndarray
    upper: np.ndarray


@dataclass(eq=False, repr=False)
class OnlineMarginClassifier(LinearDecision, Robust, ClassifierMixin, BaseEstimator):
    """Large-margin classification of streams: every row is visited once, and memory does not grow.

    The algorithms are those of `maxmargin.algorithms` that store no patterns: Perceptron with margin, ALMA, CRAMMA,
    MICRA, fixed directional margin, ROMMA, aggressive ROMMA and PUMMA, for the hard margin or (``C`` finite) the 2-norm
    soft margin. Several classes are learnt one against the rest. The result does not depend on the division of the
    stream into batches.

    Parameters
    ----------
    algorithm : str or Algorithm, default="auto"
        A name from `maxmargin.algorithms.ALGORITHMS` or an object such as ``ALMA(alpha=0.2)``. ``"auto"`` is the
        Perceptron with a margin relative to the norm of each pattern, ``LocalPerceptron()``: its mean weight was the
        most accurate after one pass over adult, web, Reuters and MNIST, and it needs no radius. All algorithms
        that are not named above are refused, since they visit a pattern more than once. CRAMMA, MICRA and
        fixed margin are refused without a rate ``eta``, which their theorems derive from a bound on the margin that is
        not known in a stream. Schedules and ``halving`` are ignored. The default accuracy is that for a gap of 0.1.
    C : float, default=inf
        Weight of the squared losses, as in `MaxMarginClassifier`; ``inf`` is the hard margin. Every visit of a row is a
        pattern with its own slack.
    fit_intercept : bool, default=True
    intercept_scaling : float, default=0.3
        The constant coordinate by which the intercept is learnt, for patterns of about unit length; a larger one is
        better if the data have few features. PUMMA computes the intercept directly.
    radius : float, default=None
        An upper bound of the norms of the patterns (including the constant), for the algorithms with thresholds in
        units of it: Perceptron, ALMA, CRAMMA, MICRA and fixed margin. If it is None or too small, the largest norm so
        far is used. The theorems then still hold: the threshold of the Perceptron never exceeds ``b`` R^2, and the
        others run on patterns divided by numbers of at most R, whose margin is at least gamma / R.
    max_iter : int, default=5
        Number of passes of `fit` over the data; `partial_fit` makes one.
    shuffle : bool, default=True
        Whether `fit` presents rows in random order.
    random_state : int, RandomState instance or None, default=None

    Attributes
    ----------
    coef_ : ndarray of shape (1, n_features) or (n_classes, n_features)
        The mean of the weights after every visit.
    intercept_ : ndarray of shape (1,) or (n_classes,)
    classes_ : ndarray of shape (n_classes,)
    bounds_ : StreamBounds
        Bounds that hold for all rows seen, computed from the sums of alpha, alpha x and alpha^2 of each class. With
        ``C=inf`` an upper bound of the largest margin; the lower bound is -inf, since margins of rows that are not
        stored are unknown. With ``C`` finite the dual objective of the best multiple is the lower bound of the least
        objective, and the objective at w = 0 the upper bound. An intercept is free. Rounded outwards.
    mistakes_ : ndarray of shape (1,) or (n_classes,)
        Number of rows with y (w.x + b) <= 0 at the w of their visit. At w = 0 every row is a mistake: for PUMMA the
        rows before both classes are seen, for ROMMA, CRAMMA and MICRA the rows of zeros at the beginning.
    updates_ : ndarray of shape (1,) or (n_classes,)
        Number of rows that changed the weight.
    n_seen_ : int
        Number of visits so far.
    n_iter_ : int
        Number of passes of the last `fit`; 1 after `partial_fit` alone.
    n_features_in_ : int
    feature_names_in_ : ndarray of shape (n_features,)
        Only if X had string column names.
    uncertified_ : str
        The reason why there is no `certificate_`.

    Notes
    -----
    There is no `sample_weight`: in one pass, weight k is not equal to k copies of a row, the second of which is scored
    after the update of the first.

    Rows sorted by label make worse models than rows in random order: shuffle a stream of sorted rows.

    Features that are not known beforehand are hashed in a pipeline: ``make_pipeline(FeatureHasher(2**18), model)``.

    References
    ----------
    Y. Freund, R. E. Schapire, "Large margin classification using the perceptron algorithm", Machine Learning 37,
    1999 (averaging); the docstrings of the rules name theirs.

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
    fit_intercept: bool = True
    intercept_scaling: float = 0.3
    radius: float | None = None
    max_iter: int = 5
    shuffle: bool = True
    random_state: Any = None

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags

    # fitting

    @validation.restored_after(Exception)
    def fit(self, X: Any, y: Any) -> OnlineMarginClassifier:
        """Start a new model, and make `max_iter` passes over these rows.

        The fit ends earlier after a whole pass without an update. There is no `sample_weight`: see Notes.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
        y : array-like of shape (n_samples,)

        Returns
        -------
        self : OnlineMarginClassifier
        """
        X, y = self._validated(X, y, first=True)
        self._begin(y, X.shape[1])
        signs, rng = self._signs(self._places(y)), check_random_state(self.random_state)
        for k in range(self.max_iter):
            before = self.updates_
            if k:
                for stream in self._streams:
                    stream.count_pass()
            order = rng.permutation(X.shape[0]) if self.shuffle else slice(None)
            self._present(Patterns(X[order]), [sign[order] for sign in signs], k == 0)
            self.n_iter_ = k + 1
            if np.array_equal(before, self.updates_):
                break
        return self

    @validation.restored_after(Exception)
    def partial_fit(self, X: Any, y: Any, classes: Any = None) -> OnlineMarginClassifier:
        """Present these rows once, in their order, and update the model.

        There is no `sample_weight`: see Notes.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            Any number of rows, one included.
        y : array-like of shape (n_samples,)
        classes : array-like of shape (n_classes,), default=None
            All classes of the stream; required at the first call.

        Returns
        -------
        self : OnlineMarginClassifier
        """
        first = not hasattr(self, "_streams")
        if first and classes is None:
            raise ValueError("classes must be passed on the first call to partial_fit: name all of them.")
        if not first:
            self._check_same_stream(classes)
        X, y = self._validated(X, y, first)
        if first:
            self._begin(np.asarray(classes), X.shape[1])
        self._present(Patterns(X), self._signs(self._places(y)), True)
        return self

    def _present(self, patterns: Patterns, signs: list[np.ndarray], new: bool) -> None:
        """Present rows to the streams of all classes; Ctrl-C is deferred until all of them have seen these rows."""
        with deferred_interrupt():
            for stream, sign in zip(self._streams, signs, strict=True):
                stream.present(patterns, sign, new)

    # streams

    def _check_same_stream(self, classes: Any) -> None:
        """Refuse parameters or classes that differ from the first call: the sums of the stream would prove nothing."""
        for name, then in self._began.items():
            now = getattr(self, name)
            if now is not then and now != then:
                raise ValueError(
                    f"{name} was {then!r} when this stream began, and is {now!r} now: set it back, or begin anew with "
                    "fit or with sklearn.base.clone(model).partial_fit."
                )
        if classes is not None and not np.array_equal(np.unique(np.asarray(classes)), self.classes_):
            given, known = np.asarray(classes).tolist(), self.classes_.tolist()
            raise ValueError(f"classes={given} is not the same as on the first call to partial_fit, {known}.")

    def _begin(self, labels: np.ndarray, d: int) -> None:
        """Begin one stream for each binary problem of the classes of these labels, for rows with d columns."""
        classes = validation.distinct_labels(labels)
        if classes.size < 2:
            raise ValueError(f"A classifier needs at least 2 classes; got one class: {classes.tolist()!r}.")
        problem = Problem("squared_hinge", float(self.C), intercept="free" if self.fit_intercept else "none")
        check_costs(problem, np.ones(1))
        algorithm = stream_algorithm(self.algorithm, problem)
        self.classes_ = classes
        self.n_iter_ = 1
        self._began = {name: getattr(self, name) for name in STREAM_PARAMETERS}
        rho = float(self.intercept_scaling) if self.fit_intercept else 0.0
        problems = 1 if classes.size == 2 else classes.size
        require_weight_memory(6 * problems, d)  # of `Stream.arrays`, and their copies in a file
        self._streams = [
            Stream(algorithm, problem, d, rho, float(self.radius or 0.0)) for _ in range(problems)
        ]

    # data

    def _validated(self, X: Any, y: Any, first: bool) -> tuple[Any, np.ndarray]:
        """Return rows as an array or CSR matrix, and labels; the `first` ones set the number of features."""
        if first:
            validation.check_parameters(self, CHECKS)
        X, y = validation.validate_rows(self, X, y, order="C", reset=first)
        check_entries(X, getattr(self, "feature_names_in_", None))
        return X, y

    def _places(self, y: np.ndarray) -> np.ndarray:
        """Return the places of labels among the classes; refuse labels of other classes."""
        check_labels(y)
        classes = self.classes_
        place = np.minimum(np.searchsorted(classes, y), classes.size - 1)
        strange = np.flatnonzero(classes[place] != y)
        if strange.size:
            i, known = int(strange[0]), classes.tolist()
            label = f"label {i} (counted from 0) is {y.tolist()[i]!r}"
            raise ValueError(f"{label}, not one of the classes announced, {known}: begin anew with all.")
        return place

    def _signs(self, places: np.ndarray) -> list[np.ndarray]:
        """Return the labels -1.0 and 1.0 of every binary problem."""
        positive = [1] if self.classes_.size == 2 else range(self.classes_.size)
        return [np.where(places == k, 1.0, -1.0) for k in positive]

    # the model, and its bounds

    @property
    def coef_(self) -> np.ndarray:
        """Weights, one row for each binary problem."""
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
        """Number of rows with y (w.x + b) <= 0 at their visit."""
        return np.array([stream.mistakes for stream in self._fitted_streams()])

    @property
    def updates_(self) -> np.ndarray:
        """Number of rows that changed the weight."""
        return np.array([stream.updates for stream in self._fitted_streams()])

    @property
    def n_seen_(self) -> int:
        """Number of row visits so far."""
        return self._fitted_streams()[0].seen

    @property
    def uncertified_(self) -> str:
        """The reason why there is no certificate."""
        return "the model of a stream has no certificate, for its rows are gone; bounds_ is what is certain of them."

    def _fitted_streams(self) -> list[Stream]:
        check_is_fitted(self, "_streams")
        return self._streams


def stream_algorithm(algorithm: Any, problem: Problem) -> Algorithm:
    """Return the algorithm of a stream; "auto" is `LocalPerceptron`. Refuse algorithms that need stored rows."""
    suitable = [name for name, cls in ALGORITHMS.items() if streams(cls)]
    if isinstance(algorithm, str) and algorithm == "auto":
        algorithm = LocalPerceptron.name
    algorithm = validation.named_algorithm(algorithm, ALGORITHMS, "ALMA()", Algorithm, suitable)
    if not streams(type(algorithm)):
        raise ValueError(
            f"algorithm {algorithm.name!r} cannot learn from a stream, which brings a pattern only once. Use "
            f"MaxMarginClassifier, or one of {', '.join(map(repr, suitable))}."
        )
    if isinstance(algorithm, FixedDirectionalMargin) and algorithm.beta is None:
        raise ValueError("fixed-margin needs beta, the margin to reach: FixedDirectionalMargin(beta=0.01).")
    if isinstance(algorithm, CRAMMA | MICRA | FixedDirectionalMargin) and algorithm.eta is None:
        raise ValueError(
            f"{algorithm.name} needs a rate eta, as its own comes from a run over all patterns: eta=0.1."
        )
    instead = algorithm.refuses(problem)
    if instead is not None:
        raise ValueError(f"algorithm {algorithm.name!r} needs {instead}.")
    return algorithm
