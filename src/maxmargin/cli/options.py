"""Skeleton of a command: options from one table, errors in one sentence, printing, exit codes.

Imports only typer, so that help is fast.
"""

from __future__ import annotations

import inspect
import json
import math
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from functools import wraps
from pathlib import Path
from typing import Annotated, Any, NamedTuple

import typer
from typer import Argument, BadParameter, Option

# exit codes: stopped before the tolerance; bad input or a failed check; Ctrl-C, 128 + SIGINT as shells have it
STOPPED, BAD_INPUT, INTERRUPTED = 3, 2, 130


def _number_or(option: str, takes: str, *words: str) -> Callable[[Any], float | str]:
    """Return a parser of numbers and of these words; errors name the option and what it takes."""

    def parse(value: Any) -> float | str:
        if value in words:
            return value
        try:
            return float(value)
        except ValueError:
            raise BadParameter(f"{option} must be {takes}; got {value!r}.") from None

    return parse


# options about data files and output

Data = Annotated[
    Path, Argument(help="svmlight text, .csv, .npz, .parquet or .arrow; text also as .gz, .bz2 or .xz.")
]
Model = Annotated[Path, Argument(help="A file that `maxmargin fit` wrote.")]
Columns = Annotated[int | None, Option(help="Columns of a sparse file, where not all of them occur in it.")]
Label = Annotated[str | None, Option(help="The label column of a .csv, .parquet or .arrow file.")]
Use = Annotated[
    list[str] | None,
    Option("--columns", help="Feature columns of such a file, as in a,b,c; all others are left out."),
]
Drop = Annotated[
    list[str] | None, Option("--drop", help="Columns of such a file that are left out, as in id,date.")
]
AsJson = Annotated[bool, Option("--json", help="One JSON object on standard output.")]
Quiet = Annotated[bool, Option("--quiet", "-q", help="Nothing is printed.")]


class ColumnOptions(NamedTuple):
    """Columns that a command line names: a command's parameter `columns` stands for these three options.

    Attributes
    ----------
    label : str or None
        ``--label``, the column of the labels.
    use, drop : list of str or None
        ``--columns`` and ``--drop``, feature columns that are kept or left out.
    """

    label: str | None
    use: list[str] | None
    drop: list[str] | None


# options that are parameters of the estimators


class EstimatorOption(NamedTuple):
    """An option that is a parameter of an estimator.

    Attributes
    ----------
    kind : type
        The annotation that typer reads.
    default : object
        The estimator's.
    flags : tuple of str
        Names on the command line, where they are not that of the option with hyphens.
    shown : dict
        Further keywords of `typer.Option`: `help`, `parser`, `metavar`, `show_default`.
    """

    kind: Any
    default: Any
    flags: tuple[str, ...]
    shown: dict[str, Any]

    def parameter(self, name: str) -> inspect.Parameter:
        """Return the parameter of a command that typer makes the option of."""
        kind: Any = Annotated[self.kind, Option(*self.flags, **self.shown)]
        return inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=self.default, annotation=kind)

    def changed(self, default: Any = ..., **shown: Any) -> EstimatorOption:
        """Return the option with another default, or other keywords."""
        default = self.default if default is ... else default
        return self._replace(default=default, shown=self.shown | shown)


def _option(kind: Any, default: Any, help: str, *flags: str, **shown: Any) -> EstimatorOption:
    return EstimatorOption(kind, default, flags, {"help": help, **shown})


_NORM = _number_or("--p", "a number from 1 to inf, or log", "log")
_GAMMA = _number_or("--gamma", "a number, scale or auto", "scale", "auto")

# Written here and not read off the estimators, whose import takes seconds, while help must not need one; tests
# compare the defaults. A command may say something else of an option (`command`).
ESTIMATOR_OPTIONS = {
    "C": _option(float, 1.0, "Weight of the losses; inf is the hard margin.", "--C"),
    "loss": _option(str, "squared_hinge", "squared_hinge or hinge."),
    "p": _option(
        Any, 2, "Norm of distances: 1 to inf, or log, max(2, 2 ln d).", parser=_NORM, metavar="NORM"
    ),
    "norm_power": _option(int, 2, "2: half the squared norm of w; 1: the norm itself."),
    "tol": _option(float, 1e-3, "Certified relative gap at which the fit ends."),
    "kernel": _option(
        str | None, None, "linear, poly, rbf, sigmoid, or another of scikit-learn's pairwise kernels."
    ),
    "gamma": _option(
        Any, "scale", "Of the kernel: a number, scale or auto.", parser=_GAMMA, metavar="NUMBER"
    ),
    "degree": _option(int, 3, "Of the kernel poly."),
    "coef0": _option(float, 0.0, "Of the kernels poly and sigmoid."),
    "multi_class": _option(
        str, "ovr", "With --kernel: ovr, each class against the rest, or ovo, against each other."
    ),
    "cache_size": _option(float, 200, "With --kernel: megabytes for its rows."),
    "algorithm": _option(str, "auto", "auto, or a name: dcd, mpu, pumma, perceptron and others."),
    "fit_intercept": _option(bool, True, "Is there an intercept?", "--fit-intercept/--no-intercept"),
    "intercept": _option(str, "free", "free, or augmented (regularised)."),
    "intercept_scaling": _option(float, 1.0, "With an augmented intercept."),
    "class_weight": _option(str | None, None, "balanced: every class counts as much as any other."),
    "max_iter": _option(int, 1000, "Most rounds."),
    "max_time": _option(float | None, None, "Seconds; then the best model so far is kept."),
    "seed": _option(int | None, None, "Order of presentation; none takes a fresh one."),
    "n_jobs": _option(int | None, None, "Classes solved at the same time."),
}
FIELDS = {"seed": "random_state"}  # parameters of the estimators that are not called as their options


# the skeleton


class Result(NamedTuple):
    """What a command found.

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


def command(*names: str, **changes: dict[str, Any]) -> Callable[[Callable[..., Result | None]], Any]:
    """Make a function a command: errors of the input are one sentence, and its result is printed.

    Parameters
    ----------
    *names : str
        Options of `ESTIMATOR_OPTIONS`, which the function receives in its ``**parameters`` by the names of the
        estimators. They stand before `n_features`, in the order of the table.
    **changes : dict
        More of them, with another default or other keywords than those of the table.
    """
    taken = [name for name in ESTIMATOR_OPTIONS if name in names or name in changes]
    options = {name: ESTIMATOR_OPTIONS[name].changed(**changes.get(name, {})) for name in taken}

    def decorate(function: Callable[..., Result | None]) -> Any:
        @wraps(function)
        def run(**given: Any) -> None:
            if "drop" in given:
                given["columns"] = ColumnOptions(given.pop("label"), given["columns"], given.pop("drop"))
            for name in options:
                given[FIELDS.get(name, name)] = given.pop(name)
            with errors_in_one_sentence():
                result = function(**given)
                if result is not None and given.get("as_json"):
                    typer.echo(json_text(result.facts))
                elif result is not None and not given.get("quiet"):
                    typer.echo("\n".join(result.lines))
            if result is not None and result.code:
                raise typer.Exit(result.code)

        signature = _signature(function, options)
        run.__signature__ = signature  # pyright: ignore[reportAttributeAccessIssue] # typer reads it
        run.__annotations__ = {name: one.annotation for name, one in signature.parameters.items()}
        return run

    return decorate


def _signature(function: Callable[..., Any], options: dict[str, EstimatorOption]) -> inspect.Signature:
    """Return the parameters of a command with those that `columns` and ``**parameters`` stand for."""
    keyword = inspect.Parameter.KEYWORD_ONLY
    columns = {"label": Label, "columns": Use, "drop": Drop}
    found: list[inspect.Parameter] = []
    for name, parameter in inspect.signature(function, eval_str=True).parameters.items():
        if name == "n_features":
            found += [option.parameter(one) for one, option in options.items()]
        if name == "columns":
            found += [parameter.replace(name=one, annotation=columns[one], default=None) for one in columns]
        elif name != "parameters":
            found.append(parameter.replace(kind=keyword))
    return inspect.Signature(found)


@contextmanager
def errors_in_one_sentence() -> Iterator[None]:
    """Print what is wrong with the input as one line on standard error, and exit with code 2."""
    try:
        yield
    except BrokenPipeError:  # the reader of our output has gone, as `head` does: no fault of the input
        raise
    except OSError as error:
        place = f"{error.filename}: " if error.filename else ""
        raise _bad_input(f"{place}{error.strerror or error}") from None
    except MemoryError as error:
        raise _bad_input(f"the memory was used up ({error}); use fewer rows or sparse data") from None
    except (ValueError, ImportError) as error:  # the latter for packages that are optional
        raise _bad_input(str(error)) from None


def _bad_input(message: str) -> typer.Exit:
    typer.echo(f"maxmargin: {' '.join(message.split())}", err=True)
    return typer.Exit(BAD_INPUT)


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
    return str(value) if isinstance(value, float) and not math.isfinite(value) else value
