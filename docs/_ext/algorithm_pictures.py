"""Pictures of the algorithm pages: decision lines and bounds of runs on two features of iris."""

from __future__ import annotations

from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib import pyplot as plt
from sklearn.datasets import load_iris
from sklearn.preprocessing import StandardScaler

from maxmargin import KernelMaxMarginClassifier, MaxMarginClassifier, Problem, Status
from maxmargin.algorithms import Algorithm
from maxmargin.algorithms.normalised.base import NormalisedAlgorithm
from maxmargin.algorithms.normalised.patterns import NormalisedRows

COLOURS = ("#1d4ed8", "#c2410c")
UPPER, LOWER, QUIET = "#c2410c", "#1d4ed8", "#94a3b8"
ROUNDS = (1, 2, 3, 4, 5, 6, 8, 12, 20, 40)
MAX_ROUNDS = 200


class WithoutExactSolver(MaxMarginClassifier):
    """Classifier that does not end small problems with the exact solver, so that the bounds are the algorithm's."""

    _exact = False


def separable() -> tuple[np.ndarray, np.ndarray]:
    """Return setosa and versicolor with sepal length and petal length: 100 rows, separable."""
    X, y = load_iris(return_X_y=True)
    return StandardScaler().fit_transform(X[:100][:, [0, 2]]), y[:100]


def inseparable() -> tuple[np.ndarray, np.ndarray]:
    """Return versicolor and virginica with petal length and petal width: 100 rows, not separable."""
    X, y = load_iris(return_X_y=True)
    return StandardScaler().fit_transform(X[50:][:, 2:]), y[50:]


def problem_options(cls: type[Algorithm]) -> dict[str, Any]:
    """Return the parameters of the first problem in a fixed list that the algorithm solves."""
    for options in (
        {"C": float("inf")},
        {"C": float("inf"), "p": float("inf")},
        {"C": 1.0, "loss": "hinge"},
        {"C": 1.0},
        {"C": 1.0, "p": float("inf")},
    ):
        problem = Problem(options.get("loss", "squared_hinge"), options["C"], p=options.get("p", 2.0))
        if cls().refuses(problem) is None:
            return options
    raise ValueError(f"{cls.__name__} solves no problem of the pictures")


def caption(cls: type[Algorithm]) -> str:
    """Return the caption of an algorithm's picture."""
    if issubclass(cls, NormalisedAlgorithm):
        return (
            "A run of 2000 steps, beyond the separator or the convex combination at which the algorithm ends, on two "
            "features of iris: setosa and versicolor (left), versicolor and virginica (right). The margin is that of "
            "the normalised patterns, with a constant coordinate of 1."
        )
    options = problem_options(cls)
    hard = options["C"] == float("inf")
    flowers = "setosa and versicolor" if hard else "versicolor and virginica"
    what = "hard margin" if hard else f"{options.get('loss', 'squared_hinge').replace('_', ' ')}, C = 1"
    norm = ", p = ∞" if options.get("p") == float("inf") else ""
    measured = "margin" if hard else "objective"
    return (
        f"A run on two species of iris ({flowers}) with two features; problem: {what}{norm}. Left: the decision line "
        "after some of the rounds (grey) and at the end (black), with the margin lines (dashed). Right: the lower and "
        f"the upper bound on the best {measured} after each round. The exact solver for small problems is switched "
        "off."
    )


def path_and_bounds(cls: type[Algorithm], file: Path) -> None:
    """Draw decision lines and bounds of an algorithm."""
    options = problem_options(cls)
    X, y = separable() if options["C"] == float("inf") else inseparable()
    models: list[MaxMarginClassifier] = []
    for rounds in (*ROUNDS, MAX_ROUNDS):
        models.append(
            WithoutExactSolver(algorithm=cls(), max_iter=rounds, tol=1e-3, random_state=0, **options).fit(
                X, y
            )
        )
        if models[-1].status_ is not Status.MAX_ITER:
            break
    figure, (left, right) = plt.subplots(1, 2, figsize=(10.0, 3.9), layout="constrained")
    _draw_rows(left, X, y)
    for k, model in enumerate(models[:-1]):
        _draw_line(left, model, alpha=0.25 + 0.5 * k / len(models), color=QUIET, lw=1.0)
    _draw_line(left, models[-1], color="#0f172a", lw=2.0)
    for side in (-1.0, 1.0):
        _draw_line(left, models[-1], level=side * _level(models[-1]), color="#0f172a", lw=0.8, ls="--")
    _draw_history(right, models[-1])
    _save(figure, file)


def _level(model: MaxMarginClassifier) -> float:
    """Return the score on the margin lines: 1 for a soft margin, the smallest score of a row for a hard margin."""
    problem = model.certificate_.problem
    return float(model.certificate_.lower * np.linalg.norm(model.coef_, problem.q)) if problem.hard else 1.0


def _draw_rows(ax: Any, X: np.ndarray, y: np.ndarray) -> None:
    for label, colour, marker in zip(np.unique(y), COLOURS, "o^", strict=True):
        ax.scatter(
            *X[y == label].T, s=22, c=colour, marker=marker, edgecolors="white", linewidths=0.5, zorder=3
        )
    low, high = X.min(axis=0), X.max(axis=0)
    room = 0.08 * (high - low)
    ax.set(xlim=(low[0] - room[0], high[0] + room[0]), ylim=(low[1] - room[1], high[1] + room[1]))
    ax.set(xticks=[], yticks=[])


def _draw_line(ax: Any, model: MaxMarginClassifier, level: float = 0.0, **style: Any) -> None:
    (a, c), b = model.coef_[0], float(model.intercept_[0]) - level
    if a == 0.0 and c == 0.0:
        return
    if abs(c) > abs(a):
        ends = np.array(ax.get_xlim())
        ax.plot(ends, -(a * ends + b) / c, scalex=False, scaley=False, **style)
    else:
        ends = np.array(ax.get_ylim())
        ax.plot(-(c * ends + b) / a, ends, scalex=False, scaley=False, **style)


def _draw_history(ax: Any, model: MaxMarginClassifier) -> None:
    """Draw the lower and the upper bound after each round, clipped to a range around the optimum."""
    history, hard = model.history_, model.certificate_.problem.hard
    rounds = np.arange(1, len(history) + 1)
    lower, upper = (np.array([getattr(r, side) for r in history]) for side in ("lower", "upper"))
    best = model.certificate_.lower if hard else model.certificate_.upper
    floor, ceiling = (-0.6 * best, 2.6 * best) if hard else (0.0, 3.0 * best)
    low, high = np.clip(lower, floor, ceiling), np.clip(upper, floor, ceiling)
    ax.fill_between(rounds, low, high, step="mid", color=QUIET, alpha=0.25, lw=0)
    markers = "v^" if len(rounds) <= 12 else (None, None)
    for bound, color, marker, name in (
        (high, UPPER, markers[0], "upper bound"),
        (low, LOWER, markers[1], "lower bound"),
    ):
        ax.plot(rounds, bound, drawstyle="steps-mid", color=color, marker=marker, ms=4, label=name)
    words = f"{model.status_.value}, gap {model.certificate_.gap:.2g}"
    if len(rounds) == 1:
        words = f"one round: {words}"
    ax.set(xlabel="round", ylabel="best margin" if hard else "best objective", ylim=(floor, ceiling))
    ax.set_title(f"{words}, {history[-1].steps} updates" if history[-1].steps else words, fontsize=10)
    if len(rounds) > 12:
        ax.set_xscale("log")
    else:
        ax.set_xticks(rounds)
    ax.legend(frameon=False)
    _hide_spines(ax)


def bounds_of_steps(cls: type[NormalisedAlgorithm], file: Path) -> None:
    """Draw the bounds of the normalised margin by step, for separable and for inseparable rows."""
    figure, axes = plt.subplots(1, 2, figsize=(10.0, 3.9), layout="constrained")
    for ax, (X, y), words in zip(
        axes,
        (separable(), inseparable()),
        ("separable rows", "inseparable rows"),
        strict=True,
    ):
        patterns = NormalisedRows(X, np.where(y == y.max(), 1.0, -1.0), constant=1.0)
        iterates = list(islice(cls().iterates(patterns), 2000))
        steps = np.arange(1, len(iterates) + 1)
        ax.plot(steps, np.minimum.accumulate([s.upper for s in iterates]), color=UPPER, label="upper bound")
        ax.plot(steps, np.maximum.accumulate([s.lower for s in iterates]), color=LOWER, label="lower bound")
        ax.axhline(0.0, color="#334155", lw=0.8)
        ax.set_yscale("symlog", linthresh=1e-3)
        ax.set(xscale="log", xlabel="step", title=words, ylim=(-1.0, 1.0))
        _hide_spines(ax)
    axes[0].set_ylabel("best bounds of the normalised margin")
    axes[0].legend(frameon=False, fontsize=9, loc="lower right")
    _save(figure, file)


def kernel_machine(file: Path) -> None:
    """Draw a Gaussian kernel classifier of the inseparable rows, and the bounds of a larger problem."""
    X, y = inseparable()
    model = KernelMaxMarginClassifier(C=2.0, gamma=1.0).fit(X, y)
    figure, (left, right) = plt.subplots(1, 2, figsize=(10.0, 3.9), layout="constrained")
    _draw_rows(left, X, y)
    grid = np.meshgrid(*(np.linspace(*ends, 200) for ends in (left.get_xlim(), left.get_ylim())))
    scores = model.decision_function(np.column_stack([part.ravel() for part in grid])).reshape(grid[0].shape)
    styles = {
        "levels": [-1.0, 0.0, 1.0],
        "colors": "#0f172a",
        "linestyles": ["--", "-", "--"],
        "linewidths": 1.2,
    }
    left.contour(*grid, scores, **styles)
    left.scatter(*X[model.support_].T, s=70, facecolors="none", edgecolors="#0f172a", linewidths=0.7)
    rng = np.random.default_rng(0)
    X = rng.standard_normal((1500, 10))
    y = (X[:, :3] ** 2).sum(axis=1) > 2.4
    model = KernelMaxMarginClassifier(C=5.0, gamma=0.1, tol=1e-5).fit(X, y)
    _draw_history(right, model)
    right.set_title(f"another problem, 1,500 rows: {right.get_title()}", fontsize=10)
    left.set_title("Gaussian kernel, support vectors with a ring", fontsize=10)
    _save(figure, file)


def nearest_point(file: Path) -> None:
    """Draw the differences between rows of two classes, and the point of their convex hull nearest to the origin."""
    X, y = separable()
    differences = (X[y == 1][:, None] - X[y == 0][None]).reshape(-1, 2)
    model = MaxMarginClassifier(C=float("inf")).fit(X, y)
    w = model.coef_[0]
    nearest = 2.0 * model.certificate_.upper * w / np.linalg.norm(w)
    figure, ax = plt.subplots(figsize=(5.4, 3.9), layout="constrained")
    ax.scatter(*differences.T, s=4, color=QUIET)
    ax.plot([0.0, nearest[0]], [0.0, nearest[1]], color="#0f172a", lw=2.0)
    ax.scatter(0.0, 0.0, color="#0f172a", zorder=3)
    ax.scatter(*nearest, color=UPPER, zorder=3)
    ax.annotate("origin", (0.0, 0.0), (8, -4), textcoords="offset points")
    ax.annotate("nearest point of the convex hull", nearest, (8, -4), textcoords="offset points")
    ax.set_title("differences between rows of two classes", fontsize=10)
    ax.set_aspect("equal")
    ax.set_ylim(bottom=-0.4)
    _hide_spines(ax)
    _save(figure, file)


def _hide_spines(ax: Any) -> None:
    ax.grid(color="#e2e8f0", lw=0.6)
    ax.set_axisbelow(True)
    for side in ("top", "right"):
        ax.spines[side].set_visible(False)


def _save(figure: Any, file: Path) -> None:
    figure.savefig(file)
    plt.close(figure)
