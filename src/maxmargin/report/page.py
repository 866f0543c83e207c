"""Page of a report, in one file without references to others, and its sections, each a function of the subject."""

from __future__ import annotations

import io
import os
import sys
import warnings
from base64 import b64encode
from collections.abc import Iterator
from importlib.resources import files
from typing import Any

import numpy as np
import sklearn
from sklearn.preprocessing import StandardScaler
from sklearn.utils.validation import check_consistent_length, check_is_fitted, column_or_1d

from .. import __version__
from ..certificates.certificate import Certificate, Certificates
from ..certificates.verdicts import Inseparable
from ..certificates.verification import verdicts_of
from ..estimators.decisions import Decision, feature_names_of, rows_of, text_of
from ..estimators.explanation import PartReport, order_by_dual
from ..estimators.kernel import KernelMaxMarginClassifier
from ..estimators.linear import MaxMarginClassifier
from ..numerics.files import check_place, written_whole
from ..numerics.sizes import is_whole
from ..plots.base import new_figure, percent, problem_name
from ..plots.bounds import BoundsDisplay
from ..plots.margins import MarginDisplay
from ..problem.problem import Status
from .subject import Markup, Outcome, Recheck, Subject, element, paragraph, section, table, void

# forbids browsers to fetch or run anything
_POLICY = "default-src 'none'; img-src data:; style-src 'unsafe-inline'"
FIGURE_SIZE = (7.2, 4.6)  # inches: two pictures fit side by side on a wide screen
_STYLE: dict[Any, Any] = {
    "svg.fonttype": "path",
    "svg.hashsalt": "maxmargin",  # the same picture is the same text
    "font.family": "DejaVu Sans",
}
MATTERS = 1e-3  # share of the largest weight above which another one counts
MOST_CLASSES = 12  # classes that are named: more would fill the page
# Relative gap above which one bound is no bound at all: that of a margin which is not reached.
NO_GAP = 1e4
ON_MARGIN = 1e-6  # least distance from a margin of one that is told apart from it, whatever the tolerance
SHORTEST_BAR = 0.005  # so that a bar is seen

# of each outcome: the class of its colour, a title, the reason, and the source of the numbers in the certificate
CHECKS = {
    Outcome.HOLDS: (
        "fair", "Proof rechecked", "every bound was recomputed from the {rows} rows of these data, and holds.",
        "All numbers were recomputed from the data by code that shares nothing with the solver, and rounded outwards.",
    ),
    Outcome.NOTHING_PROVED: (
        "bad", "Nothing is proved", "the fit ended before it found a bound, and there is nothing to recheck.",
        "Neither bound is known, and there is nothing to recompute.",
    ),
    Outcome.FAILS: (
        "bad", "The proof does not hold", "{reason}.",
        "These are the numbers that the model claims; the data contradict them.",
    ),
    Outcome.OTHER_DATA: (
        "fair", "Other data",
        "these are not the data that the model was fitted to ({reason}). Its certificate is about the data of the fit, "
        "and was not rechecked here; accuracy and margins below are about the data of this report.",
        "These are the numbers that the model claims about the data of its fit; they were not rechecked.",
    ),
}  # fmt: skip


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
    subject = Subject(model, X, y, weights, feature_names_of(model, X, feature_names, 1), top)
    page = _page(subject, name)
    with written_whole(path) as file:
        file.write(page.encode(errors="replace"))  # a name may hold half a surrogate pair
    return subject.recheck


def _page(subject: Subject, name: str | None) -> str:
    title = "Maximum-margin report" + ("" if name is None else f": {name}")
    style = files("maxmargin.report").joinpath("page.css").read_text(encoding="utf-8")
    head = element(
        "head",
        void("meta", charset="utf-8"),
        Markup(f'<meta http-equiv="Content-Security-Policy" content="{_POLICY}">'),
        void("meta", name="viewport", content="width=device-width, initial-scale=1"),
        void("meta", name="color-scheme", content="light dark"),
        element("title", title),
        element("style", Markup(style)),
    )
    versions = (
        f"Written by maxmargin {__version__} (Python {sys.version.split()[0]}, NumPy {np.__version__}, scikit-learn "
        f"{sklearn.__version__})."
    )
    main = element("main", element("h1", title), *(part(subject) for part in _SECTIONS))
    whole = element("html", head, element("body", main, element("footer", element("p", versions))), lang="en")
    return f"<!DOCTYPE html>\n{whole}\n"


def result_of_check(subject: Subject) -> Markup:
    """Return the status of the fit, and whether its proof holds on these data."""
    status, recheck = subject.model.status_, subject.recheck
    colour, title, words, _ = CHECKS[recheck.outcome]
    if recheck.outcome is Outcome.HOLDS and status is Status.CERTIFIED:
        colour = "good"
    words = words.format(rows=len(subject.y), reason=recheck.words.rstrip("."))
    role = None if recheck.outcome is Outcome.HOLDS else "alert"
    return element(
        "div",
        paragraph(element("strong", status.value), f" — {subject.model.message_}"),
        paragraph(element("strong", title), f" — {words}", role=role),
        class_=f"verdict {colour}",
    )


def overview(subject: Subject) -> Markup:
    """Return the problem, the fit and the data in a few lines."""
    model, part = subject.model, subject.parts[0][1]
    facts = {
        "Model": f"{type(model).__name__}: {problem_name(part.problem)}",
        "Classes": _classes(subject),
        "Data of the fit": f"{part.rows} rows of {part.fingerprint.features} features",
        "Certified gap": f"{_gap(subject.recheck.certificate)}; asked for: {100.0 * model.tol:.2g} %",
        "Fit": _fit(model),
        "Accuracy on these data": _accuracy(subject),
    }
    entries = [element("div", element("dt", name), element("dd", words)) for name, words in facts.items()]
    return section("Overview", element("dl", *entries))


def certificate(subject: Subject) -> Markup:
    """Return the bounds, what they prove about rows, and their source; those of other data are claims."""
    recheck = subject.recheck
    holds = recheck.outcome is Outcome.HOLDS
    source = paragraph(CHECKS[recheck.outcome][3], class_=None if holds else "note")
    text = element("pre", subject.support.text(1) if holds else str(recheck.certificate))
    command, call = "maxmargin check MODEL DATA", "maxmargin.verify(model, X, y)"
    how = ["To recheck the bounds yourself: ", element("code", command), ", or ", element("code", call), "."]
    return section("Certificate", source, text, paragraph(*how))


def pictures(subject: Subject) -> Markup:
    """Return the section of all pictures that there are for this model and these data."""
    found = list(figures(subject))
    nothing = None if found else paragraph("There is nothing to draw: the model knows none of the labels.")
    drawn = element("div", *found, class_="figures")
    return section("Pictures", drawn, subject.unlisted("Margins of {} more problems are not drawn."), nothing)


def figures(subject: Subject) -> Iterator[Markup]:
    """Draw all pictures that there are for this model and these data."""
    yield from _history(subject)
    if subject.known.any():
        yield from _margins(subject)


def _history(subject: Subject) -> Iterator[Markup]:
    """Draw the bounds of the problem with the largest gap, if its history has two reports to draw."""
    # bounds of a margin that is proved not to exist say nothing
    proofs = verdicts_of(subject.model)
    bounded = [one for one in subject.decisions if not isinstance(proofs.get(one.label), Inseparable)]
    if not bounded:
        return
    widest = max(bounded, key=lambda one: one.certificate.gap if one.certificate else 0.0)
    history = [report for report in subject.model.history_ if report.label == widest.label]
    if sum(np.isfinite(report.lower) and np.isfinite(report.upper) for report in history) < 2:
        return
    words = (
        "Certified bounds against time. The optimum lies in the shaded interval between the two lines. Times were "
        "recorded during the fit."
    )
    yield _figure(words, BoundsDisplay, subject.model, label=widest.label)


def _margins(subject: Subject) -> Iterator[Markup]:
    """Draw the margins of each listed decision in which rows take part."""
    X, y, weights = subject.known_rows
    fitted = subject.recheck.outcome is not Outcome.OTHER_DATA
    support = "; bars in full colour are support vectors" if fitted else ""
    for one in subject.listed:
        if one.signs(y)[1].any():
            words = (
                f"Margins y f(x) of the rows, {one.positive} upwards and {one.negative} downwards. Rows left of 0 are "
                f"on the wrong side{support}."
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
    image = void("img", src=source, alt=alt, width=width, height=height)
    return element("figure", image, element("figcaption", words))


def support_vectors(subject: Subject) -> Markup:
    """Return the rows of the largest dual variables."""
    title = "Support vectors"
    if subject.recheck.outcome is Outcome.OTHER_DATA:
        words = "Support vectors are rows of the data of the fit. These are other data: their rows are not listed."
        return section(title, paragraph(words, class_="note"))
    if all(part.support.size == 0 for _, part in subject.parts):
        return section(title, paragraph("No row has a positive dual variable: no bound is proved by rows."))
    problem = subject.parts[0][1].problem
    bound = "upper bound on the margin" if problem.hard else "lower bound on the objective"
    words = (
        f"The {bound} is proved by the rows with a positive dual variable; it would be the same without all "
        "other rows. Rows are counted from 1."
    )
    if problem.loss == "hinge" and not problem.hard:
        words += " The cap of a dual variable is C times the sample weight; rows at it are listed by margin."
    tables = [_rows_table(subject, one, subject.support.parts[one.index]) for one in subject.listed]
    more = subject.unlisted("Rows of {} more problems are not listed.")
    return section(title, paragraph(words), *tables, more)


def features(subject: Subject) -> Markup:
    """Return the features of the largest weights."""
    title = "Features"
    if not hasattr(subject.model, "coef_"):
        kernel = subject.parts[0][1].kernel
        words = f"The kernel {kernel} gives no weight to a single feature."
        return section(title, paragraph(words))
    coef = np.asarray(subject.model.coef_, dtype=float)
    scaler: Any = StandardScaler(with_mean=False).fit(subject.X)
    effects = coef * np.sqrt(scaler.var_)
    sizes = np.abs(effects)
    largest = sizes.max(axis=1, keepdims=True)
    order = np.argsort(-sizes.max(axis=0), kind="stable")[: subject.top].tolist()
    matter = int((sizes > MATTERS * largest).any(axis=0).sum())
    caption = f"{matter} of {coef.shape[1]} effects are above {percent(MATTERS)} of the largest"
    if len(order) < coef.shape[1]:
        caption += f"; the {len(order)} largest"
    listed, single = subject.listed, len(coef) == 1
    if single:
        words = (
            f"Scores above 0 predict {listed[0].positive}, scores below 0 {listed[0].negative}; a feature of positive "
            "weight raises the score as it grows."
        )
        head = ["feature", "weight", "effect", "share of the largest"]
    else:
        words = "A feature of positive weight raises the score of the first class of a problem as it grows."
        if len(coef) > len(listed):
            words += f" The first {len(listed)} of {len(coef)} problems are listed."
        head = ["feature", *(one.name for one in listed)]
    words += " Features are ordered by effect: the weight times the standard deviation of the column."
    lines = []
    for j in order:
        bar = [f"{effects[0, j]:.4g}", _bar(effects[0, j] / (largest[0, 0] or 1.0))] if single else []
        lines.append([subject.names[j], *(f"{coef[one.index, j]:.6g}" for one in listed), *bar])
    return section(title, paragraph(words), table(caption, head, lines, range(1, len(head) - single)))


def _rows_table(subject: Subject, one: Decision, part: PartReport) -> Markup:
    """Return a table of the rows of the largest dual variables of one problem, if it has any."""
    support = part.certificate.support
    if support.size == 0:
        return paragraph(f"{one.name}: no row has a positive dual variable.")
    dual, margins, full = part.dual[support], part.margin[support], part.full[support]
    order = order_by_dual(dual, part.cap[support], margins, part.open)
    lines = []
    for k in order[: subject.top].tolist():
        row, margin = int(support[k]), float(margins[k])
        cap = ["yes" if full[k] else "no"] if part.capped else []
        place = _place(margin, subject.model.tol)
        lines.append([row + 1, text_of(subject.y[row]), f"{dual[k]:.6g}", *cap, f"{margin:.6g}", place])
    head = [
        "row",
        "label",
        "dual variable",
        *(["at its cap"] if part.capped else []),
        "margin y f(x)",
        "where",
    ]
    caption = f"{support.size} of {part.certificate.rows} rows have a positive dual variable"
    if part.capped:
        caption += f", {int(full.sum())} of them at the cap"
    if len(subject.parts) > 1:
        caption = f"{one.name}: {caption}"
    if len(lines) < support.size:
        caption += f"; the {len(lines)} largest"
    return table(caption, head, lines, (0, 2, 4 if part.capped else 3))


def _classes(subject: Subject) -> str:
    classes = [text_of(name) for name in subject.model.classes_]
    words = f"{len(classes)}: {', '.join(classes[:MOST_CLASSES])}"
    if len(classes) > MOST_CLASSES:
        words += f" and {len(classes) - MOST_CLASSES} more"
    return words


def _fit(model: Any) -> str:
    words = f"{model.n_iter_} round{'' if model.n_iter_ == 1 else 's'}"
    if not model.history_:
        return f"{words}; no history is stored"
    stages = ", ".join(dict.fromkeys(report.stage for report in model.history_))
    seconds = max(report.seconds for report in model.history_)
    time = f"{1e3 * seconds:.3g} ms" if seconds < 1.0 else f"{seconds:.3g} s"
    return f"{words} ({stages}), {time}"


def _accuracy(subject: Subject) -> str:
    predicted = subject.decisions[0].model.predict(subject.X)
    right, strange = int(np.sum(predicted == subject.y)), int(np.sum(~subject.known))
    words = f"{percent(right / len(subject.y))} ({right} of {len(subject.y)} rows)"
    return f"{words}; {strange} rows have labels that the model does not know" if strange else words


def _gap(found: Certificate | Certificates) -> str:
    """Return the relative gap of a certificate, or why there is none."""
    if found.proves_nothing:
        return "none, nothing is proved"
    return f"{100.0 * max(found.gap, 0.0):.2g} %" if found.gap < NO_GAP else "none, one bound proves nothing"


def _place(margin: float, tol: float) -> str:
    """Return the place of a row, to the accuracy of a fit of this tolerance."""
    if abs(margin - 1.0) <= max(ON_MARGIN, tol):
        return "on the margin"
    if margin < 0.0:
        return "on the wrong side"
    return "inside the margin" if margin < 1.0 else "beyond the margin"


def _bar(share: float) -> Markup:
    """Return a bar of this length, hidden from screen readers: the number stands beside it."""
    side, width = "plus" if share >= 0.0 else "minus", max(abs(share), SHORTEST_BAR)
    return element("span", class_=f"bar {side}", style=f"width:{width * 100:.1f}%", aria_hidden="true")


_SECTIONS = (result_of_check, overview, certificate, pictures, support_vectors, features)
