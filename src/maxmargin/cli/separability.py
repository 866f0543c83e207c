"""What is said of separability: a separator with its margin, or the rows that prove that there is none."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ..certificates.verdicts import Inseparable, Verdict

SHORT = 24  # characters of a fraction that is printed


def facts(verdict: Verdict) -> dict[str, Any]:
    """A verdict as plain values; rows are counted from 1, as `in_words` does."""
    from ..certificates.kernel_verdicts import KernelSeparator
    from ..certificates.verdicts import Inseparable, LinearSeparator, Separable

    told: dict[str, Any] = {
        "separable": verdict.separable,
        "classes": list(verdict.classes),
        "p": verdict.p,
        "bias": verdict.bias,
        "method": verdict.method,
        "seconds": verdict.seconds,
    }
    if isinstance(verdict, Separable):
        point: dict[str, Any] = {}
        if isinstance(verdict, LinearSeparator):
            point = {"coef": verdict.w.tolist(), "intercept": verdict.b}
        if isinstance(verdict, KernelSeparator):
            point = {"dual_coef": verdict.coefficients.tolist(), "intercept": verdict.b}
        return told | {"lower": verdict.lo, "upper": verdict.hi} | point
    rows = [
        {"row": i + 1, "weight": value}
        for i, value in zip(verdict.support.tolist(), verdict.alpha.tolist(), strict=True)
    ]
    if isinstance(verdict, Inseparable):
        for row, weight in zip(rows, verdict.weights, strict=True):
            row["exact"] = str(weight)
        return told | {"reason": verdict.words(1), "radius": verdict.radius, "proof": rows}
    return told | {"lower": verdict.lo, "upper": verdict.hi, "reason": verdict.reason, "weights": rows}


def in_words(verdict: Verdict, labels: Any, sides: tuple[str, str] | None = None) -> str:
    """A verdict in words; rows of data are counted from 1, header lines apart.

    `sides` are the names of the negative and the positive side, where those of the classes do not say it.
    """
    from ..certificates.verdicts import Inseparable, Separable
    from ..kernels.functions import Linear
    from .summary import text_of

    negative, positive = sides or map(text_of, verdict.classes)
    through = "" if verdict.bias else " through the origin"
    what = (
        "hyperplane"
        if isinstance(verdict.kernel, Linear)
        else f"function of the {verdict.kernel.name} kernel"
    )
    claim = f"{what}{through} has {negative} on one side and {positive} on the other"
    found = f"({verdict.method}, {verdict.seconds:.2g} s)"
    if isinstance(verdict, Inseparable):
        return "\n".join([f"NOT SEPARABLE: no {claim} {found}", *_proof(verdict, labels)])
    if isinstance(verdict, Separable):
        bounds = f"{verdict.lo:.9g} <= largest margin <= {verdict.hi:.9g} (p = {verdict.p:g})"
        digits = f"\n{verdict.digits}" if verdict.digits else ""
        return f"SEPARABLE: a {claim} {found}\n{bounds}{digits}"
    return (
        f"UNDECIDED: {verdict.reason} {found}\n"
        f"largest margin <= {verdict.hi:.9g} (p = {verdict.p:g}), as weights on {verdict.support.size} rows show"
    )


def in_all_words(model: Any, labels: Any, certificate: Any) -> Iterator[str]:
    """What a model has to say of hard margins without a separator, and its bounds; `labels` are those of the rows."""
    from ..certificates.verification import verdicts_of
    from .summary import text_of

    for label, verdict in verdicts_of(model).items():
        against_rest = label is not None and not isinstance(label, tuple)
        yield in_words(verdict, labels, ("the rest", text_of(label)) if against_rest else None)
    # of two classes without a separator there are no bounds to speak of
    if not inseparable(model) or len(model.classes_) > 2:
        yield str(certificate)


def inseparable(model: Any) -> bool:
    """Is it proved of one problem, at least, that it has no separator?"""
    from ..certificates.verdicts import Inseparable
    from ..certificates.verification import verdicts_of

    return any(isinstance(verdict, Inseparable) for verdict in verdicts_of(model).values())


def _proof(verdict: Inseparable, labels: Any) -> list[str]:
    """The rows that prove it, and why they do."""
    from ..kernels.functions import Linear
    from .summary import text_of

    lines = [verdict.words(1), "", f"{'row':>8}  {'class':>10}  weight"]
    for i, weight in zip(verdict.support.tolist(), verdict.weights, strict=True):
        exact = f" = {weight}" if len(str(weight)) <= SHORT else ""
        lines.append(f"{i + 1:8d}  {text_of(labels[i]):>10}  {float(weight):.6g}{exact}")
    signs = ", and so does weight x sign" if verdict.bias else ""
    rows = "row" if isinstance(verdict.kernel, Linear) else "feature of a row"
    lines += [
        "",
        f"with -1 and 1 as the signs of the classes, weight x sign x {rows} adds up to exactly 0{signs}:",
        "a separator with every row on its side would make that sum positive",
    ]
    if verdict.radius:
        lines.append(
            f"whatever the hyperplane, the margin of some row is at most -{verdict.radius:.6g} (p = {verdict.p:g})"
        )
    return lines
