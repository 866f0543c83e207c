"""Certificate files: the checker accepts no false statement."""

from __future__ import annotations

import contextlib
import importlib.util
import io
import tempfile
from collections.abc import Callable
from fractions import Fraction
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from files import FileTarget, require
from objective import value

from maxmargin import MaxMarginClassifier, Problem, write_certificate

CHECKER = Path(__file__).resolve().parents[2] / "checker" / "check.py"
ROWS = np.array([[1.0, 2.0], [0.5, -1.0], [0.25, 0.0], [4.0, 1.0], [-1.0, 1.5], [2.0, 2.0]])
LABELS = np.array([1, -1, -1, 1, -1, 1])
WEIGHTS = np.array([1.0, 2.0, 0.5, 1.0, 1.0, 3.0])
WORDS = (
    b'"inf"', b'"-inf"', b'"1/3"', b'"1/0"', b'"0"', b"null", b"true", b"1.5", b'"hard"', b'"squared_hinge"',
    b'"free"',
    b'"none"', b'{"w": []}\n', b'{"dual": [[1, "1"]]}\n', b'{"weights": [[1, "0"]]}\n', b'{"end": 4}\n',
    b'"0x1.0000000000000p-1074"', b'"0x1.0p+1023"', b'"power": 1', b'"p": "1"', b"[[", b"]]", b'"positive": "1"',
)  # fmt: skip


@cache
def checker() -> Any:
    """Return the module of the checker."""
    spec = importlib.util.spec_from_file_location("check", CHECKER)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def text_of_rows() -> bytes:
    """Return the rows as svmlight text."""
    lines = (
        f"{label} {' '.join(f'{j}:{x!r}' for j, x in enumerate(row, 1) if x)}\n"
        for row, label in zip(ROWS.tolist(), LABELS.tolist(), strict=True)
    )
    return "".join(lines).encode()


def certificates() -> list[bytes]:
    """Return certificate files of several problems on the same rows."""
    kinds = (
        ({}, None),
        ({"loss": "hinge", "intercept_scaling": 1.0}, WEIGHTS),
        ({"C": np.inf}, None),
        ({"C": np.inf, "fit_intercept": False, "p": 1}, None),
        ({"p": np.inf, "norm_power": 1, "C": 3.0}, WEIGHTS),
    )
    files = []
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "proof"
        for parameters, weights in kinds:
            model = MaxMarginClassifier(random_state=0, **parameters).fit(ROWS, LABELS, weights)
            write_certificate(path, model, ROWS, LABELS, weights)
            files.append(path.read_bytes())
    return files


def check_certificate(path: Path, *_: Any) -> str:
    """Require that the bounds of an accepted certificate hold the objective, or margin, of other points.

    The points are those of the fits of `feasible_points`; bounds and objectives are compared in rational numbers.
    """
    data = path.with_name("data.svm")
    data.write_bytes(text_of_rows())
    words = io.StringIO()
    try:
        with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(words):
            checker().check(str(path), str(data))
    except SystemExit as refusal:
        word = {1: "INVALID: ", 2: "UNREADABLE: "}.get(refusal.code, "no exit code of a refusal")
        require(words.getvalue().startswith(word), f"ended with {refusal.code!r}, {words.getvalue()!r}")
        return "refused"
    except Exception:  # the program turns all of them into a refusal
        return "refused"
    _, parts = checker().read_certificate(str(path))
    for part in parts:
        check_bounds(part)
    return "valid"


def check_bounds(part: Any) -> None:
    """Require that no point of other fits refutes the bounds of a part of a certificate."""
    signs = np.where(LABELS.astype(str) == part.positive, 1, -1)
    weights = np.array([float(part.weights.get(i, 1)) for i in range(1, LABELS.size + 1)])
    hard = part.loss == "hard"
    problem = Problem(
        "hinge" if hard else part.loss,
        np.inf if hard else float(part.C),
        float(part.p),
        part.intercept,
        float(part.scaling),
        2 if hard else part.power,
    )
    for w, b in feasible_points():
        b = Fraction(0) if problem.intercept == "none" else b
        found = value(problem, ROWS, signs, weights, w, b)
        holds = part.upper >= found if hard else part.lower <= found
        require(holds, f"({w}, {b}) refutes a bound of {problem}")


@cache
def feasible_points() -> list[tuple[list[Fraction], Fraction]]:
    """Return hyperplanes: zero, and those of fits with several parameters, in several scales."""
    points = [([Fraction(0)] * 2, Fraction(b)) for b in (-1, 0, 1)]
    for C in (1e-3, 0.1, 1.0, 10.0, np.inf):
        for p in (1.0, np.inf):
            model = MaxMarginClassifier(C, p=p, random_state=0).fit(ROWS, LABELS)
            for scale in (Fraction(1, 2), Fraction(1), Fraction(-1)):
                w = [Fraction(x) * scale for x in model.coef_[0].tolist()]
                points.append((w, Fraction(float(model.intercept_[0])) * scale))
    return points


TARGETS: dict[str, Callable[[], FileTarget]] = {
    "certificate": lambda: FileTarget("certificate", ".json", certificates(), check_certificate, WORDS),
}
