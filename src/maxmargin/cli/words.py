"""Results of fits, checks and separations as text and as JSON."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from ..certificates.verdicts import Inseparable, KernelSeparator, LinearSeparator, Separable, Verdict
from ..certificates.verification import verdicts_of
from ..estimators.decisions import text_of
from ..estimators.explanation import SHOWN
from ..kernels.functions import Linear
from ..problem.problem import Problem

# fits


def fit_facts(model: Any, certificate: Any, names: list[str] | None = None) -> dict[str, Any]:
    """Return a model and its certificate as plain values; `names` are those of the features."""
    parts = list(certificate.certificates)
    bounds = []
    for label, part in zip(certificate.classes, parts, strict=True):
        numbers = {name: getattr(part, name) for name in ("lower", "upper", "gap")}
        bounds.append({"class": label} | numbers | {"proved_by_rows": part.support.size})
    verdicts = [{"class": label, **verdict_facts(verdict)} for label, verdict in verdicts_of(model).items()]
    unproved = nothing_proved(model, certificate)
    return {
        "status": model.status_.value,
        "gap": certificate.gap,
        "tol": model.tol,
        "rounds": model.n_iter_,
        "stages": [{"algorithm": name, "reason": reason} for name, reason in _stages(model)],
        "rows": parts[0].rows,
        "features": model.n_features_in_,
        "feature_names": names,
        "classes": list(model.classes_),
        "problem": problem_facts(parts[0].problem) | {"kernel": str(parts[0].kernel)},
        "bounds": bounds,
        **({"verdicts": verdicts} if verdicts else {}),
        **({"nothing_proved": unproved} if unproved else {}),
    }


def problem_facts(problem: Problem) -> dict[str, Any]:
    """Return the parameters of a problem as plain values."""
    return {name: getattr(problem, name) for name in ("loss", "C", "p", "power", "intercept")}


def nothing_proved(model: Any, certificate: Any) -> str | None:
    """Say about which problems nothing is proved; None where each has a bound or the proof of no separator."""
    verdicts = verdicts_of(model)
    unproved = [
        label
        for label, part in zip(certificate.classes, certificate.certificates, strict=True)
        if part.proves_nothing and not isinstance(verdicts.get(label), Inseparable)
    ]
    if not unproved:
        return None
    about = "" if unproved == [None] else f" about {', '.join(map(text_of, unproved))}"
    return f"nothing is proved{about}: the fit ended before it found a bound"


def _stages(model: Any) -> list[tuple[str, str]]:
    """Return the distinct algorithms of a fit in order, each with the reason why it was chosen."""
    return list(dict.fromkeys((report.stage, report.reason) for report in model.history_))


def stages_line(model: Any) -> str:
    """Return a line with the algorithms of a fit, in order, and the reasons why they were chosen."""
    return "solved by " + ", then ".join(f"{name}: {reason}" for name, reason in _stages(model))


def weight_lines(model: Any, names: list[str] | None) -> Iterator[str]:
    """Yield a line a class with the largest weights of a linear model whose features have names."""
    if names is None or not hasattr(model, "coef_"):
        return
    classes = list(model.classes_)
    for label, row in zip(classes if len(classes) > 2 else classes[1:], model.coef_, strict=True):
        largest = sorted(range(len(names)), key=lambda j: -abs(row[j]))[:SHOWN]
        shown = ", ".join(f"{names[j]} {row[j]:.4g}" for j in largest)
        more = ", ..." if len(names) > SHOWN else ""
        yield f"weights for {text_of(label)}: {shown}{more}"


def bound_lines(model: Any, label_of: Callable[[int], Any], certificate: Any) -> Iterator[str]:
    """Yield the verdicts and the bounds of a model; `label_of` returns the label of a row."""
    for label, verdict in verdicts_of(model).items():
        lines = "\n".join(verdict_lines(verdict, label_of))
        yield lines if label is None else f"{text_of(label)}: {lines}"
    # a hard margin of two classes without a separator has no bounds
    if not is_inseparable(model) or len(model.classes_) > 2:
        yield str(certificate)


# verdicts on separability


def is_inseparable(model: Any) -> bool:
    """Return whether one of the problems of a model, at least, is proved to have no separator."""
    return any(isinstance(verdict, Inseparable) for verdict in verdicts_of(model).values())


def verdict_facts(verdict: Verdict) -> dict[str, Any]:
    """Return a verdict as plain values; rows are counted from 1, as in `verdict_lines`."""
    facts: dict[str, Any] = {"separable": verdict.separable, "classes": list(verdict.classes)}
    facts |= {name: getattr(verdict, name) for name in ("p", "bias", "method", "seconds")}
    if isinstance(verdict, Separable):
        facts |= {"lower": verdict.lo, "upper": verdict.hi}
        if isinstance(verdict, LinearSeparator):
            facts |= {"coef": verdict.w.tolist(), "intercept": verdict.b}
        if isinstance(verdict, KernelSeparator):
            facts |= {"dual_coef": verdict.coefficients.tolist(), "intercept": verdict.b}
        return facts
    weights = zip(verdict.support.tolist(), verdict.alpha.tolist(), strict=True)
    rows = [{"row": i + 1, "weight": weight} for i, weight in weights]
    if isinstance(verdict, Inseparable):
        for row, weight in zip(rows, verdict.weights, strict=True):
            row["exact"] = str(weight)
        return facts | {"reason": verdict.words(1), "radius": verdict.radius, "proof": rows}
    return facts | {"lower": verdict.lo, "upper": verdict.hi, "reason": verdict.reason, "weights": rows}


def verdict_lines(verdict: Verdict, label_of: Callable[[int], Any]) -> Iterator[str]:
    """Yield a verdict as text, with a table of the rows and weights that prove that there is no separator.

    Rows of data are counted from 1, header lines apart; `label_of` returns the label of one.
    """
    if not isinstance(verdict, Inseparable):
        yield str(verdict)
        return
    yield f"{verdict.text(1)}\n\n{'row':>8}  {'class':>10}  weight"
    for i, weight in zip(verdict.support.tolist(), verdict.weights, strict=True):
        exact = f" = {weight}" if len(str(weight)) <= 24 else ""  # longer ones break the table
        yield f"{i + 1:8d}  {text_of(label_of(i)):>10}  {float(weight):.6g}{exact}"
    signs = ", and so does weight x sign" if verdict.bias else ""
    rows = "row" if isinstance(verdict.kernel, Linear) else "feature of a row"
    yield f"\nwith -1 and 1 as the signs of the classes, weight x sign x {rows} adds up to exactly 0{signs}:"
    yield "a separator with every row on its side would make that sum positive"
