"""Random fits: a clear refusal, or bounds that independent evaluations agree with."""

from __future__ import annotations

import warnings
from dataclasses import dataclass, field
from fractions import Fraction
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import scipy.sparse as sp
from files import require
from objective import value
from sklearn.metrics.pairwise import pairwise_kernels

from maxmargin import (
    Inseparable,
    KernelMaxMarginClassifier,
    LinearSeparator,
    MaxMarginClassifier,
    Status,
    Undecided,
    separate,
)
from maxmargin.algorithms import ALGORITHMS

MAX_TIME = 0.3  # seconds of a fit; most of these problems take milliseconds
# Relative error of an objective of a kernel model, which is evaluated in float64 as sums of a few terms, over the sum
# of the sizes of these terms.
ROUNDING = 1e-9
# Relative excess of the norms of `objective` over the true ones, so that an upper bound may be smaller.
NORM_ERROR = Fraction(1, 10**11)
# Between bounds that cross: `Problem.gap` takes a difference of this size for rounding.
CROSSED = 1e-6
SCALES = [Fraction(t) for t in (0.5, 0.999, 1.001, 2.0, -1.0)]  # of the model, for other hyperplanes


@dataclass
class Case:
    """A problem: rows, labels, weights or None, a class of estimators or None for `separate`, and its parameters."""

    X: Any
    y: np.ndarray
    weights: np.ndarray | None
    kind: Any
    parameters: dict[str, Any] = field(default_factory=dict)

    def text(self) -> str:
        """Return the problem as Python would write it."""
        X = self.X.toarray() if sp.issparse(self.X) else self.X
        weights = None if self.weights is None else self.weights.tolist()
        stored = type(self.X).__name__
        name = getattr(self.kind, "__name__", self.kind)
        return (
            f"{name}(**{self.parameters!r})\nX = {X.tolist()!r}  # {stored} {X.dtype}\ny = {self.y.tolist()!r}"
            f"\nsample_weight = {weights!r}\n"
        )


def rows(rng: np.random.Generator) -> Any:
    """Return a small matrix of one of many kinds: dense or sparse, degenerate, of any scale."""
    n, d = int(rng.integers(2, 14)), int(rng.integers(1, 6))
    kind = rng.integers(6)
    if kind == 0:
        X = rng.integers(-2, 3, (n, d)).astype(float)
    elif kind == 1:
        X = (rng.random((n, d)) < 0.3).astype(float)
    elif kind == 2:
        X = np.outer(rng.standard_normal(n), rng.standard_normal(d))  # on a line
    else:
        X = rng.standard_normal((n, d))
    if rng.random() < 0.3:
        X[rng.integers(n)] = 0.0
    if rng.random() < 0.2:
        X[:, rng.integers(d)] = rng.choice([0.0, 1.0, -3.5])
    if rng.random() < 0.3:
        X[rng.integers(n)] = X[rng.integers(n)]
    if rng.random() < 0.3:
        X = X * 10.0 ** rng.integers(-12, 13, d)
    if rng.random() < 0.1:
        X = X * 10.0 ** float(rng.integers(-60, 60))
    if rng.random() < 0.1:
        X[rng.integers(n), rng.integers(d)] = rng.choice(
            [1e9, -1e17, 1e-300, 1.7e308, 5e-324, np.nan, np.inf]
        )
    if rng.random() < 0.15:
        with np.errstate(over="ignore"):
            X = X.astype(np.float32)
    if rng.random() < 0.3:
        X = sp.csr_matrix(X)
    return X


def labels(rng: np.random.Generator, X: Any) -> np.ndarray:
    """Return labels: random, separable ones, of one to four classes, as numbers or text."""
    n, count = X.shape[0], int(rng.choice([1, 2, 2, 2, 2, 2, 3, 4]))
    y = rng.integers(0, count, n)
    if rng.random() < 0.4:
        with np.errstate(all="ignore"):
            y = (np.nan_to_num(X @ rng.standard_normal(X.shape[1])) > 0.0).astype(int)
    if rng.random() < 0.2:
        y = np.array(["a", "b", "c", "d"])[y]
    return y


def case(seed: int) -> Case:
    """Return the problem of a seed."""
    rng = np.random.default_rng(seed)
    X = rows(rng)
    y, weights = labels(rng, X), None
    if rng.random() < 0.3:
        weights = rng.choice([0.0, 0.5, 1.0, 2.0, 1e-8, 1e8], X.shape[0])
    intercept: dict[str, Any] = {"fit_intercept": bool(rng.random() < 0.8)}
    if rng.random() < 0.2:
        intercept |= {"intercept_scaling": float(rng.choice([0.3, 1.0, 1e4]))}
    p = float(rng.choice([1.0, 1.5, 2.0, 2.0, 2.0, 3.0, 50.0, np.inf]))
    C = float(np.inf if rng.random() < 0.3 else 10.0 ** rng.integers(-8, 9))
    if rng.random() < 0.2:
        return Case(
            X, y, None, "separate", {"p": p, "bias": intercept["fit_intercept"], "max_time": MAX_TIME}
        )
    loss = str(rng.choice(["hinge", "squared_hinge"]))
    parameters = {"C": C, "loss": loss, "tol": float(rng.choice([1e-1, 1e-3, 1e-6, 1e-10]))}
    parameters |= intercept | {"max_time": MAX_TIME, "random_state": 0}
    if rng.random() < 0.1:
        parameters["class_weight"] = "balanced"
    if rng.random() < 0.25:
        kernel = str(rng.choice(["linear", "rbf", "poly", "sigmoid"]))
        parameters |= {
            "kernel": kernel,
            "gamma": float(10.0 ** rng.integers(-4, 4)),
            "degree": int(rng.integers(1, 4)),
        }
        parameters |= {"coef0": float(rng.choice([0.0, 1.0])), "multi_class": str(rng.choice(["ovr", "ovo"]))}
        return Case(X, y, weights, KernelMaxMarginClassifier, parameters)
    parameters |= {"p": p, "norm_power": int(rng.choice([1, 2, 2, 2]))}
    if rng.random() < 0.3:
        parameters["algorithm"] = str(rng.choice(sorted(ALGORITHMS)))
    return Case(X, y, weights, MaxMarginClassifier, parameters)


@dataclass(frozen=True)
class Fits:
    """Random problems."""

    name: str = "fits"
    seconds: float = 60.0  # a fit of several classes, with compiled code to load, on a busy machine

    def trial(self, rng: Random, folder: Path) -> str:
        """Fit a random problem, and check what is proved."""
        problem = case(rng.getrandbits(63))
        (folder / "input.txt").write_text(problem.text())
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            warnings.filterwarnings("ignore", "invalid value encountered in reduce")  # of scikit-learn
            warnings.filterwarnings("ignore", "The number of unique classes is greater than 50%")
            return check_verdict(problem) if problem.kind == "separate" else check_fit(problem)


TARGETS = {"fits": Fits}


def refusal(error: Exception) -> str:
    """Return "refused" for an error of validation; raise others again."""
    text = str(error)
    require(len(text) > 20 and text[-1] in ".)" and len(text) < 1500, f"no clear sentence: {text!r}")
    return "refused"


def check_verdict(problem: Case) -> str:
    """Require a proof that rational numbers confirm."""
    try:
        verdict = separate(problem.X, problem.y, **problem.parameters)
    except ValueError as error:
        return refusal(error)
    if isinstance(verdict, Undecided):
        return "undecided"
    X = problem.X.toarray() if sp.issparse(problem.X) else problem.X
    data = [[Fraction(x) for x in row] for row in X.astype(float).tolist()]
    signs = np.where(problem.y == verdict.classes[1], 1, -1).tolist()
    bias = problem.parameters["bias"]
    if isinstance(verdict, Inseparable):
        terms = [
            (w * signs[i], data[i]) for i, w in zip(verdict.support.tolist(), verdict.weights, strict=True)
        ]
        require(min(verdict.weights) > 0, "a weight is not positive")
        require(not bias or sum(a for a, _ in terms) == 0, "the weights are not balanced")
        require(all(sum(a * row[j] for a, row in terms) == 0 for j in range(X.shape[1])), "the sum is not 0")
        return "inseparable"
    require(isinstance(verdict, LinearSeparator), f"{type(verdict).__name__} is no verdict on hyperplanes")
    point = [Fraction(x) for x in (*verdict.w.tolist(), float(verdict.b))]
    scores = [
        sign * (sum(w * x for w, x in zip(point, row, strict=False)) + point[-1])
        for sign, row in zip(signs, data, strict=True)
    ]
    require(min(scores) > 0 and (bias or point[-1] == 0), "a row is on the wrong side")
    return "separable"


def check_fit(problem: Case) -> str:
    """Require bounds that hold at the model and at other points."""
    model = problem.kind(**problem.parameters)
    try:
        model.fit(problem.X, problem.y, problem.weights)
    except ValueError as error:
        return refusal(error)
    if model.status_ is Status.NOT_FINITE:  # weights have overflowed
        return "not_finite"
    X = (problem.X.toarray() if sp.issparse(problem.X) else problem.X).astype(float)
    factors = dict(zip(model.classes_.tolist(), model.class_weight_.tolist(), strict=True))
    weights = np.array([factors.get(label, 0.0) for label in problem.y.tolist()])
    weights *= 1.0 if problem.weights is None else problem.weights
    certificate = model.certificate_
    for k, (label, part) in enumerate(zip(certificate.classes, certificate.certificates, strict=True)):
        crossed = part.lower > part.upper + CROSSED * abs(part.upper)
        require(not crossed, f"the bounds {part.lower!r} and {part.upper!r} cross")
        if isinstance(label, tuple):  # a pair of classes: other rows than those of the data
            continue
        signs = np.where(problem.y == (model.classes_[1] if label is None else label), 1, -1)
        if isinstance(model, MaxMarginClassifier):
            check_linear(part, (X, signs, weights), model.coef_[k], float(model.intercept_[k]))
        else:
            check_kernel(part, (X, signs, weights), model, k)
    return model.status_.name.lower()


def check_linear(part: Any, data: tuple[np.ndarray, ...], coef: np.ndarray, intercept: float) -> None:
    """Require that the bound of the model holds at the model, and that no other hyperplane refutes the other bound."""
    problem = part.problem
    w, b = [Fraction(x) for x in coef.tolist()], Fraction(intercept)
    found = value(problem, *data, w, b)
    attained = (
        part.lower <= found + abs(found) * NORM_ERROR if problem.hard else is_at_least(part.upper, found)
    )
    require(attained or part.proves_nothing, f"the model attains {float(found)!r}: {part}")
    points = [([t * x for x in w], t * b) for t in SCALES]
    points += [
        ([Fraction(0)] * len(w), Fraction(c)) for c in ((0,) if problem.intercept == "none" else (-1, 0, 1))
    ]
    for other in points:
        found = value(problem, *data, *other)
        holds = is_at_least(part.upper, found) if problem.hard else part.lower <= found
        require(holds, f"{other} attains {float(found)!r}: {part}")


def is_at_least(bound: float, found: Fraction) -> bool:
    """Return whether a bound is at least a number whose norm was rounded up."""
    return bound == np.inf or bound >= found - abs(found) * NORM_ERROR


def check_kernel(part: Any, data: tuple[np.ndarray, ...], model: Any, k: int) -> None:
    """Require that the bounds hold at the model, and a lower one at w = 0, up to the rounding of float64."""
    (X, signs, weights), problem = data, part.problem
    options = {name: getattr(model, name) for name in ("degree", "coef0")}
    options = {"rbf": {}, "linear": {}, "poly": options, "sigmoid": {"coef0": model.coef0}}[model.kernel]
    options |= {} if model.kernel == "linear" else {"gamma": model.gamma_}
    with np.errstate(all="ignore"):
        K = pairwise_kernels(X, metric=model.kernel, **options)
        coefficients = np.zeros(len(X))
        coefficients[model.support_], b = model.dual_coef_[k], float(model.intercept_[k])
        margins, square = signs * (K @ coefficients + b), coefficients @ K @ coefficients
        sizes = np.abs(K) @ np.abs(coefficients)
        extra = (b / problem.intercept_scaling) ** 2 if problem.intercept == "augmented" else 0.0
        power, kept = 1 if problem.loss == "hinge" else 2, weights > 0.0
        error = ROUNDING * (1.0 + sizes + abs(b))  # of the margins
        terms = np.abs(coefficients) @ sizes
        if problem.hard:
            low = (margins - error)[kept].min()
            enough = low / np.sqrt(square + extra + ROUNDING * terms)
            require(not enough > part.upper, f"the margin is at least {enough!r}: {part}")
            return
        slacks = [np.maximum(1.0 - margins + sign * error, 0.0) ** power for sign in (-1, 1)]
        low, high = (
            0.5 * (square + extra + sign * ROUNDING * (terms + extra)) + problem.C * (weights @ one)
            for sign, one in zip((-1, 1), slacks, strict=True)
        )
        at_zero = problem.C * weights.sum() * (1.0 + ROUNDING)
    if not np.isfinite([low, high]).all():
        return
    require(part.proves_nothing or part.upper >= low, f"the model attains at least {low!r}: {part}")
    require(part.lower <= min(high, at_zero), f"an objective of {min(high, at_zero)!r} refutes {part}")
