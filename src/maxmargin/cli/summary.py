"""What a fit or a check found, for people and for machines."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator
from typing import Any

MOST = 5  # weights that are shown


def summary(model: Any, certificate: Any, names: list[str] | None = None) -> dict[str, Any]:
    """The facts of a model and its certificate, as plain values; `names` are those of the features."""
    from ..certificates.verification import verdicts_of
    from .separability import facts

    parts = list(certificate.certificates)
    labels = list(getattr(certificate, "classes", [None]))
    problem = parts[0].problem
    verdicts = [{"class": label, **facts(verdict)} for label, verdict in verdicts_of(model).items()]
    return {
        "status": model.status_.value,
        "gap": certificate.gap,
        "tol": model.tol,
        "rounds": model.n_iter_,
        "stages": [{"algorithm": name, "reason": reason} for name, reason in stages(model)],
        "rows": parts[0].rows,
        "features": model.n_features_in_,
        "feature_names": names,
        "classes": list(model.classes_),
        "problem": {
            **{name: getattr(problem, name) for name in ("loss", "C", "p", "power", "intercept")},
            "kernel": str(parts[0].kernel),
        },
        "bounds": [
            {
                "class": label,
                "lower": part.lower,
                "upper": part.upper,
                "gap": part.gap,
                "proved_by_rows": part.support.size,
            }
            for label, part in zip(labels, parts, strict=True)
        ],
        **({"verdicts": verdicts} if verdicts else {}),
        **({"nothing_proved": unproved} if (unproved := nothing_proved(model, certificate)) else {}),
    }


def nothing_proved(model: Any, certificate: Any) -> str | None:
    """Say of which problems nothing is proved; None where each has a bound or the proof that no separator exists."""
    from ..certificates.verdicts import Inseparable
    from ..certificates.verification import verdicts_of
    from ..estimators.decisions import text_of as name_of

    verdicts = verdicts_of(model)
    labels = getattr(certificate, "classes", [None])
    open_ones = [
        label
        for label, part in zip(labels, certificate.certificates, strict=True)
        if part.proves_nothing and not isinstance(verdicts.get(label), Inseparable)
    ]
    if not open_ones:
        return None
    about = "" if open_ones == [None] else f" about {', '.join(map(name_of, open_ones))}"
    return f"nothing is proved{about}: the fit ended before it found a bound"


def stages(model: Any) -> list[tuple[str, str]]:
    """Who was at work in a fit, in order, and why; of several classes the distinct ones."""
    return list(dict.fromkeys((report.stage, report.reason) for report in model.history_))


def solved_by(model: Any) -> str:
    """The same as a line."""
    return "solved by " + ", then ".join(f"{name}: {reason}" for name, reason in stages(model))


def weights(model: Any, names: list[str] | None) -> Iterator[str]:
    """Lines with the largest weights of a linear model, where features have names."""
    if names is None or not hasattr(model, "coef_"):
        return
    classes = list(model.classes_)
    for label, row in zip(classes if len(classes) > 2 else classes[1:], model.coef_, strict=True):
        largest = sorted(range(len(names)), key=lambda j: -abs(row[j]))[:MOST]
        shown = ", ".join(f"{names[j]} {row[j]:.4g}" for j in largest)
        more = ", ..." if len(names) > MOST else ""
        yield f"weights for {text_of(label)}: {shown}{more}"


def as_json(facts: dict[str, Any]) -> str:
    """One JSON object; numbers that JSON does not know are the strings "inf", "-inf" and "nan"."""
    return json.dumps(_plain(facts), allow_nan=False)


def _plain(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _plain(inner) for name, inner in value.items()}
    if isinstance(value, list):
        return [_plain(inner) for inner in value]
    if hasattr(value, "item"):  # a number of NumPy's
        value = value.item()
    return str(value) if isinstance(value, float) and not math.isfinite(value) else value


def text_of(label: Any) -> str:
    """A label as it was written: 1 rather than 1.0."""
    value = label.item() if hasattr(label, "item") else label
    return str(int(value)) if isinstance(value, float) and value.is_integer() else str(value)
