"""OnlineMarginClassifier: the incremental algorithms on streams, every row presented once."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from copy import deepcopy
from numbers import Integral, Real
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.feature_extraction import FeatureHasher
from sklearn.utils import check_random_state
from sklearn.utils.extmath import safe_sparse_dot
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted

from ..algorithms import ALGORITHMS, CRAMMA, MICRA, Algorithm, FixedDirectionalMargin, LocalPerceptron
from ..data.rows import Patterns
from ..fit.streaming import Stream, streams
from ..numerics.threads import one_thread
from ..problem.problem import Problem
from .callbacks import CallbackSupportMixin, tasks, with_callbacks
from .labels import missing_labels
from .robustness import Robust
from .rollback import unchanged_by
from .rows import checked_rows

TRAILS = ("average", "vote", "last")
_SHAPING = (  # parameters that a stream is made with
    "algorithm", "C", "trail", "n_voters", "fit_intercept", "intercept_scaling", "radius", "hasher",
)  # fmt: skip
_GATHERED = 1 << 20  # entries of the rows that a shuffled pass puts together at a time
_UNFIT = {
    "mpu": "it takes back what it has learnt from a pattern when the pattern comes again",
    "dcd": "it moves the dual weight of a pattern a little every time the pattern comes",
    "cutting-plane": "every plane is made of all patterns",
    "lp": "a linear program is one of all patterns",
    "fmp": "it comes to its margin only in many passes",
    "ima": "it goes from margin to margin, each found in many passes",
    "pegasos": "it draws patterns at random from all of them, and its steps depend on how many there are",
}
_RATES = {
    "cramma": "CRAMMA(eta=0.1)",
    "micra": "MICRA(eta=0.3)",
    "fixed-margin": "FixedDirectionalMargin(beta=0.01, eta=0.1)",
}
_TAKEN = {  # what the rows of a hasher are
    "dict": "a dict of features, {'height': 1.7, 'colour=red': 1}",
    "pair": "a list of pairs, [('height', 1.7), ('colour=red', 1)]",
    "string": "a list of words, ['tall', 'red']",
}


class StreamBounds(NamedTuple):
    """What is certain about the best objective, or margin, on all patterns seen; one number a class."""

    lower: np.ndarray
    upper: np.ndarray


class OnlineMarginClassifier(Robust, CallbackSupportMixin, ClassifierMixin, BaseEstimator):
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
        Does `fit` present rows in random order?
    random_state : int, RandomState instance or None, default=None

    Attributes
    ----------
    coef_ : ndarray of shape (1, n_features) or (n_classes, n_features)
        Of the mean weight with ``trail="average"``, else of the last.
    intercept_ : ndarray of shape (1,) or (n_classes,)
    classes_ : ndarray of shape (n_classes,)
    bounds_ : StreamBounds
        What is certain about all rows seen, from the classes' sums of alpha, alpha x and alpha^2 alone, whatever
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
        plans = self._checked()
        X, y = self._rows(X, y, first=True)
        classes = _classes(y)
        rng = check_random_state(self.random_state)
        self._begin(plans, classes, X.shape[1])
        n = X.shape[0]
        entries = X.nnz if sp.issparse(X) else X.size
        step = max(1, n * _GATHERED // max(entries, 1))
        signs = self._signs(y)
        patterns = None if self.shuffle else Patterns(X)
        passes = tasks(self, X, y, None, self.max_iter, lambda: {"_streams": deepcopy(self._streams)})
        for turn in range(self.max_iter):
            before = self.updates_
            with passes.part(self._so_far):
                if turn:
                    for stream in self._streams:
                        stream.again()
                if patterns is not None:
                    self._present(patterns, signs, turn == 0)
                else:
                    order = rng.permutation(n)
                    for k in range(0, n, step):
                        rows = order[k : k + step]
                        self._present(Patterns(X[rows]), [sign[rows] for sign in signs], turn == 0)
                self.n_iter_ = turn + 1
            if np.array_equal(before, self.updates_) or passes.stopped:
                break
        passes.done()

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
                self._check_same()
                if classes is not None and not np.array_equal(np.unique(np.asarray(classes)), self.classes_):
                    raise ValueError(
                        f"classes={np.asarray(classes).tolist()!r} is not the same as on the first call to "
                        f"partial_fit, which was {self.classes_.tolist()!r}."
                    )
                X, y = self._rows(X, y, first=False)
            else:
                if classes is None:
                    raise ValueError(
                        "classes must be passed on the first call to partial_fit: name all that will ever come."
                    )
                plans = self._checked()
                X, y = self._rows(X, y, first=True)
                self._begin(plans, _classes(np.asarray(classes)), X.shape[1])
            self._present(Patterns(X), self._signs(y), True)
        return self

    def _present(self, patterns: Patterns, signs: list[np.ndarray], new: bool) -> None:
        if not np.isfinite(patterns.square.sum()):
            raise ValueError("Squares of entries of X overflow: divide X by a large number.")
        with _undivided():
            for stream, sign in zip(self._streams, signs, strict=True):
                stream.present(patterns, sign, new)

    # what was learnt

    @property
    def coef_(self) -> np.ndarray:
        """Weights, a line for each problem."""
        return np.vstack([stream.weight()[0] for stream in self._learnt()])

    @property
    def intercept_(self) -> np.ndarray:
        """Intercepts."""
        return np.array([stream.weight()[1] for stream in self._learnt()])

    @property
    def bounds_(self) -> StreamBounds:
        """What is certain about all rows seen."""
        lower, upper = np.array([stream.bounds() for stream in self._learnt()]).T
        return StreamBounds(lower, upper)

    @property
    def mistakes_(self) -> np.ndarray:
        """Rows that were not on the right side."""
        return np.array([stream.mistakes for stream in self._learnt()])

    @property
    def updates_(self) -> np.ndarray:
        """Rows that changed the weight."""
        return np.array([stream.updates for stream in self._learnt()])

    @property
    def n_seen_(self) -> int:
        """Presentations so far."""
        return self._learnt()[0].seen

    def decision_function(self, X: Any) -> np.ndarray:
        """w.x + b of the mean or last weight; of voters the majority, from -1 to 1.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features), or rows for the hasher

        Returns
        -------
        scores : ndarray of shape (n_samples,) or (n_samples, n_classes)
        """
        check_is_fitted(self)
        X = (
            checked_rows(self, X, accept_sparse="csr", reset=False)
            if self.hasher is None
            else self._hashed(X)
        )
        with one_thread:
            if self._streams[0].trail == "vote":
                scores = np.column_stack([_majority(stream, X) for stream in self._streams])
            else:
                scores = safe_sparse_dot(X, self.coef_.T, dense_output=True) + self.intercept_
        return scores.ravel() if scores.shape[1] == 1 else scores

    def predict(self, X: Any) -> np.ndarray:
        """The class of each row.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features), or rows for the hasher

        Returns
        -------
        labels : ndarray of shape (n_samples,)
        """
        scores = self.decision_function(X)
        return self.classes_[(scores > 0).astype(np.intp) if scores.ndim == 1 else scores.argmax(axis=1)]

    def begin(self, classes: np.ndarray, width: int) -> None:
        """Forget everything; what comes has these classes and so many columns (after hashing)."""
        with unchanged_by(Exception, self):
            plans, classes = self._checked(), _classes(np.asarray(classes))
            if not isinstance(width, Integral) or isinstance(width, bool) or width < 1:
                raise ValueError(f"width must be a positive number of columns; got {width!r}.")
            if self.hasher is None:
                self.n_features_in_ = int(width)
                if len(getattr(self, "feature_names_in_", ())) != width:
                    vars(self).pop("feature_names_in_", None)
            elif width != self._hasher().n_features:
                raise ValueError(
                    f"width={width!r}, but the hasher makes rows of {self._hasher().n_features} columns."
                )
            self._begin(plans, classes, int(width))

    def _so_far(self) -> str:
        """What is known, in a few words."""
        lower, upper = self.bounds_
        hard = not np.isfinite(self.C)
        known = f"margin <= {upper.min():.4g}" if hard else f"{lower.sum():.4g}..{upper.sum():.4g}"
        return f"{int(self.mistakes_.sum())} mistakes, {known}"

    @property
    def uncertified_(self) -> str:
        """Why there is no certificate."""
        return "the model of a stream has no certificate, for its rows are gone; bounds_ is what is certain of them."

    def state(self) -> list[dict[str, np.ndarray]]:
        """All that was learnt, for each problem: these arrays themselves, not copies."""
        return [stream.arrays for stream in self._learnt()]

    def _learnt(self) -> list[Stream]:
        if "_streams" not in vars(self):
            raise AttributeError(
                f"This {type(self).__name__} is not fitted yet: call fit or partial_fit first."
            )
        return self._streams

    # data

    def _rows(self, X: Any, y: Any, first: bool) -> tuple[Any, np.ndarray]:
        """Rows in a form for the engine, and labels."""
        if self.hasher is None:
            if not first and self._plain(X, y):
                return X, y
            X, y = checked_rows(self, X, y, accept_sparse="csr", order="C", reset=first)
            return X, y
        X, y = self._hashed(X), np.asarray(y)
        if y.shape != (X.shape[0],):
            raise ValueError(f"y must hold one label for each of the {X.shape[0]} rows; got shape {y.shape}.")
        return X, y

    def _plain(self, X: Any, y: Any) -> bool:
        """Is there nothing to convert and nothing to object to?"""
        if type(X) is np.ndarray:
            right, entries = X.ndim == 2 and X.flags.c_contiguous, X
        elif isinstance(X, sp.csr_matrix | sp.csr_array):
            right, entries = X.ndim == 2 and bool(X.has_canonical_format), np.asarray(X.data)
        else:
            return False
        return bool(
            right
            and entries.dtype in (np.float64, np.float32)
            and X.shape[1] == vars(self)["n_features_in_"]  # pyright: ignore[reportOptionalSubscript]
            and not hasattr(self, "feature_names_in_")
            and type(y) is np.ndarray
            and y.shape == (X.shape[0],)  # pyright: ignore[reportOptionalSubscript]
            and y.size > 0
            and np.isfinite(entries.sum())
        )

    def _hasher(self) -> FeatureHasher:
        given: Any = self.hasher
        return given if isinstance(given, FeatureHasher) else FeatureHasher(int(given))

    def _hashed(self, X: Any) -> Any:
        hasher = self._hasher()
        if not sp.issparse(X):
            rows = _transformed(hasher, X)
            _check_finite(rows)
            return rows
        X = sp.csr_matrix(X)
        _check_finite(X)
        if not X.nnz:  # the hasher makes no names of nothing
            return sp.csr_matrix((X.shape[0], hasher.n_features), dtype=hasher.dtype)
        named, place = np.unique(X.indices, return_inverse=True)
        words: Any = FeatureHasher(
            hasher.n_features, input_type="string", dtype=hasher.dtype, alternate_sign=hasher.alternate_sign
        ).transform([[str(j)] for j in named.tolist()])
        entries = (X.data * words.data[place], words.indices[place], X.indptr.copy())
        out = sp.csr_matrix(entries, (X.shape[0], hasher.n_features))
        out.sum_duplicates()
        return out

    def _signs(self, y: np.ndarray) -> list[np.ndarray]:
        """+1 and -1 for every problem."""
        classes = self.classes_
        if classes.size == 2:
            right = [y == classes[1]]
            known = right[0] | (y == classes[0])
        else:
            place = np.minimum(np.searchsorted(classes, y), classes.size - 1)
            known = classes[place] == y
            right = [place == k for k in range(classes.size)]
        if not np.all(known):
            strange = np.asarray(y)[~np.asarray(known)].tolist()[0]
            raise ValueError(
                f"y holds {strange!r}, which is none of the classes announced: {classes.tolist()!r}."
            )
        return [np.where(one, 1.0, -1.0) for one in right]

    # parameters

    def _checked(self) -> tuple[Algorithm, Problem]:
        if not _is_number(self.C) or not self.C > 0:
            raise ValueError(f"C must be a positive number, or inf for the hard margin; got C={self.C!r}.")
        if self.trail not in TRAILS:
            raise ValueError(f'trail must be "average", "vote" or "last"; got {self.trail!r}.')
        for name, least in (("n_voters", 2), ("max_iter", 1)):
            value = getattr(self, name)
            if not isinstance(value, Integral) or isinstance(value, bool) or value < least:
                raise ValueError(f"{name} must be a whole number of at least {least}; got {value!r}.")
        if not _is_number(self.intercept_scaling) or not 0 < self.intercept_scaling < np.inf:
            raise ValueError(
                f"intercept_scaling must be a positive, finite number; got {self.intercept_scaling!r}."
            )
        if self.radius is not None and not (_is_number(self.radius) and 0 < self.radius < np.inf):
            raise ValueError(f"radius must be a positive, finite number, or None; got {self.radius!r}.")
        if not (
            self.hasher is None
            or isinstance(self.hasher, FeatureHasher)
            or (
                isinstance(self.hasher, int | np.integer)
                and not isinstance(self.hasher, bool)
                and self.hasher > 0
            )
        ):
            raise ValueError(
                f"hasher must be a FeatureHasher, a positive number of columns, or None; got {self.hasher!r}."
            )
        problem = Problem("squared_hinge", float(self.C), intercept="free" if self.fit_intercept else "none")
        return self._algorithm(problem), problem

    def _algorithm(self, problem: Problem) -> Algorithm:
        algorithm = self.algorithm
        fit = [name for name, cls in ALGORITHMS.items() if streams(cls)]
        if isinstance(algorithm, str):
            name = LocalPerceptron.name if algorithm == "auto" else algorithm
            if name not in ALGORITHMS:
                raise ValueError(
                    f"algorithm must be 'auto', one of {', '.join(map(repr, fit))}, or an object such as "
                    f"ALMA(); got {algorithm!r}."
                )
            algorithm = ALGORITHMS[name]()
        elif not isinstance(algorithm, Algorithm):
            raise ValueError(f"algorithm must be a name or a rule object such as ALMA(); got {algorithm!r}.")
        if not streams(type(algorithm)):
            reason = _UNFIT.get(algorithm.name, "it needs a pattern more than once")
            raise ValueError(
                f"algorithm {algorithm.name!r} cannot learn from a stream, which brings a pattern only once: "
                f"{reason}. Use MaxMarginClassifier, or one of {', '.join(map(repr, fit))}."
            )
        if isinstance(algorithm, FixedDirectionalMargin) and algorithm.beta is None:
            raise ValueError(
                "fixed-margin without beta takes a share of a margin found by a run over all patterns, which a "
                "stream has not: give the margin to reach, FixedDirectionalMargin(beta=0.01) for instance."
            )
        if isinstance(algorithm, CRAMMA | MICRA | FixedDirectionalMargin) and algorithm.eta is None:
            raise ValueError(
                f"{algorithm.name} without eta takes its rate from a bound on the margin that a run over all patterns "
                "finds, which a stream has not, and no theorem covers a rate without one: give a rate, "
                f"{_RATES[algorithm.name]} for instance."
            )
        instead = algorithm.refuses(problem)
        if instead is not None:
            raise ValueError(f"algorithm {algorithm.name!r} needs {instead}.")
        return algorithm

    def _check_same(self) -> None:
        """What shapes a stream cannot change in the middle of it: its sums would prove nothing."""
        for name, then in self._began.items():
            now = getattr(self, name)
            if now is not then and now != then:
                raise ValueError(
                    f"{name} was {then!r} when this stream began, and is {now!r} now: set it back, or begin anew with "
                    "fit or with sklearn.base.clone(model).partial_fit."
                )

    def _begin(self, plans: tuple[Algorithm, Problem], classes: np.ndarray, d: int) -> None:
        algorithm, problem = plans
        self.classes_ = classes
        self.n_iter_ = 1
        self._began = {name: getattr(self, name) for name in _SHAPING}
        rho = float(self.intercept_scaling) if self.fit_intercept else 0.0
        self._streams = [
            Stream(algorithm, problem, d, rho, float(self.radius or 0.0), self.trail, int(self.n_voters))
            for _ in range(1 if classes.size == 2 else classes.size)
        ]


@contextmanager
def _undivided() -> Iterator[None]:
    """Ctrl-C waits until every problem has seen the rows: what was learnt is then of the same ones."""
    listener = signal.getsignal(signal.SIGINT)
    if not callable(listener) or threading.current_thread() is not threading.main_thread():
        yield
        return
    heard: list[Any] = []
    signal.signal(signal.SIGINT, lambda *call: heard.append(call))
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, listener)
    if heard:
        listener(*heard[-1])


def _transformed(hasher: FeatureHasher, X: Any) -> Any:
    """What the hasher makes of rows that are no matrix."""
    kind: str = hasher.input_type  # pyright: ignore[reportAttributeAccessIssue]
    taken = f"With a hasher, X is a list of rows, each {_TAKEN[kind]}, or a CSR matrix of any width: "
    if isinstance(X, np.ndarray) and X.dtype != object:
        raise ValueError(f"{taken}give scipy.sparse.csr_matrix(X).")
    if hasattr(X, "to_dict") and hasattr(X, "columns"):
        raise ValueError(f'{taken}give X.to_dict("records") of this table.')
    if isinstance(X, Mapping | str):
        raise ValueError(f"{taken}for one row, give [X].")
    try:
        return hasher.transform(X)
    except (AttributeError, TypeError, ValueError, StopIteration) as error:
        what = "there is no row" if isinstance(error, StopIteration) else str(error).rstrip(".")
        raise ValueError(f"{taken}these rows are something else ({what}).") from error


def _majority(stream: Stream, X: Any) -> np.ndarray:
    weights, biases, votes = stream.voters()
    scores = safe_sparse_dot(X, weights.T, dense_output=True) + biases
    return np.sign(scores) @ votes / max(float(votes.sum()), 1.0)


def _is_number(value: Any) -> bool:
    return isinstance(value, Real) and not isinstance(value, bool)


def _classes(y: np.ndarray) -> np.ndarray:
    missing = sum(label is None for label in y) if y.dtype == object else 0
    if missing:
        raise ValueError(missing_labels(missing, y.size))
    check_classification_targets(y)
    classes = np.unique(y)
    if classes.size < 2:
        raise ValueError(
            f"A classifier needs at least 2 classes; got {classes.size} class: {classes.tolist()!r}."
        )
    return classes


def _check_finite(X: Any) -> None:
    if not np.isfinite(X.data).all():
        raise ValueError("Rows hold NaN or infinity: leave these features out, or give them numbers.")
