"""One binary problem on a stream of rows, each visited once: the state of a rule, in memory that does not grow."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp

from ..algorithms.base import Algorithm, Bias, Facts, PerceptronLike
from ..data.rows import Patterns
from ..engine.state import BIAS, FACTOR, INVERSE, SCALE, Motion
from ..engine.stream import (
    BIASES,
    MASS,
    NO_ROW,
    SEEN,
    SINCE,
    SQUARES,
    STREAM_NUMBERS,
    SUM,
    Last,
    Mean,
    StreamWeight,
    Voters,
    open_stream,
    refresh_norm,
    stream,
)
from ..engine.vectors import EuclideanVector
from ..problem.problem import Problem

# Row visits after which |w|^2 is computed anew: a pass over w each time, against rounding errors of as many updates.
REFRESH = 1 << 16
# Relative accuracy asked of rules that have none of their own: a stream has no second pass that could refine it.
ACCURACY = 0.1
# Sums below this may have lost digits to underflow in their squares; no bound is made of them.
TINY = 1e-200
_EPS = float(np.finfo(float).eps)


def streams(cls: type[Algorithm]) -> bool:
    """Return whether algorithms of this kind need no row twice, and make only steps along rows."""
    return issubclass(cls, PerceptronLike) and cls.motion is Motion.LINK


class Stream:
    """A rule that visits every row once.

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
        A norm that rows are expected to reach; longer ones make it larger.
    trail : {"average", "vote", "last"}
        Which w predict.
    voters : int
        The most w that vote, the present one among them.

    Attributes
    ----------
    arrays : dict of ndarray
        All of the state; its size does not depend on the rows visited.
    holds : bool
        Whether the rule keeps a row of each class.
    """

    def __init__(
        self,
        algorithm: Algorithm,
        problem: Problem,
        d: int,
        rho: float,
        radius: float,
        trail: str,
        voters: int,
    ) -> None:
        self.algorithm, self.problem, self.d, self.trail = algorithm, problem, d, trail
        self.holds = algorithm.bias is Bias.OWN
        self.rho = 0.0 if self.holds else rho
        self.delta2 = float(problem.delta2(np.ones(1))[0])
        size = d + (1 if self.rho else 0)
        number = np.zeros(STREAM_NUMBERS)
        number[SCALE] = number[INVERSE] = number[FACTOR] = 1.0
        self.arrays: dict[str, np.ndarray] = {
            "w": np.zeros(size),
            "plus": np.zeros(size),
            "number": number,
            "sums": np.zeros(4),
            "tally": np.array([0.0, 0.0, 0.0, 1.0]),
            "own": np.zeros(2),
            "counts": np.zeros(2),  # rows of each class, negative first
            "ledger": np.array([0.0, 0.0, radius * radius, 1.0]),  # mistakes, updates, R^2, passes
            "begun": np.zeros(1),
        }
        if trail == "average":
            self.arrays["past"] = np.zeros(size)
        if trail == "vote":
            self.arrays |= {
                "voters": np.zeros((voters - 1, size)),
                "biases": np.zeros(voters - 1),
                "votes": np.zeros(voters - 1),
            }
        if self.holds:
            self.arrays["pair"], self.arrays["known"] = np.zeros((2, d)), np.zeros(2)
        self._depends_on_radius = self._rule(1.0) != self._rule(2.0)

    @property
    def mistakes(self) -> int:
        """Rows whose score was not positive when they were presented; at w = 0 none is."""
        return int(self.arrays["ledger"][0])

    @property
    def updates(self) -> int:
        """Rows that changed w."""
        return int(self.arrays["ledger"][1])

    @property
    def seen(self) -> int:
        """Rows presented."""
        return int(self.arrays["number"][SEEN])

    def again(self) -> None:
        """Announce another pass over the rows that were counted."""
        self.arrays["ledger"][3] += 1.0

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
        if self.holds:
            patterns, y = self._joined(patterns, y)
        flow = self._flow(patterns, y)
        first = self._open(flow, n)
        while first < n:
            last, rule = self._stretch(flow.square, first, n)
            mistakes, updates = stream(rule, flow, first, last)
            a["ledger"][:2] += (mistakes, updates)
            if int(a["number"][SEEN]) % REFRESH == 0:
                refresh_norm(flow)
            first = last
        if self.holds:
            self._keep_pair(patterns, flow, y, n)

    # the rule, and the radius

    def _rule(self, radius2: float) -> Any:
        """Return the rule for rows of this length; of several accuracies, the rule for the last."""
        plan = self.algorithm.plan(Facts(self.problem, radius2, ACCURACY))
        return (plan.rule, *plan.then)[-1]

    def _stretch(self, square: np.ndarray, first: int, n: int) -> tuple[int, Any]:
        """Return where one rule ends, at a row longer than all before or where |w|^2 is computed anew, and the rule."""
        ledger = self.arrays["ledger"]
        last = min(n, first + REFRESH - int(self.arrays["number"][SEEN]) % REFRESH)
        if self._depends_on_radius:
            ledger[2] = max(ledger[2], float(square[first]))
            longer = square[first:last] > ledger[2]
            if longer.any():
                last = first + int(np.argmax(longer))
        else:
            ledger[2] = max(ledger[2], float(square[first:last].max()))
        return last, self._rule(float(ledger[2]))

    # the engine's state on one batch

    def _flow(self, patterns: Patterns, y: np.ndarray) -> StreamWeight:
        """Return the engine's state on these rows, whose memory is that of `arrays`."""
        a, n = self.arrays, patterns.n
        h = patterns.weight(self.problem, y, np.ones(n), 1.0, self.rho, self.algorithm.scale)
        vector = EuclideanVector(a["w"])
        space: Any = h.space._replace(vector=vector)
        if self.rho:
            space = space._replace(base=space.base._replace(vector=vector))
        if self.trail == "average":
            trail: Any = Mean(EuclideanVector(a["past"]), a["tally"])
        elif self.trail == "vote":
            trail = Voters(a["voters"], a["biases"], a["votes"], a["tally"])
        else:
            trail = Last(a["tally"])
        held = np.full(2, NO_ROW)
        if self.holds:
            held[:] = n - 2, n - 1
        return StreamWeight(
            space=space,
            scale=h.scale._replace(number=a["number"]),
            y=h.y,
            square=h.square,
            number=a["number"],
            sums=a["sums"],
            plus=EuclideanVector(a["plus"]),
            delta2=self.delta2,
            pair=held,
            pair_duals=a["own"],
            trail=trail,
        )

    def _open(self, flow: StreamWeight, n: int) -> int:
        """Set the first w of a rule that begins with rows; return the first row that is left."""
        a = self.arrays
        if a["begun"][0]:
            return 0
        first, order = self._opening(flow, n)
        if order is not None:
            ledger = a["ledger"]
            a["number"][SEEN] += first
            ledger[0] += first  # w was 0, at which no score is positive
            ledger[2] = max(ledger[2], float(flow.square[order].max()))
            rule = self._rule(float(ledger[2]))
            a["begun"][0] = 1.0
            if not hasattr(rule, "start"):
                return 0
            open_stream(rule, flow, order)
            ledger[:2] += 1.0
            return first + 1
        a["number"][SEEN] += n
        a["ledger"][0] += n
        return n

    def _opening(self, flow: StreamWeight, n: int) -> tuple[int, np.ndarray | None]:
        """Return the row at which a rule begins, and the rows of its first w; None where it has to wait for some."""
        if not self.holds:
            if not hasattr(self._rule(1.0), "start"):
                return 0, np.zeros(1, np.uint32)
            some = np.flatnonzero(flow.square[:n] > 0.0)
            return (int(some[0]), some[:1].astype(np.uint32)) if some.size else (0, None)
        known = self.arrays["known"]
        if not known.any():
            known[1 if flow.y[0] > 0.0 else 0] = 1.0
            waiting = 0
        else:
            waiting = flow.y.size - 2 + int(np.argmax(known))
        other = np.flatnonzero(flow.y[:n] != flow.y[waiting])
        if not other.size:
            flow.pair[int(np.argmax(known))] = waiting
            return 0, None
        known[:] = 1.0
        return int(other[0]), np.array([waiting, other[0]], np.uint32)

    # the row of each class that a rule holds

    def _joined(self, patterns: Patterns, y: np.ndarray) -> tuple[Patterns, np.ndarray]:
        """Return the rows, followed by the two that are held."""
        pair = self.arrays["pair"]
        if patterns.sparse:
            X: Any = sp.vstack([patterns.X, sp.csr_matrix(pair)], format="csr")
        else:
            X = np.vstack([patterns.X, pair])
        return Patterns(X), np.append(y, (-1.0, 1.0))

    def _keep_pair(self, patterns: Patterns, flow: StreamWeight, y: np.ndarray, n: int) -> None:
        """Copy the rows that the rule holds now, where they are of this batch."""
        for k in np.flatnonzero(self.arrays["known"]):
            if flow.pair[k] < n:
                row = patterns.X[int(flow.pair[k])]
                self.arrays["pair"][k] = row.toarray().ravel() if patterns.sparse else row

    # results

    def weight(self) -> tuple[np.ndarray, float]:
        """Return w and the bias: their means over all row visits, or the last ones."""
        a = self.arrays
        w, number, tally = a["w"], a["number"], a["tally"]
        scale, bias = float(number[SCALE]), float(number[BIAS])
        if self.trail == "average" and number[SEEN]:
            more = number[SEEN] - tally[SINCE]
            w = ((tally[MASS] + scale * more) * w - a["past"]) / number[SEEN]
            bias = (tally[BIASES] + bias * more) / number[SEEN]
        else:
            w = scale * w
        return self._split(w, bias)

    def voters(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return the w that vote, one a row, their biases and their votes."""
        a = self.arrays
        w, b = self.weight()
        used = a["votes"] > 0.0
        lasted = a["number"][SEEN] - a["tally"][SINCE]
        rows = [
            self._split(row, bias) for row, bias in zip(a["voters"][used], a["biases"][used], strict=True)
        ]
        return (
            np.vstack([*(row for row, _ in rows), w]),
            np.array([*(bias for _, bias in rows), b]),
            np.append(a["votes"][used], lasted),
        )

    def _split(self, w: np.ndarray, bias: float) -> tuple[np.ndarray, float]:
        return (w[:-1], bias + self.rho * float(w[-1])) if self.rho else (w, bias)

    def bounds(self) -> tuple[float, float]:
        """Return bounds of the best objective or margin on all rows visited, from sums alone.

        Hard margin: 1/2 |v+ / A+ - v- / A-| with the classes' sums A of dual variables and v of dual variables times
        rows, |v+ - v-| / A without an intercept, is an upper bound of every margin. Soft: with one common
        factor for each class, dual variables balance, and the dual objective of their best multiple is
        2 / (|v+ / A+ - v- / A-|^2 + D (Q+ / A+^2 + Q- / A-^2)), Q being the sums of squares and D = 1 / (2 C); the
        objective at w = 0 is the other bound. Both are rounded outwards: a sum of m terms is off by no more than
        m units in the last place of the sum of their sizes.
        """
        problem, a = self.problem, self.arrays
        negative, positive = (float(count) for count in a["counts"])
        lower, upper = (-np.inf, np.inf) if problem.hard else (0.0, self._at_zero(negative, positive))
        up = 1.0 + 16.0 * _EPS
        total, squares = a["sums"][SUM : SUM + 2], a["sums"][SQUARES : SQUARES + 2]
        # roundings of a sum: updates and multiplications by the scale, and 64 of products and of updates themselves
        terms = 2.0 * a["ledger"][1] + 64.0
        off = 4.0 * terms * _EPS
        if not (total.sum() > TINY and total.sum() * a["ledger"][2] ** 0.5 > TINY):
            return lower, upper
        reach = off * float(total.sum()) * float(a["ledger"][2]) ** 0.5  # error bound of v+ and of v-
        plus, w = a["plus"][: self.d], a["w"][: self.d]
        if problem.free:
            if not total.min() > off * total.sum():
                return lower, upper
            minus_total, plus_total = (float(t) for t in total)
            size = float(np.linalg.norm(plus / plus_total - (plus - w) / minus_total))
            size += reach * (1.0 / plus_total + 2.0 / minus_total)
            spread = float(squares[1]) / plus_total**2 + float(squares[0]) / minus_total**2
            length, share = size, 2.0
        else:
            whole = float(total.sum())
            length, share = (float(np.linalg.norm(w)) + 2.0 * reach) / whole, 1.0
            spread = float(squares.sum()) / whole**2
        loose = up * (1.0 + off) + self.d * _EPS
        length *= loose
        if problem.hard:
            return lower, length / share
        spread *= loose * loose * float(a["ledger"][3])  # a row in k passes: (sum of k)^2 <= k sum of squares
        quadratic = length * length + self.delta2 * spread
        return min(share * share / (2.0 * quadratic * up), upper), upper

    def _at_zero(self, negative: float, positive: float) -> float:
        """Return the objective at w = 0 with the best intercept, for these numbers of rows."""
        if not self.problem.free:
            return self.problem.C * (negative + positive)
        n = negative + positive
        return 4.0 * self.problem.C * negative * positive / n * (1.0 + 8.0 * _EPS) if n else 0.0
