"""Linear programs with proofs, as text of the VIPR format, version 1.0.

References
----------
K. K. H. Cheung, A. Gleixner, D. E. Steffy, "Verifying Integer Programming Results", IPCO 2017; the specification of the
format and the checker `viprchk` are at https://github.com/scipopt/vipr.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction

from ...numerics.files import written_whole

Number = int | float | Fraction  # a float stands for the rational number that it is
Terms = Sequence[tuple[int, Number]]  # pairs of an index, of a variable or a constraint, and a coefficient


@dataclass(frozen=True)
class Constraint:
    """A linear constraint on the variables of a program.

    Attributes
    ----------
    name : str
        Without spaces.
    sense : {"G", "L"}
        Whether the sum of the terms is at least (G) or at most (L) the right-hand side.
    right : int, float or Fraction
    terms : sequence of (int, number)
        Coefficients by the numbers of their variables.
    """

    name: str
    sense: str
    right: Number
    terms: Terms

    def text(self) -> str:
        """Return the constraint in the notation of the format."""
        return f"{self.name} {self.sense} {number_text(self.right)} {terms_text(self.terms)}"


@dataclass(frozen=True)
class Program:
    """A linear program over real variables, the statement on it, and the proof of the statement.

    Attributes
    ----------
    comment : str
        A sentence on what is stated.
    variables : sequence of str
    objective : int, default=None
        The variable that is maximised; None for the objective 0, which is minimised.
    bounds, size : int
        Number of constraints on single variables, which are the first ones, and number of all constraints.
    constraints : iterable of Constraint
        Read once, so that a generator of the rows of the data takes no memory.
    relation : str
        What is proved: "infeas", or "range lo hi" of the best value of the objective.
    solution : sequence of (int, number), default=None
        Non-zero values of the variables of a feasible point.
    multipliers : sequence of (int, number), default=None
        Numbers with which the constraints add up to `derived`.
    derived : str, default=""
        The constraint that is the sum, in the notation of the format.
    """

    comment: str
    variables: Sequence[str]
    bounds: int
    size: int
    constraints: Iterable[Constraint]
    relation: str
    objective: int | None = None
    solution: Terms | None = None
    multipliers: Terms | None = None
    derived: str = ""

    def write(self, path: str | os.PathLike[str], comments: Sequence[str] = ()) -> None:
        """Write the program to a file, as a whole or not at all.

        Parameters
        ----------
        path : str or path-like
        comments : sequence of str
            Sentences that precede `comment`.

        Raises
        ------
        OSError
            If the file cannot be written.
        """
        with written_whole(path) as file:
            for comment in (*comments, self.comment):
                file.write(f"% {' '.join(comment.split())}\n".encode())
            file.writelines(f"{line}\n".encode() for line in self.lines())

    def lines(self) -> Iterator[str]:
        """Yield the lines of the sections of the format, in its order."""
        yield "VER 1.0"
        yield f"VAR {len(self.variables)}"
        yield from self.variables
        yield "INT 0"
        if self.objective is None:
            yield "OBJ min\n0"
        else:
            yield f"OBJ max\n1 {self.objective} 1"
        yield f"CON {self.size} {self.bounds}"
        yield from (constraint.text() for constraint in self.constraints)
        yield f"RTP {self.relation}"
        yield f"SOL {int(self.solution is not None)}"
        if self.solution is not None:
            yield f"point {terms_text(self.solution)}"
        yield f"DER {int(self.multipliers is not None)}"
        if self.multipliers is not None:
            # -1: no derivation that follows refers to this one
            yield f"{self.derived} {{ lin {terms_text(self.multipliers)} }} -1"


def terms_text(terms: Terms) -> str:
    """Return the number of the terms, and the index and the coefficient of each."""
    return " ".join([str(len(terms)), *(f"{k} {number_text(value)}" for k, value in terms)])


def number_text(value: Number) -> str:
    """Return a rational number as an integer or as a fraction in lowest terms, which `viprchk` relies on.

    Decimal writes integers of any length; Python refuses to print those of more than 4300 digits.
    """
    above, below = value.as_integer_ratio()
    return f"{Decimal(above)}" if below == 1 else f"{Decimal(above)}/{Decimal(below)}"
