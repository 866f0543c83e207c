"""ASCII formulas in the prose of a docstring, converted to the `math` role of reStructuredText.

A formula is a sequence of words made of one-letter names, Greek letters, functions, numbers, operators and brackets:
`a.y_k <= b R^2` in "a.y_k <= b R^2 (not strict)". Everything else is text, whose special characters are escaped.
"""

from __future__ import annotations

import re

from docutils.utils.math import MathError
from docutils.utils.math.latex2mathml import tex2mathml

GREEK = (
    "alpha",
    "beta",
    "gamma",
    "delta",
    "epsilon",
    "eps",
    "zeta",
    "eta",
    "theta",
    "lambda",
    "mu",
    "nu",
    "xi",
)
GREEK += ("rho", "sigma", "tau", "phi")
FUNCTIONS = {
    **{name: rf"\{name}" for name in ("max", "min", "log", "ln", "sum", "sqrt")},
    **{name: rf"\operatorname{{{name}}}" for name in ("argmin", "clip", "floor", "sign")},
    "log2": r"\log_2",
}
OPERATORS = {"<=": r" \le ", ">=": r" \ge ", "<-": r" \leftarrow ", "+-": r"\pm ", "|.|": r"|\cdot|"}

NAME = (
    rf"(?:{'|'.join(sorted([*GREEK, *FUNCTIONS, 'inf'], key=len, reverse=True))})(?![A-Za-z0-9])"
    r"|[A-Za-z](?![A-Za-z])"  # one letter
    r"|[A-Z]{2,}(?=[_^])|[a-z]{2,}(?=_\{?[a-z](?![a-z_])|\^)"  # a word with an index or a power: ALMA_p, share_i
)
SIGN = r"(?<=[A-Za-z])[+\-*](?=[\s.|,)^]|$)"  # x+, x- and gamma*
TOKEN = re.compile(
    rf"{NAME}|\d+(?:\.\d+)?|_(?:[A-Za-z]+|\d)|\^\{{[^}}]*\}}|\^|{SIGN}|\.\.\.|<=|>=|<-|\+-|\|\.\||[-+=<>/'|()\[\],]"
    r"|(?<=[\w)+-])\.(?=[A-Za-z])"
)
WORDS = re.compile(r"\s+|(?:[^\s{]|\{[^}]*\})+")
LITERAL = re.compile(r"``.*?``|`[^`]*`_?|\*\*.*?\*\*")
MARKS = re.compile(r"[|*\\]|(?<=\w)_(?!\w)")


def typeset(text: str) -> str:
    """Return a paragraph with its formulas in the `math` role and its other special characters escaped."""
    parts, end = [], 0
    for match in LITERAL.finditer(text):
        parts += [_converted(text[end : match.start()]), match[0]]
        end = match.end()
    return "".join([*parts, _converted(text[end:])])


def _converted(text: str) -> str:
    """Convert text without literals: runs of words that are formulas, and the text between them."""
    result, run = [], ""
    for word in WORDS.findall(text):
        core = re.sub(r"(?:[,;:?]|(?<!\.)\.\)?)+$", "", word)
        if word.isspace():
            run += word
        elif not _is_formula(core):
            result += [_formula(run), _escaped(word)]
            run = ""
        elif core != word and not (word[len(core)] == "," and _is_open(run + core)):
            result += [_formula(run + core), word[len(core) :]]
            run = ""
        else:
            run += word
    return "".join([*result, _formula(run)])


def _is_formula(word: str) -> bool:
    """Return whether a word consists of tokens of formulas."""
    place = 0
    while place < len(word) and (match := TOKEN.match(word, place)):
        place = match.end()
    return place == len(word)


def _is_open(text: str) -> bool:
    return sum(text.count(sign) for sign in "([") > sum(text.count(sign) for sign in ")]")


def _formula(run: str) -> str:
    """Return a run of formula words in the `math` role; words at its ends that belong to the text stay text."""
    core = run.strip()
    if not core:
        return run
    head, tail = run[: len(run) - len(run.lstrip())], run[len(run.rstrip()) :]
    place = _unmatched(core)
    if place is not None:
        return head + _formula(core[:place]) + core[place] + _formula(core[place + 1 :]) + tail
    first, *others = core.split()
    is_article = first in ("a", "A") and not (others and re.match(r"[-+<>=/]", others[0]))
    if is_article or (first in FUNCTIONS and others and others[0][0] == "-"):
        return head + first + _formula(core[len(first) :]) + tail
    if others and (
        others[-1] in FUNCTIONS
        or (others[-1] == "a" and not re.fullmatch(r"[-+=/<>]+", [first, *others][-2]))
    ):
        return head + _formula(core[: -len(others[-1])]) + others[-1] + tail
    if core in FUNCTIONS or core.count("|") % 2 or not re.search(r"[A-Za-z=<>^]|\d ?[-/+] ?\d", core):
        return head + _escaped(core) + tail
    code = _tex(core)
    try:
        tex2mathml(code)
    except (MathError, IndexError):
        return f"{head}``{core}``{tail}"
    return f"{head}:math:`{code}`{tail}"


def _unmatched(text: str) -> int | None:
    """Return the place of a bracket without its partner."""
    places: list[int] = []
    for place, sign in enumerate(text):
        if sign in "([":
            places.append(place)
        elif sign in ")]":
            if not places:
                return place
            places.pop()
    return places[0] if places else None


def _tex(formula: str) -> str:
    """Return a formula in LaTeX."""
    code = re.sub(r"(?<=[A-Za-z])([+\-*])\^(\w)", r"^{\1\2}", formula)  # b*^2
    code = re.sub(SIGN, lambda match: f"^{{{match[0]}}}", code)
    while match := re.search(
        r"(\^-?|\^max|\bsqrt)\(", code
    ):  # the group in parentheses becomes one in braces
        start, end = match.end(), match.end() + (_unmatched(code[match.end() :]) or 0)
        inner = f"max({code[start:end]})" if match[1] == "^max" else code[start:end]
        opened = {"^": "^{", "^-": "^{-", "^max": "^{", "sqrt": r"\sqrt{"}[match[1]]
        code = f"{code[: match.start()]}{opened}{inner}}}{code[end + 1 :]}"
    code = re.sub(r"\^(-?(?:\d+|[A-Za-z]+(?:_\w)?))", r"^{\1}", code)
    code = re.sub(r"_([A-Za-z]+|\d)", lambda match: f"_{{{_index(match[1])}}}", code)
    code = re.sub(r"<=|>=|<-|\+-|\|\.\|", lambda match: OPERATORS[match[0]], code)
    code = re.sub(r"(?<=[\w)}])\.(?=[A-Za-z])", r" \\cdot ", code).replace("...", r"\ldots ")
    code = re.sub(rf"(?<![A-Za-z\\{{])(?:{NAME})|(?<={{)(?:{NAME})", lambda match: _name(match[0]), code)
    code = re.sub(r"\\(ln|log) +(?=[A-Za-z0-9\\])", r"\\,\\\1\\,", code)  # c ln d
    code = re.sub(r"(\\[lg]e|[=<>]) +-(\\?\w+)", r"\1 {-\2}", code)  # a sign, not a difference
    return re.sub(r" +", " ", code).strip()


def _index(text: str) -> str:
    """Return an index in LaTeX: up to two letters are variables, more are a word or a Greek letter."""
    return text if text in GREEK or len(text) <= 2 else rf"\mathrm{{{text}}}"


def _name(name: str) -> str:
    """Return a name in LaTeX."""
    if name in FUNCTIONS:
        return f"{FUNCTIONS[name]} "
    if name == "inf":
        return r"\infty "
    if name in GREEK:
        return r"\varepsilon " if name in ("eps", "epsilon") else rf"\{name} "
    return name if len(name) == 1 else rf"\mathrm{{{name}}}"


def _escaped(text: str) -> str:
    """Return text with bars, stars, backslashes and trailing underscores escaped."""
    return MARKS.sub(lambda match: f"\\{match[0]}", text)
