"""Write a verdict of `maxmargin.separate` to a file of the VIPR format, which `viprchk` checks in rational numbers.

    python checker/vipr.py data.svm proof.vipr [--p inf] [--no-bias]
    viprchk proof.vipr

The format is at https://github.com/scipopt/vipr. With y_i = 1 or -1 for the class of row i, a file states

* no separator: y_i (w.x_i + b) >= 1 for the rows of the proof has no solution. With the weights of the proof as
  multipliers these inequalities add up to 0 >= sum of the weights.
* a separator, for p other than 1 and inf: a solution of y_i (w.x_i + b) >= 1 for all rows.
* bounds of the largest margin, p = 1 or inf: max t with y_i (w.x_i + b) - t >= 0 for all rows and |w|_q <= 1, where
  1/p + 1/q = 1. A point proves the lower bound. For dual variables alpha >= 0 of sum one, balanced between the classes
  where there is an intercept, the rows add up to t <= v.w with v = sum alpha_i y_i x_i, and |w|_q <= 1 then gives
  t <= |v|_p.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.datasets import load_svmlight_file

from maxmargin import Inseparable, LinearSeparator, Undecided, separate

Terms = list[tuple[int, Any]]  # pairs of an index, of a variable or a constraint, and a rational number


def text(value: Any) -> str:
    """Return a rational number as an integer or a fraction in lowest terms; Decimal writes integers of any length."""
    above, below = value.as_integer_ratio()
    return f"{Decimal(above)}" if below == 1 else f"{Decimal(above)}/{Decimal(below)}"


def texts(terms: Terms) -> str:
    """Return the number of terms, and the index and the coefficient of each."""
    return " ".join([str(len(terms)), *(f"{k} {text(value)}" for k, value in terms)])


def signed_rows(X: Any, signs: np.ndarray) -> list[Terms]:
    """Return the entries of y_i x_i for each row; products with a sign are exact."""
    X = sp.csr_array(X, dtype=np.float64)
    ends = zip(X.indptr[:-1], X.indptr[1:], signs.tolist(), strict=True)
    return [
        [(j, sign * value) for j, value in zip(X.indices[a:z].tolist(), X.data[a:z].tolist(), strict=True)]
        for a, z, sign in ends
    ]


def lines_of(verdict: Any, X: Any, y: Any) -> list[str]:
    """Return the lines of the file of a verdict on hyperplanes; rows and columns are counted from 1."""
    verdict.verify(X, y)
    if not isinstance(verdict, Inseparable | LinearSeparator | Undecided) or verdict.kernel.name != "linear":
        raise ValueError(
            "VIPR files state linear programs: give a verdict of separate(X, y) without a kernel."
        )
    signs = np.where(np.asarray(y) == verdict.classes[1], 1.0, -1.0)
    rows, d, bias = signed_rows(X, signs), X.shape[1], verdict.bias
    sides = f"% y is 1 for the class {verdict.classes[1]!r} and -1 for {verdict.classes[0]!r}."
    if isinstance(verdict, Inseparable) or verdict.p not in (1.0, np.inf):
        variables = [*(f"w{j}" for j in range(1, d + 1)), *["b"] * bias]
        used = verdict.support.tolist() if isinstance(verdict, Inseparable) else range(len(rows))
        constraints = [f"row{i + 1} G 1 {texts([*rows[i], *[(d, float(signs[i]))] * bias])}" for i in used]
        head = ["VER 1.0", f"VAR {len(variables)}", *variables, "INT 0", "OBJ min", "0"]
        head += [f"CON {len(constraints)} 0", *constraints]
        if isinstance(verdict, Inseparable):
            total, multipliers = sum(verdict.weights), list(enumerate(verdict.weights))
            proof = f"none G {text(total)} 0 {{ lin {texts(multipliers)} }} -1"
            return [sides, *head, "RTP infeas", "SOL 0", "DER 1", proof]
        if isinstance(verdict, Undecided):
            raise ValueError("no linear program states an undecided verdict for p other than 1 and inf.")
        point = rational_point(verdict)
        least = least_score(rows, signs, point)
        solution = [(j, value / least) for j, value in enumerate(point[: d + bias]) if value]
        return [sides, *head, "RTP range -inf 0", "SOL 1", f"point {texts(solution)}", "DER 0"]
    return [sides, *margin_lines(verdict, rows, signs, d)]


def rational_point(verdict: LinearSeparator) -> Sequence[Fraction]:
    """Return w and b as the rational numbers that they are."""
    return [*map(Fraction, verdict.w.tolist()), Fraction(verdict.b)]


def least_score(rows: list[Terms], signs: np.ndarray, point: Sequence[Fraction]) -> Fraction:
    """Return min y_i (w.x_i + b)."""
    pairs = zip(rows, signs.tolist(), strict=True)
    return min(int(sign) * point[-1] + sum(Fraction(x) * point[j] for j, x in row) for row, sign in pairs)


def margin_lines(verdict: Any, rows: list[Terms], signs: np.ndarray, d: int) -> list[str]:
    """Return the lines of the program of the largest margin, p = 1 or inf, with both bounds where they are proved."""
    cube, bias, zero = verdict.p == 1.0, verdict.bias, Fraction(0)
    numbers = range(1, d + 1)
    if cube:  # max |w_j| <= 1
        names = [f"w{j}" for j in numbers]
        ball = [f"{name}_lower G -1 1 {j} 1" for j, name in enumerate(names)]
        ball += [f"{name}_upper L 1 1 {j} 1" for j, name in enumerate(names)]
    else:  # w = u - v with u, v >= 0 and sum (u_j + v_j) <= 1
        names = [f"{letter}{j}" for letter in "uv" for j in numbers]
        ball = [f"{name}_sign G 0 1 {k} 1" for k, name in enumerate(names)]
        ball.append(f"norm L 1 {texts([(k, 1) for k in range(2 * d)])}")
    variables = [*names, *["b"] * bias, "t"]
    t = len(variables) - 1
    constraints = [
        f"row{i + 1} G 0 {texts([*score, *[(t - 1, float(signs[i]))] * bias, (t, -1)])}"
        for i, row in enumerate(rows)
        for score in [row if cube else [*row, *((d + j, -value) for j, value in row)]]
    ]
    lo, solution = zero, []
    if isinstance(verdict, LinearSeparator):
        *w, b = rational_point(verdict)
        length = max(map(abs, w)) if cube else sum(map(abs, w), zero)
        lo = least_score(rows, signs, [*w, b]) / length
        solution = [
            (j if cube or value > 0 else d + j, (value if cube else abs(value)) / length)
            for j, value in enumerate(w)
            if value
        ]
        solution += [*[(t - 1, b / length)] * bool(bias and b), (t, lo)]
    hi, derived = "inf", ["DER 0"]
    alpha = balanced(verdict, signs)
    if alpha:
        v = [zero] * d
        for i, weight in alpha.items():
            for j, value in rows[i]:
                v[j] += weight * Fraction(value)
        if cube:  # v_j w_j <= |v_j|: v_j times w_j <= 1, or times w_j >= -1 where v_j is negative
            bound = sum(map(abs, v), zero)
            used = [(j if value < 0 else d + j, value) for j, value in enumerate(v) if value]
        else:  # h (sum u + sum v) <= h with h = |v|_inf, less (h - v_j) u_j >= 0 and (h + v_j) v_j >= 0
            bound = max(map(abs, v), default=zero)
            used = [(j, value - bound) for j, value in enumerate(v)]
            used += [(d + j, -value - bound) for j, value in enumerate(v)] + [(2 * d, bound)]
        used += [(len(ball) + i, -weight) for i, weight in alpha.items()]
        hi = text(bound)
        derived = ["DER 1", f"best L {hi} OBJ {{ lin {texts(used)} }} -1"]
    return [
        "VER 1.0", f"VAR {t + 1}", *variables, "INT 0", "OBJ max", f"1 {t} 1",
        f"CON {len(ball) + len(rows)} {2 * d}", *ball, *constraints,
        f"RTP range {text(lo)} {hi}", "SOL 1", f"point {texts(solution)}", *derived,
    ]  # fmt: skip


def balanced(verdict: Any, signs: np.ndarray) -> dict[int, Fraction]:
    """Return the dual variables by row, of sum one, with a bias of equal sums in both classes; empty if none are."""
    found = verdict.certificate
    alpha = {
        i: Fraction(a) for i, a in zip(found.support.tolist(), found.dual.tolist(), strict=True) if a > 0
    }
    classes = [[i for i in alpha if signs[i] == sign] for sign in ((1.0, -1.0) if verdict.bias else ())]
    totals = [sum(alpha[i] for i in group) for group in classes] or [sum(alpha.values())]
    if not all(totals):
        return {}
    totals = {
        i: len(classes) * total for group, total in zip(classes, totals, strict=False) for i in group
    } or dict.fromkeys(alpha, totals[0])
    return {i: a / totals[i] for i, a in alpha.items()}


def main() -> None:
    """Decide on the rows of a file of svmlight text, and write the proof."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("data", help="svmlight text with two classes")
    parser.add_argument("proof", help="file to write")
    parser.add_argument("--p", type=float, default=2.0, help="norm in which margins are measured")
    parser.add_argument("--no-bias", action="store_true", help="hyperplanes through the origin")
    options = parser.parse_args()
    X, y = load_svmlight_file(options.data)
    verdict = separate(X, y, p=options.p, bias=not options.no_bias)
    print(verdict)
    with open(options.proof, "w") as file:
        file.writelines(f"{line}\n" for line in lines_of(verdict, X, y))


if __name__ == "__main__":
    main()
