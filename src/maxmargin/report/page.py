"""Page of a report, in one file without references to others: verdict, bounds, margins, support vectors and weights."""

from __future__ import annotations

import io
import os
import sys
import warnings
from base64 import b64encode
from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum
from importlib.resources import files
from typing import Any

import numpy as np
import sklearn
from sklearn.preprocessing import StandardScaler
from sklearn.utils.validation import check_consistent_length, check_is_fitted, column_or_1d

from .. import __version__
from ..certificates.certificate import Certificate, CertificateError, Certificates
from ..certificates.verdicts import Inseparable
from ..certificates.verification import verdicts_of, verify
from ..estimators.decisions import Decision, decisions, feature_names_of, rows_of, text_of
from ..estimators.explanation import PartReport, SupportReport, explained, order_by_dual
from ..estimators.kernel import KernelMaxMarginClassifier
from ..estimators.linear import MaxMarginClassifier
from ..numerics.files import check_place, written_whole
from ..numerics.sizes import is_whole
from ..plots.base import new_figure, percent
from ..plots.bounds import BoundsDisplay
from ..plots.margins import MarginDisplay
from ..problem.problem import Status
from .html import Markup, element, section, table

# forbids browsers to fetch or run anything
_POLICY = "default-src 'none'; img-src data:; style-src 'unsafe-inline'"
FIGURE_SIZE = (7.2, 4.6)  # inches: two pictures fit side by side on a wide screen
_STYLE: dict[Any, Any] = {
    "svg.fonttype": "path",
    "svg.hashsalt": "maxmargin",  # the same picture is the same text
    "font.family": "DejaVu Sans",
}
MOST_DECISIONS = 6  # decisions that are drawn and listed: more would make the page long and slow to write


class Outcome(StrEnum):
    """Result of recomputing a certificate from data."""

    HOLDS = "HOLDS"  #: every bound was recomputed from the data, and holds
    NOTHING_PROVED = "NOTHING_PROVED"  #: the data are those of the fit, which ended before it found a bound
    FAILS = "FAILS"  #: the data are those of the fit, and a bound does not hold
    OTHER_DATA = "OTHER_DATA"  #: the data are not those of the fit, and say nothing about its certificate


# of each outcome: the class of its colour, a title, and its meaning
CHECKS = {
    Outcome.HOLDS: (
        "fair", "Proof rechecked",
        "every bound was recomputed from the {rows} rows of these data, and holds. The code that recomputes shares "
        "nothing with the solver, and rounds outwards.",
    ),
    Outcome.NOTHING_PROVED: (
        "bad", "Nothing is proved", "the fit ended before it found a bound, and there is nothing to recheck.",
    ),
    Outcome.FAILS: (
        "bad", "The proof does not hold",
        "{reason}. The numbers below are those that the model claims; the data contradict them.",
    ),
    Outcome.OTHER_DATA: (
        "fair", "Other data",
        "these are not the data that the model was fitted to ({reason}). Its certificate is about the data of the fit, "
        "and was not rechecked here; accuracy and margins below are about the data of this report.",
    ),
}  # fmt: skip


@dataclass(frozen=True)
class Recheck:
    """Result of recomputing a certificate from data, with the reason.

    Attributes
    ----------
    outcome : Outcome
    words : str
        The bound that does not hold, that nothing is proved, or the difference between the data and those of the fit;
        empty where it holds.
    certificate : Certificate or Certificates
        The recomputed one where it holds, else that of the fit.
    """

    outcome: Outcome
    words: str
    certificate: Certificate | Certificates


@dataclass(frozen=True, eq=False)
class Subject:
    """A fitted model and the data of its report, with the result of rechecking its certificate.

    Attributes
    ----------
    model : MaxMarginClassifier or KernelMaxMarginClassifier
    X : ndarray or CSR matrix of shape (n, d)
    y : ndarray of shape (n,)
    sample_weight : ndarray of shape (n,) or None
    names : list of str
        Of the features.
    top : int
        Largest number of rows and features in tables.
    decisions : list of Decision
    recheck : Recheck
    support : SupportReport or None
        Facts about each row by the certificate of `recheck`; None for data that are not those of the fit.
    """

    model: Any
    X: Any
    y: np.ndarray
    sample_weight: np.ndarray | None
    names: list[str]
    top: int
    decisions: list[Decision]
    recheck: Recheck
    support: SupportReport | None

    @property
    def listed(self) -> list[Decision]:
        """The decisions that are drawn and listed one by one."""
        return self.decisions[:MOST_DECISIONS]

    def unlisted(self, words: str) -> Markup | None:
        """Return a sentence about the number of decisions that are not listed, if there are any."""
        more = len(self.decisions) - MOST_DECISIONS
        return element("p", words.format(more)) if more > 0 else None


def write_report(
    model: Any,
    X: Any,
    y: Any,
    path: str | os.PathLike[str],
    *,
    sample_weight: Any = None,
    feature_names: Any = None,
    name: str | None = None,
    top: int = 10,
) -> Recheck:
    """Write one page about a fitted model and data: verdict, certificate, pictures and tables.

    Pictures are part of the page; it fetches nothing and runs no script. The certificate is recomputed from the data,
    as `verify` does; if the data are not those of the fit, or a bound does not hold, the page says so first.

    Parameters
    ----------
    model : MaxMarginClassifier or KernelMaxMarginClassifier
        Fitted, or as `load` returned it.
    X : array-like or sparse matrix of shape (n_samples, n_features)
        Preferably the data of the fit; the kernel matrix where it was precomputed.
    y : array-like of shape (n_samples,)
    path : str or path-like
        The file; it appears whole or not at all.
    sample_weight : array-like of shape (n_samples,), default=None
        That of the fit.
    feature_names : sequence of str, default=None
        None takes those of the fit, or numbers.
    name : str, default=None
        Name of the data, for the title.
    top : int, default=10
        Largest number of rows and features in tables.

    Returns
    -------
    recheck : Recheck
        Result of recomputing the certificate.

    Raises
    ------
    NotFittedError
    ValueError
        If the data do not fit the model; the message says what to do.
    ImportError
        Without matplotlib.
    OSError
        If the file cannot be written.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from sklearn.datasets import load_iris
    >>> from maxmargin import MaxMarginClassifier
    >>> from maxmargin.report import write_report
    >>> X, y = load_iris(return_X_y=True)
    >>> clf = MaxMarginClassifier(random_state=0).fit(X, y)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     recheck = write_report(clf, X, y, Path(folder) / "iris.html", name="iris")
    >>> recheck.outcome
    <Outcome.HOLDS: 'HOLDS'>
    """
    check_place(path)
    new_figure(FIGURE_SIZE)  # raises before the work if matplotlib is missing
    if not isinstance(model, MaxMarginClassifier | KernelMaxMarginClassifier):
        raise ValueError(
            "a report is about a certificate, which MaxMarginClassifier and KernelMaxMarginClassifier have; got "
            f"{type(model).__name__}."
        )
    check_is_fitted(model)
    if not is_whole(top, 1):
        raise ValueError(f"top must be a whole number of at least 1; got {top!r}.")
    X, y = rows_of(model, X), column_or_1d(y)
    check_consistent_length(X, y, sample_weight)
    weights = None if sample_weight is None else np.asarray(sample_weight, dtype=float)
    names, found = feature_names_of(model, X, feature_names, 1), decisions(model)
    recheck = _recheck(model, found, X, y, weights)
    other = recheck.outcome is Outcome.OTHER_DATA
    support = None if other else explained(model, X, y, weights, recheck.certificate)
    page = _page(Subject(model, X, y, weights, names, top, found, recheck, support), name)
    with written_whole(path) as file:
        file.write(page.encode(errors="replace"))  # a name may hold half a surrogate pair
    return recheck


def _recheck(model: Any, found: list[Decision], X: Any, y: Any, weights: Any) -> Recheck:
    """Recompute the certificate of a model of these decisions from the data."""
    claim = model.certificate_
    difference = next(filter(None, (one.difference(X, y, weights) for one in found)), None)
    if difference is not None:
        return Recheck(Outcome.OTHER_DATA, difference, claim)
    try:
        certificate = verify(model, X, y, weights)
    except CertificateError as error:
        return Recheck(Outcome.FAILS, str(error), claim)
    inseparable = any(isinstance(proof, Inseparable) for proof in verdicts_of(model).values())
    if certificate.proves_nothing and not inseparable:
        words = "nothing is proved: the fit ended before it found a bound"
        return Recheck(Outcome.NOTHING_PROVED, words, certificate)
    return Recheck(Outcome.HOLDS, "", certificate)


def _page(subject: Subject, name: str | None) -> str:
    """Return the text of the page; `name` is that of the data."""
    title = "Maximum-margin report" + ("" if name is None else f": {name}")
    style = files("maxmargin.report").joinpath("page.css").read_text(encoding="utf-8")
    head = element(
        "head",
        element("meta", charset="utf-8"),
        Markup(f'<meta http-equiv="Content-Security-Policy" content="{_POLICY}">'),
        element("meta", name="viewport", content="width=device-width, initial-scale=1"),
        element("meta", name="color-scheme", content="light dark"),
        element("title", title),
        element("style", Markup(style)),
    )
    versions = (
        f"Written by maxmargin {__version__} (Python {sys.version.split()[0]}, NumPy {np.__version__}, scikit-learn "
        f"{sklearn.__version__})."
    )
    sections = (verdict, pictures, support_vectors, features)
    main = element("main", element("h1", title), *(part(subject) for part in sections))
    whole = element("html", head, element("body", main, element("footer", element("p", versions))), lang="en")
    return f"<!DOCTYPE html>\n{whole}\n"


def verdict(subject: Subject) -> Markup:
    """Return the status of the fit, whether its proof holds on these data, and the bounds."""
    model, recheck = subject.model, subject.recheck
    colour, title, words = CHECKS[recheck.outcome]
    holds = recheck.outcome is Outcome.HOLDS
    if holds and model.status_ is Status.CERTIFIED:
        colour = "good"
    words = words.format(rows=len(subject.y), reason=recheck.words.rstrip("."))
    right, strange = np.sum(model.predict(subject.X) == subject.y), np.sum(~_known(subject))
    accuracy = f"{percent(right / len(subject.y))} ({right} of {len(subject.y)} rows)"
    accuracy += f"; {strange} rows have labels that the model does not know" if strange else ""
    text = subject.support.text(1) if holds and subject.support else str(recheck.certificate)
    commands = element("code", "maxmargin check MODEL DATA"), element("code", "maxmargin.verify(model, X, y)")
    return element(
        "div",
        element("p", element("strong", model.status_.value), f" — {model.message_}"),
        element(
            "p", element("strong", title), f" — {words}", role=None if holds else "alert"
        ),
        element("pre", text),
        element("p", f"Accuracy on these data: {accuracy}. Asked for: a gap of {100.0 * model.tol:.2g} %."),
        element("p", "To recheck the bounds yourself: ", commands[0], ", or ", commands[1], "."),
        class_=f"verdict {colour}",
    )  # fmt: skip


def _known(subject: Subject) -> np.ndarray:
    """Return which rows have labels that the model knows."""
    return np.isin(subject.y, subject.model.classes_)


def pictures(subject: Subject) -> Markup:
    """Return the section of all pictures that there are for this model and these data."""
    drawn = element("div", *_history(subject), *_margins(subject), class_="figures")
    return section("Pictures", drawn, subject.unlisted("Margins of {} more problems are not drawn."))


def _history(subject: Subject) -> Iterator[Markup]:
    """Draw the bounds of the problem with the largest gap, if its history has two reports to draw."""
    # bounds of a margin that is proved not to exist say nothing
    proofs = verdicts_of(subject.model)
    bounded = [one for one in subject.decisions if not isinstance(proofs.get(one.label), Inseparable)]
    widest = max(bounded, key=lambda one: one.certificate.gap if one.certificate else 0.0, default=None)
    history = [one for one in subject.model.history_ if widest is not None and one.label == widest.label]
    if widest is not None and sum(np.isfinite(one.lower) and np.isfinite(one.upper) for one in history) > 1:
        words = (
            "Certified bounds against time. The optimum lies in the shaded interval between the two lines. Times were "
            "recorded during the fit."
        )
        yield _figure(words, BoundsDisplay, subject.model, label=widest.label)


def _margins(subject: Subject) -> Iterator[Markup]:
    """Draw the margins of each listed decision in which rows take part."""
    known, weights = _known(subject), subject.sample_weight
    X, y, weights = subject.X[known], subject.y[known], None if weights is None else weights[known]
    colour = "; bars in full colour are support vectors" if subject.support else ""
    for one in subject.listed:
        if one.signs(y)[1].any():
            words = (
                f"Margins y f(x) of the rows, {one.positive} upwards and {one.negative} downwards. Rows left of 0 are "
                f"on the wrong side{colour}."
            )
            yield _figure(words, MarginDisplay, one.model, X, y, sample_weight=weights, label=one.label)


def _figure(words: str, display: Any, *arguments: Any, **options: Any) -> Markup:
    """Return a picture, drawn by `display.from_estimator`, with its words.

    The title of the picture is the alternative text, for readers who do not see it.
    """
    from matplotlib import rc_context

    with rc_context(_STYLE), warnings.catch_warnings():
        # letters that the font lacks are drawn as boxes; the words beside the picture have them
        warnings.filterwarnings("ignore", "Glyph .* missing from", UserWarning)
        ax = new_figure(FIGURE_SIZE).subplots()
        display.from_estimator(*arguments, ax=ax, **options)
        title = " ".join(ax.get_title(loc="left").split())
        text, unsigned = io.StringIO(), dict.fromkeys(("Date", "Creator", "Format", "Type"))
        ax.figure.savefig(text, format="svg", metadata=unsigned)
        width, height = (round(72.0 * inches) for inches in ax.figure.get_size_inches())
    picture = b64encode(text.getvalue().encode()).decode()
    source, alt = f"data:image/svg+xml;base64,{picture}", f"{title}. {words}" if title else words
    image = element("img", src=source, alt=alt, width=width, height=height)
    return element("figure", image, element("figcaption", words))


def support_vectors(subject: Subject) -> Markup:
    """Return the rows of the largest dual variables."""
    title, report = "Support vectors", subject.support
    if report is None:
        words = "Support vectors are rows of the data of the fit. These are other data: their rows are not listed."
        return section(title, element("p", words, class_="note"))
    words = (
        "The bound on the optimum is proved by the rows with a positive dual variable; it would be the same without "
        "the others. Rows are counted from 1."
    )
    tables = [_rows_table(subject, one, report.parts[one.index]) for one in subject.listed]
    more = subject.unlisted("Rows of {} more problems are not listed.")
    return section(title, element("p", words), *tables, more)


def _rows_table(subject: Subject, one: Decision, part: PartReport) -> Markup:
    """Return a table of the rows of the largest dual variables of one problem, if it has any."""
    support = part.certificate.support
    if support.size == 0:
        return element("p", f"{one.name}: no row has a positive dual variable.")
    dual, margins, full = part.dual[support], part.margin[support], part.full[support]
    order = order_by_dual(dual, part.cap[support], margins, part.open)[: subject.top]
    lines = []
    for k in order.tolist():
        row = int(support[k])
        cap = ["yes" if full[k] else "no"] if part.capped else []
        lines.append([row + 1, text_of(subject.y[row]), f"{dual[k]:.6g}", *cap, f"{margins[k]:.6g}"])
    head = ["row", "label", "dual variable", *(["at its cap"] if part.capped else []), "margin y f(x)"]
    capped = f", {int(full.sum())} of them at the cap (C times the sample weight)" if part.capped else ""
    caption = (
        f"{one.name}: {support.size} of {part.certificate.rows} rows have a positive dual variable{capped}"
    )
    if len(lines) < support.size:
        caption += f"; the {len(lines)} largest"
    return table(caption, head, lines, (0, 2, len(head) - 1))


def features(subject: Subject) -> Markup | None:
    """Return the features of the largest weights; None for a kernel without weights of features."""
    if not hasattr(subject.model, "coef_"):
        return None
    coef = np.asarray(subject.model.coef_, dtype=float)
    scaler: Any = StandardScaler(with_mean=False).fit(subject.X)
    effects, listed = coef * np.sqrt(scaler.var_), subject.listed
    order = np.argsort(-np.abs(effects).max(axis=0), kind="stable")[: subject.top].tolist()
    words = (
        "A feature of positive weight raises the score of the first class of a problem as it grows. Features are "
        "ordered by effect: the weight times the standard deviation of the column."
    )
    single = [effects[0]] if len(coef) == 1 else []
    lines = [
        [subject.names[j], *(f"{coef[one.index, j]:.6g}" for one in listed), *(f"{a[j]:.4g}" for a in single)]
        for j in order
    ]
    head = ["feature", *(["weight", "effect"] if single else [one.name for one in listed])]
    caption = f"{len(order)} of {coef.shape[1]} features, by falling effect"
    caption = f"{listed[0].name}: {caption}" if single else caption
    return section("Features", element("p", words), table(caption, head, lines, range(1, len(head))))
