"""maxmargin fit --online: a file or a pipe of any length, read once in constant memory, its rows in random order."""

from __future__ import annotations

import re
import time
from collections.abc import Iterable, Iterator
from math import isinf
from pathlib import Path
from typing import Any

import numpy as np
import typer

from ..algorithms import ALGORITHMS
from ..estimators.decisions import text_of
from ..estimators.online import OnlineMarginClassifier
from ..fit.streaming import streams
from ..io.model_file import save
from ..numerics.files import check_place
from ..numerics.sizes import UNITS
from ..readers import DataError, names_columns
from ..readers.files import check_file
from ..readers.shuffled import STANDARD_INPUT, Block, Reader, ShuffleBuffer
from ..readers.table import labels_of
from .display import Progress
from .options import FIELDS, STOPPED, Result, dashed

NEED_RATES = ("cramma", "micra", "fixed-margin")  # parameters that the command line cannot give
PARAMETERS = ("C", "algorithm", "fit_intercept", "intercept_scaling", "seed")  # of the estimator
OTHER_OPTIONS = ("data", "output", "online", "classes", "n_features", "shuffle_buffer", "as_json", "quiet")
# A larger buffer mixes longer runs of a label and costs memory: this one holds 700,000 rows of ten entries, and is
# small beside the memory of any computer.
SHUFFLE_BUFFER = "100MB"
CTRL_C = "Ctrl-C"  # as the reason why a stream ended


def fit_online(data: Path, output: Path, given: dict[str, Any]) -> Result:
    """Learn from every row once, and write the model.

    Ctrl-C, and a line that cannot be read, end the stream; the model of the rows before is written.

    Parameters
    ----------
    data : Path
        Of a file or a pipe; - is standard input.
    output : Path
    given : dict
        Options that the command line sets.
    """
    if data != STANDARD_INPUT:
        check_file(data)
    check_place(output, data)
    _check_options(data, given)
    parameters = {FIELDS.get(name, name): given[name] for name in PARAMETERS if name in given}
    model, begin = OnlineMarginClassifier(**parameters), time.perf_counter()
    with Progress(quiet=bool(given.get("quiet"))):
        stopped = _Pass(model, data, given).run()
    seconds = time.perf_counter() - begin
    save(model, output)
    if stopped not in (None, CTRL_C):
        typer.echo(
            f"maxmargin: {stopped.rstrip('.')}; the model was learnt from {model.n_seen_} rows.", err=True
        )
    end = "" if stopped is None else ", stopped before the end"
    facts = _stream_facts(model)
    lines = [f"{model.n_seen_} rows in {seconds:.3g} s{end}: {output}"]
    lines += [_problem_line(model, problem) for problem in facts["problems"]]
    facts |= {"stopped": stopped, "seconds": seconds, "model": str(output)}
    return Result(facts, lines, 0 if stopped is None else STOPPED)


def bytes_of(size: str) -> int:
    """Return the number of bytes of ``--shuffle-buffer``."""
    found = re.fullmatch(r"(\d+(?:\.\d+)?) *([KMGT]?B|)", size.strip().upper())
    if found is None:
        raise DataError(f"--shuffle-buffer must be a size such as 512KB, 100MB or 2GB, or 0; got {size}.")
    return int(float(found[1]) * UNITS[found[2]])


def _check_options(data: Path, given: dict[str, Any]) -> None:
    """Raise DataError where an option, or the kind of file, does not go with a stream."""
    unused = [name for name in given if name not in PARAMETERS + OTHER_OPTIONS]
    if unused:
        raise DataError(f"{dashed(unused[0])} does not apply with --online; leave one of them out.")
    if names_columns(data) or data.suffix.lower() == ".npz":
        raise DataError(f"{data}: --online reads svmlight text; convert the data, or leave out --online.")
    _check_algorithm(given.get("algorithm", "auto"), given.get("fit_intercept", True))
    for name, most in (("C", "or inf for the hard margin"), ("intercept_scaling", "finite")):
        value = given.get(name, 1.0)
        if not value > 0.0 or (value == float("inf") and name != "C"):
            raise DataError(f"{dashed(name)} must be a positive number, {most}; got {value:g}.")
    if given.get("n_features", 0) < 1:
        raise DataError("--online needs the number of columns, at least 1: give --n-features.")


def _check_algorithm(name: str, fit_intercept: bool) -> None:
    """Raise DataError where an algorithm cannot learn from a stream, in terms of the command line."""
    able = [one for one, cls in ALGORITHMS.items() if streams(cls) and one not in NEED_RATES]
    if name in NEED_RATES:
        needed = "the margin to reach" if name == "fixed-margin" else "a rate"
        raise DataError(
            f"--algorithm {name} needs {needed}, and the command line has no option for it: name another algorithm "
            f"({', '.join(able)}), or use OnlineMarginClassifier in Python."
        )
    if name not in ("auto", *ALGORITHMS):
        raise DataError(f"--algorithm must be auto or one of {', '.join(able)}; got {name}.")
    if name != "auto" and name not in able:
        raise DataError(
            f"'{name}' cannot learn from a stream, where each row occurs only once: leave out --online, or name "
            f"one of {', '.join(able)}."
        )
    if name == "pumma" and not fit_intercept:
        raise DataError("--algorithm pumma learns an intercept: leave out --no-intercept, or name another.")


class _Pass:
    """One pass over a file or a pipe.

    Parameters
    ----------
    model : OnlineMarginClassifier
    data : Path
    given : dict
        Options that the command line sets.
    """

    def __init__(self, model: Any, data: Path, given: dict[str, Any]) -> None:
        size = bytes_of(given.get("shuffle_buffer", SHUFFLE_BUFFER))
        self.model, self.buffer = model, ShuffleBuffer(size, np.random.default_rng(given.get("seed")))
        self.reader = Reader(data, given.get("n_features"), self.buffer)
        self.classes = None if given.get("classes") is None else _classes(given["classes"])

    def run(self) -> str | None:
        """Learn all rows; return the reason why they ended early, None at the end of the data.

        What stops it before the first row is learnt is raised. After Ctrl-C the rows in the buffer are learnt, up to a
        second Ctrl-C.
        """
        try:
            try:
                self._learn(self._shuffled())
            except KeyboardInterrupt:
                self._learn(self.buffer.rest())
                raise
        except (KeyboardInterrupt, DataError) as error:
            if not getattr(self.model, "n_seen_", 0):
                raise
            return str(error) if isinstance(error, DataError) else CTRL_C
        return None

    def _shuffled(self) -> Iterator[Block]:
        """Yield the rows as they leave the buffer; where reading fails, all rows before, then raise the error."""
        fault = None
        try:
            for block in self.reader:
                self._check(block)
                yield from self.buffer.add(block)
        except DataError as error:
            fault = error
        yield from self.buffer.rest()
        if fault is not None:
            raise fault

    def _check(self, block: Block) -> None:
        """Raise DataError where labels are no classes, or others than those known."""
        if block.y.dtype.kind == "f":
            raise DataError(f"{self.reader.name}: the labels are fractions, not classes; number the classes.")
        if self.classes is None:
            return
        strange = np.flatnonzero(~np.isin(block.y, self.classes))
        if strange.size:
            row, label = self.reader.row(int(strange[0])), block.y[strange[0]]
            raise DataError(
                f"{self.reader.name}: the label of row {row} (counted from 1) is {label}, none of the classes "
                f"{self.classes.tolist()}; name all classes with --classes."
            )

    def _learn(self, blocks: Iterable[Block]) -> None:
        """Present rows; without ``--classes``, the classes are the labels that the reader and the buffer know first."""
        for block in blocks:
            if self.classes is None:
                self.classes = np.union1d(self.reader.labels, self.buffer.labels)
                if self.classes.size < 2:
                    rows = f"the first {self.buffer.n_filled} rows that were read are all of class {self.classes[0]}"
                    raise DataError(f"{self.reader.name}: {rows}; use --classes.")
            try:
                self.model.source_ = {"label": None, "first_index": block.first_index}
                self.model.partial_fit(block.X, block.y, classes=self.classes)
            except ValueError as error:
                raise DataError(f"{self.reader.name}: {error}") from None


def _classes(names: str) -> np.ndarray:
    """Return the classes of ``--classes``."""
    classes = labels_of([word for word in names.split(",") if word.strip()])
    if classes.dtype.kind != "i":
        raise DataError(f"--classes takes whole numbers, as in -1,1; got {names}.")
    return classes


def _stream_facts(model: Any) -> dict[str, Any]:
    """Return a stream's model as plain values: one problem a class, of two classes one for the second."""
    labels = list(model.classes_)
    numbers = {"mistakes": model.mistakes_, "updates": model.updates_, **model.bounds_._asdict()}
    problems = [
        {"class": label} | {name: values[k].item() for name, values in numbers.items()}
        for k, label in enumerate(labels if len(labels) > 2 else labels[1:])
    ]
    features = int(model.coef_.shape[1])
    return {"rows": model.n_seen_, "features": features, "classes": labels, "problems": problems}


def _problem_line(model: Any, problem: dict[str, Any]) -> str:
    quantity = "margin" if isinf(model.C) else "objective"
    name = "" if len(model.mistakes_) == 1 else f"{text_of(problem['class'])}: "
    return (
        f"{name}{problem['mistakes']} mistakes during the pass, {problem['updates']} updates; "
        f"{problem['lower']:.6g} <= best {quantity} <= {problem['upper']:.6g}"
    )
