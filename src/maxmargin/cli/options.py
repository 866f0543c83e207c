"""The commands and their options, and what the functions of the commands return."""

from __future__ import annotations

import json
import math
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any, NamedTuple

# exit codes: stopped before the tolerance, or undecided; bad input or a failed check
STOPPED, BAD_INPUT = 3, 2
EXIT_CODES = "Exit codes: 0 done; 2 wrong input or a failed check; 3 gap above the tolerance, or undecided; 130 Ctrl-C."


def number_or_word(value: str) -> float | str:
    """Return a number, or else the word, which the estimator knows or refuses."""
    try:
        return float(value)
    except ValueError:
        return value


# Arguments and options by the parameter that each sets, with its type and its help; True and False are the values of
# a flag. What is not typed is left to the functions that commands call; the help has their defaults in brackets.
OPTIONS: dict[str, tuple[Any, str]] = {
    "model": (Path, "a file that maxmargin fit wrote"),
    "data": (Path, "svmlight text, .csv, .npz, .parquet or .arrow; text also as .gz, .bz2 or .xz"),
    "output": (Path, "the file to write"),
    "to": (str, "format: onnx, liblinear or libsvm [onnx if the file ends in .onnx]"),
    "labels": (str, "for liblinear and libsvm: a whole number for each class, in sorted order, as in 0,1,2"),
    "scores": (True, "write the score, or the score of every class, after each label, separated by tabs"),
    "proof": (Path, "write the bounds of a linear model in rational arithmetic, and the numbers that prove "
        "them, to this file, which checker/check.py of the source distribution checks without maxmargin"),
    "algorithms": (str, "names separated by commas, as in dcd,mpu,pumma [all]"),
    "csv": (Path, "write every report of every algorithm to this file"),
    "bias": (False, "search hyperplanes through the origin only"),
    "C": (float, "weight of the losses; inf is the hard margin [1; with --online inf]"),
    "loss": (str, "squared_hinge or hinge [squared_hinge; with --kernel hinge]"),
    "p": (number_or_word, "norm of distances: 1 to inf, or log, which is max(2, 2 ln d) for d features [2]"),
    "norm_power": (int, "regulariser: 2 for half the squared norm of w, 1 for the norm itself [2]"),
    "tol": (float, "certified relative gap at which the work ends [0.001; of separate 0.01, and inf for the "
        "verdict alone]"),
    "kernel": (str, "linear, poly, rbf, sigmoid, or another of scikit-learn's pairwise kernels"),
    "gamma": (number_or_word, "parameter of the kernel: a number, scale or auto [scale]"),
    "multi_class": (str, "with --kernel: ovr, each class against the rest, or ovo, each pair of classes [ovr]"),
    "algorithm": (str, "auto, or a name: dcd, mpu, pumma, perceptron and others [auto]"),
    "fit_intercept": (False, "without an intercept"),
    "intercept_scaling": (float, "regularise the intercept, as the weight of a constant feature of this value "
        "[it is free; with --online 0.3]"),
    "class_weight": (str, "balanced: the weights of each class have the same sum"),
    "max_iter": (int, "maximum number of rounds, of compare of epochs [1000; with --kernel no limit]"),
    "max_time": (float, "time limit in seconds, of compare for each algorithm; the best result so far is kept"),
    "random_state": (int, "seed of the order of the rows [another order in each run]"),
    "online": (True, "one pass over svmlight text of any length, in constant memory and without a certificate; "
        "the file may be a pipe, and - is standard input; with --n-features, --C, --algorithm, "
        "--intercept-scaling, --no-intercept and --seed"),
    "memory": (str, "memory that the work may use, as in 2GB: larger data are read in passes [half of the free memory, "
        "where the data do not fit]"),
    "n_features": (int, "number of columns, if not all of them occur in a sparse file"),
    "label": (str, "the label column of a .csv, .parquet or .arrow file"),
    "use": (str, "feature columns of a .csv, .parquet or .arrow file, as in a,b,c; all others are left out"),
    "drop": (str, "columns of a .csv, .parquet or .arrow file to leave out, as in id,date"),
    "header": (bool, "whether the first line of a text table holds the names of the columns; columns without "
        "names are x1, x2 and so on [guessed]"),
    "delimiter": (str, "the sign between columns of a text table: comma, semicolon, tab, space (runs of spaces "
        "and tabs) or another one [guessed]"),
    "as_json": (True, "print JSON on standard output"),
}  # fmt: skip
FLAGS = {  # of options that are not called as what they set
    "output": ["-o", "--output"], "bias": ["--no-bias"], "fit_intercept": ["--no-intercept"], "use": ["--columns"],
    "random_state": ["--seed"], "as_json": ["--json"],
}  # fmt: skip


class Result(NamedTuple):
    """Result of a command.

    Attributes
    ----------
    facts : dict
        Plain values, for ``--json``.
    lines : iterable of str
        The same as text.
    code : int
        Of the exit.
    """

    facts: dict[str, Any]
    lines: Iterable[str]
    code: int = 0


def flags_of(name: str) -> list[str]:
    """Return an option of a parameter as it is typed."""
    return FLAGS.get(name, [f"--{name.replace('_', '-')}"])


def note(text: str) -> None:
    """Print a line on standard error."""
    print(f"maxmargin: {text}", file=sys.stderr)


def json_text(facts: dict[str, Any]) -> str:
    """Return one JSON object; numbers that JSON does not know are the strings "inf", "-inf" and "nan"."""
    return json.dumps(_plain(facts), allow_nan=False)


def _plain(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _plain(inner) for name, inner in value.items()}
    if isinstance(value, list):
        return [_plain(inner) for inner in value]
    if hasattr(value, "item"):  # a NumPy scalar
        value = value.item()
    if isinstance(value, Path):
        return str(value)
    return str(value) if isinstance(value, float) and not math.isfinite(value) else value
