"""Skeleton of a command: options from its signature and docstring, errors in one sentence, printing, exit codes.

Of other packages, it imports only typer, so that help is fast.
"""

from __future__ import annotations

import inspect
import json
import math
import re
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import wraps
from typing import Annotated, Any, NamedTuple

import typer
from typer import Argument, BadParameter, Option

from ..numerics.stop_check import ReadingStoppedError
from .inputs import read_once
from .refusals import OUTPUTS, as_typed, dashed, output_files, refuse_unused
from .signals import INTERRUPTED, begin_command, terminal_may_be_closed

# exit codes: stopped before the tolerance; bad input or a failed check
STOPPED, BAD_INPUT = 3, 2


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


# Written here and not read off the estimators, whose import takes seconds, while help must not need one; tests
# compare the defaults.
@dataclass(kw_only=True)
class CommonOptions:
    """Arguments and options of several commands; those from C to seed are parameters of the estimators.

    Parameters
    ----------
    model : Path
        A file that `maxmargin fit` wrote.
    data : Path
        svmlight text, .csv, .npz, .parquet or .arrow; text also as .gz, .bz2 or .xz.
    C : float
        Weight of the losses; inf is the hard margin.
    loss : str
        squared_hinge or hinge.
    p : float or str
        Norm of distances: 1 to inf, or log, which is max(2, 2 ln d) for d features.
    norm_power : int
        Regulariser: 2 for half the squared norm of w, 1 for the norm itself.
    tol : float
        Certified relative gap at which the fit ends.
    kernel : str
        linear, poly, rbf, sigmoid, or another of scikit-learn's pairwise kernels.
    gamma : float or str
        Parameter of the kernel: a number, scale or auto.
    degree : int
        Degree of the kernel poly.
    coef0 : float
        Constant term of the kernels poly and sigmoid.
    multi_class : str
        With --kernel: ovr, each class against the rest, or ovo, each pair of classes.
    cache_size : float
        With --kernel: megabytes of cached kernel rows.
    algorithm : str
        auto, or a name: dcd, mpu, pumma, perceptron and others.
    point : str
        best, or last: the last iterate of the algorithm, with its own bound.
    fit_intercept : bool
        Whether there is an intercept.
    intercept : str
        free, or augmented (regularised).
    intercept_scaling : float
        Value of the constant feature of an augmented intercept.
    class_weight : str
        balanced: the weights of each class have the same sum.
    max_iter : int
        Maximum number of rounds.
    max_time : float
        Time limit in seconds; the best model so far is kept.
    seed : int
        Seed of the order of the rows; by default another order in each run.
    memory : str
        Memory that the fit may use, as in 2GB: larger data are read in passes. By default the data are in memory if
        they fit, and half of the free memory is used if not.
    cache_dir : str
        With --memory: the folder for the rows that are read in passes; by default that of the data.
    checkpoint : str
        With --memory: a file from which the same command goes on after it was stopped or killed; for data that do not
        fit.
    n_jobs : int
        Number of classes solved at the same time; by default 1.
    n_features : int
        Number of columns, if not all of them occur in a sparse file.
    label : str
        The label column of a .csv, .parquet or .arrow file.
    columns : list of str
        Feature columns of a .csv, .parquet or .arrow file, as in a,b,c; all others are left out.
    drop : list of str
        Columns of a .csv, .parquet or .arrow file to leave out, as in id,date.
    header : bool
        Whether the first line of a text table holds the names of the columns; by default guessed. Columns without names
        are x1, x2 and so on.
    delimiter : str
        The sign between columns of a text table: comma, semicolon, tab, space (runs of spaces and tabs) or another one;
        by default guessed.
    as_json : bool
        Print one JSON object on standard output.
    quiet : bool
        Print nothing.
    """

    C: float = 1.0
    loss: str = "squared_hinge"
    p: Any = 2
    norm_power: int = 2
    tol: float = 1e-3
    kernel: str | None = None
    gamma: Any = "scale"
    degree: int = 3
    coef0: float = 0.0
    multi_class: str = "ovr"
    cache_size: float = 200
    algorithm: str = "auto"
    point: str = "best"
    fit_intercept: bool = True
    intercept: str = "free"
    intercept_scaling: float = 1.0
    class_weight: str | None = None
    max_iter: int = 1000
    max_time: float | None = None
    seed: int | None = None
    memory: str | None = None
    cache_dir: str | None = None
    checkpoint: str | None = None
    n_jobs: int | None = None
    label: str | None = None
    columns: list[str] | None = None
    drop: list[str] | None = None
    header: bool | None = None
    delimiter: str | None = None


COLUMNS = ("label", "columns", "drop", "header", "delimiter")  # in the order of `ColumnOptions`
COMMON = inspect.signature(CommonOptions, eval_str=True).parameters
ESTIMATOR_OPTIONS = [name for name in COMMON if name not in COLUMNS]
FIELDS = {"seed": "random_state"}  # parameters of the estimators that are not called as their options
FLAGS = {  # of options that are not called as their parameters
    "C": "--C",
    "output": "--output -o",
    "as_json": "--json",
    "quiet": "--quiet -q",
    "of": "--from",
    "header": "--header/--no-header",
    "fit_intercept": "--fit-intercept/--no-intercept",
}
SHOWN: dict[str, dict[str, Any]] = {  # further keywords of `typer.Option`
    "p": {"parser": _number_or("--p", "a number from 1 to inf, or log", "log"), "metavar": "NORM"},
    "gamma": {
        "parser": _number_or("--gamma", "a number, scale or auto", "scale", "auto"),
        "metavar": "NUMBER",
    },
    "seed": {"min": 0},
    # as typed: a path has no slash at its end; `output_files` makes the paths
    **{name: {"parser": str, "metavar": "FILE"} for name in OUTPUTS},
}


class ColumnOptions(NamedTuple):
    """Columns and layout of a table that a command line names: the parameter `columns` of a command.

    Attributes
    ----------
    label : str or None
        ``--label``, the column of the labels.
    use, drop : list of str or None
        ``--columns`` and ``--drop``, feature columns that are kept or left out.
    header : bool or None
        ``--header`` or ``--no-header``.
    delimiter : str or None
        The sign that ``--delimiter`` names.
    """

    label: str | None
    use: list[str] | None
    drop: list[str] | None
    header: bool | None = None
    delimiter: str | None = None

    def layout(self) -> dict[str, Any]:
        """Return the options about text tables as keywords of `readers.Expected`."""
        return {"header": self.header, "delimiter": self.delimiter}

    def requirements(self) -> dict[str, Any]:
        """Return all options as keywords of `readers.Expected`."""
        return {"label": self.label, "use": self.use or (), "drop": self.drop or (), **self.layout()}

    def with_defaults(self, source: dict[str, Any]) -> ColumnOptions:
        """Return the options with those of the file of a fit (`source_` of a model) in place of what is not given."""
        header = source.get("header") if self.header is None else self.header
        delimiter = self.delimiter or source.get("delimiter")
        return self._replace(label=self.label or source.get("label"), header=header, delimiter=delimiter)


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


def command(*names: str, **defaults: Any) -> Callable[[Callable[..., Result | None]], Any]:
    """Make a function a command: errors of the input are one sentence, and its result is printed.

    Its positional parameters become arguments, the others options, but for `typed`, which has the options that the
    command line sets. Their help texts are those of its docstring, or else of `CommonOptions`.

    Parameters
    ----------
    *names : str
        Options of `CommonOptions`, which the function receives in its ``**parameters`` by the names of the
        estimators. They stand before `n_features`, in the order of the table.
    **defaults : object
        More of them, with another default than that of the table.
    """
    taken = [name for name in ESTIMATOR_OPTIONS if name in names or name in defaults]
    options = [COMMON[name].replace(default=defaults.get(name, COMMON[name].default)) for name in taken]

    def decorate(function: Callable[..., Result | None]) -> Any:
        @wraps(function)
        def run(ctx: typer.Context, **given: Any) -> None:
            typed = typed_options(ctx)
            for name in taken:
                given[FIELDS.get(name, name)] = given.pop(name)
            if "typed" in inspect.signature(function).parameters:
                given["typed"] = typed
            with errors_in_one_sentence():
                output_files(given)
                refuse_unused(typed, "kernel" in taken)
                with read_once(given) as shown:
                    if "drop" in given:
                        given["columns"] = column_options(given)
                    result = function(**given)
                    with terminal_may_be_closed():
                        if result is not None and given.get("as_json"):
                            typer.echo(json_text(result.facts))
                        elif result is not None and not given.get("quiet"):
                            typer.echo(shown("\n".join(result.lines)))
            if result is not None and result.code:
                raise typer.Exit(result.code)

        signature = _signature(function, options)
        run.__signature__ = signature  # pyright: ignore[reportAttributeAccessIssue] # typer reads it
        run.__annotations__ = {name: one.annotation for name, one in signature.parameters.items()}
        paragraphs = _documented(function)[0].split("\n\n")
        run.__doc__ = "\n\n".join(" ".join(one.split()) for one in paragraphs)  # typer keeps line ends
        return run

    return decorate


def typed_options(ctx: typer.Context) -> dict[str, Any]:
    """Return the arguments and options that the command line sets."""
    sources = {name: ctx.get_parameter_source(name) for name in ctx.params}
    return {
        name: ctx.params[name] for name, source in sources.items() if source and source.name == "COMMANDLINE"
    }


def column_options(given: dict[str, Any]) -> ColumnOptions:
    """Take the options about columns out of those that are given."""
    columns = ColumnOptions(*(given.pop(name) for name in COLUMNS))
    if columns.use is not None and not "".join(columns.use).strip(" ,"):
        raise ValueError("--columns names no column: name those to use, as in a,b,c, or leave it out")
    if columns.delimiter is None:
        return columns

    from ..readers import delimiter_of

    return columns._replace(delimiter=delimiter_of(columns.delimiter))


def _signature(function: Callable[..., Any], options: list[inspect.Parameter]) -> inspect.Signature:
    """Return the parameters of a command for typer, with those that `columns` and ``**parameters`` stand for."""
    found = [inspect.Parameter("ctx", inspect.Parameter.KEYWORD_ONLY, annotation=typer.Context)]
    for name, parameter in inspect.signature(function, eval_str=True).parameters.items():
        if name == "n_features":
            found += options
        if name == "columns":
            found += [COMMON[one] for one in COLUMNS]
        elif name not in ("parameters", "typed"):
            found.append(parameter)
    shown = _documented(CommonOptions)[1] | _documented(function)[1]
    return inspect.Signature([_for_typer(one, shown.get(one.name, {})) for one in found])


def _for_typer(parameter: inspect.Parameter, shown: dict[str, Any]) -> inspect.Parameter:
    """Return a parameter of a command as an argument or an option with these keywords (`_documented`)."""
    name, kind = parameter.name, parameter.annotation
    if kind is typer.Context:
        return parameter
    if parameter.kind is inspect.Parameter.POSITIONAL_OR_KEYWORD:
        made: Any = Argument(**shown)
    else:
        # typer would give a flag a second name, --no-name
        flags = dashed(name) if parameter.default is False else ""
        made = Option(*FLAGS.get(name, flags).split(), **shown, **SHOWN.get(name, {}))
    return parameter.replace(kind=inspect.Parameter.KEYWORD_ONLY, annotation=Annotated[kind, made])


def _documented(described: Any) -> tuple[str, dict[str, dict[str, Any]]]:
    """Return the docstring of a function or class without its parameters, and keywords for typer of each parameter.

    The keywords are `help`, the text about the parameter, and `show_default`, where its type names a default.
    """
    summary, _, parameters = (inspect.getdoc(described) or "").partition("\n\nParameters\n----------\n")
    found: dict[str, dict[str, Any]] = {}
    for name, kind, text in re.findall(r"^(\w+) : (.*)\n((?: +.*\n?)+)", parameters, re.MULTILINE):
        default = kind.partition("default=")[2]
        found[name] = {"help": " ".join(text.split())} | ({"show_default": default} if default else {})
    return summary, found


@contextmanager
def errors_in_one_sentence() -> Iterator[None]:
    """Print an error as one line on standard error; exit with code 2, or with that of Ctrl-C or of a time limit."""
    begin_command()
    try:
        yield
    except BrokenPipeError:  # the reader of our output has gone, as `head` does: no fault of the input
        raise
    except OSError as error:
        place = f"{error.filename}: " if error.filename else ""
        raise _bad_input(f"{place}{error.strerror or error}") from None
    except MemoryError as error:
        reason = f" ({error})" if str(error) else ""
        raise _bad_input(f"there is not enough memory{reason}; use fewer rows or sparse data") from None
    except KeyboardInterrupt:
        typer.echo("maxmargin: interrupted; every file is complete or was not written.", err=True)
        raise typer.Exit(INTERRUPTED) from None
    except ReadingStoppedError:
        typer.echo(
            "maxmargin: --max-time went by while the data were read for the first time, and no file was written; give "
            "more time, or leave --max-time out", err=True,
        )  # fmt: skip
        raise typer.Exit(STOPPED) from None
    except (ValueError, ImportError) as error:  # the latter for packages that are optional
        raise _bad_input(str(error)) from None


def _bad_input(message: str) -> typer.Exit:
    """Print the message of an error in the words of the command line."""
    typer.echo(f"maxmargin: {as_typed(message, ESTIMATOR_OPTIONS)}", err=True)
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
