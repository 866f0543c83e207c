"""OnlineMarginClassifier: the incremental algorithms on streams, every row presented once."""

from __future__ import annotations

from copy import deepcopy
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.feature_extraction import FeatureHasher
from sklearn.utils import check_random_state

from ..algorithms import Algorithm
from ..data.rows import Patterns
from ..fit.streaming import Stream
from ..numerics.threads import one_thread
from ..problem.problem import Problem
from .algorithm_parameter import stream_algorithm
from .hashing import as_hasher, hash_rows
from .interrupts import deferred_interrupt
from .progress import CallbackSupportMixin, StepCallbacks, with_callbacks
from .robustness import Robust
from .rollback import unchanged_by
from .stream_decision import StreamDecision
from .validation import FLOATS, check_C, distinct_labels, is_number, is_whole, validate_rows

TRAILS = ("average", "vote", "last")
STREAM_PARAMETERS = (  # a stream is made with these: they cannot change between calls of partial_fit
    "algorithm", "C", "trail", "n_voters", "fit_intercept", "intercept_scaling", "radius", "hasher",
)  # fmt: skip
# Entries of the rows that a shuffled pass copies at a time (8 MiB): few enough for memory, enough to hide the calls.
SHUFFLED_ENTRIES = 1 << 20


class OnlineMarginClassifier(StreamDecision, Robust, CallbackSupportMixin, ClassifierMixin, BaseEstimator):
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
        with as many votes as the presentations it lasted; or the last one.
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

    def __init__(
        self,
        algorithm: str | Algorithm = "auto",
        *,
        C: float = np.inf,
        trail: str = "average",
        n_voters: int = 20,
        fit_intercept: bool = True,
        intercept_scaling: float = 0.3,
        radius: float | None = None,
        hasher: Any = None,
        max_iter: int = 5,
        shuffle: bool = True,
        random_state: Any = None,
    ) -> None:
        self.algorithm = algorithm
        self.C = C
        self.trail = trail
        self.n_voters = n_voters
        self.fit_intercept = fit_intercept
        self.intercept_scaling = intercept_scaling
        self.radius = radius
        self.hasher = hasher
        self.max_iter = max_iter
        self.shuffle = shuffle
        self.random_state = random_state

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.input_tags.dict = self.hasher is not None
        tags.input_tags.two_d_array = self.hasher is None
        return tags

    # learning

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
        with unchanged_by(Exception, self), one_thread:
            self._fit(X, y)
        return self

    @with_callbacks
    def _fit(self, X: Any, y: Any) -> None:
        """Validate, encode the labels, begin one stream per class, present the rows pass after pass."""
        algorithm, problem = self._checked()
        X, y = self._validated(X, y, first=True)
        classes = _classes(y)
        rng = check_random_state(self.random_state)
        self._begin(algorithm, problem, classes, X.shape[1])
        signs = self._signs(y)
        patterns = None if self.shuffle else Patterns(X)
        passes = StepCallbacks(self, X, y, None, self.max_iter, lambda: {"_streams": deepcopy(self._streams)})
        for k in range(self.max_iter):
            before = self.updates_
            with passes.step(self._summary):
                if k:
                    for stream in self._streams:
                        stream.again()
                if patterns is None:
                    self._present_shuffled(X, signs, rng, k == 0)
                else:
                    self._present(patterns, signs, k == 0)
                self.n_iter_ = k + 1
            if np.array_equal(before, self.updates_) or passes.stopped:
                break
        passes.end()

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
        with unchanged_by(Exception, self), one_thread:
            if hasattr(self, "_streams"):
                self._check_same_stream(classes)
                X, y = self._validated(X, y, first=False)
            elif classes is None:
                raise ValueError(
                    "classes must be passed on the first call to partial_fit: name all that will ever come."
                )
            else:
                algorithm, problem = self._checked()
                X, y = self._validated(X, y, first=True)
                self._begin(algorithm, problem, _classes(np.asarray(classes)), X.shape[1])
            self._present(Patterns(X), self._signs(y), True)
        return self

    def _present_shuffled(self, X: Any, signs: list[np.ndarray], rng: Any, new: bool) -> None:
        """Present all rows in random order, some at a time."""
        n = X.shape[0]
        entries = X.nnz if sp.issparse(X) else X.size
        step = max(1, n * SHUFFLED_ENTRIES // max(entries, 1))
        order = rng.permutation(n)
        for k in range(0, n, step):
            rows = order[k : k + step]
            self._present(Patterns(X[rows]), [sign[rows] for sign in signs], new)

    def _present(self, patterns: Patterns, signs: list[np.ndarray], new: bool) -> None:
        """Present rows to the streams of all classes; Ctrl-C waits, so that these have seen the same rows."""
        if not np.isfinite(patterns.square.sum()):
            raise ValueError("Squares of entries of X overflow: divide X by a large number.")
        with deferred_interrupt():
            for stream, sign in zip(self._streams, signs, strict=True):
                stream.present(patterns, sign, new)

    # streams

    def begin(self, classes: np.ndarray, width: int) -> None:
        """Begin a new stream of rows with these classes and `width` columns (after hashing)."""
        with unchanged_by(Exception, self):
            (algorithm, problem), classes = self._checked(), _classes(np.asarray(classes))
            if not is_whole(width) or width < 1:
                raise ValueError(f"width must be a positive number of columns; got {width!r}.")
            if self.hasher is None:
                self.n_features_in_ = int(width)
                if len(getattr(self, "feature_names_in_", ())) != width:
                    vars(self).pop("feature_names_in_", None)
            elif width != as_hasher(self.hasher).n_features:
                raise ValueError(
                    f"width={width!r}, but the hasher makes rows of {as_hasher(self.hasher).n_features} columns."
                )
            self._begin(algorithm, problem, classes, int(width))

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

    def _begin(self, algorithm: Algorithm, problem: Problem, classes: np.ndarray, d: int) -> None:
        """Begin one stream for each binary problem, of rows with d columns."""
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

    def _validated(self, X: Any, y: Any, first: bool) -> tuple[Any, np.ndarray]:
        """Return rows as an array or CSR matrix, and labels; `first` sets the number of features."""
        if self.hasher is None:
            if not first and self._needs_no_conversion(X, y):
                return X, y
            return validate_rows(self, X, y, accept_sparse="csr", order="C", reset=first)
        X, y = hash_rows(as_hasher(self.hasher), X), np.asarray(y)
        if y.shape != (X.shape[0],):
            raise ValueError(f"y must hold one label for each of the {X.shape[0]} rows; got shape {y.shape}.")
        return X, y

    def _needs_no_conversion(self, X: Any, y: Any) -> bool:
        """Return whether a batch can be used as it is: validation takes longer than a few rows."""
        if type(X) is np.ndarray:
            in_order, entries = X.ndim == 2 and X.flags.c_contiguous, X
        elif isinstance(X, sp.csr_matrix | sp.csr_array):
            in_order, entries = X.ndim == 2 and bool(X.has_canonical_format), np.asarray(X.data)
        else:
            return False
        return bool(
            in_order
            and entries.dtype in FLOATS
            and X.shape[1] == vars(self)["n_features_in_"]  # pyright: ignore[reportOptionalSubscript]
            and not hasattr(self, "feature_names_in_")
            and type(y) is np.ndarray
            and y.shape == (X.shape[0],)  # pyright: ignore[reportOptionalSubscript]
            and y.size > 0
            and np.isfinite(entries.sum())
        )

    def _signs(self, y: np.ndarray) -> list[np.ndarray]:
        """Return the labels -1.0 and 1.0 of every binary problem; refuse labels of other classes."""
        classes = self.classes_
        if classes.size == 2:
            positive = [y == classes[1]]
            is_class = positive[0] | (y == classes[0])
        else:
            place = np.minimum(np.searchsorted(classes, y), classes.size - 1)
            is_class = classes[place] == y
            positive = [place == k for k in range(classes.size)]
        if not np.all(is_class):
            strange = np.asarray(y)[~np.asarray(is_class)].tolist()[0]
            raise ValueError(
                f"y holds {strange!r}, which is none of the classes announced: {classes.tolist()!r}."
            )
        return [np.where(rows, 1.0, -1.0) for rows in positive]

    # parameters

    def _checked(self) -> tuple[Algorithm, Problem]:
        """Check the parameters; return the algorithm and the problem that they state."""
        check_C(self.C)
        if self.trail not in TRAILS:
            raise ValueError(f'trail must be "average", "vote" or "last"; got {self.trail!r}.')
        for name, least in (("n_voters", 2), ("max_iter", 1)):
            value = getattr(self, name)
            if not is_whole(value) or value < least:
                raise ValueError(f"{name} must be a whole number of at least {least}; got {value!r}.")
        if not is_number(self.intercept_scaling) or not 0 < self.intercept_scaling < np.inf:
            raise ValueError(
                f"intercept_scaling must be a positive, finite number; got {self.intercept_scaling!r}."
            )
        if self.radius is not None and not (is_number(self.radius) and 0 < self.radius < np.inf):
            raise ValueError(f"radius must be a positive, finite number, or None; got {self.radius!r}.")
        hasher: Any = self.hasher
        if not (hasher is None or isinstance(hasher, FeatureHasher) or (is_whole(hasher) and hasher > 0)):
            raise ValueError(
                f"hasher must be a FeatureHasher, a positive number of columns, or None; got {hasher!r}."
            )
        problem = Problem("squared_hinge", float(self.C), intercept="free" if self.fit_intercept else "none")
        return stream_algorithm(self.algorithm, problem), problem


def _classes(y: np.ndarray) -> np.ndarray:
    """Return the distinct labels in order; refuse fewer than two."""
    classes = distinct_labels(y)
    if classes.size < 2:
        raise ValueError(
            f"A classifier needs at least 2 classes; got {classes.size} class: {classes.tolist()!r}."
        )
    return classes
