"""Checker of the VIPR format 1.0, as far as linear programs need it, in rational numbers.

It is written from the specification, `cert_spec_v1_0.md` of https://github.com/scipopt/vipr, and imports nothing of the
package. Derivations are linear combinations; integer variables, and all other reasons, are refused.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction

SENSES = {"G": 1, "E": 0, "L": -1}
NUMBER = re.compile(r"-?\d+(/\d+)?")

Terms = dict[int, Fraction]


class Refused(ValueError):
    """Error of a file that does not have the format, or that does not prove its relation."""


def demand(holds: bool, failure: str) -> None:
    """Raise Refused unless the condition holds."""
    if not holds:
        raise Refused(failure)


@dataclass(frozen=True)
class Constraint:
    """terms >= right for sense 1, = for 0, <= for -1; zero coefficients are left out."""

    name: str
    sense: int
    right: Fraction
    terms: Terms

    @property
    def absurd(self) -> bool:
        """Whether no numbers satisfy it: 0 >= 1."""
        off = self.right > 0 if self.sense > 0 else self.right < 0 if self.sense < 0 else self.right != 0
        return not self.terms and off

    def dominates(self, other: Constraint) -> bool:
        """Return whether the other one follows, in the restricted sense of the specification."""
        if self.absurd:
            return True
        if self.terms != other.terms or self.sense not in (0, other.sense):
            return False
        if other.sense == 0:
            return self.right == other.right
        return self.right * other.sense >= other.right * other.sense

    def holds(self, point: Terms) -> bool:
        """Return whether a point satisfies it."""
        value = dot(self.terms, point)
        return value == self.right if self.sense == 0 else value * self.sense >= self.right * self.sense


@dataclass(frozen=True)
class File:
    """The contents of a file; `lo` and `hi` are None where they are infinite."""

    variables: list[str]
    maximise: bool
    objective: Terms
    constraints: list[Constraint]
    infeasible: bool
    lo: Fraction | None
    hi: Fraction | None
    points: list[Terms]
    derivations: list[tuple[Constraint, Terms]]

    def check(self) -> File:
        """Return this file; raise Refused unless it proves its relation."""
        for point in self.points:
            for constraint in self.constraints:
                demand(constraint.holds(point), f"a point violates {constraint.name}")
        known = list(self.constraints)
        for stated, multipliers in self.derivations:
            demand(combined(known, multipliers).dominates(stated), f"{stated.name} does not follow")
            known.append(stated)
        last = known[-1] if self.derivations else None
        if self.infeasible:
            demand(last is not None and last.absurd, "no contradiction is derived")
            return self
        demand(self.lo is None or self.hi is None or self.lo <= self.hi, "the range is empty")
        # the side that points prove, and the side that derivations prove
        sign = 1 if self.maximise else -1
        attained, proved = (self.lo, self.hi) if self.maximise else (self.hi, self.lo)
        values = [sign * dot(self.objective, point) for point in self.points]
        demand(attained is None or any(value >= sign * attained for value in values), "no point attains it")
        if proved is not None:
            goal = Constraint("goal", -sign, proved, self.objective)
            demand(last is not None and last.dominates(goal), "the bound of the objective does not follow")
        return self


def dot(terms: Terms, point: Terms) -> Fraction:
    """Return the value of a linear form at a point."""
    return sum((value * point.get(k, Fraction(0)) for k, value in terms.items()), Fraction(0))


def combined(known: list[Constraint], multipliers: Terms) -> Constraint:
    """Return the sum of constraints times multipliers, which must make all inequalities point the same way."""
    signs = {known[k].sense * (1 if value > 0 else -1) for k, value in multipliers.items()} - {0}
    demand(len(signs) <= 1, "the multipliers have both signs")
    total: Terms = {}
    for k, value in multipliers.items():
        for j, coefficient in known[k].terms.items():
            total[j] = total.get(j, Fraction(0)) + value * coefficient
    right = sum((value * known[k].right for k, value in multipliers.items()), Fraction(0))
    return Constraint("sum", signs.pop() if signs else 0, right, {j: v for j, v in total.items() if v})


class Words:
    """The words of a file, read one after the other."""

    def __init__(self, text: str) -> None:
        lines = text.splitlines()
        while lines and lines[0].startswith("%"):
            lines.pop(0)
        self.words = iter(" ".join(lines).split())

    def word(self) -> str:
        """Return the next word."""
        found = next(self.words, None)
        if found is None:
            raise Refused("the file ends too early")
        return found

    def expect(self, *expected: str) -> str:
        """Return the next word, which must be one of these."""
        found = self.word()
        demand(found in expected, f"{' or '.join(expected)} expected, not {found}")
        return found

    def count(self, limit: int | None = None) -> int:
        """Return the next word as a number from 0 to below the limit."""
        found = self.word()
        demand(found.isdecimal(), f"no count or index: {found}")
        number = int(Decimal(found))
        demand(limit is None or number < limit, f"the index {found} is too large")
        return number

    def number(self, found: str | None = None) -> Fraction:
        """Return a word, or the next one, as a rational number; Decimal reads numbers of any length."""
        found = self.word() if found is None else found
        demand(NUMBER.fullmatch(found) is not None, f"no rational number: {found}")
        above, _, below = found.partition("/")
        demand(below == "" or int(Decimal(below)) != 0, f"division by zero: {found}")
        return Fraction(int(Decimal(above)), int(Decimal(below)) if below else 1)

    def terms(self, limit: int, objective: Terms | None = None) -> Terms:
        """Return coefficients by index, each index below the limit and listed once; zeros are left out."""
        first = self.word()
        if first == "OBJ" and objective is not None:
            return objective
        demand(first.isdecimal(), f"no number of terms: {first}")
        pairs = [(self.count(limit), self.number()) for _ in range(int(Decimal(first)))]
        demand(len(dict(pairs)) == len(pairs), "an index is listed twice")
        return {k: value for k, value in pairs if value}

    def constraint(self, limit: int, objective: Terms) -> Constraint:
        """Return the next constraint."""
        return Constraint(
            self.word(), SENSES[self.expect(*SENSES)], self.number(), self.terms(limit, objective)
        )


def parse(text: str) -> File:
    """Return the contents of a file; raise Refused where it does not have the format."""
    words = Words(text)
    words.expect("VER")
    words.expect("1.0")
    words.expect("VAR")
    variables = [words.word() for _ in range(words.count())]
    d = len(variables)
    words.expect("INT")
    words.expect("0")
    words.expect("OBJ")
    maximise = words.expect("min", "max") == "max"
    objective = words.terms(d)
    words.expect("CON")
    size = words.count()
    words.count(size + 1)
    constraints = [words.constraint(d, objective) for _ in range(size)]
    words.expect("RTP")
    infeasible, lo, hi = words.expect("infeas", "range") == "infeas", None, None
    if not infeasible:
        below, above = words.word(), words.word()
        lo = None if below == "-inf" else words.number(below)
        hi = None if above == "inf" else words.number(above)
    words.expect("SOL")
    points = []
    for _ in range(words.count()):
        words.word()
        points.append(words.terms(d))
    words.expect("DER")
    derivations = []
    for k in range(words.count()):
        stated = words.constraint(d, objective)
        words.expect("{")
        words.expect("lin")
        derivations.append((stated, words.terms(size + k)))
        words.expect("}")
        words.expect("-1")
    demand(next(words.words, None) is None, "the file goes on after its end")
    return File(variables, maximise, objective, constraints, infeasible, lo, hi, points, derivations)


def accepted(text: str) -> bool:
    """Return whether a file has the format and proves its relation."""
    try:
        parse(text).check()
    except Refused:
        return False
    return True
