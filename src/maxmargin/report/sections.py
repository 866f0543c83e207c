"""The sections of a report, each a function of its subject."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ..certificates.bounds import INTERCEPT, Certificate, Certificates
from ..certificates.verification import verdicts_of
from ..estimators.decisions import Decision, text_of
from ..estimators.explanation import at_cap, by_weight, left_open
from ..kernels.functions import Linear
from ..plots.style import percent
from ..problem.problem import Problem
from ..problem.status import Status
from .figures import MOST, figures
from .markup import Markup, element, joined, table
from .subject import Outcome, Subject

MATTERS = 1e-3  # share of the largest weight above which another one counts

STATUS_WORDS = {
    Status.CERTIFIED: "the fit ended with the gap that was asked for",
    Status.CONVERGED: "the algorithm ended by its own criterion, with a gap larger than was asked for",
    Status.MAX_ITER: "the fit was ended by its limit of rounds, with a gap larger than was asked for",
    Status.STALLED: "float64 numbers led no further, with a gap larger than was asked for",
    Status.MAX_TIME: "the fit was ended by its limit of time, with a gap larger than was asked for",
    Status.INTERRUPTED: "the fit was interrupted, and the best model so far kept",
    Status.INSEPARABLE: "no surface separates the classes, and there is an exact proof of that",
    Status.UNDECIDED: "no separator was found, and no proof that there is none",
    Status.NOT_FINITE: "numbers overflowed: the scale of the data is beyond float64",
}


def verdict(subject: Subject) -> Markup:
    """What is to be said first: how the fit ended, and whether its proof holds on these data."""
    status, recheck = subject.model.status_, subject.recheck
    facts = [element("p", element("strong", status.value), f" — {STATUS_WORDS[status]}.")]
    if recheck.outcome is Outcome.HOLDS:
        mood = "good" if status is Status.CERTIFIED else "fair"
        facts.append(
            element(
                "p",
                element("strong", "Proof rechecked"),
                f" — every bound was recomputed from the {len(subject.y)} rows of these data, and holds.",
            )
        )
    elif recheck.outcome is Outcome.NOTHING_PROVED:
        mood = "bad"
        facts.append(
            element(
                "p",
                element("strong", "Nothing is proved"),
                " — the fit ended before it found a bound, and there is nothing to recheck.",
                role="alert",
            )
        )
    elif recheck.outcome is Outcome.FAILS:
        mood = "bad"
        facts.append(
            element(
                "p",
                element("strong", "The proof does not hold"),
                f" — {_sentence(recheck.words)}",
                role="alert",
            )
        )
    else:
        mood = "fair"
        facts.append(
            element(
                "p",
                element("strong", "Other data"),
                f" — these are not the data that the model was fitted to ({recheck.words.rstrip('.')}). Its "
                "certificate is about those, and was not rechecked here; accuracy, margins and robustness below are "
                "about the data of this report.",
                role="alert",
            )
        )
    return element("div", *facts, class_=f"verdict {mood}")


def overview(subject: Subject) -> Markup:
    """The problem, the fit and the data in a few lines."""
    model = subject.model
    certificate = subject.parts[0][1]
    problem = certificate.problem
    classes = [text_of(name) for name in model.classes_]
    shown = ", ".join(classes[:12]) + (f" and {len(classes) - 12} more" if len(classes) > 12 else "")
    stages = list(dict.fromkeys(report.stage for report in model.history_))
    seconds = max((report.seconds for report in model.history_), default=float("nan"))
    right = int(np.sum(subject.predicted == subject.y))
    accuracy = f"{percent(right / len(subject.y))} ({right} of {len(subject.y)} rows)"
    strange = int(np.sum(~subject.known))
    if strange:
        accuracy += f"; {strange} rows have labels that the model does not know"
    facts = {
        "Model": f"{type(model).__name__}: {'hard margin' if problem.hard else _loss(problem)}, {_space(certificate)}",
        "Looked for": _asked(problem, certificate),
        "Classes": f"{len(classes)}: {shown}" + (f", {_scheme(subject)}" if len(classes) > 2 else ""),
        "Data of the fit": f"{certificate.rows} rows of {certificate.fingerprint.features} features",
        "Certified gap": f"{_certified_gap(subject.recheck.certificate)}; asked for: {_gap(model.tol)}",
        "Fit": f"{model.n_iter_} round{'' if model.n_iter_ == 1 else 's'}"
        + (f" ({', '.join(stages)}), {_seconds(seconds)}" if stages else "; no history is stored"),
        "Accuracy on these data": accuracy,
    }
    entries = [element("div", element("dt", name), element("dd", words)) for name, words in facts.items()]
    return _section("Overview", element("dl", *entries))


def certificate(subject: Subject) -> Markup:
    """The bounds in words, and what was recomputed."""
    holds = subject.recheck.outcome is Outcome.HOLDS
    source = {
        Outcome.HOLDS: "All numbers were recomputed from the data by code that shares nothing with the solver, and "
        "rounded outwards.",
        Outcome.NOTHING_PROVED: "Neither bound is known, and there is nothing to recompute.",
        Outcome.FAILS: "These are the numbers that the model claims; the data contradict them.",
        Outcome.OTHER_DATA: "These are the numbers that the model claims about the data of its fit; they were not "
        "rechecked.",
    }[subject.recheck.outcome]
    words: list[Any] = [element("p", source, class_=None if holds else "note")]
    if len(subject.parts) == 1:
        words += [element("p", line) for line in _in_words(subject.parts[0][1], subject.is_linear)]
    else:
        what = "margin" if subject.parts[0][1].problem.hard else "objective"
        words.append(
            table(
                f"Bounds on the best {what} of each problem",
                ["problem", "at least", "at most", "certified gap", "proved by"],
                [
                    [
                        one.name,
                        f"{c.lower:.9g}",
                        f"{c.upper:.9g}",
                        _certified_gap(c),
                        f"{c.support.size} of {c.rows} rows",
                    ]
                    for one, c in subject.parts
                ],
                numbers=(1, 2, 3, 4),
            )
        )
    for label, one in verdicts_of(subject.model).items():
        title = "The exact proof" if label is None else f"The exact proof about class {text_of(label)}"
        words += [element("h3", title), element("pre", str(one))]
    recheck = element("code", "maxmargin check MODEL DATA")
    words.append(
        element(
            "p",
            "To recheck the bounds yourself: ",
            recheck,
            ", or ",
            element("code", "maxmargin.verify(model, X, y)"),
            ".",
        )
    )
    return _section("Certificate", *words)


def pictures(subject: Subject) -> Markup:
    """All pictures there are."""
    found = list(figures(subject))
    left_out = len(subject.decisions) - MOST
    more = element("p", f"Margins of {left_out} more problems are not drawn.") if left_out > 0 else None
    nothing = None if found else element("p", "There is nothing to draw: the model knows none of the labels.")
    return _section("Pictures", element("div", *found, class_="figures"), more, nothing)


def decisive_rows(subject: Subject) -> Markup:
    """The rows of the largest dual weights."""
    title = "Decisive rows"
    if subject.recheck.outcome is Outcome.OTHER_DATA:
        return _section(
            title,
            element(
                "p",
                "The rows that the model is made of are those of its fit, by number; the rows of these data are "
                "others, and are not listed.",
                class_="note",
            ),
        )
    if all(part.support.size == 0 for _, part in subject.parts):
        return _section(title, element("p", "No row has a dual weight, and no row bounds the best value."))
    problem = subject.parts[0][1].problem
    bound = "No margin above the bound" if problem.hard else "No objective below the bound"
    words = (
        f"{bound} is possible because of the rows with a dual weight alone: the others could be left out, and the "
        "bound would be the same. Rows are counted from 0."
    )
    if problem.loss == "hinge" and not problem.hard:
        words += " A row at its cap pulls as hard as C and its sample weight allow; of these, lowest margins are first."
    tables = [_rows_table(subject, one, part) for one, part in subject.parts[:MOST]]
    left_out = len(subject.parts) - MOST
    more = element("p", f"Rows of {left_out} more problems are not listed.") if left_out > 0 else None
    return _section(title, element("p", words), *tables, more)


def certain(subject: Subject) -> Markup | None:
    """What is certain of every row at the optimum, and of the classifiers without it."""
    if subject.recheck.outcome is not Outcome.HOLDS:
        return None
    found = subject.support
    words: list[Any] = []
    between = found.leave_one_out
    if between is not None:
        words.append(
            element(
                "p",
                f"Left out one by one, between {between[0]} and {between[1]} of {len(subject.y)} rows would be "
                "labelled wrongly by the classifier learnt without them. That follows from the certified gap; nothing "
                "was fitted again.",
            )
        )
    lines = []
    for one, part in zip(subject.decisions, found.parts, strict=True):
        told = part.optimum
        counts = ("not known",) * 2 if told is None else (
            str(int((told.weightless & part.takes_part).sum())), str(int((told.inside & part.takes_part).sum()))
        )  # fmt: skip
        lines.append([one.name, *counts, _numbers(part.suspects, subject.top) or "none"])
    head = [
        "problem",
        "without weight in every optimum",
        "margin below one in every optimum",
        "perhaps mislabelled",
    ]
    words.append(table("What is certain of the rows", head, lines, numbers=(1, 2)))
    if found.contradictory:
        sets = "; ".join(_numbers(rows, subject.top) for rows in found.contradictory[: subject.top])
        words.append(element("p", f"Rows that are equal, with different labels: {sets}."))
    return _section("Certain", *words)


def _numbers(rows: np.ndarray, most: int) -> str:
    """The first of these rows."""
    shown = ", ".join(map(str, rows[:most].tolist()))
    return shown if rows.size <= most else f"{shown} and {rows.size - most} more"


def _rows_table(subject: Subject, one: Decision, part: Certificate) -> Markup:
    if part.support.size == 0:
        return element("p", f"{one.name}: no row has a dual weight.")
    signs, _ = one.signs(subject.y)
    weights = np.ones(len(subject.y)) if subject.sample_weight is None else subject.sample_weight
    factors = dict(zip(subject.model.classes_.tolist(), subject.model.class_weight_.tolist(), strict=True))
    every = weights * np.array([factors.get(label, 1.0) for label in subject.y.tolist()])
    caps = part.problem.caps(every)[part.support]
    full = at_cap(part.dual, caps, left_open(part))
    capped = bool(np.isfinite(caps).any())
    margins = signs[part.support] * one.scores(subject.X[part.support])
    order = by_weight(part.dual, caps, margins, left_open(part))[: subject.top]
    lines = [
        [
            int(part.support[k]),
            text_of(subject.y[part.support[k]]),
            f"{part.dual[k]:.6g}",
            *(["yes" if full[k] else "no"] if capped else []),
            f"{margins[k]:.6g}",
            _place(float(margins[k]), subject.model.tol),
        ]
        for k in order.tolist()
    ]
    head = ["row", "label", "dual weight", *(["at its cap"] if capped else []), "margin y f(x)", "where"]
    count = f"{part.support.size} of {part.rows} rows have a dual weight"
    if capped:
        count += f", {int(full.sum())} of them at the cap"
    about = "" if len(subject.parts) == 1 else f"{one.name}: "
    shown = f"; the {len(lines)} largest" if len(lines) < part.support.size else ""
    return table(f"{about}{count}{shown}", head, lines, numbers=(0, 2, 4 if capped else 3))


def features(subject: Subject) -> Markup:
    """The features of the largest weights."""
    title = "Features"
    if not subject.is_linear:
        kernel = subject.parts[0][1].kernel
        return _section(
            title, element("p", f"A function of the kernel {kernel} has no weights of single features.")
        )
    coef = np.asarray(subject.model.coef_, dtype=float)
    sizes = np.abs(coef)
    largest = sizes.max(axis=1, keepdims=True)
    order = np.argsort(-sizes.max(axis=0), kind="stable")[: subject.top]
    matter = int((sizes > MATTERS * largest).any(axis=0).sum())
    count = f"{matter} of {coef.shape[1]} weights are above {MATTERS:g} of the largest"
    shown = f"; the {order.size} largest" if order.size < coef.shape[1] else ""
    if coef.shape[0] == 1:
        longest = float(largest[0, 0]) or 1.0
        first, second = subject.decisions[0].positive, subject.decisions[0].negative
        words = f"A feature of positive weight speaks for {first}, one of negative weight for {second}, as it grows."
        lines = [
            [subject.names[j], f"{coef[0, j]:.6g}", _bar(float(coef[0, j]) / longest)] for j in order.tolist()
        ]
        found = table(f"{count}{shown}", ["feature", "weight", "share of the largest"], lines, numbers=(1,))
    else:
        columns = subject.decisions[:MOST]
        words = "A feature of positive weight speaks for the first side of a problem, as it grows."
        if len(subject.decisions) > MOST:
            words += f" The first {MOST} of {len(subject.decisions)} problems are listed."
        lines = [
            [subject.names[j], *(f"{coef[one.place, j]:.6g}" for one in columns)] for j in order.tolist()
        ]
        head = ["feature", *(one.name for one in columns)]
        found = table(f"{count}{shown}", head, lines, numbers=range(1, len(head)))
    return _section(title, element("p", words), found)


SECTIONS: tuple[Callable[[Subject], Markup | None], ...] = (
    overview, certificate, pictures, decisive_rows, certain, features,
)  # fmt: skip


def _section(title: str, *content: Any) -> Markup:
    name = title.lower().replace(" ", "-")
    return element("section", element("h2", title, id=name), *content, aria_labelledby=name)


def _in_words(part: Certificate, linear: bool) -> list[str]:
    """One certificate in sentences."""
    problem = part.problem
    if part.proves_nothing:
        return ["Nothing is proved: the fit ended before it found a bound."]
    kind = "linear function" if linear else f"function of the kernel {part.kernel}"
    if problem.hard:
        norm = f"measured in the {_norm(problem.p)}-norm" if linear else "measured in the space of the kernel"
        held = (
            f"Every row is on its side of the surface, {part.lower:.10g} away from it at least, {norm}."
            if part.lower > 0.0
            else "Some row is on the wrong side of the surface, or on it: the smallest margin is at least "
            f"{part.lower:.10g}."
        )
        most = f"No {kind} has a margin above {part.upper:.10g}: {part.support.size} of {part.rows} rows prove it."
        return [held, most]
    return [
        f"No {kind} has an objective below {part.lower:.12g}: {part.support.size} of {part.rows} rows prove it.",
        f"This one has an objective of at most {part.upper:.12g}.",
        f"So it exceeds the best possible by at most {_gap(part.gap)}.",
    ]


def _asked(problem: Problem, part: Certificate) -> str:
    """What is optimised."""
    if problem.hard:
        return "the surface with the widest margin that has every row on its side"
    q = _norm(problem.q)
    norm = f"½ ‖w‖{'' if problem.q == 2 else f' (norm {q})'}²" if problem.power == 2 else f"‖w‖ (norm {q})"
    loss = "max(0, 1 − y f(x))" + ("²" if problem.loss == "squared_hinge" else "")
    return f"the least {norm} + C Σ {loss}"


def _loss(problem: Problem) -> str:
    return f"{problem.loss.replace('_', ' ')}, C = {problem.C:g}"


def _space(part: Certificate) -> str:
    space = f"p = {_norm(part.problem.p)}" if isinstance(part.kernel, Linear) else f"kernel {part.kernel}"
    return f"{space}, {INTERCEPT[part.problem.intercept]}"


def _scheme(subject: Subject) -> str:
    return (
        "each against each other"
        if isinstance(subject.decisions[0].label, tuple)
        else "each against the rest"
    )


def _norm(p: float) -> str:
    return "∞" if np.isinf(p) else f"{p:.4g}"


def _gap(gap: float) -> str:
    """A relative gap; beyond any sense where the better bound is none, as of a margin that is not reached."""
    return f"{100.0 * max(gap, 0.0):.2g} %" if gap < 1e4 else "none, one bound proves nothing"


def _certified_gap(part: Certificate | Certificates) -> str:
    """The relative gap of a certificate, or that it proves nothing."""
    return "none, nothing is proved" if part.proves_nothing else _gap(part.gap)


def _seconds(seconds: float) -> str:
    return f"{1e3 * seconds:.3g} ms" if seconds < 1.0 else f"{seconds:.3g} s"


def _place(margin: float, tol: float) -> str:
    """Where a row lies, as far as a fit of this tolerance tells."""
    near = max(1e-6, tol)
    if abs(margin - 1.0) <= near:
        return "on the margin"
    if margin < 0.0:
        return "on the wrong side"
    return "inside the margin" if margin < 1.0 else "beyond the margin"


def _bar(share: float) -> Markup:
    """A bar as long as a share, for the eye only: the number stands beside it."""
    side = "plus" if share >= 0.0 else "minus"
    return element(
        "span", class_=f"bar {side}", style=f"width:{max(abs(share), 0.005) * 100:.1f}%", aria_hidden="true"
    )


def _sentence(words: str) -> str:
    return words if words.endswith(".") else f"{words}."


def body(subject: Subject) -> Markup:
    """The verdict and all sections."""
    return joined([verdict(subject), *(section(subject) for section in SECTIONS)])
