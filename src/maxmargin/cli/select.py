"""maxmargin select: features ranked by elimination, and the accuracy at each size."""

from __future__ import annotations

import time
from functools import partial
from math import isinf
from pathlib import Path
from typing import TYPE_CHECKING, Any

from .options import STOPPED, ColumnOptions, Result, command

if TYPE_CHECKING:
    from ..estimators.selection import MarginRFE
    from ..readers import Table

FACTS = ("message", "accuracy", "accuracy_std", "lower", "upper", "p")  # of a stage, for --json


@command(
    "C", "loss", "algorithm", "fit_intercept", "class_weight", "max_iter", "seed", "n_jobs", p="log", tol=1e-2
)
def select(
    data: Path,
    *,
    keep: int | None = None,
    step: float = 0.1,
    folds: int = 5,
    standardize: bool = False,
    n_features: int | None = None,
    columns: ColumnOptions,
    top: int = 20,
    picture: Path | None = None,
    as_json: bool = False,
    quiet: bool = False,
    **parameters: Any,
) -> Result:
    """Rank features by elimination: fit, delete the features with the smallest weights, fit again.

    The accuracy at each size is measured on rows that the elimination did not use. Weights can be compared only if the
    features have the same scale: see --standardize. Exit code 3 if a fit ended above the tolerance.

    Parameters
    ----------
    p : float or str
        Norm of distances: 1 to inf, or log, which is max(2, ln f) for f features left.
    tol : float
        Certified relative gap at which each fit ends.
    algorithm : str
        Algorithm whose weights rank the features: auto, ima, alma or another.
    max_iter : int
        Maximum number of rounds of each fit.
    n_jobs : int
        Number of folds solved at the same time; by default 1.
    keep : int
        Number of features to keep; by default the best number in cross-validation.
    step : float
        Number of features deleted at a time; below 1, a share of the features left.
    folds : int
        Number of folds of the cross-validation; each has an elimination of its own.
    standardize : bool
        Scale all columns to variance 1 over all rows before the elimination.
    top : int
        Number of features of the ranking that are printed; --json has all.
    picture : Path
        Draw accuracy and bounds against the number of features, as .png, .pdf or .svg.
    """
    from .data import read_labelled
    from .display import PictureFile, Progress

    drawn = None if picture is None else PictureFile(picture, data)
    if folds < 2:
        raise ValueError(f"--folds must be at least 2, so that test rows are not training rows; got {folds}.")
    if keep is not None and keep < 1:
        raise ValueError(f"--keep must be a whole number of at least 1; got {keep}.")
    if top < 0:
        raise ValueError(f"--top must be a whole number of at least 0; got {top}.")
    with Progress(quiet=quiet):
        table = read_labelled(data, n_features, columns, exact=isinf(parameters["C"]))
        _check_folds(table, folds)

        from sklearn.preprocessing import StandardScaler

        from ..estimators.selection import MarginRFE
        from ..fit.deadline import result_of
        from ..problem.status import Status

    selector = MarginRFE(
        parameters.pop("algorithm"),
        n_features_to_select="cv" if keep is None else keep,
        step=int(step) if step >= 1 and step.is_integer() else step,
        cv=folds,
        **parameters,
    )
    begin = time.perf_counter()
    X = table.X
    if standardize:  # sparse columns keep their zeros
        X = StandardScaler(with_mean=not hasattr(X, "tocsr")).fit_transform(X)
    with Progress(quiet=quiet):
        result_of(partial(selector.fit, X, table.y))
    seconds = time.perf_counter() - begin
    if drawn is not None:
        from ..plots.elimination import EliminationDisplay

        EliminationDisplay.from_estimator(selector, axes=drawn.figure.subplots(1, 2))
        drawn.save()
    known, first = table.feature_names, 1 if table.first_index is None else table.first_index
    names = [str(j + first) if known is None else known[j] for j in selector.order_]
    facts = _facts(selector, names) | {"seconds": seconds, "picture": picture and str(picture)}
    certified = all(stage.status is Status.CERTIFIED for stage in selector.path_)
    counted = "" if known is not None else f", counted from {first}"
    return Result(facts, _lines(selector, names, top, counted), 0 if certified else STOPPED)


def _check_folds(table: Table, folds: int) -> None:
    """Raise ValueError where a class has too few rows to be in every fold."""
    import numpy as np

    classes, counts = np.unique(np.asarray(table.y), return_counts=True)
    if classes.size < 2:
        raise ValueError(f"all rows are of class {classes[0]}, and a selection needs 2 classes: add rows.")
    if counts.min() < folds:
        fewest = int(counts.min())
        remedy = f"use --folds {fewest} or add rows" if fewest > 1 else "remove the class or add rows"
        raise ValueError(
            f"class {classes[counts.argmin()]} has {fewest} of the rows, and each of {folds} folds needs one: {remedy}."
        )


def _facts(selector: MarginRFE, names: list[str]) -> dict[str, Any]:
    """Return the result of an elimination as plain values."""
    return {
        "kept": selector.n_features_,
        "reason": selector.reason_,
        "ranking": names,
        "bounded": "margin" if selector.path_[0].hard else "objective",
        "sizes": [
            {"features": stage.n_features, "status": str(stage.status)}
            | {name: getattr(stage, name) for name in FACTS}
            for stage in selector.path_
        ],
    }


def _lines(selector: MarginRFE, names: list[str], top: int, counted: str) -> list[str]:
    """Return the result of an elimination as lines of text; `top` features, `counted` in words, are listed."""
    from .words import with_options

    bounded = "margin" if selector.path_[0].hard else "objective"
    lines = [
        f"{selector.n_features_} of {selector.order_.size} features are kept: {selector.reason_}",
        "",
        f"{'features':>8}  {'accuracy':>8}  {'+-':>6}  {'p':>5}  certified bounds on the best {bounded}",
    ]
    for stage in selector.path_:
        unknown = stage.accuracy != stage.accuracy  # a fold ended with more features than these
        score = f"{'-':>8}  {'-':>6}" if unknown else f"{stage.accuracy:8.4f}  {stage.accuracy_std:6.4f}"
        ended = "" if stage.status == "CERTIFIED" else f"  {stage.status}"
        bounds = f"{stage.lower:.6g} .. {stage.upper:.6g}{ended}"
        lines.append(f"{stage.n_features:8d}  {score}  {stage.p:5.3g}  {bounds}")
    messages = {str(stage.status): stage.message for stage in reversed(selector.path_)}
    lines += [f"{name}: {with_options(words)}" for name, words in messages.items() if name != "CERTIFIED"]
    if top:
        lines += ["", f"features, best first{counted}:"]
        lines += [f"{rank:6d}  {name}" for rank, name in enumerate(names[:top], 1)]
    return lines
