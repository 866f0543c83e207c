"""Subject of a report, a model and data with the result of rechecking its certificate; and HTML elements."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from functools import cached_property
from html import escape
from typing import Any

import numpy as np

from ..certificates.certificate import Certificate, CertificateError, Certificates
from ..certificates.verdicts import Inseparable
from ..certificates.verification import verdicts_of, verify, verify_verdicts
from ..estimators.decisions import Decision, decisions
from ..estimators.explanation import SupportReport, explained

MOST_DECISIONS = 6  # decisions that are drawn and listed: more would make the page long and slow to write


class Outcome(StrEnum):
    """Result of recomputing a certificate from data."""

    HOLDS = "HOLDS"  #: every bound was recomputed from the data, and holds
    NOTHING_PROVED = "NOTHING_PROVED"  #: the data are those of the fit, which ended before it found a bound
    FAILS = "FAILS"  #: the data are those of the fit, and a bound does not hold
    OTHER_DATA = "OTHER_DATA"  #: the data are not those of the fit, and say nothing about its certificate


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
    """A fitted model and the data of its report.

    Parameters
    ----------
    model : MaxMarginClassifier or KernelMaxMarginClassifier
    X : ndarray or CSR matrix of shape (n, d)
    y : ndarray of shape (n,)
    sample_weight : ndarray of shape (n,) or None
    names : list of str
        Of the features.
    top : int
        Largest number of rows and features in tables.
    """

    model: Any
    X: Any
    y: np.ndarray
    sample_weight: np.ndarray | None
    names: list[str]
    top: int

    @cached_property
    def decisions(self) -> list[Decision]:
        """The binary decisions of the model; they take arrays without names."""
        return decisions(self.model)

    @property
    def listed(self) -> list[Decision]:
        """The decisions that are drawn and listed one by one."""
        return self.decisions[:MOST_DECISIONS]

    def unlisted(self, words: str) -> Markup | None:
        """Return a sentence about the number of decisions that are not listed, if there are any."""
        more = len(self.decisions) - MOST_DECISIONS
        return paragraph(words.format(more)) if more > 0 else None

    @cached_property
    def recheck(self) -> Recheck:
        """The result of recomputing the certificate from the data."""
        claim = self.model.certificate_
        for one in self.decisions:
            difference = one.difference(self.X, self.y, self.sample_weight)
            if difference is not None:
                return Recheck(Outcome.OTHER_DATA, difference, claim)
        try:
            found = verify(self.model, self.X, self.y, self.sample_weight)
            verify_verdicts(self.model, self.X, self.y, self.sample_weight)
        except CertificateError as error:
            return Recheck(Outcome.FAILS, str(error), claim)
        inseparable = any(isinstance(proof, Inseparable) for proof in verdicts_of(self.model).values())
        if found.proves_nothing and not inseparable:
            words = "nothing is proved: the fit ended before it found a bound"
            return Recheck(Outcome.NOTHING_PROVED, words, found)
        return Recheck(Outcome.HOLDS, "", found)

    @cached_property
    def support(self) -> SupportReport:
        """Facts about each row by the certificate: the recomputed one where it holds, else that of the fit."""
        return explained(self.model, self.X, self.y, self.sample_weight, self.recheck.certificate)

    @cached_property
    def known(self) -> np.ndarray:
        """Rows whose labels the model knows, a mask of shape (n,)."""
        return np.isin(self.y, self.model.classes_)

    @property
    def known_rows(self) -> tuple[Any, np.ndarray, np.ndarray | None]:
        """X, y and sample weights of the rows whose labels the model knows."""
        known, weights = self.known, self.sample_weight
        if known.all():
            return self.X, self.y, weights
        return self.X[known], self.y[known], None if weights is None else weights[known]

    @property
    def parts(self) -> list[tuple[Decision, Certificate]]:
        """Every decision with its certificate, recomputed if it holds."""
        return list(zip(self.decisions, self.recheck.certificate.certificates, strict=True))


class Markup(str):
    """Text that is HTML already."""

    __slots__ = ()


def element(name: str, /, *content: Any, **attributes: Any) -> Markup:
    """Return an element; its content is escaped unless it is Markup, and None is left out.

    Attributes are given as keywords, with an underscore at the end where Python has a word of that name; inner
    underscores are hyphens. True stands for an attribute without a value, None for no attribute.
    """
    return Markup(f"<{name}{_attributes(attributes)}>{joined(content)}</{name}>")


def paragraph(*content: Any, **attributes: Any) -> Markup:
    """Return an element p."""
    return element("p", *content, **attributes)


def section(title: str, *content: Any) -> Markup:
    """Return a section with its title, by which it can be referred to."""
    name = title.lower().replace(" ", "-")
    return element("section", element("h2", title, id=name), *content, aria_labelledby=name)


def void(name: str, /, **attributes: Any) -> Markup:
    """Return an element without content."""
    return Markup(f"<{name}{_attributes(attributes)}>")


def joined(content: Iterable[Any]) -> Markup:
    """Return several pieces, one after the other."""
    return Markup("".join(_text(piece) for piece in content))


def table(
    caption: str, head: Sequence[str], rows: Iterable[Sequence[Any]], numbers: Sequence[int] = ()
) -> Markup:
    """Return a table whose first cell of each row is its header; columns in `numbers` are aligned at the right."""

    def cell(name: str, k: int, content: Any, scope: str | None = None) -> Markup:
        return element(name, content, scope=scope, class_="number" if k in numbers else None)

    titles = [cell("th", k, title, "col") for k, title in enumerate(head)]
    lines = []
    for first, *others in rows:
        cells = [cell("td", k, content) for k, content in enumerate(others, 1)]
        lines.append(element("tr", cell("th", 0, first, "row"), *cells))
    top = element("thead", element("tr", *titles))
    whole = element("table", element("caption", caption), top, element("tbody", *lines))
    # wide tables scroll by themselves, by keyboard too
    return element("div", whole, class_="wide", tabindex="0", role="region", aria_label=caption)


def _text(piece: Any) -> str:
    if piece is None:
        return ""
    return piece if isinstance(piece, Markup) else escape(str(piece))


def _attributes(given: dict[str, Any]) -> str:
    found = []
    for name, value in given.items():
        if value is None:
            continue
        name = name.removesuffix("_").replace("_", "-")
        found.append(f" {name}" if value is True else f' {name}="{escape(str(value))}"')
    return "".join(found)
