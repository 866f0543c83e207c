"""One binary problem whose patterns pass by once: the state of a rule, in memory that does not grow."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp

from ..algorithms import Algorithm, Bias, Facts
from ..algorithms.base import PerceptronLike
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

REFRESH = 1 << 16  # presentations after which |w|^2 is taken anew
ACCURACY = 0.1  # relative accuracy asked of rules that have none of their own
TINY = 1e-200  # sums so small may have lost digits
_EPS = float(np.finfo(float).eps)


def streams(cls: type[Algorithm]) -> bool:
    """Do algorithms of this kind need no pattern again, and only steps along patterns?"""
    return issubclass(cls, PerceptronLike) and cls.motion is Motion.LINK


class Stream:
    """A rule that meets every pattern once.

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
        A norm that patterns are expected to reach; longer ones make it larger.
    trail : {"average", "vote", "last"}
        Which weights predict.
    voters : int
        The most weights that vote, the present one among them.

    Attributes
    ----------
    arrays : dict of ndarray
        All of the state; its size does not depend on how much has been seen.
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
        self.rho = 0.0 if algorithm.bias is Bias.OWN else rho
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
            "counts": np.zeros(2),  # patterns of each class, negative first
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
        one, two = self._rule(1.0), self._rule(2.0)
        self._measured = one != two  # is the threshold or the step in units of R?

    @property
    def holds(self) -> bool:
        """Does the rule keep a pattern of each class?"""
        return self.algorithm.bias is Bias.OWN

    @property
    def mistakes(self) -> int:
        """Patterns whose score was not positive when they were presented; at w = 0 none is."""
        return int(self.arrays["ledger"][0])

    @property
    def updates(self) -> int:
        """Patterns that changed the weight."""
        return int(self.arrays["ledger"][1])

    @property
    def seen(self) -> int:
        """Patterns presented."""
        return int(self.arrays["number"][SEEN])

    def again(self) -> None:
        """Patterns that were counted come once more."""
        self.arrays["ledger"][3] += 1.0

    def present(self, patterns: Patterns, y: np.ndarray, new: bool = True) -> None:
        """Present these rows once, in their order.

        Parameters
        ----------
        patterns : Patterns
        y : ndarray of shape (n,), entries -1.0 and 1.0
        new : bool, default=True
            Are they patterns that were not there before?
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
        """The rule for patterns as long as this; where it has several accuracies, the one it would end with."""
        plan = self.algorithm.plan(Facts(self.problem, radius2, ACCURACY))
        return (plan.rule, *plan.then)[-1]

    def _stretch(self, square: np.ndarray, first: int, n: int) -> tuple[int, Any]:
        """How far one rule goes: to a longer pattern than all before, or to where |w|^2 is taken anew."""
        ledger = self.arrays["ledger"]
        last = min(n, first + REFRESH - int(self.arrays["number"][SEEN]) % REFRESH)
        if self._measured:
            ledger[2] = max(ledger[2], float(square[first]))
            longer = square[first:last] > ledger[2]
            if longer.any():
                last = first + int(np.argmax(longer))
        else:
            ledger[2] = max(ledger[2], float(square[first:last].max()))
        return last, self._rule(float(ledger[2]))

    # the engine's state on one batch

    def _flow(self, patterns: Patterns, y: np.ndarray) -> StreamWeight:
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
        """Let a rule begin that begins with patterns; the first row that is left."""
        a = self.arrays
        if a["begun"][0]:
            return 0
        first, order = self._opening(flow, n)
        if order is not None:
            ledger = a["ledger"]
            a["number"][SEEN] += first
            ledger[0] += first  # w was 0, which has nothing on the right side
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
        """The row with which a rule begins, and the rows that are in its first weight; None where it has to wait."""
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

    # the pair that a rule holds

    def _joined(self, patterns: Patterns, y: np.ndarray) -> tuple[Patterns, np.ndarray]:
        """The rows, and behind them the two that are held."""
        pair = self.arrays["pair"]
        if patterns.sparse:
            X: Any = sp.vstack([patterns.X, sp.csr_matrix(pair)], format="csr")
        else:
            X = np.vstack([patterns.X, pair])
        return Patterns(X), np.append(y, (-1.0, 1.0))

    def _keep_pair(self, patterns: Patterns, flow: StreamWeight, y: np.ndarray, n: int) -> None:
        for k in np.flatnonzero(self.arrays["known"]):
            if flow.pair[k] < n:
                row = patterns.X[int(flow.pair[k])]
                self.arrays["pair"][k] = row.toarray().ravel() if patterns.sparse else row

    # what is known

    def weight(self) -> tuple[np.ndarray, float]:
        """The weight and the bias: the mean of those after every presentation, or the last."""
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
        """Weights, a line each, biases, and votes."""
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
        """What is certain about the best objective or margin on all patterns seen, from sums alone.

        Hard margin: 1/2 |v+ / A+ - v- / A-| with the classes' sums A of dual weights and v of dual weights times
        patterns, |v+ - v-| / A without an intercept, is an upper bound of every margin. Soft: with one common
        factor for each class, dual weights balance, and the dual value of their best multiple is
        2 / (|v+ / A+ - v- / A-|^2 + D (Q+ / A+^2 + Q- / A-^2)), Q being the sums of squares and D = 1 / (2 C); the
        objective at w = 0 is the other bound. Both are rounded outwards: a sum of m terms is off by no more than
        m units in the last place of the sum of their sizes.
        """
        problem, a = self.problem, self.arrays
        negative, positive = (float(count) for count in a["counts"])
        lower, upper = (-np.inf, np.inf) if problem.hard else (0.0, self._at_zero(negative, positive))
        up = 1.0 + 16.0 * _EPS
        total, squares = a["sums"][SUM : SUM + 2], a["sums"][SQUARES : SQUARES + 2]
        # steps, multiplications by the scale, the rounding of products and of the steps themselves
        terms = 2.0 * a["ledger"][1] + 64.0
        off = 4.0 * terms * _EPS
        if not (total.sum() > TINY and total.sum() * a["ledger"][2] ** 0.5 > TINY):
            return lower, upper
        reach = off * float(total.sum()) * float(a["ledger"][2]) ** 0.5  # by which v+ and v- may each be off
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
        spread *= (
            loose * loose * float(a["ledger"][3])
        )  # a pattern in k passes: (sum of k)^2 <= k sum of squares
        quadratic = length * length + self.delta2 * spread
        return min(share * share / (2.0 * quadratic * up), upper), upper

    def _at_zero(self, negative: float, positive: float) -> float:
        """The objective at w = 0 with the best intercept."""
        if not self.problem.free:
            return self.problem.C * (negative + positive)
        n = negative + positive
        return 4.0 * self.problem.C * negative * positive / n * (1.0 + 8.0 * _EPS) if n else 0.0
