"""maxmargin demo: real data, a classifier with its proof, and a picture."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import typer

from .options import STOPPED, Result, command


@command()
def demo(*, picture: Path = Path("demo.png"), as_json: bool = False) -> Result:
    """Fit a data set of scikit-learn, check the certificate, and draw the bounds.

    Parameters
    ----------
    picture : Path
        File for the picture of the bounds against time: .png, .pdf or .svg.
    """
    from .display import PictureFile, Progress

    drawn = None
    try:
        drawn = PictureFile(picture)
    except ImportError:
        typer.echo("No picture is drawn without matplotlib: pip install 'maxmargin[plot]'.\n", err=True)

    from ..certificates.verification import verify
    from ..engine.jit import COMPILATION
    from ..estimators.linear import MaxMarginClassifier
    from ..problem.status import Status
    from .words import fit_facts

    X, y, X_test, y_test = _data()
    if not as_json:
        typer.echo(
            f"Breast cancer (Wisconsin, diagnostic): {X.shape[1]} standardised measurements of cell nuclei,\n"
            f"malignant or benign; {X.shape[0]} patients for training, {len(y_test)} for testing.\n"
        )
    # the same fit first, so that times and picture show the algorithm and not the compiler
    with Progress():
        MaxMarginClassifier(random_state=0).fit(X, y)
    lines, compile_seconds = [], COMPILATION.seconds
    if compile_seconds:
        lines.append(f"({compile_seconds:.1f} s of compilation {COMPILATION.purpose})\n")
    model = MaxMarginClassifier(random_state=0)
    begin = time.perf_counter()
    model.fit(X, y)
    seconds = time.perf_counter() - begin
    accuracy = float(model.score(X_test, y_test))
    facts = fit_facts(model, verify(model, X, y))
    if drawn is not None:
        from ..plots.bounds import BoundsDisplay

        BoundsDisplay.from_estimator(model, ax=drawn.figure.subplots())
        drawn.save()
    facts |= {"seconds": seconds, "compile_seconds": compile_seconds, "verified": True}
    facts |= {"test_accuracy": accuracy, "picture": None if drawn is None else str(picture)}
    lines += [
        *_history_lines(model),
        f"\n{model.status_.value} in {seconds:.2g} s; the tolerance is a gap of {model.tol:g}.",
        f"{model.certificate_}\n",
        "verified: recomputed from the data in compensated sums, both bounds hold.",
        f"test accuracy: {accuracy:.4f}",
        *([] if drawn is None else [f"picture: {picture}"]),
    ]
    return Result(facts, lines, 0 if model.status_ is Status.CERTIFIED else STOPPED)


def _data() -> tuple[Any, Any, Any, Any]:
    """Return standardised rows and labels to learn from, and others to test."""
    from sklearn.datasets import load_breast_cancer
    from sklearn.model_selection import train_test_split
    from sklearn.preprocessing import StandardScaler

    data: Any = load_breast_cancer()
    names = data.target_names[data.target]
    X, X_test, y, y_test = train_test_split(data.data, names, random_state=0, stratify=names)
    scaler = StandardScaler().fit(X)
    return scaler.transform(X), y, scaler.transform(X_test), y_test


def _history_lines(model: Any) -> Iterator[str]:
    """Yield a table of the rounds of a fit: a title, and a line a round."""
    yield "   round    seconds     lower bound     upper bound        gap"
    for report in model.history_:
        stage = "  exact finish" if report.stage == "exact" else ""
        bounds = f"{report.lower:15.9g} {report.upper:15.9g} {report.gap:10.2g}"
        yield f"{report.round:8d} {report.seconds:10.4f} {bounds}{stage}"
