"""Certificate files: bounds and proofs of a linear classifier that a program without maxmargin can check.

docs/certificate_format.md describes the format; ``checker/`` has two programs that check it.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterable, Iterator, Sequence
from fractions import Fraction
from itertools import islice
from typing import Any

import numpy as np

from ..certificates.certificate import require
from ..certificates.dual_variables import implied_by_points
from ..certificates.exact.bounds import ExactBounds, entries_of, exactly_feasible
from ..certificates.exact.vipr_file import number_text
from ..certificates.huge_columns import cancelled_exactly, huge_columns
from ..certificates.sample import Sample
from ..certificates.training_data import training_data
from ..certificates.verdicts import Inseparable
from ..certificates.verification import check_claim, check_support, verdicts_of
from ..numerics.files import written_whole

FORMAT, VERSION = "maxmargin certificate", 1
PAIRS = 1000  # pairs in a line of numbers: a reader holds one line, and lines have little overhead


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

    The dual variables are balanced exactly. Both bounds are computed in rational arithmetic, and are the tightest
    float64 numbers that the point of the model and its dual variables prove. This takes some microseconds for each
    entry of X.

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
        The first index of a file of svmlight text; by default that of the fit, or 1.

    Returns
    -------
    list of (float, float)
        The lower and the upper bound of each binary problem; 0 and inf where nothing is proved.

    Raises
    ------
    CertificateError
        If the model has no certificate of a weight vector, or the data are not those of the fit.
    OSError
        If the file cannot be written.
    """
    X, labels, weights = training_data(model, X, y, sample_weight)
    linear = not hasattr(model, "n_support_")
    require(
        linear,
        "certificate files hold weight vectors: fit a MaxMarginClassifier; `verify` checks kernel models.",
    )
    classes, coef = model.classes_, np.asarray(model.coef_, float)
    texts = [label_text(name) for name in classes]
    distinct = len(set(texts)) == len(texts)
    require(
        distinct, f"two of the labels {', '.join(texts)} are the same number: give the classes other names."
    )
    require(coef.shape[1] == X.shape[1], f"the model has {coef.shape[1]} weights for {X.shape[1]} features.")
    X = X.astype(np.float64)
    names, positives = (classes[1:], texts[1:]) if len(coef) == 1 else (classes, texts)
    verdicts, found, parts = verdicts_of(model), [], []
    for k, (claim, name, text) in enumerate(
        zip(model.certificate_.certificates, names, positives, strict=True)
    ):
        sample = Sample(X, np.where(labels == name, 1.0, -1.0), weights)
        b = float(np.ravel(model.intercept_)[k])
        check_claim(claim, sample, b)
        alpha = _dual_variables(claim, sample, verdicts.get(None if len(coef) == 1 else name))
        exact = ExactBounds(claim.problem, sample, coef[k], b, alpha)
        found.append(exact.tightest(float(claim.lower), float(claim.upper)))
        parts.append(_part(text, claim.problem, found[-1], coef[k], b, weights, alpha))
    source = getattr(model, "source_", None) or {"label": None, "first_index": None}
    label = source["label"] if label is None and first_index is None else label
    first_index = source["first_index"] if first_index is None else first_index
    given = getattr(model, "feature_names_in_", None) if feature_names is None else feature_names
    header = {
        "format": FORMAT, "version": VERSION, "rows": X.shape[0], "columns": X.shape[1],
        "sha256": digest_of(X, labels), "label": label,
        "names": None if given is None else list(map(str, given)),
        "first_index": 1 if first_index is None else int(first_index), "parts": len(parts),
    }  # fmt: skip
    lines = [header, *(line for part in parts for line in part)]
    with written_whole(path) as file:
        for line in [*lines, {"end": len(lines)}]:
            file.write(json.dumps(line, ensure_ascii=True).encode() + b"\n")
    return found


def _dual_variables(claim: Any, sample: Sample, verdict: Any) -> dict[int, Fraction]:
    """Return the dual variables of a part, exactly feasible: those of its verdict if it has no separator."""
    if isinstance(verdict, Inseparable):
        return dict(zip(verdict.support.tolist(), verdict.weights, strict=True))
    support, dual, _ = check_support(claim, sample.y.size)
    if claim.implied is not None:
        alpha = implied_by_points(claim.problem, sample, claim.implied, support, dual)
    else:
        alpha = np.zeros(sample.y.size)
        alpha[support] = dual
    exact = exactly_feasible(claim.problem, sample.y, sample.weights, alpha)
    huge = huge_columns(claim.problem, sample, alpha)
    return exact if huge is None else cancelled_exactly(claim.problem, sample, exact, huge)


def _part(
    positive: str, problem: Any, bounds: tuple[float, float], w: np.ndarray, b: float, weights: np.ndarray,
    alpha: dict[int, Fraction],
) -> Iterator[dict[str, Any]]:  # fmt: skip
    """Yield the lines of a binary problem: its facts, and the numbers other than 0, or 1 for weights, by position."""
    lower, upper = bounds
    yield {
        "positive": positive, "loss": "hard" if problem.hard else problem.loss,
        "C": float(problem.C).hex(), "p": float(problem.p).hex(), "power": problem.power,
        "intercept": problem.intercept, "scaling": float(problem.intercept_scaling).hex(), "b": b.hex(),
        "lower": float(lower).hex(), "upper": float(upper).hex(),
    }  # fmt: skip
    yield from _chunks("w", ((j, float(w[j]).hex()) for j in np.flatnonzero(w).tolist()))
    yield from _chunks(
        "weights", ((i, float(weights[i]).hex()) for i in np.flatnonzero(weights != 1.0).tolist())
    )
    yield from _chunks("dual", ((i, exact_text(alpha[i])) for i in sorted(alpha)))


def _chunks(name: str, pairs: Iterable[tuple[int, str]]) -> Iterator[dict[str, Any]]:
    """Yield lines of at most `PAIRS` pairs of a position, counted from 1, and a number."""
    pairs = iter(pairs)
    while chunk := [[place + 1, text] for place, text in islice(pairs, PAIRS)]:
        yield {name: chunk}


def exact_text(value: Fraction) -> str:
    """Return a rational number as a hexadecimal float64 number if it is one, else as a quotient of integers."""
    try:
        near = float(value)
    except OverflowError:
        return number_text(value)
    return near.hex() if Fraction(near) == value else number_text(value)


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
    for label, entries in zip(labels.tolist(), entries_of(X), strict=True):
        text = "".join(f" {j + 1}:{value.hex()}" for j, value in entries)
        digest.update(f"{texts[label]}{text}\n".encode())
    return digest.hexdigest()
