"""maxmargin select: features ranked by elimination, and the accuracy at each size."""

from __future__ import annotations

from math import isinf
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from typer import Option

from .exits import STOPPED, one_sentence
from .options import (
    AsJson,
    ClassWeight,
    Columns,
    Cost,
    Data,
    Drop,
    FitIntercept,
    Label,
    Loss,
    Seed,
    Selection,
    Use,
    exponent,
    picture_kind,
)

if TYPE_CHECKING:
    from ..estimators.selection import MarginRFE
    from ..io.readers import Table


def select(
    data: Data,
    algorithm: Annotated[str, Option(help="auto, ima, alma or another: what ranks the features.")] = "auto",
    p: Annotated[
        Any,
        Option(parser=exponent, metavar="NORM", help="1 to inf, or log: max(2, ln f) for f features left."),
    ] = "log",
    keep: Annotated[
        int | None, Option(help="How many features; none takes the best in cross-validation.")
    ] = None,
    step: Annotated[
        float, Option(help="Features that leave at a time; below 1 a share of those left.")
    ] = 0.1,
    folds: Annotated[int, Option(help="Of the cross-validation, with an elimination in each.")] = 5,
    C: Cost = 1.0,
    loss: Loss = "squared_hinge",
    tol: Annotated[float, Option(help="Certified relative gap at which each fit ends.")] = 1e-2,
    fit_intercept: FitIntercept = True,
    class_weight: ClassWeight = None,
    max_iter: Annotated[int, Option(help="Most rounds of each fit.")] = 1000,
    standardize: Annotated[
        bool, Option("--standardize", help="Bring all columns to one variance, that of all rows, before.")
    ] = False,
    seed: Seed = None,
    n_jobs: Annotated[int | None, Option(help="Folds at the same time.")] = None,
    n_features: Columns = None,
    label: Label = None,
    columns: Use = None,
    drop: Drop = None,
    top: Annotated[int, Option(help="How much of the ranking is printed; --json has all of it.")] = 20,
    picture: Annotated[
        Path | None,
        Option(help="Draw accuracy and bounds against the number of features, as .png, .pdf or .svg."),
    ] = None,
    as_json: AsJson = False,
    quiet: Annotated[bool, Option("--quiet", "-q", help="Nothing is printed.")] = False,
) -> None:
    """Rank features by elimination: train, delete those of the smallest weights, train again.

    The accuracy at each size is that of rows which had no say in the elimination. Weights can be compared only where
    features can: see --standardize. Exit code 3 if a fit stopped before the tolerance.
    """
    with one_sentence():
        from ..numerics.files import check_place, written_whole
        from .compare import _figure
        from .labelled import check_options, read_labelled, refuse_rounded

        kind, figure = None, None
        if picture is not None:
            check_place(picture, data)
            kind, figure = picture_kind(picture), _figure()
        if folds < 2:
            raise ValueError(f"--folds must be at least 2, to test on rows not learnt from; got {folds}.")
        if top < 0:
            raise ValueError(f"--top must be a whole number of at least 0; got {top}.")
        which = Selection(label, columns, drop)
        check_options(data, n_features, which)
        table = read_labelled(data, n_features, which)
        if isinf(C):
            refuse_rounded(data, table)
        _check_folds(table, folds)

        import time

        from ..estimators.selection import MarginRFE
        from ..problem.status import Status
        from .summary import as_json as to_json

        selector = MarginRFE(
            algorithm,
            p=p,
            n_features_to_select="cv" if keep is None else keep,
            step=int(step) if step >= 1 and step.is_integer() else step,
            cv=folds,
            C=C,
            loss=loss,
            tol=tol,
            fit_intercept=fit_intercept,
            class_weight=class_weight,
            max_iter=max_iter,
            n_jobs=n_jobs,
            random_state=seed,
        )
        begin = time.perf_counter()
        selector.fit(_standardized(table.X) if standardize else table.X, table.y)
        seconds = time.perf_counter() - begin
        if picture is not None and figure is not None:
            from ..plots import EliminationDisplay

            EliminationDisplay.from_estimator(selector, axes=figure.subplots(1, 2))
            with written_whole(picture) as file:
                figure.savefig(file, format=str(kind), dpi=150)
        names = _names(table, selector)
        if as_json:
            facts = _facts(selector, names) | {"seconds": seconds}
            typer.echo(to_json(facts | {"picture": None if picture is None else str(picture)}))
        elif not quiet:
            typer.echo(_report(selector, names, top))
    if any(stage.status is not Status.CERTIFIED for stage in selector.path_):
        raise typer.Exit(STOPPED)


def _check_folds(table: Table, folds: int) -> None:
    """Every class must be in every fold."""
    import numpy as np

    classes, counts = np.unique(np.asarray(table.y), return_counts=True)
    if classes.size > 1 and counts.min() < folds:
        fewest = int(counts.min())
        remedy = (
            f"--folds {fewest}, or give more of it" if fewest > 1 else "no class of one row, or more of it"
        )
        raise ValueError(
            f"class {classes[counts.argmin()]} has {fewest} of the rows, and each of {folds} folds needs one: ask for "
            f"{remedy}."
        )


def _standardized(X: Any) -> Any:
    """Columns of variance one; dense ones of mean zero, too. Labels have no part in it."""
    from sklearn.preprocessing import StandardScaler

    return StandardScaler(with_mean=not hasattr(X, "tocsr")).fit_transform(X)


def _names(table: Table, selector: MarginRFE) -> list[str]:
    """The features, best first, as the file calls them."""
    if table.feature_names is not None:
        return [table.feature_names[j] for j in selector.order_]
    first = table.first_index or 0
    return [str(j + first) for j in selector.order_]


def _facts(selector: MarginRFE, names: list[str]) -> dict[str, Any]:
    """What was found, as plain values."""
    return {
        "kept": selector.n_features_,
        "reason": selector.reason_,
        "ranking": names,
        "bounded": "margin" if selector.path_[0].hard else "objective",
        "sizes": [
            {
                "features": stage.n_features,
                "accuracy": stage.accuracy,
                "accuracy_std": stage.accuracy_std,
                "lower": stage.lower,
                "upper": stage.upper,
                "p": stage.p,
                "status": str(stage.status),
            }
            for stage in selector.path_
        ],
    }


def _report(selector: MarginRFE, names: list[str], top: int) -> str:
    """What was found, in words."""
    bounded = "margin" if selector.path_[0].hard else "objective"
    lines = [
        f"{selector.n_features_} of {selector.order_.size} features are kept: {selector.reason_}",
        "",
        f"{'features':>8}  {'accuracy':>8}  {'+-':>6}  {'p':>5}  certified bounds on the best {bounded}",
    ]
    for stage in selector.path_:
        unknown = stage.accuracy != stage.accuracy  # a fold came to an end before
        score = f"{'-':>8}  {'-':>6}" if unknown else f"{stage.accuracy:8.4f}  {stage.accuracy_std:6.4f}"
        ended = "" if stage.status == "CERTIFIED" else f"  {stage.status}"
        lines.append(
            f"{stage.n_features:8d}  {score}  {stage.p:5.3g}  {stage.lower:.6g} .. {stage.upper:.6g}{ended}"
        )
    if top:
        lines += ["", "features, best first:"]
        lines += [f"{rank:6d}  {name}" for rank, name in enumerate(names[:top], 1)]
    return "\n".join(lines)
