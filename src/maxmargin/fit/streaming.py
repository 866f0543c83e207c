"""One binary problem on a stream of rows, each visited once: the state of a rule, in memory of constant size."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp

from ..algorithms.base import Algorithm, Bias, Facts, PerceptronLike
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
    refresh_norm,
    stream,
)
from ..engine.vectors import EuclideanVector
from ..numerics.sums import EPS, norm
from ..problem.problem import Problem

# Row visits after which |w|^2 is recomputed from w. Each time costs a pass over w; until then rounding errors of the
# updates of |w|^2 accumulate. Chosen on the data sets of benchmarks.before_after.
VISITS_PER_REFRESH = 1 << 16
# Relative gap passed to rules without an accuracy parameter. A smaller one takes more updates than the single pass of a
# stream makes. Chosen on the data sets of benchmarks.before_after.
RULE_ACCURACY = 0.1
# Places in the array `ledger`.
MISTAKES, UPDATES, RADIUS2, PASSES = range(4)


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

    def __init__(
        self,
        algorithm: Algorithm,
        problem: Problem,
        d: int,
        rho: float,
        radius: float,
    ) -> None:
        self.algorithm, self.problem, self.d = algorithm, problem, d
        self.keeps_pair = algorithm.bias is Bias.OWN
        self.rho = 0.0 if self.keeps_pair else rho
        self.delta2 = float(problem.delta2(np.ones(1))[0])
        size = d + (1 if self.rho else 0)
        number = new_numbers(STREAM_NUMBERS)
        self.arrays: dict[str, np.ndarray] = {
            "w": np.zeros(size),
            "plus": np.zeros(size),  # the part of w that the positive class contributes
            "number": number,
            "sums": np.zeros(4),  # sum alpha and sum alpha^2 of each class (SUM, SQUARES), negative first
            "tally": np.array([0.0, 0.0, 0.0, 1.0]),  # SINCE, SCALE_SUM, BIAS_SUM, FIRST_SCALE
            "own": np.zeros(2),  # dual variables of the pair, negative class first
            "counts": np.zeros(2),  # rows of each class, negative first
            "ledger": np.array([0.0, 0.0, radius * radius, 1.0]),  # MISTAKES, UPDATES, RADIUS2, PASSES
            "begun": np.zeros(1),  # 1 after the first w is set
            "past": np.zeros(size),
        }
        # the rows of the pair, negative class first, and 1 for each class whose row is set
        if self.keeps_pair:
            self.arrays["pair"], self.arrays["known"] = np.zeros((2, d)), np.zeros(2)
        self._depends_on_radius = self._rule(1.0) != self._rule(2.0)

    @property
    def mistakes(self) -> int:
        """Number of rows whose score was not positive when they were presented; at w = 0 all rows are counted."""
        return int(self.arrays["ledger"][MISTAKES])

    @property
    def updates(self) -> int:
        """Number of rows that changed w."""
        return int(self.arrays["ledger"][UPDATES])

    @property
    def seen(self) -> int:
        """Number of row visits."""
        return int(self.arrays["number"][SEEN])

    def count_pass(self) -> None:
        """Count another pass over the same rows: the bounds depend on the number of passes (`bounds`)."""
        self.arrays["ledger"][PASSES] += 1.0

    def present(self, patterns: Patterns, y: np.ndarray, new: bool = True) -> None:
        """Present these rows once, in their order.

        Parameters
        ----------
        patterns : Patterns
        y : ndarray of shape (n,), entries -1.0 and 1.0
        new : bool, default=True
            Whether the rows were not presented before.
        """
        a, n = self.arrays, patterns.n
        if new:
            positive = np.count_nonzero(y > 0.0)
            a["counts"] += (n - positive, positive)
        if self.keeps_pair:
            patterns, y = self._with_pair(patterns, y)
        h = self._engine_state(patterns, y)
        first = self._set_first_w(h, n)
        while first < n:
            last, rule = self._rows_of_one_rule(h.square, first, n)
            mistakes, updates = stream(rule, h, first, last)
            a["ledger"][:2] += (mistakes, updates)
            if int(a["number"][SEEN]) % VISITS_PER_REFRESH == 0:
                refresh_norm(h)
            first = last
        if self.keeps_pair:
            self._keep_pair(patterns, h, y, n)

    # the rule, and the radius

    def _rule(self, radius2: float) -> Any:
        """Return the rule for patterns of squared norm R^2 = `radius2` at most; of a sequence of rules, the last."""
        plan = self.algorithm.plan(Facts(self.problem, radius2, RULE_ACCURACY))
        return (plan.rule, *plan.then)[-1]

    def _rows_of_one_rule(self, square: np.ndarray, first: int, n: int) -> tuple[int, Any]:
        """Return the rows that can be presented with one rule, and this rule.

        A row that increases R ends them, if the rule depends on R: it needs a new rule. They also end where |w|^2 is
        recomputed (`VISITS_PER_REFRESH`).

        Parameters
        ----------
        square : ndarray of shape (n,)
            Squared norms of the patterns of the batch.
        first, n : int
            The next row of the batch, and the number of its rows.

        Returns
        -------
        last : int
            One more than the last row of the rule.
        rule : record
        """
        ledger = self.arrays["ledger"]
        last = min(n, first + VISITS_PER_REFRESH - int(self.arrays["number"][SEEN]) % VISITS_PER_REFRESH)
        if self._depends_on_radius:
            ledger[RADIUS2] = max(ledger[RADIUS2], float(square[first]))
            longer = square[first:last] > ledger[RADIUS2]
            if longer.any():
                last = first + int(np.argmax(longer))
        else:
            ledger[RADIUS2] = max(ledger[RADIUS2], float(square[first:last].max()))
        return last, self._rule(float(ledger[RADIUS2]))

    # the engine's state on one batch

    def _engine_state(self, patterns: Patterns, y: np.ndarray) -> StreamWeight:
        """Return the engine's state on the rows of a batch; its vectors and numbers are the arrays in `arrays`.

        The last two rows are the pair, if the rule keeps a pair.
        """
        a, n = self.arrays, patterns.n
        weight = patterns.weight(self.problem, y, np.ones(n), 1.0, self.rho, self.algorithm.scale)
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
            if not hasattr(rule, "start"):
                return 0
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
            if not hasattr(self._rule(1.0), "start"):
                return 0, np.zeros(1, np.uint32)
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
        for k in np.flatnonzero(self.arrays["known"]):
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
        return self._split(w, bias)

    def _split(self, w: np.ndarray, bias: float) -> tuple[np.ndarray, float]:
        """Return w without its constant coordinate, which is added to the bias times rho."""
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
