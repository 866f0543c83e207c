"""Check a certificate file of maxmargin against the data, in exact arithmetic: python check.py proof.json data.svm

docs/certificate_format.md has the format, docs/explanation/exact_checks.md the proofs of the inequalities.
"""

import csv
import gzip
import hashlib
import json
import math
import re
import sys
from decimal import Context, Decimal, localcontext
from fractions import Fraction

BITS = 1074  # every float64 number is an integer in units of 2^-1074
ONE = 1 << BITS


def require(holds, failure):
    if not holds:
        sys.exit("INVALID: " + failure)


def number(text):
    """Return the number that a text states: a hexadecimal float, an integer, a quotient of integers, or inf."""
    form = r"inf|-?\d+(/\d+)?|-?0x[01]\.[0-9a-f]+p[+-]\d{1,4}"
    require(re.fullmatch(form, text, re.ASCII), f"{text[:40]} is no number of a certificate.")
    return math.inf if text == "inf" else Fraction(float.fromhex(text)) if "x" in text else Fraction(text)


def units(value):
    require(value != math.inf and ONE % value.denominator == 0, f"{value} is no float64 number.")
    return int(value * ONE)


def read_certificate(path):
    """Return the header, and the parts, whose "w", "weights" and "dual" are dictionaries by position, from 0."""
    with open(path, encoding="utf-8") as file:
        header, *lines, end = [json.loads(line) for line in file]
    require(
        header["format"] == "maxmargin certificate" and header["version"] == 1, "unknown format or version."
    )
    require(end == {"end": len(lines) + 1}, "the certificate is cut off.")
    parts, sizes = [], {"w": header["columns"], "weights": header["rows"], "dual": header["rows"]}
    for line in lines:
        if "positive" in line:
            parts.append(
                line | {"w": {}, "weights": {}, "dual": {}, "margins": [], "v": {}, "imbalance": 0, "seen": 0}
            )
            continue
        ((name, pairs),) = line.items()
        for place, text in pairs:
            there = type(place) is int and 0 < place <= sizes[name] and place - 1 not in parts[-1][name]
            require(there, f"{name} {place} is wrong.")
            parts[-1][name][place - 1] = number(text)
    require(len(parts) == header["parts"] > 0, "parts are missing.")
    for part in parts:
        kinds = part["loss"] in ("hinge", "squared_hinge", "hard") and part["power"] in (1, 2)
        require(kinds and part["intercept"] in ("none", "free", "augmented"), "unknown kind of problem.")
        part |= {name: number(part[name]) for name in ("C", "scaling", "p", "b", "lower", "upper")}
        finite = all(0 <= x < math.inf for x in (part["lower"], *part["weights"].values()))
        finite = (
            finite and (0 < part["C"] < math.inf or part["loss"] == "hard") and 0 < part["scaling"] < math.inf
        )
        require(finite and part["upper"] >= 0 and part["p"] >= 1, "a number is negative or not finite.")
        exact = all(x == math.inf or Fraction(float(x)) == x for x in (part["lower"], part["upper"]))
        require(exact, "a bound is no float64 number.")
        part |= {"b": units(part["b"]) << BITS, "w": {j: units(x) for j, x in part["w"].items()}}
        require(part["intercept"] != "none" or part["b"] == 0, "the problem has no intercept.")
        part["D"] = math.lcm(*(a.denominator for a in part["dual"].values()))
    return header, parts


def label_of(text):
    """Return the text of a label: whole numbers without sign or point, other numbers in hexadecimal, else as it is."""
    try:
        value = float(text if "_" not in text else "text")
    except ValueError:
        return text.strip()
    return str(int(value)) if value.is_integer() else value.hex()


def rows_of(path, header):
    """Yield the label and the dictionary of entries of each row of svmlight or delimited text."""
    with (gzip.open if path.endswith(".gz") else open)(path, "rt", encoding="utf-8-sig", newline="") as file:
        if header["label"] is None:
            for words in filter(None, (line.split("#")[0].split() for line in file)):
                pairs = [word.split(":") for word in words[1:] if not word.startswith("qid:")]
                entries = {int(j) - header["first_index"]: float(x) for j, x in pairs}
                require(len(entries) == len(pairs), "a row has a column twice.")
                yield label_of(words[0]), entries
            return
        first = file.readline()
        delimiter = max(",;\t", key=first.count)
        names = next(csv.reader([first], delimiter=delimiter))
        require(len({*names}) == len(names), "two columns have the same name.")
        label, places = names.index(header["label"]), [names.index(name) for name in header["names"]]
        for cells in filter(None, csv.reader(file, delimiter=delimiter)):
            yield label_of(cells[label]), {j: float(cells[place]) for j, place in enumerate(places)}


def norm_at_most(v, p, square):
    """Decide |v|_p^2 <= square for integers v: exactly for whole p, else by logarithms, True only where proved."""
    v = [abs(x) for x in v if x]
    if not v or square <= 0:
        return square >= 0 and not v
    if p == math.inf:
        return max(v) ** 2 <= square
    if p.denominator == 1 and p <= 64:
        return sum(x ** int(p) for x in v) ** 2 <= square ** int(p)
    with localcontext(Context(prec=60, Emax=10**9, Emin=-(10**9))):
        # sum (v_j / max)^p <= (square / max^2)^(p / 2); the slack exceeds the errors of the logarithms
        exponent, largest = Decimal(p.numerator) / Decimal(p.denominator), Decimal(max(v))
        total = sum((exponent * (Decimal(x) / largest).ln()).exp() for x in v)
        limit = (Decimal(square.numerator) / Decimal(square.denominator) / largest**2).ln()
        return total.ln() + Decimal("1e-40") * (1 + exponent) <= exponent / 2 * limit


def bounds_hold(part):
    """Decide both bounds: "margins" are in units of 2^-2148, and "v", sum alpha_i y_i x_i, in units of 2^-1074 / D."""
    hard, squared, weights, dual = (
        part["loss"] == "hard",
        part["loss"] == "squared_hinge",
        part["weights"],
        part["dual"],
    )
    C, rho, p, lower, upper = (part[name] for name in ("C", "scaling", "p", "lower", "upper"))
    q = 1 if p == math.inf else math.inf if p == 1 else p / (p - 1)
    require(part["intercept"] != "free" or part["imbalance"] == 0, "the dual variables are not balanced.")
    for i, a in dual.items():
        feasible = a >= 0 and weights.get(i, 1) > 0 and (hard or squared or a <= C * weights.get(i, 1))
        require(feasible, f"dual variable {i + 1} is out of its bounds.")
    w, w_unit, v, v_unit = (
        list(part["w"].values()),
        Fraction(ONE),
        list(part["v"].values()),
        Fraction(ONE * part["D"]),
    )
    if part["intercept"] == "augmented":  # the coordinate b / rho of w, and rho sum alpha_i y_i of v
        w, w_unit = [x * units(rho) for x in w] + [part["b"]], units(rho) * Fraction(ONE)
        v.append(int(part["imbalance"] * part["D"] * units(rho)))
    gains = sum(dual.values())
    if hard:  # lower <= min m_i / |w|_q, and |v|_p / sum alpha_i <= upper
        smallest = Fraction(min(m for i, m in enumerate(part["margins"]) if weights.get(i, 1) > 0), ONE * ONE)
        below = not lower or (smallest > 0 and norm_at_most(w, q, (smallest / lower * w_unit) ** 2))
        return below, upper == math.inf or (gains > 0 and norm_at_most(v, p, (upper * gains * v_unit) ** 2))
    if squared:  # alpha_i^2 / (4 C s_i) is subtracted, rounded up to a multiple of 2^-1400
        terms = (a * a / (4 * C * weights.get(i, 1)) for i, a in dual.items())
        gains -= Fraction(sum(-((-term.numerator << 1400) // term.denominator) for term in terms), 1 << 1400)
    slacks = enumerate(max(ONE * ONE - m, 0) for m in part["margins"])
    losses = sum(units(weights.get(i, Fraction(1))) * (x * x if squared else x) for i, x in slacks if x)
    rest = 0 if upper == math.inf else upper - C * Fraction(losses, ONE ** (5 if squared else 3))
    # lower <= gains - 1/2 |v|_p^2, and 1/2 |w|_q^2 + losses <= upper
    limits = 2 * (gains - lower), 2 * rest
    if part["power"] == 1:  # lower <= gains / max(1, |v|_p), and |w|_q + losses <= upper
        limits = (gains / (lower or 1)) ** 2, rest * abs(rest)
    below = not lower or (gains >= lower and norm_at_most(v, p, limits[0] * v_unit**2))
    return below, upper == math.inf or norm_at_most(w, q, limits[1] * w_unit**2)


def check(proof, data):
    header, parts = read_certificate(proof)
    digest, n = hashlib.sha256(), 0
    for n, (label, entries) in enumerate(rows_of(data, header), 1):
        ratios = [(j, *x.as_integer_ratio()) for j, x in sorted(entries.items()) if x]
        require(
            all(0 <= j < header["columns"] for j, *_ in ratios),
            f"row {n} has a column that is not in the problem.",
        )
        digest.update(f"{label}{''.join(f' {j + 1}:{entries[j].hex()}' for j, *_ in ratios)}\n".encode())
        ratios = [(j, a, BITS + 1 - b.bit_length()) for j, a, b in ratios]  # a 2^shift is the entry in units
        for part in parts:
            sign, w, v, a = (
                1 if label == part["positive"] else -1,
                part["w"],
                part["v"],
                part["dual"].get(n - 1, 0),
            )
            part["margins"].append(
                sign * sum(((x * w[j]) << shift for j, x, shift in ratios if j in w), part["b"])
            )
            part["imbalance"] += sign * a
            part["seen"] += sign > 0
            for j, x, shift in ratios if a else ():
                v[j] = v.get(j, 0) + ((int(a * part["D"]) * sign * x) << shift)
    require(
        n == header["rows"] and digest.hexdigest() == header["sha256"],
        "these are not the data of the certificate.",
    )
    for part in parts:
        below, above = bounds_hold(part)
        require(below, "the lower bound is not proved.")
        require(above, "the upper bound is not proved.")
        require(part["seen"], f"no row is of the class {part['positive']!r}.")
    for part in parts:
        problem = ", ".join(f"{name} {part[name]}" for name in ("loss", "power", "intercept"))
        numbers = ", ".join(f"{name} = {float(part[name]):.17g}" for name in ("C", "p", "scaling"))
        print(
            f"class {part['positive']!r} of {n} rows, {len(part['weights'])} of them weighted: {problem}, {numbers}"
        )
        lower = f"{float(part['lower']):.17g} <= " if part["lower"] else ""  # 0 states nothing
        print(
            f"  {lower}best {'margin' if part['loss'] == 'hard' else 'objective'} <= {float(part['upper']):.17g}"
        )


if __name__ == "__main__":
    sys.set_int_max_str_digits(0)  # quotients of long integers
    try:
        check(*sys.argv[1:])
    except Exception as error:  # whatever cannot be read is refused
        sys.exit(f"INVALID: {type(error).__name__}: {error}")
    print("VALID")
