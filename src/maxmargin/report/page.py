"""Page of a report, in one file without references to others."""

from __future__ import annotations

import os
import sys
from importlib.resources import files
from typing import Any

import numpy as np
import sklearn
from sklearn.utils.validation import check_consistent_length, check_is_fitted, column_or_1d

from .. import __version__
from ..algorithms.base import is_whole
from ..estimators.decisions import feature_names_of, rows_of
from ..estimators.kernel import KernelMaxMarginClassifier
from ..estimators.linear import MaxMarginClassifier
from ..numerics.files import check_place, written_whole
from ..plots.style import new_figure
from .figures import FIGURE_SIZE, pictures
from .markup import Markup, element, void
from .sections import certificate, features, overview, proved_of_rows, support_vectors, verdict
from .subject import Recheck, Subject

PARTS = (verdict, overview, certificate, pictures, support_vectors, proved_of_rows, features)

# forbids browsers to fetch or run anything
_POLICY = "default-src 'none'; img-src data:; style-src 'unsafe-inline'"


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
    main = element("main", element("h1", title), *(part(subject) for part in PARTS))
    whole = element("html", head, element("body", main, element("footer", element("p", versions))), lang="en")
    return f"<!DOCTYPE html>\n{whole}\n"
