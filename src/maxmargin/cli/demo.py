"""maxmargin demo: real data, a classifier with its proof, and a picture."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Annotated, Any

import typer
from typer import Option

from .exits import STOPPED, one_sentence
from .options import AsJson, picture_kind


def demo(
    picture: Annotated[Path, Option(help="Bounds against time, as .png, .pdf or .svg.")] = Path("demo.png"),
    as_json: AsJson = False,
) -> None:
    """Fit real data that ship with scikit-learn; prove the result, check the proof, and draw it."""
    with one_sentence():
        from ..certificates.bounds import verify
        from ..numerics.files import check_place
        from ..problem.status import Status
        from .summary import as_json as to_json
        from .summary import summary

        check_place(picture)
        kind = picture_kind(picture)
        say = (lambda line: None) if as_json else typer.echo
        figure = _figure()
        if figure is None:
            typer.echo("There will be no picture: it needs pip install 'maxmargin[plot]'.\n", err=True)
        X, y, X_test, y_test = _data()
        say(f"Breast cancer (Wisconsin, diagnostic): {X.shape[1]} standardised measurements of cell nuclei,")
        say(f"malignant or benign; {len(y)} patients to learn from, {len(y_test)} to test.\n")
        compiling = _compile(X, y)
        if compiling > 2.0:
            say(f"(compiled for this machine in {compiling:.1f} s; the next start takes it from the cache)\n")
        begin = time.perf_counter()
        model = _classifier().fit(X, y)
        seconds = time.perf_counter() - begin
        say("   round    seconds     lower bound     upper bound        gap")
        for report in model.history_:
            stage = "  exact finish" if report.stage == "exact" else ""
            say(
                f"{report.round:8d} {report.seconds:10.4f} {report.lower:15.9g} {report.upper:15.9g} "
                f"{report.gap:10.2g}{stage}"
            )
        accuracy = float(model.score(X_test, y_test))
        certificate = verify(model, X, y)
        if figure is not None:
            _draw(model, figure, picture, kind)
        say(f"\n{model.status_.value} in {seconds:.2g} s: a gap of at most {model.tol:g} was asked for.")
        say(f"{model.certificate_}\n")
        say("verified: recomputed from the data in compensated sums, both bounds hold.")
        say(f"test accuracy: {accuracy:.4f}")
        if figure is not None:
            say(f"picture: {picture}")
        if as_json:
            facts = summary(model, certificate)
            facts |= {"seconds": seconds, "compile_seconds": compiling, "verified": True}
            facts |= {"test_accuracy": accuracy, "picture": None if figure is None else str(picture)}
            typer.echo(to_json(facts))
    if model.status_ is not Status.CERTIFIED:
        raise typer.Exit(STOPPED)


def _data() -> tuple[Any, Any, Any, Any]:
    from sklearn.datasets import load_breast_cancer
    from sklearn.model_selection import train_test_split
    from sklearn.preprocessing import StandardScaler

    data: Any = load_breast_cancer()
    names = data.target_names[data.target]
    X, X_test, y, y_test = train_test_split(data.data, names, random_state=0, stratify=names)
    scaler = StandardScaler().fit(X)
    return scaler.transform(X), y, scaler.transform(X_test), y_test


def _classifier() -> Any:
    from ..estimators.linear import MaxMarginClassifier

    return MaxMarginClassifier(random_state=0)


def _compile(X: Any, y: Any) -> float:
    """Fit a few rows, so that the picture shows the algorithm and not the compiler."""
    begin = time.perf_counter()
    _classifier().fit(X[:60], y[:60])
    return time.perf_counter() - begin


def _figure() -> Any:
    """An empty figure that needs no screen; None where matplotlib is not there."""
    try:
        from matplotlib.figure import Figure
    except ImportError:
        return None
    return Figure(figsize=(7.2, 4.6), layout="constrained")


def _draw(model: Any, figure: Any, path: Path, kind: str) -> None:
    from ..numerics.files import written_whole
    from ..plots import BoundsDisplay

    BoundsDisplay.from_estimator(model, ax=figure.subplots())
    with written_whole(path) as file:
        figure.savefig(file, format=kind, dpi=150)
