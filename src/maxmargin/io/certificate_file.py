"""Certificate files: bounds and proofs of a linear classifier that a program without maxmargin can check.

docs/certificate_format.md describes the format; ``checker/check.py`` checks it.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterable, Iterator, Sequence
from decimal import Decimal
from fractions import Fraction
from itertools import islice
from typing import Any

import numpy as np

from ..certificates.certificate import Sample, require, require_weights
from ..certificates.exact import ExactBounds, exactly_feasible
from ..certificates.training_data import training_data
from ..certificates.verdicts import Inseparable
from ..certificates.verification import check_claim, claimed_dual, linear_parts, verdicts_about
from ..numerics.files import written_whole
from ..numerics.rational import row_entries
from ..problem.problem import Problem

FORMAT, VERSION = "maxmargin certificate", 1
# Pairs in a line of numbers: with more a reader of lines needs more memory, with fewer lines have more overhead.
PAIRS = 1000


def write_certificate(
    path: str | os.PathLike[str],
    model: Any,
    X: Any,
    y: Any,
    sample_weight: Any = None,
    *,
    feature_names: Sequence[str] | None = None,
    label: str | None = None,
    first_index: int | None = None,
) -> list[tuple[float, float]]:
    """Write the bounds of a linear classifier, with all numbers that prove them, for a check without maxmargin.

    The dual variables are balanced exactly. Both bounds are those of the certificate, checked in rational
    arithmetic, which takes some microseconds for each entry of X.

    Parameters
    ----------
    path : str or path-like
        The file, which appears whole or not at all.
    model : fitted MaxMarginClassifier, or a model that `load` returned
        Linear, with a certificate.
    X : array-like or sparse matrix of shape (n, d)
        The training data.
    y : array-like of shape (n,)
    sample_weight : array-like of shape (n,), default=None
    feature_names : sequence of str, default=None
        The names of the columns in a delimited file of the data; by default those of the fit, if it had any.
    label : str, default=None
        The name of the label column of that file; by default that of the fit, if it read one.
    first_index : {0, 1}, default=None
        The first index of a file of svmlight text; by default that of the fit, or 1. Given alone, it means svmlight
        text, without a label column, whatever file the fit read.

    Returns
    -------
    list of (float, float)
        The lower and the upper bound of each binary problem; 0 and inf where nothing is proved.

    Raises
    ------
    CertificateError
        If the model has no certificate of a weight vector, or the data are not those of the fit. Also if its proof
        that there is no separator fails, names a row of weight 0, or is about another problem.
    ValueError
        If a checker could not find the columns: `feature_names` has a wrong length, a name twice or the name of the
        label, or is missing beside `label`; or `first_index` is neither 0 nor 1.
    OSError
        If the file cannot be written.
    """
    X, labels, weights = training_data(model, X, y, sample_weight)
    texts = _texts_of_classes(model, X.shape[1])
    columns = _columns(model, X.shape[1], feature_names, label, first_index)
    X = X.astype(np.float64)
    bounds, lines, verdicts = [], [], verdicts_about(model)
    for claim, name, w, b in linear_parts(model):
        sample = Sample(X, np.where(labels == name, 1.0, -1.0), weights)
        check_claim(claim, sample.fingerprint, b)
        alpha = _dual_variables(claim, sample, verdicts.get(None if len(model.classes_) == 2 else name))
        exact = ExactBounds(claim.problem, sample, w, b, alpha)
        bounds.append(exact.proved(float(claim.lower), float(claim.upper)))
        lines += _part_lines(texts[name], claim.problem, bounds[-1], (w, b), weights, alpha)
    header = {
        "format": FORMAT, "version": VERSION, "rows": X.shape[0], "columns": X.shape[1],
        "sha256": digest_of(X, labels), **columns, "parts": len(bounds),
    }  # fmt: skip
    with written_whole(path) as file:
        for line in [header, *lines, {"end": len(lines) + 1}]:
            file.write(json.dumps(line, ensure_ascii=True).encode() + b"\n")
    return bounds


def _texts_of_classes(model: Any, d: int) -> dict[Any, str]:
    """Return the text of each label; raise CertificateError where a model of d columns has no certificate file."""
    require(
        not hasattr(model, "n_support_"),
        "certificate files hold weight vectors: fit a MaxMarginClassifier; `verify` checks kernel models.",
    )
    texts = {name: label_text(name) for name in model.classes_.tolist()}
    require(
        len(set(texts.values())) == len(texts),
        f"two of the labels {', '.join(texts.values())} are the same number: give the classes other names.",
    )
    found = np.shape(model.coef_)[1]
    require(found == d, f"the model has {found} weights for {d} features.")
    return texts


def _columns(
    model: Any, d: int, feature_names: Sequence[str] | None, label: str | None, first_index: int | None
) -> dict[str, Any]:
    """Return the facts of the header by which a checker finds the columns; raise ValueError where it could not."""
    source = getattr(model, "source_", None) or {"label": None, "first_index": None}
    if label is None and first_index is None:
        label = source["label"]
    first_index = source["first_index"] if first_index is None else first_index
    given = getattr(model, "feature_names_in_", None) if feature_names is None else feature_names
    names = None if given is None else list(map(str, given))
    if first_index not in (None, 0, 1):
        raise ValueError(
            f"first_index is the first index of svmlight text, 0 or 1; got {first_index!r}: leave it out for tables."
        )
    if label is not None and names is None:
        raise ValueError(
            f"label={label!r} names a column of delimited text, whose features have no names: give feature_names."
        )
    if names is not None and (len(names) != d or len({*names, label}) != d + 1):
        raise ValueError(
            f"feature_names must be {d} different names, one for each column of X, and none that of the label column; "
            f"got {names[:8]!r}."
        )
    return {"label": label, "names": names, "first_index": 1 if first_index is None else int(first_index)}


def _dual_variables(claim: Any, sample: Sample, verdict: Any) -> dict[int, Fraction]:
    """Return the dual variables of a part, exactly feasible: those of its verdict if it has no separator."""
    if isinstance(verdict, Inseparable):
        verdict.check(sample.X, sample.y)
        require_weights(sample.weights[verdict.support])
        return dict(zip(verdict.support.tolist(), verdict.weights, strict=True))
    alpha = claimed_dual(claim, sample)
    return exactly_feasible(claim.problem, sample.y, sample.weights, alpha)


def _part_lines(
    positive: str,
    problem: Problem,
    bounds: tuple[float, float],
    point: tuple[np.ndarray, float],
    weights: np.ndarray,
    alpha: dict[int, Fraction],
) -> Iterator[dict[str, Any]]:
    """Yield the facts of a binary problem, and then the numbers other than 0, or 1 for weights, by position."""
    (lower, upper), (w, b) = bounds, point
    yield {
        "positive": positive, "loss": "hard" if problem.hard else problem.loss,
        "C": float(problem.C).hex(), "p": float(problem.p).hex(), "power": problem.power,
        "intercept": problem.intercept, "scaling": float(problem.intercept_scaling).hex(), "b": b.hex(),
        "lower": float(lower).hex(), "upper": float(upper).hex(),
    }  # fmt: skip
    yield from _chunks("w", _hexadecimal(w, w != 0.0))
    yield from _chunks("weights", _hexadecimal(weights, weights != 1.0))
    yield from _chunks("dual", ((i, exact_text(alpha[i])) for i in sorted(alpha)))


def _hexadecimal(values: np.ndarray, chosen: np.ndarray) -> Iterator[tuple[int, str]]:
    """Yield the positions of the chosen entries and their texts."""
    return ((i, float(values[i]).hex()) for i in np.flatnonzero(chosen).tolist())


def _chunks(name: str, pairs: Iterable[tuple[int, str]]) -> Iterator[dict[str, Any]]:
    """Yield lines of at most `PAIRS` pairs of a position, counted from 1, and a number."""
    pairs = iter(pairs)
    while chunk := [[place + 1, text] for place, text in islice(pairs, PAIRS)]:
        yield {name: chunk}


def exact_text(value: Fraction) -> str:
    """Return a rational number as a hexadecimal float64 number if it is one, else as a quotient of integers.

    Decimal writes integers of any length; Python refuses to print those of more than 4300 digits.
    """
    above, below = value.as_integer_ratio()
    text = f"{Decimal(above)}" if below == 1 else f"{Decimal(above)}/{Decimal(below)}"
    try:
        near = float(value)
    except OverflowError:
        return text
    return near.hex() if Fraction(near) == value else text


def label_text(label: Any) -> str:
    """Return the text of a label that does not depend on the way in which a number is written.

    Whole numbers have neither a sign "+" nor a point; other numbers are hexadecimal.
    """
    text = str(label).strip()
    try:
        value = float(text)
    except ValueError:
        return text
    if "_" in text:  # Python's own way to group digits
        return text
    return str(int(value)) if value.is_integer() else value.hex()


def digest_of(X: Any, labels: np.ndarray) -> str:
    """Return the SHA-256 of the data in canonical form: a line for each row, of its label and its entries other than 0.

    An entry is the number of its column, from 1, and its value in hexadecimal.
    """
    texts, digest = {label: label_text(label) for label in np.unique(labels).tolist()}, hashlib.sha256()
    for i, label in enumerate(labels.tolist()):
        text = "".join(f" {j + 1}:{value.hex()}" for j, value in zip(*row_entries(X, i), strict=True))
        digest.update(f"{texts[label]}{text}\n".encode())
    return digest.hexdigest()
