"""OnlineMarginClassifier: incremental algorithms on streams, in memory of constant size."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from itertools import pairwise
from typing import Any, ClassVar, NamedTuple

import numpy as np
import scipy.sparse as sp
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from ..algorithms import (
    ALGORITHMS,
    CRAMMA,
    MICRA,
    Algorithm,
    Bias,
    Facts,
    FixedDirectionalMargin,
    LocalPerceptron,
    named_algorithm,
)
from ..algorithms.base import PerceptronLike
from ..data.door import check_costs, check_entries
from ..data.rows import Patterns
from ..engine.state import BIAS, SCALE, Motion, new_numbers
from ..engine.stream import (
    BIAS_SUM,
    NO_ROW,
    SCALE_SUM,
    SEEN,
    SINCE,
    SQUARES,
    STREAM_NUMBERS,
    SUM,
    StreamWeight,
    open_stream,
    stream,
)
from ..engine.vectors import EuclideanVector
from ..fit.deadline import deferred_interrupt
from ..numerics.columns import label_array
from ..numerics.sizes import require_weight_memory
from ..numerics.sums import EPS, norm
from ..problem.problem import Problem
from . import validation
from .prediction import LinearDecision

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


# Places in the array `ledger`.
MISTAKES, UPDATES, RADIUS2, PASSES = range(4)


class StreamBounds(NamedTuple):
    """Bounds on the best objective, or margin, on all patterns seen; one number per binary problem."""

    lower: np.ndarray
    upper: np.ndarray


@dataclass(eq=False, repr=False)
class OnlineMarginClassifier(LinearDecision, ClassifierMixin, BaseEstimator):
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

    uncertified_: ClassVar[str] = (
        "the model of a stream has no certificate, for its rows are gone; bounds_ is what is certain of them."
    )
    algorithm: str | Algorithm = "auto"
    _: KW_ONLY
    C: float = np.inf
    fit_intercept: bool = True
    intercept_scaling: float = 0.3
    radius: float | None = None
    max_iter: int = 5
    shuffle: bool = True
    random_state: Any = None

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
        signs, rng = self._signs(y), check_random_state(self.random_state)
        for k in range(self.max_iter):
            before = self.updates_
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
            self._begin(np.ravel(classes), X.shape[1])
        self._present(Patterns(X), self._signs(y), True)
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

    def _signs(self, y: np.ndarray) -> list[np.ndarray]:
        """Return the labels -1.0 and 1.0 of every binary problem; refuse labels of other classes."""
        y = label_array(y)
        known = self.classes_.tolist()
        for i in np.flatnonzero(~np.isin(y, self.classes_))[:1].tolist():
            label = f"label {i} (counted from 0) is {y.tolist()[i]!r}"
            raise ValueError(f"{label}, not one of the classes announced, {known}: begin anew with all.")
        return [np.where(y == label, 1.0, -1.0) for label in self.classes_[len(known) == 2 :]]

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
        return int(self._fitted_streams()[0].arrays["number"][SEEN])

    def _fitted_streams(self) -> list[Stream]:
        check_is_fitted(self, "_streams")
        return self._streams


def stream_algorithm(algorithm: Any, problem: Problem) -> Algorithm:
    """Return the algorithm of a stream; "auto" is `LocalPerceptron`. Refuse algorithms that need stored rows."""
    suitable = [name for name, cls in ALGORITHMS.items() if streams(cls)]
    if isinstance(algorithm, str) and algorithm == "auto":
        algorithm = LocalPerceptron.name
    algorithm = named_algorithm(algorithm, ALGORITHMS, "ALMA()", Algorithm)
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


def streams(cls: type[Algorithm]) -> bool:
    """Return whether algorithms of this class can run on a stream.

    These are the Perceptron-like ones that change a sum of patterns by multiples of the row presented.
    """
    return issubclass(cls, PerceptronLike) and cls.motion is Motion.LINK


class Stream:
    """The state of an algorithm that visits every row once.

    Parameters
    ----------
    algorithm : Algorithm
    problem : Problem
        The 2-norm soft margin, or the hard margin; a free intercept or none.
    d : int
        Features.
    rho : float
        The constant coordinate of every pattern, 0 for none.
    radius : float
        Initial value of R, the largest norm of a pattern; a row with a larger norm increases it.

    Attributes
    ----------
    arrays : dict of ndarray
        The complete state; its size does not depend on the number of rows visited.
    keeps_pair : bool
        Whether the rule keeps one row of each class (its pair).
    """

    def __init__(self, algorithm: Algorithm, problem: Problem, d: int, rho: float, radius: float) -> None:
        self.algorithm, self.problem, self.d = algorithm, problem, d
        self.keeps_pair = algorithm.bias is Bias.OWN
        self.rho = 0.0 if self.keeps_pair else rho
        self.delta2 = float(problem.delta2(np.ones(1))[0])
        size = d + (1 if self.rho else 0)
        self.arrays: dict[str, np.ndarray] = {
            "w": np.zeros(size),
            "plus": np.zeros(size),  # the part of w that the positive class contributes
            "number": new_numbers(STREAM_NUMBERS),
            "sums": np.zeros(4),  # sum alpha and sum alpha^2 of each class (SUM, SQUARES), negative first
            "tally": np.array([0.0, 0.0, 0.0, 1.0]),  # SINCE, SCALE_SUM, BIAS_SUM, FIRST_SCALE
            "own": np.zeros(2),  # dual variables of the pair, negative class first
            "counts": np.zeros(2),  # rows of each class, negative first
            "ledger": np.array([0.0, 0.0, radius * radius, 1.0]),  # MISTAKES, UPDATES, RADIUS2, PASSES
            # 1 after the first w is set; rules without a start begin at w = 0
            "begun": np.array([0.0 if hasattr(self._rule(1.0), "start") else 1.0]),
            "past": np.zeros(size),
        }
        # the rows of the pair, negative class first, and 1 for each class whose row is set
        if self.keeps_pair:
            self.arrays["pair"], self.arrays["known"] = np.zeros((2, d)), np.zeros(2)

    @property
    def mistakes(self) -> int:
        """Number of rows whose score was not positive when they were presented; at w = 0 all rows are counted."""
        return int(self.arrays["ledger"][MISTAKES])

    @property
    def updates(self) -> int:
        """Number of rows that changed w."""
        return int(self.arrays["ledger"][UPDATES])

    def present(self, patterns: Patterns, y: np.ndarray, new: bool = True) -> None:
        """Present these rows once, in their order.

        Parameters
        ----------
        patterns : Patterns
        y : ndarray of shape (n,), entries -1.0 and 1.0
        new : bool, default=True
            Whether the rows were not presented before; otherwise this is another pass over all rows.
        """
        a, n = self.arrays, patterns.n
        if new:
            positive = np.count_nonzero(y > 0.0)
            a["counts"] += (n - positive, positive)
        else:
            a["ledger"][PASSES] += 1.0
        if self.keeps_pair:
            patterns, y = self._with_pair(patterns, y)
        h = self._engine_state(patterns, y)
        first = self._set_first_w(h, n)
        # R^2 at every row, which begins a new rule where it is larger than before
        radius2 = np.maximum(np.maximum.accumulate(h.square[first:n]), a["ledger"][RADIUS2])
        edges = [0, *(np.flatnonzero(np.diff(radius2)) + 1), radius2.size]
        for begin, end in pairwise(edges if first < n else ()):
            a["ledger"][RADIUS2] = radius2[begin]
            a["ledger"][:2] += stream(self._rule(float(radius2[begin])), h, first + begin, first + end)
        if self.keeps_pair:
            self._keep_pair(patterns, h, y, n)

    # the rule, and the radius

    def _rule(self, radius2: float) -> Any:
        """Return the rule for patterns of squared norm R^2 = `radius2` at most; of a sequence of rules, the last."""
        # a smaller gap takes more updates than the single pass of a stream makes
        plan = self.algorithm.plan(Facts(self.problem, radius2, 0.1))
        return (plan.rule, *plan.then)[-1]

    # the engine's state on one batch

    def _engine_state(self, patterns: Patterns, y: np.ndarray) -> StreamWeight:
        """Return the engine's state on the rows of a batch; its vectors and numbers are the arrays in `arrays`.

        The last two rows are the pair, if the rule keeps a pair.
        """
        a, n = self.arrays, patterns.n
        weight = patterns.engine_state(self.problem, y, np.ones(n), 1.0, self.rho, self.algorithm.scale)
        vector = EuclideanVector(a["w"])
        space: Any = weight.space._replace(vector=vector)
        if self.rho:
            space = space._replace(base=space.base._replace(vector=vector))
        held = np.full(2, NO_ROW)
        if self.keeps_pair:
            held[:] = n - 2, n - 1
        return StreamWeight(
            space=space,
            scale=weight.scale._replace(number=a["number"]),
            y=weight.y,
            square=weight.square,
            number=a["number"],
            sums=a["sums"],
            plus=EuclideanVector(a["plus"]),
            delta2=self.delta2,
            pair=held,
            pair_duals=a["own"],
            past=EuclideanVector(a["past"]),
            tally=a["tally"],
        )

    def _set_first_w(self, h: StreamWeight, n: int) -> int:
        """Set the first w, if it is not set and the rows of the batch allow it; return the next row to present.

        Rows before that row are counted as presented at w = 0, where each is a mistake. If the rows of the batch do not
        determine the first w, all n are counted.
        """
        a = self.arrays
        if a["begun"][0]:
            return 0
        first, order = self._first_rows(h, n)
        if order is not None:
            ledger = a["ledger"]
            a["number"][SEEN] += first
            ledger[MISTAKES] += first  # w was 0, at which no score is positive
            ledger[RADIUS2] = max(ledger[RADIUS2], float(h.square[order].max()))
            rule = self._rule(float(ledger[RADIUS2]))
            a["begun"][0] = 1.0
            open_stream(rule, h, order)
            ledger[:2] += 1.0
            return first + 1
        a["number"][SEEN] += n
        a["ledger"][MISTAKES] += n
        return n

    def _first_rows(self, h: StreamWeight, n: int) -> tuple[int, np.ndarray | None]:
        """Return the row at which the rule begins, and the rows that determine its first w.

        A rule with a pair begins with one row of each class, another rule with the first row that is not zero. The
        first row of the stream is kept until a row of the other class arrives.

        Returns
        -------
        first : int
        order : ndarray of int or None
            None if the rows so far do not determine the first w.
        """
        if not self.keeps_pair:
            nonzero = np.flatnonzero(h.square[:n] > 0.0)
            return (int(nonzero[0]), nonzero[:1].astype(np.uint32)) if nonzero.size else (0, None)
        is_set = self.arrays["known"]
        if not is_set.any():
            is_set[1 if h.y[0] > 0.0 else 0] = 1.0
            waiting = 0
        else:  # the row kept from an earlier batch is one of the two appended by `_with_pair`
            waiting = h.y.size - 2 + int(np.argmax(is_set))
        other = np.flatnonzero(h.y[:n] != h.y[waiting])
        if not other.size:
            h.pair[int(np.argmax(is_set))] = waiting
            return 0, None
        is_set[:] = 1.0
        return int(other[0]), np.array([waiting, other[0]], np.uint32)

    # the pair: one row of each class that the rule keeps

    def _with_pair(self, patterns: Patterns, y: np.ndarray) -> tuple[Patterns, np.ndarray]:
        """Return the rows and labels of a batch, with the two rows of the pair appended, negative class first."""
        pair = self.arrays["pair"]
        if patterns.sparse:
            X: Any = sp.vstack([patterns.X, sp.csr_matrix(pair)], format="csr")
        else:
            X = np.vstack([patterns.X, pair])
        return Patterns(X), np.append(y, (-1.0, 1.0))

    def _keep_pair(self, patterns: Patterns, h: StreamWeight, y: np.ndarray, n: int) -> None:
        """Copy the rows of the current pair that belong to this batch into `arrays`."""
        for k in range(2):
            if h.pair[k] < n:
                row = patterns.X[int(h.pair[k])]
                self.arrays["pair"][k] = row.toarray().ravel() if patterns.sparse else row

    # results

    def weight(self) -> tuple[np.ndarray, float]:
        """Return w, of shape (d,), and the intercept: the means over all row visits.

        The sum of the weights is (SCALE_SUM + scale * visits since the last change) * w - past, in stored numbers.
        """
        a = self.arrays
        w, number, tally = a["w"], a["number"], a["tally"]
        seen = max(float(number[SEEN]), 1.0)
        unchanged = number[SEEN] - tally[SINCE]  # row visits since the last change of w
        w = ((tally[SCALE_SUM] + float(number[SCALE]) * unchanged) * w - a["past"]) / seen
        bias = (tally[BIAS_SUM] + float(number[BIAS]) * unchanged) / seen
        return (w[:-1], bias + self.rho * float(w[-1])) if self.rho else (w, bias)

    def bounds(self) -> tuple[float, float]:
        """Return a lower and an upper bound of the largest margin (hard) or of the optimal objective (soft).

        They hold for all rows visited, and are computed from sums over the dual variables. For each class let
        A = sum alpha_i, v = sum alpha_i x_i, Q = sum alpha_i^2; D = 1 / (2 C).

        Hard margin: 1/2 |v+ / A+ - v- / A-| is an upper bound of every margin; without an intercept the bound is
        |v+ - v-| / (A+ + A-). The lower bound is -inf.

        Soft margin: the dual variables of each class are divided by A, so that the classes balance. The dual objective
        of the best multiple of these, 2 / (|v+ / A+ - v- / A-|^2 + D (Q+ / A+^2 + Q- / A-^2)), is a lower bound. The
        objective at w = 0 is the upper bound.

        Both are rounded outwards: the error of a sum of m terms is at most m units in the last place of the sum of
        their absolute values.
        """
        problem, a = self.problem, self.arrays
        negative, positive = (float(count) for count in a["counts"])
        lower, upper = (-np.inf, np.inf) if problem.hard else (0.0, self._at_zero(negative, positive))
        up = 1.0 + 16.0 * EPS  # factor that rounds a result of up to 16 operations upwards
        total, squares = a["sums"][SUM : SUM + 2], a["sums"][SQUARES : SQUARES + 2]
        # rounding errors in a sum: two for each update (addition, scale), and 64 for the products and for each term
        terms = 2.0 * a["ledger"][UPDATES] + 64.0
        off = 4.0 * terms * EPS  # relative error bound of each sum
        if not total.sum() * a["ledger"][RADIUS2] > 0.0:
            return lower, upper
        v_error = off * float(total.sum()) * float(a["ledger"][RADIUS2]) ** 0.5  # error bound of v+ and of v-
        plus, w = a["plus"][: self.d], a["w"][: self.d]
        if problem.free:
            if not total.min() > off * total.sum():
                return lower, upper
            minus_total, plus_total = (float(t) for t in total)
            size = norm(plus / plus_total - (plus - w) / minus_total)
            size += v_error * (1.0 / plus_total + 2.0 / minus_total)
            spread = float(squares[1] / plus_total**2 + squares[0] / minus_total**2)
            length, factor = size, 2.0  # the margin is at most length / factor
        else:
            whole = float(total.sum())
            length, factor = (norm(w) + 2.0 * v_error) / whole, 1.0
            spread = float(squares.sum()) / whole**2
        loose = up * (1.0 + off) + self.d * EPS
        length *= loose
        if problem.hard:
            return lower, length / factor
        # the k updates of a row in k passes add up to alpha_i, and (sum of k terms)^2 <= k (sum of their squares)
        spread *= loose * loose * float(a["ledger"][PASSES])
        quadratic = length * length + 0.5 / self.problem.C * spread
        return min(factor * factor / (2.0 * quadratic * up), upper), upper

    def _at_zero(self, negative: float, positive: float) -> float:
        """Return the objective at w = 0 with the best intercept, rounded up, for these numbers of rows of each class.

        With a free intercept this is 4 C n- n+ / n, at b = (n+ - n-) / n.
        """
        if not self.problem.free:
            return self.problem.C * (negative + positive)
        n = negative + positive
        return 4.0 * self.problem.C * negative * positive / n * (1.0 + 8.0 * EPS) if n else 0.0
