"""Verification of certificates and verdicts from the data alone."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import numpy as np

from ..data.door import shifted, shifted_intercept
from ..kernels.functions import Kernel, Precomputed
from ..numerics.columns import without_empty_columns
from ..numerics.progress import announce
from ..numerics.sizes import one_thread
from ..numerics.sums import row_norms
from ..problem.multiclass import class_numbers, parts_of
from .certificate import (
    Certificate,
    CertificateError,
    Certificates,
    Fingerprint,
    Sample,
    check_support,
    require,
    require_rows,
    require_weights,
)
from .gram import KernelPoint, KernelProblem, KernelSample, certified, check_kernel
from .row_pass import Bounds, bounds_to, imbalance, implied_by_points
from .training_data import training_data
from .verdicts import Inseparable, Undecided, Verdict


@one_thread()
def verify(model: Any, X: Any, y: Any, sample_weight: Any = None) -> Certificate | Certificates:
    """Recompute every number of a model's certificate from rows in memory.

    Parameters, result and errors are those of `inspection.verification.verify`, the public function.
    """
    announce("recomputing the bounds")
    found = (verify_kernel if hasattr(model, "n_support_") else verify_linear)(model, X, y, sample_weight)
    if verdicts := verdicts_about(model):
        verify_verdicts(verdicts, *training_data(model, X, y, sample_weight))
    return found


def verdicts_of(model: Any) -> dict[Any, Verdict]:
    """Return the verdicts on separability of a model, of its attribute `verdict_`.

    The keys are the labels of the binary problems, or None for two classes. The dict is empty where the model has no
    `verdict_`: soft margin fits, and fits that found a separator for each problem.
    """
    found = getattr(model, "verdict_", {})
    return found if isinstance(found, dict) else {None: found}


def verdicts_about(model: Any) -> dict[Any, Verdict]:
    """Return the verdicts of a model, as of `verdicts_of`.

    Raises
    ------
    CertificateError
        If one is about another problem than the certificate of its class, or its class is none of the model.
    """
    found, claim = verdicts_of(model), model.certificate_
    parts = dict(zip(claim.classes, claim.certificates, strict=True))
    for label, verdict in found.items():
        require(label in parts, f"the proof fails: {label!r}, whose verdict it is, is no class of the model.")
        problem, kernel = parts[label].problem, parts[label].kernel
        # weights that are balanced between the classes prove that no intercept of any kind helps
        same = problem.hard and (problem.p, kernel) == (verdict.p, verdict.kernel)
        same = same and (verdict.bias or problem.intercept == "none")
        require(same, "the proof fails: it is about another problem than the certificate of the model.")
    return found


def verify_verdicts(verdicts: dict[Any, Verdict], X: Any, labels: np.ndarray, weights: np.ndarray) -> None:
    """Recheck each proof that there is no separator, in rational numbers, and each bound if undecided.

    Parameters
    ----------
    verdicts : dict of Verdict
        As of `verdicts_about`.
    X, labels, weights
        As of `training_data`.

    Raises
    ------
    CertificateError
        If a proof fails, or names a row of weight 0 or of a class that it is not about.
    """
    for label, verdict in verdicts.items():
        if not isinstance(verdict, Inseparable | Undecided):
            continue
        y = labels if label is None or isinstance(label, tuple) else labels == label
        here = np.isin(y, verdict.classes)
        require_rows(verdict.support, y.size)
        about = here[verdict.support].all()
        require(about, "the proof fails: not all of its rows are of the classes that it is about.")
        require_weights(weights[verdict.support])
        # rows of other classes, and rows that the fit left out, are not in the proof: any label serves for them
        verdict.verify(X, np.where(here, y, verdict.classes[0]))


def verify_linear(model: Any, X: Any, y: Any, sample_weight: Any = None) -> Certificate | Certificates:
    """Verify a model with a weight vector for each problem; arguments as of `verify`."""
    X, labels, weights = training_data(model, X, y, sample_weight)
    columns = None
    coef = np.asarray(model.coef_, float)
    if coef.shape[1:] == (X.shape[1],):
        X, columns = without_empty_columns(X, coef)
    with np.errstate(over="ignore", invalid="ignore"):
        X, shift = shifted(linear_parts(model)[0][0].problem, X)
        rows = Sample(X, np.zeros(labels.size), weights, columns, shift, row_norms(X))

        def bounds_of(part: Certificate, name: Any, w: np.ndarray, b: float) -> Bounds:
            """Return the bounds of a problem."""
            sample = replace(rows, y=np.where(labels == name, 1.0, -1.0))
            check_claim(part, sample.fingerprint, b)
            # checked after the fingerprint: other data are the more likely cause
            if columns is None:
                raise CertificateError(
                    f"the model has {w.size} weights for {X.shape[1]} features: they do not fit."
                )
            w = columns.restrict(w)
            # the gap of the claim is to be shown again, up to a tenth of it and a rounding of 1e-9
            alpha, gap = claimed_dual(part, sample), 1.1 * part.gap + 1e-9
            return bounds_to(part.problem, sample, w, shifted_intercept(w, b, shift, 1), alpha, gap)[1]

        return verify_parts(model, bounds_of)


def verify_parts(model: Any, bounds_of: Callable[..., Bounds]) -> Certificate | Certificates:
    """Return the certificates of a linear model with the bounds that a function of `linear_parts` recomputes."""
    claim, found = model.certificate_, []
    for part, name, w, b in linear_parts(model):
        with naming(name, model):
            found.append(recomputed(part, bounds_of(part, name, w, b)))
    return found[0] if isinstance(claim, Certificate) else Certificates(claim.classes, tuple(found))


def linear_parts(model: Any) -> list[tuple[Certificate, Any, np.ndarray, float]]:
    """Return the certificate, the positive class, the weights and the intercept of each problem of a linear model."""
    coef, intercept = np.asarray(model.coef_, float), np.ravel(model.intercept_)
    parts, classes = model.certificate_.certificates, model.classes_
    names = classes[1:] if len(classes) == 2 else classes
    require(
        len(parts) == len(names) == coef.shape[0] and intercept.shape == names.shape,
        f"{len(classes)} classes need {len(names)} certificates, rows of coef_ and intercepts; there are {len(parts)}, "
        f"{coef.shape[0]} and {intercept.size}.",
    )
    return list(zip(parts, names, coef, intercept.tolist(), strict=True))


def check_claim(claim: Certificate, data: Fingerprint, b: float) -> None:
    """Raise CertificateError unless the certificate belongs to these data, and the intercept to its problem."""
    difference = claim.fingerprint.difference(data)
    words = f"{difference}; give the data of the fit"
    require(difference is None, f"this certificate was made for other data: {words}.")
    none = claim.problem.intercept != "none" or b == 0.0
    require(none, "the upper bound fails: the model has an intercept, its problem has none.")


def claimed_dual(claim: Certificate, sample: Sample) -> np.ndarray:
    """Return the dual variables of a certificate, of shape (n,); raise CertificateError where they are not feasible."""
    problem, rows = claim.problem, sample.y.size
    support, dual, bound = check_support(claim, rows)
    if claim.implied is not None:
        alpha = implied_by_points(problem, sample, claim.implied, support, dual)
        return problem.capped(alpha, sample.weights)
    alpha = np.zeros(rows)
    alpha[support] = dual
    capped = not np.any(alpha > problem.caps(sample.weights))
    require(capped, f"{bound}: a dual variable is above its cap C s_i.")
    # the largest imbalance that a fit leaves (`fit.best.ROUNDING`), which the bounds account for in any case
    balanced = not problem.free or imbalance(alpha, sample.y) <= 1e-12 * float(alpha.sum())
    require(balanced, f"{bound}: dual variables are not balanced between the classes.")
    return alpha


def recomputed(claim: Certificate, found: Bounds) -> Certificate:
    """Return the certificate with recomputed bounds; raise CertificateError unless they prove the claimed ones."""
    # A claimed bound may be tighter than the recomputed one by twice the rounding margin of the latter: that of its
    # sums, and that by which it is rounded outwards. Where sums have overflowed, the margin is infinite and nothing is
    # proved.
    below, above = (2.0 * margin if math.isfinite(margin) else 0.0 for margin in (found.below, found.above))
    for name, claimed, given, holds in (
        ("lower", claim.lower, found.lower, found.lower >= claim.lower - below),
        ("upper", claim.upper, found.upper, found.upper <= claim.upper + above),
    ):
        failure = f"the {name} bound fails: {claimed:.17g} is claimed, the data give {given:.17g}."
        require(holds, failure)
    require(
        not found.lower > found.upper,
        f"the bounds cross: the data give {found.lower:.17g} as lower, {found.upper:.17g} as upper bound.",
    )
    return replace(claim, lower=float(found.lower), upper=float(found.upper))


def verify_kernel(model: Any, X: Any, y: Any, sample_weight: Any = None) -> Certificate | Certificates:
    """Verify a model that is a combination of kernel functions, from kernel values in float64.

    The arguments are those of `verify`. The kernel is that of the certificates; for ``kernel="precomputed"`` X is the
    kernel matrix.
    """
    X, labels, weights = training_data(model, X, y, sample_weight)
    claim, classes = model.certificate_, model.classes_
    # scheme: the division of the classes into binary problems, one-vs-rest or one-vs-one
    parts, scheme = claim.certificates, parts_of(model.multi_class_, len(classes))
    support = _support(model, X)
    coefficients = scheme.unpacked(np.asarray(model.dual_coef_, float), np.asarray(model.n_support_))
    intercepts = np.ravel(model.intercept_).astype(float)
    require(
        len(parts) == len(scheme.labels) == len(coefficients) == len(intercepts),
        f"{len(classes)} classes need {len(scheme.labels)} certificates and intercepts; there are {len(parts)} and "
        f"{intercepts.size}.",
    )
    kernel = _kernel(parts, X)
    codes = class_numbers(labels, classes)
    rows, kernel_rows = Sample(X, np.zeros(labels.size), weights), KernelSample(kernel, X)
    tasks, points = [], []
    for k, part in enumerate(parts):
        with naming(classes[np.atleast_1d(scheme.labels[k])], model):
            signs, takes_part = scheme.signs(k, codes)
            sample = replace(rows, y=signs, weights=np.where(takes_part, weights, 0.0))
            check_claim(part, sample.fingerprint, intercepts[k])
            tasks.append(KernelProblem(part.problem, kernel_rows, signs, sample.weights))
            w = np.zeros(labels.size)
            w[support] = coefficients[k]
            points.append(KernelPoint(claimed_dual(part, sample), w, intercepts[k]))
    # `dual_coef_` has the support vectors in the order of their classes
    ordered = np.array_equal(codes[support], np.repeat(np.arange(len(classes)), model.n_support_))
    require(ordered, "n_support_ does not fit the classes of the support vectors.")
    if not isinstance(kernel, Precomputed):
        same = model.support_vectors_.shape == (support.size, X.shape[1])
        same = same and not (model.support_vectors_ != X[support]).sum()
        require(same, "support_vectors_ are not the rows that support_ names.")
    with np.errstate(over="ignore", invalid="ignore"):
        proofs = certified(tasks, points, as_given=True)
    found = []
    for k, (part, (_, bounds)) in enumerate(zip(parts, proofs, strict=True)):
        with naming(classes[np.atleast_1d(scheme.labels[k])], model):
            found.append(recomputed(part, bounds))
    return found[0] if isinstance(claim, Certificate) else Certificates(claim.classes, tuple(found))


def _kernel(parts: tuple[Certificate, ...], X: Any) -> Kernel:
    """Return the kernel of all certificates; raise CertificateError unless it is one inner product on the rows."""
    kernel = parts[0].kernel
    square = not isinstance(kernel, Precomputed) or X.shape[0] == X.shape[1]
    require(square, f"X must be the square kernel matrix of the fit; got shape {X.shape}.")
    one = all(part.kernel == kernel for part in parts)
    require(one, "the certificates of this model are about different kernels.")
    try:
        check_kernel(kernel, X)
    except ValueError as error:
        raise CertificateError(f"no bound holds: {error}") from None
    return kernel


@contextmanager
def naming(labels: Any, model: Any) -> Iterator[None]:
    """Add the class, or the pair of classes, to the message of a CertificateError where there are several problems."""
    try:
        yield
    except CertificateError as error:
        if len(model.classes_) == 2:
            raise
        names = np.atleast_1d(labels).tolist()
        what = f"class {names[0]!r}" if len(names) == 1 else f"classes {names[0]!r} and {names[1]!r}"
        raise CertificateError(f"{what}: {error}") from None


def _support(model: Any, X: Any) -> np.ndarray:
    """Return the row numbers `support_`; raise CertificateError unless `dual_coef_` and `n_support_` fit to them."""
    support, counts = np.asarray(model.support_), np.asarray(model.n_support_)
    dual_coef = np.asarray(model.dual_coef_)
    once = support.ndim == 1 and support.dtype.kind in "iu" and np.unique(support).size == support.size
    there = once and (not support.size or (support.min() >= 0 and support.max() < X.shape[0]))
    require(there, "support_ must name rows of the data by their numbers, each once.")
    require(
        dual_coef.ndim == 2
        and dual_coef.shape[1] == support.size == counts.sum()
        and counts.shape == (len(model.classes_),),
        f"{support.size} support vectors, dual_coef_ of shape {dual_coef.shape} and {counts.tolist()} by class: they "
        "do not fit.",
    )
    return support
