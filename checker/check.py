"""Check a certificate file of maxmargin against the data, in exact arithmetic: python check.py proof.json data.svm"""

import csv
import gzip
import hashlib
import json
import math
import re
import sys
import zlib
from decimal import Context, Decimal, localcontext
from fractions import Fraction
from types import SimpleNamespace as Part

ONE = 1 << 1074  # every float64 number is an integer in units of 2^-1074
LEAST = {"C": 1 / ONE, "scaling": 1 / ONE, "p": 1, "lower": 0, "upper": 0, "weights": 0, "dual": 0}
POWERS = {"hinge": 1, "squared_hinge": 2, "hard": 0}  # of the slacks max(0, 1 - m_i) in a loss


def require(holds, failure, word="INVALID"):
    if not holds:
        print(f"{word}: {failure}", file=sys.stderr)
        sys.exit(1 if word == "INVALID" else 2)


def number(name, text):
    """Return the number that a text states: a hexadecimal float, an integer, a quotient of integers, or inf."""
    form = r"-?\d+(/\d+)?|-?0x[01]\.[0-9a-f]+p[+-]\d{1,4}" + "|inf" * (name in ("C", "p", "upper"))
    require(re.fullmatch(form, text, re.ASCII), f"{name} {text[:40]} is no number of a certificate.")
    value = math.inf if text == "inf" else Fraction(float.fromhex(text) if "x" in text else text)
    require((name == "dual" or float(value) == value) and LEAST.get(name, value) <= value, f"a wrong {name}.")
    return value


def read_certificate(path):
    """Return the header and the parts; docs/certificate_format.md has the format."""
    with open(path, encoding="utf-8") as file:
        head, lines = json.loads(file.readline()), [*map(json.loads, file)]
    known = isinstance(head, dict) and head | {"format": "maxmargin certificate", "version": 1} == head
    require(known, "no certificate.", "UNREADABLE")
    require({type(head[x]) for x in ("rows", "columns", "first_index", "parts")} == {int}, "a wrong header.")
    parts, sizes = [], {"w": head["columns"], "weights": head["rows"], "dual": head["rows"]}
    for line in lines[:-1]:
        if "positive" in line:
            facts = line | {x: number(x, line[x]) for x in ("C", "p", "scaling", "b", "lower", "upper")}
            # Units are ONE = 2^-1074, with 1 / W for w, 1 / D for the dual variables alpha, and both where they meet:
            # v = sum alpha_i y_i x_i, least = min m_i, losses = sum s_i max(0, 1 - m_i)^power. G = sum alpha_i - costs.
            parts.append(Part(**facts, w={}, weights={}, dual={}, v={}, G=0, losses=0, least=math.inf))
            continue
        ((name, pairs),) = line.items()
        size, found = sizes[name], getattr(parts[-1], name)
        for place, text in pairs:
            require(type(place) is int and 0 < place <= size and place not in found, "a wrong position.")
            found[place] = number(name, text)
    require(lines[-1:] == [{"end": len(lines)}] and len(parts) == head["parts"] > 0, "the file is cut off.")
    for part in parts:  # the intercept is the column 0 of entries rho; w has the unit 1 / W, and alpha 1 / D
        rho = {"none": 0, "free": 1, "augmented": part.scaling}[part.intercept]
        require(part.power in (1, 2) and (rho or part.b == 0), "a wrong power, or an intercept of none.")
        part.w[0], part.rho = part.b / (rho or 1), int(rho * ONE)
        part.W, part.D = (math.lcm(*(x.denominator for x in xs.values())) for xs in (part.w, part.dual))
        part.w = {j: int(x * part.W) for j, x in part.w.items()}
    return head, parts


def rows_of(path, head):
    """Yield the label and the entries of each row of svmlight or delimited text."""
    with (gzip.open if path.endswith(".gz") else open)(path, "rt", encoding="utf-8-sig", newline="") as file:
        if head["label"] is None:
            for words in filter(None, (line.split("#")[0].split() for line in file)):
                pairs = [word.split(":") for word in words[1:] if not word.startswith("qid:")]
                yield words[0], [(int(j) - head["first_index"] + 1, float(x)) for j, x in pairs]
            return
        delimiter = max(",;\t", key=(first := file.readline()).count)
        names = next(csv.reader([first], delimiter=delimiter))
        missing, distinct = {head["label"], *head["names"]} - {*names}, len({*names}) == len(names)
        require(distinct and not missing, f"the data have no column {', '.join(missing)!r}, or a name twice.")
        for row in csv.DictReader(file, names, delimiter=delimiter):
            yield row[head["label"]], [(j, float(row[x])) for j, x in enumerate(head["names"], 1)]


def norm_at_most(v, unit, p, power, limit):
    """Decide |v / unit|_p <= limit, or half its square <= limit; if p is not whole, by logarithms with a slack."""
    v, square = sorted(abs(x) for x in v if x), (limit * abs(limit) if power == 1 else 2 * limit) * unit**2
    if not v or square <= 0 or p == math.inf:
        return max(v, default=0) ** 2 <= square
    if p.denominator == 1 and p <= 64:
        return sum(x ** int(p) for x in v) ** 2 <= square ** int(p)
    with localcontext(Context(prec=60, Emax=10**9, Emin=-(10**9), traps=[])):
        p, square = (Decimal(x.numerator) / Decimal(x.denominator) for x in (p, square / v[-1] ** 2))
        total = sum((p * (Decimal(x) / v[-1]).ln()).exp() for x in v)  # the last term is 1
        return total.ln() + Decimal("1e-40") * (1 + p) <= p / 2 * square.ln()


def check(proof, data):
    (head, parts), digest, labels, n = read_certificate(proof), hashlib.sha256(), set(), 0
    for n, (label, row) in enumerate(rows_of(data, head), 1):
        try:  # whole numbers have neither sign nor point, other numbers are hexadecimal
            value = float(label.replace("_", "text"))  # Python would read 1_0 as 10
            label = str(int(value)) if value.is_integer() else value.hex()
        except ValueError:
            label = label.strip()
        labels.add(label)
        require(len(dict(row)) == len(row), f"row {n} has a column twice.")
        row = sorted((j, x.hex(), a * (ONE // b)) for j, x in row if x for a, b in [x.as_integer_ratio()])
        require(all(0 < j <= head["columns"] for j, *_ in row), f"row {n} has a column of no feature.")
        digest.update(f"{label}{''.join(f' {j}:{text}' for j, text, _ in row)}\n".encode())
        for part in parts:
            sign, entries = 1 if label == part.positive else -1, [*row, (0, "", part.rho)]
            a, s, power = part.dual.get(n, 0), part.weights.get(n, 1), POWERS[part.loss]
            margin = sign * sum(x * part.w[j] for j, _, x in entries if j in part.w)
            part.least = min(part.least, margin) if s else part.least
            part.losses += int(s * ONE) * max(part.W * ONE - margin, 0) ** power
            if a:
                require(s and (power != 1 or a <= part.C * s < math.inf), f"dual variable {n} is infeasible.")
                cost = Fraction(math.ceil(a * a / (4 * part.C * s) * 2**1400), 2**1400) if power == 2 else 0
                part.G, a = part.G + a - cost, sign * int(a * part.D)
                part.v |= {j: part.v.get(j, 0) + a * x for j, _, x in entries}
    require(n == head["rows"] and digest.hexdigest() == head["sha256"], "these are not the data.")
    print(", ".join(f"{x} {head[x]!a}" for x in ("rows", "columns", "label", "names") if head[x] is not None))
    for part in parts:  # the inequalities of docs/explanation/exact_checks.md prove the bounds
        require(part.intercept != "free" or part.v.get(0, 0) == 0, "the dual variables are not balanced.")
        q = 1 if part.p == math.inf else math.inf if part.p == 1 else part.p / (part.p - 1)
        w = [x for j, x in part.w.items() if j or part.intercept == "augmented"], part.W, q
        v, margin = (part.v.values(), part.D * ONE, part.p), part.least * any(w[0])  # w = 0 is no hyperplane
        lower, upper, G = part.lower or Fraction(1), 0 if part.upper == math.inf else part.upper, part.G
        if part.loss == "hard":  # lower <= min m_i / |w|_q, and |v|_p / sum alpha_i <= upper
            below = 0 < margin < math.inf and norm_at_most(*w, 1, margin / (lower * part.W * ONE))
            above = G > 0 and norm_at_most(*v, 1, upper * G)
        else:  # lower <= G - |v|_p^2 / 2 or G / max(1, |v|_p), and |w|_q^2 / 2 or |w|_q <= upper - losses
            losses = part.C * Fraction(part.losses, ONE * (part.W * ONE) ** POWERS[part.loss])
            below = lower <= G and norm_at_most(*v, part.power, G / lower if part.power == 1 else G - lower)
            above = norm_at_most(*w, part.power, upper - losses)
        require((below or part.lower == 0) and (above or part.upper == math.inf), "a bound is not proved.")
        require(part.positive in labels, f"no row is of the class {part.positive!a}.")
        given, low = [*part.weights.values()], f"{float(part.lower):.17g} <= " * (part.lower > 0)
        rest = ", ".join(f"{x} = {float(getattr(part, x)):.17g}" for x in ("C", "p", "scaling"))
        print(f"class {part.positive!a}: {part.loss}, power {part.power}, intercept {part.intercept}, {rest}")
        print(f"  {len(given) - given.count(1)} rows have weights other than 1, {given.count(0)} of them 0")
        print(f"  {low}best {'margin' if part.loss == 'hard' else 'objective'} <= {float(part.upper):.17g}")


if __name__ == "__main__":
    sys.set_int_max_str_digits(0)  # quotients of long integers
    require(len(sys.argv) == 3, "check.py proof.json data", "usage")
    try:
        check(*sys.argv[1:])
    except Exception as e:  # whatever cannot be read is refused
        unread = OSError | EOFError | UnicodeDecodeError | json.JSONDecodeError | zlib.error | csv.Error
        require(False, f"{type(e).__name__}: {e}", "UNREADABLE" if isinstance(e, unread) else "INVALID")
    print("VALID")
